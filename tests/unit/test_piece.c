/* Parts that are one line, and lines that are several (core/line_piece.h). */
#include "core/line_piece.h"

#include "base/mem.h"

#include "random.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>

/* Each line that comes out as `offset-end+between text`, joined with |. */
static void on_line(void *ud, const struct ff_line *line)
{
	struct ff_buf *got = ud;
	ff_buf_addf(got, "%s%llu-%llu", got->len ? "|" : "", (unsigned long long)line->offset,
		(unsigned long long)line->end);
	if (line->between) {
		ff_buf_addf(got, "+%llu", (unsigned long long)line->between);
	}
	ff_buf_addf(got, "%s %.*s", line->cut ? "!" : "", FF_STR_ARG(line->text));
}

static void on_piece(void *ud, const struct ff_line *line, const struct ff_entry *entry)
{
	struct ff_entry own;
	ff_line_entry(line->text, &own);
	ck_assert(ff_str_eq(entry->text, own.text) && ff_tag_eq(entry->tag, own.tag));
	on_line(ud, line);
}

#define T "Traceback (most recent call last):"

static const struct {
	const char *line, *want;
} piece_rows[] = {
	{"", "0-1 "},
	{"plain [text] of [3] a list", "0-27 plain [text] of [3] a list"},

	/* torchrun --tee: the tag before whatever was read */
	{"[default0]:half[default1]:other", "0-15 [default0]:half|15-32 [default1]:other"},
	{"[default0]:Trace[default0]:back", "0-32 [default0]:Traceback"},
	{"[default0]:a[default0]:b[default1]:c[default1]:d[default0]:e",
		"0-24 [default0]:ab|24-48 [default1]:cd|48-61 [default0]:e"},
	{"4: [default0]:half[default1]:other", "0-18 4: [default0]:half|18-35 [default1]:other"},
	{"[default0]:half[rank3]: " T, "0-15 [default0]:half|15-59 [rank3]: " T},
	{"[default0]:half[default0]:" T, "0-15 [default0]:half|15-61 [default0]:" T},
	{"[trainer0]:x[default1]:y", "0-25 [trainer0]:x[default1]:y"},
	{"[default0]:see [default1] there", "0-32 [default0]:see [default1] there"},
	{"see [default0]:x[default1]:y", "0-29 see [default0]:x[default1]:y"},
	{"[default2]:[rank2]: x", "0-22 [default2]:[rank2]: x"},
	{"[default2]:[rank2]: " T, "0-55 [default2]:[rank2]: " T},

	/* Open MPI: before each chunk of 4 KiB */
	{"[1,3]<stderr>:Trace[1,3]<stderr>:back", "0-38 [1,3]<stderr>:Traceback"},
	{"[1,3]<stdout>:half[1,3]<stderr>:err", "0-18 [1,3]<stdout>:half|18-36 [1,3]<stderr>:err"},
	{"[1,3]<stdout>:half[1,2]<stdout>:x", "0-18 [1,3]<stdout>:half|18-34 [1,2]<stdout>:x"},
	{"[1,3]<stdout>: half[1,3]<stdout>: way", "0-38 [1,3]<stdout>: halfway"},
	{"[0]<stdout>: a[1]<stdout>: b", "0-14 [0]<stdout>: a|14-29 [1]<stdout>: b"},
	{"[1,3]<stdout>:x[2,3] y", "0-23 [1,3]<stdout>:x[2,3] y"},

	/* hydra: digits in brackets are anybody's, so only in front of a header */
	{"[0] half a line[1] " T, "0-15 [0] half a line|15-54 [1] " T},
	{"[0] half a line[0] " T, "0-15 [0] half a line|15-54 [0] " T},
	{"[0] x[1] = y[0] z", "0-18 [0] x[1] = y[0] z"},
	{"half a line[1] " T, "0-50 half a line[1] " T},

	/* torch's own tags behind half a line of anybody */
	{"loss 2.[rank1]: " T, "0-7 loss 2.|7-51 [rank1]: " T},
	{"[rank0]: loss 2.[rank0]: " T, "0-16 [rank0]: loss 2.|16-60 [rank0]: " T},
	{"loss 2.[rank1]:[E501 12:00:08.123456789 P.cpp:1] x",
		"0-7 loss 2.|7-51 [rank1]:[E501 12:00:08.123456789 P.cpp:1] x"},
	{"loss 2.[rank1]:[E P.cpp:1] x", "0-7 loss 2.|7-29 [rank1]:[E P.cpp:1] x"},
	{"a[rank1]: " T "[rank2]: " T, "0-1 a|1-44 [rank1]: " T "|44-88 [rank2]: " T},
	{"loss 2.[rank1]: step 5", "0-23 loss 2.[rank1]: step 5"},
	{"loss 2.[rank1]:[x]", "0-19 loss 2.[rank1]:[x]"},
	{"child said: [rank1]: " T, "0-56 child said: [rank1]: " T},
	{"child said '[rank1]: " T "'", "0-57 child said '[rank1]: " T "'"},
	{"[rank3]: " T, "0-44 [rank3]: " T},
	{"4: [rank4]: " T, "0-47 4: [rank4]: " T},
	{"[rank3]:[rank7]: " T, "0-52 [rank3]:[rank7]: " T},
};

