/* tail_watch: the kernel's word that something in a folder changed (inotify, see inotify(7)): a
 * hint to look at once. One for a thread.
 *
 * Nothing depends on it: events may be lost, and there are none for what another machine writes,
 * for memory maps, or beyond fs.inotify.max_user_watches and max_user_instances. Who polls goes on
 * to poll; it may do so less often while every folder is watched.
 *
 * Folders are watched, not files, but for files that a link leads to. A walk names each folder
 * again; what it does not name is not watched any more.
 *
 * Bounded: TAIL_WATCHES watches of a thread. After a limit was met nothing new is tried for a
 * minute.
 */
#pragma once

#include "base/str.h"
#include "base/usec.h"

#include <sys/stat.h>

#define TAIL_WATCHES 16384u

struct tail_watch; /* opaque */

struct tail_watch *tail_watch_create(void);
void tail_watch_destroy(struct tail_watch *w);

/* Does a file system of this statfs type tell of every change? Only local ones do. */
bool tail_watch_is_local(uint64_t type);

void tail_watch_walk_begin(struct tail_watch *w);
/* What fd is open on, a folder or a file (path: borrowed). False: it is not watched; then
 * *ret_limit is an errno where a limit was met just now, else 0. */
bool tail_watch_add(struct tail_watch *w, int fd, const char *path, ff_usec now, int *ret_limit);
void tail_watch_walk_end(struct tail_watch *w);
size_t tail_watch_count(const struct tail_watch *w);

/* Becomes readable when there is a hint; -1: there is nothing to wait for. */
int tail_watch_fd(const struct tail_watch *w);
enum tail_watch_hint {
	TAIL_WATCH_NONE,    /* no more */
	TAIL_WATCH_GROWN,   /* what has this name was written to */
	TAIL_WATCH_CHANGED, /* the name is new or gone, or its rights are others */
	TAIL_WATCH_LOST,    /* anything may have changed */
};
/* The next hint; the path is valid until the next call. Never waits. */
enum tail_watch_hint tail_watch_next(struct tail_watch *w, const char **ret_path);
