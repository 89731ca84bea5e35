#include "core/rules_own.h"

#include <stdlib.h>

#define FEW 4 /* one in so many of those heard is no part of a fault of all */

/* ---- same faults */

/* The group whose first fault is before all other own faults; NULL where nobody can tell. */
static struct group *leading_group(const struct look *k, bool *ret_by_content)
{
	*ret_by_content = false;
	for (size_t i = 0; i < k->ngroups; i++) {
		struct group *g = &k->groups[i];
		bool leads = true, by_content = false;
		for (size_t j = 0; j < k->ngroups && leads; j++) {
			struct group *h = &k->groups[j];
			if (h == g || before(g->first, h->first)) {
				continue;
			}
			/* A text that says what is wrong beats one that may be about a peer. */
			bool clear = !is_vague(g->first) && is_vague(h->first) &&
				!before(h->first, g->first);
			leads = clear;
			by_content = by_content || clear;
		}
		if (leads) {
			*ret_by_content = by_content;
			return g;
		}
	}
	return NULL;
}

static size_t count_signalled(const struct look *k, int32_t *ret_rank, int *ret_sig)
{
	size_t n = 0;
	for (size_t i = 0; i < k->t->nranks; i++) {
		const struct story *st = &k->stories[i];
		if (ff_story_signalled(k, st)) {
			*ret_rank = st->line->rank;
			*ret_sig = st->sig;
			n++;
		}
	}
	return n;
}

/* All own faults are of the vague kind, and one rank died of a signal without a word: the signal
 * was first, the exceptions are its peers' (SOURCES.md real-runs). */
static bool signal_beats(const struct look *k)
{
	int32_t rank = FF_UNKNOWN;
	int sig = 0;
	for (size_t i = 0; i < k->ngroups; i++) {
		if (!is_vague(k->groups[i].first)) {
			return false;
		}
	}
	return count_signalled(k, &rank, &sig) == 1 && sig != 15;
}

static bool nobody_reports(const struct look *k)
{
	for (size_t i = 0; i < k->t->nranks; i++) {
		if (k->stories[i].report) {
			return false;
		}
	}
	return !k->loose_reports;
}

/* Heard ranks outside the group that had the chance to show the same fault and did not. */
static size_t count_without(const struct look *k, const struct group *g, bool *ret_all_torn)
{
	size_t n = 0;
	*ret_all_torn = true;
	for (size_t i = 0; i < k->t->nranks; i++) {
		const struct story *st = &k->stories[i];
		bool in = st->own && ff_group_has(g, st->own);
		if (in || !st->line->own_stream) {
			continue;
		}
		n++;
		bool torn = st->closed || st->torn || ff_exit_signal(st->line->exit_code) == 15;
		*ret_all_torn = *ret_all_torn && torn && !st->own && !st->report;
	}
	return n;
}

/* All but rank 0, with the constant cuda:0: only for rank 0 is that its own device. */
static bool is_hard_wired(const struct look *k, const struct group *g)
{
	return is_fault(g->first, "device-mismatch") && g->n + 1 == k->t->nranks &&
		k->t->roster_known && g->own[0]->rank == 1;
}

bool ff_rule_common(struct look *k, struct ff_finding *f)
{
	bool by_content, all_torn;
	const struct group *g = leading_group(k, &by_content);
	if (!g || g->n < 2 || signal_beats(k)) {
		return false;
	}
	size_t without = count_without(k, g, &all_torn);
	bool nearly_all = g->n * 10 >= (g->n + without) * 9;
	/* The first to fail ends the others before they come to the same line. */
	bool cut_short =
		all_torn && nobody_reports(k) && (g->n > without || !ff_look_progressed(k));
	if (!nearly_all && (!cut_short || is_hard_wired(k, g))) {
		return false;
	}
	size_t world = k->t->roster_known ? k->t->nranks : 0;
	if (world && g->n * 2 < world && !nobody_reports(k)) {
		return false;
	}
	ff_finding_group(k, f, g);
	f->kind = FF_VERDICT_COMMON;
	f->nranks = 0;
	f->confidence = world == g->n && !by_content ? FF_CERTAIN : FF_LIKELY;
	f->text = ff_arena_fmt(arena_of(k),
		"%zu of %zu ranks heard show the same fault of their own, none after a report "
		"about a peer",
		g->n, g->n + without);
	return true;
}

