/* forward: files and spools to firstfaultd in the native dialect (shared/README.md 6.3). A file is
 * its own spool: its descriptor stays open, so the rest of one that was deleted is sent too.
 *
 * One connection for each, FORWARD_MAX at a time (following: in all). A connection says hello with
 * a source that is made from the file itself, starts at the offset it is welcomed with, stays
 * within max_unacked, says `end`, and is done when that is acknowledged. When the daemon goes away
 * it comes back, each time a little later, and goes on where the daemon is. Of many senders one
 * tries for all; when that is welcome, the others follow, a few at a time.
 *
 * Stamps: what a file held when it was opened has none; what it gains while it is followed has the
 * time of this machine at which it was seen, and keeps it when it is sent again.
 */
#pragma once

#include "base/err.h"
#include "base/usec.h"
#include "shell/addr.h"
#include "spool.h"
#include "wire/native.h"

#define FORWARD_MAX 1024u

struct forward; /* opaque */

struct forward_options {
	struct ff_addr to;   /* borrowed */
	const struct ff_mask_rules *mask; /* of files; borrowed; NULL allowed */
	bool follow;         /* until stopped; else to the present end of each file */
	ff_usec give_up_us;  /* without a daemon for so long: over (following: never) */
	/* Called about every two seconds while following: new files may be added. NULL allowed. */
	void (*look)(void *ud);
	void *ud;
};

/* How many senders may run at once: at most FORWARD_MAX, fewer under a low hard limit of open files
 * (the soft one is raised). */
size_t forward_room(void);
struct forward *forward_create(const struct forward_options *o);
void forward_destroy(struct forward *f);
/* A file to send; hello has everything but source. Strings are copied. */
void forward_add(struct forward *f, const char *path, const struct ff_native_hello *hello);
/* A spool to send: given. live: a pipe still fills it. Else its ship is gone: where that did not
 * say the end, the connection is closed without one, and what goes wrong is not this ship's fault.
 */
void forward_add_spool(struct forward *f, struct spool *spool, const char *shown, bool live,
	const char *token);
/* An eventfd: who writes it wakes forward_run. */
int forward_wake(const struct forward *f);
/* Was this path, or the file under another name, added before? */
bool forward_knows(const struct forward *f, const char *path);
/* Does it have this spool still: is something of it not stored? */
bool forward_has(const struct forward *f, const struct spool *spool);
/* Sends all. Returns the exit status after its message; CLIENT_OK: all of it is acknowledged. */
int forward_run(struct forward *f);
/* From a signal handler: follow no longer; what was read is sent and ended. */
void forward_stop(void);
bool forward_stopped(void);
