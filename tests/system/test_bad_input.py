#!/usr/bin/env python3
"""What nobody should send, and what happens to it: a clear message or a count, never a crash, never another job's data.

After each test of a daemon a second, healthy job still has its verdict, byte for byte.
"""
import json
import os
import pathlib
import re
import shutil
import socket
import sqlite3
import subprocess
import sys
import urllib.parse

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from support import poll, trial, world  # noqa: E402
from support.daemon import Daemon, environment  # noqa: E402
from support.native import Gone, Part, Refused, Sender, parts_of  # noqa: E402
from support.other import Healthy  # noqa: E402
from support.replay import BASE_US, Feed, rfc3339  # noqa: E402

HUGE = 100 << 20       # bytes of one line
MEMORY = 200 << 20     # bytes that the daemon may need for it


def one_line(t, done, *words):
    """An error for people: one line, and what it is about."""
    text = done.stderr.decode(errors="replace").strip()
    t.check(0 < len(text.splitlines()) <= 2, f"one line expected: {text!r}")
    for word in words:
        t.check(word.lower() in text.lower(), f"{word!r} is not in {text!r}")


# -- analyze

def test_paths(t):
    done = t.run("analyze", t.folder / "none" / "train.log", status=(65, 66, 74))
    one_line(t, done, "train.log")
    done = t.run("analyze", "--json", t.folder / "none", status=(65, 66, 74))
    one_line(t, done, "none")
    locked = t.folder / "locked.log"
    locked.write_text("step 1\n")
    locked.chmod(0)
    prefix = ()
    if os.geteuid() == 0:
        if not shutil.which("setpriv"):
            return
        t.folder.chmod(0o755)
        prefix = ("setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups")
        reach = subprocess.run([*prefix, t.client, "--version"], capture_output=True)
        if reach.returncode != 0:
            return  # nobody can't even run the program here
    done = t.run("analyze", locked, status=(65, 74), prefix=prefix)
    one_line(t, done, "locked.log")


def test_binary_and_empty(t):
    junk = t.folder / "junk.log"
    junk.write_bytes(t.rng.randbytes(1 << 20))
    t.run("analyze", junk, status=(0, 65))
    t.run("analyze", "--json", "-", input=t.rng.randbytes(300000), status=(0, 65))
    empty = t.folder / "empty.log"
    empty.write_bytes(b"")
    t.run("analyze", empty, status=(0, 65))
    t.run("analyze", "--json", "-", input=b"", status=(65,))
    t.run("analyze", "--json", "-", input=b"\n\n\n", status=(0, 65))
    folder = t.folder / "nothing"
    folder.mkdir()
    t.run("analyze", folder, status=(0, 65))


def test_usage(t):
    for bad in (["analyze"], ["analyze", "--no-such-flag", "x"], ["no-such-command"], ["analyze", "--world", "many", "-"], ["why", "a", "b", "c"]):
        t.run(*bad, status=(64,))


def test_huge_line(t):
    sparse = t.folder / "sparse.log"
    with open(sparse, "wb") as f:
        f.write(b"Traceback (most recent call last):\n  File \"/job/a.py\", line 3, in main\n    x()\nValueError: before\n")
        f.truncate(HUGE)
        f.seek(0, os.SEEK_END)
        f.write(b"\n[rank0]: step 3\n")
    verdict = t.json("analyze", "--json", sparse, timeout=300)
    t.same(verdict["fault"] is not None, True, "a fault before a huge line")


