#define PCRE2_CODE_UNIT_WIDTH 8
#include "base/mask_rules.h"

#include "base/arr.h"
#include "base/limits.h"
#include "base/mem.h"

#include <assert.h>
#include <pcre2.h>
#include <stdio.h>
#include <stdlib.h>

#define WINDOW FF_MASK_OPEN_MAX
#define MARK "<secret:"
#define KIND_MOST 6u /* letters of a kind */

struct rule {
	pcre2_code *code;
	uint32_t group; /* that is masked; 0: the whole match */
	bool behind;    /* it looks back at what is no part of the match */
};

struct ff_mask_rules {
	struct rule v[FF_MASK_RULES_MAX];
	size_t n;
	uint32_t pairs; /* of the pattern with most groups */
	pcre2_match_context *ctx;
};

/* ---- life */

static int bad(struct ff_err *err, const char *pattern, const char *what)
{
	return ff_err_set(err, FF_EREGEX, "pattern \"%.200s\": %s", pattern, what);
}

static int compile(struct ff_mask_rules *r, const char *pattern, struct ff_err *err)
{
	int code = 0;
	PCRE2_SIZE where = 0;
	uint32_t empty = 0, groups = 0;
	pcre2_code *re = pcre2_compile((PCRE2_SPTR)pattern, PCRE2_ZERO_TERMINATED,
		PCRE2_NEVER_UTF | PCRE2_NEVER_UCP | PCRE2_NEVER_BACKSLASH_C, &code, &where, NULL);
	if (!re) {
		PCRE2_UCHAR text[160] = "";
		char what[240];
		pcre2_get_error_message(code, text, sizeof text);
		(void)snprintf(what, sizeof what, "%s at byte %zu", (char *)text, (size_t)where);
		return bad(err, pattern, what);
	}
	struct rule *rule = &r->v[r->n++];
	rule->code = re;
	pcre2_pattern_info(re, PCRE2_INFO_MATCHEMPTY, &empty);
	if (empty) {
		return bad(err, pattern, "may match nothing at all, let it ask for a byte or more");
	}
	int group = pcre2_substring_number_from_name(re, (PCRE2_SPTR) "secret");
	rule->group = group > 0 ? (uint32_t)group : 0;
	rule->behind = strstr(pattern, "(?<=") || strstr(pattern, "(?<!") || strstr(pattern, "(*");
	pcre2_pattern_info(re, PCRE2_INFO_CAPTURECOUNT, &groups);
	r->pairs = groups + 1 > r->pairs ? groups + 1 : r->pairs;
	/* Without JIT (no memory that may be run) it is slower and matches the same. */
	(void)pcre2_jit_compile(re, PCRE2_JIT_COMPLETE);
	return 0;
}

int ff_mask_rules_create(
	char *const *patterns, size_t n, struct ff_mask_rules **ret, struct ff_err *err)
{
	*ret = NULL;
	if (n > FF_MASK_RULES_MAX) {
		return ff_err_set(err, FF_ELIMIT, "more than %u patterns", FF_MASK_RULES_MAX);
	}
	if (!n) {
		return 0;
	}
	struct ff_mask_rules *r = ff_xcalloc(1, sizeof *r);
	r->ctx = pcre2_match_context_create(NULL);
	assert(r->ctx);
	pcre2_set_match_limit(r->ctx, FF_MATCH_LIMIT);
	int e = 0;
	for (size_t i = 0; i < n && e == 0; i++) {
		e = compile(r, patterns[i], err);
	}
	if (e < 0) {
		ff_mask_rules_destroy(r);
		return e;
	}
	*ret = r;
	return 0;
}

void ff_mask_rules_destroy(struct ff_mask_rules *r)
{
	if (r) {
		for (size_t i = 0; i < r->n; i++) {
			pcre2_code_free(r->v[i].code);
		}
		pcre2_match_context_free(r->ctx);
		free(r);
	}
}

/* ---- what the patterns match */

struct range {
	size_t from, to;
};

struct ranges {
	struct range *v;
	size_t n, cap;
	unsigned limited;
};

static void add(struct ranges *rs, size_t from, size_t to)
{
	if (from < to) {
		*FF_ARR_ADD(rs->v, rs->n, rs->cap) = (struct range){from, to};
	}
}

/* A window of a line: p[from..to) of the line p[begin..end). */
struct window {
	const char *p;
	size_t begin, end, from, to;
};

