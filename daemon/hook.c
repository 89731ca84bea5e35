#include "hook.h"

#include "answer.h"
#include "base/json.h"
#include "base/mem.h"
#include "clock.h"
#include "hook_say.h"
#include "hook_send.h"
#include "shell/log.h"

#include <stdlib.h>
#include <unistd.h>

struct message {
	struct hook *hook;
	struct message *next;
	uint32_t run; /* number: the run may be deleted meanwhile */
	enum hook_target target;
	enum hook_event event;
	uint64_t value; /* what is stored when it was delivered */
	char *id;
	struct ff_buf body;
	char **env;
	ff_usec made_us, due_us; /* monotonic */
	unsigned tries;
	struct hook_try *try; /* under way */
	bool over;
};

struct hook {
	struct daemon *d;
	struct hook_send *send;
	struct message *queue, **end;
	size_t queued, bytes, under_way[HOOK_TARGETS];
	uint32_t next_run; /* where looking goes on */
	char *error;       /* of the last try that failed; NULL */
	ff_usec error_us;
	bool closing;
};

struct hook *hook_create(struct daemon *d)
{
	struct hook *h = ff_xcalloc(1, sizeof *h);
	h->d = d;
	h->send = hook_send_create(&d->loop);
	h->end = &h->queue;
	return h;
}

static const char *value_of(const struct hook *h, enum hook_target target)
{
	const struct config *c = h->d->config;
	return target == HOOK_COMMAND ? c->hook_command : c->hook_url;
}

/* ---- what is stored */

static void store(struct hook *h, uint32_t run, unsigned target, unsigned event, uint64_t value)
{
	ledger_hook(h->d->ledger, &(struct row_hook){run, target, event, value});
}

void hook_restore(
	struct daemon *d, struct run_state *rs, int64_t target, int64_t event, int64_t value)
{
	if (target < 0 || target >= HOOK_TARGETS) {
		return;
	}
	if (!rs) {
		d->hook_since[target] = value;
		return;
	}
	struct hook_told *told = &rs->hook.told[target];
	if (event == HOOK_VERDICT) {
		told->verdict = (uint64_t)value;
	} else if (event == HOOK_FAULT) {
		told->fault = true;
		rs->hook.steps = (uint64_t)value; /* progress since then withdraws it */
	} else if (event == HOOK_WITHDRAWN) {
		told->withdrawn = true;
	}
}

/* A target that is new is told of what ends from now on. */
void hook_configure(struct hook *h)
{
	for (unsigned t = 0; t < HOOK_TARGETS; t++) {
		bool wanted = value_of(h, t) != NULL;
		ff_usec *since = &h->d->hook_since[t];
		if (wanted != (*since != 0)) {
			*since = wanted ? clock_wall() : 0;
			store(h, 0, t, 0, (uint64_t)*since);
		}
	}
}

/* ---- the queue */

static void message_destroy(struct message *m)
{
	free(m->id);
	ff_buf_finish(&m->body);
	hook_environment_free(m->env);
	free(m);
}

static struct message *find(const struct hook *h, uint32_t run, unsigned target, unsigned event)
{
	struct message *m = h->queue;
	while (m && (m->over || m->run != run || m->target != target || m->event != event)) {
		m = m->next;
	}
	return m;
}

/* Takes out those that are over. */
static void sweep(struct hook *h)
{
	for (struct message **p = &h->queue; *p;) {
		struct message *m = *p;
		if (m->over && !m->try) {
			*p = m->next;
			h->queued--;
			h->bytes -= m->body.len;
			message_destroy(m);
		} else {
			p = &m->next;
		}
	}
	h->end = &h->queue;
	while (*h->end) {
		h->end = &(*h->end)->next;
	}
}

static void note_told(struct message *m)
{
	struct ff_run *run = ff_runs_number(&m->hook->d->runs, m->run);
	if (!run) {
		return; /* deleted meanwhile */
	}
	struct hook_told *told = &ledger_run(m->hook->d->ledger, run)->hook.told[m->target];
	switch (m->event) {
	case HOOK_VERDICT: told->verdict = m->value; break;
	case HOOK_FAULT: told->fault = true; break;
	case HOOK_WITHDRAWN: told->withdrawn = true; break;
	case HOOK_EVENT_COUNT: break;
	}
	store(m->hook, m->run, m->target, m->event, m->value);
}

