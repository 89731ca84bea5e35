#include "core/report_own.h"
#include "world.h"

static const struct world_stream ranks[] = {
	{"agent.log", FF_STREAM_AGENT, FF_UNKNOWN, "node-a", FF_UNKNOWN, FF_UNKNOWN},
	{"rank-0.log", FF_STREAM_RANK, 0, "node-a", 0, FF_UNKNOWN},
	{"rank-1.log", FF_STREAM_RANK, 1, "node-a", 1, FF_UNKNOWN},
	{"rank-2.log", FF_STREAM_RANK, 2, "node-a", 2, FF_UNKNOWN},
	{"rank-3.log", FF_STREAM_RANK, 3, "node-a", 3, FF_UNKNOWN},
};

static const struct world_event one_raises[] = {
	{"rank-2.log", 1000, "index-error", "IndexError: Target 57 is out of bounds.", NULL, 0, 0,
		0},
	{"rank-0.log", 2800, "gloo-peer-closed", "closed", "peer_addr=10.0.0.1]:5", 0, 0, 0},
	{"rank-1.log", 2900, "gloo-peer-closed", "closed", NULL, 0, 0, 0},
	{"agent.log", 3000, "agent-closing", "closing", "pid=9;signal=SIGTERM", 0, 0, 0},
	{"agent.log", 3100, "process-exit", "failed", "local_rank=0;exit_code=1;pid=7", 0, 0, 0},
	{"agent.log", 3200, "process-exit", "row", "rank=3;local_rank=3;exit_code=-15;pid=9", 0, 0,
		0},
};

static struct ff_verdict *judged(struct world *w, const struct world_event *rows, size_t n)
{
	world_init(w, 4, "torchrun");
	world_streams(w, ranks, N(ranks));
	world_events(w, rows, n);
	world_tell(w, "job@end", "state", "FAILED");
	return world_judge(w, 0);
}

static const struct ff_report_style plain = {.width = 100, .now_us = FF_TIME_NONE};

static char *text_of(const struct ff_verdict *v, const struct ff_report_style *style)
{
	struct ff_buf b = {0};
	ff_report_text(v, style, &b);
	return ff_buf_take(&b);
}

static char *json_of(const struct ff_verdict *v)
{
	struct ff_buf b = {0};
	ff_report_json(v, &b);
	return ff_buf_take(&b);
}

/* At most 30 lines of 100 columns; no control characters but LF. */
static void check_screen(const char *text, unsigned width)
{
	unsigned lines = 0, columns = 0;
	for (const unsigned char *c = (const unsigned char *)text; *c; c++) {
		if (*c == '\n') {
			lines++;
			columns = 0;
			continue;
		}
		ck_assert_msg(*c >= 0x20 && *c != 0x7f, "control %02x in:\n%s", *c, text);
		columns += (*c & 0xc0) != 0x80;
		ck_assert_msg(columns <= width, "line %u is too long:\n%s", lines + 1, text);
	}
	ck_assert_msg(lines <= 30, "%u lines:\n%s", lines, text);
}

START_TEST(screen_of_a_rank)
{
	static const char want[] =
		"4711  4 ranks, 1 node   FAILED 00:00:03Z   run 0, attempt 0\n"
		"\n"
		"RANK 2: title of index-error                  node-a, local rank 2"
		"                    certain, final\n"
		"  rank 2 is the only one with a fault of its own; the others only report\n"
		"DO NOW  running it again fails the same way   [fix-code]\n"
		"\n"
		"PROOF   00:00:01.000Z  rank 2  node-a/rank-2.log:1\n"
		"        first of 4 by 1.8 s; one clock, the collector's\n"
		"        | IndexError: Target 57 is out of bounds.\n"
		"THEN    3 ranks, collateral, +1.8 s to +1.9 s: 2 gloo-peer-closed, 1 SIGTERM\n"
		"NOT     rank 0: torchrun names it: whole seconds, a tie goes to the lowest local "
		"rank; it only says\n"
		"        that its peer closed the connection\n"
		"\n"
		"CAUSE   Cause of index-error\n"
		"VERIFY  true\n"
		"        expect nothing\n"
		"\n"
		"SEEN    4 of 4 ranks, all to their end; 5 streams, job end\n"
		"\n"
		"next: analyze --report md PATH | analyze --ranks PATH | "
		"analyze --timeline PATH\n";
	struct world w;
	struct ff_verdict *v = judged(&w, one_raises, N(one_raises));
	char *text = text_of(v, &plain);
	ck_assert_str_eq(text, want);
	check_screen(text, 100);
	free(text);
	struct ff_report_style brief = plain;
	brief.brief = true;
	brief.now_us = world_us(3200 + 38 * 60000);
	text = text_of(v, &brief);
	ck_assert_ptr_nonnull(strstr(text, "FAILED 00:00:03Z, 38 min ago   run 0"));
	ck_assert_ptr_null(strstr(text, "PROOF"));
	free(text);
	ff_verdict_destroy(v);
	world_finish(&w);
}
END_TEST

