#include "answer.h"
#include "api.h"

#include "base/arr.h"
#include "base/limits.h"
#include "base/mask_rules.h"
#include "base/mem.h"
#include "tail.h"
#include "tail_reach.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define STREAMS 1024u /* that one cursor can hold */
#define LINES 20      /* of each stream to begin with, unless `lines` says so */
#define LINES_MAX 10000
#define WAIT_MAX 25               /* seconds that an answer waits for something new */
#define PAGE (4u * 1024u * 1024u) /* bytes of text in an answer, about */
#define BLOCK (64u * 1024u)
#define CONTEXT (16u * 1024u) /* bytes of a file in front, so that a secret of many lines is seen */

struct one {
	uint64_t offset;
	char *text;
	size_t len;
};

/* A stream that is followed: all that the reading thread needs to know. */
struct part {
	uint32_t number; /* first: segment_find */
	char *key;
	uint64_t next; /* the first byte that was not shown: a line begins there */
	uint64_t end;  /* bytes of it that are known */
	bool is_over;  /* nothing more will come: what has no line feed is shown too */
	char *path;    /* of a tailed file, else NULL */
	uint64_t device, inode;
	/* a line that is being put together */
	bool open;
	uint64_t at, behind;
	struct segment_place place; /* of the frame where it begins */
	struct ff_buf line;
	bool gone;     /* its file is another one, or what came next was dropped */
	struct one *v; /* lines to show */
	size_t n, cap, skip;
};

struct follow {
	uv_work_t work;
	struct daemon *d;
	struct request *r;     /* NULL: nobody waits any more */
	atomic_bool cancelled; /* said to the thread that reads */
	char *state;
	uint32_t run;
	struct segment_range range;
	struct segment_place from; /* read from there; then: where to go on */
	struct part *v;            /* by number */
	size_t n, cap;
	bool first;       /* the last lines of each, not all */
	size_t most;      /* lines of each then */
	size_t bytes;     /* of lines to show */
	bool more;        /* the page is full */
	bool final;       /* nothing more will come */
	uint64_t seen;    /* signature of what was there */
	uint64_t changes; /* of the run when that was worked out */
	ff_usec deadline_us;
	int64_t rank;
	struct ff_buf out;
};

static void follow_destroy(struct follow *f)
{
	for (size_t i = 0; i < f->n; i++) {
		struct part *p = &f->v[i];
		for (size_t k = p->skip; k < p->n; k++) {
			free(p->v[k].text);
		}
		free(p->v);
		free(p->key);
		free(p->path);
		ff_buf_finish(&p->line);
	}
	free(f->v);
	free(f->state);
	ff_buf_finish(&f->out);
	free(f);
}

/* ---- in the reading thread */

static struct part *find_part(struct follow *f, uint32_t number)
{
	return segment_find(f->v, f->n, sizeof *f->v, number);
}

/* A line for the answer; the first page has the last ones only. */
static void keep(struct follow *f, struct part *p, uint64_t offset, struct ff_str text)
{
	struct one *one = FF_ARR_ADD(p->v, p->n, p->cap);
	*one = (struct one){offset, ff_xmemdup(text.p, text.n), text.n};
	f->bytes += text.n;
	if (f->first && p->n - p->skip > f->most) {
		f->bytes -= p->v[p->skip].len;
		free(p->v[p->skip++].text);
	}
	if (p->skip > f->most) { /* make room */
		memmove(p->v, p->v + p->skip, (p->n - p->skip) * sizeof *p->v);
		p->n -= p->skip;
		p->skip = 0;
	}
}

static void close_line(struct follow *f, struct part *p)
{
	if (p->open) {
		keep(f, p, p->at, ff_buf_str(&p->line));
		p->next = p->behind;
	}
	p->open = false;
	ff_buf_clear(&p->line);
}

static void take_line(struct follow *f, struct part *p, const struct segment_line *line,
	uint64_t at, struct segment_place place)
{
	if (at < p->next) {
		return; /* it was shown */
	}
	if (p->open && at != p->behind) {
		close_line(f, p); /* the rest of it is missing */
	}
	if (!p->open) {
		p->open = true;
		p->at = at;
		p->place = place;
	}
	size_t room = p->line.len < FF_LINE_MAX ? FF_LINE_MAX - p->line.len : 0;
	ff_buf_add(&p->line, line->text.p, line->text.n < room ? line->text.n : room);
	p->behind = at + line->text.n + line->whole;
	if (line->whole) {
		close_line(f, p);
	}
}

