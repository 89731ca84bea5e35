#include "wire/otlp.h"

#include "base/mem.h"

#include "random.h"

#include <check.h>

#include <stdio.h>
#include <stdlib.h>

#define N(table) (sizeof(table) / sizeof(table)[0])

/* ---- records, as a line each: JOB RUN NODE STREAM KIND FD RANK LOCAL ATTEMPT TIME BAD |TEXT| */

static void add(struct ff_buf *out, struct ff_str s)
{
	ff_buf_adds(out, s.n ? s : FF_STR("."));
	ff_buf_addc(out, ' ');
}

static void print(void *ud, const struct ff_otlp_record *r)
{
	struct ff_buf *out = ud;
	add(out, r->job);
	add(out, r->run);
	add(out, r->node);
	add(out, r->stream);
	add(out, r->kind);
	add(out, r->fd);
	ff_buf_addf(out, "%lld %lld %lld %lld %u |", (long long)r->rank, (long long)r->local_rank,
		(long long)r->attempt, r->time == FF_TIME_NONE ? -1 : (long long)r->time, r->bad);
	ff_buf_adds(out, r->has_text ? r->text : FF_STR("<none>"));
	ff_buf_addz(out, "|\n");
}

#define REQUEST(attributes, records) \
	"{\"resourceLogs\":[{\"resource\":{\"attributes\":[" attributes "]}," \
	"\"scopeLogs\":[{\"scope\":{\"name\":\"s\"},\"logRecords\":[" records "]}]}]}"
#define S(key, value) "{\"key\":\"" key "\",\"value\":{\"stringValue\":\"" value "\"}}"
#define I(key, value) "{\"key\":\"" key "\",\"value\":{\"intValue\":" value "}}"
#define BODY(text) "{\"body\":{\"stringValue\":\"" text "\"}}"
#define ANY(value) "{\"body\":" value "}"
#define NOBODY ". . . . . . -1 -1 -1 -1 0 "
#define T "1767225600120000000"

