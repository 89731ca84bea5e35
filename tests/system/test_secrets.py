#!/usr/bin/env python3
"""Secrets in logs: whatever way they come in, whole or in pieces, none is stored, sent on, logged or answered; and no offset moves.

They are made at run time, from the seed: the repository holds none.
"""
import base64
import json
import os
import pathlib
import re
import socket
import string
import subprocess
import sys
import urllib.parse

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from support import poll, trial  # noqa: E402
from support.native import Part, Sender  # noqa: E402

BASE_US = 1767225600000000
ALNUM = string.ascii_letters + string.digits
HEX = "0123456789abcdef"


def kinds(rng):
    """(kind, text around it with %s in it, the secret)"""
    def word(n, letters=ALNUM):
        return "".join(rng.choice(letters) for _ in range(n - 1)) + rng.choice("0123456789" if set("0123456789") <= set(letters) else letters)

    def b64(n):
        return base64.b64encode(rng.randbytes(n)).decode()

    def jwt():
        return ".".join(base64.urlsafe_b64encode(x).rstrip(b"=").decode() for x in (b'{"alg":"HS256"}', rng.randbytes(30), rng.randbytes(32)))

    capital = string.ascii_uppercase + string.digits
    yield "hf", "login with %s done", "hf_" + word(34)
    yield "hf", "HF_TOKEN=%s", "hf_" + word(34)
    yield "wandb", "WANDB_API_KEY=%s", word(40, HEX)
    yield "wandb", "+ wandb login %s", word(40, HEX)
    yield "wandb", "wandb login --relogin %s", word(40, HEX)
    yield "wandb", "wandb: %s", "wandb_v1_" + word(40)
    yield "openai", "openai key %s", "sk-" + word(48)
    yield "openai", "openai key %s", "sk-proj-" + word(64)
    yield "anthropic", "anthropic key %s", "sk-ant-api03-" + word(80) + "-" + word(12)
    yield "aws", "id %s", "AKIA" + word(16, capital)
    yield "aws", "AWS_SECRET_ACCESS_KEY=%s", b64(30)
    yield "aws", "aws_secret_access_key = %s", b64(30)
    yield "gcp", "maps key %s", "AIza" + word(35)
    yield "azure", "AccountName=x;AccountKey=%s;EndpointSuffix=y", b64(64)
    yield "azure", "https://x.blob.core.windows.net/c?sv=2022&sig=%s&se=2026", urllib.parse.quote(b64(32), safe="")
    yield "azure", "SharedAccessKey=%s", b64(32)
    yield "github", "push with %s", "ghp_" + word(36)
    yield "github", "push with %s", "github_pat_" + word(22) + "_" + word(59)
    yield "github", "GITHUB_TOKEN=%s", word(40)
    yield "gitlab", "clone with %s", "glpat-" + word(20)
    yield "slack", "post with %s", f"xoxb-{word(12, string.digits)}-{word(12, string.digits)}-{word(24)}"
    yield "slack", "post with %s", f"xoxp-{word(12, string.digits)}-{word(32, HEX)}"
    yield "url", "clone https://ada:%s@git.example.com/x.git", word(16)
    yield "url", "postgres://ada:%s@db.example.com:5432/x", word(10)
    yield "bearer", "Authorization: Bearer %s", word(40)
    yield "bearer", "Authorization: Basic %s", base64.b64encode(f"ada:{word(20)}".encode()).decode().rstrip("=")
    yield "jwt", "cookie %s", jwt()
    yield "key", "api_key=%s", word(32)
    yield "key", "{'password': '%s'}", word(12)
    yield "key", "password=%s", word(12)
    yield "key", "MYSQL_PWD=%s", word(12)
    yield "key", "PGPASSWORD=%s psql", word(12)
    yield "key", "DB_PASS=%s", word(12)
    yield "key", "passphrase: '%s'", word(20)
    yield "key", '{"client_secret": "%s"}', word(24)
    yield "key", '"token": "%s"', word(32)


