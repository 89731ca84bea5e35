/* Secrets by a user's own patterns: what is masked, wherever the text is cut. */
#include "base/buf.h"
#include "base/mask_rules.h"
#include "base/mem.h"

#include <check.h>
#include <stdlib.h>

#define MOST 3

static struct ff_mask_rules *rules_of(const char *const *patterns)
{
	struct ff_mask_rules *r;
	struct ff_err err = {0};
	size_t n = 0;
	while (n < MOST && patterns[n]) {
		n++;
	}
	ck_assert_msg(ff_mask_rules_create((char *const *)patterns, n, &r, &err) == 0, "%s",
		err.text);
	return r;
}

#define TOKEN "hf_abcdefghijklmnopqrstuvwxyzABCDEFGH"

static const struct {
	const char *patterns[MOST + 1];
	const char *in, *out; /* of a hash its four digits are HASH */
	size_t found;
} rows[] = {
	{{"employee \\d+"}, "ask employee 1234567890 now", "ask <secret:own:HASH>** now", 1},
	{{"employee (?<secret>\\d+)"}, "employee 1234567890", "employee <secret:ow", 1},
	{{"employee (?<secret>\\d+)|badge \\d+"}, "badge 1234567890 employee 2",
		"<secret:own:HASH employee <", 2},
	{{"\\d{4}-\\d{4}"}, "1111-2222 3333-4444", "<secret:o <secret:o", 2},
	{{"^id \\w+$"}, "id abcdefghijklmnop\nx id a\nid b c\n",
		"<secret:own:HASH>**\nx id a\nid b c\n", 1},
	{{"^id \\w+$"}, "step\rid abcdefghijklmnop\r\n", "step\r<secret:own:HASH>**\r\n", 1},
	{{"a.b"}, "a\nb a\rb", "a\nb a\rb", 0}, /* no pattern sees two lines */
	{{"(?<=pin )\\d+"}, "pin 12345", "pin <secr", 1},
	{{"pin \\K\\d+"}, "pin 12345", "pin <secr", 1},
	/* two that overlap are one */
	{{"abcdefghij", "fghijklmnopqrstu"}, "(abcdefghijklmnopqrstu)",
		"(<secret:own:HASH>****)", 1},
	/* the built-in kinds see the text as it came, and so does a pattern */
	{{"hf_"}, "login " TOKEN, "login <secret:hf:HASH>*********************", 1},
	{{"login \\w{6}"}, "login " TOKEN, "<secre<secret:hf:HASH>*********************", 2},
	{{"user=.*"}, "user=ada key " TOKEN " and more of it",
		"<secret:own:H<secret:hf:HASH>*********************<secret:own:HAS", 3},
	/* what is masked stays */
	{{"\\S{16,}"}, "<secret:own:1234>*** <secret:hf:1234>***",
		"<secret:own:HASH>*** <secret:hf:HASH>***", 0},
	{{"[a-z]{6}"}, "<secret:own:1234>***", "<secret:own:HASH>***", 0},
	{{"\\*+", "[0-9a-f]+"}, "<secret:url:1234>***", "<secret:url:HASH>***", 0},
};

/* The digits of hashes are HASH, as far as they are there. */
static void hide_hash(char *text, size_t n)
{
	for (size_t i = 0; i + 8 < n; i++) {
		if (strncmp(text + i, "<secret:", 8) != 0) {
			continue;
		}
		size_t k = i + 8;
		while (k < n && text[k] >= 'a' && text[k] <= 'z') {
			k++;
		}
		for (size_t j = 0; text[k] == ':' && j < 4 && k + 1 + j < n &&
			text[k + 1 + j] != '<' && text[k + 1 + j] != ' '; j++) {
			text[k + 1 + j] = "HASH"[j];
		}
	}
}

START_TEST(masks)
{
	struct ff_mask_rules *r = rules_of(rows[_i].patterns);
	char *text = ff_xstrdup(rows[_i].in);
	size_t n = strlen(text);
	unsigned limited = 0;
	size_t found = ff_mask_rules_text(r, text, n, &limited);
	ck_assert_uint_eq(strlen(text), n);
	char *again = ff_xstrdup(text), *line = ff_xstrdup(rows[_i].in);
	(void)ff_mask_rules_text(r, again, n, &limited);
	ck_assert_str_eq(again, text);
	if (!strchr(line, '\n')) {
		(void)ff_mask_rules_line(r, &(struct ff_mask_lines){0}, line, n);
		ck_assert_str_eq(line, text);
	}
	hide_hash(text, n);
	ck_assert_str_eq(text, rows[_i].out);
	ck_assert_uint_eq(found, rows[_i].found);
	ck_assert_uint_eq(limited, 0);
	free(text);
	free(again);
	free(line);
	ff_mask_rules_destroy(r);
}
END_TEST

