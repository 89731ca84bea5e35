/* report_cursor: where the next page of a list begins, said so that nothing is shown twice or left
 * out when ranks or events come in between two pages.
 *
 * Of ranks: the next rank's number; `-K` for the Kth of those without one. Of events: the number of
 * those before it and the hash of the last one's id: it goes on behind that event, wherever it
 * stands by now; if that was dropped, behind as many.
 */
#pragma once

#include "core/report.h"

/* The list goes on with the ith. Appended. */
void ff_report_cursor_rank(const struct ff_verdict *v, size_t i, struct ff_buf *out);
void ff_report_cursor_event(const struct ff_verdict *v, size_t i, struct ff_buf *out);
/* *ret: where to go on, at most the number of all. False: that is no cursor. */
bool ff_report_cursor_find_rank(const struct ff_verdict *v, struct ff_str cursor, size_t *ret);
bool ff_report_cursor_find_event(const struct ff_verdict *v, struct ff_str cursor, size_t *ret);
