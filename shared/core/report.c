#include "core/report.h"
#include "base/arr.h"

#include <stdlib.h>

#define FOLD_ABOVE 4096 /* ranks; then equal entries are folded (shared/README.md 6.5) */
#define INDENT 8        /* columns of a label */

/* ---- JSON */

static void put_rank(struct ff_jw *w, const char *key, int64_t rank)
{
	if (rank == FF_UNKNOWN) {
		ff_jw_knull(w, key);
	} else {
		ff_jw_kint(w, key, rank);
	}
}

static void put_text_or_null(struct ff_jw *w, const char *key, const char *text)
{
	ff_jw_kstrz(w, key, text && *text ? text : NULL);
}

static void put_list(struct ff_jw *w, const char *key, const char *const *list)
{
	ff_jw_key(w, key);
	ff_jw_open(w, '[');
	for (; list && *list; list++) {
		ff_jw_strz(w, *list);
	}
	ff_jw_close(w, ']');
}

/* Numbers as numbers where the field's type is one and the text is too; else as printed. */
static void put_fields(struct ff_jw *w, const struct ff_fields *fields)
{
	ff_jw_key(w, "fields");
	ff_jw_open(w, '{');
	for (size_t i = 0; i < fields->n; i++) {
		const struct ff_field *f = &fields->v[i];
		enum ff_field_type type = ff_field_type(f->id);
		struct ff_str value = ff_str_z(f->value);
		int64_t n;
		bool number = type == FF_FIELD_INT || type == FF_FIELD_US || type == FF_FIELD_MS;
		if (number && ff_str_int(value, &n) && n > -(1ll << 53) && n < 1ll << 53) {
			ff_jw_kint(w, ff_field_name(f->id), n);
		} else {
			ff_jw_kstr(w, ff_field_name(f->id), value);
		}
	}
	ff_jw_close(w, '}');
}

static void put_tag(struct ff_jw *w, const struct ff_event *e)
{
	ff_jw_key(w, "tag");
	if (e->tag.kind == FF_TAG_NONE) {
		ff_jw_null(w);
		return;
	}
	ff_jw_open(w, '{');
	ff_jw_kstrz(w, "kind", ff_tag_kind_name(e->tag.kind));
	struct ff_str host = ff_event_field(e, FF_F_host);
	if (e->tag.kind == FF_TAG_HOST && host.n) {
		ff_jw_kstr(w, "value", host);
	} else if (e->tag.kind == FF_TAG_HOST) {
		struct ff_buf b = {0};
		ff_buf_addf(&b, "%llx", (unsigned long long)e->tag.value);
		ff_jw_kstr(w, "value", ff_buf_str(&b));
		ff_buf_finish(&b);
	} else {
		ff_jw_kint(w, "value", e->tag.value);
	}
	ff_jw_close(w, '}');
}

static void put_line(struct ff_jw *w, int64_t line)
{
	if (line > 0) {
		ff_jw_kint(w, "line", line);
	} else {
		ff_jw_knull(w, "line");
	}
}

static void put_place(struct ff_jw *w, uint64_t offset, int64_t line)
{
	ff_jw_kint(w, "offset", (int64_t)offset);
	put_line(w, line);
}

static void put_last(struct ff_jw *w, const struct ff_event *e)
{
	ff_jw_key(w, "last");
	if (e->count < 2) {
		ff_jw_null(w);
		return;
	}
	ff_jw_open(w, '{');
	put_place(w, e->last.offset, e->last.line);
	ff_jw_ktime(w, "arrived", e->last.stamp.arrived);
	ff_jw_ktime(w, "captured", e->last.stamp.captured);
	ff_jw_close(w, '}');
}

/* What the line claims, as far as it says it: no year and no zone are left out. */
static void put_claimed(struct ff_jw *w, const struct ff_claimed *c)
{
	ff_jw_key(w, "claimed");
	if (c->us == FF_TIME_NONE) {
		ff_jw_null(w);
		return;
	}
	struct ff_buf b = {0};
	ff_usec_render(&b, c->us); /* 2026-01-01T00:00:00.000000Z */
	struct ff_str text = ff_buf_str(&b);
	size_t cut = c->mono_fraction || c->grain >= FF_SECOND ? 8 : 1;
	if (text.n > 20) {
		text.n -= cut;
		struct ff_buf out = {0};
		if (!c->has_year) {
			ff_buf_addz(&out, "--");
			text = ff_str_skip(text, 5);
		}
		ff_buf_adds(&out, text);
		if (c->has_zone) {
			ff_buf_addc(&out, 'Z');
		}
		ff_jw_str(w, ff_buf_str(&out));
		ff_buf_finish(&out);
	} else {
		ff_jw_str(w, text);
	}
	ff_buf_finish(&b);
}

