#include "wire/syslog.h"

#include "base/mem.h"

#include "random.h"

#include <check.h>

#include <stdio.h>

#define N(table) (sizeof(table) / sizeof(table)[0])
#define S(literal) {(literal), sizeof(literal) - 1}

/* ---- messages */

static const struct {
	const char *message, *host, *app, *text, *job, *node, *stream; /* NULL: absent */
	int facility, severity;
	int64_t rank;
	const char *time; /* RFC 3339, NULL: none */
} rows[] = {
	/* RFC 5424 */
	{"<131>1 2024-05-01T12:00:00.123456Z gpu07 train 4121 - [rank@32473 rank=\"13\" job=\"j\"] "
	 "RuntimeError: boom",
		"gpu07", "train", "RuntimeError: boom", "j", NULL, NULL, 16, 3, 13,
		"2024-05-01T12:00:00.123456Z"},
	{"<134>1 2026-11-30T08:05:37.361305+00:00 node-a train - - - step 10 loss 2.26", "node-a",
		"train", "step 10 loss 2.26", NULL, NULL, NULL, 16, 6, -1,
		"2026-11-30T08:05:37.361305Z"},
	/* rsyslog's template with the file's name; syslog-ng adds an element */
	{"<134>1 2026-11-30T08:05:37Z a t - - [ff@32473 job=\"17\" rank=\"2\" "
	 "file=\"/srv/logs/r.log\"][meta sequenceId=\"1\"] x",
		"a", "t", "x", "17", NULL, "/srv/logs/r.log", 16, 6, 2, "2026-11-30T08:05:37Z"},
	{"<6>1 - - - - - -", NULL, NULL, "", NULL, NULL, NULL, 0, 6, -1, NULL},
	{"<13>1 - h - - - [x a=\"q\\\"r\\]s\\\\t\" node=\"n\\\\1\"]   indented\ttext", "h", NULL,
		"  indented\ttext", NULL, "n\\1", NULL, 1, 5, -1, NULL},
	{"<13>1 - h a - - - \xef\xbb\xbf\xc3\xbc", "h", "a", "\xc3\xbc", NULL, NULL, NULL, 1, 5, -1,
		NULL},
	{"<13>1 - h a - - [x rank=\"-3\"][y rank=\"nine\"] t", "h", "a", "t", NULL, NULL, NULL, 1,
		5, -1, NULL},
	/* what isn't understood behind the number is text */
	{"<13>1 yesterday h a - - - t", NULL, NULL, "1 yesterday h a - - - t", NULL, NULL, NULL, 1,
		5, -1, NULL},
	{"<13>1 - h a - - [x job=\"j t", NULL, NULL, "1 - h a - - [x job=\"j t", NULL, NULL, NULL,
		1, 5, -1, NULL},
	{"<13>1 - h a", NULL, NULL, "1 - h a", NULL, NULL, NULL, 1, 5, -1, NULL},
	{"<13>", NULL, NULL, "", NULL, NULL, NULL, 1, 5, -1, NULL},
	{"<13>Traceback (most recent call last):", NULL, NULL,
		"Traceback (most recent call last):", NULL, NULL, NULL, 1, 5, -1, NULL},
	/* RFC 3164; Docker sends no host */
	{"<30>May  1 12:00:00 3f2a90b1c4de[991]: loss 2.31", NULL, "3f2a90b1c4de", "loss 2.31",
		NULL, NULL, NULL, 3, 6, -1, NULL},
	{"<30>May  1 12:00:00 gpu07 trainer[991]: loss: 2.31", "gpu07", "trainer", "loss: 2.31",
		NULL, NULL, NULL, 3, 6, -1, NULL},
	{"<4>May 11 12:00:00 gpu07 kernel: NVRM: Xid (PCI:0000:3b:00): 79", "gpu07", "kernel",
		"NVRM: Xid (PCI:0000:3b:00): 79", NULL, NULL, NULL, 0, 4, -1, NULL},
	{"<30>May 11 12:00:00 gpu07 no tag here", "gpu07", NULL, "no tag here", NULL, NULL, NULL, 3,
		6, -1, NULL},
	{"<30>2026-11-30T08:05:37.361305+01:00 node-a train: step", "node-a", "train", "step", NULL,
		NULL, NULL, 3, 6, -1, "2026-11-30T07:05:37.361305Z"},
	{"<191>x", NULL, NULL, "x", NULL, NULL, NULL, 23, 7, -1, NULL},
};

