#!/usr/bin/env python3
"""Logs of nodes, which belong to no job: kept under their node, joined to the runs that they are about."""
import json
import os
import pathlib
import signal
import socket
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from support import poll, replay, trial  # noqa: E402
from support.replay import run_cases  # noqa: E402

XID = "NVRM: Xid (PCI:0000:9b:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus."


def node_logs(r):
    """The case's streams that are a node's own. What srun prints is the job's."""
    return {s["name"] for s in r.streams if s["kind"] in ("kernel", "scheduler") and not s["name"].endswith((".out", ".err")) and "srun" not in s["name"]}


def cases():
    return [r for r in replay.cases() if node_logs(r)]


def objects(r):
    """The case as objects, its nodes told as a scheduler's prolog does; and the same with the nodes' logs of no job."""
    records = [json.loads(line) for line in r.jsonl().splitlines()]
    told = {s["node"] for s in r.streams if s.get("node")} | {r.meta["truth"].get("initiating_node") or ""}
    records[0]["nodes"] = sorted(told - {""})
    logs = node_logs(r)
    bare = [{k: v for k, v in o.items() if k != "job" or o.get("stream") not in logs} for o in records]
    return records, bare


def lines(objs):
    return "".join(json.dumps(o, ensure_ascii=False) + "\n" for o in objs).encode("utf-8", "surrogateescape")


def without_clocks(verdict):
    """Nodes whose log says nothing of the run are no part of it: they don't stand in `clock`."""
    v = json.loads(verdict) if isinstance(verdict, bytes) else dict(verdict)
    v["clock"] = [c for c in v["clock"] if c["offset_us"] is not None]
    return v


def send(daemon, raw):
    """One connection, to its end."""
    with socket.socket(socket.AF_UNIX) as s:
        s.connect(str(daemon.ingest))
        s.sendall(raw)
        s.shutdown(socket.SHUT_WR)
        while s.recv(65536):
            pass


def why(t, daemon, job):
    return t.run("why", job, "--json", env=daemon.env).stdout.rstrip(b"\n")


def say(daemon, *objs):
    send(daemon, lines(objs))


def stored(t, daemon, job):
    """An export comes after the commit of all that is known."""
    t.run("export", job, env=daemon.env)


def at(seconds):
    return replay.rfc3339(int(seconds * 1e6))


def kernel(seconds, text, node="gpu-1", **more):
    return {"kind": "kernel", "node": node, "stream": "kern.log", "time": at(seconds), "message": text, **more}


def job_lines(job, begin=0, end=100, node="gpu-1", ended=True):
    """Two ranks that make steps until rank 0 loses its peer."""
    yield {"event": "job-start", "job": job, "world_size": 2, "launcher": "torchrun", "time": at(begin)}
    for rank in range(2):
        for k in range(11):
            yield {"job": job, "rank": rank, "node": node, "local_rank": rank, "fd": "stderr", "time": at(begin + (end - begin) * k / 10),
                   "message": f"step {k} loss 1.0"}
    if ended:
        yield {"event": "job-end", "job": job, "exit_code": 1, "state": "FAILED", "time": at(end)}


def test_cases_without_job(t):
    """The verdict of a case is the same whether its nodes' logs name the job or not."""
    found = cases()
    t.check(len(found) > 50, f"{len(found)} cases with logs of nodes")
    for r in found if t.everything else t.rng.sample(found, 8):
        named, bare = objects(r)
        a, b = (t.run("analyze", "--json", "-", input=lines(o), timeout=120).stdout.rstrip(b"\n") for o in (named, bare))
        t.check(without_clocks(a) == without_clocks(b), lambda: f"{r.name}{trial.difference(a, b)}")


