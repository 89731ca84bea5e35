#include "server.h"

#include "base/json.h"
#include "base/limits.h"
#include "base/mem.h"
#include "conn.h"
#include "shell/log.h"
#include "socket.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

#define BACKLOG 4096
#define TICK_MS 50
#define ACCEPTS_A_TURN 64 /* of one listener; the rest waits for the next turn of the loop */
#define STARVED_TICKS 4   /* without a file for another connection; then it is tried again */
#define FILES_OTHERS 256u /* files that are kept for the store, the segments and the API */

/* ---- listeners */

/* Those who wait are not lost: they wait in the kernel until the timer. */
static void starve(struct server *s)
{
	s->d->counts[DAEMON_COUNT_files_short]++;
	s->starved = true;
	s->starved_ticks = 0;
	for (size_t i = 0; i < s->opened; i++) {
		(void)uv_poll_stop(&s->listeners[i].poll);
	}
	server_need_timer(s);
}

static void on_waiting(uv_poll_t *poll, int status, int events)
{
	struct listener *l = poll->data;
	for (int i = 0; i < ACCEPTS_A_TURN; i++) {
		int fd = accept4(l->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
		if (fd >= 0) {
			conn_accept(l->server, fd, l->tcp);
		} else if (errno == EAGAIN) {
			break;
		} else if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS ||
			errno == ENOMEM) {
			starve(l->server);
			break;
		} /* else one that has gone already */
	}
}

static void feed(struct server *s)
{
	s->starved = false;
	for (size_t i = 0; i < s->opened; i++) {
		(void)uv_poll_start(&s->listeners[i].poll, UV_READABLE, on_waiting);
	}
}

/* Takes the bound socket. */
static int open_listener(struct server *s, int fd, bool tcp)
{
	int r = listen(fd, BACKLOG) < 0 ? -errno : 0;
	struct listener *l = &s->listeners[s->opened];
	if (r == 0) {
		r = uv_poll_init(&s->d->loop, &l->poll, fd);
	}
	if (r < 0) {
		close(fd);
		return r;
	}
	l->poll.data = l;
	l->server = s;
	l->fd = fd;
	l->tcp = tcp;
	s->opened++;
	return uv_poll_start(&l->poll, UV_READABLE, on_waiting);
}

static int open_unix(struct server *s, struct ff_err *err)
{
	const char *path = s->d->config->ingest_socket;
	int fd = socket_bind(path, err);
	if (fd < 0) {
		return fd;
	}
	s->path = ff_xstrdup(path);
	int r = open_listener(s, fd, false);
	return r < 0 ? ff_err_set(err, r, "cannot listen at \"%s\": %s", path, uv_strerror(r)) : 0;
}

/* One address of one `listen`. */
static int open_address(
	struct server *s, const char *text, const struct addrinfo *a, struct ff_err *err)
{
	int fd = socket_bind_tcp(a);
	int r = fd < 0 ? fd : open_listener(s, fd, true);
	return r < 0 ? ff_err_set(err, r, "cannot listen at \"%s\": %s", text, uv_strerror(r)) : 0;
}

/* All addresses are known before the first handle is made: handles don't move in memory. */
static int open_all(struct server *s, struct ff_err *err)
{
	const struct ff_option_list *list = &s->d->config->listen;
	struct addrinfo **found = ff_xcalloc(list->n + 1, sizeof *found);
	int r = 0;
	s->nlisteners = 1;
	for (size_t i = 0; i < list->n && r == 0; i++) {
		r = socket_resolve("listen", list->v[i], &found[i], err);
		for (const struct addrinfo *a = found[i]; a; a = a->ai_next) {
			s->nlisteners++;
		}
	}
	s->listeners = ff_xcalloc(s->nlisteners, sizeof *s->listeners);
	r = r == 0 ? open_unix(s, err) : r;
	for (size_t i = 0; i < list->n; i++) {
		for (const struct addrinfo *a = found[i]; a && r == 0; a = a->ai_next) {
			r = open_address(s, list->v[i], a, err);
		}
		if (found[i]) {
			freeaddrinfo(found[i]);
		}
	}
	free(found);
	return r;
}

