#include "api.h"

#include "base/limits.h"
#include "metrics.h"
#include "status.h"

#include <stdio.h>

static void get_status(struct request *r)
{
	struct ff_buf out = {0};
	if (request_wants_text(r)) {
		status_text(r->d, &out);
		request_text(r, 200, &out);
		return;
	}
	status_render(r->d, true, &out);
	request_json(r, 200, &out);
}

static void get_metrics(struct request *r)
{
	struct ff_buf out = {0};
	metrics_render(r->d, &out);
	request_text(r, 200, &out);
	r->type = "text/plain; version=0.0.4; charset=utf-8";
}

static void get_health(struct request *r)
{
	struct ff_buf out = {0};
	ff_buf_addz(&out, "{\"status\":\"alive\"}\n");
	request_json(r, 200, &out);
}

static void get_ready(struct request *r)
{
	struct ff_buf out = {0};
	if (!r->d->ready || r->d->stopping) {
		request_problem(r, 503, "the daemon is %s", r->d->stopping ? "ending" : "starting");
		return;
	}
	ff_buf_addz(&out, "{\"status\":\"ready\"}\n");
	request_json(r, 200, &out);
}

/* One row a route; a part in braces is any one. A path may stand in several rows, one a method. */
static const struct request_route routes[] = {
	/* method, path, handler, bytes of a body at most (0: has none), who may ask at all */
	{REQUEST_GET, "/healthz", get_health, 0, REQUEST_ANYBODY},
	{REQUEST_GET, "/metrics", get_metrics, 0, REQUEST_USER},
	{REQUEST_GET, "/readyz", get_ready, 0, REQUEST_ANYBODY},
	{REQUEST_POST, "/v1/backup", api_backup_post, FF_HTTP_BODY, REQUEST_ADMIN},
	{REQUEST_GET, "/v1/faults", api_faults_list, 0, REQUEST_USER},
	{REQUEST_GET, "/v1/faults/{id}", api_faults_one, 0, REQUEST_USER},
	{REQUEST_GET, "/v1/jobs", api_list_jobs, 0, REQUEST_USER},
	{REQUEST_GET, "/v1/jobs/{job}", api_jobs_one, 0, REQUEST_USER},
	{REQUEST_DELETE, "/v1/jobs/{job}", api_keep_forget, 0, REQUEST_USER},
	{REQUEST_POST, "/v1/jobs/{job}/end", api_post_end, FF_HTTP_BODY, REQUEST_USER},
	{REQUEST_GET, "/v1/jobs/{job}/events", api_jobs_events, 0, REQUEST_USER},
	{REQUEST_GET, "/v1/jobs/{job}/export", api_export_get, 0, REQUEST_USER},
	{REQUEST_GET, "/v1/jobs/{job}/logs", api_logs_get, 0, REQUEST_USER},
	{REQUEST_GET, "/v1/jobs/{job}/ranks", api_tables_ranks, 0, REQUEST_USER},
	{REQUEST_POST, "/v1/jobs/{job}/start", api_post_start, FF_HTTP_BODY, REQUEST_USER},
	{REQUEST_GET, "/v1/jobs/{job}/timeline", api_tables_timeline, 0, REQUEST_USER},
	{REQUEST_GET, "/v1/jobs/{job}/verdict", api_jobs_verdict, 0, REQUEST_USER},
	{REQUEST_POST, "/v1/logs", api_otlp_post, FF_OTLP_BODY, REQUEST_USER},
	{REQUEST_GET, "/v1/status", get_status, 0, REQUEST_USER},
	{REQUEST_GET, "/v1/watch", api_watch_get, 0, REQUEST_USER},
};

static const size_t nroutes = sizeof routes / sizeof *routes;

static bool is_path(const char *pattern, const struct request *r)
{
	for (size_t i = 0; i < r->nparts; i++) {
		const char *part = r->parts[i];
		if (*pattern != '/') {
			return false;
		}
		struct ff_str want = ff_str_n(pattern + 1, strcspn(pattern + 1, "/"));
		if ((!want.n || want.p[0] != '{') && !ff_str_eqz(want, part)) {
			return false;
		}
		pattern += 1 + want.n;
	}
	return !*pattern;
}

/* What the path takes, as the header Allow says it. */
static void put_allow(struct request *r)
{
	static const char *const names[] = {
		[REQUEST_GET] = "GET, HEAD",
		[REQUEST_POST] = "POST",
		[REQUEST_DELETE] = "DELETE",
	};
	size_t len = 0;
	for (size_t i = 0; i < nroutes; i++) {
		if (is_path(routes[i].path, r) && len < sizeof r->allow) {
			len += (size_t)snprintf(r->allow + len, sizeof r->allow - len, "%s%s",
				len ? ", " : "", names[routes[i].method]);
		}
	}
}

void api_routes_find(struct request *r)
{
	for (size_t i = 0; i < nroutes; i++) {
		if (routes[i].method == r->method && is_path(routes[i].path, r)) {
			r->route = &routes[i];
			return;
		}
	}
	put_allow(r);
}

void api_routes_dispatch(struct request *r)
{
	const struct request_route *route = r->route;
	r->d->counts[DAEMON_COUNT_requests]++;
	if (strlen(r->uri) > FF_HTTP_URI) {
		request_problem(r, 414, "an address has at most %u bytes", FF_HTTP_URI);
	} else if (!r->nparts) {
		request_problem(r, 400,
			"the address can't be read: it is a path of at most %u parts, and %% in it "
			"is followed by two hex digits that are not 00",
			REQUEST_PARTS);
	} else if (!route && *r->allow) {
		request_problem(r, 405, "only %s", r->allow);
	} else if (!route) {
		request_problem(r, 404, "there is nothing here");
	} else if (!request_admit(r, route->who)) {
		return;
	} else if (route->fn == api_otlp_post) {
		route->fn(r); /* errors have a form of their own there */
	} else if (r->too_large) {
		request_problem(r, 413, "a body has at most %zu bytes here", route->body);
	} else if (route->body && !r->is_json) {
		request_problem(r, 415, "the body has to be application/json");
	} else {
		route->fn(r);
	}
}
