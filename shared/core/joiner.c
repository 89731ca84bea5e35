#include "core/joiner.h"

#define LOOSE_MOST 40u /* message lines behind one exception line */
#define BOX_MOST 16u   /* lines of a launcher's message */

/* What a line means to the open record. */
struct step {
	enum { STEP_NO, STEP_FULL, STEP_TAKE, STEP_HOLD } what;
	enum ff_line_role role;
	struct ff_str text;        /* what stays of it in the record */
	struct ff_joiner_place at; /* afterwards */
	bool handled, not_handled; /* what it says about who printed the record */
	bool quoted;
	bool mixed;
	unsigned copies;
	bool kind_known; /* the record becomes one of this kind */
	enum ff_record_kind kind;
};

/* A line as it is offered. */
struct offer {
	struct ff_str text; /* without colours */
	bool hooked; /* behind torch's "[rank3]: ", which stands on each line of a traceback */
	struct ff_buf *buf; /* for a line that has to be put together anew */
};

void ff_joiner_finish(struct ff_joiner *j)
{
	if (!j) {
		return;
	}
	ff_record_finish(&j->rec);
	*j = (struct ff_joiner){0};
}

void ff_joiner_clear(struct ff_joiner *j)
{
	ff_record_clear(&j->rec);
	j->open = false;
	j->capped = false;
	j->at = (struct ff_joiner_place){0};
	j->nheld = 0;
}

void ff_joiner_copy(struct ff_joiner *to, const struct ff_joiner *from)
{
	*to = *from;
	ff_record_copy(&to->rec, &from->rec);
}

bool ff_joiner_is_loose(const struct ff_joiner *j)
{
	return j->open && (j->at.state == FF_JOINER_MESSAGE || j->at.state == FF_JOINER_BOX);
}

bool ff_joiner_is_done(const struct ff_joiner *j)
{
	return j->open && j->at.state == FF_JOINER_DONE;
}

uint64_t ff_joiner_deadline(const struct ff_joiner *j)
{
	if (!j->open) {
		return UINT64_MAX;
	}
	uint64_t idle = j->last + FF_RECORD_IDLE, span = j->first + FF_RECORD_SPAN;
	return idle < span ? idle : span;
}

bool ff_joiner_too_far(const struct ff_joiner *j, uint64_t pos)
{
	return j->open && pos > ff_joiner_deadline(j);
}

/* ---- the steps of each state */

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static struct step no(void)
{
	return (struct step){.what = STEP_NO};
}

static struct step take(const struct ff_joiner *j, struct ff_str text, enum ff_line_role role,
	enum ff_joiner_state next)
{
	struct step s = {.what = STEP_TAKE, .role = role, .text = text, .at = j->at};
	s.at.state = next;
	s.at.lead = false;
	return s;
}

static struct step hold(const struct ff_joiner *j)
{
	if (j->nheld >= FF_JOINER_HELD) {
		return no();
	}
	return (struct step){.what = STEP_HOLD, .role = FF_LINE_BLANK, .at = j->at};
}

/* A line that announces a traceback inside a message: torch's spawn, a process pool, distributed
 * checkpoint, Ray, TorchScript (SOURCES.md torch-spawn, real-runs). */
static bool is_lead(struct ff_str text)
{
	return ff_str_ends(text, FF_STR("terminated with the following error:")) ||
		ff_str_ends(text, FF_STR("(most recent call last):")) ||
		ff_str_eq(text, FF_STR("\"\"\"")) ||
		ff_str_ends(text, FF_STR(" Error Snippet]:")) ||
		ff_str_find(text, FF_STR("RayTaskError("), 0) >= 0 ||
		ff_str_find(text, FF_STR("CheckpointException ranks:"), 0) >= 0;
}

static enum ff_joiner_state header_state(const struct ff_header *h)
{
	switch (h->style) {
	case FF_STYLE_RICH: return FF_JOINER_RICH;
	case FF_STYLE_CELL: return FF_JOINER_CELL;
	case FF_STYLE_PYTHON: break;
	}
	return h->group ? FF_JOINER_GROUP : FF_JOINER_FRAMES;
}

static struct step take_header(
	const struct ff_joiner *j, const struct ff_header *h, struct ff_str text)
{
	struct step s = take(j, ff_str_skip(text, h->before.n), FF_LINE_HEADER, header_state(h));
	s.kind_known = true;
	s.kind = FF_RECORD_TRACEBACK;
	return s;
}

