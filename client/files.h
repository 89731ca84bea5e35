/* files: which files a person means by PATH..., and who each of them is.
 *
 * A folder with job.json gives the streams that it names; any other is walked. Who a walked file is
 * says its path (feed/path.h). Equal local ranks in two of torchrun's trees are two nodes, named
 * after the folders that tell the trees apart.
 */
#pragma once

#include "base/err.h"
#include "core/origin.h"
#include "feed/jobfile.h"
#include "feed/path.h"

/* One file, or standard input. */
struct files_item {
	char *path;      /* to open it; NULL: standard input */
	char *name;      /* of its stream; empty: left out */
	char *below;     /* path that says who it is, NULL if job.json does */
	size_t folder;   /* index of the PATH that it came from */
	bool listed;     /* by a job.json: it is what that says, whatever it looks like */
	bool walked;     /* found in a folder: what is no text is left out */
	bool first;      /* for the caller */
	const char *job, *run; /* job.json's: borrowed from it */
	int32_t world;   /* job.json's */
	struct ff_origin origin; /* without name and source */
	struct ff_path_identity id;
	char *node;      /* worked out, for origin.node */
};

struct files {
	struct files_item *v;
	size_t n, cap;
	struct ff_jobfile *jobs;
	size_t njobs, cjobs;
	int partly; /* CLIENT_IO after a message: a folder below could not be read */
};

/* Adds a path; "-" is standard input. Returns CLIENT_OK, or a status after its message. */
int files_add(struct files *f, const char *path, size_t index);
/* All paths are there: leaves copies out, works out nodes, tells equal names apart. */
void files_settle(struct files *f);
void files_finish(struct files *f);
/* "standard input" or the path */
const char *files_shown(const struct files_item *it);
/* The base name of a path, as a job id may be; malloc'd. */
char *files_job_name(const char *path);
