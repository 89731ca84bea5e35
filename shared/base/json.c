#include "base/json.h"

#include "base/limits.h"
#include "base/mem.h"

#include <cjson/cJSON.h>

#include <assert.h>
#include <math.h>
#include <stdlib.h>

#define WHOLE_MAX 9007199254740992.0 /* 2^53: from here on doubles skip whole numbers */

/* ---- writer */

void ff_jw_init(struct ff_jw *w, struct ff_buf *out)
{
	*w = (struct ff_jw){.out = out};
}

/* The comma between values of one array or object. */
static void before_value(struct ff_jw *w)
{
	if (w->after_key) {
		w->after_key = false;
		return;
	}
	if (!w->depth) {
		return;
	}
	uint64_t bit = 1ull << (w->depth - 1);
	if (w->first & bit) {
		w->first &= ~bit;
	} else {
		ff_buf_addc(w->out, ',');
	}
}

void ff_jw_open(struct ff_jw *w, char c)
{
	before_value(w);
	assert(w->depth < FF_JSON_DEPTH);
	ff_buf_addc(w->out, c);
	w->depth++;
	w->first |= 1ull << (w->depth - 1);
}

void ff_jw_close(struct ff_jw *w, char c)
{
	assert(w->depth > 0 && !w->after_key);
	w->depth--;
	ff_buf_addc(w->out, c);
}

void ff_jw_key(struct ff_jw *w, const char *key)
{
	ff_jw_str(w, ff_str_z(key));
	ff_buf_addc(w->out, ':');
	w->after_key = true;
}

static bool is_trail(struct ff_str s, size_t at, unsigned char least, unsigned char most)
{
	return at < s.n && (unsigned char)s.p[at] >= least && (unsigned char)s.p[at] <= most;
}

/* Length of the valid UTF-8 character at s.p[at], 0 if there is none (RFC 3629's table). */
static size_t utf8_len(struct ff_str s, size_t at)
{
	unsigned char c = (unsigned char)s.p[at];
	if (c < 0x80) {
		return 1;
	}
	if (c >= 0xc2 && c <= 0xdf) {
		return is_trail(s, at + 1, 0x80, 0xbf) ? 2 : 0;
	}
	if (c >= 0xe0 && c <= 0xef) {
		unsigned char least = c == 0xe0 ? 0xa0 : 0x80; /* no overlong forms */
		unsigned char most = c == 0xed ? 0x9f : 0xbf;  /* no surrogates */
		return is_trail(s, at + 1, least, most) && is_trail(s, at + 2, 0x80, 0xbf) ? 3 : 0;
	}
	if (c >= 0xf0 && c <= 0xf4) {
		unsigned char least = c == 0xf0 ? 0x90 : 0x80;
		unsigned char most = c == 0xf4 ? 0x8f : 0xbf; /* up to U+10FFFF */
		return is_trail(s, at + 1, least, most) && is_trail(s, at + 2, 0x80, 0xbf) &&
				is_trail(s, at + 3, 0x80, 0xbf)
			? 4
			: 0;
	}
	return 0;
}

static bool is_plain(unsigned char c)
{
	return c >= 0x20 && c < 0x7f && c != '"' && c != '\\';
}

static void add_escaped(struct ff_buf *out, unsigned char c)
{
	switch (c) {
	case '\n': ff_buf_addz(out, "\\n"); return;
	case '\t': ff_buf_addz(out, "\\t"); return;
	case '\r': ff_buf_addz(out, "\\r"); return;
	case '"': ff_buf_addz(out, "\\\""); return;
	case '\\': ff_buf_addz(out, "\\\\"); return;
	default: ff_buf_addf(out, "\\u%04x", c); return;
	}
}

/* The characters that a terminal obeys or that turn the order of a line: U+0080 to U+009F, U+202A
 * to U+202E, U+2066 to U+2069. JSON may be shown as it is. 0: an ordinary one. */
static unsigned obeyed(struct ff_str s, size_t at, size_t n)
{
	unsigned char a = (unsigned char)s.p[at], b = (unsigned char)s.p[at + 1];
	if (n == 2) {
		return a == 0xc2 && b < 0xa0 ? b : 0;
	}
	unsigned char c = n == 3 ? (unsigned char)s.p[at + 2] : 0;
	bool turns = a == 0xe2 && ((b == 0x80 && c >= 0xaa && c <= 0xae) ||
					  (b == 0x81 && c >= 0xa6 && c <= 0xa9));
	return turns ? 0x2000u | (b & 0x3fu) << 6 | (c & 0x3fu) : 0;
}

