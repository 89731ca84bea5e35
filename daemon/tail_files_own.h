/* tail_files_own: what a thread of tail_files.h is made of: tail_files.c (orders, notices, life),
 * tail_read.c (one file), tail_walk.c (which files there are).
 *
 * All but what the lock guards is the thread's own.
 */
#pragma once

#include "tail_files.h"

#include "base/map.h"
#include "tail_watch.h"

#include <sys/stat.h>

#define FILES_POLL_MOST 1000u      /* ms */
#define FILES_CHUNK (256u * 1024u) /* bytes of one read */
#define FILES_POLL_LEAST 100u      /* ms */

struct root {
	struct files_pattern *pattern;
	char *path;
	uint64_t device;
	bool local;           /* its file system tells of every change */
	bool flushes;         /* FUSE: to close a file asks its server, also when a process ends */
	bool probing;         /* its file system is not known yet */
	bool walked;          /* at least once */
	struct ff_map mounts; /* path -> root: folders below that another thread got */
};

struct file {
	uint64_t number;
	struct root *root;
	char *path;
	uint64_t device, inode;
	uid_t uid;
	bool linked;  /* root's own link leads to it */
	int fd;       /* -1: closed because it is quiet */
	bool started; /* the loop has said where to begin */
	bool let_go;
	bool stale;   /* it was let go, and is to be found anew: its owner or its run's changed */
	bool deleted; /* it has no name any more, as far as its file system says */
	bool seen;                   /* by the present walk */
	uint64_t pos;                /* next byte to read */
	struct timespec changed;     /* its mtime when it was looked at last */
	ff_usec grown_us, unseen_us; /* monotonic; unseen_us 0: its name is there */
	char head[FILES_HEAD];
	unsigned head_length;
	char mark[FILES_MARK]; /* bytes before pos */
	unsigned mark_length;
};

/* A name in a folder that is open, while that is walked. */
struct entry {
	struct root *root;
	int dir;
	const char *name, *path;
	bool linked; /* it is root's own symbolic link */
};

enum order_kind {
	ORDER_PROBE,
	ORDER_WALK,
	ORDER_DROP,
	ORDER_START,
	ORDER_LOOK,
	ORDER_LET_GO,
	ORDER_OFFER,
};

struct order {
	struct order *next;
	enum order_kind kind;
	struct files_pattern *pattern; /* of PROBE and WALK: the order is a user of it */
	char *path;
	uint64_t device, look, number;
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
	struct ff_map by_path;  /* path -> file */
	uint64_t last_number;
	struct tail_watch *watch;
	size_t polled;         /* folders that are not watched, as the present walk sees it */
	bool hinted;           /* what is read now was hinted at */
	ff_usec hints_due_us;  /* monotonic; when hints are taken again */
	unsigned interval_ms;  /* between rounds: everything is looked at */
	ff_usec round_due_us;  /* monotonic */
	bool walk_wanted;      /* before the next round */
	ff_usec walk_due_us;   /* not before */
	uint64_t walk_number;
	struct ff_map told; /* path of what is wrong -> number of the walk that saw it last */
	char **failed;      /* folders that the present walk could not read */
	size_t nfailed, cfailed;
	uint64_t waiting; /* files that the present walk could not open */
	size_t left;      /* files that are read though their name has gone */
	char *chunk;

	int wake;        /* eventfd: there are orders, or it is to stop */
	uv_mutex_t lock; /* guards what follows */
	uv_cond_t room;  /* there is, in `ahead`; or it is to stop */
	struct order *orders, **orders_end;
	struct files_notice *notices, **notices_end;
	size_t ahead; /* bytes of them */
	struct files_status status;
	ff_usec alive_us; /* monotonic; when the thread came by last; 0: it waits for orders */
	bool obeying; /* orders that it took */
	bool has_roots;
	bool stop, ended;
};

/* tail_files.c */
struct files_notice *files_notice(enum files_notice_kind kind, size_t bytes);
/* Gives it to the loop. */
void files_post(struct files *f, struct files_notice *n);
/* False when the thread is to end. */
bool files_wait_for_room(struct files *f);
/* It came back from a file system: a long walk is none that hangs. */
void files_alive(struct files *f);
/* One more of a counter in f->status. */
void files_count(struct files *f, uint64_t *which);

/* tail_read.c */
ssize_t tail_read_at(int fd, void *p, size_t n, uint64_t at);
/* Fills in its first line, or as much of it as there is. */
void tail_read_head(struct file *file);
void tail_read_close(struct files *f, struct file *file);
/* Tells the loop of a file that can be followed. */
void tail_read_found(
	struct files *f, const struct file *file, const struct stat *st, bool distrust);
/* The same inode holds another text now: for the loop it is another file. */
void tail_read_again(struct files *f, struct file *file, const struct stat *st);
bool tail_read_has_changed(const struct file *file, const struct stat *st);
/* Looks at an open file. False when the thread is to end. */
bool tail_read_poll(struct files *f, struct file *file);
bool tail_read_poll_all(struct files *f);

/* tail_walk.c */
/* May this path, which is somewhere below a root, be one to follow or lead to one? */
bool tail_walk_may_concern(const struct files *f, const char *path);
/* Frees the root at this place, and what it has. */
void tail_walk_drop_root(struct files *f, size_t index);
/* Finds what there is now. False when the thread is to end. */
bool tail_walk_all(struct files *f);
