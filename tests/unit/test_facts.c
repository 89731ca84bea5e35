#include "core/facts.h"

#include "base/arr.h"

#include "random.h"

#include <check.h>

#include <stdio.h>

static void tell(struct ff_facts *f, const char *id, const char *key, const char *value,
	ff_usec time)
{
	(void)ff_facts_tell(f, id, key, ff_str_z(value), time, FF_CLOCK_ARRIVED);
}

static struct ff_facts facts_new(void)
{
	struct ff_facts f;
	ff_facts_init(&f, FF_STR("4711"), FF_STR("0"));
	return f;
}

START_TEST(test_empty)
{
	struct ff_facts f = facts_new();
	struct ff_arena a = {0};
	ck_assert_str_eq(f.job, "4711");
	ck_assert_str_eq(f.run, "0");
	ck_assert_ptr_null(ff_facts_control(&f, "job@start"));
	ck_assert_ptr_null(ff_control_get(NULL, "x"));
	ck_assert_int_eq(ff_control_int(NULL, "x", 7), 7);
	ck_assert_int_eq(ff_control_time(NULL, NULL), FF_TIME_NONE);
	ck_assert_int_eq(ff_facts_world(&f), FF_UNKNOWN);
	ck_assert(!ff_facts_ended(&f));
	ck_assert(!ff_facts_ended_well(&f));
	ck_assert_ptr_null(ff_facts_state(&f, &a));
	ff_facts_finish(&f);
	ff_facts_finish(&f);
	ff_facts_finish(NULL);
	ff_arena_finish(&a);
}
END_TEST

START_TEST(test_tell)
{
	struct ff_facts f = facts_new();
	ck_assert(ff_facts_tell(&f, "exit@0.3", "signal", FF_STR("9"), 100, FF_CLOCK_CAPTURED));
	ck_assert(!ff_facts_tell(&f, "exit@0.3", "signal", FF_STR("9"), 100, FF_CLOCK_CAPTURED));
	ck_assert(ff_facts_tell(&f, "exit@0.3", "node", FF_STR("a"), FF_TIME_NONE,
		FF_CLOCK_ARRIVED));
	const struct ff_control *c = ff_facts_control(&f, "exit@0.3");
	ck_assert_uint_eq(c->nvalues, 2);
	ck_assert_str_eq(c->values[0].key, "node");
	ck_assert_int_eq(c->values[0].clock, FF_CLOCK_NONE);
	ck_assert_int_eq(ff_control_int(c, "signal", -1), 9);
	ck_assert_int_eq(ff_control_int(c, "node", -1), -1);
	enum ff_clock clock;
	ck_assert_int_eq(ff_control_time(c, &clock), 100);
	ck_assert_int_eq(clock, FF_CLOCK_CAPTURED);
	ck_assert_uint_eq(f.contradictions, 0);
	ff_facts_know(&f, "job@end");
	ck_assert(ff_facts_ended(&f));
	ck_assert_str_eq(f.controls[0]->id, "exit@0.3");
	ck_assert_str_eq(f.controls[1]->id, "job@end");
	f.controls[0]->dirty = false;
	ff_facts_know(&f, "exit@0.3");
	ck_assert(!f.controls[0]->dirty);
	tell(&f, "exit@0.3", "value", "a", 1);
	ck_assert(f.controls[0]->dirty);
	ck_assert(ff_facts_tell(&f, "x", "nul", FF_STR("a\0b"), 1, FF_CLOCK_ARRIVED));
	ck_assert_str_eq(ff_control_get(ff_facts_control(&f, "x"), "nul"), "a");
	ff_facts_finish(&f);
}
END_TEST

