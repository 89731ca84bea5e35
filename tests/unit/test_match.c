#include "core/event.h"

#include "base/mem.h"

#include <check.h>
#include <stdlib.h>

#define HEADER "Traceback (most recent call last):\n"
#define FRAME(line) "  File \"/job/train.py\", line " #line ", in f" #line "\n    code(" #line ")\n"
#define LIBRARY "  File \"/env/lib/python3.11/site-packages/x.py\", line 1, in lib\n    lib()\n"
#define CAUSE "\nThe above exception was the direct cause of the following exception:\n\n"
#define CONTEXT "\nDuring handling of the above exception, another exception occurred:\n\n"

/* {name} is an entry with one text per literal and pattern. */
#define E(id, role, more, matches) \
	"{\"id\":\"" id "\",\"title\":\"t\",\"category\":\"c\",\"role\":\"" role "\"," more \
	"\"domain\":\"user\",\"match\":[" matches "]}"
#define M(literal, pattern) "{\"literal\":\"" literal "\",\"pattern\":\"" pattern "\"}"

static const char catalog_json[] = "[" E("oom", "primary", "",
	M("CUDA out of memory",
		"CUDA out of memory(?:\\\\. Tried (?<size>\\\\d+ \\\\w+))?")) "," E("generic",
	"primary", "\"generic\":true,",
	M("RuntimeError: ", "RuntimeError: (?<msg>.*)")) "," E("key", "primary",
	"\"generic\":true,", M("KeyError: ", "KeyError: (?<key>.*)")) "," E("import", "primary", "",
	M("libcudart", "ImportError: (?<path>libcudart\\\\S*)")) "," E("shape", "primary", "",
	M("size mismatch for ", "size mismatch for (?<parameter>\\\\S+)")) "," E("peer",
	"secondary", "",
	M("closed by peer", "closed by peer(?: \\\\[(?<peer_addr>\\\\S+))?") "," M(
		"ChildFailedError", "ChildFailedError")) "," E("long", "primary", "",
	M("alpha beta", "alpha beta") "," M("alpha beta gamma", "alpha beta gamma") "," M(
		"beta gamma", "beta gamma") "," M("gamma delta", "gamma delta$")) "," E("block",
	"context", "\"kind\":\"exit\",",
	M("  rank ",
		"^  rank +: (?<rank>\\\\d+).*\\\\n  exitcode: (?<exit_code>-?\\\\d+)")) "," E("othe"
											      "r",
	"context", "\"kind\":\"fact\",",
	M("pid is ", "pid is (?<pid>\\\\S+)|pid is (?<node>.*)")) "," E("quiet", "noise", "",
	M("Compile with ", "Compile with ") "," M("FutureWarning", "FutureWarning")) "," E("twice",
	"context", "\"kind\":\"fact\",",
	M("twice ", "twice (?:a=(?<rank>\\\\d+)|b=(?<rank>\\\\d+))")) "," E("slow", "primary", "",
	M("aaaa", "(?:a+)+[bc]")) "," E("steps", "context", "\"kind\":\"fact\",",
	M("step ", "step (?<step>\\\\d+)") "," M(
		"iteration ", "iteration +(?<step>\\\\S+)/")) "," E("end", "context",
	"\"kind\":\"fact\",", M("finished", "(?<done>run finished)")) "]";

struct world {
	struct ff_catalog *catalog;
	struct ff_matcher *matcher;
};

static struct world world_create(void)
{
	struct world w = {.catalog = ff_catalog_create()};
	struct ff_err err = {0};
	ck_assert_msg(!ff_catalog_add(w.catalog, "test.json", ff_str_z(catalog_json), &err), "%s",
		err.text);
	ck_assert_int_eq(ff_catalog_seal(w.catalog, "0", &err), 0);
	w.matcher = ff_matcher_create(w.catalog);
	return w;
}

