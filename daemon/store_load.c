#include "store.h"
#include "store_db.h"

#include "base/mem.h"
#include "feed/nodes.h"
#include "ledger.h"
#include "pack.h"
#include "shell/log.h"
#include "tail.h"

#include <sqlite3.h>
#include <stdlib.h>

/* What a query's rows are given to. */
struct loader {
	struct store_db *db;
	struct ledger *ledger;
	struct ff_runs *runs;
	struct ff_err *err;
};

typedef int row_fn(struct loader *l, sqlite3_stmt *s);

/* ---- columns: each call takes the next one */

struct reader {
	sqlite3_stmt *s;
	int i;
};

static int64_t take(struct reader *r)
{
	return sqlite3_column_int64(r->s, r->i++);
}

static int64_t take_or(struct reader *r, int64_t none)
{
	bool null = sqlite3_column_type(r->s, r->i) == SQLITE_NULL;
	int64_t v = take(r);
	return null ? none : v;
}

static ff_usec take_time(struct reader *r)
{
	return take_or(r, FF_TIME_NONE);
}

static struct ff_stamp take_stamp(struct reader *r)
{
	ff_usec arrived = take_time(r);
	return (struct ff_stamp){arrived, take_time(r)};
}

/* Borrowed until the next row; NULL of null. */
static const char *take_text(struct reader *r)
{
	return (const char *)sqlite3_column_text(r->s, r->i++);
}

static struct ff_str take_blob(struct reader *r)
{
	const void *p = sqlite3_column_blob(r->s, r->i);
	int n = sqlite3_column_bytes(r->s, r->i++);
	return ff_str_n(p, p ? (size_t)n : 0);
}

/* malloc'd; NULL of null. */
static char *take_blobz(struct reader *r)
{
	bool null = sqlite3_column_type(r->s, r->i) == SQLITE_NULL;
	struct ff_str s = take_blob(r);
	return null ? NULL : ff_xmemdup(s.p ? s.p : "", s.n);
}

static struct ff_claimed take_claimed(struct reader *r)
{
	ff_usec us = take_time(r);
	uint32_t grain = (uint32_t)take(r);
	return ff_row_claimed(us, grain, (unsigned)take(r));
}

static struct ff_tag take_tag(struct reader *r)
{
	int64_t kind = take(r);
	int64_t value = take(r);
	bool known = kind > FF_TAG_NONE && kind <= FF_TAG_PID;
	return known ? (struct ff_tag){(enum ff_tag_kind)kind, value} : FF_TAG_INIT;
}

/* ---- rows */

static int damaged(const struct loader *l, const char *what)
{
	return ff_err_set(l->err, FF_EDAMAGE,
		"the store in \"%s\" is damaged (%s); it was left as it is: restore it from a "
		"backup, or start once with --set-aside to begin with an empty one",
		l->db->state, what);
}

static struct ff_run *run_of(const struct loader *l, int64_t number)
{
	bool known = number >= 1 && number <= UINT32_MAX;
	return known ? ff_runs_number(l->runs, (uint32_t)number) : NULL;
}

static struct ff_stream *stream_of(
	const struct loader *l, int64_t run, int64_t number, struct ff_run **ret_run)
{
	struct ff_run *r = run_of(l, run);
	bool known = r && number >= 1 && (uint64_t)number <= r->job->nstreams;
	*ret_run = r;
	return known ? r->job->streams[number - 1] : NULL;
}

