#include "core/check.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>

#define N(table) (sizeof(table) / sizeof(table)[0])

/* clang-format off */
#define HEAD(id, role) "{\"id\":\"" id "\",\"title\":\"Title of " id "\",\"category\":\"c\"," \
	"\"role\":\"" role "\",\"domain\":\"user\",\"cause\":\"x\",\"fix\":[\"y\"]," \
	"\"verify\":[{\"run\":\"r\",\"expect\":\"e\"}],"
#define TEXT(literal, pattern) "{\"literal\":\"" literal "\",\"pattern\":\"" pattern "\"}"
#define ENTRY(id, texts, more) HEAD(id, "primary") "\"match\":[" texts "]," more "}"
#define GOOD ENTRY("disk-full", TEXT("No space left", "No space left"), \
	"\"examples\":[\"OSError: No space left on device\"]")
/* clang-format on */

struct said {
	struct ff_buf text;
	size_t n;
};

static void on_defect(void *ud, const char *text)
{
	struct said *s = ud;
	ff_buf_addf(&s->text, "%s\n", text);
	s->n++;
}

/* Checks `own` behind `built_in`. */
static size_t check_documents(const char *built_in, const char *own, struct said *said)
{
	struct ff_catalog *c = ff_catalog_create();
	struct ff_pages pages = {0};
	struct ff_err err = {0};
	const char *const docs[] = {built_in, own};
	size_t from = 0;
	*said = (struct said){0};
	for (size_t i = 0; i < 2; i++) {
		from = i ? pages.n : 0;
		int r = ff_catalog_add(c, i ? "own.json" : "built-in.json", ff_str_z(docs[i]),
			&err);
		r = r ? r : ff_pages_add(&pages, i ? "own.json" : "built-in.json",
				ff_str_z(docs[i]), &err);
		ck_assert_msg(!r, "%s", err.text);
	}
	ck_assert_int_eq(ff_catalog_seal(c, "0", &err), 0);
	size_t n = ff_catalog_check(c, &pages, from, on_defect, said);
	ck_assert_uint_eq(n, said->n);
	ff_pages_finish(&pages);
	ff_catalog_destroy(c);
	return n;
}

