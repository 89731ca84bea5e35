#include "core/stream_own.h"

#include "base/arr.h"
#include "base/mask.h"

#include <stdio.h>
#include <stdlib.h>

#define SECRET_MOST 256u /* bytes that a secret may reach beyond the evidence's end */
#define POOL_CAP (2 * FF_EVENTS_HALF)
#define BURST (60 * FF_SECOND) /* within which repeats in a node's own log are one event */

/* ---- from a hit to an event */

/* Makes the events of one record, one after the other. */
struct maker {
	const struct ff_stream *s;
	const struct ff_digest *d;
	const struct ff_lane *lane;
	uint32_t lane_index;
	uint32_t hits;    /* so far, of this record */
	uint32_t next_n;  /* events so far: the n of the next one */
	uint64_t *counts; /* of the job, or thrown away */
	void (*fn)(void *ud, struct maker *mk, struct ff_event *e, struct ff_lane_event *key);
	void *ud;
};

static char *masked(struct maker *mk, struct ff_str text, size_t most, size_t *ret_n)
{
	/* A secret that is cut at the end is masked too: it is looked for before the cut. */
	size_t n = text.n < most + SECRET_MOST ? text.n : most + SECRET_MOST;
	char *p = ff_xmemdup(text.n ? text.p : "", n);
	mk->counts[FF_COUNT_secrets] += ff_mask(p, n);
	n = n < most ? n : most;
	p[n] = '\0';
	if (ret_n) {
		*ret_n = n;
	}
	return p;
}

static uint64_t fingerprint_of(const char *fault, struct ff_str text)
{
	struct ff_buf plain = {0};
	ptrdiff_t lf = ff_str_chr(text, '\n', 0);
	text.n = lf < 0 ? text.n : (size_t)lf;
	ff_buf_addz(&plain, fault);
	ff_buf_addc(&plain, '\n');
	ff_event_normalise(text, &plain);
	uint64_t hash = ff_str_hash(ff_buf_str(&plain), FF_HASH_INIT);
	ff_buf_finish(&plain);
	return hash;
}

/* Who speaks, who is spoken of, and of which operation: where one lane holds the words of many,
 * these tell them apart. Two victims of the kernel, or two GPUs, are two events. */
static bool tells_apart(enum ff_field_id id)
{
	static const enum ff_field_id ids[] = {FF_F_rank, FF_F_pg_rank, FF_F_peer_rank,
		FF_F_peer_local_rank, FF_F_rank_a, FF_F_rank_b, FF_F_failed_ranks,
		FF_F_missing_ranks, FF_F_group_ranks, FF_F_busid, FF_F_seq, FF_F_ranks,
		FF_F_local_rank, FF_F_pid, FF_F_bdf, FF_F_cgroup, FF_F_node, FF_F_pod, FF_F_addr};
	for (size_t i = 0; i < sizeof ids / sizeof ids[0]; i++) {
		if (ids[i] == id) {
			return true;
		}
	}
	return false;
}

/* Faults fold by what they say, numbers aside, and the ranks they speak of; exits and facts only
 * if all their fields are the same: the pids of "Sending process N closing signal" are what those
 * lines are for. A sign is what a healthy process prints about itself, however often: the first of
 * a lane and of each GPU or address in it is kept with its fields, the others are counted. */
struct ff_lane_event ff_stream_key(const struct ff_event *e)
{
	bool fault = e->kind == FF_EVENT_FAULT && e->role != FF_ROLE_CONTEXT;
	struct ff_lane_event key = {
		.offset = e->offset,
		.n = e->n,
		.fault = fault,
		.pool = fault                      ? 0
			: e->kind == FF_EVENT_EXIT ? 1
			: e->kind == FF_EVENT_SIGN ? 2
						   : 3,
	};
	unsigned char head[2] = {(unsigned char)e->kind, (unsigned char)e->role};
	uint64_t hash = ff_str_hash(ff_str_n(head, sizeof head), FF_HASH_INIT);
	hash = ff_str_hash(ff_str_z(e->fault), hash);
	bool sign = e->kind == FF_EVENT_SIGN;
	bool by_text = sign ||
		(e->kind == FF_EVENT_FAULT &&
			(e->role == FF_ROLE_PRIMARY || e->role == FF_ROLE_SECONDARY));
	hash = sign ? ff_str_hash(ff_str_z(e->signature), hash)
		    : ff_str_hash(ff_str_n(&e->fingerprint, sizeof e->fingerprint), hash);
	bool bare = sign && !ff_event_field(e, FF_F_busid).n && !ff_event_field(e, FF_F_addr).n;
	for (size_t i = 0; i < e->fields.n && !bare; i++) {
		if (by_text && !tells_apart(e->fields.v[i].id)) {
			continue;
		}
		unsigned char id[2] = {0, (unsigned char)e->fields.v[i].id};
		hash = ff_str_hash(ff_str_n(id, sizeof id), hash);
		hash = ff_str_hash(ff_str_z(e->fields.v[i].value), hash);
	}
	key.key = hash;
	return key;
}

