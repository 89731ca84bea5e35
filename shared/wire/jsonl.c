#include "wire/jsonl.h"

#include "base/limits.h"
#include "wire/label.h"
#include "wire/reader.h"

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
	struct ff_str host;       /* of host or hostname */
	struct ff_str node;       /* of kubernetes */
	struct ff_str file, logtag, container;
	struct ff_label label;
	bool agent;                     /* it says things that only agents say */
	bool cri;                       /* its CRI tag was read off */
	bool partial, partial_last;     /* of a longer line; its end */
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

static void set_text(struct reading *r, struct ff_str *target, const struct ff_value *v)
{
	if (v->type == FF_VALUE_STRING) {
		*target = ff_reader_text(&r->o->mem, v);
	} else if (v->type != FF_VALUE_NULL) {
		r->o->bad++;
	}
}

static void set_count(struct reading *r, int64_t *target, const struct ff_value *v, int64_t max)
{
	int64_t n;
	bool is = v->type == FF_VALUE_NUMBER || v->type == FF_VALUE_STRING;
	*target = -1;
	if (is && ff_str_int(v->raw, &n) && n >= 0 && n <= max) {
		*target = n;
	} else if (v->type != FF_VALUE_NULL) {
		r->o->bad++;
	}
}

static void set_time(struct reading *r, ff_usec *target, const struct ff_value *v, bool epoch)
{
	struct ff_str s = v->raw;
	*target = FF_TIME_NONE;
	if (v->type == FF_VALUE_NULL) {
		return;
	}
	if (v->type == FF_VALUE_STRING) {
		s = ff_reader_text(&r->o->mem, v);
		if (ff_usec_rfc3339(s, target)) {
			r->o->bad_times += !ff_usec_usable(*target);
			return;
		}
	}
	if (v->type != FF_VALUE_NESTED && epoch && ff_jsonl_epoch(s, target)) {
		return;
	}
	*target = FF_TIME_NONE;
	r->o->bad_times++;
}

