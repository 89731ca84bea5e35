#include "core/rules_own.h"
#include "base/arr.h"

#include <stdlib.h>

/* ---- looking */

static void add_end_to(struct look *k, struct ff_str key, const struct ff_sighting *s)
{
	struct end *e = ff_map_get(&k->ends, key);
	if (!e) {
		e = FF_ARENA_NEW(arena_of(k), struct end);
		(void)ff_map_put(&k->ends, key, e);
	}
	for (size_t i = 0; i < e->n; i++) {
		if (e->first[i]->stream == s->stream) {
			keep_first(&e->first[i], s);
			return;
		}
	}
	if (e->n < ENDS_A_NODE) {
		e->first[e->n++] = s;
	}
}

static void add_end(struct look *k, const struct ff_sighting *s)
{
	add_end_to(k, ff_str_z(s->node ? s->node : ""), s);
	if (s->stream) {
		add_end_to(k, ff_str_n(&s->stream, sizeof s->stream), s);
	}
	keep_first(&k->first_end, s);
}

static bool any_before(const struct look *k, struct ff_str key, const struct ff_sighting *s)
{
	const struct end *e = ff_map_get(&k->ends, key);
	for (size_t i = 0; e && i < e->n; i++) {
		if (before(e->first[i], s)) {
			return true;
		}
	}
	return false;
}

/* The launcher's clean-up had begun on this node, or on one that nobody names, before s was said.
 * Where nobody knows s's node, any clean-up counts. */
static bool after_end(const struct look *k, const struct ff_sighting *s)
{
	if (any_before(k, FF_STR(""), s)) {
		return true;
	}
	if (s->node) {
		return any_before(k, ff_str_z(s->node), s);
	}
	return (k->first_end && before(k->first_end, s)) ||
		(s->stream && any_before(k, ff_str_n(&s->stream, sizeof s->stream), s));
}

static void see_primary(struct look *k, const struct ff_sighting *s)
{
	if (is_outside_word(s)) {
		*FF_ARR_ADD(k->words, k->nwords, k->cwords) = s;
		return;
	}
	if (is_host_word(s)) {
		*FF_ARR_ADD(k->hosts, k->nhosts, k->chosts) = s;
	}
	struct story *st = story_of(k, s->rank);
	if (!st) {
		bool program = s->weight == FF_WEIGHT_FULL && domain_of(s) != FF_DOMAIN_SCHEDULER;
		if (program && !is_host_word(s)) {
			*FF_ARR_ADD(k->loose, k->nloose, k->cloose) = s;
		}
		return;
	}
	keep_first(s->weight == FF_WEIGHT_FULL ? &st->own : &st->echo, s);
}

/* Second words about a fault of the rank's own: all it may show of it. */
static bool is_second_word(const struct ff_sighting *s)
{
	static const char *const own[] = {"compile-failure", "cublas-failure",
		"dataloader-worker-died", "disk-full", "gpu-lost", "import-error", "pickle-failure",
		"too-many-open-files", NULL};
	return s->ev->role == FF_ROLE_SECONDARY && is_one_of(s->ev->fault, own);
}

static void see_loose_report(struct look *k, const struct ff_sighting *s)
{
	static const char *const aborts[] = {
		"sigabrt", "nccl-timeout", "collective-mismatch", NULL};
	if (s->ev->role != FF_ROLE_SECONDARY || is_fault(s, "python-exception")) {
		return;
	}
	k->loose_reports++;
	k->loose_aborts += is_one_of(s->ev->fault, aborts);
}

