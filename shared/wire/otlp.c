#include "wire/otlp.h"

#include "base/json.h"
#include "base/limits.h"
#include "wire/label.h"
#include "wire/reader.h"

#include <stdio.h>

/* What an attribute may say. */
enum slot {
	SLOT_JOB,
	SLOT_JOB_NAME, /* of a Kubernetes Job */
	SLOT_JOB_UID,
	SLOT_SPACE,
	SLOT_RUN,
	SLOT_NODE,
	SLOT_STREAM,
	SLOT_POD,
	SLOT_CONTAINER,
	SLOT_SERVICE,
	SLOT_INSTANCE,
	SLOT_KIND,
	SLOT_FD,
	SLOT_RANK,
	SLOT_LOCAL_RANK,
	SLOT_ATTEMPT,
	SLOT_STACK,
	SLOT_COUNT,
};

/* The higher weight holds; of equal ones the record's. */
static const struct {
	const char *name;
	enum slot slot;
	unsigned weight;
} known[] = {
	{"firstfault.job", SLOT_JOB, 4},
	{"job", SLOT_JOB, 3},
	{"k8s.job.name", SLOT_JOB_NAME, 1},
	{"k8s.job.uid", SLOT_JOB_UID, 1},
	{"k8s.namespace.name", SLOT_SPACE, 1},
	{"firstfault.run", SLOT_RUN, 2},
	{"run", SLOT_RUN, 1},
	{"firstfault.node", SLOT_NODE, 4},
	{"node", SLOT_NODE, 3},
	{"k8s.node.name", SLOT_NODE, 2},
	{"host.name", SLOT_NODE, 1},
	{"firstfault.stream", SLOT_STREAM, 3},
	{"log.file.path", SLOT_STREAM, 2},
	{"log.file.name", SLOT_STREAM, 1},
	{"k8s.pod.name", SLOT_POD, 1},
	{"k8s.container.name", SLOT_CONTAINER, 1},
	{"service.name", SLOT_SERVICE, 1},
	{"service.instance.id", SLOT_INSTANCE, 1},
	{"firstfault.kind", SLOT_KIND, 1},
	{"firstfault.fd", SLOT_FD, 2},
	{"log.iostream", SLOT_FD, 1},
	{"firstfault.rank", SLOT_RANK, 2},
	{"rank", SLOT_RANK, 1},
	{"firstfault.local_rank", SLOT_LOCAL_RANK, 2},
	{"local_rank", SLOT_LOCAL_RANK, 1},
	{"firstfault.attempt", SLOT_ATTEMPT, 2},
	{"attempt", SLOT_ATTEMPT, 1},
	{"exception.stacktrace", SLOT_STACK, 1},
};

/* A pod's labels: as the semantic conventions name them, and the collector's k8sattributes. */
static const char *const label_fronts[] = {"k8s.pod.label.", "k8s.pod.labels."};

struct attributes {
	struct ff_str values[SLOT_COUNT];
	unsigned weights[SLOT_COUNT];
	struct ff_label label;
};

struct walk {
	ff_otlp_fn fn; /* NULL: only the form is looked at */
	void *ud;
	const char *bad;            /* what is wrong with the form */
	struct attributes resource; /* of the records that come */
	struct ff_buf resource_mem; /* what its attributes had to unescape */
	struct ff_buf mem;          /* the same of a record, and what is made for it */
	struct ff_buf text;
};

static bool fail(struct walk *w, const char *what)
{
	w->bad = w->bad ? w->bad : what;
	return false;
}

/* ---- AnyValue */

/* {"stringValue":...}: the name of its kind and the value. False: it is empty, or none. */
static bool read_any(const struct ff_value *v, struct ff_str *ret_kind, struct ff_value *ret)
{
	struct ff_reader c = ff_reader_of(v->raw);
	struct ff_value name, value;
	bool first = true, found = false;
	if (v->type != FF_VALUE_NESTED || !ff_reader_take(&c, '{')) {
		return false;
	}
	while (ff_reader_member(&c, &first, &name, &value) == 1) {
		if (value.type != FF_VALUE_NULL) {
			*ret_kind = name.raw;
			*ret = value;
			found = true;
		}
	}
	return found;
}

