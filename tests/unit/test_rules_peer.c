/* The rules that judge by what ranks say of each other: who waited, who is named, who is silent. */
#include "world.h"

/* Two nodes of two ranks each. */
static const struct world_stream two_nodes[] = {
	{"0", FF_STREAM_RANK, 0, "node-a", 0, FF_UNKNOWN},
	{"1", FF_STREAM_RANK, 1, "node-a", 1, FF_UNKNOWN},
	{"2", FF_STREAM_RANK, 2, "node-b", 0, FF_UNKNOWN},
	{"3", FF_STREAM_RANK, 3, "node-b", 1, FF_UNKNOWN},
	{"console", FF_STREAM_MIXED, FF_UNKNOWN, NULL, FF_UNKNOWN, FF_UNKNOWN},
};

#define EVENTS 16
#define E(stream, ms, sig, fields) \
	{ \
		stream, ms, sig, sig, fields, FF_TAG_NONE, 0, 0 \
	}
/* A watchdog's report, and the counters of the default group. */
#define WAIT(rank, ms, fields) E(rank, ms, "nccl-timeout", "timeout=600000;ran_for=600000;" fields)
#define COUNTS(rank, enq, done) \
	E(rank, 600100, "pg-status", "pg=0(default_pg);seq=9;enqueued=" enq ";completed=" done)
#define DUMP(rank, from, enq, done) \
	E(rank, 600200, "nccl-timeout", "peer_rank=" from ";enqueued=" enq ";completed=" done)
#define NINE "seq=9;op=ALLREDUCE;numel_in=100"

struct row {
	const char *what;
	struct world_event events[EVENTS];
	enum ff_verdict_kind kind;
	const char *who, *fault; /* ranks, or the node */
	enum ff_rule_id rule;
};

