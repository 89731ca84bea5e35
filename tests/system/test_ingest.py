#!/usr/bin/env python3
"""The ways in: OTLP, JSON Lines with acknowledgements, and the forms of Fluent Bit and Vector, with the real daemon."""
import gzip
import json
import pathlib
import socket
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from support import poll, shippers, trial  # noqa: E402
from support.http import Connection  # noqa: E402

WIRE = pathlib.Path(__file__).resolve().parents[1] / "fixtures" / "wire"


def rows_of(daemon, job):
    """The export; bytes that are no UTF-8 as surrogates."""
    return [json.loads(raw.decode("utf-8", "surrogateescape")) for raw in daemon.api.get(f"/v1/jobs/{job}/export").body.splitlines()]


def texts(daemon, job):
    """What is kept of a job: {stream: [text, ...]}, as its export says."""
    out = {}
    for row in rows_of(daemon, job):
        if "message" in row:
            out.setdefault(row["stream"], []).append(row["message"])
    return out


def counter(daemon, name):
    return daemon.status()["counters"][name]


# -- OTLP

def text(s):
    return {"stringValue": s}


def attributes(**values):
    return [{"key": k.replace("__", "."), "value": text(v) if isinstance(v, str) else {"intValue": str(v)}} for k, v in values.items()]


def request(records, **resource):
    """Records are texts or whole records."""
    rows = [{"timeUnixNano": str(1767225600000000000 + i), "body": text(r)} if isinstance(r, str) else r for i, r in enumerate(records)]
    return {"resourceLogs": [{"resource": {"attributes": attributes(**resource)}, "scopeLogs": [{"logRecords": rows}]}]}


class Exporter:
    """A client that keeps its connection, as exporters do."""

    def __init__(self, daemon):
        self.connection = Connection(daemon.api.path, 30)

    def post(self, body, **headers):
        body = body if isinstance(body, bytes) else json.dumps(body).encode()
        self.connection.request("POST", "/v1/logs", body, {"Content-Type": "application/json", **{k.replace("_", "-"): v for k, v in headers.items()}})
        answer = self.connection.getresponse()
        return answer.status, json.loads(answer.read()), answer.headers

    def close(self):
        self.connection.close()


def test_otlp_exporter(t):
    """What OpenTelemetry's own exporter sends, as it is and packed; kept when the answer came, whatever happens then."""
    daemon = t.start()
    body = (WIRE / "otlp-js.json").read_bytes()
    exporter = Exporter(daemon)
    t.same(exporter.post(body)[:2], (200, {}), "answer")
    t.same(exporter.post(gzip.compress(body), Content_Encoding="gzip")[:2], (200, {}), "answer to a packed one")
    daemon.restart()
    kept = texts(daemon, "llm")
    t.same(kept["/logs/rank-3.log"], ["step 1 loss 2.3\tü \0 nul"] * 2, "text of a file")
    t.same(kept["llm-worker-3"][:1], ['{"event":"boom","code":7,"nested":{"a":[1,null]}}'], "a map as body")
    verdict = daemon.api.end("llm", exit_code=1, state="FAILED")["verdict"]
    t.same(([i["rank"] for i in verdict["initiating"]], verdict["fault"]["id"], verdict["final"]), ([3], "cuda-oom", True), "verdict")
    daemon.stop()


def test_otlp_batches(t):
    """A traceback in two requests of one connection is one record; its stream ends with the connection."""
    daemon = t.start()
    exporter = Exporter(daemon)
    who = {"job": "split", "rank": 0, "host__name": "node-0"}
    t.same(exporter.post(request(["step 1", "Traceback (most recent call last):", '  File "/job/a.py", line 3, in main'], **who))[:2], (200, {}), "first half")
    t.same(exporter.post(request(["    x()", "ValueError: both halves"], **who))[:2], (200, {}), "second half")
    verdict = daemon.api.end("split", exit_code=1, wait="1s")["verdict"]
    t.same(verdict["final"], False, "final while the connection is open")
    exporter.close()
    verdict = daemon.api.end("split", exit_code=1)["verdict"]
    t.same(verdict["final"], True, "final after the connection")
    events = [e for e in daemon.api.items("/v1/jobs/split/events") if e["kind"] == "fault"]
    t.same([(e["stream"], e["line"], e["at"]["line"]) for e in events], [("rank-0", 2, 5)], "events")
    daemon.stop()


