/* Records as programs print them, form by form: what events a whole text gives, however it is cut
 * into chunks and whoever set a prefix before each of its lines. */
#include "core/stream.h"

#include "digest.h"

#include <check.h>
#include <stdlib.h>

/* Exceptions need no text: one that none knows shows its class and message. These few show what a
 * record that is no traceback holds together. */
/* clang-format off */
#define ENTRY(id, role, more, literal, pattern) \
	"{\"id\":\"" id "\",\"title\":\"t\",\"category\":\"c\",\"role\":\"" role "\"," more \
	"\"domain\":\"user\",\"match\":[{\"literal\":\"" literal "\",\"pattern\":\"" pattern "\"}]}"

static const char catalog_json[] = "["
	ENTRY("fatal", "primary", "", "Fatal Python error: ", "error: (?<reason>[^\\\\n]+)") ","
	ENTRY("nccl", "secondary", "", "NCCL error: ",
		"error: (?<reason>[^,]+)[^\\\\n]*\\\\n(?<cls>nccl\\\\w+): [^\\\\n]*\\\\n"
		"Last error:\\\\n(?<msg>[^\\\\n]+)") ","
	ENTRY("cxx", "primary", "", "terminate called",
		"of '(?<cls>[^']+)'\\\\n  what\\\\(\\\\):  (?<msg>[^\\\\n]+)") ","
	ENTRY("barrier", "secondary", "", "failed to pass",
		"Rank (?<rank>\\\\d+) failed to pass[^\\\\n]*\\\\n ?Original exception: \\\\n") ","
	ENTRY("signal", "primary", "", "*** SIG",
		"[*]{3} (?<signal>SIG\\\\w+) (?:\\\\(@0x0\\\\) )?"
		"received (?:by PID (?<pid>\\\\d+))?") ","
	"{\"id\":\"oom\",\"title\":\"t\",\"category\":\"c\",\"role\":\"primary\","
	"\"domain\":\"system\",\"match\":["
	"{\"literal\":\"Killed process \",\"pattern\":\"Killed process (?<pid>\\\\d+)\"},"
	"{\"literal\":\"oom-kill:constraint=\",\"pattern\":\"oom-kill:.*task_memcg=(?<cgroup>[^,]+)"
	".*pid=(?<pid>\\\\d+)\"}]},"
	ENTRY("launch", "primary", "", "unable to launch",
		"launch the(?:[^\\\\n]*\\\\n){1,9}? *Node: (?<node>\\\\S+)") ","
	ENTRY("row", "context", "\"kind\":\"exit\",", "  rank  ",
		"  rank +: (?<rank>\\\\d+)[^\\\\n]*\\\\n  exitcode +: (?<exit_code>-?\\\\d+)") "]";
/* clang-format on */

#define TB "Traceback (most recent call last):\n"
#define STEP "  File \"/job/train.py\", line 7, in step\n    x = y\n"
#define LOAD "  File \"/job/data.py\", line 3, in load\n    return d[k]\n           ~^^^\n"
#define LIB "  File \"/env/lib/python3.11/site-packages/torch/a.py\", line 1, in f\n    g()\n"
#define CAUSE "\nThe above exception was the direct cause of the following exception:\n\n"
#define CONTEXT "\nDuring handling of the above exception, another exception occurred:\n\n"

/* A text and its events: "LINE what [frame] marks". what is CLASS|message of an exception, else the
 * id of the text with its fields; marks are ! handled, " quoted, xN for N in one. */
