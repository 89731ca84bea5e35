#include "request.h"

#include "base/mem.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

static int hex_digit(char c)
{
	if (c >= '0' && c <= '9') {
		return c - '0';
	}
	c = (char)(c | 0x20); /* to lower case */
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* malloc'd; NULL if it is malformed or holds NUL. */
static char *decode(struct ff_str s, bool plus)
{
	struct ff_buf out = {0};
	ff_buf_add(&out, "", 0);
	for (size_t i = 0; i < s.n; i++) {
		char c = s.p[i];
		if (c == '%') {
			bool whole = s.n - i > 2;
			int high = whole ? hex_digit(s.p[i + 1]) : -1;
			int low = whole ? hex_digit(s.p[i + 2]) : -1;
			if (high < 0 || low < 0 || high + low == 0) {
				ff_buf_finish(&out);
				return NULL;
			}
			c = (char)(high * 16 + low);
			i += 2;
		} else if (c == '+' && plus) {
			c = ' ';
		}
		ff_buf_addc(&out, c);
	}
	return ff_buf_take(&out);
}

static struct ff_str path_of(const struct request *r)
{
	return ff_str_n(r->uri, strcspn(r->uri, "?"));
}

enum request_method request_method_parse(const char *name)
{
	static const struct {
		const char *name;
		enum request_method method;
	} methods[] = {
		{"GET", REQUEST_GET},
		{"HEAD", REQUEST_GET},
		{"POST", REQUEST_POST},
		{"DELETE", REQUEST_DELETE},
	};
	for (size_t i = 0; i < sizeof methods / sizeof *methods; i++) {
		if (!strcmp(methods[i].name, name)) {
			return methods[i].method;
		}
	}
	return REQUEST_OTHER;
}

/* Takes `key=value` off the front of what stands behind "?". False: no more. */
static bool take_pair(struct ff_str *rest, struct ff_str *ret_key, struct ff_str *ret_value)
{
	if (!rest->n) {
		return false;
	}
	*rest = ff_str_skip(*rest, 1);
	ptrdiff_t amp = ff_str_chr(*rest, '&', 0);
	struct ff_str pair = ff_str_n(rest->p, amp < 0 ? rest->n : (size_t)amp);
	ptrdiff_t equals = ff_str_chr(pair, '=', 0);
	*ret_key = ff_str_n(pair.p, equals < 0 ? pair.n : (size_t)equals);
	*ret_value = ff_str_skip(pair, ret_key->n + (equals >= 0));
	*rest = ff_str_skip(*rest, pair.n);
	return true;
}

static struct ff_str query_of(const struct request *r)
{
	return ff_str_skip(ff_str_z(r->uri), path_of(r).n);
}

static bool is_query_good(const struct request *r)
{
	struct ff_str rest = query_of(r), key, value;
	while (take_pair(&rest, &key, &value)) {
		char *decoded = decode(value, true);
		if (!decoded) {
			return false;
		}
		free(decoded);
	}
	return true;
}

bool request_parse(struct request *r, const char *uri)
{
	r->uri = ff_xstrdup(uri);
	struct ff_str rest = path_of(r);
	if (!rest.n || rest.p[0] != '/') {
		return false;
	}
	while (rest.n) {
		rest = ff_str_skip(rest, 1);
		ptrdiff_t slash = ff_str_chr(rest, '/', 0);
		size_t n = slash < 0 ? rest.n : (size_t)slash;
		char *part = r->nparts < REQUEST_PARTS ? decode(ff_str_n(rest.p, n), false) : NULL;
		if (!part) {
			return false;
		}
		*FF_ARR_ADD(r->parts, r->nparts, r->cparts) = part;
		rest = ff_str_skip(rest, n);
	}
	return is_query_good(r);
}

void request_finish(struct request *r)
{
	for (size_t i = 0; i < r->nparts; i++) {
		free(r->parts[i]);
	}
	free(r->parts);
	free(r->uri);
	free(r->if_none_match);
	free(r->last_event_id);
	ff_buf_finish(&r->body);
	ff_buf_finish(&r->out);
}

char *request_query(const struct request *r, const char *name)
{
	struct ff_str rest = query_of(r), key, value;
	while (take_pair(&rest, &key, &value)) {
		if (ff_str_eqz(key, name)) {
			return decode(value, true);
		}
	}
	return NULL;
}

bool request_number(
	struct request *r, const char *name, int64_t min, int64_t max, int64_t def, int64_t *ret)
{
	char *text = request_query(r, name);
	int64_t v = def;
	bool good = !text || (ff_str_int(ff_str_z(text), &v) && v >= min && v <= max);
	if (good) {
		*ret = v;
	} else {
		request_problem(r, 400, "%s is a whole number from %lld to %lld", name,
			(long long)min, (long long)max);
	}
	free(text);
	return good;
}

static void answer(struct request *r, unsigned status, const char *type, struct ff_buf *body)
{
	ff_buf_finish(&r->out);
	r->out = *body;
	*body = (struct ff_buf){0};
	r->status = status;
	r->type = type;
	r->answered = true;
}

bool request_flag(const struct request *r, const char *name)
{
	char *text = request_query(r, name);
	bool yes = text && strcmp(text, "0") != 0 && strcmp(text, "no") != 0;
	free(text);
	return yes;
}

bool request_wants_text(const struct request *r)
{
	char *format = request_query(r, "format");
	bool text = format ? !strcmp(format, "text") : r->wants_text;
	free(format);
	return text;
}

void request_json(struct request *r, unsigned status, struct ff_buf *body)
{
	answer(r, status, "application/json", body);
}

void request_text(struct request *r, unsigned status, struct ff_buf *body)
{
	answer(r, status, "text/plain; charset=utf-8", body);
}

static const char *title_of(unsigned status)
{
	static const struct {
		unsigned status;
		const char *title;
	} titles[] = {
		{400, "Bad Request"},
		{401, "Unauthorized"},
		{403, "Forbidden"},
		{404, "Not Found"},
		{405, "Method Not Allowed"},
		{409, "Conflict"},
		{413, "Content Too Large"},
		{414, "URI Too Long"},
		{415, "Unsupported Media Type"},
		{421, "Misdirected Request"},
		{422, "Unprocessable Content"},
		{500, "Internal Server Error"},
		{503, "Service Unavailable"},
	};
	for (size_t i = 0; i < sizeof titles / sizeof *titles; i++) {
		if (titles[i].status == status) {
			return titles[i].title;
		}
	}
	return "Error";
}

void request_problem(struct request *r, unsigned status, const char *fmt, ...)
{
	char detail[600];
	va_list ap;
	va_start(ap, fmt);
	(void)vsnprintf(detail, sizeof detail, fmt, ap);
	va_end(ap);
	struct ff_buf out = {0};
	struct ff_jw w;
	ff_jw_init(&w, &out);
	ff_jw_open(&w, '{');
	ff_jw_kstrz(&w, "type", "about:blank");
	ff_jw_kstrz(&w, "title", title_of(status));
	ff_jw_kint(&w, "status", status);
	ff_jw_kstrz(&w, "detail", detail);
	ff_jw_close(&w, '}');
	ff_buf_addc(&out, '\n');
	r->version = 0;
	answer(r, status, "application/problem+json", &out);
	r->d->counts[DAEMON_COUNT_requests_bad]++;
}

bool request_admit(struct request *r, enum request_who who)
{
	bool good = who != REQUEST_ADMIN || r->who.host; /* who nobody knows: api_guard.h */
	if (!good) {
		request_problem(r, 403,
			"only root and the daemon's own user may do this, on the api socket");
	}
	return good;
}

bool request_may(const struct request *r, const struct ff_run *run)
{
	return access_may(&r->who, run);
}

/* The name without ~N or /RUN. */
static bool names_job(const char *name, const char *job)
{
	return ff_str_eqz(ff_str_n(name, strcspn(name, "~/")), job);
}

static void say_unknown(struct request *r, const char *name)
{
	struct ff_str job = ff_str_n(name, strcspn(name, "~/"));
	const struct ff_run *run = name[job.n] ? ff_runs_find(&r->d->runs, job, NULL) : NULL;
	if (run && request_may(r, run)) {
		request_problem(r, 404, "job \"%s\" has no run \"%s\"", run->job->facts.job,
			name + job.n + (name[job.n] == '/'));
	} else {
		request_problem(r, 404, "no job \"%s\" is known", name);
	}
}

struct ff_run *request_run(struct request *r, size_t index, bool exact)
{
	return request_run_named(r, r->parts[index], exact);
}

struct ff_run *request_run_named(struct request *r, const char *name, bool exact)
{
	bool many = false;
	struct ff_run *run = ff_runs_find(&r->d->runs, ff_str_z(name), &many);
	if (many && !exact) {
		request_problem(r, 409, "several jobs begin with \"%s\"", name);
		return NULL;
	}
	if (!run || (exact && !names_job(name, run->job->facts.job))) {
		say_unknown(r, name);
		return NULL;
	}
	if (!request_may(r, run)) {
		request_problem(r, 403, "job \"%s\" belongs to another user", run->job->facts.job);
		return NULL;
	}
	return run;
}

void request_list_open(struct ff_jw *w, struct ff_buf *out, const char *schema)
{
	ff_jw_init(w, out);
	ff_jw_open(w, '{');
	ff_jw_kstrz(w, "schema", schema);
	ff_jw_key(w, "items");
	ff_jw_open(w, '[');
}

void request_list_close(struct ff_jw *w, const char *next)
{
	ff_jw_close(w, ']');
	ff_jw_kstrz(w, "next", next);
	ff_jw_close(w, '}');
	ff_buf_addc(w->out, '\n');
}
