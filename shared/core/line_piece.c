#include "core/line_piece.h"

#define PIECES_MAX 64u  /* of one line: what is behind the last stays with it */
#define PART_KEEP 4096u /* bytes of memory that stay between parts */

/* ---- parts of a container runtime's lines */

/* Is it one? *ret_fd, and where the text begins; *ret_partial: more of it comes. */
static bool is_part(struct ff_str s, int *ret_fd, size_t *ret_text, bool *ret_partial)
{
	/* Cheap for all other lines: a date, T, and a blank behind the time. */
	if (s.n < 28 || s.p[4] != '-' || s.p[10] != 'T' || s.p[13] != ':') {
		return false;
	}
	ptrdiff_t blank = ff_str_chr((struct ff_str){s.p, 40 < s.n ? 40 : s.n}, ' ', 19);
	struct ff_str rest = ff_str_skip(s, (size_t)(blank + 1));
	bool err = blank > 0 && ff_str_starts(rest, FF_STR("stderr "));
	if (!err && !(blank > 0 && ff_str_starts(rest, FF_STR("stdout ")))) {
		return false;
	}
	struct ff_entry e;
	char mark = rest.n > 7 ? rest.p[7] : '\0';
	ff_line_entry((struct ff_str){s.p, s.n < 96 ? s.n : 96}, &e);
	if ((mark != 'P' && mark != 'F') || !e.stamp.n || e.stamp.p != s.p) {
		return false;
	}
	ptrdiff_t end = ff_str_chr(s, ' ', (size_t)blank + 8);
	*ret_fd = err;
	*ret_text = end < 0 ? s.n : (size_t)end + 1;
	*ret_partial = mark == 'P';
	return true;
}

void ff_parts_finish(struct ff_parts *p)
{
	for (size_t i = 0; i < 2; i++) {
		ff_buf_finish(&p->fd[i].text);
		p->fd[i].open = false;
	}
}

const struct ff_part *ff_parts_oldest(const struct ff_parts *p)
{
	const struct ff_part *a = &p->fd[0], *b = &p->fd[1];
	if (a->open && b->open) {
		return a->line.offset < b->line.offset ? a : b;
	}
	return a->open ? a : b->open ? b : NULL;
}

/* The part's line as it stands goes out; it ends where `end` says. */
static void hand_out(struct ff_part *part, uint64_t end, bool cut, ff_line_fn *fn, void *ud)
{
	struct ff_line line = part->line;
	line.text = ff_buf_str(&part->text);
	line.end = end;
	line.between = end - line.offset - part->own;
	line.cut = cut;
	part->open = false;
	fn(ud, &line);
	ff_buf_clear(&part->text);
	if (part->text.cap > PART_KEEP) {
		ff_buf_finish(&part->text);
	}
}

static void open_part(struct ff_part *part, const struct ff_line *line)
{
	ff_buf_clear(&part->text);
	part->open = true;
	part->line = *line;
	part->line.text = (struct ff_str){NULL, 0};
	part->own = 0;
}

/* Oldest first: what is too far back to wait for, seen from pos. */
static void close_far(struct ff_parts *p, uint64_t pos, uint64_t end, ff_line_fn *fn, void *ud)
{
	const struct ff_part *old;
	while ((old = ff_parts_oldest(p)) && old->line.offset + FF_PART_SPAN < pos) {
		hand_out(&p->fd[old == &p->fd[1]], end, false, fn, ud);
	}
}

void ff_parts_take(struct ff_parts *p, const struct ff_line *line, ff_line_fn *fn, void *ud)
{
	int fd;
	size_t at;
	bool partial;
	close_far(p, line->offset, line->end, fn, ud);
	if (!is_part(line->text, &fd, &at, &partial) || (!partial && !p->fd[fd].open)) {
		fn(ud, line);
		return;
	}
	struct ff_part *part = &p->fd[fd];
	if (part->open && part->text.len + line->text.n - at > FF_LINE_MAX) {
		hand_out(part, line->end, true, fn, ud);
	}
	if (!part->open) {
		open_part(part, line);
		at = 0;
	}
	ff_buf_adds(&part->text, ff_str_skip(line->text, at));
	part->own += line->end - line->offset;
	if (!partial) {
		hand_out(part, line->end, line->cut, fn, ud);
	}
}

void ff_parts_end(struct ff_parts *p, uint64_t end, ff_line_fn *fn, void *ud)
{
	const struct ff_part *old;
	while ((old = ff_parts_oldest(p))) {
		hand_out(&p->fd[old == &p->fd[1]], end, false, fn, ud);
	}
}

/* ---- pieces of glued lines */

