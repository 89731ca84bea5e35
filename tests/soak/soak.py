#!/usr/bin/python3
"""firstfaultd under mixed load for hours: what it has must not grow. Started by deploy/soak.

    tests/soak/soak.py --client PATH --daemon PATH --minutes N --out FOLDER [--seed N] [--config LINE]...

The load (each a thread, each goes on after an error of the daemon's, which counts):

    native    `firstfault ship --follow` of 8 growing files, killed and started again; a job each half minute
    pipes     `firstfault ship -`, killed now and then: the next one sends what it left in its spool
    jsonl     JSON Lines with source and offset; cut in mid-line, resumed at the last ack
    syslog    RFC 5424, counted; the connection is closed without a word
    tail      files below a tailed folder: appended, rotated by rename, copied and truncated; folders removed
    queries   why, ranks, logs, events, timeline, status, jobs over HTTP, and `firstfault why` as a process
    visitors  connections that say nothing, half a line, or the wrong thing, and close
    tiny      jobs of one line that end at once: what a run costs after its end

Each 5 s a line of FOLDER/soak.tsv: seconds, rss, pss, anon (KiB), fds, threads, bytes of store, WAL and segments,
runs, streams, connections, milliseconds of a /healthz. At the end a table and the verdict. The rule, over the second
half of the load (the first half fills caches and queues):

    memory    PSS: the slope of a least-squares line, times the half's length, is below 4 MiB + 5 % of its mean
    wal       its largest size is below 1.25 times the first half's + 4 MiB
    fds       their median is not above the first half's + 8; without load they are back at what an idle daemon has (+ 2);
              segment files don't count: the store keeps up to 32 of them open
    threads   not above the first half's most
    answers   /healthz never took longer than 1 s, and no worker had an error that it did not make itself
    disk      store, WAL and segments: below --disk-max bytes
    spools    none is left

Without --config the daemon keeps 16 MiB (keep-size) and --disk-max is 32 MiB: what a run costs in memory after its end
goes with the run.

Exit status: 0 flat, 1 not, with the rule that broke.
"""
import argparse
import json
import os
import pathlib
import random
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from support import poll, trial, world  # noqa: E402
from support.daemon import Daemon  # noqa: E402

EVERY_S = 5
ROUND_S = 30
RANKS = 8
COLUMNS = "seconds rss pss anon fds threads store wal segments runs streams connections healthz_ms".split()


class Load:
    """What all workers share: the daemon, the jobs that there are, errors, and when to stop."""

    def __init__(self, options, daemon, folder):
        self.client, self.daemon, self.folder, self.seed = options.client.resolve(), daemon, folder, options.seed
        self.stopping = threading.Event()
        self.lock = threading.Lock()
        self.jobs = []      # names, newest last
        self.ended = 0
        self.errors = []
        self.counts = {}
        self.lines = [x for r in range(RANKS) for x in world.healthy(options.seed, r, RANKS, 400).split(b"\n")[:-1]]

    def begin(self, job):
        with self.lock:
            self.jobs = [*self.jobs[-200:], job]

    def end(self, job, failed):
        self.daemon.api.end(job, wait="2s", **({"exit_code": 1, "state": "FAILED"} if failed else {"exit_code": 0, "state": "COMPLETED"}))
        with self.lock:
            self.ended += 1

    def count(self, what, n=1):
        with self.lock:
            self.counts[what] = self.counts.get(what, 0) + n

    def pause(self, seconds):
        self.stopping.wait(seconds)
        return not self.stopping.is_set()

    def round(self):
        """True for half a minute, then False."""
        deadline = poll.Deadline(ROUND_S)
        while not deadline.over() and not self.stopping.is_set():
            yield deadline

    def environment(self):
        return {**self.daemon.env, "FIRSTFAULT_SPOOL": str(self.folder / "spool")}

    def connect(self):
        s = socket.socket(socket.AF_UNIX)
        s.settimeout(10)
        s.connect(str(self.daemon.ingest))
        return s

    def failure(self, rank, rng):
        return [x.encode() for x in world.oom(rank, rng)]


