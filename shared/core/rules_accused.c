#include "core/rules_own.h"
#include "base/arr.h"

#include <stdlib.h>

/* Who is named by those who only report. An accusation is followed to one who accuses nobody; a
 * name is used only where somebody states whose it is. */

#define NODES_MOST 4096 /* of one graph; a larger run's addresses are not followed */

/* ---- accused: everybody names the same ranks */

/* "[0] is setting up ... from [0]" and the like: an accuser that is among the accused. */
static bool accuses(const struct ff_sighting *s)
{
	bool list = ff_event_field(s->ev, FF_F_missing_ranks).n ||
		ff_event_field(s->ev, FF_F_group_ranks).n;
	return s->ev->kind == FF_EVENT_FAULT && s->ev->role == FF_ROLE_SECONDARY &&
		s->weight >= FF_WEIGHT_ECHO && list && s->nnamed;
}

static int cmp_rank(const void *a, const void *b)
{
	int32_t x = *(const int32_t *)a, y = *(const int32_t *)b;
	return x < y ? -1 : x > y;
}

static size_t sort_ranks(int32_t *ranks, size_t n)
{
	size_t kept = 0;
	qsort(ranks, n, sizeof *ranks, cmp_rank);
	for (size_t i = 0; i < n; i++) {
		if (!kept || ranks[kept - 1] != ranks[i]) {
			ranks[kept++] = ranks[i];
		}
	}
	return kept;
}

/* Gloo's start-up waits for a key that ends in the missing rank: "/default_pg/0//cpu//0/3". */
static int64_t rank_of_key(const struct ff_sighting *s)
{
	struct ff_str key = ff_event_field(s->ev, FF_F_key);
	ptrdiff_t mark = is_fault(s, "store-timeout") ? ff_str_find(key, FF_STR("//cpu//"), 0) : -1;
	if (mark < 0 || ff_str_chr(key, ',', 0) >= 0) {
		return FF_UNKNOWN;
	}
	size_t at = key.n;
	while (at > 0 && key.p[at - 1] != '/') {
		at--;
	}
	int64_t rank;
	struct ff_str last = ff_str_skip(key, at);
	return last.n && ff_str_digits(last, &rank) == last.n ? rank : FF_UNKNOWN;
}

struct names {
	int32_t *ranks;
	size_t n, cap;
};

static void add_name(
	const struct look *k, struct names *names, int32_t rank, const struct ff_sighting *by)
{
	const struct story *st = story_of(k, rank);
	/* A rank that nothing else speaks of may not exist at all. */
	bool known = st && (k->t->roster_known || st->line->own_stream || st->line->exit);
	/* NCCL's root ends with the others: unheard, it is one of many that may be first. */
	bool root = is_fault(by, "nccl-bootstrap");
	bool heard = !known || st->line->heard != FF_UNHEARD;
	if (root && !heard && ff_look_open(k, &rank, 1, NULL)) {
		return;
	}
	if (known && !st->waited && rank != by->speaker) {
		*FF_ARR_ADD(names->ranks, names->n, names->cap) = rank;
	}
}

/* Whoever waits for a rank that the world does not have made a mistake of its own. */
static void add_key(const struct look *k, struct names *names, const struct ff_sighting *s)
{
	int64_t rank = rank_of_key(s);
	if (k->t->world_told && rank >= k->t->world && story_of(k, s->speaker)) {
		*FF_ARR_ADD(names->ranks, names->n, names->cap) = s->speaker;
	} else if (rank < INT32_MAX) {
		add_name(k, names, (int32_t)rank, s);
	}
}

/* All named ranks that do not wait themselves. */
static struct names collect_names(const struct look *k, struct ff_finding *f)
{
	struct names names = {0};
	for (size_t i = 0; i < k->t->nall && names.n < 1u << 20; i++) {
		const struct ff_sighting *s = &k->t->all[i];
		bool key = rank_of_key(s) != FF_UNKNOWN && s->weight >= FF_WEIGHT_ECHO;
		if (!in_attempt(k, s) || (!key && !accuses(s))) {
			continue;
		}
		if (f->nproof < 8) {
			ff_finding_proof(k, f, s);
		}
		if (key) {
			add_key(k, &names, s);
		}
		for (size_t j = 0; !key && j < s->nnamed; j++) {
			add_name(k, &names, s->named[j], s);
		}
	}
	names.n = names.n ? sort_ranks(names.ranks, names.n) : 0;
	return names;
}

static bool by_lists(struct look *k, struct ff_finding *f)
{
	struct names names = collect_names(k, f);
	size_t n = names.n;
	bool few = n && n * 2 <= k->t->nranks && !k->ngroups && !k->nloose;
	if (few) {
		ff_finding_blame(k, f, names.ranks, n);
		f->cause = f->proof[0];
		f->fault = f->cause->ev->fault;
		f->confidence = n == 1 ? FF_LIKELY : FF_POSSIBLE;
		f->text = ff_arena_fmt(arena_of(k),
			"rank %s is named as the one that others waited for, and waits for nobody",
			ff_look_ranks_text(k, names.ranks, n));
	}
	free(names.ranks);
	return few;
}

