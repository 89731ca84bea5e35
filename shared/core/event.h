/* event: what is stored of a log: a fault, an exit, a fact, a sign, with its proof.
 *
 * An event is anchored at its record's first byte: (stream, offset, n) is its identity for ever,
 * `at` is the line that matched and what a screen prints. It keeps what was *read*: the tag as
 * printed, an attempt only if text or stream said one. Rank and node are worked out by the
 * timeline.
 *
 * Ownership: strings are owned by the event. Offsets are raw bytes of the stream, lines count
 * from 1 (0: unknown), stamps are microseconds or FF_TIME_NONE.
 */
#pragma once

#include "core/match.h"

/* Where and when a folded event was seen last. */
struct ff_place {
	uint64_t offset;
	int64_t line;
	struct ff_stamp stamp;
};

struct ff_event {
	uint64_t offset;  /* of its record's first byte */
	uint32_t n;       /* 0 for the first event of an anchor, then 1, 2 ... in order of `at` */
	int64_t line;     /* of its record's first line */
	uint64_t at_offset;
	int64_t at_line;
	enum ff_event_kind kind;
	enum ff_role role;
	char *fault;      /* fault id; "" for facts without one */
	char *signature;  /* "cuda-oom/1"; "python-exception/0" for one that no text knows */
	struct ff_tag tag;
	int32_t attempt;  /* FF_UNKNOWN unless the line's own tags said one */
	struct ff_stamp stamp;     /* of the record's first line */
	struct ff_claimed claimed; /* of the record, else of the matched line */
	struct ff_fields fields;
	char *text;       /* evidence: the matched line and what follows, at most FF_EVIDENCE_MAX */
	size_t text_len;
	char *frame;      /* deepest user frame "train.py:412 in step: code", NULL if none */
	bool handled;     /* its process went on: printed by a logger, a thread, a destructor */
	bool quoted;      /* a copy of another process's text */
	bool recovered;   /* its lane made progress afterwards */
	uint64_t fingerprint; /* of fault and normalised text: equal for one fault on two ranks */
	uint32_t lane;    /* index in the stream */
	uint32_t count;   /* 1, or how many were folded into it */
	struct ff_place last; /* of the last one; meaningless for count 1 */
	bool dirty;       /* changed since the owner last cleared it */
};

void ff_event_finish(struct ff_event *e);
/* Another one with the same values, the caller's own. */
struct ff_event ff_event_copy(const struct ff_event *e);
/* A field's text, or an empty view. */
struct ff_str ff_event_field(const struct ff_event *e, enum ff_field_id id);
int64_t ff_event_int(const struct ff_event *e, enum ff_field_id id, int64_t def);
/* Text with numbers, hex, addresses and paths' digits replaced, as the fingerprint sees it. */
void ff_event_normalise(struct ff_str text, struct ff_buf *out);
