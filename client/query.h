/* query: what `why`, `ranks`, `timeline`, `events`, `logs`, `explain` and `job end` share about
 * asking for one job. */
#pragma once

#include "base/json.h"

/* The job that `why` without JOB means: the newest run of the caller's that failed. *ret is the
 * caller's (malloc'd), with ~N for a run before the job's latest. */
int query_newest_failed(char **ret);
/* The id of an event as a person types it: "first", the number that `events` prints, or the id
 * itself. *ret is malloc'd. */
int query_event(const char *job, const char *event, char **ret);
/* Prints the verdict's screen as the daemon renders it; brief: only what fits a pager. */
int query_print_screen(const char *job, int64_t attempt, bool brief);
/* Prints a table of one attempt of a job ("ranks", "timeline") as the daemon renders it, or all its
 * items as one JSON list. attempt -1: the verdict's own; lines 0: as many as it thinks fit. */
struct query_table {
	const char *what;
	bool json;
	int64_t attempt, lines;
};

int query_print_table(const char *job, const struct query_table *t);
/* Prints JSON as it came, with a newline. */
int query_print_json(const char *path);
