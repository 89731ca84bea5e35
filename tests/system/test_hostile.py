#!/usr/bin/env python3
"""Clients that harm: too many, too slow, too fast, gone without a word, at the wrong place. Each has a limit and a counter.

After each of them a second, healthy job still has its verdict, byte for byte.
"""
import json
import os
import pathlib
import resource
import select
import socket
import struct
import sys
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from support import poll, trial  # noqa: E402
from support.native import Sender, parts_of  # noqa: E402
from support.other import Healthy  # noqa: E402
from support.replay import BASE_US  # noqa: E402

PLACES = 4096          # connections that the daemon takes
KEPT = 256             # files that it keeps for itself
MEMORY = 300 << 20     # bytes that it may need for whatever comes
OPEN = [("listen", "127.0.0.1:0"), ("allow-open-tcp", "yes")]


def counter(daemon, name):
    return daemon.status()["counters"][name]


def tcp_address(daemon):
    host, port = daemon.status()["listeners"]["tcp"][0].rsplit(":", 1)
    return host, int(port)


def connect(daemon, address=None, seconds=20):
    s = socket.socket(socket.AF_INET if address else socket.AF_UNIX)
    s.settimeout(seconds)
    s.connect(address or str(daemon.ingest))
    return s


def hello(k, job="crowd", **more):
    return json.dumps({"event": "hello", "protocol": "firstfault/1", "job": job, "source": f"s{k}", "streams": [f"rank-{k}.log"], "rank": k, **more}).encode() + b"\n"


def line_of(s):
    """The next line that the daemon says; None at the end."""
    got = b""
    while not got.endswith(b"\n"):
        more = s.recv(1)
        if not more:
            return None
        got += more
    return json.loads(got)


def drop(s):
    """Gone without an end: the peer gets a reset."""
    s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    s.close()


def cpu_seconds(pid):
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def alive(t, daemon, other, what):
    other.check(what)
    t.check(daemon.memory() < MEMORY, lambda: f"{daemon.memory()} bytes of memory after {what}")


def serves(t, daemon, what):
    with connect(daemon) as s:
        s.sendall(hello(0, "serves"))
        t.same(line_of(s)["event"], "welcome", f"answer {what}")


def settled(look):
    """What look() gives twice in a row, a moment apart."""
    seen = [look()]

    def same():
        poll.pace(0.2)
        seen.append(look())
        return seen[-1] == seen[-2]

    poll.until("a daemon at rest", same)
    return seen[-1]


class Pulse:
    """A sender with nothing but pings: how long does the daemon leave it waiting?"""

    def __init__(self, daemon, source):
        self.sender = Sender(daemon.ingest, {"job": "pulse", "source": source, "streams": [source], "rank": 0}, [[]], seconds=60).connect()
        self.n = 0

    def beat(self):
        begun = time.monotonic()
        self.n += 1
        self.sender.ping(self.n)
        return time.monotonic() - begun

    def close(self):
        self.sender.close()


# -- too many

def test_crowd(t):
    """4,096 at once, over both kinds of socket: all are served, the next one is told why not."""
    if trial.files_limit(2 * PLACES) < 2 * PLACES:
        t.skip("the hard limit of open files is too low")
    daemon = t.start(options=OPEN)
    other = Healthy(t, daemon)
    address = tcp_address(daemon)
    crowd = []
    for k in range(PLACES):
        s = connect(daemon, address if k % 2 else None, 60)
        s.sendall(hello(k, "crowd" if k % 2 else "crowd-here"))
        crowd.append(s)
    for k, s in enumerate(crowd):
        t.same(line_of(s)["event"], "welcome", f"answer to connection {k}")
    for k, s in enumerate(crowd):
        s.sendall(b"%d 0. hello from %d\n" % (BASE_US, k))
    size = len(b"hello from ")
    for k, s in enumerate(crowd):
        wanted = size + len(str(k)) + 1
        while (answer := line_of(s))["done"] != [wanted]:
            t.same(answer["event"], "ack", f"answer to connection {k}")
    for a in (None, address):
        with connect(daemon, a) as late:
            t.same(line_of(late)["code"], "busy", "answer to one too many")
            t.same(line_of(late), None, "what follows it")
    t.check(counter(daemon, "connections_refused") >= 2, "refused connections are not counted")
    alive(t, daemon, other, "a crowd")
    for s in crowd:
        s.close()
    poll.until("the end of the crowd", lambda: daemon.status()["connection_count"] == 0)
    serves(t, daemon, "after the crowd")
    daemon.stop()


