/* timeline, inside: what the timeline's files share. Nobody else includes it.
 *
 *	timeline.c          events collected, ordered; the run's state; building
 *	timeline_who.c      who is who: local ranks, pids, nodes, and whose an event is
 *	timeline_group.c    whether the ranks of process groups are the job's
 *	timeline_attempt.c  which attempt a stream speaks of, from where on
 *	timeline_weigh.c    what a fault weighs as somebody's own end
 *	timeline_ranks.c    the roster, and what each rank of an attempt showed
 */
#pragma once

#include "base/map.h"
#include "core/timeline.h"

#define RANKS_IN_TEXT 4096 /* ranks of one list that are kept; a longer list is kept in part */

struct ff_restart { /* from this offset on, the stream speaks of this attempt */
	uint64_t offset;
	int32_t attempt;
};

struct ff_marks { /* of one stream */
	struct ff_restart *v;
	size_t n, cap;
};

struct ff_sender { /* a launcher's "sending this pid a signal" */
	const struct ff_sighting *s;
	int32_t rank; /* FF_UNKNOWN: nobody says whose pid it is */
	bool forced;
};

struct ff_home { /* a rank's place */
	const char *node;
	int32_t local_rank;
	int64_t pid;
};

struct ff_timeline_maps {
	struct ff_map local; /* PLACE, attempt, local rank -> global rank + 1 */
	struct ff_map pids;  /* node (or nothing), pid -> global rank + 1; a clash: of several */
	struct ff_map only;  /* attempt, global rank -> its stream; a clash: of several */
	struct ff_map pcis;  /* node (or nothing), PCI address -> global rank + 1; or a clash */
	struct ff_map addrs; /* address -> node; or a clash */
	struct ff_map hosts; /* host as NCCL prints it -> node */
	struct ff_map homes; /* attempt, global rank -> struct ff_home */
	struct ff_map texts; /* name of a catalogue text -> struct ff_text */
	struct ff_marks *marks; /* one a stream, by its number */
	struct ff_sender *senders;
	size_t nsenders, csenders;
	bool local_is_global;   /* one node only, and nothing speaks against it */
	bool tasks_are_agents;  /* srun starts one launcher a node */
	bool tasks_are_partial; /* several steps at once: srun's reports count within each */
	bool bad_exit;          /* a process of the last attempt left with an error */
	bool group_is_world;    /* [Rank N] of NCCL's process group is the global rank */
	bool lists_are_job;     /* nor is there another in what debug reports list */
	bool one_rank;          /* whatever says nothing of its rank is rank 0 */
	ff_usec *begins;        /* by attempt: earliest arrived stamp, FF_TIME_NONE */
};

/* ---- timeline_attempt.c */

/* The attempt that a stream speaks of at an offset. */
int32_t ff_timeline_attempt_at(
	const struct ff_timeline *t, const struct ff_stream *s, uint64_t offset);
/* Sets nattempts, and the attempt of each sighting. */
void ff_timeline_find_attempts(struct ff_timeline *t);

/* ---- timeline_who.c */

/* Can this be a rank of the run? */
bool ff_timeline_fits(const struct ff_timeline *t, int64_t rank);
/* What is known of a rank's place; never NULL. */
const struct ff_home *ff_timeline_home(
	const struct ff_timeline *t, int32_t attempt, int32_t rank);
/* The rank's only stream in this attempt, NULL if it has none or several. */
const struct ff_stream *ff_timeline_only_stream(
	const struct ff_timeline *t, int32_t attempt, int32_t rank);
/* Who prints the lines of this stream with this tag; FF_UNKNOWN. */
int32_t ff_timeline_speaker(const struct ff_timeline *t, const struct ff_stream *s,
			    struct ff_tag tag, int32_t attempt);
/* Ranks that an event's text lists; NULL for none. */
const int32_t *ff_timeline_named(
	struct ff_timeline *t, const struct ff_event *e, size_t *ret_n);
int32_t ff_timeline_exit_code(const struct ff_event *e); /* FF_EXIT_UNKNOWN */
bool ff_timeline_is_sender(const struct ff_sighting *s);
/* The node of an event: its stream's, else the one that the text gives; NULL. */
const char *ff_timeline_node_of(struct ff_timeline *t, const struct ff_sighting *s);
/* The node whose clock wrote the event's stamps: its stream's, or its process's own by NCCL's head.
 * A text about a node does not tell: a controller writes it by its own clock. NULL: unknown. */
const char *ff_timeline_clock_node(const struct ff_timeline *t, const struct ff_sighting *s);
/* Do srun's task numbers name ranks? */
bool ff_timeline_tasks_are_ranks(const struct ff_timeline *t);
/* Reads who is who from streams and events, then says whose each event is. */
void ff_timeline_learn(struct ff_timeline *t);
void ff_timeline_resolve(struct ff_timeline *t, struct ff_sighting *s);
void ff_timeline_resolve_records(struct ff_timeline *t);

/* ---- timeline_group.c */

/* torch's words about who is where in a group, without its name. */
bool ff_timeline_is_debug_report(const struct ff_sighting *s);
/* Sets group_is_world and lists_are_job; after who is who of streams and tags is known. */
void ff_timeline_learn_groups(struct ff_timeline *t);

/* ---- timeline_weigh.c */

void ff_timeline_weigh(struct ff_timeline *t);
/* *a becomes the later of the two; what can't be compared changes nothing. */
void ff_when_later(struct ff_when *a, struct ff_when b);
/* Told that it did not end well: then what follows the success marker is the failure. */
bool ff_timeline_ended_badly(const struct ff_timeline *t);

/* ---- timeline_ranks.c */

/* The median gap between a lane's progress lines, in us; 0: no habit. */
ff_usec ff_timeline_cadence(const struct ff_lane *l);
