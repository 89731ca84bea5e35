#!/usr/bin/env python3
"""What files do while they are tailed: rotation, truncation, holes, vanished and unreadable ones, links, foreign owners."""
import ctypes
import os
import pathlib
import signal
import socket
import stat
import subprocess
import sys
import threading

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from support import poll, store, trial  # noqa: E402
from support.tailing import USER, counter, lines, put, start, steps, wait_counter, wait_lines  # noqa: E402

def for_root(t):
    if os.geteuid() != 0:
        t.skip("needs root: files of other users")


# ---- rotation and truncation

def test_rotation_by_rename(t):
    """log becomes log.1, which matches too: its rest is read to its end, nothing twice, also over restarts."""
    logs = t.folder / "logs" / "j"
    log, rotated = logs / "rank-0.log", logs / "rank-0.log.1"
    put(log, steps(0, 100))
    daemon = start(t, logs.parent / "{job}" / "{name}")
    wait_lines(daemon, {"j/rank-0.log": 100})
    with open(log, "ab", buffering=0) as old:
        os.rename(log, rotated)
        put(log, b"another log\n" * 7)
        old.write(steps(100, 150))
    wait_lines(daemon, {"j/rank-0.log": 150, "j/rank-0.log#2": 7})
    put(rotated, steps(150, 160))
    wait_lines(daemon, {"j/rank-0.log": 160, "j/rank-0.log#2": 7})
    daemon.api.request("GET", "/v1/jobs/j/logs?lines=3")
    daemon.restart()
    put(log, b"and on\n")
    wait_lines(daemon, {"j/rank-0.log": 160, "j/rank-0.log#2": 8})
    daemon.stop()
    os.rename(log, logs / "rank-0.log.2")   # while nobody looks
    put(logs / "rank-0.log.2", b"its rest\n" * 2)
    put(log, b"a third log\n")
    daemon.start()
    wait_lines(daemon, {"j/rank-0.log": 160, "j/rank-0.log#2": 10, "j/rank-0.log#3": 1})
    daemon.stop()


def test_rotation_out_of_the_pattern(t):
    """log becomes a name that does not match: what its writer still says is read."""
    logs = t.folder / "logs" / "j"
    log = logs / "rank-0.log"
    put(log, steps(0, 10))
    daemon = start(t, logs.parent / "{job}" / "*.log")
    wait_lines(daemon, {"j/rank-0.log": 10})
    with open(log, "ab", buffering=0) as old:
        os.rename(log, logs / "rank-0.old")
        put(log, b"another log\n")
        wait_lines(daemon, {"j/rank-0.log": 10, "j/rank-0.log#2": 1})
        for n in range(3):
            old.write(steps(10, 15))
            wait_lines(daemon, {"j/rank-0.log": 15 + 5 * n, "j/rank-0.log#2": 1})
    daemon.stop()


def test_truncation(t):
    """A file that shrank, to nothing or to its middle, is a new life of its name."""
    logs = t.folder / "logs" / "j"
    log = logs / "rank-0.log"
    put(log, steps(0, 100))
    daemon = start(t, logs.parent / "{job}" / "{name}")
    wait_lines(daemon, {"j/rank-0.log": 100})
    put(log, b"a second life\n" * 3, "wb")
    wait_lines(daemon, {"j/rank-0.log": 100, "j/rank-0.log#2": 3})
    put(log, steps(0, 200), "wb")   # longer than what was read: its first line tells
    wait_lines(daemon, {"j/rank-0.log": 100, "j/rank-0.log#2": 3, "j/rank-0.log#3": 200})
    os.truncate(log, len(steps(0, 50)))
    wait_lines(daemon, {"j/rank-0.log": 100, "j/rank-0.log#2": 3, "j/rank-0.log#3": 200, "j/rank-0.log#4": 50})
    t.same(counter(daemon, "tail_changed"), 3, "tail_changed")
    daemon.stop()


