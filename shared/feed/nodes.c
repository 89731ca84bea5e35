#include "feed/nodes.h"

#include "base/arr.h"
#include "base/limits.h"
#include "core/reach.h"

#include <stdio.h>
#include <stdlib.h>

#define KEPT ((ff_usec)FF_NODE_HOURS * 3600 * FF_SECOND)
#define MARK_STEP (600 * FF_SECOND) /* between two marks of a stream */
#define VIEW_SOURCE "@" /* before a node stream's source: that of its view */

/* Bytes of a stream that had come at some time of the daemon's clock. */
struct mark {
	ff_usec us;
	uint64_t fed;
};

struct marks {
	struct mark *v;
	size_t n, cap;
};

struct ff_node {
	int64_t owner;
	uint64_t news; /* hash of its events, as ff_node_has_news saw them last */
	struct marks *marks; /* by index of its streams */
	size_t nmarks, cmarks;
	size_t events; /* as counted in runs->node_events */
};

/* ---- the table */

void ff_node_destroy(struct ff_node *node)
{
	for (size_t i = 0; node && i < node->nmarks; i++) {
		free(node->marks[i].v);
	}
	if (node) {
		free(node->marks);
		free(node);
	}
}

bool ff_node_is_trusted(const struct ff_run *node)
{
	return node->node->owner == FF_NODE_TRUSTED;
}

static struct ff_run *make(struct ff_runs *r, struct ff_str job, struct ff_str name, int64_t owner)
{
	struct ff_run *n = ff_xcalloc(1, sizeof *n);
	struct ff_buf key = {0};
	n->job = ff_job_create(r->catalog, job, name);
	n->mask = r->mask;
	n->job->of_node = true;
	n->number = FF_NODE_NUMBER + (uint32_t)r->nnodes;
	n->begun_us = n->ended_us = FF_TIME_NONE;
	n->node = ff_xcalloc(1, sizeof *n->node);
	n->node->owner = owner;
	*FF_ARR_ADD(r->nodes, r->nnodes, r->cnodes) = n;
	ff_buf_addf(&key, "%lld", (long long)owner);
	ff_buf_addc(&key, '\0');
	ff_buf_adds(&key, name);
	(void)ff_map_put(&r->node_by_name, ff_buf_str(&key), n);
	ff_buf_finish(&key);
	return n;
}

/* What nobody believes takes no place from what root says: neither one user's words nor those of
 * all of them fill the table. */
static bool is_full(const struct ff_runs *r, int64_t owner)
{
	size_t own = 0, others = 0;
	for (size_t i = 0; i < r->nnodes && owner != FF_NODE_TRUSTED; i++) {
		own += r->nodes[i]->node->owner == owner;
		others += !ff_node_is_trusted(r->nodes[i]);
	}
	return r->nnodes >= FF_NODE_LOGS_MAX || own >= FF_NODE_LOGS_USER ||
		others >= FF_NODE_LOGS_OTHERS;
}

int ff_nodes_resolve(struct ff_runs *r, struct ff_str node, int64_t owner, ff_usec now_us,
	struct ff_run **ret, struct ff_err *err)
{
	struct ff_buf key = {0};
	char job[32] = ""; /* as no job can be called */
	if (node.n && ff_runs_check_name(node, "node name", err) < 0) {
		return FF_ENAME;
	}
	ff_buf_addf(&key, "%lld", (long long)owner);
	ff_buf_addc(&key, '\0');
	ff_buf_adds(&key, node);
	*ret = ff_map_get(&r->node_by_name, ff_buf_str(&key));
	ff_buf_finish(&key);
	if (*ret) {
		return 0;
	}
	if (is_full(r, owner)) {
		r->counts[FF_COUNT_nodes_refused]++;
		return ff_err_set(err, FF_ELIMIT, "there are logs of %zu nodes", r->nnodes);
	}
	if (owner != FF_NODE_TRUSTED) {
		(void)snprintf(job, sizeof job, "~%lld", (long long)owner);
	}
	*ret = make(r, ff_str_z(job), node, owner);
	(*ret)->begun_us = now_us;
	(*ret)->dirty = true;
	return 0;
}

