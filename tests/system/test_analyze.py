#!/usr/bin/env python3
"""What `analyze` takes: archives, compressed files, folders of several nodes; and what it says when something is missing."""
import bz2
import gzip
import io
import json
import lzma
import os
import pathlib
import shutil
import subprocess
import sys
import tarfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from support import poll, replay, trial  # noqa: E402
from support.replay import run_cases  # noqa: E402

TRACE = b"""Traceback (most recent call last):
  File "/job/train.py", line 30, in main
    step()
ValueError: shard %d is empty
"""
PEER = b"RuntimeError: [/pytorch/third_party/gloo/gloo/transport/tcp/pair.cc:534] Connection closed by peer [10.0.0.1]:53421\n"


def zstd(data):
    return subprocess.run(["zstd", "-q", "-c"], input=data, capture_output=True, check=True).stdout


PACKERS = {"gz": lambda data: gzip.compress(data, mtime=0), "xz": lzma.compress, "bz2": bz2.compress}
if shutil.which("zstd"):
    PACKERS["zst"] = zstd


def tar_of(folder, names, top, form=tarfile.PAX_FORMAT):
    """The files of a folder as a tar, in the order given, below `top`."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=form) as tar:
        for name in names:
            tar.add(folder / name, arcname=f"{top}{name}")
    return out.getvalue()


def files_below(folder):
    return sorted(str(p.relative_to(folder)) for p in folder.rglob("*") if p.is_file())


def add(tar, name, data, **more):
    info = tarfile.TarInfo(name)
    info.size = len(data)
    for key, value in more.items():
        setattr(info, key, value)
    tar.addfile(info, io.BytesIO(data))


def job_tree(folder, nodes, ranks, bad):
    """Trees of several agents, each rank's stderr, rank `bad` at fault; no job.json."""
    for node in range(nodes):
        for local in range(ranks):
            path = folder / f"node-{node}" / f"4711_a{node}b2c3d4" / "attempt_0" / str(local) / "stderr.log"
            path.parent.mkdir(parents=True)
            rank = node * ranks + local
            text = b"".join(b"[rank%d]: " % rank + x + b"\n" for x in ((TRACE % rank) if rank == bad else b"Traceback (most recent call last):\n" + PEER).splitlines())
            path.write_bytes(b"step 1\n" + text)
    return folder


# -- the same bytes

def test_archive_is_its_folder(t):
    """A tar of a case's folder, in every packing and order, gives the folder's verdict byte for byte."""
    cases = replay.cases()
    for r in t.rng.sample(cases, len(cases) if t.everything else 24):
        folder = t.folder / "cases" / run_cases.job_name(r.meta)
        run_cases.export(r.meta, r.text_rows, folder)
        wanted = t.run("analyze", "--json", folder, status=(0, 65)).stdout
        names = files_below(folder)
        kind = t.rng.choice(["", *PACKERS])
        for top in (f"{folder.name}/", "./", ""):
            t.rng.shuffle(names)
            form = t.rng.choice([tarfile.PAX_FORMAT, tarfile.GNU_FORMAT, tarfile.USTAR_FORMAT])
            data = tar_of(folder, names, top, form)
            path = t.folder / f"{folder.name}.{'log' if top.startswith('job') else 'tar'}"
            path.write_bytes(PACKERS[kind](data) if kind else data)
            got = t.run("analyze", "--json", path, status=(0, 65)).stdout
            t.check(got == wanted, lambda: f"{r.name} as {kind or 'tar'} below {top!r}{trial.difference(wanted, got)}")
            path.unlink()
        shutil.rmtree(folder)


def test_listed_tree(t):
    """A job.json says all of the files that it lists, also where their paths would say more: in a folder and in its tar."""
    folder = job_tree(t.folder / "listed", 2, 2, 1)
    names = files_below(folder)[1:]  # local rank 0 of node-0 is not listed
    streams = [{"path": n, "kind": "rank", "rank": i + 1, "node": n.split("/")[0]} for i, n in enumerate(names)]
    (folder / "job.json").write_text(json.dumps({"job": "listed", "world_size": 4, "streams": streams}))
    wanted = t.run("analyze", "--json", folder).stdout
    t.same(json.loads(wanted)["missing"], ["no output of rank 0"], "what is missing")
    path = t.folder / "listed.tar"
    path.write_bytes(tar_of(folder, [*names, "job.json"], "./", tarfile.PAX_FORMAT))
    t.check(t.run("analyze", "--json", path).stdout == wanted, "the tar's verdict is another one")