/* Distributed checkpoint quotes the failed rank on every rank, also on that one: there it is its
 * own. */
static bool is_own(const struct maker *mk, const struct ff_record *rec, const struct ff_hit *hit)
{
	struct ff_tag tag = mk->lane->tag;
	int64_t rank, own = tag.kind == FF_TAG_GLOBAL ? tag.value : FF_UNKNOWN;
	if (tag.kind == FF_TAG_NONE) {
		own = mk->s->origin.rank;
	}
	return !rec->quoted && own != FF_UNKNOWN &&
		ff_str_int(ff_fields_get(&hit->fields, FF_F_rank), &rank) && rank == own;
}

static void fill(
	struct maker *mk, const struct ff_record *rec, struct ff_hit *hit, struct ff_event *e)
{
	const struct ff_signature *sig = hit->text ? hit->text->sig : NULL;
	const struct ff_record_line *at = &rec->lines[hit->line];
	*e = (struct ff_event){
		.offset = rec->lines[0].offset,
		.n = mk->next_n,
		.line = rec->lines[0].number,
		.at_offset = at->offset,
		.at_line = at->number,
		.kind = sig ? sig->kind : FF_EVENT_FAULT,
		.role = sig ? sig->role : FF_ROLE_PRIMARY,
		.fault = ff_xstrdup(sig ? sig->id : FF_MATCH_UNKNOWN),
		.signature = ff_xstrdup(hit->text ? hit->text->name : FF_MATCH_UNKNOWN "/0"),
		.tag = rec->unowned && !rec->handled ? FF_TAG_INIT : mk->lane->tag,
		.attempt = mk->lane->attempt,
		.stamp = rec->stamp,
		.claimed = rec->claimed,
		.fields = hit->fields,
		.handled = rec->handled,
		.quoted = hit->quoted && !is_own(mk, rec, hit),
		.lane = mk->lane_index,
		.count = hit->copies,
		.last = {at->offset, at->number, rec->stamp},
		.dirty = true,
	};
	for (size_t i = 0; i < e->fields.n; i++) {
		char *value = e->fields.v[i].value;
		mk->counts[FF_COUNT_secrets] += ff_mask(value, strlen(value));
	}
	if (rec->repeats > 0) {
		char text[24];
		(void)snprintf(text, sizeof text, "%lld", (long long)rec->repeats);
		ff_fields_set(&e->fields, FF_F_repeats, ff_str_z(text));
	}
	e->text = masked(mk, hit->evidence, FF_EVIDENCE_MAX, &e->text_len);
	bool own = e->role == FF_ROLE_PRIMARY || e->role == FF_ROLE_SECONDARY;
	if (hit->frame.n && own) {
		e->frame = masked(mk, hit->frame, hit->frame.n, NULL);
	}
	if (e->claimed.us == FF_TIME_NONE &&
		!ff_stamp_parse(ff_record_line_text(rec, hit->line), &e->claimed)) {
		e->claimed = FF_CLAIMED_NONE;
	}
	e->fingerprint = fingerprint_of(e->fault, ff_str_n(e->text, e->text_len));
}

static void on_hit(void *ud, const struct ff_record *rec, struct ff_hit *hit)
{
	struct maker *mk = ud;
	/* Noise is what the catalogue knows to be no fault: nothing to keep. */
	bool noise = hit->text && hit->text->sig->role == FF_ROLE_NOISE;
	if (noise || mk->hits >= FF_RECORD_EVENTS) {
		mk->counts[FF_COUNT_record_events] += noise ? 0 : 1;
		ff_fields_finish(&hit->fields);
		return;
	}
	mk->hits++;
	struct ff_event e;
	fill(mk, rec, hit, &e);
	struct ff_lane_event key = ff_stream_key(&e);
	mk->fn(mk->ud, mk, &e, &key);
}

static void make(struct maker *mk, const struct ff_record *rec)
{
	mk->lane_index = ff_stream_lane_index(mk->s, mk->lane);
	mk->counts[FF_COUNT_match_limit] += ff_matcher_run(mk->d->matcher, rec, on_hit, mk);
}

/* ---- where events are */

static int cmp_place(uint64_t offset_a, uint32_t n_a, uint64_t offset_b, uint32_t n_b)
{
	if (offset_a != offset_b) {
		return offset_a < offset_b ? -1 : 1;
	}
	return (n_a > n_b) - (n_a < n_b);
}

