#include "core/scan.h"

#include "base/arr.h"
#include "base/buf.h"

#include "random.h"

#include <check.h>

struct marks {
	struct ff_mark *list;
	size_t n, cap;
};

static void on_mark(void *ud, struct ff_mark mark)
{
	struct marks *m = ud;
	*FF_ARR_ADD(m->list, m->n, m->cap) = mark;
}

struct word {
	struct ff_str text;
	uint32_t id;
};

static int by_end_then_id(const void *x, const void *y)
{
	const struct ff_mark *a = x, *b = y;
	if (a->end != b->end) {
		return a->end < b->end ? -1 : 1;
	}
	return (a->id > b->id) - (a->id < b->id);
}

/* Each literal looked for at each place. */
static struct marks naive(const struct word *words, size_t nwords, struct ff_str in)
{
	struct marks all = {0}, ret = {0};
	for (size_t i = 0; i < nwords; i++) {
		ptrdiff_t at = ff_str_find(in, words[i].text, 0);
		for (; at >= 0; at = ff_str_find(in, words[i].text, (size_t)at + 1)) {
			uint32_t end = (uint32_t)((size_t)at + words[i].text.n);
			*FF_ARR_ADD(all.list, all.n, all.cap) = (struct ff_mark){end, words[i].id};
		}
	}
	if (all.n) {
		qsort(all.list, all.n, sizeof *all.list, by_end_then_id);
	}
	for (size_t i = 0; i < all.n; i++) {
		if (!i || by_end_then_id(&all.list[i], &all.list[i - 1])) {
			*FF_ARR_ADD(ret.list, ret.n, ret.cap) = all.list[i];
		}
	}
	free(all.list);
	return ret;
}

static void check_scan(const struct word *words, size_t nwords, struct ff_str in, uint64_t seed)
{
	struct ff_scan *s = ff_scan_create();
	for (size_t i = 0; i < nwords; i++) {
		ff_scan_add(s, words[i].text, words[i].id);
	}
	ff_scan_seal(s);
	struct marks want = naive(words, nwords, in), got = {0};
	ff_scan_run(s, in.p, in.n, on_mark, &got);
	ck_assert_msg(got.n == want.n, "%zu marks, want %zu; seed %lu", got.n, want.n, seed);
	for (size_t i = 0; i < got.n; i++) {
		ck_assert_msg(!by_end_then_id(&got.list[i], &want.list[i]),
			"mark %zu: %u at %u, want %u at %u; seed %lu", i, got.list[i].id,
			got.list[i].end, want.list[i].id, want.list[i].end, seed);
	}
	free(want.list);
	free(got.list);
	ff_scan_destroy(s);
}

START_TEST(test_scan_none)
{
	check_scan(NULL, 0, FF_STR("anything\0 at all"), 0);
	check_scan(NULL, 0, FF_STR(""), 0);
	ff_scan_destroy(NULL);
	ff_scan_destroy(ff_scan_create());
}
END_TEST

static const struct word some[] = {
	{FF_STR("he"), 4}, {FF_STR("she"), 3}, {FF_STR("his"), 2}, {FF_STR("hers"), 1},
	{FF_STR("he"), 0}, {FF_STR("he"), 4}, {FF_STR("\0\xff"), 7}, {FF_STR("e"), 9},
	{FF_STR("s"), 9}, {FF_STR("rs"), 9},
};

static const struct ff_str inputs[] = {
	FF_STR(""), FF_STR("h"), FF_STR("ushers"), FF_STR("hhhehehersshe"),
	FF_STR("\0\0\xff\0\xff"), FF_STR("sh\ne\nhe\r\nhers"), FF_STR("HE"),
};

START_TEST(test_scan_some)
{
	check_scan(some, sizeof some / sizeof some[0], inputs[_i], 0);
}
END_TEST

START_TEST(test_scan_longest)
{
	char text[600];
	memset(text, 'a', sizeof text);
	struct word words[] = {{{text, 255}, 1}, {{text, 254}, 2}, {{text, 1}, 3}};
	check_scan(words, 3, (struct ff_str){text, sizeof text}, 0);
}
END_TEST

START_TEST(test_scan_every_byte)
{
	char text[256];
	struct word words[255];
	size_t n = 0;
	for (int c = 0; c < 256; c++) {
		text[c] = (char)c;
		if (c != '\n') {
			words[n] = (struct word){{text + c, 1}, (uint32_t)c};
			n++;
		}
	}
	check_scan(words, n, (struct ff_str){text, 256}, 0);
}
END_TEST