static void put_stream(struct ff_jw *w, const struct ff_sighting *s)
{
	struct ff_buf name = {0};
	ff_buf_addz(&name, s->stream->origin.name);
	if (s->stream->life > 1) {
		ff_buf_addf(&name, "#%u", s->stream->life);
	}
	ff_jw_kstr(w, "stream", ff_buf_str(&name));
	ff_buf_finish(&name);
	put_place(w, s->ev->offset, s->ev->line);
	ff_jw_key(w, "at");
	ff_jw_open(w, '{');
	put_place(w, s->ev->at_offset, s->ev->at_line);
	ff_jw_close(w, '}');
}

void ff_report_event(const struct ff_sighting *s, struct ff_jw *w)
{
	const struct ff_event *e = s->ev;
	ff_jw_open(w, '{');
	ff_jw_kstrz(w, "id", s->id);
	ff_jw_kstrz(w, "kind", ff_event_kind_name(e->kind));
	put_text_or_null(w, "fault", e->fault);
	ff_jw_kstrz(w, "role", ff_role_name(e->role));
	put_text_or_null(w, "signature", e->signature);
	put_fields(w, &e->fields);
	put_tag(w, e);
	ff_jw_kint(w, "count", e->count ? e->count : 1);
	put_last(w, e);
	if (s->stream) {
		put_stream(w, s);
	} else {
		ff_jw_knull(w, "stream");
		ff_jw_knull(w, "offset");
		ff_jw_knull(w, "line");
		ff_jw_knull(w, "at");
	}
	ff_jw_ktime(w, "arrived", e->stamp.arrived);
	ff_jw_ktime(w, "captured", e->stamp.captured);
	put_claimed(w, &e->claimed);
	if (e->text) {
		ff_jw_kstr(w, "text", ff_str_n(e->text, e->text_len));
	} else {
		ff_jw_knull(w, "text");
	}
	ff_jw_close(w, '}');
}

static void put_initiating(struct ff_jw *w, const struct ff_verdict *v)
{
	ff_jw_key(w, "initiating");
	ff_jw_open(w, '[');
	for (size_t i = 0; i < v->ninitiating; i++) {
		const struct ff_who *who = &v->initiating[i];
		ff_jw_open(w, '{');
		put_rank(w, "rank", who->rank);
		ff_jw_kstrz(w, "node", who->node);
		put_rank(w, "local_rank", who->local_rank);
		ff_jw_kstrz(w, "event", who->event);
		ff_jw_close(w, '}');
	}
	ff_jw_close(w, ']');
}

static void put_fault(struct ff_jw *w, const struct ff_verdict *v)
{
	ff_jw_key(w, "fault");
	if (!v->fault) {
		ff_jw_null(w);
		return;
	}
	ff_jw_open(w, '{');
	ff_jw_kstrz(w, "id", v->fault);
	ff_jw_kstrz(w, "title", v->title);
	ff_jw_kstrz(w, "category", v->category);
	ff_jw_kstrz(w, "signature", v->signature);
	ff_jw_close(w, '}');
}

static void put_verify(struct ff_jw *w, const struct ff_verdict *v)
{
	ff_jw_key(w, "verify");
	ff_jw_open(w, '[');
	for (size_t i = 0; i < v->nverify; i++) {
		ff_jw_open(w, '{');
		ff_jw_kstrz(w, "run", v->verify[i].run ? v->verify[i].run : "");
		ff_jw_kstrz(w, "expect", v->verify[i].expect ? v->verify[i].expect : "");
		ff_jw_close(w, '}');
	}
	ff_jw_close(w, ']');
}

static void put_action(struct ff_jw *w, const struct ff_verdict *v)
{
	ff_jw_key(w, "action");
	ff_jw_open(w, '{');
	ff_jw_kstrz(w, "kind", ff_action_name(v->action.kind));
	ff_jw_kbool(w, "retry", v->action.retry);
	ff_jw_kstrz(w, "confidence", ff_confidence_name(v->action.confidence));
	put_list(w, "nodes", v->action.nodes);
	ff_jw_kstrz(w, "text", v->action.text);
	ff_jw_close(w, '}');
}

/* ---- ranks and collateral, folded above 4,096 */

struct fold {
	size_t first; /* index of its first entry */
	int32_t *ranks;
	size_t n, cap;
};

struct folds {
	struct fold *v;
	size_t n, cap;
	struct ff_map by_text; /* of the entry without its rank -> index + 1 */
};

