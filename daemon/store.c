#include "store.h"
#include "store_keep.h"
#include "store_text.h"

#include "base/limits.h"
#include "clock.h"
#include "migrate.h"
#include "pack.h"
#include "shell/log.h"

#include <errno.h>
#include <pthread.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define RETRY_NS 1000000000ull       /* between two tries */
#define FATAL_AFTER (30 * FF_SECOND) /* unless the disk is full */
#define REST_US (2 * FF_SECOND)      /* without a batch; then the log is folded into the database */
#define LATER_US FF_SECOND           /* before a step that could not be done is tried again */

/* Values in the order of the columns; E: take the new one. */
#define E(column) #column "=excluded." #column
#define FIVE "?,?,?,?,?,"
/* clang-format off */
#define STATEMENTS(X) \
	X(RUN, \
	  "INSERT INTO run VALUES(" FIVE FIVE "?,?,?,?) ON CONFLICT(number) DO UPDATE SET " \
	  E(ended_us) "," E(owner) "," E(version) "," E(verdict_hash) "," E(controls_refused) "," \
	  E(segment_first) "," E(segment_last) "," E(segment_length) "," E(segments_dropped) "," \
	  E(heard_us)) \
	X(CONTROL, "INSERT OR REPLACE INTO control VALUES(" FIVE "?,?)") \
	X(CLOCK, "INSERT OR REPLACE INTO clock VALUES(" FIVE "?,?)") \
	X(STREAM, \
	  "INSERT INTO stream VALUES(" FIVE FIVE FIVE FIVE FIVE FIVE "?,?) " \
	  "ON CONFLICT DO UPDATE SET " \
	  E(kind) "," E(kind_declared) "," E(fd) "," E(rank) "," E(local_rank) "," E(attempt) "," \
	  E(pid) "," E(trusted) "," E(filtered) "," E(state) "," E(ended_us) "," E(fed) "," \
	  E(digested) "," E(resume) "," E(resume_line) "," E(resume_tag_kind) "," \
	  E(resume_tag_value) "," E(resume_attempt) "," E(in_skip) "," E(gap) "," \
	  E(read_to_end) "," E(texted) "," E(resume_segment) "," E(resume_at)) \
	X(TAIL, "INSERT OR REPLACE INTO tail VALUES(" FIVE FIVE "?)") \
	X(LANE, \
	  "INSERT INTO lane VALUES(" FIVE FIVE FIVE FIVE FIVE FIVE FIVE "?,?) " \
	  "ON CONFLICT DO UPDATE SET " \
	  E(lines) "," E(bytes) "," E(first_offset) "," E(last_offset) "," E(first_arrived_us) "," \
	  E(first_captured_us) "," E(last_arrived_us) "," E(last_captured_us) "," \
	  E(first_claimed_us) "," E(first_claimed_grain) "," E(first_claimed_flags) "," \
	  E(progress_offset) "," E(progress_line) "," E(progress_arrived_us) "," \
	  E(progress_captured_us) "," E(progress_text) "," E(recovered_offset) "," \
	  E(recovered_line) "," E(recovered_arrived_us) "," E(recovered_captured_us) "," \
	  E(recovered_text) "," E(success_offset) "," E(success_line) "," \
	  E(success_arrived_us) "," E(success_captured_us) "," E(success_text) "," E(steps) "," \
	  E(cadence) "," E(pairs) "," E(fault_offset) "," E(open_offset)) \
	X(EVENT, \
	  "INSERT OR REPLACE INTO event VALUES(" FIVE FIVE FIVE FIVE FIVE FIVE "?,?)") \
	X(DROP, "DELETE FROM event WHERE run=? AND stream=? AND offset=? AND n=?") \
	X(HOOK, "INSERT OR REPLACE INTO hook VALUES(?,?,?,?)") \
	X(GOING, "INSERT OR IGNORE INTO going VALUES(?)") \
	X(GOING_NAME, "UPDATE run SET job='', run=CAST(number AS TEXT) WHERE number=?") \
	X(LAST_RUN, "UPDATE last_run SET number=max(number, ?)") \
	X(BEGIN, "BEGIN IMMEDIATE") \
	X(COMMIT, "COMMIT") \
	X(ROLLBACK, "ROLLBACK")
/* clang-format on */

