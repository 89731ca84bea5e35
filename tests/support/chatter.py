"""Logs of ranks that train and say what healthy ranks say, in the forms that launchers give them. Same seed, same bytes.

`Forms` are how lines look (prefix and step line), `Chatter` writes a file of one form, line after line; `noise` is what looks
like a fault and is none: the noise forms of tests/cases/messages.tsv, and the lines of the clean cases.
"""
import json
import pathlib
import random
import re

from support import messages

CASES = pathlib.Path(__file__).resolve().parents[1] / "cases" / "dev"
POOL = 2000  # lines of each kind that are drawn once; a file picks from them

MODULES = ("model.embed", "layers.3.mlp", "layers.17.attention", "optimizer", "data.loader", "checkpoint", "trainer.loop", "metrics")
TALK = ("error budget 0 of 100 used", "retry count 0", "no failure in the last 600 s", "abort flag is 0", "0 failed requests", "timeout is 1800 s",
        "exit criteria: max_steps", "killed 0 stale workers", "prefetch queue 12 of 16", "rank map agreed", "memory watermark 71 %",
        "exceptions are logged to the console", "watchdog interval 60 s", "broken links: 0", "fault tolerance: off", "lost packets: 0")


def clock(rng):
    return f"{rng.randrange(24):02}:{rng.randrange(60):02}:{rng.randrange(60):02}"


def hugging_face(rng):
    return f"{{'loss': {rng.uniform(1, 4):.4f}, 'grad_norm': {rng.uniform(0, 2):.6f}, 'learning_rate': {rng.uniform(0, 3e-4):.3e}, 'epoch': {rng.uniform(0, 3):.2f}}}"


def megatron(rng):
    step = rng.randrange(1, 500000)
    return (f" [2026-03-01 {clock(rng)}] iteration {step:8}/  500000 | consumed samples: {step * 512:12} | elapsed time per iteration (ms): "
            f"{rng.uniform(900, 1400):.1f} | learning rate: {rng.uniform(0, 3e-4):.6E} | global batch size:   512 | lm loss: {rng.uniform(1, 4):.6E} | "
            f"loss scale: 1.0 | grad norm: {rng.uniform(0, 2):.3f} | number of skipped iterations:   0 | number of nan iterations:   0 |")


def deepspeed(rng):
    step = rng.randrange(1, 90000)
    return (f"[2026-03-01 {clock(rng)},{rng.randrange(1000):03}] [INFO] [logging.py:96:log_dist] [Rank 0] step={step}, skipped=0, lr=[{rng.uniform(0, 3e-4):.6e}], "
            f"mom=[(0.9, 0.95)]")


def lightning(rng):
    done = rng.randrange(1, 1000)
    return "\r".join(f"Epoch 3: {(done + k) / 10:3.0f}%|{'#' * ((done + k) // 100):<10}| {done + k}/1000 [00:{done % 60:02}<01:12, {rng.uniform(3, 5):.2f}it/s, v_num=0]"
                     for k in range(3))


def plain_step(rng):
    return f"2026-03-01 {clock(rng)},{rng.randrange(1000):03} INFO train: step {rng.randrange(1, 90000)} loss {rng.uniform(1, 4):.4f} tokens/s {rng.uniform(9000, 12000):.0f}"


def nccl(rng):
    n = rng.randrange
    head = f"node-{n(8)}:{7000 + n(64)}:{7100 + n(64)} [{n(8)}] NCCL INFO "
    return head + rng.choice((
        f"Channel {n(16):02}/0 : {n(64)}[{n(8)}] -> {n(64)}[{n(8)}] via P2P/IPC", "Bootstrap : Using eth0:10.0.3.17<0>", f"Trees [0] {n(8)}/-1/-1->{n(8)}->{n(8)}",
        "NET/IB : Using [0]mlx5_0:1/IB [1]mlx5_1:1/IB [RO]; OOB eth0:10.0.3.17<0>", "Connected all rings, use ring PXN 0 GDR 1", "threadThresholds 8/8/64 | 64/8/64 | 512 | 512"))


def nccl_init(rng, rank):
    n = rng.randrange
    return (f"node-{rank // 8}:{7000 + rank}:{7100 + rank} [{rank % 8}] NCCL INFO comm 0x5581{n(1 << 24):06x} rank {rank} nranks 64 cudaDev {rank % 8} "
            f"nvmlDev {rank % 8} busId {rank % 8 + 1}b000 commId 0x{n(1 << 32):08x} - Init COMPLETE")


def talk(rng):
    return f"2026-03-01 {clock(rng)},{rng.randrange(1000):03} - {rng.choice(('INFO', 'DEBUG', 'WARNING'))} - {rng.choice(MODULES)} - {rng.choice(TALK)}"


