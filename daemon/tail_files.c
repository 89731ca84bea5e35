#include "tail_files.h"

#include "base/arr.h"
#include "base/limits.h"
#include "base/map.h"
#include "base/mem.h"
#include "clock.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define CHUNK (256u * 1024u) /* bytes of one read */
#define POLL_LEAST 100u      /* ms */
#define POLL_MOST 1000u
#define WALK_SHARE 10                 /* a walk rests ten times as long as it took */
#define QUIET_US (60 * FF_SECOND)     /* then a file is closed */
#define QUIET_MANY_US (5 * FF_SECOND) /* if many are open */
#define GONE_US FF_SECOND             /* its name has gone: what is still written is read so long */
#define HUNG_US (5 * FF_SECOND)
#define DEPTH_MAX 32u /* folders below a root */

struct root {
	unsigned pattern;
	char *path;
	uint64_t device;
	bool probing; /* its file system is not known yet */
	bool active;  /* this thread walks it */
	bool walked;  /* at least once */
};

struct file {
	uint64_t number;
	struct root *root;
	char *path;
	uint64_t device, inode;
	int fd;       /* -1: closed because it is quiet */
	bool started; /* the loop has said where to begin */
	bool let_go;
	bool seen;                   /* by the present walk */
	uint64_t pos;                /* next byte to read */
	struct timespec changed;     /* its mtime when it was looked at last */
	ff_usec grown_us, unseen_us; /* monotonic; unseen_us 0: its name is there */
	char head[FILES_HEAD];
	unsigned head_length;
	char mark[FILES_MARK]; /* bytes before pos */
	unsigned mark_length;
};

enum order_kind { ORDER_PROBE, ORDER_WALK, ORDER_START, ORDER_LOOK, ORDER_LET_GO };

struct order {
	struct order *next;
	enum order_kind kind;
	unsigned pattern;
	char *path;
	uint64_t device, look;
	struct files_start start;
};

struct files {
	struct files_shared *shared;
	uv_thread_t thread;
	/* the thread's own */
	struct root **roots;
	size_t nroots, croots;
	struct file **files;
	size_t nfiles, cfiles;
	struct ff_map by_inode; /* device, inode as bytes -> file */
	struct ff_map handed;   /* "PATTERN PATH" of folders that another thread got */
	uint64_t last_number;
	unsigned interval_ms;
	ff_usec walk_due_us;
	bool walk_failed;
	uint64_t waiting; /* files that the present walk could not open */
	char *chunk;

	uv_mutex_t lock; /* guards what follows */
	uv_cond_t wake;
	struct order *orders, **orders_end;
	struct files_notice *notices, **notices_end;
	size_t ahead; /* bytes of them */
	struct files_status status;
	ff_usec alive_us; /* monotonic; when the thread came by last; 0: it waits for orders */
	bool stop, ended;
};

uint64_t files_hash(struct ff_str s)
{
	return ff_str_hash(s, FF_HASH_INIT);
}

/* ---- notices */

static struct files_notice *notice(enum files_notice_kind kind, size_t bytes)
{
	struct files_notice *n = ff_xcalloc(1, sizeof *n + bytes);
	n->kind = kind;
	n->bytes = (struct ff_str){(char *)(n + 1), bytes};
	return n;
}

/* Gives it to the loop. */
static void post(struct files *f, struct files_notice *n)
{
	uv_mutex_lock(&f->lock);
	*f->notices_end = n;
	f->notices_end = &n->next;
	f->ahead += sizeof *n + n->bytes.n;
	uv_mutex_unlock(&f->lock);
	uv_async_send(f->shared->notify);
}

/* False when the thread is to end. */
static bool wait_for_room(struct files *f)
{
	uv_mutex_lock(&f->lock);
	f->alive_us = 0;
	while (f->ahead >= FILES_AHEAD && !f->stop) {
		uv_cond_wait(&f->wake, &f->lock);
	}
	f->alive_us = clock_mono();
	bool go_on = !f->stop;
	uv_mutex_unlock(&f->lock);
	return go_on;
}

static void count(struct files *f, uint64_t *which)
{
	uv_mutex_lock(&f->lock);
	++*which;
	uv_mutex_unlock(&f->lock);
}

