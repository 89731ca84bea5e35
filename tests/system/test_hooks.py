#!/usr/bin/env python3
"""Hooks: a program and an HTTP server are told of verdicts and of faults, once each, whatever they do about it."""
import contextlib
import http.server
import json
import os
import pathlib
import signal
import socket
import sys
import threading

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from support import poll, schema, trial  # noqa: E402

OOM = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 79.15 GiB"


class Receiver:
    """An HTTP server: answers with the next of `answers` (the last one for ever); None: no answer until it is closed."""

    def __init__(self, *answers):
        self.answers, self.got, self.headers = list(answers), [], []
        self.released = threading.Event()
        receiver = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                receiver.headers.append(dict(self.headers))
                body = self.rfile.read(int(self.headers["Content-Length"]))
                answer = receiver.answers.pop(0) if len(receiver.answers) > 1 else receiver.answers[0]
                receiver.got.append((answer, json.loads(body)))
                if answer is None:
                    receiver.released.wait(60)
                    return
                self.send_response(answer)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        threading.Thread(target=self.server.serve_forever, args=(0.02,), daemon=True).start()

    @property
    def url(self):
        return f"http://127.0.0.1:{self.server.server_address[1]}/hook"

    def told(self, status=200):
        return [body for answer, body in self.got if answer == status]

    def close(self):
        self.released.set()
        self.server.shutdown()
        self.server.server_close()


@contextlib.contextmanager
def receiver(*answers):
    r = Receiver(*answers)
    try:
        yield r
    finally:
        r.close()


def script(t, text):
    path = t.folder / "hook.sh"
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return path


class Rank:
    """A connection that speaks JSON Lines for one rank, and stays."""

    def __init__(self, daemon, job, rank):
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.connect(str(daemon.ingest))
        self.front = {"job": job, "kind": "rank", "rank": rank, "stream": f"rank-{rank}.log"}

    def say(self, *lines):
        for line in lines:
            self.socket.sendall(json.dumps({**self.front, "message": line}).encode() + b"\n")

    def end(self):
        self.socket.shutdown(socket.SHUT_WR)
        while self.socket.recv(4096):
            pass
        self.socket.close()


def fail(daemon, job, text=OOM):
    """A job of two ranks, one of which fails; it has ended afterwards."""
    daemon.api.start(job, world_size=2)
    ranks = [Rank(daemon, job, r) for r in range(2)]
    ranks[1].say("step 1 loss 2.0", text)
    ranks[0].say("step 1 loss 2.0")
    for rank in ranks:
        rank.end()
    return daemon.api.end(job, wait="10s", exit_code=1, state="FAILED")["verdict"]


def wait(what, count, n, seconds=20):
    poll.until(lambda: f"{n} {what}: {count()}", lambda: count() >= n, seconds)


def stored(daemon, n):
    """What was told so often is in the store: a kill -9 does not repeat it."""
    def rows():
        with contextlib.closing(daemon.store()) as store:
            return store.execute("SELECT count(*) FROM hook WHERE run > 0").fetchone()[0]
    poll.until(lambda: f"{n} rows: {rows()}", lambda: rows() == n)


def counters(daemon):
    return {k: v for k, v in daemon.status()["counters"].items() if k.startswith("hooks_")}


def test_verdict_by_post(t):
    """A receiver that fails first; once a run; not again after kill -9; another job in between."""
    with receiver(503, 200) as r:
        daemon = t.start(options=[("hook-url", r.url)])
        verdict = fail(daemon, "one")
        wait("messages", lambda: len(r.told()), 1)
        message = r.told()[0]
        t.same(schema.errors("hook", message), [], "the schema")
        t.same((message["event"], message["job"], message["verdict"]), ("verdict", "one", verdict), "the message")
        t.same({h["Idempotency-Key"] for h in r.headers}, {f'"{message["id"]}"'}, "one id for all tries")
        t.same([answer for answer, _ in r.got], [503, 200], "tries")
        poll.until("the count", lambda: counters(daemon) == {"hooks_delivered": 1, "hooks_failed": 1, "hooks_given_up": 0, "hooks_full": 0})
        t.check("answered with 503" in daemon.status()["hooks"]["error"], daemon.status()["hooks"])
        daemon.api.post("/v1/jobs/one/end", {"exit_code": 1, "state": "FAILED"})  # a second word of the end changes nothing
        fail(daemon, "two")
        wait("messages", lambda: len(r.told()), 2)
        stored(daemon, 2)
        daemon.stop()
        daemon.start()
        daemon.restart()
        fail(daemon, "three")
        wait("messages", lambda: len(r.told()), 3)
        t.same([m["job"] for m in r.told()], ["one", "two", "three"], "each once, over a stop and a kill -9")