static const struct {
	const char *own, *says; /* says NULL: good */
} checks[] = {
	{"[]", NULL},
	{"[" ENTRY("a", TEXT("alpha", "alpha"), "\"examples\":[\"alpha\"],"
		"\"counterexamples\":[\"alph\"],\"see_also\":[\"disk-full\"],"
		"\"references\":[{\"title\":\"t\",\"url\":\"https://x\"}],"
		"\"example_fix\":{\"before\":\"x\",\"after\":\"y\"}") "]", NULL},
	/* an example without match, and so a text without example */
	{"[" ENTRY("a", TEXT("alpha", "alpha$"), "\"examples\":[\"alpha\",\"alpha beta\"]") "]",
		"own.json: entry 1 (a): no text of it holds on the example \"alpha beta\""},
	{"[" ENTRY("a", TEXT("alpha", "alpha") "," TEXT("beta", "beta"),
		"\"examples\":[\"alpha\"]") "]", "(a): a/2 has no example"},
	{"[" ENTRY("a", TEXT("alpha", "alpha"), "\"tags\":[]") "]", "(a): a/1 has no example"},
	/* a rival: in the same folder, in the same entry, and built in */
	{"[" ENTRY("a", TEXT("alpha", "alpha"), "\"examples\":[\"alpha\"]") ","
		ENTRY("b", TEXT("beta", "beta"), "\"examples\":[\"beta alpha\"]") "]",
		"entry 2 (b): a/1 and b/1 both hold on a line of the example \"beta alpha\""},
	{"[" ENTRY("a", TEXT("alpha", "alpha") "," TEXT("alph", "alph"),
		"\"examples\":[\"alpha\"]") "]", "a/1 and a/2 both hold"},
	{"[" ENTRY("a", TEXT("left on", "left on"), "\"examples\":[\"nothing is left on it\"]")
		"]", "built-in.json: entry 1 (disk-full): disk-full/1 and a/1 both hold"},
	{"[" ENTRY("a", TEXT("No space left", "No space left here"),
		"\"examples\":[\"No space left here\"]") "]",
		"entry 1 (a): disk-full/1 and a/1 both hold"},
	/* on another line, or of another rank, it is none */
	{"[" ENTRY("a", TEXT("alpha", "alpha"), "\"examples\":[\"alpha\"]") ","
		ENTRY("b", TEXT("beta", "beta"), "\"examples\":[\"beta\\nalpha\"]") "]", NULL},
	{"[" ENTRY("a", TEXT("alpha", "alpha"), "\"examples\":[\"alpha\"]") ","
		ENTRY("b", TEXT("beta", "beta"), "\"generic\":true,"
		"\"examples\":[\"beta alpha\"]") "]", NULL},
	{"[" ENTRY("a", TEXT("alpha", "alpha"), "\"examples\":[\"alpha\"],"
		"\"counterexamples\":[\"not alpha\"]") "]",
		"(a): a/1 holds on the counterexample \"not alpha\""},
	{"[" ENTRY("a", TEXT("alpha", "alpha( |  )*y"), "\"examples\":[\"alphay\"]") "]",
		"(a): a/1: the pattern needs more than"},
	{"[" ENTRY("a", TEXT("alpha", "alpha"), "\"examples\":[1]") "]", "\"examples\" holds"},
	{"[" ENTRY("a", TEXT("alpha", "alpha"), "\"examples\":[\"alpha\"],\"symptoms\":\"x\"")
		"]", "\"symptoms\" is not a list of texts"},
	{"[" ENTRY("a", TEXT("alpha", "alpha"), "\"examples\":[\"alpha\"],"
		"\"example_fix\":{\"before\":\"x\"}") "]", "needs before and after"},
	{"[" ENTRY("a", TEXT("alpha", "alpha"), "\"examples\":[\"alpha\"],"
		"\"references\":[{\"title\":\"x\",\"url\":\"javascript:x\"}]") "]",
		"a reference needs title and url"},
	{"[" ENTRY("a", TEXT("alpha", "alpha"), "\"examples\":[\"alpha\"],"
		"\"references\":[1]") "]", "a reference needs title and url"},
	{"[" ENTRY("a", TEXT("alpha", "alpha"), "\"examples\":[\"alpha\"],"
		"\"see_also\":[\"disk-ful\"]") "]", "names disk-ful, which is no fault"},
	{"[{\"id\":\"a\",\"title\":\"t\",\"category\":\"c\",\"role\":\"primary\","
		"\"domain\":\"user\",\"match\":[" TEXT("alpha", "alpha") "],"
		"\"examples\":[\"alpha\"],\"cause\":\"x\"}]", "a primary needs fix and verify"},
	{"[{\"id\":\"a\",\"title\":\"t\",\"category\":\"c\",\"role\":\"context\","
		"\"domain\":\"user\",\"match\":[" TEXT("alpha", "alpha") "],"
		"\"examples\":[\"alpha\"]}]", "(a): no cause"},
};

START_TEST(each_rule)
{
	struct said said;
	size_t n = check_documents("[" GOOD "]", checks[_i].own, &said);
	if (checks[_i].says) {
		ck_assert_msg(n >= 1 && strstr(said.text.p, checks[_i].says), "%d: %s", _i,
			said.text.p ? said.text.p : "nothing");
	} else {
		ck_assert_msg(!n, "%d: %s", _i, said.text.p);
	}
	ff_buf_finish(&said.text);
}
END_TEST

START_TEST(what_is_built_in_is_good)
{
	struct ff_catalog *c = NULL;
	struct ff_pages pages = {0};
	struct ff_err err = {0};
	struct said said = {0};
	ck_assert_int_eq(ff_catalog_load(ff_catalog_files, ff_catalog_files_count,
				 ff_catalog_files_sha256, &c, &err), 0);
	for (size_t i = 0; i < ff_catalog_files_count; i++) {
		const struct ff_embedded *f = &ff_catalog_files[i];
		ck_assert_int_eq(ff_pages_add(&pages, f->name, ff_str_n(f->data, f->len), &err), 0);
	}
	ck_assert_msg(!ff_catalog_check(c, &pages, 0, on_defect, &said), "%s", said.text.p);
	/* each has a page that fits a screen */
	for (size_t i = 0; i < pages.n; i++) {
		struct ff_buf b = {0};
		ff_page_text(&pages, pages.v[i].id, 100, &b);
		ck_assert(strstr(b.p, "\nROLE ") && strstr(b.p, "\nCAUSE "));
		for (const char *line = b.p; *line; line += strcspn(line, "\n") + 1) {
			ck_assert_msg(strcspn(line, "\n") <= 100, "%s", line);
		}
		ff_buf_finish(&b);
	}
	ff_pages_finish(&pages);
	ff_catalog_destroy(c);
}
END_TEST

/* ---- pages */