static void see(struct look *k, const struct ff_sighting *s)
{
	static const char *const ends[] = {"agent-closing", "agent-forced", "step-aborted", NULL};
	for (const char *const *e = ends; *e; e++) {
		if (ff_sighting_is(s, *e)) {
			add_end(k, s);
		}
	}
	if (ff_sighting_is(s, "agent-signalled")) {
		*FF_ARR_ADD(k->words, k->nwords, k->cwords) = s;
	}
	if (s->ev->kind != FF_EVENT_FAULT || s->weight < FF_WEIGHT_ECHO) {
		return;
	}
	if (s->ev->role == FF_ROLE_PRIMARY) {
		see_primary(k, s);
		return;
	}
	if (s->ev->role == FF_ROLE_TEARDOWN && domain_of(s) == FF_DOMAIN_SCHEDULER) {
		keep_first(&k->cancel, s);
	}
	struct story *st = story_of(k, s->speaker != FF_UNKNOWN ? s->speaker : s->rank);
	if (!st) {
		see_loose_report(k, s);
		if (s->ev->role == FF_ROLE_TEARDOWN && domain_of(s) == FF_DOMAIN_SCHEDULER) {
			add_end(k, s);
		}
		return;
	}
	if (is_second_word(s)) {
		keep_first(&st->echo, s);
	} else if (s->ev->role == FF_ROLE_SECONDARY && !is_fault(s, "python-exception")) {
		keep_first(&st->report, s);
		if (is_wait(s)) {
			keep_first(&st->waited, s);
		}
	} else if (s->ev->role == FF_ROLE_TEARDOWN) {
		keep_first(&st->torn, s);
	}
}

/* An own fault after the rank's own report, or after it was told to end, started nothing. */
static void demote(const struct look *k, struct story *st)
{
	if (!st->own) {
		return;
	}
	bool after = (st->report && before(st->report, st->own)) ||
		(st->torn && before(st->torn, st->own)) || after_end(k, st->own);
	if (after) {
		st->late = st->own;
		st->own = NULL;
	}
}

static void see_end(const struct look *k, struct story *st)
{
	const struct ff_rank_line *r = st->line;
	int sig = ff_exit_signal(r->exit_code);
	st->closed = r->ended_by_agent || r->forced;
	if (!r->exit || st->closed || r->exit_code == 0) {
		return;
	}
	bool cleaned = r->exit->stream && (sig == 9 || sig == 15 || !sig) && after_end(k, r->exit);
	/* torchrun prints its table when all is over: there only the list of closed pids counts. */
	if (ff_event_field(r->exit->ev, FF_F_local_rank).n &&
		r->exit->ev->role == FF_ROLE_CONTEXT && domain_of(r->exit) != FF_DOMAIN_SCHEDULER) {
		cleaned = false;
	}
	if (cleaned) {
		st->closed = true;
		return;
	}
	st->alone = true;
	st->sig = ff_signal_fault(sig) ? sig : 0;
}

bool ff_group_has(const struct group *g, const struct ff_sighting *s)
{
	if (strcmp(g->fault, s->ev->fault)) {
		return false;
	}
	enum ff_domain d = domain_of(s);
	if (g->fingerprint == s->ev->fingerprint || d == FF_DOMAIN_SYSTEM ||
		d == FF_DOMAIN_NETWORK) {
		return true; /* one lack of something has many texts */
	}
	/* A text that says exactly what is wrong is the same fault in other numbers and names. */
	if (s->sig && !s->sig->generic && !strcmp(g->signature, s->ev->signature)) {
		return true;
	}
	return g->frame && s->ev->frame && !strcmp(g->frame, s->ev->frame);
}

static int by_rank(const void *a, const void *b)
{
	const struct ff_sighting *x = *(const struct ff_sighting *const *)a;
	const struct ff_sighting *y = *(const struct ff_sighting *const *)b;
	return x->rank < y->rank ? -1 : x->rank > y->rank;
}

static void add_to_group(struct look *k, const struct ff_sighting *s)
{
	struct group *g = NULL;
	for (size_t i = 0; i < k->ngroups && !g; i++) {
		g = ff_group_has(&k->groups[i], s) ? &k->groups[i] : NULL;
	}
	if (!g && k->ngroups >= 64) {
		g = &k->groups[63]; /* so many faults are one heap: nobody leads among them */
	}
	if (!g) {
		g = FF_ARR_ADD(k->groups, k->ngroups, k->cgroups);
		*g = (struct group){.fault = s->ev->fault,
			.signature = s->ev->signature,
			.fingerprint = s->ev->fingerprint,
			.frame = s->ev->frame};
	}
	*FF_ARR_ADD(g->own, g->n, g->cap) = s;
	keep_first(&g->first, s);
}

