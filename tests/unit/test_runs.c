#include "feed/runs.h"

#include "base/limits.h"

#include <check.h>

#include <stdio.h>

#define N(table) (sizeof(table) / sizeof(table)[0])
#define MIN (60 * FF_SECOND)

static struct ff_catalog *catalog;
static struct ff_runs runs;

static void setup(void)
{
	struct ff_err err = {0};
	catalog = ff_catalog_create();
	ck_assert_msg(ff_catalog_seal(catalog, "0", &err) == 0, "%s", err.text);
	ff_runs_init(&runs, catalog);
}

static void teardown(void)
{
	ff_runs_finish(&runs);
	ff_runs_finish(&runs);
	ff_catalog_destroy(catalog);
}

/* Who asks, and the run that it gets; "" stands for none said. */
struct step {
	const char *job, *run, *source;
	enum ff_run_cause cause;
	ff_usec now;
	const char *gets; /* NULL: a job-end comes for this job's latest run at `now` */
};

#define STEPS 10

static const struct {
	const char *what;
	struct step steps[STEPS];
} rows[] = {
	{"the first word begins a run", {{"a", "", "", FF_RUN_FEED, 0, "0"}}},
	{"of each job", {{"a", "", "", FF_RUN_FEED, 0, "0"}, {"b", "", "", FF_RUN_START, 0, "0"}}},
	{"data after the end belongs to the run",
		{{"a", "", "", FF_RUN_FEED, 0, "0"}, {"a", "", "", FF_RUN_FEED, MIN, NULL},
			{"a", "", "", FF_RUN_FEED, 99 * MIN, "0"}}},
	{"a job-start before the end too",
		{{"a", "", "", FF_RUN_FEED, 0, "0"}, {"a", "", "", FF_RUN_START, MIN, "0"}}},
	{"a job-start after the end begins one",
		{{"a", "", "", FF_RUN_START, 0, "0"}, {"a", "", "", FF_RUN_FEED, MIN, NULL},
			{"a", "", "", FF_RUN_START, MIN, "1"}, {"a", "", "", FF_RUN_FEED, MIN, "1"},
			{"a", "", "", FF_RUN_FEED, MIN, NULL},
			{"a", "", "", FF_RUN_START, MIN, "2"}}},
	{"but not from a source that is known",
		{{"a", "", "s", FF_RUN_START, 0, "0"}, {"a", "", "", FF_RUN_FEED, MIN, NULL},
			{"a", "", "s", FF_RUN_START, MIN, "0"},
			{"a", "", "t", FF_RUN_START, MIN, "1"},
			{"a", "", "s", FF_RUN_FEED, MIN, "0"}}},
	{"source 0 is nobody",
		{{"a", "", "0", FF_RUN_START, 0, "0"}, {"a", "", "", FF_RUN_FEED, 0, NULL},
			{"a", "", "0", FF_RUN_START, MIN, "1"},
			{"a", "", "0", FF_RUN_FEED, MIN, "1"}}},
	{"live long after the end",
		{{"a", "", "s", FF_RUN_LIVE, 0, "0"}, {"a", "", "", FF_RUN_FEED, MIN, NULL},
			{"a", "", "t", FF_RUN_LIVE, 11 * MIN, "0"},
			{"a", "", "u", FF_RUN_LIVE, 11 * MIN + 1, "1"},
			{"a", "", "s", FF_RUN_LIVE, 99 * MIN, "0"},
			{"a", "", "v", FF_RUN_FEED, 99 * MIN, "1"}}},
	{"live without an end",
		{{"a", "", "s", FF_RUN_LIVE, 0, "0"}, {"a", "", "t", FF_RUN_LIVE, 999 * MIN, "0"}}},
	{"a run that is named",
		{{"a", "r7", "", FF_RUN_START, 0, "r7"}, {"a", "", "", FF_RUN_FEED, 0, "r7"},
			{"a", "r8", "s", FF_RUN_LIVE, 0, "r8"}, {"a", "", "", FF_RUN_FEED, 0, "r8"},
			{"a", "r7", "t", FF_RUN_FEED, 0, "r7"},
			{"a", "", "t", FF_RUN_FEED, 0, "r7"},
			{"a", "", "u", FF_RUN_FEED, 0, "r8"}}},
	{"names are not taken twice",
		{{"a", "1", "", FF_RUN_FEED, 0, "1"}, {"a", "", "", FF_RUN_FEED, 0, NULL},
			{"a", "", "", FF_RUN_START, 0, "2"}}},
	{"a source speaks for several jobs",
		{{"a", "", "s", FF_RUN_FEED, 0, "0"}, {"b", "x", "s", FF_RUN_FEED, 0, "x"},
			{"a", "", "s", FF_RUN_FEED, 0, "0"}}},
};

static void end_latest(const struct step *s)
{
	struct ff_run *run = ff_runs_find(&runs, ff_str_z(s->job), NULL);
	ff_facts_know(&run->job->facts, "job@end");
	run->ended_us = s->now;
}

