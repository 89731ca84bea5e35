/* backup: all that a state folder holds, as of one moment, in one tar file that makes another state
 * folder when it is unpacked: store.db and the committed part of the segment files.
 *
 * It is written as PATH.part beside a copy of the database, PATH.part-db, and gets its name when it
 * is whole and synced; nothing is ever overwritten. What a killed daemon leaves is removed by the
 * next backup of that name. Mode 0600.
 *
 * Meant for a thread of its own: it reads the disk and writes it, and waits for both. Meanwhile
 * somebody has to hold the store (store_hold), so that no segment file goes.
 */
#pragma once

#include "base/err.h"
#include "base/usec.h"

#include <stdatomic.h>

struct backup {
	uint64_t bytes; /* of the file */
	size_t runs, files;
	size_t missing; /* segment files that are gone or shorter than committed: left out */
};

/* Returns 0 and what is in it; -EEXIST if there is something at path; -ECANCELED once *stop; or
 * another negative code; with err. */
int backup_write(const char *state, const char *path, ff_usec now_us, const atomic_bool *stop,
	struct backup *ret, struct ff_err *err);
