#include "backup.h"

#include "base/arr.h"
#include "base/buf.h"
#include "base/mem.h"
#include "store_copy.h"

#include <archive.h>
#include <archive_entry.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define BLOCK (256u * 1024u)

struct backup_run {
	uint32_t number;
	struct segment_range range;
};

struct job {
	const char *state, *path;
	ff_usec now_us;
	const atomic_bool *stop;
	struct ff_buf part, db; /* PATH.part, PATH.part-db */
	struct archive *tar;
	int fd; /* of the part */
	struct backup_run *runs;
	size_t nruns, cruns;
	char *block;
	struct backup *ret;
	struct ff_err *err;
};

static int fail(struct job *j, int e, const char *what, const char *path)
{
	return ff_err_set(j->err, e, "cannot %s \"%s\": %s", what, path, ff_strerror(e));
}

static int fail_tar(struct job *j)
{
	int e = archive_errno(j->tar);
	return ff_err_set(j->err, e > 0 ? -e : -EIO, "cannot write \"%s\": %s", j->part.p,
		archive_error_string(j->tar));
}

static bool is_stopped(const struct job *j)
{
	return j->stop && atomic_load(j->stop);
}

/* ---- entries */

static int put_head(struct job *j, const char *name, unsigned type, unsigned mode, uint64_t size)
{
	struct archive_entry *e = archive_entry_new();
	archive_entry_set_pathname(e, name);
	archive_entry_set_filetype(e, type);
	archive_entry_set_perm(e, mode);
	archive_entry_set_size(e, (int64_t)size);
	archive_entry_set_mtime(e, (time_t)(j->now_us / FF_SECOND), 0);
	archive_entry_set_uid(e, geteuid());
	archive_entry_set_gid(e, getegid());
	int r = archive_write_header(j->tar, e);
	archive_entry_free(e);
	return r == ARCHIVE_OK || r == ARCHIVE_WARN ? 0 : fail_tar(j);
}

static int put_bytes(struct job *j, int fd, const char *path, uint64_t size)
{
	while (size) {
		if (is_stopped(j)) {
			return ff_err_set(j->err, -ECANCELED, "the daemon is ending");
		}
		ssize_t n = read(fd, j->block, size < BLOCK ? (size_t)size : BLOCK);
		if (n < 0 && errno == EINTR) {
			continue;
		}
		if (n <= 0) {
			return fail(j, n < 0 ? -errno : -EIO, "read", path);
		}
		if (archive_write_data(j->tar, j->block, (size_t)n) != n) {
			return fail_tar(j);
		}
		size -= (uint64_t)n;
	}
	return 0;
}

/* A file's first `size` bytes; UINT64_MAX: all of it. One that is gone or shorter is left out. */
static int put_file(struct job *j, const char *path, const char *name, uint64_t size)
{
	struct stat st;
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	if (fd < 0 || fstat(fd, &st) < 0) {
		int e = errno;
		if (fd >= 0) {
			close(fd);
		}
		j->ret->missing += e == ENOENT;
		return e == ENOENT ? 0 : fail(j, -e, "open", path);
	}
	int r = 0;
	size = size == UINT64_MAX ? (uint64_t)st.st_size : size;
	if ((uint64_t)st.st_size < size) {
		j->ret->missing++;
	} else {
		r = put_head(j, name, AE_IFREG, 0600, size);
		r = r == 0 ? put_bytes(j, fd, path, size) : r;
		j->ret->files++;
	}
	close(fd);
	return r;
}

static int put_run(struct job *j, const struct backup_run *run)
{
	struct ff_buf path = {0}, folder = {0};
	const struct segment_range *range = &run->range;
	size_t front = strlen(j->state) + 1;
	int r = 0;
	segment_folder(j->state, run->number, &folder);
	if (range->end.at || range->end.number > range->first) {
		r = put_head(j, folder.p + front, AE_IFDIR, 0700, 0);
	}
	for (uint32_t n = range->first; n <= range->end.number && r == 0; n++) {
		bool last = n == range->end.number;
		if (last && !range->end.at) {
			break;
		}
		ff_buf_clear(&path);
		segment_path(j->state, run->number, n, &path);
		r = put_file(j, path.p, path.p + front, last ? range->end.at : UINT64_MAX);
	}
	ff_buf_finish(&path);
	ff_buf_finish(&folder);
	return r;
}

