#include "feed/library.h"
#include "shell/file.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define ENTRY(id) \
	"[{\"id\":\"" id "\",\"title\":\"Own\",\"category\":\"own\",\"role\":\"primary\"," \
	"\"domain\":\"user\",\"match\":[{\"literal\":\"zzz " id "\",\"pattern\":\"zzz " id "\"}]}]"

static char folder[64];

static void put(const char *name, const char *text)
{
	char path[160];
	(void)snprintf(path, sizeof path, "%s/%s", folder, name);
	FILE *f = fopen(path, "w");
	ck_assert_ptr_nonnull(f);
	ck_assert_int_ge(fputs(text, f), 0);
	ck_assert_int_eq(fclose(f), 0);
}

static void setup(void)
{
	(void)snprintf(folder, sizeof folder, "/tmp/ff-library-XXXXXX");
	ck_assert_ptr_nonnull(mkdtemp(folder));
}

static void remove_all(const char *path)
{
	struct ff_file_list list = {0};
	struct ff_err err = {0};
	char sub[160];
	if (ff_file_walk(path, &list, &err) == 0) {
		for (size_t i = 0; i < list.n; i++) {
			(void)unlink(list.v[i].path);
		}
	}
	ff_file_list_finish(&list);
	(void)snprintf(sub, sizeof sub, "%s/sub", path);
	(void)rmdir(sub);
	(void)rmdir(path);
}

static void teardown(void)
{
	remove_all(folder);
}

START_TEST(a_folder_is_read_in_order)
{
	char path[160], hex[FF_SHA256_HEX];
	struct ff_library l = {0};
	struct ff_err err = {0};
	struct ff_sha256 hash;
	put("b.json", ENTRY("own-b"));
	put("a.json", ENTRY("own-a"));
	put("notes.txt", "no");
	(void)snprintf(path, sizeof path, "%s/sub", folder);
	ck_assert_int_eq(mkdir(path, 0700), 0);
	put("sub/c.json", "no");
	ck_assert_msg(!ff_library_read(&l, folder, &err), "%s", err.text);
	ck_assert_uint_eq(l.n, 2);
	ck_assert_ptr_nonnull(strstr(l.files[0].name, "/a.json"));
	ff_sha256_init(&hash);
	ff_sha256_add(&hash, ENTRY("own-a") ENTRY("own-b"), 2 * strlen(ENTRY("own-a")));
	ff_sha256_hex(&hash, hex);
	ck_assert_str_eq(l.sha256, hex);
	struct ff_catalog *c = NULL;
	struct ff_pages pages = {0};
	ck_assert_int_eq(ff_library_load(&l, &c, &err), 0);
	ck_assert_str_eq(ff_catalog_find(c, "own-b")->title, "Own");
	ck_assert_ptr_nonnull(ff_catalog_find(c, "cuda-oom"));
	ck_assert_str_eq(ff_catalog_hashes(c)[1] + strlen("sha256:"), hex);
	ck_assert_ptr_null(ff_catalog_hashes(c)[2]);
	ck_assert_int_eq(ff_library_pages(&l, &pages, &err), 0);
	ck_assert_ptr_nonnull(ff_pages_find(&pages, "own-a", NULL));
	ck_assert_ptr_nonnull(ff_pages_find(&pages, "cuda-oom", NULL));
	ff_pages_finish(&pages);
	ff_catalog_destroy(c);
	ff_library_finish(&l);
}
END_TEST

START_TEST(nothing_of_ones_own)
{
	struct ff_catalog *c = NULL;
	struct ff_err err = {0};
	ck_assert_int_eq(ff_library_open(NULL, &c, &err), 0);
	ck_assert_ptr_null(ff_catalog_hashes(c)[1]);
	ff_catalog_destroy(c);
}
END_TEST

START_TEST(what_is_wrong_is_said)
{
	struct ff_catalog *c = NULL;
	struct ff_err err = {0};
	char path[160];
	ck_assert_int_eq(ff_library_open(folder, &c, &err), FF_EINPUT);
	ck_assert_msg(strstr(err.text, "has no *.json"), "%s", err.text);
	err = (struct ff_err){0};
	(void)snprintf(path, sizeof path, "%s/none.json", folder);
	ck_assert_int_lt(ff_library_open(path, &c, &err), 0);
	ck_assert_ptr_nonnull(strstr(err.text, "none.json"));
	err = (struct ff_err){0};
	put("x.json", "[{\"id\":\"x\"}]");
	ck_assert_int_eq(ff_library_open(folder, &c, &err), FF_ESCHEMA);
	ck_assert_msg(strstr(err.text, "/x.json: entry 1 (x): "), "%s", err.text);
	ck_assert_ptr_null(c);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("library");
	TCase *tc = tcase_create("library");
	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_add_test(tc, a_folder_is_read_in_order);
	tcase_add_test(tc, nothing_of_ones_own);
	tcase_add_test(tc, what_is_wrong_is_said);
	suite_add_tcase(s, tc);
	SRunner *sr = srunner_create(s);
	srunner_run_all(sr, CK_ENV);
	int failed = srunner_ntests_failed(sr);
	srunner_free(sr);
	return failed ? 1 : 0;
}
