#include "base/arena.h"

#include "base/mem.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#define ALIGN _Alignof(max_align_t)
#define BLOCK_FIRST ((size_t)4096)
#define BLOCK_LAST ((size_t)256 * 1024)

struct ff_arena_block {
	struct ff_arena_block *next;
	size_t used;
	size_t cap;
	_Alignas(max_align_t) char data[];
};

void ff_arena_finish(struct ff_arena *a)
{
	if (!a) {
		return;
	}
	struct ff_arena_block *b = a->head;
	while (b) {
		struct ff_arena_block *next = b->next;
		free(b);
		b = next;
	}
	a->head = NULL;
}

static struct ff_arena_block *block_new(size_t cap)
{
	struct ff_arena_block *b = ff_xcalloc(1, sizeof *b + cap);
	b->cap = cap;
	return b;
}

void *ff_arena_alloc(struct ff_arena *a, size_t n)
{
	if (n > SIZE_MAX / 4) {
		abort();
	}
	n = (n + ALIGN - 1) / ALIGN * ALIGN;
	struct ff_arena_block *b = a->head;
	if (b && n <= b->cap - b->used) {
		void *p = b->data + b->used;
		b->used += n;
		return p;
	}
	size_t cap = b ? b->cap * 2 : BLOCK_FIRST;
	if (cap > BLOCK_LAST) {
		cap = BLOCK_LAST;
	}
	if (b && n > cap / 4) {
		/* A big one gets a block of its own behind the head, whose rest stays in use. */
		struct ff_arena_block *own = block_new(n);
		own->used = n;
		own->next = b->next;
		b->next = own;
		return own->data;
	}
	struct ff_arena_block *fresh = block_new(cap > n ? cap : n);
	fresh->used = n;
	fresh->next = b;
	a->head = fresh;
	return fresh->data;
}

char *ff_arena_strdup(struct ff_arena *a, const char *s)
{
	return s ? ff_arena_str(a, ff_str_z(s)) : NULL;
}

char *ff_arena_str(struct ff_arena *a, struct ff_str s)
{
	if (s.n == SIZE_MAX) {
		abort();
	}
	char *p = ff_arena_alloc(a, s.n + 1);
	if (s.n) {
		memcpy(p, s.p, s.n);
	}
	return p;
}

char *ff_arena_fmt(struct ff_arena *a, const char *fmt, ...)
{
	va_list ap;
	va_start(ap, fmt);
	int n = vsnprintf(NULL, 0, fmt, ap);
	va_end(ap);
	if (n < 0) {
		return ff_arena_alloc(a, 1);
	}
	char *p = ff_arena_alloc(a, (size_t)n + 1);
	va_start(ap, fmt);
	vsnprintf(p, (size_t)n + 1, fmt, ap);
	va_end(ap);
	return p;
}