def test_live_restart_export(t):
    """Live, after a crash, exported: one verdict; with two connections, as a job's and a node's lines come."""
    for i, r in enumerate(t.rng.sample(cases(), len(cases()) if t.everything else 3)):
        if not r.end or any(s["name"] in node_logs(r) and not s.get("node") and "slurmctld" not in s["name"] for s in r.streams):
            continue  # whose node is not said, and whose lines name no job: of one job's paste it is that job's, else nobody's
        _, bare = objects(r)
        daemon = t.start(f"daemon-{i}")
        send(daemon, lines(o for o in bare if "job" in o))
        send(daemon, lines(o for o in bare if "job" not in o))
        poll.until("the verdict is final", lambda: json.loads(daemon.api.verdict(r.job))["final"])
        wanted = daemon.api.verdict(r.job).rstrip(b"\n")
        alone = t.run("analyze", "--json", "-", input=lines(bare)).stdout.rstrip(b"\n")
        t.check(json.loads(wanted) == json.loads(alone), lambda: f"{r.name}: live and pasted{trial.difference(wanted, alone)}")
        before = daemon.status()["nodes"]
        t.check(before["nodes"] >= 1 and before["streams"] >= 1, f"nodes in status: {before}")
        check_export(t, daemon, r.job, wanted)
        daemon.restart()
        got = daemon.api.verdict(r.job).rstrip(b"\n")
        t.check(got == wanted, lambda: f"{r.name} after a crash{trial.difference(wanted, got)}")
        check_export(t, daemon, r.job, wanted)
        t.same(daemon.status()["nodes"], before, "nodes after a crash")
        daemon.stop()


def check_export(t, daemon, job, wanted):
    raw = t.run("export", job, env=daemon.env).stdout
    got = t.run("analyze", "--json", "-", input=raw).stdout.rstrip(b"\n")
    t.check(got == wanted, lambda: f"{job} exported{trial.difference(wanted, got)}")


def test_nodes_are_no_jobs(t):
    daemon = t.start()
    say(daemon, kernel(10, "nothing of note"), kernel(11, XID), {"kind": "scheduler", "stream": "slurmctld.log", "message": "x"})
    poll.until("two nodes", lambda: daemon.status()["nodes"]["nodes"] == 2)
    t.same(daemon.api.items("/v1/jobs"), [], "jobs")
    t.same(daemon.status()["runs"], 0, "runs")
    daemon.restart()
    t.same(daemon.status()["nodes"]["nodes"], 2, "nodes after a crash")
    t.same(daemon.api.items("/v1/jobs"), [], "jobs after a crash")
    daemon.stop()


def test_late_line_is_a_new_version(t):
    """The kernel's word comes when the verdict is known already; the open record of a last line counts at once."""
    daemon = t.start()
    say(daemon, *job_lines("j"))
    first = daemon.api.get("/v1/jobs/j/verdict")
    t.check(first.json()["verdict"] != "node", f"before: {first.json()['summary']}")
    say(daemon, kernel(50, XID))
    poll.until("a verdict about the node", lambda: daemon.api.get("/v1/jobs/j/verdict").json()["verdict"] == "node")
    second = daemon.api.get("/v1/jobs/j/verdict")
    v = second.json()
    t.same((v["node"], v["confidence"], v["fault"]["id"]), ("gpu-1", "certain", "gpu-xid-79"), "the verdict")
    version = lambda answer: int(answer.headers["ETag"].strip('"'))
    t.check(version(second) > version(first), f"{first.headers['ETag']} and {second.headers['ETag']}")
    say(daemon, kernel(51, "usb 1-1: new high-speed USB device"))
    t.same(daemon.api.get("/v1/jobs/j/verdict").body, second.body, "healthy lines change nothing")
    t.same(daemon.api.get("/v1/jobs/j/verdict").headers["ETag"], second.headers["ETag"], "nor the version")
    daemon.stop()


def test_line_that_fits_two_jobs(t):
    """Two jobs on a node: the line is shown to both, and is certain in neither; offline the same."""
    daemon = t.start()
    everything = [*job_lines("a"), *job_lines("b"), kernel(50, XID)]
    send(daemon, lines(everything))
    alone = {v["job"]: v for v in t.json("analyze", "--json", "-", input=lines(everything))}
    for job in "ab":
        v = json.loads(daemon.api.verdict(job))
        t.check(v["why_not"], f"{job}: {v} {daemon.status()}")
        t.same(v["why_not"][-1], {"rank": None, "text": "not attributed: gpu-xid-79 (gpu-1/kern.log@0) fits 2 jobs on gpu-1"}, f"why_not of {job}")
        t.check(v["confidence"] in (None, "possible"), f"confidence of {job}: {v['confidence']}")
        event = [e for e in v["events"] if e["id"] == "gpu-1/kern.log@0"]
        t.same([e["fields"].get("jobs") for e in event], ["2"] if isinstance(event[0]["fields"].get("jobs"), str) else [2], "field jobs")
        t.same(v, alone[job], f"{job} live and pasted")
        check_export(t, daemon, job, daemon.api.verdict(job).rstrip(b"\n"))
    screen = t.run("why", "a", env=daemon.env).stdout.decode()
    t.check("not attributed" in screen, screen)
    daemon.stop()


