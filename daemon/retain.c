#include "retain.h"

#include "answer.h"
#include "api.h"
#include "base/json.h"
#include "base/limits.h"
#include "base/mem.h"
#include "clock.h"
#include "conn.h"
#include "ledger.h"
#include "shell/log.h"
#include "store.h"
#include "tail.h"

#include <stdlib.h>

#define LOOK_US (2 * FF_SECOND) /* between two looks; less if keep-age is short */
#define GRACE_US (60 * FF_SECOND) /* after the start: senders come back before their runs are old */

struct retain {
	struct daemon *d;
	uv_timer_t timer;
	ff_usec begun_us; /* the loop's time */
	size_t going; /* runs that were dropped and are not gone from the disk */
	bool over;    /* more than keep-size, and nothing that may go */
	struct retain_wait *waiting;
};

static void on_timer(uv_timer_t *timer);

/* A part of keep-age, which is short in tests alone, and at most so much. */
static ff_usec part_us(const struct retain *r, ff_usec most_us)
{
	ff_usec us = r->d->config->keep_age / 8;
	return us < most_us ? us : most_us;
}

static ff_usec loop_now(const struct retain *r)
{
	return (ff_usec)uv_now(&r->d->loop) * 1000;
}

static void plan(struct retain *r, ff_usec us)
{
	if (!uv_is_closing((uv_handle_t *)&r->timer)) {
		uv_timer_start(&r->timer, on_timer, (uint64_t)us / 1000, 0);
	}
}

int retain_open(struct daemon *d, struct retain **ret, struct ff_err *err)
{
	struct retain *r = ff_xcalloc(1, sizeof *r);
	r->d = d;
	int e = uv_timer_init(&d->loop, &r->timer);
	if (e < 0) {
		free(r);
		return ff_err_set(err, e, "cannot start a timer: %s", uv_strerror(e));
	}
	r->timer.data = r;
	*ret = r;
	r->begun_us = loop_now(r);
	plan(r, part_us(r, LOOK_US));
	return 0;
}

void retain_close(struct retain *r)
{
	if (r && !uv_is_closing((uv_handle_t *)&r->timer)) {
		uv_close((uv_handle_t *)&r->timer, NULL);
	}
}

void retain_destroy(struct retain *r)
{
	free(r);
}

/* ---- taking one out */

static bool has_speaker(const struct ff_run *run)
{
	for (size_t i = 0; i < run->job->nstreams; i++) {
		const struct stream_state *ss = run->job->streams[i]->user;
		if (ss && (ss->conn || ss->speakers)) {
			return true;
		}
	}
	return false;
}

bool retain_is_open(const struct ff_run *run)
{
	bool ended = run->job->nstreams > 0;
	for (size_t i = 0; i < run->job->nstreams; i++) {
		ended = ended && run->job->streams[i]->state == FF_STREAM_ENDED;
	}
	return has_speaker(run) || !(ended || ff_facts_ended(&run->job->facts));
}

/* Whoever keeps a pointer into a run is told here. */
void retain_drop(struct daemon *d, struct ff_run *run, enum retain_why why)
{
	static const char *const words[] = {
		[RETAIN_AGE] = "nothing came of it for keep-age",
		[RETAIN_SIZE] = "for want of room (keep-size)",
		[RETAIN_ASKED] = "as somebody asked",
	};
	static const enum daemon_count counts[] = {
		[RETAIN_AGE] = DAEMON_COUNT_runs_aged,
		[RETAIN_SIZE] = DAEMON_COUNT_runs_over,
		[RETAIN_ASKED] = DAEMON_COUNT_runs_forgotten,
	};
	ff_log_info("retain", "job=%s run=%s goes: %s", run->job->facts.job, run->job->facts.run,
		words[why]);
	d->counts[counts[why]]++;
	d->retain->going++;
	conn_drop_run(d->server, run);
	tail_drop_run(d->tail, run);
	api_drop_run(d->api, run);
	ledger_drop_run(d->ledger, run);
	ff_runs_remove(&d->runs, run);
}

/* ---- which one */

static uint64_t segment_bytes(const struct ff_run *run)
{
	const struct run_state *rs = run->user;
	if (!rs) {
		return 0;
	}
	/* a file before the last is full */
	return (uint64_t)(rs->segments.end.number - rs->segments.first) * FF_SEGMENT_BYTES +
		rs->segments.end.at;
}

static uint64_t all_segment_bytes(const struct daemon *d)
{
	uint64_t sum = 0;
	for (size_t i = 0; i < d->runs.nruns; i++) {
		sum += segment_bytes(d->runs.runs[i]);
	}
	return sum;
}