def native(load, rng):
    for n in range(1 << 30):
        job, folder = f"native-{n}", load.folder / f"native-{n}"
        folder.mkdir()
        files = [open(folder / f"rank-{r}.log", "ab", buffering=0) for r in range(RANKS)]
        load.begin(job)
        load.daemon.api.start(job, world_size=RANKS)
        ship = None
        for _ in load.round():
            if ship is None:
                ship = subprocess.Popen([load.client, "ship", "--follow", "--job", job, folder], env=load.environment(), stderr=subprocess.DEVNULL)
            for f in files:
                f.write(b"\n".join(rng.sample(load.lines, 20)) + b"\n")
            load.count("native lines", 20 * RANKS)
            if rng.random() < 0.02:
                ship.kill()
                ship.wait()
                ship = None
                load.count("ships killed")
            load.pause(0.2)
        files[3].write(b"\n".join(load.failure(3, rng)) + b"\n")
        if ship:
            ship.send_signal(signal.SIGTERM)
            ship.wait(30)
        load.end(job, True)
        for f in files:
            f.close()
        shutil.rmtree(folder)
        yield


def pipes(load, rng):
    for n in range(1 << 30):
        job, ship = f"pipes-{n}", None
        load.begin(job)
        load.daemon.api.start(job, world_size=1)
        for _ in load.round():
            if ship is None:
                ship = subprocess.Popen([load.client, "ship", "--job", job, "--rank", "0", "-"], env=load.environment(), stdin=subprocess.PIPE,
                                        stderr=subprocess.DEVNULL)
            ship.stdin.write(b"\n".join(rng.sample(load.lines, 50)) + b"\n")
            ship.stdin.flush()
            load.count("piped lines", 50)
            if rng.random() < 0.02:
                ship.kill()
                ship.stdin.close()
                ship.wait()
                ship = None
                load.count("piping ships killed")
            load.pause(0.2)
        if ship:
            ship.stdin.close()
            ship.wait(30)
        load.end(job, False)
        yield


def jsonl(load, rng):
    for n in range(1 << 30):
        job, sent, acked = f"jsonl-{n}", b"", 0
        load.begin(job)
        text = [(rng.randrange(4), x.decode(errors="replace")) for x in rng.sample(load.lines, len(load.lines))]
        offsets, at = [], 0
        for _, x in text:
            offsets.append(at)
            at += len(x.encode()) + 1
        i, s = 0, None
        for _ in load.round():
            if s is None:
                s, answers = load.connect(), b""
            out = b"".join(json.dumps({"job": job, "stream": "all", "node": "n0", "source": f"s{n}", "offset": offsets[k], "message": text[k][1]}).encode() + b"\n"
                           for k in range(i, min(i + 50, len(text))))
            i = min(i + 50, len(text))
            s.sendall(out)
            load.count("jsonl lines", 50)
            s.setblocking(False)
            try:
                answers += s.recv(65536)
            except BlockingIOError:
                pass
            s.settimeout(10)
            *whole, answers = answers.split(b"\n")
            acked = max([acked, *(json.loads(x)["offset"] for x in whole)])
            if rng.random() < 0.05:
                s.sendall(b'{"job":"' + job.encode() + b'","mess')  # broken off
                s.close()
                s = None
                i = next((k for k, o in enumerate(offsets) if o >= acked), len(text))
                load.count("jsonl broken off")
            if not load.pause(0.1):
                break
        if s:
            s.close()
        load.end(job, False)
        yield


def syslog(load, rng):
    for n in range(1 << 30):
        job = f"syslog-{n}"
        load.begin(job)
        for _ in load.round():
            with load.connect() as s:
                for _ in range(rng.randrange(1, 40)):
                    r = rng.randrange(RANKS)
                    frame = f'<134>1 2026-01-01T00:00:00Z node-{r // 4} trainer 7 - [x@32473 job="{job}" rank="{r}"] '.encode() + rng.choice(load.lines)
                    s.sendall(b"%d %s" % (len(frame), frame))
                    load.count("syslog lines")
            if not load.pause(0.3):
                break
        load.end(job, False)
        yield


