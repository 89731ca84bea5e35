#include "feed/runs.h"

#include "base/arr.h"
#include "base/limits.h"
#include "core/reach.h"
#include "feed/nodes.h"

#include <stdio.h>
#include <stdlib.h>

#define LIVE_AFTER (600 * FF_SECOND) /* a live source this long after the end begins a run */

void ff_runs_init(struct ff_runs *r, const struct ff_catalog *catalog)
{
	*r = (struct ff_runs){.catalog = catalog};
}

static void run_destroy(struct ff_run *run)
{
	ff_node_destroy(run->node);
	ff_reach_destroy(run->reach);
	ff_map_finish(&run->claims);
	ff_job_destroy(run->job);
	free(run);
}

void ff_runs_finish(struct ff_runs *r)
{
	if (!r) {
		return;
	}
	for (size_t i = 0; i < r->nruns; i++) {
		run_destroy(r->runs[i]);
	}
	for (size_t i = 0; i < r->nnodes; i++) {
		run_destroy(r->nodes[i]);
	}
	free(r->runs);
	free(r->nodes);
	ff_map_finish(&r->node_by_name);
	ff_map_finish(&r->by_name);
	ff_map_finish(&r->latest);
	ff_map_finish(&r->sources);
	*r = (struct ff_runs){0};
}

int ff_runs_check_name(struct ff_str name, const char *what, struct ff_err *err)
{
	if (!name.n || ff_str_eqz(name, "none") || ff_str_eqz(name, "-")) {
		return ff_err_set(err, FF_ENAME, "\"%.*s\" is no %s that can be told apart",
				  FF_STR_ARG(name), what);
	}
	if (name.n > FF_JOB_ID_MAX) {
		return ff_err_set(err, FF_ENAME, "a %s has at most %u bytes, this one has %zu",
			what, FF_JOB_ID_MAX, name.n);
	}
	for (size_t i = 0; i < name.n; i++) {
		unsigned char c = (unsigned char)name.p[i];
		if (c < 0x20 || c == 0x7f || c == '/' || c == '~') {
			return ff_err_set(err, FF_ENAME,
				"a %s has no control characters, no \"/\" and no \"~\"", what);
		}
	}
	if (ff_str_eqz(name, ".") || ff_str_eqz(name, "..")) {
		return ff_err_set(err, FF_ENAME, "\"%.*s\" is no %s", FF_STR_ARG(name), what);
	}
	return 0;
}

/* a NUL b */
static struct ff_str pair_key(struct ff_buf *b, struct ff_str a, struct ff_str c)
{
	ff_buf_clear(b);
	ff_buf_adds(b, a);
	ff_buf_addc(b, '\0');
	ff_buf_adds(b, c);
	return ff_buf_str(b);
}

static struct ff_run *find_name(const struct ff_runs *r, struct ff_str job, struct ff_str run)
{
	struct ff_buf key = {0};
	struct ff_run *found = ff_map_get(&r->by_name, pair_key(&key, job, run));
	ff_buf_finish(&key);
	return found;
}

static struct ff_run *make(struct ff_runs *r, struct ff_str job, struct ff_str run, uint32_t number)
{
	struct ff_buf key = {0};
	struct ff_run *n = ff_xcalloc(1, sizeof *n);
	n->job = ff_job_create(r->catalog, job, run);
	n->mask = r->mask;
	n->number = number;
	n->begun_us = FF_TIME_NONE;
	n->ended_us = FF_TIME_NONE;
	*FF_ARR_ADD(r->runs, r->nruns, r->cruns) = n;
	r->last_number = number > r->last_number ? number : r->last_number;
	(void)ff_map_put(&r->by_name, pair_key(&key, job, run), n);
	(void)ff_map_put(&r->latest, job, n);
	ff_buf_finish(&key);
	return n;
}

static bool is_open(const struct ff_run *run)
{
	return run->ended_us == FF_TIME_NONE && !ff_facts_ended(&run->job->facts);
}

/* The cap is one of open runs: ended ones are history. They are counted only when it may be due. */
static bool is_full(const struct ff_runs *r)
{
	size_t open = 0;
	if (r->nruns < FF_RUNS_MAX) {
		return false;
	}
	for (size_t i = 0; i < r->nruns; i++) {
		open += is_open(r->runs[i]);
	}
	return open >= FF_RUNS_MAX;
}

