/* sse: server-sent events out of the bytes of their stream
 * (https://html.spec.whatwg.org/multipage/server-sent-events.html), cut anywhere.
 *
 *	struct sse s = {.fn = on_event, .ud = me};
 *	more = sse_feed(&s, bytes);    // false: fn has enough
 *	... s.last_id ...
 *	sse_finish(&s);
 *
 * Of the standard: lines end with LF or CRLF; `event`, `id` and `data` are read, comments and other
 * fields skipped. A line is at most SSE_LINE; the rest of a longer one is dropped.
 */
#pragma once

#include "base/buf.h"

#define SSE_LINE (1024u * 1024u)

struct sse_event {
	const char *type; /* "message" unless the stream says otherwise */
	const char *data; /* "": none (an id alone) */
};

struct sse {
	bool (*fn)(void *ud, const struct sse_event *e); /* false: no more */
	void *ud;
	struct ff_buf line, type, data;
	char *last_id; /* NULL: none yet */
};

bool sse_feed(struct sse *s, struct ff_str bytes);
/* The stream broke off: what is not complete is dropped, last_id stays. */
void sse_break(struct sse *s);
void sse_finish(struct sse *s);