def tail(load, rng):
    base = load.folder / "tail"
    for n in range(1 << 30):
        job = f"tail-{n}"
        folder = base / job
        folder.mkdir(parents=True)
        load.begin(job)
        for k, _ in enumerate(load.round()):
            for r in range(RANKS):
                path = folder / f"rank-{r}.log"
                with open(path, "ab") as f:
                    f.write(b"\n".join(rng.sample(load.lines, 10)) + b"\n")
            load.count("tail lines", 10 * RANKS)
            if k % 20 == 10:
                path = folder / f"rank-{rng.randrange(RANKS)}.log"
                if rng.random() < 0.5:
                    path.rename(path.with_suffix(f".log.{k}"))
                else:
                    shutil.copyfile(path, path.with_suffix(f".copy.{k}"))
                    with open(path, "r+b") as f:
                        f.truncate(0)
                load.count("rotations")
            if not load.pause(0.2):
                break
        with open(folder / "rank-5.log", "ab") as f:
            f.write(b"\n".join(load.failure(5, rng)) + b"\n")
        load.end(job, True)
        shutil.rmtree(folder)
        yield


def queries(load, rng):
    routes = ("", "/verdict", "/ranks", "/events?limit=50", "/logs?rank=3", "/logs?around=first", "/timeline", "/logs?lines=5")
    while True:
        with load.lock:
            jobs = list(load.jobs)
        for _ in range(10):
            job = rng.choice(jobs[-20:] or ["none"])
            load.daemon.api.get(f"/v1/jobs/{job}{rng.choice(routes)}", ok=(200, 404, 409, 410))
            load.daemon.api.get(rng.choice(("/v1/status", "/v1/jobs?limit=20", "/healthz", "/readyz")))
            load.count("queries", 2)
            load.pause(0.1)
        if jobs:
            subprocess.run([load.client, rng.choice(("why", "ranks", "events")), rng.choice(jobs[-20:])], env=load.daemon.env,
                           stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=30, check=False)
            load.count("client calls")
        yield


def visitors(load, rng):
    words = (b"", b"hello", b"GET / HTTP/1.1\r\n\r\n", b'{"event":"hello"}\n', b"\x16\x03\x01", b'{"job":"visitors","message":"x"}\n', b"<13>", b"12 <13>x")
    while True:
        with load.connect() as s:
            s.sendall(rng.choice(words))
            if rng.random() < 0.3:
                load.pause(0.5)
        load.count("visitors")
        load.pause(0.05)
        yield


def tiny(load, rng):
    for n in range(1 << 30):
        with load.connect() as s:
            s.sendall(json.dumps({"job": f"tiny-{n}", "rank": 0, "message": rng.choice(load.lines).decode(errors="replace")}).encode() + b"\n")
            s.shutdown(socket.SHUT_WR)
            while s.recv(4096):
                pass
        load.end(f"tiny-{n}", False)
        load.count("tiny jobs")
        load.pause(0.5)
        yield


WORKERS = (native, pipes, jsonl, syslog, tail, queries, visitors, tiny)


def work(load, worker):
    rng = random.Random(f"{load.seed} {worker.__name__}")
    rounds = worker(load, rng)
    while not load.stopping.is_set():
        try:
            next(rounds)
        except Exception as e:  # counted: the load goes on
            with load.lock:
                load.errors.append(f"{worker.__name__}: {type(e).__name__}: {e}"[:300])
            rounds = worker(load, rng)
            load.pause(1)


# -- what the daemon has

def proc(pid, name, keys):
    found = {}
    for line in pathlib.Path(f"/proc/{pid}/{name}").read_text().splitlines():
        key, _, value = line.partition(":")
        if key in keys:
            found[key] = int(value.split()[0])
    return found


