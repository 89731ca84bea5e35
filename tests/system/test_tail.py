#!/usr/bin/env python3
"""Tailing: a torchrun tree that grows, a daemon that restarts in between, new files, placeholders of the pattern."""
import json
import os
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from support import poll, store, trial, world  # noqa: E402
from support.replay import essence  # noqa: E402

RANKS = 4


def grow(path, data):
    path.parent.mkdir(parents=True, exist_ok=True)
    with open(path, "ab") as f:
        f.write(data)


def tail_of(daemon, job, size):
    """Waits until the lanes of a job hold so many bytes."""
    def reached():
        return sum(x for x in store.live_bytes(daemon, job).values()) >= size
    poll.until(lambda: f"{size} bytes of {job}: {store.live_bytes(daemon, job)}", reached, 30)


def test_growing_tree(t):
    job = world.storm(t.seed, "x", RANKS, 200 << 10)
    data = [b"".join(x + b"\n" for _, k, x in job.rows if k == r) for r in range(RANKS)]
    logs = t.folder / "logs"
    path = lambda r: logs / "job7" / "run7_k2f" / "attempt_0" / str(r) / "stderr.log"
    daemon = t.start(options=[("tail", logs / "{job}" / "*" / "attempt_{attempt}" / "{local_rank}" / "{name}")])

    def parts(r):
        cuts = sorted({0, len(data[r]), *(t.rng.randrange(len(data[r])) for _ in range(6))})
        return [data[r][a:b] for a, b in zip(cuts, cuts[1:])]

    left = {r: parts(r) for r in range(RANKS)}
    written = 0
    order = [r for r in range(RANKS) for _ in left[r]]
    t.rng.shuffle(order)
    for n, r in enumerate(order):
        part = left[r].pop(0)
        grow(path(r), part)
        written += len(part)
        if n == len(order) // 3:
            daemon.stop()
        elif n == len(order) // 3 + 3:
            daemon.start()
        elif n == 2 * len(order) // 3:
            tail_of(daemon, "job7", written // 2)
            daemon.restart()
    if daemon.process.poll() is not None:
        daemon.start()
    poll.until("the job", lambda: daemon.api.request("GET", "/v1/jobs/job7").status == 200, 30)
    daemon.api.start("job7", world_size=RANKS, launcher="torchrun")
    got = daemon.api.end("job7", wait="30s", exit_code=1, state="FAILED")["verdict"]
    t.same(got["final"], True, "final after the files were read to their size")
    folder = t.folder / "alone"
    os.rename(logs / "job7", folder)
    (folder / "job.json").write_text(json.dumps({"job": "job7", "world_size": RANKS, "launcher": "torchrun", "job_end": {"exit_code": 1, "state": "FAILED"},
                                                 "streams": [{"path": str(path(r).relative_to(logs / "job7")), "kind": "rank", "local_rank": r, "attempt": 0}
                                                             for r in range(RANKS)]}))
    wanted = t.json("analyze", "--json", folder)
    t.same(essence(got), essence(wanted), "verdict of the tailed tree")
    daemon.stop()
    stored = store.lanes(daemon)
    for r in range(RANKS):
        size = [lane.bytes for name, lane in stored.items() if f"/{r}/stderr.log" in name or lane.local_rank == r]
        t.same(sum(size), len(data[r]), f"bytes of local rank {r} ({stored})")


def test_new_files_and_placeholders(t):
    logs = t.folder / "logs"
    daemon = t.start(options=[("tail", logs / "{job}" / "{run}" / "{node}" / "rank{rank}.log"), ("tail", logs / "others" / "**" / "{job}.out")])
    boom = b"Traceback (most recent call last):\n  File \"/job/a.py\", line 3, in main\n    x()\nValueError: rank %d broke\n"
    for r in range(2):
        grow(logs / "first" / "r1" / f"node-{r}" / f"rank{r}.log", b"step 1\n" + boom % r)
    poll.until("job first", lambda: daemon.api.request("GET", "/v1/jobs/first").status == 200)
    grow(logs / "first" / "r1" / "node-2" / "rank2.log", b"step 1\n")     # a file and a folder that are new
    grow(logs / "others" / "deep" / "er" / "second.out", boom % 9)
    grow(logs / "others" / "second" / "note.txt", b"not matched\n")
    poll.until("job second", lambda: daemon.api.request("GET", "/v1/jobs/second").status == 200)
    poll.until("three ranks of `first`", lambda: len({x.get("rank") for x in daemon.api.items("/v1/jobs/first/ranks")} - {None}) >= 3)
    end = daemon.api.end("first", wait="20s", exit_code=1, state="FAILED")["verdict"]
    t.same(end["run"], "r1", "run of the pattern")
    t.same(sorted((e["stream"].split("/")[-1], e["text"].split("\n")[0]) for e in end["events"] if e["kind"] == "fault")[0][0], "rank0.log", f"{end['events']}")
    t.check({"node-0", "node-1"} <= {i["node"] for i in end["initiating"]} or end["verdict"] in ("common", "undetermined"), f"nodes: {end}")
    jobs = {x["job"] for x in daemon.api.items("/v1/jobs")}
    t.same(jobs, {"first", "second"}, "jobs")
    daemon.stop()


def test_links_are_not_followed(t):
    logs = t.folder / "logs"
    secret = t.folder / "secret.txt"
    secret.write_bytes(b"RuntimeError: CUDA error: nobody may read this\n")
    (logs / "j").mkdir(parents=True)
    (logs / "j" / "link.log").symlink_to(secret)
    os.link(secret, logs / "j" / "hard.log")
    os.mkfifo(logs / "j" / "pipe.log")
    (logs / "outside").symlink_to(t.folder)
    grow(logs / "j" / "real.log", b"step 1\n")
    daemon = t.start(options=[("tail", logs / "{job}" / "{name}")])
    poll.until("the real file", lambda: daemon.api.request("GET", "/v1/jobs/j").status == 200)
    tail_of(daemon, "j", 7)
    streams = store.live_bytes(daemon, "j")
    t.check(sum(streams.values()) == 7, f"only the regular file with one link is read: {streams}")
    daemon.stop()


def test_pipes_are_left_alone(t):
    """A pipe that matches is not even opened: whoever waits to write would be let in, and killed when it is closed again."""
    logs = t.folder / "logs" / "j"
    logs.mkdir(parents=True)
    os.mkfifo(logs / "rank-0.log")
    writer = t.spawn("sh", "-c", f"echo step 1 > {logs}/rank-0.log; echo done > {t.folder}/wrote")
    daemon = t.start(options=[("tail", logs.parent / "{job}" / "{name}")])
    grow(logs / "rank-1.log", b"step 1\n")
    tail_of(daemon, "j", 7)
    grow(logs / "rank-2.log", b"step 1\n")   # found by a later walk
    tail_of(daemon, "j", 14)
    t.check(writer.poll() is None and not (t.folder / "wrote").exists(), "the writer of a pipe still waits for its reader")
    daemon.stop()


def test_truncated_and_replaced(t):
    logs = t.folder / "logs"
    path = logs / "j" / "rank-0.log"
    grow(path, b"step 1 loss 2\n" * 100)
    daemon = t.start(options=[("tail", logs / "{job}" / "{name}")])
    tail_of(daemon, "j", 1400)
    path.write_bytes(b"another life\n")             # shorter than what was read
    tail_of(daemon, "j", 1413)
    other = logs / "j" / "new"
    other.write_bytes(b"a third life, another inode\n" * 200)
    os.replace(other, path)
    tail_of(daemon, "j", 1413 + 28 * 200)
    daemon.stop()


def test_private_key(t):
    """Its lines are lines of the file: none of them is in any answer or file, also where what is shown begins inside it."""
    letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
    key = lambda lines: ["".join(t.rng.choices(letters, k=64)) for _ in range(lines)] + ["".join(t.rng.choices(letters, k=30)) + "=="]
    short, long = key(24), key(300)    # the second one is longer than what is ever kept back
    words = ["step 1", "-----BEGIN RSA PRIVATE KEY-----", *short, "-----END RSA PRIVATE KEY-----", "step 2",
             "-----BEGIN RSA PRIVATE KEY-----", *long[:-20], "Traceback (most recent call last):",
             "ValueError: not the right key", *long[-20:], "-----END RSA PRIVATE KEY-----", "step 3"]
    text = "\n".join(words).encode() + b"\n"
    logs = t.folder / "logs"
    daemon = t.start(options=[("tail", logs / "{job}" / "{name}")])
    left = text
    while left:
        n = t.rng.choice((1, 64, 65, 700, 5000))
        grow(logs / "j" / "rank-0.log", left[:n])
        left = left[n:]
        if not t.rng.randrange(10):
            poll.until("the job", lambda: daemon.api.request("GET", "/v1/jobs/j").status == 200, 30)
            daemon.restart()
    poll.until("the job", lambda: daemon.api.request("GET", "/v1/jobs/j").status == 200, 30)
    daemon.api.end("j", wait="30s", exit_code=1, state="FAILED")
    urls = ["logs?lines=1000", "logs?around=first&lines=15", "export", "events", "verdict"]
    said = {url: daemon.api.request("GET", f"/v1/jobs/j/{url}").body for url in urls}
    t.check(b"not the right key" in said["logs?around=first&lines=15"], f"the window: {said['logs?around=first&lines=15'][:500]}")
    daemon.stop()
    for path in daemon.state.rglob("*"):
        said[path.name] = path.read_bytes() if path.is_file() else b""
    left = {f"{name}: {line}" for name, body in said.items() for line in short + long if line.replace("/", "\\/").encode() in body
            or line[8:].encode() in body}
    t.same(left, set(), "lines of a key that are left")


if __name__ == "__main__":
    trial.main(__doc__, test_growing_tree, test_new_files_and_placeholders, test_links_are_not_followed, test_pipes_are_left_alone,
               test_truncated_and_replaced, test_private_key)
