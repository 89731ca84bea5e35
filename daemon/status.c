#include "status.h"
#include "api.h"

#include "base/json.h"
#include "base/limits.h"
#include "api.h"
#include "clock.h"
#include "conn.h"
#include "core/report_screen.h"
#include "ledger.h"
#include "nodes.h"
#include "reload.h"
#include "retain.h"
#include "shell/log.h"
#include "store.h"
#include "tail.h"

#include <dirent.h>
#include <stdio.h>
#include <sys/resource.h>
#include <unistd.h>

#define WIDTH 100

static const struct {
	const char *name, *text;
} own_counts[] = {
#define X(name, text) [DAEMON_COUNT_##name] = {#name, text},
	DAEMON_COUNTS(X)
#undef X
};

const char *status_count_text(const char *name)
{
	for (int c = 0; c < FF_COUNT_COUNT; c++) {
		if (!strcmp(name, ff_count_name((enum ff_count)c))) {
			return ff_count_text((enum ff_count)c);
		}
	}
	for (int c = 0; c < DAEMON_COUNT_COUNT; c++) {
		if (!strcmp(name, own_counts[c].name)) {
			return own_counts[c].text;
		}
	}
	return NULL;
}

static void put_counters(struct daemon *d, struct ff_jw *w)
{
	uint64_t sums[FF_COUNT_COUNT];
	memcpy(sums, d->runs.counts, sizeof sums);
	uint64_t contradictions = 0, refused = 0;
	const struct ff_run *run;
	for (size_t i = 0; (run = ff_runs_any(&d->runs, i)); i++) {
		const struct ff_job *job = run->job;
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
	size_t open = 0, streams = 0, live = 0, events = 0, files = 0;
	uint64_t bytes = 0;
	for (size_t i = 0; i < d->runs.nruns; i++) {
		const struct ff_run *run = d->runs.runs[i];
		open += !ff_facts_ended(&run->job->facts);
		streams += run->job->nstreams;
		for (size_t k = 0; k < run->job->nstreams; k++) {
			live += run->job->streams[k]->state == FF_STREAM_OPEN;
			events += run->job->streams[k]->nevents;
		}
		const struct run_state *rs = run->user;
		if (rs && rs->segments.end.number >= rs->segments.first) {
			uint32_t full = rs->segments.end.number - rs->segments.first;
			files += full + 1;
			bytes += (uint64_t)full * FF_SEGMENT_BYTES + rs->segments.end.at;
		}
	}
	ff_jw_kint(w, "runs", (int64_t)d->runs.nruns);
	ff_jw_kint(w, "runs_open", (int64_t)open);
	ff_jw_kint(w, "streams", (int64_t)streams);
	ff_jw_kint(w, "streams_open", (int64_t)live);
	ff_jw_kint(w, "events", (int64_t)events);
	ff_jw_kint(w, "segments", (int64_t)files);
	ff_jw_kint(w, "segment_bytes", (int64_t)bytes); /* about: full ones are taken as full */
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

/* Entries of a folder of the kernel's, which no disk is behind. */
static int64_t count_entries(const char *path)
{
	DIR *dir = opendir(path);
	int64_t n = 0;
	while (dir && readdir(dir)) {
		n++;
	}
	if (dir) {
		closedir(dir);
	}
	return n > 3 ? n - 3 : 0; /* ".", ".." and that of opendir */
}

static int64_t in_us(struct timeval t)
{
	return (int64_t)t.tv_sec * FF_SECOND + t.tv_usec;
}

static void put_process(struct ff_jw *w)
{
	long long pages = 0, resident = 0;
	struct rusage used = {0};
	struct rlimit limit = {0};
	FILE *f = fopen("/proc/self/statm", "re");
	if (f) {
		if (fscanf(f, "%lld %lld", &pages, &resident) != 2) {
			pages = resident = 0;
		}
		(void)fclose(f);
	}
	(void)getrusage(RUSAGE_SELF, &used);
	(void)getrlimit(RLIMIT_NOFILE, &limit);
	ff_jw_key(w, "process");
	ff_jw_open(w, '{');
	ff_jw_kint(w, "resident_bytes", resident * sysconf(_SC_PAGESIZE));
	ff_jw_kint(w, "virtual_bytes", pages * sysconf(_SC_PAGESIZE));
	ff_jw_kint(w, "open_fds", count_entries("/proc/self/fd"));
	ff_jw_kint(w, "max_fds", (int64_t)limit.rlim_cur);
	ff_jw_kint(w, "cpu_us", in_us(used.ru_utime) + in_us(used.ru_stime));
	ff_jw_close(w, '}');
}

/* What is allowed and should not stay so. */
static void put_warnings(const struct daemon *d, struct ff_jw *w)
{
	ff_jw_key(w, "warnings");
	ff_jw_open(w, '[');
	if ((d->config->listen.n || d->config->api_listen.n) && d->config->allow_open_tcp) {
		ff_jw_strz(w, "TCP takes lines of everybody: allow-open-tcp, and no token-file");
	}
	ff_jw_close(w, ']');
}

static void put_listeners(const struct daemon *d, struct ff_jw *w)
{
	ff_jw_key(w, "listeners");
	ff_jw_open(w, '{');
	ff_jw_key(w, "tcp");
	server_describe(d->server, w);
	ff_jw_key(w, "http");
	api_describe_listeners(d->api, w);
	ff_jw_kstrz(w, "tcp_access",
		!d->config->listen.n && !d->config->api_listen.n ? NULL
			: d->config->allow_open_tcp ? "open to everybody (allow-open-tcp)"
						    : "token");
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

void status_render(struct daemon *d, bool each_connection, struct ff_buf *out)
{
	struct ff_jw w;
	ff_usec now = clock_wall();
	tail_count(d->tail);
	ff_jw_init(&w, out);
	ff_jw_open(&w, '{');
	ff_jw_kstrz(&w, "schema", "firstfault.status/1");
	ff_jw_kstrz(&w, "program", "firstfault " FF_VERSION);
	ff_jw_kint(&w, "pid", getpid());
	ff_jw_ktime(&w, "started", d->started_us);
	ff_jw_ktime(&w, "now", now);
	ff_jw_kint(&w, "uptime_us", now > d->started_us ? now - d->started_us : 0);
	ff_jw_kbool(&w, "ready", d->ready);
	ff_jw_kstrz(&w, "state", d->config->state);
	put_warnings(d, &w);
	put_catalog(d, &w);
	ff_jw_key(&w, "reload");
	reload_describe(d->reload, &w);
	ff_jw_key(&w, "hooks");
	hook_describe(d->hook, &w);
	put_listeners(d, &w);
	put_runs(d, &w);
	ff_jw_key(&w, "nodes");
	nodes_describe(d->nodes, &w);
	put_store(d, &w);
	retain_describe(d, &w);
	ff_jw_key(&w, "tail");
	tail_describe(d->tail, &w);
	ff_jw_key(&w, "api");
	api_describe(d->api, &w);
	put_process(&w);
	put_counters(d, &w);
	ff_jw_kint(&w, "connection_count", d->server ? (int64_t)d->server->nconns : 0);
	ff_jw_key(&w, "dialects");
	conn_describe_dialects(d->server, &w);
	if (each_connection) {
		ff_jw_key(&w, "connections");
		conn_describe(d->server, &w);
	}
	ff_jw_close(&w, '}');
	ff_buf_addc(out, '\n');
}

/* ---- for people */

/* Those that are not 0 with their meanings, the others by name. */
static void add_counters(const struct ff_json_node *v, struct ff_buf *out)
{
	struct ff_buf zero = {0};
	for (v = ff_json_first(v); v; v = ff_json_next(v)) {
		int64_t n = 0;
		const char *name = ff_json_key(v);
		(void)ff_json_int(v, &n);
		if (n) {
			ff_buf_addf(out, "  %s: %lld  (%s)\n", name, (long long)n,
				status_count_text(name));
		} else {
			ff_buf_addf(&zero, "%s%s", zero.len ? ", " : "", name);
		}
	}
	ff_screen_para(out, "  0:", ff_buf_str(&zero), 5, WIDTH);
	ff_buf_finish(&zero);
}

static void add_value(const struct ff_json_node *v, struct ff_buf *out)
{
	struct ff_buf raw = {0};
	if (ff_json_string(v)) {
		ff_json_add_text(&raw, ff_json_string(v));
	} else {
		ff_json_render(v, &raw);
	}
	ff_log_escape(ff_buf_str(&raw), out);
	ff_buf_finish(&raw);
}

/* Members of an object, a line each; objects in it below their name. */
static void add_members(const struct ff_json_node *v, int indent, struct ff_buf *out)
{
	for (v = ff_json_first(v); v; v = ff_json_next(v)) {
		const char *key = ff_json_key(v);
		if (!key || !strcmp(key, "schema")) {
			continue;
		}
		ff_buf_addf(out, "%*s%s:", indent, "", key);
		if (!ff_json_is_object(v)) {
			ff_buf_addc(out, ' ');
			add_value(v, out);
			ff_buf_addc(out, '\n');
		} else if (!strcmp(key, "counters")) {
			ff_buf_addc(out, '\n');
			add_counters(v, out);
		} else {
			ff_buf_addc(out, '\n');
			add_members(v, indent + 2, out);
		}
	}
}

void status_text(struct daemon *d, struct ff_buf *out)
{
	struct ff_buf json = {0};
	status_render(d, true, &json);
	struct ff_json *doc = ff_json_parse_text(ff_buf_str(&json), NULL);
	add_members(ff_json_root(doc), 0, out);
	ff_json_destroy(doc);
	ff_buf_finish(&json);
}