def test_copytruncate(t):
    """With a writer that appends the file begins anew; one that does not leaves a hole of NUL bytes, which is skipped: offsets stay the file's."""
    logs = t.folder / "logs" / "j"
    log = logs / "rank-0.log"
    daemon = start(t, logs.parent / "{job}" / "*.log")
    boom = b"Traceback (most recent call last):\n  File \"/job/a.py\", line 3, in main\n    x()\nValueError: rank 0 broke\n"
    put(log, b"")
    with open(log, "r+b", buffering=0) as writer:
        writer.write(steps(0, 20000))
        wait_lines(daemon, {"j/rank-0.log": 20000})
        (logs / "rank-0.copy").write_bytes(log.read_bytes())
        os.truncate(log, 0)
        wait_counter(daemon, "tail_changed", 1)
        writer.write(steps(20000, 20010) + boom)
    wait_lines(daemon, {"j/rank-0.log": 20000, "j/rank-0.log#2": 14})
    text = log.read_bytes()
    t.same(text[0], 0, "first byte of the hole")
    daemon.restart()
    put(log, steps(30000, 30005))
    wait_lines(daemon, {"j/rank-0.log": 20000, "j/rank-0.log#2": 19})
    events = [e for e in daemon.api.items("/v1/jobs/j/events") if e["kind"] == "fault"]
    t.same([(e["offset"], e["line"]) for e in events], [(text.index(b"Traceback"), None)], "place of the fault")
    daemon.stop()
    t.same(store.lanes(daemon)["j/rank-0.log#2"].fed, log.stat().st_size, "bytes taken")


def test_small_hole(t):
    """A hole of a few bytes, and a file that was given its size before its text: NUL bytes are not text."""
    logs = t.folder / "logs" / "j"
    small, given = logs / "rank-0.log", logs / "rank-1.log"
    put(small, b"")
    put(given, steps(0, 3) + bytes(5000))
    daemon = start(t, logs.parent / "{job}" / "{name}")
    with open(small, "r+b", buffering=0) as writer:
        writer.write(b"step 1\n")
        wait_lines(daemon, {"j/rank-0.log": 1, "j/rank-1.log": 3})
        os.truncate(small, 0)
        wait_counter(daemon, "tail_changed", 1)
        writer.write(b"step 2\n")
    with open(given, "r+b") as writer:
        writer.seek(len(steps(0, 3)))
        writer.write(steps(3, 9))
    wait_lines(daemon, {"j/rank-0.log": 1, "j/rank-0.log#2": 1, "j/rank-1.log": 9})
    t.same(counter(daemon, "tail_holes"), 1, "tail_holes")
    daemon.stop()


# ---- files and folders that come and go

def test_reused_inode(t):
    """The number of a deleted file is another file's: by its text it is told, also where the daemon was away meanwhile."""
    logs = t.folder / "logs" / "j"
    log = logs / "rank-0.log"
    put(log, steps(0, 100))
    daemon = start(t, logs.parent / "{job}" / "{name}")
    wait_lines(daemon, {"j/rank-0.log": 100})
    number = log.stat().st_ino
    daemon.stop()
    log.unlink()
    for n in range(2000):
        path = logs / f".spare-{n}" if n else log
        put(path, b"another file's text\n" * 300)
        if path.stat().st_ino == number:
            break
    else:
        t.skip("this file system does not use inode numbers again")
    os.replace(path, log)
    for spare in logs.glob(".spare-*"):
        spare.unlink()
    daemon.start()
    wait_lines(daemon, {"j/rank-0.log": 100, "j/rank-0.log#2": 300})
    daemon.stop()


def test_attempt_made_again(t):
    """attempt_0 is removed and made again while it is followed; what stood in the first one stays."""
    logs = t.folder / "logs"
    tree = logs / "j" / "run_1"
    log = tree / "attempt_0" / "0" / "stderr.log"
    daemon = start(t, logs / "{job}" / "**" / "*.log")
    for life in range(1, 4):
        put(log, steps(0, 10 * life))
        name = "j/run_1/attempt_0/0/stderr.log"
        wait_lines(daemon, {name + (f"#{n}" if n > 1 else ""): 10 * n for n in range(1, life + 1)})
        subprocess.run(["rm", "-r", tree / "attempt_0"], check=True)
    daemon.stop()


