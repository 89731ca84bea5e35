#!/usr/bin/env python3
"""GET /v1/watch and `firstfault watch`: what happens to runs, told as it happens, and taken up again."""
import json
import pathlib
import signal
import socket
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from support import poll, schema, trial  # noqa: E402

BAD = "IndexError: Target 57 is out of bounds."
STEP = "2026-01-01 00:00:{:02},000 INFO train: step {} loss 2.0"


def feed(daemon, *objects):
    """JSON Lines, until the daemon has them."""
    with socket.socket(socket.AF_UNIX) as s:
        s.connect(str(daemon.ingest))
        s.sendall(b"".join(json.dumps(o).encode() + b"\n" for o in objects))
        s.shutdown(socket.SHUT_WR)
        while s.recv(65536):
            pass


def line(job, second, text, rank=0):
    return {"job": job, "rank": rank, "stream": f"r{rank}", "node": "n", "time": f"2026-01-01T00:00:{second:02}Z", "message": text}


def start(job, world=1):
    return {"event": "job-start", "job": job, "world_size": world}


def is_final(event):
    kind, _, data = event
    return kind == "verdict" and data["is"]["state"] == "ended" and data["is"]["final"]


def good(t, events):
    for kind, number, data in events:
        t.same(schema.errors("watch", data), [], f"{kind} by its schema: {data}")
        t.same(data["event"], kind, "its own name")
        t.check(number, "an id")
    numbers = [int(number.split("-")[1]) for _, number, _ in events]
    t.same(numbers, sorted(set(numbers)), "ids rise")


def test_what_is_told(t):
    """Begun, states, a fault, versions as the ETag has them, the final one; only of the job that was asked for."""
    daemon = t.start()
    daemon.api.start("other")
    everything = daemon.api.watch()
    t.same((everything.status, everything.reply.headers["Content-Type"]), (200, "text/event-stream"), "watch")
    feed(daemon, start("j"), line("j", 1, STEP.format(1, 1)))
    mine = daemon.api.watch("/v1/watch?job=j")
    told = everything.until(lambda e: e[2]["job"] == "j" and e[0] == "verdict")
    good(t, told)
    t.same([e[0] for e in told], ["begun", "state", "verdict"], "a run begins")
    t.same((told[1][2]["state"], told[1][2]["was"]), ("running", None), "its state")
    feed(daemon, line("j", 2, BAD))
    told = everything.until(lambda e: e[0] == "fault")
    t.same((told[-1][2]["job"], told[-1][2]["is"]["fault"]), ("j", daemon.api.get("/v1/jobs/j").json()["fault"]), "a fault that counts")
    daemon.api.end("j", exit_code=1)
    daemon.api.end("other", exit_code=0)
    everything.until(lambda e: e[2]["job"] == "other" and is_final(e))
    told = mine.until(is_final)
    good(t, told)
    t.same({e[2]["job"] for e in told}, {"j"}, "of this job alone")
    t.check([e[2]["state"] for e in told if e[0] == "state"][-1] == "ended", f"its states: {told}")
    answer = daemon.api.get("/v1/jobs/j/verdict")
    t.same(f'"{told[-1][2]["version"]}"', answer.headers["ETag"], "the version is the ETag")
    t.same(told[-1][2]["is"]["verdict"], answer.json()["verdict"], "and the verdict that one")
    t.same(daemon.status()["api"]["watchers"], 2, "watchers in status")
    everything.close()
    mine.close()
    poll.until("watchers gone", lambda: daemon.status()["api"]["watchers"] == 0, 10)
    daemon.stop()


def test_withdrawn(t):
    """A fault that progress follows is taken back."""
    daemon = t.start()
    watch = daemon.api.watch()
    feed(daemon, start("j"), line("j", 1, STEP.format(1, 1)), line("j", 2, BAD))
    fault = watch.until(lambda e: e[0] == "fault")[-1][2]["is"]["fault"]
    feed(daemon, line("j", 3, STEP.format(3, 2)), line("j", 4, STEP.format(4, 3)))
    told = watch.until(lambda e: e[0] == "withdrawn")
    good(t, told)
    t.same(told[-1][2]["was"], fault, "which one")
    watch.close()
    daemon.stop()


def test_taken_up_again(t):
    """Who comes back with the id of the last event misses nothing and hears nothing twice."""
    daemon = t.start()
    whole = daemon.api.watch()
    feed(daemon, start("a"))
    first = daemon.api.watch()
    told = whole.until(lambda e: e[0] == "verdict")
    first.close()
    here = whole.last_id
    feed(daemon, start("b"), start("c"))
    seen = set()
    rest = whole.until(lambda e: e[0] == "verdict" and (seen.add(e[2]["job"]) or len(seen) == 2))
    again = daemon.api.watch(last_id=here)
    t.same(again.until(lambda e: e[1] == rest[-1][1]), rest, "from there on")
    middle = daemon.api.watch(last_id=rest[1][1])
    t.same(middle.until(lambda e: e[1] == rest[-1][1]), rest[2:], "from the middle on")
    t.check(told, "and before")
    for bad in ("x", "0-1", here.split("-")[0] + "-99999", here + "x", ""):
        watch = daemon.api.watch(last_id=bad) if bad else None
        if watch:
            t.same((watch.first[0], watch.first[2]["event"]), ("resync", "resync"), f"Last-Event-ID {bad}: something was missed")
            good(t, [watch.first])
            watch.close()
    daemon.restart()
    watch = daemon.api.watch(last_id=here)
    t.same(watch.first[0], "resync", "after a restart numbers begin anew")
    watch.close()
    t.same(daemon.status()["counters"]["watchers_resync"], 1, "counted")
    for w in (whole, again, middle):
        w.close()
    daemon.stop()


