#include "core/report_ranks.h"
#include "core/report_cursor.h"
#include "core/report_own.h"
#include "core/report_table.h"
#include "core/report_screen.h"

#include "base/arr.h"

#include <stdio.h>
#include <stdlib.h>

#define LINES 60 /* of a screen, unless the caller says another number */

/* Ranks in one state. */
struct group {
	const struct ff_rank_line *line;  /* of its first rank; NULL */
	const struct ff_sighting *fault;  /* of its first rank; NULL */
	enum ff_status status;
	bool behind; /* its last step is before the others' */
	int32_t *ranks;
	size_t n, cap;
	int64_t first_step, last_step; /* FF_UNKNOWN */
};

struct table {
	const struct ff_verdict *v;
	struct group *groups; /* the odd ones first */
	size_t n, cap;
	size_t *of_rank; /* by place in v->ranks: the place in groups */
	int64_t median;  /* of the last steps; FF_UNKNOWN */
};

const char *ff_heard_name(enum ff_heard heard)
{
	switch (heard) {
	case FF_UNHEARD: return "unheard";
	case FF_QUIET: return "quiet";
	case FF_HEARD: return "heard";
	case FF_SILENT: return "silent";
	}
	return NULL;
}

/* ---- what a rank shows */

/* Its first fault that can be the beginning, else the first that is its own end, else any. */
static const struct ff_sighting *own_fault(const struct ff_rank_line *line)
{
	const struct ff_sighting *best = NULL;
	int least = 3;
	for (size_t i = 0; line && i < line->nfaults; i++) {
		const struct ff_sighting *s = line->faults[i];
		bool full = s->weight == FF_WEIGHT_FULL && s->unrecovered;
		bool fault = s->ev->role == FF_ROLE_PRIMARY || s->ev->role == FF_ROLE_SECONDARY ||
			s->ev->role == FF_ROLE_TEARDOWN;
		int rank = full && s->ev->role == FF_ROLE_PRIMARY ? 0 : full ? 1 : 2;
		if (fault && rank < least) {
			least = rank;
			best = s;
		}
	}
	return best;
}

static int by_number(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
	return (x > y) - (x < y);
}

static int64_t median_step(const struct ff_timeline *t)
{
	int64_t *steps = ff_xcalloc(t->nranks + 1, sizeof *steps), median = FF_UNKNOWN;
	size_t n = 0;
	for (size_t i = 0; i < t->nranks; i++) {
		if (t->ranks[i].last_step != FF_UNKNOWN) {
			steps[n++] = t->ranks[i].last_step;
		}
	}
	if (n) {
		qsort(steps, n, sizeof *steps, by_number);
		median = steps[n / 2];
	}
	free(steps);
	return median;
}

/* One step apart is how ranks stand when somebody stops them. */
static bool is_behind(const struct table *t, const struct ff_rank_line *line)
{
	return line && line->last_step != FF_UNKNOWN && line->last_step + 1 < t->median;
}

/* ---- groups */

static void add_key(const struct table *t, enum ff_status status, const struct ff_rank_line *line,
	struct ff_buf *out)
{
	const struct ff_sighting *fault = own_fault(line);
	ff_buf_addf(out, "%d %d ", (int)status, is_behind(t, line));
	if (line) {
		ff_buf_addf(out, "%d %d %d ", (int)line->heard, line->stderr_to_end,
			(int)line->exit_code);
	}
	if (fault) {
		ff_buf_addf(out, "%s %d ", fault->ev->fault, (int)fault->ev->role);
		ff_report_alike(fault, out);
	}
}

static void note_step(struct group *g, int64_t step)
{
	if (step == FF_UNKNOWN) {
		return;
	}
	g->first_step = g->first_step == FF_UNKNOWN || step < g->first_step ? step : g->first_step;
	g->last_step = step > g->last_step ? step : g->last_step;
}

static void add_rank(struct table *t, size_t place, struct ff_map *by_key, struct ff_buf *key)
{
	const struct ff_rank_status *s = &t->v->ranks[place];
	const struct ff_rank_line *line = ff_timeline_rank(&t->v->timeline, s->rank);
	ff_buf_clear(key);
	add_key(t, s->status, line, key);
	uintptr_t at = (uintptr_t)ff_map_get(by_key, ff_buf_str(key));
	if (!at) {
		*FF_ARR_ADD(t->groups, t->n, t->cap) = (struct group){
			.line = line,
			.fault = own_fault(line),
			.status = s->status,
			.behind = is_behind(t, line),
			.first_step = FF_UNKNOWN,
			.last_step = FF_UNKNOWN,
		};
		at = t->n;
		(void)ff_map_put(by_key, ff_buf_str(key), (void *)at);
	}
	struct group *g = &t->groups[at - 1];
	*FF_ARR_ADD(g->ranks, g->n, g->cap) = s->rank;
	note_step(g, line ? line->last_step : FF_UNKNOWN);
	t->of_rank[place] = at - 1;
}

