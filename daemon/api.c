#include "api.h"

#include "api_guard.h"
#include "api_greet.h"
#include "api_kept.h"
#include "api_listen.h"
#include "base/mem.h"
#include "conn.h"
#include "shell/log.h"
#include "tail.h"

#include <microhttpd.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>

#define IDLE_SECONDS 30u
#define POOL_BYTES 65536 /* of a connection: its address (a cursor is long) and headers */
#define DISCARD_MAX 33554432       /* bytes of a body that is too large; then the connection goes */
#define BODIES_MAX (64u * 1024u * 1024u) /* bytes of all bodies; one beyond 1 MiB is told to wait */
#define DRAIN_MS 20                /* between two looks at what a POST waits for */
#define TICK_MS 50                 /* between two looks at what has come */
#define PULL_BYTES 16384           /* of an answer without end at a time */
#define QUIET_US ((ff_usec)500000) /* nothing came for so long: the last lines have come */
#define REFUSAL_US FF_SECOND       /* after it a wrong token is answered */
#define COMMIT_US (30 * FF_SECOND) /* an answer waits for its commit no longer */

struct api {
	struct daemon *d;
	struct MHD_Daemon *mhd;
	uv_poll_t poll;
	uv_timer_t timer;            /* MHD's timeout */
	uv_timer_t drain;            /* runs while a POST waits */
	uv_timer_t later;            /* runs while an answer is made in slices */
	uv_timer_t tick; /* runs while an answer waits for something to come */
	uv_prepare_t prepare;        /* of each turn of the loop, before it waits */
	uint64_t turned_ns, idle_ns; /* when it was there last, and how long it had waited */
	uint64_t longest_ns;         /* its longest turn, without waiting */
	bool open, closing;
	struct api_listen *listen;
	struct api_greet *greet;
	int64_t accepts; /* while MHD is given a connection: whose (api_listen.h) */
	struct request *requests;
	struct link *links; /* connections */
	size_t body_bytes; /* of all of them */
	struct watchers *watchers;
	struct api_kept *kept;
};

static void run(struct api *api);

/* ---- MHD in the loop */

static void on_timer(uv_timer_t *timer)
{
	run(timer->data);
}

static void on_poll(uv_poll_t *poll, int status, int events)
{
	run(poll->data);
}

static void run(struct api *api)
{
	MHD_UNSIGNED_LONG_LONG ms;
	if (api->closing) {
		return;
	}
	(void)MHD_run(api->mhd);
	if (MHD_get_timeout(api->mhd, &ms) == MHD_YES) {
		uv_timer_start(&api->timer, on_timer, ms, 0);
	} else {
		uv_timer_stop(&api->timer);
	}
}

/* ---- how long the loop lets others wait */

static void on_prepare(uv_prepare_t *prepare)
{
	struct api *api = prepare->data;
	uint64_t now = uv_hrtime(), idle = uv_metrics_idle_time(&api->d->loop);
	uint64_t turn = now - api->turned_ns, waited = idle - api->idle_ns;
	if (turn > waited && turn - waited > api->longest_ns) {
		api->longest_ns = turn - waited;
	}
	api->turned_ns = now;
	api->idle_ns = idle;
}

struct watchers *api_watchers(const struct api *api)
{
	return api->watchers;
}

struct api_kept *api_kept(const struct api *api)
{
	return api->kept;
}

void api_describe(const struct api *api, struct ff_jw *w)
{
	int64_t requests = 0;
	for (const struct request *r = api->requests; r; r = r->next) {
		requests++;
	}
	ff_jw_open(w, '{');
	ff_jw_kint(w, "requests_open", requests);
	ff_jw_kint(w, "watchers", (int64_t)api_watch_count(api->watchers));
	ff_jw_kint(w, "kept_bytes", (int64_t)api_kept_bytes(api->kept));
	ff_jw_kint(w, "loop_longest_us", (int64_t)(api->longest_ns / 1000));
	ff_jw_close(w, '}');
}

/* ---- requests */

