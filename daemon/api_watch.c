#include "api.h"

#include "base/limits.h"
#include "base/mem.h"
#include "watch.h"

#include <stdio.h>
#include <stdlib.h>

#define LOOK_MS 1000u /* between two looks for those who went */
#define ALIVE 15u     /* looks; then a comment: who reads knows that it is connected */

/* One who watches. */
struct watcher {
	struct request *r;
	struct watcher *prev, *next;
	char *job;         /* NULL: all */
	uint64_t seq;      /* of the last event that it was shown or that was not for it */
	struct ff_buf out; /* not sent yet */
	bool over;
};

struct watchers {
	struct daemon *d;
	struct watcher *first;
	size_t n;
	uv_timer_t look;
	unsigned looks;
};

/* Events are numbered anew by each start: an id says by which. */
static void put_id(const struct daemon *d, uint64_t seq, struct ff_buf *out)
{
	ff_buf_addf(
		out, "id: %llx-%llu\n", (unsigned long long)d->started_us, (unsigned long long)seq);
}

static bool parse_id(const struct daemon *d, const char *id, uint64_t *ret)
{
	unsigned long long start, seq;
	char rest;
	bool good = sscanf(id, "%llx-%llu%c", &start, &seq, &rest) == 2 &&
		start == (unsigned long long)d->started_us;
	if (good) {
		*ret = seq;
	}
	return good;
}

static bool is_for(const struct watcher *v, const struct ff_run *run)
{
	return (!v->job || !strcmp(v->job, run->job->facts.job)) && request_may(v->r, run);
}

/* Moves what there is for it to its buffer, about a page of it. */
static void fill(struct watcher *v)
{
	const struct daemon *d = v->r->d;
	if (!watch_has_after(d->watch, v->seq)) {
		v->over = true; /* it comes back with its last id, and is told */
		v->r->d->counts[DAEMON_COUNT_watchers_slow]++;
		return;
	}
	while (v->seq < watch_last(d->watch) && v->out.len < FF_LINE_MAX) {
		const struct watch_event *e = watch_get(d->watch, ++v->seq);
		const struct ff_run *run = ff_runs_number(&d->runs, e->run);
		if (run && is_for(v, run)) {
			ff_buf_addf(&v->out, "event: %s\n", e->type);
			put_id(d, e->seq, &v->out);
			ff_buf_addz(&v->out, "data: ");
			ff_buf_adds(&v->out, ff_buf_str(&e->data));
			ff_buf_addz(&v->out, "\n\n");
		}
	}
}

static ssize_t pull(struct request *r, char *buf, size_t max)
{
	struct watcher *v = r->watching;
	if (v && !v->over && !v->out.len) {
		fill(v);
	}
	if (!v || v->over) {
		return -1;
	}
	size_t n = v->out.len < max ? v->out.len : max;
	if (n) {
		memcpy(buf, v->out.p, n);
		ff_buf_consume(&v->out, n);
	}
	return (ssize_t)n;
}

static bool is_wanted(void *ud, const struct ff_run *run)
{
	const struct watchers *w = ud;
	bool wanted = !w->n; /* somebody may come back */
	for (const struct watcher *v = w->first; v && !wanted; v = v->next) {
		wanted = is_for(v, run);
	}
	return wanted;
}

static void on_woke(void *ud)
{
	struct watchers *w = ud;
	for (struct watcher *v = w->first; v; v = v->next) {
		api_wake(v->r);
	}
}

static void on_look(uv_timer_t *timer)
{
	struct watchers *w = timer->data;
	bool alive = ++w->looks % ALIVE == 0;
	for (struct watcher *v = w->first; v; v = v->next) {
		v->over = v->over || api_is_gone(v->r);
		if (alive && !v->out.len) {
			ff_buf_addz(&v->out, ":\n\n");
		}
		if (v->over || alive) {
			api_wake(v->r);
		}
	}
}

/* Where it goes on: behind what it saw last, if that is known and nothing between is gone. */
static void begin(struct watcher *v)
{
	struct daemon *d = v->r->d;
	uint64_t seq = 0;
	const char *id = v->r->last_event_id;
	bool known = id && parse_id(d, id, &seq) && watch_has_after(d->watch, seq);
	v->seq = known ? seq : watch_last(d->watch);
	ff_buf_addz(&v->out, "retry: 1000\n");
	if (id && !known) {
		d->counts[DAEMON_COUNT_watchers_resync]++;
		ff_buf_addz(&v->out, "event: resync\n");
	}
	put_id(d, v->seq, &v->out);
	ff_buf_addz(&v->out,
		id && !known ? "data: {\"event\":\"resync\",\"text\":\"something was missed: "
			       "GET /v1/jobs says how it is now\"}\n\n"
			     : "\n");
}

static void join(struct request *r, const char *job)
{
	struct watchers *w = api_watchers(r->api);
	struct watcher *v = ff_xcalloc(1, sizeof *v);
	v->r = r;
	v->job = ff_xstrdup(job);
	v->next = w->first;
	if (v->next) {
		v->next->prev = v;
	}
	w->first = v;
	w->n++;
	r->watching = v;
	r->pull = pull;
	r->status = 200;
	r->type = "text/event-stream";
	r->answered = true;
	r->d->counts[DAEMON_COUNT_watchers]++;
	watch_count(r->d->watch, w->n);
	begin(v);
	if (!uv_is_active((uv_handle_t *)&w->look)) {
		uv_timer_start(&w->look, on_look, LOOK_MS, LOOK_MS);
	}
}

void api_watch_get(struct request *r)
{
	const struct watchers *w = api_watchers(r->api);
	char *job = request_query(r, "job");
	const struct ff_run *run = job ? request_run_named(r, job, false) : NULL;
	free(job);
	if (r->answered) {
		return; /* there is no such job */
	}
	if (w->n >= FF_WATCHERS_MAX) {
		r->d->counts[DAEMON_COUNT_watchers_refused]++;
		request_problem(r, 503, "%u watch already", FF_WATCHERS_MAX);
		return;
	}
	join(r, run ? run->job->facts.job : NULL);
}

void api_watch_orphan(struct request *r, bool slow)
{
	struct watchers *w = api_watchers(r->api);
	struct watcher *v = r->watching;
	if (!v) {
		return;
	}
	r->d->counts[DAEMON_COUNT_watchers_slow] += slow && !v->over;
	*(v->prev ? &v->prev->next : &w->first) = v->next;
	if (v->next) {
		v->next->prev = v->prev;
	}
	w->n--;
	r->watching = NULL;
	ff_buf_finish(&v->out);
	free(v->job);
	free(v);
	watch_count(r->d->watch, w->n);
	if (!w->n) {
		uv_timer_stop(&w->look);
	}
}

size_t api_watch_count(const struct watchers *w)
{
	return w ? w->n : 0;
}

struct watchers *api_watch_create(struct daemon *d)
{
	struct watchers *w = ff_xcalloc(1, sizeof *w);
	w->d = d;
	uv_timer_init(&d->loop, &w->look);
	w->look.data = w;
	d->watch = watch_create(d, is_wanted, on_woke, w);
	return w;
}

void api_watch_close(struct watchers *w)
{
	if (w) {
		watch_close(w->d->watch);
		uv_close((uv_handle_t *)&w->look, NULL);
	}
}

void api_watch_destroy(struct watchers *w)
{
	if (w) {
		watch_destroy(w->d->watch);
		w->d->watch = NULL;
		free(w);
	}
}
