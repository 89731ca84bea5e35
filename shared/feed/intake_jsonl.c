#include "feed/intake_own.h"

#include "base/limits.h"
#include "base/mask_rules.h"
#include "core/row.h"

#include <stdio.h>

/* Bytes that come from a key into a C string: cut at its size, controls replaced, masked. */
static const char *copy_name(
	const struct ff_mask_rules *mask, char *to, size_t size, struct ff_str s)
{
	size_t n = s.n < size - 1 ? s.n : size - 1;
	for (size_t i = 0; i < n; i++) {
		unsigned char c = (unsigned char)s.p[i];
		to[i] = c < 0x20 || c == 0x7f ? '_' : (char)c;
	}
	to[n] = '\0';
	(void)ff_mask_rules_text(mask, to, n, NULL);
	return to;
}

struct names {
	char node[FF_JOB_ID_MAX + 1], name[FF_NAME_MAX + 1], source[FF_JOB_ID_MAX + 1];
};

/* A file's own name where the object has none: what two containers or two loggers wrote are two
 * streams. A container's file is two, one for each descriptor, because either may be cut in
 * mid-line. False: the intake reads no file, or the object names its stream. */
static bool read_file_names(
	const struct ff_intake *in, const struct ff_jsonl *o, struct names *ret)
{
	const struct ff_origin *file = in->o.origin;
	bool named = o->rank >= 0 || (o->stream.n && !o->container);
	if (named || !file || !strcmp(file->name, "-")) {
		return false;
	}
	if (!ret->node[0]) {
		(void)copy_name(in->runs->mask, ret->node, sizeof ret->node, ff_str_z(file->node));
	}
	(void)snprintf(ret->name, sizeof ret->name, "%.*s%s%.*s",
		(int)sizeof ret->name - 8, file->name, o->container ? "/" : "",
		FF_STR_ARG(o->container ? o->stream : FF_STR("")));
	return true;
}

static void read_names(const struct ff_intake *in, const struct ff_jsonl *o, struct names *ret)
{
	(void)copy_name(in->runs->mask, ret->node, sizeof ret->node, o->node);
	/* a sender finds its acknowledgements by its source: no pattern of ours may fit it */
	(void)copy_name(
		NULL, ret->source, sizeof ret->source, o->source.n ? o->source : FF_STR("0"));
	if (read_file_names(in, o, ret)) {
		return;
	}
	if (o->stream.n) {
		(void)copy_name(in->runs->mask, ret->name, sizeof ret->name, o->stream);
	} else if (o->rank >= 0) {
		(void)snprintf(ret->name, sizeof ret->name, "rank-%lld", (long long)o->rank);
	} else {
		(void)snprintf(ret->name, sizeof ret->name, "-");
	}
}

/* The run that the object belongs to; NULL when there is no room for it. */
static struct ff_run *find_run(struct ff_intake *in, const struct names *names,
			       enum ff_run_cause cause)
{
	const struct ff_jsonl *o = &in->obj;
	struct ff_run *run = NULL;
	struct ff_str job = o->job, name = o->run.p ? o->run : ff_str_z(in->o.run);
	int kind = o->kind.p ? ff_stream_kind_parse(o->kind) : -1;
	if (!job.p && (kind == FF_STREAM_KERNEL || kind == FF_STREAM_SCHEDULER)) {
		return ff_intake_node(in, ff_str_z(names->node));
	}
	if (!job.p && o->event == FF_JSONL_CLOCK && in->named_run) {
		return in->named_run; /* a sample is for the job that this sender speaks of */
	}
	int r = FF_ENAME;
	if (job.p) {
		r = ff_intake_resolve(in, o->token, job, name.p ? &name : NULL, names->source,
			cause, &run, NULL);
		ff_intake_count(in, NULL, FF_COUNT_bad_names, r == FF_ENAME);
		in->named_run = o->job.p && r >= 0 ? run : in->named_run;
	}
	if (r == FF_ENAME) {
		name = ff_str_z(in->o.run);
		r = ff_intake_resolve(in, o->token, ff_str_z(ff_intake_default_job(in)),
			name.p ? &name : NULL, names->source, cause, &run, NULL);
	}
	return r < 0 ? NULL : run;
}

/* What the first object of a stream declares. */
static struct ff_origin declare(const struct ff_intake *in, const struct names *names)
{
	const struct ff_jsonl *o = &in->obj;
	int kind = o->kind.p ? ff_stream_kind_parse(o->kind) : -1;
	struct ff_origin d = {.name = names->name, .node = names->node[0] ? names->node : NULL,
		.source = names->source, .kind_declared = kind >= 0,
		.fd = ff_fd_parse(o->container ? o->stream : o->fd), .rank = FF_UNKNOWN,
		.local_rank = FF_UNKNOWN, .attempt = (int32_t)o->attempt, .pid = FF_UNKNOWN};
	d.kind = kind >= 0 ? (enum ff_stream_kind)kind :
		o->rank >= 0 ? FF_STREAM_RANK : FF_STREAM_MIXED;
	if (d.kind == FF_STREAM_RANK) {
		d.rank = (int32_t)o->rank;
		d.local_rank = (int32_t)o->local_rank;
	}
	d.trusted = d.kind_declared && ff_intake_trusts(in, d.kind);
	return d;
}

