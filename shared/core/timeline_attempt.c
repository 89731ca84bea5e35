#include "base/arr.h"
#include "core/timeline_own.h"

static const struct ff_marks *marks_of(const struct ff_timeline *t, const struct ff_stream *s)
{
	return &t->maps->marks[s->number];
}

int32_t ff_timeline_attempt_at(
	const struct ff_timeline *t, const struct ff_stream *s, uint64_t offset)
{
	if (s->origin.attempt != FF_UNKNOWN) {
		return s->origin.attempt;
	}
	const struct ff_marks *m = marks_of(t, s);
	int32_t attempt = 0;
	for (size_t i = 0; i < m->n && m->v[i].offset < offset; i++) {
		attempt = m->v[i].attempt;
	}
	return attempt;
}

static void add_mark(struct ff_marks *m, uint64_t offset, int32_t attempt)
{
	if (attempt < 1 || (m->n && m->v[m->n - 1].attempt >= attempt)) {
		return;
	}
	*FF_ARR_ADD(m->v, m->n, m->cap) = (struct ff_restart){offset, attempt};
}

static int32_t declared_attempts(const struct ff_timeline *t)
{
	int32_t most = 0;
	for (size_t i = 0; i < t->nstreams; i++) {
		const struct ff_stream *s = t->streams[i];
		if (s->origin.attempt > most && s->origin.attempt < 10000) {
			most = s->origin.attempt;
		}
	}
	return most;
}

/* Several agents in one stream repeat the same "N attempts left": equal numbers are one restart. */
static void find_marks(struct ff_timeline *t, const struct ff_stream *s, int32_t declared)
{
	struct ff_marks *m = &t->maps->marks[s->number];
	int64_t left_first = FF_UNKNOWN;
	int32_t failed_lines = 0;
	for (size_t i = 0; i < s->nevents; i++) {
		const struct ff_event *e = &s->events[i];
		int64_t count = ff_event_int(e, FF_F_restart_count, FF_UNKNOWN);
		int64_t left = ff_event_int(e, FF_F_attempts_left, FF_UNKNOWN);
		if (e->kind == FF_EVENT_FACT && count >= 0 && count < 10000) {
			/* The rendezvous result comes at the head of its attempt. */
			add_mark(m, e->offset ? e->offset - 1 : 0, (int32_t)count);
		} else if (e->kind == FF_EVENT_FACT && left >= 0 && left < 10000) {
			if (left_first == FF_UNKNOWN) {
				left_first = left;
			}
			add_mark(m, e->offset, (int32_t)(left_first - left + 1));
		}
	}
	if (m->n || s->origin.kind != FF_STREAM_AGENT || s->origin.attempt != FF_UNKNOWN) {
		return;
	}
	/* Restarts are told at level INFO only; "failed (exitcode: ..." comes once a life. */
	for (size_t i = 0; i < s->nevents && failed_lines < declared; i++) {
		const struct ff_event *e = &s->events[i];
		if (e->kind == FF_EVENT_EXIT && ff_event_field(e, FF_F_local_rank).n &&
			ff_event_field(e, FF_F_pid).n && !ff_event_field(e, FF_F_rank).n) {
			add_mark(m, e->offset, ++failed_lines);
		}
	}
}

/* A kernel's or scheduler's word belongs to the attempt during which it was said. */
static int32_t attempt_by_time(const struct ff_timeline *t, struct ff_when when)
{
	int32_t attempt = t->nattempts - 1;
	if (!when.known || when.clock != FF_CLOCK_ARRIVED) {
		return attempt;
	}
	while (attempt > 0 &&
		(t->maps->begins[attempt] == FF_TIME_NONE || t->maps->begins[attempt] > when.us)) {
		attempt--;
	}
	return attempt;
}

static bool outside_of_attempts(const struct ff_sighting *s)
{
	return s->stream && s->attempt == FF_UNKNOWN && s->stream->origin.attempt == FF_UNKNOWN &&
		(s->stream->origin.kind == FF_STREAM_KERNEL ||
			s->stream->origin.kind == FF_STREAM_SCHEDULER);
}

static void note_begin(struct ff_timeline *t, const struct ff_stream *s)
{
	int32_t a = s->origin.attempt;
	for (size_t j = 0; a >= 0 && a < t->nattempts && j < s->nlanes; j++) {
		ff_usec us = s->lanes[j]->first.arrived;
		if (ff_usec_usable(us) &&
			(t->maps->begins[a] == FF_TIME_NONE || us < t->maps->begins[a])) {
			t->maps->begins[a] = us;
		}
	}
}

void ff_timeline_find_attempts(struct ff_timeline *t)
{
	int32_t declared = declared_attempts(t), most = declared;
	for (size_t i = 0; i < t->nstreams; i++) {
		find_marks(t, t->streams[i], declared);
		const struct ff_marks *m = marks_of(t, t->streams[i]);
		if (m->n && m->v[m->n - 1].attempt > most) {
			most = m->v[m->n - 1].attempt;
		}
	}
	for (size_t i = 0; i < t->nall; i++) {
		if (t->all[i].attempt > most && t->all[i].attempt < 10000) {
			most = t->all[i].attempt;
		}
	}
	t->nattempts = most + 1;
	t->maps->begins = FF_ARENA_ARR(&t->arena, ff_usec, (size_t)t->nattempts);
	for (int32_t a = 0; a < t->nattempts; a++) {
		t->maps->begins[a] = FF_TIME_NONE;
	}
	for (size_t i = 0; i < t->nstreams; i++) {
		note_begin(t, t->streams[i]);
	}
	for (size_t i = 0; i < t->nall; i++) {
		struct ff_sighting *s = &t->all[i];
		if (outside_of_attempts(s)) {
			s->attempt = attempt_by_time(t, s->when);
		} else if (s->attempt == FF_UNKNOWN) {
			s->attempt = s->stream ? ff_timeline_attempt_at(t, s->stream, s->ev->offset)
					       : t->nattempts - 1;
		}
		s->attempt = s->attempt < t->nattempts ? s->attempt : t->nattempts - 1;
	}
}
