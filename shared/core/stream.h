/* stream: one source of bytes and all that is digested of it: lanes, events, offsets.
 *
 * In: chunks in order of offset, each with the stamp that came with it. Out: events (kept here
 * until the job goes), one summary row per lane, and three offsets: `fed` (bytes taken), `done`
 * (digested up to here: what an ack calls done is `fed`, see below), `resume` (first byte of the
 * oldest open record or unfinished line). Its state never depends on other streams.
 *
 * Offsets. Bytes below `fed` that come again are skipped. After a restart the owner restores rows
 * and events and feeds again from `resume`: what lies below `digested` only rebuilds the joiner
 * and changes no counter, lane or event.
 *
 * Lanes. A lane is a tag, as printed on the line or else given with it, and an attempt. A bare
 * line goes with the lane of the line before it where it continues the record that this line
 * began (a log line with a traceback below it, a c10 error with frames), or is blank; else into
 * the untagged lane. This depends on nothing that lies before the oldest open record, so that
 * `resume` is enough.
 *
 * Caps: FF_LANES_MAX lanes, further tags use the first; of each lane's faults, exits and facts
 * the first and last FF_EVENTS_HALF events; FF_RECORD_EVENTS events of a record.
 */
#pragma once

#include "core/event.h"
#include "core/line_piece.h"

/* A place in a lane's text with what stood there. */
struct ff_moment {
	bool set;
	uint64_t offset;
	int64_t line;
	struct ff_stamp stamp;
	char *text; /* at most FF_PROGRESS_TEXT bytes, NUL-terminated; NULL unless kept */
};

struct ff_pair { /* two clocks at one line */
	ff_usec came;    /* arrived or captured */
	struct ff_claimed claimed;
};

struct ff_lane_event;

struct ff_lane {
	struct ff_tag tag;
	int32_t attempt;  /* said by the lines' own tags, else FF_UNKNOWN */
	uint64_t lines, bytes;
	uint64_t first_offset, last_offset;
	struct ff_stamp first, last; /* stamps of its first and last line */
	struct ff_claimed first_claimed; /* of the first line, if it has one */
	struct ff_moment progress;   /* last progress line */
	struct ff_moment recovered;  /* first progress line after the last fault */
	struct ff_moment success;    /* last success marker */
	uint64_t steps;              /* progress lines */
	uint32_t cadence[48];        /* gaps between progress lines: count per power of two of us */
	struct ff_pair *pairs;       /* lower envelope of (came, claimed), by came */
	size_t npairs, cpairs;
	uint64_t last_fault_offset;  /* of the lane's last fault of role primary or secondary */
	bool has_fault;
	uint64_t open_offset; /* first byte of its open record, FF_OFFSET_NONE; to be stored */
	bool dirty;
	/* not stored: rebuilt from `resume` and the events */
	uint32_t index;              /* in the stream's lanes */
	struct ff_joiner joiner;
	struct ff_lane_event *events; /* the lane's events in order, to fold and to cap */
	size_t nevents, cevents;
	size_t unrecovered;           /* of them, faults without progress behind them */
};

#define FF_OFFSET_NONE UINT64_MAX          /* nothing is open */
#define FF_OFFSET_UNKNOWN (UINT64_MAX - 1) /* restored from a row that does not say */

enum ff_stream_state {
	FF_STREAM_OPEN,
	FF_STREAM_ENDED,    /* complete */
	FF_STREAM_VANISHED, /* the connection went without an end */
};

struct ff_stream {
	/* identity: own copies */
	uint32_t number;  /* of the stream in its job, from 1: keys in the store, files on disk */
	uint32_t life;    /* 1; 2 for the second source of one (node, name): shown as name#2 */
	struct ff_origin origin;
	char *key;        /* "NODE/NAME" or NAME: what event ids begin with (with #life) */