struct ff_run *ff_nodes_restore(struct ff_runs *r, struct ff_str job, struct ff_str run)
{
	int64_t owner = FF_NODE_TRUSTED;
	if (job.n && (job.p[0] != '~' || !ff_str_int(ff_str_skip(job, 1), &owner))) {
		return NULL;
	}
	return make(r, job, run, owner);
}

/* ---- what is too old or too much */

static void add_mark(struct marks *m, ff_usec us, uint64_t fed)
{
	if (!m->n || (us > m->v[m->n - 1].us && fed > m->v[m->n - 1].fed)) {
		*FF_ARR_ADD(m->v, m->n, m->cap) = (struct mark){us, fed};
	}
}

/* What a restart left says by its stamps when it came. One that is too old for that is of another
 * clock, or of a time before the daemon heard of it. */
static void mark_restored(struct marks *m, const struct ff_stream *s, ff_usec now_us)
{
	for (size_t i = 0; s->replay && i < s->nevents; i++) {
		ff_usec us = ff_stamp_us(s->events[i].stamp);
		if (ff_usec_usable(us) && us <= now_us && us > now_us - KEPT) {
			add_mark(m, us, s->events[i].offset + 1);
		}
	}
}

static struct marks *marks_of(struct ff_node *node, const struct ff_job *job, size_t i, ff_usec now)
{
	while (node->nmarks <= i) {
		struct marks *m = FF_ARR_ADD(node->marks, node->nmarks, node->cmarks);
		*m = (struct marks){0};
		mark_restored(m, job->streams[node->nmarks - 1], now);
	}
	return &node->marks[i];
}

/* The offset before which all came longer ago than it is kept. */
static uint64_t old_until(struct marks *m, const struct ff_stream *s, ff_usec now_us)
{
	uint64_t old = 0;
	size_t n = 0;
	while (n < m->n && m->v[n].us <= now_us - KEPT) {
		old = m->v[n++].fed;
	}
	if (n > 1) { /* one that is old stays: what came before it is known to be older */
		memmove(m->v, m->v + n - 1, (m->n - n + 1) * sizeof *m->v);
		m->n -= n - 1;
	}
	if (s->fed && (!m->n || now_us - m->v[m->n - 1].us >= MARK_STEP)) {
		add_mark(m, now_us, s->fed);
	}
	return old;
}

static size_t count_events(const struct ff_job *job)
{
	size_t n = 0;
	for (size_t i = 0; i < job->nstreams; i++) {
		n += job->streams[i]->nevents;
	}
	return n;
}

static void recount(struct ff_runs *r, struct ff_run *node)
{
	size_t n = count_events(node->job);
	r->node_events += n - node->node->events;
	node->node->events = n;
}

/* Goes a before b? What nobody believes goes first. */
static bool goes_before(const struct ff_run *a, const struct ff_run *b)
{
	bool a_trusted = ff_node_is_trusted(a) || !a->node->events;
	bool b_trusted = ff_node_is_trusted(b) || !b->node->events;
	return a_trusted != b_trusted ? b_trusted : a->node->events > b->node->events;
}

/* The stream of the fullest node that has the most events. */
static struct ff_stream *fullest(const struct ff_runs *r, struct ff_run **ret_node)
{
	struct ff_stream *most = NULL;
	struct ff_run *node = r->nodes[0];
	for (size_t i = 1; i < r->nnodes; i++) {
		node = goes_before(r->nodes[i], node) ? r->nodes[i] : node;
	}
	for (size_t i = 0; i < node->job->nstreams; i++) {
		struct ff_stream *s = node->job->streams[i];
		most = !most || s->nevents > most->nevents ? s : most;
	}
	*ret_node = node;
	return most;
}

static bool make_room(struct ff_runs *r)
{
	bool any = false;
	while (r->node_events > FF_NODE_EVENTS_ALL) {
		struct ff_run *node;
		struct ff_stream *s = fullest(r, &node);
		node->job->counts[FF_COUNT_node_events_dropped] +=
			ff_stream_expire(s, s->events[0].offset + 1);
		recount(r, node);
		any = true;
	}
	return any;
}

