/* Random numbers for property tests: the same ones at each run unless FF_SEED says otherwise, so
 * that a failure's printed seed brings it back. Not for anything but tests.
 */
#pragma once

#include <stdint.h>
#include <stdlib.h>

struct random {
	uint64_t seed; /* what it began with: print it with a failure */
	uint64_t state;
};

static inline struct random random_init(uint64_t salt)
{
	const char *said = getenv("FF_SEED");
	uint64_t seed = said ? strtoull(said, NULL, 10) : 20261130;
	return (struct random){seed, seed * 0x9e3779b97f4a7c15ull + salt + 1};
}

/* 0 .. n - 1; n is at least 1. */
static inline uint32_t random_below(struct random *r, uint32_t n)
{
	r->state ^= r->state << 13;
	r->state ^= r->state >> 7;
	r->state ^= r->state << 17;
	return (uint32_t)((r->state * 0x2545f4914f6cdd1dull >> 32) % n);
}
