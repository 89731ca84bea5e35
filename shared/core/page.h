/* page: the catalogue as people read it: what an entry says about its fault (shared/README.md 6.6).
 *
 * In: the same documents that a catalogue is made of (core/catalog.h keeps of them only what
 * judging needs). Out: pages, found by fault id, by words, or the nearest by spelling; as text or
 * JSON.
 *
 * Ownership: everything returned is borrowed from the pages. An entry is read as it stands: keys
 * that are missing or of another type are left out, so that what a daemon sent can be shown too.
 */
#pragma once

#include "base/json.h"

struct ff_page { /* one entry */
	const char *file;
	size_t number; /* in its file, from 1 */
	const char *id, *title, *category, *role, *domain; /* "" where missing */
	const struct ff_json_node *entry;
};

struct ff_pages {
	struct ff_page *v; /* in order of adding */
	size_t n, cap;
	struct ff_json **docs;
	char **files;
	size_t ndocs, cdocs, cfiles;
};

/* Adds a document: an array of entries. Returns 0, FF_EJSON or FF_ESCHEMA with err. */
int ff_pages_add(struct ff_pages *p, const char *file, struct ff_str json, struct ff_err *err);
void ff_pages_finish(struct ff_pages *p);
/* The first entry of this fault, NULL if there is none; the next one behind `after`. */
const struct ff_page *ff_pages_find(const struct ff_pages *p, const char *id,
				    const struct ff_page *after);
/* All entries of this fault, in the order of roles: what can start a failure first; *ret is
 * malloc'd. Returns how many. */
size_t ff_pages_of(const struct ff_pages *p, const char *id, const struct ff_page ***ret);

/* Ids that are spelled nearly like this one, the nearest first, each once. Returns how many. */
size_t ff_pages_near(const struct ff_pages *p, const char *id, const char **ret, size_t cap);

/* "cuda, data, memory": the categories there are, each once, in order. Appended. */
void ff_pages_categories(const struct ff_pages *p, struct ff_buf *out);
bool ff_pages_has_category(const struct ff_pages *p, const char *category);

/* A page that has all the words somewhere. */
struct ff_page_hit {
	const struct ff_page *page;
	uint32_t score; /* id before title before tags, what it matches, and the rest of its text */
};

#define FF_SEARCH_WORDS 16u /* further ones are ignored */

/* words: separated by blanks, in any case. The best first, ties by id, then in order of adding;
 * *ret is malloc'd, NULL for none. Returns how many. */
size_t ff_pages_search(const struct ff_pages *p, struct ff_str words, struct ff_page_hit **ret);

/* Adds the page of a fault for a screen: all its entries. */
void ff_page_text(const struct ff_pages *p, const char *id, unsigned width, struct ff_buf *out);
/* {"schema":"firstfault.fault/1","id","title","category","entries":[...]}: entries as 6.6 has them;
 * no newline behind it. */
void ff_page_json(const struct ff_pages *p, const char *id, struct ff_buf *out);
/* One entry as an item of a list: {"id","title","category","role","domain","file","texts"}. */
void ff_page_item(const struct ff_page *page, struct ff_jw *w);
