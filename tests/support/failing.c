/* failing: a library for LD_PRELOAD that makes writes to certain files fail, as a disk would.
 *
 * FF_FAIL_SWITCH names a file. While it is there and says `PATH CALL ERRNO`, CALL (write: pwrite,
 * ftruncate; sync: fsync, fdatasync) fails with that number on descriptors whose file's path
 * holds PATH. A file system can't be made read-only under a process that has files open for
 * writing, and an I/O error takes a broken disk: this is how a test has both.
 */
#undef _FILE_OFFSET_BITS /* both names of each call are defined here */

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

/* The errno for this call on this descriptor, 0: it goes on. */
static int fails(int fd, const char *call)
{
	const char *path = getenv("FF_FAIL_SWITCH");
	char text[128] = "", part[80], what[16], link[64], name[4096];
	int number;
	int in = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
	if (in < 0) {
		return 0;
	}
	ssize_t n = read(in, text, sizeof text - 1);
	close(in);
	if (n <= 0 || sscanf(text, "%79s %15s %d", part, what, &number) != 3 ||
		strcmp(what, call) != 0) {
		return 0;
	}
	snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
	ssize_t len = readlink(link, name, sizeof name - 1);
	name[len > 0 ? len : 0] = '\0';
	return strstr(name, part) ? number : 0;
}

#define NEXT(type, name) ((type)dlsym(RTLD_NEXT, name))

#define SHIM(result, name, call, params, types, args) \
	result name params \
	{ \
		int e = fails(fd, call); \
		if (e) { \
			errno = e; \
			return -1; \
		} \
		return NEXT(result(*) types, #name) args; \
	}

SHIM(ssize_t, pwrite, "write", (int fd, const void *p, size_t n, off_t at),
	(int, const void *, size_t, off_t), (fd, p, n, at))
SHIM(ssize_t, pwrite64, "write", (int fd, const void *p, size_t n, off64_t at),
	(int, const void *, size_t, off64_t), (fd, p, n, at))
SHIM(int, ftruncate, "write", (int fd, off_t n), (int, off_t), (fd, n))
SHIM(int, ftruncate64, "write", (int fd, off64_t n), (int, off64_t), (fd, n))
SHIM(int, fsync, "sync", (int fd), (int), (fd))
SHIM(int, fdatasync, "sync", (int fd), (int), (fd))
