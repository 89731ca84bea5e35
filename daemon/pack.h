/* pack: what a column holds that is more than a number or a text, as bytes, and back.
 *
 * Pure. Reading checks everything: a damaged column gives false and leaves ret unchanged. Any value
 * comes back exactly as it was written.
 */
#pragma once

#include "core/stream.h"

/* A signed number as a varint of its zigzag form: small numbers take a byte. */
void pack_int(struct ff_buf *out, int64_t v);
/* Takes one off the front of *in. */
bool pack_take_int(struct ff_str *in, int64_t *ret);

/* The clock pairs of a lane: differences to the pair before. */
void pack_pairs(const struct ff_pair *pairs, size_t n, struct ff_buf *out);
/* *ret is malloc'd, NULL for none; at most FF_PAIRS_MAX. */
bool pack_read_pairs(struct ff_str in, struct ff_pair **ret, size_t *ret_n);

/* "POWER:COUNT ..." of the powers that have one. */
void pack_cadence(const uint32_t cadence[48], struct ff_buf *out);
bool pack_read_cadence(struct ff_str in, uint32_t ret[48]);

/* A JSON object of names and values; a value that isn't UTF-8 is {"hex":"..."}. */
void pack_fields(const struct ff_fields *fields, struct ff_buf *out);
/* Names that this program doesn't know (an older one's) are left out. */
bool pack_read_fields(struct ff_str in, struct ff_fields *ret);

/* The yes and no of a claimed stamp as bits. */
unsigned pack_claimed_flags(const struct ff_claimed *c);
struct ff_claimed pack_claimed(ff_usec us, uint32_t grain, unsigned flags);