static const struct row rows[] = {
	{"one has completed all that it enqueued: it never entered",
		{WAIT("0", 600000, NINE), COUNTS("0", "9", "8"), WAIT("1", 600000, NINE),
			COUNTS("1", "9", "8"), WAIT("3", 600050, NINE), COUNTS("3", "11", "8"),
			DUMP("2", "0", "8", "8")},
		FF_VERDICT_RANK, "2", "straggler-hang", FF_RULE_late},
	{"one alone is ahead: it decides nothing",
		{WAIT("3", 600000, NINE), COUNTS("3", "9", "8"), DUMP("0", "3", "8", "8"),
			DUMP("1", "3", "8", "8"), DUMP("2", "3", "8", "8")},
		FF_VERDICT_UNDETERMINED, "", "nccl-timeout", FF_RULE_undetermined},
	{"the dump signal's sender is who noticed, and a waiter",
		{DUMP("0", "1", "9", "8"), WAIT("1", 600000, NINE), DUMP("2", "1", "9", "8"),
			DUMP("3", "1", "8", "8")},
		FF_VERDICT_RANK, "3", "straggler-hang", FF_RULE_late},
	{"who only saw the dump signal waited for nothing",
		{WAIT("0", 600000, NINE), WAIT("1", 600000, NINE), WAIT("3", 600000, NINE),
			E("2", 600200, "nccl-timeout", "peer_rank=0")},
		FF_VERDICT_RANK, "2", "straggler-hang", FF_RULE_late},
	{"idle in one group, held up in another: the one that waits nowhere",
		{WAIT("0", 600000, NINE), COUNTS("0", "9", "8"), WAIT("1", 600000, NINE),
			COUNTS("1", "9", "8"), DUMP("2", "0", "8", "8"),
			WAIT("2", 600000, "pg=3(mesh_tp);seq=4;op=SEND"), DUMP("3", "0", "8", "8")},
		FF_VERDICT_RANK, "3", "straggler-hang", FF_RULE_late},
	{"one is at an earlier operation",
		{WAIT("0", 600000, NINE), WAIT("1", 600000, NINE), WAIT("3", 600000, NINE),
			WAIT("2", 600000, "seq=8;op=ALLREDUCE;numel_in=100")},
		FF_VERDICT_RANK, "2", "straggler-hang", FF_RULE_late},
	{"one is at a later operation: it decides nothing",
		{WAIT("0", 600000, NINE), WAIT("1", 600000, NINE), WAIT("3", 600000, NINE),
			WAIT("2", 600000, "seq=10;op=ALLREDUCE;numel_in=100")},
		FF_VERDICT_UNDETERMINED, "", "nccl-timeout", FF_RULE_undetermined},
	{"numbers of two groups without names are not compared",
		{WAIT("0", 600000, NINE), WAIT("0", 600010, "seq=4;op=BROADCAST"),
			WAIT("1", 600000, NINE), WAIT("3", 600000, NINE),
			WAIT("2", 600000, "seq=4;op=BROADCAST")},
		FF_VERDICT_UNDETERMINED, "", "nccl-timeout", FF_RULE_undetermined},
	{"one has another size",
		{WAIT("0", 600000, NINE), WAIT("1", 600000, NINE), WAIT("2", 600000, NINE),
			WAIT("3", 600000, "seq=9;op=ALLREDUCE;numel_in=200")},
		FF_VERDICT_RANK, "3", "collective-mismatch", FF_RULE_late},
	{"one is in another operation",
		{WAIT("0", 600000, NINE), WAIT("1", 600000, "seq=9;op=BROADCAST"),
			WAIT("2", 600000, NINE), WAIT("3", 600000, NINE)},
		FF_VERDICT_RANK, "1", "collective-mismatch", FF_RULE_late},
	{"two against two have no majority",
		{WAIT("0", 600000, NINE), WAIT("1", 600000, NINE),
			WAIT("2", 600000, "seq=9;op=ALLREDUCE;numel_in=200"),
			WAIT("3", 600000, "seq=9;op=ALLREDUCE;numel_in=200")},
		FF_VERDICT_UNDETERMINED, "", "nccl-timeout", FF_RULE_undetermined},
	{"sizes that may differ from rank to rank",
		{WAIT("0", 600000, "seq=9;op=ALLTOALL_BASE;numel_in=1"),
			WAIT("1", 600000, "seq=9;op=ALLTOALL_BASE;numel_in=1"),
			WAIT("2", 600000, "seq=9;op=ALLTOALL_BASE;numel_in=1"),
			WAIT("3", 600000, "seq=9;op=ALLTOALL_BASE;numel_in=2")},
		FF_VERDICT_UNDETERMINED, "", "nccl-timeout", FF_RULE_late},
	{"one came when the others had given up",
		{WAIT("0", 600000, NINE), WAIT("1", 600500, NINE), WAIT("3", 601000, NINE),
			WAIT("2", 1300000, NINE)},
		FF_VERDICT_RANK, "2", "straggler-hang", FF_RULE_late},
	{"all joined, nobody finished: nobody stands out",
		{WAIT("0", 600000, NINE), WAIT("1", 600500, NINE), WAIT("3", 601000, NINE),
			WAIT("2", 600000, NINE)},
		FF_VERDICT_UNDETERMINED, "", "nccl-timeout", FF_RULE_late},
	{"all joined, and the desync report says so",
		{WAIT("0", 600000, NINE), WAIT("1", 600500, NINE), WAIT("3", 601000, NINE),
			WAIT("2", 600000, NINE),
			E("0", 601000, "collective-mismatch", "ranks=0, 1, 2, 3;seq=9")},
		FF_VERDICT_COMMON, "", "nccl-timeout", FF_RULE_late},
	{"all but one waited, and that one was heard to its end",
		{WAIT("0", 600000, NINE), WAIT("1", 600000, NINE), WAIT("2", 600000, NINE)},
		FF_VERDICT_RANK, "3", "straggler-hang", FF_RULE_late},
	{"a key of the store ends in the missing rank",
		{E("0", 8000, "store-timeout", "key=/default_pg/0//cpu//0/3"),
			E("1", 8000, "store-timeout", "key=/default_pg/0//cpu//0/3")},
		FF_VERDICT_RANK, "3", "store-timeout", FF_RULE_accused},
	{"unless that one waits itself",
		{E("0", 8000, "store-timeout", "key=/default_pg/0//cpu//0/3"),
			E("3", 8000, "store-timeout", "key=/default_pg/0//cpu//0/0")},
		FF_VERDICT_UNDETERMINED, "", "store-timeout", FF_RULE_undetermined},
	{"a key of a rank that the world does not have: whoever waits for it",
		{E("1", 8000, "store-timeout", "key=/default_pg/0//cpu//0/4")}, FF_VERDICT_RANK,
		"1", "store-timeout", FF_RULE_accused},
	{"a list of keys names nobody",
		{E("0", 8000, "store-timeout", "key=/default_pg/0//cpu//0/1, /x//cpu//0/3"),
			E("1", 8000, "gloo-peer-closed", NULL)},
		FF_VERDICT_UNDETERMINED, "", "store-timeout", FF_RULE_undetermined},
	{"the first connection that closed on the node; later ones are clean-up",
		{E("2", 1000, "nccl-remote-error", "peer_local_rank=1"),
			E("2", 1010, "nccl-remote-error", "peer_local_rank=1"),
			E("3", 3000, "nccl-remote-error", "peer_local_rank=0")},
		FF_VERDICT_RANK, "3", "nccl-remote-error", FF_RULE_accused},
	{"two connections that closed in one moment",
		{E("2", 1000, "nccl-remote-error", "peer_local_rank=1"),
			E("3", 1010, "nccl-remote-error", "peer_local_rank=0"),
			E("0", 2000, "gloo-peer-closed", NULL)},
		FF_VERDICT_UNDETERMINED, "", "nccl-remote-error", FF_RULE_undetermined},
	{"all others lost the store: rank 0 serves it",
		{E("1", 1000, "store-unreachable", NULL), E("2", 1010, "store-unreachable", NULL),
			E("3", 1020, "store-unreachable", NULL)},
		FF_VERDICT_RANK, "0", "store-unreachable", FF_RULE_accused},
	{"rank 0 itself lost a peer: the store's end is a consequence",
		{E("0", 900, "gloo-peer-closed", NULL), E("1", 1000, "store-unreachable", NULL),
			E("2", 1010, "store-unreachable", NULL),
			E("3", 1020, "store-unreachable", NULL)},
		FF_VERDICT_UNDETERMINED, "", "gloo-peer-closed", FF_RULE_undetermined},
	{"addresses lead to the only rank of a node that reports nothing",
		{E("0", 1000, "nccl-remote-error", "peer_addr=node-b<50514>"),
			E("1", 1000, "nccl-remote-error", "peer_addr=node-b<50516>"),
			E("3", 1200, "nccl-remote-error", NULL)},
		FF_VERDICT_RANK, "2", "nccl-remote-error", FF_RULE_accused},
	{"two nodes accuse each other",
		{E("0", 1000, "nccl-remote-error", "peer_addr=node-b<50514>"),
			E("1", 1000, "nccl-remote-error", NULL),
			E("3", 1200, "nccl-remote-error", "peer_addr=node-a<50516>")},
		FF_VERDICT_UNDETERMINED, "", "nccl-remote-error", FF_RULE_undetermined},
	{"an address that nobody says whose it is",
		{E("0", 1000, "nccl-remote-error", "peer_addr=10.0.1.9<50514>"),
			E("1", 1000, "nccl-remote-error", NULL),
			E("3", 1200, "nccl-remote-error", NULL)},
		FF_VERDICT_UNDETERMINED, "", "nccl-remote-error", FF_RULE_undetermined},
	{"an address that a node gave as its own",
		{{"2", 100, "node-address", "host-b:7:7 [0] NCCL INFO Bootstrap", "addr=10.0.1.9",
			 FF_TAG_NONE, 0, 0},
			E("0", 1000, "nccl-remote-error", "peer_addr=10.0.1.9<50514>"),
			E("1", 1000, "nccl-remote-error", NULL),
			E("3", 1200, "nccl-remote-error", NULL)},
		FF_VERDICT_RANK, "2", "nccl-remote-error", FF_RULE_accused},
	{"adapters of two nodes ran out of retries to a third",
		{{"console", 1000, "ib-link-down", "gpu1:5:6 [0] NCCL WARN NET/IB",
			 "peer_addr=gpu3<1>;code=12", FF_TAG_NONE, 0, 0},
			{"console", 1500, "ib-link-down", "gpu2:5:6 [0] NCCL WARN NET/IB",
				"peer_addr=gpu3<2>;code=12", FF_TAG_NONE, 0, 0},
			{"console", 1600, "ib-link-down", "gpu3:5:6 [0] NCCL WARN NET/IB",
				"peer_addr=gpu1<2>;code=5", FF_TAG_NONE, 0, 0}},
		FF_VERDICT_NODE, "gpu3", "ib-link-down", FF_RULE_accused},
	{"the waiters disagree: the silent one need not be the reason",
		{WAIT("0", 600000, NINE), WAIT("1", 600000, "seq=8;op=ALLREDUCE;numel_in=100"),
			WAIT("2", 600000, NINE)},
		FF_VERDICT_UNDETERMINED, "", "nccl-timeout", FF_RULE_undetermined},
	{"a console that holds the words of all but one was captured for that one too",
		{WAIT("console", 600000, "pg_rank=0;" NINE),
			WAIT("console", 600000, "pg_rank=1;" NINE),
			WAIT("console", 600000, "pg_rank=3;" NINE)},
		FF_VERDICT_RANK, "2", "straggler-hang", FF_RULE_late},
	{"a console of half the ranks proves nothing of the others",
		{WAIT("console", 600000, "pg_rank=0;" NINE),
			WAIT("console", 600000, "pg_rank=3;" NINE)},
		FF_VERDICT_UNDETERMINED, "", "nccl-timeout", FF_RULE_undetermined},
};

