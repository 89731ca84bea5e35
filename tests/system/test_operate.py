#!/usr/bin/env python3
"""Operation: the configuration and its sample file, the log, SIGHUP, the service manager."""
import contextlib
import ctypes
import json
import os
import pathlib
import re
import shutil
import signal
import socket
import struct
import subprocess
import sys
import threading

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from support import poll, trial  # noqa: E402
from support.daemon import environment  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parents[2]
PLACES = ("state", "ingest-socket", "api-socket")  # their defaults are the user's


def ask(t, *flags, status=0):
    done = subprocess.run([t.daemon, *map(str, flags)], capture_output=True, text=True, timeout=60, env=environment(t.folder))
    t.same(done.returncode, status, f"exit status of firstfaultd {flags}: {done.stderr}")
    return done.stdout if status == 0 else done.stderr


def assignments(text):
    return [(key, value.strip()) for key, value in re.findall(r"^#?([a-z][a-z-]*) =(.*)$", text, re.M)]


def test_sample(t):
    """deploy/firstfaultd.conf and README.md have every key, none more, and the defaults."""
    sample = assignments((ROOT / "deploy/firstfaultd.conf").read_text())
    keys = re.findall(r"^  --([a-z-]+)", ask(t, "--help").split("\nFlags only:")[0], re.M)
    t.same([k for k, _ in sample], keys, "keys of the sample, in the order of --help")
    readme = (ROOT / "README.md").read_text().split("## Configuration of firstfaultd")[1].split("\n## ")[0]
    t.same(re.findall(r"^\| `([a-z-]+)` \|", readme, re.M), keys, "keys of README.md, in the order of --help")
    places = PLACES if os.geteuid() else ()
    printed = ask(t, "--print-config")
    t.same([(k, v) for k, v in sample if v and k not in places], [(k, v) for k, v in assignments(printed) if k not in places],
           "the sample's values and --print-config")
    said = t.folder / "said.conf"
    said.write_text("".join(f"{k} = {v}\n" for k, v in sample if v and k not in places))
    t.same(ask(t, "--config", said, "--print-config"), printed, "what the sample's values say")
    ask(t, "--config", ROOT / "deploy/firstfaultd.conf", "--check-config")
    said.write_text("no-such-key = 1\n")
    t.check("said.conf:1: unknown key" in ask(t, "--config", said, "--check-config", status=64), "an unknown key is named")


def test_log_levels(t):
    """Each request at debug, life at info, nothing below error."""
    said = {}
    for level in ("debug", "info", "error"):
        daemon = t.start(level, [("log-level", level)])
        daemon.api.get("/v1/jobs")
        daemon.stop()
        said[level] = daemon.log_path.read_text()
    t.check("debug: group=api uid=" in said["debug"] and "uri=/v1/jobs status=200" in said["debug"], f"a request at debug: {said['debug']}")
    t.same({line.split(":")[0] for line in said["info"].splitlines()}, {"info"}, f"levels at info: {said['info']}")
    t.same(said["error"], "", "what is said at error")


# ---- the state folder


