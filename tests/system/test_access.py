#!/usr/bin/env python3
"""Who may do what (shared/README.md 6.8): the sockets of a machine that others use too, tried as somebody else."""
import concurrent.futures
import grp
import http.client
import json
import multiprocessing
import os
import pathlib
import resource
import signal
import socket
import stat
import sys
import time
import urllib.parse

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from support import poll, trial  # noqa: E402
from support.daemon import Daemon  # noqa: E402
from support.native import Sender, parts_of  # noqa: E402
from support.user import ADA, EVE, as_user, can_be  # noqa: E402

FAULT = [b"step 1 loss 2.5", b"Traceback (most recent call last):", b'  File "/job/train.py", line 3, in main', b"    step()",
         b"torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.25 GiB.", b"bye"]
ROUTES = ("", "/verdict", "/verdict?format=md", "/ranks", "/timeline", "/events", "/logs", "/logs?around=first", "/export", "/export?cursor=0")


def shared(t, options=()):
    """A daemon of root's that other users can reach."""
    if not can_be():
        t.skip("only root can be two users")
    t.folder.chmod(0o755)
    return t.start(options=options)


def hello(job, source="ada-1", **more):
    return {"job": job, "source": source, "streams": ["rank-0.stderr"], "rank": 0, "node": "node-a", **more}


def lines(texts):
    return parts_of([(1767225600000000 + i * 1000, text) for i, text in enumerate(texts)])


def run_job(daemon, job, **more):
    """As its owner: a rank that fails, and the job's end."""
    sender = Sender(daemon.ingest, hello(job, **more), [lines(FAULT)]).connect()
    sender.send_all()
    sender.end()
    daemon.api.end(job, exit_code=1, state="FAILED")


def talk(s, raw):
    """What a connection says to these bytes until it closes."""
    out = b""
    try:
        s.sendall(raw)
        s.shutdown(socket.SHUT_WR)
        while more := s.recv(65536):
            out += more
    except (ConnectionResetError, BrokenPipeError):
        pass
    return out


def told(daemon, raw):
    with socket.socket(socket.AF_UNIX) as s:
        s.settimeout(20)
        s.connect(str(daemon.ingest))
        return talk(s, raw)


def objects(*rows):
    return "".join(json.dumps(row) + "\n" for row in rows).encode()


def counted(frame):
    return b"%d %s" % (len(frame), frame)


class Untouched:
    """A job of ada's: whatever the others try, it stays as it is."""

    def __init__(self, t, daemon, job):
        self.t, self.daemon, self.job = t, daemon, job
        self.before = self.look()

    def look(self):
        api = self.daemon.api
        one = api.get(f"/v1/jobs/{self.job}").json()
        runs = [x["run"] for x in api.items("/v1/jobs") if x["job"] == self.job]
        verdict = api.get(f"/v1/jobs/{self.job}/verdict").json()
        verdict.pop("as_of")  # of an open run it is now
        return verdict, one["owner"], one["streams"], one["facts"], runs, len(api.get(f"/v1/jobs/{self.job}/export").body)

    def check(self, what):
        self.daemon.running()
        after = self.look()
        self.t.check(after == self.before, lambda: f"{what} changed ada's job: {trial.shown(repr(self.before))} is now {trial.shown(repr(after))}")


def test_second_user_reads(t):
    daemon = shared(t)
    as_user(ADA, run_job, daemon, "ada-job")
    url = "/v1/jobs/ada-job"
    for route in ROUTES:
        for name in ("ada-job", "ada-job~0", "ada-job/0".replace("/", "%2F"), "ada"):
            answer = as_user(EVE, daemon.api.request, "GET", f"/v1/jobs/{name}{route}")
            t.same(answer.status, 403, f"eve asks for {name}{route}: {answer}")
            t.check(b"OutOfMemory" not in answer.body and b"cuda" not in answer.body, f"{route} told eve {answer}")
    # that it exists, and nothing else
    for query in ("", "?state=ended", "?fault=cuda-oom", "?node=node-a", "?since=2020-01-01T00:00:00Z"):
        items = as_user(EVE, daemon.api.items, "/v1/jobs" + query)
        if query:
            t.same(items, [], f"eve's list{query}")
            continue
        t.same([(x["job"], x["run"]) for x in items], [("ada-job", "0")], "eve's list")
        t.same({v for k, v in items[0].items() if k not in ("job", "run", "initiating")}, {None}, "what eve's list tells")
    for uid in (ADA, 0):
        for route in ROUTES[:-1]:
            t.same(as_user(uid, daemon.api.request, "GET", url + route).status, 200, f"uid {uid} asks for {route}")
        t.same(as_user(uid, daemon.api.items, "/v1/jobs")[0]["fault"], "cuda-oom", f"the list of uid {uid}")


def test_second_user_ends(t):
    daemon = shared(t)
    as_user(ADA, daemon.api.start, "ada-job", world_size=4)
    ada = Untouched(t, daemon, "ada-job")
    for url, body in (("end", {"exit_code": 0}), ("end?create=1", {"exit_code": 0}), ("end?create=1", {"exit_code": 0, "run": "7"}), ("end?wait=0", {}),
                      ("start", {"world_size": 2}), ("start", {"run": "7"})):
        answer = as_user(EVE, daemon.api.request, "POST", f"/v1/jobs/ada-job/{url}", body)
        t.same(answer.status, 403, f"eve posts {url} {body}: {answer}")
        ada.check(f"POST {url} {body}")
    as_user(ADA, daemon.api.end, "ada-job", exit_code=0)
    t.same(daemon.api.get("/v1/jobs/ada-job").json()["state"], "ended", "state after ada's own end")
    ada = Untouched(t, daemon, "ada-job")
    t.same(as_user(EVE, daemon.api.request, "POST", "/v1/jobs/ada-job/start", {}).status, 403, "eve begins a further run")
    ada.check("a start after the end")


