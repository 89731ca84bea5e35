/* A run as tables: streams and events put together in memory, without a log, and judged.
 *
 *	struct world w;
 *	world_init(&w, 4, "torchrun");
 *	world_streams(&w, four_ranks, N(four_ranks));
 *	world_events(&w, events, N(events));
 *	struct ff_verdict *v = world_judge(&w, 0);
 *
 * Times are milliseconds after 2026-01-01T00:00:00Z on the collector's clock (`arrived`); NEVER:
 * the event came without a stamp. Offsets are given by the order within a stream, 100 bytes each.
 */
#pragma once

#include "base/arr.h"
#include "core/report.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>

#define N(table) (sizeof(table) / sizeof(table)[0])
#define NEVER INT64_MIN
#define WORLD_START ((ff_usec)1767225600 * FF_SECOND)

enum { HANDLED = 1, QUOTED = 2, RECOVERED = 4, CAPTURED = 8 };

struct world_stream {
	const char *name;
	enum ff_stream_kind kind;
	int32_t rank;
	const char *node;
	int32_t local_rank;
	int32_t attempt;
};

struct world_event {
	const char *stream;
	int64_t ms;
	const char *signature; /* of the catalogue below: kind, role and fault follow from it */
	const char *text;
	const char *fields; /* "pid=401;signal=SIGTERM" */
	enum ff_tag_kind tag;
	int64_t tag_value;
	unsigned flags;
};

struct world {
	struct ff_catalog *catalog;
	struct ff_matcher *matcher;
	struct ff_facts facts;
	struct ff_stream **streams;
	size_t n, cap;
	uint64_t counts[FF_COUNT_COUNT];
};

/* clang-format off */
#define ENTRY_IN(category, id, role, domain, kind, literal) \
	"{\"id\":\"" id "\",\"title\":\"Title of " id "\",\"category\":\"" category "\"," \
	"\"role\":\"" role "\",\"domain\":\"" domain "\"," kind \
	"\"match\":[{\"literal\":\"" literal "\",\"pattern\":\"" literal "\"}]," \
	"\"cause\":\"Cause of " id "\",\"fix\":[\"Fix\"]," \
	"\"verify\":[{\"run\":\"true\",\"expect\":\"nothing\"}]}"
#define ENTRY(id, role, domain, kind, literal) ENTRY_IN("test", id, role, domain, kind, literal)
#define FAULT_ENTRY(id, role, domain) ENTRY(id, role, domain, "", "lit " id)
#define EXIT_ENTRY(id) ENTRY(id, "context", "framework", "\"kind\":\"exit\",", "lit " id)
#define FACT_ENTRY(id) ENTRY(id, "context", "framework", "\"kind\":\"fact\",", "lit " id)

static const char world_catalog[] = "["
	FAULT_ENTRY("index-error", "primary", "user") ","
	FAULT_ENTRY("import-error", "primary", "user") ","
	FAULT_ENTRY("cuda-oom", "primary", "user") ","
	FAULT_ENTRY("python-exception", "primary", "user") ","
	FAULT_ENTRY("cublas-failure", "secondary", "user") ","
	FAULT_ENTRY("host-oom-kill", "primary", "system") ","
	FAULT_ENTRY("ecc-uncorrectable", "primary", "hardware") ","
	FAULT_ENTRY("node-lost", "primary", "hardware") ","
	ENTRY_IN("scheduler", "node-fail", "primary", "hardware", "", "lit node-fail") ","
	FAULT_ENTRY("gloo-peer-closed", "secondary", "network") ","
	FAULT_ENTRY("straggler-hang", "secondary", "network") ","
	FAULT_ENTRY("stale-rendezvous", "secondary", "network") ","
	FAULT_ENTRY("checkpoint-corrupt", "secondary", "framework") ","
	FAULT_ENTRY("collective-mismatch", "secondary", "user") ","
	FAULT_ENTRY("nccl-timeout", "secondary", "network") ","
	FAULT_ENTRY("nccl-remote-error", "secondary", "network") ","
	FAULT_ENTRY("store-timeout", "secondary", "network") ","
	FAULT_ENTRY("store-unreachable", "secondary", "network") ","
	FAULT_ENTRY("ib-link-down", "secondary", "network") ","
	FAULT_ENTRY("pg-status", "context", "network") ","
	FAULT_ENTRY("time-limit", "primary", "scheduler") ","
	FAULT_ENTRY("preempted", "primary", "scheduler") ","
	FAULT_ENTRY("sigterm", "teardown", "framework") ","
	FAULT_ENTRY("step-cancelled", "teardown", "scheduler") ","
	EXIT_ENTRY("process-exit") ","
	FACT_ENTRY("agent-closing") ","
	FACT_ENTRY("agent-forced") ","
	FACT_ENTRY("agent-signalled") ","
	FACT_ENTRY("agent-restart") ","
	FACT_ENTRY("step-aborted") ","
	FACT_ENTRY("node-address") ","
	FACT_ENTRY("rank-map")
	"]";