enum statement {
#define X(name, sql) STATEMENT_##name,
	STATEMENTS(X)
#undef X
	STATEMENT_COUNT
};

static const char *const sql_of[] = {
#define X(name, sql) [STATEMENT_##name] = (sql),
	STATEMENTS(X)
#undef X
};

struct store_gone {
	uint32_t run;
	uint64_t bytes;
};

struct store {
	struct store_db base; /* first: what store_load.c knows too */
	sqlite3_stmt *statements[STATEMENT_COUNT];
	struct store_text text;
	struct store_keep keep;
	bool said_later;
	ff_usec rest_us; /* when the log is folded into the database unless something comes */

	uv_async_t async;
	store_fn *changed;
	void *ud;
	uv_thread_t thread;
	bool started, handle_open;

	uv_mutex_t lock; /* guards what follows */
	uv_cond_t wake;
	struct batch *queue, **queue_end;
	struct batch *done, **done_end;
	struct store_gone *gone; /* runs that are gone, not taken yet */
	size_t ngone, cgone;
	struct store_status status;
	unsigned holds;
	bool stop, ended;
};

/* ---- binding: each call takes the next placeholder */

struct binder {
	sqlite3_stmt *s;
	int i;
};

static void put(struct binder *b, int64_t v)
{
	(void)sqlite3_bind_int64(b->s, ++b->i, v);
}

static void put_null(struct binder *b)
{
	(void)sqlite3_bind_null(b->s, ++b->i);
}

/* Null for the value that means none. */
static void put_unless(struct binder *b, int64_t v, int64_t none)
{
	if (v == none) {
		put_null(b);
	} else {
		put(b, v);
	}
}

static void put_time(struct binder *b, ff_usec t)
{
	put_unless(b, t, FF_TIME_NONE);
}

static void put_stamp(struct binder *b, struct ff_stamp s)
{
	put_time(b, s.arrived);
	put_time(b, s.captured);
}

static void put_text(struct binder *b, const char *z)
{
	(void)sqlite3_bind_text(b->s, ++b->i, z, z ? (int)strlen(z) : 0, SQLITE_STATIC);
}

static void put_blob(struct binder *b, struct ff_str s)
{
	(void)sqlite3_bind_blob(b->s, ++b->i, s.n ? s.p : "", (int)s.n, SQLITE_STATIC);
}

static void put_blobz(struct binder *b, const char *z)
{
	if (z) {
		put_blob(b, ff_str_z(z));
	} else {
		put_null(b);
	}
}

static void put_claimed(struct binder *b, struct ff_claimed c)
{
	put_time(b, c.us);
	put(b, c.grain);
	put(b, ff_row_claimed_flags(&c));
}

static struct binder bind_first(struct store *s, enum statement id)
{
	return (struct binder){s->statements[id], 0};
}

static int step(struct binder *b)
{
	int rc = sqlite3_step(b->s);
	(void)sqlite3_reset(b->s);
	return rc == SQLITE_DONE || rc == SQLITE_ROW ? SQLITE_OK : rc;
}

static int plain(struct store *s, enum statement id)
{
	struct binder b = bind_first(s, id);
	return step(&b);
}

/* ---- rows */

static int write_run(struct store *s, const struct row_run *r)
{
	struct binder b = bind_first(s, STATEMENT_RUN);
	put(&b, r->number);
	put_text(&b, r->job);
	put_text(&b, r->run);
	put_time(&b, r->begun_us);
	put_time(&b, r->ended_us);
	put_unless(&b, r->owner, -1);
	put(&b, r->version);
	put(&b, (int64_t)r->verdict_hash);
	put(&b, (int64_t)r->controls_refused);
	put(&b, r->segments.first);
	put(&b, r->segments.end.number);
	put(&b, (int64_t)r->segments.end.at);
	put(&b, (int64_t)r->segments_dropped);
	put_time(&b, r->heard_us);
	return step(&b);
}

static int write_control(struct store *s, const struct row_control *r)
{
	struct binder b = bind_first(s, STATEMENT_CONTROL);
	put(&b, r->run);
	put_text(&b, r->id);
	put_text(&b, r->key);
	put_blobz(&b, r->value);
	put_time(&b, r->time_us);
	put(&b, r->clock);
	put(&b, r->contradicted);
	return step(&b);
}