static char *pieces_of(struct ff_str text)
{
	struct ff_buf got = {0}, buf = {0};
	char *own = ff_xmemdup(text.p, text.n);
	struct ff_line line = {
		.end = text.n + 1, .number = 1, .text = {own, text.n}, .stamp = FF_STAMP_NONE};
	ff_line_pieces(&line, &buf, on_piece, &got);
	ff_buf_finish(&buf);
	free(own);
	return ff_buf_take(&got);
}

START_TEST(test_pieces)
{
	char *got = pieces_of(ff_str_z(piece_rows[_i].line));
	ck_assert_str_eq(got, piece_rows[_i].want);
	free(got);
}
END_TEST

/* More than the most pieces of a line: the rest is text, and nothing is lost or read twice. */
START_TEST(test_pieces_many)
{
	static const char *const parts[] = {"[default0]:a", "[default1]:b", ("[rank2]: " T)};
	struct random r = random_init((uint64_t)_i);
	struct ff_buf b = {0};
	uint32_t n = 1 + random_below(&r, 300), kinds = 1 + random_below(&r, 3);
	for (uint32_t i = 0; i < n; i++) {
		ff_buf_addz(&b, parts[random_below(&r, kinds)]);
	}
	char *got = pieces_of(ff_buf_str(&b));
	unsigned long long from, end, before = 0;
	for (char *at = got; at; at = strchr(at, '|') ? strchr(at, '|') + 1 : NULL) {
		ck_assert_int_eq(sscanf(at, "%llu-%llu", &from, &end), 2);
		ck_assert_msg(from == before && end > from, "seed %lu: %s", r.seed, got);
		before = end;
	}
	ck_assert_uint_eq(before, b.len + 1);
	free(got);
	ff_buf_finish(&b);
}
END_TEST

/* ---- parts */

#define AT "2024-05-01T12:00:00.5Z " /* 23 bytes; each line below is 35 and more */

static const struct {
	const char *text, *want;
} part_rows[] = {
	{"x\ny\n", "0-2 x|2-4 y"},
	{AT "stderr F one\n" AT "stdout F two\n",
		"0-36 " AT "stderr F one|36-72 " AT "stdout F two"},
	{AT "stderr P fro\n" AT "stderr F nt \n", "0-72 " AT "stderr P front "},
	{AT "stderr P a\n" AT "stderr P b\n" AT "stderr F\n", "0-100 " AT "stderr P ab"},
	{AT "stderr P a\n" AT "stdout F x\n" AT "stderr F b\n",
		"34-68 " AT "stdout F x|0-102+34 " AT "stderr P ab"},
	{AT "stderr P a\n" AT "stdout P x\n" AT "stderr F b\n" AT "stdout F y\n",
		"0-102+34 " AT "stderr P ab|34-136+34 " AT "stdout P xy"},
	/* the end of the container */
	{AT "stderr P a\n" AT "stdout P b\n"
	    "z\n",
		"68-70 z|0-70+36 " AT "stderr P a|34-70+2 " AT "stdout P b"},
	/* no parts */
	{AT "stderr X a\n" AT "stderr F b\n", "0-34 " AT "stderr X a|34-68 " AT "stderr F b"},
	{AT "stdin P a\nb\n", "0-33 " AT "stdin P a|33-35 b"},
	{"2024-05-01 12:00:00.5Z stderr P a\nb\n",
		"0-34 2024-05-01 12:00:00.5Z stderr P a|34-36 b"},
	{AT "stderr Print a\nb\n", "0-38 " AT "stderr Print a|38-40 b"},
};

