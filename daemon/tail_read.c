#include "tail_files_own.h"

#include "base/limits.h"
#include "base/mem.h"
#include "clock.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#define QUIET_US (60 * FF_SECOND)     /* then a file is closed */
#define QUIET_MANY_US (5 * FF_SECOND) /* if many are open */
#define HOLE_LEAST 512u               /* NUL bytes behind a line */

void tail_read_found(
	struct files *f, const struct file *file, const struct stat *st, bool distrust)
{
	struct files_notice *n = files_notice(FILES_FOUND, 0);
	n->file = file->number;
	n->pattern = file->root->pattern->number;
	n->path = ff_xstrdup(file->path);
	n->device = file->device;
	n->inode = file->inode;
	n->size = (uint64_t)st->st_size;
	n->uid = st->st_uid;
	n->linked = file->linked;
	memcpy(n->head, file->head, sizeof n->head);
	n->head_length = file->head_length;
	n->first = !file->root->walked;
	n->distrust = distrust;
	files_post(f, n);
}

void tail_read_close(struct files *f, struct file *file)
{
	if (file->fd >= 0) {
		close(file->fd);
		file->fd = -1;
		atomic_fetch_sub(&f->shared->open, 1);
	}
}

ssize_t tail_read_at(int fd, void *p, size_t n, uint64_t at)
{
	ssize_t got;
	do {
		got = pread(fd, p, n, (off_t)at);
	} while (got < 0 && errno == EINTR);
	return got;
}

/* The first line, or as much of it as there is. */
void tail_read_head(struct file *file)
{
	char head[FILES_HEAD];
	ssize_t n = tail_read_at(file->fd, head, sizeof head, 0);
	const char *lf = n > 0 ? memchr(head, '\n', (size_t)n) : NULL;
	if (n > 0) {
		file->head_length = lf ? (unsigned)(lf - head) + 1 : (unsigned)n;
		memcpy(file->head, head, file->head_length);
	}
}

static bool is_head_whole(const struct file *file)
{
	return file->head_length == FILES_HEAD ||
		(file->head_length && file->head[file->head_length - 1] == '\n');
}

/* Do the bytes that are known still stand there? Negative: they can't be read. */
static int is_same_text(struct file *file)
{
	char now[FILES_HEAD];
	if (!file->pos) { /* nothing was read: what it begins with may still come */
		tail_read_head(file);
		return 1;
	}
	ssize_t n = tail_read_at(file->fd, now, file->head_length, 0);
	if (n < 0) {
		return -1;
	}
	if (n != (ssize_t)file->head_length || memcmp(now, file->head, file->head_length) != 0) {
		return 0;
	}
	n = tail_read_at(file->fd, now, file->mark_length, file->pos - file->mark_length);
	if (n < 0) {
		return -1;
	}
	return n == (ssize_t)file->mark_length && !memcmp(now, file->mark, file->mark_length);
}

/* For the loop it is another file from now on. */
static void renumber(struct files *f, struct file *file)
{
	struct files_notice *n = files_notice(FILES_GONE, 0);
	n->file = file->number;
	files_post(f, n);
	file->number = ++f->last_number;
	file->started = false;
}

void tail_read_again(struct files *f, struct file *file, const struct stat *st)
{
	renumber(f, file);
	files_count(f, &f->status.changed);
	file->pos = 0;
	file->head_length = file->mark_length = 0;
	tail_read_head(file);
	tail_read_found(f, file, st, true);
}

/* Whether the new owner's file may stay in its run is the loop's to say. */
static void change_owner(struct files *f, struct file *file, const struct stat *st)
{
	renumber(f, file);
	file->uid = st->st_uid;
	tail_read_found(f, file, st, false);
}

/* It can't be read for now: the walk tries to open it again. */
static void fail(struct files *f, struct file *file)
{
	files_count(f, &f->status.failed);
	file->changed = (struct timespec){0};
	tail_read_close(f, file);
}

static void keep_mark(struct file *file, const char *p, size_t n)
{
	if (n >= FILES_MARK) {
		memcpy(file->mark, p + n - FILES_MARK, FILES_MARK);
		file->mark_length = FILES_MARK;
		return;
	}
	size_t old = file->mark_length;
	if (old + n > FILES_MARK) {
		size_t drop = old + n - FILES_MARK;
		memmove(file->mark, file->mark + drop, old - drop);
		old -= drop;
	}
	memcpy(file->mark + old, p, n);
	file->mark_length = (unsigned)(old + n);
}

static void post_data(struct files *f, struct file *file, const char *p, size_t n)
{
	struct files_notice *data = files_notice(FILES_DATA, n);
	memcpy((char *)(data + 1), p, n);
	data->file = file->number;
	data->offset = file->pos;
	data->read_us = clock_wall();
	keep_mark(file, p, n);
	file->pos += n;
	files_post(f, data);
}

