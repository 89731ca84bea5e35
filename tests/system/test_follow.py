#!/usr/bin/env python3
"""`firstfault logs -f`: each line once, in its order, of network streams and of tailed files, through restarts of the daemon."""
import json
import pathlib
import re
import signal
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from support import poll, trial  # noqa: E402
from support.native import Sender, parts_of  # noqa: E402

PEM = ["-----BEGIN RSA PRIVATE KEY-----", *("MIIEowIBAAKCAQEAx" + "abcdefghijk" * 4 for _ in range(20)), "-----END RSA PRIVATE KEY-----"]


def texts(name, n):
    return [f"{name} line {i} {'x' * (i % 50)}" for i in range(n)]


def start(t, daemon, job, *words):
    return t.spawn(t.client, "logs", job, "-f", *words, env=daemon.env, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def shown(raw):
    """Lines by stream."""
    out, stream = {}, None
    for line in raw.decode().splitlines():
        if head := re.fullmatch(r"== (\S+) ==", line):
            stream = head[1]
        elif line and not line.startswith("== "):
            out.setdefault(stream, []).append(line)
    return out


def native(daemon, name, lines, rank):
    return Sender(daemon.ingest, {"job": "j", "source": "s", "streams": [name], "rank": rank, "node": "n", "fds": ["stderr"]},
                  [parts_of([(0, x.encode()) for x in lines])])


def test_each_line_once(t):
    """Two network streams and a file that grows, with two kills of the daemon in between; a stream that appears later."""
    logs = t.folder / "logs"
    (logs / "j").mkdir(parents=True)
    daemon = t.start(options=[("tail", f"{logs}/{{job}}/{{name}}")])
    a, b, c = texts("a", 300), texts("b", 300), texts("file", 300)
    daemon.api.start("j", world_size=2)
    senders = [native(daemon, "a.log", a, 0), native(daemon, "b.log", b, 1)]
    senders[0].connect()
    senders[0].send_run(0, 100)
    process = start(t, daemon, "j", "--lines", "10000")
    with open(logs / "j" / "c.log", "w") as file:
        for i in range(3):
            if i:
                daemon.restart()
            for k, sender in enumerate(senders[:i + 1]):
                sender.connect()
                sender.send_run(0, 100 * (i + 1))
            file.write("".join(x + "\n" for x in c[100 * i:100 * i + 99]) + c[100 * i + 99])
            file.flush()
            poll.until("a line that is not complete was read", lambda: daemon.status()["streams"] == 2 + (i > 0), 10)
            file.write("\n")
            file.flush()
    for sender in senders:
        sender.say_end()
        sender.wait_end()
        sender.close()
    daemon.api.end("j", exit_code=0)
    out, error = process.communicate(timeout=60)
    t.same((process.returncode, error), (0, b""), "exit status")
    got = shown(out)
    for name, wanted in (("n/a.log", a), ("n/b.log", b), ("c.log", c)):
        key = next((k for k in got if k.endswith(name.split("/")[-1])), None)
        t.same(got.get(key), wanted, f"{name} of {sorted(got)}")
    t.check(out.decode().rstrip("\n").splitlines()[-1].startswith("== j: ended, "), f"how it ended: {out[-300:]}")
    daemon.stop()


def test_begin_and_rank(t):
    """The last lines first; only the rank that was asked for; around an event and then on; Ctrl-C; --json."""
    daemon = t.start()
    a, b = texts("a", 50), texts("b", 50)
    daemon.api.start("j", world_size=2)
    senders = [native(daemon, "a.log", a, 0), native(daemon, "b.log", b, 1)]
    for sender in senders:
        sender.connect()
        sender.send_run(0, 40)
    for sender in senders:
        sender.send_run(0, 40)
    poll.until("stored", lambda: all(daemon.api.items(f"/v1/jobs/j/logs?rank={r}&lines=5") for r in (0, 1)), 10)
    poll.until("all of it", lambda: [x["text"] for x in daemon.api.items("/v1/jobs/j/logs?rank=1&lines=1")] == [b[39]], 10)
    one = start(t, daemon, "j", "--rank", "1", "--lines", "3", "--json")
    t.same([json.loads(one.stdout.readline())["text"] for _ in range(3)], b[37:40], "the last lines of rank 1")
    for sender in senders:
        sender.send_run(0, 50)
    t.same([json.loads(one.stdout.readline())["text"] for _ in range(10)], b[40:], "and what comes")
    one.send_signal(signal.SIGINT)
    t.same((one.wait(10), one.stderr.read()), (-signal.SIGINT, b""), "Ctrl-C")
    poll.until("its request is gone", lambda: daemon.status()["api"]["requests_open"] == 1, 30)
    for bad in ("x", "1", "1.2", "1.2.3_", "1.2.3_4", "1.2.3_4.5_4.6", "1.2.3_5.0_4.0", "1.2.3x"):
        t.same(daemon.api.request("GET", f"/v1/jobs/j/logs?follow={bad}").status, 400, f"cursor {bad}")
    t.same(daemon.api.request("GET", "/v1/jobs/j/logs?follow=now&wait=99").status, 400, "wait")
    t.run("logs", "nobody", "-f", env=daemon.env, status=(65,))
    for sender in senders:
        sender.close()
    daemon.stop()


def test_before_the_first_line(t):
    """Who follows a job before it says anything is not told that something is gone."""
    daemon = t.start()
    daemon.api.start("j", world_size=1)
    cursor = json.loads(daemon.api.request("GET", "/v1/jobs/j/logs?follow=now").body)["next"]
    sender = native(daemon, "a.log", ["one", "two"], 0)
    sender.connect()
    sender.send_run(0, 2)

    def page():
        nonlocal cursor
        answer = json.loads(daemon.api.request("GET", f"/v1/jobs/j/logs?follow={cursor}&wait=1").body)
        cursor = answer["next"]
        return [(x["text"], x["gone"]) for x in answer["items"]]

    got = []
    poll.until("its lines", lambda: got.extend(page()) or len(got) >= 2, 10)
    t.same(got, [("one", False), ("two", False)], "lines")
    sender.close()
    daemon.stop()


def test_secret_across_pages(t):
    """A page that begins, or ends, inside a key of many lines shows nothing of it."""
    logs = t.folder / "logs"
    (logs / "j").mkdir(parents=True)
    daemon = t.start(options=[("tail", f"{logs}/{{job}}/{{name}}")])
    daemon.api.start("j", world_size=1)
    lines = [*PEM, "step", "step"]
    with open(logs / "j" / "c.log", "w") as file:
        file.write("".join(x + "\n" for x in lines[:10]))
        file.flush()
        poll.until("the file is known", lambda: daemon.status()["streams"] == 1, 10)
        file.write("".join(x + "\n" for x in lines[10:]))
    whole = poll.until("all of it", lambda: (x := daemon.api.items("/v1/jobs/j/logs?lines=100")) and x[-1]["text"] == "step" and x, 20)
    t.same(len(whole), len(lines), "lines")
    for i, item in enumerate(whole):
        number = len(whole) - i
        for url in (f"follow=0.0.0_1.{item['offset']:x}", f"follow=now&lines={number}", f"lines={number}"):
            doc = daemon.api.get(f"/v1/jobs/j/logs?{url}").json()
            t.same([x["text"] for x in doc["items"]], [x["text"] for x in whole[i:]], f"from line {i + 1} on: {url}")
    t.check(not any("abcdefghijk" in x["text"] for x in whole), f"a secret: {whole}")
    daemon.stop()


if __name__ == "__main__":
    trial.main(__doc__, test_each_line_once, test_begin_and_rank, test_before_the_first_line, test_secret_across_pages)