/* Who started it, then the fewer the odder. */
static int by_oddness(const void *a, const void *b)
{
	const struct group *x = a, *y = b;
	bool first = x->status == FF_STATUS_INITIATING;
	if (first != (y->status == FF_STATUS_INITIATING)) {
		return first ? -1 : 1;
	}
	if (x->n != y->n) {
		return x->n < y->n ? -1 : 1;
	}
	return (x->ranks[0] > y->ranks[0]) - (x->ranks[0] < y->ranks[0]);
}

static int by_rank(const void *a, const void *b)
{
	const struct ff_rank_status *x = a, *y = b;
	return (x->rank > y->rank) - (x->rank < y->rank);
}

static void table_init(struct table *t, const struct ff_verdict *v)
{
	struct ff_map by_key = {0};
	struct ff_buf key = {0};
	*t = (struct table){.v = v, .median = median_step(&v->timeline)};
	t->of_rank = ff_xcalloc(v->nranks + 1, sizeof *t->of_rank);
	for (size_t i = 0; i < v->nranks; i++) {
		add_rank(t, i, &by_key, &key);
	}
	if (t->n > 1) {
		qsort(t->groups, t->n, sizeof *t->groups, by_oddness);
	}
	for (size_t i = 0; i < t->n; i++) {
		for (size_t k = 0; k < t->groups[i].n; k++) {
			struct ff_rank_status wanted = {.rank = t->groups[i].ranks[k]};
			const struct ff_rank_status *s = bsearch(
				&wanted, v->ranks, v->nranks, sizeof *v->ranks, by_rank);
			t->of_rank[s ? s - v->ranks : 0] = i;
		}
	}
	ff_map_finish(&by_key);
	ff_buf_finish(&key);
}

static void table_finish(struct table *t)
{
	for (size_t i = 0; i < t->n; i++) {
		free(t->groups[i].ranks);
	}
	free(t->groups);
	free(t->of_rank);
}

/* ---- text */

static const struct ff_screen_column columns[] = {
	{"COUNT", 6, true},
	{"RANKS", 20, false},
	{"STATUS", 10, false},
	{"NODE", 14, false},
	{"STEP", 13, true},
	{"LAST LINE", 10, false},
	{"HEARD", 7, false},
	{"END", 3, false},
	{"EXIT", 9, false},
	{"FIRST FAULT", 40, false},
};

#define NCOLUMNS (sizeof columns / sizeof *columns)

static void add_nodes(const struct ff_verdict *v, const struct group *g, struct ff_buf *out)
{
	const char **names = ff_xcalloc(g->n, sizeof *names);
	for (size_t i = 0; i < g->n; i++) {
		const struct ff_rank_line *line = ff_timeline_rank(&v->timeline, g->ranks[i]);
		names[i] = line ? line->node : NULL;
	}
	ff_report_nodes(names, g->n, out);
	free(names);
}

static void add_steps(const struct group *g, struct ff_buf *out)
{
	if (g->last_step == FF_UNKNOWN) {
		ff_buf_addc(out, '-');
		return;
	}
	ff_buf_addf(out, "%s%lld", g->behind ? "<" : "", (long long)g->first_step);
	if (g->last_step > g->first_step) {
		ff_buf_addf(out, "-%lld", (long long)g->last_step);
	}
}

/* The latest of the group; to the second, since it separates nobody by itself. */
static void add_last_line(const struct ff_verdict *v, const struct group *g, struct ff_buf *out)
{
	ff_usec last = FF_TIME_NONE;
	for (size_t i = 0; i < g->n; i++) {
		const struct ff_rank_line *line = ff_timeline_rank(&v->timeline, g->ranks[i]);
		if (line && line->last_line.known &&
			(last == FF_TIME_NONE || line->last_line.us > last)) {
			last = line->last_line.us;
		}
	}
	if (last == FF_TIME_NONE) {
		ff_buf_addc(out, '-');
	} else {
		ff_usec_render_clock(out, last, 0);
	}
}

/* Its role, and its line behind the bar. */
static void put_quote(const struct group *g, struct ff_buf *out, unsigned width)
{
	unsigned before = (unsigned)out->len;
	ff_buf_addf(out, "    %s%s ", ff_role_name(g->fault->ev->role),
		ff_report_weight(g->fault));
	ff_screen_quote(out, ff_report_line(g->fault), 0, width - ((unsigned)out->len - before));
}

