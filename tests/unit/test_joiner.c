#include "core/joiner.h"

#include <check.h>
#include <stdlib.h>

#define HEADER "Traceback (most recent call last):\n"
#define FRAME "  File \"/job/train.py\", line 7, in step\n    x = y\n"
#define FRAME2 "  File \"/job/train.py\", line 9, in <module>\n    step()\n         ^^^\n"
#define CAUSE "The above exception was the direct cause of the following exception:\n"
#define CONTEXT "During handling of the above exception, another exception occurred:\n"
#define BORDER "============================================================\n"
#define RULE "------------------------------------------------------------\n"

/* All lines of one lane, and the records they give: kind, then a letter for the role of each line:
 * T text, H header, F frame, S source, L link, b blank. handled !, quoted ". A line that is in no
 * record is a dot. */
static const struct {
	const char *text, *records;
} cases[] = {
	{"a\nb\n", ". . "},
	/* tracebacks */
	{HEADER FRAME "ValueError: bad\n", "traceback:HFST "},
	{HEADER FRAME2 FRAME
		"  [Previous line repeated 3 more times]\nKeyboardInterrupt\n12:00 x: y\n",
		"traceback:HFSSFSSTT "},
	{HEADER FRAME "ValueError: bad\nmore\nand more\nINFO: next\n", "traceback:HFSTTT . "},
	{HEADER FRAME "ValueError: bad\n2026-11-30 09:41:21,073 INFO next\n", "traceback:HFST . "},
	{HEADER FRAME "ValueError: bad\n\nnext\n", "traceback:HFST . "},
	{HEADER FRAME "ValueError: bad\n\n" HEADER FRAME "KeyError\n",
		"traceback:HFST traceback:HFST "},
	{HEADER HEADER FRAME "x.Error: a\n", "traceback:HHFST "},
	{HEADER FRAME "WARNING: not the end\n" FRAME "OSError: x\n",
		"traceback:HFS line:T traceback:FST "},
	{HEADER "  File \"f.py\", line 1\n    x = (\n        ^\nSyntaxError: '(' was never "
		"closed\n",
		"traceback:HFSST "},
	{"[rank1]: " HEADER
	 "[rank1]:   File \"a.py\", line 1, in f\n[rank1]: E: a\n\n[rank1]: more\n",
		"traceback:HFTbT "},
	/* chains */
	{HEADER FRAME "KeyError: 'a'\n\n" CAUSE "\n" HEADER FRAME "RuntimeError: b\nINFO: x\n",
		"traceback:HFSTbLbHFST . "},
	{HEADER FRAME "KeyError: 'a'\n\n" CONTEXT "\n" HEADER FRAME "RuntimeError: b\n\n" CAUSE
		      "\n" HEADER FRAME "OSError: c\n",
		"traceback:HFSTbLbHFSTbLbHFST "},
	{HEADER FRAME "KeyError: 'a'\n" CAUSE HEADER FRAME "RuntimeError: b\n",
		"traceback:HFSTLHFST "},
	{HEADER FRAME "KeyError: 'a'\n\n" CAUSE "\nsomething\n", "traceback:HFSTbL . "},
	{"Error in sys.excepthook:\n" HEADER FRAME "A: x\n\nOriginal exception was:\n" HEADER FRAME
	 "B: y\n",
		"traceback:THFSTbLHFST "},
	/* tracebacks inside messages */
	{HEADER FRAME
		"ValueError: Caught ValueError in DataLoader worker process 0.\nOriginal " HEADER
			FRAME "ValueError: x\n",
		"traceback:HFSTHFST "},
	{HEADER FRAME "a.ProcessRaisedException: \n\n-- Process 3 terminated with the following "
		      "error:\n" HEADER FRAME "ValueError: x\n",
		"traceback\":HFSTbTHFST "},
	{HEADER FRAME "CheckpointException: CheckpointException ranks:dict_keys([2])\n"
		      "Traceback (most recent call last): (RANK 2)\n" FRAME "OSError: x\n",
		"traceback:HFSTHFST "},
	{HEADER FRAME "ray.exceptions.RayTaskError(ValueError): ray::f() (pid=1)\n" FRAME
		      "ValueError: x\n",
		"traceback\":HFSTFST "},
	{HEADER FRAME "ValueError: x\n" FRAME "KeyError: y\n", "traceback:HFST traceback:FST "},
	{HEADER FRAME "OSError: x\n\"\"\"\n\n" CAUSE "\n" HEADER FRAME "OSError: x\n",
		"traceback:HFSTTbLbHFST "},
	/* C++ frames belong to the message */
	{HEADER FRAME
		"RuntimeError: x\nException raised from f at a.cpp:1 (most recent call first):\n"
		"frame #0: f() + 0x1 (0x7f in a.so)\n\nx\n",
		"traceback:HFSTFF . "},
	{HEADER FRAME "RuntimeError: CUDA error: x\nCUDA kernel errors might be a\n"
		      "Compile with `TORCH_USE_CUDA_DSA` to enable device-side assertions.\n\nx\n",
		"traceback:HFSTTT . "},
	/* who printed it */
	{"2026-11-30 09:41:21,073 ERROR x: failed\n" HEADER FRAME "E: a\n", "traceback!:THFST "},
	{"2026-11-30 09:41:21,073 ERROR x: failed\n" HEADER FRAME2 FRAME "E: a\n",
		"traceback:THFSSFST "},
	{"ERROR:root:boom\n" HEADER FRAME "E: a\n", "traceback!:THFST "},
	{"ERROR:root:boom\nERROR:root:bang\nx\n", "line:T line:T . "},
	{"2026-11-30 09:41:21.073 | ERROR | m:f:1 - x\n" HEADER "\n" FRAME2
	 "    └ <function main>\n\n> File \"a.py\", line 1, in f\n    x\n\nE: a\n",
		"traceback!:THbFSSSbFSbT "},
	{"2026-11-30 09:41:21,073 INFO x: fine\n" HEADER FRAME "E: a\n", ". traceback:HFST "},
	{"Process SpawnProcess-1:\n" HEADER FRAME "E: a\nProcess x-2:\n" HEADER FRAME "E: b\n",
		"traceback:THFST traceback:THFST "},
	{"Process 12 spawned:\nx\n", ". . "},
	{"Exception in thread T-1 (f):\n" HEADER FRAME "E: a\n", "traceback!:THFST "},
	{"Exception ignored in: <function f at 0x7f>\n" HEADER FRAME2 "E: a\n",
		"traceback!:THFSST "},
	{"Task exception was never retrieved\nfuture: <Task finished>\n" HEADER FRAME "E: a\n",
		"traceback!:TSHFST "},
	/* prefixes and indents */
	{"ERROR 05-01 12:00:01 [a.py:1] " HEADER
	 "ERROR 05-01 12:00:01 [a.py:1]   File \"a.py\", line 1, in f\n"
	 "ERROR 05-01 12:00:02 [a.py:1]     x\nERROR 05-01 12:00:02 [a.py:1] E: a\nother\n",
		"traceback!:HFST . "},
	{"  5%|#  | 3/60 " HEADER FRAME "E: a\n", "traceback:HFST "},
	{"    " HEADER "      File \"a.py\", line 1, in f\n        x\n    E: a\n  out\n",
		"traceback\":HFST . "},
	{"\x1b[36m" HEADER "  File \x1b[35m\"a.py\"\x1b[0m, line \x1b[35m1\x1b[0m, in f\n"
	 "\x1b[1;35mE\x1b[0m: a\n",
		"traceback:HFT "},
	/* exception groups */
	{"  + Exception Group " HEADER "  |   File \"a.py\", line 1, in f\n  |     x\n"
	 "  | ExceptionGroup: two (2 sub-exceptions)\n  +-+---------------- 1 ----------------\n"
	 "    | " HEADER "    |   File \"a.py\", line 2, in g\n    | ValueError: bad\n"
	 "    +---------------- 2 ----------------\n    | TypeError: int\n"
	 "    +------------------------------------\nx\n",
		"traceback:HFSTHHFTHTb . "},
	/* faulthandler */
	{"Fatal Python error: Segmentation fault\n\nCurrent thread 0x7f (most recent call first):\n"
	 "  File \"a.py\", line 1 in f\n\nExtension modules: a\nx\n",
		"faulthandler:TbFFbS . "},
	{"Timeout (0:05:00)!\nThread 0x7f (most recent call first):\n  <no Python frame>\n",
		"faulthandler:TFF "},
	/* C++ */
	{"[rank1]:[E501 12:00:08.123456789 ProcessGroupNCCL.cpp:607] NCCL error: x\n"
	 "ncclRemoteError: A call failed\nLast error:\nanything at all\nanything else\n",
		"cxx:TTTT . "},
	{"[E ProcessGroupNCCL.cpp:475] x\n[E ProcessGroupNCCL.cpp:476] y\nz\n", "cxx:T cxx:T . "},
	{"E20261130 07:37:46.770716  7838 ProcessGroupGloo.cpp:137] x\n\nException raised from f\n"
	 "frame #0: f\n<omitting python frames>\nx\n",
		"cxx:TbFFF . "},
	{"[I501 12:00:08.123456789 a.cpp:1] x\nE0501 12:00:08.123456 9 torch/a.py:1] x\n", ". . "},
	{"terminate called after throwing an instance of 'E'\n  what():  x\nframe #0: f\nx\n",
		"cxx:TTF . "},
	{"E1130 10:41:09.771669 39 coordination_service.cc:1549] unhealthy:\n2\n"
	 "The tasks have crashed. Check\nx\n",
		"cxx:TTT . "},
	{"[rank1]:[E501 12:00:08.123456789 P.cpp:607] Stack trace of the failed collective:\n"
	 "#0 f from a.py:1\nx\n",
		"cxx:TF . "},
	/* boxes of launchers */
	{RULE "prterun detected that one or more processes exited with non-zero status,\n"
	      "thus causing the job to be terminated. The first process to do so was:\n\n"
	      "   Process name: [prterun-a@1,5]\n   Exit code:    1\n" RULE "x\n",
		". box:TTbTTb . "},
	{"prterun noticed that process rank 4 with PID 472 on node node-b exited on\n"
	 "signal 11 (Segmentation fault).\n" RULE "x\n",
		"box:TTb . "},
	{"mpirun noticed that process rank 4 with PID 0 on node b exited on signal 9.\nsrun: x\n",
		"box:T . "},
	{"=====================================\n=   BAD TERMINATION OF ONE OF YOUR APPLICATION "
	 "PROCESSES\n=   PID 18511 RUNNING AT node-a\n=   EXIT CODE: 9\n"
	 "=====================================\nYOUR APPLICATION\n",
		"line:b box:TTTb . "},
	{"INFO:torch.api:[default] Rendezvous complete for workers. Result:\n  restart_count=0\n"
	 "  master_addr=a\n  global_ranks=[0, 1]\n\nx\n",
		"box:TTTT . . "},
	{"I1130 09:34:54.806000 14252 torch/api.py:553] [default] Rendezvous complete for workers. "
	 "Result:\nI1130 09:34:54.807000 14252 torch/api.py:553]   restart_count=0\n"
	 "I1130 09:34:54.807000 14252 torch/api.py:553] next\n",
		"box:TT . "},
	/* tables */
	{BORDER "train.py FAILED\n" RULE "Failures:\n  <NO_OTHER_FAILURES>\n" RULE
		"Root Cause (first observed failure):\n[0]:\n  time      : x\n  traceback : " HEADER
		"    File \"a.py\", line 1, in f\n      x\n  E: a\n  \n" BORDER "x\n",
		"table:bTbTTbTTTTFSTbb . "},
	{BORDER "welcome\n" BORDER "x\n", "line:b . line:b . "},
	{"***************************************\n       train.py FAILED            \n"
	 "=======================================\nRoot Cause:\n[0]:\n  time: x\n  rank: 0 "
	 "(local_rank: 0)\n"
	 "  msg: \"Signal 11\"\n=======================================\nOther Failures:\n"
	 "  <NO_OTHER_FAILURES>\n***************************************\nx\n",
		"table:bTbTTTTTbTTb . "},
	{HEADER FRAME "a.ChildFailedError: \n" BORDER "x FAILED\n" RULE "Failures:\n" BORDER,
		"traceback:HFST table:bTbTb "},
};

