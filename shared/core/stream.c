#include "core/stream_own.h"

#include "base/arr.h"

#include <assert.h>
#include <stdlib.h>

#define SLICE \
	(128u * 1024u)    /* bytes that are scanned and split at a time: they stay in the cache */
#define PROGRESS_MOST 16u /* texts of progress lines that one line is tried against */
#define TEXTS_MOST 16u    /* other texts of a line that are noted */

static const char *const count_names[] = {
#define X(name, text) [FF_COUNT_##name] = #name,
#include "core/count.def"
#undef X
};

static const char *const count_texts[] = {
#define X(name, text) [FF_COUNT_##name] = (text),
#include "core/count.def"
#undef X
};

const char *ff_count_name(enum ff_count c)
{
	return count_names[c];
}

const char *ff_count_text(enum ff_count c)
{
	return count_texts[c];
}

/* ---- life */

static char *make_key(const struct ff_origin *o, uint32_t life)
{
	struct ff_buf key = {0};
	size_t n = o->node ? strlen(o->node) : 0;
	bool begins = n && !strncmp(o->name, o->node, n) && o->name[n] == '/';
	if (n && !begins) {
		ff_buf_addf(&key, "%s/", o->node);
	}
	ff_buf_addz(&key, o->name);
	if (life > 1) {
		ff_buf_addf(&key, "#%u", life);
	}
	return ff_buf_take(&key);
}

struct ff_stream *ff_stream_create(const struct ff_origin *origin, uint32_t number, uint32_t life)
{
	struct ff_stream *s = ff_xcalloc(1, sizeof *s);
	s->number = number;
	s->life = life;
	s->origin = *origin;
	s->origin.name = ff_xstrdup(origin->name);
	s->origin.node = ff_xstrdup(origin->node);
	s->origin.source = ff_xstrdup(origin->source);
	s->key = make_key(origin, life);
	ff_splitter_init(&s->splitter);
	s->resume_line = 1;
	s->last_tag = FF_TAG_INIT;
	s->last_attempt = FF_UNKNOWN;
	s->deadline = UINT64_MAX;
	s->ended_us = FF_TIME_NONE;
	s->dirty = true;
	return s;
}

static void destroy_lane(struct ff_lane *lane)
{
	free(lane->progress.text);
	free(lane->recovered.text);
	free(lane->success.text);
	free(lane->pairs);
	free(lane->events);
	ff_joiner_finish(&lane->joiner);
	free(lane);
}

void ff_stream_destroy(struct ff_stream *s)
{
	if (!s) {
		return;
	}
	for (size_t i = 0; i < s->nlanes; i++) {
		destroy_lane(s->lanes[i]);
	}
	for (size_t i = 0; i < s->nevents; i++) {
		ff_event_finish(&s->events[i]);
	}
	free(s->lanes);
	free(s->slots);
	free(s->events);
	free(s->dropped);
	ff_splitter_finish(&s->splitter);
	ff_parts_finish(&s->parts);
	ff_buf_finish(&s->pieces);
	free((char *)s->origin.name);
	free((char *)s->origin.node);
	free((char *)s->origin.source);
	free(s->key);
	free(s);
}

/* ---- lanes */

static uint64_t hash_lane(struct ff_tag tag, int32_t attempt)
{
	uint64_t h = (uint64_t)tag.value * 0x9e3779b97f4a7c15ull;
	h ^= ((uint64_t)(uint32_t)attempt << 8 | (uint64_t)tag.kind) * 0xff51afd7ed558ccdull;
	return h ^ h >> 29;
}

static bool is_lane(const struct ff_lane *lane, struct ff_tag tag, int32_t attempt)
{
	return ff_tag_eq(lane->tag, tag) && lane->attempt == attempt;
}

