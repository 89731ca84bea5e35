#!/usr/bin/env python3
"""Live = pasted = after a crash: one input, one verdict, byte for byte.

Every timed case of tests/cases/dev goes through `analyze -`, through the daemon over native connections, and through a
daemon that is killed with -9 half-way. In 20 of them the cut lies at an awkward place. Untimed cases and files that were
complete when they were tailed agree in verdict, ranks and fault.
"""
import concurrent.futures
import json
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from support import poll, replay, trial  # noqa: E402
from support.native import Gone  # noqa: E402
from support.replay import Feed  # noqa: E402

ODD = 20      # cases with a cut at an awkward place
GROUP = 5     # of them to one kill
known = {}    # what `analyze` said, by case


def expect(t, replays):
    """What the client says of each, two at a time."""
    new = [r for r in replays if r.name not in known]
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        known.update(zip([r.name for r in new], pool.map(lambda r: r.analyze(t), new)))
    for r in new:
        t.same(json.loads(known[r.name])["schema"], "firstfault.verdict/1", r.name)


def compare(t, got):
    """got: {case: bytes}; all that differ are shown."""
    wrong = [name for name, verdict in got.items() if verdict != known[name]]
    text = "".join(f"\n{name}: analyze | daemon{trial.difference(known[name], got[name])}" for name in wrong[:8])
    t.check(not wrong, f"{len(wrong)} of {len(got)} verdicts differ: {' '.join(wrong[:40])}{text}")


def essences(t, got):
    wrong = [n for n, v in got.items() if replay.essence(v) != replay.essence(known[n])]
    text = "".join(f"\n{n}: analyze {replay.essence(known[n])}\n  daemon {replay.essence(got[n])}" for n in wrong[:8])
    t.check(not wrong, f"{len(wrong)} of {len(got)} differ: {' '.join(wrong[:40])}{text}")


def test_plain(t):
    timed = replay.cases(True)
    expect(t, timed)
    daemon = t.start()
    got = {}
    for r in timed:
        feed = Feed(daemon, r, f"plain-{r.job}").start()
        feed.send()
        got[r.name] = feed.finish()
    daemon.stop()
    compare(t, got)


def test_killed(t):
    timed = replay.cases(True)
    expect(t, timed)
    daemon = t.start()
    feeds, got = [], {}
    room = trial.files_limit() - 200
    batches, size = [[]], 0
    for r in timed:
        if size + len(r.streams) > room:
            batches.append([])
            size = 0
        batches[-1].append(r)
        size += len(r.streams)
    for batch in batches:
        feeds = [Feed(daemon, r, f"killed-{r.job}").start() for r in batch]
        for feed in feeds:
            feed.send(feed.half())
        for feed in feeds:
            feed.wait_done()
        daemon.restart()
        for feed in feeds:
            feed.connect()
            feed.send()
            got[feed.replay.name] = feed.finish()
    daemon.stop()
    compare(t, got)


