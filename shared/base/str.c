#include "base/str.h"

bool ff_str_eq(struct ff_str a, struct ff_str b)
{
	return a.n == b.n && (!a.n || !memcmp(a.p, b.p, a.n));
}

bool ff_str_eqz(struct ff_str a, const char *z)
{
	return ff_str_eq(a, ff_str_z(z));
}

int ff_str_cmp(struct ff_str a, struct ff_str b)
{
	size_t n = a.n < b.n ? a.n : b.n;
	int c = n ? memcmp(a.p, b.p, n) : 0;
	if (c) {
		return c;
	}
	return (a.n > b.n) - (a.n < b.n);
}

bool ff_str_starts(struct ff_str s, struct ff_str prefix)
{
	return s.n >= prefix.n && (!prefix.n || !memcmp(s.p, prefix.p, prefix.n));
}

bool ff_str_ends(struct ff_str s, struct ff_str suffix)
{
	return s.n >= suffix.n &&
		(!suffix.n || !memcmp(s.p + (s.n - suffix.n), suffix.p, suffix.n));
}

ptrdiff_t ff_str_find(struct ff_str s, struct ff_str needle, size_t from)
{
	if (from > s.n || needle.n > s.n - from) {
		return -1;
	}
	if (!needle.n) {
		return (ptrdiff_t)from;
	}
	const char *at = memmem(s.p + from, s.n - from, needle.p, needle.n);
	return at ? at - s.p : -1;
}

ptrdiff_t ff_str_chr(struct ff_str s, char c, size_t from)
{
	if (from >= s.n) {
		return -1;
	}
	const char *at = memchr(s.p + from, c, s.n - from);
	return at ? at - s.p : -1;
}

struct ff_str ff_str_skip(struct ff_str s, size_t n)
{
	if (n > s.n) {
		n = s.n;
	}
	return n ? (struct ff_str){s.p + n, s.n - n} : s;
}

static bool is_blank(char c)
{
	return c == ' ' || c == '\t';
}

struct ff_str ff_str_trim(struct ff_str s)
{
	while (s.n && is_blank(s.p[s.n - 1])) {
		s.n--;
	}
	size_t at = 0;
	while (at < s.n && is_blank(s.p[at])) {
		at++;
	}
	return ff_str_skip(s, at);
}

size_t ff_str_digits(struct ff_str s, int64_t *ret)
{
	int64_t v = 0;
	size_t n = 0;
	while (n < s.n && n < 18 && s.p[n] >= '0' && s.p[n] <= '9') {
		v = v * 10 + (s.p[n] - '0');
		n++;
	}
	if (n) {
		*ret = v;
	}
	return n;
}

bool ff_str_int(struct ff_str s, int64_t *ret)
{
	bool neg = s.n && s.p[0] == '-';
	size_t at = neg ? 1 : 0;
	if (at == s.n) {
		return false;
	}
	/* Counted down, because the least int64_t has no positive twin. */
	int64_t v = 0;
	for (; at < s.n; at++) {
		if (s.p[at] < '0' || s.p[at] > '9') {
			return false;
		}
		if (__builtin_mul_overflow(v, 10, &v) ||
			__builtin_sub_overflow(v, s.p[at] - '0', &v)) {
			return false;
		}
	}
	if (!neg && v == INT64_MIN) {
		return false;
	}
	*ret = neg ? v : -v;
	return true;
}

uint64_t ff_str_hash(struct ff_str s, uint64_t h)
{
	for (size_t i = 0; i < s.n; i++) {
		h = (h ^ (unsigned char)s.p[i]) * 1099511628211ull;
	}
	return h;
}
