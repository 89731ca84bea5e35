#include "notify.h"

#include <check.h>

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define S FF_SECOND

START_TEST(test_address)
{
	struct sockaddr_un to;
	char long_name[sizeof to.sun_path + 2];
	memset(long_name, 'x', sizeof long_name - 1);
	long_name[sizeof long_name - 1] = '\0';
	long_name[0] = '/';
	size_t front = offsetof(struct sockaddr_un, sun_path);
	ck_assert_uint_eq(notify_address("/run/x", &to), front + 7);
	ck_assert_str_eq(to.sun_path, "/run/x");
	ck_assert_uint_eq(notify_address("@x", &to), front + 2);
	ck_assert(!memcmp(to.sun_path, "\0x", 2));
	ck_assert_uint_eq(notify_address("", &to), 0);
	ck_assert_uint_eq(notify_address("@", &to), 0);
	ck_assert_uint_eq(notify_address("vsock:2:1", &to), 0);
	ck_assert_uint_eq(notify_address(long_name, &to), 0);
	long_name[sizeof to.sun_path - 1] = '\0';
	ck_assert_uint_ne(notify_address(long_name, &to), 0);
}
END_TEST

/* Seconds, steps of the store's thread, whether it has work, and whether a ping is sent. */
static const struct {
	int at;
	unsigned steps;
	bool waiting, ping;
} rows[] = {
	{100, 0, false, true},
	{101, 0, false, false}, /* not due: a quarter of the limit */
	{105, 0, false, true},
	{109, 0, false, false},
	{110, 0, true, true}, /* work came */
	{114, 0, true, false},
	{118, 0, true, true}, /* it takes its time */
	{125, 0, true, false}, /* half of the limit without a step */
	{200, 0, true, false},
	{201, 1, true, true}, /* a commit, or a try of one */
	{206, 2, true, true},
	{211, 3, true, true},
	{216, 3, true, true},
	{221, 3, true, false},
	{222, 3, false, true}, /* nothing to do is no hang */
};

START_TEST(test_watchdog)
{
	struct notify n = {.fd = -1, .watchdog_us = 20 * S};
	struct notify none = {.fd = -1};
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		bool ping = notify_watchdog(&n, rows[i].at * S, rows[i].steps, rows[i].waiting);
		ck_assert_msg(ping == rows[i].ping, "at %d s", rows[i].at);
		ck_assert(!notify_watchdog(&none, rows[i].at * S, rows[i].steps, rows[i].waiting));
	}
}
END_TEST

START_TEST(test_environment)
{
	struct notify n;
	char pid[32];
	setenv("NOTIFY_SOCKET", "/nonexistent/socket", 1);
	setenv("WATCHDOG_USEC", "5000000", 1);
	notify_open(&n);
	ck_assert_int_eq(n.watchdog_us, 5 * S);
	notify_send(&n, "READY=1"); /* nobody is there */
	notify_close(&n);
	setenv("WATCHDOG_PID", "1", 1);
	notify_open(&n);
	ck_assert_int_eq(n.watchdog_us, 0);
	notify_close(&n);
	(void)snprintf(pid, sizeof pid, "%ld", (long)getpid());
	setenv("WATCHDOG_PID", pid, 1);
	notify_open(&n);
	ck_assert_int_eq(n.watchdog_us, 5 * S);
	notify_close(&n);
	unsetenv("NOTIFY_SOCKET");
	notify_open(&n);
	ck_assert_int_eq(n.watchdog_us, 0);
	ck_assert_int_eq(n.fd, -1);
	notify_close(&n);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("notify");
	TCase *tc = tcase_create("notify");
	tcase_add_test(tc, test_address);
	tcase_add_test(tc, test_watchdog);
	tcase_add_test(tc, test_environment);
	suite_add_tcase(s, tc);
	SRunner *sr = srunner_create(s);
	srunner_run_all(sr, CK_ENV);
	int failed = srunner_ntests_failed(sr);
	srunner_free(sr);
	return failed ? 1 : 0;
}