void ff_jw_str(struct ff_jw *w, struct ff_str s)
{
	before_value(w);
	ff_buf_addc(w->out, '"');
	size_t at = 0;
	while (at < s.n) {
		size_t from = at;
		while (at < s.n && is_plain((unsigned char)s.p[at])) {
			at++;
		}
		if (at > from) {
			ff_buf_add(w->out, s.p + from, at - from);
			continue;
		}
		size_t n = utf8_len(s, at);
		unsigned control = n > 1 ? obeyed(s, at, n) : 0;
		if (control) {
			ff_buf_addf(w->out, "\\u%04x", control);
		} else if (n > 1) {
			ff_buf_add(w->out, s.p + at, n);
		} else if (n == 1) {
			add_escaped(w->out, (unsigned char)s.p[at]);
		} else {
			ff_buf_addz(w->out, "\xef\xbf\xbd");
			n = 1;
		}
		at += n;
	}
	ff_buf_addc(w->out, '"');
}

void ff_jw_strz(struct ff_jw *w, const char *z)
{
	if (z) {
		ff_jw_str(w, ff_str_z(z));
	} else {
		ff_jw_null(w);
	}
}

void ff_jw_int(struct ff_jw *w, int64_t v)
{
	before_value(w);
	ff_buf_addf(w->out, "%lld", (long long)v);
}

void ff_jw_bool(struct ff_jw *w, bool v)
{
	before_value(w);
	ff_buf_addz(w->out, v ? "true" : "false");
}

void ff_jw_null(struct ff_jw *w)
{
	before_value(w);
	ff_buf_addz(w->out, "null");
}

void ff_jw_time(struct ff_jw *w, ff_usec t)
{
	if (t == FF_TIME_NONE) {
		ff_jw_null(w);
		return;
	}
	before_value(w);
	ff_buf_addc(w->out, '"');
	ff_usec_render(w->out, t);
	ff_buf_addc(w->out, '"');
}

void ff_jw_kstr(struct ff_jw *w, const char *key, struct ff_str s)
{
	ff_jw_key(w, key);
	ff_jw_str(w, s);
}

void ff_jw_kstrz(struct ff_jw *w, const char *key, const char *z)
{
	ff_jw_key(w, key);
	ff_jw_strz(w, z);
}

void ff_jw_kint(struct ff_jw *w, const char *key, int64_t v)
{
	ff_jw_key(w, key);
	ff_jw_int(w, v);
}

void ff_jw_kbool(struct ff_jw *w, const char *key, bool v)
{
	ff_jw_key(w, key);
	ff_jw_bool(w, v);
}

void ff_jw_knull(struct ff_jw *w, const char *key)
{
	ff_jw_key(w, key);
	ff_jw_null(w);
}

void ff_jw_ktime(struct ff_jw *w, const char *key, ff_usec t)
{
	ff_jw_key(w, key);
	ff_jw_time(w, t);
}

/* ---- check: cJSON takes more than JSON and cuts strings at NUL, so the text is looked at first */

struct check {
	struct ff_str s;
	size_t at;
	const char *fault; /* what is wrong at `at` */
	unsigned depth;
	uint64_t object; /* bit per depth: an object, else an array */
	bool nul;        /* \u0000 may stand in strings */
	size_t nnul;     /* that did */
};

static bool fail(struct check *c, const char *what)
{
	c->fault = what;
	return false;
}

static int peek(const struct check *c)
{
	return c->at < c->s.n ? (unsigned char)c->s.p[c->at] : -1;
}

static bool is_digit(int c)
{
	return c >= '0' && c <= '9';
}

static void skip_blanks(struct check *c)
{
	while (c->at < c->s.n && c->s.p[c->at] && strchr(" \t\r\n", c->s.p[c->at])) {
		c->at++;
	}
}

