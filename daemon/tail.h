/* tail: files that are followed: which run and stream they are, and what of them came when.
 *
 * The threads of tail_files.h look at the disk; here their notices become streams. A file is known
 * by device, inode and path, proven by a hash of its first line and one of the bytes before the
 * place where reading goes on; its source is `tail:DEVICE:INODE:GENERATION`. A file that is not
 * what it was is a new source (a new life of its name).
 *
 * Stamps: what a file held when it was opened first, and what it gained while nobody read, has
 * none; growth has the time when it was read. For what lies between `resume` and `fed` these times
 * are stored, so that a restart gives an open record the same stamps.
 *
 * Secrets are masked here as in the intake: a word at the end of what was read waits for its rest.
 */
#pragma once

#include "ledger.h"

struct tail_file; /* belongs to a stream_state */

/* Restore: the stream is one that follows a file. */
struct tail_file *tail_file_restore(const char *path, uint64_t device, uint64_t inode,
	uint32_t head_length, uint64_t head_hash, uint64_t mark_at, uint32_t mark_length,
	uint64_t mark_hash, struct ff_str stamps);
void tail_file_destroy(struct tail_file *t);
/* What a row has of it; forgets the stamps that lie before resume. */
void tail_fill_row(struct tail_file *t, uint64_t resume, struct batch *b, struct row_tail *ret);

/* Where the file is (borrowed), and which one it has to be; "" while its file system hangs, for
 * which nobody else is to wait. */
const char *tail_file_place(const struct tail_file *t, uint64_t *ret_device, uint64_t *ret_inode);

/* Starts the threads; restored streams have to be there. */
int tail_open(struct daemon *d, struct tail **ret, struct ff_err *err);
void tail_hold(struct tail *t, bool hold);
/* From now on these patterns, of jobs' files and of nodes' own logs (feed/nodes.h), are followed
 * (borrowed; what is there twice counts once): files of new
 * ones are looked for, those of removed ones are let go, as if they had vanished; what is in both
 * lists goes on untouched. FF_EUSAGE with err if one is no pattern: then nothing has changed;
 * FF_ELIMIT if no thread can be started. */
int tail_set_patterns(struct tail *t, const struct ff_option_list *list,
	const struct ff_option_list *nodes, struct ff_err *err);

/* A run is this user's now: files of his that were refused because it was another's are looked at
 * again. t may be NULL. */
void tail_offer(struct tail *t, int64_t uid);
/* Looks for what there is now; the run's files count as read to their end when it was read.
 * Repeated calls look again. */
void tail_look(struct tail *t, struct ff_run *run);
/* Is a look at this run's behalf still going on? Threads that hang and have no file of it don't
 * count. */
bool tail_is_looking(const struct tail *t, const struct ff_run *run);
/* Files of runs that went, by what the store knows of them: they are not read again while they are
 * the same. At most FF_LET_GO_MAX; a further one is read. */
void tail_let_go(struct ff_map *let_go, uint64_t inode, uint32_t head_length, uint64_t head_hash);
void tail_let_go_finish(struct ff_map *let_go);
/* A run goes: its files are let go. */
void tail_drop_run(struct tail *t, const struct ff_run *run);
/* A run changed: at its end its files are looked at once more. */
void tail_on_changed(struct tail *t, struct ff_run *run);

/* Adds an object for `status`. */
struct ff_jw;
void tail_describe(struct tail *t, struct ff_jw *w);
/* Counters of the threads, into the daemon's. */
void tail_count(struct tail *t);

/* Asks the threads to end. */
void tail_stop(struct tail *t);
bool tail_stopped(const struct tail *t);
void tail_close_handle(struct tail *t);
/* After tail_stopped(). */
void tail_destroy(struct tail *t);
