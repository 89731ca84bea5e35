#include "store_keep.h"

#include "base/arr.h"
#include "base/buf.h"
#include "base/limits.h"
#include "base/mem.h"
#include "segment.h"

#include <errno.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define KEEP_ROWS 512u    /* deleted in one transaction */
#define KEEP_PAGES 256u   /* given back in one */
#define KEEP_FILES 8u     /* segment files removed in one step */
#define SLACK_PAGES 256   /* free pages that may stay, or a sixteenth of all */
#define LOG_PAGES 1000    /* pages in the log that make a checkpoint due, as SQLite's own default */
#define FRAME_HEAD 24u    /* bytes before each page in the log (sqlite.org/fileformat2.html 4.1) */
#define READ_LOCKS 123    /* byte of the first reader's lock in the -shm file, of five (the same,
			     sqlite.org/walformat.html 2.3) */

/* ---- the tables that have rows of runs */

/* A row is known by its primary key. With its columns, children come before their parents. */
static const char find_tables[] =
	"SELECT m.name, (SELECT group_concat(name) FROM (SELECT name FROM "
	"pragma_table_info(m.name) "
	" WHERE pk > 0 ORDER BY pk)), "
	"(SELECT count(*) FROM sqlite_schema t, pragma_foreign_key_list(t.name) f"
	" WHERE f.\"table\" = m.name AND t.name <> m.name) AS children "
	"FROM sqlite_schema m JOIN pragma_table_info(m.name) c ON c.name = 'run' "
	"WHERE m.type = 'table' AND m.name NOT IN ('run', 'going') ORDER BY children, m.name";

static void add_table(struct store_keep *k, const char *name, const char *key)
{
	struct ff_buf some = {0}, rows = {0}, let_go = {0};
	ff_buf_addf(&some, "(%s) IN (SELECT %s FROM \"%s\" WHERE run=?1 ORDER BY %s LIMIT %u)", key,
		key, name, key, KEEP_ROWS);
	ff_buf_addf(&rows, "DELETE FROM \"%s\" WHERE %s", name, some.p);
	if (!strcmp(name, "tail")) {
		ff_buf_addf(&let_go,
			"INSERT OR IGNORE INTO let_go(inode, head_length, head_hash) "
			"SELECT inode, head_length, head_hash FROM tail "
			"WHERE head_length > 0 AND %s;"
			"DELETE FROM let_go WHERE id <= (SELECT max(id) FROM let_go) - %u",
			some.p, FF_LET_GO_MAX);
	}
	*FF_ARR_ADD(k->tables, k->ntables, k->ctables) = (struct store_keep_table){
		let_go.p ? ff_buf_take(&let_go) : NULL, ff_buf_take(&rows)};
	ff_buf_finish(&some);
}

static int on_log(void *ud, sqlite3 *db, const char *name, int pages)
{
	struct store_keep *k = ud;
	int left = pages;
	if (pages >= LOG_PAGES) {
		/* what can't be done now is done after a later commit */
		(void)sqlite3_wal_checkpoint_v2(db, name, SQLITE_CHECKPOINT_PASSIVE, &left, NULL);
	}
	k->log_bytes = (uint64_t)pages * (4096u + FRAME_HEAD);
	return SQLITE_OK;
}

int store_keep_init(struct store_keep *k, const struct store_db *base, struct ff_err *err)
{
	sqlite3_stmt *s = NULL;
	*k = (struct store_keep){.base = base, .log_max = FF_LOG_BYTES};
	int rc = sqlite3_prepare_v2(base->db, find_tables, -1, &s, NULL);
	if (rc == SQLITE_OK) {
		while ((rc = sqlite3_step(s)) == SQLITE_ROW) {
			add_table(k, (const char *)sqlite3_column_text(s, 0),
				(const char *)sqlite3_column_text(s, 1));
		}
	}
	if (rc != SQLITE_DONE) {
		(void)ff_err_set(err, FF_EDB, "cannot read the tables of the store in \"%s\": %s",
			base->state, sqlite3_errmsg(base->db));
	}
	sqlite3_finalize(s);
	(void)sqlite3_wal_hook(base->db, on_log, k);
	return rc == SQLITE_DONE ? 0 : FF_EDB;
}

void store_keep_finish(struct store_keep *k)
{
	for (size_t i = 0; i < k->ntables; i++) {
		free(k->tables[i].let_go);
		free(k->tables[i].rows);
	}
	free(k->tables);
	free(k->going);
	*k = (struct store_keep){0};
}

void store_keep_add(struct store_keep *k, uint32_t run)
{
	*FF_ARR_ADD(k->going, k->ngoing, k->cgoing) = run;
}

/* ---- steps */