/* The cells of a row, one after the other in b, NUL-terminated. */
static void make_cells(const struct ff_verdict *v, const struct group *g, struct ff_buf *b,
	const char *cells[NCOLUMNS])
{
	size_t at[NCOLUMNS], n = 0;
	ff_buf_clear(b);
#define CELL(add) (at[n++] = b->len, (void)(add), ff_buf_addc(b, '\0'))
	CELL(ff_buf_addf(b, "%zu", g->n));
	CELL(ff_report_ranges(b, g->ranks, g->n, 0));
	CELL(ff_buf_addz(b, ff_status_name(g->status)));
	CELL(add_nodes(v, g, b));
	CELL(add_steps(g, b));
	CELL(add_last_line(v, g, b));
	CELL(ff_buf_addz(b, g->line ? ff_heard_name(g->line->heard) : "-"));
	CELL(ff_buf_addz(b, g->line && g->line->stderr_to_end ? "yes" : "no"));
	CELL(ff_report_exit(g->line ? g->line->exit_code : FF_EXIT_UNKNOWN, b));
	CELL(ff_buf_addz(b, g->fault ? g->fault->ev->fault : "-"));
#undef CELL
	for (size_t i = 0; i < NCOLUMNS; i++) {
		cells[i] = b->p + at[i];
	}
}

static size_t lines_of(const struct group *g)
{
	return g->fault && ff_report_line(g->fault).n ? 2 : 1;
}

/* How many groups fit, in `room` lines; at least one. */
static size_t count_shown(const struct table *t, size_t room)
{
	size_t n = 0, used = 0;
	while (n < t->n && (!n || used + lines_of(&t->groups[n]) <= room)) {
		used += lines_of(&t->groups[n++]);
	}
	return n;
}

static void put_left_out(const struct table *t, size_t shown, struct ff_buf *out)
{
	size_t ranks = 0;
	for (size_t i = shown; i < t->n; i++) {
		ranks += t->groups[i].n;
	}
	if (ranks) {
		ff_buf_addf(out, "... %zu more %s (%zu %s); --json has every rank\n",
			t->n - shown, t->n - shown == 1 ? "group" : "groups", ranks,
			ranks == 1 ? "rank" : "ranks");
	}
}

void ff_report_ranks_text(
	const struct ff_verdict *v, const struct ff_report_style *style, struct ff_buf *out)
{
	unsigned width = style->width < 60 ? 60 : style->width;
	unsigned lines = style->lines ? style->lines : LINES;
	struct ff_screen_table screen = {.columns = columns, .n = NCOLUMNS, .width = width};
	const char *cells[NCOLUMNS];
	struct ff_buf b = {0};
	struct table t;
	table_init(&t, v);
	size_t shown = count_shown(&t, lines > 4 ? lines - 4 : 1);
	ff_report_title(v, style, out);
	ff_buf_addc(out, '\n');
	for (size_t i = 0; i < shown; i++) {
		make_cells(v, &t.groups[i], &b, cells);
		ff_screen_table_fit(&screen, cells);
	}
	if (shown) {
		ff_screen_table_head(&screen, out);
	} else {
		ff_buf_addz(out, "no ranks are known\n");
	}
	for (size_t i = 0; i < shown; i++) {
		const struct group *g = &t.groups[i];
		make_cells(v, g, &b, cells);
		ff_screen_table_row(&screen, cells, out);
		if (lines_of(g) > 1) {
			put_quote(g, out, width);
		}
	}
	put_left_out(&t, shown, out);
	table_finish(&t);
	ff_buf_finish(&b);
}

/* ---- JSON */

/* What was heard of one rank on one stream. */
struct heard {
	int32_t rank;
	const struct ff_stream *stream;
	uint64_t lines, bytes;
};

static int by_rank_then_stream(const void *a, const void *b)
{
	const struct heard *x = a, *y = b;
	if (x->rank != y->rank) {
		return x->rank < y->rank ? -1 : 1;
	}
	int c = strcmp(x->stream->key, y->stream->key);
	uint32_t k = x->stream->number, l = y->stream->number;
	return c ? c : (k > l) - (k < l);
}