/* Whose job it is, as it was told: shown, and no way out of its line. */
START_TEST(the_title_names_job_and_user)
{
	struct world w;
	world_init(&w, 2, NULL);
	world_tell(&w, "job@start", "name", "lm\x1b[2J\nDO NOW  reboot");
	world_tell(&w, "job@start", "user", "a-user-with-a-name-of-more-than-32-bytes");
	struct ff_verdict *v = world_judge(&w, 0);
	char *text = text_of(v, &plain);
	static const char want[] = "4711 lm\\x1b[2J\\x0aDO NOW  reboot  "
				   "a-user-with-a-name-of-more-than-  2 ranks";
	ck_assert_msg(!strncmp(text, want, strlen(want)), "%s", text);
	check_screen(text, 100);
	free(text);
	ff_verdict_destroy(v);
	world_finish(&w);
}
END_TEST

/* A run that goes on, at a time. */
static char *live_screen(const struct world_event *rows, size_t n, int64_t now_ms)
{
	struct world w;
	world_init(&w, 4, "torchrun");
	world_streams(&w, ranks, N(ranks));
	for (size_t i = 0; i < w.n; i++) {
		w.streams[i]->state = FF_STREAM_OPEN;
	}
	for (int64_t ms = 1000; ms <= 9000; ms += 1000) {
		world_progress(&w, "rank-0.log", ms, false);
		world_progress(&w, "rank-1.log", ms, false);
		world_progress(&w, "rank-2.log", ms, false);
	}
	for (size_t i = 0; i < 5; i++) {
		for (size_t j = 0; j < w.streams[i]->nlanes; j++) {
			w.streams[i]->lanes[j]->cadence[20] = 8;
		}
	}
	world_events(&w, rows, n);
	struct ff_ask ask = {
		.now_us = world_us(now_ms), .attempt = FF_UNKNOWN, .world = FF_UNKNOWN};
	struct ff_verdict *v = world_judge_as(&w, &ask);
	struct ff_report_style style = plain;
	style.now_us = ask.now_us;
	char *text = text_of(v, &style);
	ff_verdict_destroy(v);
	world_finish(&w);
	return text;
}

START_TEST(screens_of_a_run_that_goes_on)
{
	static const char title[] = "4711  4 ranks, 1 node   ";
	static const struct {
		int64_t now_ms;
		size_t nrows;
		const char *state, *who, *more;
	} rows[] = {
		{10000, 0, "RUNNING   run 0", "\n\nNOTHING HAS FAILED so far  ",
			"next: report 4711"},
		{9000 + 345000, 0, "RUNNING, STALLED 6 min   run 0",
			"\n\nNOTHING HAS FAILED, but no rank makes a step  ",
			"next: report 4711"},
		{12000, 1, "ENDING   run 0", "\n\nRANK 2: title of index-error  ", "not final\n"},
	};
	static const struct world_event fails = {
		"rank-2.log", 11000, "index-error", "IndexError", NULL, 0, 0, 0};
	for (size_t i = 0; i < N(rows); i++) {
		char *text = live_screen(&fails, rows[i].nrows, rows[i].now_ms);
		check_screen(text, 100);
		ck_assert_msg(!strncmp(text, title, strlen(title)), "%s", text);
		ck_assert_msg(strstr(text, rows[i].state) != NULL, "%s", text);
		ck_assert_msg(strstr(text, rows[i].who) != NULL, "%s", text);
		ck_assert_msg(strstr(text, rows[i].more) != NULL, "%s", text);
		bool quiet = !rows[i].nrows; /* then nothing is said about anybody */
		ck_assert_msg(quiet != (strstr(text, "THEN") != NULL), "%s", text);
		ck_assert_msg(!strstr(text, "undetermined") && !strstr(text, "SETTLE"), "%s", text);
		free(text);
	}
}
END_TEST

