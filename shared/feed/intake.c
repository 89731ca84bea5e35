#include "feed/intake_own.h"
#include "feed/nodes.h"
#include "feed/path.h"

#include "base/arr.h"
#include "base/limits.h"
#include "base/mask_rules.h"
#include "wire/syslog.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#define FIRST_LINE_MAX (64u * 1024u) /* bytes of the line that chooses the dialect */
#define KEEP_MAX (256u * 1024u)      /* bytes of a buffer that is kept for the next line */
#define JOURNAL_FRONT "__CURSOR="
#define FRONT_MAX 14u /* bytes by which HTTP, TLS, syslog and a journal are known */

static const struct ff_line_tags no_tags = {{FF_TAG_NONE, FF_UNKNOWN}, FF_UNKNOWN};

const char *ff_dialect_name(enum ff_dialect d)
{
	static const char *const names[] = {
		[FF_DIALECT_NONE] = "none",
		[FF_DIALECT_NATIVE] = "native",
		[FF_DIALECT_JSONL] = "jsonl",
		[FF_DIALECT_RAW] = "raw",
		[FF_DIALECT_PLAIN] = "plain",
		[FF_DIALECT_SYSLOG] = "syslog",
		[FF_DIALECT_JOURNAL] = "journal",
		[FF_DIALECT_WRONG_PORT] = "wrong-port",
		[FF_DIALECT_OTLP] = "otlp",
	};
	return names[d];
}

/* ---- life */

static void copy_origin(struct ff_intake *in, const struct ff_origin *from)
{
	in->origin = *from;
	in->origin.name = ff_xstrdup(from->name);
	in->origin.node = ff_xstrdup(from->node);
	in->origin.source = ff_xstrdup(from->source ? from->source : "0");
	in->o.origin = &in->origin;
}

struct ff_intake *ff_intake_create(struct ff_runs *runs, const struct ff_intake_options *o,
				   const struct ff_intake_ops *ops, void *ud)
{
	static const struct ff_intake_ops none;
	struct ff_intake *in = ff_xcalloc(1, sizeof *in);
	struct ff_buf job = {0};
	in->runs = runs;
	in->ops = ops ? ops : &none;
	in->ud = ud;
	in->o = *o;
	in->o.default_job = ff_xstrdup(o->default_job);
	in->o.run = ff_xstrdup(o->run);
	in->o.peer = ff_xstrdup(o->peer);
	in->o.name = ff_xstrdup(o->name);
	if (o->origin) {
		copy_origin(in, o->origin);
		in->dialect = o->guess ? FF_DIALECT_NONE : FF_DIALECT_RAW;
	}
	ff_buf_addf(&job, "raw-%s", o->peer ? o->peer : "unknown");
	in->peer_job = ff_buf_take(&job);
	in->now_us = FF_TIME_NONE;
	in->last = FF_INTAKE_NOWHERE;
	in->rank = in->attempt = in->pid = FF_UNKNOWN;
	return in;
}

void ff_intake_destroy(struct ff_intake *in)
{
	if (!in) {
		return;
	}
	free((char *)in->o.default_job);
	free((char *)in->o.run);
	free((char *)in->o.peer);
	free((char *)in->o.name);
	if (in->o.origin) {
		free((char *)in->origin.name);
		free((char *)in->origin.node);
		free((char *)in->origin.source);
	}
	for (size_t i = 0; i < in->nstreams; i++) {
		ff_buf_finish(&in->held[i].word);
	}
	free(in->streams);
	free(in->held);
	free(in->peer_job);
	free(in->node);
	if (in->o.room) {
		in->o.room->used -= in->charged;
	}
	ff_map_finish(&in->by_key);
	ff_map_finish(&in->sources);
	ff_buf_finish(&in->key);
	ff_buf_finish(&in->last_key);
	ff_buf_finish(&in->pending);
	ff_buf_finish(&in->work);
	ff_jsonl_finish(&in->obj);
	if (in->journal) {
		ff_journal_finish(in->journal);
		free(in->journal);
	}
	free(in);
}

/* ---- what all dialects need */

void ff_intake_count(struct ff_intake *in, struct ff_run *run, enum ff_count c, uint64_t n)
{
	(run ? run->job->counts : in->runs->counts)[c] += n;
}

