/* SHA-256 (FIPS 180-4): the name of a set of bytes that anybody can work out again (sha256sum).
 *
 * Not for secrets: nothing here is hidden from the time it takes.
 */
#pragma once

#include "base/str.h"

#define FF_SHA256_HEX 65 /* 64 hex digits and a NUL */

struct ff_sha256 {
	uint32_t h[8];
	uint64_t bytes;
	unsigned char block[64];
};

void ff_sha256_init(struct ff_sha256 *s);
void ff_sha256_add(struct ff_sha256 *s, const void *p, size_t n);
/* In lower case. Nothing can be added afterwards. */
void ff_sha256_hex(struct ff_sha256 *s, char ret[FF_SHA256_HEX]);