static const struct {
	const char *text, *events;
} rows[] = {
	/* ---- tracebacks (SOURCES.md cpython-traceback) */
	{TB STEP "ValueError: bad shard 7\n",
		"4 ValueError|bad shard 7 [train.py:7 in step: x = y]\n"},
	{TB STEP LIB "KeyboardInterrupt\n", "6 KeyboardInterrupt| [train.py:7 in step: x = y]\n"},
	{TB STEP "a.b.E: m\nnote one\nnote two\nplain\n\nout\n",
		"4 a.b.E|m [train.py:7 in step: x = y]\n"},
	{TB STEP "E2: <exception str() failed>\n",
		"4 E2|<exception str() failed> [train.py:7 in step: x = y]\n"},
	{TB "  File \"/job/train.py\", line 4, in f\n    f()\n  [Previous line repeated 996 more "
	    "times]\n"
	    "RecursionError: maximum recursion depth exceeded\n",
		"5 RecursionError|maximum recursion depth exceeded [train.py:4 in f: f()]\n"},
	/* 3.13: a call over several lines has source and marks of each */
	{TB "  File \"/job/train.py\", line 9, in <module>\n    step(\n    ~~~~^\n        model,\n"
	    "        ^^^^^^\n    )\n    ^\n  File \"/job/train.py\", line 4, in step\n    return "
	    "g(\n"
	    "        a,\n    ...<3 lines>...\n    )\nTypeError: no\n",
		"14 TypeError|no [train.py:4 in step: return g(]\n"},
	{TB STEP "KeyError: 'a'\n" CAUSE TB LOAD "ValueError: b\n",
		"4 KeyError|'a' [train.py:7 in step: x = y]\n"},
	{TB STEP "KeyError: 'a'\n" CONTEXT TB LOAD "ValueError: b\n" CAUSE TB LOAD "OSError: c\n",
		"4 KeyError|'a' [train.py:7 in step: x = y]\n"},
	/* SyntaxError, with its header and without */
	{TB STEP "  File \"/job/conf.py\", line 3\n    x = (\n        ^\nSyntaxError: '(' was "
		 "never closed\n",
		"7 SyntaxError|'(' was never closed [conf.py:3: x = (]\n"},
	{"  File \"/job/conf.py\", line 3\n    x = (\n        ^\nSyntaxError: '(' was never "
	 "closed\n",
		"4 SyntaxError|'(' was never closed [conf.py:3: x = (]\n"},
	/* a message of many lines, blank ones among them */
	{TB STEP
		"RuntimeError: Error(s) in loading state_dict for Net:\n\tMissing key(s): \"a\". \n"
		"\tsize mismatch for b: x.\n",
		"4 RuntimeError|Error(s) in loading state_dict for Net: [train.py:7 in step: x = "
		"y]\n"},
	{TB STEP "AssertionError\nstep 3\n", "4 AssertionError| [train.py:7 in step: x = y]\n"},
	/* colours (3.13, and rich's) */
	{TB "  File \x1b[35m\"/job/train.py\"\x1b[0m, line \x1b[35m7\x1b[0m, in "
	    "\x1b[35mstep\x1b[0m\n"
	    "    \x1b[31mx\x1b[0m\n\x1b[1;35mValueError\x1b[0m: \x1b[35mbad\x1b[0m\n",
		"4 ValueError|bad [train.py:7 in step: x]\n"},
	/* ---- who printed it: not the end of its process */
	{"2026-11-30 09:41:21,073 ERROR x: batch skipped\n" TB STEP "KeyError: 'a'\n",
		"5 KeyError|'a' [train.py:7 in step: x = y] !\n"},
	{"ERROR:root:boom\n" TB STEP "KeyError: 'a'\n",
		"5 KeyError|'a' [train.py:7 in step: x = y] !\n"},
	{"Exception in thread Thread-1 (feed):\n" TB STEP "KeyError: 'a'\n",
		"5 KeyError|'a' [train.py:7 in step: x = y] !\n"},
	{"Exception in thread Thread-1:\n" TB STEP "KeyError: 'a'\n",
		"5 KeyError|'a' [train.py:7 in step: x = y] !\n"},
	{"Exception ignored in: <function Pool.__del__ at 0x7f>\n" TB STEP "KeyError: 'a'\n",
		"5 KeyError|'a' [train.py:7 in step: x = y] !\n"},
	{"Exception ignored in atexit callback <function f at 0x7f>:\n" TB STEP "KeyError: 'a'\n",
		"5 KeyError|'a' [train.py:7 in step: x = y] !\n"},
	{"Exception ignored while calling deallocator <function f>:\n" TB STEP "KeyError: 'a'\n",
		"5 KeyError|'a' [train.py:7 in step: x = y] !\n"},
	{"Task exception was never retrieved\nfuture: <Task finished name='T' coro=<f()>>\n" TB STEP
	 "KeyError: 'a'\n",
		"6 KeyError|'a' [train.py:7 in step: x = y] !\n"},
	{"ERROR:asyncio:Task exception was never retrieved\nfuture: <Task finished name='T'>\n" TB
			STEP "KeyError: 'a'\n",
		"6 KeyError|'a' [train.py:7 in step: x = y] !\n"},
	{"2026-11-30 09:41:21,073 - asyncio - ERROR - Future exception was never retrieved\n"
	 "future: <Future finished exception=KeyError('a')>\n" TB STEP "KeyError: 'a'\n",
		"6 KeyError|'a' [train.py:7 in step: x = y] !\n"},
	{"Future exception was never retrieved\nfuture: <Future finished "
	 "exception=KeyError('a')>\n" TB STEP "KeyError: 'a'\n",
		"6 KeyError|'a' [train.py:7 in step: x = y] !\n"},
	{"Exception in callback f()\nhandle: <Handle f()>\n" TB STEP "KeyError: 'a'\n",
		"6 KeyError|'a' [train.py:7 in step: x = y] !\n"},
	{"--- Logging error ---\n" TB STEP
	 "OSError: [Errno 28] No space left on device\nCall stack:\n"
	 "  File \"/job/train.py\", line 99, in <module>\n    main()\nMessage: 'loss %f'\n"
	 "Arguments: (1.0,)\n",
		"5 OSError|[Errno 28] No space left on device [train.py:7 in step: x = y] !\n"},
	{"Error in sys.excepthook:\n" TB LOAD "TypeError: hook\n\nOriginal exception was:\n" TB STEP
	 "KeyError: 'a'\n",
		"12 KeyError|'a' [train.py:7 in step: x = y]\n"},
	{"Error in atexit._run_exitfuncs:\n" TB STEP "OSError: x\n",
		"5 OSError|x [train.py:7 in step: x = y] !\n"},
	/* ---- exception groups */
	{"  + Exception Group " TB "  |   File \"/job/train.py\", line 7, in step\n  |     x = y\n"
	 "  | ExceptionGroup: two (2 sub-exceptions)\n  +-+---------------- 1 ----------------\n"
	 "    | " TB "    |   File \"/job/data.py\", line 3, in load\n    |     return d[k]\n"
	 "    |            ~^^^\n    | KeyError: 'a'\n"
	 "    | \n    | The above exception was the direct cause of the following exception:\n    "
	 "| \n"
	 "    | " TB "    |   File \"/job/train.py\", line 8, in outer\n    | ValueError: b\n"
	 "    +---------------- 2 ----------------\n    | TypeError: int\n"
	 "    +------------------------------------\n",
		"10 KeyError|'a' [data.py:3 in load: return d[k]]\n"},
	{"  + Exception Group " TB "  |   File \"/job/train.py\", line 7, in step\n"
	 "  | ExceptionGroup: outer (1 sub-exception)\n  +-+---------------- 1 ----------------\n"
	 "    | ExceptionGroup: inner (1 sub-exception)\n"
	 "    +-+---------------- 1 ----------------\n      | OSError: deep\n"
	 "      +------------------------------------\n",
		"7 OSError|deep [train.py:7 in step]\n"},
	{TB STEP "KeyError: 'a'\n" CONTEXT "  + Exception Group " TB
		 "  |   File \"/job/data.py\", line 3, in load\n  | ExceptionGroup: two (1 "
		 "sub-exception)\n"
		 "  +-+---------------- 1 ----------------\n    | OSError: x\n"
		 "    +------------------------------------\n",
		"4 KeyError|'a' [train.py:7 in step: x = y]\n"},
	/* ---- rich and IPython: frames without File */
	{"╭────────── Traceback (most recent call last) ───────────╮\n"
	 "│ /job/train.py:9 in <module>                            │\n"
	 "│                                                        │\n"
	 "│    8                                                   │\n"
	 "│ ❱  9 main()                                            │\n"
	 "│                                                        │\n"
	 "│ /job/data.py:3 in load                                 │\n"
	 "│                                                        │\n"
	 "│   2 def load(d, k):                                    │\n"
	 "│ ❱ 3     return d[k]                                    │\n"
	 "│ ╭────── locals ──────╮                                 │\n"
	 "│ │ d = {}             │                                 │\n"
	 "│ ╰────────────────────╯                                 │\n"
	 "╰────────────────────────────────────────────────────────╯\n"
	 "KeyError: 'a'\n",
		"15 KeyError|'a' [data.py:3 in load: return d[k]]\n"},
	{"╭────────── Traceback (most recent call last) ───────────╮\n"
	 "│ /job/data.py:3 in load                                 │\n"
	 "╰────────────────────────────────────────────────────────╯\n"
	 "KeyError: 'a'\n" CONTEXT "╭────────── Traceback (most recent call last) ───────────╮\n"
	 "│ /env/lib/python3.11/site-packages/torch/nn/modules/mod │\n"
	 "│ ule.py:7 in f                                          │\n"
	 "╰────────────────────────────────────────────────────────╯\n"
	 "ValueError: b\n",
		"4 KeyError|'a' [data.py:3 in load]\n"},
	{"╭────────── Traceback (most recent call last) ───────────╮\n"
	 "│ /job/a/very/long/path/to/some/folder/that/holds/the/tra │\n"
	 "│ in.py:9 in <module>                                    │\n"
	 "│ /env/lib/python3.11/site-packages/torch/nn/modules/mod │\n"
	 "│ ule.py:7 in f                                          │\n"
	 "╰────────────────────────────────────────────────────────╯\n"
	 "KeyError: 'a'\n",
		"7 KeyError|'a' [train.py:9 in <module>]\n"},
	{"+---------- Traceback (most recent call last) -----------+\n"
	 "| /job/data.py:3 in load                                 |\n"
	 "+--------------------------------------------------------+\n"
	 "KeyError: 'a'\n",
		"4 KeyError|'a' [data.py:3 in load]\n"},
	{"---------------------------------------------------------------------------\n"
	 "KeyError                                  Traceback (most recent call last)\n"
	 "Cell In[3], line 1\n----> 1 load({}, 'a')\n\n"
	 "File /job/data.py:3, in load(d, k)\n      2 def load(d, k):\n----> 3     return d[k]\n\n"
	 "KeyError: 'a'\n",
		"10 KeyError|'a' [data.py:3 in load: return d[k]]\n"},
	{"---------------------------------------------------------------------------\n"
	 "KeyError                                  Traceback (most recent call last)\n"
	 "<ipython-input-1-9e1622b385b6> in <module>\n----> 1 load({}, 'a')\n\n"
	 "/job/data.py in load(d, k)\n      2 def load(d, k):\n----> 3     return d[k]\n\n"
	 "KeyError: 'a'\n",
		"10 KeyError|'a' [data.py:3 in load: return d[k]]\n"},
	/* ---- a traceback inside the message (torch-dataloader, torch-spawn) */
	{TB LIB "RuntimeError: Caught KeyError in DataLoader worker process 0.\nOriginal " TB LIB
			LOAD "KeyError: 'a'\n",
		"11 KeyError|'a' [data.py:3 in load: return d[k]]\n"},
	{TB LIB "RuntimeError: Caught KeyError in replica 1 on device 1.\nOriginal " TB STEP
		"KeyError: 'a'\n",
		"8 KeyError|'a' [train.py:7 in step: x = y]\n"},
	{TB STEP "torch.multiprocessing.spawn.ProcessRaisedException: \n\n"
		 "-- Process 3 terminated with the following error:\n" TB LOAD "KeyError: 'a'\n\n",
		"11 KeyError|'a' [data.py:3 in load: return d[k]] \"\n"},
	{"Process SpawnProcess-1:\n" TB STEP "KeyError: 'a'\n",
		"5 KeyError|'a' [train.py:7 in step: x = y]\n"},
	{"concurrent.futures.process._RemoteTraceback: \n\"\"\"\n" TB LOAD
	 "KeyError: 'a'\n\"\"\"\n" CAUSE TB STEP "KeyError: 'a'\n",
		"7 KeyError|'a' [data.py:3 in load: return d[k]]\n"},
	{TB STEP "ray.exceptions.RayTaskError(KeyError): ray::f() (pid=12, ip=10.0.0.5)\n" LOAD
		 "KeyError: 'a'\n",
		"8 KeyError|'a' [data.py:3 in load: return d[k]] \"\n"},
	{TB STEP "ray.exceptions.RayTaskError(KeyError): ray::outer() (pid=12, ip=10.0.0.5)\n" STEP
		 "ray.exceptions.RayTaskError(KeyError): ray::inner() (pid=13, ip=10.0.0.5)\n" LOAD
		 "KeyError: 'a'\n",
		"11 KeyError|'a' [data.py:3 in load: return d[k]] \"\n"},
	/* whose it is stands in the text (real-runs) */
	{TB STEP "torch.distributed.checkpoint.api.CheckpointException: CheckpointException "
		 "ranks:dict_keys([3])\nTraceback (most recent call last): (RANK 3)\n" LOAD
		 "OSError: x\n",
		"9 OSError|x rank=3 [data.py:3 in load: return d[k]] \"\n"},
	{TB LIB "ray.train.WorkerGroupError: Training failed due to worker errors:\n"
		"[Rank 2 Error Snippet]:\n" TB LOAD
		"KeyError: 'a'\n\n[Rank 0,1 Error Snippet]:\n" TB STEP "RuntimeError: lost\n",
		"10 KeyError|'a' rank=2 [data.py:3 in load: return d[k]] \"\n"
		"16 RuntimeError|lost ranks=0,1 [train.py:7 in step: x = y] \"\n"},
	/* the table's rows */
	{"============================================================\ntrain.py FAILED\n"
	 "------------------------------------------------------------\nFailures:\n"
	 "  <NO_OTHER_FAILURES>\n------------------------------------------------------------\n"
	 "Root Cause (first observed failure):\n[0]:\n  time      : 2024-05-01_12:00:08\n"
	 "  host      : node-3\n  rank      : 24 (local_rank: 0)\n  exitcode  : 1 (pid: 40122) \n"
	 "  error_file: /tmp/x/attempt_0/0/error.json\n  traceback : " TB
	 "    File \"/job/train.py\", line 7, in main\n      x = y\n  KeyError: 'a'\n  \n"
	 "============================================================\n",
		"11 row exit_code=1 rank=24\n"
		"17 KeyError|'a' rank=24 [train.py:7 in main: x = y] \"\n"},
	/* ---- several processes in one pipe without a tag (real-runs) */
	{TB TB STEP STEP "KeyErrorKeyError: : 'a''a'\n\nnext\n",
		"7 KeyError|'a' mixed=1 [train.py:7 in step: x = y] x2\n"},
	{"Traceback (most recent call last):" TB "\n  File \"/job/train.py\", line 7, in step"
	 "  File \"/job/train.py\", line 7, in step\n\n        x = yx = y\n\n"
	 "KeyErrorKeyError: : 'a''a'\n\n",
		"7 KeyError|'a' mixed=1 [train.py:7 in step: x = y] x2\n"},
	{TB TB TB STEP STEP STEP "KeyErrorKeyErrorKeyError: : : 'a''b''c'\n\n\n",
		"10 KeyError|'a''b''c' mixed=1 [train.py:7 in step: x = y] x3\n"},
	{TB STEP TB STEP LOAD LOAD "E: on cuda:1\nE: on cuda:3\nnot again\n",
		"13 E|on cuda:1 mixed=1 [data.py:3 in load: return d[k]] x2\n"},
	{TB "  File \"/job/train.py\", line 7, in step\n" TB STEP "    x = y\nKeyError: 'a'\n" LOAD
	    "KeyError: 'a'\n",
		"7 KeyError|'a' mixed=1 [train.py:7 in step: x = y] x2\n"},
	/* that is one process's: a message that says itself twice, a name that is a double */
	{TB STEP "E: m\nE: m\n", "4 E|m [train.py:7 in step: x = y]\n"},
	{TB STEP "BeriBeri: a\n", "4 BeriBeri|a [train.py:7 in step: x = y]\n"},
	{TB "  File \"/job/train.py\", line 7, in step\n        abab\nE: a\n",
		"4 E|a [train.py:7 in step: abab]\n"},
	/* ---- faulthandler (cpython-faulthandler) */
	{"Fatal Python error: Segmentation fault\n\nThread 0x00007f5c0a7fe700 (most recent call "
	 "first):\n"
	 "  File \"/job/feed.py\", line 4 in wait\n\n"
	 "Current thread 0x00007f5c0a7fe701 [pt_main_thread] (most recent call first):\n"
	 "  <no Python frame>\n  File \"/env/lib/python3.11/site-packages/torch/a.py\", line 2 in "
	 "g\n"
	 "  File \"/job/train.py\", line 88 in step\n\nExtension modules: a, b (total: 2)\n",
		"1 fatal reason=Segmentation fault [train.py:88 in step]\n"},
	/* ---- C++ (c10-logging, process-group-nccl) */
	{"terminate called after throwing an instance of 'c10::DistBackendError'\n"
	 "  what():  [PG ID 0 PG GUID 0 Rank 3] NCCL error: remote process exited, NCCL version "
	 "2.20.5\nncclRemoteError: A call failed.\nLast error:\nsocketProgress: closed\n"
	 "Exception raised from f at a.cpp:1 (most recent call first):\n"
	 "frame #0: f() + 0x1 (0x7f in a.so)\n\n",
		"1 cxx cls=c10::DistBackendError msg=[PG ID 0 PG GUID 0 Rank 3] NCCL error: remote "
		"process exited, NCCL version 2.20.5\n"
		"2 nccl cls=ncclRemoteError msg=socketProgress: closed reason=remote process "
		"exited\n"},
	{TB STEP "torch.distributed.DistBackendError: NCCL error: remote process exited, NCCL "
		 "version "
		 "2.20.5\nncclRemoteError: A call failed possibly due to a network error.\nLast "
		 "error:\n"
		 "socketProgress: Connection closed by remote peer gpu09<50514>\n",
		"4 nccl cls=ncclRemoteError msg=socketProgress: Connection closed by remote peer "
		"gpu09<50514> reason=remote process exited [train.py:7 in step: x = y]\n"},
	{"[E501 12:00:08.123456789 ProcessGroupNCCL.cpp:607] [Rank 3] NCCL error: remote process "
	 "exited, "
	 "NCCL version 2.20.5\nncclRemoteError: A call failed.\nLast error:\nsocketProgress: "
	 "closed\n"
	 "frame #0: f() + 0x1 (0x7f in a.so)\n",
		"1 nccl cls=ncclRemoteError msg=socketProgress: closed reason=remote process "
		"exited\n"},
	/* monitored_barrier's words of two processes are one process's */
	{"[E501 12:00:08.123456789 ProcessGroupGloo.cpp:143] [Rank 0]: Rank 2 failed to pass "
	 "monitoredBarrier in 1000 ms\n Original exception: \n[pair.cc:534] Connection closed by "
	 "peer\n",
		"1 barrier rank=2\n"},
	/* failure blocks of glog and absl; lines of a logger have its prefix */
	{"*** Aborted at 1714561234 (unix time) try \"date -d @1714561234\" if you are using GNU "
	 "date "
	 "***\nPC: @     0x7f8a2c3d4e5f (unknown)\n*** SIGSEGV (@0x0) received by PID 4121 (TID "
	 "0x7f8a1c7fe700) from PID 0; stack trace: ***\n    @     0x7f8a2d9b1980 f()\n    @  0x0 "
	 "(unknown)\nSegmentation fault\n",
		"3 signal pid=4121 signal=SIGSEGV\n"},
	{"[2024-05-01 12:00:34,123 E 4121 4121] logging.cc:365: *** SIGSEGV received at "
	 "time=1714561234 on cpu 37 ***\n[2024-05-01 12:00:34,123 E 4121 4121] logging.cc:365: PC: "
	 "@ "
	 "    0x7f8a2c3d4e5f  (unknown)  (unknown)\n[2024-05-01 12:00:34,124 E 4121 4121] "
	 "logging.cc:365:     @     0x7f8a2d9b1980  3456  (unknown)\n",
		"1 signal signal=SIGSEGV\n"},
	/* two victims are two events */
	{"Memory cgroup out of memory: Killed process 4121 (python3)\n"
	 "Memory cgroup out of memory: Killed process 4122 (python3)\n"
	 "Memory cgroup out of memory: Killed process 4122 (python3)\n",
		"1 oom pid=4121\n2 oom pid=4122 x2\n"},
	/* the kernel's report about a kill is one event a victim (kernel-oom) */
	{"[ 3931.180001] pt_data_worker invoked oom-killer: gfp_mask=0xcc0(GFP_KERNEL), order=0\n"
	 "[ 3931.180010] CPU: 3 PID: 2720 Comm: pt_data_worker Not tainted\n"
	 "[ 3931.180014]  <TASK>\n"
	 "[ 3931.182641] [  pid  ]   uid  tgid total_vm name\n"
	 "[ 3931.182692] oom-kill:constraint=CONSTRAINT_MEMCG,task_memcg=/job_15/task_6,task=py,"
	 "pid=2715,uid=1000\n"
	 "[ 3931.182702] Memory cgroup out of memory: Killed process 2715 (py) total-vm:4kB\n"
	 "[ 3931.182703] Tasks in /job_15 are going to be killed due to memory.oom.group set\n"
	 "[ 3931.182704] Memory cgroup out of memory: Killed process 2716 (py) total-vm:4kB\n"
	 "[ 3931.290000] oom_reaper: reaped process 2715 (py)\n"
	 "[ 3932.000000] mlx5_core: Killed process 7\n",
		"5 oom cgroup=/job_15/task_6 pid=2715\n8 oom pid=2716\n10 oom pid=7\n"},
	{"Jan  3 14:04:01 node-0 kernel: [990221.4] oom-kill:constraint=CONSTRAINT_NONE,global_oom,"
	 "task_memcg=/user.slice,task=py,pid=25,uid=1000\n"
	 "Jan  3 14:04:01 node-0 kernel: [990221.5] Out of memory: Killed process 25 (py)\n"
	 "Jan  3 14:04:02 node-0 kernel: [990222.5] python invoked oom-killer: gfp_mask=0xcc0\n"
	 "Jan  3 14:04:02 node-0 kernel: [990222.6] Out of memory: Killed process 26 (py)\n",
		"1 oom cgroup=/user.slice pid=25\n4 oom pid=26\n"},
	/* a launcher's own traceback and box are no rank's; a child's traceback is not its own */
	{TB "  File \"/env/bin/accelerate\", line 8, in <module>\n    sys.exit(main())\n"
	    "  File \"/env/lib/python3.11/site-packages/accelerate/commands/launch.py\", line 9, "
	    "in f\n"
	    "ValueError: unknown key\n",
		"5 ValueError|unknown key launcher=accelerate [accelerate:8 in <module>: "
		"sys.exit(main())]\n"},
	{TB STEP "  File \"/env/lib/python3.11/site-packages/torch/multiprocessing/spawn.py\", "
		 "line 9, in "
		 "start_processes\n    process.start()\nAttributeError: can't pickle\n",
		"6 AttributeError|can't pickle launcher=spawn [train.py:7 in step: x = y]\n"},
	{TB "  File \"/env/lib/python3.11/site-packages/torch/multiprocessing/spawn.py\", line 9, "
	    "in _wrap\n"
	    "    fn(i, *args)\n" STEP "KeyError: 'a'\n",
		"6 KeyError|'a' [train.py:7 in step: x = y]\n"},
	{"prterun was unable to launch the specified application as it lacked\npermissions to "
	 "execute "
	 "an executable:\n\n   Executable: /opt/app/ring\n   Node: node-b\n\nwhile attempting to "
	 "start "
	 "process rank "
	 "8.\n--------------------------------------------------------------------------\n",
		"1 launch launcher=mpirun node=node-b\n"},
	/* error.json (torch-elastic-errors): the handler's shape, a launcher's copy, a free text */
	{"{\"message\": {\"message\": \"ValueError: b\", \"extraInfo\": {\"py_callstack\": "
	 "\"Traceback "
	 "(most recent call last):\\n  File \\\"/job/data.py\\\", line 3, in load\\n    return "
	 "d[k]\\n"
	 "KeyError: 'a'\\n\\nThe above exception was the direct cause of the following "
	 "exception:\\n\\n"
	 "Traceback (most recent call last):\\n  File \\\"/job/train.py\\\", line 7, in "
	 "step\\nValueError: "
	 "b\\n\", \"timestamp\": \"1714561234\"}}}\nnext\n",
		"1 KeyError|'a' [data.py:3 in load: return d[k]]\n"},
	{"{\"message\": {\"message\": \"E: b\", \"extraInfo\": {\"py_callstack\": \"Traceback "
	 "(most "
	 "recent call last):\\n  File \\\"/job/train.py\\\", line 7, in step\\nE: b\\nof two "
	 "lines\", "
	 "\"timestamp\": \"1714561234\"}, \"errorCode\": 1}}\n",
		"1 E|b [train.py:7 in step]\n"},
	{"{\"message\": {\"message\": \"Fatal Python error: x\", \"extraInfo\": {\"timestamp\": "
	 "\"1\"}}}\n",
		"1 fatal reason=x\n"},
	{"{\"message\": {\"message\": \"E: b\", \"extraInfo\": {\"py_callstack\": \"cut off\n", ""},
};