class Remote:
    """A FUSE file system that calls itself sshfs: an empty folder, served by a thread, in a mount namespace of this process."""
    NEWNS, RECURSIVE_PRIVATE, DETACH = 0x00020000, 0x4000 | 0x40000, 2  # unshare(2), mount(2), umount2(2)

    def __init__(self, t, folder):
        self.libc = ctypes.CDLL(None, use_errno=True)
        self.folder = str(folder).encode()
        try:
            self.device = os.open("/dev/fuse", os.O_RDWR | os.O_CLOEXEC)
        except OSError as e:
            t.skip(f"/dev/fuse: {e.strerror}")
        options = f"fd={self.device},rootmode=40000,user_id={os.getuid()},group_id={os.getgid()}".encode()
        self.call(t, "unshare", self.NEWNS)
        self.call(t, "mount", None, b"/", None, ctypes.c_ulong(self.RECURSIVE_PRIVATE), None)
        self.call(t, "mount", b"none", self.folder, b"fuse.sshfs", ctypes.c_ulong(0), options)
        threading.Thread(target=self.serve, daemon=True).start()

    def call(self, t, name, *arguments):
        if getattr(self.libc, name)(*arguments) < 0:
            t.skip(f"{name}: {os.strerror(ctypes.get_errno())}")

    def serve(self):
        """linux/fuse.h: FORGET and INTERRUPT have no answer; INIT, GETATTR and STATFS are answered, nothing else is there."""
        attributes = struct.pack("<QIIQQQQQQIIIIIIIIII", 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0o40700, 2, os.getuid(), os.getgid(), 0, 4096, 0)
        answers = {26: struct.pack("<IIIIHHII", 7, 31, 0, 0, 0, 0, 4096, 1) + bytes(36), 3: attributes,
                   17: struct.pack("<QQQQQIIII", 1, 1, 1, 1, 1, 4096, 255, 4096, 0) + bytes(24)}
        with contextlib.suppress(OSError):
            while True:
                request = os.read(self.device, 1 << 17)
                _, opcode, unique = struct.unpack_from("<IIQ", request)
                body = answers.get(opcode)
                if opcode not in (2, 36, 42):
                    head = struct.pack("<IiQ", 16 + len(body or b""), 0 if body else -(2 if opcode == 1 else 38), unique)
                    os.write(self.device, head + (body or b""))

    def close(self):
        self.libc.umount2(self.folder, self.DETACH)
        os.close(self.device)


def test_state_on_a_network(t):
    """A state folder that a network file system holds is refused at the start, before anything is written."""
    folder = t.folder / "mounted"
    folder.mkdir()
    remote = Remote(t, folder)
    try:
        done = subprocess.run([t.daemon, "--state", folder, "--api-socket", t.folder / "a", "--ingest-socket", t.folder / "i"],
                              capture_output=True, text=True, timeout=60, env=environment(t.folder))
    finally:
        remote.close()
    t.same(done.returncode, 74, f"exit status: {done.stderr}")
    t.check("network file system (sshfs)" in done.stderr and str(folder) in done.stderr, done.stderr)


# ---- reload


def entry(fault, literal, title):
    return {"id": fault, "title": title, "category": "memory", "role": "primary", "domain": "user", "cause": f"{title}, it is said.",
            "match": [{"literal": literal, "pattern": literal + " (?<size>[0-9]+)", "component": "widget", "since": "1"}],
            "mechanism": ["m"], "symptoms": ["s"], "confirm": ["c"], "fix": ["f"], "prevent": ["p"], "verify": [{"run": "true", "expect": "x"}],
            "example_fix": None, "affects": [], "see_also": [], "references": [], "tags": [], "examples": [f"{literal} 7"],
            "counterexamples": [f"{literal} ten"]}


def hang_up(daemon, counter="reloads"):
    """SIGHUP, and the reload that it brings about."""
    before = daemon.status()["counters"][counter]
    daemon.process.send_signal(signal.SIGHUP)
    poll.until(lambda: f"{counter}: {daemon.status()['reload']}\n{daemon.log_tail(5)}", lambda: daemon.status()["counters"][counter] > before)
    return daemon.status()["reload"]


def write(path, entries):
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps(entries))


def say(daemon, *lines, rank=0, stream="out"):
    """JSON Lines, and the wait for what they say to be taken."""
    with socket.socket(socket.AF_UNIX) as s:
        s.connect(str(daemon.ingest))
        for line in lines:
            s.sendall(json.dumps({"job": "j", "rank": rank, "stream": stream, "message": line}).encode() + b"\n")
        s.shutdown(socket.SHUT_WR)
        while s.recv(4096):
            pass


def say_kernel(daemon, *lines):
    with socket.socket(socket.AF_UNIX) as s:
        s.connect(str(daemon.ingest))
        for line in lines:
            s.sendall(json.dumps({"kind": "kernel", "node": "n1", "stream": "kmsg", "message": line}).encode() + b"\n")
        s.shutdown(socket.SHUT_WR)
        while s.recv(4096):
            pass


