#include "core/reach.h"

#include "base/arr.h"

#include <stdlib.h>

#define ID_MOST 64u /* job ids that a run's own lines name; further ones are not looked at */

struct span {
	int32_t domain;
	ff_usec lo, hi;
};

struct ff_reach {
	struct ff_job *job;
	struct ff_arena arena;
	const char **nodes; /* by name */
	size_t nnodes, cnodes;
	/* when it is first asked for */
	bool built;
	struct ff_timeline t;
	struct ff_stream **streams; /* the job's own */
	size_t nstreams;
	struct span *spans;
	size_t nspans, cspans;
	ff_usec length; /* the longest of the spans */
	bool ended;
	struct ff_str ids[ID_MOST]; /* job ids that its own lines name */
	size_t nids;
	bool numbered; /* its id is a scheduler's number */
};

/* ---- nodes */

static int by_name(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static void add_node(struct ff_reach *r, const char *node)
{
	if (node && *node) {
		*FF_ARR_ADD(r->nodes, r->nnodes, r->cnodes) = ff_arena_strdup(&r->arena, node);
	}
}

static void add_told(struct ff_reach *r, struct ff_str list)
{
	while (list.n) {
		ptrdiff_t comma = ff_str_chr(list, ',', 0);
		size_t n = comma < 0 ? list.n : (size_t)comma;
		add_node(r, ff_arena_str(&r->arena, ff_str_n(list.p, n)));
		list = ff_str_skip(list, n + 1);
	}
}

static void collect_nodes(struct ff_reach *r)
{
	const struct ff_job *job = r->job;
	const struct ff_control *start = ff_facts_control(&job->facts, "job@start");
	for (size_t i = 0; i < job->nstreams; i++) {
		if (!job->streams[i]->origin.joined) {
			add_node(r, job->streams[i]->origin.node);
		}
	}
	for (size_t i = 0; i < job->facts.ncontrols; i++) {
		const struct ff_control *c = job->facts.controls[i];
		add_node(r, !strncmp(c->id, "exit@", 5) ? ff_control_get(c, "node") : NULL);
	}
	for (size_t i = 0; i < job->facts.nclocks; i++) {
		add_node(r, job->facts.clocks[i].node);
	}
	if (start && ff_control_get(start, "nodes")) {
		add_told(r, ff_str_z(ff_control_get(start, "nodes")));
	}
	if (r->nnodes) {
		qsort(r->nodes, r->nnodes, sizeof *r->nodes, by_name);
	}
	size_t kept = 0;
	for (size_t i = 0; i < r->nnodes; i++) {
		if (!kept || strcmp(r->nodes[kept - 1], r->nodes[i])) {
			r->nodes[kept++] = r->nodes[i];
		}
	}
	r->nnodes = kept;
}

/* One is the other, cut at its first dot. */
static bool is_same_host(struct ff_str a, struct ff_str b)
{
	struct ff_str s = a.n < b.n ? a : b, l = a.n < b.n ? b : a;
	bool cut = l.n > s.n && l.p[s.n] == '.' && !memchr(s.p, '.', s.n);
	return s.n && (l.n == s.n || cut) && !memcmp(l.p, s.p, s.n);
}

const char *ff_reach_node(const struct ff_reach *r, struct ff_str host)
{
	const char *found = NULL;
	size_t lo = 0, hi = r->nnodes;
	while (lo < hi) { /* the same spelling, if it is there */
		size_t mid = lo + (hi - lo) / 2;
		struct ff_str node = ff_str_z(r->nodes[mid]);
		size_t n = node.n < host.n ? node.n : host.n;
		int d = n ? memcmp(node.p, host.p, n) : 0;
		if (!d && node.n == host.n) {
			return r->nodes[mid];
		}
		if (d < 0 || (!d && node.n < host.n)) {
			lo = mid + 1;
		} else {
			hi = mid;
		}
	}
	for (size_t i = 0; i < r->nnodes && !found; i++) {
		found = is_same_host(ff_str_z(r->nodes[i]), host) ? r->nodes[i] : NULL;
	}
	return found;
}

/* ---- spans */

static void see_span(struct ff_reach *r, int32_t domain, ff_usec lo, ff_usec hi)
{
	for (size_t i = 0; i < r->nspans; i++) {
		struct span *s = &r->spans[i];
		if (s->domain == domain) {
			s->lo = lo < s->lo ? lo : s->lo;
			s->hi = hi > s->hi ? hi : s->hi;
			return;
		}
	}
	*FF_ARR_ADD(r->spans, r->nspans, r->cspans) = (struct span){domain, lo, hi};
}

static void see_when(struct ff_reach *r, struct ff_when w)
{
	if (w.known) {
		see_span(r, w.domain, w.lo, w.hi);
	}
	if (w.known && w.own_known && w.own_domain != w.domain) {
		see_span(r, w.own_domain, w.own_lo, w.own_hi);
	}
}

static void see_lane(struct ff_reach *r, const struct ff_stream *s, const struct ff_lane *l)
{
	const struct ff_clocks *c = &r->t.clocks;
	const char *node = s->origin.node;
	see_when(r, ff_when_of(c, node, s->number, l->first, &l->first_claimed));
	see_when(r, ff_when_of(c, node, s->number, l->last, NULL));
	see_when(r, ff_timeline_lane_when(&r->t, s, &l->progress));
	see_when(r, ff_timeline_lane_when(&r->t, s, &l->success));
	for (size_t i = 0; i < l->npairs; i++) {
		see_when(r, ff_when_of(c, node, s->number, FF_STAMP_NONE, &l->pairs[i].claimed));
	}
}

static void see_control(struct ff_reach *r, const char *id)
{
	const struct ff_control *c = ff_facts_control(&r->job->facts, id);
	enum ff_clock clock = FF_CLOCK_NONE;
	ff_usec us = c ? ff_control_time(c, &clock) : FF_TIME_NONE;
	see_when(r, ff_when_control(&r->t.clocks, NULL, us, clock));
}

static void see_times(struct ff_reach *r)
{
	for (size_t i = 0; i < r->nstreams; i++) {
		for (size_t k = 0; k < r->streams[i]->nlanes; k++) {
			see_lane(r, r->streams[i], r->streams[i]->lanes[k]);
		}
	}
	for (size_t i = 0; i < r->t.nall; i++) {
		see_when(r, r->t.all[i].when);
	}
	see_control(r, "job@start");
	see_control(r, "job@end");
	for (size_t i = 0; i < r->nspans; i++) {
		ff_usec length = r->spans[i].hi - r->spans[i].lo;
		r->length = length > r->length ? length : r->length;
	}
}

/* Nothing more is to come of it. */
static bool has_ended(const struct ff_reach *r)
{
	for (size_t i = 0; i < r->nstreams; i++) {
		if (r->streams[i]->state == FF_STREAM_OPEN) {
			return ff_facts_ended(&r->job->facts);
		}
	}
	return true;
}

/* ---- names */

/* "4711.0", "4711_3": what stands before its step, or its place in an array. */
static struct ff_str job_of_step(struct ff_str id)
{
	size_t n = 0;
	while (n < id.n && id.p[n] != '.' && id.p[n] != ',') {
		n++;
	}
	return ff_str_n(id.p, n);
}

static struct ff_str number_of(struct ff_str id)
{
	int64_t n;
	return ff_str_n(id.p, ff_str_digits(id, &n));
}

static bool is_number(struct ff_str id)
{
	size_t n = number_of(id).n;
	return n && (n == id.n || memchr("_+.", id.p[n], 3));
}

/* The job of slurmd's "[4711.0] ", "[4711.batch] " (SOURCES.md slurm-messages); empty: none. */
static struct ff_str job_of_prefix(const struct ff_event *e)
{
	struct ff_str s = {e->text, e->text_len};
	ptrdiff_t lf = ff_str_chr(s, '\n', 0);
	s.n = lf < 0 ? s.n : (size_t)lf;
	for (ptrdiff_t at = ff_str_chr(s, '[', 0); at >= 0; at = ff_str_chr(s, '[', 0)) {
		s = ff_str_skip(s, (size_t)at + 1);
		struct ff_str id = number_of(s), step = ff_str_skip(s, id.n);
		ptrdiff_t end = ff_str_chr(step, ']', 0);
		bool word = end > 1 && end <= 16 && step.p[0] == '.';
		for (ptrdiff_t i = 1; i < end && word; i++) {
			word = (step.p[i] >= 'a' && step.p[i] <= 'z') ||
				(step.p[i] >= '0' && step.p[i] <= '9');
		}
		if (id.n && word) {
			return id;
		}
	}
	return (struct ff_str){NULL, 0};
}

/* The job that a line names; empty: none. */
static struct ff_str job_named(enum ff_stream_kind kind, const struct ff_event *e)
{
	struct ff_str id = job_of_step(ff_event_field(e, FF_F_job));
	if (!id.n && kind == FF_STREAM_SCHEDULER) {
		id = job_of_prefix(e);
	}
	if (id.n) {
		return id;
	}
	struct ff_str path = ff_event_field(e, FF_F_cgroup); /* "/slurm/uid_0/job_4711/step_0" */
	ptrdiff_t at = ff_str_find(path, FF_STR("/job_"), 0);
	return at < 0 ? (struct ff_str){NULL, 0} : number_of(ff_str_skip(path, (size_t)at + 5));
}

static bool has_id(const struct ff_reach *r, struct ff_str id)
{
	struct ff_str own = ff_str_z(r->job->facts.job);
	if (ff_str_eq(id, own) || (r->numbered && ff_str_eq(id, number_of(own)))) {
		return true;
	}
	for (size_t i = 0; i < r->nids; i++) {
		if (ff_str_eq(r->ids[i], id)) {
			return true;
		}
	}
	return false;
}

bool ff_reach_is_named(
	const struct ff_reach *r, enum ff_stream_kind kind, const struct ff_event *e)
{
	struct ff_str id = job_named(kind, e);
	return id.n && ff_str_eqz(id, r->job->facts.job);
}

static void see_names(struct ff_reach *r)
{
	for (size_t i = 0; i < r->t.nall && r->nids < ID_MOST; i++) {
		const struct ff_stream *s = r->t.all[i].stream;
		enum ff_stream_kind kind = s ? s->origin.kind : FF_STREAM_MIXED;
		struct ff_str id = job_named(kind, r->t.all[i].ev);
		if (id.n && !has_id(r, id)) {
			r->ids[r->nids++] = id;
		}
	}
}

/* ---- life */

static void build(struct ff_reach *r)
{
	struct ff_job *job = r->job;
	struct ff_digest d = ff_job_digest(job);
	struct ff_ask ask = {.offline = true, .now_us = FF_TIME_NONE, .attempt = FF_UNKNOWN,
		.world = FF_UNKNOWN};
	if (r->built) {
		return;
	}
	r->built = true;
	r->streams = ff_xcalloc(job->nstreams + 1, sizeof(struct ff_stream *));
	for (size_t i = 0; i < job->nstreams; i++) {
		if (!job->streams[i]->origin.joined) {
			r->streams[r->nstreams++] = job->streams[i];
		}
	}
	ff_timeline_init(&r->t, &job->facts, r->streams, r->nstreams, &d, &ask);
	r->ended = has_ended(r);
	see_times(r);
	see_names(r);
}

struct ff_reach *ff_reach_create(struct ff_job *job)
{
	struct ff_reach *r = ff_xcalloc(1, sizeof *r);
	r->job = job;
	r->numbered = is_number(ff_str_z(job->facts.job));
	collect_nodes(r);
	return r;
}

void ff_reach_destroy(struct ff_reach *r)
{
	if (!r) {
		return;
	}
	if (r->built) {
		ff_timeline_finish(&r->t);
	}
	free(r->streams);
	free(r->spans);
	free(r->nodes);
	ff_arena_finish(&r->arena);
	free(r);
}

static uint64_t add_to(uint64_t hash, uint64_t a, uint64_t b)
{
	uint64_t n[2] = {a, b};
	return ff_str_hash(ff_str_n(n, sizeof n), hash);
}

uint64_t ff_reach_state(const struct ff_job *job)
{
	const struct ff_facts *f = &job->facts;
	uint64_t hash = add_to(FF_HASH_INIT, f->ncontrols, f->contradictions);
	for (size_t i = 0; i < job->nstreams; i++) {
		const struct ff_stream *s = job->streams[i];
		if (!s->origin.joined) {
			hash = add_to(hash, s->fed, s->nevents);
			hash = add_to(hash, s->nlanes, (uint64_t)s->state);
		}
	}
	for (size_t i = 0; i < f->ncontrols; i++) {
		hash = add_to(hash, i, f->controls[i]->nvalues);
	}
	for (size_t i = 0; i < f->nclocks; i++) {
		hash = add_to(hash, i, f->clocks[i].nsamples);
	}
	return hash;
}

/* ---- fitting */

enum place { PLACE_OUT, PLACE_UNKNOWN, PLACE_NEAR, PLACE_IN };

static enum place place_on(const struct ff_reach *r, int32_t domain, ff_usec lo, ff_usec hi)
{
	for (size_t i = 0; i < r->nspans; i++) {
		const struct span *s = &r->spans[i];
		if (s->domain != domain) {
			continue;
		}
		ff_usec end = s->hi > s->lo + r->length ? s->hi : s->lo + r->length;
		ff_usec open = r->ended ? end : s->hi + FF_REACH_OPEN;
		if (hi >= s->lo && lo <= open) {
			return PLACE_IN;
		}
		bool near = hi >= s->lo - FF_REACH_BEFORE && lo <= end + FF_REACH_AFTER;
		return near ? PLACE_NEAR : PLACE_OUT;
	}
	return PLACE_UNKNOWN;
}

/* What a line claims is its node's clock, whatever the way to the collector did to it. */
static enum place place_of(const struct ff_reach *r, struct ff_when w)
{
	enum place own = PLACE_UNKNOWN;
	if (!w.known) {
		return PLACE_UNKNOWN;
	}
	if (w.own_known) {
		own = place_on(r, w.own_domain, w.own_lo, w.own_hi);
	}
	return own != PLACE_UNKNOWN ? own : place_on(r, w.domain, w.lo, w.hi);
}

static enum place place_of_event(
	const struct ff_reach *r, const char *node, const struct ff_event *e)
{
	enum place place = place_of(r, ff_when_of(&r->t.clocks, node, 0, e->stamp, &e->claimed));
	enum place last = e->count > 1 ?
		place_of(r, ff_when_of(&r->t.clocks, node, 0, e->last.stamp, NULL)) : place;
	return last != PLACE_UNKNOWN && last > place ? last : place;
}

/* The first of a list of hosts that is one of the run's; NULL. *any: the list is not empty. */
static const char *listed_node(const struct ff_reach *r, struct ff_str list, bool *any)
{
	while (list.n) {
		ptrdiff_t comma = ff_str_chr(list, ',', 0);
		size_t n = comma < 0 ? list.n : (size_t)comma;
		const char *node = ff_reach_node(r, ff_str_n(list.p, n));
		*any = true;
		if (node) {
			return node;
		}
		list = ff_str_skip(list, n + 1);
	}
	return NULL;
}

/* The node that an event of this stream is about, as the run calls it. A controller's lines are
 * about the nodes that they name. *ret_other: about others only. */
static const char *node_about(const struct ff_reach *r, const char *node, enum ff_stream_kind kind,
	const struct ff_event *e, bool *ret_other)
{
	bool any = false;
	const char *named = kind == FF_STREAM_SCHEDULER ?
		listed_node(r, ff_event_field(e, FF_F_node), &any) : NULL;
	*ret_other = any && !named;
	return named ? named : node;
}

enum ff_fit ff_reach_fit(struct ff_reach *r, struct ff_str host, enum ff_stream_kind kind,
	const struct ff_event *e)
{
	bool other;
	const char *own = ff_reach_node(r, host);
	const char *node = node_about(r, own, kind, e, &other);
	struct ff_str id = job_named(kind, e), job = ff_str_z(r->job->facts.job);
	bool plain = r->numbered && number_of(job).n == job.n;
	if (id.n && plain && !ff_str_eq(id, job)) {
		return FF_FIT_NONE; /* most of a controller's lines: no need to look any further */
	}
	build(r);
	bool named = id.n && has_id(r, id);
	if (id.n && !named && (r->numbered || r->nids)) {
		return FF_FIT_NONE;
	}
	enum place place = place_of_event(r, own, e);
	/* pids and devices are used again: without a time they prove nothing */
	named = named || (own && place != PLACE_UNKNOWN && ff_timeline_knows(&r->t, own, e));
	if (!named && (other || (!node && host.n && r->nnodes))) {
		return FF_FIT_NONE;
	}
	switch (place) {
	case PLACE_OUT: return FF_FIT_NONE;
	case PLACE_UNKNOWN: return named ? FF_FIT_NAMED_UNTIMED : FF_FIT_UNTIMED;
	case PLACE_NEAR: return named ? FF_FIT_NAMED_NEAR : node ? FF_FIT_NEAR : FF_FIT_UNTIMED;
	case PLACE_IN: return named ? FF_FIT_NAMED_IN : node ? FF_FIT_IN : FF_FIT_UNTIMED;
	}
	return FF_FIT_NONE;
}
