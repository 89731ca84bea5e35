#include "wire/jsonl.h"

#include "random.h"

#include <check.h>

#include <stdio.h>

#define N(table) (sizeof(table) / sizeof(table)[0])

#define S(literal) {(literal), sizeof(literal) - 1}

/* ---- text */

static const struct {
	struct ff_str line, text; /* text.p NULL: no data object */
} texts[] = {
	{S("{\"message\":\"step 1\"}"), S("step 1")},
	{S("{\"log\":\"a\"}"), S("a")},
	{S("{\"msg\":\"\"}"), S("")},
	{S("{\"msg\":\"b\",\"log\":\"c\",\"message\":\"a\"}"), S("a")},
	{S("{\"message\":\"a\\u0000b\"}"), S("a\0b")},
	{S("{\"message\":\"a\xff\xfe\"}"), S("a\xff\xfe")},
	{S("{\"message\":\"\\ud83d\\ude00\"}"), S("\xf0\x9f\x98\x80")},
	{S("{\"message\":\"\\ud800x\"}"), S("\xef\xbf\xbdx")},
	{S("{\"message\":\"\\udcff\"}"), S("\xff")},
	{S("{\"message\":\"\\u00e9\\u20ac\"}"), S("\xc3\xa9\xe2\x82\xac")},
	{S("{\"message\":\"\\\"\\\\\\/\\b\\f\\n\\r\\t\"}"), S("\"\\/\b\f\n\r\t")},
	{S("{\"message\":\"tab\there\"}"), S("tab\there")},
	{S("{\"message\":\"a\",\"exc_info\":\"T\\nE\"}"), S("a\nT\nE")},
	{S("{\"stack_trace\":\"s\",\"exception\":\"e\",\"message\":\"a\\n\"}"), S("a\ne\ns")},
	{S("{\"message\":\"a\",\"exc_info\":null,\"exception\":true}"), S("a")},
	{S(" { \"message\" : \"a\" } \r"), S("a")},
	{S("{\"event\":\"epoch\",\"n\":1}"), S("{\"event\":\"epoch\",\"n\":1}")},
	{S("{\"event\":\"epoch\",\"message\":\"a\"}"),
		S("{\"event\":\"epoch\",\"message\":\"a\"}")},
	{S("{\"x\":{\"message\":\"no\"},\"message\":\"yes\"}"), S("yes")},
	{S("{}"), {NULL, 0}},
	{S("{\"message\":3}"), {NULL, 0}},
	{S("{\"message\":null}"), {NULL, 0}},
	{S("{\"event\":\"job-start\",\"job\":\"a\"}"), {NULL, 0}},
};

START_TEST(test_text)
{
	struct ff_jsonl o = {0};
	ck_assert_int_eq(ff_jsonl_parse(&o, texts[_i].line), 0);
	ck_assert_int_eq(o.has_text, texts[_i].text.p != NULL);
	if (texts[_i].text.p) {
		ck_assert_msg(ff_str_eq(o.text, texts[_i].text), "row %d: \"%.*s\"", _i,
			FF_STR_ARG(o.text));
	}
	ff_jsonl_finish(&o);
}
END_TEST

/* ---- not an object */

static const char *const refused[] = {
	"",
	" ",
	"[]",
	"\"text\"",
	"1",
	"null",
	"{",
	"}",
	"{\"a\"}",
	"{\"a\":}",
	"{\"a\":1,}",
	"{a:1}",
	"{\"a\":1}x",
	"{\"a\":1}{",
	"{\"a\":\"\\x\"}",
	"{\"a\":\"\\u12\"}",
	"{\"a\":\"",
	"{\"a\":tru}",
	"{\"a\":1.}",
	"{\"a\":-}",
	"{\"a\":1e}",
	"{\"a\":[1,]}",
	"{\"a\":{\"b\"}}",
	"{,}",
	"{\"a\":1 \"b\":2}",
	"step 1 loss 2.3",
	"{'a':1}",
};

START_TEST(test_refused)
{
	struct ff_jsonl o = {0};
	ck_assert_int_eq(ff_jsonl_parse(&o, ff_str_z(refused[_i])), FF_EJSON);
	ff_jsonl_finish(&o);
}
END_TEST

