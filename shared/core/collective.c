#include "core/collective.h"
#include "base/arr.h"

#include <stdlib.h>

#define PROOF_MAX 8
#define POLL FF_SECOND /* how often a watchdog looks (SOURCES.md process-group-nccl) */

/* ---- reading reports */

/* Is there only one default group, under several spellings: "0(default_pg)", "0 (default_pg)". */
static struct ff_str plain_name(struct ff_str pg)
{
	return ff_str_find(pg, FF_STR("default_pg"), 0) >= 0 ? FF_STR("0") : pg;
}

static struct ff_when entry_time(const struct ff_sighting *s)
{
	ff_usec ran = ff_event_int(s->ev, FF_F_ran_for, 0);
	struct ff_when w = s->when;
	if (!w.known || ran <= 0 || ran > FF_TIME_LAST / 1000) {
		return FF_WHEN_NONE;
	}
	w.us -= ran * 1000;
	w.lo -= ran * 1000 + POLL;
	w.hi -= ran * 1000;
	return w;
}

/* A report of its speaker about one of its groups; false: it is none. */
static bool read_work(const struct ff_sighting *s, struct ff_work *ret)
{
	const struct ff_event *e = s->ev;
	bool status = ff_sighting_is(s, "pg-status");
	bool dump = ff_event_field(e, FF_F_enqueued).n && !status;
	bool timed_out = ff_event_field(e, FF_F_ran_for).n || ff_event_field(e, FF_F_timeout).n;
	int32_t rank = s->speaker != FF_UNKNOWN ? s->speaker : s->rank;
	if (rank == FF_UNKNOWN || (!status && !ff_sighting_is(s, "nccl-timeout")) ||
		(!status && !dump && !timed_out)) {
		return false;
	}
	*ret = (struct ff_work){
		.rank = rank,
		/* The counters of a dump signal are the default group's. */
		.group = dump ? FF_STR("0") : plain_name(ff_event_field(e, FF_F_pg)),
		.s = s,
		.timed_out = timed_out || status,
		.seq = ff_event_int(e, FF_F_seq, FF_SEQ_NONE),
		.op = ff_event_field(e, FF_F_op),
		.numel = ff_event_int(e, FF_F_numel_in, FF_SEQ_NONE),
		.enqueued = ff_event_int(e, FF_F_enqueued, FF_SEQ_NONE),
		.completed = ff_event_int(e, FF_F_completed, FF_SEQ_NONE),
		.entered = timed_out ? entry_time(s) : FF_WHEN_NONE,
	};
	return true;
}

static int cmp_str(struct ff_str a, struct ff_str b)
{
	size_t n = a.n < b.n ? a.n : b.n;
	int d = n ? memcmp(a.p, b.p, n) : 0;
	return d ? d : (a.n > b.n) - (a.n < b.n);
}

/* By rank and number, those that name their group last. */
static int by_seq(const void *pa, const void *pb)
{
	const struct ff_work *a = pa, *b = pb;
	if (a->rank != b->rank) {
		return a->rank < b->rank ? -1 : 1;
	}
	if (a->seq != b->seq) {
		return a->seq < b->seq ? -1 : 1;
	}
	int d = cmp_str(a->group, b->group);
	return d ? d : (a->s > b->s) - (a->s < b->s);
}

/* By group and rank, then as the timeline orders. */
static int by_group(const void *pa, const void *pb)
{
	const struct ff_work *a = pa, *b = pb;
	int d = cmp_str(a->group, b->group);
	if (d) {
		return d;
	}
	if (a->rank != b->rank) {
		return a->rank < b->rank ? -1 : 1;
	}
	return (a->s > b->s) - (a->s < b->s);
}

/* A report without a group is of the one whose counters this rank gave for the same operation. */
static void adopt_names(struct ff_work *works, size_t n)
{
	for (size_t i = 0; i < n;) {
		size_t end = i + 1;
		while (end < n && works[end].rank == works[i].rank &&
			works[end].seq == works[i].seq) {
			end++;
		}
		/* Named ones stand last: the first and last name are equal if there is one only. */
		struct ff_str name = works[end - 1].group;
		size_t named = i;
		while (named < end && !works[named].group.n) {
			named++;
		}
		bool one = named < end && !cmp_str(works[named].group, name) &&
			works[i].seq != FF_SEQ_NONE;
		for (size_t j = i; one && j < named; j++) {
			works[j].group = name;
		}
		i = end;
	}
}

/* Several reports of one rank about one group become one; false: they speak of two operations. */
static bool join(struct ff_work *into, const struct ff_work *w)
{
	bool same = into->seq == FF_SEQ_NONE || w->seq == FF_SEQ_NONE || into->seq == w->seq;
	into->timed_out = into->timed_out || w->timed_out;
	into->enqueued = into->enqueued != FF_SEQ_NONE ? into->enqueued : w->enqueued;
	into->completed = into->completed != FF_SEQ_NONE ? into->completed : w->completed;
	if (same) {
		into->seq = into->seq != FF_SEQ_NONE ? into->seq : w->seq;
		into->op = into->op.n ? into->op : w->op;
		into->numel = into->numel != FF_SEQ_NONE ? into->numel : w->numel;
		into->entered = into->entered.known ? into->entered : w->entered;
	} else if (w->seq < into->seq) { /* the oldest is what it hangs in */
		into->seq = w->seq;
		into->op = w->op;
		into->numel = w->numel;
		into->entered = w->entered;
	}
	return same;
}

