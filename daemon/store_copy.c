#include "store_copy.h"

#include "store_db.h"

#include <errno.h>
#include <fcntl.h>
#include <sqlite3.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define STEP_PAGES 1024 /* between two looks at whether it is to stop */

static int copy_steps(sqlite3_backup *b, const atomic_bool *stop)
{
	int rc = SQLITE_OK;
	while (rc == SQLITE_OK && !(stop && atomic_load(stop))) {
		rc = sqlite3_backup_step(b, STEP_PAGES);
	}
	int end = sqlite3_backup_finish(b);
	return rc == SQLITE_DONE ? end : rc == SQLITE_OK ? SQLITE_INTERRUPT : rc;
}

int store_copy_pages(
	sqlite3 *from, const char *to, const atomic_bool *stop, char *why, size_t size)
{
	sqlite3 *db = NULL;
	int fd = open(to, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd < 0) {
		int e = errno;
		(void)snprintf(why, size, "%s", strerror(e));
		return -e;
	}
	close(fd);
	int rc = sqlite3_open_v2(to, &db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX, NULL);
	if (rc == SQLITE_OK) { /* no journal: a copy that is not whole is thrown away */
		rc = sqlite3_exec(db, "PRAGMA journal_mode=OFF;PRAGMA synchronous=OFF", NULL, NULL,
			NULL);
	}
	if (rc == SQLITE_OK) {
		sqlite3_backup *b = sqlite3_backup_init(db, "main", from, "main");
		rc = b ? copy_steps(b, stop) : sqlite3_errcode(db);
	}
	sqlite3_close(db);
	if (rc != SQLITE_OK) {
		(void)snprintf(why, size, "%s", sqlite3_errstr(rc));
	}
	return rc == SQLITE_OK ? 0 : rc == SQLITE_INTERRUPT ? -ECANCELED : FF_EDB;
}

static const char find_runs[] =
	"SELECT number, segment_first, segment_last, segment_length FROM run "
	"WHERE number NOT IN (SELECT run FROM going) ORDER BY number";

static int each_run(sqlite3 *db, store_copy_fn *fn, void *ud)
{
	sqlite3_stmt *s = NULL;
	int rc = sqlite3_prepare_v2(db, find_runs, -1, &s, NULL);
	if (rc == SQLITE_OK) {
		while ((rc = sqlite3_step(s)) == SQLITE_ROW) {
			struct segment_range range = {(uint32_t)sqlite3_column_int64(s, 1),
				{(uint32_t)sqlite3_column_int64(s, 2),
					(uint64_t)sqlite3_column_int64(s, 3)}};
			fn(ud, (uint32_t)sqlite3_column_int64(s, 0), range);
		}
	}
	sqlite3_finalize(s);
	return rc == SQLITE_DONE ? SQLITE_OK : rc;
}

int store_copy(const char *state, const char *to, const atomic_bool *stop, store_copy_fn *fn,
	void *ud, struct ff_err *err)
{
	struct ff_buf path = {0};
	sqlite3 *db = NULL;
	char why[160] = "";
	ff_buf_addf(&path, "%s/store.db", state);
	int rc = sqlite3_open_v2(
		path.p, &db, SQLITE_OPEN_READONLY | SQLITE_OPEN_NOMUTEX, NULL);
	if (rc == SQLITE_OK) {
		rc = sqlite3_busy_timeout(db, STORE_BUSY_MS);
	}
	/* the first look inside the transaction is the moment */
	rc = rc == SQLITE_OK ? sqlite3_exec(db, "BEGIN", NULL, NULL, NULL) : rc;
	rc = rc == SQLITE_OK ? each_run(db, fn, ud) : rc;
	int r = FF_EDB;
	if (rc == SQLITE_OK) {
		r = store_copy_pages(db, to, stop, why, sizeof why);
	} else {
		(void)snprintf(why, sizeof why, "%s", sqlite3_errmsg(db));
	}
	sqlite3_close(db);
	if (r < 0) {
		(void)ff_err_set(
			err, r, "cannot copy the store \"%s\" to \"%s\": %s", path.p, to, why);
	}
	ff_buf_finish(&path);
	return r;
}
