#include "core/report_own.h"
#include "base/arr.h"

#include <stdlib.h>

/* Caps of the parts; together they keep a ticket under 200 lines, whatever the job's size. */
#define EVIDENCE 24 /* lines of log text */
#define ROWS 16     /* of the first events, and of what the others show */
#define ITEMS 8     /* of any other list */
#define WIDTH 100   /* columns of a text line */
#define CELL 400    /* columns of a line that is not wrapped: Markdown, and log text */

struct ticket {
	const struct ff_verdict *v;
	ff_usec now_us;
	bool md;
	struct ff_buf *out;
};

/* ---- forms */

/* Text that Markdown shows as it is: every mark that could begin something is escaped. */
static void put_escaped(struct ff_buf *out, struct ff_str s)
{
	struct ff_buf safe = {0};
	(void)ff_report_put(&safe, s, CELL);
	for (size_t i = 0; i < safe.len; i++) {
		if (safe.p[i] && strchr("\\`*_{}[]<>()#+!|~&$", safe.p[i])) {
			ff_buf_addc(out, '\\');
		}
		ff_buf_addc(out, safe.p[i]);
	}
	ff_buf_finish(&safe);
}

static void put_heading(struct ticket *t, const char *text)
{
	ff_buf_addf(t->out, t->md ? "\n## %s\n\n" : "\n%s\n", text);
}

/* An entry of a list: one line of Markdown; as text wrapped. b is emptied. */
static void put_item(struct ticket *t, struct ff_buf *b)
{
	struct ff_str rest = ff_buf_str(b);
	if (t->md && rest.n) {
		ff_buf_addz(t->out, "- ");
		put_escaped(t->out, rest);
		ff_buf_addc(t->out, '\n');
		rest.n = 0;
	}
	for (unsigned line = 0; rest.n && line < 4; line++) {
		size_t take = line == 3 ? rest.n : ff_report_break(rest, WIDTH - 4);
		ff_buf_addz(t->out, line ? "    " : "  ");
		(void)ff_report_put(t->out, ff_str_n(rest.p, take), WIDTH - 4);
		ff_buf_addc(t->out, '\n');
		rest = ff_str_trim(ff_str_skip(rest, take));
	}
	ff_buf_finish(b);
}

static struct ff_str next_line(struct ff_str *rest)
{
	ptrdiff_t lf = ff_str_chr(*rest, '\n', 0);
	struct ff_str line = ff_str_n(rest->p, lf < 0 ? rest->n : (size_t)lf);
	*rest = ff_str_skip(*rest, lf < 0 ? rest->n : line.n + 1);
	return line;
}

static void put_items(struct ticket *t, struct ff_buf *lines, unsigned max)
{
	struct ff_str rest = ff_buf_str(lines);
	for (unsigned n = 0; rest.n && n < max; n++) {
		struct ff_buf b = {0};
		ff_buf_adds(&b, next_line(&rest));
		put_item(t, &b);
	}
	ff_buf_finish(lines);
}

/* A fence that the text can't close: longer than any run of backticks in it. */
static size_t fence_of(struct ff_str text)
{
	size_t run = 0, most = 2;
	for (size_t i = 0; i < text.n; i++) {
		run = text.p[i] == '`' ? run + 1 : 0;
		most = run > most ? run : most;
	}
	return most + 1;
}

static void put_fence(struct ticket *t, size_t n)
{
	for (; n; n--) {
		ff_buf_addc(t->out, '`');
	}
}

/* Adds a line as it stands; as text behind `mark`, and wrapped. Returns the lines used. */
static unsigned add_line(const struct ticket *t, struct ff_buf *out, struct ff_str line,
	const char *mark, unsigned max)
{
	unsigned room = t->md ? CELL : WIDTH - (unsigned)strlen(mark), n = 0;
	do {
		bool last = t->md || n + 1 == max;
		size_t take = last ? line.n : ff_report_break(line, room);
		ff_buf_addz(out, t->md ? "" : mark);
		(void)ff_report_put(out, ff_str_n(line.p, take), room);
		ff_buf_addc(out, '\n');
		line = ff_str_skip(line, take);
		while (line.n && line.p[0] == ' ') {
			line = ff_str_skip(line, 1);
		}
		n++;
	} while (line.n && n < max);
	return n;
}

