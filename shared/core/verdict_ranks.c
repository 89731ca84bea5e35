#include "base/mem.h"
#include "core/verdict_own.h"

#include <stdlib.h>

#define PICKS_SEEN 256 /* agents whose pick is looked at */
#define WHY_NOT_MOST 16
#define SHARED_MOST 4
#define ACCUSED_LEAST 2 /* reports that make somebody look guilty */
#define LOUD_LEAST 3    /* fault lines that make somebody the loudest */

/* The fault that shows best what became of a rank that started nothing. */
static const struct ff_sighting *telling_fault(const struct ff_rank_line *r)
{
	const struct ff_sighting *best = NULL;
	int worth = 0;
	for (size_t i = 0; i < r->nfaults; i++) {
		const struct ff_sighting *s = r->faults[i];
		int w = s->weight == FF_WEIGHT_FULL ? 4 : s->weight == FF_WEIGHT_ECHO ? 2 : 0;
		w += w && s->ev->role == FF_ROLE_SECONDARY;
		w -= s->ev->role == FF_ROLE_TEARDOWN ? 2 : 0;
		if (w > worth) {
			best = s;
			worth = w;
		}
	}
	return best;
}

static enum ff_status status_of(
	const struct maker *m, const struct ff_rank_line *r, const struct ff_sighting *fault)
{
	if (m->starts[r - m->t->ranks]) {
		return FF_STATUS_INITIATING;
	}
	bool torn = r->ended_by_agent || ff_exit_signal(r->exit_code) == 15;
	if (fault && fault->ev->role != FF_ROLE_TEARDOWN) {
		return FF_STATUS_COLLATERAL;
	}
	if (fault || torn) {
		return FF_STATUS_TORN_DOWN;
	}
	if (r->succeeded || m->v->kind == FF_VERDICT_CLEAN) {
		return r->heard == FF_UNHEARD && !r->succeeded && m->v->kind != FF_VERDICT_CLEAN
			? FF_STATUS_MISSING
			: FF_STATUS_CLEAN;
	}
	if (r->exit && r->exit_code != 0) {
		return FF_STATUS_COLLATERAL;
	}
	switch (r->heard) {
	case FF_UNHEARD: return FF_STATUS_MISSING;
	case FF_SILENT: return FF_STATUS_SILENT;
	case FF_QUIET:
	case FF_HEARD: return FF_STATUS_QUIET;
	}
	return FF_STATUS_UNKNOWN;
}

/* ---- why a rank that looks guilty is not the one */

static bool is_one_of(const char *word, const char *const *list)
{
	for (; *list; list++) {
		if (!strcmp(word, *list)) {
			return true;
		}
	}
	return false;
}

/* What a report about somebody else says, as the reason why its speaker did not start it. */
static const char *report_text(const struct maker *m, const struct ff_sighting *s)
{
	static const char *const closed[] = {
		"gloo-peer-closed", "nccl-remote-error", "broken-pipe", NULL};
	static const char *const store[] = {"store-unreachable", "rendezvous-closed", NULL};
	static const char *const waited[] = {"nccl-timeout", "straggler-hang", "store-timeout",
		"rendezvous-timeout", "nccl-bootstrap", NULL};
	const char *fault = s->ev->fault;
	if (is_one_of(fault, closed)) {
		return "it only says that its peer closed the connection";
	}
	if (is_one_of(fault, store)) {
		return "it only says that the store's host is gone";
	}
	if (is_one_of(fault, waited)) {
		return "it only says that it waited for others until the time limit";
	}
	return ff_arena_fmt(arena_of(m), "its only fault (%s) reports somebody else's", fault);
}

static const char *end_text(const struct maker *m, const struct ff_rank_line *r)
{
	int sig = ff_exit_signal(r->exit_code);
	const char *name = sig ? ff_signal_name(sig) : NULL;
	if (r->forced) {
		return "its launcher killed it, because it did not end on SIGTERM";
	}
	if (r->ended_by_agent || sig == 15) {
		return r->ended_by_agent ? "SIGTERM from its launcher ended it"
					 : "SIGTERM ended it: somebody told it to end";
	}
	if (name) {
		return ff_arena_fmt(arena_of(m), "%s ended it in the clean-up", name);
	}
	if (r->exit && r->exit_code > 0) {
		return ff_arena_fmt(arena_of(m),
			"it left with exit code %d and shows no fault of its own",
			(int)r->exit_code);
	}
	return "it shows no fault of its own";
}

