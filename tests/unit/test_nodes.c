/* Logs of nodes: kept apart, capped, and joined to the runs that they are about. */
#include "feed/nodes.h"

#include "base/arr.h"
#include "base/limits.h"
#include "core/report.h"
#include "core/row.h"
#include "feed/intake.h"
#include "feed/library.h"

#include <check.h>

#include <stdio.h>
#include <stdlib.h>

#define N(table) (sizeof(table) / sizeof(table)[0])
#define T ((ff_usec)1767225600 * FF_SECOND) /* 2026-01-01T00:00:00Z */

#define GONE "NVRM: Xid (PCI:0000:9b:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off"
#define KILL(pid, cgroup) \
	"oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),cpuset=/,mems_allowed=0," \
	"oom_memcg=/slurm,task_memcg=" cgroup ",task=python,pid=" #pid ",uid=1000"

static struct ff_catalog *catalog;
static struct ff_runs runs;

static void setup(void)
{
	struct ff_err err = {0};
	ck_assert_msg(ff_library_open(NULL, &catalog, &err) == 0, "%s", err.text);
	ff_runs_init(&runs, catalog);
}

static void teardown(void)
{
	ff_runs_finish(&runs);
	ff_catalog_destroy(catalog);
}

/* ---- what is fed */

static struct ff_intake *open_intake(bool trusted, int64_t uid)
{
	struct ff_intake_options o = {.peer = "p", .trusted = trusted, .uid = uid};
	return ff_intake_create(&runs, &o, NULL, NULL);
}

__attribute__((format(printf, 3, 4))) static void say(
	struct ff_intake *in, ff_usec now, const char *fmt, ...)
{
	char line[1024];
	va_list args;
	va_start(args, fmt);
	(void)vsnprintf(line, sizeof line, fmt, args);
	va_end(args);
	ff_intake_feed(in, line, strlen(line), now);
	ff_intake_feed(in, "\n", 1, now);
}

/* "time":"..." of a second after T, in the one clock of all. */
static const char *at(double seconds)
{
	static char text[4][64];
	static int next;
	struct ff_buf b = {0};
	ff_usec_render(&b, T + (ff_usec)(seconds * 1e6));
	next = (next + 1) % 4;
	(void)snprintf(text[next], sizeof text[next], "\"time\":\"%.*s\"", (int)b.len, b.p);
	ff_buf_finish(&b);
	return text[next];
}

/* A job of one rank on a node, from 100 s to 200 s; the rank ends with a lost peer. */
static void feed_job(const char *job, const char *node, bool ended)
{
	struct ff_intake *in = open_intake(true, 0);
	say(in, T, "{\"event\":\"job-start\",\"job\":\"%s\",\"world_size\":2}", job);
	for (int i = 0; i <= 10; i++) {
		say(in, T, "{\"job\":\"%s\",\"rank\":0,\"node\":\"%s\",%s,\"message\":\"step %d\"}",
			job, node, at(100 + i * 10), i);
	}
	if (ended) {
		say(in, T, "{\"event\":\"job-end\",\"job\":\"%s\",%s,\"exit_code\":1}", job,
			at(200));
		ff_intake_end(in, T);
	}
	ff_intake_destroy(in);
}

static void feed_kernel(const char *node, double seconds, const char *text)
{
	struct ff_intake *in = open_intake(true, 0);
	say(in, T,
		"{\"kind\":\"kernel\",\"node\":\"%s\",\"stream\":\"kern\",%s,"
		"\"message\":\"%s\"}",
		node, at(seconds), text);
	ff_intake_destroy(in);
}

static void feed_pid(const char *job, int pid)
{
	struct ff_intake *in = open_intake(true, 0);
	say(in, T,
		"{\"event\":\"exit\",\"job\":\"%s\",\"rank\":1,\"node\":\"a\",\"pid\":%d,"
		"\"signal\":9,%s}",
		job, pid, at(160));
	ff_intake_destroy(in);
}

static struct ff_run *run_of(const char *job)
{
	struct ff_run *run = ff_runs_find(&runs, ff_str_z(job), NULL);
	ck_assert_ptr_nonnull(run);
	return run;
}

/* The view that a run has of its node's log, joined now; NULL. */
static const struct ff_stream *view(const char *job)
{
	struct ff_run *run = run_of(job);
	(void)ff_nodes_join(&runs, run, FF_TIME_NONE);
	for (size_t i = 0; i < run->job->nstreams; i++) {
		if (run->job->streams[i]->origin.joined) {
			return run->job->streams[i];
		}
	}
	return NULL;
}