/* ---- what Ray left out */

/* Of lines that look alike Ray prints the first, and seconds later the last with a number
 * (SOURCES.md ray-logs): who printed the others is unknown. */
static int64_t left_out(const struct group *g)
{
	int64_t most = 0;
	for (size_t i = 0; i < g->n; i++) {
		int64_t n = ff_event_int(g->own[i]->ev, FF_F_repeats, 0);
		most = n > most ? n : most;
	}
	return most >= (int64_t)g->n ? most : 0;
}

/* May a rank that shows nothing else have the same fault among what was left out? */
static bool may_be_others(const struct look *k, const struct group *g)
{
	for (size_t i = 0; left_out(g) && i < k->t->nranks; i++) {
		const struct story *st = &k->stories[i];
		if (!st->own && !st->report && !st->torn && !st->closed && !st->line->succeeded) {
			return true;
		}
	}
	return false;
}

static bool find_left_out(const struct look *k, const struct group *g, struct ff_finding *f)
{
	if (!may_be_others(k, g)) {
		return false;
	}
	ff_finding_group(k, f, g);
	f->kind = FF_VERDICT_UNDETERMINED;
	f->confidence = FF_NO_CONFIDENCE;
	f->candidates = f->ranks;
	f->ncandidates = f->nranks;
	f->nranks = 0;
	f->text = ff_arena_fmt(arena_of(k),
		"%s %s shows a fault of its own, and Ray left out %lld lines like it, of nobody "
		"knows whom",
		g->n > 1 ? "each of ranks" : "rank",
		ff_look_ranks_text(k, f->candidates, f->ncandidates), (long long)left_out(g));
	ff_finding_need(k, f,
		"RAY_DEDUP_LOGS=0, or the workers' own files, would tell whose lines Ray left out");
	return true;
}

/* ---- a part of the ranks */

static const char *node_of_group(const struct look *k, const struct group *g)
{
	const char *node = NULL;
	for (size_t i = 0; i < g->n; i++) {
		const struct ff_rank_line *r = ff_timeline_rank(k->t, g->own[i]->rank);
		const char *here = r && r->node ? r->node : g->own[i]->node;
		if (!here || (node && strcmp(node, here))) {
			return NULL;
		}
		node = here;
	}
	return node;
}

bool ff_rule_on_a_node(struct look *k, struct ff_finding *f)
{
	bool by_content;
	const struct group *g = leading_group(k, &by_content);
	const char *node = g ? node_of_group(k, g) : NULL;
	if (!node || g->n < 2 || signal_beats(k) || may_be_others(k, g)) {
		return false;
	}
	size_t here = 0, elsewhere = 0;
	for (size_t i = 0; i < k->t->nranks; i++) {
		const struct ff_rank_line *r = &k->t->ranks[i];
		if (r->own_stream && r->node) {
			here += !strcmp(r->node, node);
			elsewhere += strcmp(r->node, node) != 0;
		}
	}
	if (here > g->n || !elsewhere) {
		return false;
	}
	ff_finding_group(k, f, g);
	f->kind = FF_VERDICT_NODE;
	f->node = node;
	f->confidence = FF_LIKELY;
	f->text = "every rank heard of this node shows the same fault, and no rank of another node";
	return true;
}

/* What a group has, others may have too whose last words nobody captured. */
static bool say_open(const struct look *k, struct ff_finding *f)
{
	f->kind = FF_VERDICT_UNDETERMINED;
	f->confidence = FF_NO_CONFIDENCE;
	f->candidates = f->ranks;
	f->ncandidates = f->nranks;
	f->ranks = NULL;
	f->nranks = 0;
	f->text = ff_arena_fmt(arena_of(k),
		"ranks %s show the same fault of their own; of others nothing tells that they "
		"did not have it too",
		ff_look_ranks_text(k, f->candidates, f->ncandidates));
	ff_finding_need(k, f, "each rank's stderr to its end would tell who had this fault");
	return true;
}

/* Everybody was heard, and only few of them show it: no fault of all. */
static bool are_few(const struct look *k, size_t n)
{
	for (size_t i = 0; i < k->t->nranks; i++) {
		if (k->t->ranks[i].heard == FF_UNHEARD) {
			return false;
		}
	}
	return n * FEW <= k->t->nranks;
}

