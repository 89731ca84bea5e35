#include "config.h"

#include <check.h>

#define MOST 12

/* Each row: flags, and a word that the error has to hold (NULL: they are good). */
static const struct {
	const char *flags[MOST];
	const char *error;
} rows[] = {
	{{NULL}, NULL},
	{{"--state", "/s"}, NULL},
	{{"--state=/s", "--listen", "127.0.0.1:9", "--allow-open-tcp"}, NULL},
	{{"--listen", "[::1]:0", "--token-file", "/t"}, NULL},
	{{"--listen", "127.0.0.1:9"}, "token-file"},
	{{"--listen", "127.0.0.1:9", "--allow-open-tcp=no"}, "token-file"},
	{{"--listen", "nowhere", "--allow-open-tcp"}, "listen"},
	{{"--listen", "host:65536", "--allow-open-tcp"}, "listen"},
	{{"--listen", ":80", "--allow-open-tcp"}, "listen"},
	{{"--listen", "host:-1", "--allow-open-tcp"}, "listen"},
	{{"--listen", "unix:/x", "--allow-open-tcp"}, "listen"},
	{{"--allow-open-tcp=perhaps"}, "allow-open-tcp"},
	{{"--tail", "/logs/{job}/{rank}.log"}, NULL},
	{{"--tail", "logs/x"}, "tail"},
	{{"--tail", "/logs/{nothing}/x"}, "nothing"},
	{{"--tail-node", "/logs/{node}/*/{name}"}, NULL},
	{{"--tail-node", "/logs/{node}/{job}/{name}"}, "tail-node: "},
	{{"--tail-node", "/logs/{rank}"}, "by tail"},
	{{"--tail-node", "logs/{node}"}, "tail-node: "},
	{{"--catalog", "/nonexistent/own"}, "catalog: "},
	{{"--log-level", "debug"}, NULL},
	{{"--log-level", "loud"}, "log-level"},
	{{"--default-job", "x"}, NULL},
	{{"--default-job", "a/b"}, "job id"},
	{{"--default-job", "none"}, "default-job: \"none\""},
	{{"--state"}, "state"},
	{{"--state", ""}, "state"},
	{{"--no-such-flag"}, "no-such-flag"},
	{{"word"}, "word"},
	{{"--api-socket", "/a", "--ingest-socket", "/a"}, "api-socket"},
	{{"--api-socket",
		 "/aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
		 "aaaaaa/"
		 "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"},
		"api-socket"},
};

static int read_row(const char *const flags[MOST], struct config *c, struct ff_err *err)
{
	char *argv[MOST + 2] = {(char *)"firstfaultd"};
	int argc = 1;
	for (int i = 0; i < MOST && flags[i]; i++) {
		argv[argc++] = (char *)flags[i];
	}
	return config_read(c, argc, argv, err);
}

START_TEST(test_flags)
{
	struct config c = {0};
	struct ff_err err = {0};
	int r = read_row(rows[_i].flags, &c, &err);
	if (rows[_i].error) {
		ck_assert_int_eq(r, FF_EUSAGE);
		ck_assert_msg(strstr(err.text, rows[_i].error), "%s: %s", rows[_i].error, err.text);
	} else {
		ck_assert_msg(r == 0, "%s", err.text);
		ck_assert_str_eq(err.text, "");
		ck_assert_ptr_nonnull(c.state);
		ck_assert_ptr_nonnull(c.ingest_socket);
		ck_assert_ptr_nonnull(c.api_socket);
	}
	config_finish(&c);
	config_finish(&c);
}
END_TEST

START_TEST(test_values)
{
	static const char *const flags[MOST] = {"--state", "/one", "--state", "/two", "--tail",
		"/a/*", "--tail", "/b/*", "--api-socket", "unix:/run/a.sock"};
	struct config c = {0};
	struct ff_err err = {0};
	struct ff_buf out = {0};
	ck_assert_int_eq(read_row(flags, &c, &err), 0);
	ck_assert_str_eq(c.state, "/two");
	ck_assert_uint_eq(c.tail.n, 2);
	ck_assert_str_eq(c.tail.v[1], "/b/*");
	ck_assert_str_eq(c.api_socket, "/run/a.sock");
	config_print(&c, &out);
	ck_assert_ptr_nonnull(strstr(out.p, "state = /two\n"));
	ck_assert_ptr_nonnull(strstr(out.p, "tail = /a/*\n"));
	ck_assert_ptr_nonnull(strstr(out.p, "allow-open-tcp = no\n"));
	ck_assert_ptr_null(strstr(out.p, "check-config"));
	ff_buf_finish(&out);
	config_finish(&c);
}
END_TEST

START_TEST(test_help_wins)
{
	static const char *const help[MOST] = {"--help", "--listen", "nowhere"};
	static const char *const version[MOST] = {"--version", "--config", "/none"};
	struct config c = {0};
	struct ff_err err = {0};
	struct ff_buf out = {0};
	ck_assert_int_eq(read_row(help, &c, &err), 0);
	ck_assert(c.help);
	config_finish(&c);
	ck_assert_int_eq(read_row(version, &c, &err), 0);
	ck_assert(c.version);
	config_finish(&c);
	config_help(&out);
	ck_assert_ptr_nonnull(strstr(out.p, "--ingest-socket"));
	ck_assert_ptr_nonnull(strstr(out.p, "--check-config"));
	ff_buf_finish(&out);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("config");
	TCase *tc = tcase_create("config");
	tcase_add_loop_test(tc, test_flags, 0, (int)(sizeof rows / sizeof rows[0]));
	tcase_add_test(tc, test_values);
	tcase_add_test(tc, test_help_wins);
	suite_add_tcase(s, tc);
	SRunner *sr = srunner_create(s);
	srunner_run_all(sr, CK_ENV);
	int failed = srunner_ntests_failed(sr);
	srunner_free(sr);
	return failed ? 1 : 0;
}