static int write_clock(struct store *s, const struct row_clock *r)
{
	struct binder b = bind_first(s, STATEMENT_CLOCK);
	put(&b, r->run);
	put_text(&b, r->node);
	put(&b, r->n);
	put(&b, r->sample.t1);
	put(&b, r->sample.t2);
	put(&b, r->sample.t3);
	put(&b, r->sample.t4);
	return step(&b);
}

static int write_tail(struct store *s, const struct row_stream *r)
{
	struct binder b = bind_first(s, STATEMENT_TAIL);
	put(&b, r->run);
	put(&b, r->number);
	put_blobz(&b, r->tail.path);
	put(&b, (int64_t)r->tail.device);
	put(&b, (int64_t)r->tail.inode);
	put(&b, r->tail.head_length);
	put(&b, (int64_t)r->tail.head_hash);
	put(&b, (int64_t)r->tail.mark_at);
	put(&b, r->tail.mark_length);
	put(&b, (int64_t)r->tail.mark_hash);
	put_blob(&b, r->tail.stamps);
	return step(&b);
}

static int write_stream(struct store *s, const struct row_stream *r)
{
	struct binder b = bind_first(s, STATEMENT_STREAM);
	const struct ff_origin *o = &r->origin;
	put(&b, r->run);
	put(&b, r->number);
	put(&b, r->life);
	put_text(&b, o->node);
	put_text(&b, o->name);
	put_text(&b, o->source);
	put(&b, o->kind);
	put(&b, o->kind_declared);
	put(&b, o->fd);
	put_unless(&b, o->rank, FF_UNKNOWN);
	put_unless(&b, o->local_rank, FF_UNKNOWN);
	put_unless(&b, o->attempt, FF_UNKNOWN);
	put_unless(&b, o->pid, FF_UNKNOWN);
	put(&b, o->trusted);
	put(&b, o->filtered);
	put(&b, o->tailed);
	put(&b, r->state);
	put_time(&b, r->ended_us);
	put(&b, (int64_t)r->fed);
	put(&b, (int64_t)r->digested);
	put(&b, (int64_t)r->resume);
	put_unless(&b, r->resume_line, 0);
	put(&b, r->resume_tag.kind);
	put(&b, r->resume_tag.value);
	put_unless(&b, r->resume_attempt, FF_UNKNOWN);
	put(&b, r->in_skip);
	put(&b, r->gap);
	put(&b, r->read_to_end);
	put(&b, (int64_t)r->texted);
	put(&b, r->resume_place.number);
	put(&b, (int64_t)r->resume_place.at);
	put(&b, o->joined);
	int rc = step(&b);
	return rc == SQLITE_OK && r->tail.path ? write_tail(s, r) : rc;
}

static void put_moment(struct binder *b, const struct row_moment *m)
{
	if (!m->set) {
		for (int i = 0; i < 5; i++) {
			put_null(b);
		}
		return;
	}
	put(b, (int64_t)m->offset);
	put(b, m->line);
	put_stamp(b, m->stamp);
	put_blobz(b, m->text);
}

static int write_lane(struct store *s, const struct row_lane *r)
{
	struct binder b = bind_first(s, STATEMENT_LANE);
	put(&b, r->run);
	put(&b, r->stream);
	put(&b, r->lane);
	put(&b, r->tag.kind);
	put(&b, r->tag.value);
	put_unless(&b, r->attempt, FF_UNKNOWN);
	put(&b, (int64_t)r->lines);
	put(&b, (int64_t)r->bytes);
	put(&b, (int64_t)r->first_offset);
	put(&b, (int64_t)r->last_offset);
	put_stamp(&b, r->first);
	put_stamp(&b, r->last);
	put_claimed(&b, r->first_claimed);
	put_moment(&b, &r->progress);
	put_moment(&b, &r->recovered);
	put_moment(&b, &r->success);
	put(&b, (int64_t)r->steps);
	(void)sqlite3_bind_text(b.s, ++b.i, r->cadence.p, (int)r->cadence.n, SQLITE_STATIC);
	put_blob(&b, r->pairs);
	if (r->has_fault) {
		put(&b, (int64_t)r->fault_offset);
	} else {
		put_null(&b);
	}
	if (r->open_offset < FF_OFFSET_UNKNOWN) {
		put(&b, (int64_t)r->open_offset);
	} else {
		put_null(&b);
	}
	return step(&b);
}

