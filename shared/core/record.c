#include "core/record.h"

#include "base/arr.h"

#include <stdlib.h>

#define TEXT_KEEP 4096u   /* bytes of memory that a cleared record keeps */
#define BORDER_LEAST 20u  /* torchrun's borders are as wide as the longest row, at most 60 */
#define LEVEL_WITHIN 120u /* bytes from an entry's front in which a level is looked for */

#define TRACEBACK "Traceback (most recent call last):"

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
	{"Task exception was never retrieved", 34},
	{"Error in sys.excepthook:", 24},
	{"Process ", 8},
	{"ERROR", 5},
	{"WARN", 4},
	{"CRITICAL", 8},
	{"FATAL", 5},
	{"====================", 20},
	{"********************", 20},
	{" noticed that process rank ", 27},
	{" detected that one or more processes exited", 43},
	{"MPI_ABORT was invoked on rank ", 30},
	{"BAD TERMINATION OF ONE OF YOUR", 30},
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
	r->handled = r->quoted = r->unowned = r->marked = false;
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

/* ---- characters and words */

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static bool is_letter(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

static bool is_word(char c)
{
	return is_letter(c) || is_digit(c) || c == '_' || (unsigned char)c >= 0x80;
}

static char at(struct ff_str s, size_t i)
{
	return i < s.n ? s.p[i] : '\0';
}

static size_t blanks(struct ff_str s)
{
	size_t n = 0;
	while (n < s.n && (s.p[n] == ' ' || s.p[n] == '\t')) {
		n++;
	}
	return n;
}

static bool starts(struct ff_str s, const char *z)
{
	return ff_str_starts(s, ff_str_z(z));
}

static bool starts_with_one(struct ff_str s, const char *const *words, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		if (starts(s, words[i])) {
			return true;
		}
	}
	return false;
}

#define STARTS_WITH_ONE(s, words) starts_with_one(s, words, sizeof(words) / sizeof((words)[0]))

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

/* ---- tracebacks (SOURCES.md cpython-traceback) */

/* What may stand behind a header: nothing, "(RANK 3)" of distributed checkpoint
 * (SOURCES.md real-runs), Ray's "[repeated 3x across cluster]". */
static bool header_tail(struct ff_str tail, int64_t *ret_rank)
{
	tail = ff_str_trim(tail);
	*ret_rank = FF_UNKNOWN;
	if (!tail.n || (starts(tail, "[repeated ") && at(tail, tail.n - 1) == ']')) {
		return true;
	}
	if (!starts(tail, "(RANK ")) {
		return false;
	}
	struct ff_str rest = ff_str_skip(tail, 6);
	size_t n = ff_str_digits(rest, ret_rank);
	return n && ff_str_eq(ff_str_skip(rest, n), FF_STR(")"));
}

bool ff_record_header(struct ff_str text, struct ff_header *ret)
{
	/* The last one counts: a header can be glued to another one (real-runs). */
	struct ff_str word = FF_STR(TRACEBACK);
	ptrdiff_t found = -1;
	for (ptrdiff_t i = ff_str_find(text, word, 0); i >= 0;
		i = ff_str_find(text, word, (size_t)i + word.n)) {
		found = i;
	}
	if (found < 0) {
		return false;
	}
	struct ff_header h = {.before = {text.p, (size_t)found}};
	if (!header_tail(ff_str_skip(text, (size_t)found + word.n), &h.rank)) {
		return false;
	}
	if (ff_str_ends(h.before, FF_STR("Original "))) {
		h.original = true;
		h.before.n -= 9;
	} else if (ff_str_ends(h.before, FF_STR("+ Exception Group "))) {
		h.group = true;
		h.before.n -= 18;
	}
	*ret = h;
	return true;
}

bool ff_record_frame(struct ff_str text, struct ff_frame *ret)
{
	struct ff_frame f = {0};
	struct ff_str s = text;
	if (starts(s, "> File \"")) {
		f.caught = true;
	} else if (!starts(s, "  File \"")) {
		return false;
	}
	s = ff_str_skip(s, 8);
	/* The quote that ends the path: a path may hold quotes itself. */
	ptrdiff_t end = ff_str_find(s, FF_STR("\", line "), 0);
	if (end < 0) {
		return false;
	}
	f.path = (struct ff_str){s.p, (size_t)end};
	s = ff_str_skip(s, (size_t)end + 8);
	size_t n = ff_str_digits(s, &f.line);
	if (!n) {
		return false;
	}
	s = ff_str_skip(s, n);
	if (starts(s, ", in ")) {
		f.func = ff_str_skip(s, 5);
	} else if (starts(s, " in ")) {
		f.faulthandler = true;
		f.func = ff_str_skip(s, 4);
	} else if (ff_str_trim(s).n) {
		return false;
	}
	*ret = f;
	return true;
}

