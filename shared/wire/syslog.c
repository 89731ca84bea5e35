#include "wire/syslog.h"

#include <stddef.h>

#define COUNT_DIGITS 7u
#define PRI_MOST 191 /* facility 23, severity 7 (RFC 5424, 6.2.1) */

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

/* "<13>" at the front: its length, 0: none; *ret_more: it may be one when more comes. */
static size_t read_pri(struct ff_str s, int *ret, bool *ret_more)
{
	int64_t v = 0;
	*ret_more = s.n == 0;
	if (!s.n || s.p[0] != '<') {
		return 0;
	}
	size_t n = ff_str_digits(ff_str_skip(s, 1), &v);
	*ret_more = n <= 3 && n + 1 == s.n;
	if (!n || n > 3 || n + 1 >= s.n || s.p[n + 1] != '>' || v > PRI_MOST) {
		return 0;
	}
	*ret = (int)v;
	return n + 2;
}

/* "LEN " at the front: its length, 0: none. */
static size_t read_count(struct ff_str s, int64_t *ret, bool *ret_more)
{
	size_t n = s.n && s.p[0] != '0' ? ff_str_digits(s, ret) : 0;
	*ret_more = n && n <= COUNT_DIGITS && n == s.n;
	return n && n <= COUNT_DIGITS && n < s.n && s.p[n] == ' ' ? n + 1 : 0;
}

enum ff_syslog_frame ff_syslog_front(struct ff_str s)
{
	int64_t count;
	int pri;
	bool more;
	size_t n = read_count(s, &count, &more);
	if (more) {
		return FF_SYSLOG_MORE;
	}
	if (read_pri(ff_str_skip(s, n), &pri, &more)) {
		return FF_SYSLOG_WHOLE;
	}
	return more ? FF_SYSLOG_MORE : FF_SYSLOG_NONE;
}

static struct ff_str without_end(struct ff_str s)
{
	while (s.n && (s.p[s.n - 1] == '\n' || s.p[s.n - 1] == '\0')) {
		s.n--;
	}
	return s;
}

static enum ff_syslog_frame counted(struct ff_str s, size_t head, uint64_t count,
				    struct ff_str *ret_message, uint64_t *ret_used)
{
	*ret_used = head + count;
	if (count > FF_SYSLOG_FRAME) {
		return FF_SYSLOG_LONG;
	}
	if (s.n < head + count) {
		return FF_SYSLOG_MORE;
	}
	*ret_message = without_end(ff_str_n(s.p + head, count));
	return FF_SYSLOG_WHOLE;
}

enum ff_syslog_frame ff_syslog_frame(struct ff_str s, struct ff_str *ret_message,
				     uint64_t *ret_used)
{
	int64_t count = 0;
	int pri;
	bool more;
	size_t head = read_count(s, &count, &more);
	if (head) { /* a line of text may begin with a number too */
		bool is = read_pri(ff_str_skip(s, head), &pri, &more) > 0;
		if (is) {
			return counted(s, head, (uint64_t)count, ret_message, ret_used);
		}
	}
	if (more) {
		return FF_SYSLOG_MORE;
	}
	ptrdiff_t lf = ff_str_chr(s, '\n', 0);
	if (lf < 0) {
		return FF_SYSLOG_MORE;
	}
	*ret_used = (uint64_t)lf + 1;
	*ret_message = without_end(ff_str_n(s.p, (size_t)lf));
	return read_pri(s, &pri, &more) ? FF_SYSLOG_WHOLE : FF_SYSLOG_NONE;
}

/* ---- a message */

/* The next word of *s, up to a blank; false: there is none behind which another word stands. */
static bool take_word(struct ff_str *s, struct ff_str *ret)
{
	ptrdiff_t end = ff_str_chr(*s, ' ', 0);
	if (end <= 0) {
		return false;
	}
	*ret = ff_str_n(s->p, (size_t)end);
	*s = ff_str_skip(*s, (size_t)end + 1);
	return true;
}