START_TEST(test_contradictions)
{
	struct ff_facts f = facts_new();
	tell(&f, "a", "k", "z", FF_TIME_NONE);
	tell(&f, "a", "k", "y", 50);
	ck_assert_str_eq(ff_control_get(ff_facts_control(&f, "a"), "k"), "y");
	tell(&f, "a", "k", "x", 60);
	ck_assert_str_eq(ff_control_get(ff_facts_control(&f, "a"), "k"), "y");
	tell(&f, "a", "k", "x", 50);
	ck_assert_str_eq(ff_control_get(ff_facts_control(&f, "a"), "k"), "x");
	tell(&f, "a", "k", "aaa", FF_TIME_NONE);
	ck_assert_str_eq(ff_control_get(ff_facts_control(&f, "a"), "k"), "x");
	ck_assert_uint_eq(f.contradictions, 1);
	tell(&f, "a", "l", "1", FF_TIME_NONE);
	tell(&f, "a", "l", "0", FF_TIME_NONE);
	ck_assert_str_eq(ff_control_get(ff_facts_control(&f, "a"), "l"), "0");
	ck_assert_uint_eq(f.contradictions, 2);
	ff_facts_finish(&f);
}
END_TEST

static const struct {
	const char *code, *state, *signal;
	bool well;
} end_rows[] = {
	{"0", NULL, NULL, true},
	{"0", "COMPLETED", NULL, true},
	{"0", "Succeeded", NULL, true},
	{"0", "", NULL, true},
	{NULL, "completed", NULL, true},
	{NULL, "SUCCEEDED", "0", true},
	{"0", "FAILED", NULL, false},
	{"0", "COMPLETING", NULL, false},
	{"0", "COMPLETE", NULL, false},
	{"1", "COMPLETED", NULL, false},
	{"1", NULL, NULL, false},
	{"x", NULL, NULL, false},
	{NULL, NULL, NULL, false},
	{NULL, "FAILED", NULL, false},
	{"0", NULL, "9", false},
};

START_TEST(test_ended_well)
{
	struct ff_facts f = facts_new();
	struct ff_arena a = {0};
	const char *const keys[] = {"exit_code", "state", "signal"};
	const char *const values[] = {end_rows[_i].code, end_rows[_i].state, end_rows[_i].signal};
	ff_facts_know(&f, "job@end");
	for (size_t i = 0; i < 3; i++) {
		if (values[i]) {
			tell(&f, "job@end", keys[i], values[i], 1);
		}
	}
	ck_assert_int_eq(ff_facts_ended_well(&f), end_rows[_i].well);
	const char *state = ff_facts_state(&f, &a);
	if (end_rows[_i].state && *end_rows[_i].state) {
		ck_assert_int_eq(strcasecmp(state, end_rows[_i].state), 0);
		for (const char *p = state; *p; p++) {
			ck_assert(*p >= 'A' && *p <= 'Z');
		}
	} else {
		ck_assert_ptr_null(state);
	}
	ff_facts_finish(&f);
	ff_arena_finish(&a);
}
END_TEST

static const struct {
	const char *said;
	int32_t world;
} world_rows[] = {
	{"1", 1},
	{"16", 16},
	{"131072", 131072},
	{"131073", FF_UNKNOWN},
	{"0", FF_UNKNOWN},
	{"-4", FF_UNKNOWN},
	{"many", FF_UNKNOWN},
	{"99999999999999999999", FF_UNKNOWN},
};

START_TEST(test_world)
{
	struct ff_facts f = facts_new();
	tell(&f, "job@start", "world_size", world_rows[_i].said, FF_TIME_NONE);
	ck_assert_int_eq(ff_facts_world(&f), world_rows[_i].world);
	ff_facts_finish(&f);
}
END_TEST

/* ---- clock samples */

static struct ff_clock_sample sample(ff_usec t1, ff_usec trip)
{
	return (struct ff_clock_sample){t1, t1 + 5, t1 + 7, t1 + trip + 2};
}

START_TEST(test_samples)
{
	struct ff_facts f = facts_new();
	ck_assert(ff_facts_sample(&f, FF_STR("b"), sample(1000, 50)));
	ck_assert(ff_facts_sample(&f, FF_STR("b"), sample(500, 50)));
	ck_assert(ff_facts_sample(&f, FF_STR("b"), sample(2000, 10)));
	ck_assert(ff_facts_sample(&f, FF_STR("b"), sample(2000, 10)));
	ck_assert(ff_facts_sample(&f, FF_STR("a"), sample(1, 1)));
	ck_assert_uint_eq(f.nclocks, 2);
	ck_assert_str_eq(f.clocks[0].node, "a");
	const struct ff_node_clock *c = &f.clocks[1];
	ck_assert_uint_eq(c->nsamples, 3);
	ck_assert_int_eq(c->samples[0].t1, 2000);
	ck_assert_int_eq(c->samples[1].t1, 500);
	ck_assert_int_eq(c->samples[2].t1, 1000);
	ff_facts_finish(&f);
}
END_TEST

