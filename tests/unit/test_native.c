#include "wire/native.h"

#include "random.h"

#include <check.h>

#include <stdio.h>

#define N(table) (sizeof(table) / sizeof(table)[0])
#define S(literal) {(literal), sizeof(literal) - 1}

/* ---- data lines */

static const struct {
	struct ff_str line;
	bool ok;
	ff_usec stamp;
	unsigned k;
	bool newline;
	struct ff_str text;
} lines[] = {
	{S("1767225600000000 0. step 1"), true, 1767225600000000, 0, true, S("step 1")},
	{S("0 9- "), true, FF_TIME_NONE, 9, false, S("")},
	{S("0 3.  two blanks "), true, FF_TIME_NONE, 3, true, S(" two blanks ")},
	{S("5 1. nul\0in\r"), true, 5, 1, true, S("nul\0in\r")},
	{S("9007199254740991 0. a"), true, 9007199254740991, 0, true, S("a")},
	{S("9007199254740992 0. a"), false, 0, 0, false, S("")},
	{S("99999999999999999999 0. a"), false, 0, 0, false, S("")},
	{S(""), false, 0, 0, false, S("")},
	{S("5"), false, 0, 0, false, S("")},
	{S("5 0."), false, 0, 0, false, S("")},
	{S("5 0.a"), false, 0, 0, false, S("")},
	{S("5 x. a"), false, 0, 0, false, S("")},
	{S("5 10. a"), false, 0, 0, false, S("")},
	{S("5 0+ a"), false, 0, 0, false, S("")},
	{S("-5 0. a"), false, 0, 0, false, S("")},
	{S(" 5 0. a"), false, 0, 0, false, S("")},
	{S("plain text"), false, 0, 0, false, S("")},
};

START_TEST(test_data)
{
	struct ff_native_data d;
	ck_assert_int_eq(ff_native_data_parse(lines[_i].line, &d), lines[_i].ok);
	if (!lines[_i].ok) {
		return;
	}
	ck_assert_int_eq(d.stamp, lines[_i].stamp);
	ck_assert_uint_eq(d.k, lines[_i].k);
	ck_assert_int_eq(d.newline, lines[_i].newline);
	ck_assert(ff_str_eq(d.text, lines[_i].text));
	struct ff_buf b = {0};
	ff_native_data_render(&b, &d);
	ck_assert_uint_eq(b.len, lines[_i].line.n + 1);
	ck_assert_int_eq(memcmp(b.p, lines[_i].line.p, lines[_i].line.n), 0);
	ck_assert_int_eq(b.p[b.len - 1], '\n');
	ff_buf_finish(&b);
}
END_TEST

/* ---- hello */

#define HELLO(more) \
	"{\"event\":\"hello\",\"protocol\":\"firstfault/" \
	"1\",\"job\":\"4711\",\"source\":\"a\",\"streams\":" more

static const struct {
	const char *text;
	int error; /* -1: fine, else enum ff_native_error */
} hellos[] = {
	{HELLO("[\"s\"]}"), -1},
	{HELLO("[\"s\"],\"rank\":null,\"fds\":null,\"live\":null,\"clock\":null,\"lines\":null}"),
		-1},
	{HELLO("[\"0\",\"1\",\"2\",\"3\",\"4\",\"5\",\"6\",\"7\",\"8\",\"9\"]}"), -1},
	{HELLO("[\"s\"],\"unknown\":{\"a\":1}}"), -1},
	{HELLO("[]}"), FF_NATIVE_PROTOCOL},
	{HELLO("[\"\"]}"), FF_NATIVE_PROTOCOL},
	{HELLO("[3]}"), FF_NATIVE_PROTOCOL},
	{HELLO("\"s\"}"), FF_NATIVE_PROTOCOL},
	{HELLO("[\"s\",\"s\"]}"), FF_NATIVE_PROTOCOL},
	{HELLO("[\"0\",\"1\",\"2\",\"3\",\"4\",\"5\",\"6\",\"7\",\"8\",\"9\",\"10\"]}"),
		FF_NATIVE_PROTOCOL},
	{HELLO("[\"s\"],\"fds\":[\"stdin\"]}"), FF_NATIVE_PROTOCOL},
	{HELLO("[\"s\"],\"fds\":[null,null]}"), FF_NATIVE_PROTOCOL},
	{HELLO("[\"s\"],\"clock\":\"wall\"}"), FF_NATIVE_PROTOCOL},
	{HELLO("[\"s\"],\"lines\":\"json\"}"), FF_NATIVE_PROTOCOL},
	{HELLO("[\"s\"],\"live\":1}"), FF_NATIVE_PROTOCOL},
	{HELLO("[\"s\"],\"node\":7}"), FF_NATIVE_PROTOCOL},
	{HELLO("[\"s\"],\"rank\":-1}"), FF_NATIVE_RANK},
	{HELLO("[\"s\"],\"rank\":131072}"), FF_NATIVE_RANK},
	{HELLO("[\"s\"],\"rank\":\"3\"}"), FF_NATIVE_RANK},
	{HELLO("[\"s\"],\"world_size\":0}"), FF_NATIVE_RANK},
	{"{\"event\":\"hello\",\"job\":\"a\",\"source\":\"a\",\"streams\":[\"s\"]}",
		FF_NATIVE_PROTOCOL},
	{"{\"event\":\"hello\",\"protocol\":\"firstfault/"
	 "2\",\"job\":\"a\",\"source\":\"a\",\"streams\":[\"s\"]}",
		FF_NATIVE_PROTOCOL},
	{"{\"event\":\"hello\",\"protocol\":\"firstfault/1\",\"source\":\"a\",\"streams\":[\"s\"]}",
		FF_NATIVE_JOB_NAME},
	{"{\"event\":\"hello\",\"protocol\":\"firstfault/1\",\"job\":\"a\",\"streams\":[\"s\"]}",
		FF_NATIVE_PROTOCOL},
	{"{\"event\":\"hello\",\"protocol\":\"firstfault/"
	 "1\",\"job\":\"a\",\"source\":\"\",\"streams\":[\"s\"]}",
		FF_NATIVE_PROTOCOL},
	{"[]", FF_NATIVE_PROTOCOL},
};

