#include "core/report_own.h"
#include "base/arr.h"

#include <stdlib.h>

#define GROUPS_MAX 3 /* of ranks that say the same about their collectives */

/* A span of times on one clock; `mixed` once two were of clocks that are never compared. */
struct span {
	struct ff_when lo, hi;
	int32_t lo_rank, hi_rank;
	size_t n;
	bool mixed;
};

static void stretch(struct span *s, struct ff_when w, int32_t rank)
{
	if (!w.known) {
		return;
	}
	if (!s->n++) {
		s->lo = s->hi = w;
		s->lo_rank = s->hi_rank = rank;
	} else if (w.domain != s->lo.domain) {
		s->mixed = true;
	} else if (w.us < s->lo.us) {
		s->lo = w;
		s->lo_rank = rank;
	} else if (w.us > s->hi.us) {
		s->hi = w;
		s->hi_rank = rank;
	}
}

/* May it be printed as UTC? What lines claim has no sure zone. */
static bool is_utc(const struct span *s)
{
	return s->n && !s->mixed &&
		(s->lo.clock == FF_CLOCK_ARRIVED || s->lo.clock == FF_CLOCK_CAPTURED);
}

static void add_span(const struct span *s, struct ff_buf *b)
{
	ff_usec_render_clock(b, s->lo.us, 1);
	if (s->hi.us / (FF_SECOND / 10) != s->lo.us / (FF_SECOND / 10)) {
		ff_buf_addz(b, " to ");
		ff_usec_render_clock(b, s->hi.us, 1);
	}
}

static bool initiates(const struct ff_verdict *v, size_t i)
{
	return v->ranks[i].status == FF_STATUS_INITIATING;
}

/* v->ranks[i] as the timeline has it: both are by rank. */
static const struct ff_rank_line *line_of(const struct ff_verdict *v, size_t i)
{
	return &v->timeline.ranks[i];
}

static void add_ranks(struct ff_buf *b, const int32_t *ranks, size_t n)
{
	ff_buf_addz(b, n == 1 ? "rank " : "ranks ");
	ff_report_ranges(b, ranks, n, 8);
}

/* ---- first of all */

/* What a rank showed first of its end, NULL: nothing. */
static const struct ff_sighting *first_of(const struct ff_rank_line *r)
{
	for (size_t i = 0; i < r->nfaults; i++) {
		if (r->faults[i]->weight >= FF_WEIGHT_ECHO) {
			return r->faults[i];
		}
	}
	return r->exit;
}

static void add_clocks(
	const struct ff_verdict *v, const struct ff_sighting *proof, struct ff_buf *b)
{
	ff_usec most = 0, second = 0;
	size_t known = 0;
	for (size_t i = 0; i < v->clock.nnodes; i++) {
		const struct ff_node_offset *n = &v->clock.nodes[i];
		if (!n->known) {
			continue;
		}
		known++;
		second = n->bound_us > most ? most : n->bound_us > second ? n->bound_us : second;
		most = n->bound_us > most ? n->bound_us : most;
	}
	if (proof->when.clock == FF_CLOCK_ARRIVED) {
		ff_buf_addz(b, "; one clock, the collector's");
	} else if (proof->when.clock == FF_CLOCK_CAPTURED && known > 1) {
		ff_buf_addf(b, "; clocks of the %zu nodes agree within ", known);
		ff_usec_render_span(b, most + second);
	} else {
		ff_buf_addz(b, "; one clock, its node's");
	}
}

/* "first of 256 by 1.9 s": only if it is before all that can be compared with it. */
static void add_first(const struct ff_verdict *v, struct ff_buf *b)
{
	const struct ff_sighting *proof = ff_report_proof(v);
	size_t compared = 0, others = 0;
	ff_usec least = INT64_MAX;
	for (size_t i = 0; i < v->nranks; i++) {
		const struct ff_sighting *s = initiates(v, i) ? NULL : first_of(line_of(v, i));
		ff_usec d;
		if (!s) {
			continue;
		}
		others++;
		if (!ff_when_diff(s->when, proof->when, &d)) {
			continue;
		}
		if (ff_timeline_order(proof, s) != FF_BEFORE || d <= 0) {
			return;
		}
		compared++;
		least = d < least ? d : least;
	}
	if (!compared) {
		return;
	}
	ff_buf_addf(b, "first of %zu", compared + 1);
	if (compared < others) {
		ff_buf_addf(b, " with comparable times (%zu have none)", others - compared);
	}
	ff_buf_addz(b, " by ");
	ff_usec_render_span(b, least);
	add_clocks(v, proof, b);
	ff_buf_addc(b, '\n');
}

