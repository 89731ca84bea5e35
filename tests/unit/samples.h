/* One sample of every line format (where they come from: shared/core/SOURCES.md): what launchers
 * and containers put in front of a line, times, records of one or many lines, and what launchers
 * say at the end. tests/unit/test_formats.c does to each what a hostile or broken source does; a
 * new format is a row here.
 */
#pragma once

#include "base/str.h"

struct sample {
	const char *name;
	struct ff_str text;
	const char *fault; /* that one event of a record has, or the signature of what is none */
};

#define SAMPLE_TEXT(z) \
	{ \
		z, sizeof(z) - 1 \
	}

/* In front of each line. */
static const struct sample sample_prefixes[] = {
	{"srun", SAMPLE_TEXT(" 3: "), NULL},
	{"srun-wide", SAMPLE_TEXT("  113: "), NULL},
	{"srun-het", SAMPLE_TEXT("P0 13: "), NULL},
	{"ompi4", SAMPLE_TEXT("[1,3]<stderr>:"), NULL},
	{"ompi4-time", SAMPLE_TEXT("Thu May  1 12:00:00 2024[1,3]<stderr>:"), NULL},
	{"ompi5", SAMPLE_TEXT("[1,3]<stderr>: "), NULL},
	{"ompi5-rank", SAMPLE_TEXT("[3]<stderr>: "), NULL},
	{"ompi5-detailed", SAMPLE_TEXT("[prterun-gpu07-4411@1,3][gpu08:991]<stderr>: "), NULL},
	{"ompi5-time",
		SAMPLE_TEXT("[Mon Nov 30 10:37:31 2026]<stderr>: [1,3][node-b:235]<stderr>: "),
		NULL},
	{"ompi-xml", SAMPLE_TEXT("<stderr rank=\"3\">"), NULL},
	{"hydra", SAMPLE_TEXT("[3] "), NULL},
	{"torchrun", SAMPLE_TEXT("[default3]:"), NULL},
	{"torchrun-role", SAMPLE_TEXT("[trainer3]:"), NULL},
	{"torch-hook", SAMPLE_TEXT("[rank3]: "), NULL},
	{"torchrun-hook", SAMPLE_TEXT("[default3]:[rank3]: "), NULL},
	{"srun-hook", SAMPLE_TEXT("4: [rank4]: "), NULL},
	{"hook-hook", SAMPLE_TEXT("[rank3]:[rank7]: "), NULL},
	{"pdsh-hook", SAMPLE_TEXT("gpu07: [rank3]: "), NULL},
	{"pdsh-torchrun", SAMPLE_TEXT("gpu07: [default3]:"), NULL},
	{"ts-hook", SAMPLE_TEXT("May 01 12:00:00 [rank3]: "), NULL},
	{"time-hook", SAMPLE_TEXT("2024-05-01 12:00:00,123 [rank3]: "), NULL},
	{"ray", SAMPLE_TEXT("(RayTrainWorker pid=1234, ip=10.0.0.5) "), NULL},
	{"ray-colour", SAMPLE_TEXT("\x1b[36m(RayTrainWorker pid=375)\x1b[0m "), NULL},
	{"ray-name", SAMPLE_TEXT("(Actor(id=3, x y) pid=77) "), NULL},
	{"vllm", SAMPLE_TEXT("(APIServer pid=1) (Core pid=2, ip=10.0.0.1) "), NULL},
	{"kubectl", SAMPLE_TEXT("[pod/llm-worker-3-x7k2p/pytorch] "), NULL},
	{"kubectl-time",
		SAMPLE_TEXT("[pod/llm-worker-3-x7k2p/pytorch] 2024-05-01T12:00:00.000000001Z "),
		NULL},
	{"docker-time", SAMPLE_TEXT("2024-05-01T12:00:00.123456789Z "), NULL},
	{"cri", SAMPLE_TEXT("2024-05-01T14:00:00.5+02:00 stderr F "), NULL},
	{"syslog", SAMPLE_TEXT("May  1 12:00:00 gpu07 trainer[991]: "), NULL},
	{"syslog-pri", SAMPLE_TEXT("<30>May  1 12:00:00 3f2a90b1c4de[991]: "), NULL},
	{"syslog-5424",
		SAMPLE_TEXT(
			"<131>1 2024-05-01T12:00:00.123456Z gpu07 train 4121 - [a b=\"\\\"]\"] "),
		NULL},
	{"journal", SAMPLE_TEXT("2024-05-01T12:00:00+0000 gpu07 trainer[991]: "), NULL},
};