def faults(daemon):
    return [(e["fault"], e["signature"]) for e in daemon.api.get("/v1/jobs/j/events").json()["items"]]


def test_reload_catalog(t):
    """What comes is matched by the new one, an open record as a whole; what was matched stays; a restart changes nothing."""
    own = t.folder / "own" / "widget.json"
    write(own, [entry("widget-burst", "widget burst", "The widget burst")])
    daemon = t.start(options=[("catalog", own.parent)])
    daemon.api.start("j", world_size=2)
    say(daemon, "widget burst 1", "widget shrank 1")
    say_kernel(daemon, "NVRM: Xid (PCI:0000:3b:00): 79, pid=1, GPU has fallen off the bus.")
    with socket.socket(socket.AF_UNIX) as s:  # a record that is open at the swap
        s.connect(str(daemon.ingest))
        for line in ("Traceback (most recent call last):", '  File "train.py", line 1, in f', "    g()", "RuntimeError: widget shrank 2"):
            s.sendall(json.dumps({"job": "j", "rank": 1, "stream": "err", "message": line}).encode() + b"\n")
        wanted = [("widget-burst", "widget-burst/1"), ("python-runtime-error", "x")]
        poll.until(lambda: f"both events: {faults(daemon)}", lambda: len(faults(daemon)) == len(wanted))
        before = faults(daemon)
        version = daemon.api.get("/v1/jobs/j").json()["version"]
        hashes = daemon.api.get("/v1/jobs/j/verdict").json()["catalog"]
        hang_up(daemon)  # the same files: nothing changes
        t.same((daemon.api.get("/v1/jobs/j").json()["version"], daemon.api.get("/v1/jobs/j/verdict").json()["catalog"]), (version, hashes), "the same catalogue again")

        write(own, [entry("widget-burst", "widget explodes", "The widget exploded"), entry("widget-shrank", "widget shrank", "The widget shrank")])
        said = hang_up(daemon)
        t.same(said["error"], None, "a good one")
        t.check(daemon.api.get("/v1/jobs/j/verdict").json()["catalog"] != hashes, "the verdict says what explains it")
        t.same(faults(daemon)[0], before[0], "what was matched stays as it was")
        t.same(faults(daemon)[1], ("widget-shrank", "widget-shrank/1"), "the open record is matched as a whole")
        say(daemon, "widget shrank 3", stream="out")
        say_kernel(daemon, "NVRM: Xid (PCI:0000:3b:00): 79, pid=2, GPU has fallen off the bus.", "widget shrank 4")
        t.same(faults(daemon)[-1][0], "widget-shrank", f"what comes is matched by the new one: {faults(daemon)}")
    t.same(len(faults(daemon)), 3, f"events: {faults(daemon)}")
    daemon.api.end("j", exit_code=1, state="FAILED")
    verdict, found = daemon.api.get("/v1/jobs/j/verdict").body, faults(daemon)
    daemon.restart()
    t.same(faults(daemon), found, "events after kill -9")
    t.check(daemon.api.get("/v1/jobs/j/verdict").body == verdict, lambda: trial.difference(daemon.api.get("/v1/jobs/j/verdict").body, verdict))


