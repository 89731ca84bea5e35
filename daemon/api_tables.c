#include "answer.h"
#include "api.h"
#include "api_kept.h"

#include "clock.h"
#include "core/report_cursor.h"
#include "core/report_ranks.h"
#include "core/report_timeline.h"

#include <stdlib.h>

#define PAGE_MAX 10000 /* items of a list */
#define LINES_MAX 100000
#define WIDTH 100

/* A table over one attempt: as text, or as a list of items. */
struct table {
	void (*text)(const struct ff_verdict *v, const struct ff_report_style *style,
		struct ff_buf *out);
	void (*json)(const struct ff_verdict *v, size_t from, size_t limit, struct ff_buf *out);
	bool (*find)(const struct ff_verdict *v, struct ff_str cursor, size_t *ret);
};

struct wish {
	int64_t attempt, limit, width, lines;
};

static bool read_wish(struct request *r, struct wish *w)
{
	return request_number(r, "attempt", 0, INT32_MAX, FF_UNKNOWN, &w->attempt) &&
		request_number(r, "limit", 1, PAGE_MAX, PAGE_MAX, &w->limit) &&
		request_number(r, "width", 20, 1000, WIDTH, &w->width) &&
		request_number(r, "lines", 1, LINES_MAX, 0, &w->lines);
}

static void render(struct request *r, const struct table *t, const struct ff_verdict *v,
	const struct wish *w)
{
	struct ff_buf out = {0};
	char *cursor = request_query(r, "cursor");
	size_t from = 0;
	bool good = !cursor || t->find(v, ff_str_z(cursor), &from);
	free(cursor);
	if (!good) {
		request_problem(r, 400, "the cursor can't be read");
		return;
	}
	if (!request_wants_text(r)) {
		t->json(v, from, (size_t)w->limit, &out);
		ff_buf_addc(&out, '\n');
		request_json(r, 200, &out);
		return;
	}
	const struct ff_report_style style = {
		.width = (unsigned)w->width,
		.now_us = clock_wall(),
		.lines = (unsigned)w->lines,
	};
	t->text(v, &style, &out);
	request_text(r, 200, &out);
}

static void get_table(struct request *r, const struct table *t)
{
	struct wish w;
	struct ff_run *run = request_run(r, 2, false);
	if (!run || !read_wish(r, &w) || api_kept_answer(r, run)) {
		return;
	}
	struct ff_verdict *v = answer_judge(r->d, run, (int32_t)w.attempt);
	if (w.attempt >= v->timeline.nattempts) {
		request_problem(r, 404, "the run has no attempt %d, the last is %d",
			(int)w.attempt, (int)v->timeline.nattempts - 1);
	} else {
		render(r, t, v, &w);
		api_kept_put(r, run, v);
	}
	ff_verdict_destroy(v);
}

void api_tables_ranks(struct request *r)
{
	get_table(r, &(struct table){ff_report_ranks_text, ff_report_ranks_json,
			     ff_report_cursor_find_rank});
}

void api_tables_timeline(struct request *r)
{
	get_table(r, &(struct table){ff_report_timeline_text, ff_report_timeline_json,
			     ff_report_cursor_find_event});
}
