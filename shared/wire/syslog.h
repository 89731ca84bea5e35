/* syslog: frames and messages of RFC 5424, RFC 3164 and RFC 6587, as rsyslog, syslog-ng and
 * Docker's driver send them over TCP (shared/README.md 6.3).
 *
 * A frame is octet-counted ("LEN <PRI>...") or ends at a newline; senders mix both, so each is
 * looked at anew. Structured data of any element may say who speaks: job, run, rank, local_rank,
 * attempt, node, and stream or file. Without a HOST (Docker's default form) there is no node.
 *
 * In: bytes. Out: struct ff_syslog, whose views point into the message or into its own buffer and
 * are valid until the next parse. No I/O, no clock.
 */
#pragma once

#include "base/buf.h"
#include "base/usec.h"

#define FF_SYSLOG_FRAME (1024u * 1024u) /* bytes of a message; a longer one is skipped */

struct ff_syslog {
	int facility, severity; /* 0-23, 0-7 */
	ff_usec time;           /* RFC 5424 and ISO times with a zone; else FF_TIME_NONE */
	struct ff_str host, app, text; /* absent: p is NULL (text: empty) */
	/* of structured data; absent: p is NULL, -1 */
	struct ff_str job, run, node, stream;
	int64_t rank, local_rank, attempt;
	struct ff_buf mem; /* values that had to be unescaped */
};

enum ff_syslog_frame {
	FF_SYSLOG_MORE, /* the frame isn't whole yet */
	FF_SYSLOG_WHOLE,
	FF_SYSLOG_LONG, /* counted, above FF_SYSLOG_FRAME: *ret_used bytes are to be skipped */
	FF_SYSLOG_NONE, /* no frame: a line of something else */
};

/* Does a connection that begins with s speak syslog? FF_SYSLOG_WHOLE: yes; MORE: perhaps. */
enum ff_syslog_frame ff_syslog_front(struct ff_str s);
/* The first frame of s: *ret_message without count and end, *ret_used with them. */
enum ff_syslog_frame ff_syslog_frame(struct ff_str s, struct ff_str *ret_message,
				     uint64_t *ret_used);
/* Never fails for a message that begins with <PRI>: what isn't understood behind it is text.
 * False: it doesn't. */
bool ff_syslog_parse(struct ff_syslog *o, struct ff_str message);
void ff_syslog_finish(struct ff_syslog *o);
