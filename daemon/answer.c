#include "answer.h"

#include "base/json.h"
#include "base/mem.h"
#include "clock.h"
#include "core/report.h"
#include "nodes.h"

#include <stdio.h>
#include <stdlib.h>

#define FRESH_US FF_SECOND /* an open run's verdict depends on the time too (stalled) */
#define RANKS_US (5 * FF_SECOND)

static ff_usec loop_now(const struct daemon *d)
{
	return (ff_usec)uv_now(&d->loop) * 1000;
}

static void count_version(struct daemon *d, struct ff_run *run, struct ff_verdict *v)
{
	struct run_state *rs = ledger_run(d->ledger, run);
	struct ff_buf json = {0};
	ff_usec as_of = v->as_of;
	if (v->state != FF_RUN_ENDED) {
		v->as_of = FF_TIME_NONE; /* the time of asking is no change */
	}
	ff_report_json(v, &json);
	v->as_of = as_of;
	uint64_t hash = ff_str_hash(ff_buf_str(&json), FF_HASH_INIT);
	ff_buf_finish(&json);
	if (!run->version || hash != rs->verdict_hash) {
		run->version++;
		rs->verdict_hash = hash;
		run->dirty = true;
		ledger_row(d->ledger, run);
	}
}

/* What lists show. */
static void put_short(struct ff_buf *out, const struct ff_verdict *v)
{
	struct ff_jw w;
	ff_jw_init(&w, out);
	ff_jw_open(&w, '{');
	ff_jw_kstrz(&w, "job", v->job);
	ff_jw_kstrz(&w, "run", v->run);
	ff_jw_kstrz(&w, "state", ff_run_state_name(v->state));
	ff_jw_kbool(&w, "final", v->final);
	ff_jw_kstrz(&w, "verdict", ff_verdict_kind_name(v->kind));
	ff_jw_kstrz(&w, "confidence", ff_confidence_name(v->confidence));
	if (v->world_size == FF_UNKNOWN) {
		ff_jw_knull(&w, "world_size");
	} else {
		ff_jw_kint(&w, "world_size", v->world_size);
	}
	ff_jw_key(&w, "initiating");
	ff_jw_open(&w, '[');
	for (size_t i = 0; i < v->ninitiating; i++) {
		if (v->initiating[i].rank != FF_UNKNOWN) {
			ff_jw_int(&w, v->initiating[i].rank);
		}
	}
	ff_jw_close(&w, ']');
	ff_jw_kstrz(&w, "fault", v->fault);
	ff_jw_kstrz(&w, "node", v->node);
	ff_jw_kstrz(&w, "summary", v->summary);
	ff_jw_ktime(&w, "as_of", v->as_of);
	ff_jw_close(&w, '}');
	/* without the braces: others put members behind these */
	ff_buf_consume(out, 1);
	out->len--;
}

void answer_short_destroy(void *answer)
{
	struct answer_short *a = answer;
	if (a) {
		ff_buf_finish(&a->item);
		free(a->fault);
		free(a->node);
		free(a->ranks);
		free(a);
	}
}

static int by_rank(const void *a, const void *b)
{
	const struct answer_rank *x = a, *y = b;
	if (x->rank != y->rank) {
		return x->rank < y->rank ? -1 : 1;
	}
	return (x->stream > y->stream) - (x->stream < y->stream);
}

static void put_ranks(struct answer_short *a, const struct ff_timeline *t)
{
	struct answer_rank *v = ff_xcalloc(t->nall + 1, sizeof *v);
	size_t n = 0, kept = 0;
	for (size_t i = 0; i < t->nall; i++) {
		if (t->all[i].stream && t->all[i].rank != FF_UNKNOWN) {
			v[n++] = (struct answer_rank){t->all[i].rank, t->all[i].stream->number};
		}
	}
	qsort(v, n, sizeof *v, by_rank);
	for (size_t i = 0; i < n; i++) {
		if (!kept || by_rank(&v[kept - 1], &v[i]) != 0) {
			v[kept++] = v[i];
		}
	}
	a->ranks = ff_xrealloc(v, kept + 1, sizeof *v);
	a->nranks = kept;
}

static struct answer_short *remember(
	struct daemon *d, struct ff_run *run, const struct ff_verdict *v)
{
	struct run_state *rs = ledger_run(d->ledger, run);
	answer_short_destroy(rs->answer);
	struct answer_short *a = ff_xcalloc(1, sizeof *a);
	a->changes = rs->changes;
	a->judged_us = loop_now(d);
	a->final = v->final;
	a->as_of = v->as_of;
	a->fault = ff_xstrdup(v->fault);
	a->node = ff_xstrdup(v->node);
	(void)snprintf(a->state, sizeof a->state, "%s", ff_run_state_name(v->state));
	put_short(&a->item, v);
	put_ranks(a, &v->timeline);
	rs->answer = a;
	return a;
}

struct ff_verdict *answer_judge(struct daemon *d, struct ff_run *run, int32_t attempt)
{
	nodes_join(d->nodes, run);
	struct ff_verdict *v = ff_job_judge(run->job,
		&(struct ff_ask){
			.now_us = clock_wall(),
			.attempt = attempt,
			.world = FF_UNKNOWN,
		});
	if (attempt == FF_UNKNOWN) {
		count_version(d, run, v);
		(void)remember(d, run, v);
	}
	return v;
}

static bool is_fresh(const struct daemon *d, const struct run_state *rs)
{
	const struct answer_short *a = rs->answer;
	return a && a->changes == rs->changes &&
		(!strcmp(a->state, ff_run_state_name(FF_RUN_ENDED)) ||
			loop_now(d) - a->judged_us < FRESH_US);
}

const struct answer_short *answer_short(struct daemon *d, struct ff_run *run)
{
	struct run_state *rs = ledger_run(d->ledger, run);
	if (!is_fresh(d, rs)) {
		ff_verdict_destroy(answer_judge(d, run, FF_UNKNOWN));
	}
	return rs->answer;
}

bool answer_is_of_rank(
	struct daemon *d, struct ff_run *run, const struct ff_stream *s, int32_t rank)
{
	const struct answer_short *a = ledger_run(d->ledger, run)->answer;
	if (!a || loop_now(d) - a->judged_us >= RANKS_US) {
		a = answer_short(d, run);
	}
	struct answer_rank key = {rank, s->number};
	return bsearch(&key, a->ranks, a->nranks, sizeof key, by_rank) != NULL;
}

void answer_update(struct daemon *d, struct ff_run *run)
{
	(void)answer_short(d, run);
}
