#include "core/rules_own.h"

#include <stdlib.h>

/* ---- one rank is in another collective than all others */

bool ff_rule_mismatch(struct look *k, struct ff_finding *f)
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
			ff_finding_proof(k, f, s);
		}
	}
	int32_t odd = a != FF_UNKNOWN ? a : b;
	bool one = (a == FF_UNKNOWN) != (b == FF_UNKNOWN);
	if (reports < 2 || !one || k->ngroups || k->nloose || !ff_timeline_rank(k->t, odd) ||
		!ff_timeline_group_is_job(k->t)) {
		return false;
	}
	ff_finding_blame(k, f, &odd, 1);
	f->cause = f->proof[0];
	f->fault = "collective-mismatch";
	f->confidence = FF_LIKELY;
	f->text = ff_arena_fmt(arena_of(k),
		"each of %zu comparisons has rank %d on one side: it is the odd one", reports,
		(int)odd);
	return true;
}

/* ---- did not arrive */

static const struct ff_collectives *calls_of(struct look *k)
{
	if (!k->calls) {
		k->calls = FF_ARENA_NEW(arena_of(k), struct ff_collectives);
		ff_collectives_init(k->calls, arena_of(k), k->t);
	}
	return k->calls;
}

/* It only saw that another rank signalled a timeout: it lives, and waited for nothing itself. */
static bool is_observer(const struct story *st)
{
	int64_t from =
		st->report ? ff_event_int(st->report->ev, FF_F_peer_rank, FF_UNKNOWN) : FF_UNKNOWN;
	return !st->waited && is_fault(st->report, "nccl-timeout") && from != FF_UNKNOWN &&
		from != st->line->rank;
}

/* Who waited, who reports a loss, who says nothing of either. */
struct roll {
	size_t waited, lost, missing;
	const struct story *who; /* the last one missing */
	bool others;             /* something else went wrong as well */
};

static struct roll call_roll(struct look *k)
{
	struct roll r = {0};
	for (size_t i = 0; i < k->t->nranks; i++) {
		const struct story *st = &k->stories[i];
		if (st->own || ff_story_signalled(k, st) || st->echo) {
			r.others = true;
		}
		if (st->waited || ff_collectives_waits(calls_of(k), st->line->rank)) {
			r.waited++;
		} else if (st->report && !is_observer(st)) {
			r.lost++;
		} else {
			r.who = st;
			r.missing++;
		}
	}
	return r;
}

static const char *stall_text(const struct look *k, const struct ff_stall *st)
{
	static const char *const texts[] = {
		[FF_STALL_IDLE] = "had completed all that it enqueued and never entered the "
				  "operation of",
		[FF_STALL_LATE] = "entered the operation after the time limit of",
		[FF_STALL_BEHIND] = "is at an earlier operation of the process group than",
		[FF_STALL_ODD] = "is in another operation, or with another size, than",
	};
	return ff_arena_fmt(arena_of(k), "rank %s %s the %zu ranks that waited",
		ff_look_ranks_text(k, st->ranks, st->nranks), texts[st->kind], st->waiting);
}

/* Those who are idle here but wait in another group are held up there. */
static void drop_waiting(struct look *k, struct ff_stall *st)
{
	size_t kept = 0;
	for (size_t i = 0; i < st->nranks; i++) {
		bool elsewhere = st->kind == FF_STALL_IDLE &&
			ff_collectives_waits(calls_of(k), st->ranks[i]);
		if (!elsewhere && ff_timeline_rank(k->t, st->ranks[i])) {
			st->ranks[kept++] = st->ranks[i];
		}
	}
	st->nranks = kept;
}

static bool same_ranks(const struct ff_stall *a, const struct ff_stall *b)
{
	return a->nranks == b->nranks && !memcmp(a->ranks, b->ranks, a->nranks * sizeof *a->ranks);
}

/* What the counters of the process groups say; none where two groups name different ranks. */
static struct ff_stall find_stall(struct look *k, bool everybody)
{
	const struct ff_collectives *c = calls_of(k);
	struct ff_stall best = {.kind = FF_STALL_NONE};
	for (size_t i = 0; i < c->ngroups; i++) {
		struct ff_stall st =
			ff_collective_judge(&c->groups[i], arena_of(k), k->t->nranks, everybody);
		drop_waiting(k, &st);
		if (st.kind == FF_STALL_NONE || (!st.nranks && st.kind != FF_STALL_ALL_IN)) {
			continue;
		}
		if (best.nranks && st.nranks && !same_ranks(&best, &st)) {
			return (struct ff_stall){.kind = FF_STALL_NONE};
		}
		if (best.kind == FF_STALL_NONE || (!best.nranks && st.nranks) ||
			(!best.nranks == !st.nranks && st.waiting > best.waiting)) {
			best = st;
		}
	}
	return best;
}

