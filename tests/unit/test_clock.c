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
	ff_clocks_init(&f->clocks, &f->arena, &f->facts, nodes, 2);
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
	suite_add_tcase(s, tc);
	SRunner *r = srunner_create(s);
	srunner_run_all(r, CK_ENV);
	int failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
