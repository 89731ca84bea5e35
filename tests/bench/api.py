#!/usr/bin/env python3
"""How long big answers take, and how long the daemon's loop lets everybody else wait for them.

    api.py --client build/client/firstfault --daemon build/daemon/firstfaultd [--ranks 131072] [--text MIB]

A run of so many ranks, a stream and a fault each; and one of two ranks with so much text in its segments. Each question is
asked of a new daemon on the same store, so that `longest` is its own: the loop's longest turn, from status; CPU is that of
the daemon for all pages, which says more than the clock where the machine has other work. It judges nothing.
"""
import argparse
import json
import pathlib
import socket
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from support import poll  # noqa: E402
from support.daemon import Daemon  # noqa: E402


def feed(daemon, objects):
    with socket.socket(socket.AF_UNIX) as s:
        s.connect(str(daemon.ingest))
        block = []
        for o in objects:
            block.append(json.dumps(o))
            if len(block) == 2000:
                s.sendall(("\n".join(block) + "\n").encode())
                block = []
        s.sendall(("\n".join(block) + "\n").encode() if block else b"")
        s.shutdown(socket.SHUT_WR)
        while s.recv(65536):
            pass


def ranks(n):
    yield {"event": "job-start", "job": "wide", "world_size": n}
    for r in range(n):
        yield {"job": "wide", "kind": "rank", "rank": r, "node": f"n{r // 8}", "stream": f"r{r}", "time": f"2026-01-01T00:00:{10 + r % 40:02}.{r % 1000000:06}Z",
               "message": f"IndexError: Target {r} is out of bounds." if r == 7 else "gloo::IoException: Connection closed by peer [10.0.0.7]:4711"}


def text(mib):
    yield {"event": "job-start", "job": "long", "world_size": 2}
    line = "step loss tokens " * 60
    for i in range(mib * 1024):
        yield {"job": "long", "kind": "rank", "rank": i % 2, "node": "n", "stream": f"r{i % 2}", "message": f"{i} {line}"}


def pages(daemon, url):
    """(seconds of the slowest page, pages, bytes)."""
    worst, count, size, cursor = 0, 0, 0, ""
    while cursor is not None:
        began = time.monotonic()
        answer = daemon.api.request("GET", url + (f"{'&' if '?' in url else '?'}cursor={cursor}" if cursor else ""), timeout=600)
        worst = max(worst, time.monotonic() - began)
        assert answer.status == 200, answer
        count, size = count + 1, size + len(answer.body)
        cursor = answer.json().get("next") if answer.headers["Content-Type"] == "application/json" else None
    return worst, count, size


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("--client", type=pathlib.Path, required=True)
    ap.add_argument("--daemon", type=pathlib.Path, required=True)
    ap.add_argument("--ranks", type=int, default=131072)
    ap.add_argument("--text", type=int, default=1024)
    o = ap.parse_args()
    with tempfile.TemporaryDirectory(prefix="ff-") as folder:
        daemon = Daemon(o.daemon.resolve(), pathlib.Path(folder) / "d")
        daemon.start()
        for name, objects in (("wide", ranks(o.ranks)), ("long", text(o.text))):
            began = time.monotonic()
            feed(daemon, objects)
            daemon.api.request("POST", f"/v1/jobs/{name}/end?wait=1s", {"exit_code": 1}, timeout=600)
            print(f"{name}: fed in {time.monotonic() - began:.1f} s, {daemon.memory('VmRSS') >> 20} MiB", flush=True)
        print("question                                   pages  slowest      bytes    longest turn      CPU")
        for url in ("wide", "wide/verdict", "wide/ranks", "wide/ranks?limit=100", "wide/timeline", "wide/events?limit=10000", "wide/logs?rank=7", "wide/logs?follow=now&rank=7",
                    "wide/verdict?format=text", "wide/verdict?full=1", "long/logs?lines=20", "long/logs?follow=now", "long/verdict", "../status", "../../metrics"):
            daemon.stop()
            daemon.spawn()
            poll.until("ready", daemon.api.alive, 600)
            before = daemon.status()["process"]["cpu_us"]
            worst, count, size = pages(daemon, "/metrics" if "metrics" in url else "/v1/status" if "status" in url else f"/v1/jobs/{url}")
            after = daemon.status()
            print(f"{url:42} {count:5} {worst:7.3f} s {size:10} {after['api']['loop_longest_us'] / 1e6:12.3f} s {(after['process']['cpu_us'] - before) / 1e6:7.3f} s",
                  flush=True)
        daemon.stop()


if __name__ == "__main__":
    main()
