/* report: a verdict as text (the screen of `why`), or as JSON by schema/json/verdict.schema.json.
 */
#pragma once

#include "base/json.h"
#include "core/job.h"

struct ff_report_style {
	unsigned width;   /* columns, 100 */
	bool color;       /* ANSI colour */
	ff_usec now_us;   /* for "38 min ago"; FF_TIME_NONE: left out */
	bool brief;
};

/* Adds the verdict as one JSON object (compact, keys in the order of shared/README.md 6.5), no
 * newline. */
void ff_report_json(const struct ff_verdict *v, struct ff_buf *out);
/* Adds the screen. Log text is shown only behind `|`, with controls and bad bytes escaped. */
void ff_report_text(const struct ff_verdict *v, const struct ff_report_style *style,
		    struct ff_buf *out);
/* One event as JSON (shared/README.md 6.5, `events`), for the events command and API. */
void ff_report_event(const struct ff_sighting *s, struct ff_jw *w);
