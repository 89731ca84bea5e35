#!/usr/bin/env python3
"""What a state folder may meet: the store of an older or newer program, damage, a disk without room, one that fails."""
import errno
import json
import pathlib
import re
import shutil
import socket
import sqlite3
import subprocess
import sys
import threading

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from support import poll, store, trial, world  # noqa: E402
from support.daemon import environment  # noqa: E402
from support.replay import Feed  # noqa: E402

SCHEMA = pathlib.Path(__file__).resolve().parents[2] / "schema" / "sql"
APPLICATION_ID = 0x46466C74


def fed(t, daemon, job="old"):
    """A job that has ended in this daemon's store; its verdict."""
    replay = world.storm(t.seed, job, 3, 60 << 10)
    feed = Feed(daemon, replay, job).start()
    feed.send(chunk=64)
    return feed.finish()


def age(path, files=1, rows=0):
    """The store as the first `files` of schema/sql make it, with what it holds now; rows: so many events more."""
    new = path.with_suffix(".new")
    path.rename(new)
    db = sqlite3.connect(path, isolation_level=None)
    for file in sorted(SCHEMA.glob("*.sql"))[:files]:
        db.executescript(file.read_text(encoding="utf-8"))
    db.execute(f"PRAGMA user_version={files}")
    db.execute(f"PRAGMA application_id={APPLICATION_ID}")
    db.execute("ATTACH ? AS new", (str(new),))
    db.execute("BEGIN")
    for (table,) in db.execute("SELECT name FROM main.sqlite_schema WHERE type='table'").fetchall():
        columns = ",".join(row[1] for row in db.execute(f"PRAGMA main.table_info({table})"))
        db.execute(f"INSERT INTO main.{table}({columns}) SELECT {columns} FROM new.{table}")
    columns = [row[1] for row in db.execute("PRAGMA main.table_info(event)")]
    other = ",".join({"offset": "1000000000+value", "text": "randomblob(2000)"}.get(c, c) for c in columns)
    db.execute(f"WITH RECURSIVE s(value) AS (SELECT 1 UNION ALL SELECT value + 1 FROM s WHERE value < {rows}) "
               f"INSERT INTO event SELECT {other} FROM (SELECT * FROM event LIMIT 1), s WHERE {rows} > 0")
    db.execute("COMMIT")
    db.execute("DETACH new")
    db.execute("PRAGMA journal_mode=WAL").fetchall()
    db.close()
    new.unlink()


def ends(daemon, status, *words):
    """It says why it does not start."""
    daemon.spawn()
    poll.until("the end of a daemon that can't start", lambda: daemon.process.poll() is not None, 30)
    log = daemon.log_tail()
    if daemon.process.returncode != status or "Sanitizer" in log:
        raise AssertionError(f"ended with {daemon.process.returncode}, wanted {status}:\n{log}")
    for word in words:
        if word not in log:
            raise AssertionError(f"{word!r} is not in the message: {log}")


def tables(path):
    """Everything in a store that nobody has open, but who opened it when."""
    db = sqlite3.connect(f"file:{path}?immutable=1", uri=True)
    try:
        return {name: sorted(map(repr, db.execute(f"SELECT * FROM {name}"))) for (name,) in
                db.execute("SELECT name FROM sqlite_schema WHERE type='table' AND name<>'upgrade'")}
    finally:
        db.close()


def version(path):
    db = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
    try:
        return db.execute("PRAGMA user_version").fetchone()[0]
    finally:
        db.close()


def test_older_store(t):
    """It is copied, then brought up to date; the copy is a store that the older program would take."""
    daemon = t.start()
    wanted = fed(t, daemon)
    daemon.stop()
    path = daemon.store_path()
    now = version(path)
    age(path)
    old = tables(path)
    copy = path.with_name("store.db.v1")
    daemon.start()
    t.same(daemon.api.verdict("old").rstrip(b"\n"), wanted, "the verdict after a migration")
    daemon.stop()
    t.same(version(path), now, "schema of the store")
    t.same(tables(copy), old, "what the copy holds")
    t.same(copy.stat().st_mode & 0o777, 0o600, "mode of the copy")
    t.same(sorted(p.name for p in daemon.state.glob("store.db.v*")), ["store.db.v1"], "copies")
    db = sqlite3.connect(path)
    steps = db.execute("SELECT from_version, to_version FROM upgrade").fetchall()
    t.same(steps[1 - now:], [(i, i + 1) for i in range(1, now)], "what the store remembers of it")
    db.close()
    daemon.start()
    t.same(sorted(p.name for p in daemon.state.glob("store.db.v*")), ["store.db.v1"], "copies after another start")
    daemon.stop()


