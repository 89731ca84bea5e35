/* jobfile: job.json of a folder given to `analyze` (shared/README.md 6.4): text in, structs out.
 * Unknown keys are ignored. */
#pragma once

#include "base/err.h"
#include "base/json.h"
#include "core/origin.h"

struct ff_jobfile {
	struct ff_json *doc;       /* owns all strings */
	const char *job, *run;     /* NULL */
	int32_t world;             /* FF_UNKNOWN */
	const struct ff_json_node *job_end; /* NULL: none; for ff_intake_control */
	const struct ff_json_node *job_start; /* the whole document: launcher, nodes, world_size */
	struct ff_origin *streams; /* origin.name is the path; source "0" */
	size_t nstreams;
};

/* Paths that leave the folder, negative ranks, wrong types: FF_ESCHEMA with err naming the entry.
 */
int ff_jobfile_parse(struct ff_str text, struct ff_jobfile *ret, struct ff_err *err);
void ff_jobfile_finish(struct ff_jobfile *f);
