#include "feed/intake_own.h"

#include "base/limits.h"
#include "base/mask_rules.h"
#include "base/mem.h"

#include <errno.h>

static void reply(struct ff_intake *in, struct ff_buf *b)
{
	if (in->ops->reply) {
		in->ops->reply(in->ud, ff_buf_str(b));
	}
	ff_buf_finish(b);
}

void ff_intake_native_fail(struct ff_intake *in, enum ff_native_error code, const char *text)
{
	struct ff_buf b = {0};
	ff_native_error_render(&b, code, text);
	in->closed = true;
	ff_intake_count(in, in->run, FF_COUNT_protocol_errors, 1);
	reply(in, &b);
	if (in->ops->closing) {
		in->ops->closing(in->ud, ff_native_error_name(code));
	}
}

/* A data line may be a little longer than an object. */
static bool is_long_control(struct ff_intake *in, struct ff_str line)
{
	if (line.n <= FF_WIRE_CONTROL) {
		return false;
	}
	ff_intake_native_fail(in, FF_NATIVE_TOO_LONG, "a control object of more than 64 KiB");
	return true;
}

/* ---- hello */

static struct ff_origin make_origin(const struct ff_intake *in, const struct ff_native_hello *h,
				    size_t k, int kind)
{
	struct ff_origin d = {.name = h->streams[k], .node = h->node && *h->node ? h->node : NULL,
		.source = h->source, .kind_declared = kind >= 0,
		.fd = h->fds[k] ? ff_fd_parse(ff_str_z(h->fds[k])) : FF_FD_UNKNOWN,
		.rank = (int32_t)h->rank, .local_rank = (int32_t)h->local_rank,
		.attempt = (int32_t)h->attempt, .pid = h->pid};
	d.kind = kind >= 0 ? (enum ff_stream_kind)kind :
		h->rank >= 0 ? FF_STREAM_RANK : FF_STREAM_MIXED;
	d.trusted = d.kind_declared && ff_intake_trusts(in, d.kind);
	return d;
}

static bool differs(int32_t declared, int32_t said)
{
	return declared != FF_UNKNOWN && said != FF_UNKNOWN && declared != said;
}

static bool same_node(const struct ff_origin *a, const struct ff_origin *b)
{
	return a->node && b->node ? !strcmp(a->node, b->node) : a->node == b->node;
}

/* Two live sources that are one rank of one name: both are heard, and it is counted. (On one node
 * the job sees that by itself: there they are two lives of one stream.) */
static void claim(struct ff_intake *in, struct ff_stream *s)
{
	const struct ff_origin *o = &s->origin;
	struct ff_buf key = {0};
	if (o->rank == FF_UNKNOWN) {
		return;
	}
	ff_buf_addz(&key, o->name);
	ff_buf_addc(&key, '\0');
	ff_buf_addf(&key, "%d.%d", o->attempt == FF_UNKNOWN ? 0 : o->attempt, o->rank);
	const struct ff_stream *other = ff_map_put(&in->run->claims, ff_buf_str(&key), s);
	if (other && other != s && other->state == FF_STREAM_OPEN &&
	    !same_node(&other->origin, o) && strcmp(other->origin.source, o->source) != 0) {
		ff_intake_count(in, in->run, FF_COUNT_same_rank, 1);
	}
	ff_buf_finish(&key);
}

static int open_streams(struct ff_intake *in, const struct ff_native_hello *h, int kind)
{
	for (size_t k = 0; k < h->nstreams; k++) {
		struct ff_origin d = make_origin(in, h, k, kind);
		const struct ff_stream *s =
			ff_job_find_stream(in->run->job, d.node, d.name, d.source);
		if (s &&
			(differs(s->origin.rank, d.rank) ||
				differs(s->origin.attempt, d.attempt))) {
			ff_intake_native_fail(in, FF_NATIVE_RANK,
				"this source has said another rank or attempt before");
			return FF_EPROTO;
		}
		if (!ff_intake_may_open(in, in->run, &d)) {
			ff_intake_count(in, in->run, FF_COUNT_not_admitted, 1);
			ff_intake_native_fail(in, FF_NATIVE_AUTH,
				"a stream of this name and source is trusted: take another source");
			return -EACCES;
		}
	}
	for (size_t k = 0; k < h->nstreams; k++) {
		struct ff_origin d = make_origin(in, h, k, kind);
		size_t i = ff_intake_open(in, in->run, &d);
		if (i == FF_INTAKE_NOWHERE) {
			ff_intake_native_fail(in, FF_NATIVE_BUSY, "the run has too many streams");
			return FF_ELIMIT;
		}
		if (!h->plain) {
			/* what an open record needs is asked for again: it may be gone here, never
			 * there */
			in->streams[i].pos = ff_stream_resume(in->streams[i].stream);
		}
		claim(in, in->streams[i].stream);
	}
	return 0;
}