/* A pass over many lines gives the marks of a pass over each. */
static void check_lines(const struct word *words, size_t nwords, struct ff_str in, uint64_t seed)
{
	struct ff_scan *s = ff_scan_create();
	for (size_t i = 0; i < nwords; i++) {
		ff_scan_add(s, words[i].text, words[i].id);
	}
	ff_scan_seal(s);
	struct marks whole = {0}, lines = {0};
	ff_scan_run(s, in.p, in.n, on_mark, &whole);
	for (size_t from = 0; from <= in.n;) {
		ptrdiff_t lf = ff_str_chr(in, '\n', from);
		size_t to = lf < 0 ? in.n : (size_t)lf;
		size_t before = lines.n;
		ff_scan_run(s, in.p + from, to - from, on_mark, &lines);
		for (size_t i = before; i < lines.n; i++) {
			lines.list[i].end += (uint32_t)from;
		}
		from = to + 1;
	}
	ck_assert_msg(whole.n == lines.n &&
			(!whole.n || !memcmp(whole.list, lines.list, whole.n * sizeof *whole.list)),
		"seed %lu", seed);
	free(whole.list);
	free(lines.list);
	ff_scan_destroy(s);
}

START_TEST(test_scan_random)
{
	struct random r = random_init((uint64_t)_i);
	static const char *const alphabets[] = {"ab", "abc\n", "abcdefgh\n", "\x01\xff\x80 \n"};
	const char *alphabet = alphabets[_i % 4];
	uint32_t letters = (uint32_t)strlen(alphabet);
	char text[4000], pool[2000];
	for (size_t i = 0; i < sizeof text; i++) {
		text[i] = alphabet[random_below(&r, letters)];
	}
	struct word words[60] = {{{NULL, 0}, 0}};
	size_t n = random_below(&r, 60), used = 0;
	for (size_t i = 0; i < n; i++) {
		size_t len = 1 + random_below(&r, _i % 3 ? 5 : 30);
		words[i] = (struct word){{pool + used, len}, random_below(&r, 40)};
		for (size_t k = 0; k < len; k++) {
			char c = alphabet[random_below(&r, letters)];
			pool[used++] = c == '\n' ? alphabet[0] : c;
		}
	}
	struct ff_str in = {text, random_below(&r, sizeof text + 1)};
	check_scan(words, n, in, r.seed);
	check_lines(words, n, in, r.seed);
}
END_TEST

/* A text of many blocks, which are cut into parts that are walked side by side: lines of every
 * length, one longer than a block, rows of finds longer than what is kept of a part. */
START_TEST(test_scan_blocks)
{
	struct random r = random_init((uint64_t)_i);
	struct ff_buf text = {0};
	static const struct word words[] = {
		{{"ab", 2}, 1}, {{"abc", 3}, 2}, {{"x", 1}, 3}, {{"cabab", 5}, 4}};
	while (text.len < 150000) {
		bool dense = !random_below(&r, 50), lone = !random_below(&r, 400);
		size_t len = random_below(&r, lone ? 40000 : dense ? 3000 : 200);
		for (size_t i = 0; i < len; i++) {
			ff_buf_addc(&text, dense ? 'x' : "abc  defg"[random_below(&r, 9)]);
		}
		ff_buf_addc(&text, '\n');
	}
	text.len -= random_below(&r, 3);
	check_lines(words, sizeof words / sizeof words[0], ff_buf_str(&text), r.seed);
	ff_buf_finish(&text);
}
END_TEST

#define LOOP(tc, fn, n) tcase_add_loop_test(tc, fn, 0, (int)(n))

int main(void)
{
	Suite *s = suite_create("scan");
	TCase *tc = tcase_create("scan");
	tcase_add_test(tc, test_scan_none);
	LOOP(tc, test_scan_some, sizeof inputs / sizeof inputs[0]);
	tcase_add_test(tc, test_scan_longest);
	tcase_add_test(tc, test_scan_every_byte);
	LOOP(tc, test_scan_random, 200);
	LOOP(tc, test_scan_blocks, 8);
	tcase_set_timeout(tc, 60);
	suite_add_tcase(s, tc);
	SRunner *sr = srunner_create(s);
	srunner_run_all(sr, CK_ENV);
	int failed = srunner_ntests_failed(sr);
	srunner_free(sr);
	return failed ? 1 : 0;
}