def pem(rng):
    body = base64.b64encode(rng.randbytes(800)).decode()
    return [body[i:i + 64] for i in range(0, len(body), 64)]


def plant(rng, rounds):
    """The lines of a log with secrets, and the secrets."""
    lines, secrets = [], []
    for n in range(rounds):
        for i, (kind, around, secret) in enumerate(kinds(rng)):
            lines.append(f"step {n * 100 + i} loss 2.5")
            lines.append(around % secret)
            secrets.append(secret)
        key = pem(rng)
        secrets += [x for x in key if len(x) >= 16]
        lines += ["-----BEGIN RSA PRIVATE KEY-----", *key, "-----END RSA PRIVATE KEY-----"]
    secret = "hf_" + "".join(rng.choice(ALNUM) for _ in range(34))
    secrets.append(secret)
    lines += ["Traceback (most recent call last):", '  File "/job/train.py", line 3, in main', f'    login(token="{secret}")',
              f"RuntimeError: CUDA error: out of memory, while logged in as {secret}", "bye"]
    return lines, secrets


class Hunt:
    """All that was planted, and where to look for it."""

    def __init__(self, t):
        self.t, self.secrets = t, []

    def plant(self, rounds=1):
        lines, secrets = plant(self.t.rng, rounds)
        self.secrets += secrets
        return lines

    def look(self, where, raw):
        raw = raw if isinstance(raw, bytes) else raw.encode()
        for secret in self.secrets:
            # half of one is as bad: the end of it is what a piece would leave
            for part in {secret, secret[:24] if len(secret) > 40 else secret, secret[-24:] if len(secret) > 40 else secret}:
                at = raw.find(part.encode())
                self.t.check(at < 0, lambda p=part, a=at: f"{where} holds {p!r}: {raw[max(0, a - 80):a + 120]!r}")

    def everywhere(self, daemon, jobs):
        t = self.t
        for job in jobs:
            for route in ("", "/verdict", "/verdict?format=md", "/verdict?format=text", "/ranks", "/timeline", "/events", "/logs?lines=10000", "/logs?around=first&lines=100", "/export"):
                self.look(f"{job}{route}", daemon.api.get(f"/v1/jobs/{job}{route}", ok=(200, 404, 400)).body)
            for command in (["why"], ["why", "--json"], ["events"], ["events", "--json"], ["logs"], ["logs", "--around", "first"], ["ranks"], ["timeline"],
                            ["report"], ["export"], ["explain", "first", "--job"]):
                words = [*command, job] if command[-1] == "--job" else [command[0], job, *command[1:]]
                done = t.run(*words, env=daemon.env, status=None)
                self.look(f"`{' '.join(words)}`", done.stdout + done.stderr)
        self.look("jobs", daemon.api.get("/v1/jobs").body)
        self.look("status", daemon.api.get("/v1/status").body)
        self.look("metrics", daemon.api.get("/metrics", ok=(200, 404)).body)
        self.disk(daemon)

    def disk(self, daemon):
        for path in (*daemon.state.rglob("*"), daemon.log_path):
            if path.is_file():
                self.look(path.name, path.read_bytes())


def places(t, daemon, job):
    """(offset, line) of the events, and how many lines and bytes its streams have."""
    events = [(e["offset"], e["line"], e["at"]["offset"], e["at"]["line"]) for e in daemon.api.items(f"/v1/jobs/{job}/events")]
    t.check(events, f"no event of {job}")
    return events


def clean(lines):
    """The same lines with what is no secret in the place of each: the events of this text are where those of the other have to be."""
    return [line if line.startswith(("Traceback", "  File", "RuntimeError")) else re.sub(r"[^ ]", "x", line) for line in lines]


