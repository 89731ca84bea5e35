#include "core/line.h"

#include "base/arr.h"

#include "random.h"

#include <check.h>

#include <stdio.h>

/* ---- splitter */

struct got {
	uint64_t offset, end;
	int64_t number;
	size_t at, len; /* in text */
	bool cut, unfinished;
	struct ff_stamp stamp;
	struct ff_line_tags tags;
};

struct lines {
	struct got *list;
	size_t n, cap;
	struct ff_buf text;
	const struct ff_splitter *s; /* looked at in the callback */
};

static void lines_finish(struct lines *l)
{
	free(l->list);
	ff_buf_finish(&l->text);
	*l = (struct lines){0};
}

static void add_line(struct lines *l, struct ff_line line)
{
	*FF_ARR_ADD(l->list, l->n, l->cap) = (struct got){
		line.offset,
		line.end,
		line.number,
		l->text.len,
		line.text.n,
		line.cut,
		line.unfinished,
		line.stamp,
		line.tags,
	};
	ff_buf_adds(&l->text, line.text);
}

static void on_line(void *ud, const struct ff_line *line)
{
	struct lines *l = ud;
	ck_assert_uint_eq(l->s->start, line->end);
	ck_assert_uint_eq(l->s->pos, line->end);
	ck_assert(!l->s->open && !l->s->cr && l->s->in_skip == line->cut);
	add_line(l, *line);
}

/* What the header says, byte by byte and slowly. */
static void model(struct ff_str in, int64_t number, struct lines *ret)
{
	size_t start = 0;
	bool skip = false;
	for (size_t i = 0; i <= in.n; i++) {
		struct ff_line line = {
			.offset = start,
			.end = i,
			.number = number,
			.text = {in.p + start, i - start},
		};
		if (i == in.n) {
			line.unfinished = true;
			if (!skip && start < i) {
				add_line(ret, line);
			}
			return;
		}
		bool lf = in.p[i] == '\n';
		bool crlf = in.p[i] == '\r' && i + 1 < in.n && in.p[i + 1] == '\n';
		if (lf || in.p[i] == '\r') {
			i += crlf;
			line.end = i + 1;
			if (!skip) {
				add_line(ret, line);
			}
			skip = false;
			start = i + 1;
			number += (lf || crlf) && number;
		} else if (!skip && i - start == FF_LINE_MAX) {
			line.cut = true;
			add_line(ret, line);
			skip = true;
		}
	}
}

static void same_lines(const struct lines *a, const struct lines *b, const char *how, uint64_t seed)
{
	ck_assert_msg(a->n == b->n, "%s: %zu lines, want %zu; seed %lu", how, b->n, a->n, seed);
	for (size_t i = 0; i < a->n; i++) {
		const struct got *x = &a->list[i], *y = &b->list[i];
		ck_assert_msg(x->offset == y->offset && x->end == y->end &&
				x->number == y->number && x->len == y->len && x->cut == y->cut &&
				x->unfinished == y->unfinished &&
				!memcmp(a->text.p + x->at, b->text.p + y->at, x->len),
			"%s: line %zu: [%lu,%lu) #%ld %zu bytes, want [%lu,%lu) #%ld %zu; seed %lu",
			how, i, y->offset, y->end, y->number, y->len, x->offset, x->end, x->number,
			x->len, seed);
	}
}

static struct ff_line_tags tags_of(uint64_t chunk)
{
	return (struct ff_line_tags){{FF_TAG_GLOBAL, (int64_t)chunk}, 1};
}

/* Feeds from..to in memory of its own, so that reading outside is seen; the stamp is from. */
static void feed(struct ff_splitter *s, struct ff_str in, size_t from, size_t to, struct lines *l)
{
	char *part = ff_xmalloc(to - from);
	memcpy(part, in.p + from, to - from);
	struct ff_stamp stamp = {(ff_usec)from, FF_TIME_NONE};
	l->s = s;
	ff_splitter_feed(s, part, to - from, stamp, tags_of(from), on_line, l);
	free(part);
	ck_assert_uint_eq(s->pos, to);
	ck_assert_uint_le(s->pending.len, FF_LINE_MAX);
}

/* Each line has the stamp and tags of the chunk that brought its first byte. */
static void check_stamps(const struct lines *l, const size_t *cuts, size_t ncuts)
{
	for (size_t i = 0; i < l->n; i++) {
		size_t chunk = 0;
		for (size_t k = 0; k < ncuts && cuts[k] <= l->list[i].offset; k++) {
			chunk = cuts[k];
		}
		ck_assert_int_eq(l->list[i].stamp.arrived, chunk);
		ck_assert_int_eq(l->list[i].stamp.captured, FF_TIME_NONE);
		ck_assert(ff_tag_eq(l->list[i].tags.tag, tags_of(chunk).tag));
	}
}

/* Cuts the input at cuts (ascending, in 0..n) and compares with the model. */
static void check_cuts(
	struct ff_str in, const size_t *cuts, size_t ncuts, const char *how, uint64_t seed)
{
	struct lines want = {0}, got = {0};
	struct ff_splitter s;
	model(in, 1, &want);
	ff_splitter_init(&s);
	size_t from = 0;
	for (size_t i = 0; i <= ncuts; i++) {
		size_t to = i < ncuts ? cuts[i] : in.n;
		feed(&s, in, from, to, &got);
		from = to;
	}
	ff_splitter_end(&s, on_line, &got);
	same_lines(&want, &got, how, seed);
	check_stamps(&got, cuts, ncuts);
	ff_splitter_finish(&s);
	lines_finish(&want);
	lines_finish(&got);
}