	/* digest */
	struct ff_splitter splitter;
	struct ff_parts parts;
	struct ff_buf pieces; /* memory for a line that is put together */
	uint64_t fed;      /* next byte expected */
	uint64_t digested; /* end of the last line that was handled */
	uint64_t replay;   /* below this nothing is counted again (digested at restore) */
	uint64_t resume;        /* as restored: it stands until all up to `replay` came again */
	int64_t resume_line;    /* its line number */
	struct ff_tag last_tag; /* of the line before: bare lines may follow it */
	int32_t last_attempt;
	struct ff_lane *follow; /* its record began with the last tagged line */
	uint64_t follow_from;   /* offset of that line */
	uint64_t deadline;      /* no open record has to be closed for its distance before this */
	struct ff_lane **lanes; /* in order of first use */
	size_t nlanes, clanes;
	uint32_t *slots;        /* hash of lanes: index + 1, or 0 */
	size_t nslots;          /* a power of two, or 0 */
	size_t last_lane;       /* index of the lane that was used last */
	struct ff_event *events; /* by (offset, n) */
	size_t nevents, cevents;
	uint64_t *dropped;       /* offsets<<8|n of stored events to delete; cleared by the owner */
	size_t ndropped, cdropped;
	enum ff_stream_state state;
	ff_usec ended_us;        /* stamp of the end, FF_TIME_NONE */
	bool gap;                /* bytes are missing in it */
	bool read_to_end;        /* tailed: read to its size after the job-end */
	bool of_node;            /* a node's own log, of no job: see core/stream_event.c */
	bool dirty;              /* anything to store */
	void *user;              /* of the owner (daemon: its connection) */
};

/* Things a stream needs from its job. */
struct ff_digest {
	const struct ff_catalog *catalog;
	struct ff_matcher *matcher;
	uint64_t *counts; /* by enum ff_count */
};

enum ff_count {
#define X(name, text) FF_COUNT_##name,
#include "core/count.def"
#undef X
	FF_COUNT_COUNT
};

const char *ff_count_name(enum ff_count c);
const char *ff_count_text(enum ff_count c);

struct ff_chunk {
	uint64_t offset; /* of data[0] in the stream */
	const char *data;
	size_t len;
	struct ff_stamp stamp;
	struct ff_line_tags tags; /* {FF_TAG_INIT, FF_UNKNOWN} if none */
};

struct ff_stream *ff_stream_create(const struct ff_origin *origin, uint32_t number, uint32_t life);
void ff_stream_destroy(struct ff_stream *s);
void ff_stream_feed(struct ff_stream *s, const struct ff_digest *d, const struct ff_chunk *c);
/* No more bytes. complete: said so (`end`, end of input); else the connection went (vanished). In
 * both cases the unfinished line and open records are only closed when complete. */
void ff_stream_end(struct ff_stream *s, const struct ff_digest *d, bool complete, ff_usec at_us);
/* It speaks again (hello after vanished). */
void ff_stream_reopen(struct ff_stream *s);
uint64_t ff_stream_resume(const struct ff_stream *s);
/* Events that the open records and the unfinished line would give as they stand (law 9): appended
 * to *list, which owns them; the stream is not changed. Their ids are final: one at the place of an
 * event that is there is that event with what would be folded into it. */
void ff_stream_provisional(const struct ff_stream *s, const struct ff_digest *d,
			   struct ff_event **list, size_t *n, size_t *cap);

/* A stream of a node's own: forgets the events that begin before this offset; returns how many. */
size_t ff_stream_expire(struct ff_stream *s, uint64_t upto);
/* Makes s, which nobody feeds, hold these events (given) and what they say of its lanes: they are
 * folded and capped as if their lines had come to s. Ordered by (offset, n). True if that changed
 * anything. */
bool ff_stream_show(struct ff_stream *s, struct ff_event *list, size_t n, uint64_t *counts);

/* Restore: lanes and events are given back row by row, then the offsets. A lane that is new has
 * open_offset FF_OFFSET_UNKNOWN until a line of it is digested: then what is rebuilt counts. */
struct ff_lane *ff_stream_lane(struct ff_stream *s, struct ff_tag tag, int32_t attempt,
			       uint64_t *counts);
struct ff_event *ff_stream_restore_event(struct ff_stream *s); /* zeroed; add in order */
void ff_stream_restore(struct ff_stream *s, uint64_t digested, uint64_t resume, bool in_skip,
		       struct ff_tag last_tag, int64_t resume_line);
/* Line number at `resume` (0 unknown) and whether resume lies in a skipped part: to be stored. */
int64_t ff_stream_resume_line(const struct ff_stream *s);
bool ff_stream_resume_in_skip(const struct ff_stream *s);