def test_migration_killed(t):
    """kill -9 while it copies or migrates: the next start does it all again, and nothing is lost."""
    daemon = t.start()
    wanted = fed(t, daemon)
    daemon.stop()
    path = daemon.store_path()
    copy, part = path.with_name("store.db.v1"), path.with_name("store.db.v1.part")
    age(path, rows=2000)
    old = tables(path)
    begun = path.read_bytes()
    now = None
    for what in (part.exists, copy.exists, lambda: copy.exists() and path.with_name("store.db-wal").stat().st_size > 0):
        for leftover in daemon.state.glob("store.db*"):
            leftover.unlink()
        path.write_bytes(begun)
        daemon.spawn()
        # a quick machine may be done before it was seen at work: then the kill comes just after
        poll.until("a migration at work", lambda: what() or daemon.api.alive("/readyz"), 30, 0.0002)
        daemon.kill()
        now = version(path)
        t.check(now in (1, len(list(SCHEMA.glob("*.sql")))), f"schema {now} of a store whose migration was killed")
        daemon.start()
        t.same(json.loads(daemon.api.verdict("old"))["summary"], json.loads(wanted)["summary"], "the verdict after a killed migration")
        daemon.stop()
        got = tables(path)
        t.same(len(got["event"]), len(old["event"]), "events after a killed migration")
        t.check(not part.exists() and copy.exists(), f"copies: {sorted(p.name for p in daemon.state.iterdir())}")


def on_tmpfs(t, size, body):
    disk = t.folder / "disk"
    disk.mkdir()
    done = subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size},mode=0700", "tmpfs", str(disk)], capture_output=True, text=True)
    if done.returncode:
        t.skip(f"no mounts here: {done.stderr.strip()[:100]}")
    try:
        body(disk)
    finally:
        for daemon in t.daemons:
            daemon.kill()
        subprocess.run(["umount", "-l", str(disk)], check=True)


def test_migration_without_room(t):
    """No room for the copy: refused, and the store is as it was; with room it goes on."""
    def body(disk):
        daemon = t.start(state=disk / "state")
        wanted = fed(t, daemon)
        daemon.stop()
        path = daemon.store_path()
        age(path, rows=500)
        old = path.read_bytes()
        filler = disk / "filler"
        with open(filler, "wb", buffering=0) as f:
            try:
                while f.write(bytes(4096)):
                    pass
            except OSError:
                f.truncate(f.tell() - (128 << 10))  # for SQLite's own small files
        ends(daemon, 74, "store.db.v1", "make room")
        t.check(path.read_bytes() == old, "the store was changed")
        t.same([p.name for p in daemon.state.glob("store.db.v*")], [], "copies")
        filler.unlink()
        daemon.start()
        t.same(json.loads(daemon.api.verdict("old"))["summary"], json.loads(wanted)["summary"], "the verdict after room was made")
        daemon.stop()
    on_tmpfs(t, "12m", body)


class Failing:
    """A daemon whose writes fail as `fail` says, until `mend`."""

    def __init__(self, t, name="failing", **more):
        self.switch = t.folder / "fails"
        sanitizer = environment(t.folder)["ASAN_OPTIONS"] + ":verify_asan_link_order=0"
        self.daemon = t.start(name, prefix=("env", f"LD_PRELOAD={t.failing}", f"FF_FAIL_SWITCH={self.switch}", f"ASAN_OPTIONS={sanitizer}"), **more)

    def fail(self, path, call, number):
        part = self.switch.with_name("fails.part")
        part.write_text(f"{path} {call} {number}")
        part.rename(self.switch)

    def mend(self):
        self.switch.unlink()

    def trouble(self):
        return self.daemon.status()["store"]["trouble"]


HAZARDS = (
    ("io_error_in_the_log", "store.db-wal", "write", errno.EIO, ("store.db", "disk fails")),
    ("io_error_at_sync", "store.db-wal", "sync", errno.EIO, ("store.db", "disk fails")),
    ("io_error_in_text", ".seg", "write", errno.EIO, (".seg", "disk fails")),
    ("io_error_at_sync_of_text", ".seg", "sync", errno.EIO, (".seg", "disk fails")),
    ("read_only", "/state/", "write", errno.EROFS, ("/state/", "read-only|disk fails")),  # SQLite does not always hand the number on
    ("quota", ".seg", "write", errno.EDQUOT, (".seg", "quota")),
)