void ff_intake_changed(struct ff_intake *in, struct ff_run *run)
{
	if (in->ops->changed) {
		in->ops->changed(in->ud, run);
	}
}

void ff_intake_told(struct ff_intake *in, struct ff_run *run, const char *event,
	const struct ff_json_node *doc)
{
	int64_t uid;
	if (!strcmp(event, "job-end") && run->ended_us == FF_TIME_NONE) {
		run->ended_us = in->now_us;
		run->dirty = true;
	}
	bool names = in->ops->named && ff_tell_owner(event, doc, &uid);
	if (names && !in->ops->named(in->ud, run, uid)) {
		ff_intake_count(in, run, FF_COUNT_bad_values, 1);
	}
}

struct ff_stamp ff_intake_received(const struct ff_intake *in)
{
	struct ff_stamp s = FF_STAMP_NONE;
	s.arrived = in->o.offline ? FF_TIME_NONE : in->now_us;
	return s;
}

static bool may_begin(struct ff_intake *in, struct ff_str token, struct ff_str job)
{
	char id[FF_JOB_ID_MAX + 1];
	bool again = in->mine && !token.n && ff_str_eqz(job, in->mine->job->facts.job);
	(void)snprintf(id, sizeof id, "%.*s", FF_STR_ARG(job)); /* a longer one is refused anyway */
	return !in->ops->admit || again || in->ops->admit(in->ud, token, id);
}

int ff_intake_resolve(struct ff_intake *in, struct ff_str token, struct ff_str job,
	const struct ff_str *name, const char *source, enum ff_run_cause cause,
	struct ff_run **ret, struct ff_err *err)
{
	struct ff_run *run = NULL;
	int r = may_begin(in, token, job) ? 0 : -EACCES;
	if (r == 0) {
		r = ff_runs_resolve_for(in->runs, in->o.trusted ? FF_RUNS_ANYBODY : in->o.uid, job,
			name, source, cause, in->now_us, &run, err);
	}
	if (r >= 0 && run != in->mine && in->ops->may_feed && !in->ops->may_feed(in->ud, run)) {
		r = -EACCES;
	}
	if (r < 0) {
		ff_intake_count(in, NULL, FF_COUNT_not_admitted, r == -EACCES);
		return r;
	}
	in->mine = run;
	*ret = run;
	return r;
}

struct ff_run *ff_intake_node(struct ff_intake *in, struct ff_str node)
{
	struct ff_run *run = NULL;
	if (!may_begin(in, (struct ff_str){0}, FF_STR(""))) {
		ff_intake_count(in, NULL, FF_COUNT_not_admitted, 1);
		return NULL;
	}
	bool trusted = in->o.trusted || in->o.offline;
	int r = ff_nodes_resolve(in->runs, node, trusted ? FF_NODE_TRUSTED : in->o.uid, in->now_us,
		&run, NULL);
	ff_intake_count(in, NULL, FF_COUNT_bad_names, r == FF_ENAME);
	return run;
}

void ff_intake_own(struct ff_intake *in, int64_t uid)
{
	in->o.uid = uid;
}

void ff_intake_trust(struct ff_intake *in)
{
	in->o.trusted = true;
}

bool ff_intake_trusts(const struct ff_intake *in, enum ff_stream_kind kind)
{
	return (in->o.trusted || in->o.offline) &&
		(kind == FF_STREAM_KERNEL || kind == FF_STREAM_SCHEDULER);
}

/* Offline all is one job unless the input names several. */
const char *ff_intake_default_job(const struct ff_intake *in)
{
	if (in->o.offline && in->last_run && !in->last_run->node) {
		return in->last_run->job->facts.job;
	}
	return in->o.default_job ? in->o.default_job : in->peer_job;
}

static void add_part(struct ff_buf *b, struct ff_str s)
{
	ff_buf_addf(b, "%zu:", s.n);
	ff_buf_adds(b, s);
}