/* The slot of a lane, or the free one where it would go. */
static size_t find_slot(const struct ff_stream *s, struct ff_tag tag, int32_t attempt)
{
	size_t i = (size_t)hash_lane(tag, attempt) & (s->nslots - 1);
	while (s->slots[i] && !is_lane(s->lanes[s->slots[i] - 1], tag, attempt)) {
		i = (i + 1) & (s->nslots - 1);
	}
	return i;
}

static struct ff_lane *find_lane(const struct ff_stream *s, struct ff_tag tag, int32_t attempt)
{
	if (s->last_lane < s->nlanes && is_lane(s->lanes[s->last_lane], tag, attempt)) {
		return s->lanes[s->last_lane];
	}
	size_t slot = s->nslots ? find_slot(s, tag, attempt) : 0;
	return s->nslots && s->slots[slot] ? s->lanes[s->slots[slot] - 1] : NULL;
}

static void grow_slots(struct ff_stream *s)
{
	free(s->slots);
	s->nslots = s->nslots ? s->nslots * 2 : 8;
	s->slots = ff_xcalloc(s->nslots, sizeof *s->slots);
	for (size_t i = 0; i < s->nlanes; i++) {
		s->slots[find_slot(s, s->lanes[i]->tag, s->lanes[i]->attempt)] = (uint32_t)i + 1;
	}
}

struct ff_lane *ff_stream_lane(
	struct ff_stream *s, struct ff_tag tag, int32_t attempt, uint64_t *counts)
{
	struct ff_lane *lane = find_lane(s, tag, attempt);
	if (lane) {
		s->last_lane = ff_stream_lane_index(s, lane);
		return lane;
	}
	if (s->nlanes >= FF_LANES_MAX) {
		if (counts) {
			counts[FF_COUNT_lanes_refused]++;
		}
		return s->lanes[0];
	}
	if (s->nlanes * 2 >= s->nslots) {
		grow_slots(s);
	}
	lane = ff_xcalloc(1, sizeof *lane);
	lane->tag = tag;
	lane->attempt = attempt;
	lane->first = lane->last = FF_STAMP_NONE;
	lane->first_claimed = FF_CLAIMED_NONE;
	lane->progress.stamp = lane->recovered.stamp = lane->success.stamp = FF_STAMP_NONE;
	lane->open_offset = FF_OFFSET_UNKNOWN;
	lane->index = (uint32_t)s->nlanes;
	lane->dirty = true;
	s->slots[find_slot(s, tag, attempt)] = lane->index + 1;
	s->last_lane = s->nlanes;
	*FF_ARR_ADD(s->lanes, s->nlanes, s->clanes) = lane;
	return lane;
}

uint32_t ff_stream_lane_index(const struct ff_stream *s, const struct ff_lane *lane)
{
	assert(lane->index < s->nlanes);
	return lane->index;
}

/* ---- marks */

/* The marks of one slice of a chunk. */
struct slice {
	struct ff_stream *s;
	const struct ff_digest *d;
	const char *p; /* scanned in one pass are p[0..n) */
	size_t n;
	struct ff_mark *marks; /* in order of their ends */
	size_t nmarks, cmarks;
	size_t next;  /* the first that is not behind the lines handled so far */
	bool closing; /* the stream ends: what is open now is new */
};

/* What a line's marks say. */
struct marked {
	bool text;   /* it holds the literal of a signature that is no progress line's */
	bool opener; /* or may open a record */
	bool many;   /* more texts than texts[] holds */
	uint32_t texts[TEXTS_MOST];
	size_t ntexts;
	uint32_t progress[PROGRESS_MOST];
	size_t nprogress;
};

/* Adds an id to a set; false if there is no room. */
static bool add_id(uint32_t *ids, size_t *n, size_t most, uint32_t id)
{
	for (size_t i = 0; i < *n; i++) {
		if (ids[i] == id) {
			return true;
		}
	}
	if (*n >= most) {
		return false;
	}
	ids[(*n)++] = id;
	return true;
}

