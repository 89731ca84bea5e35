#include "answer.h"
#include "api.h"

#include "base/limits.h"
#include "base/mem.h"
#include "clock.h"
#include "core/report.h"
#include "feed/intake.h"
#include "feed/tell.h"
#include "feeder.h"
#include "tail.h"

#include <stdlib.h>

#define WAIT_DEFAULT (5 * FF_SECOND)
#define WAIT_MAX (60 * FF_SECOND)

/* The body's object; NULL: a problem was answered. An empty body is an empty object. */
static struct ff_json *read_body(struct request *r)
{
	struct ff_err err = {0};
	struct ff_str text = r->body.len ? ff_buf_str(&r->body) : FF_STR("{}");
	struct ff_json *doc = ff_json_parse(text, &err);
	if (!doc) {
		request_problem(r, 400, "the body is no JSON: %s", err.text);
		return NULL;
	}
	if (!ff_json_is_object(ff_json_root(doc))) {
		request_problem(r, 400, "the body is no JSON object");
		ff_json_destroy(doc);
		return NULL;
	}
	return doc;
}

/* Would these values be taken? Told to a run that nobody knows: a bad body leaves nothing. */
static bool check_body(struct request *r, const char *name, const struct ff_json_node *doc)
{
	struct ff_err err = {0};
	struct ff_run scratch = {
		.job = ff_job_create(r->d->catalog, FF_STR("check"), FF_STR("0")),
	};
	int e = ff_intake_control(&scratch, name, doc, &err);
	ff_job_destroy(scratch.job);
	if (e < 0) {
		request_problem(r, 422, "%s", err.text);
	}
	return e >= 0;
}

/* What the body names as its run, if it does. */
static bool named_run(const struct ff_json_node *doc, struct ff_str *ret)
{
	const char *run = ff_json_string(ff_json_get(doc, "run"));
	*ret = ff_str_z(run);
	return run != NULL;
}

/* The job's name without ~N or /RUN. */
static struct ff_str job_name(const struct request *r)
{
	return ff_str_n(r->parts[2], strcspn(r->parts[2], "~/"));
}

static struct ff_run *make_run(
	struct request *r, const struct ff_json_node *doc, enum ff_run_cause cause)
{
	struct ff_err err = {0};
	struct ff_str name;
	bool named = named_run(doc, &name);
	struct ff_run *run = NULL;
	if (!access_may_job(&r->who, &r->d->runs, r->parts[2])) { /* nor a further run of it */
		request_problem(r, 403, "job \"%s\" belongs to another user", r->parts[2]);
		return NULL;
	}
	int e = ff_runs_resolve_for(&r->d->runs, r->who.admin ? FF_RUNS_ANYBODY : r->who.uid,
		ff_str_z(r->parts[2]), named ? &name : NULL, NULL, cause, clock_wall(), &run, &err);
	if (e < 0) {
		request_problem(r, e == FF_ELIMIT ? 503 : 422, "%s", err.text);
		return NULL;
	}
	return run;
}

static bool claim(struct request *r, struct ff_run *run)
{
	struct run_state *rs = ledger_run(r->d->ledger, run);
	if (!request_may(r, run)) {
		request_problem(r, 403, "job \"%s\" belongs to another user", run->job->facts.job);
		return false;
	}
	access_claim(&r->who, run, rs);
	return true;
}

static void start(struct request *r, const struct ff_json_node *doc)
{
	int64_t uid;
	struct ff_run *run = make_run(r, doc, FF_RUN_START);
	if (!run || !claim(r, run)) {
		return;
	}
	(void)ff_intake_control(run, "job-start", doc, NULL);
	if (ff_tell_owner("job-start", doc, &uid) &&
		!feeder_name(r->d, &r->who, uid, run)) {
		run->job->counts[FF_COUNT_bad_values]++;
	}
	ledger_changed(r->d->ledger, run);
	api_wait(r, run, false, 0);
}

void api_post_start(struct request *r)
{
	struct ff_json *doc = read_body(r);
	if (doc && check_body(r, "job-start", ff_json_root(doc))) {
		start(r, ff_json_root(doc));
	}
	ff_json_destroy(doc);
}

