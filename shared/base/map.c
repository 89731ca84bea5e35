#include "base/map.h"

#include "base/mem.h"

#include <stdlib.h>

#define DELETED 1u    /* hash of a deleted slot; a free one has 0 */
#define HASH_FIRST 2u /* real hashes are at least this */
#define SLOTS_FIRST 16u
#define PROBES_MAX 256u /* at half load a longer chain means chosen keys: then the seed changes */
#define SEEDS_MAX 64u

static uint64_t hash_key(struct ff_str key, uint64_t seed)
{
	uint64_t h = ff_str_hash(key, FF_HASH_INIT ^ (seed * 0x9e3779b97f4a7c15ull));
	/* FNV's low bits see little of the early bytes: spread them. */
	h ^= h >> 32;
	h *= 0xd6e8feb86659fd93ull;
	h ^= h >> 32;
	h *= 0xd6e8feb86659fd93ull;
	h ^= h >> 32;
	return h < HASH_FIRST ? h + HASH_FIRST : h;
}

void ff_map_finish(struct ff_map *m)
{
	if (!m) {
		return;
	}
	for (size_t i = 0; i < m->nslots; i++) {
		free(m->slots[i].key);
	}
	free(m->slots);
	*m = (struct ff_map){0};
}

static bool slot_is(const struct ff_map_slot *s, uint64_t hash, struct ff_str key)
{
	return s->hash == hash && s->key && s->klen == key.n &&
		(!key.n || !memcmp(s->key, key.p, key.n));
}

/* The slot that holds key, or NULL. */
static struct ff_map_slot *find(const struct ff_map *m, struct ff_str key, uint64_t hash)
{
	if (!m->len) {
		return NULL;
	}
	size_t mask = m->nslots - 1;
	for (size_t at = hash & mask;; at = (at + 1) & mask) {
		struct ff_map_slot *s = &m->slots[at];
		if (!s->hash) {
			return NULL;
		}
		if (slot_is(s, hash, key)) {
			return s;
		}
	}
}

/* Where a key that is not in it goes; *ret_probes: how far that is from its place. */
static struct ff_map_slot *place(const struct ff_map *m, uint64_t hash, size_t *ret_probes)
{
	size_t mask = m->nslots - 1;
	size_t probes = 0;
	size_t at = hash & mask;
	while (m->slots[at].key) {
		at = (at + 1) & mask;
		probes++;
	}
	*ret_probes = probes;
	return &m->slots[at];
}

static void rebuild(struct ff_map *m, size_t nslots, bool new_seed)
{
	struct ff_map old = *m;
	m->slots = ff_xcalloc(nslots, sizeof *m->slots);
	m->nslots = nslots;
	m->used = old.len;
	if (new_seed) {
		m->seed++;
	}
	for (size_t i = 0; i < old.nslots; i++) {
		struct ff_map_slot s = old.slots[i];
		if (!s.key) {
			continue;
		}
		if (new_seed) {
			s.hash = hash_key((struct ff_str){s.key, s.klen}, m->seed);
		}
		size_t probes;
		*place(m, s.hash, &probes) = s;
	}
	free(old.slots);
}

void *ff_map_get(const struct ff_map *m, struct ff_str key)
{
	const struct ff_map_slot *s = find(m, key, hash_key(key, m->seed));
	return s ? s->value : NULL;
}

void *ff_map_put(struct ff_map *m, struct ff_str key, void *value)
{
	uint64_t hash = hash_key(key, m->seed);
	struct ff_map_slot *s = find(m, key, hash);
	if (s) {
		void *was = s->value;
		s->value = value;
		return was;
	}
	if ((m->used + 1) * 2 > m->nslots) {
		/* Many deleted ones are swept out at the same size. */
		size_t want = m->nslots ? m->nslots : SLOTS_FIRST;
		rebuild(m, (m->len + 1) * 4 > want ? want * 2 : want, false);
	}
	size_t probes;
	s = place(m, hash, &probes);
	if (!s->hash) {
		m->used++;
	}
	m->len++;
	*s = (struct ff_map_slot){ff_xmemdup(key.p, key.n), key.n, hash, value};
	if (probes > PROBES_MAX && m->seed < SEEDS_MAX) {
		rebuild(m, m->nslots, true);
	}
	return NULL;
}

void *ff_map_del(struct ff_map *m, struct ff_str key)
{
	struct ff_map_slot *s = find(m, key, hash_key(key, m->seed));
	if (!s) {
		return NULL;
	}
	void *was = s->value;
	free(s->key);
	*s = (struct ff_map_slot){.hash = DELETED};
	m->len--;
	return was;
}

bool ff_map_next(const struct ff_map *m, size_t *pos, struct ff_str *ret_key, void **ret_value)
{
	while (*pos < m->nslots) {
		const struct ff_map_slot *s = &m->slots[(*pos)++];
		if (s->key) {
			*ret_key = (struct ff_str){s->key, s->klen};
			*ret_value = s->value;
			return true;
		}
	}
	return false;
}