class Odd:
    """A case that is cut at an awkward place: the kill hits it there."""

    KINDS = ("record", "piece", "pieces", "sending", "takeover")

    def __init__(self, t, daemon, r, kind):
        self.t, self.kind, self.rng = t, kind, t.rng
        rows = list(range(len(r.rows)))
        inside = [i for i in rows if i > 0 and r.rows[i][2][:1] in b" \t" and r.rows[i][2].strip()]  # a traceback's lines are indented
        long = [i for i in rows if len(r.rows[i][2]) > 3]
        self.row = self.rng.choice((inside if kind == "record" else long if kind in ("piece", "pieces") else rows) or rows)
        cuts = {i: sorted(self.rng.sample(range(1, len(r.rows[i][2])), min(2, len(r.rows[i][2]) - 1))) for i in long if self.rng.random() < 0.2}
        if kind == "record":  # whole lines only: what is done is what was sent
            cuts.pop(self.row, None)
        if kind == "pieces" and len(r.rows[self.row][2]) > 3:
            cuts[self.row] = [len(r.rows[self.row][2]) // 2]
        self.feed = Feed(daemon, r, f"odd-{r.job}-{kind}", cuts)
        self.where = f"{r.name}: {kind} at row {self.row} of {len(rows)}, stream {r.rows[self.row][1]}"
        self.feed.start()

    def first(self):
        """All before the cut, in order; then the cut's own way to stop."""
        feed, row = self.feed, self.row
        for (k, i), of in zip(feed.order, feed.row_of):
            if of >= row:
                break
            feed.senders[k].send_part(0, i)
        k, i = feed.order[feed.row_of.index(row)]
        sender = feed.senders[k]
        if self.kind == "takeover":
            self.takeover()
        if self.kind in ("record", "pieces"):
            sender.send_part(0, i)
            feed.wait_done() if self.kind == "record" else sender.pump()
        elif self.kind == "piece":
            raw = sender.encode(0, i)
            sender.write(raw[:max(1, len(raw) // 2)])
        elif self.kind == "takeover":
            feed.wait_done()

    def takeover(self):
        """A second connection says the same hello; the first one is closed by the daemon."""
        for sender in self.feed.senders:
            old, sender.sock, buffer = sender.sock, None, sender.buffer
            sender.connect()
            old.settimeout(20)
            try:
                rest = buffer
                while True:
                    more = old.recv(65536)
                    if not more:
                        break
                    rest += more
            except ConnectionResetError:
                pass
            finally:
                old.close()

    def while_killed(self, kill):
        """Sends on; the kill comes in the middle."""
        left = [(k, i) for (k, i) in self.feed.order if i >= self.feed.senders[k].lanes[0].next]
        at = self.rng.randrange(len(left) + 1)
        gone = set()
        for n, (k, i) in enumerate(left):
            if n == at:
                kill()
            try:
                if k not in gone:
                    self.feed.senders[k].send_part(0, i)
            except (Gone, OSError):
                gone.add(k)
            if n > at + 40:
                break
        if at >= len(left):
            kill()

    def rest(self):
        self.feed.connect()
        self.feed.send()
        return self.feed.finish()


def test_odd_cuts(t):
    timed = [r for r in replay.cases(True) if len(r.rows) > 3]
    chosen = t.rng.sample(timed, ODD)
    expect(t, chosen)
    daemon = t.start()
    got = {}
    for g in range(0, ODD, GROUP):
        group = [Odd(t, daemon, r, Odd.KINDS[(g + n) % len(Odd.KINDS)]) for n, r in enumerate(chosen[g:g + GROUP])]
        for odd in group:
            print(" ", odd.where)
            odd.first()
        sending = [o for o in group if o.kind == "sending"]
        sending[0].while_killed(daemon.kill)
        daemon.start()
        for odd in group:
            got[odd.feed.replay.name] = odd.rest()
    daemon.stop()
    compare(t, got)


def test_untimed(t):
    untimed = replay.cases(False)
    expect(t, untimed)
    daemon = t.start()
    got = {}
    for r in untimed:
        feed = Feed(daemon, r, f"untimed-{r.job}").start()
        feed.send()
        got[r.name] = feed.finish()
    daemon.stop()
    essences(t, got)


def ended(r):
    return {k: v for k, v in r.end.items() if k in ("exit_code", "state")}


def tailed_path(s):
    """Where a stream's file lies, below its job's folder."""
    name = s["name"].replace("/", "+")
    return f"ranks/{s['node']}/{s.get('attempt', 0)}/{s['rank']}/{name}" if s["kind"] == "rank" else f"consoles/{s['node']}/{name}"


def test_tailed(t):
    """Cases of whole files: one rank's or one console's each, complete before the tail opens them."""
    def fits(r):
        kinds = {s["kind"] for s in r.streams}
        ranks = [(s.get("node"), s.get("attempt", 0), s.get("rank"), s.get("fd")) for s in r.streams]
        return (kinds == {"rank"} and len(set(ranks)) == len(ranks) or kinds == {"mixed"}) and all(s.get("node") for s in r.streams)

    fitting = [r for r in replay.cases() if fits(r)]
    logs = t.folder / "logs"
    for r in fitting:
        base = logs / r.job
        streams = []
        for k, s in enumerate(r.streams):
            path = tailed_path(s)
            (base / path).parent.mkdir(parents=True, exist_ok=True)
            (base / path).write_bytes(b"".join(x + b"\n" for _, n, x in r.rows if n == k))
            streams.append({"path": path, "kind": s["kind"], "node": s["node"], **({"fd": s["fd"]} if s.get("fd") else {}),
                            **({"rank": s["rank"], "attempt": s.get("attempt", 0)} if s["kind"] == "rank" else {})})
        # the same files, their identity told by a job.json
        (base / "job.json").write_text(json.dumps({"job": r.job, "streams": streams, **r.start, **({"job_end": ended(r)} if r.end else {})}))
        known[r.name] = t.run("analyze", "--json", base).stdout.rstrip(b"\n")
    daemon = t.start(options=[("tail", logs / "{job}/ranks/{node}/{attempt}/{rank}/{name}"), ("tail", logs / "{job}/consoles/{node}/{name}")])

    def ask(r):
        poll.until(f"tail of {r.name}", lambda: daemon.api.request("GET", f"/v1/jobs/{r.job}").status == 200, 30)
        daemon.api.start(r.job, **r.start)
        return json.dumps(daemon.api.end(r.job, **ended(r))["verdict"])

    with concurrent.futures.ThreadPoolExecutor(16) as pool:  # each end waits half a second for last lines
        fitting = [r for r in fitting if r.end]
        got = dict(zip([r.name for r in fitting], pool.map(ask, fitting)))
    daemon.stop()
    print(f"  {len(got)} cases")
    essences(t, got)


if __name__ == "__main__":
    trial.main(__doc__, test_plain, test_killed, test_odd_cuts, test_untimed, test_tailed)
