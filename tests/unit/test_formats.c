/* Every line format as a broken or hostile source sends it (samples.h): cut at each byte, doubled,
 * behind every prefix, with bytes that are no text, nested ten thousand deep. Nothing reads outside
 * its bytes (the sanitizers see to that), and however bytes are cut, the events are the same.
 */
#include "samples.h"

#include "base/mem.h"
#include "core/stream.h"

#include "random.h"

#include <check.h>
#include <stdlib.h>

#define N(table) (sizeof(table) / sizeof(table)[0])
#define DEEP 10000u

static struct ff_catalog *catalog; /* the whole one, as the programs have it */
static struct ff_matcher *matcher;
static uint64_t counts[FF_COUNT_COUNT];

static void setup(void)
{
	struct ff_err err = {{0}};
	int r = ff_catalog_load(
		ff_catalog_files, ff_catalog_files_count, ff_catalog_files_sha256, &catalog, &err);
	ck_assert_msg(r == 0, "%s", err.text);
	matcher = ff_matcher_create(catalog);
}

static void teardown(void)
{
	ff_matcher_destroy(matcher);
	ff_catalog_destroy(catalog);
}

/* ---- the samples, one after the other */

static const struct {
	const struct sample *v;
	size_t n;
} tables[] = {
	{sample_records, N(sample_records)},
	{sample_endings, N(sample_endings)},
	{sample_stamps, N(sample_stamps)},
	{sample_prefixes, N(sample_prefixes)},
};
#define NRECORDS (N(sample_records) + N(sample_endings))
#define NSAMPLES (NRECORDS + N(sample_stamps) + N(sample_prefixes))

static const struct sample *sample(size_t i)
{
	for (size_t t = 0; t < N(tables); t++) {
		if (i < tables[t].n) {
			return &tables[t].v[i];
		}
		i -= tables[t].n;
	}
	ck_abort();
	return NULL;
}

/* The text with what stands before each of its lines. bare: torch's hook leaves empty ones. */
static void add_prefixed(struct ff_buf *b, struct ff_str text, struct ff_str prefix, bool bare)
{
	while (text.n) {
		ptrdiff_t lf = ff_str_chr(text, '\n', 0);
		size_t n = lf < 0 ? text.n : (size_t)lf + 1;
		if (n > 1 || !bare) {
			ff_buf_adds(b, prefix);
		}
		ff_buf_add(b, text.p, n);
		text = ff_str_skip(text, n);
	}
}

/* ---- what a stream makes of them */

static struct ff_stream *create(void)
{
	struct ff_origin o = {
		.name = "log",
		.source = "0",
		.kind = FF_STREAM_MIXED,
		.rank = FF_UNKNOWN,
		.local_rank = FF_UNKNOWN,
		.attempt = FF_UNKNOWN,
		.pid = FF_UNKNOWN,
	};
	return ff_stream_create(&o, 1, 1);
}

/* The bytes in memory of just their size. */
static void feed(struct ff_stream *s, struct ff_str text, size_t from, size_t to)
{
	struct ff_digest d = {catalog, matcher, counts};
	if (from == to) {
		return;
	}
	char *own = ff_xmemdup(text.p + from, to - from);
	struct ff_chunk c = {
		.offset = from,
		.data = own,
		.len = to - from,
		.stamp = FF_STAMP_NONE,
		.tags = {FF_TAG_INIT, FF_UNKNOWN},
	};
	ff_stream_feed(s, &d, &c);
	free(own);
}

static void end(struct ff_stream *s)
{
	struct ff_digest d = {catalog, matcher, counts};
	ff_stream_end(s, &d, true, FF_TIME_NONE);
}

static char *dump(const struct ff_stream *s)
{
	struct ff_buf b = {0};
	for (size_t i = 0; i < s->nevents; i++) {
		const struct ff_event *e = &s->events[i];
		ff_buf_addf(&b, "%llu.%u L%lld at %llu %s %s tag %d:%lld x%u claimed %lld |%.*s\n",
			(unsigned long long)e->offset, e->n, (long long)e->line,
			(unsigned long long)e->at_offset, e->fault, e->signature, e->tag.kind,
			(long long)e->tag.value, e->count, (long long)e->claimed.us,
			(int)e->text_len, e->text);
	}
	for (size_t i = 0; i < s->nlanes; i++) {
		const struct ff_lane *l = s->lanes[i];
		ff_buf_addf(&b, "lane %d:%lld %llu lines %llu bytes claimed %lld\n", l->tag.kind,
			(long long)l->tag.value, (unsigned long long)l->lines,
			(unsigned long long)l->bytes, (long long)l->first_claimed.us);
	}
	ff_buf_addz(&b, "");
	return ff_buf_take(&b);
}

