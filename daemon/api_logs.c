#include "answer.h"
#include "api.h"

#include "base/arr.h"
#include "base/limits.h"
#include "base/mask_rules.h"
#include "base/mem.h"
#include "lines.h"
#include "tail.h"
#include "tail_reach.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define LINES 20
#define LINES_MAX 10000
#define CONTEXT 128 /* lines of a file in front, so that a secret of many lines is seen */
#define STREAMS_PAGE 200u /* streams of one answer */
#define BLOCK (64u * 1024u)
#define BACK_MAX (16u * 1024u * 1024u) /* bytes of a file that are read in front of the place */
#define ANSWER_MAX (64u * 1024u * 1024u)

/* A stream whose lines are wanted: all that the reading thread needs to know. */
struct wanted {
	uint32_t number; /* first: segment_find */
	char *key;
	uint64_t end;           /* bytes of it that are known */
	uint64_t anchor_offset; /* a byte of which the line's number is known */
	int64_t anchor_line;
	char *path; /* of a tailed file, else NULL */
	uint64_t device, inode;
	struct lines lines;
	size_t shown; /* lines of them before the place, and behind it */
};

struct logs {
	uv_work_t work;
	struct daemon *d;
	struct request *r;     /* NULL: nobody waits any more */
	atomic_bool cancelled; /* said to the thread that reads */
	char *state;
	uint32_t run;
	struct segment_range range;
	struct wanted *v;
	size_t n, cap;
	bool around;
	size_t next; /* stream where the next page begins, 0: none */
	struct ff_buf out;
};

static void logs_destroy(struct logs *l)
{
	for (size_t i = 0; i < l->n; i++) {
		free(l->v[i].key);
		free(l->v[i].path);
		lines_finish(&l->v[i].lines);
	}
	free(l->v);
	free(l->state);
	ff_buf_finish(&l->out);
	free(l);
}

/* ---- in the reading thread */

static struct wanted *find_wanted(struct logs *l, uint32_t number)
{
	return segment_find(l->v, l->n, sizeof *l->v, number);
}

static bool is_all_done(const struct logs *l)
{
	for (size_t i = 0; i < l->n; i++) {
		if (!l->v[i].path && !lines_done(&l->v[i].lines)) {
			return false;
		}
	}
	return true;
}

static bool on_frame(void *ud, const struct segment_frame *frame, struct ff_str lines,
	struct segment_place place)
{
	struct logs *l = ud;
	struct wanted *w = find_wanted(l, frame->stream);
	if (atomic_load(&l->cancelled)) {
		return false;
	}
	if (!w || w->path) {
		return true;
	}
	uint64_t offset = frame->offset;
	struct segment_line line;
	while (segment_take_line(&lines, &line)) {
		lines_feed(&w->lines, offset, line.text);
		offset += line.text.n;
		if (line.whole) {
			lines_feed(&w->lines, offset++, FF_STR("\n"));
		}
	}
	return !lines_done(&w->lines) || !is_all_done(l);
}

static ssize_t read_at(int fd, char *p, size_t n, uint64_t at)
{
	ssize_t got;
	do {
		got = pread(fd, p, n, (off_t)at);
	} while (got < 0 && errno == EINTR);
	return got;
}

/* Where the wanted lines in front of `from` begin. */
static uint64_t find_begin(int fd, uint64_t from, size_t want, char *block)
{
	uint64_t at = from;
	size_t left = want + 1;
	while (at && from - at < BACK_MAX) {
		size_t n = at < BLOCK ? (size_t)at : BLOCK;
		if (read_at(fd, block, n, at - n) != (ssize_t)n) {
			return at;
		}
		for (size_t i = n; i > 0; i--) {
			if (block[i - 1] == '\n' && !left--) {
				return at - n + i;
			}
		}
		at -= n;
	}
	return at;
}

/* The file is its own text, if it is still the same. */
static void read_file(const struct logs *l, struct wanted *w)
{
	struct stat st;
	int fd = tail_reach_same(w->path, w->device, w->inode, &st);
	if (fd < 0) {
		return;
	}
	char *block = ff_xmalloc(BLOCK);
	uint64_t size = (uint64_t)st.st_size < w->end ? (uint64_t)st.st_size : w->end;
	uint64_t from = w->lines.target < size ? w->lines.target : size;
	uint64_t at = find_begin(fd, from, w->lines.want, block);
	while (at < size && !lines_done(&w->lines) && !atomic_load(&l->cancelled)) {
		ssize_t n = read_at(fd, block, size - at < BLOCK ? (size_t)(size - at) : BLOCK, at);
		if (n <= 0) {
			break;
		}
		lines_feed(&w->lines, at, ff_str_n(block, (size_t)n));
		at += (uint64_t)n;
	}
	free(block);
	close(fd);
}

