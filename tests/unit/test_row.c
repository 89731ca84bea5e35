#include "core/row.h"

#include "base/limits.h"
#include "base/mem.h"
#include "core/report.h"

#include "random.h"

#include <check.h>

#include <stdlib.h>

#define T ((ff_usec)1767225600 * FF_SECOND) /* 2026-01-01T00:00:00Z */

static struct ff_catalog *catalog;

static void setup(void)
{
	struct ff_err err = {0};
	int r = ff_catalog_load(ff_catalog_files, ff_catalog_files_count,
		ff_catalog_files_sha256, &catalog, &err);
	ck_assert_msg(r == 0, "%s", err.text);
}

static void teardown(void)
{
	ff_catalog_destroy(catalog);
}

/* Lines ('#': a digit) that make lanes, pairs of clocks, progress, folds, open records and bytes
 * that are no text. */
static const char *const lines[] = {
	"[rank#]: Traceback (most recent call last):\n",
	"[rank#]:   File \"train.py\", line 12, in step\n",
	"[rank#]:     loss.backward()\n",
	"[rank#]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.\n",
	"#: slurmstepd: error: *** STEP 17.0 ON n1 CANCELLED AT 2026-01-01T00:00:09 ***\n",
	"step # loss 2.31\n",
	"2026-01-01 00:00:0#,123 INFO train: epoch done\n",
	"RuntimeError: x\xff\xfe #\n",
	"[rank#]:[E101 00:00:01.903000131 ProcessGroupNCCL.cpp:616] [Rank 1] Watchdog caught "
	"collective "
	"operation timeout: WorkNCCL(SeqNum=808, OpType=ALLREDUCE, NumelIn=1, NumelOut=1, "
	"Timeout(ms)=600000) ran for 600020 milliseconds before timing out.\n",
	"a line without its end #",
};

static struct ff_job *make_job(struct random *r, size_t n)
{
	struct ff_job *job = ff_job_create(catalog, FF_STR("j"), FF_STR("0"));
	struct ff_origin o = {.name = "x.log", .source = "0", .kind = FF_STREAM_MIXED,
		.rank = FF_UNKNOWN, .local_rank = FF_UNKNOWN, .attempt = FF_UNKNOWN,
		.pid = FF_UNKNOWN};
	struct ff_stream *s = ff_job_stream(job, &o);
	for (size_t i = 0; i < n; i++) {
		size_t which = random_below(r, sizeof lines / sizeof *lines - (i + 1 < n));
		char *text = ff_xstrdup(lines[which]), *number = strchr(text, '#');
		if (number) {
			*number = (char)('0' + random_below(r, 9));
		}
		struct ff_chunk c = {s->fed, text, strlen(text),
			{T + (ff_usec)i * 1000, FF_TIME_NONE}, {FF_TAG_INIT, FF_UNKNOWN}};
		ff_job_feed(job, s, &c);
		free(text);
	}
	return job;
}

static void put(struct ff_job *job, struct ff_buf *out)
{
	struct ff_digest d = ff_job_digest(job);
	ff_row_put(job->streams[0], &d, out);
}

static bool take(struct ff_str row, struct ff_job **ret)
{
	struct random none = random_init(0);
	*ret = make_job(&none, 0);
	return ff_row_take((*ret)->streams[0], row);
}

static void verdict(struct ff_job *job, struct ff_buf *out)
{
	struct ff_ask ask = {.offline = true, .now_us = FF_TIME_NONE, .attempt = FF_UNKNOWN,
		.world = 9};
	ff_job_end_stream(job, job->streams[0], false, FF_TIME_NONE);
	struct ff_verdict *v = ff_job_judge(job, &ask);
	ff_report_json(v, out);
	ff_verdict_destroy(v);
}

/* What comes back gives the same row again, and the same verdict of a stream that stopped there. */
START_TEST(test_same)
{
	struct random r = random_init((uint64_t)_i);
	struct ff_job *job = make_job(&r, random_below(&r, 200)), *again;
	struct ff_buf row = {0}, second = {0}, a = {0}, b = {0};
	put(job, &row);
	ck_assert_msg(take(ff_buf_str(&row), &again), "seed %llu", (unsigned long long)r.seed);
	put(again, &second);
	ck_assert(ff_str_eq(ff_buf_str(&row), ff_buf_str(&second)));
	verdict(job, &a);
	verdict(again, &b);
	ck_assert_msg(!strcmp(a.p, b.p), "another verdict, seed %llu", (unsigned long long)r.seed);
	/* and only a new stream takes one */
	ck_assert(!ff_row_take(again->streams[0], ff_buf_str(&row)) || !row.len);
	ff_job_destroy(job);
	ff_job_destroy(again);
	ff_buf_finish(&row);
	ff_buf_finish(&second);
	ff_buf_finish(&a);
	ff_buf_finish(&b);
}
END_TEST

/* A row that was cut or changed gives some stream or none, and never more than its bytes. */
START_TEST(test_damaged)
{
	struct random r = random_init(1000);
	struct ff_job *job = make_job(&r, 60), *again;
	struct ff_buf row = {0}, out = {0};
	put(job, &row);
	for (size_t n = 0; n < row.len; n += 1 + n / 50) {
		char *cut = ff_xmemdup(row.p, n); /* so that a read beyond it is seen */
		ck_assert(!take(ff_str_n(cut, n), &again));
		verdict(again, &out);
		ff_job_destroy(again);
		free(cut);
	}
	for (int i = 0; i < 2000; i++) {
		char *p = ff_xmemdup(row.p, row.len);
		for (uint32_t k = 0; k <= random_below(&r, 4); k++) {
			p[random_below(&r, (uint32_t)row.len)] = (char)random_below(&r, 256);
		}
		(void)take(ff_str_n(p, row.len), &again);
		ff_buf_clear(&out);
		verdict(again, &out);
		ff_job_destroy(again);
		free(p);
	}
	ff_job_destroy(job);
	ff_buf_finish(&row);
	ff_buf_finish(&out);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("row");
	TCase *tc = tcase_create("row");
	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_add_loop_test(tc, test_same, 0, 30);
	tcase_add_test(tc, test_damaged);
	tcase_set_timeout(tc, 120);
	suite_add_tcase(s, tc);
	SRunner *sr = srunner_create(s);
	srunner_run_all(sr, CK_ENV);
	int failed = srunner_ntests_failed(sr);
	srunner_free(sr);
	return failed > 0;
}
