#include "base/mask.h"

#include "base/str.h"

#include <stdio.h>

#define HF_LEAST 30u /* letters and digits behind hf_; today's tokens have 34 */
#define AWS_REST 16u /* behind AKIA or ASIA */

static bool is_upper_digit(char c)
{
	return (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

static bool is_alnum(char c)
{
	return is_upper_digit(c) || (c >= 'a' && c <= 'z');
}

static void mask(char *p, size_t n, const char *kind)
{
	char text[48];
	unsigned hash = (unsigned)(ff_str_hash((struct ff_str){p, n}, FF_HASH_INIT) & 0xffff);
	size_t len = (size_t)snprintf(text, sizeof text, "<secret:%s:%04x>", kind, hash);
	if (len > n) {
		len = n;
	}
	memcpy(p, text, len);
	memset(p + len, '*', n - len);
}

/* hf_ and at least HF_LEAST letters and digits, found by the underscore. */
static size_t mask_hf(char *p, size_t n)
{
	size_t found = 0;
	size_t at = 0;
	while (at < n) {
		const char *hit = memchr(p + at, '_', n - at);
		if (!hit) {
			break;
		}
		size_t u = (size_t)(hit - p);
		at = u + 1;
		if (u < 2 || p[u - 1] != 'f' || p[u - 2] != 'h' || (u > 2 && is_alnum(p[u - 3]))) {
			continue;
		}
		while (at < n && is_alnum(p[at])) {
			at++;
		}
		if (at - u - 1 >= HF_LEAST) {
			mask(p + u - 2, at - u + 2, "hf");
			found++;
		}
	}
	return found;
}

/* AKIA or ASIA and AWS_REST capitals and digits, found by the IA both have. */
static size_t mask_aws(char *p, size_t n)
{
	size_t found = 0;
	size_t at = 0;
	while (at < n) {
		const char *hit = memmem(p + at, n - at, "IA", 2);
		if (!hit) {
			break;
		}
		size_t i = (size_t)(hit - p);
		at = i + 2;
		if (i < 2 || p[i - 2] != 'A' || (p[i - 1] != 'K' && p[i - 1] != 'S') ||
			(i > 2 && is_alnum(p[i - 3]))) {
			continue;
		}
		size_t end = at;
		while (end < n && end - at <= AWS_REST && is_upper_digit(p[end])) {
			end++;
		}
		if (end - at == AWS_REST && (end == n || !is_alnum(p[end]))) {
			mask(p + i - 2, end - i + 2, "aws");
			found++;
			at = end;
		}
	}
	return found;
}

size_t ff_mask(char *p, size_t n)
{
	return n ? mask_hf(p, n) + mask_aws(p, n) : 0;
}

/* Is p[0..n) the beginning of `front` and what may follow it, or of `front` itself? */
static bool begins(const char *p, size_t n, const char *front, size_t most, bool (*may)(char c))
{
	size_t len = strlen(front);
	if (memcmp(p, front, n < len ? n : len) != 0) {
		return false;
	}
	for (size_t i = len; i < n; i++) {
		if (!may(p[i]) || i - len >= most) {
			return false;
		}
	}
	return true;
}

bool ff_mask_is_front(const char *p, size_t n)
{
	/* a secret begins where the word does or behind a '_' of it */
	for (size_t i = 0; i < n; i++) {
		bool start = !i || !is_alnum(p[i - 1]);
		if (start && (begins(p + i, n - i, "hf_", SIZE_MAX, is_alnum) ||
			begins(p + i, n - i, "AKIA", AWS_REST, is_upper_digit) ||
			begins(p + i, n - i, "ASIA", AWS_REST, is_upper_digit))) {
			return true;
		}
	}
	return false;
}
