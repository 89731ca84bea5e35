#!/usr/bin/env python3
"""Each function that a header declares is called by a program, not by its tests alone: check_unused.py"""
import collections
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
DECLARED = re.compile(r"^[a-z][^;{}#]*?\b(\w+)\s*\([^;{}]*\)\s*(?:__attribute__[^;]*)?;", re.M)
FOR_TESTS = {"ff_record_kind_name"}  # how a test shows what it saw


def main():
    texts = {}
    for folder in ("shared", "daemon", "client"):
        for path in sorted((ROOT / folder).rglob("*.[ch]")):
            texts[path] = re.sub(r"/\*.*?\*/", "", path.read_text(), flags=re.S)
    words = collections.Counter(w for text in texts.values() for w in re.findall(r"\b\w+\b", text))
    found = [f"{path.relative_to(ROOT)}: {name} is declared and defined, and nobody calls it"
             for path, text in texts.items() if path.suffix == ".h"
             for name in dict.fromkeys(DECLARED.findall(text)) if words[name] <= 2 and name not in FOR_TESTS]
    print("\n".join(found)) if found else None
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
