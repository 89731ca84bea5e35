#!/usr/bin/env python3
"""ranks, timeline, explain and catalog: with a daemon, with files, and what they say of bad words."""
import hashlib
import json
import pathlib
import socket
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests"))
from support import poll, replay, trial  # noqa: E402
from support.replay import Feed  # noqa: E402


KINDS = {"rank", "common", "clean", "undetermined"}


def valid(t, name, doc):
    """Against schema/json; without python3-jsonschema that is left to the lint suite."""
    done = subprocess.run(["/usr/bin/python3", ROOT / "tests/lint/check_schemas.py", "--as", name, "-"], input=json.dumps(doc).encode(),
                          capture_output=True)
    t.check(done.returncode in (0, 77), lambda: f"{name}: {done.stdout.decode()[:2000]}{done.stderr.decode()[-500:]}")
    return doc


def screen(t, text, lines=60):
    text = text.decode()
    rows = text.splitlines()
    t.check(len(rows) <= lines and all(len(x) <= 100 for x in rows), lambda: f"{lines} lines of 100 columns:\n{text}")
    t.check(all(c.isprintable() for c in text.replace("\n", "")), lambda: f"controls: {text!r}")
    return rows


def one_of_each(t):
    """A timed case of each verdict that the client reaches."""
    seen = {}
    for r in replay.cases(True):
        kind = r.meta["truth"]["verdict"]
        if KINDS <= set(seen):
            break
        if kind in KINDS - set(seen) and json.loads(r.analyze(t))["verdict"] == kind:
            seen[kind] = r
    t.check(KINDS <= set(seen), f"verdicts seen: {sorted(seen)}")
    return seen.values()


def test_tables_of_a_job(t):
    """What the daemon says is what `analyze` says of the same lines."""
    daemon = t.start()
    for r in one_of_each(t):
        wanted = json.loads(r.analyze(t))
        feed = Feed(daemon, r, "one").start()
        feed.send()
        feed.finish()
        for what in ("ranks", "timeline"):
            live = valid(t, what, t.json(what, r.job, "--json", env=daemon.env))
            pasted = valid(t, what, t.json("analyze", f"--{what}", "--json", "-", input=r.jsonl()))
            t.same(live, pasted, f"{r.name}: {what} --json")
            rows = screen(t, t.run(what, r.job, env=daemon.env).stdout)
            same = screen(t, t.run("analyze", f"--{what}", "-", input=r.jsonl()).stdout)
            t.same(rows[1:], same[1:], f"{r.name}: {what}")  # the first line says how long ago it was
            t.check(rows[0].startswith(r.job), f"{r.name}: {what}: {rows[0]}")
            t.run(what, r.job, "--attempt", 99, env=daemon.env, status=(65,))
            screen(t, t.run(what, r.job, "--lines", 12, env=daemon.env).stdout, 12)
        ranks = t.json("ranks", r.job, "--json", env=daemon.env)["items"]
        t.same({x["rank"] for x in ranks if x["status"] == "initiating"}, {x["rank"] for x in wanted["ranks"] if x["status"] == "initiating"},
               f"{r.name}: initiating ranks")
        events = t.json("timeline", r.job, "--json", env=daemon.env)["items"]
        t.same(sorted(x["id"] for x in events if x["started"]),
               sorted({i["event"] for i in wanted["initiating"]} - {None} or (wanted["why"] or [{"events": []}])[0]["events"]),
               f"{r.name}: events that started it")
        numbers = {x["id"]: x["number"] for x in t.json("events", r.job, "--json", env=daemon.env)["items"]}
        t.check(all(numbers[x["id"]] == x["number"] for x in events), f"{r.name}: numbers as `events` has them")
    daemon.stop()


