#include "tail_watch.h"

#include <check.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define N(table) (sizeof(table) / sizeof(table)[0])

static const struct {
	uint64_t type;
	bool local;
} types[] = {
	{0xef53, true},      /* ext4 */
	{0x58465342, true},  /* xfs */
	{0x01021994, true},  /* tmpfs */
	{0x794c7630, true},  /* overlayfs */
	{0x6969, false},     /* nfs */
	{0x0bd00bd0, false}, /* lustre */
	{0x47504653, false}, /* gpfs */
	{0x19830326, false}, /* beegfs */
	{0x00c36400, false}, /* cephfs */
	{0xff534d42, false}, /* cifs */
	{0xfe534d42, false}, /* smb2 */
	{0x01021997, false}, /* 9p */
	{0x65735546, false}, /* fuse */
	{0x01161970, false}, /* gfs2 */
	{0x7461636f, false}, /* ocfs2 */
	{0, false},
	{UINT64_MAX, false},
};

START_TEST(test_is_local)
{
	ck_assert_int_eq(tail_watch_is_local(types[_i].type), types[_i].local);
}
END_TEST

static char folder[32];
static struct tail_watch *w;
static int dir;

static void setup(void)
{
	(void)snprintf(folder, sizeof folder, "/tmp/ff-watch-XXXXXX");
	ck_assert_ptr_nonnull(mkdtemp(folder));
	dir = open(folder, O_RDONLY | O_DIRECTORY);
	ck_assert_int_ge(dir, 0);
	w = tail_watch_create();
	ck_assert_int_eq(tail_watch_fd(w), -1);
}

static void teardown(void)
{
	tail_watch_destroy(w);
	tail_watch_destroy(NULL);
	close(dir);
	(void)unlinkat(AT_FDCWD, folder, AT_REMOVEDIR);
}

/* False where this machine has no watch left. */
static bool add(ff_usec now)
{
	int limit;
	bool watched = tail_watch_add(w, dir, "/x", now, &limit);
	ck_assert(watched || limit);
	return watched;
}

static int touch(const char *name)
{
	int fd = openat(dir, name, O_WRONLY | O_CREAT | O_APPEND, 0600);
	ck_assert_int_ge(fd, 0);
	return fd;
}

START_TEST(test_hints)
{
	const char *path = NULL;
	tail_watch_walk_begin(w);
	if (!add(0)) {
		return;
	}
	ck_assert_int_eq(tail_watch_next(w, &path), TAIL_WATCH_NONE);
	int fd = touch("a.log");
	ck_assert_int_eq(tail_watch_next(w, &path), TAIL_WATCH_CHANGED);
	ck_assert_str_eq(path, "/x/a.log");
	ck_assert_int_eq(tail_watch_next(w, &path), TAIL_WATCH_NONE);
	ck_assert_int_eq(write(fd, "x", 1), 1);
	ck_assert_int_eq(tail_watch_next(w, &path), TAIL_WATCH_GROWN);
	ck_assert_str_eq(path, "/x/a.log");
	/* a walk that sees the folder under another name; one that does not see it */
	int limit;
	tail_watch_walk_begin(w);
	ck_assert(tail_watch_add(w, dir, "/", 0, &limit));
	tail_watch_walk_end(w);
	ck_assert_uint_eq(tail_watch_count(w), 1);
	ck_assert_int_eq(write(fd, "x", 1), 1);
	ck_assert_int_eq(tail_watch_next(w, &path), TAIL_WATCH_GROWN);
	ck_assert_str_eq(path, "/a.log");
	tail_watch_walk_begin(w);
	tail_watch_walk_end(w);
	ck_assert_uint_eq(tail_watch_count(w), 0);
	ck_assert_int_eq(write(fd, "x", 1), 1);
	ck_assert_int_eq(tail_watch_next(w, &path), TAIL_WATCH_NONE);
	close(fd);
	ck_assert_int_eq(unlinkat(dir, "a.log", 0), 0);
}
END_TEST

START_TEST(test_folder_gone)
{
	const char *path = NULL;
	if (!add(0)) {
		return;
	}
	ck_assert_int_eq(unlinkat(AT_FDCWD, folder, AT_REMOVEDIR), 0);
	close(dir);
	dir = -1;
	while (tail_watch_next(w, &path) != TAIL_WATCH_NONE) {
		ck_assert_str_eq(path, "/x");
	}
	ck_assert_uint_eq(tail_watch_count(w), 0);
}
END_TEST

/* More events than the kernel keeps: anything may have changed. */
START_TEST(test_overflow)
{
	const char *path = NULL;
	enum tail_watch_hint hint;
	if (!add(0)) {
		return;
	}
	int a = touch("a"), b = touch("b"); /* equal events in a row would count once */
	for (int i = 0; i < 20000; i++) {
		ck_assert_int_eq(write(i % 2 ? a : b, "x", 1), 1);
	}
	size_t hints = 0;
	bool lost = false;
	while ((hint = tail_watch_next(w, &path)) != TAIL_WATCH_NONE) {
		hints++;
		lost = lost || hint == TAIL_WATCH_LOST;
	}
	ck_assert(lost || hints >= 20000);
	close(a);
	close(b);
	ck_assert_int_eq(unlinkat(dir, "a", 0), 0);
	ck_assert_int_eq(unlinkat(dir, "b", 0), 0);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("tail_watch");
	TCase *tc = tcase_create("tail_watch");
	tcase_add_loop_test(tc, test_is_local, 0, (int)N(types));
	suite_add_tcase(s, tc);
	tc = tcase_create("hints");
	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_add_test(tc, test_hints);
	tcase_add_test(tc, test_folder_gone);
	tcase_add_test(tc, test_overflow);
	suite_add_tcase(s, tc);
	SRunner *sr = srunner_create(s);
	srunner_run_all(sr, CK_ENV);
	int failed = srunner_ntests_failed(sr);
	srunner_free(sr);
	return failed ? 1 : 0;
}