/* Lines as they stand: in a fence, or behind `mark`. b is emptied. */
static void put_block(struct ticket *t, struct ff_buf *b, const char *mark, unsigned max)
{
	struct ff_str rest = ff_buf_str(b);
	struct ff_buf safe = {0};
	for (unsigned n = 0; rest.n && n < max;) {
		struct ff_str line = next_line(&rest);
		n += add_line(t, &safe, line, mark, max - n);
	}
	if (rest.n) {
		ff_buf_addf(&safe, "%s(the rest is cut)\n", t->md ? "" : mark);
	}
	size_t fence = fence_of(ff_buf_str(&safe));
	if (t->md && safe.len) {
		bool open = t->out->len > 1 && t->out->p[t->out->len - 2] == '\n';
		ff_buf_addz(t->out, open ? "" : "\n");
		put_fence(t, fence);
		ff_buf_addz(t->out, "text\n");
	}
	ff_buf_adds(t->out, ff_buf_str(&safe));
	if (t->md && safe.len) {
		put_fence(t, fence);
		ff_buf_addc(t->out, '\n');
	}
	ff_buf_finish(&safe);
	ff_buf_finish(b);
}

/* ---- parts */

static void put_head(struct ticket *t)
{
	const struct ff_verdict *v = t->v;
	struct ff_buf b = {0};
	ff_buf_addf(&b, "Job %s: ", v->job);
	ff_report_who(v, &b);
	ff_buf_addz(t->out, t->md ? "# " : "");
	if (t->md) {
		put_escaped(t->out, ff_buf_str(&b));
	} else {
		(void)ff_report_put(t->out, ff_buf_str(&b), WIDTH);
	}
	ff_buf_addz(t->out, t->md ? "\n\n" : "\n");
	ff_buf_finish(&b);
	ff_report_job(v, &b);
	ff_buf_addf(&b, "run %s, attempt %d, ", v->run, (int)v->attempt);
	ff_report_size(v, &b);
	ff_buf_addz(&b, "; ");
	ff_report_state(v, t->now_us, &b);
	put_item(t, &b);
	if (v->as_of != FF_TIME_NONE) {
		ff_buf_addz(&b, "as of ");
		ff_usec_render(&b, v->as_of);
		put_item(t, &b);
	}
	ff_buf_addz(&b, "verdict: ");
	if (v->kind != FF_VERDICT_UNDETERMINED) {
		ff_buf_addf(&b, "%s, ", ff_verdict_kind_name(v->kind));
	}
	ff_report_sure(v, &b);
	put_item(t, &b);
	ff_report_where(v, &b);
	put_item(t, &b);
	ff_buf_addz(&b, v->summary);
	put_item(t, &b);
	ff_buf_addz(&b, "do now: ");
	ff_report_do(v, &b);
	ff_buf_addc(&b, ' ');
	ff_report_action(v, &b);
	put_item(t, &b);
}

static void put_proof(struct ticket *t)
{
	const struct ff_sighting *p = ff_report_proof(t->v);
	struct ff_buf b = {0}, text = {0};
	put_heading(t, "Proof");
	if (p) {
		ff_report_place(p, &b);
		put_item(t, &b);
	}
	ff_report_shown(t->v, &b);
	put_items(t, &b, ITEMS);
	ff_report_candidates(t->v, &b);
	put_items(t, &b, 2);
	if (p) {
		ff_buf_add(
			&text, p->ev->text ? p->ev->text : "", p->ev->text ? p->ev->text_len : 0);
		put_block(t, &text, "  | ", EVIDENCE);
	}
	if (p && p->ev->frame) {
		ff_buf_addf(&text, "at %s", p->ev->frame);
		put_block(t, &text, "  ", 1);
	}
}

static bool is_shown(const struct ff_verdict *v, const struct ff_sighting *s)
{
	bool fault = s->ev->kind == FF_EVENT_FAULT && s->weight >= FF_WEIGHT_ECHO;
	return s->attempt == v->attempt &&
		(fault || (s->ev->kind == FF_EVENT_EXIT && s->exit_code != FF_EXIT_UNKNOWN));
}

/* A rank says the same in several lines: one is enough. */
static bool is_repeat(const struct ff_sighting *const *rows, size_t n, const struct ff_sighting *s)
{
	for (size_t i = 0; i < n; i++) {
		if (s->rank != FF_UNKNOWN && rows[i]->rank == s->rank &&
			rows[i]->ev->kind == s->ev->kind &&
			!strcmp(rows[i]->ev->fault, s->ev->fault)) {
			return true;
		}
	}
	return false;
}

