#include "core/clock.h"

enum { DOMAIN_ARRIVED, DOMAIN_COLLECTOR, DOMAIN_FIRST };
enum { KIND_CAPTURED, KIND_ZONE, KIND_NO_ZONE, KIND_COUNT };

#define DRIFT_PPM 100             /* of a clock that nobody steers */
#define QUARTER (900 * FF_SECOND) /* zones are whole quarter hours; and no shipper waits longer */
#define LEAST_WAY (60 * FF_SECOND) /* of a node's promptest line, where its zone is unknown */

/* What one sample allows: the true offset lies in [lo, hi], however the way there and back differ;
 * at another time the clock may have drifted. */
static void sample_interval(const struct ff_clock_sample *s, ff_usec ref, ff_usec *lo, ff_usec *hi)
{
	ff_usec age = s->t1 > ref ? s->t1 - ref : ref - s->t1;
	ff_usec drift = age / 1000000 * DRIFT_PPM;
	*lo = s->t1 - s->t2 - drift;
	*hi = s->t4 - s->t3 + drift;
}

static bool sample_offset(
	const struct ff_facts *facts, const char *node, ff_usec *offset, ff_usec *bound)
{
	for (size_t i = 0; i < facts->nclocks; i++) {
		const struct ff_node_clock *c = &facts->clocks[i];
		if (strcmp(c->node, node) || !c->nsamples) {
			continue;
		}
		/* Samples are ordered by round trip: the first one bounds the offset best. */
		ff_usec lo, hi, ref = c->samples[0].t1;
		sample_interval(&c->samples[0], ref, &lo, &hi);
		for (size_t j = 1; j < c->nsamples; j++) {
			ff_usec l, h;
			sample_interval(&c->samples[j], ref, &l, &h);
			l = l > lo ? l : lo;
			h = h < hi ? h : hi;
			if (l <= h) { /* else the clock was stepped between the two */
				lo = l;
				hi = h;
			}
		}
		*offset = lo + (hi - lo) / 2;
		*bound = hi > lo ? (hi - lo + 1) / 2 : 0;
		return true;
	}
	return false;
}

void ff_clocks_init(struct ff_clocks *c, struct ff_arena *a, const struct ff_facts *facts,
	const char *const *nodes, size_t nnodes, uint32_t nstreams)
{
	*c = (struct ff_clocks){
		.nodes = FF_ARENA_ARR(a, struct ff_node_offset, nnodes ? nnodes : 1),
		.nnodes = nnodes,
		.streams = ff_arena_alloc(a, ((size_t)nstreams + 1) * sizeof *c->streams),
		.nstreams = nstreams,
		.year_ref = FF_TIME_NONE,
	};
	for (size_t i = 0; i < nnodes; i++) {
		struct ff_node_offset *n = &c->nodes[i];
		*n = (struct ff_node_offset){.node = nodes[i]};
		n->known = sample_offset(facts, nodes[i], &n->offset_us, &n->bound_us);
	}
}

const struct ff_node_offset *ff_clocks_node(const struct ff_clocks *c, const char *node)
{
	size_t lo = 0, hi = node ? c->nnodes : 0;
	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;
		int d = strcmp(c->nodes[mid].node, node);
		if (!d) {
			return &c->nodes[mid];
		}
		if (d < 0) {
			lo = mid + 1;
		} else {
			hi = mid;
		}
	}
	return NULL;
}

/* Domains of nodes count up, those of streams without a node count down from -1. */
static int32_t domain_of(
	const struct ff_clocks *c, const struct ff_node_offset *n, uint32_t stream, int kind)
{
	if (n) {
		return DOMAIN_FIRST + (int32_t)(n - c->nodes) * KIND_COUNT + kind;
	}
	return -1 - (int32_t)(stream % (INT32_MAX / KIND_COUNT)) * KIND_COUNT - kind;
}

/* The same day and time in the year that brings it closest to ref. */
static ff_usec in_year_of(ff_usec us, ff_usec ref)
{
	int64_t year, ref_year;
	int month, day, hour, min, sec, frac, skip;
	ff_usec_split(us, &year, &month, &day, &hour, &min, &sec, &frac);
	ff_usec_split(ref, &ref_year, &skip, &skip, &skip, &skip, &skip, &skip);
	ff_usec best = us, best_gap = INT64_MAX;
	for (int64_t y = ref_year - 1; y <= ref_year + 1; y++) {
		ff_usec t = ff_usec_civil(y, month, day, hour, min, sec, frac);
		ff_usec gap = t > ref ? t - ref : ref - t;
		if (gap < best_gap) {
			best = t;
			best_gap = gap;
		}
	}
	return best;
}

