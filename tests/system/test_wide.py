#!/usr/bin/env python3
"""A wide job: one native connection a stream, all at once, out of one `firstfault ship`.

Lines in are lines counted, for each rank; `why` names the rank; and neither changes when the daemon is killed five times on
the way. 128 ranks of 400 lines; --all: 1,024 of 1,000.
"""
import json
import pathlib
import random
import signal
import socket
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from support import poll, trial, world  # noqa: E402

SIZES = {False: (128, 400), True: (1024, 1000)}
KILLS = 5


def write_logs(t, folder):
    """One file a rank, the last of them with the failure; lines by name of the stream, and the rank that failed first."""
    ranks, lines = SIZES[t.everything]
    culprit = random.Random(f"{t.seed} wide").randrange(ranks)
    pool = [world.healthy(t.seed, r, ranks, lines) for r in range(16)]  # bytes; made anew for each rank they take minutes
    counted = {}
    for rank in range(ranks):
        rng = random.Random(f"{t.seed} {rank}")
        end = world.oom(rank, rng) if rank == culprit else world.lost_peer(rank, culprit, lines * world.STEP_US, rng)
        text = pool[rank % 16].replace(b"[rank %d]" % (rank % 16), b"[rank %d]" % rank).replace(b"[rank%d]" % (rank % 16), b"[rank%d]" % rank)
        text += "\n".join([*end, ""]).encode()
        path = folder / f"node-{rank // 8}" / f"rank-{rank}.log"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text)
        counted[f"node-{rank // 8}/rank-{rank}.log"] = text.count(b"\n") + text.count(b"\r")  # redraws are lines of their own
    return counted, culprit


def end(daemon, t, counted, culprit):
    """Ends the job; checks what was counted and who is named. The verdict."""
    answer = daemon.api.end("wide", exit_code=1, state="FAILED")["verdict"]
    t.same((answer["final"], answer["verdict"]), (True, "rank"), "verdict")
    t.same([i["rank"] for i in answer["initiating"]], [culprit], "initiating")
    got = {s["stream"]: s["lines"] for item in daemon.api.items("/v1/jobs/wide/ranks") for s in item["streams"]}
    t.check(got == counted, lambda: f"lines in and lines counted: {[(k, counted[k], got.get(k)) for k in counted if got.get(k) != counted[k]][:5]}")
    return daemon.api.verdict("wide")


def test_wide(t):
    logs = t.folder / "logs"
    counted, culprit = write_logs(t, logs)
    size = sum(p.stat().st_size for p in logs.rglob("*.log"))
    calm = t.start("calm")
    calm.api.start("wide", world_size=len(counted))
    clock = poll.Deadline(0)
    t.run("ship", "--job", "wide", logs, env=calm.env, timeout=300)
    print(f"  {len(counted)} connections, {size >> 20} MiB, {sum(counted.values())} lines in {clock.spent():.2f} s")
    wanted = end(calm, t, counted, culprit)
    t.same(calm.status()["counters"]["connections"], len(counted), "connections: one a stream")
    calm.stop()

    daemon = t.start("killed")
    daemon.api.start("wide", world_size=len(counted))
    ship = t.spawn(t.client, "ship", "--job", "wide", logs, env=daemon.env, stderr=open(t.folder / "ship.err", "wb"))
    said = lambda: (t.folder / "ship.err").read_text(errors="replace")
    for kill in range(KILLS):
        poll.until(lambda: f"bytes before kill {kill + 1}; ship says {said()!r}", lambda: daemon.status()["counters"]["bytes"] > size // 40, 60, 0.001)
        ship.send_signal(signal.SIGSTOP)  # it must not be done before the last one
        t.same(ship.poll(), None, f"ship before kill {kill + 1}")
        daemon.kill()
        daemon.start()
        ship.send_signal(signal.SIGCONT)
    t.check(ship.wait(300) == 0, lambda: f"ship after {KILLS} kills: {ship.returncode} {said()}")
    got = end(daemon, t, counted, culprit)
    t.check(got == wanted, lambda: f"verdict without | after {KILLS} kills{trial.difference(wanted, got)}")
    daemon.stop()


def test_logs_of_a_rank_judge_once(t):
    """Whose lines a mixed stream holds only a judgement tells; asking again makes none."""
    daemon = t.start()
    daemon.api.start("wide", world_size=4)
    lines = [{"job": "wide", "stream": f"console-{i % 2}", "message": f"[rank{i}]: KeyError: 'k{i}'"} for i in range(4)]
    with socket.socket(socket.AF_UNIX) as s:
        s.connect(str(daemon.ingest))
        s.sendall("".join(json.dumps(x) + "\n" for x in lines).encode())
    poll.until("the lines", lambda: daemon.status()["counters"]["lines"] == 4)
    for rank in range(4):
        got = {x["stream"] for x in daemon.api.items(f"/v1/jobs/wide/logs?rank={rank}")}
        t.same(got, {f"console-{rank % 2}"}, f"streams of rank {rank}")
    t.same(daemon.api.items("/v1/jobs/wide/logs?rank=7"), [], "a rank that nobody heard")
    daemon.stop()


if __name__ == "__main__":
    trial.main(__doc__, test_wide, test_logs_of_a_rank_judge_once)