/* What an intake does with pieces: the open end waits for the next one. */
static void in_pieces(const struct ff_mask_rules *r, struct ff_str s, size_t first, size_t second,
	struct ff_buf *out)
{
	size_t cuts[] = {first, second, s.n};
	struct ff_buf held = {0};
	for (size_t i = 0, at = 0; i < 3; at = cuts[i++]) {
		ff_buf_add(&held, s.p + at, cuts[i] - at);
		size_t open = i + 1 < 3 ? ff_mask_rules_open(r, held.p, held.len) : 0;
		ck_assert_uint_le(open, FF_MASK_OPEN_MAX);
		size_t n = held.len - open;
		(void)ff_mask_rules_text(r, held.p, n, NULL);
		ff_buf_add(out, held.p, n);
		ff_buf_consume(&held, n);
	}
	ff_buf_finish(&held);
}

static void check_pieces(
	const struct ff_mask_rules *r, struct ff_str raw, size_t step, size_t next)
{
	struct ff_buf want = {0};
	ff_buf_adds(&want, raw);
	(void)ff_mask_rules_text(r, want.p, want.len, NULL);
	for (size_t a = 0; a <= raw.n; a += step) {
		struct ff_buf got = {0};
		in_pieces(r, raw, a, a + next < raw.n ? a + next : raw.n, &got);
		ck_assert_msg(ff_str_eq(ff_buf_str(&got), ff_buf_str(&want)),
			"cut at %zu and %zu behind: %.*s", a, next, (int)got.len, got.p);
		ff_buf_finish(&got);
	}
	ff_buf_finish(&want);
}

START_TEST(every_cut_gives_the_same)
{
	struct ff_mask_rules *r = rules_of(rows[_i].patterns);
	struct ff_buf text = {0};
	ff_buf_addf(&text, "before\n%s\nafter password=hunter2hunter2\n", rows[_i].in);
	for (size_t next = 0; next < 40; next += next < 3 ? 1 : 7) {
		check_pieces(r, ff_buf_str(&text), 1, next);
	}
	ff_buf_finish(&text);
	ff_mask_rules_destroy(r);
}
END_TEST

/* A line that is longer than what may be held back, with secrets of both sorts all over it. */
START_TEST(a_long_line_is_cut_between_secrets)
{
	static const char *const patterns[MOST + 1] = {"employee \\d+", "\\bk[0-9]{30}k\\b"};
	struct ff_mask_rules *r = rules_of(patterns);
	struct ff_buf text = {0};
	ff_buf_addz(&text, "first\n");
	while (text.len < 5 * FF_MASK_OPEN_MAX) {
		ff_buf_addz(
			&text, ". employee 123456 and " TOKEN " k012345678901234567890123456789k");
	}
	ff_buf_addz(&text, ".\nlast\n");
	check_pieces(r, ff_buf_str(&text), 149, 61);
	check_pieces(r, ff_buf_str(&text), 149, 20001);
	(void)ff_mask_rules_text(r, text.p, text.len, NULL);
	ck_assert(!memmem(text.p, text.len, "123456", 6) && !memmem(text.p, text.len, "hf_", 3));
	ff_buf_finish(&text);
	ff_mask_rules_destroy(r);
}
END_TEST

static const struct {
	const char *pattern, *text;
	bool front;
	const char *cut;
} front_rows[] = {
	{"employee \\d+", "ask emplo", true, "ask *****"},
	{"employee \\d+", "employee 12", true, "***********"},
	{"employee \\d+", "employee q", false, "employee q"},
	{"employee \\d+", "employee\nq r", false, "employee\nq r"},
	{"^id \\d+", "an i", false, "an i"},
	{"\\d{4}x", "7 1234", true, "7 ****"},
	{"\\bid \\d+", "x and", false, "x and"},
	{"pin \\K\\d+", "pin ", true, "****"},
	{"(?<=pin )\\d+", "pin ", true, "pin*"}, /* what it looks back at would be gone */
};

