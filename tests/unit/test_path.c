#include "feed/path.h"

#include "random.h"

#include <check.h>

#include <stdio.h>

#define N(table) (sizeof(table) / sizeof(table)[0])
#define NO FF_UNKNOWN
#define X64 "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"

/* ---- what a path says by its form */

static const struct {
	const char *path;
	enum ff_stream_kind kind;
	int32_t rank, local_rank, attempt;
	enum ff_fd fd;
	const char *tree; /* NULL: none */
	bool filtered, no_text;
} rows[] = {
	{"train.log", FF_STREAM_MIXED, NO, NO, NO, FF_FD_UNKNOWN, NULL, false, false},
	{"", FF_STREAM_MIXED, NO, NO, NO, FF_FD_UNKNOWN, NULL, false, false},
	{"/", FF_STREAM_MIXED, NO, NO, NO, FF_FD_UNKNOWN, NULL, false, false},
	{"rank-3.log", FF_STREAM_RANK, 3, NO, NO, FF_FD_UNKNOWN, NULL, false, false},
	{"rank3", FF_STREAM_RANK, 3, NO, NO, FF_FD_UNKNOWN, NULL, false, false},
	{"rank_12.err", FF_STREAM_RANK, 12, NO, NO, FF_FD_STDERR, NULL, false, false},
	{"worker-Rank.7.stdout", FF_STREAM_RANK, 7, NO, NO, FF_FD_STDOUT, NULL, false, false},
	{"out/1/rank.3/stdout", FF_STREAM_RANK, 3, NO, NO, FF_FD_STDOUT, NULL, false, false},
	{"out/prterun-n-293@1/rank.131071/stderr", FF_STREAM_RANK, 131071, NO, NO, FF_FD_STDERR,
		NULL, false, false},
	{"rank-131072.log", FF_STREAM_MIXED, NO, NO, NO, FF_FD_UNKNOWN, NULL, false, false},
	{"rank-99999999999999999999.log", FF_STREAM_MIXED, NO, NO, NO, FF_FD_UNKNOWN, NULL, false,
		false},
	{"ranks.log", FF_STREAM_MIXED, NO, NO, NO, FF_FD_UNKNOWN, NULL, false, false},
	{"frank3.log", FF_STREAM_MIXED, NO, NO, NO, FF_FD_UNKNOWN, NULL, false, false},
	{"local_rank-3.log", FF_STREAM_MIXED, NO, NO, NO, FF_FD_UNKNOWN, NULL, false, false},
	{"rank--3.log", FF_STREAM_MIXED, NO, NO, NO, FF_FD_UNKNOWN, NULL, false, false},
	{"none_p0z7c1ya/attempt_0/3/stderr.log", FF_STREAM_RANK, NO, 3, 0, FF_FD_STDERR,
		"none_p0z7c1ya", false, false},
	{"/l/4711_ab12cd34/attempt_1/0/stdout.log", FF_STREAM_RANK, NO, 0, 1, FF_FD_STDOUT,
		"/l/4711_ab12cd34", false, false},
	{"attempt_2/7/stdout.log", FF_STREAM_RANK, NO, 7, 2, FF_FD_STDOUT, "", false, false},
	{"x/attempt_0/filtered_stderr.log", FF_STREAM_MIXED, NO, NO, 0, FF_FD_STDERR, "x", true,
		false},
	{"x/attempt_0/3/error.json", FF_STREAM_RANK, NO, 3, 0, FF_FD_UNKNOWN, "x", false, true},
	{"x/3/error.json", FF_STREAM_MIXED, NO, NO, NO, FF_FD_UNKNOWN, NULL, false, true},
	{"job.json", FF_STREAM_MIXED, NO, NO, NO, FF_FD_UNKNOWN, NULL, false, true},
	{"x/attempt_0/a/stderr.log", FF_STREAM_MIXED, NO, NO, NO, FF_FD_STDERR, NULL, false, false},
	{"x/attempt_/3/stderr.log", FF_STREAM_MIXED, NO, NO, NO, FF_FD_STDERR, NULL, false, false},
	{"3/stderr.log", FF_STREAM_MIXED, NO, NO, NO, FF_FD_STDERR, NULL, false, false},
	{"node-a/agent.stderr", FF_STREAM_MIXED, NO, NO, NO, FF_FD_STDERR, NULL, false, false},
};