def few(t, places):
    """A daemon with so many places for connections: the files it may open allow no more."""
    files = places + KEPT
    return t.start(prefix=("prlimit", f"--nofile={files}:{files}"))


def test_few_files(t):
    """A low limit of open files means fewer connections, not a store that can't write."""
    daemon = few(t, 40)
    t.check("takes 40 connections" in daemon.log_tail(), "the log does not say how many it takes")
    other = Healthy(t, daemon)
    crowd, answers = [], []
    for k in range(200):
        s = connect(daemon)
        try:
            s.sendall(hello(k))
            answers.append(line_of(s))
        except (BrokenPipeError, ConnectionResetError):
            answers.append(None)
        crowd.append(s)
    t.same([a["event"] for a in answers[:40]], ["welcome"] * 40, "answers within the limit")
    t.check(all(a is None or a.get("code") == "busy" for a in answers[40:]), lambda: f"answers beyond it: {answers[40:]}")
    t.check(counter(daemon, "connections_refused") == 160, "refused connections are not counted")
    other.check("a crowd beyond the limit of files")
    for s in crowd:
        s.close()
    poll.until("the end of the crowd", lambda: daemon.status()["connection_count"] == 0)
    serves(t, daemon, "after the crowd")
    daemon.stop()


def test_no_files(t):
    """No file can be opened at all: who connects waits, the daemon does not turn in circles, and then he is served."""
    daemon = t.start()
    other = Healthy(t, daemon)
    pid = daemon.process.pid
    old = resource.prlimit(pid, resource.RLIMIT_NOFILE)
    used = settled(lambda: {int(n) for n in os.listdir(f"/proc/{pid}/fd")})
    free = next(n for n in range(len(used) + 1) if n not in used)
    resource.prlimit(pid, resource.RLIMIT_NOFILE, (free, old[1]))
    with connect(daemon) as s:
        s.sendall(hello(0))
        spent = cpu_seconds(pid)
        t.check(not select.select([s], [], [], 1)[0], "an answer without a file")
        spent = cpu_seconds(pid) - spent
        t.check(spent < 0.3, f"{spent:.2f} s of processor time in a second without files")
        resource.prlimit(pid, resource.RLIMIT_NOFILE, old)
        t.same(line_of(s)["event"], "welcome", "answer once files are there again")
    t.check(counter(daemon, "files_short") >= 1, "the shortage is not counted")
    alive(t, daemon, other, "a shortage of files")
    daemon.stop()


def test_storm(t):
    """Thousands that connect and go without a word, and thousands that only say hello."""
    daemon = t.start(options=OPEN)
    other = Healthy(t, daemon)
    address = tcp_address(daemon)
    for k in range(4000):
        connect(daemon, address if k % 2 else None).close()
    other.check("connections that say nothing")
    for k in range(2000):
        s = connect(daemon)
        s.sendall(hello(k))
        s.close()
    poll.until("the end of the storm", lambda: daemon.status()["connection_count"] == 0)
    alive(t, daemon, other, "a storm of hellos")
    serves(t, daemon, "after the storm")
    daemon.stop()


# -- too slow

