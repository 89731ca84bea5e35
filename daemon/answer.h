/* answer: verdicts of the daemon's runs, judged when somebody asks, and how often they changed.
 *
 * A verdict's version counts its changes as they were seen: a judged verdict that differs from the
 * one before (its `as_of` left out while the run is open) is the next version. It is stored with
 * the run and is the ETag of answers.
 */
#pragma once

#include "ledger.h"

/* A line of this stream was found to be this rank's. */
struct answer_rank {
	int32_t rank;
	uint32_t stream;
};

/* The newest verdict of a run in short. Strings are borrowed until the next call for this run. */
struct answer_short {
	uint64_t changes;  /* of the run when it was judged */
	ff_usec judged_us; /* the loop's time */
	bool final;
	char state[16];
	char *fault, *node; /* NULL; owned */
	ff_usec as_of;
	struct ff_buf item; /* the members of a list's item, without braces */
	struct answer_rank *ranks; /* of all events, sorted, each pair once; owned */
	size_t nranks;
};

/* Judges now. The caller destroys the verdict. attempt FF_UNKNOWN: the run's own verdict, which
 * also brings run->version up to date. */
struct ff_verdict *answer_judge(struct daemon *d, struct ff_run *run, int32_t attempt);
/* run->version is up to date afterwards. */
void answer_update(struct daemon *d, struct ff_run *run);
/* Judged anew only if something changed, or time passed for an open run. */
const struct answer_short *answer_short(struct daemon *d, struct ff_run *run);
void answer_short_destroy(void *answer);
/* Was a line of this stream found to be this rank's? To find that out for a run of 1,024 ranks
 * takes the loop a tenth of a second, so while the run changes what was found up to 5 s ago is
 * told. */
bool answer_is_of_rank(
	struct daemon *d, struct ff_run *run, const struct ff_stream *s, int32_t rank);
