#include "world.h"

/* Two nodes of two ranks each, a file per rank, an agent per node. */
static const struct world_stream two_nodes[] = {
	{"a.agent", FF_STREAM_AGENT, FF_UNKNOWN, "node-a", FF_UNKNOWN, FF_UNKNOWN},
	{"0", FF_STREAM_RANK, 0, "node-a", 0, FF_UNKNOWN},
	{"1", FF_STREAM_RANK, 1, "node-a", 1, FF_UNKNOWN},
	{"b.agent", FF_STREAM_AGENT, FF_UNKNOWN, "node-b", FF_UNKNOWN, FF_UNKNOWN},
	{"2", FF_STREAM_RANK, 2, "node-b", 0, FF_UNKNOWN},
	{"3", FF_STREAM_RANK, 3, "node-b", 1, FF_UNKNOWN},
	{"sched", FF_STREAM_SCHEDULER, FF_UNKNOWN, NULL, FF_UNKNOWN, FF_UNKNOWN},
	{"kern", FF_STREAM_KERNEL, FF_UNKNOWN, "node-b", FF_UNKNOWN, FF_UNKNOWN},
	{"mixed", FF_STREAM_MIXED, FF_UNKNOWN, NULL, FF_UNKNOWN, FF_UNKNOWN},
};

#define EVENTS 12
#define E(stream, ms, sig, text, fields) \
	{ \
		stream, ms, sig, text, fields, FF_TAG_NONE, 0, 0 \
	}
#define EF(stream, ms, sig, text, fields, flags) \
	{ \
		stream, ms, sig, text, fields, FF_TAG_NONE, 0, flags \
	}
#define ROW(rank, local, code, pid) "rank=" rank ";local_rank=" local ";exit_code=" code ";pid=" pid
#define OFF(rule) (1ull << FF_RULE_##rule)
#define NOT_1 (1ull << 61) /* no rule: nothing was heard of rank 1 */
#define NO_RANKS (1ull << 62) /* no rule: no rank was started */
#define NO_STEPS (1ull << 63) /* no rule: the job died before its first step */