/* Has this user as many open ones as he may? */
static bool has_share(const struct ff_runs *r, int64_t uid)
{
	size_t open = 0;
	if (r->nruns < FF_RUNS_USER || uid == FF_RUNS_ANYBODY || !r->owner) {
		return false;
	}
	for (size_t i = 0; i < r->nruns; i++) {
		open += r->owner(r->runs[i]) == uid && is_open(r->runs[i]);
	}
	return open >= FF_RUNS_USER;
}

static int begin(struct ff_runs *r, int64_t uid, struct ff_str job, struct ff_str run,
	ff_usec now_us, struct ff_run **ret, struct ff_err *err)
{
	if (has_share(r, uid)) {
		r->counts[FF_COUNT_runs_refused]++;
		return ff_err_set(err, FF_ELIMIT, "this user has %u open runs", FF_RUNS_USER);
	}
	if (is_full(r)) {
		r->counts[FF_COUNT_runs_refused]++;
		return ff_err_set(err, FF_ELIMIT, "there are %u open runs", FF_RUNS_MAX);
	}
	struct ff_run *n = make(r, job, run, r->last_number + 1);
	n->begun_us = now_us;
	n->dirty = true;
	*ret = n;
	return 0;
}

size_t ff_runs_below(const struct ff_runs *r, uint32_t number)
{
	size_t low = 0, high = r->nruns;
	while (low < high) {
		size_t middle = low + (high - low) / 2;
		if (r->runs[middle]->number < number) {
			low = middle + 1;
		} else {
			high = middle;
		}
	}
	return low;
}

struct ff_run *ff_runs_number(const struct ff_runs *r, uint32_t number)
{
	if (number >= FF_NODE_NUMBER) {
		number -= FF_NODE_NUMBER;
		return number < r->nnodes ? r->nodes[number] : NULL;
	}
	size_t i = ff_runs_below(r, number);
	return i < r->nruns && r->runs[i]->number == number ? r->runs[i] : NULL;
}

/* The run before this one of the same job, NULL if it is the first. */
static struct ff_run *before(const struct ff_runs *r, const struct ff_run *run)
{
	for (size_t i = ff_runs_below(r, run->number); i > 0; i--) {
		if (!strcmp(r->runs[i - 1]->job->facts.job, run->job->facts.job)) {
			return r->runs[i - 1];
		}
	}
	return NULL;
}

/* An unnamed run is "0", the next "1": the count of the job's runs, or the next number that is
 * free. */
static int begin_unnamed(struct ff_runs *r, int64_t uid, struct ff_str job, ff_usec now_us,
	struct ff_run **ret, struct ff_err *err)
{
	char name[24];
	unsigned long n = 0;
	for (const struct ff_run *p = ff_map_get(&r->latest, job); p; p = before(r, p)) {
		n++;
	}
	for (;; n++) {
		(void)snprintf(name, sizeof name, "%lu", n);
		if (!find_name(r, job, ff_str_z(name))) {
			return begin(r, uid, job, ff_str_z(name), now_us, ret, err);
		}
	}
}

static bool is_new_run(const struct ff_run *latest, enum ff_run_cause cause, ff_usec now_us)
{
	switch (cause) {
	case FF_RUN_FEED: return false;
	case FF_RUN_START: return ff_facts_ended(&latest->job->facts);
	case FF_RUN_LIVE:
		return latest->ended_us != FF_TIME_NONE && now_us != FF_TIME_NONE &&
			now_us - latest->ended_us > LIVE_AFTER;
	}
	return false;
}

static struct ff_run *find_source(const struct ff_runs *r, struct ff_str job, const char *source)
{
	struct ff_buf key = {0};
	if (!source || !strcmp(source, "0")) {
		return NULL;
	}
	struct ff_run *run = ff_map_get(&r->sources, pair_key(&key, ff_str_z(source), job));
	ff_buf_finish(&key);
	return run;
}

void ff_runs_know_source(struct ff_runs *r, struct ff_run *run, const char *source)
{
	struct ff_buf key = {0};
	if (!source || !strcmp(source, "0")) {
		return;
	}
	struct ff_str job = ff_str_z(run->job->facts.job);
	(void)ff_map_put(&r->sources, pair_key(&key, ff_str_z(source), job), run);
	ff_buf_finish(&key);
}