/* Fills in->key; true if it is that of the stream that came last. */
static bool make_key(struct ff_intake *in, const struct ff_run *run, struct ff_str node,
		     struct ff_str name, struct ff_str source)
{
	ff_buf_clear(&in->key);
	ff_buf_addf(&in->key, "%u ", run->number);
	add_part(&in->key, node);
	add_part(&in->key, name);
	add_part(&in->key, source);
	return in->last != FF_INTAKE_NOWHERE &&
		ff_str_eq(ff_buf_str(&in->key), ff_buf_str(&in->last_key));
}

static void set_last(struct ff_intake *in, size_t i)
{
	in->last = i;
	in->last_run = in->streams[i].run;
	ff_buf_clear(&in->last_key);
	ff_buf_adds(&in->last_key, ff_buf_str(&in->key));
}

size_t ff_intake_find(struct ff_intake *in, const struct ff_run *run, struct ff_str node,
		      struct ff_str name, const char *source)
{
	if (make_key(in, run, node, name, ff_str_z(source))) {
		return in->last;
	}
	uintptr_t i = (uintptr_t)ff_map_get(&in->by_key, ff_buf_str(&in->key));
	if (!i) {
		return FF_INTAKE_NOWHERE;
	}
	set_last(in, i - 1);
	return i - 1;
}

static bool is_acked(const struct ff_stream *s)
{
	return strcmp(s->origin.source, "0") != 0;
}

static void note_source(struct ff_intake *in, const struct ff_stream *s)
{
	struct ff_str source = ff_str_z(s->origin.source);
	if (is_acked(s)) {
		uintptr_t known = (uintptr_t)ff_map_get(&in->sources, source);
		(void)ff_map_put(&in->sources, source, (void *)(known ? 2 : (uintptr_t)1));
	}
}

/* torchrun's tree in a stream's name tells the attempt where nobody declares it
 * (SOURCES.md torch-elastic-logs). */
static int32_t attempt_of(const struct ff_origin *origin)
{
	struct ff_path_identity id;
	if (origin->attempt != FF_UNKNOWN) {
		return origin->attempt;
	}
	ff_path_identify(ff_str_z(origin->name), &id);
	int32_t attempt = id.has_tree ? id.attempt : FF_UNKNOWN;
	ff_path_identity_finish(&id);
	return attempt;
}

bool ff_intake_may_open(
	const struct ff_intake *in, const struct ff_run *run, const struct ff_origin *origin)
{
	return ff_job_may_feed(run->job, origin, in->o.trusted || in->o.offline);
}

size_t ff_intake_open(struct ff_intake *in, struct ff_run *run, const struct ff_origin *origin)
{
	size_t i = ff_intake_find(in, run, ff_str_z(origin->node), ff_str_z(origin->name),
				  origin->source);
	if (i != FF_INTAKE_NOWHERE) {
		return i;
	}
	struct ff_origin full = *origin;
	full.attempt = attempt_of(origin);
	if (!ff_intake_may_open(in, run, origin)) {
		ff_intake_count(in, run, FF_COUNT_not_admitted, 1);
		return FF_INTAKE_NOWHERE;
	}
	struct ff_stream *s = ff_job_stream(run->job, &full);
	if (!s) {
		return FF_INTAKE_NOWHERE;
	}
	if (s->state == FF_STREAM_VANISHED) {
		ff_stream_reopen(s);
	}
	i = in->nstreams;
	FF_ARR_ROOM(in->held, i, in->cheld);
	in->held[i] = (struct ff_intake_held){.stamp = FF_STAMP_NONE, .tags = no_tags};
	*FF_ARR_ADD(in->streams, in->nstreams, in->cstreams) =
		(struct ff_intake_stream){.run = run, .stream = s, .pos = s->fed};
	(void)ff_map_put(&in->by_key, ff_buf_str(&in->key), (void *)(uintptr_t)(i + 1));
	set_last(in, i);
	note_source(in, s);
	if (in->ops->opened) {
		in->ops->opened(in->ud, run, s);
	}
	ff_intake_changed(in, run);
	return i;
}

/* ---- text */