static void take_mark(const struct ff_catalog *c, uint32_t id, struct marked *m)
{
	if (ff_catalog_is_opener(c, id)) {
		m->opener = true;
		return;
	}
	const struct ff_signature *sig = ff_catalog_text(c, id)->sig;
	if (sig->progress || sig->success) {
		(void)add_id(m->progress, &m->nprogress, PROGRESS_MOST, id);
		return;
	}
	m->text = true;
	m->many = !add_id(m->texts, &m->ntexts, TEXTS_MOST, id) || m->many;
}

struct line_scan {
	const struct ff_catalog *catalog;
	struct marked *marked;
};

static void on_line_mark(void *ud, struct ff_mark mark)
{
	struct line_scan *scan = ud;
	take_mark(scan->catalog, mark.id, scan->marked);
}

static void scan_line(const struct ff_catalog *c, struct ff_str text, struct marked *ret)
{
	struct line_scan scan = {c, ret};
	if (text.n) {
		ff_scan_run(ff_catalog_scan(c), text.p, text.n, on_line_mark, &scan);
	}
}

static void on_slice_mark(void *ud, struct ff_mark mark)
{
	struct slice *slice = ud;
	*FF_ARR_ADD(slice->marks, slice->nmarks, slice->cmarks) = mark;
}

/* The marks of a line: those found with its slice, or, where its text was put together from pieces,
 * of a pass of its own. A literal holds neither LF nor CR of a terminator, so both are the same. */
static void find_marks(struct slice *slice, struct ff_str text, struct marked *ret)
{
	ret->text = ret->opener = ret->many = false;
	ret->ntexts = ret->nprogress = 0;
	bool inside = slice->n && text.p >= slice->p && text.p + text.n <= slice->p + slice->n;
	if (!inside) {
		scan_line(slice->d->catalog, text, ret);
		return;
	}
	size_t from = (size_t)(text.p - slice->p), to = from + text.n;
	while (slice->next < slice->nmarks && slice->marks[slice->next].end <= from) {
		slice->next++;
	}
	for (; slice->next < slice->nmarks && slice->marks[slice->next].end <= to; slice->next++) {
		take_mark(slice->d->catalog, slice->marks[slice->next].id, ret);
	}
}

/* ---- records */

static void close_record(
	struct ff_stream *s, const struct ff_digest *d, struct ff_lane *lane, bool keep)
{
	const struct ff_record *rec = &lane->joiner.rec;
	if (keep) {
		/* Without a literal no text holds; only an exception says something by itself. */
		if (rec->marked || rec->kind == FF_RECORD_TRACEBACK) {
			ff_stream_keep(s, d, lane, rec);
		}
		d->counts[FF_COUNT_records_cut] += lane->joiner.capped;
		lane->open_offset = FF_OFFSET_NONE;
		lane->dirty = true;
	}
	ff_joiner_clear(&lane->joiner);
	if (s->follow == lane) {
		s->follow = NULL;
	}
}

/* Closes what is too far behind pos, and finds the next place where something can be. */
static void close_far(struct ff_stream *s, const struct ff_digest *d, uint64_t pos, bool keep)
{
	uint64_t next = UINT64_MAX;
	for (size_t i = 0; i < s->nlanes; i++) {
		struct ff_lane *lane = s->lanes[i];
		if (ff_joiner_too_far(&lane->joiner, pos)) {
			close_record(s, d, lane, keep);
		}
		uint64_t deadline = ff_joiner_deadline(&lane->joiner);
		next = deadline < next ? deadline : next;
	}
	s->deadline = next;
}

/* A record of this one line. */
static void make_single(struct ff_record *rec, const struct ff_stream_entry *e, struct ff_buf *buf)
{
	*rec = (struct ff_record){
		.stamp = FF_STAMP_NONE, .claimed = ff_stream_claimed(e), .repeats = e->repeats};
	ff_record_add(rec, e->line, ff_record_plain(e->text, buf), FF_LINE_TEXT);
}

