/* collective: what the ranks of an attempt said of their process groups, and what it adds up to.
 *
 * In: a timeline: watchdog reports (WorkNCCL), counters ("last enqueued work, last completed
 * work"), dump signals (SOURCES.md process-group-nccl). Out: per group one *work* for each rank
 * that spoke of it, and a judgement. The watchdog fires on the waiters: a report accuses nobody,
 * it clears its speaker. Numbers are compared within one group only, and only where a rank speaks
 * of one group without its name: sequence numbers count per group.
 *
 * Ownership: everything is of the given arena or borrowed from the timeline. Pure.
 */
#pragma once

#include "core/timeline.h"

#define FF_SEQ_NONE INT64_MIN /* a counter that nobody said; -1 is "nothing yet" */

/* What a rank said of a group. */
struct ff_work {
	int32_t rank;
	struct ff_str group;           /* "0" for the default one; empty: not said */
	const struct ff_sighting *s;   /* its first report; never NULL */
	bool timed_out;                /* it waited in vain */
	int64_t seq;                   /* the operation that it waited for; FF_SEQ_NONE */
	struct ff_str op;              /* "ALLREDUCE"; empty */
	int64_t numel;                 /* elements that went in; FF_SEQ_NONE */
	int64_t enqueued, completed;   /* FF_SEQ_NONE */
	struct ff_when entered;        /* when it enqueued that operation */
};

struct ff_collective { /* a process group */
	struct ff_str name;
	const struct ff_work *works; /* by rank, one each */
	size_t nworks;
	bool numbered; /* its numbers can be compared */
};

struct ff_collectives {
	struct ff_collective *groups; /* by name */
	size_t ngroups;
};

enum ff_stall_kind {
	FF_STALL_NONE,
	FF_STALL_IDLE,   /* had nothing enqueued while the others waited: never entered */
	FF_STALL_LATE,   /* entered when others had given up */
	FF_STALL_BEHIND, /* waits for an earlier operation than all others */
	FF_STALL_ODD,    /* in another operation, or with another size, than all others */
	FF_STALL_ALL_IN, /* the same operation on every rank, and nobody finished it */
};

struct ff_stall {
	enum ff_stall_kind kind;
	int32_t *ranks; /* that stand out, ascending; none for ALL_IN */
	size_t nranks;
	const struct ff_sighting **proof; /* of theirs, then of those who waited; some */
	size_t nproof;
	size_t waiting; /* ranks that agree with each other */
	int64_t seq;    /* what they waited for; FF_SEQ_NONE */
	struct ff_str op;
};

void ff_collectives_init(
	struct ff_collectives *c, struct ff_arena *a, const struct ff_timeline *t);
/* Does a rank wait in any group? */
bool ff_collectives_waits(const struct ff_collectives *c, int32_t rank);
/* Do those who wait in a group all wait for the same? Where they don't, one that says nothing need
 * not be the reason. */
bool ff_collectives_agree(const struct ff_collectives *c);
/* What the reports about one group add up to; `everybody`: no rank of the job is without a report,
 * so that the odd one is among those that spoke. */
struct ff_stall ff_collective_judge(
	const struct ff_collective *g, struct ff_arena *a, size_t world, bool everybody);
