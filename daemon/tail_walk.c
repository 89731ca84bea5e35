#include "tail_files_own.h"

#include "base/arr.h"
#include "base/limits.h"
#include "base/mem.h"
#include "clock.h"
#include "tail_reach.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdlib.h>
#include <sys/vfs.h>
#include <unistd.h>

#define WALK_SHARE 10 /* a walk rests ten times as long as it took, */
#define WALK_REST_US (10 * FF_SECOND) /* at most so long, or as long as it took: it may have hung */
#define DEPTH_MAX 32u /* folders below a root */
#define TOLD_MAX 4096u
#define FAILED_MAX 256u /* folders; with more of them nothing is taken for gone */
/* Its name has gone: it is read until it has not grown for so long. Who renamed a log may tell its
 * writer later; who deleted one waits for its space, who unmounted one for the device. */
#define RENAMED_US (60 * FF_SECOND)
#define DELETED_US FF_SECOND

/* ---- what is wrong */

/* Counted and, with a text, said once for a path, until a walk finds it well. */
static void tell(struct files *f, const char *path, uint64_t *count, int error, const char *text)
{
	void *walk = (void *)(uintptr_t)f->walk_number;
	struct ff_str key = ff_str_z(path);
	bool known = ff_map_get(&f->told, key);
	if (!known && f->told.len >= TOLD_MAX) {
		return;
	}
	(void)ff_map_put(&f->told, key, walk);
	if (known) {
		return;
	}
	files_count(f, count);
	if (!text) {
		return;
	}
	struct files_notice *n = files_notice(FILES_TROUBLE, 0);
	n->path = ff_xstrdup(path);
	n->error = error;
	n->text = text;
	files_post(f, n);
}

static void tell_failed(struct files *f, const char *path, int error)
{
	tell(f, path, &f->status.failed, error, "can't be read");
}

static void tell_refused(struct files *f, const char *path, const char *text)
{
	tell(f, path, &f->status.refused, 0, text);
}

/* What this walk did not find wrong is well, or gone. */
static void forget_told(struct files *f)
{
	size_t pos = 0;
	struct ff_str key;
	void *walk;
	while (ff_map_next(&f->told, &pos, &key, &walk)) {
		if ((uint64_t)(uintptr_t)walk != f->walk_number) {
			(void)ff_map_del(&f->told, key);
		}
	}
}

/* A folder that could not be read hides its files: they are not gone. */
static void note_failed(struct files *f, const char *path, int error)
{
	tell_failed(f, path, error);
	if (f->nfailed < FAILED_MAX) {
		*FF_ARR_ADD(f->failed, f->nfailed, f->cfailed) = ff_xstrdup(path);
	}
}

static bool is_hidden(const struct files *f, const char *path)
{
	for (size_t i = 0; i < f->nfailed; i++) {
		size_t n = strlen(f->failed[i]);
		if (!strncmp(path, f->failed[i], n) && (path[n] == '/' || n == 1)) {
			return true;
		}
	}
	return f->nfailed == FAILED_MAX;
}

/* The kernel tells when this folder changes, or this file that a link leads to; else it is
 * polled. */
static void watch(struct files *f, const struct root *root, int fd, const char *path)
{
	int limit = 0;
	if (root->local && tail_watch_add(f->watch, fd, path, clock_mono(), &limit)) {
		return;
	}
	f->polled++;
	if (limit) {
		files_count(f, &f->status.limited);
		struct files_notice *n = files_notice(FILES_LIMIT, 0);
		n->error = limit;
		files_post(f, n);
	}
}

/* ---- files */

struct inode_key {
	uint64_t device, inode;
};

static struct file *find_file(struct files *f, uint64_t device, uint64_t inode)
{
	struct inode_key key = {device, inode};
	return ff_map_get(&f->by_inode, ff_str_n(&key, sizeof key));
}

/* Out of the tables; the loop is told. */
static void forget_file(struct files *f, size_t index)
{
	struct file *file = f->files[index];
	struct inode_key key = {file->device, file->inode};
	if (ff_map_get(&f->by_path, ff_str_z(file->path)) == file) {
		(void)ff_map_del(&f->by_path, ff_str_z(file->path));
	}
	if (!file->let_go) {
		struct files_notice *n = files_notice(FILES_GONE, 0);
		n->file = file->number;
		files_post(f, n);
	}
	(void)ff_map_del(&f->by_inode, ff_str_n(&key, sizeof key));
	f->files[index] = f->files[--f->nfiles];
	tail_read_close(f, file);
	free(file->path);
	free(file);
}

/* May one more be open? It counts as open then. */
static bool is_room(struct files *f)
{
	if (atomic_fetch_add(&f->shared->open, 1) < f->shared->open_max) {
		return true;
	}
	atomic_fetch_sub(&f->shared->open, 1);
	return false;
}

