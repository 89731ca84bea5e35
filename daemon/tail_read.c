#include "tail_files_own.h"

#include "base/limits.h"
#include "base/mem.h"
#include "clock.h"

#include <errno.h>
#include <unistd.h>

#define QUIET_US (60 * FF_SECOND)     /* then a file is closed */
#define QUIET_MANY_US (5 * FF_SECOND) /* if many are open */

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

/* Do the bytes that are known still stand there? */
static bool is_same_text(const struct file *file)
{
	char now[FILES_HEAD];
	ssize_t n = tail_read_at(file->fd, now, file->head_length, 0);
	if (n != (ssize_t)file->head_length || memcmp(now, file->head, file->head_length) != 0) {
		return false;
	}
	n = tail_read_at(file->fd, now, file->mark_length, file->pos - file->mark_length);
	return n == (ssize_t)file->mark_length && !memcmp(now, file->mark, file->mark_length);
}

/* The same inode holds another text now: for the loop it is another file. */
void tail_read_again(struct files *f, struct file *file, const struct stat *st)
{
	struct files_notice *n = files_notice(FILES_GONE, 0);
	n->file = file->number;
	files_post(f, n);
	files_count(f, &f->status.changed);
	file->number = ++f->last_number;
	file->started = false;
	file->pos = 0;
	file->head_length = file->mark_length = 0;
	tail_read_head(file);
	tail_read_found(f, file, st, true);
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

static void post_data(struct files *f, struct file *file, size_t n)
{
	struct files_notice *data = files_notice(FILES_DATA, n);
	memcpy((char *)(data + 1), f->chunk, n);
	data->file = file->number;
	data->offset = file->pos;
	data->read_us = clock_wall();
	keep_mark(file, f->chunk, n);
	file->pos += n;
	files_post(f, data);
}

/* Reads up to `size`. False when the thread is to end. */
static bool read_up(struct files *f, struct file *file, uint64_t size)
{
	while (file->pos < size) {
		if (!files_wait_for_room(f)) {
			return false;
		}
		uint64_t want = size - file->pos;
		ssize_t n = tail_read_at(file->fd, f->chunk,
			want < FILES_CHUNK ? (size_t)want : FILES_CHUNK, file->pos);
		if (n <= 0) {
			if (n < 0) {
				files_count(f, &f->status.failed);
			}
			break;
		}
		post_data(f, file, (size_t)n);
		file->grown_us = clock_mono();
		f->interval_ms = FILES_POLL_LEAST;
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

/* Looks at an open file. False when the thread is to end. */
bool tail_read_poll(struct files *f, struct file *file)
{
	struct stat st;
	if (file->fd < 0 || !file->started || file->let_go) {
		return true;
	}
	if (fstat(file->fd, &st) < 0) {
		files_count(f, &f->status.failed);
		return true;
	}
	if (!tail_read_has_changed(file, &st)) {
		ff_usec quiet = atomic_load(&f->shared->open) > FF_TAIL_FILES / 2 ? QUIET_MANY_US
										  : QUIET_US;
		if (clock_mono() - file->grown_us > quiet && !file->unseen_us) {
			tail_read_close(f, file);
		}
		return true;
	}
	file->changed = st.st_mtim;
	if ((uint64_t)st.st_size < file->pos || !is_same_text(file)) {
		tail_read_again(f, file, &st);
		return true;
	}
	return read_up(f, file, (uint64_t)st.st_size);
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
