#include "base/arr.h"
#include "core/timeline_own.h"

#include <stdlib.h>

#define HABIT_STEPS 4 /* progress lines that make a habit */

/* The median gap between a lane's progress lines, in us; 0: no habit. */
ff_usec ff_timeline_cadence(const struct ff_lane *l)
{
	uint64_t total = 0, seen = 0;
	size_t n = sizeof l->cadence / sizeof l->cadence[0];
	for (size_t i = 0; i < n; i++) {
		total += l->cadence[i];
	}
	if (total < HABIT_STEPS) {
		return 0;
	}
	for (size_t i = 0; i < n; i++) {
		seen += l->cadence[i];
		if (seen * 2 >= total) {
			return (ff_usec)1 << (i < 40 ? i : 40);
		}
	}
	return 0;
}

struct ff_lane_ref *ff_timeline_lanes(const struct ff_timeline *t, size_t *ret_n)
{
	struct ff_lane_ref *refs = NULL;
	size_t n = 0, cap = 0;
	for (size_t i = 0; i < t->nstreams; i++) {
		const struct ff_stream *s = t->streams[i];
		if (s->origin.kind == FF_STREAM_KERNEL || s->origin.kind == FF_STREAM_SCHEDULER) {
			continue;
		}
		for (size_t j = 0; j < s->nlanes; j++) {
			const struct ff_lane *l = s->lanes[j];
			int32_t first = l->attempt, last = l->attempt;
			if (first == FF_UNKNOWN) {
				first = ff_timeline_attempt_at(t, s, l->first_offset);
				last = ff_timeline_attempt_at(t, s, l->last_offset);
			}
			if (first > t->attempt || last < t->attempt) {
				continue;
			}
			int32_t r = ff_timeline_speaker(t, s, l->tag, t->attempt);
			if (r != FF_UNKNOWN) {
				*FF_ARR_ADD(refs, n, cap) = (struct ff_lane_ref){r, s, l};
			}
		}
	}
	*ret_n = n;
	return refs;
}

static void mark_rank(uint8_t *seen, const struct ff_timeline *t, int64_t rank)
{
	if (ff_timeline_fits(t, rank)) {
		seen[rank] = 1;
	}
}

/* The roster: all ranks of a known world, else those that anything speaks of. */
static void make_roster(struct ff_timeline *t, const struct ff_lane_ref *refs, size_t nrefs)
{
	size_t room = t->world > 0 ? (size_t)t->world : FF_RANKS_MAX;
	uint8_t *seen = ff_xcalloc(room, 1);
	for (size_t i = 0; t->world < 0 && i < nrefs; i++) {
		mark_rank(seen, t, refs[i].rank);
	}
	for (size_t i = 0; t->world < 0 && i < t->nall; i++) {
		const struct ff_sighting *s = &t->all[i];
		if (s->attempt == t->attempt) {
			mark_rank(seen, t, s->rank);
			mark_rank(seen, t, s->speaker);
		}
		for (size_t j = 0; s->attempt == t->attempt && j < s->nnamed; j++) {
			bool other = ff_event_field(s->ev, FF_F_tasks).n &&
				!ff_timeline_tasks_are_ranks(t);
			mark_rank(seen, t, other ? FF_UNKNOWN : s->named[j]);
		}
	}
	if (t->world > 0) {
		memset(seen, 1, room);
	}
	size_t n = 0;
	for (size_t r = 0; r < room; r++) {
		n += seen[r];
	}
	t->ranks = ff_xrealloc(t->ranks, n + 1, sizeof *t->ranks);
	t->nranks = 0;
	for (size_t r = 0; r < room; r++) {
		if (!seen[r]) {
			continue;
		}
		const struct ff_home *h = ff_timeline_home(t, t->attempt, (int32_t)r);
		t->ranks[t->nranks++] = (struct ff_rank_line){
			.rank = (int32_t)r,
			.local_rank = h->local_rank,
			.node = h->node,
			.pid = h->pid,
			.last_step = FF_UNKNOWN,
			.exit_code = FF_EXIT_UNKNOWN,
			.last_progress = FF_WHEN_NONE,
			.last_line = FF_WHEN_NONE,
		};
	}
	free(seen);
	t->roster_known = t->world > 0;
}

struct ff_rank_line *ff_timeline_rank(const struct ff_timeline *t, int32_t rank)
{
	size_t lo = 0, hi = rank < 0 ? 0 : t->nranks;
	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;
		if (t->ranks[mid].rank == rank) {
			return &t->ranks[mid];
		}
		if (t->ranks[mid].rank < rank) {
			lo = mid + 1;
		} else {
			hi = mid;
		}
	}
	return NULL;
}

static bool stream_to_end(const struct ff_timeline *t, const struct ff_stream *s)
{
	return !s->origin.filtered && !s->gap &&
		(s->state == FF_STREAM_ENDED ||
			(t->ask.offline && s->state != FF_STREAM_VANISHED) ||
			(s->origin.tailed && s->read_to_end));
}