/* Others than those of files were masked as they came. */
static void mask_line(
	const struct ff_mask_rules *r, struct ff_mask_lines *m, struct lines_one *line)
{
	(void)ff_mask_rules_line(r, m, line->text, line->len);
	if (line->len == FF_LINE_MAX) {
		ff_mask_rules_cut(r, line->text, line->len);
	}
}

static void put_line(struct ff_jw *w, const struct wanted *of, const struct lines_one *line)
{
	ff_jw_open(w, '{');
	ff_jw_kstrz(w, "stream", of->key);
	if (line->number) {
		ff_jw_kint(w, "line", line->number);
	} else {
		ff_jw_knull(w, "line");
	}
	ff_jw_kint(w, "offset", (int64_t)line->offset);
	ff_jw_kstr(w, "text", ff_str_n(line->text, line->len));
	ff_jw_kbool(w, "gone", false);
	ff_jw_close(w, '}');
}

static void put_gone(struct ff_jw *w, const struct wanted *of)
{
	ff_jw_open(w, '{');
	ff_jw_kstrz(w, "stream", of->key);
	ff_jw_knull(w, "line");
	ff_jw_knull(w, "offset");
	ff_jw_knull(w, "text");
	ff_jw_kbool(w, "gone", true);
	ff_jw_close(w, '}');
}

/* Lines of a stream; a word of what is not there any more. */
static void put_stream(
	struct ff_jw *w, const struct ff_mask_rules *r, struct wanted *of, bool around)
{
	struct lines *l = &of->lines;
	lines_end(l);
	lines_number(l, of->anchor_offset, of->anchor_line);
	bool missing = around ? !l->found : !l->n && of->end;
	if (missing) {
		put_gone(w, of);
		return;
	}
	struct ff_mask_lines mask = {0};
	size_t middle = l->target == LINES_END ? l->n : 0;
	while (middle < l->n && l->v[middle].end <= l->target) {
		middle++;
	}
	for (size_t i = 0; i < l->n && w->out->len < ANSWER_MAX; i++) {
		if (of->path) {
			mask_line(r, &mask, &l->v[i]);
		}
		if (i + of->shown >= middle && i <= middle + of->shown) {
			put_line(w, of, &l->v[i]);
		}
	}
}

static void on_work(uv_work_t *work)
{
	struct logs *l = work->data;
	bool segments = false;
	for (size_t i = 0; i < l->n; i++) {
		if (l->v[i].path) {
			read_file(l, &l->v[i]);
		} else {
			segments = true;
		}
	}
	if (segments) {
		struct segment_place from = {l->range.first, 0};
		/* a file that was dropped in this moment: what is left is shown */
		(void)segment_scan(l->state, l->run, l->range, from, on_frame, l);
	}
	struct ff_jw w;
	request_list_open(&w, &l->out, "firstfault.logs/1");
	for (size_t i = 0; i < l->n && !atomic_load(&l->cancelled); i++) {
		put_stream(&w, l->d->runs.mask, &l->v[i], l->around);
	}
	char next[24];
	(void)snprintf(next, sizeof next, "%zu", l->next);
	request_list_close(&w, l->next ? next : NULL);
}

static void after_work(uv_work_t *work, int status)
{
	struct logs *l = work->data;
	l->d->reading--;
	if (l->r && status < 0) {
		request_problem(l->r, 503, "the daemon is ending");
	} else if (l->r) {
		request_json(l->r, 200, &l->out);
	}
	if (l->r) {
		l->r->reading = NULL;
		api_finish(l->r);
	}
	logs_destroy(l);
}

void api_logs_orphan(struct request *r)
{
	struct logs *l = r->reading;
	if (l) {
		l->r = NULL;
		r->reading = NULL;
		atomic_store(&l->cancelled, true);
		(void)uv_cancel((uv_req_t *)&l->work); /* if no thread has begun */
	}
}

/* ---- what is wanted */