def size(paths):
    total = 0
    for p in paths:
        try:
            total += p.stat().st_size
        except FileNotFoundError:
            pass
    return total


def segments(state):
    """Runs go while one looks, with their folders: os.walk does not mind."""
    return [pathlib.Path(folder, name) for folder, _, names in os.walk(state / "segments") for name in names]


def descriptors(daemon):
    """What each of them is."""
    found = []
    for p in pathlib.Path(f"/proc/{daemon.process.pid}/fd").iterdir():
        try:
            name = str(p.readlink())
        except FileNotFoundError:
            continue
        if not name.endswith(".seg"):
            found.append(name.split(":")[0] if name.startswith(("socket:", "anon_inode:", "pipe:")) else name)
    return found


def sample(daemon, start):
    pid, state = daemon.process.pid, daemon.state
    clock = time.monotonic()
    daemon.api.get("/healthz")
    healthz = (time.monotonic() - clock) * 1000
    status = daemon.status()
    memory = proc(pid, "smaps_rollup", ("Rss", "Pss", "Anonymous"))
    store = state / "store.db"
    return {"seconds": round(time.monotonic() - start, 1), "rss": memory["Rss"], "pss": memory["Pss"], "anon": memory["Anonymous"],
            "fds": len(descriptors(daemon)), "threads": proc(pid, "status", ("Threads",))["Threads"],
            "store": size([store]), "wal": size([store.with_name(store.name + "-wal")]),
            "segments": size(segments(state)),
            "runs": status["runs"], "streams": status["streams"], "connections": status.get("connection_count", len(status["connections"])),
            "healthz_ms": round(healthz, 1)}


def slope(rows, key):
    """Of the least-squares line, a second."""
    x, y = [r["seconds"] for r in rows], [r[key] for r in rows]
    return statistics.linear_regression(x, y).slope if len(rows) > 1 else 0.0


