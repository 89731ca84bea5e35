/* Each row of the decision table against a case of tests/cases/dev or own that needs it: with all
 * rules the answer is the case's truth, with that row switched off it is not. Cases are fed as
 * tests/cases/run_cases.py feeds them: JSON Lines through an intake, arrival times where the case
 * has them.
 *
 * The folder is CASES (of meson). A case that does not exist fails the test.
 */
#include "feed/intake.h"

#include "base/json.h"
#include "base/limits.h"

#include <check.h>

#include <stdio.h>
#include <stdlib.h>

#define N(table) (sizeof(table) / sizeof(table)[0])
#define START ((ff_usec)1767225600 * FF_SECOND) /* 2026-01-01T00:00:00Z */

static const struct {
	enum ff_rule_id rule;
	const char *name;
} rows[] = {
	{FF_RULE_clean, "real-1.13/clean-with-warnings"},
	{FF_RULE_clean, "public/s-broken-pipe-but-result-complete"},
	{FF_RULE_external, "real-1.13/preempt-sigterm-agent"},
	{FF_RULE_external, "real-slurm24/s24-scancel"},
	{FF_RULE_hardware, "public/n-ecc-default0-rank12"},
	{FF_RULE_hardware, "real-mpi5/m5-ompi-unreachable"},
	{FF_RULE_common, "public/d-process-group-never-initialised"},
	{FF_RULE_common, "public/d-tokenizer-json-too-new"},
	{FF_RULE_on_a_node, "real-1.13/file-not-found-one-node"},
	{FF_RULE_on_some, "public/d-schedule-tensor-hardcoded-cuda0"},
	{FF_RULE_on_some, "real-1.13/raise-two-ranks"},
	{FF_RULE_own, "public/d-loader-file-missing-on-node-1"},
	{FF_RULE_own, "public/d-ddp-unused-params-rank3"},
	{FF_RULE_several, "real-slurm24/s24-ring64-two-roots"},
	{FF_RULE_killed, "real-2.13/t2-sigkill"},
	{FF_RULE_killed, "real-slurm/srun-segv"},
	{FF_RULE_silent_exit, "real-1.13/exit-code-silent"},
	{FF_RULE_silent_exit, "real-slurm24/s24-gpu-range"},
	{FF_RULE_handled, "real-2.13/t2-trap-thread-exception"},
	{FF_RULE_handled, "public/d-dcp-exception-quotes-rank-2"},
	{FF_RULE_accused, "public/n-monitored-barrier-misses-a-node"},
	{FF_RULE_mismatch, "real-1.13/collective-mismatch-detail"},
	{FF_RULE_mismatch, "real-2.13/t2-mismatch-op-detail"},
	{FF_RULE_late, "real-1.13/hang-sigstop"},
	{FF_RULE_late, "real-2.13/t2-store-key-timeout"},
	{FF_RULE_early, "real-1.13/exit-zero-early"},
	{FF_RULE_early, "real-slurm24/s24-wait-early"},
	{FF_RULE_node_gone, "real-1.13/two-nodes-node-lost"},
	{FF_RULE_node_gone, "real-2.13/t2-store-host-lost"},
	{FF_RULE_several, "../own/two-faults-in-one-moment"},
	{FF_RULE_silent, "../own/lone-silent-rank"},
};

/* ---- a case */

struct labels {
	struct ff_json *doc;
	const struct ff_json_node *root, *streams;
	struct ff_buf replay;
};

static void read_file(const char *name, const char *file, struct ff_buf *out)
{
	char path[512], piece[65536];
	(void)snprintf(path, sizeof path, CASES "/%s/%s", name, file);
	FILE *f = fopen(path, "rb");
	ck_assert_msg(f != NULL, "no %s", path);
	for (size_t n; (n = fread(piece, 1, sizeof piece, f)) > 0;) {
		ff_buf_add(out, piece, n);
	}
	ck_assert_int_eq(ferror(f), 0);
	ck_assert_int_eq(fclose(f), 0);
}

