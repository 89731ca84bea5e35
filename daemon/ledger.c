#include "ledger.h"

#include "access.h"
#include "answer.h"
#include "base/limits.h"
#include "base/mem.h"
#include "clock.h"
#include "conn.h"
#include "nodes.h"
#include "retain.h"
#include "shell/log.h"
#include "store.h"
#include "tail.h"
#include "watch.h"

#include <stdlib.h>

#define FLIGHT 2u                /* batches on their way; more is gathered meanwhile */
#define HEARD_STEP (600 * FF_SECOND) /* how old the stored time may be when a run was heard last */
#define FRAME_STEP (16u * 1024u) /* bytes of a stream between two places that are remembered */
#define HOLD_BYTES FF_QUEUE_BYTES
#define RELEASE_BYTES (FF_QUEUE_BYTES / 2)

struct ledger {
	struct daemon *d;
	uv_timer_t timer;
	bool due; /* the time came while too many batches were on their way */
	bool held;
	bool was_failing; /* as it was said in the log */
	uint64_t seq;     /* of the last batch that was sent */
	uint64_t committed;
	size_t sent_bytes, text_bytes;
	struct run_state *runs; /* dirty */
	struct stream_state *streams;
	size_t ndirty;
	struct batch_mark *marks;
	size_t nmarks, cmarks;
	struct row_hook *hooks;
	size_t nhooks, chooks;
	uint32_t *going; /* runs that go with the next batch */
	size_t ngoing, cgoing;
	struct ledger_wait *waiting;
};

static void on_timer(uv_timer_t *timer);

struct ledger *ledger_create(struct daemon *d)
{
	struct ledger *l = ff_xcalloc(1, sizeof *l);
	l->d = d;
	uv_timer_init(&d->loop, &l->timer);
	l->timer.data = l;
	return l;
}

struct daemon *ledger_daemon(struct ledger *l)
{
	return l->d;
}

void ledger_close(struct ledger *l)
{
	if (l && !uv_is_closing((uv_handle_t *)&l->timer)) {
		uv_close((uv_handle_t *)&l->timer, NULL);
	}
}

static void stream_state_destroy(struct stream_state *ss)
{
	if (ss) {
		segment_writer_finish(&ss->text);
		tail_file_destroy(ss->tail);
		free(ss->frames);
		free(ss);
	}
}

static void run_state_destroy(struct run_state *rs)
{
	if (rs) {
		ff_buf_finish(&rs->out);
		answer_short_destroy(rs->answer);
		free(rs->watched);
		free(rs);
	}
}

void ledger_destroy(struct ledger *l)
{
	if (!l) {
		return;
	}
	struct ff_run *run;
	for (size_t i = 0; (run = ff_runs_any(&l->d->runs, i)); i++) {
		for (size_t k = 0; k < run->job->nstreams; k++) {
			stream_state_destroy(run->job->streams[k]->user);
			run->job->streams[k]->user = NULL;
		}
		run_state_destroy(run->user);
		run->user = NULL;
	}
	free(l->marks);
	free(l->hooks);
	free(l->going);
	free(l);
}

struct run_state *ledger_run(struct ledger *l, struct ff_run *run)
{
	struct run_state *rs = run->user;
	if (!rs) {
		rs = ff_xcalloc(1, sizeof *rs);
		rs->run = run;
		rs->owner = ACCESS_UNOWNED;
		rs->segments = rs->committed = (struct segment_range){1, {1, 0}};
		run->user = rs;
	}
	return rs;
}

struct stream_state *ledger_stream(struct ledger *l, struct ff_run *run, struct ff_stream *s)
{
	struct stream_state *ss = s->user;
	if (!ss) {
		ss = ff_xcalloc(1, sizeof *ss);
		ss->run = ledger_run(l, run);
		ss->stream = s;
		ss->texted = s->fed;
		s->user = ss;
	}
	return ss;
}

/* ---- what is dirty */

