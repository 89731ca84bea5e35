#include "shell/log.h"

#include <check.h>

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static ff_usec now;

static ff_usec fake_now(void)
{
	return now;
}

static int before, file; /* standard error as it was; where it goes meanwhile */
static char said[64 * 1024];

static void begin(void)
{
	char name[] = "/tmp/ff-log-XXXXXX";
	(void)fflush(stderr);
	before = dup(STDERR_FILENO);
	file = mkstemp(name);
	ck_assert_int_ge(file, 0);
	unlink(name);
	dup2(file, STDERR_FILENO);
	now = FF_SECOND;
	unsetenv("JOURNAL_STREAM");
	ff_log_open(FF_LOG_INFO, fake_now);
}

/* What was said since begin or the last call. */
static const char *take(void)
{
	ssize_t n = pread(file, said, sizeof said - 1, 0);
	said[n > 0 ? n : 0] = '\0';
	ck_assert_int_eq(ftruncate(file, 0), 0);
	lseek(file, 0, SEEK_SET);
	return said;
}

static void end(void)
{
	ff_log_tick(true);
	dup2(before, STDERR_FILENO);
	close(before);
	close(file);
}

static unsigned lines(const char *text)
{
	unsigned n = 0;
	for (; *text; text++) {
		n += *text == '\n';
	}
	return n;
}

START_TEST(test_levels)
{
	enum ff_log_level level;
	begin();
	ff_log_warn("x", "peer=%s", "a\033[2Jb\n");
	ck_assert_str_eq(take(), "warn: group=x peer=a\\x1b[2Jb\\x0a\n");
	ff_log_debug("x", "hidden");
	ck_assert_str_eq(take(), "");
	ff_log_open(FF_LOG_DEBUG, fake_now);
	ff_log_debug("x", "shown");
	ck_assert_str_eq(take(), "debug: group=x shown\n");
	ff_log_open(FF_LOG_ERROR, fake_now);
	ff_log_warn("x", "hidden");
	ff_log_error("x", "shown");
	ck_assert_str_eq(take(), "error: group=x shown\n");
	ck_assert(ff_log_level_parse(FF_STR("warn"), &level) && level == FF_LOG_WARN);
	ck_assert(!ff_log_level_parse(FF_STR("WARN"), &level));
	end();
}
END_TEST

/* The prefix only where standard error is that stream. */
START_TEST(test_journal)
{
	struct stat st;
	char name[64];
	begin();
	ck_assert_int_eq(fstat(STDERR_FILENO, &st), 0);
	(void)snprintf(name, sizeof name, "%llu:%llu", (unsigned long long)st.st_dev,
		(unsigned long long)st.st_ino);
	setenv("JOURNAL_STREAM", name, 1);
	ff_log_warn("x", "one");
	ck_assert_str_eq(take(), "<4>group=x one\n");
	(void)snprintf(name, sizeof name, "%llu:%llu", (unsigned long long)st.st_dev,
		(unsigned long long)st.st_ino + 1);
	setenv("JOURNAL_STREAM", name, 1);
	ff_log_warn("x", "two");
	ck_assert_str_eq(take(), "warn: group=x two\n");
	unsetenv("JOURNAL_STREAM");
	end();
}
END_TEST

static void repeat(const char *text)
{
	ff_log_warn("x", "%s", text);
}

static void flood(int i)
{
	ff_log_warn("x", "number=%d", i);
}

START_TEST(test_repeats)
{
	uint64_t omitted = ff_log_omitted();
	begin();
	for (int i = 0; i < 5; i++) {
		repeat("same");
		now += FF_SECOND;
	}
	ck_assert_str_eq(take(), "warn: group=x same\n");
	repeat("other");
	ck_assert_str_eq(take(), "warn: group=x 4 more like this in 4 s: same\n"
				 "warn: group=x other\n");
	ck_assert_uint_eq(ff_log_omitted() - omitted, 4);
	now += FF_LOG_AGAIN;
	repeat("other");
	ck_assert_str_eq(take(), "warn: group=x other\n");
	repeat("other");
	now += FF_LOG_AGAIN - 1;
	ff_log_tick(false);
	ck_assert_str_eq(take(), "");
	now += 1;
	ff_log_tick(false);
	ck_assert_str_eq(take(), "warn: group=x 1 more like this in 60 s: other\n");
	ff_log_tick(true);
	ck_assert_str_eq(take(), "");
	end();
}
END_TEST

START_TEST(test_burst)
{
	begin();
	for (int i = 0; i < 1000; i++) {
		flood(i);
	}
	ck_assert_uint_eq(lines(take()), FF_LOG_BURST);
	ff_log_warn("y", "another place is heard");
	ck_assert_uint_eq(lines(take()), 1);
	now += FF_LOG_WINDOW;
	flood(1000);
	ck_assert_str_eq(take(), "warn: group=x 980 more like this in 10 s: number=999\n"
				 "warn: group=x number=1000\n");
	end();
}
END_TEST

int main(void)
{
	Suite *s = suite_create("log");
	TCase *tc = tcase_create("log");
	tcase_add_test(tc, test_levels);
	tcase_add_test(tc, test_journal);
	tcase_add_test(tc, test_repeats);
	tcase_add_test(tc, test_burst);
	suite_add_tcase(s, tc);
	SRunner *sr = srunner_create(s);
	srunner_run_all(sr, CK_ENV);
	int failed = srunner_ntests_failed(sr);
	srunner_free(sr);
	return failed ? 1 : 0;
}
