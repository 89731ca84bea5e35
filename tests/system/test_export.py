#!/usr/bin/env python3
"""`export JOB | analyze -`: the same bytes as `why` where all is kept, and said where it isn't."""
import json
import pathlib
import shutil
import socket
import sqlite3
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from support import poll, replay, trial  # noqa: E402
from support.native import Part, Sender, parts_of  # noqa: E402
from support.replay import BASE_US, Feed, essence  # noqa: E402


def exported(t, daemon, job):
    """The export, its first object, and what `analyze` makes of it."""
    raw = t.run("export", job, env=daemon.env, timeout=300).stdout
    first = json.loads(raw.split(b"\n", 1)[0])
    return raw, first, t.run("analyze", "--json", "-", input=raw, timeout=300).stdout.rstrip(b"\n")


def check_same(t, daemon, job, what):
    wanted = t.run("why", job, "--json", env=daemon.env).stdout.rstrip(b"\n")
    raw, first, got = exported(t, daemon, job)
    t.same(first["export"], {"complete": True, "missing": []}, f"{what}: the first object")
    t.check(got == wanted, lambda: f"{what}: export and why{trial.difference(wanted, got)}")
    return raw


def test_cases(t):
    """Every dev case (a sample of them), shipped to a daemon: native connections and JSON Lines."""
    daemon = t.start()
    cases = replay.cases()
    for i, r in enumerate(cases if t.everything else t.rng.sample(cases, 60)):
        feed = Feed(daemon, r, f"source-{i}").start()
        feed.send()
        feed.finish()
        verdict = daemon.api.verdict(r.job)
        if not json.loads(verdict)["final"]:  # a case without a job-end goes on
            t.check(r.end is None, f"{r.name} is not final")
            daemon.api.end(r.job, exit_code=1)
        check_same(t, daemon, r.job, r.name)
    daemon.stop()


def test_jsonl_cases(t):
    daemon = t.start()
    for r in t.rng.sample([r for r in replay.cases() if r.end], 25):
        raw = r.jsonl()
        with connect(daemon.ingest) as s:
            s.sendall(raw)
            s.shutdown(1)
            while s.recv(65536):
                pass
        poll.until("the verdict is final", lambda: settled(daemon, r.job))
        check_same(t, daemon, r.job, r.name)
    daemon.stop()


def check_schema(t, raw):
    try:
        import jsonschema
    except ImportError:
        return
    path = pathlib.Path(__file__).resolve().parents[2] / "schema" / "json" / "jsonl.schema.json"
    validator = jsonschema.Draft202012Validator(json.loads(path.read_text()))
    for line in raw.splitlines():
        errors = [e.message for e in validator.iter_errors(json.loads(line.decode(errors="replace")))]
        t.check(not errors, f"{line[:300]}: {errors}")


def connect(path):
    s = socket.socket(socket.AF_UNIX)
    s.settimeout(30)
    s.connect(str(path))
    return s


def settled(daemon, job):
    try:
        return json.loads(daemon.api.verdict(job))["final"]
    except (OSError, ValueError, KeyError, AssertionError):
        return False