static void post_device(struct files *f, unsigned pattern, const char *path, uint64_t device)
{
	struct files_notice *n = notice(FILES_DEVICE, 0);
	n->pattern = pattern;
	n->path = ff_xstrdup(path);
	n->device = device;
	post(f, n);
}

static void post_found(
	struct files *f, const struct file *file, const struct stat *st, bool distrust)
{
	struct files_notice *n = notice(FILES_FOUND, 0);
	n->file = file->number;
	n->pattern = file->root->pattern;
	n->path = ff_xstrdup(file->path);
	n->device = file->device;
	n->inode = file->inode;
	n->size = (uint64_t)st->st_size;
	n->uid = st->st_uid;
	memcpy(n->head, file->head, sizeof n->head);
	n->head_length = file->head_length;
	n->first = !file->root->walked;
	n->distrust = distrust;
	post(f, n);
}

/* ---- one file */

struct inode_key {
	uint64_t device, inode;
};

static struct file *find_file(struct files *f, uint64_t device, uint64_t inode)
{
	struct inode_key key = {device, inode};
	return ff_map_get(&f->by_inode, ff_str_n(&key, sizeof key));
}

static void file_close(struct files *f, struct file *file)
{
	if (file->fd >= 0) {
		close(file->fd);
		file->fd = -1;
		atomic_fetch_sub(&f->shared->open, 1);
	}
}

static void file_free(struct files *f, struct file *file)
{
	file_close(f, file);
	free(file->path);
	free(file);
}

/* Out of the tables; the loop is told. */
static void forget_file(struct files *f, size_t index)
{
	struct file *file = f->files[index];
	struct inode_key key = {file->device, file->inode};
	if (!file->let_go) {
		struct files_notice *n = notice(FILES_GONE, 0);
		n->file = file->number;
		post(f, n);
	}
	(void)ff_map_del(&f->by_inode, ff_str_n(&key, sizeof key));
	f->files[index] = f->files[--f->nfiles];
	file_free(f, file);
}

static ssize_t read_at(int fd, void *p, size_t n, uint64_t at)
{
	ssize_t got;
	do {
		got = pread(fd, p, n, (off_t)at);
	} while (got < 0 && errno == EINTR);
	return got;
}

/* The first line, or as much of it as there is. */
static void read_head(struct file *file)
{
	char head[FILES_HEAD];
	ssize_t n = read_at(file->fd, head, sizeof head, 0);
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
	ssize_t n = read_at(file->fd, now, file->head_length, 0);
	if (n != (ssize_t)file->head_length || memcmp(now, file->head, file->head_length) != 0) {
		return false;
	}
	n = read_at(file->fd, now, file->mark_length, file->pos - file->mark_length);
	return n == (ssize_t)file->mark_length && !memcmp(now, file->mark, file->mark_length);
}

/* The same inode holds another text now: for the loop it is another file. */
static void begin_again(struct files *f, struct file *file, const struct stat *st)
{
	struct files_notice *n = notice(FILES_GONE, 0);
	n->file = file->number;
	post(f, n);
	count(f, &f->status.changed);
	file->number = ++f->last_number;
	file->started = false;
	file->pos = 0;
	file->head_length = file->mark_length = 0;
	read_head(file);
	post_found(f, file, st, true);
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
	struct files_notice *data = notice(FILES_DATA, n);
	memcpy((char *)(data + 1), f->chunk, n);
	data->file = file->number;
	data->offset = file->pos;
	data->read_us = clock_wall();
	keep_mark(file, f->chunk, n);
	file->pos += n;
	post(f, data);
}

/* Reads up to `size`. False when the thread is to end. */
static bool read_up(struct files *f, struct file *file, uint64_t size)
{
	while (file->pos < size) {
		if (!wait_for_room(f)) {
			return false;
		}
		uint64_t want = size - file->pos;
		ssize_t n =
			read_at(file->fd, f->chunk, want < CHUNK ? (size_t)want : CHUNK, file->pos);
		if (n <= 0) {
			if (n < 0) {
				count(f, &f->status.failed);
			}
			break;
		}
		post_data(f, file, (size_t)n);
		file->grown_us = clock_mono();
		f->interval_ms = POLL_LEAST;
	}
	if (!is_head_whole(file)) {
		read_head(file);
	}
	return true;
}

