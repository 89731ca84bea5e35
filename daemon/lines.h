/* lines: picks the lines around a place, or the last ones, out of a stream's bytes as they go by.
 *
 *	struct lines l;
 *	lines_init(&l, offset, 20);
 *	while (!lines_done(&l)) { lines_feed(&l, at, bytes); ... }
 *	lines_end(&l); lines_number(&l, offset, 412);
 *	for (size_t i = 0; i < l.n; i++) ... l.v[i] ...
 *	lines_finish(&l);
 *
 * Pure. Bytes come in order of offset; a jump ahead ends the line that was open. A line's text is
 * cut at FF_LINE_MAX.
 */
#pragma once

#include "base/buf.h"
#include "base/limits.h"

#define LINES_END UINT64_MAX /* no place: the last lines */

struct lines_one {
	uint64_t offset, end; /* of its first byte, and behind its LF */
	int64_t number;       /* 0: unknown */
	char *text;           /* without LF */
	size_t len;
};

struct lines {
	uint64_t target;     /* a byte of the line in the middle, or LINES_END */
	size_t want;         /* before it, and behind it */
	struct lines_one *v; /* result, in order */
	size_t n, cap;
	struct ff_buf open; /* the unfinished line */
	uint64_t open_at, next;
	bool is_open;
	bool found;   /* the target's line is in v */
	bool missed;  /* the target's line did not come, but one behind it */
	size_t after; /* lines behind it */
};

void lines_init(struct lines *l, uint64_t target, size_t want);
void lines_finish(struct lines *l);
void lines_feed(struct lines *l, uint64_t offset, struct ff_str bytes);
bool lines_done(const struct lines *l);
/* No more bytes. */
void lines_end(struct lines *l);
/* Numbers the lines by one that is known: `number` is the line that holds the byte at offset. */
void lines_number(struct lines *l, uint64_t offset, int64_t number);