static void fold_add(struct folds *f, struct ff_str text, size_t index, int32_t rank)
{
	uintptr_t at = (uintptr_t)ff_map_get(&f->by_text, text);
	if (!at) {
		*FF_ARR_ADD(f->v, f->n, f->cap) = (struct fold){.first = index};
		at = f->n;
		(void)ff_map_put(&f->by_text, text, (void *)at);
	}
	struct fold *g = &f->v[at - 1];
	*FF_ARR_ADD(g->ranks, g->n, g->cap) = rank;
}

static void folds_finish(struct folds *f)
{
	for (size_t i = 0; i < f->n; i++) {
		free(f->v[i].ranks);
	}
	free(f->v);
	ff_map_finish(&f->by_text);
}

static void add_ranges(struct ff_buf *b, const int32_t *ranks, size_t n)
{
	for (size_t i = 0; i < n;) {
		size_t j = i;
		while (j + 1 < n && ranks[j + 1] == ranks[j] + 1) {
			j++;
		}
		ff_buf_addf(b, "%s%d", i ? "," : "", (int)ranks[i]);
		if (j > i) {
			ff_buf_addf(b, "-%d", (int)ranks[j]);
		}
		i = j + 1;
	}
}

static void put_who(struct ff_jw *w, const struct fold *g)
{
	if (g->n == 1) {
		put_rank(w, "rank", g->ranks[0]);
		return;
	}
	struct ff_buf b = {0};
	add_ranges(&b, g->ranks, g->n);
	ff_jw_kstr(w, "ranks", ff_buf_str(&b));
	ff_buf_finish(&b);
}

static void put_collateral_entry(struct ff_jw *w, const struct ff_collateral *c)
{
	ff_jw_kstrz(w, "status", ff_status_name(c->status));
	put_text_or_null(w, "fault", c->fault);
	ff_jw_kstrz(w, "event", c->event);
	if (c->has_after) {
		ff_jw_kint(w, "after_us", c->after_us);
	} else {
		ff_jw_knull(w, "after_us");
	}
	ff_jw_kstrz(w, "because", c->because);
}

static bool folded(const struct ff_verdict *v)
{
	return v->nranks > FOLD_ABOVE && !v->unfolded;
}

static void fold_collateral(const struct ff_verdict *v, struct folds *f)
{
	struct ff_buf b = {0};
	for (size_t i = 0; i < v->ncollateral; i++) {
		const struct ff_collateral *c = &v->collateral[i];
		ff_buf_clear(&b);
		struct ff_jw w;
		ff_jw_init(&w, &b);
		ff_jw_open(&w, '{');
		put_collateral_entry(&w, c);
		ff_jw_close(&w, '}');
		if (!folded(v)) {
			ff_buf_addf(&b, "%zu", i);
		}
		fold_add(f, ff_buf_str(&b), i, c->rank);
	}
	ff_buf_finish(&b);
}

static void put_collateral(struct ff_jw *w, const struct ff_verdict *v)
{
	struct folds f = {0};
	fold_collateral(v, &f);
	ff_jw_key(w, "collateral");
	ff_jw_open(w, '[');
	for (size_t i = 0; i < f.n; i++) {
		ff_jw_open(w, '{');
		put_who(w, &f.v[i]);
		put_collateral_entry(w, &v->collateral[f.v[i].first]);
		ff_jw_close(w, '}');
	}
	ff_jw_close(w, ']');
	folds_finish(&f);
}

static void put_ranks(struct ff_jw *w, const struct ff_verdict *v)
{
	struct folds f = {0};
	struct ff_buf b = {0};
	for (size_t i = 0; i < v->nranks; i++) {
		ff_buf_clear(&b);
		ff_buf_addf(&b, "%d", (int)v->ranks[i].status);
		if (!folded(v)) {
			ff_buf_addf(&b, " %zu", i);
		}
		fold_add(&f, ff_buf_str(&b), i, v->ranks[i].rank);
	}
	ff_buf_finish(&b);
	ff_jw_key(w, "ranks");
	ff_jw_open(w, '[');
	for (size_t i = 0; i < f.n; i++) {
		ff_jw_open(w, '{');
		put_who(w, &f.v[i]);
		ff_jw_kstrz(w, "status", ff_status_name(v->ranks[f.v[i].first].status));
		ff_jw_close(w, '}');
	}
	ff_jw_close(w, ']');
	folds_finish(&f);
}

/* ---- the rest of the object */

static void put_why(struct ff_jw *w, const struct ff_verdict *v)
{
	ff_jw_key(w, "why");
	ff_jw_open(w, '[');
	for (size_t i = 0; i < v->nwhy; i++) {
		ff_jw_open(w, '{');
		ff_jw_kstrz(w, "rule", v->why[i].rule);
		ff_jw_kstrz(w, "text", v->why[i].text);
		put_list(w, "events", v->why[i].events);
		ff_jw_close(w, '}');
	}
	ff_jw_close(w, ']');
	ff_jw_key(w, "why_not");
	ff_jw_open(w, '[');
	for (size_t i = 0; i < v->nwhy_not; i++) {
		ff_jw_open(w, '{');
		put_rank(w, "rank", v->why_not[i].rank);
		ff_jw_kstrz(w, "text", v->why_not[i].text);
		ff_jw_close(w, '}');
	}
	ff_jw_close(w, ']');
}

