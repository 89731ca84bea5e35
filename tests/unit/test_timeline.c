#include "world.h"

/* Two nodes of two ranks under torchrun, told apart by files. */
static const struct world_stream two_nodes[] = {
	{"a.agent", FF_STREAM_AGENT, FF_UNKNOWN, "node-a", FF_UNKNOWN, FF_UNKNOWN},
	{"a.0", FF_STREAM_RANK, 0, "node-a", 0, FF_UNKNOWN},
	{"a.1", FF_STREAM_RANK, 1, "node-a", 1, FF_UNKNOWN},
	{"b.agent", FF_STREAM_AGENT, FF_UNKNOWN, "node-b", FF_UNKNOWN, FF_UNKNOWN},
	{"b.2", FF_STREAM_RANK, 2, "node-b", 0, FF_UNKNOWN},
	{"b.3", FF_STREAM_RANK, 3, "node-b", 1, FF_UNKNOWN},
};

static const struct world_stream one_console[] = {
	{"console", FF_STREAM_MIXED, FF_UNKNOWN, "node-a", FF_UNKNOWN, FF_UNKNOWN},
};

static const struct ff_ask offline = {
	.offline = true, .now_us = FF_TIME_NONE, .attempt = FF_UNKNOWN, .world = FF_UNKNOWN};

static struct ff_timeline build_as(struct world *w, const struct ff_ask *ask)
{
	struct ff_timeline t;
	struct ff_digest d = {w->catalog, w->matcher, w->counts};
	ff_timeline_init(&t, &w->facts, w->streams, w->n, &d, ask);
	return t;
}

static struct ff_timeline build(struct world *w)
{
	return build_as(w, &offline);
}

static const struct ff_sighting *find(const struct ff_timeline *t, const char *id)
{
	for (size_t i = 0; i < t->nall; i++) {
		if (!strcmp(t->all[i].id, id)) {
			return &t->all[i];
		}
	}
	ck_abort_msg("no event %s", id);
	return NULL;
}

/* ---- whose event */

static const struct {
	const char *what;
	int world;
	const char *launcher;
	struct world_stream stream;
	struct world_event event;
	int32_t rank;
} whose[] = {
	{"declared rank", 4, "torchrun", {"x", FF_STREAM_RANK, 3, NULL, FF_UNKNOWN, FF_UNKNOWN},
		{"x", 0, "index-error", "e", NULL, FF_TAG_NONE, 0, 0}, 3},
	{"global tag", 4, "torchrun",
		{"x", FF_STREAM_MIXED, FF_UNKNOWN, NULL, FF_UNKNOWN, FF_UNKNOWN},
		{"x", 0, "index-error", "e", NULL, FF_TAG_GLOBAL, 2, 0}, 2},
	{"a global tag at or above the world is nobody", 4, "torchrun",
		{"x", FF_STREAM_MIXED, FF_UNKNOWN, NULL, FF_UNKNOWN, FF_UNKNOWN},
		{"x", 0, "index-error", "e", NULL, FF_TAG_GLOBAL, 4, 0}, FF_UNKNOWN},
	{"local tag on the only node", 4, "torchrun",
		{"x", FF_STREAM_MIXED, FF_UNKNOWN, NULL, FF_UNKNOWN, FF_UNKNOWN},
		{"x", 0, "index-error", "e", NULL, FF_TAG_LOCAL, 2, 0}, 2},
	{"srun's task", 4, "srun", {"x", FF_STREAM_MIXED, FF_UNKNOWN, NULL, FF_UNKNOWN, FF_UNKNOWN},
		{"x", 0, "index-error", "e", NULL, FF_TAG_TASK, 2, 0}, 2},
	{"srun's task is a node where it starts torchrun", 4, "torchrun",
		{"x", FF_STREAM_MIXED, FF_UNKNOWN, NULL, FF_UNKNOWN, FF_UNKNOWN},
		{"x", 0, "index-error", "e", NULL, FF_TAG_TASK, 2, 0}, FF_UNKNOWN},
	{"group rank", 4, "torchrun",
		{"x", FF_STREAM_MIXED, FF_UNKNOWN, NULL, FF_UNKNOWN, FF_UNKNOWN},
		{"x", 0, "index-error", "e", NULL, FF_TAG_GROUP, 2, 0}, FF_UNKNOWN},
	{"nothing printed", 4, "torchrun",
		{"x", FF_STREAM_MIXED, FF_UNKNOWN, NULL, FF_UNKNOWN, FF_UNKNOWN},
		{"x", 0, "index-error", "e", NULL, FF_TAG_NONE, 0, 0}, FF_UNKNOWN},
	{"a world of one", 1, "python",
		{"x", FF_STREAM_MIXED, FF_UNKNOWN, NULL, FF_UNKNOWN, FF_UNKNOWN},
		{"x", 0, "index-error", "e", NULL, FF_TAG_NONE, 0, 0}, 0},
	{"one stream that says nothing of ranks", 0, NULL,
		{"x", FF_STREAM_MIXED, FF_UNKNOWN, NULL, FF_UNKNOWN, FF_UNKNOWN},
		{"x", 0, "index-error", "e", NULL, FF_TAG_NONE, 0, 0}, 0},
	{"the text names the rank that failed", 4, "torchrun",
		{"x", FF_STREAM_RANK, 0, NULL, FF_UNKNOWN, FF_UNKNOWN},
		{"x", 0, "checkpoint-corrupt", "e", "failed_ranks=3", FF_TAG_NONE, 0, 0}, 3},
	{"a row of a table", 4, "torchrun",
		{"x", FF_STREAM_AGENT, FF_UNKNOWN, NULL, FF_UNKNOWN, FF_UNKNOWN},
		{"x", 0, "process-exit", "e", "rank=2;local_rank=2;exit_code=1;pid=9", FF_TAG_NONE,
			0, 0},
		2},
	{"srun's line about one task", 4, "srun",
		{"x", FF_STREAM_MIXED, FF_UNKNOWN, NULL, FF_UNKNOWN, FF_UNKNOWN},
		{"x", 0, "process-exit", "e", "tasks=2;exit_code=1;node=n2", FF_TAG_NONE, 0, 0}, 2},
};

