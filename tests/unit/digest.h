/* What streams are digested with: a test's own catalogue, its matcher and counters. */
#pragma once

#include "base/mem.h"
#include "core/stream.h"

#include <check.h>
#include <stdlib.h>

struct world {
	struct ff_catalog *catalog;
	struct ff_matcher *matcher;
	uint64_t counts[FF_COUNT_COUNT];
	struct ff_digest digest;
};

static inline struct world *world_create(const char *catalog_json)
{
	struct world *w = ff_xcalloc(1, sizeof *w);
	struct ff_err err = {0};
	w->catalog = ff_catalog_create();
	ck_assert_msg(!ff_catalog_add(w->catalog, "test.json", ff_str_z(catalog_json), &err), "%s",
		err.text);
	ck_assert_int_eq(ff_catalog_seal(w->catalog, "0", &err), 0);
	w->matcher = ff_matcher_create(w->catalog);
	w->digest = (struct ff_digest){w->catalog, w->matcher, w->counts};
	return w;
}

static inline void world_destroy(struct world *w)
{
	ff_matcher_destroy(w->matcher);
	ff_catalog_destroy(w->catalog);
	free(w);
}