static char at(struct ff_str s, size_t i)
{
	return i < s.n ? s.p[i] : '\0';
}

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

/* What a launcher's tag at the front looks like, so that it is known again in mid-line. */
struct form {
	struct ff_str word;  /* in front of the number: "[default", "[1,", "[" */
	struct ff_str close; /* behind it: "]:", "]<std", "] " */
	bool header_only;    /* counts only right before a traceback's header */
};

static size_t digits_at(struct ff_str s, size_t i)
{
	size_t n = 0;
	while (n < 8 && is_digit(at(s, i + n))) {
		n++;
	}
	return n < 8 ? n : 0;
}

/* The form of the tag that ends the prefixes: `front` is what came off, up to the text. */
static bool form_of(struct ff_str front, const struct ff_entry *e, struct form *ret)
{
	ptrdiff_t open = -1;
	for (size_t i = front.n; i > 0 && open < 0; i--) {
		open = front.p[i - 1] == '[' ? (ptrdiff_t)i - 1 : -1;
	}
	if (open < 0 || (e->tag.kind != FF_TAG_LOCAL && e->tag.kind != FF_TAG_GLOBAL)) {
		return false;
	}
	struct ff_str tag = ff_str_skip(front, (size_t)open);
	size_t i = 1;
	while (i < tag.n && tag.p[i] != ']') {
		i++;
	}
	size_t number = i;
	while (number > 1 && is_digit(tag.p[number - 1])) {
		number--;
	}
	if (number == i) {
		return false;
	}
	*ret = (struct form){.word = {tag.p, number}};
	struct ff_str rest = ff_str_skip(tag, i);
	if (ff_str_starts(rest, FF_STR("]<std"))) {
		ret->close = (struct ff_str){rest.p, 5};
	} else if (e->tag.kind == FF_TAG_LOCAL && ff_str_eq(rest, FF_STR("]:"))) {
		ret->close = rest;
	} else if (number == 1 && ff_str_eq(rest, FF_STR("] "))) {
		ret->close = rest;
		ret->header_only = true;
	} else {
		return false;
	}
	return true;
}

static bool is_header(struct ff_str s, size_t i)
{
	return ff_str_starts(ff_str_skip(s, i), FF_STR("Traceback (most recent call last):"));
}

/* The word at or behind `from`; its place, or -1. It begins with a bracket, and few bytes of a log
 * are one: looked for by that alone. */
static ptrdiff_t find_word(struct ff_str s, struct ff_str word, size_t from)
{
	ptrdiff_t i = ff_str_chr(s, '[', from);
	while (i >= 0 && !ff_str_starts(ff_str_skip(s, (size_t)i), word)) {
		i = ff_str_chr(s, '[', (size_t)i + 1);
	}
	return i;
}

/* The form's tag at or behind `from`; its place, or -1. */
static ptrdiff_t find_form(struct ff_str s, const struct form *f, size_t from)
{
	for (ptrdiff_t i = find_word(s, f->word, from); i >= 0;
		i = find_word(s, f->word, (size_t)i + 1)) {
		size_t j = (size_t)i + f->word.n;
		size_t n = digits_at(s, j);
		bool good = n && ff_str_starts(ff_str_skip(s, j + n), f->close);
		if (good && (!f->header_only || is_header(s, j + n + f->close.n))) {
			return i;
		}
	}
	return -1;
}

/* `half a line[rank3]: Traceback ...` or `...[rank3]:[E1130 ...`: torch's own tags, glued to what
 * stood there. Behind a blank, a quote or a bracket somebody quotes them. */
static ptrdiff_t find_torch(struct ff_str s, size_t from)
{
	static const struct ff_str word = {"[rank", 5};
	for (ptrdiff_t i = find_word(s, word, from); i >= 0;
		i = find_word(s, word, (size_t)i + 1)) {
		size_t j = (size_t)i + word.n;
		size_t n = digits_at(s, j);
		struct ff_str rest = ff_str_skip(s, j + n);
		bool c10 = ff_str_starts(rest, FF_STR("]:[")) && at(rest, 3) &&
			strchr("EWIF", at(rest, 3)) &&
			(is_digit(at(rest, 4)) || at(rest, 4) == ' ');
		bool hook = ff_str_starts(rest, FF_STR("]: ")) && is_header(rest, 3);
		if (n && i > 0 && (c10 || hook) && !strchr(" \t'\"`([<", s.p[i - 1])) {
			return i;
		}
	}
	return -1;
}

