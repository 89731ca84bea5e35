/* job: one run of one job: its facts, its streams, and the verdict over them.
 *
 * This is the object that daemon, client and tests all drive: feed bytes, tell facts, ask for the
 * verdict. It knows no clock, file, socket or database; time is an argument. Nothing in it looks at
 * another run.
 *
 *	struct ff_job *job = ff_job_create(catalog, FF_STR("4711"), FF_STR("0"));
 *	ff_facts_tell(&job->facts, "job@start", "world_size", FF_STR("16"),
 *		FF_TIME_NONE, FF_CLOCK_NONE);
 *	struct ff_stream *s = ff_job_stream(job, &origin);
 *	ff_job_feed(job, s, &chunk);
 *	ff_job_end_stream(job, s, true, FF_TIME_NONE);
 *	struct ff_verdict *v = ff_job_judge(job, &(struct ff_ask){.offline = true, ...});
 *	ff_report_json(v, &out);
 *	ff_verdict_destroy(v);
 *
 * Ownership: the job owns facts and streams; the catalogue is borrowed and must outlive it, or its
 * use (ff_job_use).
 */
#pragma once

#include "core/verdict.h"

struct ff_job {
	struct ff_facts facts;
	const struct ff_catalog *catalog;
	struct ff_matcher *matcher;
	struct ff_stream **streams; /* by ascending number */
	size_t nstreams, cstreams;
	struct ff_map by_key;       /* node NUL name NUL source -> stream */
	struct ff_map lives;        /* node NUL name -> count of sources, as a number */
	bool of_node;               /* its streams are a node's own; set by feed/nodes.c */
	uint64_t counts[FF_COUNT_COUNT];
	void *user;                 /* of the owner */
};

struct ff_job *ff_job_create(const struct ff_catalog *catalog, struct ff_str job,
			     struct ff_str run);
void ff_job_destroy(struct ff_job *job);

/* From now on this catalogue, as if the job had been stored and restored with it. Its events keep
 * what they were matched with; what is digested next is matched by it, and so is a record that is
 * open, as a whole, when it closes: no place of a scan and no match outlives a call, and a joiner
 * holds text alone. (Whether a line was a training step, which closes a record, is decided as it
 * comes: of a record that is open meanwhile a restart would ask the new catalogue again.) What is
 * the same for two jobs is so only up to here: the catalogue is part of a verdict's input, and its
 * hash is in it. */
void ff_job_use(struct ff_job *job, const struct ff_catalog *catalog);

/* The stream of (node, name, source); made if it is new. Declared values that were unknown are
 * filled in, but for `trusted`: a stream is trusted from its first byte on or never. NULL if the
 * run has FF_STREAMS_MAX (counted). */
struct ff_stream *ff_job_stream(struct ff_job *job, const struct ff_origin *origin);
struct ff_stream *ff_job_find_stream(const struct ff_job *job, const char *node, const char *name,
				     const char *source);
/* May one whose words are believed, or are not, feed the stream of this origin? Nobody else feeds
 * one that is trusted: all that stands in it is. */
bool ff_job_may_feed(const struct ff_job *job, const struct ff_origin *o, bool believed);
/* Restore: a stream with a known number (in ascending order). */
struct ff_stream *ff_job_restore_stream(struct ff_job *job, const struct ff_origin *origin,
					uint32_t number, uint32_t life);
void ff_job_feed(struct ff_job *job, struct ff_stream *s, const struct ff_chunk *c);
void ff_job_end_stream(struct ff_job *job, struct ff_stream *s, bool complete, ff_usec at_us);

/* What the job's streams are digested with. */
struct ff_digest ff_job_digest(struct ff_job *job);
/* The verdict over what is known now. The caller destroys it. Its events and timeline borrow from
 * the job and are valid until the job is next fed or told. */
struct ff_verdict *ff_job_judge(struct ff_job *job, const struct ff_ask *ask);