/* off: with this rule switched off, the answer is another one (otherwise). */
static const struct {
	const char *what;
	const char *end; /* job-end's state; NULL: none told */
	struct world_event events[EVENTS];
	enum ff_verdict_kind kind;
	const char *ranks, *node, *fault;
	enum ff_confidence confidence;
	enum ff_rule_id rule;
	uint64_t off;
	enum ff_verdict_kind otherwise;
} cases[] = {
	{"one rank raises, the others lose it", "FAILED",
		{E("2", 1000, "index-error", "IndexError: 57", NULL),
			E("0", 2000, "gloo-peer-closed", "closed", NULL),
			E("1", 2000, "gloo-peer-closed", "closed", NULL),
			E("3", 2000, "gloo-peer-closed", "closed", NULL)},
		FF_VERDICT_RANK, "2", NULL, "index-error", FF_CERTAIN, FF_RULE_own, OFF(own),
		FF_VERDICT_UNDETERMINED},
	{"a report that came first does not beat an own fault", "FAILED",
		{E("0", 1000, "straggler-hang", "timed out", "ran_for=8000"),
			E("1", 1000, "straggler-hang", "timed out", "ran_for=8000"),
			E("3", 1000, "straggler-hang", "timed out", "ran_for=8000"),
			E("2", 9000, "index-error", "IndexError: late", NULL)},
		FF_VERDICT_RANK, "2", NULL, "index-error", FF_CERTAIN, FF_RULE_own, 0, 0},
	{"an own fault behind the rank's own report starts nothing", "FAILED",
		{E("2", 1000, "index-error", "IndexError: 57", NULL),
			E("0", 2000, "gloo-peer-closed", "closed", NULL),
			E("0", 2500, "index-error", "IndexError: in the clean-up", NULL),
			E("1", 2000, "gloo-peer-closed", "closed", NULL),
			E("3", 2000, "gloo-peer-closed", "closed", NULL)},
		FF_VERDICT_RANK, "2", NULL, "index-error", FF_CERTAIN, FF_RULE_own, 0, 0},
	{"an own fault behind a second word about it is still the first", "FAILED",
		{E("2", 1000, "cublas-failure", "ALLOC_FAILED", NULL),
			E("2", 1500, "cuda-oom", "out of memory", NULL),
			E("0", 2000, "gloo-peer-closed", "closed", NULL),
			E("1", 2000, "gloo-peer-closed", "closed", NULL),
			E("3", 2000, "gloo-peer-closed", "closed", NULL)},
		FF_VERDICT_RANK, "2", NULL, "cuda-oom", FF_CERTAIN, FF_RULE_own, 0, 0},
	{"a second word about a fault is all that the rank shows", "FAILED",
		{E("2", 1000, "cublas-failure", "ALLOC_FAILED", NULL),
			E("0", 2000, "gloo-peer-closed", "closed", NULL),
			E("1", 2000, "gloo-peer-closed", "closed", NULL),
			E("3", 2000, "gloo-peer-closed", "closed", NULL)},
		FF_VERDICT_RANK, "2", NULL, "cublas-failure", FF_POSSIBLE, FF_RULE_handled, 0, 0},
	{"two different faults: the earlier one", "FAILED",
		{E("1", 5000, "index-error", "IndexError: 1", NULL),
			E("2", 1000, "cuda-oom", "out of memory", NULL),
			E("0", 6000, "gloo-peer-closed", "closed", NULL),
			E("3", 6000, "gloo-peer-closed", "closed", NULL)},
		FF_VERDICT_RANK, "2", NULL, "cuda-oom", FF_CERTAIN, FF_RULE_own, 0, 0},
	{"two different faults in one moment: neither follows from the other", "FAILED",
		{E("1", 1000, "index-error", "IndexError: 1", NULL),
			E("2", 1050, "cuda-oom", "out of memory", NULL),
			E("0", 2000, "gloo-peer-closed", "closed", NULL)},
		FF_VERDICT_RANK, "1,2", NULL, "index-error", FF_POSSIBLE, FF_RULE_several,
		OFF(several), FF_VERDICT_UNDETERMINED},
	{"a third one long after the two follows from them", "FAILED",
		{E("1", 1000, "index-error", "IndexError: 1", NULL),
			E("2", 1050, "cuda-oom", "out of memory", NULL),
			E("3", 3000, "import-error", "no x", NULL)},
		FF_VERDICT_RANK, "1,2", NULL, "index-error", FF_POSSIBLE, FF_RULE_several, 0, 0},
	{"two different faults on two clocks: nobody knows", "FAILED",
		{EF("1", 1000, "index-error", "IndexError: 1", NULL, CAPTURED),
			EF("2", 900000, "cuda-oom", "out of memory", NULL, CAPTURED)},
		FF_VERDICT_UNDETERMINED, "", NULL, "index-error", FF_NO_CONFIDENCE, FF_RULE_several,
		0, 0},
	{"two with an exit code that none of those has that lost a peer", "FAILED",
		{E("0", 1000, "gloo-peer-closed", "closed", NULL),
			E("1", 1000, "gloo-peer-closed", "closed", NULL),
			E("a.agent", 1200, "process-exit", "row", ROW("0", "0", "1", "41")),
			E("a.agent", 1200, "process-exit", "row", ROW("1", "1", "1", "42")),
			E("b.agent", 1200, "process-exit", "row", ROW("2", "0", "4", "43")),
			E("b.agent", 1200, "process-exit", "row", ROW("3", "1", "4", "44"))},
		FF_VERDICT_RANK, "2,3", NULL, "nonzero-exit", FF_LIKELY, FF_RULE_several, 0, 0},
	{"two left with the code of one that lost a peer: nobody knows", "FAILED",
		{E("0", 1000, "gloo-peer-closed", "closed", NULL),
			E("1", 1000, "gloo-peer-closed", "closed", NULL),
			E("a.agent", 1200, "process-exit", "row", ROW("0", "0", "4", "41")),
			E("a.agent", 1200, "process-exit", "row", ROW("1", "1", "1", "42")),
			E("b.agent", 1200, "process-exit", "row", ROW("2", "0", "4", "43")),
			E("b.agent", 1200, "process-exit", "row", ROW("3", "1", "4", "44"))},
		FF_VERDICT_UNDETERMINED, "", NULL, "gloo-peer-closed", FF_NO_CONFIDENCE,
		FF_RULE_undetermined, 0, 0},
	{"a rank whose end nobody explains makes it only likely", "FAILED",
		{E("2", 1000, "index-error", "IndexError: 57", NULL),
			E("0", 2000, "gloo-peer-closed", "closed", NULL)},
		FF_VERDICT_RANK, "2", NULL, "index-error", FF_LIKELY, FF_RULE_own, 0, 0},
	{"the same fault on every rank", "FAILED",
		{E("0", 1000, "import-error", "no flash_attn", NULL),
			E("1", 1010, "import-error", "no flash_attn", NULL),
			E("2", 1400, "import-error", "no flash_attn", NULL),
			E("3", 1300, "import-error", "no flash_attn", NULL)},
		FF_VERDICT_COMMON, "", NULL, "import-error", FF_CERTAIN, FF_RULE_common,
		OFF(common), FF_VERDICT_RANK},
	{"the same fault on three; the fourth was ended before it got there", "FAILED",
		{E("0", 1000, "import-error", "no flash_attn", NULL),
			E("1", 1010, "import-error", "no flash_attn", NULL),
			E("2", 1020, "import-error", "no flash_attn", NULL),
			E("b.agent", 1030, "agent-closing", "closing", "pid=44;signal=SIGTERM"),
			E("b.agent", 1990, "process-exit", "row", ROW("3", "1", "-15", "44"))},
		FF_VERDICT_COMMON, "", NULL, "import-error", FF_LIKELY, FF_RULE_common, 0, 0},
	{"the same fault, but somebody had an earlier one", "FAILED",
		{E("0", 3000, "import-error", "lazy", NULL),
			E("1", 3000, "import-error", "lazy", NULL),
			E("2", 1000, "cuda-oom", "out of memory", NULL),
			E("3", 3000, "import-error", "lazy", NULL)},
		FF_VERDICT_RANK, "2", NULL, "cuda-oom", FF_CERTAIN, FF_RULE_own, 0, 0},
	{"the same fault on one node of two", "FAILED",
		{E("2", 1000, "import-error", "no tokenlib", NULL),
			E("3", 1010, "import-error", "no tokenlib", NULL),
			E("0", 3000, "gloo-peer-closed", "closed", NULL),
			E("1", 3000, "gloo-peer-closed", "closed", NULL)},
		FF_VERDICT_NODE, "2,3", "node-b", "import-error", FF_LIKELY, FF_RULE_on_a_node,
		OFF(on_a_node), FF_VERDICT_RANK},
	{"the same fault on two of four", "FAILED",
		{E("1", 1000, "index-error", "IndexError: 57", NULL),
			E("3", 1010, "index-error", "IndexError: 57", NULL),
			E("0", 3000, "gloo-peer-closed", "closed", NULL),
			E("2", 3000, "gloo-peer-closed", "closed", NULL)},
		FF_VERDICT_RANK, "1,3", NULL, "index-error", FF_LIKELY, FF_RULE_on_some,
		OFF(on_some), FF_VERDICT_UNDETERMINED},
	{"killed from outside, named by the agent only", "FAILED",
		{E("b.agent", 1000, "agent-closing", "closing", "pid=44;signal=SIGTERM"),
			E("b.agent", 1100, "process-exit", "failed",
				"local_rank=0;exit_code=-9;pid=43"),
			E("b.agent", 1200, "process-exit", "row", ROW("3", "1", "-15", "44")),
			E("b.agent", 1201, "process-exit", "row", ROW("2", "0", "-9", "43")),
			E("0", 1000, "gloo-peer-closed", "closed", NULL),
			E("1", 1000, "gloo-peer-closed", "closed", NULL)},
		FF_VERDICT_RANK, "2", NULL, "sigkill", FF_CERTAIN, FF_RULE_killed, OFF(killed),
		FF_VERDICT_UNDETERMINED},
	{"killed beats its peers' exceptions that no text knows", "FAILED",
		{E("b.agent", 1200, "process-exit", "row", ROW("2", "0", "-11", "43")),
			E("0", 1000, "python-exception", "RemoteGone: 2", NULL),
			E("1", 1000, "python-exception", "RemoteGone: 2", NULL),
			E("3", 1000, "python-exception", "RemoteGone: 2", NULL)},
		FF_VERDICT_RANK, "2", NULL, "sigsegv", FF_LIKELY, FF_RULE_killed, OFF(killed),
		FF_VERDICT_UNDETERMINED},
	{"what the agent had to kill was not killed from outside", "FAILED",
		{E("b.agent", 1000, "agent-closing", "closing", "pid=43;signal=SIGTERM"),
			E("b.agent", 31000, "agent-forced", "forced", "pid=43;signal=9"),
			E("b.agent", 31200, "process-exit", "row", ROW("2", "0", "-9", "43")),
			E("0", 900, "straggler-hang", "timed out", "ran_for=8000"),
			E("1", 900, "straggler-hang", "timed out", "ran_for=8000"),
			E("3", 900, "straggler-hang", "timed out", "ran_for=8000")},
		FF_VERDICT_RANK, "2", NULL, "straggler-hang", FF_LIKELY, FF_RULE_late, OFF(late),
		FF_VERDICT_UNDETERMINED},
	{"what was killed after another left without a word is its clean-up", "FAILED",
		{E("b.agent", 1000, "process-exit", "row", ROW("2", "0", "1", "43")),
			E("b.agent", 31000, "process-exit", "row", ROW("3", "1", "-9", "44"))},
		FF_VERDICT_UNDETERMINED, "", NULL, NULL, FF_NO_CONFIDENCE, FF_RULE_undetermined, 0,
		0},
	{"an exit object says it was killed", "FAILED",
		{E("0", 1000, "gloo-peer-closed", "closed", NULL),
			E("1", 1000, "gloo-peer-closed", "closed", NULL),
			E("3", 1000, "gloo-peer-closed", "closed", NULL)},
		FF_VERDICT_UNDETERMINED, "", NULL, "gloo-peer-closed", FF_NO_CONFIDENCE,
		FF_RULE_undetermined, 0, 0},
	{"left with a code and no text", "FAILED",
		{E("b.agent", 1200, "process-exit", "row", ROW("2", "0", "3", "43")),
			E("0", 1000, "gloo-peer-closed", "closed", NULL),
			E("1", 1000, "gloo-peer-closed", "closed", NULL),
			E("3", 1000, "gloo-peer-closed", "closed", NULL)},
		FF_VERDICT_RANK, "2", NULL, "silent-exit", FF_LIKELY, FF_RULE_silent_exit,
		OFF(silent_exit), FF_VERDICT_UNDETERMINED},
	{"an exception in a thread, then the peers time out", "FAILED",
		{EF("2", 1000, "python-exception", "in thread", NULL, HANDLED),
			E("0", 9000, "straggler-hang", "timed out", "ran_for=8000"),
			E("1", 9000, "straggler-hang", "timed out", "ran_for=8000"),
			E("3", 9000, "straggler-hang", "timed out", "ran_for=8000")},
		FF_VERDICT_RANK, "2", NULL, "python-exception", FF_POSSIBLE, FF_RULE_handled,
		OFF(handled), FF_VERDICT_UNDETERMINED},
	{"everybody names rank 3", "FAILED",
		{E("0", 1000, "straggler-hang", "barrier", "missing_ranks=3"),
			E("1", 1100, "gloo-peer-closed", "closed", NULL),
			E("2", 1100, "gloo-peer-closed", "closed", NULL)},
		FF_VERDICT_RANK, "3", NULL, "straggler-hang", FF_LIKELY, FF_RULE_accused,
		OFF(accused), FF_VERDICT_RANK},
	{"rank 3 is named, but waits itself", "FAILED",
		{E("0", 1000, "straggler-hang", "barrier", "missing_ranks=3"),
			E("3", 1000, "straggler-hang", "timed out", "ran_for=8000"),
			E("1", 1100, "straggler-hang", "timed out", "ran_for=8000"),
			E("2", 1100, "straggler-hang", "timed out", "ran_for=8000")},
		FF_VERDICT_UNDETERMINED, "", NULL, "straggler-hang", FF_NO_CONFIDENCE,
		FF_RULE_undetermined, 0, 0},
	{"rank 2 is in another collective than all others", "FAILED",
		{E("0", 1000, "collective-mismatch", "m", "rank_a=0;rank_b=2"),
			E("1", 1000, "collective-mismatch", "m", "rank_a=1;rank_b=2"),
			E("2", 1000, "collective-mismatch", "m", "rank_a=2;rank_b=0")},
		FF_VERDICT_RANK, "2", NULL, "collective-mismatch", FF_LIKELY, FF_RULE_mismatch,
		OFF(mismatch), FF_VERDICT_UNDETERMINED},
	{"two ranks differ: no majority", "FAILED",
		{E("0", 1000, "collective-mismatch", "m", "rank_a=0;rank_b=1"),
			E("1", 1000, "collective-mismatch", "m", "rank_a=1;rank_b=0")},
		FF_VERDICT_UNDETERMINED, "", NULL, "collective-mismatch", FF_NO_CONFIDENCE,
		FF_RULE_undetermined, 0, 0},
	{"rank 3 alone does not end badly", "FAILED",
		{E("0", 1000, "gloo-peer-closed", "closed", NULL),
			E("1", 1000, "gloo-peer-closed", "closed", NULL),
			E("2", 1000, "gloo-peer-closed", "closed", NULL),
			E("3", 900, "rank-map", "hello", "rank=3"),
			E("b.agent", 1100, "process-exit", "row", ROW("0", "0", "1", "40")),
			E("b.agent", 1200, "process-exit", "row", ROW("1", "1", "1", "41")),
			E("b.agent", 1300, "process-exit", "row", ROW("2", "0", "1", "42"))},
		FF_VERDICT_RANK, "3", NULL, "early-exit", FF_LIKELY, FF_RULE_early, OFF(early),
		FF_VERDICT_UNDETERMINED},
	{"a node without a farewell", "FAILED",
		{E("0", 1000, "gloo-peer-closed", "closed", NULL),
			E("1", 1000, "gloo-peer-closed", "closed", NULL)},
		FF_VERDICT_NODE, "2,3", "node-b", "node-lost", FF_LIKELY, FF_RULE_node_gone,
		OFF(node_gone), FF_VERDICT_UNDETERMINED},
	{"a node that only times out is not lost", "FAILED",
		{E("0", 1000, "straggler-hang", "timed out", "ran_for=8000"),
			E("1", 1000, "straggler-hang", "timed out", "ran_for=8000")},
		FF_VERDICT_UNDETERMINED, "", NULL, "straggler-hang", FF_NO_CONFIDENCE,
		FF_RULE_undetermined, 0, 0},
	{"a node without a farewell, and a rank elsewhere that nobody heard", "FAILED",
		{E("0", 1000, "gloo-peer-closed", "closed", NULL)}, FF_VERDICT_UNDETERMINED, "",
		NULL, "gloo-peer-closed", FF_NO_CONFIDENCE, FF_RULE_undetermined, NOT_1, 0},
	{"the same fault on two; nothing tells that the others did not have it", "FAILED",
		{E("1", 1000, "index-error", "IndexError: 57", NULL),
			E("3", 1010, "index-error", "IndexError: 57", NULL)},
		FF_VERDICT_UNDETERMINED, "", NULL, "index-error", FF_NO_CONFIDENCE, FF_RULE_on_some,
		0, 0},
	{"a fault of one, and another that left with 1 without a word", "FAILED",
		{E("1", 1000, "index-error", "IndexError: 57", NULL),
			E("b.agent", 1200, "process-exit", "row", ROW("2", "0", "1", "43"))},
		FF_VERDICT_UNDETERMINED, "", NULL, "index-error", FF_NO_CONFIDENCE, FF_RULE_own, 0,
		0},
	{"an exception's words are lost, and the others were ended", "FAILED",
		{E("b.agent", 1100, "process-exit", "row", ROW("2", "0", "1", "43")),
			E("b.agent", 1000, "agent-closing", "c", "pid=44;signal=SIGTERM"),
			E("b.agent", 1200, "process-exit", "row", ROW("3", "1", "-15", "44")),
			E("0", 1000, "gloo-peer-closed", "closed", NULL),
			E("1", 1000, "gloo-peer-closed", "closed", NULL)},
		FF_VERDICT_UNDETERMINED, "", NULL, "gloo-peer-closed", FF_NO_CONFIDENCE,
		FF_RULE_undetermined, 0, 0},
	{"two left with 1 without a word: that is no code of their own", "FAILED",
		{E("0", 1000, "gloo-peer-closed", "closed", NULL),
			E("1", 1000, "gloo-peer-closed", "closed", NULL),
			E("b.agent", 1200, "process-exit", "row", ROW("2", "0", "1", "43")),
			E("b.agent", 1200, "process-exit", "row", ROW("3", "1", "1", "44"))},
		FF_VERDICT_UNDETERMINED, "", NULL, "gloo-peer-closed", FF_NO_CONFIDENCE,
		FF_RULE_undetermined, 0, 0},
	{"an abort without a word may be that of one that lost a peer", "FAILED",
		{E("b.agent", 1200, "process-exit", "row", ROW("2", "0", "-6", "43")),
			E("0", 1100, "gloo-peer-closed", "closed", NULL),
			E("1", 1100, "gloo-peer-closed", "closed", NULL),
			E("3", 1100, "gloo-peer-closed", "closed", NULL)},
		FF_VERDICT_UNDETERMINED, "", NULL, "gloo-peer-closed", FF_NO_CONFIDENCE,
		FF_RULE_undetermined, 0, 0},
	{"killed in a job that the scheduler ended", "PREEMPTED",
		{E("sched", 1000, "process-exit", "e", "rank=2;exit_code=-9"),
			E("0", 900, "straggler-hang", "timed out", "ran_for=8000")},
		FF_VERDICT_UNDETERMINED, "", NULL, "straggler-hang", FF_NO_CONFIDENCE,
		FF_RULE_undetermined, 0, 0},
	{"a process of nobody knows which rank was killed, and another aborted", "FAILED",
		{E("mixed", 1000, "host-oom-kill", "Killed process 99", NULL),
			E("0", 1100, "collective-mismatch", "m", NULL),
			E("b.agent", 1200, "process-exit", "row", ROW("2", "0", "-6", "43"))},
		FF_VERDICT_UNDETERMINED, "", NULL, "host-oom-kill", FF_NO_CONFIDENCE,
		FF_RULE_undetermined, 0, 0},
	{"who is not among the pids that the agents end died by itself", "FAILED",
		{E("2", 1000, "index-error", "IndexError: 57", NULL),
			E("b.agent", 1001, "agent-closing", "c", "pid=44;signal=SIGTERM"),
			E("a.agent", 1001, "agent-closing", "c", "pid=41;signal=SIGTERM"),
			E("a.agent", 1001, "agent-closing", "c", "pid=42;signal=SIGTERM"),
			E("b.agent", 1200, "process-exit", "row", ROW("2", "0", "1", "43"))},
		FF_VERDICT_RANK, "2", NULL, "index-error", FF_CERTAIN, FF_RULE_own, 0, 0},
	{"some of the pids that the agents end are not told: who died is not known", "FAILED",
		{E("2", 1000, "index-error", "IndexError: 57", NULL),
			E("b.agent", 1001, "agent-closing", "c", "pid=44;signal=SIGTERM"),
			E("b.agent", 1200, "process-exit", "row", ROW("2", "0", "1", "43"))},
		FF_VERDICT_RANK, "2", NULL, "index-error", FF_LIKELY, FF_RULE_own, 0, 0},
	{"the kernel says that a GPU's memory is broken", "FAILED",
		{E("kern", 1000, "ecc-uncorrectable", "NVRM: Xid 48", NULL),
			E("0", 2000, "gloo-peer-closed", "closed", NULL),
			E("1", 2000, "gloo-peer-closed", "closed", NULL)},
		FF_VERDICT_NODE, "2,3", "node-b", "ecc-uncorrectable", FF_CERTAIN, FF_RULE_hardware,
		OFF(hardware), FF_VERDICT_UNDETERMINED},
	{"a rank's own text about the hardware is at most likely", "FAILED",
		{E("2", 1000, "ecc-uncorrectable", "CUDA error: ECC", NULL),
			E("0", 2000, "gloo-peer-closed", "closed", NULL)},
		FF_VERDICT_NODE, "2", "node-b", "ecc-uncorrectable", FF_LIKELY, FF_RULE_hardware,
		OFF(hardware), FF_VERDICT_RANK},
	{"the kernel's out-of-memory line names a rank's pid", "FAILED",
		{E("kern", 1000, "host-oom-kill", "Killed process 43", "pid=43"),
			E("b.agent", 1200, "process-exit", "row", ROW("2", "0", "-9", "43")),
			E("0", 2000, "gloo-peer-closed", "closed", NULL)},
		FF_VERDICT_RANK, "2", NULL, "host-oom-kill", FF_LIKELY, FF_RULE_own, 0, 0},
	{"time limit, nothing else", "TIMEOUT",
		{E("sched", 9000, "time-limit", "DUE TO TIME LIMIT", NULL)}, FF_VERDICT_EXTERNAL,
		"", NULL, "time-limit", FF_CERTAIN, FF_RULE_external, OFF(external),
		FF_VERDICT_UNDETERMINED},
	{"preempted; reports of lost peers come with it", "PREEMPTED",
		{E("sched", 9000, "preempted", "DUE TO PREEMPTION", NULL),
			E("0", 8800, "gloo-peer-closed", "closed", NULL)},
		FF_VERDICT_EXTERNAL, "", NULL, "preempted", FF_LIKELY, FF_RULE_external, 0, 0},
	{"an own fault long before the time limit", "TIMEOUT",
		{E("2", 1000, "cuda-oom", "out of memory", NULL),
			E("sched", 900000, "time-limit", "DUE TO TIME LIMIT", NULL),
			E("0", 900001, "sigterm", "SIGTERM", NULL)},
		FF_VERDICT_RANK, "2", NULL, "cuda-oom", FF_LIKELY, FF_RULE_own, 0, 0},
	{"timeouts long before the time limit", "TIMEOUT",
		{E("0", 1000, "straggler-hang", "timed out", "ran_for=8000"),
			E("1", 1000, "straggler-hang", "timed out", "ran_for=8000"),
			E("sched", 900000, "time-limit", "DUE TO TIME LIMIT", NULL)},
		FF_VERDICT_UNDETERMINED, "", NULL, "straggler-hang", FF_NO_CONFIDENCE,
		FF_RULE_undetermined, 0, 0},
	{"the launcher is told to stop", "FAILED",
		{E("a.agent", 1000, "agent-signalled", "Received 15", "signal=15"),
			E("a.agent", 1001, "agent-closing", "closing", "pid=1;signal=SIGTERM"),
			E("0", 1002, "sigterm", "SIGTERM", NULL)},
		FF_VERDICT_EXTERNAL, "", NULL, "sigterm", FF_LIKELY, FF_RULE_external, 0, 0},
	{"the launcher is interrupted", "FAILED",
		{E("a.agent", 1000, "agent-signalled", "SIGINT, exiting", "signal=SIGINT"),
			E("0", 1002, "sigterm", "SIGTERM", NULL)},
		FF_VERDICT_EXTERNAL, "", NULL, "cancelled", FF_LIKELY, FF_RULE_external, 0, 0},
	{"the launcher is told to stop after a rank's own fault", "FAILED",
		{E("2", 500, "index-error", "IndexError: 57", NULL),
			E("a.agent", 1000, "agent-signalled", "Received 15", "signal=15"),
			E("0", 1002, "sigterm", "SIGTERM", NULL),
			E("1", 1002, "sigterm", "SIGTERM", NULL),
			E("3", 1002, "sigterm", "SIGTERM", NULL)},
		FF_VERDICT_RANK, "2", NULL, "index-error", FF_CERTAIN, FF_RULE_own, 0, 0},
	{"Ray left out lines like it, and the others are silent", "FAILED",
		{E("2", 1000, "index-error", "IndexError: 57", "repeats=3")},
		FF_VERDICT_UNDETERMINED, "", NULL, "index-error", FF_NO_CONFIDENCE, FF_RULE_own, 0,
		0},
	{"Ray left out lines like it, one other is silent", "FAILED",
		{E("2", 1000, "index-error", "IndexError: 57", "repeats=1"),
			E("0", 2000, "gloo-peer-closed", "closed", NULL),
			E("1", 2000, "gloo-peer-closed", "closed", NULL)},
		FF_VERDICT_UNDETERMINED, "", NULL, "index-error", FF_NO_CONFIDENCE, FF_RULE_own, 0,
		0},
	{"Ray left out lines like it, and the others show something else", "FAILED",
		{E("2", 1000, "index-error", "IndexError: 57", "repeats=3"),
			E("0", 2000, "gloo-peer-closed", "closed", NULL),
			E("1", 2000, "gloo-peer-closed", "closed", NULL),
			E("3", 2000, "gloo-peer-closed", "closed", NULL)},
		FF_VERDICT_RANK, "2", NULL, "index-error", FF_LIKELY, FF_RULE_own, 0, 0},
	{"Ray shows the first and the last of four", "FAILED",
		{E("0", 1000, "index-error", "IndexError: 57", NULL),
			E("3", 1000, "index-error", "IndexError: 57", "repeats=3")},
		FF_VERDICT_UNDETERMINED, "", NULL, "index-error", FF_NO_CONFIDENCE, FF_RULE_own, 0,
		0},
	{"Ray shows the first and the last of two", "FAILED",
		{E("0", 1000, "index-error", "IndexError: 57", NULL),
			E("3", 1000, "index-error", "IndexError: 57", "repeats=1"),
			E("1", 2000, "gloo-peer-closed", "closed", NULL),
			E("2", 2000, "gloo-peer-closed", "closed", NULL)},
		FF_VERDICT_RANK, "0,3", NULL, "index-error", FF_LIKELY, FF_RULE_on_some, 0, 0},
	{"Ray left out lines like one of two faults in one moment", "FAILED",
		{E("1", 1000, "index-error", "IndexError: 1", NULL),
			E("2", 1050, "cuda-oom", "out of memory", "repeats=2"),
			E("0", 2000, "gloo-peer-closed", "closed", NULL)},
		FF_VERDICT_UNDETERMINED, "", NULL, "index-error", FF_NO_CONFIDENCE,
		FF_RULE_undetermined, 0, 0},
	{"all left a report, which Ray shows once", "FAILED",
		{E("2", 1000, "index-error", "IndexError: 57", NULL),
			E("0", 2000, "gloo-peer-closed", "closed", "repeats=3"),
			E("1", 2000, "gloo-peer-closed", "closed", NULL),
			E("3", 2000, "gloo-peer-closed", "closed", NULL)},
		FF_VERDICT_RANK, "2", NULL, "index-error", FF_CERTAIN, FF_RULE_own, 0, 0},
	{"only the scheduler's state", "CANCELLED by 1000", {{0}}, FF_VERDICT_EXTERNAL, "", NULL,
		"cancelled", FF_LIKELY, FF_RULE_external, 0, 0},
	{"ended well", "COMPLETED", {{0}}, FF_VERDICT_CLEAN, "", NULL, NULL, FF_CERTAIN,
		FF_RULE_clean, OFF(clean), FF_VERDICT_UNDETERMINED},
	{"ended well, with a fault that was recovered from", "COMPLETED",
		{EF("2", 1000, "index-error", "retry", NULL, RECOVERED)}, FF_VERDICT_CLEAN, "",
		NULL, NULL, FF_CERTAIN, FF_RULE_clean, 0, 0},
	{"status 0, but no step was done and all failed", "COMPLETED",
		{E("0", 1000, "import-error", "no x", NULL),
			E("1", 1000, "import-error", "no x", NULL),
			E("2", 1000, "import-error", "no x", NULL),
			E("3", 1000, "import-error", "no x", NULL)},
		FF_VERDICT_COMMON, "", NULL, "import-error", FF_CERTAIN, FF_RULE_common, NO_STEPS,
		0},
	{"one left with an error code, and nobody depends on it", "FAILED",
		{E("b.agent", 1200, "process-exit", "row", ROW("2", "0", "4", "43"))},
		FF_VERDICT_RANK, "2", NULL, "silent-exit", FF_LIKELY, FF_RULE_silent_exit, 0, 0},
	{"two left with different error codes, and nobody complains", "FAILED",
		{E("b.agent", 1200, "process-exit", "row", ROW("2", "0", "4", "43")),
			E("b.agent", 1200, "process-exit", "row", ROW("3", "1", "1", "44"))},
		FF_VERDICT_UNDETERMINED, "", NULL, NULL, FF_NO_CONFIDENCE, FF_RULE_undetermined, 0,
		0},
	{"a step is cancelled, and then every task is killed", "FAILED",
		{E("sched", 1000, "step-cancelled", "*** STEP 7.0 CANCELLED ***", NULL),
			E("sched", 1300, "process-exit", "e", "rank=0;exit_code=-9"),
			E("sched", 1300, "process-exit", "e", "rank=1;exit_code=-9"),
			E("sched", 1300, "process-exit", "e", "rank=2;exit_code=-9"),
			E("sched", 1300, "process-exit", "e", "rank=3;exit_code=-9")},
		FF_VERDICT_EXTERNAL, "", NULL, "cancelled", FF_LIKELY, FF_RULE_external, 0, 0},
	{"a step is cancelled after a task was killed: that one", "FAILED",
		{E("sched", 1000, "process-exit", "e", "rank=2;exit_code=-9"),
			E("sched", 1300, "step-cancelled", "*** STEP 7.0 CANCELLED ***", NULL),
			E("sched", 1600, "process-exit", "e", "rank=0;exit_code=-9"),
			E("sched", 1600, "process-exit", "e", "rank=1;exit_code=-9"),
			E("sched", 1600, "process-exit", "e", "rank=3;exit_code=-9")},
		FF_VERDICT_RANK, "2", NULL, "sigkill", FF_CERTAIN, FF_RULE_killed, 0, 0},
	{"nothing at all", "FAILED", {{0}}, FF_VERDICT_UNDETERMINED, "", NULL, NULL,
		FF_NO_CONFIDENCE, FF_RULE_undetermined, 0, 0},
	{"a fault without a rank, and one rank that ended by itself", "FAILED",
		{E("mixed", 1000, "index-error", "IndexError: 57", NULL),
			E("b.agent", 1001, "agent-closing", "c", "pid=44;signal=SIGTERM"),
			E("a.agent", 1001, "agent-closing", "c", "pid=41;signal=SIGTERM"),
			E("a.agent", 1001, "agent-closing", "c", "pid=42;signal=SIGTERM"),
			E("b.agent", 1200, "process-exit", "row", ROW("2", "0", "1", "43")),
			E("b.agent", 1200, "process-exit", "row", ROW("3", "1", "-15", "44")),
			E("a.agent", 1200, "process-exit", "row", ROW("0", "0", "-15", "41")),
			E("a.agent", 1200, "process-exit", "row", ROW("1", "1", "-15", "42"))},
		FF_VERDICT_RANK, "2", NULL, "index-error", FF_LIKELY, FF_RULE_own, 0, 0},
	{"one lack with two texts on every rank, logged by one and deadly to the others", "FAILED",
		{E("0", 1000, "host-oom-kill", "killed", NULL),
			EF("1", 1000, "host-oom-kill", "a worker was killed", NULL, HANDLED),
			E("2", 1000, "host-oom-kill", "out of memory", NULL),
			E("3", 1000, "host-oom-kill", "killed", NULL)},
		FF_VERDICT_COMMON, "", NULL, "host-oom-kill", FF_CERTAIN, FF_RULE_common, 0, 0},
	{"the launcher fails before any rank speaks", "FAILED",
		{E("a.agent", 1000, "index-error", "IndexError: in the launcher", NULL)},
		FF_VERDICT_COMMON, "", NULL, "index-error", FF_LIKELY, FF_RULE_own,
		NO_STEPS | NO_RANKS, 0},
	{"the same handled fault on every rank", "FAILED",
		{EF("0", 1000, "index-error", "handled", NULL, HANDLED),
			EF("1", 1000, "index-error", "handled", NULL, HANDLED),
			EF("2", 1000, "index-error", "handled", NULL, HANDLED),
			EF("3", 1000, "index-error", "handled", NULL, HANDLED)},
		FF_VERDICT_COMMON, "", NULL, "index-error", FF_POSSIBLE, FF_RULE_handled, 0, 0},
	{"several nodes not responding: one of them may only have forwarded", "FAILED",
		{E("sched", 1000, "node-lost", "not responding", "node=node-a,node-b"),
			E("sched", 1001, "node-lost", "on failed node", "node=node-a"),
			E("0", 900, "straggler-hang", "timed out", "ran_for=8000"),
			E("2", 900, "straggler-hang", "timed out", "ran_for=8000")},
		FF_VERDICT_UNDETERMINED, "", NULL, "node-lost", FF_NO_CONFIDENCE,
		FF_RULE_undetermined, 0, 0},
	{"an abort after a watchdog's words without a rank is not its own", "FAILED",
		{E("mixed", 1000, "collective-mismatch", "enforce fail", NULL),
			E("b.agent", 1200, "process-exit", "row", ROW("2", "0", "-6", "43")),
			E("0", 1100, "gloo-peer-closed", "closed", NULL),
			E("1", 1100, "gloo-peer-closed", "closed", NULL)},
		FF_VERDICT_UNDETERMINED, "", NULL, "collective-mismatch", FF_NO_CONFIDENCE,
		FF_RULE_undetermined, 0, 0},
	{"a fault without a rank, and two that ended by themselves", "FAILED",
		{E("mixed", 1000, "index-error", "IndexError: 57", NULL),
			E("b.agent", 1200, "process-exit", "row", ROW("2", "0", "1", "43")),
			E("b.agent", 1200, "process-exit", "row", ROW("3", "1", "1", "44"))},
		FF_VERDICT_UNDETERMINED, "", NULL, "index-error", FF_NO_CONFIDENCE,
		FF_RULE_undetermined, 0, 0},
};

