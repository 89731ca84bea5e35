#include "client.h"

#include "base/limits.h"
#include "base/mem.h"
#include "feed/runs.h"
#include "files.h"
#include "forward.h"
#include "token.h"

#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

struct ship {
	bool follow;
	char *job, *run, *to, *node, *kind;
	int64_t rank, world, attempt, give_up;
	char *const *paths;
	size_t npaths;
	const char *job_id;
	const char *token; /* NULL */
	struct forward *forward;
	size_t added;
};

/* --job, else what the launcher left in the environment (shared/README.md 2). malloc'd; NULL:
 * none. */
static char *find_job(const struct ship *s, const struct files *files)
{
	const char *slurm = getenv("SLURM_JOB_ID");
	const char *addr = getenv("MASTER_ADDR"), *port = getenv("MASTER_PORT");
	struct ff_buf b = {0};
	if (s->job) {
		ff_buf_addz(&b, s->job);
	} else if (files->njobs && files->jobs[0].job) {
		ff_buf_addz(&b, files->jobs[0].job);
	} else if (slurm && *slurm) {
		ff_buf_addz(&b, slurm);
	} else if (addr && *addr && port && *port) {
		ff_buf_addf(&b, "%s:%s", addr, port);
	}
	return b.len ? ff_buf_take(&b) : NULL;
}

static int32_t choose(int64_t option, int32_t found)
{
	return option >= 0 ? (int32_t)option : found;
}

static void add_item(struct ship *s, const struct files_item *it)
{
	const struct ff_origin *o = &it->origin;
	struct ff_native_hello h = FF_NATIVE_HELLO_INIT;
	if (!it->path || !it->name[0] || forward_knows(s->forward, it->path)) {
		return;
	}
	if (s->follow && s->added >= forward_room()) {
		client_warn("more than %zu files to follow, ignoring \"%s\"", forward_room(),
			it->path);
		return;
	}
	h.job = it->job && !s->job ? it->job : s->job_id;
	h.run = s->run ? s->run : it->run;
	h.node = s->node ? s->node : o->node;
	h.kind = s->kind ? s->kind : o->kind_declared ? ff_stream_kind_name(o->kind) : NULL;
	h.token = s->token;
	h.streams[0] = it->name;
	h.fds[0] = ff_fd_name(o->fd);
	h.rank = choose(s->rank, o->rank);
	h.local_rank = o->local_rank;
	h.attempt = choose(s->attempt, o->attempt);
	h.world_size = choose(s->world, it->world);
	forward_add(s->forward, it->path, &h);
	s->added++;
}

static int find_files(const struct ship *s, struct files *files)
{
	int status = CLIENT_OK;
	*files = (struct files){0};
	for (size_t i = 0; i < s->npaths && !status; i++) {
		status = !strcmp(s->paths[i], "-")
			? client_fail(CLIENT_USAGE,
				  "ship takes files: what comes from a pipe is gone once it "
				  "is read",
				  "firstfault ship FILE, or nc with a plain hello")
			: files_add(files, s->paths[i], i);
	}
	if (!status) {
		files_settle(files);
	}
	return status;
}

/* New files below the folders, while following. */
static void look(void *ud)
{
	struct ship *s = ud;
	struct files files;
	if (find_files(s, &files) == CLIENT_OK) {
		for (size_t i = 0; i < files.n; i++) {
			add_item(s, &files.v[i]);
		}
	}
	files_finish(&files);
}

static void on_signal(int signal_number)
{
	(void)signal_number;
	forward_stop();
}

static void catch_signals(void)
{
	struct sigaction sa = {.sa_handler = on_signal};
	(void)sigemptyset(&sa.sa_mask);
	(void)sigaction(SIGINT, &sa, NULL);
	(void)sigaction(SIGTERM, &sa, NULL);
}

static int check_names(const struct ship *s, struct ff_err *err)
{
	int r = ff_runs_check_name(ff_str_z(s->job_id), "job id", err);
	if (r == 0 && s->run) {
		r = ff_runs_check_name(ff_str_z(s->run), "run id", err);
	}
	if (r == 0 && s->kind && ff_stream_kind_parse(ff_str_z(s->kind)) < 0) {
		r = ff_err_set(err, FF_EUSAGE, "kind is rank, agent, mixed, kernel or scheduler");
	}
	return r;
}

static int send_all(struct ship *s, const struct files *files)
{
	struct forward_options o = {.follow = s->follow, .give_up_us = s->give_up, .look = look,
		.ud = s};
	struct ff_err err = {0};
	int r = ff_addr_ingest(s->to, &o.to, &err);
	if (r < 0) {
		return client_fail(client_status(r), err.text, NULL);
	}
	s->forward = forward_create(&o);
	for (size_t i = 0; i < files->n; i++) {
		add_item(s, &files->v[i]);
	}
	int status = s->added || s->follow ? CLIENT_OK :
		client_failf(CLIENT_INPUT, NULL, "nothing to ship in \"%s\"", s->paths[0]);
	if (!status) {
		if (s->follow) {
			catch_signals();
		}
		status = forward_run(s->forward);
	}
	forward_destroy(s->forward);
	ff_addr_finish(&o.to);
	return status;
}

