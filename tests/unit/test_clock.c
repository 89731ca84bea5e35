#include "core/clock.h"

#include <check.h>
#include <stdlib.h>

#define T0 ((ff_usec)1767225600 * FF_SECOND)

static const char *const nodes[] = {"node-a", "node-b"};

struct fixture {
	struct ff_arena arena;
	struct ff_facts facts;
	struct ff_clocks clocks;
};

static void fixture_init(struct fixture *f)
{
	*f = (struct fixture){0};
	ff_facts_init(&f->facts, FF_STR("job"), FF_STR("0"));
	/* node-b's clock is 10 s ahead, the way there and back takes 2 ms */
	ff_facts_sample(&f->facts, FF_STR("node-b"),
		(struct ff_clock_sample){T0 + 10000000, T0 + 1000, T0 + 1000, T0 + 10002000});
	ff_clocks_init(&f->clocks, &f->arena, &f->facts, nodes, 2, 8);
}

static void fixture_finish(struct fixture *f)
{
	ff_facts_finish(&f->facts);
	ff_arena_finish(&f->arena);
}

static struct ff_when arrived(const struct fixture *f, ff_usec us)
{
	return ff_when_of(&f->clocks, "node-a", 1, (struct ff_stamp){us, FF_TIME_NONE}, NULL);
}

static struct ff_when captured(
	const struct fixture *f, const char *node, uint32_t stream, ff_usec us)
{
	return ff_when_of(&f->clocks, node, stream, (struct ff_stamp){FF_TIME_NONE, us}, NULL);
}

START_TEST(offset_of_a_node_comes_with_its_bound)
{
	struct fixture f;
	fixture_init(&f);
	ck_assert(!ff_clocks_node(&f.clocks, "node-a")->known);
	const struct ff_node_offset *b = ff_clocks_node(&f.clocks, "node-b");
	ck_assert(b->known);
	ck_assert_int_eq(b->offset_us, 10000000);
	ck_assert_int_eq(b->bound_us, 1000);
	ck_assert_ptr_null(ff_clocks_node(&f.clocks, "node-c"));
	ck_assert_ptr_null(ff_clocks_node(&f.clocks, NULL));
	fixture_finish(&f);
}
END_TEST

START_TEST(arrived_stamps_compare_beyond_the_way_of_a_line)
{
	struct fixture f;
	fixture_init(&f);
	struct ff_when a = arrived(&f, T0), near = arrived(&f, T0 + FF_TRANSIT),
		       far = arrived(&f, T0 + FF_TRANSIT + 1);
	ck_assert_int_eq(ff_when_order(a, near), FF_CANT_TELL);
	ck_assert_int_eq(ff_when_order(a, far), FF_BEFORE);
	ck_assert_int_eq(ff_when_order(far, a), FF_AFTER);
	ff_usec d;
	ck_assert(ff_when_diff(far, a, &d));
	ck_assert_int_eq(d, FF_TRANSIT + 1);
	fixture_finish(&f);
}
END_TEST

START_TEST(clocks_of_two_nodes_do_not_compare_without_samples)
{
	struct fixture f;
	fixture_init(&f);
	struct ff_when a = captured(&f, "node-a", 1, T0),
		       b = captured(&f, "node-b", 2, T0 + 900000000);
	ck_assert_int_eq(ff_when_order(a, b), FF_CANT_TELL);
	ck_assert_int_eq(ff_when_order(a, captured(&f, "node-a", 3, T0 + FF_SECOND)), FF_BEFORE);
	/* the same stamp, once arrived and once captured: two clocks */
	ck_assert_int_eq(ff_when_order(arrived(&f, T0), captured(&f, "node-b", 2, T0 + 99000000)),
		FF_CANT_TELL);
	/* without a node each stream has a clock of its own */
	ck_assert_int_eq(
		ff_when_order(captured(&f, NULL, 1, T0), captured(&f, NULL, 1, T0 + FF_SECOND)),
		FF_BEFORE);
	ck_assert_int_eq(
		ff_when_order(captured(&f, NULL, 1, T0), captured(&f, NULL, 2, T0 + FF_SECOND)),
		FF_CANT_TELL);
	ff_usec d;
	ck_assert(!ff_when_diff(a, b, &d));
	fixture_finish(&f);
}
END_TEST