/* Why this fault of a rank that started nothing did not start it. */
static const char *own_text(
	const struct maker *m, const struct ff_sighting *s, const struct ff_sighting *zero)
{
	ff_usec d;
	if (m->v->kind == FF_VERDICT_COMMON) {
		return "the others show the same fault";
	}
	if (s->ev->handled) {
		return "its own fault was handled, and it went on";
	}
	if (s->ev->quoted) {
		return "what it prints is a copy of another process's text";
	}
	if (zero && ff_timeline_order(zero, s) == FF_BEFORE) {
		if (ff_when_diff(s->when, zero->when, &d) && d > 0) {
			return ff_arena_fmt(arena_of(m), "its own fault (%s) came %s later",
				s->ev->fault, ff_verdict_span(m, d));
		}
		return ff_arena_fmt(arena_of(m), "its own fault (%s) came later", s->ev->fault);
	}
	return ff_arena_fmt(
		arena_of(m), "its fault (%s) may be a report about a peer", s->ev->fault);
}

static const char *innocence(const struct maker *m, const struct ff_rank_line *r,
	const struct ff_sighting *s, const struct ff_sighting *zero)
{
	if (s && s->ev->role == FF_ROLE_SECONDARY) {
		return report_text(m, s);
	}
	if (s && s->ev->role == FF_ROLE_PRIMARY) {
		return own_text(m, s, zero);
	}
	return end_text(m, r);
}

/* The event that the others' delays are counted from: the earliest proof. */
static const struct ff_sighting *zero_of(const struct maker *m)
{
	const struct ff_sighting *zero = NULL;
	for (size_t i = 0; i < m->f.nproof; i++) {
		const struct ff_sighting *s = m->f.proof[i];
		if (s->ev->kind == FF_EVENT_FAULT && s->ev->role == FF_ROLE_PRIMARY &&
			(!zero || ff_timeline_order(s, zero) == FF_BEFORE)) {
			zero = s;
		}
	}
	return zero;
}

static const char *because_of(const struct maker *m, const struct ff_rank_line *r,
	enum ff_status status, const struct ff_sighting *s, const struct ff_sighting *zero)
{
	switch (status) {
	case FF_STATUS_COLLATERAL: return innocence(m, r, s, zero);
	case FF_STATUS_TORN_DOWN:
		if (r->ended_by_agent || ff_exit_signal(r->exit_code) == 15) {
			return end_text(m, r);
		}
		return "was told that the job ends";
	case FF_STATUS_SILENT: return "its output stopped, against its habit, without a farewell";
	case FF_STATUS_QUIET:
		return r->stderr_to_end ? "was heard to its end and reports nothing"
					: "was heard in part and reports nothing";
	case FF_STATUS_MISSING:
		return r->node ? "no output of it was given" : "nothing is known of it";
	case FF_STATUS_INITIATING:
	case FF_STATUS_CLEAN:
	case FF_STATUS_SPARE:
	case FF_STATUS_UNKNOWN: return NULL;
	}
	return NULL;
}

void ff_verdict_fill_ranks(struct maker *m)
{
	struct ff_verdict *v = m->v;
	bool names = v->kind == FF_VERDICT_RANK || v->kind == FF_VERDICT_NODE;
	const struct ff_sighting *zero = zero_of(m);
	v->ranks = FF_ARENA_ARR(arena_of(m), struct ff_rank_status, m->t->nranks + 1);
	v->collateral = FF_ARENA_ARR(arena_of(m), struct ff_collateral, m->t->nranks + 1);
	for (size_t i = 0; i < m->t->nranks; i++) {
		const struct ff_rank_line *r = &m->t->ranks[i];
		const struct ff_sighting *s = telling_fault(r);
		enum ff_status status = status_of(m, r, s);
		v->ranks[v->nranks++] = (struct ff_rank_status){r->rank, status};
		if (!names || status == FF_STATUS_INITIATING || status == FF_STATUS_CLEAN) {
			continue;
		}
		const struct ff_sighting *shown = s ? s : r->exit;
		struct ff_collateral c = {
			.rank = r->rank,
			.status = status,
			.fault = s ? s->ev->fault : NULL,
			.event = ff_verdict_use(m, shown),
			.because = because_of(m, r, status, s, zero),
		};
		c.has_after = zero && s && ff_when_diff(s->when, zero->when, &c.after_us);
		v->collateral[v->ncollateral++] = c;
	}
}

/* ---- why not */

static bool in_attempt(const struct maker *m, const struct ff_sighting *s)
{
	return s->attempt == m->t->attempt;
}

static bool initiates(const struct maker *m, int32_t rank)
{
	const struct ff_rank_line *r = ff_timeline_rank(m->t, rank);
	return r && m->starts[r - m->t->ranks] && m->v->kind != FF_VERDICT_COMMON;
}

