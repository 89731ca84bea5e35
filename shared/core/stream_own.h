/* stream, inside: what core/stream.c (bytes, lines, lanes, offsets) and core/stream_event.c
 * (records become events) share. Nobody else includes it.
 */
#pragma once

#include "core/stream.h"

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
