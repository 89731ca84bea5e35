#include "wire/jsonl.h"

#include "base/limits.h"

/* Where a value begins and what it is; strings are unescaped into mem. */
enum value_type { VALUE_STRING, VALUE_NUMBER, VALUE_TRUE, VALUE_FALSE, VALUE_NULL, VALUE_NESTED };

struct value {
	enum value_type type;
	struct ff_str raw; /* as it stands in the line; for a string without its quotes */
	bool escaped;      /* raw holds a backslash */
};

struct cursor {
	const char *p, *end;
};

static const char *const event_names[] = {
	[FF_JSONL_NONE] = NULL,
#define X(e, name) [FF_JSONL_##e] = name,
	FF_JSONL_EVENTS(X)
#undef X
	[FF_JSONL_OTHER] = NULL,
};

const char *ff_jsonl_event_name(enum ff_jsonl_event e)
{
	return event_names[e];
}

static void skip_blank(struct cursor *c)
{
	while (c->p < c->end && (*c->p == ' ' || *c->p == '\t' || *c->p == '\r' || *c->p == '\n')) {
		c->p++;
	}
}

static bool take(struct cursor *c, char byte)
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
static bool read_string(struct cursor *c, struct value *ret)
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
	*ret = (struct value){VALUE_STRING, ff_str_n(start, (size_t)(c->p - start)), escaped};
	return take(c, '"');
}

static size_t digits(struct cursor *c)
{
	const char *start = c->p;
	while (c->p < c->end && *c->p >= '0' && *c->p <= '9') {
		c->p++;
	}
	return (size_t)(c->p - start);
}

static bool read_number(struct cursor *c, struct value *ret)
{
	const char *start = c->p;
	(void)take(c, '-');
	if (!digits(c)) {
		return false;
	}
	if (take(c, '.') && !digits(c)) {
		return false;
	}
	if (take(c, 'e') || take(c, 'E')) {
		if (!take(c, '+')) {
			(void)take(c, '-');
		}
		if (!digits(c)) {
			return false;
		}
	}
	*ret = (struct value){VALUE_NUMBER, ff_str_n(start, (size_t)(c->p - start)), false};
	return true;
}

static bool read_word(struct cursor *c, const char *word, enum value_type type, struct value *ret)
{
	size_t n = strlen(word);
	if ((size_t)(c->end - c->p) < n || memcmp(c->p, word, n) != 0) {
		return false;
	}
	*ret = (struct value){type, ff_str_n(c->p, n), false};
	c->p += n;
	return true;
}

static bool read_value(struct cursor *c, int depth, struct value *ret);

/* Behind the opening bracket; its content is only checked. */
static bool read_nested(struct cursor *c, char close, int depth)
{
	struct value v;
	if (depth >= FF_JSON_DEPTH) {
		return false;
	}
	skip_blank(c);
	if (take(c, close)) {
		return true;
	}
	for (;;) {
		skip_blank(c);
		if (close == '}') {
			if (!take(c, '"') || !read_string(c, &v)) {
				return false;
			}
			skip_blank(c);
			if (!take(c, ':')) {
				return false;
			}
		}
		if (!read_value(c, depth + 1, &v)) {
			return false;
		}
		skip_blank(c);
		if (take(c, close)) {
			return true;
		}
		if (!take(c, ',')) {
			return false;
		}
	}
}

