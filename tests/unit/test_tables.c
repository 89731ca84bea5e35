#include "world.h"

#include "core/report_cursor.h"
#include "core/report_ranks.h"
#include "core/report_timeline.h"

static const struct ff_report_style plain = {.width = 100, .now_us = FF_TIME_NONE};

typedef void text_fn(
	const struct ff_verdict *v, const struct ff_report_style *style, struct ff_buf *out);
typedef void json_fn(const struct ff_verdict *v, size_t from, size_t limit, struct ff_buf *out);
typedef bool find_fn(const struct ff_verdict *v, struct ff_str cursor, size_t *ret);

static char *text_of(const struct ff_verdict *v, text_fn *fn, const struct ff_report_style *style)
{
	struct ff_buf b = {0};
	fn(v, style, &b);
	return ff_buf_take(&b);
}

static struct ff_json *json_of(const struct ff_verdict *v, json_fn *fn, size_t from, size_t limit)
{
	struct ff_buf b = {0};
	struct ff_err err = {0};
	fn(v, from, limit, &b);
	struct ff_json *doc = ff_json_parse(ff_buf_str(&b), &err);
	ck_assert_msg(doc != NULL, "%s: %s", err.text, b.p);
	ff_buf_finish(&b);
	return doc;
}

/* Lines of at most `width` columns, no control characters but LF, no blank at a line's end. */
static unsigned check_screen(const char *text, unsigned width)
{
	unsigned lines = 0, columns = 0;
	char before = '\n';
	for (const unsigned char *c = (const unsigned char *)text; *c; c++) {
		if (*c == '\n') {
			ck_assert_msg(before != ' ', "blank at the end of line %u:\n%s", lines + 1,
				text);
			lines++;
			columns = 0;
		} else {
			ck_assert_msg(*c >= 0x20 && *c != 0x7f, "control %02x in:\n%s", *c, text);
			columns += (*c & 0xc0) != 0x80;
			ck_assert_msg(columns <= width, "line %u is too long:\n%s", lines + 1,
				text);
		}
		before = (char)*c;
	}
	return lines;
}

static const char *string_at(const struct ff_json_node *item, const char *key)
{
	return ff_json_string(ff_json_get(item, key));
}

static int64_t int_at(const struct ff_json_node *item, const char *key)
{
	int64_t n = FF_UNKNOWN;
	(void)ff_json_int(ff_json_get(item, key), &n);
	return n;
}

static const struct ff_json_node *nth(const struct ff_json *doc, size_t n)
{
	const struct ff_json_node *v = ff_json_first(ff_json_get(ff_json_root(doc), "items"));
	for (; v && n; n--) {
		v = ff_json_next(v);
	}
	return v;
}

/* ---- a world of many ranks that say the same but for numbers, addresses and their own node */

static char *names[FF_RANKS_MAX], *nodes[FF_RANKS_MAX];

static void many_ranks(struct world *w, int n, const char *launcher)
{
	world_init(w, n, launcher);
	for (int i = 0; i < n; i++) {
		char text[64];
		(void)snprintf(text, sizeof text, "rank-%d.log", i);
		names[i] = ff_xstrdup(text);
		(void)snprintf(text, sizeof text, "gpu-%03d", i / 8);
		nodes[i] = ff_xstrdup(text);
		world_streams(w,
			&(struct world_stream){names[i], FF_STREAM_RANK, i, nodes[i], i % 8,
				FF_UNKNOWN},
			1);
	}
}

static void free_names(int n)
{
	for (int i = 0; i < n; i++) {
		free(names[i]);
		free(nodes[i]);
	}
}

static void say(struct world *w, int rank, int64_t ms, const char *signature, const char *text,
	const char *fields)
{
	world_event(w, &(struct world_event){names[rank], ms, signature, text, fields, 0, 0, 0});
}

/* One raises; the others report a peer, each with an address, a port and a node of its own. */
static struct ff_verdict *one_of_many(struct world *w, int n, int odd)
{
	many_ranks(w, n, "torchrun");
	say(w, odd, 1000, "cuda-oom", "CUDA out of memory. Tried to allocate 2.25 GiB", NULL);
	for (int i = 0; i < n; i++) {
		char text[128], peer[64];
		(void)snprintf(peer, sizeof peer, "peer_addr=10.0.%d.%d]:4%d", i / 250, i % 250, i);
		(void)snprintf(text, sizeof text,
			"[Rank %d] %s: /var/log/%d/x.log: Connection closed by peer "
			"[10.0.%d.%d]:4%d",
			i, nodes[i], i, i / 250, i % 250, i);
		if (i != odd) {
			say(w, i, 2500 + i, "gloo-peer-closed", text, peer);
		}
	}
	world_tell(w, "job@end", "state", "FAILED");
	return world_judge(w, 0);
}