START_TEST(test_identify)
{
	struct ff_path_identity id;
	ff_path_identify(ff_str_z(rows[_i].path), &id);
	ck_assert_int_eq(id.kind, rows[_i].kind);
	ck_assert_int_eq(id.rank, rows[_i].rank);
	ck_assert_int_eq(id.local_rank, rows[_i].local_rank);
	ck_assert_int_eq(id.attempt, rows[_i].attempt);
	ck_assert_int_eq(id.fd, rows[_i].fd);
	ck_assert_int_eq(id.filtered, rows[_i].filtered);
	ck_assert_int_eq(id.no_text, rows[_i].no_text);
	ck_assert_int_eq(id.has_tree, rows[_i].tree != NULL);
	if (rows[_i].tree) {
		ck_assert_uint_eq(id.tree, strlen(rows[_i].tree));
		ck_assert_int_eq(memcmp(rows[_i].path, rows[_i].tree, id.tree), 0);
	}
	ff_path_identity_finish(&id);
	ff_path_identity_finish(&id);
}
END_TEST

/* ---- tail patterns */

static const struct {
	const char *pattern, *root; /* root NULL: refused */
} patterns[] = {
	{"/var/log/ranks/{job}/rank-{rank}.log", "/var/log/ranks"},
	{"/logs/{job}_*/attempt_{attempt}/{local_rank}/{name}", "/logs"},
	{"/logs/**/*.log", "/logs"},
	{"/a.log", "/"},
	{"/*", "/"},
	{"", NULL},
	{"logs/*.log", NULL},
	{"/logs/{who}.log", NULL},
	{"/logs/{job", NULL},
	{"/logs/../x", NULL},
	{"/logs//x", NULL},
	{"/logs/./x", NULL},
	{"/logs/a**b/x", NULL},
	{"/logs/**", NULL},
	{"/logs/", NULL},
};

START_TEST(test_parse)
{
	struct ff_err err = {0};
	struct ff_path_pattern *p = ff_path_pattern_parse(patterns[_i].pattern, &err);
	ck_assert_int_eq(p != NULL, patterns[_i].root != NULL);
	if (p) {
		ck_assert_str_eq(ff_path_pattern_root(p), patterns[_i].root);
	} else {
		ck_assert(err.text[0]);
	}
	ff_path_pattern_destroy(p);
}
END_TEST

