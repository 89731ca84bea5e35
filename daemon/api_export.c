#include "answer.h"
#include "api.h"

#include "base/arr.h"
#include "base/limits.h"
#include "base/mask_rules.h"
#include "base/mem.h"
#include "export.h"
#include "tail.h"
#include "tail_reach.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define PAGE (8u * 1024u * 1024u) /* bytes of an answer; a line more may be in it */
#define BLOCK (64u * 1024u)
#define SHOWN_MAX (2u * 1024u * 1024u) /* bytes of a line that are shown: it fits an object */

/* A stream: all that the reading thread needs to know. */
struct part {
	uint32_t number; /* first: segment_find */
	struct ff_buf head; /* of its objects, up to the first comma behind what names it */
	int32_t rank, local_rank, attempt;
	uint64_t end; /* bytes of it that are known */
	char *path;   /* of a tailed file, else NULL */
	uint64_t device, inode;
	/* a line that is being put together */
	bool open;
	struct segment_place place; /* of the frame where it begins */
	uint64_t at, next;
	ff_usec us;
	enum ff_clock clock;
	struct ff_line_tags tags;
	struct ff_buf line;
	struct ff_mask_lines mask; /* of a file's lines */
};

enum stage { STAGE_HEAD, STAGE_SEGMENTS, STAGE_FILES, STAGE_END };

struct export {
	uv_work_t work;
	struct daemon *d;
	struct request *r;     /* NULL: nobody waits any more */
	atomic_bool cancelled; /* said to the thread that reads */
	char *state;
	uint32_t run;
	struct segment_range range;
	struct part *v; /* by number */
	size_t n, cap;
	bool lossy; /* text of the network's streams was dropped */
	bool says_clock;
	/* where this page begins, and then where the next one does */
	enum stage stage;
	struct segment_place from, to; /* read from there, show from here on */
	size_t file;
	uint64_t at;
	int error;
	struct ff_buf out;
};

static void export_destroy(struct export *e)
{
	for (size_t i = 0; i < e->n; i++) {
		struct part *p = &e->v[i];
		free(p->path);
		ff_buf_finish(&p->head);
		ff_buf_finish(&p->line);
	}
	free(e->v);
	free(e->state);
	ff_buf_finish(&e->out);
	free(e);
}

/* ---- in the reading thread */

static struct part *find_part(struct export *e, uint32_t number)
{
	return segment_find(e->v, e->n, sizeof *e->v, number);
}

static void put(struct export *e, const struct part *p, uint64_t at, ff_usec us,
	enum ff_clock clock, struct ff_line_tags tags, struct ff_str text)
{
	struct export_line line = {.head = ff_buf_str(&p->head), .offset = at, .us = us,
		.clock = clock, .says_clock = e->says_clock, .rank = p->rank,
		.local_rank = p->local_rank, .attempt = p->attempt, .tags = tags};
	line.text = ff_str_n(text.p, text.n < SHOWN_MAX ? text.n : SHOWN_MAX);
	export_put_line(&e->out, &line);
}

static const struct ff_line_tags no_tags = {{FF_TAG_NONE, FF_UNKNOWN}, FF_UNKNOWN};

static void close_line(struct export *e, struct part *p, bool show)
{
	if (p->open && show) {
		put(e, p, p->at, p->us, p->clock, p->tags, ff_buf_str(&p->line));
	}
	p->open = false;
	ff_buf_clear(&p->line);
}

static void take_line(struct export *e, struct part *p, const struct segment_frame *f,
	const struct segment_line *line, uint64_t at, struct segment_place place)
{
	bool show = !segment_is_before(place, e->to);
	if (p->open && at != p->next) {
		close_line(e, p, show); /* the rest of it is missing */
	}
	if (!p->open) {
		p->open = true;
		p->place = place;
		p->at = at;
		p->us = line->us;
		p->clock = f->clock;
		p->tags = f->tags;
	}
	if (p->line.len < SHOWN_MAX) {
		ff_buf_adds(&p->line, line->text);
	}
	p->next = at + line->text.n;
	if (line->whole) {
		close_line(e, p, show);
	}
}

static bool on_frame(void *ud, const struct segment_frame *frame, struct ff_str lines,
	struct segment_place place)
{
	struct export *e = ud;
	struct part *p = find_part(e, frame->stream);
	struct segment_line line;
	if (atomic_load(&e->cancelled)) {
		return false;
	}
	if (e->out.len > PAGE) {
		e->from = place; /* the next page begins here */
		return false;
	}
	uint64_t at = frame->offset;
	while (p && segment_take_line(&lines, &line)) {
		take_line(e, p, frame, &line, at, place);
		at += line.text.n + line.whole;
	}
	return true;
}

