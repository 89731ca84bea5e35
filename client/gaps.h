/* gaps: what a person did not give, told from the files that were: sentences for the verdict that
 * say what to do. Only what is plain to see: a number left out of a row, files without a byte, one
 * half of the output.
 */
#pragma once

#include "files.h"
#include "feed/runs.h"

/* All files were read; nothing is noted where the input holds several runs. */
void gaps_note(struct files *f, const struct ff_runs *runs);