/* The same prefix of two processes: their lines are two lanes, however they alternate. */
static const struct {
	const char *name;
	struct ff_str a, b;
} sample_pairs[] = {
	{"srun", SAMPLE_TEXT(" 3: "), SAMPLE_TEXT("13: ")},
	{"ompi4", SAMPLE_TEXT("[1,3]<stderr>:"), SAMPLE_TEXT("[1,4]<stderr>:")},
	{"ompi5", SAMPLE_TEXT("[1,3][a:7]<stderr>: "), SAMPLE_TEXT("[1,4][a:8]<stderr>: ")},
	{"ompi-xml", SAMPLE_TEXT("<stderr rank=\"3\">"), SAMPLE_TEXT("<stderr rank=\"4\">")},
	{"hydra", SAMPLE_TEXT("[3] "), SAMPLE_TEXT("[4] ")},
	{"torchrun", SAMPLE_TEXT("[default3]:"), SAMPLE_TEXT("[default4]:")},
	{"torch-hook", SAMPLE_TEXT("[rank3]: "), SAMPLE_TEXT("[rank4]: ")},
	{"ts-hook", SAMPLE_TEXT("12:00:00 [rank3]: "), SAMPLE_TEXT("12:00:00 [rank4]: ")},
	{"pdsh-torchrun", SAMPLE_TEXT("a: [default3]:"), SAMPLE_TEXT("b: [default3]:")},
	{"ray", SAMPLE_TEXT("(W pid=7) "), SAMPLE_TEXT("(W pid=8, ip=10.0.0.5) ")},
	{"ray-colour", SAMPLE_TEXT("\x1b[36m(W pid=7)\x1b[0m "),
		SAMPLE_TEXT("\x1b[36m(W pid=8)\x1b[0m ")},
	{"kubectl", SAMPLE_TEXT("[pod/a-0/c] "), SAMPLE_TEXT("[pod/a-1/c] ")},
	{"kubectl-time", SAMPLE_TEXT("[pod/a-0/c] 2024-05-01T12:00:00.000000001Z "),
		SAMPLE_TEXT("[pod/a-1/c] 2024-05-01T12:00:00.000000001Z ")},
	{"kubectl-torchrun", SAMPLE_TEXT("[pod/a-0/c] [default3]:"),
		SAMPLE_TEXT("[pod/a-1/c] [default3]:")},
	{"syslog", SAMPLE_TEXT("May  1 12:00:00 gpu07 t[7]: "),
		SAMPLE_TEXT("May  1 12:00:00 gpu08 t[7]: ")},
	{"syslog-5424", SAMPLE_TEXT("<131>1 - gpu07 t 7 - - "),
		SAMPLE_TEXT("<131>1 - gpu07 t 8 - - ")},
};

/* At the front of a line, with text behind. */
static const struct sample sample_stamps[] = {
	{"python", SAMPLE_TEXT("2024-05-01 12:00:00,123 INFO train: x\n"), NULL},
	{"iso", SAMPLE_TEXT("2024-05-01T12:00:00.123456+02:00 x\n"), NULL},
	{"glog", SAMPLE_TEXT("I0501 12:00:00.123456 4121 f.cc:12] x\n"), NULL},
	{"glog-year", SAMPLE_TEXT("W20240501 12:00:00.123456 139876 f.cc:8] x\n"), NULL},
	{"c10", SAMPLE_TEXT("[W501 12:00:00.123456789 f.cpp:12] x\n"), NULL},
	{"torch", SAMPLE_TEXT("V0512 12:34:56.123000 1234 torch/x.py:12] [0/0] x\n"), NULL},
	{"table", SAMPLE_TEXT("  time      : 2026-11-30_09:34:21\n"), NULL},
	{"deepspeed", SAMPLE_TEXT("[2024-05-01 12:00:00,123] [INFO] [f.py:12:fn] [Rank 0] x\n"),
		NULL},
	{"megatron", SAMPLE_TEXT(" [2024-05-01 12:00:00.123456] iteration       12/  100 | x\n"),
		NULL},
	{"nemo", SAMPLE_TEXT("[NeMo I 2024-05-01 12:00:00 file:12 rank:3] x\n"), NULL},
	{"hydra-core", SAMPLE_TEXT("[2024-05-01 12:00:00,123][name][INFO] - x\n"), NULL},
	{"vllm", SAMPLE_TEXT("INFO 05-01 12:00:00 [f.py:12] x\n"), NULL},
	{"rich", SAMPLE_TEXT("[05/01/24 12:00:00] INFO     x\n"), NULL},
	{"syslog", SAMPLE_TEXT("May  1 12:00:00 host kernel: x\n"), NULL},
	{"ctime", SAMPLE_TEXT("[Thu May  1 12:00:00 2024] x\n"), NULL},
	{"nccl", SAMPLE_TEXT("[2025-05-01 12:00:00] gpu07:4121:4388 [3] x\n"), NULL},
	{"fabric", SAMPLE_TEXT("[Jul 23 2024 07:53:55] x\n"), NULL},
	{"slurm", SAMPLE_TEXT("[2024-05-01T12:00:00.000] slurmctld: x\n"), NULL},
	{"slurm-cancel",
		SAMPLE_TEXT("slurmstepd: error: *** STEP 7.0 ON a CANCELLED AT 2024-05-01T12:00:00 "
			    "***\n"),
		NULL},
	{"ray", SAMPLE_TEXT("2024-05-01 12:00:00,195\tINFO worker.py:1603 -- x\n"), NULL},
	{"transformers", SAMPLE_TEXT("11/30/2026 10:14:51 - INFO - t - [RANK 0] x\n"), NULL},
	{"kernel", SAMPLE_TEXT("[12345.678901][ T4121] x\n"), NULL},
	{"kmsg", SAMPLE_TEXT("3,1042,128812345678,-,caller=T411;x\n"), NULL},
	{"epoch", SAMPLE_TEXT("1714564800.123456 x\n"), NULL},
	{"progress", SAMPLE_TEXT("  3%|#  | 2/60 [00:00<00:05, 11.2it/s]\r  5%|#  | 3/60\r\n"),
		NULL},
};

