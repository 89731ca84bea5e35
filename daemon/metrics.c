#include "metrics.h"

#include "base/json.h"
#include "status.h"

/* A number of status and its name here: units are Prometheus' base units. */
static const struct metric {
	const char *section, *key; /* of status; section NULL: at its top */
	const char *name, *type, *help;
	double unit; /* what 1 of status is here */
} metrics[] = {
	{NULL, "runs", "firstfault_runs", "gauge", "Runs that are kept.", 1},
	{NULL, "runs_open", "firstfault_runs_open", "gauge", "Runs whose job has not ended.", 1},
	{NULL, "streams", "firstfault_streams", "gauge", "Streams of the runs that are kept.", 1},
	{NULL, "streams_open", "firstfault_streams_open", "gauge", "Streams that go on.", 1},
	{NULL, "events", "firstfault_events", "gauge", "Events that are kept.", 1},
	{NULL, "segments", "firstfault_segments", "gauge", "Segment files of text.", 1},
	{NULL, "segment_bytes", "firstfault_segment_bytes", "gauge",
		"Bytes of text in segment files, about.", 1},
	{NULL, "uptime_us", "firstfault_uptime_seconds", "gauge", "Time since the start.", 1e-6},
	{NULL, "connection_count", "firstfault_connections_open", "gauge",
		"Connections of senders, of all dialects.", 1},
	{NULL, "ready", "firstfault_ready", "gauge", "1: restored, and all listeners are up.", 1},
	{"store", "reading", "firstfault_reading", "gauge",
		"0: nothing is read until the store has room or commits again.", 1},
	{"store", "trouble", "firstfault_store_failing", "gauge",
		"1: the present commit failed and is tried again.", 1},
	{"store", "commits", "firstfault_store_commits_total", "counter",
		"Transactions that were committed.", 1},
	{"store", "rows", "firstfault_store_rows_total", "counter", "Rows that were committed.", 1},
	{"store", "failures", "firstfault_store_commit_failures_total", "counter",
		"Commits that failed, each counted once.", 1},
	{"store", "retries", "firstfault_store_commit_retries_total", "counter",
		"Further tries of failed commits.", 1},
	{"store", "queued_batches", "firstfault_store_queue_batches", "gauge",
		"Transactions that wait.", 1},
	{"store", "queued_bytes", "firstfault_store_queue_bytes", "gauge",
		"Bytes of rows and text that wait to be committed.", 1},
	{"store", "queue_limit", "firstfault_store_queue_limit_bytes", "gauge",
		"Reading stops when so much waits.", 1},
	{"kept", "store_bytes", "firstfault_store_bytes", "gauge", "Bytes of the database.", 1},
	{"kept", "store_free_bytes", "firstfault_store_free_bytes", "gauge",
		"Of them free: given back step by step.", 1},
	{"kept", "log_bytes", "firstfault_store_log_bytes", "gauge",
		"Bytes of the database's write-ahead log.", 1},
	{"kept", "segment_bytes", "firstfault_kept_segment_bytes", "gauge",
		"Bytes of segment files that retention counts.", 1},
	{"kept", "limit_bytes", "firstfault_keep_size_bytes", "gauge",
		"Of all runs the oldest ended ones go beyond this.", 1},
	{"kept", "limit_seconds", "firstfault_keep_age_seconds", "gauge",
		"Ended runs go after this.", 1},
	{"kept", "over_limit", "firstfault_keep_over", "gauge",
		"1: more is kept than the limit, and no run may go.", 1},
	{"kept", "going", "firstfault_runs_going", "gauge", "Runs that are being deleted.", 1},
	{"tail", "patterns", "firstfault_tail_patterns", "gauge", "Patterns of files to follow.",
		1},
	{"tail", "threads", "firstfault_tail_threads", "gauge",
		"File systems that are followed, a thread each.", 1},
	{"tail", "hung", "firstfault_tail_hung", "gauge",
		"File systems that do not answer, at this moment.", 1},
	{"tail", "files", "firstfault_tail_files", "gauge", "Files that are followed.", 1},
	{"tail", "open", "firstfault_tail_files_open", "gauge", "Of them open.", 1},
	{"tail", "waiting", "firstfault_tail_files_waiting", "gauge",
		"Files that wait because too many are followed.", 1},
	{"tail", "watched", "firstfault_tail_folders_watched", "gauge",
		"Folders whose changes the kernel tells.", 1},
	{"tail", "polled", "firstfault_tail_folders_polled", "gauge",
		"Folders that are looked at by the clock alone.", 1},
	{"nodes", "nodes", "firstfault_nodes", "gauge", "Nodes whose own logs are kept.", 1},
	{"nodes", "streams", "firstfault_node_streams", "gauge",
		"Kernel and scheduler logs of nodes.", 1},
	{"nodes", "events", "firstfault_node_events", "gauge", "Events of nodes' own logs.", 1},
	{"nodes", "joined", "firstfault_node_events_joined", "gauge",
		"Of them joined to a run, counted once for each run.", 1},
	{"hooks", "waiting", "firstfault_hook_messages_waiting", "gauge",
		"Messages of hooks that wait.", 1},
	{"hooks", "under_way", "firstfault_hook_messages_under_way", "gauge",
		"Messages of hooks that are being delivered.", 1},
	{"hooks", "bytes", "firstfault_hook_messages_bytes", "gauge",
		"Bytes of messages of hooks that wait or are being delivered.", 1},
	{"hooks", "limit", "firstfault_hook_messages_limit", "gauge",
		"As many may wait.", 1},
	{"api", "requests_open", "firstfault_http_requests_open", "gauge",
		"HTTP requests that are being answered.", 1},
	{"api", "watchers", "firstfault_watchers_open", "gauge", "Watchers of GET /v1/watch.", 1},
	{"api", "kept_bytes", "firstfault_http_answers_kept_bytes", "gauge",
		"Bytes of answers about ended runs that are kept to be given again.", 1},
	{"api", "loop_longest_us", "firstfault_loop_longest_turn_seconds", "gauge",
		"The longest that the loop was busy at a stretch, since the start.", 1e-6},
	{"process", "resident_bytes", "process_resident_memory_bytes", "gauge",
		"Resident memory size in bytes.", 1},
	{"process", "virtual_bytes", "process_virtual_memory_bytes", "gauge",
		"Virtual memory size in bytes.", 1},
	{"process", "open_fds", "process_open_fds", "gauge", "Number of open file descriptors.", 1},
	{"process", "max_fds", "process_max_fds", "gauge",
		"Maximum number of open file descriptors.", 1},
	{"process", "cpu_us", "process_cpu_seconds_total", "counter",
		"Total user and system CPU time spent in seconds.", 1e-6},
};