/* A wait whose end has no time is told by its length; one that is longer than any is not told. */
START_TEST(waits_without_time_and_of_any_length)
{
	static const struct {
		int64_t ms;
		const char *fields, *want;
	} rows[] = {
		{5000, "ran_for=3000", "waiting since 00:00:02.0Z: 1 timeout of 3.0 s"},
		{NEVER, "ran_for=3000", "1 timeout of 3.0 s"},
		{NEVER, "ran_for=9223372036854775807", NULL},
		{5000, "ran_for=9223372036854775807", NULL},
		{5000, "ran_for=9123372036854775", NULL},
		{5000, "ran_for=-9223372036854775808", NULL},
	};
	for (size_t i = 0; i < N(rows); i++) {
		struct world_event row = {"rank-1.log", rows[i].ms, "straggler-hang", "timed out",
			rows[i].fields, 0, 0, 0};
		struct world w;
		struct ff_verdict *v = judged(&w, &row, 1);
		char *text = text_of(v, &plain);
		check_screen(text, 100);
		bool said = strstr(text, "timeout of ") != NULL;
		ck_assert_msg(said == (rows[i].want != NULL), "row %zu: %s", i, text);
		ck_assert_msg(!said || strstr(text, rows[i].want), "row %zu: %s", i, text);
		free(text);
		ff_verdict_destroy(v);
		world_finish(&w);
	}
}
END_TEST

START_TEST(hostile_text_cannot_leave_its_line)
{
	static const char evil[] = "IndexError: \x1b[2J\x1b]0;owned\x07 \xff\xfe \xe2\x80\xae "
				   "gnp.exe \xc2\x9b ok \xc3\xa9\r"
				   "\x08\x7f\n\nDO NOW  reformat the disk\n\xf0\x9f\xa7\x9f";
	struct world_event row = {"rank-2.log", 1000, "index-error", evil, NULL, 0, 0, 0};
	struct world w;
	struct ff_verdict *v = judged(&w, &row, 1);
	char *text = text_of(v, &plain);
	check_screen(text, 100);
	ck_assert_ptr_nonnull(strstr(text, "        | IndexError: \\x1b[2J\\x1b]0;owned\\x07"));
	ck_assert_ptr_nonnull(strstr(text, "        | DO NOW  reformat the disk\n"));
	ck_assert_ptr_null(strstr(text, "\nDO NOW  reformat"));
	ck_assert_ptr_nonnull(strstr(text, "\\xe2\\x80\\xae"));
	ck_assert_ptr_nonnull(strstr(text, "\\xc2\\x9b"));
	free(text);
	/* as JSON it is UTF-8 without raw controls */
	char *json = json_of(v);
	for (const unsigned char *c = (const unsigned char *)json; *c; c++) {
		ck_assert(*c >= 0x20);
	}
	ck_assert_ptr_nonnull(strstr(json, "\\u001b[2J"));
	free(json);
	ff_verdict_destroy(v);
	world_finish(&w);
}
END_TEST

START_TEST(long_text_is_cut)
{
	char *longest = ff_xmalloc(2001);
	memset(longest, 'x', 2000);
	longest[2000] = '\0';
	for (size_t i = 0; i < 20; i++) {
		longest[100 * i + 99] = '\n';
	}
	struct world_event row = {"rank-2.log", 1000, "index-error", longest, NULL, 0, 0, 0};
	struct world w;
	struct ff_verdict *v = judged(&w, &row, 1);
	static const unsigned widths[] = {60, 80, 100, 200};
	for (size_t i = 0; i < N(widths); i++) {
		struct ff_report_style style = plain;
		style.width = widths[i];
		char *text = text_of(v, &style);
		check_screen(text, widths[i]);
		free(text);
	}
	ff_verdict_destroy(v);
	world_finish(&w);
	free(longest);
}
END_TEST

/* ---- pieces */