/* A rank that only logged the fault that others died of has it too. */
static void join_echoes(struct look *k)
{
	for (size_t i = 0; i < k->t->nranks; i++) {
		struct story *st = &k->stories[i];
		/* A table is printed when all is over: the place of its copies says nothing. */
		const struct ff_sighting *copy = st->late && st->late->ev->quoted ? st->late : NULL;
		const struct ff_sighting *s = st->own ? NULL : st->echo ? st->echo : copy;
		for (size_t j = 0; s && j < k->ngroups; j++) {
			bool after = st->report && before(st->report, s);
			if (ff_group_has(&k->groups[j], s) && !after) {
				st->own = s;
				add_to_group(k, s);
				break;
			}
		}
	}
	/* Members stand in order of rank. */
	for (size_t j = 0; j < k->ngroups; j++) {
		struct group *g = &k->groups[j];
		qsort(g->own, g->n, sizeof *g->own, by_rank);
	}
}

static void look_init(struct look *k, struct ff_timeline *t, bool shared)
{
	*k = (struct look){.t = t, .shared = shared};
	k->stories = ff_xcalloc(t->nranks + 1, sizeof *k->stories);
	for (size_t i = 0; i < t->nranks; i++) {
		k->stories[i].line = &t->ranks[i];
	}
	for (size_t i = 0; i < t->nall; i++) {
		if (in_attempt(k, &t->all[i])) {
			see(k, &t->all[i]);
		}
	}
	for (size_t i = 0; i < t->nranks; i++) {
		demote(k, &k->stories[i]);
		k->reporters += k->stories[i].report != NULL;
		see_end(k, &k->stories[i]);
		if (k->stories[i].own) {
			add_to_group(k, k->stories[i].own);
		}
	}
	join_echoes(k);
}

static void look_finish(struct look *k)
{
	for (size_t i = 0; i < k->ngroups; i++) {
		free(k->groups[i].own);
	}
	free(k->groups);
	free(k->stories);
	free(k->loose);
	free(k->words);
	free(k->hosts);
	ff_map_finish(&k->ends);
}

bool ff_look_progressed(const struct look *k)
{
	for (size_t i = 0; i < k->t->nstreams; i++) {
		const struct ff_stream *s = k->t->streams[i];
		for (size_t j = 0; j < s->nlanes; j++) {
			if (s->lanes[j]->progress.set) {
				return true;
			}
		}
	}
	return false;
}

bool ff_look_ends_told(const struct look *k)
{
	for (size_t i = 0; i < k->t->nranks; i++) {
		if (!k->t->ranks[i].exit) {
			return false;
		}
	}
	return k->t->roster_known;
}

/* It died of a signal that nobody sent for clean-up, and not of a report of its own. An abort is
 * also how a watchdog ends its process: where reports carry no rank, or of a part of the ranks
 * neither words nor ends are there, it may have been one. */
bool ff_story_signalled(const struct look *k, const struct story *st)
{
	if (!st->sig || st->report || st->own || st->torn) {
		return false;
	}
	bool words =
		st->line->own_stream || k->reporters || (ff_look_ends_told(k) && k->loose_reports);
	return st->sig != 6 || (words && !k->loose_aborts);
}

bool ff_story_open(const struct story *st, const struct ff_sighting *than)
{
	ff_usec d;
	if (st->own || st->report || st->torn || st->closed || st->line->succeeded) {
		return false;
	}
	return !than || !ff_when_diff(st->line->last_line, than->when, &d) || d <= FF_SECOND;
}

size_t ff_look_open(
	const struct look *k, const int32_t *but, size_t nbut, const struct ff_sighting *than)
{
	size_t n = 0, j = 0;
	for (size_t i = 0; i < k->t->nranks; i++) {
		const struct story *st = &k->stories[i];
		while (j < nbut && but[j] < st->line->rank) {
			j++;
		}
		bool in = j < nbut && but[j] == st->line->rank;
		n += !in && ff_story_open(st, than);
	}
	return n;
}

/* ---- findings */

