#!/usr/bin/env python3
"""However the bytes are cut and the streams are mixed: the same verdict, byte for byte.

Each case of tests/cases/dev is fed whole as JSON Lines; then in single bytes, small and large pieces; then with its
streams mixed in other ways (each stream's lines keep their order, the job's start and end their place); then as one
native connection a stream, all side by side, each line cut into pieces and the bytes again in pieces. A crash and a
restart on the way: test_identity.py.
"""
import argparse
import json
import pathlib
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from support import replay, trial  # noqa: E402
from support.replay import BASE_US, DECLARED, run_cases  # noqa: E402

MIXED = 3  # other orders of each case


def lines(records):
    return "".join(json.dumps(r, ensure_ascii=False) + "\n" for r in records).encode("utf-8", "surrogateescape")


def mixed(rng, rows):
    """The rows in another order; those of one stream keep theirs."""
    left = {}
    for row in reversed(rows):
        left.setdefault(row[1], []).append(row)
    order = [k for k, some in sorted(left.items()) for _ in some]
    if rng.random() < 0.5:
        rng.shuffle(order)
    else:  # whole streams, one after the other: what a folder of files looks like
        place = sorted(left)
        rng.shuffle(place)
        order.sort(key=place.index)
    return [left[k].pop() for k in order]


def jsonl(r, rows):
    start, *_, end = all_ = list(run_cases.records(r.meta, r.text_rows))
    if "event" not in end:
        end = None
    body = all_[1:len(all_) - (end is not None)]
    place = {id(row): record for row, record in zip(r.text_rows, body, strict=True)}
    return lines([start, *(place[id(row)] for row in rows), *([end] if end else [])])


def native(rng, r, k, last):
    """Connection k: its stream's lines, some of them in pieces; the first one says the job's start, the last its end."""
    s = r.streams[k]
    hello = {"event": "hello", "protocol": "firstfault/1", "job": r.job, "source": f"source-{k}", "streams": [s["name"]],
             "clock": "collector", **{key: s[key] for key in DECLARED if s.get(key) is not None}}
    if r.start.get("world_size"):
        hello["world_size"] = r.start["world_size"]
    if s.get("fd"):
        hello["fds"] = [s["fd"]]
    out = [json.dumps(hello).encode(), json.dumps({"event": "job-start", **r.start}).encode()]
    total = 0
    for t, n, text in r.rows:
        if n != k:
            continue
        stamp = BASE_US + t if r.timed else 0
        cuts = sorted({0, len(text), *rng.sample(range(len(text) + 1), rng.choice((0, 0, 0, 1, min(3, len(text)))))})
        pieces = [text[a:b] for a, b in zip(cuts, cuts[1:])] or [b""]
        for i, piece in enumerate(pieces):
            out.append(b"%d 0%c %s" % (stamp, b"-."[i == len(pieces) - 1], piece))
        total += len(text) + 1
    out.append(json.dumps({"event": "end", "offsets": [total]}).encode())
    if last and r.end is not None:
        out.append(json.dumps({"event": "job-end", **r.end_facts()}).encode())
    return b"".join(line + b"\n" for line in out)


def test_pieces(t):
    folders = []
    for r in replay.cases():
        folder = t.folder / r.name
        folder.mkdir()
        for i in range(MIXED + 1):
            (folder / f"{i}.jsonl").write_bytes(jsonl(r, mixed(t.rng, r.text_rows) if i else r.text_rows))
        for k in range(len(r.streams) if r.timed else 0):  # untimed JSON Lines have no place for the end's time
            (folder / f"{k}.native").write_bytes(native(t.rng, r, k, k == len(r.streams) - 1))
        folders.append(folder)
    half = len(folders) // 2
    runs = [subprocess.Popen([t.pieces, str(t.seed), *map(str, some)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
            for some in (folders[:half], folders[half:])]
    out = [run.communicate()[0].decode(errors="replace") for run in runs]
    for text in out:
        print(" ", text.splitlines()[-1] if text else "no output")
    t.check(not any(run.returncode for run in runs), "\n".join(text[:20000] for text in out))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(add_help=False)
    parser.add_argument("--pieces", type=pathlib.Path, required=True)
    options, sys.argv[1:] = parser.parse_known_args()
    trial.Trial.pieces = str(options.pieces.resolve())
    trial.main(__doc__, test_pieces)
