"""Generated jobs: what healthy ranks print, and a storm that reaches the caps. Same seed, same bytes.

`healthy` gives a rank's lines; `storm` is a whole job as a support.replay.Replay, in which clock pairs, folded events,
more than 64 events of a lane and a record of more than 2,000 lines occur.
"""
import random

from support.replay import Replay

WORDS = ("cache shard bucket attention gradient overlap stage micro batch optimizer prefetch window scale retry_budget "
         "error_rate failures timeout_s kernel fused loader replica tokens queue flush").split()
LEVELS = ("INFO", "INFO", "INFO", "DEBUG")
STEP_US = 250000


def clock_text(us):
    """HH:MM:SS of a day, and microseconds."""
    seconds = us // 1000000
    return f"{seconds // 3600 % 24:02}:{seconds // 60 % 60:02}:{seconds % 60:02}", us % 1000000


class Rank:
    """One rank's healthy output. Lines carry the node's own clock, `skew_us` off the collector's."""

    def __init__(self, seed, rank, world, skew_us=0):
        self.rng = random.Random(f"{seed} rank {rank}")
        self.rank, self.world, self.skew_us = rank, world, skew_us
        self.step = 0
        pick = self.rng.choice
        self.phrases = [" ".join(self.rng.sample(WORDS, 5)) for _ in range(200)]
        self.tensors = ["tensor([" + ", ".join(f"{self.rng.uniform(-3, 3):.4f}" for _ in range(n)) + "])" for n in (40, 400, 1500)]
        self.files = [f"model/{pick(WORDS)}.py" for _ in range(8)]

    def line(self, us):
        """The text printed at `us` (microseconds since the start of 2026 on the collector's clock)."""
        rng = self.rng
        hms, micro = clock_text(us + self.skew_us)
        dice = rng.random()
        if dice < 0.35:
            return self.progress(hms, micro)
        if dice < 0.58:
            return f"2026-01-01 {hms},{micro // 1000:03} - {rng.choice(LEVELS)} - trainer.{rng.choice(WORDS)} - {rng.choice(self.phrases)} {rng.randrange(9999)}"
        if dice < 0.70:
            return self.nccl()
        if dice < 0.79:
            return f"[rank{self.rank}]:[I101 {hms}.{micro:06}000 {rng.choice(('reducer', 'TCPStore', 'logger'))}.cpp:{rng.randrange(2000)}] {rng.choice(self.phrases)}"
        if dice < 0.87:
            return f'{{"level":"info","ts":"2026-01-01T{hms}.{micro:06}Z","rank":{self.rank},"msg":"{rng.choice(self.phrases)}","loss":{rng.uniform(1, 4):.5f}}}'
        if dice < 0.92:
            return f"2026-01-01 {hms},{micro // 1000:03} - WARNING - trainer.data - loader queue low: {rng.randrange(4)} of 16 batches ready"
        if dice < 0.95:
            return f"{rng.choice(self.files)}:{rng.randrange(900)}: UserWarning: {rng.choice(self.phrases)} is slow on this layout"
        if dice < 0.999:
            return self.bar()
        return rng.choice(self.tensors)

    def progress(self, hms, micro):
        self.step += 1
        rng = self.rng
        return (f"[2026-01-01 {hms},{micro // 1000:03}][rank {self.rank}] step={self.step} | loss: {rng.uniform(1, 4):.4f} | "
                f"grad_norm: {rng.uniform(0, 2):.3f} | lr: 3.000e-04 | tokens/s: {rng.uniform(9000, 12000):.1f}")

    def nccl(self):
        n = self.rng.randrange
        return f"node-{self.rank // 4}:{7000 + self.rank}:{7100 + n(40)} [{self.rank % 4}] NCCL INFO Channel {n(16):02}/0 : {n(self.world)}[{n(4)}] -> {n(self.world)}[{n(4)}] via P2P/IPC"

    def bar(self):
        done = self.rng.randrange(1000)
        return "\r".join(f"Epoch 3: {(done + k) / 10:3.0f}%|{'#' * ((done + k) // 100):<10}| {done + k}/1000 [{(done + k) // 60:02}:{(done + k) % 60:02}, {self.rng.uniform(3, 5):.2f}it/s]"
                         for k in range(3))


def healthy(seed, rank, world, lines):
    """The bytes of one healthy rank's file."""
    source = Rank(seed, rank, world)
    out = [source.line(i * STEP_US) for i in range(lines)]
    return ("\n".join(out) + "\n").encode()