/* Stops behind n bytes and goes on with a new splitter from what the old one says. */
static void check_restart(struct ff_str in, size_t n, uint64_t seed)
{
	struct lines want = {0}, got = {0};
	struct ff_splitter s, again;
	model(in, 1, &want);
	ff_splitter_init(&s);
	feed(&s, in, 0, n, &got);
	ff_splitter_init(&again);
	again.start = again.pos = s.start;
	again.number = s.number;
	again.in_skip = s.in_skip;
	feed(&again, in, s.start, in.n, &got);
	ff_splitter_end(&again, on_line, &got);
	same_lines(&want, &got, "restart", seed);
	ff_splitter_finish(&s);
	ff_splitter_finish(&again);
	lines_finish(&want);
	lines_finish(&got);
}

static const struct ff_str texts[] = {
	FF_STR(""),
	FF_STR("\n"),
	FF_STR("\r"),
	FF_STR("a"),
	FF_STR("a\n"),
	FF_STR("a\r\n"),
	FF_STR("a\rb"),
	FF_STR("a\r\rb\r\r\n\nc"),
	FF_STR("one\ntwo\r\n\r\nthree\rfour\r five\n\n\n\r"),
	FF_STR("\r\r\r\n\r\n\n\r"),
	FF_STR("\0a\0\n\0\n\0"),
	FF_STR("\xff\xfe\n\xc3\r\x28\n\xf0\x9f"),
	FF_STR(" 10%\r 20%\r100%\ndone\n[rank0]: x"),
};

START_TEST(test_split_every_way)
{
	struct ff_str in = texts[_i];
	size_t every[128];
	for (size_t i = 0; i < in.n; i++) {
		every[i] = i + 1;
	}
	check_cuts(in, NULL, 0, "whole", 0);
	check_cuts(in, every, in.n, "bytes", 0);
	for (size_t a = 0; a <= in.n; a++) {
		check_restart(in, a, 0);
		for (size_t b = a; b <= in.n; b++) {
			check_cuts(in, (size_t[]){a, b}, 2, "two cuts", 0);
		}
	}
}
END_TEST

/* All texts of up to five bytes of a few kinds. */
START_TEST(test_split_small)
{
	static const char kinds[] = {'a', '\r', '\n', '\0'};
	for (size_t n = 0; n <= 5; n++) {
		for (uint32_t code = 0; code < 1u << (2 * n); code++) {
			char text[5];
			for (size_t i = 0; i < n; i++) {
				text[i] = kinds[code >> (2 * i) & 3];
			}
			struct ff_str in = {text, n};
			for (size_t a = 0; a <= n; a++) {
				check_cuts(in, &a, 1, "small", code);
				check_restart(in, a, code);
			}
		}
	}
}
END_TEST

/* Lines around the cap, with each end, behind another line. */
START_TEST(test_split_long)
{
	static const char *const ends[] = {"\n", "\r\n", "\rx\n", "", "\r", "\r\r\n", "\r\nabc\n"};
	static const size_t sizes[] = {
		FF_LINE_MAX - 1,
		FF_LINE_MAX,
		FF_LINE_MAX + 1,
		200 * 1024,
	};
	size_t size = sizes[_i % 4];
	struct ff_str end = ff_str_z(ends[_i / 4]);
	struct ff_buf text = {0};
	ff_buf_addz(&text, "first\n");
	size_t from = text.len;
	memset(ff_buf_reserve(&text, size), 'x', size);
	text.len += size;
	ff_buf_adds(&text, end);
	struct ff_str in = ff_buf_str(&text);
	const size_t places[] = {0, from, from + 1, from + FF_LINE_MAX, from + size, in.n};
	for (size_t i = 0; i < sizeof places / sizeof places[0]; i++) {
		for (size_t d = 0; d < 3; d++) {
			size_t cut = places[i] + d ? places[i] + d - 1 : 0;
			if (cut <= in.n) {
				check_cuts(in, &cut, 1, "long", cut);
				check_restart(in, cut, cut);
			}
		}
	}
	ff_buf_finish(&text);
}
END_TEST

static int by_size(const void *x, const void *y)
{
	const size_t *a = x, *b = y;
	return (*a > *b) - (*a < *b);
}

/* Mixed text of short and over-long lines, cut at random places. */
START_TEST(test_split_random)
{
	struct random r = random_init((uint64_t)_i);
	struct ff_buf text = {0};
	for (uint32_t n = random_below(&r, 40); n > 0; n--) {
		static const char *const ends[] = {"\n", "\n", "\n", "\r\n", "\r", "\r\r", "\n\n"};
		static const uint32_t sizes[] = {3, 80, 80, 300, 5000, FF_LINE_MAX + 3, 100000};
		uint32_t size = random_below(&r, sizes[random_below(&r, 7)]);
		for (uint32_t i = 0; i < size; i++) {
			char c = (char)random_below(&r, 256);
			ff_buf_addc(&text, c == '\n' || c == '\r' ? 'x' : c);
		}
		ff_buf_addz(&text, ends[random_below(&r, 7)]);
	}
	size_t cuts[300];
	for (int round = 0; round < 8; round++) {
		size_t n = random_below(&r, 300);
		for (size_t i = 0; i < n; i++) {
			cuts[i] = random_below(&r, (uint32_t)text.len + 1);
		}
		qsort(cuts, n, sizeof cuts[0], by_size);
		check_cuts(ff_buf_str(&text), cuts, n, "random", r.seed);
		check_restart(ff_buf_str(&text), random_below(&r, (uint32_t)text.len + 1), r.seed);
	}
	ff_buf_finish(&text);
}
END_TEST

struct borrowed {
	const char *from, *to;
	int inside, outside;
};

static void on_borrowed(void *ud, const struct ff_line *line)
{
	struct borrowed *b = ud;
	if (line->text.p >= b->from && line->text.p + line->text.n <= b->to) {
		b->inside++;
	} else {
		b->outside++;
	}
}