static void put_attempts(struct ff_jw *w, const struct ff_verdict *v)
{
	ff_jw_key(w, "attempts");
	ff_jw_open(w, '[');
	for (size_t i = 0; i < v->nattempts; i++) {
		const struct ff_attempt *a = &v->attempts[i];
		ff_jw_open(w, '{');
		ff_jw_kint(w, "attempt", a->attempt);
		put_rank(w, "restart_count", a->restart_count);
		ff_jw_kstrz(w, "verdict", ff_verdict_kind_name(a->verdict));
		ff_jw_key(w, "initiating");
		ff_jw_open(w, '[');
		for (size_t j = 0; j < a->ninitiating; j++) {
			ff_jw_int(w, a->initiating[j]);
		}
		ff_jw_close(w, ']');
		put_text_or_null(w, "fault", a->fault);
		ff_jw_close(w, '}');
	}
	ff_jw_close(w, ']');
}

static void put_clock(struct ff_jw *w, const struct ff_verdict *v)
{
	ff_jw_key(w, "clock");
	ff_jw_open(w, '[');
	for (size_t i = 0; i < v->clock.nnodes; i++) {
		const struct ff_node_offset *n = &v->clock.nodes[i];
		ff_jw_open(w, '{');
		ff_jw_kstrz(w, "node", n->node);
		if (n->known) {
			ff_jw_kint(w, "offset_us", n->offset_us);
			ff_jw_kint(w, "bound_us", n->bound_us);
		} else {
			ff_jw_knull(w, "offset_us");
			ff_jw_knull(w, "bound_us");
		}
		ff_jw_close(w, '}');
	}
	ff_jw_close(w, ']');
}

void ff_report_json(const struct ff_verdict *v, struct ff_buf *out)
{
	struct ff_jw jw, *w = &jw;
	const char *catalog[] = {v->catalog, NULL};
	ff_jw_init(w, out);
	ff_jw_open(w, '{');
	ff_jw_kstrz(w, "schema", "firstfault.verdict/1");
	ff_jw_kstrz(w, "job", v->job);
	ff_jw_kstrz(w, "run", v->run);
	put_rank(w, "attempt", v->attempt);
	ff_jw_ktime(w, "as_of", v->as_of);
	put_rank(w, "world_size", v->world_size);
	ff_jw_kstrz(w, "state", ff_run_state_name(v->state));
	ff_jw_kbool(w, "final", v->final);
	ff_jw_kstrz(w, "verdict", ff_verdict_kind_name(v->kind));
	ff_jw_kstrz(w, "confidence", ff_confidence_name(v->confidence));
	put_initiating(w, v);
	ff_jw_kstrz(w, "node", v->node);
	put_fault(w, v);
	ff_jw_kstrz(w, "summary", v->summary);
	ff_jw_kstrz(w, "cause", v->fault ? v->cause : NULL);
	put_list(w, "fix", v->fix);
	put_verify(w, v);
	put_action(w, v);
	ff_jw_knull(w, "operand");
	put_collateral(w, v);
	put_ranks(w, v);
	put_list(w, "missing", v->missing);
	put_why(w, v);
	put_attempts(w, v);
	ff_jw_key(w, "events");
	ff_jw_open(w, '[');
	for (size_t i = 0; i < v->nevents; i++) {
		ff_report_event(v->events[i], w);
	}
	ff_jw_close(w, ']');
	put_clock(w, v);
	ff_jw_kstrz(w, "program", "firstfault " FF_VERSION);
	put_list(w, "catalog", catalog);
	ff_jw_close(w, '}');
}

/* ---- text: pieces */

struct screen {
	const struct ff_verdict *v;
	const struct ff_report_style *style;
	struct ff_buf *out;
	unsigned width;
};

