/* origin and fault: the closed sets and the small readers in them. */
#include "core/fault.h"

#include "base/limits.h"

#include <check.h>

#include <stdio.h>

START_TEST(test_names)
{
#define X(e, name, text) \
	ck_assert_str_eq(ff_stream_kind_name(FF_STREAM_##e), name); \
	ck_assert_int_eq(ff_stream_kind_parse(FF_STR(name)), FF_STREAM_##e);
	FF_STREAM_KINDS(X)
#undef X
#define X(e, name, text) \
	ck_assert_str_eq(ff_role_name(FF_ROLE_##e), name); \
	ck_assert_int_eq(ff_role_parse(FF_STR(name)), FF_ROLE_##e);
	FF_ROLES(X)
#undef X
#define X(e, name, text) \
	ck_assert_str_eq(ff_event_kind_name(FF_EVENT_##e), name); \
	ck_assert_int_eq(ff_event_kind_parse(FF_STR(name)), FF_EVENT_##e);
	FF_EVENT_KINDS(X)
#undef X
#define X(e, name, text) \
	ck_assert_int_eq(ff_domain_parse(FF_STR(name)), FF_DOMAIN_##e);
	FF_DOMAINS(X)
#undef X
	ck_assert_int_eq(ff_stream_kind_parse(FF_STR("Rank")), -1);
	ck_assert_int_eq(ff_role_parse(FF_STR("")), -1);
	ck_assert_int_eq(ff_event_kind_parse(FF_STR("fault ")), -1);
	ck_assert_int_eq(ff_domain_parse(FF_STR("users")), -1);
}
END_TEST

START_TEST(test_fields)
{
	for (int i = 0; i < FF_F_COUNT; i++) {
		const char *name = ff_field_name((enum ff_field_id)i);
		ck_assert_int_eq(ff_field_parse(ff_str_z(name)), i);
		ck_assert_int_le(ff_field_type((enum ff_field_id)i), FF_FIELD_BYTES);
		/* The groups of a pattern: letters, digits and _, at most 32 (PCRE2). */
		ck_assert_uint_le(strlen(name), 32);
	}
	ck_assert_int_eq(ff_field_parse(FF_STR("no such field")), -1);
}
END_TEST

START_TEST(test_fd)
{
	ck_assert_ptr_null(ff_fd_name(FF_FD_UNKNOWN));
	ck_assert_str_eq(ff_fd_name(FF_FD_STDOUT), "stdout");
	ck_assert_str_eq(ff_fd_name(FF_FD_STDERR), "stderr");
	ck_assert_int_eq(ff_fd_parse(FF_STR("stdout")), FF_FD_STDOUT);
	ck_assert_int_eq(ff_fd_parse(FF_STR("stderr")), FF_FD_STDERR);
	ck_assert_int_eq(ff_fd_parse(FF_STR("2")), FF_FD_UNKNOWN);
}
END_TEST

static const struct {
	const char *name;
	enum ff_fd fd;
	bool is;
} stderr_rows[] = {
	{"rank-3.stderr", FF_FD_UNKNOWN, true},
	{"attempt_0/3/stderr.log", FF_FD_UNKNOWN, true},
	{"job.err", FF_FD_UNKNOWN, true},
	{"job.error", FF_FD_UNKNOWN, false},
	{"rank-3.log", FF_FD_UNKNOWN, false},
	{"rank-3.log", FF_FD_STDERR, true},
	{"rank-3.stderr", FF_FD_STDOUT, false},
	{"", FF_FD_UNKNOWN, false},
};

START_TEST(test_is_stderr)
{
	struct ff_origin o = {.name = stderr_rows[_i].name, .fd = stderr_rows[_i].fd};
	ck_assert_int_eq(ff_origin_is_stderr(&o), stderr_rows[_i].is);
}
END_TEST

static const struct {
	struct ff_str in;
	size_t n;
	int32_t ranks[8];
} rank_rows[] = {
	{FF_STR("3"), 1, {3}},
	{FF_STR("0-3,7"), 5, {0, 1, 2, 3, 7}},
	{FF_STR("1, 2"), 2, {1, 2}},
	{FF_STR("[0, 1]"), 2, {0, 1}},
	{FF_STR("{4,5}"), 2, {4, 5}},
	{FF_STR("(3,)"), 1, {3}},
	{FF_STR("  [ 1 ,  2 ]  "), 2, {1, 2}},
	{FF_STR("4 5 6"), 3, {4, 5, 6}},
	{FF_STR("7, 0-3, 2-5, 0"), 7, {0, 1, 2, 3, 4, 5, 7}},
	{FF_STR("0-9"), 10, {0, 1, 2, 3, 4, 5, 6, 7}},
	{FF_STR("131071"), 1, {131071}},
	{FF_STR("0-131071,0-131071"), 131072, {0, 1, 2, 3, 4, 5, 6, 7}},
	{FF_STR("131072"), 0, {0}},
	{FF_STR("0-131072"), 0, {0}},
	{FF_STR("99999999999999999999"), 0, {0}},
	{FF_STR(""), 0, {0}},
	{FF_STR("[]"), 0, {0}},
	{FF_STR("["), 0, {0}},
	{FF_STR("[1"), 0, {0}},
	{FF_STR("[1)"), 0, {0}},
	{FF_STR("1]"), 0, {0}},
	{FF_STR("3-1"), 0, {0}},
	{FF_STR("-1"), 0, {0}},
	{FF_STR("1-"), 0, {0}},
	{FF_STR("1,,2"), 0, {0}},
	{FF_STR(",1"), 0, {0}},
	{FF_STR("1;2"), 0, {0}},
	{FF_STR("rank 3"), 0, {0}},
	{FF_STR("3\0"), 0, {0}},
};

START_TEST(test_ranks)
{
	int32_t got[8];
	memset(got, -1, sizeof got);
	size_t n = ff_ranks_parse(rank_rows[_i].in, got, 8);
	ck_assert_uint_eq(n, rank_rows[_i].n);
	for (size_t i = 0; i < 8; i++) {
		ck_assert_int_eq(got[i], i < n ? rank_rows[_i].ranks[i] : -1);
	}
	ck_assert_uint_eq(ff_ranks_parse(rank_rows[_i].in, NULL, 0), n);
}
END_TEST

#define LOOP(tc, fn, n) tcase_add_loop_test(tc, fn, 0, (int)(n))

int main(void)
{
	Suite *s = suite_create("origin");
	TCase *tc = tcase_create("origin");
	tcase_add_test(tc, test_names);
	tcase_add_test(tc, test_fields);
	tcase_add_test(tc, test_fd);
	LOOP(tc, test_is_stderr, sizeof stderr_rows / sizeof stderr_rows[0]);
	LOOP(tc, test_ranks, sizeof rank_rows / sizeof rank_rows[0]);
	suite_add_tcase(s, tc);
	SRunner *sr = srunner_create(s);
	srunner_run_all(sr, CK_ENV);
	int failed = srunner_ntests_failed(sr);
	srunner_free(sr);
	return failed ? 1 : 0;
}
