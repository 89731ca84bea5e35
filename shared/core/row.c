#include "core/row.h"

#include "base/arr.h"
#include "base/limits.h"
#include "base/mem.h"

#include <stdlib.h>

#define VERSION 1
#define LANE_EVENTS_MAX 4096u /* events of a lane in a row; more is damage */

enum { HAS_YEAR = 1, HAS_ZONE = 2, MONO_FRACTION = 4 };

void ff_row_int(struct ff_buf *out, int64_t v)
{
	uint64_t u = ((uint64_t)v << 1) ^ (v < 0 ? UINT64_MAX : 0);
	while (u >= 0x80) {
		ff_buf_addc(out, (char)(u | 0x80));
		u >>= 7;
	}
	ff_buf_addc(out, (char)u);
}

bool ff_row_take_int(struct ff_str *in, int64_t *ret)
{
	uint64_t u = 0;
	for (size_t i = 0; i < in->n && i < 10; i++) {
		uint64_t byte = (unsigned char)in->p[i];
		if (i == 9 && byte > 1) {
			return false;
		}
		u |= (byte & 0x7f) << (7 * i);
		if (byte < 0x80) {
			*ret = (int64_t)((u >> 1) ^ (u & 1 ? UINT64_MAX : 0));
			*in = ff_str_skip(*in, i + 1);
			return true;
		}
	}
	return false;
}

unsigned ff_row_claimed_flags(const struct ff_claimed *c)
{
	return (c->has_year ? HAS_YEAR : 0u) | (c->has_zone ? HAS_ZONE : 0u) |
		(c->mono_fraction ? MONO_FRACTION : 0u);
}

struct ff_claimed ff_row_claimed(ff_usec us, uint32_t grain, unsigned flags)
{
	return (struct ff_claimed){
		.us = us,
		.grain = grain,
		.has_year = flags & HAS_YEAR,
		.has_zone = flags & HAS_ZONE,
		.mono_fraction = flags & MONO_FRACTION,
	};
}

/* Differences wrap around, so that no stamp overflows. */
static int64_t minus(int64_t a, int64_t b)
{
	return (int64_t)((uint64_t)a - (uint64_t)b);
}

static int64_t plus(int64_t a, int64_t b)
{
	return (int64_t)((uint64_t)a + (uint64_t)b);
}

void ff_row_pairs(const struct ff_pair *pairs, size_t n, struct ff_buf *out)
{
	ff_usec came = 0;
	int64_t ahead = 0;
	for (size_t i = 0; i < n; i++) {
		const struct ff_pair *p = &pairs[i];
		int64_t now_ahead = minus(p->claimed.us, p->came);
		ff_row_int(out, minus(p->came, came));
		ff_row_int(out, minus(now_ahead, ahead));
		ff_row_int(out, p->claimed.grain);
		ff_row_int(out, ff_row_claimed_flags(&p->claimed));
		came = p->came;
		ahead = now_ahead;
	}
}

bool ff_row_take_pairs(struct ff_str in, struct ff_pair **ret, size_t *ret_n)
{
	struct ff_pair pairs[FF_PAIRS_MAX];
	size_t n = 0;
	ff_usec came = 0;
	int64_t ahead = 0;
	while (in.n) {
		int64_t d_came, d_ahead, grain, flags;
		if (n == FF_PAIRS_MAX || !ff_row_take_int(&in, &d_came) ||
			!ff_row_take_int(&in, &d_ahead) || !ff_row_take_int(&in, &grain) ||
			!ff_row_take_int(&in, &flags) || grain < 0 || grain > UINT32_MAX ||
			flags < 0 || flags > 7) {
			return false;
		}
		came = plus(came, d_came);
		ahead = plus(ahead, d_ahead);
		pairs[n++] = (struct ff_pair){
			came, ff_row_claimed(plus(came, ahead), (uint32_t)grain, (unsigned)flags)};
	}
	*ret = n ? (void *)ff_xmemdup(pairs, n * sizeof *pairs) : NULL;
	*ret_n = n;
	return true;
}

/* ---- parts of a row */

struct reader {
	struct ff_str in;
	bool bad;
};

