#include "api_kept.h"

#include "api.h"
#include "base/limits.h"
#include "base/mem.h"
#include "nodes.h"

#include <stdlib.h>

struct kept {
	struct ff_buf key, body; /* key empty: a free place */
	uint64_t changes, reloads;
	uint32_t version;
	uint64_t used; /* the counter when it was asked for last */
};

struct api_kept {
	struct kept v[FF_KEPT_ANSWERS];
	size_t bytes;
	uint64_t used;
};

struct api_kept *api_kept_create(void)
{
	return ff_xcalloc(1, sizeof(struct api_kept));
}

static void drop(struct api_kept *k, struct kept *e)
{
	k->bytes -= e->key.len + e->body.len;
	ff_buf_finish(&e->key);
	ff_buf_finish(&e->body);
	*e = (struct kept){0};
}

void api_kept_destroy(struct api_kept *k)
{
	for (size_t i = 0; k && i < FF_KEPT_ANSWERS; i++) {
		drop(k, &k->v[i]);
	}
	free(k);
}

size_t api_kept_bytes(const struct api_kept *k)
{
	return k ? k->bytes : 0;
}

/* The run, what of it, and what stands behind "?". False: of text nothing is kept. */
static bool make_key(const struct request *r, const struct ff_run *run, struct ff_buf *ret)
{
	char *format = request_query(r, "format");
	bool text = format || r->wants_text;
	free(format);
	ff_buf_addf(ret, "%u %s%s", run->number, r->parts[3], r->uri + strcspn(r->uri, "?"));
	return !text;
}

static struct kept *find(struct api_kept *k, const struct ff_buf *key)
{
	for (size_t i = 0; i < FF_KEPT_ANSWERS; i++) {
		if (k->v[i].key.len && ff_str_eq(ff_buf_str(&k->v[i].key), ff_buf_str(key))) {
			return &k->v[i];
		}
	}
	return NULL;
}

static bool holds(const struct request *r, const struct ff_run *run, const struct kept *e)
{
	const struct run_state *rs = run->user;
	return rs && e->changes == rs->changes &&
		e->reloads == r->d->counts[DAEMON_COUNT_reloads];
}

bool api_kept_answer(struct request *r, struct ff_run *run)
{
	struct api_kept *k = api_kept(r->api);
	struct ff_buf key = {0};
	nodes_join(r->d->nodes, run); /* as judging does: it may be what changes the run */
	struct kept *e = make_key(r, run, &key) ? find(k, &key) : NULL;
	ff_buf_finish(&key);
	if (e && !holds(r, run, e)) {
		drop(k, e);
		e = NULL;
	}
	if (e) {
		struct ff_buf out = {0};
		ff_buf_adds(&out, ff_buf_str(&e->body));
		e->used = ++k->used;
		r->version = e->version;
		request_json(r, 200, &out);
		r->d->counts[DAEMON_COUNT_answers_kept]++;
	}
	return e != NULL;
}

/* A free place, with room for so many bytes. */
static struct kept *make_room(struct api_kept *k, size_t bytes)
{
	for (;;) {
		struct kept *place = NULL, *oldest = NULL;
		for (size_t i = 0; i < FF_KEPT_ANSWERS; i++) {
			struct kept *e = &k->v[i];
			if (!e->key.len) {
				place = e;
			} else if (!oldest || e->used < oldest->used) {
				oldest = e;
			}
		}
		if (place && k->bytes + bytes <= FF_KEPT_BYTES) {
			return place;
		}
		drop(k, oldest); /* there is one: no place is free, or something has the bytes */
	}
}

void api_kept_put(struct request *r, const struct ff_run *run, const struct ff_verdict *v)
{
	struct api_kept *k = api_kept(r->api);
	struct ff_buf key = {0};
	const struct run_state *rs = run->user;
	bool wanted = rs && v->state == FF_RUN_ENDED && r->status == 200 && make_key(r, run, &key);
	size_t bytes = key.len + r->out.len;
	if (!wanted || bytes > FF_KEPT_BYTES / 2) {
		ff_buf_finish(&key);
		return;
	}
	struct kept *e = find(k, &key);
	if (e) {
		drop(k, e);
	}
	e = make_room(k, bytes);
	*e = (struct kept){
		.key = key,
		.changes = rs->changes,
		.reloads = r->d->counts[DAEMON_COUNT_reloads],
		.version = r->version,
		.used = ++k->used,
	};
	ff_buf_adds(&e->body, ff_buf_str(&r->out));
	k->bytes += bytes;
}
