#include "feed/jobfile.h"

#include <check.h>

#define N(table) (sizeof(table) / sizeof(table)[0])

START_TEST(test_whole)
{
	struct ff_jobfile f;
	struct ff_err err = {0};
	int64_t code;
	int r = ff_jobfile_parse(
		FF_STR("{\"job\":\"x\",\"run\":\"2\",\"world_size\":16,\"streams\":["
		       "{\"path\":\"a/"
		       "rank-3.log\",\"kind\":\"rank\",\"rank\":3,\"node\":\"node-0\",\"local_"
		       "rank\":1,"
		       "\"attempt\":0,\"fd\":\"stderr\"},{\"path\":\"b\"},{\"path\":\"c\",\"rank\":"
		       "7,\"kind\":null},"
		       "{\"path\":\"d\",\"kind\":\"kernel\",\"node\":\"\",\"later\":1}],"
		       "\"job_end\":{\"exit_code\":1,\"state\":\"FAILED\",\"reason\":\"r\"},"
		       "\"later\":1}"),
		&f, &err);
	ck_assert_msg(r == 0, "%s", err.text);
	ck_assert_str_eq(f.job, "x");
	ck_assert_str_eq(f.run, "2");
	ck_assert_int_eq(f.world, 16);
	ck_assert_uint_eq(f.nstreams, 4);
	const struct ff_origin *o = f.streams;
	ck_assert_str_eq(o->name, "a/rank-3.log");
	ck_assert_str_eq(o->source, "0");
	ck_assert_str_eq(o->node, "node-0");
	ck_assert_int_eq(o->kind, FF_STREAM_RANK);
	ck_assert(o->kind_declared);
	ck_assert_int_eq(o->rank, 3);
	ck_assert_int_eq(o->local_rank, 1);
	ck_assert_int_eq(o->attempt, 0);
	ck_assert_int_eq(o->fd, FF_FD_STDERR);
	ck_assert_int_eq(o->pid, FF_UNKNOWN);
	ck_assert_int_eq(o[1].kind, FF_STREAM_MIXED);
	ck_assert(!o[1].kind_declared);
	ck_assert_int_eq(o[1].rank, FF_UNKNOWN);
	ck_assert_int_eq(o[2].kind, FF_STREAM_RANK);
	ck_assert(!o[2].kind_declared);
	ck_assert_ptr_null(o[3].node);
	ck_assert(ff_json_int(ff_json_get(f.job_end, "exit_code"), &code));
	ck_assert_int_eq(code, 1);
	ck_assert_ptr_nonnull(f.job_start);
	ff_jobfile_finish(&f);
	ff_jobfile_finish(&f);
	ff_jobfile_finish(NULL);
}
END_TEST

START_TEST(test_least)
{
	struct ff_jobfile f;
	ck_assert_int_eq(
		ff_jobfile_parse(FF_STR("{\"streams\":[],\"job_end\":null}\n"), &f, NULL), 0);
	ck_assert_ptr_null(f.job);
	ck_assert_int_eq(f.world, FF_UNKNOWN);
	ck_assert_ptr_null(f.job_end);
	ck_assert_uint_eq(f.nstreams, 0);
	ff_jobfile_finish(&f);
}
END_TEST

/* text, and what the message names */
static const struct {
	const char *text, *names;
} bad[] = {
	{"[]", "not an object"},
	{"{\"job\":\"x\"}", "streams"},
	{"{\"job\":\"none\",\"streams\":[]}", "none"},
	{"{\"job\":\"\",\"streams\":[]}", "job id"},
	{"{\"job\":7,\"streams\":[]}", "job"},
	{"{\"job\":\"a/b\",\"streams\":[]}", "job id"},
	{"{\"job\":\"x\",\"streams\":{}}", "streams"},
	{"{\"job\":\"x\",\"streams\":[3]}", "stream 1"},
	{"{\"job\":\"x\",\"streams\":[{\"kind\":\"rank\"}]}", "stream 1"},
	{"{\"job\":\"x\",\"streams\":[{\"path\":\"\"}]}", "stream 1"},
	{"{\"job\":\"x\",\"streams\":[{\"path\":\"a\"},{\"path\":\"../other/rank-3.log\"}]}",
		"stream 2"},
	{"{\"job\":\"x\",\"streams\":[{\"path\":\"a/../../b\"}]}", "below the folder"},
	{"{\"job\":\"x\",\"streams\":[{\"path\":\"a/..\"}]}", "below the folder"},
	{"{\"job\":\"x\",\"streams\":[{\"path\":\"..\"}]}", "below the folder"},
	{"{\"job\":\"x\",\"streams\":[{\"path\":\"/etc/passwd\"}]}", "below the folder"},
	{"{\"job\":\"x\",\"streams\":[{\"path\":\"p\",\"kind\":\"stderr\"}]}", "\"p\""},
	{"{\"job\":\"x\",\"streams\":[{\"path\":\"p\",\"rank\":\"3\"}]}", "\"p\""},
	{"{\"job\":\"x\",\"streams\":[{\"path\":\"p\",\"rank\":-1}]}", "\"p\""},
	{"{\"job\":\"x\",\"streams\":[{\"path\":\"p\",\"rank\":131072}]}", "\"p\""},
	{"{\"job\":\"x\",\"streams\":[{\"path\":\"p\",\"rank\":1.5}]}", "\"p\""},
	{"{\"job\":\"x\",\"streams\":[{\"path\":\"p\",\"attempt\":-1}]}", "\"p\""},
	{"{\"job\":\"x\",\"streams\":[{\"path\":\"p\",\"fd\":2}]}", "\"p\""},
	{"{\"job\":\"x\",\"streams\":[{\"path\":\"p\",\"node\":2}]}", "\"p\""},
	{"{\"job\":\"x\",\"world_size\":0,\"streams\":[]}", "world_size"},
	{"{\"job\":\"x\",\"streams\":[],\"job_end\":{\"exit_code\":\"1\"}}", "exit_code"},
	{"{\"job\":\"x\",\"streams\":[],\"job_end\":{\"state\":1}}", "state"},
	{"{\"job\":\"x\",\"streams\":[],\"job_end\":[]}", "job_end"},
};

START_TEST(test_bad)
{
	struct ff_jobfile f;
	struct ff_err err = {0};
	ck_assert_int_eq(ff_jobfile_parse(ff_str_z(bad[_i].text), &f, &err), FF_ESCHEMA);
	ck_assert_msg(strstr(err.text, bad[_i].names) != NULL, "%s", err.text);
}
END_TEST

START_TEST(test_no_json)
{
	struct ff_jobfile f;
	struct ff_err err = {0};
	ck_assert_int_eq(ff_jobfile_parse(FF_STR("{\"streams\":"), &f, &err), FF_EJSON);
	ck_assert(err.text[0]);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("jobfile");
	TCase *tc = tcase_create("jobfile");
	tcase_add_test(tc, test_whole);
	tcase_add_test(tc, test_least);
	tcase_add_loop_test(tc, test_bad, 0, (int)N(bad));
	tcase_add_test(tc, test_no_json);
	suite_add_tcase(s, tc);
	SRunner *sr = srunner_create(s);
	srunner_run_all(sr, CK_ENV);
	int failed = srunner_ntests_failed(sr);
	srunner_free(sr);
	return failed ? 1 : 0;
}