/* What a name stands for, for reading; -1 if it is no file to follow. */
static int open_entry(struct files *f, const struct entry *e, struct stat *ret)
{
	if (!is_room(f)) {
		f->waiting++;
		tell(f, e->path, &f->status.waited, 0, NULL); /* until others are quiet */
		return -1;
	}
	int place = e->linked ? tail_reach_through(e->dir, e->name, ret)
			      : tail_reach_name(e->dir, e->name, ret);
	int fd = -1;
	if (place == -EPERM || place == -ELOOP) {
		tell_refused(f, e->path, "leads through a symbolic link that is not root's");
	} else if (place < 0) {
		if (place != -ENOENT) {
			tell_failed(f, e->path, -place);
		}
	} else if (!S_ISREG(ret->st_mode)) {
		/* not opened even for a look: to open a pipe lets its writer in, to close it again
		 * kills that one; a device may do anything */
		tell_refused(f, e->path, "is no regular file");
	} else if (ret->st_nlink != 1) {
		tell_refused(f, e->path, "has another name too");
	} else {
		fd = tail_reach_read(place);
		if (fd < 0) {
			tell_failed(f, e->path, -fd);
		}
	}
	if (place >= 0) {
		close(place);
	}
	if (fd < 0) {
		atomic_fetch_sub(&f->shared->open, 1);
		return -1;
	}
	return fd;
}

static void add_file(struct files *f, const struct entry *e)
{
	struct stat st;
	int fd = open_entry(f, e, &st);
	if (fd < 0) {
		return;
	}
	struct file *file = ff_xcalloc(1, sizeof *file);
	file->number = ++f->last_number;
	file->root = e->root;
	file->path = ff_xstrdup(e->path);
	file->device = st.st_dev;
	file->inode = st.st_ino;
	file->uid = st.st_uid;
	file->linked = e->linked;
	file->fd = fd;
	file->seen = true;
	file->grown_us = clock_mono();
	tail_read_head(file);
	*FF_ARR_ADD(f->files, f->nfiles, f->cfiles) = file;
	struct inode_key key = {file->device, file->inode};
	(void)ff_map_put(&f->by_inode, ff_str_n(&key, sizeof key), file);
	(void)ff_map_put(&f->by_path, ff_str_z(file->path), file);
	if (file->linked) {
		watch(f, e->root, file->fd, file->path);
	}
	tail_read_found(f, file, &st, false);
}

/* A file that was closed because it was quiet has changed. */
static void wake_file(struct files *f, struct file *file, const struct entry *e)
{
	struct stat st;
	int fd = open_entry(f, e, &st);
	if (fd < 0) {
		return;
	}
	if (st.st_dev != file->device || st.st_ino != file->inode) {
		close(fd); /* replaced in this moment: the next walk sees it */
		atomic_fetch_sub(&f->shared->open, 1);
		return;
	}
	file->fd = fd;
	file->grown_us = clock_mono();
	(void)tail_read_poll(f, file); /* whether the thread is to end is asked again soon */
}

/* It has one name, and this is another one than it had. */
static void move_file(struct files *f, struct file *file, const struct entry *e)
{
	if (ff_map_get(&f->by_path, ff_str_z(file->path)) == file) {
		(void)ff_map_del(&f->by_path, ff_str_z(file->path));
	}
	free(file->path);
	file->path = ff_xstrdup(e->path);
	(void)ff_map_put(&f->by_path, ff_str_z(file->path), file);
	struct files_notice *n = files_notice(FILES_MOVED, 0);
	n->file = file->number;
	n->path = ff_xstrdup(e->path);
	files_post(f, n);
}

static void look_again(struct files *f, struct file *file, const struct entry *e,
	const struct stat *st)
{
	file->seen = true;
	file->unseen_us = 0;
	if (!file->linked && !e->linked && file->root == e->root &&
		strcmp(file->path, e->path) != 0) {
		move_file(f, file, e);
	}
	if (file->linked && file->fd >= 0) {
		watch(f, file->root, file->fd, file->path);
	} else if (file->linked) {
		f->polled++; /* nothing tells when it grows again */
	}
	if (file->let_go) {
		if (st->st_uid != file->uid) {
			file->seen = false; /* who was refused may be let in: it is found anew */
			file->stale = true;
		}
		return;
	}
	if (file->fd < 0 && tail_read_has_changed(file, st)) {
		wake_file(f, file, e);
	}
}