/* Length of the UTF-8 sequence at p that may be shown as it is; 0: to be escaped. */
static size_t showable(const unsigned char *p, size_t n)
{
	uint32_t c;
	size_t len;
	if (p[0] < 0x80) {
		return p[0] >= 0x20 && p[0] != 0x7f;
	}
	if (p[0] >= 0xc2 && p[0] <= 0xdf) {
		len = 2;
		c = p[0] & 0x1fu;
	} else if (p[0] >= 0xe0 && p[0] <= 0xef) {
		len = 3;
		c = p[0] & 0x0fu;
	} else if (p[0] >= 0xf0 && p[0] <= 0xf4) {
		len = 4;
		c = p[0] & 0x07u;
	} else {
		return 0;
	}
	for (size_t i = 1; i < len; i++) {
		if (i >= n || (p[i] & 0xc0) != 0x80) {
			return 0;
		}
		c = c << 6 | (p[i] & 0x3fu);
	}
	bool too_long = (len == 3 && c < 0x800) || (len == 4 && (c < 0x10000 || c > 0x10ffff));
	bool surrogate = c >= 0xd800 && c <= 0xdfff;
	/* C1 controls, marks that turn the reading direction, and line separators */
	bool control = c < 0xa0 || (c >= 0x200b && c <= 0x200f) || (c >= 0x2028 && c <= 0x202e) ||
		(c >= 0x2060 && c <= 0x2069) || c == 0xfeff;
	return too_long || surrogate || control ? 0 : len;
}

/* Adds text in at most `room` columns, controls and bad bytes as \xNN; returns columns used. What
 * does not fit is cut and ends in "..". */
static unsigned put_shown(struct ff_buf *out, struct ff_str s, unsigned room)
{
	unsigned used = 0;
	size_t mark = out->len; /* where ".." can begin: two columns before the end of the room */
	unsigned mark_used = 0;
	for (size_t i = 0; i < s.n;) {
		size_t len = showable((const unsigned char *)s.p + i, s.n - i);
		unsigned cols = len ? 1 : s.p[i] == '\t' ? 1 : 4;
		if (used + cols > room) {
			if (room >= 2) {
				out->len = mark;
				ff_buf_addz(out, "..");
				used = mark_used + 2;
			}
			return used;
		}
		if (len) {
			ff_buf_add(out, s.p + i, len);
		} else if (s.p[i] == '\t') {
			ff_buf_addc(out, ' ');
		} else {
			ff_buf_addf(out, "\\x%02x", (unsigned char)s.p[i]);
		}
		i += len ? len : 1;
		used += cols;
		if (used + 2 <= room) {
			mark = out->len;
			mark_used = used;
		}
	}
	return used;
}

static void put_label(struct screen *s, const char *label)
{
	size_t n = strlen(label);
	ff_buf_addz(s->out, label);
	for (; n < INDENT; n++) {
		ff_buf_addc(s->out, ' ');
	}
}

/* Text behind a label, wrapped at blanks, in at most max lines. */
static void put_para(struct screen *s, const char *label, const char *text, unsigned max)
{
	struct ff_str rest = ff_str_z(text);
	unsigned room = s->width - INDENT;
	for (unsigned line = 0; line < max && (rest.n || !line); line++) {
		put_label(s, line ? "" : label);
		size_t take = rest.n;
		if (rest.n > room && line + 1 < max) {
			take = room;
			while (take > room / 2 && rest.p[take] != ' ') {
				take--;
			}
			take = take > room / 2 ? take : room;
		}
		(void)put_shown(s->out, ff_str_n(rest.p, take), room);
		ff_buf_addc(s->out, '\n');
		rest = ff_str_trim(ff_str_skip(rest, take));
	}
}

static void put_blank(struct screen *s)
{
	ff_buf_addc(s->out, '\n');
}

/* A line of up to three columns: left, middle, right; as far apart as the width allows. */
static void put_columns(struct screen *s, const char *left, const char *mid, const char *right)
{
	struct ff_buf a = {0}, b = {0}, c = {0};
	unsigned nc = put_shown(&c, ff_str_z(right), 24);
	unsigned nb = put_shown(&b, ff_str_z(mid), s->width / 3);
	unsigned room = s->width - nc - nb - 4;
	unsigned na = put_shown(&a, ff_str_z(left), room);
	unsigned gap1 = 2, gap2 = s->width - na - nb - nc - gap1;
	if (!nb) {
		gap1 = 0;
		gap2 = s->width - na - nc;
	} else if (na < 52 && 54 + nb + nc + 2 <= s->width) {
		gap1 = 54 - na;
		gap2 = s->width - na - gap1 - nb - nc;
	}
	if (s->style->color) {
		ff_buf_addz(s->out, "\033[1m");
	}
	ff_buf_adds(s->out, ff_buf_str(&a));
	if (s->style->color) {
		ff_buf_addz(s->out, "\033[0m");
	}
	ff_buf_addf(s->out, "%*s", (int)gap1, "");
	ff_buf_adds(s->out, ff_buf_str(&b));
	ff_buf_addf(s->out, "%*s", (int)gap2, "");
	ff_buf_adds(s->out, ff_buf_str(&c));
	ff_buf_addc(s->out, '\n');
	ff_buf_finish(&a);
	ff_buf_finish(&b);
	ff_buf_finish(&c);
}