/* The first frame tells a logger's traceback from one that only stands below a log line: what
 * nobody caught begins at the module. loguru shows that too, but marks where it was caught. */
static struct step take_frame(
	const struct ff_joiner *j, const struct ff_frame *f, struct ff_str text)
{
	struct step s = take(j, text, FF_LINE_FRAME, FF_JOINER_FRAMES);
	bool log = j->at.intro == FF_INTRO_LOG;
	bool module = ff_str_eq(f->func, FF_STR("<module>"));
	s.handled = log && (f->caught || (!j->at.framed && !module));
	s.not_handled = log && !j->at.framed && module;
	s.at.framed = true;
	return s;
}

static struct step take_exception(const struct ff_joiner *j, struct ff_str text)
{
	struct step s = take(j, text, FF_LINE_TEXT, FF_JOINER_MESSAGE);
	s.at.loose = 0;
	s.at.lead = is_lead(text);
	s.handled = j->at.intro == FF_INTRO_LOG && !j->at.framed;
	s.at.framed = true;
	s.quoted = ff_str_find(text, FF_STR("RayTaskError"), 0) >= 0;
	return s;
}

static struct step step_intro(const struct ff_joiner *j, struct ff_str text)
{
	struct ff_header h;
	if (ff_record_header(text, &h) && ff_record_is_blank(h.before)) {
		struct step s = take_header(j, &h, text);
		s.handled = j->at.intro == FF_INTRO_HANDLED;
		return s;
	}
	/* asyncio puts a line about the task between, also where a logger prints it. */
	bool asyncio = ff_str_starts(text, FF_STR("future: <")) ||
		ff_str_starts(text, FF_STR("handle: <"));
	if (!asyncio) {
		return no();
	}
	struct step s = take(j, text, FF_LINE_SOURCE, FF_JOINER_INTRO);
	s.at.intro = FF_INTRO_HANDLED;
	return s;
}

/* A header among frames is another process's: several write into one pipe. Their lines can't be
 * told apart, so they are one record, which says so. */
static struct step take_other_header(
	const struct ff_joiner *j, const struct ff_header *h, struct ff_str text)
{
	struct step s = take_header(j, h, text);
	s.at.heads = j->at.heads + 1;
	s.mixed = true;
	return s;
}

/* Processes of one program fail alike, and each writes piece by piece: lines can be glued. */
static struct step step_glued(const struct ff_joiner *j, const struct offer *o)
{
	struct ff_str one;
	struct ff_header h;
	struct ff_frame frame;
	unsigned n = ff_record_glued(o->text, &one);
	if (n && ff_record_header(one, &h) && !h.before.n) {
		return take_other_header(j, &h, one);
	}
	if (n && ff_record_frame(one, &frame)) {
		struct step s = take_frame(j, &frame, one);
		s.at.heads = j->at.heads + 1;
		s.mixed = true;
		return s;
	}
	if (n && j->at.heads && ff_record_is_blank((struct ff_str){o->text.p, 4})) {
		return take(j, one, FF_LINE_SOURCE, FF_JOINER_FRAMES);
	}
	n = ff_record_glued_exception(o->text, o->buf);
	if (!n) {
		return no();
	}
	struct step s = take_exception(j, ff_buf_str(o->buf));
	s.copies = n;
	return s;
}

static struct step step_frames(const struct ff_joiner *j, const struct offer *o)
{
	struct ff_str text = o->text;
	struct ff_frame frame;
	struct ff_header h;
	struct ff_str cls, msg;
	if (ff_record_is_blank(text)) {
		return hold(j);
	}
	struct step glued = step_glued(j, o);
	if (glued.what != STEP_NO) {
		return glued;
	}
	if (ff_record_header(text, &h) && !h.before.n && h.style == FF_STYLE_PYTHON && !h.group) {
		return take_other_header(j, &h, text);
	}
	if (ff_record_frame(text, &frame)) {
		return take_frame(j, &frame, text);
	}
	if (ff_str_starts(text, FF_STR("  ")) || text.p[0] == '\t') {
		return take(j, text, FF_LINE_SOURCE, FF_JOINER_FRAMES);
	}
	if (ff_record_exception(text, &cls, &msg)) {
		return take_exception(j, text);
	}
	return no();
}