def test_odd_json(t):
    good = {"job": "odd", "stream": "rank-0.log", "kind": "rank", "rank": 0}
    rows = [json.dumps({"event": "job-start", "job": "odd", "world_size": 2}),
            json.dumps({**good, "message": "a line with a \0 in it\0"}),
            json.dumps({**good, "message": "cut in two"})[:40],
            json.dumps({**good, "rank": -1, "message": "a negative rank"}),
            json.dumps({**good, "rank": 10 ** 12, "message": "a rank beyond all"}),
            json.dumps({**good, "time": "1970-01-01T00:00:00Z", "message": "long ago"}),
            json.dumps({**good, "time": "2100-06-01T00:00:00Z", "message": "far ahead"}),
            json.dumps({**good, "time": "yesterday", "message": "no time"}),
            json.dumps({**good, "message": 7}), json.dumps([1, 2]), "[" * 5000, '{"job":' * 3000, "null", '"text"',
            json.dumps({**good, "message": "ValueError: x", "exc_info": "Traceback (most recent call last):\n  File \"a.py\", line 1, in f\n    g()\nValueError: x"}),
            json.dumps({"event": "job-end", "job": "odd", "exit_code": "one", "state": 5}),
            json.dumps({"event": "job-end", "job": "odd", "exit_code": 1})]
    verdict = t.json("analyze", "--json", "-", input=("\n".join(rows)).encode())
    verdict = verdict[0] if isinstance(verdict, list) else verdict
    t.same(verdict["job"], "odd", "job")
    for name in ("../../etc/x", "a/b", "none", "-", "", "x\u0007y", "a\nb", "~1", "x" * 5000):
        raw = json.dumps({"job": name, "message": "hello"}) + "\n"
        t.run("analyze", "--json", "-", input=raw.encode(), status=(0, 65))
    for body in (b'{"streams":[{"path":"../../etc/passwd"}]}', b"{", b'{"streams":[{"path":"a.log","rank":-4}]}', b"\xff\xfe", b'{"streams":7}'):
        folder = t.folder / f"job-{t.rng.randrange(1 << 30)}"
        folder.mkdir()
        (folder / "a.log").write_text("hello\n")
        (folder / "job.json").write_bytes(body)
        done = t.run("analyze", "--json", folder, status=(0, 65))
        if done.returncode:
            one_line(t, done, "job.json")


# -- the daemon's ingest

def raw(daemon, data, seconds=20):
    """Sends bytes, closes its side, and gives back what came."""
    with socket.socket(socket.AF_UNIX) as s:
        s.settimeout(seconds)
        s.connect(str(daemon.ingest))
        out = b""
        try:
            s.sendall(data)
            s.shutdown(socket.SHUT_WR)
            while more := s.recv(65536):
                out += more
        except (ConnectionResetError, BrokenPipeError):
            pass
        return out


def hello(**more):
    return {"job": "bad", "source": "s1", "streams": ["a"], "rank": 0, **more}


def refused(t, daemon, code, what, **more):
    sender = Sender(daemon.ingest, hello(**more), [[] for _ in more.get("streams", ["a"])])
    try:
        sender.connect()
    except Refused as e:
        t.check(e.code in (code if isinstance(code, tuple) else (code,)), f"{what}: error {e.code} ({e.text}), wanted {code}")
        t.check(e.text, f"{what}: an error without a text")
        return
    finally:
        sender.close()
    raise AssertionError(f"{what} was welcomed")


def test_hello(t):
    daemon = t.start()
    other = Healthy(t, daemon)
    refused(t, daemon, "protocol", "another protocol", protocol="firstfault/9")
    refused(t, daemon, ("rank", "protocol"), "a negative rank", rank=-1)
    refused(t, daemon, ("rank", "protocol"), "a rank beyond all", rank=1 << 40)
    refused(t, daemon, "protocol", "no streams", streams=[])
    refused(t, daemon, "protocol", "eleven streams", streams=[f"s{i}" for i in range(11)])
    for name in ("a/b", "../../x", "x\u0007y", "a\nb", "none", "-", "", "x" * 4096):
        refused(t, daemon, ("job-name", "protocol"), f"the job name {name[:20]!r}", job=name)
    first = Sender(daemon.ingest, hello(job="two", source="same"), [parts_of([(BASE_US, b"hello")])]).connect()
    refused(t, daemon, "rank", "a stream with another rank", job="two", source="same", rank=4)
    first.send_all()
    first.end()
    other.check("bad hellos")
    for data in (b"{", b'{"event":"hello"}\n', b'{"event":"hello","protocol":"firstfault/1"' + b" " * 200000 + b"}\n", b"GET / HTTP/1.1\r\n\r\n",
                 b"\x16\x03\x01\x02\x00", b"\0" * 200000, t.rng.randbytes(200000), b""):
        raw(daemon, data)
        other.check(f"{data[:40]!r}")
    t.check(raw(daemon, b"GET / HTTP/1.1\r\nHost: x\r\n\r\n").count(b"\n") <= 2, "an HTTP client on the wrong port gets one line")
    daemon.stop()


