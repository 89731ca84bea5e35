#!/usr/bin/env python3
"""With less evidence the answer may say less, never accuse somebody else.

Each case of tests/cases/dev, and of tests/cases/own, loses evidence at random, in one of the ways below. What the verdict
then names must be among the ranks or the node that the case's truth, or one of its other readings, names. For each way at
most LIMIT percent may be wrong (and what chance adds to that), and none with `certain` where the initiating rank's own streams are gone. Ranks that are
renumbered consistently and lines that belong to nobody must not change the answer. --all: every case in every way, DRAWS
times, else one draw of a part of the cases. All jobs of a way go through few processes.
"""
import collections
import copy
import json
import math
import pathlib
import re
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from support import chatter, trial  # noqa: E402
from support.replay import CASES, run_cases  # noqa: E402

LIMIT = 1.0    # percent of wrong blame, for each way
DRAWS = 3      # of each case and way under --all
PART = 0.25    # of the cases, else
BATCH = 100    # jobs a process

TAG = re.compile(r"^((?:\[(?:rank|default)?\d+\]:?|\[\d+,\d+\]<\w+>:?|\s?\d+:)\s?)+")
WHOSE = re.compile(r"^\s*\[(?:rank|default)?(\d+)\]:|^\[\d+,(\d+)\]<|^\s*(\d+): ")
STAMP = re.compile(r"(?<!\d)(\d{4}-\d\d-\d\d[T ])?(\d\d):(\d\d):(\d\d)(?!\d)")
RANK = re.compile(r"(?<![A-Za-z])((?:\[|global_)?[Rr][Aa][Nn][Kk](?:\s*:\s+|[ =]?)|\[default)(\d+)(?!\d)")
OTHER_NAMES = re.compile(r"[Rr]anks|task|local|pid|peer|host|cuda|node|\[\d", re.I)
HEALTHY = "step {n} loss {loss:.4f}"


# ---- ways of taking evidence away: (case, rng) -> case, or None where it has none to take

def only(case, keep):
    """The streams of these numbers."""
    meta, rows = case
    left = [i for i in range(len(meta["streams"])) if i in keep]
    meta["streams"] = [meta["streams"][i] for i in left]
    return meta, [(t, left.index(s), text) for t, s, text in rows if s in keep]


def drop_streams(case, rng):
    n = len(case[0]["streams"])
    keep = {i for i in range(n) if rng.random() < rng.choice((0.3, 0.6, 0.9))} or {rng.randrange(n)}
    return only(case, keep) if n > 1 and len(keep) < n else None


def starters(meta):
    return set(meta["truth"].get("initiating_ranks") or [])


def drop_initiator(case, rng):
    """Neither the streams of the ranks that began it nor their lines in others are left."""
    meta, rows = case
    first = starters(meta)
    gone = {i for i, s in enumerate(meta["streams"]) if s.get("rank") in first}
    whose = [next((int(g) for g in (WHOSE.match(text) or [None]).groups() if g), None) if WHOSE.match(text) else None for _, _, text in rows]
    rows = [row for row, w in zip(rows, whose) if w not in first]
    if not first or (not gone and len(rows) == len(case[1])) or len(gone) == len(meta["streams"]):
        return None
    return only((meta, rows), set(range(len(meta["streams"]))) - gone)


def cut_streams(case, rng, head):
    meta, rows = case
    count = collections.Counter(s for _, s, _ in rows)
    keep = {s: int(n * rng.random()) if rng.random() < 0.5 else n for s, n in count.items()}
    out, seen = [], collections.Counter()
    for row in rows:
        seen[row[1]] += 1
        if (seen[row[1]] > count[row[1]] - keep[row[1]]) if head else (seen[row[1]] <= keep[row[1]]):
            out.append(row)
    return (meta, out) if out else None


def cut_tails(case, rng):
    return cut_streams(case, rng, head=False)


def cut_heads(case, rng):
    return cut_streams(case, rng, head=True)


def forget(case, rng):
    """Some of the declarations; those of a stream about itself for all streams, or for some."""
    meta, rows = case
    what = rng.sample(("world", "job_end", "kind", "node", "rank", "local_rank", "attempt", "fd", "launcher"), rng.randint(1, 5))
    share = rng.choice((0.5, 1.0))
    if "world" in what:
        meta["world_size"] = None
    if "job_end" in what:
        meta.pop("job_end", None)
    if "launcher" in what:
        meta.pop("launcher", None)
    for s in meta["streams"]:
        for key in what:
            if key in s and rng.random() < share:
                s[key] = None
    return meta, rows