static void world_finish(struct world *w)
{
	ff_matcher_destroy(w->matcher);
	ff_catalog_destroy(w->catalog);
}

/* One record of these lines, as the joiner joins them, or a single line. */
static void make_record(struct ff_record *rec, struct ff_str all)
{
	struct ff_joiner j = {0};
	size_t from = 0;
	ff_record_finish(rec);
	while (from < all.n) {
		ptrdiff_t lf = ff_str_chr(all, '\n', from);
		size_t end = lf < 0 ? all.n : (size_t)lf;
		struct ff_line line = {
			.offset = from,
			.end = end + 1,
			.text = {all.p + from, end - from},
			.stamp = FF_STAMP_NONE,
		};
		bool closed;
		enum ff_join join = ff_joiner_feed(&j, &line, line.text, &closed);
		ck_assert_msg(!closed, "line at %zu closed the record: %.*s", from,
			FF_STR_ARG(line.text));
		if (join == FF_JOIN_NONE) {
			ck_assert_uint_eq(from, 0);
			ff_record_add(rec, &line, line.text, FF_LINE_TEXT);
		}
		from = end + 1;
	}
	if (j.open) {
		*rec = j.rec;
		j.rec = (struct ff_record){0};
	}
	ff_joiner_finish(&j);
}

static void on_hit(void *ud, const struct ff_record *rec, struct ff_hit *hit)
{
	struct ff_buf *out = ud;
	ff_buf_addf(out, "%zu %s%s", hit->line, hit->text ? hit->text->name : "?",
		hit->quoted ? "\"" : "");
	for (size_t i = 0; i < hit->fields.n; i++) {
		ff_buf_addf(
			out, " %s=%s", ff_field_name(hit->fields.v[i].id), hit->fields.v[i].value);
	}
	if (hit->frame.n) {
		ff_buf_addf(out, " [%.*s]", FF_STR_ARG(hit->frame));
	}
	ck_assert(ff_str_starts(hit->evidence, ff_record_line_text(rec, hit->line)));
	ff_buf_addc(out, '\n');
	ff_fields_finish(&hit->fields);
}

static unsigned run(struct world *w, struct ff_str text, struct ff_buf *out)
{
	struct ff_record rec = {0};
	make_record(&rec, text);
	ff_buf_add(out, "", 0);
	unsigned limited = ff_matcher_run(w->matcher, &rec, on_hit, out);
	ff_record_finish(&rec);
	return limited;
}