static struct ff_origin declare_new(
	const struct ff_intake *in, const struct ff_run *run, const struct names *names)
{
	struct ff_origin d = declare(in, names);
	const struct ff_stream *s = ff_job_find_stream(run->job, d.node, d.name, d.source);
	if (s) { /* somebody's first object has declared it */
		d.rank = d.local_rank = d.attempt = FF_UNKNOWN;
		d.kind = s->origin.kind;
		d.kind_declared = s->origin.kind_declared;
		d.fd = FF_FD_UNKNOWN;
	}
	return d;
}

static size_t open_stream(struct ff_intake *in, struct ff_run *run, const struct names *names)
{
	size_t i = ff_intake_find(in, run, ff_str_z(names->node), ff_str_z(names->name),
				  names->source);
	if (i != FF_INTAKE_NOWHERE) {
		return i;
	}
	struct ff_origin d = declare_new(in, run, names);
	return ff_intake_open(in, run, &d);
}

/* What differs from the stream's declaration is a tag of the line, as if printed. */
static struct ff_line_tags make_tags(const struct ff_jsonl *o, struct ff_stream *s)
{
	struct ff_line_tags t = {FF_TAG_INIT, FF_UNKNOWN};
	if (o->rank >= 0 && o->rank != s->origin.rank) {
		t.tag = (struct ff_tag){FF_TAG_GLOBAL, o->rank};
	} else if (o->rank < 0 && o->local_rank >= 0 && o->local_rank != s->origin.local_rank) {
		t.tag = (struct ff_tag){FF_TAG_LOCAL, o->local_rank};
	}
	if (o->attempt >= 0 && o->attempt != s->origin.attempt) {
		t.attempt = (int32_t)o->attempt;
	}
	if (t.tag.kind != FF_TAG_NONE && !s->origin.kind_declared) {
		s->origin.kind = FF_STREAM_MIXED; /* it was a guess from one object */
	}
	return t;
}

static struct ff_stamp make_stamp(const struct ff_intake *in)
{
	const struct ff_jsonl *o = &in->obj;
	struct ff_stamp s = FF_STAMP_NONE;
	bool node = o->clock == FF_JSONL_CLOCK_UNSAID ? in->node_clock || o->container || o->shipped
						      : o->clock == FF_JSONL_CLOCK_NODE;
	if (o->time != FF_TIME_NONE) {
		*(node ? &s.captured : &s.arrived) = o->time;
	} else if (o->stamp != FF_TIME_NONE) {
		s.captured = o->stamp;
	} else {
		s = ff_intake_received(in);
	}
	return s;
}

/* whole: the text is a line even without an LF. */
static void put_line(struct ff_intake *in, size_t i, struct ff_str text, struct ff_stamp stamp,
		     struct ff_line_tags tags, bool whole)
{
	struct ff_buf line = {0};
	ff_buf_adds(&line, text);
	if (whole && (!text.n || text.p[text.n - 1] != '\n')) {
		ff_buf_addc(&line, '\n');
	}
	ff_intake_put(in, i, ff_buf_str(&line), stamp, tags);
	ff_buf_finish(&line);
}

void ff_intake_text_line(struct ff_intake *in, struct ff_str line, enum ff_count why)
{
	size_t i = in->last != FF_INTAKE_NOWHERE ? in->last : ff_intake_open_raw(in);
	ff_intake_count(in, in->last_run, why, 1);
	if (i == FF_INTAKE_NOWHERE) {
		return;
	}
	if (line.n && line.p[line.n - 1] == '\r') {
		line.n--;
	}
	in->streams[i].pos = in->streams[i].stream ? in->streams[i].stream->fed : 0;
	put_line(in, i, line, ff_intake_received(in),
		(struct ff_line_tags){FF_TAG_INIT, FF_UNKNOWN}, true);
}

void ff_intake_data(struct ff_intake *in)
{
	const struct ff_jsonl *o = &in->obj;
	struct names names;
	read_names(in, o, &names);
	struct ff_run *run = find_run(in, &names, FF_RUN_FEED);
	size_t i = run ? open_stream(in, run, &names) : FF_INTAKE_NOWHERE;
	ff_intake_count(in, run, FF_COUNT_bad_values, o->bad);
	ff_intake_count(in, run, FF_COUNT_bad_times, o->bad_times);
	if (i == FF_INTAKE_NOWHERE || !in->streams[i].stream) {
		return;
	}
	struct ff_intake_stream *st = &in->streams[i];
	struct ff_line_tags tags = make_tags(o, st->stream);
	st->pos = o->offset >= 0 ? (uint64_t)o->offset : st->stream->fed + in->held[i].word.len;
	st->ended = false;
	put_line(in, i, o->text, make_stamp(in), tags, !o->container && !o->piece);
	in->usable++;
}