def test_otlp_rejected(t):
    """What can't be taken is answered as the protocol says; the rest is kept."""
    daemon = t.start()
    exporter = Exporter(daemon)
    status, answer, _ = exporter.post(request(["good", {"timeUnixNano": "0"}, {"body": {}}, "good too"], job="partly"))
    t.same(status, 200, "status")
    t.same(answer["partialSuccess"]["rejectedLogRecords"], "2", "rejected records")
    t.check(answer["partialSuccess"]["errorMessage"], "no reason")
    t.same(texts(daemon, "partly"), {"-": ["good", "good too"]}, "what is kept")
    for body, headers, wanted in ((b"{", {}, 400), (b"[]", {}, 400), (b'{"resourceLogs":7}', {}, 400), (b"{}", {}, 200),
                                  (b"\x0a\x00", {"Content_Type": "application/x-protobuf"}, 415), (b"x", {"Content_Encoding": "br"}, 415),
                                  (b"x", {"Content_Encoding": "gzip"}, 400), (gzip.compress(b"{}")[:-4], {"Content_Encoding": "gzip"}, 400),
                                  (gzip.compress(b" " * (17 << 20)), {"Content_Encoding": "gzip"}, 413), (b" " * (17 << 20), {}, 413)):
        status, answer, got = exporter.post(body, **headers)
        t.same(status, wanted, f"status for {body[:20]} {headers}")
        t.same(got["Content-Type"], "application/json", "type of the answer")
        t.check(status == 200 or (answer["message"] and answer["code"]), f"no Status for {body[:20]}: {answer}")
    t.same(counter(daemon, "otlp_rejected"), 2, "otlp_rejected")
    t.same(counter(daemon, "bad_otlp"), 3, "bad_otlp")
    t.check(daemon.memory() < 400 << 20, f"{daemon.memory()} bytes of memory after large bodies")
    exporter.close()
    daemon.stop()


# -- what agents send over TCP

def send(daemon, raw):
    """Sends bytes, ends its side, and gives back what came until the daemon ended too."""
    with socket.socket(socket.AF_UNIX) as s:
        s.settimeout(20)
        s.connect(str(daemon.ingest))
        s.sendall(raw)
        s.shutdown(socket.SHUT_WR)
        out = b""
        while more := s.recv(65536):
            out += more
        return out


def stamps(daemon, job, stream):
    """(clock, stamp) of each kept line."""
    return [(r.get("clock"), r.get("time")) for r in rows_of(daemon, job) if "message" in r and r["stream"] == stream]


def test_fluent_bit(t):
    """Captures of the real one: streams, joined parts, whose clock the times are of."""
    daemon = t.start()
    for name in ("tail", "cri", "docker"):
        t.same(send(daemon, (WIRE / f"fluent-bit-{name}.jsonl").read_bytes()), b"", f"answer to {name}")
    kept = texts(daemon, "fb")
    t.same(kept.pop("/logs/rank-3.log"), ["step 1\tloss", "b\ue0fcd byte ", "\033[31mred\033[0m", "nul\0here", 'quote "x" back\\slash',
                                          "crlf", "", "Traceback (most recent call last):", '  File "a.py"'], "text of a file")
    for name in ("0.log", "docker.log"):
        t.same(kept.pop(f"/logs/{name}/stderr"), ["first half second half"], f"joined line of {name}")
        t.same(kept.pop(f"/logs/{name}/stdout"), ["whole"], f"whole line of {name}")
        t.same(stamps(daemon, "fb", f"/logs/{name}/stdout"), [("node", "2026-01-01T00:00:00.200000Z")], f"stamp of {name}")
    t.same(kept, {}, "other streams")
    t.same([counter(daemon, n) for n in ("bad_json", "bad_values", "bad_times")], [0, 0, 0], "what is counted as bad")
    daemon.stop()


def test_syslog(t):
    """Captures of rsyslog and syslog-ng, in counted frames: the file's bytes, whose they are, and when they were read."""
    daemon = t.start()
    for name, change in (("rsyslog", shippers.by_rsyslog), ("syslog-ng", shippers.by_syslog_ng)):
        raw = (WIRE / f"{name}.bin").read_bytes().replace(b'job="4711"', b'job="' + name.encode().ljust(4, b"_")[:4] + b'"')
        t.same(send(daemon, raw), b"", f"answer to {name}")
        kept = texts(daemon, name[:4])
        t.same(list(kept), ["/scratch/logs/4711/rank-3.log"], f"streams of {name}")
        lines = [x.encode("utf-8", "surrogateescape") for x in kept["/scratch/logs/4711/rank-3.log"]]
        t.same(lines, change(shippers.ODD_LINES), f"text of {name}")
        clocks = {clock for clock, _ in stamps(daemon, name[:4], "/scratch/logs/4711/rank-3.log")}
        t.same(clocks, {"node"}, f"clock of {name}")
    t.same(counter(daemon, "bad_syslog"), 0, "bad_syslog")
    daemon.stop()