void ff_finding_proof(const struct look *k, struct ff_finding *f, const struct ff_sighting *s)
{
	size_t n = f->nproof;
	if (!(n & (n - 1))) { /* full: room for 1, 2, 4, 8 ... */
		const struct ff_sighting **more =
			FF_ARENA_ARR(arena_of(k), const struct ff_sighting *, n ? n * 2 : 1);
		if (n) {
			memcpy(more, f->proof, n * sizeof *more);
		}
		f->proof = more;
	}
	f->proof[f->nproof++] = s;
}

void ff_finding_blame(const struct look *k, struct ff_finding *f, const int32_t *ranks, size_t n)
{
	f->kind = FF_VERDICT_RANK;
	f->ranks = FF_ARENA_ARR(arena_of(k), int32_t, n ? n : 1);
	memcpy(f->ranks, ranks, n * sizeof *ranks);
	f->nranks = n;
}

void ff_finding_cause(struct ff_finding *f, const struct ff_sighting *s)
{
	f->cause = s;
	f->fault = s->ev->fault;
}

void ff_finding_group(const struct look *k, struct ff_finding *f, const struct group *g)
{
	int32_t *ranks = FF_ARENA_ARR(arena_of(k), int32_t, g->n);
	f->proof = FF_ARENA_ARR(arena_of(k), const struct ff_sighting *, g->n);
	for (size_t i = 0; i < g->n; i++) {
		ranks[i] = g->own[i]->rank;
		f->proof[f->nproof++] = g->own[i];
	}
	f->kind = FF_VERDICT_RANK;
	f->ranks = ranks;
	f->nranks = g->n;
	ff_finding_cause(f, g->first);
}

const char *ff_look_ranks_text(const struct look *k, const int32_t *ranks, size_t n)
{
	struct ff_buf b = {0};
	for (size_t i = 0; i < n;) {
		size_t j = i;
		while (j + 1 < n && ranks[j + 1] == ranks[j] + 1) {
			j++;
		}
		ff_buf_addf(&b, "%s%d", i ? "," : "", (int)ranks[i]);
		if (j > i) {
			ff_buf_addf(&b, "-%d", (int)ranks[j]);
		}
		i = j + 1;
	}
	char *text = ff_arena_str(arena_of(k), ff_buf_str(&b));
	ff_buf_finish(&b);
	return text;
}

void ff_finding_need(const struct look *k, struct ff_finding *f, const char *text)
{
	size_t n = 0;
	while (f->missing && f->missing[n]) {
		n++;
	}
	const char **more = FF_ARENA_ARR(arena_of(k), const char *, n + 2);
	if (n) {
		memcpy(more, f->missing, n * sizeof *more);
	}
	more[n] = text;
	f->missing = more;
}

/* ---- undetermined */

/* How telling a symptom is, for the fault of an undetermined verdict. */
static int symptom_worth(const struct ff_sighting *s)
{
	if (s->ev->kind != FF_EVENT_FAULT || s->weight == FF_WEIGHT_NONE) {
		return 0;
	}
	if (is_outside_word(s)) {
		return 1; /* it only ended what was wrong before */
	}
	int worth = s->weight == FF_WEIGHT_FULL ? 2 : 1;
	if (s->ev->role == FF_ROLE_PRIMARY) {
		worth += is_vague(s) ? 4 : 6;
	} else if (s->ev->role == FF_ROLE_SECONDARY) {
		worth += is_vague(s) ? 0 : 2;
	} else {
		worth = 0;
	}
	return worth;
}

static const struct ff_sighting *best_symptom(const struct look *k)
{
	const struct ff_sighting *best = NULL;
	for (size_t i = 0; i < k->t->nall; i++) {
		const struct ff_sighting *s = &k->t->all[i];
		if (!in_attempt(k, s) || !symptom_worth(s)) {
			continue;
		}
		if (!best || symptom_worth(s) > symptom_worth(best) ||
			(symptom_worth(s) == symptom_worth(best) && before(s, best))) {
			best = s;
		}
	}
	return best;
}

