#!/usr/bin/env python3
"""The client's commands against a daemon, and their exit statuses."""
import json
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from support import poll, replay, trial, world  # noqa: E402
from support.daemon import environment  # noqa: E402
from support.replay import Feed, essence  # noqa: E402

RANKS = 4
STATUS = {"clean": 0, "rank": 10, "node": 11, "common": 12, "external": 13, "undetermined": 14}


def files_of(job, folder):
    """One file a rank, torchrun's way."""
    for r in range(RANKS):
        path = folder / "run_a1" / "attempt_0" / str(r) / "stderr.log"
        path.parent.mkdir(parents=True)
        path.write_bytes(b"".join(x + b"\n" for _, k, x in job.rows if k == r))
    return folder


def test_ship_and_ask(t):
    job = world.storm(t.seed, "x", RANKS, 60 << 10)
    logs = files_of(job, t.folder / "logs")
    daemon = t.start()
    env = daemon.env
    ask = lambda *a, **k: t.run(*a, env=env, **k)
    ask("job", "start", "4711", "--world", RANKS)
    t.same(t.json("jobs", "--json", env=env)["items"][0]["job"], "4711", "jobs")
    ask("ship", "--job", "4711", logs)

    running = t.json("why", "4711", "--json", env=env)
    t.check(running["state"] in ("running", "ending", "stalled"), f"state of a running job: {running['state']}")
    t.same(running["final"], False, "final of a running job")
    t.check(b"4711" in ask("why", "4711").stdout, "why of a running job")

    ask("job", "end", "4711", "--exit-code", 1, "--state", "FAILED")
    ended = t.json("why", "4711", "--json", env=env)
    t.same((ended["state"], ended["final"]), ("ended", True), "state of an ended job")
    t.check(ended["fault"] is not None and ended["verdict"] != "clean", f"verdict of a failure: {essence(ended)}")
    text = ask("why", "4711").stdout.decode()
    lines = text.splitlines()
    t.check(len(lines) <= 30 and all(len(x) <= 100 for x in lines), f"30 lines of 100 columns: {text}")
    t.check(text.startswith("4711") and "\x1b" not in text, text)
    t.same(ask("why").stdout, ask("why", "4711").stdout, "why without a job: the newest failed one")
    t.same(ask("why", "47").stdout, ask("why", "4711").stdout, "why of a unique prefix")
    ask("why", "4711", "--exit-status", status=(STATUS[ended["verdict"]],))
    ask("why", "4711", status=(0,))
    ask("why", "4711", "--attempt", 0)
    for words in (["--attempt", 9], ["--not", 999]):
        said = ask("why", "4711", *words, status=(65,)).stderr.decode()
        t.check(f"has no {'attempt 9' if 9 in words else 'rank 999'}" in said, f"why {words}: {said}")

    events = t.json("events", "4711", "--json", env=env)["items"]
    t.check(any(e["kind"] == "fault" for e in events), f"events: {events[:3]}")
    t.check(ask("events", "4711").stdout.count(b"\n") >= len(events), "events as text")
    first = next(e for e in events if e["kind"] == "fault")
    some = ask("events", "4711", "--role", first["role"]).stdout.decode().splitlines()[1:]
    t.check(any(line.split()[0] == str(first["number"]) and first["id"][-24:] in line for line in some),
            f"a part of the list keeps the numbers of the whole one: {some[:3]}")
    around = ask("logs", "4711", "--around", first["id"]).stdout.decode(errors="replace")
    t.check(first["text"].splitlines()[0][:60] in around, f"logs --around {first['id']}: {around[:1000]}")
    t.check(ask("logs", "4711", "--around", "first").stdout, "logs --around first")
    ask("logs", "4711", "--around", "no-such-event", status=(64, 65, 69))
    status = t.json("status", "--json", env=env)
    t.same(status["schema"], "firstfault.status/1", "status")
    t.check(ask("status").stdout, "status as text")
    t.check(b"4711" in ask("jobs").stdout, "jobs as text")
    ask("why", "9999", status=(65, 69))
    daemon.stop()


def test_newest_failed(t):
    """Without JOB the failed run that was heard last; neither one that nobody ends nor one without any stamp changes that."""
    daemon = t.start()
    for name in ("left-open", "no-stamp"):
        log = t.folder / f"{name}.log"
        log.write_text("ValueError: x\n")
        t.run("job", "start", name, "--world", 1, env=daemon.env)
        t.run("ship", "--job", name, "--rank", 0, log, env=daemon.env)
        if name != "left-open":
            t.run("job", "end", name, "--exit-code", 1, env=daemon.env)
    for restarted in (False, True):
        t.check(t.run("why", env=daemon.env).stdout.startswith(b"no-stamp "), f"newest, restarted {restarted}")
        daemon.restart()
    daemon.stop()