static int write_event(struct store *s, const struct row_event *r)
{
	struct binder b = bind_first(s, STATEMENT_EVENT);
	const struct ff_event *e = &r->e;
	put(&b, r->run);
	put(&b, r->stream);
	put(&b, (int64_t)e->offset);
	put(&b, e->n);
	put_unless(&b, e->line, 0);
	put(&b, (int64_t)e->at_offset);
	put_unless(&b, e->at_line, 0);
	put(&b, e->kind);
	put(&b, e->role);
	put_text(&b, e->fault);
	put_text(&b, e->signature);
	put(&b, e->tag.kind);
	put(&b, e->tag.value);
	put_unless(&b, e->attempt, FF_UNKNOWN);
	put_stamp(&b, e->stamp);
	put_claimed(&b, e->claimed);
	(void)sqlite3_bind_text(b.s, ++b.i, r->fields.p, (int)r->fields.n, SQLITE_STATIC);
	if (e->text) {
		put_blob(&b, ff_str_n(e->text, e->text_len));
	} else {
		put_null(&b);
	}
	put_blobz(&b, e->frame);
	put(&b, e->handled);
	put(&b, e->quoted);
	put(&b, e->recovered);
	put(&b, (int64_t)e->fingerprint);
	put(&b, e->lane);
	put(&b, e->count);
	if (e->count > 1) {
		put(&b, (int64_t)e->last.offset);
		put(&b, e->last.line);
		put_stamp(&b, e->last.stamp);
	} else {
		for (int i = 0; i < 4; i++) {
			put_null(&b);
		}
	}
	return step(&b);
}

static int write_drop(struct store *s, const struct row_drop *r)
{
	struct binder b = bind_first(s, STATEMENT_DROP);
	put(&b, r->run);
	put(&b, r->stream);
	put(&b, (int64_t)r->offset);
	put(&b, r->n);
	return step(&b);
}

static int write_number(struct store *s, enum statement id, uint32_t number)
{
	struct binder b = bind_first(s, id);
	put(&b, number);
	return step(&b);
}

/* From now on the run is gone: its name is free, and the rest of it is deleted bit by bit. */
static int write_going(struct store *s, const uint32_t *run)
{
	int rc = write_number(s, STATEMENT_GOING, *run);
	if (rc == SQLITE_OK) {
		rc = write_number(s, STATEMENT_GOING_NAME, *run);
	}
	return rc == SQLITE_OK ? write_number(s, STATEMENT_LAST_RUN, *run) : rc;
}

static int write_hook(struct store *s, const struct row_hook *r)
{
	struct binder b = bind_first(s, STATEMENT_HOOK);
	put(&b, r->run);
	put(&b, r->target);
	put(&b, r->event);
	put(&b, (int64_t)r->value);
	return step(&b);
}

/* Parents before children. */
static int write_rows(struct store *s, const struct batch *b)
{
	int rc = SQLITE_OK;
#define EACH(what, fn) \
	for (size_t i = 0; i < b->n##what && rc == SQLITE_OK; i++) { \
		rc = fn(s, &b->what[i]); \
	}
	EACH(going, write_going)
	EACH(runs, write_run)
	EACH(controls, write_control)
	EACH(clocks, write_clock)
	EACH(streams, write_stream)
	EACH(lanes, write_lane)
	EACH(drops, write_drop)
	EACH(events, write_event)
	EACH(hooks, write_hook)
#undef EACH
	return rc;
}

/* ---- commit */

struct failure {
	bool full; /* or something else that lasts and ends: it is tried for as long as it does */
	char text[640];
};

/* What to do about it. */
static const char *advice(int e)
{
	switch (e) {
	case ENOSPC: return "; make room on its disk";
	case EDQUOT: return "; its user's quota is used up";
	case EROFS: return "; its file system has become read-only: see the kernel's log";
	case EIO: return "; its disk fails: see the kernel's log";
	case EMFILE:
	case ENFILE: return "; the daemon may have too few open files (LimitNOFILE, ulimit -n)";
	default: return "";
	}
}

/* These pass when others give something back; an error of another kind ends the daemon soon. */
static bool is_full(int e)
{
	return e == ENOSPC || e == EDQUOT || e == EMFILE || e == ENFILE;
}