static void keep_single(struct ff_stream *s, const struct ff_digest *d, struct ff_lane *lane,
	const struct ff_stream_entry *e, const struct marked *marked)
{
	struct ff_record rec;
	struct ff_buf buf = {0};
	bool plain = !marked->many && !memchr(e->text.p, '\x1b', e->text.n);
	if (plain && !ff_matcher_holds(d->matcher, e->text, marked->texts, marked->ntexts)) {
		return;
	}
	make_single(&rec, e, &buf);
	ff_stream_keep(s, d, lane, &rec);
	ff_record_finish(&rec);
	ff_buf_finish(&buf);
}

/* A traceback without a tag under a log line that has one: the line's rank is the traceback's
 * only if a logger printed both (record.handled), or if the stream is one rank's. */
static bool is_unowned(const struct ff_stream *s, const struct ff_joiner *j,
	const struct ff_lane *lane, const struct ff_stream_entry *e)
{
	return j->rec.kind == FF_RECORD_TRACEBACK && e->tag.kind == FF_TAG_NONE &&
		lane->tag.kind != FF_TAG_NONE && s->origin.kind != FF_STREAM_RANK &&
		!ff_record_is_blank(e->text);
}

static void after_open(struct ff_stream *s, struct ff_lane *lane, const struct ff_stream_entry *e)
{
	struct ff_opening opening;
	struct ff_buf buf = {0};
	struct ff_claimed claimed = ff_stream_claimed(e);
	if (claimed.us != FF_TIME_NONE || lane->joiner.rec.claimed.us == FF_TIME_NONE) {
		lane->joiner.rec.claimed = claimed;
	}
	uint64_t deadline = ff_joiner_deadline(&lane->joiner);
	s->deadline = deadline < s->deadline ? deadline : s->deadline;
	bool head =
		ff_record_opening(ff_record_plain(e->text, &buf), &opening) && opening.head_only;
	ff_buf_finish(&buf);
	if (head && e->tag.kind != FF_TAG_NONE) {
		s->follow = lane;
		s->follow_from = e->line->offset;
	}
}

static void note_repeats(struct ff_record *rec, enum ff_join join, const struct ff_stream_entry *e)
{
	if (join != FF_JOIN_NONE && e->repeats > rec->repeats) {
		rec->repeats = e->repeats;
	}
}

/* Takes a line that is marked, or whose lane has an open record, further. */
static void digest(struct ff_stream *s, const struct ff_digest *d, struct ff_lane *lane,
	const struct ff_stream_entry *e, const struct marked *marked)
{
	struct ff_joiner *j = &lane->joiner;
	enum ff_progress progress = FF_PROGRESS_NONE;
	if (!e->live && e->line->offset == lane->open_offset) {
		close_record(s, d, lane, false); /* what was rebuilt before its record is none */
	}
	if (marked->nprogress) {
		progress = ff_matcher_progress(
			d->matcher, e->text, marked->progress, marked->nprogress);
	}
	if (progress && ff_joiner_is_loose(j)) {
		close_record(s, d, lane, e->live);
	}
	enum ff_join join = FF_JOIN_NONE;
	bool closed = false;
	if (j->open || marked->opener) {
		join = ff_joiner_feed(j, e->line, e->text, &closed);
	}
	if (closed) {
		close_record(s, d, lane, e->live);
		join = marked->opener ? ff_joiner_feed(j, e->line, e->text, &closed) : FF_JOIN_NONE;
	}
	if (join == FF_JOIN_OPENED) {
		after_open(s, lane, e);
	} else if (join == FF_JOIN_TAKEN) {
		j->rec.unowned = j->rec.unowned || is_unowned(s, j, lane, e);
	}
	j->rec.marked = j->open && (j->rec.marked || marked->text);
	note_repeats(&j->rec, join, e);
	if (!e->live) {
		return;
	}
	if (join == FF_JOIN_NONE && marked->text) {
		keep_single(s, d, lane, e, marked);
	}
	if (ff_joiner_is_done(j)) {
		close_record(s, d, lane, true);
	}
	if (progress && join != FF_JOIN_TAKEN) {
		ff_stream_progress(s, lane, d, e, progress);
	}
}