static void add_head(struct ff_buf *out, const char *name, const char *type, const char *help)
{
	ff_buf_addf(out, "# HELP %s ", name);
	for (; *help; help++) {
		if (*help == '\\') {
			ff_buf_addc(out, '\\'); /* the only escape that our texts can need */
		}
		ff_buf_addc(out, *help);
	}
	ff_buf_addf(out, "\n# TYPE %s %s\n", name, type);
}

/* A number; true and any text are 1, false and null 0. */
static double number_of(const struct ff_json_node *v)
{
	double n = 0;
	bool yes = false;
	if (!ff_json_number(v, &n)) {
		(void)ff_json_bool(v, &yes);
		n = yes || ff_json_string(v);
	}
	return n;
}

static void add_metrics(const struct ff_json_node *root, struct ff_buf *out)
{
	for (size_t i = 0; i < sizeof metrics / sizeof *metrics; i++) {
		const struct metric *m = &metrics[i];
		const struct ff_json_node *from = m->section ? ff_json_get(root, m->section) : root;
		add_head(out, m->name, m->type, m->help);
		ff_buf_addf(
			out, "%s %.17g\n", m->name, number_of(ff_json_get(from, m->key)) * m->unit);
	}
}

static void add_dialects(const struct ff_json_node *root, struct ff_buf *out)
{
	static const char name[] = "firstfault_dialect_connections";
	add_head(out, name, "gauge", "Connections of senders that speak this dialect.");
	const struct ff_json_node *v = ff_json_first(ff_json_get(root, "dialects"));
	for (; v; v = ff_json_next(v)) {
		ff_buf_addf(out, "%s{dialect=\"%s\"} %.17g\n", name, ff_json_key(v), number_of(v));
	}
}

static void add_counters(const struct ff_json_node *root, struct ff_buf *out)
{
	struct ff_buf name = {0};
	const struct ff_json_node *v = ff_json_first(ff_json_get(root, "counters"));
	for (; v; v = ff_json_next(v)) {
		ff_buf_clear(&name);
		ff_buf_addf(&name, "firstfault_%s_total", ff_json_key(v));
		add_head(out, name.p, "counter", status_count_text(ff_json_key(v)));
		ff_buf_addf(out, "%s %.17g\n", name.p, number_of(v));
	}
	ff_buf_finish(&name);
}

void metrics_render(struct daemon *d, struct ff_buf *out)
{
	struct ff_buf json = {0};
	status_render(d, false, &json);
	struct ff_json *doc = ff_json_parse_text(ff_buf_str(&json), NULL);
	const struct ff_json_node *root = ff_json_root(doc);
	add_head(out, "firstfault_build_info", "gauge", "1; the version is its label.");
	ff_buf_addz(out, "firstfault_build_info{version=\"" FF_VERSION "\"} 1\n");
	add_head(out, "process_start_time_seconds", "gauge",
		"Start time of the process since unix epoch in seconds.");
	ff_buf_addf(out, "process_start_time_seconds %.17g\n", (double)d->started_us * 1e-6);
	add_metrics(root, out);
	add_dialects(root, out);
	add_counters(root, out);
	ff_json_destroy(doc);
	ff_buf_finish(&json);
}