static void set_clock(struct reading *r, const struct ff_value *v)
{
	struct ff_str s = v->type == FF_VALUE_STRING ? ff_reader_text(&r->o->mem, v) : FF_STR("");
	if (ff_str_eqz(s, "node")) {
		r->o->clock = FF_JSONL_CLOCK_NODE;
	} else if (ff_str_eqz(s, "collector")) {
		r->o->clock = FF_JSONL_CLOCK_COLLECTOR;
	} else if (v->type == FF_VALUE_STRING) {
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
	KEY_token,
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
	KEY_kubernetes,
	KEY_file,
	KEY_logtag,
	KEY__p,
	KEY__partial,
	KEY_partial_message,
	KEY_partial_last,
	KEY_container_id,
	KEY_container_name,
	KEY_COUNT
};

static const char *const keys[KEY_COUNT] = {
	"event", "message", "log", "msg", "exc_info", "exception", "stack_trace",
	"job", "run", "node", "host", "hostname", "stream", "kind", "fd", "source", "token",
	"rank", "local_rank", "attempt", "offset", "time", "timestamp", "ts",
	"@timestamp", "date", "clock", "complete", "kubernetes", "file", "logtag", "_p", "_partial",
	"partial_message", "partial_last", "container_id", "container_name",
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

static struct ff_str text_of(struct reading *r, const struct ff_value *v)
{
	bool is = v->type == FF_VALUE_STRING; /* some loggers put objects there: no fault */
	return is ? ff_reader_text(&r->o->mem, v) : (struct ff_str){0};
}

static bool truth_of(const struct ff_value *v)
{
	return v->type == FF_VALUE_TRUE ||
		(v->type == FF_VALUE_STRING && ff_str_eqz(v->raw, "true"));
}

static void set_labels(struct reading *r, const struct ff_value *labels)
{
	struct ff_reader c = ff_reader_of(labels->raw);
	struct ff_value name, v;
	bool first = true;
	if (labels->type != FF_VALUE_NESTED || !ff_reader_take(&c, '{')) {
		return;
	}
	while (ff_reader_member(&c, &first, &name, &v) == 1) {
		ff_label_add(&r->label, ff_reader_text(&r->o->mem, &name), text_of(r, &v));
	}
}

/* Fluent Bit's filter kubernetes and Vector's source kubernetes_logs. */
static void set_kubernetes(struct reading *r, const struct ff_value *object)
{
	struct ff_reader c = ff_reader_of(object->raw);
	struct ff_value name, v;
	bool first = true;
	if (object->type != FF_VALUE_NESTED || !ff_reader_take(&c, '{')) {
		return;
	}
	r->agent = true;
	while (ff_reader_member(&c, &first, &name, &v) == 1) {
		struct ff_str key = name.raw;
		if (ff_str_eqz(key, "labels") || ff_str_eqz(key, "pod_labels")) {
			set_labels(r, &v);
		} else if (ff_str_eqz(key, "pod_name")) {
			r->label.pod = text_of(r, &v);
		} else if (ff_str_eqz(key, "container_name")) {
			r->label.container = text_of(r, &v);
		} else if (ff_str_eqz(key, "namespace_name") || ff_str_eqz(key, "pod_namespace")) {
			r->label.space = text_of(r, &v);
		} else if (ff_str_eqz(key, "host") || ff_str_eqz(key, "pod_node_name")) {
			r->node = text_of(r, &v);
		}
	}
}

static void set_key(struct reading *r, enum key k, const struct ff_value *v)
{
	struct ff_jsonl *o = r->o;
	switch (k) {
	case KEY_event:
		if (v->type != FF_VALUE_NULL) {
			set_event(r,
				v->type == FF_VALUE_STRING ? ff_reader_text(&o->mem, v)
							   : FF_STR(""));
		}
		break;
	case KEY_message:
	case KEY_log:
	case KEY_msg: set_text(r, &r->message[k - KEY_message], v); break;
	case KEY_exc_info:
	case KEY_exception:
	case KEY_stack_trace:
		if (v->type == FF_VALUE_STRING) {
			r->tail[k - KEY_exc_info] = ff_reader_text(&o->mem, v);
		}
		break;
	case KEY_job: set_text(r, &o->job, v); break;
	case KEY_run: set_text(r, &o->run, v); break;
	case KEY_node: set_text(r, &o->node, v); break;
	case KEY_host:
	case KEY_hostname: r->host = text_of(r, v); break;
	case KEY_stream: set_text(r, &o->stream, v); break;
	case KEY_kind: set_text(r, &o->kind, v); break;
	case KEY_fd: set_text(r, &o->fd, v); break;
	case KEY_source: set_text(r, &o->source, v); break;
	case KEY_token: o->token = text_of(r, v); break;
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
		o->complete = v->type == FF_VALUE_TRUE ? 1 : v->type == FF_VALUE_FALSE ? 0 : -1;
		o->bad += o->complete < 0 && v->type != FF_VALUE_NULL;
		break;
	case KEY_kubernetes: set_kubernetes(r, v); break;
	case KEY_file: r->file = text_of(r, v); break;
	case KEY_logtag:
		r->logtag = text_of(r, v);
		r->agent = r->cri = true;
		break;
	case KEY__p: r->agent = r->cri = true; break;
	case KEY__partial:
	case KEY_partial_message: r->partial = truth_of(v); break;
	case KEY_partial_last: r->partial_last = truth_of(v); break;
	case KEY_container_id:
	case KEY_container_name:
		r->container = k == KEY_container_name || !r->container.n ? text_of(r, v)
									  : r->container;
		r->agent = true;
		break;
	case KEY_COUNT: break;
	}
}

/* A key written with escapes is rare; it is compared unescaped all the same. */
static bool read_members(struct ff_reader *c, struct reading *r)
{
	struct ff_value name, v;
	bool first = true;
	int step;
	while ((step = ff_reader_member(c, &first, &name, &v)) == 1) {
		set_key(r, find_key(ff_reader_text(&r->o->mem, &name)), &v);
	}
	return step == 0;
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

static bool is_fd(struct ff_str s)
{
	return ff_str_eqz(s, "stdout") || ff_str_eqz(s, "stderr");
}

/* Docker's driver for fluentd calls it `source`. */
static void find_fd(struct reading *r)
{
	struct ff_jsonl *o = r->o;
	if (r->container.n && !o->stream.p && o->offset < 0 && is_fd(o->source)) {
		o->stream = o->source;
		o->source = (struct ff_str){0};
	}
}

static bool is_shipped(const struct reading *r)
{
	const struct ff_jsonl *o = r->o;
	bool docker = r->message[1].p && r->stamps[3] != FF_TIME_NONE; /* log, date */
	return o->event == FF_JSONL_NONE && is_fd(o->stream) && (r->agent || docker);
}

/* NAME/FD: the two descriptors are two streams, because either may be cut in mid-line. */
static struct ff_str name_shipped(const struct reading *r)
{
	struct ff_jsonl *o = r->o;
	struct ff_label file = {.pod = r->label.pod, .container = r->label.container};
	if (!file.pod.n) {
		file.pod = r->file.n ? r->file : r->container;
		file.container = (struct ff_str){0};
	}
	struct ff_str name = ff_label_stream(&file, o->stream, &o->mem);
	return name.n ? name : o->stream;
}

/* What an agent says, in our words. */
static void translate(struct reading *r)
{
	struct ff_jsonl *o = r->o;
	find_fd(r);
	if (!o->node.p) {
		o->node = r->node.n ? r->node : r->host;
	}
	if (!o->job.p && r->label.name.n) {
		o->job = ff_label_job(&r->label, &o->mem);
		o->run = o->run.p ? o->run : ff_label_run(&r->label);
	}
	o->piece = (r->partial && !r->partial_last) || (r->logtag.n && r->logtag.p[0] == 'P');
	o->shipped = is_shipped(r);
	if (o->shipped) {
		bool docker = r->message[1].p && o->time != FF_TIME_NONE && !r->cri;
		o->piece = o->piece || (docker && !ff_str_ends(o->text, FF_STR("\n")));
		o->fd = o->fd.p ? o->fd : o->stream;
		o->stream = name_shipped(r);
	} else if (!o->stream.p) {
		o->stream = r->file;
	}
}

/* {"log":"text\n","stream":"stderr","time":"..."} (SOURCES.md cri-logs). */
static bool is_container(const struct reading *r)
{
	const struct ff_jsonl *o = r->o;
	bool named = o->job.p || o->run.p || o->node.p || o->source.p || o->kind.p ||
		o->rank >= 0 || o->local_rank >= 0 || o->attempt >= 0 || o->offset >= 0;
	return o->event == FF_JSONL_NONE && !named && is_fd(o->stream) && !r->message[0].p &&
		r->message[1].p && o->time != FF_TIME_NONE && !is_shipped(r);
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
	struct ff_reader c = ff_reader_of(line);
	struct reading r = {.o = o,
		.stamps = {FF_TIME_NONE, FF_TIME_NONE, FF_TIME_NONE, FF_TIME_NONE}};
	reset(o);
	ff_reader_blank(&c);
	if (!ff_reader_take(&c, '{')) {
		return FF_EJSON;
	}
	/* No escape is longer unescaped: the views into mem stay valid, as it never grows again. */
	(void)ff_buf_reserve(&o->mem, line.n + 1 + FF_LABEL_TEXT);
	if (!read_members(&c, &r)) {
		return FF_EJSON;
	}
	ff_reader_blank(&c);
	if (c.p != c.end) {
		return FF_EJSON;
	}
	for (int i = 0; i < 4 && o->stamp == FF_TIME_NONE; i++) {
		o->stamp = r.stamps[i];
	}
	join_text(&r);
	o->container = is_container(&r);
	if (!o->container) {
		translate(&r);
	}
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