/* Inside a box: frames, sources of which one is marked, perhaps a box of locals. */
static struct step step_rich(const struct ff_joiner *j, struct ff_str text)
{
	struct ff_str inner, code;
	struct ff_frame frame;
	int64_t number;
	if (ff_record_is_box_end(text)) {
		return take(j, text, FF_LINE_BLANK, FF_JOINER_FRAMES);
	}
	if (!ff_record_boxed(text, &inner)) {
		return no();
	}
	if (ff_record_odd_frame(inner, &frame)) {
		struct step s = take_frame(j, &frame, inner);
		s.at.state = FF_JOINER_RICH;
		return s;
	}
	/* A path that is too long for the box goes on in the next line. */
	bool piece = inner.n && inner.p[0] == '/' && ff_str_chr(inner, ' ', 0) < 0;
	bool source = ff_record_marked_source(inner, &code, &number);
	return take(j, inner,
		piece            ? FF_LINE_FRAME
			: source ? FF_LINE_SOURCE
				 : FF_LINE_BLANK,
		FF_JOINER_RICH);
}

static struct step step_cell(const struct ff_joiner *j, struct ff_str text)
{
	struct ff_str code, cls, msg;
	struct ff_frame frame;
	int64_t number;
	if (ff_record_is_blank(text)) {
		return hold(j);
	}
	if (ff_record_odd_frame(text, &frame)) {
		struct step s = take_frame(j, &frame, text);
		s.at.state = FF_JOINER_CELL;
		return s;
	}
	if (ff_record_marked_source(text, &code, &number)) {
		return take(j, text, FF_LINE_SOURCE, FF_JOINER_CELL);
	}
	if (text.p[0] == ' ') {
		return take(j, text, FF_LINE_BLANK, FF_JOINER_CELL);
	}
	return ff_record_exception(text, &cls, &msg) ? take_exception(j, text) : no();
}

/* logging says where it was called when a handler failed; that is no part of the fault. */
static struct step step_stack(const struct ff_joiner *j, struct ff_str text)
{
	bool known = ff_str_starts(text, FF_STR("  ")) ||
		ff_str_starts(text, FF_STR("Message: ")) ||
		ff_str_starts(text, FF_STR("Arguments: "));
	return known ? take(j, text, FF_LINE_BLANK, FF_JOINER_STACK) : no();
}

static bool same_but_digits(struct ff_str a, struct ff_str b)
{
	size_t i = 0, k = 0;
	while (i < a.n && k < b.n) {
		if (is_digit(a.p[i]) && is_digit(b.p[k])) {
			for (; i < a.n && is_digit(a.p[i]); i++) {
			}
			for (; k < b.n && is_digit(b.p[k]); k++) {
			}
		} else if (a.p[i++] != b.p[k++]) {
			return false;
		}
	}
	return i == a.n && k == b.n;
}

/* Behind a blank line: does this belong to the message? */
static bool goes_on(struct ff_str text)
{
	static const char *const words[] = {
		"Set TORCHDYNAMO",
		"Set TORCH",
		"Operation: ",
		"Input shapes",
		"  - Process ",
		"You can suppress",
		"from user code:",
		"While executing",
		"Hint: ",
		"note: ",
		"\"\"\"",
	};
	for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
		if (ff_str_starts(text, ff_str_z(words[i]))) {
			return true;
		}
	}
	return is_lead(text);
}

/* The record's last exception line once more, numbers aside: another process says it too. */
static bool is_again(const struct ff_joiner *j, struct ff_str text)
{
	struct ff_str cls, msg;
	size_t i = j->rec.nlines;
	if (!ff_record_exception(text, &cls, &msg)) {
		return false;
	}
	while (i > 0 && j->rec.lines[i - 1].role != FF_LINE_TEXT) {
		i--;
	}
	return i > 0 && same_but_digits(ff_record_line_text(&j->rec, i - 1), text);
}

