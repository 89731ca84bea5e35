#include "client.h"

#include "base/limits.h"
#include "base/mask_rules.h"
#include "base/mem.h"
#include "feed/runs.h"
#include "files.h"
#include "forward.h"
#include "pipe.h"
#include "shell/file.h"
#include "token.h"

#include <signal.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define PIPES_MAX 64u

struct ship {
	bool follow, flush;
	char *job, *run, *to, *node, *kind;
	int64_t rank, world, attempt, give_up, spool_max;
	struct ff_option_list patterns;
	struct ff_mask_rules *mask; /* NULL */
	char *const *paths;
	size_t npaths;
	const char *job_id;
	const char *token; /* NULL */
	struct forward *forward;
	size_t added;
	struct {
		struct pipe *pipe;
		struct spool *spool; /* forward's */
		const char *shown;
	} pipes[PIPES_MAX];
	size_t npipes;
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

/* "-", or a FIFO: read once, so it goes through a spool. */
static bool is_pipe(const char *path)
{
	struct stat st;
	return !strcmp(path, "-") || (stat(path, &st) == 0 && S_ISFIFO(st.st_mode));
}

static int find_files(const struct ship *s, struct files *files)
{
	int status = CLIENT_OK;
	*files = (struct files){0};
	for (size_t i = 0; i < s->npaths && !status; i++) {
		if (!is_pipe(s->paths[i])) {
			status = files_add(files, s->paths[i], i);
		}
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

/* What a pipe is called: rank-3.pipe, without a rank PID.pipe; a FIFO has its own name. */
static void name_pipe(const char *path, int64_t rank, struct ff_buf *ret)
{
	if (path) {
		ff_buf_adds(ret, ff_file_base(path));
	} else if (rank >= 0) {
		ff_buf_addf(ret, "rank-%lld.pipe", (long long)rank);
	} else {
		ff_buf_addf(ret, "%ld.pipe", (long)getpid());
	}
}

static void add_pipe(struct ship *s, const char *path, const char *to)
{
	struct ff_native_hello h = FF_NATIVE_HELLO_INIT;
	struct ff_path_identity id;
	struct ff_err err = {0};
	struct ff_buf name = {0};
	const char *shown = path ? path : "standard input";
	ff_path_identify(ff_str_z(path ? path : ""), &id);
	h.job = s->job_id;
	h.run = s->run;
	h.node = s->node;
	h.kind = s->kind ? s->kind : id.kind_known ? ff_stream_kind_name(id.kind) : NULL;
	h.fds[0] = ff_fd_name(id.fd);
	h.rank = choose(s->rank, id.rank);
	h.local_rank = id.local_rank;
	h.attempt = choose(s->attempt, id.attempt);
	h.world_size = s->world;
	h.live = true;
	h.nstreams = 1;
	name_pipe(path, h.rank, &name);
	h.streams[0] = name.p;
	struct spool *spool = spool_create(to, &h, (uint64_t)s->spool_max, s->mask, &err);
	if (err.text[0]) {
		client_warn("%s, what \"%s\" brings is kept in memory only", err.text, shown);
	}
	s->pipes[s->npipes].spool = spool;
	s->pipes[s->npipes].shown = shown;
	s->pipes[s->npipes++].pipe = pipe_start(path, spool, s->mask, forward_wake(s->forward));
	forward_add_spool(s->forward, spool, shown, true, s->token);
	ff_buf_finish(&name);
	ff_path_identity_finish(&id);
}

static int add_pipes(struct ship *s, const char *to)
{
	for (size_t i = 0; i < s->npaths; i++) {
		const char *path = s->paths[i];
		if (is_pipe(path) && s->npipes == PIPES_MAX) {
			return client_failf(CLIENT_USAGE, NULL, "more than %u pipes", PIPES_MAX);
		}
		if (is_pipe(path)) {
			add_pipe(s, strcmp(path, "-") != 0 ? path : NULL, to);
		}
	}
	return CLIENT_OK;
}

static void add_orphan(void *ud, struct spool *spool)
{
	struct ship *s = ud;
	forward_add_spool(s->forward, spool, spool_hello(spool)->streams[0], false, s->token);
	s->added += s->flush;
}

/* Whatever went wrong, a pipe's writer must not be stopped or ended by it: the pipe is read on, for
 * nobody if need be. */
static int end_pipes(struct ship *s, int status)
{
	for (size_t i = 0; i < s->npipes; i++) {
		struct pipe *p = s->pipes[i].pipe;
		if (forward_stopped()) {
			pipe_stop(p);
		} else if (!pipe_ended(p) && forward_has(s->forward, s->pipes[i].spool)) {
			spool_discard(s->pipes[i].spool);
		}
		pipe_wait(p);
		if (pipe_trouble(p)[0]) {
			int failed = client_fail(CLIENT_IO, pipe_trouble(p), NULL);
			status = status ? status : failed;
		}
		pipe_destroy(p);
	}
	return status;
}

/* What can't be delivered now is not lost. */
static void say_what_waits(const struct ship *s, int status)
{
	for (size_t i = 0; i < s->npipes && status == CLIENT_NO_DAEMON; i++) {
		bool has = forward_has(s->forward, s->pipes[i].spool);
		const char *folder = has ? spool_folder(s->pipes[i].spool) : "";
		if (*folder) {
			client_warn("what is left of \"%s\" stays in \"%s\": the next ship sends "
				    "it, or `firstfault ship --spool-flush`",
				s->pipes[i].shown, folder);
		}
	}
}

static int send_all(struct ship *s, const struct files *files)
{
	struct forward_options o = {.mask = s->mask,
		.follow = s->follow,
		.give_up_us = s->give_up,
		.look = look,
		.ud = s};
	struct ff_err err = {0};
	int r = ff_addr_ingest(s->to, &o.to, &err);
	if (r < 0) {
		return client_fail(client_status(r), err.text, NULL);
	}
	struct ff_buf to = {0};
	ff_addr_render(&o.to, &to);
	s->forward = forward_create(&o);
	(void)spool_adopt(s->flush ? NULL : to.p, add_orphan, s);
	int status = add_pipes(s, to.p);
	for (size_t i = 0; i < files->n; i++) {
		add_item(s, &files->v[i]);
	}
	if (!status && !s->added && !s->npipes && !s->follow && !s->flush) {
		status = client_failf(
			CLIENT_INPUT, NULL, "nothing to ship in \"%s\"", s->paths[0]);
	}
	if (!status) {
		if (s->follow || s->npipes) {
			catch_signals();
		}
		status = forward_run(s->forward);
	}
	say_what_waits(s, status);
	status = end_pipes(s, status);
	forward_destroy(s->forward);
	ff_buf_finish(&to);
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
	bool stamps = s->follow;
	for (size_t i = 0; i < s->npaths; i++) {
		stamps = stamps || is_pipe(s->paths[i]);
	}
	if (stamps && !s->node && gethostname(host, sizeof host - 1) == 0 && host[0]) {
		s->node = ff_xstrdup(host); /* its stamps are of this machine's clock */
	}
	if (!status && !job && s->npaths) {
		status = client_fail(CLIENT_USAGE,
			"no job id: neither SLURM_JOB_ID nor MASTER_ADDR and "
			"MASTER_PORT are set",
			"firstfault ship --job ID");
	}
	if (!status) {
		s->job_id = job;
		status = job && check_names(s, &err) < 0 ? client_usage(self, "%s", err.text) :
			send_all(s, &files);
	}
	free(job);
	status = status ? status : files.partly;
	files_finish(&files);
	return status;
}

/* Nothing is shipped, for a reason that standard input's writer should not die of. */
static void read_for_nobody(const struct ship *s)
{
	char bytes[65536];
	bool pipe = false;
	for (size_t i = 0; i < s->npaths; i++) {
		pipe = pipe || !strcmp(s->paths[i], "-");
	}
	while (pipe && !isatty(STDIN_FILENO) &&
		ff_file_read(STDIN_FILENO, "-", bytes, sizeof bytes, NULL) > 0) {
	}
}

static int run(const struct client_command *self, int argc, char **argv)
{
	struct ship s = {.rank = -1, .world = -1, .attempt = -1, .give_up = 300 * FF_SECOND,
		.spool_max = SPOOL_MAX_DEFAULT};
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
		{"mask", 0, FF_OPTION_LIST, &s.patterns, "PATTERN",
			"what this PCRE2 pattern matches in a line is a secret too; may be "
			"repeated",
			1, 4096},
		{"spool-max", 0, FF_OPTION_SIZE, &s.spool_max, "SIZE",
			"bytes of a pipe kept on disk for the daemon; the oldest go first (1GiB)",
			SPOOL_MAX_LEAST, INT64_MAX},
		{"spool-flush", 0, FF_OPTION_FLAG, &s.flush, NULL,
			"send what ships that are gone left behind, to this daemon", 0, 0},
		{"give-up", 0, FF_OPTION_SPAN, &s.give_up, "SPAN",
			"stop when the daemon was away for so long (5m)", 0, 86400 * FF_SECOND},
	};
	const size_t n = sizeof options / sizeof *options;
	struct ff_err err = {0};
	int status;
	int rest = client_options(self, options, n, argc, argv, &status);
	if (rest >= 0 && rest == argc && !s.flush) {
		status = client_usage(self, "no FILE or DIR given");
	} else if (rest >= 0 && ff_mask_rules_create(s.patterns.v, s.patterns.n, &s.mask,
					&err) < 0) {
		status = client_usage(self, "--mask: %s", err.text);
	} else if (rest >= 0) {
		s.paths = argv + rest;
		s.npaths = (size_t)(argc - rest);
		s.token = token_get(&status);
		status = status ? status : ship(self, &s);
	}
	if (status && !s.npipes) {
		read_for_nobody(&s);
	}
	ff_mask_rules_destroy(s.mask);
	ff_option_finish(options, n);
	return status;
}

const struct client_command cmd_ship = {
	.name = "ship",
	.synopsis = "ship [--job ID] [--run R] [--rank N] [--to ADDR] [--follow] FILE|DIR|-...\n"
		    "ship --spool-flush",
	.summary = "send existing or growing log files, or a pipe, to the daemon",
	.description = "Sends files to firstfaultd and exits when all of it is stored there. "
		       "Shipping a file again\n"
		       "sends only what is new. Who a file is, its path says, as in `firstfault "
		       "analyze`. When the\n"
		       "daemon goes away, ship waits for it and goes on; the file itself is the "
		       "spool, nothing is\n"
		       "lost as long as it exists. Secrets are masked before they leave; --mask "
		       "adds patterns of\n"
		       "your own (README.md, Secrets).\n"
		       "\n"
		       "A pipe (- is standard input, or the path of a FIFO) is read as fast as it "
		       "comes, whether the\n"
		       "daemon is there or not; until that has it, it is kept in a spool on disk, "
		       "masked. A full spool\n"
		       "drops its oldest text, which leaves a gap in the stream. What a ship could "
		       "not deliver, the\n"
		       "next ship to the same ADDR does, whatever else it sends. Spools are in "
		       "FIRSTFAULT_SPOOL, else\n"
		       "as root in /var/spool/firstfault, else in firstfault/spool below "
		       "XDG_STATE_HOME.\n"
		       "\n"
		       "What a file held when it was opened has no time. With --follow, what it "
		       "gains has the time\n"
		       "of this machine's clock, which is compared with the daemon's; so have the "
		       "lines of a pipe.\n",
	.examples = "firstfault ship --job 4711 logs/4711_k2j9x0ab/\n"
		    "firstfault ship --follow --to gpu-head:5170 /var/log/ranks/\n"
		    "python train.py 2>&1 | tee out.log | firstfault ship --job 4711 --rank 3 -\n",
	.run = run,
};