def test_nobody_watches(t):
    """Then no verdict is made for it."""
    daemon = t.start()
    feed(daemon, start("j"), line("j", 1, BAD))
    daemon.api.end("j", exit_code=1)
    t.same(daemon.status()["counters"]["watch_events"], 0, "events")
    t.same(daemon.api.request("HEAD", "/v1/watch").status, 200, "HEAD")
    for bad, status in (("/v1/watch?job=nobody", 404), ("/v1/watch?job=%zz", 400)):
        t.same(daemon.api.request("GET", bad).status, status, bad)
    poll.until("nobody left", lambda: daemon.status()["api"]["watchers"] == 0, 10)
    daemon.stop()


def test_cap(t):
    """64 watch; a further one is told so, and counted; who leaves makes room."""
    daemon = t.start()
    some = [daemon.api.watch() for _ in range(64)]
    answer = daemon.api.request("GET", "/v1/watch")
    t.same((answer.status, schema.errors("problem", answer.json())), (503, []), f"one more: {answer}")
    t.same((daemon.status()["counters"]["watchers_refused"], daemon.status()["api"]["watchers"]), (1, 64), "counted")
    feed(daemon, start("j"))
    for watch in some:
        t.same(watch.until(lambda e: e[0] == "begun")[-1][2]["job"], "j", "all are told")
    some.pop().close()
    poll.until("room", lambda: daemon.api.watch().status == 200, 10)
    for watch in some:
        watch.close()
    daemon.stop()


def test_slow_reader(t):
    """Who does not read is dropped when what it missed is gone, counted; nobody else notices."""
    daemon = t.start()
    slow, quick = daemon.api.watch(), daemon.api.watch(timeout=60)
    runs = 900
    feed(daemon, *(start(f"j{i}") for i in range(runs)))
    left = {f"j{i}" for i in range(runs)}
    quick.until(lambda e: e[0] == "verdict" and (left.discard(e[2]["job"]) or not left), 120)
    t.check(daemon.status()["counters"]["watch_events"] > 2500, "more than is kept")
    heard = []
    try:
        slow.until(lambda e: (heard.append(e[1]), False)[1], 30)
    except EOFError:
        pass
    t.check(0 < len(heard) < 2500, f"it heard {len(heard)} and was dropped")
    poll.until("counted", lambda: daemon.status()["counters"]["watchers_slow"] == 1, 10)
    back = daemon.api.watch(last_id=slow.last_id)
    t.same(back.first[0], "resync", "it comes back")
    t.same(daemon.status()["api"]["watchers"], 2, "the quick one and the one that came back")
    daemon.stop()


def lines_of(process):
    return [x for x in process.stdout.read().decode().splitlines() if x]


def test_command(t):
    """`watch JOB` says how it is, what happens, and ends with the final verdict; through a kill of the daemon too."""
    daemon = t.start()
    feed(daemon, start("j"), line("j", 1, STEP.format(1, 1)))
    process = t.spawn(t.client, "watch", "j", env=daemon.env, stdout=subprocess.PIPE)
    every = t.spawn(t.client, "watch", "--json", env=daemon.env, stdout=subprocess.PIPE)
    poll.until("they watch", lambda: daemon.status()["api"]["watchers"] == 2, 10)
    feed(daemon, line("j", 2, BAD))
    t.check(b" now " in process.stdout.readline(), "how it is")
    said = [process.stdout.readline() for _ in range(2)]
    t.check(any(b" fault " in x for x in said) or b" fault " in process.stdout.readline(), f"a fault: {said}")
    daemon.restart()
    poll.until("they are back", lambda: daemon.status()["api"]["watchers"] == 2, 20)
    daemon.api.end("j", exit_code=1)
    t.same(process.wait(20), 0, "exit status")
    rest = lines_of(process)
    t.check(any(x.startswith("resync: ") for x in rest), f"something was missed: {rest}")
    t.check("j/0" in rest[-1] and "ended, rank" in rest[-1], f"the last line: {rest}")
    t.same(every.poll(), None, "without JOB it goes on")
    every.send_signal(signal.SIGINT)
    t.same(every.wait(10), -signal.SIGINT, "until Ctrl-C")
    objects = [json.loads(x) for x in lines_of(every)]
    t.check({"fault", "verdict", "resync"} <= {o["event"] for o in objects}, f"--json: {objects}")
    done = t.run("watch", "j", env=daemon.env)
    t.check(b" now " in done.stdout and done.stdout.count(b"\n") == 1, f"of a job that is over: {done.stdout}")
    t.run("watch", "nobody", env=daemon.env, status=(65,))
    t.run("watch", "a", "b", env=daemon.env, status=(64,))
    daemon.stop()
    t.run("watch", env=daemon.env, status=(69,))


if __name__ == "__main__":
    trial.main(__doc__, test_what_is_told, test_withdrawn, test_taken_up_again, test_nobody_watches, test_cap, test_slow_reader, test_command)