/* The interval of a claimed stamp on the clock that wrote it; false: it is of no use. */
static bool claimed_span(
	const struct ff_clocks *c, const struct ff_claimed *claimed, ff_usec *lo, ff_usec *hi)
{
	ff_usec us = claimed->us;
	if (us == FF_TIME_NONE || (claimed->has_year && !ff_usec_usable(us))) {
		return false;
	}
	if (!claimed->has_year && c->year_ref != FF_TIME_NONE) {
		us = in_year_of(us, c->year_ref);
	}
	ff_usec grain =
		claimed->grain && !claimed->mono_fraction ? (ff_usec)claimed->grain : FF_SECOND;
	*lo = us - us % grain;
	*hi = *lo + grain - 1;
	return true;
}

static struct ff_when claimed_when(const struct ff_clocks *c, const struct ff_node_offset *n,
	uint32_t stream, const struct ff_claimed *claimed)
{
	ff_usec lo, hi;
	if (!claimed_span(c, claimed, &lo, &hi)) {
		return FF_WHEN_NONE;
	}
	ff_usec grain = hi - lo + 1, us = claimed->mono_fraction ? lo : claimed->us;
	if (!claimed->mono_fraction && !claimed->has_year) {
		us = lo + claimed->us % grain;
	}
	int32_t domain = domain_of(c, n, stream, claimed->has_zone ? KIND_ZONE : KIND_NO_ZONE);
	return (struct ff_when){
		.known = true,
		.lo = lo,
		.hi = hi,
		.us = us,
		.clock = FF_CLOCK_CLAIMED,
		.domain = domain,
		.own_known = true,
		.own_lo = lo,
		.own_hi = hi,
		.own_domain = domain,
	};
}

/* ---- pairs */

/* Text may begin with a date of anything: only lags near the least one are of the way. */
static void add_lag(struct ff_lag *lag, int round, ff_usec us, ff_usec grain)
{
	if (!round) {
		lag->least = !lag->known || us < lag->least ? us : lag->least;
		lag->grain = grain > lag->grain ? grain : lag->grain;
		lag->most = lag->least;
		lag->known = true;
	} else if (us > lag->most && us - lag->least <= QUARTER) {
		lag->most = us;
	}
}

void ff_clocks_pair(struct ff_clocks *c, int round, const char *node, uint32_t stream,
	struct ff_stamp stamp, const struct ff_claimed *claimed)
{
	bool arrived = ff_usec_usable(stamp.arrived);
	ff_usec came = arrived ? stamp.arrived : stamp.captured, lo, hi;
	if (!ff_usec_usable(came) || !claimed_span(c, claimed, &lo, &hi)) {
		return;
	}
	struct ff_node_offset *n = (struct ff_node_offset *)ff_clocks_node(c, node);
	if (n) {
		add_lag(&n->lags[!arrived][claimed->has_zone], round, came - lo, hi - lo + 1);
	}
	if (stream < c->nstreams) {
		add_lag(&c->streams[stream][claimed->has_zone], round, came - lo, hi - lo + 1);
	}
}

/* By how much lines of this stream are proven to be late at times. */
static ff_usec jitter_of(const struct ff_clocks *c, uint32_t stream)
{
	ff_usec most = 0;
	for (int zone = 0; stream < c->nstreams && zone < 2; zone++) {
		const struct ff_lag *lag = &c->streams[stream][zone];
		ff_usec j = lag->known ? lag->most - lag->least - lag->grain : 0;
		most = j > most && j <= QUARTER ? j : most;
	}
	return most;
}

/* The zone that makes the least lag of a node a short delay: its lag is a quarter hour or just
 * after it, as sure as the two clocks are. Just before one is a claim about another time, and far
 * after it could be either. False: no zone fits. */
static bool find_zone(ff_usec least, ff_usec slack, ff_usec *ret)
{
	ff_usec at = least + slack, rest = at % QUARTER;
	rest += rest < 0 ? QUARTER : 0;
	*ret = -(at - rest);
	return rest - slack <= LEAST_WAY;
}

