#include "tail_own.h"

#include "base/limits.h"
#include "base/mask_rules.h"
#include "base/mem.h"
#include "pack.h"

#include <stdlib.h>

#define STAMPS_MAX 4096u /* times between resume and fed; further ones are taken for the last */

/* ---- what is known of a file */

void tail_file_destroy(struct tail_file *t)
{
	if (t) {
		ff_buf_finish(&t->word);
		free(t->stamps);
		free(t->path);
		free(t);
	}
}

struct tail_file *tail_file_restore(const char *path, uint64_t device, uint64_t inode,
	uint32_t head_length, uint64_t head_hash, uint64_t mark_at, uint32_t mark_length,
	uint64_t mark_hash, struct ff_str stamps)
{
	struct tail_file *t = ff_xcalloc(1, sizeof *t);
	t->path = ff_xstrdup(path);
	t->device = device;
	t->inode = inode;
	t->head_length = head_length;
	t->head_hash = head_hash;
	t->mark_length = mark_length;
	t->mark_hash = mark_hash;
	t->mark_at = mark_at;
	t->mark_stored = true;
	int64_t offset = 0, us = 0, d_offset, d_us;
	while (ff_row_take_int(&stamps, &d_offset) && ff_row_take_int(&stamps, &d_us)) {
		offset += d_offset;
		us = (int64_t)((uint64_t)us + (uint64_t)d_us);
		*FF_ARR_ADD(t->stamps, t->nstamps, t->cstamps) =
			(struct stamp_from){(uint64_t)offset, us};
	}
	return t;
}

static void pack_stamps(const struct tail_file *t, struct ff_buf *out)
{
	int64_t offset = 0, us = 0;
	for (size_t i = 0; i < t->nstamps; i++) {
		ff_row_int(out, (int64_t)t->stamps[i].offset - offset);
		ff_row_int(out, (int64_t)((uint64_t)t->stamps[i].us - (uint64_t)us));
		offset = (int64_t)t->stamps[i].offset;
		us = t->stamps[i].us;
	}
}

void tail_fill_row(struct tail_file *t, uint64_t resume, struct batch *b, struct row_tail *ret)
{
	size_t n = 0;
	while (n + 1 < t->nstamps && t->stamps[n + 1].offset <= resume) {
		n++;
	}
	if (n) {
		memmove(t->stamps, t->stamps + n, (t->nstamps - n) * sizeof *t->stamps);
		t->nstamps -= n;
	}
	struct ff_buf packed = {0};
	pack_stamps(t, &packed);
	struct ff_str s = ff_buf_str(&packed);
	*ret = (struct row_tail){
		.path = ff_arena_strdup(&b->arena, t->path),
		.device = t->device,
		.inode = t->inode,
		.head_length = t->head_length,
		.head_hash = t->head_hash,
		.mark_at = t->mark_at,
		.mark_length = t->mark_length,
		.mark_hash = t->mark_stored ? t->mark_hash
					    : files_hash(ff_str_n(t->mark, t->mark_length)),
		.stamps = {ff_arena_str(&b->arena, s), s.n},
	};
	b->bytes += s.n + strlen(t->path);
	ff_buf_finish(&packed);
}

const char *tail_file_place(const struct tail_file *t, uint64_t *ret_device, uint64_t *ret_inode)
{
	*ret_device = t->device;
	*ret_inode = t->inode;
	return t->thread && tail_thread_is_hung(t->thread) ? "" : t->path;
}

/* ---- feeding */

static void keep_mark(struct tail_file *t, uint64_t offset, struct ff_str raw)
{
	size_t take = raw.n < FILES_MARK ? raw.n : FILES_MARK;
	size_t old = t->mark_stored || offset != t->mark_at ? 0 : t->mark_length;
	size_t keep = old + take > FILES_MARK ? FILES_MARK - take : old;
	memmove(t->mark, t->mark + old - keep, keep);
	memcpy(t->mark + keep, raw.p + raw.n - take, take);
	t->mark_length = (uint32_t)(keep + take);
	t->mark_at = offset + raw.n;
	t->mark_stored = false;
}

/* The time of the byte at this offset, and how many of n bytes have the same. */
static ff_usec stamp_at(const struct tail_file *t, uint64_t offset, uint64_t *n)
{
	size_t low = 0, high = t->nstamps;
	while (low < high) {
		size_t middle = low + (high - low) / 2;
		if (t->stamps[middle].offset <= offset) {
			low = middle + 1;
		} else {
			high = middle;
		}
	}
	if (low < t->nstamps && t->stamps[low].offset - offset < *n) {
		*n = t->stamps[low].offset - offset;
	}
	return low ? t->stamps[low - 1].us : FF_TIME_NONE;
}

