#include "base/usec.h"

#define DAY ((int64_t)86400 * FF_SECOND)

/* The civil calendar in eras of 400 years that begin on 1 March: leap days stand at the end. */
#define ERA_DAYS 146097
#define EPOCH_SHIFT 719468 /* days from 0000-03-01 to 1970-01-01 */

int64_t ff_usec_days(int64_t year, int month, int day)
{
	year -= month <= 2;
	int64_t era = (year >= 0 ? year : year - 399) / 400;
	int64_t yoe = year - era * 400;
	int64_t doy = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1;
	int64_t doe = yoe * 365 + yoe / 4 - yoe / 100 + doy;
	return era * ERA_DAYS + doe - EPOCH_SHIFT;
}

ff_usec ff_usec_civil(int64_t year, int month, int day, int hour, int min, int sec, int us)
{
	int64_t s = ((int64_t)hour * 60 + min) * 60 + sec;
	return ff_usec_days(year, month, day) * DAY + s * FF_SECOND + us;
}

void ff_usec_split(ff_usec t, int64_t *ret_year, int *ret_month, int *ret_day, int *ret_hour,
	int *ret_min, int *ret_sec, int *ret_us)
{
	int64_t days = t / DAY;
	int64_t rest = t % DAY;
	if (rest < 0) {
		rest += DAY;
		days--;
	}
	days += EPOCH_SHIFT;
	int64_t era = (days >= 0 ? days : days - (ERA_DAYS - 1)) / ERA_DAYS;
	int64_t doe = days - era * ERA_DAYS;
	int64_t yoe = (doe - doe / 1460 + doe / 36524 - doe / 146096) / 365;
	int64_t doy = doe - (365 * yoe + yoe / 4 - yoe / 100);
	int64_t mp = (5 * doy + 2) / 153;
	*ret_day = (int)(doy - (153 * mp + 2) / 5 + 1);
	*ret_month = (int)(mp < 10 ? mp + 3 : mp - 9);
	*ret_year = yoe + era * 400 + (*ret_month <= 2);
	*ret_us = (int)(rest % FF_SECOND);
	int64_t s = rest / FF_SECOND;
	*ret_sec = (int)(s % 60);
	*ret_min = (int)(s / 60 % 60);
	*ret_hour = (int)(s / 3600);
}

/* Exactly n digits at s.p[at]: true, the value and at behind them. */
static bool take(struct ff_str s, size_t *at, size_t n, int *ret)
{
	if (*at > s.n || n > s.n - *at) {
		return false;
	}
	int64_t v = 0;
	if (ff_str_digits((struct ff_str){s.p + *at, n}, &v) != n) {
		return false;
	}
	*at += n;
	*ret = (int)v;
	return true;
}

static bool take_char(struct ff_str s, size_t *at, const char *any)
{
	if (*at >= s.n || !s.p[*at] || !strchr(any, s.p[*at])) {
		return false;
	}
	(*at)++;
	return true;
}

static int month_days(int year, int month)
{
	static const int days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
	bool leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
	return month == 2 && leap ? 29 : days[month - 1];
}

/* Up to nine digits behind a dot or comma; microseconds, the rest is dropped. */
static bool take_fraction(struct ff_str s, size_t *at, int *ret)
{
	*ret = 0;
	if (!take_char(s, at, ".,")) {
		return true;
	}
	int scale = 100000;
	size_t n = 0;
	while (*at < s.n && s.p[*at] >= '0' && s.p[*at] <= '9') {
		*ret += (s.p[*at] - '0') * scale;
		scale /= 10;
		(*at)++;
		n++;
	}
	return n <= 9;
}

/* Z, +hh:mm or +hhmm; nothing is UTC. Seconds east of it. */
static bool take_zone(struct ff_str s, size_t *at, int *ret)
{
	*ret = 0;
	if (*at == s.n || take_char(s, at, "Zz")) {
		return true;
	}
	bool west = s.p[*at] == '-';
	int hour, min;
	if (!take_char(s, at, "+-") || !take(s, at, 2, &hour)) {
		return false;
	}
	(void)take_char(s, at, ":");
	if (!take(s, at, 2, &min) || hour > 23 || min > 59) {
		return false;
	}
	*ret = (hour * 60 + min) * (west ? -60 : 60);
	return true;
}

