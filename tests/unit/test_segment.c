#include "segment.h"

#include "random.h"

#include <check.h>

#include <stdlib.h>

#define PLAIN ((struct ff_line_tags){FF_TAG_INIT, FF_UNKNOWN})

static void put(struct segment_writer *w, uint32_t stream, uint64_t offset, const char *text,
	struct ff_stamp stamp, struct ff_line_tags tags)
{
	struct ff_chunk c = {offset, text, strlen(text), stamp, tags};
	segment_writer_put(w, stream, &c);
}

START_TEST(test_form)
{
	struct segment_writer w = {0};
	struct ff_stamp arrived = {1767225600000001, FF_TIME_NONE};
	put(&w, 7, 100, "one\ntwo", arrived, PLAIN);
	put(&w, 7, 107, " goes on\n", arrived, PLAIN);
	put(&w, 7, 116, "\n", FF_STAMP_NONE, PLAIN);
	put(&w, 7, 117, "x\n", (struct ff_stamp){FF_TIME_NONE, 5},
		(struct ff_line_tags){{FF_TAG_GLOBAL, 3}, 1});
	ck_assert_str_eq(w.buf.p,
		"@0000004d 7 100 a\n"
		"1767225600000001 0. one\n1767225600000001 0- two\n1767225600000001 0.  goes on\n"
		"@00000006 7 116 -\n0 0. \n"
		"@00000007 7 117 c 1 3 1\n5 0. x\n");
	ck_assert_uint_eq(w.first, 100);
	segment_writer_finish(&w);
	segment_writer_finish(&w);
	ck_assert_ptr_null(w.buf.p);
}
END_TEST

START_TEST(test_frames_part)
{
	struct segment_writer w = {0};
	struct ff_stamp a = {10, FF_TIME_NONE};
	put(&w, 1, 0, "a\n", a, PLAIN);
	put(&w, 1, 2, "", a, PLAIN);    /* nothing */
	put(&w, 1, 2, "b\n", a, PLAIN); /* goes on */
	put(&w, 2, 4, "c\n", a, PLAIN); /* another stream */
	put(&w, 2, 9, "d\n", a, PLAIN); /* a jump */
	struct ff_str in = ff_buf_str(&w.buf);
	struct segment_frame f;
	struct ff_str lines;
	uint64_t offsets[] = {0, 4, 9};
	for (size_t i = 0; i < 3; i++) {
		ck_assert(segment_take_frame(&in, &f, &lines));
		ck_assert_uint_eq(f.offset, offsets[i]);
		ck_assert_uint_eq(f.stream, i ? 2 : 1);
	}
	ck_assert_uint_eq(in.n, 0);
	ck_assert(!segment_take_frame(&in, &f, &lines));
	segment_writer_finish(&w);
}
END_TEST

/* Any bytes, in any pieces, come back as they were. */
START_TEST(test_round_trip)
{
	struct random r = random_init((uint64_t)_i);
	struct segment_writer w = {0};
	struct ff_buf text = {0}, got = {0};
	for (int i = 0; i < 200; i++) {
		char piece[64];
		size_t n = random_below(&r, sizeof piece);
		for (size_t k = 0; k < n; k++) {
			piece[k] = (char)(random_below(&r, 5) ? random_below(&r, 256) : '\n');
		}
		struct ff_stamp stamp = FF_STAMP_NONE;
		stamp.arrived = random_below(&r, 3) ? (ff_usec)(random_below(&r, 3) + 1) * 1000
						    : FF_TIME_NONE;
		struct ff_chunk c = {text.len, piece, n, stamp, PLAIN};
		segment_writer_put(&w, 3, &c);
		ff_buf_add(&text, piece, n);
	}
	struct ff_str in = ff_buf_str(&w.buf), lines;
	struct segment_frame f;
	while (segment_take_frame(&in, &f, &lines)) {
		ck_assert_uint_eq(f.offset, got.len);
		struct segment_line line;
		while (segment_take_line(&lines, &line)) {
			ck_assert_int_eq(f.clock,
				line.us == FF_TIME_NONE ? FF_CLOCK_NONE : FF_CLOCK_ARRIVED);
			ff_buf_adds(&got, line.text);
			if (line.whole) {
				ff_buf_addc(&got, '\n');
			}
		}
		ck_assert_uint_eq(lines.n, 0);
	}
	ck_assert_uint_eq(in.n, 0);
	ck_assert_msg(ff_str_eq(ff_buf_str(&got), ff_buf_str(&text)), "seed %llu",
		(unsigned long long)r.seed);
	ff_buf_finish(&text);
	ff_buf_finish(&got);
	segment_writer_finish(&w);
}
END_TEST

