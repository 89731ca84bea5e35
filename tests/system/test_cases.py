#!/usr/bin/env python3
"""The score on the labelled failures of tests/cases/dev has a floor: all cases in JSON Lines with times, all as files
without, and those of one stream as a bare file, which is what people paste."""
import json
import pathlib
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from support import trial  # noqa: E402
from support.replay import CASES  # noqa: E402

# in percent of the cases of a mode; `kinds`: of those whose truth is this verdict
FLOORS = {
    "jsonl": {"right": 75, "kinds": {"rank": 70, "common": 75}},
    "files": {"right": 65, "kinds": {"rank": 60, "common": 65}},
    "paste": {"right": 50, "kinds": {"rank": 40, "common": 50}},
}
WRONG_BLAME = 3  # at most; a wrong accusation is worse than no answer


def score(t, mode, cases="dev"):
    out = t.folder / f"{cases}-{mode}.json"
    done = subprocess.run([sys.executable, str(CASES / "run_cases.py"), "--cli", t.client, "--mode", mode, "--json", str(out), "--quiet",
                           "--timeout", "60", str(CASES / cases)], capture_output=True, text=True)
    print(done.stdout, done.stderr, sep="", end="", flush=True)
    t.check(out.exists(), f"run_cases.py ended with {done.returncode}")
    return json.loads(out.read_text())


def share(cases):
    return 100 * sum(c["right"] for c in cases) / max(len(cases), 1)


def truths():
    return {meta["id"]: meta["truth"]["verdict"] for meta in (json.loads(p.read_text()) for p in (CASES / "dev").rglob("case.json"))}


def check(t, mode):
    result, floors, truth, wrong = score(t, mode), FLOORS[mode], truths(), []
    cases = result["cases"]
    t.check(len(cases) == result["sums"]["n"] > 0, "no cases")
    t.check(mode == "paste" or len(cases) == len(truth), f"{len(cases)} of {len(truth)} cases")
    broken = [c["case"] for c in cases if c["said"] is None]
    if broken:
        wrong.append(f"{len(broken)} broken: {broken[:10]}")
    if share(cases) < floors["right"]:
        wrong.append(f"right {share(cases):.1f} %, floor {floors['right']} %")
    blamed = [c["case"] for c in cases if c["wrong_blame"]]
    if 100 * len(blamed) / len(cases) > WRONG_BLAME:
        wrong.append(f"wrong blame in {len(blamed)} of {len(cases)}, at most {WRONG_BLAME} %: {blamed}")
    for kind, least in floors["kinds"].items():
        some = [c for c in cases if truth[c["case"]] == kind]
        if share(some) < least:
            wrong.append(f"right in {share(some):.1f} % of the {len(some)} cases of `{kind}`, floor {least} %")
    t.check(not wrong, "\n".join([f"mode {mode}:", *wrong]))


def test_jsonl(t):
    check(t, "jsonl")


def test_files(t):
    check(t, "files")


def test_paste(t):
    check(t, "paste")


def test_own(t):
    """The cases of tests/cases/own, written for mechanisms that no recorded one has, are all right."""
    wrong = [c["case"] for c in score(t, "jsonl", "own")["cases"] if not c["right"]]
    t.check(not wrong, f"wrong: {wrong}")


if __name__ == "__main__":
    trial.main(__doc__, test_jsonl, test_files, test_paste, test_own)