/* The streams of ranks, or of one, are taken away: the agents' and the others' are left. */
static void drop_ranks(struct world *w, int32_t only)
{
	size_t kept = 0;
	for (size_t i = 0; i < w->n; i++) {
		int32_t rank = w->streams[i]->origin.rank;
		if (rank == FF_UNKNOWN || (only != FF_UNKNOWN && rank != only)) {
			w->streams[kept++] = w->streams[i];
		} else {
			ff_stream_destroy(w->streams[i]);
		}
	}
	w->n = kept;
}

static void first_steps(struct world *w, int i)
{
	for (int r = 0; r < 4 && !(cases[i].off & NO_STEPS); r++) {
		if (r == 1 && (cases[i].off & NOT_1)) {
			continue;
		}
		char name[2] = {(char)('0' + r), '\0'};
		world_progress(w, name, 100, false);
	}
}

static struct ff_verdict *judge_case(struct world *w, int i, uint64_t off)
{
	world_init(w, 4, "torchrun");
	world_streams(w, two_nodes, N(two_nodes));
	if (cases[i].off & NO_RANKS) {
		drop_ranks(w, FF_UNKNOWN);
	}
	if (cases[i].off & NOT_1) {
		drop_ranks(w, 1);
	}
	first_steps(w, i);
	world_events(w, cases[i].events, EVENTS);
	if (cases[i].end) {
		world_tell(w, "job@end", "state", cases[i].end);
	}
	return world_judge(w, off);
}

