#include "feed/intake.h"

#include "base/arr.h"
#include "base/json.h"
#include "base/limits.h"
#include "base/mask_rules.h"

#include "random.h"

#include <check.h>

#include <stdio.h>
#include <stdlib.h>

#define N(table) (sizeof(table) / sizeof(table)[0])
#define T ((ff_usec)1767225600 * FF_SECOND) /* 2026-01-01T00:00:00Z */
#define NOW (T + 3600 * FF_SECOND)

#define OOM "CUDA out of memory"
#define HF "hf_abcdefghijklmnopqrstuvwxyz0123456789"

/* ---- a table of runs, and what an intake says */

static struct ff_catalog *catalog;
static struct ff_runs runs;
static struct ff_buf replies, texts, calls;

static void setup(void)
{
	struct ff_err err = {0};
	catalog = ff_catalog_create();
	int r = ff_catalog_add(catalog, "t",
		FF_STR("[{\"id\":\"cuda-oom\",\"title\":\"t\",\"category\":\"c\","
		       "\"role\":\"primary\",\"domain\":\"user\",\"match\":[{\"literal\":\"" OOM
		       "\",\"pattern\":\"" OOM "\"}],\"cause\":\"c\",\"fix\":[\"f\"]}]"),
		&err);
	ck_assert_msg(r == 0 && ff_catalog_seal(catalog, "0", &err) == 0, "%s", err.text);
	ff_runs_init(&runs, catalog);
}

static void teardown(void)
{
	ff_runs_finish(&runs);
	ff_catalog_destroy(catalog);
	ff_buf_finish(&replies);
	ff_buf_finish(&texts);
	ff_buf_finish(&calls);
}

static void on_reply(void *ud, struct ff_str bytes)
{
	ff_buf_adds(&replies, bytes);
}

static void on_closing(void *ud, const char *reason)
{
	ff_buf_addf(&calls, "closing %s\n", reason);
}

static void on_opened(void *ud, struct ff_run *run, struct ff_stream *s)
{
	ff_buf_addf(&calls, "opened %s\n", s->key);
}

static void add_stamp(struct ff_buf *b, struct ff_stamp s)
{
	if (s.arrived != FF_TIME_NONE) {
		ff_buf_addf(b, " arrived+%lld", (long long)(s.arrived - T));
	}
	if (s.captured != FF_TIME_NONE) {
		ff_buf_addf(b, " captured+%lld", (long long)(s.captured - T));
	}
}

/* "KEY@OFFSET STAMP: text", with ~ for a line that goes on */
static void on_text(void *ud, struct ff_run *run, struct ff_stream *s, const struct ff_chunk *c)
{
	ff_buf_addf(&texts, "%s@%llu", s->key, (unsigned long long)c->offset);
	add_stamp(&texts, c->stamp);
	if (c->tags.tag.kind != FF_TAG_NONE) {
		ff_buf_addf(&texts, " %s%lld", ff_tag_kind_name(c->tags.tag.kind),
			(long long)c->tags.tag.value);
	}
	if (c->tags.attempt != FF_UNKNOWN) {
		ff_buf_addf(&texts, " attempt%d", c->tags.attempt);
	}
	ff_buf_addz(&texts, ": ");
	ff_buf_add(&texts, c->data, c->len);
	ff_buf_addz(&texts, c->data[c->len - 1] == '\n' ? "" : "~\n");
}

static bool on_admit(void *ud, struct ff_str token, const char *job)
{
	return ff_str_eqz(token, "secret");
}

static bool on_named(void *ud, struct ff_run *run, int64_t uid)
{
	ff_buf_addf(&calls, "named %s %lld\n", run->job->facts.job, (long long)uid);
	return uid < 9;
}

static const struct ff_intake_ops ops = {
	.reply = on_reply, .closing = on_closing, .opened = on_opened, .text = on_text};

static struct ff_intake *create(bool offline)
{
	struct ff_intake_options o = {.offline = offline, .peer = "p", .name = "-",
		.default_job = offline ? "stdin" : NULL};
	return ff_intake_create(&runs, &o, &ops, NULL);
}

static void feed(struct ff_intake *in, const char *z)
{
	ff_intake_feed(in, z, strlen(z), NOW);
}

/* All of it at once, with its end. Offline there is no clock. */
static void feed_all(struct ff_str s, bool offline)
{
	struct ff_intake *in = create(offline);
	ff_usec now = offline ? FF_TIME_NONE : NOW;
	ff_intake_feed(in, s.p, s.n, now);
	ff_intake_end(in, now);
	ff_intake_destroy(in);
}

static const char *number(struct ff_buf *b, int64_t v)
{
	size_t at = b->len;
	if (v == FF_UNKNOWN) {
		ff_buf_addz(b, "-");
	} else {
		ff_buf_addf(b, "%lld", (long long)v);
	}
	return b->p + at;
}

static void dump_stream(struct ff_buf *b, const struct ff_stream *s)
{
	static const char *const states[] = {"open", "ended", "vanished"};
	const struct ff_origin *o = &s->origin;
	ff_buf_addf(
		b, "  %s %s%s ", s->key, ff_stream_kind_name(o->kind), o->kind_declared ? "!" : "");
	number(b, o->rank);
	ff_buf_addc(b, '/');
	number(b, o->local_rank);
	ff_buf_addc(b, '/');
	number(b, o->attempt);
	ff_buf_addf(b, " %s%s%s fed=%llu %s\n", o->fd ? ff_fd_name(o->fd) : "-",
		strcmp(o->source, "0") ? " source=" : "", strcmp(o->source, "0") ? o->source : "",
		(unsigned long long)s->fed, states[s->state]);
	for (size_t i = 0; i < s->nevents; i++) {
		ff_buf_addf(b, "    @%llu %s", (unsigned long long)s->events[i].offset,
			s->events[i].fault);
		if (s->events[i].tag.kind != FF_TAG_NONE) {
			ff_buf_addf(b, " %s%lld", ff_tag_kind_name(s->events[i].tag.kind),
				(long long)s->events[i].tag.value);
		}
		add_stamp(b, s->events[i].stamp);
		ff_buf_addc(b, '\n');
	}
}

static void dump_controls(struct ff_buf *b, const struct ff_facts *f)
{
	for (size_t i = 0; i < f->ncontrols; i++) {
		ff_buf_addf(b, "  %s", f->controls[i]->id);
		for (size_t k = 0; k < f->controls[i]->nvalues; k++) {
			const struct ff_fact_value *v = &f->controls[i]->values[k];
			ff_buf_addf(b, " %s=%s", v->key, v->value);
			if (v->time != FF_TIME_NONE) {
				ff_buf_addf(b, "@%lld%c", (long long)(v->time - T),
					v->clock == FF_CLOCK_ARRIVED ? 'a' : 'c');
			}
		}
		ff_buf_addc(b, '\n');
	}
	for (size_t i = 0; i < f->nclocks; i++) {
		ff_buf_addf(b, "  clock %s %zu\n", f->clocks[i].node, f->clocks[i].nsamples);
	}
}

/* All that is known, as text. */
static struct ff_buf dump(void)
{
	struct ff_buf b = {0};
	const struct ff_run *run;
	for (size_t i = 0; (run = ff_runs_any(&runs, i)); i++) {
		const struct ff_job *job = run->job;
		ff_buf_addf(&b, "%s/%s\n", job->facts.job, job->facts.run);
		dump_controls(&b, &job->facts);
		for (size_t k = 0; k < job->nstreams; k++) {
			dump_stream(&b, job->streams[k]);
		}
	}
	(void)ff_buf_reserve(&b, 0);
	return b;
}

static void check_dump(const char *want)
{
	struct ff_buf b = dump();
	ck_assert_msg(!strcmp(b.p, want), "got:\n%s\nwant:\n%s", b.p, want);
	ff_buf_finish(&b);
}

static void check_buf(const struct ff_buf *b, const char *want)
{
	ck_assert_msg(
		!strcmp(b->p ? b->p : "", want), "got:\n%s\nwant:\n%s", b->p ? b->p : "", want);
}

static uint64_t count(enum ff_count c)
{
	uint64_t n = runs.counts[c];
	for (size_t i = 0; i < runs.nruns; i++) {
		n += runs.runs[i]->job->counts[c];
	}
	return n;
}

/* ---- which dialect */