static size_t joined(const char *job)
{
	const struct ff_stream *s = view(job);
	return s ? s->nevents : 0;
}

/* Pretends that runs belong to users: the uid is the job's first digit. */
static int64_t owner_of(const struct ff_run *run)
{
	return run->job->facts.job[0] - '0';
}

static struct ff_verdict *judge(const char *job)
{
	(void)ff_nodes_join(&runs, run_of(job), FF_TIME_NONE);
	return ff_job_judge(run_of(job)->job,
		&(struct ff_ask){.now_us = FF_TIME_NONE,
			.attempt = FF_UNKNOWN,
			.world = FF_UNKNOWN});
}

/* ---- kept apart */

START_TEST(test_of_no_job)
{
	struct ff_intake *root = open_intake(true, 0), *user = open_intake(false, 1000);
	say(root, T, "{\"kind\":\"kernel\",\"node\":\"a\",\"message\":\"" GONE "\"}");
	say(user, T, "{\"kind\":\"kernel\",\"node\":\"a\",\"message\":\"" GONE "\"}");
	say(user, T, "{\"kind\":\"scheduler\",\"message\":\"x\"}");
	say(user, T, "{\"kind\":\"kernel\",\"node\":\"a~b\",\"message\":\"x\"}");
	ff_intake_destroy(root);
	ff_intake_destroy(user);
	ck_assert_uint_eq(runs.nruns, 0);
	ck_assert_uint_eq(runs.nnodes, 3);
	ck_assert_uint_eq(runs.counts[FF_COUNT_bad_names], 1);
	ck_assert(runs.nodes[0]->job->streams[0]->origin.trusted);
	ck_assert(!runs.nodes[1]->job->streams[0]->origin.trusted);
	ck_assert_str_eq(runs.nodes[1]->job->facts.job, "~1000");
	ck_assert_str_eq(runs.nodes[2]->job->facts.run, "");
	ck_assert_ptr_eq(ff_runs_number(&runs, FF_NODE_NUMBER + 1), runs.nodes[1]);
	ck_assert_ptr_null(ff_runs_number(&runs, FF_NODE_NUMBER + 3));
	ck_assert_ptr_null(ff_runs_find(&runs, FF_STR("a"), NULL));
}
END_TEST

/* Whoever speaks without being anybody (-1, -2) is not believed for that; restored as it was. */
START_TEST(test_nobody)
{
	for (int64_t uid = -3; uid <= 0; uid++) {
		struct ff_intake *in = open_intake(false, uid);
		say(in, T, "{\"kind\":\"kernel\",\"node\":\"a\",\"message\":\"x\"}");
		ff_intake_destroy(in);
		struct ff_run *node = runs.nodes[runs.nnodes - 1];
		ck_assert(!ff_node_is_trusted(node));
		ck_assert(!node->job->streams[0]->origin.trusted);
		struct ff_runs other;
		ff_runs_init(&other, catalog);
		struct ff_run *back = ff_nodes_restore(&other, ff_str_z(node->job->facts.job),
			ff_str_z(node->job->facts.run));
		ck_assert_ptr_nonnull(back);
		ck_assert(!ff_node_is_trusted(back));
		ff_runs_finish(&other);
	}
	ck_assert_uint_eq(runs.nnodes, 4);
	ck_assert_ptr_null(ff_nodes_restore(&runs, FF_STR("4711"), FF_STR("0")));
	ck_assert_ptr_null(ff_nodes_restore(&runs, FF_STR("~x"), FF_STR("a")));
	ck_assert(ff_node_is_trusted(ff_nodes_restore(&runs, FF_STR(""), FF_STR("b"))));
}
END_TEST

/* ---- names of a host */

static const struct {
	const char *run, *log;
	bool same;
} names[] = {
	{"gpu07", "gpu07", true},
	{"gpu07", "gpu07.example.org", true},
	{"gpu07.example.org", "gpu07", true},
	{"gpu07.a.org", "gpu07.b.org", false},
	{"gpu07", "gpu070", false},
	{"gpu07", "gpu0", false},
	{"gpu07", "", false},
};

