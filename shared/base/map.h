/* A hash map from bytes to a pointer. Keys are copied; values are the caller's.
 *
 * A zeroed struct is an empty map. There is no order: whoever needs one sorts.
 */
#pragma once

#include "base/str.h"

struct ff_map_slot {
	char *key; /* NULL: free or deleted */
	size_t klen;
	uint64_t hash; /* 0 free, 1 deleted */
	void *value;
};

struct ff_map {
	struct ff_map_slot *slots;
	size_t nslots; /* a power of two, or 0 */
	size_t used;   /* live and deleted */
	size_t len;    /* live */
	uint64_t seed; /* grows when keys that were chosen to collide turn up */
};

void ff_map_finish(struct ff_map *m);
void *ff_map_get(const struct ff_map *m, struct ff_str key); /* NULL if absent */
/* Sets the value (not NULL) of key; returns the value it replaces, or NULL. */
void *ff_map_put(struct ff_map *m, struct ff_str key, void *value);
/* Takes key out; returns its value, or NULL. */
void *ff_map_del(struct ff_map *m, struct ff_str key);
/* Walks all entries: start with *pos = 0; false at the end. */
bool ff_map_next(const struct ff_map *m, size_t *pos, struct ff_str *ret_key, void **ret_value);