def test_deep_folders_appear_later(t):
    """Neither the root nor anything below is there at the start."""
    logs = t.folder / "not" / "yet" / "there"
    daemon = start(t, logs / "{job}" / "**" / "*.log")
    put(logs / "j" / "a" / "b" / "c" / "d" / "e" / "rank-0.log", steps(0, 3))
    wait_lines(daemon, {"j/a/b/c/d/e/rank-0.log": 3})
    put(logs / "j" / "a" / "b" / "x" / "y" / "rank-1.log", steps(0, 4))
    os.rename(logs / "j" / "a", logs / "j" / "z")   # with all that is in it
    put(logs / "j" / "z" / "b" / "c" / "d" / "e" / "rank-0.log", steps(3, 5))
    names = lambda: {int(n.split("rank-")[1][0]): k for n, k in lines(daemon).items()}
    poll.until(lambda: f"both: {lines(daemon)}", lambda: names() == {0: 5, 1: 4})
    t.same(len(lines(daemon)), 2, "streams")
    daemon.stop()


def test_many_files_few_descriptors(t):
    """2,000 files at once where the daemon may open 300: all are read, and what grows later too."""
    count = 2000 if t.everything else 500
    logs = t.folder / "logs" / "j"
    daemon = start(t, logs.parent / "{job}" / "{name}", prefix=("prlimit", "--nofile=300:300"))
    for n in range(count):
        put(logs / f"rank-{n}.log", steps(0, 3))
    total = lambda: sum(lines(daemon).values())
    poll.until(lambda: f"{3 * count} lines: {total()}\n{daemon.log_tail(20)}", lambda: total() == 3 * count, 60)
    open_files = len(list(pathlib.Path(f"/proc/{daemon.process.pid}/fd").iterdir()))
    t.check(open_files <= 200, f"{open_files} descriptors are open")
    for n in range(0, count, 3):
        put(logs / f"rank-{n}.log", steps(3, 4))
    grown = 3 * count + len(range(0, count, 3))
    poll.until(lambda: f"{grown} lines: {total()}\n{daemon.log_tail(20)}", lambda: total() == grown, 60)
    t.same(counter(daemon, "tail_failed"), 0, "tail_failed")
    daemon.stop()


def test_unreadable_and_readable_again(t):
    """A file and a folder that a daemon without root's rights can't read: counted and said once each; nothing else waits for them."""
    for_root(t)
    logs = t.folder / "logs" / "j"
    put(logs / "rank-0.log", steps(0, 5))
    put(logs / "rank-1.log", steps(0, 6))
    put(logs / "deep" / "rank-2.log", steps(0, 7))
    for path in (logs.parent, *logs.parent.rglob("*"), logs):
        os.chown(path, USER, USER)
    (logs / "rank-0.log").chmod(0)
    (logs / "deep").chmod(0)
    daemon = start(t, logs.parent / "{job}" / "**" / "{name}", user=USER)
    wait_lines(daemon, {"j/rank-1.log": 6})
    (logs / "rank-1.log").unlink()   # is gone, though a folder beside it hides what it holds
    wait_counter(daemon, "tail_failed", 2)
    poll.until("no file is followed", lambda: daemon.status()["tail"]["files"] == 0)
    (logs / "rank-0.log").chmod(0o600)
    wait_lines(daemon, {"j/rank-0.log": 5, "j/rank-1.log": 6})
    (logs / "deep").chmod(0o700)
    wait_lines(daemon, {"j/rank-0.log": 5, "j/rank-1.log": 6, "j/deep/rank-2.log": 7})
    (logs / "deep").chmod(0)         # what is followed is still there, and not gone
    wait_counter(daemon, "tail_failed", 3)
    said = lambda: daemon.log_tail(200).count("permission denied")
    poll.until("its line of the log", lambda: said() >= 3)
    (logs / "deep").chmod(0o700)
    put(logs / "deep" / "rank-2.log", steps(7, 8))
    wait_lines(daemon, {"j/rank-0.log": 5, "j/rank-1.log": 6, "j/deep/rank-2.log": 8})
    t.same(said(), 3, f"lines of the log\n{daemon.log_tail()}")
    daemon.stop()