static struct step step_message(const struct ff_joiner *j, const struct offer *o)
{
	struct ff_str text = o->text;
	struct ff_header h;
	struct ff_frame frame;
	bool is_frame;
	if (ff_record_is_blank(text)) {
		return hold(j);
	}
	if (ff_record_link(text)) {
		return take(j, text, FF_LINE_LINK, FF_JOINER_LINK);
	}
	if (ff_record_header(text, &h)) {
		bool inner = h.original || h.ranks.n || j->at.lead;
		return inner && ff_record_is_blank(h.before) ? take_header(j, &h, text) : no();
	}
	if (ff_record_frame(text, &frame)) {
		/* Ray's and TorchScript's inner tracebacks have no header of Python's. */
		return j->at.lead ? take_frame(j, &frame, text) : no();
	}
	if (ff_str_eq(text, FF_STR("Call stack:")) && j->rec.handled) {
		return take(j, text, FF_LINE_BLANK, FF_JOINER_STACK);
	}
	if (j->at.heads && is_again(j, text)) {
		struct step s = take(j, text, FF_LINE_BLANK, FF_JOINER_MESSAGE);
		s.copies = (j->rec.copies ? j->rec.copies : 1) + 1;
		return s;
	}
	bool cxx = ff_record_is_cxx(text, &is_frame);
	if (is_frame) {
		return take(j, text, FF_LINE_FRAME, FF_JOINER_MESSAGE);
	}
	bool on = cxx || goes_on(text);
	bool behind_blank = j->nheld && !o->hooked;
	if ((!on && (behind_blank || ff_record_is_entry(text))) || j->at.loose >= LOOSE_MOST) {
		return no();
	}
	struct step s = take(j, text, FF_LINE_TEXT, FF_JOINER_MESSAGE);
	s.at.loose++;
	s.at.lead = is_lead(text);
	s.quoted = ff_str_starts(text, FF_STR("-- Process "));
	return s;
}

static struct step step_link(const struct ff_joiner *j, struct ff_str text)
{
	struct ff_header h;
	if (ff_record_is_blank(text)) {
		return hold(j);
	}
	if (ff_record_header(text, &h)) {
		return take_header(j, &h, text);
	}
	return no();
}

/* Exception groups have a margin of blanks and "|" or "+" (SOURCES.md cpython-traceback): it comes
 * off. */
static struct step step_group(const struct ff_joiner *j, struct ff_str text)
{
	struct ff_header h;
	struct ff_frame frame;
	size_t i = 0;
	while (i < text.n && text.p[i] == ' ') {
		i++;
	}
	struct ff_str rest = ff_str_skip(text, i);
	if (ff_record_is_blank(text)) {
		return hold(j);
	}
	if (ff_str_starts(rest, FF_STR("+"))) {
		if (ff_record_header(rest, &h)) {
			return take_header(j, &h, rest);
		}
		/* "+-+---------------- 1 ----------------" begins a member, with or without a
		 * traceback of its own. */
		bool member = ff_str_find(rest, FF_STR("- "), 0) > 0;
		return take(j, (struct ff_str){rest.p, 0}, member ? FF_LINE_HEADER : FF_LINE_BLANK,
			FF_JOINER_GROUP);
	}
	if (!ff_str_starts(rest, FF_STR("|"))) {
		return ff_record_link(text) ? take(j, text, FF_LINE_LINK, FF_JOINER_LINK) : no();
	}
	rest = ff_str_skip(rest, ff_str_starts(rest, FF_STR("| ")) ? 2 : 1);
	struct step s = take(j, rest, FF_LINE_TEXT, FF_JOINER_GROUP);
	if (ff_record_is_blank(rest)) {
		s.role = FF_LINE_BLANK;
	} else if (ff_record_header(rest, &h)) {
		s.role = FF_LINE_HEADER;
	} else if (ff_record_frame(rest, &frame)) {
		s = take_frame(j, &frame, rest);
		s.at.state = FF_JOINER_GROUP;
	} else if (ff_record_link(rest)) {
		s.role = FF_LINE_LINK;
	} else if (ff_str_starts(rest, FF_STR("  "))) {
		s.role = FF_LINE_SOURCE;
	}
	return s;
}

/* SOURCES.md cpython-faulthandler */
static struct step step_fault(const struct ff_joiner *j, struct ff_str text)
{
	static const char *const threads[] = {"Thread 0x", "Current thread", "<Cannot show all"};
	if (ff_record_is_blank(text)) {
		return hold(j);
	}
	for (size_t i = 0; i < sizeof threads / sizeof threads[0]; i++) {
		if (ff_str_starts(text, ff_str_z(threads[i]))) {
			return take(j, text, FF_LINE_FRAME, FF_JOINER_FAULT);
		}
	}
	if (ff_str_starts(text, FF_STR("  "))) {
		return take(j, text, FF_LINE_FRAME, FF_JOINER_FAULT);
	}
	if (ff_str_starts(text, FF_STR("Extension modules:"))) {
		return take(j, text, FF_LINE_SOURCE, FF_JOINER_FAULT);
	}
	if (ff_str_starts(text, FF_STR("Python runtime state:"))) {
		return take(j, text, FF_LINE_TEXT, FF_JOINER_FAULT);
	}
	return no();
}