static const struct {
	const char *text, *hits;
} cases[] = {
	{"nothing here", ""},
	{"CUDA out of memory. Tried 2 GiB", "0 oom/1 size=2 GiB\n"},
	/* the literal is there, the pattern is not */
	{"gamma delta epsilon", ""},
	/* of several the longest literal, then the first */
	{"alpha beta gamma", "0 long/2\n"},
	{"alpha beta", "0 long/1\n"},
	{"beta gamma delta", "0 long/4\n"},
	/* a specific text beats a generic one of a longer literal */
	{"RuntimeError: size mismatch for w.x", "0 shape/1 parameter=w.x\n"},
	{"RuntimeError: no idea", "0 generic/1 msg=no idea\n"},
	/* an INT that is none has no value; of two groups of a field the one that took part */
	{"pid is <unknown>", "0 other/1\n"},
	{"pid is 12", "0 other/1 pid=12\n"},
	{"twice b=4", "0 twice/1 rank=4\n"},
	{"twice a=5", "0 twice/1 rank=5\n"},
	/* steps and ends are no hits */
	{"step 5", ""},
	{"run finished", ""},
	/* tracebacks: the deepest frame of the user's; source and headers are not offered */
	{HEADER FRAME(1) FRAME(2) LIBRARY "torch.OutOfMemoryError: CUDA out of memory. Tried 2 GiB",
		"7 oom/1 size=2 GiB [train.py:2 in f2: code(2)]\n"},
	{HEADER "  File \"a.py\", line 1, in CUDA out of memory\n    \"CUDA out of memory\"\nX: no",
		"3 ? cls=X msg=no [a.py:1 in CUDA out of memory: \"CUDA out of memory\"]\n"},
	{HEADER LIBRARY "a.b.Error", "3 ? cls=a.b.Error\n"},
	{HEADER FRAME(1) "X: no\nCompile with more\n",
		"3 ? cls=X msg=no [train.py:1 in f1: code(1)]\n"
		"4 quiet/1 [train.py:1 in f1: code(1)]\n"},
	{HEADER FRAME(1) "X: no\nalpha beta\n", "4 long/1 [train.py:1 in f1: code(1)]\n"},
	{HEADER FRAME(1) "FutureWarning: no", "3 quiet/2 [train.py:1 in f1: code(1)]\n"},
	{HEADER FRAME(1) "a.ChildFailedError: ", "3 peer/2 [train.py:1 in f1: code(1)]\n"},
	/* law 6: the first exception is the fault */
	{HEADER FRAME(1) "RuntimeError: first" CAUSE HEADER FRAME(2) "X: CUDA out of memory",
		"3 generic/1 msg=first [train.py:1 in f1: code(1)]\n"},
	{HEADER FRAME(1) "X: first" CONTEXT HEADER FRAME(2) "Y: CUDA out of memory",
		"3 ? cls=X msg=first [train.py:1 in f1: code(1)]\n"},
	{HEADER FRAME(1) "X: first" CAUSE HEADER FRAME(2) "Y: closed by peer",
		"3 ? cls=X msg=first [train.py:1 in f1: code(1)]\n9 peer/1 [train.py:2 in f2: "
		"code(2)]\n"},
	{HEADER FRAME(1) "Y: closed by peer [h" CAUSE HEADER FRAME(2) "X: CUDA out of memory",
		"3 peer/1 peer_addr=h [train.py:1 in f1: code(1)]\n"},
	/* but a mere lookup gives way to what is known, behind "During handling" only */
	{HEADER FRAME(1) "KeyError: 'a'" CONTEXT HEADER FRAME(2) "X: CUDA out of memory",
		"9 oom/1 [train.py:2 in f2: code(2)]\n"},
	{HEADER FRAME(1) "KeyError: 'a'" CAUSE HEADER FRAME(2) "X: CUDA out of memory",
		"3 key/1 key='a' [train.py:1 in f1: code(1)]\n"},
	{HEADER FRAME(1) "KeyError: 'a'" CONTEXT HEADER FRAME(2) "RuntimeError: generic",
		"3 key/1 key='a' [train.py:1 in f1: code(1)]\n"},
	{HEADER FRAME(1) "StopIteration" CONTEXT HEADER FRAME(2) "X: closed by peer",
		"9 peer/1 [train.py:2 in f2: code(2)]\n"},
	{HEADER FRAME(1) "ImportError: libcudart.so" CONTEXT HEADER FRAME(
		 2) "X: CUDA out of memory",
		"3 import/1 path=libcudart.so [train.py:1 in f1: code(1)]\n"},
	{HEADER FRAME(1) "queue.Empty" CONTEXT HEADER FRAME(2) "X: a" CONTEXT HEADER FRAME(
		 3) "Y: CUDA out of memory",
		"15 oom/1 [train.py:3 in f3: code(3)]\n"},
	{"Error in sys.excepthook:\n" HEADER FRAME(
		 1) "X: hook\n\nOriginal exception was:\n" HEADER FRAME(2) "Y: real",
		"10 ? cls=Y msg=real [train.py:2 in f2: code(2)]\n"},
	/* the inner traceback of a message decides over the one that carries it */
	{HEADER FRAME(1) "RuntimeError: Caught RuntimeError in DataLoader worker process "
			 "0.\nOriginal " HEADER FRAME(2) "RuntimeError: inner",
		"7 generic/1 msg=inner [train.py:2 in f2: code(2)]\n"},
	{HEADER FRAME(1) "RuntimeError: Caught X in DataLoader worker process 0.\nOriginal " HEADER
			LIBRARY "X: inner",
		"7 ? cls=X msg=inner [train.py:1 in f1: code(1)]\n"},
	{HEADER FRAME(1) "a.ProcessRaisedException: \n\n-- Process 3 terminated with the following "
			 "error:\n" HEADER FRAME(2) "X: CUDA out of memory",
		"9 oom/1\" [train.py:2 in f2: code(2)]\n"},
	{HEADER FRAME(1) "ray.exceptions.RayTaskError(X): ray::f()\n" FRAME(
		 2) "X: CUDA out of memory",
		"6 oom/1\" [train.py:2 in f2: code(2)]\n"},
	/* "(RANK n)" names whose it is; several are equals */
	{HEADER FRAME(1) "a.X: CheckpointException ranks:dict_keys([2, 5])\n"
			 "Traceback (most recent call last): (RANK 2)\n" FRAME(
				 2) "X: CUDA out of memory\n"
				    "Traceback (most recent call last): (RANK 5)\n" FRAME(
					    3) "KeyError: 'a'",
		"7 oom/1\" rank=2 [train.py:2 in f2: code(2)]\n11 key/1\" key='a' rank=5 "
		"[train.py:3 in f3: code(3)]\n"},
	/* of a group the first member */
	{"  + Exception Group " HEADER "  |   File \"a.py\", line 1, in f\n  |     x\n"
	 "  | ExceptionGroup: two (2 sub-exceptions)\n  +-+---------------- 1 ----------------\n"
	 "    | " HEADER "    |   File \"b.py\", line 2, in g\n    | ValueError: bad\n"
	 "    +---------------- 2 ----------------\n    | " HEADER
	 "    |   File \"c.py\", line 3, in h\n    | KeyError: 'a'\n    "
	 "+------------------------------------",
		"7 ? cls=ValueError msg=bad [b.py:2 in g]\n"},
	/* the table: rows over two lines, quoted tracebacks with a chain each */
	{"=====================================\nx FAILED\nFailures:\n[1]:\n  rank      : 3 "
	 "(local_rank: 1)\n"
	 "  exitcode: -9 (pid: 1)\n  traceback : " HEADER
	 "    File \"/job/train.py\", line 1, in f1\n"
	 "      code(1)\n  RuntimeError: first\n  \n"
	 "  The above exception was the direct cause of the following exception:\n  \n  " HEADER
	 "    File \"/job/train.py\", line 2, in f2\n  X: CUDA out of memory\n[0]:\n"
	 "  rank      : 4 (local_rank: 1)\n  exitcode: 1 (pid: 1)\n  traceback : " HEADER
	 "    File \"/job/train.py\", line 3, in f3\n  X: CUDA out of memory\n"
	 "=====================================",
		"4 block/1 exit_code=-9 rank=3\n9 generic/1\" msg=first rank=3 [train.py:1 in f1: "
		"code(1)]\n"
		"17 block/1 exit_code=1 rank=4\n21 oom/1\" rank=4 [train.py:3 in f3]\n"},
	/* faulthandler: the first user frame of the current thread */
	{"Fatal Python error: CUDA out of memory\n\nThread 0x1 (most recent call first):\n"
	 "  File \"/job/other.py\", line 1 in f\n\nCurrent thread 0x2 (most recent call first):\n"
	 "  File \"/lib/python3.11/a.py\", line 1 in g\n  File \"/job/train.py\", line 7 in h\n"
	 "  File \"/job/train.py\", line 9 in <module>\n\nThread 0x3 (most recent call first):\n"
	 "  File \"/job/last.py\", line 1 in f",
		"0 oom/1 [train.py:7 in h]\n"},
};

