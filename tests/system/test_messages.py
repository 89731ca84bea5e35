#!/usr/bin/env python3
"""The catalogue against the field's message forms (tests/cases/messages.tsv): each filled three times with seeded values.

A form of another role never becomes primary. Of the primary ones most are found under their fault; the rest is printed.
"""
import collections
import json
import pathlib
import random
import re
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from support import catalog, messages, trial  # noqa: E402

FILLINGS = 3
PRIMARY_LEAST = 205  # forms, of 228
FAULTS_LEAST = 60    # fault ids among them

# Why a form that may start a failure gives no primary event with its fault: what it holds, and the reason. Others may not be missed.
REASONS = {
    "The server socket has failed to ": "healthy agents print it too; the exception that ends the process is the fault",
    "srun: forcing job termination": "a fact: the rules ask who signalled",
    "size mismatch for ": "a warning of loaders that go on; torch's own error has a header line, which is the fault",
    "Detected mismatch between collectives": "a report in which ranks accuse each other; a majority decides",
    "' raised:": "the next line has the back end's own exception",
    "Error executing job with overrides": "Hydra says it of any exception; the traceback below is the fault",
    "did not receive grad for rank": "the second line of a message whose first line is the fault",
    "ptlrpc_expire_one_request": "a slow server; clients say it in healthy jobs too",
    "'c10::CUDAError'": "any CUDA error ends so; the line of what() has it",
    "WorkerProc hit an exception": "the traceback below is the fault",
    "creating shared memory segment {shm_name} (size {bytes})": "the line before has the reason, which may be a permission",
    " noticed that process rank ": "how a process ended: an exit",
    "srun: error: {hostlist}: task": "how a process ended: an exit",
    "Child process unexpectedly failed": "how a process ended: an exit",
}


def reason(row):
    return next((why for piece, why in REASONS.items() if piece in row.template), None)


def fill_all(rows, rng):
    return [[messages.fill(row.template, rng) for _ in range(FILLINGS)] for row in rows]


def test_table(t):
    """Each hole has values, no row stands twice, and the faults of primary rows are ids of the catalogue."""
    rows = messages.read()
    ids = catalog.ids()
    used = set()
    for row in rows:
        used |= set(re.findall(r"\{([a-z]\w*)\}", row.template))
        t.check(row.role != "primary" or row.fault in ids or row.fault == "unknown", f"messages.tsv:{row.number}: no entry has {row.fault}")
    lacking, unused = used - messages.VALUES.keys(), messages.VALUES.keys() - used
    t.check(not lacking and not unused, f"holes without values {sorted(lacking)}, values without holes {sorted(unused)}")
    twice = [text for text, n in collections.Counter(row.template for row in rows).items() if n > 1]
    t.check(not twice, f"rows that stand twice: {twice}")


def test_messages(t):
    rows = messages.read()
    texts = fill_all(rows, t.rng)
    found = catalog.events(t, [text for some in texts for text in some])
    matched, missed, wrong = [], [], []
    for i, row in enumerate(rows):
        events = found[i * FILLINGS:(i + 1) * FILLINGS]
        faults = [{e.fault for e in some if e.role == "primary"} for some in events]
        if row.role != "primary":
            wrong += [(row, text, some) for text, some in zip(texts[i], faults) if some]
        elif all(row.fault in some for some in faults):
            matched.append(row)
        else:
            at = next(k for k, some in enumerate(faults) if row.fault not in some)
            missed.append((row, texts[i][at], sorted((e.fault, e.role) for e in events[at])))
    primary = len(matched) + len(missed)
    faults = {row.fault for row in matched}
    print(f"  {len(matched)} of {primary} primary forms match with their fault ({len(faults)} ids); "
          f"{len(wrong)} of {len(rows) - primary} others are primary; missed:")
    for row, text, got in missed:
        print(f"    {row.number} {row.fault} [{row.component}] {text[:100]!r}: {got or 'nothing'}: {reason(row) or 'a gap'}")
    t.check(not wrong, lambda: "primary, and should not be: " + "; ".join(f"{row.number} {text!r} -> {sorted(some)}" for row, text, some in wrong))
    gaps = [row for row, _, _ in missed if not reason(row)]
    t.check(not gaps, lambda: f"missed without a reason: {gaps}")
    t.check(len(matched) >= PRIMARY_LEAST, f"only {len(matched)} primary forms match")
    t.check(len(faults) >= FAULTS_LEAST, f"only {len(faults)} fault ids")