START_TEST(test_whole_lines_are_borrowed)
{
	static const char chunk[] = "c\nwhole\nwhole too\r\npiece\rrest";
	struct borrowed b = {chunk, chunk + sizeof chunk - 1, 0, 0};
	struct ff_splitter s;
	struct ff_line_tags none = {FF_TAG_INIT, FF_UNKNOWN};
	ff_splitter_init(&s);
	ff_splitter_feed(&s, "ab", 2, FF_STAMP_NONE, none, on_borrowed, &b);
	ff_splitter_feed(&s, chunk, sizeof chunk - 1, FF_STAMP_NONE, none, on_borrowed, &b);
	ck_assert_int_eq(b.inside, 3);
	ck_assert_int_eq(b.outside, 1);
	ck_assert_uint_eq(s.start, sizeof chunk - 1 + 2 - 4);
	ck_assert(s.open);
	ff_splitter_finish(&s);
	ff_splitter_finish(&s);
	ff_splitter_finish(NULL);
}
END_TEST

START_TEST(test_number_unknown)
{
	struct lines got = {0};
	struct ff_splitter s;
	ff_splitter_init(&s);
	s.number = 0;
	feed(&s, FF_STR("a\nb\r\nc"), 0, 6, &got);
	ff_splitter_end(&s, on_line, &got);
	ck_assert_uint_eq(got.n, 3);
	for (size_t i = 0; i < got.n; i++) {
		ck_assert_int_eq(got.list[i].number, 0);
	}
	ck_assert(got.list[2].unfinished);
	ff_splitter_finish(&s);
	lines_finish(&got);
}
END_TEST

/* ---- entries */

