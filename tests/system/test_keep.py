#!/usr/bin/env python3
"""What is kept and for how long: forget, retention by age and size, room that is given back, the write-ahead log, backup."""
import itertools
import json
import os
import pathlib
import socket
import subprocess
import sys
import tarfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from support import poll, store, trial, world  # noqa: E402
from support.native import Part, Refused, Sender  # noqa: E402
from support.replay import Feed  # noqa: E402

CANARY = b"the-canary-that-nobody-else-has-"


def fed(t, daemon, job, ranks=3, size=40 << 10, end=True):
    """A job over native connections, of which one event and many lines hold a word of its own."""
    replay = world.storm(t.seed, job, ranks, size)
    word = CANARY + job.encode()
    replay.rows = [(us, k, text + b" " + word if n % 7 == 0 or b"CUDA out of memory" in text else text) for n, (us, k, text) in enumerate(replay.rows)]
    feed = Feed(daemon, replay, "source-" + job).start()
    feed.send(chunk=64)
    if end:
        feed.finish()
    else:
        feed.wait_done()
    return feed


def names(daemon):
    return [(item["job"], item["run"]) for item in daemon.api.items("/v1/jobs")]


def holding(daemon, word):
    """Files of the state folder that hold this."""
    return [str(p.relative_to(daemon.state)) for p in daemon.state.rglob("*") if p.is_file() and word in p.read_bytes()]


def delete(daemon, url, status=200):
    answer = daemon.api.request("DELETE", url)
    if answer.status != status:
        raise AssertionError(f"DELETE {url}: {answer}, wanted {status}")
    return answer.json()


def test_forget(t):
    """Rows, text and memory go, and no byte of it is left in any file; the others are as they were; a restart changes nothing."""
    daemon = t.start()
    for job in ("a", "b", "c"):
        fed(t, daemon, job)
    others = {job: daemon.api.verdict(job) for job in ("a", "c")}
    t.check("store.db" in " ".join(holding(daemon, CANARY + b"b")) and any("seg" in p for p in holding(daemon, CANARY + b"b")), holding(daemon, CANARY + b"b"))
    delete(daemon, "/v1/jobs/nobody", 404)
    delete(daemon, "/v1/jobs/b?run=7", 404)
    done = t.run("forget", "b", env=daemon.env)
    t.check(b"forgotten" in done.stdout, done.stdout)
    t.same(sorted(names(daemon)), [("a", "0"), ("c", "0")], "jobs")
    t.same(holding(daemon, CANARY + b"b"), [], "files that hold text of a forgotten job")
    t.same(holding(daemon, b"source-b"), [], "files that hold its source")
    t.same(daemon.api.request("GET", "/v1/jobs/b/verdict").status, 404, "its verdict")
    t.same({job: daemon.api.verdict(job) for job in others}, others, "verdicts of the others")
    t.same(daemon.status()["counters"]["runs_forgotten"], 1, "counted")
    daemon.restart()
    t.same({job: daemon.api.verdict(job) for job in others}, others, "verdicts of the others after a restart")
    delete(daemon, "/v1/jobs/c")
    daemon.restart()
    fed(t, daemon, "d")
    daemon.stop()
    db = daemon.store()
    t.same([tuple(r) for r in db.execute("SELECT number, job FROM run")], [(1, "a"), (4, "d")], "numbers are not used again")
    t.same(db.execute("PRAGMA foreign_key_check").fetchall(), [], "rows without their parents")
    t.same([tuple(r) for r in db.execute("SELECT * FROM going")], [], "runs that are still going")
    db.close()
    t.same(sorted({p.parent.name for p in store.segment_files(daemon)}), ["1", "4"], "folders of segments")


