#include "core/stream.h"

#include "base/arr.h"
#include "digest.h"
#include "random.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>

/* ---- a small catalogue of the tests' own */

static const char catalog_json[] =
	"[{\"id\":\"cuda-oom\",\"title\":\"t\",\"category\":\"memory\",\"role\":\"primary\","
	"\"domain\":\"user\",\"cause\":\"c\",\"match\":[{\"literal\":\"CUDA out of memory\","
	"\"pattern\":\"CUDA out of memory\\\\. Tried to allocate (?<size>[\\\\d.]+ \\\\w+)\"}]},"
	"{\"id\":\"key-error\",\"title\":\"t\",\"category\":\"process\",\"role\":\"primary\","
	"\"domain\":\"user\",\"match\":[{\"literal\":\"KeyError: \","
	"\"pattern\":\"KeyError: (?<key>.+)\"}]},"
	"{\"id\":\"gloo-peer-closed\",\"title\":\"t\",\"category\":\"c\",\"role\":\"secondary\","
	"\"domain\":\"network\",\"match\":[{\"literal\":\"Connection closed by peer\","
	"\"pattern\":\"Connection closed by peer \\\\[(?<peer_addr>[^\\\\s.]\\\\S+)\"},"
	"{\"literal\":\"NCCL error in: \",\"pattern\":\"NCCL error in: \"},"
	"{\"literal\":\"ChildFailedError\",\"pattern\":\"ChildFailedError\"},"
	"{\"literal\":\"] timed out\",\"pattern\":\"Rank (?<pg_rank>\\\\d+)\\\\] timed out\"}]},"
	"{\"id\":\"process-exit\",\"title\":\"t\",\"category\":\"c\",\"role\":\"context\","
	"\"domain\":\"system\",\"kind\":\"exit\",\"match\":[{\"literal\":\"  rank  \","
	"\"pattern\":\"^  rank +: (?<rank>\\\\d+) \\\\(local_rank: (?<local_rank>\\\\d+)\\\\)\\\\n"
	"  exitcode +: (?<exit_code>-?\\\\d+) \\\\(pid: (?<pid>\\\\d+)\\\\)\"}]},"
	"{\"id\":\"agent-closing\",\"title\":\"t\",\"category\":\"c\",\"role\":\"context\","
	"\"domain\":\"system\",\"kind\":\"fact\",\"match\":[{\"literal\":\"Sending process \","
	"\"pattern\":\"Sending process (?<pid>\\\\d+) closing\"}]},"
	"{\"id\":\"rank-map\",\"title\":\"t\",\"category\":\"c\",\"role\":\"context\","
	"\"domain\":\"system\",\"kind\":\"sign\",\"match\":[{\"literal\":\"Init COMPLETE\","
	"\"pattern\":\"rank (?<pg_rank>\\\\d+)(?: busId (?<busid>\\\\w+))? - Init COMPLETE\"}]},"
	"{\"id\":\"leak\",\"title\":\"t\",\"category\":\"c\",\"role\":\"noise\",\"domain\":"
	"\"user\","
	"\"match\":[{\"literal\":\"can leak resources\",\"pattern\":\"can leak resources\"}]},"
	"{\"id\":\"sigsegv\",\"title\":\"t\",\"category\":\"c\",\"role\":\"primary\",\"domain\":"
	"\"user\","
	"\"match\":[{\"literal\":\"Segmentation fault\",\"pattern\":\"Segmentation fault\"}]},"
	"{\"id\":\"progress\",\"title\":\"t\",\"category\":\"c\",\"role\":\"context\",\"kind\":"
	"\"fact\","
	"\"domain\":\"user\",\"match\":[{\"literal\":\"step \","
	"\"pattern\":\"\\\\bstep (?<step>\\\\d+) loss\"}]},"
	"{\"id\":\"success\",\"title\":\"t\",\"category\":\"c\",\"role\":\"context\",\"kind\":"
	"\"fact\","
	"\"domain\":\"user\",\"match\":[{\"literal\":\"training finished\","
	"\"pattern\":\"(?<done>training finished)\"}]}]";

/* ---- samples: what programs print, put together */

#define TB_OOM \
	"[rank3]: Traceback (most recent call last):\n" \
	"[rank3]:   File \"/job/train.py\", line 88, in <module>\n" \
	"[rank3]:     main()\n" \
	"[rank3]:   File \"/env/lib/python3.11/site-packages/torch/nn/module.py\", line 9, in f\n" \
	"[rank3]:     return g(x)\n" \
	"[rank3]:            ^^^^\n" \
	"[rank3]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 3\n"

#define TB_CHAIN \
	"[rank2]: Traceback (most recent call last):\n" \
	"[rank2]:   File \"/job/train.py\", line 20, in parse\n" \
	"[rank2]:     return d[k]\n" \
	"[rank2]: KeyError: 'tokens'\n" \
	"\n" \
	"[rank2]: The above exception was the direct cause of the following exception:\n" \
	"\n" \
	"[rank2]: Traceback (most recent call last):\n" \
	"[rank2]:   File \"/job/train.py\", line 29, in <module>\n" \
	"[rank2]:     parse(x)\n" \
	"[rank2]: RuntimeError: bad shard line\n"

#define C10 \
	"[rank1]:[E501 12:00:08.123456789 ProcessGroupNCCL.cpp:607] NCCL error in: x.cpp:1, " \
	"remote\n" \
	"ncclRemoteError: A call failed possibly due to a network error.\n" \
	"Last error:\n" \
	"socketProgress: Connection closed by remote peer\n" \
	"Exception raised from check at a.cpp:43 (most recent call first):\n" \
	"frame #0: c10::Error::Error() + 0x9d (0x7f in /x/libc10.so)\n" \
	"\n"

#define TABLE \
	"Traceback (most recent call last):\n" \
	"  File \"/bin/torchrun\", line 8, in <module>\n" \
	"    sys.exit(main())\n" \
	"torch.distributed.elastic.multiprocessing.errors.ChildFailedError: \n" \
	"============================================================\n" \
	"train.py FAILED\n" \
	"------------------------------------------------------------\n" \
	"Failures:\n" \
	"[1]:\n" \
	"  time      : 2026-11-30_09:27:38\n" \
	"  host      : node-a\n" \
	"  rank      : 0 (local_rank: 0)\n" \
	"  exitcode  : -15 (pid: 8841)  (SIGTERM)\n" \
	"  error_file: <N/A>\n" \
	"  traceback : Signal 15 (SIGTERM) received by PID 8841\n" \
	"------------------------------------------------------------\n" \
	"Root Cause (first observed failure):\n" \
	"[0]:\n" \
	"  time      : 2026-11-30_09:27:37\n" \
	"  rank      : 1 (local_rank: 1)\n" \
	"  exitcode  : 1 (pid: 8842) \n" \
	"  traceback : Traceback (most recent call last):\n" \
	"    File \"/job/train.py\", line 25, in main\n" \
	"      x = d[k]\n" \
	"  KeyError: 'tokens'\n" \
	"  \n" \
	"============================================================\n"