START_TEST(event_belongs_to)
{
	struct world w;
	world_init(&w, whose[_i].world, whose[_i].launcher);
	world_streams(&w, &whose[_i].stream, 1);
	world_event(&w, &whose[_i].event);
	struct ff_timeline t = build(&w);
	ck_assert_msg(
		t.all[0].rank == whose[_i].rank, "%s: rank %d", whose[_i].what, (int)t.all[0].rank);
	ff_timeline_finish(&t);
	world_finish(&w);
}
END_TEST

START_TEST(local_ranks_go_through_the_nodes_map)
{
	static const struct world_event events[] = {
		{"b.agent", 0, "process-exit", "failed", "local_rank=1;exit_code=-9;pid=77", 0, 0,
			0},
		{"b.agent", 0, "agent-closing", "closing 76", "pid=76;signal=SIGTERM", 0, 0, 0},
		{"b.agent", 1, "process-exit", "row", "rank=2;local_rank=0;exit_code=-15;pid=76", 0,
			0, 0},
	};
	struct world w;
	world_init(&w, 4, "torchrun");
	world_streams(&w, two_nodes, N(two_nodes));
	world_events(&w, events, N(events));
	struct ff_timeline t = build(&w);
	ck_assert_int_eq(find(&t, "node-b/b.agent@0")->rank, 3);
	ck_assert_int_eq(find(&t, "node-b/b.agent@100")->rank, 2); /* by the pid of the row */
	ck_assert_int_eq(ff_timeline_rank(&t, 3)->exit_code, -9);
	ck_assert(!ff_timeline_rank(&t, 3)->ended_by_agent);
	ck_assert(ff_timeline_rank(&t, 2)->ended_by_agent);
	ck_assert_str_eq(ff_timeline_rank(&t, 2)->node, "node-b");
	ck_assert_int_eq((int)ff_timeline_rank(&t, 2)->pid, 76);
	ff_timeline_finish(&t);
	world_finish(&w);
}
END_TEST

START_TEST(a_pid_of_two_ranks_is_nobodys)
{
	static const struct world_event events[] = {
		{"console", 0, "rank-map", "m", "rank=0;pid=25", 0, 0, 0},
		{"console", 0, "rank-map", "m2", "rank=2;pid=25", 0, 0, 0},
		{"console", 0, "rank-map", "m3", "rank=1;pid=26", 0, 0, 0},
		{"console", 9, "agent-closing", "c", "pid=25;signal=SIGTERM", 0, 0, 0},
		{"console", 9, "agent-closing", "d", "pid=26;signal=SIGTERM", 0, 0, 0},
	};
	struct world w;
	world_init(&w, 4, "torchrun");
	world_streams(&w, one_console, 1);
	world_events(&w, events, N(events));
	struct ff_timeline t = build(&w);
	ck_assert_int_eq(find(&t, "node-a/console@300")->rank, FF_UNKNOWN);
	ck_assert_int_eq(find(&t, "node-a/console@400")->rank, 1);
	ff_timeline_finish(&t);
	world_finish(&w);
}
END_TEST

#define TIMED_OUT(n) \
	{ \
		"x", 0, "nccl-timeout", "timeout", "pg_rank=" n, FF_TAG_NONE, 0, 0 \
	}

/* [Rank N] of untagged lines: rank is whose the first event is. */
static const struct {
	const char *what;
	struct world_event events[4];
	int32_t rank;
} groups[] = {
	{"the last member of the world: the group is the world", {TIMED_OUT("1"), TIMED_OUT("3")},
		1},
	{"all members but the last", {TIMED_OUT("1"), TIMED_OUT("0"), TIMED_OUT("2")}, 1},
	{"a group of two of four", {TIMED_OUT("1"), TIMED_OUT("0")}, FF_UNKNOWN},
	{"a member that the world does not have", {TIMED_OUT("1"), TIMED_OUT("3"), TIMED_OUT("4")},
		FF_UNKNOWN},
	{"a tag that counts otherwise",
		{TIMED_OUT("1"), TIMED_OUT("3"),
			{"x", 0, "nccl-timeout", "timeout", "pg_rank=0", FF_TAG_GLOBAL, 2, 0}},
		FF_UNKNOWN},
	{"the default group says so",
		{{"x", 0, "nccl-timeout", "timeout", "pg_rank=1;pg=0(default_pg)", 0, 0, 0}}, 1},
	{"another group says so",
		{{"x", 0, "nccl-timeout", "timeout", "pg_rank=1;pg=3(mesh_dp)", 0, 0, 0},
			TIMED_OUT("3")},
		FF_UNKNOWN},
	{"a communicator of the whole job",
		{{"x", 0, "rank-map", "Init COMPLETE", "pg_rank=2;nranks=4;busid=c1000", 0, 0, 0}},
		2},
	{"a communicator of two",
		{{"x", 0, "rank-map", "Init COMPLETE", "pg_rank=1;nranks=2;busid=c1000", 0, 0, 0}},
		FF_UNKNOWN},
};

/* Debug reports list ranks of a group without its name. world 8; ranks: whom the first one names;
 * "": nobody. */
#define SAYS(sig, fields, rank) \
	{ \
		"x", 0, sig, "report", fields, (rank) < 0 ? FF_TAG_NONE : FF_TAG_GLOBAL, rank, 0 \
	}
