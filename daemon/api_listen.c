#include "api_listen.h"

#include "base/json.h"
#include "base/mem.h"
#include "socket.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#define BACKLOG 128
#define ACCEPTS_A_TURN 16
#define AGAIN_MS 200 /* after no file could be opened */

struct listener {
	uv_poll_t poll;
	struct api_listen *all;
	int fd;
	bool tcp;
};

struct api_listen {
	struct daemon *d;
	api_listen_fn fn;
	void *ud;
	struct listener *v;
	size_t n, opened;
	size_t places[2]; /* free ones: local, TCP */
	int64_t users[API_LISTEN_LOCAL]; /* those of the local ones that are taken by a user */
	size_t nusers;
	uv_timer_t again;
	bool timer_open, closing;
	char *path; /* of the socket file, once it is ours */
};

static void on_waiting(uv_poll_t *poll, int status, int events);

/* Those that have places listen. */
static void listen_on(struct api_listen *l)
{
	for (size_t i = 0; i < l->opened && !l->closing; i++) {
		if (l->places[l->v[i].tcp]) {
			(void)uv_poll_start(&l->v[i].poll, UV_READABLE, on_waiting);
		} else {
			(void)uv_poll_stop(&l->v[i].poll);
		}
	}
}

static void on_again(uv_timer_t *timer)
{
	listen_on(timer->data);
}

static void starve(struct api_listen *l)
{
	l->d->counts[DAEMON_COUNT_files_short]++;
	for (size_t i = 0; i < l->opened; i++) {
		(void)uv_poll_stop(&l->v[i].poll);
	}
	uv_timer_start(&l->again, on_again, AGAIN_MS, 0);
}

static int64_t peer_of(int fd, bool tcp)
{
	struct ucred cred;
	socklen_t n = sizeof cred;
	if (tcp) {
		return API_LISTEN_REMOTE;
	}
	bool known = getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &n) == 0;
	return !known || cred.uid == geteuid() ? API_LISTEN_HOST : (int64_t)cred.uid;
}

/* False: this user has as many as he may. */
static bool take_share(struct api_listen *l, int64_t peer)
{
	size_t own = 0;
	for (size_t i = 0; i < l->nusers; i++) {
		own += l->users[i] == peer;
	}
	if (peer > API_LISTEN_HOST && own >= API_LISTEN_USER) {
		return false;
	}
	if (peer > API_LISTEN_HOST) {
		l->users[l->nusers++] = peer;
	}
	return true;
}

static void give_share(struct api_listen *l, int64_t peer)
{
	for (size_t i = 0; i < l->nusers; i++) {
		if (l->users[i] == peer) {
			l->users[i] = l->users[--l->nusers];
			return;
		}
	}
}

static void on_waiting(uv_poll_t *poll, int status, int events)
{
	struct listener *from = poll->data;
	struct api_listen *l = from->all;
	for (int i = 0; i < ACCEPTS_A_TURN && l->places[from->tcp]; i++) {
		struct sockaddr_storage addr;
		socklen_t n = sizeof addr;
		int fd = accept4(
			from->fd, (struct sockaddr *)&addr, &n, SOCK_NONBLOCK | SOCK_CLOEXEC);
		int64_t peer = fd >= 0 ? peer_of(fd, from->tcp) : API_LISTEN_HOST;
		if (fd >= 0 && !take_share(l, peer)) {
			l->d->counts[DAEMON_COUNT_connections_refused]++;
			close(fd);
		} else if (fd >= 0) {
			l->places[from->tcp]--;
			if (!l->fn(l->ud, fd, (struct sockaddr *)&addr, n, peer)) {
				l->places[from->tcp]++;
				give_share(l, peer);
			}
		} else if (errno == EAGAIN) {
			break;
		} else if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS ||
			errno == ENOMEM) {
			starve(l);
			return;
		} /* else one that has gone already */
	}
	if (!l->places[from->tcp]) {
		listen_on(l);
	}
}