/* Behind a colon stands what it announces, whatever that looks like. */
static enum ff_joiner_state cxx_state(struct ff_str text, bool frame)
{
	bool announces = !frame && ff_str_ends(ff_str_trim(text), FF_STR(":"));
	return announces ? FF_JOINER_LAST_ERROR : FF_JOINER_CXX;
}

static struct step step_cxx(const struct ff_joiner *j, struct ff_str text)
{
	bool frame;
	if (ff_record_is_blank(text)) {
		return hold(j);
	}
	bool announced = j->at.state == FF_JOINER_LAST_ERROR && !ff_record_is_entry(text);
	if (!ff_record_is_cxx(text, &frame) && !announced) {
		return no();
	}
	return take(j, text, frame ? FF_LINE_FRAME : FF_LINE_TEXT, cxx_state(text, frame));
}

/* Lines of other drivers between, or the next kill, end it. */
static struct step step_oom(const struct ff_joiner *j, struct ff_str text)
{
	enum ff_oom_line line = ff_record_oom(text);
	bool killed = j->at.state == FF_JOINER_KILLED;
	if (line == FF_OOM_NONE || line == FF_OOM_ASKED || (killed && line == FF_OOM_DUMP)) {
		return no();
	}
	bool ends = killed || line == FF_OOM_KILLED;
	return take(j, text, FF_LINE_TEXT, ends ? FF_JOINER_KILLED : FF_JOINER_OOM);
}

static struct step step_signal(const struct ff_joiner *j, struct ff_str text)
{
	bool frame;
	if (!ff_record_is_signal(text, &frame)) {
		return no();
	}
	return take(j, text, frame ? FF_LINE_FRAME : FF_LINE_TEXT, FF_JOINER_SIGNAL);
}

/* SOURCES.md torch-elastic-errors: the title says FAILED; up to torch 1.9 the borders are of * and
 * = parts them. */
static struct step step_border(const struct ff_joiner *j, struct ff_str text)
{
	if (!ff_str_ends(ff_str_trim(text), FF_STR(" FAILED"))) {
		return no();
	}
	struct step s = take(j, text, FF_LINE_TEXT, FF_JOINER_TABLE);
	s.kind_known = true;
	s.kind = FF_RECORD_TABLE;
	return s;
}

static struct step step_table(const struct ff_joiner *j, struct ff_str text)
{
	static const char *const titles[] = {"Failures:", "Other Failures:", "Root Cause"};
	struct ff_frame frame;
	struct ff_header h;
	char border = ff_record_border(text);
	if (border) {
		return take(j, text, FF_LINE_BLANK,
			border == j->at.border ? FF_JOINER_DONE : FF_JOINER_TABLE);
	}
	if (ff_record_is_blank(text)) {
		return take(j, text, FF_LINE_BLANK, FF_JOINER_TABLE);
	}
	if (ff_record_is_row(text)) {
		return take(j, text, FF_LINE_TEXT, FF_JOINER_TABLE);
	}
	if (ff_str_starts(text, FF_STR("  "))) {
		struct ff_str inner = ff_str_skip(text, 2);
		enum ff_line_role role = ff_record_frame(inner, &frame) ? FF_LINE_FRAME
			: ff_record_header(inner, &h)                   ? FF_LINE_HEADER
			: ff_str_starts(inner, FF_STR("  "))            ? FF_LINE_SOURCE
									: FF_LINE_TEXT;
		return take(j, text, role, FF_JOINER_TABLE);
	}
	bool title = text.p[0] == '[';
	for (size_t i = 0; i < sizeof titles / sizeof titles[0]; i++) {
		title = title || ff_str_starts(text, ff_str_z(titles[i]));
	}
	return title ? take(j, text, FF_LINE_TEXT, FF_JOINER_TABLE) : no();
}

/* A launcher's message goes to the border behind it; what other processes print in between looks as
 * it likes, so it is not followed far. */
