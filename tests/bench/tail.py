#!/usr/bin/python3
"""What following quiet files costs: CPU of firstfaultd with folders watched and with folders polled, and how soon a line is seen.

    tests/bench/tail.py --daemon build/daemon/firstfaultd [--files N] [--folders N] [--seconds S]

Two daemons follow trees of N quiet files in turn, the second one where inotify has no instance (a user namespace of its own).
Prints for each its CPU in ms a second while nothing happens, and the median time until a line of one file, written in the
middle of that quiet, is in the store; last the ratios of the two. It judges nothing. Not a test: figures depend on the machine.
"""
import argparse
import pathlib
import statistics
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from support import poll, tailing  # noqa: E402
from support.daemon import Daemon  # noqa: E402

POLLED = ("unshare", "-U", "-r", "sh", "-c", "'echo 0 > /proc/sys/user/max_inotify_instances && exec \"$@\"'", "sh")


def cpu(daemon):
    """Seconds, of all threads."""
    return sum(int(x) for x in pathlib.Path(f"/proc/{daemon.process.pid}/stat").read_text().rsplit(")", 1)[1].split()[11:13]) / 100


def measure(options, folder, prefix):
    logs = folder / "logs" / "j"
    for n in range(options.files):
        tailing.put(logs / str(n % options.folders) / f"rank-{n}.log", tailing.steps(0, 3))
    program = options.daemon.resolve()
    daemon = Daemon(tailing.behind(folder, program, prefix) if prefix else program, folder / "daemon",
                    [("tail", folder / "logs" / "{job}" / "*" / "{name}")]).start()
    try:
        poll.until("all lines", lambda: sum(tailing.lines(daemon).values()) == 3 * options.files, 120)
        poll.pace(20)   # until rounds are as rare as they get
        before = cpu(daemon)
        poll.pace(options.seconds)
        spent = (cpu(daemon) - before) / options.seconds * 1000
        seen = []
        for n in range(options.lines):
            path = logs / "0" / "rank-0.log"
            began = time.monotonic()
            tailing.put(path, tailing.steps(3 + n, 4 + n))
            size = path.stat().st_size
            poll.until("the line", lambda: fed(daemon) == size, every=0.001)
            seen.append((time.monotonic() - began) * 1000)
            poll.pace(3)
        return spent, statistics.median(seen), daemon.status()["tail"]
    finally:
        daemon.kill()


def fed(daemon):
    db = daemon.store()
    try:
        return db.execute("SELECT fed FROM stream WHERE name = 'j/0/rank-0.log'").fetchone()[0]
    finally:
        db.close()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--daemon", type=pathlib.Path, required=True)
    parser.add_argument("--files", type=int, default=2000)
    parser.add_argument("--folders", type=int, default=250)
    parser.add_argument("--seconds", type=int, default=30)
    parser.add_argument("--lines", type=int, default=5)
    options = parser.parse_args()
    got = {}
    for name, prefix in (("watched", ()), ("polled", POLLED)):
        with tempfile.TemporaryDirectory(prefix="ff-") as folder:
            got[name] = measure(options, pathlib.Path(folder), prefix)
        spent, seen, tail = got[name]
        print(f"{name:8} {spent:6.2f} ms CPU a second   a line is stored after {seen:6.1f} ms   {tail['files']} files, "
              f"{tail['watched']} folders watched, {tail['polled']} polled", flush=True)
    print(f"polled / watched: CPU x {got['polled'][0] / max(got['watched'][0], 0.01):.1f}, time x {got['polled'][1] / got['watched'][1]:.1f}")


if __name__ == "__main__":
    main()