static void read_case(struct labels *c, const char *name)
{
	struct ff_err err = {{0}};
	struct ff_buf text = {0};
	*c = (struct labels){0};
	read_file(name, "case.json", &text);
	read_file(name, "replay.tsv", &c->replay);
	c->doc = ff_json_parse(ff_buf_str(&text), &err);
	ck_assert_msg(c->doc != NULL, "%s: %s", name, err.text);
	c->root = ff_json_root(c->doc);
	c->streams = ff_json_get(c->root, "streams");
	ff_buf_finish(&text);
}

static void finish_case(struct labels *c)
{
	ff_json_destroy(c->doc);
	ff_buf_finish(&c->replay);
}

static const struct ff_json_node *item(const struct ff_json_node *list, int64_t n)
{
	const struct ff_json_node *v = ff_json_first(list);
	for (; v && n > 0; n--) {
		v = ff_json_next(v);
	}
	return v;
}

static void copy_keys(struct ff_jw *w, const struct ff_json_node *from, const char *const *keys)
{
	for (; *keys; keys++) {
		const struct ff_json_node *v = ff_json_get(from, *keys);
		const char *text = ff_json_string(v);
		int64_t n;
		if (text) {
			ff_jw_kstrz(w, *keys, text);
		} else if (ff_json_int(v, &n)) {
			ff_jw_kint(w, *keys, n);
		}
	}
}

static void open_object(struct ff_jw *w, struct ff_buf *out, const char *event)
{
	ff_jw_init(w, out);
	ff_jw_open(w, '{');
	if (event) {
		ff_jw_kstrz(w, "event", event);
	}
	ff_jw_kstrz(w, "job", "case");
}

static void close_object(struct ff_jw *w, struct ff_buf *out)
{
	ff_jw_close(w, '}');
	ff_buf_addz(out, "\n");
}

/* The number before the first TAB; what stands behind it is left in *row. */
static int64_t column(struct ff_str *row)
{
	int64_t v = 0;
	size_t n = ff_str_digits(*row, &v);
	ck_assert_uint_gt(n, 0);
	*row = ff_str_skip(*row, n + 1);
	return v;
}

static bool is_timed(const struct labels *c)
{
	struct ff_str rest = ff_buf_str(&c->replay);
	while (rest.n) {
		struct ff_str row = rest;
		if (column(&row)) {
			return true;
		}
		ptrdiff_t lf = ff_str_chr(rest, '\n', 0);
		rest = ff_str_skip(rest, lf < 0 ? rest.n : (size_t)lf + 1);
	}
	return false;
}

static void add_line(struct ff_buf *out, const struct labels *c, struct ff_str row, bool timed,
	ff_usec *last)
{
	static const char *const of_stream[] = {
		"kind", "rank", "node", "local_rank", "attempt", "fd", NULL};
	struct ff_jw w;
	*last = START + column(&row) * 1000;
	const struct ff_json_node *stream = item(c->streams, column(&row));
	open_object(&w, out, NULL);
	ff_jw_kstrz(&w, "stream", ff_json_string(ff_json_get(stream, "name")));
	copy_keys(&w, stream, of_stream);
	if (timed) {
		ff_jw_ktime(&w, "time", *last);
	}
	ff_jw_kstr(&w, "message", row);
	close_object(&w, out);
}

static void make_input(const struct labels *c, struct ff_buf *out)
{
	static const char *const of_start[] = {"world_size", "launcher", NULL};
	static const char *const of_end[] = {"exit_code", "state", NULL};
	struct ff_str rest = ff_buf_str(&c->replay);
	struct ff_jw w;
	bool timed = is_timed(c);
	ff_usec last = START;
	open_object(&w, out, "job-start");
	copy_keys(&w, c->root, of_start);
	close_object(&w, out);
	while (rest.n) {
		ptrdiff_t lf = ff_str_chr(rest, '\n', 0);
		size_t n = lf < 0 ? rest.n : (size_t)lf;
		add_line(out, c, ff_str_n(rest.p, n), timed, &last);
		rest = ff_str_skip(rest, lf < 0 ? n : n + 1);
	}
	const struct ff_json_node *end = ff_json_get(c->root, "job_end");
	if (!end || ff_json_is_null(end)) {
		return;
	}
	open_object(&w, out, "job-end");
	if (timed) {
		ff_jw_ktime(&w, "time", last);
	}
	copy_keys(&w, end, of_end);
	close_object(&w, out);
}

