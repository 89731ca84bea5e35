/* export: a run as the JSON Lines that `firstfault analyze -` reads (shared/README.md 6.2): what
 * was told of it, who its streams are, and their lines. Memory only.
 *
 * Streams whose text may not be read again, and what a run has of its nodes' own logs
 * (feed/nodes.h), carry their digest (core/row.h), which is what the verdict was made of;
 * `analyze` passes over those of their lines that stand in it.
 *
 * The first object has a member `export`: {"complete":true,"missing":[]}, or why the rest is not
 * all that the run's verdict was made of. Streams are declared, in order of their numbers, by an
 * `end` that is not complete; the last objects say how they ended. Text is escaped byte by byte:
 * what is no UTF-8 stays as it is.
 */
#pragma once

#include "feed/runs.h"

struct export_loss {
	size_t tailed; /* streams whose text is in files of their own */
	bool dropped;  /* of the others text was dropped */
	size_t large;  /* streams whose digest is too large for an object: their lines speak */
	bool open;     /* the run goes on */
};

/* The first objects: job-start, and each stream. trust: kernel and scheduler streams that are
 * trusted stay so. */
void export_put_begin(
	struct ff_buf *out, const struct ff_run *run, struct export_loss *loss, bool trust);
/* The last ones: exits, signs, clocks, how the streams ended, job-end. */
void export_put_end(struct ff_buf *out, const struct ff_run *run);
/* Has a job-start made `time` the nodes' own? Then each line says of which clock its time is. */
bool export_says_clock(const struct ff_run *run);

/* The members that name a stream, with the opening brace. */
void export_put_head(struct ff_buf *out, const struct ff_run *run, const struct ff_stream *s);

struct export_line {
	struct ff_str head;
	uint64_t offset;
	ff_usec us; /* FF_TIME_NONE */
	enum ff_clock clock;
	bool says_clock;
	int32_t rank, local_rank, attempt; /* as the stream declared */
	struct ff_line_tags tags;
	struct ff_str text;
};

void export_put_line(struct ff_buf *out, const struct export_line *line);