static struct step step_box(const struct ff_joiner *j, struct ff_str text)
{
	if (ff_record_border(text)) {
		return take(j, text, FF_LINE_BLANK, FF_JOINER_DONE);
	}
	if (ff_record_is_blank(text)) {
		return hold(j);
	}
	if (ff_record_is_entry(text) || j->at.loose >= BOX_MOST) {
		return no();
	}
	struct step s = take(j, text, FF_LINE_TEXT, FF_JOINER_BOX);
	s.at.loose++;
	return s;
}

static struct step step_result(const struct ff_joiner *j, struct ff_str text)
{
	return ff_record_is_result(text) ? take(j, text, FF_LINE_TEXT, FF_JOINER_RESULT) : no();
}

/* ---- margins: what stands before each line of a traceback */

/* Bytes of text that look like the margin, any digits for digits; -1 if it does not begin so. */
static ptrdiff_t margin_of(const struct ff_joiner *j, struct ff_str text)
{
	size_t i = 0, k = 0;
	while (k < j->at.margin_len) {
		if (i >= text.n) {
			return -1;
		}
		if (is_digit(j->margin[k])) {
			if (!is_digit(text.p[i])) {
				return -1;
			}
			for (; k < j->at.margin_len && is_digit(j->margin[k]); k++) {
			}
			for (; i < text.n && is_digit(text.p[i]); i++) {
			}
		} else if (text.p[i++] != j->margin[k++]) {
			return -1;
		}
	}
	return (ptrdiff_t)i;
}

/* Takes off what stands before each line; false if it is missing: the line is not ours. */
static bool take_margin(const struct ff_joiner *j, struct ff_joiner_place *at, struct offer *o)
{
	if (at->margin_len && (at->repeats || at->undecided)) {
		ptrdiff_t n = margin_of(j, o->text);
		if (n < 0 && at->repeats) {
			return false;
		}
		at->undecided = false;
		at->repeats = n >= 0;
		o->text = ff_str_skip(o->text, n >= 0 ? (size_t)n : 0);
	}
	if (!at->indent || ff_record_is_blank(o->text)) {
		return true;
	}
	for (size_t i = 0; i < at->indent; i++) {
		if (i >= o->text.n || o->text.p[i] != ' ') {
			return false;
		}
	}
	o->text = ff_str_skip(o->text, at->indent);
	return true;
}

static struct step step_in_state(const struct ff_joiner *j, const struct offer *o)
{
	switch (j->at.state) {
	case FF_JOINER_INTRO: return step_intro(j, o->text);
	case FF_JOINER_FRAMES: return step_frames(j, o);
	case FF_JOINER_MESSAGE: return step_message(j, o);
	case FF_JOINER_LINK: return step_link(j, o->text);
	case FF_JOINER_GROUP: return step_group(j, o->text);
	case FF_JOINER_RICH: return step_rich(j, o->text);
	case FF_JOINER_CELL: return step_cell(j, o->text);
	case FF_JOINER_STACK: return step_stack(j, o->text);
	case FF_JOINER_FAULT: return step_fault(j, o->text);
	case FF_JOINER_OOM:
	case FF_JOINER_KILLED: return step_oom(j, o->text);
	case FF_JOINER_SIGNAL: return step_signal(j, o->text);
	case FF_JOINER_CXX:
	case FF_JOINER_LAST_ERROR: return step_cxx(j, o->text);
	case FF_JOINER_BORDER: return step_border(j, o->text);
	case FF_JOINER_TABLE: return step_table(j, o->text);
	case FF_JOINER_BOX: return step_box(j, o->text);
	case FF_JOINER_RESULT: return step_result(j, o->text);
	case FF_JOINER_DONE: break;
	}
	return no();
}

/* Blank lines that are held count as taken: the record has them once it goes on. */
static bool is_full(const struct ff_joiner *j, size_t n)
{
	return j->rec.nlines + j->nheld >= FF_RECORD_LINES ||
		j->rec.text.len + j->nheld + n + 1 > FF_RECORD_BYTES;
}

static struct step step(const struct ff_joiner *j, struct offer o)
{
	struct ff_joiner_place at = j->at;
	if (!take_margin(j, &at, &o)) {
		return no();
	}
	struct step s = step_in_state(j, &o);
	if (s.what != STEP_NO && is_full(j, o.text.n)) {
		s.what = STEP_FULL;
	}
	if (at.margin_len && s.what == STEP_TAKE) {
		s.at.undecided = at.undecided;
		s.at.repeats = at.repeats;
	}
	return s;
}

