/* input: what `analyze` is given becomes runs: files, folders, job.json, standard input.
 *
 * Every stream is opened and read in pieces of 64 KiB; nothing is kept of its text but events.
 */
#pragma once

#include "feed/runs.h"
#include "base/buf.h"

struct input_options {
	const char *job; /* --job, NULL */
};

/* Reads all paths. Returns CLIENT_OK, or the exit status after its message. *ret_partly: the status
 * for what could not be read below a folder although there is a verdict (CLIENT_OK: nothing). */
int input_read(struct ff_runs *runs, char *const *paths, size_t n, const struct input_options *o,
	       int *ret_partly);
