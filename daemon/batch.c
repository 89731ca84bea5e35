#include "batch.h"

#include "pack.h"

#include <stdlib.h>

struct batch *batch_create(uint64_t seq)
{
	struct batch *b = ff_xcalloc(1, sizeof *b);
	b->seq = seq;
	return b;
}

void batch_destroy(struct batch *b)
{
	if (!b) {
		return;
	}
	free(b->runs);
	free(b->controls);
	free(b->clocks);
	free(b->streams);
	free(b->lanes);
	free(b->events);
	free(b->drops);
	free(b->texts);
	free(b->marks);
	free(b->hooks);
	free(b->going);
	ff_arena_finish(&b->arena);
	free(b);
}

size_t batch_rows(const struct batch *b)
{
	return b->nruns + b->ncontrols + b->nclocks + b->nstreams + b->nlanes + b->nevents +
		b->ndrops + b->nhooks + b->ngoing;
}

static struct ff_str keep(struct batch *b, struct ff_str s)
{
	b->bytes += s.n;
	return ff_str_n(ff_arena_str(&b->arena, s), s.n);
}

static const char *keepz(struct batch *b, const char *z)
{
	b->bytes += z ? strlen(z) : 0;
	return ff_arena_strdup(&b->arena, z);
}

static void add_control(struct batch *b, uint32_t run, const struct ff_control *c)
{
	const char *id = keepz(b, c->id);
	if (!c->nvalues) {
		*FF_ARR_ADD(b->controls, b->ncontrols, b->ccontrols) =
			(struct row_control){run, id, "", "", FF_TIME_NONE, FF_CLOCK_NONE, false};
	}
	for (size_t i = 0; i < c->nvalues; i++) {
		const struct ff_fact_value *v = &c->values[i];
		*FF_ARR_ADD(b->controls, b->ncontrols, b->ccontrols) = (struct row_control){run, id,
			keepz(b, v->key), keepz(b, v->value), v->time, v->clock, v->contradicted};
	}
}

static void add_clock(struct batch *b, uint32_t run, const struct ff_node_clock *c)
{
	const char *node = keepz(b, c->node);
	for (size_t i = 0; i < c->nsamples; i++) {
		*FF_ARR_ADD(b->clocks, b->nclocks, b->cclocks) =
			(struct row_clock){run, node, (uint32_t)i, c->samples[i]};
	}
}

void batch_add_facts(struct batch *b, uint32_t run, const struct ff_facts *f)
{
	for (size_t i = 0; i < f->ncontrols; i++) {
		if (f->controls[i]->dirty) {
			add_control(b, run, f->controls[i]);
			f->controls[i]->dirty = false;
		}
	}
	for (size_t i = 0; i < f->nclocks; i++) {
		if (f->clocks[i].dirty) {
			add_clock(b, run, &f->clocks[i]);
			f->clocks[i].dirty = false;
		}
	}
}

static struct row_moment moment(struct batch *b, const struct ff_moment *m)
{
	return (struct row_moment){m->set, m->offset, m->line, m->stamp, keepz(b, m->text)};
}

static void add_lane(
	struct batch *b, uint32_t run, uint32_t stream, uint32_t index, const struct ff_lane *lane)
{
	struct ff_buf buf = {0};
	struct row_lane row = {
		.run = run,
		.stream = stream,
		.lane = index,
		.tag = lane->tag,
		.attempt = lane->attempt,
		.lines = lane->lines,
		.bytes = lane->bytes,
		.first_offset = lane->first_offset,
		.last_offset = lane->last_offset,
		.first = lane->first,
		.last = lane->last,
		.first_claimed = lane->first_claimed,
		.progress = moment(b, &lane->progress),
		.recovered = moment(b, &lane->recovered),
		.success = moment(b, &lane->success),
		.steps = lane->steps,
		.has_fault = lane->has_fault,
		.fault_offset = lane->last_fault_offset,
		.open_offset = lane->open_offset,
	};
	pack_cadence(lane->cadence, &buf);
	row.cadence = keep(b, ff_buf_str(&buf));
	ff_buf_clear(&buf);
	ff_row_pairs(lane->pairs, lane->npairs, &buf);
	row.pairs = keep(b, ff_buf_str(&buf));
	ff_buf_finish(&buf);
	*FF_ARR_ADD(b->lanes, b->nlanes, b->clanes) = row;
	b->bytes += sizeof row;
}

static void add_event(struct batch *b, uint32_t run, uint32_t stream, const struct ff_event *e)
{
	struct ff_buf buf = {0};
	struct row_event row = {.run = run, .stream = stream, .e = *e};
	row.e.fault = (char *)keepz(b, e->fault);
	row.e.signature = (char *)keepz(b, e->signature);
	row.e.text = e->text ? (char *)keep(b, ff_str_n(e->text, e->text_len)).p : NULL;
	row.e.frame = (char *)keepz(b, e->frame);
	row.e.fields = (struct ff_fields){0};
	pack_fields(&e->fields, &buf);
	row.fields = keep(b, ff_buf_str(&buf));
	ff_buf_finish(&buf);
	*FF_ARR_ADD(b->events, b->nevents, b->cevents) = row;
	b->bytes += sizeof row;
}

static void add_digest(struct batch *b, uint32_t run, struct ff_stream *s)
{
	for (size_t i = 0; i < s->ndropped; i++) {
		*FF_ARR_ADD(b->drops, b->ndrops, b->cdrops) = (struct row_drop){
			run, s->number, s->dropped[i] >> 8, (uint32_t)(s->dropped[i] & 0xff)};
	}
	s->ndropped = 0;
	for (size_t i = 0; i < s->nlanes; i++) {
		if (s->lanes[i]->dirty) {
			add_lane(b, run, s->number, (uint32_t)i, s->lanes[i]);
			s->lanes[i]->dirty = false;
		}
	}
	for (size_t i = 0; i < s->nevents; i++) {
		if (s->events[i].dirty) {
			add_event(b, run, s->number, &s->events[i]);
			s->events[i].dirty = false;
		}
	}
}

struct row_stream *batch_add_stream(struct batch *b, uint32_t run, struct ff_stream *s)
{
	add_digest(b, run, s);
	struct row_stream row = {
		.run = run,
		.number = s->number,
		.life = s->life,
		.origin = s->origin,
		.state = s->state,
		.ended_us = s->ended_us,
		.fed = s->fed,
		.digested = s->digested,
		.resume = ff_stream_resume(s),
		.resume_line = ff_stream_resume_line(s),
		.resume_tag = s->last_tag,
		.resume_attempt = s->last_attempt,
		.in_skip = ff_stream_resume_in_skip(s),
		.gap = s->gap,
		.read_to_end = s->read_to_end,
	};
	row.origin.name = keepz(b, s->origin.name);
	row.origin.node = keepz(b, s->origin.node);
	row.origin.source = keepz(b, s->origin.source);
	s->dirty = false;
	b->bytes += sizeof row;
	struct row_stream *ret = FF_ARR_ADD(b->streams, b->nstreams, b->cstreams);
	*ret = row;
	return ret;
}
