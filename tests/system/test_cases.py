#!/usr/bin/env python3
"""The score on the labelled failures of tests/cases/dev has a floor: in JSON Lines with times, and as files without."""
import json
import pathlib
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from support import trial  # noqa: E402
from support.replay import CASES  # noqa: E402

# in percent of the cases
RIGHT_JSONL = 40
RIGHT_FILES = 35
RIGHT_RANK = 30      # of the cases whose truth is `rank`, in mode jsonl
RIGHT_COMMON = 40    # `common`
WRONG_BLAME = 5      # at most; a wrong accusation is worse than no answer


def score(t, mode):
    out = t.folder / f"{mode}.json"
    done = subprocess.run([sys.executable, str(CASES / "run_cases.py"), "--cli", t.client, "--mode", mode, "--json", str(out), "--quiet",
                           "--timeout", "60", str(CASES / "dev")], capture_output=True, text=True)
    print(done.stdout, done.stderr, sep="", end="", flush=True)
    t.check(out.exists(), f"run_cases.py ended with {done.returncode}")
    return json.loads(out.read_text())


def share(cases):
    return 100 * sum(c["right"] for c in cases) / max(len(cases), 1)


def truth_of():
    return {p.parent.name: json.loads(p.read_text()) for p in (CASES / "dev").rglob("case.json")}


def check(t, mode, floor):
    result = score(t, mode)
    cases, wrong = result["cases"], []
    t.check(len(cases) == result["sums"]["n"] > 0, "no cases")
    kinds = {meta["id"]: meta["truth"]["verdict"] for meta in truth_of().values()}
    broken = [c["case"] for c in cases if c["said"] is None]
    if broken:
        wrong.append(f"{len(broken)} broken: {broken[:10]}")
    if share(cases) < floor:
        wrong.append(f"right {share(cases):.1f} %, floor {floor} %")
    blamed = [c["case"] for c in cases if c["wrong_blame"]]
    if 100 * len(blamed) / len(cases) > WRONG_BLAME:
        wrong.append(f"wrong blame in {len(blamed)} of {len(cases)}, at most {WRONG_BLAME} %: {blamed}")
    if mode == "jsonl":
        for kind, least in (("rank", RIGHT_RANK), ("common", RIGHT_COMMON)):
            some = [c for c in cases if kinds[c["case"]] == kind]
            if share(some) < least:
                wrong.append(f"right in {share(some):.1f} % of the {len(some)} cases of `{kind}`, floor {least} %")
    t.check(not wrong, "\n".join([f"mode {mode}:", *wrong]))


def test_jsonl(t):
    check(t, "jsonl", RIGHT_JSONL)


def test_files(t):
    check(t, "files", RIGHT_FILES)


if __name__ == "__main__":
    trial.main(__doc__, test_jsonl, test_files)
