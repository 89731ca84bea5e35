#!/usr/bin/env python3
"""A healthy run costs next to nothing: 8 ranks shipped by `firstfault ship` leave a few rows and no fault event.

And a `why` reads no segment file. --all: 125,000 lines a rank, else 10,000.
"""
import json
import pathlib
import re
import shutil
import signal
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from support import poll, store, trial, world  # noqa: E402
from support.replay import Feed, Replay  # noqa: E402

RANKS = 8
LINES = {False: 10000, True: 125000}
ROWS = 4            # of a stream, at most
GROWTH = 8 << 10    # bytes of the store for each rank


def write_logs(t, folder):
    for rank in range(RANKS):
        path = folder / "run_x1" / "attempt_0" / str(rank) / "stderr.log"
        path.parent.mkdir(parents=True)
        path.write_bytes(world.healthy(t.seed, rank, RANKS, LINES[t.everything]))


def test_healthy(t):
    logs = t.folder / "logs"
    write_logs(t, logs)
    daemon = t.start()
    daemon.stop()
    empty = store.size(daemon)
    daemon.start()
    daemon.api.start("healthy", world_size=RANKS, launcher="torchrun")
    t.run("ship", "--job", "healthy", logs, env=daemon.env, timeout=600)
    answer = daemon.api.end("healthy", exit_code=0, state="COMPLETED")
    t.same(answer["verdict"]["verdict"], "clean", "verdict")
    t.same(answer["verdict"]["final"], True, "final")
    events = daemon.api.items("/v1/jobs/healthy/events")
    faults = [e for e in events if e["kind"] == "fault"]
    t.check(not faults, lambda: f"{len(faults)} faults in a healthy run, first: {faults[0]}")
    daemon.stop()

    lines = sum(lane.lines for lane in store.lanes(daemon).values())
    t.check(lines >= RANKS * LINES[t.everything], f"{lines} lines stored")
    rows = store.rows_by_stream(daemon)
    print(f"  rows by stream: {rows}")
    t.same(len(rows), RANKS, "streams")
    t.check(all(n <= ROWS for n in rows.values()), f"more than {ROWS} rows a stream: {rows}")
    growth = store.size(daemon) - empty
    print(f"  the store grew by {growth / RANKS:.0f} bytes a rank")
    t.check(growth < RANKS * GROWTH, f"the store grew by {growth} bytes for {RANKS} ranks")


def test_live(t):
    """The same with stamps, as senders have them: clock pairs are kept, and still only a few rows."""
    daemon = t.start()
    daemon.stop()
    empty = store.size(daemon)
    daemon.start()
    rows = []
    for rank in range(RANKS):
        lines = world.healthy(t.seed, rank, RANKS, LINES[False]).split(b"\n")[:-1]
        rows += [(i * world.STEP_US + rank, rank, text) for i, text in enumerate(lines)]
    streams = [{"name": f"rank-{r}.log", "kind": "rank", "rank": r, "node": f"node-{r // 4}", "fd": "stderr"} for r in range(RANKS)]
    job = Replay("live", streams, sorted(rows), True, {"world_size": RANKS}, {"exit_code": 0, "state": "COMPLETED"})
    feed = Feed(daemon, job, "live").start()
    feed.send(chunk=64)
    t.same(json.loads(feed.finish())["verdict"], "clean", "verdict")
    daemon.stop()
    rows = store.rows_by_stream(daemon)
    t.check(all(n <= ROWS for n in rows.values()), f"more than {ROWS} rows a stream: {rows}")
    growth = store.size(daemon) - empty
    print(f"  the store grew by {growth / RANKS:.0f} bytes a rank")
    t.check(growth < RANKS * GROWTH, f"the store grew by {growth} bytes for {RANKS} ranks")


def test_why_opens_no_segment(t):
    if not shutil.which("strace"):
        t.skip("no strace")
    job = world.storm(t.seed, "seen", 4, 100 << 10)
    daemon = t.start()
    feed = Feed(daemon, job, "seen").start()
    feed.send(chunk=64)
    feed.finish()
    segments = store.segment_files(daemon)
    t.check(segments, "no segment file was written")

    trace = t.folder / "trace"
    tracer = t.spawn("strace", "-f", "-e", "trace=open,openat,openat2,execve", "-o", trace, "-p", daemon.process.pid,
                     stderr=open(t.folder / "strace.err", "wb"))
    said = lambda: (t.folder / "strace.err").read_text(errors="replace")
    poll.until(lambda: f"strace attached: {said()}", lambda: "attached" in said() or tracer.poll() is not None, 20)
    if tracer.poll() is not None:
        t.skip(f"strace can't attach here: {said().strip()[:120]}")
    t.run("why", "seen", env=daemon.env)
    t.run("why", "seen", "--json", env=daemon.env)
    tracer.send_signal(signal.SIGINT)
    tracer.wait(20)
    names = {p.name for p in segments}
    opened = [x for x in re.findall(r'open\w*\([^"]*"([^"]+)"', trace.read_text(errors="replace")) if pathlib.Path(x).name in names]
    t.check(not opened, f"`why` opened segment files: {opened}")
    daemon.stop()


if __name__ == "__main__":
    trial.main(__doc__, test_healthy, test_live, test_why_opens_no_segment)