/* The store, the segments, the API and the tail need files too: a connection more must not be what
 * makes a commit fail. */
static void limit_connections(struct server *s)
{
	struct rlimit limit;
	s->conns_max = FF_CONNS_MAX;
	if (getrlimit(RLIMIT_NOFILE, &limit) < 0) {
		return;
	}
	uint64_t files = limit.rlim_cur > FILES_OTHERS ? limit.rlim_cur - FILES_OTHERS : 16;
	files = s->d->config->tail.n || s->d->config->tail_node.n ? files / 2 : files;
	if (files < FF_CONNS_MAX) {
		s->conns_max = (size_t)files;
		ff_log_warn("server",
			"takes %zu connections instead of %u: the limit of open files is %llu",
			s->conns_max, FF_CONNS_MAX, (unsigned long long)limit.rlim_cur);
	}
}

static void on_resume(uv_prepare_t *prepare)
{
	struct server *s = prepare->data;
	struct conn *c = s->paused;
	s->paused = NULL;
	while (c) {
		c = conn_resume(c);
	}
	server_bury(s);
}

int server_open(struct daemon *d, struct server **ret, struct ff_err *err)
{
	struct server *s = ff_xcalloc(1, sizeof *s);
	*ret = s; /* also on failure: whoever closes and destroys it knows what is open */
	s->d = d;
	uv_timer_init(&d->loop, &s->timer);
	uv_prepare_init(&d->loop, &s->resume);
	s->timer.data = s->resume.data = s;
	s->handles_open = true;
	(void)uv_prepare_start(&s->resume, on_resume);
	limit_connections(s);
	return open_all(s, err);
}

void server_hold(struct server *s, bool hold)
{
	if (!s || s->held == hold) {
		return;
	}
	s->held = hold;
	for (struct conn *c = s->conns; c;) {
		struct conn *next = conn_next(c);
		conn_hold(c, hold);
		c = next;
	}
}

static void on_timer(uv_timer_t *timer)
{
	struct server *s = timer->data;
	ff_usec now = (ff_usec)uv_now(&s->d->loop) * 1000;
	bool more = s->starved;
	if (s->starved && ++s->starved_ticks >= STARVED_TICKS) {
		feed(s);
	}
	server_acks(s);
	for (struct conn *c = s->conns; c;) {
		struct conn *next = conn_next(c);
		more = conn_tick(c, now) || more;
		c = next;
	}
	server_bury(s);
	if (!more && !s->acks) {
		uv_timer_stop(&s->timer);
	}
}

void server_need_timer(struct server *s)
{
	if (!s->closing && !uv_is_active((uv_handle_t *)&s->timer)) {
		uv_timer_start(&s->timer, on_timer, TICK_MS, TICK_MS);
	}
}

void server_describe(const struct server *s, struct ff_jw *w)
{
	ff_jw_open(w, '[');
	for (size_t i = 0; s && i < s->opened; i++) {
		struct ff_buf text = {0};
		const struct listener *l = &s->listeners[i];
		if (!l->tcp || !socket_name(l->fd, &text)) {
			continue;
		}
		ff_jw_str(w, ff_buf_str(&text));
		ff_buf_finish(&text);
	}
	ff_jw_close(w, ']');
}

void server_close(struct server *s)
{
	if (!s || s->closing) {
		return;
	}
	s->closing = true;
	while (s->conns) {
		conn_close(s->conns); /* leaves the list */
	}
	s->doomed = s->paused = NULL;
	for (size_t i = 0; i < s->opened; i++) {
		uv_close((uv_handle_t *)&s->listeners[i].poll, NULL);
		close(s->listeners[i].fd); /* uv_close has taken it out of the poll */
	}
	if (s->handles_open) {
		uv_close((uv_handle_t *)&s->timer, NULL);
		uv_close((uv_handle_t *)&s->resume, NULL);
	}
	if (s->path) {
		(void)unlink(s->path);
	}
}

void server_destroy(struct server *s)
{
	if (!s) {
		return;
	}
	ff_map_finish(&s->by_id);
	free(s->listeners);
	free(s->path);
	free(s);
}