/* Cuts text into lines at LF and gives them to the parts. */
static void take_all(struct ff_parts *p, struct ff_str text, struct ff_buf *got)
{
	size_t from = 0;
	while (from < text.n) {
		size_t lf = (size_t)ff_str_chr(text, '\n', from);
		char *own = ff_xmemdup(text.p + from, lf - from);
		struct ff_line line = {.offset = from,
			.end = lf + 1,
			.number = 1,
			.text = {own, lf - from},
			.stamp = FF_STAMP_NONE};
		ff_parts_take(p, &line, on_line, got);
		free(own);
		from = lf + 1;
	}
}

START_TEST(test_parts)
{
	struct ff_parts p = {0};
	struct ff_buf got = {0};
	struct ff_str text = ff_str_z(part_rows[_i].text);
	take_all(&p, text, &got);
	ff_parts_end(&p, text.n, on_line, &got);
	ck_assert_str_eq(got.p, part_rows[_i].want);
	ck_assert_ptr_null(ff_parts_oldest(&p));
	ff_parts_finish(&p);
	ff_buf_finish(&got);
}
END_TEST

static size_t count_of(const struct ff_buf *b, const char *what)
{
	size_t n = 0;
	struct ff_str s = ff_buf_str(b);
	for (ptrdiff_t i = ff_str_find(s, ff_str_z(what), 0); i >= 0;
		i = ff_str_find(s, ff_str_z(what), (size_t)i + 1)) {
		n++;
	}
	return n;
}

/* What waits is bounded in bytes of its own and in distance. */
START_TEST(test_parts_caps)
{
	struct ff_parts p = {0};
	struct ff_buf got = {0}, text = {0};
	for (unsigned i = 0; i < 200; i++) {
		ff_buf_addf(&text, AT "stderr P %01000u\n", i);
		ck_assert_uint_le(p.fd[1].text.len, FF_LINE_MAX);
	}
	take_all(&p, ff_buf_str(&text), &got);
	/* a line has 64 of them, the last line is open */
	ck_assert_uint_eq(count_of(&got, "! " AT "stderr P "), 200 * 1000 / FF_LINE_MAX);
	ck_assert_uint_le(p.fd[1].text.len, FF_LINE_MAX);
	ff_parts_end(&p, text.len, on_line, &got);
	ff_buf_clear(&text);
	ff_buf_clear(&got);
	ff_buf_addz(&text, AT "stderr P front\n");
	while (text.len + 40 < FF_PART_SPAN) {
		ff_buf_addz(&text, AT "stdout F filler\n");
	}
	take_all(&p, ff_buf_str(&text), &got);
	ck_assert_ptr_nonnull(ff_parts_oldest(&p));
	ck_assert_uint_eq(count_of(&got, "front"), 0);
	struct ff_line next = {
		.offset = FF_PART_SPAN + 1, .end = FF_PART_SPAN + 3, .text = FF_STR("x")};
	ff_parts_take(&p, &next, on_line, &got);
	ck_assert_ptr_null(ff_parts_oldest(&p));
	ck_assert_uint_eq(count_of(&got, "stderr P front|"), 1);
	ff_parts_finish(&p);
	ff_buf_finish(&got);
	ff_buf_finish(&text);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("piece");
	TCase *tc = tcase_create("piece");
	tcase_add_loop_test(tc, test_pieces, 0, (int)(sizeof piece_rows / sizeof piece_rows[0]));
	tcase_add_loop_test(tc, test_pieces_many, 0, 200);
	tcase_add_loop_test(tc, test_parts, 0, (int)(sizeof part_rows / sizeof part_rows[0]));
	tcase_add_test(tc, test_parts_caps);
	suite_add_tcase(s, tc);
	SRunner *sr = srunner_create(s);
	srunner_run_all(sr, CK_ENV);
	int failed = srunner_ntests_failed(sr);
	srunner_free(sr);
	return failed ? 1 : 0;
}
