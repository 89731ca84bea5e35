#!/usr/bin/env python3
"""Healthy logs, full of what only looks like a fault, give no primary match; one planted fault a file is found in each.

FF_NOISE_MB: how much is written (10). Each file is 256 KiB: the noise forms of tests/cases/messages.tsv, each filled, and 50
lines of the clean cases stand at seeded places in each.
"""
import os
import pathlib
import random
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from support import catalog, chatter, messages, trial  # noqa: E402

MEGABYTES = int(os.environ.get("FF_NOISE_MB", "10"))
FILE = 1 << 18
CLEAN_LINES = 50
AT_ONCE = 100  # files on the disk


def plants(t):
    """(fault, text): fillings of primary forms that are found when they stand alone, and all primary examples of one line."""
    rng = random.Random(f"{t.seed} plants")
    rows = [row for row in messages.read() if row.role == "primary" for _ in range(3)]
    texts = [(row.fault, messages.fill(row.template, rng)) for row in rows]
    texts += [(e["id"], x) for e in catalog.entries() if e["role"] == "primary" for x in e["examples"] if "\n" not in x and x == x.strip()]
    found = catalog.events(t, [text for _, text in texts])
    good = [(fault, text) for (fault, text), events in zip(texts, found) if any(e.role == "primary" and e.fault == fault for e in events)]
    t.check(len(good) > 700, f"only {len(good)} texts to plant")
    return good


def primaries(events):
    return [e for e in events if e.role == "primary"]


def test_noise(t):
    source = chatter.Chatter(t.seed)
    forms, clean, faults = chatter.noise_forms(), chatter.clean_lines(), plants(t)
    t.check(len(forms) > 30 and len(clean) > 1000, f"{len(forms)} noise forms, {len(clean)} clean lines")
    size = lines = planted = 0
    used = set()
    files = MEGABYTES * ((1 << 20) // FILE)
    for first in range(0, files, AT_ONCE):
        numbers = range(first, min(first + AT_ONCE, files))
        bare, with_fault, wanted = [], [], []
        for n in numbers:
            rng = random.Random(f"{t.seed} mix {n}")
            rows, form, rank = source.lines(n, FILE)
            rows = chatter.mix(rows, [messages.fill(x, rng) for x in forms] + rng.choices(clean, k=CLEAN_LINES), rng)
            fault, text = rng.choice(faults)
            place = rng.randrange(len(rows) + 1)
            wanted.append((fault, text, place, form))
            bare.append(t.folder / f"bare-{n}.log")
            with_fault.append(t.folder / f"fault-{n}.log")
            bare[-1].write_bytes(chatter.text_of(rows, form, rank))
            with_fault[-1].write_bytes(chatter.text_of([*rows[:place], text, *rows[place:]], form, rank))
            size += bare[-1].stat().st_size
        found, counts = catalog.of_files(t, bare)
        lines += counts["lines"]
        t.check(not counts.get("events_dropped"), f"events were dropped, so that this proves nothing: {counts}")
        bad = [(numbers[i], e) for i in found for e in primaries(found[i])]
        t.check(not bad, lambda: f"{len(bad)} primary matches in healthy logs: {bad[:5]}")
        found, _ = catalog.of_files(t, with_fault)
        for i, (fault, text, place, form) in enumerate(wanted):
            hits = [e for e in primaries(found[i]) if e.fault == fault]
            t.check(hits, lambda: f"file {numbers[i]} ({form}): {fault} {text!r} before row {place} was not found, but {primaries(found[i])}")
            planted += 1
            used.add(fault)
        for path in [*bare, *with_fault]:
            path.unlink()
    print(f"  {size / 1e6:.0f} MB, {lines} lines, 0 primary matches; {planted} planted faults of {len(used)} ids all found")


def test_verdict(t):
    """The same by the client: a run of such ranks, told how it ended, is clean."""
    source = chatter.Chatter(t.seed)
    forms, clean = chatter.noise_forms(), chatter.clean_lines()
    for rank in range(4):
        rng = random.Random(f"{t.seed} verdict {rank}")
        rows, form, _ = source.lines(rank, FILE // 2)
        rows = chatter.mix(rows, [messages.fill(x, rng) for x in forms] + rng.choices(clean, k=20), rng)
        (t.folder / f"rank-{rank}.log").write_bytes(chatter.text_of(rows, form, rank))
    done = [str(t.folder / f"rank-{rank}.log") for rank in range(4)]
    verdict = t.json("analyze", "--json", "--world", 4, *done)
    t.check(verdict["verdict"] in ("clean", "undetermined"), lambda: f"{verdict['verdict']}: {verdict['summary']}")


if __name__ == "__main__":
    trial.main(__doc__, test_noise, test_verdict)