static const struct {
	const char *text;
	unsigned room;
	const char *shown; /* by ff_report_put */
	size_t taken;      /* by ff_report_break */
} pieces[] = {
	{"", 10, "", 0},
	{"abc", 3, "abc", 3},
	{"abcd", 3, "a..", 3},
	{"abcd", 1, "a", 1},
	{"one two three", 8, "one tw..", 7},
	{"a bcdefghij", 8, "a bcde..", 8}, /* a blank in the first half breaks nothing */
	{"tab\there", 10, "tab here", 8},
	{"\x1b[31m", 10, "\\x1b[31m", 5},
	{"\x1b\x1b\x1b", 9, "\\x1b..", 2},
	{"\xff", 4, "\\xff", 1},
	{"\xff", 3, "..", 1},
	{"\xe4\xb8\xad\xe6\x96\x87", 4, "\xe4\xb8\xad\xe6\x96\x87", 6}, /* two columns each */
	{"\xe4\xb8\xad\xe6\x96\x87", 3, "..", 3},
	{"\xf0\x9f\x94\xa5!", 2, "..", 4},
	{"\xc2\xad", 8, "\\xc2\\xad", 2},         /* a soft hyphen */
	{"\xf3\xa0\x80\xa1", 16, "\\xf3\\xa0\\x80\\xa1", 4}, /* a tag character */
	{"\xed\xa0\x80", 12, "\\xed\\xa0\\x80", 3},  /* a surrogate */
	{"\xc0\x80", 8, "\\xc0\\x80", 2},
};

START_TEST(text_fits_its_room)
{
	struct ff_buf b = {0};
	unsigned used = ff_report_put(&b, ff_str_z(pieces[_i].text), pieces[_i].room);
	ck_assert_str_eq(b.p ? b.p : "", pieces[_i].shown);
	ck_assert_uint_le(used, pieces[_i].room);
	size_t n = ff_report_break(ff_str_z(pieces[_i].text), pieces[_i].room);
	ck_assert_uint_eq(n, pieces[_i].taken);
	ff_buf_finish(&b);
}
END_TEST

START_TEST(ranks_are_folded_and_cut)
{
	static const int32_t list[] = {0, 1, 2, 5, 7, 8, 11};
	static const struct {
		size_t n, parts;
		const char *want;
	} rows[] = {
		{0, 0, ""}, {1, 1, "0"}, {3, 1, "0-2"}, {7, 0, "0-2,5,7-8,11"},
		{7, 4, "0-2,5,7-8,11"}, {7, 3, "0-2,5,7-8,..."}, {7, 1, "0-2,..."},
	};
	for (size_t i = 0; i < N(rows); i++) {
		struct ff_buf b = {0};
		ff_report_ranges(&b, list, rows[i].n, rows[i].parts);
		ck_assert_str_eq(b.p ? b.p : "", rows[i].want);
		ff_buf_finish(&b);
	}
}
END_TEST

static const struct world_event memory_runs_out[] = {
	{"rank-2.log", 1000, "cuda-oom", "out of memory", "device=3;pid=77", 0, 0, 0},
	{"rank-0.log", 2000, "gloo-peer-closed", "closed", NULL, 0, 0, 0},
};

/* Node, job and process of a command come from typed fields, and only where they are plain. */
START_TEST(commands_are_filled_in)
{
	static const struct {
		const char *node, *job, *run, *want;
	} rows[] = {
		{"hgx-7", "4711", "dmesg -T | tail", "ssh hgx-7 'dmesg -T | tail'"},
		{"hgx-7", "4711", "df -h '/x'", "df -h '/x'"},
		{"hgx-7", "4711", "ping NODE; sinfo -n NODE", "ping hgx-7; sinfo -n hgx-7"},
		{"hgx-7", "4711", "ls NODES", "ssh hgx-7 'ls NODES'"},
		{"hgx-7", "4711", "sacct -j $SLURM_JOB_ID JOB", "sacct -j 4711 4711"},
		{"hgx-7", "stdin", "sacct -j $SLURM_JOB_ID", "sacct -j JOB"},
		{"$(reboot)", "a;b", "dmesg NODE JOB", "dmesg NODE JOB"},
		{"-oProxyCommand=x", "-x", "dmesg NODE JOB", "dmesg NODE JOB"},
		{NULL, "4711", "ls PATH PID", "ls PATH PID"},
	};
	for (size_t i = 0; i < N(rows); i++) {
		const struct ff_verify verify = {rows[i].run, "nothing"};
		struct ff_who who = {2, 2, rows[i].node, NULL};
		struct ff_verdict v = {.job = rows[i].job,
			.kind = FF_VERDICT_RANK,
			.initiating = &who,
			.ninitiating = 1,
			.verify = &verify,
			.nverify = 1};
		struct ff_buf b = {0};
		ff_report_verify(&v, 0, &b);
		ck_assert_str_eq(b.p, rows[i].want);
		ff_buf_finish(&b);
	}
}
END_TEST