START_TEST(test_depth)
{
	struct ff_jsonl o = {0};
	for (int depth = 60; depth < 70; depth++) {
		struct ff_buf b = {0};
		ff_buf_addz(&b, "{\"message\":\"a\",\"x\":");
		for (int i = 0; i < depth; i++) {
			ff_buf_addc(&b, '[');
		}
		for (int i = 0; i < depth; i++) {
			ff_buf_addc(&b, ']');
		}
		ff_buf_addc(&b, '}');
		/* the object itself is one level */
		ck_assert_int_eq(ff_jsonl_parse(&o, ff_buf_str(&b)), depth < 64 ? 0 : FF_EJSON);
		ff_buf_finish(&b);
	}
	ff_jsonl_finish(&o);
}
END_TEST

/* ---- keys */

START_TEST(test_keys)
{
	struct ff_jsonl o = {0};
	struct ff_str line = FF_STR(
		"{\"job\":\"4711\",\"run\":\"2\",\"kind\":\"rank\",\"rank\":3,"
		"\"node\":\"node-0\",\"local_rank\":1,\"attempt\":4,\"stream\":\"rank-3.log\","
		"\"fd\":\"stderr\","
		"\"source\":\"a1\",\"offset\":8192,\"clock\":\"node\",\"complete\":false,\"time\":"
		"\"2026-01-01T00:00:00.012Z\",\"timestamp\":1767225600.5,\"message\":\"m\"}");
	ck_assert_int_eq(ff_jsonl_parse(&o, line), 0);
	ck_assert(ff_str_eqz(o.job, "4711"));
	ck_assert(ff_str_eqz(o.run, "2"));
	ck_assert(ff_str_eqz(o.kind, "rank"));
	ck_assert(ff_str_eqz(o.node, "node-0"));
	ck_assert(ff_str_eqz(o.stream, "rank-3.log"));
	ck_assert(ff_str_eqz(o.fd, "stderr"));
	ck_assert(ff_str_eqz(o.source, "a1"));
	ck_assert_int_eq(o.rank, 3);
	ck_assert_int_eq(o.local_rank, 1);
	ck_assert_int_eq(o.attempt, 4);
	ck_assert_int_eq(o.offset, 8192);
	ck_assert_int_eq(o.clock, FF_JSONL_CLOCK_NODE);
	ck_assert_int_eq(o.complete, 0);
	ck_assert_int_eq(o.time, 1767225600012000);
	ck_assert_int_eq(o.stamp, 1767225600500000);
	ck_assert_uint_eq(o.bad, 0);
	ck_assert_uint_eq(o.bad_times, 0);
	/* nothing stays from one object to the next */
	ck_assert_int_eq(
		ff_jsonl_parse(&o, FF_STR("{\"message\":\"m\",\"rank\":null,\"job\":null}")), 0);
	ck_assert_ptr_null(o.job.p);
	ck_assert_int_eq(o.rank, -1);
	ck_assert_int_eq(o.offset, -1);
	ck_assert_int_eq(o.time, FF_TIME_NONE);
	ck_assert_int_eq(o.stamp, FF_TIME_NONE);
	ck_assert_int_eq(o.clock, FF_JSONL_CLOCK_UNSAID);
	ck_assert_int_eq(o.complete, -1);
	ck_assert_uint_eq(o.bad, 0);
	ff_jsonl_finish(&o);
	ff_jsonl_finish(&o);
}
END_TEST

static const struct {
	const char *line, *node;
} hosts[] = {
	{"{\"message\":\"m\",\"host\":\"a\"}", "a"},
	{"{\"message\":\"m\",\"hostname\":\"b\"}", "b"},
	{"{\"message\":\"m\",\"host\":\"a\",\"node\":\"c\"}", "c"},
	{"{\"message\":\"m\",\"node\":\"c\",\"hostname\":\"a\"}", "c"},
	{"{\"message\":\"m\",\"host\":{\"name\":\"a\"}}", NULL},
};

START_TEST(test_host)
{
	struct ff_jsonl o = {0};
	ck_assert_int_eq(ff_jsonl_parse(&o, ff_str_z(hosts[_i].line)), 0);
	ck_assert_int_eq(o.node.p != NULL, hosts[_i].node != NULL);
	ck_assert(!hosts[_i].node || ff_str_eqz(o.node, hosts[_i].node));
	ck_assert_uint_eq(o.bad, 0);
	ff_jsonl_finish(&o);
}
END_TEST

