/* runs: the table of jobs and their runs, and the rule that says where a new run begins
 * (shared/README.md 2).
 *
 * The first word of an unknown job begins a run. Afterwards only another `run` value in a job-start
 * or hello or, without `run`, a job-start after the end, or a new source that says `live` more than
 * 10 minutes after it (by the daemon's clock), begins another. What is shipped or added by hand
 * belongs to the latest run, or to the run that it names. An unnamed run is "0", the next "1". What
 * a known source says belongs to its run whenever it comes.
 *
 * Ownership: the table owns its runs and their jobs. No clock here: now_us is an argument.
 */
#pragma once

#include "base/err.h"
#include "base/map.h"
#include "core/job.h"

struct ff_mask_rules;
struct ff_node;
struct ff_reach;

struct ff_run {
	struct ff_job *job;   /* facts.job and facts.run are its names */
	const struct ff_mask_rules *mask; /* of the table */
	uint32_t number;      /* of the run, from 1, in order of making: keys in the store. Never
				 used again */
	ff_usec begun_us;     /* the daemon's clock when it was made; FF_TIME_NONE offline */
	ff_usec ended_us;     /* the daemon's clock when its job-end came; FF_TIME_NONE: none yet */
	bool dirty;           /* facts or run row to be stored */
	uint32_t version;     /* counts changes of its verdict (ETag): kept by the daemon */
	void *user;           /* of the daemon */
	struct ff_node *node; /* a node's own logs: no job's run (feed/nodes.h); else NULL */
	struct ff_reach *reach; /* feed/nodes.c: which lines of nodes concern it; NULL: not asked */
	uint64_t reach_state;   /* of the job when that was made */
	uint64_t reach_seen;    /* in this round of joining it was compared */
	struct ff_map
		claims; /* NAME NUL ATTEMPT.RANK -> the stream that said so last (same_rank) */
};

struct ff_runs {
	const struct ff_catalog *catalog;
	const struct ff_mask_rules *mask; /* for all that comes and is told; set before the first
					     word, outlives the table; NULL: none */
	struct ff_run **runs; /* by number; some may be missing (ff_runs_number) */
	size_t nruns, cruns;
	uint32_t last_number; /* the highest that was ever given */
	struct ff_map by_name; /* JOB NUL RUN -> run */
	struct ff_map latest;  /* JOB -> its latest run */
	struct ff_map sources; /* SOURCE NUL JOB -> run, for sources other than "0" */
	struct ff_run **nodes; /* logs of nodes, by number - FF_NODE_NUMBER */
	size_t nnodes, cnodes;
	struct ff_map node_by_name; /* OWNER NUL NODE -> its logs */
	size_t node_events;         /* of all of them */
	size_t reaches;             /* runs that have one */
	uint64_t join_round;        /* nothing is fed while one goes on */
	/* The uid that a run belongs to, -1: nobody's. NULL (offline): all are one user's. */
	int64_t (*owner)(const struct ff_run *run);
	uint64_t counts[FF_COUNT_COUNT]; /* of what belongs to no run */
};

/* Why somebody asks for a run. */
enum ff_run_cause {
	FF_RUN_FEED,  /* shipped, tailed from the start, JSON Lines data, added by hand */
	FF_RUN_START, /* a job-start */
	FF_RUN_LIVE,  /* a hello that says "live": true */
};

/* Numbers of the logs of nodes begin here, those of runs are below. */
#define FF_NODE_NUMBER 0x40000000u

void ff_runs_init(struct ff_runs *r, const struct ff_catalog *catalog);
void ff_runs_finish(struct ff_runs *r);

/* A job or run id that can be used: 1 to FF_JOB_ID_MAX bytes, no control characters, no '/', '~',
 * not "none", "-" or ".." . Else FF_ENAME with err. */
int ff_runs_check_name(struct ff_str name, const char *what, struct ff_err *err);

/* The run that these words belong to; made if the rule says so. run may be NULL; source may be
 * NULL. Returns 0 and *ret, FF_ENAME for a bad id, FF_ELIMIT at FF_RUNS_MAX (counted). */
int ff_runs_resolve(struct ff_runs *r, struct ff_str job, const struct ff_str *run,
		    const char *source, enum ff_run_cause cause, ff_usec now_us,
		    struct ff_run **ret, struct ff_err *err);
/* The same for a user who is not trusted: he has FF_RUNS_USER open runs at most, else FF_ELIMIT
 * (counted). uid: FF_RUNS_ANYBODY without such a share. */
#define FF_RUNS_ANYBODY INT64_MIN
int ff_runs_resolve_for(struct ff_runs *r, int64_t uid, struct ff_str job, const struct ff_str *run,
	const char *source, enum ff_run_cause cause, ff_usec now_us, struct ff_run **ret,
	struct ff_err *err);
/* By what a person types: JOB (the latest run), JOB~1 (the one before), JOB/RUN, or one of these
 * with a unique prefix of a job id. NULL if there is none (or several: *ret_many true). */
struct ff_run *ff_runs_find(const struct ff_runs *r, struct ff_str name, bool *ret_many);
/* The run, or the logs of a node, of this number, NULL if it is gone or never was. */
struct ff_run *ff_runs_number(const struct ff_runs *r, uint32_t number);
/* How many runs have a lower number: the index where it is, or would be. */
size_t ff_runs_below(const struct ff_runs *r, uint32_t number);
/* Takes a run out and frees it. Its job is unknown afterwards if it was its only run, and what its
 * sources say belongs to no run: it begins one anew. Nobody may hold a pointer into it. */
void ff_runs_remove(struct ff_runs *r, struct ff_run *run);
/* The i-th of all runs and then of all nodes' logs; NULL behind the last. */
struct ff_run *ff_runs_any(const struct ff_runs *r, size_t i);
/* Restore: in ascending number. */
struct ff_run *ff_runs_restore(struct ff_runs *r, struct ff_str job, struct ff_str run,
			       uint32_t number);
/* After restore: remembers which run a source belongs to. */
void ff_runs_know_source(struct ff_runs *r, struct ff_run *run, const char *source);