static int64_t ask(const struct store_keep *k, const char *sql)
{
	sqlite3_stmt *s = NULL;
	int64_t v = 0;
	if (sqlite3_prepare_v2(k->base->db, sql, -1, &s, NULL) == SQLITE_OK &&
		sqlite3_step(s) == SQLITE_ROW) {
		v = sqlite3_column_int64(s, 0);
	}
	sqlite3_finalize(s);
	return v;
}

void store_keep_measure(const struct store_keep *k, uint64_t *ret_bytes, uint64_t *ret_free)
{
	uint64_t page = (uint64_t)ask(k, "PRAGMA page_size");
	*ret_bytes = (uint64_t)ask(k, "PRAGMA page_count") * page;
	*ret_free = (uint64_t)ask(k, "PRAGMA freelist_count") * page;
}

static int run_sql(const struct store_keep *k, const char *sql)
{
	return sqlite3_exec(k->base->db, sql, NULL, NULL, NULL);
}

/* Statements with one parameter, the run. */
static int run_for(const struct store_keep *k, const char *sql, uint32_t run)
{
	int rc = SQLITE_OK;
	while (*sql && rc == SQLITE_OK) {
		sqlite3_stmt *s = NULL;
		rc = sqlite3_prepare_v2(k->base->db, sql, -1, &s, &sql);
		if (rc == SQLITE_OK && s) {
			if (sqlite3_bind_parameter_count(s)) {
				(void)sqlite3_bind_int64(s, 1, run);
			}
			rc = sqlite3_step(s) == SQLITE_DONE ? SQLITE_OK
							    : sqlite3_errcode(k->base->db);
		}
		sqlite3_finalize(s);
	}
	return rc;
}

/* All of them in one transaction. Returns how many rows the last one deleted, or -1. */
static int transact(const struct store_keep *k, const char *first, const char *then, uint32_t run)
{
	int n = -1;
	int rc = run_sql(k, "BEGIN IMMEDIATE");
	if (rc == SQLITE_OK && first) {
		rc = run_for(k, first, run);
	}
	if (rc == SQLITE_OK) {
		rc = run_for(k, then, run);
		n = sqlite3_changes(k->base->db);
	}
	if (rc == SQLITE_OK) {
		rc = run_sql(k, "COMMIT");
	}
	if (rc != SQLITE_OK && !sqlite3_get_autocommit(k->base->db)) {
		(void)run_sql(k, "ROLLBACK");
	}
	return rc == SQLITE_OK ? n : -1;
}

static bool step_files(struct store_keep *k)
{
	int r = segment_remove_some(k->base->state, k->going[0], KEEP_FILES, &k->freed);
	k->error = r < 0 ? -r : 0;
	if (r == 0) {
		k->stage = STORE_KEEP_ROWS;
		k->table = 0;
	}
	return r >= 0;
}

static bool step_rows(struct store_keep *k)
{
	const struct store_keep_table *t = &k->tables[k->table];
	int n = k->table < k->ntables ? transact(k, t->let_go, t->rows, k->going[0]) : 0;
	if (n >= 0 && n < (int)KEEP_ROWS && k->table < k->ntables) {
		k->table++;
	}
	if (k->table == k->ntables) {
		k->stage = STORE_KEEP_END;
	}
	return n >= 0;
}

static bool step_end(struct store_keep *k)
{
	int n = transact(k, "DELETE FROM run WHERE number=?1", "DELETE FROM going WHERE run=?1",
		k->going[0]);
	k->stage = n < 0 ? k->stage : STORE_KEEP_VACUUM;
	return n >= 0;
}

static bool step_vacuum(struct store_keep *k)
{
	char sql[64];
	int64_t pages = ask(k, "PRAGMA page_count"), free_pages = ask(k, "PRAGMA freelist_count");
	int64_t slack = pages / 16 > SLACK_PAGES ? pages / 16 : SLACK_PAGES;
	if (free_pages <= slack) {
		k->stage = STORE_KEEP_LOG;
		return true;
	}
	int64_t n = free_pages - slack;
	(void)snprintf(sql, sizeof sql, "PRAGMA incremental_vacuum(%lld)",
		(long long)(n < (int64_t)KEEP_PAGES ? n : (int64_t)KEEP_PAGES));
	int rc = run_sql(k, sql);
	if (rc == SQLITE_OK && ask(k, "PRAGMA freelist_count") >= free_pages) {
		k->stage = STORE_KEEP_LOG; /* a store without auto_vacuum */
	}
	return rc == SQLITE_OK;
}

/* The log from its beginning, all of it in the database. False: somebody reads. */
static bool begin_log_anew(struct store_keep *k)
{
	(void)sqlite3_busy_timeout(k->base->db, 0); /* commits don't wait for readers */
	int rc = sqlite3_wal_checkpoint_v2(
		k->base->db, NULL, SQLITE_CHECKPOINT_TRUNCATE, NULL, NULL);
	(void)sqlite3_busy_timeout(k->base->db, STORE_BUSY_MS);
	k->held = rc == SQLITE_BUSY || rc == SQLITE_LOCKED;
	k->log_bytes = rc == SQLITE_OK ? 0 : k->log_bytes;
	return rc == SQLITE_OK;
}

