#include "export.h"

#include "base/json.h"
#include "base/limits.h"
#include "base/mem.h"
#include "core/row.h"

#include <stdio.h>
#include <stdlib.h>

#define DIGEST_ROOM 4096u /* bytes of its object besides the digest */

/* Keys whose values are numbers; the rest is text, `nodes` a list (feed/tell.c). */
static const char *const numbers[] = {"attempt", "exit_code", "pid", "rank", "restarts", "signal",
	"step", "world_size"};
/* Whom an exit or a sign is about: in each of its objects. */
static const char *const who[] = {"attempt", "node", "pid", "rank"};

static bool is_one_of(const char *key, const char *const *list, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		if (!strcmp(key, list[i])) {
			return true;
		}
	}
	return false;
}

static void put_value(struct ff_jw *w, const struct ff_fact_value *v)
{
	int64_t n;
	if (is_one_of(v->key, numbers, sizeof numbers / sizeof *numbers) &&
		ff_str_int(ff_str_z(v->value), &n)) {
		ff_jw_kint(w, v->key, n);
	} else if (!strcmp(v->key, "nodes")) {
		ff_jw_key(w, v->key);
		ff_jw_open(w, '[');
		for (struct ff_str s = ff_str_z(v->value); s.n;) {
			ptrdiff_t comma = ff_str_chr(s, ',', 0);
			size_t len = comma < 0 ? s.n : (size_t)comma;
			ff_jw_str(w, ff_str_n(s.p, len));
			s = ff_str_skip(s, len + 1);
		}
		ff_jw_close(w, ']');
	} else if (strcmp(v->key, "time") != 0) { /* the object's own */
		ff_jw_kstrz(w, v->key, v->value);
	}
}

static void open_object(struct ff_jw *w, struct ff_buf *out, const struct ff_run *run,
	const char *event)
{
	ff_jw_init(w, out);
	ff_jw_open(w, '{');
	ff_jw_kstrz(w, "event", event);
	ff_jw_kstrz(w, "job", run->job->facts.job);
	ff_jw_kstrz(w, "run", run->job->facts.run);
}

static void close_object(struct ff_jw *w)
{
	ff_jw_close(w, '}');
	ff_buf_addc(w->out, '\n');
}

static void put_loss(struct ff_jw *w, const struct export_loss *loss)
{
	bool complete = !loss->tailed && !loss->dropped && !loss->open;
	char text[96];
	ff_jw_key(w, "export");
	ff_jw_open(w, '{');
	ff_jw_kbool(w, "complete", complete);
	ff_jw_key(w, "missing");
	ff_jw_open(w, '[');
	if (loss->tailed) {
		(void)snprintf(text, sizeof text,
			"%zu tailed files: the text of those that are gone, and stamps of lines",
			loss->tailed);
		ff_jw_strz(w, text);
	}
	if (loss->dropped) {
		ff_jw_strz(w, "text that was dropped: what was made of it is left");
	}
	if (loss->large) {
		(void)snprintf(text, sizeof text, "the digest of %zu streams is too large",
			loss->large);
		ff_jw_strz(w, text);
	}
	if (loss->open) {
		ff_jw_strz(w, "what the run has still to say");
	}
	ff_jw_close(w, ']');
	ff_jw_close(w, '}');
}

/* The values that one object told: those of one time. */
static void put_told(struct ff_jw *w, const struct ff_control *c, const struct ff_fact_value *of)
{
	if (of->time != FF_TIME_NONE) {
		ff_jw_ktime(w, "time", of->time);
		ff_jw_kstrz(w, "clock",
			of->clock == FF_CLOCK_CAPTURED ? "node" : "collector");
	}
	for (size_t i = 0; i < c->nvalues; i++) {
		const struct ff_fact_value *v = &c->values[i];
		bool same = v->time == of->time && v->clock == of->clock;
		if (same || is_one_of(v->key, who, sizeof who / sizeof *who)) {
			put_value(w, v);
		}
	}
}

/* One object for each time at which something of it was told. */
static void put_control(struct ff_buf *out, const struct ff_run *run, const struct ff_control *c,
	const char *event, const struct export_loss *loss)
{
	struct ff_jw w;
	for (size_t i = 0; i < c->nvalues; i++) {
		const struct ff_fact_value *v = &c->values[i];
		bool again = false;
		for (size_t k = 0; k < i && !again; k++) {
			again = c->values[k].time == v->time && c->values[k].clock == v->clock;
		}
		if (again) {
			continue;
		}
		open_object(&w, out, run, event);
		if (loss && !i) {
			put_loss(&w, loss);
		}
		put_told(&w, c, v);
		close_object(&w);
	}
	if (!c->nvalues) {
		open_object(&w, out, run, event);
		if (loss) {
			put_loss(&w, loss);
		}
		close_object(&w);
	}
}

