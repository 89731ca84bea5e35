#!/usr/bin/env python3
"""check_catalog.py: lint of shared/catalog/*.json with the engine that the program uses (libpcre2-8, through ctypes).

usage: check_catalog.py [--root DIR] [--cases DIR [--only SUBSTRING]]

What this project asks of its own entries: sources, files, words. What any catalogue has to hold (examples, rivals, fields,
steps of a pattern) is `firstfault catalog check`, for a user's folder and, in tests/unit/test_check.c, for this one.
Exit status 0 without defects, 1 with defects, 2 when it could not run.
--cases prints for each labelled case under DIR which signatures its proving line meets, and what the clean ones meet.
"""
import argparse
import collections
import ctypes
import ctypes.util
import glob
import json
import os
import re
import subprocess
import sys

MULTILINE, FIRSTLINE, NEVER_UTF, DUPNAMES = 0x00000400, 0x00000100, 0x00001000, 0x00000040
INFO_NAMECOUNT, INFO_NAMEENTRYSIZE, INFO_NAMETABLE = 17, 18, 19
SUBJECT_MAX = 8192
MATCH_LIMIT = 200000

ROLES = {"primary", "secondary", "teardown", "noise", "context"}
KINDS = {"fault", "exit", "fact", "sign"}
DOMAINS = {"user", "framework", "network", "hardware", "system", "scheduler"}
TYPES = {"INT", "US", "MS", "STR", "ADDR", "RANKS", "BYTES"}
KEYS = {"id", "title", "did", "category", "role", "domain", "kind", "generic", "match", "cause", "mechanism", "symptoms", "confirm",
        "fix", "prevent", "verify", "example_fix", "affects", "see_also", "references", "tags", "examples", "counterexamples"}
MATCH_KEYS = {"literal", "pattern", "component", "since", "source"}
# What a screen of 100 columns shows in a line (title, expectation), and in three.
TITLE_MOST, EXPECT_MOST, CAUSE_MOST, SENTENCES_MOST = 60, 80, 200, 3

# What says nothing: a reader at 3 a.m. needs a place to look at, a command, or a change.
VAGUE = re.compile(r"\b(?:check|see|read|inspect|look at) (?:the |your )?(?:logs?|documentation|manual)\b(?! of)|\bor not$|\bas appropriate\b|"
                   r"\b(?:contact|ask) (?:support|an expert|your administrator)\b|\b(?:various|possibly|somehow)\b|(?<!/)\betc\b|\btry again\b|"
                   r"\bdebug (?:it|the (?:code|problem|issue))\b|\bsomething went wrong\b|\bfix the (?:bug|problem|issue|error)\b", re.I)
# Programs that a verify may run; another one is added here, so that a slip of the pen is no command.
COMMANDS = set("cat compute-sanitizer coredumpctl crictl curl dcgmi df dmesg echo g++ getent grep head ibstat ip ipmitool kubectl ls lspci "
               "mpirun nvidia-smi ping ps py-spy python quota ras-mc-ctl ray rm sacct sbatch scontrol sha256sum sinfo sort srun ss stat "
               "tail torchrun touch ulimit uniq wc".split())
REQUIRED = ("id", "title", "category", "role", "domain", "match", "cause", "examples")


def load_pcre2():
    for name in ("libpcre2-8.so.0", ctypes.util.find_library("pcre2-8")):
        if name:
            try:
                return ctypes.CDLL(name)
            except OSError:
                pass
    print("check_catalog: libpcre2-8 not found", file=sys.stderr)
    sys.exit(2)