static const struct {
	const char *bytes;
	enum ff_dialect online, offline; /* after these bytes */
} dialects[] = {
	{"", FF_DIALECT_NONE, FF_DIALECT_NONE},
	{"x", FF_DIALECT_RAW, FF_DIALECT_RAW},
	{"{", FF_DIALECT_NONE, FF_DIALECT_NONE},
	{"{\"job\":\"a\",\"message\":\"m\"}", FF_DIALECT_NONE, FF_DIALECT_NONE},
	{"{\"job\":\"a\",\"message\":\"m\"}\n", FF_DIALECT_JSONL, FF_DIALECT_JSONL},
	{" \t{\"job\":\"a\",\"msg\":\"m\"}\n", FF_DIALECT_JSONL, FF_DIALECT_JSONL},
	{"\xef\xbb\xbf{\"job\":\"a\",\"log\":\"m\"}\r\n", FF_DIALECT_JSONL, FF_DIALECT_JSONL},
	{"{\"event\":\"job-start\",\"job\":\"a\"}\n", FF_DIALECT_JSONL, FF_DIALECT_JSONL},
	{"{\"job\":\"a\",\"event\":\"epoch\"}\n", FF_DIALECT_JSONL, FF_DIALECT_JSONL},
	{"{\"message\":\"m\"}\n", FF_DIALECT_RAW, FF_DIALECT_JSONL},
	{"{\"event\":\"epoch\"}\n", FF_DIALECT_RAW, FF_DIALECT_RAW},
	{"{\"job\":\"a\"}\n", FF_DIALECT_RAW, FF_DIALECT_RAW},
	{"{\"loss\":1}\n", FF_DIALECT_RAW, FF_DIALECT_RAW},
	{"{'loss':1}\n", FF_DIALECT_RAW, FF_DIALECT_RAW},
	{"\n{\"job\":\"a\",\"message\":\"m\"}\n", FF_DIALECT_RAW, FF_DIALECT_RAW},
	{"G", FF_DIALECT_NONE, FF_DIALECT_RAW},
	{"GE", FF_DIALECT_NONE, FF_DIALECT_RAW},
	{"GET / HTTP/1.1\r\n", FF_DIALECT_WRONG_PORT, FF_DIALECT_RAW},
	{"GETTING", FF_DIALECT_RAW, FF_DIALECT_RAW},
	{"POST ", FF_DIALECT_WRONG_PORT, FF_DIALECT_RAW},
	{"\x16\x03\x01", FF_DIALECT_WRONG_PORT, FF_DIALECT_RAW},
	{"\x16", FF_DIALECT_NONE, FF_DIALECT_RAW},
	{"{\"event\":\"hello\",\"protocol\":\"firstfault/"
	 "1\",\"job\":\"a\",\"source\":\"s\",\"streams\":[\"x\"]}\n",
		FF_DIALECT_NATIVE, FF_DIALECT_NATIVE},
	{"{\"event\":\"hello\",\"protocol\":\"firstfault/"
	 "1\",\"job\":\"a\",\"source\":\"s\",\"streams\":[\"x\"],"
	 "\"lines\":\"plain\"}\n",
		FF_DIALECT_PLAIN, FF_DIALECT_PLAIN},
	{"<34>Oct 11 22:14:15 a b: c\n", FF_DIALECT_SYSLOG, FF_DIALECT_RAW},
	{"<34", FF_DIALECT_NONE, FF_DIALECT_RAW},
	{"<34>", FF_DIALECT_SYSLOG, FF_DIALECT_RAW},
	{"<html>\n", FF_DIALECT_RAW, FF_DIALECT_RAW},
	{"52", FF_DIALECT_NONE, FF_DIALECT_RAW},
	{"52 <13>1 ", FF_DIALECT_SYSLOG, FF_DIALECT_RAW},
	{"52 steps\n", FF_DIALECT_RAW, FF_DIALECT_RAW},
};

START_TEST(test_dialect)
{
	for (int offline = 0; offline < 2; offline++) {
		struct ff_intake *in = create(offline);
		ff_intake_feed(in, dialects[_i].bytes, strlen(dialects[_i].bytes), NOW);
		ck_assert_str_eq(ff_dialect_name(ff_intake_dialect(in)),
			ff_dialect_name(offline ? dialects[_i].offline : dialects[_i].online));
		ff_intake_destroy(in);
	}
}
END_TEST

START_TEST(test_settle)
{
	struct ff_intake *in = create(false);
	feed(in, "{\"job\":\"a\",");
	ff_intake_settle(in, NOW);
	ck_assert_int_eq(ff_intake_dialect(in), FF_DIALECT_RAW);
	feed(in, "\"message\":\"m\"}\n");
	ff_intake_end(in, NOW);
	check_dump("raw-p/0\n  - mixed -/-/- - fed=26 ended\n");
	ff_intake_destroy(in);
}
END_TEST

START_TEST(test_wrong_port)
{
	struct ff_intake *in = create(false);
	feed(in, "GET / HTTP/1.1\r\nHost: x\r\n\r\n");
	feed(in, "more");
	ff_intake_end(in, NOW);
	check_buf(&calls, "closing wrong-port\n");
	ck_assert_int_eq(replies.p[replies.len - 1], '\n');
	ck_assert_uint_eq(count(FF_COUNT_wrong_port), 1);
	ck_assert_uint_eq(runs.nruns, 0);
	ff_intake_destroy(in);
}
END_TEST

START_TEST(test_nothing)
{
	struct ff_intake *in = create(false);
	ff_intake_end(in, NOW);
	ck_assert_uint_eq(runs.nruns, 0);
	ck_assert_uint_eq(ff_intake_usable(in), 0);
	ff_intake_destroy(in);
	ff_intake_destroy(NULL);
}
END_TEST

/* A first line without an end is raw once it has more than 64 KiB; it costs linear time. */
START_TEST(test_long_first_line)
{
	struct ff_intake *in = create(false);
	feed(in, "{\"job\":\"a\",\"message\":\"");
	for (int i = 0; i < 70000; i++) {
		ff_intake_feed(in, " ", 1, NOW);
	}
	ck_assert_int_eq(ff_intake_dialect(in), FF_DIALECT_RAW);
	ff_intake_destroy(in);
}
END_TEST

/* ---- JSON Lines: input and what is known afterwards */

static const struct {
	const char *what, *lines, *known;
} jsonl[] = {
	{"one object is one line of one stream",
		"{\"job\":\"j\",\"kind\":\"rank\",\"rank\":3,\"node\":\"n\",\"local_rank\":1,"
		"\"attempt\":0,"
		"\"stream\":\"s.log\",\"fd\":\"stderr\",\"time\":\"2026-01-01T00:00:01Z\","
		"\"message\":\"x " OOM "\"}\n",
		"j/0\n  n/s.log rank! 3/1/0 stderr fed=21 ended\n    @0 cuda-oom "
		"arrived+1000000\n"},
	{"streams without a name",
		"{\"job\":\"j\",\"rank\":3,\"message\":\"a\"}\n{\"job\":\"j\",\"message\":\"b\"}\n",
		"j/0\n  rank-3 rank 3/-/- - fed=2 ended\n  - mixed -/-/- - fed=2 ended\n"},
	{"a second rank is a tag, and the guess of a kind is taken back",
		"{\"job\":\"j\",\"stream\":\"s\",\"rank\":3,\"message\":\"" OOM "\"}\n"
		"{\"job\":\"j\",\"stream\":\"s\",\"rank\":5,\"message\":\"" OOM "\"}\n",
		"j/0\n  s mixed 3/-/- - fed=38 ended\n    @0 cuda-oom\n    @19 cuda-oom global5\n"},
	{"in a mixed stream each rank is a tag",
		"{\"job\":\"j\",\"stream\":\"s\",\"kind\":\"mixed\",\"rank\":3,\"message\":\"" OOM
		"\"}\n",
		"j/0\n  s mixed! -/-/- - fed=19 ended\n    @0 cuda-oom global3\n"},
	{"a local rank alone is a local tag",
		"{\"job\":\"j\",\"stream\":\"s\",\"kind\":\"agent\",\"local_rank\":3,\"message\":"
		"\"" OOM "\"}\n",
		"j/0\n  s agent! -/-/- - fed=19 ended\n    @0 cuda-oom local3\n"},
	{"a message that ends in LF is not counted twice, LF inside separates lines",
		"{\"job\":\"j\",\"stream\":\"s\",\"message\":\"a\\n\"}\n"
		"{\"job\":\"j\",\"stream\":\"s\",\"message\":\"\"}\n"
		"{\"job\":\"j\",\"stream\":\"s\",\"message\":\"b\\n" OOM "\"}\n",
		"j/0\n  s mixed -/-/- - fed=24 ended\n    @5 cuda-oom\n"},
	{"what no object is is text of the last stream",
		"{\"job\":\"j\",\"stream\":\"s\",\"message\":\"a\"}\n" OOM "\r\n[]\n\n",
		"j/0\n  s mixed -/-/- - fed=24 ended\n    @2 cuda-oom\n"},
	{"an unknown event is data, the whole line its text",
		"{\"job\":\"j\",\"event\":\"epoch\",\"x\":\"" OOM "\"}\n",
		"j/0\n  - mixed -/-/- - fed=53 ended\n    @0 cuda-oom\n"},
	{"several jobs; without one: the one before",
		"{\"job\":\"j\",\"message\":\"a\"}\n{\"job\":\"k\",\"message\":\"a\"}\n{"
		"\"message\":\"b\"}\n",
		"j/0\n  - mixed -/-/- - fed=2 ended\nk/0\n  - mixed -/-/- - fed=4 ended\n"},
	{"a job id that can't be used",
		"{\"job\":\"j\",\"message\":\"a\"}\n{\"job\":\"none\",\"message\":\"a\"}\n",
		"j/0\n  - mixed -/-/- - fed=4 ended\n"},
	{"facts",
		"{\"event\":\"job-start\",\"job\":\"j\",\"run\":\"r\",\"world_size\":16,"
		"\"launcher\":\"torchrun\","
		"\"nodes\":[\"a\",\"b\"],\"x\":1}\n"
		"{\"event\":\"exit\",\"job\":\"j\",\"rank\":3,\"exit_code\":null,\"signal\":9,"
		"\"time\":\"2026-01-01T00:00:01Z\"}\n"
		"{\"event\":\"exit\",\"job\":\"j\",\"node\":\"n\",\"pid\":42,\"exit_code\":1}\n"
		"{\"event\":\"exit\",\"job\":\"j\",\"rank\":3,\"attempt\":1,\"exit_code\":-9}\n"
		"{\"event\":\"sign\",\"job\":\"j\",\"rank\":3,\"state\":\"D\",\"time\":\"2026-01-"
		"01T00:00:01Z\"}\n"
		"{\"event\":\"clock\",\"job\":\"j\",\"node\":\"n\",\"t1\":1,\"t2\":2,\"t3\":3,"
		"\"t4\":4}\n"
		"{\"event\":\"job-end\",\"job\":\"j\",\"exit_code\":1,\"state\":\"FAILED\"}\n",
		"j/r\n  exit@0.3 rank=3@1000000a signal=9@1000000a\n"
		"  exit@1.3 attempt=1 exit_code=-9 rank=3\n"
		"  exit@n.42 exit_code=1 node=n pid=42\n"
		"  job@end exit_code=1 state=FAILED\n"
		"  job@start launcher=torchrun nodes=a,b world_size=16\n"
		"  sign@0.3.1767225601000000 rank=3@1000000a state=D@1000000a\n"
		"  clock n 1\n"},
	{"the node's clock",
		"{\"event\":\"job-start\",\"job\":\"j\",\"clock\":\"node\"}\n"
		"{\"job\":\"j\",\"time\":\"2026-01-01T00:00:01Z\",\"message\":\"" OOM "\"}\n"
		"{\"event\":\"job-end\",\"job\":\"j\",\"exit_code\":1,\"time\":\"2026-01-01T00:00:"
		"02Z\"}\n",
		"j/0\n  job@end exit_code=1@2000000c\n  job@start\n"
		"  - mixed -/-/- - fed=19 ended\n    @0 cuda-oom captured+1000000\n"},
	{"time wins over the others; those are captured",
		"{\"job\":\"j\",\"ts\":1767225603,\"time\":\"2026-01-01T00:00:01Z\",\"message\":"
		"\"" OOM "\"}\n"
		"{\"job\":\"j\",\"ts\":1767225603,\"message\":\"x " OOM "\"}\n"
		"{\"job\":\"j\",\"clock\":\"node\",\"time\":\"2026-01-01T00:00:01Z\",\"message\":"
		"\"y " OOM "\"}\n",
		"j/0\n  - mixed -/-/- - fed=61 ended\n    @0 cuda-oom arrived+1000000\n"
		"    @19 cuda-oom captured+3000000\n    @40 cuda-oom captured+1000000\n"},
	{"a stream that stopped without its end stays so",
		"{\"job\":\"j\",\"stream\":\"s\",\"message\":\"a\"}\n"
		"{\"event\":\"end\",\"job\":\"j\",\"stream\":\"s\",\"complete\":false}\n"
		"{\"job\":\"j\",\"stream\":\"t\",\"message\":\"a\"}\n{\"event\":\"end\",\"job\":"
		"\"j\",\"stream\":\"t\"}\n",
		"j/0\n  s mixed -/-/- - fed=2 vanished\n  t mixed -/-/- - fed=2 ended\n"},
	{"a stream that goes on after its end",
		"{\"job\":\"j\",\"stream\":\"s\",\"message\":\"a\"}\n"
		"{\"event\":\"end\",\"job\":\"j\",\"stream\":\"s\",\"complete\":false}\n"
		"{\"job\":\"j\",\"stream\":\"s\",\"message\":\"a\"}\n",
		"j/0\n  s mixed -/-/- - fed=4 ended\n"},
	{"a job-start after the end begins a run",
		"{\"event\":\"job-start\",\"job\":\"j\"}\n{\"job\":\"j\",\"message\":\"a\"}\n"
		"{\"event\":\"job-end\",\"job\":\"j\"}\n{\"event\":\"job-start\",\"job\":\"j\"}\n"
		"{\"job\":\"j\",\"message\":\"abc\"}\n",
		"j/0\n  job@end\n  job@start\n  - mixed -/-/- - fed=2 ended\n"
		"j/1\n  job@start\n  - mixed -/-/- - fed=4 ended\n"},
	{"what has an offset is known when it comes again",
		"{\"job\":\"j\",\"source\":\"s\",\"offset\":0,\"message\":\"abc\"}\n"
		"{\"job\":\"j\",\"source\":\"s\",\"offset\":4,\"message\":\"" OOM "\"}\n"
		"{\"job\":\"j\",\"source\":\"s\",\"offset\":0,\"message\":\"abc\"}\n"
		"{\"job\":\"j\",\"source\":\"s\",\"offset\":4,\"message\":\"" OOM "\"}\n"
		"{\"job\":\"j\",\"source\":\"s\",\"offset\":23,\"message\":\"" OOM "\"}\n",
		"j/0\n  - mixed -/-/- - source=s fed=42 ended\n    @4 cuda-oom\n"},
	{"the last line needs no LF",
		"{\"job\":\"j\",\"message\":\"a\"}\n{\"job\":\"j\",\"message\":\"b\"}",
		"j/0\n  - mixed -/-/- - fed=4 ended\n"},
};