START_TEST(test_names)
{
	feed_job("j", names[_i].run, true);
	feed_kernel(names[_i].log, 150, GONE);
	(void)ff_runs_resolve(&runs, FF_STR("other"), NULL, NULL, FF_RUN_FEED, T,
		&(struct ff_run *){NULL}, NULL); /* so that it is not the only one */
	ck_assert_uint_eq(joined("j"), names[_i].same);
	if (names[_i].same) {
		ck_assert_str_eq(view("j")->origin.node, names[_i].run);
	}
}
END_TEST

/* A node that only the job-start tells. */
START_TEST(test_told_node)
{
	struct ff_intake *in = open_intake(true, 0);
	say(in, T, "{\"event\":\"job-start\",\"job\":\"j\",\"nodes\":[\"b\",\"c\"],%s}", at(100));
	say(in, T, "{\"job\":\"j\",\"rank\":0,%s,\"message\":\"x\"}", at(200));
	ff_intake_end(in, T);
	ff_intake_destroy(in);
	feed_kernel("c", 150, GONE);
	feed_kernel("d", 150, GONE);
	ck_assert_uint_eq(joined("j"), 1);
	ck_assert_str_eq(view("j")->key, "c/kern");
}
END_TEST

/* ---- time */

static const struct {
	double seconds;
	bool ended, fits;
} times[] = {
	{89, true, false},
	{91, true, true},
	{150, true, true},
	{499, true, true},
	{501, true, false},
	{89, false, false},
	{3799, false, true},
	{3801, false, false},
};

START_TEST(test_time)
{
	feed_job("j", "a", times[_i].ended);
	feed_kernel("a", times[_i].seconds, GONE);
	ck_assert_uint_eq(joined("j"), times[_i].fits);
}
END_TEST

/* Two clocks: nothing tells when it was, so nothing is joined, but by a proof. */
START_TEST(test_other_clock)
{
	struct ff_intake *in = open_intake(true, 0);
	feed_job("other", "b", true);
	say(in, T, "{\"job\":\"4711\",\"rank\":0,\"node\":\"a\",\"message\":\"x\"}");
	say(in, T,
		"{\"kind\":\"kernel\",\"node\":\"a\",\"timestamp\":\"2026-01-01T00:00:00Z\","
		"\"message\":\"" GONE "\"}");
	ff_intake_end(in, T);
	ff_intake_destroy(in);
	ck_assert_uint_eq(joined("4711"), 0);
	in = open_intake(true, 0);
	say(in, T, "{\"event\":\"exit\",\"job\":\"4711\",\"rank\":0,\"node\":\"a\",\"pid\":41}");
	ff_intake_destroy(in);
	in = open_intake(true, 0);
	say(in, T,
		"{\"kind\":\"kernel\",\"node\":\"a\",\"timestamp\":\"2026-01-01T00:00:01Z\","
		"\"message\":\"" KILL(41, "/x") "\"}");
	ff_intake_destroy(in);
	ck_assert_uint_eq(joined("4711"), 0);
	feed_kernel("a", 1, KILL(9, "/slurm/uid_0/job_4711/step_0"));
	ck_assert_uint_eq(joined("4711"), 1);
}
END_TEST

/* ---- several runs */

START_TEST(test_not_attributed)
{
	feed_job("1", "a", true);
	feed_job("2", "a", true);
	feed_kernel("a", 150, GONE);
	for (int i = 1; i <= 2; i++) {
		const char *job = i == 1 ? "1" : "2";
		ck_assert_uint_eq(joined(job), 1);
		ck_assert_int_eq(ff_event_int(&view(job)->events[0], FF_F_jobs, 0), 2);
		struct ff_verdict *v = judge(job);
		ck_assert_int_ne(v->confidence, FF_CERTAIN);
		ck_assert_int_ne(v->confidence, FF_LIKELY);
		ck_assert_uint_eq(v->nwhy_not, 1);
		ck_assert_int_eq(v->why_not[0].rank, FF_UNKNOWN);
		ck_assert_str_eq(v->why_not[0].text,
			"not attributed: gpu-xid-79 (a/kern@0) fits 2 jobs on a");
		ck_assert_uint_eq(v->nevents, 1);
		ff_verdict_destroy(v);
	}
	ck_assert(!ff_nodes_join(&runs, run_of("1"), FF_TIME_NONE));
}
END_TEST

/* The same line where there is one run: then it is certain. */
START_TEST(test_attributed)
{
	feed_job("1", "a", true);
	feed_kernel("a", 150, GONE);
	struct ff_verdict *v = judge("1");
	ck_assert_int_eq(v->kind, FF_VERDICT_NODE);
	ck_assert_int_eq(v->confidence, FF_CERTAIN);
	ck_assert_str_eq(v->fault, "gpu-xid-79");
	ck_assert_uint_eq(v->nwhy_not, 0);
	ff_verdict_destroy(v);
}
END_TEST

