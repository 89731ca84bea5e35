/* clock: stamps of several clocks made comparable, with a bound, or declared not comparable.
 *
 * In: the stamp that came with a line, or the one it claims, its node, and the facts' clock
 * samples. Out: an interval on a *domain*; those of different domains are never compared (law 3).
 *
 *	arrived             one domain for the whole run
 *	captured            the collector's domain where the node has samples, else one a node
 *	claimed             one a node for stamps with a zone, one a node for those without
 *	unknown node        one a stream for each of them
 *
 * Claimed stamps are the last resort: only where no stamp came. c10's fraction is the monotonic
 * clock's (SOURCES.md c10-logging), so such a stamp is known to the second. Pure; memory is an
 * arena's.
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
};

#define FF_WHEN_NONE ((struct ff_when){.known = false, .us = FF_TIME_NONE})

enum ff_order { FF_BEFORE, FF_AFTER, FF_CANT_TELL };

struct ff_node_offset {
	const char *node;
	bool known;
	ff_usec offset_us, bound_us; /* node clock minus collector clock */
};

struct ff_clocks {
	struct ff_node_offset *nodes; /* by name */
	size_t nnodes;
	ff_usec year_ref; /* a stamp that knows its year, for those that don't, or FF_TIME_NONE */
};

/* Offsets of all nodes (ascending names, borrowed): of the sample with the least round trip. */
void ff_clocks_init(struct ff_clocks *c, struct ff_arena *a, const struct ff_facts *facts,
		    const char *const *nodes, size_t nnodes);
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