int ff_runs_resolve_for(struct ff_runs *r, int64_t uid, struct ff_str job, const struct ff_str *run,
	const char *source, enum ff_run_cause cause, ff_usec now_us, struct ff_run **ret,
	struct ff_err *err)
{
	struct ff_run *found = NULL;
	int e = ff_runs_check_name(job, "job id", err);
	if (e == 0 && run) {
		e = ff_runs_check_name(*run, "run id", err);
	}
	if (e < 0) {
		return e;
	}
	if (run) {
		found = find_name(r, job, *run);
		e = found ? 0 : begin(r, uid, job, *run, now_us, &found, err);
	} else if (!(found = find_source(r, job, source))) {
		found = ff_map_get(&r->latest, job);
		if (!found || is_new_run(found, cause, now_us)) {
			e = begin_unnamed(r, uid, job, now_us, &found, err);
		}
	}
	if (e < 0) {
		return e;
	}
	ff_runs_know_source(r, found, source);
	*ret = found;
	return 0;
}

int ff_runs_resolve(struct ff_runs *r, struct ff_str job, const struct ff_str *run,
	const char *source, enum ff_run_cause cause, ff_usec now_us, struct ff_run **ret,
	struct ff_err *err)
{
	return ff_runs_resolve_for(
		r, FF_RUNS_ANYBODY, job, run, source, cause, now_us, ret, err);
}

/* The latest run of the job that has this id, or whose id alone begins with it. */
static struct ff_run *find_job(const struct ff_runs *r, struct ff_str name, bool *ret_many)
{
	struct ff_run *found = ff_map_get(&r->latest, name);
	if (found || !name.n) {
		return found;
	}
	struct ff_str key;
	void *value;
	for (size_t pos = 0; ff_map_next(&r->latest, &pos, &key, &value);) {
		if (!ff_str_starts(key, name)) {
			continue;
		}
		if (found) {
			*ret_many = true;
			return NULL;
		}
		found = value;
	}
	return found;
}

struct ff_run *ff_runs_find(const struct ff_runs *r, struct ff_str name, bool *ret_many)
{
	bool many = false;
	int64_t back = 0;
	struct ff_str job = name;
	ptrdiff_t tilde = ff_str_chr(name, '~', 0), slash = ff_str_chr(name, '/', 0);
	if (tilde >= 0) {
		struct ff_str n = ff_str_skip(name, (size_t)tilde + 1);
		if (!ff_str_int(n, &back) || back < 0) {
			back = -1; /* no such run */
		}
		job.n = (size_t)tilde;
	} else if (slash >= 0) {
		job.n = (size_t)slash;
	}
	struct ff_run *run = back < 0 ? NULL : find_job(r, job, &many);
	if (run && slash >= 0 && tilde < 0) {
		run = find_name(
			r, ff_str_z(run->job->facts.job), ff_str_skip(name, (size_t)slash + 1));
	}
	while (run && back-- > 0) {
		run = before(r, run);
	}
	if (ret_many) {
		*ret_many = many;
	}
	return run;
}

struct ff_run *ff_runs_restore(struct ff_runs *r, struct ff_str job, struct ff_str run,
			       uint32_t number)
{
	return make(r, job, run, number);
}

/* Entries that lead to it. */
static void drop_values(struct ff_map *m, const struct ff_run *run)
{
	struct ff_str key;
	void *value;
	struct ff_buf copy = {0};
	for (size_t pos = 0; ff_map_next(m, &pos, &key, &value);) {
		if (value == run) {
			ff_buf_clear(&copy); /* the map frees its own */
			ff_buf_adds(&copy, key);
			(void)ff_map_del(m, ff_buf_str(&copy));
		}
	}
	ff_buf_finish(&copy);
}

void ff_runs_remove(struct ff_runs *r, struct ff_run *run)
{
	struct ff_buf key = {0};
	struct ff_str job = ff_str_z(run->job->facts.job);
	size_t i = ff_runs_below(r, run->number);
	if (ff_map_get(&r->latest, job) == run) {
		struct ff_run *earlier = before(r, run);
		if (earlier) {
			(void)ff_map_put(&r->latest, job, earlier);
		} else {
			(void)ff_map_del(&r->latest, job);
		}
	}
	(void)ff_map_del(&r->by_name, pair_key(&key, job, ff_str_z(run->job->facts.run)));
	drop_values(&r->sources, run);
	ff_buf_finish(&key);
	r->nruns--;
	memmove(r->runs + i, r->runs + i + 1, (r->nruns - i) * sizeof(struct ff_run *));
	run_destroy(run);
}

struct ff_run *ff_runs_any(const struct ff_runs *r, size_t i)
{
	if (i < r->nruns) {
		return r->runs[i];
	}
	return i - r->nruns < r->nnodes ? r->nodes[i - r->nruns] : NULL;
}