def warning(rng):
    return rng.choice((
        f"/env/lib/python3.11/site-packages/lib/{rng.choice('abcdef')}.py:{rng.randrange(900)}: UserWarning: {rng.choice(TALK)}",
        f"[W301 {clock(rng)}.{rng.randrange(10**9):09} Module.cpp:{rng.randrange(2000)}] Warning: {rng.choice(MODULES)} uses a slow path (function operator())",
        f"WARNING:root:{rng.choice(MODULES)} overrides {rng.randrange(9)} defaults"))


def structured(rng):
    return json.dumps({"level": "info", "ts": f"2026-03-01T{clock(rng)}Z", "rank": rng.randrange(64), "msg": rng.choice(TALK), "loss": round(rng.uniform(1, 4), 4)})


def tensor(rng):
    return "tensor([" + ", ".join(f"{rng.uniform(-3, 3):.4f}" for _ in range(rng.choice((20, 60, 400)))) + "], device='cuda:0')"


def odd(rng):
    """Empty lines, and bytes that are no text."""
    return rng.choice(("", "", "-" * 80, "caf\udce9 cr\udce8me", "\x1b[32mready\x1b[0m"))


# name: (prefix of rank R, step line)
FORMS = {
    "torchrun": (lambda r: f"[default{r % 8}]:", plain_step),
    "hook": (lambda r: f"[rank{r}]: ", hugging_face),
    "srun": (lambda r: f"{r:2}: ", megatron),
    "mpirun": (lambda r: f"[1,{r}]<stdout>:", plain_step),
    "ray": (lambda r: f"(train_fn pid={4000 + r}) ", hugging_face),
    "deepspeed": (lambda r: "", deepspeed),
    "lightning": (lambda r: "", lightning),
}
KINDS = ((talk, 30), (nccl, 22), (warning, 6), (structured, 8), (tensor, 1), (odd, 3))


class Chatter:
    def __init__(self, seed):
        rng = random.Random(f"{seed} chatter")
        self.seed = seed
        self.pools = {kind: [kind(rng) for _ in range(POOL)] for kind, _ in KINDS}
        self.steps = {name: [step(rng) for _ in range(POOL)] for name, (_, step) in FORMS.items()}

    def lines(self, number, size):
        """(rows, form, rank): the rows without prefix of file `number`, about `size` bytes."""
        rng = random.Random(f"{self.seed} file {number}")
        form = sorted(FORMS)[number % len(FORMS)]
        kinds, weights = [kind for kind, _ in KINDS], [weight for _, weight in KINDS]
        rank = rng.randrange(64)
        rows, have = [nccl_init(rng, rank) for _ in range(3)], 0
        while have < size:
            for kind in rng.choices([None, *kinds], [30, *weights], k=500):
                row = rng.choice(self.steps[form] if kind is None else self.pools[kind])
                rows.append(row)
                have += len(row) + 12
        return rows, form, rank


def clean_lines():
    """What the clean cases' jobs print. Not: a first life that did fail, and handled tracebacks, which are told from others
    only by what follows them."""
    out = []
    for path in sorted(CASES.glob("*/*/case.json")):
        case = json.loads(path.read_text(encoding="utf-8"))
        text = (path.parent / "replay.tsv").read_text(encoding="utf-8", errors="surrogateescape")
        if case["truth"]["verdict"] != "clean" or re.search(r"CANCELLED AT|preempted JobId|requeue job ", text):
            continue
        inside = {}
        for row in text.split("\n"):
            part = row.split("\t", 2)
            if len(part) < 3:
                continue
            bare = re.sub(r"^(?:\[[\w,]+\](?:<\w+>)?: ?| {0,4}\d+: ?)+", "", part[2])
            if "Traceback (most recent call last)" in bare:
                inside[part[1]] = True
            if not inside.get(part[1]):
                out.append(part[2])
            elif re.match(r"[A-Za-z_][\w.]*(?::|$)", bare):
                inside[part[1]] = False  # the exception itself
    return sorted(set(out))


def noise_forms():
    return [row.template for row in messages.read() if row.role == "noise"]


def mix(rows, extra, rng):
    """`extra` among `rows`, each at a seeded place; the order within each stays free."""
    out = list(rows)
    places = sorted((rng.randrange(len(rows) + 1) for _ in extra), reverse=True)
    for place, row in zip(places, extra):
        out.insert(place, row)
    return out


def text_of(rows, form, rank):
    prefix = FORMS[form][0](rank)
    return ("\n".join(prefix + row.replace("\n", "\n" + prefix) for row in rows) + "\n").encode("utf-8", "surrogateescape")