def test_odd_text(t):
    """Bytes, pieces, gaps, second lives, tags, exits, clocks: all come back."""
    daemon = t.start()
    job = "odd"
    daemon.api.start(job, world_size=4, launcher="srun", nodes=["n0", "n1"])
    trace = [b"Traceback (most recent call last):", b'  File "/job/a.py", line 3, in main', b"    x()", b"ValueError: \xff\xfe bad byte \x1b[31m\x7f \"quoted\" back\\slash"]
    rows = {0: [b"step 1", b"", b"\r", b"a\rb\rc", b"\xe2\x82", bytes(range(0, 10)), *trace],
            1: [b"step 1", b"x" * 200000, b"RuntimeError: [/x/gloo/transport/tcp/pair.cc:534] Connection closed by peer [10.0.0.1]:53421"]}
    for rank, lines in rows.items():
        parts = parts_of([(BASE_US + i * 1000000 + rank * 7000000, x) for i, x in enumerate(lines)])
        parts[1:2] = [Part(parts[1].stamp, parts[1].text[:7], False), Part(parts[1].stamp + 5, parts[1].text[7:], parts[1].newline)]
        for life in ("first", "second"):
            hello = {"job": job, "source": f"{life}-{rank}", "streams": [f"rank-{rank}.log"], "rank": rank, "local_rank": rank % 2, "node": f"n{rank % 2}",
                     "pid": 1000 + rank, "fds": ["stderr"], "attempt": 0}
            sender = Sender(daemon.ingest, hello, [parts if life == "second" else parts_of([(BASE_US, b"step 0")])]).connect()
            sender.send_all()
            sender.end()
    objects = [{"job": job, "stream": "shared.log", "node": "n0", "rank": r, "attempt": a, "time": f"2026-01-01T00:00:{30 + r:02}Z", "message": f"step {r}"} for r in (2, 3, 2) for a in (0, 1)]
    objects += [{"job": job, "stream": "local.log", "node": "n1", "local_rank": r, "timestamp": f"2026-01-01T00:00:{40 + r:02}Z", "message": "two\nlines"} for r in (0, 1)]
    objects += [{"job": job, "stream": "gap.log", "offset": o, "message": f"step {o}"} for o in (0, 100, 4000)]
    objects += [{"job": job, "kind": "kernel", "node": "n1", "stream": "kern.log", "timestamp": "2026-01-01T00:00:50Z",
                 "message": "NVRM: Xid (PCI:0000:9b:00): 43, pid=1001, name=python, Ch 00000010"}]
    objects += [{"event": "clock", "job": job, "node": n, "t1": BASE_US, "t2": BASE_US + 90 + i, "t3": BASE_US + 95 + i, "t4": BASE_US + 200} for i, n in enumerate(("n0", "n1"))]
    objects += [{"event": "exit", "job": job, "attempt": 0, "rank": 0, "exit_code": 1, "time": "2026-01-01T00:01:00Z"},
                {"event": "exit", "job": job, "rank": 1, "exit_code": None, "signal": 9, "time": "2026-01-01T00:01:01Z", "clock": "node"},
                {"event": "exit", "job": job, "node": "n0", "pid": 4711, "exit_code": 3},
                {"event": "sign", "job": job, "rank": 1, "state": "D", "step": 7, "wchan": "rpc_wait", "time": "2026-01-01T00:00:59Z"},
                {"event": "end", "job": job, "stream": "gap.log", "complete": False}]
    with connect(daemon.ingest) as s:
        s.sendall("".join(json.dumps(o) + "\n" for o in objects).encode())
        s.shutdown(socket.SHUT_WR)
        while s.recv(65536):
            pass
    daemon.api.end(job, exit_code=1, state="FAILED", time="2026-01-01T00:02:00Z")
    raw = check_same(t, daemon, job, "odd text")
    t.check(b"\xff\xfe bad" in raw and b"\\u0000" in raw, "bytes that are no UTF-8, and NUL")
    t.check(b"first-0" not in raw and b"second-0" not in raw, "tokens of the senders")
    check_schema(t, raw)
    daemon.restart()
    t.same(t.run("export", job, env=daemon.env).stdout, raw, "after a restart")
    again = t.start("again")
    with connect(again.ingest) as s:  # and a daemon that is fed it judges the same
        s.sendall(raw)
        s.shutdown(socket.SHUT_WR)
        while s.recv(65536):
            pass
    poll.until("the verdict is final", lambda: settled(again, job))
    wanted, got = json.loads(daemon.api.verdict(job)), json.loads(again.api.verdict(job))
    t.same(essence(got), essence(wanted), "a daemon that was fed the export")
    for cursor in ("x", "1", "9-9-9-9-9", "1-99999999-0-0-0", "1--1-0-0-0", "2-99999999-1-0-0", "1-1-7-1-7", "0-0-0-0-0"):
        answer = daemon.api.request("GET", f"/v1/jobs/{job}/export?cursor={cursor}")
        t.check(answer.status in (200, 400, 409), f"cursor {cursor}: {answer.status}")
    daemon.running()
    t.run("export", "no-such-job", env=daemon.env, status=(65,))
    t.run("export", env=daemon.env, status=(64,))
    daemon.stop()
    again.stop()