#define STEPS(r) \
	"2026-11-30 09:41:25,625 [rank" #r "] INFO train: step 1 loss 2.5\n" \
	"2026-11-30 09:41:26,625 [rank" #r "] INFO train: step 2 loss 2.4\n"

#define HANDLED \
	"2026-11-30 09:41:27,000 [rank2] ERROR train: batch skipped\n" \
	"Traceback (most recent call last):\n" \
	"  File \"/job/train.py\", line 20, in load\n" \
	"    return d[k]\n" \
	"KeyError: 'a7'\n"

#define CRI(mark, text) "2024-05-01T12:00:00.000000001Z " mark " " text "\n"

/* Parts of stdout and stderr between each other; the last has no end. */
#define CRI_PARTS \
	CRI("stderr P", "Traceback (most rec") \
	CRI("stdout F", "step 1 loss 2") \
	CRI("stderr F", "ent call last):") \
	CRI("stderr F", "  File \"a.py\", line 1, in f") \
	CRI("stderr P", "KeyError: ") \
	CRI("stdout P", "CUDA out of mem") \
	CRI("stderr F", "'x'") \
	CRI("stdout P", "ory. Tried to allocate ") \
	CRI("stderr F", "step 2 loss 2") \
	CRI("stdout F", "2.00 GiB") \
	CRI("stdout F", "Fatal Python error: x") \
	CRI("stderr P", "  File ") \
	CRI("stdout F", "Thread 0x1") \
	CRI("stderr F", "\"y\"") \
	CRI("stderr P", "KeyError: 'z'")

#define SAMPLE(z) \
	{ \
		z, sizeof(z) - 1 \
	}
static const struct ff_str samples[] = {
	SAMPLE(STEPS(0) TB_OOM "[rank0]: done\n" TB_CHAIN
			       "plain text\n" STEPS(2) "training finished\n"),
	SAMPLE("W1130 x.py:1] Sending process 8841 closing\nW1130 x.py:1] Sending process 8842 "
	       "closing\n" TABLE "end\n" TABLE),
	SAMPLE(C10 "step 4 loss 1\n" C10
		   "[rank1]:[W501 12:00:09.000000001 socket.cpp:1] [c10d] hm\nbare\n" C10),
	SAMPLE(STEPS(2) HANDLED STEPS(2) HANDLED HANDLED "next\n" STEPS(2) HANDLED),
	SAMPLE("Traceback (most recent call last):\n  File \"a.py\", line 1, in f\n[rank1]: hello\n"
	       "    x = y\n[rank1]:[E501 12:00:08.123456789 P.cpp:1] NCCL error in: a\nnccl says\n"
	       "ValueError: bad\nmore of it\r\nand more\n\n[rank1]: KeyError: 'x'\n\n"
	       "During handling of the above exception, another exception occurred:\n\n"
	       "Traceback (most recent call last):\n  File \"b.py\", line 2, in g\n    "
	       "z\nTypeError: no\n"),
	SAMPLE("  3%|#  | 2/60\r  5%|#  | 3/60\rTraceback (most recent call last):\r\n"
	       "  File \"a.py\", line 1, in f\r\n    x\r\nKeyError: 'x'\r\nabc\rdef\r\r\n\rx"),
	SAMPLE("Fatal Python error: Segmentation fault\n\nCurrent thread 0x00007f (most recent "
	       "call first):\n"
	       "  File \"/lib/python3.11/site-packages/x.py\", line 1 in f\n"
	       "  File \"/job/train.py\", line 88 in step\n\nExtension modules: a, b (total: "
	       "2)\nstep 5 loss 1\n"
	       "terminate called after throwing an instance of 'gloo::X'\n"
	       "  what():  Connection closed by peer [10.0.0.7]:1\nFatal Python error: Aborted\n"),
	SAMPLE(" 3: Traceback (most recent call last):\n 4: step 1 loss 2\n 3:   File \"a.py\", "
	       "line 1, in f\n"
	       " 3:     x\n 4: step 2 loss 2\n 3: KeyError: 'x'\n 4: KeyError: 'y'\n 3: step 3 "
	       "loss 1\n"
	       "12: KeyError: 'z'\n12: KeyError: 'z'\n 4: step 3 loss 2\n 4: KeyError: 'y'\n 4: "
	       "KeyError: 'y'\n"),
	SAMPLE("Exception in thread prefetch:\nTraceback (most recent call last):\n"
	       "  File \"/job/train.py\", line 27, in work\n    f()\nKeyError: 'x'\n"
	       "\0ERROR: Unexpected bus error\nwarning: can leak resources\n\xff\xfe\0KeyError: "
	       "'n'\n"
	       "\x1b[36m(W pid=7)\x1b[0m KeyError: 'q'\n"),
	SAMPLE(CRI_PARTS),
	SAMPLE("[default0]:Traceback (most rec[default0]:ent call last):\n"
	       "[default0]:  File \"a.py\", line 1, in f\n"
	       "[default1]:step 1 loss 2[default0]:    x[default1]:step 2 loss 2\n"
	       "[default0]:Key[default0]:Error: 'x'[default1]:Traceback (most recent call last):\n"
	       "[default1]:  File \"b.py\", line 2, in g\n[default1]:KeyError: 'y'\n"
	       "[rank0]: half a line[rank1]:[E501 12:00:08.123456789 P.cpp:1] NCCL error in: a\n"
	       "loss 2.[rank3]: Traceback (most recent call last):\n"
	       "[rank3]:   File \"a.py\", line 1, in f\n[rank3]: KeyError: 'z'\n"
	       "[1,3]<stdout>:step [1,3]<stdout>:4 loss 2[1,2]<stderr>:KeyError: 'q'\n"),
};
static const size_t nsamples = sizeof samples / sizeof samples[0];

static struct ff_str sample(size_t i)
{
	return samples[i];
}

/* ---- a stream that is fed bytes with stamps that depend on the offset only */

static struct ff_stamp stamp_at(uint64_t offset)
{
	return (struct ff_stamp){
		.arrived = FF_TIME_FIRST + (ff_usec)offset * 1000, .captured = FF_TIME_NONE};
}

static struct ff_stream *stream_create(enum ff_stream_kind kind)
{
	struct ff_origin o = {
		.name = "log",
		.node = "node-0",
		.source = "0",
		.kind = kind,
		.rank = FF_UNKNOWN,
		.local_rank = FF_UNKNOWN,
		.attempt = FF_UNKNOWN,
		.pid = FF_UNKNOWN,
	};
	return ff_stream_create(&o, 1, 1);
}

static void feed(struct world *w, struct ff_stream *s, struct ff_str all, size_t from, size_t to)
{
	struct ff_chunk c = {
		.offset = from,
		.data = all.p + from,
		.len = to - from,
		.stamp = FF_STAMP_NONE,
		.tags = {FF_TAG_INIT, FF_UNKNOWN},
	};
	ff_stream_feed(s, &w->digest, &c);
}

