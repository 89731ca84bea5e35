#include "wire/reader.h"

#include "base/limits.h"

struct ff_reader ff_reader_of(struct ff_str s)
{
	const char *p = s.n ? s.p : ""; /* null plus nothing is not for C */
	return (struct ff_reader){p, p + s.n};
}

void ff_reader_blank(struct ff_reader *c)
{
	while (c->p < c->end && (*c->p == ' ' || *c->p == '\t' || *c->p == '\r' || *c->p == '\n')) {
		c->p++;
	}
}

bool ff_reader_take(struct ff_reader *c, char byte)
{
	if (c->p < c->end && *c->p == byte) {
		c->p++;
		return true;
	}
	return false;
}

static int hex_digit(char ch)
{
	if (ch >= '0' && ch <= '9') {
		return ch - '0';
	}
	if (ch >= 'a' && ch <= 'f') {
		return ch - 'a' + 10;
	}
	return ch >= 'A' && ch <= 'F' ? ch - 'A' + 10 : -1;
}

/* The number of \uXXXX at p (behind the u), or -1. */
static int hex4(const char *p, const char *end)
{
	int v = 0;
	if (end - p < 4) {
		return -1;
	}
	for (int i = 0; i < 4; i++) {
		int d = hex_digit(p[i]);
		if (d < 0) {
			return -1;
		}
		v = v * 16 + d;
	}
	return v;
}

/* Behind the opening quote. Control characters in strings are let through: logs have them. */
bool ff_reader_string(struct ff_reader *c, struct ff_value *ret)
{
	const char *start = c->p;
	bool escaped = false;
	while (c->p < c->end && *c->p != '"') {
		if (*c->p++ != '\\') {
			continue;
		}
		escaped = true;
		if (c->p == c->end || !memchr("\"\\/bfnrtu", *c->p, 9)) {
			return false;
		}
		if (*c->p == 'u' && hex4(c->p + 1, c->end) < 0) {
			return false;
		}
		c->p++;
	}
	*ret = (struct ff_value){FF_VALUE_STRING, ff_str_n(start, (size_t)(c->p - start)), escaped};
	return ff_reader_take(c, '"');
}

static size_t digits(struct ff_reader *c)
{
	const char *start = c->p;
	while (c->p < c->end && *c->p >= '0' && *c->p <= '9') {
		c->p++;
	}
	return (size_t)(c->p - start);
}

static bool read_number(struct ff_reader *c, struct ff_value *ret)
{
	const char *start = c->p;
	(void)ff_reader_take(c, '-');
	if (!digits(c)) {
		return false;
	}
	if (ff_reader_take(c, '.') && !digits(c)) {
		return false;
	}
	if (ff_reader_take(c, 'e') || ff_reader_take(c, 'E')) {
		if (!ff_reader_take(c, '+')) {
			(void)ff_reader_take(c, '-');
		}
		if (!digits(c)) {
			return false;
		}
	}
	*ret = (struct ff_value){FF_VALUE_NUMBER, ff_str_n(start, (size_t)(c->p - start)), false};
	return true;
}

static bool read_word(
	struct ff_reader *c, const char *word, enum ff_value_type type, struct ff_value *ret)
{
	size_t n = strlen(word);
	if ((size_t)(c->end - c->p) < n || memcmp(c->p, word, n) != 0) {
		return false;
	}
	*ret = (struct ff_value){type, ff_str_n(c->p, n), false};
	c->p += n;
	return true;
}

/* Before a member or element: 1; at the closing bracket: 0; else -1. */
static int step(struct ff_reader *c, char close, bool *first)
{
	ff_reader_blank(c);
	if (ff_reader_take(c, close)) {
		return 0;
	}
	if (!*first && !ff_reader_take(c, ',')) {
		return -1;
	}
	*first = false;
	ff_reader_blank(c);
	return 1;
}

static bool read_name(struct ff_reader *c, struct ff_value *ret)
{
	if (!ff_reader_take(c, '"') || !ff_reader_string(c, ret)) {
		return false;
	}
	ff_reader_blank(c);
	return ff_reader_take(c, ':');
}

/* Behind the opening bracket; its content is only checked. */
static bool read_nested(struct ff_reader *c, char close, int depth)
{
	struct ff_value v;
	bool first = true, good = depth < FF_JSON_DEPTH;
	while (good) {
		int r = step(c, close, &first);
		if (r <= 0) {
			return r == 0;
		}
		good = (close == ']' || read_name(c, &v)) && ff_reader_value(c, depth + 1, &v);
	}
	return false;
}

