#include "core/report_timeline.h"
#include "core/report_cursor.h"
#include "core/report_own.h"
#include "core/report_table.h"
#include "core/report_screen.h"

#include "base/arr.h"

#include <stdio.h>
#include <stdlib.h>

#define LINES 60   /* of a screen, unless the caller says another number */
#define AROUND 6   /* lines of title, head and foot */
#define BAR 16     /* columns */

/* Events that fold to one line. */
struct row {
	const struct ff_sighting *s; /* the first of them */
	size_t number;               /* of the first, in the list of all, from 1 */
	bool started;                /* what the verdict rests on */
	bool unordered;              /* can't be ordered with the row above */
	uint64_t count;
	struct ff_when when; /* of the first; lo and hi span all of its clock */
	int32_t *ranks;
	size_t nranks, cranks;
	const char **nodes;
	size_t nnodes, cnodes;
};

struct lines {
	const struct ff_verdict *v;
	struct ff_map marked; /* ids of the events that the verdict rests on */
	struct row *rows;
	size_t n, cap;
	const struct row *zero; /* times are told from here; NULL: none is known */
	ff_usec first, last;    /* the span of the bars, bounds included, around zero */
};

/* ---- which events */

static bool is_of_attempt(const struct ff_verdict *v, const struct ff_sighting *s)
{
	return s->attempt == v->timeline.attempt;
}

static bool is_shown(const struct lines *l, const struct ff_sighting *s)
{
	bool fault = s->ev->kind == FF_EVENT_FAULT && s->ev->role != FF_ROLE_NOISE &&
		s->ev->role != FF_ROLE_CONTEXT;
	return is_of_attempt(l->v, s) &&
		(fault || s->ev->kind == FF_EVENT_EXIT ||
			ff_map_get(&l->marked, ff_str_z(s->id)));
}

/* The initiating ranks' events; where no rank started it, what the deciding rule names. */
static void mark_events(const struct ff_verdict *v, struct ff_map *marked)
{
	bool any = false;
	for (size_t i = 0; i < v->ninitiating; i++) {
		if (v->initiating[i].event) {
			(void)ff_map_put(marked, ff_str_z(v->initiating[i].event), (void *)v);
			any = true;
		}
	}
	for (size_t i = 0; !any && v->nwhy && v->why[0].events[i]; i++) {
		(void)ff_map_put(marked, ff_str_z(v->why[0].events[i]), (void *)v);
	}
}

/* ---- rows */

static void add_key(const struct ff_sighting *s, bool started, struct ff_buf *key)
{
	ff_buf_clear(key);
	ff_buf_addf(key, "%d %d %d %d %d %s ", started, (int)s->ev->kind, (int)s->ev->role,
		(int)s->exit_code, (int)s->weight, s->ev->fault);
	ff_report_alike(s, key);
}

static void note_place(struct row *r, const struct ff_sighting *s)
{
	if (s->rank != FF_UNKNOWN) {
		*FF_ARR_ADD(r->ranks, r->nranks, r->cranks) = s->rank;
	}
	if (s->node) {
		*FF_ARR_ADD(r->nodes, r->nnodes, r->cnodes) = s->node;
	}
}

/* What is folded into the row, and the last place of an event that stands for several. */
static void note_time(struct row *r, const struct ff_sighting *s)
{
	if (!s->when.known || !r->when.known || s->when.domain != r->when.domain) {
		return;
	}
	const struct ff_event *e = s->ev;
	ff_usec us = s->when.us, from = ff_stamp_us(e->stamp), to = ff_stamp_us(e->last.stamp);
	if (e->count > 1 && from != FF_TIME_NONE && to != FF_TIME_NONE && to > from) {
		us += to - from;
	}
	r->when.lo = s->when.lo < r->when.lo ? s->when.lo : r->when.lo;
	r->when.hi = s->when.hi > r->when.hi ? s->when.hi : r->when.hi;
	r->when.hi = us > r->when.hi ? us : r->when.hi;
}