def test_pid_decides(t):
    """The kernel names a process: of two jobs on the node only the one whose rank it was hears of it."""
    daemon = t.start()
    kill = ("oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),cpuset=/,mems_allowed=0,oom_memcg=/x,task_memcg=/x/y,"
            "task=python,pid=4121,uid=1000")
    killed = {"event": "exit", "job": "a", "rank": 1, "node": "gpu-1", "pid": 4121, "exit_code": None, "signal": 9, "time": at(51)}
    send(daemon, lines([*job_lines("a"), killed, *job_lines("b"), kernel(50, kill)]))
    for job, wanted in (("a", [("gpu-1/kern.log@0", "host-oom-kill", 1)]), ("b", [])):
        events = daemon.api.items(f"/v1/jobs/{job}/events")
        t.same([(e["id"], e["fault"], e["rank"]) for e in events if "kern.log" in e["id"]], wanted, f"{job}: {events}")
    daemon.stop()


def test_syslog_of_the_kernel(t):
    """Facility 0 and slurmd, by syslog without a job; HOST is the long form of the node's name."""
    daemon = t.start()
    send(daemon, lines(o for o in job_lines("4711")))
    stamp = at(50).replace("Z", "+00:00")
    send(daemon, f"<3>1 {stamp} gpu-1.cluster.example kernel - - - {XID}\n".encode())
    poll.until("the node", lambda: daemon.status()["nodes"]["nodes"] == 1)
    v = json.loads(daemon.api.verdict("4711"))
    t.same(v["verdict"], "undetermined" if v["verdict"] == "undetermined" else "node", "two clocks: nothing tells when it was")
    send(daemon, f"<27>1 {stamp} head slurmctld 1 - - Time limit exhausted for JobId=4711\n".encode())
    poll.until("the job id tells", lambda: json.loads(daemon.api.verdict("4711"))["verdict"] == "external")
    daemon.stop()


def record(seq, text, more=""):
    """As /dev/kmsg gives it."""
    return f"3,{seq},{seq * 1000},-;{text}\n{more}".encode()


def run_here(daemon, job, node):
    """A job on this host that has begun, and goes on."""
    say(daemon, {"event": "job-start", "job": job, "world_size": 2, "nodes": [node]},
        *({"job": job, "rank": r, "node": node, "local_rank": r, "fd": "stderr", "message": "step 1 loss 1.0"} for r in range(2)))


def test_kernel_log_of_a_fifo(t):
    """Records as the kernel gives them, cut anywhere; restarts in between neither lose nor repeat one."""
    fifo = t.folder / "kmsg"
    os.mkfifo(fifo)
    host = socket.gethostname()
    daemon = t.start(options=[("kernel-log", fifo)])
    run_here(daemon, "j", host)
    with open(fifo, "wb", buffering=0) as f:
        raw = record(7, "usb 1-1: new device", " SUBSYSTEM=usb\n DEVICE=c189:1\n") + record(8, "caf\\xc3\\xa9 \\x1b[0m") + record(9, XID)
        for k in range(0, len(raw), 11):
            f.write(raw[k:k + 11])
        poll.until("the kernel's word", lambda: json.loads(daemon.api.verdict("j"))["node"] == host)
        v = json.loads(daemon.api.verdict("j"))
        t.same((v["verdict"], v["confidence"], v["fault"]["id"]), ("node", "certain", "gpu-xid-79"), "verdict")
        t.check(v["events"][0]["arrived"] and v["events"][0]["offset"] == len("usb 1-1: new device\ncafé \\x1b[0m\n".encode()), f"{v['events']}")
        count = lambda: daemon.status()["counters"]["lines"]
        lines_before = count()
        stored(t, daemon, "j")
        daemon.restart()
        t.same(count(), 0, "lines after the restart")
        f.write(record(8, "again") + record(9, XID) + record(10, "after"))
        poll.until("one more line", lambda: count() == 1)
        f.write(record(15, "five are lost") + record(16, XID.replace("79", "48")))
        poll.until("what came behind the hole", lambda: daemon.status()["counters"]["kernel_lost"] == 4)
        poll.until("two more lines", lambda: count() == 3)
        t.check(lines_before >= 5, f"{lines_before} lines")
        t.same(daemon.status()["nodes"]["streams"], 2, "streams: one before and one behind the hole")
    daemon.stop()