/* Another run turns up later, of the same node and time: what was certain is so no more. */
START_TEST(test_second_run_late)
{
	feed_job("1", "a", true);
	feed_kernel("a", 150, GONE);
	ck_assert_int_eq(ff_event_int(&view("1")->events[0], FF_F_jobs, 0), 0);
	feed_job("2", "a", true);
	ck_assert(ff_nodes_join(&runs, run_of("1"), FF_TIME_NONE));
	ck_assert_int_eq(ff_event_int(&view("1")->events[0], FF_F_jobs, 0), 2);
	ck_assert(view("1")->events[0].dirty);
}
END_TEST

static const struct {
	const char *text;
	bool first, second;
} proofs[] = {
	{KILL(77, "/x"), true, true},
	{KILL(41, "/x"), true, false},
	{KILL(42, "/x"), false, true},
	{KILL(77, "/slurm/uid_0/job_2/step_0"), false, true},
	{KILL(77, "/slurm/uid_0/job_3/step_0"), false, false},
};

START_TEST(test_proofs)
{
	feed_job("1", "a", true);
	feed_job("2", "a", true);
	feed_pid("1", 41);
	feed_pid("2", 42);
	feed_kernel("a", 150, proofs[_i].text);
	ck_assert_uint_eq(joined("1"), proofs[_i].first);
	ck_assert_uint_eq(joined("2"), proofs[_i].second);
}
END_TEST

/* Shortly after one run has ended, in the time of the next one: it is that one's. */
START_TEST(test_in_beats_near)
{
	struct ff_intake *in = open_intake(true, 0);
	feed_job("1", "a", true);
	say(in, T, "{\"job\":\"2\",\"rank\":0,\"node\":\"a\",%s,\"message\":\"x\"}", at(220));
	say(in, T, "{\"job\":\"2\",\"rank\":0,\"node\":\"a\",%s,\"message\":\"x\"}", at(300));
	ff_intake_end(in, T);
	ff_intake_destroy(in);
	feed_kernel("a", 230, GONE);
	ck_assert_uint_eq(joined("1"), 0);
	ck_assert_uint_eq(joined("2"), 1);
}
END_TEST

/* A controller's lines are about the jobs and the nodes that they name. */
static const struct {
	const char *text;
	bool fits;
} controller[] = {
	{"error: Nodes a not responding, setting DOWN", true},
	{"error: Nodes b not responding, setting DOWN", false},
	{"Killing JobId=1 on failed node b", true},
	{"Killing JobId=2 on failed node a", false},
	{"Time limit exhausted for JobId=1", true},
	{"Time limit exhausted for JobId=11", false},
	{"[2026-01-01T00:02:30.000] [1.0] error: Nodes b not responding, setting DOWN", true},
	{"[2026-01-01T00:02:30.000] [2.batch] error: Nodes a not responding, setting DOWN", false},
	{"[1.5 s] error: Nodes b not responding, setting DOWN", false},
};

START_TEST(test_controller)
{
	struct ff_intake *in = open_intake(true, 0);
	feed_job("1", "a", true);
	say(in, T,
		"{\"kind\":\"scheduler\",\"node\":\"head\",\"stream\":\"ctl\",%s,"
		"\"message\":\"%s\"}",
		at(150), controller[_i].text);
	ff_intake_destroy(in);
	ck_assert_uint_eq(joined("1"), controller[_i].fits);
}
END_TEST

/* ---- who speaks */

START_TEST(test_owners)
{
	struct ff_intake *in = open_intake(false, 1);
	runs.owner = owner_of;
	feed_job("1", "a", true);
	feed_job("2", "a", true);
	say(in, T,
		"{\"kind\":\"kernel\",\"node\":\"a\",\"stream\":\"kern\",%s,"
		"\"message\":\"" GONE "\"}",
		at(150));
	ff_intake_destroy(in);
	ck_assert_uint_eq(joined("2"), 0);
	ck_assert_uint_eq(joined("1"), 1);
	ck_assert(!view("1")->origin.trusted);
	struct ff_verdict *v = judge("1");
	ck_assert_int_eq(v->confidence, FF_LIKELY);
	ff_verdict_destroy(v);
}
END_TEST