static void add_event(struct lines *l, size_t index, struct ff_map *by_key, struct ff_buf *key)
{
	const struct ff_sighting *s = &l->v->timeline.all[index];
	bool started = ff_map_get(&l->marked, ff_str_z(s->id));
	add_key(s, started, key);
	uintptr_t at = (uintptr_t)ff_map_get(by_key, ff_buf_str(key));
	if (!at) {
		const struct row *above = l->n ? &l->rows[l->n - 1] : NULL;
		bool unordered = above && ff_timeline_order(above->s, s) == FF_CANT_TELL;
		*FF_ARR_ADD(l->rows, l->n, l->cap) = (struct row){
			.s = s,
			.number = index + 1,
			.started = started,
			.unordered = unordered,
			.when = s->when,
		};
		at = l->n;
		(void)ff_map_put(by_key, ff_buf_str(key), (void *)at);
	}
	struct row *r = &l->rows[at - 1];
	r->count += s->ev->count ? s->ev->count : 1;
	note_place(r, s);
	note_time(r, s);
}

static bool is_comparable(const struct lines *l, const struct row *r)
{
	return l->zero && r->when.known && r->when.domain == l->zero->when.domain;
}

/* Where times are told from: the first event that started it, else the first that has a time. */
static void find_zero(struct lines *l)
{
	for (size_t i = 0; i < l->n; i++) {
		const struct row *r = &l->rows[i];
		if (r->when.known && (!l->zero || (r->started && !l->zero->started))) {
			l->zero = r;
		}
	}
	for (size_t i = 0; i < l->n; i++) {
		const struct row *r = &l->rows[i];
		if (is_comparable(l, r)) {
			ff_usec from = r->when.lo - l->zero->when.us;
			ff_usec to = r->when.hi - l->zero->when.us;
			l->first = from < l->first ? from : l->first;
			l->last = to > l->last ? to : l->last;
		}
	}
}

static int by_number(const void *a, const void *b)
{
	int32_t x = *(const int32_t *)a, y = *(const int32_t *)b;
	return (x > y) - (x < y);
}

static void sort_ranks(struct row *r)
{
	size_t n = 0;
	if (r->nranks > 1) {
		qsort(r->ranks, r->nranks, sizeof *r->ranks, by_number);
	}
	for (size_t i = 0; i < r->nranks; i++) {
		if (!n || r->ranks[n - 1] != r->ranks[i]) {
			r->ranks[n++] = r->ranks[i];
		}
	}
	r->nranks = n;
}

static void lines_init(struct lines *l, const struct ff_verdict *v)
{
	struct ff_map by_key = {0};
	struct ff_buf key = {0};
	*l = (struct lines){.v = v};
	mark_events(v, &l->marked);
	for (size_t i = 0; i < v->timeline.nall; i++) {
		if (is_shown(l, &v->timeline.all[i])) {
			add_event(l, i, &by_key, &key);
		}
	}
	for (size_t i = 0; i < l->n; i++) {
		sort_ranks(&l->rows[i]);
	}
	find_zero(l);
	ff_map_finish(&by_key);
	ff_buf_finish(&key);
}

static void lines_finish(struct lines *l)
{
	for (size_t i = 0; i < l->n; i++) {
		free(l->rows[i].ranks);
		free(l->rows[i].nodes);
	}
	free(l->rows);
	ff_map_finish(&l->marked);
}

/* ---- cells */

static void add_distance(struct ff_buf *out, ff_usec us)
{
	ff_buf_addc(out, us < 0 ? '-' : '+');
	us = us < 0 ? -us : us;
	if (us < 1000 * FF_SECOND) {
		ff_buf_addf(out, "%d.%03ds", (int)(us / FF_SECOND), (int)(us / 1000 % 1000));
	} else {
		ff_buf_addf(out, "%llds", (long long)(us / FF_SECOND));
	}
}