def test_kernel_log_of_this_host(t):
    """The real device: what is written to it, as only root may, comes to the job that runs here."""
    try:
        device = open("/dev/kmsg", "wb", buffering=0)
    except OSError as e:
        t.skip(f"/dev/kmsg: {e}")
    with device:
        host = socket.gethostname()
        daemon = t.start(options=[("kernel-log", "yes")])
        if not daemon.status()["nodes"]["nodes"]:
            t.skip(daemon.log_tail())
        run_here(daemon, "j", host)
        bus = f"{t.rng.randrange(1, 256):02x}"
        try:
            device.write(f"<3>NVRM: Xid (PCI:0000:{bus}:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus.\n".encode())
        except OSError as e:
            t.skip(f"/dev/kmsg: {e}")
        poll.until(lambda: f"the kernel's word: {daemon.api.verdict('j')}", lambda: json.loads(daemon.api.verdict("j"))["node"] == host)
        v = json.loads(daemon.api.verdict("j"))
        t.same((v["verdict"], v["fault"]["id"]), ("node", "gpu-xid-79"), "verdict")
        t.check(bus in v["events"][0]["text"] and v["events"][0]["arrived"], f"{v['events']}")
        stored(t, daemon, "j")
        before = daemon.status()["nodes"]
        daemon.restart()
        t.same(daemon.status()["nodes"]["events"], before["events"], "events after a crash: the same records are no new ones")
        t.same(json.loads(daemon.api.verdict("j"))["fault"]["id"], "gpu-xid-79", "fault after a crash")
        daemon.stop()


def test_kernel_log_refused(t):
    """A file is no kernel log; a device that can't be read is said, and all else goes on."""
    path = t.folder / "kern.log"
    path.write_text("x")
    done = subprocess.run([t.daemon, "--kernel-log", str(path), "--state", str(t.folder / "s"), "--ingest-socket", str(t.folder / "i"), "--api-socket",
                           str(t.folder / "a")], capture_output=True, timeout=30)
    t.check(done.returncode == 64 and b"tail-node" in done.stderr, f"{done}")
    daemon = t.start(options=[("kernel-log", t.folder / "none")])
    t.check("none" in daemon.log_tail() and daemon.api.alive(), daemon.log_tail())
    daemon.stop()


def test_followed_files(t):
    """kern.log and slurmctld.log of nodes, by `tail-node`: growth has a time; rotated; a file that anybody writes to is not believed."""
    logs = t.folder / "cluster"
    (logs / "gpu-1").mkdir(parents=True)
    (logs / "gpu-1" / "kern.log").write_text("old: " + XID + "\n")
    (logs / "gpu-1" / "messages").write_text("old\n")
    daemon = t.start(options=[("tail-node", logs / "{node}" / "{name}"), ("tail", t.folder / "jobs" / "{job}" / "{name}")])
    run_here(daemon, "j", "gpu-1")
    poll.until("the log's node", lambda: daemon.status()["nodes"]["streams"] == 2)
    t.same(json.loads(daemon.api.verdict("j"))["node"], None, "what stood in the file has no time")

    def grow(name, text):
        with open(logs / "gpu-1" / name, "a") as f:
            f.write(text + "\n")

    verdict = lambda: json.loads(daemon.api.verdict("j"))
    grow("messages", XID.replace("79", "74"))
    poll.until("likely, of a file that is anybody's", lambda: verdict()["node"] == "gpu-1")
    t.same(verdict()["confidence"], "likely", "confidence")
    grow("kern.log", XID.replace(": 79", ": 48"))
    poll.until("the kernel's own log", lambda: any("kern.log" in e["id"] for e in daemon.api.items("/v1/jobs/j/events")))
    (logs / "gpu-1" / "kern.log").rename(logs / "gpu-1" / "kern.log.1")
    grow("kern.log", "what a file holds when it is found has no time")
    poll.until("the new file", lambda: daemon.status()["nodes"]["streams"] == 3 and daemon.status()["tail"]["files"] == 3)
    grow("kern.log", XID.replace(": 79", ": 95"))
    poll.until("the rotated one", lambda: len([e for e in daemon.api.items("/v1/jobs/j/events") if "kern.log" in e["id"]]) == 2)
    stored(t, daemon, "j")
    events = daemon.api.items("/v1/jobs/j/events")
    daemon.restart()
    t.same(daemon.api.items("/v1/jobs/j/events"), events, "events after a crash")
    t.same([j["job"] for j in daemon.api.items("/v1/jobs")], ["j"], "jobs")
    daemon.stop()