static int ship(const struct client_command *self, struct ship *s)
{
	struct files files;
	struct ff_err err = {0};
	char host[FF_JOB_ID_MAX + 1] = "";
	int status = find_files(s, &files);
	char *job = status ? NULL : find_job(s, &files);
	if (s->follow && !s->node && gethostname(host, sizeof host - 1) == 0 && host[0]) {
		s->node = ff_xstrdup(host); /* its stamps are of this machine's clock */
	}
	if (!status && !job) {
		status = client_fail(CLIENT_USAGE,
			"no job id: neither SLURM_JOB_ID nor MASTER_ADDR and "
			"MASTER_PORT are set",
			"firstfault ship --job ID");
	}
	if (!status) {
		s->job_id = job;
		status = check_names(s, &err) < 0 ? client_usage(self, "%s", err.text) :
			send_all(s, &files);
	}
	free(job);
	status = status ? status : files.partly;
	files_finish(&files);
	return status;
}

static int run(const struct client_command *self, int argc, char **argv)
{
	struct ship s = {.rank = -1, .world = -1, .attempt = -1, .give_up = 300 * FF_SECOND};
	const struct ff_option options[] = {
		{"job", 0, FF_OPTION_TEXT, &s.job, "ID",
			"the job (default: SLURM_JOB_ID, else MASTER_ADDR:MASTER_PORT)", 1,
			FF_JOB_ID_MAX},
		{"run", 0, FF_OPTION_TEXT, &s.run, "R", "its run (default: the latest)", 1,
			FF_JOB_ID_MAX},
		{"rank", 'r', FF_OPTION_INT, &s.rank, "N", "the files are this rank's", 0,
			FF_RANKS_MAX - 1},
		{"attempt", 0, FF_OPTION_INT, &s.attempt, "N", "and of this attempt", 0, INT32_MAX},
		{"node", 0, FF_OPTION_TEXT, &s.node, "NAME",
			"the node that wrote them (with --follow: this machine)", 1, FF_JOB_ID_MAX},
		{"kind", 0, FF_OPTION_TEXT, &s.kind, "KIND",
			"what they are: rank, agent, mixed, kernel or scheduler", 1, 16},
		{"world", 'w', FF_OPTION_INT, &s.world, "N", "number of ranks of the job", 1,
			FF_RANKS_MAX},
		{"to", 0, FF_OPTION_TEXT, &s.to, "ADDR",
			"unix:PATH or HOST:PORT (default: FIRSTFAULT_ADDR, else the daemon's "
			"socket)",
			1, 512},
		{"follow", 'f', FF_OPTION_FLAG, &s.follow, NULL,
			"go on as the files grow and new ones appear, until SIGTERM or SIGINT", 0,
			0},
		{"give-up", 0, FF_OPTION_SPAN, &s.give_up, "SPAN",
			"stop when the daemon was away for so long (5m)", 0, 86400 * FF_SECOND},
	};
	const size_t n = sizeof options / sizeof *options;
	int status;
	int rest = client_options(self, options, n, argc, argv, &status);
	if (rest >= 0 && rest == argc) {
		status = client_usage(self, "no FILE or DIR given");
	} else if (rest >= 0) {
		s.paths = argv + rest;
		s.npaths = (size_t)(argc - rest);
		s.token = token_get(&status);
		status = status ? status : ship(self, &s);
	}
	ff_option_finish(options, n);
	return status;
}

const struct client_command cmd_ship = {
	.name = "ship",
	.synopsis = "ship [--job ID] [--run R] [--rank N] [--to ADDR] [--follow] FILE|DIR...",
	.summary = "send existing or growing log files to the daemon",
	.description = "Sends files to firstfaultd and exits when all of it is stored there. "
		       "Shipping a file again\n"
		       "sends only what is new. Who a file is, its path says, as in `firstfault "
		       "analyze`. When the\n"
		       "daemon goes away, ship waits for it and goes on; the file itself is the "
		       "spool, nothing is\n"
		       "lost as long as it exists. Secrets are masked before they leave.\n"
		       "\n"
		       "What a file held when it was opened has no time. With --follow, what it "
		       "gains has the time\n"
		       "of this machine's clock, which is compared with the daemon's.\n",
	.examples = "firstfault ship --job 4711 logs/4711_k2j9x0ab/\n"
		    "firstfault ship --follow --to gpu-head:5170 /var/log/ranks/\n",
	.run = run,
};