/* The part of the chunk that is new goes out line by line. */
static void give_text(struct ff_intake *in, const struct ff_intake_stream *st,
		      const struct ff_chunk *c, uint64_t fed)
{
	size_t at = fed > c->offset ? (size_t)(fed - c->offset) : 0;
	if (!in->ops->text) {
		return;
	}
	while (at < c->len) {
		const char *lf = memchr(c->data + at, '\n', c->len - at);
		size_t end = lf ? (size_t)(lf - c->data) + 1 : c->len;
		struct ff_chunk part = *c;
		part.offset = c->offset + at;
		part.data = c->data + at;
		part.len = end - at;
		in->ops->text(in->ud, st->run, st->stream, &part);
		at = end;
	}
}

static void feed_chunk(struct ff_intake *in, struct ff_intake_stream *st, uint64_t offset,
		       struct ff_str data, struct ff_stamp stamp, struct ff_line_tags tags)
{
	struct ff_stream *s = st->stream;
	uint64_t fed = s->fed;
	struct ff_chunk c = {offset, data.p, data.n, stamp, tags};
	if (!data.n) {
		return;
	}
	if (s->state != FF_STREAM_OPEN && offset + data.n > fed) {
		ff_stream_reopen(s);
		st->ended = false; /* more came behind its end: the close ends it again */
	}
	ff_job_feed(st->run->job, s, &c);
	give_text(in, st, &c, fed < offset + data.n ? fed : offset + data.n);
}

static void mask(struct ff_intake *in, struct ff_run *run, char *p, size_t n)
{
	unsigned limited = 0;
	size_t masked = ff_mask_rules_text(in->runs->mask, p, n, &limited);
	if (masked) {
		ff_intake_count(in, run, FF_COUNT_secrets, masked);
	}
	if (limited) {
		ff_intake_count(in, run, FF_COUNT_match_limit, limited);
	}
}

void ff_intake_put(struct ff_intake *in, size_t i, struct ff_str data, struct ff_stamp stamp,
		   struct ff_line_tags tags)
{
	struct ff_intake_stream *st = &in->streams[i];
	struct ff_intake_held *h = &in->held[i];
	size_t old = h->word.len;
	uint64_t at = st->pos - old;
	if (!st->stream || !data.n) {
		return;
	}
	st->pos += data.n;
	ff_buf_clear(&in->work);
	ff_buf_adds(&in->work, ff_buf_str(&h->word));
	ff_buf_adds(&in->work, data);
	char *p = in->work.p;
	size_t all = in->work.len, keep = ff_mask_rules_open(in->runs->mask, p, all);
	size_t out = all - keep;
	size_t first = out < old ? out : old; /* the kept bytes' own stamp and tags hold for them */
	mask(in, st->run, p, out);
	feed_chunk(in, st, at, ff_str_n(p, first), h->stamp, h->tags);
	feed_chunk(in, st, at + first, ff_str_n(p + first, out - first), stamp, tags);
	ff_buf_clear(&h->word);
	ff_buf_add(&h->word, p + out, keep);
	if (keep <= data.n) {
		h->stamp = stamp;
		h->tags = tags;
	}
}

void ff_intake_flush(struct ff_intake *in, size_t i)
{
	struct ff_intake_stream *st = &in->streams[i];
	struct ff_intake_held *h = &in->held[i];
	if (!h->word.len || !st->stream) {
		return;
	}
	if (in->dialect == FF_DIALECT_RAW || in->dialect == FF_DIALECT_PLAIN) {
		st->pos = st->stream->fed + h->word.len; /* as in put_raw: appended */
	}
	mask(in, st->run, h->word.p, h->word.len);
	feed_chunk(in, st, st->pos - h->word.len, ff_buf_str(&h->word), h->stamp, h->tags);
	ff_buf_clear(&h->word);
}

void ff_intake_end_stream(struct ff_intake *in, size_t i, bool complete, ff_usec at_us)
{
	struct ff_intake_stream *st = &in->streams[i];
	if (!st->stream) {
		return;
	}
	struct ff_buf *word = &in->held[i].word;
	if (!complete && ff_mask_rules_is_front(in->runs->mask, word->p, word->len)) {
		ff_buf_finish(word); /* half a secret is not masked: its sender has it still */
	}
	ff_intake_flush(in, i);
	ff_job_end_stream(st->run->job, st->stream, complete, at_us);
	ff_intake_changed(in, st->run);
}

/* ---- raw text */