/* Value of the four hex digits behind \u, -1 if they aren't. */
static int hex4(const struct check *c, size_t at)
{
	if (at > c->s.n || c->s.n - at < 4) {
		return -1;
	}
	int v = 0;
	for (size_t i = 0; i < 4; i++) {
		char d = c->s.p[at + i];
		if (is_digit(d)) {
			v = v * 16 + (d - '0');
		} else if ((d >= 'a' && d <= 'f') || (d >= 'A' && d <= 'F')) {
			v = v * 16 + ((d | 0x20) - 'a' + 10);
		} else {
			return -1;
		}
	}
	return v;
}

/* At the character behind a backslash. */
static bool check_escape(struct check *c)
{
	int e = peek(c);
	if (e > 0 && strchr("\"\\/bfnrt", e)) {
		c->at++;
		return true;
	}
	int v = e == 'u' ? hex4(c, c->at + 1) : -1;
	if (v < 0) {
		return fail(c, "bad escape in a string");
	}
	if (v == 0 && !c->nul) {
		return fail(c, "NUL in a string");
	}
	c->nnul += v == 0;
	c->at += 5;
	if (v < 0xd800 || v > 0xdfff) {
		return true;
	}
	bool pair = v < 0xdc00 && c->s.n - c->at >= 6 && c->s.p[c->at] == '\\' &&
		c->s.p[c->at + 1] == 'u';
	int low = pair ? hex4(c, c->at + 2) : -1;
	if (low < 0xdc00 || low > 0xdfff) {
		return fail(c, "half of a surrogate pair in a string");
	}
	c->at += 6;
	return true;
}

/* At the opening quote. */
static bool check_string(struct check *c)
{
	c->at++;
	for (;;) {
		int ch = peek(c);
		if (ch < 0) {
			return fail(c, "a string without its end");
		}
		if (ch < 0x20) {
			return fail(c, "control character in a string");
		}
		c->at++;
		if (ch == '"') {
			return true;
		}
		if (ch == '\\' && !check_escape(c)) {
			return false;
		}
	}
}

static bool check_digits(struct check *c)
{
	if (!is_digit(peek(c))) {
		return fail(c, "bad number");
	}
	while (is_digit(peek(c))) {
		c->at++;
	}
	return true;
}

static bool check_number(struct check *c)
{
	size_t from = c->at;
	if (peek(c) == '-') {
		c->at++;
	}
	if (peek(c) == '0') {
		c->at++;
	} else if (!check_digits(c)) {
		return false;
	}
	if (peek(c) == '.') {
		c->at++;
		if (!check_digits(c)) {
			return false;
		}
	}
	if (peek(c) == 'e' || peek(c) == 'E') {
		c->at++;
		if (peek(c) == '+' || peek(c) == '-') {
			c->at++;
		}
		if (!check_digits(c)) {
			return false;
		}
	}
	/* cJSON copies a number into 64 bytes. */
	return c->at - from < 64 || fail(c, "number is too long");
}

static bool check_word(struct check *c, const char *word)
{
	struct ff_str w = ff_str_z(word);
	if (!ff_str_starts(ff_str_skip(c->s, c->at), w)) {
		return fail(c, "no value here");
	}
	c->at += w.n;
	return true;
}

/* A string, number or word. */
static bool check_scalar(struct check *c)
{
	int ch = peek(c);
	if (ch == '"') {
		return check_string(c);
	}
	if (ch == '-' || is_digit(ch)) {
		return check_number(c);
	}
	return check_word(c, ch == 't' ? "true" : ch == 'f' ? "false" : "null");
}

static bool in_object(const struct check *c)
{
	return c->object >> (c->depth - 1) & 1;
}

/* A member's name and colon. */
static bool check_name(struct check *c)
{
	skip_blanks(c);
	if (peek(c) != '"') {
		return fail(c, "a member's name is missing");
	}
	if (!check_string(c)) {
		return false;
	}
	skip_blanks(c);
	if (peek(c) != ':') {
		return fail(c, "a colon is missing");
	}
	c->at++;
	skip_blanks(c);
	return true;
}

