"""What the catalogue finds in texts, by ff-events (events.c beside this): every event, where a verdict shows only some."""
import collections
import json
import pathlib
import subprocess

FOLDER = pathlib.Path(__file__).resolve().parents[2] / "shared" / "catalog"

Event = collections.namedtuple("Event", "stream line kind role fault signature text")


def entries():
    return [entry for path in sorted(FOLDER.glob("*.json")) for entry in json.loads(path.read_text(encoding="utf-8"))]


def ids():
    return {entry["id"] for entry in entries()}


def of_files(t, paths, split=False):
    """(events by stream, counters) of files, each a stream of its own, or with NUL between streams."""
    command = [t.events, *(["-0"] if split else []), *map(str, paths)]
    done = subprocess.run(command, capture_output=True, timeout=900)
    t.check(done.returncode == 0 and not done.stderr, lambda: f"ff-events: {done.returncode} {done.stderr[-2000:]}")
    streams, counts = collections.defaultdict(list), {}
    for line in done.stdout.decode().splitlines():
        if line.startswith("# "):
            _, name, value = line.split(" ")
            counts[name] = int(value)
        else:
            part = line.split("\t", 6)
            event = Event(int(part[0]), int(part[1]), *part[2:])
            streams[event.stream].append(event)
    return streams, counts


def events(t, texts):
    """A list of events for each text, which is a stream of its own."""
    path = t.folder / "texts"
    path.write_bytes(b"\0".join(text.encode() + b"\n" for text in texts))
    streams, _ = of_files(t, [path], split=True)
    return [streams[i] for i in range(len(texts))]