/* A string is unescaped, of a number and a truth value stands what was written. */
static struct ff_str scalar(const struct ff_value *v, struct ff_buf *mem)
{
	struct ff_str kind;
	struct ff_value value;
	if (!read_any(v, &kind, &value) || value.type == FF_VALUE_NESTED) {
		return (struct ff_str){0};
	}
	return value.type == FF_VALUE_STRING ? ff_reader_text(mem, &value) : value.raw;
}

struct list {
	struct ff_reader c;
	bool first;
};

static bool list_open(struct list *l, const struct ff_value *v)
{
	*l = (struct list){ff_reader_of(v->raw), true};
	return v->type == FF_VALUE_NESTED && ff_reader_take(&l->c, '[');
}

static bool list_next(struct list *l, struct ff_value *ret)
{
	return ff_reader_item(&l->c, &l->first) == 1 && ff_reader_value(&l->c, 1, ret);
}

/* The elements of an arrayValue or kvlistValue: {"values":[...]}. */
static bool list_of(struct list *l, const struct ff_value *v)
{
	struct ff_reader c = ff_reader_of(v->raw);
	struct ff_value name, value;
	bool first = true, found = false;
	if (v->type != FF_VALUE_NESTED || !ff_reader_take(&c, '{')) {
		return false;
	}
	while (ff_reader_member(&c, &first, &name, &value) == 1) {
		if (ff_str_eqz(name.raw, "values")) {
			found = list_open(l, &value);
		}
	}
	return found;
}

/* {"key":K,"value":V} */
static bool read_pair(const struct ff_value *v, struct ff_value *ret_key, struct ff_value *ret)
{
	struct ff_reader c = ff_reader_of(v->raw);
	struct ff_value name, value;
	bool first = true, has_key = false, has_value = false;
	if (v->type != FF_VALUE_NESTED || !ff_reader_take(&c, '{')) {
		return false;
	}
	while (ff_reader_member(&c, &first, &name, &value) == 1) {
		if (ff_str_eqz(name.raw, "key") && value.type == FF_VALUE_STRING) {
			*ret_key = value;
			has_key = true;
		} else if (ff_str_eqz(name.raw, "value")) {
			*ret = value;
			has_value = true;
		}
	}
	return has_key && has_value;
}

static void add_quoted(struct ff_buf *out, struct ff_str raw)
{
	ff_buf_addc(out, '"');
	ff_buf_adds(out, raw);
	ff_buf_addc(out, '"');
}

static void render_any(struct ff_buf *out, const struct ff_value *v, int depth);

static void render_list(struct ff_buf *out, const struct ff_value *v, bool pairs, int depth)
{
	struct list l;
	struct ff_value item, key, value;
	size_t n = 0;
	bool there = list_of(&l, v);
	ff_buf_addc(out, pairs ? '{' : '[');
	while (there && list_next(&l, &item)) {
		if (pairs && !read_pair(&item, &key, &value)) {
			continue;
		}
		if (n++) {
			ff_buf_addc(out, ',');
		}
		if (pairs) {
			add_quoted(out, key.raw);
			ff_buf_addc(out, ':');
		}
		render_any(out, pairs ? &value : &item, depth + 1);
	}
	ff_buf_addc(out, pairs ? '}' : ']');
}

/* As plain JSON; strings as they were written. */
static void render_any(struct ff_buf *out, const struct ff_value *v, int depth)
{
	struct ff_str kind;
	struct ff_value value;
	if (depth >= FF_JSON_DEPTH || !read_any(v, &kind, &value)) {
		ff_buf_addz(out, "null");
	} else if (value.type == FF_VALUE_NESTED) {
		render_list(out, &value, ff_str_eqz(kind, "kvlistValue"), depth);
	} else if (value.type == FF_VALUE_STRING && !ff_str_eqz(kind, "intValue")) {
		add_quoted(out, value.raw);
	} else {
		ff_buf_adds(out, value.raw);
	}
}

/* ---- attributes */

static void set_slot(struct attributes *a, enum slot slot, unsigned weight, struct ff_str s)
{
	if (s.n && weight >= a->weights[slot]) {
		a->weights[slot] = weight;
		a->values[slot] = s;
	}
}

