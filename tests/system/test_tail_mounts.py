#!/usr/bin/env python3
"""Tailing on file systems that hang, go away, come back, can't be written, or tell of no change; and the limits of inotify."""
import os
import pathlib
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from support import poll, trial  # noqa: E402
from support.fuse import Fuse, mount, unmount  # noqa: E402
from support.tailing import counter, lines, put, start, steps, wait_counter, wait_lines  # noqa: E402

MS_RDONLY, MS_REMOUNT = 1, 32


def served(t, folder, files):
    try:
        return Fuse(folder, files)
    except OSError as e:
        return t.skip(f"no file system of our own: {e}")


def wait_tail(daemon, what, wanted):
    poll.until(lambda: f"{what} {wanted}: {daemon.status()['tail']}\n{daemon.log_tail(20)}", lambda: daemon.status()["tail"][what] == wanted, 30)


def test_hung_file_system(t):
    """What hangs below a root, and at a root of its own, stops itself alone; the daemon goes on, says so, and ends in time."""
    logs, alone = t.folder / "logs" / "j", t.folder / "alone"
    put(logs / "rank-0.log", steps(0, 5))
    (logs / "hung").mkdir()
    alone.mkdir()
    with served(t, logs / "hung", {"rank-1.log": steps(0, 6)}) as below, served(t, alone, {"rank-2.log": steps(0, 7)}) as root:
        daemon = start(t, logs.parent / "{job}" / "**" / "*.log", alone / "*.log")
        wait_lines(daemon, {"j/rank-0.log": 5, "j/hung/rank-1.log": 6})
        wait_lines(daemon, {"rank-2.log": 7}, "tail-alone")
        below.append("rank-1.log", steps(6, 8))
        root.append("rank-2.log", steps(7, 9))   # nobody tells of it: it is polled
        wait_lines(daemon, {"j/rank-0.log": 5, "j/hung/rank-1.log": 8})
        wait_lines(daemon, {"rank-2.log": 9}, "tail-alone")
        for fs in (below, root):
            fs.hang()
        for fs in (below, root):
            t.check(fs.asked.wait(10), "nobody looks at a file system")
        for n in range(3):   # what is beside it goes on, old and new
            put(logs / "rank-0.log", steps(5 + n, 6 + n))
            put(logs / f"new-{n}" / "rank-3.log", steps(0, 1))
            wait_lines(daemon, {"j/rank-0.log": 6 + n, "j/hung/rank-1.log": 8, **{f"j/new-{k}/rank-3.log": 1 for k in range(n + 1)}})
        wait_tail(daemon, "hung", 2)
        for n in range(6):   # more than there are threads that read text back
            t.same(daemon.api.request("GET", "/v1/jobs/tail-alone/logs?lines=5").status, 200, "text that hangs")
        t.check(b"step 5" in daemon.api.request("GET", "/v1/jobs/j/logs?lines=5").body, "text beside it")
        below.answer()
        wait_tail(daemon, "hung", 1)
        if t.everything:   # the walk that hung rests for 10 s
            below.append("rank-1.log", steps(8, 9))
            poll.until("what came back", lambda: lines(daemon).get("j/hung/rank-1.log") == 9)
        below.hang()
        t.check(not t.everything or below.asked.wait(10), "nobody looks at a file system")
        daemon.stop(seconds=5.5)


def test_hung_from_the_start(t):
    """A root whose file system hangs before the daemon begins: what else is followed is read, and it ends by kill."""
    logs, alone = t.folder / "logs" / "j", t.folder / "alone"
    put(logs / "rank-0.log", steps(0, 5))
    alone.mkdir()
    with served(t, alone, {"rank-1.log": steps(0, 6)}) as fs:
        fs.hang()
        daemon = start(t, alone / "{job}" / "*.log", alone / "*.log", logs.parent / "{job}" / "*.log")
        wait_lines(daemon, {"j/rank-0.log": 5})
        put(logs / "rank-1.log", steps(0, 1))
        wait_lines(daemon, {"j/rank-0.log": 5, "j/rank-1.log": 1})
        fs.answer()
        wait_lines(daemon, {"rank-1.log": 6}, "tail-alone")
        fs.hang()
        t.check(fs.asked.wait(10), "nobody looks at the file system")
        daemon.kill()