/* It says so, is named so, or is its rank's only stream (law 4). */
static bool holds_stderr(const struct ff_timeline *t, const struct ff_stream *s)
{
	const void *only = ff_timeline_only_stream(
		t, ff_timeline_attempt_at(t, s, UINT64_MAX), s->origin.rank);
	return ff_origin_is_stderr(&s->origin) || only == s;
}

static void add_lane(struct ff_timeline *t, const struct ff_lane_ref *ref)
{
	struct ff_rank_line *r = ff_timeline_rank(t, ref->rank);
	const struct ff_lane *l = ref->lane;
	const struct ff_stream *s = ref->stream;
	if (!r) {
		return;
	}
	struct ff_when last = ff_when_of(&t->clocks, s->origin.node, s->number, l->last, NULL);
	ff_when_later(&r->last_line, last);
	ff_when_later(&r->last_progress, ff_timeline_lane_when(t, s, &l->progress));
	r->own_stream = true;
	r->not_stdout = r->not_stdout || s->origin.fd != FF_FD_STDOUT;
	r->steps += l->steps;
	r->last_words = r->last_words || !l->progress.set || l->last_offset > l->progress.offset;
	ff_usec gap = ff_timeline_cadence(l);
	r->cadence = gap > r->cadence ? gap : r->cadence;
	enum ff_heard heard = l->steps >= HABIT_STEPS ? FF_HEARD : FF_QUIET;
	r->heard = heard > r->heard ? heard : r->heard;
	if (l->progress.set && l->progress.text) {
		int64_t step = ff_matcher_step(t->matcher, ff_str_z(l->progress.text));
		r->last_step = step > r->last_step ? step : r->last_step;
	}
	if (l->success.set && (!l->has_fault || l->last_fault_offset < l->success.offset)) {
		r->marked = true;
		r->succeeded = r->succeeded || !ff_timeline_ended_badly(t);
	}
	bool err = s->origin.kind == FF_STREAM_MIXED || holds_stderr(t, s);
	r->stderr_to_end = r->stderr_to_end || (err && stream_to_end(t, s));
	r->node = r->node ? r->node : s->origin.node;
}

/* Streams that were declared and said nothing, or whose only word is their end. */
static void add_declared(struct ff_timeline *t)
{
	for (size_t i = 0; i < t->nstreams; i++) {
		const struct ff_stream *s = t->streams[i];
		if (s->origin.rank == FF_UNKNOWN ||
			ff_timeline_attempt_at(t, s, UINT64_MAX) != t->attempt) {
			continue;
		}
		struct ff_rank_line *r = ff_timeline_rank(t, s->origin.rank);
		if (!r) {
			continue;
		}
		r->own_stream = true;
		r->not_stdout = r->not_stdout || s->origin.fd != FF_FD_STDOUT;
		r->heard = r->heard == FF_UNHEARD && !s->origin.filtered ? FF_QUIET : r->heard;
		r->stderr_to_end = r->stderr_to_end || (holds_stderr(t, s) && stream_to_end(t, s));
	}
}

/* A console that holds the words of all ranks but at most one holds that one's too: it was captured
 * as well, and said nothing. Fewer may be those of one node, or of a filter. */
static void add_console(struct ff_timeline *t, const struct ff_stream *s)
{
	if (s->origin.kind != FF_STREAM_MIXED || t->world < 3 || !stream_to_end(t, s)) {
		return;
	}
	uint8_t *spoke = ff_xcalloc((size_t)t->world, 1);
	size_t n = 0;
	for (size_t i = 0; i < t->nall; i++) {
		const struct ff_sighting *e = &t->all[i];
		if (e->stream == s && e->attempt == t->attempt && e->speaker != FF_UNKNOWN) {
			n += !spoke[e->speaker];
			spoke[e->speaker] = 1;
		}
	}
	for (size_t i = 0; i < s->nlanes; i++) {
		int32_t r = ff_timeline_speaker(t, s, s->lanes[i]->tag, t->attempt);
		if (r != FF_UNKNOWN) {
			n += !spoke[r];
			spoke[r] = 1;
		}
	}
	free(spoke);
	for (size_t i = 0; n + 1 >= (size_t)t->world && i < t->nranks; i++) {
		struct ff_rank_line *r = &t->ranks[i];
		r->stderr_to_end = true;
		r->heard = r->heard == FF_UNHEARD ? FF_QUIET : r->heard;
	}
}

static void add_consoles(struct ff_timeline *t)
{
	for (size_t i = 0; i < t->nstreams; i++) {
		add_console(t, t->streams[i]);
	}
}

/* Of several reports about one rank: its own control object, a row that names it, a "failed" line
 * of the agent, a range of srun's. Smaller is better. */
static int exit_rank(const struct ff_sighting *s)
{
	if (!s->stream) {
		return 0;
	}
	if (ff_event_field(s->ev, FF_F_rank).n) {
		return 1;
	}
	return s->nnamed ? 3 : 2;
}

