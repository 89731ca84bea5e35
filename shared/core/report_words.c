#include "core/report_own.h"
#include "base/arr.h"

#include <stdlib.h>

/* What a rank or node did, where the fault is known from its end or from the others alone: the
 * catalogue has no entry for that. */
static const struct {
	const char *fault, *did;
} silent_faults[] = {
	{"sigkill", "was killed by SIGKILL"},
	{"sigterm", "was ended by SIGTERM"},
	{"sighup", "was ended by SIGHUP"},
	{"silent-exit", "left with an error code and said nothing"},
	{"nonzero-exit", "left with an error code"},
	{"early-exit", "left early, with success"},
	{"node-lost", "went away"},
	{"straggler-hang", "never came to what the others waited for"},
	{"store-timeout", "never came to what the others waited for"},
	{"collective-mismatch", "was in another collective than the others"},
};

const struct ff_sighting *ff_report_proof(const struct ff_verdict *v)
{
	const char *id = v->ninitiating ? v->initiating[0].event : NULL;
	if (!id && v->nwhy) {
		id = v->why[0].events[0];
	}
	for (size_t i = 0; id && i < v->nevents; i++) {
		if (!strcmp(v->events[i]->id, id)) {
			return v->events[i];
		}
	}
	return NULL;
}

bool ff_report_is_lost(const struct ff_verdict *v)
{
	return v->fault && (!strcmp(v->fault, "node-lost") || !strcmp(v->fault, "node-fail"));
}

bool ff_report_is_quiet(const struct ff_verdict *v)
{
	return v->kind == FF_VERDICT_UNDETERMINED && v->state != FF_RUN_ENDED && !v->fault;
}

/* A name that can stand in a command, and in a sentence. */
static bool is_plain(const char *s)
{
	size_t n = 0;
	for (; s && s[n]; n++) {
		bool good = (s[n] >= '0' && s[n] <= '9') || (s[n] >= 'a' && s[n] <= 'z') ||
			(s[n] >= 'A' && s[n] <= 'Z') || (n && (s[n] == '-' || s[n] == '.')) ||
			s[n] == '_';
		if (!good) {
			return false;
		}
	}
	return n > 0 && n < 64;
}

/* ---- the head */

/* Since when no rank has made a step, by the daemon's clock. */
static ff_usec stalled_for(const struct ff_verdict *v)
{
	ff_usec last = FF_TIME_NONE;
	for (size_t i = 0; i < v->timeline.nranks; i++) {
		const struct ff_when *w = &v->timeline.ranks[i].last_progress;
		if (w->known && w->clock == FF_CLOCK_ARRIVED && w->us > last) {
			last = w->us;
		}
	}
	return last == FF_TIME_NONE || v->as_of == FF_TIME_NONE ? 0 : v->as_of - last;
}

void ff_report_state(const struct ff_verdict *v, ff_usec now_us, struct ff_buf *b)
{
	struct ff_arena a = {0};
	const char *told = ff_facts_state(v->timeline.facts, &a);
	ff_usec stalled;
	switch (v->state) {
	case FF_RUN_RUNNING: ff_buf_addz(b, "RUNNING"); break;
	case FF_RUN_STALLED:
		ff_buf_addz(b, "RUNNING, STALLED");
		stalled = stalled_for(v);
		if (stalled > 0) {
			ff_buf_addc(b, ' ');
			ff_usec_render_span(b, stalled);
		}
		break;
	case FF_RUN_ENDING: ff_buf_addz(b, "ENDING"); break;
	case FF_RUN_ENDED:
		ff_buf_addz(b, told && strlen(told) < 24 ? told : "ENDED");
		if (v->as_of == FF_TIME_NONE) {
			break;
		}
		ff_buf_addc(b, ' ');
		ff_usec_render_clock(b, v->as_of, 0);
		if (now_us != FF_TIME_NONE && now_us > v->as_of) {
			ff_buf_addz(b, ", ");
			ff_usec_render_span(b, now_us - v->as_of);
			ff_buf_addz(b, " ago");
		}
		break;
	}
	ff_arena_finish(&a);
}