static const struct {
	const char *what;
	int world;
	struct world_event events[5];
	int32_t named; /* FF_UNKNOWN: nobody */
} debug_lists[] = {
	{"one of eight, and no word of the group's size", 8,
		{SAYS("straggler-hang", "pg_rank=0;group_ranks=3", 0)}, FF_UNKNOWN},
	{"the last of eight", 8, {SAYS("straggler-hang", "pg_rank=0;group_ranks=7", 0)}, 7},
	{"one, while others list up to the last", 8,
		{SAYS("straggler-hang", "group_ranks=3;seq=41", 0),
			SAYS("collective-mismatch", "ranks=0-2, 4-7;seq=41", 0)},
		3},
	{"one, and the rest of a small group", 8,
		{SAYS("straggler-hang", "group_ranks=3;seq=41", 0),
			SAYS("collective-mismatch", "ranks=0-2;seq=41", 0)},
		FF_UNKNOWN},
	{"the speaker has another number in the group", 8,
		{SAYS("straggler-hang", "pg_rank=0;group_ranks=7", 4)}, FF_UNKNOWN},
	{"a waiting rank has another number in the group", 8,
		{SAYS("straggler-hang", "pg_rank=0;group_ranks=7", 0),
			SAYS("straggler-hang", "pg_rank=1", 2)},
		FF_UNKNOWN},
	{"a number that the job does not have", 8,
		{SAYS("straggler-hang", "pg_rank=0;group_ranks=7", 0),
			SAYS("straggler-hang", "pg_rank=8", -1)},
		FF_UNKNOWN},
	{"all but one of four speak", 4,
		{SAYS("straggler-hang", "pg_rank=0;group_ranks=2", 0),
			SAYS("straggler-hang", "pg_rank=1", 1)},
		2},
	{"of unknown size, up to the last rank heard", 0,
		{SAYS("straggler-hang", "pg_rank=0;group_ranks=3", 0),
			SAYS("gloo-peer-closed", NULL, 3)},
		3},
	{"of unknown size, a higher rank is heard", 0,
		{SAYS("straggler-hang", "pg_rank=0;group_ranks=3", 0),
			SAYS("gloo-peer-closed", NULL, 7)},
		FF_UNKNOWN},
	{"what counts as the job does needs no test", 8,
		{SAYS("straggler-hang", "missing_ranks=3", 0)}, 3},
};

START_TEST(a_list_of_a_group_names_ranks_where_the_group_is_the_job)
{
	static const struct world_stream mixed = {
		"x", FF_STREAM_MIXED, FF_UNKNOWN, NULL, FF_UNKNOWN, FF_UNKNOWN};
	struct world w;
	world_init(&w, debug_lists[_i].world, "torchrun");
	world_streams(&w, &mixed, 1);
	world_events(&w, debug_lists[_i].events, N(debug_lists[_i].events));
	struct ff_timeline t = build(&w);
	const struct ff_sighting *s = find(&t, "x@0");
	int32_t named = s->nnamed == 1 ? s->named[0] : FF_UNKNOWN;
	ck_assert_msg(named == debug_lists[_i].named, "%s: rank %d", debug_lists[_i].what,
		(int)named);
	ff_timeline_finish(&t);
	world_finish(&w);
}
END_TEST

START_TEST(a_rank_of_a_group_is_global_where_the_group_is_the_job)
{
	static const struct world_stream mixed = {
		"x", FF_STREAM_MIXED, FF_UNKNOWN, NULL, FF_UNKNOWN, FF_UNKNOWN};
	struct world w;
	world_init(&w, 4, "torchrun");
	world_streams(&w, &mixed, 1);
	world_events(&w, groups[_i].events, N(groups[_i].events));
	struct ff_timeline t = build(&w);
	ck_assert_msg(find(&t, "x@0")->rank == groups[_i].rank, "%s: rank %d", groups[_i].what,
		(int)find(&t, "x@0")->rank);
	ff_timeline_finish(&t);
	world_finish(&w);
}
END_TEST

/* NCCL's rank map joins host, pid and GPU: a driver's line then has a rank. */
START_TEST(driver_lines_join_by_pid_and_pci_address)
{
	static const struct world_stream some[] = {
		{"x", FF_STREAM_MIXED, FF_UNKNOWN, NULL, FF_UNKNOWN, FF_UNKNOWN},
		{"kern-a", FF_STREAM_KERNEL, FF_UNKNOWN, "gpu07.cluster", FF_UNKNOWN, FF_UNKNOWN},
		{"kern-b", FF_STREAM_KERNEL, FF_UNKNOWN, "gpu08", FF_UNKNOWN, FF_UNKNOWN},
	};
	static const struct world_event events[] = {
		{"x", 0, "rank-map", "gpu07:41:43 [0] NCCL INFO comm - Init COMPLETE",
			"pg_rank=0;nranks=4;busid=1c000", 0, 0, 0},
		{"x", 0, "rank-map", "gpu07:42:44 [1] NCCL INFO comm - Init COMPLETE",
			"pg_rank=1;nranks=4;busid=1000c1000", 0, 0, 0},
		{"x", 0, "rank-map", "2026-01-01T00:00:01Z gpu08:41:43 [0] NCCL INFO comm",
			"pg_rank=2;nranks=4;busid=1c000", 0, 0, 0},
		{"x", 1, "nccl-remote-error", "gpu08:41:99 [0] NCCL WARN lost", NULL, 0, 0, 0},
		{"x", 1, "nccl-remote-error", "12:00:01 NCCL WARN lost", NULL, 0, 0, 0},
		{"kern-a", 2, "ecc-uncorrectable", "Xid", "bdf=0000:1C:00", 0, 0, 0},
		{"kern-a", 2, "ecc-uncorrectable", "Xid", "bdf=1000:c1:00.0", 0, 0, 0},
		{"kern-a", 2, "ecc-uncorrectable", "Xid", "bdf=0000:c1:00", 0, 0, 0},
		{"kern-b", 2, "ecc-uncorrectable", "Xid", "bdf=1c:00.0", 0, 0, 0},
	};
	static const struct {
		const char *id;
		int32_t rank;
	} want[] = {
		{"x@300", 2},
		{"x@400", FF_UNKNOWN},
		{"gpu07.cluster/kern-a@0", 0},
		{"gpu07.cluster/kern-a@100", 1},
		{"gpu07.cluster/kern-a@200", FF_UNKNOWN},
		{"gpu08/kern-b@0", 2},
	};
	struct world w;
	world_init(&w, 4, "mpirun");
	world_streams(&w, some, N(some));
	world_events(&w, events, N(events));
	struct ff_timeline t = build(&w);
	for (size_t i = 0; i < N(want); i++) {
		ck_assert_msg(find(&t, want[i].id)->rank == want[i].rank, "%s: rank %d", want[i].id,
			(int)find(&t, want[i].id)->rank);
	}
	ck_assert_str_eq(find(&t, "x@300")->node, "gpu08");
	ff_timeline_finish(&t);
	world_finish(&w);
}
END_TEST

