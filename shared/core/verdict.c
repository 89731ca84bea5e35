#include "core/verdict_own.h"
#include "base/arr.h"

#include <stdlib.h>

#define ATTEMPTS_JUDGED 64 /* attempts that a verdict lists: the first and the last of them */

/* ---- names */

static const char *const kind_names[] = {
#define X(e, name, exit) name,
	FF_VERDICTS(X)
#undef X
};

static const int kind_exits[] = {
#define X(e, name, exit) exit,
	FF_VERDICTS(X)
#undef X
};

static const char *const status_names[] = {
#define X(e, name) name,
	FF_STATUSES(X)
#undef X
};

static const char *const action_names[] = {
#define X(e, name) name,
	FF_ACTIONS(X)
#undef X
};

const char *ff_verdict_kind_name(enum ff_verdict_kind k)
{
	return kind_names[k];
}

int ff_verdict_exit_status(enum ff_verdict_kind k)
{
	return kind_exits[k];
}

const char *ff_confidence_name(enum ff_confidence c)
{
	static const char *const names[] = {"certain", "likely", "possible", NULL};
	return names[c];
}

const char *ff_status_name(enum ff_status s)
{
	return status_names[s];
}

const char *ff_action_name(enum ff_action_kind a)
{
	return action_names[a];
}

const char *ff_run_state_name(enum ff_run_state s)
{
	static const char *const names[] = {"running", "stalled", "ending", "ended"};
	return names[s];
}

/* ---- making one */

const char *ff_verdict_use(struct maker *m, const struct ff_sighting *s)
{
	if (!s) {
		return NULL;
	}
	*FF_ARR_ADD(m->used, m->nused, m->cused) = s;
	return s->id;
}

const char *ff_verdict_span(const struct maker *m, ff_usec d)
{
	struct ff_buf b = {0};
	ff_usec_render_span(&b, d);
	char *text = ff_arena_str(arena_of(m), ff_buf_str(&b));
	ff_buf_finish(&b);
	return text;
}

/* One line without control characters: names of nodes come from outside. */
const char *ff_verdict_line(const struct maker *m, const char *text)
{
	char *copy = ff_arena_strdup(arena_of(m), text);
	for (char *c = copy; *c; c++) {
		if ((unsigned char)*c < 0x20 || *c == 0x7f) {
			*c = '?';
		}
	}
	return copy;
}

static const char **id_list(struct maker *m, const struct ff_sighting *const *list, size_t n)
{
	const char **ids = FF_ARENA_ARR(arena_of(m), const char *, n + 1);
	size_t kept = 0;
	for (size_t i = 0; i < n; i++) {
		bool repeated = false;
		for (size_t j = 0; j < i && j < 16; j++) {
			repeated = repeated || list[j] == list[i];
		}
		if (!repeated) {
			ids[kept++] = ff_verdict_use(m, list[i]);
		}
	}
	return ids;
}

static const char *ranks_text(const struct maker *m, const int32_t *ranks, size_t n)
{
	struct ff_buf b = {0};
	size_t parts = 0;
	for (size_t i = 0; i < n;) {
		size_t j = i;
		while (j + 1 < n && ranks[j + 1] == ranks[j] + 1) {
			j++;
		}
		if (parts++ >= 12) {
			ff_buf_addz(&b, ",...");
			break;
		}
		ff_buf_addf(&b, "%s%d", i ? "," : "", (int)ranks[i]);
		if (j > i) {
			ff_buf_addf(&b, "-%d", (int)ranks[j]);
		}
		i = j + 1;
	}
	char *text = ff_arena_str(arena_of(m), ff_buf_str(&b));
	ff_buf_finish(&b);
	return text;
}

/* ---- the fault and what the catalogue says about it */

static const struct ff_signature *signature_of(const struct maker *m)
{
	const struct ff_sighting *s = m->f.cause;
	if (s && s->sig && m->f.fault && !strcmp(s->sig->id, m->f.fault) && s->sig->cause) {
		return s->sig;
	}
	return m->f.fault ? ff_catalog_find(m->t->catalog, m->f.fault) : NULL;
}

static const char *plain_title(const struct maker *m, const char *fault)
{
	char *title = ff_arena_strdup(arena_of(m), fault);
	for (char *c = title; *c; c++) {
		*c = *c == '-' ? ' ' : *c;
	}
	return title;
}