void api_listen_done(struct api_listen *l, int64_t peer)
{
	bool tcp = peer == API_LISTEN_REMOTE;
	give_share(l, peer);
	if (!l->places[tcp]++) {
		listen_on(l);
	}
}

/* Takes the bound socket. */
static int open_listener(struct api_listen *l, int fd, bool tcp)
{
	struct listener *new = &l->v[l->opened];
	int r = listen(fd, BACKLOG) < 0 ? -errno : uv_poll_init(&l->d->loop, &new->poll, fd);
	if (r < 0) {
		close(fd);
		return r;
	}
	new->poll.data = new;
	new->all = l;
	new->fd = fd;
	new->tcp = tcp;
	l->opened++;
	return uv_poll_start(&new->poll, UV_READABLE, on_waiting);
}

static int open_unix(struct api_listen *l, struct ff_err *err)
{
	const char *path = l->d->config->api_socket;
	int fd = socket_bind(path, err);
	if (fd < 0) {
		return fd;
	}
	l->path = ff_xstrdup(path);
	int r = open_listener(l, fd, false);
	return r < 0 ? ff_err_set(err, r, "cannot listen at \"%s\": %s", path, uv_strerror(r)) : 0;
}

static int open_address(
	struct api_listen *l, const char *text, const struct addrinfo *a, struct ff_err *err)
{
	int fd = socket_bind_tcp(a);
	int r = fd < 0 ? fd : open_listener(l, fd, true);
	return r < 0 ? ff_err_set(err, r, "cannot listen at \"%s\": %s", text, uv_strerror(r)) : 0;
}

/* All addresses are known before the first handle is made: handles don't move in memory. */
int api_listen_open(struct daemon *d, api_listen_fn fn, void *ud, struct api_listen **ret,
	struct ff_err *err)
{
	struct api_listen *l = ff_xcalloc(1, sizeof *l);
	const struct ff_option_list *list = &d->config->api_listen;
	struct addrinfo **found = ff_xcalloc(list->n + 1, sizeof *found);
	int r = 0;
	*ret = l;
	l->d = d;
	l->fn = fn;
	l->ud = ud;
	l->places[false] = API_LISTEN_LOCAL;
	l->places[true] = API_LISTEN_TCP;
	l->n = 1;
	uv_timer_init(&d->loop, &l->again);
	l->again.data = l;
	l->timer_open = true;
	for (size_t i = 0; i < list->n && r == 0; i++) {
		r = socket_resolve("api-listen", list->v[i], &found[i], err);
		for (const struct addrinfo *a = found[i]; a; a = a->ai_next) {
			l->n++;
		}
	}
	l->v = ff_xcalloc(l->n, sizeof *l->v);
	r = r == 0 ? open_unix(l, err) : r;
	for (size_t i = 0; i < list->n; i++) {
		for (const struct addrinfo *a = found[i]; a && r == 0; a = a->ai_next) {
			r = open_address(l, list->v[i], a, err);
		}
		if (found[i]) {
			freeaddrinfo(found[i]);
		}
	}
	free(found);
	return r;
}

void api_listen_describe(const struct api_listen *l, struct ff_jw *w)
{
	ff_jw_open(w, '[');
	for (size_t i = 0; l && i < l->opened; i++) {
		struct ff_buf text = {0};
		if (l->v[i].tcp && socket_name(l->v[i].fd, &text)) {
			ff_jw_str(w, ff_buf_str(&text));
		}
		ff_buf_finish(&text);
	}
	ff_jw_close(w, ']');
}

void api_listen_close(struct api_listen *l)
{
	if (!l || l->closing) {
		return;
	}
	l->closing = true;
	for (size_t i = 0; i < l->opened; i++) {
		uv_close((uv_handle_t *)&l->v[i].poll, NULL);
		close(l->v[i].fd); /* uv_close has taken it out of the poll */
	}
	if (l->timer_open) {
		uv_close((uv_handle_t *)&l->again, NULL);
	}
	if (l->path) {
		(void)unlink(l->path);
	}
}

void api_listen_destroy(struct api_listen *l)
{
	if (l) {
		free(l->v);
		free(l->path);
		free(l);
	}
}