/* The entry's text behind torch's prefix, as core/line.h would give it. */
static struct ff_str entry(struct ff_str line)
{
	if (ff_str_starts(line, FF_STR("[rank1]: "))) {
		return ff_str_skip(line, 9);
	}
	return ff_str_starts(line, FF_STR("[rank1]:")) ? ff_str_skip(line, 8) : line;
}

static void show(const struct ff_record *r, struct ff_buf *out)
{
	ff_buf_addf(out, "%s%s%s:", ff_record_kind_name(r->kind), r->handled ? "!" : "",
		r->quoted ? "\"" : "");
	for (size_t i = 0; i < r->nlines; i++) {
		ff_buf_addc(out, "THFSLb"[r->lines[i].role]);
	}
	ff_buf_addc(out, ' ');
}

static void offer(struct ff_joiner *j, const struct ff_line *line, struct ff_buf *out)
{
	bool closed;
	bool takes = ff_joiner_takes(j, line, entry(line->text));
	enum ff_join join = ff_joiner_feed(j, line, entry(line->text), &closed);
	ck_assert_int_eq(takes, join == FF_JOIN_TAKEN);
	if (closed) {
		show(&j->rec, out);
		ff_joiner_clear(j);
		join = ff_joiner_feed(j, line, entry(line->text), &closed);
		ck_assert(!closed);
	}
	if (join == FF_JOIN_NONE) {
		ff_buf_addz(out, ". ");
	}
}

