/* wrapped: text that a runtime or the journal keeps as objects becomes JSON Lines of ours.
 *
 *	docker's json-file    {"log":"text\n","stream":"stderr","time":"..."}, where the file's
 *	                      name says a rank (others: feed/intake_jsonl.c)
 *	journalctl -o json    {"MESSAGE":"...","_HOSTNAME":"...","__REALTIME_TIMESTAMP":"..."}
 *	journalctl -o export  KEY=value, an empty line behind each entry
 *
 * One file is one stream under its own name (docker's: NAME/stdout and NAME/stderr), its stamps are
 * captured ones. What the journal got
 * from the kernel itself is a kernel stream.
 */
#pragma once

#include "base/buf.h"
#include "core/origin.h"

struct wrapped; /* opaque */

/* NULL if the front is none of these. origin and job are borrowed. */
struct wrapped *wrapped_open(struct ff_str front, const struct ff_origin *origin, const char *job);
/* Takes bytes of the file; adds whole lines to out. */
void wrapped_feed(struct wrapped *w, struct ff_str bytes, struct ff_buf *out);
/* torchrun's error.json in its shapes: the traceback that it holds, else its message; false if it
 * is none. Appended. */
bool wrapped_error_record(struct ff_str text, struct ff_buf *out);
/* The end: what was a piece is a line. Frees w. */
void wrapped_close(struct wrapped *w, struct ff_buf *out);
