#!/usr/bin/env python3
"""The screen of `analyze` and `why`: six situations byte for byte, and what holds for every screen.

The wanted screens are tests/fixtures/screens/NAME.txt, the inputs are made by tests/support/screens.py. After a change
that is meant: test_screens.py --client C --daemon D --update, then read the difference (README.md's sample is one too).
"""
import fcntl
import functools
import json
import os
import pathlib
import socket
import struct
import sys
import termios
import unicodedata

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from support import demo, poll, replay, screens, trial  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parents[2]
WANTED = ROOT / "tests" / "fixtures" / "screens"
LINES, COLUMNS, PAGER = 30, 100, 5
LABELS = ("DO NOW", "PROOF", "THEN", "NOT", "CAUSE", "VERIFY", "SEEN", "MISSING", "WOULD SETTLE IT")


@functools.cache
def situation(name):
    return screens.SITUATIONS[name]().jsonl()


def screen(t, source, *options):
    return t.run("analyze", *options, "-", input=source).stdout.decode()


def on_terminal(t, source, width):
    """The same on a terminal that is so many columns wide."""
    path = t.folder / "input.jsonl"
    path.write_bytes(source)
    master, slave = os.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 50, width, 0, 0))
    process = t.spawn(t.client, "analyze", path, stdout=slave)
    os.close(slave)
    out = b""
    while True:
        try:
            piece = os.read(master, 65536)
        except OSError:  # the other side is closed
            break
        if not piece:
            break
        out += piece
    os.close(master)
    t.same(process.wait(), 0, "exit status on a terminal")
    return out.decode().replace("\r\n", "\n")


def columns(line):
    """As a terminal counts them."""
    return sum(2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in line)


def check(t, name, text, width=COLUMNS):
    """What holds for every screen."""
    lines = text.removesuffix("\n").split("\n")
    told = lambda what: f"{name}: {what}\n{text}"
    t.check(len(lines) <= LINES, told(f"{len(lines)} lines"))
    for i, line in enumerate(lines):
        t.check(columns(line) <= width, told(f"line {i + 1} has {columns(line)} columns"))
        t.check(not any(unicodedata.category(c) in ("Cc", "Cf", "Zl", "Zp", "Cs") for c in line), told(f"line {i + 1} holds a control character"))
    t.check(lines[1] == "" and lines[2][:1].isalnum(), told("WHO is not in line 3"))
    t.check(any(x.startswith("DO NOW") for x in lines[3:6]), told("DO NOW is not in lines 4 to 6"))
    t.check(lines[-1].startswith("next: ") and lines[-2] == "", told("no commands at the end"))
    labels = [x for line in lines[3:] for x in LABELS if line.startswith(x)]
    t.check(labels == sorted(labels, key=LABELS.index) and len(set(labels)) == len(labels), told(f"order of {labels}"))
    paragraphs = text.split("\n\n")
    for p in paragraphs:  # what is proven and what the catalogue says
        starts = {line.split(" ")[0] for line in p.split("\n")}
        t.check(not (starts & {"CAUSE", "VERIFY"} and starts & {"PROOF", "THEN", "NOT", "SEEN"}), told("proof and catalogue in one paragraph"))


def test_situations(t):
    for name in screens.SITUATIONS:
        text = screen(t, situation(name))
        path = WANTED / f"{name}.txt"
        if UPDATE:
            path.write_text(text)
        check(t, name, text)
        t.same(text, path.read_text(), f"the screen of {name} (meant? {sys.argv[0]} --update)")


def test_seen_by_a_pager(t):
    for name in screens.SITUATIONS:
        full = screen(t, situation(name)).split("\n")
        brief = screen(t, situation(name), "--brief").removesuffix("\n").split("\n")
        t.check(len(brief) <= PAGER, f"--brief of {name}: {brief}")
        t.same(brief, [full[0], *full[2:2 + len(brief) - 1]], f"--brief of {name} is the head of the screen")
        t.check(brief[-1].startswith("DO NOW"), f"--brief of {name} ends with what to do: {brief}")


def test_terminals(t):
    for name in screens.SITUATIONS:
        for width, most in ((20, 60), (60, 60), (80, 80), (300, 100)):
            check(t, f"{name} at {width}", on_terminal(t, situation(name), width), most)


def garbage(rng, n):
    """Text that no program meant: controls, halves of characters, wide and hidden ones, marks of a screen."""
    pieces = ["\x1b[31m", "\r", "\x00", "\x7f", "\t", "\x9b1m", "\u202e", "\u200b", "\ud800", "\u4e2d\u6587", "\U0001f525", "\u0301" * 9, "\xff",
              "\U000e0041", "DO NOW  ", "\nPROOF   ", "| ", "`" * 5, " " * 120, "a" * 130, "word ", "x"]
    return "".join(rng.choice(pieces) for _ in range(rng.randrange(n)))