bool export_says_clock(const struct ff_run *run)
{
	const struct ff_control *c = ff_facts_control(&run->job->facts, "job@start");
	for (size_t i = 0; c && i < c->nvalues; i++) {
		if (c->values[i].time != FF_TIME_NONE && c->values[i].clock == FF_CLOCK_CAPTURED) {
			return true;
		}
	}
	return false;
}

/* The second source of a name is another stream: its sources are called by number, as the tokens of
 * their producers are nobody else's. */
static void put_name(struct ff_jw *w, const struct ff_run *run, const struct ff_stream *s)
{
	char source[32];
	ff_jw_kstrz(w, "stream", s->origin.name);
	if (s->origin.node) {
		ff_jw_kstrz(w, "node", s->origin.node);
	}
	if (s->life > 1) {
		(void)snprintf(source, sizeof source, "%u.%u", run->number, s->life);
		ff_jw_kstrz(w, "source", source);
	}
}

void export_put_head(struct ff_buf *out, const struct ff_run *run, const struct ff_stream *s)
{
	struct ff_jw w;
	ff_jw_init(&w, out);
	ff_jw_open(&w, '{');
	ff_jw_kstrz(&w, "job", run->job->facts.job);
	put_name(&w, run, s);
}

static void put_declared(struct ff_jw *w, const struct ff_origin *o, bool trust)
{
	const char *fd = ff_fd_name(o->fd);
	if (o->kind_declared) {
		ff_jw_kstrz(w, "kind", ff_stream_kind_name(o->kind));
	}
	if (o->rank != FF_UNKNOWN) {
		ff_jw_kint(w, "rank", o->rank);
	}
	if (o->local_rank != FF_UNKNOWN) {
		ff_jw_kint(w, "local_rank", o->local_rank);
	}
	if (o->attempt != FF_UNKNOWN) {
		ff_jw_kint(w, "attempt", o->attempt);
	}
	if (o->pid > 0) {
		ff_jw_kint(w, "pid", o->pid);
	}
	if (fd) {
		ff_jw_kstrz(w, "fd", fd);
	}
	if (o->filtered) {
		ff_jw_kbool(w, "filtered", true);
	}
	if (o->kind == FF_STREAM_KERNEL || o->kind == FF_STREAM_SCHEDULER) {
		ff_jw_kbool(w, "trusted", o->trusted && trust);
	}
}

/* The digests of the streams whose text may not be read again, as hexadecimal digits; of the others
 * nothing. */
static struct ff_buf *make_digests(const struct ff_run *run, struct export_loss *loss)
{
	const struct ff_job *job = run->job;
	struct ff_buf *v = ff_xcalloc(job->nstreams + 1, sizeof *v), row = {0};
	struct ff_digest d = ff_job_digest(run->job);
	for (size_t i = 0; i < job->nstreams; i++) {
		const struct ff_stream *s = job->streams[i];
		bool gone = s->origin.tailed || s->origin.joined || loss->dropped;
		if (!s->fed || !gone) {
			continue;
		}
		ff_buf_clear(&row);
		ff_row_put(s, &d, &row);
		if (row.len > FF_JSONL_LINE / 2 - DIGEST_ROOM) {
			loss->large++;
		} else {
			ff_buf_addhex(&v[i], ff_buf_str(&row));
		}
	}
	ff_buf_finish(&row);
	return v;
}

static void put_digests(struct ff_buf *out, const struct ff_run *run, struct ff_buf *v)
{
	for (size_t i = 0; i < run->job->nstreams; i++) {
		struct ff_jw w;
		if (v[i].len) {
			open_object(&w, out, run, "digest");
			put_name(&w, run, run->job->streams[i]);
			ff_jw_kstr(&w, "row", ff_buf_str(&v[i]));
			close_object(&w);
		}
		ff_buf_finish(&v[i]);
	}
	free(v);
}

void export_put_begin(
	struct ff_buf *out, const struct ff_run *run, struct export_loss *loss, bool trust)
{
	const struct ff_job *job = run->job;
	struct ff_buf *digests = make_digests(run, loss);
	const struct ff_control *start = ff_facts_control(&job->facts, "job@start");
	struct ff_jw w;
	if (start) {
		put_control(out, run, start, "job-start", loss);
	}
	for (size_t i = 0; i < job->nstreams; i++) {
		open_object(&w, out, run, "end");
		put_name(&w, run, job->streams[i]);
		if (!start && !i) {
			put_loss(&w, loss);
		}
		put_declared(&w, &job->streams[i]->origin, trust);
		ff_jw_kbool(&w, "complete", false);
		close_object(&w);
	}
	put_digests(out, run, digests);
	if (!start && !job->nstreams) { /* nothing but what ends it */
		open_object(&w, out, run, "ping");
		put_loss(&w, loss);
		close_object(&w);
	}
}