/* Index of the first event that is not before (offset, n). */
static size_t lower_bound(const struct ff_stream *s, uint64_t offset, uint32_t n)
{
	size_t lo = 0, hi = s->nevents;
	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;
		const struct ff_event *e = &s->events[mid];
		if (cmp_place(e->offset, e->n, offset, n) < 0) {
			lo = mid + 1;
		} else {
			hi = mid;
		}
	}
	return lo;
}

static struct ff_event *find_event(const struct ff_stream *s, const struct ff_lane_event *key)
{
	size_t i = lower_bound(s, key->offset, key->n);
	bool found =
		i < s->nevents && s->events[i].offset == key->offset && s->events[i].n == key->n;
	return found ? &s->events[i] : NULL;
}

static uint64_t last_place(const struct ff_event *e)
{
	return e->count > 1 ? e->last.offset : e->at_offset;
}

static bool is_same_field(const struct ff_event *a, const struct ff_event *b, enum ff_field_id id)
{
	return ff_str_eq(ff_event_field(a, id), ff_event_field(b, id));
}

/* A node's own log goes on for months and speaks of one job after the other: there a repeat is the
 * same event only within a minute of it, and if it is about the same job. */
static bool is_one_burst(const struct ff_event *a, const struct ff_event *b)
{
	if (!is_same_field(a, b, FF_F_job) || !is_same_field(a, b, FF_F_node)) {
		return false;
	}
	ff_usec x = ff_stamp_us(a->stamp), y = ff_stamp_us(b->stamp);
	if (!ff_usec_usable(x) || !ff_usec_usable(y)) {
		x = a->claimed.us;
		y = b->claimed.us;
	}
	return x != FF_TIME_NONE && y != FF_TIME_NONE && (x < y ? y - x : x - y) <= BURST;
}

/* The event of the lane that this one repeats: same key, and for a fault no progress since. */
static struct ff_event *find_twin(const struct ff_stream *s, const struct ff_lane *lane,
	const struct ff_lane_event *key, const struct ff_event *repeat)
{
	for (size_t i = lane->nevents; i > 0; i--) {
		const struct ff_lane_event *other = &lane->events[i - 1];
		if (other->key != key->key) {
			continue;
		}
		struct ff_event *e = find_event(s, other);
		bool progress = e && key->fault && lane->progress.set &&
			lane->progress.offset > last_place(e);
		bool other_time = e && s->of_node && !is_one_burst(e, repeat);
		return progress || other_time ? NULL : e;
	}
	return NULL;
}

static void fold(struct ff_event *into, const struct ff_event *e)
{
	into->count += e->count;
	into->last = (struct ff_place){e->at_offset, e->at_line, e->stamp};
	into->dirty = true;
}

/* ---- keeping */

static void remember(struct ff_lane *lane, const struct ff_lane_event *key, bool recovered)
{
	*FF_ARR_ADD(lane->events, lane->nevents, lane->cevents) = *key;
	lane->unrecovered += key->fault && !recovered;
}

static void drop_event(struct ff_stream *s, struct ff_lane *lane, size_t i)
{
	struct ff_lane_event *key = &lane->events[i];
	size_t at = lower_bound(s, key->offset, key->n);
	struct ff_event *e = &s->events[at];
	lane->unrecovered -= key->fault && !e->recovered;
	*FF_ARR_ADD(s->dropped, s->ndropped, s->cdropped) = key->offset << 8 | (key->n & 0xff);
	ff_event_finish(e);
	memmove(e, e + 1, (s->nevents - at - 1) * sizeof *e);
	s->nevents--;
	memmove(key, key + 1, (lane->nevents - i - 1) * sizeof *key);
	lane->nevents--;
}

/* A pool is full: the oldest one behind its first half goes. */
static void make_room(struct ff_stream *s, struct maker *mk, struct ff_lane *lane, uint8_t pool)
{
	size_t n = 0, victim = 0;
	for (size_t i = 0; i < lane->nevents; i++) {
		if (lane->events[i].pool != pool) {
			continue;
		}
		if (n == FF_EVENTS_HALF) {
			victim = i;
		}
		n++;
	}
	if (n >= POOL_CAP) {
		drop_event(s, lane, victim);
		mk->counts[FF_COUNT_events_dropped]++;
	}
}

/* The event that stands first in the stream. */
static void drop_oldest(struct ff_stream *s)
{
	const struct ff_event *e = &s->events[0];
	struct ff_lane *lane = s->lanes[e->lane];
	size_t i = 0;
	while (lane->events[i].offset != e->offset || lane->events[i].n != e->n) {
		i++;
	}
	drop_event(s, lane, i);
	s->dirty = true;
}