bool ff_rule_on_some(struct look *k, struct ff_finding *f)
{
	bool by_content;
	const struct group *g = leading_group(k, &by_content);
	if (!g || g->n < 2 || signal_beats(k) || may_be_others(k, g)) {
		return false;
	}
	ff_finding_group(k, f, g);
	size_t open = ff_look_open(k, f->ranks, f->nranks, g->first);
	if (open && !is_hard_wired(k, g) && !are_few(k, f->nranks)) {
		return say_open(k, f);
	}
	f->confidence = is_vague(g->first) ? FF_POSSIBLE : FF_LIKELY;
	f->text = ff_arena_fmt(arena_of(k),
		"ranks %s show the same fault of their own, before anybody else's",
		ff_look_ranks_text(k, f->ranks, f->nranks));
	return true;
}

/* ---- own fault first */

/* torchrun's word for a process that left with 1, as Python does for each uncaught exception, be it
 * about a peer: where its text is lost, nothing tells which. */
static bool is_lost_exception(const struct story *st)
{
	return st->line->exit && st->line->exit_code == 1 &&
		ff_event_field(st->line->exit->ev, FF_F_local_rank).n;
}

/* One fault without a rank, and one rank that ended by itself: its words (SOURCES.md
 * torch-excepthook: before init_process_group there is no prefix). */
static const struct ff_sighting *claim_loose(const struct look *k, int32_t *ret_rank)
{
	size_t alone = 0;
	for (size_t i = 0; i < k->nloose; i++) {
		if (k->loose[i]->ev->count > 1 ||
			ff_event_int(k->loose[i]->ev, FF_F_repeats, 0) > 0 ||
			k->loose[i]->ev->fingerprint != k->loose[0]->ev->fingerprint) {
			return NULL;
		}
	}
	for (size_t i = 0; i < k->t->nranks; i++) {
		const struct story *st = &k->stories[i];
		if (st->alone && st->sig != 15 && !st->report && !st->torn) {
			*ret_rank = st->line->rank;
			alone++;
		}
	}
	if (!k->nloose || alone != 1) {
		return NULL;
	}
	const struct story *who = story_of(k, *ret_rank);
	if (is_lost_exception(who) && ff_look_open(k, ret_rank, 1, who->line->exit)) {
		return NULL;
	}
	/* "Segmentation fault" is not the word of one that aborted. */
	const char *died = ff_signal_fault(story_of(k, *ret_rank)->sig);
	const char *said = k->loose[0]->ev->fault;
	bool killed = !strcmp(said, "host-oom-kill");
	if (killed && story_of(k, *ret_rank)->sig != 9) {
		return NULL;
	}
	bool other = !strncmp(said, "sig", 3) && (!died || strcmp(died, said));
	return other ? NULL : k->loose[0];
}

/* No rank can be told apart by its output or its end. */
static bool nobody_has_word(const struct look *k)
{
	for (size_t i = 0; i < k->t->nranks; i++) {
		if (k->t->ranks[i].own_stream || k->t->ranks[i].exit) {
			return false;
		}
	}
	return true;
}

/* The same words without a rank, as often as there are ranks; where nobody knows how many there
 * are, at least twice: a process dies once. */
static bool loose_everywhere(const struct look *k)
{
	size_t copies = 0;
	for (size_t i = 0; i < k->nloose; i++) {
		if (k->loose[i]->ev->fingerprint != k->loose[0]->ev->fingerprint) {
			return false;
		}
		copies += k->loose[i]->ev->count;
	}
	if (k->t->world < 0) {
		return copies > 1 && !k->loose_reports && nobody_has_word(k);
	}
	return k->t->world > 1 && copies * 10 >= (size_t)k->t->world * 9 && !k->loose_reports;
}