def test_native(t):
    """In pieces that end inside a secret, over connections that break there."""
    hunt = Hunt(t)
    daemon = t.start()
    lines = hunt.plant(2)
    raw = "\n".join(lines).encode() + b"\n"
    parts, at = [], 0
    while at < len(raw):
        n = t.rng.choice((1, 2, 7, 20, 33, 61, 200, 1500))
        piece = raw[at:at + n]
        cut = piece.find(b"\n")
        piece = piece[:cut] if cut >= 0 else piece
        parts.append(Part(BASE_US + at, piece, cut >= 0))
        at += len(piece) + (cut >= 0)
    sender = Sender(daemon.ingest, {"job": "native", "source": "s", "streams": ["rank-0.stderr"], "rank": 0, "node": "n"}, [parts]).connect()
    for upto in sorted(t.rng.sample(range(1, len(parts)), 12)):
        sender.send_run(0, upto)
        if t.rng.random() < 0.5:
            sender.wait("an answer", lambda: sender.lanes[0].done or True)
        sender.connect()
    sender.send_all()
    sender.end()
    control = Sender(daemon.ingest, {"job": "control", "source": "c", "streams": ["rank-0.stderr"], "rank": 0, "node": "n"},
                     [[Part(BASE_US, x.encode(), True) for x in clean(lines)]]).connect()
    control.send_all()
    control.end()
    t.same(places(t, daemon, "native"), places(t, daemon, "control"), "places of the events")
    hunt.everywhere(daemon, ["native"])
    daemon.restart()
    hunt.everywhere(daemon, ["native"])
    daemon.stop()
    hunt.disk(daemon)


def feed(daemon, raw, rng):
    """Cut anywhere."""
    with socket.socket(socket.AF_UNIX) as s:
        s.settimeout(30)
        s.connect(str(daemon.ingest))
        at = 0
        while at < len(raw):
            n = rng.choice((3, 40, 700, 5000))
            s.sendall(raw[at:at + n])
            at += n
        s.shutdown(socket.SHUT_WR)
        while s.recv(65536):
            pass


def test_text_dialects(t):
    """JSON Lines (message and exc_info), syslog of both framings, raw text, plain hello, OTLP."""
    hunt = Hunt(t)
    daemon = t.start()
    whole = "\n".join(hunt.plant())
    rows = [{"job": "jsonl", "rank": 0, "stream": "rank-0.stderr", "message": x} for x in hunt.plant()]
    rows += [{"job": "jsonl", "rank": 1, "stream": "rank-1.stderr", "message": "failed", "exc_info": whole}, {"job": "jsonl", "rank": 1, "message": whole, "stack_trace": whole}]
    rows += [{"event": "no-such-event", "job": "jsonl", "text": x} for x in hunt.plant()]
    feed(daemon, "".join(json.dumps(x) + "\n" for x in rows).encode(), t.rng)
    frames = [f'<13>1 2026-01-01T00:00:{i % 60:02}Z n app - - [x@1 job="syslog" rank="0"] {x}'.encode() for i, x in enumerate(hunt.plant())]
    feed(daemon, b"".join(x + b"\n" for x in frames), t.rng)
    feed(daemon, b"".join(b"%d %s" % (len(x), x) for x in frames), t.rng)
    feed(daemon, "\n".join(hunt.plant()).encode(), t.rng)
    hello = {"event": "hello", "protocol": "firstfault/1", "job": "plain", "source": "p", "streams": ["rank-0.stderr"], "rank": 0, "lines": "plain"}
    feed(daemon, json.dumps(hello).encode() + b"\n" + "\n".join(hunt.plant()).encode(), t.rng)
    records = [{"timeUnixNano": str(BASE_US * 1000), "body": {"stringValue": x}} for x in hunt.plant()]
    resource = {"attributes": [{"key": k, "value": {"stringValue": v}} for k, v in (("job", "otlp"), ("firstfault.job", "otlp"), ("service.name", "otlp"))]}
    daemon.api.post("/v1/logs", {"resourceLogs": [{"resource": resource, "scopeLogs": [{"logRecords": records}]}]})
    poll.until("all jobs", lambda: len(daemon.api.items("/v1/jobs")) >= 5)
    hunt.everywhere(daemon, [x["job"] for x in daemon.api.items("/v1/jobs")])
    daemon.stop()
    hunt.disk(daemon)


