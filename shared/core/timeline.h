/* timeline: the events of a run, with rank, node, attempt and comparable times worked out.
 *
 * The only place that compares clocks (law 3): by an offset with a bound per node; the answer is
 * before, after or can't tell. Built anew at each verdict from facts, streams and events; nothing
 * is written back.
 *
 * Whose event: what the stream declared, else a global tag, else a local tag by the node's map
 * (declared streams, torchrun's table and rendezvous lines; a single node: local is global), else
 * srun's task (unless srun started one launcher a node), else the rank that the text gives. A pid
 * is a rank's where an exit report, a stream or a line said so.
 *
 * Ownership: everything is of the timeline's arena or borrowed from facts and streams, which must
 * not change while it lives. Ranks at or above the world are unknown ranks.
 */
#pragma once

#include "core/clock.h"
#include "core/signals.h"
#include "core/stream.h"

enum ff_run_state { FF_RUN_RUNNING, FF_RUN_STALLED, FF_RUN_ENDING, FF_RUN_ENDED };

/* How the verdict is asked for. */
struct ff_ask {
	bool offline;    /* analyze: the end of input ended every stream and the run */
	ff_usec now_us;  /* the daemon's clock, for an open run's as_of; FF_TIME_NONE offline */
	int32_t attempt; /* FF_UNKNOWN: the run's own verdict */
	int32_t world;   /* --world: used if the facts have none; FF_UNKNOWN */
	uint64_t rules_off; /* bit per rule (rules.h): for tests */
	const char *const *missing; /* what the asker knows is missing: sentences, borrowed */
	size_t nmissing;
	size_t nunread; /* the first of these hold for a clean run too: what could not be read */
};

/* How much a fault weighs as somebody's own end. */
enum ff_weight {
	FF_WEIGHT_NONE, /* no fault, noise, or after the success marker */
	FF_WEIGHT_PAST, /* its rank made progress afterwards */
	FF_WEIGHT_ECHO, /* handled by a logger or thread, or a copy of another process's text */
	FF_WEIGHT_FULL,
};

/* One event with what the timeline worked out about it. */
struct ff_sighting {
	const struct ff_event *ev;      /* never NULL */
	const struct ff_stream *stream; /* NULL for control objects (exit@...) */
	const struct ff_signature *sig; /* of the catalogue, by its text's name, or NULL */
	const char *id;                 /* "rank-5.log@18234", ".1" ... */
	int32_t rank;                   /* whose fault or exit it is; FF_UNKNOWN */
	int32_t speaker;                /* who printed it: another where the text names a rank */
	int32_t local_rank;
	int32_t attempt;                /* 0-based */
	const char *node;               /* NULL */
	struct ff_when when;            /* on the run's common clock, with bounds */
	bool provisional;
	bool shared;                    /* of a node's own log, and it fits several jobs there */
	bool unrecovered;               /* no progress of its rank after it, not after success */
	enum ff_weight weight;
	const int32_t *named;           /* ranks that the text names: failed, missing, tasks */
	size_t nnamed;
	int32_t exit_code;              /* of an exit report: -N is signal N; FF_EXIT_UNKNOWN */
	int64_t pid;                    /* FF_UNKNOWN */
};

/* How well a rank was heard (law 4). */
enum ff_heard { FF_UNHEARD, FF_QUIET, FF_HEARD, FF_SILENT };

struct ff_rank_line { /* a rank in one attempt */
	int32_t rank;
	int32_t local_rank;
	const char *node;      /* NULL unknown */
	enum ff_heard heard;
	bool stderr_to_end;    /* its stderr was captured to its end */
	bool not_stdout;       /* some of what was captured does not say that it is stdout */
	bool own_stream;       /* a stream or tag of its own: its words can be told from others' */
	bool marked;           /* success marker after its last fault */
	bool succeeded;        /* the same in a run that did not end badly, or exit 0 told */
	int64_t last_step;     /* of its last progress line; FF_UNKNOWN */
	uint64_t steps;        /* progress lines */
	bool last_words;       /* its last line, on some stream, is none of progress */
	ff_usec cadence;       /* median gap between them; 0: no habit */
	struct ff_when last_progress, last_line; /* .known false: none */
	int32_t exit_code;     /* FF_EXIT_UNKNOWN; as Python's Popen: -N is signal N */
	const struct ff_sighting *exit; /* who says so; NULL */
	bool ended_by_agent;   /* its launcher sent the signal that ended it */
	bool forced;           /* and had to send SIGKILL: it did not even answer to SIGTERM */
	int64_t pid;
	const struct ff_sighting **faults; /* its faults of any role, in order of time */
	size_t nfaults;
};