/* As a live source sends it: a chunk a line or piece of one, each line with its stamp. */
static void feed_stamped(struct world *w, struct ff_stream *s, struct ff_str all, size_t from,
	size_t to, struct random *r)
{
	while (from < to) {
		ptrdiff_t lf = ff_str_chr(all, '\n', from);
		size_t end = lf < 0 ? all.n : (size_t)lf + 1;
		size_t begin = from;
		while (begin > 0 && all.p[begin - 1] != '\n') {
			begin--;
		}
		size_t n = 1 + random_below(r, (uint32_t)(end - from));
		n = n < to - from ? n : to - from;
		struct ff_chunk c = {
			.offset = from,
			.data = all.p + from,
			.len = n,
			.stamp = stamp_at(begin),
			.tags = {FF_TAG_INIT, FF_UNKNOWN},
		};
		ff_stream_feed(s, &w->digest, &c);
		from += n;
	}
}

/* ---- all that is stored of a stream, as text */

static void dump_stamp(struct ff_buf *b, struct ff_stamp s)
{
	ff_buf_addf(b, " %lld/%lld", (long long)s.arrived, (long long)s.captured);
}

static void dump_moment(struct ff_buf *b, const char *name, const struct ff_moment *m)
{
	if (!m->set) {
		return;
	}
	ff_buf_addf(b, " %s %llu L%lld", name, (unsigned long long)m->offset, (long long)m->line);
	dump_stamp(b, m->stamp);
	ff_buf_addf(b, " \"%s\"", m->text ? m->text : "");
}

static void dump_lane(struct ff_buf *b, const struct ff_lane *l)
{
	ff_buf_addf(b,
		"lane %d:%lld.%d lines %llu bytes %llu at %llu-%llu steps %llu fault %d %llu open "
		"%lld",
		l->tag.kind, (long long)l->tag.value, l->attempt, (unsigned long long)l->lines,
		(unsigned long long)l->bytes, (unsigned long long)l->first_offset,
		(unsigned long long)l->last_offset, (unsigned long long)l->steps, l->has_fault,
		(unsigned long long)l->last_fault_offset, (long long)l->open_offset);
	dump_stamp(b, l->first);
	dump_stamp(b, l->last);
	ff_buf_addf(b, " claimed %lld", (long long)l->first_claimed.us);
	dump_moment(b, "progress", &l->progress);
	dump_moment(b, "recovered", &l->recovered);
	dump_moment(b, "success", &l->success);
	for (size_t i = 0; i < 48; i++) {
		if (l->cadence[i]) {
			ff_buf_addf(b, " 2^%zu:%u", i, l->cadence[i]);
		}
	}
	for (size_t i = 0; i < l->npairs; i++) {
		ff_buf_addf(b, " (%lld,%lld)", (long long)l->pairs[i].came,
			(long long)l->pairs[i].claimed.us);
	}
	ff_buf_addc(b, '\n');
}

static void dump_event(struct ff_buf *b, const struct ff_event *e)
{
	ff_buf_addf(b,
		"event %llu.%u L%lld at %llu L%lld %s %s %s %s tag %d:%lld.%d lane %u x%u%s%s%s",
		(unsigned long long)e->offset, e->n, (long long)e->line,
		(unsigned long long)e->at_offset, (long long)e->at_line,
		ff_event_kind_name(e->kind), ff_role_name(e->role), e->fault, e->signature,
		e->tag.kind, (long long)e->tag.value, e->attempt, e->lane, e->count,
		e->handled ? " handled" : "", e->quoted ? " quoted" : "",
		e->recovered ? " recovered" : "");
	dump_stamp(b, e->stamp);
	ff_buf_addf(b, " claimed %lld fp %llx frame %s", (long long)e->claimed.us,
		(unsigned long long)e->fingerprint, e->frame ? e->frame : "-");
	for (size_t i = 0; i < e->fields.n; i++) {
		ff_buf_addf(b, " %s=%s", ff_field_name(e->fields.v[i].id), e->fields.v[i].value);
	}
	if (e->count > 1) {
		ff_buf_addf(b, " last %llu L%lld", (unsigned long long)e->last.offset,
			(long long)e->last.line);
		dump_stamp(b, e->last.stamp);
	}
	ff_buf_addz(b, " | ");
	ff_buf_add(b, e->text, e->text_len);
	ff_buf_addc(b, '\n');
}

/* offsets: fed, too, is the same only where the same bytes were fed. */
static char *dump(const struct ff_stream *s)
{
	struct ff_buf b = {0};
	ff_buf_addf(&b, "fed %llu digested %llu resume %llu L%lld skip %d gap %d state %d\n",
		(unsigned long long)s->fed, (unsigned long long)s->digested,
		(unsigned long long)ff_stream_resume(s), (long long)ff_stream_resume_line(s),
		ff_stream_resume_in_skip(s), s->gap, s->state);
	for (size_t i = 0; i < s->nlanes; i++) {
		dump_lane(&b, s->lanes[i]);
	}
	for (size_t i = 0; i < s->nevents; i++) {
		dump_event(&b, &s->events[i]);
	}
	return ff_buf_take(&b);
}

static char *dump_provisional(struct world *w, const struct ff_stream *s)
{
	struct ff_event *list = NULL;
	size_t n = 0, cap = 0;
	struct ff_buf b = {0};
	char *before = dump(s);
	ff_stream_provisional(s, &w->digest, &list, &n, &cap);
	char *after = dump(s);
	ck_assert_str_eq(before, after);
	for (size_t i = 0; i < n; i++) {
		dump_event(&b, &list[i]);
		ff_event_finish(&list[i]);
	}
	free(list);
	free(before);
	free(after);
	return ff_buf_take(&b);
}

/* ---- a crash: what is stored goes into a new stream */

static char *copyz(const char *z)
{
	return ff_xstrdup(z);
}

static void copy_lane(struct ff_lane *to, const struct ff_lane *from)
{
	to->lines = from->lines;
	to->bytes = from->bytes;
	to->first_offset = from->first_offset;
	to->last_offset = from->last_offset;
	to->first = from->first;
	to->last = from->last;
	to->first_claimed = from->first_claimed;
	to->progress = from->progress;
	to->progress.text = copyz(from->progress.text);
	to->recovered = from->recovered;
	to->recovered.text = copyz(from->recovered.text);
	to->success = from->success;
	to->success.text = copyz(from->success.text);
	to->steps = from->steps;
	memcpy(to->cadence, from->cadence, sizeof to->cadence);
	for (size_t i = 0; i < from->npairs; i++) {
		*FF_ARR_ADD(to->pairs, to->npairs, to->cpairs) = from->pairs[i];
	}
	to->last_fault_offset = from->last_fault_offset;
	to->has_fault = from->has_fault;
	to->open_offset = from->open_offset;
	to->dirty = false;
}

static void copy_event(struct ff_event *to, const struct ff_event *from)
{
	*to = *from;
	to->fault = copyz(from->fault);
	to->signature = copyz(from->signature);
	to->frame = copyz(from->frame);
	to->text = ff_xmemdup(from->text, from->text_len);
	to->fields = (struct ff_fields){0};
	for (size_t i = 0; i < from->fields.n; i++) {
		ff_fields_set(&to->fields, from->fields.v[i].id, ff_str_z(from->fields.v[i].value));
	}
	to->dirty = false;
}

