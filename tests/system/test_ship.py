#!/usr/bin/env python3
"""`firstfault ship` of what can't be read twice: pipes through a spool on disk, and files that vanish.

The writer of a pipe is never stopped and never ended by ship; what a ship could not deliver the next one does, once.
"""
import os
import pathlib
import resource
import signal
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from support import poll, store, trial  # noqa: E402
from support.daemon import Daemon  # noqa: E402

SECRET = b"hf_" + b"abcdefghijklmnopqrstuvwxyz01234567"


def lines_of(t, n, name="line"):
    return [b"%s %d of %08x" % (name.encode(), i, t.rng.randrange(1 << 32)) for i in range(n)]


def text_of(lines):
    return b"\n".join(lines) + b"\n"


class Away(Daemon):
    """One that isn't started yet. Its clients spool below it."""

    def __init__(self, t, name="daemon", options=()):
        super().__init__(t.daemon, t.folder / name, options)
        t.daemons.append(self)
        self.spool = self.folder / "spool"

    @property
    def env(self):
        return {**super().env, "FIRSTFAULT_SPOOL": str(self.spool)}

    def spooled(self):
        return sorted(p for p in self.spool.glob("*/*.seg")) if self.spool.exists() else []

    def check_delivered(self, t):
        left = sorted(p.name for p in self.spool.iterdir())
        t.same(left, [], "spools that are left")


class Pipe:
    """A ship that reads a pipe whose writer is this test."""

    def __init__(self, t, daemon, *words, preexec=None):
        self.errors = open(t.folder / "ship.err", "ab")
        self.process = subprocess.Popen([t.client, "ship", "--job", "j", "--rank", "3", *words, "-"], stdin=subprocess.PIPE, stderr=self.errors,
                                        env=daemon.env, start_new_session=True, preexec_fn=preexec)
        t.processes.append(self.process)
        self.t = t

    def write(self, raw):
        """All of it, within a time in which no writer of a pipe notices anything."""
        clock = poll.Deadline(0)
        self.process.stdin.write(raw)
        self.process.stdin.flush()
        self.t.check(clock.spent() < 5, f"the writer was held for {clock.spent():.1f} s")

    def end(self, status=0):
        self.process.stdin.close()
        self.t.same(self.process.wait(30), status, f"ship's status; it said {self.said()}")

    def kill(self):
        self.process.kill()
        self.process.wait()

    def said(self):
        return (self.t.folder / "ship.err").read_text(errors="replace")


def check_text(t, daemon, wanted, name="rank-3.pipe"):
    """The text that is stored, byte for byte; the daemon has ended then."""
    daemon.stop()
    texts = {k.split("/")[-1]: v for k, v in store.texts(daemon, "j").items()}
    t.check(texts.get(name) == wanted, lambda: f"text of {name} among {sorted(texts)}: {store.first_difference(texts.get(name, b''), wanted)}")


def heard(daemon):
    """stream -> (lines, was its end said)"""
    return {s["stream"].split("/")[-1]: (s["lines"], item["to_end"]) for item in daemon.api.items("/v1/jobs/j/ranks") for s in item["streams"]}


def test_pipe_without_a_daemon(t):
    daemon = Away(t)
    pipe = Pipe(t, daemon, "--give-up", "100ms")
    lines = [*lines_of(t, 20000), b"token " + SECRET, b"KeyError: 'x'"]
    pipe.write(text_of(lines) + b"unfinished")
    pipe.end(69)
    t.check("stays in" in pipe.said(), pipe.said())
    t.same(daemon.spool.stat().st_mode & 0o777, 0o700, "mode of the folder")
    for path in daemon.spool.rglob("*"):
        t.check(path.is_dir() or SECRET not in path.read_bytes(), f"a secret in {path}")
    daemon.start()
    t.run("ship", "--spool-flush", env=daemon.env)
    daemon.check_delivered(t)
    t.same(heard(daemon), {"rank-3.pipe": (len(lines) + 1, True)}, "lines")
    masked = text_of(lines).replace(SECRET, b"<secret:hf:")  # its length stays
    daemon.stop()
    text = store.texts(daemon, "j").popitem()[1]
    t.check(len(text) == len(text_of(lines)) + 10 and text.startswith(masked[:masked.index(b"<secret")]) and text.endswith(b"KeyError: 'x'\nunfinished"),
            lambda: f"text: {text[-200:]}")