static void set_label(struct attributes *a, struct ff_str key, struct ff_str value)
{
	for (size_t i = 0; i < sizeof label_fronts / sizeof *label_fronts; i++) {
		if (ff_str_starts(key, ff_str_z(label_fronts[i]))) {
			ff_label_add(&a->label, ff_str_skip(key, strlen(label_fronts[i])), value);
		}
	}
}

static void set_attribute(struct attributes *a, struct ff_str key, struct ff_str value)
{
	for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
		if (ff_str_eqz(key, known[i].name)) {
			set_slot(a, known[i].slot, known[i].weight, value);
			return;
		}
	}
	set_label(a, key, value);
}

static bool read_attributes(
	struct walk *w, const struct ff_value *v, struct attributes *a, struct ff_buf *mem)
{
	struct list l;
	struct ff_value item, key, value;
	if (v->type == FF_VALUE_NULL) {
		return true;
	}
	if (!list_open(&l, v)) {
		return fail(w, "attributes is no array");
	}
	while (list_next(&l, &item)) {
		if (read_pair(&item, &key, &value)) {
			struct ff_str name = ff_reader_text(mem, &key);
			set_attribute(a, name, scalar(&value, mem));
		}
	}
	return true;
}

/* ---- a record */

/* Nanoseconds since 1970 as a number or a string of digits; 0: not known. */
static void read_time(const struct ff_value *v, ff_usec *ret, unsigned *bad)
{
	int64_t ns = 0;
	bool good = v->type == FF_VALUE_NULL || (v->type != FF_VALUE_NESTED &&
		ff_str_int(v->raw, &ns) && (!ns || ff_usec_usable(ns / 1000)));
	*bad += !good;
	*ret = good && ns ? ns / 1000 : FF_TIME_NONE;
}

/* The member of a map that is its message, as in JSON Lines. */
static bool find_message(struct walk *w, const struct ff_value *map, struct ff_str *ret)
{
	static const char *const names[] = {"message", "log", "msg"};
	struct list l;
	struct ff_value item, key, value;
	size_t best = sizeof names / sizeof *names;
	bool there = list_of(&l, map);
	while (there && list_next(&l, &item)) {
		for (size_t i = 0; read_pair(&item, &key, &value) && i < best; i++) {
			struct ff_str kind;
			struct ff_value text;
			if (ff_str_eqz(key.raw, names[i]) && read_any(&value, &kind, &text) &&
				text.type == FF_VALUE_STRING) {
				*ret = ff_reader_text(&w->mem, &text);
				best = i;
			}
		}
	}
	return best < sizeof names / sizeof *names;
}

static void read_body(struct walk *w, const struct ff_value *v, struct ff_otlp_record *r)
{
	struct ff_str kind;
	struct ff_value value;
	r->has_text = read_any(v, &kind, &value);
	if (!r->has_text) {
		return;
	}
	if (value.type != FF_VALUE_NESTED) {
		r->text = scalar(v, &w->mem);
	} else if (!ff_str_eqz(kind, "kvlistValue") || !find_message(w, &value, &r->text)) {
		render_any(&w->text, v, 0);
		r->text = ff_buf_str(&w->text);
	}
}

static void add_stack(struct walk *w, struct ff_str stack, struct ff_otlp_record *r)
{
	if (!stack.n) {
		return;
	}
	if (!r->has_text) {
		r->text = stack;
	} else {
		struct ff_buf both = {0};
		ff_buf_adds(&both, r->text);
		if (!both.len || both.p[both.len - 1] != '\n') {
			ff_buf_addc(&both, '\n');
		}
		ff_buf_adds(&both, stack);
		ff_buf_finish(&w->text);
		w->text = both;
		r->text = ff_buf_str(&w->text);
	}
	r->has_text = true;
}

static int64_t number(struct ff_str s, int64_t max, unsigned *bad)
{
	int64_t n;
	if (!s.p) {
		return -1;
	}
	if (ff_str_int(s, &n) && n >= 0 && n <= max) {
		return n;
	}
	(*bad)++;
	return -1;
}

/* The first of these that is there. */
static struct ff_str either(struct ff_str a, struct ff_str b)
{
	return a.n ? a : b;
}

