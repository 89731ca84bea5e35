#include "client.h"

#include "base/json.h"
#include "base/limits.h"
#include "base/mem.h"
#include "nodes.h"
#include "query.h"
#include "rpc.h"

#include <limits.h>
#include <stdio.h>

struct job {
	bool json, create;
	int64_t exit_code, world, wait, uid;
	char *run, *state, *launcher, *name, *user, *nodes, *time;
};

static void add_text(struct ff_jw *w, const char *key, const char *value)
{
	if (value) {
		ff_jw_kstrz(w, key, value);
	}
}

static int add_nodes(struct ff_jw *w, const char *list)
{
	struct nodes n = {0};
	struct ff_err err = {0};
	if (!list) {
		return CLIENT_OK;
	}
	if (nodes_parse(list, &n, &err) < 0) {
		return client_fail(CLIENT_USAGE, err.text, NULL);
	}
	ff_jw_key(w, "nodes");
	ff_jw_open(w, '[');
	for (size_t i = 0; i < n.n; i++) {
		ff_jw_strz(w, n.v[i]);
	}
	ff_jw_close(w, ']');
	nodes_finish(&n);
	return CLIENT_OK;
}

static int make_body(const struct job *j, bool end, struct ff_buf *out)
{
	struct ff_jw w;
	int status = CLIENT_OK;
	ff_jw_init(&w, out);
	ff_jw_open(&w, '{');
	add_text(&w, "run", j->run);
	add_text(&w, "time", j->time);
	if (end) {
		if (j->exit_code != INT64_MIN) {
			ff_jw_kint(&w, "exit_code", j->exit_code);
		}
		add_text(&w, "state", j->state);
	} else {
		if (j->world > 0) {
			ff_jw_kint(&w, "world_size", j->world);
		}
		add_text(&w, "launcher", j->launcher);
		add_text(&w, "name", j->name);
		add_text(&w, "user", j->user);
		if (j->uid >= 0) {
			ff_jw_kint(&w, "uid", j->uid);
		}
		status = add_nodes(&w, j->nodes);
	}
	ff_jw_close(&w, '}');
	return status;
}

/* A prolog that fails would drain its node: who is not heard is told, and that is all. */
static void check_owner(const struct job *j, const char *job, const struct rpc_answer *a)
{
	int64_t owner = -1;
	struct ff_json *doc = j->uid >= 0 ? ff_json_parse(ff_buf_str(&a->body), NULL) : NULL;
	if (!doc) {
		return;
	}
	(void)ff_json_int(ff_json_get(ff_json_root(doc), "owner"), &owner);
	if (owner != j->uid) {
		client_warn(
			"%s is not uid %lld's: only an administrator names an owner, and not of "
			"a run that is another user's",
			job, (long long)j->uid);
	}
	ff_json_destroy(doc);
}

static int post(const struct job *j, bool end, const char *job)
{
	struct ff_buf body = {0}, path = {0};
	struct rpc_answer a;
	char wait[32];
	int status = make_body(j, end, &body);
	rpc_add_job(&path, job);
	ff_buf_addz(&path, end ? "/end" : "/start");
	if (end) {
		(void)snprintf(wait, sizeof wait, "%lldms", (long long)(j->wait / 1000));
		rpc_add_query(&path, "wait", wait);
		if (j->create) {
			rpc_add_query(&path, "create", "1");
		}
	}
	status = status ? status : rpc_ask(path.p, &body, false, &a);
	ff_buf_finish(&path);
	ff_buf_finish(&body);
	if (status) {
		return status;
	}
	if (a.http < 200 || a.http > 299) {
		status = rpc_fail(&a);
		rpc_answer_finish(&a);
		return status;
	}
	if (!end) {
		check_owner(j, job, &a);
	}
	if (j->json) {
		if (a.body.len && a.body.p[a.body.len - 1] != '\n') {
			ff_buf_addc(&a.body, '\n');
		}
		status = client_print(&a.body);
	} else if (end) {
		status = query_print_screen(job, -1, false);
	}
	rpc_answer_finish(&a);
	return status;
}