static bool on_frame(void *ud, const struct segment_frame *frame, struct ff_str lines,
	struct segment_place place)
{
	struct follow *f = ud;
	struct part *p = find_part(f, frame->stream);
	struct segment_line line;
	if (atomic_load(&f->cancelled)) {
		return false;
	}
	if (!f->first && f->bytes > PAGE) {
		f->more = true;
		f->from = place;
		return false;
	}
	uint64_t at = frame->offset;
	while (p && !p->path && segment_take_line(&lines, &line)) {
		take_line(f, p, &line, at, place);
		at += line.text.n + line.whole;
	}
	return true;
}

static void read_segments(struct follow *f)
{
	struct segment_place begin = f->from;
	if (!begin.number) {
		begin.number = 1; /* no stream was there yet: nothing was dropped by that */
	}
	if (begin.number < f->range.first) {
		for (size_t i = 0; i < f->n && !f->first; i++) {
			f->v[i].gone = !f->v[i].path && f->v[i].next < f->v[i].end;
		}
		begin = (struct segment_place){f->range.first, 0};
	}
	f->from = f->range.end;
	int r = segment_scan(f->state, f->run, f->range, begin, on_frame, f);
	if (r < 0) { /* a file that was dropped in this moment: from the oldest on, next time */
		f->from = begin;
		return;
	}
	for (size_t i = 0; i < f->n; i++) {
		struct part *p = &f->v[i];
		if (p->is_over && !p->path && !f->more) {
			close_line(f, p);
		} else if (p->open && segment_is_before(p->place, f->from)) {
			f->from = p->place; /* its front is read again */
		}
	}
}

/* A line of a file, masked; those in front of what is wanted are masked for those that follow. */
static void put_file_line(struct follow *f, struct part *p, struct ff_mask_lines *mask)
{
	ff_buf_addz(&p->line, ""); /* never NULL */
	(void)ff_mask_rules_line(f->d->runs.mask, mask, p->line.p, p->line.len);
	if (p->line.len == FF_LINE_MAX) {
		ff_mask_rules_cut(f->d->runs.mask, p->line.p, p->line.len);
	}
	if (p->at >= p->next) {
		close_line(f, p);
	}
	p->open = false;
	ff_buf_clear(&p->line);
}

static void feed_file(
	struct follow *f, struct part *p, struct ff_str s, uint64_t at, struct ff_mask_lines *mask)
{
	while (s.n) {
		ptrdiff_t lf = ff_str_chr(s, '\n', 0);
		size_t len = lf < 0 ? s.n : (size_t)lf;
		size_t room = FF_LINE_MAX - p->line.len;
		if (!p->open) {
			p->open = true;
			p->at = at;
		}
		ff_buf_add(&p->line, s.p, len < room ? len : room);
		at += len + (lf >= 0);
		p->behind = at;
		if (lf >= 0) {
			put_file_line(f, p, mask);
		}
		s = ff_str_skip(s, len + (lf >= 0));
	}
}

/* Where reading of a file begins: in front of what is wanted, at the beginning of a line if one is
 * near. On the first page the wanted lines are looked for from there on. */
static uint64_t begin_of(const struct follow *f, const struct part *p)
{
	uint64_t want = f->first ? (f->most + 1) * 4096u : CONTEXT;
	uint64_t from = f->first ? p->end : p->next;
	return from > want ? from - want : 0;
}

static void read_file(struct follow *f, struct part *p)
{
	struct stat st;
	struct ff_mask_lines mask = {0};
	int fd = tail_reach_same(p->path, p->device, p->inode, &st);
	if (fd < 0) {
		p->gone = p->next < p->end;
		p->next = p->end;
		return;
	}
	char *block = ff_xmalloc(BLOCK);
	uint64_t size = (uint64_t)st.st_size < p->end ? (uint64_t)st.st_size : p->end;
	uint64_t at = begin_of(f, p), next = p->next;
	bool whole = at == 0; /* else the line where it begins is not */
	p->next = next > at ? next : at;
	while (at < size && !atomic_load(&f->cancelled) && (f->first || f->bytes <= PAGE)) {
		ssize_t n = pread(
			fd, block, size - at < BLOCK ? (size_t)(size - at) : BLOCK, (off_t)at);
		if (n <= 0) {
			break;
		}
		struct ff_str s = ff_str_n(block, (size_t)n);
		at += (uint64_t)n;
		if (!whole) {
			ptrdiff_t lf = ff_str_chr(s, '\n', 0);
			whole = lf >= 0;
			s = ff_str_skip(s, whole ? (size_t)lf + 1 : s.n);
		}
		feed_file(f, p, s, at - s.n, &mask);
	}
	free(block);
	close(fd);
	f->more = f->more || (at < size && f->bytes > PAGE);
	if (p->is_over && p->open && at >= size) {
		put_file_line(f, p, &mask);
	}
	p->open = false;
	p->next = p->next < next ? next : p->next;
}

