#include "answer.h"
#include "api.h"
#include "api_kept.h"

#include "base/mem.h"
#include "clock.h"
#include "core/report_cursor.h"

#include <stdlib.h>

#define PAGE 200 /* items of a list unless `limit` says so */
#define PAGE_MAX 10000
#define WIDTH 100

/* ---- one job */

static void put_facts(struct ff_jw *w, const struct ff_facts *f)
{
	ff_jw_key(w, "facts");
	ff_jw_open(w, '{');
	for (size_t i = 0; i < f->ncontrols; i++) {
		const struct ff_control *c = f->controls[i];
		if (strncmp(c->id, "job@", 4) != 0) {
			continue; /* of each rank: see `ranks` */
		}
		ff_jw_key(w, c->id);
		ff_jw_open(w, '{');
		for (size_t k = 0; k < c->nvalues; k++) {
			ff_jw_kstrz(w, c->values[k].key, c->values[k].value);
		}
		ff_jw_close(w, '}');
	}
	ff_jw_close(w, '}');
}

static void put_counters(struct ff_jw *w, const struct ff_job *job)
{
	ff_jw_key(w, "counters");
	ff_jw_open(w, '{');
	for (int c = 0; c < FF_COUNT_COUNT; c++) {
		if (job->counts[c]) {
			ff_jw_kint(w, ff_count_name((enum ff_count)c), (int64_t)job->counts[c]);
		}
	}
	ff_jw_close(w, '}');
}

void api_jobs_owner(struct ff_jw *w, const struct ff_run *run)
{
	const struct run_state *rs = run->user;
	if (rs && rs->owner >= 0) {
		ff_jw_kint(w, "owner", rs->owner);
	} else {
		ff_jw_knull(w, "owner");
	}
}

void api_jobs_one(struct request *r)
{
	struct ff_run *run = request_run(r, 2, false);
	if (!run) {
		return;
	}
	const struct answer_short *a = answer_short(r->d, run);
	const struct run_state *rs = run->user;
	struct ff_buf out = {0};
	struct ff_jw w;
	ff_jw_init(&w, &out);
	ff_jw_open(&w, '{');
	ff_jw_kstrz(&w, "schema", "firstfault.job/1");
	ff_buf_addc(&out, ',');
	ff_buf_adds(&out, ff_buf_str(&a->item));
	ff_jw_kint(&w, "version", run->version);
	ff_jw_ktime(&w, "begun", run->begun_us);
	ff_jw_ktime(&w, "ended", run->ended_us);
	api_jobs_owner(&w, run);
	ff_jw_kint(&w, "streams", (int64_t)run->job->nstreams);
	ff_jw_kint(&w, "segments_dropped", (int64_t)rs->segments_dropped);
	put_facts(&w, &run->job->facts);
	put_counters(&w, run->job);
	ff_jw_close(&w, '}');
	ff_buf_addc(&out, '\n');
	r->version = run->version;
	request_json(r, 200, &out);
}

/* ---- verdict */

/* As the screen, or as a report for a ticket (format=txt, md). False: as JSON. */
static bool render_text(
	const struct request *r, const struct ff_verdict *v, int64_t width, struct ff_buf *out)
{
	char *format = request_query(r, "format");
	enum ff_ticket form;
	bool ticket = format && ff_ticket_parse(ff_str_z(format), &form);
	bool text = format ? !strcmp(format, "text") : r->wants_text;
	free(format);
	if (ticket) {
		ff_report_ticket(v, form, clock_wall(), out);
	}
	if (ticket || !text) {
		return ticket;
	}
	ff_report_text(v,
		&(struct ff_report_style){
			.width = (unsigned)width,
			.color = request_flag(r, "color"),
			.now_us = clock_wall(),
			.brief = request_flag(r, "brief"),
		},
		out);
	return true;
}

