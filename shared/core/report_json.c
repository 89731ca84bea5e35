#include "core/report.h"
#include "base/arr.h"
#include "core/report_own.h"

#include <stdlib.h>

#define FOLD_ABOVE 4096 /* ranks; then equal entries are folded (shared/README.md 6.5) */

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

static void put_who(struct ff_jw *w, const struct fold *g)
{
	if (g->n == 1) {
		put_rank(w, "rank", g->ranks[0]);
		return;
	}
	struct ff_buf b = {0};
	ff_report_ranges(&b, g->ranks, g->n, 0);
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
	put_list(w, "catalog", v->catalog);
	ff_jw_close(w, '}');
}
