#include "watch.h"

#include "answer.h"
#include "base/arr.h"
#include "base/limits.h"
#include "base/mem.h"
#include "clock.h"

#include <stdio.h>
#include <stdlib.h>

#define EVENTS 1024u
#define BYTES (4u * 1024u * 1024u)
#define EVENT_BYTES (64u * 1024u) /* of a longer one, only whose it is is told */
#define TICK_MS 100
#define TICK_US 25000                  /* of judging in a tick */
#define AGAIN_US ((ff_usec)500000)     /* between two verdicts of a run, at least */
#define SHARE 20                       /* and so many times as long as its verdict takes */
#define LOOK_US (10 * FF_SECOND)       /* an open run is judged after this, changed or not */
#define FORGET_US (5 * 60 * FF_SECOND) /* after the last watcher left */

/* What was told of a run last. Behind run_state.watched. */
struct seen {
	uint64_t life; /* of the watch; another one: nothing below holds */
	bool queued, told;
	uint64_t changes; /* of the run when it was looked at first */
	uint32_t version;
	char state[16], fault[128];
	ff_usec due_us;  /* when it is judged next, while it is queued */
	ff_usec rest_us; /* and not before this */
};

struct watch {
	struct daemon *d;
	watch_wanted_fn *wanted;
	watch_woke_fn *woke;
	void *ud;
	uv_timer_t timer;
	bool active;
	uint64_t life; /* counts how often it became active */
	size_t watchers;
	ff_usec left_us; /* when the last one left */
	uint32_t newest; /* number of the newest run when it became active */
	uint32_t *queue; /* runs to be judged */
	size_t nqueue, cqueue;
	struct watch_event ring[EVENTS]; /* seq modulo EVENTS */
	uint64_t first, last;            /* there are first to last */
	size_t bytes;
};

static ff_usec now_of(const struct watch *w)
{
	return (ff_usec)uv_now(&w->d->loop) * 1000;
}

/* ---- the row */

static void drop_first(struct watch *w)
{
	struct watch_event *e = &w->ring[w->first++ % EVENTS];
	w->bytes -= e->data.len;
	ff_buf_finish(&e->data);
}

static void add(struct watch *w, const struct ff_run *run, const char *type, struct ff_buf *data)
{
	while (w->first <= w->last &&
		(w->last - w->first + 1 == EVENTS || w->bytes + data->len > BYTES)) {
		drop_first(w);
	}
	w->last++;
	w->bytes += data->len;
	w->ring[w->last % EVENTS] = (struct watch_event){w->last, run->number, type, *data};
	*data = (struct ff_buf){0};
	w->d->counts[DAEMON_COUNT_watch_events]++;
}

uint64_t watch_last(const struct watch *w)
{
	return w->last;
}

bool watch_has_after(const struct watch *w, uint64_t seq)
{
	return seq <= w->last && seq + 1 >= w->first;
}

const struct watch_event *watch_get(const struct watch *w, uint64_t seq)
{
	return &w->ring[seq % EVENTS];
}

/* ---- what is told */

static void open_event(
	struct ff_jw *w, struct ff_buf *out, const char *type, const struct ff_run *run)
{
	ff_jw_init(w, out);
	ff_jw_open(w, '{');
	ff_jw_kstrz(w, "event", type);
	ff_jw_ktime(w, "time", clock_wall());
	ff_jw_kstrz(w, "job", run->job->facts.job);
	ff_jw_kstrz(w, "run", run->job->facts.run);
}

/* {"event","time","job","run"[,key,was]} */
static void tell(struct watch *w, const struct ff_run *run, const char *type, const char *key,
	const char *value, const char *was)
{
	struct ff_buf out = {0};
	struct ff_jw j;
	open_event(&j, &out, type, run);
	if (key) {
		ff_jw_kstrz(&j, key, value);
		ff_jw_kstrz(&j, "was", was && *was ? was : NULL);
	}
	ff_jw_close(&j, '}');
	add(w, run, type, &out);
}

/* The same with what a list shows of the run. */
static void tell_verdict(
	struct watch *w, const struct ff_run *run, const char *type, const struct answer_short *a)
{
	struct ff_buf out = {0};
	struct ff_jw j;
	open_event(&j, &out, type, run);
	ff_jw_kint(&j, "version", run->version);
	if (a->item.len <= EVENT_BYTES) {
		ff_buf_addz(&out, ",\"is\":{");
		ff_buf_adds(&out, ff_buf_str(&a->item));
		ff_buf_addc(&out, '}');
	} else {
		ff_jw_knull(&j, "is");
	}
	ff_jw_close(&j, '}');
	add(w, run, type, &out);
}

static void compare(struct watch *w, const struct ff_run *run, struct seen *s)
{
	const struct run_state *rs = run->user;
	const struct answer_short *a = rs->answer;
	/* a run that goes on has recovered from what its verdict may still speak of */
	bool counts = a->fault && strcmp(a->state, ff_run_state_name(FF_RUN_RUNNING)) != 0;
	const char *fault = counts ? a->fault : "";
	bool young = run->number > w->newest;
	bool silent = !s->told && !young && rs->changes == s->changes;
	if (!s->told && young) {
		tell(w, run, "begun", NULL, NULL, NULL);
	}
	if (!silent && strcmp(s->state, a->state) != 0) {
		tell(w, run, "state", "state", a->state, s->state);
	}
	if (!silent && strcmp(s->fault, fault) != 0) {
		if (*fault) {
			tell_verdict(w, run, "fault", a);
		} else {
			tell(w, run, "withdrawn", "fault", NULL, s->fault);
		}
	}
	if (!silent && s->version != run->version) {
		tell_verdict(w, run, "verdict", a);
	}
	s->told = true;
	s->version = run->version;
	(void)snprintf(s->state, sizeof s->state, "%s", a->state);
	(void)snprintf(s->fault, sizeof s->fault, "%s", fault);
}

