#include "base/buf.h"
#include "migrate.h"
#include "segment.h"
#include "store_copy.h"
#include "store_keep.h"

#include <check.h>
#include <errno.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static char folder[64], path[96];
static struct store_db base;
static struct store_keep keep;

static void setup(void)
{
	struct ff_err err = {0};
	(void)snprintf(folder, sizeof folder, "/tmp/ff-store-XXXXXX");
	ck_assert_ptr_nonnull(mkdtemp(folder));
	(void)snprintf(path, sizeof path, "%s/store.db", folder);
	base.state = folder;
	ck_assert_msg(migrate_open(path, 1, &base.db, &err) == 0, "%s", err.text);
	ck_assert_int_eq(sqlite3_exec(base.db, "PRAGMA synchronous=OFF", NULL, NULL, NULL), 0);
	ck_assert_msg(store_keep_init(&keep, &base, &err) == 0, "%s", err.text);
}

static void teardown(void)
{
	char command[128];
	sqlite3_close(base.db);
	store_keep_finish(&keep);
	(void)snprintf(command, sizeof command, "rm -rf %s", folder);
	ck_assert_int_eq(system(command), 0);
}

static void run(const char *sql)
{
	char *why = NULL;
	ck_assert_msg(
		sqlite3_exec(base.db, sql, NULL, NULL, &why) == SQLITE_OK, "%s: %s", sql, why);
}

static int64_t ask(const char *sql)
{
	sqlite3_stmt *s = NULL;
	ck_assert_msg(sqlite3_prepare_v2(base.db, sql, -1, &s, NULL) == SQLITE_OK, "%s: %s", sql,
		sqlite3_errmsg(base.db));
	ck_assert_int_eq(sqlite3_step(s), SQLITE_ROW);
	int64_t v = sqlite3_column_int64(s, 0);
	sqlite3_finalize(s);
	return v;
}

static uint64_t size_of(const char *name)
{
	char file[128];
	struct stat st;
	(void)snprintf(file, sizeof file, "%s/%s", folder, name);
	return stat(file, &st) < 0 ? 0 : (uint64_t)st.st_size;
}

/* A value for a column, whatever later migrations add. */
static void put_value(struct ff_buf *out, const char *table, const char *column, const char *type,
	int number)
{
	bool is_run = !strcmp(table, "run") && !strcmp(column, "number");
	if (is_run || !strcmp(column, "inode") ||
		(!strcmp(column, "run") && strcmp(table, "run") != 0)) {
		ff_buf_addf(out, "%d", number);
	} else if (!strcmp(type, "TEXT")) {
		ff_buf_addf(out, "'%s-%d'", column, number);
	} else if (!strcmp(type, "BLOB")) {
		ff_buf_addz(out, "x'00'");
	} else {
		ff_buf_addz(out, "1");
	}
}

static void add_row(const char *table, int number)
{
	struct ff_buf sql = {0};
	char list[96];
	sqlite3_stmt *s = NULL;
	(void)snprintf(list, sizeof list, "SELECT name, type FROM pragma_table_info('%s')", table);
	ck_assert_int_eq(sqlite3_prepare_v2(base.db, list, -1, &s, NULL), SQLITE_OK);
	ff_buf_addf(&sql, "INSERT INTO %s VALUES", table);
	for (char c = '('; sqlite3_step(s) == SQLITE_ROW; c = ',') {
		ff_buf_addc(&sql, c);
		put_value(&sql, table, (const char *)sqlite3_column_text(s, 0),
			(const char *)sqlite3_column_text(s, 1), number);
	}
	ff_buf_addc(&sql, ')');
	sqlite3_finalize(s);
	run(sql.p);
	ff_buf_finish(&sql);
}

