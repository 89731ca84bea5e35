#!/usr/bin/env python3
"""Each header begins with a comment, has #pragma once, and compiles alone: check_headers.py [CC]"""
import concurrent.futures
import os
import pathlib
import re
import shlex
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
CC = shlex.split(sys.argv[1] if len(sys.argv) > 1 else os.environ.get("CC") or "cc")
LIBRARIES = ["libuv", "libpcre2-8", "sqlite3", "libcjson", "libmicrohttpd", "check"]


def library_flags():
    flags = []
    for name in LIBRARIES:
        done = subprocess.run(["pkg-config", "--cflags", name], capture_output=True, text=True)
        flags += shlex.split(done.stdout)
    return list(dict.fromkeys(flags))


def check(path, flags):
    name = path.relative_to(ROOT).as_posix()
    text = path.read_text(errors="replace")
    found = []
    if not text.startswith("/*"):
        found.append(f"{name}:1: does not begin with a comment")
    if not re.search(r"^#pragma once$", text, re.M):
        found.append(f"{name}:1: no #pragma once")
    # the declaration keeps -Wpedantic from calling an empty header an error
    source = f'#include "{name}"\n#include "{name}"\nextern int after;\n'
    done = subprocess.run([*CC, "-std=gnu11", "-D_GNU_SOURCE", "-Wall", "-Wextra", "-Werror", "-fsyntax-only", f"-I{ROOT}", f"-I{ROOT / 'shared'}",
                           f"-I{path.parent}", *flags, "-x", "c", "-"], input=source, capture_output=True, text=True, cwd=ROOT)
    if done.returncode:
        first = next((e for e in done.stderr.splitlines() if "error:" in e), done.stderr.strip())
        found.append(f"{name}: does not compile alone: {first.replace(f'{ROOT}/', '')}")
    return found


def main():
    flags = library_flags()
    headers = [h for folder in ("shared", "daemon", "client") for h in sorted((ROOT / folder).rglob("*.h"))]
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        found = [line for lines in pool.map(lambda h: check(h, flags), headers) for line in lines]
    for line in found:
        print(line)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