/* ---- lines */

/* What lay below `replay` came again: only records that were open then are open now. */
static void end_replay(struct ff_stream *s)
{
	for (size_t i = 0; i < s->nlanes; i++) {
		struct ff_lane *lane = s->lanes[i];
		bool known = lane->open_offset != FF_OFFSET_UNKNOWN;
		bool same = lane->joiner.open && lane->joiner.first == lane->open_offset;
		if (known && !same) {
			ff_joiner_clear(&lane->joiner);
			s->follow = s->follow == lane ? NULL : s->follow;
		}
		uint64_t open = lane->joiner.open ? lane->joiner.first : FF_OFFSET_NONE;
		lane->dirty = lane->dirty || open != lane->open_offset;
		lane->open_offset = open;
	}
	s->resume = s->replay;
}

static bool in_replay(const struct ff_stream *s)
{
	return s->resume < s->replay;
}

/* The lane of a bare line: see stream.h. NULL: the untagged one. tag: of the line before. */
static struct ff_lane *bare_lane(
	const struct ff_stream *s, const struct ff_stream_entry *e, bool *ret_blank)
{
	struct ff_lane *follow = s->follow;
	*ret_blank = false;
	if (follow && follow->attempt == e->line->tags.attempt && follow->joiner.open &&
		follow->joiner.first == s->follow_from &&
		ff_joiner_takes(&follow->joiner, e->line, e->text)) {
		return follow;
	}
	*ret_blank = s->last_tag.kind != FF_TAG_NONE && ff_record_is_blank(e->text);
	return NULL;
}

static struct ff_lane *route(
	struct ff_stream *s, const struct ff_digest *d, const struct ff_stream_entry *e)
{
	uint64_t *counts = e->live ? d->counts : NULL;
	int32_t attempt = e->line->tags.attempt;
	s->last_attempt = attempt;
	if (e->tag.kind != FF_TAG_NONE) {
		s->last_tag = e->tag;
		s->follow = NULL;
		return ff_stream_lane(s, e->tag, attempt, counts);
	}
	bool blank;
	struct ff_lane *lane = bare_lane(s, e, &blank);
	if (lane) {
		return lane;
	}
	if (!blank) {
		s->last_tag = FF_TAG_INIT;
	}
	s->follow = NULL;
	return ff_stream_lane(s, s->last_tag, attempt, counts);
}

/* Of a printed tag and one that came with the line, which is the outer one: the innermost global
 * rank holds, else the innermost (core/line.h). */
static struct ff_tag inner_tag(struct ff_tag printed, struct ff_tag given)
{
	if (printed.kind == FF_TAG_NONE) {
		return given;
	}
	bool given_wins = given.kind == FF_TAG_GLOBAL && printed.kind != FF_TAG_GLOBAL;
	return given_wins ? given : printed;
}

static struct ff_stream_entry make_entry(
	const struct ff_line *line, const struct ff_entry *entry, bool live)
{
	return (struct ff_stream_entry){
		.line = line,
		.text = entry->text,
		.stamp = entry->stamp,
		.tag = inner_tag(entry->tag, line->tags.tag),
		.repeats = entry->repeats,
		.live = live,
	};
}

/* A line or piece of one, as the program printed it. */
static void on_piece(void *ud, const struct ff_line *line, const struct ff_entry *entry)
{
	struct slice *slice = ud;
	struct ff_stream *s = slice->s;
	bool live = slice->closing || line->end > s->replay;
	if (live && in_replay(s)) {
		end_replay(s);
	}
	if (line->offset > s->deadline) {
		close_far(s, slice->d, line->offset, live);
	}
	struct ff_stream_entry e = make_entry(line, entry, live);
	struct marked marked;
	find_marks(slice, line->text, &marked);
	struct ff_lane *lane = route(s, slice->d, &e);
	if (live) {
		ff_stream_summarise(lane, slice->d, &e);
	}
	if (lane->joiner.open || marked.text || marked.opener || marked.nprogress) {
		digest(s, slice->d, lane, &e, &marked);
	}
	if (live) {
		lane->open_offset = lane->joiner.open ? lane->joiner.first : FF_OFFSET_NONE;
	}
}