/* A value of the wrong form is taken as absent and counted; the text still counts. */
static const char *const bad_values[] = {
	"{\"job\":4711,\"message\":\"a\"}", "{\"rank\":\"three\",\"message\":\"a\"}",
	"{\"rank\":-1,\"message\":\"a\"}", "{\"rank\":131072,\"message\":\"a\"}",
	"{\"rank\":1.5,\"message\":\"a\"}", "{\"rank\":99999999999999999999,\"message\":\"a\"}",
	"{\"offset\":-1,\"message\":\"a\"}", "{\"offset\":9007199254740992,\"message\":\"a\"}",
	"{\"stream\":[],\"message\":\"a\"}", "{\"clock\":\"wall\",\"message\":\"a\"}",
	"{\"message\":\"a\",\"log\":3}", "{\"complete\":1,\"message\":\"a\"}",
};

START_TEST(test_bad_values)
{
	struct ff_jsonl o = {0};
	ck_assert_int_eq(ff_jsonl_parse(&o, ff_str_z(bad_values[_i])), 0);
	ck_assert_uint_eq(o.bad, 1);
	ck_assert(o.has_text);
	ck_assert_int_eq(o.rank, -1);
	ck_assert_int_eq(o.offset, -1);
	ff_jsonl_finish(&o);
}
END_TEST

/* ---- what agents send (tests/fixtures/wire has whole captures) */

#define NS "2026-01-01T00:00:00.123456789Z"
#define FLUENT "\"kubernetes\":{\"pod_name\":\"llm-0\",\"namespace_name\":\"team\"," \
	"\"labels\":{\"app\":\"x\",\"job-name\":\"llm\",\"controller-uid\":\"u-1\"}," \
	"\"host\":\"gpu-1\",\"container_name\":\"main\"}"
#define VECTOR "\"kubernetes\":{\"container_name\":\"main\",\"pod_labels\":" \
	"{\"training.kubeflow.org/job-name\":\"llm\",\"job-name\":\"other\"}," \
	"\"pod_name\":\"llm-0\",\"pod_namespace\":\"team\",\"pod_node_name\":\"gpu-1\"}"