/* A controller's line about a node is of its own clock, whatever is known of the node's. */
START_TEST(a_line_about_a_node_is_not_of_its_clock)
{
	static const struct world_stream some[] = {
		{"ctl", FF_STREAM_SCHEDULER, FF_UNKNOWN, NULL, FF_UNKNOWN, FF_UNKNOWN},
		{"home", FF_STREAM_SCHEDULER, FF_UNKNOWN, "head", FF_UNKNOWN, FF_UNKNOWN},
		{"gpu07.0", FF_STREAM_RANK, 0, "gpu07", 0, FF_UNKNOWN},
		{"console", FF_STREAM_MIXED, FF_UNKNOWN, NULL, FF_UNKNOWN, FF_UNKNOWN},
	};
	static const struct world_event events[] = {
		{"ctl", 60000, "node-lost", "Node gpu07 not responding", "node=gpu07", 0, 0,
			CAPTURED},
		{"home", 60000, "node-lost", "Node gpu07 not responding", "node=gpu07", 0, 0,
			CAPTURED},
		{"gpu07.0", 60000, "index-error", "e", NULL, 0, 0, CAPTURED},
		{"console", 60000, "node-lost", "host gpu07 is gone", "host=gpu07", 0, 0,
			CAPTURED},
		{"console", 60000, "nccl-remote-error", "gpu07:41:99 [0] NCCL WARN lost", NULL, 0,
			0, CAPTURED},
	};
	static const struct {
		const char *id;
		bool corrected;
	} want[] = {
		{"ctl@0", false},
		{"head/home@0", false},
		{"gpu07/gpu07.0@0", true},
		{"console@0", false},
		{"console@100", true},
	};
	struct world w;
	world_init(&w, 4, "srun");
	world_streams(&w, some, N(some));
	world_events(&w, events, N(events));
	/* gpu07's clock is 10 s ahead of the collector's */
	ff_facts_sample(&w.facts, FF_STR("gpu07"),
		(struct ff_clock_sample){WORLD_START + 10000000, WORLD_START + 1000,
			WORLD_START + 1000, WORLD_START + 10002000});
	struct ff_timeline t = build(&w);
	for (size_t i = 0; i < N(want); i++) {
		ff_usec us = find(&t, want[i].id)->when.us, off = want[i].corrected ? 10000000 : 0;
		ck_assert_msg(us == WORLD_START + 60000000 - off, "%s", want[i].id);
	}
	ck_assert_str_eq(find(&t, "ctl@0")->node, "gpu07");
	ff_timeline_finish(&t);
	world_finish(&w);
}
END_TEST

/* One untagged text of a run of unknown size is rank 0's, unless it shows several processes. */
START_TEST(one_text_may_be_of_several_processes)
{
	static const struct world_stream text[] = {
		{"log", FF_STREAM_MIXED, FF_UNKNOWN, NULL, FF_UNKNOWN, FF_UNKNOWN},
	};
	static const struct {
		const char *signature, *fields;
		uint32_t count;
		unsigned flags;
		int32_t rank;
	} faults[] = {
		{"index-error", NULL, 1, 0, 0},
		{"index-error", NULL, 2, 0, FF_UNKNOWN}, /* a process ends once */
		{"index-error", NULL, 2, HANDLED, 0},
		{"index-error", NULL, 2, RECOVERED, 0},
		{"index-error", "mixed=1", 1, 0, FF_UNKNOWN},
		{"index-error", "launcher=accelerate", 1, 0, FF_UNKNOWN},
	};
	for (size_t i = 0; i < N(faults); i++) {
		const struct world_event event[] = {
			{"log", 0, faults[i].signature, "e", faults[i].fields, FF_TAG_NONE, 0,
				faults[i].flags},
		};
		struct world w;
		world_init(&w, 0, NULL);
		world_streams(&w, text, N(text));
		world_events(&w, event, N(event));
		w.streams[0]->events[0].count = faults[i].count;
		struct ff_timeline t = build(&w);
		ck_assert_msg(find(&t, "log@0")->rank == faults[i].rank, "row %zu: rank %d", i,
			(int)find(&t, "log@0")->rank);
		ff_timeline_finish(&t);
		world_finish(&w);
	}
}
END_TEST

