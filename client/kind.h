/* kind: what a text that nobody declared is, by the form of its first lines: a node's kernel log, a
 * scheduler's daemon log, a launcher's own output, or anything else.
 *
 * A guess that is safe to make: nearly all lines have a form that programs of a job don't print,
 * and what it changes is whom the lines are about (no rank), not how far they are believed: only a
 * declared kernel or scheduler stream is trusted (law 11).
 */
#pragma once

#include "core/origin.h"

struct kind_guess {
	enum ff_stream_kind kind; /* FF_STREAM_MIXED: nothing is known */
	struct ff_str host;       /* of a kernel log: the one host that its lines name, or empty */
};

/* The front of a text; a line that is cut at its end is not looked at unless it is the only one. */
struct kind_guess kind_of_text(struct ff_str front);