/* Corrects a came-with interval by the claimed stamp: node clock less offset, less the zone. */
static void correct(const struct ff_clocks *c, const struct ff_node_offset *n,
	const struct ff_claimed *claimed, bool arrived, struct ff_when *w)
{
	ff_usec lo, hi;
	if (!n || (arrived && !n->known) || !claimed_span(c, claimed, &lo, &hi)) {
		return;
	}
	const struct ff_lag *lag = &n->lags[!arrived][claimed->has_zone];
	ff_usec offset = n->known ? n->offset_us : 0, bound = n->known ? n->bound_us : 0;
	/* Captured stamps are of the same clock: what offset they lack, the claimed one lacks. */
	ff_usec slack = (arrived ? bound : 0) + (lag->known ? lag->grain : 0);
	ff_usec least = lag->known ? lag->least + (arrived ? offset : 0) : 0;
	ff_usec zone = 0;
	bool fits = claimed->has_zone ? least + slack >= 0 : find_zone(least, slack, &zone);
	if (!lag->known || !fits) {
		return; /* a line would have come before it was made: not this clock */
	}
	lo -= zone + offset + bound;
	hi += bound - zone - offset;
	hi = hi < w->hi ? hi : w->hi;
	if (lo <= hi && lo > w->lo - QUARTER) {
		w->lo = lo;
		w->hi = hi;
		w->us = w->us > hi ? hi : w->us;
	}
}

static struct ff_when came_when(const struct ff_clocks *c, const struct ff_node_offset *n,
	uint32_t stream, ff_usec us, enum ff_clock clock)
{
	struct ff_when w = {
		.known = true,
		.lo = us - FF_TRANSIT - jitter_of(c, stream),
		.hi = us,
		.us = us,
		.clock = clock,
	};
	if (clock == FF_CLOCK_ARRIVED) {
		w.domain = DOMAIN_ARRIVED;
		return w;
	}
	if (!n || !n->known) {
		w.domain = domain_of(c, n, stream, KIND_CAPTURED);
		return w;
	}
	w.domain = DOMAIN_COLLECTOR;
	w.us -= n->offset_us;
	w.lo -= n->offset_us + n->bound_us;
	w.hi += n->bound_us - n->offset_us;
	return w;
}

struct ff_when ff_when_of(const struct ff_clocks *c, const char *node, uint32_t stream,
	struct ff_stamp stamp, const struct ff_claimed *claimed)
{
	const struct ff_node_offset *n = ff_clocks_node(c, node);
	struct ff_when own = claimed ? claimed_when(c, n, stream, claimed) : FF_WHEN_NONE;
	bool arrived = ff_usec_usable(stamp.arrived);
	if (!arrived && !ff_usec_usable(stamp.captured)) {
		return own;
	}
	struct ff_when w = came_when(c, n, stream, arrived ? stamp.arrived : stamp.captured,
		arrived ? FF_CLOCK_ARRIVED : FF_CLOCK_CAPTURED);
	if (own.known) {
		correct(c, n, claimed, arrived, &w);
		w.own_known = true;
		w.own_lo = own.own_lo;
		w.own_hi = own.own_hi;
		w.own_domain = own.own_domain;
	}
	return w;
}

struct ff_when ff_when_control(
	const struct ff_clocks *c, const char *node, ff_usec us, enum ff_clock clock)
{
	if (!ff_usec_usable(us) || (clock != FF_CLOCK_ARRIVED && clock != FF_CLOCK_CAPTURED)) {
		return FF_WHEN_NONE;
	}
	return came_when(c, ff_clocks_node(c, node), UINT32_MAX, us, clock);
}

static enum ff_order order_of(ff_usec a_lo, ff_usec a_hi, ff_usec b_lo, ff_usec b_hi)
{
	return a_hi < b_lo ? FF_BEFORE : a_lo > b_hi ? FF_AFTER : FF_CANT_TELL;
}

enum ff_order ff_when_order(struct ff_when a, struct ff_when b)
{
	if (!a.known || !b.known) {
		return FF_CANT_TELL;
	}
	enum ff_order came = a.domain == b.domain ? order_of(a.lo, a.hi, b.lo, b.hi) : FF_CANT_TELL;
	if (!a.own_known || !b.own_known || a.own_domain != b.own_domain) {
		return came;
	}
	/* One clock wrote both: what the way to the collector did to them does not matter. */
	enum ff_order own = order_of(a.own_lo, a.own_hi, b.own_lo, b.own_hi);
	if (own == FF_CANT_TELL || came == own || came == FF_CANT_TELL) {
		return own == FF_CANT_TELL ? came : own;
	}
	ff_usec apart = (a.own_lo - b.own_lo) - (a.us - b.us);
	return apart < QUARTER && apart > -QUARTER ? own : FF_CANT_TELL;
}

bool ff_when_diff(struct ff_when a, struct ff_when b, ff_usec *ret)
{
	if (!a.known || !b.known || a.domain != b.domain) {
		return false;
	}
	*ret = a.us - b.us;
	return true;
}
