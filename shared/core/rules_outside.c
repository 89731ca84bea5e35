#include "core/rules_own.h"

#define GRACE (30 * FF_SECOND)      /* between a scheduler's signal and its word about it */
#define STALL_MIN (120 * FF_SECOND) /* shared/README.md 7: max(120 s, 10 x its own cadence) */
#define HANG_MIN (600 * FF_SECOND)  /* without any step before a time limit: it may have hung */

/* ---- clean */

static bool any_success(const struct look *k)
{
	for (size_t i = 0; i < k->t->nranks; i++) {
		if (k->t->ranks[i].succeeded || k->t->ranks[i].marked) {
			return true;
		}
	}
	for (size_t i = 0; i < k->t->nstreams; i++) {
		const struct ff_stream *s = k->t->streams[i];
		for (size_t j = 0; j < s->nlanes; j++) {
			if (s->lanes[j]->success.set) {
				return true;
			}
		}
	}
	return false;
}

static size_t count_exits(const struct look *k)
{
	size_t n = 0;
	for (size_t i = 0; i < k->t->nranks; i++) {
		n += k->stories[i].alone;
	}
	return n;
}

/* Is this a word about a node of this job that is gone, by who runs the job? A controller's log
 * tells of all the cluster's nodes. */
static bool is_lost_node(const struct look *k, const struct ff_sighting *s)
{
	static const char *const lost[] = {"node-fail", "node-lost", NULL};
	if (!s->sig || strcmp(s->sig->category, "scheduler") || !is_one_of(s->ev->fault, lost)) {
		return false;
	}
	bool ours = !s->stream || s->stream->origin.kind != FF_STREAM_SCHEDULER;
	for (size_t i = 0; i < k->t->nranks && !ours; i++) {
		const char *node = k->t->ranks[i].node;
		ours = node && ff_str_eqz(ff_event_field(s->ev, FF_F_node), node);
	}
	return ours;
}

static bool is_after(const struct look *k, const struct ff_stream *stream,
	const struct ff_moment *m, const struct ff_sighting *s)
{
	if (!m->set) {
		return false;
	}
	if (stream == s->stream) {
		return m->offset > s->ev->offset;
	}
	return ff_when_order(ff_timeline_lane_when(k->t, stream, m), s->when) == FF_AFTER;
}

/* Somebody made a step after this, or went on to speak for longer than an end takes. */
static bool went_on(const struct look *k, const struct ff_sighting *s)
{
	ff_usec d;
	for (size_t i = 0; i < k->t->nstreams; i++) {
		const struct ff_stream *stream = k->t->streams[i];
		for (size_t j = 0; j < stream->nlanes; j++) {
			if (is_after(k, stream, &stream->lanes[j]->progress, s)) {
				return true;
			}
		}
	}
	for (size_t i = 0; i < k->t->nranks; i++) {
		if (ff_when_diff(k->t->ranks[i].last_line, s->when, &d) && d > GRACE) {
			return true;
		}
	}
	return false;
}

/* A node went away and nobody came to an end or went on: mpirun may leave with 0 all the same
 * (SOURCES.md prte-lost). */
static bool was_lost(const struct look *k)
{
	for (size_t i = 0; i < k->nhosts; i++) {
		if (is_lost_node(k, k->hosts[i]) && !any_success(k) && !went_on(k, k->hosts[i])) {
			return true;
		}
	}
	return false;
}

bool ff_rule_clean(struct look *k, struct ff_finding *f)
{
	bool told = ff_facts_control(k->t->facts, "job@end") != NULL;
	bool last = k->t->attempt == k->t->nattempts - 1;
	bool faults = k->ngroups || k->nloose || count_exits(k);
	if (k->t->state != FF_RUN_ENDED || !last || (told && !ff_facts_ended_well(k->t->facts))) {
		return false;
	}
	if (!told && (faults || k->loose_reports || k->nwords || k->nhosts || !any_success(k))) {
		return false;
	}
	if (faults && !any_success(k) && (!ff_look_progressed(k) || count_exits(k))) {
		return false; /* an exit status of 0 proves nothing where no step was done */
	}
	if (was_lost(k)) {
		return false;
	}
	f->kind = FF_VERDICT_CLEAN;
	f->confidence = told && !faults ? FF_CERTAIN : FF_LIKELY;
	f->text = told ? "the job ended well and no rank has a fault that it did not recover from"
		       : "no fault was seen, and the success marker was";
	return true;
}

/* ---- external */

static ff_usec last_progress(const struct look *k, struct ff_when than)
{
	ff_usec best = FF_TIME_NONE, d;
	for (size_t i = 0; i < k->t->nranks; i++) {
		struct ff_when w = k->t->ranks[i].last_progress;
		if (ff_when_diff(than, w, &d) && (best == FF_TIME_NONE || d < best)) {
			best = d;
		}
	}
	return best;
}