static const struct {
	const char *line;
	const char *job, *run, *node, *stream, *fd; /* NULL: absent */
	bool shipped, piece;
	int64_t rank;
} agents[] = {
	/* Fluent Bit: tail with path_key, record_modifier (whose values are strings) */
	{"{\"timestamp\":\"2026-01-01T00:00:00.1Z\",\"stream\":\"/l/r.log\",\"log\":\"x\","
	 "\"job\":\"4711\",\"rank\":\"3\",\"node\":\"n\"}",
		"4711", NULL, "n", "/l/r.log", NULL, false, false, 3},
	/* parser cri; multiline.parser cri, which leaves _p at P on what it joined */
	{"{\"date\":1767225600.1,\"time\":\"" NS "\",\"stream\":\"stderr\",\"logtag\":\"P\","
	 "\"message\":\"a \",\"file\":\"/l/0.log\"}",
		NULL, NULL, NULL, "/l/0.log/stderr", "stderr", true, true, -1},
	{"{\"date\":1767225600.1,\"time\":\"" NS "\",\"stream\":\"stderr\",\"logtag\":\"F\","
	 "\"message\":\"b\",\"file\":\"/l/0.log\"}",
		NULL, NULL, NULL, "/l/0.log/stderr", "stderr", true, false, -1},
	{"{\"date\":1767225600123,\"time\":\"" NS "\",\"stream\":\"stdout\",\"_p\":\"P\","
	 "\"log\":\"a b\"}",
		NULL, NULL, NULL, "stdout", "stdout", true, false, -1},
	/* parser docker keeps the LF, and its absence */
	{"{\"date\":1767225600.1,\"log\":\"a \",\"stream\":\"stderr\",\"time\":\"" NS "\","
	 "\"job\":\"j\"}",
		"j", NULL, NULL, "stderr", "stderr", true, true, -1},
	{"{\"date\":1767225600.1,\"log\":\"b\\n\",\"stream\":\"stderr\",\"time\":\"" NS "\","
	 "\"job\":\"j\"}",
		"j", NULL, NULL, "stderr", "stderr", true, false, -1},
	/* filter kubernetes: the label names the job, unless the object does */
	{"{\"date\":1767225600.1,\"stream\":\"stderr\",\"logtag\":\"F\",\"message\":\"m\","
	 FLUENT "}",
		"llm.team", "u-1", "gpu-1", "llm-0/main/stderr", "stderr", true, false, -1},
	{"{\"job\":\"mine\",\"stream\":\"stderr\",\"log\":\"m\"," FLUENT "}", "mine", NULL, "gpu-1",
		"llm-0/main/stderr", "stderr", true, false, -1},
	/* Vector: kubernetes_logs, with and without its own joining; file */
	{"{\"file\":\"/var/log/pods/x/0.log\"," VECTOR ",\"message\":\"m\",\"source_type\":"
	 "\"kubernetes_logs\",\"stream\":\"stdout\",\"timestamp\":\"" NS "\"}",
		"llm.team", NULL, "gpu-1", "llm-0/main/stdout", "stdout", true, false, -1},
	{"{" VECTOR ",\"_partial\":true,\"message\":\"m\",\"stream\":\"stdout\"}", "llm.team", NULL,
		"gpu-1", "llm-0/main/stdout", "stdout", true, true, -1},
	{"{\"file\":\"/l/rank-0.log\",\"host\":\"n\",\"job\":\"j\",\"message\":\"m\",\"rank\":0,"
	 "\"source_type\":\"file\",\"timestamp\":\"" NS "\"}",
		"j", NULL, "n", "/l/rank-0.log", NULL, false, false, 0},
	/* Docker's driver for fluentd */
	{"{\"container_id\":\"ab\",\"container_name\":\"/train\",\"source\":\"stderr\","
	 "\"log\":\"m\",\"partial_message\":\"true\",\"partial_last\":\"false\",\"job\":\"j\"}",
		"j", NULL, NULL, "/train/stderr", "stderr", true, true, -1},
	{"{\"container_id\":\"ab\",\"container_name\":\"/train\",\"source\":\"stderr\","
	 "\"log\":\"m\",\"partial_message\":\"true\",\"partial_last\":\"true\",\"job\":\"j\"}",
		"j", NULL, NULL, "/train/stderr", "stderr", true, false, -1},
	/* one that only looks like it: its stream is what it says */
	{"{\"job\":\"j\",\"stream\":\"stderr\",\"time\":\"" NS "\",\"message\":\"m\"}", "j", NULL,
		NULL, "stderr", NULL, false, false, -1},
	{"{\"job\":\"j\",\"message\":\"m\",\"kubernetes\":7,\"file\":[],\"logtag\":{},"
	 "\"container_name\":null}",
		"j", NULL, NULL, NULL, NULL, false, false, -1},
};

static void check_text(const char *line, const char *what, struct ff_str got, const char *wanted)
{
	ck_assert_msg(wanted ? ff_str_eqz(got, wanted) : !got.n, "%s: %s is \"%.*s\"", line, what,
		FF_STR_ARG(got));
}

START_TEST(test_agents)
{
	struct ff_jsonl o = {0};
	const char *line = agents[_i].line;
	ck_assert_int_eq(ff_jsonl_parse(&o, ff_str_z(line)), 0);
	check_text(line, "job", o.job, agents[_i].job);
	check_text(line, "run", o.run, agents[_i].run);
	check_text(line, "node", o.node, agents[_i].node);
	check_text(line, "stream", o.stream, agents[_i].stream);
	check_text(line, "fd", o.fd, agents[_i].fd);
	check_text(line, "source", o.source, NULL);
	ck_assert_int_eq(o.rank, agents[_i].rank);
	/* without anybody's name the docker form of a file is told from an agent's */
	ck_assert_msg(o.shipped == agents[_i].shipped, "%s: shipped", line);
	ck_assert_msg(o.piece == agents[_i].piece, "%s: piece", line);
	ck_assert_uint_eq(o.bad + o.bad_times, 0);
	ff_jsonl_finish(&o);
}
END_TEST