/* torchrun's tree knows local ranks only: with two nodes the prefix that torch prints tells. */
START_TEST(printed_ranks_of_files)
{
	static const struct world_stream files[] = {
		{"a.1", FF_STREAM_RANK, FF_UNKNOWN, "node-a", 1, 0},
		{"b.1", FF_STREAM_RANK, FF_UNKNOWN, "node-b", 1, 0},
		{"c.1", FF_STREAM_RANK, FF_UNKNOWN, "node-c", 1, 0},
	};
	static const struct world_event events[] = {
		{"a.1", 0, "gloo-peer-closed", "w", NULL, FF_TAG_GLOBAL, 1, 0},
		{"b.1", 5, "gloo-peer-closed", "w", NULL, FF_TAG_GLOBAL, 3, 0},
		{"b.1", 9, "index-error", "e", NULL, FF_TAG_NONE, 0, 0},
		{"c.1", 5, "gloo-peer-closed", "w", NULL, FF_TAG_GLOBAL, 4, 0},
		{"c.1", 6, "gloo-peer-closed", "w", NULL, FF_TAG_GLOBAL, 5, 0},
		{"c.1", 9, "index-error", "e", NULL, FF_TAG_NONE, 0, 0},
	};
	struct world w;
	world_init(&w, 6, "torchrun");
	world_streams(&w, files, N(files));
	world_events(&w, events, N(events));
	struct ff_timeline t = build(&w);
	ck_assert_int_eq(find(&t, "node-b/b.1@100")->rank, 3);
	/* two ranks in one file: a relay's, so an untagged line is nobody's */
	ck_assert_int_eq(find(&t, "node-c/c.1@200")->rank, FF_UNKNOWN);
	ff_timeline_finish(&t);
	world_finish(&w);
}
END_TEST

START_TEST(a_record_with_a_failed_rank_is_all_that_ranks)
{
	static const struct world_event events[] = {
		{"a.0", 0, "checkpoint-corrupt", "Traceback: (RANK 3)", "failed_ranks=3", 0, 0, 0},
		{"a.0", 0, "index-error", "IndexError", NULL, 0, 0, 0},
		{"a.0", 0, "index-error", "another record", NULL, 0, 0, 0},
	};
	struct world w;
	world_init(&w, 4, "torchrun");
	world_streams(&w, two_nodes, N(two_nodes));
	world_events(&w, events, N(events));
	world_stream(&w, "a.0")->events[1].offset = 0;
	world_stream(&w, "a.0")->events[1].n = 1;
	struct ff_timeline t = build(&w);
	const struct ff_sighting *s = find(&t, "node-a/a.0@0.1");
	ck_assert_int_eq(s->rank, 3);
	ck_assert_int_eq(s->speaker, 0);
	ck_assert_str_eq(s->node, "node-b");
	ck_assert_int_eq(find(&t, "node-a/a.0@200")->rank, 0);
	ff_timeline_finish(&t);
	world_finish(&w);
}
END_TEST

/* Which task numbers of srun's reports are ranks. */
static const struct {
	const char *what;
	int world;
	const char *launcher;
	struct world_event events[3];
	int32_t exit_of_2; /* FF_EXIT_UNKNOWN: the report is about another process */
} task_reports[] = {
	{"tasks are ranks", 4, "srun",
		{{"console", 0, "process-exit", "task 2", "tasks=2;exit_code=3", 0, 0, 0}}, 3},
	{"two steps at once: each counts for itself", 4, "srun",
		{{"console", 0, "process-exit", "task 2", "tasks=2;exit_code=3", 0, 0, 0},
			{"console", 1, "step-aborted", "Terminating", "job=4.0", 0, 0, 0},
			{"console", 2, "step-aborted", "Terminating", "job=5.0", 0, 0, 0}},
		FF_EXIT_UNKNOWN},
	{"one step, told twice", 4, "srun",
		{{"console", 0, "process-exit", "task 2", "tasks=2;exit_code=3", 0, 0, 0},
			{"console", 1, "step-aborted", "Terminating", "job=4.0", 0, 0, 0},
			{"console", 2, "step-aborted", "Force Terminated", "job=4.0", 0, 0, 0}},
		3},
	{"tasks 0 to 3 of 8 ranks: one launcher a node", 8, NULL,
		{{"console", 0, "process-exit", "tasks 0-3", "tasks=0-3;exit_code=1", 0, 0, 0}},
		FF_EXIT_UNKNOWN},
	{"tasks 1 to 3 of 8 ranks", 8, NULL,
		{{"console", 0, "process-exit", "tasks 1-3", "tasks=1-3;exit_code=1", 0, 0, 0}}, 1},
};

START_TEST(task_report_is_about)
{
	struct world w;
	world_init(&w, task_reports[_i].world, task_reports[_i].launcher);
	world_streams(&w, one_console, 1);
	world_events(&w, task_reports[_i].events, N(task_reports[_i].events));
	struct ff_timeline t = build(&w);
	int32_t code = ff_timeline_rank(&t, 2)->exit_code;
	ck_assert_msg(
		code == task_reports[_i].exit_of_2, "%s: %d", task_reports[_i].what, (int)code);
	ff_timeline_finish(&t);
	world_finish(&w);
}
END_TEST

/* ---- attempts */

START_TEST(restarts_count_once_however_many_agents_tell)
{
	static const struct world_event events[] = {
		{"console", 0, "index-error", "first", NULL, FF_TAG_GLOBAL, 0, 0},
		{"console", 1, "agent-restart", "2/3", "attempts_left=2", 0, 0, 0},
		{"console", 1, "agent-restart", "2/3 again", "attempts_left=2", 0, 0, 0},
		{"console", 2, "index-error", "second", NULL, FF_TAG_GLOBAL, 0, 0},
		{"console", 3, "agent-restart", "1/3", "attempts_left=1", 0, 0, 0},
		{"console", 4, "index-error", "third", NULL, FF_TAG_GLOBAL, 1, 0},
	};
	struct world w;
	world_init(&w, 2, "torchrun");
	world_streams(&w, one_console, 1);
	world_events(&w, events, N(events));
	struct ff_timeline t = build(&w);
	ck_assert_int_eq(t.nattempts, 3);
	ck_assert_int_eq(find(&t, "node-a/console@0")->attempt, 0);
	ck_assert_int_eq(find(&t, "node-a/console@300")->attempt, 1);
	ck_assert_int_eq(find(&t, "node-a/console@500")->attempt, 2);
	ck_assert_int_eq(t.attempt, 2);
	ck_assert_uint_eq(ff_timeline_rank(&t, 0)->nfaults, 0);
	ff_timeline_attempt(&t, 0);
	ck_assert_uint_eq(ff_timeline_rank(&t, 0)->nfaults, 1);
	ff_timeline_finish(&t);
	world_finish(&w);
}
END_TEST

