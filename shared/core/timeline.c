#include "core/timeline.h"
#include "base/arr.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>

#define RANKS_IN_TEXT 4096 /* ranks of one list that are kept; a longer list is kept in part */
#define ONE_NODE_RANKS 16  /* a larger world is not taken for one node without a word about it */
#define HABIT_STEPS 4      /* progress lines that make a habit */
#define STALL_MIN (120 * FF_SECOND) /* shared/README.md 7: max(120 s, 10 x its own cadence) */

struct restart { /* from this offset on, the stream speaks of this attempt */
	uint64_t offset;
	int32_t attempt;
};

struct sender { /* a launcher's "sending this pid a signal" */
	const struct ff_sighting *s;
	int32_t rank; /* FF_UNKNOWN: nobody says whose pid it is */
	bool forced;
};

struct marks { /* of one stream */
	struct restart *v;
	size_t n, cap;
};

struct ff_timeline_maps {
	struct ff_map local; /* PLACE, attempt, local rank -> global rank + 1 */
	struct ff_map pids;  /* node (or nothing), pid -> global rank + 1; CLASH: of several */
	struct ff_map only;  /* attempt, global rank -> its stream; CLASH: of several */
	struct ff_map homes; /* attempt, global rank -> struct home */
	struct ff_map texts; /* name of a catalogue text -> struct ff_text */
	struct marks *marks; /* one a stream */
	struct sender *senders;
	size_t nsenders, csenders;
	bool local_is_global;   /* one node only, and nothing speaks against it */
	bool tasks_are_agents;  /* srun starts one launcher a node */
	bool tasks_are_partial; /* several steps at once: srun's reports count within each */
	bool bad_exit;          /* a process of the last attempt left with an error */
	bool one_rank;          /* whatever says nothing of its rank is rank 0 */
	ff_usec *begins;        /* by attempt: earliest arrived stamp, FF_TIME_NONE */
};

struct home {
	const char *node;
	int32_t local_rank;
	int64_t pid;
};

static const char clash = 0; /* its address: a pid or stream of several ranks */

/* ---- signals */

static const struct {
	int sig;
	const char *name, *words, *fault;
} signals[] = {
	{1, "SIGHUP", "Hangup", "sighup"},
	{2, "SIGINT", "Interrupt", NULL},
	{3, "SIGQUIT", "Quit", NULL},
	{4, "SIGILL", "Illegal instruction", NULL},
	{5, "SIGTRAP", "Trace/breakpoint trap", NULL},
	{6, "SIGABRT", "Aborted", "sigabrt"},
	{7, "SIGBUS", "Bus error", "sigbus"},
	{8, "SIGFPE", "Floating point exception", "sigfpe"},
	{9, "SIGKILL", "Killed", "sigkill"},
	{10, "SIGUSR1", "User defined signal 1", NULL},
	{11, "SIGSEGV", "Segmentation fault", "sigsegv"},
	{12, "SIGUSR2", "User defined signal 2", NULL},
	{13, "SIGPIPE", "Broken pipe", NULL},
	{14, "SIGALRM", "Alarm clock", NULL},
	{15, "SIGTERM", "Terminated", "sigterm"},
	{24, "SIGXCPU", "CPU time limit exceeded", NULL},
	{25, "SIGXFSZ", "File size limit exceeded", NULL},
};

#define NSIGNALS (sizeof signals / sizeof signals[0])

int ff_signal_parse(struct ff_str s)
{
	static const struct ff_str python = {"Signals.", 8};
	s = ff_str_trim(s);
	if (ff_str_starts(s, python)) {
		s = ff_str_skip(s, python.n);
	}
	int64_t n = 0;
	if (s.n && *s.p == '-') {
		s = ff_str_skip(s, 1);
	}
	size_t digits = ff_str_digits(s, &n);
	if (digits) { /* "9", or "9 (SIGKILL)" */
		return n < 65 && (digits == s.n || s.p[digits] == ' ') ? (int)n : 0;
	}
	for (size_t i = 0; i < NSIGNALS; i++) {
		struct ff_str name = ff_str_z(signals[i].name);
		if (ff_str_starts(s, name) && (s.n == name.n || s.p[name.n] == ' ')) {
			return signals[i].sig;
		}
		if (ff_str_starts(s, ff_str_z(signals[i].words)) ||
			ff_str_eqz(s, signals[i].name + 3)) {
			return signals[i].sig;
		}
	}
	return 0;
}

const char *ff_signal_name(int sig)
{
	for (size_t i = 0; i < NSIGNALS; i++) {
		if (signals[i].sig == sig) {
			return signals[i].name;
		}
	}
	return NULL;
}

const char *ff_signal_fault(int sig)
{
	for (size_t i = 0; i < NSIGNALS; i++) {
		if (signals[i].sig == sig) {
			return signals[i].fault;
		}
	}
	return NULL;
}

int ff_exit_signal(int32_t code)
{
	if (code == FF_EXIT_UNKNOWN) {
		return 0;
	}
	if (code < 0 && code > -65) {
		return -code;
	}
	/* A shell's or container's way to say "by signal N"; only where N is one that kills. */
	return code > 128 && code < 160 && ff_signal_fault(code - 128) ? code - 128 : 0;
}

/* ---- keys of the maps */

struct key {
	char buf[FF_NAME_MAX + 80];
};

static struct ff_str key_of(struct key *k, const char *place, int64_t a, int64_t b)
{
	int n = snprintf(k->buf, sizeof k->buf, "%lld/%lld/%.*s", (long long)a, (long long)b,
		(int)FF_NAME_MAX, place ? place : "");
	return ff_str_n(k->buf, (size_t)n);
}

static void *rank_value(int32_t rank)
{
	return (void *)((uintptr_t)rank + 1);
}

static int32_t value_rank(const void *v)
{
	return !v || v == &clash ? FF_UNKNOWN : (int32_t)((uintptr_t)v - 1);
}

static bool rank_fits(const struct ff_timeline *t, int64_t rank)
{
	return rank >= 0 && rank < (t->world > 0 ? t->world : FF_RANKS_MAX);
}

/* Where a stream's local ranks and pids count: its node, else the stream itself. */
static const char *place_of(const struct ff_stream *s)
{
	return s->origin.node ? s->origin.node : s->key;
}

static void put_local(
	struct ff_timeline *t, const char *place, int32_t attempt, int64_t local, int64_t rank)
{
	if (!rank_fits(t, rank) || local < 0 || local > FF_RANKS_MAX) {
		return;
	}
	struct key k;
	struct ff_str key = key_of(&k, place, attempt, local);
	if (!ff_map_get(&t->maps->local, key)) {
		(void)ff_map_put(&t->maps->local, key, rank_value((int32_t)rank));
	}
	if (local != rank) {
		t->maps->local_is_global = false;
	}
}