struct ff_timeline_maps; /* who is who: local ranks, pids, nodes */

struct ff_timeline {
	struct ff_arena arena;
	const struct ff_facts *facts;
	const struct ff_catalog *catalog;
	struct ff_matcher *matcher;
	struct ff_stream *const *streams;
	size_t nstreams;
	struct ff_ask ask;
	struct ff_sighting *all; /* by attempt, then comparable time, then id */
	size_t nall;
	int32_t attempt;         /* the attempt that is judged */
	int32_t nattempts;       /* at least 1 */
	int32_t world;           /* FF_UNKNOWN */
	bool world_told;         /* by facts or --world */
	bool roster_known;       /* ranks holds every rank of the job */
	struct ff_rank_line *ranks; /* of this attempt, by rank; the whole roster if known; owned */
	size_t nranks;
	const char **nodes;      /* by name */
	size_t nnodes;
	struct ff_clocks clocks;
	ff_usec as_of;
	enum ff_run_state state;
	bool final;
	struct ff_timeline_maps *maps;
	struct ff_event *provisional; /* owned */
	size_t nprovisional, cprovisional;
};

/* Builds the timeline. streams is borrowed and must not change while it lives. */
void ff_timeline_init(struct ff_timeline *t, const struct ff_facts *facts,
		      struct ff_stream *const *streams, size_t nstreams,
		      const struct ff_digest *digest, const struct ff_ask *ask);
void ff_timeline_finish(struct ff_timeline *t);
/* The same events seen as another attempt. */
void ff_timeline_attempt(struct ff_timeline *t, int32_t attempt);
struct ff_rank_line *ff_timeline_rank(const struct ff_timeline *t, int32_t rank); /* or NULL */
/* A lane of a rank: who prints it is known, and it has lines of the judged attempt. */
struct ff_lane_ref {
	int32_t rank;
	const struct ff_stream *stream;
	const struct ff_lane *lane;
};
/* All of them, by stream and lane; the caller frees the array. */
struct ff_lane_ref *ff_timeline_lanes(const struct ff_timeline *t, size_t *ret_n);
/* When a lane made its progress or success. */
struct ff_when ff_timeline_lane_when(
	const struct ff_timeline *t, const struct ff_stream *s, const struct ff_moment *m);
/* Which of two came first: by offset within a stream, else by comparable time, else can't tell. */
enum ff_order ff_timeline_order(const struct ff_sighting *a, const struct ff_sighting *b);

/* Is the event of this signature ("agent-closing")? */
bool ff_sighting_is(const struct ff_sighting *s, const char *signature);
/* Are the ranks that debug reports of process groups list (desync, monitoredBarrier, mismatch) the
 * job's? They count inside the group (SOURCES.md desync-debug). */
bool ff_timeline_group_is_job(const struct ff_timeline *t);
/* The rank that an event calls by its local rank, on the node of its stream; FF_UNKNOWN. */
int32_t ff_timeline_local(const struct ff_timeline *t, const struct ff_sighting *s, int64_t local);
/* Is the process or the GPU that this event of a node's own log names a rank's of the run? */
bool ff_timeline_knows(const struct ff_timeline *t, const char *node, const struct ff_event *e);
/* The node of a host name or address that a line accuses ("node-48<37948>", "10.0.0.7]:41666"), as
 * its streams, NCCL's heads or its "Bootstrap : Using" lines name it; NULL: nobody says whose. */
const char *ff_timeline_node_at(const struct ff_timeline *t, struct ff_str addr);