static void add_time(const struct lines *l, const struct row *r, struct ff_buf *out)
{
	if (is_comparable(l, r)) {
		add_distance(out, r->when.us - l->zero->when.us);
	} else if (r->when.known) {
		ff_usec_render_clock(out, r->when.us, 0); /* of another clock */
	} else {
		ff_buf_addc(out, '?');
	}
}

static void add_bound(const struct row *r, struct ff_buf *out)
{
	if (!r->when.known) {
		ff_buf_addc(out, '?');
		return;
	}
	ff_usec_render_span(out, ff_report_bound(&r->s->when));
}

static int32_t column_of(const struct lines *l, ff_usec distance)
{
	ff_usec span = l->last - l->first;
	if (distance <= l->first || span <= 0) {
		return 0;
	}
	if (distance >= l->last) {
		return BAR - 1;
	}
	return (int32_t)((double)(distance - l->first) / (double)span * (BAR - 1) + 0.5);
}

/* `*` where it is, `-` where it may be as well, or where more of them are. */
static void add_bar(const struct lines *l, const struct row *r, struct ff_buf *out)
{
	char bar[BAR + 1];
	memset(bar, ' ', BAR);
	bar[BAR] = '\0';
	if (is_comparable(l, r)) {
		ff_usec zero = l->zero->when.us;
		int32_t from = column_of(l, r->when.lo - zero);
		int32_t to = column_of(l, r->when.hi - zero);
		memset(bar + from, '-', (size_t)(to - from) + 1);
		bar[column_of(l, r->when.us - zero)] = '*';
	}
	ff_buf_addz(out, bar);
}

static void add_ranks(const struct row *r, struct ff_buf *out)
{
	if (r->nranks) {
		ff_report_ranges(out, r->ranks, r->nranks, 0);
	} else {
		ff_buf_addc(out, '-');
	}
}

static void add_what(const struct row *r, struct ff_buf *out)
{
	const struct ff_sighting *s = r->s;
	if (r->count > 1) {
		ff_buf_addf(out, "%llu x ", (unsigned long long)r->count);
	}
	if (s->ev->kind == FF_EVENT_EXIT && s->exit_code == FF_EXIT_UNKNOWN) {
		ff_buf_addz(out, "exit, nobody says how");
	} else if (s->ev->kind == FF_EVENT_EXIT) {
		bool number = s->exit_code >= 0 && !ff_exit_signal(s->exit_code);
		ff_buf_addz(out, number ? "exit code " : "exit ");
		ff_report_exit(s->exit_code, out);
	} else {
		ff_buf_addz(out, *s->ev->fault ? s->ev->fault : s->ev->signature);
	}
	ff_buf_addz(out, ff_report_weight(s));
}

static const struct ff_screen_column columns[] = {
	{"", 2, false},
	{"N", 7, true},
	{"AFTER", 11, true},
	{"+-", 7, true},
	{"", BAR, false},
	{"RANKS", 12, false},
	{"NODE", 11, false},
	{"ROLE", 9, false},
	{"FAULT", 40, false},
};

#define NCOLUMNS (sizeof columns / sizeof *columns)

static void make_cells(const struct lines *l, const struct row *r, struct ff_buf *b,
	const char *cells[NCOLUMNS])
{
	size_t at[NCOLUMNS], n = 0;
	bool exit = r->s->ev->kind == FF_EVENT_EXIT;
	ff_buf_clear(b);
#define CELL(add) (at[n++] = b->len, (void)(add), ff_buf_addc(b, '\0'))
	CELL(ff_buf_addf(b, "%c%c", r->started ? '>' : ' ', r->unordered ? '~' : ' '));
	CELL(ff_buf_addf(b, "%zu", r->number));
	CELL(add_time(l, r, b));
	CELL(add_bound(r, b));
	CELL(add_bar(l, r, b));
	CELL(add_ranks(r, b));
	CELL(ff_report_nodes(r->nodes, r->nnodes, b));
	CELL(ff_buf_addz(b, exit ? "exit" : ff_role_name(r->s->ev->role)));
	CELL(add_what(r, b));
#undef CELL
	for (size_t i = 0; i < NCOLUMNS; i++) {
		cells[i] = b->p + at[i];
	}
}