static int run(const struct client_command *self, int argc, char **argv)
{
	struct job j = {.exit_code = INT64_MIN, .world = -1, .uid = -1, .wait = 5000000};
	const struct ff_option options[] = {
		{"exit-code", 0, FF_OPTION_INT, &j.exit_code, "N",
			"end: its exit code; -N is signal N", INT32_MIN, INT32_MAX},
		{"state", 0, FF_OPTION_TEXT, &j.state, "S",
			"end: the scheduler's word: COMPLETED, FAILED, PREEMPTED, TIMEOUT, "
			"CANCELLED, "
			"NODE_FAIL, OUT_OF_MEMORY, ...",
			1, 64},
		{"wait", 0, FF_OPTION_SPAN, &j.wait, "SPAN",
			"end: wait so long for the last lines before the verdict (5s)", 0,
			60000000},
		{"create", 0, FF_OPTION_FLAG, &j.create, NULL,
			"end: also of a job that nobody has begun", 0, 0},
		{"world", 'w', FF_OPTION_INT, &j.world, "N", "start: number of ranks", 1,
			FF_RANKS_MAX},
		{"launcher", 0, FF_OPTION_TEXT, &j.launcher, "NAME",
			"start: torchrun, srun, mpirun, ...", 1, 64},
		{"name", 0, FF_OPTION_TEXT, &j.name, "NAME", "start: what its user calls it", 1,
			64},
		{"uid", 0, FF_OPTION_INT, &j.uid, "N",
			"start: the user who owns the run, if an administrator says so", 0,
			UINT32_MAX - 1},
		{"user", 0, FF_OPTION_TEXT, &j.user, "USER", "start: whose job it is", 1, 64},
		{"nodes", 0, FF_OPTION_TEXT, &j.nodes, "LIST",
			"start: its nodes: gpu-001,gpu-002 or Slurm's gpu-[001-004,007]", 1,
			1048576},
		{"run", 0, FF_OPTION_TEXT, &j.run, "R", "name of this execution (a requeue count)",
			1, FF_JOB_ID_MAX},
		{"time", 0, FF_OPTION_TEXT, &j.time, "TIME", "when it was (2026-01-01T00:00:00Z)",
			1, 40},
		{"json", 'j', FF_OPTION_FLAG, &j.json, NULL, "print the answer as JSON", 0, 0},
	};
	const size_t n = sizeof options / sizeof *options;
	int status;
	int rest = client_options(self, options, n, argc, argv, &status);
	if (rest >= 0) {
		bool start = argc - rest == 2 && !strcmp(argv[rest], "start");
		bool end = argc - rest == 2 && !strcmp(argv[rest], "end");
		status = start || end ? post(&j, end, argv[rest + 1]) :
			client_usage(self, "give start or end, and one JOB");
	}
	ff_option_finish(options, n);
	return status;
}

const struct client_command cmd_job = {
	.name = "job",
	.synopsis = "job start JOB [--run R] [--world N] [--launcher NAME] [--nodes LIST]\n"
		    "             [--name NAME] [--user USER] [--uid N] [--time TIME]\n"
		    "job end JOB [--exit-code N] [--state S] [--wait SPAN] [--create]",
	.summary = "tell the daemon that a job started or ended",
	.description =
		"For schedulers and their prolog and epilog scripts. `start` makes the job "
		"known; `end` says\n"
		"how it ended, waits for its last lines and prints the verdict. A run is whose who "
		"speaks first: a\n"
		"prolog, which runs as root, names the user with --uid.\n",
	.examples = "firstfault job start \"$SLURM_JOB_ID\" --uid \"$SLURM_JOB_UID\" --nodes "
		    "\"$SLURM_JOB_NODELIST\"\n"
		    "firstfault job end \"$SLURM_JOB_ID\" --exit-code 1 --state FAILED\n",
	.run = run,
};
