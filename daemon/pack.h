/* pack: what a column holds that is more than a number or a text, as bytes, and back.
 *
 * Numbers, clock pairs and claimed stamps are packed as core/row.h does it. Pure. Reading checks
 * everything: a damaged column gives false and leaves ret unchanged. Any value comes back exactly
 * as it was written.
 */
#pragma once

#include "core/row.h"

/* "POWER:COUNT ..." of the powers that have one. */
void pack_cadence(const uint32_t cadence[48], struct ff_buf *out);
bool pack_read_cadence(struct ff_str in, uint32_t ret[48]);

/* A JSON object of names and values; a value that isn't UTF-8 is {"hex":"..."}. */
void pack_fields(const struct ff_fields *fields, struct ff_buf *out);
/* Names that this program doesn't know (an older one's) are left out. */
bool pack_read_fields(struct ff_str in, struct ff_fields *ret);