/* All of it, fed in two pieces, then its end. */
static char *digest(struct ff_str text, size_t at)
{
	struct ff_stream *s = create();
	feed(s, text, 0, at);
	feed(s, text, at, text.n);
	end(s);
	char *ret = dump(s);
	ff_stream_destroy(s);
	return ret;
}

/* However it is cut: at some places, at each byte if there are no more than `most`. */
static void check_cuts(struct ff_str text, const char *what, struct random *r, size_t most)
{
	char *whole = digest(text, 0);
	for (size_t k = 0; k < most && k < text.n; k++) {
		size_t at = most >= text.n ? k : random_below(r, (uint32_t)text.n);
		char *got = digest(text, at);
		ck_assert_msg(!strcmp(got, whole), "seed %lu, %s cut at %zu: %s\nuncut: %s\n%.*s",
			r->seed, what, at, got, whole, (int)(text.n < 2000 ? text.n : 2000),
			text.p);
		free(got);
	}
	free(whole);
}

/* ---- the tests */

START_TEST(test_cut)
{
	struct random r = random_init(1);
	const struct sample *p = sample((size_t)_i);
	check_cuts(p->text, p->name, &r, p->text.n);
	for (size_t k = 0; k < p->text.n; k++) { /* and nothing behind the cut */
		free(digest((struct ff_str){p->text.p, k}, k / 2));
	}
}
END_TEST

static uint64_t count_events(struct ff_str text)
{
	struct ff_stream *s = create();
	uint64_t n = 0;
	feed(s, text, 0, text.n);
	end(s);
	for (size_t i = 0; i < s->nevents; i++) {
		n += s->events[i].count;
	}
	ff_stream_destroy(s);
	return n;
}

START_TEST(test_doubled)
{
	struct random r = random_init((uint64_t)_i);
	const struct sample *p = sample((size_t)_i);
	struct ff_buf b = {0};
	ff_buf_adds(&b, p->text);
	ff_buf_adds(&b, p->text);
	check_cuts(ff_buf_str(&b), p->name, &r, 40);
	ck_assert_uint_ge(count_events(ff_buf_str(&b)), count_events(p->text));
	ff_buf_finish(&b);
}
END_TEST

/* Is there an event of this fault, or of this signature where it is none? */
static bool has_fault(const struct ff_stream *s, const char *fault)
{
	size_t n = strlen(fault);
	for (size_t i = 0; i < s->nevents; i++) {
		const struct ff_event *e = &s->events[i];
		if (!strcmp(e->fault, fault) ||
			(!strncmp(e->signature, fault, n) && e->signature[n] == '/')) {
			return true;
		}
	}
	return false;
}

static void check_fault(struct ff_str text, const char *fault, const char *what, const char *name)
{
	struct ff_stream *s = create();
	feed(s, text, 0, text.n);
	end(s);
	if (!has_fault(s, fault)) {
		char *got = dump(s);
		ck_abort_msg("%s behind %s: %s\n%.*s", name, what, got, (int)text.n, text.p);
	}
	ff_stream_destroy(s);
}

/* A record is the same fault behind every prefix. */
START_TEST(test_prefixed)
{
	struct random r = random_init((uint64_t)_i);
	const struct sample *p = sample((size_t)_i);
	check_fault(p->text, p->fault, "nothing", p->name);
	for (size_t k = 0; k < N(sample_prefixes); k++) {
		const struct sample *prefix = &sample_prefixes[k];
		struct ff_buf b = {0};
		bool bare = strstr(prefix->name, "hook") != NULL;
		add_prefixed(&b, p->text, prefix->text, bare);
		check_fault(ff_buf_str(&b), p->fault, prefix->name, p->name);
		check_cuts(ff_buf_str(&b), prefix->name, &r, 6);
		ff_buf_finish(&b);
	}
}
END_TEST

/* The next line of the text with its prefix. */
static void add_line(struct ff_buf *b, struct ff_str *text, struct ff_str prefix)
{
	ptrdiff_t lf = ff_str_chr(*text, '\n', 0);
	size_t n = lf < 0 ? text->n : (size_t)lf + 1;
	if (n) {
		ff_buf_adds(b, prefix);
		ff_buf_add(b, text->p, n);
	}
	*text = ff_str_skip(*text, n);
}

/* Two processes print two records at a time, line by line: both faults are there, and each has its
 * own lane. */
