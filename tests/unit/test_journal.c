/* journalctl's export and JSON forms, cut anywhere. */
#include "wire/journal.h"

#include "base/limits.h"
#include "base/mem.h"

#include "random.h"

#include <check.h>

#include <stdlib.h>

#define N(table) (sizeof(table) / sizeof(table)[0])

static struct ff_buf got;

static void on_entry(void *ud, const struct ff_journal_entry *e)
{
	ff_buf_addf(&got, "%s%.*s %.*s %lld: %.*s\n", e->kernel ? "kernel " : "",
		FF_STR_ARG(e->host), FF_STR_ARG(e->unit),
		(long long)(e->us == FF_TIME_NONE ? -1 : e->us), FF_STR_ARG(e->text));
}

#define SIZED(text, n) "MESSAGE\n" n "\0\0\0\0\0\0\0" text "\n"

static const struct {
	enum ff_journal_form form;
	struct ff_str in;
	const char *want;
} cases[] = {
	{FF_JOURNAL_EXPORT,
		FF_STR("__CURSOR=x\n__REALTIME_TIMESTAMP=5\n_HOSTNAME=h\n_TRANSPORT=kernel\n"
		       "MESSAGE=a=b\n\n\n__CURSOR=y\n_SYSTEMD_UNIT=u.service\nMESSAGE=c\n"),
		"kernel h  5: a=b\n u.service -1: c\n"},
	{FF_JOURNAL_EXPORT, FF_STR("__CURSOR=x\n" SIZED("a\nb", "\3") "_HOSTNAME=h\n\n"),
		"h  -1: a\nb\n"},
	{FF_JOURNAL_EXPORT,
		FF_STR("__CURSOR=x\n_TRANSPORT=kernel\nSYSLOG_IDENTIFIER=NVRM\nMESSAGE=Xid\n\n"
		       "__CURSOR=y\n_TRANSPORT=kernel\nSYSLOG_IDENTIFIER=kernel\nMESSAGE=k\n\n"
		       "__CURSOR=z\nSYSLOG_IDENTIFIER=sshd\nMESSAGE=s\n\n"),
		"kernel   -1: NVRM: Xid\nkernel   -1: k\n  -1: s\n"},
	{FF_JOURNAL_EXPORT, FF_STR("__CURSOR=x\n" SIZED("", "\0") "MESSAGE=z\n\n"), "  -1: z\n"},
	{FF_JOURNAL_EXPORT, FF_STR("__CURSOR=x\n" SIZED("cut", "\7")), ""}, /* no end */
	{FF_JOURNAL_EXPORT, FF_STR("__CURSOR=x\nMESSAGE=\n__REALTIME_TIMESTAMP=x1\n\n"), ""},
	{FF_JOURNAL_JSON,
		FF_STR("{\"__REALTIME_TIMESTAMP\":\"7\",\"MESSAGE\":\"m\",\"_HOSTNAME\":\"h\"}\n"
		       "no object\n{\"MESSAGE\":null}\n{\"MESSAGE\":[102,195,10,0,300]}"),
		"h  7: m\n  -1: f\303\n\n"},
};

static struct ff_buf feed(size_t k, struct random *r)
{
	struct ff_journal j;
	struct ff_str s = cases[k].in;
	got = (struct ff_buf){0};
	ck_assert_int_eq(ff_journal_front(s), cases[k].form);
	ff_journal_init(&j, cases[k].form);
	while (s.n) {
		size_t n = r ? 1 + random_below(r, 9) : s.n;
		n = n < s.n ? n : s.n;
		char *copy = ff_xmemdup(s.p, n); /* nothing is kept of what was handed in */
		ff_journal_feed(&j, ff_str_n(copy, n), on_entry, NULL);
		free(copy);
		s = ff_str_skip(s, n);
	}
	ff_journal_end(&j, on_entry, NULL);
	ff_journal_finish(&j);
	(void)ff_buf_reserve(&got, 1);
	got.p[got.len] = '\0';
	return got;
}

START_TEST(test_cases)
{
	struct random r = random_init((uint64_t)_i);
	for (int i = 0; i < 50; i++) {
		struct ff_buf b = feed((size_t)_i, i ? &r : NULL);
		ck_assert_str_eq(b.p, cases[_i].want);
		ff_buf_finish(&b);
	}
}
END_TEST

START_TEST(test_front)
{
	ck_assert_int_eq(ff_journal_front(FF_STR("{\"MESSAGE\":\"x\"}\n")), FF_JOURNAL_NONE);
	ck_assert_int_eq(ff_journal_front(FF_STR("CURSOR=x\n")), FF_JOURNAL_NONE);
	ck_assert_int_eq(ff_journal_front(FF_STR("")), FF_JOURNAL_NONE);
}
END_TEST

/* A value that is too long costs its entry, and no memory; one that says it is endless likewise. */
START_TEST(test_long)
{
	struct ff_journal j;
	size_t n = FF_JSONL_LINE + (size_t)_i - 1;
	char *text = ff_xmalloc(n);
	memset(text, 'x', n);
	got = (struct ff_buf){0};
	ff_journal_init(&j, FF_JOURNAL_EXPORT);
	ff_journal_feed(&j, FF_STR("MESSAGE=a\nK="), on_entry, NULL);
	ff_journal_feed(&j, ff_str_n(text, n - 2), on_entry, NULL);
	ff_journal_feed(&j, FF_STR("\n\nMESSAGE=b\n\n"), on_entry, NULL);
	ck_assert_uint_eq(j.skipped, n > FF_JSONL_LINE);
	ck_assert_uint_eq(got.len, n > FF_JSONL_LINE ? 8 : 16);
	ff_journal_feed(&j, FF_STR("MESSAGE\n\377\377\377\377\377\377\377\377"), on_entry, NULL);
	ff_journal_feed(&j, ff_str_n(text, n), on_entry, NULL);
	ck_assert_uint_le(j.line.cap, 2 * FF_JSONL_LINE);
	ff_journal_end(&j, on_entry, NULL);
	ff_journal_finish(&j);
	ff_buf_finish(&got);
	free(text);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("journal");
	TCase *t = tcase_create("journal");
	tcase_add_loop_test(t, test_cases, 0, N(cases));
	tcase_add_test(t, test_front);
	tcase_add_loop_test(t, test_long, 0, 3);
	suite_add_tcase(suite, t);
	SRunner *runner = srunner_create(suite);
	srunner_run_all(runner, CK_NORMAL);
	int failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed != 0;
}