class Pcre2:
    """One compiled pattern: search() gives the dictionary of named groups, or None."""
    lib = None

    @classmethod
    def setup(cls):
        lib = load_pcre2()
        p, z, u = ctypes.c_void_p, ctypes.c_size_t, ctypes.c_uint32
        lib.pcre2_compile_8.restype = p
        lib.pcre2_compile_8.argtypes = [ctypes.c_char_p, z, u, ctypes.POINTER(ctypes.c_int), ctypes.POINTER(z), p]
        lib.pcre2_match_data_create_from_pattern_8.restype = p
        lib.pcre2_match_data_create_from_pattern_8.argtypes = [p, p]
        lib.pcre2_match_8.restype = ctypes.c_int
        lib.pcre2_match_8.argtypes = [p, ctypes.c_char_p, z, z, u, p, p]
        lib.pcre2_get_ovector_pointer_8.restype = ctypes.POINTER(z)
        lib.pcre2_get_ovector_pointer_8.argtypes = [p]
        lib.pcre2_pattern_info_8.argtypes = [p, u, p]
        lib.pcre2_get_error_message_8.argtypes = [ctypes.c_int, ctypes.c_char_p, z]
        lib.pcre2_match_context_create_8.restype = p
        lib.pcre2_match_context_create_8.argtypes = [p]
        lib.pcre2_set_match_limit_8.argtypes = [p, u]
        cls.lib = lib
        cls.context = lib.pcre2_match_context_create_8(None)
        lib.pcre2_set_match_limit_8(cls.context, MATCH_LIMIT)

    def __init__(self, pattern):
        raw = pattern.encode()
        err, off = ctypes.c_int(), ctypes.c_size_t()
        self.code = self.lib.pcre2_compile_8(raw, len(raw), MULTILINE | FIRSTLINE | NEVER_UTF | DUPNAMES,
                                             ctypes.byref(err), ctypes.byref(off), None)
        if not self.code:
            buf = ctypes.create_string_buffer(256)
            self.lib.pcre2_get_error_message_8(err, buf, 256)
            raise ValueError("%s at offset %d" % (buf.value.decode(), off.value))
        self.data = self.lib.pcre2_match_data_create_from_pattern_8(self.code, None)
        self.names = self._names()

    def _info(self, what, ctype):
        v = ctype()
        self.lib.pcre2_pattern_info_8(self.code, what, ctypes.byref(v))
        return v.value

    def _names(self):
        n, size = self._info(INFO_NAMECOUNT, ctypes.c_uint32), self._info(INFO_NAMEENTRYSIZE, ctypes.c_uint32)
        if not n:
            return []
        raw = ctypes.string_at(self._info(INFO_NAMETABLE, ctypes.c_void_p), n * size)
        rows = [raw[i * size:(i + 1) * size] for i in range(n)]
        return [(r[2:].split(b"\0")[0].decode(), r[0] << 8 | r[1]) for r in rows]

    def search(self, subject):
        subject = subject[:SUBJECT_MAX]
        rc = self.lib.pcre2_match_8(self.code, subject, len(subject), 0, 0, self.data, self.context)
        if rc == -1:
            return None
        if rc < 0:
            raise ValueError("match error %d (limit %d)" % (rc, MATCH_LIMIT))
        ov = self.lib.pcre2_get_ovector_pointer_8(self.data)
        out = {}
        for name, num in self.names:
            a, b = ov[2 * num], ov[2 * num + 1]
            if num < max(rc, 0) and a <= b <= len(subject):
                out.setdefault(name, subject[a:b].decode("utf-8", "replace"))
        return out


class Item:
    def __init__(self, entry, number, m):
        self.entry, self.number = entry, number
        self.literal = m["literal"].encode()
        self.re = Pcre2(m["pattern"])
        self.generic = bool(entry.get("generic"))
        self.label = "%s/%s" % (entry["id"], entry["role"])