START_TEST(test_jsonl)
{
	feed_all(ff_str_z(jsonl[_i].lines), true);
	struct ff_buf b = dump();
	ck_assert_msg(!strcmp(b.p, jsonl[_i].known), "%s\ngot:\n%s\nwant:\n%s", jsonl[_i].what, b.p,
		jsonl[_i].known);
	ff_buf_finish(&b);
}
END_TEST

/* Whose run it is is heard from a good job-start alone, and is no fact. */
START_TEST(test_named)
{
	static const char *const starts[] = {
		"{\"event\":\"job-start\",\"job\":\"j\",\"uid\":7}",
		"{\"event\":\"job-start\",\"job\":\"j\",\"uid\":9}",
		"{\"event\":\"job-start\",\"job\":\"j\",\"uid\":4294967294}",
		"{\"event\":\"job-start\",\"job\":\"j\",\"uid\":4294967295}",
		"{\"event\":\"job-start\",\"job\":\"j\",\"uid\":-1}",
		"{\"event\":\"job-start\",\"job\":\"j\",\"uid\":\"7\"}",
		"{\"event\":\"job-start\",\"job\":\"j\",\"uid\":null}",
		"{\"event\":\"job-start\",\"job\":\"j\",\"uid\":7,\"world_size\":0}",
		"{\"event\":\"job-end\",\"job\":\"j\",\"uid\":7}",
	};
	struct ff_intake_ops named = ops;
	named.named = on_named;
	struct ff_intake_options o = {.peer = "p", .name = "-"};
	struct ff_intake *in = ff_intake_create(&runs, &o, &named, NULL);
	for (size_t i = 0; i < sizeof starts / sizeof *starts; i++) {
		feed(in, starts[i]);
		feed(in, "\n");
	}
	const struct ff_run *run = ff_runs_any(&runs, 0);
	ck_assert_str_eq(calls.p, "named j 7\nnamed j 9\nnamed j 4294967294\n");
	ck_assert_uint_eq(run->job->counts[FF_COUNT_bad_values], 2 + 4);
	ck_assert_uint_eq(run->job->counts[FF_COUNT_unknown_keys], 1); /* of the job-end */
	ck_assert_ptr_null(
		ff_control_get(ff_facts_control(&run->job->facts, "job@start"), "uid"));
	ff_intake_end(in, NOW);
	ff_intake_destroy(in);
}
END_TEST

START_TEST(test_jsonl_counts)
{
	feed_all(FF_STR("{\"job\":\"j\",\"message\":\"a\",\"rank\":-1,\"time\":\"noon\"}\nraw\n{}\n"
			"{\"job\":\"-\",\"message\":\"a\"}\n{\"event\":\"job-end\",\"job\":\"j\","
			"\"exit_code\":\"1\"}\n"
			"{\"event\":\"job-start\",\"job\":\"j\",\"later\":1}\n"),
		true);
	ck_assert_uint_eq(count(FF_COUNT_bad_values), 2);
	ck_assert_uint_eq(count(FF_COUNT_bad_times), 1);
	ck_assert_uint_eq(count(FF_COUNT_bad_json), 2);
	ck_assert_uint_eq(count(FF_COUNT_bad_names), 1);
	ck_assert_uint_eq(count(FF_COUNT_unknown_keys), 1);
	ck_assert(!ff_facts_ended(&runs.runs[0]->job->facts));
}
END_TEST

/* The daemon's receive time is the stamp where none came. */
START_TEST(test_jsonl_online)
{
	struct ff_intake *in = create(false);
	feed(in, "{\"job\":\"j\",\"stream\":\"s\",\"message\":\"a\\nb\"}\n");
	feed(in,
		"{\"job\":\"j\",\"stream\":\"s\",\"rank\":2,\"attempt\":1,\"message\":\"c\"}"
		"\nraw\n");
	feed(in, "{\"kind\":\"kernel\",\"node\":\"n\",\"message\":\"k\"}\n{\"message\":\"d\"}\n");
	check_buf(&texts,
		"s@0 arrived+3600000000: a\ns@2 arrived+3600000000: b\n"
		"s@4 arrived+3600000000 global2 attempt1: c\ns@6 arrived+3600000000: raw\n"
		"n/-@0 arrived+3600000000: k\n-@0 arrived+3600000000: d\n");
	check_buf(&calls, "opened s\nopened n/-\nopened -\n");
	ck_assert_str_eq(runs.nodes[0]->job->facts.run, "n");
	ck_assert_str_eq(runs.runs[1]->job->facts.job, "raw-p");
	ck_assert(!runs.nodes[0]->job->streams[0]->origin.trusted);
	ff_intake_end(in, NOW);
	ff_intake_destroy(in);
}
END_TEST

/* A sample without job is for the job that its sender named, live as in a replay. */
static const struct {
	const char *before, *job;
} clocks[] = {
	{"{\"job\":\"j\",\"message\":\"a\"}\n", "j"},
	{"{\"event\":\"job-start\",\"job\":\"j\",\"world_size\":2}\n", "j"},
	{"{\"job\":\"i\",\"message\":\"a\"}\n{\"job\":\"j\",\"message\":\"a\"}\n", "j"},
	{"{\"job\":\"j\",\"message\":\"a\"}\n{\"message\":\"b\"}\n", "j"},
	{"{\"job\":\"j\",\"message\":\"a\"}\n"
	 "{\"kind\":\"kernel\",\"node\":\"n\",\"message\":\"b\"}\n", "j"},
	{"{\"job\":\"j\",\"message\":\"a\"}\nraw\n", "j"},
	{"{\"job\":\"j\",\"message\":\"a\"}\n{\"job\":\"-\",\"message\":\"a\"}\n", "j"},
};

