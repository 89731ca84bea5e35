#include "base/arr.h"
#include "core/timeline_own.h"

#include <stdlib.h>

#define STALL_MIN (120 * FF_SECOND) /* shared/README.md 7: max(120 s, 10 x its own cadence) */

bool ff_sighting_is(const struct ff_sighting *s, const char *signature)
{
	size_t n = strlen(signature);
	return !strncmp(s->ev->signature, signature, n) && s->ev->signature[n] == '/';
}

/* ---- collecting */

static const char *event_id(
	struct ff_timeline *t, const struct ff_stream *s, const struct ff_event *e)
{
	if (e->n) {
		return ff_arena_fmt(
			&t->arena, "%s@%llu.%u", s->key, (unsigned long long)e->offset, e->n);
	}
	return ff_arena_fmt(&t->arena, "%s@%llu", s->key, (unsigned long long)e->offset);
}

static const struct ff_signature *find_signature(
	const struct ff_timeline *t, const struct ff_event *e)
{
	const struct ff_text *text = ff_map_get(&t->maps->texts, ff_str_z(e->signature));
	return text ? text->sig : ff_catalog_find(t->catalog, e->fault);
}

static void add_stream_event(struct ff_timeline *t, const struct ff_stream *s,
	const struct ff_event *e, bool provisional)
{
	struct ff_sighting *g = &t->all[t->nall++];
	*g = (struct ff_sighting){
		.ev = e,
		.stream = s,
		.sig = find_signature(t, e),
		.id = event_id(t, s, e),
		.rank = FF_UNKNOWN,
		.speaker = FF_UNKNOWN,
		.local_rank = FF_UNKNOWN,
		.attempt = e->attempt,
		.provisional = provisional,
		.shared = ff_event_int(e, FF_F_jobs, 1) > 1,
		.exit_code = e->kind == FF_EVENT_EXIT ? ff_timeline_exit_code(e) : FF_EXIT_UNKNOWN,
		.pid = ff_event_int(e, FF_F_pid, FF_UNKNOWN),
	};
	g->named = ff_timeline_named(t, e, &g->nnamed);
	g->node = ff_timeline_node_of(t, g);
	const char *clock = ff_timeline_clock_node(t, g);
	g->when = ff_when_of(&t->clocks, clock, s->number, e->stamp, &e->claimed);
}

/* A control object (exit@0.3) is shown and judged like an event of no stream. */
static void add_control(struct ff_timeline *t, const struct ff_control *c)
{
	static const struct {
		const char *key;
		enum ff_field_id id;
	} keys[] = {
		{"rank", FF_F_rank},
		{"local_rank", FF_F_local_rank},
		{"node", FF_F_node},
		{"pid", FF_F_pid},
		{"exit_code", FF_F_exit_code},
		{"signal", FF_F_signal},
	};
	struct ff_event *e = FF_ARENA_NEW(&t->arena, struct ff_event);
	enum ff_clock clock;
	ff_usec us = ff_control_time(c, &clock);
	e->kind = FF_EVENT_EXIT;
	e->role = FF_ROLE_CONTEXT;
	e->fault = ff_arena_strdup(&t->arena, "");
	e->signature = ff_arena_strdup(&t->arena, "");
	e->tag = FF_TAG_INIT;
	e->attempt = FF_UNKNOWN;
	e->stamp = FF_STAMP_NONE;
	e->claimed = FF_CLAIMED_NONE;
	e->count = 1;
	if (clock == FF_CLOCK_ARRIVED) {
		e->stamp.arrived = us;
	} else if (clock == FF_CLOCK_CAPTURED) {
		e->stamp.captured = us;
	}
	size_t nkeys = sizeof keys / sizeof keys[0];
	e->fields.v = FF_ARENA_ARR(&t->arena, struct ff_field, nkeys);
	for (int id = 0; id < FF_F_COUNT; id++) { /* fields stand in order of id */
		for (size_t i = 0; i < nkeys; i++) {
			const char *value = ff_control_get(c, keys[i].key);
			if ((int)keys[i].id == id && value && *value) {
				e->fields.v[e->fields.n++] = (struct ff_field){
					keys[i].id, ff_arena_strdup(&t->arena, value)};
			}
		}
	}
	e->fields.cap = e->fields.n;
	struct ff_sighting *g = &t->all[t->nall++];
	*g = (struct ff_sighting){
		.ev = e,
		.id = c->id,
		.rank = FF_UNKNOWN,
		.speaker = FF_UNKNOWN,
		.local_rank = FF_UNKNOWN,
		.attempt = (int32_t)ff_control_int(c, "attempt", FF_UNKNOWN),
		.exit_code = ff_timeline_exit_code(e),
		.pid = ff_event_int(e, FF_F_pid, FF_UNKNOWN),
	};
	g->node = ff_timeline_node_of(t, g);
	g->when = ff_when_control(&t->clocks, g->node, us, clock);
}

