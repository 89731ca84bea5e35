#include "pack.h"

#include "random.h"

#include <check.h>

#include <stdlib.h>

static const int64_t numbers[] = {0, 1, -1, 63, 64, -64, -65, 8191, 1 << 20, -(1 << 20), INT32_MAX,
	INT32_MIN, 1767225600000000, INT64_MAX, INT64_MIN, FF_TIME_NONE, INT64_MAX - 1};

START_TEST(test_int)
{
	struct ff_buf b = {0};
	ff_row_int(&b, numbers[_i]);
	ff_row_int(&b, 7);
	struct ff_str in = ff_buf_str(&b);
	int64_t v = 99;
	ck_assert(ff_row_take_int(&in, &v));
	ck_assert_int_eq(v, numbers[_i]);
	ck_assert(ff_row_take_int(&in, &v));
	ck_assert_int_eq(v, 7);
	ck_assert(!ff_row_take_int(&in, &v));
	ff_buf_finish(&b);
}
END_TEST

START_TEST(test_int_damaged)
{
	static const char endless[] = "\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff";
	int64_t v = 5;
	for (size_t n = 0; n < sizeof endless; n++) {
		struct ff_str in = ff_str_n(endless, n);
		ck_assert(!ff_row_take_int(&in, &v));
	}
	ck_assert_int_eq(v, 5);
}
END_TEST

static struct ff_pair any_pair(struct random *r)
{
	struct ff_pair p = {
		.came = FF_TIME_FIRST + (ff_usec)random_below(r, UINT32_MAX) * 700,
		.claimed =
			{
				.us = FF_TIME_FIRST + (ff_usec)random_below(r, UINT32_MAX) * 900,
				.grain = random_below(r, 3) ? 1000 : 1000000,
				.has_year = random_below(r, 2),
				.has_zone = random_below(r, 2),
				.mono_fraction = random_below(r, 2),
			},
	};
	p.claimed.us = random_below(r, 9) ? p.claimed.us : INT64_MIN;
	return p;
}

START_TEST(test_pairs)
{
	struct random r = random_init((uint64_t)_i);
	struct ff_pair pairs[FF_PAIRS_MAX];
	size_t n = random_below(&r, FF_PAIRS_MAX + 1);
	for (size_t i = 0; i < n; i++) {
		pairs[i] = any_pair(&r);
	}
	struct ff_buf b = {0};
	ff_row_pairs(pairs, n, &b);
	struct ff_pair *got = NULL;
	size_t ngot = 0;
	ck_assert_msg(ff_row_take_pairs(ff_buf_str(&b), &got, &ngot), "seed %llu",
		(unsigned long long)r.seed);
	ck_assert_uint_eq(ngot, n);
	for (size_t i = 0; i < n; i++) {
		ck_assert_int_eq(got[i].came, pairs[i].came);
		ck_assert_int_eq(got[i].claimed.us, pairs[i].claimed.us);
		ck_assert_uint_eq(got[i].claimed.grain, pairs[i].claimed.grain);
		ck_assert_int_eq(got[i].claimed.has_year, pairs[i].claimed.has_year);
		ck_assert_int_eq(got[i].claimed.has_zone, pairs[i].claimed.has_zone);
		ck_assert_int_eq(got[i].claimed.mono_fraction, pairs[i].claimed.mono_fraction);
	}
	free(got);
	/* cut anywhere, it is damaged or shorter, never more */
	for (size_t cut = 0; cut < b.len; cut += 7) {
		struct ff_pair *some = NULL;
		size_t nsome = 0;
		if (ff_row_take_pairs(ff_str_n(b.p, cut), &some, &nsome)) {
			ck_assert_uint_lt(nsome, n);
		}
		free(some);
	}
	ff_buf_finish(&b);
}
END_TEST

START_TEST(test_pairs_too_many)
{
	struct ff_pair pairs[FF_PAIRS_MAX + 1] = {0};
	struct ff_pair *got = NULL;
	size_t n = 0;
	struct ff_buf b = {0};
	ff_row_pairs(pairs, FF_PAIRS_MAX + 1, &b);
	ck_assert(!ff_row_take_pairs(ff_buf_str(&b), &got, &n));
	ck_assert_ptr_null(got);
	ff_buf_finish(&b);
}
END_TEST

