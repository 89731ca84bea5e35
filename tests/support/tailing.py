"""What tests of tailing share: files that grow, a daemon that follows them, waiting for lines and counters."""
import os
import shlex
import sqlite3

from support import poll, store
from support.daemon import Daemon

USER = 65534  # nobody: without rights over what root made


def put(path, data, mode="ab"):
    path.parent.mkdir(parents=True, exist_ok=True)
    with open(path, mode) as f:
        f.write(data)


def steps(first, last):
    return b"".join(b"step %d loss 2.25\n" % i for i in range(first, last))


def behind(folder, program, prefix):
    """A program that is another one, started by what stands before it."""
    wrapper = folder / "wrapper"
    wrapper.write_text(f"#!/bin/sh\nexec {' '.join(prefix)} {program} \"$@\"\n")
    wrapper.chmod(0o755)
    return wrapper


def start(t, *patterns, prefix=(), user=None):
    """A daemon that follows these; under another user or behind another program where that is wanted."""
    options = [("tail", p) for p in patterns]
    if user is not None:
        prefix = ("setpriv", f"--reuid={user}", f"--regid={user}", "--clear-groups", *prefix)
    if not prefix:
        return t.start(options=options)
    daemon = Daemon(behind(t.folder, t.daemon, prefix), t.folder / "daemon", options)
    if user is not None:
        t.folder.chmod(0o755)
        for path in (daemon.folder, *daemon.folder.rglob("*")):
            os.chown(path, user, user)
    t.daemons.append(daemon)
    return daemon.start()


def lines(daemon, job="j"):
    try:
        return {name: lane.lines for name, lane in store.lanes(daemon, job).items()}
    except sqlite3.OperationalError:  # between two looks at a store that is written
        return {}


def wait_lines(daemon, wanted, job="j"):
    poll.until(lambda: f"lines {wanted}: {lines(daemon, job)}\n{daemon.log_tail(20)}", lambda: lines(daemon, job) == wanted, 30)


def counter(daemon, name):
    return daemon.status()["counters"][name]


def wait_counter(daemon, name, wanted):
    poll.until(lambda: f"{name} {wanted}: {counter(daemon, name)}\n{daemon.log_tail(20)}", lambda: counter(daemon, name) == wanted)
