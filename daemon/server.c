#include "server.h"

#include "base/json.h"
#include "base/mem.h"
#include "conn.h"
#include "socket.h"

#include <stdlib.h>
#include <unistd.h>

#define BACKLOG 1024
#define TICK_MS 50

static void on_unix(uv_stream_t *listener, int status)
{
	if (status == 0) {
		conn_accept(listener->data, listener, false);
	}
}

static void on_tcp(uv_stream_t *listener, int status)
{
	if (status == 0) {
		conn_accept(listener->data, listener, true);
	}
}

static int open_unix(struct server *s, struct ff_err *err)
{
	const char *path = s->d->config->ingest_socket;
	int fd = socket_bind(path, err);
	if (fd < 0) {
		return fd;
	}
	s->path = ff_xstrdup(path);
	uv_pipe_init(&s->d->loop, &s->pipe, 0);
	s->pipe.data = s;
	s->pipe_open = true;
	int r = uv_pipe_open(&s->pipe, fd);
	if (r < 0) {
		close(fd);
	} else {
		r = uv_listen((uv_stream_t *)&s->pipe, BACKLOG, on_unix);
	}
	return r < 0 ? ff_err_set(err, r, "cannot listen at \"%s\": %s", path, uv_strerror(r)) : 0;
}

/* One address of one `listen`. */
static int open_address(
	struct server *s, const char *text, const struct sockaddr *addr, struct ff_err *err)
{
	uv_tcp_t *tcp = &s->tcp[s->opened++];
	uv_tcp_init(&s->d->loop, tcp);
	tcp->data = s;
	int r = uv_tcp_bind(tcp, addr, addr->sa_family == AF_INET6 ? UV_TCP_IPV6ONLY : 0);
	if (r == 0) {
		r = uv_listen((uv_stream_t *)tcp, BACKLOG, on_tcp);
	}
	return r < 0 ? ff_err_set(err, r, "cannot listen at \"%s\": %s", text, uv_strerror(r)) : 0;
}

static int resolve(const char *text, struct addrinfo **ret, struct ff_err *err)
{
	struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE};
	char *host = NULL, *port = NULL;
	int r = config_split_listen(text, &host, &port, err);
	if (r < 0) {
		return r;
	}
	int e = getaddrinfo(host, port, &hints, ret);
	free(host);
	free(port);
	return e ? ff_err_set(err, FF_EUSAGE, "cannot listen at \"%s\": %s", text, gai_strerror(e))
		 : 0;
}

/* All addresses are known before the first handle is made: handles don't move in memory. */
static int open_tcp(struct server *s, struct ff_err *err)
{
	const struct ff_option_list *list = &s->d->config->listen;
	struct addrinfo **found = ff_xcalloc(list->n + 1, sizeof *found);
	int r = 0;
	for (size_t i = 0; i < list->n && r == 0; i++) {
		r = resolve(list->v[i], &found[i], err);
		for (const struct addrinfo *a = found[i]; a; a = a->ai_next) {
			s->ntcp++;
		}
	}
	s->tcp = ff_xcalloc(s->ntcp + 1, sizeof *s->tcp);
	for (size_t i = 0; i < list->n; i++) {
		for (const struct addrinfo *a = found[i]; a && r == 0; a = a->ai_next) {
			r = open_address(s, list->v[i], a->ai_addr, err);
		}
		if (found[i]) {
			freeaddrinfo(found[i]);
		}
	}
	free(found);
	return r;
}

int server_open(struct daemon *d, struct server **ret, struct ff_err *err)
{
	struct server *s = ff_xcalloc(1, sizeof *s);
	*ret = s; /* also on failure: whoever closes and destroys it knows what is open */
	s->d = d;
	uv_timer_init(&d->loop, &s->timer);
	s->timer.data = s;
	s->timer_open = true;
	int r = d->config->token_file ? token_load(d->config->token_file, &s->tokens, err) : 0;
	if (r == 0) {
		r = open_unix(s, err);
	}
	if (r == 0) {
		r = open_tcp(s, err);
	}
	return r;
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
	bool more = false;
	for (struct conn *c = s->conns; c;) {
		struct conn *next = conn_next(c);
		more = conn_tick(c, now) || more;
		c = next;
	}
	server_bury(s);
	if (!more) {
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
		struct sockaddr_storage addr;
		int n = sizeof addr;
		char host[64] = "";
		struct ff_buf text = {0};
		if (uv_tcp_getsockname(&s->tcp[i], (struct sockaddr *)&addr, &n) < 0) {
			continue;
		}
		if (addr.ss_family == AF_INET6) {
			const struct sockaddr_in6 *a = (const struct sockaddr_in6 *)&addr;
			(void)uv_ip6_name(a, host, sizeof host);
			ff_buf_addf(&text, "[%s]:%u", host, ntohs(a->sin6_port));
		} else {
			const struct sockaddr_in *a = (const struct sockaddr_in *)&addr;
			(void)uv_ip4_name(a, host, sizeof host);
			ff_buf_addf(&text, "%s:%u", host, ntohs(a->sin_port));
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
	s->doomed = NULL;
	if (s->pipe_open) {
		uv_close((uv_handle_t *)&s->pipe, NULL);
	}
	for (size_t i = 0; i < s->opened; i++) {
		uv_close((uv_handle_t *)&s->tcp[i], NULL);
	}
	if (s->timer_open) {
		uv_close((uv_handle_t *)&s->timer, NULL);
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
	token_finish(&s->tokens);
	ff_map_finish(&s->by_id);
	free(s->tcp);
	free(s->path);
	free(s);
}