static bool same(struct ff_str s, const char *z)
{
	return z ? s.p && ff_str_eqz(s, z) : !s.p;
}

START_TEST(test_parse)
{
	struct ff_syslog m = {0};
	ff_usec time = FF_TIME_NONE;
	const char *z = rows[_i].message;
	/* twice, so that nothing of the first stays */
	for (int i = 0; i < 2; i++) {
		ck_assert(ff_syslog_parse(&m, FF_STR("<1>1 - h a - - [x rank=\"7\" job=\"k\"] t")));
		ck_assert(ff_syslog_parse(&m, ff_str_z(z)));
	}
	ck_assert(!rows[_i].time || ff_usec_rfc3339(ff_str_z(rows[_i].time), &time));
	ck_assert_int_eq(m.facility, rows[_i].facility);
	ck_assert_int_eq(m.severity, rows[_i].severity);
	ck_assert_int_eq(m.rank, rows[_i].rank);
	ck_assert_int_eq(m.time, time);
	ck_assert_msg(same(m.host, rows[_i].host), "host %.*s", FF_STR_ARG(m.host));
	ck_assert_msg(same(m.app, rows[_i].app), "app %.*s", FF_STR_ARG(m.app));
	ck_assert_msg(ff_str_eqz(m.text, rows[_i].text), "text %.*s", FF_STR_ARG(m.text));
	ck_assert_msg(same(m.job, rows[_i].job), "job %.*s", FF_STR_ARG(m.job));
	ck_assert_msg(same(m.node, rows[_i].node), "node %.*s", FF_STR_ARG(m.node));
	ck_assert_msg(same(m.stream, rows[_i].stream), "stream %.*s", FF_STR_ARG(m.stream));
	ff_syslog_finish(&m);
}
END_TEST

static const char *const none[] = {"", "x", "<", "<>x", "<1234>x", "<192>x", "<1x>", "13>1 - -",
	"7 <13>1 -", "<-1>x"};

START_TEST(test_no_message)
{
	struct ff_syslog m = {0};
	ck_assert(!ff_syslog_parse(&m, ff_str_z(none[_i])));
	ff_syslog_finish(&m);
}
END_TEST

/* ---- what a connection begins with */

static const struct {
	const char *front;
	enum ff_syslog_frame is;
} fronts[] = {
	{"", FF_SYSLOG_MORE}, {"<", FF_SYSLOG_MORE}, {"<1", FF_SYSLOG_MORE},
	{"<191", FF_SYSLOG_MORE}, {"<13>", FF_SYSLOG_WHOLE}, {"<999>", FF_SYSLOG_NONE},
	{"<1234", FF_SYSLOG_NONE}, {"<a", FF_SYSLOG_NONE}, {"1", FF_SYSLOG_MORE},
	{"12 ", FF_SYSLOG_MORE}, {"12 <", FF_SYSLOG_MORE}, {"12 <13", FF_SYSLOG_MORE},
	{"12 <13>", FF_SYSLOG_WHOLE}, {"12 x", FF_SYSLOG_NONE}, {"012 <13>", FF_SYSLOG_NONE},
	{"1234567", FF_SYSLOG_MORE}, {"12345678", FF_SYSLOG_NONE}, {"step 1", FF_SYSLOG_NONE},
	{"{\"event\"", FF_SYSLOG_NONE}, {"GET / HTTP", FF_SYSLOG_NONE},
};

START_TEST(test_front)
{
	ck_assert_int_eq(ff_syslog_front(ff_str_z(fronts[_i].front)), fronts[_i].is);
}
END_TEST