static size_t count_nul(const char *p, size_t n)
{
	size_t i = 0;
	while (i < n && !p[i]) {
		i++;
	}
	return i;
}

/* Does a line begin where reading goes on? */
static bool is_at_line(const struct file *file)
{
	return !file->pos || (file->mark_length && file->mark[file->mark_length - 1] == '\n');
}

/* Nothing but NUL from file->pos to `at`: where to look for text. */
static uint64_t next_data(const struct file *file, uint64_t at, uint64_t size)
{
	off_t data = lseek(file->fd, (off_t)at, SEEK_DATA);
	if (data < 0) {
		return errno == ENXIO ? size : at; /* none, or it can't be asked */
	}
	return (uint64_t)data;
}

/* Gives what was read at `at`, n bytes, to the loop, and returns where to go on. NUL bytes where a
 * line begins are a hole if they are the file's first ones or many; those at the file's end are not
 * written yet, as far as anybody knows. From file->pos to `at` there are but NUL bytes. */
static uint64_t take_read(struct files *f, struct file *file, uint64_t at, size_t n, uint64_t size)
{
	const char *p = f->chunk;
	size_t end = n;
	while (at + n >= size && end && !p[end - 1]) {
		end--;
	}
	size_t nul = is_at_line(file) ? count_nul(p, end) : 0;
	if (nul == end) {
		return end ? next_data(file, at + n, size) : size;
	}
	if (at > file->pos || (nul && !file->pos) || nul >= HOLE_LEAST) {
		files_count(f, &f->status.holes);
		file->pos = at + nul;
		file->mark_length = 0;
		p += nul;
		end -= nul;
	}
	post_data(f, file, p, end);
	file->grown_us = clock_mono();
	if (!f->hinted) {
		f->interval_ms = FILES_POLL_LEAST;
	}
	return at + n;
}

/* Reads up to `size`. False when the thread is to end. */
static bool read_up(struct files *f, struct file *file, uint64_t size)
{
	for (uint64_t at = file->pos; at < size;) {
		if (!files_wait_for_room(f)) {
			return false;
		}
		uint64_t want = size - at;
		ssize_t n = tail_read_at(
			file->fd, f->chunk, want < FILES_CHUNK ? (size_t)want : FILES_CHUNK, at);
		if (n < 0) {
			fail(f, file);
			return true;
		}
		if (!n) {
			break;
		}
		at = take_read(f, file, at, (size_t)n, size);
	}
	if (!is_head_whole(file)) {
		tail_read_head(file);
	}
	return true;
}

bool tail_read_has_changed(const struct file *file, const struct stat *st)
{
	return (uint64_t)st->st_size != file->pos || st->st_mtim.tv_sec != file->changed.tv_sec ||
		st->st_mtim.tv_nsec != file->changed.tv_nsec;
}

/* How long a file that is read stays open without growing. */
static ff_usec quiet_us(const struct files *f, const struct file *file)
{
	/* A process that has a file open on a FUSE that hangs can't end: the kernel waits for the
	 * server's answer to FLUSH (fs/fuse/file.c, fuse_flush). */
	if (f->waiting || file->root->flushes) {
		return 0;
	}
	return atomic_load(&f->shared->open) > f->shared->open_max / 2 ? QUIET_MANY_US : QUIET_US;
}

bool tail_read_poll(struct files *f, struct file *file)
{
	struct stat st;
	if (file->fd < 0 || !file->started || file->let_go) {
		return true;
	}
	if (fstat(file->fd, &st) < 0) {
		fail(f, file);
		return true;
	}
	file->deleted = !st.st_nlink;
	if (st.st_uid != file->uid) {
		change_owner(f, file, &st);
		return true;
	}
	if (!tail_read_has_changed(file, &st)) {
		if (clock_mono() - file->grown_us > quiet_us(f, file) && !file->unseen_us) {
			tail_read_close(f, file);
		}
		return true;
	}
	int same = (uint64_t)st.st_size < file->pos ? 0 : is_same_text(file);
	if (same < 0) {
		fail(f, file);
		return true;
	}
	file->changed = st.st_mtim;
	if (!same) {
		tail_read_again(f, file, &st);
		return true;
	}
	bool go_on = read_up(f, file, (uint64_t)st.st_size);
	if (!quiet_us(f, file) && !file->unseen_us) {
		tail_read_close(f, file);
	}
	return go_on;
}

bool tail_read_poll_all(struct files *f)
{
	for (size_t i = 0; i < f->nfiles; i++) {
		if (!tail_read_poll(f, f->files[i])) {
			return false;
		}
	}
	return true;
}