def strip_tags(case, rng):
    meta, rows = case
    out = [(t, s, TAG.sub("", text)) for t, s, text in rows]
    return (meta, out) if out != rows else None


def remove_times(case, rng):
    meta, rows = case
    return (meta, [(0, s, text) for _, s, text in rows]) if any(t for t, _, _ in rows) else None


def shift_clock(case, rng):
    """The stamps that one node writes into its lines are minutes off; no arrival times are left to correct them."""
    meta, rows = case
    nodes = sorted({s["node"] for s in meta["streams"] if s.get("node")})
    if len(nodes) < 2:
        return None
    node, by = rng.choice(nodes), rng.choice((-1, 1)) * rng.randint(60, 900)

    def moved(m):
        at = int(m[2]) * 3600 + int(m[3]) * 60 + int(m[4]) + by
        at = min(max(at, 0), 86399)
        return f"{m[1] or ''}{at // 3600:02d}:{at // 60 % 60:02d}:{at % 60:02d}"

    return meta, [(0, s, STAMP.sub(moved, text) if meta["streams"][s].get("node") == node else text) for _, s, text in rows]


def merge(case, rng, tags):
    meta, rows = case
    if len(meta["streams"]) < 2:
        return None
    ranks = [s.get("rank") for s in meta["streams"]]
    if tags:
        rows = [(t, s, f"[rank{ranks[s]}]: {text}" if ranks[s] is not None and not TAG.match(text) else text) for t, s, text in rows]
    meta["streams"] = [{"name": "job.log", "kind": "mixed"}]
    return meta, [(t, 0, text) for t, _, text in rows]


def merge_plain(case, rng):
    return merge(case, rng, tags=False)


def merge_tagged(case, rng):
    return merge(case, rng, tags=True)


def stranger(case, rng):
    """Lines of a healthy process that says nothing of itself, in a stream of nobody."""
    meta, rows = case
    meta["streams"].append({"name": "other.log", "kind": "mixed"})
    k, n = len(meta["streams"]) - 1, rng.randint(1, 40)
    lines = [(rng.choice(rows)[0], k, HEALTHY.format(n=i, loss=3 - i / 20)) for i in range(n)]
    return meta, sorted(rows + sorted(lines, key=lambda r: r[0]), key=lambda r: r[0])


LESS = (drop_streams, drop_initiator, cut_tails, cut_heads, forget, strip_tags, remove_times, shift_clock, merge_plain, merge_tagged, stranger)


# ---- what must not change anything

def renumber(case, rng):
    """Other numbers for the ranks; only where they stand in their streams' declarations and in forms that are known here."""
    meta, rows = case
    world = meta["world_size"] or 0
    if world < 2 or len({s.get("node") for s in meta["streams"]} - {None}) > 1 or any(s.get("local_rank") is not None for s in meta["streams"]):
        return None
    if any(OTHER_NAMES.search(RANK.sub("", text)) for _, _, text in rows if re.search(r"\d", text)):
        return None
    new = list(range(world))
    rng.shuffle(new)
    for s in meta["streams"]:
        if s.get("rank") is not None:
            s["rank"] = new[s["rank"]]
    rows = [(t, s, RANK.sub(lambda m: m[1] + str(new[int(m[2])] if int(m[2]) < world else m[2]), text)) for t, s, text in rows]
    meta["new"] = new
    return meta, rows


# ---- asking

def load_cases():
    return [run_cases.load(p.parent) for p in sorted([*(CASES / "dev").rglob("case.json"), *(CASES / "own").rglob("case.json")])]


def ask(t, some):
    """The verdicts of these (case, ...) by name of their job, as bytes of one object each."""
    out = {}
    for i in range(0, len(some), BATCH):
        text = "".join(json.dumps(r, ensure_ascii=False) + "\n" for meta, rows in some[i:i + BATCH] for r in run_cases.records(meta, rows))
        got = json.loads(t.run("analyze", "--json", "-", input=text.encode("utf-8", "surrogateescape"), timeout=300).stdout)
        out |= {v["job"]: v for v in (got if isinstance(got, list) else [got])}
    return out


def names(answer):
    return {i["rank"] for i in answer["initiating"] if i["rank"] is not None}