/* ---- text: the sections */

static const char *state_word(const struct ff_verdict *v, struct ff_arena *a)
{
	const char *told = ff_facts_state(v->timeline.facts, a);
	switch (v->state) {
	case FF_RUN_RUNNING: return "RUNNING";
	case FF_RUN_STALLED: return "STALLED";
	case FF_RUN_ENDING: return "ENDING";
	case FF_RUN_ENDED: return told && strlen(told) < 24 ? told : "ENDED";
	}
	return "";
}

static void put_title(struct screen *s)
{
	const struct ff_verdict *v = s->v;
	struct ff_arena a = {0};
	struct ff_buf b = {0};
	ff_buf_addf(&b, "%s  ", v->job);
	size_t ranks = v->world_size > 0 ? (size_t)v->world_size : v->nranks;
	ff_buf_addf(&b, ranks == 1 ? "%zu rank" : "%zu ranks", ranks);
	if (v->timeline.nnodes) {
		size_t n = v->timeline.nnodes;
		ff_buf_addf(&b, n == 1 ? ", %zu node" : ", %zu nodes", n);
	}
	ff_buf_addf(&b, "   %s", state_word(v, &a));
	if (v->as_of != FF_TIME_NONE) {
		ff_buf_addc(&b, ' ');
		ff_usec_render_clock(&b, v->as_of, 0);
		ff_usec now = s->style->now_us;
		if (now != FF_TIME_NONE && v->state == FF_RUN_ENDED && now > v->as_of) {
			ff_buf_addz(&b, ", ");
			ff_usec_render_span(&b, now - v->as_of);
			ff_buf_addz(&b, " ago");
		}
	}
	ff_buf_addf(&b, "   run %s, attempt %d", v->run, (int)v->attempt);
	(void)put_shown(s->out, ff_buf_str(&b), s->width);
	ff_buf_addc(s->out, '\n');
	ff_buf_finish(&b);
	ff_arena_finish(&a);
}

static void who_text(const struct ff_verdict *v, struct ff_buf *b)
{
	int32_t some[64];
	size_t n = v->ninitiating < 64 ? v->ninitiating : 64;
	for (size_t i = 0; i < n; i++) {
		some[i] = v->initiating[i].rank;
	}
	ff_buf_addz(b, v->ninitiating == 1 ? "RANK " : "RANKS ");
	add_ranges(b, some, n);
	if (v->ninitiating > n) {
		ff_buf_addz(b, ",...");
	}
}

static void put_verdict(struct screen *s)
{
	const struct ff_verdict *v = s->v;
	struct ff_buf left = {0}, mid = {0}, right = {0};
	const char *title = v->title ? v->title : "no fault known";
	switch (v->kind) {
	case FF_VERDICT_RANK:
		who_text(v, &left);
		ff_buf_addf(&left, "  %s", title);
		if (v->ninitiating == 1 && v->initiating[0].node) {
			ff_buf_addz(&mid, v->initiating[0].node);
			if (v->initiating[0].local_rank != FF_UNKNOWN) {
				ff_buf_addf(
					&mid, ", local rank %d", (int)v->initiating[0].local_rank);
			}
		}
		break;
	case FF_VERDICT_NODE:
		ff_buf_addf(&left, "NODE %s  %s", v->node, title);
		if (v->ninitiating) {
			who_text(v, &mid);
		}
		break;
	case FF_VERDICT_COMMON: ff_buf_addf(&left, "EVERY RANK by itself  %s", title); break;
	case FF_VERDICT_EXTERNAL: ff_buf_addf(&left, "NOT A FAILURE of the job  %s", title); break;
	case FF_VERDICT_CLEAN: ff_buf_addz(&left, "CLEAN  the job ended well"); break;
	case FF_VERDICT_UNDETERMINED:
		ff_buf_addf(&left, "CAN'T TELL who started it  %s", title);
		break;
	}
	const char *c = ff_confidence_name(v->confidence);
	ff_buf_addf(&right, "%s, %s", c ? c : "undetermined", v->final ? "final" : "not final");
	ff_buf_addc(&mid, '\0');
	ff_buf_addc(&left, '\0');
	ff_buf_addc(&right, '\0');
	put_columns(s, left.p, mid.p, right.p);
	ff_buf_finish(&left);
	ff_buf_finish(&mid);
	ff_buf_finish(&right);
	if (v->nwhy) {
		struct ff_buf b = {0};
		ff_buf_addz(&b, v->why[0].text);
		(void)put_shown(s->out, FF_STR("  "), s->width);
		(void)put_shown(s->out, ff_buf_str(&b), s->width - 2);
		ff_buf_addc(s->out, '\n');
		ff_buf_finish(&b);
	}
}