START_TEST(test_interleaved)
{
	struct random r = random_init((uint64_t)_i);
	const struct sample *p = sample((size_t)_i), *other = &sample_records[0];
	for (size_t k = 0; k < N(sample_pairs); k++) {
		const char *name = sample_pairs[k].name;
		struct ff_str x = p->text, y = other->text;
		struct ff_buf b = {0};
		while (x.n || y.n) {
			add_line(&b, &x, sample_pairs[k].a);
			add_line(&b, &y, sample_pairs[k].b);
		}
		check_fault(ff_buf_str(&b), p->fault, name, p->name);
		check_fault(ff_buf_str(&b), other->fault, name, other->name);
		struct ff_stream *s = create();
		feed(s, ff_buf_str(&b), 0, b.len);
		end(s);
		ck_assert_msg(s->nlanes == 2, "%s: %zu lanes\n%s", name, s->nlanes, b.p);
		ff_stream_destroy(s);
		check_cuts(ff_buf_str(&b), name, &r, 3);
		ff_buf_finish(&b);
	}
}
END_TEST

/* Every sample behind everything that may stand in front of it, once. */
START_TEST(test_foreign)
{
	struct random r = random_init((uint64_t)_i);
	const struct sample *p = sample((size_t)_i);
	for (size_t k = 0; k < NSAMPLES; k++) {
		struct ff_buf b = {0};
		ff_buf_adds(&b, sample(k)->text);
		ff_buf_adds(&b, p->text);
		check_cuts(ff_buf_str(&b), sample(k)->name, &r, 3);
		ff_buf_finish(&b);
	}
}
END_TEST

/* Latin-1 and worse: each byte from 0x80 to 0xff, and NUL, at each place in turn. */
START_TEST(test_bytes)
{
	struct random r = random_init((uint64_t)_i);
	const struct sample *p = sample((size_t)_i);
	for (size_t k = 0; k <= p->text.n; k++) {
		struct ff_buf b = {0};
		char byte = (char)(k % 129 == 128 ? 0 : 0x80 + (k * 37 + (size_t)_i) % 128);
		ff_buf_add(&b, p->text.p, k);
		ff_buf_addc(&b, byte);
		ff_buf_adds(&b, ff_str_skip(p->text, k));
		check_cuts(ff_buf_str(&b), p->name, &r, 1);
		ff_buf_finish(&b);
	}
}
END_TEST

/* Brackets, colours and prefixes in prefixes; each alone and with a record behind. */
static const char *const nests[] = {
	"(",
	"[",
	"{",
	"<",
	"((pid=1) ",
	"[[rank1]: ",
	"{\"a\":",
	"\x1b[31m",
	"\x1b[",
	"<30>",
	"[default1]:a",
	"[1,3]<stderr>:a",
	"a[rank1]: Traceback (most recent call last):",
	"2024-05-01T12:00:00.5Z stderr P ",
	"(a pid=1) [repeated 2x across cluster]",
	" | ",
	"  ",
	"Traceback (most recent call last):",
	"\r",
	"\"",
	"[a b=\"",
	"\n",
	"\n  + ",
	"Original ",
};

START_TEST(test_nested)
{
	struct random r = random_init((uint64_t)_i);
	struct ff_buf b = {0};
	struct ff_str unit =
		(size_t)_i < N(nests) ? ff_str_z(nests[_i]) : sample((size_t)_i - N(nests))->text;
	unsigned times = unit.n > 100 ? DEEP / 50 : DEEP; /* records are no nests, only many */
	for (unsigned k = 0; k < times; k++) {
		ff_buf_adds(&b, unit);
	}
	ff_buf_addz(&b, SAMPLE_HEADER SAMPLE_FRAMES SAMPLE_OOM);
	check_cuts(ff_buf_str(&b), "nested", &r, 2);
	ff_buf_finish(&b);
}
END_TEST

#define LOOP(tc, fn, n) tcase_add_loop_test(tc, fn, 0, (int)(n))

int main(void)
{
	Suite *s = suite_create("formats");
	TCase *tc = tcase_create("formats");
	tcase_add_unchecked_fixture(tc, setup, teardown);
	LOOP(tc, test_cut, NSAMPLES);
	LOOP(tc, test_doubled, NSAMPLES);
	LOOP(tc, test_prefixed, NRECORDS);
	LOOP(tc, test_interleaved, NRECORDS);
	LOOP(tc, test_foreign, NSAMPLES);
	LOOP(tc, test_bytes, NSAMPLES);
	LOOP(tc, test_nested, N(nests) + NSAMPLES);
	tcase_set_timeout(tc, 300);
	suite_add_tcase(s, tc);
	SRunner *sr = srunner_create(s);
	srunner_run_all(sr, CK_ENV);
	int failed = srunner_ntests_failed(sr);
	srunner_free(sr);
	return failed ? 1 : 0;
}