START_TEST(table_decides)
{
	struct world w;
	struct ff_verdict *v = judge_case(&w, _i, 0);
	char who[64];
	world_who(v, who, sizeof who);
	const char *what = cases[_i].what, *fault = cases[_i].fault, *node = cases[_i].node;
	ck_assert_msg(v->kind == cases[_i].kind, "%s: %s, %s", what, ff_verdict_kind_name(v->kind),
		v->summary);
	ck_assert_msg(!strcmp(who, cases[_i].ranks), "%s: ranks %s", what, who);
	ck_assert_msg(!node == !v->node && (!node || !strcmp(node, v->node)), "%s: node %s", what,
		v->node ? v->node : "none");
	ck_assert_msg(!fault == !v->fault && (!fault || !strcmp(fault, v->fault)), "%s: fault %s",
		what, v->fault ? v->fault : "none");
	ck_assert_msg(v->confidence == cases[_i].confidence, "%s: confidence %d", what,
		(int)v->confidence);
	ck_assert_msg(!strcmp(v->why[0].rule, ff_rule_name(cases[_i].rule)), "%s: rule %s", what,
		v->why[0].rule);
	ff_verdict_destroy(v);
	world_finish(&w);
}
END_TEST

START_TEST(without_its_rule_the_answer_is_another)
{
	if (!(cases[_i].off & ~(NOT_1 | NO_STEPS | NO_RANKS))) {
		return;
	}
	struct world w;
	struct ff_verdict *v = judge_case(&w, _i, cases[_i].off);
	ck_assert_msg(v->kind == cases[_i].otherwise, "%s: without its rule %s (%s)",
		cases[_i].what, ff_verdict_kind_name(v->kind), v->why[0].rule);
	ck_assert_msg(strcmp(v->why[0].rule, ff_rule_name(cases[_i].rule)), "%s", cases[_i].what);
	ff_verdict_destroy(v);
	world_finish(&w);
}
END_TEST