/* ---- a text through a stream */

static struct ff_stream *stream_create(void)
{
	struct ff_origin o = {
		.name = "log",
		.node = "node-0",
		.source = "0",
		.kind = FF_STREAM_MIXED,
		.rank = FF_UNKNOWN,
		.local_rank = FF_UNKNOWN,
		.attempt = FF_UNKNOWN,
		.pid = FF_UNKNOWN,
	};
	return ff_stream_create(&o, 1, 1);
}

static void show_event(const struct ff_event *e, struct ff_buf *out)
{
	ff_buf_addf(out, "%lld", (long long)e->at_line);
	if (!strcmp(e->fault, FF_MATCH_UNKNOWN)) {
		ff_buf_addf(out, " %s|%s", ff_event_field(e, FF_F_cls).p,
			ff_event_field(e, FF_F_msg).n ? ff_event_field(e, FF_F_msg).p : "");
	} else {
		ff_buf_addf(out, " %s", e->fault);
	}
	for (size_t i = 0; i < e->fields.n; i++) {
		const struct ff_field *f = &e->fields.v[i];
		bool shown = !strcmp(e->fault, FF_MATCH_UNKNOWN) &&
			(f->id == FF_F_cls || f->id == FF_F_msg);
		if (!shown) {
			ff_buf_addf(out, " %s=%s", ff_field_name(f->id), f->value);
		}
	}
	if (e->frame) {
		ff_buf_addf(out, " [%s]", e->frame);
	}
	if (e->count > 1) {
		ff_buf_addf(out, " x%u", e->count);
	}
	ff_buf_addf(out, "%s%s%s\n", e->handled || e->quoted ? " " : "", e->handled ? "!" : "",
		e->quoted ? "\"" : "");
}