def through(t, hazards):
    """Nothing is acknowledged meanwhile, status says which file and what to do, and when it is over all goes on: no byte is lost,
    none is there twice."""
    f = Failing(t)
    daemon = f.daemon
    replay = world.storm(t.seed, "failing", 3, 60 << 10)
    wanted = replay.analyze(t)
    feed = Feed(daemon, replay, "failing").start()
    steps = [[len(s.lanes[0].parts) * (i + 1) // len(hazards) for s in feed.senders] for i in range(len(hazards))]
    for limits, (name, path, call, number, words) in zip(steps, hazards):
        before = daemon.status()["store"]["failures"]
        f.fail(path, call, number)
        sending = threading.Thread(target=feed.send, args=(limits, 64), daemon=True)  # it may have to wait
        sending.start()
        poll.until(lambda: f"{name}: trouble: {daemon.status()['store']}", f.trouble, 20)
        for word in words:
            t.check(re.search(word, f.trouble()), f"{name}: {word!r} is not in {f.trouble()!r}")
        t.check(not daemon.status()["store"]["reading"], f"{name}: it reads on")
        commits, retries = (daemon.status()["store"][key] for key in ("commits", "retries"))
        poll.until(f"{name}: another try", lambda: daemon.status()["store"]["retries"] > retries, 20)
        t.same(daemon.status()["store"]["commits"], commits, f"{name}: commits, and so acks, meanwhile")
        f.mend()
        sending.join(30)
        poll.until(lambda: f"{name}: it goes on: {f.trouble()}", lambda: not f.trouble(), 20)
        feed.wait_done()
        t.same(daemon.status()["store"]["failures"], before + 1, f"{name}: failures that are counted")
    got = feed.finish()
    t.check(got == wanted, lambda: f"analyze | daemon on a failing disk{trial.difference(wanted, got)}")
    daemon.kill()
    daemon.start()
    t.same(daemon.api.verdict("failing").rstrip(b"\n"), wanted, "the verdict after kill -9")
    daemon.stop()
    texts = store.texts(daemon, "failing")
    for k, s in enumerate(replay.streams):
        whole = b"".join(text + b"\n" for _, n, text in replay.rows if n == k)
        t.check(texts[s["name"]] == whole, lambda: f"text of {s['name']}: {store.first_difference(texts[s['name']], whole)}")


def test_io_error(t):
    """Of the store's log and of a segment file, at a write and at a sync."""
    through(t, [h for h in HAZARDS if h[3] == errno.EIO and (t.everything or h[0] == "io_error_in_the_log")])


def test_read_only(t):
    """A file system that turns read-only under the daemon, as one does after an error."""
    through(t, [h for h in HAZARDS if h[3] == errno.EROFS])


def test_quota(t):
    if not t.everything:
        t.skip("as a full disk: --all")
    through(t, [h for h in HAZARDS if h[3] == errno.EDQUOT])


def test_io_error_that_stays(t):
    """After 30 s it ends with 1, for a supervisor to see; what was acknowledged is there."""
    if not t.everything:
        t.skip("takes 30 s: --all")
    f = Failing(t)
    replay = world.storm(t.seed, "stays", 3, 60 << 10)
    feed = Feed(f.daemon, replay, "stays").start()
    feed.send(feed.half())
    feed.wait_done()
    acked = {s.hello["streams"][0]: s.lanes[0].done for s in feed.senders}
    f.fail("store.db-wal", "write", errno.EIO)
    feed.send()
    poll.until("its end", lambda: f.daemon.process.poll() is not None, 60)
    t.same(f.daemon.process.returncode, 1, "exit status")
    f.mend()
    stored = {name: lane.fed for name, lane in store.lanes(f.daemon, "stays").items()}
    t.check(all(stored[name] >= n for name, n in acked.items()), f"{stored} {acked}")


def test_set_aside(t):
    """A damaged store is refused and left byte for byte; --set-aside keeps it under another name and begins with an empty one;
    a sound one is not set aside."""
    daemon = t.start()
    wanted = fed(t, daemon)
    daemon.kill()
    path = daemon.store_path()
    with sqlite3.connect(path) as db:
        db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
    db.close()
    kept = path.read_bytes()
    segments = {p.relative_to(daemon.state / "segments"): p.read_bytes() for p in store.segment_files(daemon)}
    command = (t.daemon, "--config", daemon.config, "--set-aside")
    done = subprocess.run(command, capture_output=True, timeout=30, env=environment(t.folder))
    t.same((done.returncode, b"sound" in done.stderr), (64, True), "--set-aside of a sound store")
    for name, at in (("front", 0), ("inside", kept.index(b"cuda-oom") & ~4095)):
        path.write_bytes(kept[:at] + b"no database" * 400 + kept[at + 4400:])
        spoilt = path.read_bytes()
        ends(daemon, 74, "damaged", "--set-aside")
        t.check(path.read_bytes() == spoilt, f"{name}: a damaged store was changed")
    process = t.spawn(*command)
    poll.until("an empty store", daemon.api.alive, 30)
    t.same(daemon.api.items("/v1/jobs"), [], "jobs of the empty store")
    fed(t, daemon, "new")
    process.terminate()
    t.same(process.wait(10), 0, "exit status")
    t.check((daemon.state / "store.db.damaged-1").read_bytes() == spoilt, "the store that was set aside")
    t.same({p.relative_to(daemon.state / "segments.damaged-1"): p.read_bytes() for p in (daemon.state / "segments.damaged-1").rglob("*.seg")}, segments,
           "its text")
    for p in daemon.state.glob("store.db*"):
        if "damaged" not in p.name:
            p.unlink()
    shutil.rmtree(daemon.state / "segments")
    (daemon.state / "segments.damaged-1").rename(daemon.state / "segments")
    path.write_bytes(kept)  # from a backup
    daemon.start()
    t.same(daemon.api.verdict("old").rstrip(b"\n"), wanted, "the verdict of a store that was put back")
    daemon.stop()


def test_damaged_text(t):
    """Segment files that are cut, gone or overwritten cost their text alone, and only of their run."""
    daemon = t.start()
    wanted = {job: fed(t, daemon, job) for job in ("cut", "gone", "spoilt", "sound")}
    logs = lambda job: daemon.api.items(f"/v1/jobs/{job}/logs?lines=100")
    sound = logs("sound")
    daemon.stop()
    cut, gone, spoilt, _ = store.segment_files(daemon)
    cut.write_bytes(cut.read_bytes()[:-100])
    gone.unlink()
    spoilt.write_bytes(spoilt.read_bytes().replace(b"@", b"%", 1))
    daemon.start()
    t.same({job: daemon.api.verdict(job).rstrip(b"\n") for job in wanted}, wanted, "verdicts")
    t.same(logs("sound"), sound, "text of the run that is sound")
    for job in ("cut", "gone", "spoilt"):
        t.check(all(item.get("gone") for item in logs(job)), lambda: f"{job}: {logs(job)}")
    t.same(daemon.status()["counters"]["segments_damaged"], 2, "damaged at the start")
    log = daemon.log_tail()
    t.check("job=cut" in log and "job=gone" in log and "job=sound" not in log, log)
    fed(t, daemon, "later")
    t.check(not any(item.get("gone") for item in logs("later")), "text that came later")
    daemon.stop()


def test_few_files(t):
    """With few open files allowed, connections beyond are turned away; those that are there, and the store, go on: it waits for
    a descriptor while there is none."""
    daemon = t.start(prefix=("prlimit", "--nofile=96:96"))
    replay = world.storm(t.seed, "few", 4, 200 << 10)
    wanted = replay.analyze(t)
    feed = Feed(daemon, replay, "few").start()
    others = []
    for _ in range(150):
        s = socket.socket(socket.AF_UNIX)
        s.settimeout(10)
        try:
            s.connect(str(daemon.ingest))
            others.append(s)
        except OSError:
            s.close()
    feed.send(chunk=64)
    feed.wait_done()
    for s in others:
        s.close()
    poll.until(lambda: f"the store goes on: {daemon.status()['store']}", lambda: not daemon.status()["store"]["trouble"], 20)
    t.check(feed.finish() == wanted, "the verdict")
    t.same(fed(t, daemon, "after")[:20], wanted[:20], "a job afterwards")
    daemon.stop()


if __name__ == "__main__":
    trial.main(__doc__, test_older_store, test_migration_killed, test_migration_without_room, test_set_aside, test_damaged_text, test_few_files, test_io_error, test_read_only, test_quota, test_io_error_that_stays)