/* A pid that two ranks have (two nodes without names) is nobody's. */
static void put_pid(struct ff_timeline *t, const char *node, int64_t pid, int32_t rank)
{
	if (pid <= 0 || !rank_fits(t, rank)) {
		return;
	}
	struct key k;
	for (int i = 0; i < 2; i++) {
		struct ff_str key = key_of(&k, i ? NULL : node, pid, 0);
		const void *old = ff_map_get(&t->maps->pids, key);
		if (!old) {
			(void)ff_map_put(&t->maps->pids, key, rank_value(rank));
		} else if (value_rank(old) != rank) {
			(void)ff_map_put(&t->maps->pids, key, (void *)&clash);
		}
		if (!node) {
			break;
		}
	}
}

static int32_t find_pid(const struct ff_timeline *t, const char *node, int64_t pid)
{
	struct key k;
	if (pid <= 0) {
		return FF_UNKNOWN;
	}
	const void *v = node ? ff_map_get(&t->maps->pids, key_of(&k, node, pid, 0)) : NULL;
	if (!v) {
		v = ff_map_get(&t->maps->pids, key_of(&k, NULL, pid, 0));
	}
	return value_rank(v);
}

static const struct home nowhere = {NULL, FF_UNKNOWN, FF_UNKNOWN};

/* What is known of a rank's place; never NULL. */
static const struct home *find_home(const struct ff_timeline *t, int32_t attempt, int32_t rank)
{
	struct key k;
	const struct home *h = ff_map_get(&t->maps->homes, key_of(&k, NULL, attempt, rank));
	return h ? h : &nowhere;
}

static struct home *home_of(struct ff_timeline *t, int32_t attempt, int32_t rank)
{
	struct key k;
	struct ff_str key = key_of(&k, NULL, attempt, rank);
	struct home *h = ff_map_get(&t->maps->homes, key);
	if (!h) {
		h = FF_ARENA_NEW(&t->arena, struct home);
		*h = nowhere;
		(void)ff_map_put(&t->maps->homes, key, h);
	}
	return h;
}

/* ---- attempts */

static const struct marks *marks_of(const struct ff_timeline *t, const struct ff_stream *s)
{
	return &t->maps->marks[s->number];
}

static int32_t attempt_at(const struct ff_timeline *t, const struct ff_stream *s, uint64_t offset)
{
	if (s->origin.attempt != FF_UNKNOWN) {
		return s->origin.attempt;
	}
	const struct marks *m = marks_of(t, s);
	int32_t attempt = 0;
	for (size_t i = 0; i < m->n && m->v[i].offset < offset; i++) {
		attempt = m->v[i].attempt;
	}
	return attempt;
}

static void add_mark(struct marks *m, uint64_t offset, int32_t attempt)
{
	if (attempt < 1 || (m->n && m->v[m->n - 1].attempt >= attempt)) {
		return;
	}
	*FF_ARR_ADD(m->v, m->n, m->cap) = (struct restart){offset, attempt};
}

static int32_t declared_attempts(const struct ff_timeline *t)
{
	int32_t most = 0;
	for (size_t i = 0; i < t->nstreams; i++) {
		const struct ff_stream *s = t->streams[i];
		if (s->origin.attempt > most && s->origin.attempt < 10000) {
			most = s->origin.attempt;
		}
	}
	return most;
}

/* Several agents in one stream repeat the same "N attempts left": equal numbers are one restart. */
static void find_marks(struct ff_timeline *t, const struct ff_stream *s, int32_t declared)
{
	struct marks *m = &t->maps->marks[s->number];
	int64_t left_first = FF_UNKNOWN;
	int32_t failed_lines = 0;
	for (size_t i = 0; i < s->nevents; i++) {
		const struct ff_event *e = &s->events[i];
		int64_t count = ff_event_int(e, FF_F_restart_count, FF_UNKNOWN);
		int64_t left = ff_event_int(e, FF_F_attempts_left, FF_UNKNOWN);
		if (e->kind == FF_EVENT_FACT && count >= 0 && count < 10000) {
			/* The rendezvous result comes at the head of its attempt. */
			add_mark(m, e->offset ? e->offset - 1 : 0, (int32_t)count);
		} else if (e->kind == FF_EVENT_FACT && left >= 0 && left < 10000) {
			if (left_first == FF_UNKNOWN) {
				left_first = left;
			}
			add_mark(m, e->offset, (int32_t)(left_first - left + 1));
		}
	}
	if (m->n || s->origin.kind != FF_STREAM_AGENT || s->origin.attempt != FF_UNKNOWN) {
		return;
	}
	/* Restarts are told at level INFO only; "failed (exitcode: ..." comes once a life. */
	for (size_t i = 0; i < s->nevents && failed_lines < declared; i++) {
		const struct ff_event *e = &s->events[i];
		if (e->kind == FF_EVENT_EXIT && ff_event_field(e, FF_F_local_rank).n &&
			ff_event_field(e, FF_F_pid).n && !ff_event_field(e, FF_F_rank).n) {
			add_mark(m, e->offset, ++failed_lines);
		}
	}
}

/* A kernel's or scheduler's word belongs to the attempt during which it was said. */
static int32_t attempt_by_time(const struct ff_timeline *t, struct ff_when when)
{
	int32_t attempt = t->nattempts - 1;
	if (!when.known || when.clock != FF_CLOCK_ARRIVED) {
		return attempt;
	}
	while (attempt > 0 &&
		(t->maps->begins[attempt] == FF_TIME_NONE || t->maps->begins[attempt] > when.us)) {
		attempt--;
	}
	return attempt;
}

/* ---- ranks */

static int32_t local_to_global(
	const struct ff_timeline *t, const char *place, int32_t attempt, int64_t local)
{
	struct key k;
	if (local < 0) {
		return FF_UNKNOWN;
	}
	for (int32_t a = attempt; a >= 0; a = a > 0 ? 0 : -1) {
		const void *v = ff_map_get(&t->maps->local, key_of(&k, place, a, local));
		if (v) {
			return value_rank(v);
		}
	}
	return t->maps->local_is_global && rank_fits(t, local) ? (int32_t)local : FF_UNKNOWN;
}

static int32_t tag_rank(
	const struct ff_timeline *t, const struct ff_stream *s, struct ff_tag tag, int32_t attempt)
{
	switch (tag.kind) {
	case FF_TAG_GLOBAL: return rank_fits(t, tag.value) ? (int32_t)tag.value : FF_UNKNOWN;
	case FF_TAG_LOCAL: return local_to_global(t, place_of(s), attempt, tag.value);
	case FF_TAG_TASK:
		return !t->maps->tasks_are_agents && rank_fits(t, tag.value) ? (int32_t)tag.value
									     : FF_UNKNOWN;
	case FF_TAG_PID: return find_pid(t, s->origin.node, tag.value);
	case FF_TAG_NONE:
	case FF_TAG_GROUP:
	case FF_TAG_HOST: return FF_UNKNOWN;
	}
	return FF_UNKNOWN;
}