static void read_segments(struct export *e)
{
	struct segment_place begin = e->from, none = {UINT32_MAX, 0};
	e->from = none;
	e->error = segment_scan(e->state, e->run, e->range, begin, on_frame, e);
	if (e->from.number == none.number) { /* all of it was read */
		for (size_t i = 0; i < e->n; i++) {
			close_line(e, &e->v[i], true);
		}
		e->stage = STAGE_FILES;
		return;
	}
	e->to = e->from;
	for (size_t i = 0; i < e->n; i++) { /* lines that go on: their fronts are read again */
		if (e->v[i].open && segment_is_before(e->v[i].place, e->from)) {
			e->from = e->v[i].place;
		}
	}
}

static int open_file(const struct part *p)
{
	struct stat st;
	int fd = tail_reach_same(p->path, p->device, p->inode, &st);
	return fd < 0 ? -1 : fd;
}

/* A line of a file, masked. Its stamp is in its stream's digest, if it counts. */
static void put_file_line(struct export *e, struct part *p, uint64_t at)
{
	(void)ff_mask_rules_line(e->d->runs.mask, &p->mask, p->line.p, p->line.len);
	if (p->line.len >= SHOWN_MAX) {
		ff_mask_rules_cut(e->d->runs.mask, p->line.p, p->line.len);
	}
	put(e, p, at, FF_TIME_NONE, FF_CLOCK_NONE, no_tags, ff_buf_str(&p->line));
	ff_buf_clear(&p->line);
}

/* From e->at on; true if all that is known of it was read. */
static bool read_file(struct export *e, struct part *p, int fd)
{
	char *block = ff_xmalloc(BLOCK);
	uint64_t at = e->at, begin = at;
	ff_buf_clear(&p->line);
	while (at < p->end && e->out.len <= PAGE && !atomic_load(&e->cancelled)) {
		size_t want = p->end - at < BLOCK ? (size_t)(p->end - at) : BLOCK;
		ssize_t n = pread(fd, block, want, (off_t)at);
		if (n <= 0) {
			at = p->end;
			break;
		}
		for (struct ff_str s = ff_str_n(block, (size_t)n); s.n;) {
			ptrdiff_t lf = ff_str_chr(s, '\n', 0);
			size_t len = lf < 0 ? s.n : (size_t)lf;
			ff_buf_add(&p->line, s.p, p->line.len < SHOWN_MAX ? len : 0);
			at += len + (lf >= 0);
			if (lf >= 0) {
				ff_buf_addz(&p->line, ""); /* never NULL */
				put_file_line(e, p, begin);
				begin = at;
			}
			s = ff_str_skip(s, len + 1);
		}
	}
	free(block);
	bool all = at >= p->end;
	if (all && p->line.len) {
		put_file_line(e, p, begin);
	}
	ff_buf_clear(&p->line);
	e->at = begin;
	return all;
}

static void read_files(struct export *e)
{
	while (e->file < e->n && e->out.len <= PAGE && !atomic_load(&e->cancelled)) {
		struct part *p = &e->v[e->file];
		int fd = p->path ? open_file(p) : -1;
		bool all = true;
		if (fd >= 0) {
			all = read_file(e, p, fd);
			close(fd);
		}
		if (all) {
			e->file++;
			e->at = 0;
		}
	}
	e->stage = e->file < e->n ? STAGE_FILES : STAGE_END;
}

static void on_work(uv_work_t *work)
{
	struct export *e = work->data;
	if (e->stage == STAGE_HEAD) {
		e->from = e->to = (struct segment_place){e->range.first, 0};
		e->stage = STAGE_SEGMENTS;
	}
	if (e->stage == STAGE_SEGMENTS && !e->error) {
		read_segments(e);
	}
	if (e->stage == STAGE_FILES && !e->error) {
		read_files(e);
	}
}

/* ---- pages */

static bool parse_cursor(struct export *e, const char *cursor)
{
	unsigned stage = 0, a = 0, c = 0;
	unsigned long long b = 0, d = 0;
	char rest;
	if (!cursor) {
		e->stage = STAGE_HEAD;
		return true;
	}
	if (sscanf(cursor, "%u-%u-%llu-%u-%llu%c", &stage, &a, &b, &c, &d, &rest) != 5 ||
		stage < STAGE_SEGMENTS || stage > STAGE_END) {
		return false;
	}
	e->stage = (enum stage)stage;
	if (e->stage == STAGE_SEGMENTS) {
		e->from = (struct segment_place){a, b};
		e->to = (struct segment_place){c, d};
	} else {
		e->file = a;
		e->at = b;
	}
	return true;
}

/* The last object of a page: where the next one begins. */
static void put_next(struct export *e, bool more)
{
	bool segments = e->stage == STAGE_SEGMENTS;
	if (!more) {
		ff_buf_addz(&e->out, "{\"next\":null}\n");
		return;
	}
	ff_buf_addf(&e->out, "{\"next\":\"%u-%zu-%llu-%u-%llu\"}\n", (unsigned)e->stage,
		segments ? (size_t)e->from.number : e->file,
		(unsigned long long)(segments ? e->from.at : e->at), e->to.number,
		(unsigned long long)e->to.at);
}