bool ff_node_expire(struct ff_runs *r, struct ff_run *node, ff_usec now_us)
{
	struct ff_job *job = node->job;
	size_t n = 0;
	for (size_t i = 0; i < job->nstreams; i++) {
		struct marks *m = marks_of(node->node, job, i, now_us);
		n += ff_stream_expire(job->streams[i], old_until(m, job->streams[i], now_us));
	}
	job->counts[FF_COUNT_node_events_expired] += n;
	recount(r, node);
	return make_room(r) || n;
}

/* ---- events of a node's stream, as they stand now */

struct events {
	const struct ff_event **v; /* by (offset, n) */
	size_t n, cap;
	struct ff_event *open; /* of open records */
	size_t nopen, copen;
};

static int by_place(const void *pa, const void *pb)
{
	const struct ff_event *a = *(const struct ff_event *const *)pa;
	const struct ff_event *b = *(const struct ff_event *const *)pb;
	if (a->offset != b->offset) {
		return a->offset < b->offset ? -1 : 1;
	}
	return (a->n > b->n) - (a->n < b->n);
}

static bool is_open(const struct events *l, const struct ff_event *e)
{
	for (size_t i = 0; i < l->nopen; i++) {
		if (l->open[i].offset == e->offset && l->open[i].n == e->n) {
			return true;
		}
	}
	return false;
}

static void collect(struct events *l, const struct ff_stream *s, const struct ff_digest *d)
{
	*l = (struct events){0};
	ff_stream_provisional(s, d, &l->open, &l->nopen, &l->copen);
	for (size_t i = 0; i < s->nevents; i++) {
		if (!is_open(l, &s->events[i])) {
			*FF_ARR_ADD(l->v, l->n, l->cap) = &s->events[i];
		}
	}
	for (size_t i = 0; i < l->nopen; i++) {
		*FF_ARR_ADD(l->v, l->n, l->cap) = &l->open[i];
	}
	if (l->n) {
		qsort(l->v, l->n, sizeof *l->v, by_place);
	}
}

static void events_finish(struct events *l)
{
	for (size_t i = 0; i < l->nopen; i++) {
		ff_event_finish(&l->open[i]);
	}
	free(l->open);
	free(l->v);
}

bool ff_node_has_news(struct ff_run *node)
{
	uint64_t hash = FF_HASH_INIT;
	struct ff_digest d = ff_job_digest(node->job);
	for (size_t i = 0; i < node->job->nstreams; i++) {
		const struct ff_stream *s = node->job->streams[i];
		struct events l;
		collect(&l, s, &d);
		for (size_t k = 0; k < l.n; k++) {
			const struct ff_event *e = l.v[k];
			uint64_t n[4] = {s->number, e->offset, e->count, e->text_len};
			hash = ff_str_hash(ff_str_n(n, sizeof n), hash);
		}
		events_finish(&l);
	}
	bool news = hash != node->node->news;
	node->node->news = hash;
	return news;
}

/* ---- joining */

/* Up to date; compared once in a round, however many runs are joined in it. */
static struct ff_reach *reach_of(struct ff_runs *r, struct ff_run *run)
{
	if (run->reach && run->reach_seen == r->join_round) {
		return run->reach;
	}
	run->reach_seen = r->join_round;
	uint64_t state = ff_reach_state(run->job);
	if (!run->reach || run->reach_state != state) {
		ff_reach_destroy(run->reach);
		r->reaches += !run->reach;
		run->reach = ff_reach_create(run->job);
		run->reach_state = state;
	}
	return run->reach;
}

/* Nothing is fed from here on until the next round begins. What was worked out about runs is kept,
 * up to a cap: then it is worked out anew. */
static void begin_round(struct ff_runs *r)
{
	r->join_round++;
	for (size_t i = 0; r->reaches > FF_REACHES_MAX && i < r->nruns; i++) {
		ff_reach_destroy(r->runs[i]->reach);
		r->runs[i]->reach = NULL;
	}
	r->reaches = r->reaches > FF_REACHES_MAX ? 0 : r->reaches;
}

