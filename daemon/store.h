/* store: the thread that writes: SQLite and the segment files of one state folder.
 *
 *	loop: store_submit(batch) ─▶ queue ─▶ thread: text, fdatasync, one transaction, commit ─┐
 *	loop: store_take_done()  ◀─ uv_async ◀──────────────────────────────────────────────────┘
 *
 * Batches are committed in order, each whole or not at all. A commit that fails is tried again each
 * second: a full disk, or want of descriptors, for as long as it lasts, any other error for 30 s,
 * then it is fatal. WAL, synchronous=FULL: what came back is on the disk.
 *
 * Limits: the queue is bounded by who fills it (FF_QUEUE_BYTES, daemon/ledger.h).
 * Nothing but store*.c and migrate.c knows SQLite.
 */
#pragma once

#include "batch.h"
#include "feed/runs.h"

#include <uv.h>

struct store;
struct ledger;

struct store_status {
	bool failing;      /* the present commit failed and is tried again */
	bool full;         /* because there is no room on the disk */
	bool fatal;        /* it failed for too long */
	ff_usec since_us;  /* wall clock; when it began to fail */
	char text[640];    /* why, and what to do */
	uint64_t failures; /* commits that failed since the start, each once */
	uint64_t retries;  /* tries that failed */
	uint64_t commits, rows;
	uint64_t file_bytes, free_bytes; /* of the database; free: inside the file, used again */
	uint64_t log_bytes;              /* of its write-ahead log */
	uint64_t later;                  /* times that it had to wait for a second */
	size_t queued, queued_bytes; /* batches not committed yet */
};

/* Opens state/store.db (migrate.h). Returns 0 or as that does. */
int store_open(const char *state, struct store **ret, struct ff_err *err);
/* Restores all runs, before the thread runs. What was connected counts as vanished; text that lies
 * behind `resume` is fed again out of the segments. FF_EDAMAGE with err if the database is. */
int store_load(struct store *s, struct ledger *l, struct ff_runs *runs, struct ff_err *err);
/* Starts the thread. changed is called in the loop whenever batches came back, a run is gone, or
 * the state of a failing commit changed. */
typedef void store_fn(void *ud);
int store_start(struct store *s, uv_loop_t *loop, store_fn *changed, void *ud, struct ff_err *err);

void store_submit(struct store *s, struct batch *b); /* given */
/* A committed batch, in order (the caller's), or NULL. */
struct batch *store_take_done(struct store *s);
/* A run that is gone with all it had, in the order in which they went; false: none. bytes: what the
 * disk got back. */
bool store_take_gone(struct store *s, uint32_t *ret_run, uint64_t *ret_bytes);
void store_status(struct store *s, struct store_status *ret);

/* While somebody holds it, no segment file is removed and no run is taken further out: what was
 * committed at some moment can be read. Calls are counted. */
void store_hold(struct store *s, bool hold);

/* Asks the thread to end: after what is queued, or at once if commits fail. */
void store_stop(struct store *s);
/* True once it has ended. Then store_close_handle may be called, and after the loop has run out
 * store_destroy. */
bool store_stopped(struct store *s);
void store_close_handle(struct store *s);
void store_destroy(struct store *s);