/* A launcher's own fault, and no rank of it that ever said or did anything. */
static const struct ff_sighting *launcher_fault(const struct look *k)
{
	if (k->nloose != 1 || k->loose_reports || ff_look_progressed(k)) {
		return NULL;
	}
	for (size_t i = 0; i < k->t->nranks; i++) {
		if (k->t->ranks[i].own_stream || k->t->ranks[i].exit) {
			return NULL;
		}
	}
	const struct ff_sighting *s = k->loose[0];
	bool launcher = (s->stream && s->stream->origin.kind == FF_STREAM_AGENT) ||
		ff_event_field(s->ev, FF_F_launcher).n;
	bool peers = !strncmp(s->ev->fault, "rendezvous", 10); /* it waited for other nodes */
	return (launcher && !peers) || is_fault(s, "config-error") ? s : NULL;
}

static bool find_loose(struct look *k, struct ff_finding *f)
{
	int32_t rank = FF_UNKNOWN;
	const struct ff_sighting *launcher = launcher_fault(k);
	if (launcher) {
		f->kind = FF_VERDICT_COMMON;
		f->confidence = FF_LIKELY;
		ff_finding_cause(f, launcher);
		ff_finding_proof(k, f, launcher);
		f->text = "the launcher itself failed, and no rank was started";
		return true;
	}
	if (loose_everywhere(k)) {
		f->kind = FF_VERDICT_COMMON;
		f->confidence = FF_LIKELY;
		ff_finding_cause(f, k->loose[0]);
		ff_finding_proof(k, f, k->loose[0]);
		f->text = "the same fault is printed as often as there are ranks, without their "
			  "names";
		return true;
	}
	const struct ff_sighting *s = claim_loose(k, &rank);
	if (!s) {
		return false;
	}
	ff_finding_blame(k, f, &rank, 1);
	ff_finding_cause(f, s);
	ff_finding_proof(k, f, s);
	f->confidence = FF_LIKELY;
	f->text = "one fault is printed without a rank, and one rank ended by itself";
	return true;
}

/* Another rank ended with an error and without a word, or of most of them no stderr was captured:
 * they may have had this fault too. Who was heard and shows none is another matter. */
static bool most_wordless(const struct look *k, const struct ff_sighting *own)
{
	const char *launcher =
		ff_control_get(ff_facts_control(k->t->facts, "job@start"), "launcher");
	bool joins = launcher && (!strcmp(launcher, "mpirun") || !strcmp(launcher, "srun"));
	size_t wordless = 0;
	/* Its console holds what any rank printed. */
	joins = joins && own->stream && own->stream->origin.kind == FF_STREAM_MIXED;
	for (size_t i = 0; i < k->t->nranks; i++) {
		const struct story *st = &k->stories[i];
		if (st->line->rank == own->rank || !ff_story_open(st, own)) {
			continue;
		}
		if (st->alone && !st->sig) {
			return true;
		}
		wordless += !joins && !st->line->not_stdout;
	}
	return wordless * 2 >= k->t->nranks - 1 && wordless;
}

bool ff_rule_own(struct look *k, struct ff_finding *f)
{
	bool by_content;
	const struct group *g = leading_group(k, &by_content);
	if (!k->ngroups) {
		return find_loose(k, f);
	}
	if (g && !signal_beats(k) && find_left_out(k, g, f)) {
		return true;
	}
	if (!g || g->n != 1 || signal_beats(k)) {
		return false;
	}
	for (size_t i = 0; i < k->nloose; i++) {
		/* A fault of nobody knows whom, which may have been earlier and is not the same. */
		bool other = k->loose[i]->ev->fingerprint != g->fingerprint;
		if (other && !is_vague(k->loose[i]) && !before(g->first, k->loose[i])) {
			return false;
		}
	}
	ff_finding_group(k, f, g);
	if (nobody_reports(k) && most_wordless(k, g->first)) {
		return say_open(k, f);
	}
	bool sure = k->t->world_told && !by_content && !k->nloose && !g->first->ev->quoted &&
		!left_out(g) && !ff_look_open(k, f->ranks, 1, g->first);
	f->confidence = sure ? FF_CERTAIN : FF_LIKELY;
	if (is_vague(g->first) && nobody_reports(k) && k->ngroups > 1) {
		f->confidence = FF_POSSIBLE;
	}
	f->text = ff_arena_fmt(arena_of(k),
		k->ngroups > 1 ? "rank %d's own fault is before every other rank's"
			: nobody_reports(k)
			? "rank %d has a fault of its own; no other rank shows any"
			: "rank %d is the only one with a fault of its own; the others only report",
		(int)g->first->rank);
	return true;
}

