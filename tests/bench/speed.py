#!/usr/bin/python3
"""What reading a healthy log costs: `firstfault analyze`, and `ship` with its daemon, against grep on the same file.

    tests/bench/speed.py --cli build/client/firstfault [--daemon build/daemon/firstfaultd] [--lines N] [--runs N] [--seed N]

Writes a log of 8 ranks in the forms of tests/support/chatter.py without what looks like a fault (`--file` takes one that is
there), then runs in turn `grep -c`, `analyze` and, with --daemon, `ship` to a fresh daemon. Prints for each the median CPU
seconds (user and system, of the daemon too), MB a second, how many times grep's it takes, and the peak memory; for the
daemon the size of its store as well. It judges nothing. Not a test: figures depend on the machine.
"""
import argparse
import os
import pathlib
import random
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from support import chatter  # noqa: E402
from support.daemon import Daemon  # noqa: E402

STEPS = (chatter.hugging_face, chatter.megatron, chatter.deepspeed, chatter.plain_step, chatter.nccl)
POOL = 20000  # lines that are drawn; the log picks from them


def write_log(path, lines, seed):
    rng = random.Random(seed)
    pool = [rng.choice(STEPS)(rng) for _ in range(POOL)]
    with open(path, "w", encoding="utf-8") as f:
        for i in range(lines):
            f.write(f"[rank{i % 8}]: {pool[rng.randrange(POOL)]}\n")


def used(command, env=None):
    """CPU seconds of a command and its peak in MiB."""
    with open(os.devnull, "r+b") as null:
        process = subprocess.Popen(command, stdin=null, stdout=null, stderr=null, env=env)
        _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode not in (0, 1):
        sys.exit(f"{command}: exit status {process.returncode}")
    return usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024


def ship(options, path):
    """CPU seconds of client and daemon, the daemon's peak in MiB, bytes of its store."""
    folder = pathlib.Path(tempfile.mkdtemp(prefix="ff-"))
    daemon = Daemon(str(options.daemon.resolve()), folder / "daemon")
    try:
        daemon.start()
        client, _ = used([str(options.cli), "ship", "--job", "bench", str(path)], daemon.env)
        peak = daemon.memory() / (1 << 20)
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        daemon.stop()
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        own = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        return client + own, peak, daemon.store_path().stat().st_size
    finally:
        daemon.kill()
        shutil.rmtree(folder, ignore_errors=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cli", type=pathlib.Path, required=True)
    parser.add_argument("--daemon", type=pathlib.Path)
    parser.add_argument("--lines", type=int, default=1000000)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--file", type=pathlib.Path)
    options = parser.parse_args()
    folder = pathlib.Path(tempfile.mkdtemp(prefix="ff-"))
    try:
        path = options.file or folder / "healthy.log"
        if not options.file:
            write_log(path, options.lines, options.seed)
        megabytes = path.stat().st_size / 1e6
        print(f"{path.name}: {megabytes:.0f} MB, seed {options.seed}, median of {options.runs}")
        runs = {"grep -c": [], "analyze": [], "ship": []}
        for _ in range(options.runs):
            runs["grep -c"].append(used(["grep", "-c", "-F", "CUDA out of memory", str(path)]))
            runs["analyze"].append(used([str(options.cli), "analyze", str(path)]))
            if options.daemon:
                runs["ship"].append(ship(options, path))
        base = statistics.median(r[0] for r in runs["grep -c"])
        for name, some in runs.items():
            if some:
                cpu = statistics.median(r[0] for r in some)
                store = f", store {some[-1][2] / 1024:.0f} KiB" if name == "ship" else ""
                print(f"{name:8} {cpu:6.2f} s CPU {megabytes / max(cpu, 0.001):6.0f} MB/s {cpu / max(base, 0.001):6.1f} x grep, "
                      f"peak {max(r[1] for r in some):.0f} MiB{store}")
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
