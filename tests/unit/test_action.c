#include "world.h"

/* What is to be done follows from the verdict and its proof. Two nodes of two ranks; rank 2 of
 * node-b runs out of GPU memory, and its text names another process there. */
static const struct world_stream streams[] = {
	{"0", FF_STREAM_RANK, 0, "node-a", 0, FF_UNKNOWN},
	{"1", FF_STREAM_RANK, 1, "node-a", 1, FF_UNKNOWN},
	{"b.agent", FF_STREAM_AGENT, FF_UNKNOWN, "node-b", FF_UNKNOWN, FF_UNKNOWN},
	{"2", FF_STREAM_RANK, 2, "node-b", 0, FF_UNKNOWN},
	{"3", FF_STREAM_RANK, 3, "node-b", 1, FF_UNKNOWN},
};

#define E(stream, ms, sig, fields) {stream, ms, sig, sig, fields, FF_TAG_NONE, 0, 0}
/* the others lost it: their ends are explained */
#define LOST(stream) E(stream, 2000, "gloo-peer-closed", NULL)
#define EXIT(local, rank, pid) \
	E("b.agent", 3000, "process-exit", \
		"rank=" rank ";local_rank=" local ";exit_code=1;pid=" pid)

static const struct {
	const char *what;
	struct world_event events[7];
	enum ff_action_kind kind;
	const char *node;
} rows[] = {
	{"the other process is no rank's",
		{E("2", 1000, "cuda-oom", "other_pid=77"), EXIT("0", "2", "42"),
			EXIT("1", "3", "43"), LOST("0"), LOST("1"), LOST("3")},
		FF_ACTION_EXCLUDE_NODE, "node-b"},
	{"it is the other rank of the node",
		{E("2", 1000, "cuda-oom", "other_pid=43"), EXIT("0", "2", "42"),
			EXIT("1", "3", "43"), LOST("0"), LOST("1"), LOST("3")},
		FF_ACTION_RAISE_MEMORY, NULL},
	{"the other rank's pid is not known",
		{E("2", 1000, "cuda-oom", "other_pid=77"), EXIT("0", "2", "42"), LOST("0"),
			LOST("1"), LOST("3")},
		FF_ACTION_RAISE_MEMORY, NULL},
	{"the text names no other",
		{E("2", 1000, "cuda-oom", NULL), EXIT("0", "2", "42"), EXIT("1", "3", "43"),
			LOST("0"), LOST("1"), LOST("3")},
		FF_ACTION_RAISE_MEMORY, NULL},
};

START_TEST(test_dirty)
{
	struct world w;
	world_init(&w, 4, "torchrun");
	world_tell(&w, "job@end", "state", "FAILED");
	world_streams(&w, streams, N(streams));
	world_events(&w, rows[_i].events, N(rows[_i].events));
	struct ff_verdict *v = world_judge(&w, 0);
	ck_assert_int_eq(v->kind, FF_VERDICT_RANK);
	ck_assert_int_eq(v->initiating[0].rank, 2);
	ck_assert_msg(v->action.kind == rows[_i].kind, "%s: %s", rows[_i].what,
		ff_action_name(v->action.kind));
	ck_assert(rows[_i].node ? !strcmp(v->action.nodes[0], rows[_i].node) : !v->action.nodes[0]);
	ff_verdict_destroy(v);
	world_finish(&w);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("action");
	TCase *tc = tcase_create("action");
	tcase_add_loop_test(tc, test_dirty, 0, N(rows));
	suite_add_tcase(s, tc);
	SRunner *sr = srunner_create(s);
	srunner_run_all(sr, CK_ENV);
	int failed = srunner_ntests_failed(sr);
	srunner_free(sr);
	return failed > 0;
}