static void note_failure(struct message *m, const char *why)
{
	struct hook *h = m->hook;
	ff_usec now = clock_mono();
	h->d->counts[DAEMON_COUNT_hooks_failed]++;
	free(h->error);
	h->error = ff_xstrdup(why);
	h->error_us = clock_wall();
	m->due_us = now + hook_backoff(m->tries);
	if (now - m->made_us < HOOK_PATIENCE) {
		ff_log_warn("hook", "id=%s target=%s try=%u: %s, retrying", m->id,
			m->target == HOOK_COMMAND ? "command" : "url", m->tries, why);
		return;
	}
	ff_log_error("hook", "id=%s was given up after %u tries: %s", m->id, m->tries, why);
	h->d->counts[DAEMON_COUNT_hooks_given_up]++;
	note_told(m); /* so that it does not come again */
	m->over = true;
}

static void on_sent(void *ud, const char *why)
{
	struct message *m = ud;
	struct hook *h = m->hook;
	m->try = NULL;
	h->under_way[m->target]--;
	if (why) {
		note_failure(m, why);
		return;
	}
	ff_log_debug("hook", "id=%s was delivered, try=%u", m->id, m->tries);
	h->d->counts[DAEMON_COUNT_hooks_delivered]++;
	note_told(m);
	m->over = true; /* swept later: it may be on the stack */
}

static void send_one(struct hook *h, struct message *m)
{
	const char *to = value_of(h, m->target);
	ff_usec limit = h->d->config->hook_time_limit;
	struct ff_str body = ff_buf_str(&m->body);
	m->tries++;
	h->under_way[m->target]++;
	m->try = m->target == HOOK_COMMAND
		? hook_send_command(h->send, to, m->env, body, limit, on_sent, m)
		: hook_send_url(h->send, to, m->id, body, limit, on_sent, m);
}

static void send_due(struct hook *h)
{
	ff_usec now = clock_mono();
	for (struct message *m = h->queue; m; m = m->next) {
		if (!value_of(h, m->target) && !m->try) {
			m->over = true; /* nobody is there any more */
		} else if (!m->over && !m->try && now >= m->due_us &&
			h->under_way[m->target] < HOOK_TRIES) {
			send_one(h, m);
		}
	}
}

/* What is no longer true and was not sent yet. */
static void cancel(struct hook *h, uint32_t run, unsigned target, unsigned event)
{
	struct message *m = find(h, run, target, event);
	if (m && !m->try) {
		m->over = true;
	}
}

/* False if there is no room. */
static bool enqueue(struct hook *h, struct ff_run *run, const struct ff_verdict *v,
	enum hook_target target, enum hook_event event, uint64_t value)
{
	struct ff_buf id = {0};
	if (h->queued >= HOOK_QUEUE || h->bytes >= HOOK_BYTES) {
		h->d->counts[DAEMON_COUNT_hooks_full]++;
		return false;
	}
	struct message *m = ff_xcalloc(1, sizeof *m);
	hook_id(v, event, hook_substance(v), &id);
	*m = (struct message){.hook = h, .run = run->number, .target = target, .event = event,
		.value = value, .id = ff_buf_take(&id), .made_us = clock_mono()};
	m->due_us = m->made_us;
	hook_body(v, event, m->id, run->version, clock_wall(), &m->body);
	m->env = target == HOOK_COMMAND ? hook_environment(v, event, m->id, environ) : NULL;
	*h->end = m;
	h->end = &m->next;
	h->queued++;
	h->bytes += m->body.len;
	return true;
}

/* ---- runs that have ended */

static bool is_wanted(const struct hook *h, const struct ff_run *run, unsigned target)
{
	ff_usec since = h->d->hook_since[target];
	return since && run->ended_us >= since;
}

/* Is it all right that it is not final: nothing comes, and it ended long ago? */
static bool is_settled(const struct ff_verdict *v, const struct ff_run *run)
{
	return v->final || clock_wall() - run->ended_us >= HOOK_SETTLE;
}