static void after_work(uv_work_t *work, int status)
{
	struct export *e = work->data;
	e->d->reading--;
	if (e->r && status < 0) {
		request_problem(e->r, 503, "the daemon is ending");
	} else if (e->r && e->error) {
		request_problem(e->r, 409, "text was dropped while it was read: ask again");
	} else if (e->r) {
		put_next(e, true);
		request_json(e->r, 200, &e->out);
	}
	if (e->r) {
		e->r->exporting = NULL;
		api_finish(e->r);
	}
	export_destroy(e);
}

void api_export_orphan(struct request *r)
{
	struct export *e = r->exporting;
	if (e) {
		e->r = NULL;
		r->exporting = NULL;
		atomic_store(&e->cancelled, true);
		(void)uv_cancel((uv_req_t *)&e->work); /* if no thread has begun */
	}
}

static void add_part(struct export *e, const struct ff_run *run, const struct ff_stream *s)
{
	const struct stream_state *ss = s->user;
	const struct ff_origin *o = &s->origin;
	struct part *p = FF_ARR_ADD(e->v, e->n, e->cap);
	*p = (struct part){.number = s->number, .rank = o->rank, .local_rank = o->local_rank,
		.attempt = o->attempt, .end = s->fed};
	export_put_head(&p->head, run, s);
	if (ss && ss->tail) {
		p->path = ff_xstrdup(tail_file_place(ss->tail, &p->device, &p->inode));
	} else if (o->tailed) {
		p->path = ff_xstrdup(""); /* its file is not followed any more */
	}
}

static void read_page(struct export *e, const struct ff_run *run)
{
	struct request *r = e->r;
	for (size_t i = 0; i < run->job->nstreams; i++) {
		add_part(e, run, run->job->streams[i]);
	}
	e->work.data = e;
	r->pending = true;
	r->exporting = e;
	r->d->reading++;
	if (uv_queue_work(&r->d->loop, &e->work, on_work, after_work) < 0) {
		r->d->reading--;
		r->pending = false;
		r->exporting = NULL;
		request_problem(r, 503, "the text can't be read now");
		export_destroy(e);
	}
}

static bool is_root(const struct request *r)
{
	return r->who.uid == 0 && r->who.host;
}

/* What keeps the export from being all that the verdict was made of. */
static void put_head(struct export *e, struct ff_run *run)
{
	struct ff_verdict *v = answer_judge(e->d, run, FF_UNKNOWN);
	struct export_loss loss = {.dropped = e->lossy, .open = !v->final};
	for (size_t i = 0; i < run->job->nstreams; i++) {
		loss.tailed += run->job->streams[i]->origin.tailed;
	}
	ff_verdict_destroy(v);
	export_put_begin(&e->out, run, &loss, is_root(e->r));
}

static void begin(struct request *r)
{
	struct ff_run *run = request_run(r, 2, false);
	if (!run) {
		return;
	}
	const struct run_state *rs = run->user;
	struct export *e = ff_xcalloc(1, sizeof *e);
	char *cursor = request_query(r, "cursor");
	e->r = r;
	e->d = r->d;
	e->state = ff_xstrdup(r->d->config->state);
	e->run = run->number;
	e->range = rs->committed;
	e->lossy = rs->committed.first > 1;
	e->says_clock = export_says_clock(run);
	bool good = parse_cursor(e, cursor);
	free(cursor);
	if (!good) {
		request_problem(r, 400, "the cursor can't be read");
	} else if (e->stage == STAGE_END) {
		export_put_end(&e->out, run);
		put_next(e, false);
		request_json(r, 200, &e->out);
	} else {
		if (e->stage == STAGE_HEAD) {
			put_head(e, run);
		}
		read_page(e, run);
		return;
	}
	export_destroy(e);
}

static void on_committed(void *ud)
{
	struct request *r = ud;
	r->waits = r->pending = false;
	begin(r);
	if (r->answered) { /* else a thread reads */
		api_finish(r);
	}
}

/* What is known now is in the files before they are read. */
void api_export_get(struct request *r)
{
	char *cursor = request_query(r, "cursor");
	bool first = !cursor;
	free(cursor);
	if (!request_run(r, 2, false)) {
		return;
	}
	uint64_t seq = first ? ledger_flush(r->d->ledger) : 0;
	if (!first || ledger_is_committed(r->d->ledger, seq)) {
		begin(r);
		return;
	}
	r->pending = r->waits = true;
	r->wait = (struct ledger_wait){seq, on_committed, r, NULL};
	ledger_wait(r->d->ledger, &r->wait);
}