def judge(rows, idle, after, errors, disk_max, spools):
    """Sentences about what broke the rule."""
    first, second = rows[:len(rows) // 2], rows[len(rows) // 2:]
    span = second[-1]["seconds"] - second[0]["seconds"]
    mean = statistics.fmean(r["pss"] for r in second)
    growth = slope(second, "pss") * span
    most = lambda part, key: max(r[key] for r in part)
    middle = lambda part, key: statistics.median(r[key] for r in part)
    broken = []
    if growth > 4096 + 0.05 * mean:
        broken.append(f"memory: PSS grew by {growth:.0f} KiB in the second half, mean {mean:.0f}")
    if most(second, "wal") > 1.25 * most(first, "wal") + (4 << 20):
        broken.append(f"wal: {most(second, 'wal')} bytes in the second half, {most(first, 'wal')} in the first")
    if middle(second, "fds") > middle(first, "fds") + 8:
        broken.append(f"fds: median {middle(second, 'fds')} in the second half, {middle(first, 'fds')} in the first")
    if after["fds"] > idle["fds"] + 2:
        broken.append(f"fds: {after['fds']} without load, {idle['fds']} before it")
    if most(second, "threads") > most(first, "threads"):
        broken.append(f"threads: {most(second, 'threads')} in the second half, {most(first, 'threads')} in the first")
    if most(rows, "healthz_ms") > 1000:
        broken.append(f"answers: /healthz took {most(rows, 'healthz_ms')} ms")
    if errors:
        broken.append(f"answers: {len(errors)} errors, the first: {errors[0]}")
    disk = max(r["store"] + r["wal"] + r["segments"] for r in second)
    if disk_max and disk > disk_max:
        broken.append(f"disk: {disk} bytes, allowed {disk_max}")
    if spools:
        broken.append(f"spools: {len(spools)} are left")
    return broken


def table(rows, idle, after, load):
    out = [f"{'':12}{'idle':>12}{'first half':>12}{'second half':>12}{'most':>12}{'after':>12}   a minute, second half"]
    half = len(rows) // 2
    for key in COLUMNS[1:]:
        a, b = (statistics.median(r[key] for r in part) for part in (rows[:half], rows[half:]))
        out.append(f"{key:12}{idle[key]:12.0f}{a:12.0f}{b:12.0f}{max(r[key] for r in rows):12.0f}{after[key]:12.0f}   {slope(rows[half:], key) * 60:+.1f}")
    runs, pss = rows[-1]["runs"] - rows[half]["runs"], rows[-1]["pss"] - rows[half]["pss"]
    out.append(f"medians; memory in KiB, files in bytes. {load.ended} runs ended" + (f"; {pss / runs:.2f} KiB for each run more in the second half" if runs else ""))
    out.append(", ".join(f"{n} {what}" for what, n in sorted(load.counts.items())))
    return "\n".join(out)


def run(options, folder):
    daemon = Daemon(options.daemon.resolve(), folder / "d", [("tail", f"{folder}/tail/{{job}}/{{name}}"), *(x.split("=", 1) for x in options.config)])
    (folder / "tail").mkdir()
    options.out.mkdir(parents=True, exist_ok=True)
    daemon.start()
    load = Load(options, daemon, folder)
    threads = [threading.Thread(target=work, args=(load, w), daemon=True) for w in WORKERS]
    rows, start = [], time.monotonic()
    try:
        idle = sample(daemon, start)
        for thread in threads:
            thread.start()
        with open(options.out / "soak.tsv", "w") as tsv:
            print(*COLUMNS, sep="\t", file=tsv, flush=True)
            for k in range(1, max(4, int(options.minutes * 60 / EVERY_S)) + 1):
                load.stopping.wait(max(0.0, start + k * EVERY_S - time.monotonic()))
                daemon.running()
                rows.append(sample(daemon, start))
                print(*(rows[-1][c] for c in COLUMNS), sep="\t", file=tsv, flush=True)
        load.stopping.set()
        for thread in threads:
            thread.join(60)
        try:
            poll.until("fds of an idle daemon", lambda: sample(daemon, start)["fds"] <= idle["fds"] + 2, 20)
        except poll.Late:
            pass  # the verdict says so
        after = sample(daemon, start)
        files = descriptors(daemon)
        subprocess.run([options.client, "ship", "--spool-flush"], env=load.environment(), timeout=60, check=True)
        broken = judge(rows, idle, after, load.errors, options.disk_max, list((folder / "spool").iterdir()))
        status = daemon.status()
        daemon.stop(10)
    finally:
        load.stopping.set()
        daemon.kill()
        shutil.copyfile(daemon.log_path, options.out / "daemon.log")
    print(table(rows, idle, after, load))
    print("counters: " + ", ".join(f"{k} {v}" for k, v in status["counters"].items() if v))
    for error in load.errors[:10]:
        print(f"error: {error}")
    if broken:
        print("open without load: " + ", ".join(f"{files.count(x)} {x}" for x in sorted(set(files))))
    for sentence in broken:
        print(f"NOT FLAT {sentence}")
    print("not flat" if broken else "flat")
    return 1 if broken else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--client", type=pathlib.Path, required=True)
    parser.add_argument("--daemon", type=pathlib.Path, required=True)
    parser.add_argument("--minutes", type=float, default=120)
    parser.add_argument("--out", type=pathlib.Path, required=True)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1 << 32))
    parser.add_argument("--config", action="append", default=[], metavar="KEY=VALUE", help="of the daemon; repeatable")
    parser.add_argument("--disk-max", type=int, default=0, metavar="BYTES")
    options = parser.parse_args()
    if not options.config:
        options.config, options.disk_max = ["keep-size=16MiB"], options.disk_max or 32 << 20
    print(f"seed {options.seed}", flush=True)
    trial.files_limit()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # so that finally runs
    folder = pathlib.Path(tempfile.mkdtemp(prefix="ff-"))
    try:
        sys.exit(run(options, folder))
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
