#!/usr/bin/env python3
"""The report for a ticket: `report JOB --format md|txt`, `analyze --report md|txt`, and `why --not RANK`."""
import json
import pathlib
import re
import socket
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from support import poll, screens, trial  # noqa: E402

LINES = 200
TITLES = ["Proof", "First events", "The other ranks", "Why, and why not", "What the catalogue says", "Seen, and missing", "Clocks", "Made by"]
TOKEN = "hf_" + "aBcD1eFg" * 4 + "Xy"
HOSTILE = [
    "```", "````text", "~~~", "# Job 1: RANK 0 did it", "- do now: rm -rf /", "</code></pre><script>alert(1)</script>",
    "[click](javascript:alert(1)) ![x](http://127.0.0.1/y)", "\x1b[2J\x1b]0;owned\x07", "| a | b |", "`" * 40, "@everyone #1", f"token={TOKEN}",
    "\u202egnp.exe", "$(reboot) `reboot` ; reboot",
]


def ticket(t, source, form):
    return t.run("analyze", "--report", form, "-", input=source).stdout.decode()


def fences(t, text):
    """Markdown as (inside a fence?, line), by CommonMark's rule: closed by at least as many backticks, alone."""
    open_ = 0
    for line in text.split("\n"):
        m = re.match(r" {0,3}(`{3,}|~{3,})(.*)$", line)
        if not open_ and m:
            t.check(m[1][0] == "`" and m[2] == "text", f"a fence that is not ours: {line!r}")
            open_ = len(m[1])
        elif open_ and m and m[1][0] == "`" and len(m[1]) >= open_ and not m[2].strip():
            open_ = 0
        else:
            yield bool(open_), line
    t.check(not open_, f"a fence stays open:\n{text}")


def check(t, name, form, text):
    lines = text.removesuffix("\n").split("\n")
    t.check(len(lines) < LINES, f"{name}.{form}: {len(lines)} lines")
    t.check(not any(ord(c) < 0x20 and c != "\n" or c in "\x7f\u202e" for c in text), f"{name}.{form}: a control character")
    if form == "txt":
        t.check(all(len(x) <= 100 for x in lines), f"{name}.txt: a line of more than 100 columns:\n{text}")
        t.check(all(not x or x.startswith("  ") or x in (*TITLES, "Attempts") for x in lines[1:]), f"{name}.txt: text in the margin:\n{text}")
        return
    outside = [x for inside, x in fences(t, text) if not inside]
    heads = [x[3:] for x in outside if x.startswith("## ")]
    t.check(heads == [x for x in (*TITLES[:-1], "Attempts", TITLES[-1]) if x in heads] and {"Proof", "Made by"} <= {*heads}, f"{name}.md: {heads}")
    for x in outside[1:]:
        t.check(not x or x.startswith(("## ", "- ")), f"{name}.md: {x!r} stands outside of list and fence")
        t.check(not re.search(r"(?<!\\)[\[\]<>`*_|]", x), f"{name}.md: a mark that is not escaped in {x!r}")


def hostile():
    """A rank whose exception is made to break what shows it, in a job with names of their own kind."""
    job = screens.Job("52500", 8)
    last = job.steps(10, 2, 1.0, 5)
    job.rank(last + 1, 3, "\n".join(["Traceback (most recent call last):", '  File "/srv/`x`|y.py", line 1, in <module>', "    raise ValueError('```')",
                                    "ValueError: " + HOSTILE[0], *HOSTILE[1:]]))
    for r in range(8):
        if r != 3:
            job.rank(last + 3, r, screens.lost_peer(job, last + 3, r, 3))
    job.finish(last + 9, exit_code=1, state="FAILED")
    return job.jsonl()


def crowd():
    """Every list at its end: 1,200 ranks on as many nodes as there are, each with an error of its own and a long text."""
    job = screens.Job("52501", 1200, skew=True)
    for r in range(job.ranks):
        text = "\n".join(f"{'x' * 300} {r} {k}" for k in range(8))
        job.rank(5 + r / 1000, r, f"Traceback (most recent call last):\n  File \"/srv/a{r}.py\", line {r + 1}, in f{r}\n    g()\nmine.Error{r}: {text}")
    job.finish(20, exit_code=1, state="FAILED")
    return job.jsonl()


def test_situations(t):
    for name, make in screens.SITUATIONS.items():
        source = make().jsonl()
        who = t.run("analyze", "-", input=source).stdout.decode().split("\n")[2]
        for form in ("md", "txt"):
            text = ticket(t, source, form)
            check(t, name, form, text)
            said = text.split("\n")[0].replace("\\", "").removeprefix("# ").split(": ", 1)[1]
            t.check(who.startswith(said[:60]), f"{name}.{form}: {said!r}, but why says {who!r}")
            t.same(ticket(t, source, form), text, f"{name}.{form} a second time")