/* In the timeline's order: by time where it is comparable. */
static void put_first_events(struct ticket *t)
{
	const struct ff_sighting *rows[ROWS];
	struct ff_buf b = {0};
	size_t n = 0, all = 0;
	for (size_t i = 0; i < t->v->timeline.nall; i++) {
		const struct ff_sighting *s = &t->v->timeline.all[i];
		if (!is_shown(t->v, s)) {
			continue;
		}
		all++;
		if (n < ROWS && !is_repeat(rows, n, s)) {
			rows[n++] = s;
			ff_buf_addf(&b, "%-9s %-22s ", ff_role_name(s->ev->role),
				s->ev->kind == FF_EVENT_EXIT ? "exit" : s->ev->fault);
			ff_report_place(s, &b);
			ff_buf_addc(&b, '\n');
		}
	}
	if (!all) {
		return;
	}
	put_heading(t, "First events");
	put_block(t, &b, "  ", ROWS);
	if (all > n) {
		ff_buf_addf(&b, "of %zu events", all);
		put_item(t, &b);
	}
}

/* Others that show the same, with their ranks. */
struct row {
	enum ff_status status;
	const char *fault;
	int32_t *ranks;
	size_t n, cap;
	ff_usec lo, hi;
};

static int by_size(const void *pa, const void *pb)
{
	const struct row *a = pa, *b = pb;
	if (a->n != b->n) {
		return a->n > b->n ? -1 : 1;
	}
	return a->ranks[0] < b->ranks[0] ? -1 : 1;
}

static struct row *row_of(struct row *rows, size_t *n, const struct ff_collateral *c)
{
	for (size_t i = 0; i < *n; i++) {
		const char *a = rows[i].fault ? rows[i].fault : "", *b = c->fault ? c->fault : "";
		if (rows[i].status == c->status && !strcmp(a, b)) {
			return &rows[i];
		}
	}
	if (*n == 4 * (size_t)ROWS) {
		return &rows[*n - 1];
	}
	rows[*n] = (struct row){
		.status = c->status, .fault = c->fault, .lo = INT64_MAX, .hi = INT64_MIN};
	return &rows[(*n)++];
}

static void put_others(struct ticket *t)
{
	const struct ff_verdict *v = t->v;
	struct row rows[4 * ROWS];
	struct ff_buf b = {0};
	size_t n = 0;
	for (size_t i = 0; i < v->ncollateral; i++) {
		const struct ff_collateral *c = &v->collateral[i];
		struct row *row = row_of(rows, &n, c);
		*FF_ARR_ADD(row->ranks, row->n, row->cap) = c->rank;
		row->lo = c->has_after && c->after_us < row->lo ? c->after_us : row->lo;
		row->hi = c->has_after && c->after_us > row->hi ? c->after_us : row->hi;
	}
	qsort(rows, n, sizeof *rows, by_size);
	for (size_t i = 0; i < n; i++) {
		struct row *row = &rows[i];
		if (i < ROWS) {
			ff_buf_addf(&b, "%6zu %-10s %-22s ", row->n, ff_status_name(row->status),
				row->fault ? row->fault : "-");
			if (row->lo <= row->hi) {
				ff_buf_addc(&b, row->lo < 0 ? ' ' : '+');
				ff_usec_render_span(&b, row->lo);
				ff_buf_addz(&b, row->hi < 0 ? " to " : " to +");
				ff_usec_render_span(&b, row->hi);
				ff_buf_addz(&b, "  ");
			}
			ff_buf_addz(&b, "ranks ");
			ff_report_ranges(&b, row->ranks, row->n, 8);
			ff_buf_addc(&b, '\n');
		}
		free(row->ranks);
	}
	if (!n) {
		ff_report_then(v, &b);
	}
	if (b.len) {
		put_heading(t, "The other ranks");
	}
	put_block(t, &b, "  ", ROWS);
}

static void put_reasons(struct ticket *t)
{
	struct ff_buf b = {0};
	put_heading(t, "Why, and why not");
	for (size_t i = 0; i < t->v->nwhy && i < ITEMS; i++) {
		ff_buf_addf(&b, "%s (rule %s)", t->v->why[i].text, t->v->why[i].rule);
		put_item(t, &b);
	}
	ff_report_not(t->v, &b);
	put_items(t, &b, ITEMS);
}

