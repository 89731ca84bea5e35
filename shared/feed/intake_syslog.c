#include "feed/intake_own.h"

#include "wire/syslog.h"

#define KERNEL_FACILITY 0

static bool is_scheduler(struct ff_str app)
{
	return ff_str_eqz(app, "slurmctld") || ff_str_eqz(app, "slurmd") ||
		ff_str_eqz(app, "slurmstepd") || ff_str_eqz(app, "kubelet");
}

/* A message is a data object of JSON Lines in another spelling: from here on both go one way. */
static void take_message(struct ff_intake *in, const struct ff_syslog *m)
{
	struct ff_jsonl *o = &in->obj;
	struct ff_jsonl as = {.event = FF_JSONL_NONE, .has_text = true, .text = m->text,
		.job = m->job, .run = m->run, .node = m->node.p ? m->node : m->host,
		.stream = m->stream.p ? m->stream : m->app, .rank = m->rank,
		.local_rank = m->local_rank, .attempt = m->attempt, .offset = -1,
		.time = FF_TIME_NONE, .stamp = m->time, .complete = -1, .mem = o->mem,
		.join = o->join};
	if (m->facility == KERNEL_FACILITY) {
		as.kind = FF_STR("kernel");
	} else if (is_scheduler(m->app)) {
		as.kind = FF_STR("scheduler");
	}
	*o = as;
	ff_intake_data(in);
}

static void take_frame(struct ff_intake *in, struct ff_str message)
{
	struct ff_syslog m = {0};
	if (ff_syslog_parse(&m, message)) {
		take_message(in, &m);
	}
	ff_syslog_finish(&m);
}

/* Frames at the front of s; returns how many bytes they were. */
static size_t take_frames(struct ff_intake *in, struct ff_str s)
{
	size_t at = 0;
	while (at < s.n && !in->skip && !in->skipping) {
		struct ff_str message, rest = ff_str_skip(s, at);
		uint64_t used = 0;
		switch (ff_syslog_frame(rest, &message, &used)) {
		case FF_SYSLOG_MORE:
			if (rest.n <= FF_SYSLOG_FRAME + 16) {
				return at;
			}
			in->skipping = true; /* to the next newline */
			ff_intake_count(in, in->last_run, FF_COUNT_lines_cut, 1);
			break;
		case FF_SYSLOG_LONG:
			in->skip = used;
			ff_intake_count(in, in->last_run, FF_COUNT_lines_cut, 1);
			break;
		case FF_SYSLOG_WHOLE:
			take_frame(in, message);
			at += (size_t)used;
			break;
		case FF_SYSLOG_NONE:
			if (message.n) {
				ff_intake_text_line(in, message, FF_COUNT_bad_syslog);
			}
			at += (size_t)used;
			break;
		}
	}
	return at;
}

/* What is passed over of s: the rest of a long frame or line. */
static size_t pass_over(struct ff_intake *in, struct ff_str s)
{
	if (in->skip) {
		size_t n = in->skip < s.n ? (size_t)in->skip : s.n;
		in->skip -= n;
		return n;
	}
	ptrdiff_t lf = in->skipping ? ff_str_chr(s, '\n', 0) : -1;
	if (lf >= 0) {
		in->skipping = false;
		return (size_t)lf + 1;
	}
	return in->skipping ? s.n : 0;
}

/* The unfinished frame is passed over. */
static void give_up(struct ff_intake *in)
{
	struct ff_str message, all = ff_buf_str(&in->pending);
	uint64_t used = 0;
	if (ff_syslog_frame(all, &message, &used) == FF_SYSLOG_MORE && used > all.n) {
		in->skip = used - all.n; /* counted: up to its end */
	} else {
		in->skipping = true; /* to the next newline */
	}
	ff_buf_finish(&in->pending);
}

void ff_intake_syslog_bytes(struct ff_intake *in, struct ff_str s)
{
	if (!in->skip && !in->skipping && !ff_intake_has_room(in, s.n)) {
		give_up(in);
	}
	ff_buf_adds(&in->pending, s);
	for (;;) {
		struct ff_str all = ff_buf_str(&in->pending);
		size_t n = pass_over(in, all);
		n += take_frames(in, ff_str_skip(all, n));
		ff_buf_consume(&in->pending, n);
		if (!in->pending.len || !(in->skip || in->skipping)) {
			break;
		}
	}
	if (!in->pending.len && in->pending.cap > FF_SYSLOG_FRAME / 4) {
		ff_buf_finish(&in->pending);
	}
}

void ff_intake_syslog_end(struct ff_intake *in)
{
	struct ff_str s = ff_buf_str(&in->pending), message;
	uint64_t used;
	/* half of a counted frame comes again, whole, when its sender is back */
	if (s.n && s.p[0] == '<') {
		ff_buf_addc(&in->pending, '\n');
		if (ff_syslog_frame(ff_buf_str(&in->pending), &message, &used) ==
			FF_SYSLOG_WHOLE) {
			take_frame(in, message);
		}
	}
	ff_buf_finish(&in->pending);
}