START_TEST(first_is_said_only_where_it_is_proven)
{
	struct world w;
	struct ff_verdict *v = judged(&w, memory_runs_out, N(memory_runs_out));
	struct ff_buf b = {0};
	ff_report_shown(v, &b);
	ck_assert_str_eq(b.p, "first of 2 by 1.0 s; one clock, the collector's\n");
	ff_buf_finish(&b);
	ff_report_where(v, &b);
	ck_assert_str_eq(b.p, "node-a, GPU 3 (local rank 2)");
	ff_buf_finish(&b);
	ff_verdict_destroy(v);
	world_finish(&w);
	struct world_event rows[2] = {memory_runs_out[0], memory_runs_out[1]};
	/* before, within the transit, unknown */
	static const int64_t too_early[] = {900, 1001, NEVER};
	for (size_t i = 0; i < N(too_early); i++) {
		rows[1].ms = too_early[i];
		v = judged(&w, rows, N(rows));
		ff_report_shown(v, &b);
		ck_assert_msg(!b.len || !strstr(b.p, "first of"), "%s", b.p);
		ff_buf_finish(&b);
		ff_verdict_destroy(v);
		world_finish(&w);
	}
}
END_TEST

/* Every key of the verdict, in the order of shared/README.md 6.5. */
static const char *const keys[] = {"schema", "job", "run", "attempt", "as_of", "world_size",
	"state", "final", "verdict", "confidence", "initiating", "node", "fault", "summary",
	"cause", "fix", "verify", "action", "operand", "collateral", "ranks", "missing", "why",
	"why_not", "attempts", "events", "clock", "program", "catalog"};

static void check_keys(const char *json)
{
	struct ff_err err = {{0}};
	struct ff_json *doc = ff_json_parse(ff_str_z(json), &err);
	ck_assert_msg(doc != NULL, "%s", err.text);
	const struct ff_json_node *v = ff_json_first(ff_json_root(doc));
	for (size_t i = 0; i < N(keys); i++, v = ff_json_next(v)) {
		ck_assert_msg(v && !strcmp(ff_json_key(v), keys[i]), "no %s", keys[i]);
	}
	ck_assert_ptr_null(v);
	ff_json_destroy(doc);
}

START_TEST(json_has_every_key_in_order)
{
	struct world w;
	struct ff_verdict *v = judged(&w, one_raises, N(one_raises));
	char *json = json_of(v);
	check_keys(json);
	ck_assert_ptr_nonnull(strstr(json,
		"\"initiating\":[{\"rank\":2,\"node\":\"node-a\","
		"\"local_rank\":2,\"event\":\"node-a/rank-2.log@0\"}]"));
	ck_assert_ptr_nonnull(strstr(json, "\"as_of\":\"2026-01-01T00:00:03.200000Z\""));
	ck_assert_ptr_nonnull(strstr(json, "{\"rank\":3,\"status\":\"torn-down\",\"fault\":null,"));
	ck_assert_ptr_nonnull(strstr(json, "\"after_us\":1800000,"));
	ck_assert_ptr_nonnull(strstr(json, "\"operand\":null"));
	ck_assert_ptr_nonnull(strstr(json,
		"\"clock\":[{\"node\":\"node-a\",\"offset_us\":null,"
		"\"bound_us\":null}]"));
	free(json);
	ff_verdict_destroy(v);
	world_finish(&w);
	v = judged(&w, NULL, 0);
	json = json_of(v);
	check_keys(json);
	ck_assert_ptr_nonnull(strstr(json, "\"confidence\":null"));
	ck_assert_ptr_nonnull(strstr(json, "\"fault\":null,\"summary\":\"can't tell"));
	free(json);
	ff_verdict_destroy(v);
	world_finish(&w);
}
END_TEST