static void welcome(struct ff_intake *in)
{
	uint64_t offsets[FF_WIRE_STREAMS];
	struct ff_buf b = {0};
	for (size_t i = 0; i < in->nstreams; i++) {
		offsets[i] = in->streams[i].pos;
	}
	ff_native_welcome_render(&b, offsets, in->nstreams, FF_MAX_UNACKED);
	reply(in, &b);
}

static void tell_world(struct ff_intake *in, int64_t world)
{
	struct ff_buf b = {0};
	if (world < 0) {
		return;
	}
	ff_buf_addf(&b, "%lld", (long long)world);
	if (ff_facts_tell(&in->run->job->facts, "job@start", "world_size", ff_buf_str(&b),
			  FF_TIME_NONE, FF_CLOCK_NONE)) {
		in->run->dirty = true;
	}
	ff_buf_finish(&b);
}

/* Names are kept and shown too. They stand in the hello's document, which is ours. */
static void mask_names(const struct ff_mask_rules *mask, const struct ff_native_hello *h)
{
	for (size_t k = 0; k < h->nstreams; k++) {
		(void)ff_mask_rules_text(
			mask, (char *)h->streams[k], strlen(h->streams[k]), NULL);
	}
	if (h->node) {
		(void)ff_mask_rules_text(mask, (char *)h->node, strlen(h->node), NULL);
	}
}

static void begin(struct ff_intake *in, const struct ff_native_hello *h)
{
	mask_names(in->runs->mask, h);
	struct ff_err err = {0};
	struct ff_str run = ff_str_z(h->run);
	int kind = h->kind ? ff_stream_kind_parse(ff_str_z(h->kind)) : -1;
	if (h->kind && kind < 0) {
		ff_intake_native_fail(in, FF_NATIVE_PROTOCOL, "hello: unknown value of kind");
		return;
	}
	int r = ff_intake_resolve(in, ff_str_z(h->token), ff_str_z(h->job), h->run ? &run : NULL,
		h->source, h->live ? FF_RUN_LIVE : FF_RUN_FEED, &in->run, &err);
	if (r == -EACCES) {
		ff_intake_native_fail(
			in, FF_NATIVE_AUTH,
			"that job is another user's, or no token of this daemon's was shown");
		return;
	}
	if (r < 0) {
		ff_intake_native_fail(in, r == FF_ENAME ? FF_NATIVE_JOB_NAME : FF_NATIVE_BUSY,
				      err.text);
		return;
	}
	in->collector = h->collector;
	in->node = ff_xstrdup(h->node);
	in->rank = h->rank;
	in->attempt = h->attempt;
	in->pid = h->pid;
	if (open_streams(in, h, kind) < 0) {
		return;
	}
	tell_world(in, h->world_size);
	in->usable++;
	welcome(in);
	in->last = 0;
	if (h->plain) {
		in->dialect = FF_DIALECT_PLAIN;
	}
	ff_intake_changed(in, in->run);
}

void ff_intake_native_hello(struct ff_intake *in, struct ff_str line)
{
	struct ff_err err = {0};
	struct ff_native_hello h;
	enum ff_native_error code;
	if (is_long_control(in, line)) {
		return;
	}
	struct ff_json *doc = ff_json_parse(line, &err);
	if (!doc) {
		ff_intake_native_fail(in, FF_NATIVE_PROTOCOL, err.text);
		return;
	}
	if (ff_native_hello_parse(ff_json_root(doc), &h, &code, &err) < 0) {
		ff_intake_native_fail(in, code, err.text);
	} else {
		begin(in, &h);
	}
	ff_json_destroy(doc);
}

/* ---- lines behind it */

static void take_data(struct ff_intake *in, const struct ff_native_data *d)
{
	struct ff_stamp stamp = FF_STAMP_NONE;
	struct ff_buf text = {0};
	if (d->k >= in->nstreams) {
		ff_intake_native_fail(
			in, FF_NATIVE_PROTOCOL, "a line of a stream that no hello named");
		return;
	}
	*(in->collector ? &stamp.arrived : &stamp.captured) = d->stamp;
	ff_buf_adds(&text, d->text);
	if (d->newline) {
		ff_buf_addc(&text, '\n');
	}
	ff_intake_put(in, d->k, ff_buf_str(&text), stamp,
		      (struct ff_line_tags){FF_TAG_INIT, FF_UNKNOWN});
	ff_buf_finish(&text);
	in->usable++;
}

/* The source lost bytes before they could be sent (a forwarder's spool was full). Nothing but where
 * the next byte stands is kept of it, so a sender that comes back says it again. */