def test_data(t):
    daemon = t.start()
    other = Healthy(t, daemon)

    def send(what, line, codes):
        sender = Sender(daemon.ingest, hello(job="data", source=f"s-{what}", streams=[what]), [[]]).connect()
        try:
            sender.write(line)
            sender.wait("answer", lambda: False)
        except Refused as e:
            t.check(e.code in codes, f"{what}: {e}")
        except Gone:
            t.check(None in codes, f"{what}: closed without a word")
        finally:
            sender.close()
        other.check(what)

    protocol = ("protocol",)
    send("no-stamp", b"hello\n", protocol)
    send("no-such-stream", b"1767225600000000 7. hello\n", protocol)
    send("no-c", b"1767225600000000 0hello\n", protocol)
    send("long-stamp", b"9" * 400 + b" 0. x\n", protocol)
    send("too-long", b"1767225600000000 0. " + b"x" * 300000 + b"\n", ("too-long",))
    send("bad-object", b'{"event":\n', protocol)
    send("bad-end", b'{"event":"end","offsets":["many"]}\n', protocol)

    odd = [(BASE_US, b"a NUL \0 in a line\0"), (1, b"1970"), (BASE_US + 75 * 365 * 86400 * 1000000, b"2101"), (BASE_US, b"\xff\xfe\x80 no UTF-8"), (BASE_US, b"")]
    sender = Sender(daemon.ingest, hello(job="data", source="odd", streams=["odd"], clock="collector"), [parts_of(odd)]).connect()
    sender.send_all()
    sender.end()
    verdict = json.loads(daemon.api.verdict("data"))
    stamps = re.findall(r'"(?:arrived|captured)":\s*"(\d{4})', json.dumps(verdict))
    t.check(all(s == "2026" for s in stamps), f"stamps {stamps}")
    other.check("odd lines")
    daemon.stop()