static bool may_hear(const struct ff_runs *r, const struct ff_run *node, const struct ff_run *run)
{
	return ff_node_is_trusted(node) || !r->owner || r->owner(run) == node->node->owner;
}

/* Offline, all that is in an input of one job belongs to it. */
static bool is_lone(const struct ff_runs *r)
{
	return !r->owner && r->nruns == 1;
}

static bool has_scheduler(const struct ff_run *node)
{
	for (size_t i = 0; i < node->job->nstreams; i++) {
		if (node->job->streams[i]->origin.kind == FF_STREAM_SCHEDULER) {
			return true;
		}
	}
	return false;
}

static struct ff_str host_of(const struct ff_run *node)
{
	return ff_str_z(node->job->facts.run);
}

/* May a line of this node concern the run? */
static bool may_concern(
	struct ff_runs *r, const struct ff_run *node, struct ff_run *run, ff_usec now_us)
{
	bool over = now_us != FF_TIME_NONE && run->ended_us != FF_TIME_NONE &&
		now_us - run->ended_us > KEPT;
	return !over && may_hear(r, node, run) &&
		(is_lone(r) || has_scheduler(node) ||
			ff_reach_node(reach_of(r, run), host_of(node)));
}

/* A run that is joined with a node's logs. */
struct join {
	struct ff_runs *r;
	struct ff_run *run, *node;
	struct ff_str host;
	ff_usec now_us;
	bool asked; /* for rivals: other runs that lines of the node may fit */
	struct ff_run **rivals;
	size_t nrivals, crivals;
	size_t fits; /* asked of them */
};

static void find_rivals(struct join *j)
{
	for (size_t i = 0; i < j->r->nruns && !j->asked; i++) {
		struct ff_run *other = j->r->runs[i];
		if (other != j->run && may_concern(j->r, j->node, other, j->now_us)) {
			*FF_ARR_ADD(j->rivals, j->nrivals, j->crivals) = other;
		}
	}
	j->asked = true;
}

/* What a stranger's run says of itself is not known to be so: it takes no line away. */
static bool is_stranger(const struct ff_runs *r, const struct ff_run *a, const struct ff_run *b)
{
	return r->owner && r->owner(a) != r->owner(b);
}

/* How many runs the event fits as well as this one, or better where that is only a stranger's
 * word; 0: it is not this one's. */
static size_t count_fits(struct join *j, enum ff_stream_kind kind, const struct ff_event *e)
{
	bool named = ff_reach_is_named(reach_of(j->r, j->run), kind, e);
	enum ff_fit fit = ff_reach_fit(reach_of(j->r, j->run), j->host, kind, e);
	size_t n = 1;
	if (fit == FF_FIT_NONE || (fit == FF_FIT_UNTIMED && !is_lone(j->r))) {
		return 0;
	}
	find_rivals(j);
	if (j->nrivals > FF_NODE_FITS - j->fits) { /* nobody knows whose it is: it may be shared */
		j->run->job->counts[FF_COUNT_node_fits_cut]++;
		return 2;
	}
	j->fits += j->nrivals;
	for (size_t i = 0; i < j->nrivals; i++) {
		struct ff_reach *rival = reach_of(j->r, j->rivals[i]);
		enum ff_fit other = ff_reach_fit(rival, j->host, kind, e);
		bool other_named = other != FF_FIT_NONE && ff_reach_is_named(rival, kind, e);
		bool stranger = is_stranger(j->r, j->run, j->rivals[i]);
		if (stranger && named != other_named) { /* an id is the daemon's word for a job */
			if (other_named) {
				return 0;
			}
			continue;
		}
		if (other > fit && !stranger) {
			return 0;
		}
		n += other >= fit;
	}
	return n;
}