def test_reload_refused(t):
    """A bad catalogue, file or key: the old one holds, the reason is said and counted."""
    own = t.folder / "own" / "widget.json"
    write(own, [entry("widget-burst", "widget burst", "The widget burst")])
    options = [("catalog", own.parent), ("default-job", "one")]
    daemon = t.start(options=options)
    hashes = daemon.status()["catalog"]
    for bad, wanted in (("[{]", "widget.json"), (json.dumps([{"id": "x"}]), "widget.json")):
        own.write_text(bad)
        said = hang_up(daemon, "reloads_refused")
        t.check(wanted in said["error"] and said["refused"], f"the file is named: {said}")
    write(own, [entry("widget-burst", "widget burst", "The widget burst")])
    for bad, wanted in ((("default-job", "a/b"), "job id"), (("no-such-key", "1"), "no-such-key"), (("listen", "127.0.0.1:0"), "token-file"),
                        (("token-file", t.folder / "none"), "none"), (("log-level", "loud"), "log-level"), (("tail", "x"), "tail")):
        daemon.configure([*options, bad])
        said = hang_up(daemon, "reloads_refused")
        t.check(wanted in said["error"], f"{bad}: {said}")
        t.check("refused, what was there before holds" in daemon.log_tail(3), daemon.log_tail(3))
    t.same((daemon.status()["catalog"], daemon.status()["counters"]["reloads"]), (hashes, 0), "nothing was taken over")
    daemon.config.unlink()
    t.check("firstfaultd.conf" in hang_up(daemon, "reloads_refused")["error"], "a file that is gone")
    daemon.configure(options)
    hang_up(daemon)
    shown = t.run("status", env=daemon.env).stdout.decode()
    t.check("firstfaultd.conf" in shown, f"status shows it: {shown}")
    t.same(daemon.status()["counters"]["reloads_refused"], 9, "status counts them")


def test_reload_keys(t):
    """Keys that can change do; those that cannot are named, and keep their value."""
    daemon = t.start()
    logs = t.folder / "logs"
    logs.mkdir()
    (logs / "late.log").write_text("step 1\nRuntimeError: x\n")
    daemon.api.get("/v1/jobs")
    lines = daemon.config.read_text().replace(f"state = {daemon.state}", f"state = {t.folder / 'other'}")
    daemon.config.write_text(lines + f"tail = {logs}/{{job}}.log\ndefault-job = text\nlog-level = debug\n")
    said = hang_up(daemon)
    t.same((said["needs_restart"], said["error"]), ("state", None), "what a restart would change")
    t.check("needs a restart: state" in daemon.log_tail(), daemon.log_tail())
    poll.until("the file of the new pattern", lambda: daemon.api.request("GET", "/v1/jobs/late").status == 200)
    t.check("debug: group=api" in daemon.log_path.read_text(), "log-level = debug")
    with socket.socket(socket.AF_UNIX) as s:
        s.connect(str(daemon.ingest))
        s.sendall(b"only text\n")
        s.shutdown(socket.SHUT_WR)
        while s.recv(4096):
            pass
    poll.until("the new default job", lambda: daemon.api.request("GET", "/v1/jobs/text").status == 200)
    t.check(not (t.folder / "other").exists(), "the state folder stays")
    for _ in range(20):
        daemon.process.send_signal(signal.SIGHUP)
    t.same(hang_up(daemon)["needs_restart"], "state", "many at once")
    daemon.stop()


# ---- the service manager


class Manager:
    """The socket of sd_notify(3)."""

    def __init__(self, folder):
        self.path = folder / "notify.sock"
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.bind(str(self.path))
        self.socket.setblocking(False)
        self.said = []

    def prefix(self, **more):
        return ("env", f"NOTIFY_SOCKET={self.path}", *(f"{k}={v}" for k, v in more.items()))

    def lines(self):
        with contextlib.suppress(BlockingIOError):
            while True:
                self.said += self.socket.recv(4096).decode().split("\n")
        return self.said

    def wait(self, line, seconds=20):
        poll.until(lambda: f"{line} among {self.said[-20:]}", lambda: any(x.startswith(line) for x in self.lines()), seconds)


class Stopped:
    """One thread of a process, stopped: it hangs, and the others go on."""
    SEIZE, INTERRUPT, DETACH = 0x4206, 0x4207, 17  # sys/ptrace.h

    def __init__(self, thread):
        self.thread = thread
        self.libc = ctypes.CDLL(None, use_errno=True)
        self.libc.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
        self.libc.ptrace.restype = ctypes.c_long

    def __enter__(self):
        if self.libc.ptrace(self.SEIZE, self.thread, None, None) < 0:
            raise trial.Skip(f"ptrace: {os.strerror(ctypes.get_errno())}")
        self.libc.ptrace(self.INTERRUPT, self.thread, None, None)
        os.waitpid(self.thread, 0x40000000)  # __WALL

    def __exit__(self, *_):
        self.libc.ptrace(self.DETACH, self.thread, None, None)