def test_huge_native_line(t):
    daemon = t.start()
    other = Healthy(t, daemon)
    zeros = bytes(65536)
    parts = [Part(BASE_US, b"before", True), *[Part(BASE_US, zeros, False)] * (HUGE // len(zeros)), Part(BASE_US, b"", True),
             *parts_of([(BASE_US, x) for x in (b"Traceback (most recent call last):", b'  File "/job/a.py", line 3, in main', b"    x()", b"ValueError: after")])]
    sender = Sender(daemon.ingest, hello(job="huge", streams=["huge"], clock="collector", world_size=1), [parts], seconds=120).connect()
    sender.send_all()
    sender.end()
    daemon.api.end("huge", exit_code=1, state="FAILED")
    verdict = json.loads(daemon.api.verdict("huge"))
    t.check(verdict["fault"], lambda: f"the fault after a line of {HUGE} bytes: {verdict}")
    memory = daemon.memory()
    print(f"  {memory >> 20} MiB")
    t.check(memory < MEMORY, f"{memory} bytes of memory for a line of {HUGE}")
    other.check("a huge line")
    daemon.stop()


def test_json_lines(t):
    daemon = t.start()
    other = Healthy(t, daemon)
    good = {"job": "lines", "stream": "rank-0.log", "kind": "rank", "rank": 0, "time": rfc3339(0)}
    rows = [{**good, "message": "one \0 two"}, {**good, "message": "x", "rank": -1}, {**good, "message": "old", "time": "1970-01-01T00:00:00Z"},
            {**good, "message": "new", "time": "2100-01-01T00:00:00Z"}]
    data = b"".join(json.dumps(r).encode() + b"\n" for r in rows) + json.dumps(good | {"message": "cut in two"}).encode()[:50]
    raw(daemon, data)
    poll.until("job `lines`", lambda: daemon.api.request("GET", "/v1/jobs/lines").status == 200)
    other.check("odd JSON Lines")
    raw(daemon, json.dumps({"job": "a/../b", "message": "x"}).encode() + b"\n")
    raw(daemon, b'{"job":"deep","message":' + b"[" * 100000 + b"\n")
    raw(daemon, b"plain text without any job\nRuntimeError: CUDA error\n")
    other.check("raw text")
    daemon.stop()


def test_two_claim_one_rank(t):
    daemon = t.start()
    other = Healthy(t, daemon)
    senders = []
    for source in ("one", "two"):
        sender = Sender(daemon.ingest, hello(job="twins", source=source, streams=["rank-0.stderr"], attempt=0), [parts_of([(BASE_US, b"hello from " + source.encode())])])
        sender.connect()
        sender.send_all()
        sender.wait_done()
        senders.append(sender)
    text = json.dumps(daemon.status())
    t.check(re.search(r'"same_rank":\s*[1-9]', text), f"two sources of one rank are not counted: {text[:1500]}")
    for sender in senders:
        sender.end()
    ranks = daemon.api.get("/v1/jobs/twins/ranks").body
    t.check(b"0" in ranks, "rank 0")
    other.check("two sources of one rank")
    daemon.stop()


# -- HTTP

def test_http(t):
    daemon = t.start()
    other = Healthy(t, daemon)
    api = daemon.api
    quoted = urllib.parse.quote
    for method, url, body, wanted in (
            ("GET", "/v1/jobs/nobody", None, (404,)), ("GET", "/nothing", None, (404,)), ("POST", "/v1/jobs/nobody/end", b"{}", (404,)),
            ("POST", "/v1/jobs/x/start", b"{", (400, 422)), ("POST", "/v1/jobs/x/start", b"[]", (400, 422)), ("POST", "/v1/jobs/x/start", b'{"world_size":"many"}', (400, 422)),
            ("POST", f"/v1/jobs/{quoted('a/b', safe='')}/start", b"{}", (400, 404, 422)), ("POST", f"/v1/jobs/{quoted('x' + chr(7))}/start", b"{}", (400, 404, 422)),
            ("POST", "/v1/jobs/none/start", b"{}", (400, 404, 422)), ("POST", "/v1/jobs/x/start", b'{"a":"' + b"x" * (1 << 20) + b'"}', (413,)),
            ("GET", "/v1/jobs?limit=-5", None, (200, 400, 422)), ("GET", "/v1/jobs?cursor=%00%ff", None, (200, 400, 422)),
            ("DELETE", "/v1/jobs/nobody", None, (404,)), ("DELETE", "/v1/jobs", None, (405,)), ("GET", "/v1/jobs/healthy-job/events?rank=-7", None, (200, 400, 422)),
            ("GET", "/v1/jobs/healthy-job/logs?around=../../x", None, (200, 400, 404, 422)), ("POST", "/v1/jobs/healthy-job/end?wait=1e9s", b"{}", (200, 400, 422))):
        answer = api.request(method, url, body)
        t.check(answer.status in wanted, f"{method} {url}: {answer}, wanted {wanted}")
        if answer.status >= 400 and answer.body:
            problem = answer.json()
            t.check(problem.get("title") or problem.get("detail"), f"{method} {url}: no problem details: {problem}")
            t.check("problem+json" in answer.headers.get("Content-Type", ""), f"{method} {url}: {answer.headers}")
    answer = api.request("POST", "/v1/jobs/x/start", b"{}", {"Content-Type": "text/plain"})
    t.check(answer.status in (400, 415), f"a POST of text/plain: {answer}")
    other.check("bad requests")
    daemon.stop()


# -- the store and the start

def spoil(t, what, change, *words):
    """A daemon on a spoilt store says so and does not start, or puts it aside; it never crashes and never empties it."""
    daemon = t.start(f"store-{what}")
    other = Healthy(t, daemon)
    daemon.stop()
    path = daemon.store_path()
    kept = path.read_bytes()
    change(path)
    spoilt = path.read_bytes()
    daemon.spawn()
    poll.until(f"the end of a daemon with a {what} store", lambda: daemon.process.poll() is not None, 30)
    log = daemon.log_tail()
    t.check(daemon.process.returncode in (1, 65, 70, 74, 78), f"{what}: ended with {daemon.process.returncode}\n{log}")
    t.check("Sanitizer" not in log and "runtime error" not in log, log)
    for word in words:
        t.check(word in log.lower(), f"{what}: {word!r} is not in the message: {log}")
    t.check(path.read_bytes() == spoilt, f"{what}: the store was changed")
    path.write_bytes(kept)
    daemon.start()
    other.check(f"a {what} store")
    daemon.stop()


def damage(path):
    data = bytearray(path.read_bytes())
    data[:4096] = b"this is no database " * 204 + b"x" * 16
    path.write_bytes(data)


def newer(path):
    with sqlite3.connect(path) as db:
        version = db.execute("PRAGMA user_version").fetchone()[0]
        db.execute(f"PRAGMA user_version = {version + 7}")
    db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    db.close()


def test_damaged_store(t):
    spoil(t, "damaged", damage, "firstfault")


def test_newer_store(t):
    spoil(t, "newer", newer, "newer")


def started(t, *arguments, seconds=20):
    return subprocess.run([t.daemon, *map(str, arguments)], stdin=subprocess.DEVNULL, capture_output=True, timeout=seconds, env=environment(t.folder))


def test_second_daemon(t):
    daemon = t.start()
    other = Healthy(t, daemon)
    second = Daemon(t.daemon, t.folder / "second", state=daemon.state)
    t.daemons.append(second)
    second.spawn()
    poll.until("the end of a second daemon on one state folder", lambda: second.process.poll() is not None, 20)
    t.check(second.process.returncode not in (0, 70) and second.process.returncode > 0, f"status {second.process.returncode}: {second.log_tail()}")
    t.check(str(daemon.state) in second.log_tail(), f"the folder is not named: {second.log_tail()}")
    other.check("a second daemon")
    daemon.stop()


def test_config(t):
    config = t.folder / "x.conf"

    def ask(text, *arguments):
        config.write_text(text)
        return started(t, "--config", config, *arguments)

    good = f"# comment\n\nstate = {t.folder}/s\ningest-socket = {t.folder}/i.sock\napi-socket={t.folder}/a.sock\ntail = {t.folder}/logs/{{job}}/{{name}}\n"
    done = ask(good, "--check-config")
    t.same(done.returncode, 0, f"--check-config: {done.stderr}")
    done = ask(good, "--print-config")
    t.same(done.returncode, 0, f"--print-config: {done.stderr}")
    t.check(f"{t.folder}/i.sock" in done.stdout.decode() and "tail" in done.stdout.decode(), done.stdout)
    config.write_bytes(done.stdout)
    again = started(t, "--config", config, "--print-config")
    t.same(again.stdout, done.stdout, "what --print-config prints is a configuration")
    done = started(t, "--config", config, "--state", t.folder / "flag", "--print-config")
    t.check(f"{t.folder}/flag" in done.stdout.decode(), f"a flag wins over the file: {done.stdout} {done.stderr}")
    for bad, word in (("no-such-key = 1\n", "no-such-key"), ("state\n", "state"), ("allow-open-tcp = perhaps\n", "allow-open-tcp"),
                      ("tail = logs/{nothing}/x\n", "tail"), ("listen = nowhere\n", "listen"), ("state = a\0b\n", "")):
        done = ask(good + bad, "--check-config")
        t.check(done.returncode in (64, 65, 78), f"{bad!r}: exit status {done.returncode}, {done.stderr}")
        one_line(t, done, word)
    (t.folder / "open").write_text("0123456789abcdef0123 root\n")
    (t.folder / "open").chmod(0o644)
    for tokens, word in ((t.folder / "open", "0600"), (t.folder / "no-tokens", "no-tokens")):
        done = ask(good + f"token-file = {tokens}\n", "--check-config")
        t.check(done.returncode in (64, 65, 74), f"{tokens}: exit status {done.returncode}, {done.stderr}")
        one_line(t, done, word)
        one_line(t, done, "token-file")
    done = started(t, "--config", t.folder / "none.conf", "--check-config")
    t.check(done.returncode > 0, "a config file that isn't there")
    one_line(t, done, "none.conf")
    t.same(started(t, "--no-such-flag").returncode, 64, "an unknown flag")
    for flag in ("--version", "--help"):
        t.same(started(t, flag).returncode, 0, flag)
    t.check(not (t.folder / "s").exists(), "--check-config made the state folder")


def test_open_tcp(t):
    daemon = Daemon(t.daemon, t.folder / "tcp", [("listen", "127.0.0.1:0")])
    t.daemons.append(daemon)
    daemon.spawn()
    poll.until("a daemon with an open listener ends", lambda: daemon.process.poll() is not None, 20)
    t.check(daemon.process.returncode > 0, "it ended with 0")
    t.check("token-file" in daemon.log_tail(), f"no word of token-file: {daemon.log_tail()}")
    daemon.configure([("listen", "127.0.0.1:0"), ("allow-open-tcp", "yes")])
    daemon.start()
    t.check("open" in json.dumps(daemon.status()).lower(), f"status does not say that TCP is open: {daemon.status()}")
    daemon.stop()


def test_sigterm(t):
    """With connections open and lines half sent."""
    daemon = t.start()
    sender = Sender(daemon.ingest, hello(job="term", streams=["a"]), [parts_of([(BASE_US, b"x" * 1000)] * 2000)]).connect()
    sender.send_all()
    sender.write(b"1767225600000000 0. half a li")
    silent = socket.socket(socket.AF_UNIX)
    silent.connect(str(daemon.ingest))
    api = socket.socket(socket.AF_UNIX)
    api.connect(str(daemon.api.path))
    api.sendall(b"GET /v1/sta")
    daemon.stop(5)
    for s in (silent, api):
        s.close()
    sender.close()
    daemon.start()
    daemon.stop(5)


def test_sigterm_while_reading(t):
    """Answers that threads read text for don't keep the daemon from its end."""
    daemon = t.start()
    line = b"step 1 loss 2.0 " + b"x" * 100
    sender = Sender(daemon.ingest, hello(job="long", source="s", streams=["rank-0.log"]), [[Part(BASE_US + i, line, True) for i in range(150000)]]).connect()
    sender.send_all()
    sender.end()
    asked = []
    for _ in range(24):
        asked.append(socket.socket(socket.AF_UNIX))
        asked[-1].connect(str(daemon.api.path))
        asked[-1].sendall(b"GET /v1/jobs/long/logs?lines=10000 HTTP/1.1\r\nHost: x\r\n\r\n")
    poll.pace(0.1)
    daemon.stop()
    for one in asked:
        one.close()


def test_slow_first_line(t):
    """The second that a first line may take begins with its first byte, not with the connection."""
    daemon = t.start()
    raw = json.dumps({"event": "hello", "protocol": "firstfault/1", **hello(job="slow", source="s", streams=["a"])}).encode() + b"\n"
    with socket.socket(socket.AF_UNIX) as peer:
        peer.settimeout(10)
        peer.connect(str(daemon.ingest))
        poll.pace(1.2)
        peer.sendall(raw[:20])
        poll.pace(0.2)
        peer.sendall(raw[20:])
        t.check(b'"welcome"' in peer.recv(65536), "a hello in two parts is one")
    daemon.stop()


def test_shared_stream(t):
    """Two connections feed one JSON Lines stream: it ends with the last of them, not with the first."""
    daemon = t.start()
    line = json.dumps({"job": "shared", "stream": "rank-0.log", "rank": 0, "message": "step 1"}).encode() + b"\n"
    seen = lambda: daemon.api.get("/v1/jobs/shared/verdict").json()
    peers = [socket.socket(socket.AF_UNIX) for _ in range(2)]
    for n, peer in enumerate(peers):
        peer.connect(str(daemon.ingest))
        peer.sendall(line)
        poll.until(f"line {n + 1}", lambda: daemon.status()["counters"]["lines"] == n + 1)
    daemon.api.end("shared", wait="0", exit_code=0)
    peers[0].close()
    poll.until("one connection less", lambda: daemon.status()["connection_count"] == 1)
    t.same(seen()["final"], False, "final while one of two is connected")
    peers[1].close()
    poll.until("a final verdict", lambda: seen()["final"])
    daemon.stop()


def test_acks_are_few(t):
    """At most one ack each 100 ms, whatever is told; at once after `end`."""
    daemon = t.start()
    sender = Sender(daemon.ingest, hello(job="acks", source="s", streams=["a"], rank=0), [[]]).connect()
    clock, acks = poll.Deadline(0), []
    for step in range(200):
        sender.control({"event": "sign", "step": step, "time": rfc3339(BASE_US + step)})
        before = sender.controls
        sender.pump()
        if sender.controls != before:
            acks.append(clock.spent())
        poll.pace(0.005)
    t.check(len(acks) <= clock.spent() / 0.1 + 2, f"{len(acks)} acks in {clock.spent():.2f} s: {acks}")
    sender.end()
    daemon.stop()


def test_foreign_run(t):
    """Nobody adds a run to another user's job, by no way."""
    if os.geteuid() != 0:
        t.skip("needs two users")
    t.folder.chmod(0o755)
    daemon = t.start()
    daemon.folder.chmod(0o755)
    daemon.api.start("mine", world_size=1)
    code = "import json, os, sys\nos.setuid(65534)\nfrom support.http import Api\nprint([Api(sys.argv[1]).request('POST', u, {'run': 'other'}).status for u in sys.argv[2:]])"
    urls = ["/v1/jobs/mine/start", "/v1/jobs/mine/end?wait=0", "/v1/jobs/mine/end?wait=0&create=1"]
    env = {**os.environ, "PYTHONPATH": str(pathlib.Path(__file__).resolve().parents[1])}
    done = subprocess.run([sys.executable, "-c", code, str(daemon.api.path), *urls], capture_output=True, env=env, timeout=60)
    t.same(done.stdout.decode().strip(), "[403, 404, 403]", f"answers to another user {done.stderr.decode()[-300:]}")
    t.same([x["run"] for x in daemon.api.items("/v1/jobs")], ["0"], "runs")
    daemon.stop()


def test_full_disk(t):
    disk = t.folder / "disk"
    disk.mkdir()
    done = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=12m,mode=0700", "tmpfs", str(disk)], capture_output=True, text=True)
    if done.returncode:
        t.skip(f"no mounts here: {done.stderr.strip()[:100]}")
    try:
        full_disk(t, disk)
    finally:
        for daemon in t.daemons:
            daemon.kill()
        subprocess.run(["umount", "-l", str(disk)], check=True)


def full_disk(t, disk):
    daemon = t.start("full", state=disk / "state")
    other = Healthy(t, daemon)
    job = world.storm(t.seed, "full", 4, 300 << 10)
    wanted = job.analyze(t)
    filler = disk / "filler"
    feed = Feed(daemon, job, "full").start()
    feed.send(feed.half(), chunk=64)
    feed.wait_done()
    with open(filler, "wb", buffering=0) as f:
        try:
            while f.write(bytes(4096)):
                pass
        except OSError:
            pass
    for sender in feed.senders:  # what fits in the buffers goes out, no ack comes
        sender.sock.settimeout(1)
        try:
            lane = sender.lanes[0]
            while lane.next < len(lane.parts):
                i = lane.next
                sender.write(sender.encode(0, i))
                lane.next += 1
        except TimeoutError:  # the daemon reads no more; the last line may be cut, so all begins anew
            pass
    full = lambda: [x for x in re.findall(r"[^\"]*(?:no space|full)[^\"]*", json.dumps({k: v for k, v in daemon.status().items() if k != "counters"}).lower())]
    poll.until(lambda: f"status says that the disk is full: {daemon.status()}", full, 30)
    t.check(len(full()) <= 2, f"it says so once: {full()}")
    filler.unlink()
    poll.until(lambda: f"status is well again: {daemon.status()}", lambda: not full(), 60)
    feed.connect()
    feed.send(chunk=64)
    got = feed.finish()
    t.check(got == wanted, lambda: f"analyze | daemon after a full disk{trial.difference(wanted, got)}")
    other.check("a full disk")
    log = daemon.log_path.read_text(errors="replace").lower()
    t.check(0 < len(re.findall(r"no space|disk.{0,20}full|full.{0,20}disk|database or disk is full", log)) <= 10, f"the log says it once: {daemon.log_tail()}")
    daemon.stop()


if __name__ == "__main__":
    trial.main(__doc__, test_paths, test_binary_and_empty, test_usage, test_huge_line, test_odd_json, test_hello, test_data, test_huge_native_line,
               test_json_lines, test_two_claim_one_rank, test_http, test_damaged_store, test_newer_store, test_second_daemon, test_config,
               test_open_tcp, test_sigterm, test_sigterm_while_reading,
               test_slow_first_line, test_shared_stream, test_acks_are_few, test_foreign_run, test_full_disk)