START_TEST(event_as_json)
{
	static const struct world_event row = {"rank-0.log", 2800, "gloo-peer-closed", "closed",
		"peer_addr=10.0.0.1]:5;rank=0", FF_TAG_GLOBAL, 0, 0};
	static const char want[] =
		"{\"id\":\"node-a/rank-0.log@0\",\"kind\":\"fault\",\"fault\":\"gloo-peer-closed\","
		"\"role\":\"secondary\",\"signature\":\"gloo-peer-closed/1\","
		"\"fields\":{\"peer_addr\":\"10.0.0.1]:5\",\"rank\":0},"
		"\"tag\":{\"kind\":\"global\",\"value\":0},\"count\":3,"
		"\"last\":{\"offset\":900,\"line\":10,\"arrived\":\"2026-01-01T00:00:05.000000Z\","
		"\"captured\":null},\"stream\":\"rank-0.log\",\"offset\":0,\"line\":1,"
		"\"at\":{\"offset\":0,\"line\":1},\"arrived\":\"2026-01-01T00:00:02.800000Z\","
		"\"captured\":null,\"claimed\":\"--11-30T09:28:50.687000\",\"text\":\"closed\"}";
	struct world w;
	world_init(&w, 4, "torchrun");
	world_streams(&w, ranks, N(ranks));
	world_event(&w, &row);
	struct ff_event *e = &world_stream(&w, "rank-0.log")->events[0];
	e->count = 3;
	e->last = (struct ff_place){900, 10, {world_us(5000), FF_TIME_NONE}};
	e->claimed = (struct ff_claimed){
		.us = ff_usec_civil(2000, 11, 30, 9, 28, 50, 687000), .grain = 1000};
	struct ff_verdict *v = world_judge(&w, 0);
	struct ff_buf b = {0};
	struct ff_jw jw;
	ff_jw_init(&jw, &b);
	ff_report_event(&v->timeline.all[0], &jw);
	ck_assert_str_eq(b.p, want);
	ff_buf_finish(&b);
	ff_verdict_destroy(v);
	world_finish(&w);
}
END_TEST

START_TEST(control_objects_are_events_too)
{
	struct world w;
	world_init(&w, 2, "torchrun");
	world_streams(&w, ranks, 3);
	static const struct world_event row = {
		"rank-0.log", 2800, "gloo-peer-closed", "closed", NULL, 0, 0, 0};
	world_event(&w, &row);
	world_tell(&w, "exit@0.1", "rank", "1");
	world_tell(&w, "exit@0.1", "attempt", "0");
	world_tell(&w, "exit@0.1", "signal", "9");
	struct ff_verdict *v = world_judge(&w, 0);
	ck_assert_str_eq(v->fault, "sigkill");
	ck_assert_str_eq(v->initiating[0].event, "exit@0.1");
	char *json = json_of(v);
	ck_assert_ptr_nonnull(
		strstr(json, "\"events\":[{\"id\":\"exit@0.1\",\"kind\":\"exit\",\"fault\":null,"));
	ck_assert_ptr_nonnull(
		strstr(json, "\"stream\":null,\"offset\":null,\"line\":null,\"at\":null"));
	free(json);
	ff_verdict_destroy(v);
	world_finish(&w);
}
END_TEST

static char *json_of_world(int world_size, bool unfolded)
{
	struct world w;
	world_init(&w, world_size, "torchrun");
	world_streams(&w, ranks, N(ranks));
	world_events(&w, one_raises, N(one_raises));
	world_tell(&w, "job@end", "state", "FAILED");
	struct ff_verdict *v = world_judge(&w, 0);
	v->unfolded = unfolded;
	char *json = json_of(v);
	ff_verdict_destroy(v);
	world_finish(&w);
	return json;
}

START_TEST(many_ranks_are_folded)
{
	char *json = json_of_world(4096, false);
	ck_assert_ptr_nonnull(strstr(json, "{\"rank\":4095,\"status\":\"missing\"}"));
	free(json);
	json = json_of_world(4097, false);
	ck_assert_ptr_null(strstr(json, "\"rank\":4095"));
	ck_assert_ptr_nonnull(strstr(json, "{\"ranks\":\"4-4096\",\"status\":\"missing\"}"));
	ck_assert_ptr_nonnull(strstr(json, "\"no output of ranks 4-4096\""));
	check_keys(json);
	free(json);
	json = json_of_world(4097, true);
	ck_assert_ptr_nonnull(strstr(json, "{\"rank\":4096,\"status\":\"missing\"}"));
	free(json);
}
END_TEST