static bool is_console(const struct row *row)
{
	return !strcmp(row->events[0].stream, "console");
}

static struct ff_verdict *judge(struct world *w, const struct row *row, uint64_t off)
{
	world_init(w, 4, "srun");
	world_streams(w, is_console(row) ? &two_nodes[4] : two_nodes, is_console(row) ? 1 : 4);
	for (int r = 0; r < 4 && !is_console(row); r++) {
		char name[2] = {(char)('0' + r), '\0'};
		world_progress(w, name, 500, false);
	}
	world_events(w, row->events, EVENTS);
	world_tell(w, "job@end", "state", "FAILED");
	return world_judge(w, off);
}

/* Ranks that print a step each second until their last one; `quiet` prints without a habit. */
static const struct {
	const char *what;
	int last[4]; /* second of the last step */
	bool quiet;
	const char *says; /* of the silent one, after all others: NULL nothing */
	enum ff_verdict_kind kind;
	const char *who;
} habits[] = {
	{"one falls silent while the others go on", {60, 60, 20, 60}, false, NULL, FF_VERDICT_RANK,
		"2"},
	{"a whole node falls silent", {60, 60, 20, 21}, false, NULL, FF_VERDICT_NODE, "node-b"},
	{"two on two nodes fall silent", {60, 20, 20, 60}, false, NULL, FF_VERDICT_UNDETERMINED,
		""},
	{"all stop together", {60, 60, 60, 60}, false, NULL, FF_VERDICT_UNDETERMINED, ""},
	{"one without a habit is quiet, which proves nothing", {60, 60, 20, 60}, true, NULL,
		FF_VERDICT_UNDETERMINED, ""},
	{"one that says a farewell is not silent", {60, 60, 20, 60}, false, "sigterm",
		FF_VERDICT_UNDETERMINED, ""},
};