/* ---- how far they had come */

/* The last step lines: on all ranks the same, or who is behind. */
static void add_steps(const struct ff_verdict *v, struct ff_buf *b)
{
	int64_t most = FF_UNKNOWN;
	size_t known = 0, at_most = 0, behind = 0;
	int32_t some[8];
	struct span at = {0};
	for (size_t i = 0; i < v->nranks; i++) {
		most = line_of(v, i)->last_step > most ? line_of(v, i)->last_step : most;
	}
	for (size_t i = 0; i < v->nranks; i++) {
		const struct ff_rank_line *r = line_of(v, i);
		if (r->last_step == FF_UNKNOWN) {
			continue;
		}
		known++;
		if (r->last_step == most) {
			at_most++;
			stretch(&at, r->last_progress, r->rank);
		} else if (behind++ < 8) {
			some[behind - 1] = r->rank;
		}
	}
	if (!known) {
		return;
	}
	ff_buf_addf(b, "last step lines: %lld on %zu of %zu ranks", (long long)most, at_most,
		v->nranks);
	if (is_utc(&at)) {
		ff_buf_addz(b, " at ");
		add_span(&at, b);
	}
	if (behind && behind <= 8) {
		ff_buf_addz(b, "; less on ");
		add_ranks(b, some, behind);
	} else if (behind) {
		ff_buf_addf(b, "; less on %zu ranks", behind);
	} else if (known == v->nranks && known > 1) {
		ff_buf_addz(b, ", so they separate nobody");
	}
	ff_buf_addc(b, '\n');
}

/* ---- who waited */

/* How long an operation had run, in us; -1: not said, or longer than any. */
static ff_usec ran_for(const struct ff_sighting *s)
{
	int64_t ms = ff_event_int(s->ev, FF_F_ran_for, -1);
	return ms < 0 || ms > FF_TIME_LAST / 1000 ? -1 : ms * 1000;
}

/* The rank's report that an operation ran into its time limit: said by those who waited. */
static const struct ff_sighting *wait_of(const struct ff_rank_line *r)
{
	for (size_t i = 0; i < r->nfaults; i++) {
		const struct ff_sighting *s = r->faults[i];
		if (s->weight == FF_WEIGHT_FULL && s->ev->role == FF_ROLE_SECONDARY &&
			ran_for(s) >= 0) {
			return s;
		}
	}
	return NULL;
}

static bool is_name(struct ff_str s)
{
	for (size_t i = 0; i < s.n; i++) {
		bool good = (s.p[i] >= '0' && s.p[i] <= '9') || (s.p[i] >= 'a' && s.p[i] <= 'z') ||
			(s.p[i] >= 'A' && s.p[i] <= 'Z') || s.p[i] == '_';
		if (!good) {
			return false;
		}
	}
	return s.n > 0 && s.n < 40;
}

/* ", in default_pg seq 28117 BROADCAST": names only, other log text is shown elsewhere. */
static void add_collective(const struct ff_event *e, struct ff_buf *b)
{
	struct ff_str pg = ff_event_field(e, FF_F_pg), op = ff_event_field(e, FF_F_op);
	int64_t seq = ff_event_int(e, FF_F_seq, -1);
	if (seq < 0 && !is_name(op)) {
		return;
	}
	ff_buf_addz(b, ", in");
	if (is_name(pg)) {
		ff_buf_addf(b, " %.*s", FF_STR_ARG(pg));
	}
	if (seq >= 0) {
		ff_buf_addf(b, " seq %lld", (long long)seq);
	}
	if (is_name(op)) {
		ff_buf_addf(b, " %.*s", FF_STR_ARG(op));
	}
}