def traceback_of(frames, error, rng):
    out = ["Traceback (most recent call last):"]
    for _ in range(frames):
        out += [f'  File "/job/{rng.choice(WORDS)}.py", line {rng.randrange(1, 900)}, in {rng.choice(WORDS)}', f"    value = self.{rng.choice(WORDS)}(value)"]
    return [*out, error]


def oom(rank, rng):
    return traceback_of(12, f"torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.25 GiB. GPU {rank % 4} has a total capacity of 79.11 GiB of "
                        f"which 412.00 MiB is free. Process {7000 + rank} has 78.61 GiB memory in use. Of the allocated memory 74.11 GiB is allocated by "
                        "PyTorch, and 2.71 GiB is reserved by PyTorch but unallocated.", rng)


def lost_peer(rank, culprit, us, rng):
    hms, micro = clock_text(us)
    head = f"[rank{rank}]:[E101 {hms}.{micro:06}000 ProcessGroupNCCL.cpp:"
    frames = [f"frame #{i}: c10d::ProcessGroupNCCL::{rng.choice(WORDS)}() + 0x{rng.randrange(4096):x} (0x7f{rng.randrange(1 << 40):010x} in libtorch_cuda.so)"
              for i in range(18)]
    return [f"{head}2068] [PG ID 0 PG GUID 0(default_pg) Rank {rank}] Process group watchdog thread terminated with exception: NCCL error: remote process "
            "exited or there was a network error, NCCL version 2.21.5",
            "ncclRemoteError: A call failed possibly due to a network error or a remote process exiting prematurely.",
            "Last error:", f"socketProgress: Connection closed by remote peer node-{culprit // 4}<{40000 + culprit}>",
            "Exception raised from checkForNCCLErrorsInternal at ProcessGroupNCCL.cpp:2363 (most recent call first):", *frames, ""]


def storm(seed, job, ranks=8, size=4 << 20):
    """`ranks` streams of `size` bytes and one mixed stream; at the end rank 5 (or the last) fails and the others say so."""
    rng = random.Random(f"{seed} storm")
    culprit = min(5, ranks - 1)
    streams = [{"name": f"rank-{r}.log", "kind": "rank", "rank": r, "node": f"node-{r // 4}", "local_rank": r % 4, "attempt": 0, "fd": "stderr"}
               for r in range(ranks)]
    streams.append({"name": "console.log", "kind": "mixed", "node": "node-0"})
    console = ranks
    sources = [Rank(seed, r, ranks, skew_us=rng.randrange(-3000000, 3000000)) for r in range(ranks)]
    rows, sizes, us = [], [0] * ranks, 10000000

    def put(k, lines):
        rows.extend((us, k, x.encode()) for x in lines)

    noisy, deep = rng.sample([r for r in range(ranks) if r != culprit], 2)
    ticks = 0
    while min(sizes) < size:
        for r, source in enumerate(sources):
            text = source.line(us).encode()
            rows.append((us + rng.randrange(1000), r, text))
            sizes[r] += len(text) + 1
            us += rng.randrange(20, 4000)
        if ticks % 40 == 0:  # one of them is on the console too
            r = rng.randrange(ranks)
            put(console, [f"[rank{r}]: {sources[r].progress(*clock_text(us))}"])
        if ticks % 100 == 50 and ticks < 12000:  # an error that it lives through: more than 64 of them
            put(noisy, [*traceback_of(2, f"ValueError: bad sample in shard {rng.choice(WORDS)}", rng), sources[noisy].progress(*clock_text(us))])
        if ticks % 2000 == 700:  # the same again and again with no step between: folded
            for _ in range(rng.randrange(3, 9)):
                put(noisy, traceback_of(2, "ConnectionError: HTTPSConnectionPool(host='store', port=443): Max retries exceeded", random.Random(1)))
        if ticks == 1000:  # deeper than a record may be
            put(deep, [*traceback_of(1100, "RecursionError: maximum recursion depth exceeded", rng), sources[deep].progress(*clock_text(us))])
        ticks += 1
    rows.sort(key=lambda row: row[0])
    us = rows[-1][0] + 1000000
    put(culprit, oom(culprit, rng))
    put(console, [f"[rank{culprit}]: {x}" for x in oom(culprit, rng)])
    reports = {r: lost_peer(r, culprit, us + 1200000, rng) for r in range(ranks) if r != culprit}
    for i in range(max(map(len, reports.values()))):  # all at once, line by line
        us += 1200000 if i == 0 else 150
        for r, lines in reports.items():
            if i < len(lines):
                put(r, [lines[i]])
                put(console, [f"[rank{r}]: {lines[i]}"])
    return Replay(job, streams, rows, True, {"world_size": ranks, "launcher": "torchrun"}, {"exit_code": 1, "state": "FAILED"})
