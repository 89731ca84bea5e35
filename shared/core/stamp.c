#include "core/stamp.h"

#define FRONT 64u        /* bytes of a text that are looked at */
#define LEADS_MAX 3u     /* `[INFO] `, `(raylet) `, `WARNING: ` in front of a stamp */
#define LEAD_LEN 32u     /* bytes of one in brackets */
#define CANCELLED 320u   /* bytes of Slurm's word about a cancelled step, with its nodes */
#define YEAR_UNSAID 2000 /* a leap year: 29 February stays a date */

struct cursor {
	struct ff_str s;
	size_t at;
};

/* What a stamp says, before it becomes an instant. */
struct parts {
	int year, month, day, hour, min, sec;
	int us;
	uint32_t grain;
	bool has_year;
	bool has_zone;
	bool mono_fraction;
	int zone_s; /* seconds east of UTC */
};

static char peek(const struct cursor *c, size_t i)
{
	return c->at + i < c->s.n ? c->s.p[c->at + i] : '\0';
}

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static bool is_letter(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

static size_t count_digits(const struct cursor *c)
{
	size_t n = 0;
	while (n < 20 && is_digit(peek(c, n))) {
		n++;
	}
	return n;
}

/* n digits that stand here, no matter what follows. */
static bool take_digits(struct cursor *c, size_t n, int *ret)
{
	int v = 0;
	for (size_t i = 0; i < n; i++) {
		if (!is_digit(peek(c, i))) {
			return false;
		}
		v = v * 10 + (peek(c, i) - '0');
	}
	c->at += n;
	*ret = v;
	return true;
}

static bool take_char(struct cursor *c, char what)
{
	if (peek(c, 0) != what || c->at >= c->s.n) {
		return false;
	}
	c->at++;
	return true;
}

static void skip_blanks(struct cursor *c)
{
	while (peek(c, 0) == ' ' || peek(c, 0) == '\t') {
		c->at++;
	}
}

static bool take_clock(struct cursor *c, struct parts *p)
{
	return take_digits(c, 2, &p->hour) && take_char(c, ':') && take_digits(c, 2, &p->min) &&
		take_char(c, ':') && take_digits(c, 2, &p->sec);
}

/* "May  1" or "May 1": SOURCES.md log-stamps, syslog and ctime. */
static bool take_month_day(struct cursor *c, struct parts *p)
{
	static const char months[] = "JanFebMarAprMayJunJulAugSepOctNovDec";
	int month = 0;
	for (int m = 0; m < 12 && !month; m++) {
		if (peek(c, 0) == months[m * 3] && peek(c, 1) == months[m * 3 + 1] &&
			peek(c, 2) == months[m * 3 + 2]) {
			month = m + 1;
		}
	}
	if (!month || peek(c, 3) != ' ') {
		return false;
	}
	p->month = month;
	c->at += 4;
	(void)take_char(c, ' ');
	size_t n = count_digits(c);
	return (n == 1 || n == 2) && take_digits(c, n, &p->day);
}

/* A decimal fraction of any length behind a dot or comma; none is whole seconds. */
static void take_fraction(struct cursor *c, struct parts *p)
{
	p->us = 0;
	p->grain = 1000000;
	if ((peek(c, 0) != '.' && peek(c, 0) != ',') || !is_digit(peek(c, 1))) {
		return;
	}
	c->at++;
	int scale = 100000;
	for (; is_digit(peek(c, 0)); c->at++) {
		p->us += (peek(c, 0) - '0') * scale;
		scale /= 10;
		p->grain = p->grain > 1 ? p->grain / 10 : 1;
	}
	if (p->grain == 1 && p->us % 1000 == 0) {
		p->grain = 1000; /* torch._logging prints milliseconds and 000 (torch-logging) */
	}
}

/* Z, +02:00, +0200, +02; a blank may stand before the sign. No zone is no fault. */
static void take_zone(struct cursor *c, struct parts *p)
{
	if (peek(c, 0) == 'Z' && !is_letter(peek(c, 1))) {
		c->at++;
		p->has_zone = true;
		return;
	}
	struct cursor z = *c;
	bool blank = take_char(&z, ' ');
	char sign = peek(&z, 0);
	int hour, min = 0;
	if (sign != '+' && sign != '-') {
		return;
	}
	z.at++;
	if (!take_digits(&z, 2, &hour)) {
		return;
	}
	bool colon = take_char(&z, ':');
	bool minutes = take_digits(&z, 2, &min);
	if ((!minutes && (colon || blank)) || is_digit(peek(&z, 0)) || hour > 23 || min > 59) {
		return;
	}
	*c = z;
	p->has_zone = true;
	p->zone_s = (hour * 60 + min) * (sign == '-' ? -60 : 60);
}

/* 2026-11-30 09:34:17,075 and its kin: T, blank or _ (torchrun's table) in the middle. */
static bool take_iso(struct cursor *c, struct parts *p)
{
	if (!take_digits(c, 4, &p->year) || !take_char(c, '-') || !take_digits(c, 2, &p->month) ||
		!take_char(c, '-') || !take_digits(c, 2, &p->day)) {
		return false;
	}
	if (!take_char(c, 'T') && !take_char(c, ' ') && !take_char(c, '_')) {
		return false;
	}
	if (!take_clock(c, p)) {
		return false;
	}
	p->has_year = true;
	take_fraction(c, p);
	take_zone(c, p);
	return !is_letter(peek(c, 0)) && !is_digit(peek(c, 0));
}

static bool is_severity(char c)
{
	return c && strchr("IWEFVCD", c);
}

/* I0501 12:00:00.123456 4121 f.cc:12], newer ones with a year (SOURCES.md c10-logging). */
static bool take_glog(struct cursor *c, struct parts *p)
{
	if (!is_severity(peek(c, 0))) {
		return false;
	}
	c->at++;
	size_t n = count_digits(c);
	if (n != 4 && n != 8) {
		return false;
	}
	p->has_year = n == 8;
	if (p->has_year && !take_digits(c, 4, &p->year)) {
		return false;
	}
	if (!take_digits(c, 2, &p->month) || !take_digits(c, 2, &p->day) || !take_char(c, ' ') ||
		!take_clock(c, p)) {
		return false;
	}
	take_fraction(c, p);
	return p->grain < 1000000 && peek(c, 0) == ' ';
}

/* [E501 12:00:08.123456789 f.cpp:12]: the month has no leading zero, and the nine digits are those
 * of CLOCK_MONOTONIC, so that only the second is known (SOURCES.md c10-logging). */
static bool take_c10(struct cursor *c, struct parts *p)
{
	if (!is_severity(peek(c, 0))) {
		return false;
	}
	c->at++;
	size_t n = count_digits(c);
	if ((n != 3 && n != 4) || !take_digits(c, n - 2, &p->month) ||
		!take_digits(c, 2, &p->day) || !take_char(c, ' ') || !take_clock(c, p)) {
		return false;
	}
	if (peek(c, 0) != '.') {
		return false;
	}
	c->at++;
	n = count_digits(c);
	c->at += n;
	if (n != 9 || peek(c, 0) != ' ') {
		return false;
	}
	p->us = 0;
	p->grain = 1000000;
	p->mono_fraction = true;
	return true;
}

/* Thu May  1 12:00:00 2024 */
static bool take_ctime(struct cursor *c, struct parts *p)
{
	static const char days[] = "SunMonTueWedThuFriSat";
	bool day = false;
	for (size_t i = 0; i < 7 && !day; i++) {
		day = peek(c, 0) == days[i * 3] && peek(c, 1) == days[i * 3 + 1] &&
			peek(c, 2) == days[i * 3 + 2];
	}
	if (!day || peek(c, 3) != ' ') {
		return false;
	}
	c->at += 4;
	if (!take_month_day(c, p) || !take_char(c, ' ') || !take_clock(c, p) ||
		!take_char(c, ' ') || !take_digits(c, 4, &p->year)) {
		return false;
	}
	p->has_year = true;
	return !is_digit(peek(c, 0));
}

/* May  1 12:00:00 of syslog; Jul 23 2024 07:53:55 of the fabric manager. */
static bool take_syslog(struct cursor *c, struct parts *p)
{
	if (!take_month_day(c, p) || !take_char(c, ' ')) {
		return false;
	}
	if (count_digits(c) == 4) {
		p->has_year = true;
		if (!take_digits(c, 4, &p->year) || !take_char(c, ' ')) {
			return false;
		}
	}
	if (!take_clock(c, p)) {
		return false;
	}
	take_fraction(c, p);
	return !is_letter(peek(c, 0)) && !is_digit(peek(c, 0)) && peek(c, 0) != ':';
}

/* 05-01 12:00:00 of vLLM, behind its level. */
static bool take_vllm(struct cursor *c, struct parts *p)
{
	return take_digits(c, 2, &p->month) && take_char(c, '-') && take_digits(c, 2, &p->day) &&
		take_char(c, ' ') && take_clock(c, p) && peek(c, 0) == ' ';
}

/* [05/01/24 12:00:00] of rich: %x in Python's own locale is month first, with two digits of the
 * year; equal times that follow are left blank. */
static bool take_rich(struct cursor *c, struct parts *p)
{
	if (!take_digits(c, 2, &p->month) || !take_char(c, '/') || !take_digits(c, 2, &p->day) ||
		!take_char(c, '/') || !take_digits(c, 2, &p->year) || !take_char(c, ' ') ||
		!take_clock(c, p)) {
		return false;
	}
	p->year += 2000;
	p->has_year = true;
	return peek(c, 0) == ']';
}

/* 11/30/2026 10:14:51 - INFO - x: the examples of transformers and accelerate, month first. */
static bool take_slashes(struct cursor *c, struct parts *p)
{
	static const char dash[] = " - ";
	if (!take_digits(c, 2, &p->month) || !take_char(c, '/') || !take_digits(c, 2, &p->day) ||
		!take_char(c, '/') || !take_digits(c, 4, &p->year) || !take_char(c, ' ') ||
		!take_clock(c, p)) {
		return false;
	}
	p->has_year = true;
	return ff_str_starts(ff_str_skip(c->s, c->at), FF_STR(dash));
}

static bool is_date(const struct parts *p)
{
	static const int days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
	if (p->month < 1 || p->month > 12 || p->day < 1 || p->hour > 23 || p->min > 59 ||
		p->sec > 60) {
		return false;
	}
	bool leap = (p->year % 4 == 0 && p->year % 100 != 0) || p->year % 400 == 0;
	return p->day <= (p->month == 2 && leap ? 29 : days[p->month - 1]);
}

/* 1714564800.123456 of `ts %.s` and of loggers: only with a fraction and from 2014 on, a bare
 * number may be anything, and the kernel's seconds since boot have fewer digits. */
static bool try_epoch(const struct cursor *from, char close, struct ff_claimed *ret)
{
	struct cursor c = *from;
	struct parts p = {.grain = 1000000};
	int high, low;
	bool since = peek(&c, 0) == '1' && peek(&c, 1) >= '4';
	if (!since || count_digits(&c) != 10 || !take_digits(&c, 5, &high) ||
		!take_digits(&c, 5, &low) || peek(&c, 0) != '.') {
		return false;
	}
	take_fraction(&c, &p);
	if (p.grain == 1000000 || peek(&c, 0) != close) {
		return false;
	}
	*ret = (struct ff_claimed){
		.us = ((ff_usec)high * 100000 + low) * FF_SECOND + p.us,
		.grain = p.grain,
		.has_year = true,
		.has_zone = true,
	};
	return true;
}

typedef bool form_fn(struct cursor *c, struct parts *p);

static bool try_form(const struct cursor *from, form_fn *form, struct ff_claimed *ret)
{
	struct cursor c = *from;
	struct parts p = {.year = YEAR_UNSAID, .grain = 1000000};
	if (!form(&c, &p)) {
		return false;
	}
	p.year = p.has_year ? p.year : YEAR_UNSAID;
	if (!is_date(&p)) {
		return false;
	}
	*ret = (struct ff_claimed){
		.us = ff_usec_civil(p.year, p.month, p.day, p.hour, p.min, p.sec, p.us) -
			p.zone_s * FF_SECOND,
		.grain = p.grain,
		.has_year = p.has_year,
		.has_zone = p.has_zone,
		.mono_fraction = p.mono_fraction,
	};
	return true;
}

/* Behind an opening bracket. */
static bool try_bracket(const struct cursor *c, struct ff_claimed *ret)
{
	static form_fn *const forms[] = {take_iso, take_c10, take_ctime, take_syslog, take_rich};
	for (size_t i = 0; i < sizeof forms / sizeof forms[0]; i++) {
		if (try_form(c, forms[i], ret)) {
			return true;
		}
	}
	if (try_epoch(c, ']', ret)) {
		return true;
	}
	struct cursor nemo = *c; /* [NeMo I 2024-05-01 12:00:00 file:12] */
	if (ff_str_starts(ff_str_skip(c->s, c->at), FF_STR("NeMo ")) && is_severity(peek(c, 5))) {
		nemo.at += 6;
		return take_char(&nemo, ' ') && try_form(&nemo, take_iso, ret);
	}
	return false;
}

static bool try_plain(const struct cursor *c, bool behind_level, struct ff_claimed *ret)
{
	static form_fn *const forms[] = {
		take_iso,
		take_glog,
		take_ctime,
		take_syslog,
		take_slashes,
	};
	for (size_t i = 0; i < sizeof forms / sizeof forms[0]; i++) {
		if (try_form(c, forms[i], ret)) {
			return true;
		}
	}
	if (try_epoch(c, ' ', ret)) {
		return true;
	}
	if (behind_level) {
		return try_form(c, take_vllm, ret);
	}
	struct cursor table = *c; /* torchrun's "  time      : 2026-11-30_09:34:21" */
	if (ff_str_starts(ff_str_skip(c->s, c->at), FF_STR("time "))) {
		table.at += 5;
		skip_blanks(&table);
		return take_char(&table, ':') && take_char(&table, ' ') &&
			try_form(&table, take_iso, ret);
	}
	return false;
}

/* Over the `<30>` or `<131>1 ` of a syslog line as it is sent. */
static void skip_priority(struct cursor *c)
{
	struct cursor z = {c->s, c->at + 1};
	size_t n = count_digits(&z);
	if (peek(c, 0) != '<' || !n || n > 3 || peek(&z, n) != '>') {
		return;
	}
	z.at += n + 1;
	if (peek(&z, 0) == '1' && peek(&z, 1) == ' ') {
		z.at += 2;
	}
	*c = z;
}

/* `slurmstepd: error: *** STEP 7.0 ON gpu07 CANCELLED AT 2024-05-01T12:00:00 ***`: the time stands
 * behind the words (SOURCES.md slurm-messages). */
static bool try_cancelled(struct ff_str text, struct ff_claimed *ret)
{
	static const char *const fronts[] = {"slurmstepd: error: *** ", "error: *** ", "*** "};
	for (size_t i = 0; i < sizeof fronts / sizeof fronts[0]; i++) {
		struct ff_str front = {text.p, text.n < CANCELLED ? text.n : CANCELLED};
		if (!ff_str_starts(front, ff_str_z(fronts[i]))) {
			continue;
		}
		ptrdiff_t words = ff_str_find(front, FF_STR(" CANCELLED AT "), 0);
		struct cursor c = {front, words < 0 ? front.n : (size_t)words + 14};
		return try_form(&c, take_iso, ret);
	}
	return false;
}

/* Over `[INFO] `, `(raylet) `, `WARNING: ` or `submitit `; *ret_level: it was a bare word. */
static bool skip_lead(struct cursor *c, bool *ret_level)
{
	static const char *const levels[] = {
		"DEBUG",
		"INFO",
		"WARNING",
		"WARN",
		"ERROR",
		"CRITICAL",
		"FATAL",
		"submitit",
	};
	struct cursor z = *c;
	char open = peek(c, 0);
	*ret_level = false;
	if (open == '[' || open == '(') {
		char close = open == '[' ? ']' : ')';
		size_t n = 1;
		while (n < LEAD_LEN && peek(c, n) && peek(c, n) != close) {
			n++;
		}
		if (peek(c, n) != close) {
			return false;
		}
		z.at += n + 1;
	} else {
		size_t n = 0;
		for (size_t i = 0; i < sizeof levels / sizeof levels[0] && !n; i++) {
			struct ff_str level = ff_str_z(levels[i]);
			struct ff_str rest = ff_str_skip(c->s, c->at);
			if (ff_str_starts(rest, level) && !is_letter(peek(c, level.n))) {
				n = level.n;
			}
		}
		if (!n) {
			return false;
		}
		*ret_level = true;
		z.at += n;
		(void)take_char(&z, ':');
	}
	if (peek(&z, 0) != ' ' && peek(&z, 0) != '\t') {
		return false;
	}
	*c = z;
	return true;
}

bool ff_stamp_parse(struct ff_str text, struct ff_claimed *ret)
{
	struct cursor c = {{text.p, text.n < FRONT ? text.n : FRONT}, 0};
	bool level = false;
	if (try_cancelled(text, ret)) {
		return true;
	}
	skip_priority(&c);
	for (unsigned i = 0; i <= LEADS_MAX; i++) {
		skip_blanks(&c);
		struct cursor in = {c.s, c.at + 1};
		bool bracket = peek(&c, 0) == '[' || peek(&c, 0) == '(';
		if (bracket ? try_bracket(&in, ret) : try_plain(&c, level, ret)) {
			return true;
		}
		if (!skip_lead(&c, &level)) {
			return false;
		}
	}
	return false;
}
