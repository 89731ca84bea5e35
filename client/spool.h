/* spool: text that can't be read twice (a pipe's), on disk until the daemon has it.
 *
 *	FOLDER/SOURCE/lock          held by the ship that owns the spool
 *	FOLDER/SOURCE/hello         where it goes, and the hello it goes under, without its token
 *	FOLDER/SOURCE/NNN.seg       frames; NNN: offset of the first byte
 *
 * FOLDER is $FIRSTFAULT_SPOOL, else as root /var/spool/firstfault, else
 * $XDG_STATE_HOME/firstfault/spool; mode 0700. SOURCE is the stream's source (128 random bits), so
 * whoever sends the rest goes on as the same source: nothing is lost and nothing comes twice. A
 * frame is a header with a checksum, and native data lines, masked. Nothing is synced: text of a
 * pipe does not outlive its machine. After a crash a segment counts up to its last whole frame.
 *
 * The writer never waits for the daemon. Beyond `max` bytes the oldest segment is dropped: the end
 * of a job says more than its middle. Where the disk takes nothing, text is kept in memory,
 * SPOOL_MEMORY bytes of it. What is dropped leaves a gap in the stream and is counted.
 *
 * One thread puts (spool_put, spool_flush, spool_end), another one does the rest.
 */
#pragma once

#include "base/mask_rules.h"
#include "base/usec.h"
#include "wire/native.h"

#define SPOOL_MAX_DEFAULT ((int64_t)1 << 30)
#define SPOOL_MAX_LEAST ((int64_t)1 << 20)
#define SPOOLS_MAX 256u                    /* of one user; a further one is kept in memory */
#define SPOOL_MEMORY (4u * 1024u * 1024u)

struct spool; /* opaque */

/* A new one. hello has everything but source; strings are copied. to: where it goes, as
 * ff_addr_render says. mask: borrowed; NULL allowed. If there can be no folder, the spool is
 * in memory and err says why. */
struct spool *spool_create(const char *to, const struct ff_native_hello *hello, uint64_t max,
	const struct ff_mask_rules *mask, struct ff_err *err);
/* Those whose ship is gone and that go to this address (NULL: anywhere) are given to fn. Returns
 * how many of them there are altogether, owned or not. */
size_t spool_adopt(const char *to, void (*fn)(void *ud, struct spool *s), void *ud);
/* done: all of it is stored, so the folder goes. Else it waits for the next ship. */
void spool_destroy(struct spool *s, bool done);
/* The daemon will never take it: it is left, but nobody adopts it any more. */
void spool_refuse(struct spool *s);
const struct ff_native_hello *spool_hello(const struct spool *s);
/* For messages; empty: in memory. */
const char *spool_folder(const struct spool *s);

/* A text without its LF; it is masked in place. It is in the spool after spool_flush. */
void spool_put(struct spool *s, ff_usec stamp, char *text, size_t n, bool newline);
void spool_flush(struct spool *s);
/* The source has ended. */
void spool_end(struct spool *s);
/* From now on all is thrown away: nobody wants it. */
void spool_discard(struct spool *s);

/* The offset behind the last byte, and whether the source has ended there. */
uint64_t spool_size(struct spool *s, bool *ret_ended);
/* Adds native lines for the bytes from *next on, up to about `most` bytes or to the offset `room`,
 * and moves *next behind them; over bytes that were dropped with a `gap`. */
void spool_get(struct spool *s, uint64_t *next, uint64_t room, size_t most, struct ff_buf *out);
/* Bytes before this offset are stored by the daemon. */
void spool_forget(struct spool *s, uint64_t acked);
/* Bytes that were dropped before they were stored. */
uint64_t spool_dropped(struct spool *s);