def test_garbage(t):
    """Whatever stands in lines and names, a screen stays one."""
    errors = ["torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 3 has ", "ValueError: ", "ModuleNotFoundError: No module named '", "IndexError: "]
    for k in range(40):
        rng = t.rng
        g = lambda n=4: garbage(rng, n)
        rows = [{"event": "job-start", "job": "g", "world_size": 6, "name": g(), "user": g(), "launcher": g(), "nodes": [g(), g()]}]
        nodes, streams = [g(), "n1"], [g() for _ in range(6)]
        for r in range(6):
            text = f"Traceback (most recent call last):\n  File \"{g(3)}\", line 7, in {g(2)}\n    {g()}\n{rng.choice(errors)}{g(12)}"
            if r == 0 or rng.random() < 0.3:
                rows += [{"job": "g", "rank": r, "node": nodes[r // 3], "stream": streams[r] + str(r), "message": x, "time": screens.stamp(r)} for x in text.split("\n")]
            else:
                rows.append({"job": "g", "rank": r, "node": nodes[r // 3], "stream": streams[r] + str(r), "message": g(20), "time": screens.stamp(9 + r)})
        rows.append({"event": "job-end", "job": "g", "state": g(), "exit_code": 1})
        source = ("\n".join(map(json.dumps, rows)) + "\n").encode()
        check(t, f"garbage {k} (seed {t.seed})", screen(t, source))
        brief = screen(t, source, "--brief").split("\n")
        t.check(len(brief) <= PAGER + 1, f"--brief of garbage {k} (seed {t.seed}): {brief}")


def check_head(t, name, text):
    """Who and why are told to their ends, in what a pager shows; only a symptom may be cut, where two candidates follow."""
    lines = text.splitlines()
    end = next(i for i, line in enumerate(lines) if line.startswith("DO NOW"))
    head = lines[2:end]
    t.check(end <= PAGER, f"{name}: {end} lines before what to do")
    if not any(line.startswith("  A  ") for line in head):
        t.check(not any(".." in line for line in head), f"{name}: the head is cut: {head}")


def test_every_case(t):
    n = 0
    for job in replay.cases():
        text = screen(t, job.jsonl())
        check(t, job.name, text)
        check_head(t, job.name, text)
        n += 1
    t.check(n > 100, f"{n} cases")


def test_why_is_analyze(t):
    """The daemon prints the same screen, but for the age and for the commands that need a daemon."""
    daemon = t.start()
    source = situation("oom")
    with socket.socket(socket.AF_UNIX) as s:
        s.connect(str(daemon.ingest))
        s.sendall(source)
        s.shutdown(socket.SHUT_WR)
        while s.recv(65536):
            pass
    poll.until("the job's end", lambda: t.json("why", "51907", "--json", env=daemon.env)["final"], 30)
    live = t.run("why", "51907", env=daemon.env).stdout.decode()
    check(t, "why", live)
    offline = screen(t, source).split("\n")
    t.same(live.split("\n")[2:-2], offline[2:-2], "why and analyze")
    brief = t.run("why", "51907", "--brief", env=daemon.env).stdout.decode().split("\n")
    t.same(brief[1:4], [offline[2], offline[3], offline[4]], "why --brief")
    daemon.stop()


def test_readme(t):
    """The screen in README.md is what deploy/demo shows of the job that is tailed: all but its time."""
    readme = (ROOT / "README.md").read_text()
    sample = readme.split("$ firstfault why demo-tailed\n")[1].split("\n\nTwo programs")[0]
    sample = [line.removeprefix("    ") for line in sample.split("\n")]
    check(t, "README.md", "\n".join(sample))
    logs = t.folder / "logs"
    demo.write(demo.find("t2-raise-one-rank"), logs / "demo-tailed", 0)
    daemon = t.start(options=[("tail", f"{logs}/{{job}}/{{node}}/*/attempt_{{attempt}}/{{local_rank}}/{{name}}"), ("tail", f"{logs}/{{job}}/{{node}}/{{name}}")])
    poll.until("a fault", lambda: demo.has_fault(daemon.api, "demo-tailed"), 30)
    t.run("job", "start", "demo-tailed", "--world", 4, env=daemon.env)
    t.run("job", "end", "demo-tailed", "--exit-code", 1, "--state", "FAILED", env=daemon.env)
    poll.until("all of it", lambda: t.json("why", "demo-tailed", "--json", env=daemon.env)["final"], 30)
    shown = t.run("why", "demo-tailed", env=daemon.env).stdout.decode().removesuffix("\n").split("\n")
    if UPDATE:
        indented = lambda lines: "\n".join(("    " + line).rstrip() for line in lines)
        (ROOT / "README.md").write_text(readme.replace(indented(sample), indented([sample[0], *shown[1:]])))
        sample[1:] = shown[1:]
    t.same(sample[1:], shown[1:], f"the screen in README.md (meant? {sys.argv[0]} --update)")
    daemon.stop()


UPDATE = "--update" in sys.argv
if UPDATE:
    sys.argv.remove("--update")
if __name__ == "__main__":
    trial.main(__doc__, test_situations, test_seen_by_a_pager, test_terminals, test_garbage, test_every_case, test_why_is_analyze, test_readme)