START_TEST(declared_attempts_hold_and_the_agent_follows_them)
{
	static const struct world_stream streams[] = {
		{"agent", FF_STREAM_AGENT, FF_UNKNOWN, "node-a", FF_UNKNOWN, FF_UNKNOWN},
		{"0/0", FF_STREAM_RANK, 0, "node-a", 0, 0},
		{"1/0", FF_STREAM_RANK, 0, "node-a", 0, 1},
	};
	static const struct world_event events[] = {
		{"agent", 10, "process-exit", "failed", "local_rank=0;exit_code=1;pid=4", 0, 0, 0},
		{"agent", 20, "process-exit", "failed", "local_rank=0;exit_code=-9;pid=5", 0, 0, 0},
		{"0/0", 5, "index-error", "e", NULL, 0, 0, 0},
	};
	struct world w;
	world_init(&w, 1, "torchrun");
	world_streams(&w, streams, N(streams));
	world_events(&w, events, N(events));
	struct ff_timeline t = build(&w);
	ck_assert_int_eq(t.nattempts, 2);
	ck_assert_int_eq(find(&t, "node-a/agent@0")->attempt, 0);
	ck_assert_int_eq(find(&t, "node-a/agent@100")->attempt, 1);
	ck_assert_int_eq(ff_timeline_rank(&t, 0)->exit_code, -9);
	ff_timeline_attempt(&t, 0);
	ck_assert_int_eq(ff_timeline_rank(&t, 0)->exit_code, 1);
	ff_timeline_finish(&t);
	world_finish(&w);
}
END_TEST

/* ---- recovery */

static enum ff_weight weight_of(
	const struct world_event *e, bool progress, bool success, int64_t at_ms)
{
	struct world w;
	world_init(&w, 4, "torchrun");
	world_streams(&w, two_nodes, N(two_nodes));
	if (success) {
		world_progress(&w, "a.0", at_ms, true);
	}
	world_event(&w, e);
	if (progress) {
		world_progress(&w, "a.0", at_ms, false);
	}
	struct ff_timeline t = build(&w);
	enum ff_weight weight = t.all[0].weight;
	ff_timeline_finish(&t);
	world_finish(&w);
	return weight;
}

START_TEST(a_fault_weighs)
{
	struct world_event e = {"a.0", 1000, "index-error", "e", NULL, 0, 0, 0};
	ck_assert_int_eq(weight_of(&e, false, false, 0), FF_WEIGHT_FULL);
	e.flags = HANDLED;
	ck_assert_int_eq(weight_of(&e, false, false, 0), FF_WEIGHT_ECHO);
	e.flags = QUOTED;
	ck_assert_int_eq(weight_of(&e, false, false, 0), FF_WEIGHT_ECHO);
	e.flags = RECOVERED;
	ck_assert_int_eq(weight_of(&e, false, false, 0), FF_WEIGHT_PAST);
	e.flags = 0;
	ck_assert_int_eq(weight_of(&e, true, false, 2000), FF_WEIGHT_PAST);
	ck_assert_int_eq(weight_of(&e, false, true, 500), FF_WEIGHT_NONE);
	/* closer together than a line may be on its way: not known */
	ck_assert_int_eq(weight_of(&e, true, false, 1050), FF_WEIGHT_FULL);
}
END_TEST

START_TEST(after_the_success_marker_a_fault_counts_if_the_run_ended_badly)
{
	static const struct {
		const char *state;
		enum ff_weight weight;
	} ends[] = {
		{NULL, FF_WEIGHT_NONE}, {"COMPLETED", FF_WEIGHT_NONE}, {"FAILED", FF_WEIGHT_FULL}};
	static const struct world_event e = {"a.0", 1000, "index-error", "e", NULL, 0, 0, 0};
	for (size_t i = 0; i < N(ends); i++) {
		struct world w;
		world_init(&w, 4, "torchrun");
		world_streams(&w, two_nodes, N(two_nodes));
		world_progress(&w, "a.0", 500, true);
		world_event(&w, &e);
		if (ends[i].state) {
			world_tell(&w, "job@end", "state", ends[i].state);
		}
		struct ff_timeline t = build(&w);
		ck_assert_int_eq(t.all[0].weight, ends[i].weight);
		ff_timeline_finish(&t);
		world_finish(&w);
	}
}
END_TEST

START_TEST(progress_of_another_stream_of_the_rank_counts)
{
	static const struct world_stream streams[] = {
		{"err", FF_STREAM_RANK, 0, "node-a", 0, FF_UNKNOWN},
		{"out", FF_STREAM_RANK, 0, "node-a", 0, FF_UNKNOWN},
		{"other", FF_STREAM_RANK, 1, "node-a", 1, FF_UNKNOWN},
	};
	static const struct world_event e = {"err", 1000, "index-error", "e", NULL, 0, 0, 0};
	struct world w;
	world_init(&w, 2, "torchrun");
	world_streams(&w, streams, N(streams));
	world_event(&w, &e);
	world_progress(&w, "other", 9000, false);
	struct ff_timeline t = build(&w);
	ck_assert_int_eq(t.all[0].weight, FF_WEIGHT_FULL);
	ff_timeline_finish(&t);
	world_progress(&w, "out", 9000, false);
	t = build(&w);
	ck_assert_int_eq(t.all[0].weight, FF_WEIGHT_PAST);
	ck_assert(!t.all[0].unrecovered);
	ff_timeline_finish(&t);
	world_finish(&w);
}
END_TEST

