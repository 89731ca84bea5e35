#include "core/stamp.h"

#include "base/mem.h"

#include "random.h"

#include <check.h>

#include <stdlib.h>

#define MS 1000u
#define SEC 1000000u

static const struct {
	const char *text;
	const char *want; /* as RFC 3339; NULL: no stamp */
	uint32_t grain;
	bool no_year, zone, mono;
} rows[] = {
	/* Python logging and what people make of it */
	{"2026-11-30 09:34:17,075 INFO train: x", "2026-11-30T09:34:17.075000Z", MS, 0, 0, 0},
	{"2026-11-30 09:34:17,075", "2026-11-30T09:34:17.075000Z", MS, 0, 0, 0},
	{"2026-11-30 09:34:17 x", "2026-11-30T09:34:17.000000Z", SEC, 0, 0, 0},
	{"2026-11-30 09:34:17.5 | INFO | x", "2026-11-30T09:34:17.500000Z", 100000, 0, 0, 0},
	{"  2026-11-30 09:34:17,075 x", "2026-11-30T09:34:17.075000Z", MS, 0, 0, 0},
	{"2026-11-30 09:34:17,075\tINFO worker.py:1603 -- x", "2026-11-30T09:34:17.075000Z", MS, 0,
		0, 0},
	{"[INFO] 2021-09-14 14:02:10,000 api: x", "2021-09-14T14:02:10.000000Z", MS, 0, 0, 0},
	{"[RANK 0] 2026-05-19 10:05:00,101 [INFO] x", "2026-05-19T10:05:00.101000Z", MS, 0, 0, 0},
	{"WARNING: 2026-05-19 10:05:00 x", "2026-05-19T10:05:00.000000Z", SEC, 0, 0, 0},
	{"INFO     2026-05-19 10:05:00 x", "2026-05-19T10:05:00.000000Z", SEC, 0, 0, 0},
	{"submitit WARNING (2026-05-19 10:05:00,123) - x", "2026-05-19T10:05:00.123000Z", MS, 0, 0,
		0},
	{"INFORM 2026-05-19 10:05:00 x", NULL, 0, 0, 0, 0},
	{"step at 2026-05-19 10:05:00", NULL, 0, 0, 0, 0},
	{"2026-05-19_x", NULL, 0, 0, 0, 0},
	{"2026-05-19 10:05", NULL, 0, 0, 0, 0},
	{"12026-05-19 10:05:00", NULL, 0, 0, 0, 0},
	{"2026-05-19 10:05:001 x", NULL, 0, 0, 0, 0},

	/* ISO 8601 */
	{"2024-05-01T12:00:00.123456+02:00 x", "2024-05-01T10:00:00.123456Z", 1, 0, 1, 0},
	{"2024-05-01T12:00:00Z x", "2024-05-01T12:00:00.000000Z", SEC, 0, 1, 0},
	{"2024-05-01T12:00:00.00000001Z x", "2024-05-01T12:00:00.000000Z", MS, 0, 1, 0},
	{"2024-05-01T12:00:00.123456789-0800 x", "2024-05-01T20:00:00.123456Z", 1, 0, 1, 0},
	{"2024-05-01T12:00:00,123456+00:00 x", "2024-05-01T12:00:00.123456Z", 1, 0, 1, 0},
	{"2024-05-01 12:00:00+05 x", "2024-05-01T07:00:00.000000Z", SEC, 0, 1, 0},
	{"[2024-05-01 12:00:00 +0100] [7] [INFO] x", "2024-05-01T11:00:00.000000Z", SEC, 0, 1, 0},
	{"2024-05-01 12:00:00 -5 x", "2024-05-01T12:00:00.000000Z", SEC, 0, 0, 0},
	{"2024-05-01 12:00:00 - root - x", "2024-05-01T12:00:00.000000Z", SEC, 0, 0, 0},
	{"2024-05-01T12:00:00 slurm", "2024-05-01T12:00:00.000000Z", SEC, 0, 0, 0},
	{"2024-05-01T12:00:00Zulu", NULL, 0, 0, 0, 0},

	{"2024-05-01 12:00:00.123456: I tensorflow/core/x.cc:12] x", "2024-05-01T12:00:00.123456Z",
		1, 0, 0, 0},
	{"2024-05-01 12:00:00.123 | ERROR    | m:f:1 - x", "2024-05-01T12:00:00.123000Z", MS, 0, 0,
		0},
	{"2024-05-01T12:00:00.123456+0000 host kernel: x", "2024-05-01T12:00:00.123456Z", 1, 0, 1,
		0},
	{"2024-05-01T12:00:00.5Z x", "2024-05-01T12:00:00.500000Z", 100000, 0, 1, 0},
	{"2024-05-01 12:00:00,5 x", "2024-05-01T12:00:00.500000Z", 100000, 0, 0, 0},
	{"2024-05-01T00:30:00+02:00 x", "2024-04-30T22:30:00.000000Z", SEC, 0, 1, 0},
	{"2024-05-01T12:00:00+25:00 x", "2024-05-01T12:00:00.000000Z", SEC, 0, 0, 0},

	/* seconds since 1970: with a fraction, of UTC */
	{"1714564800.123456 x", "2024-05-01T12:00:00.123456Z", 1, 0, 1, 0},
	{"1714564800.123 x", "2024-05-01T12:00:00.123000Z", MS, 0, 1, 0},
	{"[1714564800.123456] x", "2024-05-01T12:00:00.123456Z", 1, 0, 1, 0},
	{"1714564800 x", NULL, 0, 0, 0, 0},
	{"1714564800123 x", NULL, 0, 0, 0, 0},
	{"1714564800.123456x", NULL, 0, 0, 0, 0},
	{"1214564800.123456 x", NULL, 0, 0, 0, 0},
	{"171456480.123456 x", NULL, 0, 0, 0, 0},
	{"17145648001.123456 x", NULL, 0, 0, 0, 0},

	/* brackets: DeepSpeed, Megatron, Slurm, NCCL, Hydra, Ray, NeMo */
	{"[2024-05-01 12:00:00,123] [INFO] [f.py:12:fn] x", "2024-05-01T12:00:00.123000Z", MS, 0, 0,
		0},
	{" [2024-05-01 12:00:00.123456] iteration       12/  100 |", "2024-05-01T12:00:00.123456Z",
		1, 0, 0, 0},
	{"[2024-05-01T12:00:00.000] slurmctld: x", "2024-05-01T12:00:00.000000Z", MS, 0, 0, 0},
	{"[2025-05-01 12:00:00] gpu07:4121:4388 [3] x", "2025-05-01T12:00:00.000000Z", SEC, 0, 0,
		0},
	{"[2024-05-01 12:00:00,123][name][INFO] - x", "2024-05-01T12:00:00.123000Z", MS, 0, 0, 0},
	{"[2025-04-02 15:02:00,117 E 135782 135782] x", "2025-04-02T15:02:00.117000Z", MS, 0, 0, 0},
	{"(raylet) [2025-04-02 15:02:00,117 E 1 1] x", "2025-04-02T15:02:00.117000Z", MS, 0, 0, 0},
	{"[NeMo I 2024-05-01 12:00:00 file:12] x", "2024-05-01T12:00:00.000000Z", SEC, 0, 0, 0},
	{"[NeMo X 2024-05-01 12:00:00 file:12] x", NULL, 0, 0, 0, 0},
	{"[Jul 23 2024 07:53:55] fabric", "2024-07-23T07:53:55.000000Z", SEC, 0, 0, 0},
	{"[rank0] [2026-11-30 09:34:17] x", "2026-11-30T09:34:17.000000Z", SEC, 0, 0, 0},
	{"[NeMo W 2024-05-01 12:00:00 file:12 rank:3] x", "2024-05-01T12:00:00.000000Z", SEC, 0, 0,
		0},
	{"[05/01/24 12:00:00] INFO     x", "2024-05-01T12:00:00.000000Z", SEC, 0, 0, 0},
	{"[13/01/24 12:00:00] INFO     x", NULL, 0, 0, 0, 0},
	{"[05/01/24 12:00:00 PM] INFO     x", NULL, 0, 0, 0, 0},
	{"[05/01/24] x", NULL, 0, 0, 0, 0},
	{"[12345.678901] kernel", NULL, 0, 0, 0, 0},
	{"[    0.000000] kernel", NULL, 0, 0, 0, 0},
	{"[12345.678901][ T4121] kernel", NULL, 0, 0, 0, 0},
	{"3,1042,128812345678,-;NVRM: x", NULL, 0, 0, 0, 0},
	{"[09:41:09] INFO rich", NULL, 0, 0, 0, 0},
	{"[a bracket that is longer than thirty-two bytes] 2026-11-30 09:34:17", NULL, 0, 0, 0, 0},

	/* glog, torch._logging */
	{"E1130 09:34:21.448000 13799 file:1] x", "2000-11-30T09:34:21.448000Z", MS, 1, 0, 0},
	{"I0501 12:00:00.123456 4121 f.cc:12] x", "2000-05-01T12:00:00.123456Z", 1, 1, 0, 0},
	{"W20240501 12:00:00.123456 139876 f.cc:8] x", "2024-05-01T12:00:00.123456Z", 1, 0, 0, 0},
	{"V0512 12:34:56.123000 1234 torch/x.py:12] x", "2000-05-12T12:34:56.123000Z", MS, 1, 0, 0},
	{"F1130 10:41:09.771714      50 client.h:80] x", "2000-11-30T10:41:09.771714Z", 1, 1, 0, 0},
	{"E0229 10:41:09.771714 50 leap.h:80] x", "2000-02-29T10:41:09.771714Z", 1, 1, 0, 0},
	{"E1130 09:34:21 x", NULL, 0, 0, 0, 0},
	{"E1330 09:34:21.448000 1 x", NULL, 0, 0, 0, 0},
	{"X1130 09:34:21.448000 1 x", NULL, 0, 0, 0, 0},

	/* c10: no leading zero, a fraction of another clock */
	{"[E1130 09:34:13.345865895 socket.cpp:207] x", "2000-11-30T09:34:13.000000Z", SEC, 1, 0,
		1},
	{"[W501 12:00:00.123456789 f.cpp:12] x", "2000-05-01T12:00:00.000000Z", SEC, 1, 0, 1},
	{"[W231 12:00:00.123456789 f.cpp:12] x", NULL, 0, 0, 0, 0},
	{"[W1231 23:59:59.000000007 f.cpp:12] x", "2000-12-31T23:59:59.000000Z", SEC, 1, 0, 1},
	{"[W111 12:00:00.123456789 f.cpp:12] x", "2000-01-11T12:00:00.000000Z", SEC, 1, 0, 1},
	{"[W0501 12:00:00.123456789 f.cpp:12] x", "2000-05-01T12:00:00.000000Z", SEC, 1, 0, 1},
	{"[W501 12:00:00.123456 f.cpp:12] x", NULL, 0, 0, 0, 0},
	{"[E ProcessGroupNCCL.cpp:475] x", NULL, 0, 0, 0, 0},

	/* syslog, ctime */
	{"May  1 12:00:00 host kernel: x", "2000-05-01T12:00:00.000000Z", SEC, 1, 0, 0},
	{"Nov 21 09:53:15 node-2 kernel: x", "2000-11-21T09:53:15.000000Z", SEC, 1, 0, 0},
	{"May 32 12:00:00 host x", NULL, 0, 0, 0, 0},
	{"<30>May  1 12:00:00 gpu07 x", "2000-05-01T12:00:00.000000Z", SEC, 1, 0, 0},
	{"<131>1 2024-05-01T12:00:00.123456Z gpu07 x", "2024-05-01T12:00:00.123456Z", 1, 0, 1, 0},
	{"<1234>May  1 12:00:00 gpu07 x", NULL, 0, 0, 0, 0},
	{"<b>May  1 12:00:00 x", NULL, 0, 0, 0, 0},
	{"Feb 29 12:00:00 host x", "2000-02-29T12:00:00.000000Z", SEC, 1, 0, 0},
	{"Feb 30 12:00:00 host x", NULL, 0, 0, 0, 0},
	{"slurmstepd: error: *** STEP 7.0 ON gpu07 CANCELLED AT 2024-05-01T12:00:00 ***",
		"2024-05-01T12:00:00.000000Z", SEC, 0, 0, 0},
	{"slurmstepd: error: *** JOB 7 ON gpu07 CANCELLED AT 2024-05-01T12:00:00 DUE TO TIME LIMIT "
	 "***",
		"2024-05-01T12:00:00.000000Z", SEC, 0, 0, 0},
	{"slurmstepd: error: *** STEP 7.0 ON gpu07 FAILED (non-zero exit code or other failure "
	 "mode) ***",
		NULL, 0, 0, 0, 0},
	{"x CANCELLED AT 2024-05-01T12:00:00", NULL, 0, 0, 0, 0},
	{"Mai  1 12:00:00 host x", NULL, 0, 0, 0, 0},
	{"[Thu May  1 12:00:00 2024] x", "2024-05-01T12:00:00.000000Z", SEC, 0, 0, 0},
	{"Thu May 11 12:00:00 2024 x", "2024-05-11T12:00:00.000000Z", SEC, 0, 0, 0},
	{"Thu May 11 12:00:00 20245 x", NULL, 0, 0, 0, 0},
	{"Thursday", NULL, 0, 0, 0, 0},

	/* torchrun's table, vLLM, transformers */
	{"  time      : 2026-11-30_09:34:21", "2026-11-30T09:34:21.000000Z", SEC, 0, 0, 0},
	{"time limit", NULL, 0, 0, 0, 0},
	{"ERROR 07-31 10:21:45 [core.py:586] x", "2000-07-31T10:21:45.000000Z", SEC, 1, 0, 0},
	{"07-31 10:21:45 x", NULL, 0, 0, 0, 0},
	{"11/30/2026 10:14:51 - INFO - x", "2026-11-30T10:14:51.000000Z", SEC, 0, 0, 0},
	{"30/11/2026 10:14:51 - INFO - x", NULL, 0, 0, 0, 0},
	{"11/30/2026 10:14:51 x", NULL, 0, 0, 0, 0},

	/* dates that are none, and those that nobody uses */
	{"2023-02-29 12:00:00", NULL, 0, 0, 0, 0},
	{"2024-00-10 12:00:00", NULL, 0, 0, 0, 0},
	{"2024-01-00 12:00:00", NULL, 0, 0, 0, 0},
	{"2024-01-01 24:00:00", NULL, 0, 0, 0, 0},
	{"2024-01-01 23:59:60 leap", "2024-01-02T00:00:00.000000Z", SEC, 0, 0, 0},
	{"1970-01-01 00:00:07 x", "1970-01-01T00:00:07.000000Z", SEC, 0, 0, 0},
	{"2100-01-01 00:00:00 x", "2100-01-01T00:00:00.000000Z", SEC, 0, 0, 0},
	{"", NULL, 0, 0, 0, 0},
	{"[", NULL, 0, 0, 0, 0},
	{"                                                2026-05-19 10:05:00", NULL, 0, 0, 0, 0},
};