/* ---- what is judged, and when */

static void on_timer(uv_timer_t *timer);

static void plan(struct watch *w)
{
	if (w->active && !uv_is_active((uv_handle_t *)&w->timer)) {
		uv_timer_start(&w->timer, on_timer, TICK_MS, 0);
	}
}

static struct seen *seen_of(struct watch *w, struct run_state *rs)
{
	struct seen *s = rs->watched;
	if (!s) {
		s = rs->watched = ff_xcalloc(1, sizeof *s);
	}
	if (s->life != w->life) {
		*s = (struct seen){.life = w->life, .changes = UINT64_MAX};
	}
	return s;
}

static void queue(struct watch *w, struct run_state *rs, struct seen *s, ff_usec due_us)
{
	if (!s->queued) {
		*FF_ARR_ADD(w->queue, w->nqueue, w->cqueue) = rs->run->number;
		s->queued = true;
		s->due_us = due_us;
	} else if (due_us < s->due_us) {
		s->due_us = due_us;
	}
	plan(w);
}

void watch_changed(struct watch *w, struct run_state *rs)
{
	if (w && w->active) {
		struct seen *s = seen_of(w, rs);
		ff_usec now = now_of(w);
		queue(w, rs, s, s->rest_us > now ? s->rest_us : now);
	}
}

/* Judges one run. True: again after a while, even if nothing comes. */
static bool look(struct watch *w, struct ff_run *run, struct seen *s)
{
	ff_usec began = clock_mono();
	(void)answer_short(w->d, run);
	ff_usec spent = clock_mono() - began;
	compare(w, run, s);
	s->rest_us = now_of(w) + (spent * SHARE > AGAIN_US ? spent * SHARE : AGAIN_US);
	s->due_us = now_of(w) + (spent * SHARE > LOOK_US ? spent * SHARE : LOOK_US);
	return !ff_facts_ended(&run->job->facts);
}

/* False: this entry leaves the queue. */
static bool look_after(struct watch *w, uint32_t number, ff_usec now)
{
	struct ff_run *run = ff_runs_number(&w->d->runs, number);
	struct run_state *rs = run ? run->user : NULL;
	struct seen *s = rs ? rs->watched : NULL;
	if (!s) {
		return false; /* it was deleted */
	}
	if (s->due_us > now) {
		return true;
	}
	if (!w->wanted(w->ud, run)) {
		s->due_us = now + LOOK_US;
		return true;
	}
	s->queued = look(w, run, s);
	return s->queued;
}

static void deactivate(struct watch *w)
{
	w->active = false;
	w->nqueue = 0;
	while (w->first <= w->last) {
		drop_first(w);
	}
	w->first = ++w->last + 1; /* who comes back has missed something */
}

static void on_timer(uv_timer_t *timer)
{
	struct watch *w = timer->data;
	ff_usec now = now_of(w), began = clock_mono();
	uint64_t before = w->last;
	if (!w->watchers && now - w->left_us >= FORGET_US) {
		deactivate(w);
		return;
	}
	size_t kept = 0, i = 0;
	for (; i < w->nqueue && clock_mono() - began < TICK_US; i++) {
		if (look_after(w, w->queue[i], now)) {
			w->queue[kept++] = w->queue[i];
		}
	}
	for (; i < w->nqueue; i++) {
		w->queue[kept++] = w->queue[i];
	}
	w->nqueue = kept;
	uv_timer_start(&w->timer, on_timer, TICK_MS, 0);
	if (w->last != before) {
		w->woke(w->ud);
	}
}

static void activate(struct watch *w)
{
	const struct ff_runs *runs = &w->d->runs;
	w->active = true;
	w->life++;
	w->newest = runs->nruns ? runs->runs[runs->nruns - 1]->number : 0;
	for (size_t i = 0; i < runs->nruns; i++) {
		if (!ff_facts_ended(&runs->runs[i]->job->facts)) {
			struct run_state *rs = ledger_run(w->d->ledger, runs->runs[i]);
			struct seen *s = seen_of(w, rs);
			s->changes = rs->changes;
			queue(w, rs, s, now_of(w));
		}
	}
	plan(w);
}

void watch_count(struct watch *w, size_t watchers)
{
	if (watchers && !w->active) {
		activate(w);
	}
	if (!watchers && w->watchers) {
		w->left_us = now_of(w);
	}
	w->watchers = watchers;
}

/* ---- life */

struct watch *watch_create(struct daemon *d, watch_wanted_fn *wanted, watch_woke_fn *woke, void *ud)
{
	struct watch *w = ff_xcalloc(1, sizeof *w);
	w->d = d;
	w->wanted = wanted;
	w->woke = woke;
	w->ud = ud;
	w->first = 1;
	uv_timer_init(&d->loop, &w->timer);
	w->timer.data = w;
	return w;
}

void watch_close(struct watch *w)
{
	if (w) {
		w->active = false;
		uv_close((uv_handle_t *)&w->timer, NULL);
	}
}

void watch_destroy(struct watch *w)
{
	if (w) {
		while (w->first <= w->last) {
			drop_first(w);
		}
		free(w->queue);
		free(w);
	}
}