static void habit(struct world *w, const char *name, int last, bool quiet)
{
	for (int i = quiet ? last : 0; i <= last; i++) {
		world_progress(w, name, i * 1000, false);
	}
	struct ff_lane *l = world_stream(w, name)->lanes[0];
	l->cadence[20] = quiet ? 0 : (uint32_t)last;
}

START_TEST(a_habit_that_broke)
{
	struct world w;
	world_init(&w, 4, "srun");
	world_streams(&w, two_nodes, 4);
	static const char *const names[] = {"0", "1", "2", "3"};
	for (int r = 0; r < 4; r++) {
		habit(&w, names[r], habits[_i].last[r], r == 2 && habits[_i].quiet);
	}
	struct world_event lost = E("0", 70000, "gloo-peer-closed", NULL);
	struct world_event word = E("2", 30000, habits[_i].says, NULL);
	world_event(&w, &lost);
	if (habits[_i].says) {
		world_event(&w, &word);
	}
	world_tell(&w, "job@end", "state", "FAILED");
	struct ff_verdict *v = world_judge(&w, 0);
	char ranks[64];
	world_who(v, ranks, sizeof ranks);
	const char *who = v->kind == FF_VERDICT_NODE ? v->node : ranks;
	ck_assert_msg(v->kind == habits[_i].kind, "%s: %s, %s", habits[_i].what,
		ff_verdict_kind_name(v->kind), v->why[0].text);
	ck_assert_msg(!strcmp(who, habits[_i].who), "%s: %s", habits[_i].what, who);
	ff_verdict_destroy(v);
	if (habits[_i].kind == FF_VERDICT_RANK) {
		v = world_judge(&w, 1ull << FF_RULE_silent);
		ck_assert_int_eq(v->kind, FF_VERDICT_UNDETERMINED);
		ff_verdict_destroy(v);
	}
	world_finish(&w);
}
END_TEST

