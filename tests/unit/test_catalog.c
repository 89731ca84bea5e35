#include "base/buf.h"
#include "core/catalog.h"

#include <check.h>
#include <stdlib.h>

/* An entry with its required keys; more keys go in front of them. */
#define ENTRY(more) \
	"[{" more "\"id\":\"cuda-oom\",\"title\":\"GPU out of memory\",\"category\":\"memory\"," \
	"\"role\":\"primary\",\"domain\":\"user\",\"match\":[{\"literal\":\"CUDA out of memory\"," \
	"\"pattern\":\"CUDA (?<device>\\\\w+)\"}]}]"
#define MATCH(text) \
	"[{\"id\":\"x\",\"title\":\"t\",\"category\":\"c\",\"role\":\"primary\",\"domain\":" \
	"\"user\"," \
	"\"match\":[" text "]}]"

static struct ff_catalog *load(const char *json, struct ff_err *err, int *ret)
{
	struct ff_catalog *c = ff_catalog_create();
	*ret = ff_catalog_add(c, "test.json", ff_str_z(json), err);
	return c;
}

static const struct {
	const char *json;
	int code;
	const char *says; /* in the error's text */
} bad_cases[] = {
	{"", FF_EJSON, "test.json"},
	{"{", FF_EJSON, "test.json"},
	{"{}", FF_ESCHEMA, "not an array"},
	{"[1]", FF_ESCHEMA, "entry 1 (without id): not an object"},
	{"[{}]", FF_ESCHEMA, "\"id\" is not a text"},
	{"[{\"id\":\"A\"}]", FF_ESCHEMA, "\"id\" has other bytes"},
	{"[{\"id\":\"a--b\"}]", FF_ESCHEMA, "\"id\" has other bytes"},
	{"[{\"id\":\"a-\"}]", FF_ESCHEMA, "\"id\" has other bytes"},
	{ENTRY("\"colour\":1,"), FF_ESCHEMA, "(cuda-oom): unknown key \"colour\""},
	{"[{\"id\":\"x\"}]", FF_ESCHEMA, "\"title\" is not a text"},
	{"[{\"id\":\"x\",\"title\":\"t\",\"category\":\"c\",\"role\":\"main\"}]", FF_ESCHEMA,
		"\"role\" is \"main\""},
	{"[{\"id\":\"x\",\"title\":\"t\",\"category\":\"c\",\"role\":\"noise\",\"domain\":1}]",
		FF_ESCHEMA, "\"domain\" is \"\""},
	{ENTRY("\"kind\":\"thing\","), FF_ESCHEMA, "\"kind\" is \"thing\""},
	{ENTRY("\"did\":\"\","), FF_ESCHEMA, "\"did\" is not a text"},
	{ENTRY("\"generic\":1,"), FF_ESCHEMA, "\"generic\" is not true or false"},
	{ENTRY("\"fix\":\"do\","), FF_ESCHEMA, "\"fix\" is not a list"},
	{ENTRY("\"mechanism\":[1],"), FF_ESCHEMA, "\"mechanism\" holds something that is no text"},
	{ENTRY("\"cause\":[],"), FF_ESCHEMA, "\"cause\" is not a text"},
	{ENTRY("\"verify\":[1],"), FF_ESCHEMA, "\"verify\" is not a list of objects"},
	{ENTRY("\"verify\":[{\"run\":\"x\"}],"), FF_ESCHEMA, "\"expect\" is not a text"},
	{ENTRY("\"verify\":[{\"run\":\"x\",\"expect\":\"y\",\"z\":1}],"), FF_ESCHEMA,
		"unknown key \"z\""},
	{MATCH(""), FF_ESCHEMA, "\"match\" is not a list of texts"},
	{MATCH("1"), FF_ESCHEMA, "no object"},
	{MATCH("{\"pattern\":\"a\"}"), FF_ESCHEMA, "\"literal\" is not a text"},
	{MATCH("{\"literal\":\"abcd\"}"), FF_ESCHEMA, "\"pattern\" is not a text"},
	{MATCH("{\"literal\":\"abcd\",\"pattern\":\"a\",\"weight\":1}"), FF_ESCHEMA,
		"unknown key \"weight\""},
	{MATCH("{\"literal\":\"abc\",\"pattern\":\"a\"}"), FF_ESCHEMA,
		"x/1: a literal has 4 to 255"},
	{MATCH("{\"literal\":\"ab\\ncd\",\"pattern\":\"a\"}"), FF_ESCHEMA, "no LF or CR"},
	{MATCH("{\"literal\":\"ab\\rcd\",\"pattern\":\"a\"}"), FF_ESCHEMA, "no LF or CR"},
	{MATCH("{\"literal\":\"abcd\",\"pattern\":\"a(\"}"), FF_EREGEX, "x/1: pattern: "},
	{MATCH("{\"literal\":\"abcd\",\"pattern\":\"(*UTF)a\"}"), FF_EREGEX, "x/1: pattern: "},
	{MATCH("{\"literal\":\"abcd\",\"pattern\":\"(?<colour>a)\"}"), FF_ESCHEMA,
		"x/1: group \"colour\" is no field"},
};