START_TEST(test_cadence)
{
	uint32_t in[48] = {[0] = 1, [17] = 4000000000u, [47] = 12};
	uint32_t got[48] = {[3] = 5};
	uint32_t none[48] = {0};
	struct ff_buf b = {0};
	pack_cadence(in, &b);
	ck_assert_str_eq(b.p, "0:1 17:4000000000 47:12");
	ck_assert(pack_read_cadence(ff_buf_str(&b), got));
	ck_assert_mem_eq(got, in, sizeof in);
	ff_buf_clear(&b);
	pack_cadence(none, &b);
	ck_assert_uint_eq(b.len, 0);
	ck_assert(pack_read_cadence(ff_buf_str(&b), got));
	ck_assert_mem_eq(got, none, sizeof none);
	ff_buf_finish(&b);
}
END_TEST

static const char *const bad_cadences[] = {
	"48:1", "1", "1:", ":1", "a:1", "1:1,2:2", "1:4294967296", "1:-1", " 1:1"};

START_TEST(test_cadence_damaged)
{
	uint32_t got[48] = {[3] = 5};
	ck_assert(!pack_read_cadence(ff_str_z(bad_cadences[_i]), got));
	ck_assert_uint_eq(got[3], 5);
}
END_TEST

static const struct {
	const char *value, *json;
} field_rows[] = {
	{"2.00 GiB", "\"2.00 GiB\""},
	{"", "\"\""},
	{"tab\tquote\" back\\", NULL},
	{"\x01\x7f", NULL},
	{"gr\xc3\xbc\xc3\x9f \xe2\x82\xac \xf0\x9f\x94\xa5", NULL},
	{"\xff\x00", "{\"hex\":\"ff\"}"},
	{"a\x80z", "{\"hex\":\"61807a\"}"},
	{"\xc0\xaf", "{\"hex\":\"c0af\"}"},
	{"\xed\xa0\x80", "{\"hex\":\"eda080\"}"},
	{"\xe2\x82", "{\"hex\":\"e282\"}"},
};

START_TEST(test_fields)
{
	struct ff_fields in = {0}, got = {0};
	struct ff_buf b = {0};
	ff_fields_set(&in, (enum ff_field_id)0, ff_str_z(field_rows[_i].value));
	ff_fields_set(&in, (enum ff_field_id)(FF_F_COUNT - 1), FF_STR("x"));
	pack_fields(&in, &b);
	if (field_rows[_i].json) {
		ck_assert_ptr_nonnull(strstr(b.p, field_rows[_i].json));
	}
	ck_assert(pack_read_fields(ff_buf_str(&b), &got));
	ck_assert_uint_eq(got.n, 2);
	struct ff_str value = ff_fields_get(&got, (enum ff_field_id)0);
	ck_assert(ff_str_eqz(value, field_rows[_i].value));
	ff_fields_finish(&in);
	ff_fields_finish(&got);
	ff_buf_finish(&b);
}
END_TEST

START_TEST(test_fields_odd)
{
	static const char *const bad[] = {"", "[]", "7", "{", "{\"size\":7}",
		"{\"size\":{\"hex\":\"f\"}}", "{\"size\":{\"hex\":\"zz\"}}", "{\"size\":{}}"};
	struct ff_fields got = {0};
	for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
		ck_assert_msg(!pack_read_fields(ff_str_z(bad[i]), &got), "%s", bad[i]);
		ck_assert_uint_eq(got.n, 0);
	}
	ck_assert(pack_read_fields(FF_STR("{\"of a later version\":\"x\"}"), &got));
	ck_assert_uint_eq(got.n, 0);
	ff_fields_finish(&got);
}
END_TEST

#define LOOP(tc, fn, n) tcase_add_loop_test(tc, fn, 0, (int)(n))

int main(void)
{
	Suite *s = suite_create("pack");
	TCase *tc = tcase_create("pack");
	LOOP(tc, test_int, sizeof numbers / sizeof numbers[0]);
	tcase_add_test(tc, test_int_damaged);
	LOOP(tc, test_pairs, 20);
	tcase_add_test(tc, test_pairs_too_many);
	tcase_add_test(tc, test_cadence);
	LOOP(tc, test_cadence_damaged, sizeof bad_cadences / sizeof bad_cadences[0]);
	LOOP(tc, test_fields, sizeof field_rows / sizeof field_rows[0]);
	tcase_add_test(tc, test_fields_odd);
	suite_add_tcase(s, tc);
	SRunner *sr = srunner_create(s);
	srunner_run_all(sr, CK_ENV);
	int failed = srunner_ntests_failed(sr);
	srunner_free(sr);
	return failed ? 1 : 0;
}