static ff_usec heard_at(const struct ff_run *run)
{
	const struct run_state *rs = run->user;
	return rs ? rs->heard_at : 0;
}

/* Of those that may go the one that was heard longest ago; NULL. ended: only one that has. */
static struct ff_run *find_oldest(struct daemon *d, ff_usec before, bool ended)
{
	struct ff_run *found = NULL;
	for (size_t i = 0; i < d->runs.nruns; i++) {
		struct ff_run *run = d->runs.runs[i];
		ff_usec at = heard_at(run);
		if (at >= before || has_speaker(run) ||
			(ended && !ff_facts_ended(&run->job->facts))) {
			continue;
		}
		/* a verdict is the dearest question, so it comes last */
		if (!ended || answer_short(d, run)->final) {
			found = run;
			before = at;
		}
	}
	return found;
}

static bool is_over(const struct daemon *d)
{
	struct store_status t;
	store_status(d->store, &t);
	return t.file_bytes - t.free_bytes + all_segment_bytes(d) >
		(uint64_t)d->config->keep_size;
}

static void look(struct retain *r)
{
	struct daemon *d = r->d;
	bool over = is_over(d);
	bool grace = loop_now(r) - r->begun_us < part_us(r, GRACE_US);
	struct ff_run *run =
		grace ? NULL : find_oldest(d, clock_wall() - d->config->keep_age, false);
	enum retain_why why = RETAIN_AGE;
	if (!run && over) {
		run = find_oldest(d, INT64_MAX, true);
		why = RETAIN_SIZE;
	}
	if (over && !run && !r->over) {
		ff_log_warn("retain",
			"more than keep-size is in \"%s\", and no run has ended that could go, "
			"retrying",
			d->config->state);
	}
	r->over = over && !run;
	if (run) {
		retain_drop(d, run, why);
	}
}

static void on_timer(uv_timer_t *timer)
{
	struct retain *r = timer->data;
	if (!r->going && !r->d->stopping) {
		look(r); /* what it drops is seen when it is gone */
	}
	plan(r, part_us(r, LOOK_US));
}

/* ---- when it is gone */

void retain_wait(struct retain *r, struct retain_wait *w)
{
	w->next = r->waiting;
	r->waiting = w;
}

void retain_forget(struct retain *r, struct retain_wait *w)
{
	for (struct retain_wait **p = &r->waiting; *p; p = &(*p)->next) {
		if (*p == w) {
			*p = w->next;
			return;
		}
	}
}

static struct retain_wait *take_waiting(struct retain *r, uint32_t run)
{
	for (struct retain_wait **p = &r->waiting; *p; p = &(*p)->next) {
		struct retain_wait *w = *p;
		if (w->run == run) {
			*p = w->next;
			return w;
		}
	}
	return NULL;
}

void retain_on_gone(struct retain *r, uint32_t run, uint64_t bytes)
{
	r->d->counts[DAEMON_COUNT_bytes_given_back] += bytes;
	r->going -= r->going > 0;
	for (struct retain_wait *w = take_waiting(r, run); w; w = take_waiting(r, run)) {
		w->fn(w->ud, bytes);
	}
	plan(r, r->going ? part_us(r, LOOK_US) : 0);
}

void retain_describe(const struct daemon *d, struct ff_jw *w)
{
	struct store_status t;
	ff_usec oldest = FF_TIME_NONE;
	store_status(d->store, &t);
	for (size_t i = 0; i < d->runs.nruns; i++) {
		ff_usec at = heard_at(d->runs.runs[i]);
		oldest = at && (oldest == FF_TIME_NONE || at < oldest) ? at : oldest;
	}
	ff_jw_key(w, "kept");
	ff_jw_open(w, '{');
	ff_jw_kint(w, "runs", (int64_t)d->runs.nruns);
	ff_jw_ktime(w, "oldest_heard", oldest);
	ff_jw_kint(w, "store_bytes", (int64_t)t.file_bytes);
	ff_jw_kint(w, "store_free_bytes", (int64_t)t.free_bytes);
	ff_jw_kint(w, "log_bytes", (int64_t)t.log_bytes);
	ff_jw_kint(w, "segment_bytes", (int64_t)all_segment_bytes(d));
	ff_jw_kint(w, "limit_bytes", d->config->keep_size);
	ff_jw_kbool(w, "over_limit", d->retain && d->retain->over);
	ff_jw_kint(w, "limit_seconds", d->config->keep_age / FF_SECOND);
	ff_jw_kint(w, "going", d->retain ? (int64_t)d->retain->going : 0);
	ff_jw_close(w, '}');
}
