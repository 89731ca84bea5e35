#!/usr/bin/env python3
"""The HTTP API: which addresses there are, what they answer, and what they refuse."""
import json
import os
import pathlib
import signal
import socket
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from support import poll, schema, trial, world  # noqa: E402
from support.replay import Feed  # noqa: E402

# method, address, status, schema of the answer
ADDRESSES = (
    ("GET", "/healthz", 200, None),
    ("GET", "/readyz", 200, None),
    ("GET", "/v1/status", 200, "status"),
    ("GET", "/metrics", 200, "text"),
    ("GET", "/v1/status?format=text", 200, "text"),
    ("GET", "/v1/jobs/4711/verdict?format=text", 200, "text"),
    ("GET", "/v1/jobs/4711/verdict?format=md", 200, "text"),
    ("GET", "/v1/jobs/4711/ranks?format=text&width=60", 200, "text"),
    ("GET", "/v1/jobs/4711/ranks?format=text&width=6", 400, "problem"),
    ("GET", "/v1/jobs/4711/timeline?format=text&lines=8", 200, "text"),
    ("GET", "/v1/watch?job=nobody", 404, "problem"),
    ("GET", "/v1/faults", 200, "catalog-list"),
    ("GET", "/v1/faults/cuda-oom", 200, "fault"),
    ("GET", "/v1/faults/no-such", 404, "problem"),
    ("GET", "/v1/faults?category=memory&role=primary", 200, "catalog-list"),
    ("GET", "/v1/faults?category=zzz", 400, "problem"),
    ("GET", "/v1/faults?role=zzz", 400, "problem"),
    ("GET", "/v1/jobs", 200, "list"),
    ("GET", "/v1/jobs?state=ended&fault=cuda-oom&node=node-0&user=ada&since=2026-01-01T00:00:00Z&limit=1&cursor=1", 200, "list"),
    ("GET", "/v1/jobs?state=zzz", 400, "problem"),
    ("GET", "/v1/jobs?since=yesterday", 400, "problem"),
    ("GET", "/v1/jobs?limit=0", 400, "problem"),
    ("GET", "/v1/jobs?limit=10001", 400, "problem"),
    ("GET", "/v1/jobs?cursor=x", 400, "problem"),
    ("GET", "/v1/jobs?cursor=-1", 400, "problem"),
    ("GET", "/v1/jobs?cursor=99999999999999999999", 400, "problem"),
    ("GET", "/v1/jobs/4711", 200, None),
    ("GET", "/v1/jobs/4711~0", 200, None),
    ("GET", "/v1/jobs/4711%2F0", 200, None),
    ("GET", "/v1/jobs/47", 200, None),
    ("GET", "/v1/jobs/4711~1", 404, "problem"),
    ("GET", "/v1/jobs/9", 404, "problem"),
    ("GET", "/v1/jobs/4711/verdict", 200, "verdict"),
    ("GET", "/v1/jobs/4711/verdict?attempt=0", 200, "verdict"),
    ("GET", "/v1/jobs/4711/verdict?attempt=9", 404, "problem"),
    ("GET", "/v1/jobs/4711/verdict?attempt=-1", 400, "problem"),
    ("GET", "/v1/jobs/4711/verdict?attempt=one", 400, "problem"),
    ("GET", "/v1/jobs/4711/ranks", 200, "ranks"),
    ("GET", "/v1/jobs/4711/timeline", 200, "timeline"),
    ("GET", "/v1/jobs/4711/events", 200, "list"),
    ("GET", "/v1/jobs/4711/logs", 200, "list"),
    ("GET", "/v1/jobs/4711/logs?around=no-such", 404, "problem"),
    ("GET", "/v1/jobs/4711/logs?rank=131072", 400, "problem"),
    ("GET", "/v1/jobs/4711/logs?lines=0", 400, "problem"),
    ("GET", "/v1/jobs/4711/logs?cursor=x", 400, "problem"),
    ("GET", "/v1/jobs/4711/ranks?cursor=x", 400, "problem"),
    ("GET", "/v1/jobs/4711/ranks?cursor=1-2", 400, "problem"),
    ("GET", "/v1/jobs/4711/ranks?limit=0", 400, "problem"),
    ("GET", "/v1/jobs/4711/ranks?attempt=9", 404, "problem"),
    ("GET", "/v1/jobs/4711/timeline?cursor=7", 400, "problem"),
    ("GET", "/v1/jobs/4711/events?cursor=7", 400, "problem"),
    ("GET", "/v1/jobs/4711/events?rank=-1", 400, "problem"),
    ("GET", "/v1/jobs/4711/events?role=zzz", 400, "problem"),
    ("GET", "/v1/jobs/4711/events?rank=1&role=primary", 200, "list"),
    ("GET", "/v1/jobs/4711/export?cursor=x", 400, "problem"),
    ("GET", "/v1/jobs/4711/export", 200, None),
    # nothing there
    ("GET", "/", 404, "problem"),
    ("GET", "/v1", 404, "problem"),
    ("GET", "/v1/", 404, "problem"),
    ("GET", "/v2/jobs", 404, "problem"),
    ("GET", "/v1/jobs/", 404, "problem"),
    ("GET", "/v1/jobs//verdict", 404, "problem"),
    ("GET", "/v1/jobs/4711/verdict/", 404, "problem"),
    ("GET", "/v1/jobs/4711/verdict/x", 404, "problem"),
    ("GET", "/v1/jobs/4711%2Fverdict", 404, "problem"),
    ("GET", "/healthz/x", 404, "problem"),
    # too long; so long that its connection has no room for it is another 414, of the HTTP library's
    ("GET", "/v1/jobs/" + "x" * 32759, 404, "problem"),
    ("GET", "/v1/jobs/" + "x" * 32760, 414, "problem"),
    ("GET", "/v1/jobs?fault=" + "x" * 40000, 414, "problem"),
    # escapes
    ("GET", "/v1/jobs/47%31%31", 200, None),
    ("GET", "/v1/jobs/%", 400, "problem"),
    ("GET", "/v1/jobs/%4", 400, "problem"),
    ("GET", "/v1/jobs/%zz", 400, "problem"),
    ("GET", "/v1/jobs/4711%00", 400, "problem"),
    ("GET", "/v1/jobs?fault=%", 400, "problem"),
    ("GET", "/v1/jobs?fault=cuda-oom&node=%g0", 400, "problem"),
    ("GET", "/1/2/3/4/5/6/7/8/9/10/11/12/13/14/15/16/17", 400, "problem"),
    # other methods
    ("POST", "/v1/jobs", 405, "problem"),
    ("POST", "/v1/jobs/4711/verdict", 405, "problem"),
    ("GET", "/v1/jobs/4711/end", 405, "problem"),
    ("PUT", "/v1/jobs/4711/start", 405, "problem"),
    ("PATCH", "/healthz", 405, "problem"),
    ("POST", "/metrics", 405, "problem"),
    ("POST", "/v1/watch", 405, "problem"),
    ("OPTIONS", "/v1/status", 405, "problem"),
    ("PUT", "/v1/nothing", 404, "problem"),
)
ALLOW = {"/v1/jobs": "GET, HEAD", "/v1/jobs/4711/verdict": "GET, HEAD", "/v1/jobs/4711/end": "POST", "/v1/jobs/4711/start": "POST", "/healthz": "GET, HEAD", "/metrics": "GET, HEAD", "/v1/watch": "GET, HEAD",
         "/v1/status": "GET, HEAD"}


