/* Time as a number: microseconds, of the epoch or a span. No clock is read here.
 *
 * Calendar arithmetic is proleptic Gregorian and UTC; TZ and locale are never looked at.
 */
#pragma once

#include "base/buf.h"

typedef int64_t ff_usec;

#define FF_TIME_NONE INT64_MIN
#define FF_SECOND ((ff_usec)1000000)
/* Stamps outside 2000-01-01 .. 2099-12-31 are shown, not used. */
#define FF_TIME_FIRST ((ff_usec)946684800 * FF_SECOND)
#define FF_TIME_LAST ((ff_usec)4102444800 * FF_SECOND)

static inline bool ff_usec_usable(ff_usec t)
{
	return t != FF_TIME_NONE && t >= FF_TIME_FIRST && t < FF_TIME_LAST;
}

/* Days since 1970-01-01 of a civil date (month 1-12, day 1-31). */
int64_t ff_usec_days(int64_t year, int month, int day);
/* The instant of a civil UTC date and time. sec may be 60. */
ff_usec ff_usec_civil(int64_t year, int month, int day, int hour, int min, int sec, int us);
void ff_usec_split(ff_usec t, int64_t *ret_year, int *ret_month, int *ret_day, int *ret_hour,
		   int *ret_min, int *ret_sec, int *ret_us);
/* RFC 3339 ("T" or blank between date and time, 0-9 digits of fraction, Z or an offset; no zone is
 * taken as UTC): true and *ret. All of s must be used. */
bool ff_usec_rfc3339(struct ff_str s, ff_usec *ret);
/* Adds "2026-01-01T00:00:00.000000Z". */
void ff_usec_render(struct ff_buf *b, ff_usec t);
/* Adds "02:14:07.481Z" with frac digits (0-6). */
void ff_usec_render_clock(struct ff_buf *b, ff_usec t, int frac);
/* Adds a span for people: "1.8 s", "350 ms", "38 min", "5 h". */
void ff_usec_render_span(struct ff_buf *b, ff_usec d);