static void fill(struct ff_pages *p)
{
	static const char a[] = "[" ENTRY("cuda-oom", TEXT("CUDA out of memory", "x"),
		"\"tags\":[\"gpu\"],\"mechanism\":[\"first\",\"second\"]") ","
		ENTRY("host-oom-kill", TEXT("Killed process", "x"),
		"\"symptoms\":[\"out of memory\"]") "]";
	static const char b[] = "[" HEAD("cuda-oom", "context") "\"match\":["
		TEXT("Process has", "x") "],\"examples\":[\"\\u001b[2J evil\\nDO NOW\"]},"
		ENTRY("nccl-timeout", TEXT("Watchdog caught", "x"),
		"\"example_fix\":{\"before\":\"a\\n  b\",\"after\":\"c\"},"
		"\"references\":[{\"title\":\"T\",\"url\":\"https://x\"}]") "]";
	struct ff_err err = {0};
	ck_assert_int_eq(ff_pages_add(p, "a.json", ff_str_z(a), &err), 0);
	ck_assert_int_eq(ff_pages_add(p, "b.json", ff_str_z(b), &err), 0);
}

START_TEST(pages_are_found)
{
	struct ff_pages p = {0};
	struct ff_err err = {0};
	fill(&p);
	const struct ff_page *page = ff_pages_find(&p, "cuda-oom", NULL);
	ck_assert_str_eq(page->role, "primary");
	page = ff_pages_find(&p, "cuda-oom", page);
	ck_assert_str_eq(page->role, "context");
	ck_assert_str_eq(page->file, "b.json");
	ck_assert_uint_eq(page->number, 1);
	ck_assert_ptr_null(ff_pages_find(&p, "cuda-oom", page));
	ck_assert_ptr_null(ff_pages_find(&p, "nothing", NULL));
	ck_assert_int_eq(ff_pages_add(&p, "c.json", FF_STR("{}"), &err), FF_ESCHEMA);
	ck_assert_int_eq(ff_pages_add(&p, "d.json", FF_STR("[\n1,]"), NULL), FF_EJSON);
	ff_pages_finish(&p);
}
END_TEST

static const struct {
	const char *asked, *near; /* NULL: none */
} nears[] = {
	{"cuda-om", "cuda-oom"}, {"cudaoom", "cuda-oom"}, {"cuad-oom", "cuda-oom"},
	{"oom", "cuda-oom"}, {"nccl_timeout", "nccl-timeout"}, {"timeout", "nccl-timeout"},
	{"xyzzy", NULL}, {"", NULL}, {"a", NULL},
	{"nccl-timeoutnccl-timeoutnccl-timeoutnccl-timeoutnccl-timeoutnccl-timeoutnccl", NULL},
};

START_TEST(near_by_spelling)
{
	struct ff_pages p = {0};
	const char *ret[3] = {0};
	fill(&p);
	size_t n = ff_pages_near(&p, nears[_i].asked, ret, 3);
	ck_assert_int_eq(n > 0, nears[_i].near != NULL);
	if (n) {
		ck_assert_str_eq(ret[0], nears[_i].near);
		ck_assert(n < 2 || strcmp(ret[0], ret[1]) != 0);
	}
	ff_pages_finish(&p);
}
END_TEST

static const struct {
	const char *words, *first; /* NULL: nothing */
	size_t n;
} searches[] = {
	{"cuda-oom", "cuda-oom", 2},
	{"OUT OF MEMORY", "cuda-oom", 2},
	{"killed", "host-oom-kill", 1},
	{"gpu", "cuda-oom", 1},
	{"  watchdog   CAUGHT ", "nccl-timeout", 1},
	{"second", "cuda-oom", 1},
	{"cuda killed", NULL, 0},
	{"nowhere", NULL, 0},
	{"", NULL, 0},
	{"   ", NULL, 0},
};

START_TEST(search_ranks)
{
	struct ff_pages p = {0};
	struct ff_page_hit *hits;
	fill(&p);
	size_t n = ff_pages_search(&p, ff_str_z(searches[_i].words), &hits);
	ck_assert_uint_eq(n, searches[_i].n);
	if (n) {
		ck_assert_str_eq(hits[0].page->id, searches[_i].first);
	}
	for (size_t i = 1; i < n; i++) {
		ck_assert_uint_le(hits[i].score, hits[i - 1].score);
	}
	free(hits);
	ff_pages_finish(&p);
}
END_TEST