START_TEST(lines_are_joined)
{
	struct ff_joiner j = {0};
	struct ff_buf out = {0};
	struct ff_str all = ff_str_z(cases[_i].text);
	size_t from = 0;
	int64_t number = 1;
	while (from < all.n) {
		size_t lf = (size_t)ff_str_chr(all, '\n', from);
		struct ff_line line = {
			.offset = from,
			.end = lf + 1,
			.number = number++,
			.text = {all.p + from, lf - from},
			.stamp = FF_STAMP_NONE,
		};
		offer(&j, &line, &out);
		from = lf + 1;
	}
	if (j.open) {
		show(&j.rec, &out);
		ck_assert_uint_lt(j.first, j.last);
	}
	ck_assert_str_eq(out.p, cases[_i].records);
	ff_buf_finish(&out);
	ff_joiner_finish(&j);
}
END_TEST

static void give(struct ff_joiner *j, const char *text, uint64_t offset, bool *ret_closed)
{
	struct ff_line line = {
		.offset = offset,
		.end = offset + strlen(text) + 1,
		.number = 1,
		.text = ff_str_z(text),
		.stamp = FF_STAMP_NONE,
	};
	(void)ff_joiner_feed(j, &line, line.text, ret_closed);
}

START_TEST(records_have_a_most_of_lines)
{
	struct ff_joiner j = {0};
	bool closed;
	give(&j, "Fatal Python error: x", 0, &closed);
	for (unsigned i = 1; i < FF_RECORD_LINES; i++) {
		give(&j, "  File \"a.py\", line 1 in f", 100 * (uint64_t)i, &closed);
		ck_assert(!closed && !j.capped);
	}
	ck_assert_uint_eq(j.rec.nlines, FF_RECORD_LINES);
	give(&j, "  File \"a.py\", line 1 in f", 1000000, &closed);
	ck_assert(closed && j.capped);
	ff_joiner_clear(&j);
	ck_assert(!j.open && !j.capped);
	/* Closed by content at the cap is not cut. */
	give(&j, "Fatal Python error: x", 0, &closed);
	for (unsigned i = 1; i < FF_RECORD_LINES; i++) {
		give(&j, "  File \"a.py\", line 1 in f", 100 * (uint64_t)i, &closed);
	}
	give(&j, "something else", 1000000, &closed);
	ck_assert(closed && !j.capped);
	ff_joiner_finish(&j);
	ff_joiner_finish(NULL);
}
END_TEST

