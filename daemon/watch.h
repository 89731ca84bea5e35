/* watch: what happens to runs, as a row of events that can be taken up again: a run begins, its
 * state changes, a fault counts or is withdrawn, its verdict has a new version.
 *
 * While anybody watches, runs that changed are judged, each at most twice a second, all together
 * for a small part of the loop's time; an open run besides each 10 s, because time alone can make
 * it stalled. Nobody watches: nothing is judged. The last events are kept (EVENTS, BYTES) so that a
 * watcher who was away for a moment goes on where it was; five minutes after the last one left they
 * are forgotten.
 *
 * Who watches, and what it may see, is api_watch.c's matter.
 */
#pragma once

#include "ledger.h"

struct watch_event {
	uint64_t seq;
	uint32_t run;       /* its number */
	const char *type;   /* constant */
	struct ff_buf data; /* a JSON object (schema/json/watch.schema.json), no newline in it */
};

/* Is anybody there who wants to see this run? */
typedef bool watch_wanted_fn(void *ud, const struct ff_run *run);
/* There are events behind those that were there before. */
typedef void watch_woke_fn(void *ud);

struct watch *watch_create(
	struct daemon *d, watch_wanted_fn *wanted, watch_woke_fn *woke, void *ud);
/* Closes its timer; watch_destroy after the loop has run out. */
void watch_close(struct watch *w);
void watch_destroy(struct watch *w);

/* So many watch. */
void watch_count(struct watch *w, size_t watchers);
/* Something came that may change this run's verdict. w may be NULL. */
void watch_changed(struct watch *w, struct run_state *rs);

/* Number of the newest event; events are numbered from 1 since the daemon's start. */
uint64_t watch_last(const struct watch *w);
/* All behind this one are still there. */
bool watch_has_after(const struct watch *w, uint64_t seq);
/* The event of this number, which is there. Borrowed until the loop's next turn. */
const struct watch_event *watch_get(const struct watch *w, uint64_t seq);