START_TEST(bad_documents_are_refused)
{
	struct ff_err err = {0};
	int r;
	struct ff_catalog *c = load(bad_cases[_i].json, &err, &r);
	ck_assert_int_eq(r, bad_cases[_i].code);
	ck_assert_msg(strstr(err.text, bad_cases[_i].says), "%s", err.text);
	ff_catalog_destroy(c);
}
END_TEST

START_TEST(entries_are_read)
{
	static const char json[] =
		"[{\"id\":\"a\",\"title\":\"A\",\"category\":\"c\",\"role\":\"secondary\","
		"\"domain\":\"network\",\"generic\":true,\"examples\":[\"x\"],\"match\":["
		"{\"literal\":\"alpha\",\"pattern\":\"alpha\",\"component\":\"torch\",\"since\":"
		"\"2\"},"
		"{\"literal\":\"alpha two\",\"pattern\":\"(?<rank>1)|(?<device>2)|(?<rank>3)\"}]},"
		"{\"id\":\"b\",\"title\":\"B\",\"category\":\"c\",\"role\":\"context\",\"kind\":"
		"\"fact\","
		"\"domain\":\"user\",\"match\":[{\"literal\":\"step \",\"pattern\":\"step "
		"(?<step>\\\\d+)\"}]},"
		"{\"id\":\"a\",\"title\":\"A2\",\"category\":\"d\",\"role\":\"primary\",\"domain\":"
		"\"user\","
		"\"cause\":\"because\",\"mechanism\":[\"one\",\"two\"],\"fix\":[\"do\"],"
		"\"verify\":[{\"run\":\"r\",\"expect\":\"e\"}],"
		"\"match\":[{\"literal\":\"alpha three\",\"pattern\":\"alpha\"}]},"
		"{\"id\":\"c\",\"title\":\"C\",\"category\":\"c\",\"role\":\"context\",\"kind\":"
		"\"fact\","
		"\"domain\":\"user\",\"match\":[{\"literal\":\"done\",\"pattern\":\"(?<done>done)"
		"\"}]}]";
	struct ff_err err = {0};
	int r;
	struct ff_catalog *c = load(json, &err, &r);
	ck_assert_msg(!r, "%s", err.text);
	ck_assert_int_eq(ff_catalog_seal(c, "0", &err), 0);
	ck_assert_uint_eq(ff_catalog_ntexts(c), 5);
	const struct ff_text *t = ff_catalog_text(c, 1);
	ck_assert_str_eq(t->name, "a/2");
	ck_assert_uint_eq(t->index, 1);
	ck_assert_uint_eq(t->ngroups, 3);
	ck_assert_int_eq(t->groups[0].id, FF_F_device);
	ck_assert_int_eq(t->groups[1].id, FF_F_rank);
	ck_assert_uint_eq(t->groups[1].number, 1);
	ck_assert_uint_eq(t->groups[2].number, 3);
	ck_assert(t->sig->generic && t->sig->role == FF_ROLE_SECONDARY && !t->sig->cause);
	ck_assert_int_eq(t->sig->kind, FF_EVENT_FAULT);
	ck_assert(!t->sig->mechanism[0] && !t->sig->fix[0] && !t->sig->nverify);
	t = ff_catalog_text(c, 2);
	ck_assert(t->sig->progress && !t->sig->success && t->sig->kind == FF_EVENT_FACT);
	ck_assert(ff_catalog_text(c, 4)->sig->success);
	t = ff_catalog_text(c, 3);
	ck_assert_str_eq(t->name, "a/3");
	ck_assert_str_eq(t->sig->mechanism[1], "two");
	ck_assert(!t->sig->mechanism[2]);
	ck_assert_str_eq(t->sig->verify[0].expect, "e");
	/* Of one id the entry that explains, else the first. */
	ck_assert_str_eq(ff_catalog_find(c, "a")->title, "A2");
	ck_assert_str_eq(ff_catalog_find(c, "b")->title, "B");
	ck_assert_ptr_null(ff_catalog_find(c, "zzz"));
	ck_assert_ptr_null(ff_catalog_find(c, NULL));
	ff_catalog_destroy(c);
}
END_TEST

