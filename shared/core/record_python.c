#include "core/record_own.h"

#define TRACEBACK "Traceback (most recent call last):"

/* ---- tracebacks (SOURCES.md cpython-traceback) */

/* What may stand behind a header: nothing, "(RANK 3)" of distributed checkpoint
 * (SOURCES.md real-runs), Ray's "[repeated 3x across cluster]". */
static bool header_tail(struct ff_str tail, struct ff_str *ret_ranks)
{
	tail = ff_str_trim(tail);
	*ret_ranks = FF_STR("");
	if (!tail.n || (starts(tail, "[repeated ") && at(tail, tail.n - 1) == ']')) {
		return true;
	}
	if (!starts(tail, "(RANK ")) {
		return false;
	}
	struct ff_str rest = ff_str_skip(tail, 6);
	int64_t rank;
	size_t n = ff_str_digits(rest, &rank);
	*ret_ranks = (struct ff_str){rest.p, n};
	return n && ff_str_eq(ff_str_skip(rest, n), FF_STR(")"));
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

/* ---- rich and IPython (SOURCES.md rich-ipython) */

#define ODD_TRACEBACK "Traceback (most recent call last)"

/* Bytes of a box's corner, bar or arrow at the front, of the drawn or the ASCII form. */
static size_t corner(struct ff_str s, const char *drawn, const char *ascii)
{
	return starts(s, drawn) ? strlen(drawn) : starts(s, ascii) ? strlen(ascii) : 0;
}

/* A box with this title, or "KeyError     Traceback (most recent call last)". */
static bool odd_header(struct ff_str text, struct ff_header *ret)
{
	struct ff_header h = {.before = {text.p, 0}};
	ptrdiff_t found = ff_str_find(text, FF_STR(ODD_TRACEBACK), 0);
	if (found <= 0) {
		return false;
	}
	struct ff_str end =
		ff_str_trim(ff_str_skip(text, (size_t)found + sizeof ODD_TRACEBACK - 1));
	size_t n = class_len(text);
	if (corner(text, "\u256d\u2500", "+-") && end.n) {
		h.style = FF_STYLE_RICH;
	} else if (n && !end.n && blanks(ff_str_skip(text, n)) == (size_t)found - n &&
		n + 2 <= (size_t)found) {
		h.style = FF_STYLE_CELL;
	} else {
		return false;
	}
	*ret = h;
	return true;
}

bool ff_record_boxed(struct ff_str text, struct ff_str *ret)
{
	size_t n = corner(text, "\u2502", "|");
	if (!n) {
		return false;
	}
	struct ff_str inner = ff_str_trim(ff_str_skip(text, n));
	if (ff_str_ends(inner, FF_STR("\u2502"))) {
		inner.n -= 3;
	} else if (ff_str_ends(inner, FF_STR("|"))) {
		inner.n--;
	}
	*ret = ff_str_trim(inner);
	return true;
}

bool ff_record_is_box_end(struct ff_str text)
{
	return corner(text, "\u2570\u2500", "+-") > 0;
}

bool ff_record_marked_source(struct ff_str text, struct ff_str *ret_code, int64_t *ret_line)
{
	size_t n = corner(text, "\u2771", ">");
	while (!n && at(text, n) == '-') {
		size_t dashes = 0;
		while (at(text, dashes) == '-') {
			dashes++;
		}
		n = at(text, dashes) == '>' ? dashes + 1 : 0;
		if (!n) {
			return false;
		}
	}
	struct ff_str rest = ff_str_skip(text, n);
	rest = ff_str_skip(rest, blanks(rest));
	size_t digits = n ? ff_str_digits(rest, ret_line) : 0;
	if (!digits) {
		return false;
	}
	*ret_code = ff_str_trim(ff_str_skip(rest, digits));
	return true;
}

/* The function's name without IPython's arguments. */
static struct ff_str name_of(struct ff_str func)
{
	ptrdiff_t open = ff_str_chr(func, '(', 0);
	return open < 0 ? func : (struct ff_str){func.p, (size_t)open};
}

/* "PATH:88" with " in step", ", in step(x)" or nothing behind it. */
static bool path_and_line(struct ff_str s, struct ff_frame *ret)
{
	for (ptrdiff_t i = ff_str_chr(s, ':', 0); i > 0; i = ff_str_chr(s, ':', (size_t)i + 1)) {
		int64_t line;
		struct ff_str rest = ff_str_skip(s, (size_t)i + 1);
		size_t n = ff_str_digits(rest, &line);
		rest = ff_str_skip(rest, n);
		rest = ff_str_skip(rest, at(rest, 0) == ',');
		bool in = starts(rest, " in ");
		if (n && (in || !rest.n)) {
			*ret = (struct ff_frame){
				.path = {s.p, (size_t)i},
				.line = line,
				.func = in ? name_of(ff_str_skip(rest, 4)) : FF_STR(""),
			};
			return true;
		}
	}
	return false;
}

bool ff_record_odd_frame(struct ff_str text, struct ff_frame *ret)
{
	if (starts(text, "File ") && at(text, 5) != '"') {
		return path_and_line(ff_str_skip(text, 5), ret);
	}
	if (starts(text, "Cell In") || starts(text, "Input In")) {
		ptrdiff_t end = ff_str_chr(text, ']', 0);
		if (end < 0) {
			return false;
		}
		*ret = (struct ff_frame){.path = {text.p, (size_t)end + 1}};
		ptrdiff_t line = ff_str_find(text, FF_STR("line "), (size_t)end);
		if (line >= 0) {
			(void)ff_str_digits(ff_str_skip(text, (size_t)line + 5), &ret->line);
		}
		return true;
	}
	if (path_and_line(text, ret)) {
		return ret->func.n > 0;
	}
	ptrdiff_t in = ff_str_find(text, FF_STR(" in "), 0);
	bool path = at(text, 0) == '/' || at(text, 0) == '<' || at(text, 0) == '~';
	if (in <= 0 || !path) {
		return false;
	}
	*ret = (struct ff_frame){
		.path = {text.p, (size_t)in},
		.func = name_of(ff_str_skip(text, (size_t)in + 4)),
	};
	return true;
}

/* ---- Python itself */

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
		return odd_header(text, ret);
	}
	struct ff_header h = {.before = {text.p, (size_t)found}};
	if (!header_tail(ff_str_skip(text, (size_t)found + word.n), &h.ranks)) {
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
	if (lower || ff_record_level_first(text, false)) {
		return false; /* "srun: error: ..." or "WARNING: text" among the frames */
	}
	*ret_cls = (struct ff_str){text.p, n};
	*ret_msg = n == text.n ? (struct ff_str){text.p + n, 0} : ff_str_skip(rest, 2);
	return true;
}

