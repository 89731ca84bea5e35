"""What the daemon has on disk: rows of its store (schema/sql) and the text in its segment files."""
import collections
import re
import sqlite3

Lane = collections.namedtuple("Lane", "lines bytes fed digested resume rank local_rank stream")


def lanes(daemon, job=None):
    """{stream name: its lanes' sums and its offsets} of a daemon that has ended."""
    store = daemon.store()
    try:
        rows = store.execute("""
            SELECT s.run, s.number, s.name, s.life, s.rank, s.local_rank, s.fed, s.digested, s.resume, sum(l.lines) AS lines, sum(l.bytes) AS bytes
            FROM stream s JOIN run r ON r.number = s.run LEFT JOIN lane l ON l.run = s.run AND l.stream = s.number
            WHERE ? IS NULL OR r.job = ? GROUP BY s.run, s.number""", (job, job)).fetchall()
    finally:
        store.close()
    return {r["name"] + (f"#{r['life']}" if r["life"] > 1 else ""):
            Lane(r["lines"] or 0, r["bytes"] or 0, r["fed"], r["digested"], r["resume"], r["rank"], r["local_rank"], r["number"]) for r in rows}


def live_bytes(daemon, job):
    """{stream name: bytes taken} as the store of a running daemon has them."""
    try:
        return {name: lane.fed for name, lane in lanes(daemon, job).items()}
    except sqlite3.OperationalError:  # between two looks at it
        return {}


def rows_by_stream(daemon):
    """How many rows of all tables each stream has, its own included."""
    store = daemon.store()
    try:
        out = {(r["run"], r["number"]): 1 for r in store.execute("SELECT run, number FROM stream")}
        for table in ("tail", "lane", "event"):
            for r in store.execute(f"SELECT run, stream, count(*) AS n FROM {table} GROUP BY run, stream"):
                out[r["run"], r["stream"]] += r["n"]
        return out
    finally:
        store.close()


def size(daemon):
    """Bytes of the store's file that are in use, the write-ahead log included."""
    db = sqlite3.connect(daemon.store_path())
    db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
    pages, free, bytes_ = (db.execute(f"PRAGMA {name}").fetchone()[0] for name in ("page_count", "freelist_count", "page_size"))
    db.close()
    return (pages - free) * bytes_


def segment_files(daemon, run=None):
    """Of one run, or of all, in order."""
    found = [p for p in (daemon.state / "segments").rglob("*.seg") if run is None or p.parent.name == str(run)]
    return sorted(found, key=lambda p: (int(p.parent.name), int(p.stem)))


HEAD = re.compile(rb"@([0-9a-f]{8}) (\d+) (\d+) ([ac-])(?: -?\d+ -?\d+ -?\d+)?\n")
LINE = re.compile(rb"(\d+) 0([.-]) ([^\n]*)\n")


def frames(raw):
    """(stream, offset, text) of each frame of a segment file."""
    at = 0
    while at < len(raw):
        head = HEAD.match(raw, at)
        if not head:
            raise AssertionError(f"no frame at byte {at}: {raw[at:at + 80]!r}")
        end = head.end() + int(head[1], 16)
        text, at = [], head.end()
        while at < end:
            line = LINE.match(raw, at)
            if not line or line.end() > end:
                raise AssertionError(f"no data line at byte {at}: {raw[at:at + 80]!r}")
            text.append(line[3] + (b"\n" if line[2] == b"." else b""))
            at = line.end()
        yield int(head[2]), int(head[3]), b"".join(text)


def texts(daemon, job):
    """{stream name: its text in the segment files}; each byte has to be there once, and in order."""
    store = daemon.store()
    try:
        run = store.execute("SELECT number, segment_last, segment_length FROM run WHERE job = ?", (job,)).fetchone()
        names = dict(store.execute("SELECT number, name FROM stream WHERE run = ?", (run["number"],)).fetchall())
    finally:
        store.close()
    out = collections.defaultdict(bytearray)
    for path in segment_files(daemon, run["number"]):
        raw = path.read_bytes()
        if int(path.stem) == run["segment_last"]:
            raw = raw[:run["segment_length"]]
        for stream, offset, text in frames(raw):
            if offset != len(out[names[stream]]):
                raise AssertionError(f"{path.name}: a frame of {names[stream]} at {offset}, its text so far ends at {len(out[names[stream]])}")
            out[names[stream]] += text
    return out


def first_difference(a, b):
    n = next((i for i, (x, y) in enumerate(zip(a, b)) if x != y), min(len(a), len(b)))
    return f"{len(a)} and {len(b)} bytes, different from {n}: {a[max(0, n - 60):n + 80]!r} and {b[max(0, n - 60):n + 80]!r}"