def test_second_user_forges(t):
    daemon = shared(t)
    as_user(ADA, run_job, daemon, "ada-job")
    ada = Untouched(t, daemon, "ada-job")
    forged = {"job": "ada-job", "kind": "rank", "rank": 3, "node": "node-x", "stream": "rank-3.log", "message": "ValueError: forged"}
    tries = {
        "data": objects(forged, {**forged, "run": "0"}, {**forged, "run": "9"}, {**forged, "source": "ada-1", "stream": "rank-0.stderr", "node": "node-a", "offset": 0}),
        "job-end": objects({"event": "job-end", "job": "ada-job", "exit_code": 0}),
        "job-start": objects({"event": "job-start", "job": "ada-job", "world_size": 64}),
        "exit": objects({"event": "exit", "job": "ada-job", "rank": 5, "signal": 9}),
        "end": objects({"event": "end", "job": "ada-job", "node": "node-a", "stream": "rank-0.stderr"}),
        "clock": objects({"event": "clock", "job": "ada-job", "node": "node-a", "t1": 1, "t2": 2, "t3": 3, "t4": 4}),
        # first a word for a job of her own: what follows is not hers for that
        "data behind her own": objects({**forged, "job": "eve-job"}, forged, {"event": "job-end", "job": "ada-job", "exit_code": 0}, {"event": "clock", "node": "node-a", "t1": 1,
                                       "t2": 2, "t3": 3, "t4": 4}),
        "syslog": b'<13>1 2026-01-01T00:00:00Z node-x app - - [x@32473 job="ada-job" rank="3"] ValueError: forged\n',
        "counted syslog": counted(b'<13>1 2026-01-01T00:00:00Z node-x app - - [x@32473 job="ada-job" rank="3"] ValueError: forged'),
    }
    for what, raw in tries.items():
        before = daemon.status()["counters"]["not_admitted"]
        as_user(EVE, told, daemon, raw)
        poll.until(f"a count of {what}", lambda: daemon.status()["counters"]["not_admitted"] > before)
        ada.check(what)
    for more in ({}, {"lines": "plain"}, {"run": "9"}, {"run": "0"}, {"live": True}, {"source": "0"}, {"source": "eve-1"}, {"node": "node-z"}, {"token": "0123456789abcdef0123"}):
        answer = as_user(EVE, told, daemon, objects({"event": "hello", "protocol": "firstfault/1", **hello("ada-job"), **more}))
        t.check(b'"code":"auth"' in answer and b"welcome" not in answer, f"hello with {more}: {answer}")
        ada.check(f"a hello with {more}")


def test_owner_speaks_as_the_kernel(t):
    """What root says of a job's host is believed; what the job's owner then says in the same stream is not taken."""
    daemon = shared(t)
    xid = "NVRM: Xid (PCI:0000:%s:00): 79, GPU has fallen off the bus."
    for job, uids in (("root-first", (None, ADA)), ("ada-first", (ADA, None))):
        as_user(ADA, run_job, daemon, job)
        row = {"job": job, "kind": "kernel", "node": "node-a", "stream": "kern.log", "source": "k"}
        before = daemon.status()["counters"]["not_admitted"]
        for n, uid in enumerate(uids):
            raw = objects({**row, "message": xid % f"{n + 1}b"})
            told(daemon, raw) if uid is None else as_user(uid, told, daemon, raw)

        def kernel():
            rows = [json.loads(x) for x in daemon.api.get(f"/v1/jobs/{job}/export").body.decode().splitlines()]
            texts = [x["message"] for x in rows if x.get("stream") == "kern.log" and "message" in x]
            trusted = not any(x.get("stream") == "kern.log" and x.get("trusted") is False for x in rows)
            return len(texts), trusted

        if uids[0] is None:
            poll.until("a count", lambda: daemon.status()["counters"]["not_admitted"] > before)
            t.same(kernel()[0], 1, "lines of the trusted stream")
        else:
            poll.until("both lines", lambda: kernel() == (2, False))
            t.same(daemon.status()["counters"]["not_admitted"], before, "refused")


def test_second_user_takes_over(t):
    """A live stream stays with whom it has: a hello of its source and name by somebody else closes nothing."""
    daemon = shared(t)

    def live():
        sender = Sender(daemon.ingest, hello("ada-live"), [lines(FAULT)]).connect()
        sender.send_run(0, 3)
        sender.wait_done()
        theft = as_user_from(EVE)
        sender.send_all()
        sender.end()
        return theft

    def as_user_from(uid):
        """ada's process can't become eve: its parent does, asked over a pipe."""
        os.write(ask[1], b"x")
        return os.read(reply[0], 4096)

    ask, reply = os.pipe(), os.pipe()
    child = os.fork()
    if not child:
        os.read(ask[0], 1)
        os.write(reply[1], as_user(EVE, told, daemon, objects({"event": "hello", "protocol": "firstfault/1", **hello("ada-live")})))
        os._exit(0)
    theft = as_user(ADA, live)
    os.waitpid(child, 0)
    for fd in (*ask, *reply):
        os.close(fd)
    t.check(b'"code":"auth"' in theft, f"eve's hello: {theft}")
    t.same(daemon.status()["counters"]["taken_over"], 0, "connections taken over")
    verdict = json.loads(daemon.api.verdict("ada-live"))
    t.same(verdict["fault"]["id"], "cuda-oom", "fault of ada's job")


def test_runs_of_several_owners(t):
    """A job's runs can have several owners: root began the second one of ada's job, and it is not hers."""
    daemon = shared(t)
    as_user(ADA, run_job, daemon, "ada-job", run="first")
    as_user(EVE, run_job, daemon, "eve-job")
    daemon.api.start("ada-job", run="second")
    for uid, name, wanted in ((ADA, "ada-job~1", 200), (ADA, "ada-job", 403), (EVE, "ada-job~1", 403), (EVE, "ada-job", 403)):
        t.same(as_user(uid, daemon.api.request, "GET", f"/v1/jobs/{name}/verdict").status, wanted, f"uid {uid} asks for {name}")
    answer = as_user(ADA, told, daemon, objects({"event": "hello", "protocol": "firstfault/1", **hello("ada-job", "ada-2")}))
    t.check(b'"code":"auth"' in answer, f"ada's hello for root's run: {answer}")
    # nor by the source that her own run knows
    answer = as_user(ADA, told, daemon, objects({"event": "hello", "protocol": "firstfault/1", **hello("ada-job", run="second")}))
    t.check(b'"code":"auth"' in answer, f"ada's hello for root's run by its name: {answer}")
    t.same([(x["job"], x["run"]) for x in as_user(EVE, daemon.api.items, "/v1/jobs") if x["state"]], [("eve-job", "0")], "what eve sees inside of")