/* "5s", "500ms", "1m", a bare number is seconds. */
static bool read_wait(struct request *r, ff_usec *ret)
{
	char *text = request_query(r, "wait");
	struct ff_str s = ff_str_z(text);
	int64_t n = 0;
	size_t digits = ff_str_digits(s, &n);
	struct ff_str unit = ff_str_skip(s, digits);
	int64_t scale = ff_str_eqz(unit, "ms")     ? 1000
		: ff_str_eqz(unit, "s") || !unit.n ? FF_SECOND
		: ff_str_eqz(unit, "m")            ? 60 * FF_SECOND
						   : 0;
	bool good = !text || (digits && scale && n <= WAIT_MAX / scale);
	if (good) {
		*ret = text ? n * scale : WAIT_DEFAULT;
	} else {
		request_problem(r, 400, "wait is a span from 0 to 60s, as in 5s or 500ms");
	}
	free(text);
	return good;
}

static bool may_create(const struct request *r)
{
	char *text = request_query(r, "create");
	bool yes = text && strcmp(text, "0") != 0;
	free(text);
	return yes;
}

/* The run that has ended; NULL: a problem was answered. */
static struct ff_run *find_ended(struct request *r, const struct ff_json_node *doc)
{
	struct ff_str name;
	struct ff_buf full = {0};
	ff_buf_adds(&full, job_name(r));
	bool known = ff_map_get(&r->d->runs.latest, ff_buf_str(&full)) != NULL;
	struct ff_run *run = NULL;
	if (known && named_run(doc, &name)) {
		ff_buf_addc(&full, '/');
		ff_buf_adds(&full, name);
		run = ff_runs_find(&r->d->runs, ff_buf_str(&full), NULL);
	} else if (known) {
		run = ff_runs_find(&r->d->runs, ff_str_z(r->parts[2]), NULL);
	}
	ff_buf_finish(&full);
	if (!run && may_create(r)) {
		return make_run(r, doc, FF_RUN_FEED);
	}
	if (!run) {
		r->d->counts[DAEMON_COUNT_unknown_jobs]++;
		request_problem(r, 404,
			"no job \"%s\" is known; --create (?create=1) makes it known", r->parts[2]);
	}
	return run;
}

static void end(struct request *r, const struct ff_json_node *doc, ff_usec wait_us)
{
	struct ff_run *run = find_ended(r, doc);
	if (!run || !claim(r, run)) {
		return;
	}
	(void)ff_intake_control(run, "job-end", doc, NULL);
	ff_facts_know(&run->job->facts, "job@end");
	if (run->ended_us == FF_TIME_NONE) {
		run->ended_us = clock_wall();
		run->dirty = true;
	}
	ledger_run(r->d->ledger, run)->looked = true; /* by the next line */
	tail_look(r->d->tail, run);
	ledger_changed(r->d->ledger, run);
	api_wait(r, run, true, wait_us);
}

void api_post_end(struct request *r)
{
	ff_usec wait_us;
	if (!read_wait(r, &wait_us)) {
		return;
	}
	struct ff_json *doc = read_body(r);
	if (doc && check_body(r, "job-end", ff_json_root(doc))) {
		end(r, ff_json_root(doc), wait_us);
	}
	ff_json_destroy(doc);
}

static void answer_start(struct request *r)
{
	struct ff_buf out = {0};
	struct ff_jw w;
	ff_jw_init(&w, &out);
	ff_jw_open(&w, '{');
	ff_jw_kstrz(&w, "schema", "firstfault.job/1");
	ff_jw_kstrz(&w, "job", r->run->job->facts.job);
	ff_jw_kstrz(&w, "run", r->run->job->facts.run);
	api_jobs_owner(&w, r->run);
	ff_jw_close(&w, '}');
	ff_buf_addc(&out, '\n');
	request_json(r, 200, &out);
}

void api_post_answer(struct request *r, bool stored)
{
	if (!stored) {
		request_problem(r, 503, "the store does not take it: see status");
		return;
	}
	if (!r->end) {
		answer_start(r);
		return;
	}
	struct ff_verdict *v = answer_judge(r->d, r->run, FF_UNKNOWN);
	struct ff_buf out = {0};
	ff_buf_addf(&out, "{\"version\":%u,\"verdict\":", r->run->version);
	ff_report_json(v, &out);
	ff_buf_addz(&out, "}\n");
	ff_verdict_destroy(v);
	r->version = r->run->version;
	request_json(r, 200, &out);
}
