#include "shell/file.h"

#include "base/arr.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static int fail(struct ff_err *err, int error, const char *what, const char *path)
{
	return ff_err_set(err, -error, "cannot %s \"%s\": %s", what, path, ff_strerror(-error));
}

int ff_file_open(const char *path, struct ff_err *err)
{
	struct stat st;
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
	if (fd < 0) {
		return fail(err, errno, "read", path);
	}
	if (fstat(fd, &st) == 0 && S_ISDIR(st.st_mode)) {
		(void)close(fd);
		return fail(err, EISDIR, "read", path);
	}
	return fd;
}

ssize_t ff_file_read(int fd, const char *path, void *p, size_t n, struct ff_err *err)
{
	for (;;) {
		ssize_t got = read(fd, p, n);
		if (got >= 0) {
			return got;
		}
		if (errno != EINTR) {
			return fail(err, errno, "read", path);
		}
	}
}

int ff_file_write(int fd, const void *p, size_t n)
{
	const char *at = p;
	while (n) {
		ssize_t put = write(fd, at, n);
		if (put < 0 && errno != EINTR) {
			return -errno;
		}
		if (put > 0) {
			at += put;
			n -= (size_t)put;
		}
	}
	return 0;
}

int ff_file_load(const char *path, size_t max, struct ff_buf *out, struct ff_err *err)
{
	size_t before = out->len;
	int fd = ff_file_open(path, err);
	if (fd < 0) {
		return fd;
	}
	for (;;) {
		char *to = ff_buf_reserve(out, 65536);
		ssize_t got = ff_file_read(fd, path, to, 65536, err);
		if (got <= 0) {
			(void)close(fd);
			return (int)got;
		}
		out->len += (size_t)got;
		if (out->len - before > max) {
			(void)close(fd);
			return ff_err_set(
				err, FF_ELIMIT, "\"%s\" has more than %zu bytes", path, max);
		}
	}
}

struct ff_str ff_file_base(const char *path)
{
	size_t end = strlen(path);
	while (end > 1 && path[end - 1] == '/') {
		end--;
	}
	size_t start = end;
	while (start && path[start - 1] != '/') {
		start--;
	}
	return start == end ? ff_str_n(path, end) : ff_str_n(path + start, end - start);
}

char *ff_file_join(const char *folder, const char *name)
{
	struct ff_buf b = {0};
	ff_buf_addz(&b, folder);
	if (b.len && b.p[b.len - 1] != '/') {
		ff_buf_addc(&b, '/');
	}
	ff_buf_addz(&b, name);
	return ff_buf_take(&b);
}

bool ff_file_is_folder(const char *path)
{
	struct stat st;
	return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

/* ---- walk */

static int compare(const void *a, const void *b)
{
	return strcmp(
		((const struct ff_file_entry *)a)->below, ((const struct ff_file_entry *)b)->below);
}

static int walk(const char *path, const char *below, unsigned depth, struct ff_file_list *l,
		struct ff_err *err);

/* One name of a folder: a file is listed, a folder is walked. */
static void visit(const char *folder, const char *below, const char *name, unsigned depth,
		  struct ff_file_list *l)
{
	struct stat st;
	char *path = ff_file_join(folder, name);
	char *under = *below ? ff_file_join(below, name) : ff_xstrdup(name);
	bool keep = false;
	if (lstat(path, &st) < 0) {
		l->skipped++;
	} else if (S_ISDIR(st.st_mode)) {
		if (depth >= FF_FILE_DEPTH) {
			l->skipped++;
		} else {
			(void)walk(path, under, depth + 1, l, &l->trouble);
		}
	} else if (S_ISLNK(st.st_mode) && (stat(path, &st) < 0 || !S_ISREG(st.st_mode))) {
		l->skipped++;
	} else if (!S_ISREG(st.st_mode) || l->n >= FF_FILE_MAX) {
		l->skipped++;
	} else {
		*FF_ARR_ADD(l->v, l->n, l->cap) =
			(struct ff_file_entry){path, under, (uint64_t)st.st_size};
		keep = true;
	}
	if (!keep) {
		free(path);
		free(under);
	}
}

static int walk(const char *path, const char *below, unsigned depth, struct ff_file_list *l,
		struct ff_err *err)
{
	DIR *dir = opendir(path);
	if (!dir) {
		return fail(err, errno, "read", path);
	}
	for (;;) {
		errno = 0;
		struct dirent *e = readdir(dir);
		if (!e) {
			break;
		}
		if (e->d_name[0] != '.') {
			visit(path, below, e->d_name, depth, l);
		}
	}
	int error = errno;
	(void)closedir(dir);
	return error ? fail(err, error, "read", path) : 0;
}

int ff_file_walk(const char *folder, struct ff_file_list *ret, struct ff_err *err)
{
	struct ff_file_list l = {0};
	int r = walk(folder, "", 0, &l, err);
	if (r < 0) {
		ff_file_list_finish(&l);
		return r;
	}
	if (l.n) {
		qsort(l.v, l.n, sizeof *l.v, compare);
	}
	*ret = l;
	return 0;
}

void ff_file_list_finish(struct ff_file_list *l)
{
	if (!l) {
		return;
	}
	for (size_t i = 0; i < l->n; i++) {
		free(l->v[i].path);
		free(l->v[i].below);
	}
	free(l->v);
	*l = (struct ff_file_list){0};
}

int ff_file_make_folder(const char *path, struct ff_err *err)
{
	char *copy = ff_xstrdup(path);
	int r = 0;
	for (char *p = copy + 1; r == 0; p++) {
		char c = *p;
		if (c && c != '/') {
			continue;
		}
		*p = '\0';
		if (mkdir(copy, 0700) < 0 && errno != EEXIST && !(c && errno == EROFS)) {
			r = fail(err, errno, "make folder", copy);
		}
		*p = c;
		if (!c) {
			break;
		}
	}
	free(copy);
	if (r == 0 && !ff_file_is_folder(path)) {
		return fail(err, ENOTDIR, "make folder", path);
	}
	return r;
}