/* The text in two chunks, cut at `cut`; each event has this tag. */
static void run(
	struct world *w, struct ff_str text, size_t cut, struct ff_tag tag, struct ff_buf *out)
{
	struct ff_stream *s = stream_create();
	size_t from = 0;
	ff_buf_clear(out);
	ff_buf_add(out, "", 0);
	while (from < text.n) {
		size_t to = from < cut ? cut : text.n;
		struct ff_chunk c = {
			.offset = from,
			.data = text.p + from,
			.len = to - from,
			.stamp = FF_STAMP_NONE,
			.tags = {FF_TAG_INIT, FF_UNKNOWN},
		};
		ff_stream_feed(s, &w->digest, &c);
		from = to;
	}
	ff_stream_end(s, &w->digest, true, FF_TIME_NONE);
	for (size_t i = 0; i < s->nevents; i++) {
		show_event(&s->events[i], out);
		ck_assert_int_eq(s->events[i].tag.kind, tag.kind);
		ck_assert_int_eq(s->events[i].tag.value, tag.value);
	}
	ff_stream_destroy(s);
}

START_TEST(records_give_their_events)
{
	struct world *w = world_create(catalog_json);
	struct ff_buf out = {0};
	run(w, ff_str_z(rows[_i].text), 0, FF_TAG_INIT, &out);
	ck_assert_msg(!strcmp(out.p, rows[_i].events), "%s---- gives\n%s---- not\n%s",
		rows[_i].text, out.p, rows[_i].events);
	ff_buf_finish(&out);
	world_destroy(w);
}
END_TEST