def test_reserved_jobs(t):
    """Nobody can stand where a node's words, or another user's nameless lines, will be kept."""
    daemon = shared(t)
    for job in (f"raw-uid-{ADA}",):
        answer = as_user(EVE, daemon.api.request, "POST", f"/v1/jobs/{job}/start", {})
        t.same(answer.status, 403, f"eve begins {job}: {answer}")
        as_user(EVE, told, daemon, objects({"job": job, "message": "mine"}))
    as_user(EVE, told, daemon, objects({"job": "eve-job", "message": "x"}, {"kind": "kernel", "node": "node-a", "message": "NVRM: Xid (PCI:0000:01:00): 79, GPU has fallen off the bus."}))
    as_user(ADA, told, daemon, b"nothing but text\n")
    as_user(EVE, told, daemon, b"nothing but text\n")
    t.same(sorted(x["job"] for x in daemon.api.items("/v1/jobs")), ["eve-job", f"raw-uid-{ADA}", f"raw-uid-{EVE}"], "jobs")
    t.same(as_user(ADA, daemon.api.request, "GET", f"/v1/jobs/raw-uid-{ADA}/logs").status, 200, "ada's own lines")
    t.same(as_user(EVE, daemon.api.request, "GET", f"/v1/jobs/raw-uid-{ADA}/logs").status, 403, "eve asks for them")


def test_user_fills_no_table(t):
    """Names that one user makes up leave places for what root says of nodes, and for others' jobs."""
    daemon = shared(t)
    as_user(EVE, told, daemon, objects(*({"kind": "kernel", "node": f"made-up-{i}", "message": "x"} for i in range(4200))))
    poll.until("eve's lines", lambda: daemon.status()["counters"]["nodes_refused"] > 0)
    before = daemon.status()["nodes"]["nodes"]
    told(daemon, objects({"kind": "kernel", "node": "gpu-017", "message": "NVRM: Xid (PCI:0000:9b:00): 79, GPU has fallen off the bus."}))
    poll.until("root's node", lambda: daemon.status()["nodes"]["nodes"] == before + 1)
    as_user(EVE, told, daemon, objects(*({"event": "job-start", "job": f"made-up-{i}"} for i in range(2100))))
    poll.until("eve's share", lambda: daemon.status()["counters"]["runs_refused"] > 0)
    answer = as_user(EVE, daemon.api.request, "POST", "/v1/jobs/one-more/start", {})
    t.check(answer.status == 503 and b"this user has" in answer.body, f"one more of eve's: {answer}")
    as_user(ADA, daemon.api.start, "ada-job")


def test_owner_stays(t):
    """An owner is one across a restart, also of a run that a job-start alone made known."""
    daemon = shared(t)
    as_user(ADA, told, daemon, objects({"event": "job-start", "job": "ada-job", "world_size": 2}))
    poll.until("ada's job", lambda: daemon.api.items("/v1/jobs"))
    for _ in range(2):
        t.same(daemon.api.get("/v1/jobs/ada-job").json()["owner"], ADA, "owner")
        t.same(as_user(EVE, daemon.api.request, "POST", "/v1/jobs/ada-job/end", {}).status, 403, "eve ends it")
        t.same(as_user(ADA, daemon.api.request, "GET", "/v1/jobs/ada-job/verdict").status, 200, "ada reads it")
        daemon.restart()


def owner(daemon, job):
    return daemon.api.get(f"/v1/jobs/{job}").json()["owner"]


def bad_values(daemon, job):
    return daemon.api.get(f"/v1/jobs/{job}").json()["counters"].get("bad_values", 0)


def start_by(t, daemon, *arguments):
    """root's client; what it says on standard error"""
    return t.run("job", "start", *arguments, env=daemon.env).stderr.decode()


def test_owner_is_named(t):
    """A prolog runs as root: it says whose the run is, and then it is his and nobody else's, after a restart too."""
    daemon = shared(t)
    t.same(start_by(t, daemon, "ada-http", "--uid", ADA), "", "what root's client says")
    native = {"event": "hello", "protocol": "firstfault/1", **hello("ada-native", "relay"), "kind": "scheduler", "rank": None, "streams": ["relay"]}
    told(daemon, objects(native, {"event": "job-start", "uid": ADA}))
    told(daemon, objects({"event": "job-start", "job": "ada-lines", "uid": ADA, "world_size": 1}))
    told(daemon, objects({"event": "job-start", "job": "ada-late", "world_size": 1}))
    jobs = ("ada-http", "ada-native", "ada-lines", "ada-late")
    poll.until("four jobs", lambda: len(daemon.api.items("/v1/jobs")) == len(jobs))
    # what nobody named is root's
    t.same(owner(daemon, "ada-late"), 0, "owner of what root began")
    t.same(as_user(ADA, daemon.api.request, "GET", "/v1/jobs/ada-late").status, 403, "ada asks for it")
    daemon.api.start("ada-late", uid=ADA)
    for job in jobs:
        poll.until(f"the owner of {job}", lambda job=job: owner(daemon, job) == ADA)
    daemon.restart()
    for job in jobs:
        t.same(owner(daemon, job), ADA, f"owner of {job} after a restart")
        t.same(as_user(EVE, daemon.api.request, "GET", f"/v1/jobs/{job}/verdict").status, 403, f"eve asks for {job}")
        answer = as_user(EVE, told, daemon, objects({"event": "hello", "protocol": "firstfault/1", **hello(job)}))
        t.check(b'"code":"auth"' in answer, f"eve's hello for {job}: {answer}")
        as_user(ADA, run_job, daemon, job)
        t.same(as_user(ADA, daemon.api.request, "GET", f"/v1/jobs/{job}/verdict").json()["fault"]["id"], "cuda-oom", f"ada's verdict of {job}")
        t.same(bad_values(daemon, job), 0, f"bad values of {job}")


