/* query: what `why`, `ranks`, `timeline`, `events`, `logs`, `explain` and `job end` share about
 * asking for one job. */
#pragma once

#include "base/json.h"
#include "client.h"

/* The job that `why` without JOB means: the run of the caller's that failed and was heard
 * last. *ret is the
 * caller's (malloc'd), with ~N for a run before the job's latest. */
int query_newest_failed(char **ret);
/* The id of an event as a person types it: "first", the number that `events` prints, or the id
 * itself. *ret is malloc'd. */
int query_event(const char *job, const char *event, char **ret);
/* Prints what the daemon renders at path, which is freed; attempt -1: the verdict's own. */
int query_print_text(struct ff_buf *path, int64_t attempt);
/* Prints the verdict's screen as the daemon renders it; brief: only what fits a pager. */
int query_print_screen(const char *job, int64_t attempt, bool brief);
/* The command of a table ("ranks", "timeline"), of one attempt of a job: as the daemon renders it,
 * or all its items as one JSON list. Returns the exit status. */
int query_run_table(const struct client_command *self, const char *what, int argc, char **argv);
