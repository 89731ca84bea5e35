#include "core/record_own.h"

#include "base/arr.h"

#include <stdlib.h>

#define TEXT_KEEP 4096u   /* bytes of memory that a cleared record keeps */
#define LEVEL_WITHIN 120u /* bytes from an entry's front in which a level is looked for */

static const char *const kind_names[] = {
#define X(e, name, text) [FF_RECORD_##e] = (name),
	FF_RECORD_KINDS(X)
#undef X
};

/* Each line that ff_record_opening takes holds one of these. */
const struct ff_str ff_record_openers[] = {
	{"Traceback (most recent call last)", 33},
	{"File \"", 6},
	{"Fatal Python error: ", 20},
	{"Timeout (", 9},
	{"terminate called", 16},
	{".cpp:", 5},
	{".hpp:", 5},
	{".cc:", 4},
	{".h:", 3},
	{"Exception in ", 13},
	{"Exception ignored ", 18},
	{" exception was never retrieved", 30},
	{"--- Logging error ---", 21},
	{"Error in atexit._run_exitfuncs:", 31},
	{"Error in sys.excepthook:", 24},
	{"Process ", 8},
	{"ERROR", 5},
	{"WARN", 4},
	{"CRITICAL", 8},
	{"FATAL", 5},
	{"====================", 20},
	{"********************", 20},
	{"\"extraInfo\"", 11},
	{" invoked oom-killer: ", 21},
	{"oom-kill:constraint=", 20},
	{"*** Aborted at ", 15},
	{"*** SIG", 7},
	{" noticed that process rank ", 27},
	{" detected that one or more processes exited", 43},
	{"MPI_ABORT was invoked on rank ", 30},
	{"BAD TERMINATION OF ONE OF YOUR", 30},
	{" has exited due to process rank ", 32},
	{" was unable to launch the specified", 35},
	{"The user-provided time limit for job", 36},
	{" has lost communication with a remote daemon", 44},
	{"Rendezvous complete for workers. Result:", 40},
};
const size_t ff_record_nopeners = sizeof ff_record_openers / sizeof ff_record_openers[0];

const char *ff_record_kind_name(enum ff_record_kind k)
{
	return kind_names[k];
}

/* ---- the record as a container */

void ff_record_finish(struct ff_record *r)
{
	if (!r) {
		return;
	}
	ff_buf_finish(&r->text);
	free(r->lines);
	*r = (struct ff_record){.stamp = FF_STAMP_NONE, .claimed = FF_CLAIMED_NONE};
}

void ff_record_clear(struct ff_record *r)
{
	if (r->text.cap > TEXT_KEEP) {
		ff_record_finish(r);
		return;
	}
	ff_buf_clear(&r->text);
	r->kind = FF_RECORD_LINE;
	r->handled = r->quoted = r->unowned = r->mixed = r->marked = false;
	r->copies = 0;
	r->repeats = 0;
	r->nlines = 0;
	r->stamp = FF_STAMP_NONE;
	r->claimed = FF_CLAIMED_NONE;
}

void ff_record_add(
	struct ff_record *r, const struct ff_line *line, struct ff_str text, enum ff_line_role role)
{
	if (r->nlines) {
		ff_buf_addc(&r->text, '\n');
	} else {
		r->stamp = line->stamp;
	}
	*FF_ARR_ADD(r->lines, r->nlines, r->clines) = (struct ff_record_line){
		.offset = line->offset,
		.end = line->end,
		.number = line->number,
		.at = (uint32_t)r->text.len,
		.len = (uint32_t)text.n,
		.role = role,
	};
	ff_buf_adds(&r->text, text);
}

void ff_record_copy(struct ff_record *to, const struct ff_record *from)
{
	*to = *from;
	to->text = (struct ff_buf){0};
	ff_buf_adds(&to->text, ff_buf_str(&from->text));
	to->clines = from->nlines;
	to->lines = from->nlines ? ff_xcalloc(from->nlines, sizeof *to->lines) : NULL;
	if (from->nlines) {
		memcpy(to->lines, from->lines, from->nlines * sizeof *to->lines);
	}
}

struct ff_str ff_record_line_text(const struct ff_record *r, size_t i)
{
	return ff_str_n(r->text.p + r->lines[i].at, r->lines[i].len);
}

/* ---- characters */

bool ff_record_is_blank(struct ff_str text)
{
	return blanks(text) == text.n;
}

/* Bytes of an escape sequence for colour at i, or 0. */
static size_t colour(struct ff_str s, size_t i)
{
	if (at(s, i) != '\x1b' || at(s, i + 1) != '[') {
		return 0;
	}
	size_t j = i + 2;
	while (j - i < 24 && (is_digit(at(s, j)) || at(s, j) == ';')) {
		j++;
	}
	return at(s, j) == 'm' ? j + 1 - i : 0;
}

struct ff_str ff_record_plain(struct ff_str text, struct ff_buf *buf)
{
	/* A DataLoader's signal handler ends its message with LF and NUL (torch-dataloader). */
	while (text.n && !text.p[0]) {
		text = ff_str_skip(text, 1);
	}
	if (!text.n || !memchr(text.p, '\x1b', text.n)) {
		return text;
	}
	ff_buf_clear(buf);
	size_t i = 0;
	while (i < text.n) {
		const char *esc = memchr(text.p + i, '\x1b', text.n - i);
		size_t to = esc ? (size_t)(esc - text.p) : text.n;
		ff_buf_add(buf, text.p + i, to - i);
		size_t skip = colour(text, to);
		if (!skip && to < text.n) {
			ff_buf_addc(buf, '\x1b');
		}
		i = to + (skip ? skip : 1);
	}
	return ff_buf_str(buf);
}

/* ---- log lines */