static void add_count(struct ff_buf *b, size_t n, const char *one)
{
	ff_buf_addf(b, "%zu %s%s", n, one, n == 1 ? "" : "s");
}

void ff_report_job(const struct ff_verdict *v, struct ff_buf *b)
{
	static const char *const keys[] = {"name", "user"};
	const struct ff_control *start = ff_facts_control(v->timeline.facts, "job@start");
	ff_buf_addz(b, v->job);
	for (size_t i = 0; start && i < sizeof keys / sizeof keys[0]; i++) {
		struct ff_str told = ff_str_z(ff_control_get(start, keys[i]));
		if (told.n) {
			ff_buf_addz(b, i ? "  " : " ");
			ff_buf_adds(b, ff_str_n(told.p, told.n < 32 ? told.n : 32));
		}
	}
	ff_buf_addz(b, "  ");
}

void ff_report_size(const struct ff_verdict *v, struct ff_buf *b)
{
	add_count(b, v->world_size > 0 ? (size_t)v->world_size : v->nranks, "rank");
	if (v->timeline.nnodes) {
		ff_buf_addz(b, ", ");
		add_count(b, v->timeline.nnodes, "node");
	}
}

/* ---- who */

static const char *did_of(const struct ff_verdict *v)
{
	if (v->did || v->signature || !v->fault) {
		return v->did;
	}
	for (size_t i = 0; i < sizeof silent_faults / sizeof silent_faults[0]; i++) {
		if (!strcmp(silent_faults[i].fault, v->fault)) {
			return silent_faults[i].did;
		}
	}
	return NULL;
}

/* A title as the rest of a sentence: "A key is missing" begins small, "NCCL lost a peer" not. */
static void add_title(struct ff_buf *b, const char *title)
{
	bool word = title[0] >= 'A' && title[0] <= 'Z' &&
		((title[1] >= 'a' && title[1] <= 'z') || title[1] == ' ');
	ff_buf_addc(b, word ? (char)(title[0] - 'A' + 'a') : title[0]);
	ff_buf_addz(b, title + 1);
}

/* "ran out of GPU memory", of several "were killed"; without such words ": a key is missing". */
static void add_did(const struct ff_verdict *v, bool several, struct ff_buf *b)
{
	const char *did = did_of(v);
	if (did && several && !strncmp(did, "was ", 4)) {
		ff_buf_addf(b, " were %s", did + 4);
	} else if (did) {
		ff_buf_addf(b, " %s", did);
	} else {
		ff_buf_addz(b, ": ");
		add_title(b, v->title ? v->title : "no fault is known");
	}
}

static void add_initiating(const struct ff_verdict *v, struct ff_buf *b)
{
	int32_t *ranks = ff_xcalloc(v->ninitiating + 1, sizeof *ranks);
	for (size_t i = 0; i < v->ninitiating; i++) {
		ranks[i] = v->initiating[i].rank;
	}
	ff_report_ranges(b, ranks, v->ninitiating, 6);
	free(ranks);
}

static size_t count_status(const struct ff_verdict *v, enum ff_status status)
{
	size_t n = 0;
	for (size_t i = 0; i < v->nranks; i++) {
		n += v->ranks[i].status == status;
	}
	return n;
}

static void add_common(const struct ff_verdict *v, struct ff_buf *b)
{
	size_t n = count_status(v, FF_STATUS_INITIATING);
	bool every = !n || (n == v->nranks && v->timeline.roster_known);
	const char *did = did_of(v), *self = every ? "itself" : "themselves";
	if (every) {
		ff_buf_addz(b, "EVERY RANK");
	} else {
		ff_buf_addf(b, "%zu of %zu RANKS", n,
			v->world_size > 0 ? (size_t)v->world_size : v->nranks);
	}
	if (!did) {
		ff_buf_addf(b, " failed by %s", self);
	}
	add_did(v, !every, b);
	if (did) {
		ff_buf_addf(b, " by %s: no rank and no node to blame", self);
	}
}