START_TEST(equal_ranks_are_one_row)
{
	static const char want[] =
		"4711  256 ranks, 32 nodes   FAILED 00:00:02Z   run 0, attempt 0\n"
		"\n"
		"COUNT  RANKS          STATUS      NODE      STEP  LAST LINE  HEARD  END  EXIT  "
		"FIRST FAULT\n"
		"    1  137            initiating  gpu-017      -  00:00:01Z  quiet  yes  -     "
		"cuda-oom\n"
		"    primary | CUDA out of memory. Tried to allocate 2.25 GiB\n"
		"  255  0-136,138-255  collateral  32 nodes     -  00:00:02Z  quiet  yes  -     "
		"gloo-peer-closed\n"
		"    secondary | [Rank 0] gpu-000: /var/log/0/x.log: Connection closed by peer "
		"[10.0.0.0]:40\n";
	struct world w;
	struct ff_verdict *v = one_of_many(&w, 256, 137);
	char *text = text_of(v, ff_report_ranks_text, &plain);
	ck_assert_str_eq(text, want);
	ck_assert_uint_eq(check_screen(text, 100), 7);
	free(text);
	struct ff_json *doc = json_of(v, ff_report_ranks_json, 0, SIZE_MAX);
	for (size_t i = 0; i < 256; i++) {
		const struct ff_json_node *item = nth(doc, i);
		ck_assert_int_eq(int_at(item, "rank"), (int64_t)i);
		ck_assert_int_eq(int_at(item, "group"), i == 137 ? 1 : 2);
		const struct ff_json_node *s = ff_json_first(ff_json_get(item, "streams"));
		ck_assert_int_eq(int_at(s, "lines"), 1);
		ck_assert_ptr_null(ff_json_next(s));
	}
	ck_assert_str_eq(string_at(nth(doc, 137), "fault"), "cuda-oom");
	ck_assert_str_eq(string_at(nth(doc, 137), "role"), "primary");
	ff_json_destroy(doc);
	ff_verdict_destroy(v);
	world_finish(&w);
	free_names(256);
}
END_TEST

START_TEST(equal_events_are_one_line)
{
	struct world w;
	struct ff_verdict *v = one_of_many(&w, 256, 137);
	char *text = text_of(v, ff_report_timeline_text, &plain);
	ck_assert_msg(check_screen(text, 100) == 9, "%s", text);
	ck_assert_msg(strstr(text, "\n>   1  +0.000s  100 ms  -*"), "%s", text);
	ck_assert_msg(strstr(text, "   2  +1.500s  100 ms "), "%s", text);
	ck_assert_msg(strstr(text, "0-136,138-..  32 nodes  secondary  255 x gloo-peer-closed\n"),
		"%s", text);
	ck_assert_msg(strstr(text, "bars: -0.100s to +1.755s\n"), "%s", text);
	free(text);
	ff_verdict_destroy(v);
	world_finish(&w);
	free_names(256);
}
END_TEST