/* What a stranger's run claims takes no line away; among one's own runs the better fit has it. */
static const struct {
	const char *line;
	double seconds;
	size_t victim, jobs; /* events of it, and their field */
	size_t eve;
} claims[] = {
	{KILL(41, "/x"), 150, 1, 2, 1},                              /* its pid */
	{"NVRM: Xid (PCI:0000:1b:00): 79, gone", 230, 1, 2, 1},      /* its time */
	{KILL(41, "/slurm/uid_0/job_1/step_0"), 150, 1, 0, 0},       /* its id and pid */
	{KILL(41, "/slurm/uid_0/job_2-eve/step_0"), 150, 0, 0, 0},   /* nobody's */
};

START_TEST(test_strangers_claims)
{
	struct ff_intake *in = open_intake(true, 0);
	bool strangers = _i < (int)N(claims);
	size_t i = (size_t)_i % N(claims);
	runs.owner = strangers ? owner_of : NULL;
	feed_job("1", "a", true);
	feed_job("2-eve", "a", false);
	say(in, T, "{\"job\":\"2-eve\",\"rank\":0,\"node\":\"a\",%s,\"message\":\"x\"}", at(300));
	say(in, T,
		"{\"job\":\"2-eve\",\"kind\":\"kernel\",\"node\":\"a\",%s,\"message\":\"" KILL(
			99, "/slurm/uid_0/job_1/step_0") "\"}",
		at(140));
	ff_intake_destroy(in);
	feed_pid("2-eve", 41);
	feed_kernel("a", claims[i].seconds, claims[i].line);
	if (!strangers) {
		ck_assert_uint_eq(joined("1"), i == 2); /* as good as the other's */
		return;
	}
	ck_assert_uint_eq(joined("1"), claims[i].victim);
	ck_assert_uint_eq(joined("2-eve"), claims[i].eve);
	if (claims[i].victim) {
		ck_assert_int_eq(ff_event_int(&view("1")->events[0], FF_F_jobs, 0),
			(int64_t)claims[i].jobs);
	}
}
END_TEST

/* ---- a journal */

static const char *const journals[] = {
	/* export, as journalctl -o export prints it; the message of the second is sized */
	"__CURSOR=s=1\n__REALTIME_TIMESTAMP=1767225750000000\n_TRANSPORT=kernel\n"
	"_HOSTNAME=a.b.org\nPRIORITY=3\nMESSAGE=" GONE "\n\n"
	"__CURSOR=s=2\n__REALTIME_TIMESTAMP=1767225751000000\n_TRANSPORT=syslog\n"
	"SYSLOG_IDENTIFIER=slurmd\n_HOSTNAME=a\n_SYSTEMD_UNIT=user@1000.service\nMESSAGE=forged\n\n"
	"__CURSOR=s=3\n__REALTIME_TIMESTAMP=1767225752000000\n_HOSTNAME=a\n"
	"_SYSTEMD_UNIT=slurmd.service\nMESSAGE=of slurmd\n",
	/* the same as -o json */
	"{\"__REALTIME_TIMESTAMP\":\"1767225750000000\",\"_TRANSPORT\":\"kernel\","
	"\"_HOSTNAME\":\"a.b.org\",\"MESSAGE\":\"" GONE "\"}\n"
	"{\"__REALTIME_TIMESTAMP\":\"1767225751000000\",\"_TRANSPORT\":\"syslog\","
	"\"SYSLOG_IDENTIFIER\":\"slurmd\",\"_HOSTNAME\":\"a\",\"MESSAGE\":\"forged\"}\n"
	"{\"MESSAGE\":\"of slurmd\",\"_HOSTNAME\":\"a\",\"_SYSTEMD_UNIT\":\"slurmd.service\","
	"\"__REALTIME_TIMESTAMP\":\"1767225752000000\"}\n",
};