void api_jobs_verdict(struct request *r)
{
	struct ff_run *run = request_run(r, 2, false);
	int64_t attempt, width;
	if (!run || !request_number(r, "attempt", 0, INT32_MAX, FF_UNKNOWN, &attempt) ||
		!request_number(r, "width", 20, 1000, WIDTH, &width) ||
		api_kept_answer(r, run)) {
		return;
	}
	if (attempt != FF_UNKNOWN) {
		answer_update(r->d, run);
	}
	struct ff_verdict *v = answer_judge(r->d, run, (int32_t)attempt);
	struct ff_buf out = {0};
	if (attempt >= v->timeline.nattempts) {
		request_problem(r, 404, "the run has no attempt %d, the last is %d", (int)attempt,
			(int)v->timeline.nattempts - 1);
		ff_verdict_destroy(v);
		return;
	}
	v->unfolded = request_flag(r, "full");
	r->version = run->version;
	if (render_text(r, v, width, &out)) {
		request_text(r, 200, &out);
	} else {
		ff_report_json(v, &out);
		ff_buf_addc(&out, '\n');
		request_json(r, 200, &out);
		api_kept_put(r, run, v);
	}
	ff_verdict_destroy(v);
}

/* ---- events */

/* The event as a verdict has it, and what the timeline worked out; number is its place in the list
 * of all, from 1: what `logs?around=` takes. */
static void put_event(struct ff_jw *w, const struct ff_sighting *s, size_t number)
{
	ff_report_event(s, w);
	w->out->len--; /* its brace: members go behind */
	ff_buf_addf(w->out, ",\"number\":%zu,", number);
	if (s->rank == FF_UNKNOWN) {
		ff_buf_addz(w->out, "\"rank\":null,");
	} else {
		ff_buf_addf(w->out, "\"rank\":%d,", s->rank);
	}
	ff_buf_addf(w->out, "\"attempt\":%d,\"node\":", s->attempt);
	struct ff_jw node;
	ff_jw_init(&node, w->out);
	ff_jw_strz(&node, s->node);
	ff_buf_addf(w->out, ",\"provisional\":%s}", s->provisional ? "true" : "false");
}

static bool is_wanted(const struct ff_sighting *s, int64_t rank, const char *role)
{
	return (rank == FF_UNKNOWN || s->rank == rank) &&
		(!role || !strcmp(role, ff_role_name(s->ev->role)));
}

static void list_events(struct request *r, const struct ff_verdict *v, int64_t rank,
	const char *role, int64_t limit, size_t from)
{
	struct ff_buf out = {0}, next = {0};
	struct ff_jw w;
	request_list_open(&w, &out, "firstfault.events/1");
	size_t i = from;
	for (; i < v->timeline.nall && limit > 0; i++) {
		const struct ff_sighting *s = &v->timeline.all[i];
		if (is_wanted(s, rank, role)) {
			put_event(&w, s, i + 1);
			limit--;
		}
	}
	if (i < v->timeline.nall) {
		ff_report_cursor_event(v, i, &next);
	}
	request_list_close(&w, next.p);
	request_json(r, 200, &out);
	ff_buf_finish(&next);
}

void api_jobs_events(struct request *r)
{
	struct ff_run *run = request_run(r, 2, false);
	int64_t limit, rank;
	if (!run || !request_number(r, "limit", 1, PAGE_MAX, PAGE, &limit) ||
		!request_number(r, "rank", 0, FF_RANKS_MAX - 1, FF_UNKNOWN, &rank)) {
		return;
	}
	char *role = request_query(r, "role"), *cursor = request_query(r, "cursor");
	struct ff_verdict *v = answer_judge(r->d, run, FF_UNKNOWN);
	size_t from = 0;
	if (role && ff_role_parse(ff_str_z(role)) < 0) {
		request_problem(r, 400,
			"no role \"%s\": it is primary, secondary, teardown, noise or context",
			role);
	} else if (cursor && !ff_report_cursor_find_event(v, ff_str_z(cursor), &from)) {
		request_problem(r, 400, "the cursor can't be read");
	} else {
		list_events(r, v, rank, role, limit, from);
	}
	ff_verdict_destroy(v);
	free(role);
	free(cursor);
}