static void plan(struct ledger *l)
{
	bool many = l->ndirty >= FF_BATCH_ROWS;
	if (l->due) {
		return;
	}
	if (!uv_is_active((uv_handle_t *)&l->timer) ||
		(many && uv_timer_get_due_in(&l->timer) > 0)) {
		uv_timer_start(&l->timer, on_timer, many ? 0 : FF_BATCH_MS, 0);
	}
}

static struct run_state *heard(struct ledger *l, struct ff_run *run)
{
	struct run_state *rs = ledger_run(l, run);
	rs->heard_us = (ff_usec)uv_now(&l->d->loop) * 1000;
	rs->heard_at = clock_wall();
	rs->changes++;
	if (run->node) {
		nodes_heard(l->d->nodes, run);
	} else {
		watch_changed(l->d->watch, rs);
	}
	return rs;
}

static void queue_run(struct ledger *l, struct run_state *rs)
{
	if (!rs->queued) {
		rs->queued = true;
		rs->next_dirty = l->runs;
		l->runs = rs;
		l->ndirty++;
	}
}

static void queue_stream(struct ledger *l, struct stream_state *ss)
{
	if (!ss->queued) {
		ss->queued = true;
		ss->next_dirty = l->streams;
		l->streams = ss;
		l->ndirty += 2; /* its row and a lane's */
	}
}

void ledger_touch(struct ledger *l, struct ff_run *run, struct ff_stream *s)
{
	struct run_state *rs = heard(l, run);
	ff_usec step = l->d->config->keep_age / 8;
	if (rs->heard_at - rs->heard_stored >= (step < HEARD_STEP ? step : HEARD_STEP)) {
		queue_run(l, rs);
	}
	queue_stream(l, ledger_stream(l, run, s));
	plan(l);
}

static void check_hold(struct ledger *l)
{
	struct store_status t;
	store_status(l->d->store, &t);
	size_t bytes = l->text_bytes + l->sent_bytes;
	bool hold = t.failing || bytes > (l->held ? RELEASE_BYTES : HOLD_BYTES);
	if (hold != l->held) {
		l->held = hold;
		daemon_hold(l->d, hold);
	}
}

void ledger_text(
	struct ledger *l, struct ff_run *run, struct ff_stream *s, const struct ff_chunk *c)
{
	struct stream_state *ss = ledger_stream(l, run, s);
	struct ff_chunk rest = *c;
	if (rest.offset < ss->texted) {
		uint64_t known = ss->texted - rest.offset;
		size_t n = known < rest.len ? (size_t)known : rest.len;
		rest.offset += n;
		rest.data += n;
		rest.len -= n;
	}
	if (rest.len) {
		size_t before = ss->text.buf.len;
		segment_writer_put(&ss->text, s->number, &rest);
		ss->texted = rest.offset + rest.len;
		l->text_bytes += ss->text.buf.len - before;
		if (!l->held && l->text_bytes + l->sent_bytes > HOLD_BYTES) {
			check_hold(l);
		}
	}
	ledger_touch(l, run, s);
}

void ledger_changed(struct ledger *l, struct ff_run *run)
{
	struct run_state *rs = heard(l, run);
	rs->scan = true;
	queue_run(l, rs);
	plan(l);
	tail_on_changed(l->d->tail, run);
}

void ledger_row(struct ledger *l, struct ff_run *run)
{
	queue_run(l, ledger_run(l, run));
	plan(l);
}

void ledger_hook(struct ledger *l, const struct row_hook *row)
{
	*FF_ARR_ADD(l->hooks, l->nhooks, l->chooks) = *row;
	plan(l);
}

void ledger_mark(struct ledger *l, uint64_t conn, uint64_t controls)
{
	*FF_ARR_ADD(l->marks, l->nmarks, l->cmarks) = (struct batch_mark){conn, controls};
	plan(l);
}

static void unqueue_run(struct ledger *l, struct run_state *rs)
{
	struct run_state **p = &l->runs;
	while (*p && *p != rs) {
		p = &(*p)->next_dirty;
	}
	if (*p) {
		*p = rs->next_dirty;
		l->ndirty--;
	}
}