static bool is_held(struct store *s)
{
	uv_mutex_lock(&s->lock);
	bool held = s->holds > 0;
	uv_mutex_unlock(&s->lock);
	return held;
}

static void take_out(struct store *s, const struct batch *b)
{
	for (size_t i = 0; i < b->ngoing; i++) {
		store_keep_add(&s->keep, b->going[i]);
	}
}

static void say_database(struct store *s, int rc, struct failure *ret)
{
	/* a successful write in between may have changed the errno: SQLite says which one counts */
	int e = (rc & 0xff) == SQLITE_IOERR ? sqlite3_system_errno(s->base.db) : 0;
	if ((rc & 0xff) == SQLITE_FULL) {
		e = ENOSPC;
	} else if ((rc & 0xff) == SQLITE_READONLY) {
		e = EROFS;
	} else if ((rc & 0xff) == SQLITE_IOERR && !is_full(e) && e != EROFS) {
		e = EIO; /* a call in between has changed it */
	}
	ret->full = is_full(e);
	(void)snprintf(ret->text, sizeof ret->text, "cannot commit to \"%s/store.db\": %s%s",
		s->base.state, sqlite3_errmsg(s->base.db), advice(e));
}

static bool commit(struct store *s, const struct batch *b, struct failure *ret)
{
	struct ff_err err = {0};
	if (store_keep_log_is_full(&s->keep, ret->text, sizeof ret->text)) {
		ret->full = true;
		return false;
	}
	int r = store_text_write(&s->text, b, &err);
	if (r < 0) {
		ret->full = is_full(-r);
		(void)snprintf(ret->text, sizeof ret->text, "%s%s", err.text, advice(-r));
		return false;
	}
	int rc = plain(s, STATEMENT_BEGIN);
	if (rc == SQLITE_OK) {
		rc = write_rows(s, b);
	}
	if (rc == SQLITE_OK) {
		rc = plain(s, STATEMENT_COMMIT);
	}
	if (rc == SQLITE_OK) {
		store_text_committed(&s->text, b, is_held(s));
		take_out(s, b);
		return true;
	}
	say_database(s, rc, ret);
	if (!sqlite3_get_autocommit(s->base.db)) {
		(void)plain(s, STATEMENT_ROLLBACK);
	}
	return false;
}

/* ---- thread */

/* The lock is held. */
static void note_failure(struct store *s, const struct failure *f, ff_usec began)
{
	struct store_status *t = &s->status;
	t->retries++;
	if (!t->failing) {
		t->failing = true;
		t->failures++;
		t->since_us = clock_wall();
	}
	t->full = f->full;
	(void)snprintf(t->text, sizeof t->text, "%s", f->text);
	t->fatal = !f->full && clock_mono() - began > FATAL_AFTER;
}

/* Until the batch is committed; false: given up. The lock is not held. */
static bool commit_for_sure(struct store *s, const struct batch *b)
{
	ff_usec began = 0; /* of failures that are no full disk */
	for (;;) {
		struct failure f = {0};
		if (commit(s, b, &f)) {
			return true;
		}
		ff_usec now = clock_mono();
		began = f.full ? 0 : began ? began : now;
		uv_mutex_lock(&s->lock);
		note_failure(s, &f, began ? began : now);
		uv_async_send(&s->async);
		if (!s->stop && !s->status.fatal) {
			(void)uv_cond_timedwait(&s->wake, &s->lock, RETRY_NS);
		}
		bool give_up = s->stop || s->status.fatal;
		uv_mutex_unlock(&s->lock);
		if (give_up) {
			return false;
		}
	}
}

static void measure(struct store *s)
{
	uint64_t bytes, free_bytes;
	store_keep_measure(&s->keep, &bytes, &free_bytes);
	uv_mutex_lock(&s->lock);
	s->status.file_bytes = bytes;
	s->status.free_bytes = free_bytes;
	s->status.log_bytes = s->keep.log_bytes;
	uv_mutex_unlock(&s->lock);
}

/* When there is something else to do than batches. The lock is held. */
static ff_usec due_us(const struct store *s, ff_usec later_us)
{
	if (s->holds) {
		return INT64_MAX;
	}
	return s->keep.ngoing ? later_us : s->keep.log_bytes ? s->rest_us : INT64_MAX;
}

