/* Memory with one common end: allocations that are freed together.
 *
 * Lives: a catalogue, a verdict, a request. A zeroed struct is an empty arena. What it returns is
 * borrowed from it until finish().
 */
#pragma once

#include "base/str.h"

struct ff_arena {
	struct ff_arena_block *head;
};

void ff_arena_finish(struct ff_arena *a);
/* n zeroed bytes, aligned for any type. */
void *ff_arena_alloc(struct ff_arena *a, size_t n);
char *ff_arena_strdup(struct ff_arena *a, const char *s); /* NULL of NULL */
char *ff_arena_str(struct ff_arena *a, struct ff_str s);  /* NUL-terminated copy */
char *ff_arena_fmt(struct ff_arena *a, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
#define FF_ARENA_NEW(a, type) ((type *)ff_arena_alloc((a), sizeof(type)))
#define FF_ARENA_ARR(a, type, n) ((type *)ff_arena_alloc((a), sizeof(type) * (n)))
