/* A node's own log as a run sees it: a stream that nobody feeds, which holds copies of the events
 * that concern the run (feed/nodes.c decides which), folded and capped as if their lines had come
 * to it. Its lanes say no more than these events do: healthy lines of a node are nobody's. */
#include "core/stream_own.h"

#include "base/arr.h"

#include <stdlib.h>

struct shown {
	struct ff_event *v;
	struct ff_lane_event *keys;
	size_t n;
};

static bool is_same_stamp(struct ff_stamp a, struct ff_stamp b)
{
	return a.arrived == b.arrived && a.captured == b.captured;
}

static bool is_same_text(const char *a, size_t na, const char *b, size_t nb)
{
	return !a == !b && (!a || (na == nb && !memcmp(a, b, na)));
}

static bool is_same_textz(const char *a, const char *b)
{
	return is_same_text(a, a ? strlen(a) : 0, b, b ? strlen(b) : 0);
}

static bool is_same_fields(const struct ff_fields *a, const struct ff_fields *b)
{
	bool same = a->n == b->n;
	for (size_t i = 0; i < a->n && same; i++) {
		same = a->v[i].id == b->v[i].id && !strcmp(a->v[i].value, b->v[i].value);
	}
	return same;
}

/* Of two events at one place. */
static bool is_same(const struct ff_event *a, const struct ff_event *b)
{
	return a->at_offset == b->at_offset && a->kind == b->kind && a->role == b->role &&
		is_same_textz(a->fault, b->fault) && is_same_textz(a->signature, b->signature) &&
		is_same_stamp(a->stamp, b->stamp) && is_same_fields(&a->fields, &b->fields) &&
		is_same_text(a->text, a->text_len, b->text, b->text_len) &&
		is_same_textz(a->frame, b->frame) && a->handled == b->handled &&
		a->quoted == b->quoted && a->recovered == b->recovered && a->lane == b->lane &&
		a->count == b->count && a->last.offset == b->last.offset;
}

static int cmp_place(const struct ff_event *a, const struct ff_event *b)
{
	if (a->offset != b->offset) {
		return a->offset < b->offset ? -1 : 1;
	}
	return (a->n > b->n) - (a->n < b->n);
}

/* A repeat goes into the event that it repeats. */
static bool fold(struct shown *s, const struct ff_event *e, uint64_t key)
{
	for (size_t i = s->n; i > 0; i--) {
		struct ff_event *into = &s->v[i - 1];
		if (s->keys[i - 1].key == key && into->lane == e->lane) {
			into->count += e->count;
			into->last = e->count > 1 ? e->last :
				(struct ff_place){e->at_offset, e->at_line, e->stamp};
			return true;
		}
	}
	return false;
}

/* Of each pool of a lane the first and the last events stay. */
static void cap(struct shown *s, uint64_t *counts)
{
	for (size_t i = 0; i < s->n; i++) {
		size_t before = 0, behind = 0;
		for (size_t k = 0; k < s->n; k++) {
			bool same = s->v[k].lane == s->v[i].lane &&
				s->keys[k].pool == s->keys[i].pool;
			before += same && k < i;
			behind += same && k > i;
		}
		if (before >= FF_EVENTS_HALF && behind >= FF_EVENTS_HALF) {
			ff_event_finish(&s->v[i]);
			memmove(s->v + i, s->v + i + 1, (s->n - i - 1) * sizeof *s->v);
			memmove(s->keys + i, s->keys + i + 1, (s->n - i - 1) * sizeof *s->keys);
			s->n--;
			i--;
			counts[FF_COUNT_events_dropped]++;
		}
	}
}

static void start_lane(struct ff_lane *l)
{
	l->lines = l->bytes = l->first_offset = l->last_offset = l->last_fault_offset = 0;
	l->first = l->last = FF_STAMP_NONE;
	l->first_claimed = FF_CLAIMED_NONE;
	l->has_fault = false;
	l->dirty = true;
}

static void count_event(struct ff_lane *l, const struct ff_event *e)
{
	struct ff_stamp last = e->count > 1 ? e->last.stamp : e->stamp;
	if (!l->lines) {
		l->first_offset = e->offset;
		l->first = e->stamp;
		l->first_claimed = e->claimed;
	}
	l->lines += e->count;
	l->bytes += e->text_len;
	l->last_offset = e->count > 1 ? e->last.offset : e->at_offset;
	ff_usec us = ff_stamp_us(last), before = ff_stamp_us(l->last);
	if (us != FF_TIME_NONE && (before == FF_TIME_NONE || us > before)) {
		l->last = last;
	}
	bool fault = e->kind == FF_EVENT_FAULT &&
		(e->role == FF_ROLE_PRIMARY || e->role == FF_ROLE_SECONDARY);
	l->has_fault = l->has_fault || fault;
	l->last_fault_offset = fault ? e->offset : l->last_fault_offset;
}

/* Old events that are gone have to go from the store; new and changed ones are to be written. */
static bool compare(struct ff_stream *s, struct shown *shown)
{
	bool changed = false;
	size_t i = 0, k = 0;
	while (i < s->nevents || k < shown->n) {
		int d = i == s->nevents ? 1 : k == shown->n ? -1 :
			cmp_place(&s->events[i], &shown->v[k]);
		bool same = d == 0 && is_same(&s->events[i], &shown->v[k]);
		if (d < 0) {
			*FF_ARR_ADD(s->dropped, s->ndropped, s->cdropped) =
				s->events[i].offset << 8 | (s->events[i].n & 0xff);
		}
		if (d >= 0) {
			shown->v[k].dirty = !same || s->events[i].dirty;
		}
		changed = changed || !same;
		i += d <= 0;
		k += d >= 0;
	}
	return changed;
}

static void take_over(struct ff_stream *s, const struct shown *shown)
{
	uint64_t end = s->fed;
	for (size_t i = 0; i < s->nevents; i++) {
		ff_event_finish(&s->events[i]);
	}
	free(s->events);
	s->events = shown->v;
	s->nevents = s->cevents = shown->n;
	for (size_t i = 0; i < s->nlanes; i++) {
		start_lane(s->lanes[i]);
	}
	for (size_t i = 0; i < s->nevents; i++) {
		const struct ff_event *e = &s->events[i];
		uint64_t last = e->count > 1 ? e->last.offset : e->at_offset;
		count_event(s->lanes[e->lane], e);
		end = last >= end ? last + 1 : end;
	}
	ff_stream_restore(s, end, end, false, FF_TAG_INIT, 0);
	s->dirty = true;
}

bool ff_stream_show(struct ff_stream *s, struct ff_event *list, size_t n, uint64_t *counts)
{
	struct shown shown = {.v = ff_xcalloc(n + 1, sizeof *shown.v),
		.keys = ff_xcalloc(n + 1, sizeof *shown.keys)};
	for (size_t i = 0; i < n; i++) {
		struct ff_event *e = &list[i];
		e->lane = ff_stream_lane(s, e->tag, e->attempt, counts)->index;
		struct ff_lane_event key = ff_stream_key(e);
		if (fold(&shown, e, key.key)) {
			ff_event_finish(e);
			continue;
		}
		shown.keys[shown.n] = key;
		shown.v[shown.n++] = *e;
	}
	free(list);
	cap(&shown, counts);
	bool changed = compare(s, &shown);
	if (changed) {
		take_over(s, &shown);
	} else {
		for (size_t i = 0; i < shown.n; i++) {
			ff_event_finish(&shown.v[i]);
		}
		free(shown.v);
	}
	free(shown.keys);
	return changed;
}