static const struct {
	const char *line, *text;
	struct ff_tag tag, outer;
} entry_rows[] = {
#define GLOBAL(n) \
	{ \
		FF_TAG_GLOBAL, (n) \
	}
#define LOCAL(n) \
	{ \
		FF_TAG_LOCAL, (n) \
	}
#define TASK(n) \
	{ \
		FF_TAG_TASK, (n) \
	}
#define PID(n) \
	{ \
		FF_TAG_PID, (n) \
	}
#define NONE \
	{ \
		FF_TAG_NONE, FF_UNKNOWN \
	}
	{"", "", NONE, NONE},
	{"plain text", "plain text", NONE, NONE},
	{"Traceback (most recent call last):", "Traceback (most recent call last):", NONE, NONE},

	/* torch: SOURCES.md c10-logging, torch-logging, torch-excepthook */
	{"[rank3]: Traceback (most recent call last):", "Traceback (most recent call last):",
		GLOBAL(3), NONE},
	{"[rank3]:     ~~~~^^^", "    ~~~~^^^", GLOBAL(3), NONE},
	{"[rank3]: ", "", GLOBAL(3), NONE},
	{"[rank3]:", "", GLOBAL(3), NONE},
	{"[rank3]:[E1130 09:34:13.345865895 socket.cpp:207] x",
		"[E1130 09:34:13.345865895 socket.cpp:207] x", GLOBAL(3), NONE},
	{"[rank3]:[E ProcessGroupNCCL.cpp:563] [Rank 3] x",
		"[E ProcessGroupNCCL.cpp:563] [Rank 3] x", GLOBAL(3), NONE},
	{"[rank0]:V0512 12:34:56.123000 1234 torch/x.py:12] x",
		"V0512 12:34:56.123000 1234 torch/x.py:12] x", GLOBAL(0), NONE},
	{"[rank131071]: x", "x", GLOBAL(131071), NONE},
	{"[rank131072]: x", "[rank131072]: x", NONE, NONE},
	{"[rank99999999999999999999]: x", "[rank99999999999999999999]: x", NONE, NONE},
	{"[rank]: x", "[rank]: x", NONE, NONE},
	{"[rank-1]: x", "[rank-1]: x", NONE, NONE},
	{"[rank3", "[rank3", NONE, NONE},
	{"[Rank 3] x", "[Rank 3] x", NONE, NONE},
	{"x [rank3]: y", "x [rank3]: y", NONE, NONE},
	{"RuntimeError: [rank 3] x", "RuntimeError: [rank 3] x", NONE, NONE},
	{"\x1b[31m[rank3]: x", "x", GLOBAL(3), NONE},

	/* the program's own: the text stays */
	{"[rank3] step 5", "[rank3] step 5", GLOBAL(3), NONE},
	{"2026-11-30 09:34:17,075 [rank2] INFO train: x",
		"2026-11-30 09:34:17,075 [rank2] INFO train: x", GLOBAL(2), NONE},
	{"[2026-11-30 09:34:17] [rank2] iter 5", "[2026-11-30 09:34:17] [rank2] iter 5", GLOBAL(2),
		NONE},
	{"2026-11-30T09:34:17.5+02:00 [rank2] x", "2026-11-30T09:34:17.5+02:00 [rank2] x",
		GLOBAL(2), NONE},
	{"18:00:34 [rank2] x", "18:00:34 [rank2] x", GLOBAL(2), NONE},
	{"2026-11-30T09:34:17.5+02:00 [rank2]: x", "x", GLOBAL(2), NONE},
	{"18:00:34.257 [rank0]:[W205 18:00:33.953149508 a.cpp:1] x",
		"[W205 18:00:33.953149508 a.cpp:1] x", GLOBAL(0), NONE},
	{"[18:00:34] [rank2] x", "[18:00:34] [rank2] x", NONE, NONE},
	{"18:00 [rank2]: x", "18:00 [rank2]: x", NONE, NONE},
	{"2026-11-30 09:34:17,075 INFO [rank2] x", "2026-11-30 09:34:17,075 INFO [rank2] x", NONE,
		NONE},
	{"[default1]:2026-11-30 09:34:17,075 [rank9] INFO x",
		"2026-11-30 09:34:17,075 [rank9] INFO x", GLOBAL(9), LOCAL(1)},
	{"3: [rank3] ready", "[rank3] ready", GLOBAL(3), TASK(3)},

	/* torchrun --tee: SOURCES.md torch-tail-prefix */
	{"[default0]:step 12 loss 3.25", "step 12 loss 3.25", LOCAL(0), NONE},
	{"[default3]:  File \"a.py\", line 3", "  File \"a.py\", line 3", LOCAL(3), NONE},
	{"[default3]:", "", LOCAL(3), NONE},
	{"[my_role-a.b12]:x", "x", LOCAL(12), NONE},
	{"[b0rker7]:x", "x", LOCAL(7), NONE},
	{"[trainer7]:[rank15]: Traceback", "Traceback", GLOBAL(15), LOCAL(7)},
	{"[default2]:[rank2]: x", "x", GLOBAL(2), LOCAL(2)},
	{"[default]:x", "[default]:x", NONE, NONE},
	{"[1]:", "[1]:", NONE, NONE},
	{"[Errno 2]: x", "[Errno 2]: x", NONE, NONE},
	{"[node-a:00000] *** x", "[node-a:00000] *** x", NONE, NONE},
	{"[default3] x", "[default3] x", NONE, NONE},
	{"[node-1]: x", "[node-1]: x", NONE, NONE},

	/* srun --label: SOURCES.md srun-label */
	{" 3: loss 2.31", "loss 2.31", TASK(3), NONE},
	{"13: x", "x", TASK(13), NONE},
	{"0:   File \"a.py\"", "  File \"a.py\"", TASK(0), NONE},
	{"7:", "", TASK(7), NONE},
	{"7: ", "", TASK(7), NONE},
	{"    12: x", "x", TASK(12), NONE},
	{"P0 13: x", "x", TASK(13), NONE},
	{"P12  3: x", "x", TASK(3), NONE},
	{"131072: x", "131072: x", NONE, NONE},
	{"12345678: x", "12345678: x", NONE, NONE},
	{"       1: x", "       1: x", NONE, NONE},
	{"12:00:00 x", "12:00:00 x", NONE, NONE},
	{"x 12: y", "x 12: y", NONE, NONE},
	{"12 : y", "12 : y", NONE, NONE},
	{"P: x", "P: x", NONE, NONE},
	{"Process 3: x", "Process 3: x", NONE, NONE},
	{"4: [rank4]: x", "x", GLOBAL(4), TASK(4)},
	{"4: [default2]:[rank10]: x", "x", GLOBAL(10), TASK(4)},
	{"4: [default2]:x", "x", LOCAL(2), TASK(4)},
	{"4: 5: x", "5: x", TASK(4), NONE},
	{"[rank3]: 5: x", "5: x", GLOBAL(3), NONE},

	/* Open MPI: SOURCES.md ompi-iof */
	{"[1,3]<stderr>:Traceback (most recent call last):", "Traceback (most recent call last):",
		GLOBAL(3), NONE},
	{"[1,3]<stderr>:  File \"a.py\"", "  File \"a.py\"", GLOBAL(3), NONE},
	{"[1,3]<stderr>: RuntimeError: boom", "RuntimeError: boom", GLOBAL(3), NONE},
	{"[1,3]<stderr>:   File \"a.py\"", "  File \"a.py\"", GLOBAL(3), NONE},
	{"[1,3]<stddiag>:x", "x", GLOBAL(3), NONE},
	{"[1,3]<stdout>:", "", GLOBAL(3), NONE},
	{"[0]<stderr>: [node-a:00000] *** An error", "[node-a:00000] *** An error", GLOBAL(0),
		NONE},
	{"[prterun-gpu07-4411@1,3]<stderr>: x", "x", GLOBAL(3), NONE},
	{"[prterun-gpu07-4411@1,3][gpu08:991]<stderr>: x", "x", GLOBAL(3), NONE},
	{"[1,11][unknown:unknown]<stdout>: x", "x", GLOBAL(11), NONE},
	{"Thu May  1 12:00:00 2024[1,3]<stdout>:step 4", "step 4", GLOBAL(3), NONE},
	{"[Thu May  1 12:00:00 2024][1,3]<stderr>: x", "x", GLOBAL(3), NONE},
	{"[Mon Nov 30 10:37:31 2026]<stderr>: [1,11][node-b:235]<stderr>: rank 11: x", "rank 11: x",
		GLOBAL(11), NONE},
	{"[Mon Nov 30 10:37:31 2026]<stderr>: [3]: x", "[3]: x", NONE, NONE},
	{"Mon Nov 30 10:37:31 2026<stderr>:x", "x", NONE, NONE},
	{"[1,WILDCARD]<stderr>:   Timeout: 9 seconds", "  Timeout: 9 seconds", NONE, NONE},
	{"<stdout rank=\"3\">step 4</stdout>", "step 4", GLOBAL(3), NONE},
	{"<stderr rank=\"12\">Traceback (most recent call last):&#010;</stderr>",
		"Traceback (most recent call last):", GLOBAL(12), NONE},
	{"<stderr rank=\"12\">half", "half", GLOBAL(12), NONE},
	{"<stderr rank=\"12\">x</stdout>", "x</stdout>", GLOBAL(12), NONE},
	{"<stdout rank=\"x\">a</stdout>", "<stdout rank=\"x\">a</stdout>", NONE, NONE},
	{"<stdout rank=\"3\" a>b", "<stdout rank=\"3\" a>b", NONE, NONE},
	{"<p rank=\"3\">b", "<p rank=\"3\">b", NONE, NONE},
	{"[1,3]<stdin>:x", "[1,3]<stdin>:x", NONE, NONE},
	{"[1,x]<stderr>:x", "[1,x]<stderr>:x", NONE, NONE},
	{"[1,131072]<stderr>:x", "[1,131072]<stderr>:x", NONE, NONE},
	{"[1,3] x", "[1,3] x", NONE, NONE},
	{"[1,3]<stderr>:[rank5]: x", "x", GLOBAL(5), GLOBAL(3)},
	{"[1,0]<stdout>:[default5]:x", "x", LOCAL(5), GLOBAL(0)},

	/* hydra */
	{"[3] loss 2.31", "loss 2.31", GLOBAL(3), NONE},
	{"[3] ", "", GLOBAL(3), NONE},
	{"[3]   File \"a.py\"", "  File \"a.py\"", GLOBAL(3), NONE},
	{"[3]", "[3]", NONE, NONE},
	{"[12345.678901] x", "[12345.678901] x", NONE, NONE},
	{"[ 5184.946924] x", "[ 5184.946924] x", NONE, NONE},
	{"[131072] x", "[131072] x", NONE, NONE},
	{"[10] [proxy:1@node-b] HYDU_create_process", "[proxy:1@node-b] HYDU_create_process",
		GLOBAL(10), NONE},
	{"[0] [1] x", "[1] x", GLOBAL(0), NONE},
	{"[0] [rank5]: x", "x", GLOBAL(5), GLOBAL(0)},
	{"[2026-11-30T07:45:50.140] x", "[2026-11-30T07:45:50.140] x", NONE, NONE},

	/* stacked */
	{"[rank3]:[rank7]: x", "x", GLOBAL(7), GLOBAL(3)},
	{"[rank3]: [rank7]: x", "x", GLOBAL(7), GLOBAL(3)},
	{"2: [rank3]:[rank7]: x", "x", GLOBAL(7), TASK(2)},
	{"[rank3]: [node1]: x", "[node1]: x", GLOBAL(3), NONE},
	{"[rank3]: [1] x", "[1] x", GLOBAL(3), NONE},
	{"3: [default5]:[rank13]:[E1130 09:34:13.345865895 a.cpp:1] x",
		"[E1130 09:34:13.345865895 a.cpp:1] x", GLOBAL(13), TASK(3)},
	{"[1,3]<stderr>: \x1b[36m(W pid=7)\x1b[0m x", "\x1b[36m(W pid=7)\x1b[0m x", GLOBAL(3),
		NONE},

	/* Ray, vLLM: SOURCES.md ray-logs */
	{"(RayTrainWorker pid=1234, ip=10.0.0.5) RuntimeError: boom", "RuntimeError: boom",
		PID(1234), NONE},
	{"\x1b[36m(RayTrainWorker pid=375)\x1b[0m Traceback", "Traceback", PID(375), NONE},
	{"\x1b[36m(RayTrainWorker pid=375)\x1b[0m ", "", PID(375), NONE},
	{"(pid=77) started", "started", PID(77), NONE},
	{"(Actor(id=3) pid=77) x", "x", PID(77), NONE},
	{"(APIServer pid=1) (Core pid=2, ip=10.0.0.1) x", "x", PID(2), PID(1)},
	{"(WorkerDict pid=9) [rank4]:   File \"a.py\"", "  File \"a.py\"", GLOBAL(4), PID(9)},
	{"(raylet) x", "(raylet) x", NONE, NONE},
	{"(VllmWorker rank=2 pid=1187) x", "x", GLOBAL(2), NONE},
	{"(VllmWorker rank=12 pid=1187, ip=10.0.0.1) x", "x", GLOBAL(12), NONE},
	{"\x1b[1;36m(VllmWorker rank=2 pid=1187)\x1b[0;0m x", "x", GLOBAL(2), NONE},
	{"12:00:00 (VllmWorker rank=2 pid=1187) x", "x", GLOBAL(2), NONE},
	{"(VllmWorker rank=2 pid=1187) [rank3]: x", "x", GLOBAL(3), GLOBAL(2)},
	{"(Engine pid=8) (VllmWorker rank=2 pid=1187) x", "x", PID(1187), PID(8)},
	{"(VllmWorker rank=-1 pid=1187) x", "x", PID(1187), NONE},
	{"(VllmWorker rank=12345678 pid=1187) x", "x", PID(1187), NONE},
	{"(VllmWorker rank= pid=1187) x", "x", PID(1187), NONE},
	{"(VllmWorker rank=2, pid=1187) x", "x", PID(1187), NONE},
	{"(VllmWorker dp_rank=2 pid=1187) x", "x", PID(1187), NONE},
	{"(VllmWorker rank=2 tp=1 pid=1187) x", "x", PID(1187), NONE},
	{"(rank=2 pid=1187) x", "x", PID(1187), NONE},
	{"(VllmWorker TP2 pid=1187) x", "x", PID(1187), NONE},
	{"(pid=77)x", "(pid=77)x", NONE, NONE},
	{"(stupid=77) x", "(stupid=77) x", NONE, NONE},
	{"(pid=77, port=3) x", "(pid=77, port=3) x", NONE, NONE},
	{"(pid=77", "(pid=77", NONE, NONE},
	{"(1) In PyTorch 2.6", "(1) In PyTorch 2.6", NONE, NONE},
	{"\x1b[36mplain", "\x1b[36mplain", NONE, NONE},
	{"(RayTrainWorker pid=1234) boom [repeated 15x across cluster]", "boom", PID(1234), NONE},
	{"\x1b[36m(W pid=397)\x1b[0m rank 3\x1b[32m [repeated 3x across cluster]\x1b[0m", "rank 3",
		PID(397), NONE},
	{"\x1b[36m(W pid=397)\x1b[0m x\x1b[32m [repeated 3x across cluster] (Ray deduplicates logs "
	 "by "
	 "default. Set RAY_DEDUP_LOGS=0 to disable log deduplication, or see https://docs.ray.io "
	 "for "
	 "more options.)\x1b[0m",
		"x", PID(397), NONE},
	{"(W pid=3) [rank4]: x [repeated 2x across cluster]", "x", GLOBAL(4), PID(3)},
	{"(W pid=3) \x1b[1mx [repeated 2x across cluster]", "\x1b[1mx", PID(3), NONE},
	{"(W pid=3) [repeated 2x across cluster]", "[repeated 2x across cluster]", PID(3), NONE},
	{"(W pid=3) x [repeated 2x across cluster] y", "x [repeated 2x across cluster] y", PID(3),
		NONE},
	{"(W pid=3) x [repeated across cluster]", "x [repeated across cluster]", PID(3), NONE},
	{"x [repeated 2x across cluster]", "x [repeated 2x across cluster]", NONE, NONE},
	{"(Worker (rank 1) pid=5) x", "x", PID(5), NONE},
	{"(see pid=5 for more) x", "(see pid=5 for more) x", NONE, NONE},

	/* a time in front: ts, kubectl --timestamps; only before forms that no program has */
	{"May 01 12:00:00 [rank3]: x", "x", GLOBAL(3), NONE},
	{"May  1 12:00:00 [default3]:x", "x", LOCAL(3), NONE},
	{"12:00:00 [1,3]<stderr>:x", "x", GLOBAL(3), NONE},
	{"2024-05-01 12:00:00 (RayTrainWorker pid=12) x", "x", PID(12), NONE},
	{"2024-05-01 12:00:00 [worker3]: x", "2024-05-01 12:00:00 [worker3]: x", NONE, NONE},
	{"2024-05-01 12:00:00 3: x", "2024-05-01 12:00:00 3: x", NONE, NONE},
	{"2024-05-01 12:00:00 [3] x", "2024-05-01 12:00:00 [3] x", NONE, NONE},
	{"May 01 12:00:00 (1) x", "May 01 12:00:00 (1) x", NONE, NONE},
	{"2024-05-01T12:00:00.000000001Z   File \"a.py\"", "  File \"a.py\"", NONE, NONE},
	{"2024-05-01T12:00:00.0000001+02:00 x", "x", NONE, NONE},
	{"2024-05-01T12:00:00.000000001Z", "", NONE, NONE},
	{"2024-05-01T12:00:00.000001Z x", "2024-05-01T12:00:00.000001Z x", NONE, NONE},
	{"2024-05-01T12:00:00.000000001 x", "2024-05-01T12:00:00.000000001 x", NONE, NONE},
	{"2024-05-01T12:00:00.000000001Zx", "2024-05-01T12:00:00.000000001Zx", NONE, NONE},

	/* ranks that loggers print: SOURCES.md logger-ranks; the text stays */
	{"[2024-05-01 12:00:00,123] [INFO] [f.py:12:fn] [Rank 4] step=10",
		"[2024-05-01 12:00:00,123] [INFO] [f.py:12:fn] [Rank 4] step=10", GLOBAL(4), NONE},
	{"[2024-05-01 12:00:00,123] [INFO] [f.py:12:fn] [Rank -1] x",
		"[2024-05-01 12:00:00,123] [INFO] [f.py:12:fn] [Rank -1] x", NONE, NONE},
	{"[2024-05-01 12:00:00,123] [Rank 4] x", "[2024-05-01 12:00:00,123] [Rank 4] x", NONE,
		NONE},
	{"[2024-05-01 12:00:00,123] [INFO] [f.py:12:fn] lost [Rank 4] x",
		"[2024-05-01 12:00:00,123] [INFO] [f.py:12:fn] lost [Rank 4] x", NONE, NONE},
	{"[NeMo I 2024-05-01 12:00:00 file:12 rank:3] x",
		"[NeMo I 2024-05-01 12:00:00 file:12 rank:3] x", GLOBAL(3), NONE},
	{"[NeMo I 2024-05-01 12:00:00 file:12] rank:3] x",
		"[NeMo I 2024-05-01 12:00:00 file:12] rank:3] x", NONE, NONE},
	{"[RANK 2] x", "[RANK 2] x", GLOBAL(2), NONE},
	{"11/30/2026 10:14:51 - INFO - train_ctr - [RANK 2] process 0 of 4",
		"11/30/2026 10:14:51 - INFO - train_ctr - [RANK 2] process 0 of 4", GLOBAL(2),
		NONE},
	{"2026-11-30 10:14:51,001 - INFO - waiting for [RANK 2] x",
		"2026-11-30 10:14:51,001 - INFO - waiting for [RANK 2] x", NONE, NONE},
	{"lost - [RANK 2] x", "lost - [RANK 2] x", NONE, NONE},
	{"[rank: 0] Received SIGTERM: 15", "[rank: 0] Received SIGTERM: 15", NONE, NONE},
	{"[rank: 2] Child process with PID 20 terminated with code -9. Forcefully",
		"[rank: 2] Child process with PID 20 terminated with code -9. Forcefully", NONE,
		NONE},
	{"[rank3]: [RANK 2] x", "[RANK 2] x", GLOBAL(3), NONE},

	/* heads that stay */
	{"May  1 12:00:00 gpu07 kernel: [1.5] x", "May  1 12:00:00 gpu07 kernel: [1.5] x", NONE,
		NONE},
	{"May  1 12:00:00 gpu07 a b[7]: x", "May  1 12:00:00 gpu07 a b[7]: x", NONE, NONE},
	{"<9999>May  1 12:00:00 a[7]: x", "<9999>May  1 12:00:00 a[7]: x", NONE, NONE},
	{"<30>Mai 1 a[7]: x", "<30>Mai 1 a[7]: x", NONE, NONE},
	{"<30>1 2024-05-01T12:00:00Z a b 7 -", "<30>1 2024-05-01T12:00:00Z a b 7 -", NONE, NONE},
	{"<30>1 2024-05-01T12:00:00Z a b 7 - [x y=\"]\" z",
		"<30>1 2024-05-01T12:00:00Z a b 7 - [x y=\"]\" z", NONE, NONE},
	{"[pod/A b/c] x", "[pod/A b/c] x", NONE, NONE},
	{"[pod/a] x", "[pod/a] x", NONE, NONE},
	{"[pod/a/b]x", "[pod/a/b]x", NONE, NONE},

	/* glued to a progress bar */
	{" 32%|###  | 19/60 [00:01<00:04,  9.39it/s][rank1]: Traceback (most recent call last):",
		"Traceback (most recent call last):", GLOBAL(1), NONE},
	{"Epoch 3:  32%|###| 19/60 [00:01<00:04, loss=3]Traceback (most recent call last):",
		"Traceback (most recent call last):", NONE, NONE},
	{"3: 32%|#| 19/60 [9.39it/s][rank1]: x", "x", GLOBAL(1), TASK(3)},
	{" 32%|###  | 19/60 [00:01<00:04,  9.39it/s]", " 32%|###  | 19/60 [00:01<00:04,  9.39it/s]",
		NONE, NONE},
	{"x][rank1]: y", "x][rank1]: y", NONE, NONE},

	/* containers: SOURCES.md cri-logs */
	{"2025-06-07T04:10:00.900777711Z stdout F [rank 0] x", "[rank 0] x", NONE, NONE},
	{"2024-05-01T14:00:00.5+02:00 stderr P [rank9]:[E x", "[E x", GLOBAL(9), NONE},
	{"2024-05-01T14:00:00Z stderr F:x 3: y", "y", TASK(3), NONE},
	{"2024-05-01T14:00:00Z stderr F", "", NONE, NONE},
	{"2024-05-01T14:00:00Z stderr X y", "2024-05-01T14:00:00Z stderr X y", NONE, NONE},
	{"2024-05-01T14:00:00Z stderr", "2024-05-01T14:00:00Z stderr", NONE, NONE},
	{"2024-05-01 14:00:00 stderr F y", "2024-05-01 14:00:00 stderr F y", NONE, NONE},
};

