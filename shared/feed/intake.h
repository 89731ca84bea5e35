/* intake: the bytes of one connection, file or standard input become words for runs and streams.
 *
 *	bytes -> dialect -> (run, stream, chunk | control object) -> struct ff_job
 *
 * One intake per connection (daemon), per .jsonl file or standard input (analyze), per test feed.
 * It chooses the dialect from the first line (shared/README.md 6.3): native, JSON Lines, syslog,
 * a journal's export and JSON, raw; bodies of OTLP requests come by a call of their own. It does
 * no I/O: what goes back to the peer is handed to `reply`. Text is masked (base/mask.h) before
 * anything sees it.
 *
 * Ownership: the intake borrows the table of runs; strings handed to callbacks are borrowed during
 * the call. A callback must not destroy the intake; it marks and destroys later.
 */
#pragma once

#include "feed/runs.h"

enum ff_dialect { FF_DIALECT_NONE, FF_DIALECT_NATIVE, FF_DIALECT_JSONL, FF_DIALECT_RAW,
		  FF_DIALECT_PLAIN, FF_DIALECT_SYSLOG, FF_DIALECT_WRONG_PORT,
		  FF_DIALECT_OTLP, FF_DIALECT_JOURNAL };
#define FF_DIALECTS (FF_DIALECT_JOURNAL + 1)

struct ff_intake;

/* One stream of a native hello, or a stream that JSON Lines or raw text of this intake fed. */
struct ff_intake_stream {
	struct ff_run *run;
	struct ff_stream *stream; /* NULL after ff_intake_forget */
	uint64_t pos; /* offset of the next byte that the peer sends */
	bool ended;   /* the peer said `end` for it */
};

struct ff_intake_ops {
	/* Bytes for the peer (welcome, pong, error, ack lines): complete lines. NULL: nobody
	 * listens. */
	void (*reply)(void *ud, struct ff_str bytes);
	/* An error was replied, or the peer spoke HTTP or TLS: the connection is to be closed. */
	void (*closing)(void *ud, const char *reason);
	/* A hello, or a first object, named this stream (new, resumed or taken over). From now on
	 * this intake speaks for it: the daemon closes the one that did before (s->user). NULL
	 * allowed. */
	void (*opened)(void *ud, struct ff_run *run, struct ff_stream *s);
	/* New bytes of a stream, masked, after the job digested them: for the segment files. At
	 * most one line each time: data ends in LF if the chunk ends its line (native's '.'), else
	 * it has no LF
	 * ('-'). NULL allowed. */
	void (*text)(
		void *ud, struct ff_run *run, struct ff_stream *s, const struct ff_chunk *chunk);
	/* A run's facts, end or streams changed (not: text came). NULL allowed. */
	void (*changed)(void *ud, struct ff_run *run);
	/* A job-start names the user whose run it is. False: not from this peer, or not this run;
	 * counted. NULL: nobody owns runs. */
	bool (*named)(void *ud, struct ff_run *run, int64_t uid);
	/* May the peer that shows this token (empty: none, as in raw text) begin or feed this job?
	 * If not it is answered with error `auth` (native), else its lines are dropped, counted. It
	 * may call ff_intake_trust and ff_intake_own. The job "" is a node's own logs. NULL:
	 * everybody may. */
	bool (*admit)(void *ud, struct ff_str token, const char *job);
	/* The same of the run that the words led to: a job can have runs of several owners. NULL:
	 * everybody may. */
	bool (*may_feed)(void *ud, const struct ff_run *run);
};

/* What all intakes of a process may hold of unfinished lines (FF_UNFINISHED_ALL). */
struct ff_intake_room {
	size_t used; /* bytes, of those that hold more than FF_UNFINISHED_FREE */
};

