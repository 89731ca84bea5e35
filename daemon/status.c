#include "status.h"

#include "base/json.h"
#include "base/limits.h"
#include "clock.h"
#include "conn.h"
#include "ledger.h"
#include "retain.h"
#include "store.h"
#include "tail.h"

#include <unistd.h>

static const struct {
	const char *name, *text;
} own_counts[] = {
#define X(name, text) [DAEMON_COUNT_##name] = {#name, text},
	DAEMON_COUNTS(X)
#undef X
};

static void put_counters(struct daemon *d, struct ff_jw *w)
{
	uint64_t sums[FF_COUNT_COUNT];
	memcpy(sums, d->runs.counts, sizeof sums);
	uint64_t contradictions = 0, refused = 0;
	for (size_t i = 0; i < d->runs.nruns; i++) {
		const struct ff_job *job = d->runs.runs[i]->job;
		for (int c = 0; c < FF_COUNT_COUNT; c++) {
			sums[c] += job->counts[c];
		}
		contradictions += job->facts.contradictions;
		refused += job->facts.controls_refused;
	}
	sums[FF_COUNT_contradictions] += contradictions;
	sums[FF_COUNT_controls_refused] += refused;
	ff_jw_key(w, "counters");
	ff_jw_open(w, '{');
	for (int c = 0; c < FF_COUNT_COUNT; c++) {
		ff_jw_kint(w, ff_count_name((enum ff_count)c), (int64_t)sums[c]);
	}
	for (int c = 0; c < DAEMON_COUNT_COUNT; c++) {
		ff_jw_kint(w, own_counts[c].name, (int64_t)d->counts[c]);
	}
	ff_jw_close(w, '}');
}

static void put_runs(const struct daemon *d, struct ff_jw *w)
{
	size_t open = 0, streams = 0, live = 0, events = 0;
	for (size_t i = 0; i < d->runs.nruns; i++) {
		const struct ff_run *run = d->runs.runs[i];
		open += !ff_facts_ended(&run->job->facts);
		streams += run->job->nstreams;
		for (size_t k = 0; k < run->job->nstreams; k++) {
			live += run->job->streams[k]->state == FF_STREAM_OPEN;
			events += run->job->streams[k]->nevents;
		}
	}
	ff_jw_kint(w, "runs", (int64_t)d->runs.nruns);
	ff_jw_kint(w, "runs_open", (int64_t)open);
	ff_jw_kint(w, "streams", (int64_t)streams);
	ff_jw_kint(w, "streams_open", (int64_t)live);
	ff_jw_kint(w, "events", (int64_t)events);
}

/* `trouble` is null while all is well; else it says once what is wrong. */
static void put_store(struct daemon *d, struct ff_jw *w)
{
	struct store_status t;
	struct ledger_status l;
	store_status(d->store, &t);
	ledger_status(d->ledger, &l);
	ff_jw_key(w, "store");
	ff_jw_open(w, '{');
	if (t.failing) {
		struct ff_buf text = {0};
		ff_buf_addf(&text, "%s; nothing is read until it goes on", t.text);
		ff_jw_kstr(w, "trouble", ff_buf_str(&text));
		ff_buf_finish(&text);
		ff_jw_ktime(w, "since", t.since_us);
	} else {
		ff_jw_knull(w, "trouble");
		ff_jw_knull(w, "since");
	}
	ff_jw_kbool(w, "reading", !l.held);
	ff_jw_kint(w, "commits", (int64_t)t.commits);
	ff_jw_kint(w, "rows", (int64_t)t.rows);
	ff_jw_kint(w, "failures", (int64_t)t.failures);
	ff_jw_kint(w, "retries", (int64_t)t.retries);
	ff_jw_kint(w, "queued_batches", (int64_t)t.queued);
	ff_jw_kint(w, "queued_bytes", (int64_t)(l.sent_bytes + l.text_bytes));
	ff_jw_kint(w, "queue_limit", FF_QUEUE_BYTES);
	ff_jw_close(w, '}');
}

static void put_listeners(const struct daemon *d, struct ff_jw *w)
{
	ff_jw_key(w, "listeners");
	ff_jw_open(w, '{');
	ff_jw_key(w, "tcp");
	server_describe(d->server, w);
	ff_jw_kstrz(w, "tcp_access",
		!d->config->listen.n            ? NULL
			: d->config->token_file ? "token"
						: "open to everybody (allow-open-tcp)");
	ff_jw_close(w, '}');
}

/* The hash of what was compiled in, then that of the folder `catalog`. */
static void put_catalog(const struct daemon *d, struct ff_jw *w)
{
	const char *const *hash = ff_catalog_hashes(d->catalog);
	ff_jw_key(w, "catalog");
	ff_jw_open(w, '[');
	for (; *hash; hash++) {
		ff_jw_strz(w, *hash);
	}
	ff_jw_close(w, ']');
}

void status_render(struct daemon *d, struct ff_buf *out)
{
	struct ff_jw w;
	tail_count(d->tail);
	ff_jw_init(&w, out);
	ff_jw_open(&w, '{');
	ff_jw_kstrz(&w, "schema", "firstfault.status/1");
	ff_jw_kstrz(&w, "program", "firstfault " FF_VERSION);
	ff_jw_kint(&w, "pid", getpid());
	ff_jw_ktime(&w, "started", d->started_us);
	ff_jw_ktime(&w, "now", clock_wall());
	ff_jw_kbool(&w, "ready", d->ready);
	ff_jw_kstrz(&w, "state", d->config->state);
	put_catalog(d, &w);
	put_listeners(d, &w);
	put_runs(d, &w);
	put_store(d, &w);
	retain_describe(d, &w);
	ff_jw_key(&w, "tail");
	tail_describe(d->tail, &w);
	put_counters(d, &w);
	ff_jw_kint(&w, "connection_count", d->server ? (int64_t)d->server->nconns : 0);
	ff_jw_key(&w, "connections");
	conn_describe(d->server, &w);
	ff_jw_close(&w, '}');
	ff_buf_addc(out, '\n');
}