/* From this offset on bytes have this time. Only where a line begins does it matter. */
static void note_stamp(struct tail_file *t, uint64_t offset, struct ff_str data, ff_usec us)
{
	bool line = !t->line_open || memchr(data.p, '\n', data.n) || memchr(data.p, '\r', data.n);
	char end = data.p[data.n - 1];
	t->line_open = end != '\n' && end != '\r';
	if (!line || (t->nstamps && t->stamps[t->nstamps - 1].us == us) ||
		t->nstamps == STAMPS_MAX) {
		return;
	}
	*FF_ARR_ADD(t->stamps, t->nstamps, t->cstamps) = (struct stamp_from){offset, us};
}

struct ff_run *tail_file_run(const struct tail_file *f)
{
	return f->stream->run->run;
}

/* Bytes that stand in the file at f->read - word - n; masked; with the times that are noted. */
static void feed_masked(struct tail *t, struct tail_file *f, uint64_t offset, struct ff_str text)
{
	struct ff_run *run = tail_file_run(f);
	struct ff_stream *s = f->stream->stream;
	while (text.n) {
		uint64_t n = text.n;
		ff_usec us = stamp_at(f, offset, &n);
		struct ff_chunk c = {
			offset, text.p, (size_t)n, {us, FF_TIME_NONE}, {FF_TAG_INIT, FF_UNKNOWN}};
		ff_job_feed(run->job, s, &c);
		offset += n;
		text = ff_str_skip(text, (size_t)n);
	}
	ledger_touch(t->d->ledger, run, s);
}

static void mask_and_feed(struct tail *t, struct tail_file *f, char *p, size_t n)
{
	uint64_t offset = f->read - f->word.len;
	if (!n) {
		return;
	}
	keep_mark(f, offset, ff_str_n(p, n));
	uint64_t *counts = tail_file_run(f)->job->counts;
	unsigned limited = 0;
	counts[FF_COUNT_secrets] += ff_mask_rules_text(t->d->runs.mask, p, n, &limited);
	counts[FF_COUNT_match_limit] += limited;
	feed_masked(t, f, offset, ff_str_n(p, n));
}

static void take_data(struct tail *t, struct tail_file *f, struct ff_str data)
{
	ff_buf_adds(&f->word, data);
	f->read += data.n;
	struct ff_buf all = f->word;
	size_t keep = ff_mask_rules_open(t->d->runs.mask, all.p, all.len);
	size_t n = all.len - keep;
	mask_and_feed(t, f, all.p, n);
	ff_buf_consume(&f->word, n);
	if (f->word.cap > FILES_MARK * 64 && f->word.len < FILES_MARK * 8) {
		struct ff_buf small = {0};
		ff_buf_adds(&small, ff_buf_str(&f->word));
		ff_buf_finish(&f->word);
		f->word = small;
	}
}

/* Nothing more may come: the word that waits is fed as it is. */
void tail_feed_flush(struct tail *t, struct tail_file *f)
{
	mask_and_feed(t, f, f->word.p, f->word.len);
	ff_buf_clear(&f->word);
}

void tail_feed_data(struct tail *t, struct thread *th, const struct files_notice *n)
{
	struct tail_file *f = ff_map_get(&th->by_number, ff_str_n(&n->file, sizeof n->file));
	if (!f || n->offset < f->read) {
		return;
	}
	if (n->offset > f->read) { /* a hole */
		tail_feed_flush(t, f);
		f->read = n->offset;
	}
	if (f->head_length < FILES_HEAD && n->offset == f->head_length &&
		(!f->head_length || f->head[f->head_length - 1] != '\n')) {
		const char *lf = memchr(n->bytes.p, '\n', n->bytes.n);
		size_t more = lf ? (size_t)(lf - n->bytes.p) + 1 : n->bytes.n;
		more = more < FILES_HEAD - f->head_length ? more : FILES_HEAD - f->head_length;
		memcpy(f->head + f->head_length, n->bytes.p, more);
		f->head_length += (uint32_t)more;
		f->head_hash = files_hash(ff_str_n(f->head, f->head_length));
	}
	/* up to three parts: read before a restart, there when it was opened, growth */
	struct ff_str rest = n->bytes;
	while (rest.n) {
		uint64_t at = f->read;
		uint64_t end = at < f->replay_end ? f->replay_end
			: at < f->held_end        ? f->held_end
						  : UINT64_MAX;
		struct ff_str part =
			ff_str_n(rest.p, end - at < rest.n ? (size_t)(end - at) : rest.n);
		if (at >= f->replay_end) {
			note_stamp(f, at, part, at < f->held_end ? FF_TIME_NONE : n->read_us);
		}
		take_data(t, f, part);
		rest = ff_str_skip(rest, part.n);
	}
}