static void put_do_now(struct screen *s)
{
	const struct ff_action *a = &s->v->action;
	struct ff_buf b = {0};
	ff_buf_addf(&b, "%s   [%s", a->text ? a->text : "nothing", ff_action_name(a->kind));
	for (size_t i = 0; a->nodes && a->nodes[i]; i++) {
		ff_buf_addf(&b, "%s%s", i ? "," : " ", a->nodes[i]);
	}
	ff_buf_addz(&b, a->retry ? ", retry]" : "]");
	ff_buf_addc(&b, '\0');
	put_para(s, "DO NOW", b.p, 2);
	ff_buf_finish(&b);
}

static const struct ff_sighting *find_event(const struct ff_verdict *v, const char *id)
{
	for (size_t i = 0; id && i < v->nevents; i++) {
		if (!strcmp(v->events[i]->id, id)) {
			return v->events[i];
		}
	}
	return NULL;
}

static const struct ff_sighting *main_proof(const struct ff_verdict *v)
{
	const struct ff_sighting *s = NULL;
	if (v->ninitiating) {
		s = find_event(v, v->initiating[0].event);
	}
	if (!s && v->nwhy) {
		s = find_event(v, v->why[0].events[0]);
	}
	return s;
}

static void put_evidence(struct screen *s, const struct ff_event *e)
{
	struct ff_str rest = ff_str_n(e->text ? e->text : "", e->text ? e->text_len : 0);
	for (unsigned line = 0; line < 4 && rest.n; line++) {
		ptrdiff_t lf = ff_str_chr(rest, '\n', 0);
		size_t n = lf < 0 ? rest.n : (size_t)lf;
		put_label(s, "");
		ff_buf_addz(s->out, "| ");
		(void)put_shown(s->out, ff_str_n(rest.p, n), s->width - INDENT - 2);
		ff_buf_addc(s->out, '\n');
		rest = ff_str_skip(rest, lf < 0 ? rest.n : n + 1);
	}
	if (e->frame) {
		struct ff_buf b = {0};
		ff_buf_addf(&b, "at %s", e->frame);
		put_label(s, "");
		(void)put_shown(s->out, ff_buf_str(&b), s->width - INDENT);
		ff_buf_addc(s->out, '\n');
		ff_buf_finish(&b);
	}
}

static void put_proof(struct screen *s)
{
	const struct ff_sighting *p = main_proof(s->v);
	if (!p) {
		return;
	}
	struct ff_buf b = {0};
	ff_usec us = ff_stamp_us(p->ev->stamp);
	if (us != FF_TIME_NONE) {
		ff_usec_render_clock(&b, us, 3);
		ff_buf_addz(&b, "  ");
	}
	if (p->rank != FF_UNKNOWN) {
		ff_buf_addf(&b, "rank %d  ", (int)p->rank);
	}
	if (p->stream) {
		ff_buf_addz(&b, p->stream->key);
		if (p->ev->at_line > 0) {
			ff_buf_addf(&b, ":%lld", (long long)p->ev->at_line);
		}
	} else {
		ff_buf_addz(&b, p->id);
		if (p->exit_code != FF_EXIT_UNKNOWN) {
			ff_buf_addf(&b, "  exit code %d", (int)p->exit_code);
		}
	}
	ff_buf_addc(&b, '\0');
	put_para(s, "PROOF", b.p, 1);
	ff_buf_finish(&b);
	put_evidence(s, p->ev);
}

/* Counts of a collateral rank's fault or status, the commonest first. */
struct tally {
	const char *what;
	size_t n;
};

static int by_count(const void *a, const void *b)
{
	const struct tally *x = a, *y = b;
	if (x->n != y->n) {
		return x->n > y->n ? -1 : 1;
	}
	return strcmp(x->what, y->what);
}