bool ff_reader_value(struct ff_reader *c, int depth, struct ff_value *ret)
{
	ff_reader_blank(c);
	if (c->p == c->end) {
		return false;
	}
	const char *start = c->p;
	switch (*c->p) {
	case '"': c->p++; return ff_reader_string(c, ret);
	case 't': return read_word(c, "true", FF_VALUE_TRUE, ret);
	case 'f': return read_word(c, "false", FF_VALUE_FALSE, ret);
	case 'n': return read_word(c, "null", FF_VALUE_NULL, ret);
	case '{':
	case '[': {
		char close = *c->p++ == '{' ? '}' : ']';
		if (!read_nested(c, close, depth)) {
			return false;
		}
		*ret = (struct ff_value){
			FF_VALUE_NESTED, ff_str_n(start, (size_t)(c->p - start)), false};
		return true;
	}
	default: return read_number(c, ret);
	}
}

static void add_utf8(struct ff_buf *b, uint32_t cp)
{
	if (cp < 0x80) {
		ff_buf_addc(b, (char)cp);
	} else if (cp < 0x800) {
		ff_buf_addc(b, (char)(0xc0 | cp >> 6));
		ff_buf_addc(b, (char)(0x80 | (cp & 0x3f)));
	} else if (cp < 0x10000) {
		ff_buf_addc(b, (char)(0xe0 | cp >> 12));
		ff_buf_addc(b, (char)(0x80 | (cp >> 6 & 0x3f)));
		ff_buf_addc(b, (char)(0x80 | (cp & 0x3f)));
	} else {
		ff_buf_addc(b, (char)(0xf0 | cp >> 18));
		ff_buf_addc(b, (char)(0x80 | (cp >> 12 & 0x3f)));
		ff_buf_addc(b, (char)(0x80 | (cp >> 6 & 0x3f)));
		ff_buf_addc(b, (char)(0x80 | (cp & 0x3f)));
	}
}

/* \uXXXX at p (behind the u); returns what stands behind it. A lone \udc80 to \udcff is the byte
 * that Python's surrogateescape made it from, so that offsets are those of the original; any other
 * lone surrogate is U+FFFD. */
static const char *add_escape_u(struct ff_buf *b, const char *p, const char *end)
{
	uint32_t cp = (uint32_t)hex4(p, end);
	p += 4;
	if (cp >= 0xd800 && cp < 0xdc00 && end - p >= 6 && p[0] == '\\' && p[1] == 'u') {
		int low = hex4(p + 2, end);
		if (low >= 0xdc00 && low < 0xe000) {
			add_utf8(b, 0x10000 + ((cp - 0xd800) << 10) + ((uint32_t)low - 0xdc00));
			return p + 6;
		}
	}
	if (cp >= 0xdc80 && cp <= 0xdcff) {
		ff_buf_addc(b, (char)(cp - 0xdc00));
	} else {
		add_utf8(b, cp >= 0xd800 && cp < 0xe000 ? 0xfffd : cp);
	}
	return p;
}

/* The string's bytes: in the line itself if nothing is escaped, else in mem, which was given room
 * for the whole line before and so never moves. */
struct ff_str ff_reader_text(struct ff_buf *mem, const struct ff_value *v)
{
	if (!v->escaped) {
		return v->raw;
	}
	size_t start = mem->len;
	const char *p = v->raw.p, *end = p + v->raw.n;
	while (p < end) {
		const char *slash = memchr(p, '\\', (size_t)(end - p));
		ff_buf_add(mem, p, (size_t)((slash ? slash : end) - p));
		if (!slash) {
			break;
		}
		p = slash + 2;
		switch (slash[1]) {
		case 'b': ff_buf_addc(mem, '\b'); break;
		case 'f': ff_buf_addc(mem, '\f'); break;
		case 'n': ff_buf_addc(mem, '\n'); break;
		case 'r': ff_buf_addc(mem, '\r'); break;
		case 't': ff_buf_addc(mem, '\t'); break;
		case 'u': p = add_escape_u(mem, p, end); break;
		default: ff_buf_addc(mem, slash[1]); break;
		}
	}
	return ff_str_n(mem->p + start, mem->len - start);
}

int ff_reader_name(struct ff_reader *c, bool *first, struct ff_value *ret_name)
{
	int r = step(c, '}', first);
	return r == 1 && !read_name(c, ret_name) ? -1 : r;
}

int ff_reader_member(
	struct ff_reader *c, bool *first, struct ff_value *ret_name, struct ff_value *ret_value)
{
	int r = ff_reader_name(c, first, ret_name);
	return r == 1 && !ff_reader_value(c, 1, ret_value) ? -1 : r;
}

int ff_reader_item(struct ff_reader *c, bool *first)
{
	return step(c, ']', first);
}