struct ff_intake_options {
	struct ff_intake_room *room; /* borrowed; NULL: no limit but each one's own */
	bool offline; /* analyze: no receive time becomes a stamp; end of input ends all */
	const char *default_job; /* for objects without job and raw text; NULL: raw-PEER */
	const char *run;         /* --run; NULL */
	const char *peer;        /* shown in names: "raw-PEER" */
	const char *name;        /* stream name of raw text; NULL: "-" */
	bool trusted;            /* the peer's kernel and scheduler streams are believed */
	int64_t uid;             /* of the peer, -1: nobody knows; for nodes' logs (feed/nodes.h) */
	/* Who the bytes are, when a job.json, a path or a tail pattern said it: they are raw text
	 * of this stream, whatever they look like. Copied by create. NULL: the first line chooses
	 * the dialect. */
	const struct ff_origin *origin;
	bool guess; /* with origin: only if the first line doesn't choose another dialect */
	bool live;               /* with origin: a tail, which may begin a run (runs.h) */
};

struct ff_intake *ff_intake_create(struct ff_runs *runs, const struct ff_intake_options *o,
				   const struct ff_intake_ops *ops, void *ud);
void ff_intake_destroy(struct ff_intake *in);
/* From now on the peer is this user. */
void ff_intake_own(struct ff_intake *in, int64_t uid);
/* From now on the peer's kernel and scheduler streams are believed. */
void ff_intake_trust(struct ff_intake *in);
/* Takes bytes. now_us: the daemon's clock; FF_TIME_NONE offline, and for what a tailed file held
 * when it was opened. Never fails: what can't be used is counted or answered. With n = 0 and an
 * origin the stream is only made known. */
void ff_intake_feed(struct ff_intake *in, const char *p, size_t n, ff_usec now_us);
/* Takes the body of an OTLP/HTTP request (wire/otlp.h) instead; one intake for all requests of a
 * connection. *ret_rejected: records of it that could not be taken (no text, no place for a stream,
 * not admitted). FF_EJSON with err if the body has another form; then nothing of it was taken. */
int ff_intake_otlp(struct ff_intake *in, struct ff_str body, ff_usec now_us, uint64_t *ret_rejected,
		   struct ff_err *err);
/* The peer closed, or the input ended. Streams that were not said to end become vanished (native,
 * daemon), ended (offline; JSON Lines and raw: closed). */
void ff_intake_end(struct ff_intake *in, ff_usec now_us);
/* The input stops without its end (a file that can't be read to its end): the end of this intake
 * leaves its streams vanished. */
void ff_intake_cut(struct ff_intake *in);
/* A second passed without a whole first line: it is raw. */
void ff_intake_settle(struct ff_intake *in, ff_usec now_us);

enum ff_dialect ff_intake_dialect(const struct ff_intake *in);
const char *ff_dialect_name(enum ff_dialect d);
/* The streams this intake speaks for; for native in the order of its hello. */
const struct ff_intake_stream *ff_intake_streams(const struct ff_intake *in, size_t *ret_n);
/* Another intake took this stream over: this one must not end it any more. */
void ff_intake_forget(struct ff_intake *in, const struct ff_stream *s);
/* The run goes: nothing here points at it afterwards. A native connection, which has only this one,
 * is answered with error `job-name` and closes; others open its streams anew, in another run. */
void ff_intake_forget_run(struct ff_intake *in, const struct ff_run *run);
/* Control objects taken so far that an ack counts (job-start, job-end, exit, sign, end). */
uint64_t ff_intake_controls(const struct ff_intake *in);
/* Objects that held something usable (analyze on input with none exits 65). */
uint64_t ff_intake_usable(const struct ff_intake *in);
/* The ack for these committed offsets, one of each per stream in the order of ff_intake_streams:
 * native one line for all; JSON Lines one for each stream that has a source, with the stream's name
 * if its source has several here; none where resume is FF_INTAKE_SAID. Else nothing. */
#define FF_INTAKE_SAID UINT64_MAX
void ff_intake_ack(const struct ff_intake *in, const uint64_t *resume, const uint64_t *done,
		   uint64_t controls, struct ff_buf *out);

/* A control object of 6.2 from outside a connection (HTTP body, job.json's job_end): id and keys go
 * to the run's facts. name is "job-start", "job-end", "exit" or "sign"; doc an object without
 * `event` and `job`. Returns FF_ESCHEMA with err if a value has the wrong type; unknown keys are
 * counted. */
struct ff_json_node;
int ff_intake_control(struct ff_run *run, const char *name, const struct ff_json_node *doc,
		      struct ff_err *err);
