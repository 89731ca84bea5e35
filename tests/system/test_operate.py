#!/usr/bin/env python3
"""Operation: the configuration and its sample file."""
import os
import pathlib
import re
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from support import trial  # noqa: E402
from support.daemon import environment  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parents[2]
PLACES = ("state", "ingest-socket", "api-socket")  # their defaults are the user's


def ask(t, *flags, status=0):
    done = subprocess.run([t.daemon, *map(str, flags)], capture_output=True, text=True, timeout=60, env=environment(t.folder))
    t.same(done.returncode, status, f"exit status of firstfaultd {flags}: {done.stderr}")
    return done.stdout if status == 0 else done.stderr


def assignments(text):
    return [(key, value.strip()) for key, value in re.findall(r"^#?([a-z][a-z-]*) =(.*)$", text, re.M)]


def test_sample(t):
    """deploy/firstfaultd.conf and README.md have every key, none more, and the defaults."""
    sample = assignments((ROOT / "deploy/firstfaultd.conf").read_text())
    keys = re.findall(r"^  --([a-z-]+)", ask(t, "--help").split("\nFlags only:")[0], re.M)
    t.same([k for k, _ in sample], keys, "keys of the sample, in the order of --help")
    readme = (ROOT / "README.md").read_text().split("## Configuration of firstfaultd")[1].split("\n## ")[0]
    t.same(re.findall(r"^\| `([a-z-]+)` \|", readme, re.M), keys, "keys of README.md, in the order of --help")
    places = PLACES if os.geteuid() else ()
    printed = ask(t, "--print-config")
    t.same([(k, v) for k, v in sample if v and k not in places], [(k, v) for k, v in assignments(printed) if k not in places],
           "the sample's values and --print-config")
    said = t.folder / "said.conf"
    said.write_text("".join(f"{k} = {v}\n" for k, v in sample if v and k not in places))
    t.same(ask(t, "--config", said, "--print-config"), printed, "what the sample's values say")
    ask(t, "--config", ROOT / "deploy/firstfaultd.conf", "--check-config")
    said.write_text("no-such-key = 1\n")
    t.check("said.conf:1: unknown key" in ask(t, "--config", said, "--check-config", status=64), "an unknown key is named")


def test_log_levels(t):
    """Each request at debug, life at info, nothing below error."""
    said = {}
    for level in ("debug", "info", "error"):
        daemon = t.start(level, [("log-level", level)])
        daemon.api.get("/v1/jobs")
        daemon.stop()
        said[level] = daemon.log_path.read_text()
    t.check("debug: group=api uid=" in said["debug"] and "uri=/v1/jobs status=200" in said["debug"], f"a request at debug: {said['debug']}")
    t.same({line.split(":")[0] for line in said["info"].splitlines()}, {"info"}, f"levels at info: {said['info']}")
    t.same(said["error"], "", "what is said at error")


if __name__ == "__main__":
    trial.main(__doc__, test_sample, test_log_levels)