def test_reload(t):
    """A catalogue that is read again, and a `tail-node` that is new, hold for nodes' logs too."""
    own = t.folder / "own" / "own.json"
    own.parent.mkdir()
    own.write_text("[]")
    options = [("catalog", own.parent)]
    daemon = t.start(options=options)
    say(daemon, *job_lines("j"), kernel(50, "widget 7 burst"))
    faults = lambda: [e["fault"] for e in daemon.api.items("/v1/jobs/j/events")]
    t.same(faults(), [], "before it is known")
    own.write_text(json.dumps([{"id": "widget-burst", "title": "The widget burst", "category": "hardware", "role": "primary", "domain": "hardware",
                                "match": [{"literal": "widget", "pattern": "widget \\d+ burst"}], "cause": "It burst.", "fix": ["Replace it."],
                                "examples": ["widget 7 burst"], "counterexamples": ["widget bursts"]}]))
    daemon.configure([*options, ("tail-node", t.folder / "logs" / "{node}" / "{name}")])
    log = t.folder / "logs" / "gpu-1" / "kern.log"
    log.parent.mkdir(parents=True)
    log.write_text("x\n")
    daemon.process.send_signal(signal.SIGHUP)
    poll.until("the reload", lambda: daemon.status()["counters"]["reloads"] == 1)
    say(daemon, kernel(60, "widget 8 burst"))
    poll.until(lambda: f"what comes is known: {faults()}", lambda: "widget-burst" in faults())
    poll.until("the new pattern's file", lambda: daemon.status()["nodes"]["streams"] == 2)
    daemon.stop()


JOURNALD = """
mount -t tmpfs none /run && mkdir -p /run/systemd/journal /run/log/journal && mount -t tmpfs none /var/log/journal || exit 77
/usr/lib/systemd/systemd-journald >/dev/null 2>&1 &
until journalctl -k -o short 2>/dev/null | grep -q '%s'; do :; done
journalctl -k -o export -n 40 > %s
journalctl -k -o json -n 40 > %s
kill $!
"""


def test_journal(t):
    """What a real journald keeps of the kernel's log, by `journalctl -o export` and `-o json`; its own folders are out of sight."""
    bus = f"{t.rng.randrange(1, 256):02x}"
    try:
        with open("/dev/kmsg", "wb", buffering=0) as device:
            device.write(f"<3>NVRM: Xid (PCI:0000:{bus}:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus.\n".encode())
    except OSError as e:
        t.skip(f"/dev/kmsg: {e}")
    files = [t.folder / "export", t.folder / "json"]
    done = subprocess.run(["unshare", "-m", "sh", "-c", JOURNALD % (f"{bus}:00): 79", *files)], capture_output=True, timeout=60)
    if done.returncode or not all(f.exists() and f.stat().st_size for f in files):
        t.skip(f"no journal: {done.stderr[-300:]!r}")
    host = socket.gethostname()
    for f in files:
        daemon = t.start(f"daemon-{f.name}")
        stamps = [json.loads(x) for x in files[1].read_text().splitlines()]
        end = int(stamps[-1]["__REALTIME_TIMESTAMP"]) - replay.BASE_US
        say(daemon, *({**o, "clock": "node"} if "time" in o else o for o in job_lines("j", end / 1e6 - 3600, end / 1e6 + 60, host)))
        send(daemon, f.read_bytes())
        v = json.loads(daemon.api.verdict("j"))
        t.same((v["verdict"], v["node"], v["fault"] and v["fault"]["id"]), ("node", host, "gpu-xid-79"), f"{f.name}: {v['summary']}")
        events = [e for e in daemon.api.items("/v1/jobs/j/events") if bus in e["text"]]
        t.check(events and events[0]["captured"] and events[0]["id"].startswith(f"{host}/journal/kernel@"), f"{f.name}: {events}")
        daemon.stop()


if __name__ == "__main__":
    trial.main(__doc__, test_cases_without_job, test_live_restart_export, test_nodes_are_no_jobs, test_late_line_is_a_new_version,
               test_line_that_fits_two_jobs, test_pid_decides, test_syslog_of_the_kernel,
               test_kernel_log_of_a_fifo, test_kernel_log_of_this_host, test_kernel_log_refused,
               test_followed_files, test_reload, test_journal)