size_t ff_intake_open_raw(struct ff_intake *in)
{
	struct ff_run *run;
	struct ff_str name = ff_str_z(in->o.run);
	struct ff_origin origin = {.name = in->o.name ? in->o.name : "-", .source = "0",
		.kind = FF_STREAM_MIXED, .rank = FF_UNKNOWN, .local_rank = FF_UNKNOWN,
		.attempt = FF_UNKNOWN, .pid = FF_UNKNOWN};
	if (in->o.origin) {
		origin = in->origin;
	}
	int r = ff_intake_resolve(in, FF_STR(""), ff_str_z(ff_intake_default_job(in)),
		in->o.run ? &name : NULL, origin.source, in->o.live ? FF_RUN_LIVE : FF_RUN_FEED,
		&run, NULL);
	if (r < 0) {
		ff_intake_count(in, NULL, FF_COUNT_bad_names, r == FF_ENAME);
		return FF_INTAKE_NOWHERE;
	}
	return ff_intake_open(in, run, &origin);
}

static void put_raw(struct ff_intake *in, struct ff_str data)
{
	size_t i = in->last;
	if (i == FF_INTAKE_NOWHERE) {
		i = ff_intake_open_raw(in);
	}
	if (i == FF_INTAKE_NOWHERE || !data.n) {
		return;
	}
	struct ff_intake_stream *st = &in->streams[i];
	if (st->stream) { /* others may feed it too: what comes is appended */
		st->pos = st->stream->fed + in->held[i].word.len;
	}
	for (size_t k = 0; !in->usable && k < data.n; k++) {
		in->usable += !strchr(" \t\r\n", data.p[k]);
	}
	ff_intake_put(in, i, data, ff_intake_received(in), no_tags);
}

/* ---- the first line chooses the dialect */

static bool has_front(struct ff_str s, const char *front)
{
	size_t n = strlen(front);
	return s.n >= n && !memcmp(s.p, front, n);
}

/* Could more bytes make it one of these? */
static bool is_front_of(struct ff_str s, const char *whole)
{
	return s.n < strlen(whole) && !memcmp(s.p, whole, s.n);
}

/* HTTP/1, HTTP/2 without TLS (as OTLP over gRPC begins; RFC 9113, 3.4), a TLS handshake. */
static const char *const wrong_fronts[] = {"GET ", "POST ", "PRI * HTTP/2", "\x16\x03"};

static bool is_wrong_port(struct ff_str s)
{
	bool is = false;
	for (size_t i = 0; i < sizeof wrong_fronts / sizeof *wrong_fronts; i++) {
		is = is || has_front(s, wrong_fronts[i]);
	}
	return is;
}

static bool may_be_wrong_port(struct ff_str s)
{
	bool may = false;
	for (size_t i = 0; i < sizeof wrong_fronts / sizeof *wrong_fronts; i++) {
		may = may || is_front_of(s, wrong_fronts[i]);
	}
	return may;
}

static void refuse_port(struct ff_intake *in)
{
	in->dialect = FF_DIALECT_WRONG_PORT;
	in->closed = true;
	ff_intake_count(in, NULL, FF_COUNT_wrong_port, 1);
	if (in->ops->reply) {
		in->ops->reply(in->ud, FF_STR("firstfault: this port takes log lines; "
					      "it speaks neither HTTP nor TLS\n"));
	}
	if (in->ops->closing) {
		in->ops->closing(in->ud, "wrong-port");
	}
}

/* Blanks and a byte order mark at the front of a first line. */
static size_t front_blank(struct ff_str s)
{
	size_t n = has_front(s, "\xef\xbb\xbf") ? 3 : 0;
	while (n < s.n && (s.p[n] == ' ' || s.p[n] == '\t')) {
		n++;
	}
	return n;
}