/* Texts that differ in words, and each other thing that a state is made of, part a group. */
START_TEST(states_that_differ_are_rows)
{
	static const struct {
		const char *what, *fault, *text, *exit;
		bool step;
		int rows;
	} table[] = {
		{"nothing", NULL, NULL, NULL, false, 1},
		{"another fault", "index-error", "IndexError", NULL, false, 2},
		{"other words", "import-error", "No module named 'b'", NULL, false, 2},
		{"another number", "import-error", "No module named 'a' 77", NULL, false, 1},
		{"an exit", NULL, NULL, "-9", false, 2},
	};
	for (size_t i = 0; i < N(table); i++) {
		struct world w;
		many_ranks(&w, 8, "torchrun");
		for (int r = 0; r < 8; r++) {
			char text[64];
			(void)snprintf(text, sizeof text, "No module named 'a' %d", r);
			bool odd = r == 5 && table[i].fault;
			say(&w, r, 1000 + r, odd ? table[i].fault : "import-error",
				odd ? table[i].text : text, NULL);
		}
		if (table[i].exit) {
			world_tell(&w, "exit@0.5", "rank", "5");
			world_tell(&w, "exit@0.5", "exit_code", table[i].exit);
		}
		world_tell(&w, "job@end", "state", "FAILED");
		struct ff_verdict *v = world_judge(&w, 0);
		struct ff_json *doc = json_of(v, ff_report_ranks_json, 0, SIZE_MAX);
		int64_t most = 0;
		for (size_t r = 0; r < 8; r++) {
			int64_t group = int_at(nth(doc, r), "group");
			most = group > most ? group : most;
		}
		ck_assert_msg(most == table[i].rows, "%s: %d rows, %d wanted", table[i].what,
			(int)most, table[i].rows);
		ff_json_destroy(doc);
		ff_verdict_destroy(v);
		world_finish(&w);
		free_names(8);
	}
}
END_TEST

START_TEST(a_rank_behind_stands_out)
{
	static const char *const steps[] = {"step 7", "step 8", "step 5", "step 8"};
	struct world w;
	many_ranks(&w, 4, "torchrun");
	for (int r = 0; r < 4; r++) {
		struct ff_stream *s = world_stream(&w, names[r]);
		world_progress(&w, names[r], 1000, false);
		free(s->lanes[0]->progress.text);
		s->lanes[0]->progress.text = ff_xstrdup(steps[r]);
	}
	struct ff_verdict *v = world_judge(&w, 0);
	struct ff_json *doc = json_of(v, ff_report_ranks_json, 0, SIZE_MAX);
	char *text = text_of(v, ff_report_ranks_text, &plain);
	for (size_t r = 0; r < 4; r++) {
		/* the world's catalogue has no progress line: steps come from the timeline below */
		ck_assert_int_eq(int_at(nth(doc, r), "last_step"), FF_UNKNOWN);
		v->timeline.ranks[r].last_step = steps[r][5] - '0';
	}
	ff_json_destroy(doc);
	free(text);
	doc = json_of(v, ff_report_ranks_json, 0, SIZE_MAX);
	text = text_of(v, ff_report_ranks_text, &plain);
	for (size_t r = 0; r < 4; r++) {
		bool behind = false;
		ck_assert(ff_json_bool(ff_json_get(nth(doc, r), "behind"), &behind));
		ck_assert_int_eq(behind, r == 2);
		ck_assert_int_eq(int_at(nth(doc, r), "group"), r == 2 ? 1 : 2);
	}
	ck_assert_msg(strstr(text, "1  2 ") && strstr(text, "<5"), "%s", text);
	ck_assert_msg(strstr(text, "3  0-1,3 ") && strstr(text, "7-8"), "%s", text);
	free(text);
	ff_json_destroy(doc);
	ff_verdict_destroy(v);
	world_finish(&w);
	free_names(4);
}
END_TEST

/* A node whose name is a part of other words hides no difference. */
START_TEST(own_places_are_words)
{
	static const struct {
		const char *a, *b; /* what rank 0 on node n, rank 1 on node e say */
		int rows;
	} table[] = {
		{"lost n at 1", "lost e at 2", 1},
		{"none came", "nonn camn", 2},
		{"no n, no", "no e, no", 1},
		{"n", "e", 1},
	};
	static const struct world_stream two[] = {
		{"a.log", FF_STREAM_RANK, 0, "n", 0, FF_UNKNOWN},
		{"b.log", FF_STREAM_RANK, 1, "e", 0, FF_UNKNOWN},
	};
	for (size_t i = 0; i < N(table); i++) {
		struct world w;
		world_init(&w, 2, "torchrun");
		world_streams(&w, two, N(two));
		const struct world_event events[] = {
			{"a.log", 1000, "import-error", table[i].a, NULL, 0, 0, 0},
			{"b.log", 1000, "import-error", table[i].b, NULL, 0, 0, 0},
		};
		world_events(&w, events, N(events));
		struct ff_verdict *v = world_judge(&w, 0);
		struct ff_json *doc = json_of(v, ff_report_ranks_json, 0, SIZE_MAX);
		int64_t a = int_at(nth(doc, 0), "group"), b = int_at(nth(doc, 1), "group");
		ck_assert_msg((a == b ? 1 : 2) == table[i].rows, "%s", table[i].a);
		ff_json_destroy(doc);
		ff_verdict_destroy(v);
		world_finish(&w);
	}
}
END_TEST

