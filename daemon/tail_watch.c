#include "tail_watch.h"

#include "base/buf.h"
#include "base/map.h"
#include "base/mem.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/inotify.h>
#include <unistd.h>

#define EVENTS_BYTES 16384u
#define RETRY_US (60 * FF_SECOND)
#define MASK \
	(IN_MODIFY | IN_ATTRIB | IN_CREATE | IN_DELETE | IN_MOVED_FROM | IN_MOVED_TO | \
		IN_DELETE_SELF | IN_MOVE_SELF)

struct inode_key {
	uint64_t device, inode;
};

struct watched {
	int wd;
	struct inode_key key;
	char *path;
	uint64_t walk; /* that named it last */
};

struct tail_watch {
	int fd; /* -1: none yet */
	ff_usec retry_us;
	uint64_t walk;
	struct ff_map by_inode, by_wd; /* -> watched */
	struct ff_buf path;
	size_t have, at; /* bytes of events */
	_Alignas(struct inotify_event) char events[EVENTS_BYTES];
};

/* linux/magic.h and the file systems' own headers. What is not here is polled: NFS, Lustre, GPFS,
 * BeeGFS, CephFS, SMB, 9p, FUSE and cluster file systems say nothing of other machines' writes. */
bool tail_watch_is_local(uint64_t type)
{
	static const uint32_t types[] = {
		0x0000ef53, /* ext2, ext3, ext4 */
		0x58465342, /* xfs */
		0x9123683e, /* btrfs */
		0x01021994, /* tmpfs */
		0x858458f6, /* ramfs */
		0x794c7630, /* overlayfs */
		0xf2f52010, /* f2fs */
		0x2fc12fc1, /* zfs */
		0xca451a4e, /* bcachefs */
		0x3153464a, /* jfs */
		0x52654973, /* reiserfs */
		0x73717368, /* squashfs */
		0xe0f5e1e2, /* erofs */
	};
	for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
		if (types[i] == (type & 0xffffffffu)) {
			return true;
		}
	}
	return false;
}

struct tail_watch *tail_watch_create(void)
{
	struct tail_watch *w = ff_xcalloc(1, sizeof *w);
	w->fd = -1;
	return w;
}

static void forget(struct tail_watch *w, struct watched *v)
{
	(void)ff_map_del(&w->by_inode, ff_str_n(&v->key, sizeof v->key));
	(void)ff_map_del(&w->by_wd, ff_str_n(&v->wd, sizeof v->wd));
	free(v->path);
	free(v);
}

void tail_watch_destroy(struct tail_watch *w)
{
	if (!w) {
		return;
	}
	size_t pos = 0;
	struct ff_str key;
	void *value;
	while (ff_map_next(&w->by_wd, &pos, &key, &value)) {
		forget(w, value);
	}
	ff_map_finish(&w->by_wd);
	ff_map_finish(&w->by_inode);
	ff_buf_finish(&w->path);
	if (w->fd >= 0) {
		close(w->fd);
	}
	free(w);
}

int tail_watch_fd(const struct tail_watch *w)
{
	return w->fd;
}

size_t tail_watch_count(const struct tail_watch *w)
{
	return w->by_wd.len;
}

void tail_watch_walk_begin(struct tail_watch *w)
{
	w->walk++;
}

void tail_watch_walk_end(struct tail_watch *w)
{
	size_t pos = 0;
	struct ff_str key;
	void *value;
	while (ff_map_next(&w->by_wd, &pos, &key, &value)) {
		struct watched *v = value;
		if (v->walk != w->walk) {
			(void)inotify_rm_watch(w->fd, v->wd);
			forget(w, v);
		}
	}
}

/* The kernel's number for it, or negative errno. */
static int begin(struct tail_watch *w, int fd)
{
	char path[32];
	if (w->fd < 0) {
		w->fd = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
	}
	if (w->fd < 0) {
		return -errno;
	}
	(void)snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
	int wd = inotify_add_watch(w->fd, path, MASK);
	return wd < 0 ? -errno : wd;
}

/* A folder that was moved has its watch under another path. */
static void name(struct watched *v, const char *path)
{
	if (strcmp(v->path, path) != 0) {
		free(v->path);
		v->path = ff_xstrdup(path);
	}
}

bool tail_watch_add(struct tail_watch *w, int fd, const char *path, ff_usec now, int *ret_limit)
{
	struct stat st;
	*ret_limit = 0;
	if (fstat(fd, &st) < 0) {
		return false;
	}
	struct inode_key key = {st.st_dev, st.st_ino};
	struct watched *v = ff_map_get(&w->by_inode, ff_str_n(&key, sizeof key));
	if (v) {
		v->walk = w->walk;
		name(v, path);
		return true;
	}
	if (now < w->retry_us) {
		return false;
	}
	int wd = w->by_wd.len < TAIL_WATCHES ? begin(w, fd) : -ENOSPC;
	if (wd < 0) {
		w->retry_us = now + RETRY_US;
		*ret_limit = -wd;
		return false;
	}
	struct watched *old = ff_map_get(&w->by_wd, ff_str_n(&wd, sizeof wd));
	if (old) { /* the inode's number is another one now, as on some layered file systems */
		forget(w, old);
	}
	v = ff_xcalloc(1, sizeof *v);
	*v = (struct watched){wd, key, ff_xstrdup(path), w->walk};
	(void)ff_map_put(&w->by_inode, ff_str_n(&v->key, sizeof v->key), v);
	(void)ff_map_put(&w->by_wd, ff_str_n(&v->wd, sizeof v->wd), v);
	return true;
}

/* The next event, NULL if there is none. */
static const struct inotify_event *take(struct tail_watch *w)
{
	if (w->at == w->have) {
		ssize_t n = w->fd < 0 ? -1 : read(w->fd, w->events, sizeof w->events);
		w->at = 0;
		w->have = n > 0 ? (size_t)n : 0;
		if (!w->have) {
			return NULL;
		}
	}
	const struct inotify_event *e = (const void *)(w->events + w->at);
	w->at += sizeof *e + e->len;
	return e;
}

enum tail_watch_hint tail_watch_next(struct tail_watch *w, const char **ret_path)
{
	for (const struct inotify_event *e = take(w); e; e = take(w)) {
		if (e->mask & IN_Q_OVERFLOW) {
			return TAIL_WATCH_LOST;
		}
		struct watched *v = ff_map_get(&w->by_wd, ff_str_n(&e->wd, sizeof e->wd));
		if (!v) {
			continue; /* what was said before its watch ended */
		}
		ff_buf_clear(&w->path);
		ff_buf_addz(&w->path, v->path);
		if (e->len) {
			ff_buf_addf(&w->path, "%s%s", w->path.len > 1 ? "/" : "", e->name);
		}
		if (e->mask & IN_IGNORED) {
			forget(w, v); /* it is gone, or its file system is */
		}
		*ret_path = w->path.p;
		return e->mask & IN_MODIFY ? TAIL_WATCH_GROWN : TAIL_WATCH_CHANGED;
	}
	return TAIL_WATCH_NONE;
}