/* ---- control objects */

/* What only an `end` declares, as an export does in front of the text. Trust can be taken, not
 * given. */
static void declare_more(struct ff_origin *d, const struct ff_json_node *doc)
{
	bool trusted = d->trusted, filtered = false;
	(void)ff_json_int(ff_json_get(doc, "pid"), &d->pid);
	(void)ff_json_bool(ff_json_get(doc, "trusted"), &trusted);
	(void)ff_json_bool(ff_json_get(doc, "filtered"), &filtered);
	d->trusted = d->trusted && trusted;
	d->filtered = filtered;
}

static void end_stream(struct ff_intake *in, struct ff_run *run, const struct names *names,
	const struct ff_json_node *doc)
{
	size_t i = ff_intake_find(in, run, ff_str_z(names->node), ff_str_z(names->name),
				  names->source);
	if (i == FF_INTAKE_NOWHERE) { /* it stopped before it said a word: known all the same */
		struct ff_origin d = declare_new(in, run, names);
		declare_more(&d, doc);
		i = ff_intake_open(in, run, &d);
	}
	if (i != FF_INTAKE_NOWHERE) {
		ff_intake_end_stream(in, i, in->obj.complete != 0, in->obj.time);
		in->streams[i].ended = true;
	}
}

/* What an export says of a stream whose text it can't show. A daemon digests the lines that come,
 * as of any other sender: nobody tells it what they meant. */
static void take_digest(struct ff_intake *in, struct ff_run *run, const struct names *names,
	const char *hex)
{
	size_t i = open_stream(in, run, names);
	struct ff_stream *s = i != FF_INTAKE_NOWHERE ? in->streams[i].stream : NULL;
	struct ff_buf row = {0};
	if (!s || !in->o.offline) {
		return;
	}
	bool good = hex && ff_buf_addunhex(&row, ff_str_z(hex)) &&
		ff_row_take(s, ff_buf_str(&row));
	ff_intake_count(in, run, FF_COUNT_bad_values, !good);
	ff_buf_finish(&row);
}

static void take_control(struct ff_intake *in, struct ff_str line)
{
	const struct ff_jsonl *o = &in->obj;
	const char *event = ff_jsonl_event_name(o->event);
	struct names names;
	ff_usec t[4];
	struct ff_json *doc = ff_json_parse(line, NULL);
	const struct ff_json_node *root = doc ? ff_json_root(doc) : NULL;
	read_names(in, o, &names);
	struct ff_run *run = NULL;
	if (o->event != FF_JSONL_HELLO && o->event != FF_JSONL_PING) {
		run = find_run(
			in, &names, o->event == FF_JSONL_JOB_START ? FF_RUN_START : FF_RUN_FEED);
	}
	if (!doc || !run) {
		ff_intake_count(in, run, FF_COUNT_bad_json, !doc);
		ff_json_destroy(doc);
		return;
	}
	in->last_run = run;
	in->usable++;
	if (o->event == FF_JSONL_END) {
		end_stream(in, run, &names, root);
		in->controls++;
	} else if (o->event == FF_JSONL_DIGEST) {
		take_digest(in, run, &names, ff_json_string(ff_json_get(root, "row")));
	} else if (o->event == FF_JSONL_CLOCK) {
		if (names.node[0] && ff_native_times_parse(root, 4, t)) {
			ff_facts_sample(&run->job->facts, ff_str_z(names.node),
					(struct ff_clock_sample){t[0], t[1], t[2], t[3]});
			run->dirty = true;
			ff_intake_changed(in, run);
		} else {
			ff_intake_count(in, run, FF_COUNT_bad_values, 1);
		}
	} else {
		struct ff_tell as = FF_TELL_INIT;
		in->node_clock = in->node_clock ||
			(o->event == FF_JSONL_JOB_START && o->clock == FF_JSONL_CLOCK_NODE);
		as.clock = in->node_clock ? FF_CLOCK_CAPTURED : FF_CLOCK_ARRIVED;
		int r = ff_tell_control(run, event, root, &as, NULL);
		ff_intake_count(in, run, FF_COUNT_bad_values, r < 0);
		ff_intake_told(in, run, r < 0 ? "" : event, root);
		in->controls++;
	}
	ff_intake_changed(in, run);
	ff_json_destroy(doc);
}

static bool is_blank(struct ff_str s)
{
	for (size_t i = 0; i < s.n; i++) {
		if (!memchr(" \t\r", s.p[i], 3)) {
			return false;
		}
	}
	return true;
}

void ff_intake_jsonl_line(struct ff_intake *in, struct ff_str line)
{
	if (is_blank(line)) {
		return;
	}
	if (ff_jsonl_parse(&in->obj, line) < 0) {
		ff_intake_text_line(in, line, FF_COUNT_bad_json);
	} else if (ff_jsonl_event_name(in->obj.event)) {
		take_control(in, line);
	} else if (in->obj.has_text) {
		ff_intake_data(in);
	} else {
		ff_intake_text_line(in, line, FF_COUNT_bad_json);
	}
}