/* The run's view of this stream; NULL if there is none and `make` is false. */
static struct ff_stream *view_of(const struct join *j, const struct ff_stream *s, bool make)
{
	struct ff_buf source = {0};
	struct ff_job *job = j->run->job;
	const char *node = ff_reach_node(reach_of(j->r, j->run), j->host);
	ff_buf_addf(&source, VIEW_SOURCE "%s", s->origin.source);
	node = node ? node : s->origin.node;
	struct ff_origin origin = {.name = s->origin.name, .node = node, .source = source.p,
		.kind = s->origin.kind, .kind_declared = true, .fd = FF_FD_UNKNOWN,
		.rank = FF_UNKNOWN, .local_rank = FF_UNKNOWN, .attempt = FF_UNKNOWN,
		.pid = FF_UNKNOWN, .trusted = s->origin.trusted, .joined = true};
	struct ff_stream *view = ff_job_find_stream(job, node, origin.name, origin.source);
	if (make) {
		view = ff_job_stream(job, &origin);
	}
	ff_buf_finish(&source);
	return view && view->origin.joined ? view : NULL;
}

/* Before this offset the node's stream has forgotten what it had: what was joined stays. */
static uint64_t floor_of(const struct ff_stream *s, const struct events *l)
{
	return l->n ? l->v[0]->offset : ff_stream_resume(s);
}

struct list {
	struct ff_event *v;
	size_t n, cap;
};

static void add_copy(struct list *list, const struct ff_event *e, size_t jobs)
{
	char text[24];
	struct ff_event *copy = FF_ARR_ADD(list->v, list->n, list->cap);
	*copy = ff_event_copy(e);
	if (jobs > 1) {
		(void)snprintf(text, sizeof text, "%zu", jobs);
		ff_fields_set(&copy->fields, FF_F_jobs, ff_str_z(text));
	}
}

static bool join_stream(struct join *j, struct ff_stream *s)
{
	struct ff_digest d = ff_job_digest(j->node->job);
	struct ff_stream *view = view_of(j, s, false);
	struct events l;
	struct list list = {0};
	bool changed = false;
	collect(&l, s, &d);
	uint64_t kept = floor_of(s, &l);
	for (size_t i = 0; view && i < view->nevents; i++) {
		if (view->events[i].offset < kept) {
			add_copy(&list, &view->events[i], 1);
		}
	}
	for (size_t i = 0; i < l.n; i++) {
		size_t n = count_fits(j, s->origin.kind, l.v[i]);
		if (n) {
			add_copy(&list, l.v[i], n);
		}
	}
	events_finish(&l);
	view = view || !list.n ? view : view_of(j, s, true);
	if (view) {
		view->state = FF_STREAM_ENDED;
		changed = ff_stream_show(view, list.v, list.n, j->run->job->counts);
		list = (struct list){0};
	}
	for (size_t i = 0; i < list.n; i++) { /* the run has as many streams as it may */
		ff_event_finish(&list.v[i]);
	}
	free(list.v);
	return changed;
}

static bool join_node(
	struct ff_runs *r, struct ff_run *run, struct ff_run *node, ff_usec now_us)
{
	struct join j = {
		.r = r, .run = run, .node = node, .host = host_of(node), .now_us = now_us};
	bool changed = false;
	for (size_t i = 0; may_concern(r, node, run, now_us) && i < node->job->nstreams; i++) {
		changed |= join_stream(&j, node->job->streams[i]);
	}
	free(j.rivals);
	return changed;
}

bool ff_nodes_join(struct ff_runs *r, struct ff_run *run, ff_usec now_us)
{
	bool changed = false;
	begin_round(r);
	for (size_t i = 0; i < r->nnodes; i++) {
		changed |= join_node(r, run, r->nodes[i], now_us);
	}
	return changed;
}

void ff_nodes_join_all(struct ff_runs *r)
{
	for (size_t i = 0; i < r->nruns; i++) {
		(void)ff_nodes_join(r, r->runs[i], FF_TIME_NONE);
	}
}

uint32_t ff_nodes_news(struct ff_runs *r, uint32_t from, struct ff_run *const *nodes, size_t n,
	ff_usec now_us, ff_nodes_fn *changed, void *ud)
{
	begin_round(r);
	for (size_t i = ff_runs_below(r, from); i < r->nruns; i++) {
		uint32_t number = r->runs[i]->number;
		bool any = false;
		for (size_t k = 0; k < n; k++) {
			any |= join_node(r, r->runs[i], nodes[k], now_us);
		}
		if (!changed(ud, any ? r->runs[i] : NULL)) {
			return number + 1;
		}
	}
	return UINT32_MAX;
}