def test_lines_and_bytes(t):
    """Each line and byte of a rank is counted once, by stream."""
    rows = [(r, fd, "x" * t.rng.randrange(200)) for r in range(3) for fd in ("stdout", "stderr") for _ in range(t.rng.randrange(1, 400))]
    t.rng.shuffle(rows)
    objects = [{"job": "x", "rank": r, "kind": "rank", "stream": f"rank-{r}.{fd}", "message": text} for r, fd, text in rows]
    fed = "".join(json.dumps(o) + "\n" for o in objects).encode()
    for item in t.json("analyze", "--ranks", "--json", "-", input=fed)["items"]:
        mine = {fd: [x for r, f, x in rows if r == item["rank"] and f == fd] for fd in ("stderr", "stdout")}
        t.same(item["streams"], [{"stream": f"rank-{item['rank']}.{fd}", "lines": len(xs), "bytes": sum(len(x) + 1 for x in xs)}
                                 for fd, xs in mine.items()], f"rank {item['rank']}")


def test_pages(t):
    """More ranks than a page holds."""
    daemon = t.start()
    daemon.api.start("wide", world_size=10007)
    t.same([x["rank"] for x in t.json("ranks", "wide", "--json", env=daemon.env)["items"]], list(range(10007)), "all ranks")
    rows = screen(t, t.run("ranks", "wide", env=daemon.env).stdout)
    t.check(any("0-10006" in x for x in rows), f"equal ranks fold: {rows}")
    daemon.stop()


ENTRY = {
    "id": "own-fault", "title": "A fault of one's own", "category": "own", "role": "primary", "domain": "user",
    "match": [{"literal": "flux capacitor", "pattern": "flux capacitor (?<device>\\w+) is empty"}],
    "cause": "Nobody refilled it.", "fix": ["Refill it."], "verify": [{"run": "fluxctl level", "expect": "more than 0"}],
    "examples": ["RuntimeError: flux capacitor F7 is empty"], "counterexamples": ["refill a flux capacitor before it is empty"],
    "see_also": ["cuda-oom"],
}


def own_folder(t, name, *entries):
    folder = t.folder / name
    folder.mkdir()
    (folder / "own.json").write_text(json.dumps(entries))
    return folder


def changed(**more):
    return {k: v for k, v in {**ENTRY, **more}.items() if v is not None}


def text_of(**more):
    return [{**ENTRY["match"][0], **more}]


def test_explain_a_fault(t):
    page = valid(t, "fault", t.json("explain", "cuda-oom", "--json"))
    t.same(page["id"], "cuda-oom", "id")
    text = t.run("explain", "cuda-oom").stdout.decode()
    for word in (page["title"], "CAUSE", "FIX", "VERIFY", "expect ", "LOOKS   | "):
        t.check(word in text, f"{word} in: {text}")
    for line in text.splitlines():
        t.check(len(line) <= 100, f"columns: {line}")
    said = t.run("explain", "cuda-om", status=(65,)).stderr.decode()
    t.check("cuda-oom" in said and len(said.splitlines()) == 2, f"nearest id: {said}")
    t.run("explain", "zzzzzz", status=(65,))
    t.run("explain", status=(64,))
    # every id that is listed has a page
    ids = {x["id"] for x in valid(t, "entries", t.json("catalog", "list", "--json"))["items"]}
    for one in t.rng.sample(sorted(ids), 8):
        t.same(t.json("explain", one, "--json")["id"], one, "page")


def test_explain_an_event(t):
    daemon = t.start()
    env = daemon.env
    r = next(x for x in replay.cases(True) if x.meta["truth"]["verdict"] == "rank" and json.loads(x.analyze(t))["verdict"] == "rank")
    feed = Feed(daemon, r, "one").start()
    feed.send()
    feed.finish()
    event = json.loads(r.analyze(t))["initiating"][0]["event"]
    first = valid(t, "explain", t.json("explain", "first", "--job", r.job, "--json", env=env))
    t.same(first["event"]["id"], event, "first: the event of the initiating rank")
    t.same(first["fault"]["id"], first["event"]["fault"], "its page")
    t.same(t.json("explain", "first", "--json", env=env), first, "without --job: the newest failed one")
    for word in (first["event"]["number"], event):
        t.same(t.json("explain", word, "--job", r.job, "--json", env=env), first, f"event as {word}")
    text = t.run("explain", "first", "--job", r.job, env=env).stdout.decode()
    line = first["event"]["text"].splitlines()[0][:60]
    t.check(any(x.startswith("TEXT    | ") and line in x for x in text.splitlines()), f"its text: {text}")
    t.check(first["fault"]["title"] in text, f"its page: {text}")
    for word in ("no-such@1", 99999):
        t.run("explain", word, "--job", r.job, env=env, status=(65,))
    t.run("explain", "first", "--job", "nobody", env=env, status=(65,))
    daemon.stop()


