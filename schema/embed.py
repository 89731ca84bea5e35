#!/usr/bin/env python3
"""Compiles files into the program: embed.py OUT.c SYMBOL FILE...

Writes an array of struct ff_embedded (base/embed.h) named SYMBOL, in the order of the arguments,
SYMBOL_count, and SYMBOL_sha256: the hash of all bytes in that order. Bytes are written as numbers, because ISO C promises no string literal longer than 4,095.
"""
import hashlib
import pathlib
import sys


def main():
    if len(sys.argv) < 3:
        sys.exit("usage: embed.py OUT.c SYMBOL FILE...")
    out, symbol, files = pathlib.Path(sys.argv[1]), sys.argv[2], [pathlib.Path(f) for f in sys.argv[3:]]
    names = [f.name for f in files]
    if len(set(names)) != len(names):
        sys.exit("embed.py: two files of one name")
    c = [f"/* Written by schema/embed.py from {len(files)} files. */", '#include "base/embed.h"', "",
         f"extern const struct ff_embedded {symbol}[];", f"extern const size_t {symbol}_count;",
         f"extern const char {symbol}_sha256[];", ""]
    whole = hashlib.sha256()
    rows = []
    for i, f in enumerate(files):
        data = f.read_bytes()
        whole.update(data)
        numbers = [str(b) for b in data] + ["0"]  # an empty file has an array too; the 0 is not counted
        c.append(f"static const unsigned char data_{i}[] = {{")
        c += ["\t" + ", ".join(numbers[k:k + 20]) + "," for k in range(0, len(numbers), 20)]
        c += ["};", ""]
        rows.append(f'\t{{"{f.name}", data_{i}, {len(data)}}},')
    c += [f"const struct ff_embedded {symbol}[] = {{", *(rows or ["\t{NULL, NULL, 0},"]), "};",
          f"const size_t {symbol}_count = {len(files)};",
          f'const char {symbol}_sha256[] = "{whole.hexdigest()}";', ""]
    out.write_text("\n".join(c))


if __name__ == "__main__":
    main()