static int load_run(struct loader *l, sqlite3_stmt *s)
{
	struct reader r = {s, 0};
	int64_t number = take(&r);
	const char *job = take_text(&r);
	const char *name = take_text(&r);
	bool node = number == (int64_t)FF_NODE_NUMBER + (int64_t)l->runs->nnodes;
	bool next = number > (int64_t)l->runs->last_number && number < FF_NODE_NUMBER;
	struct ff_run *run = NULL;
	if (job && name && node) {
		run = ff_nodes_restore(l->runs, ff_str_z(job), ff_str_z(name));
	} else if (job && name && next) {
		run = ff_runs_restore(l->runs, ff_str_z(job), ff_str_z(name), (uint32_t)number);
	}
	if (!run) {
		return damaged(l, "the number or the name of a run");
	}
	struct run_state *rs = ledger_run(l->ledger, run);
	run->begun_us = take_time(&r);
	run->ended_us = take_time(&r);
	rs->owner = take_or(&r, -1);
	run->version = (uint32_t)take(&r);
	rs->verdict_hash = (uint64_t)take(&r);
	run->job->facts.controls_refused = (uint64_t)take(&r);
	rs->segments.first = (uint32_t)take(&r);
	rs->segments.end.number = (uint32_t)take(&r);
	rs->segments.end.at = (uint64_t)take(&r);
	rs->segments_dropped = (uint64_t)take(&r);
	ff_usec known = run->ended_us > run->begun_us ? run->ended_us : run->begun_us;
	rs->heard_at = take_or(&r, known > 0 ? known : 0);
	rs->heard_stored = rs->heard_at;
	return 0;
}

static int load_last_run(struct loader *l, sqlite3_stmt *s)
{
	int64_t number = sqlite3_column_int64(s, 0);
	if (number > (int64_t)l->runs->last_number && number <= UINT32_MAX) {
		l->runs->last_number = (uint32_t)number;
	}
	return 0;
}

static int load_let_go(struct loader *l, sqlite3_stmt *s)
{
	struct reader r = {s, 0};
	uint64_t inode = (uint64_t)take(&r);
	uint32_t head_length = (uint32_t)take(&r);
	tail_let_go(&ledger_daemon(l->ledger)->let_go, inode, head_length, (uint64_t)take(&r));
	return 0;
}

static void mark_contradicted(struct ff_facts *f, const char *id, const char *key)
{
	const struct ff_control *c = ff_facts_control(f, id);
	for (size_t i = 0; c && i < c->nvalues; i++) {
		if (!strcmp(c->values[i].key, key) && !c->values[i].contradicted) {
			c->values[i].contradicted = true;
			f->contradictions++;
		}
	}
}

static int load_control(struct loader *l, sqlite3_stmt *s)
{
	struct reader r = {s, 0};
	struct ff_run *run = run_of(l, take(&r));
	const char *id = take_text(&r);
	const char *key = take_text(&r);
	struct ff_str value = take_blob(&r);
	ff_usec time = take_time(&r);
	int64_t clock = take(&r);
	if (!run || !id || !key || clock < FF_CLOCK_NONE || clock > FF_CLOCK_CLAIMED) {
		return damaged(l, "a control value of no run");
	}
	struct ff_facts *f = &run->job->facts;
	ff_facts_know(f, id);
	if (*key) {
		(void)ff_facts_tell(f, id, key, value, time, (enum ff_clock)clock);
		if (take(&r)) {
			mark_contradicted(f, id, key);
		}
	}
	return 0;
}

static int load_hook(struct loader *l, sqlite3_stmt *s)
{
	struct reader r = {s, 0};
	int64_t number = take(&r);
	struct ff_run *run = number ? run_of(l, number) : NULL;
	int64_t target = take(&r), event = take(&r);
	if (run || !number) { /* else it is being deleted */
		hook_restore(ledger_daemon(l->ledger), run ? ledger_run(l->ledger, run) : NULL,
			target, event, take(&r));
	}
	return 0;
}

static int load_clock(struct loader *l, sqlite3_stmt *s)
{
	struct reader r = {s, 0};
	struct ff_run *run = run_of(l, take(&r));
	const char *node = take_text(&r);
	(void)take(&r);
	struct ff_clock_sample c;
	c.t1 = take(&r);
	c.t2 = take(&r);
	c.t3 = take(&r);
	c.t4 = take(&r);
	if (!run || !node) {
		return damaged(l, "a clock sample of no run");
	}
	(void)ff_facts_sample(&run->job->facts, ff_str_z(node), c);
	return 0;
}