static struct ff_str or_absent(struct ff_str s)
{
	return ff_str_eqz(s, "-") ? (struct ff_str){0} : s;
}

static void keep(struct ff_syslog *o, struct ff_str name, struct ff_str value)
{
	static const struct {
		const char *name;
		size_t text, number; /* where it goes: one of them */
	} known[] = {
		{"job", offsetof(struct ff_syslog, job), 0},
		{"run", offsetof(struct ff_syslog, run), 0},
		{"node", offsetof(struct ff_syslog, node), 0},
		{"stream", offsetof(struct ff_syslog, stream), 0},
		{"file", offsetof(struct ff_syslog, stream), 0},
		{"rank", 0, offsetof(struct ff_syslog, rank)},
		{"local_rank", 0, offsetof(struct ff_syslog, local_rank)},
		{"attempt", 0, offsetof(struct ff_syslog, attempt)},
	};
	for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
		int64_t v;
		if (!ff_str_eqz(name, known[i].name) || !value.n) {
			continue;
		}
		if (known[i].text) {
			*(struct ff_str *)((char *)o + known[i].text) = value;
		} else if (ff_str_int(value, &v) && v >= 0 && v <= INT32_MAX) {
			*(int64_t *)((char *)o + known[i].number) = v;
		}
	}
}

/* A value up to its quote, unescaped (RFC 5424, 6.3.3: \" \\ \]) into o->mem, which has room. */
static bool take_value(struct ff_syslog *o, struct ff_str *s, struct ff_str *ret)
{
	size_t from = o->mem.len, i = 0;
	for (; i < s->n && s->p[i] != '"'; i++) {
		bool escape = s->p[i] == '\\' && i + 1 < s->n && memchr("\"\\]", s->p[i + 1], 3);
		i += escape;
		ff_buf_addc(&o->mem, s->p[i]);
	}
	*ret = ff_str_n(o->mem.p ? o->mem.p + from : "", o->mem.len - from);
	*s = ff_str_skip(*s, i + 1);
	return true;
}

/* [id name="value" ...]: false if it isn't one. */
static bool take_element(struct ff_syslog *o, struct ff_str *s)
{
	size_t i = 1;
	while (i < s->n && s->p[i] != ' ' && s->p[i] != ']') {
		i++;
	}
	*s = ff_str_skip(*s, i);
	while (s->n && s->p[0] == ' ') {
		ptrdiff_t equals = ff_str_find(*s, FF_STR("=\""), 1);
		if (equals < 0) {
			return false;
		}
		struct ff_str name = ff_str_n(s->p + 1, (size_t)equals - 1), value;
		*s = ff_str_skip(*s, (size_t)equals + 2);
		if (!take_value(o, s, &value)) {
			return false;
		}
		keep(o, name, value);
	}
	if (!s->n || s->p[0] != ']') {
		return false;
	}
	*s = ff_str_skip(*s, 1);
	return true;
}

/* Structured data, or "-"; then a blank and the text. False: it is none. */
static bool take_data(struct ff_syslog *o, struct ff_str *s)
{
	if (s->n && s->p[0] == '-') {
		*s = ff_str_skip(*s, 1);
	} else if (!s->n || s->p[0] != '[') {
		return false;
	} else { /* so that no value moves */
		(void)ff_buf_reserve(&o->mem, s->n);
	}
	while (s->n && s->p[0] == '[') {
		if (!take_element(o, s)) {
			return false;
		}
	}
	if (s->n && s->p[0] != ' ') {
		return false;
	}
	*s = ff_str_skip(*s, 1);
	if (ff_str_starts(*s, FF_STR("\xef\xbb\xbf"))) {
		*s = ff_str_skip(*s, 3);
	}
	return true;
}

