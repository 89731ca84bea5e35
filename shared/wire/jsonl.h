/* jsonl: one line of JSON Lines as typed values (shared/README.md 6.2).
 *
 * A reader of its own, because text may hold \u0000 and bytes that aren't UTF-8: both stay, with
 * their lengths. Only the known keys are kept; anything else is checked for its form and skipped.
 * Of a key that stands twice the last one holds. Depth at most FF_JSON_DEPTH.
 *
 * Shippers' forms (docs.fluentbit.io, vector.dev; tests/fixtures/wire): an object whose `stream` is
 * stdout or stderr and that has a `kubernetes` object, a CRI tag (`logtag`, `_p`), a container's
 * `container_id` or `container_name`, or Docker's `log` beside Fluent Bit's `date`, is *shipped*.
 * `kubernetes` tells the job (wire/label.h), the pod and the node; `file` is the stream where
 * nothing else is; numbers may be strings, as Fluent Bit's record_modifier writes them. What a
 * runtime cut is told by `logtag` P, `_partial`, or `partial_message` without `partial_last`; `_p`
 * tells nothing: Fluent Bit leaves it at P on lines that it has joined.
 *
 * In: a line without its LF. Out: struct ff_jsonl, whose views point into the line or into its own
 * buffer and are valid until the next parse. No I/O, no clock.
 *
 *	struct ff_jsonl o = {0};
 *	if (ff_jsonl_parse(&o, line) == 0 && o.has_text) { use o.text }
 *	ff_jsonl_finish(&o);
 */
#pragma once

#include "base/buf.h"
#include "base/err.h"
#include "base/usec.h"

/* Known events; an object with another value of `event` is data. */
#define FF_JSONL_EVENTS(X) \
	X(HELLO, "hello") X(JOB_START, "job-start") X(JOB_END, "job-end") X(EXIT, "exit") \
	X(END, "end") X(SIGN, "sign") X(PING, "ping") X(CLOCK, "clock") \
	X(DIGEST, "digest")

enum ff_jsonl_event {
	FF_JSONL_NONE, /* no `event` */
#define X(e, name) FF_JSONL_##e,
	FF_JSONL_EVENTS(X)
#undef X
	FF_JSONL_OTHER, /* a value that is not known: the whole line is the text */
};

enum ff_jsonl_clock { FF_JSONL_CLOCK_UNSAID, FF_JSONL_CLOCK_NODE, FF_JSONL_CLOCK_COLLECTOR };

struct ff_jsonl {
	enum ff_jsonl_event event;
	bool has_text;      /* it is a data object */
	bool container;     /* docker's json-file: log, stream, time, and nobody named. Its text has
			     * no LF where a longer line was cut, `time` is its node's clock */
	bool shipped;       /* an agent read it off a container (see below): `time` is its node's
			     * clock, `stream` and `fd` are made out of what it says */
	bool piece;         /* the text is the front of a line: more comes in the next object */
	struct ff_str
		text; /* the message, then exc_info, exception, stack_trace, each on a new line */
	/* absent or null: p is NULL */
	struct ff_str job, run, node, stream, kind, fd, source;
	struct ff_str token; /* who the peer is, over TCP */
	/* absent or null: -1 */
	int64_t rank, local_rank, attempt, offset;
	ff_usec time;    /* of `time`; FF_TIME_NONE: absent or not readable */
	ff_usec stamp;   /* of timestamp, ts, @timestamp, date */
	enum ff_jsonl_clock clock;
	int complete;    /* of an `end`: -1 unsaid, 0, 1 */
	unsigned bad;    /* known keys whose value has the wrong type or range: taken as absent */
	unsigned bad_times;

	struct ff_buf mem;  /* what had to be unescaped */
	struct ff_buf join; /* text of several parts */
};

void ff_jsonl_finish(struct ff_jsonl *o);
/* 0, or FF_EJSON: the line is no JSON object. */
int ff_jsonl_parse(struct ff_jsonl *o, struct ff_str line);
/* "hello", ...; NULL for FF_JSONL_NONE and FF_JSONL_OTHER. */
const char *ff_jsonl_event_name(enum ff_jsonl_event e);
/* A decimal number (fraction and exponent allowed) of seconds, ms, us or ns since 1970 as
 * microseconds: the unit is the one that puts it between 2000 and 2099. False if none does. */
bool ff_jsonl_epoch(struct ff_str number, ff_usec *ret);
