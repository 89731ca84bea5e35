#include "base/mem.h"
#include "core/timeline_own.h"

#include <stdlib.h>

/* Lines without a tag in a stream of several ranks: somebody else's progress proves nothing. */
static bool shared_lane(const struct ff_timeline *t, const struct ff_sighting *s)
{
	return s->stream && s->speaker == FF_UNKNOWN && t->world != 1;
}

struct well { /* what a rank's lanes say about how it went on */
	struct ff_when progress, success;
};

struct ff_when ff_timeline_lane_when(
	const struct ff_timeline *t, const struct ff_stream *s, const struct ff_moment *m)
{
	struct ff_claimed claimed = FF_CLAIMED_NONE;
	if (!m->set) {
		return FF_WHEN_NONE;
	}
	if (m->text) {
		(void)ff_stamp_parse(ff_str_z(m->text), &claimed);
	}
	return ff_when_of(&t->clocks, s->origin.node, s->number, m->stamp, &claimed);
}

void ff_when_later(struct ff_when *a, struct ff_when b)
{
	if (!a->known || (b.known && a->domain == b.domain && b.us > a->us)) {
		*a = b;
	}
}

/* Latest progress and success per rank, over all its streams. Index: rank. */
static struct well *collect_wells(struct ff_timeline *t, size_t *ret_n)
{
	int32_t most = t->world > 0 ? t->world - 1 : 0;
	for (size_t i = 0; i < t->nall; i++) {
		most = t->all[i].rank > most ? t->all[i].rank : most;
	}
	size_t n = (size_t)most + 1;
	struct well *wells = ff_xcalloc(n, sizeof *wells);
	for (size_t i = 0; i < t->nstreams; i++) {
		const struct ff_stream *s = t->streams[i];
		for (size_t j = 0; j < s->nlanes; j++) {
			const struct ff_lane *l = s->lanes[j];
			if (!l->progress.set && !l->success.set) {
				continue;
			}
			int32_t r = ff_timeline_speaker(
				t, s, l->tag, ff_timeline_attempt_at(t, s, l->last_offset));
			if (r == FF_UNKNOWN || (size_t)r >= n) {
				continue;
			}
			ff_when_later(
				&wells[r].progress, ff_timeline_lane_when(t, s, &l->progress));
			ff_when_later(&wells[r].success, ff_timeline_lane_when(t, s, &l->success));
		}
	}
	*ret_n = n;
	return wells;
}

/* Told that it did not end well: then what follows the success marker is the failure. Where nobody
 * told the end, a rank that left with an error tells it. */
bool ff_timeline_ended_badly(const struct ff_timeline *t)
{
	if (ff_facts_control(t->facts, "job@end")) {
		return ff_facts_ended(t->facts) && !ff_facts_ended_well(t->facts);
	}
	return t->maps->bad_exit;
}

static bool after_success(
	const struct ff_timeline *t, const struct ff_sighting *s, const struct well *w)
{
	if (ff_timeline_ended_badly(t)) {
		return false;
	}
	if (s->stream && s->ev->lane < s->stream->nlanes && !shared_lane(t, s)) {
		const struct ff_lane *l = s->stream->lanes[s->ev->lane];
		if (l->success.set && l->success.offset < s->ev->offset) {
			return true;
		}
	}
	return w && ff_when_order(w->success, s->when) == FF_BEFORE;
}

static enum ff_weight weigh(
	const struct ff_timeline *t, struct ff_sighting *s, const struct well *w)
{
	const struct ff_event *e = s->ev;
	if (e->kind != FF_EVENT_FAULT || e->role == FF_ROLE_NOISE || e->role == FF_ROLE_CONTEXT) {
		return FF_WEIGHT_NONE;
	}
	if (after_success(t, s, w)) {
		return FF_WEIGHT_NONE;
	}
	s->unrecovered = true;
	bool went_on = e->recovered && !shared_lane(t, s);
	if (went_on || (w && ff_when_order(s->when, w->progress) == FF_BEFORE)) {
		s->unrecovered = false;
		return FF_WEIGHT_PAST;
	}
	return e->handled || e->quoted ? FF_WEIGHT_ECHO : FF_WEIGHT_FULL;
}

/* A table's copy of a traceback stands for its rank where the rank itself was not captured. */
static bool only_copy(const struct ff_timeline *t, const struct ff_sighting *s)
{
	if (!s->ev->quoted || s->rank == FF_UNKNOWN || s->speaker != FF_UNKNOWN) {
		return false;
	}
	for (size_t i = 0; i < t->nall; i++) {
		const struct ff_sighting *o = &t->all[i];
		if (o->rank == s->rank && o->attempt == s->attempt && !o->ev->quoted &&
			o->weight == FF_WEIGHT_FULL) {
			return false;
		}
	}
	return true;
}

void ff_timeline_weigh(struct ff_timeline *t)
{
	size_t n, copies = 0;
	struct well *wells = collect_wells(t, &n);
	for (size_t i = 0; i < t->nall; i++) {
		struct ff_sighting *s = &t->all[i];
		const struct well *w = NULL;
		if (s->rank != FF_UNKNOWN && (size_t)s->rank < n) {
			w = &wells[s->rank];
		}
		s->weight = weigh(t, s, w);
	}
	free(wells);
	/* Tables are small; the cap keeps a hostile log from making this quadratic. */
	for (size_t i = 0; i < t->nall && copies < 1024; i++) {
		struct ff_sighting *s = &t->all[i];
		if (s->weight == FF_WEIGHT_ECHO && s->ev->quoted && !s->ev->handled) {
			copies++;
			s->weight = only_copy(t, s) ? FF_WEIGHT_FULL : s->weight;
		}
	}
}