def test_ship_again(t):
    """What is known is not stored again; what grew is."""
    job = world.storm(t.seed, "x", RANKS, 30 << 10)
    logs = files_of(job, t.folder / "logs")
    daemon = t.start()
    t.run("ship", "--job", "again", logs, env=daemon.env)
    first = daemon.api.verdict("again")
    lines = lambda: json.dumps(daemon.api.items("/v1/jobs/again/ranks"), sort_keys=True)
    before = lines()
    t.run("ship", "--job", "again", logs, env=daemon.env)
    t.same(lines(), before, "ranks after shipping twice")
    t.same(essence(daemon.api.verdict("again")), essence(first), "verdict after shipping twice")
    daemon.restart()
    t.same(essence(daemon.api.verdict("again")), essence(first), "verdict after a restart")
    daemon.stop()


def test_verdict_statuses(t):
    """analyze --exit-status for a case of each verdict that the client reaches."""
    seen = {}
    for r in replay.cases(True):
        if r.meta["truth"]["verdict"] in seen or len(seen) == len(STATUS):
            continue
        verdict = json.loads(t.run("analyze", "--json", "-", input=r.jsonl()).stdout)["verdict"]
        if verdict not in seen:
            t.run("analyze", "--exit-status", "-", input=r.jsonl(), status=(STATUS[verdict],))
            seen[verdict] = r.name
    print(f"  {seen}")
    t.check({"clean", "rank", "undetermined"} <= set(seen), f"verdicts seen: {seen}")


def test_runs(t):
    daemon = t.start()
    env = daemon.env
    r = next(x for x in replay.cases(True) if x.meta["truth"]["verdict"] == "rank")
    wanted = r.analyze(t)
    feed = Feed(daemon, r, "one").start()
    feed.send()
    t.same(feed.finish(), wanted, "first run")
    t.run("job", "start", r.job, "--world", 2, env=env)   # after the end: a new run
    t.same(t.json("why", r.job, "--json", env=env)["run"], "1", "a job-start after the end begins a run")
    t.same(json.loads(daemon.api.verdict(f"{r.job}~1"))["run"], "0", "JOB~1")
    t.same(t.json("why", f"{r.job}~1", "--json", env=env), json.loads(wanted), "the run before")
    for name, run in ((f"{r.job}~2", "~2"), (f"{r.job}/x", "x")):
        said = t.run("why", name, env=env, status=(65,)).stderr.decode()
        t.check(f'has no run "{run}"' in said, f"why {name}: {said}")
    daemon.stop()


def test_no_daemon(t):
    env = environment(t.folder, FIRSTFAULT_ADDR=f"unix:{t.folder}/none.sock", FIRSTFAULT_API=f"unix:{t.folder}/none2.sock")
    for command in (["why", "x"], ["jobs"], ["status"], ["events", "x"], ["job", "end", "x"]):
        done = t.run(*command, env=env, status=(69,))
        t.check(len(done.stderr.strip().splitlines()) in (1, 2), f"{command}: one line and a hint: {done.stderr}")
    log = t.folder / "a.log"
    log.write_text("hello\n")
    t.run("ship", "--job", "x", log, env=env, status=(69,))


def test_words(t):
    t.check(b"firstfault" in t.run("--version").stdout, "--version")
    text = t.run("--help").stdout.decode()
    for command in ("analyze", "why", "ship", "jobs", "status", "events", "logs", "job"):
        t.check(command in text, f"{command} is not in --help")
        t.check(t.run(command, "--help").stdout, f"{command} --help")


def test_why_live(t):
    """A fault is in `why` while its connection is still open: a provisional event."""
    daemon = t.start()
    r = next(x for x in replay.cases(True) if x.meta["truth"]["verdict"] == "rank" and x.meta["world_size"] > 1)
    feed = Feed(daemon, r, "live").start()
    feed.send()
    feed.wait_done()
    live = poll.until("a verdict", lambda: json.loads(daemon.api.verdict(r.job)))
    t.same(live["final"], False, "final before the end")
    feed.finish()
    answer = t.json("why", r.job, "--json", env=daemon.env)
    t.same(answer["final"], True, "final after the end")
    daemon.stop()


if __name__ == "__main__":
    trial.main(__doc__, test_ship_and_ask, test_newest_failed, test_ship_again, test_verdict_statuses, test_runs, test_no_daemon, test_words, test_why_live)