static void on_whole(void *ud, const struct ff_line *line)
{
	struct slice *slice = ud;
	ff_line_pieces(line, &slice->s->pieces, on_piece, slice);
}

static void on_line(void *ud, const struct ff_line *line)
{
	struct slice *slice = ud;
	ff_parts_take(&slice->s->parts, line, on_whole, slice);
}

/* ---- bytes */

static void note_digested(struct ff_stream *s)
{
	/* Of an open line nothing is digested; the skipped rest of an over-long one is. */
	s->digested = s->splitter.start > s->digested ? s->splitter.start : s->digested;
	s->fed = s->splitter.pos;
	s->dirty = true;
}

static void feed_slice(struct ff_stream *s, const struct ff_digest *d, const struct ff_chunk *c,
	size_t from, size_t n)
{
	struct slice slice = {.s = s, .d = d, .p = c->data + from};
	const char *lf = memrchr(slice.p, '\n', n);
	if (lf) {
		slice.n = (size_t)(lf - slice.p) + 1;
		ff_scan_run(ff_catalog_scan(d->catalog), slice.p, slice.n, on_slice_mark, &slice);
	}
	ff_splitter_feed(&s->splitter, slice.p, n, c->stamp, c->tags, on_line, &slice);
	free(slice.marks);
	uint64_t pos = s->splitter.start;
	if (in_replay(s) && pos >= s->replay) {
		end_replay(s);
	}
	/* In a skip no line comes that could close what it leaves behind. */
	if (s->splitter.in_skip && pos > s->deadline) {
		close_far(s, d, pos, !in_replay(s));
	}
}

static void close_all(struct ff_stream *s, const struct ff_digest *d)
{
	struct slice slice = {.s = s, .d = d};
	ff_splitter_end(&s->splitter, on_line, &slice);
	if (in_replay(s)) {
		end_replay(s);
	}
	slice.closing = true;
	ff_parts_end(&s->parts, s->splitter.pos, on_whole, &slice);
	for (size_t i = 0; i < s->nlanes; i++) {
		if (s->lanes[i]->joiner.open) {
			close_record(s, d, s->lanes[i], true);
		}
	}
	s->follow = NULL;
	s->last_tag = FF_TAG_INIT;
	s->deadline = UINT64_MAX;
}

/* Bytes are missing: what was open ends here, and how many lines are missing nobody knows. */
static void skip_gap(struct ff_stream *s, const struct ff_digest *d, uint64_t to)
{
	close_all(s, d);
	ff_splitter_finish(&s->splitter);
	s->splitter.start = s->splitter.pos = to;
	s->splitter.number = 0;
	s->gap = true;
	d->counts[FF_COUNT_gaps]++;
}

void ff_stream_feed(struct ff_stream *s, const struct ff_digest *d, const struct ff_chunk *c)
{
	size_t from = 0;
	if (!c->len || c->offset > UINT64_MAX / 4) {
		return; /* no stream has so many bytes */
	}
	if (c->offset > s->fed) {
		skip_gap(s, d, c->offset);
	} else if (c->offset < s->fed) {
		uint64_t known = s->fed - c->offset;
		from = known < c->len ? (size_t)known : c->len;
		d->counts[FF_COUNT_resent] += from;
	}
	while (from < c->len) {
		size_t n = c->len - from < SLICE ? c->len - from : SLICE;
		feed_slice(s, d, c, from, n);
		from += n;
	}
	note_digested(s);
}

void ff_stream_end(struct ff_stream *s, const struct ff_digest *d, bool complete, ff_usec at_us)
{
	if (complete) {
		close_all(s, d);
		note_digested(s);
	}
	s->state = complete ? FF_STREAM_ENDED : FF_STREAM_VANISHED;
	s->ended_us = at_us;
	s->dirty = true;
}

