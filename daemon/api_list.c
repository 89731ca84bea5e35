#include "answer.h"
#include "api.h"

#include "base/mem.h"
#include "clock.h"

#include <stdio.h>
#include <stdlib.h>

#define PAGE 200 /* items unless `limit` says so */
#define PAGE_MAX 10000
#define SLICE_US 20000 /* of judging at a time; then the loop goes on */

struct filter {
	char *state, *fault, *node, *user, *since;
	ff_usec since_us;
};

/* A list that is being made. */
struct listing {
	struct filter filter;
	int64_t left;    /* items that still fit */
	uint32_t before; /* number of the last run that was looked at */
	struct ff_buf out;
	struct ff_jw w;
};

void api_list_orphan(struct request *r)
{
	struct listing *l = r->listing;
	if (l) {
		free(l->filter.state);
		free(l->filter.fault);
		free(l->filter.node);
		free(l->filter.user);
		free(l->filter.since);
		ff_buf_finish(&l->out);
		free(l);
		r->listing = NULL;
	}
}

static bool is_state(const char *name)
{
	static const enum ff_run_state all[] = {
		FF_RUN_RUNNING, FF_RUN_STALLED, FF_RUN_ENDING, FF_RUN_ENDED};
	bool is = false;
	for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
		is = is || !strcmp(name, ff_run_state_name(all[i]));
	}
	return is;
}

static bool filter_read(struct request *r, struct filter *f)
{
	f->state = request_query(r, "state");
	f->fault = request_query(r, "fault");
	f->node = request_query(r, "node");
	f->user = request_query(r, "user");
	f->since = request_query(r, "since");
	f->since_us = FF_TIME_NONE;
	if (f->state && !is_state(f->state)) {
		request_problem(r, 400,
			"no state \"%s\": it is running, stalled, ending or ended", f->state);
		return false;
	}
	if (f->since && !ff_usec_rfc3339(ff_str_z(f->since), &f->since_us)) {
		request_problem(r, 400,
			"since: \"%s\" is no time as in RFC 3339, such as 2026-01-01T00:00:00Z",
			f->since);
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

/* The name that its job-start gave, or the uid that owns it. Names of uids are not looked up: that
 * may wait for a network. */
static bool is_of_user(const struct ff_run *run, const char *user)
{
	const struct run_state *rs = run->user;
	const struct ff_control *start = ff_facts_control(&run->job->facts, "job@start");
	const char *told = start ? ff_control_get(start, "user") : NULL;
	int64_t uid;
	return (told && !strcmp(told, user)) ||
		(rs && rs->owner >= 0 && ff_str_int(ff_str_z(user), &uid) && uid == rs->owner);
}

/* What can be told without a verdict. */
static bool may_fit(const struct filter *f, const struct ff_run *run)
{
	return !f->user || is_of_user(run, f->user);
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
	ff_jw_knull(w, "heard");
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

static bool put_run(struct listing *l, struct request *r, struct ff_run *run)
{
	const struct filter *f = &l->filter;
	if (!request_may(r, run)) {
		bool all = !f->state && !f->fault && !f->node && !f->user && !f->since;
		if (all) {
			put_closed(&l->w, run);
		}
		return all;
	}
	const struct answer_short *a = may_fit(f, run) ? answer_short(r->d, run) : NULL;
	if (!a || !does_fit(f, run, a)) {
		return false;
	}
	const struct run_state *rs = run->user;
	ff_jw_open(&l->w, '{');
	if (rs && rs->heard_at) {
		ff_jw_ktime(&l->w, "heard", rs->heard_at);
	} else {
		ff_jw_knull(&l->w, "heard");
	}
	ff_buf_addc(l->w.out, ',');
	ff_buf_adds(l->w.out, ff_buf_str(&a->item));
	ff_jw_close(&l->w, '}');
	return true;
}

/* The newest run below a number. */
static struct ff_run *find_before(const struct ff_runs *runs, uint32_t number)
{
	size_t n = ff_runs_below(runs, number);
	return n ? runs->runs[n - 1] : NULL;
}

static void finish(struct request *r, bool more)
{
	struct listing *l = r->listing;
	char next[24];
	(void)snprintf(next, sizeof next, "%u", l->before);
	request_list_close(&l->w, more ? next : NULL);
	request_json(r, 200, &l->out);
	api_list_orphan(r);
}

static void go_on(struct request *r)
{
	struct listing *l = r->listing;
	ff_usec began = clock_mono();
	struct ff_run *run = find_before(&r->d->runs, l->before);
	for (; run && l->left; run = find_before(&r->d->runs, l->before)) {
		if (clock_mono() - began > SLICE_US) {
			api_later(r, go_on);
			return;
		}
		l->left -= put_run(l, r, run);
		l->before = run->number;
	}
	finish(r, run != NULL);
}

/* Newest first; the cursor is the number of the last run that was looked at. */
void api_list_jobs(struct request *r)
{
	int64_t limit, cursor;
	struct listing *l = ff_xcalloc(1, sizeof *l);
	r->listing = l;
	if (!request_number(r, "limit", 1, PAGE_MAX, PAGE, &limit) ||
		!request_number(r, "cursor", 1, UINT32_MAX, UINT32_MAX, &cursor) ||
		!filter_read(r, &l->filter)) {
		api_list_orphan(r);
		return;
	}
	l->left = limit;
	l->before = (uint32_t)cursor;
	request_list_open(&l->w, &l->out, "firstfault.jobs/1");
	go_on(r);
}