def test_forget_open(t):
    """An open run is refused, by force it goes: its sender is told, and what it sends again begins another run."""
    daemon = t.start()
    feed = fed(t, daemon, "open", end=False)
    answer = delete(daemon, "/v1/jobs/open", 409)
    t.check("force" in answer["detail"], answer)
    waiting = t.spawn(t.client, "job", "end", "open", "--wait", "50s", env=daemon.env)  # its streams are open: it waits
    poll.until("a request that waits", lambda: daemon.status()["counters"]["requests"] > 3, 10)
    delete(daemon, "/v1/jobs/open?force=1")
    t.same(waiting.wait(20), 65, "status of who waited for its verdict")
    t.same(names(daemon), [], "jobs")
    try:
        feed.senders[0].send_all()
        feed.senders[0].wait("the end of the connection", lambda: False)
    except Refused as e:
        t.same((e.code, "forgotten" in e.text), ("job-name", True), "what its sender is told")
    except ConnectionError:
        pass
    for sender in feed.senders:
        sender.close()
        sender.lanes[0].acked = 0
    feed.connect()
    t.same({tuple(s.welcomes[-1]) for s in feed.senders}, {(0,)}, "what a known source is welcomed with")
    for sender in feed.senders:
        sender.lanes[0].seek(0)
    feed.send()
    got = feed.finish()
    t.same(json.loads(got)["run"], "0", "name of the run that begins anew")
    daemon.stop()
    db = daemon.store()
    t.same([tuple(r) for r in db.execute("SELECT number, job, run FROM run")], [(2, "open", "0")], "runs in the store")
    db.close()


def test_forget_shared(t):
    """A connection that speaks for several jobs, or is raw text, goes on: what it says of a forgotten one begins another run."""
    daemon = t.start(options=[("default-job", "raw")])
    lines = lambda job: [item["text"] for item in daemon.api.items(f"/v1/jobs/{job}/logs?lines=100")]
    heard = lambda job, text: daemon.api.request("GET", f"/v1/jobs/{job}").status == 200 and lines(job)[-1:] == [text]
    with socket.socket(socket.AF_UNIX) as objects, socket.socket(socket.AF_UNIX) as raw:
        for s in (objects, raw):
            s.connect(str(daemon.ingest))

        def say(n):
            for job in ("a", "b"):
                objects.sendall(b'{"job":"%s","stream":"s","source":"x","message":"line %d"}\n' % (job.encode(), n))
            raw.sendall(b"line %d\n" % n)
            for job in ("a", "b", "raw"):
                poll.until(f"line {n} of {job}", lambda: heard(job, f"line {n}"), 20)

        say(1)
        delete(daemon, "/v1/jobs/a", 409)
        for job in ("a", "raw"):
            delete(daemon, f"/v1/jobs/{job}?force=1")
        t.same(names(daemon), [("b", "0")], "jobs")
        say(2)
        t.same([lines(job) for job in ("a", "b", "raw")], [["line 2"], ["line 1", "line 2"], ["line 2"]], "lines")
    daemon.restart()
    t.same([lines(job) for job in ("a", "b", "raw")], [["line 2"], ["line 1", "line 2"], ["line 2"]], "lines after kill -9")
    daemon.stop()


def lines_of(sender, n, text=b"a line of a run"):
    """Sends n lines more, each when the one before is stored; the longest wait in seconds."""
    lane, worst = sender.lanes[0], 0
    for i in range(n):
        clock = poll.Deadline(30)
        sender.write(b"%d 0. %s %d\n" % (1767225600000000 + i, text, i))
        lane.starts.append(lane.starts[-1] + len(text) + 2 + len(str(i)))
        lane.parts.append(None)
        lane.next += 1
        sender.wait_done()
        worst = max(worst, clock.spent())
    return worst


def test_keep_age(t):
    """What was not heard for keep-age goes, ended or not; what somebody is connected for stays. After a restart too."""
    daemon = t.start(options=[("keep-age", "1s")])
    sender = Sender(daemon.ingest, {"job": "connected", "source": "s", "streams": ["a"]}, [[]]).connect()
    lines_of(sender, 1)
    fed(t, daemon, "ended")
    poll.until(lambda: f"the ended job goes: {names(daemon)}", lambda: ("ended", "0") not in names(daemon), 20)
    t.same(names(daemon), [("connected", "0")], "jobs")
    poll.until("counted", lambda: daemon.status()["counters"]["runs_aged"] == 1 and not daemon.status()["kept"]["going"], 20)
    t.same(holding(daemon, CANARY + b"ended"), [], "files that hold its text")
    t.check(daemon.status()["counters"]["bytes_given_back"] > 20000, daemon.status()["counters"])
    t.same(daemon.status()["kept"]["runs"], 1, "runs that are kept")
    log = daemon.store_path().with_name("store.db-wal")
    poll.until("the log is folded into the store while nothing comes", lambda: not log.stat().st_size and not daemon.status()["kept"]["log_bytes"], 20)
    daemon.kill()
    sender.close()
    daemon.start()
    poll.until(lambda: f"a silent job without a sender goes, after a restart too: {names(daemon)}", lambda: not names(daemon), 20)
    daemon.stop()