def test_hostile_event(t):
    """What a log says cannot leave its line, whatever asks for it."""
    evil = "RuntimeError: CUDA out of memory. Tried to allocate 2.00 GiB \x1b[2J\x9b1m\u202e gnp"
    daemon = t.start()
    t.run("ship", "--job", "evil", "--rank", 0, write(t, "evil.log", evil), env=daemon.env)
    daemon.api.end("evil", exit_code=1)
    for words in (["explain", "first", "--job", "evil"], ["ranks", "evil"], ["timeline", "evil"]):
        out = t.run(*words, env=daemon.env).stdout.decode()
        t.check(all(c.isprintable() for c in out.replace("\n", "")), f"{words}: {out!r}")
        t.check(all("CUDA out of memory. Tried" not in x.split("|", 1)[0] for x in out.splitlines()), f"{words}: behind a bar: {out}")
        t.check("\\x1b[2J" in out, f"{words}: {out}")
    daemon.stop()


def test_nul_in_text(t):
    """A NUL that a log holds is in every answer as \\u0000, and on no screen."""
    nul = "CUDA out of memory. Tried to allocate 2.00 GiB \0 of \0\0"
    objects = [{"event": "job-start", "job": "nul", "world_size": 2, "launcher": "torchrun"},
               {"job": "nul", "rank": 0, "message": f"step 1\0\ntorch.OutOfMemoryError: {nul}"},
               {"job": "nul", "rank": 1, "message": "RuntimeError: \0[..] Connection closed by peer [10.0.0.7]:1\0"},
               {"event": "job-end", "job": "nul", "exit_code": 1, "state": "FAILED"}]
    lines = b"".join(json.dumps(x).encode() + b"\n" for x in objects)
    offline = t.run("analyze", "--json", "-", input=lines).stdout
    daemon = t.start()
    with socket.socket(socket.AF_UNIX) as s:
        s.connect(str(daemon.ingest))
        s.sendall(lines)
    poll.until(lambda: "the job's end", lambda: b'"ended"' in t.run("jobs", "--json", env=daemon.env).stdout)
    t.same(json.loads(offline)["initiating"], t.json("why", "nul", "--json", env=daemon.env)["initiating"], "the same live")
    asked = {"text": (["why", "nul", "--json"], ["events", "nul", "--json"], ["explain", "first", "--job", "nul", "--json"],
                      ["logs", "nul", "--json"], ["logs", "nul", "--around", "first", "--json"], ["timeline", "nul", "--json"],
                      ["export", "nul"]),
             "all": (["ranks", "nul", "--json"], ["jobs", "--json"], ["status", "--json"])}
    for words in asked["text"] + asked["all"]:
        out = t.run(*words, env=daemon.env).stdout
        for x in out.splitlines() if words[0] == "export" else [out]:
            json.loads(x)
        t.check(words in asked["all"] or b"GiB \\u0000 of \\u0000\\u0000" in out, f"{words}: {out!r}")
    for words in (["why", "nul"], ["why", "nul", "--not", 1], ["events", "nul"], ["explain", "first", "--job", "nul"], ["ranks", "nul"],
                  ["timeline", "nul"], ["logs", "nul"], ["report", "nul"], ["jobs"], ["status"]):
        out = t.run(*words, env=daemon.env).stdout.decode()
        t.check(all(c.isprintable() for c in out.replace("\n", "")), f"{words}: {out!r}")
    t.check(b"exclude=" in t.run("why", "nul", "--action", env=daemon.env, status=None).stdout, "--action")
    t.run("why", "nul", "--json", "--exit-status", env=daemon.env, status=(10,))
    out = t.run("explain", "first", "--job", "nul", env=daemon.env).stdout
    t.check(b"GiB \\x00 of \\x00\\x00" in out, f"{out!r}")
    daemon.stop()


def write(t, name, text):
    path = t.folder / name
    path.write_text(text + "\n")
    return path


