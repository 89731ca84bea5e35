#include "core/scan.h"

#include "base/arr.h"

#include <assert.h>
#include <stdlib.h>

#define FOUND 0x80000000u /* in a table entry: literals end in the state it leads to */

struct literal {
	char *p; /* owned */
	size_t n;
	uint32_t id;
};

struct ff_scan {
	struct literal *lits; /* until sealed */
	size_t nlits, clits;
	uint8_t class[256]; /* of a byte; 0: in no literal */
	uint32_t stride;    /* classes */
	uint32_t nstates;   /* by distance from the root: those that most text stays in are near */
	uint32_t *next;     /* state * stride + class: next state * stride, perhaps | FOUND */
	uint32_t *ids_at;   /* by state, and one more: where its ids begin in ids */
	uint32_t *ids;      /* ascending for each state */
	bool sealed;
};

struct ff_scan *ff_scan_create(void)
{
	return ff_xcalloc(1, sizeof(struct ff_scan));
}

static void drop_literals(struct ff_scan *s)
{
	for (size_t i = 0; i < s->nlits; i++) {
		free(s->lits[i].p);
	}
	free(s->lits);
	s->lits = NULL;
	s->nlits = s->clits = 0;
}

void ff_scan_destroy(struct ff_scan *s)
{
	if (!s) {
		return;
	}
	drop_literals(s);
	free(s->next);
	free(s->ids_at);
	free(s->ids);
	free(s);
}

void ff_scan_add(struct ff_scan *s, struct ff_str literal, uint32_t id)
{
	assert(!s->sealed && literal.n >= 1 && literal.n <= 255);
	assert(ff_str_chr(literal, '\n', 0) < 0);
	*FF_ARR_ADD(s->lits, s->nlits, s->clits) =
		(struct literal){ff_xmemdup(literal.p, literal.n), literal.n, id};
}

static int by_text_then_id(const void *x, const void *y)
{
	const struct literal *a = x, *b = y;
	int c = ff_str_cmp((struct ff_str){a->p, a->n}, (struct ff_str){b->p, b->n});
	return c ? c : (a->id > b->id) - (a->id < b->id);
}

/* The automaton while it is built; states are numbered as they are made. */
struct build {
	uint32_t *next;  /* state * stride + class: next state; 0 none yet */
	uint32_t *fail;  /* state of the longest suffix that is a state too */
	uint32_t *first; /* literals that end in it: lits[first - 1] .. of that text; 0 none */
	uint32_t *order; /* states by distance from the root */
	uint32_t n;
};

static void make_classes(struct ff_scan *s)
{
	s->stride = 1;
	for (size_t i = 0; i < s->nlits; i++) {
		for (size_t k = 0; k < s->lits[i].n; k++) {
			unsigned char c = (unsigned char)s->lits[i].p[k];
			if (!s->class[c]) {
				/* 255 bytes at most: LF is never one */
				s->class[c] = (uint8_t)s->stride++;
			}
		}
	}
}

static size_t common_prefix(const struct literal *a, const struct literal *b)
{
	size_t n = 0;
	while (n < a->n && n < b->n && a->p[n] == b->p[n]) {
		n++;
	}
	return n;
}

/* The literals as a tree of states. They are sorted: each shares its states with the one before. */
static void make_tree(const struct ff_scan *s, struct build *b)
{
	size_t nstates = 1;
	for (size_t i = 0; i < s->nlits; i++) {
		size_t shared = i ? common_prefix(&s->lits[i - 1], &s->lits[i]) : 0;
		nstates += s->lits[i].n - shared;
	}
	assert(nstates < FOUND / s->stride);
	b->next = ff_xcalloc(nstates, s->stride * sizeof *b->next);
	b->fail = ff_xcalloc(nstates, sizeof *b->fail);
	b->first = ff_xcalloc(nstates, sizeof *b->first);
	b->order = ff_xcalloc(nstates, sizeof *b->order);
	b->n = 1;
	for (size_t i = 0; i < s->nlits; i++) {
		uint32_t state = 0;
		for (size_t k = 0; k < s->lits[i].n; k++) {
			unsigned char c = (unsigned char)s->lits[i].p[k];
			uint32_t *to = &b->next[(size_t)state * s->stride + s->class[c]];
			if (!*to) {
				*to = b->n++;
			}
			state = *to;
		}
		if (!b->first[state]) {
			b->first[state] = (uint32_t)i + 1;
		}
	}
}