def test_names_and_facts(t):
    """Secrets where nobody looks for them: names of streams, what a job-start and a job-end say."""
    hunt = Hunt(t)
    daemon = t.start()
    secrets = ["hf_" + "".join(t.rng.choice(ALNUM) for _ in range(34)) for _ in range(12)]
    hunt.secrets = secrets
    it = iter(secrets)
    rows = [{"event": "job-start", "job": "names", "world_size": 2, "name": f"run of {next(it)}", "launcher": next(it), "user": next(it), "nodes": [next(it)]},
            {"job": "names", "rank": 0, "stream": f"{next(it)}/rank-0.stderr", "message": "ValueError: x"},
            {"job": "names", "rank": 1, "node": next(it), "message": "ValueError: x"},
            {"event": "exit", "job": "names", "rank": 1, "exit_code": 1, "state": next(it)},
            {"event": "job-end", "job": "names", "exit_code": 1, "state": "FAILED", "reason": f"token {next(it)} is bad"}]
    feed(daemon, "".join(json.dumps(x) + "\n" for x in rows).encode(), t.rng)
    poll.until("the job", lambda: daemon.api.items("/v1/jobs"))
    name = next(it)
    sender = Sender(daemon.ingest, {"job": "names", "source": "s", "streams": [f"{name}.stderr"], "rank": 3}, [[Part(BASE_US, b"ValueError: y", True)]]).connect()
    sender.send_all()
    sender.end()
    daemon.api.post("/v1/jobs/posted/start", {"name": next(it), "user": next(it)})
    hunt.everywhere(daemon, ["names", "posted"])
    daemon.restart()
    hunt.everywhere(daemon, ["names", "posted"])


def test_tail_and_ship(t):
    """Files: what they hold stays theirs; what is read of them, sent on or shown of them holds none."""
    hunt = Hunt(t)
    daemon = t.start(options=[("tail", str(t.folder / "logs/{job}/{node}/{name}"))])
    tailed = t.folder / "logs/tailed/n/rank-0.stderr"
    tailed.parent.mkdir(parents=True)
    lines = hunt.plant(2)
    raw = "\n".join(lines).encode() + b"\n"
    with open(tailed, "ab", buffering=0) as f:
        for at in range(0, len(raw), 997):
            f.write(raw[at:at + 997])
    shipped = t.folder / "rank-0.stderr"
    shipped.write_bytes(raw)
    control = t.folder / "control.stderr"
    control.write_text("\n".join(clean(lines)) + "\n")
    done = t.run("ship", "--job", "shipped", "--rank", "0", shipped, env=daemon.env)
    hunt.look("what ship prints", done.stdout + done.stderr)
    t.run("ship", "--job", "control", "--rank", "0", control, env=daemon.env)
    daemon.api.end("shipped", exit_code=1)
    poll.until("the tailed file", lambda: daemon.api.request("GET", "/v1/jobs/tailed/events").status == 200 and daemon.api.items("/v1/jobs/tailed/events"))
    daemon.api.end("tailed", exit_code=1)
    daemon.api.end("control", exit_code=1)
    for job in ("shipped", "tailed"):
        t.same(places(t, daemon, job), places(t, daemon, "control"), f"places of the events of {job}")
    hunt.everywhere(daemon, ["shipped", "tailed"])
    for form in ((), ("--json",), ("--report", "md"), ("--ranks",), ("--timeline",)):
        done = t.run("analyze", *form, shipped, status=None)
        hunt.look(f"analyze {form}", done.stdout + done.stderr)
    daemon.stop()
    hunt.disk(daemon)