static bool is_exit_control(const struct ff_control *c)
{
	return !strncmp(c->id, "exit@", 5);
}

static int by_name(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static void collect_nodes(struct ff_timeline *t)
{
	const char **names = NULL;
	size_t n = 0, cap = 0;
	for (size_t i = 0; i < t->nstreams; i++) {
		if (t->streams[i]->origin.node) {
			*FF_ARR_ADD(names, n, cap) = t->streams[i]->origin.node;
		}
	}
	for (size_t i = 0; i < t->facts->ncontrols; i++) {
		const struct ff_control *c = t->facts->controls[i];
		const char *node = is_exit_control(c) ? ff_control_get(c, "node") : NULL;
		if (node && *node) {
			*FF_ARR_ADD(names, n, cap) = node;
		}
	}
	for (size_t i = 0; i < t->facts->nclocks; i++) {
		*FF_ARR_ADD(names, n, cap) = t->facts->clocks[i].node;
	}
	if (n) {
		qsort(names, n, sizeof *names, by_name);
	}
	t->nodes = FF_ARENA_ARR(&t->arena, const char *, n + 1);
	for (size_t i = 0; i < n; i++) {
		if (!t->nnodes || strcmp(t->nodes[t->nnodes - 1], names[i])) {
			t->nodes[t->nnodes++] = ff_arena_strdup(&t->arena, names[i]);
		}
	}
	free(names);
}

/* A stamp that knows its year, for those that don't (law 3): the least of the run. */
static ff_usec find_year_ref(const struct ff_timeline *t)
{
	ff_usec ref = FF_TIME_NONE;
	for (size_t i = 0; i < t->nstreams; i++) {
		const struct ff_stream *s = t->streams[i];
		for (size_t j = 0; j < s->nlanes; j++) {
			const struct ff_lane *l = s->lanes[j];
			ff_usec us = ff_stamp_us(l->first);
			if (!ff_usec_usable(us) && l->first_claimed.has_year) {
				us = l->first_claimed.us;
			}
			if (ff_usec_usable(us) && (ref == FF_TIME_NONE || us < ref)) {
				ref = us;
			}
		}
		for (size_t j = 0; j < s->nevents; j++) {
			const struct ff_claimed *c = &s->events[j].claimed;
			if (c->has_year && ff_usec_usable(c->us) &&
				(ref == FF_TIME_NONE || c->us < ref)) {
				ref = c->us;
			}
		}
	}
	return ref;
}

/* ---- order */

static int cmp_u64(uint64_t a, uint64_t b)
{
	return a < b ? -1 : a > b;
}

static int by_place(const struct ff_sighting *a, const struct ff_sighting *b)
{
	if (!a->stream || !b->stream) {
		if (!a->stream && !b->stream) {
			return strcmp(a->id, b->id);
		}
		return a->stream ? 1 : -1;
	}
	if (a->stream != b->stream) {
		return strcmp(a->stream->key, b->stream->key);
	}
	int d = cmp_u64(a->ev->offset, b->ev->offset);
	return d ? d : cmp_u64(a->ev->n, b->ev->n);
}

static int by_time(const void *pa, const void *pb)
{
	const struct ff_sighting *a = pa, *b = pb;
	if (a->attempt != b->attempt) {
		return a->attempt < b->attempt ? -1 : 1;
	}
	if (a->when.known != b->when.known) {
		return a->when.known ? -1 : 1;
	}
	if (a->when.known && a->when.domain != b->when.domain) {
		bool nodeless = a->when.domain < 0 && b->when.domain < 0;
		if (nodeless && a->stream != b->stream) {
			return by_place(
				a, b); /* not by the streams' numbers, which are of no order */
		}
		return a->when.domain < b->when.domain ? -1 : 1;
	}
	if (a->when.known && a->when.us != b->when.us) {
		return a->when.us < b->when.us ? -1 : 1;
	}
	return by_place(a, b);
}

enum ff_order ff_timeline_order(const struct ff_sighting *a, const struct ff_sighting *b)
{
	if (a->stream && a->stream == b->stream) {
		int d = by_place(a, b);
		return d < 0 ? FF_BEFORE : d > 0 ? FF_AFTER : FF_CANT_TELL;
	}
	return ff_when_order(a->when, b->when);
}

/* ---- state */

static void note_time(ff_usec us, ff_usec *latest)
{
	if (ff_usec_usable(us) && (*latest == FF_TIME_NONE || us > *latest)) {
		*latest = us;
	}
}

/* The latest arrived stamp of the run, else the latest captured one; never a claimed one. */
static ff_usec latest_stamp(const struct ff_timeline *t)
{
	ff_usec arrived = FF_TIME_NONE, captured = FF_TIME_NONE;
	for (size_t i = 0; i < t->nstreams; i++) {
		for (size_t j = 0; j < t->streams[i]->nlanes; j++) {
			note_time(t->streams[i]->lanes[j]->last.arrived, &arrived);
			note_time(t->streams[i]->lanes[j]->last.captured, &captured);
		}
	}
	for (size_t i = 0; i < t->nall; i++) {
		note_time(t->all[i].ev->stamp.arrived, &arrived);
		note_time(t->all[i].ev->stamp.captured, &captured);
	}
	for (size_t i = 0; i < t->facts->ncontrols; i++) {
		enum ff_clock clock = FF_CLOCK_NONE;
		ff_usec us = ff_control_time(t->facts->controls[i], &clock);
		note_time(clock == FF_CLOCK_ARRIVED ? us : FF_TIME_NONE, &arrived);
		note_time(clock == FF_CLOCK_CAPTURED ? us : FF_TIME_NONE, &captured);
	}
	return arrived != FF_TIME_NONE ? arrived : captured;
}

/* shared/README.md 7: progress that stopped for max(120 s, 10 x its cadence), by the daemon's
 * clock. */
static bool is_stalled(const struct ff_timeline *t)
{
	ff_usec last = FF_TIME_NONE, cadence = 0;
	if (t->ask.now_us == FF_TIME_NONE) {
		return false;
	}
	for (size_t i = 0; i < t->nstreams; i++) {
		for (size_t j = 0; j < t->streams[i]->nlanes; j++) {
			const struct ff_lane *l = t->streams[i]->lanes[j];
			ff_usec gap = ff_timeline_cadence(l);
			if (!l->progress.set || !gap) {
				continue;
			}
			note_time(l->progress.stamp.arrived, &last);
			cadence = gap > cadence ? gap : cadence;
		}
	}
	ff_usec limit = cadence * 10 > STALL_MIN ? cadence * 10 : STALL_MIN;
	return last != FF_TIME_NONE && t->ask.now_us - last > limit;
}

static void pair(struct ff_timeline *t, int round, const struct ff_stream *s, struct ff_stamp stamp,
	const struct ff_claimed *claimed)
{
	ff_clocks_pair(&t->clocks, round, s->origin.node, s->number, stamp, claimed);
}

/* Lines of which both stamps are known: sampled ones, first ones, progress, events. */
static void pair_lane(
	struct ff_timeline *t, int round, const struct ff_stream *s, const struct ff_lane *l)
{
	struct ff_claimed claimed;
	/* The lane's pairs came by the clock that its last line came by. */
	bool arrived = ff_usec_usable(l->last.arrived);
	for (size_t i = 0; i < l->npairs; i++) {
		ff_usec came = l->pairs[i].came;
		struct ff_stamp stamp = {
			arrived ? came : FF_TIME_NONE, arrived ? FF_TIME_NONE : came};
		pair(t, round, s, stamp, &l->pairs[i].claimed);
	}
	pair(t, round, s, l->first, &l->first_claimed);
	if (l->progress.set && l->progress.text &&
		ff_stamp_parse(ff_str_z(l->progress.text), &claimed)) {
		pair(t, round, s, l->progress.stamp, &claimed);
	}
}

static void collect_pairs(struct ff_timeline *t)
{
	for (int round = 0; round < 2; round++) {
		for (size_t i = 0; i < t->nstreams; i++) {
			const struct ff_stream *s = t->streams[i];
			for (size_t j = 0; j < s->nlanes; j++) {
				pair_lane(t, round, s, s->lanes[j]);
			}
			for (size_t j = 0; j < s->nevents; j++) {
				const struct ff_event *e = &s->events[j];
				pair(t, round, s, e->stamp, &e->claimed);
			}
		}
	}
}

static enum ff_run_state find_state(const struct ff_timeline *t)
{
	if (t->ask.offline || ff_facts_ended(t->facts)) {
		return FF_RUN_ENDED;
	}
	for (size_t i = 0; i < t->nall; i++) {
		const struct ff_sighting *s = &t->all[i];
		bool fault = s->weight == FF_WEIGHT_FULL && s->ev->role == FF_ROLE_PRIMARY;
		if (s->attempt != t->nattempts - 1) {
			continue;
		}
		if (fault && t->ask.now_us != FF_TIME_NONE && s->when.clock == FF_CLOCK_ARRIVED &&
			t->ask.now_us - s->when.us > STALL_MIN) {
			return FF_RUN_STALLED;
		}
		if (fault || (s->ev->kind == FF_EVENT_EXIT && s->exit_code != FF_EXIT_UNKNOWN)) {
			return FF_RUN_ENDING;
		}
	}
	return is_stalled(t) ? FF_RUN_STALLED : FF_RUN_RUNNING;
}

static bool is_final(const struct ff_timeline *t)
{
	if (t->ask.offline) {
		return true;
	}
	if (!ff_facts_ended(t->facts)) {
		return false;
	}
	for (size_t i = 0; i < t->nstreams; i++) {
		const struct ff_stream *s = t->streams[i];
		bool read = s->origin.tailed && s->read_to_end;
		if (s->state == FF_STREAM_OPEN && !read) {
			return false;
		}
	}
	return true;
}

/* ---- building */

static void collect_provisional(
	struct ff_timeline *t, const struct ff_digest *digest, size_t *counts)
{
	for (size_t i = 0; i < t->nstreams; i++) {
		size_t before = t->nprovisional;
		ff_stream_provisional(
			t->streams[i], digest, &t->provisional, &t->nprovisional, &t->cprovisional);
		counts[i] = t->nprovisional - before;
	}
}

/* An event that an open record repeats stands among the provisional ones, with its new count. */
static bool is_replaced(const struct ff_event *e, const struct ff_event *provisional, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		if (provisional[i].offset == e->offset && provisional[i].n == e->n) {
			return true;
		}
	}
	return false;
}