/* On a listener, cut anywhere: the kernel's and the scheduler's entries are their node's. */
START_TEST(test_journal)
{
	const char *p = journals[_i % 2];
	size_t n = strlen(p), step = _i < 2 ? n : _i < 4 ? 1 : 7;
	struct ff_intake *in = open_intake(true, 0);
	for (size_t i = 0; i < n; i += step) {
		ff_intake_feed(in, p + i, n - i < step ? n - i : step, T);
	}
	ff_intake_end(in, T);
	ck_assert_int_eq(ff_intake_dialect(in), FF_DIALECT_JOURNAL);
	ff_intake_destroy(in);
	ck_assert_uint_eq(runs.nruns, 0);
	ck_assert_uint_eq(runs.nnodes, 2);
	ck_assert_uint_eq(runs.counts[FF_COUNT_journal_others], 1);
	const struct ff_stream *kernel = runs.nodes[0]->job->streams[0];
	const struct ff_stream *slurmd = runs.nodes[1]->job->streams[0];
	ck_assert_str_eq(kernel->key, "a.b.org/journal/kernel");
	ck_assert_int_eq(kernel->origin.kind, FF_STREAM_KERNEL);
	ck_assert_uint_eq(kernel->fed, strlen(GONE) + 1);
	ck_assert_int_eq(kernel->events[0].stamp.captured, T + 150 * FF_SECOND);
	ck_assert_str_eq(slurmd->key, "a/journal/slurmd");
	ck_assert_int_eq(slurmd->origin.kind, FF_STREAM_SCHEDULER);
}
END_TEST

/* ---- late, and forgotten */

START_TEST(test_late)
{
	feed_job("1", "a", true);
	ck_assert(!ff_nodes_join(&runs, run_of("1"), FF_TIME_NONE));
	feed_kernel("a", 150, "nothing of note");
	ck_assert(!ff_nodes_join(&runs, run_of("1"), FF_TIME_NONE));
	ck_assert(ff_node_has_news(runs.nodes[0]));
	feed_kernel("a", 151, GONE);
	ck_assert(ff_node_has_news(runs.nodes[0]));
	ck_assert(!ff_node_has_news(runs.nodes[0]));
	ck_assert(ff_nodes_join(&runs, run_of("1"), FF_TIME_NONE));
	ck_assert(!ff_nodes_join(&runs, run_of("1"), FF_TIME_NONE));
}
END_TEST

/* What the node has forgotten stays with the run. */
START_TEST(test_expire)
{
	const ff_usec hour = 3600 * FF_SECOND;
	feed_job("1", "a", true);
	feed_kernel("a", 150, GONE);
	feed_kernel("a", 151, "x");
	ck_assert_uint_eq(joined("1"), 1);
	struct ff_run *node = runs.nodes[0];
	ck_assert(!ff_node_expire(&runs, node, T + hour));
	ck_assert_uint_eq(runs.node_events, 1);
	feed_kernel("a", 7200, GONE);
	feed_kernel("a", 7201, "x");
	ck_assert(!ff_node_expire(&runs, node, T + FF_NODE_HOURS * hour));
	ck_assert(ff_node_expire(&runs, node, T + (FF_NODE_HOURS + 1) * hour));
	ck_assert_uint_eq(node->job->counts[FF_COUNT_node_events_expired], 1);
	ck_assert_uint_eq(node->job->streams[0]->ndropped, 1);
	ck_assert_uint_eq(runs.node_events, 1);
	ck_assert_uint_eq(joined("1"), 1);
	ck_assert_int_eq(view("1")->events[0].offset, 0);
}
END_TEST

/* At the cap the oldest goes; repeats of one minute are one. */
START_TEST(test_cap)
{
	unsigned most = FF_NODE_EVENTS + (unsigned)_i - 1;
	for (unsigned i = 0; i < most; i++) {
		feed_kernel("a", i * 100, GONE);
		feed_kernel("a", i * 100 + 30, GONE);
	}
	feed_kernel("a", most * 100, "x");
	const struct ff_stream *s = runs.nodes[0]->job->streams[0];
	ck_assert_uint_eq(s->nevents, most < FF_NODE_EVENTS ? most : FF_NODE_EVENTS);
	ck_assert_uint_eq(runs.nodes[0]->job->counts[FF_COUNT_node_events_dropped],
		most < FF_NODE_EVENTS ? 0 : most - FF_NODE_EVENTS);
	ck_assert_uint_eq(s->events[s->nevents - 1].count, 2);
	ck_assert_int_eq(s->events[s->nevents - 1].stamp.arrived,
		T + (ff_usec)(most - 1) * 100 * FF_SECOND);
}
END_TEST

