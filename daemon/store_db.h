/* store_db: what store*.c share of an open store. Nobody else includes it. */
#pragma once

#define STORE_BUSY_MS 5000 /* a look from outside may hold the database for a moment */

struct sqlite3;

struct store_db {
	struct sqlite3 *db;
	char *state; /* the folder; owned */
};