#define SAMPLE_FRAMES \
	"  File \"/job/train.py\", line 88, in <module>\n" \
	"    main()\n" \
	"  File \"/job/train.py\", line 41, in main\n" \
	"    loss = model(x)\n" \
	"           ^^^^^^^^\n"
#define SAMPLE_HEADER "Traceback (most recent call last):\n"
#define SAMPLE_OOM \
	"torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a " \
	"total " \
	"capacity of 79.15 GiB of which 12.00 MiB is free.\n"

/* What a program prints, without prefixes. */
static const struct sample sample_records[] = {
	{"traceback", SAMPLE_TEXT(SAMPLE_HEADER SAMPLE_FRAMES SAMPLE_OOM), "cuda-oom"},
	{"traceback-unknown", SAMPLE_TEXT(SAMPLE_HEADER SAMPLE_FRAMES "mylib.Odd: of no kind\n"),
		"python-exception"},
	{"chain",
		SAMPLE_TEXT(SAMPLE_HEADER SAMPLE_FRAMES SAMPLE_OOM
			"\nDuring handling of the above exception, another exception "
			"occurred:\n\n" SAMPLE_HEADER SAMPLE_FRAMES "RuntimeError: wrapped\n"),
		"cuda-oom"},
	{"group",
		SAMPLE_TEXT("  + Exception Group Traceback (most recent call last):\n"
			    "  |   File \"/job/train.py\", line 4, in <module>\n"
			    "  |     raise g\n"
			    "  | ExceptionGroup: two (1 sub-exception)\n"
			    "  +-+---------------- 1 ----------------\n"
			    "    | mylib.Odd: of no kind\n"
			    "    +------------------------------------\n"),
		"python-exception"},
	{"faulthandler",
		SAMPLE_TEXT("Fatal Python error: Segmentation fault\n\n"
			    "Current thread 0x00007f5b17da3ac3 (most recent call first):\n"
			    "  File \"/job/train.py\", line 88 in step\n"
			    "  File \"/job/train.py\", line 99 in <module>\n\n"
			    "Extension modules: numpy.core._multiarray_umath (total: 1)\n"),
		"sigsegv"},
	{"c10-watchdog",
		SAMPLE_TEXT("[E501 12:00:08.123456789 ProcessGroupNCCL.cpp:607] [Rank 3] Watchdog "
			    "caught collective operation timeout: WorkNCCL(SeqNum=9, "
			    "OpType=ALLREDUCE, NumelIn=1, NumelOut=1, Timeout(ms)=600000) ran for "
			    "600020 milliseconds before timing out.\n"),
		"nccl-timeout"},
	{"terminate",
		SAMPLE_TEXT(
			"terminate called after throwing an instance of 'gloo::EnforceNotMet'\n"
			"  what():  [enforce fail at /x/pair.cc:456] op.preamble.length <= "
			"op.nbytes. 2048 vs 4. Received data size doesn't match expected size. Is "
			"there a distributed collective mismatch in your code?\n"),
		"sigabrt"},
	{"gloo",
		SAMPLE_TEXT(SAMPLE_HEADER SAMPLE_FRAMES
			"RuntimeError: [/x/gloo/transport/tcp/pair.cc:534] Connection closed by "
			"peer [10.20.0.12]:41666\n"),
		"gloo-peer-closed"},
	{"device",
		SAMPLE_TEXT(SAMPLE_HEADER SAMPLE_FRAMES
			"RuntimeError: Expected all tensors to be on the same device, but found at "
			"least two devices, cuda:0 and cpu!\n"),
		"device-mismatch"},
	{"quoted",
		SAMPLE_TEXT(SAMPLE_HEADER SAMPLE_FRAMES
			"torch.multiprocessing.spawn.ProcessRaisedException: \n\n"
			"-- Process 1 terminated with the following error:\n" SAMPLE_HEADER
				SAMPLE_FRAMES SAMPLE_OOM),
		"cuda-oom"},
	{"dcp",
		SAMPLE_TEXT(SAMPLE_HEADER SAMPLE_FRAMES
			"torch.distributed.checkpoint.api.CheckpointException: CheckpointException "
			"ranks:dict_keys([3])\n"
			"Traceback (most recent call last): (RANK 3)\n" SAMPLE_FRAMES
			"OSError: [Errno 28] No space left on device\n"),
		"checkpoint-corrupt"},
};

