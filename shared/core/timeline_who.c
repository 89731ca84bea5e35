#include "base/mem.h"
#include "core/timeline_own.h"

#include <stdio.h>
#include <stdlib.h>

#define ONE_NODE_RANKS 16  /* a larger world is not taken for one node without a word about it */

static const char clash = 0; /* its address: a pid or stream of several ranks */

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

bool ff_timeline_fits(const struct ff_timeline *t, int64_t rank)
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
	if (!ff_timeline_fits(t, rank) || local < 0 || local > FF_RANKS_MAX) {
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

/* What two ranks have (on two nodes without names) is nobody's. */
static void put_on_node(struct ff_map *m, const char *node, int64_t number, int32_t rank)
{
	struct key k;
	for (int i = node ? 0 : 1; i < 2; i++) {
		struct ff_str key = key_of(&k, i ? NULL : node, number, 0);
		const void *old = ff_map_get(m, key);
		if (!old) {
			(void)ff_map_put(m, key, rank_value(rank));
		} else if (value_rank(old) != rank) {
			(void)ff_map_put(m, key, (void *)&clash);
		}
	}
}

static int32_t find_on_node(const struct ff_map *m, const char *node, int64_t number)
{
	struct key k;
	const void *v = node ? ff_map_get(m, key_of(&k, node, number, 0)) : NULL;
	if (!v) {
		v = ff_map_get(m, key_of(&k, NULL, number, 0));
	}
	return value_rank(v);
}

static void put_pid(struct ff_timeline *t, const char *node, int64_t pid, int32_t rank)
{
	if (pid > 0 && ff_timeline_fits(t, rank)) {
		put_on_node(&t->maps->pids, node, pid, rank);
	}
}

static int32_t find_pid(const struct ff_timeline *t, const char *node, int64_t pid)
{
	return pid > 0 ? find_on_node(&t->maps->pids, node, pid) : FF_UNKNOWN;
}

/* Every node has the same addresses: one that is known of another node says nothing here. */
static int32_t find_pci(const struct ff_timeline *t, const char *node, int64_t pci)
{
	bool can = pci != FF_UNKNOWN && (node || t->nnodes < 2);
	struct key k;
	const void *v = can ? ff_map_get(&t->maps->pcis, key_of(&k, node, pci, 0)) : NULL;
	return value_rank(v);
}

static const struct ff_home nowhere = {NULL, FF_UNKNOWN, FF_UNKNOWN};

/* What is known of a rank's place; never NULL. */
const struct ff_home *ff_timeline_home(const struct ff_timeline *t, int32_t attempt, int32_t rank)
{
	struct key k;
	const struct ff_home *h = ff_map_get(&t->maps->homes, key_of(&k, NULL, attempt, rank));
	return h ? h : &nowhere;
}

static struct ff_home *home_of(struct ff_timeline *t, int32_t attempt, int32_t rank)
{
	struct key k;
	struct ff_str key = key_of(&k, NULL, attempt, rank);
	struct ff_home *h = ff_map_get(&t->maps->homes, key);
	if (!h) {
		h = FF_ARENA_NEW(&t->arena, struct ff_home);
		*h = nowhere;
		(void)ff_map_put(&t->maps->homes, key, h);
	}
	return h;
}

const struct ff_stream *ff_timeline_only_stream(
	const struct ff_timeline *t, int32_t attempt, int32_t rank)
{
	struct key k;
	const void *only = ff_map_get(&t->maps->only, key_of(&k, NULL, attempt, rank));
	return only == &clash ? NULL : only;
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
	return t->maps->local_is_global && ff_timeline_fits(t, local) ? (int32_t)local : FF_UNKNOWN;
}

static int32_t tag_rank(
	const struct ff_timeline *t, const struct ff_stream *s, struct ff_tag tag, int32_t attempt)
{
	switch (tag.kind) {
	case FF_TAG_GLOBAL: return ff_timeline_fits(t, tag.value) ? (int32_t)tag.value : FF_UNKNOWN;
	case FF_TAG_LOCAL: return local_to_global(t, place_of(s), attempt, tag.value);
	case FF_TAG_TASK:
		return !t->maps->tasks_are_agents && ff_timeline_fits(t, tag.value)
			? (int32_t)tag.value
			: FF_UNKNOWN;
	case FF_TAG_PID: return find_pid(t, s->origin.node, tag.value);
	case FF_TAG_NONE:
	case FF_TAG_GROUP:
	case FF_TAG_HOST: return FF_UNKNOWN;
	}
	return FF_UNKNOWN;
}

/* Who prints the lines of this stream with this tag. */
int32_t ff_timeline_speaker(
	const struct ff_timeline *t, const struct ff_stream *s, struct ff_tag tag, int32_t attempt)
{
	if (s->origin.rank != FF_UNKNOWN) {
		return ff_timeline_fits(t, s->origin.rank) ? s->origin.rank : FF_UNKNOWN;
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

const int32_t *ff_timeline_named(struct ff_timeline *t, const struct ff_event *e, size_t *ret_n)
{
	static const enum ff_field_id lists[] = {
		FF_F_failed_ranks, FF_F_missing_ranks, FF_F_group_ranks, FF_F_tasks};
	*ret_n = 0;
	for (size_t i = 0; i < sizeof lists / sizeof lists[0]; i++) {
		struct ff_str text = ff_event_field(e, lists[i]);
		int32_t some[RANKS_IN_TEXT];
		size_t n = text.n ? ff_ranks_parse(text, some, RANKS_IN_TEXT) : 0;
		n = n < RANKS_IN_TEXT ? n : RANKS_IN_TEXT;
		size_t kept = 0;
		for (size_t j = 0; j < n; j++) {
			if (ff_timeline_fits(t, some[j])) {
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

int32_t ff_timeline_exit_code(const struct ff_event *e)
{
	int sig = ff_signal_parse(ff_event_field(e, FF_F_signal));
	if (sig) {
		return -sig;
	}
	int64_t code = ff_event_int(e, FF_F_exit_code, FF_EXIT_UNKNOWN);
	return code >= INT32_MIN && code <= INT32_MAX ? (int32_t)code : FF_EXIT_UNKNOWN;
}

bool ff_timeline_is_sender(const struct ff_sighting *s)
{
	return ff_sighting_is(s, "agent-closing") || ff_sighting_is(s, "agent-forced");
}

/* ---- what NCCL prints of its speaker */

struct nccl_head {
	struct ff_str host;
	int64_t pid;
};

/* A word "gpu07:4121:4388", with a letter in the host: a time of day has none. */
static bool is_nccl_head(struct ff_str word, struct nccl_head *ret)
{
	ptrdiff_t colon = ff_str_chr(word, ':', 0);
	bool letter = false;
	for (ptrdiff_t i = 0; i < colon; i++) {
		letter = letter || (word.p[i] >= 'a' && word.p[i] <= 'z');
	}
	if (!letter) {
		return false;
	}
	int64_t tid;
	struct ff_str rest = ff_str_skip(word, (size_t)colon + 1);
	size_t n = ff_str_digits(rest, &ret->pid);
	ret->host = ff_str_n(word.p, (size_t)colon);
	rest = ff_str_skip(rest, n + 1);
	return n && rest.n && rest.p[-1] == ':' && ff_str_digits(rest, &tid) == rest.n;
}

/* "gpu07:4121:4388 [3] NCCL WARN ...", whatever stands before it (SOURCES.md nccl-debug). */
static bool nccl_head(const struct ff_event *e, struct nccl_head *ret)
{
	struct ff_str s = {e->text, e->text_len};
	ptrdiff_t lf = ff_str_chr(s, '\n', 0);
	s.n = lf < 0 ? s.n : (size_t)lf;
	ptrdiff_t mark = ff_str_find(s, FF_STR(" NCCL "), 0);
	s.n = mark < 0 ? 0 : (size_t)mark;
	while (s.n) {
		ptrdiff_t blank = ff_str_chr(s, ' ', 0);
		size_t n = blank < 0 ? s.n : (size_t)blank;
		if (is_nccl_head(ff_str_n(s.p, n), ret)) {
			return true;
		}
		s = ff_str_skip(s, n + 1);
	}
	return false;
}

/* NCCL cuts a host's name at its first dot. */
static bool is_host_of(struct ff_str host, const char *node)
{
	return ff_str_starts(ff_str_z(node), host) && (!node[host.n] || node[host.n] == '.');
}

static int64_t pid_of(const struct ff_sighting *s)
{
	struct nccl_head head;
	return s->pid == FF_UNKNOWN && s->stream && nccl_head(s->ev, &head) ? head.pid : s->pid;
}

/* A PCI address as one number: domain << 20 | bus << 12 | device << 4, as NCCL prints it; the
 * function does not count. FF_UNKNOWN: none. */
static int64_t pci_of(const struct ff_event *e)
{
	uint64_t part[3] = {0};
	size_t n = 0, digits = 0;
	struct ff_str s = ff_event_field(e, FF_F_busid);
	bool packed = s.n != 0;
	s = packed ? s : ff_event_field(e, FF_F_bdf);
	for (size_t i = 0; i < s.n && s.p[i] != '.'; i++) {
		char c = s.p[i];
		int hex = c >= '0' && c <= '9' ? c - '0'
			: c >= 'a' && c <= 'f' ? c - 'a' + 10
			: c >= 'A' && c <= 'F' ? c - 'A' + 10
					       : -1;
		if (c == ':' && digits && n < 2) {
			n++;
			digits = 0;
		} else if (hex >= 0 && digits++ < 12) {
			part[n] = part[n] << 4 | (uint64_t)hex;
		} else {
			return FF_UNKNOWN;
		}
	}
	if (packed) {
		return n || !digits ? FF_UNKNOWN : (int64_t)(part[0] & ~(uint64_t)15);
	}
	if (n == 1) { /* c1:00, without its domain */
		part[2] = part[1];
		part[1] = part[0];
		part[0] = 0;
	}
	bool fits = part[0] <= UINT32_MAX && part[1] < 256 && part[2] < 32;
	return n && digits && fits ? (int64_t)(part[0] << 20 | part[1] << 12 | part[2] << 4)
				   : FF_UNKNOWN;
}

bool ff_timeline_knows(const struct ff_timeline *t, const char *node, const struct ff_event *e)
{
	return find_pid(t, node, ff_event_int(e, FF_F_pid, FF_UNKNOWN)) != FF_UNKNOWN ||
		find_pci(t, node, pci_of(e)) != FF_UNKNOWN;
}

/* Does the line speak of the default group? "0(default_pg)", "0 (default_pg)", "0". */
static bool is_default_group(struct ff_str pg)
{
	return ff_str_eqz(pg, "0") || ff_str_find(pg, FF_STR("default_pg"), 0) >= 0;
}

/* The rank that speaks, by its number inside a process group or communicator; only where that one
 * holds the whole job, for then it counts as the job does. */
static int32_t rank_in_group(const struct ff_timeline *t, const struct ff_sighting *s)
{
	static const char *const speakers[] = {"nccl-timeout", "pg-status", "nccl-bootstrap",
		"rank-map", "straggler-hang"};
	const struct ff_event *e = s->ev;
	int64_t rank = ff_event_int(e, FF_F_pg_rank, FF_UNKNOWN);
	int64_t size = ff_event_int(e, FF_F_nranks, FF_UNKNOWN);
	struct ff_str pg = ff_event_field(e, FF_F_pg);
	bool speaks = false;
	for (size_t i = 0; i < sizeof speakers / sizeof speakers[0]; i++) {
		speaks = speaks || ff_sighting_is(s, speakers[i]);
	}
	if (!speaks || t->world < 2 || !ff_timeline_fits(t, rank)) {
		return FF_UNKNOWN;
	}
	bool whole = size != FF_UNKNOWN ? size == t->world
		: pg.n                  ? is_default_group(pg)
		: ff_timeline_is_debug_report(s) ? t->maps->lists_are_job
					: t->maps->group_is_world;
	return whole ? (int32_t)rank : FF_UNKNOWN;
}

/* The node of an event: its stream's, else the one that the text gives. */
const char *ff_timeline_node_of(struct ff_timeline *t, const struct ff_sighting *s)
{
	if (s->stream && s->stream->origin.node) {
		return s->stream->origin.node;
	}
	struct ff_str text = ff_event_field(s->ev, FF_F_node);
	if (!text.n) {
		text = ff_event_field(s->ev, FF_F_host);
	}
	struct nccl_head head;
	bool nccl = !text.n && s->stream && nccl_head(s->ev, &head);
	text = nccl ? head.host : text;
	for (size_t i = 0; i < t->nnodes; i++) {
		if (ff_str_eqz(text, t->nodes[i]) || (nccl && is_host_of(text, t->nodes[i]))) {
			return t->nodes[i];
		}
	}
	return text.n && text.n <= FF_JOB_ID_MAX ? ff_arena_str(&t->arena, text) : NULL;
}

const char *ff_timeline_clock_node(const struct ff_timeline *t, const struct ff_sighting *s)
{
	const char *node = s->stream->origin.node;
	bool process = s->stream->origin.kind != FF_STREAM_SCHEDULER;
	struct nccl_head head;
	if (node || !process || !nccl_head(s->ev, &head)) {
		return node;
	}
	for (size_t i = 0; i < t->nnodes; i++) {
		if (is_host_of(head.host, t->nodes[i])) {
			return t->nodes[i];
		}
	}
	return NULL;
}

bool ff_timeline_tasks_are_ranks(const struct ff_timeline *t)
{
	return !t->maps->tasks_are_agents && !t->maps->tasks_are_partial;
}

/* slurmstepd counts within its node, and one node's log does not tell that there are no others: its
 * numbers are ranks' only where a stream declared whose they are (SOURCES.md slurm-messages). */
static bool may_be_local(const struct ff_timeline *t, const struct ff_sighting *s)
{
	return !s->sig || s->sig->domain != FF_DOMAIN_SCHEDULER || !t->maps->local_is_global;
}

/* What an event says itself about who ended: rank, local rank, task or pid. */
static int32_t rank_of_text(struct ff_timeline *t, const struct ff_sighting *s)
{
	const struct ff_event *e = s->ev;
	int64_t rank = ff_event_int(e, FF_F_rank, FF_UNKNOWN);
	if (rank != FF_UNKNOWN) {
		return ff_timeline_fits(t, rank) ? (int32_t)rank : FF_UNKNOWN;
	}
	if (s->nnamed == 1 &&
		(!ff_event_field(e, FF_F_tasks).n || ff_timeline_tasks_are_ranks(t))) {
		return s->named[0];
	}
	int64_t local = ff_event_int(e, FF_F_local_rank, FF_UNKNOWN);
	if (local != FF_UNKNOWN && s->stream && may_be_local(t, s)) {
		int32_t r = local_to_global(t, place_of(s->stream), s->attempt, local);
		if (r != FF_UNKNOWN) {
			return r;
		}
	}
	int32_t r = find_pid(t, s->node, pid_of(s));
	return r != FF_UNKNOWN ? r : find_pci(t, s->node, pci_of(e));
}

static void set_home(struct ff_timeline *t, struct ff_sighting *s)
{
	s->local_rank = (int32_t)ff_event_int(s->ev, FF_F_local_rank, FF_UNKNOWN);
	if (s->rank == FF_UNKNOWN) {
		return;
	}
	const struct ff_home *h = ff_timeline_home(t, s->attempt, s->rank);
	s->local_rank = h->local_rank != FF_UNKNOWN ? h->local_rank : s->local_rank;
	if (h->node && s->rank != s->speaker) {
		s->node = h->node;
	}
	s->node = s->node ? s->node : h->node;
}

void ff_timeline_resolve(struct ff_timeline *t, struct ff_sighting *s)
{
	const struct ff_event *e = s->ev;
	if (ff_event_field(e, FF_F_group_ranks).n && !t->maps->lists_are_job) {
		s->nnamed = 0;
	}
	if (s->stream) {
		s->speaker = ff_timeline_speaker(t, s->stream, e->tag, s->attempt);
		s->speaker = s->speaker != FF_UNKNOWN ? s->speaker : rank_in_group(t, s);
	}
	if (e->kind == FF_EVENT_EXIT || ff_timeline_is_sender(s)) {
		s->rank = rank_of_text(t, s);
	} else if (s->nnamed == 1 && ff_event_field(e, FF_F_failed_ranks).n) {
		/* "(RANK 3)", dict_keys([3]): the text says whose fault it is. */
		s->rank = s->named[0];
	} else if (e->role == FF_ROLE_PRIMARY &&
		ff_timeline_fits(t, ff_event_int(e, FF_F_rank, FF_UNKNOWN))) {
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
void ff_timeline_resolve_records(struct ff_timeline *t)
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
		if (!ff_timeline_fits(t, o->rank)) {
			continue;
		}
		int32_t attempt = o->attempt != FF_UNKNOWN ? o->attempt : 0;
		struct key k;
		struct ff_str key = key_of(&k, NULL, attempt, o->rank);
		void *only = ff_map_get(&m->only, key) ? (void *)&clash : (void *)t->streams[i];
		(void)ff_map_put(&m->only, key, only);
		struct ff_home *h = home_of(t, attempt, o->rank);
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

/* NCCL's "rank R nranks N ... busId B ... Init COMPLETE": whose pid, and whose GPU. */
static void learn_communicator(struct ff_timeline *t, const struct ff_sighting *s)
{
	int32_t rank = ff_sighting_is(s, "rank-map") ? rank_in_group(t, s) : FF_UNKNOWN;
	int32_t speaker =
		s->stream ? ff_timeline_speaker(t, s->stream, s->ev->tag, s->attempt) : FF_UNKNOWN;
	rank = speaker != FF_UNKNOWN ? speaker : rank;
	if (rank == FF_UNKNOWN || !ff_sighting_is(s, "rank-map")) {
		return;
	}
	struct ff_home *h = home_of(t, s->attempt, rank);
	h->node = h->node ? h->node : s->node;
	put_pid(t, s->node, pid_of(s), rank);
	if (pci_of(s->ev) != FF_UNKNOWN) {
		put_on_node(&t->maps->pcis, h->node, pci_of(s->ev), rank);
	}
}

/* "Bootstrap : Using eth0:10.0.1.8<0>" tells the address of the node that prints it. */
static void learn_address(struct ff_timeline *t, const struct ff_sighting *s)
{
	struct nccl_head head;
	if (!s->node || !s->stream || !nccl_head(s->ev, &head)) {
		return;
	}
	(void)ff_map_put(&t->maps->hosts, head.host, (void *)s->node);
	struct ff_str addr = ff_event_field(s->ev, FF_F_addr);
	const char *old = addr.n ? ff_map_get(&t->maps->addrs, addr) : NULL;
	if (addr.n) {
		bool other = old && (old == &clash || strcmp(old, s->node));
		(void)ff_map_put(&t->maps->addrs, addr, other ? (void *)&clash : (void *)s->node);
	}
}

int32_t ff_timeline_local(const struct ff_timeline *t, const struct ff_sighting *s, int64_t local)
{
	return s->stream ? local_to_global(t, place_of(s->stream), s->attempt, local) : FF_UNKNOWN;
}

const char *ff_timeline_node_at(const struct ff_timeline *t, struct ff_str addr)
{
	size_t n = 0;
	while (n < addr.n && addr.p[n] != '<' && addr.p[n] != ']') {
		n++;
	}
	addr.n = n;
	for (size_t i = 0; addr.n && i < t->nnodes; i++) {
		if (ff_str_eqz(addr, t->nodes[i])) {
			return t->nodes[i];
		}
	}
	const char *node = addr.n ? ff_map_get(&t->maps->addrs, addr) : NULL;
	if (node) {
		return node == &clash ? NULL : node;
	}
	ptrdiff_t dot = ff_str_chr(addr, '.', 0);
	node = addr.n ? ff_map_get(&t->maps->hosts, addr) : NULL;
	if (!node && dot > 0) { /* NCCL's own head is cut at the first dot, a peer's name is not */
		node = ff_map_get(&t->maps->hosts, ff_str_n(addr.p, (size_t)dot));
	}
	return node;
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
	if (!ff_timeline_fits(t, rank)) {
		return;
	}
	if (local != FF_UNKNOWN) {
		const char *place = s->stream ? place_of(s->stream) : s->node;
		put_local(t, place, s->attempt, local, rank);
	}
	struct ff_home *h = home_of(t, s->attempt, (int32_t)rank);
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
	if (ff_timeline_is_sender(s)) {
		return;
	}
	int32_t rank = FF_UNKNOWN;
	int64_t given = ff_event_int(e, FF_F_rank, FF_UNKNOWN);
	int64_t local = ff_event_int(e, FF_F_local_rank, FF_UNKNOWN);
	if (given != FF_UNKNOWN) {
		rank = ff_timeline_fits(t, given) ? (int32_t)given : FF_UNKNOWN;
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

/* Lines of several processes in one pipe, or a launcher's own words: raised before any rank was
 * started, or handed on from one. */
static bool shows_several(const struct ff_event *e)
{
	return ff_event_field(e, FF_F_mixed).n || ff_event_field(e, FF_F_launcher).n;
}

/* Another fault whose record begins where the first one's ends. */
static bool is_right_behind(const struct ff_event *first, const struct ff_event *e)
{
	return e->line == first->at_line + 1 && strcmp(e->fault, first->fault) != 0;
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
	const struct ff_event *died = NULL;
	for (size_t i = 0; i < t->nall; i++) {
		const struct ff_signature *sig = t->all[i].sig;
		for (const char *const *m = many; sig && *m; m++) {
			if (!strcmp(sig->category, *m)) {
				return false;
			}
		}
		const struct ff_event *e = t->all[i].ev;
		/* A process dies of an uncaught exception once: the same again, or another right
		 * behind it, is another's. */
		bool fatal = e->kind == FF_EVENT_FAULT && e->role == FF_ROLE_PRIMARY &&
			!e->handled && !e->quoted && !e->recovered;
		bool twice = fatal && (e->count > 1 || (died && is_right_behind(died, e)));
		died = fatal ? e : died;
		if (e->kind == FF_EVENT_EXIT || ff_timeline_is_sender(&t->all[i]) || twice ||
			shows_several(e) || ff_event_int(e, FF_F_rank, 0) > 0) {
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

void ff_timeline_learn(struct ff_timeline *t)
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
	ff_timeline_learn_groups(t);
	for (size_t i = 0; i < t->nall; i++) {
		learn_pid(t, &t->all[i]);
		learn_communicator(t, &t->all[i]);
		learn_address(t, &t->all[i]);
	}
}