START_TEST(offset_is_taken_off_and_widens_the_interval)
{
	struct fixture f;
	fixture_init(&f);
	struct ff_when b = captured(&f, "node-b", 1, T0 + 10000000);
	ck_assert_int_eq(b.us, T0);
	ck_assert_int_eq(b.lo, T0 - FF_TRANSIT - 1000);
	ck_assert_int_eq(b.hi, T0 + 1000);
	fixture_finish(&f);
}
END_TEST

START_TEST(claimed_is_the_last_resort_and_knows_its_grain)
{
	struct fixture f;
	fixture_init(&f);
	struct ff_claimed c = {.us = T0 + 500000, .grain = 1000, .has_year = true};
	struct ff_when w = ff_when_of(&f.clocks, "node-a", 1, FF_STAMP_NONE, &c);
	ck_assert_int_eq(w.clock, FF_CLOCK_CLAIMED);
	ck_assert_int_eq(w.hi - w.lo, 999);
	/* c10's fraction is the monotonic clock's: only the second is known */
	c.mono_fraction = true;
	w = ff_when_of(&f.clocks, "node-a", 1, FF_STAMP_NONE, &c);
	ck_assert_int_eq(w.lo, T0);
	ck_assert_int_eq(w.hi, T0 + FF_SECOND - 1);
	/* a stamp that came wins */
	w = ff_when_of(&f.clocks, "node-a", 1, (struct ff_stamp){T0, FF_TIME_NONE}, &c);
	ck_assert_int_eq(w.clock, FF_CLOCK_ARRIVED);
	ck_assert(!ff_when_of(&f.clocks, "node-a", 1, FF_STAMP_NONE, NULL).known);
	fixture_finish(&f);
}
END_TEST

START_TEST(claimed_with_and_without_zone_are_two_clocks)
{
	struct fixture f;
	fixture_init(&f);
	struct ff_claimed zone = {.us = T0, .grain = 1, .has_year = true, .has_zone = true};
	struct ff_claimed none = {.us = T0 + 99000000, .grain = 1, .has_year = true};
	struct ff_when a = ff_when_of(&f.clocks, "node-a", 1, FF_STAMP_NONE, &zone);
	struct ff_when b = ff_when_of(&f.clocks, "node-a", 1, FF_STAMP_NONE, &none);
	ck_assert_int_eq(ff_when_order(a, b), FF_CANT_TELL);
	fixture_finish(&f);
}
END_TEST

START_TEST(a_year_is_taken_from_the_nearest_stamp)
{
	struct fixture f;
	fixture_init(&f);
	f.clocks.year_ref = T0; /* 2026-01-01 */
	struct ff_claimed december = {.us = ff_usec_civil(2000, 12, 31, 23, 59, 59, 0), .grain = 1};
	struct ff_claimed january = {.us = ff_usec_civil(2000, 1, 1, 0, 0, 1, 0), .grain = 1};
	struct ff_when a = ff_when_of(&f.clocks, "node-a", 1, FF_STAMP_NONE, &december);
	struct ff_when b = ff_when_of(&f.clocks, "node-a", 1, FF_STAMP_NONE, &january);
	ck_assert_int_eq(a.us, T0 - FF_SECOND);
	ck_assert_int_eq(ff_when_order(a, b), FF_BEFORE);
	fixture_finish(&f);
}
END_TEST