class Lint:
    def __init__(self, root):
        self.root, self.defects, self.entries, self.items, self.fields = root, [], [], [], {}

    def bad(self, where, text):
        self.defects.append("%s: %s" % (where, text))

    def read_fields(self):
        path = os.path.join(self.root, "shared/core/field.def")
        for n, line in enumerate(open(path, encoding="utf-8"), 1):
            if not line.startswith("X("):
                continue
            m = re.match(r'X\((\w+), *(\w+), *"([^"]+)"\)\s*$', line)
            if not m:
                self.bad("field.def:%d" % n, "not of the form X(name, TYPE, \"meaning\")")
                continue
            if m[2] not in TYPES:
                self.bad("field.def:%d" % n, "unknown type " + m[2])
            if m[1] in self.fields:
                self.bad("field.def:%d" % n, "declared twice: " + m[1])
            self.fields[m[1]] = m[2]

    def read_catalog(self):
        files = sorted(glob.glob(os.path.join(self.root, "shared/catalog/*.json")))
        if not files:
            self.bad("shared/catalog", "no files")
        for path in files:
            name = os.path.basename(path)
            try:
                data = json.load(open(path, encoding="utf-8"))
            except ValueError as e:
                self.bad(name, "not JSON: %s" % e)
                continue
            if not isinstance(data, list):
                self.bad(name, "not an array")
                continue
            for i, e in enumerate(data):
                where = "%s[%d] %s" % (name, i, e.get("id", "?") if isinstance(e, dict) else "?")
                if isinstance(e, dict) and self.check_form(where, name[:-5], e):
                    e["_where"] = where
                    self.entries.append(e)

    def check_form(self, where, stem, e):
        before = len(self.defects)
        for k in REQUIRED:
            if not e.get(k):
                self.bad(where, "missing " + k)
        for k in e:
            if k not in KEYS:
                self.bad(where, "unknown key " + k)
        if len(self.defects) > before:
            return False
        if not re.fullmatch(r"[a-z0-9]+(?:-[a-z0-9]+)*", e["id"]):
            self.bad(where, "id is not lower-case words joined by -")
        if e["category"] != stem:
            self.bad(where, "category %s stands in file %s.json" % (e["category"], stem))
        if e["role"] not in ROLES:
            self.bad(where, "unknown role " + e["role"])
        if e["domain"] not in DOMAINS:
            self.bad(where, "unknown domain " + e["domain"])
        if e.get("kind", "fault") not in KINDS:
            self.bad(where, "unknown kind " + e["kind"])
        for k in ("mechanism", "symptoms", "confirm", "fix", "prevent", "affects", "see_also", "tags", "examples", "counterexamples"):
            if k in e and not (isinstance(e[k], list) and all(isinstance(s, str) and s for s in e[k])):
                self.bad(where, k + " is not a list of strings")
        for v in e.get("verify", []):
            if not (isinstance(v, dict) and v.get("run") and v.get("expect")):
                self.bad(where, "verify needs run and expect")
        for r in e.get("references", []):
            if not (isinstance(r, dict) and r.get("title") and re.match(r"https?://\S+$", r.get("url", ""))):
                self.bad(where, "a reference needs title and url")
        self.check_words(where, e)
        sourced = bool(e.get("references"))
        for m in e["match"]:
            for k in m:
                if k not in MATCH_KEYS:
                    self.bad(where, "unknown match key " + k)
            for k in ("literal", "pattern", "component"):
                if not isinstance(m.get(k), str) or not m[k]:
                    self.bad(where, "match without " + k)
                    return False
            if not (sourced or m.get("source")):
                self.bad(where, "no source for %r" % m["literal"])
            if "\n" in m["literal"] or len(m["literal"].encode()) < 4:
                self.bad(where, "literal %r is shorter than 4 bytes or has a newline" % m["literal"])
            # the pattern's text without group brackets and escapes
            plain = re.sub(r"\\([^A-Za-z0-9])|\(\?<\w+>|\(\?:|[()]", lambda g: g[1] or "", m["pattern"])
            if m["literal"] not in plain:
                self.bad(where, "pattern lacks its literal %r" % m["literal"])
            if re.search(r"\((?:[^()\\]|\\.)*(?:[^\\+*?}])[+*](?:[^()\\]|\\.)*\)[+*](?!\+)", m["pattern"]):
                self.bad(where, "nested unlimited repeat: " + m["pattern"])
        return True

    def check_words(self, where, e):
        """What people read: short, and with something to do in it."""
        verify = [v for v in e.get("verify", []) if isinstance(v, dict) and v.get("run") and v.get("expect")]
        if e["role"] == "primary" and not (e.get("fix") and verify):
            self.bad(where, "a primary needs fix and verify")
        if len(e["title"]) > TITLE_MOST:
            self.bad(where, "the title has %d characters, %d at most" % (len(e["title"]), TITLE_MOST))
        sentences = [s for s in re.split(r"(?<=[.!?])\s+", e["cause"]) if s]
        if len(sentences) > SENTENCES_MOST or len(e["cause"]) > CAUSE_MOST:
            self.bad(where, "the cause is longer than %d sentences or %d characters" % (SENTENCES_MOST, CAUSE_MOST))
        if e["cause"].strip(".").casefold() == e["title"].casefold():
            self.bad(where, "the cause only repeats the title")
        for text in [e["title"], e["cause"], *e.get("fix", []), *(v["expect"] for v in verify)]:
            if VAGUE.search(text):
                self.bad(where, "says nothing: %r" % text)
        if e["role"] == "primary":
            for text in [e["cause"], *e.get("fix", [])]:
                if len(text) < 20:
                    self.bad(where, "too short to help: %r" % text)
        for v in verify:
            self.check_command(where, v)

    def check_command(self, where, v):
        if len(v["expect"]) < 4 or not re.search(r"[a-z0-9]", v["expect"]):
            self.bad(where, "expects nothing: %r" % v["expect"])
        if len(v["expect"]) > EXPECT_MOST:
            self.bad(where, "expects more than %d characters: %r" % (EXPECT_MOST, v["expect"]))
        bare = re.sub(r'"(?:\\.|[^"\\])*"|\'[^\']*\'', "QUOTED", v["run"])
        for part in re.split(r"\|\||&&|;|\|", bare):
            words = [w for w in part.split() if not re.match(r"\w+=", w)]
            if not words or words[0] not in COMMANDS:
                self.bad(where, "%r is no command that is known here: %s" % (words[0] if words else "", v["run"]))
        done = subprocess.run(["bash", "-nc", v["run"]], capture_output=True)
        if done.returncode:
            self.bad(where, "the shell does not take %r: %s" % (v["run"], done.stderr.decode().strip()))

    def compile(self):
        for e in self.entries:
            for n, m in enumerate(e["match"]):
                try:
                    item = Item(e, n, m)
                except ValueError as err:
                    self.bad(e["_where"], "%s: %s" % (m["pattern"], err))
                    continue
                for name, _ in item.re.names:
                    if name not in self.fields:
                        self.bad(e["_where"], "field %s is not in field.def" % name)
                self.items.append(item)

    def hits(self, text):
        """[(line number, item, fields)] over a record's text."""
        out, raw = [], text.encode("utf-8", "surrogateescape")
        start = 0
        for number, line in enumerate(raw.split(b"\n")):
            for item in self.items:
                if item.literal in line:
                    f = item.re.search(raw[start:start + SUBJECT_MAX])
                    if f is not None:
                        out.append((number, item, f))
            start += len(line) + 1
        return out


