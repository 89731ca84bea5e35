/* reload: SIGHUP: the configuration file, the folder `catalog` and the token file are read again.
 *
 * A thread of libuv's pool reads and checks; the loop takes over what is good, all of it between
 * two callbacks, or nothing: what is bad is refused whole with its reason, and the old one stands.
 * Keys that only a restart changes (config.def: RESTART) keep their value and are named. A signal
 * that comes meanwhile makes it read once more.
 *
 * The catalogue. All runs go over to the new one at the same moment (ff_job_use), as they would by
 * a restart: their events stay as they were matched, what comes is matched by the new one, and what
 * a verdict says about a fault (cause, fix) is of the new one. Nothing is judged again by itself: a
 * verdict that reads differently is another version (ETag) when somebody asks for it, and no hook
 * runs for it. Nobody borrows from a catalogue from one callback to the next but the runs, so the
 * old one is destroyed at once. One with the same files is not taken.
 */
#pragma once

#include "daemon.h"

struct ff_jw;
struct reload; /* opaque */

/* argc, argv: the program's flags, which win again; borrowed until close. config: what d->config
 * points to. done is called after each reload, whether it was good or not. */
struct reload *reload_create(struct daemon *d, struct config *config, int argc, char **argv,
	void (*done)(void *ud), void *ud);
/* After the loop has run out. */
void reload_destroy(struct reload *r);
void reload_start(struct reload *r);
/* An object: when it was taken, what was refused last and when, what needs a restart. */
void reload_describe(const struct reload *r, struct ff_jw *w);
