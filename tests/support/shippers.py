"""Log shippers of others, where they can be had: on the PATH, or unpacked by `deploy/setup --shippers` into a folder of their own
(rsyslog and syslog-ng can't be installed both, and an installed one logs for the machine)."""
import os
import pathlib
import re
import shutil

PLACE = pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache") / "firstfault" / "shippers"

# what a rank's file may hold
ODD_LINES = [b"step 1 loss 2.31", b"\ttabs\tand  blanks  ", b"", "grüße 中文".encode(), b"no UTF-8: \xff\xfe\x80\xc3(", b"\x1b[31mred\x1b[0m",
             b"a NUL \0 inside", b"CRLF\r", b"10%|#   |\r20%|##  |\r30%|### |", b"<13>1 - - - - - - no frame", b"42 <13>no frame either", b'"quoted" \\ [x="y"]',
             b"x" * 12000, b"Traceback (most recent call last):", b'  File "/job/a.py", line 3, in main', b"    x()", b"ValueError: the first"]


def by_rsyslog(lines):
    """Empty lines are dropped; all other bytes come through."""
    return [x for x in lines if x]


def by_syslog_ng(lines):
    """Empty lines and the CR of a CRLF are dropped; a NUL cuts a line in two."""
    return [part for x in lines for part in re.sub(rb"\r$", b"", x).split(b"\0") if part]


def find(name):
    """The program's path; None."""
    found = shutil.which(name) or shutil.which(name, path="/usr/sbin:/sbin:/usr/local/sbin")
    if found:
        return pathlib.Path(found)
    unpacked = [p for p in (PLACE / "usr/sbin" / name, PLACE / "usr/bin" / name) if p.exists()]
    return unpacked[0] if unpacked else None


def is_unpacked(program):
    return PLACE in program.parents


def folders(pattern):
    return [str(p) for p in PLACE.glob(pattern)]


def environment(env, program):
    """What an unpacked program needs to find its libraries."""
    if not is_unpacked(program):
        return env
    libraries = folders("usr/lib/*-linux-gnu") + folders("lib/*-linux-gnu") + folders("usr/lib/syslog-ng")
    return {**env, "LD_LIBRARY_PATH": ":".join(libraries)}


def rsyslog(program, config, folder):
    modules = [f"-M{path}" for path in folders("usr/lib/*-linux-gnu/rsyslog")] if is_unpacked(program) else []
    return [program, "-n", "-f", config, "-i", folder / "rsyslog.pid", *modules]


def syslog_ng(program, config, folder):
    modules = [f"--module-path={path}" for path in folders("usr/lib/syslog-ng/[0-9]*")] if is_unpacked(program) else []
    return [program, "-F", "--no-caps", f"--cfgfile={config}", f"--persist-file={folder / 'persist'}", f"--pidfile={folder / 'ng.pid'}",
            f"--control={folder / 'ng.ctl'}", *modules]