/* Did the job stand still, against its habit, long before this word? Then the word only ended a
 * hang. Without a habit silence proves nothing. */
static bool hung_before(const struct look *k, const struct ff_sighting *word)
{
	ff_usec cadence = 0;
	for (size_t i = 0; i < k->t->nranks; i++) {
		cadence = k->t->ranks[i].cadence > cadence ? k->t->ranks[i].cadence : cadence;
	}
	ff_usec limit = cadence * 10 > STALL_MIN ? cadence * 10 : STALL_MIN;
	ff_usec since = last_progress(k, word->when);
	return cadence && since != FF_TIME_NONE && since > limit;
}

/* No step was seen for so long that it may have hung, habit or not. */
static bool may_have_hung(const struct look *k, const struct ff_sighting *word)
{
	ff_usec since = last_progress(k, word->when);
	return since != FF_TIME_NONE && since > HANG_MIN;
}

static bool long_before(const struct ff_sighting *a, const struct ff_sighting *b)
{
	ff_usec d;
	return ff_when_diff(b->when, a->when, &d) && d > GRACE;
}

/* Is there anything wrong in the job that this word does not explain? */
static bool precedes_all(const struct look *k, const struct ff_sighting *word)
{
	for (size_t i = 0; i < k->t->nranks; i++) {
		const struct story *st = &k->stories[i];
		if (st->own && !before(word, st->own)) {
			return false;
		}
		if (st->report && long_before(st->report, word)) {
			return false;
		}
		bool bad = st->alone && st->sig != 15;
		if (bad && ff_timeline_order(st->line->exit, word) == FF_BEFORE) {
			return false;
		}
	}
	for (size_t i = 0; i < k->nloose; i++) {
		if (!before(word, k->loose[i])) {
			return false;
		}
	}
	for (size_t i = 0; i < k->nhosts; i++) {
		if (!before(word, k->hosts[i])) {
			return false;
		}
	}
	return !hung_before(k, word);
}

static const char *state_fault(const char *state)
{
	static const struct {
		const char *state, *fault;
	} words[] = {
		{"PREEMPTED", "preempted"},
		{"REQUEUED", "preempted"},
		{"TIMEOUT", "time-limit"},
		{"CANCELLED", "cancelled"},
	};
	for (size_t i = 0; state && i < sizeof words / sizeof words[0]; i++) {
		if (!strncmp(state, words[i].state, strlen(words[i].state))) {
			return words[i].fault;
		}
	}
	return NULL;
}

const char *ff_outside_state(const struct look *k)
{
	return state_fault(ff_facts_state(k->t->facts, arena_of(k)));
}

/* The most telling word: a reason beats a bare signal to a launcher; then the earlier one. */
static int word_worth(const struct ff_sighting *s)
{
	if (s->ev->kind != FF_EVENT_FAULT || is_fault(s, "sigterm") || is_fault(s, "sighup")) {
		return 0;
	}
	return is_fault(s, "cancelled") ? 1 : 2;
}

static const struct ff_sighting *best_word(const struct look *k)
{
	const struct ff_sighting *best = NULL;
	for (size_t i = 0; i < k->nwords; i++) {
		const struct ff_sighting *w = k->words[i];
		if (!best || word_worth(w) > word_worth(best) ||
			(word_worth(w) == word_worth(best) && before(w, best))) {
			best = w;
		}
	}
	return best;
}

static bool any_trouble_but_ends(const struct look *k)
{
	if (k->ngroups || k->nloose || k->nhosts || k->loose_reports) {
		return true;
	}
	for (size_t i = 0; i < k->t->nranks; i++) {
		const struct story *st = &k->stories[i];
		if (st->report || st->echo || st->late) {
			return true;
		}
	}
	return false;
}

/* The launcher's signal: an interrupt is somebody's Ctrl-C. */
static const char *fault_of_signal(const struct ff_sighting *word)
{
	bool interrupt = ff_str_eqz(ff_event_field(word->ev, FF_F_signal), "SIGINT");
	return interrupt ? "cancelled" : "sigterm";
}

static bool any_trouble(const struct look *k)
{
	for (size_t i = 0; i < k->t->nranks; i++) {
		const struct story *st = &k->stories[i];
		if (st->alone && st->sig != 15) {
			return true;
		}
	}
	return any_trouble_but_ends(k);
}

/* A bare "STEP ... CANCELLED" before any task ended and any rank complained, and then every task
 * dies of the signal: somebody cancelled the step. After a task's error it is the clean-up
 * (SOURCES.md slurm-messages). */
static bool step_cancelled(const struct look *k)
{
	size_t killed = 0;
	if (!k->cancel || any_trouble_but_ends(k)) {
		return false;
	}
	for (size_t i = 0; i < k->t->nranks; i++) {
		const struct ff_sighting *exit = k->t->ranks[i].exit;
		int sig = ff_exit_signal(k->t->ranks[i].exit_code);
		if (exit && ((sig != 9 && sig != 15) || !before(k->cancel, exit))) {
			return false;
		}
		killed += exit != NULL;
	}
	return killed == k->t->nranks && k->t->roster_known && !hung_before(k, k->cancel);
}

