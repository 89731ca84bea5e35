#include "shell/option.h"

#include <check.h>

#include <stdlib.h>

#define N(table) (sizeof(table) / sizeof(table)[0])

struct values {
	bool json, verbose;
	char *job;
	struct ff_option_list listen;
	int64_t world, size, span;
};

#define OPTIONS 7

static void fill(struct ff_option *o, struct values *v)
{
	const struct ff_option options[OPTIONS] = {
		{"json", 'j', FF_OPTION_FLAG, &v->json, NULL, "print JSON", 0, 0},
		{"verbose", 'v', FF_OPTION_FLAG, &v->verbose, NULL, NULL, 0, 0},
		{"job", 0, FF_OPTION_TEXT, &v->job, "ID", "name of the job", 1, 8},
		{"listen", 'l', FF_OPTION_LIST, &v->listen, "ADDR", "listen here too", 1, 0},
		{"world", 'w', FF_OPTION_INT, &v->world, "N",
			"number of ranks of the job, which is a sentence that is longer than one "
			"line of the "
			"help can be",
			1, 131072},
		{"size", 0, FF_OPTION_SIZE, &v->size, "BYTES", "a size", 0, 1 << 30},
		{"span", 0, FF_OPTION_SPAN, &v->span, "SPAN", "a span", 0, 86400000000},
	};
	memcpy(o, options, sizeof options);
}

static int split(char *line, char **argv)
{
	int n = 0;
	for (char *p = strtok(line, " "); p && n < 15; p = strtok(NULL, " ")) {
		argv[n++] = p;
	}
	argv[n] = NULL;
	return n;
}

/* What the values are after the arguments, and what is left. */
static const struct {
	const char *args;
	const char *shown; /* ff_option_print without what is unset; NULL: refused */
	const char *rest;
} rows[] = {
	{"x", "json = no\nverbose = no\nworld = -1\nsize = 0B\nspan = 0us\n", ""},
	{"x a b", "json = no\nverbose = no\nworld = -1\nsize = 0B\nspan = 0us\n", "a b"},
	{"x a --json b", "json = yes\nverbose = no\nworld = -1\nsize = 0B\nspan = 0us\n", "a b"},
	{"x -jv a", "json = yes\nverbose = yes\nworld = -1\nsize = 0B\nspan = 0us\n", "a"},
	{"x --json=no -w 4", "json = no\nverbose = no\nworld = 4\nsize = 0B\nspan = 0us\n", ""},
	{"x -w4 -jw5 -", "json = yes\nverbose = no\nworld = 5\nsize = 0B\nspan = 0us\n", "-"},
	{"x --job a --job=b",
		"json = no\nverbose = no\njob = b\nworld = -1\nsize = 0B\nspan = 0us\n", ""},
	{"x --listen a -l b -lc",
		"json = no\nverbose = no\nlisten = a\nlisten = b\nlisten = c\nworld = -1\nsize = "
		"0B\n"
		"span = 0us\n",
		""},
	{"x --size 4MiB --span 90s",
		"json = no\nverbose = no\nworld = -1\nsize = 4MiB\nspan = 90s\n", ""},
	{"x --size 1025 --span 250ms",
		"json = no\nverbose = no\nworld = -1\nsize = 1025B\nspan = 250ms\n", ""},
	{"x --span 120", "json = no\nverbose = no\nworld = -1\nsize = 0B\nspan = 2m\n", ""},
	{"x a -- --json", "json = no\nverbose = no\nworld = -1\nsize = 0B\nspan = 0us\n",
		"a --json"},
	{"x --nonsense", NULL, NULL},
	{"x -x", NULL, NULL},
	{"x --world", NULL, NULL},
	{"x --world 0", NULL, NULL},
	{"x --world 131073", NULL, NULL},
	{"x --world 4x", NULL, NULL},
	{"x --world 99999999999999999999", NULL, NULL},
	{"x --job 123456789", NULL, NULL},
	{"x --job=", NULL, NULL},
	{"x --json=maybe", NULL, NULL},
	{"x --size 4XB", NULL, NULL},
	{"x --size 2GiB", NULL, NULL},
	{"x --size 9999999999999TiB", NULL, NULL},
	{"x --span 2d", NULL, NULL},
};