/* A row in every table that has a column `run`, and so many events. */
static void fill(int number, int many)
{
	char sql[400];
	sqlite3_stmt *s = NULL;
	add_row("run", number);
	add_row("stream", number);
	ck_assert_int_eq(
		sqlite3_prepare_v2(base.db,
			"SELECT m.name FROM sqlite_schema m JOIN pragma_table_info(m.name) c "
			"ON c.name='run' WHERE m.type='table' AND m.name NOT IN "
			"('run', 'stream', 'going')",
			-1, &s, NULL),
		SQLITE_OK);
	while (sqlite3_step(s) == SQLITE_ROW) {
		add_row((const char *)sqlite3_column_text(s, 0), number);
	}
	sqlite3_finalize(s);
	(void)snprintf(sql, sizeof sql,
		"CREATE TEMP TABLE one AS SELECT * FROM event WHERE run=%d;"
		"UPDATE one SET text=randomblob(900)",
		number);
	run(sql);
	for (int i = 2; i <= many; i++) {
		(void)snprintf(sql, sizeof sql,
			"UPDATE one SET offset=%d;INSERT INTO event SELECT * FROM one", i);
		run(sql);
	}
	run("DROP TABLE one");
}

/* Rows of this run in every table that has some. */
static int64_t rows_of(int number)
{
	int64_t sum = 0;
	sqlite3_stmt *s = NULL;
	ck_assert_int_eq(
		sqlite3_prepare_v2(base.db,
			"SELECT m.name FROM sqlite_schema m JOIN pragma_table_info(m.name) c "
			"ON c.name='run' WHERE m.type='table' AND m.name<>'run'",
			-1, &s, NULL),
		SQLITE_OK);
	while (sqlite3_step(s) == SQLITE_ROW) {
		char sql[128];
		(void)snprintf(sql, sizeof sql, "SELECT count(*) FROM %s WHERE run=%d",
			sqlite3_column_text(s, 0), number);
		sum += ask(sql);
	}
	sqlite3_finalize(s);
	return sum;
}

/* A run is taken out of every table in short steps; the others stay, and the file shrinks. */
START_TEST(test_take_out)
{
	uint32_t gone = 0;
	uint64_t bytes = 0;
	char why[160] = "";
	int steps = 0;
	run("BEGIN");
	fill(1, 5000);
	fill(2, 40);
	run("COMMIT");
	(void)ask("PRAGMA wal_checkpoint(TRUNCATE)");
	uint64_t before = size_of("store.db");
	int64_t other = rows_of(2);
	ck_assert_int_ge(rows_of(1), 5004);
	run("INSERT INTO going VALUES(1)");
	store_keep_add(&keep, 1);
	enum store_keep_result r = STORE_KEEP_MORE;
	int64_t left = rows_of(1);
	for (; r == STORE_KEEP_MORE; steps++) {
		r = store_keep_step(&keep, &gone, &bytes, why, sizeof why);
		int64_t now = rows_of(1);
		ck_assert_int_le(left - now, 512);
		left = now;
	}
	ck_assert_int_eq(r, STORE_KEEP_GONE);
	ck_assert_uint_eq(gone, 1);
	ck_assert_int_ge(steps, 12);
	ck_assert_int_eq(rows_of(1), 0);
	ck_assert_int_eq(rows_of(2), other);
	ck_assert_int_eq(ask("SELECT count(*) FROM run WHERE number=1"), 0);
	ck_assert_int_eq(ask("SELECT count(*) FROM going"), 0);
	ck_assert_int_eq(ask("SELECT inode FROM let_go"), 1);
	ck_assert_uint_lt(size_of("store.db"), before / 2);
	ck_assert_uint_ge(bytes, before - size_of("store.db") - 65536);
	ck_assert_uint_eq(size_of("store.db-wal"), 0);
	ck_assert_uint_eq(keep.ngoing, 0);
}
END_TEST

