#!/usr/bin/python3
"""CPU time of `firstfault analyze` on hostile shapes of 1x, 4x and 16x the size.

    tests/bench/formats.py --cli build/client/firstfault [--size BYTES] [SHAPE ...]

Prints a line a shape: seconds for each size (the start of the program taken off) and how much more 4x the bytes cost,
where 4.0 is linear. It judges nothing: whoever reads it looks for what is far above 4. Not a test: it takes minutes and
depends on the machine.
"""
import argparse
import os
import resource
import subprocess
import sys
import tempfile

HEADER = "Traceback (most recent call last):\n"
FRAME = '  File "/job/train.py", line 88, in step\n    loss = model(x)\n'


def lines(make):
    """A shape of many lines: make(i) is line i."""
    def build(size):
        out, n, i = [], 0, 0
        while n < size:
            line = make(i)
            out.append(line)
            n += len(line)
            i += 1
        return "".join(out)
    return build


def repeat(unit, end="\n"):
    """A shape of one line."""
    return lambda size: unit * max(1, size // len(unit)) + end


def deep(unit):
    """Lines of the unit ten thousand deep."""
    return lines(lambda i: unit * 10000 + " x\n")


def lane_faults(i):
    return f"[rank{i % 4096}]: KeyError: 'k{i}'\n"


def open_lanes(i):
    """Every lane has an open record, and none of them is closed by content."""
    rank = i % 4096
    return f"[rank{rank}]: " + (HEADER if i < 4096 else FRAME.split("\n")[0] + "\n")


def reopened_lanes(i):
    """Each line opens a record of its lane, and the lane's last one has just become too far."""
    return f"[rank{i % 4096}]: {'y' * 230}{HEADER}"


def parts(i):
    return f"2024-05-01T12:00:00.5Z std{('out', 'err')[i % 2]} P {'x' * (i % 100)}\n"


def docker(i):
    return '{"log":"part %d ","stream":"std%s","time":"2026-01-01T00:00:00.5Z"}\n' % (i, ("out", "err")[i % 2])


def objects(i):
    return '{"job":"j","rank":%d,"stream":"s%d","message":"KeyError: %d"}\n' % (i % 4096, i % 4096, i)


def agents(i):
    return (f"W1130 09:30:36.659000 {i} torch/distributed/elastic/multiprocessing/api.py:900] "
            f"Sending process {i} closing signal SIGTERM\n")


def table(i):
    return ("=" * 60 + "\ntrain.py FAILED\n" + "-" * 60 + "\nFailures:\n" +
            "".join(f"[{k}]:\n  time      : 2026-11-30_09:27:37\n  host      : node-{i}\n"
                    f"  rank      : {k} (local_rank: {k})\n  exitcode  : 1 (pid: {i * 8 + k})\n"
                    f"  error_file: <N/A>\n  traceback : x\n" for k in range(8)) + "=" * 60 + "\n")


SHAPES = {
    "healthy": lines(lambda i: f"2026-11-30 09:41:25,625 [rank{i % 8}] INFO train: step {i} loss 2.5\n"),
    "no-lf": repeat("x"),
    "no-lf-words": repeat("CUDA out of memory. Tried to allocate 2.00 GiB ", ""),
    "cr-only": repeat(" 32%|###  | 19/60 [00:01<00:04,  9.39it/s]\r", ""),
    "cr-faults": repeat("KeyError: 'x'\r", ""),
    "lf-only": repeat("\n", ""),
    "nul": repeat("\0"),
    "nul-lines": lines(lambda i: "\0" * 60000 + "KeyError: 'x'\n"),
    "latin-1": lines(lambda i: "\xe9\xff\x80" * 30 + "\n"),
    "escapes": lines(lambda i: "\x1b[31m" * 2000 + "KeyError: 'x'\n"),
    "half-escapes": lines(lambda i: "\x1b[" * 10000 + "KeyError: 'x'\n"),
    "deep-parentheses": deep("("),
    "deep-brackets": deep("["),
    "deep-json": lines(lambda i: '{"a":' * 10000 + "\n"),
    "deep-pid": deep("(a pid=1) "),
    "deep-rank": deep("[rank1]: "),
    "deep-colour-pid": deep("\x1b[36m(a pid=1)\x1b[0m "),
    "deep-stamps": deep("2024-05-01 12:00:00,123 "),
    "deep-levels": deep("[INFO] "),
    "deep-syslog": deep("May  1 12:00:00 gpu07 a[1]: "),
    "glued-torchrun": lines(lambda i: "[default0]:a[default1]:b" * 2000 + "\n"),
    "glued-rest": lines(lambda i: "[default0]:a" * 4000 + "\n"),
    "glued-torch": lines(lambda i: ("x[rank1]: " + HEADER[:-1]) * 1000 + "\n"),
    "glued-almost": lines(lambda i: "x[rank1]: y" * 4000 + "\n"),
    "headers-in-line": lines(lambda i: HEADER[:-1] * 1500 + "\n"),
    "headers": lines(lambda i: HEADER),
    "frames": lines(lambda i: HEADER if i == 0 else FRAME),
    "frames-alone": lines(lambda i: FRAME),
    "messages": lines(lambda i: (HEADER + FRAME + "KeyError: 'x'\n") if i % 3000 == 0 else f"more of it {i}\n"),
    "tracebacks": lines(lambda i: HEADER + FRAME + f"KeyError: 'k{i}'\n"),
    "chains": lines(lambda i: HEADER + FRAME + f"KeyError: 'k{i}'\n\nDuring handling of the above exception, another "
                    "exception occurred:\n\n"),
    "groups": lines(lambda i: "  " * (i % 500) + "+-+---------------- 1 ----------------\n"),
    "borders": lines(lambda i: "=" * 60 + "\n"),
    "tables": lines(table),
    "boxes": lines(lambda i: f"prterun noticed that process rank {i} with PID {i} on node n{i} exited on\nsignal 11 "
                   "(Segmentation fault).\n"),
    "log-lines": lines(lambda i: f"2026-11-30 09:41:25,625 ERROR train: batch {i}\n"),
    "lanes": lines(lambda i: f"[rank{i % 100000}]: step {i} loss 2\n"),
    "lanes-pid": lines(lambda i: f"(w pid={i}) x\n"),
    "lanes-syslog": lines(lambda i: f"May  1 12:00:00 gpu07 a[{i}]: x\n"),
    "lanes-faults": lines(lane_faults),
    "lanes-open": lines(open_lanes),
    "lanes-reopened": lines(reopened_lanes),
    "faults-one-lane": lines(lambda i: f"[rank3]: KeyError: 'k{i}'\n"),
    "faults-progress": lines(lambda i: f"[rank3]: KeyError: 'k{i}'\n[rank3]: step {i} loss 2\n"),
    "accusers": lines(lambda i: f"[rank{i % 4096}]: RuntimeError: [/x/gloo/transport/tcp/pair.cc:534] Connection closed by "
                      f"peer [10.20.{i % 200}.{i % 250}]:{i % 60000}\n"),
    "watchdogs": lines(lambda i: f"[rank{i % 4096}]:[E501 12:00:08.123456789 ProcessGroupNCCL.cpp:607] [Rank {i % 4096}] "
                       f"Watchdog caught collective operation timeout: WorkNCCL(SeqNum={i}, OpType=ALLREDUCE, "
                       "NumelIn=1, NumelOut=1, Timeout(ms)=600000) ran for 600020 milliseconds before timing out.\n"),
    "agents": lines(agents),
    "srun": lines(lambda i: f"srun: error: n{i}: tasks 0-100000: Exited with exit code {i % 200}\n"),
    "parts": lines(parts),
    "docker": lines(docker),
    "objects": lines(objects),
    "objects-streams": lines(lambda i: '{"job":"j","stream":"s%d","message":"KeyError: %d"}\n' % (i, i)),
    "objects-ranks": lines(lambda i: '{"job":"j","rank":%d,"message":"KeyError: %d"}\n' % (i % 131072, i)),
    "objects-attempts": lines(lambda i: '{"job":"j","rank":1,"attempt":%d,"message":"KeyError: %d"}\n' % (i, i)),
    "objects-jobs": lines(lambda i: '{"job":"j%d","rank":0,"message":"KeyError: %d"}\n' % (i, i)),
    "objects-exits": lines(lambda i: '{"event":"exit","job":"j","rank":%d,"exit_code":1}\n' % (i % 131072)),
    "one-object": lambda size: '{"job":"j","message":"' + "\\u00e9\\n" * (size // 8) + '"}\n',
    "repeated": lines(lambda i: f"(w pid=1) KeyError: {i} [repeated {i}x across cluster]\n"),
    "half-repeated": lines(lambda i: "(w pid=1) " + " [repeated " * 5000 + "\n"),
}


def seconds(cli, path):
    """CPU time of one run: the least of two. 65 is an input without a usable line."""
    best = None
    for _ in range(2):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        done = subprocess.run([cli, "analyze", "--json", path], stdout=subprocess.DEVNULL,
                              stderr=subprocess.PIPE, check=False)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        if done.returncode not in (0, 65):
            sys.exit(f"status {done.returncode}: {done.stderr[:300]!r}")
        used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        best = used if best is None else min(best, used)
    return best


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--cli", required=True)
    p.add_argument("--size", type=int, default=1 << 20, help="bytes of 1x (default 1 MiB)")
    p.add_argument("shapes", nargs="*", metavar="SHAPE", help="default: all of " + ", ".join(SHAPES))
    args = p.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "log")

        def measure(text):
            with open(path, "w", encoding="latin-1") as f:
                f.write(text)
            return seconds(args.cli, path)

        start = measure("nothing\n")
        print(f"start of the program: {start:.3f} s")
        print(f"{'shape':18} {'1x s':>8} {'4x s':>8} {'16x s':>8} {'4x/1x':>7} {'16x/4x':>7}   1x is {args.size} bytes")
        for name in args.shapes or SHAPES:
            t = [max(measure(SHAPES[name](args.size * k)) - start, 0.0005) for k in (1, 4, 16)]
            print(f"{name:18} {t[0]:8.3f} {t[1]:8.3f} {t[2]:8.3f} {t[1] / t[0]:7.1f} {t[2] / t[1]:7.1f}", flush=True)


if __name__ == "__main__":
    main()