static bool has_changed(const struct file *file, const struct stat *st)
{
	return (uint64_t)st->st_size != file->pos || st->st_mtim.tv_sec != file->changed.tv_sec ||
		st->st_mtim.tv_nsec != file->changed.tv_nsec;
}

/* Looks at an open file. False when the thread is to end. */
static bool poll_file(struct files *f, struct file *file)
{
	struct stat st;
	if (file->fd < 0 || !file->started || file->let_go) {
		return true;
	}
	if (fstat(file->fd, &st) < 0) {
		count(f, &f->status.failed);
		return true;
	}
	if (!has_changed(file, &st)) {
		ff_usec quiet = atomic_load(&f->shared->open) > FF_TAIL_FILES / 2 ? QUIET_MANY_US
										  : QUIET_US;
		if (clock_mono() - file->grown_us > quiet && !file->unseen_us) {
			file_close(f, file);
		}
		return true;
	}
	file->changed = st.st_mtim;
	if ((uint64_t)st.st_size < file->pos || !is_same_text(file)) {
		begin_again(f, file, &st);
		return true;
	}
	return read_up(f, file, (uint64_t)st.st_size);
}

/* ---- walking */

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
			count(f, &f->status.failed);
		}
	} else if (!S_ISREG(ret->st_mode) || ret->st_nlink != 1) {
		count(f, &f->status.refused);
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
	read_head(file);
	*FF_ARR_ADD(f->files, f->nfiles, f->cfiles) = file;
	struct inode_key key = {file->device, file->inode};
	(void)ff_map_put(&f->by_inode, ff_str_n(&key, sizeof key), file);
	post_found(f, file, &st, false);
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
			count(f, &f->status.refused);
		}
		return;
	}
	if (!file) {
		add_file(f, root, dir, name, path);
		return;
	}
	file->seen = true;
	file->unseen_us = 0;
	if (file->fd < 0 && !file->let_go && has_changed(file, st)) {
		wake_file(f, file, dir, name);
	}
}

/* A folder of another file system is another thread's. */
static bool is_elsewhere(
	struct files *f, const struct root *root, const char *path, uint64_t device)
{
	if (device == root->device) {
		return false;
	}
	struct ff_buf key = {0};
	ff_buf_addf(&key, "%u %s", root->pattern, path);
	if (!ff_map_put(&f->handed, ff_buf_str(&key), f)) {
		post_device(f, root->pattern, path, device);
	}
	ff_buf_finish(&key);
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
		count(f, &f->status.failed);
	}
}

static bool does_match(const struct files *f, const struct root *root, struct ff_str path)
{
	struct ff_path_identity id = {0};
	bool match = ff_path_pattern_match(f->shared->patterns[root->pattern], path, &id);
	bool text = match && !id.no_text;
	if (match) {
		ff_path_identity_finish(&id);
	}
	return text;
}

static void look_at_entry(struct files *f, struct root *root, int dir, const char *name,
	struct ff_buf *path, unsigned depth)
{
	const struct ff_path_pattern *pattern = f->shared->patterns[root->pattern];
	bool file = does_match(f, root, ff_buf_str(path));
	bool folder = ff_path_pattern_may_hold(pattern, ff_buf_str(path));
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
		count(f, &f->status.failed);
	}
	closedir(stream);
}

static void walk_root(struct files *f, struct root *root)
{
	int fd = open(root->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0) {
		if (errno != ENOENT) {
			f->walk_failed = true;
			count(f, &f->status.failed);
		}
		return;
	}
	struct ff_buf path = {0};
	ff_buf_addz(&path, root->path);
	walk_folder(f, root, fd, &path, 0);
	ff_buf_finish(&path);
	root->walked = true;
}

static void probe_root(struct files *f, struct root *root)
{
	struct stat st;
	if (stat(root->path, &st) == 0 && S_ISDIR(st.st_mode)) {
		root->probing = false;
		post_device(f, root->pattern, NULL, st.st_dev);
	}
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
		if (!poll_file(f, file)) {
			return false;
		}
		forget_file(f, i);
	}
	return true;
}

