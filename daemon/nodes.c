#include "nodes.h"

#include "base/arr.h"
#include "base/json.h"
#include "base/mem.h"
#include "clock.h"
#include "feed/nodes.h"

#include <stdlib.h>

#define NEWS_MS 100                    /* from a line to the runs that it is about */
#define TURN_US (5 * FF_SECOND / 1000) /* of joining before the loop sees to others */
#define EXPIRE_MS (10ull * 60 * 1000) /* between two looks at what is old */

struct nodes {
	struct daemon *d;
	uv_timer_t timer, expire;
	struct ff_run **heard; /* since the last look */
	size_t nheard, cheard;
	struct ff_run **news; /* of these nodes runs are told; NULL: none is due */
	size_t nnews;
	uint32_t next;        /* number of the run to go on with */
	ff_usec until_us;     /* monotonic */
};

static int64_t owner_of(const struct ff_run *run)
{
	const struct run_state *rs = run->user;
	return rs ? rs->owner : -1;
}

/* What expired or was dropped has to go from the store, also other nodes'. */
static void expire(struct nodes *n, struct ff_run *node)
{
	struct ff_runs *runs = &n->d->runs;
	if (!ff_node_expire(runs, node, clock_wall())) {
		return;
	}
	for (size_t i = 0; i < runs->nnodes; i++) {
		for (size_t k = 0; k < runs->nodes[i]->job->nstreams; k++) {
			if (runs->nodes[i]->job->streams[k]->ndropped) {
				ledger_changed(n->d->ledger, runs->nodes[i]);
				break;
			}
		}
	}
}

void nodes_join(struct nodes *n, struct ff_run *run)
{
	if (ff_nodes_join(&n->d->runs, run, clock_wall())) {
		ledger_changed(n->d->ledger, run);
	}
}

static bool on_joined(void *ud, struct ff_run *run)
{
	struct nodes *n = ud;
	if (run) {
		ledger_changed(n->d->ledger, run);
	}
	return clock_mono() < n->until_us;
}

/* Of what was heard, the nodes that have news. */
static void take_heard(struct nodes *n)
{
	n->news = n->heard;
	n->nnews = 0;
	size_t nheard = n->nheard;
	n->heard = NULL;
	n->nheard = n->cheard = 0;
	for (size_t i = 0; i < nheard; i++) {
		struct ff_run *node = n->news[i];
		expire(n, node);
		if (ff_node_has_news(node)) {
			n->news[n->nnews++] = node;
		}
	}
	n->next = n->nnews ? 0 : UINT32_MAX;
}

/* Some of the runs at a time: the loop has others to serve. */
static void on_news(uv_timer_t *timer)
{
	struct nodes *n = timer->data;
	if (!n->news) {
		take_heard(n);
	}
	n->until_us = clock_mono() + TURN_US;
	if (n->next != UINT32_MAX) {
		n->next = ff_nodes_news(&n->d->runs, n->next, n->news, n->nnews, clock_wall(),
			on_joined, n);
	}
	if (n->next != UINT32_MAX) {
		uv_timer_start(timer, on_news, 1, 0);
		return;
	}
	free(n->news);
	n->news = NULL;
	if (n->nheard) {
		uv_timer_start(timer, on_news, NEWS_MS, 0);
	}
}

static void on_expire(uv_timer_t *timer)
{
	struct nodes *n = timer->data;
	for (size_t i = 0; i < n->d->runs.nnodes; i++) {
		expire(n, n->d->runs.nodes[i]);
	}
}

struct nodes *nodes_create(struct daemon *d)
{
	struct nodes *n = ff_xcalloc(1, sizeof *n);
	n->d = d;
	d->runs.owner = owner_of;
	uv_timer_init(&d->loop, &n->timer);
	uv_timer_init(&d->loop, &n->expire);
	n->timer.data = n->expire.data = n;
	uv_timer_start(&n->expire, on_expire, EXPIRE_MS, EXPIRE_MS);
	uv_unref((uv_handle_t *)&n->expire);
	return n;
}

void nodes_heard(struct nodes *n, struct ff_run *node)
{
	for (size_t i = 0; i < n->nheard; i++) {
		if (n->heard[i] == node) {
			return;
		}
	}
	*FF_ARR_ADD(n->heard, n->nheard, n->cheard) = node;
	if (!uv_is_closing((uv_handle_t *)&n->timer) && !uv_is_active((uv_handle_t *)&n->timer)) {
		uv_timer_start(&n->timer, on_news, NEWS_MS, 0);
	}
}

void nodes_describe(const struct nodes *n, struct ff_jw *w)
{
	const struct ff_runs *runs = &n->d->runs;
	size_t streams = 0, events = 0, joined = 0;
	for (size_t i = 0; i < runs->nnodes; i++) {
		const struct ff_job *job = runs->nodes[i]->job;
		streams += job->nstreams;
		for (size_t k = 0; k < job->nstreams; k++) {
			events += job->streams[k]->nevents;
		}
	}
	for (size_t i = 0; i < runs->nruns; i++) {
		const struct ff_job *job = runs->runs[i]->job;
		for (size_t k = 0; k < job->nstreams; k++) {
			joined += job->streams[k]->origin.joined ? job->streams[k]->nevents : 0;
		}
	}
	ff_jw_open(w, '{');
	ff_jw_kint(w, "nodes", (int64_t)runs->nnodes);
	ff_jw_kint(w, "streams", (int64_t)streams);
	ff_jw_kint(w, "events", (int64_t)events);
	ff_jw_kint(w, "joined", (int64_t)joined);
	ff_jw_close(w, '}');
}

void nodes_close(struct nodes *n)
{
	if (n && !uv_is_closing((uv_handle_t *)&n->timer)) {
		uv_close((uv_handle_t *)&n->timer, NULL);
		uv_close((uv_handle_t *)&n->expire, NULL);
	}
}

void nodes_destroy(struct nodes *n)
{
	if (n) {
		free(n->heard);
		free(n->news);
		free(n);
	}
}