def of_form(t, answer, name, what):
    """An answer's content type, and its JSON by its schema."""
    problem = answer.status >= 400
    t.same(answer.headers["Content-Type"], "application/problem+json" if problem else "application/json", f"{what}: its type")
    doc = answer.json()
    t.same(schema.errors("list" if name == "catalog-list" else name, doc), [], f"{what}: by its schema")
    if problem:
        t.same(doc["status"], answer.status, f"{what}: the status in the body")
    return doc


def feed(t, daemon, job="4711", ranks=3):
    """A job that fails; its verdict."""
    run = world.storm(t.seed, job, ranks, 20 << 10)
    live = Feed(daemon, run, "s" + job).start()
    live.send()
    return live.finish()


def test_addresses(t):
    daemon = t.start()
    feed(t, daemon)
    for method, address, status, name in ADDRESSES:
        answer = daemon.api.request(method, address)
        what = f"{method} {address[:200]}"
        t.same(answer.status, status, f"{what}: {answer}")
        if name == "text":
            t.check(answer.headers["Content-Type"].startswith("text/plain;") and answer.body.endswith(b"\n"), f"{what}: {answer}")
        elif name:
            of_form(t, answer, name, what)
        t.same(answer.headers.get("Allow"), ALLOW[address] if status == 405 else None, f"{what}: Allow")
        if method == "GET":
            head = daemon.api.request("HEAD", address)
            t.same((head.status, head.body), (status, b""), f"HEAD {address}")
            if status >= 400 or "faults" in address:  # others change as time goes by
                t.same(head.headers.get("Content-Length"), str(len(answer.body)), f"HEAD {address}: its length")
    daemon.stop()