/* What the attributes say together. */
static void identify(struct walk *w, struct attributes *a, struct ff_otlp_record *r)
{
	const struct ff_str *v = a->values;
	struct ff_label *l = &a->label;
	struct ff_label service = {.pod = v[SLOT_SERVICE], .container = v[SLOT_INSTANCE]};
	ff_label_add(l, FF_STR("job-name"), v[SLOT_JOB_NAME]); /* if no label says more */
	l->uid = either(l->uid, v[SLOT_JOB_UID]);
	l->space = v[SLOT_SPACE];
	l->pod = v[SLOT_POD];
	l->container = v[SLOT_CONTAINER];
	r->job = v[SLOT_JOB];
	r->run = v[SLOT_RUN];
	if (!r->job.n) {
		r->job = ff_label_job(l, &w->mem);
		r->run = either(r->run, ff_label_run(l));
	}
	r->fd = v[SLOT_FD];
	r->stream = v[SLOT_STREAM];
	r->stream = either(r->stream, ff_label_stream(l, r->fd, &w->mem));
	r->stream = either(r->stream, ff_label_stream(&service, r->fd, &w->mem));
	r->node = v[SLOT_NODE];
	r->kind = v[SLOT_KIND];
	r->rank = number(v[SLOT_RANK], FF_RANKS_MAX - 1, &r->bad);
	r->local_rank = number(v[SLOT_LOCAL_RANK], FF_RANKS_MAX - 1, &r->bad);
	r->attempt = number(v[SLOT_ATTEMPT], INT32_MAX, &r->bad);
}

static bool read_record(struct walk *w, const struct ff_value *record)
{
	struct ff_reader c = ff_reader_of(record->raw);
	struct ff_value name, v, body = {FF_VALUE_NULL, {0}, false};
	struct ff_otlp_record r = {.time = FF_TIME_NONE};
	struct attributes a = w->resource;
	ff_usec observed = FF_TIME_NONE;
	bool first = true, good = true;
	if (record->type != FF_VALUE_NESTED || !ff_reader_take(&c, '{')) {
		return fail(w, "a record is no object");
	}
	ff_buf_clear(&w->mem);
	ff_buf_clear(&w->text);
	(void)ff_buf_reserve(&w->mem, record->raw.n + 2 * FF_LABEL_TEXT);
	while (good && ff_reader_member(&c, &first, &name, &v) == 1) {
		if (ff_str_eqz(name.raw, "timeUnixNano")) {
			read_time(&v, &r.time, &r.bad);
		} else if (ff_str_eqz(name.raw, "observedTimeUnixNano")) {
			read_time(&v, &observed, &r.bad);
		} else if (ff_str_eqz(name.raw, "body")) {
			body = v;
		} else if (ff_str_eqz(name.raw, "attributes")) {
			good = read_attributes(w, &v, &a, &w->mem);
		}
	}
	if (!good || !w->fn) {
		return good;
	}
	r.time = r.time == FF_TIME_NONE ? observed : r.time;
	read_body(w, &body, &r);
	add_stack(w, a.values[SLOT_STACK], &r);
	identify(w, &a, &r);
	w->fn(w->ud, &r);
	return true;
}

/* ---- what holds records */

/* Each element of the array v (null: none). */
static bool each(struct walk *w, const struct ff_value *v, const char *what,
	bool (*fn)(struct walk *w, const struct ff_value *item))
{
	struct list l;
	struct ff_value item;
	bool good = true;
	if (v->type == FF_VALUE_NULL) {
		return true;
	}
	if (!list_open(&l, v)) {
		return fail(w, what);
	}
	while (good && list_next(&l, &item)) {
		good = fn(w, &item);
	}
	return good;
}

static bool read_scope(struct walk *w, const struct ff_value *scope)
{
	struct ff_reader c = ff_reader_of(scope->raw);
	struct ff_value name, v;
	bool first = true, good = true;
	if (scope->type != FF_VALUE_NESTED || !ff_reader_take(&c, '{')) {
		return fail(w, "an element of scopeLogs is no object");
	}
	while (good && ff_reader_member(&c, &first, &name, &v) == 1) {
		if (ff_str_eqz(name.raw, "logRecords")) {
			good = each(w, &v, "logRecords is no array", read_record);
		}
	}
	return good;
}