static void add_undetermined(const struct ff_verdict *v, struct ff_buf *b)
{
	if (v->fault) {
		ff_buf_addz(b, "CAN'T TELL who started it.  ");
		ff_buf_addz(b, v->title);
	} else if (v->state == FF_RUN_STALLED) {
		ff_buf_addz(b, "NOTHING HAS FAILED, but no rank makes a step");
	} else if (v->state != FF_RUN_ENDED) {
		ff_buf_addz(b, "NOTHING HAS FAILED so far");
	} else {
		ff_buf_addz(b, "CAN'T TELL what happened: no fault is known");
	}
}

void ff_report_who(const struct ff_verdict *v, struct ff_buf *b)
{
	switch (v->kind) {
	case FF_VERDICT_RANK:
		ff_buf_addz(b, v->ninitiating == 1 ? "RANK " : "RANKS ");
		add_initiating(v, b);
		add_did(v, v->ninitiating != 1, b);
		break;
	case FF_VERDICT_NODE:
		ff_buf_addf(b, "NODE %s", v->node);
		add_did(v, false, b);
		if (ff_report_is_lost(v) && v->ninitiating) {
			ff_buf_addz(b, " with its ");
			add_count(b, v->ninitiating, "rank");
		}
		break;
	case FF_VERDICT_COMMON: add_common(v, b); break;
	case FF_VERDICT_EXTERNAL:
		ff_buf_addz(b, "NOT A FAILURE: ");
		add_title(b, v->title ? v->title : "it was ended from outside");
		break;
	case FF_VERDICT_CLEAN: ff_buf_addz(b, "CLEAN: the job ended well"); break;
	case FF_VERDICT_UNDETERMINED: add_undetermined(v, b); break;
	}
}

void ff_report_where(const struct ff_verdict *v, struct ff_buf *b)
{
	const struct ff_who *w = v->initiating;
	if (v->kind == FF_VERDICT_NODE && v->ninitiating) {
		ff_buf_addz(b, v->ninitiating == 1 ? "rank " : "ranks ");
		add_initiating(v, b);
	}
	if (v->kind != FF_VERDICT_RANK || v->ninitiating != 1 || !w->node) {
		return;
	}
	const struct ff_sighting *s = ff_report_proof(v);
	int64_t gpu = s && s->rank == w->rank ? ff_event_int(s->ev, FF_F_device, -1) : -1;
	ff_buf_addz(b, w->node);
	if (gpu >= 0 && gpu < 1024) {
		ff_buf_addf(b, ", GPU %d", (int)gpu);
	}
	if (w->local_rank != FF_UNKNOWN) {
		ff_buf_addf(
			b, gpu >= 0 ? " (local rank %d)" : ", local rank %d", (int)w->local_rank);
	}
}

void ff_report_sure(const struct ff_verdict *v, struct ff_buf *b)
{
	const char *c = ff_confidence_name(v->confidence);
	if (!ff_report_is_quiet(v)) {
		ff_buf_addf(b, "%s, ", c ? c : "undetermined");
	}
	ff_buf_addz(b, v->final ? "final" : "not final");
}

void ff_report_do(const struct ff_verdict *v, struct ff_buf *b)
{
	const struct ff_control *start = ff_facts_control(v->timeline.facts, "job@start");
	const char *user = start ? ff_control_get(start, "user") : NULL;
	ff_buf_addz(b, v->action.text ? v->action.text : "nothing");
	switch (v->action.kind) {
	case FF_ACTION_FIX_CODE:
	case FF_ACTION_FIX_CONFIG:
	case FF_ACTION_FIX_DATA:
	case FF_ACTION_RAISE_MEMORY: /* only its user can do that, and not before the morning */
		if (is_plain(user) && !v->action.retry) {
			ff_buf_addf(b, "; tell %s, wake nobody", user);
		}
		break;
	case FF_ACTION_NONE:
	case FF_ACTION_EXCLUDE_NODE:
	case FF_ACTION_FREE_DISK:
	case FF_ACTION_CONTACT_ADMIN: break;
	}
}