static void put_line(struct ff_jw *w, const struct part *p, const struct one *one)
{
	ff_jw_open(w, '{');
	ff_jw_kstrz(w, "stream", p->key);
	ff_jw_knull(w, "line");
	if (one) {
		ff_jw_kint(w, "offset", (int64_t)one->offset);
		ff_jw_kstr(w, "text", ff_str_n(one->text, one->len));
	} else {
		ff_jw_knull(w, "offset");
		ff_jw_knull(w, "text");
	}
	ff_jw_kbool(w, "gone", !one);
	ff_jw_close(w, '}');
}

static void on_work(uv_work_t *work)
{
	struct follow *f = work->data;
	struct ff_jw w;
	bool segments = false;
	for (size_t i = 0; i < f->n; i++) {
		if (!f->v[i].path) {
			segments = true;
		} else if (f->v[i].next < f->v[i].end || f->first) {
			read_file(f, &f->v[i]);
		}
	}
	if (segments) {
		read_segments(f);
	}
	request_list_open(&w, &f->out, "firstfault.logs/1");
	for (size_t i = 0; i < f->n; i++) {
		const struct part *p = &f->v[i];
		if (p->gone) {
			put_line(&w, p, NULL);
		}
		for (size_t k = p->skip; k < p->n; k++) {
			put_line(&w, p, &p->v[k]);
		}
	}
}

/* ---- cursors: `SEEN.FILE.PLACE[_STREAM.OFFSET]...`, hexadecimal */

static bool parse_cursor(struct follow *f, const char *text)
{
	unsigned long long seen, file, at, number, offset;
	int n = 0;
	if (sscanf(text, "%llx.%llx.%llx%n", &seen, &file, &at, &n) != 3 || file > UINT32_MAX) {
		return false;
	}
	f->seen = seen;
	f->from = (struct segment_place){(uint32_t)file, at};
	for (text += n; *text; text += n) {
		if (sscanf(text, "_%llx.%llx%n", &number, &offset, &n) != 2 ||
			number > UINT32_MAX || f->n == STREAMS ||
			(f->n && f->v[f->n - 1].number >= number)) {
			return false;
		}
		*FF_ARR_ADD(f->v, f->n, f->cap) =
			(struct part){.number = (uint32_t)number, .next = offset};
	}
	return true;
}

static void put_cursor(const struct follow *f, struct ff_buf *out)
{
	ff_buf_addf(out, "%llx.%x.%llx", (unsigned long long)f->seen, f->from.number,
		(unsigned long long)f->from.at);
	for (size_t i = 0; i < f->n; i++) {
		ff_buf_addf(out, "_%x.%llx", f->v[i].number, (unsigned long long)f->v[i].next);
	}
}

/* ---- in the loop */

static uint64_t mix(uint64_t h, uint64_t v)
{
	return ff_str_hash(ff_str_n((const char *)&v, sizeof v), h);
}

/* Changes whenever there may be something to show. */
static uint64_t signature(const struct ff_run *run)
{
	const struct run_state *rs = run->user;
	uint64_t h = mix(FF_HASH_INIT, rs->committed.end.number);
	h = mix(mix(h, rs->committed.end.at), ff_facts_ended(&run->job->facts));
	for (size_t i = 0; i < run->job->nstreams; i++) {
		const struct ff_stream *s = run->job->streams[i];
		const struct stream_state *ss = s->user;
		h = mix(h, (uint64_t)s->state);
		h = ss && ss->tail ? mix(h, s->fed) : h;
	}
	return h;
}

static bool add_part(struct follow *f, const struct ff_stream *s, uint64_t next)
{
	const struct stream_state *ss = s->user;
	if (f->n == STREAMS) {
		request_problem(f->r, 400, "more than %u streams to follow: name a rank", STREAMS);
		return false;
	}
	struct part *p = FF_ARR_ADD(f->v, f->n, f->cap);
	*p = (struct part){.number = s->number,
		.key = ff_xstrdup(s->key),
		.next = next,
		.end = s->fed,
		.is_over = s->state == FF_STREAM_ENDED || f->final};
	if (ss && ss->tail) {
		p->path = ff_xstrdup(tail_file_place(ss->tail, &p->device, &p->inode));
	}
	return true;
}

/* All streams that are wanted, with the places of those that the cursor knows; a new one from its
 * beginning. */