static void add_exit(struct ff_timeline *t, const struct ff_sighting *s, int32_t rank)
{
	struct ff_rank_line *r = ff_timeline_rank(t, rank);
	if (!r || s->exit_code == FF_EXIT_UNKNOWN) {
		return;
	}
	if (r->exit && exit_rank(r->exit) <= exit_rank(s)) {
		return;
	}
	r->exit = s;
	r->exit_code = s->exit_code;
	r->succeeded = r->succeeded || s->exit_code == 0;
	r->pid = r->pid != FF_UNKNOWN ? r->pid : s->pid;
}

/* A launcher names by pid alone whom it ends. Where those pids are as many as there are ranks of
 * whose end nothing is said, they are theirs: who is not among them died by itself. */
static void add_unnamed_senders(struct ff_timeline *t)
{
	size_t pids = 0, without = 0;
	for (size_t i = 0; i < t->maps->nsenders; i++) {
		const struct ff_sender *send = &t->maps->senders[i];
		bool here = send->s->attempt == t->attempt && !send->forced;
		if (here && send->rank == FF_UNKNOWN) {
			pids += send->s->ev->count;
		}
	}
	for (size_t i = 0; i < t->nranks; i++) {
		without += !t->ranks[i].exit && !t->ranks[i].ended_by_agent;
	}
	for (size_t i = 0; t->roster_known && pids == without && i < t->nranks; i++) {
		struct ff_rank_line *r = &t->ranks[i];
		r->ended_by_agent = r->ended_by_agent || !r->exit;
	}
}

static void add_exits(struct ff_timeline *t)
{
	for (size_t i = 0; i < t->nall; i++) {
		const struct ff_sighting *s = &t->all[i];
		if (s->attempt != t->attempt || s->ev->kind != FF_EVENT_EXIT) {
			continue;
		}
		if (s->rank != FF_UNKNOWN) {
			add_exit(t, s, s->rank);
			continue;
		}
		for (size_t j = 0; ff_timeline_tasks_are_ranks(t) && j < s->nnamed; j++) {
			add_exit(t, s, s->named[j]);
		}
	}
	for (size_t i = 0; i < t->maps->nsenders; i++) {
		const struct ff_sender *send = &t->maps->senders[i];
		struct ff_rank_line *r = ff_timeline_rank(t, send->rank);
		if (r && send->s->attempt == t->attempt) {
			r->ended_by_agent = true;
			r->forced = r->forced || send->forced;
		}
	}
	add_unnamed_senders(t);
}

static void add_faults(struct ff_timeline *t)
{
	size_t total = 0;
	for (size_t i = 0; i < t->nall; i++) {
		struct ff_rank_line *r = ff_timeline_rank(t, t->all[i].rank);
		if (r && t->all[i].attempt == t->attempt && t->all[i].ev->kind == FF_EVENT_FAULT) {
			r->nfaults++;
			total++;
		}
	}
	const struct ff_sighting **room =
		FF_ARENA_ARR(&t->arena, const struct ff_sighting *, total + 1);
	for (size_t i = 0; i < t->nranks; i++) {
		t->ranks[i].faults = room;
		room += t->ranks[i].nfaults;
		t->ranks[i].nfaults = 0;
	}
	for (size_t i = 0; i < t->nall; i++) {
		struct ff_rank_line *r = ff_timeline_rank(t, t->all[i].rank);
		if (r && t->all[i].attempt == t->attempt && t->all[i].ev->kind == FF_EVENT_FAULT) {
			r->faults[r->nfaults++] = &t->all[i];
		}
	}
}

/* silent: a steady habit broke long before the others' last word (law 4). */
static void find_silent(struct ff_timeline *t, const struct ff_lane_ref *refs, size_t nrefs)
{
	struct ff_when last = FF_WHEN_NONE;
	for (size_t i = 0; i < t->nranks; i++) {
		ff_when_later(&last, t->ranks[i].last_progress);
	}
	for (size_t i = 0; i < nrefs; i++) {
		struct ff_rank_line *r = ff_timeline_rank(t, refs[i].rank);
		ff_usec gap = ff_timeline_cadence(refs[i].lane), since;
		if (!r || !gap || r->heard != FF_HEARD || r->succeeded) {
			continue;
		}
		if (ff_when_diff(last, r->last_line, &since) && since > 10 * gap + FF_SECOND) {
			r->heard = FF_SILENT;
		}
	}
}

void ff_timeline_attempt(struct ff_timeline *t, int32_t attempt)
{
	size_t nrefs;
	t->attempt = attempt;
	struct ff_lane_ref *refs = ff_timeline_lanes(t, &nrefs);
	make_roster(t, refs, nrefs);
	for (size_t i = 0; i < nrefs; i++) {
		add_lane(t, &refs[i]);
	}
	add_declared(t);
	add_consoles(t);
	add_exits(t);
	add_faults(t);
	find_silent(t, refs, nrefs);
	free(refs);
}