static bool walk_all(struct files *f)
{
	ff_usec began = clock_mono();
	f->walk_failed = false;
	f->waiting = 0;
	for (size_t i = 0; i < f->nfiles; i++) {
		f->files[i]->seen = false;
	}
	for (size_t i = 0; i < f->nroots; i++) {
		if (f->roots[i]->probing) {
			probe_root(f, f->roots[i]);
		} else if (f->roots[i]->active) {
			walk_root(f, f->roots[i]);
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

static bool poll_all(struct files *f)
{
	for (size_t i = 0; i < f->nfiles; i++) {
		if (!poll_file(f, f->files[i])) {
			return false;
		}
	}
	return true;
}

/* ---- orders */

static void add_root(struct files *f, const struct order *o, bool probing)
{
	const char *path =
		o->path ? o->path : ff_path_pattern_root(f->shared->patterns[o->pattern]);
	for (size_t i = 0; i < f->nroots; i++) {
		if (f->roots[i]->pattern == o->pattern && !strcmp(f->roots[i]->path, path)) {
			f->roots[i]->device = o->device; /* it was probed here */
			f->roots[i]->probing = probing;
			f->roots[i]->active = !probing;
			return;
		}
	}
	struct root *root = ff_xcalloc(1, sizeof *root);
	root->pattern = o->pattern;
	root->path = ff_xstrdup(path);
	root->device = o->device;
	root->probing = probing;
	root->active = !probing;
	*FF_ARR_ADD(f->roots, f->nroots, f->croots) = root;
}

static struct file *file_by_number(struct files *f, uint64_t number)
{
	for (size_t i = 0; i < f->nfiles; i++) {
		if (f->files[i]->number == number) {
			return f->files[i];
		}
	}
	return NULL;
}

/* Reading begins, if what stands before the place is what was there. */
static void start_file(struct files *f, const struct files_start *s)
{
	struct file *file = file_by_number(f, s->file);
	char before[FILES_MARK];
	if (!file || file->fd < 0) {
		return;
	}
	if (s->mark_length) {
		ssize_t n = read_at(file->fd, before, s->mark_length, s->mark_at - s->mark_length);
		if (n != (ssize_t)s->mark_length ||
			files_hash(ff_str_n(before, (size_t)n)) != s->mark_hash) {
			struct stat st = {0};
			(void)fstat(file->fd, &st);
			begin_again(f, file, &st);
			return;
		}
	}
	file->pos = s->offset;
	file->mark_length = 0;
	file->started = true;
}

/* Everything there is now is found and read. */
static bool look(struct files *f, uint64_t number)
{
	if (!walk_all(f) || !poll_all(f)) {
		return false;
	}
	struct files_notice *n = notice(FILES_LOOKED, 0);
	n->look = number;
	post(f, n);
	return true;
}

static bool obey(struct files *f, const struct order *o)
{
	switch (o->kind) {
	case ORDER_PROBE: add_root(f, o, true); break;
	case ORDER_WALK: add_root(f, o, false); break;
	case ORDER_START: start_file(f, &o->start); break;
	case ORDER_LOOK: return look(f, o->look);
	case ORDER_LET_GO: {
		struct file *file = file_by_number(f, o->start.file);
		if (file) {
			file->let_go = true;
			file_close(f, file);
		}
		break;
	}
	}
	return true;
}

/* All orders that came, or the end of the pause. False when the thread is to end. */
static bool take_orders(struct files *f, unsigned wait_ms)
{
	uv_mutex_lock(&f->lock);
	if (!f->orders && !f->stop) {
		f->alive_us = 0;
		(void)uv_cond_timedwait(&f->wake, &f->lock, (uint64_t)wait_ms * 1000000);
	}
	struct order *o = f->orders;
	f->orders = NULL;
	f->orders_end = &f->orders;
	f->alive_us = clock_mono();
	bool go_on = !f->stop;
	uv_mutex_unlock(&f->lock);
	while (o) {
		struct order *next = o->next;
		go_on = go_on && obey(f, o);
		free(o->path);
		free(o);
		o = next;
	}
	return go_on;
}

static void work(void *ud)
{
	struct files *f = ud;
	while (take_orders(f, f->interval_ms)) {
		f->interval_ms = f->interval_ms * 2 < POLL_MOST ? f->interval_ms * 2 : POLL_MOST;
		if (!poll_all(f) || (clock_mono() >= f->walk_due_us && !walk_all(f))) {
			break;
		}
	}
	uv_mutex_lock(&f->lock);
	f->ended = true;
	f->alive_us = 0;
	uv_mutex_unlock(&f->lock);
	uv_async_send(f->shared->notify);
}

static void give(struct files *f, struct order order)
{
	struct order *o = ff_xmalloc(sizeof *o);
	*o = order;
	o->next = NULL;
	uv_mutex_lock(&f->lock);
	*f->orders_end = o;
	f->orders_end = &o->next;
	uv_cond_signal(&f->wake);
	uv_mutex_unlock(&f->lock);
}

void files_probe(struct files *f, unsigned pattern)
{
	give(f, (struct order){.kind = ORDER_PROBE, .pattern = pattern});
}

void files_walk(struct files *f, unsigned pattern, const char *path, uint64_t device)
{
	give(f,
		(struct order){.kind = ORDER_WALK,
			.pattern = pattern,
			.path = ff_xstrdup(path),
			.device = device});
}

void files_start(struct files *f, const struct files_start *start)
{
	give(f, (struct order){.kind = ORDER_START, .start = *start});
}

void files_look(struct files *f, uint64_t number)
{
	give(f, (struct order){.kind = ORDER_LOOK, .look = number});
}

void files_let_go(struct files *f, uint64_t file)
{
	give(f, (struct order){.kind = ORDER_LET_GO, .start.file = file});
}

struct files_notice *files_take(struct files *f)
{
	uv_mutex_lock(&f->lock);
	struct files_notice *n = f->notices;
	if (n) {
		f->notices = n->next;
		if (!f->notices) {
			f->notices_end = &f->notices;
		}
		n->next = NULL;
		bool full = f->ahead >= FILES_AHEAD;
		f->ahead -= sizeof *n + n->bytes.n;
		if (full && f->ahead < FILES_AHEAD) {
			uv_cond_signal(&f->wake);
		}
	}
	uv_mutex_unlock(&f->lock);
	return n;
}

void files_status(struct files *f, struct files_status *ret)
{
	uv_mutex_lock(&f->lock);
	*ret = f->status;
	ret->hung = f->alive_us && clock_mono() - f->alive_us > HUNG_US;
	uv_mutex_unlock(&f->lock);
}

/* ---- life */

int files_create(struct files_shared *shared, struct files **ret, struct ff_err *err)
{
	struct files *f = ff_xcalloc(1, sizeof *f);
	f->shared = shared;
	f->interval_ms = POLL_LEAST;
	f->chunk = ff_xmalloc(CHUNK);
	f->orders_end = &f->orders;
	f->notices_end = &f->notices;
	uv_mutex_init(&f->lock);
	uv_cond_init(&f->wake);
	int r = uv_thread_create(&f->thread, work, f);
	if (r < 0) {
		uv_cond_destroy(&f->wake);
		uv_mutex_destroy(&f->lock);
		free(f->chunk);
		free(f);
		return ff_err_set(err, r, "cannot start a thread for tail: %s", uv_strerror(r));
	}
	*ret = f;
	return 0;
}

void files_stop(struct files *f)
{
	uv_mutex_lock(&f->lock);
	f->stop = true;
	uv_cond_signal(&f->wake);
	uv_mutex_unlock(&f->lock);
}

bool files_stopped(struct files *f)
{
	uv_mutex_lock(&f->lock);
	bool ended = f->ended;
	uv_mutex_unlock(&f->lock);
	return ended;
}

void files_destroy(struct files *f)
{
	if (!f) {
		return;
	}
	uv_thread_join(&f->thread);
	while (f->orders) {
		struct order *next = f->orders->next;
		free(f->orders->path);
		free(f->orders);
		f->orders = next;
	}
	for (struct files_notice *n = files_take(f); n; n = files_take(f)) {
		free(n->path);
		free(n);
	}
	for (size_t i = 0; i < f->nfiles; i++) {
		file_free(f, f->files[i]);
	}
	for (size_t i = 0; i < f->nroots; i++) {
		free(f->roots[i]->path);
		free(f->roots[i]);
	}
	free(f->files);
	free(f->roots);
	ff_map_finish(&f->by_inode);
	ff_map_finish(&f->handed);
	free(f->chunk);
	uv_cond_destroy(&f->wake);
	uv_mutex_destroy(&f->lock);
	free(f);
}
