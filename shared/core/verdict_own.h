/* verdict, inside: what core/verdict.c (the answer and its attempts) and core/verdict_ranks.c (what
 * became of each rank, and why it is not the one) share. Nobody else includes it.
 */
#pragma once

#include "core/verdict.h"

/* A verdict in the making. */
struct maker {
	struct ff_verdict *v;
	struct ff_timeline *t;
	struct ff_finding f;
	const struct ff_sighting **used; /* events referred to, with repeats */
	size_t nused, cused;
	uint8_t *starts; /* by index of t->ranks: it is one of the initiating ranks */
	char launcher[32];
};

static inline struct ff_arena *arena_of(const struct maker *m)
{
	return &m->v->arena;
}

/* The event is referred to: it is listed in `events`. Returns its id; NULL for NULL. */
const char *ff_verdict_use(struct maker *m, const struct ff_sighting *s);
/* One line without control characters: names of nodes come from outside. */
const char *ff_verdict_line(const struct maker *m, const char *text);
/* "1.8 s", of the arena. */
const char *ff_verdict_span(const struct maker *m, ff_usec d);

/* Fills `ranks` and `collateral`; needs fault, initiating and starts. */
void ff_verdict_fill_ranks(struct maker *m);
void ff_verdict_fill_why_not(struct maker *m);