START_TEST(test_rule)
{
	for (const struct step *s = rows[_i].steps; s < rows[_i].steps + STEPS && s->job; s++) {
		struct ff_run *run = NULL;
		struct ff_str name = ff_str_z(s->run);
		if (!s->gets) {
			end_latest(s);
			continue;
		}
		ck_assert_int_eq(ff_runs_resolve(&runs, ff_str_z(s->job), name.n ? &name : NULL,
			*s->source ? s->source : NULL, s->cause, s->now, &run, NULL), 0);
		ck_assert_str_eq(run->job->facts.job, s->job);
		ck_assert_msg(!strcmp(run->job->facts.run, s->gets), "%s, step %d: run %s",
			rows[_i].what, (int)(s - rows[_i].steps), run->job->facts.run);
	}
}
END_TEST

#define LONG128 \
	"1234567890123456789012345678901234567890123456789012345678901234567890123456789012345678" \
	"9012345" \
	"678901234567890123456789012345678"

static const struct {
	const char *name;
	bool ok;
} names[] = {
	{"4711", true},
	{"10.0.0.1:29500", true},
	{"a b", true},
	{"\xc3\xa9", true},
	{"none-1", true},
	{"...", true},
	{LONG128, true},
	{LONG128 "9", false},
	{"", false},
	{"none", false},
	{"-", false},
	{".", false},
	{"..", false},
	{"a/b", false},
	{"a~1", false},
	{"a\nb", false},
	{"\x7f", false},
};

START_TEST(test_names)
{
	struct ff_err err = {0};
	struct ff_run *run;
	struct ff_str name = ff_str_z(names[_i].name);
	ck_assert_int_eq(ff_runs_check_name(name, "job id", &err), names[_i].ok ? 0 : FF_ENAME);
	ck_assert_int_eq(err.text[0] != '\0', !names[_i].ok);
	ck_assert_int_eq(ff_runs_resolve(&runs, name, NULL, NULL, FF_RUN_FEED, 0, &run, NULL),
		names[_i].ok ? 0 : FF_ENAME);
	ck_assert_int_eq(
		ff_runs_resolve(&runs, FF_STR("j"), &name, NULL, FF_RUN_FEED, 0, &run, NULL),
		names[_i].ok ? 0 : FF_ENAME);
	ck_assert_uint_eq(runs.nruns, names[_i].ok ? 2 : 0);
}
END_TEST

static struct ff_run *make(const char *job, const char *run)
{
	struct ff_run *r = NULL;
	struct ff_str name = ff_str_z(run);
	ck_assert_int_eq(
		ff_runs_resolve(&runs, ff_str_z(job), &name, NULL, FF_RUN_FEED, 0, &r, NULL), 0);
	return r;
}

static const struct {
	const char *typed, *job, *run; /* job NULL: none */
	bool many;
} finds[] = {
	{"4711", "4711", "2", false},
	{"4711~0", "4711", "2", false},
	{"4711~1", "4711", "1", false},
	{"4711~2", "4711", "0", false},
	{"4711~3", NULL, NULL, false},
	{"4711~", NULL, NULL, false},
	{"4711~-1", NULL, NULL, false},
	{"4711~x", NULL, NULL, false},
	{"4711/0", "4711", "0", false},
	{"4711/9", NULL, NULL, false},
	{"471", "4711", "2", false},
	{"48", NULL, NULL, true},
	{"48~0", NULL, NULL, true},
	{"482", "482", "a", false},
	{"4821", "4821", "0", false},
	{"471~1", "4711", "1", false},
	{"", NULL, NULL, false},
	{"x", NULL, NULL, false},
};

START_TEST(test_find)
{
	bool many = true;
	make("4711", "0");
	make("482", "a");
	make("4711", "1");
	make("4821", "0");
	make("4711", "2");
	struct ff_run *r = ff_runs_find(&runs, ff_str_z(finds[_i].typed), &many);
	ck_assert_int_eq(many, finds[_i].many);
	ck_assert_int_eq(r != NULL, finds[_i].job != NULL);
	if (r) {
		ck_assert_str_eq(r->job->facts.job, finds[_i].job);
		ck_assert_str_eq(r->job->facts.run, finds[_i].run);
	}
}
END_TEST

START_TEST(test_restore)
{
	struct ff_run *r;
	ff_runs_restore(&runs, FF_STR("a"), FF_STR("0"), 1);
	struct ff_run *second = ff_runs_restore(&runs, FF_STR("a"), FF_STR("1"), 2);
	ff_runs_know_source(&runs, runs.runs[0], "s");
	ck_assert(!second->dirty);
	ck_assert_int_eq(second->begun_us, FF_TIME_NONE);
	ck_assert_int_eq(
		ff_runs_resolve(&runs, FF_STR("a"), NULL, "s", FF_RUN_LIVE, 5, &r, NULL), 0);
	ck_assert_uint_eq(r->number, 1);
	ck_assert_int_eq(
		ff_runs_resolve(&runs, FF_STR("a"), NULL, "t", FF_RUN_FEED, 5, &r, NULL), 0);
	ck_assert_ptr_eq(r, second);
	ck_assert_int_eq(
		ff_runs_resolve(&runs, FF_STR("b"), NULL, NULL, FF_RUN_FEED, 5, &r, NULL), 0);
	ck_assert_uint_eq(r->number, 3);
	ck_assert_int_eq(r->begun_us, 5);
	ck_assert(r->dirty);
}
END_TEST