START_TEST(every_rule_but_the_last_has_a_case_that_needs_it)
{
	uint64_t seen = OFF(silent); /* habits: test_rules_peer.c */
	for (size_t i = 0; i < N(cases); i++) {
		seen |= cases[i].off;
	}
	for (int r = 0; r < FF_RULE_undetermined; r++) {
		ck_assert_msg(seen >> r & 1, "%s", ff_rule_name((enum ff_rule_id)r));
	}
}
END_TEST

/* ---- who looks guilty, and what became of the others */

static const struct {
	const char *what;
	struct world_event events[EVENTS];
	int32_t rank; /* whom the text is about */
	const char *not, *because; /* words of its why_not (NULL: none) and collateral entry */
	enum ff_status status;
	int64_t after_ms; /* NEVER: null */
} others[] = {
	{"torchrun's pick only lost a peer",
		{E("2", 1000, "index-error", "IndexError: 57", NULL),
			E("0", 2000, "gloo-peer-closed", "closed", NULL),
			E("a.agent", 2100, "process-exit", "f", "local_rank=0;exit_code=1;pid=41")},
		0,
		"torchrun on node-a names it, which sees that node alone; it only says that its "
		"peer closed the connection",
		"it only says that its peer closed the connection", FF_STATUS_COLLATERAL, 1000},
	{"torchrun's pick is on the same node",
		{E("1", 1000, "index-error", "IndexError: 57", NULL),
			E("0", 2000, "gloo-peer-closed", "closed", NULL),
			E("a.agent", 2100, "process-exit", "f", "local_rank=0;exit_code=1;pid=41")},
		0,
		"torchrun on node-a names it: whole seconds, a tie goes to the lowest local rank; "
		"it only says that its peer closed the connection",
		"closed the connection", FF_STATUS_COLLATERAL, 1000},
	{"torchrun's pick has a later fault of its own",
		{E("2", 1000, "index-error", "IndexError: 57", NULL),
			E("0", 5000, "cuda-oom", "out of memory", NULL),
			E("a.agent", 5100, "process-exit", "f", "local_rank=0;exit_code=1;pid=41")},
		0, "its own fault (cuda-oom) came 4.0 s later", "came 4.0 s later",
		FF_STATUS_COLLATERAL, 4000},
	{"the first to time out",
		{E("0", 9000, "straggler-hang", "timed out", "ran_for=8000"),
			E("1", 9500, "straggler-hang", "timed out", "ran_for=8000"),
			E("3", 9500, "straggler-hang", "timed out", "ran_for=8000")},
		0, "timed out first; so it entered first and had waited longest: healthy",
		"it only says that it waited for others until the time limit",
		FF_STATUS_COLLATERAL, NEVER},
	{"the first error is a report",
		{E("1", 1000, "straggler-hang", "timed out", NULL),
			E("2", 9000, "index-error", "IndexError: late", NULL)},
		1, "its error is the first in time; it only says that it waited",
		"it only says that it waited", FF_STATUS_COLLATERAL, -8000},
	{"the loudest",
		{E("2", 1000, "index-error", "IndexError: 57", NULL),
			E("3", 2000, "gloo-peer-closed", "closed", NULL),
			E("1", 2000, "gloo-peer-closed", "closed", NULL),
			E("1", 2100, "gloo-peer-closed", "closed again", NULL),
			E("1", 2200, "gloo-peer-closed", "and again", NULL)},
		1, "is the loudest, with 3 fault lines", "closed the connection",
		FF_STATUS_COLLATERAL, 1000},
	{"whom its peers name",
		{E("2", 1000, "index-error", "IndexError: 57", NULL),
			E("0", 9000, "straggler-hang", "barrier", "missing_ranks=1"),
			E("3", 9000, "straggler-hang", "barrier", "missing_ranks=1")},
		1, "2 reports of its peers name it; ", "reports nothing", FF_STATUS_QUIET, NEVER},
	{"whom one peer names",
		{E("2", 1000, "index-error", "IndexError: 57", NULL),
			E("0", 9000, "straggler-hang", "barrier", "missing_ranks=1")},
		1, NULL, "reports nothing", FF_STATUS_QUIET, NEVER},
	{"nobody is the loudest of equals",
		{E("2", 1000, "index-error", "IndexError: 57", NULL),
			E("3", 2000, "gloo-peer-closed", "closed", NULL),
			E("1", 2000, "gloo-peer-closed", "closed", NULL)},
		1, NULL, "closed the connection", FF_STATUS_COLLATERAL, 1000},
	{"clocks that nobody compares give no delay",
		{EF("2", 1000, "index-error", "IndexError: 57", NULL, CAPTURED),
			EF("0", 2000, "gloo-peer-closed", "closed", NULL, CAPTURED)},
		0, NULL, "closed the connection", FF_STATUS_COLLATERAL, NEVER},
	{"ended by its launcher",
		{E("2", 1000, "index-error", "IndexError: 57", NULL),
			E("b.agent", 1100, "agent-closing", "c", "pid=44;signal=SIGTERM"),
			E("b.agent", 1200, "process-exit", "row", ROW("3", "1", "-15", "44"))},
		3, NULL, "SIGTERM from its launcher ended it", FF_STATUS_TORN_DOWN, NEVER},
	{"ended by force",
		{E("2", 1000, "index-error", "IndexError: 57", NULL),
			E("b.agent", 1100, "agent-closing", "c", "pid=44;signal=SIGTERM"),
			E("b.agent", 1150, "agent-forced", "f", "pid=44;signal=SIGKILL"),
			E("b.agent", 1200, "process-exit", "row", ROW("3", "1", "-9", "44"))},
		3, NULL, "its launcher killed it, because it did not end on SIGTERM",
		FF_STATUS_TORN_DOWN, NEVER},
	{"heard, and without a word",
		{E("2", 1000, "index-error", "IndexError: 57", NULL)}, 3, NULL,
		"was heard to its end and reports nothing", FF_STATUS_QUIET, NEVER},
};