/* The next one; NULL if there is none now: the store is to stop, or has something else to do. */
static struct batch *next_batch(struct store *s, ff_usec later_us, bool *ret_stop, bool *ret_due)
{
	uv_mutex_lock(&s->lock);
	ff_usec due = due_us(s, later_us), now = clock_mono();
	while (!s->queue && !s->stop && now < due) {
		if (due < INT64_MAX) {
			(void)uv_cond_timedwait(&s->wake, &s->lock, (uint64_t)(due - now) * 1000);
		} else {
			uv_cond_wait(&s->wake, &s->lock);
		}
		due = due_us(s, later_us);
		now = clock_mono();
	}
	struct batch *b = s->queue;
	*ret_stop = s->stop;
	*ret_due = now >= due;
	uv_mutex_unlock(&s->lock);
	return b;
}

/* Nothing has come for a while: what is in the log goes to its place. */
static void rest(struct store *s)
{
	s->rest_us = clock_mono() + REST_US; /* if somebody reads */
	store_keep_rest(&s->keep);
	measure(s);
}

/* One step of what is done between batches. */
static void keep_some(struct store *s, ff_usec *later_us)
{
	struct store_gone gone;
	char why[160];
	enum store_keep_result r =
		store_keep_step(&s->keep, &gone.run, &gone.bytes, why, sizeof why);
	if (r == STORE_KEEP_LATER) {
		*later_us = clock_mono() + LATER_US;
		if (!s->said_later) {
			ff_log_warn("store", "run %u can't be taken out now: %s, retrying",
				s->keep.going[0], why);
		}
	}
	s->said_later = r == STORE_KEEP_LATER;
	uv_mutex_lock(&s->lock);
	s->status.later += r == STORE_KEEP_LATER;
	if (r == STORE_KEEP_GONE) {
		*FF_ARR_ADD(s->gone, s->ngone, s->cgone) = gone;
		uv_async_send(&s->async);
	}
	uv_mutex_unlock(&s->lock);
	measure(s);
}

static void hand_back(struct store *s, struct batch *b)
{
	measure(s);
	uv_mutex_lock(&s->lock);
	s->queue = b->next;
	if (!s->queue) {
		s->queue_end = &s->queue;
	}
	b->next = NULL;
	*s->done_end = b;
	s->done_end = &b->next;
	s->status.queued--;
	s->status.queued_bytes -= b->bytes;
	s->status.commits++;
	s->status.rows += batch_rows(b);
	s->status.failing = false;
	s->status.full = false;
	uv_async_send(&s->async);
	uv_mutex_unlock(&s->lock);
}

static void work(void *ud)
{
	struct store *s = ud;
	(void)pthread_setname_np(pthread_self(), "store"); /* as top and gdb show it */
	ff_usec later_us = 0; /* when a step that could not be done is tried again */
	for (bool stop = false, due = false;;) {
		struct batch *b = next_batch(s, later_us, &stop, &due);
		if ((!b && stop) || (b && !commit_for_sure(s, b))) {
			break;
		}
		if (b) {
			hand_back(s, b);
			s->rest_us = clock_mono() + REST_US;
		}
		if (due && !stop && s->keep.ngoing) {
			keep_some(s, &later_us);
		} else if (due && !stop && !b) {
			rest(s);
		}
	}
	uv_mutex_lock(&s->lock);
	s->ended = true;
	uv_async_send(&s->async);
	uv_mutex_unlock(&s->lock);
}

static void on_async(uv_async_t *async)
{
	struct store *s = async->data;
	s->changed(s->ud);
}

int store_start(struct store *s, uv_loop_t *loop, store_fn *changed, void *ud, struct ff_err *err)
{
	s->changed = changed;
	s->ud = ud;
	int r = uv_async_init(loop, &s->async, on_async);
	if (r < 0) {
		return ff_err_set(err, r, "cannot start the store: %s", uv_strerror(r));
	}
	s->async.data = s;
	s->handle_open = true;
	r = uv_thread_create(&s->thread, work, s);
	if (r < 0) {
		return ff_err_set(err, r, "cannot start the store's thread: %s", uv_strerror(r));
	}
	s->started = true;
	return 0;
}

void store_submit(struct store *s, struct batch *b)
{
	uv_mutex_lock(&s->lock);
	b->next = NULL;
	*s->queue_end = b;
	s->queue_end = &b->next;
	s->status.queued++;
	s->status.queued_bytes += b->bytes;
	uv_cond_signal(&s->wake);
	uv_mutex_unlock(&s->lock);
}

