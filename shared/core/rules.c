#include "core/rules.h"
#include "base/arr.h"

#include <stdlib.h>

#define GRACE (30 * FF_SECOND)     /* between a scheduler's signal and its word about it */
#define HANG_MIN (600 * FF_SECOND) /* without any step before a time limit: the job hung */

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
	size_t loose_reports; /* reports of nobody knows which rank */
	size_t loose_aborts;  /* among them those after which a process aborts */
	size_t nheard;
};

/* ---- small questions */

static struct ff_arena *arena_of(const struct look *k)
{
	return &k->t->arena;
}

static bool is_fault(const struct ff_sighting *s, const char *fault)
{
	return s && !strcmp(s->ev->fault, fault);
}

static bool is_one_of(const char *word, const char *const *list)
{
	for (; *list; list++) {
		if (!strcmp(word, *list)) {
			return true;
		}
	}
	return false;
}

static enum ff_domain domain_of(const struct ff_sighting *s)
{
	return s->sig ? s->sig->domain : FF_DOMAIN_USER;
}

/* An exception that no text knows may be anything, also a report about a peer. */
static bool is_vague(const struct ff_sighting *s)
{
	static const char *const vague[] = {"python-exception", "sigabrt", "unknown", NULL};
	return is_one_of(s->ev->fault, vague);
}

/* Words of an outsider that end a job without anything being wrong in it. */
static bool is_outside_word(const struct ff_sighting *s)
{
	static const char *const outside[] = {"time-limit", "preempted", "cancelled", "sigterm",
		"sighup", "dependency-failed", "submit-rejected", "image-pull", "quota", NULL};
	return domain_of(s) == FF_DOMAIN_SCHEDULER && is_one_of(s->ev->fault, outside);
}

/* Words about a whole host. */
static bool is_host_word(const struct ff_sighting *s)
{
	static const char *const hosts[] = {"node-fail", "node-lost", "prolog-failed", NULL};
	return domain_of(s) == FF_DOMAIN_HARDWARE ||
		(domain_of(s) == FF_DOMAIN_SCHEDULER && is_one_of(s->ev->fault, hosts));
}

static bool in_attempt(const struct look *k, const struct ff_sighting *s)
{
	return s->attempt == k->t->attempt;
}

static struct story *story_of(const struct look *k, int32_t rank)
{
	const struct ff_rank_line *r = ff_timeline_rank(k->t, rank);
	return r ? &k->stories[r - k->t->ranks] : NULL;
}

static bool before(const struct ff_sighting *a, const struct ff_sighting *b)
{
	return ff_timeline_order(a, b) == FF_BEFORE;
}

/* The earlier of two; a stays where nobody can tell. */
static void keep_first(const struct ff_sighting **a, const struct ff_sighting *b)
{
	if (!*a || before(b, *a)) {
		*a = b;
	}
}

/* Reports that an operation ran into its time limit: said by those who waited. */
static bool is_wait(const struct ff_sighting *s)
{
	if (is_fault(s, "nccl-timeout")) {
		return ff_event_field(s->ev, FF_F_ran_for).n != 0;
	}
	return (is_fault(s, "straggler-hang") || is_fault(s, "store-timeout")) &&
		!ff_event_field(s->ev, FF_F_peer_rank).n;
}

/* Reports that a peer's end was noticed. */
static bool is_loss(const struct ff_sighting *s)
{
	static const char *const losses[] = {
		"gloo-peer-closed", "nccl-remote-error", "store-unreachable", "broken-pipe", NULL};
	return s->ev->role == FF_ROLE_SECONDARY && is_one_of(s->ev->fault, losses);
}

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

