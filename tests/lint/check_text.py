#!/usr/bin/env python3
"""The form of the project's texts, as far as a machine can see it. Exit status 0 or 1.

C: tabs for indentation, at most 100 columns (a tab is 8). Everywhere: no trailing space, a newline at the end, no
absolute paths of somebody's machine, no numbers of issues (say what was wrong). Tests: no sleep and no wall clock;
tests/support/poll.py alone waits. Files of schema/sql that tests/lint/sql.sha256 lists are released: never edited.
"""
import hashlib
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
DATA = ("tests/cases/", "tests/fixtures/", "tests/fuzz/corpus/")  # what programs printed, as they printed it
C = (".c", ".h", ".def")
WIDTH = 100

ABSOLUTE = re.compile(r"(?<![\w.~$}-])/(?:work|root)(?:/|\b)(?!\w)")
ISSUE = re.compile(r"(?<![\w&#/])#\d{1,5}\b(?!\w)|\b(?:[Ii]ssue|PR|[Pp]ull request)s? #?\d+\b")
NUMBERED = re.compile(r"\b(?:frame|thread|name|nr\.|no\.) ?#\d+|\"[^\"\n]*\"|'[^'\n]*'|`[^`\n]*`")  # "frame #0", and anything quoted
# \x28 is a bracket: these lines are no calls
SLEEP = re.compile(r"\b(?:u|nano|uv_|g_u)?sleep\s*\x28|\btime\.sleep\b|(?:^|[;&|]|\bdo\b|\bthen\b)\s*sleep\s+[\d$.]")
WALL = re.compile(r"\btime\.time(?:_ns)?\x28|\bdatetime\.(?:now|utcnow|today)\x28|\bCLOCK_REALTIME\b|\bgettimeofday\x28|\btime\x28(?:NULL|0|&)")
WAITS = ("tests/support/poll.py",)


def tracked():
    """What git has or would take; without git, all but build folders."""
    done = subprocess.run(["git", "-C", str(ROOT), "ls-files", "-z", "--cached", "--others", "--exclude-standard"], capture_output=True)
    if done.returncode == 0 and done.stdout:
        names = done.stdout.decode().split("\0")
    else:
        names = [p.relative_to(ROOT).as_posix() for p in ROOT.rglob("*")]
        names = [n for n in names if not n.startswith(("build/", ".git/")) and "__pycache__" not in n]
    return sorted(n for n in set(names) if n and (ROOT / n).is_file())


def columns(line):
    return len(line.expandtabs(8))


def check_c(name, lines):
    comment = False
    for number, line in enumerate(lines, 1):
        indent = re.match(r"[ \t]*", line).group()
        if not comment and (" \t" in indent or (indent.startswith(" ") and line.strip())):
            yield number, "indented with spaces"
        if columns(line) > WIDTH and "://" not in line:
            yield number, f"{columns(line)} columns"
        for mark in re.findall(r"/\*|\*/", re.sub(r'"(?:\\.|[^"\\])*"', '""', line)):
            comment = mark == "/*"


def check(name):
    raw = (ROOT / name).read_bytes()
    if b"\0" in raw:
        return
    lines = raw.decode("utf-8", "replace").split("\n")
    if name.startswith(DATA):
        return
    if lines[-1] and raw:
        yield len(lines), "no newline at the end"
    test = name.startswith("tests/") and name not in WAITS and not name.endswith((".md", ".json", ".jsonl", ".sha256"))
    plain = not name.endswith((".json", ".jsonl", ".tsv", ".svg"))
    for number, line in enumerate(lines, 1):
        if line != line.rstrip():
            yield number, "trailing space"
        if ABSOLUTE.search(line):
            yield number, "an absolute path of one machine"
        if plain and ISSUE.search(NUMBERED.sub("", line)) and not line.startswith("#!"):
            yield number, "the number of an issue"
        # in C, strings may quote what a program printed
        code = re.sub(r'"(?:\\.|[^"\\])*"', '""', line) if name.endswith(C) else line
        if test and SLEEP.search(code):
            yield number, "sleeps; wait for the event instead (tests/support/poll.py)"
        if test and WALL.search(code):
            yield number, "reads the wall clock"
    if name.endswith(C):
        yield from check_c(name, lines)
    if name.endswith(".py"):
        yield from ((n, "a tab in the indentation") for n, line in enumerate(lines, 1) if "\t" in re.match(r"\s*", line).group())


def check_released():
    listed = ROOT / "tests/lint/sql.sha256"
    if not listed.is_file():
        return
    for number, line in enumerate(listed.read_text().splitlines(), 1):
        digest, _, name = line.partition("  ")
        file = ROOT / name
        if not file.is_file():
            yield f"tests/lint/sql.sha256:{number}: {name} is released and gone"
        elif hashlib.sha256(file.read_bytes()).hexdigest() != digest:
            yield f"tests/lint/sql.sha256:{number}: {name} is released and was edited"


def main():
    found = [f"{name}:{number}: {text}" for name in tracked() for number, text in check(name)] + list(check_released())
    for line in found:
        print(line)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