static void check_entry(
	struct ff_str line, struct ff_str text, struct ff_tag tag, struct ff_tag outer)
{
	char *own = ff_xmalloc(line.n);
	if (line.n) {
		memcpy(own, line.p, line.n);
	}
	struct ff_entry e;
	ff_line_entry((struct ff_str){own, line.n}, &e);
	ck_assert_msg(ff_str_eq(e.text, text), "'%.*s': text '%.*s'", FF_STR_ARG(line),
		FF_STR_ARG(e.text));
	ck_assert_msg(ff_tag_eq(e.tag, tag) && ff_tag_eq(e.outer, outer),
		"'%.*s': tag %s %ld, outer %s %ld", FF_STR_ARG(line), ff_tag_kind_name(e.tag.kind),
		e.tag.value, ff_tag_kind_name(e.outer.kind), e.outer.value);
	free(own);
}

START_TEST(test_entry)
{
	check_entry(ff_str_z(entry_rows[_i].line), ff_str_z(entry_rows[_i].text),
		entry_rows[_i].tag, entry_rows[_i].outer);
}
END_TEST

/* Names: equal lines of one host share a lane, those of another do not. */
static const struct {
	const char *line, *text, *stamp;
	struct ff_tag tag; /* HOST: any name, else this one with a host outside */
	int same;          /* rows with the same number have the same tag */
} host_rows[] = {
#define HOST \
	{ \
		FF_TAG_HOST, 0 \
	}
	{"gpu-07.x: [rank3]: x", "x", "", GLOBAL(3), 0},
	{"gpu-07.x: [default1]:x", "x", "", HOST, 1},
	{"gpu-07.x: [default1]:y", "y", "", HOST, 1},
	{"gpu-07.x: [default2]:x", "x", "", HOST, 2},
	{"gpu-08.x: [default1]:x", "x", "", HOST, 3},
	{"[pod/llm-worker-3-x7k2p/pytorch] loss 2.31", "loss 2.31", "", HOST, 4},
	{"[pod/llm-worker-3-x7k2p/pytorch] ", "", "", HOST, 4},
	{"[pod/llm-worker-3-x7k2p/pytorch] 2024-05-01T12:00:00.000000001Z x", "x",
		"2024-05-01T12:00:00.000000001Z", HOST, 4},
	{"[pod/llm-worker-3-x7k2p/pytorch] 2024-05-01T12:00:00Z x", "2024-05-01T12:00:00Z x", "",
		HOST, 4},
	{"[pod/llm-worker-3-x7k2p/pytorch] [3] x", "[3] x", "", HOST, 4},
	{"[pod/llm-worker-4-x7k2p/pytorch] x", "x", "", HOST, 5},
	{"[pod/llm-worker-4-x7k2p/pytorch] [rank3]: x", "x", "", GLOBAL(3), 0},
	{"[pod/llm-worker-4-x7k2p/pytorch] [default3]:x", "x", "", HOST, 6},
	{"May  1 12:00:00 gpu07 trainer[991]: x", "x", "May  1 12:00:00", HOST, 7},
	{"<30>May  1 12:00:00 gpu07 trainer[991]: x", "x", "May  1 12:00:00", HOST, 7},
	{"2024-05-01T12:00:00.123456+0000 gpu07 trainer[991]:   x", "  x",
		"2024-05-01T12:00:00.123456+0000", HOST, 7},
	{"May  1 12:00:00 gpu08 trainer[991]: x", "x", "May  1 12:00:00", HOST, 8},
	{"<30>May  1 12:00:00 3f2a90b1c4de[991]: x", "x", "May  1 12:00:00", HOST, 9},
	{"May  1 12:00:00 gpu07 trainer[991]: [rank3]: x", "x", "May  1 12:00:00", GLOBAL(3), 0},
	{"<131>1 2024-05-01T12:00:00.123456Z gpu07 train 4121 - [rank@32473 a=\"]\\\"\"] x", "x",
		"2024-05-01T12:00:00.123456Z", HOST, 10},
	{"<131>1 - gpu07 train 4121 - - \xef\xbb\xbfx", "x", "", HOST, 10},
	{"<131>1 - gpu07 train 4121 - -", "", "", HOST, 10},
};

