#include "lines.h"

#include "base/arr.h"

#include <stdlib.h>

void lines_init(struct lines *l, uint64_t target, size_t want)
{
	*l = (struct lines){.target = target, .want = want};
}

void lines_finish(struct lines *l)
{
	for (size_t i = 0; i < l->n; i++) {
		free(l->v[i].text);
	}
	free(l->v);
	ff_buf_finish(&l->open);
	*l = (struct lines){0};
}

bool lines_done(const struct lines *l)
{
	return l->missed || (l->found && l->after >= l->want);
}

/* Those too far in front of the target go, many at a time. */
static void drop_front(struct lines *l, size_t keep)
{
	size_t drop = l->n > keep ? l->n - keep : 0;
	for (size_t i = 0; i < drop; i++) {
		free(l->v[i].text);
	}
	if (drop) {
		memmove(l->v, l->v + drop, keep * sizeof *l->v);
		l->n = keep;
	}
}

static void close_line(struct lines *l, uint64_t end)
{
	struct ff_str text = ff_buf_str(&l->open);
	*FF_ARR_ADD(l->v, l->n, l->cap) = (struct lines_one){
		.offset = l->open_at,
		.end = end,
		.text = ff_xmemdup(text.p ? text.p : "", text.n),
		.len = text.n,
	};
	ff_buf_clear(&l->open);
	l->is_open = false;
	if (l->found) {
		l->after++;
	} else if (l->open_at > l->target) {
		l->missed = true;
	} else if (end > l->target) {
		l->found = true;
		drop_front(l, l->want + 1);
	} else if (l->n >= l->want * 2 + 16) {
		drop_front(l, l->want);
	}
}

static void add_open(struct lines *l, struct ff_str piece)
{
	size_t room = FF_LINE_MAX - l->open.len;
	ff_buf_add(&l->open, piece.p, piece.n < room ? piece.n : room);
}

void lines_feed(struct lines *l, uint64_t offset, struct ff_str bytes)
{
	if (l->is_open && offset != l->next) {
		close_line(l, l->next);
	}
	l->next = offset + bytes.n;
	while (bytes.n && !lines_done(l)) {
		if (!l->is_open) {
			l->is_open = true;
			l->open_at = offset;
		}
		ptrdiff_t lf = ff_str_chr(bytes, '\n', 0);
		size_t n = lf < 0 ? bytes.n : (size_t)lf;
		add_open(l, ff_str_n(bytes.p, n));
		n += lf >= 0;
		offset += n;
		bytes = ff_str_skip(bytes, n);
		if (lf >= 0) {
			close_line(l, offset);
		}
	}
}

void lines_end(struct lines *l)
{
	if (l->is_open && !lines_done(l)) {
		close_line(l, l->next);
	}
	if (l->target == LINES_END) {
		drop_front(l, l->want);
	}
}

void lines_number(struct lines *l, uint64_t offset, int64_t number)
{
	size_t known = 0;
	while (known < l->n && l->v[known].end <= offset) {
		known++;
	}
	/* the byte may stand right behind the last line */
	bool behind = known == l->n && known > 0 && l->v[known - 1].end == offset;
	if (number <= 0 || (known == l->n && !behind) ||
		(known < l->n && l->v[known].offset > offset)) {
		return;
	}
	const struct lines_one *last = behind ? &l->v[known - 1] : NULL;
	/* without its LF a last line would hold the byte behind it too */
	number += last && last->end - last->offset == last->len;
	for (size_t i = 0; i < l->n; i++) {
		int64_t n = number + (int64_t)i - (int64_t)known;
		/* a jump in the offsets hides how many lines are between */
		l->v[i].number = n > 0 ? n : 0;
	}
	for (size_t i = known; i > 0 && i < l->n; i--) {
		if (l->v[i - 1].end != l->v[i].offset) {
			for (size_t k = 0; k < i; k++) {
				l->v[k].number = 0;
			}
			break;
		}
	}
	for (size_t i = known; i + 1 < l->n; i++) {
		if (l->v[i].end != l->v[i + 1].offset) {
			for (size_t k = i + 1; k < l->n; k++) {
				l->v[k].number = 0;
			}
			break;
		}
	}
}
