#include "pieces.h"

#include <string.h>

/* How much of a line without end is given. One that is too long goes on in any case. */
static size_t cut_at(
	const struct ff_mask_rules *mask, const char *p, size_t len, enum pieces_rest rest)
{
	size_t n = len < PIECES_MAX ? len : PIECES_MAX;
	size_t open = ff_mask_rules_open(mask, p, n);
	if (len > PIECES_MAX) {
		return open == n ? n : n - open;
	}
	return rest == PIECES_END ? n : rest == PIECES_PAUSE ? n - open : 0;
}

size_t pieces_take(const struct ff_mask_rules *mask, char *p, size_t n, enum pieces_rest rest,
	pieces_fn fn, void *ud)
{
	size_t at = 0;
	bool more = true;
	while (at < n && more) {
		char *lf = memchr(p + at, '\n', n - at);
		size_t len = lf ? (size_t)(lf - p) - at : n - at;
		if (lf && len <= PIECES_MAX) {
			more = fn(ud, p + at, len, true);
			at += len + 1;
			continue;
		}
		size_t cut = cut_at(mask, p + at, len, rest);
		if (!cut) {
			break;
		}
		more = fn(ud, p + at, cut, false);
		at += cut;
	}
	return at;
}