def test_what_stays(t):
    """Hashes, checksums, ids and numbers are no secrets."""
    daemon = t.start()
    rng = t.rng

    def digits(n):
        return "".join(rng.choice(HEX) for _ in range(n))

    lines = [f"commit {digits(40)}", f"sha256:{digits(64)}", f"md5 {digits(32)}  model.bin", f"git rev-parse HEAD -> {digits(40)}", f"step 100 hash={digits(16)}",
             f"checkpoint {digits(8)}-{digits(4)}-{digits(4)}-{digits(4)}-{digits(12)}", "tokens=123456789012 tokens per second: 51234.5", "eos_token: '<|endoftext|>'",
             "pad_token=<|finetune_right_pad_id|>", "num_tokens: 1234567890123456", "the password is wrong", "secret: none", "wandb: Run data is saved locally in /job/wandb/run-1",
             "wandb login", "pass=12 fail=0", "pass: 7", "bypass=1 compass=north1234567", "passed: 1234567", f"nccl comm 0x{digits(16)} rank 0 commId 0x{digits(16)}"]
    feed(daemon, "".join(json.dumps({"job": "plain", "stream": "x", "message": x}) + "\n" for x in lines).encode(), rng)
    poll.until("the lines", lambda: daemon.api.request("GET", "/v1/jobs/plain/logs").status == 200)
    got = daemon.api.get("/v1/jobs/plain/logs?lines=1000").body.decode()
    for line in lines:
        t.check(json.dumps(line)[1:-1] in got, f"{line!r} was masked: {got[:3000]}")


OWN = (r"employee (?<secret>[0-9]{8})\b", r"\bCUST-[A-Z]{4}-[0-9]{6}\b")


def plant_own(hunt, rounds=6):
    """The lines of a log with what only OWN says is a secret."""
    rng, lines = hunt.t.rng, []

    def employee():
        hunt.secrets.append("".join(rng.choice("123456789") for _ in range(8)))
        return hunt.secrets[-1]

    def customer():
        hunt.secrets.append(f"{''.join(rng.choice(string.ascii_uppercase) for _ in range(4))}-{rng.randrange(10**5, 10**6)}")
        return f"CUST-{hunt.secrets[-1]}"

    for n in range(rounds):
        lines += [f"step {n} loss 2.5", f"login of employee {employee()} ok", f"order {customer()} of employee {employee()}, password=hunter2hunter2",
                  f"10%\r20% {customer()}\r30% done"]
    lines.append(" ".join(f"{customer()} and more and more and more of employee {employee()}" for _ in range(130)))  # longer than what is ever held back
    lines += ["Traceback (most recent call last):", '  File "/job/train.py", line 3, in main', f"    load(CUST, owner='employee {employee()}')",
              f"RuntimeError: CUDA error: out of memory for employee {employee()} of {customer()}", "bye"]
    return lines


def pieces_of(rng, lines):
    """The parts of a native stream, cut anywhere."""
    parts, stamp = [], BASE_US
    for line in lines:
        raw = line.encode()
        while raw:
            n = rng.choice((1, 5, 9, 40, 5000))
            parts.append(Part(stamp, raw[:n], n >= len(raw)))
            raw, stamp = raw[n:], stamp + 1
    return parts


def masks(*patterns):
    return [word for pattern in patterns for word in ("--mask", pattern)]