static void collect_events(struct ff_timeline *t, const struct ff_digest *digest)
{
	size_t total = t->facts->ncontrols, next = 0;
	size_t *counts = ff_xcalloc(t->nstreams + 1, sizeof *counts);
	collect_provisional(t, digest, counts);
	for (size_t i = 0; i < t->nstreams; i++) {
		total += t->streams[i]->nevents + counts[i];
	}
	t->all = FF_ARENA_ARR(&t->arena, struct ff_sighting, total + 1);
	for (size_t i = 0; i < t->nstreams; i++) {
		const struct ff_stream *s = t->streams[i];
		const struct ff_event *open = counts[i] ? t->provisional + next : NULL;
		for (size_t j = 0; j < s->nevents; j++) {
			if (!is_replaced(&s->events[j], open, counts[i])) {
				add_stream_event(t, s, &s->events[j], false);
			}
		}
		for (size_t j = 0; j < counts[i]; j++) {
			add_stream_event(t, s, &t->provisional[next++], true);
		}
	}
	free(counts);
	for (size_t i = 0; i < t->facts->ncontrols; i++) {
		if (is_exit_control(t->facts->controls[i])) {
			add_control(t, t->facts->controls[i]);
		}
	}
}

static int32_t find_world(const struct ff_timeline *t)
{
	int32_t world = ff_facts_world(t->facts);
	if (world == FF_UNKNOWN) {
		world = t->ask.world;
	}
	return world > 0 && world <= FF_RANKS_MAX ? world : FF_UNKNOWN;
}