void ff_report_action(const struct ff_verdict *v, struct ff_buf *b)
{
	const struct ff_action *a = &v->action;
	ff_buf_addf(b, "[%s", ff_action_name(a->kind));
	for (size_t i = 0; a->nodes && a->nodes[i] && i < 4; i++) {
		ff_buf_addf(b, "%s%s", i ? "," : " ", a->nodes[i]);
	}
	ff_buf_addz(b, a->retry ? ", retry]" : "]");
}

/* ---- an event's place */

void ff_report_place(const struct ff_sighting *s, struct ff_buf *b)
{
	const struct ff_claimed *c = &s->ev->claimed;
	if (ff_stamp_us(s->ev->stamp) != FF_TIME_NONE) { /* its node's clock set right */
		ff_usec_render_clock(b, s->when.known ? s->when.us : ff_stamp_us(s->ev->stamp), 3);
		ff_buf_addz(b, "  ");
	} else if (c->us != FF_TIME_NONE) { /* as printed: its zone may be unknown */
		ff_usec_render_clock(b, c->us, c->grain >= FF_SECOND || c->mono_fraction ? 0 : 3);
		b->len -= !c->has_zone;
		ff_buf_addz(b, c->has_zone ? "  " : " as printed  ");
	}
	if (s->rank != FF_UNKNOWN) {
		ff_buf_addf(b, "rank %d  ", (int)s->rank);
	}
	if (!s->stream) {
		ff_buf_addz(b, s->id);
	} else {
		ff_buf_addz(b, s->stream->key);
		if (s->ev->at_line > 0) {
			ff_buf_addf(b, ":%lld", (long long)s->ev->at_line);
		}
	}
	if (s->exit_code != FF_EXIT_UNKNOWN) {
		int sig = ff_exit_signal(s->exit_code);
		const char *name = sig ? ff_signal_name(sig) : NULL;
		if (name) {
			ff_buf_addf(b, "  ended by %s", name);
		} else {
			ff_buf_addf(b, "  exit code %d", (int)s->exit_code);
		}
	}
}

/* ---- then */

/* Counts of what the other ranks show, the commonest first. */
struct tally {
	const char *what;
	size_t n;
};

struct tallies {
	struct tally *v;
	size_t n, cap, total;
};

#define TALLIES_MAX 256 /* different faults; what is beyond counts with the first */

static void count_one(struct tallies *t, const char *what)
{
	size_t j = 0;
	while (j < t->n && strcmp(t->v[j].what, what)) {
		j++;
	}
	if (j == t->n && t->n < TALLIES_MAX) {
		*FF_ARR_ADD(t->v, t->n, t->cap) = (struct tally){what, 0};
	}
	t->v[j < t->n ? j : 0].n++;
	t->total++;
}

static int by_count(const void *a, const void *b)
{
	const struct tally *x = a, *y = b;
	if (x->n != y->n) {
		return x->n > y->n ? -1 : 1;
	}
	return strcmp(x->what, y->what);
}

static void add_tallies(struct tallies *t, const char *before, struct ff_buf *b)
{
	if (t->n) {
		qsort(t->v, t->n, sizeof *t->v, by_count);
	}
	for (size_t i = 0; i < t->n && i < 5; i++) {
		ff_buf_addz(b, i ? ", " : before);
		if (b->len) {
			ff_buf_addf(b, "%zu ", t->v[i].n);
		} else {
			add_count(b, t->v[i].n, "rank");
			ff_buf_addc(b, ' ');
		}
		ff_buf_addz(b, t->v[i].what);
	}
	if (t->n > 5) {
		ff_buf_addz(b, ", ...");
	}
	free(t->v);
}