static bool parse(struct ff_str text, struct ff_claimed *ret)
{
	char *own = ff_xmalloc(text.n);
	if (text.n) {
		memcpy(own, text.p, text.n);
	}
	bool found = ff_stamp_parse((struct ff_str){own, text.n}, ret);
	free(own);
	return found;
}

START_TEST(test_stamp)
{
	struct ff_claimed c = FF_CLAIMED_NONE;
	bool found = parse(ff_str_z(rows[_i].text), &c);
	ck_assert_msg(found == (rows[_i].want != NULL), "'%s'", rows[_i].text);
	if (!found) {
		ck_assert_int_eq(c.us, FF_TIME_NONE);
		return;
	}
	struct ff_buf b = {0};
	ff_usec_render(&b, c.us);
	ck_assert_msg(!strcmp(b.p, rows[_i].want), "'%s': %s", rows[_i].text, b.p);
	ck_assert_uint_eq(c.grain, rows[_i].grain);
	ck_assert_int_eq(c.has_year, !rows[_i].no_year);
	ck_assert_int_eq(c.has_zone, rows[_i].zone);
	ck_assert_int_eq(c.mono_fraction, rows[_i].mono);
	ff_buf_finish(&b);
}
END_TEST

START_TEST(test_stamp_usable)
{
	struct ff_claimed c;
	ck_assert(parse(FF_STR("1970-01-01 00:00:07 x"), &c) && !ff_usec_usable(c.us));
	ck_assert(parse(FF_STR("2100-01-01 00:00:00 x"), &c) && !ff_usec_usable(c.us));
	ck_assert(parse(FF_STR("2099-12-31 23:59:59 x"), &c) && ff_usec_usable(c.us));
	ck_assert(parse(FF_STR("9999-12-31 23:59:59 x"), &c) && !ff_usec_usable(c.us));
	ck_assert(parse(FF_STR("0000-01-01 00:00:00 x"), &c) && !ff_usec_usable(c.us));
}
END_TEST