static void unqueue_streams(struct ledger *l, const struct run_state *rs)
{
	for (struct stream_state **p = &l->streams; *p;) {
		struct stream_state *ss = *p;
		if (ss->run == rs) {
			*p = ss->next_dirty;
			l->ndirty -= 2;
		} else {
			p = &ss->next_dirty;
		}
	}
}

void ledger_drop_run(struct ledger *l, struct ff_run *run)
{
	struct run_state *rs = ledger_run(l, run);
	unqueue_run(l, rs);
	unqueue_streams(l, rs);
	for (size_t i = 0; i < run->job->nstreams; i++) {
		struct stream_state *ss = run->job->streams[i]->user;
		l->text_bytes -= ss ? ss->text.buf.len : 0;
		stream_state_destroy(ss);
		run->job->streams[i]->user = NULL;
	}
	run_state_destroy(rs);
	run->user = NULL;
	*FF_ARR_ADD(l->going, l->ngoing, l->cgoing) = run->number;
	plan(l);
}

/* ---- filling a batch */

/* The run's gathered text becomes bytes of the batch for its present file. */
static void close_out(struct batch *b, struct run_state *rs, uint32_t remove)
{
	if (rs->out.len || remove) {
		struct ff_str copy = {ff_arena_str(&b->arena, ff_buf_str(&rs->out)), rs->out.len};
		*FF_ARR_ADD(b->texts, b->ntexts, b->ctexts) =
			(struct batch_text){rs->run->number, rs->out_at, copy, remove};
		b->bytes += copy.n;
	}
	ff_buf_finish(&rs->out);
}

/* The next file; beyond the cap the oldest one goes. Of a node's own logs (feed/nodes.h) only what
 * a restart reads again is kept: there nothing is lost with it. */
static void roll(struct ledger *l, struct batch *b, struct run_state *rs)
{
	struct segment_range *r = &rs->segments;
	uint32_t remove = 0, most = rs->run->node ? FF_NODE_SEGMENTS : FF_SEGMENTS_MAX;
	if (r->end.number - r->first + 1 >= most) {
		remove = r->first++;
		rs->segments_dropped++;
		l->d->counts[DAEMON_COUNT_segments_dropped] += !rs->run->node;
	}
	close_out(b, rs, remove);
	r->end = (struct segment_place){r->end.number + 1, 0};
	rs->out_at = r->end;
}

/* Remembers where the text that holds `resume` begins. */
static void note_frame(struct stream_state *ss, uint64_t offset, struct segment_place place)
{
	const struct ledger_frame *last = ss->nframes ? &ss->frames[ss->nframes - 1] : NULL;
	if (!last || offset >= last->offset + FRAME_STEP) {
		*FF_ARR_ADD(ss->frames, ss->nframes, ss->cframes) =
			(struct ledger_frame){offset, place};
	}
}

static void drop_frames(struct stream_state *ss, uint64_t resume)
{
	size_t n = 0;
	while (n + 1 < ss->nframes && ss->frames[n + 1].offset <= resume) {
		n++;
	}
	if (n) {
		memmove(ss->frames, ss->frames + n, (ss->nframes - n) * sizeof *ss->frames);
		ss->nframes -= n;
	}
}

static void add_text(struct ledger *l, struct batch *b, struct stream_state *ss)
{
	struct run_state *rs = ss->run;
	struct ff_buf *text = &ss->text.buf;
	if (!text->len) {
		return;
	}
	if (!rs->out.len) {
		rs->out_at = rs->segments.end;
	}
	size_t most = rs->run->node ? FF_NODE_SEGMENT_BYTES : FF_SEGMENT_BYTES;
	if (rs->segments.end.at && rs->segments.end.at + text->len > most) {
		roll(l, b, rs);
	}
	note_frame(ss, ss->text.first, rs->segments.end);
	ff_buf_adds(&rs->out, ff_buf_str(text));
	rs->segments.end.at += text->len;
	l->text_bytes -= text->len;
	segment_writer_finish(&ss->text);
	queue_run(l, rs);
}