def test_changed_in_substance(t):
    """What changes the verdict in substance is told again, what doesn't is not."""
    with receiver(200) as r:
        daemon = t.start(options=[("hook-url", r.url)])
        daemon.api.start("j", world_size=1)
        rank = Rank(daemon, "j", 0)
        rank.say("step 1 loss 2.0")
        rank.end()
        daemon.api.end("j", wait="10s", exit_code=1, state="FAILED")
        wait("messages", lambda: len(r.told()), 1)
        for line, n in ((OOM, 2), ("one more line that says nothing", 2)):
            rank = Rank(daemon, "j", 0)
            rank.say(line)
            rank.end()
            wait("messages", lambda n=n: len(r.told()), n)
        fail(daemon, "other")  # comes after what would have come for the last line
        wait("messages", lambda: len(r.told()), 3)
        t.same([(m["job"], m["verdict"]["fault"] and m["verdict"]["fault"]["id"]) for m in r.told()],
               [("j", r.told()[0]["verdict"]["fault"] and r.told()[0]["verdict"]["fault"]["id"]), ("j", "cuda-oom"), ("other", "cuda-oom")], "messages")


def test_command(t):
    """Standard input, environment, a group of its own, one that fails first, and one that never reads."""
    seen = t.folder / "seen"
    seen.mkdir()
    program = script(t, f'''
n=$(ls {seen} | wc -l)
cat >{seen}/$n.json
env >{seen}/$n.env.tmp && mv {seen}/$n.env.tmp {seen}/$n.env
ps -o pgid= -p $$ >{seen}/group
[ $n -ge 3 ]''')
    daemon = t.start(options=[("hook-command", program)], prefix=("env", "NOTIFY_SOCKET=/nonexistent/x", "PLAIN=yes"))
    fail(daemon, "one")
    poll.until("it ends well", lambda: counters(daemon)["hooks_delivered"] == 1)
    t.same(counters(daemon)["hooks_failed"], 1, "the first try fails")
    message = json.loads((seen / "0.json").read_text())
    t.same(schema.errors("hook", message), [], "the schema")
    said = dict(line.split("=", 1) for line in (seen / "0.env").read_text().splitlines() if "=" in line)
    t.same({k: said.get(f"FIRSTFAULT_{k}") for k in ("EVENT", "JOB", "RUN", "STATE", "VERDICT", "FAULT", "RANKS", "RETRY")},
           {"EVENT": "verdict", "JOB": "one", "RUN": "0", "STATE": "ended", "VERDICT": "rank", "FAULT": "cuda-oom", "RANKS": "1",
            "RETRY": "1" if message["verdict"]["action"]["retry"] else "0"}, "the environment")
    t.same(("NOTIFY_SOCKET" in said, said.get("PLAIN")), (False, "yes"), "what is the daemon's own stays there")
    t.check(int((seen / "group").read_text()) != os.getpgid(daemon.process.pid), "a process group of its own")
    script(t, "exec 0<&-; exit 0")  # never reads
    fail(daemon, "two")
    poll.until("one that doesn't read is content", lambda: counters(daemon)["hooks_delivered"] == 2)
    daemon.stop()


def test_command_that_hangs(t):
    """It is ended with what it started; the daemon answers meanwhile, and ends in time."""
    pids = t.folder / "pids"
    program = script(t, f"tail -f /dev/null & echo $! >>{pids}; echo $$ >>{pids}; wait")
    daemon = t.start(options=[("hook-command", program), ("hook-time-limit", "500ms")])
    fail(daemon, "one")
    poll.until("a try that was ended", lambda: counters(daemon)["hooks_failed"] >= 1)
    t.check("longer than its limit" in daemon.status()["hooks"]["error"], daemon.status()["hooks"])
    poll.until("another one", lambda: len(pids.read_text().split()) >= 4)
    daemon.stop()
    alive = lambda: [p for p in pids.read_text().split() if pathlib.Path(f"/proc/{p}").exists() and
                     "Z" not in pathlib.Path(f"/proc/{p}/stat").read_text().rsplit(")", 1)[1].split()[0]]
    poll.until(lambda: f"processes that are left: {alive()}", lambda: not alive())