START_TEST(test_stamp_nul)
{
	struct ff_claimed c;
	ck_assert(!parse(FF_STR("\0002026-11-30 09:34:17"), &c));
	ck_assert(!parse(FF_STR("2026-11-30\00009:34:17"), &c));
	ck_assert(parse(FF_STR("2026-11-30 09:34:17\0x"), &c));
	ck_assert(!parse((struct ff_str){NULL, 0}, &c));
}
END_TEST

/* Every beginning of every row, damaged at random: no read outside, and dates that exist. */
START_TEST(test_stamp_damage)
{
	struct random r = random_init(5);
	for (int round = 0; round < 100000; round++) {
		size_t row = random_below(&r, sizeof rows / sizeof rows[0]);
		struct ff_str text = ff_str_z(rows[row].text);
		char own[128];
		size_t n = random_below(&r, (uint32_t)text.n + 1);
		memcpy(own, text.p, n);
		for (uint32_t k = random_below(&r, 3); n && k > 0; k--) {
			static const char likely[] = "0123456789:-., T[]ZEW";
			size_t at = random_below(&r, (uint32_t)n);
			own[at] = likely[random_below(&r, sizeof likely)];
		}
		struct ff_claimed c = FF_CLAIMED_NONE;
		bool found = parse((struct ff_str){own, n}, &c);
		ck_assert_msg(found == (c.us != FF_TIME_NONE), "seed %lu", r.seed);
		ck_assert_msg(!found || (c.grain >= 1 && c.grain <= SEC), "seed %lu", r.seed);
	}
}
END_TEST

#define LOOP(tc, fn, n) tcase_add_loop_test(tc, fn, 0, (int)(n))

int main(void)
{
	Suite *s = suite_create("stamp");
	TCase *tc = tcase_create("stamp");
	LOOP(tc, test_stamp, sizeof rows / sizeof rows[0]);
	tcase_add_test(tc, test_stamp_usable);
	tcase_add_test(tc, test_stamp_nul);
	tcase_add_test(tc, test_stamp_damage);
	suite_add_tcase(s, tc);
	SRunner *sr = srunner_create(s);
	srunner_run_all(sr, CK_ENV);
	int failed = srunner_ntests_failed(sr);
	srunner_free(sr);
	return failed ? 1 : 0;
}