/* What launchers, schedulers and kernels say. */
static const struct sample sample_endings[] = {
	{"torchrun",
		SAMPLE_TEXT(SAMPLE_HEADER
			"  File \"/bin/torchrun\", line 8, in <module>\n"
			"    sys.exit(main())\n"
			"torch.distributed.elastic.multiprocessing.errors.ChildFailedError: \n"
			"============================================================\n"
			"train.py FAILED\n"
			"------------------------------------------------------------\n"
			"Failures:\n"
			"  <NO_OTHER_FAILURES>\n"
			"------------------------------------------------------------\n"
			"Root Cause (first observed failure):\n"
			"[0]:\n"
			"  time      : 2026-11-30_09:27:37\n"
			"  host      : node-a\n"
			"  rank      : 1 (local_rank: 1)\n"
			"  exitcode  : 1 (pid: 8842)\n"
			"  error_file: <N/A>\n"
			"  traceback : To enable traceback see: "
			"https://pytorch.org/docs/stable/elastic\n"
			"============================================================\n"),
		"process-exit"},
	{"agent",
		SAMPLE_TEXT("W0501 12:00:09.120000 40010 torch/distributed/elastic/multiprocessing/"
			    "api.py:900] Sending process 40125 closing signal SIGTERM\n"),
		"agent-closing"},
	{"prterun",
		SAMPLE_TEXT("----------------------------------------------------------------------"
			    "----\n"
			    "prterun noticed that process rank 4 with PID 472 on node node-b "
			    "exited on\n"
			    "signal 11 (Segmentation fault).\n"
			    "----------------------------------------------------------------------"
			    "----\n"),
		"process-exit"},
	{"mpirun",
		SAMPLE_TEXT("mpirun noticed that process rank 3 with PID 0 on node gpu07 exited on "
			    "signal 9 (Killed).\n"),
		"process-exit"},
	{"hydra",
		SAMPLE_TEXT(
			"\n=====================================================================\n"
			"=   BAD TERMINATION OF ONE OF YOUR APPLICATION PROCESSES\n"
			"=   PID 764 RUNNING AT node-c\n"
			"=   EXIT CODE: 9\n"
			"=   CLEANING UP REMAINING PROCESSES\n"
			"=====================================================================\n"),
		"process-exit"},
	{"srun",
		SAMPLE_TEXT("srun: error: node-b: tasks 5-7: Exited with exit code 1\n"
			    "srun: Terminating StepId=7.0\n"),
		"process-exit"},
	{"deepspeed",
		SAMPLE_TEXT("[2024-05-01 12:00:08,123] [ERROR] [launch.py:325:sigkill_handler] "
			    "['/usr/bin/python', '-u', 'train.py', '--local_rank=3'] exits with "
			    "return code = -9\n"),
		"process-exit"},
	{"lightning",
		SAMPLE_TEXT(
			"[rank: 2] Child process with PID 20 terminated with code -9. Forcefully "
			"terminating all other processes to avoid zombies \xf0\x9f\xa7\x9f\n"),
		"process-exit"},
	{"xid",
		SAMPLE_TEXT("[128812.345678] NVRM: Xid (PCI:0000:9b:00): 79, pid=4121, "
			    "name=python, GPU "
			    "has fallen off the bus.\n"),
		"gpu-xid-79"},
	{"oom-kill",
		SAMPLE_TEXT(
			"[ 5184.946924] Out of memory: Killed process 4121 (python) "
			"total-vm:81234560kB, anon-rss:62345678kB, file-rss:0kB, shmem-rss:0kB, "
			"UID:1000 pgtables:123456kB oom_score_adj:0\n"),
		"host-oom-kill"},
	{"nccl-warn",
		SAMPLE_TEXT("\ngpu07:4121:4388 [3] misc/socket.cc:538 NCCL WARN socketProgress: "
			    "Connection closed by remote peer gpu08<50514>\n"),
		"nccl-remote-error"},
};