static void add_waits(const struct ff_verdict *v, struct ff_buf *b)
{
	struct span said = {0}, began = {0};
	const struct ff_sighting *one = NULL;
	size_t waiters = 0;
	for (size_t i = 0; i < v->nranks; i++) {
		const struct ff_sighting *s = wait_of(line_of(v, i));
		if (s) {
			waiters++;
			struct ff_when w = s->when;
			w.us -= w.known ? ran_for(s) : 0;
			stretch(&said, s->when, s->rank);
			stretch(&began, w, s->rank);
			one = one ? one : s;
		}
	}
	if (!one) {
		return;
	}
	if (is_utc(&began)) {
		ff_buf_addz(b, "waiting since ");
		ff_usec_render_clock(b, began.lo.us, 1);
		ff_buf_addz(b, ": ");
	}
	ff_buf_addf(b, "%zu timeout%s of ", waiters, waiters == 1 ? "" : "s");
	ff_usec_render_span(b, ran_for(one));
	if (is_utc(&said)) {
		ff_buf_addz(b, said.n > 1 ? " from " : " at ");
		ff_usec_render_clock(b, said.lo.us, 1);
		ff_buf_addz(b, said.n > 1 ? " on" : "");
	}
	add_collective(one->ev, b);
	ff_buf_addc(b, '\n');
}

/* Ranks that say the same about what they entered and completed. */
struct group {
	int64_t enqueued, completed;
	int32_t *ranks;
	size_t n, cap;
};

static bool counts_of(const struct ff_rank_line *r, int64_t *enqueued, int64_t *completed)
{
	for (size_t i = 0; i < r->nfaults; i++) {
		const struct ff_event *e = r->faults[i]->ev;
		*enqueued = ff_event_int(e, FF_F_enqueued, -1);
		*completed = ff_event_int(e, FF_F_completed, -1);
		if (*enqueued >= 0 && *completed >= 0) {
			return true;
		}
	}
	return false;
}

static void add_groups(const struct ff_verdict *v, struct ff_buf *b)
{
	struct group g[GROUPS_MAX + 1] = {
		{0}}; /* the last: all others, and those who say nothing */
	size_t n = 0;
	for (size_t i = 0; i < v->nranks; i++) {
		int64_t enqueued, completed;
		size_t k = GROUPS_MAX;
		if (counts_of(line_of(v, i), &enqueued, &completed)) {
			for (k = 0; k < n; k++) {
				if (g[k].enqueued == enqueued && g[k].completed == completed) {
					break;
				}
			}
			if (k == n && n < GROUPS_MAX) {
				g[n].enqueued = enqueued;
				g[n++].completed = completed;
			}
		}
		*FF_ARR_ADD(g[k].ranks, g[k].n, g[k].cap) = v->ranks[i].rank;
	}
	for (size_t k = 0; k <= GROUPS_MAX; k++) {
		if (g[k].n && n) {
			if (k < GROUPS_MAX) {
				ff_buf_addf(b,
					"enqueued %lld, completed %lld: ", (long long)g[k].enqueued,
					(long long)g[k].completed);
			} else {
				ff_buf_addz(b, "no word of it: ");
			}
			add_ranks(b, g[k].ranks, g[k].n);
			ff_buf_addc(b, '\n');
		}
		free(g[k].ranks);
	}
}

/* ---- the kinds */

/* The rank's first event of the verdict's fault. */
static const struct ff_sighting *own_fault(const struct ff_verdict *v, const struct ff_rank_line *r)
{
	for (size_t i = 0; i < r->nfaults; i++) {
		if (v->fault && !strcmp(r->faults[i]->ev->fault, v->fault)) {
			return r->faults[i];
		}
	}
	return NULL;
}

static void add_common(const struct ff_verdict *v, struct ff_buf *b)
{
	struct span at = {0};
	size_t n = 0, nodes = 0;
	const char *last = NULL;
	for (size_t i = 0; i < v->nranks; i++) {
		const struct ff_rank_line *r = line_of(v, i);
		const struct ff_sighting *s = initiates(v, i) ? own_fault(v, r) : NULL;
		if (!s) {
			continue;
		}
		n++;
		stretch(&at, s->when, r->rank);
		nodes += r->node && (!last || strcmp(last, r->node)) ? 1 : 0; /* ranks go by node */
		last = r->node;
	}
	if (!n) {
		return;
	}
	ff_buf_addf(
		b, "%zu of %zu ranks", n, v->world_size > 0 ? (size_t)v->world_size : v->nranks);
	if (v->timeline.nnodes > 1 && nodes <= v->timeline.nnodes) {
		ff_buf_addf(b, " on %zu of %zu nodes", nodes, v->timeline.nnodes);
	}
	ff_buf_addz(b, " show the same fault\n");
	if (is_utc(&at) && at.n > 1) {
		ff_buf_addf(b, "first rank %d at ", (int)at.lo_rank);
		ff_usec_render_clock(b, at.lo.us, 3);
		ff_buf_addf(b, ", last rank %d at ", (int)at.hi_rank);
		ff_usec_render_clock(b, at.hi.us, 3);
		ff_buf_addz(b, ": an order without meaning\n");
	}
}