/* ---- the truth */

static bool same_ranks(const struct ff_verdict *v, const struct ff_json_node *ranks)
{
	size_t n = 0;
	for (const struct ff_json_node *r = ff_json_first(ranks); r; r = ff_json_next(r)) {
		int64_t rank = FF_UNKNOWN;
		if (!ff_json_int(r, &rank) || n >= v->ninitiating ||
			v->initiating[n++].rank != rank) {
			return false;
		}
	}
	return n == v->ninitiating;
}

static bool holds(const struct ff_json_node *value, const char *word)
{
	const char *text = ff_json_string(value);
	if (text || !word) {
		return text && word && !strcmp(text, word);
	}
	for (const struct ff_json_node *e = ff_json_first(value); e; e = ff_json_next(e)) {
		if (holds(e, word)) {
			return true;
		}
	}
	return false;
}

static bool reads(const struct ff_verdict *v, const struct ff_json_node *reading,
	const char *ranks, const char *node)
{
	const char *kind = ff_json_string(ff_json_get(reading, "verdict"));
	if (!kind || strcmp(kind, ff_verdict_kind_name(v->kind))) {
		return false;
	}
	return v->kind == FF_VERDICT_NODE ? holds(ff_json_get(reading, node), v->node)
					  : same_ranks(v, ff_json_get(reading, ranks));
}

static bool is_right(const struct labels *c, const struct ff_verdict *v)
{
	const struct ff_json_node *truth = ff_json_get(c->root, "truth");
	bool who = reads(v, truth, "initiating_ranks", "initiating_node");
	const struct ff_json_node *other = ff_json_first(ff_json_get(truth, "accept"));
	for (; other && !who; other = ff_json_next(other)) {
		who = reads(v, other, "ranks", "node");
	}
	const struct ff_json_node *fault = ff_json_get(truth, "fault");
	const struct ff_json_node *faults = ff_json_get(truth, "fault_accept");
	return who &&
		(v->kind == FF_VERDICT_CLEAN || holds(fault, v->fault) || holds(faults, v->fault) ||
			holds(fault, "unknown") || holds(faults, "unknown"));
}

/* ---- judging */

static struct ff_catalog *catalog;

static void setup(void)
{
	struct ff_err err = {{0}};
	int r = ff_catalog_load(
		ff_catalog_files, ff_catalog_files_count, ff_catalog_files_sha256, &catalog, &err);
	ck_assert_msg(r == 0, "%s", err.text);
}

static void teardown(void)
{
	ff_catalog_destroy(catalog);
}

static void feed_case(struct ff_runs *runs, const struct labels *c)
{
	struct ff_intake_options o = {.offline = true, .peer = "test", .trusted = true};
	struct ff_buf input = {0};
	ff_runs_init(runs, catalog);
	struct ff_intake *in = ff_intake_create(runs, &o, NULL, NULL);
	make_input(c, &input);
	ff_intake_feed(in, input.p, input.len, FF_TIME_NONE);
	ff_intake_end(in, FF_TIME_NONE);
	ff_intake_destroy(in);
	ff_buf_finish(&input);
	ck_assert_uint_eq(runs->nruns, 1);
}

static struct ff_verdict *judge(const struct ff_runs *runs, uint64_t rules_off)
{
	struct ff_ask ask = {.offline = true,
		.now_us = FF_TIME_NONE,
		.attempt = FF_UNKNOWN,
		.world = FF_UNKNOWN,
		.rules_off = rules_off};
	return ff_job_judge(runs->runs[0]->job, &ask);
}