/* ---- glued lines (SOURCES.md real-runs) */

#define GLUED_MOST 8u

/* Is s some text n times? */
static bool is_fold(struct ff_str s, unsigned n)
{
	return s.n && s.n % n == 0 && !memcmp(s.p, s.p + s.n / n, s.n - s.n / n);
}

unsigned ff_record_glued(struct ff_str text, struct ff_str *ret)
{
	size_t indent = blanks(text);
	struct ff_str line = ff_str_skip(text, indent);
	for (unsigned n = GLUED_MOST; n >= 2; n--) {
		/* Each process writes the indent, then the line: the indents may come first. */
		if (is_fold(text, n)) {
			*ret = (struct ff_str){text.p, text.n / n};
			return n;
		}
		if (indent % n == 0 && is_fold(line, n)) {
			*ret = (struct ff_str){line.p, line.n / n};
			return n;
		}
	}
	return 0;
}

unsigned ff_record_glued_exception(struct ff_str text, struct ff_buf *ret)
{
	ptrdiff_t colon = ff_str_chr(text, ':', 0);
	if (colon <= 0) {
		return 0;
	}
	struct ff_str head = {text.p, (size_t)colon}, rest = ff_str_skip(text, (size_t)colon);
	for (unsigned n = GLUED_MOST; n >= 2; n--) {
		struct ff_str cls = {head.p, head.n / n}, colons = {rest.p, 2 * (size_t)n};
		bool good = is_fold(head, n) && class_len(cls) == cls.n && rest.n >= colons.n &&
			starts(rest, ": ") && is_fold(colons, n);
		if (!good) {
			continue;
		}
		rest = ff_str_skip(rest, colons.n);
		struct ff_str msg = is_fold(rest, n) ? (struct ff_str){rest.p, rest.n / n} : rest;
		ff_buf_clear(ret);
		ff_buf_adds(ret, cls);
		ff_buf_addz(ret, ": ");
		ff_buf_adds(ret, msg);
		return n;
	}
	return 0;
}
