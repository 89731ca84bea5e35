/* check: is a catalogue good? (shared/README.md 6.6)
 *
 * In: a sealed catalogue and the pages of the same documents in the same order. Out: one sentence
 * for each defect, with file, entry and id: an example that none of its entry's texts holds, a text
 * without example, an example that a second text of equal rank (specific or generic) takes, a
 * counterexample that matches, a pattern that needs too many steps, and what an entry lacks.
 * Documents whose form is wrong don't get here: ff_catalog_add_each() says so.
 */
#pragma once

#include "core/catalog.h"
#include "core/page.h"

typedef void ff_check_fn(void *ud, const char *text);

/* Checks the pages from the `from`th on, and those before it only for lines that a text of the
 * later ones takes too. Returns the number of defects. */
size_t ff_catalog_check(const struct ff_catalog *c, const struct ff_pages *pages, size_t from,
			ff_check_fn *fn, void *ud);