bool ff_usec_rfc3339(struct ff_str s, ff_usec *ret)
{
	size_t at = 0;
	int year, month, day, hour, min, sec, us, zone;
	if (!take(s, &at, 4, &year) || !take_char(s, &at, "-") || !take(s, &at, 2, &month) ||
		!take_char(s, &at, "-") || !take(s, &at, 2, &day) || !take_char(s, &at, "Tt ") ||
		!take(s, &at, 2, &hour) || !take_char(s, &at, ":") || !take(s, &at, 2, &min) ||
		!take_char(s, &at, ":") || !take(s, &at, 2, &sec) || !take_fraction(s, &at, &us) ||
		!take_zone(s, &at, &zone) || at != s.n) {
		return false;
	}
	if (month < 1 || month > 12 || day < 1 || day > month_days(year, month) || hour > 23 ||
		min > 59 || sec > 60) {
		return false;
	}
	*ret = ff_usec_civil(year, month, day, hour, min, sec, us) - zone * FF_SECOND;
	return true;
}

void ff_usec_render(struct ff_buf *b, ff_usec t)
{
	int64_t year;
	int month, day, hour, min, sec, us;
	ff_usec_split(t, &year, &month, &day, &hour, &min, &sec, &us);
	ff_buf_addf(b, "%04lld-%02d-%02dT%02d:%02d:%02d.%06dZ", (long long)year, month, day, hour,
		min, sec, us);
}

void ff_usec_render_clock(struct ff_buf *b, ff_usec t, int frac)
{
	int64_t year;
	int month, day, hour, min, sec, us;
	ff_usec_split(t, &year, &month, &day, &hour, &min, &sec, &us);
	ff_buf_addf(b, "%02d:%02d:%02d", hour, min, sec);
	if (frac > 0) {
		char digits[8];
		for (int i = 5; i >= 0; i--) {
			digits[i] = (char)('0' + us % 10);
			us /= 10;
		}
		ff_buf_addc(b, '.');
		ff_buf_add(b, digits, (size_t)(frac < 6 ? frac : 6));
	}
	ff_buf_addc(b, 'Z');
}

static int64_t rounded(int64_t d, int64_t unit)
{
	return d / unit + (d % unit >= unit / 2 ? 1 : 0);
}

void ff_usec_render_span(struct ff_buf *b, ff_usec d)
{
	if (d < 0) {
		ff_buf_addc(b, '-');
		d = d == INT64_MIN ? INT64_MAX : -d;
	}
	if (d == 0) {
		ff_buf_addz(b, "0 s");
	} else if (d < 1000) {
		ff_buf_addf(b, "%d us", (int)d);
	} else if (rounded(d, 1000) < 1000) {
		ff_buf_addf(b, "%d ms", (int)rounded(d, 1000));
	} else if (rounded(d, FF_SECOND / 10) < 200) {
		int tenths = (int)rounded(d, FF_SECOND / 10);
		ff_buf_addf(b, "%d.%d s", tenths / 10, tenths % 10);
	} else if (rounded(d, FF_SECOND) < 120) {
		ff_buf_addf(b, "%d s", (int)rounded(d, FF_SECOND));
	} else if (rounded(d, 60 * FF_SECOND) < 120) {
		ff_buf_addf(b, "%d min", (int)rounded(d, 60 * FF_SECOND));
	} else if (rounded(d, 3600 * FF_SECOND) < 48) {
		ff_buf_addf(b, "%d h", (int)rounded(d, 3600 * FF_SECOND));
	} else {
		ff_buf_addf(b, "%lld d", (long long)rounded(d, 24 * 3600 * FF_SECOND));
	}
}
