#include "core/fault.h"

#include "base/arr.h"
#include "base/limits.h"

#include <stdlib.h>

#define COUNT(a) (sizeof(a) / sizeof(a)[0])

static const char *const role_names[] = {
#define X(e, name, text) [FF_ROLE_##e] = name,
	FF_ROLES(X)
#undef X
};

static const char *const event_names[] = {
#define X(e, name, text) [FF_EVENT_##e] = name,
	FF_EVENT_KINDS(X)
#undef X
};

static const char *const domain_names[] = {
#define X(e, name, text) [FF_DOMAIN_##e] = name,
	FF_DOMAINS(X)
#undef X
};

static const struct field {
	const char *name;
	enum ff_field_type type;
} fields[] = {
#define X(name, type, text) [FF_F_##name] = {#name, FF_FIELD_##type},
#include "core/field.def"
#undef X
};

static int parse(const char *const *names, size_t n, struct ff_str s)
{
	for (size_t i = 0; i < n; i++) {
		if (ff_str_eqz(s, names[i])) {
			return (int)i;
		}
	}
	return -1;
}

const char *ff_role_name(enum ff_role r)
{
	return role_names[r];
}

int ff_role_parse(struct ff_str s)
{
	return parse(role_names, COUNT(role_names), s);
}

const char *ff_event_kind_name(enum ff_event_kind k)
{
	return event_names[k];
}

int ff_event_kind_parse(struct ff_str s)
{
	return parse(event_names, COUNT(event_names), s);
}

int ff_domain_parse(struct ff_str s)
{
	return parse(domain_names, COUNT(domain_names), s);
}

const char *ff_field_name(enum ff_field_id id)
{
	return fields[id].name;
}

enum ff_field_type ff_field_type(enum ff_field_id id)
{
	return fields[id].type;
}

int ff_field_parse(struct ff_str name)
{
	for (size_t i = 0; i < COUNT(fields); i++) {
		if (ff_str_eqz(name, fields[i].name)) {
			return (int)i;
		}
	}
	return -1;
}

/* ---- lists of ranks */

struct span {
	int32_t first, last;
};

static int by_first(const void *x, const void *y)
{
	const struct span *a = x, *b = y;
	return (a->first > b->first) - (a->first < b->first);
}

/* A rank at s.p[*at]; at goes behind it. */
static bool take_rank(struct ff_str s, size_t *at, int32_t *ret)
{
	int64_t v;
	size_t n = ff_str_digits(ff_str_skip(s, *at), &v);
	if (!n || v >= FF_RANKS_MAX) {
		return false;
	}
	*at += n;
	*ret = (int32_t)v;
	return true;
}

static size_t skip_blanks(struct ff_str s, size_t at)
{
	while (at < s.n && (s.p[at] == ' ' || s.p[at] == '\t')) {
		at++;
	}
	return at;
}

/* s without one pair of brackets around it; false if they do not match. */
static bool strip_brackets(struct ff_str *s)
{
	static const char open[] = "[({", close[] = "])}";
	*s = ff_str_trim(*s);
	const char *o = s->n && s->p[0] ? strchr(open, s->p[0]) : NULL;
	if (!o) {
		return true;
	}
	if (s->n < 2 || s->p[s->n - 1] != close[o - open]) {
		return false;
	}
	*s = ff_str_trim((struct ff_str){s->p + 1, s->n - 2});
	return true;
}

/* Numbers and ranges with commas or blanks between them; a comma may end the list (Python's tuple
 * of one). */
static bool take_spans(struct ff_str s, struct span **spans, size_t *n, size_t *cap)
{
	size_t at = 0;
	while (at < s.n) {
		struct span span;
		if (!take_rank(s, &at, &span.first)) {
			return false;
		}
		span.last = span.first;
		if (at < s.n && s.p[at] == '-') {
			at++;
			if (!take_rank(s, &at, &span.last) || span.last < span.first) {
				return false;
			}
		}
		*FF_ARR_ADD(*spans, *n, *cap) = span;
		size_t from = at;
		at = skip_blanks(s, at);
		if (at < s.n && s.p[at] == ',') {
			at = skip_blanks(s, at + 1);
		} else if (at < s.n && at == from) {
			return false;
		}
	}
	return true;
}

size_t ff_ranks_parse(struct ff_str s, int32_t *ret, size_t cap)
{
	struct span *spans = NULL;
	size_t n = 0, cspans = 0, total = 0;
	bool good = strip_brackets(&s) && take_spans(s, &spans, &n, &cspans);
	if (good && n) {
		qsort(spans, n, sizeof *spans, by_first);
	}
	int32_t next = 0; /* all below is in the list already, or not part of it */
	for (size_t i = 0; good && i < n; i++) {
		int32_t rank = spans[i].first > next ? spans[i].first : next;
		for (; rank <= spans[i].last; rank++) {
			if (total < cap) {
				ret[total] = rank;
			}
			total++;
		}
		next = rank > next ? rank : next;
	}
	free(spans);
	return total;
}
