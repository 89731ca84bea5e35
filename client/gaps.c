#include "gaps.h"

#include "base/arr.h"
#include "base/limits.h"
#include "base/map.h"

#include <stdlib.h>

#define NAMES_SHOWN 4u

/* Whose file it is, as far as that is said: the same text for all files of one process. */
static bool make_owner(const struct files_item *it, struct ff_buf *ret)
{
	const struct ff_origin *o = &it->origin;
	ff_buf_clear(ret);
	ff_buf_addf(ret, "%s %d %d %d", o->node ? o->node : "", o->attempt, o->rank, o->local_rank);
	return it->name[0] && (o->rank != FF_UNKNOWN || o->local_rank != FF_UNKNOWN);
}

static void note_names(struct files *f, const char *const *names, size_t n, const char *one,
	const char *many, const char *advice)
{
	struct ff_buf b = {0};
	for (size_t i = 0; i < n && i < NAMES_SHOWN; i++) {
		ff_buf_addf(&b, "%s%s", i ? ", " : "", names[i]);
	}
	if (n == 1) {
		files_note(f, "%s %s: %s", b.p, one, advice);
	} else if (n) {
		files_note(f, "%zu %s (%s%s): %s", n, many, b.p, n > NAMES_SHOWN ? ", ..." : "",
			advice);
	}
	ff_buf_finish(&b);
}

/* Processes of which files are there and hold nothing. An empty one beside one that speaks is no
 * gap: most ranks write nothing to stderr. */
static void note_empty(struct files *f)
{
	struct ff_map speaks = {0};
	struct ff_buf owner = {0};
	const char **names = NULL;
	size_t n = 0, cap = 0;
	for (size_t i = 0; i < f->n; i++) {
		if (make_owner(&f->v[i], &owner) && !f->v[i].empty) {
			(void)ff_map_put(&speaks, ff_buf_str(&owner), &f->v[i]);
		}
	}
	for (size_t i = 0; i < f->n; i++) {
		if (make_owner(&f->v[i], &owner) && f->v[i].empty &&
		    !ff_map_put(&speaks, ff_buf_str(&owner), &f->v[i])) {
			*FF_ARR_ADD(names, n, cap) = f->v[i].name;
		}
	}
	note_names(f, names, n, "is empty", "ranks' files are empty",
		"capture stdout and stderr, and run python -u");
	free(names);
	ff_map_finish(&speaks);
	ff_buf_finish(&owner);
}

static int by_number(const void *a, const void *b)
{
	int32_t x = *(const int32_t *)a, y = *(const int32_t *)b;
	return (x > y) - (x < y);
}

/* The numbers below the greatest that are not there, "2, 5-7", at most a few; false: none. */
static bool list_holes(int32_t *v, size_t n, struct ff_buf *ret)
{
	size_t shown = 0;
	int32_t next = 0;
	ff_buf_clear(ret);
	if (n) {
		qsort(v, n, sizeof *v, by_number);
	}
	for (size_t i = 0; i < n && shown <= NAMES_SHOWN; i++) {
		if (v[i] > next) {
			const char *comma = shown++ ? ", " : "";
			if (shown > NAMES_SHOWN) {
				ff_buf_addz(ret, ", ...");
			} else if (v[i] - 1 > next) {
				ff_buf_addf(ret, "%s%d-%d", comma, next, v[i] - 1);
			} else {
				ff_buf_addf(ret, "%s%d", comma, next);
			}
		}
		next = v[i] + 1;
	}
	return shown > 0;
}

/* Names of files count ranks, and the row has holes. Where the world is told the verdict itself
 * says whose output is missing. */
static void note_ranks(struct files *f, const struct ff_job *job)
{
	int32_t *v = NULL;
	size_t n = 0, cap = 0;
	struct ff_buf holes = {0};
	for (size_t i = 0; i < f->n && ff_facts_world(&job->facts) == FF_UNKNOWN; i++) {
		const struct files_item *it = &f->v[i];
		if (it->name[0] && it->walked && it->origin.rank != FF_UNKNOWN) {
			*FF_ARR_ADD(v, n, cap) = it->origin.rank;
		}
	}
	if (n > 1 && list_holes(v, n, &holes)) {
		files_note(f,
			"no file of ranks %s, though there is one of rank %d: give theirs too",
			holes.p, v[n - 1]);
	}
	ff_buf_finish(&holes);
	free(v);
}

/* The same of the local ranks in each of torchrun's trees. */
static void note_local_ranks(struct files *f)
{
	struct ff_buf holes = {0};
	for (size_t i = 0, end; i < f->n; i = end) { /* files of one tree stand together */
		const struct files_item *it = &f->v[i];
		int32_t *v = NULL;
		size_t n = 0, cap = 0, front = it->below ? it->id.tree : 0;
		end = i + 1;
		if (!it->id.has_tree || it->id.local_rank == FF_UNKNOWN || !it->name[0]) {
			continue;
		}
		for (end = i; end < f->n; end++) {
			const struct files_item *o = &f->v[end];
			bool same = o->id.has_tree && o->id.attempt == it->id.attempt && o->below &&
				o->id.tree == front && !strncmp(o->below, it->below, front);
			if (!same) {
				break;
			}
			if (o->id.local_rank != FF_UNKNOWN) {
				*FF_ARR_ADD(v, n, cap) = o->id.local_rank;
			}
		}
		if (list_holes(v, n, &holes)) {
			files_note(f,
				"no files of local ranks %s in %.*s%sattempt_%d: give them too",
				holes.p, (int)front, it->below, front ? "/" : "", it->id.attempt);
		}
		free(v);
		end = end > i ? end : i + 1;
	}
	ff_buf_finish(&holes);
}

/* Only one half of what the ranks print, or only chosen lines of it. */
static void note_halves(struct files *f, const struct ff_job *job)
{
	size_t out = 0, filtered = 0, other = 0;
	for (size_t i = 0; i < job->nstreams; i++) {
		const struct ff_origin *o = &job->streams[i]->origin;
		bool node = o->kind == FF_STREAM_KERNEL || o->kind == FF_STREAM_SCHEDULER;
		bool stdout_only = o->kind == FF_STREAM_RANK && o->fd == FF_FD_STDOUT;
		filtered += o->filtered;
		out += stdout_only && !o->filtered;
		other += !stdout_only && !o->filtered && !node;
	}
	if (out && !other) {
		files_note(f, "stderr of every rank, where errors stand: redirect it too "
			      "(torchrun --redirects 3, srun --error)");
	}
	if (filtered && !out && !other) {
		files_note(f, "the ranks' whole output: filtered logs hold chosen lines, give the "
			      "files of --log-dir");
	}
}

void gaps_note(struct files *f, const struct ff_runs *runs)
{
	if (runs->nruns != 1) {
		return;
	}
	note_empty(f);
	note_ranks(f, runs->runs[0]->job);
	note_local_ranks(f);
	note_halves(f, runs->runs[0]->job);
}
