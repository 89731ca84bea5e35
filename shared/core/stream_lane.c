/* The lane's summary: what is kept of its lines, of which nothing else stays (core/stream.h). */
#include "core/stream_own.h"

#include "base/arr.h"
#include "base/mask.h"

struct ff_claimed ff_stream_claimed(const struct ff_stream_entry *e)
{
	struct ff_claimed claimed;
	/* The program's own time is the inner one; a prefix has that of whoever passed the line
	 * on. */
	if (ff_stamp_parse(e->text, &claimed) ||
		(e->stamp.n && ff_stamp_parse(e->stamp, &claimed))) {
		return claimed;
	}
	return FF_CLAIMED_NONE;
}

static unsigned claim_class(const struct ff_claimed *c)
{
	return (c->has_year ? 2u : 0u) + (c->has_zone ? 1u : 0u);
}

static __int128 delay(const struct ff_pair *p)
{
	return (__int128)p->came - p->claimed.us;
}

/* Twice the area of the triangle of three pairs, seen as points (came, delay); > 0: b lies below
 * the line from a to c, so it is part of the lower envelope. */
static __int128 below(const struct ff_pair *a, const struct ff_pair *b, const struct ff_pair *c)
{
	__int128 dx = (__int128)b->came - a->came, dy = delay(b) - delay(a);
	__int128 ex = (__int128)c->came - a->came, ey = delay(c) - delay(a);
	/* Stamps are within 2000-2099, differences below 2^52, products below 2^105. */
	return dx * ey - ex * dy;
}

static void drop_pair(struct ff_lane *lane, size_t i)
{
	lane->npairs--;
	memmove(lane->pairs + i, lane->pairs + i + 1, (lane->npairs - i) * sizeof *lane->pairs);
}

/* Too many: the inner one that bends the envelope least goes, the first of equals. */
static void thin_pairs(struct ff_lane *lane)
{
	if (lane->npairs <= FF_PAIRS_MAX) {
		return;
	}
	size_t least = 1;
	__int128 area = below(&lane->pairs[0], &lane->pairs[1], &lane->pairs[2]);
	for (size_t i = 2; i + 1 < lane->npairs; i++) {
		__int128 a = below(&lane->pairs[i - 1], &lane->pairs[i], &lane->pairs[i + 1]);
		if (a < area) {
			area = a;
			least = i;
		}
	}
	drop_pair(lane, least);
}

/* Keeps the lower envelope of the delays: what came soonest says most about the clocks. Stamps of
 * the poorer kind (no year, no zone) don't mix with the better. */
static void add_pair(struct ff_lane *lane, struct ff_pair p)
{
	if (!ff_usec_usable(p.came) || !ff_usec_usable(p.claimed.us)) {
		return;
	}
	if (lane->npairs && claim_class(&p.claimed) != claim_class(&lane->pairs[0].claimed)) {
		if (claim_class(&p.claimed) < claim_class(&lane->pairs[0].claimed)) {
			return;
		}
		lane->npairs = 0;
	}
	size_t i = lane->npairs;
	while (i > 0 && lane->pairs[i - 1].came > p.came) {
		i--;
	}
	if (i > 0 && lane->pairs[i - 1].came == p.came) {
		if (delay(&p) >= delay(&lane->pairs[i - 1])) {
			return;
		}
		drop_pair(lane, --i);
	}
	if (i > 0 && i < lane->npairs && below(&lane->pairs[i - 1], &p, &lane->pairs[i]) <= 0) {
		return;
	}
	FF_ARR_ROOM(lane->pairs, lane->npairs, lane->cpairs);
	memmove(lane->pairs + i + 1, lane->pairs + i, (lane->npairs - i) * sizeof p);
	lane->pairs[i] = p;
	lane->npairs++;
	while (i >= 2 && below(&lane->pairs[i - 2], &lane->pairs[i - 1], &p) <= 0) {
		drop_pair(lane, --i);
	}
	while (i + 2 < lane->npairs && below(&p, &lane->pairs[i + 1], &lane->pairs[i + 2]) <= 0) {
		drop_pair(lane, i + 1);
	}
	thin_pairs(lane);
}