static const char *const bad_levels[] = {"ERROR", "WARNING", "WARN", "CRITICAL", "FATAL"};
static const char *const good_levels[] = {"INFO", "DEBUG", "TRACE", "NOTICE"};

/* Bytes of one of these words at the front if it ends there, or 0. */
static size_t level_len(struct ff_str s, const char *const *words, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		struct ff_str word = ff_str_z(words[i]);
		if (ff_str_starts(s, word) && !is_word(at(s, word.n))) {
			return word.n;
		}
	}
	return 0;
}

static bool is_bad_level(struct ff_str s)
{
	return level_len(s, bad_levels, sizeof bad_levels / sizeof bad_levels[0]) > 0;
}

bool ff_record_level_first(struct ff_str text, bool bad_only)
{
	if (at(text, 0) == '[' || at(text, 0) == '<') {
		text = ff_str_skip(text, 1);
	}
	size_t n = level_len(text, bad_levels, sizeof bad_levels / sizeof bad_levels[0]);
	if (!n && !bad_only) {
		n = level_len(text, good_levels, sizeof good_levels / sizeof good_levels[0]);
	}
	char next = at(text, n);
	return n && (next == ':' || next == ' ' || next == ']' || next == '>' || next == '\t');
}

static bool has_stamp(struct ff_str text)
{
	struct ff_claimed claimed;
	return ff_stamp_parse(text, &claimed);
}

/* A level of warning or worse as a word of its own near the front, behind a time. */
static bool level_behind_stamp(struct ff_str text)
{
	struct ff_str head = {text.p, text.n < LEVEL_WITHIN ? text.n : LEVEL_WITHIN};
	bool found = false;
	for (size_t i = 0; i < head.n && !found; i++) {
		bool begins = i == 0 || !is_word(head.p[i - 1]);
		found = begins && head.p[i] >= 'C' && is_bad_level(ff_str_skip(head, i));
	}
	return found && has_stamp(text);
}

static bool is_log_intro(struct ff_str text)
{
	return ff_record_level_first(text, true) || level_behind_stamp(text);
}

/* ---- how records begin */

/* "Process SpawnProcess-1:" of multiprocessing; the name may be the user's (torch-spawn). */
static bool is_process(struct ff_str text)
{
	if (!starts(text, "Process ") || !ff_str_ends(text, FF_STR(":"))) {
		return false;
	}
	return ff_str_chr(ff_str_skip(text, 8), ' ', 0) < 0;
}

static enum ff_intro intro_of(struct ff_str text)
{
	static const char *const handled[] = {
		"Exception in thread ",
		"Exception ignored ",
		"Exception in callback ",
		"Task exception was never retrieved",
		"Future exception was never retrieved",
		"--- Logging error ---",
		"Error in atexit._run_exitfuncs:",
	};
	if (STARTS_WITH_ONE(text, handled)) {
		return FF_INTRO_HANDLED;
	}
	if (starts(text, "Error in sys.excepthook:") || is_process(text)) {
		return FF_INTRO_NAME;
	}
	return is_log_intro(text) ? FF_INTRO_LOG : FF_INTRO_NONE;
}

bool ff_record_opening(struct ff_str text, struct ff_opening *ret)
{
	*ret = (struct ff_opening){.kind = FF_RECORD_TRACEBACK};
	struct ff_frame frame;
	char border;
	if (ff_record_header(text, &ret->header)) {
		ret->is_header = true;
	} else if (ff_record_frame(text, &frame)) {
		ret->is_frame = true;
		ret->has_func = frame.func.n > 0;
		return !frame.faulthandler;
	} else if (ff_record_is_faulthandler(text)) {
		ret->kind = FF_RECORD_FAULTHANDLER;
	} else if (starts(text, "terminate called")) {
		ret->kind = FF_RECORD_CXX;
	} else if (ff_record_is_oom_head(text, &ret->margin)) {
		ret->kind = FF_RECORD_KERNEL;
	} else if (ff_record_is_error_file(text)) {
		ret->is_error_file = true;
	} else if (ff_record_is_signal_head(text, &ret->margin)) {
		ret->kind = FF_RECORD_CXX;
		ret->is_signal = true;
	} else if (ff_record_is_c10_head(text)) {
		ret->kind = FF_RECORD_CXX;
		ret->head_only = true;
	} else if ((border = ff_record_border(text)) == '=' || border == '*') {
		ret->kind = FF_RECORD_TABLE;
	} else if (ff_record_is_box(text) || ff_record_is_result_head(text, &ret->margin)) {
		ret->kind = FF_RECORD_BOX;
	} else {
		ret->intro = intro_of(text);
		ret->head_only = ret->intro == FF_INTRO_LOG;
		return ret->intro != FF_INTRO_NONE;
	}
	return true;
}

bool ff_record_is_entry(struct ff_str text)
{
	static const char *const words[] = {
		"srun: ",
		"slurmstepd: ",
		"slurmd: ",
		"mpirun",
		"mpiexec",
		"prterun",
		"orterun",
		"[rank: ",
		"Process ",
		"wandb: ",
		"*** ",
	};
	struct ff_opening opening;
	if (!text.n || at(text, 0) == ' ' || at(text, 0) == '\t') {
		return ff_record_border(text) != 0;
	}
	if (ff_record_opening(text, &opening) || ff_record_level_first(text, false) ||
		has_stamp(text)) {
		return true;
	}
	if (STARTS_WITH_ONE(text, words) || ff_record_border(text)) {
		return true;
	}
	struct ff_str head = {text.p, text.n < 200 ? text.n : 200};
	return ff_str_find(head, FF_STR(" NCCL INFO "), 0) >= 0 ||
		ff_str_find(head, FF_STR(" NCCL WARN "), 0) >= 0;
}
