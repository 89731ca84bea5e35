#include "tail_files_own.h"

#include "base/arr.h"
#include "base/limits.h"
#include "base/mem.h"
#include "clock.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#define WALK_SHARE 10     /* a walk rests ten times as long as it took */
#define GONE_US FF_SECOND /* its name has gone: what is still written is read so long */
#define DEPTH_MAX 32u     /* folders below a root */

struct inode_key {
	uint64_t device, inode;
};

static struct file *find_file(struct files *f, uint64_t device, uint64_t inode)
{
	struct inode_key key = {device, inode};
	return ff_map_get(&f->by_inode, ff_str_n(&key, sizeof key));
}

static void post_root(struct files *f, enum files_notice_kind kind, const struct root *root,
	const char *path, uint64_t device)
{
	struct files_notice *n = files_notice(kind, 0);
	n->pattern = root->pattern->number;
	n->path = ff_xstrdup(path);
	n->device = device;
	files_post(f, n);
}

/* Out of the tables; the loop is told. */
void tail_walk_forget(struct files *f, size_t index)
{
	struct file *file = f->files[index];
	struct inode_key key = {file->device, file->inode};
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

void tail_walk_drop_root(struct files *f, size_t index)
{
	struct root *root = f->roots[index];
	for (size_t i = 0; i < f->nfiles;) {
		if (f->files[i]->root == root) {
			tail_walk_forget(f, i);
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

static bool is_room(struct files *f)
{
	if (atomic_fetch_add(&f->shared->open, 1) < FF_TAIL_FILES) {
		return true;
	}
	atomic_fetch_sub(&f->shared->open, 1);
	f->waiting++;
	return false;
}

/* Opens a regular file with one name; -1 if it is none or can't be opened. */
static int open_regular(struct files *f, int dir, const char *name, struct stat *ret)
{
	if (!is_room(f)) {
		return -1;
	}
	int fd = openat(dir, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	bool good = fd >= 0 && fstat(fd, ret) == 0;
	if (!good) {
		if (fd >= 0 || (errno != ENOENT && errno != ELOOP)) {
			files_count(f, &f->status.failed);
		}
	} else if (!S_ISREG(ret->st_mode) || ret->st_nlink != 1) {
		files_count(f, &f->status.refused);
		good = false;
	}
	if (!good) {
		if (fd >= 0) {
			close(fd);
		}
		atomic_fetch_sub(&f->shared->open, 1);
		return -1;
	}
	return fd;
}

static void add_file(
	struct files *f, struct root *root, int dir, const char *name, const char *path)
{
	struct stat st;
	int fd = open_regular(f, dir, name, &st);
	if (fd < 0) {
		return;
	}
	struct file *file = ff_xcalloc(1, sizeof *file);
	file->number = ++f->last_number;
	file->root = root;
	file->path = ff_xstrdup(path);
	file->device = st.st_dev;
	file->inode = st.st_ino;
	file->fd = fd;
	file->seen = true;
	file->grown_us = clock_mono();
	tail_read_head(file);
	*FF_ARR_ADD(f->files, f->nfiles, f->cfiles) = file;
	struct inode_key key = {file->device, file->inode};
	(void)ff_map_put(&f->by_inode, ff_str_n(&key, sizeof key), file);
	tail_read_found(f, file, &st, false);
}

/* A file that was closed because it was quiet has changed. */
static void wake_file(struct files *f, struct file *file, int dir, const char *name)
{
	struct stat st;
	int fd = open_regular(f, dir, name, &st);
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
}

static void look_at_file(struct files *f, struct root *root, int dir, const char *name,
	const char *path, const struct stat *st)
{
	struct file *file = find_file(f, st->st_dev, st->st_ino);
	if (!S_ISREG(st->st_mode)) {
		/* not opened even for a look: to open a pipe lets its writer in, to close it again
		 * kills that one; a device may do anything */
		if (!S_ISLNK(st->st_mode)) {
			files_count(f, &f->status.refused);
		}
		return;
	}
	if (!file) {
		add_file(f, root, dir, name, path);
		return;
	}
	file->seen = true;
	file->unseen_us = 0;
	if (file->fd < 0 && !file->let_go && tail_read_has_changed(file, st)) {
		wake_file(f, file, dir, name);
	}
}

/* A folder of another file system is another thread's. */
static bool is_elsewhere(struct files *f, struct root *root, const char *path, uint64_t device)
{
	if (device == root->device) {
		return false;
	}
	if (!ff_map_put(&root->mounts, ff_str_z(path), root)) {
		post_root(f, FILES_MOUNT, root, path, 0);
	}
	return true;
}

static void walk_folder(
	struct files *f, struct root *root, int dir, struct ff_buf *path, unsigned depth);

static void look_at_folder(struct files *f, struct root *root, int dir, const char *name,
	struct ff_buf *path, const struct stat *st, unsigned depth)
{
	if (depth == DEPTH_MAX || is_elsewhere(f, root, path->p, st->st_dev)) {
		return;
	}
	int fd = openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd >= 0) {
		walk_folder(f, root, fd, path, depth + 1);
	} else if (errno != ENOENT) {
		f->walk_failed = true;
		files_count(f, &f->status.failed);
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

static void look_at_entry(struct files *f, struct root *root, int dir, const char *name,
	struct ff_buf *path, unsigned depth)
{
	bool file = does_match(root, ff_buf_str(path));
	bool folder = ff_path_pattern_may_hold(root->pattern->parsed, ff_buf_str(path));
	struct stat st;
	if ((!file && !folder) || fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0) {
		return;
	}
	if (folder && S_ISDIR(st.st_mode)) {
		look_at_folder(f, root, dir, name, path, &st, depth);
	} else if (file && !S_ISDIR(st.st_mode)) {
		look_at_file(f, root, dir, name, path->p, &st);
	}
}

/* dir is given. */
static void walk_folder(
	struct files *f, struct root *root, int dir, struct ff_buf *path, unsigned depth)
{
	DIR *stream = fdopendir(dir);
	if (!stream) {
		close(dir);
		return;
	}
	size_t len = path->len;
	errno = 0;
	for (struct dirent *e = readdir(stream); e; errno = 0, e = readdir(stream)) {
		if (!strcmp(e->d_name, ".") || !strcmp(e->d_name, "..")) {
			continue;
		}
		if (len > 1) {
			ff_buf_addc(path, '/');
		}
		ff_buf_addz(path, e->d_name);
		look_at_entry(f, root, dirfd(stream), e->d_name, path, depth);
		path->len = len;
		path->p[len] = '\0';
	}
	if (errno) {
		f->walk_failed = true;
		files_count(f, &f->status.failed);
	}
	closedir(stream);
}

static void walk_root(struct files *f, struct root *root)
{
	int fd = open(root->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0) {
		if (errno != ENOENT) {
			f->walk_failed = true;
			files_count(f, &f->status.failed);
		}
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

/* Files whose name has gone are read for a moment more, then they are gone. */
static bool leave_unseen(struct files *f)
{
	for (size_t i = 0; i < f->nfiles;) {
		struct file *file = f->files[i];
		ff_usec now = clock_mono();
		if (file->seen) {
			i++;
			continue;
		}
		file->unseen_us = file->unseen_us ? file->unseen_us : now;
		if (now - file->unseen_us < GONE_US && file->fd >= 0 && file->started) {
			i++;
			continue;
		}
		if (!tail_read_poll(f, file)) {
			return false;
		}
		tail_walk_forget(f, i);
	}
	return true;
}

bool tail_walk_all(struct files *f)
{
	ff_usec began = clock_mono();
	f->walk_failed = false;
	f->waiting = 0;
	for (size_t i = 0; i < f->nfiles; i++) {
		f->files[i]->seen = false;
	}
	for (size_t i = 0; i < f->nroots;) {
		if (!f->roots[i]->probing) {
			walk_root(f, f->roots[i++]);
		} else if (probe_root(f, f->roots[i])) {
			tail_walk_drop_root(f, i);
		} else {
			i++;
		}
	}
	ff_usec ended = clock_mono();
	f->walk_due_us = ended + (ended - began) * WALK_SHARE;
	uv_mutex_lock(&f->lock);
	f->status.waiting = f->waiting;
	f->status.files = f->nfiles;
	uv_mutex_unlock(&f->lock);
	/* a folder that could not be read hides its files: they are not gone */
	return f->walk_failed || leave_unseen(f);
}
