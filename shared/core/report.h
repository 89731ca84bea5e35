/* report: a verdict as text (the screen of `why`, a ticket), or as JSON by
 * schema/json/verdict.schema.json.
 *
 * All of it is a function of the verdict, a width and a time; secrets were masked before anything
 * was kept. A screen has at most 30 lines of `width` columns, a ticket fewer than 200.
 */
#pragma once

#include "base/json.h"
#include "core/job.h"

struct ff_report_style {
	unsigned width;   /* columns, 100 */
	bool color;       /* ANSI colour */
	ff_usec now_us;   /* for "38 min ago"; FF_TIME_NONE: left out */
	bool brief; /* only what fits a pager: at most five lines */
	unsigned lines;   /* of a table (report_ranks.h, report_timeline.h); 0: 60 */
};

enum ff_ticket { FF_TICKET_TEXT, FF_TICKET_MD };

/* Adds the verdict as one JSON object (compact, keys in the order of shared/README.md 6.5), no
 * newline. */
void ff_report_json(const struct ff_verdict *v, struct ff_buf *out);
/* Adds the screen. Log text is shown only behind `|`, with controls and bad bytes escaped. */
void ff_report_text(const struct ff_verdict *v, const struct ff_report_style *style,
		    struct ff_buf *out);
/* The first line of all screens: job, ranks, nodes, state, run and attempt. */
void ff_report_title(const struct ff_verdict *v, const struct ff_report_style *style,
		     struct ff_buf *out);
/* Adds the report for a ticket: what the screen says and what it has no room for, with the first
 * events. In Markdown log text stands in fences that it can't close. now_us: FF_TIME_NONE to leave
 * out how long ago it was. */
void ff_report_ticket(const struct ff_verdict *v, enum ff_ticket form, ff_usec now_us,
		      struct ff_buf *out);
/* "md" or "txt"; false: neither. */
bool ff_ticket_parse(struct ff_str s, enum ff_ticket *ret);
/* One event as JSON (shared/README.md 6.5, `events`), for the events command and API. */
void ff_report_event(const struct ff_sighting *s, struct ff_jw *w);
