#include "answer.h"
#include "api.h"

#include "base/mem.h"
#include "clock.h"
#include "core/report.h"

#include <stdio.h>
#include <stdlib.h>

#define PAGE 200 /* items of a list unless `limit` says so */
#define PAGE_MAX 10000
#define WIDTH 100

/* ---- lists of jobs */

struct filter {
	char *state, *fault, *node, *since;
	ff_usec since_us;
};

static void filter_finish(struct filter *f)
{
	free(f->state);
	free(f->fault);
	free(f->node);
	free(f->since);
}

static bool filter_read(struct request *r, struct filter *f)
{
	f->state = request_query(r, "state");
	f->fault = request_query(r, "fault");
	f->node = request_query(r, "node");
	f->since = request_query(r, "since");
	f->since_us = FF_TIME_NONE;
	if (f->since && !ff_usec_rfc3339(ff_str_z(f->since), &f->since_us)) {
		request_problem(r, 400, "since is a time as in RFC 3339");
		return false;
	}
	return true;
}

static bool has_node(const struct ff_run *run, const struct answer_short *a, const char *node)
{
	if (a->node && !strcmp(a->node, node)) {
		return true;
	}
	for (size_t i = 0; i < run->job->nstreams; i++) {
		const char *of = run->job->streams[i]->origin.node;
		if (of && !strcmp(of, node)) {
			return true;
		}
	}
	return false;
}

static bool does_fit(const struct filter *f, const struct ff_run *run, const struct answer_short *a)
{
	ff_usec changed = a->as_of > run->ended_us ? a->as_of : run->ended_us;
	changed = changed > run->begun_us ? changed : run->begun_us;
	return (!f->state || !strcmp(f->state, a->state)) &&
		(!f->fault || (a->fault && !strcmp(f->fault, a->fault))) &&
		(!f->node || has_node(run, a, f->node)) &&
		(f->since_us == FF_TIME_NONE || changed > f->since_us);
}

/* Another user's job: that it exists. */
static void put_closed(struct ff_jw *w, const struct ff_run *run)
{
	static const char *const keys[] = {"state", "final", "verdict", "confidence", "world_size"};
	ff_jw_open(w, '{');
	ff_jw_kstrz(w, "job", run->job->facts.job);
	ff_jw_kstrz(w, "run", run->job->facts.run);
	for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
		ff_jw_knull(w, keys[i]);
	}
	ff_jw_key(w, "initiating");
	ff_jw_open(w, '[');
	ff_jw_close(w, ']');
	ff_jw_knull(w, "fault");
	ff_jw_knull(w, "node");
	ff_jw_knull(w, "summary");
	ff_jw_knull(w, "as_of");
	ff_jw_close(w, '}');
}

static void put_item(struct ff_jw *w, const struct ff_buf *item)
{
	ff_jw_open(w, '{');
	ff_buf_adds(w->out, ff_buf_str(item));
	ff_jw_close(w, '}');
}

/* Newest first; the cursor is the number of the last run shown. */
void api_jobs_list(struct request *r)
{
	int64_t limit, cursor;
	struct filter f = {0};
	char next[24] = "";
	if (!request_number(r, "limit", 1, PAGE_MAX, PAGE, &limit) ||
		!request_number(r, "cursor", 1, UINT32_MAX, UINT32_MAX, &cursor) ||
		!filter_read(r, &f)) {
		filter_finish(&f);
		return;
	}
	struct ff_buf out = {0};
	struct ff_jw w;
	request_list_open(&w, &out, "firstfault.jobs/1");
	size_t i = ff_runs_below(&r->d->runs, (uint32_t)cursor);
	for (; i > 0 && limit > 0; i--) {
		struct ff_run *run = r->d->runs.runs[i - 1];
		bool may = request_may(r, run);
		const struct answer_short *a = may ? answer_short(r->d, run) : NULL;
		if (may ? !does_fit(&f, run, a) : f.state || f.fault || f.node || f.since) {
			continue;
		}
		if (may) {
			put_item(&w, &a->item);
		} else {
			put_closed(&w, run);
		}
		limit--;
	}
	if (i > 0) {
		(void)snprintf(next, sizeof next, "%u", r->d->runs.runs[i]->number);
	}
	request_list_close(&w, *next ? next : NULL);
	request_json(r, 200, &out);
	filter_finish(&f);
}

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
	if (rs->owner < 0) {
		ff_jw_knull(&w, "owner");
	} else {
		ff_jw_kint(&w, "owner", rs->owner);
	}
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
		!request_number(r, "width", 20, 1000, WIDTH, &width)) {
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
	const char *role, int64_t limit, size_t cursor)
{
	char next[24] = "";
	struct ff_buf out = {0};
	struct ff_jw w;
	request_list_open(&w, &out, "firstfault.events/1");
	size_t i = cursor;
	for (; i < v->timeline.nall && limit > 0; i++) {
		const struct ff_sighting *s = &v->timeline.all[i];
		if (is_wanted(s, rank, role)) {
			put_event(&w, s, i + 1);
			limit--;
		}
	}
	if (i < v->timeline.nall) {
		(void)snprintf(next, sizeof next, "%zu", i);
	}
	request_list_close(&w, *next ? next : NULL);
	request_json(r, 200, &out);
}

void api_jobs_events(struct request *r)
{
	struct ff_run *run = request_run(r, 2, false);
	int64_t limit, cursor, rank;
	if (!run || !request_number(r, "limit", 1, PAGE_MAX, PAGE, &limit) ||
		!request_number(r, "cursor", 0, INT32_MAX, 0, &cursor) ||
		!request_number(r, "rank", 0, FF_RANKS_MAX - 1, FF_UNKNOWN, &rank)) {
		return;
	}
	char *role = request_query(r, "role");
	if (role && ff_role_parse(ff_str_z(role)) < 0) {
		request_problem(r, 400, "role is primary, secondary, teardown, noise or context");
	} else {
		struct ff_verdict *v = answer_judge(r->d, run, FF_UNKNOWN);
		list_events(r, v, rank, role, limit, (size_t)cursor);
		ff_verdict_destroy(v);
	}
	free(role);
}