/* ---- text */

/* An exit's code says it all; its line is often one of a table. */
static bool has_quote(const struct row *r)
{
	bool told = r->s->ev->kind == FF_EVENT_EXIT && r->s->exit_code != FF_EXIT_UNKNOWN;
	return !told && ff_report_line(r->s).n;
}

static size_t lines_of(const struct row *r)
{
	return has_quote(r) ? 2 : 1;
}

/* Which rows are shown in `room` lines: those that the verdict rests on, then from the first on. */
static bool *choose(const struct lines *l, size_t room, size_t *ret_shown)
{
	bool *chosen = ff_xcalloc(l->n + 1, sizeof *chosen);
	size_t used = 0, shown = 0;
	for (int pass = 0; pass < 2; pass++) {
		for (size_t i = 0; i < l->n; i++) {
			const struct row *r = &l->rows[i];
			if (chosen[i] || (!pass && !r->started)) {
				continue;
			}
			if (used + lines_of(r) > room && shown) {
				break;
			}
			chosen[i] = true;
			used += lines_of(r);
			shown++;
		}
	}
	*ret_shown = shown;
	return chosen;
}

static void put_legend(const struct lines *l, struct ff_buf *out, unsigned width)
{
	struct ff_buf b = {0};
	bool who = l->v->ninitiating > 0;
	ff_buf_addf(&b, "> %s  ~ can't be ordered with the line above  ",
		who ? "started it" : "what the verdict rests on");
	if (l->zero && l->last > l->first) {
		ff_buf_addz(&b, "bars: ");
		add_distance(&b, l->first);
		ff_buf_addz(&b, " to ");
		add_distance(&b, l->last);
	}
	(void)ff_report_put(out, ff_str_trim(ff_buf_str(&b)), width);
	ff_buf_addc(out, '\n');
	ff_buf_finish(&b);
}

static void put_zero(const struct lines *l, struct ff_buf *out, unsigned width)
{
	struct ff_buf b = {0};
	if (l->zero) {
		ff_buf_addf(&b, "+0.000s is event %zu at ", l->zero->number);
		ff_usec_render_clock(&b, l->zero->when.us, 3);
		bool own = l->zero->when.clock == FF_CLOCK_CLAIMED;
		ff_buf_addz(&b, own ? ", as its line says" : "");
	} else {
		ff_buf_addz(&b, "no event has a time: the order is that of each stream alone");
	}
	(void)ff_report_put(out, ff_buf_str(&b), width);
	ff_buf_addc(out, '\n');
	ff_buf_finish(&b);
}

static void put_rows(const struct lines *l, const bool *chosen, struct ff_buf *out, unsigned width)
{
	struct ff_screen_table screen = {.columns = columns, .n = NCOLUMNS, .width = width};
	const char *cells[NCOLUMNS];
	struct ff_buf b = {0};
	for (size_t i = 0; i < l->n; i++) {
		if (chosen[i]) {
			make_cells(l, &l->rows[i], &b, cells);
			ff_screen_table_fit(&screen, cells);
		}
	}
	ff_screen_table_head(&screen, out);
	for (size_t i = 0; i < l->n; i++) {
		if (!chosen[i]) {
			continue;
		}
		make_cells(l, &l->rows[i], &b, cells);
		ff_screen_table_row(&screen, cells, out);
		if (has_quote(&l->rows[i])) {
			ff_screen_quote(out, ff_report_line(l->rows[i].s), 4, width);
		}
	}
	ff_buf_finish(&b);
}