def test_patterns_set_at_run_time(t):
    """SIGHUP with other patterns: new folders are followed, those of removed ones are not, what stays goes on untouched, and a bad one changes nothing."""
    logs = t.folder / "logs"
    pattern = lambda name: ("tail", logs / name / "{job}" / "{name}")
    for n, name in enumerate(("one", "two", "three")):
        put(logs / name / name / "rank-0.log", steps(0, 1 + n))
    daemon = t.start(options=[pattern("one"), pattern("two")])

    def reload(*patterns):
        done = lambda: counter(daemon, "reloads") + counter(daemon, "reloads_refused")
        before = done()
        daemon.configure(patterns)
        daemon.process.send_signal(signal.SIGHUP)
        poll.until("the reload", lambda: done() > before)

    wait_lines(daemon, {"one/rank-0.log": 1}, "one")
    wait_lines(daemon, {"two/rank-0.log": 2}, "two")
    reload(pattern("two"), pattern("three"))
    wait_lines(daemon, {"three/rank-0.log": 3}, "three")
    poll.until("two are followed", lambda: daemon.status()["tail"]["files"] == 2)
    put(logs / "one" / "one" / "rank-0.log", steps(1, 9))
    put(logs / "two" / "two" / "rank-0.log", steps(2, 9))
    wait_lines(daemon, {"two/rank-0.log": 9}, "two")
    t.same(lines(daemon, "one"), {"one/rank-0.log": 1}, "lines of what was removed")
    reload(("tail", "not/absolute"), pattern("one"))
    put(logs / "three" / "three" / "rank-0.log", steps(3, 9))
    wait_lines(daemon, {"three/rank-0.log": 9}, "three")
    reload(pattern("one"), pattern("two"), pattern("three"), ("tail", logs / "**" / "{job}" / "{name}"))   # twice the same files
    wait_lines(daemon, {"one/rank-0.log": 9}, "one")
    for name in ("one", "two", "three"):
        put(logs / name / name / "rank-0.log", steps(9, 10))
        wait_lines(daemon, {f"{name}/rank-0.log": 10}, name)
    daemon.stop()


# ---- who may be followed

def test_links_of_root_and_of_users(t):
    """Root's own links are followed, as /var/log/containers -> pods; a user's are not, nor root's one that goes on through a user's."""
    for_root(t)
    pods, links = t.folder / "pods", t.folder / "containers"
    links.mkdir()
    put(pods / "a" / "0.log", steps(0, 5))
    put(pods / "b" / "0.log", steps(0, 6))
    put(pods / "secret.log", b"RuntimeError: CUDA error: nobody may read this\n")
    (pods / "a" / "current.log").symlink_to("0.log")
    (links / "rank-0.log").symlink_to(pods / "a" / "current.log")   # two links of root's
    (links / "rank-1.log").symlink_to("../pods/b/0.log")
    (links / "rank-2.log").symlink_to(pods / "secret.log")
    os.lchown(links / "rank-2.log", USER, USER)
    (pods / "users.log").symlink_to("secret.log")
    os.lchown(pods / "users.log", USER, USER)
    (links / "rank-3.log").symlink_to(pods / "users.log")
    (links / "rank-4.log").symlink_to(t.folder / "nothing")
    os.mkfifo(pods / "pipe")
    (links / "rank-5.log").symlink_to(pods / "pipe")
    (links / "rank-6.log").symlink_to(pods)
    daemon = start(t, links / "{name}")
    wait_lines(daemon, {"rank-0.log": 5, "rank-1.log": 6}, "tail-containers")
    wait_counter(daemon, "tail_refused", 3)
    put(pods / "a" / "0.log", steps(5, 9))
    wait_lines(daemon, {"rank-0.log": 9, "rank-1.log": 6}, "tail-containers")
    put(pods / "b" / "1.log", b"another\n")
    (links / "rank-1.log").unlink()
    (links / "rank-1.log").symlink_to("../pods/b/1.log")
    wait_lines(daemon, {"rank-0.log": 9, "rank-1.log": 6, "rank-1.log#2": 1}, "tail-containers")
    said = daemon.api.request("GET", "/v1/jobs/tail-containers/logs?lines=100").body
    t.check(b"step 8" in said and b"another" in said, f"the text behind links: {said[:2000]}")
    daemon.stop()