static enum ff_dialect judge_line(struct ff_intake *in, struct ff_str line)
{
	const struct ff_jsonl *o = &in->obj;
	if (!in->o.offline && ff_journal_front(line) != FF_JOURNAL_NONE) {
		return FF_DIALECT_JOURNAL;
	}
	if (ff_jsonl_parse(&in->obj, line) < 0) {
		return FF_DIALECT_RAW;
	}
	if (o->event == FF_JSONL_HELLO) {
		return FF_DIALECT_NATIVE;
	}
	/* a listener hears everything: there only an object that names its job, or is a node's
	 * (kernel, scheduler), is taken for ours */
	int kind = o->kind.p ? ff_stream_kind_parse(o->kind) : -1;
	bool node = kind == FF_STREAM_KERNEL || kind == FF_STREAM_SCHEDULER;
	bool speaks = ff_jsonl_event_name(o->event) ||
		(o->has_text && (o->event == FF_JSONL_NONE || o->job.p));
	bool named = o->job.p || node || in->o.offline;
	return speaks && named ? FF_DIALECT_JSONL : FF_DIALECT_RAW;
}

static size_t first_line_max(const struct ff_intake *in)
{
	return in->o.offline ? FF_JSONL_LINE : FIRST_LINE_MAX;
}

/* FF_DIALECT_NONE: more bytes are needed. final: none will come in time. */
static enum ff_dialect choose(struct ff_intake *in, bool final)
{
	struct ff_str s = ff_buf_str(&in->pending);
	size_t max = first_line_max(in);
	size_t blank = front_blank(s);
	if (!in->o.offline && is_wrong_port(s)) {
		return FF_DIALECT_WRONG_PORT;
	}
	enum ff_syslog_frame front = in->o.offline ? FF_SYSLOG_NONE : ff_syslog_front(s);
	if (front == FF_SYSLOG_WHOLE) {
		return FF_DIALECT_SYSLOG;
	}
	if (!in->o.offline && has_front(s, JOURNAL_FRONT)) {
		return FF_DIALECT_JOURNAL;
	}
	if (!final &&
		(front == FF_SYSLOG_MORE || blank == s.n ||
			(!in->o.offline &&
				(may_be_wrong_port(s) || is_front_of(s, JOURNAL_FRONT))))) {
		return s.n < FIRST_LINE_MAX ? FF_DIALECT_NONE : FF_DIALECT_RAW;
	}
	if (blank == s.n || s.p[blank] != '{') {
		return FF_DIALECT_RAW;
	}
	const char *lf = memchr(s.p, '\n', s.n);
	if (!lf && (!final || !in->o.offline)) {
		return !final && s.n <= max ? FF_DIALECT_NONE : FF_DIALECT_RAW;
	}
	size_t end = lf ? (size_t)(lf - s.p) : s.n;
	return judge_line(in, ff_str_n(s.p + blank, end - blank));
}

/* ---- framing by LF */

static size_t line_max(const struct ff_intake *in)
{
	return in->dialect == FF_DIALECT_NATIVE ? FF_WIRE_LINE : FF_JSONL_LINE;
}

static void take_line(struct ff_intake *in, struct ff_str line)
{
	if (in->dialect == FF_DIALECT_JSONL) {
		ff_intake_jsonl_line(in, line);
	} else if (!in->run) {
		ff_intake_native_hello(in, line);
	} else {
		ff_intake_native_line(in, line);
	}
}

static void too_long(struct ff_intake *in)
{
	if (in->dialect == FF_DIALECT_NATIVE) {
		ff_intake_native_fail(in, FF_NATIVE_TOO_LONG, "a line of more than 64 KiB");
		return;
	}
	in->skipping = true;
	ff_intake_count(in, in->last_run, FF_COUNT_lines_cut, 1);
	ff_buf_finish(&in->pending);
}

/* A piece of a line, up to and without the LF that ends it. */
static void take_piece(struct ff_intake *in, struct ff_str piece, bool ends)
{
	if (!in->skipping && in->pending.len + piece.n > line_max(in)) {
		too_long(in);
	}
	if (!in->skipping && !in->closed && !ends && !ff_intake_has_room(in, piece.n)) {
		in->skipping = true;
		ff_buf_finish(&in->pending);
	}
	if (in->closed || in->skipping) {
		in->skipping = in->skipping && !ends;
		return;
	}
	if (!ends) {
		ff_buf_adds(&in->pending, piece);
		return;
	}
	if (!in->pending.len) {
		take_line(in, piece);
		return;
	}
	struct ff_buf whole = in->pending;
	in->pending = (struct ff_buf){0};
	ff_buf_adds(&whole, piece);
	take_line(in, ff_buf_str(&whole));
	ff_buf_clear(&whole);
	ff_buf_finish(&in->pending);
	in->pending = whole; /* its memory serves the next line */
	if (in->pending.cap > FF_WIRE_LINE * 2) {
		ff_buf_finish(&in->pending);
	}
}

