/* retain: how long runs are kept. The loop's side; store_keep.h is the store's.
 *
 * Each 2 s, and after a run went: runs that nothing was heard of for `keep-age` go (not in the
 * first minute after a start, in which their senders come back); while the store and the segment
 * files together hold more than `keep-size`, runs that have ended and are final go too. The one
 * that was heard longest ago is first, one at a time. A run that a connection speaks for never goes
 * by itself. What goes leaves memory at once and the disk bit by bit.
 *
 * A run can be forgotten on demand too. Its connections are told and closed (native), or go on with
 * another run (JSON Lines, raw text, syslog): a sender that says hello again means it, so that it
 * begins anew, and nothing has to be remembered of who was forgotten. Its tailed files are not read
 * again while they are the same, for nobody sent them on purpose.
 */
#pragma once

#include "daemon.h"

struct run_state;
struct ff_jw;

enum retain_why { RETAIN_AGE, RETAIN_SIZE, RETAIN_ASKED };

/* Called when a run that was dropped is gone from the disk; bytes: what that gave back. */
struct retain_wait {
	uint32_t run;
	void (*fn)(void *ud, uint64_t bytes);
	void *ud;
	struct retain_wait *next;
};

int retain_open(struct daemon *d, struct retain **ret, struct ff_err *err);
void retain_close(struct retain *r);
void retain_destroy(struct retain *r);

/* Can something of it still come: it has not ended, and not all its streams have? */
bool retain_is_open(const struct ff_run *run);
/* Takes the run out of everything and frees it; its rows go with the next batches. */
void retain_drop(struct daemon *d, struct ff_run *run, enum retain_why why);
/* Calls w->fn when that run is gone. */
void retain_wait(struct retain *r, struct retain_wait *w);
void retain_forget(struct retain *r, struct retain_wait *w);
/* The store has taken it out. */
void retain_on_gone(struct retain *r, uint32_t run, uint64_t bytes);
/* Adds an object for `status`: what is kept. */
void retain_describe(const struct daemon *d, struct ff_jw *w);