def test_catalog_list_and_search(t):
    whole = t.json("catalog", "list", "--json")["items"]
    some = t.json("catalog", "list", "--category", "memory", "--role", "primary", "--json")["items"]
    t.same(some, [x for x in whole if x["category"] == "memory" and x["role"] == "primary"], "filters")
    t.check(some and len(some) < len(whole), "some of them")
    rows = t.run("catalog", "list").stdout.decode().splitlines()
    t.same(len(rows), len(whole) + 1, "a line each")
    t.check(all(len(x) <= 100 for x in rows), "columns")
    found = valid(t, "entries", t.json("catalog", "search", "CUDA", "out of", "memory", "--json"))["items"]
    t.same(found[0]["id"], "cuda-oom", "what a line says finds it")
    t.same(t.json("catalog", "search", "cuda-oom", "--json")["items"][0]["id"], "cuda-oom", "its id finds it")
    t.check(b"nothing" in t.run("catalog", "search", "zzzzzz").stdout, "nothing found")
    said = t.run("catalog", "list", "--category", "zzz", status=(64,)).stderr.decode()
    t.check(all(x["category"] in said for x in whole), f"a wrong category lists them: {said}")
    for words in (["catalog"], ["catalog", "search"], ["catalog", "list", "x"], ["catalog", "frobnicate"], ["catalog", "list", "--role", "x"]):
        t.run(*words, status=(64,))


def test_catalog_check(t):
    """Each rule of a signature, by a folder that breaks it."""
    t.check(b" 0 defects" in t.run("catalog", "check").stdout, "what is built in")
    t.check(b" 0 defects" in t.run("catalog", "check", own_folder(t, "good", ENTRY)).stdout, "a good one")
    stolen = t.json("explain", "cuda-oom", "--json")["entries"][0]
    literal = stolen["match"][0]["literal"]
    bad = {
        "unknown-field": (changed(match=text_of(pattern="flux capacitor (?<colour>\\w+) is empty")), "group \"colour\" is no field"),
        "unknown-key": (changed(weight=1), "unknown key \"weight\""),
        "no-match": (changed(examples=["flux capacitor F7 is full"]), "no text of it holds on the example"),
        "no-example": (changed(examples=None), "has no example"),
        "rival": (changed(match=text_of(literal=literal, pattern=literal), examples=[f"{literal}6.00 GiB"], counterexamples=None), "both hold"),
        "counterexample": (changed(counterexamples=["a flux capacitor F7 is empty"]), "holds on the counterexample"),
        "pattern": (changed(match=text_of(pattern="flux capacitor (")), "at byte "),
        "id": (changed(id="Own"), "\"id\" has other bytes"),
    }
    for name, (entry, says) in bad.items():
        folder = own_folder(t, name, ENTRY, entry) if name == "id" else own_folder(t, name, entry)
        out = t.run("catalog", "check", folder, status=(65,)).stdout.decode()
        t.check(says in out and f"{folder}/own.json: entry " in out, f"{name}: {out}")
    broken = t.folder / "broken.json"
    broken.write_text('[\n {"id": }\n]')
    out = t.run("catalog", "check", broken, status=(65,)).stdout.decode()
    t.check("broken.json" in out and "line 2" in out, f"bad JSON: {out}")
    two = own_folder(t, "two", changed(id="Bad"), changed(role="main"))
    out = t.run("catalog", "check", two, status=(65,)).stdout.decode()
    t.check("entry 1" in out and "entry 2" in out and "2 defects" in out, f"all of them at once: {out}")
    empty = t.folder / "empty"
    empty.mkdir()
    t.run("catalog", "check", empty, status=(65,))
    t.run("catalog", "check", t.folder / "none", status=(74,))