/* At { or [: goes in, and over it at once if it is empty (*ret_empty). */
static bool check_open(struct check *c, bool *ret_empty)
{
	bool object = peek(c) == '{';
	if (c->depth == FF_JSON_DEPTH) {
		return fail(c, "nested too deeply");
	}
	c->at++;
	skip_blanks(c);
	*ret_empty = peek(c) == (object ? '}' : ']');
	if (*ret_empty) {
		c->at++;
		return true;
	}
	uint64_t bit = 1ull << c->depth++;
	c->object = object ? c->object | bit : c->object & ~bit;
	return !object || check_name(c);
}

/* Behind a value: closes what ends here; *ret_more if another value follows. */
static bool check_close(struct check *c, bool *ret_more)
{
	*ret_more = false;
	while (c->depth) {
		skip_blanks(c);
		int ch = peek(c);
		if (ch == ',') {
			c->at++;
			skip_blanks(c);
			*ret_more = true;
			return !in_object(c) || check_name(c);
		}
		if (ch != (in_object(c) ? '}' : ']')) {
			return fail(c, ch < 0 ? "the text ends too early" : "a comma is missing");
		}
		c->at++;
		c->depth--;
	}
	return true;
}

static bool check_document(struct check *c)
{
	skip_blanks(c);
	bool more = true;
	while (more) {
		int ch = peek(c);
		bool closed = true;
		if (ch < 0) {
			return fail(c, "the text ends too early");
		}
		if (ch == '{' || ch == '[') {
			if (!check_open(c, &closed)) {
				return false;
			}
		} else if (!check_scalar(c)) {
			return false;
		}
		if (closed && !check_close(c, &more)) {
			return false;
		}
	}
	skip_blanks(c);
	return c->at == c->s.n || fail(c, "something follows the value");
}

/* ---- reader: a document is its cJSON root, a node a cJSON */

static const cJSON *node(const struct ff_json_node *v)
{
	return (const cJSON *)v;
}

static void set_fault(struct ff_err *err, struct ff_str text, size_t at, const char *what)
{
	size_t line = 1;
	size_t begin = 0;
	for (size_t i = 0; i < at && i < text.n; i++) {
		if (text.p[i] == '\n') {
			line++;
			begin = i + 1;
		}
	}
	ff_err_set(err, FF_EJSON, "line %zu, column %zu: %s", line, at - begin + 1, what);
}

#define NUL "\xc0\x80" /* never UTF-8, and no NUL for C */

/* The checked text with each escaped NUL as NUL. Backslashes stand in strings alone. */
static void hide_nul(struct ff_str text, struct ff_buf *out)
{
	while (text.n) {
		ptrdiff_t at = ff_str_chr(text, '\\', 0);
		size_t n = at < 0 ? text.n : (size_t)at;
		ff_buf_add(out, text.p, n);
		text = ff_str_skip(text, n);
		bool nul = ff_str_starts(text, FF_STR("\\u0000"));
		ff_buf_add(out, nul ? NUL : text.p, text.n ? 2 : 0);
		text = ff_str_skip(text, nul ? 6 : text.n ? 2 : 0);
	}
}

static struct ff_json *parse_checked(struct ff_str text, struct ff_err *err)
{
	const char *end = NULL;
	cJSON *root = cJSON_ParseWithLengthOpts(text.p, text.n, &end, 0);
	if (!root) {
		size_t at = end && end >= text.p ? (size_t)(end - text.p) : 0;
		set_fault(err, text, at, "not valid JSON");
		return NULL;
	}
	return (struct ff_json *)root;
}

static struct ff_json *parse(struct ff_str text, bool nul, struct ff_err *err)
{
	struct check c = {.s = text, .nul = nul};
	if (!check_document(&c)) {
		set_fault(err, text, c.at, c.fault);
		return NULL;
	}
	if (!c.nnul) {
		return parse_checked(text, err);
	}
	struct ff_buf b = {0};
	hide_nul(text, &b);
	struct ff_json *doc = parse_checked(ff_buf_str(&b), err);
	ff_buf_finish(&b);
	return doc;
}

struct ff_json *ff_json_parse(struct ff_str text, struct ff_err *err)
{
	return parse(text, false, err);
}

struct ff_json *ff_json_parse_text(struct ff_str text, struct ff_err *err)
{
	return parse(text, true, err);
}