/* Names as long as they come, made beside a line that is escaped all over. */
START_TEST(test_long_names)
{
	struct ff_jsonl o = {0};
	struct ff_buf line = {0};
	ff_buf_addz(&line, "{\"stream\":\"stderr\",\"message\":\"");
	for (int i = 0; i < 300; i++) {
		ff_buf_addz(&line, "\\t");
	}
	ff_buf_addz(&line, "\",\"kubernetes\":{");
	static const char *const keys[] = {"pod_name", "container_name", "namespace_name", "host"};
	for (size_t k = 0; k < N(keys); k++) {
		ff_buf_addf(&line, "\"%s\":\"%0600d\",", keys[k], 1);
	}
	ff_buf_addf(&line, "\"labels\":{\"job-name\":\"%0600d\"}}}", 1);
	ck_assert_int_eq(ff_jsonl_parse(&o, ff_buf_str(&line)), 0);
	ck_assert_uint_eq(o.text.n, 300);
	ck_assert(ff_str_ends(o.stream, FF_STR("/stderr")));
	ck_assert(o.stream.n < 1100 && o.job.n < 600);
	ff_buf_finish(&line);
	ff_jsonl_finish(&o);
}
END_TEST

static const struct {
	const char *event;
	enum ff_jsonl_event is;
} events[] = {
	{"hello", FF_JSONL_HELLO}, {"job-start", FF_JSONL_JOB_START}, {"job-end", FF_JSONL_JOB_END},
	{"exit", FF_JSONL_EXIT}, {"end", FF_JSONL_END}, {"sign", FF_JSONL_SIGN},
	{"ping", FF_JSONL_PING}, {"clock", FF_JSONL_CLOCK}, {"Hello", FF_JSONL_OTHER},
	{"", FF_JSONL_OTHER}, {"job-start ", FF_JSONL_OTHER},
};

START_TEST(test_events)
{
	struct ff_jsonl o = {0};
	struct ff_buf b = {0};
	ff_buf_addf(&b, "{\"event\":\"%s\"}", events[_i].event);
	ck_assert_int_eq(ff_jsonl_parse(&o, ff_buf_str(&b)), 0);
	ck_assert_int_eq(o.event, events[_i].is);
	ck_assert_int_eq(ff_jsonl_event_name(o.event) != NULL, events[_i].is != FF_JSONL_OTHER);
	ff_buf_finish(&b);
	ff_jsonl_finish(&o);
}
END_TEST

/* ---- times */

#define T ((ff_usec)1767225600 * FF_SECOND) /* 2026-01-01T00:00:00Z */

static const struct {
	const char *member;
	ff_usec time, stamp;
	unsigned bad;
} times[] = {
	{"\"time\":\"2026-01-01T00:00:00Z\"", T, FF_TIME_NONE, 0},
	{"\"time\":\"2026-01-01T01:00:00+01:00\"", T, FF_TIME_NONE, 0},
	{"\"time\":\"2026-01-01 00:00:00,5\"", T + 500000, FF_TIME_NONE, 0},
	{"\"time\":1767225600", FF_TIME_NONE, FF_TIME_NONE, 1},
	{"\"time\":\"2026-01-01 at noon\"", FF_TIME_NONE, FF_TIME_NONE, 1},
	{"\"time\":\"1999-01-01T00:00:00Z\"", 915148800 * FF_SECOND, FF_TIME_NONE, 1},
	{"\"timestamp\":\"2026-01-01T00:00:00Z\"", FF_TIME_NONE, T, 0},
	{"\"ts\":1767225600", FF_TIME_NONE, T, 0},
	{"\"ts\":1767225600.000001", FF_TIME_NONE, T + 1, 0},
	{"\"ts\":1767225600000", FF_TIME_NONE, T, 0},
	{"\"@timestamp\":1767225600000000", FF_TIME_NONE, T, 0},
	{"\"date\":1767225600000000123", FF_TIME_NONE, T, 0},
	{"\"date\":1.7672256e9", FF_TIME_NONE, T, 0},
	{"\"date\":\"1767225600\"", FF_TIME_NONE, T, 0},
	{"\"date\":17", FF_TIME_NONE, FF_TIME_NONE, 1},
	{"\"date\":-1767225600", FF_TIME_NONE, FF_TIME_NONE, 1},
	{"\"date\":1e400", FF_TIME_NONE, FF_TIME_NONE, 1},
	{"\"date\":[1]", FF_TIME_NONE, FF_TIME_NONE, 1},
	{"\"ts\":\"x\",\"date\":1767225600", FF_TIME_NONE, T, 1},
};

