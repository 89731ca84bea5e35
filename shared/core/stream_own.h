/* stream, inside: what core/stream.c (bytes, lines, lanes, offsets), core/stream_lane.c (a lane's
 * summary) and core/stream_event.c (records become events) share. Nobody else includes it.
 */
#pragma once

#include "core/stream.h"

/* A line as the digest sees it. */
struct ff_stream_entry {
	const struct ff_line *line;
	struct ff_str text;  /* prefixes off */
	struct ff_str stamp; /* the time in a prefix */
	struct ff_tag tag;   /* printed, else given with the line */
	int64_t repeats;     /* of it that were left out */
	bool live;           /* not digested before: it counts */
};

/* The time that a line claims: the program's own, else its prefix's; FF_CLAIMED_NONE. */
struct ff_claimed ff_stream_claimed(const struct ff_stream_entry *e);
/* Counts a line that was not digested before. */
void ff_stream_summarise(struct ff_lane *lane, const struct ff_digest *d,
			 const struct ff_stream_entry *e);
/* It is a step, or a word of success. */
void ff_stream_progress(struct ff_stream *s, struct ff_lane *lane, const struct ff_digest *d,
			const struct ff_stream_entry *e, enum ff_progress progress);

/* What a lane remembers of one of its events. */
struct ff_lane_event {
	uint64_t offset; /* with n: the event */
	uint32_t n;
	uint64_t key;    /* equal for those that fold */
	uint8_t pool;    /* those that share a cap */
	bool fault;      /* progress ends its folding and recovers it */
};

/* Matches a complete record of the lane and keeps its events: folded, capped, in order. */
void ff_stream_keep(struct ff_stream *s, const struct ff_digest *d, struct ff_lane *lane,
		    const struct ff_record *rec);
/* What an event folds and is capped by. */
struct ff_lane_event ff_stream_key(const struct ff_event *e);
/* The lane made progress: its faults are recovered. */
void ff_stream_recover(struct ff_stream *s, struct ff_lane *lane);
/* After restore: what lanes remember of the events. */
void ff_stream_remember(struct ff_stream *s);

/* Provisional events of a record; the same as kept ones would be, but the stream stays as it is. */
struct ff_draft {
	const struct ff_stream *stream;
	const struct ff_digest *digest;
	struct ff_event **list;
	size_t *n, *cap;
	size_t from; /* the stream's own begin here in *list */
};
void ff_stream_draft(struct ff_draft *draft, const struct ff_lane *lane,
		     const struct ff_record *rec);

uint32_t ff_stream_lane_index(const struct ff_stream *s, const struct ff_lane *lane);