static bool read_resource(struct walk *w, const struct ff_value *resource)
{
	struct ff_reader c = ff_reader_of(resource->raw);
	struct ff_value name, v;
	bool first = true, good = true;
	if (resource->type == FF_VALUE_NULL) {
		return true;
	}
	if (resource->type != FF_VALUE_NESTED || !ff_reader_take(&c, '{')) {
		return fail(w, "resource is no object");
	}
	(void)ff_buf_reserve(&w->resource_mem, resource->raw.n);
	while (good && ff_reader_member(&c, &first, &name, &v) == 1) {
		if (ff_str_eqz(name.raw, "attributes")) {
			good = read_attributes(w, &v, &w->resource, &w->resource_mem);
		}
	}
	return good;
}

/* Members may stand in any order: who speaks is read before what is said. */
static bool read_resource_logs(struct walk *w, const struct ff_value *logs)
{
	struct ff_reader c = ff_reader_of(logs->raw);
	struct ff_value name, v, resource = {FF_VALUE_NULL, {0}, false}, scopes = resource;
	bool first = true;
	w->resource = (struct attributes){0};
	ff_buf_clear(&w->resource_mem);
	if (logs->type != FF_VALUE_NESTED || !ff_reader_take(&c, '{')) {
		return fail(w, "an element of resourceLogs is no object");
	}
	while (ff_reader_member(&c, &first, &name, &v) == 1) {
		if (ff_str_eqz(name.raw, "resource")) {
			resource = v;
		} else if (ff_str_eqz(name.raw, "scopeLogs")) {
			scopes = v;
		}
	}
	return read_resource(w, &resource) &&
		each(w, &scopes, "scopeLogs is no array", read_scope);
}

static bool walk(struct walk *w, const struct ff_value *root)
{
	struct ff_reader c = ff_reader_of(root->raw);
	struct ff_value name, v;
	bool first = true, good = true;
	if (root->type != FF_VALUE_NESTED || !ff_reader_take(&c, '{')) {
		return fail(w, "it is no object");
	}
	while (good && ff_reader_member(&c, &first, &name, &v) == 1) {
		if (ff_str_eqz(name.raw, "resourceLogs")) {
			good = each(w, &v, "resourceLogs is no array", read_resource_logs);
		}
	}
	return good;
}

int ff_otlp_parse(struct ff_str body, ff_otlp_fn fn, void *ud, struct ff_err *err)
{
	struct ff_reader c = ff_reader_of(body);
	struct walk w = {.ud = ud};
	struct ff_value root;
	bool good = ff_reader_value(&c, 0, &root);
	ff_reader_blank(&c);
	if (!good || c.p != c.end) {
		(void)fail(&w, "it is no JSON");
	} else if (walk(&w, &root)) { /* the form of all of it, before any of it is taken */
		w.fn = fn;
		(void)walk(&w, &root);
	}
	ff_buf_finish(&w.resource_mem);
	ff_buf_finish(&w.mem);
	ff_buf_finish(&w.text);
	return w.bad ? ff_err_set(err, FF_EJSON, "no ExportLogsServiceRequest: %s", w.bad) : 0;
}

/* ---- answers */

void ff_otlp_answer_render(struct ff_buf *out, uint64_t rejected, const char *why)
{
	struct ff_jw w;
	ff_jw_init(&w, out);
	ff_jw_open(&w, '{');
	if (rejected) {
		char number[24];
		(void)snprintf(number, sizeof number, "%llu", (unsigned long long)rejected);
		ff_jw_key(&w, "partialSuccess");
		ff_jw_open(&w, '{');
		ff_jw_kstrz(&w, "rejectedLogRecords", number); /* 64 bits are a string */
		ff_jw_kstrz(&w, "errorMessage", why);
		ff_jw_close(&w, '}');
	}
	ff_jw_close(&w, '}');
}

void ff_otlp_status_render(struct ff_buf *out, int code, const char *text)
{
	struct ff_jw w;
	ff_jw_init(&w, out);
	ff_jw_open(&w, '{');
	ff_jw_kint(&w, "code", code);
	ff_jw_kstrz(&w, "message", text);
	ff_jw_close(&w, '}');
}
