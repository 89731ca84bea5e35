/* match, inside: what match.c (texts, parts of a traceback, what decides) and match_frame.c (lines
 * and frames) share. Nobody else includes it.
 */
#pragma once

#include "core/match.h"

#define NONE SIZE_MAX /* no line, no part */

/* A line as a traceback has it, and its role there: in torchrun's table tracebacks stand in the
 * rows. */
struct ff_str ff_match_view(const struct ff_record *rec, size_t i, enum ff_line_role *ret_role);
/* The frame in this line, of Python, rich or IPython. ret->path may lie in *path. */
bool ff_match_frame(
	struct ff_buf *path, const struct ff_record *rec, size_t line, struct ff_frame *ret);
/* Python's own modules, installed packages and torch are not the user's code. */
bool ff_match_is_library(struct ff_str path);
/* The line of the first user frame of the thread that got the signal; NONE. */
size_t ff_match_dump_frame(const struct ff_record *rec);
/* "train.py:412 in step: code" in *out, or empty. */
struct ff_str ff_match_describe(
	struct ff_buf *out, struct ff_buf *path, const struct ff_record *rec, size_t line);
/* A frame that only a launcher's own process has: its name, else NULL. */
const char *ff_match_launcher(const struct ff_frame *f);