START_TEST(peers_decide)
{
	const struct row *row = &rows[_i];
	struct world w;
	struct ff_verdict *v = judge(&w, row, 0);
	char ranks[64];
	world_who(v, ranks, sizeof ranks);
	const char *who = v->kind == FF_VERDICT_NODE ? v->node : ranks;
	ck_assert_msg(v->kind == row->kind, "%s: %s, %s", row->what, ff_verdict_kind_name(v->kind),
		v->why[0].text);
	ck_assert_msg(!strcmp(who, row->who), "%s: %s", row->what, who);
	ck_assert_msg(v->fault && !strcmp(v->fault, row->fault), "%s: fault %s", row->what,
		v->fault ? v->fault : "none");
	ck_assert_msg(!strcmp(v->why[0].rule, ff_rule_name(row->rule)), "%s: rule %s", row->what,
		v->why[0].rule);
	ff_verdict_destroy(v);
	world_finish(&w);
}
END_TEST

START_TEST(without_its_rule_nobody_is_named)
{
	const struct row *row = &rows[_i];
	if (row->kind != FF_VERDICT_RANK && row->kind != FF_VERDICT_NODE) {
		return;
	}
	struct world w;
	struct ff_verdict *v = judge(&w, row, 1ull << row->rule);
	char ranks[64];
	world_who(v, ranks, sizeof ranks);
	const char *who = v->kind == FF_VERDICT_NODE ? v->node : ranks;
	ck_assert_msg(strcmp(who, row->who) || v->kind != row->kind, "%s: also by rule %s",
		row->what, v->why[0].rule);
	ff_verdict_destroy(v);
	world_finish(&w);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("rules_peer");
	TCase *tc = tcase_create("rules_peer");
	tcase_add_loop_test(tc, peers_decide, 0, N(rows));
	tcase_add_loop_test(tc, without_its_rule_nobody_is_named, 0, N(rows));
	tcase_add_loop_test(tc, a_habit_that_broke, 0, N(habits));
	suite_add_tcase(s, tc);
	SRunner *r = srunner_create(s);
	srunner_run_all(r, CK_ENV);
	int failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