/* clang-format on */

static inline void world_init(struct world *w, int world_size, const char *launcher)
{
	struct ff_err err = {{0}};
	*w = (struct world){.catalog = ff_catalog_create()};
	int r = ff_catalog_add(w->catalog, "test.json", ff_str_z(world_catalog), &err);
	ck_assert_msg(r == 0, "%s", err.text);
	r = ff_catalog_seal(w->catalog,
		"0000000000000000000000000000000000000000000000000000000000000000", &err);
	ck_assert_msg(r == 0, "%s", err.text);
	w->matcher = ff_matcher_create(w->catalog);
	ff_facts_init(&w->facts, FF_STR("4711"), FF_STR("0"));
	if (world_size > 0) {
		char text[16];
		(void)snprintf(text, sizeof text, "%d", world_size);
		(void)ff_facts_tell(&w->facts, "job@start", "world_size", ff_str_z(text),
			FF_TIME_NONE, FF_CLOCK_NONE);
	}
	if (launcher) {
		(void)ff_facts_tell(&w->facts, "job@start", "launcher", ff_str_z(launcher),
			FF_TIME_NONE, FF_CLOCK_NONE);
	}
}

static inline void world_tell(struct world *w, const char *id, const char *key, const char *value)
{
	(void)ff_facts_tell(&w->facts, id, key, ff_str_z(value), FF_TIME_NONE, FF_CLOCK_NONE);
}

static inline void world_finish(struct world *w)
{
	for (size_t i = 0; i < w->n; i++) {
		ff_stream_destroy(w->streams[i]);
	}
	free(w->streams);
	ff_facts_finish(&w->facts);
	ff_matcher_destroy(w->matcher);
	ff_catalog_destroy(w->catalog);
}

static inline struct ff_stream *world_stream(struct world *w, const char *name)
{
	for (size_t i = 0; i < w->n; i++) {
		if (!strcmp(w->streams[i]->origin.name, name)) {
			return w->streams[i];
		}
	}
	ck_abort_msg("no stream %s", name);
	return NULL;
}

static inline void world_streams(struct world *w, const struct world_stream *rows, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		struct ff_origin o = {
			.name = rows[i].name,
			.node = rows[i].node,
			.source = "0",
			.kind = rows[i].kind,
			.kind_declared = true,
			.rank = rows[i].rank,
			.local_rank = rows[i].local_rank,
			.attempt = rows[i].attempt,
			.pid = FF_UNKNOWN,
			.trusted = rows[i].kind == FF_STREAM_KERNEL ||
				rows[i].kind == FF_STREAM_SCHEDULER,
		};
		struct ff_stream *s = ff_stream_create(&o, (uint32_t)w->n + 1, 1);
		s->state = FF_STREAM_ENDED;
		*FF_ARR_ADD(w->streams, w->n, w->cap) = s;
	}
}

static inline ff_usec world_us(int64_t ms)
{
	return ms == NEVER ? FF_TIME_NONE : WORLD_START + ms * 1000;
}

static inline struct ff_stamp world_stamp(int64_t ms, unsigned flags)
{
	ff_usec us = world_us(ms);
	return flags & CAPTURED ? (struct ff_stamp){FF_TIME_NONE, us}
				: (struct ff_stamp){us, FF_TIME_NONE};
}

static inline uint32_t world_lane(struct world *w, struct ff_stream *s, struct ff_tag tag,
	struct ff_stamp stamp, uint64_t offset)
{
	struct ff_lane *l = ff_stream_lane(s, tag, FF_UNKNOWN, w->counts);
	if (!l->lines) {
		l->first = stamp;
		l->first_offset = offset;
		l->first_claimed = FF_CLAIMED_NONE;
	}
	l->lines++;
	l->last = stamp;
	l->last_offset = offset;
	for (uint32_t i = 0; i < s->nlanes; i++) {
		if (s->lanes[i] == l) {
			return i;
		}
	}
	ck_abort();
	return 0;
}

static inline struct ff_tag world_tag(const struct world_event *row)
{
	return row->tag == FF_TAG_NONE ? FF_TAG_INIT : (struct ff_tag){row->tag, row->tag_value};
}