/* ---- frames */

/* All frames of s, each behind its kind: w (whole), n (no frame), l (long). */
static void frames_of(struct ff_str s, struct ff_buf *out)
{
	while (s.n) {
		struct ff_str message = {NULL, 0};
		uint64_t used = 0;
		enum ff_syslog_frame f = ff_syslog_frame(s, &message, &used);
		if (f == FF_SYSLOG_MORE) {
			ff_buf_addf(out, "+%zu", s.n);
			return;
		}
		ck_assert_uint_gt(used, 0);
		ff_buf_addf(out, "%c[%.*s]",
			f == FF_SYSLOG_WHOLE          ? 'w'
				: f == FF_SYSLOG_NONE ? 'n'
						      : 'l',
			FF_STR_ARG(message));
		s = ff_str_skip(s, (size_t)used);
	}
}

static const struct {
	struct ff_str in;
	const char *out;
} frame_rows[] = {
	{S("<13>a\n<14>b\n"), "w[<13>a]w[<14>b]"},
	{S("5 <13>a6 <13>bc"), "w[<13>a]w[<13>bc]"},
	{S("6 <13>a\n6 <13>b\n"), "w[<13>a]w[<13>b]"},       /* syslog-ng: counted and LF */
	{S("7 <13>a\nb5 <13>c"), "w[<13>a\nb]w[<13>c]"},     /* LF inside */
	{S("<13>a\n5 <13>b<13>c\n"), "w[<13>a]w[<13>b]w[<13>c]"}, /* mixed */
	{S("5 <13>a\n<13>b\n"), "w[<13>a]n[]w[<13>b]"},
	{S("<13>a\0\n<13>b"), "w[<13>a]+5"},
	{S("12 steps done\n<13>a\n"), "n[12 steps done]w[<13>a]"},
	{S("garbage\n5 <13>a"), "n[garbage]w[<13>a]"},
	{S("9 <13>a"), "+7"},
	{S("1234567 <13>a"), "l[]"},
	{S("12"), "+2"},
};

START_TEST(test_frames)
{
	struct ff_buf out = {0};
	frames_of(frame_rows[_i].in, &out);
	ck_assert_str_eq(out.p, frame_rows[_i].out);
	ff_buf_finish(&out);
}
END_TEST

/* Whatever comes: nothing is read beyond its end, and each frame takes some of it. */
START_TEST(test_random)
{
	static const char bits[] = "<13>1 -[]=\"\\\n 0129ab:.TZMay \xef\xbb\xbf";
	struct random r = random_init(17);
	struct ff_buf out = {0};
	for (int i = 0; i < 20000; i++) {
		size_t n = random_below(&r, 64);
		char *text = ff_xmalloc(n + 1);
		for (size_t k = 0; k < n; k++) {
			text[k] = bits[random_below(&r, sizeof bits - 1)];
		}
		memcpy(text, "<13>1 ", n < 6 ? n : 6);
		char *exact = ff_xmemdup(text, n);
		struct ff_syslog m = {0};
		(void)ff_syslog_parse(&m, ff_str_n(exact, n));
		ck_assert_uint_le(m.text.n, n);
		ff_buf_clear(&out);
		frames_of(ff_str_n(exact, n), &out);
		ff_syslog_finish(&m);
		free(exact);
		free(text);
	}
	ff_buf_finish(&out);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("syslog");
	TCase *tc = tcase_create("syslog");
	tcase_add_loop_test(tc, test_parse, 0, N(rows));
	tcase_add_loop_test(tc, test_no_message, 0, N(none));
	tcase_add_loop_test(tc, test_front, 0, N(fronts));
	tcase_add_loop_test(tc, test_frames, 0, N(frame_rows));
	tcase_add_test(tc, test_random);
	suite_add_tcase(s, tc);
	SRunner *sr = srunner_create(s);
	srunner_run_all(sr, CK_ENV);
	int failed = srunner_ntests_failed(sr);
	srunner_free(sr);
	return failed > 0;
}