static struct ff_stream *crash(struct ff_stream *s)
{
	struct ff_stream *t = stream_create(s->origin.kind);
	for (size_t i = 0; i < s->nlanes; i++) {
		copy_lane(ff_stream_lane(t, s->lanes[i]->tag, s->lanes[i]->attempt, NULL),
			s->lanes[i]);
	}
	for (size_t i = 0; i < s->nevents; i++) {
		copy_event(ff_stream_restore_event(t), &s->events[i]);
	}
	t->gap = s->gap;
	ff_stream_restore(t, s->digested, ff_stream_resume(s), ff_stream_resume_in_skip(s),
		s->last_tag, ff_stream_resume_line(s));
	ff_stream_destroy(s);
	return t;
}

static char *whole(struct world *w, struct ff_str all, bool end)
{
	struct ff_stream *s = stream_create(FF_STREAM_MIXED);
	struct random r = random_init(1);
	feed_stamped(w, s, all, 0, all.n, &r);
	if (end) {
		ff_stream_end(s, &w->digest, true, FF_TIME_NONE);
	}
	char *ret = dump(s);
	ff_stream_destroy(s);
	return ret;
}

/* ---- properties over all samples */

START_TEST(any_cut_gives_the_same)
{
	struct world *w = world_create(catalog_json);
	struct ff_str all = sample((size_t)_i);
	struct ff_stream *s = stream_create(FF_STREAM_MIXED);
	feed(w, s, all, 0, all.n);
	char *open = dump(s);
	ff_stream_end(s, &w->digest, true, FF_TIME_NONE);
	char *want = dump(s);
	ff_stream_destroy(s);
	for (size_t cut = 0; cut <= all.n; cut++) {
		s = stream_create(FF_STREAM_MIXED);
		feed(w, s, all, 0, cut);
		feed(w, s, all, cut, all.n);
		char *got_open = dump(s);
		ck_assert_msg(
			!strcmp(open, got_open), "cut %zu open:\n%s\n%s", cut, open, got_open);
		ff_stream_end(s, &w->digest, true, FF_TIME_NONE);
		char *got = dump(s);
		ck_assert_msg(!strcmp(want, got), "cut %zu:\n%s\n%s", cut, want, got);
		free(got);
		free(got_open);
		ff_stream_destroy(s);
	}
	free(open);
	free(want);
	world_destroy(w);
}
END_TEST

START_TEST(byte_by_byte_gives_the_same)
{
	struct world *w = world_create(catalog_json);
	struct ff_str all = sample((size_t)_i);
	char *want = whole(w, all, true);
	struct ff_stream *s = stream_create(FF_STREAM_MIXED);
	for (size_t i = 0; i < all.n; i++) {
		size_t begin = i;
		while (begin > 0 && all.p[begin - 1] != '\n') {
			begin--;
		}
		struct ff_chunk c = {i, all.p + i, 1, stamp_at(begin), {FF_TAG_INIT, FF_UNKNOWN}};
		ff_stream_feed(s, &w->digest, &c);
	}
	ff_stream_end(s, &w->digest, true, FF_TIME_NONE);
	char *got = dump(s);
	ck_assert_str_eq(want, got);
	free(want);
	free(got);
	ff_stream_destroy(s);
	world_destroy(w);
}
END_TEST

/* Law 9: cut anywhere, lose all that is not stored, go on from `resume`. */
START_TEST(a_crash_changes_nothing)
{
	struct world *w = world_create(catalog_json);
	struct ff_str all = sample((size_t)_i);
	struct random r = random_init((uint64_t)_i + 100);
	char *open = whole(w, all, false);
	char *want = whole(w, all, true);
	for (size_t cut = 0; cut <= all.n; cut++) {
		struct ff_stream *s = stream_create(FF_STREAM_MIXED);
		feed_stamped(w, s, all, 0, cut, &r);
		char *before = dump_provisional(w, s);
		s = crash(s);
		ck_assert_uint_le(s->fed, cut);
		feed_stamped(w, s, all, s->fed, cut, &r);
		char *after = dump_provisional(w, s);
		ck_assert_msg(!strcmp(before, after), "seed %llu cut %zu provisional:\n%s\n%s",
			(unsigned long long)r.seed, cut, before, after);
		free(before);
		free(after);
		feed_stamped(w, s, all, cut, all.n, &r);
		char *got_open = dump(s);
		ck_assert_msg(!strcmp(open, got_open), "seed %llu cut %zu open:\n%s\n%s",
			(unsigned long long)r.seed, cut, open, got_open);
		ff_stream_end(s, &w->digest, true, FF_TIME_NONE);
		char *got = dump(s);
		ck_assert_msg(!strcmp(want, got), "seed %llu cut %zu:\n%s\n%s",
			(unsigned long long)r.seed, cut, want, got);
		free(got);
		free(got_open);
		ff_stream_destroy(s);
	}
	free(open);
	free(want);
	world_destroy(w);
}
END_TEST

/* Lines of all samples in any order, some glued, cut or with a CR, and runs of the same line. */
static struct ff_buf random_text(struct random *r)
{
	struct ff_buf b = {0};
	unsigned lines = 20 + random_below(r, 120);
	for (unsigned i = 0; i < lines; i++) {
		struct ff_str all = sample(random_below(r, (uint32_t)nsamples));
		size_t from = random_below(r, (uint32_t)all.n);
		while (from > 0 && all.p[from - 1] != '\n') {
			from--;
		}
		unsigned run = random_below(r, 8) ? 1 + random_below(r, 6) : 40;
		for (unsigned k = 0; k < run && from < all.n; k++) {
			ptrdiff_t lf = ff_str_chr(all, '\n', from);
			size_t end = lf < 0 ? all.n : (size_t)lf + 1;
			size_t n = random_below(r, 30) ? end - from
						       : random_below(r, (uint32_t)(end - from));
			ff_buf_add(&b, all.p + from, n);
			if (!random_below(r, 60)) {
				ff_buf_addc(&b, '\r');
			}
			from = end;
		}
	}
	return b;
}

START_TEST(random_text_survives_cuts_and_crashes)
{
	struct world *w = world_create(catalog_json);
	struct random r = random_init((uint64_t)_i);
	struct ff_buf text = random_text(&r);
	struct ff_str all = ff_buf_str(&text);
	char *want = whole(w, all, true);
	for (unsigned round = 0; round < 4; round++) {
		struct ff_stream *s = stream_create(FF_STREAM_MIXED);
		size_t at = 0;
		while (at < all.n) {
			size_t to = at + 1 + random_below(&r, (uint32_t)(all.n - at));
			feed_stamped(w, s, all, at, to, &r);
			at = to;
			if (random_below(&r, 3)) {
				s = crash(s);
				at = s->fed;
				/* It may die again before it has caught up. */
				if (!random_below(&r, 3) && at < to) {
					feed_stamped(w, s, all, at,
						at + random_below(&r, (uint32_t)(to - at)), &r);
					s = crash(s);
					at = s->fed;
				}
				feed_stamped(w, s, all, at, to, &r);
				at = to;
			}
		}
		ff_stream_end(s, &w->digest, true, FF_TIME_NONE);
		char *got = dump(s);
		ck_assert_msg(!strcmp(want, got), "seed %llu case %d:\n%s\n%s",
			(unsigned long long)r.seed, _i, want, got);
		free(got);
		ff_stream_destroy(s);
	}
	free(want);
	ff_buf_finish(&text);
	world_destroy(w);
}
END_TEST

