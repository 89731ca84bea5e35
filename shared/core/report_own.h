/* report_own: what the screen and the ticket share: text made safe for a terminal, and the
 * sentences about a verdict that both print.
 *
 * Columns are counted as a terminal does, wide characters as two, and never too low. Functions that
 * add to a buffer add UTF-8 without control characters; nothing here ends a line.
 */
#pragma once

#include "core/report.h"

/* ---- text (report_piece.c) */

/* Adds text in at most `room` columns, controls and bad bytes as \xNN, tabs as a blank; what does
 * not fit is cut and ends in "..". Returns the columns used. */
unsigned ff_report_put(struct ff_buf *out, struct ff_str s, unsigned room);
/* How many bytes of s go on a line of `room` columns, broken at a blank if there is one in its
 * second half; at least one byte of a text that is not empty. */
size_t ff_report_break(struct ff_str s, unsigned room);
/* Adds ascending ranks as "0-4,6"; after `parts` ranges (0: no limit) ",...". */
void ff_report_ranges(struct ff_buf *b, const int32_t *ranks, size_t n, size_t parts);

/* ---- sentences (report_words.c, report_proof.c) */

/* The event that shows the verdict best, NULL without one. */
const struct ff_sighting *ff_report_proof(const struct ff_verdict *v);
/* Is its fault that a node went away? */
bool ff_report_is_lost(const struct ff_verdict *v);
/* A run that goes on and shows no fault. */
bool ff_report_is_quiet(const struct ff_verdict *v);
/* "FAILED 02:14:22Z, 38 min ago", "RUNNING, STALLED 6 min". */
void ff_report_state(const struct ff_verdict *v, ff_usec now_us, struct ff_buf *b);
/* "48211 llama70b-sft  ann  ": its id, and the name and user that it was started with. */
void ff_report_job(const struct ff_verdict *v, struct ff_buf *b);
/* "256 ranks, 32 nodes" */
void ff_report_size(const struct ff_verdict *v, struct ff_buf *b);
/* "RANK 137 ran out of GPU memory": who did what, one sentence. */
void ff_report_who(const struct ff_verdict *v, struct ff_buf *b);
/* "gpu-017, GPU 1 (local rank 1)", of one initiating rank; of a node its ranks. */
void ff_report_where(const struct ff_verdict *v, struct ff_buf *b);
/* "certain, final" */
void ff_report_sure(const struct ff_verdict *v, struct ff_buf *b);
/* "install the module; tell mei, wake nobody": what to do, and whom it concerns, if known. */
void ff_report_do(const struct ff_verdict *v, struct ff_buf *b);
/* "[exclude-node gpu-017, retry]" */
void ff_report_action(const struct ff_verdict *v, struct ff_buf *b);
/* "02:14:07.481Z  rank 137  gpu-017/stderr.log:8841" */
void ff_report_place(const struct ff_sighting *s, struct ff_buf *b);
/* "255 ranks, collateral, +1.9 s to +12.4 s: 217 nccl-remote-error, 38 SIGTERM" */
void ff_report_then(const struct ff_verdict *v, struct ff_buf *b);
/* "256 of 256 ranks, all to their end; 32 streams, job end" */
void ff_report_seen(const struct ff_verdict *v, struct ff_buf *b);
/* "the clock of gpu-005 is 10.2 s slow (corrected)": of the worst one above a second. */
void ff_report_clock(const struct ff_verdict *v, struct ff_buf *b);
/* The catalogue's command with node, job and process filled in, from typed fields only: what stands
 * in a log never comes into it. */
void ff_report_verify(const struct ff_verdict *v, size_t number, struct ff_buf *b);

/* These add any number of lines, each with its LF. */

/* What the logs show besides the event itself: by how much it was first, how far the ranks had
 * come, since when somebody was silent. */
void ff_report_shown(const struct ff_verdict *v, struct ff_buf *b);
/* Who looks guilty and is not. */
void ff_report_not(const struct ff_verdict *v, struct ff_buf *b);
/* What would settle it, beyond what is missing: where some waited and others did not come. */
void ff_report_settle(const struct ff_verdict *v, struct ff_buf *b);
/* Between whom it could not decide ("A  rank 3 ..."), two lines or none. */
void ff_report_candidates(const struct ff_verdict *v, struct ff_buf *b);