START_TEST(test_jsonl_clock)
{
	for (int offline = 0; offline < 2; offline++) {
		size_t told = 0;
		struct ff_intake *in = create(offline);
		feed(in, clocks[_i].before);
		feed(in,
			"{\"event\":\"clock\",\"node\":\"n\",\"t1\":5,\"t2\":6,\"t3\":7,"
			"\"t4\":8}\n");
		for (size_t i = 0; i < runs.nruns; i++) {
			const struct ff_facts *f = &runs.runs[i]->job->facts;
			told += f->nclocks;
			ck_assert(!f->nclocks || !strcmp(f->job, clocks[_i].job));
		}
		ck_assert_uint_eq(told, 1);
		ff_intake_destroy(in);
		ff_runs_finish(&runs);
		ff_runs_init(&runs, catalog);
	}
}
END_TEST

START_TEST(test_jsonl_ack)
{
	struct ff_buf b = {0};
	struct ff_intake *in = create(false);
	feed(in,
		"{\"job\":\"j\",\"message\":\"a\"}\n{\"job\":\"j\",\"source\":\"x\",\"message\":"
		"\"a\"}\n"
		"{\"event\":\"job-end\",\"job\":\"j\"}\n");
	size_t n;
	(void)ff_intake_streams(in, &n);
	ck_assert_uint_eq(n, 2);
	ck_assert_uint_eq(ff_intake_controls(in), 1);
	ck_assert_uint_eq(ff_intake_usable(in), 3);
	ff_intake_ack(in, (uint64_t[]){2, 7}, (uint64_t[]){2, 9}, 1, &b);
	check_buf(&b, "{\"event\":\"ack\",\"source\":\"x\",\"offset\":7}\n");
	ff_buf_clear(&b);
	ff_intake_ack(in, (uint64_t[]){2, FF_INTAKE_SAID}, (uint64_t[]){2, 9}, 1, &b);
	ck_assert_uint_eq(b.len, 0);
	/* a source of several streams: which of them is said */
	feed(in, "{\"job\":\"j\",\"source\":\"x\",\"stream\":\"b\",\"message\":\"a\"}\n");
	ff_intake_ack(in, (uint64_t[]){2, 7, 2}, (uint64_t[]){2, 9, 2}, 1, &b);
	check_buf(&b,
		"{\"event\":\"ack\",\"source\":\"x\",\"stream\":\"-\",\"offset\":7}\n"
		"{\"event\":\"ack\",\"source\":\"x\",\"stream\":\"b\",\"offset\":2}\n");
	ck_assert_int_eq(runs.runs[0]->ended_us, NOW);
	ff_buf_finish(&b);
	ff_intake_destroy(in);
}
END_TEST

/* Unfinished lines of all connections have a limit together: the one beyond is skipped, up to its
 * end and no further, in either dialect that has long ones; what was finished is given back. */
static const struct {
	const char *front, *end, *text;
	size_t done; /* lines of it that are kept */
} unfinished[] = {
	{"{\"job\":\"j\",\"message\":\"first\"}\n{\"job\":\"j\",\"message\":\"", "\"}\n",
		"{\"job\":\"j\",\"message\":\"last\"}\n", 2},
	{"<13>1 - - a - - [x job=\"j\"] first\n<13>1 - - a - - [x job=\"j\"] ", "\n",
		"<13>1 - - a - - [x job=\"j\"] last\n", 2},
	{"33 <13>1 - - a - - [x job=\"j\"] first600028 <13>1 - - a - - [x job=\"j\"] ", "",
		"32 <13>1 - - a - - [x job=\"j\"] last", 2},
};

START_TEST(test_room)
{
	struct ff_intake_room room = {FF_UNFINISHED_ALL - 300000};
	struct ff_intake_options o = {.peer = "uid-0", .room = &room};
	struct ff_intake *in = ff_intake_create(&runs, &o, NULL, NULL);
	struct ff_buf filler = {0};
	for (int i = 0; i < 60000; i++) {
		ff_buf_addc(&filler, 'x');
	}
	feed(in, unfinished[_i].front);
	for (int i = 0; i < 4; i++) {
		ff_intake_feed(in, filler.p, filler.len, NOW);
	}
	ck_assert_uint_gt(room.used, FF_UNFINISHED_ALL - 100000);
	ck_assert_uint_le(room.used, FF_UNFINISHED_ALL);
	for (int i = 0; i < 6; i++) {
		ff_intake_feed(in, filler.p, filler.len, NOW);
	}
	ck_assert_uint_eq(room.used, FF_UNFINISHED_ALL - 300000);
	feed(in, unfinished[_i].end);
	feed(in, unfinished[_i].text);
	const struct ff_job *job = runs.runs[0]->job;
	ck_assert_uint_eq(job->counts[FF_COUNT_lines_no_room], 1);
	ck_assert_uint_eq(job->counts[FF_COUNT_lines], unfinished[_i].done);
	ck_assert_uint_eq(job->counts[FF_COUNT_bad_json] + job->counts[FF_COUNT_bad_syslog], 0);
	ff_intake_destroy(in);
	ck_assert_uint_eq(room.used, FF_UNFINISHED_ALL - 300000);
	ff_buf_finish(&filler);
}
END_TEST

/* The first object declares; a later connection changes nothing of it. */
START_TEST(test_jsonl_declared_once)
{
	feed_all(FF_STR("{\"job\":\"j\",\"stream\":\"s\",\"message\":\"a\"}\n"), false);
	feed_all(FF_STR("{\"job\":\"j\",\"stream\":\"s\",\"kind\":\"rank\",\"rank\":3,\"message\":"
			"\"" OOM "\"}\n"),
		false);
	check_dump("j/0\n  s mixed -/-/- - fed=21 ended\n    @2 cuda-oom global3 "
		   "arrived+3600000000\n");
}
END_TEST

START_TEST(test_jsonl_long)
{
	struct ff_intake *in = create(true);
	struct ff_buf line = {0};
	feed(in, "{\"job\":\"j\",\"message\":\"a\"}\n");
	ff_buf_addz(&line, "{\"job\":\"j\",\"message\":\"");
	while (line.len < FF_JSONL_LINE + 100) {
		ff_buf_addz(
			&line, "0123456789012345678901234567890123456789012345678901234567890123");
	}
	ff_buf_addz(&line, "\"}\n{\"job\":\"j\",\"message\":\"b\"}\n");
	for (size_t at = 0; at < line.len; at += 65536) {
		ff_intake_feed(in, line.p + at, line.len - at < 65536 ? line.len - at : 65536, NOW);
	}
	ff_intake_end(in, NOW);
	ck_assert_uint_eq(count(FF_COUNT_lines_cut), 1);
	check_dump("j/0\n  - mixed -/-/- - fed=4 ended\n");
	ff_buf_finish(&line);
	ff_intake_destroy(in);
}
END_TEST

/* ---- syslog */

#define SD "[ff@32473 job=\"17\" rank=\"2\" file=\"/srv/rank-2.log\"]"

/* However the bytes come: rsyslog's counted frames, syslog-ng's with an LF in the count, Docker's
 * old form by LF, the kernel's; a line that is none. */
static const char syslog_bytes[] = "103 <134>1 2026-01-01T00:00:01Z node-a train - - " SD " step 1"
				   "139 <134>1 2026-01-01T00:00:02.5Z node-a train - - " SD
				   "[meta sequenceId=\"1\"] CUDA out of memory\n"
				   "<30>May  1 12:00:00 3f2a90b1c4de[991]: loss 2.31\n"
				   "no frame at all\n"
				   "<4>1 2026-01-01T00:00:03Z node-b kernel - - - NVRM: Xid 79\n"
				   "<13>1 - node-a train - - " SD " last";

START_TEST(test_syslog)
{
	struct random r = random_init((uint64_t)_i);
	struct ff_intake *in = create(false);
	struct ff_str s = FF_STR(syslog_bytes);
	while (s.n) {
		size_t n = _i == 0 ? s.n : _i == 1 ? 1 : 1 + random_below(&r, 60);
		n = n < s.n ? n : s.n;
		ff_intake_feed(in, s.p, n, NOW);
		s = ff_str_skip(s, n);
	}
	ff_intake_end(in, NOW);
	ff_intake_destroy(in);
	check_dump("17/0\n"
		"  node-a//srv/rank-2.log rank 2/-/- - fed=31 ended\n"
		"    @7 cuda-oom captured+2500000\n"
		"raw-p/0\n"
		"  3f2a90b1c4de mixed -/-/- - fed=26 ended\n"
		"~0/node-b\n"
		"  node-b/kernel kernel! -/-/- - fed=13 ended\n");
	ck_assert_uint_eq(count(FF_COUNT_bad_syslog), 1);
}
END_TEST

/* A frame or line without an end is skipped as a whole, and the next one is heard. */
START_TEST(test_syslog_long)
{
	struct ff_intake *in = create(false);
	struct ff_buf b = {0};
	size_t n = (1u << 20) + 100;
	ff_buf_addf(&b, "%zu <13>1 - h a - - - ", n + 18);
	memset(ff_buf_reserve(&b, n), 'x', n);
	b.len += n;
	ff_buf_addz(&b, "<13>1 - h a - - - ");
	memset(ff_buf_reserve(&b, n), 'y', n);
	b.len += n;
	ff_buf_addz(&b, "\n<13>1 - h a - - - " OOM "\n");
	for (size_t at = 0; at < b.len; at += 5000) {
		ff_intake_feed(in, b.p + at, b.len - at < 5000 ? b.len - at : 5000, NOW);
	}
	ff_buf_finish(&b);
	ff_intake_end(in, NOW);
	ff_intake_destroy(in);
	ck_assert_uint_eq(count(FF_COUNT_lines_cut), 2);
	ck_assert_uint_eq(runs.nruns, 1);
	ck_assert_uint_eq(runs.runs[0]->job->streams[0]->nevents, 1);
}
END_TEST