/* What a controller says of several jobs in one moment are several events. */
START_TEST(test_jobs_apart)
{
	struct ff_intake *in = open_intake(true, 0);
	for (int i = 0; i < 3; i++) {
		feed_job(i == 0 ? "10" : i == 1 ? "11" : "12", "a", true);
		say(in, T,
			"{\"kind\":\"scheduler\",\"node\":\"head\",\"stream\":\"ctl\",%s,"
			"\"message\":\"Time limit exhausted for JobId=%d\"}",
			at(150), 10 + i % 2);
	}
	say(in, T,
		"{\"kind\":\"scheduler\",\"node\":\"head\",\"stream\":\"ctl\","
		"\"message\":\"x\"}");
	ff_intake_destroy(in);
	ck_assert_uint_eq(runs.nodes[0]->job->streams[0]->nevents, 3);
	ck_assert_uint_eq(joined("10"), 1);
	ck_assert_uint_eq(joined("11"), 1);
	ck_assert_uint_eq(joined("12"), 0);
}
END_TEST

START_TEST(test_nodes_refused)
{
	struct ff_intake *in = open_intake(true, 0);
	for (unsigned i = 0; i < FF_NODE_LOGS_MAX + 1; i++) {
		say(in, T, "{\"kind\":\"kernel\",\"node\":\"n%u\",\"message\":\"x\"}", i);
	}
	ff_intake_destroy(in);
	ck_assert_uint_eq(runs.nnodes, FF_NODE_LOGS_MAX);
	ck_assert_uint_eq(runs.counts[FF_COUNT_nodes_refused], 1);
}
END_TEST

static bool on_one(void *ud, struct ff_run *run)
{
	*(size_t *)ud += run != NULL;
	return false;
}

/* A run that goes between two turns takes no other's turn with it. */
START_TEST(test_news_in_turns)
{
	static const char *const jobs[] = {"1", "2", "3", "4"};
	size_t gone = (size_t)_i, changed = 0, turns = 0;
	for (size_t i = 0; i < N(jobs); i++) {
		feed_job(jobs[i], "a", true);
	}
	feed_kernel("a", 150, GONE);
	uint32_t next = ff_nodes_news(&runs, 0, runs.nodes, 1, FF_TIME_NONE, on_one, &changed);
	next = ff_nodes_news(&runs, next, runs.nodes, 1, FF_TIME_NONE, on_one, &changed);
	ff_runs_remove(&runs, run_of(jobs[gone]));
	for (turns = 0; next != UINT32_MAX && turns < 10; turns++) {
		next = ff_nodes_news(&runs, next, runs.nodes, 1, FF_TIME_NONE, on_one, &changed);
	}
	ck_assert_uint_lt(turns, 10);
	ck_assert_uint_eq(changed, gone < 2 ? 4 : 3);
}
END_TEST

/* One user's words fill neither the places nor the room of what root says. */
START_TEST(test_user_takes_no_place)
{
	struct ff_intake *eve = open_intake(false, 7);
	for (unsigned i = 0; i < FF_NODE_LOGS_MAX + 1; i++) {
		say(eve, T, "{\"kind\":\"kernel\",\"node\":\"n%u\",\"message\":\"x\"}", i);
	}
	ff_intake_destroy(eve);
	ck_assert_uint_eq(runs.nnodes, FF_NODE_LOGS_USER);
	ck_assert_uint_eq(runs.counts[FF_COUNT_nodes_refused],
		FF_NODE_LOGS_MAX + 1 - FF_NODE_LOGS_USER);
	feed_kernel("a", 0, GONE);
	ck_assert_uint_eq(runs.nnodes, FF_NODE_LOGS_USER + 1);
	ck_assert(ff_node_is_trusted(runs.nodes[FF_NODE_LOGS_USER]));
}
END_TEST

/* Many runs on a node make its lines shared, and no join endless. */
START_TEST(test_fits_cut)
{
	const unsigned each = 60, most = 600;
	char name[24];
	for (unsigned i = 0; i < FF_NODE_FITS / most + 2; i++) {
		(void)snprintf(name, sizeof name, "%u", i);
		feed_job(name, "a", true);
	}
	struct ff_intake *in = open_intake(true, 0);
	for (unsigned i = 0; i < most; i++) {
		say(in, T,
			"{\"kind\":\"kernel\",\"node\":\"a\",\"stream\":\"kern-%u\",%s,"
			"\"message\":\"NVRM: Xid (PCI:0000:%02x:00): 79, GPU has fallen off\"}",
			i / each, at(101 + i % each * 1.5), 1 + i % each);
	}
	ff_intake_destroy(in);
	ck_assert_ptr_nonnull(view("1"));
	ck_assert_uint_gt(run_of("1")->job->counts[FF_COUNT_node_fits_cut], 0);
	ck_assert_uint_lt(run_of("1")->job->counts[FF_COUNT_node_fits_cut], most / each);
}
END_TEST

