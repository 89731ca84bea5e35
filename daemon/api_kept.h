/* api_kept: answers about runs that have ended, kept as they were rendered.
 *
 * The verdict of an ended run depends on nothing but what is known of it (law 2), and to judge
 * takes the loop 10 ms for 1,000 ranks, seconds for 131,072: a page that is asked for again while
 * nothing changed is answered with the same bytes. Who may ask is looked at before. Only JSON is
 * kept: text says how long ago something was.
 *
 * Bounded: FF_KEPT_ANSWERS answers and FF_KEPT_BYTES bytes in all; what was asked for longest ago
 * goes first, and no answer of more than half of that is kept. What no longer holds is
 * recognised when it is asked for again: by run_state.changes, and by reloads, which bring another
 * catalogue.
 */
#pragma once

#include "core/verdict.h"
#include "request.h"

struct api_kept; /* opaque */

struct api_kept *api_kept_create(void);
void api_kept_destroy(struct api_kept *k);
/* Answers with what is kept of this route and query; false: nothing that still holds. */
bool api_kept_answer(struct request *r, struct ff_run *run);
/* An answer of 200 was just made from this verdict: a copy of it is kept, if it can be. */
void api_kept_put(struct request *r, const struct ff_run *run, const struct ff_verdict *v);
size_t api_kept_bytes(const struct api_kept *k);