static void put_then(struct screen *s)
{
	const struct ff_verdict *v = s->v;
	struct tally *tallies = NULL;
	size_t n = 0, cap = 0;
	ff_usec lo = INT64_MAX, hi = INT64_MIN;
	for (size_t i = 0; i < v->ncollateral; i++) {
		const struct ff_collateral *c = &v->collateral[i];
		const char *what = c->fault && c->status == FF_STATUS_COLLATERAL
			? c->fault
			: ff_status_name(c->status);
		size_t j = 0;
		while (j < n && strcmp(tallies[j].what, what)) {
			j++;
		}
		if (j == n && n < 256) {
			*FF_ARR_ADD(tallies, n, cap) = (struct tally){what, 0};
		}
		tallies[j < n ? j : 0].n++;
		lo = c->has_after && c->after_us < lo ? c->after_us : lo;
		hi = c->has_after && c->after_us > hi ? c->after_us : hi;
	}
	if (!n) {
		free(tallies);
		return;
	}
	qsort(tallies, n, sizeof *tallies, by_count);
	struct ff_buf b = {0};
	ff_buf_addf(&b, v->ncollateral == 1 ? "%zu rank, collateral" : "%zu ranks, collateral",
		v->ncollateral);
	if (lo <= hi && lo >= 0) {
		ff_buf_addz(&b, ", +");
		ff_usec_render_span(&b, lo);
		ff_buf_addz(&b, " to +");
		ff_usec_render_span(&b, hi);
	}
	for (size_t i = 0; i < n && i < 5; i++) {
		ff_buf_addf(&b, "%s%zu %s", i ? ", " : ": ", tallies[i].n, tallies[i].what);
	}
	ff_buf_addc(&b, '\0');
	put_para(s, "THEN", b.p, 2);
	ff_buf_finish(&b);
	free(tallies);
}

static void put_not(struct screen *s)
{
	const struct ff_verdict *v = s->v;
	for (size_t i = 0; i < v->nwhy_not && i < 2; i++) {
		struct ff_buf b = {0};
		if (v->why_not[i].rank != FF_UNKNOWN) {
			ff_buf_addf(&b, "rank %d: ", (int)v->why_not[i].rank);
		}
		ff_buf_addz(&b, v->why_not[i].text);
		ff_buf_addc(&b, '\0');
		put_para(s, i ? "" : "NOT", b.p, 1);
		ff_buf_finish(&b);
	}
}

static void put_catalogue(struct screen *s)
{
	const struct ff_verdict *v = s->v;
	if (!v->fault || (!v->cause && !v->nverify)) {
		return;
	}
	put_blank(s);
	if (v->cause) {
		put_para(s, "CAUSE", v->cause, 2);
	}
	if (v->nverify) {
		put_para(s, "VERIFY", v->verify[0].run, 2); /* cut it could not be run */
		struct ff_buf b = {0};
		ff_buf_addf(&b, "expect %s", v->verify[0].expect);
		ff_buf_addc(&b, '\0');
		put_para(s, "", b.p, 1);
		ff_buf_finish(&b);
	}
}

static void put_seen(struct screen *s)
{
	const struct ff_verdict *v = s->v;
	size_t heard = 0, to_end = 0;
	for (size_t i = 0; i < v->timeline.nranks; i++) {
		heard += v->timeline.ranks[i].own_stream;
		to_end += v->timeline.ranks[i].own_stream && v->timeline.ranks[i].stderr_to_end;
	}
	struct ff_buf b = {0};
	if (v->world_size > 0) {
		ff_buf_addf(
			&b, "%zu of %d ranks, %zu to their end", heard, (int)v->world_size, to_end);
	} else {
		ff_buf_addf(&b, "%zu rank%s, %zu to %s end (world size not told)", heard,
			heard == 1 ? "" : "s", to_end, heard == 1 ? "its" : "their");
	}
	size_t streams = v->timeline.nstreams;
	ff_buf_addf(&b, "; %zu %s%s", streams, streams == 1 ? "stream" : "streams",
		ff_facts_ended(v->timeline.facts) ? ", job end" : "");
	ff_buf_addc(&b, '\0');
	put_para(s, "SEEN", b.p, 1);
	ff_buf_finish(&b);
	for (size_t i = 0; v->missing[i] && i < 3; i++) {
		put_para(s, i ? "" : "MISSING", v->missing[i], 1);
	}
}

static void put_next(struct screen *s)
{
	struct ff_buf b = {0};
	put_blank(s);
	if (s->v->timeline.ask.offline) {
		ff_buf_addz(&b, "next: analyze --json PATH (every event, stamp and file)");
	} else {
		const char *job = s->v->job;
		ff_buf_addf(&b, "next: events %s | logs %s --around first | why %s --json | jobs",
			job, job, job);
	}
	(void)put_shown(s->out, ff_buf_str(&b), s->width);
	ff_buf_addc(s->out, '\n');
	ff_buf_finish(&b);
}

void ff_report_text(
	const struct ff_verdict *v, const struct ff_report_style *style, struct ff_buf *out)
{
	struct screen s = {v, style, out, style->width < 60 ? 60 : style->width};
	put_title(&s);
	put_blank(&s);
	put_verdict(&s);
	put_do_now(&s);
	if (style->brief) {
		return;
	}
	if (main_proof(v)) {
		put_blank(&s);
	}
	put_proof(&s);
	put_then(&s);
	put_not(&s);
	put_catalogue(&s);
	put_blank(&s);
	put_seen(&s);
	put_next(&s);
}
