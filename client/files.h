/* files: which files a person means by PATH..., and who each of them is.
 *
 * A folder with job.json gives the streams that it names; any other is walked. A tar, whatever it
 * is packed in, is the folder that it holds (its only top folder, else itself); a compressed file
 * is the file. Who a walked file is says its path (feed/path.h). Equal local ranks in two of
 * torchrun's trees are two nodes, named after the folders that tell the trees apart.
 */
#pragma once

#include "base/err.h"
#include "core/origin.h"
#include "feed/jobfile.h"
#include "feed/path.h"
#include "unpack.h"

#define FILES_NONE SIZE_MAX

/* One file, or standard input. */
struct files_item {
	char *path;      /* to open it, to show it if it is in an archive; NULL: stdin */
	char *name;      /* of its stream; empty: left out */
	char *below;     /* path that says who it is, NULL if job.json does */
	size_t above;    /* bytes of path before below */
	size_t folder;   /* index of the PATH that it came from */
	size_t archive;  /* index of the item that holds it, or FILES_NONE */
	size_t ordinal;  /* which of the archive's files it is (unpack.h) */
	bool holds;      /* it is an archive: its files are items of their own */
	bool packed;     /* its bytes are expanded ones */
	bool listed;     /* by a job.json: it is what that says, whatever it looks like */
	bool walked;     /* found in a folder: what is no text is left out */
	bool empty;
	bool record;     /* torchrun's error.json of a rank without other text */
	bool first;      /* it begins like JSON */
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
	char **notes;     /* what is missing: sentences for the verdict */
	size_t nnotes, cnotes;
	char *job_name;   /* what the first PATH would call its job */
	int partly; /* CLIENT_IO after a message: a folder below could not be read */
};

/* Adds a path; "-" is standard input. Returns CLIENT_OK, or a status after its message. */
int files_add(struct files *f, const char *path, size_t index);
/* All paths are there: opens what can be opened twice and looks at its front, finds the files in
 * archives, leaves copies out, works out nodes, tells equal names apart. A status after its message
 * if a job.json in an archive is none. */
int files_settle(struct files *f);
void files_finish(struct files *f);
/* "standard input" or the path */
const char *files_shown(const struct files_item *it);
/* Something is missing that the verdict should say; at most 64 of them are kept. */
void files_note(struct files *f, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