def test_own_signatures(t):
    """A folder of one's own: offline, for every command, and in the daemon."""
    folder = own_folder(t, "own", ENTRY)
    log = write(t, "a.log", "step 1\nTraceback (most recent call last):\n  File \"a.py\", line 3, in f\n    g()\n" + ENTRY["examples"][0])
    plain = t.json("analyze", "--json", log)
    own = t.json("analyze", "--json", "--catalog", folder, log)
    t.check(plain["fault"]["id"] != "own-fault", "without it the fault is unknown")
    t.same((own["fault"]["id"], own["cause"], own["events"][0]["fields"].get("device")), ("own-fault", ENTRY["cause"], "F7"), "with it")
    t.same((len(plain["catalog"]), len(own["catalog"]), own["catalog"][0]), (1, 2, plain["catalog"][0]), "hashes of both")
    t.same(own["catalog"][1], "sha256:" + hashlib.sha256((folder / "own.json").read_bytes()).hexdigest(), "its hash")
    t.same(t.json("explain", "own-fault", "--catalog", folder, "--json")["entries"], [ENTRY], "its page")
    t.run("explain", "own-fault", status=(65,))
    t.check(b"own-fault" in t.run("catalog", "list", "--catalog", folder).stdout, "listed")
    t.same(t.json("catalog", "search", "refilled", "--catalog", folder, "--json")["items"][0]["id"], "own-fault", "found")
    bad = own_folder(t, "bad", changed(role="main"))
    t.run("analyze", "--catalog", bad, log, status=(65,))
    t.run("explain", "cuda-oom", "--catalog", bad)  # reading a page judges nothing

    daemon = t.start(options=[("catalog", folder)])
    t.run("ship", "--job", "j", log, env=daemon.env)
    daemon.api.end("j", exit_code=1)
    verdict = t.json("why", "j", "--json", env=daemon.env)
    t.same((verdict["fault"]["id"], verdict["catalog"]), ("own-fault", own["catalog"]), "why")
    t.same(daemon.status()["catalog"], own["catalog"], "status")
    t.same(t.json("explain", "first", "--job", "j", "--json", env=daemon.env)["fault"]["entries"], [ENTRY], "explain of an event")
    t.same(valid(t, "fault", daemon.api.get("/v1/faults/own-fault").json())["entries"], [ENTRY], "/v1/faults/ID")
    faults = valid(t, "entries", daemon.api.get("/v1/faults").json())["items"]
    t.check({"own-fault", "cuda-oom"} <= {x["id"] for x in faults}, "/v1/faults")
    t.same({x["category"] for x in daemon.api.get("/v1/faults?category=own").json()["items"]}, {"own"}, "/v1/faults?category=")
    missing = daemon.api.get("/v1/faults/own-faul", ok=(404,)).json()
    t.check("own-fault" in missing["detail"], f"nearest: {missing}")
    daemon.stop()
    done = subprocess.run([t.daemon, "--check-config", "--catalog", bad, "--state", t.folder / "s"], capture_output=True, env=daemon.env)
    t.same((done.returncode, b"role" in done.stderr), (64, True), f"--check-config of a bad one: {done.stderr}")


def test_help(t):
    overview = t.run("--help").stdout.decode()
    for command in ("ranks", "timeline", "explain", "catalog"):
        t.check(f"\n  {command} " in overview, f"{command} in --help")
        text = t.run(command, "--help").stdout.decode()
        for head in ("NAME", "SYNOPSIS", "DESCRIPTION", "OPTIONS", "EXAMPLES", "EXIT STATUS"):
            t.check(f"{head}\n" in text, f"{command} --help: {head}")
        t.check(all(len(x) <= 100 for x in text.splitlines()), f"{command} --help: columns")


def test_bad_words(t):
    daemon = t.start()
    for words, status in ((["ranks"], 64), (["ranks", "a", "b"], 64), (["timeline"], 64), (["ranks", "nobody"], 65), (["timeline", "nobody"], 65),
                          (["ranks", "x", "--lines", 0], 64), (["analyze", "--ranks", "--timeline", "-"], 64),
                          (["analyze", "--ranks", "--report", "md", "-"], 64)):
        said = t.run(*words, env=daemon.env, status=(status,)).stderr.decode()
        t.check(said.startswith("firstfault: ") and len(said.splitlines()) <= 2, f"{words}: {said}")
    daemon.stop()


if __name__ == "__main__":
    trial.main(__doc__, test_tables_of_a_job, test_lines_and_bytes, test_pages, test_explain_a_fault, test_explain_an_event, test_hostile_event,
               test_nul_in_text,
               test_catalog_list_and_search, test_catalog_check, test_own_signatures, test_help, test_bad_words)