static void add_stream(struct ledger *l, struct batch *b, struct stream_state *ss)
{
	add_text(l, b, ss);
	struct row_stream *row = batch_add_stream(b, ss->run->run->number, ss->stream);
	drop_frames(ss, row->resume);
	row->texted = ss->texted;
	if (ss->nframes) {
		row->resume_place = ss->frames[0].place;
	}
	if (ss->tail) {
		tail_fill_row(ss->tail, row->resume, b, &row->tail);
	}
}

static void add_run(struct batch *b, struct run_state *rs)
{
	struct ff_run *run = rs->run;
	const struct ff_facts *f = &run->job->facts;
	close_out(b, rs, 0);
	batch_add_facts(b, run->number, f);
	*FF_ARR_ADD(b->runs, b->nruns, b->cruns) = (struct row_run){
		.number = run->number,
		.job = ff_arena_strdup(&b->arena, f->job),
		.run = ff_arena_strdup(&b->arena, f->run),
		.begun_us = run->begun_us,
		.ended_us = run->ended_us,
		.owner = rs->owner,
		.version = run->version,
		.verdict_hash = rs->verdict_hash,
		.controls_refused = f->controls_refused,
		.segments = rs->segments,
		.segments_dropped = rs->segments_dropped,
		.heard_us = rs->heard_at,
	};
	rs->heard_stored = rs->heard_at;
	run->dirty = false;
}

static void scan_streams(struct ledger *l, struct run_state *rs)
{
	struct ff_job *job = rs->run->job;
	for (size_t i = 0; rs->scan && i < job->nstreams; i++) {
		if (job->streams[i]->dirty) {
			queue_stream(l, ledger_stream(l, rs->run, job->streams[i]));
		}
	}
	rs->scan = false;
}

static bool is_dirty(const struct ledger *l)
{
	return l->runs || l->streams || l->nmarks || l->nhooks || l->ngoing;
}

static void send_batch(struct ledger *l)
{
	struct batch *b = batch_create(++l->seq);
	l->due = false;
	for (struct run_state *rs = l->runs; rs; rs = rs->next_dirty) {
		scan_streams(l, rs);
	}
	for (struct stream_state *ss = l->streams; ss; ss = ss->next_dirty) {
		ss->queued = false;
		if (ss->run->run->dirty) {
			queue_run(l, ss->run); /* a row of it is needed before one of its streams */
		}
		add_stream(l, b, ss);
	}
	l->streams = NULL;
	for (struct run_state *rs = l->runs; rs; rs = rs->next_dirty) {
		rs->queued = false;
		add_run(b, rs);
	}
	l->runs = NULL;
	l->ndirty = 0;
	b->marks = l->marks;
	b->nmarks = l->nmarks;
	b->cmarks = l->cmarks;
	l->marks = NULL;
	l->nmarks = l->cmarks = 0;
	b->hooks = l->hooks;
	b->nhooks = l->nhooks;
	b->chooks = l->chooks;
	l->hooks = NULL;
	l->nhooks = l->chooks = 0;
	b->going = l->going;
	b->ngoing = l->ngoing;
	b->cgoing = l->cgoing;
	l->going = NULL;
	l->ngoing = l->cgoing = 0;
	l->sent_bytes += b->bytes;
	store_submit(l->d->store, b);
}

static void on_timer(uv_timer_t *timer)
{
	struct ledger *l = timer->data;
	if (!is_dirty(l)) {
		return;
	}
	if (l->seq - l->committed >= FLIGHT) {
		l->due = true;
		return;
	}
	send_batch(l);
}

uint64_t ledger_flush(struct ledger *l)
{
	if (!is_dirty(l)) {
		return l->seq;
	}
	if (l->seq - l->committed >= FLIGHT) {
		l->due = true;
		return l->seq + 1;
	}
	send_batch(l);
	return l->seq;
}

uint64_t ledger_next(const struct ledger *l)
{
	return is_dirty(l) ? l->seq + 1 : l->seq;
}