START_TEST(test_args)
{
	struct values v = {.world = -1};
	struct ff_option o[OPTIONS];
	char line[128], *argv[16];
	struct ff_err err = {0};
	fill(o, &v);
	strcpy(line, rows[_i].args);
	int argc = split(line, argv);
	int rest = ff_option_args(o, OPTIONS, argc, argv, &err);
	if (!rows[_i].shown) {
		ck_assert_int_eq(rest, FF_EUSAGE);
		ck_assert(err.text[0]);
	} else {
		struct ff_buf shown = {0}, left = {0};
		ck_assert_msg(rest > 0, "%s", err.text);
		ff_option_print(o, OPTIONS, &shown);
		ck_assert_str_eq(shown.p, rows[_i].shown);
		for (int i = rest; i < argc; i++) {
			ff_buf_addf(&left, "%s%s", i > rest ? " " : "", argv[i]);
		}
		ck_assert_str_eq(left.p ? left.p : "", rows[_i].rest);
		ff_buf_finish(&shown);
		ff_buf_finish(&left);
	}
	ff_option_finish(o, OPTIONS);
	ff_option_finish(o, OPTIONS);
}
END_TEST

static const struct {
	const char *text;
	const char *error; /* NULL: accepted */
} files[] = {
	{"", NULL},
	{"# comment\n\n  json = yes # more\n job=a#b\nworld =  4\r\nlisten = x\nlisten = y", NULL},
	{"json = yes\nnonsense = 1\n", "f:2: unknown key \"nonsense\""},
	{"json\n", "f:1: \"json\" is not of the form key = value"},
	{"\n\nworld = none\n", "f:3: world: \"none\" is not a whole number"},
	{"world = 0\n", "f:1: world takes a whole number from 1 to 131072"},
	{"size = 2GiB\n", "f:1: size takes a size such as 64KiB or 4MiB from 0B to 1GiB"},
	{"= 1\n", "f:1: unknown key \"\""},
};

START_TEST(test_file)
{
	struct values v = {.world = -1};
	struct ff_option o[OPTIONS];
	struct ff_err err = {0};
	fill(o, &v);
	int r = ff_option_file(o, OPTIONS, "f", ff_str_z(files[_i].text), &err);
	ck_assert_int_eq(r, files[_i].error ? FF_EUSAGE : 0);
	ck_assert_str_eq(err.text, files[_i].error ? files[_i].error : "");
	if (_i == 1) {
		ck_assert(v.json);
		ck_assert_str_eq(v.job, "a#b");
		ck_assert_int_eq(v.world, 4);
		ck_assert_uint_eq(v.listen.n, 2);
		ck_assert_str_eq(v.listen.v[1], "y");
	}
	ff_option_finish(o, OPTIONS);
}
END_TEST

/* What print writes, file reads back. */
START_TEST(test_print_is_file)
{
	struct values a = {.json = true, .world = 3, .size = 3 << 20, .span = 1500000}, b = {0};
	struct ff_option oa[OPTIONS], ob[OPTIONS];
	struct ff_buf first = {0}, second = {0};
	fill(oa, &a);
	fill(ob, &b);
	struct ff_str told = FF_STR("job = j\nlisten = l\n");
	ck_assert_int_eq(ff_option_file(oa, OPTIONS, "f", told, NULL), 0);
	ff_option_print(oa, OPTIONS, &first);
	ck_assert_int_eq(ff_option_file(ob, OPTIONS, "f", ff_buf_str(&first), NULL), 0);
	ff_option_print(ob, OPTIONS, &second);
	ck_assert_str_eq(first.p, second.p);
	ff_buf_finish(&first);
	ff_buf_finish(&second);
	ff_option_finish(oa, OPTIONS);
	ff_option_finish(ob, OPTIONS);
}
END_TEST

START_TEST(test_help)
{
	struct values v = {0};
	struct ff_option o[OPTIONS];
	struct ff_buf b = {0};
	fill(o, &v);
	ff_option_help(o, OPTIONS, &b);
	ck_assert_ptr_nonnull(strstr(b.p, "  -j, --json              print JSON\n"));
	ck_assert_ptr_nonnull(strstr(b.p, "  --job ID                name of the job\n"));
	ck_assert_ptr_null(strstr(b.p, "verbose"));
	for (const char *p = b.p; *p; p += strcspn(p, "\n") + 1) {
		ck_assert_uint_le(strcspn(p, "\n"), 100);
	}
	ff_buf_finish(&b);
}
END_TEST

#define LOOP(tc, fn, n) tcase_add_loop_test(tc, fn, 0, (int)(n))

int main(void)
{
	Suite *s = suite_create("option");
	TCase *tc = tcase_create("option");
	LOOP(tc, test_args, N(rows));
	LOOP(tc, test_file, N(files));
	tcase_add_test(tc, test_print_is_file);
	tcase_add_test(tc, test_help);
	suite_add_tcase(s, tc);
	SRunner *sr = srunner_create(s);
	srunner_run_all(sr, CK_ENV);
	int failed = srunner_ntests_failed(sr);
	srunner_free(sr);
	return failed ? 1 : 0;
}