def test_foreign_owner(t):
    """A file of another user than the run's does not join it, be it there from the start or given away later."""
    for_root(t)
    logs = t.folder / "logs" / "j"
    for n, owner in enumerate((USER, USER, 1234, 0)):
        put(logs / f"rank-{n}.log", steps(0, 3 + n))
        os.chown(logs / f"rank-{n}.log", owner, owner)
    os.rename(logs, t.folder / "held")
    logs.mkdir()
    daemon = start(t, logs.parent / "{job}" / "{name}")
    os.rename(t.folder / "held" / "rank-0.log", logs / "rank-0.log")
    wait_lines(daemon, {"j/rank-0.log": 3})
    for n in (1, 2, 3):
        os.rename(t.folder / "held" / f"rank-{n}.log", logs / f"rank-{n}.log")
    wait_lines(daemon, {"j/rank-0.log": 3, "j/rank-1.log": 4})
    wait_counter(daemon, "tail_foreign", 2)
    os.chown(logs / "rank-1.log", 1234, 1234)
    wait_counter(daemon, "tail_foreign", 3)
    put(logs / "rank-1.log", steps(4, 9))
    os.chown(logs / "rank-2.log", USER, USER)
    wait_lines(daemon, {"j/rank-0.log": 3, "j/rank-1.log": 4, "j/rank-2.log": 5})
    os.chown(logs / "rank-1.log", USER, USER)
    wait_lines(daemon, {"j/rank-0.log": 3, "j/rank-1.log": 9, "j/rank-2.log": 5})
    t.same(daemon.api.get("/v1/jobs/j").json()["owner"], USER, "owner")
    daemon.stop()


def test_no_regular_files(t):
    """Pipes, sockets, devices, hard links, links of a user in a middle component: none is opened, each is counted once."""
    for_root(t)
    logs = t.folder / "logs" / "j"
    put(logs / "rank-0.log", steps(0, 5))
    os.mkfifo(logs / "rank-1.log")
    with socket.socket(socket.AF_UNIX) as s:
        s.bind(str(logs / "rank-2.log"))
        wanted = 4
        try:
            os.mknod(logs / "rank-3.log", stat.S_IFCHR | 0o600, os.makedev(1, 9))   # urandom: endless
            wanted += 1
        except PermissionError:
            pass
        put(t.folder / "outside" / "rank-4.log", b"not for anybody\n")
        os.link(t.folder / "outside" / "rank-4.log", logs / "rank-4.log")
        (logs / "rank-5.log").symlink_to(t.folder / "outside" / "rank-4.log")
        os.lchown(logs / "rank-5.log", USER, USER)
        (logs / "linked").symlink_to(t.folder / "outside")
        daemon = start(t, logs.parent / "{job}" / "**" / "{name}.log")
        wait_lines(daemon, {"j/rank-0.log": 5})
        wait_counter(daemon, "tail_refused", wanted)
        for n in range(5):   # further walks
            put(logs / f"rank-{10 + n}.log", steps(0, 1))
            poll.until("a walk", lambda: len(lines(daemon)) == n + 2)
        t.same(counter(daemon, "tail_refused"), wanted, "tail_refused after more walks")
        poll.until("the last line", lambda: sum(lines(daemon).values()) >= 10)  # its file is known before
        t.same(sum(lines(daemon).values()), 10, "lines")
        daemon.stop()