static void take_gap(struct ff_intake *in, const struct ff_json_node *doc)
{
	uint64_t offsets[FF_WIRE_STREAMS];
	bool good = ff_native_offsets_parse(doc, "offsets", in->nstreams, offsets);
	for (size_t i = 0; good && i < in->nstreams; i++) {
		good = offsets[i] >= in->streams[i].pos;
	}
	if (!good) {
		ff_intake_native_fail(in, FF_NATIVE_PROTOCOL,
			"gap: without one offset for each stream, none before what was sent");
		return;
	}
	for (size_t i = 0; i < in->nstreams; i++) {
		struct ff_buf *word = &in->held[i].word;
		if (offsets[i] > in->streams[i].pos &&
			ff_mask_rules_is_front(in->runs->mask, word->p, word->len)) {
			ff_buf_finish(word); /* half a secret is not masked */
		}
		if (offsets[i] > in->streams[i].pos) {
			ff_intake_flush(in, i);
			in->streams[i].pos = offsets[i];
		}
	}
}

static void take_end(struct ff_intake *in, const struct ff_json_node *doc)
{
	uint64_t offsets[FF_WIRE_STREAMS];
	if (!ff_native_offsets_parse(doc, "offsets", in->nstreams, offsets)) {
		ff_intake_native_fail(
			in, FF_NATIVE_PROTOCOL, "end: without one offset for each stream");
		return;
	}
	for (size_t i = 0; i < in->nstreams; i++) {
		if (in->streams[i].stream && offsets[i] != in->streams[i].pos) {
			ff_intake_native_fail(in, FF_NATIVE_PROTOCOL,
					      "end: at another offset than the lines before it");
			return;
		}
	}
	for (size_t i = 0; i < in->nstreams; i++) {
		ff_intake_end_stream(in, i, true, FF_TIME_NONE);
		in->streams[i].ended = true;
	}
	in->controls++;
}

static void take_ping(struct ff_intake *in, const struct ff_json_node *doc)
{
	struct ff_buf b = {0};
	ff_usec t1;
	if (!ff_native_times_parse(doc, 1, &t1)) {
		ff_intake_native_fail(in, FF_NATIVE_PROTOCOL, "ping: without t1");
	} else if (in->now_us != FF_TIME_NONE) {
		ff_native_pong_render(&b, t1, in->now_us, in->now_us);
		reply(in, &b);
	}
}

static void take_clock(struct ff_intake *in, const struct ff_json_node *doc)
{
	ff_usec t[4];
	if (!ff_native_times_parse(doc, 4, t)) {
		ff_intake_native_fail(in, FF_NATIVE_PROTOCOL, "clock: without t1, t2, t3, t4");
	} else if (in->node && !in->collector) {
		ff_facts_sample(&in->run->job->facts, ff_str_z(in->node),
				(struct ff_clock_sample){t[0], t[1], t[2], t[3]});
		in->run->dirty = true;
	}
}

/* job-start, job-end, exit, sign. A bad one is counted and acknowledged: a sender that repeated it
 * for ever would help nobody. */
static void take_told(struct ff_intake *in, const char *event, const struct ff_json_node *doc)
{
	struct ff_tell as = {in->collector ? FF_CLOCK_ARRIVED : FF_CLOCK_CAPTURED, in->rank,
		in->attempt, in->pid, in->node};
	int r = ff_tell_control(in->run, event, doc, &as, NULL);
	in->controls++;
	ff_intake_count(in, in->run, FF_COUNT_bad_values, r < 0);
	ff_intake_told(in, in->run, r < 0 ? "" : event, doc);
	if (r > 0) {
		ff_intake_changed(in, in->run);
	}
}

static void take_control(struct ff_intake *in, struct ff_str line)
{
	struct ff_err err = {0};
	if (is_long_control(in, line)) {
		return;
	}
	struct ff_json *doc = ff_json_parse(line, &err);
	const struct ff_json_node *root = doc ? ff_json_root(doc) : NULL;
	const char *event = root ? ff_json_string(ff_json_get(root, "event")) : NULL;
	if (!event) {
		ff_intake_native_fail(in, FF_NATIVE_PROTOCOL,
				      err.text[0] ? err.text : "an object without event");
	} else if (!strcmp(event, "hello")) {
		ff_intake_native_fail(in, FF_NATIVE_PROTOCOL, "a second hello on one connection");
	} else if (!strcmp(event, "end")) {
		take_end(in, root);
	} else if (!strcmp(event, "gap")) {
		take_gap(in, root);
	} else if (!strcmp(event, "ping")) {
		take_ping(in, root);
	} else if (!strcmp(event, "clock")) {
		take_clock(in, root);
	} else if (ff_tell_knows(event)) {
		take_told(in, event, root);
	} else { /* of a later version */
		ff_intake_count(in, in->run, FF_COUNT_unknown_keys, 1);
	}
	ff_json_destroy(doc);
}

void ff_intake_native_line(struct ff_intake *in, struct ff_str line)
{
	struct ff_native_data d;
	if (line.n && line.p[0] == '{') {
		take_control(in, line);
	} else if (ff_native_data_parse(line, &d)) {
		take_data(in, &d);
	} else {
		ff_intake_native_fail(in, FF_NATIVE_PROTOCOL,
				      "a line that is neither data nor a control object");
	}
}