static const struct {
	const char *pattern, *path;
	bool match;
	const char *job, *node;
	int32_t rank, local_rank, attempt;
} matches[] = {
	{"/l/{job}/rank-{rank}.log", "/l/4711/rank-3.log", true, "4711", NULL, 3, NO, NO},
	{"/l/{job}/rank-{rank}.log", "/l/4711/rank-x.log", false, NULL, NULL, NO, NO, NO},
	{"/l/{job}/rank-{rank}.log", "/l/a b/rank-3.log", false, NULL, NULL, NO, NO, NO},
	{"/l/{job}/rank-{rank}.log", "/l/4711/x/rank-3.log", false, NULL, NULL, NO, NO, NO},
	{"/l/{job}/rank-{rank}.log", "/l//rank-3.log", false, NULL, NULL, NO, NO, NO},
	{"/l/{job}/rank-{rank}.log", "/l/../rank-3.log", false, NULL, NULL, NO, NO, NO},
	{"/l/{job}_*/{node}.log", "/l/4711_ab_cd/gpu-1.log", true, "4711", "gpu-1", NO, NO, NO},
	{"/l/{job}-{node}/x", "/l/a-b-c/x", true, "a", "b-c", NO, NO, NO},
	{"/l/{job}/{job}.log", "/l/a/a.log", true, "a", NULL, NO, NO, NO},
	{"/l/{job}/{job}.log", "/l/a/b.log", false, NULL, NULL, NO, NO, NO},
	{"/l/{rank}{name}", "/l/12x", true, NULL, NULL, 12, NO, NO},
	{"/l/{rank}", "/l/131072", false, NULL, NULL, NO, NO, NO},
	{"/l/{job}/{name}", "/l/j/" X64 X64, true, "j", NULL, NO, NO, NO},
	{"/l/{job}/{name}", "/l/j/" X64 X64 "x", false, NULL, NULL, NO, NO, NO},
	{"/l/{job}/{name}.log", "/l/j/" X64 X64 ".log", true, "j", NULL, NO, NO, NO},
	{"/l/{job}/{name}", "/l/j/..", false, NULL, NULL, NO, NO, NO},
	{"/l/{job}/{name}", "/l/./x", false, NULL, NULL, NO, NO, NO},
	{"/l/{job}/{name}", "/l/.../x", true, "...", NULL, NO, NO, NO},
	{"/l/{job}/{name}", "/l/j/a\nb", false, NULL, NULL, NO, NO, NO},
	{"/l/{job}/{name}", "/l/j/a%sb", false, NULL, NULL, NO, NO, NO},
	{"/l/{job}/{name}", "/l/j/\xc3\xb6", false, NULL, NULL, NO, NO, NO},
	{"/l/{job}/{name}", "/l/j/\xff", false, NULL, NULL, NO, NO, NO},
	{"/l/{job}/*", "/l/j/\xff", true, "j", NULL, NO, NO, NO},
	{"/l/**/*.log", "/l/a.log", true, NULL, NULL, NO, NO, NO},
	{"/l/**/*.log", "/l/x/y/z/a.log", true, NULL, NULL, NO, NO, NO},
	{"/l/**/*.log", "/l/x/a.txt", false, NULL, NULL, NO, NO, NO},
	{"/l/**/{job}/x", "/l/a/b/x", true, "b", NULL, NO, NO, NO},
	/* what no placeholder says is taken from the path's form */
	{"/l/**/*.log", "/l/4711_ab12cd34/attempt_1/3/stderr.log", true, NULL, NULL, NO, 3, 1},
	{"/l/{job}_*/**/*.log", "/l/7_ab12cd34/attempt_1/3/stderr.log", true, "7", NULL, NO, 3, 1},
	{"/l/{job}/*", "/l/7/rank-5.err", true, "7", NULL, 5, NO, NO},
	{"/l/attempt_{attempt}/{local_rank}/*", "/l/attempt_2/1/out", true, NULL, NULL, NO, 1, 2},
};

START_TEST(test_match)
{
	struct ff_path_identity id;
	struct ff_path_pattern *p = ff_path_pattern_parse(matches[_i].pattern, NULL);
	ck_assert_ptr_nonnull(p);
	bool match = ff_path_pattern_match(p, ff_str_z(matches[_i].path), &id);
	ck_assert_int_eq(match, matches[_i].match);
	if (match) {
		ck_assert_pstr_eq(id.job, matches[_i].job);
		ck_assert_pstr_eq(id.node, matches[_i].node);
		ck_assert_int_eq(id.rank, matches[_i].rank);
		ck_assert_int_eq(id.local_rank, matches[_i].local_rank);
		ck_assert_int_eq(id.attempt, matches[_i].attempt);
		ff_path_identity_finish(&id);
	}
	ff_path_pattern_destroy(p);
}
END_TEST