static void on_run(void *ud, uint32_t run, struct segment_range range)
{
	struct job *j = ud;
	*FF_ARR_ADD(j->runs, j->nruns, j->cruns) = (struct backup_run){run, range};
}

/* ---- the file */

static int open_part(struct job *j)
{
	struct stat st;
	if (lstat(j->path, &st) == 0) {
		return ff_err_set(
			j->err, -EEXIST, "\"%s\" is there already; it is not overwritten", j->path);
	}
	(void)unlink(j->part.p); /* of one that was cut off */
	(void)unlink(j->db.p);
	j->fd = open(j->part.p, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
	return j->fd < 0 ? fail(j, -errno, "make", j->part.p) : 0;
}

static int fill(struct job *j)
{
	j->tar = archive_write_new();
	if (!j->tar || archive_write_set_format_pax_restricted(j->tar) != ARCHIVE_OK ||
		archive_write_open_fd(j->tar, j->fd) != ARCHIVE_OK) {
		return fail(j, -ENOMEM, "begin", j->part.p);
	}
	int r = put_file(j, j->db.p, "store.db", UINT64_MAX);
	(void)unlink(j->db.p);
	if (r == 0) {
		r = put_head(j, "segments", AE_IFDIR, 0700, 0);
	}
	for (size_t i = 0; i < j->nruns && r == 0; i++) {
		r = put_run(j, &j->runs[i]);
	}
	if (r == 0 && archive_write_close(j->tar) != ARCHIVE_OK) {
		r = fail_tar(j);
	}
	j->ret->runs = j->nruns;
	return r;
}

static int sync_folder(struct job *j)
{
	const char *slash = strrchr(j->path, '/');
	struct ff_buf folder = {0};
	ff_buf_add(&folder, j->path, (size_t)(slash - j->path) + 1);
	int fd = open(folder.p, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int r = fd < 0 || fsync(fd) < 0 ? fail(j, -errno, "sync", folder.p) : 0;
	if (fd >= 0) {
		close(fd);
	}
	ff_buf_finish(&folder);
	return r;
}

/* link() does not overwrite, rename() would. */
static int give_name(struct job *j)
{
	struct stat st;
	if (fsync(j->fd) < 0 || fstat(j->fd, &st) < 0) {
		return fail(j, -errno, "sync", j->part.p);
	}
	j->ret->bytes = (uint64_t)st.st_size;
	if (link(j->part.p, j->path) < 0) {
		return fail(j, -errno, "make", j->path);
	}
	(void)unlink(j->part.p);
	return sync_folder(j);
}

int backup_write(const char *state, const char *path, ff_usec now_us, const atomic_bool *stop,
	struct backup *ret, struct ff_err *err)
{
	struct job j = {.state = state,
		.path = path,
		.now_us = now_us,
		.stop = stop,
		.fd = -1,
		.block = ff_xmalloc(BLOCK),
		.ret = ret,
		.err = err};
	*ret = (struct backup){0};
	ff_buf_addf(&j.part, "%s.part", path);
	ff_buf_addf(&j.db, "%s.part-db", path);
	int r = open_part(&j);
	bool ours = r == 0;
	if (r == 0) {
		r = store_copy(state, j.db.p, stop, on_run, &j, err);
	}
	if (r == 0) {
		r = fill(&j);
	}
	if (r == 0) {
		r = give_name(&j);
	}
	if (r < 0 && ours) {
		(void)unlink(j.part.p);
		(void)unlink(j.db.p);
	}
	archive_write_free(j.tar);
	if (j.fd >= 0) {
		close(j.fd);
	}
	ff_buf_finish(&j.part);
	ff_buf_finish(&j.db);
	free(j.block);
	free(j.runs);
	return r;
}
