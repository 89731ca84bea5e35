/* store_keep: what the store's thread does between batches: it takes out runs that go, gives their
 * room back, and keeps the write-ahead log short. store*.c alone include it.
 *
 * A run that goes is named in the table `going` by the batch that says so, and is gone for good
 * from then on: a start finishes what was begun. Then, a step at a time, its segment files go, its
 * rows (of every table with a column `run`), the free pages at the end of the file, and what the
 * log still holds of it. A step is short: KEEP_ROWS rows, KEEP_PAGES pages, KEEP_FILES files.
 *
 * Everything here belongs to the thread that writes.
 */
#pragma once

#include "base/err.h"
#include "base/usec.h"
#include "store_db.h"

struct sqlite3_stmt;

enum store_keep_stage {
	STORE_KEEP_FILES,
	STORE_KEEP_ROWS,
	STORE_KEEP_END,    /* its own row, and the word that it goes */
	STORE_KEEP_VACUUM, /* free pages */
	STORE_KEEP_LOG,    /* the write-ahead log begins anew, so that it holds nothing of it */
};

struct store_keep_table {
	char *let_go, *rows; /* SQL; let_go NULL: nothing to remember of its rows */
};

struct store_keep {
	const struct store_db *base;
	struct store_keep_table *tables; /* children before parents */
	size_t ntables, ctables;
	uint32_t *going; /* runs; the first one is at work */
	size_t ngoing, cgoing;
	enum store_keep_stage stage;
	size_t table;      /* of STORE_KEEP_ROWS */
	int64_t file_bytes; /* of the database when the first one's turn came */
	int error;          /* errno of a segment file that can't be removed, 0 */
	uint64_t freed;     /* bytes of its segment files */
	uint64_t log_bytes; /* of the write-ahead log, as of the last commit */
	uint64_t log_max;   /* FF_LOG_BYTES; less in a test */
	bool held; /* something else reads the database, so that the log can't begin anew */
};

/* Finds the tables. Returns 0 or FF_EDB with err. */
int store_keep_init(struct store_keep *k, const struct store_db *base, struct ff_err *err);
void store_keep_finish(struct store_keep *k);
/* At the start: deletes the rest of runs that were going. */
int store_keep_resume(struct store_keep *k, struct ff_err *err);

void store_keep_add(struct store_keep *k, uint32_t run);
enum store_keep_result {
	STORE_KEEP_MORE,  /* call again */
	STORE_KEEP_GONE,  /* *ret_run is gone, with so many bytes */
	STORE_KEEP_LATER, /* it can't be done now: try again in a while */
};
/* One step; there is something to do (ngoing). */
enum store_keep_result store_keep_step(
	struct store_keep *k, uint32_t *ret_run, uint64_t *ret_bytes, char *why, size_t size);

/* There is time: the log is folded into the database, unless somebody reads. */
void store_keep_rest(struct store_keep *k);
/* Is the log longer than it may be, and can't be begun anew because somebody reads? Says who, as
 * far as it is known. */
bool store_keep_log_is_full(struct store_keep *k, char *why, size_t size);
/* Bytes of the database file, and of them free. */
void store_keep_measure(const struct store_keep *k, uint64_t *ret_bytes, uint64_t *ret_free);