def test_keep_tailed(t):
    """A followed file of a run that went is not read again, not after a restart either; one in its place is."""
    logs = t.folder / "logs"
    (logs / "j").mkdir(parents=True)
    path = logs / "j" / "rank-0.log"
    path.write_bytes(b"the first line of it\n" * 50)
    daemon = t.start(options=[("tail", f"{logs}/{{job}}/{{name}}")])
    read = lambda: daemon.api.request("GET", "/v1/jobs/j/logs").status == 200 and b"the first line" in daemon.api.get("/v1/jobs/j/logs").body
    poll.until("the file is read", read, 20)
    delete(daemon, "/v1/jobs/j", 409)
    delete(daemon, "/v1/jobs/j?force=1")
    t.same(names(daemon), [], "jobs")
    t.same(path.stat().st_size, 50 * 21, "the file itself is left alone")
    daemon.restart()
    poll.until(lambda: f"met again: {daemon.status()['counters']}", lambda: daemon.status()["counters"]["tail_let_go"], 20)
    t.same(names(daemon), [], "jobs after a restart")
    other = t.folder / "other"
    other.write_bytes(b"another one in its place\n")
    other.replace(path)
    poll.until(lambda: f"a new file is read: {names(daemon)}", lambda: names(daemon) == [("j", "0")], 20)
    daemon.stop()


def test_keep_size(t):
    """More than keep-size: the oldest that has ended goes, open ones never; the file shrinks."""
    daemon = t.start(options=[("keep-size", "2MiB")])
    fed(t, daemon, "open", end=False)
    for i in range(6):
        fed(t, daemon, f"j{i}", size=150 << 10)
    kept = lambda: daemon.status()["kept"]
    small = lambda: kept()["store_bytes"] - kept()["store_free_bytes"] + kept()["segment_bytes"] <= 2 << 20
    poll.until(lambda: f"it gets small: {daemon.status()}", lambda: small() and not kept()["going"], 60)
    left = names(daemon)
    t.check(("open", "0") in left and ("j5", "0") in left and ("j0", "0") not in left, left)
    t.same([job for job, _ in left], [f"j{i}" for i in range(5, 6 - len(left), -1)] + ["open"], "the oldest went first")
    t.check(daemon.status()["counters"]["runs_over"] == 7 - len(left), daemon.status()["counters"])
    delete(daemon, "/v1/jobs/j5")
    daemon.stop()


def test_commits_go_on(t):
    """While a large run is taken out, a sender's lines are stored as quickly as before."""
    daemon = t.start()
    ranks = 400 if t.everything else 40
    word = lambda: "".join(t.rng.choices("abcdefgh", k=12))  # no two are the same fault
    text = lambda: f"RuntimeError: the {word()} of {word()} is not {word()} {'x' * 1500}".encode()
    parts = [[Part(1767225600000000 + i, text(), True) for i in range(64)] for _ in range(ranks)]
    for first in range(0, ranks, 10):
        many = Sender(daemon.ingest, {"job": "large", "source": "s", "streams": [f"rank-{r}.log" for r in range(first, first + 10)]}, parts[first:first + 10])
        many.connect().send_all()
        many.end()
    daemon.api.end("large", exit_code=1)
    sender = Sender(daemon.ingest, {"job": "other", "source": "s", "streams": ["a"]}, [[]]).connect()
    before = lines_of(sender, 20)
    full = daemon.status()["kept"]
    forgetting = t.spawn(t.client, "forget", "large", env=daemon.env)
    worst = 0
    while forgetting.poll() is None:
        worst = max(worst, lines_of(sender, 1))
    after = daemon.status()["kept"]
    print(f"  {full['store_bytes'] >> 10} KiB, then {after['store_bytes'] >> 10}; waits {before * 1000:.0f} ms, then {worst * 1000:.0f} ms at most")
    t.same(forgetting.wait(), 0, "status of forget")
    t.check(full["store_bytes"] > (4 << 20) and after["store_bytes"] < full["store_bytes"] / 2, f"{full} {after}")
    t.check(worst < 2, f"a line had to wait {worst:.2f} s")
    sender.close()
    daemon.stop()