/* ---- native */

#define HELLO(more) \
	"{\"event\":\"hello\",\"protocol\":\"firstfault/1\",\"job\":\"j\",\"source\":\"s1\"," \
	"\"streams\":[\"out\",\"err\"],\"fds\":[\"stdout\",\"stderr\"],\"rank\":3,\"attempt\":0," \
	"\"local_rank\":1,\"node\":\"n\",\"pid\":7" more "}\n"
#define WELCOME(a, b) \
	"{\"event\":\"welcome\",\"offsets\":[" #a "," #b "],\"max_unacked\":4194304}\n"

START_TEST(test_native)
{
	struct ff_intake *in = create(false);
	feed(in, HELLO(",\"world_size\":16"));
	check_buf(&replies, WELCOME(0, 0));
	check_buf(&calls, "opened n/out\nopened n/err\n");
	feed(in,
		"1767225601000000 0. step 1\n1767225602000000 1- CUDA out \n0 1. of memory x\n0 0. "
		"\n");
	check_dump(
		"j/0\n  job@start world_size=16\n  n/out rank 3/1/0 stdout source=s1 fed=8 open\n"
		"  n/err rank 3/1/0 stderr source=s1 fed=21 open\n    @0 cuda-oom "
		"captured+2000000\n");
	check_buf(&texts, "n/out@0 captured+1000000: step 1\nn/err@0 captured+2000000: CUDA out ~\n"
		"n/err@9: of memory x\nn/out@7: \n");
	feed(in, "{\"event\":\"end\",\"offsets\":[8,21]}\n");
	ck_assert_uint_eq(ff_intake_controls(in), 1);
	ck_assert_int_eq(runs.runs[0]->job->streams[1]->state, FF_STREAM_ENDED);
	struct ff_buf b = {0};
	ff_intake_ack(in, (uint64_t[]){8, 21}, (uint64_t[]){8, 21}, 1, &b);
	check_buf(&b, "{\"event\":\"ack\",\"offsets\":[8,21],\"done\":[8,21],\"controls\":1}\n");
	ff_buf_finish(&b);
	ff_intake_end(in, NOW);
	ck_assert_int_eq(runs.runs[0]->job->streams[1]->state, FF_STREAM_ENDED);
	check_buf(&replies, WELCOME(0, 0));
	ff_intake_destroy(in);
}
END_TEST

START_TEST(test_native_comes_back)
{
	struct ff_intake *in = create(false);
	feed(in, HELLO(""));
	feed(in, "0 0. abc\n0 1- half \n");
	ff_intake_end(in, NOW);
	ff_intake_destroy(in);
	check_dump("j/0\n  n/out rank 3/1/0 stdout source=s1 fed=4 vanished\n"
		"  n/err rank 3/1/0 stderr source=s1 fed=5 vanished\n");
	in = create(false);
	feed(in, HELLO(""));
	/* what the unfinished line needs is asked for again, and skipped here */
	check_buf(&replies, WELCOME(0, 0) WELCOME(4, 0));
	feed(in, "5000000 1. half line\n{\"event\":\"end\",\"offsets\":[4,10]}\n");
	ck_assert_uint_eq(count(FF_COUNT_resent), 5);
	ff_intake_end(in, NOW);
	ff_intake_destroy(in);
	check_dump("j/0\n  n/out rank 3/1/0 stdout source=s1 fed=4 ended\n"
		"  n/err rank 3/1/0 stderr source=s1 fed=10 ended\n");
	/* shipped again: all is known */
	in = create(false);
	feed(in, HELLO("") "{\"event\":\"end\",\"offsets\":[4,10]}\n");
	ff_intake_end(in, NOW);
	ff_intake_destroy(in);
	check_dump("j/0\n  n/out rank 3/1/0 stdout source=s1 fed=4 ended\n"
		"  n/err rank 3/1/0 stderr source=s1 fed=10 ended\n");
	/* or only asked for: what ended stays so */
	in = create(false);
	feed(in, HELLO(""));
	ff_intake_end(in, NOW);
	ff_intake_destroy(in);
	ck_assert_int_eq(runs.runs[0]->job->streams[0]->state, FF_STREAM_ENDED);
	/* and it may grow */
	in = create(false);
	feed(in, HELLO("") "0 0. more\n");
	ck_assert_int_eq(runs.runs[0]->job->streams[0]->state, FF_STREAM_OPEN);
	ff_intake_destroy(in);
}
END_TEST

/* Lines behind the `end` of their own connection: the stream is open again, until that goes. */
START_TEST(test_native_goes_on)
{
	struct ff_intake *in = create(false);
	feed(in, HELLO("") "0 0. abc\n{\"event\":\"end\",\"offsets\":[4,0]}\n0 0. de\n");
	check_dump("j/0\n  n/out rank 3/1/0 stdout source=s1 fed=7 open\n"
		   "  n/err rank 3/1/0 stderr source=s1 fed=0 ended\n");
	ff_intake_end(in, NOW);
	ff_intake_destroy(in);
	check_dump("j/0\n  n/out rank 3/1/0 stdout source=s1 fed=7 vanished\n"
		   "  n/err rank 3/1/0 stderr source=s1 fed=0 ended\n");
}
END_TEST

/* Another connection takes the streams over; the first one must not end them. */
START_TEST(test_native_taken_over)
{
	struct ff_intake *first = create(false), *second = create(false);
	feed(first, HELLO("") "0 0. abc\n");
	feed(second, HELLO(""));
	ff_intake_forget(first, runs.runs[0]->job->streams[0]);
	ff_intake_forget(first, runs.runs[0]->job->streams[1]);
	feed(first, "0 0. never\n");
	ff_intake_end(first, NOW);
	ff_intake_destroy(first);
	feed(second, "0 0. de\n");
	check_dump("j/0\n  n/out rank 3/1/0 stdout source=s1 fed=7 open\n"
		"  n/err rank 3/1/0 stderr source=s1 fed=0 open\n");
	ck_assert_uint_eq(count(FF_COUNT_same_rank), 0);
	ff_intake_destroy(second);
}
END_TEST

static const struct {
	const char *bytes, *code;
} fails[] = {
	{"{\"event\":\"hello\",\"protocol\":\"firstfault/"
	 "2\",\"job\":\"j\",\"source\":\"s\",\"streams\":[\"x\"]}\n",
		"protocol"},
	{"{\"event\":\"hello\"}\n", "protocol"},
	{"{\"event\":\"hello\",\"protocol\":\"firstfault/"
	 "1\",\"job\":\"none\",\"source\":\"s\",\"streams\":[\"x\"]}\n",
		"job-name"},
	{"{\"event\":\"hello\",\"protocol\":\"firstfault/1\",\"job\":\"a/"
	 "b\",\"source\":\"s\",\"streams\":[\"x\"]}\n",
		"job-name"},
	{"{\"event\":\"hello\",\"protocol\":\"firstfault/"
	 "1\",\"job\":\"j\",\"source\":\"s\",\"streams\":[\"x\"],"
	 "\"rank\":-1}\n",
		"rank"},
	{"{\"event\":\"hello\",\"protocol\":\"firstfault/"
	 "1\",\"job\":\"j\",\"source\":\"s\",\"streams\":[\"x\"],"
	 "\"kind\":\"x\"}\n",
		"protocol"},
	{HELLO("") "0 2. x\n", "protocol"},
	{HELLO("") "hello?\n", "protocol"},
	{HELLO("") "{}\n", "protocol"},
	{HELLO("") "{\"event\":3}\n", "protocol"},
	{HELLO("") "{\"event\":\n", "protocol"},
	{HELLO("") HELLO(""), "protocol"},
	{HELLO("") "{\"event\":\"end\"}\n", "protocol"},
	{HELLO("") "{\"event\":\"end\",\"offsets\":[0]}\n", "protocol"},
	{HELLO("") "{\"event\":\"end\",\"offsets\":[0,1]}\n", "protocol"},
	{HELLO("") "{\"event\":\"ping\",\"t1\":\"x\"}\n", "protocol"},
	{HELLO("") "{\"event\":\"clock\",\"t1\":1}\n", "protocol"},
};

START_TEST(test_native_fails)
{
	struct ff_intake *in = create(false);
	struct ff_buf want = {0}, closing = {0};
	feed(in, fails[_i].bytes);
	ff_buf_addf(&want, "{\"event\":\"error\",\"code\":\"%s\",\"text\":\"", fails[_i].code);
	ff_buf_addf(&closing, "closing %s\n", fails[_i].code);
	ck_assert_msg(strstr(replies.p, want.p) != NULL, "%s", replies.p);
	ck_assert_ptr_nonnull(strstr(calls.p, closing.p));
	ck_assert_uint_eq(count(FF_COUNT_protocol_errors), 1);
	/* the rest is ignored */
	size_t n = replies.len;
	feed(in, HELLO("") "0 0. x\n");
	ck_assert_uint_eq(replies.len, n);
	ff_intake_end(in, NOW);
	ff_intake_destroy(in);
	ff_buf_finish(&want);
	ff_buf_finish(&closing);
}
END_TEST

START_TEST(test_native_too_long)
{
	for (int over = 0; over < 2; over++) {
		struct ff_intake *in = create(false);
		struct ff_buf line = {0};
		feed(in, HELLO(""));
		ff_buf_addz(&line, "0 0. ");
		while (line.len < FF_WIRE_LINE + (size_t)over) {
			ff_buf_addc(&line, '.');
		}
		ff_intake_feed(in, line.p, line.len, NOW);
		ff_intake_feed(in, "\n", 1, NOW);
		ck_assert_int_eq(strstr(replies.p, "\"too-long\"") != NULL, over);
		ff_buf_finish(&line);
		ff_intake_destroy(in);
	}
}
END_TEST