/* ---- several that nobody can order */

static bool group_leads(const struct look *k, const struct group *g)
{
	for (size_t i = 0; i < k->ngroups; i++) {
		if (&k->groups[i] != g && before(k->groups[i].first, g->first)) {
			return false;
		}
	}
	return true;
}

/* All in one moment of one clock: too close together for one to be the other's consequence, since
 * peers notice the end of a process, not its fault (SOURCES.md real-runs). */
static bool in_one_moment(const struct ff_sighting *const *list, size_t n)
{
	for (size_t i = 1; i < n; i++) {
		ff_usec d;
		if (!ff_when_diff(list[i]->when, list[0]->when, &d) || d > FF_TRANSIT ||
			d < -FF_TRANSIT) {
			return false;
		}
	}
	return true;
}

static int by_rank_of(const void *a, const void *b)
{
	const struct ff_sighting *x = *(const struct ff_sighting *const *)a;
	const struct ff_sighting *y = *(const struct ff_sighting *const *)b;
	return x->rank < y->rank ? -1 : x->rank > y->rank;
}

/* The members of all groups that may be first, by rank, as proof; false if one is vague. */
static bool collect_leaders(const struct look *k, struct ff_finding *f, size_t *ret_groups)
{
	*ret_groups = 0;
	for (size_t i = 0; i < k->ngroups; i++) {
		const struct group *g = &k->groups[i];
		if (!group_leads(k, g)) {
			continue;
		}
		if (is_vague(g->first) || may_be_others(k, g)) {
			return false;
		}
		++*ret_groups;
		for (size_t j = 0; j < g->n; j++) {
			ff_finding_proof(k, f, g->own[j]);
		}
	}
	if (f->nproof) {
		qsort(f->proof, f->nproof, sizeof *f->proof, by_rank_of);
	}
	return true;
}

/* It ended by itself with an error code and told nothing about anybody. */
static bool is_wordless(const struct story *st)
{
	return st->alone && !st->sig && !st->report && !st->torn && !st->echo && !st->late;
}

/* Several left with one code of their own, all that report a peer with another: the code sets them
 * apart. */
static bool find_odd_exits(const struct look *k, struct ff_finding *f)
{
	int32_t *ranks = FF_ARENA_ARR(arena_of(k), int32_t, k->t->nranks + 1);
	int32_t odd = 0;
	size_t n = 0, reports = 0;
	for (size_t i = 0; i < k->t->nranks; i++) {
		const struct story *st = &k->stories[i];
		int32_t code = st->line->exit_code;
		if (is_wordless(st)) {
			if ((n && code != odd) || is_lost_exception(st)) {
				return false;
			}
			odd = code;
			ranks[n++] = st->line->rank;
			ff_finding_proof(k, f, st->line->exit);
		} else if (st->own || st->sig || st->echo) {
			return false;
		}
	}
	for (size_t i = 0; i < k->t->nranks; i++) {
		const struct story *st = &k->stories[i];
		reports += st->report != NULL;
		if (st->report && st->line->exit_code == odd) {
			return false;
		}
	}
	if (n < 2 || reports < n || k->nloose || k->loose_reports) {
		return false;
	}
	ff_finding_blame(k, f, ranks, n);
	f->cause = f->proof[0];
	f->fault = "nonzero-exit";
	f->confidence = FF_LIKELY;
	f->text = ff_arena_fmt(arena_of(k),
		"ranks %s ended by themselves with exit code %d, which nobody has that reports a "
		"lost peer",
		ff_look_ranks_text(k, ranks, n), (int)odd);
	return true;
}

