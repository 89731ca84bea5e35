#include "lines.h"

#include "random.h"

#include <check.h>

#include <stdio.h>

/* "line 000\n" ... : nine bytes each */
#define EACH 9u

static void make_text(struct ff_buf *b, unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		ff_buf_addf(b, "line %03u\n", i);
	}
}

static void expect(const struct lines *l, unsigned from, unsigned to)
{
	ck_assert_uint_eq(l->n, to - from + 1);
	for (size_t i = 0; i < l->n; i++) {
		char text[16];
		(void)snprintf(text, sizeof text, "line %03u", from + (unsigned)i);
		ck_assert_str_eq(l->v[i].text, text);
		ck_assert_uint_eq(l->v[i].offset, (from + i) * EACH);
	}
}

/* Whatever pieces it comes in, and wherever they begin. */
START_TEST(test_around)
{
	struct random r = random_init((uint64_t)_i);
	struct ff_buf text = {0};
	make_text(&text, 400);
	unsigned middle = random_below(&r, 400), want = random_below(&r, 30);
	struct lines l;
	lines_init(&l, middle * EACH + random_below(&r, EACH), want);
	for (size_t at = 0; at < text.len && !lines_done(&l);) {
		size_t n = 1 + random_below(&r, 40);
		n = n < text.len - at ? n : text.len - at;
		lines_feed(&l, at, ff_str_n(text.p + at, n));
		at += n;
	}
	lines_end(&l);
	ck_assert(l.found && !l.missed);
	expect(&l, middle < want ? 0 : middle - want, middle + want > 399 ? 399 : middle + want);
	lines_number(&l, middle * EACH, middle + 1);
	for (size_t i = 0; i < l.n; i++) {
		ck_assert_int_eq(l.v[i].number, (int64_t)(l.v[i].offset / EACH) + 1);
	}
	lines_finish(&l);
	ff_buf_finish(&text);
}
END_TEST

START_TEST(test_last)
{
	struct ff_buf text = {0};
	make_text(&text, 100);
	ff_buf_addz(&text, "unfinished");
	struct lines l;
	lines_init(&l, LINES_END, 3);
	lines_feed(&l, 0, ff_buf_str(&text));
	lines_end(&l);
	ck_assert_uint_eq(l.n, 3);
	ck_assert_str_eq(l.v[2].text, "unfinished");
	ck_assert_str_eq(l.v[0].text, "line 098");
	lines_number(&l, 900, 101); /* where the unfinished one begins */
	ck_assert_int_eq(l.v[0].number, 99);
	ck_assert_int_eq(l.v[2].number, 101);
	lines_finish(&l);
	ff_buf_finish(&text);
}
END_TEST

/* The known line stands right behind the last one. */
START_TEST(test_number_behind)
{
	struct lines l;
	lines_init(&l, LINES_END, 5);
	lines_feed(&l, 0, FF_STR("a\nb\n"));
	lines_end(&l);
	lines_number(&l, 4, 3);
	ck_assert_int_eq(l.v[0].number, 1);
	ck_assert_int_eq(l.v[1].number, 2);
	lines_number(&l, 4, 0);
	lines_number(&l, 99, 7);
	ck_assert_int_eq(l.v[1].number, 2);
	lines_finish(&l);
	lines_init(&l, LINES_END, 5); /* its last line has no LF, and the stream ended */
	lines_feed(&l, 0, FF_STR("a\nb"));
	lines_end(&l);
	lines_number(&l, 3, 2);
	ck_assert_int_eq(l.v[0].number, 1);
	ck_assert_int_eq(l.v[1].number, 2);
	lines_finish(&l);
}
END_TEST

/* What was dropped is not taken for its neighbour; lines beyond a jump have no number. */
START_TEST(test_jumps)
{
	struct lines l;
	lines_init(&l, 5, 2);
	lines_feed(&l, 100, FF_STR("later\nmore\n"));
	lines_end(&l);
	ck_assert(l.missed && lines_done(&l) && !l.found);
	lines_finish(&l);
	lines_init(&l, 100, 2);
	lines_feed(&l, 0, FF_STR("one\ntw"));
	lines_feed(&l, 100, FF_STR("three\n"));
	lines_end(&l);
	ck_assert(l.found);
	ck_assert_uint_eq(l.n, 3);
	ck_assert_str_eq(l.v[1].text, "tw");
	lines_number(&l, 100, 9);
	ck_assert_int_eq(l.v[2].number, 9);
	ck_assert_int_eq(l.v[1].number, 0);
	ck_assert_int_eq(l.v[0].number, 0);
	lines_finish(&l);
}
END_TEST

START_TEST(test_long_line)
{
	struct lines l;
	char block[1000];
	memset(block, 'x', sizeof block);
	lines_init(&l, 0, 1);
	for (uint64_t at = 0; at < 100; at++) {
		lines_feed(&l, at * sizeof block, ff_str_n(block, sizeof block));
	}
	lines_feed(&l, 100 * sizeof block, FF_STR("\nnext\n"));
	lines_end(&l);
	ck_assert_uint_eq(l.n, 2);
	ck_assert_uint_eq(l.v[0].len, FF_LINE_MAX);
	ck_assert_uint_eq(l.v[1].offset, 100 * sizeof block + 1);
	lines_finish(&l);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("lines");
	TCase *tc = tcase_create("lines");
	tcase_add_loop_test(tc, test_around, 0, 50);
	tcase_add_test(tc, test_last);
	tcase_add_test(tc, test_number_behind);
	tcase_add_test(tc, test_jumps);
	tcase_add_test(tc, test_long_line);
	suite_add_tcase(s, tc);
	SRunner *sr = srunner_create(s);
	srunner_run_all(sr, CK_ENV);
	int failed = srunner_ntests_failed(sr);
	srunner_free(sr);
	return failed ? 1 : 0;
}