def test_packed_files_of_a_folder(t):
    """Compressed files in a folder, in a tar, and archives in a folder."""
    tree = job_tree(t.folder / "plain" / "logs", 2, 4, 5)
    wanted = t.run("analyze", "--json", tree).stdout
    verdict = json.loads(wanted)
    t.same((verdict["verdict"], [i["rank"] for i in verdict["initiating"]]), ("rank", [5]), "two nodes' trees")
    t.same(verdict["initiating"][0]["node"], "node-1", "its node")
    for kind, pack in PACKERS.items():
        packed = t.folder / kind / "logs"
        for name in files_below(tree):
            path = packed / f"{name}.{kind}"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(pack((tree / name).read_bytes()))
        got = t.run("analyze", "--json", packed).stdout
        t.check(got == wanted, lambda: f"files packed with {kind}{trial.difference(wanted, got)}")
        data = t.folder / kind / "logs.any"
        data.write_bytes(tar_of(packed, files_below(packed), "logs/"))
        got = t.run("analyze", "--json", data).stdout
        t.check(got == wanted, lambda: f"a tar of files packed with {kind}{trial.difference(wanted, got)}")
        nested = t.folder / f"nested-{kind}" / "logs"
        nested.mkdir(parents=True)
        for node in ("node-0", "node-1"):
            (nested / f"{node}.tar.{kind}").write_bytes(pack(tar_of(tree / node, files_below(tree / node), f"{node}/")))
        got = t.run("analyze", "--json", nested).stdout
        t.check(got == wanted, lambda: f"archives of nodes packed with {kind}{trial.difference(wanted, got)}")
        outer = t.folder / f"outer-{kind}.tgz"
        outer.write_bytes(gzip.compress(tar_of(nested, files_below(nested), "logs/")))
        got = t.run("analyze", "--json", outer).stdout
        t.check(got == wanted, lambda: f"an archive of archives packed with {kind}{trial.difference(wanted, got)}")


def test_packed_file(t):
    """One file: the same whatever it is packed in, from a path or standard input."""
    text = b"step 1\n" * 500 + TRACE % 3 + bytes(range(128, 256)) + b"\nno newline at the end"
    plain = t.folder / "a" / "train.log"
    plain.parent.mkdir()
    plain.write_bytes(text)
    wanted = t.run("analyze", "--json", plain).stdout
    piped = t.run("analyze", "--json", "-", input=text).stdout
    for kind, pack in PACKERS.items():
        for data in (pack(text), pack(text[:1000]) + pack(text[1000:]), pack(pack(text))):
            path = t.folder / "a" / f"train.log.{kind}"
            path.write_bytes(data)
            got = t.run("analyze", "--json", path).stdout
            t.check(got == wanted, lambda: f"{kind}{trial.difference(wanted, got)}")
            got = t.run("analyze", "--json", "-", input=data).stdout
            t.check(got == piped, lambda: f"{kind} on standard input{trial.difference(piped, got)}")
    named = t.folder / "a" / "plain.gz"  # the name says nothing
    named.write_bytes(text)
    t.same(t.json("analyze", "--json", named)["fault"]["id"], json.loads(wanted)["fault"]["id"], "a plain file named .gz")
    holes = t.folder / "a" / "holes.log"  # a rotated file begins with NULs: no tar
    holes.write_bytes(bytes(4096) + text)
    t.same(t.json("analyze", "--json", holes)["fault"]["id"], json.loads(wanted)["fault"]["id"], "a hole of NULs in front")
    said = t.run("analyze", "-", input=tar_of(t.folder / "a", ["train.log"], "a/"), status=(65,)).stderr
    t.check(b"tar" in said and b"save it" in said, f"a tar on standard input: {said}")