static bool take_origin(struct reader *r, struct ff_origin *o)
{
	o->node = take_text(r);
	o->name = take_text(r);
	o->source = take_text(r);
	int64_t kind = take(r);
	o->kind = (enum ff_stream_kind)kind;
	o->kind_declared = take(r);
	int64_t fd = take(r);
	o->fd = (enum ff_fd)fd;
	o->rank = (int32_t)take_or(r, FF_UNKNOWN);
	o->local_rank = (int32_t)take_or(r, FF_UNKNOWN);
	o->attempt = (int32_t)take_or(r, FF_UNKNOWN);
	o->pid = take_or(r, FF_UNKNOWN);
	o->trusted = take(r);
	o->filtered = take(r);
	o->tailed = take(r);
	o->joined = take(r);
	return o->name && o->source && kind >= FF_STREAM_MIXED && kind <= FF_STREAM_SCHEDULER &&
		fd >= FF_FD_UNKNOWN && fd <= FF_FD_STDERR;
}

/* The stream without what it has digested; that comes after its lanes and events. */
static int load_stream(struct loader *l, sqlite3_stmt *s)
{
	struct reader r = {s, 0};
	struct ff_run *run = run_of(l, take(&r));
	int64_t number = take(&r);
	int64_t life = take(&r);
	struct ff_origin o = {0};
	if (!run || number != (int64_t)run->job->nstreams + 1 || !take_origin(&r, &o)) {
		return damaged(l, "the streams of a run are not numbered one by one");
	}
	struct ff_stream *st =
		ff_job_restore_stream(run->job, &o, (uint32_t)number, (uint32_t)life);
	int64_t state = take(&r);
	st->state = state == FF_STREAM_OPEN ? FF_STREAM_OPEN
		: state == FF_STREAM_ENDED  ? FF_STREAM_ENDED
					    : FF_STREAM_VANISHED;
	st->ended_us = take_time(&r);
	if (!run->node) {
		ff_runs_know_source(l->runs, run, o.source);
	}
	return 0;
}

static int load_tail(struct loader *l, sqlite3_stmt *s)
{
	struct reader r = {s, 0};
	int64_t number = take(&r);
	struct ff_run *run;
	struct ff_stream *st = stream_of(l, number, take(&r), &run);
	if (!st) {
		return damaged(l, "a tailed file of no stream");
	}
	char *path = take_blobz(&r);
	uint64_t device = (uint64_t)take(&r);
	uint64_t inode = (uint64_t)take(&r);
	uint32_t head_length = (uint32_t)take(&r);
	uint64_t head_hash = (uint64_t)take(&r);
	uint64_t mark_at = (uint64_t)take(&r);
	uint32_t mark_length = (uint32_t)take(&r);
	uint64_t mark_hash = (uint64_t)take(&r);
	ledger_stream(l->ledger, run, st)->tail = tail_file_restore(path ? path : "", device, inode,
		head_length, head_hash, mark_at, mark_length, mark_hash, take_blob(&r));
	free(path);
	return 0;
}

static void take_moment(struct reader *r, struct ff_moment *m)
{
	m->set = sqlite3_column_type(r->s, r->i) != SQLITE_NULL;
	m->offset = (uint64_t)take(r);
	m->line = take(r);
	m->stamp = take_stamp(r);
	m->text = take_blobz(r);
}

static int load_lane(struct loader *l, sqlite3_stmt *s)
{
	struct reader r = {s, 0};
	int64_t run_number = take(&r);
	struct ff_run *run;
	struct ff_stream *st = stream_of(l, run_number, take(&r), &run);
	int64_t index = take(&r);
	struct ff_tag tag = take_tag(&r);
	int32_t attempt = (int32_t)take_or(&r, FF_UNKNOWN);
	if (!st || index != (int64_t)st->nlanes) {
		return damaged(l, "the lanes of a stream are not numbered one by one");
	}
	struct ff_lane *lane = ff_stream_lane(st, tag, attempt, NULL);
	if (index != (int64_t)st->nlanes - 1) {
		return damaged(l, "a lane is there twice");
	}
	lane->lines = (uint64_t)take(&r);
	lane->bytes = (uint64_t)take(&r);
	lane->first_offset = (uint64_t)take(&r);
	lane->last_offset = (uint64_t)take(&r);
	lane->first = take_stamp(&r);
	lane->last = take_stamp(&r);
	lane->first_claimed = take_claimed(&r);
	take_moment(&r, &lane->progress);
	take_moment(&r, &lane->recovered);
	take_moment(&r, &lane->success);
	lane->steps = (uint64_t)take(&r);
	if (!pack_read_cadence(take_blob(&r), lane->cadence) ||
		!ff_row_take_pairs(take_blob(&r), &lane->pairs, &lane->npairs)) {
		return damaged(l, "a packed column of a lane");
	}
	lane->cpairs = lane->npairs;
	lane->has_fault = sqlite3_column_type(s, r.i) != SQLITE_NULL;
	lane->last_fault_offset = (uint64_t)take(&r);
	lane->open_offset = (uint64_t)take_or(&r, (int64_t)FF_OFFSET_NONE);
	lane->dirty = false;
	return 0;
}

