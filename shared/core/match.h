/* match: a complete record against the catalogue. (Includes PCRE2 inside.)
 *
 * Only lines of role FF_LINE_TEXT are offered. A pattern's subject is the record's text from the
 * marked line on, at most FF_SUBJECT_MAX bytes. On one line a specific text beats a generic one; of
 * several specific ones the one with the longer literal, then the smaller index holds. Of a chained
 * exception the first exception is the fault (law 6): later exception lines of the chain give no
 * primary. An exception that nothing matches becomes fault `python-exception` with its class.
 */
#pragma once

#include "core/joiner.h"

struct ff_field {
	enum ff_field_id id;
	char *value; /* NUL-terminated copy of the captured bytes (NUL bytes in it: cut there) */
};

struct ff_fields {
	struct ff_field *v; /* in order of id */
	size_t n, cap;
};

void ff_fields_finish(struct ff_fields *f);
void ff_fields_set(struct ff_fields *f, enum ff_field_id id, struct ff_str value);
struct ff_str ff_fields_get(const struct ff_fields *f, enum ff_field_id id);

struct ff_hit {
	const struct ff_text *text; /* NULL: an exception that no text knows */
	size_t line;                /* index into the record's lines */
	struct ff_fields fields;    /* `rank` also of "(RANK 3)" and of the row of a table */
	struct ff_str evidence;     /* the line and what follows it; borrowed from the record */
	struct ff_str frame;        /* deepest user frame "train.py:412 in step: code"; or empty */
	bool quoted;                /* the line is a copy of another process's text */
	unsigned copies;            /* processes that wrote it at once (glued lines); 1 as a rule */
};

#define FF_MATCH_UNKNOWN "python-exception" /* fault of an exception that no text knows */

struct ff_matcher; /* match data and limits: one per job, not shared between threads */

struct ff_matcher *ff_matcher_create(const struct ff_catalog *c);
void ff_matcher_destroy(struct ff_matcher *m);
/* Calls fn for each hit in order of line; one line has at most one. Texts of progress lines and
 * success markers give none. Fields are given to fn (it finishes or keeps them); the rest of the
 * hit is borrowed during the call. Returns how many patterns reached their match limit. */
typedef void ff_hit_fn(void *ud, const struct ff_record *rec, struct ff_hit *hit);
unsigned ff_matcher_run(struct ff_matcher *m, const struct ff_record *rec, ff_hit_fn *fn, void *ud);
/* Does this text hold on the subject, whatever other texts do? 1, 0; -1: it reached the limit. */
int ff_matcher_try(struct ff_matcher *m, const struct ff_text *t, struct ff_str subject);
/* Does one of these texts hold on the entry as a record of its own? Cheaper than to make one. */
bool ff_matcher_holds(struct ff_matcher *m, struct ff_str entry, const uint32_t *marks,
		      size_t nmarks);
/* Is this entry a progress line or success marker? marks: ids of the texts whose literal it
 * holds. */
enum ff_progress { FF_PROGRESS_NONE, FF_PROGRESS_STEP, FF_PROGRESS_DONE };
enum ff_progress ff_matcher_progress(struct ff_matcher *m, struct ff_str entry,
				     const uint32_t *marks, size_t nmarks);
/* The number of a progress line (field `step`), or FF_UNKNOWN. Scans the entry itself. */
int64_t ff_matcher_step(struct ff_matcher *m, struct ff_str entry);