START_TEST(test_samples_refused)
{
	static const struct ff_clock_sample bad[] = {
		{10, 5, 7, 9},                        /* back before it went */
		{10, 7, 5, 20},                       /* left before it came */
		{10, 0, 100, 20},                     /* longer there than under way */
		{-1, 5, 7, 20},
		{10, 5, 7, (ff_usec)1 << 53},
		{INT64_MIN, INT64_MAX, INT64_MIN, INT64_MAX},
	};
	struct ff_facts f = facts_new();
	for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
		ck_assert(!ff_facts_sample(&f, FF_STR("a"), bad[i]));
	}
	ck_assert_uint_eq(f.nclocks, 0);
	ff_facts_finish(&f);
}
END_TEST

START_TEST(test_samples_cap)
{
	struct ff_facts f = facts_new();
	for (ff_usec i = 0; i < 10 * FF_CLOCK_SAMPLES; i++) {
		/* worst first: each is better than all before */
		ck_assert(ff_facts_sample(&f, FF_STR("a"), sample(i, 10000 - i)));
	}
	ck_assert_uint_eq(f.clocks[0].nsamples, FF_CLOCK_SAMPLES);
	ck_assert_int_eq(f.clocks[0].samples[0].t1, 10 * FF_CLOCK_SAMPLES - 1);
	f.clocks[0].dirty = false;
	ck_assert(ff_facts_sample(&f, FF_STR("a"), sample(1, 20000)));
	ck_assert(!f.clocks[0].dirty);
	ff_facts_finish(&f);
}
END_TEST

/* ---- order */

struct told {
	char id[16], key[16], value[16];
	ff_usec time;
	enum ff_clock clock;
	struct ff_clock_sample sample; /* with t4: a sample of node `id` */
};

static void add_facts(struct ff_facts *f, const struct told *told, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		const struct told *t = &told[i];
		if (t->sample.t4) {
			(void)ff_facts_sample(f, ff_str_z(t->id), t->sample);
		} else {
			(void)ff_facts_tell(f, t->id, t->key, ff_str_z(t->value), t->time,
				t->clock);
		}
	}
}

/* All that facts say, as text. */
static void dump(const struct ff_facts *f, struct ff_buf *b)
{
	for (size_t i = 0; i < f->ncontrols; i++) {
		const struct ff_control *c = f->controls[i];
		enum ff_clock clock;
		ff_usec time = ff_control_time(c, &clock);
		ff_buf_addf(b, "%s at %ld of %d\n", c->id, time, clock);
		for (size_t k = 0; k < c->nvalues; k++) {
			const struct ff_fact_value *v = &c->values[k];
			ff_buf_addf(b, "  %s=%s %ld %d %d\n", v->key, v->value, v->time, v->clock,
				v->contradicted);
		}
	}
	for (size_t i = 0; i < f->nclocks; i++) {
		const struct ff_node_clock *c = &f->clocks[i];
		for (size_t k = 0; k < c->nsamples; k++) {
			ff_buf_addf(b, "%s %ld %ld\n", c->node, c->samples[k].t1, c->samples[k].t4);
		}
	}
	ff_buf_addf(b, "%lu\n", f->contradictions);
}