/* A launcher that raises its child's failure again (ChildFailedError) tells nothing new. */
/* Second words about a fault of the rank's own: all it may show of it. */
static bool is_second_word(const struct ff_sighting *s)
{
	static const char *const own[] = {
		"compile-failure", "import-error", "dataloader-worker-died", NULL};
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

static bool same_fault(const struct group *g, const struct ff_sighting *s)
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
		g = same_fault(&k->groups[i], s) ? &k->groups[i] : NULL;
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
		const struct ff_sighting *s = st->own ? NULL : st->echo;
		for (size_t j = 0; s && j < k->ngroups; j++) {
			bool after = st->report && before(st->report, s);
			if (same_fault(&k->groups[j], s) && !after) {
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

static void look_init(struct look *k, struct ff_timeline *t)
{
	*k = (struct look){.t = t};
	k->stories = ff_xcalloc(t->nranks + 1, sizeof *k->stories);
	for (size_t i = 0; i < t->nranks; i++) {
		k->stories[i].line = &t->ranks[i];
		k->nheard += t->ranks[i].own_stream;
	}
	for (size_t i = 0; i < t->nall; i++) {
		if (in_attempt(k, &t->all[i])) {
			see(k, &t->all[i]);
		}
	}
	for (size_t i = 0; i < t->nranks; i++) {
		demote(k, &k->stories[i]);
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

/* ---- findings */

static void add_proof(const struct look *k, struct ff_finding *f, const struct ff_sighting *s)
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

static void blame(const struct look *k, struct ff_finding *f, const int32_t *ranks, size_t n)
{
	f->kind = FF_VERDICT_RANK;
	f->ranks = FF_ARENA_ARR(arena_of(k), int32_t, n ? n : 1);
	memcpy(f->ranks, ranks, n * sizeof *ranks);
	f->nranks = n;
}

static void cause(struct ff_finding *f, const struct ff_sighting *s)
{
	f->cause = s;
	f->fault = s->ev->fault;
}

static void blame_group(const struct look *k, struct ff_finding *f, const struct group *g)
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
	cause(f, g->first);
}

static const char *ranks_text(const struct look *k, const int32_t *ranks, size_t n)
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

static void need(const struct look *k, struct ff_finding *f, const char *text)
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

/* ---- clean */

static bool any_success(const struct look *k)
{
	for (size_t i = 0; i < k->t->nranks; i++) {
		if (k->t->ranks[i].succeeded || k->t->ranks[i].marked) {
			return true;
		}
	}
	for (size_t i = 0; i < k->t->nstreams; i++) {
		const struct ff_stream *s = k->t->streams[i];
		for (size_t j = 0; j < s->nlanes; j++) {
			if (s->lanes[j]->success.set) {
				return true;
			}
		}
	}
	return false;
}

static bool any_progress(const struct look *k)
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

static size_t count_exits(const struct look *k)
{
	size_t n = 0;
	for (size_t i = 0; i < k->t->nranks; i++) {
		n += k->stories[i].alone;
	}
	return n;
}

static bool rule_clean(struct look *k, struct ff_finding *f)
{
	bool told = ff_facts_control(k->t->facts, "job@end") != NULL;
	bool last = k->t->attempt == k->t->nattempts - 1;
	bool faults = k->ngroups || k->nloose || count_exits(k);
	if (k->t->state != FF_RUN_ENDED || !last || (told && !ff_facts_ended_well(k->t->facts))) {
		return false;
	}
	if (!told && (faults || k->loose_reports || k->nwords || k->nhosts || !any_success(k))) {
		return false;
	}
	if (faults && !any_success(k) && (!any_progress(k) || count_exits(k))) {
		return false; /* an exit status of 0 proves nothing where no step was done */
	}
	f->kind = FF_VERDICT_CLEAN;
	f->confidence = told && !faults ? FF_CERTAIN : FF_LIKELY;
	f->text = told ? "the job ended well and no rank has a fault that it did not recover from"
		       : "no fault was seen, and the success marker was";
	return true;
}

/* ---- external */

static ff_usec last_progress(const struct look *k, struct ff_when than)
{
	ff_usec best = FF_TIME_NONE, d;
	for (size_t i = 0; i < k->t->nranks; i++) {
		struct ff_when w = k->t->ranks[i].last_progress;
		if (ff_when_diff(than, w, &d) && (best == FF_TIME_NONE || d < best)) {
			best = d;
		}
	}
	return best;
}

/* Did the job stand still long before this word? Then the word only ended a hang. */
static bool hung_before(const struct look *k, const struct ff_sighting *word)
{
	ff_usec cadence = 0, limit = HANG_MIN;
	for (size_t i = 0; i < k->t->nranks; i++) {
		cadence = k->t->ranks[i].cadence > cadence ? k->t->ranks[i].cadence : cadence;
	}
	if (cadence) {
		limit = cadence * 10 > 120 * FF_SECOND ? cadence * 10 : 120 * FF_SECOND;
	}
	ff_usec since = last_progress(k, word->when);
	return since != FF_TIME_NONE && since > limit;
}

static bool long_before(const struct ff_sighting *a, const struct ff_sighting *b)
{
	ff_usec d;
	return ff_when_diff(b->when, a->when, &d) && d > GRACE;
}

/* Is there anything wrong in the job that this word does not explain? */
static bool precedes_all(const struct look *k, const struct ff_sighting *word)
{
	for (size_t i = 0; i < k->t->nranks; i++) {
		const struct story *st = &k->stories[i];
		if (st->own && !before(word, st->own)) {
			return false;
		}
		if (st->report && long_before(st->report, word)) {
			return false;
		}
		bool bad = st->alone && st->sig != 15;
		if (bad && ff_timeline_order(st->line->exit, word) == FF_BEFORE) {
			return false;
		}
	}
	for (size_t i = 0; i < k->nloose; i++) {
		if (!before(word, k->loose[i])) {
			return false;
		}
	}
	for (size_t i = 0; i < k->nhosts; i++) {
		if (!before(word, k->hosts[i])) {
			return false;
		}
	}
	return !hung_before(k, word);
}

static const char *state_fault(const char *state)
{
	static const struct {
		const char *state, *fault;
	} words[] = {
		{"PREEMPTED", "preempted"},
		{"REQUEUED", "preempted"},
		{"TIMEOUT", "time-limit"},
		{"CANCELLED", "cancelled"},
	};
	for (size_t i = 0; state && i < sizeof words / sizeof words[0]; i++) {
		if (!strncmp(state, words[i].state, strlen(words[i].state))) {
			return words[i].fault;
		}
	}
	return NULL;
}

/* The most telling word: a reason beats a bare signal to a launcher; then the earlier one. */
static int word_worth(const struct ff_sighting *s)
{
	if (s->ev->kind != FF_EVENT_FAULT || is_fault(s, "sigterm") || is_fault(s, "sighup")) {
		return 0;
	}
	return is_fault(s, "cancelled") ? 1 : 2;
}

static const struct ff_sighting *best_word(const struct look *k)
{
	const struct ff_sighting *best = NULL;
	for (size_t i = 0; i < k->nwords; i++) {
		const struct ff_sighting *w = k->words[i];
		if (!best || word_worth(w) > word_worth(best) ||
			(word_worth(w) == word_worth(best) && before(w, best))) {
			best = w;
		}
	}
	return best;
}

static bool any_trouble(const struct look *k)
{
	if (k->ngroups || k->nloose || k->nhosts || k->loose_reports) {
		return true;
	}
	for (size_t i = 0; i < k->t->nranks; i++) {
		const struct story *st = &k->stories[i];
		if (st->report || st->echo || st->late || (st->alone && st->sig != 15)) {
			return true;
		}
	}
	return false;
}

static bool rule_external(struct look *k, struct ff_finding *f)
{
	const char *state = state_fault(ff_facts_state(k->t->facts, arena_of(k)));
	const struct ff_sighting *word = best_word(k);
	f->kind = FF_VERDICT_EXTERNAL;
	if (word && precedes_all(k, word)) {
		bool signal = word->ev->kind != FF_EVENT_FAULT;
		cause(f, word);
		f->fault = !signal ? word->ev->fault : state ? state : "sigterm";
		f->confidence = word_worth(word) == 2 && !any_trouble(k) ? FF_CERTAIN : FF_LIKELY;
		add_proof(k, f, word);
		f->text = signal ? "the launcher got a signal from outside before any rank had a "
				   "fault of its own"
				 : "a word from outside the job precedes every rank's own fault";
		return true;
	}
	if (state && !word && !any_trouble(k)) {
		f->fault = state;
		f->confidence = FF_LIKELY;
		f->text =
			"the scheduler says how the job ended, and no rank has a fault of its own";
		return true;
	}
	return false;
}

/* ---- hardware */

/* Ranks whose first own fault is this host's, or that live on it. */
static void blame_host(
	const struct look *k, struct ff_finding *f, const char *node, const struct ff_sighting *s)
{
	int32_t *ranks = FF_ARENA_ARR(arena_of(k), int32_t, k->t->nranks + 1);
	size_t n = 0;
	for (size_t i = 0; i < k->t->nranks; i++) {
		const struct ff_rank_line *r = &k->t->ranks[i];
		bool here = r->node && !strcmp(r->node, node);
		if (s->rank != FF_UNKNOWN ? r->rank == s->rank : here) {
			ranks[n++] = r->rank;
		}
	}
	blame(k, f, ranks, n);
	f->kind = FF_VERDICT_NODE;
	f->node = node;
	cause(f, s);
	add_proof(k, f, s);
}

static bool is_trusted(const struct ff_sighting *s)
{
	return s->stream && s->stream->origin.trusted &&
		(s->stream->origin.kind == FF_STREAM_KERNEL ||
			s->stream->origin.kind == FF_STREAM_SCHEDULER);
}

/* Which host a word is about; "Nodes node-a,node-c not responding" is no single one. */
static const char *host_of(const struct look *k, const struct ff_sighting *s)
{
	struct ff_str named = ff_event_field(s->ev, FF_F_node);
	if (!named.n && domain_of(s) == FF_DOMAIN_SCHEDULER) {
		return NULL;
	}
	if (!named.n) {
		named = ff_event_field(s->ev, FF_F_host);
	}
	if (!named.n) {
		return s->node;
	}
	if (ff_str_chr(named, ',', 0) >= 0 || ff_str_chr(named, '[', 0) >= 0) {
		return NULL;
	}
	return ff_arena_str(arena_of(k), named);
}

static bool rule_hardware(struct look *k, struct ff_finding *f)
{
	const struct ff_sighting *first = NULL;
	const char *node = NULL;
	for (size_t i = 0; i < k->nhosts; i++) {
		const struct ff_sighting *s = k->hosts[i];
		const char *host = host_of(k, s);
		if (!host && ff_event_field(s->ev, FF_F_node).n) {
			/* Several nodes at once: some only forwarded for the one that is gone, and
			 * "on failed node" may name one of those (SOURCES.md slurm-messages). */
			return false;
		}
		if (!host) {
			continue;
		}
		if (node && strcmp(node, host) && !before(first, s) && !before(s, first)) {
			return false; /* two hosts, and nobody knows which went first */
		}
		if (!first || before(s, first)) {
			first = s;
			node = host;
		}
	}
	if (!first) {
		return false;
	}
	for (size_t i = 0; i < k->t->nranks; i++) {
		const struct story *st = &k->stories[i];
		bool elsewhere = !st->line->node || strcmp(st->line->node, node);
		if (st->own && !is_host_word(st->own) && elsewhere && !is_vague(st->own) &&
			!before(first, st->own)) {
			return false; /* another rank's own fault may have come first */
		}
	}
	blame_host(k, f, node, first);
	f->confidence = is_trusted(first) ? FF_CERTAIN : FF_LIKELY;
	f->text = is_trusted(first) ? "the kernel or scheduler says what failed on this host"
				    : "the job's own text says that this host failed";
	return true;
}

/* ---- same faults */

/* The group whose first fault is before all other own faults; NULL where nobody can tell. */
static struct group *leading_group(const struct look *k, bool *ret_by_content)
{
	*ret_by_content = false;
	for (size_t i = 0; i < k->ngroups; i++) {
		struct group *g = &k->groups[i];
		bool leads = true, by_content = false;
		for (size_t j = 0; j < k->ngroups && leads; j++) {
			struct group *h = &k->groups[j];
			if (h == g || before(g->first, h->first)) {
				continue;
			}
			/* A text that says what is wrong beats one that may be about a peer. */
			bool clear = !is_vague(g->first) && is_vague(h->first) &&
				!before(h->first, g->first);
			leads = clear;
			by_content = by_content || clear;
		}
		if (leads) {
			*ret_by_content = by_content;
			return g;
		}
	}
	return NULL;
}

/* It died of a signal that nobody sent for clean-up, and not of a report of its own. An abort is
 * also how a watchdog ends its process: where reports carry no rank, they may be this rank's. */
static bool is_signalled(const struct look *k, const struct story *st)
{
	if (!st->sig || st->report || st->own || st->torn) {
		return false;
	}
	return st->sig != 6 || !k->loose_aborts;
}

static size_t count_signalled(const struct look *k, int32_t *ret_rank, int *ret_sig)
{
	size_t n = 0;
	for (size_t i = 0; i < k->t->nranks; i++) {
		const struct story *st = &k->stories[i];
		if (is_signalled(k, st)) {
			*ret_rank = st->line->rank;
			*ret_sig = st->sig;
			n++;
		}
	}
	return n;
}

/* All own faults are of the vague kind, and one rank died of a signal without a word: the signal
 * was first, the exceptions are its peers' (SOURCES.md real-runs). */
static bool signal_beats(const struct look *k)
{
	int32_t rank = FF_UNKNOWN;
	int sig = 0;
	for (size_t i = 0; i < k->ngroups; i++) {
		if (!is_vague(k->groups[i].first)) {
			return false;
		}
	}
	return count_signalled(k, &rank, &sig) == 1 && sig != 15;
}

static bool nobody_reports(const struct look *k)
{
	for (size_t i = 0; i < k->t->nranks; i++) {
		if (k->stories[i].report) {
			return false;
		}
	}
	return !k->loose_reports;
}

/* Heard ranks outside the group that had the chance to show the same fault and did not. */
static size_t count_without(const struct look *k, const struct group *g, bool *ret_all_torn)
{
	size_t n = 0;
	*ret_all_torn = true;
	for (size_t i = 0; i < k->t->nranks; i++) {
		const struct story *st = &k->stories[i];
		bool in = st->own && same_fault(g, st->own);
		if (in || !st->line->own_stream) {
			continue;
		}
		n++;
		bool torn = st->closed || st->torn || ff_exit_signal(st->line->exit_code) == 15;
		*ret_all_torn = *ret_all_torn && torn && !st->own && !st->report;
	}
	return n;
}

static bool rule_common(struct look *k, struct ff_finding *f)
{
	bool by_content, all_torn;
	const struct group *g = leading_group(k, &by_content);
	if (!g || g->n < 2 || signal_beats(k)) {
		return false;
	}
	size_t without = count_without(k, g, &all_torn);
	bool nearly_all = g->n * 10 >= (g->n + without) * 9;
	/* The first to fail ends the others before they come to the same line. */
	bool cut_short = all_torn && nobody_reports(k) && (g->n > without || !any_progress(k));
	if (!nearly_all && !cut_short) {
		return false;
	}
	size_t world = k->t->roster_known ? k->t->nranks : 0;
	if (world && g->n * 2 < world && !nobody_reports(k)) {
		return false;
	}
	blame_group(k, f, g);
	f->kind = FF_VERDICT_COMMON;
	f->nranks = 0;
	f->confidence = world == g->n && !by_content ? FF_CERTAIN : FF_LIKELY;
	f->text = ff_arena_fmt(arena_of(k),
		"%zu of %zu ranks heard show the same fault of their own, none after a report "
		"about a peer",
		g->n, g->n + without);
	return true;
}

static const char *node_of_group(const struct look *k, const struct group *g)
{
	const char *node = NULL;
	for (size_t i = 0; i < g->n; i++) {
		const struct ff_rank_line *r = ff_timeline_rank(k->t, g->own[i]->rank);
		const char *here = r && r->node ? r->node : g->own[i]->node;
		if (!here || (node && strcmp(node, here))) {
			return NULL;
		}
		node = here;
	}
	return node;
}

static bool rule_on_a_node(struct look *k, struct ff_finding *f)
{
	bool by_content;
	const struct group *g = leading_group(k, &by_content);
	const char *node = g ? node_of_group(k, g) : NULL;
	if (!node || g->n < 2 || signal_beats(k)) {
		return false;
	}
	size_t here = 0, elsewhere = 0;
	for (size_t i = 0; i < k->t->nranks; i++) {
		const struct ff_rank_line *r = &k->t->ranks[i];
		if (r->own_stream && r->node) {
			here += !strcmp(r->node, node);
			elsewhere += strcmp(r->node, node) != 0;
		}
	}
	if (here > g->n || !elsewhere) {
		return false;
	}
	blame_group(k, f, g);
	f->kind = FF_VERDICT_NODE;
	f->node = node;
	f->confidence = FF_LIKELY;
	f->text = "every rank heard of this node shows the same fault, and no rank of another node";
	return true;
}

static bool rule_on_some(struct look *k, struct ff_finding *f)
{
	bool by_content;
	const struct group *g = leading_group(k, &by_content);
	if (!g || g->n < 2 || signal_beats(k)) {
		return false;
	}
	blame_group(k, f, g);
	f->confidence = is_vague(g->first) ? FF_POSSIBLE : FF_LIKELY;
	f->text = ff_arena_fmt(arena_of(k),
		"ranks %s show the same fault of their own, before anybody else's",
		ranks_text(k, f->ranks, f->nranks));
	return true;
}

/* ---- own fault first */

/* Was every other rank heard after this fault, or is its end explained? */
static bool all_explained(const struct look *k, const struct ff_sighting *own)
{
	for (size_t i = 0; i < k->t->nranks; i++) {
		const struct story *st = &k->stories[i];
		const struct ff_rank_line *r = st->line;
		ff_usec d;
		if (r->rank == own->rank || st->report || st->torn || st->closed || r->succeeded ||
			r->exit) {
			continue;
		}
		if (ff_when_diff(r->last_line, own->when, &d) && d >= 0) {
			continue;
		}
		return false;
	}
	return true;
}

/* One fault without a rank, and one rank that ended by itself: its words (SOURCES.md
 * torch-excepthook: before init_process_group there is no prefix). */
static const struct ff_sighting *claim_loose(const struct look *k, int32_t *ret_rank)
{
	size_t alone = 0;
	for (size_t i = 0; i < k->nloose; i++) {
		if (k->loose[i]->ev->count > 1 ||
			k->loose[i]->ev->fingerprint != k->loose[0]->ev->fingerprint) {
			return NULL;
		}
	}
	for (size_t i = 0; i < k->t->nranks; i++) {
		const struct story *st = &k->stories[i];
		if (st->alone && st->sig != 15 && !st->report && !st->torn) {
			*ret_rank = st->line->rank;
			alone++;
		}
	}
	if (!k->nloose || alone != 1) {
		return NULL;
	}
	/* "Segmentation fault" is not the word of one that aborted. */
	const char *died = ff_signal_fault(story_of(k, *ret_rank)->sig);
	const char *said = k->loose[0]->ev->fault;
	bool other = !strncmp(said, "sig", 3) && (!died || strcmp(died, said));
	return other ? NULL : k->loose[0];
}

/* The same words without a rank, as often as there are ranks. */
static bool loose_everywhere(const struct look *k)
{
	size_t copies = 0;
	for (size_t i = 0; i < k->nloose; i++) {
		if (k->loose[i]->ev->fingerprint != k->loose[0]->ev->fingerprint) {
			return false;
		}
		copies += k->loose[i]->ev->count;
	}
	return k->t->world > 1 && copies * 10 >= (size_t)k->t->world * 9 && !k->loose_reports;
}

/* A launcher's own fault, and no rank of it that ever said or did anything. */
static const struct ff_sighting *launcher_fault(const struct look *k)
{
	if (k->nloose != 1 || k->loose_reports || any_progress(k)) {
		return NULL;
	}
	for (size_t i = 0; i < k->t->nranks; i++) {
		if (k->t->ranks[i].own_stream || k->t->ranks[i].exit) {
			return NULL;
		}
	}
	const struct ff_sighting *s = k->loose[0];
	bool launcher = s->stream && s->stream->origin.kind == FF_STREAM_AGENT;
	bool peers = !strncmp(s->ev->fault, "rendezvous", 10); /* it waited for other nodes */
	return (launcher && !peers) || is_fault(s, "config-error") ? s : NULL;
}

static bool find_loose(struct look *k, struct ff_finding *f)
{
	int32_t rank = FF_UNKNOWN;
	const struct ff_sighting *launcher = launcher_fault(k);
	if (launcher) {
		f->kind = FF_VERDICT_COMMON;
		f->confidence = FF_LIKELY;
		cause(f, launcher);
		add_proof(k, f, launcher);
		f->text = "the launcher itself failed, and no rank was started";
		return true;
	}
	if (loose_everywhere(k)) {
		f->kind = FF_VERDICT_COMMON;
		f->confidence = FF_LIKELY;
		cause(f, k->loose[0]);
		add_proof(k, f, k->loose[0]);
		f->text = "the same fault is printed as often as there are ranks, without their "
			  "names";
		return true;
	}
	const struct ff_sighting *s = claim_loose(k, &rank);
	if (!s) {
		return false;
	}
	blame(k, f, &rank, 1);
	cause(f, s);
	add_proof(k, f, s);
	f->confidence = FF_LIKELY;
	f->text = "one fault is printed without a rank, and one rank ended by itself";
	return true;
}

static bool rule_own(struct look *k, struct ff_finding *f)
{
	bool by_content;
	const struct group *g = leading_group(k, &by_content);
	if (!k->ngroups) {
		return find_loose(k, f);
	}
	if (!g || g->n != 1 || signal_beats(k)) {
		return false;
	}
	for (size_t i = 0; i < k->nloose; i++) {
		/* A fault of nobody knows whom, which may have been earlier and is not the same. */
		bool other = k->loose[i]->ev->fingerprint != g->fingerprint;
		if (other && !is_vague(k->loose[i]) && !before(g->first, k->loose[i])) {
			return false;
		}
	}
	blame_group(k, f, g);
	bool sure = k->t->world_told && !by_content && !k->nloose && !g->first->ev->quoted &&
		all_explained(k, g->first);
	f->confidence = sure ? FF_CERTAIN : FF_LIKELY;
	if (is_vague(g->first) && nobody_reports(k) && k->ngroups > 1) {
		f->confidence = FF_POSSIBLE;
	}
	f->text = ff_arena_fmt(arena_of(k),
		k->ngroups > 1 ? "rank %d's own fault is before every other rank's"
		: nobody_reports(k)
			? "rank %d has a fault of its own; no other rank shows any"
			: "rank %d is the only one with a fault of its own; the others only report",
		(int)g->first->rank);
	return true;
}

/* ---- killed */

/* Of every rank there is output, or how it ended. */
static bool all_known(const struct look *k)
{
	for (size_t i = 0; i < k->t->nranks; i++) {
		const struct ff_rank_line *r = k->stories[i].line;
		if (r->heard == FF_UNHEARD && !r->exit) {
			return false;
		}
	}
	return true;
}

/* A SIGKILL after another rank left by itself, without a report, is that one's clean-up. */
static bool is_clean_up(const struct look *k, int32_t killed)
{
	const struct ff_sighting *exit = NULL;
	for (size_t i = 0; i < k->t->nranks; i++) {
		exit = k->stories[i].line->rank == killed ? k->stories[i].line->exit : exit;
	}
	for (size_t i = 0; exit && i < k->t->nranks; i++) {
		const struct story *st = &k->stories[i];
		if (st->line->rank != killed && st->alone && !st->report && !st->torn &&
			before(st->line->exit, exit)) {
			return true;
		}
	}
	return false;
}

static bool rule_killed(struct look *k, struct ff_finding *f)
{
	int32_t *ranks = FF_ARENA_ARR(arena_of(k), int32_t, k->t->nranks + 1);
	size_t n = 0, terms = 0;
	int sig = 0;
	for (size_t i = 0; i < k->t->nranks; i++) {
		const struct story *st = &k->stories[i];
		if (!is_signalled(k, st)) {
			continue;
		}
		if (n && sig != st->sig) {
			return false;
		}
		sig = st->sig;
		terms += sig == 15 || sig == 1;
		ranks[n++] = st->line->rank;
		add_proof(k, f, st->line->exit);
	}
	if (!n || (terms && (n > 1 || k->nwords))) {
		return false;
	}
	if (n > 1 && sig == 9) {
		return false; /* several SIGKILLs are somebody's clean-up as well */
	}
	if (n == 1 && sig == 9 && is_clean_up(k, ranks[0])) {
		return false;
	}
	blame(k, f, ranks, n);
	f->cause = f->proof[0];
	f->fault = ff_signal_fault(sig);
	f->confidence = n == 1 && k->t->world_told && !terms ? FF_CERTAIN : FF_LIKELY;
	if (k->ngroups || k->nloose || !all_known(k)) {
		f->confidence = FF_LIKELY;
	}
	if (n == k->t->nranks && n > 1) {
		f->kind = FF_VERDICT_COMMON;
		f->nranks = 0;
	}
	f->text = ff_arena_fmt(arena_of(k),
		"rank %s ended by %s, which its launcher did not send, without a word about a peer",
		ranks_text(k, ranks, n), ff_signal_name(sig));
	return true;
}

/* ---- an exit without a text */

static bool rule_silent_exit(struct look *k, struct ff_finding *f)
{
	const struct story *who = NULL;
	size_t others = 0;
	for (size_t i = 0; i < k->t->nranks; i++) {
		const struct story *st = &k->stories[i];
		if (st->own || st->late) {
			return false;
		}
		bool silent = st->alone && !st->sig && !st->report && !st->torn && !st->echo;
		if (silent && who) {
			return false;
		}
		who = silent ? st : who;
		others += st->closed || st->report;
	}
	/* Where reports carry no rank, they may be this rank's. */
	if (!who || k->nloose || (k->loose_reports && others + 1 < k->t->nranks) || !others) {
		return false;
	}
	blame(k, f, &who->line->rank, 1);
	f->cause = who->line->exit;
	f->fault = who->line->stderr_to_end ? "silent-exit" : "nonzero-exit";
	add_proof(k, f, who->line->exit);
	f->confidence = FF_LIKELY;
	f->text = ff_arena_fmt(arena_of(k),
		"rank %d ended by itself with exit code %d and without a text; the others report a "
		"lost peer or were ended",
		(int)who->line->rank, (int)who->line->exit_code);
	return true;
}

/* ---- handled, quoted or late faults: they weigh nothing unless nothing else is there */

/* Every rank heard shows the same one. */
static bool echo_everywhere(const struct look *k)
{
	struct group g = {0};
	size_t n = 0, heard = 0;
	for (size_t i = 0; i < k->t->nranks; i++) {
		const struct ff_sighting *s = k->stories[i].echo;
		heard += k->stories[i].line->own_stream;
		if (!s) {
			continue;
		}
		if (!n) {
			g = (struct group){.fault = s->ev->fault,
				.signature = s->ev->signature,
				.fingerprint = s->ev->fingerprint,
				.frame = s->ev->frame};
		}
		n += same_fault(&g, s);
	}
	return n > 1 && n * 10 >= heard * 9;
}

static bool rule_handled(struct look *k, struct ff_finding *f)
{
	const struct story *who = NULL;
	size_t n = 0;
	for (size_t i = 0; i < k->t->nranks; i++) {
		const struct story *st = &k->stories[i];
		if (st->own) {
			return false;
		}
		const struct ff_sighting *s = st->echo;
		if (!s || (st->report && before(st->report, s))) {
			continue;
		}
		who = who ? who : st;
		n++;
		if (f->nproof < 64) {
			add_proof(k, f, s);
		}
	}
	if (!n || k->nloose) {
		return false;
	}
	cause(f, who->echo);
	f->confidence = FF_POSSIBLE;
	if (echo_everywhere(k)) {
		f->kind = FF_VERDICT_COMMON;
		f->text = "every rank heard shows the same fault, though not as the end of it";
		return true;
	}
	if (n != 1) {
		return false;
	}
	blame(k, f, &who->line->rank, 1);
	f->text = "the only fault of its own that anybody shows was handled, or is a copy";
	return true;
}

/* ---- accused: everybody names the same ranks */

/* "[0] is setting up ... from [0]" and the like: an accuser that is among the accused. */
static bool accuses(const struct ff_sighting *s)
{
	return s->ev->kind == FF_EVENT_FAULT && s->ev->role == FF_ROLE_SECONDARY &&
		s->weight >= FF_WEIGHT_ECHO && ff_event_field(s->ev, FF_F_missing_ranks).n &&
		s->nnamed;
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

/* All named ranks that do not wait themselves. */
static size_t collect_accused(const struct look *k, struct ff_finding *f, int32_t **ret)
{
	int32_t *ranks = NULL;
	size_t n = 0, cap = 0;
	for (size_t i = 0; i < k->t->nall && n < 1u << 20; i++) {
		const struct ff_sighting *s = &k->t->all[i];
		if (!in_attempt(k, s) || !accuses(s)) {
			continue;
		}
		if (f->nproof < 8) {
			add_proof(k, f, s);
		}
		for (size_t j = 0; j < s->nnamed; j++) {
			const struct story *st = story_of(k, s->named[j]);
			/* A rank that nothing else speaks of may not exist at all. */
			bool known = st &&
				(k->t->roster_known || st->line->own_stream || st->line->exit);
			if (known && !st->waited && s->named[j] != s->speaker) {
				*FF_ARR_ADD(ranks, n, cap) = s->named[j];
			}
		}
	}
	*ret = ranks;
	return n ? sort_ranks(ranks, n) : 0;
}

static bool rule_accused(struct look *k, struct ff_finding *f)
{
	int32_t *ranks;
	size_t n = collect_accused(k, f, &ranks);
	bool few = n && n * 2 <= k->t->nranks && !k->ngroups && !k->nloose;
	if (few) {
		blame(k, f, ranks, n);
		f->cause = f->proof[0];
		f->fault = f->cause->ev->fault;
		f->confidence = n == 1 ? FF_LIKELY : FF_POSSIBLE;
		f->text = ff_arena_fmt(arena_of(k),
			"rank %s is named as the one that others waited for, and waits for nobody",
			ranks_text(k, ranks, n));
	}
	free(ranks);
	return few;
}

/* ---- one rank is in another collective than all others */

static bool rule_mismatch(struct look *k, struct ff_finding *f)
{
	size_t reports = 0;
	int32_t a = FF_UNKNOWN, b = FF_UNKNOWN; /* still in every pair so far */
	for (size_t i = 0; i < k->t->nall; i++) {
		const struct ff_sighting *s = &k->t->all[i];
		int32_t x = (int32_t)ff_event_int(s->ev, FF_F_rank_a, FF_UNKNOWN);
		int32_t y = (int32_t)ff_event_int(s->ev, FF_F_rank_b, FF_UNKNOWN);
		if (!in_attempt(k, s) || !is_fault(s, "collective-mismatch") || x < 0 || y < 0 ||
			x == y) {
			continue;
		}
		if (!reports++) {
			a = x;
			b = y;
		} else {
			a = a == x || a == y ? a : FF_UNKNOWN;
			b = b == x || b == y ? b : FF_UNKNOWN;
		}
		if (f->nproof < 8) {
			add_proof(k, f, s);
		}
	}
	int32_t odd = a != FF_UNKNOWN ? a : b;
	bool one = (a == FF_UNKNOWN) != (b == FF_UNKNOWN);
	if (reports < 2 || !one || k->ngroups || k->nloose || !ff_timeline_rank(k->t, odd)) {
		return false;
	}
	blame(k, f, &odd, 1);
	f->cause = f->proof[0];
	f->fault = "collective-mismatch";
	f->confidence = FF_LIKELY;
	f->text = ff_arena_fmt(arena_of(k),
		"each of %zu comparisons has rank %d on one side: it is the odd one", reports,
		(int)odd);
	return true;
}

/* ---- did not arrive */

static bool rule_late(struct look *k, struct ff_finding *f)
{
	const struct story *who = NULL;
	size_t waited = 0, n = 0, closed_reports = 0;
	for (size_t i = 0; i < k->t->nranks; i++) {
		const struct story *st = &k->stories[i];
		if (st->own || st->sig || st->echo) {
			return false;
		}
		if (st->waited) {
			waited++;
			if (f->nproof < 8) {
				add_proof(k, f, st->waited);
			}
			continue;
		}
		if (st->report) {
			closed_reports++;
			continue;
		}
		who = st;
		n++;
	}
	if (n != 1 || !waited || !k->t->roster_known || k->nloose || k->loose_reports) {
		return false;
	}
	if (!who->line->stderr_to_end || who->line->heard == FF_UNHEARD || who->line->succeeded) {
		return false;
	}
	/* In one timeout some ranks say "timed out" and others "closed by peer" (SOURCES.md
	 * gloo-tcp). */
	blame(k, f, &who->line->rank, 1);
	f->cause = f->proof[0];
	f->fault = "straggler-hang";
	bool firm = waited + closed_reports > 1 || who->line->forced;
	f->confidence = firm && waited >= closed_reports ? FF_LIKELY : FF_POSSIBLE;
	f->text = ff_arena_fmt(arena_of(k),
		"%zu ranks waited until the time limit; rank %d was heard to its end and did not",
		waited + closed_reports, (int)who->line->rank);
	return true;
}

/* ---- left with 0 */

/* srun names each task that ended badly: the hole is one that left with 0
 * (SOURCES.md slurm-messages). */
static bool rule_early(struct look *k, struct ff_finding *f)
{
	const struct story *who = NULL;
	size_t n = 0, reports = 0;
	for (size_t i = 0; i < k->t->nranks; i++) {
		const struct story *st = &k->stories[i];
		if (st->own || st->sig || st->echo) {
			return false;
		}
		reports += st->report != NULL;
		bool badly = st->line->exit && st->line->exit_code != 0;
		if (!badly && !st->closed) {
			who = st;
			n++;
		}
	}
	if (n != 1 || !reports || !k->t->roster_known || k->nloose || who->report) {
		return false;
	}
	bool told = who->line->exit && who->line->exit_code == 0;
	if (!told && (!who->line->stderr_to_end || k->t->nranks < 3)) {
		return false;
	}
	blame(k, f, &who->line->rank, 1);
	f->fault = "early-exit";
	f->cause = who->line->exit;
	if (who->line->exit) {
		add_proof(k, f, who->line->exit);
	}
	for (size_t i = 0; i < k->t->nranks && f->nproof < 4; i++) {
		if (k->stories[i].report) {
			add_proof(k, f, k->stories[i].report);
		}
	}
	f->confidence = FF_LIKELY;
	f->text = ff_arena_fmt(arena_of(k),
		"rank %d is the only one that did not end with an error, and the others lost a "
		"peer",
		(int)who->line->rank);
	return true;
}

/* ---- a whole node without farewell */

static bool rule_node_gone(struct look *k, struct ff_finding *f)
{
	const char *gone = NULL;
	size_t closed = 0, waited = 0;
	for (size_t i = 0; i < k->t->nnodes; i++) {
		const char *node = k->t->nodes[i];
		size_t ranks = 0, words = 0;
		for (size_t j = 0; j < k->t->nranks; j++) {
			const struct story *st = &k->stories[j];
			if (st->own) {
				return false;
			}
			if (!st->line->node || strcmp(st->line->node, node)) {
				continue;
			}
			ranks += st->line->own_stream;
			words += st->report || st->torn || st->closed || st->line->exit ||
				st->line->succeeded;
			waited += st->waited && st->waited == st->report;
			closed += st->report && is_loss(st->report);
		}
		if (!ranks) {
			continue;
		}
		if (!words && gone) {
			return false;
		}
		gone = words ? gone : node;
	}
	for (size_t i = 0; gone && i < k->t->nall; i++) {
		const struct ff_sighting *s = &k->t->all[i];
		bool here = in_attempt(k, s) && s->node && !strcmp(s->node, gone);
		bool word = s->weight >= FF_WEIGHT_ECHO || s->ev->kind == FF_EVENT_EXIT ||
			ff_sighting_is(s, "agent-closing") || ff_sighting_is(s, "agent-signalled");
		bool own = s->stream && s->stream->origin.kind != FF_STREAM_SCHEDULER;
		if (here && word && own) {
			return false;
		}
	}
	if (!gone || !closed || waited || k->nloose || k->t->nnodes < 2) {
		return false;
	}
	int32_t *ranks = FF_ARENA_ARR(arena_of(k), int32_t, k->t->nranks);
	size_t n = 0;
	for (size_t i = 0; i < k->t->nranks; i++) {
		const struct story *st = &k->stories[i];
		if (st->line->node && !strcmp(st->line->node, gone)) {
			ranks[n++] = st->line->rank;
		} else if (st->report && f->nproof < 4) {
			add_proof(k, f, st->report);
		}
	}
	blame(k, f, ranks, n);
	f->kind = FF_VERDICT_NODE;
	f->node = gone;
	f->fault = "node-lost";
	f->confidence = FF_LIKELY;
	f->text = "this node's ranks and agent end without a word; the others' connections closed";
	return true;
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
		if (st->own || is_signalled(k, st)) {
			ranks[n++] = st->line->rank;
			if (f->nproof < 8) {
				add_proof(k, f, st->own ? st->own : st->line->exit);
			}
		}
	}
	f->candidates = ranks;
	f->ncandidates = n;
}

static bool rule_undetermined(struct look *k, struct ff_finding *f)
{
	const struct ff_sighting *s = best_symptom(k);
	f->kind = FF_VERDICT_UNDETERMINED;
	f->confidence = FF_NO_CONFIDENCE;
	candidates(k, f);
	if (s) {
		cause(f, s);
		if (!f->nproof) {
			add_proof(k, f, s);
		}
	}
	if (f->ncandidates > 1) {
		f->text = ff_arena_fmt(arena_of(k),
			"ranks %s each have a fault of their own, and their order is not known",
			ranks_text(k, f->candidates, f->ncandidates));
		need(k, f, "stamps of one clock for these ranks would order their faults");
	} else if (k->nloose) {
		f->text =
			"a fault is printed without its rank, and no exit report tells whose it is";
		need(k, f, "output per rank, or with rank prefixes, would tell whose fault it is");
	} else if (s && s->ev->role == FF_ROLE_SECONDARY) {
		f->text = "every fault seen is a report about somebody else";
		need(k, f, "the output of the rank that the others lost or waited for");
	} else if (s) {
		f->text = "the faults seen do not tell which rank began";
	} else {
		f->text = "no fault was recognised";
		need(k, f, "a line that says what went wrong: each rank's stderr to its end");
	}
	return true;
}

/* ---- the table */

static const struct {
	const char *name;
	bool (*run)(struct look *k, struct ff_finding *f);
} rules[] = {
#define X(id, name) {name, rule_##id},
	FF_RULES(X)
#undef X
};

const char *ff_rule_name(enum ff_rule_id id)
{
	return rules[id].name;
}

void ff_rules_run(struct ff_timeline *t, uint64_t rules_off, struct ff_finding *ret)
{
	struct look k;
	look_init(&k, t);
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
