/* clock: stamps of several clocks made comparable, with a bound, or declared not comparable.
 *
 * In: the stamp that came with a line, or the one it claims, its node, the facts' clock samples,
 * and pairs of both stamps at one line. Out: an interval on a *domain*; those of different domains
 * are never compared (law 3):
 *
 *	arrived             one domain for the whole run
 *	captured            the collector's domain where the node has samples, else one a node
 *	claimed             one a node for stamps with a zone, one a node for those without
 *	unknown node        one a stream for each of them
 *
 * Where a line has both stamps, its claimed one is kept beside the other: lines of one node compare
 * by it whatever the way to the collector did to them, and with samples it corrects the interval.
 * What pairs of a stream prove about its way (lines that were minutes late while others were not)
 * widens the interval of its lines that claim nothing: a shipper that sends in batches reorders
 * ranks (SOURCES.md log-stamps).
 *
 * c10's fraction is the monotonic clock's (SOURCES.md c10-logging), so such a stamp is known to the
 * second. A node's unknown zone is a whole quarter hour. Pure; memory is an arena's.
 */
#pragma once

#include "core/stamp.h"

/* How long a line may be on its way before it is stamped: torchrun's tee polls each 0.1 s
 * (SOURCES.md torch-tail-prefix). Lines of two streams that came closer together than this have no
 * order. */
#define FF_TRANSIT ((ff_usec)100 * 1000)

/* A time on some clock: it lies in [lo, hi]. */
struct ff_when {
	bool known;
	ff_usec lo, hi;
	ff_usec us; /* as stamped, less the node's offset: for showing and for differences */
	enum ff_clock clock;
	int32_t domain; /* stamps of different domains are never compared */
	bool own_known; /* the same on its node's own clock, as the line claims it */
	ff_usec own_lo, own_hi;
	int32_t own_domain;
};

#define FF_WHEN_NONE ((struct ff_when){.known = false, .us = FF_TIME_NONE})

enum ff_order { FF_BEFORE, FF_AFTER, FF_CANT_TELL };

/* Of pairs: by how much the stamp that came is after the claimed one. */
struct ff_lag {
	bool known;
	ff_usec least, most;
	ff_usec grain; /* of the coarsest claimed one */
};

struct ff_node_offset {
	const char *node;
	bool known;
	ff_usec offset_us, bound_us; /* node clock minus collector clock */
	struct ff_lag lags[2][2];    /* arrived, captured; without zone, with */
};

struct ff_clocks {
	struct ff_node_offset *nodes; /* by name */
	size_t nnodes;
	struct ff_lag (*streams)[2]; /* by number; without zone, with */
	uint32_t nstreams;
	ff_usec year_ref; /* a stamp that knows its year, for those that don't, or FF_TIME_NONE */
};

/* Offsets of all nodes (ascending names, borrowed): what all samples allow, else what the one with
 * the least round trip does. Streams have numbers below nstreams. */
void ff_clocks_init(struct ff_clocks *c, struct ff_arena *a, const struct ff_facts *facts,
		    const char *const *nodes, size_t nnodes, uint32_t nstreams);
/* One line's two stamps. All pairs are told twice before the first question, in any order: in round
 * 0 for the least lag of each, in round 1 for the most among those near it. */
void ff_clocks_pair(struct ff_clocks *c, int round, const char *node, uint32_t stream,
		    struct ff_stamp stamp, const struct ff_claimed *claimed);
/* NULL for an unknown node (and for NULL). */
const struct ff_node_offset *ff_clocks_node(const struct ff_clocks *c, const char *node);

/* The time of a line: `stream` is the stream's number, for lines of unknown nodes; claimed may be
 * NULL. A stamp outside 2000-2099 is none. */
struct ff_when ff_when_of(const struct ff_clocks *c, const char *node, uint32_t stream,
			  struct ff_stamp stamp, const struct ff_claimed *claimed);
/* A control object's time. */
struct ff_when ff_when_control(const struct ff_clocks *c, const char *node, ff_usec us,
			       enum ff_clock clock);

enum ff_order ff_when_order(struct ff_when a, struct ff_when b);
/* a - b as best guess in us; only if comparable. */
bool ff_when_diff(struct ff_when a, struct ff_when b, ff_usec *ret);