/* How a rank that only was ended came to its end. */
static const char *end_of(const struct ff_rank_line *r)
{
	int sig = r->exit_code == FF_EXIT_UNKNOWN ? 0 : ff_exit_signal(r->exit_code);
	const char *name = sig ? ff_signal_name(sig) : NULL;
	if (name) {
		return name;
	}
	if (r->exit_code != FF_EXIT_UNKNOWN && r->exit_code) {
		return "with an error code";
	}
	return r->ended_by_agent ? "ended by the launcher" : "told to end";
}

/* The entry of v->collateral for v->ranks[i]: both are by rank. */
static const struct ff_collateral *collateral_of(
	const struct ff_verdict *v, int32_t rank, size_t *from)
{
	while (*from < v->ncollateral && v->collateral[*from].rank < rank) {
		++*from;
	}
	return *from < v->ncollateral && v->collateral[*from].rank == rank ? &v->collateral[*from]
									   : NULL;
}

void ff_report_then(const struct ff_verdict *v, struct ff_buf *b)
{
	struct tallies loud = {0}, still = {0};
	ff_usec lo = INT64_MAX, hi = INT64_MIN;
	size_t from = 0;
	for (size_t i = 0; i < v->nranks && v->kind != FF_VERDICT_CLEAN; i++) {
		const struct ff_collateral *c = collateral_of(v, v->ranks[i].rank, &from);
		const struct ff_rank_line *r = ff_timeline_rank(&v->timeline, v->ranks[i].rank);
		enum ff_status status = v->ranks[i].status;
		if (status == FF_STATUS_INITIATING || status == FF_STATUS_CLEAN) {
			continue;
		}
		if (status == FF_STATUS_COLLATERAL && c && c->fault) {
			count_one(&loud, c->fault);
		} else if (status == FF_STATUS_COLLATERAL || status == FF_STATUS_TORN_DOWN) {
			count_one(&loud, r ? end_of(r) : ff_status_name(status));
		} else {
			count_one(&still, ff_status_name(status));
		}
		if (c && c->has_after) {
			lo = c->after_us < lo ? c->after_us : lo;
			hi = c->after_us > hi ? c->after_us : hi;
		}
	}
	if (loud.total) {
		add_count(b, loud.total, "rank");
		ff_buf_addz(b,
			v->kind == FF_VERDICT_EXTERNAL               ? " torn down"
				: v->kind == FF_VERDICT_UNDETERMINED ? " ended badly"
								     : ", collateral");
		if (lo <= hi && lo >= 0) {
			ff_buf_addz(b, ", +");
			ff_usec_render_span(b, lo);
			ff_buf_addz(b, " to +");
			ff_usec_render_span(b, hi);
		}
	} else if (v->kind == FF_VERDICT_COMMON) {
		ff_buf_addz(b, "nobody is collateral");
	}
	add_tallies(&loud, ": ", b);
	add_tallies(&still, b->len ? "; " : "", b);
}

/* ---- seen */

void ff_report_seen(const struct ff_verdict *v, struct ff_buf *b)
{
	const struct ff_timeline *t = &v->timeline;
	size_t heard = 0, to_end = 0, kernels = 0;
	for (size_t i = 0; i < t->nranks; i++) {
		heard += t->ranks[i].own_stream;
		to_end += t->ranks[i].own_stream && t->ranks[i].stderr_to_end;
	}
	for (size_t i = 0; i < t->nstreams; i++) {
		kernels += t->streams[i]->origin.kind == FF_STREAM_KERNEL;
	}
	if (v->world_size > 0) {
		ff_buf_addf(b, "%zu of ", heard);
		add_count(b, (size_t)v->world_size, "rank");
	} else {
		add_count(b, heard, "rank");
	}
	if (heard && heard == to_end) {
		ff_buf_addz(b, heard == 1 ? ", to its end" : ", all to their end");
	} else if (heard) {
		ff_buf_addf(b, ", %zu to %s end", to_end, heard == 1 ? "its" : "their");
	}
	ff_buf_addz(b, v->world_size > 0 ? "; " : " (world size not told); ");
	add_count(b, t->nstreams, "stream");
	if (kernels) {
		ff_buf_addz(b, ", ");
		add_count(b, kernels, "kernel log");
		ff_buf_addf(b, " of %zu nodes", t->nnodes);
	}
	ff_buf_addz(b, ff_facts_ended(t->facts) ? ", job end" : ", no word of the job's end");
}