/* A program or launcher said it; where they say several sizes (a job in parts), nobody knows. */
static int32_t world_of_text(const struct ff_timeline *t)
{
	int64_t world = FF_UNKNOWN, most = 0;
	for (size_t i = 0; i < t->nall; i++) {
		const struct ff_sighting *s = &t->all[i];
		int64_t n = ff_event_int(s->ev, FF_F_world, FF_UNKNOWN);
		if (s->ev->kind != FF_EVENT_FACT || n < 1) {
			continue;
		}
		if (world != FF_UNKNOWN && n != world) {
			return FF_UNKNOWN;
		}
		world = n;
	}
	for (size_t i = 0; i < t->nall; i++) {
		const struct ff_sighting *s = &t->all[i];
		int64_t rank = ff_event_int(s->ev, FF_F_rank, 0);
		most = rank > most ? rank : most;
	}
	for (size_t i = 0; i < t->nstreams; i++) {
		const struct ff_stream *s = t->streams[i];
		most = s->origin.rank > most ? s->origin.rank : most;
		for (size_t j = 0; j < s->nlanes; j++) {
			struct ff_tag tag = s->lanes[j]->tag;
			bool of_rank = tag.kind == FF_TAG_GLOBAL || tag.kind == FF_TAG_TASK;
			most = of_rank && tag.value > most ? tag.value : most;
		}
	}
	return world > most && world <= FF_RANKS_MAX ? (int32_t)world : FF_UNKNOWN;
}

