/* tell: control objects of shared/README.md 6.2 become facts of a run.
 *
 * In: an object of job-start, job-end, exit or sign, from a connection, an HTTP body or job.json.
 * Out: ff_facts_tell under its id: job@start, job@end, exit@ATTEMPT.RANK (without a rank
 * exit@NODE.PID), sign@ATTEMPT.RANK.TIME likewise (TIME in microseconds, so that signs of a rank
 * are ordered by it). An attempt that nobody said is 0 in an id, and stays unsaid among the values.
 *
 * All values are checked before the first is told: a bad object changes nothing.
 */
#pragma once

#include "base/json.h"
#include "feed/runs.h"

/* What the connection has said already: an exit without rank is its own. */
struct ff_tell {
	enum ff_clock clock; /* of `time`, unless the object says "clock" */
	int64_t rank, attempt, pid; /* FF_UNKNOWN */
	const char *node;    /* NULL */
};

#define FF_TELL_INIT ((struct ff_tell){FF_CLOCK_ARRIVED, FF_UNKNOWN, FF_UNKNOWN, FF_UNKNOWN, NULL})

/* Is this the name of a control object that is told? */
bool ff_tell_knows(const char *name);
/* Of an object that was told: is it a job-start that says whose run it is? That is no fact: who may
 * say so is not for the run to know. */
bool ff_tell_owner(const char *name, const struct ff_json_node *doc, int64_t *ret_uid);
/* Returns 1 if a fact changed, 0 if all was known, FF_ESCHEMA with err. Unknown keys are counted.
 */
int ff_tell_control(struct ff_run *run, const char *name, const struct ff_json_node *doc,
		    const struct ff_tell *as, struct ff_err *err);