static inline void world_fields(struct ff_event *e, const char *fields)
{
	struct ff_str rest = ff_str_z(fields ? fields : "");
	while (rest.n) {
		ptrdiff_t eq = ff_str_chr(rest, '=', 0), end = ff_str_chr(rest, ';', 0);
		size_t to = end < 0 ? rest.n : (size_t)end;
		ck_assert(eq > 0);
		int id = ff_field_parse(ff_str_n(rest.p, (size_t)eq));
		ck_assert_msg(id >= 0, "no field in %s", fields);
		ff_fields_set(&e->fields, (enum ff_field_id)id,
			ff_str_n(rest.p + eq + 1, to - (size_t)eq - 1));
		rest = ff_str_skip(rest, to + 1);
	}
}

static inline const struct ff_text *world_text(const struct world *w, const char *signature)
{
	for (size_t i = 0; i < ff_catalog_ntexts(w->catalog); i++) {
		const struct ff_text *t = ff_catalog_text(w->catalog, i);
		if (!strcmp(t->sig->id, signature)) {
			return t;
		}
	}
	ck_abort_msg("no signature %s", signature);
	return NULL;
}

static inline void world_event(struct world *w, const struct world_event *row)
{
	struct ff_stream *s = world_stream(w, row->stream);
	const struct ff_text *t = world_text(w, row->signature);
	const char *text = row->text ? row->text : "";
	uint64_t offset = s->fed;
	uint32_t lane = world_lane(w, s, world_tag(row), world_stamp(row->ms, row->flags), offset);
	struct ff_event *e = FF_ARR_ADD(s->events, s->nevents, s->cevents);
	*e = (struct ff_event){
		.offset = offset,
		.line = (int64_t)(offset / 100 + 1),
		.at_offset = offset,
		.at_line = (int64_t)(offset / 100 + 1),
		.kind = t->sig->kind,
		.role = t->sig->role,
		.fault = ff_xstrdup(t->sig->kind == FF_EVENT_FAULT ? t->sig->id : ""),
		.signature = ff_xstrdup(t->name),
		.tag = world_tag(row),
		.attempt = FF_UNKNOWN,
		.stamp = world_stamp(row->ms, row->flags),
		.claimed = FF_CLAIMED_NONE,
		.text = ff_xstrdup(text),
		.text_len = strlen(text),
		.handled = row->flags & HANDLED,
		.quoted = row->flags & QUOTED,
		.recovered = row->flags & RECOVERED,
		.lane = lane,
		.count = 1,
	};
	e->fingerprint = ff_str_hash(ff_str_z(text), ff_str_hash(ff_str_z(t->name), FF_HASH_INIT));
	world_fields(e, row->fields);
	s->fed += 100;
}

static inline void world_events(struct world *w, const struct world_event *rows, size_t n)
{
	for (size_t i = 0; i < n && rows[i].stream; i++) {
		world_event(w, &rows[i]);
	}
}

/* A progress line or success marker. */
static inline void world_progress(struct world *w, const char *stream, int64_t ms, bool success)
{
	struct ff_stream *s = world_stream(w, stream);
	uint32_t lane = world_lane(w, s, FF_TAG_INIT, world_stamp(ms, 0), s->fed);
	struct ff_moment *m = success ? &s->lanes[lane]->success : &s->lanes[lane]->progress;
	char *text = m->text;
	*m = (struct ff_moment){
		true, s->fed, 1, world_stamp(ms, 0), text ? text : ff_xstrdup("step 7")};
	s->lanes[lane]->steps += !success;
	s->fed += 100;
}

static inline struct ff_verdict *world_judge_as(struct world *w, const struct ff_ask *ask)
{
	struct ff_digest d = {w->catalog, w->matcher, w->counts};
	return ff_verdict_create(&w->facts, w->streams, w->n, &d, ask);
}

static inline struct ff_verdict *world_judge(struct world *w, uint64_t rules_off)
{
	struct ff_ask ask = {
		.offline = true,
		.now_us = FF_TIME_NONE,
		.attempt = FF_UNKNOWN,
		.world = FF_UNKNOWN,
		.rules_off = rules_off,
	};
	return world_judge_as(w, &ask);
}

/* "0,2-3" of the initiating ranks. */
static inline void world_who(const struct ff_verdict *v, char *buf, size_t size)
{
	size_t n = 0;
	buf[0] = '\0';
	for (size_t i = 0; i < v->ninitiating && n < size; i++) {
		int r = snprintf(
			buf + n, size - n, "%s%d", i ? "," : "", (int)v->initiating[i].rank);
		n += (size_t)r;
	}
}