START_TEST(untagged_lines_of_many_recover_nobody)
{
	static const struct world_event e = {
		"console", 1000, "index-error", "e", NULL, 0, 0, RECOVERED};
	struct world w;
	world_init(&w, 4, "torchrun");
	world_streams(&w, one_console, 1);
	world_event(&w, &e);
	world_progress(&w, "console", 9000, false);
	struct ff_timeline t = build(&w);
	ck_assert_int_eq(t.all[0].weight, FF_WEIGHT_FULL);
	ff_timeline_finish(&t);
	world_finish(&w);
}
END_TEST

/* ---- order, ends, state */

START_TEST(within_a_stream_offsets_order)
{
	static const struct world_event events[] = {
		{"a.0", NEVER, "index-error", "first", NULL, 0, 0, 0},
		{"a.0", NEVER, "index-error", "second", NULL, 0, 0, 0},
		{"a.1", NEVER, "index-error", "elsewhere", NULL, 0, 0, 0},
	};
	struct world w;
	world_init(&w, 4, "torchrun");
	world_streams(&w, two_nodes, N(two_nodes));
	world_events(&w, events, N(events));
	struct ff_timeline t = build(&w);
	const struct ff_sighting *a = find(&t, "node-a/a.0@0"), *b = find(&t, "node-a/a.0@100");
	ck_assert_int_eq(ff_timeline_order(a, b), FF_BEFORE);
	ck_assert_int_eq(ff_timeline_order(b, a), FF_AFTER);
	ck_assert_int_eq(ff_timeline_order(a, find(&t, "node-a/a.1@0")), FF_CANT_TELL);
	ck_assert_int_eq(ff_timeline_order(a, a), FF_CANT_TELL);
	ff_timeline_finish(&t);
	world_finish(&w);
}
END_TEST

/* Streams without a node have clocks that nothing compares: their events stand by name, however the
 * streams were numbered. */
START_TEST(the_order_of_streams_is_no_order)
{
	static const struct world_stream streams[] = {
		{"a", FF_STREAM_RANK, 0, NULL, FF_UNKNOWN, FF_UNKNOWN},
		{"b", FF_STREAM_RANK, 1, NULL, FF_UNKNOWN, FF_UNKNOWN},
		{"c", FF_STREAM_RANK, 2, NULL, FF_UNKNOWN, FF_UNKNOWN},
	};
	static const struct world_event events[] = {
		{"a", 3000, "index-error", "one", NULL, 0, 0, CAPTURED},
		{"b", 2000, "index-error", "two", NULL, 0, 0, CAPTURED},
		{"c", 1000, "index-error", "three", NULL, 0, 0, CAPTURED},
		{"c", 1500, "cuda-oom", "four", NULL, 0, 0, CAPTURED},
	};
	for (int turned = 0; turned < 2; turned++) {
		struct world w;
		world_init(&w, 3, "torchrun");
		for (size_t i = 0; i < N(streams); i++) {
			world_streams(&w, &streams[turned ? N(streams) - 1 - i : i], 1);
		}
		world_events(&w, events, N(events));
		struct ff_timeline t = build(&w);
		static const char *const wanted[] = {"a@0", "b@0", "c@0", "c@100"};
		ck_assert_uint_eq(t.nall, N(wanted));
		for (size_t i = 0; i < N(wanted); i++) {
			ck_assert_str_eq(t.all[i].id, wanted[i]);
		}
		ff_timeline_finish(&t);
		world_finish(&w);
	}
}
END_TEST

START_TEST(an_exit_object_beats_a_row_beats_a_range)
{
	static const struct world_event events[] = {
		{"console", 1, "process-exit", "tasks 0-3", "tasks=0-3;exit_code=1;node=n", 0, 0,
			0},
		{"console", 2, "process-exit", "row", "rank=2;exit_code=5", 0, 0, 0},
	};
	struct world w;
	world_init(&w, 4, "srun");
	world_streams(&w, one_console, 1);
	world_events(&w, events, N(events));
	world_tell(&w, "exit@0.3", "rank", "3");
	world_tell(&w, "exit@0.3", "signal", "9");
	struct ff_timeline t = build(&w);
	ck_assert_int_eq(ff_timeline_rank(&t, 1)->exit_code, 1);
	ck_assert_int_eq(ff_timeline_rank(&t, 2)->exit_code, 5);
	ck_assert_int_eq(ff_timeline_rank(&t, 3)->exit_code, -9);
	ck_assert_ptr_null(ff_timeline_rank(&t, 3)->exit->stream);
	ck_assert_str_eq(ff_timeline_rank(&t, 3)->exit->id, "exit@0.3");
	ff_timeline_finish(&t);
	world_finish(&w);
}
END_TEST

START_TEST(as_of_is_the_latest_stamp_that_came)
{
	static const struct world_event e = {"a.0", 5000, "index-error", "e", NULL, 0, 0, 0};
	struct world w;
	world_init(&w, 4, "torchrun");
	world_streams(&w, two_nodes, N(two_nodes));
	struct ff_timeline t = build(&w);
	ck_assert(t.as_of == FF_TIME_NONE);
	ck_assert_int_eq(t.state, FF_RUN_ENDED);
	ck_assert(t.final);
	ff_timeline_finish(&t);
	world_event(&w, &e);
	t = build(&w);
	ck_assert_int_eq(t.as_of, world_us(5000));
	ff_timeline_finish(&t);
	world_finish(&w);
}
END_TEST