/* Bytes of a class at the front: words joined by dots, "<locals>" among them, then perhaps a class
 * in parentheses (RayTaskError(ValueError)). */
static size_t class_len(struct ff_str s)
{
	size_t i = 0;
	for (;;) {
		size_t from = i;
		if (starts(ff_str_skip(s, i), "<locals>")) {
			i += 8;
		} else {
			while (i < s.n && is_word(s.p[i])) {
				i++;
			}
			if (i == from || is_digit(s.p[from])) {
				return 0;
			}
		}
		if (at(s, i) != '.') {
			break;
		}
		i++;
	}
	if (at(s, i) == '(') {
		size_t j = i + 1;
		while (j < s.n && (is_word(s.p[j]) || s.p[j] == '.')) {
			j++;
		}
		i = at(s, j) == ')' && j > i + 1 ? j + 1 : i;
	}
	return i;
}

enum ff_link ff_record_link(struct ff_str text)
{
	text = ff_str_trim(text);
	if (starts(text, "The above exception was the direct cause of the following exception")) {
		return FF_LINK_CAUSE;
	}
	if (starts(text, "During handling of the above exception, another exception occurred")) {
		return FF_LINK_CONTEXT;
	}
	return ff_str_eq(text, FF_STR("Original exception was:")) ? FF_LINK_ORIGINAL : FF_LINK_NONE;
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

/* A level as the first word: "ERROR:root:boom", "[ERROR] boom", "WARNING 05-01 12:00:00 x". */
static bool level_first(struct ff_str text, bool bad_only)
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
	return level_first(text, true) || level_behind_stamp(text);
}

bool ff_record_exception(struct ff_str text, struct ff_str *ret_cls, struct ff_str *ret_msg)
{
	size_t n = class_len(text);
	struct ff_str rest = ff_str_skip(text, n);
	if (!n || (rest.n && rest.p[0] != ':')) {
		return false;
	}
	if (rest.n > 1 && rest.p[1] != ' ') {
		return false;
	}
	bool lower = text.p[0] >= 'a' && text.p[0] <= 'z' && !memchr(text.p, '.', n);
	if (lower || level_first(text, false)) {
		return false; /* "srun: error: ..." or "WARNING: text" among the frames */
	}
	*ret_cls = (struct ff_str){text.p, n};
	*ret_msg = n == text.n ? (struct ff_str){text.p + n, 0} : ff_str_skip(rest, 2);
	return true;
}

/* ---- C++ (SOURCES.md c10-logging, process-group-nccl) */

/* A digit run of at least least digits at i: its length, or 0. */
static size_t digits_at(struct ff_str s, size_t i, size_t least)
{
	size_t n = 0;
	while (is_digit(at(s, i + n))) {
		n++;
	}
	return n >= least ? n : 0;
}

/* "file.cpp:607] " somewhere in the first 160 bytes, of a C++ file and no Python one. */
static bool has_cxx_place(struct ff_str s)
{
	static const char *const ends[] = {".cpp:", ".hpp:", ".cc:", ".h:"};
	struct ff_str head = {s.p, s.n < 160 ? s.n : 160};
	for (size_t i = 0; i < sizeof ends / sizeof ends[0]; i++) {
		ptrdiff_t found = ff_str_find(head, ff_str_z(ends[i]), 0);
		if (found < 0) {
			continue;
		}
		size_t from = (size_t)found + strlen(ends[i]);
		size_t n = digits_at(head, from, 1);
		if (n && at(head, from + n) == ']') {
			return true;
		}
	}
	return false;
}

/* "[E501 12:00:08.123456789 ProcessGroupNCCL.cpp:607] ", "[E ProcessGroupNCCL.cpp:475] " or glog's
 * "E0501 12:00:08.123456  4242 ProcessGroupNCCL.cpp:607] ", of level W, E or F. */
static bool is_c10_head(struct ff_str text)
{
	size_t i = at(text, 0) == '[';
	char level = at(text, i);
	if (level != 'E' && level != 'W' && level != 'F') {
		return false;
	}
	bool dated = digits_at(text, i + 1, 3) > 0;
	bool bare = at(text, i + 1) == ' ' && i;
	return (dated || bare) && has_cxx_place(text);
}

bool ff_record_is_cxx(struct ff_str text, bool *ret_frame)
{
	static const char *const frames[] = {
		"frame #",
		"Exception raised from ",
		"<omitting python frames>",
		"C++ CapturedTraceback:",
		"*** Check failure stack trace:",
		"    @ ",
	};
	static const char *const texts[] = {
		"  what():",
		"nccl",
		"NCCL Error ",
		"Last error:",
		"CUDA kernel errors might be",
		"For debugging consider passing",
		"Compile with `TORCH_USE_CUDA_DSA`",
		"Device-side assertion",
		"Search for `cuda",
		"This may indicate a possible",
		"Successfully processed ranks",
		"No ranks successfully processed",
		/* the services of JAX (SOURCES.md real-runs) */
		"The tasks have crashed",
		"Additional GRPC error information",
		":UNKNOWN:",
		"Barrier result:",
		"RPC: ",
		"\t",
	};
	*ret_frame = STARTS_WITH_ONE(text, frames);
	if (*ret_frame) {
		return true;
	}
	if (at(text, 0) == '#') {
		size_t n = digits_at(text, 1, 1);
		*ret_frame = n && at(text, 1 + n) == ' ';
		return *ret_frame;
	}
	return STARTS_WITH_ONE(text, texts);
}