size_t ff_stream_expire(struct ff_stream *s, uint64_t upto)
{
	size_t n = 0;
	for (; s->nevents && s->events[0].offset < upto; n++) {
		drop_oldest(s);
	}
	return n;
}

static void note_fault(struct ff_lane *lane, const struct ff_event *e)
{
	if (e->kind != FF_EVENT_FAULT ||
		(e->role != FF_ROLE_PRIMARY && e->role != FF_ROLE_SECONDARY)) {
		return;
	}
	lane->has_fault = true;
	lane->last_fault_offset = e->offset;
	lane->recovered.set = false;
}

struct keeper {
	struct ff_stream *s;
	struct ff_lane *lane;
};

static void keep(void *ud, struct maker *mk, struct ff_event *e, struct ff_lane_event *key)
{
	struct keeper *k = ud;
	struct ff_stream *s = k->s;
	k->lane->dirty = s->dirty = true;
	note_fault(k->lane, e);
	struct ff_event *twin = find_twin(s, k->lane, key, e);
	if (twin) {
		fold(twin, e);
		ff_event_finish(e);
		return;
	}
	if (!s->of_node) {
		make_room(s, mk, k->lane, key->pool);
	} else if (s->nevents >= FF_NODE_EVENTS) {
		drop_oldest(s);
		mk->counts[FF_COUNT_node_events_dropped]++;
	}
	remember(k->lane, key, false);
	size_t i = lower_bound(s, e->offset, e->n);
	FF_ARR_ROOM(s->events, s->nevents, s->cevents);
	memmove(s->events + i + 1, s->events + i, (s->nevents - i) * sizeof *s->events);
	s->events[i] = *e;
	s->nevents++;
	mk->next_n++;
}

void ff_stream_keep(struct ff_stream *s, const struct ff_digest *d, struct ff_lane *lane,
	const struct ff_record *rec)
{
	struct keeper k = {s, lane};
	struct maker mk = {.s = s, .d = d, .lane = lane, .counts = d->counts, .fn = keep, .ud = &k};
	make(&mk, rec);
}

void ff_stream_recover(struct ff_stream *s, struct ff_lane *lane)
{
	for (size_t i = lane->nevents; i > 0 && lane->unrecovered; i--) {
		const struct ff_lane_event *key = &lane->events[i - 1];
		struct ff_event *e = key->fault ? find_event(s, key) : NULL;
		if (e && !e->recovered) {
			e->recovered = e->dirty = true;
			lane->unrecovered--;
		}
	}
}

void ff_stream_remember(struct ff_stream *s)
{
	for (size_t i = 0; i < s->nlanes; i++) {
		s->lanes[i]->nevents = s->lanes[i]->unrecovered = 0;
	}
	for (size_t i = 0; i < s->nevents; i++) {
		const struct ff_event *e = &s->events[i];
		if (e->lane < s->nlanes) {
			struct ff_lane_event key = ff_stream_key(e);
			remember(s->lanes[e->lane], &key, e->recovered);
		}
	}
}

/* ---- provisional events */

/* Index in the draft of the event at this place, else of a fault of the same key; *n if none. */
static size_t find_drafted(const struct ff_draft *dr, const struct ff_event *twin, uint32_t lane,
	const struct ff_lane_event *key)
{
	for (size_t i = dr->from; i < *dr->n; i++) {
		const struct ff_event *e = &(*dr->list)[i];
		if (twin ? e->offset == twin->offset && e->n == twin->n
			 : e->lane == lane && ff_stream_key(e).key == key->key) {
			return i;
		}
	}
	return *dr->n;
}

/* What repeats a stored event makes a draft of that one, with the count it will have. */
static void draft(void *ud, struct maker *mk, struct ff_event *e, struct ff_lane_event *key)
{
	struct ff_draft *dr = ud;
	const struct ff_event *twin = find_twin(mk->s, mk->lane, key, e);
	size_t i = find_drafted(dr, twin, e->lane, key);
	if (twin && i == *dr->n) {
		*FF_ARR_ADD(*dr->list, *dr->n, *dr->cap) = ff_event_copy(twin);
	}
	if (i < *dr->n) {
		fold(&(*dr->list)[i], e);
		ff_event_finish(e);
		return;
	}
	*FF_ARR_ADD(*dr->list, *dr->n, *dr->cap) = *e;
	mk->next_n++;
}

void ff_stream_draft(struct ff_draft *dr, const struct ff_lane *lane, const struct ff_record *rec)
{
	uint64_t ignored[FF_COUNT_COUNT] = {0};
	struct maker mk = {
		.s = dr->stream,
		.d = dr->digest,
		.lane = lane,
		.counts = ignored,
		.fn = draft,
		.ud = dr,
	};
	make(&mk, rec);
}