static bool take_event(struct reader *r, struct ff_event *e)
{
	e->offset = (uint64_t)take(r);
	e->n = (uint32_t)take(r);
	e->line = take_or(r, 0);
	e->at_offset = (uint64_t)take(r);
	e->at_line = take_or(r, 0);
	int64_t kind = take(r);
	int64_t role = take(r);
	e->kind = (enum ff_event_kind)kind;
	e->role = (enum ff_role)role;
	e->fault = ff_xstrdup(take_text(r));
	e->signature = ff_xstrdup(take_text(r));
	e->tag = take_tag(r);
	e->attempt = (int32_t)take_or(r, FF_UNKNOWN);
	e->stamp = take_stamp(r);
	e->claimed = take_claimed(r);
	bool fields = pack_read_fields(take_blob(r), &e->fields);
	e->text_len = (size_t)sqlite3_column_bytes(r->s, r->i);
	e->text = take_blobz(r);
	e->frame = take_blobz(r);
	e->handled = take(r);
	e->quoted = take(r);
	e->recovered = take(r);
	e->fingerprint = (uint64_t)take(r);
	e->lane = (uint32_t)take(r);
	e->count = (uint32_t)take(r);
	e->last.offset = (uint64_t)take(r);
	e->last.line = take(r);
	e->last.stamp = take_stamp(r);
	return fields && e->fault && e->signature && kind >= 0 && kind <= FF_EVENT_SIGN &&
		role >= 0 && role <= FF_ROLE_CONTEXT;
}

static int load_event(struct loader *l, sqlite3_stmt *s)
{
	struct reader r = {s, 0};
	int64_t run_number = take(&r);
	struct ff_run *run;
	struct ff_stream *st = stream_of(l, run_number, take(&r), &run);
	if (!st) {
		return damaged(l, "an event of no stream");
	}
	struct ff_event *e = ff_stream_restore_event(st);
	if (!take_event(&r, e) || e->lane >= st->nlanes) {
		return damaged(l, "an event");
	}
	e->dirty = false;
	return 0;
}

/* What the stream has digested; its lanes and events are there. */
static int load_digest(struct loader *l, sqlite3_stmt *s)
{
	struct reader r = {s, 0};
	int64_t run_number = take(&r);
	struct ff_run *run;
	struct ff_stream *st = stream_of(l, run_number, take(&r), &run);
	uint64_t fed = (uint64_t)take(&r);
	uint64_t digested = (uint64_t)take(&r);
	uint64_t resume = (uint64_t)take(&r);
	int64_t line = take_or(&r, 0);
	struct ff_tag tag = take_tag(&r);
	st->last_attempt = (int32_t)take_or(&r, FF_UNKNOWN);
	bool in_skip = take(&r);
	st->gap = take(&r);
	st->read_to_end = take(&r);
	if (resume > fed || digested > fed) {
		return damaged(l, "the offsets of a stream");
	}
	ff_stream_restore(st, digested, resume, in_skip, tag, line);
	struct stream_state *ss = ledger_stream(l->ledger, run, st);
	ss->done = ss->stored = fed;
	ss->resume = resume;
	ss->texted = (uint64_t)take(&r);
	struct segment_place place;
	place.number = (uint32_t)take(&r);
	place.at = (uint64_t)take(&r);
	if (place.number) {
		*FF_ARR_ADD(ss->frames, ss->nframes, ss->cframes) =
			(struct ledger_frame){resume, place};
	}
	st->dirty = false;
	return 0;
}