def test_owner_is_not_stolen(t):
    """A user names nobody, and what is a user's goes to no other, whoever says so."""
    daemon = shared(t)
    as_user(ADA, daemon.api.start, "ada-job")
    t.same(as_user(EVE, daemon.api.request, "POST", "/v1/jobs/eve-job/start", {"uid": ADA}).status, 200, "eve's start with ada's uid")
    t.same((owner(daemon, "eve-job"), bad_values(daemon, "eve-job")), (EVE, 1), "owner of eve's job, bad values")
    as_user(EVE, told, daemon, objects({"event": "job-start", "job": "eve-lines", "uid": 0}))
    poll.until("eve's lines", lambda: len(daemon.api.items("/v1/jobs")) == 3)
    t.same((owner(daemon, "eve-lines"), bad_values(daemon, "eve-lines")), (EVE, 1), "owner of eve's lines, bad values")
    ada = Untouched(t, daemon, "ada-job")
    t.same(as_user(EVE, daemon.api.request, "POST", "/v1/jobs/ada-job/start", {"uid": EVE}).status, 403, "eve's start of ada's job")
    as_user(EVE, told, daemon, objects({"event": "job-start", "job": "ada-job", "uid": EVE}))
    ada.check("a start with eve's uid")
    t.check("is not uid" in start_by(t, daemon, "ada-job", "--uid", EVE), "root's client doesn't say that ada keeps it")
    t.same((owner(daemon, "ada-job"), bad_values(daemon, "ada-job")), (ADA, 1), "owner of ada's job, bad values")
    daemon.api.start("root-job", uid=ADA)
    daemon.api.start("root-job", uid=EVE)
    t.same((owner(daemon, "root-job"), bad_values(daemon, "root-job")), (ADA, 1), "owner of what was given twice, bad values")
    for uid in (-1, 4294967295, "0", 1.5, True, []):
        t.same(daemon.api.request("POST", "/v1/jobs/bad-job/start", {"uid": uid}).status, 422, f"status of uid {uid!r}")
    t.same(daemon.api.request("POST", f"/v1/jobs/raw-uid-{ADA}/start", {"uid": EVE}).status, 200, "root begins a reserved job")
    t.same(owner(daemon, f"raw-uid-{ADA}"), 0, "owner of a reserved job")


def test_owner_of_files(t):
    """The files of a run are of him who was named, whoever began it."""
    daemon = shared(t, [("tail", t.folder / "logs" / "{job}" / "{name}")])
    daemon.api.start("ada-job", uid=ADA)

    def put(job):
        new = t.folder / f"new-{job}"
        new.mkdir()
        for uid in (EVE, ADA):
            (new / f"of-{uid}.log").write_text(f"a line of {uid}\n")
            os.chown(new / f"of-{uid}.log", uid, -1)
        (t.folder / "logs").mkdir(exist_ok=True)
        new.rename(t.folder / "logs" / job)

    put("ada-job")
    poll.until("ada's line", lambda: b"a line" in daemon.api.get("/v1/jobs/ada-job/logs").body)
    poll.until("eve's file is refused", lambda: daemon.status()["counters"]["tail_foreign"] >= 1)
    t.check(f"a line of {EVE}".encode() not in daemon.api.get("/v1/jobs/ada-job/logs").body, "eve's line is in ada's job")
    # what was refused while nobody had said whose the run is
    daemon.api.start("eve-job")
    before = daemon.status()["counters"]["tail_foreign"]
    put("eve-job")
    poll.until("both are refused", lambda: daemon.status()["counters"]["tail_foreign"] >= before + 2)
    daemon.api.start("eve-job", uid=EVE)
    poll.until("eve's line", lambda: b"a line" in daemon.api.get("/v1/jobs/eve-job/logs").body)
    t.check(f"a line of {ADA}".encode() not in daemon.api.get("/v1/jobs/eve-job/logs").body, "ada's line is in eve's job")


def test_admin_group(t):
    """A supplementary group of the peer counts, by what the kernel says of the connection."""
    daemon = shared(t, [("admin-group", "daemon")])
    group = grp.getgrnam("daemon").gr_gid
    as_user(ADA, run_job, daemon, "ada-job")
    url = "/v1/jobs/ada-job/verdict"
    t.same(as_user(EVE, daemon.api.request, "GET", url).status, 403, "eve without the group")
    t.same(as_user(EVE, daemon.api.request, "GET", url, groups=(61005, group)).status, 200, "eve with it")
    t.same(as_user(EVE, daemon.api.request, "GET", url, groups=range(62000, 62100)).status, 403, "eve with other groups")
    t.same(as_user(EVE, daemon.api.request, "POST", "/v1/jobs/ada-job/end", {}, groups=(group,)).status, 200, "eve ends it")
    backup = as_user(EVE, daemon.api.request, "POST", "/v1/backup", {"path": str(t.folder / "backup.tar")}, groups=(group,))
    t.same(backup.status, 403, "eve has root's daemon write a file")
    xid = {"kind": "kernel", "node": "node-a", "job": "ada-job", "stream": "kernel", "message": "NVRM: Xid (PCI:0000:01:00): 79, GPU has fallen off the bus."}
    as_user(EVE, told, daemon, objects(xid), groups=(group,))
    t.check(b'"trusted":true' not in daemon.api.get("/v1/jobs/ada-job/export").body, "the group's word for a kernel is believed")


TOKENS = {"ada": "ada-0123456789abcdef", "eve": "eve-0123456789abcdef", "root": "root-0123456789abcdef"}


def token_file(t):
    path = t.folder / "tokens"
    path.write_text(f"# of a test\n{TOKENS['ada']} {ADA}\n{TOKENS['eve']}\t{EVE}\n{TOKENS['root']} 0 admin\n")
    path.chmod(0o600)
    return path


def tcp(t, **more):
    """A daemon with a TCP listener and tokens, and what a connection there says to some bytes."""
    daemon = t.start(options=[("listen", "127.0.0.1:0"), ("token-file", token_file(t)), *more.items()])
    host, port = daemon.status()["listeners"]["tcp"][0].rsplit(":", 1)

    def say(raw):
        with socket.create_connection((host, int(port)), timeout=20) as s:
            return talk(s, raw)

    return daemon, say


def say_hello(job, token=None, **more):
    return objects({"event": "hello", "protocol": "firstfault/1", **hello(job), **({"token": token} if token else {}), **more})


