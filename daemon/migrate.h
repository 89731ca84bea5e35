/* migrate: opens the store's database and brings it to the schema of this program.
 *
 * The files of schema/sql are compiled in; PRAGMA user_version counts those applied. Those that are
 * missing are applied in one transaction, with the new version in it: a failure, or a kill, leaves
 * the store as it was. Before that the store is copied to PATH.vN (N: the version it has; whole,
 * synced, mode 0600; only the newest copy stays); without room for the copy nothing is changed. A
 * database of a newer program, of another program or a damaged one is refused and left as it was.
 */
#pragma once

#include "base/err.h"
#include "base/usec.h"

struct sqlite3;

/* Opens path for reading and writing; makes it (mode 0600) if there is none. Returns 0,
 * FF_EVERSION, FF_EDAMAGE, FF_EDB, or negative errno with err. */
int migrate_open(const char *path, ff_usec now_us, struct sqlite3 **ret, struct ff_err *err);
