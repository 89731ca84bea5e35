#!/usr/bin/env python3
"""What the daemon says about itself: status as JSON and as text, and /metrics, which are the same numbers."""
import pathlib
import re
import shutil
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from support import prometheus, schema, trial, world  # noqa: E402
from support.replay import Feed  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parents[2]
NO_METRIC = {"pid", "schema", "program", "started", "now", "state", "store.since", "listeners.tcp_access", "warnings", "catalog", "listeners.tcp", "listeners.http", "connections",
             "kept.runs", "kept.oldest_heard", "reload.taken", "reload.refused", "reload.error", "reload.needs_restart", "hooks.error", "hooks.error_at"}


def declared():
    """The names of all counters, from the two lists of the sources."""
    own = re.search(r"#define DAEMON_COUNTS\(X\)(.*?)\n\n", (ROOT / "daemon/daemon.h").read_text(), re.S).group(1)
    names = re.findall(r"\bX\((\w+),", own) + re.findall(r"^X\((\w+),", (ROOT / "shared/core/count.def").read_text(), re.M)
    assert len(names) > 30 and len(names) == len(set(names)), names
    return names


def leaves(doc, path=""):
    for key, value in doc.items():
        at = f"{path}.{key}".lstrip(".")
        if isinstance(value, dict):
            yield from leaves(value, at)
        else:
            yield at, value


def metrics(t, daemon):
    answer = daemon.api.get("/metrics")
    t.same(answer.headers["Content-Type"], "text/plain; version=0.0.4; charset=utf-8", "type")
    return prometheus.parse(answer.body.decode()), answer.body


def test_every_counter(t):
    """Whatever is cut, skipped, refused or dropped is in status, as JSON and as text, and in /metrics."""
    daemon = t.start()
    doc = daemon.status()
    t.same(schema.errors("status", doc), [], "status by its schema")
    text = t.run("status", env=daemon.env).stdout.decode()
    t.check(all(len(x) <= 100 for x in text.splitlines() if "sha256" not in x), f"status as text: columns\n{text}")
    families, _ = metrics(t, daemon)
    for name in declared():
        t.check(isinstance(doc["counters"].get(name), int), f"{name} in status: {doc['counters']}")
        t.check(re.search(rf"\b{name}\b", text), f"{name} in status as text: {text}")
        t.same(families[f"firstfault_{name}_total"].kind, "counter", name)
        t.check(families[f"firstfault_{name}_total"].help, f"{name}: its meaning")
    t.check(re.search(r"\n  requests: [1-9]\d*  \(HTTP requests\)\n", text), f"a counter that is not 0 has its meaning: {text}")
    t.same(t.json("status", "--json", env=daemon.env)["schema"], doc["schema"], "status --json")
    daemon.stop()


def test_every_number(t):
    """What status says is in /metrics too, and with the same value."""
    daemon = t.start()
    run = world.storm(t.seed, "x", 3, 20 << 10)
    live = Feed(daemon, run, "s").start()
    live.send()
    live.finish()
    rows = re.findall(r'^\t\{(NULL|"\w+"), "(\w+)", "(\w+)", "(\w+)"', (ROOT / "daemon/metrics.c").read_text(), re.M)
    known = {(key if section == "NULL" else f"{section.strip(chr(34))}.{key}"): name for section, key, name, _ in rows}
    t.same(len(known), len(rows), "no number twice")
    doc = daemon.status()
    families, _ = metrics(t, daemon)
    said = dict(leaves(doc))
    spare = [k for k in said if k not in known and k not in NO_METRIC and not k.startswith(("counters.", "dialects."))]
    t.same(spare, [], "what status says and /metrics does not")
    t.same([k for k in known if k not in said], [], "what /metrics says and status does not")
    for key in ("runs", "runs_open", "streams", "events", "segments", "segment_bytes", "tail.files", "store.queue_limit", "process.max_fds"):
        t.same(families[known[key]].value(), said[key], f"{key}: one value")
    t.check(said["events"] > 0 and said["segment_bytes"] > 0 and said["runs"] == 1 and said["streams"] == 4, f"{said}")
    t.check(families["process_cpu_seconds_total"].value() > 0 and families["process_resident_memory_bytes"].value() > 1 << 20, "process")
    t.same(families["firstfault_lines_total"].value(), doc["counters"]["lines"], "lines")
    t.same(families["firstfault_reading"].value(), 1, "a truth is 1")
    t.same(families["firstfault_store_failing"].value(), 0, "a null is 0")
    build = families["firstfault_build_info"].samples
    t.check(len(build) == 1 and f"firstfault {build[0].labels['version']}" == doc["program"], f"build info: {build}")
    daemon.stop()


def test_as_many_series_whatever_comes(t):
    """The names of jobs, users and nodes are no labels."""
    daemon = t.start()
    before, _ = metrics(t, daemon)
    for i in range(60):
        daemon.api.start(f"job-{i}", user=f"user-{i}", nodes=[f"node-{i}"], world_size=1)
    after, raw = metrics(t, daemon)
    t.same(after["firstfault_runs"].value(), 60, "runs")
    t.same(sum(len(f.samples) for f in after.values()), sum(len(f.samples) for f in before.values()), "series")
    for word in (b"job-1", b"user-1", b"node-1"):
        t.check(word not in raw, f"{word} in metrics")
    daemon.stop()


def test_promtool(t):
    """The tool's own opinion of /metrics and of deploy/prometheus, where it is installed."""
    tool = shutil.which("promtool")
    if not tool:
        t.skip("no promtool (Debian: prometheus; deploy/setup --all)")
    daemon = t.start()
    _, raw = metrics(t, daemon)
    daemon.stop()
    for words, given in ((("check", "metrics"), raw), (("check", "rules", ROOT / "deploy/prometheus/rules.yml"), b""),
                         (("test", "rules", ROOT / "deploy/prometheus/rules_test.yml"), b"")):
        done = subprocess.run([tool, *map(str, words)], input=given, capture_output=True, timeout=60)
        t.same(done.returncode, 0, f"promtool {words}: {done.stdout.decode()} {done.stderr.decode()}")


def test_rules_name_what_there_is(t):
    """An alert on a misspelt name would be silent for ever."""
    daemon = t.start()
    families, _ = metrics(t, daemon)
    daemon.stop()
    rules = (ROOT / "deploy/prometheus/rules.yml").read_text()
    names = set(re.findall(r"\b(?:firstfault|process)_\w+", rules))
    t.check(len(names) > 8, f"names: {names}")
    t.same(sorted(names - set(families)), [], "names that are no metric")
    tested = (ROOT / "deploy/prometheus/rules_test.yml").read_text()
    t.same(sorted(set(re.findall(r"\bfirstfault_\w+", tested)) - set(families)), [], "names in the rules' test")


if __name__ == "__main__":
    trial.main(__doc__, test_every_counter, test_every_number, test_as_many_series_whatever_comes, test_promtool, test_rules_name_what_there_is)
