/* intake_own: what intake.c shares with the dialects, intake_*.c. Nobody else includes it. */
#pragma once

#include "feed/intake.h"
#include "feed/tell.h"
#include "wire/journal.h"
#include "wire/jsonl.h"
#include "wire/native.h"

#define FF_INTAKE_NOWHERE SIZE_MAX /* no stream */

/* What is held back of a stream: a word at the end of what came, because it may be the front of a
 * secret (masking sees whole words only). */
struct ff_intake_held {
	struct ff_buf word;
	struct ff_stamp stamp;
	struct ff_line_tags tags;
};

struct ff_intake {
	struct ff_runs *runs;
	const struct ff_intake_ops *ops;
	void *ud;
	struct ff_intake_options o; /* strings and origin: own copies */
	struct ff_origin origin;    /* if o.origin */
	char *peer_job;             /* "raw-PEER" */
	enum ff_dialect dialect;
	bool closed;   /* an error was answered: what comes is ignored */
	bool cut;      /* the input stopped without its end */
	bool skipping; /* inside a line of JSON Lines or syslog that is too long */
	uint64_t skip; /* bytes to come of a counted syslog frame that is too long */
	ff_usec now_us;
	struct ff_buf pending; /* an unfinished line of the dialect */
	size_t charged;        /* of it to o.room */
	struct ff_buf work;    /* text on its way, masked */

	struct ff_intake_stream *streams;
	size_t nstreams, cstreams;
	struct ff_intake_held *held; /* one of each stream */
	size_t cheld;
	struct ff_map by_key;  /* run number, node, name, source -> its index + 1, as a pointer */
	struct ff_buf key, last_key;
	struct ff_map sources; /* of streams that may be acknowledged: (void *)1, of several: 2 */
	size_t last;           /* the stream that came last, or FF_INTAKE_NOWHERE */
	struct ff_run *last_run;
	struct ff_run *named_run; /* the last one that an object of JSON Lines named */
	const struct ff_run *mine; /* the last one that the peer was found to be allowed to feed */

	uint64_t controls, usable;
	uint64_t records; /* of the last body of OTLP */
	struct ff_jsonl obj;
	bool node_clock; /* JSON Lines: `time` is of the node's clock (an earlier job-start said so)
			  */

	struct ff_journal *journal; /* NULL before its first byte */

	/* native */
	struct ff_run *run;
	char *node;
	int64_t rank, attempt, pid;
	bool collector;
};

/* The stream of this run; opened (and reopened, if it had vanished) when the intake meets it first.
 * FF_INTAKE_NOWHERE when there is no room for it, or it is trusted and the peer is not (counted as
 * not_admitted). */
size_t ff_intake_open(struct ff_intake *in, struct ff_run *run, const struct ff_origin *origin);
bool ff_intake_may_open(
	const struct ff_intake *in, const struct ff_run *run, const struct ff_origin *origin);
size_t ff_intake_find(struct ff_intake *in, const struct ff_run *run, struct ff_str node,
		      struct ff_str name, const char *source);
/* Bytes of streams[i] that stand at its pos. */
void ff_intake_put(struct ff_intake *in, size_t i, struct ff_str data, struct ff_stamp stamp,
		   struct ff_line_tags tags);
/* Is there room for n more bytes of an unfinished line? Else it is to be skipped, which is counted.
 */
bool ff_intake_has_room(struct ff_intake *in, size_t n);
/* What was held back goes on its way. */
void ff_intake_flush(struct ff_intake *in, size_t i);
void ff_intake_end_stream(struct ff_intake *in, size_t i, bool complete, ff_usec at_us);
/* The receive time as a stamp, where no other came. */
struct ff_stamp ff_intake_received(const struct ff_intake *in);
/* Where words without a job go. */
const char *ff_intake_default_job(const struct ff_intake *in);
/* Text of nobody in particular: the default job's stream of the intake's name. */
size_t ff_intake_open_raw(struct ff_intake *in);
/* ff_runs_resolve for words of the peer, which showed this token (empty: none) with them. -EACCES,
 * counted: it may not speak for that job or that run of it. */
int ff_intake_resolve(struct ff_intake *in, struct ff_str token, struct ff_str job,
	const struct ff_str *name, const char *source, enum ff_run_cause cause,
	struct ff_run **ret, struct ff_err *err);
bool ff_intake_trusts(const struct ff_intake *in, enum ff_stream_kind kind);
void ff_intake_count(struct ff_intake *in, struct ff_run *run, enum ff_count c, uint64_t n);
void ff_intake_changed(struct ff_intake *in, struct ff_run *run);
/* The logs of this node, which belong to no job; NULL if the peer may not speak of it, or there is
 * no room. */
struct ff_run *ff_intake_node(struct ff_intake *in, struct ff_str node);
/* A control object that was told: a job-end is by the daemon's clock, a job-start may name its
 * user. */
void ff_intake_told(struct ff_intake *in, struct ff_run *run, const char *event,
	const struct ff_json_node *doc);

void ff_intake_jsonl_line(struct ff_intake *in, struct ff_str line);
/* The data object in->obj. */
void ff_intake_data(struct ff_intake *in);
/* A line that is none of the dialect's: text of the stream that came last, counted as `why`. */
void ff_intake_text_line(struct ff_intake *in, struct ff_str line, enum ff_count why);
void ff_intake_syslog_bytes(struct ff_intake *in, struct ff_str s);
void ff_intake_syslog_end(struct ff_intake *in);
void ff_intake_journal_bytes(struct ff_intake *in, struct ff_str s);
void ff_intake_journal_end(struct ff_intake *in);
void ff_intake_native_hello(struct ff_intake *in, struct ff_str line);
void ff_intake_native_line(struct ff_intake *in, struct ff_str line);
void ff_intake_native_fail(struct ff_intake *in, enum ff_native_error code, const char *text);
