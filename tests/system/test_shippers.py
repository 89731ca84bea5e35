#!/usr/bin/env python3
"""The shippers of others with the configurations of deploy/shippers, against a real daemon that goes away in between.

A rank's file with odd bytes is followed; what the daemon keeps is compared with the file, line by line. A shipper that isn't
here is skipped; `deploy/setup --shippers` unpacks rsyslog and syslog-ng.
"""
import json
import pathlib
import re
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from support import poll, shippers, trial  # noqa: E402

CONFIGS = pathlib.Path(__file__).resolve().parents[2] / "deploy" / "shippers"
FIRST = shippers.ODD_LINES
AWAY = [b"while the daemon is away %d" % i for i in range(20)]
LAST = [b"back again", b"Traceback (most recent call last):", b'  File "/job/a.py", line 9, in main', b"    y()", b"RuntimeError: the last"]


def kept(daemon, job):
    """The lines of rank 3's only stream, as bytes."""
    answer = daemon.api.request("GET", f"/v1/jobs/{job}/export")
    rows = [json.loads(raw.decode("utf-8", "surrogateescape")) for raw in answer.body.splitlines()] if answer.status == 200 else []
    rows = [r for r in rows if "message" in r]
    return [r["message"].encode("utf-8", "surrogateescape") for r in rows], {(r["stream"], r.get("rank")) for r in rows}


def fits(got, wanted):
    """All that is wanted, in its order. A sender that lost its connection may send some again: lines that came before are let pass."""
    n = 0
    for line in got:
        if n < len(wanted) and line == wanted[n]:
            n += 1
        elif line not in wanted[:n]:
            return False
    return n == len(wanted)


def unlike(got, wanted):
    return f"missing {[x[:60] for x in wanted if x not in got]}, odd {[x[:60] for x in got if x not in wanted]}"


class Shipper:
    """A program with its configuration of deploy/shippers, made to follow FOLDER/logs."""

    def __init__(self, t, daemon, files):
        self.t, self.daemon = t, daemon
        self.folder = t.folder / "shipper"
        self.logs = self.folder / "logs"
        (self.logs / "4711").mkdir(parents=True)
        (self.folder / "spool").mkdir()
        for name in files:
            text = (CONFIGS / name).read_text()
            for old, new in (("/scratch/logs", str(self.logs)), ("/var/spool/rsyslog", str(self.folder / "spool")), ("1514", str(daemon.port))):
                text = text.replace(old, new)
            (self.folder / name).write_text(text)
        self.log = open(self.folder / "out", "wb")

    def start(self, program, command):
        self.process = self.t.spawn(*command, env=shippers.environment(self.daemon.env, program), stdout=self.log, stderr=subprocess.STDOUT)

    def append(self, lines, end=b"\n"):
        with open(self.logs / "4711" / "rank-3.log", "ab") as f:
            f.write(b"\n".join(lines) + end)

    def said(self):
        return (self.folder / "out").read_text(errors="replace")[-2000:]


def start_daemon(t):
    """On a port that stays the same over restarts."""
    daemon = t.start(options=[("listen", "127.0.0.1:0"), ("allow-open-tcp", "yes")])
    daemon.port = int(daemon.status()["listeners"]["tcp"][0].rsplit(":", 1)[1])
    daemon.configure([("listen", f"127.0.0.1:{daemon.port}"), ("allow-open-tcp", "yes")])
    return daemon


def follow(t, program, command, files, change):
    """change(lines): what the shipper makes of a file's lines."""
    daemon = start_daemon(t)
    shipper = Shipper(t, daemon, files)
    shipper.append(FIRST)
    shipper.start(program, command(shipper.folder))

    def all_of(lines):
        wanted = change(lines)

        poll.until(lambda: f"{len(wanted)} lines: {unlike(kept(daemon, '4711')[0], wanted)}\n{shipper.said()}", lambda: fits(kept(daemon, "4711")[0], wanted), 30, 0.05)

    all_of(FIRST)
    daemon.stop()
    shipper.append(AWAY)
    daemon.start()
    shipper.append(LAST)
    all_of(FIRST + AWAY + LAST)
    daemon.restart()
    all_of(FIRST + AWAY + LAST)
    t.same(len(kept(daemon, "4711")[1]), 1, "streams")
    verdict = daemon.api.end("4711", exit_code=1, state="FAILED")["verdict"]
    t.same([i["rank"] for i in verdict["initiating"]], [3], "initiating rank")
    t.check(verdict["fault"], "no fault")
    faults = [e["text"] for e in daemon.api.items("/v1/jobs/4711/events") if e["kind"] == "fault"]
    t.check(any("the first" in f for f in faults) and any("the last" in f for f in faults), lambda: f"faults {faults}")
    counters = daemon.status()["counters"]
    t.same([counters[n] for n in ("bad_syslog", "bad_json", "bad_values", "lines_cut")], [0, 0, 0, 0], "what is counted as bad")
    daemon.stop()


def found(t, name):
    program = shippers.find(name)
    if not program:
        t.skip(f"no {name} here")
    return program


def test_rsyslog(t):
    """Drops empty lines; all other bytes come through."""
    program = found(t, "rsyslogd")
    follow(t, program, lambda folder: shippers.rsyslog(program, folder / "rsyslog.conf", folder), ["rsyslog.conf"],
           shippers.by_rsyslog)


def test_syslog_ng(t):
    """Drops empty lines and the CR of a CRLF; a NUL cuts a line in two."""
    program = found(t, "syslog-ng")
    follow(t, program, lambda folder: shippers.syslog_ng(program, folder / "syslog-ng.conf", folder), ["syslog-ng.conf"],
           shippers.by_syslog_ng)


def test_fluent_bit(t):
    """Drops the CR of a CRLF; bytes that are no UTF-8 are lost or replaced by characters of a private area."""
    program = found(t, "fluent-bit")
    follow(t, program, lambda folder: [program, "-q", "-c", folder / "fluent-bit.conf"], ["fluent-bit.conf", "firstfault-parsers.conf"],
           lambda lines: [re.sub(rb"\r$", b"", x).replace(b"\xff\xfe\x80\xc3", "\ue080\ue0c3".encode()) for x in lines])


def test_vector(t):
    program = found(t, "vector")
    follow(t, program, lambda folder: [program, "--quiet", "--config", folder / "vector.toml"], ["vector.toml"], lambda lines: [re.sub(rb"\r$", b"", x) for x in lines])


if __name__ == "__main__":
    trial.main(__doc__, test_rsyslog, test_syslog_ng, test_fluent_bit, test_vector)
