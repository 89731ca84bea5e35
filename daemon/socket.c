#include "socket.h"

#include "base/mem.h"
#include "config.h"
#include "shell/file.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

static int fill(const char *path, struct sockaddr_un *ret)
{
	*ret = (struct sockaddr_un){.sun_family = AF_UNIX};
	size_t n = strlen(path);
	if (!n || n >= sizeof ret->sun_path) {
		return -ENAMETOOLONG;
	}
	memcpy(ret->sun_path, path, n + 1);
	return 0;
}

/* Where others may write is no place for a socket: they could put theirs there instead. */
static int check_folder(const char *folder, struct ff_err *err)
{
	struct stat st;
	if (stat(folder, &st) < 0) {
		return ff_err_set(err, -errno, "cannot use \"%s\": %s", folder, strerror(errno));
	}
	if (st.st_uid != 0 && st.st_uid != geteuid()) {
		return ff_err_set(err, -EPERM, "\"%s\" belongs to another user (uid %u)", folder,
			(unsigned)st.st_uid);
	}
	bool others = (st.st_mode & S_IWOTH) || ((st.st_mode & S_IWGRP) && st.st_gid != getegid());
	if (others && !(st.st_mode & S_ISVTX)) {
		return ff_err_set(err, -EPERM,
			"\"%s\" can be written by others (mode %04o): they could replace the "
			"socket",
			folder, (unsigned)(st.st_mode & 07777));
	}
	return 0;
}

static int make_folder(const char *path, struct ff_err *err)
{
	const char *slash = strrchr(path, '/');
	if (!slash || slash == path) {
		return 0;
	}
	char *folder = ff_xmemdup(path, (size_t)(slash - path));
	struct stat st;
	bool there = stat(folder, &st) == 0;
	int r = there ? 0 : ff_file_make_folder(folder, err);
	if (r >= 0 && !there && geteuid() == 0) {
		r = chmod(folder, 0755) < 0
			? ff_err_set(err, -errno, "cannot open \"%s\": %s", folder, strerror(errno))
			: 0;
	}
	if (r >= 0) {
		r = check_folder(folder, err);
	}
	free(folder);
	return r;
}

/* A socket that was left behind goes; 0 if the place is free then. */
static int clear_place(const char *path, const struct sockaddr_un *addr, struct ff_err *err)
{
	struct stat st;
	if (lstat(path, &st) < 0) {
		return errno == ENOENT
			? 0
			: ff_err_set(err, -errno, "cannot use \"%s\": %s", path, strerror(errno));
	}
	if (!S_ISSOCK(st.st_mode)) {
		return ff_err_set(err, -EEXIST, "\"%s\" is there and is no socket", path);
	}
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0) {
		return ff_err_set(err, -errno, "cannot make a socket: %s", strerror(errno));
	}
	bool dead = connect(fd, (const struct sockaddr *)addr, sizeof *addr) < 0 &&
		errno == ECONNREFUSED;
	close(fd);
	if (!dead) {
		return ff_err_set(err, -EADDRINUSE, "another program listens at \"%s\"", path);
	}
	if (unlink(path) < 0) {
		return ff_err_set(err, -errno, "cannot replace \"%s\": %s", path, strerror(errno));
	}
	return 0;
}

int socket_bind(const char *path, struct ff_err *err)
{
	struct sockaddr_un addr;
	int r = fill(path, &addr);
	if (r < 0) {
		return ff_err_set(err, r, "\"%s\" is no path of a socket", path);
	}
	r = make_folder(path, err);
	if (r >= 0) {
		r = clear_place(path, &addr, err);
	}
	if (r < 0) {
		return r;
	}
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	mode_t before = umask(0111);
	if (fd < 0 || bind(fd, (const struct sockaddr *)&addr, sizeof addr) < 0) {
		r = ff_err_set(err, -errno, "cannot listen at \"%s\": %s", path, strerror(errno));
	}
	(void)umask(before);
	if (r < 0) {
		if (fd >= 0) {
			close(fd);
		}
		return r;
	}
	return fd;
}

int socket_resolve(const char *key, const char *text, struct addrinfo **ret, struct ff_err *err)
{
	struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE};
	char *host = NULL, *port = NULL;
	int r = config_split_listen(key, text, &host, &port, err);
	if (r < 0) {
		return r;
	}
	int e = getaddrinfo(host, port, &hints, ret);
	free(host);
	free(port);
	return e ? ff_err_set(err, FF_EUSAGE, "cannot listen at \"%s\": %s", text, gai_strerror(e))
		 : 0;
}

int socket_bind_tcp(const struct addrinfo *a)
{
	int on = 1;
	int fd = socket(a->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (fd < 0) {
		return -errno;
	}
	(void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
	if (a->ai_family == AF_INET6) {
		(void)setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof on);
	}
	if (bind(fd, a->ai_addr, a->ai_addrlen) < 0) {
		int r = -errno;
		close(fd);
		return r;
	}
	return fd;
}

bool socket_name(int fd, struct ff_buf *out)
{
	struct sockaddr_storage addr;
	socklen_t n = sizeof addr;
	char host[INET6_ADDRSTRLEN] = "";
	if (getsockname(fd, (struct sockaddr *)&addr, &n) < 0) {
		return false;
	}
	if (addr.ss_family == AF_INET6) {
		const struct sockaddr_in6 *a = (const struct sockaddr_in6 *)&addr;
		(void)inet_ntop(AF_INET6, &a->sin6_addr, host, sizeof host);
		ff_buf_addf(out, "[%s]:%u", host, ntohs(a->sin6_port));
	} else if (addr.ss_family == AF_INET) {
		const struct sockaddr_in *a = (const struct sockaddr_in *)&addr;
		(void)inet_ntop(AF_INET, &a->sin_addr, host, sizeof host);
		ff_buf_addf(out, "%s:%u", host, ntohs(a->sin_port));
	}
	return *host;
}
