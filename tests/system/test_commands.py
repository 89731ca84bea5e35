#!/usr/bin/env python3
"""ranks, timeline, explain and catalog: with a daemon, with files, and what they say of bad words."""
import json
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests"))
from support import replay, trial  # noqa: E402
from support.replay import Feed  # noqa: E402


KINDS = {"rank", "common", "clean", "undetermined"}


def valid(t, name, doc):
    """Against schema/json; without python3-jsonschema that is left to the lint suite."""
    done = subprocess.run(["/usr/bin/python3", ROOT / "tests/lint/check_schemas.py", "--as", name, "-"], input=json.dumps(doc).encode(),
                          capture_output=True)
    t.check(done.returncode in (0, 77), lambda: f"{name}: {done.stdout.decode()[:2000]}{done.stderr.decode()[-500:]}")
    return doc


def screen(t, text, lines=60):
    text = text.decode()
    rows = text.splitlines()
    t.check(len(rows) <= lines and all(len(x) <= 100 for x in rows), lambda: f"{lines} lines of 100 columns:\n{text}")
    t.check(all(c.isprintable() for c in text.replace("\n", "")), lambda: f"controls: {text!r}")
    return rows


def one_of_each(t):
    """A timed case of each verdict that the client reaches."""
    seen = {}
    for r in replay.cases(True):
        kind = r.meta["truth"]["verdict"]
        if KINDS <= set(seen):
            break
        if kind in KINDS - set(seen) and json.loads(r.analyze(t))["verdict"] == kind:
            seen[kind] = r
    t.check(KINDS <= set(seen), f"verdicts seen: {sorted(seen)}")
    return seen.values()


def test_tables_of_a_job(t):
    """What the daemon says is what `analyze` says of the same lines."""
    daemon = t.start()
    for r in one_of_each(t):
        wanted = json.loads(r.analyze(t))
        feed = Feed(daemon, r, "one").start()
        feed.send()
        feed.finish()
        for what in ("ranks", "timeline"):
            live = valid(t, what, t.json(what, r.job, "--json", env=daemon.env))
            pasted = valid(t, what, t.json("analyze", f"--{what}", "--json", "-", input=r.jsonl()))
            t.same(live, pasted, f"{r.name}: {what} --json")
            rows = screen(t, t.run(what, r.job, env=daemon.env).stdout)
            same = screen(t, t.run("analyze", f"--{what}", "-", input=r.jsonl()).stdout)
            t.same(rows[1:], same[1:], f"{r.name}: {what}")  # the first line says how long ago it was
            t.check(rows[0].startswith(r.job), f"{r.name}: {what}: {rows[0]}")
            t.run(what, r.job, "--attempt", 99, env=daemon.env, status=(65,))
            screen(t, t.run(what, r.job, "--lines", 12, env=daemon.env).stdout, 12)
        ranks = t.json("ranks", r.job, "--json", env=daemon.env)["items"]
        t.same({x["rank"] for x in ranks if x["status"] == "initiating"}, {x["rank"] for x in wanted["ranks"] if x["status"] == "initiating"},
               f"{r.name}: initiating ranks")
        events = t.json("timeline", r.job, "--json", env=daemon.env)["items"]
        t.same(sorted(x["id"] for x in events if x["started"]),
               sorted({i["event"] for i in wanted["initiating"]} - {None} or (wanted["why"] or [{"events": []}])[0]["events"]),
               f"{r.name}: events that started it")
        numbers = {x["id"]: x["number"] for x in t.json("events", r.job, "--json", env=daemon.env)["items"]}
        t.check(all(numbers[x["id"]] == x["number"] for x in events), f"{r.name}: numbers as `events` has them")
    daemon.stop()


def test_lines_and_bytes(t):
    """Each line and byte of a rank is counted once, by stream."""
    rows = [(r, fd, "x" * t.rng.randrange(200)) for r in range(3) for fd in ("stdout", "stderr") for _ in range(t.rng.randrange(1, 400))]
    t.rng.shuffle(rows)
    objects = [{"job": "x", "rank": r, "kind": "rank", "stream": f"rank-{r}.{fd}", "message": text} for r, fd, text in rows]
    fed = "".join(json.dumps(o) + "\n" for o in objects).encode()
    for item in t.json("analyze", "--ranks", "--json", "-", input=fed)["items"]:
        mine = {fd: [x for r, f, x in rows if r == item["rank"] and f == fd] for fd in ("stderr", "stdout")}
        t.same(item["streams"], [{"stream": f"rank-{item['rank']}.{fd}", "lines": len(xs), "bytes": sum(len(x) + 1 for x in xs)}
                                 for fd, xs in mine.items()], f"rank {item['rank']}")


def test_pages(t):
    """More ranks than a page holds."""
    daemon = t.start()
    daemon.api.start("wide", world_size=10007)
    t.same([x["rank"] for x in t.json("ranks", "wide", "--json", env=daemon.env)["items"]], list(range(10007)), "all ranks")
    rows = screen(t, t.run("ranks", "wide", env=daemon.env).stdout)
    t.check(any("0-10006" in x for x in rows), f"equal ranks fold: {rows}")
    daemon.stop()


def test_bad_words(t):
    daemon = t.start()
    for words, status in ((["ranks"], 64), (["ranks", "a", "b"], 64), (["timeline"], 64), (["ranks", "nobody"], 65), (["timeline", "nobody"], 65),
                          (["ranks", "x", "--lines", 0], 64), (["analyze", "--ranks", "--timeline", "-"], 64)):
        said = t.run(*words, env=daemon.env, status=(status,)).stderr.decode()
        t.check(said.startswith("firstfault: ") and len(said.splitlines()) <= 2, f"{words}: {said}")
    daemon.stop()


if __name__ == "__main__":
    trial.main(__doc__, test_tables_of_a_job, test_lines_and_bytes, test_pages, test_bad_words)