START_TEST(test_times)
{
	struct ff_jsonl o = {0};
	struct ff_buf b = {0};
	ff_buf_addf(&b, "{\"message\":\"m\",%s}", times[_i].member);
	ck_assert_int_eq(ff_jsonl_parse(&o, ff_buf_str(&b)), 0);
	ck_assert_int_eq(o.time, times[_i].time);
	ck_assert_int_eq(o.stamp, times[_i].stamp);
	ck_assert_uint_eq(o.bad_times, times[_i].bad);
	ck_assert(o.has_text);
	ff_buf_finish(&b);
	ff_jsonl_finish(&o);
}
END_TEST

/* ---- properties */

static void add_escaped(struct ff_buf *b, struct ff_str s, struct random *r)
{
	for (size_t i = 0; i < s.n; i++) {
		unsigned char c = (unsigned char)s.p[i];
		if (c < 0x20 || c == '"' || c == '\\' || (c < 0x80 && random_below(r, 4) == 0)) {
			ff_buf_addf(b, random_below(r, 2) ? "\\u%04x" : "\\u%04X", c);
		} else {
			ff_buf_addc(b, (char)c);
		}
	}
}

/* Any bytes survive, however they were escaped. */
START_TEST(test_any_bytes)
{
	struct random r = random_init((uint64_t)_i);
	struct ff_jsonl o = {0};
	for (int turn = 0; turn < 200; turn++) {
		struct ff_buf text = {0}, line = {0};
		size_t n = random_below(&r, 80);
		for (size_t i = 0; i < n; i++) {
			ff_buf_addc(&text, (char)random_below(&r, 256));
		}
		ff_buf_addz(&line, "{\"rank\":7,\"message\":\"");
		add_escaped(&line, ff_buf_str(&text), &r);
		ff_buf_addz(&line, "\"}");
		ck_assert_int_eq(ff_jsonl_parse(&o, ff_buf_str(&line)), 0);
		ck_assert_msg(o.text.n == n && (!n || !memcmp(o.text.p, text.p, n)), "seed %llu",
			(unsigned long long)r.seed);
		ck_assert_int_eq(o.rank, 7);
		ff_buf_finish(&text);
		ff_buf_finish(&line);
	}
	ff_jsonl_finish(&o);
}
END_TEST

/* Cut or changed lines are read or refused, never read beyond their end (the sanitizers look). */
START_TEST(test_hostile)
{
	struct random r = random_init((uint64_t)_i);
	struct ff_jsonl o = {0};
	struct ff_str good =
		FF_STR("{\"job\":\"a\",\"rank\":3,\"x\":[1,{\"y\":\"\\u00e9\"}],\"time\":"
		       "\"2026-01-01T00:00:00Z\",\"ts\":1.5e9,\"message\":\"\\ud83d\\ude00\",\"exc_"
		       "info\":\"e\"}");
	for (int turn = 0; turn < 2000; turn++) {
		size_t n = random_below(&r, (uint32_t)good.n + 1);
		char *copy = malloc(n + 1);
		memcpy(copy, good.p, n);
		if (n && random_below(&r, 2)) {
			copy[random_below(&r, (uint32_t)n)] = (char)random_below(&r, 256);
		}
		char *exact = realloc(copy, n ? n : 1);
		(void)ff_jsonl_parse(&o, ff_str_n(exact, n));
		free(exact);
	}
	ff_jsonl_finish(&o);
}
END_TEST

#define LOOP(tc, fn, n) tcase_add_loop_test(tc, fn, 0, (int)(n))

int main(void)
{
	Suite *s = suite_create("jsonl");
	TCase *tc = tcase_create("jsonl");
	LOOP(tc, test_text, N(texts));
	LOOP(tc, test_refused, N(refused));
	tcase_add_test(tc, test_depth);
	tcase_add_test(tc, test_keys);
	LOOP(tc, test_host, N(hosts));
	LOOP(tc, test_bad_values, N(bad_values));
	LOOP(tc, test_agents, N(agents));
	tcase_add_test(tc, test_long_names);
	LOOP(tc, test_events, N(events));
	LOOP(tc, test_times, N(times));
	LOOP(tc, test_any_bytes, 10);
	LOOP(tc, test_hostile, 10);
	tcase_set_timeout(tc, 60);
	suite_add_tcase(s, tc);
	SRunner *sr = srunner_create(s);
	srunner_run_all(sr, CK_ENV);
	int failed = srunner_ntests_failed(sr);
	srunner_free(sr);
	return failed ? 1 : 0;
}
