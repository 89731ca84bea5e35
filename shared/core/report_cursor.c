#include "core/report_cursor.h"

static size_t first_unknown(const struct ff_verdict *v)
{
	size_t i = v->nranks;
	while (i && v->ranks[i - 1].rank == FF_UNKNOWN) {
		i--;
	}
	return i;
}

void ff_report_cursor_rank(const struct ff_verdict *v, size_t i, struct ff_buf *out)
{
	if (v->ranks[i].rank != FF_UNKNOWN) {
		ff_buf_addf(out, "%d", v->ranks[i].rank);
	} else {
		ff_buf_addf(out, "-%zu", i - first_unknown(v));
	}
}

bool ff_report_cursor_find_rank(const struct ff_verdict *v, struct ff_str cursor, size_t *ret)
{
	bool unknown = cursor.n && cursor.p[0] == '-';
	struct ff_str digits = ff_str_skip(cursor, unknown);
	int64_t wanted;
	if (!digits.n || ff_str_digits(digits, &wanted) != digits.n) {
		return false;
	}
	size_t last = first_unknown(v), i = 0;
	if (unknown) {
		i = (uint64_t)wanted < v->nranks - last ? last + (size_t)wanted : v->nranks;
	}
	while (!unknown && i < last && v->ranks[i].rank < wanted) {
		i++;
	}
	*ret = i;
	return true;
}

static uint64_t hash_of(const struct ff_sighting *s)
{
	return ff_str_hash(ff_str_z(s->id), FF_HASH_INIT);
}

void ff_report_cursor_event(const struct ff_verdict *v, size_t i, struct ff_buf *out)
{
	uint64_t hash = i ? hash_of(&v->timeline.all[i - 1]) : 0;
	ff_buf_addf(out, "%zu-%016llx", i, (unsigned long long)hash);
}

static bool parse_hash(struct ff_str s, uint64_t *ret)
{
	uint64_t v = 0;
	for (size_t i = 0; i < s.n; i++) {
		char c = s.p[i];
		unsigned digit = c >= '0' && c <= '9' ? (unsigned)(c - '0')
			: c >= 'a' && c <= 'f'        ? (unsigned)(c - 'a' + 10)
						      : 16;
		if (digit > 15) {
			return false;
		}
		v = v << 4 | digit;
	}
	*ret = v;
	return s.n == 16;
}

bool ff_report_cursor_find_event(const struct ff_verdict *v, struct ff_str cursor, size_t *ret)
{
	const struct ff_timeline *t = &v->timeline;
	int64_t before;
	uint64_t hash;
	size_t n = ff_str_digits(cursor, &before);
	if (!n || n >= cursor.n || cursor.p[n] != '-' ||
		!parse_hash(ff_str_skip(cursor, n + 1), &hash)) {
		return false;
	}
	size_t i = (uint64_t)before < t->nall ? (size_t)before : t->nall;
	if (i && hash_of(&t->all[i - 1]) == hash) { /* nothing came in between */
		*ret = i;
		return true;
	}
	for (size_t k = 0; k < t->nall && hash; k++) {
		if (hash_of(&t->all[k]) == hash) {
			i = k + 1;
			break;
		}
	}
	*ret = i;
	return true;
}