def test_ship_killed(t):
    """Its spool goes with the next ship, as the same source, up to its last whole frame; the stream has not ended."""
    daemon = Away(t)
    pipe = Pipe(t, daemon)
    lines = lines_of(t, 3000)
    pipe.write(text_of(lines))
    poll.until("the spool", lambda: any(lines[-1] in p.read_bytes() for p in daemon.spooled()))
    pipe.kill()
    with open(daemon.spooled()[-1], "ab") as f:
        f.write(b"pSfF" + bytes(t.rng.randrange(256) for _ in range(90)))  # half a frame
    daemon.start()
    other = t.folder / "other.log"
    other.write_bytes(b"step 1\n")
    t.run("ship", "--job", "j", "--rank", "1", other, env=daemon.env)
    daemon.check_delivered(t)
    t.same(heard(daemon), {"rank-3.pipe": (len(lines), False), "other.log": (1, True)}, "lines")
    check_text(t, daemon, text_of(lines))


def test_both_killed(t):
    """What the daemon has is not sent again, what it has not is."""
    daemon = Away(t).start()
    first, second = lines_of(t, 2000, "first"), lines_of(t, 2000, "second")
    pipe = Pipe(t, daemon)
    pipe.write(text_of(first))
    poll.until("the first half", lambda: daemon.status()["counters"]["lines"] == len(first))
    daemon.kill()
    pipe.write(text_of(second))
    poll.until("the second half", lambda: any(b"second 1999" in p.read_bytes() for p in daemon.spooled()))
    pipe.kill()
    daemon.start()
    t.run("ship", "--spool-flush", env=daemon.env)
    daemon.check_delivered(t)
    check_text(t, daemon, text_of(first + second))


def test_daemon_hangs(t):
    """It takes connections and reads nothing: the writer does not notice."""
    daemon = Away(t).start()
    pipe = Pipe(t, daemon)
    lines = lines_of(t, 100)
    pipe.write(text_of(lines))
    poll.until("some lines", lambda: daemon.status()["counters"]["lines"] == len(lines))
    daemon.process.send_signal(signal.SIGSTOP)
    more = lines_of(t, 300000 if t.everything else 60000)
    try:
        pipe.write(text_of(more))
    finally:
        daemon.process.send_signal(signal.SIGCONT)
    pipe.end()
    daemon.check_delivered(t)
    check_text(t, daemon, text_of(lines + more))


def test_spool_full(t):
    """The oldest goes; what is left says that something is missing."""
    daemon = Away(t)
    pipe = Pipe(t, daemon, "--spool-max", "1MiB", "--give-up", "100ms")
    lines = lines_of(t, 100000)
    pipe.write(text_of(lines))
    pipe.end(69)
    size = sum(p.stat().st_size for p in daemon.spooled())
    t.check((1 << 19) < size < (1 << 20) + (1 << 17), f"{size} bytes in a spool of 1 MiB")
    daemon.start()
    t.run("ship", "--spool-flush", env=daemon.env)
    daemon.check_delivered(t)
    t.same(daemon.status()["counters"]["gaps"], 1, "gaps")
    count = heard(daemon)["rank-3.pipe"][0]
    t.check(1000 < count < 50000, f"{count} lines after the gap")
    shown = [x["text"].encode() for x in daemon.api.items("/v1/jobs/j/logs?rank=3&lines=10000")]
    t.check(shown == lines[-10000:], lambda: f"the last lines: {shown[-3:]}")
    daemon.stop()


def test_disk_full(t):
    """The disk takes nothing more (here: no file may be longer than 64 KiB): 4 MiB are kept in memory."""
    daemon = Away(t)

    def full():
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 16, 1 << 16))

    pipe = Pipe(t, daemon, preexec=full)
    lines = lines_of(t, 60000)
    pipe.write(text_of(lines[:50000]))
    daemon.start()
    pipe.write(text_of(lines[50000:]))
    pipe.end()
    daemon.check_delivered(t)
    check_text(t, daemon, text_of(lines))