START_TEST(others_are_explained)
{
	struct world w;
	const char *what = others[_i].what, *want = others[_i].not, *got = NULL;
	const struct ff_collateral *c = NULL;
	world_init(&w, 4, "torchrun");
	world_streams(&w, two_nodes, N(two_nodes));
	world_events(&w, others[_i].events, EVENTS);
	world_tell(&w, "job@end", "state", "FAILED");
	struct ff_verdict *v = world_judge(&w, 0);
	for (size_t i = 0; i < v->nwhy_not; i++) {
		got = v->why_not[i].rank == others[_i].rank ? v->why_not[i].text : got;
	}
	for (size_t i = 0; i < v->ncollateral; i++) {
		c = v->collateral[i].rank == others[_i].rank ? &v->collateral[i] : c;
	}
	ck_assert_msg(!want == !got && (!want || strstr(got, want)), "%s: not: %s", what,
		got ? got : "none");
	ck_assert_msg(c != NULL, "%s: no collateral", what);
	ck_assert_msg(c->status == others[_i].status, "%s: %s", what, ff_status_name(c->status));
	ck_assert_msg(strstr(c->because, others[_i].because) != NULL, "%s: %s", what, c->because);
	ck_assert_msg(c->has_after == (others[_i].after_ms != NEVER), "%s: delay", what);
	ck_assert_msg(!c->has_after || c->after_us == others[_i].after_ms * 1000, "%s: %lld", what,
		(long long)c->after_us);
	ff_verdict_destroy(v);
	world_finish(&w);
}
END_TEST

