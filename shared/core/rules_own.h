/* rules, inside: what core/rules.c (the look at a timeline, the table), core/rules_outside.c
 * (clean, external, hardware), core/rules_fault.c (a rank's own faults and ends) and
 * core/rules_peer.c (only reports about others) share. Nobody else includes it.
 *
 * A look is what the rules ask a timeline for, gathered once: a story for each rank of its attempt,
 * own faults in groups, words from outside. It borrows the timeline, and lives for one run of the
 * table; what findings keep is of the timeline's arena.
 */
#pragma once

#include "core/collective.h"
#include "core/rules.h"

#include <string.h>

/* What a rank's own lines say. */
struct story {
	const struct ff_rank_line *line;
	const struct ff_sighting *own;    /* its first own fault that counts */
	const struct ff_sighting *late;   /* an own fault, but after its own report or teardown */
	const struct ff_sighting *echo;   /* an own fault that was handled, or is a copy */
	const struct ff_sighting *report; /* its first report about somebody else */
	const struct ff_sighting *waited; /* its first report that an operation timed out */
	const struct ff_sighting *torn;   /* told that the job ends */
	int sig;     /* the signal that ended it, if its launcher did not send it; else 0 */
	bool closed; /* its launcher ended it */
	bool alone;  /* it ended with an error before its launcher ended anybody */
};

/* One fault that several ranks may share. */
struct group {
	const char *fault, *signature;
	uint64_t fingerprint;
	const char *frame;
	const struct ff_sighting **own; /* one a rank, by rank */
	size_t n, cap;
	const struct ff_sighting *first;
};

/* The first mark of clean-up of each stream that speaks of a node; further streams are not kept. */
#define ENDS_A_NODE 16

struct end {
	const struct ff_sighting *first[ENDS_A_NODE];
	size_t n;
};

struct look {
	struct ff_timeline *t;
	bool shared; /* lines of nodes that fit several jobs are looked at too */
	struct story *stories; /* parallel to t->ranks */
	struct group *groups;  /* of own faults */
	size_t ngroups, cgroups;
	const struct ff_sighting **loose; /* own faults of nobody knows which rank */
	size_t nloose, cloose;
	const struct ff_sighting **words; /* a scheduler's or outsider's words */
	size_t nwords, cwords;
	const struct ff_sighting **hosts; /* words of a driver, kernel or scheduler about a host */
	size_t nhosts, chosts;
	struct ff_map ends; /* node ("": unknown), or stream -> struct end: marks of clean-up */
	const struct ff_sighting *first_end;
	const struct ff_sighting *cancel; /* the first bare "STEP ... CANCELLED" */
	size_t loose_reports;             /* reports of nobody knows which rank */
	size_t loose_aborts;              /* among them those after which a process aborts */
	struct ff_collectives *calls;     /* process groups; NULL until a rule asks */
	size_t reporters;                 /* ranks that report about others */
};

/* ---- small questions */

static inline struct ff_arena *arena_of(const struct look *k)
{
	return &k->t->arena;
}

static inline bool is_fault(const struct ff_sighting *s, const char *fault)
{
	return s && !strcmp(s->ev->fault, fault);
}

static inline bool is_one_of(const char *word, const char *const *list)
{
	for (; *list; list++) {
		if (!strcmp(word, *list)) {
			return true;
		}
	}
	return false;
}

static inline enum ff_domain domain_of(const struct ff_sighting *s)
{
	return s->sig ? s->sig->domain : FF_DOMAIN_USER;
}

/* An exception that no text knows may be anything, also a report about a peer. */
static inline bool is_vague(const struct ff_sighting *s)
{
	static const char *const vague[] = {"python-exception", "sigabrt", "unknown", NULL};
	return is_one_of(s->ev->fault, vague);
}

/* Words of an outsider that end a job without anything being wrong in it. */
static inline bool is_outside_word(const struct ff_sighting *s)
{
	static const char *const outside[] = {"time-limit", "preempted", "cancelled", "sigterm",
		"sighup", "dependency-failed", "submit-rejected", "image-pull", "quota", NULL};
	return domain_of(s) == FF_DOMAIN_SCHEDULER && is_one_of(s->ev->fault, outside);
}