def wrong_blame(meta, answer):
    """It names somebody whom no reading of the truth names."""
    if answer["verdict"] not in ("rank", "node"):
        return False
    truth = meta["truth"]
    readings = [{"ranks": truth.get("initiating_ranks"), "node": truth.get("initiating_node")}, *truth.get("accept", [])]
    nodes, ranks = set(), set()
    for r in readings:
        ranks |= set(r.get("ranks") or [])
        nodes |= set(r["node"] if isinstance(r.get("node"), list) else [r["node"]] if r.get("node") else [])
    home = {s["rank"]: s.get("node") for s in meta["streams"] if s.get("rank") is not None}
    if answer["verdict"] == "node":
        return answer["node"] not in nodes
    return any(r not in ranks and home.get(r, "") not in nodes for r in names(answer))


def try_way(t, cases, way, draws):
    some, whole = [], {}
    for n in range(draws):
        for meta, rows in cases:
            less = way(copy.deepcopy((meta, rows)), t.rng)
            if less and less[1]:
                less[0]["id"] = f"{meta['id']} {way.__name__} {n}"
                some.append(less)
                whole[less[0]["id"]] = meta
    answers = ask(t, some)
    wrong = []
    for less, _ in some:
        answer = answers[run_cases.job_name(less)]
        if wrong_blame(whole[less["id"]], answer):
            truth = whole[less["id"]]["truth"]
            wrong.append((answer["confidence"], f"{less['id']}: is {truth['verdict']} {truth.get('initiating_ranks')} {truth.get('initiating_node')}, said "
                          f"{answer['verdict']} {sorted(names(answer))} {answer['node']} by {answer['why'][0]['rule']} ({answer['confidence']})"))
    named = sum(answers[run_cases.job_name(less)]["verdict"] in ("rank", "node") for less, _ in some)
    print(f"  {way.__name__}: {len(wrong)} of {len(some)} wrong, {named} named", flush=True)
    return some, wrong


def part(t, cases):
    return cases if t.everything else [c for c in cases if t.rng.random() < PART]


def test_less(t):
    cases, bad = part(t, load_cases()), []
    for way in LESS:
        some, wrong = try_way(t, cases, way, DRAWS if t.everything else 1)
        print("".join(f"    {text}\n" for _, text in wrong), end="")
        sure = way is drop_initiator and any(c == "certain" for c, _ in wrong)
        most = LIMIT * len(some) / 100
        if sure or len(wrong) > most + 3 * math.sqrt(most):  # chance among so few draws
            bad += [text for _, text in wrong]
    t.check(not bad, "\n".join(bad))


def essence(answer, new=None):
    said = names(answer)
    return answer["verdict"], answer["confidence"], sorted(new[r] for r in said) if new else sorted(said), answer["node"], (answer["fault"] or {}).get("id")


def test_renumber(t):
    some, before = [], []
    for meta, rows in load_cases():
        other = renumber(copy.deepcopy((meta, rows)), t.rng)
        if other:
            other[0]["id"] = f"{meta['id']} renumbered"
            some.append(other)
            before.append((meta, rows))
    print(f"  {len(some)} cases")
    t.check(len(some) > 9, "too few cases")
    old, got = ask(t, before), ask(t, some)
    wrong = []
    for (meta, _), (other, _) in zip(before, some):
        a, b = essence(old[run_cases.job_name(meta)], other["new"]), essence(got[run_cases.job_name(other)])
        if a != b:
            wrong.append(f"{meta['id']}: wanted {a}, got {b}")
    t.check(not wrong, "\n".join(wrong))


def test_foreign_job(t):
    """Another job's lines between these: the same bytes."""
    source = chatter.Chatter(t.seed)
    cases = part(t, load_cases())
    chat, _, _ = source.lines(0, 1 << 12)
    plain = ask(t, cases)
    wrong = []
    for i in range(0, len(cases), BATCH):
        lines = []
        for meta, rows in cases[i:i + BATCH]:
            for r in run_cases.records(meta, rows):
                lines.append(r)
                if t.rng.random() < 0.2:
                    lines.append({"job": "another", "stream": "a.log", "message": str(t.rng.choice(chat))})
        text = "".join(json.dumps(r, ensure_ascii=False) + "\n" for r in lines)
        for v in json.loads(t.run("analyze", "--json", "-", input=text.encode("utf-8", "surrogateescape"), timeout=300).stdout):
            if v["job"] != "another" and v != plain[v["job"]]:
                wrong.append(v["job"])
    t.check(not wrong, f"changed by another job's lines: {wrong}")


if __name__ == "__main__":
    trial.main(__doc__, test_less, test_renumber, test_foreign_job)