struct batch *store_take_done(struct store *s)
{
	uv_mutex_lock(&s->lock);
	struct batch *b = s->done;
	if (b) {
		s->done = b->next;
		if (!s->done) {
			s->done_end = &s->done;
		}
		b->next = NULL;
	}
	uv_mutex_unlock(&s->lock);
	return b;
}

bool store_take_gone(struct store *s, uint32_t *ret_run, uint64_t *ret_bytes)
{
	uv_mutex_lock(&s->lock);
	bool any = s->ngone > 0;
	if (any) {
		*ret_run = s->gone[0].run;
		*ret_bytes = s->gone[0].bytes;
		s->ngone--;
		memmove(s->gone, s->gone + 1, s->ngone * sizeof *s->gone);
	}
	uv_mutex_unlock(&s->lock);
	return any;
}

void store_status(struct store *s, struct store_status *ret)
{
	uv_mutex_lock(&s->lock);
	*ret = s->status;
	uv_mutex_unlock(&s->lock);
}

void store_hold(struct store *s, bool hold)
{
	uv_mutex_lock(&s->lock);
	s->holds += hold ? 1 : -1u;
	uv_cond_signal(&s->wake);
	uv_mutex_unlock(&s->lock);
}

void store_stop(struct store *s)
{
	uv_mutex_lock(&s->lock);
	s->stop = true;
	uv_cond_signal(&s->wake);
	uv_mutex_unlock(&s->lock);
}

bool store_stopped(struct store *s)
{
	uv_mutex_lock(&s->lock);
	bool ended = s->ended || !s->started;
	uv_mutex_unlock(&s->lock);
	return ended;
}

void store_close_handle(struct store *s)
{
	if (s && s->started) {
		uv_thread_join(&s->thread);
		s->started = false;
	}
	if (s && s->handle_open) {
		uv_close((uv_handle_t *)&s->async, NULL);
		s->handle_open = false;
	}
}

/* ---- life */

static int prepare(struct store *s, struct ff_err *err)
{
	for (int i = 0; i < STATEMENT_COUNT; i++) {
		if (sqlite3_prepare_v3(s->base.db, sql_of[i], -1, SQLITE_PREPARE_PERSISTENT,
			    &s->statements[i], NULL) != SQLITE_OK) {
			return ff_err_set(err, FF_EDB, "the store does not take \"%.60s\": %s",
				sql_of[i], sqlite3_errmsg(s->base.db));
		}
	}
	return 0;
}

int store_open(const char *state, struct store **ret, struct ff_err *err)
{
	struct store *s = ff_xcalloc(1, sizeof *s);
	s->base.state = ff_xstrdup(state);
	s->queue_end = &s->queue;
	s->done_end = &s->done;
	uv_mutex_init(&s->lock);
	uv_cond_init(&s->wake);
	store_text_init(&s->text, s->base.state);
	struct ff_buf path = {0};
	ff_buf_addf(&path, "%s/store.db", state);
	int r = migrate_open(path.p, clock_wall(), &s->base.db, err);
	ff_buf_finish(&path);
	if (r == 0) {
		r = store_keep_init(&s->keep, &s->base, err);
	}
	if (r == 0) {
		r = store_keep_resume(&s->keep, err);
	}
	if (r == 0) {
		r = prepare(s, err);
	}
	if (r == 0) {
		measure(s);
	}
	if (r < 0) {
		store_destroy(s);
		return r;
	}
	*ret = s;
	return 0;
}

static void destroy_all(struct batch *b)
{
	while (b) {
		struct batch *next = b->next;
		batch_destroy(b);
		b = next;
	}
}

void store_destroy(struct store *s)
{
	if (!s) {
		return;
	}
	for (int i = 0; i < STATEMENT_COUNT; i++) {
		sqlite3_finalize(s->statements[i]);
	}
	sqlite3_close(s->base.db);
	store_text_finish(&s->text);
	destroy_all(s->queue);
	destroy_all(s->done);
	store_keep_finish(&s->keep);
	free(s->gone);
	uv_cond_destroy(&s->wake);
	uv_mutex_destroy(&s->lock);
	free(s->base.state);
	free(s);
}