/* Does the line hold a byte whose offset is k * 65,536, k >= 1? */
static bool is_sample(const struct ff_line *line)
{
	uint64_t last = line->end > line->offset ? line->end - 1 : line->offset;
	uint64_t k = last / FF_SAMPLE_STEP;
	return k >= 1 && k * FF_SAMPLE_STEP >= line->offset;
}

void ff_stream_summarise(
	struct ff_lane *lane, const struct ff_digest *d, const struct ff_stream_entry *e)
{
	const struct ff_line *line = e->line;
	if (!lane->lines) {
		lane->first_offset = line->offset;
		lane->first = line->stamp;
		lane->first_claimed = ff_stream_claimed(e);
	}
	lane->lines++;
	lane->bytes += line->end - line->offset - line->between;
	lane->last_offset = line->offset;
	lane->last = line->stamp;
	lane->dirty = true;
	d->counts[FF_COUNT_lines]++;
	d->counts[FF_COUNT_bytes] += line->end - line->offset - line->between;
	d->counts[FF_COUNT_lines_cut] += line->cut;
	if (is_sample(line) && ff_stamp_us(line->stamp) != FF_TIME_NONE) {
		struct ff_pair pair = {ff_stamp_us(line->stamp), ff_stream_claimed(e)};
		if (pair.claimed.us != FF_TIME_NONE) {
			add_pair(lane, pair);
		}
	}
}

static void set_moment(
	struct ff_moment *m, const struct ff_digest *d, const struct ff_stream_entry *e, bool text)
{
	m->set = true;
	m->offset = e->line->offset;
	m->line = e->line->number;
	m->stamp = e->line->stamp;
	if (!text) {
		return;
	}
	size_t n = e->text.n < FF_PROGRESS_TEXT ? e->text.n : FF_PROGRESS_TEXT;
	/* A restored row's text has just its own length. */
	m->text = ff_xrealloc(m->text, FF_PROGRESS_TEXT + 1, 1);
	memcpy(m->text, e->text.p, n);
	m->text[n] = '\0';
	d->counts[FF_COUNT_secrets] += ff_mask(m->text, n);
}

/* The gap between two progress lines, counted by its power of two; only between stamps of one
 * clock. */
static void count_gap(struct ff_lane *lane, struct ff_stamp now)
{
	struct ff_stamp before = lane->progress.stamp;
	bool one_clock = (before.arrived == FF_TIME_NONE) == (now.arrived == FF_TIME_NONE);
	if (!lane->progress.set || !one_clock || ff_stamp_us(before) == FF_TIME_NONE ||
		ff_stamp_us(now) == FF_TIME_NONE || ff_stamp_us(now) < ff_stamp_us(before)) {
		return;
	}
	uint64_t gap = (uint64_t)ff_stamp_us(now) - (uint64_t)ff_stamp_us(before);
	size_t power = gap ? 63 - (size_t)__builtin_clzll(gap) : 0;
	size_t most = sizeof lane->cadence / sizeof lane->cadence[0] - 1;
	lane->cadence[power < most ? power : most]++;
}

void ff_stream_progress(struct ff_stream *s, struct ff_lane *lane, const struct ff_digest *d,
	const struct ff_stream_entry *e, enum ff_progress progress)
{
	if (progress == FF_PROGRESS_DONE) {
		set_moment(&lane->success, d, e, true);
		return;
	}
	count_gap(lane, e->line->stamp);
	set_moment(&lane->progress, d, e, true);
	lane->steps++;
	if (lane->has_fault && !lane->recovered.set && e->line->offset > lane->last_fault_offset) {
		set_moment(&lane->recovered, d, e, false);
	}
	ff_stream_recover(s, lane);
}
