#include "state.h"

#include "base/buf.h"
#include "shell/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/file.h>
#include <unistd.h>

/* The pid that the holder wrote, for the message. */
static int refuse(int fd, const char *folder, struct ff_err *err)
{
	char pid[24] = "";
	ssize_t n = pread(fd, pid, sizeof pid - 1, 0);
	int64_t number = 0;
	(void)ff_str_digits(ff_str_n(pid, n > 0 ? (size_t)n : 0), &number);
	return ff_err_set(err, -EWOULDBLOCK,
		"another firstfaultd (pid %lld) uses the state folder \"%s\"", (long long)number,
		folder);
}

static void write_pid(int fd)
{
	char pid[24];
	int n = snprintf(pid, sizeof pid, "%ld\n", (long)getpid());
	if (ftruncate(fd, 0) == 0) {
		(void)!pwrite(fd, pid, (size_t)n, 0);
	}
}

int state_lock(const char *folder, struct ff_err *err)
{
	int r = ff_file_make_folder(folder, err);
	if (r < 0) {
		return r;
	}
	struct ff_buf path = {0};
	ff_buf_addf(&path, "%s/lock", folder);
	int fd = open(path.p, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd < 0) {
		r = ff_err_set(err, -errno, "cannot open \"%s\": %s", path.p, strerror(errno));
	} else if (flock(fd, LOCK_EX | LOCK_NB) < 0) {
		r = errno == EWOULDBLOCK ? refuse(fd, folder, err)
					 : ff_err_set(err, -errno, "cannot lock \"%s\": %s", path.p,
						   strerror(errno));
	}
	ff_buf_finish(&path);
	if (r < 0) {
		if (fd >= 0) {
			close(fd);
		}
		return r;
	}
	write_pid(fd);
	return fd;
}