static int match(const struct ff_mask_rules *r, const struct rule *rule, const struct window *w,
	size_t at, uint32_t options, pcre2_match_data *data)
{
	PCRE2_SPTR text = (PCRE2_SPTR)w->p + w->from;
	size_t n = w->to - w->from;
	options |= PCRE2_NOTEMPTY | (w->from > w->begin ? PCRE2_NOTBOL : 0) |
		(w->to < w->end ? PCRE2_NOTEOL : 0);
	int e = pcre2_match(rule->code, text, n, at, options, data, r->ctx);
	if (e == PCRE2_ERROR_JIT_STACKLIMIT) { /* the interpreter has the heap */
		e = pcre2_match(
			rule->code, text, n, at, options | PCRE2_NO_JIT, data, r->ctx);
	}
	return e;
}

static void scan(const struct ff_mask_rules *r, const struct rule *rule, const struct window *w,
	pcre2_match_data *data, struct ranges *ret)
{
	const PCRE2_SIZE *pair = pcre2_get_ovector_pointer(data);
	for (size_t at = 0; at < w->to - w->from;) {
		int e = match(r, rule, w, at, 0, data);
		if (e == PCRE2_ERROR_NOMATCH) {
			return;
		}
		if (e < 0) {
			ret->limited++;
			add(ret, w->from + at, w->to);
			return;
		}
		size_t k = (uint32_t)e > rule->group && pair[2 * rule->group] != PCRE2_UNSET
			? rule->group
			: 0;
		add(ret, w->from + pair[2 * k], w->from + pair[2 * k + 1]);
		at = pair[1] > at ? pair[1] : at + 1;
	}
}

static size_t line_end(const char *p, size_t n, size_t at)
{
	while (at < n && p[at] != '\n' && p[at] != '\r') {
		at++;
	}
	return at;
}

/* What is to be masked in p[from..n), in no order; some may overlap. */
static void look(const struct ff_mask_rules *r, const char *p, size_t n, size_t from,
	struct ranges *ret)
{
	pcre2_match_data *data = pcre2_match_data_create(r->pairs, NULL);
	assert(data);
	for (size_t begin = from, end; begin < n; begin = end + 1) {
		end = line_end(p, n, begin);
		struct window w = {p, begin, end, begin, 0};
		while (w.to < end && begin < end) {
			w.to = end - w.from > WINDOW ? w.from + WINDOW : end;
			for (size_t i = 0; i < r->n; i++) {
				scan(r, &r->v[i], &w, data, ret);
			}
			w.from += WINDOW / 2;
		}
	}
	pcre2_match_data_free(data);
}

static int by_place(const void *x, const void *y)
{
	const struct range *a = x, *b = y;
	return a->from != b->from ? (a->from < b->from ? -1 : 1)
				  : (a->to > b->to) - (a->to < b->to);
}

/* In order, and what overlaps is one. */
static void settle(struct ranges *rs)
{
	size_t n = 0;
	if (rs->n > 1) {
		qsort(rs->v, rs->n, sizeof *rs->v, by_place);
	}
	for (size_t i = 0; i < rs->n; i++) {
		struct range *last = n ? &rs->v[n - 1] : NULL;
		if (last && rs->v[i].from < last->to) {
			last->to = rs->v[i].to > last->to ? rs->v[i].to : last->to;
		} else {
			rs->v[n++] = rs->v[i];
		}
	}
	rs->n = n;
}

/* ---- masking */

static bool is_hex(char c)
{
	return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
}

/* The first mark, whole or cut, that ends behind `at`. Empty at the end of s: none. */
static struct range next_mark(struct ff_str s, size_t at)
{
	ptrdiff_t front = ff_str_find(s, FF_STR(MARK), at);
	if (front < 0) {
		return (struct range){s.n, s.n};
	}
	size_t from = (size_t)front, e = from + sizeof MARK - 1;
	for (size_t i = 0; i < KIND_MOST && e < s.n && s.p[e] >= 'a' && s.p[e] <= 'z'; i++) {
		e++;
	}
	if (e < s.n && s.p[e] == ':') {
		e++;
		for (size_t i = 0; i < 4 && e < s.n && is_hex(s.p[e]); i++) {
			e++;
		}
		for (bool whole = e < s.n && s.p[e] == '>'; whole && e < s.n &&
			(s.p[e] == '>' || s.p[e] == '*'); e++) {
		}
	}
	return (struct range){from, e};
}

