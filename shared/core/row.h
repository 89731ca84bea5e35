/* row: what a stream has digested, as bytes, and back: lanes and events without their text.
 *
 * An export carries it for streams whose text can't be read again (schema/json/jsonl.schema.json,
 * `digest`): who reads it judges as if it had seen every line. The store packs columns with the
 * same parts. Reading checks everything, since the bytes may be anybody's; a value comes back
 * exactly as it was written. Pure; strings that are given back are malloc'd.
 */
#pragma once

#include "core/stream.h"

/* The digest of s: its lanes, its events (those of open records as they stand now) and how far it
 * was fed. */
void ff_row_put(const struct ff_stream *s, const struct ff_digest *d, struct ff_buf *out);
/* Gives a new stream, which nothing was fed to, the digest of another one. False: damaged, or s is
 * not new; what was read before the damage stays. */
bool ff_row_take(struct ff_stream *s, struct ff_str row);

/* A signed number as a varint of its zigzag form: small numbers take a byte. */
void ff_row_int(struct ff_buf *out, int64_t v);
/* Takes one off the front of *in. */
bool ff_row_take_int(struct ff_str *in, int64_t *ret);
/* The clock pairs of a lane: differences to the pair before. */
void ff_row_pairs(const struct ff_pair *pairs, size_t n, struct ff_buf *out);
/* *ret is malloc'd, NULL for none; at most FF_PAIRS_MAX. */
bool ff_row_take_pairs(struct ff_str in, struct ff_pair **ret, size_t *ret_n);
/* The yes and no of a claimed stamp as bits. */
unsigned ff_row_claimed_flags(const struct ff_claimed *c);
struct ff_claimed ff_row_claimed(ff_usec us, uint32_t grain, unsigned flags);
