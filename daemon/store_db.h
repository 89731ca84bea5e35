/* store_db: what store.c and store_load.c share of an open store. Nobody else includes it. */
#pragma once

struct sqlite3;

struct store_db {
	struct sqlite3 *db;
	char *state; /* the folder; owned */
};