void store_keep_rest(struct store_keep *k)
{
	(void)begin_log_anew(k);
}

static bool step(struct store_keep *k)
{
	switch (k->stage) {
	case STORE_KEEP_FILES: return step_files(k);
	case STORE_KEEP_ROWS: return step_rows(k);
	case STORE_KEEP_END: return step_end(k);
	case STORE_KEEP_VACUUM: return step_vacuum(k);
	case STORE_KEEP_LOG: return begin_log_anew(k);
	}
	return false;
}

enum store_keep_result store_keep_step(
	struct store_keep *k, uint32_t *ret_run, uint64_t *ret_bytes, char *why, size_t size)
{
	bool log = k->stage == STORE_KEEP_LOG;
	uint64_t bytes, free_bytes;
	store_keep_measure(k, &bytes, &free_bytes);
	if (k->stage == STORE_KEEP_FILES && !k->file_bytes) {
		k->file_bytes = (int64_t)bytes;
		k->freed = 0;
	}
	k->held = false;
	k->error = 0;
	if (!step(k)) {
		(void)snprintf(why, size, "%s",
			k->error         ? strerror(k->error)
				: k->held ? "somebody reads the store"
					  : sqlite3_errmsg(k->base->db));
		return STORE_KEEP_LATER;
	}
	if (!log) {
		return STORE_KEEP_MORE;
	}
	*ret_run = k->going[0];
	*ret_bytes = k->freed;
	if (k->file_bytes > (int64_t)bytes) {
		*ret_bytes += (uint64_t)(k->file_bytes - (int64_t)bytes);
	}
	k->ngoing--;
	memmove(k->going, k->going + 1, k->ngoing * sizeof *k->going);
	k->stage = STORE_KEEP_FILES;
	k->file_bytes = 0;
	return STORE_KEEP_GONE;
}

int store_keep_resume(struct store_keep *k, struct ff_err *err)
{
	sqlite3_stmt *s = NULL;
	int rc = sqlite3_prepare_v2(
		k->base->db, "SELECT run FROM going ORDER BY run", -1, &s, NULL);
	while (rc == SQLITE_OK && sqlite3_step(s) == SQLITE_ROW) {
		store_keep_add(k, (uint32_t)sqlite3_column_int64(s, 0));
	}
	sqlite3_finalize(s);
	bool good = rc == SQLITE_OK;
	for (; k->ngoing && good; k->ngoing--) {
		k->stage = STORE_KEEP_FILES;
		while (good && k->stage < STORE_KEEP_VACUUM) {
			good = step(k);
		}
		memmove(k->going, k->going + 1, (k->ngoing - 1) * sizeof *k->going);
	}
	k->stage = STORE_KEEP_FILES;
	return good ? 0
		    : ff_err_set(err, FF_EDB,
			      "cannot finish taking runs out of the store in \"%s\": %s",
			      k->base->state, sqlite3_errmsg(k->base->db));
}

/* ---- the log's length */

/* Another process that holds a reader's lock on the database, 0 if none is seen. */
static long find_reader(const struct store_keep *k)
{
	struct ff_buf path = {0};
	struct stat st;
	ff_buf_addf(&path, "%s/store.db-shm", k->base->state);
	FILE *locks = stat(path.p, &st) == 0 ? fopen("/proc/locks", "re") : NULL;
	ff_buf_finish(&path);
	char line[256];
	long found = 0;
	while (locks && !found && fgets(line, sizeof line, locks)) {
		long pid;
		unsigned long long inode, from;
		/* N: POSIX ADVISORY READ PID MAJOR:MINOR:INODE FROM TO (proc_locks(5)) */
		bool read = sscanf(line, "%*s %*s %*s %*s %ld %*x:%*x:%llu %llu", &pid, &inode,
				    &from) == 3;
		if (read && inode == (unsigned long long)st.st_ino && pid != (long)getpid() &&
			from >= READ_LOCKS && from < READ_LOCKS + 5) {
			found = pid;
		}
	}
	if (locks) {
		(void)fclose(locks);
	}
	return found;
}

bool store_keep_log_is_full(struct store_keep *k, char *why, size_t size)
{
	if (k->log_bytes < k->log_max || begin_log_anew(k) || !k->held) {
		return false;
	}
	long pid = find_reader(k);
	char who[64] = "";
	if (pid) {
		(void)snprintf(who, sizeof who, ", process %ld: end it", pid);
	}
	(void)snprintf(why, size,
		"%llu MiB wait in \"%s/store.db-wal\" because somebody reads the store%s",
		(unsigned long long)(k->log_bytes >> 20), k->base->state, who);
	return true;
}