/* Words about a whole host. */
static inline bool is_host_word(const struct ff_sighting *s)
{
	static const char *const hosts[] = {"node-fail", "node-lost", "prolog-failed", NULL};
	return domain_of(s) == FF_DOMAIN_HARDWARE ||
		(domain_of(s) == FF_DOMAIN_SCHEDULER && is_one_of(s->ev->fault, hosts));
}

/* Does this look see it? What may be another job's is seen only where nothing else decides. */
static inline bool in_attempt(const struct look *k, const struct ff_sighting *s)
{
	return s->attempt == k->t->attempt && (k->shared || !s->shared);
}

static inline struct story *story_of(const struct look *k, int32_t rank)
{
	const struct ff_rank_line *r = ff_timeline_rank(k->t, rank);
	return r ? &k->stories[r - k->t->ranks] : NULL;
}

static inline bool before(const struct ff_sighting *a, const struct ff_sighting *b)
{
	return ff_timeline_order(a, b) == FF_BEFORE;
}

/* The earlier of two; a stays where nobody can tell. */
static inline void keep_first(const struct ff_sighting **a, const struct ff_sighting *b)
{
	if (!*a || before(b, *a)) {
		*a = b;
	}
}

/* Reports that an operation ran into its time limit: said by those who waited. */
static inline bool is_wait(const struct ff_sighting *s)
{
	if (is_fault(s, "nccl-timeout")) {
		return ff_event_field(s->ev, FF_F_ran_for).n != 0;
	}
	return (is_fault(s, "straggler-hang") || is_fault(s, "store-timeout")) &&
		!ff_event_field(s->ev, FF_F_peer_rank).n;
}

/* Reports that a peer's end was noticed. */
static inline bool is_loss(const struct ff_sighting *s)
{
	static const char *const losses[] = {
		"gloo-peer-closed", "nccl-remote-error", "store-unreachable", "broken-pipe", NULL};
	return s->ev->role == FF_ROLE_SECONDARY && is_one_of(s->ev->fault, losses);
}

/* ---- of rules.c */
/* The job made steps. */
bool ff_look_progressed(const struct look *k);
/* "0-3,7", of the arena. */
const char *ff_look_ranks_text(const struct look *k, const int32_t *ranks, size_t n);
/* It died of a signal that nobody sent for clean-up, and not of a report of its own. */
bool ff_story_signalled(const struct look *k, const struct story *st);
/* Nothing tells how this rank came to its end: no report, no teardown, no success, and it was not
 * heard going on after `than` (NULL: any time). It may have had the same fault, or an earlier one,
 * in words that nobody captured. */
bool ff_story_open(const struct story *st, const struct ff_sighting *than);
/* How many of the roster's ranks but these (ascending) are open. */
size_t ff_look_open(
	const struct look *k, const int32_t *but, size_t nbut, const struct ff_sighting *than);
/* How each rank of the roster ended is told. */
bool ff_look_ends_told(const struct look *k);
/* s is the fault that the group's members share. */
bool ff_group_has(const struct group *g, const struct ff_sighting *s);

/* The fault that the scheduler's state of the job tells ("preempted"); NULL. */
const char *ff_outside_state(const struct look *k);

void ff_finding_proof(const struct look *k, struct ff_finding *f, const struct ff_sighting *s);
/* Verdict rank: these, ascending. */
void ff_finding_blame(const struct look *k, struct ff_finding *f, const int32_t *ranks, size_t n);
/* Verdict rank: a group's members, with their faults as proof. */
void ff_finding_group(const struct look *k, struct ff_finding *f, const struct group *g);
void ff_finding_cause(struct ff_finding *f, const struct ff_sighting *s);
/* What would decide, or is lacking; text is of the arena or static. */
void ff_finding_need(const struct look *k, struct ff_finding *f, const char *text);

#define X(id, name) bool ff_rule_##id(struct look *k, struct ff_finding *f);
FF_RULES(X)
#undef X