TABLE = """============================================================
train.py FAILED
------------------------------------------------------------
Failures:
  <NO_OTHER_FAILURES>
------------------------------------------------------------
Root Cause (first observed failure):
[0]:
  time      : 2026-11-30_09:27:37
  host      : node-a
  rank      : 1 (local_rank: 1)
  exitcode  : 1 (pid: 8842)
  error_file: /tmp/e.json
  traceback : Traceback (most recent call last):
    File "/job/train.py", line 88, in <module>
      main()
  """


def before_each(prefix):
    return lambda text: prefix + text.replace("\n", "\n" + prefix)


RAISED = "in torchrun's table"

# Where a text stands, beside the start of a bare line.
PLACES = {
    "behind the hook's prefix": before_each("[rank3]: "),
    "behind srun's label": before_each(" 3: "),
    "behind a logger": lambda text: "2026-03-01 10:00:00,123 - ERROR - trainer - " + text,
    "behind glog": lambda text: "E0301 10:00:00.123456 4711 torch/x.py:12] " + text,
    RAISED: lambda text: TABLE + text.replace("\n", "\n  ") + "\n" + "=" * 60,
}
PREFIXES = ("behind the hook's prefix", "behind srun's label")


def test_places(t):
    """A report stays one wherever it stands (its exception is not taken for one that nobody knows), and a fault is found
    behind prefixes."""
    rows = messages.read()
    texts = [(row.role, row.fault, messages.fill(row.template, t.rng)) for row in rows]
    texts += [(e["role"], e["id"], example) for e in catalog.entries() for example in e["examples"]]
    found = catalog.events(t, [text for _, _, text in texts])
    for name, place in PLACES.items():
        there = catalog.events(t, [place(text) for _, _, text in texts])
        for (role, fault, text), bare, events in zip(texts, found, there):
            if name == RAISED and role in ("noise", "context", "teardown"):
                continue  # nobody raises these
            before, now = ({e.fault for e in some if e.role == "primary"} for some in (bare, events))
            t.check(role == "primary" or now <= before, lambda: f"{name}: {role} {fault} {text!r} is primary: {sorted(now - before)}")
            t.check(role != "primary" or name not in PREFIXES or before <= now, lambda: f"{name}: {fault} {text!r} is not found")


def test_verdicts(t):
    """The same by the client: a job a form, and what is no primary names no rank as its own first fault."""
    rows = [row for row in messages.read() if row.role != "primary"]
    rng = random.Random(f"{t.seed} verdicts")
    objects = []
    for i, row in enumerate(rows):
        objects.append({"event": "job-start", "job": f"m{i}", "world_size": 4})
        for line in messages.fill(row.template, rng).split("\n"):
            objects.append({"job": f"m{i}", "kind": "rank", "rank": 0, "stream": "rank-0.log", "message": line})
    verdicts = t.json("analyze", "--json", "-", input="\n".join(map(json.dumps, objects)).encode())
    t.same(len(verdicts), len(rows), "verdicts")
    for v in verdicts:
        bad = [e["fault"] for e in v["events"] if e["role"] == "primary"]
        t.check(not bad, lambda: f"{rows[int(v['job'][1:])]}: {bad}")


if __name__ == "__main__":
    trial.main(__doc__, test_table, test_messages, test_places, test_verdicts)