START_TEST(stamps_of_other_centuries_are_not_used)
{
	struct fixture f;
	fixture_init(&f);
	ck_assert(!arrived(&f, 1000).known);
	ck_assert(!captured(&f, "node-a", 1, FF_TIME_LAST).known);
	ck_assert(!ff_when_control(&f.clocks, "node-a", T0, FF_CLOCK_NONE).known);
	ck_assert(ff_when_control(&f.clocks, NULL, T0, FF_CLOCK_ARRIVED).known);
	fixture_finish(&f);
}
END_TEST

static struct ff_claimed claim(ff_usec us, uint32_t grain, bool zone)
{
	return (struct ff_claimed){.us = us, .grain = grain, .has_year = true, .has_zone = zone};
}

static void pairs_of(struct fixture *f, const char *node, uint32_t stream, const ff_usec (*rows)[2],
	size_t n, bool zone)
{
	for (int round = 0; round < 2; round++) {
		for (size_t i = 0; i < n; i++) {
			struct ff_claimed c = claim(rows[i][1], 1000, zone);
			ff_clocks_pair(&f->clocks, round, node, stream,
				(struct ff_stamp){rows[i][0], FF_TIME_NONE}, &c);
		}
	}
}

static struct ff_when both(const struct fixture *f, const char *node, uint32_t stream,
	ff_usec arrived_us, struct ff_claimed c)
{
	return ff_when_of(
		&f->clocks, node, stream, (struct ff_stamp){arrived_us, FF_TIME_NONE}, &c);
}

#define S(seconds) (T0 + (ff_usec)(seconds)*FF_SECOND)

/* Two lines of one node, each with an arrival and a claim. */
static const struct {
	const char *what;
	ff_usec arrived_a, claimed_a, arrived_b, claimed_b;
	uint32_t grain;
	enum ff_order order;
} own_clock[] = {
	{"a batch came in another order than it was written", S(9), S(1), S(5), S(2), 1000,
		FF_BEFORE},
	{"both agree", S(1), S(1), S(5), S(4), 1000, FF_BEFORE},
	{"claims of one second leave it to the arrival", S(1), S(1), S(3), S(1), 1000000,
		FF_BEFORE},
	{"claims that are an hour off are of another clock", S(9), S(3605), S(5), S(2), 1000,
		FF_AFTER},
	{"and say nothing against the arrival", S(5), S(3605), S(9), S(2), 1000, FF_CANT_TELL},
};

START_TEST(lines_of_one_node_compare_by_what_they_claim)
{
	struct fixture f;
	fixture_init(&f);
	uint32_t grain = own_clock[_i].grain;
	struct ff_when a = both(&f, "node-a", 1, own_clock[_i].arrived_a,
		claim(own_clock[_i].claimed_a, grain, false));
	struct ff_when b = both(&f, "node-a", 2, own_clock[_i].arrived_b,
		claim(own_clock[_i].claimed_b, grain, false));
	ck_assert_msg(ff_when_order(a, b) == own_clock[_i].order, "%s", own_clock[_i].what);
	/* claims of two nodes are of two clocks */
	struct ff_when c = both(&f, "node-b", 3, own_clock[_i].arrived_b,
		claim(own_clock[_i].claimed_b, grain, false));
	ck_assert_int_eq(ff_when_order(a, c),
		own_clock[_i].arrived_a < own_clock[_i].arrived_b ? FF_BEFORE : FF_AFTER);
	fixture_finish(&f);
}
END_TEST

