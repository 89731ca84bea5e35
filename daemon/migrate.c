#include "migrate.h"

#include "base/embed.h"

#include <sqlite3.h>

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define APPLICATION_ID 0x46466c74 /* "FFlt": other databases are refused */

extern const struct ff_embedded schema_files[];
extern const size_t schema_files_count;

static int fail(sqlite3 *db, const char *path, const char *what, struct ff_err *err)
{
	return ff_err_set(err, FF_EDB, "cannot %s the store \"%s\": %s", what, path,
		db ? sqlite3_errmsg(db) : "out of memory");
}

static bool is_damage(int rc)
{
	return (rc & 0xff) == SQLITE_CORRUPT || (rc & 0xff) == SQLITE_NOTADB;
}

/* One row's first column, as a number or as text (copied, at most n bytes). */
static int ask(sqlite3 *db, const char *sql, int64_t *ret_number, char *ret_text, size_t n)
{
	sqlite3_stmt *s = NULL;
	int rc = sqlite3_prepare_v2(db, sql, -1, &s, NULL);
	if (rc == SQLITE_OK) {
		rc = sqlite3_step(s);
	}
	if (rc == SQLITE_ROW) {
		const unsigned char *text = sqlite3_column_text(s, 0);
		if (ret_number) {
			*ret_number = sqlite3_column_int64(s, 0);
		}
		if (ret_text) {
			sqlite3_snprintf((int)n, ret_text, "%s", text ? (const char *)text : "");
		}
		rc = SQLITE_OK;
	}
	sqlite3_finalize(s);
	return rc;
}

static int refuse_damage(const char *path, const char *text, struct ff_err *err)
{
	return ff_err_set(err, FF_EDB,
		"the store \"%s\" is damaged (%s); it was left as it is: restore it from a copy, "
		"or move it away to begin with an empty one",
		path, text);
}

/* Nothing is written through this connection, not even by a checkpoint when it closes. */
static int check(sqlite3 *db, const char *path, struct ff_err *err)
{
	int64_t id = 0, version = 0, tables = 0;
	char text[200] = "";
	int rc = ask(db, "PRAGMA application_id", &id, NULL, 0);
	if (rc == SQLITE_OK) {
		rc = ask(db, "PRAGMA user_version", &version, NULL, 0);
	}
	if (rc == SQLITE_OK) {
		rc = ask(db, "SELECT count(*) FROM sqlite_schema", &tables, NULL, 0);
	}
	if (rc != SQLITE_OK) {
		return is_damage(rc) ? refuse_damage(path, sqlite3_errmsg(db), err)
				     : fail(db, path, "read", err);
	}
	if (id != APPLICATION_ID && (id || version || tables)) {
		return ff_err_set(err, FF_EDB, "\"%s\" is a database of another program", path);
	}
	if (version < 0 || (size_t)version > schema_files_count) {
		return ff_err_set(err, FF_EVERSION,
			"the store \"%s\" has schema %lld of a newer firstfault; this one knows "
			"schema %zu and older",
			path, (long long)version, schema_files_count);
	}
	rc = ask(db, "PRAGMA quick_check(1)", NULL, text, sizeof text);
	if (rc != SQLITE_OK || strcmp(text, "ok") != 0) {
		return rc == SQLITE_OK || is_damage(rc)
			? refuse_damage(path, rc == SQLITE_OK ? text : sqlite3_errmsg(db), err)
			: fail(db, path, "read", err);
	}
	return 0;
}

/* A look at an existing file before anything is written. */
static int look(const char *path, struct ff_err *err)
{
	sqlite3 *db = NULL;
	int flags = SQLITE_OPEN_READONLY | SQLITE_OPEN_NOMUTEX;
	int rc = sqlite3_open_v2(path, &db, flags, NULL);
	int r = rc == SQLITE_OK ? check(db, path, err) : fail(db, path, "open", err);
	sqlite3_close(db);
	return r;
}

static int run(sqlite3 *db, const char *sql)
{
	return sqlite3_exec(db, sql, NULL, NULL, NULL);
}

/* One migration, with the version it leads to. */
static int apply(sqlite3 *db, size_t index, ff_usec now_us)
{
	const struct ff_embedded *file = &schema_files[index];
	char *sql = sqlite3_mprintf("%.*s;PRAGMA user_version=%d;PRAGMA application_id=%d;"
				    "INSERT INTO upgrade VALUES(%d,%d,%Q,%lld)",
		(int)file->len, (const char *)file->data, (int)index + 1, APPLICATION_ID,
		(int)index, (int)index + 1, FF_VERSION, (long long)now_us);
	if (!sql) {
		return SQLITE_NOMEM;
	}
	int rc = run(db, "BEGIN IMMEDIATE");
	if (rc == SQLITE_OK) {
		rc = run(db, sql);
	}
	if (rc == SQLITE_OK) {
		rc = run(db, "COMMIT");
	}
	sqlite3_free(sql);
	return rc;
}

static int upgrade(sqlite3 *db, const char *path, ff_usec now_us, struct ff_err *err)
{
	int64_t version = 0;
	int rc = ask(db, "PRAGMA user_version", &version, NULL, 0);
	for (size_t i = (size_t)version; i < schema_files_count && rc == SQLITE_OK; i++) {
		rc = apply(db, i, now_us);
		if (rc != SQLITE_OK) {
			return ff_err_set(err, FF_EDB, "cannot apply %s to the store \"%s\": %s",
				schema_files[i].name, path, sqlite3_errmsg(db));
		}
	}
	return rc == SQLITE_OK ? 0 : fail(db, path, "read", err);
}

/* busy_timeout: a reader of the command line may hold the database for a moment. */
static const char settings[] = "PRAGMA busy_timeout=5000;"
			       "PRAGMA trusted_schema=OFF;"
			       "PRAGMA foreign_keys=ON;"
			       "PRAGMA journal_mode=WAL;"
			       "PRAGMA synchronous=FULL;";

int migrate_open(const char *path, ff_usec now_us, struct sqlite3 **ret, struct ff_err *err)
{
	struct stat st;
	int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	int r = fd < 0 || fstat(fd, &st) < 0 ? -errno : 0;
	if (fd >= 0) {
		close(fd);
	}
	if (r < 0) {
		return ff_err_set(err, r, "cannot open the store \"%s\": %s", path, strerror(-r));
	}
	if (st.st_size > 0) {
		r = look(path, err);
		if (r < 0) {
			return r;
		}
	}
	sqlite3 *db = NULL;
	int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX;
	int rc = sqlite3_open_v2(path, &db, flags, NULL);
	if (rc == SQLITE_OK) {
		rc = run(db, settings);
	}
	r = rc == SQLITE_OK ? upgrade(db, path, now_us, err) : fail(db, path, "open", err);
	if (r < 0) {
		sqlite3_close(db);
		return r;
	}
	*ret = db;
	return 0;
}