bool ff_rule_several(struct look *k, struct ff_finding *f)
{
	size_t leaders;
	if (!k->ngroups) {
		return find_odd_exits(k, f);
	}
	if (!collect_leaders(k, f, &leaders) || leaders < 2) {
		return false;
	}
	int32_t *ranks = FF_ARENA_ARR(arena_of(k), int32_t, f->nproof);
	const struct ff_sighting *first = NULL;
	for (size_t i = 0; i < f->nproof; i++) {
		ranks[i] = f->proof[i]->rank;
		keep_first(&first, f->proof[i]);
	}
	ff_finding_cause(f, first);
	if (in_one_moment(f->proof, f->nproof) && !k->nloose) {
		ff_finding_blame(k, f, ranks, f->nproof);
		f->confidence = FF_POSSIBLE;
		f->text = ff_arena_fmt(arena_of(k),
			"ranks %s have different faults of their own in one moment, too close "
			"for one to follow from another",
			ff_look_ranks_text(k, ranks, f->nproof));
		return true;
	}
	f->kind = FF_VERDICT_UNDETERMINED;
	f->confidence = FF_NO_CONFIDENCE;
	f->candidates = ranks;
	f->ncandidates = f->nproof;
	f->text = ff_arena_fmt(arena_of(k),
		"ranks %s each have a fault of their own, and their order is not known",
		ff_look_ranks_text(k, ranks, f->nproof));
	ff_finding_need(k, f, "stamps of one clock for these ranks would order their faults");
	return true;
}

/* ---- killed */

/* Of every rank there is output, or how it ended. */
static bool all_known(const struct look *k)
{
	for (size_t i = 0; i < k->t->nranks; i++) {
		const struct ff_rank_line *r = k->stories[i].line;
		if (r->heard == FF_UNHEARD && !r->exit) {
			return false;
		}
	}
	return true;
}

/* A SIGKILL after another rank left by itself, without a report, is that one's clean-up. */
static bool is_clean_up(const struct look *k, int32_t killed)
{
	const struct ff_sighting *exit = NULL;
	for (size_t i = 0; i < k->t->nranks; i++) {
		exit = k->stories[i].line->rank == killed ? k->stories[i].line->exit : exit;
	}
	for (size_t i = 0; exit && i < k->t->nranks; i++) {
		const struct story *st = &k->stories[i];
		if (st->line->rank != killed && st->alone && !st->report && !st->torn &&
			before(st->line->exit, exit)) {
			return true;
		}
	}
	return false;
}

/* gloo and NCCL abort a process that lost a peer (SOURCES.md process-group-nccl): an abort without
 * a word, where others' words are theirs, may be one of which the words are lost. */
static bool may_be_report(const struct look *k, size_t open)
{
	static const char *const theirs[] = {"gloo-peer-closed", "nccl-timeout",
		"nccl-remote-error", "collective-mismatch", "straggler-hang", NULL};
	for (size_t i = 0; i < k->t->nranks; i++) {
		const struct ff_sighting *s = k->stories[i].report;
		if (s && is_one_of(s->ev->fault, theirs)) {
			return true;
		}
	}
	return open && !ff_look_ends_told(k);
}

bool ff_rule_killed(struct look *k, struct ff_finding *f)
{
	int32_t *ranks = FF_ARENA_ARR(arena_of(k), int32_t, k->t->nranks + 1);
	size_t n = 0, terms = 0;
	int sig = 0;
	for (size_t i = 0; i < k->t->nranks; i++) {
		const struct story *st = &k->stories[i];
		if (!ff_story_signalled(k, st)) {
			continue;
		}
		if (n && sig != st->sig) {
			return false;
		}
		sig = st->sig;
		terms += sig == 15 || sig == 1;
		ranks[n++] = st->line->rank;
		ff_finding_proof(k, f, st->line->exit);
	}
	if (!n || (terms && (n > 1 || k->nwords))) {
		return false;
	}
	if (n > 1 && sig == 9) {
		return false; /* several SIGKILLs are somebody's clean-up as well */
	}
	if (n == 1 && sig == 9 && is_clean_up(k, ranks[0])) {
		return false;
	}
	/* The scheduler ended the job: so it did its processes. */
	if ((sig == 9 || terms) && ff_outside_state(k)) {
		return false;
	}
	size_t open = ff_look_open(k, ranks, n, f->proof[0]);
	if ((open && terms) || (sig == 6 && may_be_report(k, open))) {
		return false; /* a peer's end is followed by both of these */
	}
	ff_finding_blame(k, f, ranks, n);
	f->cause = f->proof[0];
	f->fault = ff_signal_fault(sig);
	f->confidence = n == 1 && k->t->world_told && !terms ? FF_CERTAIN : FF_LIKELY;
	if (open || k->ngroups || k->nloose || !all_known(k)) {
		f->confidence = FF_LIKELY;
	}
	if (n == k->t->nranks && n > 1) {
		f->kind = FF_VERDICT_COMMON;
		f->nranks = 0;
	}
	f->text = ff_arena_fmt(arena_of(k),
		"rank %s ended by %s, which its launcher did not send, without a word about a peer",
		ff_look_ranks_text(k, ranks, n), ff_signal_name(sig));
	return true;
}