void ff_stream_reopen(struct ff_stream *s)
{
	if (s->state != FF_STREAM_OPEN) {
		s->state = FF_STREAM_OPEN;
		s->ended_us = FF_TIME_NONE;
		s->dirty = true;
	}
}

/* ---- resume and restore */

/* Where the oldest open record begins or, before it, a part of a line whose rest is to come; false:
 * nothing is open but the unfinished line. */
static bool oldest(const struct ff_stream *s, uint64_t *ret_offset, int64_t *ret_number)
{
	const struct ff_part *part = ff_parts_oldest(&s->parts);
	*ret_offset = part ? part->line.offset : UINT64_MAX;
	*ret_number = part ? part->line.number : 0;
	for (size_t i = 0; i < s->nlanes; i++) {
		const struct ff_joiner *j = &s->lanes[i]->joiner;
		if (j->open && j->low < *ret_offset) {
			*ret_offset = j->low;
			*ret_number = j->low_number;
		}
	}
	return *ret_offset != UINT64_MAX;
}

uint64_t ff_stream_resume(const struct ff_stream *s)
{
	uint64_t offset;
	int64_t number;
	if (in_replay(s)) {
		return s->resume;
	}
	return oldest(s, &offset, &number) ? offset : s->splitter.start;
}

int64_t ff_stream_resume_line(const struct ff_stream *s)
{
	uint64_t offset;
	int64_t number;
	if (in_replay(s)) {
		return s->resume_line;
	}
	return oldest(s, &offset, &number) ? number : s->splitter.number;
}

bool ff_stream_resume_in_skip(const struct ff_stream *s)
{
	uint64_t offset;
	int64_t number;
	return !in_replay(s) && !oldest(s, &offset, &number) && s->splitter.in_skip;
}

struct ff_event *ff_stream_restore_event(struct ff_stream *s)
{
	struct ff_event *e = FF_ARR_ADD(s->events, s->nevents, s->cevents);
	*e = (struct ff_event){.stamp = FF_STAMP_NONE, .claimed = FF_CLAIMED_NONE, .count = 1};
	return e;
}

void ff_stream_restore(struct ff_stream *s, uint64_t digested, uint64_t resume, bool in_skip,
	struct ff_tag last_tag, int64_t resume_line)
{
	s->digested = s->replay = digested;
	s->fed = s->resume = resume;
	s->resume_line = resume_line;
	s->last_tag = last_tag;
	s->splitter.start = s->splitter.pos = resume;
	s->splitter.number = resume_line;
	s->splitter.in_skip = in_skip;
	ff_stream_remember(s);
	for (size_t i = 0; i < s->nlanes && !in_replay(s); i++) {
		s->lanes[i]->open_offset = FF_OFFSET_NONE;
	}
}

/* ---- provisional events */

/* The lane that the unfinished line would go to; NULL: none that is there yet. */
static const struct ff_lane *peek_lane(const struct ff_stream *s, const struct ff_stream_entry *e)
{
	bool blank = false;
	const struct ff_lane *lane = e->tag.kind == FF_TAG_NONE ? bare_lane(s, e, &blank) : NULL;
	if (lane) {
		return lane;
	}
	return find_lane(s, blank ? s->last_tag : e->tag, e->line->tags.attempt);
}