/* torch's hook puts "[rank3]: " before each line that is not empty (torch-excepthook). */
static struct offer make_offer(
	const struct ff_line *line, struct ff_str text, struct ff_buf *plain, struct ff_buf *buf)
{
	size_t before = text.p >= line->text.p ? (size_t)(text.p - line->text.p) : 0;
	bool hooked = before >= 3 && before <= line->text.n &&
		!memcmp(line->text.p + before - 3, "]: ", 3);
	return (struct offer){ff_record_plain(text, plain), hooked, buf};
}

bool ff_joiner_takes(const struct ff_joiner *j, const struct ff_line *line, struct ff_str text)
{
	if (!j->open) {
		return false;
	}
	struct ff_buf plain = {0}, buf = {0};
	struct step s = step(j, make_offer(line, text, &plain, &buf));
	ff_buf_finish(&plain);
	ff_buf_finish(&buf);
	return s.what == STEP_TAKE || s.what == STEP_HOLD;
}

static void note_low(struct ff_joiner *j, const struct ff_line *line)
{
	if (line->offset < j->low) {
		j->low = line->offset;
		j->low_number = line->number;
	}
}

static void apply(struct ff_joiner *j, const struct ff_line *line, const struct step *s)
{
	if (s->what == STEP_HOLD) {
		j->held[j->nheld] = *line;
		j->held[j->nheld].text = FF_STR("");
		j->nheld++;
		return;
	}
	for (unsigned i = 0; i < j->nheld; i++) {
		ff_record_add(&j->rec, &j->held[i], j->held[i].text, FF_LINE_BLANK);
	}
	j->nheld = 0;
	ff_record_add(&j->rec, line, s->text, s->role);
	j->at = s->at;
	j->rec.handled = (j->rec.handled || s->handled) && !s->not_handled;
	j->rec.quoted = j->rec.quoted || s->quoted;
	j->rec.mixed = j->rec.mixed || s->mixed;
	j->rec.copies = s->copies ? s->copies : j->rec.copies;
	if (s->kind_known) {
		j->rec.kind = s->kind;
	}
	j->last = line->end;
	note_low(j, line);
}

static void set_margin(struct ff_joiner *j, struct ff_str margin)
{
	if (margin.n <= FF_JOINER_MARGIN) {
		memcpy(j->margin, margin.p, margin.n);
		j->at.margin_len = (unsigned)margin.n;
		j->at.undecided = margin.n > 0;
	}
}

static void open_box(struct ff_joiner *j, size_t margin, struct ff_str text)
{
	bool result = ff_str_ends(ff_str_trim(text), FF_STR("Result:"));
	j->at.state = result ? FF_JOINER_RESULT : FF_JOINER_BOX;
	set_margin(j, (struct ff_str){text.p, margin});
}

/* What stays of the line that opens a record, and what the record then expects. */
static struct ff_str open_header(struct ff_joiner *j, const struct ff_header *h, struct ff_str text)
{
	j->at.state = header_state(h);
	if (ff_record_is_blank(h->before)) {
		j->at.indent = h->group ? 0 : (unsigned)h->before.n;
		j->rec.quoted = j->rec.quoted || j->at.indent > 0;
	} else if (ff_record_is_row(h->before)) {
		j->at.indent = 2;
		j->rec.quoted = true;
	} else {
		set_margin(j, h->before);
		struct ff_opening glued;
		bool log = ff_record_opening(h->before, &glued) && glued.intro == FF_INTRO_LOG;
		j->at.intro = log ? FF_INTRO_LOG : FF_INTRO_NONE;
	}
	return ff_str_skip(text, h->before.n);
}