/* What a data line may have is too much for an object, and that is said. */
START_TEST(test_native_long_object)
{
	struct ff_intake *in = create(false);
	struct ff_buf line = {0};
	ff_buf_addz(&line, "{\"event\":\"sign\",\"wchan\":\"");
	while (line.len < FF_WIRE_CONTROL) {
		ff_buf_addc(&line, '.');
	}
	ff_buf_addz(&line, "\"}\n");
	feed(in, HELLO(""));
	ff_intake_feed(in, line.p, line.len, NOW);
	ck_assert_ptr_nonnull(strstr(replies.p, "\"too-long\""));
	ff_buf_finish(&line);
	ff_intake_destroy(in);
}
END_TEST

/* A stream is of one rank and one attempt; nobody else's data is touched by a bad hello. */
START_TEST(test_native_other_rank)
{
	struct ff_intake *in = create(false);
	feed(in, HELLO(""));
	ff_intake_end(in, NOW);
	ff_intake_destroy(in);
	in = create(false);
	feed(in,
		"{\"event\":\"hello\",\"protocol\":\"firstfault/"
		"1\",\"job\":\"j\",\"source\":\"s1\","
		"\"node\":\"n\",\"streams\":[\"new\",\"err\"],\"rank\":4}\n");
	ck_assert_ptr_nonnull(strstr(replies.p, "\"code\":\"rank\""));
	ck_assert_uint_eq(runs.runs[0]->job->nstreams, 2);
	ff_intake_destroy(in);
}
END_TEST

START_TEST(test_native_same_rank)
{
	struct ff_intake *a = create(false), *b = create(false), *c = create(false),
		*d = create(false);
	static const char hello[] =
		"{\"event\":\"hello\",\"protocol\":\"firstfault/1\",\"job\":\"j\","
		"\"source\":\"%s\",\"node\":\"%s\",\"streams\":[\"err\"],\"rank\":3}\n";
	char line[256];
	(void)snprintf(line, sizeof line, hello, "s1", "n1");
	feed(a, line);
	(void)snprintf(line, sizeof line, hello, "s2", "n2");
	feed(b, line);
	ck_assert_uint_eq(count(FF_COUNT_same_rank), 1);
	check_dump("j/0\n  n1/err rank 3/-/- - source=s1 fed=0 open\n"
		"  n2/err rank 3/-/- - source=s2 fed=0 open\n");
	(void)snprintf(line, sizeof line, hello, "s3", "n2");
	feed(d, line);
	ck_assert_uint_eq(count(FF_COUNT_same_rank), 2);
	ff_intake_end(a, NOW);
	ff_intake_end(b, NOW);
	ff_intake_end(d, NOW);
	(void)snprintf(line, sizeof line, hello, "s4", "n1");
	feed(c, line); /* those before it are gone: nothing is claimed twice */
	ck_assert_uint_eq(count(FF_COUNT_same_rank), 2);
	ck_assert_str_eq(runs.runs[0]->job->streams[3]->key, "n1/err#2");
	ff_intake_destroy(a);
	ff_intake_destroy(b);
	ff_intake_destroy(c);
	ff_intake_destroy(d);
}
END_TEST

START_TEST(test_native_clock)
{
	struct ff_intake *in = create(false);
	feed(in, HELLO("") "{\"event\":\"ping\",\"t1\":5}\n"
		"{\"event\":\"clock\",\"t1\":5,\"t2\":6,\"t3\":7,\"t4\":8}\n");
	check_buf(&replies, WELCOME(0, 0) "{\"event\":\"pong\",\"t1\":5,\"t2\":1767229200000000,"
		"\"t3\":1767229200000000}\n");
	ck_assert_uint_eq(runs.runs[0]->job->facts.nclocks, 1);
	ck_assert_uint_eq(ff_intake_controls(in), 0);
	ff_intake_destroy(in);
}
END_TEST

/* A forwarder lost bytes: what was open ends there, and the same again changes nothing. */
START_TEST(test_native_gap)
{
	static const struct {
		const char *gap;
		bool good;
	} rows[] = {
		{"{\"event\":\"gap\",\"offsets\":[1000,0]}\n", true},
		{"{\"event\":\"gap\",\"offsets\":[6,0]}\n", true}, /* no byte is missing */
		{"{\"event\":\"gap\",\"offsets\":[5,0]}\n", false},
		{"{\"event\":\"gap\",\"offsets\":[1000]}\n", false},
		{"{\"event\":\"gap\"}\n", false},
	};
	for (size_t i = 0; i < N(rows); i++) {
		struct ff_intake *in = create(false);
		feed(in, HELLO(""));
		feed(in, "0 0- step 1\n");
		feed(in, rows[i].gap);
		ck_assert_msg(rows[i].good == !count(FF_COUNT_protocol_errors), "row %zu", i);
		if (i == 0) {
			feed(in, "0 0. " OOM "\n");
			check_buf(&texts,
				"n/out@0: step ~\nn/out@5: 1~\nn/out@1000: " OOM "\n");
			check_dump("j/0\n  n/out rank 3/1/0 stdout source=s1 fed=1019 open\n"
				"    @1000 cuda-oom\n  n/err rank 3/1/0 stderr source=s1 fed=0 "
				"open\n");
			ck_assert_uint_eq(count(FF_COUNT_gaps), 1);
			feed(in, "{\"event\":\"end\",\"offsets\":[1019,0]}\n");
			ck_assert_uint_eq(ff_intake_controls(in), 1);
		}
		ff_intake_destroy(in);
		teardown();
		setup();
	}
}
END_TEST

/* Control objects are idempotent; an exit without a rank is the connection's own. */
START_TEST(test_native_controls)
{
	struct ff_intake *in = create(false);
	static const char controls[] =
		"{\"event\":\"job-start\",\"job\":\"j\",\"world_size\":16}\n"
		"{\"event\":\"exit\",\"exit_code\":null,\"signal\":9,\"time\":\"2026-01-01T00:00:"
		"01Z\"}\n"
		"{\"event\":\"exit\",\"rank\":5,\"exit_code\":1}\n{\"event\":\"later\"}\n"
		"{\"event\":\"job-end\",\"exit_code\":\"1\"}\n"
		"{\"event\":\"job-end\",\"exit_code\":1,\"state\":\"FAILED\"}\n";
	feed(in, HELLO(""));
	feed(in, controls);
	struct ff_buf first = dump();
	ck_assert_uint_eq(ff_intake_controls(in), 5);
	feed(in, controls);
	struct ff_buf second = dump();
	check_buf(&first,
		"j/0\n  exit@0.3 attempt=0@1000000c node=n@1000000c pid=7@1000000c "
		"rank=3@1000000c signal=9@1000000c\n  exit@0.5 attempt=0 exit_code=1 node=n "
		"rank=5\n"
		"  job@end exit_code=1 state=FAILED\n  job@start world_size=16\n"
		"  n/out rank 3/1/0 stdout source=s1 fed=0 open\n"
		"  n/err rank 3/1/0 stderr source=s1 fed=0 open\n");
	ck_assert_str_eq(first.p, second.p);
	ck_assert_uint_eq(runs.runs[0]->job->facts.contradictions, 0);
	ck_assert_uint_eq(count(FF_COUNT_bad_values), 2);
	ff_buf_finish(&first);
	ff_buf_finish(&second);
	ff_intake_destroy(in);
}
END_TEST

START_TEST(test_native_collector)
{
	struct ff_intake *in = create(false);
	feed(in, HELLO(",\"clock\":\"collector\"") "1767225601000000 0. a\n"
		"{\"event\":\"exit\",\"signal\":9,\"time\":\"2026-01-01T00:00:01Z\"}\n");
	check_buf(&texts, "n/out@0 arrived+1000000: a\n");
	ck_assert_int_eq(runs.runs[0]->job->facts.controls[0]->values[0].clock, FF_CLOCK_ARRIVED);
	ff_intake_destroy(in);
}
END_TEST

START_TEST(test_native_plain)
{
	struct ff_intake *in = create(false);
	feed(in,
		"{\"event\":\"hello\",\"protocol\":\"firstfault/"
		"1\",\"job\":\"j\",\"source\":\"nc\","
		"\"streams\":[\"a\"],\"lines\":\"plain\"}\n{\"job\":\"k\",\"message\":\"m\"}"
		"\nhalf");
	ff_intake_end(in, NOW);
	check_buf(&texts, "a@0 arrived+3600000000: {\"job\":\"k\",\"message\":\"m\"}\n"
		"a@26 arrived+3600000000: half~\n");
	check_dump("j/0\n  a mixed -/-/- - source=nc fed=30 ended\n");
	ff_intake_destroy(in);
}
END_TEST

START_TEST(test_native_runs)
{
	struct ff_intake *in = create(false);
	feed(in, HELLO(",\"run\":\"r1\",\"live\":true"));
	ck_assert_str_eq(runs.runs[0]->job->facts.run, "r1");
	ff_intake_end(in, NOW);
	ff_intake_destroy(in);
	ff_facts_know(&runs.runs[0]->job->facts, "job@end");
	runs.runs[0]->ended_us = NOW;
	static const char hello[] =
		"{\"event\":\"hello\",\"protocol\":\"firstfault/1\",\"job\":\"j\","
		"\"source\":\"%s\",\"streams\":[\"x\"],\"live\":true}\n";
	for (int i = 0; i < 2; i++) { /* the known source, then a new one */
		char line[256];
		in = create(false);
		(void)snprintf(line, sizeof line, hello, i ? "s2" : "s1");
		ff_intake_feed(in, line, strlen(line), NOW + 3600 * FF_SECOND);
		ff_intake_destroy(in);
		ck_assert_uint_eq(runs.nruns, (size_t)i + 1);
	}
}
END_TEST