START_TEST(an_open_run_runs_ends_and_stalls)
{
	static const struct world_event e = {"a.0", 5000, "index-error", "e", NULL, 0, 0, 0};
	struct ff_ask ask = {.now_us = world_us(6000), .attempt = FF_UNKNOWN, .world = FF_UNKNOWN};
	struct world w;
	world_init(&w, 4, "torchrun");
	world_streams(&w, two_nodes, N(two_nodes));
	world_stream(&w, "a.1")->state = FF_STREAM_OPEN;
	struct ff_timeline t = build_as(&w, &ask);
	ck_assert_int_eq(t.state, FF_RUN_RUNNING);
	ck_assert_int_eq(t.as_of, world_us(6000));
	ff_timeline_finish(&t);
	world_event(&w, &e);
	t = build_as(&w, &ask);
	ck_assert_int_eq(t.state, FF_RUN_ENDING);
	ff_timeline_finish(&t);
	ask.now_us = world_us(500000);
	t = build_as(&w, &ask);
	ck_assert_int_eq(t.state, FF_RUN_STALLED);
	ff_timeline_finish(&t);
	world_tell(&w, "job@end", "state", "failed");
	t = build_as(&w, &ask);
	ck_assert_int_eq(t.state, FF_RUN_ENDED);
	ck_assert(!t.final); /* one stream may still speak */
	ff_timeline_finish(&t);
	world_stream(&w, "a.1")->state = FF_STREAM_VANISHED;
	t = build_as(&w, &ask);
	ck_assert(t.final);
	ff_timeline_finish(&t);
	world_finish(&w);
}
END_TEST

/* ---- signals */

static const struct {
	const char *text;
	int sig;
} signal_texts[] = {
	{"9", 9},
	{"-9", 9},
	{"SIGKILL", 9},
	{"Killed", 9},
	{"KILL", 9},
	{"Signals.SIGTERM", 15},
	{"Segmentation fault", 11},
	{"Segmentation fault (core dumped)", 11},
	{"11 (Segmentation fault)", 11},
	{"SIGSEGV (11)", 11},
	{"Aborted", 6},
	{"Bus error", 7},
	{"Terminated", 15},
	{"", 0},
	{"none", 0},
	{"99999", 0},
};

START_TEST(signal_is_read)
{
	int sig = ff_signal_parse(ff_str_z(signal_texts[_i].text));
	ck_assert_msg(sig == signal_texts[_i].sig, "\"%s\": %d", signal_texts[_i].text, sig);
}
END_TEST

START_TEST(exit_codes_hold_signals)
{
	ck_assert_int_eq(ff_exit_signal(-9), 9);
	ck_assert_int_eq(ff_exit_signal(137), 9);
	ck_assert_int_eq(ff_exit_signal(139), 11);
	ck_assert_int_eq(ff_exit_signal(1), 0);
	ck_assert_int_eq(ff_exit_signal(130), 0);
	ck_assert_int_eq(ff_exit_signal(0), 0);
	ck_assert_int_eq(ff_exit_signal(FF_EXIT_UNKNOWN), 0);
	ck_assert_str_eq(ff_signal_name(11), "SIGSEGV");
	ck_assert_ptr_null(ff_signal_name(64));
	ck_assert_str_eq(ff_signal_fault(7), "sigbus");
	ck_assert_ptr_null(ff_signal_fault(12));
}
END_TEST

int main(void)
{
	Suite *s = suite_create("timeline");
	TCase *tc = tcase_create("timeline");
	tcase_add_loop_test(tc, event_belongs_to, 0, N(whose));
	tcase_add_test(tc, local_ranks_go_through_the_nodes_map);
	tcase_add_test(tc, a_pid_of_two_ranks_is_nobodys);
	tcase_add_loop_test(
		tc, a_rank_of_a_group_is_global_where_the_group_is_the_job, 0, N(groups));
	tcase_add_loop_test(tc, a_list_of_a_group_names_ranks_where_the_group_is_the_job, 0,
		N(debug_lists));
	tcase_add_test(tc, driver_lines_join_by_pid_and_pci_address);
	tcase_add_test(tc, a_line_about_a_node_is_not_of_its_clock);
	tcase_add_test(tc, printed_ranks_of_files);
	tcase_add_test(tc, one_text_may_be_of_several_processes);
	tcase_add_test(tc, a_record_with_a_failed_rank_is_all_that_ranks);
	tcase_add_loop_test(tc, task_report_is_about, 0, N(task_reports));
	tcase_add_test(tc, restarts_count_once_however_many_agents_tell);
	tcase_add_test(tc, declared_attempts_hold_and_the_agent_follows_them);
	tcase_add_test(tc, a_fault_weighs);
	tcase_add_test(tc, after_the_success_marker_a_fault_counts_if_the_run_ended_badly);
	tcase_add_test(tc, progress_of_another_stream_of_the_rank_counts);
	tcase_add_test(tc, untagged_lines_of_many_recover_nobody);
	tcase_add_test(tc, within_a_stream_offsets_order);
	tcase_add_test(tc, the_order_of_streams_is_no_order);
	tcase_add_test(tc, an_exit_object_beats_a_row_beats_a_range);
	tcase_add_test(tc, as_of_is_the_latest_stamp_that_came);
	tcase_add_test(tc, an_open_run_runs_ends_and_stalls);
	tcase_add_loop_test(tc, signal_is_read, 0, N(signal_texts));
	tcase_add_test(tc, exit_codes_hold_signals);
	suite_add_tcase(s, tc);
	SRunner *r = srunner_create(s);
	srunner_run_all(r, CK_ENV);
	int failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