/* A desync report: "[0, 1, 2, 3] joined but didn't finish collective #39". */
static const struct ff_sighting *desync_of_all(const struct look *k)
{
	for (size_t i = 0; i < k->t->nall; i++) {
		const struct ff_sighting *s = &k->t->all[i];
		struct ff_str list = ff_event_field(s->ev, FF_F_ranks);
		int32_t few[1];
		if (in_attempt(k, s) && is_fault(s, "collective-mismatch") && list.n &&
			ff_ranks_parse(list, few, 1) == k->t->nranks) {
			return s;
		}
	}
	return NULL;
}

static bool nobody_stands_out(const struct look *k, struct ff_finding *f, const struct ff_stall *st)
{
	const struct ff_sighting *desync = desync_of_all(k);
	f->fault = f->cause->ev->fault;
	if (desync) {
		ff_finding_proof(k, f, desync);
		f->kind = FF_VERDICT_COMMON;
		f->text = ff_arena_fmt(arena_of(k),
			"the desync report lists all %zu ranks in the same %.*s: it is what they "
			"share (plug-in, fabric, configuration)",
			k->t->nranks, (int)st->op.n, st->op.p);
		return true;
	}
	f->kind = FF_VERDICT_UNDETERMINED;
	f->confidence = FF_NO_CONFIDENCE;
	f->text = ff_arena_fmt(arena_of(k),
		"all %zu ranks joined the same %.*s and nobody finished it: nobody stands out",
		k->t->nranks, (int)st->op.n, st->op.p);
	ff_finding_need(k, f,
		"kernel logs, NCCL_DEBUG=INFO or flight-recorder dumps would tell a hung GPU from "
		"a broken link");
	return true;
}

static bool blame_stall(struct look *k, struct ff_finding *f, const struct ff_stall *st)
{
	for (size_t i = 0; i < st->nproof; i++) {
		ff_finding_proof(k, f, st->proof[i]);
	}
	f->cause = st->proof[0];
	f->confidence = FF_LIKELY;
	if (st->kind == FF_STALL_ALL_IN) {
		return nobody_stands_out(k, f, st);
	}
	ff_finding_blame(k, f, st->ranks, st->nranks);
	f->fault = st->kind == FF_STALL_ODD ? "collective-mismatch" : "straggler-hang";
	f->text = stall_text(k, st);
	return true;
}

bool ff_rule_late(struct look *k, struct ff_finding *f)
{
	struct roll r = call_roll(k);
	if (r.others || k->nloose || !k->t->roster_known) {
		return false;
	}
	struct ff_stall st = find_stall(k, r.missing == 0);
	if (st.kind != FF_STALL_NONE && (st.nranks <= 1 || st.nranks * 4 <= k->t->nranks)) {
		return blame_stall(k, f, &st);
	}
	if (r.missing != 1 || !r.waited || k->loose_reports || !ff_collectives_agree(calls_of(k))) {
		return false;
	}
	const struct ff_rank_line *who = r.who->line;
	bool heard = who->stderr_to_end && who->heard != FF_UNHEARD;
	if ((!heard && !is_observer(r.who)) || who->succeeded) {
		return false;
	}
	for (size_t i = 0; i < k->t->nranks && f->nproof < 8; i++) {
		if (k->stories[i].waited) {
			ff_finding_proof(k, f, k->stories[i].waited);
		}
	}
	/* In one timeout some ranks say "timed out" and others "closed by peer" (SOURCES.md
	 * gloo-tcp). */
	ff_finding_blame(k, f, &who->rank, 1);
	f->cause = f->nproof ? f->proof[0] : NULL;
	f->fault = "straggler-hang";
	bool firm = r.waited + r.lost > 1 || who->forced;
	f->confidence = firm && r.waited >= r.lost ? FF_LIKELY : FF_POSSIBLE;
	f->text = ff_arena_fmt(arena_of(k),
		"%zu ranks waited until the time limit; rank %d was heard to its end and did not",
		r.waited + r.lost, (int)who->rank);
	return true;
}

/* ---- left with 0 */

/* srun names each task that ended badly: the hole is one that left with 0
 * (SOURCES.md slurm-messages). */