START_TEST(test_any_order)
{
	enum { N = 300 };
	struct random r = random_init((uint64_t)_i);
	static struct told told[2 * N];
	for (size_t i = 0; i < N; i++) {
		struct told *t = &told[i];
		*t = (struct told){.time = FF_TIME_NONE};
		uint32_t attempt = random_below(&r, 2);
		snprintf(t->id, sizeof t->id, "exit@%u.%u", attempt, random_below(&r, 12));
		snprintf(t->key, sizeof t->key, "k%u", random_below(&r, 3));
		snprintf(t->value, sizeof t->value, "%u", random_below(&r, 3));
		if (random_below(&r, 4)) {
			t->time = random_below(&r, 5);
			t->clock = (enum ff_clock)(1 + random_below(&r, 3));
		}
		if (!random_below(&r, 2)) {
			snprintf(t->id, sizeof t->id, "node-%u", random_below(&r, 2));
			t->sample = sample(random_below(&r, 20), 1 + random_below(&r, 20));
		}
		told[N + i] = *t; /* each once more: repeats change nothing */
	}
	struct ff_buf want = {0};
	struct ff_facts f = facts_new();
	add_facts(&f, told, N);
	dump(&f, &want);
	ff_facts_finish(&f);
	for (int round = 0; round < 20; round++) {
		for (size_t i = 2 * N - 1; i > 0; i--) {
			size_t k = random_below(&r, (uint32_t)i + 1);
			struct told swap = told[i];
			told[i] = told[k];
			told[k] = swap;
		}
		struct ff_buf got = {0};
		f = facts_new();
		add_facts(&f, told, 2 * N);
		dump(&f, &got);
		ck_assert_msg(!strcmp(got.p, want.p), "seed %lu, round %d", r.seed, round);
		ff_buf_finish(&got);
		ff_facts_finish(&f);
	}
	ff_buf_finish(&want);
}
END_TEST

START_TEST(test_controls_cap)
{
	struct ff_facts f = facts_new();
	char id[32];
	for (uint32_t i = 0; i < FF_CONTROLS_MAX + 3; i++) {
		snprintf(id, sizeof id, "exit@0.%08u", i);
		ff_facts_know(&f, id);
	}
	ck_assert_uint_eq(f.ncontrols, FF_CONTROLS_MAX);
	ck_assert_uint_eq(f.controls_refused, 3);
	ck_assert(!ff_facts_tell(&f, "new", "k", FF_STR("v"), 1, FF_CLOCK_ARRIVED));
	ck_assert(ff_facts_tell(&f, "exit@0.00000007", "k", FF_STR("v"), 1, FF_CLOCK_ARRIVED));
	ck_assert_uint_eq(f.controls_refused, 4);
	ff_facts_finish(&f);
}
END_TEST

START_TEST(test_nodes_cap)
{
	struct ff_facts f = facts_new();
	char node[32];
	for (uint32_t i = 0; i < FF_NODES_MAX + 2; i++) {
		int n = snprintf(node, sizeof node, "node-%08u", i);
		bool taken = ff_facts_sample(&f, ff_str_n(node, (size_t)n), sample(1, 1));
		ck_assert_int_eq(taken, i < FF_NODES_MAX);
	}
	ck_assert_uint_eq(f.nclocks, FF_NODES_MAX);
	ck_assert_uint_eq(f.controls_refused, 2);
	ff_facts_finish(&f);
}
END_TEST

#define LOOP(tc, fn, n) tcase_add_loop_test(tc, fn, 0, (int)(n))

int main(void)
{
	Suite *s = suite_create("facts");
	TCase *tc = tcase_create("facts");
	tcase_add_test(tc, test_empty);
	tcase_add_test(tc, test_tell);
	tcase_add_test(tc, test_contradictions);
	LOOP(tc, test_ended_well, sizeof end_rows / sizeof end_rows[0]);
	LOOP(tc, test_world, sizeof world_rows / sizeof world_rows[0]);
	tcase_add_test(tc, test_samples);
	tcase_add_test(tc, test_samples_refused);
	tcase_add_test(tc, test_samples_cap);
	LOOP(tc, test_any_order, 10);
	tcase_add_test(tc, test_controls_cap);
	tcase_add_test(tc, test_nodes_cap);
	tcase_set_timeout(tc, 60);
	suite_add_tcase(s, tc);
	SRunner *sr = srunner_create(s);
	srunner_run_all(sr, CK_ENV);
	int failed = srunner_ntests_failed(sr);
	srunner_free(sr);
	return failed ? 1 : 0;
}