static bool is_waiting(const struct ff_work *w)
{
	bool pending = w->enqueued != FF_SEQ_NONE && w->completed != FF_SEQ_NONE &&
		w->enqueued > w->completed;
	return pending || (w->timed_out && w->enqueued == FF_SEQ_NONE);
}

/* Nothing enqueued that is not completed: it did not enter what the others wait for. */
static bool is_idle(const struct ff_work *w)
{
	return w->enqueued != FF_SEQ_NONE && w->enqueued == w->completed;
}

static void make_groups(
	struct ff_collectives *c, struct ff_arena *a, struct ff_work *works, size_t n)
{
	c->groups = FF_ARENA_ARR(a, struct ff_collective, n ? n : 1);
	for (size_t i = 0; i < n;) {
		struct ff_collective *g = &c->groups[c->ngroups++];
		size_t kept = i, end = i;
		*g = (struct ff_collective){
			.name = works[i].group, .works = &works[i], .numbered = true};
		for (; end < n && !cmp_str(works[end].group, g->name); end++) {
			if (end > i && works[kept].rank == works[end].rank) {
				/* Without a name, two numbers may be of two groups. */
				bool same = join(&works[kept], &works[end]);
				g->numbered = g->numbered && (same || g->name.n);
			} else if (end > i) {
				works[++kept] = works[end];
			}
		}
		g->nworks = kept - i + 1;
		i = end;
	}
}

void ff_collectives_init(struct ff_collectives *c, struct ff_arena *a, const struct ff_timeline *t)
{
	*c = (struct ff_collectives){0};
	struct ff_work *works = FF_ARENA_ARR(a, struct ff_work, t->nall + 1);
	size_t n = 0;
	for (size_t i = 0; i < t->nall; i++) {
		const struct ff_sighting *s = &t->all[i];
		if (s->attempt == t->attempt && !s->ev->quoted && read_work(s, &works[n])) {
			n++;
		}
	}
	if (n) {
		qsort(works, n, sizeof *works, by_seq);
		adopt_names(works, n);
		qsort(works, n, sizeof *works, by_group);
	}
	make_groups(c, a, works, n);
}

bool ff_collectives_waits(const struct ff_collectives *c, int32_t rank)
{
	for (size_t i = 0; i < c->ngroups; i++) {
		const struct ff_collective *g = &c->groups[i];
		size_t lo = 0, hi = g->nworks;
		while (lo < hi) {
			size_t mid = lo + (hi - lo) / 2;
			if (g->works[mid].rank < rank) {
				lo = mid + 1;
			} else {
				hi = mid;
			}
		}
		if (lo < g->nworks && g->works[lo].rank == rank && is_waiting(&g->works[lo])) {
			return true;
		}
	}
	return false;
}

/* ---- judging */

/* The operation that a rank hangs in. */
static int64_t hangs_in(const struct ff_work *w)
{
	return w->seq != FF_SEQ_NONE          ? w->seq
		: w->completed != FF_SEQ_NONE ? w->completed + 1
					      : FF_SEQ_NONE;
}

/* Each rank's own size is right in these, or one side only takes part. */
static bool may_differ(struct ff_str op)
{
	static const char *const ops[] = {"ALLTOALL", "ALLTOALL_BASE", "SEND", "RECV",
		"RECVANYSOURCE", "GATHER", "SCATTER", "COALESCED", "UNKNOWN"};
	for (size_t i = 0; i < sizeof ops / sizeof ops[0]; i++) {
		if (ff_str_eqz(op, ops[i])) {
			return true;
		}
	}
	return !op.n;
}

static bool agree(const struct ff_work *a, const struct ff_work *b)
{
	bool size = may_differ(a->op) || a->numel == b->numel || a->numel == FF_SEQ_NONE ||
		b->numel == FF_SEQ_NONE;
	return hangs_in(a) == hangs_in(b) && !cmp_str(a->op, b->op) && size;
}

bool ff_collectives_agree(const struct ff_collectives *c)
{
	for (size_t i = 0; i < c->ngroups; i++) {
		const struct ff_collective *g = &c->groups[i];
		const struct ff_work *first = NULL;
		for (size_t j = 0; j < g->nworks; j++) {
			const struct ff_work *w = &g->works[j];
			if (!is_waiting(w)) {
				continue;
			}
			if (first && (!g->numbered || !agree(first, w))) {
				return false;
			}
			first = first ? first : w;
		}
	}
	return true;
}