def test_own_patterns(t):
    """What the daemon's key `mask` says: of every dialect, of a node's own logs, of files that are read back."""
    hunt, fifo = Hunt(t), t.folder / "kmsg"
    os.mkfifo(fifo)
    daemon = t.start(options=[*(("mask", x) for x in OWN), ("tail", t.folder / "logs/{job}/{node}/{name}"), ("kernel-log", fifo)])
    sender = Sender(daemon.ingest, {"job": "native", "source": "s", "streams": ["rank-0.stderr"], "rank": 0, "node": "n"},
                    [pieces_of(t.rng, plant_own(hunt))]).connect()
    for upto in sorted(t.rng.sample(range(1, len(sender.lanes[0].parts)), 8)):
        sender.send_run(0, upto)
        sender.connect()
    sender.send_all()
    sender.end()
    rows = [{"job": "jsonl", "rank": 0, "node": "n", "stream": "rank-0.stderr", "message": x} for x in plant_own(hunt)]
    rows += [{"kind": kind, "node": "n", "stream": f"{kind}.log", "message": x} for kind in ("kernel", "scheduler") for x in plant_own(hunt)]
    lines = plant_own(hunt)
    rows += [{"event": "exit", "kind": "scheduler", "node": "n", "pid": 7, "exit_code": 1, "state": lines[1]}]
    rows += [{"event": "job-start", "job": "jsonl", "name": lines[1], "user": lines[2]}, {"event": "job-end", "job": "jsonl", "exit_code": 1, "reason": lines[-2]}]
    feed(daemon, "".join(json.dumps(x) + "\n" for x in rows).encode(), t.rng)
    feed(daemon, "".join(f'<13>1 2026-01-01T00:00:00Z n app - - [x@1 job="syslog" rank="0"] {x}\n' for x in plant_own(hunt)).encode(), t.rng)
    feed(daemon, "\n".join(plant_own(hunt)).encode(), t.rng)
    records = [{"timeUnixNano": str(BASE_US * 1000), "body": {"stringValue": x}} for x in plant_own(hunt)]
    resource = {"attributes": [{"key": "firstfault.job", "value": {"stringValue": "otlp"}}]}
    daemon.api.post("/v1/logs", {"resourceLogs": [{"resource": resource, "scopeLogs": [{"logRecords": records}]}]})
    with open(fifo, "wb", buffering=0) as f:
        f.write("".join(f"3,{i},{i},-;{x}\n" for i, x in enumerate(plant_own(hunt)) if len(x) < 900).encode())
    tailed = t.folder / "logs/tailed/n/rank-0.stderr"
    tailed.parent.mkdir(parents=True)
    raw = "\n".join(plant_own(hunt)).encode() + b"\n"
    mark = tailed.with_name("rank-1.stderr")  # of the same thread: what stood in the other file before is read by then
    with open(tailed, "ab", buffering=0) as f, open(mark, "ab", buffering=0) as g:
        cuts = [raw.index(b"employee ") + 13, raw.rindex(b"employee ") + 13, len(raw)]  # the last one is evidence
        for i, (at, end) in enumerate(zip([0, *cuts], cuts)):
            f.write(raw[at:end])
            g.write(b"mark %d\n" % i)
            poll.until("the mark", lambda i=i: f"mark {i}" in daemon.api.request("GET", "/v1/jobs/tailed/logs?lines=1000").body.decode())
    poll.until("the tailed file", lambda: daemon.api.request("GET", "/v1/jobs/tailed/events").status == 200 and daemon.api.items("/v1/jobs/tailed/events"))
    poll.until("all jobs", lambda: len(daemon.api.items("/v1/jobs")) >= 6)
    poll.until("the nodes' lines, with a hole in one", lambda: daemon.status()["nodes"]["streams"] == 4)
    for job in ("native", "tailed"):
        daemon.api.end(job, exit_code=1)
        logs = daemon.api.get(f"/v1/jobs/{job}/logs?lines=1000").body.decode()
        t.check("login of employee <secret:" in logs and "of <secret:own:" in logs, f"no mark in {job}: {logs[:2000]}")
    for job in daemon.api.items("/v1/jobs"):
        for route in ("", "/verdict", "/events", "/logs?lines=10000", "/logs?follow=now&lines=1000&wait=0", "/export"):
            hunt.look(f"{job['job']}{route}", daemon.api.get(f"/v1/jobs/{job['job']}{route}", ok=(200, 404)).body)
    hunt.everywhere(daemon, ["tailed"])
    t.same(daemon.status()["counters"]["match_limit"], 0, "patterns at their limit")
    daemon.restart()
    hunt.everywhere(daemon, ["native"])
    daemon.stop()
    hunt.disk(daemon)