/* why: why it is not the one for all that; NULL: what its lines say. */
static void add_why_not(struct maker *m, int32_t rank, const char *looks, const char *why)
{
	struct ff_verdict *v = m->v;
	const struct ff_rank_line *r = ff_timeline_rank(m->t, rank);
	for (size_t i = 0; i < v->nwhy_not; i++) {
		if (v->why_not[i].rank == rank) {
			return; /* what makes it look guilty most was said */
		}
	}
	if (!r || initiates(m, rank) || v->nwhy_not >= WHY_NOT_MOST) {
		return;
	}
	v->why_not[v->nwhy_not++] = (struct ff_why_not){rank,
		ff_arena_fmt(arena_of(m), "%s; %s", looks,
			why ? why : innocence(m, r, telling_fault(r), zero_of(m)))};
}

/* torchrun's own pick: its "failed (exitcode: ...) local_rank: ..." line. */
static bool is_pick(const struct maker *m, const struct ff_sighting *s)
{
	return in_attempt(m, s) && s->ev->kind == FF_EVENT_EXIT && s->stream &&
		s->rank != FF_UNKNOWN && ff_event_field(s->ev, FF_F_local_rank).n &&
		!ff_event_field(s->ev, FF_F_rank).n;
}

/* One of those who started it is on the agent's node. */
static bool starts_here(const struct maker *m, const struct ff_sighting *pick)
{
	for (size_t i = 0; i < m->v->ninitiating; i++) {
		const char *of = m->v->initiating[i].node;
		if (m->t->nnodes < 2 || (of && pick->node && !strcmp(of, pick->node))) {
			return true;
		}
	}
	return false;
}

/* Why it could name another one: it compares whole seconds, or sees its own node alone. */
static const char *pick_text(const struct maker *m, const struct ff_sighting *s)
{
	const char *node = m->t->nnodes > 1 && s->node ? s->node : NULL;
	const char *why = starts_here(m, s) ? ": whole seconds, a tie goes to the lowest local rank"
		: node && m->v->ninitiating ? ", which sees that node alone"
					    : "";
	return ff_arena_fmt(arena_of(m), "%s%s%s names it%s", m->launcher, node ? " on " : "",
		node ? ff_verdict_line(m, node) : "", why);
}

/* Each agent names one of its node: the first that it saw end, by whole seconds; of several that
 * end within one, the lowest local rank (SOURCES.md torch-elastic-errors). Shown are the pick on
 * the node where it began, and the first of the others. */
static void add_picks(struct maker *m)
{
	const struct ff_stream *seen[PICKS_SEEN];
	size_t n = 0;
	bool other = false;
	for (size_t i = 0; i < m->t->nall && n < PICKS_SEEN; i++) {
		const struct ff_sighting *s = &m->t->all[i];
		bool repeated = false;
		for (size_t j = 0; j < n; j++) {
			repeated = repeated || seen[j] == s->stream;
		}
		if (repeated || !is_pick(m, s)) {
			continue;
		}
		seen[n++] = s->stream;
		bool here = starts_here(m, s);
		if (here || !other) {
			add_why_not(m, s->rank, pick_text(m, s), NULL);
		}
		other = other || !here;
	}
}

static bool is_timeout(const struct ff_sighting *s)
{
	return s->ev->role == FF_ROLE_SECONDARY && ff_event_field(s->ev, FF_F_ran_for).n;
}

/* The earliest fault of a rank that started nothing, before every other by comparable time; where
 * nobody can tell which is first, nobody looks guilty for it. */
static const struct ff_sighting *earliest(
	const struct maker *m, bool (*is)(const struct ff_sighting *))
{
	const struct ff_sighting *first = NULL;
	for (size_t i = 0; i < m->t->nall; i++) {
		const struct ff_sighting *s = &m->t->all[i];
		bool counts = in_attempt(m, s) && s->ev->kind == FF_EVENT_FAULT && is(s) &&
			s->rank != FF_UNKNOWN && s->weight >= FF_WEIGHT_ECHO;
		if (counts && (!first || ff_timeline_order(s, first) == FF_BEFORE)) {
			first = s;
		}
	}
	return first;
}

static bool is_any(const struct ff_sighting *s)
{
	return s->ev->role == FF_ROLE_PRIMARY || s->ev->role == FF_ROLE_SECONDARY;
}

/* Its fault is before that of those who started it. */
static void add_first_error(struct maker *m)
{
	const struct ff_sighting *first = earliest(m, is_any), *zero = zero_of(m);
	if (first && zero && ff_timeline_order(first, zero) == FF_BEFORE) {
		add_why_not(m, first->rank, "its error is the first in time", NULL);
	}
}

static void add_first_waiter(struct maker *m)
{
	const struct ff_sighting *first = earliest(m, is_timeout);
	if (first) {
		add_why_not(m, first->rank, "timed out first",
			"so it entered first and had waited longest: healthy");
	}
}