PREFIXES = [re.compile(p) for p in (
    r"\x1b\[\d*m", r"\[rank\d+\]: ?", r"\[(?:default|rank)\d+\]:", r"\[[A-Z][a-z]{2} [A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d \d{4}\](?:<std\w+>: )?",
    r"\[\d+,(?:\d+|WILDCARD)\](?:\[[^\]]*\])?<std\w+>: ?", r"\[\d+\](?:<std\w+>:)? (?!\[)", r" {0,6}\d{1,6}: ", r"\([^()]{0,60}?pid=\d+(?:, ip=[^)]*)?\)(?:\x1b\[0m)? ?")]


def strip(line):
    for _ in range(6):
        for p in PREFIXES:
            m = p.match(line)
            if m and m.end():
                line = line[m.end():]
                break
        else:
            return line
    return line


def read_case(folder):
    """Lines as (stream, prefix-free text), source lines of tracebacks blanked, as the joiner does."""
    rows, frame = [], {}
    for raw in open(os.path.join(folder, "replay.tsv"), encoding="utf-8", errors="surrogateescape", newline="\n"):
        p = raw.rstrip("\n").split("\t", 2)
        if len(p) < 3:
            continue
        text = strip(p[2])
        if re.match(r"\s+File \"", text):
            frame[p[1]], text = 1, ""
        elif frame.get(p[1]) and re.match(r"\s{4,}\S", text):
            text = ""
        else:
            frame[p[1]] = 0
        rows.append((p[1], text, p[2]))
    return rows


