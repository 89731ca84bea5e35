/* library: the catalogue that was compiled in and, besides, a folder of the user's own
 * (shared/README.md 6.6).
 *
 * Of a folder the files *.json in it count, in bytewise order of their names (hidden ones and
 * folders in it do not); a file is taken whatever its name is. Limits: LIBRARY_FILES files,
 * LIBRARY_BYTES in all.
 */
#pragma once

#include "base/sha256.h"
#include "core/catalog.h"
#include "core/page.h"

#define LIBRARY_FILES 256u
#define LIBRARY_BYTES (32u * 1024u * 1024u)

/* What was read. A zeroed one is empty. */
struct ff_library {
	struct ff_embedded *files; /* `name` is the path; all owned */
	size_t n, cap;
	size_t bytes;
	char sha256[FF_SHA256_HEX]; /* of all bytes, as `cat FILE... | sha256sum` shows it */
};

/* Reads a file or folder and adds it. Returns 0, negative errno, FF_EINPUT for a folder without
 * one, or FF_ELIMIT, with err. */
int ff_library_read(struct ff_library *l, const char *path, struct ff_err *err);
void ff_library_finish(struct ff_library *l);
/* The catalogue of what was compiled in and of `own` (NULL: nothing). Returns 0 and *ret, or what
 * ff_catalog_add returned. */
int ff_library_load(const struct ff_library *own, struct ff_catalog **ret, struct ff_err *err);
/* The same documents as pages, those compiled in first. */
int ff_library_pages(const struct ff_library *own, struct ff_pages *ret, struct ff_err *err);
/* ff_library_read and ff_library_load at once: path NULL is nothing of one's own. */
int ff_library_open(const char *path, struct ff_catalog **ret, struct ff_err *err);