static void add_silence(const struct ff_verdict *v, struct ff_buf *b)
{
	struct span last = {0}, lost = {0};
	size_t n = 0, peers = 0, words = 0;
	for (size_t i = 0; i < v->nranks; i++) {
		const struct ff_rank_line *r = line_of(v, i);
		const struct ff_sighting *s = first_of(r);
		if (initiates(v, i)) {
			n++;
			words += s != NULL; /* a fault or an exit report: no silence */
			stretch(&last, r->last_line, r->rank);
		} else if (s && s->ev->role == FF_ROLE_SECONDARY) {
			peers++;
			stretch(&lost, s->when, r->rank);
		}
	}
	if (is_utc(&last) && !words) {
		ff_buf_addf(b, "silence: last line of its %zu ranks ", n);
		add_span(&last, b);
		ff_buf_addz(b, ", without a farewell\n");
	}
	if (peers) {
		ff_buf_addf(b, "peers: %zu ranks report a lost connection", peers);
		if (is_utc(&lost)) {
			ff_buf_addz(b, ", ");
			add_span(&lost, b);
		}
		ff_buf_addc(b, '\n');
	}
}

/* When the first rank heard of it. */
static void add_signal(const struct ff_verdict *v, struct ff_buf *b)
{
	struct span at = {0};
	for (size_t i = 0; i < v->nranks; i++) {
		const struct ff_rank_line *r = line_of(v, i);
		for (size_t j = 0; j < r->nfaults; j++) {
			if (r->faults[j]->ev->role == FF_ROLE_TEARDOWN) {
				stretch(&at, r->faults[j]->when, r->rank);
				break;
			}
		}
	}
	if (is_utc(&at)) {
		ff_buf_addz(b, "first signal at a rank ");
		ff_usec_render_clock(b, at.lo.us, 1);
		ff_buf_addc(b, '\n');
	}
}

void ff_report_shown(const struct ff_verdict *v, struct ff_buf *b)
{
	const struct ff_sighting *proof = ff_report_proof(v);
	bool waits = v->nwhy &&
		(!strcmp(v->why[0].rule, "did-not-arrive") || !strcmp(v->why[0].rule, "accused") ||
			v->kind == FF_VERDICT_UNDETERMINED);
	if (v->kind == FF_VERDICT_COMMON) {
		add_common(v, b);
	} else if (v->kind == FF_VERDICT_NODE && ff_report_is_lost(v)) {
		add_silence(v, b);
	} else if (v->kind == FF_VERDICT_EXTERNAL) {
		add_steps(v, b);
		add_signal(v, b);
	} else if (waits) {
		add_waits(v, b);
		add_groups(v, b);
		add_steps(v, b);
	} else if (v->kind == FF_VERDICT_RANK && v->ninitiating && v->initiating[0].event &&
		proof) {
		add_first(v, b);
	}
}

/* ---- who is not it */

/* Ranks that left with an error code once an outside word had ended the job. */
static void add_late_exits(const struct ff_verdict *v, struct ff_buf *b)
{
	int32_t *ranks = ff_xcalloc(v->nranks + 1, sizeof *ranks);
	size_t n = 0;
	for (size_t i = 0; i < v->nranks; i++) {
		int32_t code = line_of(v, i)->exit_code;
		if (code != FF_EXIT_UNKNOWN && code > 0 && !ff_exit_signal(code)) {
			ranks[n++] = v->ranks[i].rank;
		}
	}
	if (n) {
		add_ranks(b, ranks, n);
		ff_buf_addf(b, ": left with an error code after that word, so %s part of it\n",
			n == 1 ? "it is" : "they are");
	}
	free(ranks);
}

void ff_report_not(const struct ff_verdict *v, struct ff_buf *b)
{
	int32_t *ranks = ff_xcalloc(v->nwhy_not + 1, sizeof *ranks);
	for (size_t i = 0; i < v->nwhy_not; i++) {
		const char *text = v->why_not[i].text;
		size_t n = 0;
		bool repeated = false;
		for (size_t j = 0; j < v->nwhy_not; j++) {
			if (!strcmp(v->why_not[j].text, text)) {
				repeated = repeated || j < i;
				ranks[n] = v->why_not[j].rank;
				n += v->why_not[j].rank != FF_UNKNOWN;
			}
		}
		if (repeated) {
			continue;
		}
		if (n) {
			add_ranks(b, ranks, n);
			ff_buf_addz(b, ": ");
		}
		ff_buf_addf(b, "%s\n", text);
	}
	free(ranks);
	if (v->kind == FF_VERDICT_EXTERNAL) {
		add_late_exits(v, b);
	}
}