def test_post_that_hangs(t):
    """Four at once and no more; the rest waits; nothing holds the daemon; it is delivered in the end, after kill -9 too."""
    with receiver(None) as r:
        daemon = t.start(options=[("hook-url", r.url), ("hook-time-limit", "60s")])
        for n in range(6):
            fail(daemon, f"job-{n}")
        wait("posts under way", lambda: len(r.got), 4)
        poll.until("the others wait", lambda: daemon.status()["hooks"]["waiting"] == 6)
        t.same((len(r.got), daemon.status()["hooks"]["under_way"]), (4, 4), "not more than four at once")
        with receiver(200) as good:
            daemon.kill()
            daemon.configure([("hook-url", good.url)])
            daemon.start()
            wait("messages", lambda: len(good.told()), 6)
            stored(daemon, 6)
            t.same(sorted(m["job"] for m in good.told()), [f"job-{n}" for n in range(6)], "each once")
            daemon.stop()


def test_fault_and_withdrawal(t):
    """A fault in a running job: one message; withdrawn when it goes on; neither twice, over kill -9; then the verdict."""
    with receiver(200) as r:
        daemon = t.start(options=[("hook-url", r.url), ("hook-fault-after", "1s")])
        events = lambda: [(m["event"], m["job"]) for m in r.told()]
        daemon.api.start("j", world_size=2)
        ranks = [Rank(daemon, "j", n) for n in range(2)]
        for rank in ranks:
            rank.say("step 1 loss 2.0", "step 2 loss 2.0")
        ranks[1].say(OOM, "the process goes on")
        wait("messages", lambda: len(events()), 1)
        t.same(events(), [("fault", "j")], "the fault")
        t.same(schema.errors("hook", r.told()[0]), [], "the schema")
        t.same((r.told()[0]["verdict"]["state"], r.told()[0]["verdict"]["fault"]["id"]), ("ending", "cuda-oom"), "what it says")
        stored(daemon, 1)
        daemon.restart()
        ranks = [Rank(daemon, "j", n) for n in range(2)]
        fail(daemon, "other")  # looked at after j
        wait("messages", lambda: len(events()), 2)
        t.same(events(), [("fault", "j"), ("verdict", "other")], "not again after kill -9")
        ranks[0].say("step 3 loss 2.0")
        wait("messages", lambda: len(events()), 3)
        t.same(events()[2], ("withdrawn", "j"), "progress")
        ranks[1].say(OOM, "once more")
        for rank in ranks:
            rank.end()
        daemon.api.end("j", wait="10s", exit_code=1, state="FAILED")
        wait("messages", lambda: len(events()), 4)
        t.same(events()[3], ("verdict", "j"), "its end")


def test_progress_in_time(t):
    """A fault that is followed by progress within the span is told to nobody."""
    with receiver(200) as r:
        daemon = t.start(options=[("hook-url", r.url), ("hook-fault-after", "3s")])
        daemon.api.start("j", world_size=1)
        rank = Rank(daemon, "j", 0)
        rank.say("step 1 loss 2.0", OOM, "step 2 loss 2.0", "step 3 loss 2.0")
        rank.end()
        daemon.api.end("j", wait="10s", exit_code=0, state="COMPLETED")
        wait("messages", lambda: len(r.told()), 1)
        t.same([(m["event"], m["verdict"]["verdict"]) for m in r.told()], [("verdict", "clean")], "the verdict alone")


def has_target(daemon):
    with contextlib.closing(daemon.store()) as store:
        return store.execute("SELECT count(*) FROM hook WHERE run = 0 AND value > 0").fetchone()[0]


def test_only_from_now_on(t):
    """A store of runs that ended before there was a hook is told to nobody; SIGHUP brings one."""
    with receiver(200) as r:
        daemon = t.start()
        fail(daemon, "before")
        daemon.configure([("hook-url", r.url)])
        daemon.process.send_signal(signal.SIGHUP)
        poll.until("the reload", lambda: daemon.status()["counters"]["reloads"] == 1)
        poll.until("the target", lambda: has_target(daemon))
        fail(daemon, "after")
        wait("messages", lambda: len(r.told()), 1)
        stored(daemon, 1)
        daemon.restart()
        fail(daemon, "last")
        wait("messages", lambda: len(r.told()), 2)
        t.same([m["job"] for m in r.told()], ["after", "last"], "what ended since")


if __name__ == "__main__":
    trial.main(__doc__, test_verdict_by_post, test_changed_in_substance, test_command, test_command_that_hangs, test_post_that_hangs,
               test_fault_and_withdrawal, test_progress_in_time, test_only_from_now_on)