/* What was begun is finished at the next start. */
START_TEST(test_resume)
{
	struct ff_err err = {0};
	uint64_t freed = 0;
	int fd = -1;
	run("BEGIN");
	fill(1, 1200);
	fill(2, 3);
	run("COMMIT");
	ck_assert_int_eq(
		segment_write(folder, 1, (struct segment_place){1, 0}, FF_STR("text"), &fd), 0);
	close(fd);
	run("INSERT INTO going VALUES(1);DELETE FROM event WHERE run=1 AND offset<600");
	ck_assert_msg(store_keep_resume(&keep, &err) == 0, "%s", err.text);
	ck_assert_int_eq(rows_of(1), 0);
	ck_assert_int_eq(ask("SELECT number FROM run"), 2);
	ck_assert_int_eq(segment_remove_some(folder, 1, 8, &freed), 0);
	ck_assert_uint_eq(freed, 0);
}
END_TEST

/* A reader that stays open: the log grows to its cap and no further; when it goes, all goes on. */
START_TEST(test_log_is_bounded)
{
	sqlite3 *reader = NULL;
	char why[300] = "";
	keep.log_max = 1 << 20;
	fill(1, 1);
	ck_assert_int_eq(sqlite3_open(path, &reader), SQLITE_OK);
	ck_assert_int_eq(
		sqlite3_exec(reader, "BEGIN;SELECT * FROM run", NULL, NULL, NULL), SQLITE_OK);
	int commits = 0;
	for (; commits < 5000 && !store_keep_log_is_full(&keep, why, sizeof why); commits++) {
		run("UPDATE run SET version=version+1");
		ck_assert_uint_le(size_of("store.db-wal"), keep.log_max + 65536);
	}
	ck_assert_int_gt(commits, 100);
	ck_assert_int_lt(commits, 5000);
	ck_assert_ptr_nonnull(strstr(why, "store.db-wal"));
	ck_assert_int_eq(sqlite3_exec(reader, "COMMIT", NULL, NULL, NULL), SQLITE_OK);
	ck_assert(!store_keep_log_is_full(&keep, why, sizeof why));
	ck_assert_uint_eq(size_of("store.db-wal"), 0);
	/* without one it stays short by itself, whoever comes and goes */
	for (int i = 0; i < 3000; i++) {
		run("UPDATE run SET version=version+1");
		if (i % 100 == 0) {
			ck_assert_int_eq(
				sqlite3_exec(reader, "SELECT * FROM run", NULL, NULL, NULL),
				SQLITE_OK);
		}
	}
	ck_assert_uint_le(size_of("store.db-wal"), 5 << 20);
	sqlite3_close(reader);
}
END_TEST

struct found {
	uint32_t run[4];
	int n;
};

static void on_run(void *ud, uint32_t number, struct segment_range range)
{
	struct found *f = ud;
	ck_assert_uint_eq(range.first, 1);
	f->run[f->n++] = number;
}

/* As of its first moment, whatever is written meanwhile, and without what is going. */
START_TEST(test_copy)
{
	struct ff_err err = {0};
	struct found found = {0};
	char to[128];
	atomic_bool stop = false;
	fill(1, 10);
	fill(2, 10);
	fill(3, 10);
	run("INSERT INTO going VALUES(2)");
	(void)snprintf(to, sizeof to, "%s/copy", folder);
	ck_assert_msg(store_copy(folder, to, &stop, on_run, &found, &err) == 0, "%s", err.text);
	ck_assert_int_eq(found.n, 2);
	ck_assert_uint_eq(found.run[0] + found.run[1] * 10, 31);
	ck_assert_int_lt(store_copy(folder, to, &stop, on_run, &found, &err), 0); /* it is there */
	(void)unlink(to);
	stop = true;
	found.n = 0;
	ck_assert_int_eq(store_copy(folder, to, &stop, on_run, &found, NULL), -ECANCELED);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("store");
	TCase *tc = tcase_create("store");
	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_add_test(tc, test_take_out);
	tcase_add_test(tc, test_resume);
	tcase_add_test(tc, test_log_is_bounded);
	tcase_add_test(tc, test_copy);
	tcase_set_timeout(tc, 60);
	suite_add_tcase(s, tc);
	SRunner *sr = srunner_create(s);
	srunner_run_all(sr, CK_ENV);
	int failed = srunner_ntests_failed(sr);
	srunner_free(sr);
	return failed ? 1 : 0;
}