/* The work with which most others agree; there are few different ones, so that a vote by pairing
 * off finds it if it has the majority. NULL: none has. */
static const struct ff_work *majority(const struct ff_collective *g, size_t *ret_n)
{
	const struct ff_work *best = NULL;
	size_t lead = 0, waiting = 0, n = 0;
	for (size_t i = 0; i < g->nworks; i++) {
		const struct ff_work *w = &g->works[i];
		if (!is_waiting(w)) {
			continue;
		}
		waiting++;
		if (!lead) {
			best = w;
			lead = 1;
		} else {
			lead = agree(best, w) ? lead + 1 : lead - 1;
		}
	}
	for (size_t i = 0; best && i < g->nworks; i++) {
		n += is_waiting(&g->works[i]) && agree(best, &g->works[i]);
	}
	*ret_n = n;
	return n >= 2 && n * 2 > waiting ? best : NULL;
}

/* They gave up before it came: there is nobody left that it could have met. */
static bool came_late(
	const struct ff_collective *g, const struct ff_work *w, const struct ff_work *most)
{
	size_t gone = 0;
	for (size_t i = 0; i < g->nworks; i++) {
		const struct ff_work *o = &g->works[i];
		if (o == w || !is_waiting(o) || hangs_in(o) != hangs_in(most)) {
			continue;
		}
		if (ff_when_order(o->s->when, w->entered) != FF_BEFORE) {
			return false;
		}
		gone++;
	}
	return gone >= 2 && hangs_in(w) == hangs_in(most);
}

static enum ff_stall_kind stands_out(const struct ff_collective *g, const struct ff_work *w,
	const struct ff_work *most, bool everybody)
{
	int64_t here = hangs_in(w), there = hangs_in(most);
	if (!is_waiting(w)) {
		bool idle = is_idle(w) && there != FF_SEQ_NONE && w->enqueued < there;
		return idle && g->numbered ? FF_STALL_IDLE : FF_STALL_NONE;
	}
	if (came_late(g, w, most)) {
		return FF_STALL_LATE;
	}
	if (!g->numbered || !everybody || agree(w, most) || here == FF_SEQ_NONE) {
		return FF_STALL_NONE;
	}
	return here < there ? FF_STALL_BEHIND : here == there ? FF_STALL_ODD : FF_STALL_NONE;
}

/* Somebody waits for a later operation than most: then numbers tell nothing of who began. */
static bool any_ahead(const struct ff_collective *g, const struct ff_work *most)
{
	for (size_t i = 0; i < g->nworks; i++) {
		if (is_waiting(&g->works[i]) && hangs_in(&g->works[i]) > hangs_in(most)) {
			return true;
		}
	}
	return false;
}

static void add_stall_proof(struct ff_stall *st, const struct ff_sighting *s)
{
	if (st->nproof < PROOF_MAX) {
		st->proof[st->nproof++] = s;
	}
}

static void take(struct ff_stall *st, const struct ff_collective *g, const struct ff_work *most,
	enum ff_stall_kind kind, bool everybody)
{
	st->kind = kind;
	for (size_t i = 0; i < g->nworks; i++) {
		if (stands_out(g, &g->works[i], most, everybody) == kind) {
			st->ranks[st->nranks++] = g->works[i].rank;
			add_stall_proof(st, g->works[i].s);
		}
	}
	for (size_t i = 0; i < g->nworks; i++) {
		if (is_waiting(&g->works[i]) && agree(&g->works[i], most)) {
			add_stall_proof(st, g->works[i].s);
		}
	}
}

struct ff_stall ff_collective_judge(
	const struct ff_collective *g, struct ff_arena *a, size_t world, bool everybody)
{
	static const enum ff_stall_kind kinds[] = {
		FF_STALL_IDLE, FF_STALL_LATE, FF_STALL_BEHIND, FF_STALL_ODD};
	struct ff_stall st = {.kind = FF_STALL_NONE};
	const struct ff_work *most = majority(g, &st.waiting);
	if (!most) {
		return st;
	}
	st.seq = hangs_in(most);
	st.op = most->op;
	st.ranks = FF_ARENA_ARR(a, int32_t, g->nworks);
	st.proof = FF_ARENA_ARR(a, const struct ff_sighting *, PROOF_MAX);
	size_t seen[FF_STALL_ALL_IN + 1] = {0};
	for (size_t i = 0; i < g->nworks; i++) {
		seen[stands_out(g, &g->works[i], most, everybody)]++;
	}
	bool ahead = any_ahead(g, most);
	for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
		size_t n = seen[kinds[i]];
		if (n && n < st.waiting && (kinds[i] == FF_STALL_IDLE || !ahead)) {
			take(&st, g, most, kinds[i], everybody);
			return st;
		}
	}
	bool said = st.seq != FF_SEQ_NONE && most->op.n;
	if (said && !ahead && g->numbered && everybody && st.waiting == world && world > 1) {
		take(&st, g, most, FF_STALL_ALL_IN, everybody);
	}
	return st;
}