def test_tcp_without_token(t):
    """Nothing is taken, nothing is told, not even whether a job exists."""
    daemon, say = tcp(t)
    daemon.api.start("root-job")
    answers = set()
    for job in ("root-job", "no-job"):
        answers.add(say(say_hello(job)))
        answers.add(say(say_hello(job, lines="plain")))
        answers.add(say(say_hello(job, "root-0123456789abcdeX")))
        answers.add(say(say_hello(job, "root-0123456789abcde")))
    t.same(len(answers), 1, f"answers to hellos: {answers}")
    begun = time.monotonic()
    say(say_hello("no-job", "wrong-0123456789abcdef"))
    t.check(time.monotonic() - begun > 0.9, "a wrong token is answered at once")
    t.check(b'"code":"auth"' in answers.pop(), "answer to a hello")
    answers = {say(raw) for job in ("root-job", "no-job") for raw in (
        objects({"job": job, "message": "x"}), objects({"job": job, "message": "x", "token": "none-0123456789abcdef"}), objects({"event": "job-end", "job": job, "exit_code": 0}),
        objects({"event": "ping", "job": job, "t1": 1}, {"job": job, "message": "x"}),
        f'<13>1 2026-01-01T00:00:00Z n app - - [x@1 job="{job}"] x\n'.encode(), f"{job}\n".encode())}
    t.same(len(answers), 1, f"answers to lines: {answers}")
    t.check(b'"code":"auth"' in answers.pop(), "answer to lines")
    counters = daemon.status()["counters"]
    t.same(counters["tokens_bad"], 2 * 2 + 1 + 2, "tokens_bad")
    t.check(counters["not_admitted"] >= 8, f"not_admitted {counters['not_admitted']}")
    t.same([(x["job"], x["state"]) for x in daemon.api.items("/v1/jobs")], [("root-job", "running")], "jobs")
    t.check("0123456789abcde" not in daemon.log_path.read_text(), "a token is in the log")


def test_tcp_tokens(t):
    """Each token speaks for its owner's jobs, an administrator's for all."""
    daemon, say = tcp(t)
    xid = {"kind": "kernel", "node": "node-a", "stream": "kernel", "message": "NVRM: Xid (PCI:0000:01:00): 79, GPU has fallen off the bus."}
    t.check(b"welcome" in say(say_hello("ada-job", TOKENS["ada"])), "ada's hello")
    say(objects({"event": "job-start", "job": "ada-lines", "world_size": 1, "token": TOKENS["ada"]}, {"job": "ada-lines", "rank": 0, "message": "a line"}))
    say(say_hello("ada-plain", TOKENS["ada"], lines="plain") + b"a plain line\n")
    poll.until("ada's jobs", lambda: len(daemon.api.items("/v1/jobs")) == 3)
    for job in ("ada-job", "ada-lines", "ada-plain"):
        t.same(daemon.api.get(f"/v1/jobs/{job}").json()["owner"], ADA, f"owner of {job}")
        t.check(b'"code":"auth"' in say(say_hello(job, TOKENS["eve"])), f"eve's hello for {job}")
        before = daemon.status()["counters"]["not_admitted"]
        say(objects({"job": job, "rank": 0, "message": "forged", "token": TOKENS["eve"]}, {"job": job, "rank": 0, "message": "forged", "token": TOKENS["ada"]}))
        poll.until("eve's lines are counted", lambda: daemon.status()["counters"]["not_admitted"] == before + 2)
    t.check(b"forged" not in daemon.api.get("/v1/jobs/ada-lines/logs").body, "eve's line")
    t.check(b"a line" in daemon.api.get("/v1/jobs/ada-lines/logs").body, "ada's line")
    t.check(b"a plain line" in daemon.api.get("/v1/jobs/ada-plain/logs").body, "ada's plain line")
    for who, trusted in (("ada", False), ("root", True)):
        say(objects({"job": "ada-lines", "token": TOKENS[who], **xid, "node": f"of-{who}"}))
        poll.until(f"the kernel's line by {who}", lambda: f"of-{who}".encode() in daemon.api.get("/v1/jobs/ada-lines/export").body)
        t.same(b'"trusted":true' in daemon.api.get("/v1/jobs/ada-lines/export").body, trusted, f"{who}'s word for a kernel is believed")
    for path in (daemon.state / "store.db", daemon.state / "store.db-wal", daemon.log_path, *daemon.state.rglob("*.seg")):
        raw = path.read_bytes() if path.exists() else b""
        t.check(not any(x.encode() in raw for x in TOKENS.values()), f"a token is in {path.name}")


def test_token_file(t):
    """What others could read or write, or have made, is refused."""
    path = token_file(t)

    def refused(word, mode=0o600, text=None, uid=None):
        path.unlink(missing_ok=True)
        path.write_text(text if text is not None else f"{TOKENS['ada']} {ADA}\n")
        path.chmod(mode)
        if uid is not None:
            os.chown(path, uid, -1)
        daemon = Daemon(t.daemon, t.folder / "d", [("listen", "127.0.0.1:0"), ("token-file", path)])
        t.daemons.append(daemon)
        daemon.spawn()
        poll.until(f"the refusal: {word}", lambda: daemon.process.poll() is not None)
        t.same(daemon.process.returncode, 64, f"exit status of {word}")
        t.check(word in daemon.log_tail(1), f"{word!r}: {daemon.log_tail(1)}")
        t.check(TOKENS["ada"] not in daemon.log_tail(), "a token is in the log")

    for mode in (0o640, 0o604, 0o620, 0o602, 0o666):
        refused("0600", mode)
    if can_be():
        refused("belongs to another user", uid=ADA)
    refused("holds no token", text="# none\n")
    refused("at least 16", text=f"short {ADA}\n")
    refused("no user", text=f"{TOKENS['ada']} nobody-of-this-name\n")
    refused("not TOKEN OWNER", text=f"{TOKENS['ada']} {ADA} root\n")


def test_open_tcp(t):
    """With allow-open-tcp nobody may begin what is everybody's, and touch nothing that has an owner."""
    daemon = t.start(options=[("listen", "127.0.0.1:0"), ("allow-open-tcp", "yes")])
    host, port = daemon.status()["listeners"]["tcp"][0].rsplit(":", 1)
    daemon.api.start("root-job")

    def say(raw):
        with socket.create_connection((host, int(port)), timeout=20) as s:
            return talk(s, raw)

    t.check(b'"code":"auth"' in say(say_hello("root-job")), "nobody's hello for root's job")
    say(objects({"job": "open-job", "rank": 0, "message": "x"}))
    say(objects({"job": "root-job", "rank": 0, "message": "forged"}))
    poll.until("the open job", lambda: len(daemon.api.items("/v1/jobs")) == 2)
    daemon.api.end("open-job", exit_code=0)
    daemon.restart()
    t.same(daemon.api.get("/v1/jobs/open-job").json()["owner"], None, "owner of what nobody began")
    t.check(b"forged" not in daemon.api.get("/v1/jobs/root-job/logs").body, "nobody's line in root's job")