static const struct {
	const char *body, *records;
} rows[] = {
	{"{}", ""},
	{" { \"resourceLogs\" : [ ] } ", ""},
	{"{\"resourceLogs\":null,\"other\":[1,{\"a\":null}]}", ""},
	{"{\"resourceLogs\":[{}]}", ""},
	{"{\"resourceLogs\":[{\"resource\":null,\"scopeLogs\":null}]}", ""},
	{REQUEST("", BODY("hello")), NOBODY "|hello|\n"},
	{REQUEST("", BODY("a\\tb\\u00fc\\n  c")), NOBODY "|a\tb\xc3\xbc\n  c|\n"},
	{REQUEST("", BODY("one") "," BODY("") "," BODY("three")),
		NOBODY "|one|\n" NOBODY "||\n" NOBODY "|three|\n"},
	/* times: strings and numbers, the record's own before the observer's; 0 is none */
	{REQUEST("", "{\"timeUnixNano\":\"" T "\",\"observedTimeUnixNano\":1,"
		     "\"body\":{\"stringValue\":\"x\"}}"),
		". . . . . . -1 -1 -1 1767225600120000 1 |x|\n"},
	{REQUEST("", "{\"observedTimeUnixNano\":" T ",\"timeUnixNano\":\"0\","
		     "\"body\":{\"stringValue\":\"x\"}}"),
		". . . . . . -1 -1 -1 1767225600120000 0 |x|\n"},
	{REQUEST("", "{\"timeUnixNano\":\"soon\",\"body\":{\"stringValue\":\"x\"}}"),
		". . . . . . -1 -1 -1 -1 1 |x|\n"},
	/* who speaks: ours before others', the record before its resource */
	{REQUEST(S("job", "a") "," S("firstfault.job", "b") "," S("k8s.job.name", "c"), BODY("x")),
		"b . . . . . -1 -1 -1 -1 0 |x|\n"},
	{REQUEST(S("job", "a") "," I("rank", "3") "," S("host.name", "h"),
		 "{\"attributes\":[" S("job", "b") "," I("rank", "\"4\"") ","
		 I("local_rank", "0") "," I("firstfault.attempt", "1") ","
		 S("firstfault.run", "r") "," S("log.iostream", "stderr") ","
		 S("firstfault.kind", "rank") "," S("log.file.path", "/l/r.log")
		 "],\"body\":{\"stringValue\":\"x\"}}," BODY("y")),
		"b r h /l/r.log rank stderr 4 0 1 -1 0 |x|\n"
		"a . h . . . 3 -1 -1 -1 0 |y|\n"},
	{REQUEST(I("rank", "-3") "," S("local_rank", "many"), BODY("x")),
		". . . . . . -1 -1 -1 -1 2 |x|\n"},
	/* Kubernetes: NAME.NAMESPACE, the Job's uid is the run, pod and container the stream */
	{REQUEST(S("k8s.job.name", "llm") "," S("k8s.job.uid", "u-1") ","
		 S("k8s.namespace.name", "team") "," S("k8s.pod.name", "llm-0") ","
		 S("k8s.container.name", "main") "," S("k8s.node.name", "gpu-1") ","
		 S("log.iostream", "stdout"), BODY("x")),
		"llm.team u-1 gpu-1 llm-0/main/stdout . stdout -1 -1 -1 -1 0 |x|\n"},
	{REQUEST(S("k8s.job.name", "llm-worker-0") "," S("k8s.job.uid", "u-1") ","
		 S("k8s.pod.labels.jobset.sigs.k8s.io/jobset-name", "llm") ","
		 S("service.name", "train"), BODY("x")),
		"llm . . train . . -1 -1 -1 -1 0 |x|\n"},
	{REQUEST(S("k8s.pod.label.training.kubeflow.org/job-name", "pt") ","
		 S("k8s.pod.label.training.kubeflow.org/replica-index", "3"), BODY("x")),
		"pt . . . . . -1 -1 -1 -1 0 |x|\n"},
	/* any value */
	{REQUEST("", ANY("{\"intValue\":\"42\"}") "," ANY("{\"boolValue\":true}") ","
		 ANY("{\"doubleValue\":2.5}") "," ANY("{}") "," ANY("null") "," ANY("7")),
		NOBODY "|42|\n" NOBODY "|true|\n" NOBODY "|2.5|\n" NOBODY "|<none>|\n"
		NOBODY "|<none>|\n" NOBODY "|<none>|\n"},
	{REQUEST("", ANY("{\"kvlistValue\":{\"values\":[" S("event", "b\\\"m") ","
			 I("n", "\"7\"") ",{\"key\":\"l\",\"value\":{\"arrayValue\":{\"values\":["
			 "{\"boolValue\":false},{},{\"kvlistValue\":{}}]}}}]}}")),
		NOBODY "|{\"event\":\"b\\\"m\",\"n\":7,\"l\":[false,null,{}]}|\n"},
	{REQUEST("", ANY("{\"kvlistValue\":{\"values\":[" S("msg", "third") ","
			 S("message", "first\\n") "," S("log", "second") "]}}")),
		NOBODY "|first\n|\n"},
	/* the traceback of an exception stands behind the text */
	{REQUEST("", "{\"attributes\":[" S("exception.stacktrace", "Trace\\n  at x") "],"
		     "\"body\":{\"stringValue\":\"failed\"}}"),
		NOBODY "|failed\nTrace\n  at x|\n"},
	{REQUEST("", "{\"attributes\":[" S("exception.stacktrace", "Trace") "]}"),
		NOBODY "|Trace|\n"},
	/* members in another order, several resources */
	{"{\"resourceLogs\":[{\"scopeLogs\":[{\"logRecords\":[" BODY("x") "]},{}],"
	 "\"resource\":{\"attributes\":[" S("job", "a") "]}},"
	 "{\"scopeLogs\":[{\"logRecords\":[" BODY("y") "]}]}]}",
		"a . . . . . -1 -1 -1 -1 0 |x|\n" NOBODY "|y|\n"},
};

START_TEST(test_records)
{
	struct ff_buf out = {0};
	struct ff_err err = {0};
	int r = ff_otlp_parse(ff_str_z(rows[_i].body), print, &out, &err);
	ff_buf_addc(&out, '\0');
	ck_assert_msg(r == 0, "%s: %s", rows[_i].body, err.text);
	ck_assert_str_eq(out.p, rows[_i].records);
	ff_buf_finish(&out);
}
END_TEST