START_TEST(a_page_as_text)
{
	static const char want[] =
		"nccl-timeout  Title of nccl-timeout\n"
		"category c, domain user\n"
		"\n"
		"ROLE      primary: a process's own fault, can start a failure\n"
		"CAUSE     x\n"
		"FIX       y\n"
		"VERIFY    r\n"
		"          expect e\n"
		"BEFORE  | a\n"
		"        |   b\n"
		"AFTER   | c\n"
		"READ      T\n"
		"          https://x\n";
	struct ff_pages p = {0};
	struct ff_buf b = {0};
	fill(&p);
	ff_page_text(&p, "nccl-timeout", 100, &b);
	ck_assert_str_eq(b.p, want);
	ff_buf_clear(&b);
	ff_page_text(&p, "cuda-oom", 60, &b);
	ck_assert_ptr_nonnull(strstr(b.p, "HOW       - first\n          - second\n"));
	ck_assert_ptr_nonnull(strstr(b.p, "\n\nROLE      context"));
	ck_assert_ptr_nonnull(strstr(b.p, "LOOKS   | \\x1b[2J evil\n"));
	ck_assert_ptr_null(strstr(b.p, "\nDO NOW"));
	ff_buf_finish(&b);
	ff_pages_finish(&p);
}
END_TEST

/* Whatever stands first in the files, a page begins with what can start a failure. */
START_TEST(the_primary_leads)
{
	static const char json[] = "[" HEAD("x", "context") "\"match\":["
		TEXT("alpha", "alpha") "]},{\"id\":\"x\",\"title\":\"odd\",\"role\":\"odd\"},"
		HEAD("x", "secondary") "\"match\":[" TEXT("beta", "beta") "]},"
		"{\"id\":\"x\",\"title\":\"Leads\",\"category\":\"d\",\"role\":\"primary\"}]";
	static const char *const roles[] = {"primary", "secondary", "context", "odd"};
	struct ff_pages p = {0};
	struct ff_buf b = {0};
	struct ff_err err = {0};
	const struct ff_page **pages;
	ck_assert_int_eq(ff_pages_add(&p, "a.json", ff_str_z(json), &err), 0);
	ck_assert_uint_eq(ff_pages_of(&p, "x", &pages), N(roles));
	for (size_t i = 0; i < N(roles); i++) {
		ck_assert_str_eq(pages[i]->role, roles[i]);
	}
	free(pages);
	ff_page_text(&p, "x", 100, &b);
	ck_assert_ptr_nonnull(strstr(b.p, "x  Leads\ncategory d, domain \n\nROLE      primary"));
	ff_buf_clear(&b);
	ff_page_json(&p, "x", &b);
	ck_assert_ptr_nonnull(strstr(b.p, "\"title\":\"Leads\",\"category\":\"d\""));
	ck_assert_uint_eq(ff_pages_of(&p, "y", &pages), 0);
	ff_buf_finish(&b);
	ff_pages_finish(&p);
}
END_TEST

START_TEST(a_page_as_json)
{
	struct ff_pages p = {0};
	struct ff_buf b = {0};
	struct ff_err err = {0};
	fill(&p);
	ff_page_json(&p, "cuda-oom", &b);
	struct ff_json *doc = ff_json_parse(ff_buf_str(&b), &err);
	ck_assert_msg(doc != NULL, "%s: %s", err.text, b.p);
	const struct ff_json_node *root = ff_json_root(doc);
	const struct ff_json_node *v = ff_json_first(ff_json_get(root, "entries"));
	ck_assert_str_eq(ff_json_string(ff_json_get(root, "id")), "cuda-oom");
	ck_assert_str_eq(ff_json_string(ff_json_get(v, "role")), "primary");
	ck_assert_str_eq(ff_json_string(ff_json_get(ff_json_next(v), "role")), "context");
	ff_json_destroy(doc);
	ff_buf_finish(&b);
	ff_pages_finish(&p);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("check");
	TCase *tc = tcase_create("check");
	tcase_set_timeout(tc, 60);
	tcase_add_loop_test(tc, each_rule, 0, N(checks));
	tcase_add_test(tc, what_is_built_in_is_good);
	tcase_add_test(tc, pages_are_found);
	tcase_add_loop_test(tc, near_by_spelling, 0, N(nears));
	tcase_add_loop_test(tc, search_ranks, 0, N(searches));
	tcase_add_test(tc, a_page_as_text);
	tcase_add_test(tc, the_primary_leads);
	tcase_add_test(tc, a_page_as_json);
	suite_add_tcase(s, tc);
	SRunner *sr = srunner_create(s);
	srunner_run_all(sr, CK_ENV);
	int failed = srunner_ntests_failed(sr);
	srunner_free(sr);
	return failed ? 1 : 0;
}