/* A line on its way through its pieces. Both places are looked for once for each byte. */
struct cutter {
	const struct ff_line *line;
	struct ff_buf *buf;
	const struct form *form; /* NULL: the front has none */
	ptrdiff_t torch, again;  /* the next of torch's tags, of the form's; -1 none */
	size_t from;             /* of the piece */
	struct ff_str tag;       /* the form's tag in front of it */
	bool joined;             /* its text is in buf */
};

/* Where the next piece begins, at or behind `from`; the line's end if there is none. */
static size_t next_piece(struct cutter *c, size_t from)
{
	struct ff_str s = c->line->text;
	if (c->torch >= 0 && (size_t)c->torch < from) {
		c->torch = find_torch(s, from);
	}
	if (c->again >= 0 && (size_t)c->again < from) {
		c->again = find_form(s, c->form, from);
	}
	ptrdiff_t first = c->torch;
	if (first < 0 || (c->again >= 0 && c->again < first)) {
		first = c->again;
	}
	return first < 0 ? s.n : (size_t)first;
}

/* The form's tag at i with the letter that tells stdout from stderr; empty if there is none. */
static struct ff_str tag_at(const struct cutter *c, size_t i)
{
	struct ff_str s = ff_str_skip(c->line->text, i);
	if (!c->form || !ff_str_starts(s, c->form->word)) {
		return (struct ff_str){s.p, 0};
	}
	size_t n = c->form->word.n;
	n += digits_at(s, n) + c->form->close.n;
	bool fd = c->form->close.n == 5;
	return (struct ff_str){s.p, n + fd < s.n ? n + fd : s.n};
}

static void put_piece(const struct cutter *c, size_t to, ff_piece_fn *fn, void *ud)
{
	bool last = to == c->line->text.n;
	struct ff_line piece = *c->line;
	piece.text = c->joined ? ff_buf_str(c->buf)
			       : (struct ff_str){c->line->text.p + c->from, to - c->from};
	piece.offset += c->from;
	piece.end = last ? c->line->end : c->line->offset + to;
	piece.cut = last && c->line->cut;
	piece.unfinished = last && c->line->unfinished;
	struct ff_entry e;
	ff_line_entry(piece.text, &e);
	fn(ud, &piece, &e);
}

/* The piece at `at` is the rest of the one before it. */
static void join_piece(struct cutter *c, size_t at, size_t text, size_t to)
{
	const char *p = c->line->text.p;
	if (!c->joined) {
		ff_buf_clear(c->buf);
		ff_buf_add(c->buf, p + c->from, at - c->from);
		c->joined = true;
	}
	ff_buf_add(c->buf, p + text, to - text);
}

static void cut(struct cutter *c, size_t at, ff_piece_fn *fn, void *ud)
{
	struct ff_str s = c->line->text;
	for (unsigned i = 0; at < s.n && i < PIECES_MAX; i++) {
		struct ff_entry e;
		ff_line_entry(ff_str_skip(s, at), &e);
		size_t text = (size_t)(e.text.p - s.p);
		struct ff_str tag = tag_at(c, at);
		bool same = tag.n && ff_str_eq(tag, c->tag) && (ptrdiff_t)at != c->torch;
		size_t to = next_piece(c, text > at ? text : at + 1);
		if (same && !is_header(s, text)) {
			join_piece(c, at, text, to);
		} else {
			put_piece(c, at, fn, ud);
			c->joined = false;
			c->from = at;
			c->tag = tag;
		}
		at = to;
	}
	if (c->joined && at < s.n) { /* too many: what is left is text */
		ff_buf_add(c->buf, s.p + at, s.n - at);
	}
	put_piece(c, s.n, fn, ud);
}

void ff_line_pieces(const struct ff_line *line, struct ff_buf *buf, ff_piece_fn *fn, void *ud)
{
	struct ff_str s = line->text;
	struct ff_entry e;
	struct form form;
	ff_line_entry(s, &e);
	/* A line that was put together from parts is one. */
	if (line->between || s.n < 2 || !memchr(s.p + 1, '[', s.n - 1)) {
		fn(ud, line, &e);
		return;
	}
	size_t front = (size_t)(e.text.p - s.p);
	bool has_form = form_of((struct ff_str){s.p, front}, &e, &form);
	struct cutter c = {.line = line, .buf = buf, .form = has_form ? &form : NULL};
	c.torch = find_torch(s, front + 1);
	c.again = has_form ? find_form(s, &form, front + 1) : -1;
	size_t at = next_piece(&c, front + 1);
	if (at >= s.n) {
		fn(ud, line, &e);
		return;
	}
	c.tag = has_form ? tag_at(&c, (size_t)(form.word.p - s.p)) : (struct ff_str){s.p, 0};
	cut(&c, at, fn, ud);
}