/* ---- an exit without a text */

bool ff_rule_silent_exit(struct look *k, struct ff_finding *f)
{
	const struct story *who = NULL;
	size_t others = 0, rivals = 0, losses = 0;
	for (size_t i = 0; i < k->t->nranks; i++) {
		const struct story *st = &k->stories[i];
		if (st->own || st->late) {
			return false;
		}
		bool silent = is_wordless(st);
		if (silent && who) {
			return false;
		}
		who = silent ? st : who;
		others += st->closed || st->report;
		losses += st->report && is_loss(st->report);
		rivals += st->alone && !silent;
	}
	/* Where reports carry no rank, they may be this rank's. */
	if (!who || k->nloose || k->loose_reports) {
		return false;
	}
	bool lost = is_lost_exception(who);
	if ((lost || others) && ff_look_open(k, &who->line->rank, 1, who->line->exit)) {
		return false;
	}
	if (lost && losses + 1 < k->t->nranks) {
		return false;
	}
	if (!others && (rivals || !k->t->roster_known || k->nhosts || k->nwords)) {
		return false; /* nobody depends on it, unless the others' ends are unknown */
	}
	ff_finding_blame(k, f, &who->line->rank, 1);
	f->cause = who->line->exit;
	bool silent = who->line->stderr_to_end && !who->line->last_words;
	f->fault = silent ? "silent-exit" : "nonzero-exit";
	ff_finding_proof(k, f, who->line->exit);
	f->confidence = FF_LIKELY;
	f->text = ff_arena_fmt(arena_of(k),
		others ? "rank %d ended by itself with exit code %d and without a text that is "
			 "known; the others report a lost peer or were ended"
		       : "rank %d ended by itself with exit code %d; no other rank ended badly or "
			 "reports anything",
		(int)who->line->rank, (int)who->line->exit_code);
	return true;
}

/* ---- handled, quoted or late faults: they weigh nothing unless nothing else is there */

/* Every rank heard shows the same one. */
static bool echo_everywhere(const struct look *k)
{
	struct group g = {0};
	size_t n = 0, heard = 0;
	for (size_t i = 0; i < k->t->nranks; i++) {
		const struct ff_sighting *s = k->stories[i].echo;
		heard += k->stories[i].line->own_stream;
		if (!s) {
			continue;
		}
		if (!n) {
			g = (struct group){.fault = s->ev->fault,
				.signature = s->ev->signature,
				.fingerprint = s->ev->fingerprint,
				.frame = s->ev->frame};
		}
		n += ff_group_has(&g, s);
	}
	return n > 1 && n * 10 >= heard * 9;
}

bool ff_rule_handled(struct look *k, struct ff_finding *f)
{
	const struct story *who = NULL;
	size_t n = 0;
	for (size_t i = 0; i < k->t->nranks; i++) {
		const struct story *st = &k->stories[i];
		if (st->own) {
			return false;
		}
		const struct ff_sighting *s = st->echo;
		if (!s || (st->report && before(st->report, s))) {
			continue;
		}
		who = who ? who : st;
		n++;
		if (f->nproof < 64) {
			ff_finding_proof(k, f, s);
		}
	}
	if (!n || k->nloose) {
		return false;
	}
	ff_finding_cause(f, who->echo);
	f->confidence = FF_POSSIBLE;
	if (echo_everywhere(k)) {
		f->kind = FF_VERDICT_COMMON;
		f->text = "every rank heard shows the same fault, though not as the end of it";
		return true;
	}
	bool others = ff_look_open(k, &who->line->rank, 1, who->echo) != 0;
	if (n != 1 || (others && nobody_reports(k))) {
		return false;
	}
	ff_finding_blame(k, f, &who->line->rank, 1);
	f->text = "the only fault of its own that anybody shows was handled, or is a copy";
	return true;
}
