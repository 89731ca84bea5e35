#include "request.h"

#include <check.h>

#include <stdlib.h>

static const struct {
	const char *uri;
	const char *parts[5]; /* NULL: malformed */
} uris[] = {
	{"/", {""}},
	{"/v1/jobs", {"v1", "jobs"}},
	{"/v1/jobs/47%2011/verdict?attempt=1", {"v1", "jobs", "47 11", "verdict"}},
	{"/v1/jobs/a%2Fb~1/end", {"v1", "jobs", "a/b~1", "end"}},
	{"/v1/jobs/a+b", {"v1", "jobs", "a+b"}},
	{"/v1//jobs/", {"v1", "", "jobs", ""}},
	{"/%41%62?x=/y", {"Ab"}},
	{"", {NULL}},
	{"v1/jobs", {NULL}},
	{"/v1/%", {NULL}},
	{"/v1/%4", {NULL}},
	{"/v1/%zz", {NULL}},
	{"/v1/jobs?fault=%zz", {NULL}},
	{"/v1/jobs?fault=cuda-oom&node=%", {NULL}},
	{"/v1/jobs?fault=%00", {NULL}},
	{"/v1/%00", {NULL}},
	{"/1/2/3/4/5/6/7/8/9/10/11/12/13/14/15/16/17", {NULL}},
};

START_TEST(test_uri)
{
	struct request r = {0};
	bool good = request_parse(&r, uris[_i].uri);
	ck_assert_int_eq(good, uris[_i].parts[0] != NULL);
	for (size_t i = 0; good && i < r.nparts; i++) {
		ck_assert_ptr_nonnull(uris[_i].parts[i]);
		ck_assert_str_eq(r.parts[i], uris[_i].parts[i]);
	}
	ck_assert(!good || !uris[_i].parts[r.nparts]);
	request_finish(&r);
}
END_TEST

START_TEST(test_query)
{
	struct request r = {0};
	static const struct {
		const char *name, *value;
	} rows[] = {{"a", "1"}, {"b", ""}, {"c", "x y/z"}, {"d", ""}, {"f", "="},
		{"g", NULL}, {"", ""}};
	ck_assert(request_parse(&r, "/x?a=1&b=&c=x+y%2Fz&d&f==&=&a=2"));
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		char *value = request_query(&r, rows[i].name);
		if (rows[i].value) {
			ck_assert_ptr_nonnull(value);
			ck_assert_str_eq(value, rows[i].value);
		} else {
			ck_assert_ptr_null(value);
		}
		free(value);
	}
	request_finish(&r);
}
END_TEST

START_TEST(test_number)
{
	struct daemon d = {0};
	struct request r = {.d = &d};
	int64_t v = 0;
	ck_assert(request_parse(&r, "/x?a=12&b=-1&c=many&d=&e=99999999999999999999"));
	ck_assert(request_number(&r, "a", 1, 12, 5, &v));
	ck_assert_int_eq(v, 12);
	ck_assert(request_number(&r, "none", 1, 12, 5, &v));
	ck_assert_int_eq(v, 5);
	static const char *const bad[] = {"b", "c", "d", "e"};
	for (size_t i = 0; i < 4; i++) {
		ck_assert(!request_number(&r, bad[i], 0, 100, 5, &v));
		ck_assert_int_eq(v, 5);
		ck_assert_uint_eq(r.status, 400);
		ck_assert_str_eq(r.type, "application/problem+json");
	}
	ck_assert_uint_eq(d.counts[DAEMON_COUNT_requests_bad], 4);
	request_finish(&r);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("request");
	TCase *tc = tcase_create("request");
	tcase_add_loop_test(tc, test_uri, 0, (int)(sizeof uris / sizeof uris[0]));
	tcase_add_test(tc, test_query);
	tcase_add_test(tc, test_number);
	suite_add_tcase(s, tc);
	SRunner *sr = srunner_create(s);
	srunner_run_all(sr, CK_ENV);
	int failed = srunner_ntests_failed(sr);
	srunner_free(sr);
	return failed ? 1 : 0;
}