/* Open runs are capped; an ended one makes room. */
START_TEST(test_cap)
{
	char name[24];
	struct ff_run *r;
	for (unsigned i = 0; i < FF_RUNS_MAX; i++) {
		(void)snprintf(name, sizeof name, "j%u", i);
		ck_assert_int_eq(ff_runs_resolve(&runs, ff_str_z(name), NULL, NULL, FF_RUN_FEED, 0,
					 &r, NULL),
			0);
	}
	ck_assert_int_eq(ff_runs_resolve(&runs, FF_STR("x"), NULL, NULL, FF_RUN_FEED, 0, &r, NULL),
		FF_ELIMIT);
	ck_assert_uint_eq(runs.counts[FF_COUNT_runs_refused], 1);
	ck_assert_int_eq(
		ff_runs_resolve(&runs, FF_STR("j7"), NULL, NULL, FF_RUN_FEED, 0, &r, NULL), 0);
	r->ended_us = 1;
	ck_assert_int_eq(
		ff_runs_resolve(&runs, FF_STR("x"), NULL, NULL, FF_RUN_FEED, 0, &r, NULL), 0);
	ck_assert_int_eq(ff_runs_resolve(&runs, FF_STR("y"), NULL, NULL, FF_RUN_FEED, 0, &r, NULL),
		FF_ELIMIT);
}
END_TEST

/* A run that is removed leaves no way to it, and its number is never given again. */
START_TEST(test_remove)
{
	struct ff_run *run[4];
	static const char *const jobs[] = {"a", "b", "a", "a"};
	for (int i = 0; i < 4; i++) {
		char name[8];
		(void)snprintf(name, sizeof name, "r%d", i);
		struct ff_str r = ff_str_z(name);
		ck_assert_int_eq(ff_runs_resolve(&runs, ff_str_z(jobs[i]), &r, i == 2 ? "s" : NULL,
					 FF_RUN_START, 0, &run[i], NULL), 0);
		ck_assert_uint_eq(run[i]->number, i + 1);
	}
	ff_runs_remove(&runs, run[2]);
	ck_assert_uint_eq(runs.nruns, 3);
	ck_assert_ptr_null(ff_runs_number(&runs, 3));
	ck_assert_ptr_eq(ff_runs_number(&runs, 4), run[3]);
	ck_assert_uint_eq(ff_runs_below(&runs, 4), 2);
	ck_assert_ptr_null(ff_runs_find(&runs, FF_STR("a/r2"), NULL));
	ck_assert_ptr_eq(ff_runs_find(&runs, FF_STR("a"), NULL), run[3]);
	ck_assert_ptr_eq(ff_runs_find(&runs, FF_STR("a~1"), NULL), run[0]);
	struct ff_run *next;
	/* its source speaks for the latest run now */
	ck_assert_int_eq(
		ff_runs_resolve(&runs, FF_STR("a"), NULL, "s", FF_RUN_FEED, 0, &next, NULL), 0);
	ck_assert_ptr_eq(next, run[3]);
	ff_runs_remove(&runs, run[3]);
	ck_assert_ptr_eq(ff_runs_find(&runs, FF_STR("a"), NULL), run[0]);
	ff_runs_remove(&runs, run[0]);
	ck_assert_ptr_null(ff_runs_find(&runs, FF_STR("a"), NULL));
	ck_assert_int_eq(
		ff_runs_resolve(&runs, FF_STR("a"), NULL, "s", FF_RUN_FEED, 0, &next, NULL), 0);
	ck_assert_uint_eq(next->number, 5);
	ck_assert_str_eq(next->job->facts.run, "0");
}
END_TEST

#define LOOP(tc, fn, n) tcase_add_loop_test(tc, fn, 0, (int)(n))

int main(void)
{
	Suite *s = suite_create("runs");
	TCase *tc = tcase_create("runs");
	tcase_add_checked_fixture(tc, setup, teardown);
	LOOP(tc, test_rule, N(rows));
	LOOP(tc, test_names, N(names));
	LOOP(tc, test_find, N(finds));
	tcase_add_test(tc, test_restore);
	tcase_add_test(tc, test_cap);
	tcase_add_test(tc, test_remove);
	tcase_set_timeout(tc, 60);
	suite_add_tcase(s, tc);
	SRunner *sr = srunner_create(s);
	srunner_run_all(sr, CK_ENV);
	int failed = srunner_ntests_failed(sr);
	srunner_free(sr);
	return failed ? 1 : 0;
}