def run_cases(lint, folder, only):
    missing, clean, overlap, total = [], [], collections.Counter(), 0
    for path in sorted(glob.glob(os.path.join(folder, "**/case.json"), recursive=True)):
        case = json.load(open(path, encoding="utf-8"))
        where, truth = os.path.dirname(path), case["truth"]
        name = os.path.relpath(where, folder)
        if only and only not in name:
            continue
        total += 1
        rows = read_case(where)
        good = {truth["fault"], *truth.get("fault_accept", [])}
        found, evidence = collections.Counter(), []
        later = collections.defaultdict(list)
        for n in range(len(rows) - 1, -1, -1):
            later[rows[n][0]].append(n)
        for n, (stream, text, raw) in enumerate(rows):
            later[stream].pop()
            if not any(i.literal.decode() in text for i in lint.items):
                if truth["evidence"] and truth["evidence"] in raw:
                    evidence.append("(nothing)")
                continue
            record = "\n".join([text] + [rows[k][1] for k in later[stream][:-13:-1]])
            hits = [(i, f) for ln, i, f in lint.hits(record) if ln == 0]
            if any(not i.generic for i, _ in hits):
                hits = [h for h in hits if not h[0].generic]
            if len(hits) > 1:
                overlap[" + ".join(sorted("%s#%d" % (i.label, i.number) for i, _ in hits)) + "   " + text[:100]] += 1
            for i, f in hits:
                found[i.label] += 1
                if truth["verdict"] == "clean" and i.entry["role"] == "primary":
                    clean.append("%s: %s: %s" % (name, i.label, text[:150]))
            if truth["evidence"] and truth["evidence"] in raw:
                evidence.append(", ".join("%s%s" % (i.label, {k: v[:40] for k, v in f.items()} or "") for i, f in hits) or "(nothing)")
        right = any(label == g + "/primary" for label in found for g in good)
        if only:
            print(name, truth["verdict"], sorted(good), "\n   evidence:", evidence[:4], "\n   all:", dict(found))
        if truth["verdict"] not in ("clean",) and not right:
            missing.append("%-52s %-12s %s\n      evidence %r -> %s\n      primaries: %s" % (
                name, truth["verdict"], "|".join(sorted(good)), truth["evidence"][:110], evidence[:1],
                sorted(k for k in found if k.endswith("/primary"))))
    print("--- cases without a primary of their fault: %d of %d" % (len(missing), total))
    print("\n".join(missing))
    print("--- primaries in clean cases: %d" % len(clean))
    print("\n".join(clean))
    print("--- lines with several specific signatures: %d kinds" % len(overlap))
    for k, n in overlap.most_common(60):
        print(n, k)


def main():
    ap = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    ap.add_argument("--root", default=os.path.join(os.path.dirname(os.path.abspath(__file__)), "../.."))
    ap.add_argument("--cases")
    ap.add_argument("--only", default="")
    args = ap.parse_args()
    Pcre2.setup()
    lint = Lint(args.root)
    lint.read_fields()
    lint.read_catalog()
    lint.compile()
    if args.cases:
        run_cases(lint, args.cases, args.only)
    for d in lint.defects:
        print("defect: " + d)
    print("catalog: %d entries, %d texts, %d fault ids, %d defects" % (
        len(lint.entries), len(lint.items), len({e["id"] for e in lint.entries}), len(lint.defects)))
    return 1 if lint.defects else 0


if __name__ == "__main__":
    sys.exit(main())