/* The fault of nobody knows whom that was said before s; false: there are different ones. What came
 * after may be of the clean-up. */
static bool loose_before(
	const struct look *k, const struct ff_sighting *s, const struct ff_sighting **ret)
{
	*ret = NULL;
	for (size_t i = 0; i < k->nloose; i++) {
		if (before(s, k->loose[i])) {
			continue;
		}
		if (*ret && strcmp((*ret)->ev->fault, k->loose[i]->ev->fault)) {
			return false;
		}
		*ret = *ret ? *ret : k->loose[i];
	}
	return true;
}

/* NCCL's "[Service thread] Connection closed by localRank 7", said by those who live on. The first
 * one closed is the suspect; the others close when the job is torn down. */
static bool by_local_rank(struct look *k, struct ff_finding *f)
{
	const struct ff_sighting *first = NULL;
	size_t votes = 0;
	if (k->ngroups || k->nwords) {
		return false;
	}
	for (size_t i = 0; i < k->t->nall; i++) {
		const struct ff_sighting *s = &k->t->all[i];
		if (in_attempt(k, s) && ff_event_field(s->ev, FF_F_peer_local_rank).n) {
			keep_first(&first, s);
		}
	}
	if (!first || (k->first_end && before(k->first_end, first))) {
		return false;
	}
	int64_t local = ff_event_int(first->ev, FF_F_peer_local_rank, FF_UNKNOWN);
	int32_t rank = ff_timeline_local(k->t, first, local);
	const struct story *st = story_of(k, rank);
	if (!st || (st->report && !before(first, st->report))) {
		return false;
	}
	for (size_t i = 0; i < k->t->nall; i++) {
		const struct ff_sighting *s = &k->t->all[i];
		struct ff_str other = ff_event_field(s->ev, FF_F_peer_local_rank);
		if (!in_attempt(k, s) || !other.n) {
			continue;
		}
		bool same = ff_event_int(s->ev, FF_F_peer_local_rank, FF_UNKNOWN) == local;
		if (!same && !before(first, s)) {
			return false;
		}
		votes += same ? s->ev->count : 0;
	}
	const struct ff_sighting *said;
	if (votes < 2 || !loose_before(k, first, &said)) {
		return false;
	}
	ff_finding_blame(k, f, &rank, 1);
	ff_finding_proof(k, f, first);
	ff_finding_cause(f, said ? said : first);
	f->confidence = FF_LIKELY;
	f->text = ff_arena_fmt(arena_of(k),
		"the first connection that its peers on the node saw closed is rank %d's",
		(int)rank);
	return true;
}

/* Everybody else lost the store before anything else: follow rank 0, which serves it. torchrun's
 * agent serves it itself (SOURCES.md c10d-store). */
static bool by_store(struct look *k, struct ff_finding *f)
{
	const struct story *host = story_of(k, 0);
	const char *launcher =
		ff_control_get(ff_facts_control(k->t->facts, "job@start"), "launcher");
	size_t lost = 0;
	if (!host || !launcher || !strcmp(launcher, "torchrun") ||
		!strcmp(launcher, "accelerate") || k->ngroups || k->nloose || k->nwords ||
		host->report || host->torn || host->line->succeeded ||
		host->line->heard == FF_UNHEARD) {
		return false;
	}
	for (size_t i = 0; i < k->t->nranks; i++) {
		const struct story *st = &k->stories[i];
		if (st == host) {
			continue;
		}
		if (!is_fault(st->report, "store-unreachable") ||
			(k->first_end && before(k->first_end, st->report))) {
			return false;
		}
		lost++;
		if (f->nproof < 8) {
			ff_finding_proof(k, f, st->report);
		}
	}
	if (lost < 2 || !k->t->roster_known) {
		return false;
	}
	int32_t zero = 0;
	ff_finding_blame(k, f, &zero, 1);
	ff_finding_cause(f, f->proof[0]);
	f->confidence = FF_LIKELY;
	f->text = ff_arena_fmt(arena_of(k),
		"all %zu other ranks lost the store, which rank 0 serves, and rank 0 reports "
		"nothing",
		lost);
	return true;
}

/* ---- addresses: a graph of nodes */

struct place {
	const char *node;
	size_t accuses, accused; /* nodes; itself does not count */
	const struct ff_sighting *by;
};

struct graph {
	struct place *v; /* NODES_MOST of them */
	size_t n;
	struct ff_map places; /* node -> its place */
	bool adapters;        /* each accusation is of an adapter that ran out of retries */
};