class Web:
    """HTTP over TCP. `token`: of whom, or the token itself."""

    def __init__(self, t):
        options = [("listen", "127.0.0.1:0"), ("api-listen", "127.0.0.1:0"), ("api-listen", "[::1]:0"), ("host", "head.example"), ("token-file", token_file(t))]
        self.daemon = t.start(options=options)
        self.port = int(self.daemon.status()["listeners"]["http"][0].rsplit(":", 1)[1])

    def ask(self, url, token=None, method="GET", body=None, host=None, **headers):
        if token:
            headers["Authorization"] = f"Bearer {TOKENS.get(token, token)}"
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=20)
        try:
            connection.putrequest(method, url, skip_host=host is not None)
            if host:
                connection.putheader("Host", host)
            body = json.dumps(body).encode() if body is not None and not isinstance(body, bytes) else body
            if body is not None:
                connection.putheader("Content-Length", str(len(body)))
                headers.setdefault("Content_Type", "application/json")
            for key, value in headers.items():
                connection.putheader(key.replace("_", "-"), value)
            connection.endheaders(body)
            reply = connection.getresponse()
            return reply.status, reply.read()
        finally:
            connection.close()


def test_http_without_token(t):
    """Whether there is such a job, or such a route, nobody learns without a token; a wrong one is answered late."""
    web = Web(t)
    web.daemon.api.start("root-job")
    for method, body in (("GET", None), ("POST", {"exit_code": 0})):
        answers = {web.ask(f"/v1/jobs/{job}{route}", method=method, body=body) for job in ("root-job", "no-job") for route in (*ROUTES, "/end", "/start", "/end?create=1")}
        t.same({status for status, _ in answers}, {401}, f"{method} without a token: {answers}")
        t.same(len(answers), 1, f"answers to {method}")
    for url in ("/v1/jobs", "/v1/status", "/v1/faults", "/v1/faults/cuda-oom", "/v1/watch", "/metrics", "/v1/logs", "/", "/v1/nothing", "/v1/jobs?state=running"):
        t.same(web.ask(url)[0], 401, url)
    bad = [*(f"Bearer {x}" for x in ("root-0123456789abcdeX", "root-0123456789abcde", "x", TOKENS["root"] + "f")), "Basic " + TOKENS["root"], TOKENS["root"],
           "Bearer", "Bearer  "]
    begun = time.monotonic()
    with concurrent.futures.ThreadPoolExecutor(len(bad)) as pool:
        for header, (status, _) in zip(bad, pool.map(lambda x: web.ask("/v1/jobs", Authorization=x), bad), strict=True):
            t.same(status, 401, header)
            t.check(time.monotonic() - begun > 0.9, "a wrong token is answered at once")
    t.same(web.daemon.status()["counters"]["tokens_bad"], 8, "tokens_bad")
    t.same(web.ask("/v1/jobs/root-job/end", method="POST", body=b"{" * (3 << 20))[0], 401, "a large body without a token")
    t.same([web.ask(url)[0] for url in ("/healthz", "/readyz")], [200, 200], "probes")
    t.same(web.daemon.api.get("/v1/jobs/root-job").json()["state"], "running", "root's job")
    t.check("0123456789abcde" not in web.daemon.log_path.read_text(), "a token is in the log")


def test_http_tokens(t):
    """Over TCP ada's token has ada's jobs, an administrator's all; the command takes it from its environment or a file."""
    web = Web(t)
    t.same(web.ask("/v1/jobs/ada-job/start", "ada", "POST", {"world_size": 1})[0], 200, "ada begins a job")
    t.same(web.daemon.api.get("/v1/jobs/ada-job").json()["owner"], ADA, "its owner")
    for route in ROUTES[:-1]:
        wanted = {"ada": 200, "root": 200, "eve": 403}
        if "around" in route:
            wanted = {"eve": 403}
        for token, status in wanted.items():
            t.same(web.ask("/v1/jobs/ada-job" + route, token)[0], status, f"{token} asks for {route}")
    for token, summary in (("eve", None), ("ada", "running")):
        items = json.loads(web.ask("/v1/jobs", token)[1])["items"]
        t.same([(x["job"], x["state"]) for x in items], [("ada-job", summary)], f"{token}'s list")
    for url in ("end", "start", "end?create=1"):
        t.same(web.ask(f"/v1/jobs/ada-job/{url}", "eve", "POST", {})[0], 403, f"eve posts {url}")
    env = {**web.daemon.env, "FIRSTFAULT_API": f"127.0.0.1:{web.port}"}
    for extra, status in (({}, 65), ({"FIRSTFAULT_TOKEN": TOKENS["eve"]}, 65), ({"FIRSTFAULT_TOKEN": TOKENS["ada"]}, 0)):
        done = t.run("why", "ada-job", "--json", env={**env, **extra}, status=(status,))
        t.check(not any(x.encode() in done.stdout + done.stderr for x in TOKENS.values()), "a token is printed")
    path = t.folder / "ada.token"
    path.write_text(TOKENS["ada"] + "\n")
    path.chmod(0o600)
    t.run("why", "--token-file", path, "ada-job", env=env)
    t.run("why", "ada-job", env={**env, "FIRSTFAULT_TOKEN_FILE": str(path)})
    log = t.folder / "rank-0.log"
    log.write_bytes(b"\n".join(FAULT) + b"\n")
    to = web.daemon.status()["listeners"]["tcp"][0]
    t.run("ship", "--job", "ada-job", "--to", to, log, env=env, status=(64,))
    t.run("ship", "--job", "ada-job", "--to", to, "--token-file", path, log, env=env)
    path.chmod(0o640)
    done = t.run("why", "--token-file", path, "ada-job", env=env, status=(64,))
    t.check(b"read by others" in done.stderr and done.stderr.count(b"firstfault: ") == 1, done.stderr)
    done = t.run("why", "ada-job", env={**env, "FIRSTFAULT_TOKEN": "none-0123456789abcdef"}, status=(65,))
    t.check(b"that token is none of" in done.stderr, done.stderr)
    t.same(web.ask("/v1/jobs/ada-job/end", "ada", "POST", {"exit_code": 0})[0], 200, "ada ends it")