bool ff_rule_external(struct look *k, struct ff_finding *f)
{
	const char *state = ff_outside_state(k);
	const struct ff_sighting *word = best_word(k);
	f->kind = FF_VERDICT_EXTERNAL;
	if (word && precedes_all(k, word)) {
		bool signal = word->ev->kind != FF_EVENT_FAULT;
		ff_finding_cause(f, word);
		f->fault = !signal ? word->ev->fault : state ? state : fault_of_signal(word);
		bool sure = word_worth(word) == 2 && !any_trouble(k) && !may_have_hung(k, word);
		f->confidence = sure ? FF_CERTAIN : FF_LIKELY;
		ff_finding_proof(k, f, word);
		f->text = signal ? "the launcher got a signal from outside before any rank had a "
				   "fault of its own"
				 : "a word from outside the job precedes every rank's own fault";
		return true;
	}
	if (!word && step_cancelled(k)) {
		f->cause = k->cancel;
		f->fault = state ? state : "cancelled";
		f->confidence = FF_LIKELY;
		ff_finding_proof(k, f, k->cancel);
		f->text = "the step was cancelled before any task ended or any rank had a fault";
		return true;
	}
	if (state && !word && !any_trouble(k)) {
		f->fault = state;
		f->confidence = FF_LIKELY;
		f->text =
			"the scheduler says how the job ended, and no rank has a fault of its own";
		return true;
	}
	return false;
}

/* ---- hardware */

/* Ranks whose first own fault is this host's, or that live on it. */
static void blame_host(
	const struct look *k, struct ff_finding *f, const char *node, const struct ff_sighting *s)
{
	int32_t *ranks = FF_ARENA_ARR(arena_of(k), int32_t, k->t->nranks + 1);
	size_t n = 0;
	for (size_t i = 0; i < k->t->nranks; i++) {
		const struct ff_rank_line *r = &k->t->ranks[i];
		bool here = r->node && !strcmp(r->node, node);
		if (s->rank != FF_UNKNOWN ? r->rank == s->rank : here) {
			ranks[n++] = r->rank;
		}
	}
	ff_finding_blame(k, f, ranks, n);
	f->kind = FF_VERDICT_NODE;
	f->node = node;
	ff_finding_cause(f, s);
	ff_finding_proof(k, f, s);
}

static bool is_trusted(const struct ff_sighting *s)
{
	return s->stream && s->stream->origin.trusted &&
		(s->stream->origin.kind == FF_STREAM_KERNEL ||
			s->stream->origin.kind == FF_STREAM_SCHEDULER);
}

/* Which host a word is about; "Nodes node-a,node-c not responding" is no single one. */
static const char *host_of(const struct look *k, const struct ff_sighting *s)
{
	struct ff_str named = ff_event_field(s->ev, FF_F_node);
	if (!named.n && domain_of(s) == FF_DOMAIN_SCHEDULER) {
		return NULL;
	}
	if (!named.n) {
		named = ff_event_field(s->ev, FF_F_host);
	}
	if (!named.n) {
		return s->node;
	}
	if (ff_str_chr(named, ',', 0) >= 0 || ff_str_chr(named, '[', 0) >= 0) {
		return NULL;
	}
	return ff_arena_str(arena_of(k), named);
}

bool ff_rule_hardware(struct look *k, struct ff_finding *f)
{
	const struct ff_sighting *first = NULL;
	const char *node = NULL;
	for (size_t i = 0; i < k->nhosts; i++) {
		const struct ff_sighting *s = k->hosts[i];
		const char *host = host_of(k, s);
		if (!host && ff_event_field(s->ev, FF_F_node).n) {
			/* Several nodes at once: some only forwarded for the one that is gone, and
			 * "on failed node" may name one of those (SOURCES.md slurm-messages). */
			return false;
		}
		if (!host) {
			continue;
		}
		if (node && strcmp(node, host) && !before(first, s) && !before(s, first)) {
			return false; /* two hosts, and nobody knows which went first */
		}
		if (!first || before(s, first)) {
			first = s;
			node = host;
		}
	}
	if (!first) {
		return false;
	}
	for (size_t i = 0; i < k->t->nranks; i++) {
		const struct story *st = &k->stories[i];
		bool elsewhere = !st->line->node || strcmp(st->line->node, node);
		if (st->own && !is_host_word(st->own) && elsewhere && !is_vague(st->own) &&
			!before(first, st->own)) {
			return false; /* another rank's own fault may have come first */
		}
	}
	blame_host(k, f, node, first);
	f->confidence = is_trusted(first) ? FF_CERTAIN : FF_LIKELY;
	f->text = is_trusted(first) ? "the kernel or scheduler says what failed on this host"
				    : "the job's own text says that this host failed";
	return true;
}
