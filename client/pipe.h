/* pipe: a thread that reads what can be read once into a spool, as fast as it comes.
 *
 * Whoever writes into a pipe is stopped by a reader that waits: for a daemon, a name server, a hung
 * file system. So this thread does nothing else. It ends with the pipe. Lines get the time of their
 * last byte's arrival; of a line that stays unfinished for a second the piece there is goes first.
 */
#pragma once

#include "spool.h"

struct pipe; /* opaque */

/* path NULL: standard input. The spool is borrowed until the pipe has ended. wake: an eventfd that
 * is written when there is something new. mask: those of the spool. */
struct pipe *pipe_start(
	const char *path, struct spool *spool, const struct ff_mask_rules *mask, int wake);
/* Has it ended? */
bool pipe_ended(const struct pipe *p);
/* It reads no further; the source's end is not said. */
void pipe_stop(struct pipe *p);
/* Waits until it has ended. */
void pipe_wait(struct pipe *p);
void pipe_destroy(struct pipe *p);
/* Why it could not be read, or empty. To be asked when it has ended. */
const char *pipe_trouble(const struct pipe *p);