void ff_report_timeline_text(
	const struct ff_verdict *v, const struct ff_report_style *style, struct ff_buf *out)
{
	unsigned width = style->width < 60 ? 60 : style->width;
	unsigned lines = style->lines ? style->lines : LINES;
	struct lines l;
	size_t shown;
	lines_init(&l, v);
	ff_report_title(v, style, out);
	if (!l.n) {
		ff_buf_addz(out, "\nno fault and no exit of a process was found\n");
		lines_finish(&l);
		return;
	}
	bool *chosen = choose(&l, lines > AROUND ? lines - AROUND : 1, &shown);
	put_zero(&l, out, width);
	ff_buf_addc(out, '\n');
	put_rows(&l, chosen, out, width);
	if (shown < l.n) {
		ff_buf_addf(out, "... %zu more %s\n", l.n - shown,
			l.n - shown == 1 ? "line" : "lines");
	}
	put_legend(&l, out, width);
	free(chosen);
	lines_finish(&l);
}

/* ---- JSON */

static const char *order_name(const struct ff_sighting *before, const struct ff_sighting *s)
{
	if (!before) {
		return "first";
	}
	switch (ff_timeline_order(before, s)) {
	case FF_BEFORE: return "after";
	case FF_AFTER: return "before"; /* only where a third one can't be ordered with both */
	case FF_CANT_TELL: break;
	}
	return "unordered";
}

static void put_event(struct ff_jw *w, const struct lines *l, const struct ff_sighting *s,
	const struct ff_sighting *before)
{
	const struct ff_event *e = s->ev;
	ff_usec after;
	ff_jw_open(w, '{');
	ff_jw_kint(w, "number", s - l->v->timeline.all + 1);
	ff_jw_kstrz(w, "id", s->id);
	ff_jw_kstrz(w, "kind", ff_event_kind_name(e->kind));
	ff_jw_kstrz(w, "role", ff_role_name(e->role));
	ff_jw_kstrz(w, "fault", *e->fault ? e->fault : NULL);
	ff_report_number(w, "rank", s->rank);
	ff_jw_kstrz(w, "node", s->node);
	ff_report_when(w, "when", &s->when);
	if (l->zero && ff_when_diff(s->when, l->zero->s->when, &after)) {
		ff_jw_kint(w, "after_us", after);
	} else {
		ff_jw_knull(w, "after_us");
	}
	ff_jw_kstrz(w, "order", order_name(before, s));
	ff_jw_kbool(w, "started", ff_map_get(&l->marked, ff_str_z(s->id)));
	ff_jw_kbool(w, "went_on", e->kind == FF_EVENT_FAULT && s->weight == FF_WEIGHT_PAST);
	ff_jw_kint(w, "count", e->count ? e->count : 1);
	if (s->exit_code == FF_EXIT_UNKNOWN) {
		ff_jw_knull(w, "exit_code");
	} else {
		ff_jw_kint(w, "exit_code", s->exit_code);
	}
	if (e->text) {
		ff_jw_kstr(w, "text", ff_report_line(s));
	} else {
		ff_jw_knull(w, "text");
	}
	ff_jw_close(w, '}');
}

void ff_report_timeline_json(
	const struct ff_verdict *v, size_t from, size_t limit, struct ff_buf *out)
{
	const struct ff_timeline *t = &v->timeline;
	const struct ff_sighting *before = NULL;
	struct lines l;
	struct ff_jw w;
	struct ff_buf next = {0};
	size_t n = 0, i = 0;
	lines_init(&l, v);
	ff_report_list_open(&w, out, "firstfault.timeline/1", v);
	for (; i < t->nall && n < limit; i++) {
		if (!is_of_attempt(v, &t->all[i])) {
			continue;
		}
		if (i >= from) {
			put_event(&w, &l, &t->all[i], before);
			n++;
		}
		before = &t->all[i];
	}
	while (i < t->nall && !is_of_attempt(v, &t->all[i])) {
		i++;
	}
	if (i < t->nall) {
		ff_report_cursor_event(v, i, &next);
	}
	ff_report_list_close(&w, &next);
	ff_buf_finish(&next);
	lines_finish(&l);
}