static void look_at_file(struct files *f, struct entry *e, const struct stat *st)
{
	struct stat target = *st;
	if (S_ISLNK(st->st_mode)) {
		if (st->st_uid != 0 || st->st_nlink != 1) {
			tell_refused(f, e->path, "is a symbolic link that is not root's");
			return;
		}
		e->linked = true;
		int place = tail_reach_through(e->dir, e->name, &target);
		if (place >= 0) {
			close(place);
		}
		if (place < 0 || S_ISDIR(target.st_mode)) {
			if (place < 0 && place != -ENOENT) {
				(void)open_entry(f, e, &target); /* says why */
			}
			return;
		}
	}
	struct file *file = find_file(f, target.st_dev, target.st_ino);
	if (file && S_ISREG(target.st_mode)) {
		look_again(f, file, e, &target);
	} else {
		add_file(f, e);
	}
}

/* ---- folders */

static void walk_folder(
	struct files *f, struct root *root, int dir, struct ff_buf *path, unsigned depth);

static void post_root(struct files *f, enum files_notice_kind kind, const struct root *root,
	const char *path, uint64_t device)
{
	struct files_notice *n = files_notice(kind, 0);
	n->pattern = root->pattern->number;
	n->path = ff_xstrdup(path);
	n->device = device;
	files_post(f, n);
}

/* A folder of another file system is another thread's, from now on for good. */
static void hand_over(struct files *f, struct root *root, const char *path)
{
	(void)ff_map_put(&root->mounts, ff_str_z(path), root);
	post_root(f, FILES_MOUNT, root, path, 0);
}

static void look_at_folder(
	struct files *f, const struct entry *e, struct ff_buf *path, unsigned depth)
{
	struct stat st;
	if (ff_map_get(&e->root->mounts, ff_buf_str(path))) {
		return;
	}
	if (depth == DEPTH_MAX) {
		tell_refused(f, e->path, "lies deeper than 32 folders");
		return;
	}
	int fd = tail_reach_folder(e->dir, e->name);
	if (fd == -EXDEV) {
		hand_over(f, e->root, path->p);
	} else if (fd < 0) {
		if (fd != -ENOENT && fd != -ELOOP && fd != -ENOTDIR) {
			note_failed(f, e->path, -fd);
		}
	} else if (fstat(fd, &st) == 0 && (uint64_t)st.st_dev != e->root->device) {
		close(fd); /* not by openat2 */
		hand_over(f, e->root, path->p);
	} else {
		walk_folder(f, e->root, fd, path, depth + 1);
	}
}

static bool does_match(const struct root *root, struct ff_str path)
{
	struct ff_path_identity id = {0};
	bool match = ff_path_pattern_match(root->pattern->parsed, path, &id);
	bool text = match && !id.no_text;
	if (match) {
		ff_path_identity_finish(&id);
	}
	return text;
}

/* type: as in struct dirent. What is said to be a folder is not looked at before it is known to be
 * on this file system. */
static void look_at_entry(
	struct files *f, struct entry *e, unsigned char type, struct ff_buf *path, unsigned depth)
{
	bool file = does_match(e->root, ff_buf_str(path));
	bool folder = ff_path_pattern_may_hold(e->root->pattern->parsed, ff_buf_str(path));
	struct stat st;
	if (type == DT_DIR) {
		if (folder) {
			look_at_folder(f, e, path, depth);
		}
		return;
	}
	if ((!file && (!folder || type != DT_UNKNOWN)) ||
		fstatat(e->dir, e->name, &st, AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT) < 0) {
		return;
	}
	if (folder && S_ISDIR(st.st_mode)) {
		look_at_folder(f, e, path, depth);
	} else if (file && !S_ISDIR(st.st_mode)) {
		look_at_file(f, e, &st);
	}
}

/* dir is given. */
static void walk_folder(
	struct files *f, struct root *root, int dir, struct ff_buf *path, unsigned depth)
{
	DIR *stream = fdopendir(dir);
	if (!stream) {
		note_failed(f, path->p, errno);
		close(dir);
		return;
	}
	watch(f, root, dirfd(stream), path->p);
	files_alive(f);
	size_t len = path->len;
	errno = 0;
	for (struct dirent *d = readdir(stream); d; errno = 0, d = readdir(stream)) {
		if (!strcmp(d->d_name, ".") || !strcmp(d->d_name, "..")) {
			continue;
		}
		if (len > 1) {
			ff_buf_addc(path, '/');
		}
		ff_buf_addz(path, d->d_name);
		struct entry e = {root, dirfd(stream), d->d_name, path->p, false};
		look_at_entry(f, &e, d->d_type, path, depth);
		path->len = len;
		path->p[len] = '\0';
	}
	if (errno) {
		note_failed(f, path->p, errno);
	}
	closedir(stream);
}