uint64_t ledger_flush_all(struct ledger *l)
{
	struct ff_run *run;
	for (size_t i = 0; (run = ff_runs_any(&l->d->runs, i)); i++) {
		bool any = run->dirty;
		for (size_t k = 0; k < run->job->nstreams && !any; k++) {
			any = run->job->streams[k]->dirty;
		}
		if (any) {
			struct run_state *rs = ledger_run(l, run);
			rs->scan = true;
			queue_run(l, rs);
		}
	}
	return ledger_flush(l);
}

/* ---- what came back */

bool ledger_is_committed(const struct ledger *l, uint64_t seq)
{
	return l->committed >= seq;
}

void ledger_wait(struct ledger *l, struct ledger_wait *w)
{
	if (ledger_is_committed(l, w->seq)) {
		w->fn(w->ud);
		return;
	}
	w->next = l->waiting;
	l->waiting = w;
}

void ledger_forget(struct ledger *l, struct ledger_wait *w)
{
	for (struct ledger_wait **p = &l->waiting; *p; p = &(*p)->next) {
		if (*p == w) {
			*p = w->next;
			return;
		}
	}
}

static void wake(struct ledger *l)
{
	struct ledger_wait **p = &l->waiting;
	struct ledger_wait *ready = NULL;
	while (*p) {
		struct ledger_wait *w = *p;
		if (ledger_is_committed(l, w->seq)) {
			*p = w->next;
			w->next = ready;
			ready = w;
		} else {
			p = &w->next;
		}
	}
	while (ready) {
		struct ledger_wait *next = ready->next;
		ready->fn(ready->ud);
		ready = next;
	}
}

static void take(struct ledger *l, struct batch *b)
{
	for (size_t i = 0; i < b->nstreams; i++) {
		const struct row_stream *row = &b->streams[i];
		struct ff_run *run = ff_runs_number(&l->d->runs, row->run);
		if (!run) {
			continue; /* it is gone */
		}
		struct stream_state *ss = run->job->streams[row->number - 1]->user;
		/* what is sent again after a restart was stored before */
		ss->done = row->fed > ss->done ? row->fed : ss->done;
		ss->resume = row->resume;
		if (ss->conn) {
			conn_committed(ss->conn);
		}
	}
	for (size_t i = 0; i < b->nruns; i++) {
		struct ff_run *run = ff_runs_number(&l->d->runs, b->runs[i].number);
		if (run) {
			((struct run_state *)run->user)->committed = b->runs[i].segments;
		}
	}
	for (size_t i = 0; i < b->nmarks; i++) {
		conn_controls(l->d->server, b->marks[i].conn, b->marks[i].controls);
	}
	l->committed = b->seq;
	l->sent_bytes -= b->bytes;
	batch_destroy(b);
}

static void say(struct ledger *l)
{
	struct store_status t;
	store_status(l->d->store, &t);
	if (t.failing && !l->was_failing) {
		ff_log_error("store", "%s; nothing is read until it goes on, retrying each second",
			t.text);
	} else if (!t.failing && l->was_failing) {
		ff_log_info("store", "goes on after %lld s",
			(long long)((clock_wall() - t.since_us) / FF_SECOND));
	}
	l->was_failing = t.failing;
	if (t.fatal && !l->d->stopping) {
		ff_log_error("store", "%s for 30 s: the daemon ends", t.text);
		daemon_stop(l->d, 1);
	}
}

void ledger_on_store(void *ud)
{
	struct ledger *l = ud;
	for (struct batch *b = store_take_done(l->d->store); b; b = store_take_done(l->d->store)) {
		take(l, b);
	}
	uint32_t gone;
	uint64_t bytes;
	while (store_take_gone(l->d->store, &gone, &bytes)) {
		retain_on_gone(l->d->retain, gone, bytes);
	}
	if (l->d->server) { /* a start that failed has none */
		server_acks(l->d->server);
	}
	say(l);
	if (l->due && l->seq - l->committed < FLIGHT) {
		send_batch(l);
	}
	check_hold(l);
	wake(l);
}

void ledger_status(const struct ledger *l, struct ledger_status *ret)
{
	*ret = (struct ledger_status){l->text_bytes, l->sent_bytes, l->seq, l->committed, l->held};
}