def test_jsonl_in_archives(t):
    """JSON Lines name the job that all else in an archive belongs to, wherever they stand in it."""
    folder = t.folder / "x"
    folder.mkdir()
    (folder / "a.log").write_bytes(TRACE % 1)
    (folder / "z.jsonl").write_text(json.dumps({"event": "job-start", "job": "4711", "world_size": 1}) + "\n")
    wanted = t.run("analyze", "--json", folder).stdout
    t.same(json.loads(wanted)["job"], "4711", "job")
    (t.folder / "x.tar").write_bytes(tar_of(folder, ["a.log", "z.jsonl"], "x/"))
    t.same(t.run("analyze", "--json", t.folder / "x.tar").stdout, wanted, "an archive with JSON Lines")


# -- hostile and broken

def test_cut_off(t):
    """Of a file whose compressed data stops, what came is judged, and that the rest is missing is said."""
    body = b"".join(b"step %d loss %d\n" % (i, t.rng.randrange(1 << 30)) for i in range(20000))
    text = body[:len(body) // 2] + TRACE % 3 + body[len(body) // 2:]
    for kind, pack in PACKERS.items():
        data = pack(text)
        for part in (0.9, 0.7, 0.3):
            folder = t.folder / f"{kind}-{part}"
            folder.mkdir()
            (folder / f"rank-0.log.{kind}").write_bytes(data[:int(len(data) * part)])
            (folder / "rank-1.log").write_bytes(b"step 1\n" + PEER)
            done = t.run("analyze", "--json", folder, status=(74,))
            verdict = json.loads(done.stdout)
            t.check(any("rank-0.log" in x and "stops in the middle" in x for x in verdict["missing"]), f"{kind} {part}: {verdict['missing']}")
            t.check(b"rank-0.log" in done.stderr, f"{kind} {part}: {done.stderr}")
            if part > 0.6 and kind != "bz2":  # that one has blocks of 900 kB, whole or nothing
                t.check(any(e["fault"] == "python-exception" or "shard 3" in e["text"] for e in verdict["events"]), f"{kind} {part}: the fault in what came: {verdict['events']}")
    short = t.folder / "short.gz"  # less than any buffer
    short.write_bytes(gzip.compress(b"step 1\n" + TRACE % 3 + t.rng.randbytes(3000).hex().encode())[:-600])
    verdict = json.loads(t.run("analyze", "--json", short, status=(74,)).stdout)
    t.check(verdict["fault"], f"a short file that is cut off: {verdict}")
    damaged = bytearray(gzip.compress(text))
    damaged[len(damaged) // 2:len(damaged) // 2 + 40] = bytes(40)
    (t.folder / "damaged.gz").write_bytes(bytes(damaged))
    t.check(b"damaged" in t.run("analyze", t.folder / "damaged.gz", status=(65, 74)).stderr, "damaged gzip data")
    tree = job_tree(t.folder / "tree", 1, 4, 0)
    tar = tar_of(tree, files_below(tree), "tree/")
    for where, data in (("a tar", tar[:len(tar) // 4]), ("a tar.gz", gzip.compress(tar)[:-20])):
        path = t.folder / "cut.tar"
        path.write_bytes(data)
        done = t.run("analyze", "--json", path, status=(0, 74))
        t.check(b"cut.tar" in done.stderr, f"{where} that is cut off: {done.stderr}")
        t.check(any("stop" in x for x in json.loads(done.stdout)["missing"]), f"{where} that is cut off: {done.stdout}")


def measured(t, *arguments, **more):
    """Runs the client under a limit of memory."""
    limit = 400 << 20
    asan = b"__asan_init" in pathlib.Path(t.client).read_bytes()
    prefix = () if asan else ("prlimit", f"--as={limit}")
    return t.run(*arguments, prefix=prefix, **more)


def test_bombs(t):
    """Few bytes that become very many: the member is named, the rest is judged, within bounds."""
    zeros = 1 << 30
    packed = io.BytesIO()
    with gzip.GzipFile(fileobj=packed, mode="wb", compresslevel=9) as g:
        for _ in range(zeros >> 20):
            g.write(bytes(1 << 20))
    bomb = packed.getvalue()
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as tar:
        add(tar, "x/rank-0.log", b"step 1\n" + TRACE % 0)
        add(tar, "x/rank-1.log.gz", bomb)
        add(tar, "x/rank-2.log", b"step 1\n" + PEER)
    path = t.folder / "x.tar"
    path.write_bytes(out.getvalue())
    clock = poll.Deadline(0)
    for data in (out.getvalue(), gzip.compress(out.getvalue())):
        path.write_bytes(data)
        done = measured(t, "analyze", "--json", path, status=(0, 74), timeout=100)
        verdict = json.loads(done.stdout)
        t.same([i["rank"] for i in verdict["initiating"]], [0], "the rest of an archive with a bomb")
        t.check(any("rank-1.log" in x and "500 times" in x for x in verdict["missing"]), f"missing: {verdict['missing']}")
    for depth in range(4):
        bomb = gzip.compress(bomb)
        (t.folder / "bomb.gz").write_bytes(bomb)
        measured(t, "analyze", t.folder / "bomb.gz", status=(65, 74), timeout=100)
    print(f"  {clock.spent():.1f} s for 1 GiB six times")
    t.check(clock.spent() < 60, f"{clock.spent()} s")
    many = io.BytesIO()
    with tarfile.open(fileobj=many, mode="w", format=tarfile.USTAR_FORMAT) as tar:
        for i in range(70000):
            tar.addfile(tarfile.TarInfo(f"m/{i}.log"))
        add(tar, "m/rank-0.log", TRACE % 0)
    (t.folder / "m.tgz").write_bytes(gzip.compress(many.getvalue()))
    done = t.run("analyze", "--json", t.folder / "m.tgz", status=(0, 65), timeout=120)
    t.check(b"too many" in done.stderr, f"more files than the cap: {done.stderr}")


def test_names_are_no_paths(t):
    """Names of members lead nowhere, links are passed over, and nothing is written."""
    inside = t.folder / "in"
    inside.mkdir()
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as tar:
        add(tar, "../../escape/rank-0.log", b"step 1\n" + TRACE % 0)
        add(tar, "/absolute/rank-1.log", b"step 1\n" + PEER)
        add(tar, "a/./b//rank-2.log", b"step 1\n" + PEER)
        add(tar, "..", b"")
        add(tar, "x\n\x1b[31m/rank-3.log", b"step 1\n" + PEER)
        add(tar, "link.log", b"", type=tarfile.SYMTYPE, linkname="/etc/passwd")
        add(tar, "hard.log", b"", type=tarfile.LNKTYPE, linkname="a/./b//rank-2.log")
        add(tar, "fifo", b"", type=tarfile.FIFOTYPE)
    path = inside / "evil.tar"
    path.write_bytes(out.getvalue())
    before = sorted(t.folder.rglob("*"))
    done = t.run("analyze", "--json", path)
    t.same(sorted(t.folder.rglob("*")), before, "files after analyze")
    verdict = json.loads(done.stdout)
    t.same([i["rank"] for i in verdict["initiating"]], [0], "initiating")
    names = {e["stream"] for e in verdict["events"]}
    t.check(all(not n.startswith("/") and ".." not in n for n in names), f"streams {names}")
    t.check(b"\x1b" not in done.stdout and b"\x1b" not in done.stderr, "escape sequences")
    t.check("root:" not in done.stdout.decode(), "a link was followed")


def test_junk(t):
    """Bytes that only begin like something."""
    fronts = [b"\x1f\x8b\x08", b"\x28\xb5\x2f\xfd", b"\xfd7zXZ\0", b"BZh91AY&SY", b"BZh", gzip.compress(b"x" * 1000)[:12],
              b"a" * 257 + b"ustar\0" + b"00"]
    for front in fronts:
        for size in (0, 1, 600, 70000):
            path = t.folder / "junk"
            path.write_bytes(front + t.rng.randbytes(size))
            t.run("analyze", "--json", path, status=(0, 65, 74))
            t.run("analyze", "--json", "-", input=path.read_bytes(), status=(0, 65, 74))
            folder = t.folder / "with"
            folder.mkdir(exist_ok=True)
            (folder / "rank-1.log").write_bytes(path.read_bytes())
            (folder / "rank-0.log").write_bytes(TRACE % 0)
            t.check(t.json("analyze", "--json", folder, status=(0, 74))["fault"], f"beside {front[:10]}")


# -- job.json and folders

def test_job_file(t):
    folder = t.folder / "j"
    folder.mkdir()
    (folder / "r.log").write_bytes(TRACE % 0)

    def told(*paths):
        (folder / "job.json").write_text(json.dumps({"job": "j", "world_size": 2, "streams": [{"path": p, "rank": 0} for p in paths]}))
        return t.run("analyze", "--json", folder, status=None)

    wanted = told("r.log").stdout
    for other in ("./r.log", ".//r.log", "././r.log"):
        t.same(told(other).stdout, wanted, f"{other} is r.log")
        t.same(told("r.log", other).stdout, wanted, f"r.log and {other} are one stream")
    for nothing in (".", "./", "", "./."):
        t.same(told(nothing).returncode, 65, f"exit status of the path {nothing!r}")
    done = told("r.log", "gone.log")
    t.same(done.returncode, 74, "exit status with a file that is not there")
    t.check(any("gone.log" in x for x in json.loads(done.stdout)["missing"]), f"missing: {done.stdout}")
    told("r.log", "gone.log")
    (t.folder / "j.tar").write_bytes(tar_of(folder, ["r.log", "job.json"], "j/"))
    done = t.run("analyze", "--json", t.folder / "j.tar", status=(74,))
    t.check(any("gone.log" in x for x in json.loads(done.stdout)["missing"]), f"missing in an archive: {done.stdout}")


def test_many_files(t):
    """20,000 files of 2,500 agents in a few seconds: nothing is done for each pair of them."""
    root = t.folder / "many"
    for agent in range(2500):
        attempt = root / f"n{agent:04}" / "run_abcdefgh" / "attempt_0"
        for local in range(7):
            (attempt / str(local)).mkdir(parents=True)
            (attempt / str(local) / "stderr.log").write_bytes(b"step 1\n")
        (attempt / "filtered_stderr.log").write_bytes(b"step 1\n")
    clock = poll.Deadline(0)
    t.run("analyze", "--json", root, timeout=120)
    print(f"  {clock.spent():.1f} s")
    t.check(clock.spent() < 60, f"{clock.spent()} s for 20,000 files")


def as_nobody(t):
    """How to run the client as a user who may not read everything; None where nobody can't run it."""
    if os.geteuid():
        return ()
    prefix = ("setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups")
    t.folder.chmod(0o755)
    if not shutil.which("setpriv") or subprocess.run([*prefix, t.client, "--version"], capture_output=True).returncode:
        return None
    return prefix


def test_unreadable(t):
    prefix = as_nobody(t)
    if prefix is None:
        t.skip("nobody can't run the client here")
    folder = t.folder / "logs"
    folder.mkdir(mode=0o755)
    for rank in range(3):
        (folder / f"rank-{rank}.log").write_bytes(b"step 1\n" + (TRACE % 0 if not rank else PEER))
    (folder / "rank-2.log").chmod(0)
    done = t.run("analyze", "--json", folder, status=(74,), prefix=prefix)
    t.check(b"rank-2.log" in done.stderr and b"Permission denied" in done.stderr, done.stderr.decode())
    t.check(any("rank-2.log" in x and "Permission denied" in x for x in json.loads(done.stdout)["missing"]), f"missing: {done.stdout}")
    t.run("analyze", folder / "rank-2.log", status=(74,), prefix=prefix)


# -- what a file is, and what is missing

def test_kinds(t):
    """Kernel, scheduler and container logs are told by their lines, whatever they are called."""
    xid = "NVRM: Xid (PCI:0000:9b:00): 79, pid=4121, name=python, GPU has fallen off the bus."
    forms = {
        "dmesg": f"[    0.000000] Linux version 6.1\n[12812.345678] {xid}\n",
        "dmesg -T": f"[Thu Jan  1 12:00:00 2026] usb 1-1: new device\n[Thu Jan  1 12:00:01 2026] {xid}\n",
        "kmsg": f"6,1041,128812345000,-;usb 1-1: new device\n3,1042,128812345678,-,caller=T411;{xid}\n",
        "syslog": f"Jan  1 12:00:00 gpu-3 kernel: [12.345678] usb 1-1: new device\nJan  1 12:00:01 gpu-3 kernel: [13.345678] {xid}\n",
        "iso": f"2026-01-01T12:00:00.123456+0000 gpu-3 kernel: usb 1-1: new device\n2026-01-01T12:00:01.123456+0000 gpu-3 kernel: {xid}\n",
        "json": json.dumps({"__REALTIME_TIMESTAMP": "1767225600000000", "_HOSTNAME": "gpu-3", "_TRANSPORT": "kernel", "MESSAGE": xid}) + "\n",
        "bytes": json.dumps({"__REALTIME_TIMESTAMP": "1767225600000000", "_HOSTNAME": "gpu-3", "_TRANSPORT": "kernel", "MESSAGE": list(xid.encode())}) + "\n",
        "export": f"__CURSOR=s=1\n__REALTIME_TIMESTAMP=1767225600000000\n_HOSTNAME=gpu-3\n_TRANSPORT=kernel\nMESSAGE={xid}\n\n",
    }
    for name, text in forms.items():
        (t.folder / "x.log").write_text(text)
        verdict = t.json("analyze", "--json", t.folder / "x.log")
        t.same(verdict["fault"]["id"], "gpu-xid-79", f"{name}: fault")
        t.same(verdict["initiating"], [], f"{name}: no rank is named by a kernel")
        if "gpu-3" in text:
            t.same((verdict["verdict"], verdict["node"]), ("node", "gpu-3"), f"{name}: node")
            trusted = name in ("json", "bytes", "export")  # the journal itself says that it is the kernel's
            t.same(verdict["confidence"] == "certain", trusted, f"{name}: confidence {verdict['confidence']}")
    text = "[rank0]: " + "\n[rank0]: ".join((TRACE % 0).decode().splitlines()) + "\n"
    (t.folder / "x.log").write_text("[2026-01-01T12:00:00.000] step 1 of a job that prints like slurmctld\n" + text)
    t.same([i["rank"] for i in t.json("analyze", "--json", t.folder / "x.log")["initiating"]], [0], "a job's own log")


def test_kinds_of_cases(t):
    """Slurm's own logs beside a job's output: the same verdict whether their kinds are declared or not."""
    cases = [r for r in replay.cases() if any(s["kind"] in ("kernel", "scheduler") for s in r.meta["streams"])]
    differ = []
    for r in cases if t.everything else t.rng.sample(cases, 12):
        out = []
        for what in ([], ["kind"]):
            folder = t.folder / ("bare" if what else "told") / run_cases.job_name(r.meta)
            run_cases.export(run_cases.forget(r.meta, what), r.text_rows, folder)
            out.append(replay.essence(t.run("analyze", "--json", folder).stdout))
        if out[0] != out[1]:
            differ.append((r.name, out))
    print(f"  {len(differ)} differ of {len(cases) if t.everything else 12}")
    t.check(len(differ) * 10 <= len(cases), f"{differ}")


def test_docker(t):
    """json-file logs of several containers are a stream each; pieces of a line are one line."""
    folder = t.folder / "pods"
    folder.mkdir()
    at = lambda s: f"2026-01-01T00:00:{s:02}.123456789Z"
    for rank in range(3):
        lines = ["step 1\n", *(TRACE % 0 if rank == 1 else PEER).decode().splitlines(True)]
        rows = [{"log": x[a:a + 16], "stream": "stderr", "time": at(i + (rank != 1) * 20)} for i, x in enumerate(lines) for a in range(0, len(x), 16)]
        (folder / f"rank-{rank}-json.log").write_text("".join(json.dumps(r) + "\n" for r in rows))
    verdict = t.json("analyze", "--json", folder)
    t.same([i["rank"] for i in verdict["initiating"]], [1], "initiating")
    event = next(e for e in verdict["events"] if "shard 0" in e["text"])
    t.same(event["stream"], "rank-1-json.log/stderr", "stream")
    t.same(event["captured"], "2026-01-01T00:00:01.123456Z", "stamp")


def test_error_records(t):
    """error.json speaks for a rank that has no other text, in its shapes, and is a copy elsewhere."""
    stack = (TRACE % 1).decode()
    shapes = [{"message": {"message": "ValueError: shard 1 is empty", "extraInfo": {"py_callstack": stack, "timestamp": "1767225600"}}},
              {"message": {"message": "ValueError: shard 1 is empty", "extraInfo": {"py_callstack": stack, "timestamp": "1767225600"}, "errorCode": 1}},
              {"message": "ValueError: shard 1 is empty", "timestamp": 1767225600}]
    for shape in shapes:
        tree = t.folder / "4711_abcdefgh" / "attempt_0"
        for local in range(2):
            (tree / str(local)).mkdir(parents=True, exist_ok=True)
        (tree / "0" / "stderr.log").write_bytes(PEER)
        (tree / "0" / "error.json").write_text(json.dumps({"message": PEER.decode()}))
        (tree / "1" / "error.json").write_text(json.dumps(shape))
        verdict = t.json("analyze", "--json", t.folder / "4711_abcdefgh")
        t.check("shard 1 is empty" in json.dumps(verdict["events"]), f"{shape}: {verdict['events']}")
        streams = {e["stream"] for e in verdict["events"]}
        t.check("attempt_0/0/error.json" not in streams, f"a copy was read: {streams}")
        shutil.rmtree(tree)
    for junk in ("", "{", "[]", '{"message":7}', '{"message":{"extraInfo":[]}}'):
        (tree / "1").mkdir(parents=True, exist_ok=True)
        (tree / "1" / "error.json").write_text(junk)
        (tree / "1" / "stdout.log").write_text("")
        t.run("analyze", "--json", t.folder / "4711_abcdefgh", status=(0, 65))


def test_missing(t):
    """What is missing is said in one sentence that says what to do."""
    def missing(files, *options):
        folder = t.folder / "m" / "logs"
        shutil.rmtree(folder, ignore_errors=True)
        for name, data in files.items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_bytes(data)
        return t.json("analyze", "--json", *options, folder)["missing"]

    label = "no line carries a rank: relaunch with a label (srun --label, torchrun --tee 3), or one file a rank"
    t.check(label in missing({"train.log": TRACE % 0 + PEER}, "--world", 4), "no rank on any line")
    t.check(label not in missing({"train.log": b"[rank1]: " + PEER}, "--world", 4), "a rank on a line")
    said = missing({f"rank-{r}.log": PEER for r in (0, 1, 4, 7)})
    t.check(any(x.startswith("no file of ranks 2-3, 5-6,") for x in said), f"holes in the ranks: {said}")
    said = missing({"rank-0.log": PEER, "rank-1.log": b"", "rank-2.log": b""})
    t.check(any("2 ranks' files are empty (rank-1.log, rank-2.log)" in x for x in said), f"empty files: {said}")
    tree = "4711_abcdefgh/attempt_0"
    said = missing({f"{tree}/{r}/stdout.log": PEER for r in (0, 1, 3)})
    t.check(any("local ranks 2 in" in x for x in said) and any("stderr of every rank" in x for x in said), f"a tree of stdout: {said}")
    said = missing({**{f"{tree}/{r}/stderr.log": PEER for r in (0, 1)}, **{f"{tree}/{r}/stdout.log": b"" for r in (0, 1)}})
    t.check(not any("empty" in x or "stderr of" in x for x in said), f"an empty stdout beside a stderr: {said}")
    said = missing({f"{tree}/filtered_stderr.log": b"[default0]:" + PEER})
    t.check(any("filtered" in x for x in said), f"a filtered log alone: {said}")
    done = t.run("analyze", "--json", job_tree(t.folder / "whole", 2, 2, 1))
    t.check(not any(w in x for x in json.loads(done.stdout)["missing"] for w in ("file", "stderr", "label")), f"nothing is missing: {done.stdout}")


if __name__ == "__main__":
    trial.main(__doc__, test_archive_is_its_folder, test_listed_tree, test_packed_files_of_a_folder, test_packed_file, test_jsonl_in_archives, test_cut_off, test_bombs,
               test_names_are_no_paths, test_junk, test_job_file, test_many_files, test_unreadable,
               test_kinds, test_kinds_of_cases, test_docker, test_error_records, test_missing)