static int64_t take(struct reader *r)
{
	int64_t v = 0;
	r->bad = r->bad || !ff_row_take_int(&r->in, &v);
	return r->bad ? 0 : v;
}

/* A number from `least` to `most`. */
static int64_t take_in(struct reader *r, int64_t least, int64_t most)
{
	int64_t v = take(r);
	r->bad = r->bad || v < least || v > most;
	return r->bad ? least : v;
}

static bool take_bool(struct reader *r)
{
	return take_in(r, 0, 1);
}

/* 0 is no text, else the length and 1. */
static void put_text(struct ff_buf *out, const char *p, size_t n)
{
	ff_row_int(out, p ? (int64_t)n + 1 : 0);
	ff_buf_add(out, p ? p : "", p ? n : 0);
}

static void put_textz(struct ff_buf *out, const char *z)
{
	put_text(out, z, z ? strlen(z) : 0);
}

static struct ff_str take_view(struct reader *r)
{
	int64_t n = take_in(r, 0, (int64_t)r->in.n + 1);
	if (!n || (size_t)n - 1 > r->in.n) {
		r->bad = r->bad || n;
		return (struct ff_str){NULL, 0};
	}
	struct ff_str s = ff_str_n(r->in.p, (size_t)n - 1);
	r->in = ff_str_skip(r->in, s.n);
	return s;
}

static char *take_text(struct reader *r, size_t *ret_n)
{
	struct ff_str s = take_view(r);
	if (ret_n) {
		*ret_n = s.n;
	}
	return s.p ? ff_xmemdup(s.p, s.n) : NULL;
}

static void put_stamp(struct ff_buf *out, struct ff_stamp s)
{
	ff_row_int(out, s.arrived);
	ff_row_int(out, s.captured);
}

static struct ff_stamp take_stamp(struct reader *r)
{
	struct ff_stamp s;
	s.arrived = take(r);
	s.captured = take(r);
	return s;
}

static void put_claimed(struct ff_buf *out, const struct ff_claimed *c)
{
	ff_row_int(out, c->us);
	ff_row_int(out, c->grain);
	ff_row_int(out, ff_row_claimed_flags(c));
}

static struct ff_claimed take_claimed(struct reader *r)
{
	ff_usec us = take(r);
	uint32_t grain = (uint32_t)take_in(r, 0, UINT32_MAX);
	return ff_row_claimed(us, grain, (unsigned)take_in(r, 0, 7));
}

static void put_tag(struct ff_buf *out, struct ff_tag tag)
{
	ff_row_int(out, tag.kind);
	ff_row_int(out, tag.value);
}

static struct ff_tag take_tag(struct reader *r)
{
	struct ff_tag tag = {(enum ff_tag_kind)take_in(r, FF_TAG_NONE, FF_TAG_PID), 0};
	tag.value = take(r);
	return r->bad ? FF_TAG_INIT : tag;
}

static void put_moment(struct ff_buf *out, const struct ff_moment *m)
{
	ff_row_int(out, m->set);
	if (m->set) {
		ff_row_int(out, (int64_t)m->offset);
		ff_row_int(out, m->line);
		put_stamp(out, m->stamp);
		put_textz(out, m->text);
	}
}

static void take_moment(struct reader *r, struct ff_moment *m)
{
	free(m->text);
	*m = (struct ff_moment){.set = take_bool(r)};
	if (m->set) {
		m->offset = (uint64_t)take(r);
		m->line = take(r);
		m->stamp = take_stamp(r);
		struct ff_str text = take_view(r);
		m->text = text.p ? ff_xmemdup(text.p, text.n < FF_PROGRESS_TEXT ? text.n :
			FF_PROGRESS_TEXT) : NULL;
	}
}

/* ---- lanes */