/* ---- queries */

static int each(struct loader *l, const char *sql, row_fn *fn)
{
	sqlite3_stmt *s = NULL;
	int rc = sqlite3_prepare_v2(l->db->db, sql, -1, &s, NULL);
	int r = 0;
	if (rc == SQLITE_OK) {
		while ((rc = sqlite3_step(s)) == SQLITE_ROW && r == 0) {
			r = fn(l, s);
		}
	}
	bool broken = (rc & 0xff) == SQLITE_CORRUPT || (rc & 0xff) == SQLITE_NOTADB;
	if (r == 0 && broken) {
		r = damaged(l, sqlite3_errmsg(l->db->db));
	} else if (r == 0 && rc != SQLITE_DONE) {
		r = ff_err_set(l->err, FF_EDB, "cannot read the store in \"%s\": %s", l->db->state,
			sqlite3_errmsg(l->db->db));
	}
	sqlite3_finalize(s);
	return r;
}

static const struct {
	const char *sql;
	row_fn *fn;
} queries[] = {
	{"SELECT * FROM run ORDER BY number", load_run},
	{"SELECT number FROM last_run", load_last_run},
	{"SELECT inode, head_length, head_hash FROM let_go", load_let_go},
	{"SELECT * FROM control ORDER BY run, id, key", load_control},
	{"SELECT * FROM clock ORDER BY run, node, n", load_clock},
	{"SELECT run, number, life, node, name, source, kind, kind_declared, fd, rank, local_rank, "
	 "attempt,"
	 " pid, trusted, filtered, tailed, joined, state, ended_us"
	 " FROM stream ORDER BY run, number",
		load_stream},
	{"SELECT * FROM lane ORDER BY run, stream, lane", load_lane},
	{"SELECT * FROM event ORDER BY run, stream, offset, n", load_event},
	{"SELECT run, number, fed, digested, resume, resume_line, resume_tag_kind, "
	 "resume_tag_value,"
	 " resume_attempt, in_skip, gap, read_to_end, texted, resume_segment, resume_at"
	 " FROM stream ORDER BY run, number",
		load_digest},
	{"SELECT * FROM tail ORDER BY run, stream", load_tail},
	{"SELECT run, target, event, value FROM hook ORDER BY run, target, event", load_hook},
};

/* ---- text behind `resume` */

struct replay {
	struct ff_run *run;
	size_t missing; /* streams whose text is not complete yet */
};

/* Feeds the part of a frame that the stream does not have. */
static void feed_frame(struct ff_run *run, struct ff_stream *s, const struct segment_frame *f,
	struct ff_str lines, uint64_t end)
{
	uint64_t offset = f->offset;
	struct segment_line line;
	struct ff_buf text = {0};
	while (offset < end && segment_take_line(&lines, &line)) {
		ff_buf_clear(&text);
		ff_buf_adds(&text, line.text);
		if (line.whole) {
			ff_buf_addc(&text, '\n');
		}
		struct ff_chunk c = {offset, text.p, text.len, FF_STAMP_NONE, f->tags};
		*(f->clock == FF_CLOCK_CAPTURED ? &c.stamp.captured : &c.stamp.arrived) = line.us;
		if (offset + text.len > s->fed && offset <= s->fed) {
			size_t known = (size_t)(s->fed - offset);
			c.offset += known;
			c.data += known;
			c.len -= known;
			ff_job_feed(run->job, s, &c);
		}
		offset += text.len;
	}
	ff_buf_finish(&text);
}

static bool on_frame(
	void *ud, const struct segment_frame *f, struct ff_str lines, struct segment_place place)
{
	struct replay *r = ud;
	struct ff_job *job = r->run->job;
	if (f->stream > job->nstreams) {
		return true;
	}
	struct ff_stream *s = job->streams[f->stream - 1];
	struct stream_state *ss = s->user;
	if (s->origin.tailed || s->fed >= ss->stored || f->offset > s->fed) {
		return true;
	}
	feed_frame(r->run, s, f, lines, ss->stored);
	r->missing -= s->fed >= ss->stored;
	return r->missing > 0;
}