void ff_json_add_text(struct ff_buf *out, const char *z)
{
	struct ff_str s = ff_str_z(z);
	for (ptrdiff_t at; (at = ff_str_find(s, FF_STR(NUL), 0)) >= 0;) {
		ff_buf_add(out, s.p, (size_t)at);
		ff_buf_addc(out, '\0');
		s = ff_str_skip(s, (size_t)at + 2);
	}
	ff_buf_adds(out, s);
}

void ff_json_destroy(struct ff_json *doc)
{
	cJSON_Delete((cJSON *)doc);
}

const struct ff_json_node *ff_json_root(const struct ff_json *doc)
{
	return (const struct ff_json_node *)doc;
}

bool ff_json_is_object(const struct ff_json_node *v)
{
	return v && cJSON_IsObject(node(v));
}

bool ff_json_is_array(const struct ff_json_node *v)
{
	return v && cJSON_IsArray(node(v));
}

bool ff_json_is_null(const struct ff_json_node *v)
{
	return !v || cJSON_IsNull(node(v));
}

const struct ff_json_node *ff_json_get(const struct ff_json_node *obj, const char *key)
{
	if (!ff_json_is_object(obj)) {
		return NULL;
	}
	return (const struct ff_json_node *)cJSON_GetObjectItemCaseSensitive(node(obj), key);
}

const struct ff_json_node *ff_json_first(const struct ff_json_node *v)
{
	return v ? (const struct ff_json_node *)node(v)->child : NULL;
}

const struct ff_json_node *ff_json_next(const struct ff_json_node *v)
{
	return v ? (const struct ff_json_node *)node(v)->next : NULL;
}

const char *ff_json_key(const struct ff_json_node *v)
{
	return v ? node(v)->string : NULL;
}

const char *ff_json_string(const struct ff_json_node *v)
{
	return v && cJSON_IsString(node(v)) ? node(v)->valuestring : NULL;
}

bool ff_json_int(const struct ff_json_node *v, int64_t *ret)
{
	double d;
	if (!ff_json_number(v, &d) || !(d > -WHOLE_MAX && d < WHOLE_MAX)) {
		return false;
	}
	int64_t i = (int64_t)d;
	if ((double)i < d || (double)i > d) {
		return false;
	}
	*ret = i;
	return true;
}

bool ff_json_number(const struct ff_json_node *v, double *ret)
{
	if (!v || !cJSON_IsNumber(node(v)) || !isfinite(node(v)->valuedouble)) {
		return false;
	}
	*ret = node(v)->valuedouble;
	return true;
}

bool ff_json_bool(const struct ff_json_node *v, bool *ret)
{
	if (!v || !cJSON_IsBool(node(v))) {
		return false;
	}
	*ret = cJSON_IsTrue(node(v));
	return true;
}

static void render_number(struct ff_jw *w, const struct ff_json_node *v)
{
	int64_t i;
	double d;
	if (ff_json_int(v, &i)) {
		ff_jw_int(w, i);
	} else if (ff_json_number(v, &d)) {
		before_value(w);
		ff_buf_addf(w->out, "%.17g", d);
	} else {
		ff_jw_null(w); /* 1e999 is infinite, which JSON cannot say */
	}
}

/* Calls itself once a level: FF_JSON_DEPTH at most. */
static void render(struct ff_jw *w, const struct ff_json_node *v)
{
	bool b;
	if (ff_json_is_object(v) || ff_json_is_array(v)) {
		bool object = ff_json_is_object(v);
		ff_jw_open(w, object ? '{' : '[');
		for (const struct ff_json_node *c = ff_json_first(v); c; c = ff_json_next(c)) {
			if (object) {
				ff_jw_key(w, ff_json_key(c));
			}
			render(w, c);
		}
		ff_jw_close(w, object ? '}' : ']');
	} else if (ff_json_string(v)) {
		struct ff_buf text = {0};
		ff_json_add_text(&text, ff_json_string(v));
		ff_jw_str(w, ff_buf_str(&text));
		ff_buf_finish(&text);
	} else if (ff_json_bool(v, &b)) {
		ff_jw_bool(w, b);
	} else if (v && cJSON_IsNumber(node(v))) {
		render_number(w, v);
	} else {
		ff_jw_null(w);
	}
}

void ff_json_render(const struct ff_json_node *v, struct ff_buf *out)
{
	struct ff_jw w;
	ff_jw_init(&w, out);
	render(&w, v);
}
