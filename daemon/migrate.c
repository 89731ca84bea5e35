#include "migrate.h"

#include "base/buf.h"
#include "base/embed.h"
#include "shell/log.h"
#include "store_copy.h"
#include "store_db.h"

#include <sqlite3.h>

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
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
	return ff_err_set(err, FF_EDAMAGE,
		"the store \"%s\" is damaged (%s); it was left as it is: restore it from a "
		"backup, or start once with --set-aside to begin with an empty one",
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

/* ---- a copy of the store as it is, before anything in it changes */

static void add_copy_name(struct ff_buf *out, const char *path, int64_t version, bool part)
{
	ff_buf_addf(out, "%s.v%lld%s", path, (long long)version, part ? ".part" : "");
}

static int fail_copy(const char *copy, const char *why, struct ff_err *err)
{
	return ff_err_set(err, FF_EDB,
		"the store has to be copied to \"%s\" before this newer firstfault changes it: %s; "
		"it was left as it is: make room, or move other files away",
		copy, why);
}

/* SQLite would find out too, but only after it has filled the disk for everybody. */
static int check_room(sqlite3 *db, const char *path, const char *copy, struct ff_err *err)
{
	struct statvfs fs;
	int64_t pages = 0, bytes = 0;
	char why[160];
	int rc = ask(db, "PRAGMA page_count", &pages, NULL, 0);
	if (rc == SQLITE_OK) {
		rc = ask(db, "PRAGMA page_size", &bytes, NULL, 0);
	}
	if (rc != SQLITE_OK) {
		return fail(db, path, "read", err);
	}
	uint64_t need = (uint64_t)pages * (uint64_t)bytes;
	uint64_t room = statvfs(path, &fs) < 0 ? need : (uint64_t)fs.f_bavail * fs.f_frsize;
	if (room >= need) {
		return 0;
	}
	(void)snprintf(why, sizeof why, "that needs %llu bytes, the disk has %llu",
		(unsigned long long)need, (unsigned long long)room);
	return fail_copy(copy, why, err);
}

/* The bytes of a file, or the names in a folder. */
static int sync_path(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	int r = fd < 0 || fsync(fd) < 0 ? -errno : 0;
	if (fd >= 0) {
		close(fd);
	}
	return r;
}

static int sync_folder_of(const char *path)
{
	const char *slash = strrchr(path, '/');
	struct ff_buf folder = {0};
	ff_buf_add(&folder, slash ? path : ".", slash ? (size_t)(slash - path) + 1 : 1);
	int r = sync_path(folder.p);
	ff_buf_finish(&folder);
	return r;
}

static int write_part(sqlite3 *db, const char *part, const char *copy, struct ff_err *err)
{
	char why[160];
	(void)unlink(part); /* of an attempt that was cut off */
	int r = store_copy_pages(db, part, NULL, why, sizeof why);
	return r == 0 ? 0 : fail_copy(copy, why, err);
}

static int copy_first(sqlite3 *db, const char *path, int64_t version, struct ff_err *err)
{
	struct ff_buf copy = {0}, part = {0};
	add_copy_name(&copy, path, version, false);
	add_copy_name(&part, path, version, true);
	int r = check_room(db, path, copy.p, err);
	if (r == 0) {
		r = write_part(db, part.p, copy.p, err);
	}
	if (r == 0) {
		int e = sync_path(part.p);
		if (e == 0) {
			e = rename(part.p, copy.p) < 0 ? -errno : sync_folder_of(path);
		}
		r = e < 0 ? fail_copy(copy.p, strerror(-e), err) : 0;
	}
	if (r < 0) {
		(void)unlink(part.p);
	} else {
		ff_log_info("store", "schema %lld is kept as \"%s\"", (long long)version, copy.p);
	}
	ff_buf_finish(&copy);
	ff_buf_finish(&part);
	return r;
}

/* Only the newest copy stays. */
static void drop_copies(const char *path, int64_t but)
{
	for (int64_t v = 1; v <= (int64_t)schema_files_count; v++) {
		struct ff_buf name = {0};
		add_copy_name(&name, path, v, false);
		if (v != but) {
			(void)unlink(name.p);
		}
		ff_buf_finish(&name);
	}
}

/* ---- migrations */

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
	int rc = run(db, sql);
	sqlite3_free(sql);
	return rc;
}

/* All that is missing, or nothing: one transaction. */
static int apply_all(
	sqlite3 *db, const char *path, int64_t version, ff_usec now_us, struct ff_err *err)
{
	const char *what = "the beginning";
	int rc = run(db, "BEGIN IMMEDIATE");
	for (size_t i = (size_t)version; i < schema_files_count && rc == SQLITE_OK; i++) {
		what = schema_files[i].name;
		rc = apply(db, i, now_us);
	}
	if (rc == SQLITE_OK) {
		what = "the end";
		rc = run(db, "COMMIT");
	}
	if (rc == SQLITE_OK) {
		return 0;
	}
	(void)ff_err_set(err, FF_EDB,
		"cannot bring the store \"%s\" to schema %zu (%s): %s; it was left as it is", path,
		schema_files_count, what, sqlite3_errmsg(db));
	(void)run(db, "ROLLBACK");
	return FF_EDB;
}

static int upgrade(sqlite3 *db, const char *path, ff_usec now_us, struct ff_err *err)
{
	int64_t version = 0;
	int rc = ask(db, "PRAGMA user_version", &version, NULL, 0);
	if (rc != SQLITE_OK) {
		return fail(db, path, "read", err);
	}
	if ((size_t)version >= schema_files_count) {
		return 0;
	}
	int r = version ? copy_first(db, path, version, err) : 0;
	if (r == 0) {
		r = apply_all(db, path, version, now_us, err);
	}
	if (version) {
		drop_copies(path, r == 0 ? version : 0); /* of no use after a failure */
	}
	return r;
}

/* auto_vacuum holds for a new store only, and has to come first. secure_delete: what is deleted is
 * overwritten, so that a job that is forgotten is not left in free pages. */
static const char settings[] = "PRAGMA auto_vacuum=INCREMENTAL;"
			       "PRAGMA trusted_schema=OFF;"
			       "PRAGMA secure_delete=ON;"
			       "PRAGMA foreign_keys=ON;"
			       "PRAGMA journal_mode=WAL;"
			       "PRAGMA synchronous=FULL;"
			       "PRAGMA journal_size_limit=16777216;";

/* A store of before it gave room back is rewritten once; if that fails it stays as it is. */
static void rewrite(sqlite3 *db, const char *path)
{
	int64_t mode = 0, pages = 0;
	if (ask(db, "PRAGMA auto_vacuum", &mode, NULL, 0) != SQLITE_OK || mode == 2 ||
		ask(db, "PRAGMA page_count", &pages, NULL, 0) != SQLITE_OK) {
		return;
	}
	ff_log_info("store", "\"%s\" (%lld pages) is rewritten once, so that it can give room back",
		path, (long long)pages);
	if (run(db, "VACUUM") != SQLITE_OK) {
		ff_log_warn("store",
			"\"%s\" can't be rewritten (%s): what is deleted in it is used again, but "
			"its file doesn't shrink, ignoring",
			path, sqlite3_errmsg(db));
	}
}

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
		rc = sqlite3_busy_timeout(db, STORE_BUSY_MS);
	}
	if (rc == SQLITE_OK) {
		rc = run(db, settings);
	}
	r = rc == SQLITE_OK ? upgrade(db, path, now_us, err) : fail(db, path, "open", err);
	if (r < 0) {
		sqlite3_close(db);
		return r;
	}
	rewrite(db, path);
	*ret = db;
	return 0;
}