START_TEST(test_entry_host)
{
	static struct ff_tag seen[16];
	for (size_t i = 0; i < sizeof host_rows / sizeof host_rows[0]; i++) {
		struct ff_entry e;
		const char *line = host_rows[i].line;
		ff_line_entry(ff_str_z(line), &e);
		ck_assert_msg(ff_str_eqz(e.text, host_rows[i].text), "%s", line);
		ck_assert_msg(ff_str_eqz(e.stamp, host_rows[i].stamp), "%s", line);
		int same = host_rows[i].same;
		if (!same) {
			ck_assert_msg(ff_tag_eq(e.tag, host_rows[i].tag), "%s", line);
			ck_assert_msg(e.outer.kind == FF_TAG_HOST, "%s", line);
			continue;
		}
		ck_assert_msg(e.tag.kind == FF_TAG_HOST && e.tag.value >= 0, "%s", line);
		if (seen[same].kind == FF_TAG_NONE) {
			seen[same] = e.tag;
		}
		for (int k = 1; k < 16; k++) {
			bool equal = ff_tag_eq(seen[k], e.tag);
			ck_assert_msg(equal == (k == same), "%s: %d", line, k);
		}
	}
}
END_TEST

START_TEST(test_entry_stamp)
{
	struct ff_entry e;
	ff_line_entry(FF_STR("2024-05-01 14:00:00 [rank9]: x"), &e);
	ck_assert(ff_str_eqz(e.stamp, "2024-05-01 14:00:00"));
	ff_line_entry(FF_STR("[Thu May  1 12:00:00 2024][1,3]<stderr>: x"), &e);
	ck_assert(ff_str_eqz(e.stamp, "Thu May  1 12:00:00 2024"));
	ff_line_entry(FF_STR("2024-05-01T14:00:00.5+02:00 stderr F [rank9]: x"), &e);
	ck_assert(ff_str_eqz(e.stamp, "2024-05-01T14:00:00.5+02:00"));
	ff_line_entry(FF_STR("[rank3]: 2026-11-30 09:34:17,075 x"), &e);
	ck_assert_uint_eq(e.stamp.n, 0);
}
END_TEST

