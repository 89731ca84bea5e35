#include "client.h"

#include "print.h"
#include "rpc.h"

struct jobs {
	bool json;
	char *state, *fault, *node, *user, *since;
	int64_t limit;
	struct print_table table;
	struct ff_buf out;
	int64_t shown;
};

/* "137", "0-2", the node, or "-" */
static void add_who(struct ff_buf *b, const struct ff_json_node *item)
{
	const char *verdict = ff_json_string(ff_json_get(item, "verdict"));
	if (verdict && !strcmp(verdict, "node")) {
		print_member(b, item, "node");
		return;
	}
	struct ff_buf all = {0};
	print_member(&all, item, "initiating");
	print_text(b, all.p, 20);
	ff_buf_finish(&all);
}

static void add_summary(struct ff_buf *b, const struct ff_json_node *item)
{
	const char *summary = ff_json_string(ff_json_get(item, "summary"));
	print_text(b, summary ? summary : "-", 120);
}

static bool take(void *ud, const struct ff_json_node *item)
{
	static const char *const plain[] = {"job", "run", "state", "verdict", "confidence"};
	struct jobs *j = ud;
	struct ff_buf b = {0};
	if (j->limit && j->shown == j->limit) {
		return false;
	}
	j->shown++;
	if (j->json) {
		ff_json_render(item, &b);
		ff_buf_addf(&j->out, "%s%s", j->shown > 1 ? ",\n" : "", b.p);
		ff_buf_finish(&b);
		return true;
	}
	for (size_t i = 0; i < sizeof plain / sizeof *plain; i++) {
		print_member(&b, item, plain[i]);
		print_cell(&j->table, &b);
	}
	add_who(&b, item);
	print_cell(&j->table, &b);
	print_member(&b, item, "fault");
	print_cell(&j->table, &b);
	add_summary(&b, item);
	print_cell(&j->table, &b);
	return true;
}

static void add_path(const struct jobs *j, struct ff_buf *path)
{
	const struct {
		const char *key, *value;
	} queries[] = {
		{"state", j->state},
		{"fault", j->fault},
		{"node", j->node},
		{"user", j->user},
		{"since", j->since},
	};
	ff_buf_addz(path, "/v1/jobs");
	for (size_t i = 0; i < sizeof queries / sizeof *queries; i++) {
		if (queries[i].value) {
			rpc_add_query(path, queries[i].key, queries[i].value);
		}
	}
}

static int list(struct jobs *j)
{
	static const struct ff_screen_column columns[] = {
		{"JOB", 28, false},
		{"RUN", 8, false},
		{"STATE", 8, false},
		{"VERDICT", 12, false},
		{"CONFIDENCE", 10, false},
		{"WHO", 14, false},
		{"FAULT", 24, false},
		{"SUMMARY", 100, false},
	};
	struct ff_buf path = {0};
	j->table.columns = columns;
	j->table.ncolumns = sizeof columns / sizeof *columns;
	add_path(j, &path);
	if (j->json) {
		ff_buf_addz(&j->out, "{\"schema\":\"firstfault.jobs/1\",\"items\":[");
	}
	int status = rpc_each(path.p, take, j);
	if (!status) {
		if (j->json) {
			ff_buf_addz(&j->out, "],\"next\":null}\n");
		} else if (j->shown) {
			print_rows(&j->table, &j->out);
		} else {
			ff_buf_addz(&j->out, "no jobs\n");
		}
		status = client_print(&j->out);
	}
	ff_buf_finish(&path);
	ff_buf_finish(&j->out);
	print_finish(&j->table);
	return status;
}

static int run(const struct client_command *self, int argc, char **argv)
{
	struct jobs j = {0};
	const struct ff_option options[] = {
		{"json", 'j', FF_OPTION_FLAG, &j.json, NULL, "print the list as JSON", 0, 0},
		{"state", 0, FF_OPTION_TEXT, &j.state, "STATE",
			"only runs in this state: running, stalled, ending, ended", 1, 32},
		{"fault", 0, FF_OPTION_TEXT, &j.fault, "ID", "only runs with this fault", 1, 128},
		{"node", 0, FF_OPTION_TEXT, &j.node, "NAME", "only runs with this node", 1, 128},
		{"user", 0, FF_OPTION_TEXT, &j.user, "USER",
			"only runs of this user: the name that their job-start gave, or a uid", 1,
			128},
		{"since", 0, FF_OPTION_TEXT, &j.since, "TIME",
			"only runs that changed after this time (2026-01-01T00:00:00Z)", 1, 40},
		{"limit", 'n', FF_OPTION_INT, &j.limit, "N", "at most so many", 1, 1000000},
	};
	const size_t n = sizeof options / sizeof *options;
	int status;
	int rest = client_options(self, options, n, argc, argv, &status);
	if (rest >= 0) {
		status = rest < argc ? client_usage(self, "unexpected \"%s\"", argv[rest])
				     : list(&j);
	}
	ff_option_finish(options, n);
	return status;
}

const struct client_command cmd_jobs = {
	.name = "jobs",
	.synopsis = "jobs [--state STATE] [--fault ID] [--node NAME] [--user USER] [--since TIME] "
		    "[--json]",
	.summary = "list the jobs that the daemon knows",
	.description = "One line a run: its state, its verdict as far as it is known, and who "
		       "started it.\n",
	.examples = "firstfault jobs --state ended --fault cuda-oom\n",
	.run = run,
};