static void want(struct logs *l, const struct ff_stream *s, uint64_t target, size_t lines)
{
	const struct stream_state *ss = s->user;
	struct wanted *w = FF_ARR_ADD(l->v, l->n, l->cap);
	*w = (struct wanted){
		.number = s->number,
		.key = ff_xstrdup(s->key),
		.end = s->fed,
		.anchor_offset = ff_stream_resume(s),
		.anchor_line = ff_stream_resume_line(s),
	};
	w->shown = lines;
	bool masked = !(ss && ss->tail);
	lines_init(&w->lines, target, lines + (masked ? 0 : CONTEXT));
	if (ss && ss->tail) {
		w->path = ff_xstrdup(tail_file_place(ss->tail, &w->device, &w->inode));
	}
}

static const struct ff_sighting *find_id(const struct ff_verdict *v, const char *id)
{
	for (size_t i = 0; id && i < v->timeline.nall; i++) {
		if (!strcmp(v->timeline.all[i].id, id)) {
			return &v->timeline.all[i];
		}
	}
	return NULL;
}

/* "first", the number that `events` shows, or an id. */
static const struct ff_sighting *find_event(const struct ff_verdict *v, const char *event)
{
	int64_t number;
	if (!strcmp(event, "first")) {
		const char *id = v->ninitiating ? v->initiating[0].event : NULL;
		if (!id && v->nwhy) {
			id = v->why[0].events[0];
		}
		return find_id(v, id);
	}
	if (ff_str_int(ff_str_z(event), &number) && number >= 1 &&
		number <= (int64_t)v->timeline.nall) {
		return &v->timeline.all[number - 1];
	}
	return find_id(v, event);
}

static void want_event(struct logs *l, const struct ff_verdict *v, const char *event, size_t lines)
{
	const struct ff_sighting *s = find_event(v, event);
	if (!s || !s->stream) {
		request_problem(l->r, 404,
			s ? "event \"%s\" is of no log" : "no event \"%s\" is known", event);
		return;
	}
	l->around = true;
	want(l, s->stream, s->ev->at_offset, lines);
	l->v[0].anchor_offset = s->ev->at_offset;
	l->v[0].anchor_line = s->ev->at_line;
}

static void want_streams(struct logs *l, struct ff_run *run, int64_t rank, size_t lines,
	size_t cursor)
{
	const struct ff_job *job = run->job;
	for (size_t i = cursor; i < job->nstreams; i++) {
		const struct ff_stream *s = job->streams[i];
		if (rank != FF_UNKNOWN && s->origin.rank != rank &&
			!answer_is_of_rank(l->d, run, s, (int32_t)rank)) {
			continue;
		}
		if (l->n == STREAMS_PAGE) {
			l->next = i;
			return;
		}
		want(l, s, LINES_END, lines);
	}
}

static void start(struct logs *l)
{
	struct request *r = l->r;
	if (r->answered) {
		logs_destroy(l);
		return;
	}
	l->work.data = l;
	r->pending = true;
	r->reading = l;
	r->d->reading++;
	if (uv_queue_work(&r->d->loop, &l->work, on_work, after_work) < 0) {
		r->d->reading--;
		r->pending = false;
		r->reading = NULL;
		request_problem(r, 503, "the text can't be read now");
		logs_destroy(l);
	}
}

void api_logs_get(struct request *r)
{
	struct ff_run *run = request_run(r, 2, false);
	int64_t lines, rank, cursor;
	if (!run || !request_number(r, "rank", 0, FF_RANKS_MAX - 1, FF_UNKNOWN, &rank)) {
		return;
	}
	char *follow = request_query(r, "follow");
	if (follow) {
		api_follow_get(r, run, follow, rank);
		free(follow);
		return;
	}
	if (!request_number(r, "lines", 1, LINES_MAX, LINES, &lines) ||
		!request_number(r, "cursor", 0, FF_STREAMS_MAX, 0, &cursor)) {
		return;
	}
	const struct run_state *rs = run->user;
	struct logs *l = ff_xcalloc(1, sizeof *l);
	l->r = r;
	l->d = r->d;
	l->state = ff_xstrdup(r->d->config->state);
	l->run = run->number;
	l->range = rs->committed;
	char *around = request_query(r, "around");
	if (around) {
		struct ff_verdict *v = answer_judge(r->d, run, FF_UNKNOWN);
		want_event(l, v, around, (size_t)lines);
		ff_verdict_destroy(v);
	} else {
		want_streams(l, run, rank, (size_t)lines, (size_t)cursor);
	}
	free(around);
	start(l);
}