START_TEST(records_are_matched)
{
	struct world w = world_create();
	struct ff_buf out = {0};
	ck_assert_uint_eq(run(&w, ff_str_z(cases[_i].text), &out), 0);
	ck_assert_str_eq(out.p, cases[_i].hits);
	ff_buf_finish(&out);
	world_finish(&w);
}
END_TEST

START_TEST(a_pattern_that_runs_wild_is_stopped)
{
	struct world w = world_create();
	struct ff_buf text = {0}, out = {0};
	for (unsigned i = 0; i < 4000; i++) {
		ff_buf_addc(&text, 'a');
	}
	ck_assert_uint_eq(run(&w, ff_buf_str(&text), &out), 1);
	ck_assert_uint_eq(out.len, 0);
	ff_buf_finish(&text);
	ff_buf_finish(&out);
	world_finish(&w);
}
END_TEST

/* A pattern sees FF_SUBJECT_MAX bytes from its line's start. */
START_TEST(subjects_have_an_end)
{
	struct world w = world_create();
	for (int over = 0; over < 2; over++) {
		struct ff_buf text = {0}, out = {0};
		while (text.len < FF_SUBJECT_MAX - 10 + (size_t)over) {
			ff_buf_addc(&text, '.');
		}
		ff_buf_addz(&text, "alpha beta and more");
		(void)run(&w, ff_buf_str(&text), &out);
		ck_assert_str_eq(out.p, over ? "" : "0 long/1\n");
		ff_buf_finish(&text);
		ff_buf_finish(&out);
	}
	world_finish(&w);
}
END_TEST