static bool is_text(const struct ff_intake *in)
{
	return in->dialect == FF_DIALECT_RAW || in->dialect == FF_DIALECT_PLAIN;
}

bool ff_intake_has_room(struct ff_intake *in, size_t n)
{
	const struct ff_intake_room *room = in->o.room;
	size_t all = in->pending.len + n;
	bool has = !room || all <= FF_UNFINISHED_FREE ||
		room->used - in->charged + all <= FF_UNFINISHED_ALL;
	ff_intake_count(in, in->last_run, FF_COUNT_lines_no_room, !has);
	return has;
}

/* After each piece: what is held is charged, and what one long line needed is given back. */
static void settle_memory(struct ff_intake *in)
{
	size_t held = in->pending.len > FF_UNFINISHED_FREE ? in->pending.len : 0;
	if (in->o.room) {
		in->o.room->used += held - in->charged;
		in->charged = held;
	}
	if (in->obj.mem.cap > KEEP_MAX || in->obj.join.cap > KEEP_MAX) {
		ff_jsonl_finish(&in->obj);
	}
	if (in->work.cap > KEEP_MAX) {
		ff_buf_finish(&in->work);
	}
}

static void take_bytes(struct ff_intake *in, struct ff_str s)
{
	if (in->dialect == FF_DIALECT_SYSLOG) {
		ff_intake_syslog_bytes(in, s);
		return;
	}
	if (in->dialect == FF_DIALECT_JOURNAL) {
		ff_intake_journal_bytes(in, s);
		return;
	}
	while (s.n && !in->closed && !is_text(in)) {
		const char *lf = memchr(s.p, '\n', s.n);
		size_t n = lf ? (size_t)(lf - s.p) : s.n;
		take_piece(in, ff_str_n(s.p, n), lf);
		s = ff_str_skip(s, n + (lf != NULL));
	}
	if (s.n && !in->closed) { /* a hello may have said that the rest is plain text */
		put_raw(in, s);
	}
}

static void settle(struct ff_intake *in, bool final)
{
	enum ff_dialect d = choose(in, final);
	if (d == FF_DIALECT_NONE) {
		return;
	}
	if (d == FF_DIALECT_WRONG_PORT) {
		refuse_port(in);
		return;
	}
	struct ff_buf first = in->pending;
	in->pending = (struct ff_buf){0};
	in->dialect = d;
	bool whole = d == FF_DIALECT_RAW || d == FF_DIALECT_SYSLOG;
	size_t skip = whole ? 0 : front_blank(ff_buf_str(&first));
	take_bytes(in, ff_str_skip(ff_buf_str(&first), skip));
	ff_buf_finish(&first);
}

void ff_intake_feed(struct ff_intake *in, const char *p, size_t n, ff_usec now_us)
{
	in->now_us = now_us;
	if (in->closed) {
		return;
	}
	if (in->dialect != FF_DIALECT_NONE) {
		if (!n && in->o.origin) {
			put_raw(in, FF_STR(""));
		}
		take_bytes(in, ff_str_n(p, n));
		settle_memory(in);
		return;
	}
	/* The front decides, or the first line's end, or its length: what lies between is not
	 * looked at, however it is cut. */
	size_t before = in->pending.len;
	ff_buf_add(&in->pending, p, n);
	if (before < FRONT_MAX || in->pending.len > first_line_max(in) ||
		(n && memchr(p, '\n', n))) {
		settle(in, false);
	}
	settle_memory(in);
}

void ff_intake_settle(struct ff_intake *in, ff_usec now_us)
{
	in->now_us = now_us;
	if (in->dialect == FF_DIALECT_NONE && in->pending.len && !in->closed) {
		settle(in, true);
	}
}