START_TEST(test_native_admit)
{
	struct ff_intake_ops strict = ops;
	struct ff_intake_options o = {.peer = "p"};
	strict.admit = on_admit;
	for (int i = 0; i < 2; i++) {
		struct ff_intake *in = ff_intake_create(&runs, &o, &strict, NULL);
		feed(in, i ? HELLO(",\"token\":\"secret\"") : HELLO(""));
		ck_assert_int_eq(strstr(replies.p, i ? "welcome" : "\"code\":\"auth\"") != NULL, 1);
		ck_assert_uint_eq(runs.nruns, (size_t)i);
		ff_intake_destroy(in);
	}
}
END_TEST

/* ---- trust */

static const struct {
	const char *kind;
	bool offline, trusted, believed;
} trusts[] = {
	{"kernel", false, true, true},
	{"kernel", false, false, false},
	{"kernel", true, false, true},
	{"scheduler", true, false, true},
	{"rank", true, true, false},
	{"mixed", false, true, false},
};

START_TEST(test_trust)
{
	struct ff_intake_options o = {.offline = trusts[_i].offline, .trusted = trusts[_i].trusted,
		.peer = "p"};
	for (int native = 0; native < 2; native++) {
		char line[256];
		struct ff_intake *in = ff_intake_create(&runs, &o, NULL, NULL);
		(void)snprintf(line, sizeof line,
			native ? "{\"event\":\"hello\",\"protocol\":\"firstfault/"
				 "1\",\"job\":\"n\",\"source\":\"s\","
				 "\"streams\":[\"x\"],\"kind\":\"%s\"}\n"
			       : "{\"job\":\"j\",\"kind\":\"%s\",\"message\":\"m\"}\n",
			trusts[_i].kind);
		feed(in, line);
		ck_assert_int_eq(
			runs.runs[native]->job->streams[0]->origin.trusted, trusts[_i].believed);
		ff_intake_destroy(in);
	}
}
END_TEST

/* ---- whose stream it is */

static void say_kernel(bool trusted, bool native, const char *text)
{
	struct ff_intake_options o = {.peer = "p", .trusted = trusted};
	struct ff_intake *in = ff_intake_create(&runs, &o, &ops, NULL);
	struct ff_buf line = {0};
	ff_buf_addz(&line, native ? "{\"event\":\"hello\",\"protocol\":\"firstfault/1\",\"lines\":"
				    "\"plain\",\"job\":\"j\",\"node\":\"n\",\"source\":\"s\","
				    "\"streams\":[\"x\"],\"kind\":\"kernel\"}\n"
				  : "{\"job\":\"j\",\"node\":\"n\",\"source\":\"s\",\"stream\":"
				    "\"x\",\"kind\":\"kernel\",\"message\":\"");
	ff_buf_addf(&line, native ? "%s\n" : "%s\"}\n", text);
	feed(in, line.p);
	ff_buf_finish(&line);
	ff_intake_destroy(in);
}

/* The first that feeds a stream decides; who is not believed feeds none that is. */
START_TEST(test_trust_stays_with_the_first)
{
	bool first = _i & 1, native = _i & 2, again = _i & 4;
	say_kernel(first, native, "one");
	const struct ff_stream *s = runs.runs[0]->job->streams[0];
	uint64_t fed = s->fed;
	ck_assert_uint_gt(fed, 0);
	ck_assert_int_eq(s->origin.trusted, first);
	say_kernel(!first, again, "another");
	ck_assert_uint_eq(runs.runs[0]->job->nstreams, 1);
	ck_assert_int_eq(s->origin.trusted, first);
	ck_assert_int_eq(s->fed > fed, !first);
	ck_assert_uint_eq(runs.runs[0]->job->counts[FF_COUNT_not_admitted], first);
	ck_assert_int_eq(strstr(replies.p ? replies.p : "", "\"auth\"") != NULL, first && again);
	say_kernel(first, native, "and the first again");
	ck_assert_int_eq(s->origin.trusted, first);
}
END_TEST

/* ---- text of a known file */

START_TEST(test_origin)
{
	struct ff_origin origin = {.name = "rank-3.log",
		.source = "0",
		.kind = FF_STREAM_RANK,
		.rank = 3,
		.local_rank = FF_UNKNOWN,
		.attempt = FF_UNKNOWN,
		.pid = FF_UNKNOWN,
		.kind_declared = true};
	for (int guess = 0; guess < 2; guess++) {
		struct ff_intake_options o = {.offline = true, .default_job = guess ? "g" : "f",
			.origin = &origin, .guess = guess};
		struct ff_intake *in = ff_intake_create(&runs, &o, &ops, NULL);
		feed(in, "{\"job\":\"k\",\"message\":\"m\"}\n");
		ff_intake_end(in, FF_TIME_NONE);
		ff_intake_destroy(in);
		in = ff_intake_create(&runs, &o, &ops, NULL); /* an empty file */
		ff_intake_end(in, FF_TIME_NONE);
		ff_intake_destroy(in);
	}
	check_dump(
		"f/0\n  rank-3.log rank! 3/-/- - fed=26 ended\nk/0\n"
		"  rank-3.log mixed -/-/- - fed=2 ended\n"
		"g/0\n  rank-3.log rank! 3/-/- - fed=0 ended\n");
}
END_TEST

/* docker's json-file: a stream for each descriptor of each file, parts of 16 KiB are one line, and
 * times are the node's. Another logger's objects are the file's lines. */
#define DOCKER(log, fd, at) \
	"{\"log\":\"" log "\",\"stream\":\"" fd "\",\"time\":\"2026-01-01T00:00:0" at "Z\"}\n"

static const struct {
	const char *name, *in, *want;
} file_rows[] = {
	{"c1.log",
		DOCKER("Key", "stderr", "1.5") DOCKER("step 1\\n", "stdout", "2")
			DOCKER("Error: 'x'\\n", "stderr", "3") DOCKER("end", "stderr", "4"),
		"c1.log/stdout@0 captured+2000000: step 1\n"
		"c1.log/stderr@0 captured+1500000: Key~\n"
		"c1.log/stderr@3 captured+3000000: Error: 'x'\n"
		"c1.log/stderr@14 captured+4000000: end~\n"},
	{"-", DOCKER("a\\n", "stderr", "1"), "stderr@0 captured+1000000: a\n"},
	{"b.log",
		"{\"message\":\"a\",\"level\":\"INFO\"}\n{\"msg\":\"b\",\"exc_info\":\"c\"}\n",
		"b.log@0: a\nb.log@2: b\nb.log@4: c\n"},
	/* somebody is named: lines as they are, and times of whom they say */
	{"c.log",
		"{\"job\":\"f\",\"rank\":3,\"log\":\"a\",\"stream\":\"stderr\",\"time\":"
		"\"2026-01-01T00:00:01Z\"}\n",
		"stderr@0 arrived+1000000: a\n"},
	{"c.log", "{\"log\":\"a\",\"stream\":\"stderr\"}\n", "stderr@0: a\n"},
	{"c.log", "{\"message\":\"a\",\"rank\":2}\n", "rank-2@0: a\n"},
};

START_TEST(test_file_of_objects)
{
	struct ff_origin origin = {.name = file_rows[_i].name,
		.source = "0",
		.kind = FF_STREAM_MIXED,
		.rank = FF_UNKNOWN,
		.local_rank = FF_UNKNOWN,
		.attempt = FF_UNKNOWN,
		.pid = FF_UNKNOWN};
	struct ff_intake_options o = {
		.offline = true, .default_job = "f", .origin = &origin, .guess = true};
	struct ff_intake *in = ff_intake_create(&runs, &o, &ops, NULL);
	ff_intake_feed(in, file_rows[_i].in, strlen(file_rows[_i].in), FF_TIME_NONE);
	ff_intake_end(in, FF_TIME_NONE);
	ff_intake_destroy(in);
	ck_assert_str_eq(texts.p, file_rows[_i].want);
}
END_TEST

/* ---- secrets */

static const struct {
	const char *what, *bytes;
} secrets[] = {
	{"raw", "key=" HF "\nnext " HF},
	{"JSON Lines",
		"{\"job\":\"j\",\"message\":\"key=" HF "\"}\n{\"job\":\"j\",\"message\":\"" HF
		"\"}\n"},
	{"native", HELLO("") "0 0. key=" HF "\n0 0. " HF "\n"},
	{"native, in pieces",
		HELLO("") "0 0- key=hf_abcdefghijkl\n0 0- mnopqrstuvwxyz01234\n0 0. 56789\n"
			  "0 0- " HF "\n{\"event\":\"end\",\"offsets\":[83,0]}\n"},
};

/* Wherever the bytes are cut: no secret is seen, and no offset changes. */
START_TEST(test_secrets)
{
	size_t n = strlen(secrets[_i].bytes);
	for (size_t cut = 0; cut <= n; cut++) {
		struct ff_intake *in = create(false);
		ff_intake_feed(in, secrets[_i].bytes, cut, NOW);
		ff_intake_feed(in, secrets[_i].bytes + cut, n - cut, NOW);
		ff_intake_end(in, NOW);
		ff_intake_destroy(in);
		ck_assert_msg(!strstr(texts.p, "mnopq"), "%s, cut at %zu: %s", secrets[_i].what,
			cut, texts.p);
		ck_assert_uint_eq(count(FF_COUNT_secrets), 2);
		ck_assert_ptr_nonnull(strstr(texts.p, "<secret:hf:"));
		teardown();
		setup();
	}
}
END_TEST