/* Masks the ranges but for the marks in them; returns how many secrets that made. */
static size_t apply(struct ranges *rs, char *p, size_t n)
{
	struct ff_str s = {p, n};
	size_t found = 0;
	struct range mark = next_mark(s, 0);
	for (size_t i = 0; i < rs->n; i++) {
		size_t at = rs->v[i].from, to = rs->v[i].to;
		while (at < to) {
			while (mark.from < n && mark.to <= at) {
				mark = next_mark(s, mark.to);
			}
			if (mark.from <= at && mark.from < n) {
				at = mark.to;
				continue;
			}
			size_t end = mark.from < to ? mark.from : to;
			ff_mask_put(p + at, end - at, "own");
			found++;
			at = end;
		}
	}
	return found;
}

size_t ff_mask_rules_text(const struct ff_mask_rules *r, char *p, size_t n, unsigned *limited)
{
	struct ranges rs = {0};
	if (r) {
		look(r, p, n, 0, &rs); /* both see the text as it came */
	}
	size_t found = ff_mask(p, n);
	if (rs.n) {
		settle(&rs);
		found += apply(&rs, p, n);
	}
	if (limited) {
		*limited += rs.limited;
	}
	free(rs.v);
	return found;
}

size_t ff_mask_rules_line(
	const struct ff_mask_rules *r, struct ff_mask_lines *m, char *p, size_t n)
{
	struct ranges rs = {0};
	if (r) {
		look(r, p, n, 0, &rs);
	}
	size_t found = ff_mask_line(m, p, n);
	if (rs.n) {
		settle(&rs);
		found += apply(&rs, p, n);
	}
	free(rs.v);
	return found;
}

/* ---- pieces */

static size_t unfinished(const char *p, size_t n)
{
	size_t at = n;
	while (at > 0 && p[at - 1] != '\n' && p[at - 1] != '\r') {
		at--;
	}
	return at;
}

/* A place at or before `at` where no secret is cut, neither ours nor one that ff_mask knows. */
static size_t between(const struct ranges *rs, const char *p, size_t at)
{
	for (size_t before = at + 1; at < before;) {
		before = at;
		for (size_t i = 0; i < rs->n; i++) {
			at = rs->v[i].from < at && at < rs->v[i].to ? rs->v[i].from : at;
		}
		at -= ff_mask_open(p, at);
	}
	return at;
}

size_t ff_mask_rules_open(const struct ff_mask_rules *r, const char *p, size_t n)
{
	size_t keep = ff_mask_open(p, n);
	if (!r) {
		return keep;
	}
	size_t line = unfinished(p, n), most = n > FF_MASK_OPEN_MAX ? n - FF_MASK_OPEN_MAX : 0;
	size_t cut = line < most ? n - WINDOW / 2 : line;
	cut = n - keep < cut ? n - keep : cut;
	size_t begin = unfinished(p, cut);
	if (begin < most) { /* too much to wait for: it is seen in parts */
		struct ranges rs = {0};
		look(r, p, n, begin, &rs);
		begin = between(&rs, p, cut);
		begin = begin < most ? cut : begin;
		free(rs.v);
	}
	return n - begin;
}

/* Where what may go on as a match begins at the end of p[0..n); n: nowhere. */
static size_t front_of(const struct ff_mask_rules *r, const char *p, size_t n)
{
	size_t line = unfinished(p, n), from = n - line > WINDOW ? n - WINDOW : line, front = n;
	struct window w = {p, line, n, from, n};
	pcre2_match_data *data = pcre2_match_data_create(r->pairs, NULL);
	assert(data);
	const PCRE2_SIZE *pair = pcre2_get_ovector_pointer(data);
	for (size_t i = 0; i < r->n; i++) {
		for (size_t at = 0; from + at < front;) {
			int e = match(r, &r->v[i], &w, at, PCRE2_PARTIAL_HARD, data);
			if (e == PCRE2_ERROR_NOMATCH) {
				break;
			}
			if (e < 0) {
				size_t begin = from + (e == PCRE2_ERROR_PARTIAL ? pair[0] : at);
				/* each might begin behind the end, where nothing of it is lost */
				begin = begin == n && r->v[i].behind ? n - 1 : begin;
				front = begin < front ? begin : front;
				break;
			}
			at = pair[1] > at ? pair[1] : at + 1;
		}
	}
	pcre2_match_data_free(data);
	return front;
}

bool ff_mask_rules_is_front(const struct ff_mask_rules *r, const char *p, size_t n)
{
	return ff_mask_is_front(p, n) || (r && front_of(r, p, n) < n);
}

void ff_mask_rules_cut(const struct ff_mask_rules *r, char *p, size_t n)
{
	size_t front = r ? front_of(r, p, n) : n;
	ff_mask_cut(p, n);
	memset(p + front, '*', n - front);
}