/* Walks the tree by distance and fills in where each state goes on a byte that leaves the tree:
 * where its longest suffix goes, which is nearer to the root and so done already. */
static void make_links(const struct ff_scan *s, struct build *b)
{
	uint32_t done = 1;
	for (uint32_t at = 0; at < done; at++) {
		uint32_t state = b->order[at];
		uint32_t *row = &b->next[(size_t)state * s->stride];
		const uint32_t *suffix = &b->next[(size_t)b->fail[state] * s->stride];
		for (uint32_t c = 1; c < s->stride; c++) {
			if (!row[c]) {
				row[c] = state ? suffix[c] : 0;
				continue;
			}
			b->fail[row[c]] = state ? suffix[c] : 0;
			b->order[done++] = row[c];
		}
	}
}

static int by_number(const void *x, const void *y)
{
	const uint32_t *a = x, *b = y;
	return (*a > *b) - (*a < *b);
}

/* Adds the ids of all literals that end in a state: its own and those of its suffixes. */
static void add_ids(const struct ff_scan *s, const struct build *b, uint32_t state, uint32_t **ids,
	size_t *nids, size_t *cids)
{
	size_t from = *nids;
	for (uint32_t at = state; at; at = b->fail[at]) {
		size_t i = b->first[at];
		if (!i) {
			continue;
		}
		const struct literal *lit = &s->lits[i - 1];
		for (; i <= s->nlits && s->lits[i - 1].n == lit->n &&
			!memcmp(s->lits[i - 1].p, lit->p, lit->n);
			i++) {
			*FF_ARR_ADD(*ids, *nids, *cids) = s->lits[i - 1].id;
		}
	}
	if (*nids - from < 2) {
		return;
	}
	qsort(*ids + from, *nids - from, sizeof **ids, by_number);
	size_t to = from + 1;
	for (size_t i = from + 1; i < *nids; i++) {
		if ((*ids)[i] != (*ids)[to - 1]) {
			(*ids)[to++] = (*ids)[i];
		}
	}
	*nids = to;
}

/* Numbers the states anew by distance and writes the table that run() walks. */
static void make_table(struct ff_scan *s, const struct build *b)
{
	size_t nids = 0, cids = 0;
	s->nstates = b->n;
	s->ids_at = ff_xcalloc((size_t)b->n + 1, sizeof *s->ids_at);
	uint32_t *number = ff_xcalloc(b->n, sizeof *number);
	for (uint32_t at = 0; at < b->n; at++) {
		number[b->order[at]] = at;
		add_ids(s, b, b->order[at], &s->ids, &nids, &cids);
		assert(nids <= UINT32_MAX);
		s->ids_at[at + 1] = (uint32_t)nids;
	}
	s->next = ff_xcalloc(b->n, s->stride * sizeof *s->next);
	for (uint32_t at = 0; at < b->n; at++) {
		const uint32_t *row = &b->next[(size_t)b->order[at] * s->stride];
		for (uint32_t c = 0; c < s->stride; c++) {
			uint32_t to = number[row[c]];
			bool found = s->ids_at[to + 1] > s->ids_at[to];
			s->next[(size_t)at * s->stride + c] = to * s->stride | (found ? FOUND : 0);
		}
	}
	free(number);
}

void ff_scan_seal(struct ff_scan *s)
{
	assert(!s->sealed);
	if (s->nlits) {
		qsort(s->lits, s->nlits, sizeof *s->lits, by_text_then_id);
	}
	make_classes(s);
	struct build b = {0};
	make_tree(s, &b);
	make_links(s, &b);
	make_table(s, &b);
	free(b.next);
	free(b.fail);
	free(b.first);
	free(b.order);
	drop_literals(s);
	s->sealed = true;
}

static void found(const struct ff_scan *s, uint32_t state, size_t end, ff_scan_fn *fn, void *ud)
{
	uint32_t number = state / s->stride;
	for (uint32_t i = s->ids_at[number]; i < s->ids_at[number + 1]; i++) {
		fn(ud, (struct ff_mark){(uint32_t)end, s->ids[i]});
	}
}

