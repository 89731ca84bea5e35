"""A job as rows of (time, stream, text), and the ways to feed it: JSON Lines for `analyze -`, native connections, files.

Rows come from a labelled case (tests/cases) or from a generator (support/world.py). All ways carry the same stamps: BASE
plus the row's time; an untimed job carries none.
"""
import datetime
import itertools
import json
import pathlib
import sys

from support.native import PIECE, Part, Sender

CASES = pathlib.Path(__file__).resolve().parents[1] / "cases"
sys.path.insert(0, str(CASES))
import run_cases  # noqa: E402  (the score's own reader: both make the same input)

BASE = run_cases.BASE
BASE_US = int(BASE.timestamp()) * 1000000
DECLARED = ("kind", "rank", "node", "local_rank", "attempt")


def rfc3339(us):
    return (BASE + datetime.timedelta(microseconds=us)).isoformat(timespec="microseconds").replace("+00:00", "Z")


class Replay:
    """streams: dicts as in case.json; rows: (time_us, stream, text bytes)."""

    def __init__(self, job, streams, rows, timed=True, start=None, end=None, name=None):
        self.job, self.streams, self.rows, self.timed = job, streams, rows, timed
        self.start = start or {}
        self.end = end
        self.name = name or job

    @classmethod
    def of_case(cls, folder):
        meta, rows = run_cases.load(folder)
        timed = any(t for t, _, _ in rows)
        first = next(run_cases.records(meta, rows))
        start = {k: v for k, v in first.items() if k not in ("event", "job")}
        out = cls(run_cases.job_name(meta), meta["streams"], [(t * 1000, s, text.encode("utf-8", "surrogateescape")) for t, s, text in rows],
                  timed, start, meta.get("job_end"), meta["id"])
        out.meta, out.text_rows = meta, rows
        return out

    def jsonl(self):
        """The input of `analyze -`: for a case, byte for byte what run_cases.py makes."""
        if hasattr(self, "meta"):
            records = run_cases.records(self.meta, self.text_rows)
            return "".join(json.dumps(r, ensure_ascii=False) + "\n" for r in records).encode("utf-8", "surrogateescape")
        heads = []
        for s in self.streams:
            head = {"job": self.job, "stream": s["name"], **{k: s[k] for k in (*DECLARED, "fd") if s.get(k) is not None}}
            heads.append(json.dumps(head)[:-1])
        out = [json.dumps({"event": "job-start", "job": self.job, **self.start})]
        for t, k, text in self.rows:
            stamp = f', "time": "{rfc3339(t)}"' if self.timed else ""
            out.append(f'{heads[k]}{stamp}, "message": {json.dumps(text.decode("utf-8", "surrogateescape"), ensure_ascii=False)}}}')
        if self.end is not None:
            out.append(json.dumps({"event": "job-end", "job": self.job, **self.end_facts()}))
        return ("\n".join(out) + "\n").encode("utf-8", "surrogateescape")

    def end_facts(self):
        time = {"time": rfc3339(self.rows[-1][0])} if self.timed and self.rows else {}
        return {**time, **(self.end or {})}

    def analyze(self, t):
        """What the client says of it, as bytes."""
        return t.run("analyze", "--json", "-", input=self.jsonl(), timeout=300).stdout.rstrip(b"\n")


class Feed:
    """A replay shipped over native connections: one a stream, all open at once, one source for all."""

    def __init__(self, daemon, replay, source, cuts=None):
        """cuts: {(row): [byte, ...]}: rows that go in pieces, cut there."""
        self.daemon, self.replay = daemon, replay
        parts = [[] for _ in replay.streams]
        self.order = []   # (stream, part): what is sent one after the other
        self.row_of = []  # row of each of these
        cuts = cuts or {}
        for row, (t, k, text) in enumerate(replay.rows):
            stamp = BASE_US + t if replay.timed else 0
            places = sorted({0, len(text), *range(0, len(text), PIECE), *(c for c in cuts.get(row, ()) if c < len(text))})
            pieces = [text[a:b] for a, b in itertools.pairwise(places)] or [b""]
            for i, piece in enumerate(pieces):
                self.order.append((k, len(parts[k])))
                self.row_of.append(row)
                parts[k].append(Part(stamp, piece, i == len(pieces) - 1))
        self.senders = []
        for k, s in enumerate(replay.streams):
            hello = {"job": replay.job, "source": source, "streams": [s["name"]], "clock": "collector",
                     **{key: s[key] for key in DECLARED if s.get(key) is not None}}
            if replay.start.get("world_size"):
                hello["world_size"] = replay.start["world_size"]
            if s.get("fd"):
                hello["fds"] = [s["fd"]]
            self.senders.append(Sender(daemon.ingest, hello, [parts[k]]))

    def start(self):
        self.daemon.api.start(self.replay.job, **self.replay.start)
        self.connect()
        return self

    def connect(self):
        for sender in self.senders:
            sender.connect()

    def close(self):
        for sender in self.senders:
            sender.close()

    def half(self):
        """How many of `order` are the first half of each stream's lines."""
        return [(len(s.lanes[0].parts) + 1) // 2 for s in self.senders]

    def send(self, limits=None, chunk=None):
        """Each stream up to its limit (a number of parts), its lines alternating with the others'."""
        if chunk:
            return self.send_in_chunks(limits, chunk)
        for k, i in self.order:
            if limits is None or i < limits[k]:
                self.senders[k].send_part(0, i)

    def send_in_chunks(self, limits, chunk):
        upto = [0] * len(self.senders)
        for n, (k, i) in enumerate(self.order, 1):
            if limits is None or i < limits[k]:
                upto[k] = i + 1
            if n % chunk == 0 or n == len(self.order):
                for sender, end in zip(self.senders, upto):
                    sender.send_run(0, end)

    def wait_done(self):
        for sender in self.senders:
            sender.wait_done()

    def finish(self):
        """End of each stream, then of the job; the verdict's bytes."""
        for sender in self.senders:
            sender.say_end()
        for sender in self.senders:
            sender.wait_end()
            sender.close()
        if self.replay.end is not None:
            self.daemon.api.end(self.replay.job, **self.replay.end_facts())
        return self.daemon.api.verdict(self.replay.job).rstrip(b"\n")


def cases(timed=None):
    """Every labelled case of tests/cases/dev; timed: only those with (True) or without (False) times."""
    folders = sorted(p.parent for p in (CASES / "dev").rglob("case.json"))
    out = [Replay.of_case(folder) for folder in folders]
    return [r for r in out if timed is None or r.timed is timed]


def essence(verdict):
    """What has to agree where the stamps differ."""
    if isinstance(verdict, (bytes, str)):
        verdict = json.loads(verdict)
    collateral = set()
    for c in verdict["collateral"]:
        collateral |= {c["rank"]} if c.get("rank") is not None else run_cases.spread(c.get("ranks") or "")
    return {"verdict": verdict["verdict"], "initiating": sorted(i["rank"] for i in verdict["initiating"]), "node": verdict["node"],
            "fault": (verdict["fault"] or {}).get("id"), "collateral": sorted(collateral)}