START_TEST(a_stream_that_was_late_at_times_is_not_trusted_to_be_prompt)
{
	static const ff_usec batches[][2] = {{S(10), S(10)}, {S(20), S(15)}, {S(21), S(2000)}};
	struct fixture f;
	fixture_init(&f);
	ff_usec silent = S(30), other = S(27);
	struct ff_when b =
		ff_when_of(&f.clocks, "node-a", 2, (struct ff_stamp){other, FF_TIME_NONE}, NULL);
	struct ff_stamp stamp = {silent, FF_TIME_NONE};
	ck_assert_int_eq(
		ff_when_order(ff_when_of(&f.clocks, "node-a", 1, stamp, NULL), b), FF_AFTER);
	pairs_of(&f, "node-a", 1, batches, 2, false);
	struct ff_when a = ff_when_of(&f.clocks, "node-a", 1, stamp, NULL);
	ck_assert_int_eq(ff_when_order(a, b), FF_CANT_TELL);
	ck_assert_int_ge(a.lo, S(25) - FF_TRANSIT);
	/* a date that is no time of the line proves nothing */
	struct fixture g;
	fixture_init(&g);
	pairs_of(&g, "node-a", 1, &batches[1], 2, false);
	ck_assert_int_eq(
		ff_when_order(ff_when_of(&g.clocks, "node-a", 1, stamp, NULL), b), FF_AFTER);
	fixture_finish(&g);
	fixture_finish(&f);
}
END_TEST

/* node-b is 10 s ahead, known to 1 ms: a claimed time of its own corrects a late arrival. */
START_TEST(samples_and_claims_correct_late_arrivals)
{
	static const ff_usec utc[][2] = {{S(20), S(29)}, {S(40), S(41)}};
	static const ff_usec local[][2] = {{S(20), S(29 + 7200)}, {S(40), S(41 + 7200)}};
	for (int zone = 0; zone < 2; zone++) {
		struct fixture f;
		fixture_init(&f);
		pairs_of(&f, "node-b", 1, zone ? utc : local, 2, zone);
		struct ff_claimed c = claim(S(zone ? 41 : 41 + 7200), 1000, zone);
		struct ff_when b = both(&f, "node-b", 1, S(40), c);
		ck_assert_int_eq(b.lo, S(31) - 1000);
		ck_assert_int_eq(b.hi, S(31) + 1000 + 999);
		/* so that it is before what another node's prompt line says */
		struct ff_stamp prompt = {S(35), FF_TIME_NONE};
		ck_assert_int_eq(ff_when_order(b, ff_when_of(&f.clocks, "node-a", 2, prompt, NULL)),
			FF_BEFORE);
		/* a node without samples has no bound: its claim corrects nothing */
		pairs_of(&f, "node-a", 3, utc, 2, zone);
		ck_assert_int_eq(both(&f, "node-a", 3, S(40), c).hi, S(40));
		fixture_finish(&f);
	}
}
END_TEST

START_TEST(claims_before_their_time_are_of_another_clock)
{
	static const ff_usec early[][2] = {{S(20), S(60)}, {S(40), S(41)}};
	struct fixture f;
	fixture_init(&f);
	pairs_of(&f, "node-b", 1, early, 2, true);
	struct ff_when b = both(&f, "node-b", 1, S(40), claim(S(41), 1000, true));
	ck_assert_int_eq(b.hi, S(40));
	ck_assert_int_ge(b.lo, S(40) - FF_TRANSIT - 900 * FF_SECOND);
	fixture_finish(&f);
}
END_TEST

/* The zone of a node's stamps is a quarter hour that its least lag shows, or nobody's: one claim
 * that fits none must move no line by a quarter hour. node-b is 10 s ahead, known to 1 ms. */
#define LAG_MS(lag) (T0 + 110 * FF_SECOND - (ff_usec)(lag)*1000)
#define HOUR_MS (3600 * (int64_t)1000)

static const struct {
	const char *what;
	int64_t lag_ms; /* of one line: came after its claim, on the collector's clock */
	bool corrects;
} odd_claims[] = {
	{"prompt", 0, true},
	{"just before, within the bound", -1, true},
	{"just before, beyond it", -5, false},
	{"before", -20000, false},
	{"a way of seconds", 20000, true},
	{"a way of minutes, or another zone", 300000, false},
	{"an hour to the east, prompt", -HOUR_MS, true},
	{"an hour to the east, a way of seconds", 20000 - HOUR_MS, true},
	{"an hour to the east, just before", -5 - HOUR_MS, false},
	{"a quarter hour to the west", 900000, true},
	{"a quarter hour to the west, just before", 900000 - 5, false},
};

