/* tail_files: the threads that look at files: one for each file system, so that a hung mount stops
 * itself alone.
 *
 * A thread walks its roots and polls its files by stat: each 100 ms while something grows, else
 * ever more slowly, up to 1 s; up to 8 s while every folder is watched (tail_watch.h), where hints
 * wake it. It knows nothing of runs: it says what it found, and the loop (tail.c) says where to
 * begin reading.
 *
 *	order:  PROBE, WALK (a root) · DROP (a pattern) · START, LET_GO (a file) · LOOK
 *	notice: DEVICE (of a root) · MOUNT (a folder on another file system) · FOUND · DATA · GONE ·
 *	        LOOKED
 *
 * Files are opened below their root only, each folder on the way by its own descriptor and without
 * following links but root's own (tail_reach.h); they are regular and have one name. A file that
 * shrank, whose first line or whose last bytes read have changed, is GONE and FOUND again; so is
 * one whose owner changed. A file that is quiet is closed; the walk sees when it grows. One whose
 * name has gone is read while it grows. A hole (NUL bytes at the beginning, which a writer without
 * O_APPEND leaves after copytruncate) is skipped: DATA goes on behind it.
 *
 * Bounded: FILES_AHEAD bytes of notices that the loop has not taken; then the thread waits.
 */
#pragma once

#include "base/err.h"
#include "base/usec.h"
#include "feed/path.h"

#include <stdatomic.h>
#include <uv.h>

#define FILES_HEAD 256u /* bytes of the first line that prove identity */
#define FILES_MARK 64u  /* bytes before the place where reading goes on */
#define FILES_AHEAD (2u * 1024u * 1024u)

enum files_notice_kind {
	FILES_DEVICE, /* pattern, path, device: what was probed is there, and no root any more */
	FILES_MOUNT,  /* pattern, path */
	FILES_FOUND,   /* file, pattern, path, device, inode, uid, size, head; linked, first,
			* distrust */
	FILES_DATA,    /* file, offset, bytes, read_us */
	FILES_MOVED,   /* file, path */
	FILES_GONE,    /* file */
	FILES_TROUBLE, /* path, error, text: counted, and said once while it lasts */
	FILES_LIMIT,   /* error: folders are not watched, but polled */
	FILES_LOOKED,  /* look */
};

struct files_notice {
	struct files_notice *next;
	enum files_notice_kind kind;
	uint64_t file;    /* number of the file in its thread */
	uint64_t pattern; /* number of the root's pattern, which may be gone */
	char *path;
	uint64_t device, inode, size, offset;
	int64_t uid;
	bool linked; /* root's own link led to it */
	int error;   /* errno, 0 */
	const char *text;
	char head[FILES_HEAD];
	unsigned head_length;
	bool first;      /* it was there when its root was walked first */
	bool distrust;   /* it is not what START took it for, or has been rewritten */
	ff_usec read_us; /* wall clock */
	uint64_t look;
	struct ff_str bytes; /* behind the struct */
};

/* Where to begin reading a file; what stands before must have this hash, if length is not 0. */
struct files_start {
	uint64_t file, offset;
	uint64_t mark_at; /* offset behind the bytes that are hashed */
	unsigned mark_length;
	uint64_t mark_hash;
};

struct files_status {
	uint64_t files;
	uint64_t watched, polled; /* folders with a watch, and without one */
	uint64_t limited;         /* how often a limit of watches was met */
	uint64_t waiting;                                 /* beyond the limit, now */
	uint64_t refused, failed, changed, waited, holes; /* as in DAEMON_COUNTS */
	bool hung; /* it has not come back from a file system call for 5 s */
};

struct files; /* a thread */

/* A pattern, of the loop and of every thread that has a root of it; the last one frees it. */
struct files_pattern {
	uint64_t number; /* never given twice */
	char *text;
	bool of_node; /* its files are nodes' own logs; of no account to the threads */
	struct ff_path_pattern *parsed;
	atomic_uint users;
};

/* NULL with err if the text is no pattern. The caller is a user of it. */
struct files_pattern *files_pattern_create(uint64_t number, const char *text, struct ff_err *err);
void files_pattern_leave(struct files_pattern *p);

/* What all threads share. */
struct files_shared {
	atomic_uint open;   /* files that are open */
	unsigned open_max;
	uv_async_t *notify; /* wakes the loop */
};

int files_create(struct files_shared *shared, struct files **ret, struct ff_err *err);

/* Has it nothing to look at, and no order? */
bool files_is_free(struct files *f);

/* Orders; never wait for the thread. */
void files_probe(struct files *f, struct files_pattern *pattern, const char *path);
void files_walk(
	struct files *f, struct files_pattern *pattern, const char *path, uint64_t device);
/* Its roots and their files are let go: GONE says of which. */
void files_drop(struct files *f, uint64_t pattern);
void files_start(struct files *f, const struct files_start *start);
/* Walks at once and reads every file to the size it has then; LOOKED says so. */
void files_look(struct files *f, uint64_t look);
/* This file belongs to nobody: it is not read. */
void files_let_go(struct files *f, uint64_t file);
/* Those of this user's files that were let go are found anew: FOUND says so. */
void files_offer(struct files *f, int64_t uid);

/* The next notice (the caller's, freed with free()), or NULL. */
struct files_notice *files_take(struct files *f);
void files_status(struct files *f, struct files_status *ret);
uint64_t files_hash(struct ff_str s);

/* Asks the thread to end. */
void files_stop(struct files *f);
bool files_stopped(struct files *f);
/* After files_stopped(). */
void files_destroy(struct files *f);