START_TEST(nul_bytes_are_text)
{
	struct world w = world_create();
	struct ff_buf out = {0};
	(void)run(&w, FF_STR("a\0b CUDA out of memory. Tried 2 GiB"), &out);
	ck_assert_str_eq(out.p, "0 oom/1 size=2 GiB\n");
	ff_buf_finish(&out);
	world_finish(&w);
}
END_TEST

struct ids {
	uint32_t v[16];
	size_t n;
};

static void on_mark(void *ud, struct ff_mark mark)
{
	struct ids *ids = ud;
	if (ids->n < 16) {
		ids->v[ids->n++] = mark.id;
	}
}

START_TEST(progress_is_recognised)
{
	static const struct {
		const char *text;
		enum ff_progress progress;
		int64_t step;
	} lines[] = {
		{"step 12 loss", FF_PROGRESS_STEP, 12},
		{"step x", FF_PROGRESS_NONE, FF_UNKNOWN},
		{" iteration   7/ 100 |", FF_PROGRESS_STEP, 7},
		{" iteration   x/ 100 |", FF_PROGRESS_NONE, FF_UNKNOWN},
		{"run finished at step 3", FF_PROGRESS_DONE, 3},
		{"has finished", FF_PROGRESS_NONE, FF_UNKNOWN},
		{"", FF_PROGRESS_NONE, FF_UNKNOWN},
	};
	struct world w = world_create();
	for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++) {
		struct ff_str text = ff_str_z(lines[i].text);
		struct ids ids = {.n = 0};
		ff_scan_run(ff_catalog_scan(w.catalog), text.p, text.n, on_mark, &ids);
		enum ff_progress got = ff_matcher_progress(w.matcher, text, ids.v, ids.n);
		int64_t step = ff_matcher_step(w.matcher, text);
		ck_assert_msg(step == lines[i].step, "%s: %lld", lines[i].text, (long long)step);
		if (lines[i].step != FF_UNKNOWN || got != FF_PROGRESS_STEP) {
			ck_assert_msg(got == lines[i].progress, "%s", lines[i].text);
		}
	}
	world_finish(&w);
}
END_TEST