bool ff_rule_early(struct look *k, struct ff_finding *f)
{
	const struct story *who = NULL;
	size_t n = 0, reports = 0, losses = 0;
	bool by_srun = true;
	for (size_t i = 0; i < k->t->nranks; i++) {
		const struct story *st = &k->stories[i];
		if (st->own || st->sig || st->echo) {
			return false;
		}
		reports += st->report != NULL;
		losses += st->report && is_loss(st->report);
		bool badly = st->line->exit && st->line->exit_code != 0;
		by_srun = by_srun && (!badly || domain_of(st->line->exit) == FF_DOMAIN_SCHEDULER);
		if (!badly && !st->closed) {
			who = st;
			n++;
		}
	}
	if (n != 1 || !reports || !k->t->roster_known || k->nloose || who->report) {
		return false;
	}
	bool told = who->line->exit && who->line->exit_code == 0;
	if (!told &&
		(!who->line->stderr_to_end || k->t->nranks < 3 ||
			(!by_srun && losses + 1 < k->t->nranks))) {
		return false; /* torchrun's table leaves out who it ended, and may be cut */
	}
	ff_finding_blame(k, f, &who->line->rank, 1);
	f->fault = "early-exit";
	f->cause = who->line->exit;
	if (who->line->exit) {
		ff_finding_proof(k, f, who->line->exit);
	}
	for (size_t i = 0; i < k->t->nranks && f->nproof < 4; i++) {
		if (k->stories[i].report) {
			ff_finding_proof(k, f, k->stories[i].report);
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

bool ff_rule_node_gone(struct look *k, struct ff_finding *f)
{
	const char *gone = NULL;
	size_t closed = 0, waited = 0;
	for (size_t i = 0; i < k->t->nnodes; i++) {
		const char *node = k->t->nodes[i];
		size_t ranks = 0, words = 0;
		for (size_t j = 0; j < k->t->nranks; j++) {
			const struct story *st = &k->stories[j];
			/* Who was not heard at all may have been first. */
			bool unheard = st->line->heard == FF_UNHEARD && ff_story_open(st, NULL);
			if (st->own || unheard) {
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
		/* Where some of a node say nothing either, silence is no mark of a lost node. */
		if (words ? words < ranks : gone != NULL) {
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
			ff_finding_proof(k, f, st->report);
		}
	}
	ff_finding_blame(k, f, ranks, n);
	f->kind = FF_VERDICT_NODE;
	f->node = gone;
	f->fault = "node-lost";
	f->confidence = FF_LIKELY;
	f->text = "this node's ranks and agent end without a word; the others' connections closed";
	return true;
}

/* ---- a habit that broke */

/* Its last line is before anybody else's first report: what it stopped for is no consequence. */
static bool fell_silent_first(const struct look *k, const struct story *who, size_t *ret_reports)
{
	*ret_reports = 0;
	for (size_t i = 0; i < k->t->nranks; i++) {
		const struct story *st = &k->stories[i];
		if (st == who || !st->report) {
			continue;
		}
		++*ret_reports;
		if (ff_when_order(who->line->last_line, st->report->when) != FF_BEFORE) {
			return false;
		}
	}
	return true;
}

/* Silent ranks only: who is quiet had no habit, who is unheard may have said anything (law 4). */
bool ff_rule_silent(struct look *k, struct ff_finding *f)
{
	int32_t *ranks = FF_ARENA_ARR(arena_of(k), int32_t, k->t->nranks + 1);
	size_t n = 0, elsewhere = 0, here = 0, reports = 0;
	const char *node = NULL;
	bool one_node = true;
	if (k->ngroups || k->nloose || k->nwords) {
		return false;
	}
	for (size_t i = 0; i < k->t->nranks; i++) {
		const struct story *st = &k->stories[i];
		if (ff_story_signalled(k, st) || st->echo) {
			return false;
		}
		bool farewell = st->report || st->torn || st->line->succeeded || st->line->marked;
		if (st->line->heard != FF_SILENT || farewell) {
			continue;
		}
		if (!fell_silent_first(k, st, &reports)) {
			return false;
		}
		const char *at = st->line->node;
		one_node = one_node && at && (!node || !strcmp(node, at));
		node = at;
		ranks[n++] = st->line->rank;
	}
	for (size_t i = 0; i < k->t->nranks; i++) {
		const struct ff_rank_line *r = k->stories[i].line;
		bool on_it = node && r->node && !strcmp(r->node, node);
		here += on_it && r->own_stream;
		elsewhere += !on_it && r->own_stream;
	}
	bool whole = one_node && n > 1 && n == here && elsewhere;
	if (!n || !reports || (n > 1 && !whole)) {
		return false;
	}
	ff_finding_blame(k, f, ranks, n);
	for (size_t i = 0; i < k->t->nranks && f->nproof < 4; i++) {
		if (k->stories[i].report) {
			ff_finding_proof(k, f, k->stories[i].report);
		}
	}
	f->cause = f->proof[0];
	f->fault = whole ? "node-lost" : "straggler-hang";
	f->kind = whole ? FF_VERDICT_NODE : FF_VERDICT_RANK;
	f->node = whole ? node : NULL;
	f->confidence = FF_LIKELY;
	f->text = ff_arena_fmt(arena_of(k),
		"rank %s printed steadily and stopped without a word while the others went on, "
		"before the first of them reported anything",
		ff_look_ranks_text(k, ranks, n));
	return true;
}