START_TEST(right_with_all_rules_and_wrong_without_this_one)
{
	const char *name = rows[_i].name, *rule = ff_rule_name(rows[_i].rule);
	struct labels c;
	struct ff_runs runs;
	read_case(&c, name);
	feed_case(&runs, &c);
	struct ff_verdict *v = judge(&runs, 0);
	ck_assert_msg(is_right(&c, v), "%s: %s", name, v->summary);
	ck_assert_msg(!strcmp(v->why[0].rule, rule), "%s: decided by %s, not by %s", name,
		v->why[0].rule, rule);
	ff_verdict_destroy(v);
	v = judge(&runs, 1ull << rows[_i].rule);
	ck_assert_msg(!is_right(&c, v), "%s: right without %s: %s", name, rule, v->summary);
	ff_verdict_destroy(v);
	ff_runs_finish(&runs);
	finish_case(&c);
}
END_TEST

/* Bare text, without one fact: what stands there without a rank is not taken for the only rank's
 * where the text itself shows several processes or a launcher. */
static const char *const pasted[] = {
	"public/d-spawn-cannot-pickle-closure",      /* parent and child, one behind the other */
	"public/n-keepalive-spam-for-hours",         /* -6 of a local rank, nobody's words */
	"public/s-missing-checkpoint-exit-zero",     /* twice, and a world of two */
	"real-frameworks/fw-acc-config-unknown-key", /* raised in the launcher's script */
	"real-frameworks/fw-acc-fp8-missing",
	"real-frameworks/fw-shell-syntax-error",     /* four times */
	"real-mpi5/m5-ompi-no-exe-one",              /* a box of mpirun's */
};

static void paste(struct ff_runs *runs, const struct labels *c)
{
	struct ff_origin origin = {.name = "log", .source = "0", .kind = FF_STREAM_MIXED,
		.rank = FF_UNKNOWN, .local_rank = FF_UNKNOWN, .attempt = FF_UNKNOWN,
		.pid = FF_UNKNOWN};
	struct ff_intake_options o = {.offline = true, .peer = "test", .trusted = true,
		.default_job = "case", .name = "log", .origin = &origin};
	struct ff_str rest = ff_buf_str(&c->replay);
	ff_runs_init(runs, catalog);
	struct ff_intake *in = ff_intake_create(runs, &o, NULL, NULL);
	while (rest.n) {
		ptrdiff_t lf = ff_str_chr(rest, '\n', 0);
		size_t n = lf < 0 ? rest.n : (size_t)lf + 1;
		struct ff_str row = ff_str_n(rest.p, n);
		(void)column(&row);
		(void)column(&row);
		ff_intake_feed(in, row.p, row.n, FF_TIME_NONE);
		rest = ff_str_skip(rest, n);
	}
	ff_intake_end(in, FF_TIME_NONE);
	ff_intake_destroy(in);
}

START_TEST(nobody_is_blamed_by_a_text_that_names_nobody)
{
	struct labels c;
	struct ff_runs runs;
	read_case(&c, pasted[_i]);
	paste(&runs, &c);
	struct ff_verdict *v = judge(&runs, 0);
	bool blames = v->kind == FF_VERDICT_RANK || v->kind == FF_VERDICT_NODE;
	ck_assert_msg(!blames || is_right(&c, v), "%s: %s", pasted[_i], v->summary);
	ck_assert_msg(v->fault != NULL, "%s: no fault", pasted[_i]);
	ff_verdict_destroy(v);
	ff_runs_finish(&runs);
	finish_case(&c);
}
END_TEST

START_TEST(every_row_has_its_case)
{
	uint64_t seen = 0;
	for (size_t i = 0; i < N(rows); i++) {
		seen |= 1ull << rows[i].rule;
	}
	for (int r = 0; r < FF_RULE_undetermined; r++) {
		ck_assert_msg(seen >> r & 1, "%s", ff_rule_name((enum ff_rule_id)r));
	}
}
END_TEST

int main(void)
{
	Suite *s = suite_create("rule_cases");
	TCase *tc = tcase_create("rule_cases");
	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_add_loop_test(tc, right_with_all_rules_and_wrong_without_this_one, 0, N(rows));
	tcase_add_test(tc, every_row_has_its_case);
	tcase_add_loop_test(tc, nobody_is_blamed_by_a_text_that_names_nobody, 0, N(pasted));
	suite_add_tcase(s, tc);
	SRunner *r = srunner_create(s);
	srunner_run_all(r, CK_ENV);
	int failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