static void put_lane(struct ff_buf *out, const struct ff_lane *l)
{
	struct ff_buf pairs = {0};
	put_tag(out, l->tag);
	ff_row_int(out, l->attempt);
	ff_row_int(out, (int64_t)l->lines);
	ff_row_int(out, (int64_t)l->bytes);
	ff_row_int(out, (int64_t)l->first_offset);
	ff_row_int(out, (int64_t)l->last_offset);
	put_stamp(out, l->first);
	put_stamp(out, l->last);
	put_claimed(out, &l->first_claimed);
	put_moment(out, &l->progress);
	put_moment(out, &l->recovered);
	put_moment(out, &l->success);
	ff_row_int(out, (int64_t)l->steps);
	for (size_t i = 0; i < 48; i++) {
		ff_row_int(out, l->cadence[i]);
	}
	ff_row_pairs(l->pairs, l->npairs, &pairs);
	put_text(out, pairs.p ? pairs.p : "", pairs.len);
	ff_buf_finish(&pairs);
	ff_row_int(out, (int64_t)l->last_fault_offset);
	ff_row_int(out, l->has_fault);
}

static void take_lane(struct reader *r, struct ff_stream *s)
{
	struct ff_tag tag = take_tag(r);
	int32_t attempt = (int32_t)take_in(r, INT32_MIN, INT32_MAX);
	size_t n = s->nlanes;
	struct ff_lane *l = r->bad ? NULL : ff_stream_lane(s, tag, attempt, NULL);
	if (!l || s->nlanes != n + 1) { /* twice the same, or too many */
		r->bad = true;
		return;
	}
	l->lines = (uint64_t)take(r);
	l->bytes = (uint64_t)take(r);
	l->first_offset = (uint64_t)take(r);
	l->last_offset = (uint64_t)take(r);
	l->first = take_stamp(r);
	l->last = take_stamp(r);
	l->first_claimed = take_claimed(r);
	take_moment(r, &l->progress);
	take_moment(r, &l->recovered);
	take_moment(r, &l->success);
	l->steps = (uint64_t)take(r);
	for (size_t i = 0; i < 48; i++) {
		l->cadence[i] = (uint32_t)take_in(r, 0, UINT32_MAX);
	}
	struct ff_str pairs = take_view(r);
	r->bad = r->bad || !ff_row_take_pairs(pairs, &l->pairs, &l->npairs);
	l->cpairs = l->npairs;
	l->last_fault_offset = (uint64_t)take(r);
	l->has_fault = take_bool(r);
}

/* ---- events */

static void put_event(struct ff_buf *out, const struct ff_event *e)
{
	ff_row_int(out, (int64_t)e->offset);
	ff_row_int(out, e->n);
	ff_row_int(out, e->line);
	ff_row_int(out, (int64_t)e->at_offset);
	ff_row_int(out, e->at_line);
	ff_row_int(out, e->kind);
	ff_row_int(out, e->role);
	put_textz(out, e->fault);
	put_textz(out, e->signature);
	put_tag(out, e->tag);
	ff_row_int(out, e->attempt);
	put_stamp(out, e->stamp);
	put_claimed(out, &e->claimed);
	ff_row_int(out, (int64_t)e->fields.n);
	for (size_t i = 0; i < e->fields.n; i++) {
		put_textz(out, ff_field_name(e->fields.v[i].id));
		put_textz(out, e->fields.v[i].value);
	}
	put_text(out, e->text, e->text_len);
	put_textz(out, e->frame);
	ff_row_int(out, (int64_t)(e->handled | e->quoted << 1 | e->recovered << 2));
	ff_row_int(out, (int64_t)e->fingerprint);
	ff_row_int(out, e->lane);
	ff_row_int(out, e->count);
	ff_row_int(out, (int64_t)e->last.offset);
	ff_row_int(out, e->last.line);
	put_stamp(out, e->last.stamp);
}

static void take_fields(struct reader *r, struct ff_fields *ret)
{
	for (int64_t n = take_in(r, 0, 256); n > 0 && !r->bad; n--) {
		struct ff_str name = take_view(r), value = take_view(r);
		int id = ff_field_parse(name);
		if (id >= 0 && value.p) { /* a name that this program doesn't know is left out */
			ff_fields_set(ret, (enum ff_field_id)id, value);
		}
	}
}