static void walk_root(struct files *f, struct root *root)
{
	struct stat st;
	struct statfs fs;
	int fd = open(root->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd >= 0 && fstat(fd, &st) == 0 && fstatfs(fd, &fs) == 0) {
		root->device = st.st_dev; /* what is mounted here may change: its thread stays */
		root->local = tail_watch_is_local((uint64_t)fs.f_type);
		root->flushes = fs.f_type == FUSE_SUPER_MAGIC;
	}
	if (fd < 0) {
		if (errno != ENOENT) {
			note_failed(f, root->path, errno);
		}
		f->polled++;
		return;
	}
	struct ff_buf path = {0};
	ff_buf_addz(&path, root->path);
	walk_folder(f, root, fd, &path, 0);
	ff_buf_finish(&path);
	root->walked = true;
}

/* Is it there? Then the loop says which thread walks it. */
static bool probe_root(struct files *f, const struct root *root)
{
	struct stat st;
	if (stat(root->path, &st) < 0 || !S_ISDIR(st.st_mode)) {
		return false;
	}
	post_root(f, FILES_DEVICE, root, root->path, st.st_dev);
	return true;
}

void tail_walk_drop_root(struct files *f, size_t index)
{
	struct root *root = f->roots[index];
	for (size_t i = 0; i < f->nfiles;) {
		if (f->files[i]->root == root) {
			forget_file(f, i);
		} else {
			i++;
		}
	}
	f->roots[index] = f->roots[--f->nroots];
	files_pattern_leave(root->pattern);
	ff_map_finish(&root->mounts);
	free(root->path);
	free(root);
}

/* ---- a walk */

/* Is something still to come of a file whose name has gone? */
static bool is_left(const struct file *file)
{
	ff_usec since = file->grown_us > file->unseen_us ? file->grown_us : file->unseen_us;
	bool renamed = !file->deleted && file->device == file->root->device;
	ff_usec most = renamed ? RENAMED_US : DELETED_US;
	return file->fd >= 0 && file->started && clock_mono() - since < most;
}

/* Files whose name has gone are read while they grow, then they are gone. False when the thread is
 * to end. */
static bool leave_unseen(struct files *f)
{
	f->left = 0;
	for (size_t i = 0; i < f->nfiles;) {
		struct file *file = f->files[i];
		if (!file->stale && (file->seen || is_hidden(f, file->path))) {
			i++;
			continue;
		}
		file->unseen_us = file->unseen_us ? file->unseen_us : clock_mono();
		if (!tail_read_poll(f, file)) {
			return false;
		}
		if (!file->stale && is_left(file)) {
			f->left++;
			i++;
			continue;
		}
		f->walk_wanted = f->walk_wanted || file->stale;
		forget_file(f, i);
	}
	return true;
}

static void walk_roots(struct files *f)
{
	for (size_t i = 0; i < f->nroots;) {
		if (!f->roots[i]->probing) {
			walk_root(f, f->roots[i++]);
		} else if (probe_root(f, f->roots[i])) {
			tail_walk_drop_root(f, i);
		} else {
			f->polled++;
			i++;
		}
	}
}

bool tail_walk_may_concern(const struct files *f, const char *path)
{
	struct ff_str s = ff_str_z(path);
	for (size_t i = 0; i < f->nroots; i++) {
		const struct root *root = f->roots[i];
		if (ff_str_eqz(s, root->path) || does_match(root, s) ||
			ff_path_pattern_may_hold(root->pattern->parsed, s)) {
			return true;
		}
	}
	return false;
}

static ff_usec rest_us(ff_usec took)
{
	ff_usec most = took > WALK_REST_US ? took : WALK_REST_US;
	return took * WALK_SHARE < most ? took * WALK_SHARE : most;
}

bool tail_walk_all(struct files *f)
{
	ff_usec began = clock_mono();
	f->waiting = 0;
	f->polled = 0;
	f->walk_wanted = false;
	f->walk_number++;
	tail_watch_walk_begin(f->watch);
	for (size_t i = 0; i < f->nfiles; i++) {
		f->files[i]->seen = false;
	}
	walk_roots(f);
	tail_watch_walk_end(f->watch);
	forget_told(f);
	bool go_on = leave_unseen(f);
	while (f->nfailed) {
		free(f->failed[--f->nfailed]);
	}
	ff_usec ended = clock_mono();
	f->walk_due_us = ended + rest_us(ended - began);
	if (f->waiting) {
		f->interval_ms = FILES_POLL_LEAST;
	}
	uv_mutex_lock(&f->lock);
	f->status.waiting = f->waiting;
	f->status.files = f->nfiles;
	f->status.watched = tail_watch_count(f->watch);
	f->status.polled = f->polled;
	uv_mutex_unlock(&f->lock);
	return go_on;
}
