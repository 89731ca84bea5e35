#include "core/clock.h"

enum { DOMAIN_ARRIVED, DOMAIN_COLLECTOR, DOMAIN_FIRST };
enum { KIND_CAPTURED, KIND_ZONE, KIND_NO_ZONE, KIND_COUNT };

static bool sample_offset(
	const struct ff_facts *facts, const char *node, ff_usec *offset, ff_usec *bound)
{
	for (size_t i = 0; i < facts->nclocks; i++) {
		const struct ff_node_clock *c = &facts->clocks[i];
		if (strcmp(c->node, node) || !c->nsamples) {
			continue;
		}
		/* Samples are ordered by round trip: the first one bounds the offset best. */
		struct ff_clock_sample s = c->samples[0];
		ff_usec trip = (s.t4 - s.t1) - (s.t3 - s.t2);
		*offset = ((s.t1 - s.t2) + (s.t4 - s.t3)) / 2;
		*bound = trip > 0 ? (trip + 1) / 2 : 0;
		return true;
	}
	return false;
}

void ff_clocks_init(struct ff_clocks *c, struct ff_arena *a, const struct ff_facts *facts,
	const char *const *nodes, size_t nnodes)
{
	*c = (struct ff_clocks){
		.nodes = FF_ARENA_ARR(a, struct ff_node_offset, nnodes ? nnodes : 1),
		.nnodes = nnodes,
		.year_ref = FF_TIME_NONE,
	};
	for (size_t i = 0; i < nnodes; i++) {
		struct ff_node_offset *n = &c->nodes[i];
		n->node = nodes[i];
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

static struct ff_when claimed_when(const struct ff_clocks *c, const struct ff_node_offset *n,
	uint32_t stream, const struct ff_claimed *claimed)
{
	ff_usec us = claimed->us;
	if (us == FF_TIME_NONE || (claimed->has_year && !ff_usec_usable(us))) {
		return FF_WHEN_NONE;
	}
	if (!claimed->has_year && c->year_ref != FF_TIME_NONE) {
		us = in_year_of(us, c->year_ref);
	}
	ff_usec grain = claimed->grain ? (ff_usec)claimed->grain : FF_SECOND;
	if (claimed->mono_fraction) {
		grain = FF_SECOND;
	}
	ff_usec lo = us - us % grain;
	return (struct ff_when){
		.known = true,
		.lo = lo,
		.hi = lo + grain - 1,
		.us = claimed->mono_fraction ? lo : us,
		.clock = FF_CLOCK_CLAIMED,
		.domain = domain_of(c, n, stream, claimed->has_zone ? KIND_ZONE : KIND_NO_ZONE),
	};
}

static struct ff_when came_when(const struct ff_clocks *c, const struct ff_node_offset *n,
	uint32_t stream, ff_usec us, enum ff_clock clock)
{
	struct ff_when w = {
		.known = true,
		.lo = us - FF_TRANSIT,
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
	if (ff_usec_usable(stamp.arrived)) {
		return came_when(c, n, stream, stamp.arrived, FF_CLOCK_ARRIVED);
	}
	if (ff_usec_usable(stamp.captured)) {
		return came_when(c, n, stream, stamp.captured, FF_CLOCK_CAPTURED);
	}
	return claimed ? claimed_when(c, n, stream, claimed) : FF_WHEN_NONE;
}

struct ff_when ff_when_control(
	const struct ff_clocks *c, const char *node, ff_usec us, enum ff_clock clock)
{
	if (!ff_usec_usable(us) || (clock != FF_CLOCK_ARRIVED && clock != FF_CLOCK_CAPTURED)) {
		return FF_WHEN_NONE;
	}
	return came_when(c, ff_clocks_node(c, node), 0, us, clock);
}

enum ff_order ff_when_order(struct ff_when a, struct ff_when b)
{
	if (!a.known || !b.known || a.domain != b.domain) {
		return FF_CANT_TELL;
	}
	if (a.hi < b.lo) {
		return FF_BEFORE;
	}
	return a.lo > b.hi ? FF_AFTER : FF_CANT_TELL;
}

bool ff_when_diff(struct ff_when a, struct ff_when b, ff_usec *ret)
{
	if (!a.known || !b.known || a.domain != b.domain) {
		return false;
	}
	*ret = a.us - b.us;
	return true;
}
