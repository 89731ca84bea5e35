#!/usr/bin/env python3
"""The identity of test_identity.py for a generated job that reaches the caps: 8 ranks of 4 MB and a console, a storm.

Clock pairs, folded events, more than 64 events of a lane and a record of more than 2,000 lines have to occur in it.
"""
import json
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from support import trial, world  # noqa: E402
from support.replay import Feed  # noqa: E402

CHUNK = 512   # lines of all streams between two changes of the stream that speaks


def build(t):
    return world.storm(t.seed, "world")


def counter(status, name):
    """A counter, wherever `status` puts it."""
    found = []

    def walk(x):
        if isinstance(x, dict):
            if isinstance(x.get(name), int):
                found.append(x[name])
            elif x.get("name") == name and isinstance(x.get("value"), int):
                found.append(x["value"])
            for y in x.values():
                walk(y)
        elif isinstance(x, list):
            for y in x:
                walk(y)

    walk(status)
    if not found:
        raise AssertionError(f"no counter {name} in {json.dumps(status)[:1500]}")
    return max(found)


def check_caps(t, daemon, status):
    t.check(counter(status, "events_dropped") > 0, "no event was dropped at the cap of 64")
    t.check(counter(status, "records_cut") > 0, "no record was cut at 2,000 lines")
    store = daemon.store()
    tables = {row[0]: [c[1] for c in store.execute(f"PRAGMA table_info({row[0]})")]
              for row in store.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    folded = sum(n for name, columns in tables.items() if "event" in name and "count" in columns
                 for (n,) in store.execute(f"SELECT count(*) FROM {name} WHERE count > 1"))
    t.check(folded > 0, lambda: f"no folded event in {tables}")
    sampled = sum(n for name, columns in tables.items() if "lane" in name for c in columns if "pair" in c
                  for (n,) in store.execute(f"SELECT count(*) FROM {name} WHERE {c} IS NOT NULL AND length({c}) > 2"))
    t.check(sampled >= 8, lambda: f"clock pairs in {sampled} lanes only; {tables}")
    store.close()


def test_world(t):
    job = build(t)
    print(f"  {len(job.rows)} lines, {sum(len(x) + 1 for _, _, x in job.rows)} bytes")
    wanted = job.analyze(t)
    t.same(json.loads(wanted)["verdict"], "rank", "verdict of the storm")

    daemon = t.start("plain")
    feed = Feed(daemon, job, "plain").start()
    feed.send(chunk=CHUNK)
    got = feed.finish()
    status = daemon.status()
    daemon.stop()
    t.check(got == wanted, lambda: f"analyze | daemon{trial.difference(wanted, got)}")
    check_caps(t, daemon, status)

    daemon = t.start("killed")
    feed = Feed(daemon, job, "killed").start()
    for share in sorted(t.rng.random() for _ in range(3)):
        print(f"  killed at {share:.3f}")
        feed.send([int(share * len(s.lanes[0].parts)) for s in feed.senders], chunk=CHUNK)
        if share < 0.5:
            feed.wait_done()
        daemon.restart()
        feed.connect()
    feed.send(chunk=CHUNK)
    got = feed.finish()
    daemon.stop()
    t.check(got == wanted, lambda: f"analyze | daemon after kills{trial.difference(wanted, got)}")


if __name__ == "__main__":
    trial.main(__doc__, test_world)