/* ---- who it may be */

static void add_evidence_for(const struct ff_verdict *v, int32_t rank, struct ff_buf *b)
{
	const struct ff_rank_line *r = ff_timeline_rank(&v->timeline, rank);
	const struct ff_sighting *s = r ? first_of(r) : NULL;
	ff_buf_addf(b, "rank %d", (int)rank);
	if (r && r->node) {
		ff_buf_addf(b, " on %s", r->node);
	}
	ff_buf_addz(b, "   for it: ");
	if (!s) {
		ff_buf_addz(b, "it is the one that shows nothing");
		return;
	}
	if (s->ev->kind == FF_EVENT_FAULT) {
		ff_buf_addf(b, "%s of its own", s->ev->fault);
	} else {
		ff_buf_addz(b, "it was ended by a signal that its launcher did not send");
	}
	if (ff_stamp_us(s->ev->stamp) != FF_TIME_NONE && s->when.known) {
		ff_buf_addz(b, ", ");
		ff_usec_render_clock(b, s->when.us, 3);
	}
}

/* One or a few waited, most did not: these hang elsewhere, or those made a call too many. */
struct sides {
	int32_t *in, *out; /* those that waited; those that did not, owned with `in` */
	size_t nin, nout;
};

/* False: the run has no such two sides. */
static bool find_sides(const struct ff_verdict *v, struct sides *ret)
{
	struct sides s = {.in = ff_xcalloc(2 * (v->nranks + 1), sizeof *s.in)};
	bool loud = false;
	s.out = s.in + v->nranks + 1;
	for (size_t i = 0; i < v->nranks; i++) {
		const struct ff_rank_line *r = line_of(v, i);
		const struct ff_sighting *first = first_of(r);
		if (wait_of(r)) {
			s.in[s.nin++] = r->rank;
		} else if (r->heard != FF_UNHEARD) {
			s.out[s.nout++] = r->rank;
			loud = loud || (first && first->ev->role == FF_ROLE_PRIMARY);
		}
	}
	*ret = s;
	return v->kind == FF_VERDICT_UNDETERMINED && v->ncandidates < 2 && s.nin &&
		s.nin <= s.nout && !loud;
}

static void add_waiters(const struct ff_verdict *v, struct ff_buf *b)
{
	struct sides s;
	if (find_sides(v, &s)) {
		ff_buf_addz(b, "A  ");
		add_ranks(b, s.out, s.nout);
		ff_buf_addz(b, s.nout == 1 ? " hangs elsewhere" : " hang elsewhere");
		ff_buf_addz(b, "   for it: ");
		add_ranks(b, s.in, s.nin);
		ff_buf_addf(
			b, " waited for %s until the time limit\nB  ", s.nout == 1 ? "it" : "them");
		add_ranks(b, s.in, s.nin);
		ff_buf_addf(b, " made a call too many   for it: %s alone report%s a timeout\n",
			s.nin == 1 ? "it" : "they", s.nin == 1 ? "s" : "");
	}
	free(s.in);
}

void ff_report_settle(const struct ff_verdict *v, struct ff_buf *b)
{
	struct sides s;
	if (find_sides(v, &s)) {
		ff_buf_addz(b, "the flight recorder's dumps: which call did ");
		add_ranks(b, s.in, s.nin);
		ff_buf_addz(b, " make that the others did not?\nPython stacks of ");
		add_ranks(b, s.out, s.nout);
		ff_buf_addz(b, " while they hang: where do they stand?\n");
	}
	free(s.in);
}

void ff_report_candidates(const struct ff_verdict *v, struct ff_buf *b)
{
	if (v->kind != FF_VERDICT_UNDETERMINED) {
		return;
	}
	if (v->ncandidates < 2) {
		add_waiters(v, b);
		return;
	}
	ff_buf_addz(b, "A  ");
	add_evidence_for(v, v->candidates[0], b);
	ff_buf_addz(b, "\nB  ");
	add_evidence_for(v, v->candidates[1], b);
	if (v->ncandidates > 2) {
		ff_buf_addz(b, "; or ");
		add_ranks(b, v->candidates + 2, v->ncandidates - 2);
	}
	ff_buf_addc(b, '\n');
}