def test_swapped_while_looked_at(t):
    """Names that are a file in one moment and a user's link to a secret, or a pipe, in the next, many times while they are found:
    the secret is not read, and who waits to write into the pipe waits on."""
    for_root(t)
    logs = t.folder / "logs" / "j"
    secret, pipe = t.folder / "secret", t.folder / "pipe"
    secret.write_bytes(b"nobody may read this line\n" * 10)
    os.mkfifo(pipe)
    put(logs / "rank-0.log", steps(0, 5))
    daemon = start(t, logs.parent / "{job}" / "{name}")
    wait_lines(daemon, {"j/rank-0.log": 5})
    let_in = threading.Event()

    def write():
        descriptor = os.open(pipe, os.O_WRONLY)
        let_in.set()
        os.close(descriptor)

    writer = threading.Thread(target=write)
    writer.start()
    exchange = ctypes.CDLL(None).renameat2
    for n in range(1, 61):
        spare, name = t.folder / "spare", logs / f"rank-{n}.log"
        if n % 2:
            spare.symlink_to(secret)
            os.lchown(spare, USER, USER)
        else:
            os.link(pipe, spare)
        put(name, b"step 1\n")
        late = poll.Deadline(0.012)
        while not late.over():
            for _ in range(50):
                exchange(-100, os.fsencode(spare), -100, os.fsencode(name), 2)   # AT_FDCWD, RENAME_EXCHANGE
        for path in (spare, name):
            path.unlink()
    put(logs / "last.log", steps(0, 2))
    poll.until("the last file", lambda: lines(daemon).get("j/last.log") == 2)
    reached = let_in.is_set()
    os.close(os.open(pipe, os.O_RDONLY | os.O_NONBLOCK))
    writer.join()
    daemon.stop()
    t.check(not reached, "the pipe had a reader")
    said = b"".join(p.read_bytes() for p in daemon.state.rglob("*") if p.is_file())
    t.check(b"nobody may read" not in said, "text behind a link")


def test_odd_names(t):
    """Names that are no UTF-8, very long, with control characters or dots: what a placeholder may be is followed, the rest not; nothing else suffers."""
    logs = t.folder / "logs"
    good = {"rank-0.log": 1, "x" * 120 + ".log": 2, "a@b+c-d_e.log": 3, "...log": 4, "a" + "." * 20 + ".log": 5}
    bad = [b"ra nk.log", b"\xff\xfe.log", b"rank\n1.log", b"\x1b[31m.log", "größe.log".encode(), b"y" * 129 + b".log", b"y" * 251 + b".log", b"{name}.log", b"%s.log"]
    for name, n in good.items():
        put(logs / "j" / name, steps(0, n))
    for name in bad:
        with open(os.fsencode(logs / "j") + b"/" + name, "wb") as f:
            f.write(b"step 1\n")
    with open(os.fsencode(logs / "free") + b"-\xff.txt", "wb") as f:   # a star takes any byte
        f.write(steps(0, 9))
    daemon = start(t, logs / "{job}" / "{name}.log", logs / "*.txt")
    wait_lines(daemon, {f"j/{name}": n for name, n in good.items()})
    poll.until(lambda: f"{daemon.api.items('/v1/jobs')}", lambda: len(daemon.api.items("/v1/jobs")) == 2)
    daemon.restart()
    with open(os.fsencode(logs / "free") + b"-\xff.txt", "ab") as f:
        f.write(steps(9, 12))
    poll.until("twelve lines", lambda: daemon.api.get("/v1/jobs/tail-logs").json() and sum_lines(daemon, "tail-logs") == 12)
    daemon.stop()


def sum_lines(daemon, job):
    db = daemon.store()
    try:
        db.text_factory = bytes
        return db.execute("SELECT sum(l.lines) FROM lane l JOIN run r ON r.number = l.run WHERE r.job = ?", (job,)).fetchone()[0]
    finally:
        db.close()


if __name__ == "__main__":
    trial.main(__doc__, test_rotation_by_rename, test_rotation_out_of_the_pattern, test_truncation, test_copytruncate, test_small_hole,
               test_reused_inode, test_attempt_made_again, test_deep_folders_appear_later, test_many_files_few_descriptors,
               test_patterns_set_at_run_time,
               test_unreadable_and_readable_again, test_links_of_root_and_of_users, test_foreign_owner, test_no_regular_files,
               test_swapped_while_looked_at, test_odd_names)
