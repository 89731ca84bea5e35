#include "api_greet.h"

#include "base/mem.h"
#include "wire/native.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define TICK_MS 1000
#define SILENCE_MS 10000
#define TLS_HANDSHAKE 0x16 /* RFC 8446, 5.1: the type of the first record */
#define ELSEWHERE "this is the HTTP API: log lines go to the ingest socket"

struct caller {
	uv_poll_t poll;
	struct api_greet *all;
	struct caller *prev, *next;
	int fd;
	int64_t peer; /* api_listen.h */
	uint64_t since; /* the loop's time */
	struct sockaddr_storage addr;
	socklen_t len;
};

struct api_greet {
	struct daemon *d;
	api_listen_fn speaks;
	void (*gone)(void *ud, int64_t peer);
	void *ud;
	struct caller *callers;
	uv_timer_t timer; /* runs while somebody waits */
	bool closing;
};

static void on_closed(uv_handle_t *handle)
{
	free(handle->data);
}

/* Out of the list and of the loop; its connection is still open. */
static int let_go(struct caller *c)
{
	struct api_greet *g = c->all;
	*(c->prev ? &c->prev->next : &g->callers) = c->next;
	if (c->next) {
		c->next->prev = c->prev;
	}
	if (!g->callers) {
		uv_timer_stop(&g->timer);
	}
	uv_close((uv_handle_t *)&c->poll, on_closed);
	return c->fd;
}

static void hang_up(struct caller *c)
{
	struct api_greet *g = c->all;
	int64_t peer = c->peer;
	close(let_go(c));
	if (!g->closing) {
		g->gone(g->ud, peer);
	}
}

/* What came is taken first: a close on top of it would be a reset, which drops the answer. */
static void send_away(struct caller *c, char first)
{
	char thrown[4096];
	struct ff_buf out = {0};
	if (first == '{') {
		ff_native_error_render(&out, FF_NATIVE_PROTOCOL, ELSEWHERE);
	} else {
		ff_buf_addz(&out, "firstfault: " ELSEWHERE "\n");
	}
	for (int i = 0; i < 16 && recv(c->fd, thrown, sizeof thrown, 0) > 0; i++) {
	}
	(void)send(c->fd, out.p, out.len, MSG_NOSIGNAL);
	(void)shutdown(c->fd, SHUT_WR);
	ff_buf_finish(&out);
	c->all->d->runs.counts[FF_COUNT_wrong_port]++;
	hang_up(c);
}

static void on_first(uv_poll_t *poll, int status, int events)
{
	struct caller *c = poll->data;
	struct api_greet *g = c->all;
	char first;
	ssize_t n = recv(c->fd, &first, 1, MSG_PEEK);
	if (n < 0 && (errno == EAGAIN || errno == EINTR)) {
		return;
	}
	if (n <= 0) {
		hang_up(c);
	} else if (memchr("{<0123456789", first, 12) || first == TLS_HANDSHAKE) {
		send_away(c, first);
	} else {
		struct sockaddr_storage addr = c->addr;
		socklen_t len = c->len;
		int64_t peer = c->peer;
		if (!g->speaks(g->ud, let_go(c), (struct sockaddr *)&addr, len, peer)) {
			g->gone(g->ud, peer);
		}
	}
}

static void on_timer(uv_timer_t *timer)
{
	struct api_greet *g = timer->data;
	uint64_t now = uv_now(&g->d->loop);
	for (struct caller *c = g->callers; c;) {
		struct caller *next = c->next;
		if (now - c->since >= SILENCE_MS) {
			hang_up(c);
		}
		c = next;
	}
}

struct api_greet *api_greet_create(struct daemon *d, api_listen_fn speaks,
	void (*gone)(void *ud, int64_t peer), void *ud)
{
	struct api_greet *g = ff_xcalloc(1, sizeof *g);
	g->d = d;
	g->speaks = speaks;
	g->gone = gone;
	g->ud = ud;
	uv_timer_init(&d->loop, &g->timer);
	g->timer.data = g;
	return g;
}

void api_greet_take(
	struct api_greet *g, int fd, const struct sockaddr *addr, socklen_t len, int64_t peer)
{
	struct caller *c = ff_xcalloc(1, sizeof *c);
	c->all = g;
	c->fd = fd;
	c->peer = peer;
	c->since = uv_now(&g->d->loop);
	c->len = len < sizeof c->addr ? len : sizeof c->addr;
	memcpy(&c->addr, addr, c->len);
	(void)uv_poll_init(&g->d->loop, &c->poll, fd); /* a socket: can't fail on Linux */
	c->poll.data = c;
	c->next = g->callers;
	if (c->next) {
		c->next->prev = c;
	}
	g->callers = c;
	(void)uv_poll_start(&c->poll, UV_READABLE | UV_DISCONNECT, on_first);
	if (!uv_is_active((uv_handle_t *)&g->timer)) {
		uv_timer_start(&g->timer, on_timer, TICK_MS, TICK_MS);
	}
}

void api_greet_close(struct api_greet *g)
{
	if (!g || g->closing) {
		return;
	}
	g->closing = true;
	while (g->callers) {
		hang_up(g->callers);
	}
	uv_close((uv_handle_t *)&g->timer, NULL);
}

void api_greet_destroy(struct api_greet *g)
{
	free(g);
}