START_TEST(test_hello)
{
	struct ff_native_hello h;
	enum ff_native_error code;
	struct ff_err err = {0};
	struct ff_json *doc = ff_json_parse(ff_str_z(hellos[_i].text), NULL);
	ck_assert_ptr_nonnull(doc);
	int r = ff_native_hello_parse(ff_json_root(doc), &h, &code, &err);
	if (hellos[_i].error < 0) {
		ck_assert_msg(r == 0, "%s", err.text);
		ck_assert_str_eq(h.job, "4711");
		ck_assert_int_eq(h.rank, -1);
	} else {
		ck_assert_int_eq(r, FF_EPROTO);
		ck_assert_int_eq((int)code, hellos[_i].error);
		ck_assert(err.text[0]);
	}
	ff_json_destroy(doc);
}
END_TEST

START_TEST(test_hello_there_and_back)
{
	struct ff_native_hello h = FF_NATIVE_HELLO_INIT, back;
	enum ff_native_error code;
	struct ff_buf b = {0};
	h.job = "a \"job\"";
	h.source = "3f2a";
	h.node = "node-0";
	h.kind = "rank";
	h.run = "2";
	h.token = "t";
	h.nstreams = 2;
	h.streams[0] = "rank-3.stdout";
	h.streams[1] = "rank-3.stderr";
	h.fds[1] = "stderr";
	h.rank = 3;
	h.local_rank = 1;
	h.world_size = 16;
	h.attempt = 0;
	h.pid = 4242;
	h.collector = h.live = h.plain = true;
	ff_native_hello_render(&b, &h);
	ck_assert_int_eq(b.p[b.len - 1], '\n');
	struct ff_json *doc = ff_json_parse(ff_buf_str(&b), NULL);
	ck_assert_int_eq(ff_native_hello_parse(ff_json_root(doc), &back, &code, NULL), 0);
	ck_assert_str_eq(back.job, h.job);
	ck_assert_str_eq(back.source, h.source);
	ck_assert_str_eq(back.node, h.node);
	ck_assert_str_eq(back.kind, h.kind);
	ck_assert_str_eq(back.run, h.run);
	ck_assert_str_eq(back.token, h.token);
	ck_assert_uint_eq(back.nstreams, 2);
	ck_assert_str_eq(back.streams[1], "rank-3.stderr");
	ck_assert_ptr_null(back.fds[0]);
	ck_assert_str_eq(back.fds[1], "stderr");
	ck_assert_int_eq(back.rank, 3);
	ck_assert_int_eq(back.local_rank, 1);
	ck_assert_int_eq(back.world_size, 16);
	ck_assert_int_eq(back.attempt, 0);
	ck_assert_int_eq(back.pid, 4242);
	ck_assert(back.collector && back.live && back.plain);
	ff_json_destroy(doc);
	ff_buf_finish(&b);
}
END_TEST

/* ---- answers */