def test_acks(t):
    """JSON Lines with source and offset: what is committed is acknowledged, what comes again is dropped, and nothing is lost with a daemon."""
    daemon = t.start()
    rows, at = [], {"a": 0, "b": 0}
    for i in range(400):
        source = "ab"[i % 2]
        message = f"step {i} " + "x" * t.rng.randrange(200)
        rows.append({"job": "acked", "source": source, "offset": at[source], "stream": f"{source}.log", "message": message})
        at[source] += len(message) + 1
    acked = dict.fromkeys(at, 0)
    lives = 0
    while acked != at:
        lives += 1
        t.check(lives < 50, f"no end after 50 lives: {acked} of {at}")
        todo = [r for r in rows if r["offset"] >= acked[r["source"]]]
        if lives % 2:
            todo = todo[:t.rng.randrange(1, len(todo) + 1)]
        with socket.socket(socket.AF_UNIX) as s:
            s.settimeout(20)
            s.connect(str(daemon.ingest))
            s.sendall(b"".join(json.dumps(r).encode() + b"\n" for r in todo))
            wanted = {**acked, **{r["source"]: r["offset"] + len(r["message"]) + 1 for r in todo}}
            raw = b""
            while acked != wanted:
                more = s.recv(65536)
                t.check(more, "closed before the last acknowledgement")
                *lines, raw = (raw + more).split(b"\n")
                for line in lines:
                    ack = json.loads(line)
                    t.same(set(ack), {"event", "source", "offset"}, "keys of an ack")
                    t.check(acked[ack["source"]] <= ack["offset"] <= wanted[ack["source"]], f"{ack} after {acked}")
                    acked[ack["source"]] = ack["offset"]
                if t.rng.random() < 0.3:
                    break
        daemon.restart()
    for r in rows[:50]:  # what is known already
        send(daemon, json.dumps(r).encode() + b"\n")
    kept = texts(daemon, "acked")
    t.same(kept, {f"{s}.log": [r["message"] for r in rows if r["source"] == s] for s in "ab"}, "text")
    t.check(counter(daemon, "resent") > 0, "what came again is not counted")
    t.same(counter(daemon, "gaps"), 0, "gaps")
    daemon.stop()


def test_raw_shared(t):
    """Raw text of one user over several connections is one stream; whoever goes first, the others go on."""
    daemon = t.start(options=[("default-job", "pasted")])

    def kept():
        answer = daemon.api.request("GET", "/v1/jobs/pasted/export")
        return [m for texts_of in texts(daemon, "pasted").values() for m in texts_of] if answer.status == 200 else []

    wanted = []
    for round in range(3):
        senders = []
        for k in range(4):
            s = socket.socket(socket.AF_UNIX)
            s.connect(str(daemon.ingest))
            senders.append(s)
        for k in t.rng.sample(range(4), 4) + t.rng.sample(range(4), 4):
            line = f"round {round} sender {k} line {len(wanted)}"
            wanted.append(line)
            senders[k].sendall(line.encode() + b"\n")
            poll.until(f"{line!r}", lambda: line in kept())
        for k in t.rng.sample(range(4), 4):
            senders[k].close()
            senders[k] = None
            for s in filter(None, senders):
                line = f"round {round} line {len(wanted)}"
                wanted.append(line)
                s.sendall(line.encode() + b"\n")
                poll.until(f"{line!r}", lambda: line in kept())
    t.same(kept(), wanted, "text")
    daemon.stop()


def test_vector(t):
    """The forms of Vector's sources file and kubernetes_logs behind its sink socket (docs: vector.dev), a job named by a label."""
    daemon = t.start()
    pod = {"container_name": "main", "pod_labels": {"training.kubeflow.org/job-name": "llm"}, "pod_name": "llm-worker-0", "pod_namespace": "team",
           "pod_node_name": "gpu-1"}
    rows = [{"file": "/var/log/pods/x/0.log", "kubernetes": pod, "message": text, "source_type": "kubernetes_logs", "stream": fd,
             "timestamp": f"2026-01-01T00:00:0{i}.5Z"} for i, (fd, text) in enumerate((("stderr", "one"), ("stdout", "two"), ("stderr", "three")))]
    rows.append({"file": "/logs/rank-0.log", "host": "node-0", "job": "vec", "message": "step 1", "rank": 0, "source_type": "file", "timestamp": "2026-01-01T00:00:00Z"})
    t.same(send(daemon, b"".join(json.dumps(r).encode() + b"\n" for r in rows)), b"", "answer")
    t.same(texts(daemon, "llm.team"), {"llm-worker-0/main/stderr": ["one", "three"], "llm-worker-0/main/stdout": ["two"]}, "text of a pod")
    t.same(stamps(daemon, "llm.team", "llm-worker-0/main/stdout"), [("node", "2026-01-01T00:00:01.500000Z")], "stamp of a pod")
    t.same(texts(daemon, "vec"), {"/logs/rank-0.log": ["step 1"]}, "text of a file")
    daemon.stop()


if __name__ == "__main__":
    trial.main(__doc__, test_otlp_exporter, test_otlp_batches, test_otlp_rejected, test_fluent_bit, test_syslog, test_vector, test_raw_shared, test_acks)