/* What digest() would do with the line, on a copy of the lane's joiner. */
static void draft_entry(struct ff_draft *dr, const struct ff_lane *lane,
	const struct ff_stream_entry *e, const struct marked *marked)
{
	struct ff_joiner j;
	enum ff_progress progress = FF_PROGRESS_NONE;
	enum ff_join join = FF_JOIN_NONE;
	bool closed = false;
	if (marked->nprogress) {
		progress = ff_matcher_progress(
			dr->digest->matcher, e->text, marked->progress, marked->nprogress);
	}
	ff_joiner_copy(&j, &lane->joiner);
	if (progress && ff_joiner_is_loose(&j)) {
		closed = true;
	} else if (j.open || marked->opener) {
		join = ff_joiner_feed(&j, e->line, e->text, &closed);
	}
	if (closed) {
		ff_stream_draft(dr, lane, &j.rec);
		ff_joiner_clear(&j);
		join = marked->opener ? ff_joiner_feed(&j, e->line, e->text, &closed)
				      : FF_JOIN_NONE;
	}
	if (join == FF_JOIN_OPENED) {
		j.rec.claimed = ff_stream_claimed(e);
	} else if (join == FF_JOIN_TAKEN) {
		j.rec.unowned = j.rec.unowned || is_unowned(dr->stream, &j, lane, e);
	}
	note_repeats(&j.rec, join, e);
	if (join != FF_JOIN_NONE) {
		ff_stream_draft(dr, lane, &j.rec);
	} else if (marked->text) {
		struct ff_record rec;
		struct ff_buf buf = {0};
		make_single(&rec, e, &buf);
		ff_stream_draft(dr, lane, &rec);
		ff_record_finish(&rec);
		ff_buf_finish(&buf);
	}
	ff_joiner_finish(&j);
}

/* A line and its entry. */
struct last_piece {
	struct ff_line line;
	struct ff_entry entry;
};

static void on_last_piece(void *ud, const struct ff_line *line, const struct ff_entry *entry)
{
	struct last_piece *last = ud;
	last->line = *line;
	last->entry = *entry;
}

/* What is not a whole line yet, as if it ended now: the unfinished line, else the part whose rest
 * is to come. False if there is neither. */
static bool unfinished(const struct ff_stream *s, struct ff_line *ret)
{
	const struct ff_splitter *sp = &s->splitter;
	const struct ff_part *part = ff_parts_oldest(&s->parts);
	if (sp->open) {
		*ret = (struct ff_line){
			.offset = sp->start,
			.end = sp->pos,
			.number = sp->number,
			.text = ff_buf_str(&sp->pending),
			.stamp = sp->stamp,
			.tags = sp->tags,
			.unfinished = true,
		};
		return true;
	}
	if (part) {
		*ret = part->line;
		ret->text = ff_buf_str(&part->text);
		ret->unfinished = true;
	}
	return part != NULL;
}

/* The unfinished line (of several pieces the last one) behind what its lane has open. Returns that
 * lane, NULL if the line says nothing. */
static const struct ff_lane *draft_line(const struct ff_stream *s, struct ff_draft *dr)
{
	struct ff_line whole;
	struct last_piece last;
	struct ff_buf buf = {0};
	if (!unfinished(s, &whole)) {
		return NULL;
	}
	ff_line_pieces(&whole, &buf, on_last_piece, &last);
	struct marked marked = {0};
	struct ff_stream_entry e = make_entry(&last.line, &last.entry, true);
	const struct ff_lane *lane = peek_lane(s, &e);
	scan_line(dr->digest->catalog, last.line.text, &marked);
	if (lane && !(lane->joiner.open || marked.text || marked.opener)) {
		lane = NULL;
	}
	if (lane) {
		draft_entry(dr, lane, &e, &marked);
	}
	ff_buf_finish(&buf);
	return lane;
}

void ff_stream_provisional(const struct ff_stream *s, const struct ff_digest *d,
	struct ff_event **list, size_t *n, size_t *cap)
{
	struct ff_draft dr = {s, d, list, n, cap, *n};
	if (in_replay(s)) {
		return; /* what is rebuilt so far need not be what was open */
	}
	const struct ff_lane *done = draft_line(s, &dr);
	for (size_t i = 0; i < s->nlanes; i++) {
		if (s->lanes[i]->joiner.open && s->lanes[i] != done) {
			ff_stream_draft(&dr, s->lanes[i], &s->lanes[i]->joiner.rec);
		}
	}
}