/* Who prints the lines of this stream with this tag. */
static int32_t speaker_of(
	const struct ff_timeline *t, const struct ff_stream *s, struct ff_tag tag, int32_t attempt)
{
	if (s->origin.rank != FF_UNKNOWN) {
		return rank_fits(t, s->origin.rank) ? s->origin.rank : FF_UNKNOWN;
	}
	if (s->origin.kind == FF_STREAM_RANK && s->origin.local_rank != FF_UNKNOWN) {
		int32_t r = local_to_global(t, place_of(s), attempt, s->origin.local_rank);
		if (r != FF_UNKNOWN) {
			return r;
		}
	}
	int32_t r = tag_rank(t, s, tag, attempt);
	if (r == FF_UNKNOWN && t->maps->one_rank &&
		(s->origin.kind == FF_STREAM_RANK || s->origin.kind == FF_STREAM_MIXED)) {
		return 0;
	}
	return r;
}

static const int32_t *named_ranks(struct ff_timeline *t, const struct ff_event *e, size_t *ret_n)
{
	static const enum ff_field_id lists[] = {FF_F_failed_ranks, FF_F_missing_ranks, FF_F_tasks};
	*ret_n = 0;
	for (size_t i = 0; i < sizeof lists / sizeof lists[0]; i++) {
		struct ff_str text = ff_event_field(e, lists[i]);
		int32_t some[RANKS_IN_TEXT];
		size_t n = text.n ? ff_ranks_parse(text, some, RANKS_IN_TEXT) : 0;
		n = n < RANKS_IN_TEXT ? n : RANKS_IN_TEXT;
		size_t kept = 0;
		for (size_t j = 0; j < n; j++) {
			if (rank_fits(t, some[j])) {
				some[kept++] = some[j];
			}
		}
		if (kept) {
			int32_t *list = FF_ARENA_ARR(&t->arena, int32_t, kept);
			memcpy(list, some, kept * sizeof *list);
			*ret_n = kept;
			return list;
		}
	}
	return NULL;
}

static int32_t exit_code_of(const struct ff_event *e)
{
	int sig = ff_signal_parse(ff_event_field(e, FF_F_signal));
	if (sig) {
		return -sig;
	}
	int64_t code = ff_event_int(e, FF_F_exit_code, FF_EXIT_UNKNOWN);
	return code >= INT32_MIN && code <= INT32_MAX ? (int32_t)code : FF_EXIT_UNKNOWN;
}

bool ff_sighting_is(const struct ff_sighting *s, const char *signature)
{
	size_t n = strlen(signature);
	return !strncmp(s->ev->signature, signature, n) && s->ev->signature[n] == '/';
}

static bool is_sender(const struct ff_sighting *s)
{
	return ff_sighting_is(s, "agent-closing") || ff_sighting_is(s, "agent-forced");
}

/* The node of an event: its stream's, else the one that the text gives. */
static const char *node_of(struct ff_timeline *t, const struct ff_sighting *s)
{
	if (s->stream && s->stream->origin.node) {
		return s->stream->origin.node;
	}
	struct ff_str text = ff_event_field(s->ev, FF_F_node);
	if (!text.n) {
		text = ff_event_field(s->ev, FF_F_host);
	}
	for (size_t i = 0; i < t->nnodes; i++) {
		if (ff_str_eqz(text, t->nodes[i])) {
			return t->nodes[i];
		}
	}
	return text.n && text.n <= FF_JOB_ID_MAX ? ff_arena_str(&t->arena, text) : NULL;
}

static bool tasks_are_ranks(const struct ff_timeline *t)
{
	return !t->maps->tasks_are_agents && !t->maps->tasks_are_partial;
}

/* What an event says itself about who ended: rank, local rank, task or pid. */
static int32_t rank_of_text(struct ff_timeline *t, const struct ff_sighting *s)
{
	const struct ff_event *e = s->ev;
	int64_t rank = ff_event_int(e, FF_F_rank, FF_UNKNOWN);
	if (rank != FF_UNKNOWN) {
		return rank_fits(t, rank) ? (int32_t)rank : FF_UNKNOWN;
	}
	if (s->nnamed == 1 && (!ff_event_field(e, FF_F_tasks).n || tasks_are_ranks(t))) {
		return s->named[0];
	}
	int64_t local = ff_event_int(e, FF_F_local_rank, FF_UNKNOWN);
	if (local != FF_UNKNOWN && s->stream) {
		int32_t r = local_to_global(t, place_of(s->stream), s->attempt, local);
		if (r != FF_UNKNOWN) {
			return r;
		}
	}
	return find_pid(t, s->node, s->pid);
}

static void set_home(struct ff_timeline *t, struct ff_sighting *s)
{
	s->local_rank = (int32_t)ff_event_int(s->ev, FF_F_local_rank, FF_UNKNOWN);
	if (s->rank == FF_UNKNOWN) {
		return;
	}
	const struct home *h = find_home(t, s->attempt, s->rank);
	s->local_rank = h->local_rank != FF_UNKNOWN ? h->local_rank : s->local_rank;
	if (h->node && s->rank != s->speaker) {
		s->node = h->node;
	}
	s->node = s->node ? s->node : h->node;
}

static void resolve(struct ff_timeline *t, struct ff_sighting *s)
{
	const struct ff_event *e = s->ev;
	if (s->stream) {
		s->speaker = speaker_of(t, s->stream, e->tag, s->attempt);
	}
	if (e->kind == FF_EVENT_EXIT || is_sender(s)) {
		s->rank = rank_of_text(t, s);
	} else if (s->nnamed == 1 && ff_event_field(e, FF_F_failed_ranks).n) {
		/* "(RANK 3)", dict_keys([3]): the text says whose fault it is. */
		s->rank = s->named[0];
	} else if (e->role == FF_ROLE_PRIMARY &&
		rank_fits(t, ff_event_int(e, FF_F_rank, FF_UNKNOWN))) {
		s->rank = (int32_t)ff_event_int(e, FF_F_rank, FF_UNKNOWN);
	} else {
		s->rank = s->speaker != FF_UNKNOWN ? s->speaker : rank_of_text(t, s);
	}
	if (s->speaker == FF_UNKNOWN && e->kind == FF_EVENT_FAULT && e->count > 1 &&
		t->world != 1) {
		s->rank =
			FF_UNKNOWN; /* folded lines of several ranks: the first one's name is one */
	}
	set_home(t, s);
}

/* What stands in one record with "(RANK 3)" is that rank's too: the copy of its traceback. The
 * events of a stream stand in order of their record here. */