class Line:
    """A connection that stays, line by line."""

    def __init__(self, address):
        self.socket = socket.create_connection(address, timeout=20)
        self.reader = self.socket.makefile("rb")

    def say(self, *rows):
        self.socket.sendall(objects(*rows))
        return self

    def until(self, word):
        """The lines up to the one with this word; without one what comes until the end."""
        out = []
        end = time.monotonic() + 20
        while line := self.read():
            if time.monotonic() > end:
                raise AssertionError(f"no {word or 'end'} in 20 s")
            out.append(line)
            if word and word in line:
                break
        return out

    def read(self):
        try:
            return self.reader.readline()
        except ConnectionResetError:
            return b""

    def ask(self, url, token):
        self.socket.sendall(f"GET {url} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {TOKENS[token]}\r\n\r\n".encode())
        return self


def test_tokens_are_taken_away(t):
    """SIGHUP with another token file ends what the old one allowed, and nothing else."""
    daemon = t.start(options=[("listen", "127.0.0.1:0"), ("api-listen", "127.0.0.1:0"), ("token-file", token_file(t))])
    ingest, api = ((host, int(port)) for host, port in (daemon.status()["listeners"][x][0].rsplit(":", 1) for x in ("tcp", "http")))
    lines_of, hellos, watches, kept, follows = {}, {}, {}, {}, {}
    for who in TOKENS:
        lines_of[who] = Line(ingest).say({"job": f"{who}-lines", "message": "one", "source": who, "offset": 0, "token": TOKENS[who]})
        hellos[who] = Line(ingest).say({"event": "hello", "protocol": "firstfault/1", **hello(f"{who}-job", who), "token": TOKENS[who]})
        t.check(hellos[who].until(b"welcome"), f"{who}'s welcome")
        t.check(lines_of[who].until(b'"ack"'), f"{who}'s ack")
        watches[who], kept[who], follows[who] = Line(api), Line(api), Line(api)
        t.check(watches[who].ask("/v1/watch", who).until(b"id: "), f"{who} watches")
        t.check(kept[who].ask("/v1/jobs", who).until(b'"next"'), f"{who}'s list")
        cursor = urllib.parse.quote(daemon.api.get(f"/v1/jobs/{who}-lines/logs?follow=now").json()["next"])
        follows[who].ask(f"/v1/jobs/{who}-lines/logs?follow={cursor}&wait=25", who)
    poll.until(lambda: f"three who watch, three who follow, and this one: {daemon.status()['api']}", lambda: daemon.status()["api"]["requests_open"] == 7)
    before = daemon.status()["counters"]
    # ada's is gone, root's is no administrator's any more, eve's stays
    (t.folder / "tokens").write_text(f"{TOKENS['eve']} {EVE}\n{TOKENS['root']} 0\n")
    daemon.process.send_signal(signal.SIGHUP)
    poll.until("the reload", lambda: daemon.status()["counters"]["reloads"] > before["reloads"])
    for who in ("ada", "root"):
        t.check(b'"code":"auth"' in b"".join(hellos[who].until(None)), f"{who}'s sender is told nothing")
        t.check(b'"code":"auth"' in b"".join(lines_of[who].until(None)), f"{who}'s lines are told nothing")
        for what in (watches, kept):
            t.check(b"job" not in b"".join(what[who].until(None)), f"{who} is told of a job")
        follows[who].until(None)
    counters = daemon.status()["counters"]
    t.same(counters["rights_lost"], 2 * 5, "rights_lost")
    hellos["eve"].say({"event": "ping", "t1": 1})
    t.check(hellos["eve"].until(b"pong"), "eve's pong")
    lines_of["eve"].say({"job": "eve-lines", "message": "two", "source": "eve", "offset": 4})
    t.check(lines_of["eve"].until(b'"offset":8'), "eve's ack")
    t.check(watches["eve"].until(b"eve-lines"), "eve's watch")
    t.check(kept["eve"].ask("/v1/jobs", "eve").until(b'"next"'), "eve's list")
    t.check(b'"code":"auth"' in b"".join(Line(ingest).say({"event": "hello", "protocol": "firstfault/1", **hello("ada-job", "ada"), "token": TOKENS["ada"]}).until(None)),
            "ada comes back")


def test_http_of_browsers(t):
    """A web page that a user of the machine looks at can't ask under a name of its own, nor post."""
    web = Web(t)
    port = web.port
    for host in (f"127.0.0.1:{port}", "127.0.0.1", f"localhost:{port}", "LocalHost", "head.example", f"head.example:{port}", socket.gethostname()):
        t.same(web.ask("/v1/jobs", "root", host=host)[0], 200, f"Host: {host}")
    for host in ("evil.example", f"evil.example:{port}", "127.0.0.1.evil.example", "127.0.0.2", "localhost.evil.example", "[::2]:1", "[::1", "[]", "head.example.", "x" * 300):
        t.same(web.ask("/v1/jobs", "root", host=host)[0], 421, f"Host: {host}")
        t.same(web.ask("/healthz", host=host)[0], 421, f"Host: {host} of /healthz")
    t.check(web.ask("/v1/jobs", "root", host="")[0] in (400, 421), "without Host")
    t.same(web.ask("/v1/backup", "root", "POST", {"path": str(t.folder / "backup.tar")})[0], 403, "a backup over TCP")
    t.same(web.ask("/v1/jobs/x/start", "root", "POST", {}, Origin="http://evil.example")[0], 403, "a POST with Origin")
    t.same(web.daemon.api.request("POST", "/v1/jobs/x/start", {}, {"Origin": "null"}).status, 403, "the same on the socket")
    t.same(web.ask("/v1/jobs/x/start", "root", "POST", b"a=b", Content_Type="application/x-www-form-urlencoded")[0], 415, "a form")
    t.same(web.ask("/v1/jobs/x/start", "root", "POST", b"{}", Content_Type="text/plain")[0], 415, "plain text")
    t.same(web.ask("/v1/jobs/x/start", "root", "POST", b'{"name":"' + b"x" * (1 << 20) + b'"}')[0], 413, "more than 1 MiB")
    t.same(web.daemon.api.items("/v1/jobs"), [], "jobs")