START_TEST(test_entry_nul)
{
	static const struct ff_tag none = NONE, three = GLOBAL(3);
	check_entry(FF_STR("[rank3]: a\0b"), FF_STR("a\0b"), three, none);
	check_entry(FF_STR("[rank3]:\0"), FF_STR("\0"), three, none);
	check_entry(FF_STR("[rank\0003]: a"), FF_STR("[rank\0003]: a"), none, none);
	check_entry(FF_STR("\0[rank3]: a"), FF_STR("\0[rank3]: a"), none, none);
	check_entry((struct ff_str){NULL, 0}, FF_STR(""), none, none);
}
END_TEST

/* Pieces of prefixes in any order: the text is always an end of the line, and nothing is read
 * outside. */
START_TEST(test_entry_random)
{
	static const char *const parts[] = {
		"[rank",
		"[",
		"]",
		"]:",
		": ",
		"3",
		"131072",
		"<stderr>:",
		"(",
		")",
		"pid=",
		" ",
		"1,",
		"%|",
		"host",
		"/s]",
		"Traceback (most recent call last):",
		"default",
		"\x1b[36m",
		"2026-11-30",
		" 09:34:17",
		"T09:34:17",
		",075",
		" stdout F ",
		"<30>",
		"<stdout rank=\"3\">",
		"</stdout>",
		"&#010;",
		" [repeated ",
		"x across cluster]",
		" (Ray deduplicates",
		"\x1b[0m",
		"[pod/a/b] ",
		"a[7]: ",
		"May  1 12:00:00 ",
		"1 - a b 7 - ",
		"[RANK ",
		"[Rank ",
		"[NeMo ",
		" rank:",
		"Thu May  1 12:00:00 2024",
		"P0 ",
		"WILDCARD",
		", ip=",
		"E1130",
		"-",
		"@",
		"x",
	};
	struct random r = random_init(7);
	for (int round = 0; round < 60000; round++) {
		struct ff_buf b = {0};
		for (uint32_t n = random_below(&r, 9); n > 0; n--) {
			ff_buf_addz(&b, parts[random_below(&r, sizeof parts / sizeof parts[0])]);
		}
		char *own = ff_xmalloc(b.len);
		if (b.len) {
			memcpy(own, b.p, b.len);
		}
		struct ff_entry e;
		ff_line_entry((struct ff_str){own, b.len}, &e);
		size_t tail = (size_t)(own + b.len - (e.text.p + e.text.n));
		ck_assert_msg(e.text.p >= own && e.text.p + e.text.n <= own + b.len,
			"seed %lu: '%s'", r.seed, b.p);
		ck_assert_msg(!tail || e.repeats || own[0] == '<', "seed %lu: '%s'", r.seed, b.p);
		ck_assert(e.outer.kind == FF_TAG_NONE || e.tag.kind != FF_TAG_NONE);
		free(own);
		ff_buf_finish(&b);
	}
}
END_TEST

#define LOOP(tc, fn, n) tcase_add_loop_test(tc, fn, 0, (int)(n))

int main(void)
{
	Suite *s = suite_create("line");
	TCase *tc = tcase_create("line");
	LOOP(tc, test_split_every_way, sizeof texts / sizeof texts[0]);
	tcase_add_test(tc, test_split_small);
	LOOP(tc, test_split_long, 7 * 4);
	LOOP(tc, test_split_random, 10);
	tcase_add_test(tc, test_whole_lines_are_borrowed);
	tcase_add_test(tc, test_number_unknown);
	LOOP(tc, test_entry, sizeof entry_rows / sizeof entry_rows[0]);
	tcase_add_test(tc, test_entry_host);
	tcase_add_test(tc, test_entry_stamp);
	tcase_add_test(tc, test_entry_nul);
	tcase_add_test(tc, test_entry_random);
	tcase_set_timeout(tc, 100);
	suite_add_tcase(s, tc);
	SRunner *sr = srunner_create(s);
	srunner_run_all(sr, CK_ENV);
	int failed = srunner_ntests_failed(sr);
	srunner_free(sr);
	return failed ? 1 : 0;
}