/* ---- caps, pages, hostile text */

static struct ff_verdict *all_differ(struct world *w, int n)
{
	many_ranks(w, n, "torchrun");
	for (int i = 0; i < n; i++) {
		char text[64], *p = text;
		for (int k = i; k || p == text; k /= 26) {
			*p++ = (char)('a' + k % 26);
		}
		*p = '\0';
		say(w, i, 1000 + 500 * i, i ? "gloo-peer-closed" : "index-error", text, NULL);
	}
	return world_judge(w, 0);
}

START_TEST(a_screen_has_an_end)
{
	static const unsigned lines[] = {8, 9, 20, 60, 61, 200};
	static text_fn *const fns[] = {ff_report_ranks_text, ff_report_timeline_text};
	struct world w;
	struct ff_verdict *v = all_differ(&w, 300);
	for (size_t f = 0; f < N(fns); f++) {
		for (size_t i = 0; i < N(lines); i++) {
			struct ff_report_style style = plain;
			style.lines = lines[i];
			char *text = text_of(v, fns[f], &style);
			unsigned n = check_screen(text, 100);
			ck_assert_msg(n <= lines[i] && n + 3 > lines[i], "%u lines, %u asked:\n%s",
				n, lines[i], text);
			ck_assert_msg(strstr(text, "\n... "), "%s", text);
			free(text);
		}
		char *text = text_of(v, fns[f], &plain);
		ck_assert_uint_le(check_screen(text, 100), 60);
		free(text);
	}
	ff_verdict_destroy(v);
	world_finish(&w);
	free_names(300);
}
END_TEST

START_TEST(pages_are_the_whole)
{
	static json_fn *const fns[] = {ff_report_ranks_json, ff_report_timeline_json};
	static find_fn *const finds[] = {
		ff_report_cursor_find_rank, ff_report_cursor_find_event};
	struct world w;
	struct ff_verdict *v = all_differ(&w, 23);
	for (size_t f = 0; f < N(fns); f++) {
		struct ff_buf whole = {0}, pages = {0};
		struct ff_json *doc = json_of(v, fns[f], 0, SIZE_MAX);
		ck_assert(ff_json_is_null(ff_json_get(ff_json_root(doc), "next")));
		for (size_t i = 0; nth(doc, i); i++) {
			ff_json_render(nth(doc, i), &whole);
		}
		ff_json_destroy(doc);
		bool more = true;
		size_t from = 0;
		for (unsigned page = 0; more; page++) {
			ck_assert_uint_lt(page, 4);
			doc = json_of(v, fns[f], from, 7);
			for (size_t i = 0; nth(doc, i); i++) {
				ff_json_render(nth(doc, i), &pages);
			}
			const char *next = string_at(ff_json_root(doc), "next");
			more = next != NULL;
			ck_assert(!next || finds[f](v, ff_str_z(next), &from));
			ff_json_destroy(doc);
		}
		ck_assert_str_eq(pages.p, whole.p);
		ff_buf_finish(&whole);
		ff_buf_finish(&pages);
		doc = json_of(v, fns[f], 1000, 7); /* behind the end */
		ck_assert_ptr_null(nth(doc, 0));
		ff_json_destroy(doc);
	}
	ff_verdict_destroy(v);
	world_finish(&w);
	free_names(23);
}
END_TEST