def jobs(daemon, query=""):
    return [item["job"] for item in daemon.api.items("/v1/jobs" + query)]


def test_filters(t):
    """Of jobs: each filter alone, all together, and none of them forgotten by the command."""
    daemon = t.start()
    feed(t, daemon, "old")
    between = daemon.status()["now"]
    oom = [{"event": "job-start", "job": "young", "user": "ada", "world_size": 1, "nodes": ["gpu-7"]},
           {"job": "young", "rank": 0, "node": "gpu-7", "stream": "a", "message": "IndexError: Target 57 is out of bounds."}]
    lines(daemon, oom)
    daemon.api.end("young", exit_code=1)
    daemon.api.start("open", user="bob", world_size=2)
    found = {item["job"]: item for item in daemon.api.items("/v1/jobs")}
    t.same(list(found), ["open", "young", "old"], "newest first")
    fault = found["old"]["fault"]
    t.check(fault and fault != found["young"]["fault"], f"two faults: {found}")
    for query, wanted in ((f"?fault={fault}", ["old"]), ("?state=ended", ["young", "old"]), ("?state=running", ["open"]), ("?state=stalled", []),
                          ("?node=gpu-7", ["young"]), ("?node=node-0", ["old"]), ("?node=no", []), ("?user=ada", ["young"]), ("?user=bob", ["open"]),
                          (f"?user={os.getuid()}", ["open", "young", "old"]), (f"?user={os.getuid() + 1}", []), (f"?since={between}", ["open", "young"]),
                          ("?since=2099-01-01T00:00:00Z", []), (f"?state=ended&user=ada&node=gpu-7&since={between}", ["young"]),
                          (f"?state=running&fault={fault}", [])):
        t.same(jobs(daemon, query), wanted, query)
        flags = [word for pair in query[1:].split("&") for word in ("--" + pair.split("=")[0], pair.split("=")[1])]
        t.same([item["job"] for item in t.json("jobs", "--json", *flags, env=daemon.env)["items"]], wanted, f"jobs {flags}")
    rows = t.run("jobs", env=daemon.env).stdout.decode().splitlines()
    t.same((len(rows), max(map(len, rows)) <= 100), (4, True), f"jobs: {rows}")
    rows = t.run("events", "old", env=daemon.env).stdout.decode().splitlines()
    t.same((len(rows) > 3, max(map(len, rows)) <= 100), (True, True), f"events: {rows}")
    daemon.stop()


def lines(daemon, objects):
    """JSON Lines, until the daemon has them."""
    with socket.socket(socket.AF_UNIX) as s:
        s.connect(str(daemon.ingest))
        s.sendall(b"".join(json.dumps(o).encode() + b"\n" for o in objects))
        s.shutdown(socket.SHUT_WR)
        while s.recv(65536):
            pass


def by_pages(daemon, url, limit, between=lambda: None):
    """All items by pages of so many; `between` runs before each page but the first."""
    out, cursor = [], None
    while True:
        doc = daemon.api.get(f"{url}?limit={limit}" + (f"&cursor={cursor}" if cursor else "")).json()
        assert len(doc["items"]) <= limit
        out += doc["items"]
        cursor = doc["next"]
        if not cursor:
            return out
        between()


def test_pages(t):
    """Pages of any size are the whole list."""
    daemon = t.start()
    feed(t, daemon, "4711", 5)
    for i in range(7):
        daemon.api.start(f"j{i}")
    for name in ("", "/4711/ranks", "/4711/events", "/4711/timeline"):
        url = "/v1/jobs" + name
        whole = [without_time(x) for x in daemon.api.get(url).json()["items"]]
        t.check(len(whole) > 4, f"{url}: {len(whole)} items")
        for limit in (1, 3, len(whole) - 1, len(whole), len(whole) + 1):
            if len(whole) // limit > 40:
                continue
            t.same([without_time(x) for x in by_pages(daemon, url, limit)], whole, f"{url} by {limit}")
    daemon.stop()


def without_time(item):
    return {k: v for k, v in item.items() if k != "as_of"}


