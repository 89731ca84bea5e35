/* migrate: opens the store's database and brings it to the schema of this program.
 *
 * The files of schema/sql are compiled in; PRAGMA user_version counts those applied. Each is
 * applied in one transaction of its own, with the new version in it. A database of a newer program,
 * of another program or a damaged one is refused and left as it was.
 */
#pragma once

#include "base/err.h"
#include "base/usec.h"

struct sqlite3;

/* Opens path for reading and writing; makes it (mode 0600) if there is none. Returns 0,
 * FF_EVERSION, FF_EDB, or negative errno with err. */
int migrate_open(const char *path, ff_usec now_us, struct sqlite3 **ret, struct ff_err *err);