/* ---- job: streams by (node, name, source) */

static struct ff_origin origin_of(const char *node, const char *name, const char *source)
{
	return (struct ff_origin){.name = name,
		.node = node,
		.source = source,
		.kind = FF_STREAM_MIXED,
		.rank = FF_UNKNOWN,
		.local_rank = FF_UNKNOWN,
		.attempt = FF_UNKNOWN,
		.pid = FF_UNKNOWN};
}

START_TEST(streams_are_told_apart_and_filled_in)
{
	struct world w;
	world_init(&w, 0, NULL);
	struct ff_job *job = ff_job_create(w.catalog, FF_STR("j"), FF_STR("0"));
	struct ff_origin o = origin_of("n", "log", "s1");
	struct ff_stream *a = ff_job_stream(job, &o);
	ck_assert_ptr_eq(ff_job_stream(job, &o), a);
	ck_assert_ptr_eq(ff_job_find_stream(job, "n", "log", "s1"), a);
	ck_assert_ptr_null(ff_job_find_stream(job, NULL, "log", "s1"));
	o.rank = 3;
	o.kind = FF_STREAM_RANK;
	o.kind_declared = true;
	ck_assert_ptr_eq(ff_job_stream(job, &o), a);
	ck_assert_int_eq(a->origin.rank, 3);
	ck_assert_int_eq(a->origin.kind, FF_STREAM_RANK);
	o.rank = 5; /* what was said holds */
	ck_assert_int_eq(ff_job_stream(job, &o)->origin.rank, 3);
	o = origin_of("n", "log", "s2");
	o.rank = 3;
	struct ff_stream *b = ff_job_stream(job, &o);
	ck_assert_ptr_ne(a, b);
	ck_assert_uint_eq(b->life, 2);
	ck_assert_uint_eq(b->number, 2);
	ck_assert_uint_eq(job->counts[FF_COUNT_same_rank], 1);
	o = origin_of("m", "log", "s3");
	o.rank = FF_RANKS_MAX;
	ck_assert_uint_eq(ff_job_stream(job, &o)->life, 1);
	ck_assert_uint_eq(job->counts[FF_COUNT_ranks_refused], 1);
	ff_job_destroy(job);
	ff_job_destroy(NULL);
	world_finish(&w);
}
END_TEST

START_TEST(restored_lives_go_on)
{
	struct world w;
	world_init(&w, 0, NULL);
	struct ff_job *job = ff_job_create(w.catalog, FF_STR("j"), FF_STR("0"));
	struct ff_origin o = origin_of("n", "log", "s1");
	ck_assert_ptr_nonnull(ff_job_restore_stream(job, &o, 7, 1));
	o.source = "s2";
	ck_assert_ptr_nonnull(ff_job_restore_stream(job, &o, 9, 2));
	o.source = "s3";
	struct ff_stream *s = ff_job_stream(job, &o);
	ck_assert_uint_eq(s->life, 3);
	ck_assert_uint_eq(s->number, 10);
	ff_job_destroy(job);
	world_finish(&w);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("report");
	TCase *tc = tcase_create("report");
	tcase_add_test(tc, screen_of_a_rank);
	tcase_add_test(tc, the_title_names_job_and_user);
	tcase_add_test(tc, screens_of_a_run_that_goes_on);
	tcase_add_test(tc, waits_without_time_and_of_any_length);
	tcase_add_test(tc, hostile_text_cannot_leave_its_line);
	tcase_add_test(tc, long_text_is_cut);
	tcase_add_loop_test(tc, text_fits_its_room, 0, N(pieces));
	tcase_add_test(tc, ranks_are_folded_and_cut);
	tcase_add_test(tc, commands_are_filled_in);
	tcase_add_test(tc, first_is_said_only_where_it_is_proven);
	tcase_add_test(tc, json_has_every_key_in_order);
	tcase_add_test(tc, event_as_json);
	tcase_add_test(tc, control_objects_are_events_too);
	tcase_add_test(tc, many_ranks_are_folded);
	tcase_add_test(tc, streams_are_told_apart_and_filled_in);
	tcase_add_test(tc, restored_lives_go_on);
	suite_add_tcase(s, tc);
	SRunner *r = srunner_create(s);
	srunner_run_all(r, CK_ENV);
	int failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