def test_pages_of_what_grows(t):
    """What comes between two pages pushes nothing out of them and shows nothing twice."""
    daemon = t.start()
    rank = lambda r, second: {"job": "g", "rank": r, "node": f"n{r:03}", "stream": f"r{r}", "time": f"2026-01-01T00:00:{second:02}Z",
                              "message": f"RuntimeError: number {r} is bad"}
    lines(daemon, [{"event": "job-start", "job": "g", "world_size": None}, *(rank(r, 30) for r in range(20, 40, 2))])
    before = [e["id"] for e in daemon.api.items("/v1/jobs/g/events")]
    t.same(len(before), 10, "events")
    more = iter(range(5, 60))

    def insert():
        """An event before all others and one behind them, a rank among the others, and a run."""
        n = next(more)
        lines(daemon, [rank(n, 1), rank(100 + n, 50), {"event": "job-start", "job": f"g{n}"}])

    for name, key, old in (("/g/events", "id", before), ("/g/timeline", "id", before), ("/g/ranks", "rank", range(20, 40, 2)), ("", "job", ["g"])):
        seen = [x[key] for x in by_pages(daemon, "/v1/jobs" + name, 3, insert)]
        t.same(len(seen), len(set(seen)), f"{name}: something twice in {seen}")
        t.same([x for x in seen if x in set(old)], list(old), f"{name}: what was there")
    daemon.stop()


def test_answers_are_kept(t):
    """What is asked for again about an ended run is given again, byte for byte, until something changes."""
    daemon = t.start()
    feed(t, daemon, "4711", 5)
    kept = lambda: daemon.status()["counters"]["answers_kept"]
    urls = [f"/v1/jobs/4711/{x}" for x in ("verdict", "verdict?attempt=0", "verdict?full=1", "ranks", "ranks?limit=2", "ranks?limit=3", "timeline?limit=1")]
    t.same(daemon.api.get("/v1/jobs/4711/verdict").json()["state"], "ended", "state")
    first = [daemon.api.get(url) for url in urls]
    t.check(len({a.body for a in first}) >= 5, "the answers are too like each other")
    before = kept()
    for url, answer in zip(urls, first):
        again = daemon.api.get(url)
        t.same((again.body, again.headers.get("ETag")), (answer.body, answer.headers.get("ETag")), f"{url} again")
        t.same(daemon.api.get(url.replace("4711", "47")).body, answer.body, f"{url} by a prefix")
    t.same(kept() - before, 2 * len(urls), "answers given again")
    etag = first[0].headers["ETag"]
    t.same(daemon.api.request("GET", urls[0], headers={"If-None-Match": etag}).status, 304, "status with the ETag")
    # text says how long ago it was
    before = kept()
    for _ in range(2):
        t.check(daemon.api.get("/v1/jobs/4711/verdict?format=text").body != first[0].body, "text is JSON")
        t.check(daemon.api.request("GET", urls[0], headers={"Accept": "text/plain"}).body != first[0].body, "text is JSON")
        t.same(daemon.api.get("/v1/jobs/4711/ranks?cursor=x", ok=(400,)).status, 400, "status of a bad cursor")
    t.same(kept(), before, "answers given again")
    # a reload brings another catalogue, a restart forgets
    reloads = daemon.status()["counters"]["reloads"]
    daemon.process.send_signal(signal.SIGHUP)
    poll.until("the reload", lambda: daemon.status()["counters"]["reloads"] > reloads)
    t.same(daemon.api.get(urls[0]).body, first[0].body, "the verdict after a reload")
    t.same(kept(), before, "answers given again")
    daemon.restart()
    t.same([daemon.api.get(url).body for url in urls], [a.body for a in first], "answers after a restart")
    # one line more, and it is another verdict
    lines(daemon, [{"job": "4711", "rank": 1, "node": "node-9", "stream": "late", "time": "2026-01-01T00:00:00Z", "message": "RuntimeError: number 1 is bad"}])
    for url, answer in zip(urls[:4], first):
        t.check(daemon.api.get(url).body != answer.body, f"{url} after one line more")
    t.same(kept(), 0, "answers given again")
    # bounded: what was asked for longest ago goes
    for i in range(70):
        daemon.api.get(f"/v1/jobs/4711/verdict?x={i}")
        daemon.api.get("/v1/jobs/4711/verdict?x=0")
    before = kept()
    for i in (0, 69, 1):
        daemon.api.get(f"/v1/jobs/4711/verdict?x={i}")
    t.same(kept() - before, 2, "of three, answers that are still kept")
    # an open run's depends on the time
    daemon.api.start("open", world_size=1)
    before = kept()
    for _ in range(2):
        t.same(daemon.api.get("/v1/jobs/open/verdict").json()["state"], "running", "state")
    t.same(kept(), before, "answers given again of an open run")
    daemon.stop()


if __name__ == "__main__":
    trial.main(__doc__, test_addresses, test_filters, test_pages, test_pages_of_what_grows, test_answers_are_kept)