struct seen {
	const struct ff_catalog *c;
	size_t texts, openers;
};

static void on_mark(void *ud, struct ff_mark mark)
{
	struct seen *seen = ud;
	if (ff_catalog_is_opener(seen->c, mark.id)) {
		seen->openers++;
	} else {
		seen->texts++;
	}
}

START_TEST(the_scan_knows_texts_and_openers)
{
	static const char text[] = "x CUDA out of memory y\nTraceback (most recent call last):\n";
	struct ff_err err = {0};
	int r;
	struct ff_catalog *c = load(ENTRY(""), &err, &r);
	ck_assert_int_eq(r, 0);
	ck_assert_int_eq(ff_catalog_seal(c, "0", &err), 0);
	struct seen seen = {.c = c};
	ff_scan_run(ff_catalog_scan(c), text, sizeof text - 1, on_mark, &seen);
	ck_assert_uint_eq(seen.texts, 1);
	ck_assert_uint_eq(seen.openers, 1);
	ff_catalog_destroy(c);
}
END_TEST

START_TEST(a_catalogue_is_named_by_its_hash)
{
	struct ff_embedded files[1] = {{"a.json", (const unsigned char *)"[]", 2}};
	struct ff_err err = {0};
	struct ff_catalog *c = NULL;
	ck_assert_int_eq(ff_catalog_load(files, 1, "abc", &c, &err), 0);
	ck_assert_str_eq(ff_catalog_hashes(c)[0], "sha256:abc");
	ck_assert_ptr_null(ff_catalog_hashes(c)[1]);
	ff_catalog_destroy(c);
	c = ff_catalog_create();
	ff_catalog_also(c, "def");
	ff_catalog_also(c, "012");
	ck_assert_int_eq(ff_catalog_seal(c, "abc", &err), 0);
	ck_assert_str_eq(ff_catalog_hashes(c)[0], "sha256:abc");
	ck_assert_str_eq(ff_catalog_hashes(c)[1], "sha256:def");
	ck_assert_str_eq(ff_catalog_hashes(c)[2], "sha256:012");
	ck_assert_ptr_null(ff_catalog_hashes(c)[3]);
	ff_catalog_destroy(c);
}
END_TEST

static void on_bad(void *ud, const struct ff_err *err)
{
	ff_buf_addf(ud, "%s\n", err->text);
}

