#include "core/line.h"

#include "base/mem.h"

#define PENDING_KEEP 4096u /* bytes of memory that a stream keeps between lines */

void ff_splitter_init(struct ff_splitter *s)
{
	*s = (struct ff_splitter){
		.number = 1,
		.stamp = FF_STAMP_NONE,
		.tags = {FF_TAG_INIT, FF_UNKNOWN},
	};
}

void ff_splitter_finish(struct ff_splitter *s)
{
	if (!s) {
		return;
	}
	ff_buf_finish(&s->pending);
	ff_splitter_init(s);
}

/* One chunk on its way through the splitter. */
struct feed {
	struct ff_splitter *s;
	const char *p; /* next byte; stands at s->pos */
	const char *end;
	const char *lf; /* first LF at or behind p, or end; looked for again once p has passed it */
	const char *cr; /* the same for CR */
	struct ff_stamp stamp;
	struct ff_line_tags tags;
	ff_line_fn *fn;
	void *ud;
};

static const char *find(const char *from, const char *end, char c)
{
	const char *at = from < end ? memchr(from, c, (size_t)(end - from)) : NULL;
	return at ? at : end;
}

/* The next LF or CR. Each byte of the chunk is looked at once for either. */
static const char *next_end(struct feed *f)
{
	if (f->lf < f->p) {
		f->lf = find(f->p, f->end, '\n');
	}
	if (f->cr < f->p) {
		f->cr = find(f->p, f->end, '\r');
	}
	return f->lf < f->cr ? f->lf : f->cr;
}

static void advance(struct feed *f, size_t n)
{
	f->p += n;
	f->s->pos += n;
}

static void open_line(struct ff_splitter *s, struct ff_stamp stamp, struct ff_line_tags tags)
{
	if (!s->open) {
		s->open = true;
		s->stamp = stamp;
		s->tags = tags;
	}
}

/* How a line ends. */
enum ending { END_LF, END_CR, END_CUT, END_STREAM };

/* Hands out the open line, which ends at pos. The splitter's state is whole before fn is called. */
static void hand_out(
	struct ff_splitter *s, struct ff_str text, enum ending how, ff_line_fn *fn, void *ud)
{
	struct ff_line line = {
		.offset = s->start,
		.end = s->pos,
		.number = s->number,
		.text = text,
		.stamp = s->stamp,
		.tags = s->tags,
		.cut = how == END_CUT,
		.unfinished = how == END_STREAM,
	};
	s->open = false;
	s->cr = false;
	s->in_skip = how == END_CUT;
	s->start = s->pos;
	if (how == END_LF && s->number) {
		s->number++;
	}
	s->pending.len = 0; /* its bytes stay for text */
	fn(ud, &line);
	if (s->pending.cap > PENDING_KEEP) {
		ff_buf_finish(&s->pending);
	}
}

/* A skip has come to its end in front of pos. */
static void end_skip(struct ff_splitter *s, enum ending how)
{
	s->cr = false;
	s->in_skip = false;
	s->start = s->pos;
	if (how == END_LF && s->number) {
		s->number++;
	}
}

/* The open line's text: pending and the n bytes at p, borrowed where nothing is pending. */
static struct ff_str join(struct ff_splitter *s, const char *p, size_t n)
{
	if (!s->pending.len) {
		return (struct ff_str){p, n};
	}
	ff_buf_add(&s->pending, p, n);
	return ff_buf_str(&s->pending);
}

/* A CR was the last byte of the chunk before: this one's first byte tells what it was. */
static void decide_cr(struct feed *f)
{
	struct ff_splitter *s = f->s;
	enum ending how = *f->p == '\n' ? END_LF : END_CR;
	if (how == END_LF) {
		advance(f, 1);
	}
	if (s->open) {
		hand_out(s, join(s, f->p, 0), how, f->fn, f->ud);
	} else {
		end_skip(s, how);
	}
}

/* At a terminator: how many bytes of it there are; 0 if the chunk ends behind a CR. */
static size_t end_len(const struct feed *f, const char *at)
{
	if (*at == '\n') {
		return 1;
	}
	if (at + 1 == f->end) {
		return 0;
	}
	return at[1] == '\n' ? 2 : 1;
}

static enum ending ending(const char *at, size_t len)
{
	return at[len - 1] == '\n' ? END_LF : END_CR;
}

static void skip(struct feed *f)
{
	struct ff_splitter *s = f->s;
	const char *at = next_end(f);
	advance(f, (size_t)(at - f->p));
	s->start = s->pos;
	if (at == f->end) {
		return;
	}
	size_t len = end_len(f, at);
	if (!len) {
		s->cr = true; /* start stays at the CR: whoever goes on from here must see it */
		advance(f, 1);
		return;
	}
	advance(f, len);
	end_skip(s, ending(at, len));
}

static void take(struct feed *f)
{
	struct ff_splitter *s = f->s;
	const char *at = next_end(f);
	size_t n = (size_t)(at - f->p);
	open_line(s, f->stamp, f->tags);
	if (s->pending.len + n > FF_LINE_MAX) {
		size_t part = FF_LINE_MAX - s->pending.len;
		struct ff_str text = join(s, f->p, part);
		advance(f, part);
		hand_out(s, text, END_CUT, f->fn, f->ud);
		return;
	}
	size_t len = at < f->end ? end_len(f, at) : 0;
	if (len) {
		struct ff_str text = join(s, f->p, n);
		advance(f, n + len);
		hand_out(s, text, ending(at, len), f->fn, f->ud);
		return;
	}
	if (n) {
		ff_buf_add(&s->pending, f->p, n);
	}
	s->cr = at < f->end;
	advance(f, (size_t)(f->end - f->p));
}

void ff_splitter_feed(struct ff_splitter *s, const char *p, size_t n, struct ff_stamp stamp,
	struct ff_line_tags tags, ff_line_fn *fn, void *ud)
{
	if (!n) {
		return;
	}
	struct feed f = {s, p, p + n, NULL, NULL, stamp, tags, fn, ud};
	f.lf = find(p, f.end, '\n');
	f.cr = find(p, f.end, '\r');
	if (s->cr) {
		decide_cr(&f);
	}
	while (f.p < f.end) {
		if (s->in_skip) {
			skip(&f);
		} else {
			take(&f);
		}
	}
}

void ff_splitter_end(struct ff_splitter *s, ff_line_fn *fn, void *ud)
{
	if (s->open) {
		hand_out(s, join(s, "", 0), s->cr ? END_CR : END_STREAM, fn, ud);
	} else if (s->cr) {
		end_skip(s, END_CR);
	}
}
