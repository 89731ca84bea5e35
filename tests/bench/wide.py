#!/usr/bin/python3
"""`firstfault ship` of a wide job: 1,024 files over 1,024 connections, against the least that could be done.

    tests/bench/wide.py --client build/client/firstfault --daemon build/daemon/firstfaultd [--ranks N] [--lines N]

Prints seconds, MB/s, lines/s, CPU seconds and the largest RSS of both sides; then `cat` of the same files through a unix
socket to a reader that throws them away (one connection, nothing digested or stored): the bytes' own cost; then what
questions about that job cost the loop's thread. It judges nothing. Not a test: it depends on the machine.
"""
import argparse
import os
import pathlib
import random
import resource
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from support import trial, world  # noqa: E402
from support.daemon import Daemon  # noqa: E402

ASKED = ("/verdict", "/ranks", "/events?limit=100", "/logs?rank=3", "/logs?around=first")


def write_logs(folder, ranks, lines):
    pool = [world.healthy(1, r, ranks, lines) for r in range(16)]
    for rank in range(ranks):
        rng = random.Random(rank)
        end = world.oom(rank, rng) if rank == ranks // 2 else world.lost_peer(rank, ranks // 2, lines * world.STEP_US, rng)
        path = folder / f"rank-{rank}.log"
        path.write_bytes(pool[rank % 16].replace(b"[rank %d]" % (rank % 16), b"[rank %d]" % rank) + "\n".join([*end, ""]).encode())
    files = sorted(folder.iterdir())
    return files, sum(p.stat().st_size for p in files), sum(p.read_bytes().count(b"\n") for p in files)


def cpu(pid, thread=None):
    stat = pathlib.Path(f"/proc/{pid}/task/{thread}/stat" if thread else f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(stat[11]) + int(stat[12])) / os.sysconf("SC_CLK_TCK")


def children():
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime, used.ru_maxrss


def cat(folder, files):
    """One connection, and nobody looks at the bytes. Seconds of the clock, and of the CPU of both sides."""
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(str(folder / "cat.sock"))
    listener.listen()

    def read():
        peer = listener.accept()[0]
        buffer = bytearray(65536)
        while peer.recv_into(buffer):
            pass

    reader = threading.Thread(target=read)
    reader.start()
    out = socket.socket(socket.AF_UNIX)
    out.connect(str(folder / "cat.sock"))
    clock, before, own = time.monotonic(), children()[0], time.process_time()
    subprocess.run(["cat", *files], stdout=out, check=True)
    out.close()
    reader.join()
    return time.monotonic() - clock, children()[0] - before + time.process_time() - own


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--client", type=pathlib.Path, required=True)
    parser.add_argument("--daemon", type=pathlib.Path, required=True)
    parser.add_argument("--ranks", type=int, default=1024)
    parser.add_argument("--lines", type=int, default=1000)
    options = parser.parse_args()
    trial.files_limit()
    folder = pathlib.Path(tempfile.mkdtemp(prefix="ff-"))
    daemon = Daemon(options.daemon.resolve(), folder / "d")
    try:
        (folder / "logs").mkdir()
        files, size, lines = write_logs(folder / "logs", options.ranks, options.lines)
        plain, plain_cpu = cat(folder, files)
        daemon.start()
        daemon.api.start("wide", world_size=options.ranks)
        clock, before = time.monotonic(), children()[0]
        subprocess.run([options.client.resolve(), "ship", "--job", "wide", folder / "logs"], env=daemon.env, check=True)
        seconds = time.monotonic() - clock
        client, client_rss = children()
        print(f"{options.ranks} connections, {size / 1e6:.0f} MB, {lines} lines in {seconds:.2f} s: {size / seconds / 1e6:.0f} MB/s, {lines / seconds:.0f} lines/s")
        print(f"client: {client - before:.2f} s CPU, {client_rss >> 10} MiB; daemon: {cpu(daemon.process.pid):.2f} s CPU, {daemon.memory() >> 20} MiB")
        print(f"cat and a reader: {plain:.2f} s, {plain_cpu:.2f} s CPU; ship and daemon take {seconds / plain:.1f} times as long")
        daemon.api.end("wide", exit_code=1, state="FAILED")
        for url in ASKED:
            before, clock = cpu(daemon.process.pid, daemon.process.pid), time.monotonic()
            for _ in range(10):
                daemon.api.get("/v1/jobs/wide" + url)
            print(f"{url:20} {(time.monotonic() - clock) * 100:6.1f} ms, of the loop {(cpu(daemon.process.pid, daemon.process.pid) - before) * 100:6.1f} ms")
        daemon.stop()
    finally:
        daemon.kill()
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