def test_mount_that_comes_back(t):
    """A mounted folder goes away under its files and comes back with others, at a root and below one; read-only it is read all the same."""
    logs = t.folder / "logs" / "j"
    place, top = logs / "mnt", t.folder / "top"
    put(logs / "rank-0.log", steps(0, 1))
    for folder in (place, top):
        folder.mkdir()
    mounted = []

    def remount(data):
        for folder in (place, top):
            if folder in mounted:
                unmount(folder)
                mounted.remove(folder)
            if data:
                mount("tmpfs", folder, "tmpfs")
                mounted.append(folder)
                put(folder / "rank-1.log", data)

    try:
        try:
            remount(steps(0, 3))
        except OSError as e:
            t.skip(str(e))
        daemon = start(t, logs.parent / "{job}" / "**" / "*.log", top / "*.log")
        wait_lines(daemon, {"j/rank-0.log": 1, "j/mnt/rank-1.log": 3})
        wait_lines(daemon, {"rank-1.log": 3}, "tail-top")
        remount(None)
        wait_tail(daemon, "files", 1)
        remount(b"another one\n" * 8)
        wait_lines(daemon, {"j/rank-0.log": 1, "j/mnt/rank-1.log": 3, "j/mnt/rank-1.log#2": 8})
        wait_lines(daemon, {"rank-1.log": 3, "rank-1.log#2": 8}, "tail-top")
        put(top / "rank-2.log", steps(0, 2))
        mount("tmpfs", top, "tmpfs", MS_RDONLY | MS_REMOUNT)
        wait_lines(daemon, {"rank-1.log": 3, "rank-1.log#2": 8, "rank-2.log": 2}, "tail-top")
        daemon.restart()   # finds it read-only
        put(logs / "rank-0.log", steps(1, 2))
        wait_lines(daemon, {"j/rank-0.log": 2, "j/mnt/rank-1.log": 3, "j/mnt/rank-1.log#2": 8})
        wait_lines(daemon, {"rank-1.log": 3, "rank-1.log#2": 8, "rank-2.log": 2}, "tail-top")
        daemon.stop()
    finally:
        for folder in mounted:
            unmount(folder)


def test_watched_or_polled(t):
    """Local folders are watched, all of them; those of a file system that says nothing are polled. status has both."""
    logs, far = t.folder / "logs" / "j", t.folder / "far"
    put(logs / "a" / "rank-0.log", steps(0, 1))
    far.mkdir()
    with served(t, far, {"rank-1.log": steps(0, 1)}) as fs:
        daemon = start(t, logs.parent / "{job}" / "**" / "*.log", far / "*.log")
        wait_lines(daemon, {"j/a/rank-0.log": 1})
        wait_lines(daemon, {"rank-1.log": 1}, "tail-far")
        wait_tail(daemon, "watched", 3)
        wait_tail(daemon, "polled", 1)
        for n in range(5):
            put(logs / "a" / "rank-0.log", steps(1 + n, 2 + n))
            fs.append("rank-1.log", steps(1 + n, 2 + n))
            wait_lines(daemon, {"j/a/rank-0.log": 2 + n})
            wait_lines(daemon, {"rank-1.log": 2 + n}, "tail-far")
        put(logs / "b" / "c" / "rank-2.log", steps(0, 1))
        wait_tail(daemon, "watched", 5)
        subprocess.run(["rm", "-r", logs / "b"], check=True)
        wait_tail(daemon, "watched", 3)
        daemon.stop()


def limited(t, name, value):
    """A daemon in a user namespace of its own, where inotify has less (namespaces(7), /proc/sys/user)."""
    if subprocess.run(["unshare", "-U", "-r", "true"], capture_output=True).returncode != 0:
        t.skip("no user namespaces")
    return ("unshare", "-U", "-r", "sh", "-c", f"'echo {value} > /proc/sys/user/{name} && exec \"$@\"'", "sh")


def check_limited(t, daemon, logs, sysctl, watched):
    for n in range(6):
        put(logs / f"d{n}" / f"rank-{n}.log", steps(0, 1 + n))
    wait_lines(daemon, {f"j/d{n}/rank-{n}.log": 1 + n for n in range(6)})
    for n in range(6):
        put(logs / f"d{n}" / f"rank-{n}.log", steps(1 + n, 2 + n))
    wait_lines(daemon, {f"j/d{n}/rank-{n}.log": 2 + n for n in range(6)})
    wait_tail(daemon, "polled", 8 - watched)   # logs, j, d0 to d5
    wait_tail(daemon, "watched", watched)
    t.check(counter(daemon, "tail_unwatched") >= 1, "no limit was counted")
    said = daemon.log_tail(200)
    t.same((said.count("can't be watched"), said.count(sysctl)), (1, 1), f"what is said once:\n{said}")
    daemon.stop()


def test_no_inotify_instance(t):
    """fs.inotify.max_user_instances is reached: said once, counted, and everything is read all the same."""
    logs = t.folder / "logs" / "j"
    (logs).mkdir(parents=True)
    daemon = start(t, logs.parent / "{job}" / "**" / "*.log", prefix=limited(t, "max_inotify_instances", 0))
    check_limited(t, daemon, logs, "fs.inotify.max_user_instances", 0)


def test_no_more_watches(t):
    """fs.inotify.max_user_watches is reached by the fourth folder."""
    logs = t.folder / "logs" / "j"
    (logs).mkdir(parents=True)
    daemon = start(t, logs.parent / "{job}" / "**" / "*.log", prefix=limited(t, "max_inotify_watches", 3))
    check_limited(t, daemon, logs, "fs.inotify.max_user_watches", 3)


if __name__ == "__main__":
    trial.main(__doc__, test_hung_file_system, test_hung_from_the_start, test_mount_that_comes_back, test_watched_or_polled, test_no_inotify_instance, test_no_more_watches)