START_TEST(records_have_a_most_of_bytes)
{
	struct ff_joiner j = {0};
	struct ff_buf line = {0};
	bool closed = false;
	ff_buf_addz(&line, "  ");
	while (line.len < 32768) {
		ff_buf_addc(&line, 'x');
	}
	give(&j, "Fatal Python error: x", 0, &closed);
	unsigned taken = 0;
	while (!closed && taken < 100) {
		give(&j, line.p, 40000 * (uint64_t)(taken + 1), &closed);
		taken += !closed;
	}
	ck_assert_uint_eq(taken, 7);
	ck_assert(j.capped && j.rec.text.len <= FF_RECORD_BYTES);
	ff_buf_finish(&line);
	ff_joiner_finish(&j);
}
END_TEST

START_TEST(messages_have_a_most_of_lines)
{
	struct ff_joiner j = {0};
	bool closed = false;
	give(&j, "Traceback (most recent call last):", 0, &closed);
	give(&j, "  File \"a.py\", line 1, in f", 100, &closed);
	give(&j, "E: a", 200, &closed);
	ck_assert(ff_joiner_is_loose(&j));
	for (unsigned i = 0; i < 40; i++) {
		give(&j, "any text", 300 + 10 * (uint64_t)i, &closed);
		ck_assert(!closed);
	}
	give(&j, "any text", 1000, &closed);
	ck_assert(closed && !j.capped);
	ff_joiner_finish(&j);
}
END_TEST

