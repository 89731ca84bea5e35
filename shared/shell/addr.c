#include "shell/addr.h"

#include "base/mem.h"
#include "shell/file.h"

#include <errno.h>
#include <netdb.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

int ff_addr_parse(const char *text, struct ff_addr *ret, struct ff_err *err)
{
	struct ff_str s = ff_str_z(text);
	struct sockaddr_un un;
	int64_t port;
	if (ff_str_starts(s, FF_STR("unix:"))) {
		s = ff_str_skip(s, 5);
		if (!s.n || s.n >= sizeof un.sun_path) {
			return ff_err_set(err, FF_EUSAGE,
				"\"%s\": the path of a socket has 1 to %zu bytes", text,
				sizeof un.sun_path - 1);
		}
		*ret = (struct ff_addr){.path = ff_xstrdup(s.p)};
		return 0;
	}
	ptrdiff_t colon = -1;
	for (size_t i = 0; i < s.n; i++) {
		colon = s.p[i] == ':' ? (ptrdiff_t)i : colon;
	}
	struct ff_str host = ff_str_n(s.p, colon < 0 ? 0 : (size_t)colon);
	if (host.n > 2 && host.p[0] == '[' && host.p[host.n - 1] == ']') {
		host = ff_str_n(host.p + 1, host.n - 2);
	}
	if (!host.n || !ff_str_int(ff_str_skip(s, (size_t)colon + 1), &port) || port < 1 ||
	    port > 65535) {
		return ff_err_set(
			err, FF_EUSAGE, "\"%s\" is neither unix:PATH nor HOST:PORT", text);
	}
	*ret = (struct ff_addr){.host = ff_xmemdup(host.p, host.n),
		.port = ff_xstrdup(text + colon + 1)};
	return 0;
}

void ff_addr_finish(struct ff_addr *a)
{
	if (!a) {
		return;
	}
	free(a->path);
	free(a->host);
	free(a->port);
	*a = (struct ff_addr){0};
}

void ff_addr_render(const struct ff_addr *a, struct ff_buf *out)
{
	if (a->path) {
		ff_buf_addf(out, "unix:%s", a->path);
	} else if (strchr(a->host, ':')) {
		ff_buf_addf(out, "[%s]:%s", a->host, a->port);
	} else {
		ff_buf_addf(out, "%s:%s", a->host, a->port);
	}
}

static int refuse(const struct ff_addr *a, int error, const char *text, struct ff_err *err)
{
	struct ff_buf name = {0};
	ff_addr_render(a, &name);
	(void)ff_err_set(err, -error, "cannot reach firstfaultd at %s: %s", name.p, text);
	ff_buf_finish(&name);
	return -error;
}

static int connect_unix(const struct ff_addr *a, struct ff_err *err)
{
	struct sockaddr_un un = {.sun_family = AF_UNIX};
	if (strlen(a->path) >= sizeof un.sun_path) {
		return refuse(a, ENAMETOOLONG, ff_strerror(-ENAMETOOLONG), err);
	}
	memcpy(un.sun_path, a->path, strlen(a->path));
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd >= 0 && connect(fd, (const struct sockaddr *)&un, sizeof un) == 0) {
		return fd;
	}
	int error = errno;
	if (fd >= 0) {
		(void)close(fd);
	}
	return refuse(a, error, ff_strerror(-error), err);
}

int ff_addr_connect(const struct ff_addr *a, struct ff_err *err)
{
	if (a->path) {
		return connect_unix(a, err);
	}
	struct addrinfo hints = {.ai_socktype = SOCK_STREAM}, *list;
	int found = getaddrinfo(a->host, a->port, &hints, &list);
	int error = EHOSTUNREACH;
	if (found != 0) {
		return refuse(a, error, gai_strerror(found), err);
	}
	for (struct addrinfo *i = list; i; i = i->ai_next) {
		int fd = socket(i->ai_family, i->ai_socktype | SOCK_CLOEXEC, i->ai_protocol);
		if (fd >= 0 && connect(fd, i->ai_addr, i->ai_addrlen) == 0) {
			freeaddrinfo(list);
			return fd;
		}
		error = errno;
		if (fd >= 0) {
			(void)close(fd);
		}
	}
	freeaddrinfo(list);
	return refuse(a, error, ff_strerror(-error), err);
}

/* ---- default places */

static char *home_folder(const char *rest)
{
	const char *home = getenv("HOME");
	return ff_file_join(home && *home == '/' ? home : "/", rest);
}

/* XDG: a path that is not absolute is to be ignored. */
static const char *absolute(const char *name)
{
	const char *v = getenv(name);
	return v && *v == '/' ? v : NULL;
}

char *ff_addr_state_folder(void)
{
	if (geteuid() == 0) {
		return ff_xstrdup("/var/lib/firstfault");
	}
	const char *state = absolute("XDG_STATE_HOME");
	return state ? ff_file_join(state, "firstfault") : home_folder(".local/state/firstfault");
}

static char *socket_path(const char *name)
{
	struct ff_buf b = {0};
	const char *runtime = absolute("XDG_RUNTIME_DIR");
	if (geteuid() == 0) {
		ff_buf_addf(&b, "/run/firstfault/%s", name);
	} else if (runtime) {
		ff_buf_addf(&b, "%s/firstfault/%s", runtime, name);
	} else {
		ff_buf_addf(&b, "/tmp/firstfault-%lu/%s", (unsigned long)geteuid(), name);
	}
	return ff_buf_take(&b);
}

char *ff_addr_ingest_socket(void)
{
	return socket_path("ingest.sock");
}

char *ff_addr_api_socket(void)
{
	return socket_path("api.sock");
}

static int find(const char *arg, const char *variable, char *path, struct ff_addr *ret,
		struct ff_err *err)
{
	const char *text = arg ? arg : getenv(variable);
	if (text && *text) {
		free(path);
		return ff_addr_parse(text, ret, err);
	}
	*ret = (struct ff_addr){.path = path};
	return 0;
}

int ff_addr_ingest(const char *arg, struct ff_addr *ret, struct ff_err *err)
{
	return find(arg, "FIRSTFAULT_ADDR", ff_addr_ingest_socket(), ret, err);
}

int ff_addr_api(const char *arg, struct ff_addr *ret, struct ff_err *err)
{
	return find(arg, "FIRSTFAULT_API", ff_addr_api_socket(), ret, err);
}
