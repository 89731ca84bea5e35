/* report_ranks: the ranks of a verdict as a table: those in one state fold to one line, the odd one
 * stands on top; as JSON one object a rank (schema/json/ranks.schema.json).
 *
 * One state: status, how it was heard, whether to its end, exit, its own first fault with the same
 * normalised text, and whether its last step lies behind the others'. Pure; nothing is kept.
 */
#pragma once

#include "core/report.h"

/* "unheard", "quiet", "heard", "silent" (law 4). */
const char *ff_heard_name(enum ff_heard heard);
/* Title and table, at most style->lines lines (0: 60); says how many groups are left out. */
void ff_report_ranks_text(const struct ff_verdict *v, const struct ff_report_style *style,
			  struct ff_buf *out);
/* The list of at most `limit` ranks from the `from`th on, no newline behind it. `group` is the line
 * of the table, from 1. */
void ff_report_ranks_json(const struct ff_verdict *v, size_t from, size_t limit,
			  struct ff_buf *out);