static const char *const bad_frames[] = {
	"",
	"@",
	"@00000000",
	"@00000000 1 0 a",
	"@0000000g 1 0 a\n",
	"#00000000 1 0 a\n",
	"@00000000 0 0 a\n",
	"@00000000 4294967296 0 a\n",
	"@00000000 1 -1 a\n",
	"@00000000 1 0 b\n",
	"@00000000 1 0 a 1\n",
	"@00000000 1 0 a 9 0 0\n",
	"@00000000 1 0 a 1 0 0 0\n",
	"@00000006 1 0 a\n5 0. ",
	"@ffffffff 1 0 a\n5 0. x\n",
	"@00000000  1 0 a\n",
};

START_TEST(test_bad_frame)
{
	struct ff_str in = ff_str_z(bad_frames[_i]), lines = FF_STR("kept");
	struct segment_frame f = {.stream = 77};
	ck_assert(!segment_take_frame(&in, &f, &lines));
	ck_assert_uint_eq(in.n, strlen(bad_frames[_i]));
	ck_assert_uint_eq(f.stream, 77);
	ck_assert_uint_eq(lines.n, 4);
}
END_TEST

static const char *const bad_lines[] = {"", "x\n", "5 0. x", " 0. x\n", "5 1. x\n", "5 0? x\n",
	"5 0.x\n", "5 0.\n", "-5 0. x\n", "5\n"};

START_TEST(test_bad_line)
{
	struct ff_str in = ff_str_z(bad_lines[_i]);
	struct segment_line line;
	ck_assert(!segment_take_line(&in, &line));
}
END_TEST

START_TEST(test_path)
{
	struct ff_buf b = {0};
	segment_path("/state", 12, 7, &b);
	ck_assert_str_eq(b.p, "/state/segments/12/0000000007.seg");
	ff_buf_finish(&b);
}
END_TEST

#define LOOP(tc, fn, n) tcase_add_loop_test(tc, fn, 0, (int)(n))

START_TEST(test_find)
{
	struct {
		uint32_t number;
		const char *name;
	} v[] = {{1, "a"}, {4, "b"}, {4000000000u, "c"}};
	for (size_t n = 0; n <= 3; n++) {
		for (size_t i = 0; i < 3; i++) {
			void *got = segment_find(v, n, sizeof *v, v[i].number);
			ck_assert_ptr_eq(got, i < n ? &v[i] : NULL);
		}
		ck_assert_ptr_null(segment_find(v, n, sizeof *v, 3));
	}
	ck_assert_ptr_null(segment_find(NULL, 0, sizeof *v, 1));
}
END_TEST

START_TEST(test_is_before)
{
	const struct segment_place v[] = {{1, 0}, {1, 9}, {2, 0}, {2, 5000000000u}, {10, 1}};
	for (size_t i = 0; i < 5; i++) {
		for (size_t k = 0; k < 5; k++) {
			ck_assert_int_eq(segment_is_before(v[i], v[k]), i < k);
		}
	}
}
END_TEST

int main(void)
{
	Suite *s = suite_create("segment");
	TCase *tc = tcase_create("segment");
	tcase_add_test(tc, test_form);
	tcase_add_test(tc, test_frames_part);
	LOOP(tc, test_round_trip, 10);
	LOOP(tc, test_bad_frame, sizeof bad_frames / sizeof bad_frames[0]);
	LOOP(tc, test_bad_line, sizeof bad_lines / sizeof bad_lines[0]);
	tcase_add_test(tc, test_path);
	tcase_add_test(tc, test_find);
	tcase_add_test(tc, test_is_before);
	suite_add_tcase(s, tc);
	SRunner *sr = srunner_create(s);
	srunner_run_all(sr, CK_ENV);
	int failed = srunner_ntests_failed(sr);
	srunner_free(sr);
	return failed ? 1 : 0;
}