static size_t count_lines(const struct ff_rank_line *r)
{
	size_t n = 0;
	for (size_t i = 0; i < r->nfaults; i++) {
		n += r->faults[i]->ev->role != FF_ROLE_TEARDOWN ? r->faults[i]->ev->count : 0;
	}
	return n;
}

/* More fault lines than anybody else. */
static void add_loudest(struct maker *m)
{
	const struct ff_rank_line *loudest = NULL;
	size_t most = 0, second = 0;
	for (size_t i = 0; i < m->t->nranks; i++) {
		size_t n = count_lines(&m->t->ranks[i]);
		if (n > most) {
			second = most;
			most = n;
			loudest = &m->t->ranks[i];
		} else if (n > second) {
			second = n;
		}
	}
	if (loudest && most >= LOUD_LEAST && most > second) {
		add_why_not(m, loudest->rank,
			ff_arena_fmt(arena_of(m), "is the loudest, with %zu fault lines", most),
			NULL);
	}
}

/* Whom peers' reports name, in a list or alone, more often than anybody else. */
static void add_accused(struct maker *m)
{
	size_t *votes = ff_xcalloc(m->t->nranks + 1, sizeof *votes);
	size_t most = m->t->nranks; /* nobody: its votes are none */
	for (size_t i = 0; i < m->t->nall; i++) {
		const struct ff_sighting *s = &m->t->all[i];
		bool report = in_attempt(m, s) && s->ev->role == FF_ROLE_SECONDARY;
		int64_t peer = ff_event_int(s->ev, FF_F_peer_rank, FF_UNKNOWN);
		int32_t one = peer >= 0 && peer <= INT32_MAX ? (int32_t)peer : FF_UNKNOWN;
		bool list = s->nnamed && ff_event_field(s->ev, FF_F_missing_ranks).n;
		for (size_t j = 0; report && j < (list ? s->nnamed : 1); j++) {
			const struct ff_rank_line *r =
				ff_timeline_rank(m->t, list ? s->named[j] : one);
			if (!r || r->rank == s->speaker) {
				continue;
			}
			size_t at = (size_t)(r - m->t->ranks);
			most = ++votes[at] > votes[most] ? at : most;
		}
	}
	if (votes[most] >= ACCUSED_LEAST) {
		const char *text =
			ff_arena_fmt(arena_of(m), "%zu reports of its peers name it", votes[most]);
		add_why_not(m, m->t->ranks[most].rank, text, NULL);
	}
	free(votes);
}

static int by_rank(const void *a, const void *b)
{
	const struct ff_why_not *x = a, *y = b;
	if (x->rank == y->rank) {
		return strcmp(x->text, y->text);
	}
	if (x->rank == FF_UNKNOWN || y->rank == FF_UNKNOWN) {
		return x->rank == FF_UNKNOWN ? 1 : -1;
	}
	return x->rank < y->rank ? -1 : 1;
}

/* Lines of a node's own log that may be about another job there: shown, and said to be so. */
static void add_shared(struct maker *m)
{
	struct ff_verdict *v = m->v;
	for (size_t i = 0, n = 0; i < m->t->nall && n < SHARED_MOST; i++) {
		const struct ff_sighting *s = &m->t->all[i];
		bool fault = s->ev->kind == FF_EVENT_FAULT && s->ev->role != FF_ROLE_CONTEXT;
		if (!s->shared || !in_attempt(m, s) || !fault || v->nwhy_not >= WHY_NOT_MOST) {
			continue;
		}
		n++;
		v->why_not[v->nwhy_not++] = (struct ff_why_not){FF_UNKNOWN,
			ff_arena_fmt(arena_of(m), "not attributed: %s (%s) fits %lld jobs on %s",
				s->ev->fault, ff_verdict_line(m, ff_verdict_use(m, s)),
				(long long)ff_event_int(s->ev, FF_F_jobs, 0),
				s->node ? ff_verdict_line(m, s->node) : "its node")};
	}
}

void ff_verdict_fill_why_not(struct maker *m)
{
	struct ff_verdict *v = m->v;
	v->why_not = FF_ARENA_ARR(arena_of(m), struct ff_why_not, WHY_NOT_MOST);
	if (v->kind == FF_VERDICT_CLEAN || v->kind == FF_VERDICT_EXTERNAL) {
		return;
	}
	add_picks(m);
	if (v->kind != FF_VERDICT_COMMON) {
		add_first_waiter(m);
		add_first_error(m);
		add_loudest(m);
		add_accused(m);
	}
	add_shared(m);
	qsort(v->why_not, v->nwhy_not, sizeof *v->why_not, by_rank);
}