/* The same of what only a pattern knows, whose front is no word of its own. */
START_TEST(test_own_secret_vanishes)
{
	static char *const patterns[] = {(char *)"pin [0-9]{4} of [a-z]+"};
	const char *line = "0 0- a pin 1234 of ada";
	struct ff_mask_rules *rules;
	ck_assert_int_eq(ff_mask_rules_create(patterns, 1, &rules, NULL), 0);
	for (size_t n = strlen("0 0- a p"); n <= strlen(line); n++) {
		runs.mask = rules;
		struct ff_intake *in = create(false);
		feed(in, HELLO(""));
		ff_intake_feed(in, line, n, NOW);
		feed(in, "\n");
		ff_intake_end(in, NOW);
		ff_intake_destroy(in);
		in = create(false);
		feed(in, HELLO("") "0 0- a pin 1234 o\n0 0. f ada.\n");
		ff_intake_end(in, NOW);
		ff_intake_destroy(in);
		ck_assert_msg(!strstr(texts.p, "p") && strstr(texts.p, "a <secret:ow"),
			"cut at %zu: %s", n, texts.p);
		ck_assert_uint_eq(count(FF_COUNT_secrets), 1);
		ck_assert_uint_eq(runs.runs[0]->job->streams[0]->fed, 19);
		teardown();
		setup();
	}
	ff_mask_rules_destroy(rules);
}
END_TEST

/* The connection goes in the middle of a secret; the sender comes again. */
START_TEST(test_secret_vanishes)
{
	const char *line = "0 0- key=" HF;
	for (size_t n = strlen("0 0- k"); n <= strlen(line); n++) {
		struct ff_intake *in = create(false);
		feed(in, HELLO(""));
		ff_intake_feed(in, line, n, NOW);
		feed(in, "\n");
		ff_intake_end(in, NOW);
		ff_intake_destroy(in);
		in = create(false);
		feed(in, HELLO("") "0 0. key=" HF " end\n");
		ff_intake_end(in, NOW);
		ff_intake_destroy(in);
		ck_assert_msg(!strstr(texts.p, "abc") && !strstr(texts.p, "789"), "cut at %zu: %s",
			n, texts.p);
		ck_assert_uint_eq(count(FF_COUNT_secrets), 1);
		ck_assert_uint_eq(runs.runs[0]->job->streams[0]->fed, 48);
		teardown();
		setup();
	}
}
END_TEST

/* ---- however the bytes are cut, the same is known */

static const char *const wholes[] = {
	HELLO("") "1767225601000000 0. step 1\n1767225602000000 1- CUDA out \n0 1. of memory x\n"
		  "{\"event\":\"exit\",\"signal\":9}\n1767225603000000 0. " OOM
		  "\n{\"event\":\"end\",\"offsets\":[26,21]}\n",
	"{\"event\":\"job-start\",\"job\":\"j\",\"world_size\":4}\n{\"job\":\"j\",\"rank\":1,"
	"\"message\":\"a\\n" OOM "\"}\nraw " OOM
	"\n{\"job\":\"j\",\"rank\":2,\"message\":\"\xc3\xa9\"}\r\n",
	"first line\r\n" OOM "\nbar 10%\rbar 20%\r\n\n\0nul " OOM,
};

START_TEST(test_any_cut)
{
	struct random r = random_init((uint64_t)_i);
	struct ff_str whole = _i == 2 ? ff_str_n(wholes[2], 70) : ff_str_z(wholes[_i]);
	for (int offline = 0; offline < 2; offline++) {
		feed_all(whole, offline);
		struct ff_buf want = dump();
		for (size_t turn = 0; turn < whole.n + 50; turn++) {
			teardown();
			setup();
			struct ff_intake *in = create(offline);
			ff_usec now = offline ? FF_TIME_NONE : NOW;
			for (size_t at = 0; at < whole.n;) {
				/* cut once, everywhere at once, or at random */
				size_t n = turn < whole.n ? (at ? whole.n : turn + 1) - at :
					turn == whole.n ? 1 : random_below(&r, 20) + 1;
				n = n < whole.n - at ? n : whole.n - at;
				char *exact = ff_xmemdup(whole.p + at, n);
				ff_intake_feed(in, exact, n, now);
				free(exact);
				at += n;
			}
			ff_intake_end(in, now);
			ff_intake_destroy(in);
			struct ff_buf got = dump();
			ck_assert_msg(!strcmp(got.p, want.p),
				"turn %zu, seed %llu, got:\n%s\nwant:\n%s", turn,
				(unsigned long long)r.seed, got.p, want.p);
			ff_buf_finish(&got);
		}
		ff_buf_finish(&want);
		teardown();
		setup();
	}
}
END_TEST

/* Changed bytes never do harm (the sanitizers look). */
START_TEST(test_hostile)
{
	struct random r = random_init((uint64_t)_i + 100);
	for (int turn = 0; turn < 300; turn++) {
		char *copy = ff_xstrdup(wholes[turn % 2]);
		size_t n = strlen(copy);
		for (uint32_t k = random_below(&r, 4) + 1; k; k--) {
			copy[random_below(&r, (uint32_t)n)] = (char)random_below(&r, 256);
		}
		feed_all(ff_str_n(copy, n), turn % 3 == 0);
		free(copy);
		teardown();
		setup();
	}
}
END_TEST

/* ---- ff_intake_control */

START_TEST(test_control)
{
	struct ff_run *run;
	struct ff_err err = {0};
	ck_assert_int_eq(
		ff_runs_resolve(&runs, FF_STR("j"), NULL, NULL, FF_RUN_START, NOW, &run, NULL), 0);
	struct ff_json *good =
		ff_json_parse(FF_STR("{\"exit_code\":1,\"state\":\"FAILED\",\"x\":1}"), NULL);
	struct ff_json *bad = ff_json_parse(FF_STR("{\"state\":\"OK\",\"exit_code\":\"1\"}"), NULL);
	struct ff_json *time = ff_json_parse(FF_STR("{\"time\":\"2026-01-01T00:00:01Z\"}"), NULL);
	ck_assert_int_eq(ff_intake_control(run, "job-end", ff_json_root(bad), &err), FF_ESCHEMA);
	ck_assert(err.text[0]);
	check_dump("j/0\n");
	ck_assert_int_eq(ff_intake_control(run, "job-end", ff_json_root(good), NULL), 0);
	ck_assert_int_eq(ff_intake_control(run, "job-start", ff_json_root(time), NULL), 0);
	ck_assert_int_eq(ff_intake_control(run, "exit", ff_json_root(good), NULL), FF_ESCHEMA);
	ck_assert_int_eq(ff_intake_control(run, "end", ff_json_root(good), NULL), FF_ESCHEMA);
	check_dump("j/0\n  job@end exit_code=1 state=FAILED\n  job@start "
		   "time=1767225601000000@1000000a\n");
	ck_assert_uint_eq(count(FF_COUNT_unknown_keys), 1);
	ff_json_destroy(good);
	ff_json_destroy(bad);
	ff_json_destroy(time);
}
END_TEST

#define LOOP(tc, fn, n) tcase_add_loop_test(tc, fn, 0, (int)(n))

int main(void)
{
	Suite *s = suite_create("intake");
	TCase *tc = tcase_create("intake");
	tcase_add_checked_fixture(tc, setup, teardown);
	LOOP(tc, test_dialect, N(dialects));
	tcase_add_test(tc, test_settle);
	tcase_add_test(tc, test_wrong_port);
	tcase_add_test(tc, test_nothing);
	tcase_add_test(tc, test_long_first_line);
	LOOP(tc, test_jsonl, N(jsonl));
	tcase_add_test(tc, test_named);
	tcase_add_test(tc, test_jsonl_counts);
	tcase_add_test(tc, test_jsonl_online);
	LOOP(tc, test_jsonl_clock, sizeof clocks / sizeof clocks[0]);
	tcase_add_test(tc, test_jsonl_ack);
	tcase_add_loop_test(tc, test_room, 0, N(unfinished));
	tcase_add_test(tc, test_jsonl_declared_once);
	tcase_add_test(tc, test_jsonl_long);
	tcase_add_loop_test(tc, test_syslog, 0, 12);
	tcase_add_test(tc, test_syslog_long);
	tcase_add_test(tc, test_native);
	tcase_add_test(tc, test_native_comes_back);
	tcase_add_test(tc, test_native_goes_on);
	tcase_add_test(tc, test_native_taken_over);
	LOOP(tc, test_native_fails, N(fails));
	tcase_add_test(tc, test_native_too_long);
	tcase_add_test(tc, test_native_long_object);
	tcase_add_test(tc, test_native_other_rank);
	tcase_add_test(tc, test_native_same_rank);
	tcase_add_test(tc, test_native_clock);
	tcase_add_test(tc, test_native_gap);
	tcase_add_test(tc, test_native_controls);
	tcase_add_test(tc, test_native_collector);
	tcase_add_test(tc, test_native_plain);
	tcase_add_test(tc, test_native_runs);
	tcase_add_test(tc, test_native_admit);
	LOOP(tc, test_trust, N(trusts));
	LOOP(tc, test_trust_stays_with_the_first, 8);
	tcase_add_test(tc, test_origin);
	tcase_add_loop_test(tc, test_file_of_objects, 0,
		(int)(sizeof file_rows / sizeof file_rows[0]));
	LOOP(tc, test_secrets, N(secrets));
	tcase_add_test(tc, test_secret_vanishes);
	tcase_add_test(tc, test_own_secret_vanishes);
	LOOP(tc, test_any_cut, N(wholes));
	LOOP(tc, test_hostile, 5);
	tcase_add_test(tc, test_control);
	tcase_set_timeout(tc, 120);
	suite_add_tcase(s, tc);
	SRunner *sr = srunner_create(s);
	srunner_run_all(sr, CK_ENV);
	int failed = srunner_ntests_failed(sr);
	srunner_free(sr);
	return failed ? 1 : 0;
}
