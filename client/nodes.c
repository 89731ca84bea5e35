#include "nodes.h"

#include "base/arr.h"
#include "base/buf.h"

#include <stdlib.h>

void nodes_finish(struct nodes *n)
{
	for (size_t i = 0; i < n->n; i++) {
		free(n->v[i]);
	}
	free(n->v);
	*n = (struct nodes){0};
}

static int bad(const char *list, struct ff_err *err)
{
	return ff_err_set(err, FF_EUSAGE, "\"%.200s\" is no list of nodes", list);
}

/* front, number with as many digits as the range was written with, rest: which may hold brackets */
static int expand(struct ff_str front, struct ff_str item, struct nodes *ret, const char *list,
		  struct ff_err *err);

static int add_range(struct ff_str front, struct ff_str range, struct ff_str rest,
	struct nodes *ret, const char *list, struct ff_err *err)
{
	int64_t from, to;
	size_t digits = ff_str_digits(range, &from);
	struct ff_str second = ff_str_skip(range, digits + 1);
	to = from;
	if (!digits || (digits < range.n && (range.p[digits] != '-' ||
	    !ff_str_digits(second, &to) || ff_str_digits(second, &to) != second.n)) || to < from ||
	    to - from >= (int64_t)NODES_MAX) {
		return bad(list, err);
	}
	for (int64_t i = from; i <= to; i++) {
		struct ff_buf b = {0};
		ff_buf_adds(&b, front);
		ff_buf_addf(&b, "%0*lld", (int)digits, (long long)i);
		int r = expand(ff_buf_str(&b), rest, ret, list, err);
		ff_buf_finish(&b);
		if (r < 0) {
			return r;
		}
	}
	return 0;
}

static int expand(struct ff_str front, struct ff_str item, struct nodes *ret, const char *list,
		  struct ff_err *err)
{
	ptrdiff_t open = ff_str_chr(item, '[', 0);
	ptrdiff_t close = ff_str_chr(item, ']', 0);
	struct ff_buf b = {0};
	ff_buf_adds(&b, front);
	ff_buf_add(&b, item.p, open < 0 ? item.n : (size_t)open);
	if (open < 0) {
		if (close >= 0 || !b.len || ret->n == NODES_MAX) {
			ff_buf_finish(&b);
			return bad(list, err);
		}
		*FF_ARR_ADD(ret->v, ret->n, ret->cap) = ff_buf_take(&b);
		return 0;
	}
	int r = close < open ? bad(list, err) : 0;
	struct ff_str in = r ? FF_STR("") :
		ff_str_n(item.p + open + 1, (size_t)(close - open) - 1);
	struct ff_str rest = ff_str_skip(item, r ? item.n : (size_t)close + 1);
	while (r == 0) {
		ptrdiff_t comma = ff_str_chr(in, ',', 0);
		size_t n = comma < 0 ? in.n : (size_t)comma;
		r = add_range(ff_buf_str(&b), ff_str_n(in.p, n), rest, ret, list, err);
		if (comma < 0) {
			break;
		}
		in = ff_str_skip(in, n + 1);
	}
	ff_buf_finish(&b);
	return r;
}

int nodes_parse(const char *list, struct nodes *ret, struct ff_err *err)
{
	struct nodes n = {0};
	int r = 0;
	for (const char *p = list; r == 0;) {
		size_t len = 0;
		for (bool in = false; p[len] && (in || p[len] != ','); len++) {
			in = p[len] == '[' || (in && p[len] != ']');
		}
		r = expand(FF_STR(""), ff_str_n(p, len), &n, list, err);
		if (!p[len]) {
			break;
		}
		p += len + 1;
	}
	if (r < 0) {
		nodes_finish(&n);
		return r;
	}
	*ret = n;
	return 0;
}