static void put_clocks(struct ff_buf *out, const struct ff_run *run)
{
	const struct ff_facts *f = &run->job->facts;
	for (size_t i = 0; i < f->nclocks; i++) {
		for (size_t k = 0; k < f->clocks[i].nsamples; k++) {
			const struct ff_clock_sample *s = &f->clocks[i].samples[k];
			struct ff_jw w;
			open_object(&w, out, run, "clock");
			ff_jw_kstrz(&w, "node", f->clocks[i].node);
			ff_jw_kint(&w, "t1", s->t1);
			ff_jw_kint(&w, "t2", s->t2);
			ff_jw_kint(&w, "t3", s->t3);
			ff_jw_kint(&w, "t4", s->t4);
			close_object(&w);
		}
	}
}

void export_put_end(struct ff_buf *out, const struct ff_run *run)
{
	const struct ff_job *job = run->job;
	const struct ff_facts *f = &job->facts;
	for (size_t i = 0; i < f->ncontrols; i++) {
		const struct ff_control *c = f->controls[i];
		bool exit = !strncmp(c->id, "exit@", 5), sign = !strncmp(c->id, "sign@", 5);
		if (exit || sign) {
			put_control(out, run, c, exit ? "exit" : "sign", NULL);
		}
	}
	put_clocks(out, run);
	for (size_t i = 0; i < job->nstreams; i++) {
		const struct ff_stream *s = job->streams[i];
		struct ff_jw w;
		open_object(&w, out, run, "end");
		put_name(&w, run, s);
		if (s->state == FF_STREAM_ENDED && s->ended_us != FF_TIME_NONE) {
			ff_jw_ktime(&w, "time", s->ended_us);
		}
		ff_jw_kbool(&w, "complete", s->state == FF_STREAM_ENDED || s->read_to_end);
		close_object(&w);
	}
	const struct ff_control *end = ff_facts_control(f, "job@end");
	if (end) {
		put_control(out, run, end, "job-end", NULL);
	}
}

/* The bytes of a text as a JSON string; those that are no UTF-8 stay. */
static void put_text(struct ff_buf *out, struct ff_str s)
{
	size_t from = 0;
	ff_buf_addc(out, '"');
	for (size_t i = 0; i < s.n; i++) {
		unsigned char c = (unsigned char)s.p[i];
		if (c >= 0x20 && c != '"' && c != '\\') {
			continue;
		}
		ff_buf_add(out, s.p + from, i - from);
		if (c < 0x20) {
			ff_buf_addf(out, "\\u%04x", c);
		} else {
			ff_buf_addc(out, '\\');
			ff_buf_addc(out, (char)c);
		}
		from = i + 1;
	}
	ff_buf_add(out, s.p + from, s.n - from);
	ff_buf_addc(out, '"');
}

void export_put_line(struct ff_buf *out, const struct export_line *l)
{
	const struct ff_tag *tag = &l->tags.tag;
	int64_t rank = tag->kind == FF_TAG_GLOBAL ? tag->value : l->rank;
	int64_t local = tag->kind == FF_TAG_LOCAL ? tag->value : FF_UNKNOWN;
	int64_t attempt = l->tags.attempt != FF_UNKNOWN ? l->tags.attempt : l->attempt;
	ff_buf_adds(out, l->head);
	if (tag->kind != FF_TAG_LOCAL && rank != FF_UNKNOWN) {
		ff_buf_addf(out, ",\"rank\":%lld", (long long)rank);
	}
	if (local != FF_UNKNOWN) {
		ff_buf_addf(out, ",\"local_rank\":%lld", (long long)local);
	}
	if (attempt != FF_UNKNOWN) {
		ff_buf_addf(out, ",\"attempt\":%lld", (long long)attempt);
	}
	if (l->us != FF_TIME_NONE && l->clock != FF_CLOCK_NONE) {
		ff_buf_addz(out, ",\"time\":\"");
		ff_usec_render(out, l->us);
		ff_buf_addz(out, l->clock == FF_CLOCK_CAPTURED ? "\",\"clock\":\"node\"" :
			l->says_clock ? "\",\"clock\":\"collector\"" : "\"");
	}
	ff_buf_addf(out, ",\"offset\":%llu,\"message\":", (unsigned long long)l->offset);
	put_text(out, l->text);
	ff_buf_addz(out, "}\n");
}