/* A step of the automaton waits for the one before, so the bytes are cut at ends of lines, where
 * every state is the root, into parts that are walked side by side. What a part finds is kept until
 * those before it are told. */
#define PARTS 4u
#define BLOCK_LEAST 2048u   /* bytes for which it is worth it */
#define BLOCK (32u * 1024u) /* bytes of all parts: they stay in the cache */
#define FINDS_MOST 256u     /* of a part: the rest of one that is full is walked alone */

struct find {
	uint32_t state, end;
};

struct part {
	size_t at, end;
	uint32_t state; /* in front of `at` */
	size_t nfinds;
	struct find finds[FINDS_MOST];
};

static void cut_parts(const char *p, size_t from, size_t to, struct part *parts)
{
	size_t at = from;
	for (size_t k = 0; k < PARTS; k++) {
		size_t end = from + (to - from) / PARTS * (k + 1);
		end = end > at ? end : at;
		const char *lf = k + 1 < PARTS ? memchr(p + end, '\n', to - end) : NULL;
		parts[k].at = at;
		parts[k].end = at = lf ? (size_t)(lf - p) + 1 : to;
		parts[k].state = 0;
		parts[k].nfinds = 0;
	}
}

/* Walks all parts as far as the shortest goes and none is full. */
static void walk_together(const struct ff_scan *s, const char *p, struct part *parts)
{
	const uint32_t *next = s->next;
	const uint8_t *class = s->class;
	const unsigned char *text[PARTS];
	uint32_t state[PARTS] = {0};
	size_t n = SIZE_MAX, i = 0;
	bool full = false;
	for (size_t k = 0; k < PARTS; k++) {
		size_t len = parts[k].end - parts[k].at;
		text[k] = (const unsigned char *)p + parts[k].at;
		n = len < n ? len : n;
	}
	for (; i < n && !full; i++) {
		uint32_t any = 0;
		for (size_t k = 0; k < PARTS; k++) {
			state[k] = next[state[k] + class[text[k][i]]];
			any |= state[k];
		}
		for (size_t k = 0; __builtin_expect(any & FOUND, 0) && k < PARTS; k++) {
			if (!(state[k] & FOUND)) {
				continue;
			}
			state[k] &= ~FOUND;
			parts[k].finds[parts[k].nfinds++] =
				(struct find){state[k], (uint32_t)(parts[k].at + i + 1)};
			full = full || parts[k].nfinds == FINDS_MOST;
		}
	}
	for (size_t k = 0; k < PARTS; k++) {
		parts[k].at += i;
		parts[k].state = state[k];
	}
}

/* Walks a part to its end; tells what it finds. */
static void walk(const struct ff_scan *s, const char *p, size_t from, size_t to, uint32_t state,
	ff_scan_fn *fn, void *ud)
{
	const uint32_t *next = s->next;
	const uint8_t *class = s->class;
	for (size_t i = from; i < to; i++) {
		state = next[state + class[(unsigned char)p[i]]];
		if (__builtin_expect(state & FOUND, 0)) {
			state &= ~FOUND;
			found(s, state, i + 1, fn, ud);
		}
	}
}

/* Where a block that begins at `from` ends: behind a line, so that the next begins in the root. */
static size_t block_end(const char *p, size_t from, size_t n)
{
	if (n - from <= BLOCK) {
		return n;
	}
	const char *lf = memchr(p + from + BLOCK, '\n', n - from - BLOCK);
	return lf ? (size_t)(lf - p) + 1 : n;
}

void ff_scan_run(const struct ff_scan *s, const char *p, size_t n, ff_scan_fn *fn, void *ud)
{
	assert(s->sealed && n <= UINT32_MAX);
	struct part parts[PARTS];
	size_t from = 0;
	while (n - from >= BLOCK_LEAST) {
		size_t to = block_end(p, from, n);
		cut_parts(p, from, to, parts);
		walk_together(s, p, parts);
		for (size_t k = 0; k < PARTS; k++) {
			const struct part *part = &parts[k];
			for (size_t i = 0; i < part->nfinds; i++) {
				found(s, part->finds[i].state, part->finds[i].end, fn, ud);
			}
			walk(s, p, part->at, part->end, part->state, fn, ud);
		}
		from = to;
	}
	walk(s, p, from, n, 0, fn, ud);
}