static void candidates(const struct look *k, struct ff_finding *f)
{
	int32_t *ranks = FF_ARENA_ARR(arena_of(k), int32_t, k->t->nranks + 1);
	size_t n = 0;
	for (size_t i = 0; i < k->t->nranks; i++) {
		const struct story *st = &k->stories[i];
		if (st->own || ff_story_signalled(k, st)) {
			ranks[n++] = st->line->rank;
			if (f->nproof < 8) {
				ff_finding_proof(k, f, st->own ? st->own : st->line->exit);
			}
		}
	}
	f->candidates = ranks;
	f->ncandidates = n;
}

bool ff_rule_undetermined(struct look *k, struct ff_finding *f)
{
	const struct ff_sighting *s = best_symptom(k);
	f->kind = FF_VERDICT_UNDETERMINED;
	f->confidence = FF_NO_CONFIDENCE;
	candidates(k, f);
	if (s) {
		ff_finding_cause(f, s);
		if (!f->nproof) {
			ff_finding_proof(k, f, s);
		}
	}
	if (f->ncandidates > 1) {
		f->text = ff_arena_fmt(arena_of(k),
			"ranks %s each have a fault of their own, and their order is not known",
			ff_look_ranks_text(k, f->candidates, f->ncandidates));
		ff_finding_need(
			k, f, "stamps of one clock for these ranks would order their faults");
	} else if (k->nloose) {
		f->text =
			"a fault is printed without its rank, and no exit report tells whose it is";
		ff_finding_need(k, f,
			"output per rank, or with rank prefixes, would tell whose fault it is");
	} else if (s && s->ev->role == FF_ROLE_SECONDARY) {
		f->text = "every fault seen is a report about somebody else";
		ff_finding_need(k, f, "the output of the rank that the others lost or waited for");
	} else if (s) {
		f->text = "the faults seen do not tell which rank began";
	} else {
		f->text = "no fault was recognised";
		ff_finding_need(
			k, f, "a line that says what went wrong: each rank's stderr to its end");
	}
	return true;
}

/* ---- the table */

static const struct {
	const char *name;
	bool (*run)(struct look *k, struct ff_finding *f);
} rules[] = {
#define X(id, name) {name, ff_rule_##id},
	FF_RULES(X)
#undef X
};

const char *ff_rule_name(enum ff_rule_id id)
{
	return rules[id].name;
}

static void run_table(
	struct ff_timeline *t, uint64_t rules_off, bool shared, struct ff_finding *ret)
{
	struct look k;
	look_init(&k, t, shared);
	for (int i = 0; i < FF_RULE_COUNT; i++) {
		struct ff_finding f = {.rule = (enum ff_rule_id)i};
		bool off = (rules_off >> i) & 1 && i != FF_RULE_undetermined;
		if (!off && rules[i].run(&k, &f)) {
			*ret = f;
			break;
		}
	}
	look_finish(&k);
}

static const struct ff_sighting *first_shared(const struct ff_timeline *t)
{
	for (size_t i = 0; i < t->nall; i++) {
		if (t->all[i].shared && t->all[i].attempt == t->attempt) {
			return &t->all[i];
		}
	}
	return NULL;
}

/* What may be another job's decides nothing while the job's own evidence does, and is no more than
 * a possibility where nothing else does. */
void ff_rules_run(struct ff_timeline *t, uint64_t rules_off, struct ff_finding *ret)
{
	const struct ff_sighting *s = first_shared(t);
	struct ff_finding with = {.rule = FF_RULE_undetermined};
	run_table(t, rules_off, false, ret);
	if (!s || ret->rule != FF_RULE_undetermined) {
		return;
	}
	run_table(t, rules_off, true, &with);
	if (with.rule != FF_RULE_undetermined || !ret->cause) {
		bool decided = with.rule != FF_RULE_undetermined;
		with.confidence = decided ? FF_POSSIBLE : FF_NO_CONFIDENCE;
		ff_finding_need(&(struct look){.t = t}, &with,
			ff_arena_fmt(&t->arena, "a pid, a job id or a device in %s would tell "
				"which job it is about", s->id));
		*ret = with;
	}
}