static void resolve_records(struct ff_timeline *t)
{
	for (size_t i = 0; i < t->nall;) {
		size_t end = i + 1;
		const struct ff_sighting *names = NULL;
		while (end < t->nall && t->all[i].stream &&
			t->all[end].stream == t->all[i].stream &&
			t->all[end].ev->offset == t->all[i].ev->offset) {
			end++;
		}
		for (size_t j = i; j < end; j++) {
			const struct ff_sighting *s = &t->all[j];
			bool says = s->nnamed == 1 && ff_event_field(s->ev, FF_F_failed_ranks).n;
			names = !names && says ? s : names;
		}
		for (size_t j = i; names && j < end; j++) {
			if (t->all[j].ev->kind == FF_EVENT_FAULT) {
				t->all[j].rank = names->named[0];
				set_home(t, &t->all[j]);
			}
		}
		i = end;
	}
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
		.exit_code = e->kind == FF_EVENT_EXIT ? exit_code_of(e) : FF_EXIT_UNKNOWN,
		.pid = ff_event_int(e, FF_F_pid, FF_UNKNOWN),
	};
	g->named = named_ranks(t, e, &g->nnamed);
	g->node = node_of(t, g);
	g->when = ff_when_of(&t->clocks, g->node, s->number, e->stamp, &e->claimed);
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
		.exit_code = exit_code_of(e),
		.pid = ff_event_int(e, FF_F_pid, FF_UNKNOWN),
	};
	g->node = node_of(t, g);
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

/* ---- who is who */

static bool is_launcher(const char *name)
{
	static const char *const many[] = {
		"torchrun", "accelerate", "deepspeed", "elastic", "lightning", "ray"};
	for (size_t i = 0; name && i < sizeof many / sizeof many[0]; i++) {
		if (!strcmp(name, many[i])) {
			return true;
		}
	}
	return false;
}

static bool single_node(const struct ff_timeline *t)
{
	size_t agents = 0, mixed = 0;
	for (size_t i = 0; i < t->nstreams; i++) {
		const struct ff_stream *s = t->streams[i];
		agents += s->origin.kind == FF_STREAM_AGENT;
		mixed += s->origin.kind == FF_STREAM_MIXED && !s->origin.node;
		for (size_t j = 0; j < s->nlanes; j++) {
			/* A rank whose local rank is another one lives on a second node. */
			if (s->origin.rank != FF_UNKNOWN && s->origin.local_rank != FF_UNKNOWN &&
				s->origin.rank != s->origin.local_rank) {
				return false;
			}
		}
	}
	/* Nodes with more ranks than this are rare, parts of a larger job are not. */
	bool small = t->world == FF_UNKNOWN || t->world <= ONE_NODE_RANKS;
	return t->nnodes <= 1 && agents <= 1 && mixed <= 1 && small;
}

/* The one global rank that torch itself prints in a rank's own file ("[rank42]: ", "[rank42]:[E"):
 * torchrun's tree names files by local rank only, so with several nodes nothing else tells. */
static int32_t printed_rank(const struct ff_stream *s)
{
	int64_t rank = FF_UNKNOWN;
	for (size_t i = 0; i < s->nlanes; i++) {
		struct ff_tag tag = s->lanes[i]->tag;
		if (tag.kind != FF_TAG_GLOBAL) {
			continue;
		}
		if (rank != FF_UNKNOWN && rank != tag.value) {
			return FF_UNKNOWN;
		}
		rank = tag.value;
	}
	return rank >= 0 && rank < FF_RANKS_MAX ? (int32_t)rank : FF_UNKNOWN;
}

static void learn_printed_ranks(struct ff_timeline *t)
{
	for (size_t i = 0; i < t->nstreams; i++) {
		const struct ff_stream *s = t->streams[i];
		const struct ff_origin *o = &s->origin;
		if (o->kind == FF_STREAM_RANK && o->rank == FF_UNKNOWN &&
			o->local_rank != FF_UNKNOWN) {
			put_local(t, place_of(s), o->attempt != FF_UNKNOWN ? o->attempt : 0,
				o->local_rank, printed_rank(s));
		}
	}
}

static void learn_streams(struct ff_timeline *t)
{
	struct ff_timeline_maps *m = t->maps;
	for (size_t i = 0; i < t->nstreams; i++) {
		const struct ff_origin *o = &t->streams[i]->origin;
		if (!rank_fits(t, o->rank)) {
			continue;
		}
		int32_t attempt = o->attempt != FF_UNKNOWN ? o->attempt : 0;
		struct key k;
		struct ff_str key = key_of(&k, NULL, attempt, o->rank);
		void *only = ff_map_get(&m->only, key) ? (void *)&clash : (void *)t->streams[i];
		(void)ff_map_put(&m->only, key, only);
		struct home *h = home_of(t, attempt, o->rank);
		h->node = h->node ? h->node : o->node;
		if (o->local_rank != FF_UNKNOWN) {
			h->local_rank = o->local_rank;
			put_local(t, place_of(t->streams[i]), attempt, o->local_rank, o->rank);
		}
		if (o->pid > 0) {
			h->pid = o->pid;
			put_pid(t, o->node, o->pid, o->rank);
		}
	}
	m->tasks_are_agents =
		is_launcher(ff_control_get(ff_facts_control(t->facts, "job@start"), "launcher"));
}

/* The rendezvous result: "local_ranks=[0, 1]", "global_ranks=[4, 5]". */
static void learn_global_ranks(struct ff_timeline *t, const struct ff_sighting *s)
{
	if (s->ev->kind != FF_EVENT_FACT || !s->stream) {
		return;
	}
	int32_t locals[RANKS_IN_TEXT], globals[RANKS_IN_TEXT];
	size_t nl = ff_ranks_parse(ff_event_field(s->ev, FF_F_local_ranks), locals, RANKS_IN_TEXT);
	size_t ng = ff_ranks_parse(ff_event_field(s->ev, FF_F_ranks), globals, RANKS_IN_TEXT);
	if (!ng || ng > RANKS_IN_TEXT || (nl && nl != ng)) {
		return;
	}
	for (size_t i = 0; i < ng; i++) {
		put_local(t, place_of(s->stream), s->attempt, nl ? locals[i] : (int64_t)i,
			globals[i]);
	}
}

