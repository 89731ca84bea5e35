"""What every system test is: functions that take a Trial, in a private folder, with a printed seed.

    if __name__ == "__main__":
        trial.main(__doc__, test_this, test_that)

A function fails by an exception and is skipped by `t.skip(reason)`. Whatever it started is stopped, and when it failed
the end of its daemons' logs is shown. Exit status: 0, 1 when one failed, 77 when all were skipped.
"""
import argparse
import json
import os
import pathlib
import random
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import traceback

from support import poll
from support.daemon import Daemon, environment


class Skip(Exception):
    pass


class Trial:
    def __init__(self, options, folder, name):
        self.client = str(options.client.resolve())
        self.daemon = str(options.daemon.resolve())
        self.events = str(options.events.resolve()) if options.events else None
        self.failing = str(options.failing.resolve()) if options.failing else None
        self.everything = options.all or os.environ.get("FF_ALL") == "yes"
        self.seed = options.seed
        self.rng = random.Random(f"{options.seed} {name}")
        self.folder = pathlib.Path(folder)
        self.daemons = []
        self.processes = []

    def skip(self, reason):
        raise Skip(reason)

    def check(self, condition, text):
        if not condition:
            raise AssertionError(text() if callable(text) else text)

    def same(self, got, wanted, text):
        if got != wanted:
            raise AssertionError(f"{text}: got {shown(got)}, wanted {shown(wanted)}")

    def start(self, name="daemon", options=(), state=None, prefix=()):
        daemon = Daemon(self.daemon, self.folder / name, options, state, prefix)
        self.daemons.append(daemon)
        return daemon.start()

    def run(self, *arguments, input=b"", status=(0,), timeout=60, env=None, prefix=()):
        """The client, with its output; status: the exit statuses that are right, None: all but a crash."""
        command = [*prefix, self.client, *map(str, arguments)]
        done = subprocess.run(command, input=input, capture_output=True, timeout=timeout, env=env or environment(self.folder))
        if (done.returncode not in status) if status is not None else crashed(done):
            raise AssertionError(f"{' '.join(command)}: exit status {done.returncode}\nstdout: {tail(done.stdout)}\nstderr: {tail(done.stderr)}")
        return done

    def json(self, *arguments, **more):
        out = self.run(*arguments, **more).stdout
        try:
            return json.loads(out)
        except ValueError as e:
            raise AssertionError(f"{arguments}: no JSON ({e}): {tail(out)}") from None

    def spawn(self, *command, env=None, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL):
        process = subprocess.Popen([str(c) for c in command], stdin=subprocess.DEVNULL, stdout=stdout, stderr=stderr,
                                   env=env or environment(self.folder), start_new_session=True)
        self.processes.append(process)
        return process

    def finish(self):
        for process in self.processes:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        for daemon in self.daemons:
            daemon.kill()


def shown(value):
    text = value.decode(errors="replace") if isinstance(value, bytes) else value if isinstance(value, str) else repr(value)
    return text if len(text) < 1500 else text[:700] + " [...] " + text[-700:]


def tail(raw, n=3000):
    return raw[-n:].decode(errors="replace")


def crashed(done):
    """Ended by a signal, or by a sanitizer."""
    return done.returncode < 0 or b"Sanitizer" in done.stderr or b"runtime error:" in done.stderr or done.returncode in (70, 134, 139)


def difference(a, b):
    """Where two JSON texts part, for people."""
    try:
        a, b = json.loads(a), json.loads(b)
    except ValueError:
        return f"\n  {shown(a)}\n  {shown(b)}"
    out = []

    def walk(path, x, y):
        if type(x) is type(y) is dict:
            for key in sorted({*x, *y}):
                walk(f"{path}.{key}", x.get(key), y.get(key))
        elif type(x) is type(y) is list and len(x) == len(y):
            for i, pair in enumerate(zip(x, y)):
                walk(f"{path}[{i}]", *pair)
        elif x != y:
            out.append(f"\n  {path or '.'}: {shown(json.dumps(x))[:400]}  |  {shown(json.dumps(y))[:400]}")

    walk("", a, b)
    return "".join(out[:12]) + (f"\n  and {len(out) - 12} more" if len(out) > 12 else "") or " only in spelling or order of keys"


def files_limit(wanted=4096):
    """Many connections at once: as many files as the hard limit gives."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
    return wanted


def arguments(doc, **more):
    parser = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--client", type=pathlib.Path, required=True)
    parser.add_argument("--daemon", type=pathlib.Path, required=True)
    parser.add_argument("--events", type=pathlib.Path, help="ff-events, for tests of the catalogue")
    parser.add_argument("--failing", type=pathlib.Path, help="the library that makes writes fail (failing.c)")
    parser.add_argument("--seed", type=int, default=None)
    parser.add_argument("--all", action="store_true", help="the long tier, all that is sampled otherwise; also FF_ALL=yes")
    parser.add_argument("--only", help="functions whose name holds this")
    options = parser.parse_args()
    if options.seed is None:
        options.seed = random.SystemRandom().randrange(1 << 32)
    return options


def main(doc, *functions):
    options = arguments(doc)
    print(f"seed {options.seed}", flush=True)
    files_limit()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # so that finally runs
    failed = skipped = ran = 0
    for function in functions:
        name = function.__name__.removeprefix("test_")
        if options.only and options.only not in function.__name__:
            continue
        folder = pathlib.Path(tempfile.mkdtemp(prefix="ff-"))  # short: a socket's path has 108 bytes
        t = Trial(options, folder, name)
        clock = poll.Deadline(0)
        ran += 1
        try:
            function(t)
            print(f"ok {name} {clock.spent():.1f} s", flush=True)
        except Skip as e:
            skipped += 1
            print(f"skipped {name}: {e}", flush=True)
        except Exception:
            failed += 1
            print(f"FAILED {name} (seed {options.seed})\n{traceback.format_exc()}", flush=True)
            for daemon in t.daemons:
                print(f"-- log of {daemon.folder.name}\n{daemon.log_tail()}", flush=True)
        finally:
            t.finish()
            shutil.rmtree(folder, ignore_errors=True)
    if not ran:
        print(f"no function's name holds {options.only}", flush=True)
    sys.exit(1 if failed or not ran else 77 if skipped == ran else 0)
