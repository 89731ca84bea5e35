#include "api_guard.h"

#include "socket.h"

#include <microhttpd.h>
#include <sys/socket.h>
#include <unistd.h>

#define BEARER "Bearer "

static const char *header(const struct request *r, const char *name)
{
	return MHD_lookup_connection_value(r->connection, MHD_HEADER_KIND, name);
}

/* Without the port. */
static struct ff_str host_of(const char *text)
{
	struct ff_str s = ff_str_z(text);
	ptrdiff_t end = s.n && s.p[0] == '[' ? ff_str_chr(s, ']', 0) + 1 : ff_str_chr(s, ':', 0);
	return end > 0 ? ff_str_n(s.p, (size_t)end) : s;
}

static bool is_name(struct ff_str host, const char *name)
{
	return host.n == strlen(name) && !strncasecmp(host.p, name, host.n);
}

static bool is_ours(const struct request *r, int fd, const char *text)
{
	struct ff_buf address = {0};
	char self[256] = "";
	struct ff_str host = host_of(text);
	bool ours = is_name(host, "localhost");
	if (socket_name(fd, &address)) { /* the one that was connected to */
		struct ff_str own = host_of(address.p);
		ours = ours || ff_str_eq(host, own);
	}
	ff_buf_finish(&address);
	ours = ours || (gethostname(self, sizeof self - 1) == 0 && is_name(host, self));
	for (size_t i = 0; i < r->d->config->host.n && !ours; i++) {
		ours = is_name(host, r->d->config->host.v[i]);
	}
	for (size_t i = 0; i < r->d->config->api_listen.n && !ours; i++) {
		struct ff_str own = host_of(r->d->config->api_listen.v[i]);
		ours = own.n == host.n && !strncasecmp(own.p, host.p, host.n);
	}
	return ours;
}

static void show_token(struct request *r)
{
	const char *text = header(r, "Authorization");
	size_t front = strlen(BEARER);
	if (!text) {
		return;
	}
	struct ff_str token = {0};
	if (!strncasecmp(text, BEARER, front)) {
		token = ff_str_trim(ff_str_z(text + front));
	}
	if (!access_show(r->d->access, token, &r->who)) {
		r->d->counts[DAEMON_COUNT_tokens_bad]++;
		r->refused = 401;
		r->slow = true;
	}
}

static int connection_of(const struct request *r)
{
	const union MHD_ConnectionInfo *info =
		MHD_get_connection_info(r->connection, MHD_CONNECTION_INFO_CONNECTION_FD);
	return info ? info->connect_fd : -1;
}

static bool is_local(int fd)
{
	int domain = 0;
	socklen_t n = sizeof domain;
	return getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &n) == 0 && domain == AF_UNIX;
}

void api_guard_look(struct request *r)
{
	int fd = connection_of(r);
	const char *host = header(r, "Host");
	if (is_local(fd)) {
		r->who = access_local(r->d->access, fd);
	} else {
		r->who = access_remote(r->d->access);
		show_token(r);
		if (!host || !is_ours(r, fd, host)) {
			r->refused = 421;
			r->slow = false;
		}
	}
	bool asks = r->method == REQUEST_GET;
	if (!r->refused && !asks && header(r, "Origin")) {
		r->refused = 403;
	}
	bool open = r->route && r->route->who == REQUEST_ANYBODY;
	if (!r->refused && !r->who.admitted && !open) {
		r->refused = 401;
	}
}

void api_guard_answer(struct request *r)
{
	if (r->refused == 421) {
		request_problem(r, 421, "no such host here; the key `host` names more");
	} else if (r->refused == 403) {
		request_problem(r, 403, "nothing is posted by a web page");
	} else {
		request_problem(r, 401,
			"%s: Authorization: Bearer TOKEN (the command firstfault takes "
			"it from --token-file or FIRSTFAULT_TOKEN)",
			r->slow ? "that token is none of this daemon's" : "a token is needed");
	}
}