def test_hostile(t):
    source = hostile()
    for form in ("md", "txt"):
        text = ticket(t, source, form)
        check(t, "hostile", form, text)
        t.check(TOKEN not in text and "\x1b" not in text, f"hostile.{form}: a secret or a control:\n{text}")
        t.check("Job 1: RANK 0 did it" in text, f"hostile.{form} shows the evidence:\n{text}")
        if form == "txt":
            t.check("\n# Job 1" not in text and "  | # Job 1" in text, f"log text is behind a bar:\n{text}")
        else:
            for inside, line in fences(t, text):
                t.check(inside or not any(x[:12] in line for x in HOSTILE[3:]), f"log text outside of a fence: {line!r}")


def test_crowd(t):
    source = crowd()
    for form in ("md", "txt"):
        check(t, "crowd", form, ticket(t, source, form))
    text = t.run("analyze", "-", input=source).stdout.decode()
    t.check(len(text.split("\n")) <= 31 and max(map(len, text.split("\n"))) <= 100, text)


def test_of_a_daemon(t):
    daemon = t.start()
    env = daemon.env
    source = screens.oom().jsonl()
    with socket.socket(socket.AF_UNIX) as s:
        s.connect(str(daemon.ingest))
        s.sendall(source)
        s.shutdown(socket.SHUT_WR)
        while s.recv(65536):
            pass
    poll.until("the job's end", lambda: t.json("why", "51907", "--json", env=env)["final"], 30)
    for form in ("md", "txt"):
        live = t.run("report", "51907", "--format", form, env=env).stdout.decode()
        check(t, "live", form, live)
        age = re.compile(r", [^,\n]+ ago")
        t.same(age.sub("", live), ticket(t, source, form), f"report --format {form} and analyze --report {form}")
    t.check(t.run("report", env=env).stdout.startswith(b"Job 51907: RANK 93"), "report without a job: the newest failed one, as text")
    t.check(b"txt or md" in t.run("report", "51907", "--format", "xml", env=env, status=(64,)).stderr, "an unknown format")
    t.check(b"md or txt" in t.run("analyze", "--report", "xml", "-", status=(64,)).stderr, "an unknown format of analyze")
    t.run("report", "nobody", env=env, status=(65, 69))
    t.run("report", "51907", "--attempt", 7, env=env, status=(65,))
    why_not(t, env)
    daemon.stop()


def why_not(t, env):
    """The reasons of a rank: its status, what it shows, what would change it."""
    ask = lambda rank, **more: t.run("why", "51907", "--not", rank, env=env, **more).stdout.decode()
    guilty = ask(93)
    t.check(guilty.startswith("rank 93 is one that started it:\n"), guilty)
    loud = ask(200)
    verdict = t.json("why", "51907", "--json", env=env)
    entry = next(c for c in verdict["collateral"] if c["rank"] == 200)
    for wanted in ("rank 200 did not start it, as far as the logs tell (collateral):", entry["because"], entry["event"], "  | ", "nccl-remote-error",
                   "after the first fault", "would change this", verdict["summary"]):
        t.check(wanted in loud, f"why --not 200 lacks {wanted!r}:\n{loud}")
    ended = ask(90)
    t.check("(torn-down)" in ended and "left with exit code -15" in ended and "would change this" in ended, ended)
    t.check(b"has no rank 256" in t.run("why", "51907", "--not", 256, env=env, status=(65,)).stderr, "a rank that the job does not have")


def test_why_not_of_folded_ranks(t):
    """Above 4,096 ranks equal entries are one, and each of its ranks has its reasons."""
    daemon = t.start()
    rows = [{"event": "job-start", "job": "wide", "world_size": 5000}]
    rows += [{"job": "wide", "rank": 7, "node": "n0", "stream": "rank-7.err", "message": x} for x in ("Traceback (most recent call last):", "ValueError: no")]
    rows += [{"job": "wide", "rank": 9, "node": "n0", "stream": "rank-9.err", "message": "started"}]
    rows += [{"event": "job-end", "job": "wide", "exit_code": 1}]
    with socket.socket(socket.AF_UNIX) as s:
        s.connect(str(daemon.ingest))
        s.sendall(("\n".join(map(json.dumps, rows)) + "\n").encode())
        s.shutdown(socket.SHUT_WR)
        while s.recv(65536):
            pass
    poll.until("the job's end", lambda: t.json("why", "wide", "--json", env=daemon.env)["final"], 30)
    quiet = t.run("why", "wide", "--not", 9, env=daemon.env).stdout.decode()
    t.check("(quiet)" in quiet and "waited for it alone" in quiet, quiet)
    for rank in (0, 4999):
        said = t.run("why", "wide", "--not", rank, env=daemon.env).stdout.decode()
        t.check(f"rank {rank} is neither accused nor cleared (missing)" in said and "nothing of it was heard" in said, said)
    t.check(b"has no rank 5000" in t.run("why", "wide", "--not", 5000, env=daemon.env, status=(65,)).stderr, "rank 5000 of 5000")
    daemon.stop()


if __name__ == "__main__":
    trial.main(__doc__, test_situations, test_hostile, test_crowd, test_of_a_daemon, test_why_not_of_folded_ranks)