/* What comes in between two pages is neither shown twice nor does it push anything out. */
START_TEST(cursors_hold_while_the_list_grows)
{
	struct ff_buf ranks[9] = {{0}}, events[64] = {{0}}, ids[64] = {{0}};
	int32_t of[9];
	struct world w;
	struct ff_verdict *v = all_differ(&w, 9);
	size_t n = v->timeline.nall, at = SIZE_MAX;
	ck_assert(v->nranks == 9 && n > 0 && n < 64);
	for (size_t i = 0; i < 9; i++) {
		ff_report_cursor_rank(v, i, &ranks[i]);
		of[i] = v->ranks[i].rank;
	}
	for (size_t i = 0; i < n; i++) {
		ff_report_cursor_event(v, i + 1, &events[i]);
		ff_buf_addz(&ids[i], v->timeline.all[i].id);
		ck_assert(ff_report_cursor_find_event(v, ff_buf_str(&events[i]), &at));
		ck_assert_uint_eq(at, i + 1);
	}
	ff_verdict_destroy(v);
	world_finish(&w);
	free_names(9);
	v = all_differ(&w, 23);
	for (size_t i = 0; i < 9; i++) {
		ck_assert(ff_report_cursor_find_rank(v, ff_buf_str(&ranks[i]), &at));
		ck_assert_int_eq(v->ranks[at].rank, of[i]);
		ff_buf_finish(&ranks[i]);
	}
	for (size_t i = 0; i < n; i++) {
		ck_assert(ff_report_cursor_find_event(v, ff_buf_str(&events[i]), &at));
		ck_assert_str_eq(v->timeline.all[at - 1].id, ids[i].p);
		ff_buf_finish(&events[i]);
		ff_buf_finish(&ids[i]);
	}
	ff_verdict_destroy(v);
	world_finish(&w);
	free_names(23);
}
END_TEST

START_TEST(cursors_that_are_none)
{
	static const char *const ranks[] = {"", "-", "x", "1x", " 1", "+1", "--1", "1.0"};
	static const char *const events[] = {"", "1", "-", "1-", "1-0", "1-000000000000000g",
		"1-00000000000000000", "x-0000000000000000", "1 0000000000000000"};
	struct world w;
	struct ff_verdict *v = all_differ(&w, 3);
	size_t at = 77;
	for (size_t i = 0; i < N(ranks); i++) {
		ck_assert_msg(!ff_report_cursor_find_rank(v, ff_str_z(ranks[i]), &at), "%s",
			ranks[i]);
	}
	for (size_t i = 0; i < N(events); i++) {
		ck_assert_msg(!ff_report_cursor_find_event(v, ff_str_z(events[i]), &at), "%s",
			events[i]);
	}
	ck_assert_uint_eq(at, 77);
	ck_assert(ff_report_cursor_find_rank(v, FF_STR("999999"), &at)); /* behind the end */
	ck_assert_uint_eq(at, v->nranks);
	ck_assert(ff_report_cursor_find_rank(v, FF_STR("-5"), &at));
	ck_assert_uint_eq(at, v->nranks);
	/* its event is gone: behind as many */
	ck_assert(ff_report_cursor_find_event(v, FF_STR("2-0123456789abcdef"), &at));
	ck_assert_uint_eq(at, 2);
	ck_assert(ff_report_cursor_find_event(v, FF_STR("999999-0123456789abcdef"), &at));
	ck_assert_uint_eq(at, v->timeline.nall);
	ff_verdict_destroy(v);
	world_finish(&w);
	free_names(3);
}
END_TEST

START_TEST(hostile_text_stays_behind_its_bar)
{
	static const char evil[] = "\x1b[2J\x1b]0;owned\x07 \xff\xfe \xe2\x80\xae gnp.exe \xc2\x9b "
				   "\xc3\xa9\r\x08\x7f";
	static const char *const nasty = "no\x1b[1mde\n>1 x";
	struct world w;
	world_init(&w, 2, "torchrun");
	world_streams(&w,
		(struct world_stream[]){
			{"a.log", FF_STREAM_RANK, 0, nasty, 0, FF_UNKNOWN},
			{"b.log", FF_STREAM_RANK, 1, "b", 0, FF_UNKNOWN},
		},
		2);
	world_event(&w, &(struct world_event){"a.log", 1000, "index-error", evil, NULL, 0, 0, 0});
	world_event(&w,
		&(struct world_event){"b.log", 3000, "gloo-peer-closed", "x\n>   9  forged", NULL,
			0, 0, 0});
	struct ff_verdict *v = world_judge(&w, 0);
	for (unsigned width = 20; width <= 140; width++) {
		struct ff_report_style style = plain;
		style.width = width;
		char *ranks = text_of(v, ff_report_ranks_text, &style);
		char *events = text_of(v, ff_report_timeline_text, &style);
		check_screen(ranks, width < 60 ? 60 : width);
		check_screen(events, width < 60 ? 60 : width);
		ck_assert_msg(strstr(ranks, "\n    primary | \\x1b[2J"), "%s", ranks);
		ck_assert_msg(strstr(events, "\n    | \\x1b[2J"), "%s", events);
		ck_assert_ptr_null(strstr(events, "forged"));
		free(ranks);
		free(events);
	}
	ff_json_destroy(json_of(v, ff_report_ranks_json, 0, SIZE_MAX));
	ff_json_destroy(json_of(v, ff_report_timeline_json, 0, SIZE_MAX));
	ff_verdict_destroy(v);
	world_finish(&w);
}
END_TEST

