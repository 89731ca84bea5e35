"""Six situations that an on-call engineer meets, as JSON Lines for `analyze -`. Same seed, same bytes.

Each is a function of SITUATIONS that fills a Job: what programs print is in the programs' own form, who fails when is
ours. tests/system/test_screens.py compares the screens with tests/fixtures/screens.
"""
import datetime
import json
import random

START = datetime.datetime(2026, 3, 9, 5, 0, 0, tzinfo=datetime.timezone.utc)
GPUS = 8  # ranks on a node


def stamp(seconds):
    return (START + datetime.timedelta(microseconds=round(seconds * 1000000))).isoformat(timespec="microseconds").replace("+00:00", "Z")


class Job:
    """Lines of ranks, agents and others, sorted by time at the end. With `skew`, stamps are those of the nodes' clocks."""

    def __init__(self, name, ranks, launcher="torchrun", skew=False, title=None, user=None):
        self.name, self.ranks, self.launcher, self.skew = name, ranks, launcher, skew
        self.told = {k: v for k, v in (("name", title), ("user", user)) if v}
        self.rng = random.Random(name)
        self.nodes = (ranks + GPUS - 1) // GPUS
        self.offset = [self.rng.uniform(-0.02, 0.02) if skew else 0 for _ in range(self.nodes)]
        self.rows, self.end = [], None

    def clock(self, at, n):
        """What a program on node n writes as its time: just before the line is captured."""
        return START + datetime.timedelta(seconds=at + self.offset[n] - 0.002)

    def node(self, n):
        return f"hgx{n:03}"

    def _row(self, at, node, head, text):
        shift = self.offset[node] if node is not None else 0
        for i, line in enumerate(text.split("\n")):
            self.rows.append((at + i * 1e-6 + shift, len(self.rows), {**head, "message": line}))

    def rank(self, at, r, text):
        head = {"stream": f"rank-{r}.err", "kind": "rank", "rank": r, "node": self.node(r // GPUS), "local_rank": r % GPUS, "fd": "stderr"}
        self._row(at, r // GPUS, head, text)

    def agent(self, at, n, text):
        self._row(at, n, {"stream": "agent.err", "kind": "agent", "node": self.node(n)}, text)

    def kernel(self, at, n, text):
        self._row(at, n, {"stream": "kmsg", "kind": "kernel", "node": self.node(n)}, text)

    def scheduler(self, at, text):
        self._row(at, None, {"stream": "slurmctld.log", "kind": "scheduler"}, text)

    def console(self, at, text):
        self._row(at, None, {"stream": "console.out", "kind": "mixed", "node": self.node(0)}, text)

    def steps(self, first, count, gap, number, ranks=None):
        """Step lines of all ranks; returns the time of the last."""
        for k in range(count):
            for r in ranks if ranks is not None else range(self.ranks):
                self.rank(first + k * gap + self.rng.uniform(0, 0.05), r, f"step {number + k} | loss {2.5 - k / 100:.4f} | {self.rng.uniform(3, 4):.2f} s")
        return first + (count - 1) * gap

    def finish(self, at, **end):
        self.end = (at, end)

    def jsonl(self):
        out = [{"event": "job-start", "job": self.name, "world_size": self.ranks, "launcher": self.launcher, **self.told}]
        if self.skew:
            out[0]["clock"] = "node"
            for n in range(self.nodes):  # a round trip of 3 ms at most, symmetric
                t2 = int(START.timestamp() * 1e6)
                way = self.rng.randrange(900, 1500)
                off = round(self.offset[n] * 1e6)
                out.append({"event": "clock", "job": self.name, "node": self.node(n), "t1": t2 - way + off, "t2": t2, "t3": t2, "t4": t2 + way + off})
        for at, _, row in sorted(self.rows, key=lambda x: x[:2]):
            out.append({"job": self.name, "time": stamp(at), **row})
        if self.end:
            out.append({"event": "job-end", "job": self.name, "time": stamp(self.end[0]), **self.end[1]})
        return ("\n".join(json.dumps(x) for x in out) + "\n").encode()


def c10(job, at, r, where, text):
    """A line of c10's logger, as torch prints it."""
    t = job.clock(at, r // GPUS)
    return f"[rank{r}]:[E{t.month}{t.day:02} {t:%H:%M:%S}.{job.rng.randrange(10**9):09} {where}] {text}"


def agent_line(job, at, n, pid, where, text):
    t = job.clock(at, n)
    return f"W{t.month:02}{t.day:02} {t:%H:%M:%S}.{t.microsecond // 1000:03}000 {pid} torch/distributed/elastic/multiprocessing/{where}] {text}"


def pid_of(r):
    return 51000 + r % GPUS


def closing(job, at, n, but=()):
    for r in range(n * GPUS, min((n + 1) * GPUS, job.ranks)):
        if r not in but:
            job.agent(at, n, agent_line(job, at, n, 50999, "api.py:1010", f"Sending process {pid_of(r)} closing signal SIGTERM"))


def failure(job, t, n, number, r, code):
    name = {-6: " (SIGABRT)", -15: " (SIGTERM)"}.get(code, "")
    tail = f"Signal {-code}{name} received by PID {pid_of(r)}" if code < 0 else "To enable traceback see: https://pytorch.org/docs/stable/elastic/errors.html"
    return [f"[{number}]:", f"  time      : {t:%Y-%m-%d_%H:%M:%S}", f"  host      : {job.node(n)}", f"  rank      : {r} (local_rank: {r % GPUS})",
            f"  exitcode  : {code} (pid: {pid_of(r)}){name}", "  error_file: <N/A>", f"  traceback : {tail}"]


def table(job, at, n, r, code, *others):
    """The failures that torchrun reports for its node; of those within a second the lowest rank is its root cause."""
    t = job.clock(at, n)
    rest = [x for k, (rank, c) in enumerate(others) for x in failure(job, t, n, k + 1, rank, c)] or ["  <NO_OTHER_FAILURES>"]
    job.agent(at, n, "\n".join([
        f"E{t.month:02}{t.day:02} {t:%H:%M:%S}.{t.microsecond // 1000:03}000 50999 torch/distributed/elastic/multiprocessing/api.py:984] "
        f"failed (exitcode: {code}) local_rank: {r % GPUS} (pid: {pid_of(r)}) of binary: /opt/venv/bin/python",
        "============================================================", "pretrain.py FAILED",
        "------------------------------------------------------------", "Failures:", *rest,
        "------------------------------------------------------------", "Root Cause (first observed failure):", *failure(job, t, n, 0, r, code),
        "============================================================"]))


def traceback(frames, error):
    out = ["Traceback (most recent call last):"]
    for path, line, function, code in frames:
        out += [f'  File "{path}", line {line}, in {function}', f"    {code}"]
    return "\n".join([*out, error])


def lost_peer(job, at, r, culprit):
    return c10(job, at, r, "ProcessGroupNCCL.cpp:2068", f"[PG ID 0 PG GUID 0(default_pg) Rank {r}] Process group watchdog thread terminated with exception: "
               "NCCL error: remote process exited or there was a network error, NCCL version 2.27.3") + "\n" + \
        "ncclRemoteError: A call failed possibly due to a network error or a remote process exiting prematurely.\nLast error:\n" + \
        f"socketProgress: Connection closed by remote peer {job.node(culprit // GPUS)}<{40000 + culprit}>"


def oom():
    """(a) One rank of 256 runs out of GPU memory; another process sits on its GPU."""
    job = Job("51907", 256, skew=True, title="lm-70b-sft", user="noor")
    who, node = 93, 11
    last = job.steps(600, 3, 3.4, 880)
    at = last + 1.25
    frames = [("/srv/lm/pretrain.py", 287, "<module>", "main()"), ("/srv/lm/pretrain.py", 203, "main", "loss = step(model, batch)"),
              ("/srv/lm/pretrain.py", 151, "step", "scores = self.proj(states)"),
              ("/opt/venv/lib/python3.12/site-packages/torch/nn/modules/linear.py", 125, "forward", "return F.linear(input, self.weight, self.bias)")]
    job.rank(at, who, traceback(frames, "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.88 GiB. GPU 5 has a total capacity of 79.11 GiB of "
             "which 250.00 MiB is free. Process 77130 has 21.06 GiB memory in use. Including non-PyTorch memory, this process has 57.79 GiB memory in use. "
             "Of the allocated memory 54.02 GiB is allocated by PyTorch, and 1.31 GiB is reserved by PyTorch but unallocated."))
    told = at + 2.2
    closing(job, told, node, (who,))
    for r in range(job.ranks):
        if r == who:
            continue
        if r // GPUS == node:
            continue  # ended by its agent
        late = at + 2.4 + job.rng.uniform(0, 8)
        job.rank(late, r, lost_peer(job, late, r, who))
    for n in range(job.nodes):
        job.kernel(300 + n / 10, n, f"<6>[ 9120.{n:06}] nvidia-uvm: Loaded the UVM driver, major device number 511.")
        if n == node:
            table(job, at + 4.1, n, n * GPUS, -15, *((r, 1 if r == who else -15) for r in range(n * GPUS + 1, (n + 1) * GPUS)))
        else:
            table(job, at + 11.9, n, n * GPUS, -6)
    job.finish(at + 16, exit_code=1, state="FAILED")
    return job


def silent():
    """(b) 63 of 64 ranks run into a collective's timeout; the last one was heard to its end and says nothing."""
    job = Job("52066", 64, skew=True)
    who = 19
    last = job.steps(900, 4, 5.2, 2110)
    began = last + 3.1
    for r in range(job.ranks):
        if r == who:
            continue
        at = began + 480 + job.rng.uniform(0.02, 1.9)
        ran = round((at - began) * 1000)
        work = f"WorkNCCL(SeqNum=8804, OpType=_REDUCE_SCATTER_BASE, NumelIn=67108864, NumelOut=1048576, Timeout(ms)=480000) ran for {ran} milliseconds before timing out."
        job.rank(at, r, c10(job, at, r, "ProcessGroupNCCL.cpp:683", f"[Rank {r}] Watchdog caught collective operation timeout: {work}"))
        job.rank(at + 0.2, r, c10(job, at, r, "ProcessGroupNCCL.cpp:2279", f"[PG ID 0 PG GUID 0(default_pg) Rank {r}] failure detected by watchdog at work sequence id: 8804 "
                 "PG status: last enqueued work: 8809, last completed work: 8803"))
    for n in range(job.nodes):
        at = began + 500 + n / 100
        closing(job, at, n, (n * GPUS,))
        table(job, at + 30, n, n * GPUS, -6)
    job.finish(began + 540, exit_code=1, state="FAILED")
    return job


def imports():
    """(c) A module is missing in the image: every rank says so."""
    job = Job("52103", 256, skew=True, title="vision-pre", user="ivo")
    at = 37.5
    frames = [("/srv/vision/train.py", 6, "<module>", "from vision.blocks import Mixer"), ("/srv/vision/blocks.py", 2, "<module>", "import xformers_ops")]
    for r in range(job.ranks):
        job.rank(at + job.rng.uniform(0, 3.2), r, traceback(frames, "ModuleNotFoundError: No module named 'xformers_ops'"))
    for n in range(job.nodes):
        table(job, at + 5 + n / 50, n, n * GPUS + n % GPUS, 1)
    job.finish(at + 8, exit_code=1, state="FAILED")
    return job


def node_lost():
    """(d) A host goes away with its eight ranks, agent and kernel log."""
    job = Job("52260", 64, skew=True)
    gone = 5
    last = job.steps(1500, 4, 6.0, 7040)
    end = last + 0.9
    for n in range(job.nodes):
        job.kernel(20 + n, n, f"<6>[  412.{n:06}] mlx5_core 0000:1a:00.0: firmware version: 28.39.1002")
        job.agent(30, n, agent_line(job, 30, n, 50999, "api.py:711", "Starting worker processes").replace("W0", "I0", 1))
    for r in range(job.ranks):
        if r // GPUS == gone:
            continue
        at = end + 68 + job.rng.uniform(0, 6)
        job.rank(at, r, lost_peer(job, at, r, gone * GPUS))
    job.scheduler(end + 151, "[2026-03-09T05:27:49.897] error: Nodes hgx005 not responding")
    job.scheduler(end + 271, "[2026-03-09T05:29:49.896] error: Nodes hgx005 not responding, setting DOWN")
    for n in range(job.nodes):
        if n != gone:
            table(job, end + 90 + n / 10, n, n * GPUS, -6)
    job.finish(end + 275, state="NODE_FAIL")
    return job


def preempted():
    """(e) Slurm takes the nodes for another job."""
    job = Job("52301", 32, launcher="srun", user="kim")
    last = job.steps(2000, 6, 1.5, 640)
    word = last + 0.8
    job.scheduler(word, "[2026-03-09T05:33:28.300] preempted JobId=52301 has been killed to reclaim resources for JobId=52388")
    for n in range(job.nodes):
        job.console(word + 0.02, f"slurmstepd-{job.node(n)}: error: *** STEP 52301.0 ON {job.node(n)} CANCELLED AT 2026-03-09T05:33:28 DUE TO PREEMPTION ***")
    job.console(word + 2.6, f"srun: error: {job.node(1)}: tasks 9-10: Exited with exit code 1")
    job.console(word + 2.7, f"srun: error: {job.node(0)}: tasks 0-7: Terminated")
    job.finish(word + 3, state="PREEMPTED")
    return job


def undetermined():
    """(f) One rank of eight made a collective that the others never make; the console shows all of them."""
    job = Job("52417", 8)
    job.end = None
    for k in range(4):
        for r in range(8):
            job.console(60 + k * 2 + r / 100, f"[rank{r}]: step {k + 1} loss {1.5 - k / 10:.3f}")
    began = 66.4
    at = began + 300.031
    work = "WorkNCCL(SeqNum=17, OpType=ALLREDUCE, NumelIn=2, NumelOut=2, Timeout(ms)=300000) ran for 300031 milliseconds before timing out."
    job.console(at, c10(job, at, 6, "ProcessGroupNCCL.cpp:683", f"[Rank 6] Watchdog caught collective operation timeout: {work}"))
    for r in (6, 0, 1, 2, 3, 4, 5, 7):
        t = at + 0.3 + r / 40
        from_ = "this local rank" if r == 6 else " rank 6"
        job.console(t, c10(job, t, r, "ProcessGroupNCCL.cpp:1772", f"[PG ID 0 PG GUID 0(default_pg) Rank {r}] Received a dump signal due to a collective timeout from {from_} "
                    f"and we will try our best to dump the debug info. Last enqueued NCCL work: {17 if r == 6 else 16}, last completed NCCL work: 16."
                    "This is most likely caused by incorrect usages of collectives, e.g., wrong sizes used across ranks."))
    job.console(at + 60, c10(job, at + 60, 6, "ProcessGroupNCCL.cpp:2068", f"[PG ID 0 PG GUID 0(default_pg) Rank 6] Process group watchdog thread terminated with exception: [Rank 6] Watchdog caught collective operation timeout: {work}"))
    table(job, at + 62, 0, 6, -6)
    job.finish(at + 63, exit_code=1, state="FAILED")
    return job


SITUATIONS = {"oom": oom, "silent": silent, "imports": imports, "node-lost": node_lost, "preempted": preempted, "undetermined": undetermined}
