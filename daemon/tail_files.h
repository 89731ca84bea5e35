/* tail_files: the threads that look at files: one for each file system, so that a hung mount stops
 * itself alone.
 *
 * A thread walks its roots and polls its files by stat (100 ms while something grows, up to 1 s
 * else). It knows nothing of runs: it says what it found, and the loop (tail.c) says where to begin
 * reading.
 *
 *	order:  PROBE, WALK (a root) · START (a file) · LOOK · LET_GO
 *	notice: DEVICE (of a root or of a folder on another file system) · FOUND · DATA · GONE ·
 * LOOKED
 *
 * Files are opened below their root only, each folder on the way by its own descriptor and without
 * following links: O_NOFOLLOW|O_NONBLOCK|O_NOCTTY, regular, one link. A file that shrank, whose
 * first line or whose last bytes read have changed, is GONE and FOUND again. A file that is quiet
 * is closed; the walk sees when it grows.
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
	FILES_DEVICE, /* root, path, device */
	FILES_FOUND,  /* file, root, path, device, inode, uid, size, head; fresh, first, distrust */
	FILES_DATA,   /* file, offset, bytes, read_us */
	FILES_GONE,   /* file */
	FILES_LOOKED, /* look */
};

struct files_notice {
	struct files_notice *next;
	enum files_notice_kind kind;
	uint64_t file;    /* number of the file in its thread */
	unsigned pattern; /* index of the root's pattern */
	char *path;
	uint64_t device, inode, size, offset;
	int64_t uid;
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
	uint64_t files, open;
	uint64_t waiting;                  /* beyond FF_TAIL_FILES */
	uint64_t refused, failed, changed; /* as in DAEMON_COUNTS */
	bool hung; /* it has not come back from a file system call for 5 s */
};

struct files; /* a thread */

/* What all threads share. */
struct files_shared {
	struct ff_path_pattern **patterns; /* by index; borrowed, constant */
	atomic_uint open;                  /* files that are open */
	uv_async_t *notify;                /* wakes the loop */
};

int files_create(struct files_shared *shared, struct files **ret, struct ff_err *err);

/* Orders; never wait for the thread. path NULL: the pattern's own root. */
void files_probe(struct files *f, unsigned pattern);
void files_walk(struct files *f, unsigned pattern, const char *path, uint64_t device);
void files_start(struct files *f, const struct files_start *start);
/* Walks at once and reads every file to the size it has then; LOOKED says so. */
void files_look(struct files *f, uint64_t look);
/* This file belongs to nobody: it is not read. */
void files_let_go(struct files *f, uint64_t file);

/* The next notice (the caller's, freed with free()), or NULL. */
struct files_notice *files_take(struct files *f);
void files_status(struct files *f, struct files_status *ret);
uint64_t files_hash(struct ff_str s);

/* Asks the thread to end. */
void files_stop(struct files *f);
bool files_stopped(struct files *f);
/* After files_stopped(). */
void files_destroy(struct files *f);