/* Faults that exit reports alone stand for: the catalogue matches no text of theirs. */
static const struct {
	const char *fault, *title, *cause;
} exit_faults[] = {
	{"sigkill", "Killed by SIGKILL",
		"Something outside the process ended it: the kernel's or a cgroup's out-of-memory "
		"killer, a scheduler, or a person."},
	{"sigterm", "Ended by SIGTERM", "Something outside the job told this process to end."},
	{"sighup", "Ended by SIGHUP", "The terminal or session of the process was closed."},
	{"silent-exit", "Left with an error code and without a text",
		"The process ended itself (sys.exit, os._exit, a native library) and printed "
		"nothing that says why."},
	{"nonzero-exit", "Left with an error code",
		"The process ended itself with an error code; its own output was not captured, or "
		"does not say why."},
	{"early-exit", "Left early with success",
		"The process ended with exit code 0 while its peers still had work with it: fewer "
		"batches, an early stop, or a condition that only this rank met."},
	{"node-lost", "A node went away",
		"The host or its network ended; its own logs do not say why."},
	{"straggler-hang", "Did not come to what the others waited in",
		"The process did not come to the operation that its peers waited in: it hung, was "
		"slow, or was somewhere else in the program."},
	{"store-timeout", "Did not come to what the others waited for",
		"The process did not set the key of the store that its peers waited for: it hung, "
		"was slow, or was somewhere else in the program."},
	{"collective-mismatch", "Is in another collective than the others",
		"The process called another operation, or one of another size, than its peers."},
	{"preempted", "Preempted", "The scheduler took the resources back."},
	{"time-limit", "Time limit reached", "The scheduler ended the job at its time limit."},
	{"cancelled", "Cancelled", "A person or a script ended the job."},
};

static void fill_fault(struct maker *m)
{
	struct ff_verdict *v = m->v;
	const struct ff_signature *sig = signature_of(m);
	v->fix = FF_ARENA_ARR(arena_of(m), const char *, 1);
	if (!m->f.fault || !*m->f.fault || v->kind == FF_VERDICT_CLEAN) {
		return;
	}
	v->fault = m->f.fault;
	const struct ff_sighting *s = m->f.cause;
	if (s && !strcmp(s->ev->fault, v->fault) && s->ev->signature && *s->ev->signature) {
		v->signature = s->ev->signature;
	}
	v->title = sig ? sig->title : plain_title(m, v->fault);
	v->category = sig ? sig->category : "process";
	if (sig) {
		const struct ff_signature *own = ff_catalog_find(m->t->catalog, v->fault);
		v->did = sig->did || !own ? sig->did : own->did; /* a peer's word for it has none */
		v->cause = sig->cause;
		v->fix = sig->fix;
		v->verify = sig->verify;
		v->nverify = sig->nverify;
	}
	/* Where the fault is not that of its event, or the event is a victim's report, the
	 * catalogue's words are about somebody else. */
	bool of_event = s && s->ev->kind == FF_EVENT_FAULT && v->signature &&
		(s->ev->role == FF_ROLE_PRIMARY || v->kind == FF_VERDICT_UNDETERMINED);
	for (size_t i = 0; i < sizeof exit_faults / sizeof exit_faults[0]; i++) {
		if (!of_event && !strcmp(exit_faults[i].fault, v->fault)) {
			v->title = exit_faults[i].title;
			v->cause = exit_faults[i].cause;
			v->did = NULL;
			v->signature = NULL;
		}
	}
}

/* ---- who */

static void fill_initiating(struct maker *m)
{
	struct ff_verdict *v = m->v;
	const struct ff_finding *f = &m->f;
	m->starts = ff_arena_alloc(arena_of(m), m->t->nranks + 1);
	bool names = v->kind == FF_VERDICT_RANK || v->kind == FF_VERDICT_NODE;
	v->node = v->kind == FF_VERDICT_NODE ? ff_verdict_line(m, f->node) : NULL;
	v->initiating = FF_ARENA_ARR(arena_of(m), struct ff_who, f->nranks + 1);
	for (size_t i = 0; names && i < f->nranks; i++) {
		const struct ff_rank_line *r = ff_timeline_rank(m->t, f->ranks[i]);
		const struct ff_sighting *proof = NULL;
		for (size_t j = 0; j < f->nproof && j < 65536 && !proof; j++) {
			/* proof stands in order of rank: start where it would be */
			size_t at = (i + j) % f->nproof;
			proof = f->proof[at]->rank == f->ranks[i] ? f->proof[at] : NULL;
		}
		v->initiating[v->ninitiating++] = (struct ff_who){
			.rank = f->ranks[i],
			.local_rank = r ? r->local_rank : FF_UNKNOWN,
			.node = r && r->node ? r->node : f->node,
			.event = ff_verdict_use(m, proof),
		};
		if (r) {
			m->starts[r - m->t->ranks] = 1;
		}
	}
	for (size_t i = 0; v->kind == FF_VERDICT_COMMON && i < f->nproof; i++) {
		const struct ff_rank_line *r = ff_timeline_rank(m->t, f->proof[i]->rank);
		if (r) {
			m->starts[r - m->t->ranks] = 1; /* each began by itself */
		}
	}
}