START_TEST(fields_are_ordered_and_replaced)
{
	struct ff_fields f = {0};
	ff_fields_set(&f, FF_F_size, FF_STR("2"));
	ff_fields_set(&f, FF_F_cls, FF_STR("a"));
	ff_fields_set(&f, FF_F_xid, FF_STR("79"));
	ff_fields_set(&f, FF_F_size, FF_STR("3"));
	ck_assert_uint_eq(f.n, 3);
	ck_assert(ff_str_eqz(ff_fields_get(&f, FF_F_size), "3"));
	ck_assert(ff_str_eqz(ff_fields_get(&f, FF_F_xid), "79"));
	ck_assert_uint_eq(ff_fields_get(&f, FF_F_rank).n, 0);
	ck_assert(f.v[0].id < f.v[1].id && f.v[1].id < f.v[2].id);
	ff_fields_finish(&f);
	ff_fields_finish(&f);
	ff_fields_finish(NULL);
}
END_TEST

static const struct {
	const char *a, *b;
	bool equal;
} pairs[] = {
	{"step 5 of 9", "step 12 of 100", true},
	{"Connection closed by peer [10.0.0.7]:41666", "Connection closed by peer [10.20.1.11]:1",
		true},
	{"at 0x7f5c0a7fe700", "at 0xdeadbeef", true},
	{"busId c1000", "busId 41000", true},
	{"commId 6e2f00d1", "commId 1234567", true},
	{"550e8400-e29b-41d4-a716-446655440000", "123e4567-e89b-12d3-a456-426614174000", true},
	{"/data/shard-0001/rank3.bin", "/data/shard-12/rank15.bin", true},
	{"shape [1, 2, 3]", "shape [4, 5]", true},
	{"12:00:08.123 x", "9:15:00 x", true},
	{"2.00 GiB", "20 GiB", true},
	{"exit -9", "exit -15", true},
	{"a fed cafe", "a bad face", false},
	{"cuda:0 and cpu", "cpu and cuda:0", false},
	{"KeyError: 'a'", "KeyError: 'b'", false},
};

START_TEST(texts_are_normalised)
{
	struct ff_buf a = {0}, b = {0};
	ff_event_normalise(ff_str_z(pairs[_i].a), &a);
	ff_event_normalise(ff_str_z(pairs[_i].b), &b);
	ck_assert_msg(
		pairs[_i].equal == ff_str_eq(ff_buf_str(&a), ff_buf_str(&b)), "%s | %s", a.p, b.p);
	ff_buf_finish(&a);
	ff_buf_finish(&b);
}
END_TEST

START_TEST(events_give_their_fields)
{
	struct ff_event e = {.fault = ff_xstrdup("x")};
	ff_fields_set(&e.fields, FF_F_rank, FF_STR(" 12 "));
	ff_fields_set(&e.fields, FF_F_pid, FF_STR("x"));
	ck_assert_int_eq(ff_event_int(&e, FF_F_rank, -1), 12);
	ck_assert_int_eq(ff_event_int(&e, FF_F_pid, -1), -1);
	ck_assert_int_eq(ff_event_int(&e, FF_F_xid, 7), 7);
	ck_assert_uint_eq(ff_event_field(&e, FF_F_xid).n, 0);
	ff_event_finish(&e);
	ff_event_finish(&e);
	ff_event_finish(NULL);
}
END_TEST

static Suite *suite(void)
{
	Suite *s = suite_create("match");
	TCase *t = tcase_create("match");
	tcase_add_loop_test(t, records_are_matched, 0, (int)(sizeof cases / sizeof cases[0]));
	tcase_add_test(t, a_pattern_that_runs_wild_is_stopped);
	tcase_add_test(t, subjects_have_an_end);
	tcase_add_test(t, nul_bytes_are_text);
	tcase_add_test(t, progress_is_recognised);
	tcase_add_test(t, fields_are_ordered_and_replaced);
	suite_add_tcase(s, t);
	t = tcase_create("event");
	tcase_add_loop_test(t, texts_are_normalised, 0, (int)(sizeof pairs / sizeof pairs[0]));
	tcase_add_test(t, events_give_their_fields);
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