static void *on_uri(void *cls, const char *uri, struct MHD_Connection *connection)
{
	struct api *api = cls;
	struct request *r = ff_xcalloc(1, sizeof *r);
	r->api = api;
	r->d = api->d;
	r->connection = connection;
	r->next = api->requests;
	if (r->next) {
		r->next->prev = r;
	}
	api->requests = r;
	if (!request_parse(r, uri)) {
		for (size_t i = 0; i < r->nparts; i++) {
			free(r->parts[i]);
		}
		r->nparts = 0;
	}
	return r;
}

static void drop_body(struct request *r)
{
	r->api->body_bytes -= r->body.len;
	ff_buf_finish(&r->body);
}

static void on_completed(void *cls, struct MHD_Connection *connection, void **context,
	enum MHD_RequestTerminationCode code)
{
	struct api *api = cls;
	struct request *r = *context;
	if (!r) {
		return;
	}
	if (r->waits) {
		ledger_forget(api->d->ledger, &r->wait);
	}
	api_list_orphan(r);
	api_logs_orphan(r);
	api_follow_orphan(r);
	api_export_orphan(r);
	api_keep_orphan(r);
	api_backup_orphan(r);
	drop_body(r);
	api_watch_orphan(r, code == MHD_REQUEST_TERMINATED_TIMEOUT_REACHED);
	*(r->prev ? &r->prev->next : &api->requests) = r->next;
	if (r->next) {
		r->next->prev = r->prev;
	}
	request_finish(r);
	free(r);
	*context = NULL;
}

/* What belongs to a connection and not to one of its requests. */
struct link {
	struct link *prev, *next; /* the API's list */
	struct MHD_Connection *connection;
	int64_t peer;           /* api_listen.h */
	struct access_peer who; /* of its last request */
	struct api_otlp *otlp;
};

/* Also called inside MHD_add_connection. */
static void on_connection(void *cls, struct MHD_Connection *connection, void **context,
	enum MHD_ConnectionNotificationCode code)
{
	struct api *api = cls;
	struct link *link = *context;
	if (code == MHD_CONNECTION_NOTIFY_STARTED) {
		link = ff_xcalloc(1, sizeof *link);
		link->connection = connection;
		link->peer = api->accepts;
		link->otlp = api_otlp_create(api->d);
		link->next = api->links;
		if (link->next) {
			link->next->prev = link;
		}
		api->links = link;
		*context = link;
	} else if (link) {
		api_listen_done(api->listen, link->peer);
		api_otlp_destroy(link->otlp);
		*(link->prev ? &link->prev->next : &api->links) = link->next;
		if (link->next) {
			link->next->prev = link->prev;
		}
		free(link);
		*context = NULL;
	}
}

static bool begins_with(const char *s, const char *front)
{
	return s && !strncasecmp(s, front, strlen(front));
}

