#include "core/report_own.h"

/* Length of the UTF-8 sequence at p, with its code point in *ret; 0: none. */
static size_t decode(const unsigned char *p, size_t n, uint32_t *ret)
{
	uint32_t c;
	size_t len;
	if (p[0] < 0x80) {
		*ret = p[0];
		return 1;
	}
	if (p[0] >= 0xc2 && p[0] <= 0xdf) {
		len = 2;
		c = p[0] & 0x1fu;
	} else if (p[0] >= 0xe0 && p[0] <= 0xef) {
		len = 3;
		c = p[0] & 0x0fu;
	} else if (p[0] >= 0xf0 && p[0] <= 0xf4) {
		len = 4;
		c = p[0] & 0x07u;
	} else {
		return 0;
	}
	for (size_t i = 1; i < len; i++) {
		if (i >= n || (p[i] & 0xc0) != 0x80) {
			return 0;
		}
		c = c << 6 | (p[i] & 0x3fu);
	}
	bool too_long = (len == 3 && c < 0x800) || (len == 4 && (c < 0x10000 || c > 0x10ffff));
	bool surrogate = c >= 0xd800 && c <= 0xdfff;
	*ret = c;
	return too_long || surrogate ? 0 : len;
}

/* Controls, marks that turn the reading direction, what has no form of its own, and line
 * separators: none of them reaches a terminal. */
static bool is_hidden(uint32_t c)
{
	return c < 0x20 || (c >= 0x7f && c < 0xa0) || c == 0xad || c == 0x61c ||
		(c >= 0x200b && c <= 0x200f) || (c >= 0x2028 && c <= 0x202e) ||
		(c >= 0x2060 && c <= 0x206f) || c == 0xfeff || (c >= 0xfff9 && c <= 0xfffb) ||
		(c >= 0xe0000 && c <= 0xe0fff);
}

/* Columns of a character: two where a terminal may take two (East Asian scripts, emoji). A mark
 * that takes none counts as one: a line is never longer than counted. */
static unsigned columns_of(uint32_t c)
{
	static const struct {
		uint32_t from, to;
	} wide[] = {
		{0x1100, 0x115f},
		{0x231a, 0x23f3},
		{0x2329, 0x232a},
		{0x25fd, 0x27bf},
		{0x2b1b, 0x2b55},
		{0x2e80, 0xa4cf},
		{0xa960, 0xa97c},
		{0xac00, 0xd7a3},
		{0xf900, 0xfaff},
		{0xfe10, 0xfe6f},
		{0xff00, 0xff60},
		{0xffe0, 0xffe6},
		{0x16fe0, 0x1b2ff},
		{0x1d300, 0x1d37f},
		{0x1f000, 0x1faff},
		{0x20000, 0x3fffd},
	};
	for (size_t i = 0; i < sizeof wide / sizeof wide[0] && c >= wide[i].from; i++) {
		if (c <= wide[i].to) {
			return 2;
		}
	}
	return 1;
}

/* The next piece that is shown as one: its bytes; *cols, and whether it has to be escaped. */
static size_t next_piece(struct ff_str s, unsigned *cols, bool *escape)
{
	uint32_t c = 0;
	size_t len = decode((const unsigned char *)s.p, s.n, &c);
	*escape = !len || (is_hidden(c) && c != '\t');
	*cols = !*escape ? columns_of(c) : len ? 4 * (unsigned)len : 4;
	return len ? len : 1;
}

unsigned ff_report_put(struct ff_buf *out, struct ff_str s, unsigned room)
{
	unsigned used = 0;
	size_t mark = out->len; /* where ".." can begin: two columns before the end of the room */
	unsigned mark_used = 0;
	while (s.n) {
		unsigned cols;
		bool escape;
		size_t len = next_piece(s, &cols, &escape);
		if (used + cols > room) {
			if (room >= 2) {
				out->len = mark;
				ff_buf_addz(out, "..");
				used = mark_used + 2;
			}
			return used;
		}
		for (size_t i = 0; escape && i < len; i++) {
			ff_buf_addf(out, "\\x%02x", (unsigned char)s.p[i]);
		}
		if (!escape && s.p[0] == '\t') {
			ff_buf_addc(out, ' ');
		} else if (!escape) {
			ff_buf_add(out, s.p, len);
		}
		s = ff_str_skip(s, len);
		used += cols;
		if (used + 2 <= room) {
			mark = out->len;
			mark_used = used;
		}
	}
	return used;
}

size_t ff_report_break(struct ff_str s, unsigned room)
{
	size_t at = 0, blank = 0;
	unsigned used = 0;
	while (at < s.n) {
		unsigned cols;
		bool escape;
		size_t len = next_piece(ff_str_skip(s, at), &cols, &escape);
		if (used + cols > room) {
			break;
		}
		used += cols;
		at += len;
		if (used > room / 2 && (at == s.n || s.p[at] == ' ')) {
			blank = at;
		}
	}
	if (at == s.n) {
		return at;
	}
	return blank ? blank : at ? at : 1;
}

void ff_report_ranges(struct ff_buf *b, const int32_t *ranks, size_t n, size_t parts)
{
	size_t part = 0;
	for (size_t i = 0; i < n;) {
		size_t j = i;
		if (parts && part++ == parts) {
			ff_buf_addz(b, ",...");
			return;
		}
		while (j + 1 < n && ranks[j + 1] == ranks[j] + 1) {
			j++;
		}
		ff_buf_addf(b, "%s%d", i ? "," : "", (int)ranks[i]);
		if (j > i) {
			ff_buf_addf(b, "-%d", (int)ranks[j]);
		}
		i = j + 1;
	}
}