START_TEST(a_claim_that_fits_no_zone_corrects_nothing)
{
	struct fixture f;
	fixture_init(&f);
	const int64_t lag = odd_claims[_i].lag_ms;
	const ff_usec rows[][2] = {{S(100), LAG_MS(lag)}, {S(102), S(102) + 10000000 - lag * 1000}};
	pairs_of(&f, "node-b", 1, rows, 2, false);
	/* a line that is 30 s older than its arrival by the same clock */
	struct ff_when w = both(
		&f, "node-b", 1, S(140), claim(S(110) + 10000000 - lag * 1000, 1000, false));
	bool corrected = w.hi < S(140);
	ck_assert_msg(corrected == odd_claims[_i].corrects, "%s: %lld before arrival",
		odd_claims[_i].what, (long long)(S(140) - w.hi));
	/* whatever it is taken for, it is never moved further than the lag allows */
	ck_assert_int_ge(w.lo, S(140) - 90 * FF_SECOND);
	fixture_finish(&f);
}
END_TEST

/* Ways there and back that differ: two samples together bound the offset better than each. */
START_TEST(samples_are_intersected)
{
	struct fixture f = {0};
	ff_facts_init(&f.facts, FF_STR("job"), FF_STR("0"));
	/* the truth is 5 s ahead: 1 ms there, 9 ms back; then 9 ms there, 1 ms back */
	ff_facts_sample(&f.facts, FF_STR("node-b"),
		(struct ff_clock_sample){S(5), S(0) + 1000, S(0) + 1000, S(5) + 10000});
	ff_facts_sample(&f.facts, FF_STR("node-b"),
		(struct ff_clock_sample){S(6), S(1) + 9000, S(1) + 9000, S(6) + 10000});
	ff_clocks_init(&f.clocks, &f.arena, &f.facts, nodes, 2, 1);
	const struct ff_node_offset *b = ff_clocks_node(&f.clocks, "node-b");
	ff_usec drift = 100;
	ck_assert_int_le(b->bound_us, 1000 + drift);
	ck_assert_int_le(b->offset_us - b->bound_us, 5 * FF_SECOND);
	ck_assert_int_ge(b->offset_us + b->bound_us, 5 * FF_SECOND);
	fixture_finish(&f);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("clock");
	TCase *tc = tcase_create("clock");
	tcase_add_test(tc, offset_of_a_node_comes_with_its_bound);
	tcase_add_test(tc, arrived_stamps_compare_beyond_the_way_of_a_line);
	tcase_add_test(tc, clocks_of_two_nodes_do_not_compare_without_samples);
	tcase_add_test(tc, offset_is_taken_off_and_widens_the_interval);
	tcase_add_test(tc, claimed_is_the_last_resort_and_knows_its_grain);
	tcase_add_test(tc, claimed_with_and_without_zone_are_two_clocks);
	tcase_add_test(tc, a_year_is_taken_from_the_nearest_stamp);
	tcase_add_test(tc, stamps_of_other_centuries_are_not_used);
	tcase_add_loop_test(tc, lines_of_one_node_compare_by_what_they_claim, 0,
		sizeof own_clock / sizeof own_clock[0]);
	tcase_add_test(tc, a_stream_that_was_late_at_times_is_not_trusted_to_be_prompt);
	tcase_add_test(tc, samples_and_claims_correct_late_arrivals);
	tcase_add_test(tc, claims_before_their_time_are_of_another_clock);
	tcase_add_loop_test(tc, a_claim_that_fits_no_zone_corrects_nothing, 0,
		sizeof odd_claims / sizeof odd_claims[0]);
	tcase_add_test(tc, samples_are_intersected);
	suite_add_tcase(s, tc);
	SRunner *r = srunner_create(s);
	srunner_run_all(r, CK_ENV);
	int failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