static void tell_verdict(
	struct hook *h, struct ff_run *run, struct hook_run *hr, const struct ff_verdict *v)
{
	for (unsigned t = 0; t < HOOK_TARGETS; t++) {
		struct message *m = find(h, run->number, t, HOOK_VERDICT);
		cancel(h, run->number, t, HOOK_FAULT);
		cancel(h, run->number, t, HOOK_WITHDRAWN);
		if (!is_wanted(h, run, t) || hr->told[t].verdict == hr->verdict ||
			(m && m->value == hr->verdict)) {
			continue;
		}
		cancel(h, run->number, t, HOOK_VERDICT); /* an older one */
		if (!enqueue(h, run, v, t, HOOK_VERDICT, hr->verdict)) {
			hr->looked = false;
		}
	}
}

static void look_at_ended(struct hook *h, struct ff_run *run, struct run_state *rs)
{
	struct hook_run *hr = &rs->hook;
	ff_usec loop_us = (ff_usec)uv_now(&h->d->loop) * 1000;
	if (!is_wanted(h, run, HOOK_COMMAND) && !is_wanted(h, run, HOOK_URL)) {
		return;
	}
	bool same = hr->looked && hr->changes == rs->changes && hr->verdict;
	if ((same && hr->settled) || loop_us - rs->heard_us < HOOK_QUIET) {
		return;
	}
	if (same && clock_wall() - run->ended_us < HOOK_SETTLE) {
		return; /* nothing came: it is as little final as it was */
	}
	hr->looked = true;
	hr->changes = rs->changes;
	struct ff_verdict *v = answer_judge(h->d, run, FF_UNKNOWN);
	hr->verdict = hook_substance(v);
	hr->settled = is_settled(v, run);
	if (hr->settled) {
		tell_verdict(h, run, hr, v);
	}
	ff_verdict_destroy(v);
}

/* ---- runs that go on */

/* Progress lines of all ranks, and faults that could start a failure. */
static uint64_t survey(const struct ff_job *job, bool *ret_fault)
{
	uint64_t steps = 0;
	*ret_fault = false;
	for (size_t i = 0; i < job->nstreams; i++) {
		const struct ff_stream *s = job->streams[i];
		for (size_t k = 0; k < s->nlanes; k++) {
			steps += s->lanes[k]->steps;
		}
		for (size_t k = 0; k < s->nevents && !*ret_fault; k++) {
			const struct ff_event *e = &s->events[k];
			*ret_fault = e->kind == FF_EVENT_FAULT && e->role == FF_ROLE_PRIMARY &&
				!e->recovered && !e->handled && !e->quoted;
		}
	}
	return steps;
}

static void tell_open(struct hook *h, struct ff_run *run, struct hook_run *hr,
	const struct ff_verdict *v, enum hook_event event)
{
	for (unsigned t = 0; t < HOOK_TARGETS; t++) {
		bool told = event == HOOK_FAULT ? hr->told[t].fault : hr->told[t].withdrawn;
		bool wanted = event == HOOK_FAULT || hr->told[t].fault;
		if (h->d->hook_since[t] && wanted && !told && !find(h, run->number, t, event)) {
			(void)enqueue(h, run, v, t, event, hr->steps);
		}
	}
}

/* A fault that was told, or is being told, and a run that goes on. */
static bool is_to_withdraw(const struct hook *h, const struct ff_run *run, struct hook_run *hr)
{
	bool any = false;
	for (unsigned t = 0; t < HOOK_TARGETS; t++) {
		const struct message *m = find(h, run->number, t, HOOK_FAULT);
		bool told = (m && m->try) || (hr->told[t].fault && !hr->told[t].withdrawn);
		any = any || (told && !find(h, run->number, t, HOOK_WITHDRAWN));
	}
	return any;
}

static bool is_to_tell(const struct hook *h, const struct ff_run *run, const struct hook_run *hr)
{
	bool any = false;
	for (unsigned t = 0; t < HOOK_TARGETS; t++) {
		any = any || (h->d->hook_since[t] && !hr->told[t].fault &&
			!find(h, run->number, t, HOOK_FAULT));
	}
	return any && !hr->withdrawn;
}