static void read_head(struct request *r, const char *method)
{
	struct MHD_Connection *c = r->connection;
	r->method = request_method_parse(method);
	api_routes_find(r);
	const char *type = MHD_lookup_connection_value(c, MHD_HEADER_KIND, "Content-Type");
	const char *json = "application/json";
	char end = begins_with(type, json) ? type[strlen(json)] : 'x';
	r->is_json = end == '\0' || end == ';' || end == ' ';
	r->wants_text = begins_with(
		MHD_lookup_connection_value(c, MHD_HEADER_KIND, "Accept"), "text/plain");
	const char *coding = MHD_lookup_connection_value(c, MHD_HEADER_KIND, "Content-Encoding");
	r->is_coded = coding && *coding && strcasecmp(coding, "identity") != 0;
	r->is_gzip = coding && !strcasecmp(coding, "gzip");
	r->if_none_match =
		ff_xstrdup(MHD_lookup_connection_value(c, MHD_HEADER_KIND, "If-None-Match"));
	r->last_event_id =
		ff_xstrdup(MHD_lookup_connection_value(c, MHD_HEADER_KIND, "Last-Event-ID"));
	api_guard_look(r);
	const union MHD_ConnectionInfo *info =
		MHD_get_connection_info(c, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
	struct link *link = info ? info->socket_context : NULL;
	if (link) {
		link->who = r->who;
		r->feeder = link->otlp;
	}
}

/* Adds to the body; false to cut the connection. */
static bool take_body(struct request *r, const char *p, size_t n)
{
	size_t max = r->route && !r->refused ? r->route->body : 0;
	r->too_large = r->too_large || r->body.len + n > max;
	/* bodies of usual size always have room: there are at most as many as places */
	r->crowded = r->crowded || (r->body.len + n > FF_HTTP_BODY &&
		r->api->body_bytes + n > BODIES_MAX);
	if (!r->too_large && !r->crowded) {
		ff_buf_add(&r->body, p, n);
		r->api->body_bytes += n;
		return true;
	}
	drop_body(r);
	r->thrown += n;
	return r->thrown <= DISCARD_MAX;
}

static bool is_unchanged(const struct request *r, const char *etag)
{
	return r->status == 200 && r->version && r->if_none_match && r->method == REQUEST_GET &&
		strstr(r->if_none_match, etag);
}

static ssize_t on_pull(void *cls, uint64_t pos, char *buf, size_t max)
{
	struct request *r = cls;
	ssize_t n = r->api->closing ? -1 : r->pull(r, buf, max);
	if (n == 0) {
		r->suspended = true;
		MHD_suspend_connection(r->connection);
	}
	return n < 0 ? MHD_CONTENT_READER_END_OF_STREAM : n;
}

static struct MHD_Response *make_response(struct request *r, size_t n)
{
	if (r->pull) {
		return MHD_create_response_from_callback(
			MHD_SIZE_UNKNOWN, PULL_BYTES, on_pull, r, NULL);
	}
	char *bytes = ff_buf_take(&r->out);
	struct MHD_Response *response =
		MHD_create_response_from_buffer(n, bytes, MHD_RESPMEM_MUST_FREE);
	if (!response) {
		free(bytes);
	}
	return response;
}

static enum MHD_Result send_answer(struct request *r)
{
	char etag[32];
	(void)snprintf(etag, sizeof etag, "\"%u\"", r->version);
	bool unchanged = is_unchanged(r, etag);
	size_t n = unchanged ? 0 : r->out.len;
	ff_log_debug("api", "uid=%lld uri=%s status=%u bytes=%zu", (long long)r->who.uid, r->uri,
		unchanged ? 304 : r->status, n);
	struct MHD_Response *response = make_response(r, n);
	if (!response) {
		return MHD_NO;
	}
	(void)MHD_add_response_header(response, "Content-Type", r->type);
	(void)MHD_add_response_header(response, "Cache-Control", "no-store");
	if (r->retry_s) {
		char seconds[16];
		(void)snprintf(seconds, sizeof seconds, "%u", r->retry_s);
		(void)MHD_add_response_header(response, "Retry-After", seconds);
	}
	if (r->version) {
		(void)MHD_add_response_header(response, "ETag", etag);
	}
	if (r->status == 401) {
		(void)MHD_add_response_header(response, "WWW-Authenticate", "Bearer");
	}
	if (r->status == 405) {
		(void)MHD_add_response_header(response, "Allow", r->allow);
	}
	enum MHD_Result result =
		MHD_queue_response(r->connection, unchanged ? 304 : r->status, response);
	MHD_destroy_response(response);
	return result;
}

static void on_drain(uv_timer_t *timer);

static void refuse(struct request *r)
{
	r->d->counts[DAEMON_COUNT_requests]++;
	if (!r->slow) {
		api_guard_answer(r);
		return;
	}
	r->pending = true;
	r->stage = REQUEST_REFUSAL;
	r->deadline_us = (ff_usec)uv_now(&r->d->loop) * 1000 + REFUSAL_US;
	uv_timer_start(&r->api->drain, on_drain, DRAIN_MS, DRAIN_MS);
}

static enum MHD_Result on_request(void *cls, struct MHD_Connection *connection, const char *url,
	const char *method, const char *version, const char *data, size_t *size, void **context)
{
	struct request *r = *context;
	if (!r) {
		return MHD_NO;
	}
	if (!r->begun) {
		r->begun = true;
		read_head(r, method);
		return MHD_YES;
	}
	if (*size) {
		bool go_on = take_body(r, data, *size);
		*size = 0;
		return go_on ? MHD_YES : MHD_NO;
	}
	if (!r->answered && !r->pending && r->refused) {
		refuse(r);
	} else if (!r->answered && !r->pending) {
		api_routes_dispatch(r);
	}
	if (r->answered) {
		return send_answer(r);
	}
	r->suspended = true;
	MHD_suspend_connection(connection);
	return MHD_YES;
}

void api_finish(struct request *r)
{
	r->pending = false;
	if (!r->answered) {
		request_problem(r, 503, "no answer could be made");
	}
	api_wake(r);
}

bool api_is_gone(const struct request *r)
{
	const union MHD_ConnectionInfo *info =
		MHD_get_connection_info(r->connection, MHD_CONNECTION_INFO_CONNECTION_FD);
	struct pollfd p = {info ? info->connect_fd : -1, POLLRDHUP, 0};
	return poll(&p, 1, 0) > 0 && (p.revents & (POLLRDHUP | POLLHUP | POLLERR));
}

void api_wake(struct request *r)
{
	if (r->suspended) {
		r->suspended = false;
		MHD_resume_connection(r->connection);
		if (!r->api->closing) {
			uv_timer_start(&r->api->timer, on_timer, 0, 0);
		}
	}
}

/* ---- answers in slices */

static void on_later(uv_timer_t *timer)
{
	struct api *api = timer->data;
	for (struct request *r = api->requests; r; r = r->next) {
		void (*fn)(struct request * r) = r->later;
		r->later = NULL;
		if (fn) {
			fn(r);
		}
		if (fn && !r->later) {
			api_finish(r);
		}
	}
}

void api_later(struct request *r, void (*fn)(struct request *r))
{
	r->pending = true;
	r->later = fn;
	/* not 0: a timer that is due at once would run again before the loop polls */
	uv_timer_start(&r->api->later, on_later, 1, 0);
}

/* ---- answers that wait for something to come */

static void on_tick(uv_timer_t *timer)
{
	struct api *api = timer->data;
	bool any = false;
	for (struct request *r = api->requests; r; r = r->next) {
		void (*fn)(struct request *r) = r->tick;
		r->tick = NULL;
		if (fn) {
			fn(r);
		}
		if (fn && r->answered) {
			api_finish(r);
		}
		any = any || r->tick;
	}
	if (!any) {
		uv_timer_stop(timer);
	}
}

void api_tick(struct request *r, void (*fn)(struct request *r))
{
	r->pending = true;
	r->tick = fn;
	if (!uv_is_active((uv_handle_t *)&r->api->tick)) {
		uv_timer_start(&r->api->tick, on_tick, TICK_MS, TICK_MS);
	}
}

/* ---- POSTs that wait */

/* Has what can still come of the run come? */
static bool is_drained(const struct request *r, ff_usec now)
{
	const struct run_state *rs = r->run->user;
	const struct ff_job *job = r->run->job;
	bool all_ended = true;
	if (tail_is_looking(r->d->tail, r->run)) {
		return false;
	}
	for (size_t i = 0; i < job->nstreams; i++) {
		const struct ff_stream *s = job->streams[i];
		const struct stream_state *ss = s->user;
		if (s->state == FF_STREAM_OPEN && ss && ss->conn && conn_is_native(ss->conn)) {
			return false;
		}
		all_ended = all_ended && s->state == FF_STREAM_ENDED;
	}
	ff_usec since = rs->heard_us > r->began_us ? rs->heard_us : r->began_us;
	return all_ended || now - since >= QUIET_US;
}

static void on_stored(void *ud)
{
	struct request *r = ud;
	r->waits = false;
	r->stored(r, true);
	api_finish(r);
}

static void wait_for_commit(struct request *r, ff_usec now)
{
	r->stage = REQUEST_COMMIT;
	r->deadline_us = now + COMMIT_US;
	r->wait = (struct ledger_wait){ledger_flush(r->d->ledger), on_stored, r, NULL};
	r->waits = true;
	ledger_wait(r->d->ledger, &r->wait);
}

static void look_after(struct request *r, ff_usec now)
{
	if (r->stage == REQUEST_REFUSAL) {
		if (now >= r->deadline_us) {
			api_guard_answer(r);
			api_finish(r);
		}
	} else if (r->stage == REQUEST_DRAIN) {
		if (now >= r->deadline_us || is_drained(r, now)) {
			wait_for_commit(r, now);
		}
	} else if (now >= r->deadline_us) {
		ledger_forget(r->d->ledger, &r->wait);
		r->waits = false;
		r->stored(r, false);
		api_finish(r);
	}
}

static void on_drain(uv_timer_t *timer)
{
	struct api *api = timer->data;
	ff_usec now = (ff_usec)uv_now(&api->d->loop) * 1000;
	bool any = false;
	for (struct request *r = api->requests; r; r = r->next) {
		if (r->pending && (r->stored || r->stage == REQUEST_REFUSAL)) {
			look_after(r, now);
			any = any || r->pending;
		}
	}
	if (!any) {
		uv_timer_stop(timer);
	}
}

void api_wait(struct request *r, struct ff_run *waited, bool end, ff_usec wait_us)
{
	r->stored = r->stored ? r->stored : api_post_answer;
	ff_usec now = (ff_usec)uv_now(&r->d->loop) * 1000;
	r->run = waited;
	r->end = end;
	r->pending = true;
	r->began_us = now;
	r->stage = REQUEST_DRAIN;
	r->deadline_us = now + wait_us;
	if (!end || is_drained(r, now)) {
		wait_for_commit(r, now);
	}
	if (r->pending && !uv_is_active((uv_handle_t *)&r->api->drain)) {
		uv_timer_start(&r->api->drain, on_drain, DRAIN_MS, DRAIN_MS);
	}
}

/* ---- life */

static bool on_accepted(void *ud, int fd, const struct sockaddr *addr, socklen_t len, int64_t peer)
{
	const struct api *api = ud;
	api_greet_take(api->greet, fd, addr, len, peer);
	return true;
}

static void on_gone(void *ud, int64_t peer)
{
	const struct api *api = ud;
	api_listen_done(api->listen, peer);
}

static bool on_speaks(void *ud, int fd, const struct sockaddr *addr, socklen_t len, int64_t peer)
{
	struct api *api = ud;
	api->accepts = peer;
	bool taken = MHD_add_connection(api->mhd, fd, addr, len) == MHD_YES;
	if (taken) {
		run(api);
	}
	return taken;
}

static int start_mhd(struct api *api, struct ff_err *err)
{
	unsigned flags = MHD_USE_EPOLL | MHD_ALLOW_SUSPEND_RESUME | MHD_USE_NO_LISTEN_SOCKET;
	api->mhd = MHD_start_daemon(flags, 0, NULL, NULL, on_request, NULL,
		MHD_OPTION_URI_LOG_CALLBACK, on_uri, api, MHD_OPTION_NOTIFY_COMPLETED, on_completed,
		api, MHD_OPTION_NOTIFY_CONNECTION, on_connection, api, MHD_OPTION_CONNECTION_LIMIT,
		API_LISTEN_LOCAL + API_LISTEN_TCP, MHD_OPTION_CONNECTION_MEMORY_LIMIT,
		(size_t)POOL_BYTES, MHD_OPTION_CONNECTION_TIMEOUT, IDLE_SECONDS, MHD_OPTION_END);
	const union MHD_DaemonInfo *info =
		api->mhd ? MHD_get_daemon_info(api->mhd, MHD_DAEMON_INFO_EPOLL_FD) : NULL;
	if (!info) {
		return ff_err_set(err, FF_ELIMIT, "cannot start the HTTP server");
	}
	return uv_poll_init(&api->d->loop, &api->poll, info->epoll_fd);
}

int api_open(struct daemon *d, struct api **ret, struct ff_err *err)
{
	struct api *api = ff_xcalloc(1, sizeof *api);
	*ret = api; /* also on failure: whoever closes and destroys it knows what is open */
	api->d = d;
	api->kept = api_kept_create();
	int r = start_mhd(api, err);
	if (r < 0) {
		return r;
	}
	api->poll.data = api;
	uv_timer_init(&d->loop, &api->timer);
	uv_timer_init(&d->loop, &api->drain);
	uv_timer_init(&d->loop, &api->later);
	uv_timer_init(&d->loop, &api->tick);
	api->tick.data = api;
	uv_prepare_init(&d->loop, &api->prepare);
	api->timer.data = api->drain.data = api->later.data = api;
	api->prepare.data = api;
	(void)uv_loop_configure(&d->loop, UV_METRICS_IDLE_TIME);
	api->turned_ns = uv_hrtime();
	uv_prepare_start(&api->prepare, on_prepare);
	api->watchers = api_watch_create(d);
	api->greet = api_greet_create(d, on_speaks, on_gone, api);
	api->open = true;
	uv_poll_start(&api->poll, UV_READABLE, on_poll);
	return api_listen_open(d, on_accepted, api, &api->listen, err);
}

void api_describe_listeners(const struct api *api, struct ff_jw *w)
{
	api_listen_describe(api ? api->listen : NULL, w);
}

/* MHD closes a connection that has ended, at once or when its answer is there; watchers and
 * followers look for that (api_is_gone). */
void api_look_at_rights(struct api *api)
{
	for (const struct link *link = api ? api->links : NULL; link; link = link->next) {
		const union MHD_ConnectionInfo *info = MHD_get_connection_info(
			link->connection, MHD_CONNECTION_INFO_CONNECTION_FD);
		int fd = info ? info->connect_fd : -1;
		int local = link->peer == API_LISTEN_REMOTE ? -1 : fd;
		if (fd >= 0 && !access_holds(api->d->access, &link->who, local)) {
			api->d->counts[DAEMON_COUNT_rights_lost]++;
			(void)shutdown(fd, SHUT_RDWR);
		}
	}
}

void api_drop_run(struct api *api, const struct ff_run *dropped)
{
	for (const struct link *link = api->links; link; link = link->next) {
		api_otlp_drop_run(link->otlp, dropped);
	}
	for (struct request *r = api->requests; r; r = r->next) {
		if (!r->pending || r->run != dropped) {
			continue;
		}
		if (r->waits) {
			ledger_forget(api->d->ledger, &r->wait);
			r->waits = false;
		}
		r->run = NULL;
		request_problem(r, 404, "job \"%s\" is forgotten", dropped->job->facts.job);
		api_finish(r);
	}
}

void api_close(struct api *api)
{
	if (!api || api->closing) {
		return;
	}
	api->closing = true;
	api_backup_stop(api->d);
	for (struct request *r = api->requests; r; r = r->next) {
		if (r->pending) {
			if (r->waits) {
				ledger_forget(api->d->ledger, &r->wait);
				r->waits = false;
			}
			api_list_orphan(r);
			api_logs_orphan(r);
			api_follow_orphan(r);
			api_export_orphan(r);
			api_keep_orphan(r);
			api_backup_orphan(r);
			request_problem(r, 503, "the daemon is ending");
			api_finish(r);
		}
		api_wake(r); /* answers without end are over */
	}
	if (api->open) {
		uv_close((uv_handle_t *)&api->poll, NULL);
		uv_close((uv_handle_t *)&api->timer, NULL);
		uv_close((uv_handle_t *)&api->drain, NULL);
		uv_close((uv_handle_t *)&api->later, NULL);
		uv_close((uv_handle_t *)&api->tick, NULL);
		uv_close((uv_handle_t *)&api->prepare, NULL);
	}
	if (api->mhd) {
		(void)MHD_run(api->mhd); /* so that these answers go out */
		MHD_stop_daemon(api->mhd);
		api->mhd = NULL;
	}
	api_watch_close(api->watchers);
	api_greet_close(api->greet);
	api_listen_close(api->listen);
}

void api_destroy(struct api *api)
{
	if (api) {
		api_watch_destroy(api->watchers);
		api_kept_destroy(api->kept);
		api_greet_destroy(api->greet);
		api_listen_destroy(api->listen);
		free(api);
	}
}