static bool add_parts(struct follow *f, struct ff_run *run)
{
	struct part *known = f->v;
	size_t nknown = f->n;
	bool good = true;
	f->v = NULL;
	f->n = f->cap = 0;
	for (size_t i = 0, k = 0; i < run->job->nstreams && good; i++) {
		const struct ff_stream *s = run->job->streams[i];
		while (k < nknown && known[k].number < s->number) {
			k++;
		}
		bool knows = k < nknown && known[k].number == s->number;
		if (knows || f->rank == FF_UNKNOWN || s->origin.rank == f->rank ||
			answer_is_of_rank(f->d, run, s, (int32_t)f->rank)) {
			good = add_part(f, s, knows ? known[k].next : 0);
		}
	}
	free(known);
	return good;
}

/* Is this all that will ever be? */
static bool is_over(struct follow *f, struct ff_run *run)
{
	return f->final && !f->more && signature(run) == f->seen;
}

static void after_work(uv_work_t *work, int status)
{
	struct follow *f = work->data;
	struct ff_run *run = ff_runs_number(&f->d->runs, f->run);
	f->d->reading--;
	if (f->r && status < 0) {
		request_problem(f->r, 503, "the daemon is ending");
	} else if (f->r && !run) {
		request_problem(f->r, 404, "the run was deleted");
	} else if (f->r) {
		struct ff_buf next = {0};
		bool over = is_over(f, run);
		f->seen = f->more ? 0 : f->seen;
		put_cursor(f, &next);
		ff_buf_addz(&f->out, "],\"next\":");
		ff_buf_addf(&f->out, over ? "null}\n" : "\"%s\"}\n", next.p);
		ff_buf_finish(&next);
		request_json(f->r, 200, &f->out);
	}
	if (f->r) {
		f->r->following = NULL;
		api_finish(f->r);
	}
	follow_destroy(f);
}

void api_follow_orphan(struct request *r)
{
	struct follow *f = r->following;
	if (f) {
		f->r = NULL;
		r->following = NULL;
		if (!f->work.data) { /* it waits: no thread has it */
			follow_destroy(f);
			return;
		}
		atomic_store(&f->cancelled, true);
		(void)uv_cancel((uv_req_t *)&f->work); /* if no thread has begun */
	}
}

static void give_up(struct request *r, unsigned status, const char *text)
{
	if (!r->answered) {
		request_problem(r, status, "%s", text);
	}
	r->pending = false;
	api_follow_orphan(r);
}

static void begin(struct request *r, struct ff_run *run)
{
	struct follow *f = r->following;
	f->range = ((struct run_state *)run->user)->committed;
	f->seen = signature(run);
	f->final = ff_facts_ended(&run->job->facts) && answer_short(f->d, run)->final;
	if (!add_parts(f, run)) {
		give_up(r, 400, "");
		return;
	}
	f->work.data = f;
	r->pending = true;
	r->d->reading++;
	if (uv_queue_work(&r->d->loop, &f->work, on_work, after_work) < 0) {
		r->d->reading--;
		f->work.data = NULL;
		give_up(r, 503, "the text can't be read now");
	}
}

/* While nothing new is there. */
static void look(struct request *r)
{
	struct follow *f = r->following;
	struct ff_run *run = ff_runs_number(&f->d->runs, f->run);
	const struct run_state *rs = run ? run->user : NULL;
	if (!rs) {
		give_up(r, 404, "the run was deleted");
		return;
	}
	if (api_is_gone(r)) {
		give_up(r, 503, "nobody waits for it");
		return;
	}
	bool late = (ff_usec)uv_now(&r->d->loop) * 1000 >= f->deadline_us;
	if (late || signature(run) != f->seen) {
		begin(r, run);
	} else {
		api_tick(r, look);
	}
}

/* The lines that come, page by page: `follow` is "now" or the cursor of the page before. */
void api_follow_get(struct request *r, struct ff_run *run, const char *cursor, int64_t rank)
{
	int64_t wait, lines;
	if (!request_number(r, "wait", 0, WAIT_MAX, 0, &wait) ||
		!request_number(r, "lines", 0, LINES_MAX, LINES, &lines)) {
		return;
	}
	struct follow *f = ff_xcalloc(1, sizeof *f);
	f->r = r;
	f->d = r->d;
	f->state = ff_xstrdup(r->d->config->state);
	f->run = run->number;
	f->rank = rank;
	f->first = !strcmp(cursor, "now");
	f->most = (size_t)lines;
	f->deadline_us = (ff_usec)uv_now(&r->d->loop) * 1000 + wait * FF_SECOND;
	r->following = f;
	if (!f->first && !parse_cursor(f, cursor)) {
		give_up(r, 400, "the cursor can't be read");
	} else if (f->first) {
		begin(r, run);
	} else {
		look(r);
	}
}