static void take_event(struct reader *r, struct ff_stream *s)
{
	struct ff_event e = {.offset = (uint64_t)take(r)};
	e.n = (uint32_t)take_in(r, 0, UINT32_MAX);
	e.line = take(r);
	e.at_offset = (uint64_t)take(r);
	e.at_line = take(r);
	e.kind = (enum ff_event_kind)take_in(r, 0, FF_EVENT_SIGN);
	e.role = (enum ff_role)take_in(r, 0, FF_ROLE_CONTEXT);
	e.fault = take_text(r, NULL);
	e.signature = take_text(r, NULL);
	e.tag = take_tag(r);
	e.attempt = (int32_t)take_in(r, INT32_MIN, INT32_MAX);
	e.stamp = take_stamp(r);
	e.claimed = take_claimed(r);
	take_fields(r, &e.fields);
	e.text = take_text(r, &e.text_len);
	e.frame = take_text(r, NULL);
	int64_t is = take_in(r, 0, 7);
	e.handled = is & 1;
	e.quoted = is & 2;
	e.recovered = is & 4;
	e.fingerprint = (uint64_t)take(r);
	e.lane = (uint32_t)take_in(r, 0, UINT32_MAX);
	e.count = (uint32_t)take_in(r, 1, UINT32_MAX);
	e.last.offset = (uint64_t)take(r);
	e.last.line = take(r);
	e.last.stamp = take_stamp(r);
	const struct ff_event *last = s->nevents ? &s->events[s->nevents - 1] : NULL;
	bool follows = !last || last->offset < e.offset ||
		(last->offset == e.offset && last->n < e.n);
	if (r->bad || !e.fault || !e.signature || !e.text || e.lane >= s->nlanes || !follows) {
		r->bad = true;
		ff_event_finish(&e);
		return;
	}
	*ff_stream_restore_event(s) = e;
}

/* ---- a stream */

static bool is_before(const struct ff_event *a, const struct ff_event *b)
{
	return a->offset != b->offset ? a->offset < b->offset : a->n < b->n;
}

/* Both lists are in order; one of the second stands for its namesake of the first. Returns how
 * many, and writes them unless out is NULL. */
static size_t put_events(const struct ff_stream *s, const struct ff_event *open, size_t nopen,
	struct ff_buf *out)
{
	size_t i = 0, k = 0, n = 0;
	while (i < s->nevents || k < nopen) {
		bool first = k == nopen || (i < s->nevents && is_before(&s->events[i], &open[k]));
		const struct ff_event *e = first ? &s->events[i++] : &open[k++];
		if (!first && i < s->nevents && !is_before(e, &s->events[i])) {
			i++;
		}
		if (out) {
			put_event(out, e);
		}
		n++;
	}
	return n;
}

static int by_place(const void *a, const void *b)
{
	return is_before(a, b) ? -1 : is_before(b, a);
}

void ff_row_put(const struct ff_stream *s, const struct ff_digest *d, struct ff_buf *out)
{
	struct ff_event *open = NULL;
	size_t n = 0, cap = 0;
	ff_stream_provisional(s, d, &open, &n, &cap);
	if (n) {
		qsort(open, n, sizeof *open, by_place);
	}
	ff_row_int(out, VERSION);
	ff_row_int(out, (int64_t)s->fed);
	ff_row_int(out, s->gap);
	ff_row_int(out, (int64_t)s->nlanes);
	for (size_t i = 0; i < s->nlanes; i++) {
		put_lane(out, s->lanes[i]);
	}
	ff_row_int(out, (int64_t)put_events(s, open, n, NULL));
	(void)put_events(s, open, n, out);
	for (size_t i = 0; i < n; i++) {
		ff_event_finish(&open[i]);
	}
	free(open);
}

bool ff_row_take(struct ff_stream *s, struct ff_str row)
{
	struct reader r = {row, false};
	if (s->fed || s->nlanes || take(&r) != VERSION) {
		return false;
	}
	int64_t fed = take_in(&r, 0, INT64_MAX);
	bool gap = take_bool(&r);
	for (int64_t n = take_in(&r, 0, FF_LANES_MAX); n > 0 && !r.bad; n--) {
		take_lane(&r, s);
	}
	int64_t most = (int64_t)(s->nlanes * LANE_EVENTS_MAX);
	for (int64_t n = take_in(&r, 0, most); n > 0 && !r.bad; n--) {
		take_event(&r, s);
	}
	ff_stream_restore(s, (uint64_t)fed, (uint64_t)fed, false, FF_TAG_INIT, 0);
	s->gap = gap;
	return !r.bad && !r.in.n;
}