/* What is provisional in the end is what the end keeps: same ids, same texts. */
START_TEST(provisional_is_what_will_be_kept)
{
	struct world *w = world_create(catalog_json);
	struct ff_str all = sample((size_t)_i);
	for (size_t cut = 1; cut <= all.n; cut += 3) {
		struct ff_stream *s = stream_create(FF_STREAM_MIXED);
		feed(w, s, all, 0, cut);
		char *said = dump_provisional(w, s);
		struct ff_event *list = NULL;
		size_t n = 0, cap = 0;
		ff_stream_provisional(s, &w->digest, &list, &n, &cap);
		ff_stream_end(s, &w->digest, true, FF_TIME_NONE);
		for (size_t i = 0; i < n; i++) {
			bool found = false;
			for (size_t k = 0; k < s->nevents; k++) {
				found = found ||
					(s->events[k].offset == list[i].offset &&
						s->events[k].n == list[i].n &&
						!strcmp(s->events[k].signature, list[i].signature));
			}
			ck_assert_msg(found, "cut %zu:\n%s", cut, said);
			ff_event_finish(&list[i]);
		}
		free(list);
		free(said);
		ff_stream_destroy(s);
	}
	world_destroy(w);
}
END_TEST

/* ---- what is made of them */

/* The events of a text that is fed at once and ended, a line each: place, signature, tag and
 * more. */
static char *events_of(struct world *w, struct ff_str all, enum ff_stream_kind kind)
{
	struct ff_stream *s = stream_create(kind);
	struct ff_buf b = {0};
	feed(w, s, all, 0, all.n);
	ff_stream_end(s, &w->digest, true, FF_TIME_NONE);
	for (size_t i = 0; i < s->nevents; i++) {
		const struct ff_event *e = &s->events[i];
		ff_buf_addf(&b, "L%lld/%lld %s", (long long)e->line, (long long)e->at_line,
			e->signature);
		if (e->tag.kind != FF_TAG_NONE) {
			ff_buf_addf(&b, " %s %lld", ff_tag_kind_name(e->tag.kind),
				(long long)e->tag.value);
		}
		if (e->count > 1) {
			ff_buf_addf(&b, " x%u", e->count);
		}
		ff_buf_addz(&b, e->handled ? " handled" : "");
		ff_buf_addz(&b, e->quoted ? " quoted" : "");
		ff_buf_addz(&b, e->recovered ? " recovered" : "");
		for (size_t k = 0; k < e->fields.n; k++) {
			ff_buf_addf(&b, " %s=%s", ff_field_name(e->fields.v[k].id),
				e->fields.v[k].value);
		}
		if (e->frame) {
			ff_buf_addf(&b, " [%s]", e->frame);
		}
		ff_buf_addc(&b, '\n');
	}
	ff_stream_destroy(s);
	return ff_buf_take(&b);
}

static const struct {
	enum ff_stream_kind kind;
	const char *text, *events;
} event_cases[] = {
	{FF_STREAM_MIXED, TB_OOM "x\n",
		"L1/7 cuda-oom/1 global 3 size=2.00 GiB [train.py:88 in <module>: main()]\n"},
	{FF_STREAM_MIXED, TB_CHAIN,
		"L1/4 key-error/1 global 2 key='tokens' [train.py:20 in parse: return d[k]]\n"},
	{FF_STREAM_MIXED, TABLE,
		"L1/4 gloo-peer-closed/3 [torchrun:8 in <module>: sys.exit(main())]\n"
		"L5/12 process-exit/1 exit_code=-15 local_rank=0 pid=8841 rank=0\n"
		"L5/20 process-exit/1 exit_code=1 local_rank=1 pid=8842 rank=1\n"
		"L5/25 key-error/1 quoted key='tokens' rank=1 [train.py:25 in main: x = d[k]]\n"},
	{FF_STREAM_MIXED, C10 "KeyError: 'x'\n",
		"L1/1 gloo-peer-closed/2 global 1\nL8/8 key-error/1 key='x'\n"},
	/* A logger's traceback under its line; a second without progress folds, after progress
	 * not. */
	{FF_STREAM_MIXED, HANDLED HANDLED STEPS(2) HANDLED,
		"L1/5 key-error/1 global 2 x2 handled recovered key='a7' [train.py:20 in load: "
		"return d[k]]\n"
		"L13/17 key-error/1 global 2 handled key='a7' [train.py:20 in load: return "
		"d[k]]\n"},
	/* Under a log line of rank 2 stands a traceback from the top of a program: in a mixed
	 * stream it can be anybody's, in a rank's own it is that rank's. */
	{FF_STREAM_MIXED,
		"2026-11-30 09:41:27,000 [rank2] WARNING slow\nTraceback (most recent call last):\n"
		"  File \"a.py\", line 1, in <module>\n    f()\nKeyError: 'x'\n",
		"L1/5 key-error/1 key='x' [a.py:1 in <module>: f()]\n"},
	{FF_STREAM_RANK,
		"2026-11-30 09:41:27,000 [rank2] WARNING slow\nTraceback (most recent call last):\n"
		"  File \"a.py\", line 1, in <module>\n    f()\nKeyError: 'x'\n",
		"L1/5 key-error/1 global 2 key='x' [a.py:1 in <module>: f()]\n"},
	{FF_STREAM_MIXED,
		"Exception in thread t:\nTraceback (most recent call last):\n"
		"  File \"a.py\", line 1, in f\n    f()\nKeyError: 'x'\n",
		"L1/5 key-error/1 handled key='x' [a.py:1 in f: f()]\n"},
	/* Facts fold only with the same fields; noise is nothing. */
	{FF_STREAM_AGENT,
		"Sending process 1 closing\nSending process 2 closing\nSending process 1 closing\n"
		"this can leak resources\n",
		"L1/1 agent-closing/1 x2 pid=1\nL2/2 agent-closing/1 pid=2\n"},
	/* A training step ends a message, whatever text a message may have. */
	{FF_STREAM_RANK,
		"Traceback (most recent call last):\n  File \"a.py\", line 1, in f\n    f()\n"
		"KeyError: 'x'\nsecond line\nstep 4 loss 1\n",
		"L1/4 key-error/1 recovered key='x' [a.py:1 in f: f()]\n"},
	/* Distributed checkpoint quotes the failed rank: a quote on rank 1, its own on rank 2. */
	{FF_STREAM_RANK,
		"[rank1]: Traceback (most recent call last):\n[rank1]:   File \"a.py\", line 1, in "
		"f\n"
		"[rank1]: a.CheckpointException: CheckpointException ranks:dict_keys([2])\n"
		"[rank1]: Traceback (most recent call last): (RANK 2)\n"
		"[rank1]:   File \"b.py\", line 1, in g\n[rank1]: KeyError: 'x'\n",
		"L1/6 key-error/1 global 1 quoted key='x' rank=2 [b.py:1 in g]\n"},
	{FF_STREAM_RANK,
		"[rank2]: Traceback (most recent call last):\n[rank2]:   File \"a.py\", line 1, in "
		"f\n"
		"[rank2]: a.CheckpointException: CheckpointException ranks:dict_keys([2])\n"
		"[rank2]: Traceback (most recent call last): (RANK 2)\n"
		"[rank2]:   File \"b.py\", line 1, in g\n[rank2]: KeyError: 'x'\n",
		"L1/6 key-error/1 global 2 key='x' rank=2 [b.py:1 in g]\n"},
	{FF_STREAM_RANK, "healthy\nstep 1 loss 2\nall 3 good\ntraining finished\n", ""},
};