void ff_report_clock(const struct ff_verdict *v, struct ff_buf *b)
{
	const struct ff_node_offset *worst = NULL;
	ff_usec most = FF_SECOND;
	for (size_t i = 0; i < v->clock.nnodes; i++) {
		const struct ff_node_offset *n = &v->clock.nodes[i];
		ff_usec off = n->offset_us < 0 ? -n->offset_us : n->offset_us;
		if (n->known && off > most) {
			worst = n;
			most = off;
		}
	}
	if (worst) {
		ff_buf_addf(b, "the clock of %s is ", worst->node);
		ff_usec_render_span(b, most);
		ff_buf_addz(b, worst->offset_us < 0 ? " slow (corrected)" : " fast (corrected)");
	}
}

/* ---- verify */

/* The one node that the verdict is about, if its name can stand in a command. */
static const char *node_of(const struct ff_verdict *v)
{
	const char *node = v->node;
	for (size_t i = 0; i < v->ninitiating && !v->node; i++) {
		const char *n = v->initiating[i].node;
		if (!n || (node && strcmp(n, node))) {
			return NULL;
		}
		node = n;
	}
	return is_plain(node) ? node : NULL;
}

static bool is_word_byte(char c)
{
	return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
		c == '_' || c == '$';
}

/* Looks at the program that is run: is it one that shows something of its own host? */
static bool is_local(const char *run)
{
	static const char *const programs[] = {"nvidia-smi ", "dmesg ", "df ", "ibstat ", "lspci ",
		"ss ", "ls ", "ipmitool ", "ras-mc-ctl ", "coredumpctl ", "py-spy "};
	for (size_t i = 0; i < sizeof programs / sizeof programs[0]; i++) {
		if (!strncmp(run, programs[i], strlen(programs[i]))) {
			return true;
		}
	}
	return false;
}

void ff_report_verify(const struct ff_verdict *v, size_t number, struct ff_buf *b)
{
	const struct ff_sighting *s = ff_report_proof(v);
	const char *run = v->verify[number].run, *node = node_of(v);
	/* Slurm's ids begin with a digit: the name of a folder or of a paste is none */
	bool slurm = is_plain(v->job) && v->job[0] >= '0' && v->job[0] <= '9';
	bool ssh = node && is_local(run) && !strchr(run, '\'');
	if (ssh) {
		ff_buf_addf(b, "ssh %s '", node);
	}
	while (*run) {
		size_t n = 0;
		while (is_word_byte(run[n])) {
			n++;
		}
		struct ff_str word = ff_str_n(run, n ? n : 1);
		bool is_job = ff_str_eqz(word, "JOB") || ff_str_eqz(word, "$SLURM_JOB_ID");
		if (node && ff_str_eqz(word, "NODE")) {
			ff_buf_addz(b, node);
		} else if (is_job) {
			ff_buf_addz(b, slurm ? v->job : "JOB");
		} else if (s && s->pid > 0 && v->ninitiating == 1 && ff_str_eqz(word, "PID")) {
			ff_buf_addf(b, "%lld", (long long)s->pid);
		} else {
			ff_buf_adds(b, word);
		}
		run += word.n;
	}
	ff_buf_addz(b, ssh ? "'" : "");
}