/* ---- a view is a stream as any other */

/* Repeats over the whole run are one event, as if the lines had come with the job. */
START_TEST(test_view_folds)
{
	feed_job("1", "a", true);
	for (int i = 0; i < 3; i++) {
		feed_kernel("a", 110 + i * 30, GONE);
	}
	feed_kernel("a", 195, GONE);
	const struct ff_stream *s = view("1");
	ck_assert_uint_eq(s->nevents, 1);
	ck_assert_uint_eq(s->events[0].count, 4);
	ck_assert_int_eq(s->events[0].last.stamp.arrived, T + 195 * FF_SECOND);
	ck_assert_uint_eq(s->nlanes, 1);
	ck_assert_uint_eq(s->lanes[0]->lines, 4);
	ck_assert_int_eq(s->lanes[0]->last.arrived, T + 195 * FF_SECOND);
}
END_TEST

/* Its digest gives the same verdict in a job that has never heard of nodes. */
START_TEST(test_view_exported)
{
	struct ff_buf row = {0}, mine = {0}, theirs = {0};
	feed_job("1", "a", true);
	feed_kernel("a", 150, GONE);
	struct ff_verdict *v = judge("1");
	ff_report_json(v, &mine);
	ff_verdict_destroy(v);
	struct ff_job *job = run_of("1")->job;
	struct ff_job *copy = ff_job_create(catalog, FF_STR("1"), FF_STR("0"));
	struct ff_digest d = ff_job_digest(job);
	(void)ff_facts_tell(&copy->facts, "job@start", "world_size", FF_STR("2"), FF_TIME_NONE,
		FF_CLOCK_NONE);
	(void)ff_facts_tell(&copy->facts, "job@end", "exit_code", FF_STR("1"), T + 200 * FF_SECOND,
		FF_CLOCK_ARRIVED);
	for (size_t i = 0; i < job->nstreams; i++) {
		struct ff_origin o = job->streams[i]->origin;
		o.joined = false;
		struct ff_stream *s = ff_job_stream(copy, &o);
		ff_buf_clear(&row);
		ff_row_put(job->streams[i], &d, &row);
		ck_assert(ff_row_take(s, ff_buf_str(&row)));
		s->state = FF_STREAM_ENDED;
	}
	v = ff_job_judge(copy, &(struct ff_ask){.now_us = FF_TIME_NONE, .attempt = FF_UNKNOWN,
		.world = FF_UNKNOWN});
	ff_report_json(v, &theirs);
	ff_verdict_destroy(v);
	ck_assert_str_eq(mine.p, theirs.p);
	ff_job_destroy(copy);
	ff_buf_finish(&row);
	ff_buf_finish(&mine);
	ff_buf_finish(&theirs);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("nodes");
	TCase *t = tcase_create("nodes");
	tcase_add_checked_fixture(t, setup, teardown);
	tcase_add_test(t, test_of_no_job);
	tcase_add_test(t, test_nobody);
	tcase_add_loop_test(t, test_names, 0, N(names));
	tcase_add_test(t, test_told_node);
	tcase_add_loop_test(t, test_time, 0, N(times));
	tcase_add_test(t, test_other_clock);
	tcase_add_test(t, test_not_attributed);
	tcase_add_test(t, test_attributed);
	tcase_add_test(t, test_second_run_late);
	tcase_add_loop_test(t, test_proofs, 0, N(proofs));
	tcase_add_test(t, test_in_beats_near);
	tcase_add_loop_test(t, test_controller, 0, N(controller));
	tcase_add_test(t, test_owners);
	tcase_add_loop_test(t, test_strangers_claims, 0, 2 * (int)N(claims));
	tcase_add_loop_test(t, test_journal, 0, 6);
	tcase_add_test(t, test_late);
	tcase_add_test(t, test_expire);
	tcase_add_loop_test(t, test_cap, 0, 3);
	tcase_add_test(t, test_jobs_apart);
	tcase_add_test(t, test_nodes_refused);
	tcase_add_loop_test(t, test_news_in_turns, 0, 4);
	tcase_add_test(t, test_user_takes_no_place);
	tcase_add_test(t, test_fits_cut);
	tcase_add_test(t, test_view_folds);
	tcase_add_test(t, test_view_exported);
	tcase_set_timeout(t, 60);
	suite_add_tcase(suite, t);
	SRunner *runner = srunner_create(suite);
	srunner_run_all(runner, CK_NORMAL);
	int failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed != 0;
}