def test_own_patterns_of_clients(t):
    """`--mask` of ship, of whose daemon none knows them: what leaves, and what is spooled while that is away; and of analyze."""
    hunt, spool = Hunt(t), t.folder / "spool"
    daemon = t.start()
    env = {**daemon.env, "FIRSTFAULT_SPOOL": str(spool)}
    shipped, plain = t.folder / "rank-0.stderr", t.folder / "plain.stderr"
    # the end of the longest piece is inside its secret
    lines = plant_own(hunt)
    lines.insert(0, "." * (65536 - len("employee 1234")) + lines[1].removeprefix("login of "))
    shipped.write_text("\n".join(lines) + "\n")
    plain.write_text("\n".join(re.sub(r"(?<=employee )[0-9]+|CUST-[A-Z]+-[0-9]+", lambda m: "x" * len(m.group()), x)
                               for x in shipped.read_bytes().decode().split("\n")))
    for job, path in (("shipped", shipped), ("control", plain)):
        t.run("ship", "--job", job, "--rank", "0", *masks(*OWN), path, env=env)
        daemon.api.end(job, exit_code=1)
    t.same(places(t, daemon, "shipped"), places(t, daemon, "control"), "places of the events")
    daemon.stop()
    piped = lines[:1] + plant_own(hunt)
    raw = "\n".join(piped) + "\nemployee 12"  # its rest never comes
    done = t.run("ship", "--job", "piped", "--rank", "0", "--give-up", "100ms", *masks(*OWN), "-", input=raw.encode(), env=env, status=None)
    hunt.look("what ship says", done.stdout + done.stderr)
    kept = [x.read_bytes() for x in spool.rglob("*.seg")]
    t.check(any(b"login of employee <secret:" in x for x in kept), "the spool holds the lines")
    for i, held in enumerate(kept):
        hunt.look(f"segment {i} of the spool", held)
    daemon.start()
    t.run("ship", "--spool-flush", env=env)
    poll.until("the piped job", lambda: daemon.api.request("GET", "/v1/jobs/piped/events").status == 200)
    hunt.everywhere(daemon, ["shipped", "piped"])
    daemon.stop()
    hunt.disk(daemon)
    for form in ((), ("--json",), ("--report", "md"), ("--ranks",), ("--timeline", "--json")):
        done = t.run("analyze", *masks(*OWN), *form, shipped, status=None)
        hunt.look(f"analyze {form}", done.stdout + done.stderr)
    t.check(b"employee <secret:" in t.run("analyze", *masks(*OWN), "-", input=raw.encode()).stdout, "analyze shows the mark")


def test_bad_patterns(t):
    """Named, with the place in them; nothing starts with one."""
    for pattern, why in (("employee ([0-9]+", "at byte"), ("x*", "nothing at all")):
        for words in (["analyze", "--mask", pattern, "-"], ["ship", "--job", "j", "--mask", pattern, "-"]):
            done = t.run(*words, input=b"x\n", status=(64,))
            t.check(f'--mask: pattern "{pattern}"' in done.stderr.decode() and why in done.stderr.decode(), done.stderr)
        done = subprocess.run([t.daemon, "--mask", pattern, "--check-config"], capture_output=True, text=True, timeout=60)
        t.check(done.returncode == 64 and f'mask: pattern "{pattern}"' in done.stderr and why in done.stderr, done.stderr)


if __name__ == "__main__":
    trial.main(__doc__, test_native, test_text_dialects, test_names_and_facts, test_tail_and_ship, test_what_stays,
               test_own_patterns, test_own_patterns_of_clients, test_bad_patterns)