/* The file's text is many lines in one: they all stand where that one stands. */
static bool open_error_file(struct ff_joiner *j, const struct ff_line *line, struct ff_str text)
{
	struct ff_buf all = {0};
	struct ff_header h;
	int64_t seconds;
	if (!ff_record_error_file(text, &all, &seconds)) {
		ff_buf_finish(&all);
		return false;
	}
	j->rec.kind = FF_RECORD_LINE;
	struct ff_str rest = ff_buf_str(&all);
	while (rest.n) {
		ptrdiff_t lf = ff_str_chr(rest, '\n', 0);
		struct ff_str row = {rest.p, lf < 0 ? rest.n : (size_t)lf};
		rest = ff_str_skip(rest, row.n + (lf >= 0));
		struct offer o = {row, false, NULL};
		struct ff_buf buf = {0};
		o.buf = &buf;
		struct step s = j->rec.nlines ? step(j, o) : no();
		if (!j->rec.nlines && ff_record_header(row, &h)) {
			s = take_header(j, &h, row);
		} else if (s.what == STEP_NO) {
			s = take(j, row, FF_LINE_TEXT, FF_JOINER_MESSAGE);
		}
		if (s.what != STEP_FULL) {
			apply(j, line, &s);
		}
		ff_buf_finish(&buf);
	}
	ff_buf_finish(&all);
	j->at.state = FF_JOINER_DONE;
	if (seconds > 0 && seconds < FF_TIME_LAST / FF_SECOND) {
		j->rec.claimed = (struct ff_claimed){
			.us = seconds * FF_SECOND,
			.grain = FF_SECOND,
			.has_year = true,
			.has_zone = true,
		};
	}
	return j->rec.nlines > 0;
}

static bool open_record(struct ff_joiner *j, const struct ff_line *line, struct ff_str text)
{
	struct ff_opening o;
	if (text.n > FF_RECORD_BYTES || !ff_record_opening(text, &o)) {
		return false;
	}
	ff_joiner_clear(j);
	if (o.is_error_file) {
		j->open = open_error_file(j, line, text);
		j->first = line->offset;
		j->last = line->end;
		return j->open;
	}
	enum ff_line_role role = FF_LINE_TEXT;
	struct ff_str one;
	if (o.is_header && o.header.before.n && ff_record_glued(text, &one) &&
		ff_record_header(one, &o.header)) {
		text = one;
		j->at.heads = 1;
		j->rec.mixed = true;
	}
	j->at.intro = o.intro;
	j->rec.kind = o.intro ? FF_RECORD_LINE : o.kind;
	if (o.is_header) {
		text = open_header(j, &o.header, text);
		role = FF_LINE_HEADER;
	} else if (o.is_frame) {
		/* A frame without a header was cut off by another process's lines; a SyntaxError's
		 * place never had one. */
		j->at.state = FF_JOINER_FRAMES;
		j->at.framed = true;
		j->rec.mixed = o.has_func;
		role = FF_LINE_FRAME;
	} else if (o.intro) {
		j->at.state = FF_JOINER_INTRO;
	} else if (o.kind == FF_RECORD_FAULTHANDLER) {
		j->at.state = FF_JOINER_FAULT;
	} else if (o.kind == FF_RECORD_KERNEL) {
		j->at.state = FF_JOINER_OOM;
		set_margin(j, (struct ff_str){text.p, o.margin});
		text = ff_str_skip(text, o.margin);
	} else if (o.is_signal) {
		j->at.state = FF_JOINER_SIGNAL;
		set_margin(j, (struct ff_str){text.p, o.margin});
	} else if (o.kind == FF_RECORD_BOX) {
		open_box(j, o.margin, text);
	} else if (o.kind == FF_RECORD_TABLE) {
		j->at.state = FF_JOINER_BORDER;
		j->at.border = ff_record_border(text);
		j->rec.kind = FF_RECORD_LINE;
		role = FF_LINE_BLANK;
	} else {
		j->at.state = cxx_state(text, false);
	}
	ff_record_add(&j->rec, line, text, role);
	j->open = true;
	j->first = j->low = line->offset;
	j->low_number = line->number;
	j->last = line->end;
	return true;
}

enum ff_join ff_joiner_feed(
	struct ff_joiner *j, const struct ff_line *line, struct ff_str text, bool *ret_closed)
{
	struct ff_buf plain = {0}, buf = {0};
	struct offer o = make_offer(line, text, &plain, &buf);
	enum ff_join join = FF_JOIN_NONE;
	*ret_closed = false;
	if (j->open) {
		struct step s = step(j, o);
		if (s.what == STEP_NO || s.what == STEP_FULL) {
			j->capped = s.what == STEP_FULL;
			*ret_closed = true;
		} else {
			apply(j, line, &s);
			join = FF_JOIN_TAKEN;
		}
	} else if (open_record(j, line, o.text)) {
		join = FF_JOIN_OPENED;
	}
	ff_buf_finish(&plain);
	ff_buf_finish(&buf);
	return join;
}