START_TEST(cuts_change_nothing)
{
	struct world *w = world_create(catalog_json);
	struct ff_buf out = {0};
	struct ff_str text = ff_str_z(rows[_i].text);
	for (size_t cut = 1; cut < text.n; cut++) {
		run(w, text, cut, FF_TAG_INIT, &out);
		ck_assert_msg(!strcmp(out.p, rows[_i].events), "%s---- cut at %zu gives\n%s",
			text.p, cut, out.p);
	}
	ff_buf_finish(&out);
	world_destroy(w);
}
END_TEST

static const struct {
	const char *text;
	struct ff_tag tag;
	bool bare; /* blank lines have none */
} prefixes[] = {
	{"[rank5]: ", {FF_TAG_GLOBAL, 5}, true},
	{"5: ", {FF_TAG_TASK, 5}, false},
	{"[1,5]<stderr>:", {FF_TAG_GLOBAL, 5}, false},
	{"(pid=12) ", {FF_TAG_PID, 12}, false},
};

static void prefixed(const char *prefix, bool bare, struct ff_str text, struct ff_buf *out)
{
	ff_buf_clear(out);
	for (size_t from = 0; from < text.n;) {
		size_t lf = (size_t)ff_str_chr(text, '\n', from);
		if (lf > from || !bare) {
			ff_buf_addz(out, prefix);
		}
		ff_buf_add(out, text.p + from, lf + 1 - from);
		from = lf + 1;
	}
}