START_TEST(events_of_texts)
{
	struct world *w = world_create(catalog_json);
	char *got = events_of(w, ff_str_z(event_cases[_i].text), event_cases[_i].kind);
	ck_assert_str_eq(got, event_cases[_i].events);
	free(got);
	world_destroy(w);
}
END_TEST

/* ---- caps, gaps, distances */

/* A stream and all that was fed to it so far. */
struct source {
	struct world *w;
	struct ff_stream *s;
	struct ff_buf all;
	struct ff_line_tags tags;
};

static struct source source_create(void)
{
	return (struct source){
		.w = world_create(catalog_json),
		.s = stream_create(FF_STREAM_MIXED),
		.tags = {FF_TAG_INIT, FF_UNKNOWN},
	};
}

static void source_finish(struct source *src)
{
	ff_stream_destroy(src->s);
	ff_buf_finish(&src->all);
	world_destroy(src->w);
}

__attribute__((format(printf, 2, 3))) static void say(struct source *src, const char *fmt, ...)
{
	size_t from = src->all.len;
	va_list ap;
	va_start(ap, fmt);
	ff_buf_vaddf(&src->all, fmt, ap);
	va_end(ap);
	struct ff_chunk c = {
		from, src->all.p + from, src->all.len - from, stamp_at(from), src->tags};
	ff_stream_feed(src->s, &src->w->digest, &c);
	/* shared/README.md, law 9: half of what a sender may have unacknowledged. */
	ck_assert_uint_lt(src->s->fed - ff_stream_resume(src->s), FF_MAX_UNACKED / 2);
}

/* The words of the next number that normalisation does not take for one: a = 0, b = 1, ba = 10. */
static const char *word(unsigned n)
{
	static char text[8];
	size_t i = sizeof text - 1;
	do {
		text[--i] = (char)('g' + n % 10);
		n /= 10;
	} while (n);
	return text + i;
}

START_TEST(first_and_last_events_of_a_lane_stay)
{
	struct source src = source_create();
	unsigned n = 2 * FF_EVENTS_HALF + (unsigned)_i - 1;
	for (unsigned i = 0; i < n; i++) {
		say(&src, "KeyError: '%s'\n", word(i));
	}
	unsigned over = n > 64 ? n - 64 : 0;
	ck_assert_uint_eq(src.s->nevents, n - over);
	ck_assert_uint_eq(src.s->ndropped, over);
	ck_assert_uint_eq(src.w->counts[FF_COUNT_events_dropped], over);
	ck_assert_str_eq(src.s->events[31].fields.v[0].value + 1, src.s->events[31].text + 11);
	ck_assert_int_eq(src.s->events[31].line, 32);
	ck_assert_int_eq(src.s->events[32].line, 33 + over);
	ck_assert_int_eq(src.s->events[src.s->nevents - 1].line, n);
	if (over) {
		ck_assert_uint_eq(src.s->dropped[0] >> 8, 10 * 14 + 22 * 15); /* the 33rd line's */
	}
	source_finish(&src);
}
END_TEST

START_TEST(facts_do_not_crowd_out_faults)
{
	struct source src = source_create();
	for (unsigned i = 0; i < 100; i++) {
		say(&src, "Sending process %u closing\n", i);
	}
	say(&src, "KeyError: 'x'\n");
	for (unsigned i = 0; i < 100; i++) {
		say(&src, "Sending process %u closing\n", 200 + i);
	}
	size_t faults = 0;
	for (size_t i = 0; i < src.s->nevents; i++) {
		faults += src.s->events[i].kind == FF_EVENT_FAULT;
	}
	ck_assert_uint_eq(faults, 1);
	ck_assert_uint_eq(src.s->nevents, 65);
	source_finish(&src);
}
END_TEST

/* A healthy program may print its communicators for ever: one row, whatever they hold. */
START_TEST(signs_are_one_event_a_lane)
{
	struct source src = source_create();
	for (unsigned i = 0; i < 300; i++) {
		say(&src, "node-0:1:2 [0] NCCL INFO comm 0x%x rank %u - Init COMPLETE\n", i * 77,
			i);
		say(&src, "step %u loss 2\n", i);
	}
	ck_assert_uint_eq(src.s->nevents, 1);
	ck_assert_uint_eq(src.s->events[0].count, 300);
	ck_assert(ff_str_eqz(ff_event_field(&src.s->events[0], FF_F_pg_rank), "0"));
	say(&src, "[rank3]: node-0:1:2 [0] NCCL INFO comm 0x5 rank 3 - Init COMPLETE\n");
	ck_assert_uint_eq(src.s->nevents, 2);
	source_finish(&src);
}
END_TEST

/* One untagged lane holds the words of many: who speaks keeps them apart, up to the cap. */
START_TEST(ranks_of_one_lane_stay_apart)
{
	struct source src = source_create();
	for (unsigned i = 0; i < 24; i++) {
		say(&src, "[Rank %u] timed out\n", i % 8);
		say(&src, "n:1:2 [0] NCCL INFO comm 0x5 rank %u busId c%u000 - Init COMPLETE\n",
			i % 4, i % 4);
	}
	ck_assert_uint_eq(src.s->nevents, 12);
	for (unsigned i = 0; i < 500; i++) {
		say(&src, "n:1:2 [0] NCCL INFO comm 0x5 rank %u busId c%u000 - Init COMPLETE\n", i,
			i);
	}
	ck_assert_uint_eq(src.s->nevents, 8 + 64);
	source_finish(&src);
}
END_TEST

