#include "tail_own.h"

#include "base/mem.h"

#include <stdlib.h>

/* A file that is not read again: of one inode there may be several, one after the other. */
struct let_go {
	struct let_go *next;
	uint32_t head_length;
	uint64_t head_hash;
};

void tail_let_go(struct ff_map *let_go, uint64_t inode, uint32_t head_length, uint64_t head_hash)
{
	struct ff_str key = ff_str_n(&inode, sizeof inode);
	if (!head_length || let_go->len >= FF_LET_GO_MAX) {
		return; /* an empty file has nothing to read again */
	}
	struct let_go *l = ff_xcalloc(1, sizeof *l);
	*l = (struct let_go){ff_map_get(let_go, key), head_length, head_hash};
	(void)ff_map_put(let_go, key, l);
}

void tail_let_go_finish(struct ff_map *let_go)
{
	struct ff_str key;
	void *value;
	for (size_t pos = 0; ff_map_next(let_go, &pos, &key, &value);) {
		for (struct let_go *l = value; l;) {
			struct let_go *next = l->next;
			free(l);
			l = next;
		}
	}
	ff_map_finish(let_go);
}

bool tail_is_let_go(const struct tail *t, const struct files_notice *n)
{
	const struct let_go *l =
		ff_map_get(&t->d->let_go, ff_str_n(&n->inode, sizeof n->inode));
	while (l &&
		(l->head_length > n->head_length ||
			files_hash(ff_str_n(n->head, l->head_length)) != l->head_hash)) {
		l = l->next;
	}
	return l != NULL;
}

/* Entries of the maps that are this file's, and not a later one's in its place. */
static void unknow(struct tail *t, const struct tail_file *f)
{
	struct inode_key inode = {f->device, f->inode};
	struct ff_str key = ff_str_n(&inode, sizeof inode);
	if (ff_map_get(&t->by_path, ff_str_z(f->path)) == f) {
		(void)ff_map_del(&t->by_path, ff_str_z(f->path));
	}
	if (ff_map_get(&t->by_inode, key) == f) {
		(void)ff_map_del(&t->by_inode, key);
	}
	if (f->thread) {
		(void)ff_map_del(&f->thread->by_number, ff_str_n(&f->number, sizeof f->number));
		files_let_go(f->thread->files, f->number);
	}
}

void tail_drop_run(struct tail *t, const struct ff_run *run)
{
	for (size_t i = 0; t && i < run->job->nstreams; i++) {
		const struct stream_state *ss = run->job->streams[i]->user;
		if (ss && ss->tail) {
			unknow(t, ss->tail);
			tail_let_go(&t->d->let_go, ss->tail->inode, ss->tail->head_length,
				ss->tail->head_hash);
		}
	}
	for (struct look **p = t ? &t->looks : NULL; p && *p;) {
		struct look *l = *p;
		if (l->run == run) {
			*p = l->next;
			free(l);
		} else {
			p = &l->next;
		}
	}
}