def test_log_is_bounded(t):
    """Somebody reads the store and doesn't end: its log stops at 64 MiB, status names the process, and when it ends all goes on."""
    if not t.everything:
        t.skip("writes 64 MiB: --all; tests/unit/test_store.c does the same with a lower cap")
    daemon = t.start()
    fed(t, daemon, "a")
    reader = subprocess.Popen([sys.executable, "-c", f"import sqlite3, sys; db = sqlite3.connect({str(daemon.store_path())!r}); db.execute('BEGIN'); "
                               "db.execute('SELECT * FROM run').fetchall(); print('reads', flush=True); sys.stdin.read()"],
                              stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    t.processes.append(reader)
    reader.stdout.readline()
    log = daemon.store_path().with_name("store.db-wal")
    with socket.socket(socket.AF_UNIX) as s:
        s.settimeout(0.2)
        s.connect(str(daemon.ingest))
        trouble = lambda: daemon.status()["store"]["trouble"]
        for i in itertools.count():
            lines = "".join(f'{{"job":"many","stream":"rank-{r}.log","rank":{r},"message":"step {i} loss 2.1"}}\n' for r in range(2000)).encode()
            while lines and not trouble():
                try:
                    lines = lines[s.send(lines):]
                except TimeoutError:
                    pass
            if trouble():
                break
        t.check(f"process {reader.pid}" in trouble() and "store.db-wal" in trouble(), trouble())
        t.check(log.stat().st_size < 80 << 20, f"the log has {log.stat().st_size >> 20} MiB")
        print(f"  after {i} lines of 2,000 streams the log has {log.stat().st_size >> 20} MiB")
        reader.stdin.close()
        reader.wait()
        poll.until(lambda: f"it goes on: {trouble()}", lambda: not trouble(), 20)
    poll.until(lambda: f"the log is short: {log.stat().st_size}", lambda: log.stat().st_size < 20 << 20, 20)
    daemon.stop()


def text_of(daemon, job):
    return [(item["stream"], item["offset"], item["text"]) for item in daemon.api.items(f"/v1/jobs/{job}/logs?lines=10000")]


def test_backup(t):
    """Written while senders go on, it is whole: unpacked it is a state folder that gives the same verdicts and logs."""
    daemon = t.start()
    for job in ("a", "b"):
        fed(t, daemon, job)
    feed = fed(t, daemon, "open", end=False)
    wanted = {job: (daemon.api.verdict(job), text_of(daemon, job)) for job in ("a", "b")}
    path = t.folder / "all.tar"
    part = t.folder / "all.tar.part"
    part.write_bytes(b"of a backup that was cut off")
    writing = t.spawn(t.client, "backup", path, env=daemon.env)
    while writing.poll() is None:  # senders go on
        for sender in feed.senders:
            lines_of(sender, 1)
    t.same(writing.wait(), 0, "status of backup")
    t.same(path.stat().st_mode & 0o777, 0o600, "mode of the backup")
    t.same(sorted(p.name for p in t.folder.glob("all.tar*")), ["all.tar"], "files")
    before = path.read_bytes()
    done = t.run("backup", path, env=daemon.env, status=(74,))
    t.check(b"not overwritten" in done.stderr and path.read_bytes() == before, done.stderr)
    for bad, status in (({"path": "x.tar"}, 422), ({"path": "/"}, 422), ({}, 422), ({"path": "/nowhere/at/all.tar"}, 422)):
        t.same(daemon.api.request("POST", "/v1/backup", bad).status, status, f"backup to {bad}")
    delete(daemon, "/v1/jobs/a")  # nothing holds what goes any more
    t.same(names(daemon), [("open", "0"), ("b", "0")], "jobs")
    daemon.kill()

    state = t.folder / "restored"
    state.mkdir(mode=0o700)
    with tarfile.open(path) as tar:
        t.check(all(m.mode in (0o600, 0o700) for m in tar), tar.getmembers())
        tar.extractall(state)
    other = t.start("other", state=state)
    t.same(sorted(names(other)), [("a", "0"), ("b", "0"), ("open", "0")], "jobs of the backup")
    t.same({job: (other.api.verdict(job), text_of(other, job)) for job in ("a", "b")}, wanted, "verdicts and logs of the backup")
    t.same(other.status()["counters"]["segments_damaged"], 0, "damaged text")
    for sender in feed.senders:  # what it says it has is there, and what came later is sent again
        sender.path = str(other.ingest)
        sender.close()
        lane = sender.lanes[0]
        lane.acked = 0
        sender.open()
        t.check(sender.receive()["offsets"][0] <= lane.total, "more than was sent")
        sender.close()
    other.stop()


def test_backups_at_once(t):
    """One at a time: the others are told so, and nobody gets a half file."""
    daemon = t.start()
    fed(t, daemon, "a", size=1500 << 10)
    paths = [t.folder / f"{i}.tar" for i in range(4)]
    writing = [t.spawn(t.client, "backup", path, env=daemon.env) for path in paths]
    ended = [w.wait(30) for w in writing]
    t.check(0 in ended and set(ended) <= {0, 74}, f"exit statuses {ended}")
    t.same([path.exists() for path in paths], [status == 0 for status in ended], "files")
    t.same({len(tarfile.open(path).getnames()) for path in paths if path.exists()}, {4}, "what is in them")
    t.same(daemon.status()["counters"]["backups"], ended.count(0), "counted")
    daemon.stop()


def test_foreign_user(t):
    """Another local user neither forgets a job nor has a backup written."""
    if os.geteuid() != 0:
        t.skip("needs two users")
    t.folder.chmod(0o755)
    daemon = t.start()
    daemon.folder.chmod(0o755)
    daemon.api.start("mine", world_size=1)
    code = ("import os, sys\nos.setuid(65534)\nfrom support.http import Api\na = Api(sys.argv[1])\n"
            "print([a.request('DELETE', '/v1/jobs/mine?force=1').status, a.request('POST', '/v1/backup', {'path': '/tmp/ff-stolen.tar'}).status])")
    env = {**os.environ, "PYTHONPATH": str(pathlib.Path(__file__).resolve().parents[1])}
    done = subprocess.run([sys.executable, "-c", code, str(daemon.api.path)], capture_output=True, env=env, timeout=60)
    t.same(done.stdout.decode().strip(), "[403, 403]", f"answers to another user {done.stderr.decode()[-300:]}")
    t.same(names(daemon), [("mine", "0")], "jobs")
    daemon.stop()


def test_backup_killed(t):
    """kill -9, or SIGTERM, while it is written: no file under its name; SIGTERM leaves nothing beside it either."""
    daemon = t.start()
    fed(t, daemon, "a", size=1500 << 10)
    for name, end in (("term", daemon.stop), ("kill", daemon.kill)):
        path = t.folder / f"{name}.tar"
        writing = t.spawn(t.client, "backup", path, env=daemon.env)
        poll.until("a backup that is being written", lambda: list(t.folder.glob(f"{name}.tar*")), 20, 0.0001)
        end()
        writing.wait(20)
        left = sorted(p.name for p in t.folder.glob(f"{name}.tar*"))
        whole = path.exists() and tarfile.is_tarfile(path) and len(tarfile.open(path).getnames()) > 3
        t.check(not path.exists() or whole, f"a half file: {left}")
        t.check(name == "kill" or left in ([], [path.name]), left)
        daemon.start()
    daemon.stop()


if __name__ == "__main__":
    trial.main(__doc__, test_backup, test_backups_at_once, test_backup_killed, test_foreign_user, test_forget, test_forget_open, test_forget_shared, test_keep_age, test_keep_tailed, test_keep_size, test_commits_go_on, test_log_is_bounded)