static void find_senders(struct ff_timeline *t)
{
	for (size_t i = 0; i < t->nall; i++) {
		const struct ff_sighting *s = &t->all[i];
		if (!ff_timeline_is_sender(s)) {
			continue;
		}
		*FF_ARR_ADD(t->maps->senders, t->maps->nsenders, t->maps->csenders) =
			(struct ff_sender){s, s->rank, ff_sighting_is(s, "agent-forced")};
	}
}

void ff_timeline_init(struct ff_timeline *t, const struct ff_facts *facts,
	struct ff_stream *const *streams, size_t nstreams, const struct ff_digest *digest,
	const struct ff_ask *ask)
{
	*t = (struct ff_timeline){
		.facts = facts,
		.catalog = digest->catalog,
		.matcher = digest->matcher,
		.streams = streams,
		.nstreams = nstreams,
		.ask = *ask,
	};
	t->world = find_world(t);
	t->world_told = t->world != FF_UNKNOWN;
	t->maps = FF_ARENA_NEW(&t->arena, struct ff_timeline_maps);
	uint32_t most = 0;
	for (size_t i = 0; i < nstreams; i++) {
		most = streams[i]->number > most ? streams[i]->number : most;
	}
	for (size_t i = 0; i < ff_catalog_ntexts(t->catalog); i++) {
		const struct ff_text *text = ff_catalog_text(t->catalog, i);
		(void)ff_map_put(&t->maps->texts, ff_str_z(text->name), (void *)text);
	}
	t->maps->marks = FF_ARENA_ARR(&t->arena, struct ff_marks, (size_t)most + 1);
	collect_nodes(t);
	ff_clocks_init(&t->clocks, &t->arena, facts, t->nodes, t->nnodes, most + 1);
	t->clocks.year_ref = find_year_ref(t);
	collect_pairs(t);
	collect_events(t, digest);
	t->world = t->world != FF_UNKNOWN ? t->world : world_of_text(t);
	ff_timeline_find_attempts(t);
	ff_timeline_learn(t);
	for (size_t i = 0; i < t->nall; i++) {
		ff_timeline_resolve(t, &t->all[i]);
	}
	ff_timeline_resolve_records(t);
	ff_timeline_weigh(t);
	if (t->nall) {
		qsort(t->all, t->nall, sizeof *t->all, by_time);
	}
	find_senders(t);
	t->state = find_state(t);
	t->final = is_final(t);
	t->as_of = t->state == FF_RUN_ENDED ? latest_stamp(t) : ask->now_us;
	int32_t attempt = ask->attempt;
	if (attempt < 0 || attempt >= t->nattempts) {
		attempt = t->nattempts - 1;
	}
	ff_timeline_attempt(t, attempt);
}

void ff_timeline_finish(struct ff_timeline *t)
{
	if (!t->maps) {
		return;
	}
	uint32_t most = 0;
	for (size_t i = 0; i < t->nstreams; i++) {
		most = t->streams[i]->number > most ? t->streams[i]->number : most;
	}
	for (uint32_t i = 0; i <= most; i++) {
		free(t->maps->marks[i].v);
	}
	free(t->maps->senders);
	free(t->ranks);
	ff_map_finish(&t->maps->texts);
	ff_map_finish(&t->maps->local);
	ff_map_finish(&t->maps->pids);
	ff_map_finish(&t->maps->pcis);
	ff_map_finish(&t->maps->addrs);
	ff_map_finish(&t->maps->hosts);
	ff_map_finish(&t->maps->only);
	ff_map_finish(&t->maps->homes);
	for (size_t i = 0; i < t->nprovisional; i++) {
		ff_event_finish(&t->provisional[i]);
	}
	free(t->provisional);
	ff_arena_finish(&t->arena);
	*t = (struct ff_timeline){0};
}
