/* gunzip: a packed body, unpacked in memory up to a limit: what says it is small may be large. */
#pragma once

#include "base/buf.h"
#include "base/err.h"

/* Appends to *out what `in` holds: gzip, several members may follow each other (RFC 1952, 2.2).
 * FF_ELIMIT: more than max bytes; -EBADMSG: no gzip, damaged or cut off. */
int gunzip(struct ff_str in, size_t max, struct ff_buf *out);
