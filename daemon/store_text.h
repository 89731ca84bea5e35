/* store_text: the text of batches in segment files, written and synced before their rows are
 * committed. store.c alone includes it; everything here belongs to the thread that writes. */
#pragma once

#include "batch.h"

#define STORE_TEXT_FILES 32 /* that stay open */

struct store_text_file {
	uint32_t run, number;
	int fd; /* -1: free */
	bool dirty;
	uint64_t used;
};

struct store_text {
	const char *state; /* borrowed */
	struct store_text_file files[STORE_TEXT_FILES];
	uint64_t uses;
	struct segment_name {
		uint32_t run, number;
	} *going; /* files that go as soon as nobody holds the store */
	size_t ngoing, cgoing;
};

void store_text_init(struct store_text *t, const char *state);
void store_text_finish(struct store_text *t);
/* All text of the batch, on the disk. A repeated call changes nothing. Returns 0 or negative errno
 * with err. */
int store_text_write(struct store_text *t, const struct batch *b, struct ff_err *err);
/* The batch is committed: what it let go is removed, unless somebody holds the store. */
void store_text_committed(struct store_text *t, const struct batch *b, bool held);