def test_silent(t):
    """When all places are taken, the oldest of those who never said anything makes room, and nobody else."""
    daemon = few(t, 20)
    other = Healthy(t, daemon)
    talker = connect(daemon)
    talker.sendall(hello(0))
    t.same(line_of(talker)["event"], "welcome", "answer to one who speaks")
    silent = [connect(daemon) for _ in range(19)]

    def served():
        with connect(daemon) as s:
            s.sendall(hello(1, "late"))
            answer = line_of(s)
            return answer and answer["event"] == "welcome"

    t.check(not served(), "a silent connection made room at once")
    poll.until("room for one who speaks", served, every=0.1)
    t.check(counter(daemon, "connections_idle") >= 1, "who made room is not counted")
    t.same(silent[0].recv(1), b"", "the oldest silent one is closed")
    silent[-1].setblocking(False)
    try:
        raise AssertionError(f"the newest silent one was closed: {silent[-1].recv(1)}")
    except BlockingIOError:
        pass
    talker.sendall(b"%d 0. still here\n" % BASE_US)
    while line_of(talker)["done"] != [len(b"still here") + 1]:
        pass
    alive(t, daemon, other, "silent connections")
    daemon.stop()


def test_drip(t):
    """A hundred that send one byte at a time are served like others."""
    daemon = t.start()
    other = Healthy(t, daemon)
    slow = [(connect(daemon), hello(k, "drip") + b"%d 0. slow but sure\n" % BASE_US) for k in range(100)]
    for i in range(max(len(raw) for _, raw in slow)):
        for s, raw in slow:
            s.send(raw[i:i + 1])
    for s, _ in slow:
        t.same(line_of(s)["event"], "welcome", "answer to a slow one")
        while line_of(s)["done"] != [len(b"slow but sure") + 1]:
            pass
        s.close()
    alive(t, daemon, other, "slow clients")
    daemon.stop()


def test_deaf(t):
    """Who never reads its acknowledgements is closed, and counted; what it would be told is bounded."""
    daemon = t.start()
    other = Healthy(t, daemon)
    rows = [json.dumps({"job": "deaf", "source": f"s{k}", "offset": 0, "stream": f"{k}.log", "message": "x" * 50}).encode() + b"\n" for k in range(2000)]
    with connect(daemon) as s:
        n, closed = 0, False
        deadline = poll.Deadline(30)
        while not closed and not deadline.over():
            raw = b"".join(r.replace(b'"offset": 0', b'"offset": %d' % (51 * n), 1) for r in rows)
            try:
                s.sendall(raw)
            except (BrokenPipeError, ConnectionResetError):
                closed = True
            n += 1
            poll.pace(0.1)
        t.check(closed, "a peer that reads nothing is kept")
    t.same(counter(daemon, "connections_slow"), 1, "connections_slow")
    alive(t, daemon, other, "a peer that reads nothing")
    daemon.stop()


# -- too fast

