#include "core/job.h"
#include "base/arr.h"

#include <stdlib.h>

struct ff_job *ff_job_create(const struct ff_catalog *catalog, struct ff_str job, struct ff_str run)
{
	struct ff_job *j = ff_xcalloc(1, sizeof *j);
	ff_facts_init(&j->facts, job, run);
	j->catalog = catalog;
	j->matcher = ff_matcher_create(catalog);
	return j;
}

void ff_job_destroy(struct ff_job *job)
{
	if (!job) {
		return;
	}
	for (size_t i = 0; i < job->nstreams; i++) {
		ff_stream_destroy(job->streams[i]);
	}
	free(job->streams);
	ff_map_finish(&job->by_key);
	ff_map_finish(&job->lives);
	ff_matcher_destroy(job->matcher);
	ff_facts_finish(&job->facts);
	free(job);
}

void ff_job_use(struct ff_job *job, const struct ff_catalog *catalog)
{
	ff_matcher_destroy(job->matcher);
	job->catalog = catalog;
	job->matcher = ff_matcher_create(catalog);
}

struct ff_digest ff_job_digest(struct ff_job *job)
{
	return (struct ff_digest){job->catalog, job->matcher, job->counts};
}

/* node NUL name [NUL source] */
static void make_key(struct ff_buf *b, const char *node, const char *name, const char *source)
{
	ff_buf_addz(b, node ? node : "");
	ff_buf_addc(b, '\0');
	ff_buf_addz(b, name);
	if (source) {
		ff_buf_addc(b, '\0');
		ff_buf_addz(b, source);
	}
}

static const char *source_or_0(const char *source)
{
	return source && *source ? source : "0";
}

struct ff_stream *ff_job_find_stream(
	const struct ff_job *job, const char *node, const char *name, const char *source)
{
	struct ff_buf key = {0};
	make_key(&key, node, name, source_or_0(source));
	struct ff_stream *s = ff_map_get(&job->by_key, ff_buf_str(&key));
	ff_buf_finish(&key);
	return s;
}

bool ff_job_may_feed(const struct ff_job *job, const struct ff_origin *o, bool believed)
{
	const struct ff_stream *s =
		believed ? NULL : ff_job_find_stream(job, o->node, o->name, o->source);
	return !s || !s->origin.trusted;
}

/* What was unknown and is said now; what was said before holds. Trust is of a stream's first day:
 * what somebody else said in it by now is not believed afterwards. */
static void fill_in(struct ff_stream *s, const struct ff_origin *o)
{
	struct ff_origin *mine = &s->origin;
	struct ff_origin old = *mine;
	if (!mine->kind_declared && (o->kind_declared || mine->kind == FF_STREAM_MIXED)) {
		mine->kind = o->kind;
		mine->kind_declared = o->kind_declared;
	}
	mine->fd = mine->fd == FF_FD_UNKNOWN ? o->fd : mine->fd;
	mine->rank = mine->rank == FF_UNKNOWN ? o->rank : mine->rank;
	mine->local_rank = mine->local_rank == FF_UNKNOWN ? o->local_rank : mine->local_rank;
	mine->attempt = mine->attempt == FF_UNKNOWN ? o->attempt : mine->attempt;
	mine->pid = mine->pid <= 0 ? o->pid : mine->pid;
	mine->filtered = mine->filtered || o->filtered;
	mine->tailed = mine->tailed || o->tailed;
	mine->joined = mine->joined || o->joined;
	s->dirty = s->dirty || old.kind != mine->kind || old.fd != mine->fd ||
		old.rank != mine->rank || old.local_rank != mine->local_rank ||
		old.attempt != mine->attempt || old.pid != mine->pid ||
		old.filtered != mine->filtered || old.tailed != mine->tailed ||
		old.kind_declared != mine->kind_declared;
}

