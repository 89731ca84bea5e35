#include "feed/intake_own.h"

#include "wire/otlp.h"

/* A record is a data object of JSON Lines in another spelling: from here on both go one way. */
static void take_record(void *ud, const struct ff_otlp_record *r)
{
	struct ff_intake *in = ud;
	struct ff_jsonl *o = &in->obj;
	struct ff_jsonl as = {.event = FF_JSONL_NONE, .has_text = r->has_text, .text = r->text,
		.job = r->job, .run = r->run, .node = r->node, .stream = r->stream, .kind = r->kind,
		.fd = r->fd, .rank = r->rank, .local_rank = r->local_rank, .attempt = r->attempt,
		.offset = -1, .time = FF_TIME_NONE, .stamp = r->time, .complete = -1,
		.bad = r->bad, .mem = o->mem, .join = o->join};
	*o = as;
	in->records++;
	if (r->has_text) {
		ff_intake_data(in);
	}
}

int ff_intake_otlp(struct ff_intake *in, struct ff_str body, ff_usec now_us, uint64_t *ret_rejected,
		   struct ff_err *err)
{
	uint64_t usable = in->usable;
	in->dialect = FF_DIALECT_OTLP;
	in->now_us = now_us;
	in->records = 0;
	int r = ff_otlp_parse(body, take_record, in, err);
	if (r < 0) {
		ff_intake_count(in, NULL, FF_COUNT_bad_otlp, 1);
		return r;
	}
	*ret_rejected = in->records - (in->usable - usable);
	ff_intake_count(in, NULL, FF_COUNT_otlp_records, in->records);
	ff_intake_count(in, NULL, FF_COUNT_otlp_rejected, *ret_rejected);
	return 0;
}