START_TEST(records_end_by_distance)
{
	struct ff_joiner j = {0};
	bool closed;
	ck_assert(!ff_joiner_too_far(&j, UINT64_MAX));
	ck_assert_uint_eq(ff_joiner_deadline(&j), UINT64_MAX);
	give(&j, "Traceback (most recent call last):", 1000, &closed);
	uint64_t last = j.last;
	ck_assert(!ff_joiner_too_far(&j, last + FF_RECORD_IDLE));
	ck_assert(ff_joiner_too_far(&j, last + FF_RECORD_IDLE + 1));
	give(&j, "  File \"a.py\", line 1, in f", 1000 + FF_RECORD_SPAN - 100, &closed);
	ck_assert(!ff_joiner_too_far(&j, 1000 + FF_RECORD_SPAN));
	ck_assert(ff_joiner_too_far(&j, 1000 + FF_RECORD_SPAN + 1));
	ff_joiner_finish(&j);
}
END_TEST

START_TEST(classes_of_exceptions)
{
	static const struct {
		const char *text, *cls, *msg; /* cls NULL: none */
	} lines[] = {
		{"ValueError: x: y", "ValueError", "x: y"},
		{"KeyboardInterrupt", "KeyboardInterrupt", ""},
		{"AssertionError: ", "AssertionError", ""},
		{"a.b.C:", "a.b.C", ""},
		{"socket.gaierror: [Errno -3] x", "socket.gaierror", "[Errno -3] x"},
		{"f.<locals>.E: x", "f.<locals>.E", "x"},
		{"ray.E(ValueError): x", "ray.E(ValueError)", "x"},
		{"E2: <exception str() failed>", "E2", "<exception str() failed>"},
		{"srun: error: x", NULL, NULL},
		{"INFO: x", NULL, NULL},
		{"two words", NULL, NULL},
		{"http://x", NULL, NULL},
		{"1Error: x", NULL, NULL},
		{"a..b: x", NULL, NULL},
		{"", NULL, NULL},
	};
	struct ff_str cls, msg;
	for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++) {
		bool found = ff_record_exception(ff_str_z(lines[i].text), &cls, &msg);
		ck_assert_msg(found == (lines[i].cls != NULL), "%s", lines[i].text);
		if (found) {
			ck_assert(ff_str_eqz(cls, lines[i].cls) && ff_str_eqz(msg, lines[i].msg));
		}
	}
}
END_TEST

/* What opens a record holds an opener's literal: else the scan would pass over it. */
START_TEST(openers_hold_their_literals)
{
	static const char *const texts[] = {
		"Traceback (most recent call last):",
		"  File \"a\", line 1, in f",
		"> File \"a\", line 1, in f",
		"Fatal Python error: x",
		"Timeout (0:05:00)!",
		"terminate called recursively",
		"[E501 12:00:08.123456789 a.cpp:607] x",
		"[W socket.hpp:1] x",
		"E0501 12:00:08.1 9 a.cc:1] x",
		"Exception in thread x",
		"Exception ignored in: x",
		"Exception in callback x",
		"Task exception was never retrieved",
		"Process trainer-1:",
		"Error in sys.excepthook:",
		"ERROR:x:y",
		"[WARN] x",
		"WARNING:x:y",
		"CRITICAL:x:y",
		"FATAL: x",
		"2026-11-30 09:41:21,073 - x - ERROR - y",
		"=====================",
		"*********************",
	};
	for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
		struct ff_str text = ff_str_z(texts[i]);
		bool held = false;
		for (size_t k = 0; k < ff_record_nopeners; k++) {
			held = held || ff_str_find(text, ff_record_openers[k], 0) >= 0;
		}
		ck_assert_msg(held, "%s", texts[i]);
		struct ff_opening opening;
		ck_assert_msg(ff_record_opening(text, &opening), "%s", texts[i]);
	}
	for (size_t k = 0; k < ff_record_nopeners; k++) {
		ck_assert_uint_eq(strlen(ff_record_openers[k].p), ff_record_openers[k].n);
	}
	struct ff_opening opening;
	ck_assert(!ff_record_opening(FF_STR("nothing"), &opening));
	ck_assert(ff_record_opening(FF_STR("Fatal Python error: x"), &opening));
	ck_assert_int_eq(opening.kind, FF_RECORD_FAULTHANDLER);
}
END_TEST

static Suite *suite(void)
{
	Suite *s = suite_create("joiner");
	TCase *t = tcase_create("all");
	tcase_add_loop_test(t, lines_are_joined, 0, (int)(sizeof cases / sizeof cases[0]));
	tcase_add_test(t, records_have_a_most_of_lines);
	tcase_add_test(t, records_have_a_most_of_bytes);
	tcase_add_test(t, messages_have_a_most_of_lines);
	tcase_add_test(t, records_end_by_distance);
	tcase_add_test(t, classes_of_exceptions);
	tcase_add_test(t, openers_hold_their_literals);
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