/* ---- properties */

static struct ff_buf json_of(const struct ff_verdict *v)
{
	struct ff_buf b = {0};
	ff_report_json(v, &b);
	return b;
}

/* The streams of a job in any order give the same bytes (law 2). */
START_TEST(order_of_streams_does_not_matter)
{
	struct world w;
	struct ff_verdict *v = judge_case(&w, _i, 0);
	struct ff_buf a = json_of(v);
	ff_verdict_destroy(v);
	for (size_t i = 0; i < w.n / 2; i++) {
		struct ff_stream *s = w.streams[i];
		w.streams[i] = w.streams[w.n - 1 - i];
		w.streams[w.n - 1 - i] = s;
	}
	for (size_t i = 0; i < w.n; i++) {
		w.streams[i]->number = (uint32_t)i + 1;
	}
	v = world_judge(&w, 0);
	struct ff_buf b = json_of(v);
	ck_assert_msg(
		ff_str_eq(ff_buf_str(&a), ff_buf_str(&b)), "%s\n%s\n%s", cases[_i].what, a.p, b.p);
	ff_buf_finish(&a);
	ff_buf_finish(&b);
	ff_verdict_destroy(v);
	world_finish(&w);
}
END_TEST

/* Every cut of a case's events: a rank or node is only blamed as in the whole, or as what those
 * events alone prove; what was certain stays (no later line turns it into another rank). */
START_TEST(more_lines_never_turn_a_certain_rank_into_another)
{
	char certain[64] = "";
	for (size_t n = 1; n <= EVENTS; n++) {
		struct world w;
		world_init(&w, 4, "torchrun");
		world_streams(&w, two_nodes, N(two_nodes));
		first_steps(&w, _i);
		world_events(&w, cases[_i].events, n);
		struct ff_verdict *v = world_judge(&w, 0);
		char who[64];
		world_who(v, who, sizeof who);
		if (certain[0] && v->kind == FF_VERDICT_RANK) {
			ck_assert_msg(strstr(who, certain), "%s: %s became %s", cases[_i].what,
				certain, who);
		}
		if (v->kind == FF_VERDICT_RANK && v->confidence == FF_CERTAIN) {
			memcpy(certain, who, sizeof certain);
		}
		ff_verdict_destroy(v);
		world_finish(&w);
		if (n < EVENTS && !cases[_i].events[n].stream) {
			break;
		}
	}
}
END_TEST

/* ---- attempts */

static const struct world_stream restarted[] = {
	{"0.0", FF_STREAM_RANK, 0, "node-a", 0, 0},
	{"0.1", FF_STREAM_RANK, 1, "node-a", 1, 0},
	{"1.0", FF_STREAM_RANK, 0, "node-a", 0, 1},
	{"1.1", FF_STREAM_RANK, 1, "node-a", 1, 1},
};

static struct ff_verdict *judge_restart(
	struct world *w, const struct world_event *rows, size_t n, const char *end, int32_t attempt)
{
	struct ff_ask ask = {
		.offline = true, .now_us = FF_TIME_NONE, .attempt = attempt, .world = FF_UNKNOWN};
	world_init(w, 2, "torchrun");
	world_streams(w, restarted, N(restarted));
	world_progress(w, "1.0", 50000, false);
	world_events(w, rows, n);
	world_tell(w, "job@end", "state", end);
	return world_judge_as(w, &ask);
}

START_TEST(the_last_failed_attempt_is_judged_and_all_are_listed)
{
	static const struct world_event rows[] = {
		E("0.1", 1000, "index-error", "IndexError", NULL),
		E("0.0", 2000, "gloo-peer-closed", "closed", NULL),
		E("1.0", 60000, "cuda-oom", "out of memory", NULL),
		E("1.1", 61000, "gloo-peer-closed", "closed", NULL),
	};
	struct world w;
	struct ff_verdict *v = judge_restart(&w, rows, N(rows), "FAILED", FF_UNKNOWN);
	ck_assert_int_eq(v->attempt, 1);
	ck_assert_str_eq(v->fault, "cuda-oom");
	ck_assert_uint_eq(v->nattempts, 2);
	ck_assert_int_eq(v->attempts[0].initiating[0], 1);
	ck_assert_str_eq(v->attempts[0].fault, "index-error");
	ff_verdict_destroy(v);
	world_finish(&w);
	v = judge_restart(&w, rows, N(rows), "FAILED", 0);
	ck_assert_int_eq(v->attempt, 0);
	ck_assert_str_eq(v->fault, "index-error");
	ff_verdict_destroy(v);
	world_finish(&w);
}
END_TEST

START_TEST(an_attempt_that_only_follows_gives_way_to_the_first)
{
	static const struct world_event rows[] = {
		E("0.1", 1000, "index-error", "IndexError", NULL),
		E("0.0", 2000, "gloo-peer-closed", "closed", NULL),
		E("1.0", 60000, "stale-rendezvous", "refused", NULL),
		E("1.1", 61000, "stale-rendezvous", "refused", NULL),
	};
	struct world w;
	struct ff_verdict *v = judge_restart(&w, rows, N(rows), "FAILED", FF_UNKNOWN);
	ck_assert_int_eq(v->attempt, 0);
	ck_assert_str_eq(v->fault, "index-error");
	ck_assert_int_eq(v->attempts[1].verdict, FF_VERDICT_UNDETERMINED);
	ff_verdict_destroy(v);
	world_finish(&w);
}
END_TEST

