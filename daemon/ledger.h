/* ledger: what has to be stored, and what is. The loop's side of the store.
 *
 * Parts that change a run or a stream say so here. 10 ms later (at once for FF_BATCH_ROWS rows) all
 * that is dirty goes into one batch; while two batches are on their way, more is gathered instead.
 * When a batch comes back, connections learn what they may acknowledge and those who wait go on.
 *
 * Bounded: text that waits here and batches on their way have FF_QUEUE_BYTES; beyond, or while a
 * commit fails, the daemon is held (daemon_hold): nothing is read until there is room.
 *
 * Never inside a callback of the intake: a stream's offsets and its text belong together only after
 * the intake has returned.
 */
#pragma once

#include "batch.h"
#include "daemon.h"
#include "hook.h"

struct conn;
struct tail_file;

/* Behind ff_run.user: what the daemon knows of a run besides. */
struct run_state {
	struct ff_run *run;
	struct run_state *next_dirty;
	bool queued;           /* in the list of dirty runs */
	bool scan;             /* streams may be dirty that nobody named */
	bool looked;           /* its tailed files were looked at after its end (daemon/tail.h) */
	int64_t owner;         /* uid, -1 */
	ff_usec heard_us;      /* the loop's time when anything came last */
	ff_usec heard_at;      /* likewise by the wall clock, over restarts too; 0: never */
	ff_usec heard_stored;  /* what its row has of it: a little older */
	uint64_t changes;      /* counts whatever may change its verdict */
	uint64_t verdict_hash; /* of the verdict that run->version counts (daemon/answer.h) */
	struct segment_range segments;
	struct segment_range committed; /* of them: what can be read */
	uint64_t segments_dropped;
	struct ff_buf out; /* text for the segment that is being written, while a batch is filled */
	struct segment_place out_at;
	struct hook_run hook;
	void *answer;  /* of answer.c: the newest verdict, in short */
	void *watched; /* of watch.c: what watchers were told last */
};

/* Where text of a stream begins in the segments. */
struct ledger_frame {
	uint64_t offset;
	struct segment_place place;
};

/* Behind ff_stream.user. */
struct stream_state {
	struct run_state *run;
	struct ff_stream *stream;
	struct stream_state *next_dirty;
	bool queued;
	struct conn *conn;      /* that speaks for it, NULL */
	unsigned speakers;      /* connections that feed it, if its source is nobody's alone */
	struct tail_file *tail; /* that it follows, NULL */
	struct segment_writer text;
	uint64_t texted;             /* bytes that are in the segments or in `text` */
	struct ledger_frame *frames; /* from the one that holds `resume` on; thinned out */
	size_t nframes, cframes;
	uint64_t stored;                   /* bytes that were taken when it was restored */
	uint64_t done, resume;             /* committed */
	uint64_t acked_done, acked_resume; /* of them what its connection was told */
};

struct ledger_wait {
	uint64_t seq;
	void (*fn)(void *ud);
	void *ud;
	struct ledger_wait *next;
};

struct ledger_status {
	size_t text_bytes; /* waiting here */
	size_t sent_bytes; /* in batches on their way */
	uint64_t seq, committed;
	bool held;
};

struct ledger *ledger_create(struct daemon *d);
/* Closes its timer; the memory goes with ledger_destroy after the loop has run out. */
void ledger_close(struct ledger *l);
void ledger_destroy(struct ledger *l);

struct daemon *ledger_daemon(struct ledger *l);
struct run_state *ledger_run(struct ledger *l, struct ff_run *run);
struct stream_state *ledger_stream(struct ledger *l, struct ff_run *run, struct ff_stream *s);

/* A stream was fed or changed. */
void ledger_touch(struct ledger *l, struct ff_run *run, struct ff_stream *s);
/* Its text; what the segments have already is left out. Touches it too. */
void ledger_text(
	struct ledger *l, struct ff_run *run, struct ff_stream *s, const struct ff_chunk *c);
/* Facts, the run's row or any of its streams changed. */
void ledger_changed(struct ledger *l, struct ff_run *run);
/* Only its row has to be written: nothing that a verdict depends on changed. */
void ledger_row(struct ledger *l, struct ff_run *run);
/* What a target of hooks was told goes with the next batch. */
void ledger_hook(struct ledger *l, const struct row_hook *row);
/* So many control objects of this connection go with the next batch. */
void ledger_mark(struct ledger *l, uint64_t conn, uint64_t controls);

/* Frees what is known of a run here; its rows are deleted with the next batch, and nothing of it
 * that is dirty is written any more. */
void ledger_drop_run(struct ledger *l, struct ff_run *run);

/* Sends what is dirty. Returns the number of the batch that completes it. */
uint64_t ledger_flush(struct ledger *l);
/* The number of the batch that what is dirty now will be in, without sending it. */
uint64_t ledger_next(const struct ledger *l);
bool ledger_is_committed(const struct ledger *l, uint64_t seq);
/* Calls w->fn once that batch is committed (never from inside this call unless it is already). */
void ledger_wait(struct ledger *l, struct ledger_wait *w);
void ledger_forget(struct ledger *l, struct ledger_wait *w);
/* Looks at everything once: before the end. Returns as ledger_flush. */
uint64_t ledger_flush_all(struct ledger *l);
void ledger_status(const struct ledger *l, struct ledger_status *ret);
/* The store has something to say (store_fn). */
void ledger_on_store(void *ud);
