/* store_copy: a copy of the store's database as of one moment, while it is in use or not. */
#pragma once

#include "base/err.h"
#include "segment.h"

#include <stdatomic.h>

struct sqlite3;

/* Makes the file `to` (mode 0600; it must not exist) and copies every page of `from` into it. If a
 * transaction is open, as of its beginning. stop: NULL, or ends it early with -ECANCELED. Returns 0
 * or a negative code; why says what went wrong. Nothing is synced; a failure leaves a part. */
int store_copy_pages(
	struct sqlite3 *from, const char *to, const atomic_bool *stop, char *why, size_t size);

/* Copies the database of a state folder that a store may have open, in any thread, and calls fn for
 * each run that is in the copy with the segment files that belong to it. Files that were committed
 * are only removed while nobody holds the store (store_hold). Returns 0 or a negative code with
 * err. */
typedef void store_copy_fn(void *ud, uint32_t run, struct segment_range range);
int store_copy(const char *state, const char *to, const atomic_bool *stop, store_copy_fn *fn,
	void *ud, struct ff_err *err);