/* Whoever runs the job says that a node is gone, and that the job ended well: mpirun does so. It
 * is clean only where somebody came to the end or went on. Ranks 2 and 3 are node-b's. */
#define STEP(stream, ms) \
	{ \
		stream, ms, NULL, NULL, NULL, FF_TAG_NONE, 0, 0 \
	}
#define DONE(stream, ms) \
	{ \
		stream, ms, NULL, NULL, NULL, FF_TAG_NONE, 0, RECOVERED \
	}
#define LOST(stream, ms, node) E(stream, ms, "node-fail", "lost communication", "node=" node)

static const struct {
	const char *what, *exit_code;
	struct world_event events[EVENTS]; /* without a signature: a step, or a success marker */
	enum ff_verdict_kind kind;
	const char *node;
} lost_nodes[] = {
	{"the launcher lost a node, then silence", "0",
		{STEP("0", 1000), STEP("2", 1000), LOST("mixed", 1500, "node-b")}, FF_VERDICT_NODE,
		"node-b"},
	{"and nobody ever printed a step", "0", {LOST("mixed", 1500, "node-b")}, FF_VERDICT_NODE,
		"node-b"},
	{"an agent says so", "0",
		{STEP("0", 1000), STEP("2", 1000), LOST("a.agent", 1500, "node-b")},
		FF_VERDICT_NODE, "node-b"},
	{"the controller says so of a node of the job", "0",
		{STEP("0", 1000), STEP("2", 1000), LOST("sched", 1500, "node-b")}, FF_VERDICT_NODE,
		"node-b"},
	{"the controller says so of another job's node", "0",
		{STEP("0", 1000), STEP("2", 1000), LOST("sched", 1500, "node-x")}, FF_VERDICT_CLEAN,
		NULL},
	{"steps went on after it", "0",
		{STEP("2", 1000), LOST("mixed", 1500, "node-b"), STEP("0", 4000)}, FF_VERDICT_CLEAN,
		NULL},
	{"the launcher lost it when the work was done", "0",
		{STEP("2", 1000), DONE("0", 1200), LOST("mixed", 1500, "node-b")}, FF_VERDICT_CLEAN,
		NULL},
	{"the work was done without it", "0",
		{STEP("2", 1000), LOST("mixed", 1500, "node-b"), DONE("0", 90000)},
		FF_VERDICT_CLEAN, NULL},
	{"no node was lost", "0", {STEP("0", 1000), STEP("2", 1000)}, FF_VERDICT_CLEAN, NULL},
	{"it did not end well anyhow", "1",
		{STEP("0", 1000), LOST("mixed", 1500, "node-b")}, FF_VERDICT_NODE, "node-b"},
};

START_TEST(a_lost_node_is_not_clean)
{
	struct world w;
	bool fine = !strcmp(lost_nodes[_i].exit_code, "0");
	world_init(&w, 4, "mpirun");
	world_streams(&w, two_nodes, N(two_nodes));
	for (size_t i = 0; i < EVENTS && lost_nodes[_i].events[i].stream; i++) {
		const struct world_event *e = &lost_nodes[_i].events[i];
		if (e->signature) {
			world_event(&w, e);
		} else {
			world_progress(&w, e->stream, e->ms, e->flags & RECOVERED);
		}
	}
	world_tell(&w, "job@end", "exit_code", lost_nodes[_i].exit_code);
	world_tell(&w, "job@end", "state", fine ? "COMPLETED" : "FAILED");
	struct ff_verdict *v = world_judge(&w, 0);
	ck_assert_msg(v->kind == lost_nodes[_i].kind, "%s: kind %d", lost_nodes[_i].what,
		(int)v->kind);
	ck_assert_msg(!lost_nodes[_i].node == !v->node, "%s", lost_nodes[_i].what);
	if (v->node) {
		ck_assert_str_eq(v->node, lost_nodes[_i].node);
		ck_assert_int_ne(v->confidence, fine ? FF_NO_CONFIDENCE : FF_CERTAIN);
	}
	ff_verdict_destroy(v);
	world_finish(&w);
}
END_TEST

/* Ranks that nobody heard are one sentence a node, and one for all whose node nobody knows. */
START_TEST(unheard_ranks_are_folded)
{
	static const struct world_stream some[] = {
		{"0", FF_STREAM_RANK, 0, "node-a", 0, FF_UNKNOWN},
		{"2", FF_STREAM_RANK, 2, "node-b", 0, FF_UNKNOWN},
		{"7", FF_STREAM_RANK, 7, "node-c", 0, FF_UNKNOWN},
		{"a.agent", FF_STREAM_AGENT, FF_UNKNOWN, "node-a", FF_UNKNOWN, FF_UNKNOWN},
	};
	static const struct world_event events[] = {
		E("2", 1000, "index-error", "IndexError: 57", NULL),
		E("0", 2000, "gloo-peer-closed", "closed", NULL),
		E("a.agent", 2100, "process-exit", "row", ROW("9", "1", "1", "41")),
		E("a.agent", 2100, "process-exit", "row", ROW("12", "2", "1", "42")),
	};
	static const char *const want[] = {"no output of ranks 1,3-6,8,10-11,13-15",
		"no output of ranks 9,12 (node-a)"};
	struct world w;
	size_t n = 0;
	world_init(&w, 16, "torchrun");
	world_streams(&w, some, N(some));
	world_events(&w, events, N(events));
	struct ff_verdict *v = world_judge(&w, 0);
	for (size_t i = 0; v->missing[i]; i++) {
		if (!strncmp(v->missing[i], "no output of", 12)) {
			ck_assert_uint_lt(n, N(want));
			ck_assert_str_eq(v->missing[i], want[n]);
			n++;
		}
	}
	ck_assert_uint_eq(n, N(want));
	ff_verdict_destroy(v);
	world_finish(&w);
}
END_TEST

START_TEST(a_run_that_ended_well_after_a_restart_is_clean)
{
	static const struct world_event rows[] = {
		E("0.1", 1000, "index-error", "IndexError", NULL),
		E("0.0", 2000, "gloo-peer-closed", "closed", NULL),
	};
	struct world w;
	struct ff_verdict *v = judge_restart(&w, rows, N(rows), "COMPLETED", FF_UNKNOWN);
	ck_assert_int_eq(v->kind, FF_VERDICT_CLEAN);
	ck_assert_int_eq(v->attempt, 1);
	ck_assert_int_eq(v->attempts[0].verdict, FF_VERDICT_RANK);
	ff_verdict_destroy(v);
	world_finish(&w);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("rules");
	TCase *tc = tcase_create("rules");
	tcase_add_loop_test(tc, table_decides, 0, N(cases));
	tcase_add_loop_test(tc, without_its_rule_the_answer_is_another, 0, N(cases));
	tcase_add_test(tc, every_rule_but_the_last_has_a_case_that_needs_it);
	tcase_add_loop_test(tc, others_are_explained, 0, N(others));
	tcase_add_loop_test(tc, order_of_streams_does_not_matter, 0, N(cases));
	tcase_add_loop_test(tc, more_lines_never_turn_a_certain_rank_into_another, 0, N(cases));
	tcase_add_test(tc, the_last_failed_attempt_is_judged_and_all_are_listed);
	tcase_add_test(tc, an_attempt_that_only_follows_gives_way_to_the_first);
	tcase_add_loop_test(tc, a_lost_node_is_not_clean, 0, N(lost_nodes));
	tcase_add_test(tc, unheard_ranks_are_folded);
	tcase_add_test(tc, a_run_that_ended_well_after_a_restart_is_clean);
	suite_add_tcase(s, tc);
	SRunner *r = srunner_create(s);
	srunner_run_all(r, CK_ENV);
	int failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