/* ---- times */

START_TEST(what_cannot_be_ordered_says_so)
{
	static const struct {
		int64_t b_ms;
		unsigned flags;
		const char *order;
		bool comparable;
	} table[] = {
		{1050, 0, "unordered", true},
		{1500, 0, "after", true},
		{1500, CAPTURED, "unordered", false}, /* of another clock */
		{NEVER, 0, "unordered", false},
	};
	static const struct world_stream two[] = {
		{"a.log", FF_STREAM_RANK, 0, "a", 0, FF_UNKNOWN},
		{"b.log", FF_STREAM_RANK, 1, "b", 0, FF_UNKNOWN},
	};
	for (size_t i = 0; i < N(table); i++) {
		struct world w;
		world_init(&w, 2, "torchrun");
		world_streams(&w, two, N(two));
		world_event(&w,
			&(struct world_event){
				"a.log", 1000, "index-error", "IndexError", NULL, 0, 0, 0});
		world_event(&w,
			&(struct world_event){"b.log", table[i].b_ms, "gloo-peer-closed", "closed",
				NULL, 0, 0, table[i].flags});
		struct ff_verdict *v = world_judge(&w, 0);
		struct ff_json *doc = json_of(v, ff_report_timeline_json, 0, SIZE_MAX);
		char *text = text_of(v, ff_report_timeline_text, &plain);
		bool b_first = string_at(nth(doc, 0), "fault")[0] == 'g';
		const struct ff_json_node *b = nth(doc, b_first ? 0 : 1);
		ck_assert_str_eq(string_at(nth(doc, 0), "order"), "first");
		ck_assert_str_eq(string_at(nth(doc, 1), "order"), table[i].order);
		ck_assert_int_eq(!ff_json_is_null(ff_json_get(b, "after_us")), table[i].comparable);
		bool mark = strstr(text, "\n ~") || strstr(text, "\n>~");
		ck_assert_msg(mark == !strcmp(table[i].order, "unordered"), "%zu:\n%s", i, text);
		free(text);
		ff_json_destroy(doc);
		ff_verdict_destroy(v);
		world_finish(&w);
	}
}
END_TEST

START_TEST(nothing_to_show)
{
	struct world w;
	world_init(&w, 0, NULL);
	struct ff_verdict *v = world_judge(&w, 0);
	char *ranks = text_of(v, ff_report_ranks_text, &plain);
	char *events = text_of(v, ff_report_timeline_text, &plain);
	ck_assert_ptr_nonnull(strstr(ranks, "no ranks are known"));
	ck_assert_ptr_nonnull(strstr(events, "no fault and no exit of a process was found"));
	free(ranks);
	free(events);
	ff_verdict_destroy(v);
	world_finish(&w);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("tables");
	TCase *tc = tcase_create("tables");
	tcase_set_timeout(tc, 60);
	tcase_add_test(tc, equal_ranks_are_one_row);
	tcase_add_test(tc, equal_events_are_one_line);
	tcase_add_test(tc, states_that_differ_are_rows);
	tcase_add_test(tc, own_places_are_words);
	tcase_add_test(tc, a_rank_behind_stands_out);
	tcase_add_test(tc, a_screen_has_an_end);
	tcase_add_test(tc, pages_are_the_whole);
	tcase_add_test(tc, cursors_hold_while_the_list_grows);
	tcase_add_test(tc, cursors_that_are_none);
	tcase_add_test(tc, hostile_text_stays_behind_its_bar);
	tcase_add_test(tc, what_cannot_be_ordered_says_so);
	tcase_add_test(tc, nothing_to_show);
	suite_add_tcase(s, tc);
	SRunner *sr = srunner_create(s);
	srunner_run_all(sr, CK_ENV);
	int failed = srunner_ntests_failed(sr);
	srunner_free(sr);
	return failed ? 1 : 0;
}
