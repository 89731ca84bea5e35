#include "hook_say.h"

#include <check.h>

#include <stdlib.h>
#include <string.h>

static const char *nodes[] = {"gpu-1", NULL};
static struct ff_who who[] = {{.rank = 3, .node = "gpu-1"}, {.rank = 4, .node = "gpu-1"}};

static struct ff_verdict verdict(void)
{
	return (struct ff_verdict){
		.job = "j",
		.run = "0",
		.state = FF_RUN_ENDED,
		.kind = FF_VERDICT_RANK,
		.initiating = who,
		.ninitiating = 2,
		.fault = "cuda-oom",
		.node = "gpu-1",
		.summary = "rank 3\nran out\x1b[2J of memory",
		.action = {.nodes = nodes},
	};
}

/* What changes the substance, and what doesn't. */
START_TEST(test_substance)
{
	struct ff_verdict v = verdict();
	uint64_t before = hook_substance(&v);
	ck_assert_uint_ne(before, 0);
	v.summary = "something else";
	v.final = true;
	v.as_of = 5;
	ck_assert_uint_eq(hook_substance(&v), before);
#define CHANGES(change) \
	do { \
		v = verdict(); \
		change; \
		ck_assert_uint_ne(hook_substance(&v), before); \
	} while (0)
	CHANGES(v.kind = FF_VERDICT_NODE);
	CHANGES(v.confidence++);
	CHANGES(v.fault = "x");
	CHANGES(v.fault = NULL);
	CHANGES(v.node = NULL);
	CHANGES(v.attempt = 1);
	CHANGES(v.ninitiating = 1);
	CHANGES(v.action.retry = true);
	CHANGES(v.action.kind = FF_ACTION_EXCLUDE_NODE);
	CHANGES(v.action.nodes = NULL);
}
END_TEST

static const char *value_of(char **env, const char *name)
{
	size_t n = strlen(name);
	for (; *env; env++) {
		if (!strncmp(*env, name, n) && (*env)[n] == '=') {
			return *env + n + 1;
		}
	}
	return NULL;
}

START_TEST(test_environment)
{
	struct ff_verdict v = verdict();
	char *const before[] = {(char *)"PATH=/bin", (char *)"FIRSTFAULT_JOB=other",
		(char *)"NOTIFY_SOCKET=/x", (char *)"LISTEN_FDS=3", (char *)"WATCHDOG_USEC=1",
		NULL};
	char **env = hook_environment(&v, HOOK_FAULT, "an-id", before);
	ck_assert_str_eq(value_of(env, "PATH"), "/bin");
	ck_assert_str_eq(value_of(env, "FIRSTFAULT_JOB"), "j");
	ck_assert_str_eq(value_of(env, "FIRSTFAULT_ID"), "an-id");
	ck_assert_str_eq(value_of(env, "FIRSTFAULT_EVENT"), "fault");
	ck_assert_str_eq(value_of(env, "FIRSTFAULT_RANKS"), "3,4");
	ck_assert_str_eq(value_of(env, "FIRSTFAULT_EXCLUDE"), "gpu-1");
	ck_assert_str_eq(value_of(env, "FIRSTFAULT_SUMMARY"), "rank 3 ran out [2J of memory");
	ck_assert_ptr_null(value_of(env, "NOTIFY_SOCKET"));
	ck_assert_ptr_null(value_of(env, "LISTEN_FDS"));
	ck_assert_ptr_null(value_of(env, "WATCHDOG_USEC"));
	hook_environment_free(env);
	hook_environment_free(NULL);
}
END_TEST

START_TEST(test_backoff)
{
	static const int seconds[] = {1, 1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300};
	for (unsigned i = 0; i < sizeof seconds / sizeof *seconds; i++) {
		ck_assert_int_eq(hook_backoff(i), seconds[i] * FF_SECOND);
	}
	ck_assert_int_eq(hook_backoff(UINT32_MAX), 300 * FF_SECOND);
}
END_TEST

START_TEST(test_id)
{
	struct ff_verdict v = verdict();
	struct ff_buf id = {0};
	hook_id(&v, HOOK_WITHDRAWN, 0xabc, &id);
	ck_assert_str_eq(id.p, "j/0/withdrawn/0000000000000abc");
	ff_buf_finish(&id);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("hook");
	TCase *tc = tcase_create("hook");
	tcase_add_test(tc, test_substance);
	tcase_add_test(tc, test_environment);
	tcase_add_test(tc, test_backoff);
	tcase_add_test(tc, test_id);
	suite_add_tcase(s, tc);
	SRunner *sr = srunner_create(s);
	srunner_run_all(sr, CK_ENV);
	int failed = srunner_ntests_failed(sr);
	srunner_free(sr);
	return failed ? 1 : 0;
}
