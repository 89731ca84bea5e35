/* source: bytes that are read once, from a descriptor or out of what they are packed in.
 *
 * Layers of one interface: a descriptor; what a compressed source (gzip, zstd, xz, bzip2) expands
 * to; the members of a tar, one after the other. Each borrows the one below, which must outlive it.
 * Memory is constant: a front of 64 KiB, a buffer of 64 KiB and the expander's own window.
 *
 * Input is hostile. Nothing is ever written anywhere; a member's name is a name and no path. Caps:
 * SOURCE_RATIO bytes out of one byte in, beyond the first SOURCE_FREE bytes of a member (or
 * SOURCE_SKIPPED of an archive: its other members have to be gone through), SOURCE_MAX bytes of a
 * member, SOURCE_HEADERS entries of an archive. What came before an error is good, and the error's
 * text is a clause about the source: "its gzip data stops in the middle".
 */
#pragma once

#include "base/err.h"

#include <sys/types.h>

#define SOURCE_FRONT 65536u
#define SOURCE_RATIO 500u
#define SOURCE_FREE ((uint64_t)64 << 20)
#define SOURCE_SKIPPED ((uint64_t)4 << 30)
#define SOURCE_MAX ((uint64_t)256 << 30)
#define SOURCE_HEADERS 1048576u

/* What the first bytes say it is. Names say nothing. */
enum source_kind {
	SOURCE_TEXT,
	SOURCE_EMPTY,
	SOURCE_GZIP,
	SOURCE_ZSTD,
	SOURCE_XZ,
	SOURCE_BZIP2,
	SOURCE_TAR,
	SOURCE_UTF16,
	SOURCE_BINARY,
};

struct source; /* opaque */

/* The descriptor stays the caller's; shown is for messages and is copied. */
struct source *source_file(int fd, const char *shown);
/* kind: SOURCE_GZIP to SOURCE_BZIP2. */
struct source *source_expand(struct source *below, enum source_kind kind);
struct source *source_tar(struct source *below);
void source_destroy(struct source *s);

/* At most n bytes. 0: the end; negative with err: an error, which stays. */
ssize_t source_read(struct source *s, char *to, size_t n, struct ff_err *err);
/* The first n bytes (at most SOURCE_FRONT), fewer only at the end or before an error: borrowed
 * until the next call. They are read again by source_read. */
struct ff_str source_front(struct source *s, size_t n);
/* By the first n bytes: 512 tell what is packed, more tell text from other bytes. */
enum source_kind source_kind(struct source *s, size_t n);
/* It is read for its own sake, not gone through for others': the caps of a member hold. */
void source_is_member(struct source *s);
bool source_is_packed(enum source_kind k); /* gzip to bzip2 */

/* The next member that is a file, with its name as written and valid until the next call. 1: there
 * is one, and source_read reads it; 0: no more; negative with err: the rest can't be read. */
int source_next(struct source *tar, struct ff_str *ret_name, struct ff_err *err);
/* Links, devices and the like that source_next has passed over. */
size_t source_passed(const struct source *tar);