START_TEST(repeats_fold_until_progress)
{
	struct source src = source_create();
	for (unsigned i = 0; i < 500; i++) {
		say(&src, "RuntimeError: Connection closed by peer [10.0.0.7]:%u\n", i);
	}
	ck_assert_uint_eq(src.s->nevents, 1);
	ck_assert_uint_eq(src.s->events[0].count, 500);
	ck_assert_int_eq(src.s->events[0].last.line, 500);
	ck_assert(ff_str_eqz(ff_event_field(&src.s->events[0], FF_F_peer_addr), "10.0.0.7]:0"));
	ck_assert(!src.s->events[0].recovered);
	say(&src, "step 1 loss 2\n");
	ck_assert(src.s->events[0].recovered);
	ck_assert_int_eq(src.s->lanes[0]->recovered.line, 501);
	say(&src, "step 2 loss 2\n");
	ck_assert_int_eq(src.s->lanes[0]->recovered.line, 501);
	say(&src, "RuntimeError: Connection closed by peer [10.0.0.7]:1\n");
	ck_assert_uint_eq(src.s->nevents, 2);
	ck_assert(!src.s->lanes[0]->recovered.set);
	source_finish(&src);
}
END_TEST

START_TEST(events_of_one_record_are_capped)
{
	struct source src = source_create();
	say(&src, "[E501 12:00:08.123456789 P.cpp:607] x\n");
	for (unsigned i = 0; i < FF_RECORD_EVENTS - 1 + (unsigned)_i; i++) {
		say(&src, "\tKeyError: '%s'\n", word(i));
	}
	say(&src, "next\n");
	/* The lane's own cap comes behind that of the record. */
	ck_assert_uint_eq(src.s->nevents, 2 * FF_EVENTS_HALF);
	ck_assert_uint_eq(src.w->counts[FF_COUNT_record_events], _i < 2 ? 0 : _i - 1);
	for (unsigned i = 0; i < FF_EVENTS_HALF; i++) {
		ck_assert_uint_eq(src.s->events[i].n, i);
		ck_assert_uint_eq(src.s->events[i].offset, 0);
		ck_assert_int_eq(src.s->events[i].at_line, i + 2);
	}
	source_finish(&src);
}
END_TEST

START_TEST(lanes_are_capped)
{
	struct source src = source_create();
	for (unsigned i = 0; i < FF_LANES_MAX + 3; i++) {
		say(&src, "[rank%u]: hello\n", i);
	}
	ck_assert_uint_eq(src.s->nlanes, FF_LANES_MAX);
	ck_assert_uint_eq(src.s->lanes[0]->lines, 4);
	ck_assert_uint_eq(src.w->counts[FF_COUNT_lanes_refused], 3);
	say(&src, "[rank%u]: KeyError: 'x'\n", FF_LANES_MAX + 9);
	ck_assert_uint_eq(src.s->events[0].lane, 0);
	source_finish(&src);
}
END_TEST

START_TEST(known_bytes_are_skipped_and_gaps_are_seen)
{
	struct source src = source_create();
	say(&src,
		"Traceback (most recent call last):\n  File \"a.py\", line 1, in f\nKeyError: "
		"'x'\nhal");
	struct ff_chunk c = {0, src.all.p, src.all.len, FF_STAMP_NONE, {FF_TAG_INIT, FF_UNKNOWN}};
	ff_stream_feed(src.s, &src.w->digest, &c);
	ck_assert_uint_eq(src.w->counts[FF_COUNT_resent], src.all.len);
	ck_assert_uint_eq(src.s->nevents, 0);
	ck_assert_int_eq(ff_stream_resume_line(src.s), 1);
	c = (struct ff_chunk){
		1000, "KeyError: 'y'\n", 14, FF_STAMP_NONE, {FF_TAG_INIT, FF_UNKNOWN}};
	ff_stream_feed(src.s, &src.w->digest, &c);
	ck_assert(src.s->gap);
	ck_assert_uint_eq(src.w->counts[FF_COUNT_gaps], 1);
	ck_assert_uint_eq(src.s->nevents, 2);
	ck_assert_int_eq(src.s->events[0].line, 1);
	ck_assert_uint_eq(src.s->events[1].offset, 1000);
	ck_assert_int_eq(src.s->events[1].line, 0);
	ck_assert_uint_eq(ff_stream_resume(src.s), 1014);
	source_finish(&src);
}
END_TEST

/* An open record of one lane, then another lane's text for so many bytes. */
START_TEST(distance_closes_records)
{
	static const struct {
		size_t bytes;
		unsigned every; /* a frame of the record after so many lines; 0: none */
		bool open;
	} cases[] = {
		{FF_RECORD_IDLE - 4096, 0, true},
		{FF_RECORD_IDLE + 4096, 0, false},
		{FF_RECORD_SPAN - 8192, 100, true},
		{FF_RECORD_SPAN + 8192, 100, false},
	};
	struct source src = source_create();
	say(&src,
		"[rank1]: Traceback (most recent call last):\n[rank1]:   File \"a.py\", line 1, in "
		"f\n");
	size_t from = src.all.len;
	for (unsigned i = 1; src.all.len - from < cases[_i].bytes; i++) {
		say(&src, "%01023d\n", 0);
		if (cases[_i].every && i % cases[_i].every == 0) {
			say(&src, "[rank1]:   File \"a.py\", line 1, in f\n");
		}
	}
	ck_assert_int_eq(src.s->lanes[0]->joiner.open, cases[_i].open);
	ck_assert_int_eq(ff_stream_resume(src.s) == 0, cases[_i].open);
	say(&src, "[rank1]: KeyError: 'x'\n[rank1]: INFO: x\n");
	ck_assert_uint_eq(src.s->nevents, 1);
	ck_assert_int_eq(src.s->events[0].offset == 0, cases[_i].open);
	source_finish(&src);
}
END_TEST

START_TEST(a_long_line_is_cut_and_resume_follows)
{
	struct source src = source_create();
	struct ff_buf x = {0};
	for (unsigned i = 0; i < 4096; i++) {
		ff_buf_addc(&x, 'x');
	}
	say(&src,
		"Traceback (most recent call last):\n  File \"a.py\", line 1, in f\nKeyError: "
		"'x'\n");
	for (unsigned i = 0; i < 1000; i++) {
		say(&src, "%s", x.p);
	}
	ck_assert_uint_eq(src.w->counts[FF_COUNT_lines_cut], 1);
	ck_assert_uint_eq(src.s->nevents, 1);
	ck_assert(ff_stream_resume_in_skip(src.s));
	ck_assert_uint_eq(ff_stream_resume(src.s), src.s->fed);
	ck_assert_int_eq(ff_stream_resume_line(src.s), 4);
	say(&src, "KeyError: 'hidden'\r");
	ck_assert_uint_eq(ff_stream_resume(src.s), src.s->fed - 1);
	src.s = crash(src.s);
	struct ff_chunk c = {src.s->fed, src.all.p + src.s->fed, src.all.len - src.s->fed,
		FF_STAMP_NONE, {FF_TAG_INIT, FF_UNKNOWN}};
	ff_stream_feed(src.s, &src.w->digest, &c);
	say(&src, "KeyError: 'seen'\nKeyError: 'too'\n");
	ck_assert_uint_eq(src.s->nevents, 3);
	ck_assert_int_eq(src.s->events[1].line, 4);
	ck_assert_int_eq(src.s->events[2].line, 5);
	ff_buf_finish(&x);
	source_finish(&src);
}
END_TEST