def test_http_crowd(t):
    """Who fills all places over TCP takes none from the users of the machine."""
    web = Web(t)
    crowd = [socket.create_connection(("127.0.0.1", web.port), timeout=20) for _ in range(130)]
    for s in crowd:
        s.sendall(b"GET /v1/jobs HTTP/1.1\r\n")
    for _ in range(5):
        t.same(web.daemon.api.get("/v1/jobs").status, 200, "the socket of the machine")
    for s in crowd:
        s.close()
    poll.until("a place over TCP", lambda: web.ask("/readyz")[0] == 200)


def test_user_paints_no_terminal(t):
    """A job's name is shown to others: what a terminal would obey is escaped, in JSON too."""
    daemon = shared(t)
    name = "x\u009b31m\u202e\u2066y\u00e4"
    as_user(EVE, told, daemon, objects({"job": name, "rank": 0, "message": "hi \u009b2J"}))
    t.same([x["job"] for x in daemon.api.items("/v1/jobs")], [name], "the name as it is read")
    for command in (["jobs"], ["jobs", "--json"], ["why", name, "--json"], ["logs", name]):
        out = t.run(*command, env=daemon.env).stdout.decode()
        t.check(not set(out) & {"\u009b", "\u202e", "\u2066"}, f"{command} shows {out!r}")


def test_user_stops_no_joining(t):
    """Many runs of one user on a node that says much: the loop goes on, and another job has its line."""
    daemon = shared(t)
    at = "2026-01-01T00:00:%02d.%03dZ"
    as_user(EVE, told, daemon, objects(*({"job": f"eve-{i}", "rank": 0, "node": "gpu-017", "time": at % (i % 60, 0), "message": "step 1"} for i in range(200))))
    as_user(ADA, told, daemon, objects(*({"job": "ada-job", "rank": 0, "node": "gpu-017", "time": at % (i, 0), "message": f"step {i}"} for i in range(60))))
    told(daemon, objects(*({"kind": "kernel", "node": "gpu-017", "stream": f"kern-{i % 10}", "time": at % (i // 1000, i % 1000), "message":
                           f"NVRM: Xid (PCI:0000:{i % 250:02x}:00): 79, pid={i}, name=python, GPU has fallen off the bus."} for i in range(600))))
    items = as_user(ADA, daemon.api.items, "/v1/jobs/ada-job/events")
    t.check(any(x["fault"].startswith("xid") or "NVRM" in json.dumps(x) for x in items), f"ada's events: {items[:3]}")
    longest = daemon.status()["api"]["loop_longest_us"]
    t.check(longest < 5_000_000, f"the loop served nobody for {longest / 1e6} s")


def crowd_of(path, word, most, asked, enough):
    """As many connections as the daemon lets one user have, kept until somebody says that it is enough."""
    held = []
    while enough.poll(0.01) is False:
        while len(held) < most:
            s = socket.socket(socket.AF_UNIX)
            s.setblocking(False)
            try:
                s.connect(str(path))
                s.send(word)
            except OSError:
                s.close()
                break
            held.append(s)
        if len(held) == most and asked:
            asked.send(True)
            asked = None


def crowded(path, word, most):
    """A process of eve's that holds a crowd; to be told when it is enough."""
    full, asked = multiprocessing.Pipe(duplex=False)
    enough, stop = multiprocessing.Pipe(duplex=False)
    eve = multiprocessing.get_context("fork").Process(target=as_user, args=(EVE, crowd_of, path, word, most, asked, enough))
    eve.start()
    full.recv()
    return lambda: (stop.send(True), eve.join())


def test_user_takes_all_places(t):
    """One user who fills what the sockets take leaves a share to others."""
    daemon = shared(t)
    go = crowded(daemon.api.path, b"GET /v1/jobs HTTP/1.1\r\n", 320)
    for uid in (ADA, 0):
        t.same(as_user(uid, daemon.api.get, "/v1/jobs").status, 200, f"uid {uid} asks")
    go()
    resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)
    go = crowded(daemon.ingest, b"x", 4600)
    for uid in (ADA, 0):
        answer = as_user(uid, told, daemon, objects({"event": "hello", "protocol": "firstfault/1", **hello(f"job-of-{uid}")}))
        t.check(b"welcome" in answer, f"uid {uid} says hello: {answer}")
    go()


def test_api_listen_needs_tokens(t):
    daemon = Daemon(t.daemon, t.folder / "d", [("api-listen", "127.0.0.1:0")])
    t.daemons.append(daemon)
    daemon.spawn()
    poll.until("the refusal", lambda: daemon.process.poll() is not None)
    t.same(daemon.process.returncode, 64, "exit status")
    t.check("token-file" in daemon.log_tail(), daemon.log_tail())


def test_socket_files(t):
    """Everybody can connect, and nobody but the daemon's user can put another socket in its place."""
    daemon = shared(t)
    for path in (daemon.ingest, daemon.api.path):
        t.same(stat.S_IMODE(path.stat().st_mode), 0o666, f"mode of {path.name}")
    t.same(stat.S_IMODE(daemon.state.stat().st_mode), 0o700, "mode of the state folder")

    def replace(path):
        try:
            os.unlink(path)
            return "gone"
        except PermissionError:
            return "refused"

    t.same(as_user(EVE, replace, daemon.api.path), "refused", "eve removes the api socket")
    open_folder = t.folder / "open"
    open_folder.mkdir()
    open_folder.chmod(0o777)
    daemon.stop()
    daemon.configure([("api-socket", open_folder / "api.sock")])
    daemon.spawn()
    poll.until("the end of a daemon whose socket's folder is everybody's", lambda: daemon.process.poll() is not None)
    t.same(daemon.process.returncode, 74, "exit status")
    t.check("can be written by others" in daemon.log_tail(), daemon.log_tail())


if __name__ == "__main__":
    trial.main(__doc__, test_user_fills_no_table, test_user_takes_all_places, test_user_paints_no_terminal, test_user_stops_no_joining, test_second_user_reads, test_second_user_ends, test_second_user_forges, test_owner_speaks_as_the_kernel, test_second_user_takes_over, test_runs_of_several_owners,
               test_reserved_jobs, test_owner_stays, test_owner_is_named, test_owner_is_not_stolen, test_owner_of_files, test_admin_group, test_tcp_without_token, test_tcp_tokens, test_token_file, test_open_tcp,
               test_http_without_token, test_http_tokens, test_tokens_are_taken_away, test_http_of_browsers, test_http_crowd, test_api_listen_needs_tokens, test_socket_files)
