#include "tail_reach.h"

#include "base/str.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define LINKS_MAX 16u /* on one way */

int tail_reach_folder(int dir, const char *name)
{
	const int flags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
	/* https://man7.org/linux/man-pages/man2/openat2.2.html: a mount point is refused before its
	 * file system is asked for anything; glibc has no wrapper. */
	struct open_how how = {.flags = (uint64_t)flags, .resolve = RESOLVE_NO_XDEV};
	long fd = syscall(SYS_openat2, dir, name, &how, sizeof how);
	if (fd < 0 && (errno == ENOSYS || errno == EPERM)) { /* an old kernel, or a filter */
		fd = openat(dir, name, flags);
	}
	return fd < 0 ? -errno : (int)fd;
}

int tail_reach_name(int dir, const char *name, struct stat *ret)
{
	int fd = openat(dir, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	if (fd >= 0 && fstat(fd, ret) < 0) {
		int r = -errno;
		close(fd);
		return r;
	}
	return fd < 0 ? -errno : fd;
}

/* The way that is left, and where it goes on from. */
struct way {
	int at;
	char left[PATH_MAX];
	unsigned links;
};

/* The next component; false at the end. */
static bool take_part(struct way *w, char *part, size_t size)
{
	char *p = w->left + strspn(w->left, "/");
	size_t n = strcspn(p, "/");
	if (!n || n >= size) {
		return false;
	}
	memcpy(part, p, n);
	part[n] = '\0';
	memmove(w->left, p + n, strlen(p + n) + 1);
	return true;
}

/* Its text stands before what is left. */
static int take_link(struct way *w, int link, const struct stat *st)
{
	char text[PATH_MAX];
	if (st->st_uid != 0 || st->st_nlink != 1) {
		return -EPERM;
	}
	ssize_t n = readlinkat(link, "", text, sizeof text);
	if (n <= 0) {
		return n < 0 ? -errno : -ENOENT;
	}
	size_t rest = strlen(w->left);
	if (++w->links > LINKS_MAX) {
		return -ELOOP;
	}
	if ((size_t)n + 1 + rest >= sizeof w->left) {
		return -ENAMETOOLONG;
	}
	memmove(w->left + n + 1, w->left, rest + 1);
	memcpy(w->left, text, (size_t)n);
	w->left[n] = '/';
	if (text[0] != '/') {
		return 0;
	}
	int root = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (root < 0) {
		return -errno;
	}
	close(w->at);
	w->at = root;
	return 0;
}

int tail_reach_through(int dir, const char *name, struct stat *ret)
{
	const char *from = name[0] == '/' ? "/" : ".";
	struct way w = {.at = openat(dir, from, O_PATH | O_DIRECTORY | O_CLOEXEC)};
	char part[NAME_MAX + 1];
	struct stat st = {0};
	int r = w.at < 0 ? -errno : 0;
	(void)snprintf(w.left, sizeof w.left, "%s", name);
	while (r == 0 && take_part(&w, part, sizeof part)) {
		int next = tail_reach_name(w.at, part, &st);
		if (next < 0) {
			r = next;
		} else if (S_ISLNK(st.st_mode)) {
			r = take_link(&w, next, &st);
			close(next);
		} else {
			close(w.at);
			w.at = next;
		}
	}
	if (r < 0) {
		if (w.at >= 0) {
			close(w.at);
		}
		return r;
	}
	*ret = st;
	return w.at;
}

int tail_reach_read(int place)
{
	char path[32];
	(void)snprintf(path, sizeof path, "/proc/self/fd/%d", place);
	int fd = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

int tail_reach_same(const char *path, uint64_t device, uint64_t inode, struct stat *ret)
{
	int place = tail_reach_name(AT_FDCWD, path, ret);
	if (place >= 0 && S_ISLNK(ret->st_mode)) {
		close(place);
		place = tail_reach_through(AT_FDCWD, path, ret);
	}
	if (place < 0) {
		return place;
	}
	bool same = S_ISREG(ret->st_mode) && (uint64_t)ret->st_dev == device &&
		(uint64_t)ret->st_ino == inode;
	int fd = same ? tail_reach_read(place) : -ESTALE;
	close(place);
	return fd;
}