def test_notify(t):
    """READY once it is, STATUS, pings, STOPPING."""
    manager = Manager(t.folder)
    daemon = t.start(options=[], prefix=manager.prefix(WATCHDOG_USEC=2000000))
    manager.wait("READY=1")
    manager.wait("STATUS=0 runs")
    daemon.process.send_signal(signal.SIGHUP)
    manager.wait("RELOADING=1")
    manager.wait("MONOTONIC_USEC=")
    poll.until(lambda: f"READY=1 again: {manager.said}", lambda: manager.lines().count("READY=1") == 2)
    poll.until(lambda: f"three pings: {manager.said}", lambda: manager.lines().count("WATCHDOG=1") >= 3)
    daemon.stop()
    manager.wait("STOPPING=1")
    t.check(manager.said.index("READY=1") < manager.said.index("STOPPING=1"), f"in order: {manager.said}")


def test_watchdog_of_the_store(t):
    """Pings stop while the store's thread hangs with work before it, and come back with it."""
    manager = Manager(t.folder)
    daemon = t.start(options=[], prefix=manager.prefix(WATCHDOG_USEC=2000000))
    manager.wait("WATCHDOG=1")
    tasks = pathlib.Path(f"/proc/{daemon.process.pid}/task")
    store, = (int(task.name) for task in tasks.iterdir() if (task / "comm").read_text().strip() == "store")

    def pinged(seconds):
        manager.lines()
        before = manager.said.count("WATCHDOG=1")
        with contextlib.suppress(poll.Late):
            poll.until("a ping", lambda: manager.lines().count("WATCHDOG=1") > before, seconds)
        return manager.said.count("WATCHDOG=1") > before

    with Stopped(store):
        t.check(pinged(3), "a thread that has nothing to do is no hang")
        begun = t.spawn(t.client, "job", "start", "j", env=daemon.env)  # waits for its commit
        poll.until("the pings to stop", lambda: not pinged(1.5))
        t.check(not pinged(2), "no ping while it hangs")
        t.check(daemon.api.get("/healthz").status == 200, "the loop goes on")
    t.check(pinged(5), "pings after it goes on")
    t.same(begun.wait(20), 0, "what waited for its commit")


def test_service_unit(t):
    """deploy/systemd/firstfaultd.service is right, and walls the daemon in."""
    if not shutil.which("systemd-analyze"):
        t.skip("no systemd-analyze")
    unit = t.folder / "firstfaultd.service"
    text = (ROOT / "deploy/systemd/firstfaultd.service").read_text()
    unit.write_text(text.replace("/usr/sbin/firstfaultd", t.daemon))
    done = subprocess.run(["systemd-analyze", "verify", str(unit)], capture_output=True, text=True, timeout=60)
    t.same((done.returncode, done.stderr), (0, ""), "systemd-analyze verify")
    done = subprocess.run(["systemd-analyze", "security", "--offline=true", str(unit)], capture_output=True, text=True, timeout=60)
    if done.returncode and "offline" in done.stderr:
        t.skip("systemd-analyze has no --offline (before 250)")
    level = re.search(r"exposure level for \S+: ([\d.]+)", done.stdout)
    print(f"  exposure {level.group(1)}")
    t.check(float(level.group(1)) <= 2.5, f"exposure: {done.stdout[-300:]}")
    flags = re.findall(r"--([a-z-]+)", text.split("ExecStart=")[1].split("\nExecReload")[0])
    t.same([f for f in flags if f"--{f}" not in ask(t, "--help")], [], "flags of ExecStart that firstfaultd does not have")


if __name__ == "__main__":
    trial.main(__doc__, test_sample, test_log_levels, test_reload_catalog, test_reload_refused, test_reload_keys,
               test_notify, test_watchdog_of_the_store, test_service_unit,
               test_state_on_a_network)