/* ---- the table (SOURCES.md torch-elastic-errors) */

char ff_record_border(struct ff_str text)
{
	text = ff_str_trim(text);
	char c = at(text, 0);
	if (text.n < BORDER_LEAST || (c != '=' && c != '-' && c != '*')) {
		return 0;
	}
	for (size_t i = 1; i < text.n; i++) {
		if (text.p[i] != c) {
			return 0;
		}
	}
	return c;
}

bool ff_record_is_row(struct ff_str text)
{
	static const char *const keys[] = {
		"  time",
		"  host",
		"  rank",
		"  exitcode",
		"  error_file",
		"  traceback",
		"  msg",
	};
	for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) {
		if (starts(text, keys[i])) {
			struct ff_str rest = ff_str_skip(text, strlen(keys[i]));
			return at(rest, blanks(rest)) == ':';
		}
	}
	return false;
}

/* ---- boxes (SOURCES.md ompi-iof, hydra-prefix, torch-elastic-logs) */

static bool is_box(struct ff_str text)
{
	static const char *const words[] = {
		" noticed that process rank ",
		" detected that one or more processes exited",
		"MPI_ABORT was invoked on rank ",
		"BAD TERMINATION OF ONE OF YOUR",
		" has lost communication with a remote daemon",
	};
	struct ff_str head = {text.p, text.n < 120 ? text.n : 120};
	for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
		if (ff_str_find(head, ff_str_z(words[i]), 0) >= 0) {
			return true;
		}
	}
	return false;
}

/* "...api.py:525] [default] Rendezvous complete for workers. Result:": the lines below have the log
 * prefix again (torch 2.13) or not (before). */
static bool is_result_head(struct ff_str text, size_t *ret_margin)
{
	if (!ff_str_ends(ff_str_trim(text), FF_STR("Rendezvous complete for workers. Result:"))) {
		return false;
	}
	ptrdiff_t end = ff_str_find(text, FF_STR("] "), 0);
	*ret_margin = end < 0 ? 0 : (size_t)end + 2;
	return true;
}

bool ff_record_is_result(struct ff_str text)
{
	size_t n = blanks(text);
	struct ff_str rest = ff_str_skip(text, n);
	size_t word = 0;
	while (word < rest.n && is_word(rest.p[word])) {
		word++;
	}
	return n >= 2 && word && at(rest, word) == '=';
}

/* ---- how records begin */

static bool is_faulthandler(struct ff_str text)
{
	if (starts(text, "Fatal Python error: ")) {
		return true;
	}
	/* Timeout (0:05:00)! of dump_traceback_later */
	return starts(text, "Timeout (") && is_digit(at(text, 9)) &&
		ff_str_ends(text, FF_STR(")!"));
}

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
		return !frame.faulthandler;
	} else if (is_faulthandler(text)) {
		ret->kind = FF_RECORD_FAULTHANDLER;
	} else if (starts(text, "terminate called")) {
		ret->kind = FF_RECORD_CXX;
	} else if (is_c10_head(text)) {
		ret->kind = FF_RECORD_CXX;
		ret->head_only = true;
	} else if ((border = ff_record_border(text)) == '=' || border == '*') {
		ret->kind = FF_RECORD_TABLE;
	} else if (is_box(text) || is_result_head(text, &ret->margin)) {
		ret->kind = FF_RECORD_BOX;
	} else {
		ret->intro = intro_of(text);
		ret->head_only = ret->intro == FF_INTRO_LOG;
		return ret->intro != FF_INTRO_NONE;
	}
	return true;
}

enum ff_record_kind ff_record_opens(struct ff_str text)
{
	struct ff_opening opening;
	return ff_record_opening(text, &opening) ? opening.kind : FF_RECORD_LINE;
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
	if (ff_record_opening(text, &opening) || level_first(text, false) || has_stamp(text)) {
		return true;
	}
	if (STARTS_WITH_ONE(text, words) || ff_record_border(text)) {
		return true;
	}
	struct ff_str head = {text.p, text.n < 200 ? text.n : 200};
	return ff_str_find(head, FF_STR(" NCCL INFO "), 0) >= 0 ||
		ff_str_find(head, FF_STR(" NCCL WARN "), 0) >= 0;
}
