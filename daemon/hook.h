/* hook: tells a program (hook-command) or an HTTP server (hook-url) of verdicts and faults.
 *
 *	verdict    a run has ended and its verdict is final (else after HOOK_SETTLE); again only
 *	           when it changes in substance (hook_say.h): one message a run as a rule
 *	fault      a run that goes on has a primary fault, and no rank made progress for
 *	           hook-fault-after; once a run
 *	withdrawn  progress came after such a message was delivered; once a run
 *
 * At each pulse the runs are looked at, for about HOOK_BUSY of the loop's time: what each of the
 * two targets has to be told, less what it was told, less what waits. So nothing is lost when the
 * queue is full: it is seen again. What was delivered is stored (schema/sql, table hook), so that a
 * restart repeats only what was under way: at least once. A target is told of what ended since it
 * was first configured, not of a whole store.
 *
 * Each message is tried until it is taken, 1 s to 5 min apart, and given up after HOOK_PATIENCE;
 * HOOK_TRIES of a target are under way at once. All of it is counted.
 *
 * Nothing is told because the catalogue was changed in a running daemon (reload.h).
 */
#pragma once

#include "base/usec.h"

#include <stdbool.h>

#define HOOK_QUEUE 1024u                  /* messages that wait or are under way */
#define HOOK_BYTES (16u * 1024u * 1024u)  /* of their bodies; the last one may go beyond */
#define HOOK_TRIES 4u                     /* of a target at once */
#define HOOK_SETTLE (60 * FF_SECOND)      /* after the end, for a verdict that is not final */
#define HOOK_QUIET (FF_SECOND / 2)        /* after the last line */
#define HOOK_PATIENCE (86400 * FF_SECOND) /* then a message is given up */
#define HOOK_BUSY 4000                    /* us of the loop at each pulse */

enum hook_target { HOOK_COMMAND, HOOK_URL, HOOK_TARGETS }; /* stored: only appended to */

/* What a run's targets were told; part of its run_state. A zeroed one: nothing yet. */
struct hook_told {
	uint64_t verdict; /* substance of the last verdict; 0: none */
	bool fault, withdrawn;
};

struct hook_run {
	struct hook_told told[HOOK_TARGETS];
	bool looked;      /* the rest holds */
	uint64_t changes; /* of the run when it was judged */
	bool settled;     /* its verdict was final */
	uint64_t verdict; /* substance of the verdict of an ended run; 0: not judged */
	/* while it goes on */
	uint64_t steps;   /* progress lines of all its ranks */
	bool moved;       /* there were more */
	bool fault;       /* it has a primary fault that its rank did not recover from */
	ff_usec since_us; /* monotonic: of the last progress, or without any fault */
	bool withdrawn;   /* progress came after a fault was told */
};

struct daemon;
struct run_state;
struct ff_jw;
struct hook; /* opaque */

struct hook *hook_create(struct daemon *d);
/* Restore: a row of the table hook. rs NULL: since when a target is configured. */
void hook_restore(struct daemon *d, struct run_state *rs, int64_t target, int64_t event,
	int64_t value);
/* The configuration holds from now on: at the start, once the store is loaded, and at a reload. */
void hook_configure(struct hook *h);
/* To be called a few times a second. */
void hook_pulse(struct hook *h);
/* Ends what is under way; hook_destroy after the loop has run out. */
void hook_close(struct hook *h);
void hook_destroy(struct hook *h);
/* An object: what waits, what is under way, why the last one failed. */
void hook_describe(const struct hook *h, struct ff_jw *w);