START_TEST(test_render)
{
	struct ff_buf b = {0};
	ff_native_welcome_render(&b, (uint64_t[]){0, 12}, 2, 4194304);
	ff_native_ack_render(&b, (uint64_t[]){4096}, (uint64_t[]){8192}, 1, 1);
	ff_native_end_render(&b, (uint64_t[]){9000}, 1);
	ff_native_ping_render(&b, 1);
	ff_native_pong_render(&b, 1, 2, 3);
	ff_native_clock_render(&b, 1, 2, 3, 4);
	ff_native_error_render(&b, FF_NATIVE_TOO_LONG, "a \"line\"");
	ck_assert_str_eq(b.p,
		"{\"event\":\"welcome\",\"offsets\":[0,12],\"max_unacked\":4194304}\n"
		"{\"event\":\"ack\",\"offsets\":[4096],\"done\":[8192],\"controls\":1}\n"
		"{\"event\":\"end\",\"offsets\":[9000]}\n"
		"{\"event\":\"ping\",\"t1\":1}\n"
		"{\"event\":\"pong\",\"t1\":1,\"t2\":2,\"t3\":3}\n"
		"{\"event\":\"clock\",\"t1\":1,\"t2\":2,\"t3\":3,\"t4\":4}\n"
		"{\"event\":\"error\",\"code\":\"too-long\",\"text\":\"a \\\"line\\\"\"}\n");
	ff_buf_finish(&b);
}
END_TEST

static const struct {
	const char *text;
	int kind; /* -1: refused */
} replies[] = {
	{"{\"event\":\"welcome\",\"offsets\":[7],\"max_unacked\":9}", FF_NATIVE_REPLY_WELCOME},
	{"{\"event\":\"ack\",\"offsets\":[7],\"done\":[8],\"controls\":2}", FF_NATIVE_REPLY_ACK},
	{"{\"event\":\"pong\",\"t1\":1,\"t2\":2,\"t3\":3}", FF_NATIVE_REPLY_PONG},
	{"{\"event\":\"error\",\"code\":\"busy\",\"text\":\"t\"}", FF_NATIVE_REPLY_ERROR},
	{"{\"event\":\"later\"}", FF_NATIVE_REPLY_OTHER},
	{"{}", -1},
	{"{\"event\":\"welcome\",\"offsets\":[7,8],\"max_unacked\":9}", -1},
	{"{\"event\":\"welcome\",\"offsets\":[],\"max_unacked\":9}", -1},
	{"{\"event\":\"welcome\",\"offsets\":[-7],\"max_unacked\":9}", -1},
	{"{\"event\":\"welcome\",\"offsets\":[7],\"max_unacked\":0}", -1},
	{"{\"event\":\"welcome\",\"offsets\":[7]}", -1},
	{"{\"event\":\"ack\",\"offsets\":[7],\"done\":[\"8\"],\"controls\":2}", -1},
	{"{\"event\":\"pong\",\"t1\":1,\"t2\":2}", -1},
	{"{\"event\":\"error\",\"code\":\"busy\"}", -1},
};

START_TEST(test_reply)
{
	struct ff_native_reply r;
	struct ff_json *doc = ff_json_parse(ff_str_z(replies[_i].text), NULL);
	int e = ff_native_reply_parse(ff_json_root(doc), 1, &r, NULL);
	if (replies[_i].kind < 0) {
		ck_assert_int_eq(e, FF_EPROTO);
	} else {
		ck_assert_int_eq(e, 0);
		ck_assert_int_eq((int)r.kind, replies[_i].kind);
	}
	ff_json_destroy(doc);
}
END_TEST

/* ---- properties */

START_TEST(test_data_there_and_back)
{
	struct random r = random_init((uint64_t)_i);
	for (int turn = 0; turn < 500; turn++) {
		struct ff_buf text = {0}, line = {0};
		struct ff_native_data back, d = {.stamp = (ff_usec)random_below(&r, 1000000) + 1,
			.k = random_below(&r, 10), .newline = random_below(&r, 2)};
		for (size_t n = random_below(&r, 40); n; n--) {
			char c = (char)random_below(&r, 256);
			ff_buf_addc(&text, c == '\n' ? ' ' : c);
		}
		d.text = ff_buf_str(&text);
		ff_native_data_render(&line, &d);
		ck_assert(ff_native_data_parse(ff_str_n(line.p, line.len - 1), &back));
		ck_assert_msg(back.stamp == d.stamp && back.k == d.k && back.newline == d.newline &&
			ff_str_eq(back.text, d.text), "seed %llu", (unsigned long long)r.seed);
		ff_buf_finish(&text);
		ff_buf_finish(&line);
	}
}
END_TEST

#define LOOP(tc, fn, n) tcase_add_loop_test(tc, fn, 0, (int)(n))

int main(void)
{
	Suite *s = suite_create("native");
	TCase *tc = tcase_create("native");
	LOOP(tc, test_data, N(lines));
	LOOP(tc, test_hello, N(hellos));
	tcase_add_test(tc, test_hello_there_and_back);
	tcase_add_test(tc, test_render);
	LOOP(tc, test_reply, N(replies));
	LOOP(tc, test_data_there_and_back, 5);
	suite_add_tcase(s, tc);
	SRunner *sr = srunner_create(s);
	srunner_run_all(sr, CK_ENV);
	int failed = srunner_ntests_failed(sr);
	srunner_free(sr);
	return failed ? 1 : 0;
}
