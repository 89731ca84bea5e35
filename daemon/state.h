/* state: the state folder, held by one daemon at a time, on a disk of this machine.
 *
 * A store in WAL mode shares memory between its connections, and its locks have to hold: SQLite
 * says that neither can be had over a network file system (https://sqlite.org/wal.html,
 * https://sqlite.org/useovernet.html). So one there is refused before anything is written.
 */
#pragma once

#include "base/err.h"
#include "base/str.h"

/* Makes the folder (mode 0700) and locks it. Returns a descriptor that holds the lock until it is
 * closed, or negative errno with err: -EWOULDBLOCK if another daemon has it, -EREMOTE if it is on a
 * network file system. */
int state_lock(const char *folder, struct ff_err *err);
/* The name of a network or cluster file system, by what statfs(2) calls its type and by its name in
 * /proc/self/mountinfo (of FUSE that tells them apart; may be empty); NULL: none that is known. */
const char *state_remote(uint64_t magic, struct ff_str type);
/* The file system type that mountinfo's text names for a device; empty if it has none. */
struct ff_str state_mount_type(struct ff_str mountinfo, unsigned major, unsigned minor);
/* Renames store.db with its log to store.db.damaged-N and the text to segments.damaged-N, with the
 * first N that is free; the lock is held and nothing has them open. Negative errno with err. */
int state_set_aside(const char *folder, struct ff_err *err);
