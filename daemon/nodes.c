#include "nodes.h"

#include "base/arr.h"
#include "base/json.h"
#include "base/mem.h"
#include "clock.h"
#include "feed/nodes.h"

#include <stdlib.h>

#define NEWS_MS 100                    /* from a line to the runs that it is about */
#define EXPIRE_MS (10ull * 60 * 1000) /* between two looks at what is old */

struct nodes {
	struct daemon *d;
	uv_timer_t news, expire;
	struct ff_run **heard; /* since the last look */
	size_t nheard, cheard;
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

static bool may_concern(const struct nodes *n, struct ff_run **news, size_t nnews,
	struct ff_run *run, ff_usec now_us)
{
	for (size_t i = 0; i < nnews; i++) {
		if (ff_node_may_concern(&n->d->runs, news[i], run, now_us)) {
			return true;
		}
	}
	return false;
}

void nodes_join(struct nodes *n, struct ff_run *run)
{
	if (ff_nodes_join(&n->d->runs, run, clock_wall())) {
		ledger_changed(n->d->ledger, run);
	}
}

static void on_news(uv_timer_t *timer)
{
	struct nodes *n = timer->data;
	struct ff_run **heard = n->heard;
	size_t nheard = n->nheard, nnews = 0;
	n->heard = NULL;
	n->nheard = n->cheard = 0;
	for (size_t i = 0; i < nheard; i++) {
		expire(n, heard[i]);
		if (ff_node_has_news(heard[i])) {
			heard[nnews++] = heard[i];
		}
	}
	for (size_t i = 0; nnews && i < n->d->runs.nruns; i++) {
		struct ff_run *run = n->d->runs.runs[i];
		if (may_concern(n, heard, nnews, run, clock_wall())) {
			nodes_join(n, run);
		}
	}
	free(heard);
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
	uv_timer_init(&d->loop, &n->news);
	uv_timer_init(&d->loop, &n->expire);
	n->news.data = n->expire.data = n;
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
	if (!uv_is_closing((uv_handle_t *)&n->news) && !uv_is_active((uv_handle_t *)&n->news)) {
		uv_timer_start(&n->news, on_news, NEWS_MS, 0);
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
	if (n && !uv_is_closing((uv_handle_t *)&n->news)) {
		uv_close((uv_handle_t *)&n->news, NULL);
		uv_close((uv_handle_t *)&n->expire, NULL);
	}
}

void nodes_destroy(struct nodes *n)
{
	if (n) {
		free(n->heard);
		free(n);
	}
}