START_TEST(prefixes_change_nothing)
{
	struct world *w = world_create(catalog_json);
	struct ff_buf out = {0}, text = {0};
	for (size_t i = 0; i < sizeof prefixes / sizeof prefixes[0]; i++) {
		prefixed(prefixes[i].text, prefixes[i].bare, ff_str_z(rows[_i].text), &text);
		run(w, ff_buf_str(&text), 0, prefixes[i].tag, &out);
		ck_assert_msg(!strcmp(out.p, rows[_i].events), "%s---- gives\n%s---- not\n%s",
			text.p, out.p, rows[_i].events);
	}
	ff_buf_finish(&out);
	ff_buf_finish(&text);
	world_destroy(w);
}
END_TEST

START_TEST(an_error_file_has_its_time)
{
	struct world *w = world_create(catalog_json);
	struct ff_stream *s = stream_create();
	struct ff_str text = FF_STR("{\"message\": {\"message\": \"Fatal Python error: x\", "
				    "\"extraInfo\": {\"timestamp\": \"1714561234\"}}}");
	struct ff_chunk c = {
		.data = text.p,
		.len = text.n,
		.stamp = FF_STAMP_NONE,
		.tags = {FF_TAG_INIT, FF_UNKNOWN},
	};
	ff_stream_feed(s, &w->digest, &c);
	ff_stream_end(s, &w->digest, true, FF_TIME_NONE);
	ck_assert_uint_eq(s->nevents, 1);
	ck_assert_int_eq(s->events[0].claimed.us, 1714561234 * FF_SECOND);
	ck_assert(s->events[0].claimed.has_zone);
	ff_stream_destroy(s);
	world_destroy(w);
}
END_TEST

static Suite *suite(void)
{
	Suite *s = suite_create("record");
	TCase *t = tcase_create("record");
	int n = (int)(sizeof rows / sizeof rows[0]);
	tcase_add_loop_test(t, records_give_their_events, 0, n);
	tcase_add_loop_test(t, cuts_change_nothing, 0, n);
	tcase_add_loop_test(t, prefixes_change_nothing, 0, n);
	tcase_add_test(t, an_error_file_has_its_time);
	suite_add_tcase(s, t);
	return s;
}

int main(void)
{
	SRunner *r = srunner_create(suite());
	srunner_run_all(r, CK_ENV);
	int failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed ? 1 : 0;
}