static bool read_value(struct cursor *c, int depth, struct value *ret)
{
	skip_blank(c);
	if (c->p == c->end) {
		return false;
	}
	const char *start = c->p;
	switch (*c->p) {
	case '"': c->p++; return read_string(c, ret);
	case 't': return read_word(c, "true", VALUE_TRUE, ret);
	case 'f': return read_word(c, "false", VALUE_FALSE, ret);
	case 'n': return read_word(c, "null", VALUE_NULL, ret);
	case '{':
	case '[': {
		char close = *c->p++ == '{' ? '}' : ']';
		if (!read_nested(c, close, depth)) {
			return false;
		}
		*ret = (struct value){VALUE_NESTED, ff_str_n(start, (size_t)(c->p - start)), false};
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
static struct ff_str unescape(struct ff_buf *mem, const struct value *v)
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

/* 10^n for 0 <= n <= 18 */
static int64_t power10(int n)
{
	int64_t v = 1;
	while (n-- > 0) {
		v *= 10;
	}
	return v;
}

/* The first 18 significant digits of a number and the power of ten they are to be taken with. */
static bool read_decimal(struct ff_str s, int64_t *ret_mantissa, int *ret_exp)
{
	int64_t mantissa = 0, written = 0;
	int exp = 0, kept = 0;
	bool point = false;
	size_t i = 0;
	for (; i < s.n && s.p[i] != 'e' && s.p[i] != 'E'; i++) {
		char ch = s.p[i];
		if (ch == '.' && !point) {
			point = true;
			continue;
		}
		if (ch < '0' || ch > '9' || i > 64) {
			return false;
		}
		if (kept < 18) {
			mantissa = mantissa * 10 + (ch - '0');
			kept += mantissa != 0;
			exp -= point;
		} else {
			exp += !point;
		}
	}
	if (i < s.n) {
		struct ff_str e = ff_str_skip(s, i + 1);
		e = e.n && e.p[0] == '+' ? ff_str_skip(e, 1) : e;
		if (!ff_str_int(e, &written) || written > 40 || written < -40) {
			return false;
		}
	}
	*ret_mantissa = mantissa;
	*ret_exp = exp + (int)written;
	return true;
}

/* mantissa * 10^exp, rounded down; false if it does not fit */
static bool scale(int64_t mantissa, int exp, int64_t *ret)
{
	if (exp <= 0) {
		*ret = exp < -18 ? 0 : mantissa / power10(-exp);
		return true;
	}
	return exp <= 18 && !__builtin_mul_overflow(mantissa, power10(exp), ret);
}

bool ff_jsonl_epoch(struct ff_str number, ff_usec *ret)
{
	static const int units[] = {6, 3, 0, -3}; /* s, ms, us, ns as powers of ten of us */
	int64_t mantissa, us;
	int exp;
	if (!read_decimal(number, &mantissa, &exp)) {
		return false;
	}
	for (size_t i = 0; i < sizeof units / sizeof *units; i++) {
		if (scale(mantissa, exp + units[i], &us) && ff_usec_usable(us)) {
			*ret = us;
			return true;
		}
	}
	return false;
}

/* ---- the known keys */

struct reading {
	struct ff_jsonl *o;
	struct ff_str message[3]; /* message, log, msg: the first that is there holds */
	struct ff_str tail[3];    /* exc_info, exception, stack_trace */
	ff_usec stamps[4];        /* timestamp, ts, @timestamp, date: likewise */
};

static void set_event(struct reading *r, struct ff_str name)
{
	r->o->event = FF_JSONL_OTHER;
	for (int e = FF_JSONL_NONE + 1; e < FF_JSONL_OTHER; e++) {
		if (ff_str_eqz(name, event_names[e])) {
			r->o->event = (enum ff_jsonl_event)e;
		}
	}
}

static void set_text(struct reading *r, struct ff_str *target, const struct value *v)
{
	if (v->type == VALUE_STRING) {
		*target = unescape(&r->o->mem, v);
	} else if (v->type != VALUE_NULL) {
		r->o->bad++;
	}
}

static void set_count(struct reading *r, int64_t *target, const struct value *v, int64_t max)
{
	int64_t n;
	*target = -1;
	if (v->type == VALUE_NUMBER && ff_str_int(v->raw, &n) && n >= 0 && n <= max) {
		*target = n;
	} else if (v->type != VALUE_NULL) {
		r->o->bad++;
	}
}

static void set_time(struct reading *r, ff_usec *target, const struct value *v, bool epoch)
{
	struct ff_str s = v->raw;
	*target = FF_TIME_NONE;
	if (v->type == VALUE_NULL) {
		return;
	}
	if (v->type == VALUE_STRING) {
		s = unescape(&r->o->mem, v);
		if (ff_usec_rfc3339(s, target)) {
			r->o->bad_times += !ff_usec_usable(*target);
			return;
		}
	}
	if (v->type != VALUE_NESTED && epoch && ff_jsonl_epoch(s, target)) {
		return;
	}
	*target = FF_TIME_NONE;
	r->o->bad_times++;
}

static void set_clock(struct reading *r, const struct value *v)
{
	struct ff_str s = v->type == VALUE_STRING ? unescape(&r->o->mem, v) : FF_STR("");
	if (ff_str_eqz(s, "node")) {
		r->o->clock = FF_JSONL_CLOCK_NODE;
	} else if (ff_str_eqz(s, "collector")) {
		r->o->clock = FF_JSONL_CLOCK_COLLECTOR;
	} else if (v->type == VALUE_STRING) {
		r->o->bad++;
	}
}

enum key {
	KEY_event,
	KEY_message,
	KEY_log,
	KEY_msg,
	KEY_exc_info,
	KEY_exception,
	KEY_stack_trace,
	KEY_job,
	KEY_run,
	KEY_node,
	KEY_host,
	KEY_hostname,
	KEY_stream,
	KEY_kind,
	KEY_fd,
	KEY_source,
	KEY_rank,
	KEY_local_rank,
	KEY_attempt,
	KEY_offset,
	KEY_time,
	KEY_timestamp,
	KEY_ts,
	KEY_at_timestamp,
	KEY_date,
	KEY_clock,
	KEY_complete,
	KEY_COUNT
};

static const char *const keys[KEY_COUNT] = {
	"event", "message", "log", "msg", "exc_info", "exception", "stack_trace",
	"job", "run", "node", "host", "hostname", "stream", "kind", "fd", "source",
	"rank", "local_rank", "attempt", "offset", "time", "timestamp", "ts",
	"@timestamp", "date", "clock", "complete",
};

static enum key find_key(struct ff_str s)
{
	for (int k = 0; k < KEY_COUNT; k++) {
		if (s.n && s.p[0] == keys[k][0] && ff_str_eqz(s, keys[k])) {
			return (enum key)k;
		}
	}
	return KEY_COUNT;
}

/* `host` and `hostname` are the node unless `node` says it. */
static void set_host(struct reading *r, const struct value *v)
{
	struct ff_str host = {0};
	if (v->type == VALUE_STRING) {
		host = unescape(&r->o->mem, v); /* some loggers put objects here: no fault */
	}
	if (!r->o->node.p) {
		r->o->node = host;
	}
}

static void set_key(struct reading *r, enum key k, const struct value *v)
{
	struct ff_jsonl *o = r->o;
	switch (k) {
	case KEY_event:
		if (v->type != VALUE_NULL) {
			set_event(r, v->type == VALUE_STRING ? unescape(&o->mem, v) : FF_STR(""));
		}
		break;
	case KEY_message:
	case KEY_log:
	case KEY_msg: set_text(r, &r->message[k - KEY_message], v); break;
	case KEY_exc_info:
	case KEY_exception:
	case KEY_stack_trace:
		if (v->type == VALUE_STRING) {
			r->tail[k - KEY_exc_info] = unescape(&o->mem, v);
		}
		break;
	case KEY_job: set_text(r, &o->job, v); break;
	case KEY_run: set_text(r, &o->run, v); break;
	case KEY_node: set_text(r, &o->node, v); break;
	case KEY_host:
	case KEY_hostname: set_host(r, v); break;
	case KEY_stream: set_text(r, &o->stream, v); break;
	case KEY_kind: set_text(r, &o->kind, v); break;
	case KEY_fd: set_text(r, &o->fd, v); break;
	case KEY_source: set_text(r, &o->source, v); break;
	case KEY_rank: set_count(r, &o->rank, v, FF_RANKS_MAX - 1); break;
	case KEY_local_rank: set_count(r, &o->local_rank, v, FF_RANKS_MAX - 1); break;
	case KEY_attempt: set_count(r, &o->attempt, v, INT32_MAX); break;
	case KEY_offset: set_count(r, &o->offset, v, ((int64_t)1 << 53) - 1); break;
	case KEY_time: set_time(r, &o->time, v, false); break;
	case KEY_timestamp:
	case KEY_ts:
	case KEY_at_timestamp:
	case KEY_date: set_time(r, &r->stamps[k - KEY_timestamp], v, true); break;
	case KEY_clock: set_clock(r, v); break;
	case KEY_complete:
		o->complete = v->type == VALUE_TRUE ? 1 : v->type == VALUE_FALSE ? 0 : -1;
		o->bad += o->complete < 0 && v->type != VALUE_NULL;
		break;
	case KEY_COUNT: break;
	}
}

/* A key written with escapes is rare; it is compared unescaped all the same. */
static bool read_members(struct cursor *c, struct reading *r)
{
	struct value name, v;
	bool first = true;
	for (;;) {
		skip_blank(c);
		if (take(c, '}')) {
			return first;
		}
		if (!take(c, '"') || !read_string(c, &name)) {
			return false;
		}
		skip_blank(c);
		if (!take(c, ':') || !read_value(c, 1, &v)) {
			return false;
		}
		set_key(r, find_key(unescape(&r->o->mem, &name)), &v);
		skip_blank(c);
		if (take(c, '}')) {
			return true;
		}
		if (!take(c, ',')) {
			return false;
		}
		first = false;
	}
}

/* The message and what is appended to it, each part on a line of its own. */
static void join_text(struct reading *r)
{
	struct ff_jsonl *o = r->o;
	struct ff_str parts[4];
	size_t n = 0;
	for (int i = 0; i < 3 && !n; i++) {
		if (r->message[i].p) {
			parts[n++] = r->message[i];
		}
	}
	if (!n) {
		return;
	}
	for (int i = 0; i < 3; i++) {
		if (r->tail[i].n) {
			parts[n++] = r->tail[i];
		}
	}
	o->has_text = true;
	o->text = parts[0];
	if (n == 1) {
		return;
	}
	for (size_t i = 0; i < n; i++) {
		if (i && !(o->join.len && o->join.p[o->join.len - 1] == '\n')) {
			ff_buf_addc(&o->join, '\n');
		}
		ff_buf_adds(&o->join, parts[i]);
	}
	o->text = ff_buf_str(&o->join);
}

/* {"log":"text\n","stream":"stderr","time":"..."} (SOURCES.md cri-logs), and what shippers add. */
static bool is_container(const struct reading *r)
{
	const struct ff_jsonl *o = r->o;
	bool named = o->job.p || o->run.p || o->node.p || o->source.p || o->kind.p ||
		o->rank >= 0 || o->local_rank >= 0 || o->attempt >= 0 || o->offset >= 0;
	bool fd = ff_str_eqz(o->stream, "stdout") || ff_str_eqz(o->stream, "stderr");
	return o->event == FF_JSONL_NONE && !named && fd && !r->message[0].p && r->message[1].p &&
		o->time != FF_TIME_NONE;
}

static void reset(struct ff_jsonl *o)
{
	struct ff_buf mem = o->mem, join = o->join;
	*o = (struct ff_jsonl){.rank = -1,
		.local_rank = -1,
		.attempt = -1,
		.offset = -1,
		.time = FF_TIME_NONE,
		.stamp = FF_TIME_NONE,
		.complete = -1,
		.mem = mem,
		.join = join};
	ff_buf_clear(&o->mem);
	ff_buf_clear(&o->join);
}

int ff_jsonl_parse(struct ff_jsonl *o, struct ff_str line)
{
	struct cursor c = {line.p, line.p + line.n};
	struct reading r = {.o = o,
		.stamps = {FF_TIME_NONE, FF_TIME_NONE, FF_TIME_NONE, FF_TIME_NONE}};
	reset(o);
	skip_blank(&c);
	if (!take(&c, '{')) {
		return FF_EJSON;
	}
	/* No escape is longer unescaped: the views into mem stay valid, as it never grows again. */
	(void)ff_buf_reserve(&o->mem, line.n + 1);
	if (!read_members(&c, &r)) {
		return FF_EJSON;
	}
	skip_blank(&c);
	if (c.p != c.end) {
		return FF_EJSON;
	}
	for (int i = 0; i < 4 && o->stamp == FF_TIME_NONE; i++) {
		o->stamp = r.stamps[i];
	}
	join_text(&r);
	o->container = is_container(&r);
	if (o->event == FF_JSONL_OTHER) {
		o->has_text = true;
		o->text = line;
	}
	return 0;
}

void ff_jsonl_finish(struct ff_jsonl *o)
{
	ff_buf_finish(&o->mem);
	ff_buf_finish(&o->join);
}