/* Sorted; the caller frees it. A stream that a rank declared and that has no line is there too. */
static struct heard *collect_heard(const struct ff_timeline *t, size_t *ret_n)
{
	size_t n, all, kept = 0;
	struct ff_lane_ref *lanes = ff_timeline_lanes(t, &n);
	struct heard *h = ff_xcalloc(n + t->nstreams + 1, sizeof *h);
	for (all = 0; all < n; all++) {
		const struct ff_lane *l = lanes[all].lane;
		h[all] = (struct heard){lanes[all].rank, lanes[all].stream, l->lines, l->bytes};
	}
	free(lanes);
	for (size_t i = 0; i < t->nstreams; i++) {
		const struct ff_stream *s = t->streams[i];
		bool now = s->origin.attempt == FF_UNKNOWN || s->origin.attempt == t->attempt;
		if (s->origin.rank != FF_UNKNOWN && !s->nlanes && now) {
			h[all++] = (struct heard){s->origin.rank, s, 0, 0};
		}
	}
	if (all > 1) {
		qsort(h, all, sizeof *h, by_rank_then_stream);
	}
	for (size_t i = 0; i < all; i++) {
		if (kept && h[kept - 1].rank == h[i].rank && h[kept - 1].stream == h[i].stream) {
			h[kept - 1].lines += h[i].lines;
			h[kept - 1].bytes += h[i].bytes;
		} else {
			h[kept++] = h[i];
		}
	}
	*ret_n = kept;
	return h;
}

static size_t first_heard(const struct heard *h, size_t n, int32_t rank)
{
	size_t lo = 0, hi = n;
	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;
		if (h[mid].rank < rank) {
			lo = mid + 1;
		} else {
			hi = mid;
		}
	}
	return lo;
}

static void put_streams(struct ff_jw *w, const struct heard *h, size_t n, int32_t rank)
{
	ff_jw_key(w, "streams");
	ff_jw_open(w, '[');
	for (size_t i = first_heard(h, n, rank); i < n && h[i].rank == rank; i++) {
		ff_jw_open(w, '{');
		ff_jw_kstrz(w, "stream", h[i].stream->key);
		ff_jw_kint(w, "lines", (int64_t)h[i].lines);
		ff_jw_kint(w, "bytes", (int64_t)h[i].bytes);
		ff_jw_close(w, '}');
	}
	ff_jw_close(w, ']');
}

static void put_fault(struct ff_jw *w, const struct ff_rank_line *line)
{
	const struct ff_sighting *s = own_fault(line);
	ff_jw_kstrz(w, "fault", s ? s->ev->fault : NULL);
	ff_jw_kstrz(w, "role", s ? ff_role_name(s->ev->role) : NULL);
	ff_jw_kstrz(w, "event", s ? s->id : NULL);
	if (s && s->ev->text) {
		ff_jw_kstr(w, "text", ff_report_line(s));
	} else {
		ff_jw_knull(w, "text");
	}
	ff_jw_kint(w, "faults", line ? (int64_t)line->nfaults : 0);
}

static void put_rank(
	struct ff_jw *w, const struct table *t, size_t place, const struct heard *h, size_t n)
{
	const struct ff_rank_status *s = &t->v->ranks[place];
	const struct ff_rank_line *line = ff_timeline_rank(&t->v->timeline, s->rank);
	const struct ff_when none = FF_WHEN_NONE;
	int32_t exit_code = line ? line->exit_code : FF_EXIT_UNKNOWN;
	ff_jw_open(w, '{');
	ff_report_number(w, "rank", s->rank);
	ff_jw_kstrz(w, "status", ff_status_name(s->status));
	ff_jw_kstrz(w, "node", line ? line->node : NULL);
	ff_report_number(w, "local_rank", line ? line->local_rank : FF_UNKNOWN);
	ff_jw_kstrz(w, "heard", line ? ff_heard_name(line->heard) : NULL);
	ff_jw_kbool(w, "to_end", line && line->stderr_to_end);
	ff_report_number(w, "last_step", line ? line->last_step : FF_UNKNOWN);
	ff_jw_kbool(w, "behind", is_behind(t, line));
	ff_report_when(w, "last_line", line ? &line->last_line : &none);
	if (exit_code == FF_EXIT_UNKNOWN) {
		ff_jw_knull(w, "exit_code");
	} else {
		ff_jw_kint(w, "exit_code", exit_code);
	}
	put_fault(w, line);
	ff_jw_kint(w, "group", (int64_t)t->of_rank[place] + 1);
	put_streams(w, h, n, s->rank);
	ff_jw_close(w, '}');
}

void ff_report_ranks_json(
	const struct ff_verdict *v, size_t from, size_t limit, struct ff_buf *out)
{
	struct table t;
	struct ff_jw w;
	struct ff_buf next = {0};
	size_t n, i = from;
	struct heard *h = collect_heard(&v->timeline, &n);
	table_init(&t, v);
	ff_report_list_open(&w, out, "firstfault.ranks/1", v);
	for (; i < v->nranks && limit > 0; i++, limit--) {
		put_rank(&w, &t, i, h, n);
	}
	if (i < v->nranks) {
		ff_report_cursor_rank(v, i, &next);
	}
	ff_report_list_close(&w, &next);
	ff_buf_finish(&next);
	table_finish(&t);
	free(h);
}