def test_flood(t):
    """Sixteen at full speed leave the others their turns: an answer takes as long as a buffer of each of them, not as all they have."""
    daemon = t.start()
    other = Healthy(t, daemon)
    block = b"".join(b"step %d loss %d.%d and nothing else to say about it\n" % (i, i % 7, i % 97) for i in range(20000))
    mib = time.monotonic()
    with connect(daemon, seconds=60) as s:
        for _ in range(8):
            s.sendall(block)
        s.shutdown(socket.SHUT_WR)
        while s.recv(4096):
            pass
    mib = (time.monotonic() - mib) / (8 * len(block) / (1 << 20))  # seconds for a mebibyte, a buffer of each
    pulse = Pulse(daemon, "pulse")
    going = threading.Event()
    going.set()

    def flood():
        with connect(daemon) as s:
            try:
                while going.is_set():
                    s.sendall(block)
            except OSError:
                pass

    threads = [threading.Thread(target=flood) for _ in range(16)]
    for thread in threads:
        thread.start()
    beats = []
    deadline = poll.Deadline(1)
    while not deadline.over():
        beats.append(pulse.beat())
    going.clear()
    for thread in threads:
        thread.join()
    pulse.close()
    beats.sort()
    median = beats[len(beats) // 2]
    print(f"  {mib * 1000:.0f} ms a mebibyte; {len(beats)} answers, median {median * 1000:.0f} ms, worst {beats[-1] * 1000:.0f} ms")
    t.check(median < 4 * mib + 0.05, f"half of the answers took {median:.2f} s beside a flood")
    alive(t, daemon, other, "a flood")
    daemon.stop()


def test_every_dialect_is_counted(t):
    """`status` and `metrics` while somebody speaks each of them: a journal's connection once made them write past a table."""
    daemon = t.start()
    words = {
        "native": hello(0),
        "jsonl": b'{"job":"j","message":"x"}\n',
        "raw": b"plain text\n",
        "syslog": b"<13>1 2026-01-01T00:00:00Z node-x app - - - hi\n",
        "journal": b"__CURSOR=s=1\n__REALTIME_TIMESTAMP=1767225600000000\n_TRANSPORT=kernel\nMESSAGE=hi\n\n",
    }
    peers = []
    for raw in words.values():
        peers.append(connect(daemon))
        peers[-1].sendall(raw)
    poll.until(lambda: f"one of each: {daemon.status()['dialects']}", lambda: {k: n for k, n in daemon.status()["dialects"].items() if k in words} == dict.fromkeys(words, 1))
    t.same(daemon.api.get("/metrics").status, 200, "/metrics")
    for s in peers:
        s.close()


def test_endless_line(t):
    """A line without an end, as raw text and as JSON Lines."""
    daemon = t.start()
    other = Healthy(t, daemon)
    mib = b"x" * (1 << 20)
    for first in (b"", b'{"job":"endless","message":"first"}\n{"job":"endless","message":"', b"<13>1 - node train - - - "):
        with connect(daemon, seconds=120) as s:
            s.sendall(first)
            for _ in range(1024 if t.everything else 48):
                s.sendall(mib)
            s.sendall(b'\n{"job":"endless","message":"after"}\n' if first.startswith(b"{") else b"\n")
            s.shutdown(socket.SHUT_WR)
            while s.recv(4096):
                pass
        other.check(f"an endless line after {first[:20]}")
    t.check(counter(daemon, "lines_cut") >= 3, "long lines are not counted")
    alive(t, daemon, other, "endless lines")
    daemon.stop()


def test_unfinished(t):
    """Twenty long lines without an end: all together they have a limit, and who ends his is heard."""
    daemon = t.start()
    other = Healthy(t, daemon)
    first = b'{"job":"long","message":"first"}\n{"job":"long","message":"'
    crowd = [connect(daemon, seconds=60) for _ in range(20)]
    for s in crowd:
        s.sendall(first + b"x" * (8 << 20))
    poll.until("lines given up", lambda: counter(daemon, "lines_no_room") > 0)
    memory = daemon.memory()
    print(f"  {memory >> 20} MiB")
    t.check(memory < MEMORY, f"{memory} bytes of memory for unfinished lines")
    for s in crowd:
        s.sendall(b'"}\n{"job":"long","message":"last"}\n')
        s.shutdown(socket.SHUT_WR)
    for s in crowd:
        while s.recv(4096):
            pass
    skipped = counter(daemon, "lines_no_room")
    t.check(0 < skipped < 20, f"{skipped} of 20 lines were skipped")
    alive(t, daemon, other, "unfinished lines")
    daemon.stop()


# -- gone without a word

def test_vanishing(t):
    """Resets in mid-line: what was whole is kept, the streams have vanished, and it is counted."""
    daemon = t.start(options=OPEN)
    other = Healthy(t, daemon)
    address = tcp_address(daemon)
    for k in range(50):
        s = connect(daemon, address)
        s.sendall(hello(k, "gone"))
        t.same(line_of(s)["event"], "welcome", "answer before the reset")
        s.sendall(b"%d 0. a whole line\n%d 0. half a li" % (BASE_US, BASE_US))
        if k % 2:
            while not (answer := line_of(s))["done"][0]:
                t.same(answer["event"], "ack", "answer before the reset")
        drop(s)
    poll.until("50 broken connections", lambda: counter(daemon, "connections_broken") >= 50)
    t.same(daemon.status()["connection_count"], 0, "connections after the resets")
    s = connect(daemon, address)
    s.sendall(hello(1, "gone"))
    t.same(line_of(s)["offsets"], [len(b"a whole line") + 1], "where a sender goes on after a reset")
    s.close()
    alive(t, daemon, other, "resets")
    daemon.stop()


def test_half_open(t):
    """A machine that is gone sends no end: TCP asks it again and again, and its sender may come back over another connection at once."""
    daemon = t.start(options=OPEN)
    other = Healthy(t, daemon)
    address = tcp_address(daemon)
    old = connect(daemon, address)
    old.sendall(hello(0, "half"))
    t.same(line_of(old)["event"], "welcome", "answer to the first")
    local, remote = (f"{socket.htonl(struct.unpack('!I', socket.inet_aton('127.0.0.1'))[0]):08X}:{port:04X}" for port in (address[1], old.getsockname()[1]))
    rows = [line.split() for line in pathlib.Path("/proc/net/tcp").read_text().splitlines()]
    timers = [row[5].split(":")[0] for row in rows if row[1:3] == [local, remote]]
    t.same(timers, ["02"], "timer of the daemon's side (02: keepalive)")
    new = connect(daemon, address)
    new.sendall(hello(0, "half"))
    t.same(line_of(new)["event"], "welcome", "answer to the second")
    while (answer := line_of(old)) is not None:
        t.same(answer["event"], "ack", "what the first hears before its end")
    t.same(counter(daemon, "taken_over"), 1, "taken_over")
    alive(t, daemon, other, "a half-open connection")
    old.close()
    new.close()
    daemon.stop()


# -- at the wrong place

def test_wrong_port(t):
    """HTTP and TLS at the ingest socket, log lines and TLS at the API's: one line, closed, counted."""
    daemon = t.start(options=OPEN)
    other = Healthy(t, daemon)
    address = tcp_address(daemon)
    for n, data in enumerate((b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n", b"POST /v1/logs HTTP/1.1\r\n", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
                              b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + t.rng.randbytes(500)), 1):
        for a in (None, address):
            with connect(daemon, a) as s:
                s.sendall(data)
                got = s.recv(4096)
                t.check(got.startswith(b"firstfault: ") and got.count(b"\n") == 1, f"answer to {data[:20]}: {got}")
                t.same(s.recv(1), b"", f"end after {data[:20]}")
        t.same(counter(daemon, "wrong_port"), 2 * n, "wrong_port")
    alive(t, daemon, other, "clients of other protocols")
    before = counter(daemon, "wrong_port")
    for n, (data, front) in enumerate(((hello(0), b'{"event":"error","code":"protocol"'), (b'{"job": "x", "message": "m"}\n' * 3, b'{"event":"error"'),
                                       (b"<13>1 - - - - - - x\n", b"firstfault: "), (b"33 <13>1 - - - - - - x", b"firstfault: "),
                                       (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", b"firstfault: ")), 1):
        with socket.socket(socket.AF_UNIX) as s:
            s.settimeout(20)
            s.connect(str(daemon.api.path))
            s.sendall(data)
            got = b""
            while more := s.recv(4096):
                got += more
            t.check(got.startswith(front) and got.count(b"\n") == 1 and b"ingest" in got, f"answer of the API to {data[:20]}: {got}")
        t.same(counter(daemon, "wrong_port"), before + n, "wrong_port")
    with socket.socket(socket.AF_UNIX) as s:  # an HTTP client that is slow to begin
        s.settimeout(20)
        s.connect(str(daemon.api.path))
        for byte in b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n":
            s.sendall(bytes([byte]))
        t.check(s.recv(4096).startswith(b"HTTP/1.1 200"), "answer to a slow HTTP client")
    daemon.stop()


if __name__ == "__main__":
    trial.files_limit(2 * PLACES)
    trial.main(__doc__, test_every_dialect_is_counted, test_crowd, test_few_files, test_no_files, test_storm, test_silent, test_drip, test_deaf, test_flood, test_endless_line, test_unfinished,
               test_vanishing, test_half_open, test_wrong_port)
