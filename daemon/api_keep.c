#include "api.h"

#include "base/mem.h"
#include "retain.h"

#include <stdio.h>
#include <stdlib.h>

#define WAIT_MS 30000 /* then the answer says that it is still at work */

/* Somebody waits for a run to be gone. */
struct forget {
	struct request *r; /* NULL: nobody waits any more */
	struct daemon *d;
	struct retain_wait wait;
	uint64_t seq; /* of the batch that says so */
	uv_timer_t timer;
	char *job, *run;
};

static void on_closed(uv_handle_t *handle)
{
	struct forget *f = handle->data;
	free(f->job);
	free(f->run);
	free(f);
}

static void forget_end(struct forget *f)
{
	if (f->r) {
		f->r->forgetting = NULL;
	}
	retain_forget(f->d->retain, &f->wait);
	uv_close((uv_handle_t *)&f->timer, on_closed);
}

static void answer(struct forget *f, bool complete, uint64_t bytes)
{
	struct request *r = f->r;
	struct ff_buf out = {0};
	struct ff_jw w;
	ff_jw_init(&w, &out);
	ff_jw_open(&w, '{');
	ff_jw_kstrz(&w, "schema", "firstfault.forget/1");
	ff_jw_kstrz(&w, "job", f->job);
	ff_jw_kstrz(&w, "run", f->run);
	ff_jw_kbool(&w, "complete", complete);
	ff_jw_kint(&w, "bytes", (int64_t)bytes);
	ff_jw_close(&w, '}');
	ff_buf_addc(&out, '\n');
	request_json(r, complete ? 200 : 202, &out);
	forget_end(f);
	api_finish(r);
}

static void on_gone(void *ud, uint64_t bytes)
{
	answer(ud, true, bytes);
}

static void on_timer(uv_timer_t *timer)
{
	struct forget *f = timer->data;
	struct request *r = f->r;
	if (ledger_is_committed(f->d->ledger, f->seq)) {
		answer(f, false, 0);
		return;
	}
	request_problem(r, 503,
		"the store does not take it (see status): job \"%s\" is gone when it does, and "
		"back if the daemon is killed before",
		f->job);
	forget_end(f);
	api_finish(r);
}

void api_keep_orphan(struct request *r)
{
	struct forget *f = r->forgetting;
	if (f) {
		forget_end(f);
	}
}

/* The run that the address names; NULL: a problem was answered. */
static struct ff_run *find(struct request *r)
{
	char *name = request_query(r, "run");
	struct ff_run *run = request_run(r, 2, true);
	if (run && name) {
		struct ff_buf full = {0};
		ff_buf_addf(&full, "%s/%s", run->job->facts.job, name);
		run = ff_runs_find(&r->d->runs, ff_buf_str(&full), NULL);
		ff_buf_finish(&full);
		if (!run) {
			request_problem(r, 404, "job \"%s\" has no run \"%s\"", r->parts[2], name);
		} else if (!request_may(r, run)) {
			request_problem(r, 403, "job \"%s\" belongs to another user",
				run->job->facts.job);
			run = NULL;
		}
	}
	free(name);
	return run;
}

void api_keep_forget(struct request *r)
{
	struct ff_run *run = find(r);
	if (!run) {
		return;
	}
	if (retain_is_open(run) && !request_flag(r, "force")) {
		request_problem(r, 409,
			"job \"%s\" has not ended, and what still comes would begin it anew; "
			"--force (?force=1) takes it out all the same",
			run->job->facts.job);
		return;
	}
	struct forget *f = ff_xcalloc(1, sizeof *f);
	f->r = r;
	f->d = r->d;
	f->job = ff_xstrdup(run->job->facts.job);
	f->run = ff_xstrdup(run->job->facts.run);
	f->wait = (struct retain_wait){run->number, on_gone, f, NULL};
	r->pending = true;
	r->forgetting = f;
	uv_timer_init(&r->d->loop, &f->timer);
	f->timer.data = f;
	uv_timer_start(&f->timer, on_timer, WAIT_MS, 0);
	retain_wait(r->d->retain, &f->wait);
	retain_drop(r->d, run, RETAIN_ASKED);
	f->seq = ledger_next(r->d->ledger);
}