static const struct {
	const char *pattern, *folder;
	bool may;
} folders[] = {
	{"/l/{job}/rank-{rank}.log", "/", true},
	{"/l/{job}/rank-{rank}.log", "/l", true},
	{"/l/{job}/rank-{rank}.log", "/l/4711", true},
	{"/l/{job}/rank-{rank}.log", "/l/4711/rank-3.log", false},
	{"/l/{job}/rank-{rank}.log", "/l/a b", false},
	{"/l/{job}/rank-{rank}.log", "/m", false},
	{"/l/**/*.log", "/l/a/b/c/d", true},
	{"/l/**/*.log", "/k/a", false},
};

START_TEST(test_may_hold)
{
	struct ff_path_pattern *p = ff_path_pattern_parse(folders[_i].pattern, NULL);
	ck_assert_int_eq(
		ff_path_pattern_may_hold(p, ff_str_z(folders[_i].folder)), folders[_i].may);
	ff_path_pattern_destroy(p);
}
END_TEST

/* A hostile name and a hostile pattern end soon. */
START_TEST(test_steps)
{
	struct ff_buf path = {0};
	struct ff_path_identity id;
	struct ff_path_pattern *p =
		ff_path_pattern_parse("/l/**/*a*a*a*a*a*a*a*b/**/*c*/x{job}y*z", NULL);
	ff_buf_addz(&path, "/l");
	for (int i = 0; i < 200; i++) {
		ff_buf_addz(&path, "/aaaaaaaaaaaaaaaaaaaaaaaa");
	}
	ck_assert(!ff_path_pattern_match(p, ff_buf_str(&path), &id));
	for (int i = 0; i < 100; i++) {
		ff_buf_addz(&path, "/x"); /* more components than a path may have */
	}
	ck_assert(!ff_path_pattern_match(p, ff_buf_str(&path), &id));
	ff_buf_finish(&path);
	ff_path_pattern_destroy(p);
}
END_TEST

/* A path that matches lies in folders that may hold it. */
START_TEST(test_folders_of_matches)
{
	static const char *const parts[] = {
		"l", "a", "rank-1", "attempt_0", "3", "b.log", "x y", "stderr.log"};
	static const char *const texts[] = {
		"/l/**/{name}", "/l/{job}/*", "/**/attempt_{attempt}/*/*.log", "/l/*/{node}/**/*"};
	struct random r = random_init((uint64_t)_i);
	struct ff_path_pattern *p = ff_path_pattern_parse(texts[_i], NULL);
	unsigned found = 0;
	for (int turn = 0; turn < 5000; turn++) {
		struct ff_buf path = {0};
		struct ff_path_identity id;
		for (uint32_t n = random_below(&r, 5) + 1; n; n--) {
			ff_buf_addf(&path, "/%s", parts[random_below(&r, N(parts))]);
		}
		if (ff_path_pattern_match(p, ff_buf_str(&path), &id)) {
			found++;
			ff_path_identity_finish(&id);
			for (size_t i = 1; i < path.len; i++) {
				ck_assert_msg(path.p[i] != '/' ||
						ff_path_pattern_may_hold(p, ff_str_n(path.p, i)),
					"%s, seed %llu", path.p, (unsigned long long)r.seed);
			}
		}
		ff_buf_finish(&path);
	}
	ck_assert_uint_gt(found, 0);
	ff_path_pattern_destroy(p);
}
END_TEST

#define LOOP(tc, fn, n) tcase_add_loop_test(tc, fn, 0, (int)(n))

int main(void)
{
	Suite *s = suite_create("path");
	TCase *tc = tcase_create("path");
	LOOP(tc, test_identify, N(rows));
	LOOP(tc, test_parse, N(patterns));
	LOOP(tc, test_match, N(matches));
	LOOP(tc, test_may_hold, N(folders));
	tcase_add_test(tc, test_steps);
	LOOP(tc, test_folders_of_matches, 4);
	tcase_set_timeout(tc, 60);
	suite_add_tcase(s, tc);
	SRunner *sr = srunner_create(s);
	srunner_run_all(sr, CK_ENV);
	int failed = srunner_ntests_failed(sr);
	srunner_free(sr);
	return failed ? 1 : 0;
}