/* ---- what is missing */

static int by_text(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static bool is_unheard(const struct ff_rank_line *r)
{
	return r->heard == FF_UNHEARD && !r->own_stream;
}

/* Ranks without output, by node: "no output of ranks 8-15 (node-1)"; those whose node nobody knows
 * are one sentence, wherever they stand among the others. */
static void miss_ranks(struct maker *m, const char ***list, size_t *n, size_t *cap)
{
	size_t nranks = m->t->nranks;
	int32_t *ranks = FF_ARENA_ARR(arena_of(m), int32_t, nranks + 1);
	uint8_t *said = ff_arena_alloc(arena_of(m), nranks + 1);
	for (size_t i = 0; i < nranks && *n < 64; i++) {
		const char *node = m->t->ranks[i].node;
		size_t k = 0;
		if (said[i] || !is_unheard(&m->t->ranks[i])) {
			continue;
		}
		for (size_t j = i; j < nranks; j++) {
			const struct ff_rank_line *r = &m->t->ranks[j];
			bool same = node == r->node || (node && r->node && !strcmp(node, r->node));
			if (same && is_unheard(r)) {
				ranks[k++] = r->rank;
				said[j] = 1;
			}
		}
		const char *what = k == 1 ? "rank" : "ranks";
		const char *who = ranks_text(m, ranks, k);
		*FF_ARR_ADD(*list, *n, *cap) = node
			? ff_arena_fmt(arena_of(m), "no output of %s %s (%s)", what, who, node)
			: ff_arena_fmt(arena_of(m), "no output of %s %s", what, who);
	}
}

/* Somebody's own fault stands in a stream of several, and nothing says whose it is. */
static bool has_unlabelled(const struct ff_timeline *t)
{
	for (size_t i = 0; i < t->nall && t->world != 1 && t->nranks > 1; i++) {
		const struct ff_sighting *s = &t->all[i];
		if (s->stream && s->stream->origin.kind == FF_STREAM_MIXED &&
			s->rank == FF_UNKNOWN && s->attempt == t->attempt &&
			s->ev->kind == FF_EVENT_FAULT && s->ev->role == FF_ROLE_PRIMARY &&
			s->unrecovered && !s->ev->handled && !s->ev->quoted) {
			return true;
		}
	}
	return false;
}

/* Nothing tells the ranks apart: no prefix, and no stream that is one rank's. */
static bool has_no_ranks(const struct ff_timeline *t)
{
	bool faults = false;
	for (size_t i = 0; i < t->nstreams; i++) {
		const struct ff_stream *s = t->streams[i];
		if (s->origin.rank != FF_UNKNOWN || s->origin.local_rank != FF_UNKNOWN) {
			return false;
		}
		for (size_t k = 0; k < s->nlanes; k++) {
			if (s->lanes[k]->tag.kind != FF_TAG_NONE) {
				return false;
			}
		}
	}
	for (size_t i = 0; i < t->nall; i++) {
		if (t->all[i].rank != FF_UNKNOWN) {
			return false;
		}
		faults = faults || (t->all[i].ev->kind == FF_EVENT_FAULT &&
			t->all[i].ev->role != FF_ROLE_NOISE);
	}
	return faults && t->world != 1;
}

static void miss_streams(struct maker *m, const char ***list, size_t *n, size_t *cap)
{
	for (size_t i = 0; i < m->t->nstreams; i++) {
		const struct ff_stream *s = m->t->streams[i];
		if (*n < 96 && s->gap) {
			*FF_ARR_ADD(*list, *n, *cap) =
				ff_arena_fmt(arena_of(m), "a part of %s is missing", s->key);
		}
		if (*n < 96 && s->state == FF_STREAM_VANISHED) {
			*FF_ARR_ADD(*list, *n, *cap) =
				ff_arena_fmt(arena_of(m), "the end of %s", s->key);
		}
	}
	if (m->v->kind == FF_VERDICT_UNDETERMINED && has_no_ranks(m->t)) {
		*FF_ARR_ADD(*list, *n, *cap) =
			"no line carries a rank: relaunch with a label "
			"(srun --label, torchrun --tee 3), or one file a rank";
	} else if (has_unlabelled(m->t)) {
		*FF_ARR_ADD(*list, *n, *cap) = "faults without a rank: lines of several ranks are "
					       "not told apart";
	}
}

static void fill_missing(struct maker *m)
{
	struct ff_verdict *v = m->v;
	const char **list = NULL;
	size_t n = 0, cap = 0;
	if (v->kind != FF_VERDICT_CLEAN) {
		miss_ranks(m, &list, &n, &cap);
		miss_streams(m, &list, &n, &cap);
	}
	for (size_t i = 0; m->f.missing && m->f.missing[i]; i++) {
		*FF_ARR_ADD(list, n, cap) = m->f.missing[i];
	}
	const struct ff_ask *ask = &m->t->ask;
	size_t told = v->kind == FF_VERDICT_CLEAN ? ask->nunread : ask->nmissing;
	for (size_t i = 0; i < told; i++) {
		*FF_ARR_ADD(list, n, cap) = ask->missing[i];
	}
	for (size_t i = 0; i < n; i++) {
		list[i] = ff_verdict_line(m, list[i]);
	}
	if (n) {
		qsort(list, n, sizeof *list, by_text);
	}
	v->missing = FF_ARENA_ARR(arena_of(m), const char *, n + 1);
	size_t kept = 0;
	for (size_t i = 0; i < n; i++) {
		if (!kept || strcmp(v->missing[kept - 1], list[i])) {
			v->missing[kept++] = list[i];
		}
	}
	free(list);
}

static void fill_why(struct maker *m)
{
	struct ff_verdict *v = m->v;
	size_t n = m->f.nproof < 64 ? m->f.nproof : 64;
	v->why = FF_ARENA_ARR(arena_of(m), struct ff_why, 1);
	v->why[v->nwhy++] = (struct ff_why){
		.rule = ff_rule_name(m->f.rule),
		.text = m->f.text,
		.events = id_list(m, m->f.proof, n),
	};
}

/* ---- the summary */

static const char *lower_first(const struct maker *m, const char *title)
{
	char *copy = ff_arena_strdup(arena_of(m), title);
	bool word = copy[0] >= 'A' && copy[0] <= 'Z' &&
		((copy[1] >= 'a' && copy[1] <= 'z') || copy[1] == ' ');
	if (word) {
		copy[0] = (char)(copy[0] - 'A' + 'a');
	}
	return copy;
}

/* How long before any other rank's fault; FF_TIME_NONE if nobody can tell. */
static ff_usec lead_of(const struct maker *m)
{
	ff_usec lead = FF_TIME_NONE;
	for (size_t i = 0; i < m->v->ncollateral; i++) {
		const struct ff_collateral *c = &m->v->collateral[i];
		if (c->has_after && c->status == FF_STATUS_COLLATERAL &&
			(lead == FF_TIME_NONE || c->after_us < lead)) {
			lead = c->after_us;
		}
	}
	return lead > 0 ? lead : FF_TIME_NONE;
}

static const char *collateral_text(const struct maker *m)
{
	size_t n = m->v->ncollateral;
	if (!n) {
		return "";
	}
	return ff_arena_fmt(
		arena_of(m), n == 1 ? "; %zu rank is collateral" : "; %zu ranks are collateral", n);
}

static const char *rank_summary(const struct maker *m, const char *what)
{
	const struct ff_verdict *v = m->v;
	ff_usec lead = lead_of(m);
	const char *when = lead == FF_TIME_NONE
		? ""
		: ff_arena_fmt(arena_of(m), ", %s before any other rank failed",
			  ff_verdict_span(m, lead));
	if (v->ninitiating == 1) {
		const struct ff_who *w = &v->initiating[0];
		return ff_arena_fmt(arena_of(m), "rank %d%s%s%s: %s%s%s", (int)w->rank,
			w->node ? " (" : "", w->node ? w->node : "", w->node ? ")" : "", what, when,
			collateral_text(m));
	}
	return ff_arena_fmt(arena_of(m), "ranks %s: %s%s%s", ranks_text(m, m->f.ranks, m->f.nranks),
		what, when, collateral_text(m));
}

static const char *node_summary(const struct maker *m, const char *what)
{
	const struct ff_verdict *v = m->v;
	if (!v->ninitiating) {
		return ff_arena_fmt(
			arena_of(m), "node %s: %s%s", v->node, what, collateral_text(m));
	}
	return ff_arena_fmt(arena_of(m), "node %s (%s %s): %s%s", v->node,
		v->ninitiating == 1 ? "rank" : "ranks", ranks_text(m, m->f.ranks, m->f.nranks),
		what, collateral_text(m));
}

static const char *common_summary(const struct maker *m, const char *what)
{
	size_t n = 0;
	for (size_t i = 0; i < m->t->nranks; i++) {
		n += m->starts[i];
	}
	if (n == m->t->nranks && m->t->roster_known) {
		return ff_arena_fmt(arena_of(m), "all %zu ranks failed by themselves: %s", n, what);
	}
	if (!n) {
		return ff_arena_fmt(arena_of(m), "the ranks failed by themselves: %s", what);
	}
	return ff_arena_fmt(arena_of(m), "%zu ranks failed by themselves: %s", n, what);
}

static void fill_summary(struct maker *m)
{
	struct ff_verdict *v = m->v;
	const char *what = v->title ? lower_first(m, v->title) : "no fault is known";
	const char *text = "";
	switch (v->kind) {
	case FF_VERDICT_RANK: text = rank_summary(m, what); break;
	case FF_VERDICT_NODE: text = node_summary(m, what); break;
	case FF_VERDICT_COMMON: text = common_summary(m, what); break;
	case FF_VERDICT_EXTERNAL:
		text = ff_arena_fmt(arena_of(m), "not a failure of the job: %s", what);
		break;
	case FF_VERDICT_CLEAN: text = "the job ended well"; break;
	case FF_VERDICT_UNDETERMINED:
		text = v->state != FF_RUN_ENDED && !v->fault
			? "nothing has failed so far"
			: ff_arena_fmt(arena_of(m), "can't tell who started it: %s (%s)", m->f.text,
				  what);
		break;
	}
	v->summary = ff_verdict_line(m, text);
}

/* ---- the action: from this verdict alone, never from a fault's id alone */

static const struct {
	const char *fault;
	enum ff_action_kind kind;
	bool retry;
	const char *text;
} fault_actions[] = {
	{"cuda-oom", FF_ACTION_RAISE_MEMORY, false, "this rank needs more GPU memory than it has"},
	{"host-oom-kill", FF_ACTION_RAISE_MEMORY, false,
		"raise the memory limit, or lower what the rank uses"},
	{"host-oom-alloc", FF_ACTION_RAISE_MEMORY, false,
		"raise the memory limit, or lower what the rank uses"},
	{"shm-exhausted", FF_ACTION_RAISE_MEMORY, false, "give the job more shared memory"},
	{"disk-full", FF_ACTION_FREE_DISK, false, "free space, then run it again"},
	{"quota", FF_ACTION_FREE_DISK, false, "free space below the quota, then run it again"},
	{"too-many-open-files", FF_ACTION_FIX_CONFIG, false, "raise the limit of open files"},
	{"file-not-found", FF_ACTION_FIX_DATA, false, "provide the file, then run it again"},
	{"permission-denied", FF_ACTION_FIX_CONFIG, false, "correct the permission"},
	{"checkpoint-corrupt", FF_ACTION_FIX_DATA, false,
		"go back to an older checkpoint, or restore this one"},
	{"checkpoint-mismatch", FF_ACTION_FIX_CONFIG, false,
		"checkpoint and model do not belong together"},
	{"tokenizer-load", FF_ACTION_FIX_CONFIG, false, "use a version that reads this tokenizer"},
	{"import-error", FF_ACTION_FIX_CONFIG, false,
		"install the module in the job's environment"},
	{"config-error", FF_ACTION_FIX_CONFIG, false, "running it again fails the same way"},
	{"compile-failure", FF_ACTION_FIX_CONFIG, false, "running it again fails the same way"},
	{"cuda-driver-mismatch", FF_ACTION_CONTACT_ADMIN, false,
		"driver and library versions do not fit"},
	{"address-in-use", FF_ACTION_NONE, true, "run it again, or choose another port"},
	{"hub-unreachable", FF_ACTION_NONE, true, "run it again once the service answers"},
	{"dns-failure", FF_ACTION_FIX_CONFIG, false, "check the host name that the job was given"},
	{"nan-loss", FF_ACTION_FIX_DATA, false,
		"look at this rank's batch and at the learning rate; running on repeats it"},
	{"sigkill", FF_ACTION_NONE, true,
		"run it again; if it is killed again, look at the memory of its node"},
	{"sigterm", FF_ACTION_NONE, true, "run it again; find out who sent the signal"},
	{"node-lost", FF_ACTION_NONE, true, "run it again"},
	{"straggler-hang", FF_ACTION_NONE, true,
		"run it again once; take stacks if it hangs again"},
	{"store-timeout", FF_ACTION_NONE, true, "run it again once"},
	{"rendezvous-timeout", FF_ACTION_NONE, true, "run it again once all nodes are there"},
};

static void set_action(struct ff_verdict *v, enum ff_action_kind kind, bool retry,
	enum ff_confidence c, const char *text)
{
	v->action.kind = kind;
	v->action.retry = retry;
	v->action.confidence = c;
	v->action.text = text;
}

static void action_by_fault(struct maker *m, enum ff_confidence c)
{
	struct ff_verdict *v = m->v;
	for (size_t i = 0; v->fault && i < sizeof fault_actions / sizeof fault_actions[0]; i++) {
		if (!strcmp(fault_actions[i].fault, v->fault)) {
			set_action(v, fault_actions[i].kind, fault_actions[i].retry, c,
				fault_actions[i].text);
			return;
		}
	}
	const struct ff_signature *sig = signature_of(m);
	enum ff_domain domain = sig ? sig->domain : FF_DOMAIN_USER;
	switch (domain) {
	case FF_DOMAIN_USER:
		set_action(v, FF_ACTION_FIX_CODE, false, c, "running it again fails the same way");
		return;
	case FF_DOMAIN_FRAMEWORK:
	case FF_DOMAIN_SYSTEM:
		set_action(v, FF_ACTION_NONE, true, c, "run it again once; then look at the cause");
		return;
	case FF_DOMAIN_NETWORK:
	case FF_DOMAIN_HARDWARE:
	case FF_DOMAIN_SCHEDULER:
		set_action(v, FF_ACTION_CONTACT_ADMIN, true, c,
			"run it again elsewhere; let an administrator look at it");
		return;
	}
}

static void action_of_node(struct maker *m, enum ff_confidence c)
{
	struct ff_verdict *v = m->v;
	const char **nodes = FF_ARENA_ARR(arena_of(m), const char *, 2);
	nodes[0] = v->node;
	set_action(v, FF_ACTION_EXCLUDE_NODE, true, c,
		ff_arena_fmt(
			arena_of(m), "run it again without %s, and look at that node", v->node));
	v->action.nodes = nodes;
}

/* A GPU that a stranger's process holds memory of: not one of the job's ranks there, which is known
 * only if all their pids are. Within containers pids have other numbers, so it is possible at most.
 */
static bool is_dirty(const struct maker *m)
{
	const struct ff_sighting *s = m->f.cause;
	int64_t other = s ? ff_event_int(s->ev, FF_F_other_pid, 0) : 0;
	const struct ff_verdict *v = m->v;
	if (other <= 0 || v->ninitiating != 1 || !v->initiating[0].node) {
		return false;
	}
	for (size_t i = 0; i < m->t->nranks; i++) {
		const struct ff_rank_line *r = &m->t->ranks[i];
		bool elsewhere = r->node && strcmp(r->node, v->initiating[0].node) != 0;
		if (!elsewhere && (r->pid <= 0 || r->pid == other)) {
			return false;
		}
	}
	return true;
}

static void action_of_dirty(struct maker *m)
{
	struct ff_verdict *v = m->v;
	const struct ff_event *e = m->f.cause->ev;
	const char *node = v->initiating[0].node;
	const char **nodes = FF_ARENA_ARR(arena_of(m), const char *, 2);
	nodes[0] = node;
	set_action(v, FF_ACTION_EXCLUDE_NODE, true, FF_POSSIBLE,
		ff_arena_fmt(arena_of(m),
			"run it without %s: %lld, not of this job, holds its GPU", node,
			(long long)ff_event_int(e, FF_F_other_pid, 0)));
	v->action.nodes = nodes;
}

static void fill_action(struct maker *m)
{
	struct ff_verdict *v = m->v;
	enum ff_confidence c = v->confidence == FF_CERTAIN ? FF_LIKELY : v->confidence;
	v->action.nodes = FF_ARENA_ARR(arena_of(m), const char *, 1);
	switch (v->kind) {
	case FF_VERDICT_CLEAN:
		set_action(v, FF_ACTION_NONE, false, v->confidence, "nothing");
		return;
	case FF_VERDICT_EXTERNAL: {
		static const char *const config[] = {"time-limit", "dependency-failed",
			"submit-rejected", "image-pull", "quota", NULL};
		for (size_t i = 0; config[i] && v->fault; i++) {
			if (!strcmp(config[i], v->fault)) {
				set_action(v, FF_ACTION_FIX_CONFIG, false, c,
					"change what the scheduler was asked for");
				return;
			}
		}
		bool again = !v->fault || strcmp(v->fault, "cancelled");
		set_action(v, FF_ACTION_NONE, again, c, "nothing in the job failed");
		return;
	}
	case FF_VERDICT_UNDETERMINED:
		if (v->state != FF_RUN_ENDED && !v->fault) {
			set_action(v, FF_ACTION_NONE, false, FF_NO_CONFIDENCE, "nothing");
			return;
		}
		set_action(v, FF_ACTION_NONE, true, FF_POSSIBLE, "run it once more as it is");
		return;
	case FF_VERDICT_NODE: action_of_node(m, v->confidence); return;
	case FF_VERDICT_COMMON:
	case FF_VERDICT_RANK:
		if (is_dirty(m)) {
			action_of_dirty(m);
		} else {
			action_by_fault(m, c);
		}
		return;
	}
}

/* ---- events, in the order of shared/README.md 6.5 */

static int by_order(const void *pa, const void *pb)
{
	const struct ff_sighting *a = *(const struct ff_sighting *const *)pa;
	const struct ff_sighting *b = *(const struct ff_sighting *const *)pb;
	if (!a->stream || !b->stream) {
		if (!a->stream && !b->stream) {
			return strcmp(a->id, b->id);
		}
		return a->stream ? 1 : -1;
	}
	int d = a->stream == b->stream ? 0 : strcmp(a->stream->key, b->stream->key);
	if (d) {
		return d;
	}
	if (a->ev->offset != b->ev->offset) {
		return a->ev->offset < b->ev->offset ? -1 : 1;
	}
	return a->ev->n < b->ev->n ? -1 : a->ev->n > b->ev->n;
}

static void fill_events(struct maker *m)
{
	struct ff_verdict *v = m->v;
	if (m->nused) {
		qsort(m->used, m->nused, sizeof *m->used, by_order);
	}
	v->events = FF_ARENA_ARR(arena_of(m), const struct ff_sighting *, m->nused + 1);
	for (size_t i = 0; i < m->nused; i++) {
		if (!v->nevents || v->events[v->nevents - 1] != m->used[i]) {
			v->events[v->nevents++] = m->used[i];
		}
	}
	free(m->used);
}

/* ---- attempts */

/* An attempt that nothing speaks of is not listed. */
static bool *attempts_with_content(const struct ff_timeline *t, struct ff_arena *a)
{
	bool *has = FF_ARENA_ARR(a, bool, (size_t)t->nattempts);
	for (size_t i = 0; i < t->nall; i++) {
		has[t->all[i].attempt] = true;
	}
	for (size_t i = 0; i < t->nstreams; i++) {
		int32_t n = t->streams[i]->origin.attempt;
		if (n >= 0 && n < t->nattempts) {
			has[n] = true;
		}
	}
	has[t->nattempts - 1] = true;
	return has;
}

static void add_attempt(
	struct ff_verdict *v, struct ff_timeline *t, uint64_t off, struct ff_finding *f)
{
	ff_rules_run(t, off, f);
	struct ff_attempt *a = &v->attempts[v->nattempts++];
	*a = (struct ff_attempt){
		.attempt = t->attempt,
		.restart_count = t->attempt,
		.verdict = f->kind,
		.fault = f->kind == FF_VERDICT_CLEAN ? NULL : f->fault,
	};
	bool names = f->kind == FF_VERDICT_RANK || f->kind == FF_VERDICT_NODE;
	a->initiating = f->ranks;
	a->ninitiating = names ? f->nranks : 0;
}

static bool decided(enum ff_verdict_kind k)
{
	return k == FF_VERDICT_RANK || k == FF_VERDICT_NODE || k == FF_VERDICT_COMMON;
}

/* The last attempt's failure follows from an earlier one's where all it shows are reports about
 * connections: the addresses of the life before. */
static bool only_follows(const struct ff_finding *f)
{
	static const char *const stale[] = {"stale-rendezvous", "nccl-bootstrap", "store-timeout",
		"store-unreachable", "rendezvous-timeout", "rendezvous-closed", NULL};
	if (f->fault && f->kind != FF_VERDICT_CLEAN && f->kind != FF_VERDICT_EXTERNAL) {
		for (size_t i = 0; stale[i]; i++) {
			if (!strcmp(stale[i], f->fault)) {
				return true;
			}
		}
	}
	return f->kind == FF_VERDICT_UNDETERMINED &&
		(!f->cause || f->cause->ev->role != FF_ROLE_PRIMARY);
}

/* Judges every attempt and leaves the timeline at the one that the verdict is of. */
static void judge_attempts(struct ff_verdict *v, struct ff_timeline *t, const struct ff_ask *ask,
	struct ff_finding *ret)
{
	bool *has = attempts_with_content(t, &v->arena);
	int32_t skip_from = ATTEMPTS_JUDGED / 2, skip_to = t->nattempts - ATTEMPTS_JUDGED / 2;
	struct ff_finding *found = FF_ARENA_ARR(&v->arena, struct ff_finding, ATTEMPTS_JUDGED + 1);
	v->attempts = FF_ARENA_ARR(&v->arena, struct ff_attempt, ATTEMPTS_JUDGED + 1);
	for (int32_t a = 0; a < t->nattempts; a++) {
		if (has[a] && (a < skip_from || a >= skip_to)) {
			if (a != t->attempt) {
				ff_timeline_attempt(t, a);
			}
			add_attempt(v, t, ask->rules_off, &found[v->nattempts]);
		}
	}
	size_t pick = v->nattempts - 1;
	for (size_t i = 0; i < v->nattempts; i++) {
		if (v->attempts[i].attempt == ask->attempt) {
			pick = i;
		}
	}
	if (ask->attempt == FF_UNKNOWN && only_follows(&found[pick])) {
		for (size_t i = pick; i > 0; i--) {
			if (decided(found[i - 1].kind)) {
				pick = i - 1;
				break;
			}
		}
	}
	if (t->attempt != v->attempts[pick].attempt) {
		ff_timeline_attempt(t, v->attempts[pick].attempt);
		ff_rules_run(t, ask->rules_off, &found[pick]);
	}
	*ret = found[pick];
}

/* ---- */

static void name_launcher(struct maker *m)
{
	const struct ff_control *start = ff_facts_control(m->t->facts, "job@start");
	const char *name = start ? ff_control_get(start, "launcher") : NULL;
	size_t n = name ? strlen(name) : 0;
	bool plain = n && n < sizeof m->launcher;
	for (size_t i = 0; plain && i < n; i++) {
		plain = (name[i] >= 'a' && name[i] <= 'z') || name[i] == '-';
	}
	if (!plain || !strcmp(name, "accelerate") || !strcmp(name, "srun")) {
		name = "torchrun"; /* the only one whose line this is */
		n = strlen(name);
	}
	memcpy(m->launcher, name, n + 1);
}

struct ff_verdict *ff_verdict_create(const struct ff_facts *facts, struct ff_stream *const *streams,
	size_t nstreams, const struct ff_digest *digest, const struct ff_ask *ask)
{
	struct ff_verdict *v = ff_xcalloc(1, sizeof *v);
	struct maker m = {.v = v, .t = &v->timeline};
	ff_timeline_init(&v->timeline, facts, streams, nstreams, digest, ask);
	judge_attempts(v, &v->timeline, ask, &m.f);
	name_launcher(&m);
	v->job = ff_arena_strdup(&v->arena, facts->job);
	v->run = ff_arena_strdup(&v->arena, facts->run);
	v->attempt = v->timeline.attempt;
	v->as_of = v->timeline.as_of;
	v->world_size = v->timeline.world;
	v->state = v->timeline.state;
	v->final = v->timeline.final;
	v->kind = m.f.kind;
	v->confidence = m.f.confidence;
	v->candidates = m.f.candidates;
	v->ncandidates = m.f.ncandidates;
	v->catalog = ff_catalog_hashes(digest->catalog);
	v->clock = v->timeline.clocks;
	fill_fault(&m);
	fill_initiating(&m);
	ff_verdict_fill_ranks(&m);
	fill_why(&m);
	ff_verdict_fill_why_not(&m);
	fill_missing(&m);
	fill_summary(&m);
	fill_action(&m);
	fill_events(&m);
	return v;
}

void ff_verdict_destroy(struct ff_verdict *v)
{
	if (!v) {
		return;
	}
	ff_timeline_finish(&v->timeline);
	ff_arena_finish(&v->arena);
	free(v);
}