def test_pages(t):
    """More than one answer holds, with lines that begin on one page and end on another."""
    daemon = t.start()
    job = "big"
    daemon.api.start(job, world_size=3)
    lines = [(BASE_US + i, b"line %d %s" % (i, t.rng.randbytes(40).hex().encode())) for i in range(60000)]
    slow = Sender(daemon.ingest, {"job": job, "source": "slow", "streams": ["rank-2.log"], "rank": 2},
                  [[Part(BASE_US, b"step 1 of", False), Part(BASE_US + 1, b" two, and ", False), Part(BASE_US + 2, b"the end", True)]]).connect()
    slow.send_run(0, 1)
    for rank in (0, 1):
        fault = [(BASE_US + 70000, x) for x in (b"Traceback (most recent call last):", b'  File "a.py", line 1, in f', b"    g()", b"ValueError: x")] if rank else []
        sender = Sender(daemon.ingest, {"job": job, "source": f"s{rank}", "streams": [f"rank-{rank}.log"], "rank": rank}, [parts_of(lines + fault)], seconds=120).connect()
        sender.send_all()
        sender.end()
        slow.send_run(0, 2 + rank)
    slow.wait_done()
    slow.end()
    daemon.api.end(job, exit_code=1)
    raw = check_same(t, daemon, job, "many pages")
    t.check(len(raw) > 16 << 20, f"{len(raw)} bytes are one page")
    texts = [json.loads(x) for x in raw.splitlines() if b'"rank-2.log"' in x and b'"message"' in x]
    t.same([x["message"] for x in texts], ["step 1 of two, and the end"], "a line in pieces over pages")
    daemon.stop()


def test_tailed(t):
    """Files are their own text: what was made of them is exported, so that the answer is the same, also when they are gone."""
    logs = t.folder / "logs"
    daemon = t.start(options=[("tail", logs / "{job}" / "{name}")])
    cases = [r for r in replay.cases() if r.end and len(r.streams) < 20]
    wrong = []
    for r in t.rng.sample(cases, 12):
        for k, s in enumerate(r.streams):
            path = logs / r.job / s["name"].replace("/", "_")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(b"".join(x + b"\n" for _, i, x in r.rows if i == k))
        poll.until(f"job {r.job}", lambda: daemon.api.request("GET", f"/v1/jobs/{r.job}").status == 200, 30)
        daemon.api.start(r.job, **r.start)
        daemon.api.end(r.job, wait="20s", **r.end_facts())
        wanted = daemon.api.verdict(r.job)
        for gone in (False, True):
            if gone:
                shutil.rmtree(logs / r.job)
            raw, first, got = exported(t, daemon, r.job)
            t.check(not first["export"]["complete"] and "tailed" in first["export"]["missing"][0], f"{r.name}: {first}")
            a, b = essence(wanted), essence(got)
            if any(a[key] != b[key] for key in ("verdict", "initiating", "fault")):
                wrong.append((r.name, gone, a, b))
    t.same(wrong, [], "verdict, initiating and fault of tailed runs")
    daemon.stop()


def test_dropped(t):
    """Text that was dropped is said, and its events are left."""
    daemon = t.start()
    job = "dropped"
    daemon.api.start(job, world_size=2)
    trace = [b"Traceback (most recent call last):", b'  File "a.py", line 1, in f', b"    g()", b"ValueError: x"]
    rest = [b"noise %d %s" % (i, t.rng.randbytes(100).hex().encode()) for i in range(100000)]
    peer = [b"RuntimeError: [/x/gloo/transport/tcp/pair.cc:534] Connection closed by peer [10.0.0.1]:53421"]
    for rank, lines in ((0, [b"start", *trace, *rest]), (1, [*peer, b"bye"])):
        sender = Sender(daemon.ingest, {"job": job, "source": f"s{rank}", "streams": [f"rank-{rank}.log"], "rank": rank, "clock": "collector"},
                        [parts_of([(BASE_US + i + rank * 2000000, x) for i, x in enumerate(lines)])], seconds=120).connect()
        sender.send_all()
        sender.end()
    daemon.api.end(job, exit_code=1)
    wanted = daemon.api.verdict(job)
    daemon.stop()
    store = sqlite3.connect(daemon.store_path())
    store.execute("UPDATE run SET segment_first = 2, segments_dropped = 1")
    store.commit()
    store.close()
    first_file = min((daemon.state / "segments").rglob("*.seg"))
    first_file.unlink()
    daemon.start()
    raw, first, got = exported(t, daemon, job)
    t.check(not first["export"]["complete"] and "dropped" in first["export"]["missing"][0], f"{first}")
    a, b = essence(wanted), essence(got)
    t.same({k: b[k] for k in ("verdict", "initiating", "fault")}, {k: a[k] for k in ("verdict", "initiating", "fault")}, "of a run whose text was dropped")
    daemon.stop()


def test_open_run(t):
    daemon = t.start()
    daemon.api.start("open", world_size=1)
    _, first, _ = exported(t, daemon, "open")
    t.same(first["export"]["complete"], False, "a run that goes on")
    t.check(daemon.api.request("GET", "/v1/jobs/none-such/export").status == 404, "an unknown job")
    daemon.stop()


if __name__ == "__main__":
    trial.main(__doc__, test_cases, test_jsonl_cases, test_odd_text, test_pages, test_tailed, test_dropped, test_open_run)