def test_refused(t):
    """A daemon that takes nothing of it is no reason to end the writer."""
    tokens = t.folder / "tokens"
    tokens.write_text("right-0123456789abcdef 0\n")
    tokens.chmod(0o600)
    daemon = Away(t, options=[("listen", "127.0.0.1:0"), ("token-file", tokens)]).start()
    port = daemon.status()["listeners"]["tcp"][0].rsplit(":", 1)[1]
    pipe = Pipe(t, daemon, "--to", f"127.0.0.1:{port}")
    pipe.write(text_of(lines_of(t, 100)))
    poll.until("its word", lambda: "refuses" in pipe.said())
    pipe.write(text_of(lines_of(t, 50000)))
    t.same(pipe.process.poll(), None, "ship while its writer lives")
    pipe.end(64)
    pipe = Pipe(t, daemon, "--run", "none")  # an id that can't be used: nothing was even tried
    pipe.write(text_of(lines_of(t, 50000)))
    pipe.end(64)


def test_fifo_and_file(t):
    """A FIFO beside a file; both are read to their end."""
    daemon = Away(t).start()
    fifo, log = t.folder / "rank-5.stderr", t.folder / "rank-6.log"
    os.mkfifo(fifo)
    log.write_bytes(text_of(lines_of(t, 10)))
    ship = t.spawn(t.client, "ship", "--job", "j", fifo, log, env=daemon.env)
    with open(fifo, "wb") as f:
        f.write(text_of(lines_of(t, 20)))
    t.same(ship.wait(20), 0, "ship")
    t.same(heard(daemon), {"rank-5.stderr": (20, True), "rank-6.log": (10, True)}, "lines")
    daemon.stop()


def test_too_many_spools(t):
    """Beyond 256 a pipe has no disk; it is said, and delivered all the same."""
    daemon = Away(t).start()
    for i in range(256):
        (daemon.spool / f"{i:032x}").mkdir(parents=True)
    pipe = Pipe(t, daemon)
    lines = lines_of(t, 100)
    pipe.write(text_of(lines))
    pipe.end()
    t.check("256 spools" in pipe.said() and "in memory" in pipe.said(), pipe.said())
    check_text(t, daemon, text_of(lines))


def test_terminated(t):
    """SIGTERM with the pipe still open and no daemon: it ends in time, and what it read is there for the next one."""
    daemon = Away(t)
    pipe = Pipe(t, daemon)
    lines = lines_of(t, 500)
    pipe.write(text_of(lines))
    poll.until("the spool", lambda: any(lines[-1] in p.read_bytes() for p in daemon.spooled()))
    pipe.process.send_signal(signal.SIGTERM)
    t.same(pipe.process.wait(15), 69, f"ship after SIGTERM; it said {pipe.said()}")
    daemon.start()
    t.run("ship", "--spool-flush", env=daemon.env)
    daemon.check_delivered(t)
    check_text(t, daemon, text_of(lines))


def test_files_that_vanish(t):
    """Followed while the daemon is away: rotated twice, then deleted. Every line is sent."""
    daemon = Away(t).start()
    log = t.folder / "rank-3.log"
    lives = [lines_of(t, 200, f"life-{i}") for i in range(3)]
    log.write_bytes(text_of(lives[0]))
    ship = t.spawn(t.client, "ship", "--job", "j", "--rank", "3", "--follow", log, env=daemon.env)
    poll.until("the first lines", lambda: daemon.status()["counters"]["lines"] == 200)
    daemon.kill()
    opened = lambda: [os.readlink(p) for p in pathlib.Path(f"/proc/{ship.pid}/fd").iterdir() if p.is_symlink()]
    for i, lines in enumerate(lives):
        with open(log, "ab") as f:
            f.write(text_of(lines) if i else text_of(lines_of(t, 100, "while-away")))
        poll.until(f"life {i} is open", lambda: str(log) in opened())
        log.rename(t.folder / "rotated")
        (t.folder / "rotated").unlink()
    daemon.start()
    poll.until(lambda: f"all lines: {daemon.status()['runs'] and heard(daemon)} {opened()}", lambda: sum(n for n, _ in heard(daemon).values()) == 700 if daemon.status()["runs"] else False, 30)
    ship.send_signal(signal.SIGTERM)
    t.same(ship.wait(15), 0, "ship")
    t.same(sorted(n for n, _ in heard(daemon).values()), [200, 200, 300], "lines of the three lives")
    daemon.stop()


if __name__ == "__main__":
    trial.main(__doc__, test_pipe_without_a_daemon, test_ship_killed, test_both_killed, test_daemon_hangs, test_spool_full, test_disk_full,
               test_refused, test_fifo_and_file, test_too_many_spools, test_terminated, test_files_that_vanish)