START_TEST(bad_entries_are_told_one_by_one)
{
	static const char good[] = "{\"id\":\"a\",\"title\":\"A\",\"category\":\"c\","
				   "\"role\":\"noise\",\"domain\":\"user\",\"match\":["
				   "{\"literal\":\"alpha\",\"pattern\":\"alpha\"}]}";
	struct ff_buf doc = {0}, said = {0};
	struct ff_catalog *c = ff_catalog_create();
	ff_buf_addf(&doc, "[1,%s,{\"id\":\"b\"}]", good);
	ck_assert_uint_eq(ff_catalog_add_each(c, "x.json", ff_buf_str(&doc), on_bad, &said), 2);
	ck_assert_str_eq(said.p, "x.json: entry 1 (without id): not an object\n"
				 "x.json: entry 3 (b): \"title\" is not a text\n");
	ck_assert_uint_eq(ff_catalog_add_each(c, "y.json", FF_STR("[\n  x]"), on_bad, &said), 1);
	ck_assert_msg(strstr(said.p, "y.json: ") && strstr(said.p, "line 2"), "%s", said.p);
	ck_assert_uint_eq(ff_catalog_ntexts(c), 1);
	ff_catalog_destroy(c);
	ff_buf_finish(&doc);
	ff_buf_finish(&said);
}
END_TEST

START_TEST(a_bad_file_fails_the_load)
{
	struct ff_embedded files[2] = {
		{"good.json", (const unsigned char *)"[]", 2},
		{"bad.json", (const unsigned char *)"[", 1},
	};
	struct ff_catalog *c = NULL;
	struct ff_err err = {0};
	ck_assert_int_eq(ff_catalog_load(files, 2, "0", &c, &err), FF_EJSON);
	ck_assert_ptr_null(c);
	ck_assert(strstr(err.text, "bad.json"));
	ff_catalog_destroy(NULL);
}
END_TEST

#define WORDS(title, role, more) \
	"{\"id\":\"x\",\"title\":\"" title "\",\"category\":\"c\",\"role\":\"" role \
	"\",\"domain\":\"user\"," more "\"cause\":\"c\",\"match\":[{\"literal\":\"abcd " title \
	"\",\"pattern\":\"abcd\"}]}"

/* What no text matched is explained by the entry that holds for all of its id. */
START_TEST(a_fault_without_a_text_is_the_general_one)
{
	static const char json[] =
		"[" WORDS("context", "context", "") "," WORDS("special", "primary", "") ","
		WORDS("general", "primary", "\"generic\":true,\"did\":\"broke\",") "]";
	struct ff_err err = {0};
	int r;
	struct ff_catalog *c = load(json, &err, &r);
	ck_assert_msg(!r, "%s", err.text);
	ck_assert_str_eq(ff_catalog_find(c, "x")->title, "general");
	ck_assert_str_eq(ff_catalog_find(c, "x")->did, "broke");
	ff_catalog_destroy(c);
}
END_TEST

static Suite *suite(void)
{
	Suite *s = suite_create("catalog");
	TCase *t = tcase_create("all");
	tcase_add_loop_test(
		t, bad_documents_are_refused, 0, (int)(sizeof bad_cases / sizeof bad_cases[0]));
	tcase_add_test(t, entries_are_read);
	tcase_add_test(t, the_scan_knows_texts_and_openers);
	tcase_add_test(t, a_catalogue_is_named_by_its_hash);
	tcase_add_test(t, bad_entries_are_told_one_by_one);
	tcase_add_test(t, a_bad_file_fails_the_load);
	tcase_add_test(t, a_fault_without_a_text_is_the_general_one);
	suite_add_tcase(s, t);
	return s;
}

int main(void)
{
	SRunner *r = srunner_create(suite());
	srunner_run_all(r, CK_ENV);
	int failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed ? 1 : 0;
}