/* "1 TIME HOST APP PROCID MSGID SD TEXT" (RFC 5424, 6). */
static bool parse_5424(struct ff_syslog *o, struct ff_str s)
{
	struct ff_str time, host, app, word;
	if (!ff_str_starts(s, FF_STR("1 "))) {
		return false;
	}
	s = ff_str_skip(s, 2);
	if (!take_word(&s, &time) || !take_word(&s, &host) || !take_word(&s, &app) ||
	    !take_word(&s, &word) || !take_word(&s, &word)) {
		return false;
	}
	bool timed = ff_usec_rfc3339(time, &o->time);
	if (!timed && !ff_str_eqz(time, "-")) {
		return false;
	}
	o->host = or_absent(host);
	o->app = or_absent(app);
	if (!take_data(o, &s)) {
		return false;
	}
	o->text = s;
	return true;
}

/* "May  1 12:00:00 " (RFC 3164, 4.1.2), which has neither year nor zone; its length. */
static size_t old_time(struct ff_str s)
{
	static const char form[] = "Aaa .9 99:99:99 ";
	if (s.n < sizeof form - 1) {
		return 0;
	}
	for (size_t i = 0; i < sizeof form - 1; i++) {
		char c = s.p[i], f = form[i];
		bool fits = f == 'A' ? c >= 'A' && c <= 'Z' : f == 'a' ? c >= 'a' && c <= 'z' :
			f == '9' ? is_digit(c) : f == '.' ? c == ' ' || is_digit(c) : c == f;
		if (!fits) {
			return 0;
		}
	}
	return sizeof form - 1;
}

/* "TAG[PID]: " or "TAG: ": its length; *ret the tag. */
static size_t tag_at(struct ff_str s, struct ff_str *ret)
{
	size_t n = 0;
	while (n < s.n && n < 64 && !memchr(" :[", s.p[n], 3)) {
		n++;
	}
	*ret = ff_str_n(s.p, n);
	if (n && n < s.n && s.p[n] == '[') {
		int64_t pid;
		n++;
		n += ff_str_digits(ff_str_skip(s, n), &pid);
		if (n >= s.n || s.p[n] != ']') {
			return 0;
		}
		n++;
	}
	if (!ret->n || n >= s.n || s.p[n] != ':') {
		return 0;
	}
	n++;
	return n + (n < s.n && s.p[n] == ' ');
}

/* "TIME [HOST ]TAG[PID]: TEXT"; Docker's driver sends no HOST. */
static bool parse_3164(struct ff_syslog *o, struct ff_str s)
{
	struct ff_str tag, host, rest, iso;
	size_t n = old_time(s);
	rest = s;
	if (n) {
		s = ff_str_skip(s, n);
	} else if (take_word(&rest, &iso) && ff_usec_rfc3339(iso, &o->time)) {
		s = rest; /* the time of rsyslog's own template, with a zone */
	} else {
		return false;
	}
	n = tag_at(s, &tag);
	if (!n) {
		rest = s;
		if (!take_word(&rest, &host)) {
			return false;
		}
		o->host = host;
		s = rest;
		n = tag_at(s, &tag);
	}
	o->app = n ? tag : (struct ff_str){0};
	o->text = ff_str_skip(s, n);
	return true;
}

bool ff_syslog_parse(struct ff_syslog *o, struct ff_str message)
{
	struct ff_buf mem = o->mem;
	int pri;
	bool more;
	size_t n = read_pri(message, &pri, &more);
	ff_buf_clear(&mem);
	*o = (struct ff_syslog){.time = FF_TIME_NONE, .rank = -1, .local_rank = -1, .attempt = -1,
		.mem = mem};
	if (!n) {
		return false;
	}
	o->facility = pri / 8;
	o->severity = pri % 8;
	struct ff_str rest = ff_str_skip(message, n);
	if (parse_5424(o, rest)) {
		return true;
	}
	struct ff_syslog none = {.facility = o->facility, .severity = o->severity,
		.time = FF_TIME_NONE, .text = rest, .rank = -1, .local_rank = -1, .attempt = -1,
		.mem = o->mem};
	*o = none;
	if (!parse_3164(o, rest)) {
		none.mem = o->mem;
		*o = none;
	}
	return true;
}

void ff_syslog_finish(struct ff_syslog *o)
{
	ff_buf_finish(&o->mem);
}
