/* kmsg: the kernel log of the daemon's own host, read live: a log of this node (feed/nodes.h).
 *
 * In: /dev/kmsg, or a FIFO of the same form: `PRIORITY,SEQUENCE,MICROSECONDS,FLAGS;text`, a record
 * a read, with lines ` KEY=value` behind that are left out; bytes that can't be printed are \xNN
 * (https://docs.kernel.org/admin-guide/abi-testing.html, dev-kmsg). Out: a line a record.
 *
 * Stamps. A record that comes while it is waited for has the daemon's time. What stood in the
 * kernel's buffer when it was opened has none: its microseconds since boot are of a clock that
 * drifts and stops in suspend, and nothing says by how much.
 *
 * Restart. The stream's source is `kmsg:BOOT:FIRST`, the boot and the sequence number of its first
 * line, so that the number of its lines tells where to go on. Where records were overwritten before
 * they were read (counted), another stream begins.
 *
 * It is trusted where root or the daemon's user owns it. It is read in the loop: the buffer is
 * memory.
 */
#pragma once

#include "daemon.h"

struct kmsg;

/* By the key `kernel-log`: "no", "yes" (/dev/kmsg) or a path. *ret NULL: there is nothing to read.
 * A device that may not be read is a warning; what is neither a device nor a FIFO is FF_EUSAGE. */
int kmsg_open(struct daemon *d, struct kmsg **ret, struct ff_err *err);
void kmsg_hold(struct kmsg *k, bool hold);
/* Closes its handle; the memory goes with kmsg_destroy after the loop has run out. */
void kmsg_close(struct kmsg *k);
void kmsg_destroy(struct kmsg *k);

/* One record's first line, as `text`: bytes from 0x80 on are unescaped, others stay as they are.
 * False: it is none. */
bool kmsg_parse(struct ff_str line, int64_t *ret_seq, struct ff_buf *text);