/* The place of the oldest text that a stream of the run needs; how many need some. */
static size_t find_start(const struct ff_run *run, struct segment_place *ret)
{
	size_t n = 0;
	for (size_t i = 0; i < run->job->nstreams; i++) {
		const struct ff_stream *s = run->job->streams[i];
		const struct stream_state *ss = s->user;
		if (s->origin.tailed || s->fed >= ss->stored || !ss->nframes) {
			continue;
		}
		struct segment_place p = ss->frames[0].place;
		if (!n || p.number < ret->number || (p.number == ret->number && p.at < ret->at)) {
			*ret = p;
		}
		n++;
	}
	return n;
}

/* Files that are not what was committed: their text is gone, all else is there. */
static void cut_segments(struct loader *l, struct ff_run *run, struct daemon *d)
{
	struct run_state *rs = run->user;
	struct ff_err err = {0};
	if (segment_cut(l->db->state, run->number, rs->segments, &err) == 0) {
		return;
	}
	ff_log_warn("store", "job=%s run=%s: %s; its text so far is gone, ignoring",
		run->job->facts.job, run->job->facts.run, err.text);
	d->counts[DAEMON_COUNT_segments_damaged]++;
	rs->segments.first = rs->segments.end.number + 1;
	rs->segments.end = (struct segment_place){rs->segments.first, 0};
	run->dirty = true;
	for (size_t i = 0; i < run->job->nstreams; i++) {
		((struct stream_state *)run->job->streams[i]->user)->nframes = 0;
	}
}

static void replay_text(struct loader *l, struct ff_run *run)
{
	const struct run_state *rs = run->user;
	struct segment_place from = {0, 0};
	struct replay r = {run, find_start(run, &from)};
	if (r.missing && from.number) {
		(void)segment_scan(l->db->state, run->number, rs->segments, from, on_frame, &r);
	}
}

/* Text that is gone and that nobody will send again: the stream goes on behind it. */
static void skip_lost(struct ff_run *run)
{
	for (size_t i = 0; i < run->job->nstreams; i++) {
		struct ff_stream *s = run->job->streams[i];
		struct stream_state *ss = s->user;
		if (s->origin.tailed || s->fed >= ss->stored ||
			strcmp(s->origin.source, "0") != 0) {
			continue;
		}
		s->fed = s->digested = s->replay = s->resume = ss->stored;
		s->splitter.start = s->splitter.pos = ss->stored;
		s->splitter.number = 0;
		for (size_t k = 0; k < s->nlanes; k++) {
			s->lanes[k]->open_offset = FF_OFFSET_NONE;
		}
		s->gap = true;
	}
}

/* What was connected when the daemon went is heard no more, until the next hello. A file that was
 * read to its end after the end of its job has said what it had to. */
static void let_vanish(struct ff_run *run)
{
	for (size_t i = 0; i < run->job->nstreams; i++) {
		struct ff_stream *s = run->job->streams[i];
		if (s->state == FF_STREAM_OPEN && !(s->origin.tailed && s->read_to_end)) {
			ff_job_end_stream(run->job, s, false, FF_TIME_NONE);
		}
	}
}

static void clear_facts(struct ff_facts *f)
{
	for (size_t i = 0; i < f->ncontrols; i++) {
		f->controls[i]->dirty = false;
	}
	for (size_t i = 0; i < f->nclocks; i++) {
		f->clocks[i].dirty = false;
	}
}

int store_load(struct store *s, struct ledger *ledger, struct ff_runs *runs, struct ff_err *err)
{
	struct loader l = {(struct store_db *)s, ledger, runs, err};
	for (size_t i = 0; i < sizeof queries / sizeof *queries; i++) {
		int r = each(&l, queries[i].sql, queries[i].fn);
		if (r < 0) {
			return r;
		}
	}
	struct ff_run *run;
	for (size_t i = 0; (run = ff_runs_any(runs, i)); i++) {
		clear_facts(&run->job->facts);
		cut_segments(&l, run, ledger_daemon(ledger));
		replay_text(&l, run);
		skip_lost(run);
		((struct run_state *)run->user)->committed =
			((struct run_state *)run->user)->segments;
		let_vanish(run);
	}
	return 0;
}