void ff_intake_end(struct ff_intake *in, ff_usec now_us)
{
	ff_intake_settle(in, now_us);
	if (in->o.origin && (in->dialect == FF_DIALECT_NONE || in->dialect == FF_DIALECT_RAW)) {
		put_raw(in, FF_STR("")); /* an empty file is a stream too */
	}
	if (in->dialect == FF_DIALECT_SYSLOG) {
		ff_intake_syslog_end(in);
	}
	ff_intake_journal_end(in);
	if (in->dialect == FF_DIALECT_JSONL && in->pending.len) {
		take_piece(in, FF_STR(""), true);
	}
	bool complete = !in->cut && (in->dialect != FF_DIALECT_NATIVE || in->o.offline);
	for (size_t i = 0; i < in->nstreams; i++) {
		const struct ff_intake_stream *st = &in->streams[i];
		/* one that ended before, and of which nothing more came, stays so */
		bool stays = st->ended || (st->stream && st->stream->state == FF_STREAM_ENDED &&
			!in->held[i].word.len);
		if (!stays) {
			ff_intake_end_stream(in, i, complete, FF_TIME_NONE);
		}
	}
	in->closed = true;
}

void ff_intake_cut(struct ff_intake *in)
{
	in->cut = true;
}

/* ---- what the owner asks */

enum ff_dialect ff_intake_dialect(const struct ff_intake *in)
{
	return in->dialect;
}

const struct ff_intake_stream *ff_intake_streams(const struct ff_intake *in, size_t *ret_n)
{
	*ret_n = in->nstreams;
	return in->streams;
}

void ff_intake_forget(struct ff_intake *in, const struct ff_stream *s)
{
	for (size_t i = 0; i < in->nstreams; i++) {
		if (in->streams[i].stream == s) {
			/* what was held back stays unfed: the sender that took over has it still */
			ff_buf_finish(&in->held[i].word);
			in->streams[i].stream = NULL;
		}
	}
}

void ff_intake_forget_run(struct ff_intake *in, const struct ff_run *run)
{
	for (size_t i = 0; i < in->nstreams; i++) {
		if (in->streams[i].run == run) {
			ff_buf_finish(&in->held[i].word);
			in->streams[i].run = NULL;
			in->streams[i].stream = NULL;
			if (in->last == i) {
				in->last = FF_INTAKE_NOWHERE;
			}
		}
	}
	in->last_run = in->last_run == run ? NULL : in->last_run;
	in->named_run = in->named_run == run ? NULL : in->named_run;
	in->mine = in->mine == run ? NULL : in->mine;
	if (in->run == run) {
		in->run = NULL;
		ff_intake_native_fail(in, FF_NATIVE_JOB_NAME,
			"this run was forgotten; another hello begins it anew");
	}
}

uint64_t ff_intake_controls(const struct ff_intake *in)
{
	return in->controls;
}

uint64_t ff_intake_usable(const struct ff_intake *in)
{
	return in->usable;
}

void ff_intake_ack(const struct ff_intake *in, const uint64_t *resume, const uint64_t *done,
		   uint64_t controls, struct ff_buf *out)
{
	if (in->dialect == FF_DIALECT_NATIVE) {
		ff_native_ack_render(out, resume, done, in->nstreams, controls);
		return;
	}
	for (size_t i = 0; in->dialect == FF_DIALECT_JSONL && i < in->nstreams; i++) {
		const struct ff_stream *s = in->streams[i].stream;
		if (s && is_acked(s) && resume[i] != FF_INTAKE_SAID) {
			struct ff_str source = ff_str_z(s->origin.source);
			bool several = (uintptr_t)ff_map_get(&in->sources, source) == 2;
			struct ff_jw w;
			ff_jw_init(&w, out);
			ff_jw_open(&w, '{');
			ff_jw_kstrz(&w, "event", "ack");
			ff_jw_kstr(&w, "source", source);
			if (several) {
				ff_jw_kstrz(&w, "stream", s->origin.name);
			}
			ff_jw_kint(&w, "offset", (int64_t)resume[i]);
			ff_jw_close(&w, '}');
			ff_buf_addc(out, '\n');
		}
	}
}

int ff_intake_control(struct ff_run *run, const char *name, const struct ff_json_node *doc,
		      struct ff_err *err)
{
	struct ff_tell as = FF_TELL_INIT;
	int r = ff_tell_control(run, name, doc, &as, err);
	return r < 0 ? r : 0;
}