static void learn_event(struct ff_timeline *t, const struct ff_sighting *s)
{
	const struct ff_event *e = s->ev;
	int64_t rank = ff_event_int(e, FF_F_rank, FF_UNKNOWN);
	int64_t local = ff_event_int(e, FF_F_local_rank, FF_UNKNOWN);
	learn_global_ranks(t, s);
	if (e->kind == FF_EVENT_EXIT && local != FF_UNKNOWN && s->stream &&
		s->stream->origin.kind != FF_STREAM_SCHEDULER) {
		t->maps->tasks_are_agents = true; /* torchrun, not srun, knows local ranks */
	}
	if (!rank_fits(t, rank)) {
		return;
	}
	if (local != FF_UNKNOWN) {
		const char *place = s->stream ? place_of(s->stream) : s->node;
		put_local(t, place, s->attempt, local, rank);
	}
	struct home *h = home_of(t, s->attempt, (int32_t)rank);
	if (h->local_rank == FF_UNKNOWN && local >= 0 && local < FF_RANKS_MAX) {
		h->local_rank = (int32_t)local;
	}
	if (e->kind == FF_EVENT_EXIT || e->kind == FF_EVENT_FACT) {
		h->node = h->node ? h->node : s->node;
	}
}

/* Second pass: pids, now that local ranks are known. */
static void learn_pid(struct ff_timeline *t, const struct ff_sighting *s)
{
	const struct ff_event *e = s->ev;
	if (is_sender(s)) {
		return;
	}
	int32_t rank = FF_UNKNOWN;
	int64_t given = ff_event_int(e, FF_F_rank, FF_UNKNOWN);
	int64_t local = ff_event_int(e, FF_F_local_rank, FF_UNKNOWN);
	if (given != FF_UNKNOWN) {
		rank = rank_fits(t, given) ? (int32_t)given : FF_UNKNOWN;
	} else if (local != FF_UNKNOWN && s->stream) {
		rank = local_to_global(t, place_of(s->stream), s->attempt, local);
	}
	if (rank == FF_UNKNOWN) {
		return;
	}
	int64_t pid = s->pid;
	if (pid == FF_UNKNOWN && e->tag.kind == FF_TAG_PID) {
		pid = e->tag.value;
	}
	put_pid(t, s->node, pid, rank);
	if (pid > 0) {
		home_of(t, s->attempt, rank)->pid = pid;
	}
}

/* A run of one process, or of unknown size where nothing tells several apart (shared/README.md
 * 6.5). */
static bool is_one_rank(const struct ff_timeline *t)
{
	static const char *const many[] = {
		"launcher", "mpi", "scheduler", "collectives", "store", NULL};

	if (t->world != FF_UNKNOWN) {
		return t->world == 1;
	}
	if (t->nstreams != 1 ||
		ff_control_get(ff_facts_control(t->facts, "job@start"), "launcher")) {
		return false;
	}
	const struct ff_stream *s = t->streams[0];
	for (size_t i = 0; i < s->nlanes; i++) {
		if (s->lanes[i]->tag.kind != FF_TAG_NONE) {
			return false;
		}
	}
	for (size_t i = 0; i < t->nall; i++) {
		const struct ff_signature *sig = t->all[i].sig;
		for (const char *const *m = many; sig && *m; m++) {
			if (!strcmp(sig->category, *m)) {
				return false;
			}
		}
		if (t->all[i].ev->kind == FF_EVENT_EXIT || is_sender(&t->all[i])) {
			return false;
		}
	}
	return true;
}

/* A heterogeneous job's components are steps of jobs of their own ("4.0", "5.0"): there srun's task
 * numbers count within the component (SOURCES.md slurm-messages). */
static void learn_steps(struct ff_timeline *t)
{
	struct ff_str first = {NULL, 0};
	for (size_t i = 0; i < t->nall; i++) {
		const struct ff_sighting *s = &t->all[i];
		struct ff_str step = ff_event_field(s->ev, FF_F_job);
		ptrdiff_t dot = ff_str_chr(step, '.', 0);
		if (!ff_sighting_is(s, "step-aborted") || dot <= 0) {
			continue;
		}
		step.n = (size_t)dot;
		if (!first.n) {
			first = step;
		}
		t->maps->tasks_are_partial = t->maps->tasks_are_partial || !ff_str_eq(first, step);
	}
}

static void see_task(uint8_t *seen, int32_t world, int64_t task)
{
	if (task >= 0 && task < world) {
		seen[task] = 1;
	}
}

/* Tasks 0 to k-1 speak and end, nobody else, and k is a part of the world: launchers, one a node.
 */
static bool tasks_are_too_few(const struct ff_timeline *t)
{
	const struct ff_control *start = ff_facts_control(t->facts, "job@start");
	if (t->world < 2 || (start && ff_control_get(start, "launcher"))) {
		return false; /* "srun" was told: its tasks are the ranks */
	}
	uint8_t *seen = ff_xcalloc((size_t)t->world, 1);
	for (size_t i = 0; i < t->nstreams; i++) {
		for (size_t j = 0; j < t->streams[i]->nlanes; j++) {
			struct ff_tag tag = t->streams[i]->lanes[j]->tag;
			see_task(seen, t->world, tag.kind == FF_TAG_TASK ? tag.value : -1);
		}
	}
	for (size_t i = 0; i < t->nall; i++) {
		const struct ff_sighting *s = &t->all[i];
		bool tasks = ff_event_field(s->ev, FF_F_tasks).n != 0;
		for (size_t j = 0; tasks && j < s->nnamed; j++) {
			see_task(seen, t->world, s->named[j]);
		}
	}
	int32_t n = 0, most = -1;
	for (int32_t i = 0; i < t->world; i++) {
		n += seen[i];
		most = seen[i] ? i : most;
	}
	free(seen);
	return n > 1 && n == most + 1 && n < t->world && t->world % n == 0;
}

static void learn(struct ff_timeline *t)
{
	learn_steps(t);
	t->maps->local_is_global = single_node(t);
	learn_streams(t);
	t->maps->tasks_are_agents = t->maps->tasks_are_agents || tasks_are_too_few(t);
	t->maps->one_rank = is_one_rank(t);
	for (size_t i = 0; i < t->nall; i++) {
		const struct ff_sighting *s = &t->all[i];
		bool bad = s->exit_code != FF_EXIT_UNKNOWN && s->exit_code != 0;
		t->maps->bad_exit = t->maps->bad_exit || (bad && s->attempt == t->nattempts - 1);
	}
	for (size_t i = 0; i < t->nall; i++) {
		learn_event(t, &t->all[i]);
	}
	learn_printed_ranks(t);
	for (size_t i = 0; i < t->nall; i++) {
		learn_pid(t, &t->all[i]);
	}
}

/* ---- recovery and weight */

/* Lines without a tag in a stream of several ranks: somebody else's progress proves nothing. */
static bool shared_lane(const struct ff_timeline *t, const struct ff_sighting *s)
{
	return s->stream && s->speaker == FF_UNKNOWN && t->world != 1;
}

struct well { /* what a rank's lanes say about how it went on */
	struct ff_when progress, success;
};