START_TEST(fronts)
{
	const char *patterns[MOST + 1] = {front_rows[_i].pattern};
	struct ff_mask_rules *r = rules_of(patterns);
	char *text = ff_xstrdup(front_rows[_i].text);
	ck_assert(ff_mask_rules_is_front(r, text, strlen(text)) == front_rows[_i].front);
	ff_mask_rules_cut(r, text, strlen(text));
	ck_assert_str_eq(text, front_rows[_i].cut);
	free(text);
	ff_mask_rules_destroy(r);
}
END_TEST

static const struct {
	const char *pattern, *text;
} bad_rows[] = {
	{"token (\\d+", "pattern \"token (\\d+\": missing closing parenthesis at byte 10"},
	{"x*", "pattern \"x*\": may match nothing at all, let it ask for a byte or more"},
	{"a|", "pattern \"a|\": may match nothing at all, let it ask for a byte or more"},
	{"(*UTF)x", "pattern \"(*UTF)x\": using UTF is disabled by the application at byte 6"},
};

START_TEST(bad_patterns)
{
	struct ff_mask_rules *r;
	struct ff_err err = {0};
	char *patterns[] = {(char *)"good", (char *)bad_rows[_i].pattern};
	ck_assert_int_eq(ff_mask_rules_create(patterns, 2, &r, &err), FF_EREGEX);
	ck_assert_ptr_null(r);
	ck_assert_str_eq(err.text, bad_rows[_i].text);
}
END_TEST

START_TEST(many_patterns)
{
	struct ff_mask_rules *r;
	struct ff_err err = {0};
	char *patterns[100];
	for (size_t i = 0; i < 100; i++) {
		patterns[i] = (char *)"x";
	}
	ck_assert_int_eq(ff_mask_rules_create(patterns, 100, &r, &err), FF_ELIMIT);
	ck_assert_int_eq(ff_mask_rules_create(patterns, 0, &r, &err), 0);
	ck_assert_ptr_null(r);
	char text[] = "x " TOKEN;
	ck_assert_uint_eq(ff_mask_rules_text(r, text, strlen(text), NULL), 1);
	ck_assert_uint_eq(ff_mask_rules_open(r, "x y", 3), ff_mask_open("x y", 3));
}
END_TEST

/* What can't be looked at isn't shown: the rest of the line, and no other one. */
START_TEST(the_match_limit)
{
	static const char *const patterns[MOST + 1] = {"(\\w+\\w+)+!"};
	struct ff_mask_rules *r = rules_of(patterns);
	struct ff_buf text = {0};
	unsigned limited = 0;
	ff_buf_addz(&text, "good\n");
	for (size_t i = 0; i < 5000; i++) {
		ff_buf_addc(&text, 'a');
	}
	ff_buf_addz(&text, " !\nlast\n");
	(void)ff_mask_rules_text(r, text.p, text.len, &limited);
	ck_assert_uint_eq(limited, 1);
	ck_assert(ff_str_starts(ff_buf_str(&text), FF_STR("good\n<secret:own:")));
	ck_assert(ff_str_ends(ff_buf_str(&text), FF_STR("*****\nlast\n")));
	ck_assert(!memmem(text.p, text.len, "aa", 2));
	ff_buf_finish(&text);
	ff_mask_rules_destroy(r);
}
END_TEST

#define LOOP(tc, fn, rows) tcase_add_loop_test(tc, fn, 0, (int)(sizeof rows / sizeof rows[0]))

int main(void)
{
	Suite *s = suite_create("mask_rules");
	TCase *tc = tcase_create("mask_rules");
	LOOP(tc, masks, rows);
	LOOP(tc, every_cut_gives_the_same, rows);
	tcase_add_test(tc, a_long_line_is_cut_between_secrets);
	LOOP(tc, fronts, front_rows);
	LOOP(tc, bad_patterns, bad_rows);
	tcase_add_test(tc, many_patterns);
	tcase_add_test(tc, the_match_limit);
	suite_add_tcase(s, tc);
	SRunner *sr = srunner_create(s);
	srunner_run_all(sr, CK_ENV);
	int failed = srunner_ntests_failed(sr);
	srunner_free(sr);
	return failed ? 1 : 0;
}