static struct place *place_in(struct graph *g, const char *node)
{
	struct place *p = ff_map_get(&g->places, ff_str_z(node));
	if (!p && g->n < NODES_MOST) {
		p = &g->v[g->n++];
		*p = (struct place){.node = node};
		(void)ff_map_put(&g->places, ff_str_z(node), p);
	}
	return p;
}

/* An address inside SocketImpl(...) is not captured at all: it may be garbage (SOURCES.md
 * gloo-tcp). Completion status 5 only follows 12 (SOURCES.md nccl-debug). */
static void see_address(struct look *k, struct graph *g, const struct ff_sighting *s)
{
	struct ff_str addr = ff_event_field(s->ev, FF_F_peer_addr);
	bool adapter = is_fault(s, "ib-link-down");
	bool flushed = adapter && ff_event_int(s->ev, FF_F_code, 12) != 12;
	if (!in_attempt(k, s) || !addr.n || flushed || s->ev->role != FF_ROLE_SECONDARY ||
		s->weight < FF_WEIGHT_ECHO || (k->first_end && before(k->first_end, s))) {
		return;
	}
	const struct ff_rank_line *r = ff_timeline_rank(k->t, s->speaker);
	const char *here = s->node ? s->node : r ? r->node : NULL;
	const char *there = ff_timeline_node_at(k->t, addr);
	if (!here || !there || !strcmp(here, there)) {
		return;
	}
	struct place *from = place_in(g, here), *to = place_in(g, there);
	if (from && to) {
		from->accuses++;
		to->accused++;
		to->by = to->by ? to->by : s;
		g->adapters = g->adapters && adapter;
	}
}

/* The one node that is accused and accuses nobody; NULL: none, or several. */
static const struct place *guilty_node(const struct graph *g, size_t *ret_accusers)
{
	const struct place *guilty = NULL;
	*ret_accusers = 0;
	for (size_t i = 0; i < g->n; i++) {
		const struct place *p = &g->v[i];
		*ret_accusers += p->accuses != 0;
		if (!p->accused || p->accuses) {
			continue;
		}
		if (guilty) {
			return NULL;
		}
		guilty = p;
	}
	return guilty;
}

/* Its only rank that reports nothing: where all on it report, or several don't, nobody. */
static const struct story *quiet_on(const struct look *k, const char *node, size_t *ret_ranks)
{
	const struct story *who = NULL;
	size_t quiet = 0;
	*ret_ranks = 0;
	for (size_t i = 0; i < k->t->nranks; i++) {
		const struct story *st = &k->stories[i];
		if (!st->line->node || strcmp(st->line->node, node)) {
			continue;
		}
		++*ret_ranks;
		if (!st->report && !st->closed && !st->torn && !st->line->succeeded) {
			who = st;
			quiet++;
		}
	}
	return quiet == 1 ? who : NULL;
}

static bool blame_place(
	struct look *k, struct ff_finding *f, const struct place *p, bool adapters, size_t accusers)
{
	size_t ranks;
	const struct story *who = quiet_on(k, p->node, &ranks);
	ff_finding_proof(k, f, p->by);
	ff_finding_cause(f, p->by);
	f->confidence = FF_LIKELY;
	if (adapters && accusers > 1) {
		f->kind = FF_VERDICT_NODE;
		f->node = p->node;
		f->text = ff_arena_fmt(arena_of(k),
			"the adapters of %zu other nodes ran out of retries to this one, which "
			"accuses nobody",
			accusers);
		return true;
	}
	if (!who || (ranks > 1 && !who->line->stderr_to_end)) {
		return false;
	}
	ff_finding_blame(k, f, &who->line->rank, 1);
	f->confidence = ranks == 1 ? FF_LIKELY : FF_POSSIBLE;
	f->text = ff_arena_fmt(arena_of(k),
		"the lost connections lead to %s, which accuses nobody; rank %d there reports "
		"nothing",
		p->node, (int)who->line->rank);
	return true;
}

static bool by_address(struct look *k, struct ff_finding *f)
{
	size_t accusers;
	if (k->ngroups || k->nloose) {
		return false;
	}
	struct graph g = {.adapters = true, .v = ff_xcalloc(NODES_MOST, sizeof *g.v)};
	for (size_t i = 0; i < k->t->nall; i++) {
		see_address(k, &g, &k->t->all[i]);
	}
	const struct place *p = guilty_node(&g, &accusers);
	bool found = p && blame_place(k, f, p, g.adapters, accusers);
	ff_map_finish(&g.places);
	free(g.v);
	return found;
}

bool ff_rule_accused(struct look *k, struct ff_finding *f)
{
	static bool (*const ways[])(struct look *, struct ff_finding *) = {
		by_lists, by_local_rank, by_store, by_address};
	for (size_t i = 0; i < sizeof ways / sizeof ways[0]; i++) {
		struct ff_finding found = {.rule = f->rule};
		if (ways[i](k, &found)) {
			*f = found;
			return true;
		}
	}
	return false;
}