/* ---- other forms: nothing of them is taken */

static const char *const bad[] = {
	"",
	"[]",
	"7",
	"{} {}",
	"{\"resourceLogs\":{}}",
	"{\"resourceLogs\":[7]}",
	"{\"resourceLogs\":[{\"scopeLogs\":7}]}",
	"{\"resourceLogs\":[{\"resource\":[]}]}",
	"{\"resourceLogs\":[{\"resource\":{\"attributes\":{}}}]}",
	"{\"resourceLogs\":[{\"scopeLogs\":"
	"[{\"logRecords\":[" BODY("x") "]},{\"logRecords\":7}]}]}",
	REQUEST("", BODY("x") ",7"),
	REQUEST("", BODY("x") ",{\"attributes\":7}"),
	REQUEST("", BODY("x") ","),
	REQUEST("", BODY("x \\q")),
};

START_TEST(test_bad)
{
	struct ff_buf out = {0};
	struct ff_err err = {0};
	ck_assert_int_eq(ff_otlp_parse(ff_str_z(bad[_i]), print, &out, &err), FF_EJSON);
	ck_assert_uint_eq(out.len, 0);
	ck_assert_str_ne(err.text, "");
	ff_buf_finish(&out);
}
END_TEST

START_TEST(test_nul)
{
	static const char body[] = REQUEST("", BODY("a\\u0000b"));
	struct ff_buf out = {0};
	ck_assert_int_eq(ff_otlp_parse(ff_str_z(body), print, &out, NULL), 0);
	ck_assert(ff_str_eq(ff_buf_str(&out), FF_STR(NOBODY "|a\0b|\n")));
	ff_buf_finish(&out);
}
END_TEST

/* Cut anywhere, or with a byte changed: read in bounds (of memory that ends there). */
START_TEST(test_random)
{
	struct random rnd = random_init(71);
	struct ff_buf out = {0};
	for (int i = 0; i < 20000; i++) {
		struct ff_str whole = ff_str_z(rows[random_below(&rnd, N(rows))].body);
		size_t n = random_below(&rnd, (uint32_t)whole.n + 1);
		char *part = ff_xmemdup(whole.p, n);
		if (n) {
			part[random_below(&rnd, (uint32_t)n)] = (char)random_below(&rnd, 256);
		}
		ff_buf_clear(&out);
		(void)ff_otlp_parse(ff_str_n(part, n), print, &out, NULL);
		free(part);
		part = ff_xmemdup(whole.p, n);
		int r = ff_otlp_parse(ff_str_n(part, n), print, &out, NULL);
		ck_assert(r == FF_EJSON || n >= whole.n - 1); /* a blank may stand at the end */
		free(part);
	}
	ff_buf_finish(&out);
}
END_TEST

START_TEST(test_answers)
{
	struct ff_buf out = {0};
	ff_otlp_answer_render(&out, 0, "why");
	ff_otlp_answer_render(&out, 7, "why");
	ff_otlp_status_render(&out, 3, "no \"x\"");
	ff_buf_addc(&out, '\0');
	ck_assert_str_eq(out.p,
		"{}{\"partialSuccess\":{\"rejectedLogRecords\":\"7\",\"errorMessage\":\"why\"}}"
		"{\"code\":3,\"message\":\"no \\\"x\\\"\"}");
	ff_buf_finish(&out);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("otlp");
	TCase *tc = tcase_create("otlp");
	tcase_add_loop_test(tc, test_records, 0, N(rows));
	tcase_add_loop_test(tc, test_bad, 0, N(bad));
	tcase_add_test(tc, test_nul);
	tcase_add_test(tc, test_random);
	tcase_add_test(tc, test_answers);
	suite_add_tcase(s, tc);
	SRunner *sr = srunner_create(s);
	srunner_run_all(sr, CK_ENV);
	int failed = srunner_ntests_failed(sr);
	srunner_free(sr);
	return failed > 0;
}