/* A rank that no run can have is no rank. */
static int32_t usable_rank(struct ff_job *job, int32_t rank)
{
	if (rank == FF_UNKNOWN || (rank >= 0 && rank < FF_RANKS_MAX)) {
		return rank;
	}
	job->counts[FF_COUNT_ranks_refused]++;
	return FF_UNKNOWN;
}

/* A second live source that claims the name and rank of a first one: both stay, both are shown. */
static void count_same_rank(struct ff_job *job, const struct ff_origin *o)
{
	for (size_t i = 0; o->rank != FF_UNKNOWN && i < job->nstreams; i++) {
		const struct ff_stream *s = job->streams[i];
		bool same = s->state == FF_STREAM_OPEN && s->origin.rank == o->rank &&
			s->origin.attempt == o->attempt && !strcmp(s->origin.name, o->name);
		if (same) {
			job->counts[FF_COUNT_same_rank]++;
			return;
		}
	}
}

static void add_stream(struct ff_job *job, struct ff_stream *s, uint32_t life)
{
	struct ff_buf key = {0};
	const struct ff_origin *o = &s->origin;
	make_key(&key, o->node, o->name, source_or_0(o->source));
	(void)ff_map_put(&job->by_key, ff_buf_str(&key), s);
	ff_buf_clear(&key);
	make_key(&key, o->node, o->name, NULL);
	uintptr_t lives = (uintptr_t)ff_map_get(&job->lives, ff_buf_str(&key));
	if (life > lives) {
		(void)ff_map_put(&job->lives, ff_buf_str(&key), (void *)(uintptr_t)life);
	}
	ff_buf_finish(&key);
	s->of_node = job->of_node;
	*FF_ARR_ADD(job->streams, job->nstreams, job->cstreams) = s;
}

static uint32_t next_life(const struct ff_job *job, const struct ff_origin *o)
{
	struct ff_buf key = {0};
	make_key(&key, o->node, o->name, NULL);
	uintptr_t lives = (uintptr_t)ff_map_get(&job->lives, ff_buf_str(&key));
	ff_buf_finish(&key);
	return (uint32_t)lives + 1;
}

struct ff_stream *ff_job_stream(struct ff_job *job, const struct ff_origin *origin)
{
	struct ff_origin o = *origin;
	o.source = source_or_0(o.source);
	o.rank = usable_rank(job, o.rank);
	o.local_rank = usable_rank(job, o.local_rank);
	struct ff_stream *s = ff_job_find_stream(job, o.node, o.name, o.source);
	if (s) {
		fill_in(s, &o);
		return s;
	}
	if (job->nstreams >= FF_STREAMS_MAX) {
		job->counts[FF_COUNT_streams_refused]++;
		return NULL;
	}
	uint32_t life = next_life(job, &o);
	if (life > 1) {
		count_same_rank(job, &o);
	}
	uint32_t last = job->nstreams ? job->streams[job->nstreams - 1]->number : 0;
	s = ff_stream_create(&o, last + 1, life);
	add_stream(job, s, life);
	return s;
}

struct ff_stream *ff_job_restore_stream(
	struct ff_job *job, const struct ff_origin *origin, uint32_t number, uint32_t life)
{
	struct ff_stream *s = ff_stream_create(origin, number, life);
	add_stream(job, s, life);
	return s;
}

void ff_job_feed(struct ff_job *job, struct ff_stream *s, const struct ff_chunk *c)
{
	struct ff_digest d = ff_job_digest(job);
	ff_stream_feed(s, &d, c);
}

void ff_job_end_stream(struct ff_job *job, struct ff_stream *s, bool complete, ff_usec at_us)
{
	struct ff_digest d = ff_job_digest(job);
	ff_stream_end(s, &d, complete, at_us);
}

struct ff_verdict *ff_job_judge(struct ff_job *job, const struct ff_ask *ask)
{
	struct ff_digest d = ff_job_digest(job);
	return ff_verdict_create(&job->facts, job->streams, job->nstreams, &d, ask);
}