static void put_catalogue(struct ticket *t)
{
	const struct ff_verdict *v = t->v;
	struct ff_buf b = {0};
	if (!v->fault) {
		return;
	}
	put_heading(t, "What the catalogue says");
	ff_buf_addf(&b, "fault: %s (%s)", v->title, v->fault);
	put_item(t, &b);
	ff_buf_addf(&b, v->cause ? "cause: %s" : "%s", v->cause ? v->cause : "");
	put_item(t, &b);
	for (size_t i = 0; v->fix[i] && i < ITEMS; i++) {
		ff_buf_addf(&b, "fix: %s", v->fix[i]);
		put_item(t, &b);
	}
	for (size_t i = 0; i < v->nverify && i < 3; i++) {
		ff_buf_addf(&b, "verify; expect %s", v->verify[i].expect);
		put_item(t, &b);
		ff_report_verify(v, i, &b);
		put_block(t, &b, "      ", 1);
	}
}

static void put_heard(struct ticket *t)
{
	const struct ff_verdict *v = t->v;
	struct ff_buf b = {0};
	size_t n = 0;
	put_heading(t, "Seen, and missing");
	ff_report_seen(v, &b);
	put_item(t, &b);
	ff_report_settle(v, &b);
	put_items(t, &b, 2);
	for (; v->missing[n]; n++) {
		if (n < ITEMS) {
			ff_buf_addf(&b, "missing: %s", v->missing[n]);
			put_item(t, &b);
		}
	}
	if (n > ITEMS) {
		ff_buf_addf(&b, "%zu more are missing", n - ITEMS);
		put_item(t, &b);
	}
}

static void put_clocks(struct ticket *t)
{
	struct ff_buf b = {0};
	size_t known = 0;
	for (size_t i = 0; i < t->v->clock.nnodes; i++) {
		const struct ff_node_offset *n = &t->v->clock.nodes[i];
		if (n->known && known++ < ITEMS) {
			ff_buf_addf(&b, "%-16s ", n->node);
			ff_usec_render_span(&b, n->offset_us);
			ff_buf_addz(&b, " off the collector's, within ");
			ff_usec_render_span(&b, n->bound_us);
			ff_buf_addc(&b, '\n');
		}
	}
	if (known) {
		put_heading(t, "Clocks");
		put_block(t, &b, "  ", ITEMS);
	}
	if (known > ITEMS) {
		ff_buf_addf(&b, "%zu more nodes", known - ITEMS);
		put_item(t, &b);
	}
	ff_report_clock(t->v, &b);
	put_item(t, &b);
}

static void put_attempts(struct ticket *t)
{
	const struct ff_verdict *v = t->v;
	struct ff_buf b = {0};
	if (v->nattempts < 2) {
		return;
	}
	put_heading(t, "Attempts");
	for (size_t i = v->nattempts > ITEMS ? v->nattempts - ITEMS : 0; i < v->nattempts; i++) {
		const struct ff_attempt *a = &v->attempts[i];
		ff_buf_addf(
			&b, "attempt %d: %s", (int)a->attempt, ff_verdict_kind_name(a->verdict));
		if (a->ninitiating) {
			ff_buf_addz(&b, a->ninitiating == 1 ? ", rank " : ", ranks ");
			ff_report_ranges(&b, a->initiating, a->ninitiating, 8);
		}
		if (a->fault) {
			ff_buf_addf(&b, ", %s", a->fault);
		}
		put_item(t, &b);
	}
}

bool ff_ticket_parse(struct ff_str s, enum ff_ticket *ret)
{
	*ret = ff_str_eqz(s, "md") ? FF_TICKET_MD : FF_TICKET_TEXT;
	return ff_str_eqz(s, "md") || ff_str_eqz(s, "txt");
}

void ff_report_ticket(
	const struct ff_verdict *v, enum ff_ticket form, ff_usec now_us, struct ff_buf *out)
{
	struct ticket t = {v, now_us, form == FF_TICKET_MD, out};
	struct ff_buf b = {0};
	put_head(&t);
	put_proof(&t);
	put_first_events(&t);
	put_others(&t);
	put_reasons(&t);
	put_catalogue(&t);
	put_heard(&t);
	put_clocks(&t);
	put_attempts(&t);
	put_heading(&t, "Made by");
	ff_buf_addf(&b, "firstfault %s, catalogue", FF_VERSION);
	for (size_t i = 0; v->catalog[i]; i++) {
		ff_buf_addf(&b, "%s %s", i ? "," : "", v->catalog[i]);
	}
	put_item(&t, &b);
}
