#include "base/mem.h"
#include "core/timeline_own.h"

#include <stdlib.h>

/* Process groups that print no name: do their numbers count as the job's? */

/* torch's words about who is where in a group, without its name (SOURCES.md desync-debug). */
bool ff_timeline_is_debug_report(const struct ff_sighting *s)
{
	return s->stream && (ff_sighting_is(s, "straggler-hang") ||
				    ff_sighting_is(s, "collective-mismatch"));
}

/* A member numbered world-1, or world-1 members: the group is the whole job, or it would leave out
 * one single rank. A tag that says otherwise ends the guess. */
static void learn_group(struct ff_timeline *t)
{
	if (t->world < 2) {
		return;
	}
	uint8_t *seen = ff_xcalloc((size_t)t->world, 1);
	bool whole = true;
	int32_t n = 0;
	for (size_t i = 0; i < t->nall && whole; i++) {
		const struct ff_sighting *s = &t->all[i];
		int64_t rank = ff_event_int(s->ev, FF_F_pg_rank, FF_UNKNOWN);
		if (!s->stream || rank == FF_UNKNOWN || !ff_sighting_is(s, "nccl-timeout") ||
			ff_event_field(s->ev, FF_F_pg).n || ff_event_field(s->ev, FF_F_nranks).n) {
			continue;
		}
		int32_t speaker = ff_timeline_speaker(t, s->stream, s->ev->tag, s->attempt);
		whole = rank < t->world && (speaker == FF_UNKNOWN || speaker == rank);
		if (whole) {
			n += !seen[rank];
			seen[rank] = 1;
		}
	}
	t->maps->group_is_world = whole && (n >= t->world - 1 || seen[t->world - 1]);
	free(seen);
}

/* The highest rank that a stream or a line's tag names. */
static int64_t highest_rank(const struct ff_timeline *t)
{
	int64_t most = FF_UNKNOWN;
	for (size_t i = 0; i < t->nstreams; i++) {
		const struct ff_stream *s = t->streams[i];
		most = s->origin.rank > most ? s->origin.rank : most;
		for (size_t j = 0; j < s->nlanes; j++) {
			struct ff_tag tag = s->lanes[j]->tag;
			most = tag.kind == FF_TAG_GLOBAL && tag.value > most ? tag.value : most;
		}
	}
	return most < FF_RANKS_MAX ? most : FF_RANKS_MAX - 1;
}

/* What debug reports say of their group's numbers. */
struct members {
	uint8_t *seen; /* by number */
	int32_t world, n;
	bool fit; /* all are the job's, as far as can be told */
};

static void add_member(struct members *m, int64_t rank)
{
	m->fit = m->fit && rank < m->world;
	if (rank >= 0 && rank < m->world) {
		m->n += !m->seen[rank];
		m->seen[rank] = 1;
	}
}

static void add_members(const struct ff_timeline *t, struct members *m, const struct ff_sighting *s)
{
	static const enum ff_field_id lists[] = {FF_F_group_ranks, FF_F_ranks};
	static const enum ff_field_id numbers[] = {FF_F_pg_rank, FF_F_rank_a, FF_F_rank_b};
	int32_t speaker = ff_timeline_speaker(t, s->stream, s->ev->tag, s->attempt);
	int64_t own = ff_event_int(s->ev, FF_F_pg_rank, FF_UNKNOWN);
	int32_t some[RANKS_IN_TEXT];
	m->fit = m->fit && (own == FF_UNKNOWN || speaker == FF_UNKNOWN || own == speaker);
	for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
		add_member(m, ff_event_int(s->ev, numbers[i], FF_UNKNOWN));
	}
	for (size_t i = 0; i < sizeof lists / sizeof lists[0]; i++) {
		size_t n = ff_ranks_parse(ff_event_field(s->ev, lists[i]), some, RANKS_IN_TEXT);
		for (size_t j = 0; j < n && j < RANKS_IN_TEXT; j++) {
			add_member(m, some[j]);
		}
	}
}

/* The same test for what debug reports list. */
static void learn_lists(struct ff_timeline *t)
{
	int64_t world = t->world != FF_UNKNOWN ? t->world : highest_rank(t) + 1;
	struct members m = {.world = (int32_t)world, .fit = true};
	if (world < 2) {
		return;
	}
	m.seen = ff_xcalloc((size_t)world, 1);
	for (size_t i = 0; i < t->nall && m.fit; i++) {
		if (ff_timeline_is_debug_report(&t->all[i])) {
			add_members(t, &m, &t->all[i]);
		}
	}
	t->maps->lists_are_job = m.fit && (m.n >= m.world - 1 || m.seen[m.world - 1]);
	free(m.seen);
}

bool ff_timeline_group_is_job(const struct ff_timeline *t)
{
	return t->maps->lists_are_job;
}

void ff_timeline_learn_groups(struct ff_timeline *t)
{
	learn_group(t);
	learn_lists(t);
}