/* ---- lanes */

START_TEST(tags_of_lines_make_lanes)
{
	struct source src = source_create();
	src.tags = (struct ff_line_tags){{FF_TAG_GLOBAL, 5}, 1};
	say(&src, "KeyError: 'a'\n");
	src.tags.attempt = 2;
	say(&src, "KeyError: 'a'\n");
	src.tags = (struct ff_line_tags){{FF_TAG_LOCAL, 1}, 2};
	say(&src, "[rank7]: KeyError: 'a'\n");
	say(&src, "KeyError: 'a'\n");
	ck_assert_uint_eq(src.s->nlanes, 4);
	ck_assert_uint_eq(src.s->nevents, 4);
	ck_assert_int_eq(src.s->events[0].attempt, 1);
	ck_assert_int_eq(src.s->events[1].attempt, 2);
	ck_assert_int_eq(src.s->events[2].tag.value, 7);
	ck_assert_int_eq(src.s->events[3].tag.kind, FF_TAG_LOCAL);
	source_finish(&src);
}
END_TEST

START_TEST(the_summary_of_a_lane)
{
	struct source src = source_create();
	say(&src, "2026-01-01 00:00:00,000 begin\n");
	say(&src, "step 1 loss 2\n");
	say(&src, "step 2 loss 2\n");
	say(&src, "step 3 loss 2\n");
	say(&src, "training finished\nbye\n");
	const struct ff_lane *l = src.s->lanes[0];
	ck_assert_uint_eq(l->lines, 6);
	ck_assert_uint_eq(l->bytes, src.all.len);
	ck_assert_uint_eq(l->steps, 3);
	ck_assert_int_eq(l->first_claimed.us, 1767225600 * FF_SECOND);
	ck_assert_str_eq(l->progress.text, "step 3 loss 2");
	ck_assert_int_eq(l->progress.line, 4);
	ck_assert_str_eq(l->success.text, "training finished");
	ck_assert_uint_eq(l->cadence[13], 2); /* 14 bytes at 1 ms each: 2^13 us and more */
	ck_assert_uint_eq(src.s->nevents, 0);
	ck_assert_uint_eq(src.w->counts[FF_COUNT_lines], 6);
	source_finish(&src);
}
END_TEST

/* Pairs at each multiple of 65,536 but the first byte; the envelope keeps the least delays. */
START_TEST(clock_pairs_are_sampled_by_offset)
{
	struct source src = source_create();
	struct random r = random_init(7);
	for (unsigned i = 0; i < 200 * 64; i++) {
		ff_usec late = (ff_usec)random_below(&r, 1000000);
		struct ff_buf t = {0};
		ff_usec came = stamp_at(src.all.len).arrived;
		ff_usec_render(&t, came - late - came / 100000);
		say(&src, "%s %0900d\n", t.p, 0);
		ff_buf_finish(&t);
	}
	const struct ff_lane *l = src.s->lanes[0];
	ck_assert_uint_ge(l->npairs, 3);
	ck_assert_uint_le(l->npairs, FF_PAIRS_MAX);
	for (size_t i = 0; i < l->npairs; i++) {
		ck_assert(i == 0 || l->pairs[i].came > l->pairs[i - 1].came);
	}
	source_finish(&src);
}
END_TEST

START_TEST(secrets_are_masked)
{
	struct source src = source_create();
	say(&src, "KeyError: 'hf_%s'\n", "abcdefghijabcdefghijabcdefghij1234");
	ck_assert(!strstr(src.s->events[0].text, "abcdefghij"));
	ck_assert(!strstr(src.s->events[0].fields.v[0].value, "abcdefghij"));
	ck_assert_uint_eq(src.w->counts[FF_COUNT_secrets], 2);
	source_finish(&src);
}
END_TEST

START_TEST(keys_of_streams)
{
	static const struct {
		const char *node, *name;
		uint32_t life;
		const char *key;
	} cases[] = {
		{NULL, "a.log", 1, "a.log"},
		{"n0", "a.log", 1, "n0/a.log"},
		{"n0", "n0/a.log", 1, "n0/a.log"},
		{"n0", "n01/a.log", 1, "n0/n01/a.log"},
		{"n0", "a.log", 2, "n0/a.log#2"},
	};
	struct ff_origin o = {.name = cases[_i].name, .node = cases[_i].node, .source = "0"};
	struct ff_stream *s = ff_stream_create(&o, 1, cases[_i].life);
	ck_assert_str_eq(s->key, cases[_i].key);
	ff_stream_destroy(s);
}
END_TEST

START_TEST(counts_have_names)
{
	ck_assert_str_eq(ff_count_name(FF_COUNT_lines), "lines");
	ck_assert_str_eq(ff_count_text(FF_COUNT_secrets), "secrets masked");
}
END_TEST

static TCase *tcase(const char *name)
{
	TCase *t = tcase_create(name);
	tcase_set_timeout(t, 120);
	return t;
}

static Suite *suite(void)
{
	Suite *s = suite_create("stream");
	TCase *t = tcase("properties");
	tcase_add_loop_test(t, any_cut_gives_the_same, 0, (int)nsamples);
	tcase_add_loop_test(t, byte_by_byte_gives_the_same, 0, (int)nsamples);
	tcase_add_loop_test(t, a_crash_changes_nothing, 0, (int)nsamples);
	tcase_add_loop_test(t, random_text_survives_cuts_and_crashes, 0, 60);
	tcase_add_loop_test(t, provisional_is_what_will_be_kept, 0, (int)nsamples);
	suite_add_tcase(s, t);
	t = tcase("events");
	tcase_add_loop_test(
		t, events_of_texts, 0, (int)(sizeof event_cases / sizeof event_cases[0]));
	suite_add_tcase(s, t);
	t = tcase("caps");
	tcase_add_loop_test(t, first_and_last_events_of_a_lane_stay, 0, 4);
	tcase_add_test(t, facts_do_not_crowd_out_faults);
	tcase_add_test(t, signs_are_one_event_a_lane);
	tcase_add_test(t, ranks_of_one_lane_stay_apart);
	tcase_add_test(t, repeats_fold_until_progress);
	tcase_add_loop_test(t, events_of_one_record_are_capped, 0, 3);
	tcase_add_test(t, lanes_are_capped);
	tcase_add_test(t, known_bytes_are_skipped_and_gaps_are_seen);
	tcase_add_loop_test(t, distance_closes_records, 0, 4);
	tcase_add_test(t, a_long_line_is_cut_and_resume_follows);
	suite_add_tcase(s, t);
	t = tcase("lanes");
	tcase_add_test(t, tags_of_lines_make_lanes);
	tcase_add_test(t, the_summary_of_a_lane);
	tcase_add_test(t, clock_pairs_are_sampled_by_offset);
	tcase_add_test(t, secrets_are_masked);
	tcase_add_loop_test(t, keys_of_streams, 0, 5);
	tcase_add_test(t, counts_have_names);
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
