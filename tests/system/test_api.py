#!/usr/bin/env python3
"""The HTTP API: which addresses there are, what they answer, and what they refuse."""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from support import schema, trial, world  # noqa: E402
from support.replay import Feed  # noqa: E402

# method, address, status, schema of the answer
ADDRESSES = (
    ("GET", "/healthz", 200, None),
    ("GET", "/readyz", 200, None),
    ("GET", "/v1/status", 200, "status"),
    ("GET", "/v1/faults", 200, "catalog-list"),
    ("GET", "/v1/faults/cuda-oom", 200, "fault"),
    ("GET", "/v1/faults/no-such", 404, "problem"),
    ("GET", "/v1/jobs", 200, "list"),
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
    ("OPTIONS", "/v1/status", 405, "problem"),
    ("PUT", "/v1/nothing", 404, "problem"),
)
ALLOW = {"/v1/jobs": "GET, HEAD", "/v1/jobs/4711/verdict": "GET, HEAD", "/v1/jobs/4711/end": "POST", "/v1/jobs/4711/start": "POST", "/healthz": "GET, HEAD",
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
        what = f"{method} {address}"
        t.same(answer.status, status, f"{what}: {answer}")
        if name:
            of_form(t, answer, name, what)
        t.same(answer.headers.get("Allow"), ALLOW[address] if status == 405 else None, f"{what}: Allow")
        if method == "GET":
            head = daemon.api.request("HEAD", address)
            t.same((head.status, head.body), (status, b""), f"HEAD {address}")
            if status >= 400 or "faults" in address:  # others change as time goes by
                t.same(head.headers.get("Content-Length"), str(len(answer.body)), f"HEAD {address}: its length")
    daemon.stop()


if __name__ == "__main__":
    trial.main(__doc__, test_addresses)
