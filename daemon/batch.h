/* batch: what one transaction writes, as plain rows: no pointer leads back into a run.
 *
 * The loop fills a batch from what is dirty at one moment, so that offsets, events, lane rows,
 * facts and text in it belong together; the store's thread writes it and hands it back, and only
 * then is anything in it acknowledged.
 *
 * Ownership: strings and views in the rows are of the batch's arena. A batch is given to the store
 * with store_submit() and comes back with store_take_done().
 */
#pragma once

#include "base/arr.h"
#include "segment.h"

struct row_run {
	uint32_t number;
	const char *job, *run;
	ff_usec begun_us, ended_us;
	int64_t owner; /* uid, -1: nobody yet */
	uint32_t version;
	uint64_t verdict_hash;
	uint64_t controls_refused;
	struct segment_range segments;
	uint64_t segments_dropped;
	ff_usec heard_us;
};

struct row_control {
	uint32_t run;
	const char *id, *key, *value;
	ff_usec time_us;
	enum ff_clock clock;
	bool contradicted;
};

struct row_clock {
	uint32_t run;
	const char *node;
	uint32_t n;
	struct ff_clock_sample sample;
};

struct row_tail { /* of a tailed stream; path NULL: none */
	const char *path;
	uint64_t device, inode;
	uint32_t head_length, mark_length;
	uint64_t head_hash, mark_hash, mark_at;
	struct ff_str stamps; /* packed */
};

struct row_stream {
	uint32_t run, number, life;
	struct ff_origin origin;
	enum ff_stream_state state;
	ff_usec ended_us;
	uint64_t fed, digested, resume;
	int64_t resume_line;
	struct ff_tag resume_tag;
	int32_t resume_attempt;
	bool in_skip, gap, read_to_end;
	uint64_t texted;
	struct segment_place resume_place;
	struct row_tail tail;
};

struct row_moment {
	bool set;
	uint64_t offset;
	int64_t line;
	struct ff_stamp stamp;
	const char *text; /* NULL */
};

struct row_lane {
	uint32_t run, stream, lane;
	struct ff_tag tag;
	int32_t attempt;
	uint64_t lines, bytes, first_offset, last_offset;
	struct ff_stamp first, last;
	struct ff_claimed first_claimed;
	struct row_moment progress, recovered, success;
	uint64_t steps;
	struct ff_str cadence, pairs; /* packed */
	bool has_fault;
	uint64_t fault_offset;
	uint64_t open_offset; /* FF_OFFSET_NONE */
};

struct row_event {
	uint32_t run, stream;
	struct ff_event e;    /* its pointers are of the arena */
	struct ff_str fields; /* packed; e.fields is empty */
};

struct row_drop { /* an event that is deleted */
	uint32_t run, stream;
	uint64_t offset;
	uint32_t n;
};

struct batch_text { /* bytes for a segment file */
	uint32_t run;
	struct segment_place place;
	struct ff_str bytes;
	uint32_t remove; /* a file that is dropped with it, 0: none */
};

struct batch_mark { /* a connection's control objects that are stored with this batch */
	uint64_t conn;
	uint64_t controls;
};

struct row_hook { /* what a target of hooks was told of a run (daemon/hook.h) */
	uint32_t run; /* 0: value says since when the target is configured */
	uint32_t target, event;
	uint64_t value;
};

struct batch {
	struct batch *next;
	uint64_t seq; /* 1, 2 ... */
	struct ff_arena arena;
	struct row_run *runs;
	struct row_control *controls;
	struct row_clock *clocks;
	struct row_stream *streams;
	struct row_lane *lanes;
	struct row_event *events;
	struct row_drop *drops;
	struct batch_text *texts;
	struct batch_mark *marks;
	struct row_hook *hooks;
	uint32_t *going; /* runs that go: no rows of them are in this or a later batch */
	size_t ngoing, cgoing, nhooks, chooks;
	size_t nruns, cruns, ncontrols, ccontrols, nclocks, cclocks, nstreams, cstreams;
	size_t nlanes, clanes, nevents, cevents, ndrops, cdrops, ntexts, ctexts, nmarks, cmarks;
	size_t bytes; /* about, of rows and text: what the queue is bounded by */
};

struct batch *batch_create(uint64_t seq);
void batch_destroy(struct batch *b);
/* Rows that a transaction would write. */
size_t batch_rows(const struct batch *b);

/* Copies of what is dirty; clears the flags. */
void batch_add_facts(struct batch *b, uint32_t run, const struct ff_facts *f);
/* The stream's row, its dirty lanes and events, its dropped events; clears their dirty flags. The
 * caller fills what the stream itself doesn't know (texted, resume_place, tail) in the row. */
struct row_stream *batch_add_stream(struct batch *b, uint32_t run, struct ff_stream *s);
