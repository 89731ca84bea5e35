/* scan: one pass over a chunk that finds every place where a literal of the catalogue stands.
 *
 * In: a set of literals (bytes without LF, each with an id), then bytes. Out: marks in order of
 * position. A literal never holds LF, so a pass over many lines at once gives the same marks as a
 * pass over each line. Pure; the set is built once and never changes.
 *
 * This one function is what a vector version may replace.
 */
#pragma once

#include "base/str.h"

struct ff_scan; /* opaque: an Aho-Corasick automaton over byte classes */

struct ff_mark {
	uint32_t end; /* behind the literal's last byte, from the chunk's start */
	uint32_t id;  /* the id given with the literal */
};

typedef void ff_scan_fn(void *ud, struct ff_mark mark);

struct ff_scan *ff_scan_create(void);
void ff_scan_destroy(struct ff_scan *s);
/* Adds a literal of 1 to 255 bytes without LF; equal literals may be added with several ids. */
void ff_scan_add(struct ff_scan *s, struct ff_str literal, uint32_t id);
/* No more literals: builds the automaton. */
void ff_scan_seal(struct ff_scan *s);
/* Calls fn for each place, by end, then by id. n is at most UINT32_MAX. */
void ff_scan_run(const struct ff_scan *s, const char *p, size_t n, ff_scan_fn *fn, void *ud);