static struct ff_when lane_when(
	const struct ff_timeline *t, const struct ff_stream *s, const struct ff_moment *m)
{
	struct ff_claimed claimed = FF_CLAIMED_NONE;
	if (!m->set) {
		return FF_WHEN_NONE;
	}
	if (m->text) {
		(void)ff_stamp_parse(ff_str_z(m->text), &claimed);
	}
	return ff_when_of(&t->clocks, s->origin.node, s->number, m->stamp, &claimed);
}

static void later_of(struct ff_when *a, struct ff_when b)
{
	if (!a->known || (b.known && a->domain == b.domain && b.us > a->us)) {
		*a = b;
	}
}

/* Latest progress and success per rank, over all its streams. Index: rank. */
static struct well *collect_wells(struct ff_timeline *t, size_t *ret_n)
{
	int32_t most = t->world > 0 ? t->world - 1 : 0;
	for (size_t i = 0; i < t->nall; i++) {
		most = t->all[i].rank > most ? t->all[i].rank : most;
	}
	size_t n = (size_t)most + 1;
	struct well *wells = ff_xcalloc(n, sizeof *wells);
	for (size_t i = 0; i < t->nstreams; i++) {
		const struct ff_stream *s = t->streams[i];
		for (size_t j = 0; j < s->nlanes; j++) {
			const struct ff_lane *l = s->lanes[j];
			if (!l->progress.set && !l->success.set) {
				continue;
			}
			int32_t r = speaker_of(t, s, l->tag, attempt_at(t, s, l->last_offset));
			if (r == FF_UNKNOWN || (size_t)r >= n) {
				continue;
			}
			later_of(&wells[r].progress, lane_when(t, s, &l->progress));
			later_of(&wells[r].success, lane_when(t, s, &l->success));
		}
	}
	*ret_n = n;
	return wells;
}

/* Told that it did not end well: then what follows the success marker is the failure. Where nobody
 * told the end, a rank that left with an error tells it. */
static bool ended_badly(const struct ff_timeline *t)
{
	if (ff_facts_control(t->facts, "job@end")) {
		return ff_facts_ended(t->facts) && !ff_facts_ended_well(t->facts);
	}
	return t->maps->bad_exit;
}

static bool after_success(
	const struct ff_timeline *t, const struct ff_sighting *s, const struct well *w)
{
	if (ended_badly(t)) {
		return false;
	}
	if (s->stream && s->ev->lane < s->stream->nlanes && !shared_lane(t, s)) {
		const struct ff_lane *l = s->stream->lanes[s->ev->lane];
		if (l->success.set && l->success.offset < s->ev->offset) {
			return true;
		}
	}
	return w && ff_when_order(w->success, s->when) == FF_BEFORE;
}

static enum ff_weight weigh(
	const struct ff_timeline *t, struct ff_sighting *s, const struct well *w)
{
	const struct ff_event *e = s->ev;
	if (e->kind != FF_EVENT_FAULT || e->role == FF_ROLE_NOISE || e->role == FF_ROLE_CONTEXT) {
		return FF_WEIGHT_NONE;
	}
	if (after_success(t, s, w)) {
		return FF_WEIGHT_NONE;
	}
	s->unrecovered = true;
	bool went_on = e->recovered && !shared_lane(t, s);
	if (went_on || (w && ff_when_order(s->when, w->progress) == FF_BEFORE)) {
		s->unrecovered = false;
		return FF_WEIGHT_PAST;
	}
	return e->handled || e->quoted ? FF_WEIGHT_ECHO : FF_WEIGHT_FULL;
}

/* A table's copy of a traceback stands for its rank where the rank itself was not captured. */
static bool only_copy(const struct ff_timeline *t, const struct ff_sighting *s)
{
	if (!s->ev->quoted || s->rank == FF_UNKNOWN || s->speaker != FF_UNKNOWN) {
		return false;
	}
	for (size_t i = 0; i < t->nall; i++) {
		const struct ff_sighting *o = &t->all[i];
		if (o->rank == s->rank && o->attempt == s->attempt && !o->ev->quoted &&
			o->weight == FF_WEIGHT_FULL) {
			return false;
		}
	}
	return true;
}

