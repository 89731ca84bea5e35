/* input: what `analyze` is given becomes runs: files, folders, archives, job.json, standard input.
 *
 * Every stream is opened and read in pieces of 64 KiB; nothing is kept of its text but events.
 */
#pragma once

#include "feed/runs.h"
#include "base/buf.h"

struct input_options {
	const char *job; /* --job, NULL */
};

struct input_result {
	int partly;      /* the status for what could not be read although there is a verdict
			  * (CLIENT_OK: nothing) */
	char **missing;  /* sentences for the verdict */
	size_t nmissing;
	size_t nfailed;  /* the first of them are about what could not be read */
};

/* Reads all paths. Returns CLIENT_OK, or the exit status after its message. */
int input_read(struct ff_runs *runs, char *const *paths, size_t n, const struct input_options *o,
	       struct input_result *ret);
void input_finish(struct input_result *r);
