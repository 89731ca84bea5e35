/* report_timeline: the events of one attempt in order, as a table with error bars, or as JSON, one
 * object an event (schema/json/timeline.schema.json).
 *
 * A time is shown as its distance from the event that started it, with how far it may be wrong; `~`
 * stands where an event can't be ordered with the one above it. Times of other clocks than that
 * event's have no distance and no bar (law 3). Equal ones fold to one line with their ranks and a
 * count. The table leaves out what is no fault and no exit. Pure; nothing is kept.
 */
#pragma once

#include "core/report.h"

/* Title and table, at most style->lines lines (0: 60); says how many rows are left out. */
void ff_report_timeline_text(const struct ff_verdict *v, const struct ff_report_style *style,
			     struct ff_buf *out);
/* All events of the attempt, of any kind: at most `limit`, from the `from`th event of the
 * run on (of all its attempts), no newline behind
 * the list. `order` says how an event stands to the one before it. */
void ff_report_timeline_json(const struct ff_verdict *v, size_t from, size_t limit,
			     struct ff_buf *out);