static void weigh_all(struct ff_timeline *t)
{
	size_t n, copies = 0;
	struct well *wells = collect_wells(t, &n);
	for (size_t i = 0; i < t->nall; i++) {
		struct ff_sighting *s = &t->all[i];
		const struct well *w = NULL;
		if (s->rank != FF_UNKNOWN && (size_t)s->rank < n) {
			w = &wells[s->rank];
		}
		s->weight = weigh(t, s, w);
	}
	free(wells);
	/* Tables are small; the cap keeps a hostile log from making this quadratic. */
	for (size_t i = 0; i < t->nall && copies < 1024; i++) {
		struct ff_sighting *s = &t->all[i];
		if (s->weight == FF_WEIGHT_ECHO && s->ev->quoted && !s->ev->handled) {
			copies++;
			s->weight = only_copy(t, s) ? FF_WEIGHT_FULL : s->weight;
		}
	}
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

/* The median gap between a lane's progress lines, in us; 0: no habit. */
static ff_usec lane_cadence(const struct ff_lane *l)
{
	uint64_t total = 0, seen = 0;
	size_t n = sizeof l->cadence / sizeof l->cadence[0];
	for (size_t i = 0; i < n; i++) {
		total += l->cadence[i];
	}
	if (total < HABIT_STEPS) {
		return 0;
	}
	for (size_t i = 0; i < n; i++) {
		seen += l->cadence[i];
		if (seen * 2 >= total) {
			return (ff_usec)1 << (i < 40 ? i : 40);
		}
	}
	return 0;
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
			ff_usec gap = lane_cadence(l);
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

static bool outside_of_attempts(const struct ff_sighting *s)
{
	return s->stream && s->attempt == FF_UNKNOWN && s->stream->origin.attempt == FF_UNKNOWN &&
		(s->stream->origin.kind == FF_STREAM_KERNEL ||
			s->stream->origin.kind == FF_STREAM_SCHEDULER);
}

static void note_begin(struct ff_timeline *t, const struct ff_stream *s)
{
	int32_t a = s->origin.attempt;
	for (size_t j = 0; a >= 0 && a < t->nattempts && j < s->nlanes; j++) {
		ff_usec us = s->lanes[j]->first.arrived;
		if (ff_usec_usable(us) &&
			(t->maps->begins[a] == FF_TIME_NONE || us < t->maps->begins[a])) {
			t->maps->begins[a] = us;
		}
	}
}

static void find_attempts(struct ff_timeline *t)
{
	int32_t declared = declared_attempts(t), most = declared;
	for (size_t i = 0; i < t->nstreams; i++) {
		find_marks(t, t->streams[i], declared);
		const struct marks *m = marks_of(t, t->streams[i]);
		if (m->n && m->v[m->n - 1].attempt > most) {
			most = m->v[m->n - 1].attempt;
		}
	}
	for (size_t i = 0; i < t->nall; i++) {
		if (t->all[i].attempt > most && t->all[i].attempt < 10000) {
			most = t->all[i].attempt;
		}
	}
	t->nattempts = most + 1;
	t->maps->begins = FF_ARENA_ARR(&t->arena, ff_usec, (size_t)t->nattempts);
	for (int32_t a = 0; a < t->nattempts; a++) {
		t->maps->begins[a] = FF_TIME_NONE;
	}
	for (size_t i = 0; i < t->nstreams; i++) {
		note_begin(t, t->streams[i]);
	}
	for (size_t i = 0; i < t->nall; i++) {
		struct ff_sighting *s = &t->all[i];
		if (outside_of_attempts(s)) {
			s->attempt = attempt_by_time(t, s->when);
		} else if (s->attempt == FF_UNKNOWN) {
			s->attempt = s->stream ? attempt_at(t, s->stream, s->ev->offset)
					       : t->nattempts - 1;
		}
		s->attempt = s->attempt < t->nattempts ? s->attempt : t->nattempts - 1;
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

static void find_senders(struct ff_timeline *t)
{
	for (size_t i = 0; i < t->nall; i++) {
		const struct ff_sighting *s = &t->all[i];
		if (!is_sender(s)) {
			continue;
		}
		*FF_ARR_ADD(t->maps->senders, t->maps->nsenders, t->maps->csenders) =
			(struct sender){s, s->rank, ff_sighting_is(s, "agent-forced")};
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
	t->maps->marks = FF_ARENA_ARR(&t->arena, struct marks, (size_t)most + 1);
	collect_nodes(t);
	ff_clocks_init(&t->clocks, &t->arena, facts, t->nodes, t->nnodes);
	t->clocks.year_ref = find_year_ref(t);
	collect_events(t, digest);
	find_attempts(t);
	learn(t);
	for (size_t i = 0; i < t->nall; i++) {
		resolve(t, &t->all[i]);
	}
	resolve_records(t);
	weigh_all(t);
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
	ff_map_finish(&t->maps->only);
	ff_map_finish(&t->maps->homes);
	for (size_t i = 0; i < t->nprovisional; i++) {
		ff_event_finish(&t->provisional[i]);
	}
	free(t->provisional);
	ff_arena_finish(&t->arena);
	*t = (struct ff_timeline){0};
}

/* ---- the ranks of an attempt */

struct lane_ref {
	int32_t rank;
	const struct ff_stream *stream;
	const struct ff_lane *lane;
};

/* Lanes of the attempt whose speaker is known. The caller frees the array. */
static struct lane_ref *collect_lanes(const struct ff_timeline *t, size_t *ret_n)
{
	struct lane_ref *refs = NULL;
	size_t n = 0, cap = 0;
	for (size_t i = 0; i < t->nstreams; i++) {
		const struct ff_stream *s = t->streams[i];
		if (s->origin.kind == FF_STREAM_KERNEL || s->origin.kind == FF_STREAM_SCHEDULER) {
			continue;
		}
		for (size_t j = 0; j < s->nlanes; j++) {
			const struct ff_lane *l = s->lanes[j];
			int32_t first = l->attempt, last = l->attempt;
			if (first == FF_UNKNOWN) {
				first = attempt_at(t, s, l->first_offset);
				last = attempt_at(t, s, l->last_offset);
			}
			if (first > t->attempt || last < t->attempt) {
				continue;
			}
			int32_t r = speaker_of(t, s, l->tag, t->attempt);
			if (r != FF_UNKNOWN) {
				*FF_ARR_ADD(refs, n, cap) = (struct lane_ref){r, s, l};
			}
		}
	}
	*ret_n = n;
	return refs;
}

static void mark_rank(uint8_t *seen, const struct ff_timeline *t, int64_t rank)
{
	if (rank_fits(t, rank)) {
		seen[rank] = 1;
	}
}

/* The roster: all ranks of a known world, else those that anything speaks of. */
static void make_roster(struct ff_timeline *t, const struct lane_ref *refs, size_t nrefs)
{
	size_t room = t->world > 0 ? (size_t)t->world : FF_RANKS_MAX;
	uint8_t *seen = ff_xcalloc(room, 1);
	for (size_t i = 0; t->world < 0 && i < nrefs; i++) {
		mark_rank(seen, t, refs[i].rank);
	}
	for (size_t i = 0; t->world < 0 && i < t->nall; i++) {
		const struct ff_sighting *s = &t->all[i];
		if (s->attempt == t->attempt) {
			mark_rank(seen, t, s->rank);
			mark_rank(seen, t, s->speaker);
		}
		for (size_t j = 0; s->attempt == t->attempt && j < s->nnamed; j++) {
			bool other = ff_event_field(s->ev, FF_F_tasks).n && !tasks_are_ranks(t);
			mark_rank(seen, t, other ? FF_UNKNOWN : s->named[j]);
		}
	}
	if (t->world > 0) {
		memset(seen, 1, room);
	}
	size_t n = 0;
	for (size_t r = 0; r < room; r++) {
		n += seen[r];
	}
	t->ranks = ff_xrealloc(t->ranks, n + 1, sizeof *t->ranks);
	t->nranks = 0;
	for (size_t r = 0; r < room; r++) {
		if (!seen[r]) {
			continue;
		}
		const struct home *h = find_home(t, t->attempt, (int32_t)r);
		t->ranks[t->nranks++] = (struct ff_rank_line){
			.rank = (int32_t)r,
			.local_rank = h->local_rank,
			.node = h->node,
			.pid = h->pid,
			.last_step = FF_UNKNOWN,
			.exit_code = FF_EXIT_UNKNOWN,
			.last_progress = FF_WHEN_NONE,
			.last_line = FF_WHEN_NONE,
		};
	}
	free(seen);
	t->roster_known = t->world > 0;
}

struct ff_rank_line *ff_timeline_rank(const struct ff_timeline *t, int32_t rank)
{
	size_t lo = 0, hi = rank < 0 ? 0 : t->nranks;
	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;
		if (t->ranks[mid].rank == rank) {
			return &t->ranks[mid];
		}
		if (t->ranks[mid].rank < rank) {
			lo = mid + 1;
		} else {
			hi = mid;
		}
	}
	return NULL;
}

static bool stream_to_end(const struct ff_timeline *t, const struct ff_stream *s)
{
	return !s->origin.filtered && !s->gap &&
		(s->state == FF_STREAM_ENDED ||
			(t->ask.offline && s->state != FF_STREAM_VANISHED) ||
			(s->origin.tailed && s->read_to_end));
}

/* It says so, is named so, or is its rank's only stream (law 4). */
static bool holds_stderr(const struct ff_timeline *t, const struct ff_stream *s)
{
	struct key k;
	const void *only = ff_map_get(
		&t->maps->only, key_of(&k, NULL, attempt_at(t, s, UINT64_MAX), s->origin.rank));
	return ff_origin_is_stderr(&s->origin) || only == s;
}

static void add_lane(struct ff_timeline *t, const struct lane_ref *ref)
{
	struct ff_rank_line *r = ff_timeline_rank(t, ref->rank);
	const struct ff_lane *l = ref->lane;
	const struct ff_stream *s = ref->stream;
	if (!r) {
		return;
	}
	struct ff_when last = ff_when_of(&t->clocks, s->origin.node, s->number, l->last, NULL);
	later_of(&r->last_line, last);
	later_of(&r->last_progress, lane_when(t, s, &l->progress));
	r->own_stream = true;
	r->steps += l->steps;
	ff_usec gap = lane_cadence(l);
	r->cadence = gap > r->cadence ? gap : r->cadence;
	enum ff_heard heard = l->steps >= HABIT_STEPS ? FF_HEARD : FF_QUIET;
	r->heard = heard > r->heard ? heard : r->heard;
	if (l->progress.set && l->progress.text) {
		int64_t step = ff_matcher_step(t->matcher, ff_str_z(l->progress.text));
		r->last_step = step > r->last_step ? step : r->last_step;
	}
	if (l->success.set && (!l->has_fault || l->last_fault_offset < l->success.offset)) {
		r->marked = true;
		r->succeeded = r->succeeded || !ended_badly(t);
	}
	bool err = s->origin.kind == FF_STREAM_MIXED || holds_stderr(t, s);
	r->stderr_to_end = r->stderr_to_end || (err && stream_to_end(t, s));
	r->node = r->node ? r->node : s->origin.node;
}

/* Streams that were declared and said nothing, or whose only word is their end. */
static void add_declared(struct ff_timeline *t)
{
	for (size_t i = 0; i < t->nstreams; i++) {
		const struct ff_stream *s = t->streams[i];
		if (s->origin.rank == FF_UNKNOWN || attempt_at(t, s, UINT64_MAX) != t->attempt) {
			continue;
		}
		struct ff_rank_line *r = ff_timeline_rank(t, s->origin.rank);
		if (!r) {
			continue;
		}
		r->own_stream = true;
		r->heard = r->heard == FF_UNHEARD && !s->origin.filtered ? FF_QUIET : r->heard;
		r->stderr_to_end = r->stderr_to_end || (holds_stderr(t, s) && stream_to_end(t, s));
	}
}

/* Of several reports about one rank: its own control object, a row that names it, a "failed" line
 * of the agent, a range of srun's. Smaller is better. */
static int exit_rank(const struct ff_sighting *s)
{
	if (!s->stream) {
		return 0;
	}
	if (ff_event_field(s->ev, FF_F_rank).n) {
		return 1;
	}
	return s->nnamed ? 3 : 2;
}

static void add_exit(struct ff_timeline *t, const struct ff_sighting *s, int32_t rank)
{
	struct ff_rank_line *r = ff_timeline_rank(t, rank);
	if (!r || s->exit_code == FF_EXIT_UNKNOWN) {
		return;
	}
	if (r->exit && exit_rank(r->exit) <= exit_rank(s)) {
		return;
	}
	r->exit = s;
	r->exit_code = s->exit_code;
	r->succeeded = r->succeeded || s->exit_code == 0;
	r->pid = r->pid != FF_UNKNOWN ? r->pid : s->pid;
}

static void add_exits(struct ff_timeline *t)
{
	for (size_t i = 0; i < t->nall; i++) {
		const struct ff_sighting *s = &t->all[i];
		if (s->attempt != t->attempt || s->ev->kind != FF_EVENT_EXIT) {
			continue;
		}
		if (s->rank != FF_UNKNOWN) {
			add_exit(t, s, s->rank);
			continue;
		}
		for (size_t j = 0; tasks_are_ranks(t) && j < s->nnamed; j++) {
			add_exit(t, s, s->named[j]);
		}
	}
	for (size_t i = 0; i < t->maps->nsenders; i++) {
		const struct sender *send = &t->maps->senders[i];
		struct ff_rank_line *r = ff_timeline_rank(t, send->rank);
		if (r && send->s->attempt == t->attempt) {
			r->ended_by_agent = true;
			r->forced = r->forced || send->forced;
		}
	}
}

static void add_faults(struct ff_timeline *t)
{
	size_t total = 0;
	for (size_t i = 0; i < t->nall; i++) {
		struct ff_rank_line *r = ff_timeline_rank(t, t->all[i].rank);
		if (r && t->all[i].attempt == t->attempt && t->all[i].ev->kind == FF_EVENT_FAULT) {
			r->nfaults++;
			total++;
		}
	}
	const struct ff_sighting **room =
		FF_ARENA_ARR(&t->arena, const struct ff_sighting *, total + 1);
	for (size_t i = 0; i < t->nranks; i++) {
		t->ranks[i].faults = room;
		room += t->ranks[i].nfaults;
		t->ranks[i].nfaults = 0;
	}
	for (size_t i = 0; i < t->nall; i++) {
		struct ff_rank_line *r = ff_timeline_rank(t, t->all[i].rank);
		if (r && t->all[i].attempt == t->attempt && t->all[i].ev->kind == FF_EVENT_FAULT) {
			r->faults[r->nfaults++] = &t->all[i];
		}
	}
}

/* silent: a steady habit broke long before the others' last word (law 4). */
static void find_silent(struct ff_timeline *t, const struct lane_ref *refs, size_t nrefs)
{
	struct ff_when last = FF_WHEN_NONE;
	for (size_t i = 0; i < t->nranks; i++) {
		later_of(&last, t->ranks[i].last_progress);
	}
	for (size_t i = 0; i < nrefs; i++) {
		struct ff_rank_line *r = ff_timeline_rank(t, refs[i].rank);
		ff_usec gap = lane_cadence(refs[i].lane), since;
		if (!r || !gap || r->heard != FF_HEARD || r->succeeded) {
			continue;
		}
		if (ff_when_diff(last, r->last_line, &since) && since > 10 * gap + FF_SECOND) {
			r->heard = FF_SILENT;
		}
	}
}

void ff_timeline_attempt(struct ff_timeline *t, int32_t attempt)
{
	size_t nrefs;
	t->attempt = attempt;
	struct lane_ref *refs = collect_lanes(t, &nrefs);
	make_roster(t, refs, nrefs);
	for (size_t i = 0; i < nrefs; i++) {
		add_lane(t, &refs[i]);
	}
	add_declared(t);
	add_exits(t);
	add_faults(t);
	find_silent(t, refs, nrefs);
	free(refs);
}
