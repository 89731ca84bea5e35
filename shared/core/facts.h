/* facts: what we were told about a run, as opposed to what its logs say.
 *
 * In: control objects (job-start, job-end, exit, sign) and clock samples, in any order, repeated as
 * often as a sender likes. Out: one value per (id, key). The result does not depend on the order of
 * arrival: a second object of an id fills what is missing; of contradicting values the one with the
 * earlier time holds (an object without time counts as the last), then the bytewise smaller. Each
 * (id, key) that was contradicted counts once. Only at a cap does the order matter.
 *
 * Ids: `job@start`, `job@end`, `exit@ATTEMPT.RANK` (else `exit@NODE.PID`), `sign@...`.
 * Keys are those of the wire objects (shared/README.md 6.2): world_size, launcher, nodes,
 * exit_code, signal, state, rank, node, pid, attempt, time, ... Values are kept as text; a time is
 * in microseconds.
 *
 * Ownership: everything inside is owned by the facts; what getters return is borrowed.
 * Limits: FF_CONTROLS_MAX ids; FF_CLOCK_SAMPLES samples a node, those of least round trip;
 * FF_NODES_MAX nodes with samples. Keys are of a closed set (the caller's table), values end at a
 * NUL. What is beyond counts in controls_refused.
 */
#pragma once

#include "base/arena.h"
#include "base/limits.h"
#include "base/map.h"
#include "base/usec.h"

#define FF_UNKNOWN (-1) /* no rank, no attempt, no world size, no pid */

/* Which clock a stamp is of (law 3). */
enum ff_clock {
	FF_CLOCK_NONE,
	FF_CLOCK_ARRIVED,  /* when the collector got it: one clock for all */
	FF_CLOCK_CAPTURED, /* when a forwarder read it: its node's clock */
	FF_CLOCK_CLAIMED,  /* written in the line: the node's or container's clock */
};

struct ff_fact_value {
	char *key;
	char *value;
	ff_usec time; /* of the object that said it; FF_TIME_NONE: it had none */
	enum ff_clock clock;
	bool contradicted; /* another value was told too */
};

struct ff_control {
	char *id;
	struct ff_fact_value *values; /* ordered by key */
	size_t nvalues, cvalues;
	bool dirty; /* changed since the owner last cleared it */
};

struct ff_clock_sample {
	ff_usec t1, t2, t3, t4; /* NTP's four; t1, t4 the node's clock, t2, t3 the daemon's */
};

struct ff_node_clock {
	char *node;
	struct ff_clock_sample *samples; /* by round trip, then t1 */
	size_t nsamples, csamples;
	bool dirty;
};

struct ff_facts {
	char *job;
	char *run;
	struct ff_control **controls; /* ordered by id */
	size_t ncontrols, ccontrols;
	struct ff_node_clock *clocks; /* ordered by node */
	size_t nclocks, cclocks;
	uint64_t contradictions;
	uint64_t controls_refused;
};

void ff_facts_init(struct ff_facts *f, struct ff_str job, struct ff_str run);
void ff_facts_finish(struct ff_facts *f);

/* Tells one value. time FF_TIME_NONE: the object had none. Returns true if anything changed. */
bool ff_facts_tell(struct ff_facts *f, const char *id, const char *key, struct ff_str value,
		   ff_usec time, enum ff_clock clock);
/* Makes the id known even when it has no value. */
void ff_facts_know(struct ff_facts *f, const char *id);
/* A sample whose times run backwards or are out of range (0 .. 2^53) is ignored: false. */
bool ff_facts_sample(struct ff_facts *f, struct ff_str node, struct ff_clock_sample s);

const struct ff_control *ff_facts_control(const struct ff_facts *f, const char *id); /* or NULL */
const char *ff_control_get(const struct ff_control *c, const char *key); /* NULL if not said */
/* A whole number, or def. */
int64_t ff_control_int(const struct ff_control *c, const char *key, int64_t def);
/* The object's own time (least over its values) and its clock; FF_TIME_NONE without one. */
ff_usec ff_control_time(const struct ff_control *c, enum ff_clock *ret_clock);

/* Shorthands over job@start and job@end. */
int32_t ff_facts_world(const struct ff_facts *f); /* FF_UNKNOWN if not told */
bool ff_facts_ended(const struct ff_facts *f);    /* a job-end was told */
/* Ended well (shared/README.md 6.2): exit code 0 with COMPLETED, SUCCEEDED or no state, or none
 * with one of these; no signal. */
bool ff_facts_ended_well(const struct ff_facts *f);
/* job-end's state in upper case, NULL if none. Borrowed from arena a. */
const char *ff_facts_state(const struct ff_facts *f, struct ff_arena *a);