/* Looks at the run again if anything came. */
static void refresh(struct hook_run *hr, const struct ff_run *run, const struct run_state *rs)
{
	if (hr->looked && hr->changes == rs->changes) {
		return;
	}
	uint64_t steps = survey(run->job, &hr->fault);
	bool told = hr->told[HOOK_COMMAND].fault || hr->told[HOOK_URL].fault;
	hr->moved = hr->looked || told ? steps != hr->steps : false;
	hr->steps = steps;
	hr->changes = rs->changes;
	hr->looked = true;
}

static void look_at_open(struct hook *h, struct ff_run *run, struct run_state *rs)
{
	struct hook_run *hr = &rs->hook;
	ff_usec now = clock_mono();
	refresh(hr, run, rs);
	if (!hr->since_us || !hr->fault) {
		hr->since_us = now;
	}
	if (hr->moved) {
		hr->moved = false;
		hr->since_us = now;
		hr->withdrawn = hr->withdrawn || is_to_withdraw(h, run, hr);
		for (unsigned t = 0; t < HOOK_TARGETS; t++) {
			cancel(h, run->number, t, HOOK_FAULT);
		}
	}
	bool withdraw = hr->withdrawn && is_to_withdraw(h, run, hr);
	bool due = is_to_tell(h, run, hr) && now - hr->since_us >= h->d->config->hook_fault_after;
	if (!due && !withdraw) {
		return;
	}
	struct ff_verdict *v = answer_judge(h->d, run, FF_UNKNOWN);
	bool stands = v->fault && (v->state == FF_RUN_ENDING || v->state == FF_RUN_STALLED);
	if (withdraw) {
		tell_open(h, run, hr, v, HOOK_WITHDRAWN);
	} else if (stands) {
		tell_open(h, run, hr, v, HOOK_FAULT);
	}
	hr->since_us = now; /* judged again after another span */
	ff_verdict_destroy(v);
}

/* ---- each pulse */

static void look(struct hook *h)
{
	const struct ff_runs *runs = &h->d->runs;
	ff_usec until = clock_mono() + HOOK_BUSY;
	size_t from = ff_runs_below(runs, h->next_run);
	for (size_t n = 0; n < runs->nruns; n++) {
		struct ff_run *run = runs->runs[(from + n) % runs->nruns];
		struct run_state *rs = ledger_run(h->d->ledger, run);
		h->next_run = run->number + 1;
		if (ff_facts_ended(&run->job->facts)) {
			look_at_ended(h, run, rs);
		} else if (run->job->nstreams) {
			look_at_open(h, run, rs);
		}
		if (clock_mono() > until) {
			break; /* goes on from here at the next pulse */
		}
	}
}

void hook_pulse(struct hook *h)
{
	if (h->closing || h->d->stopping) {
		return;
	}
	if (value_of(h, HOOK_COMMAND) || value_of(h, HOOK_URL)) {
		look(h);
	}
	send_due(h);
	sweep(h);
}

void hook_close(struct hook *h)
{
	if (!h || h->closing) {
		return;
	}
	h->closing = true;
	for (struct message *m = h->queue; m; m = m->next) {
		if (m->try) {
			hook_send_drop(m->try);
			m->try = NULL;
		}
		m->over = true;
	}
	sweep(h);
	hook_send_close(h->send);
}

void hook_destroy(struct hook *h)
{
	if (h) {
		hook_send_destroy(h->send);
		free(h->error);
		free(h);
	}
}

void hook_describe(const struct hook *h, struct ff_jw *w)
{
	ff_jw_open(w, '{');
	ff_jw_kint(w, "waiting", h ? (int64_t)h->queued : 0);
	ff_jw_kint(w, "under_way",
		h ? (int64_t)(h->under_way[HOOK_COMMAND] + h->under_way[HOOK_URL]) : 0);
	ff_jw_kint(w, "bytes", h ? (int64_t)h->bytes : 0);
	ff_jw_kint(w, "limit", HOOK_QUEUE);
	ff_jw_kstrz(w, "error", h ? h->error : NULL);
	ff_jw_ktime(w, "error_at", h && h->error ? h->error_us : FF_TIME_NONE);
	ff_jw_close(w, '}');
}
