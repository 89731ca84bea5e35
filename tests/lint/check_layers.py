#!/usr/bin/env python3
"""Reads every include and a few words of the C files: who may know whom, and who may touch the world.

    base < core, wire, shell (which never include each other) < feed < daemon, client (never each other)

Inside core, a file includes only headers of files before it in CORE_ORDER. Exit status 0 or 1.
"""
import pathlib
import re
import sys

ROOT = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else __file__).resolve()
ROOT = ROOT if len(sys.argv) > 1 else ROOT.parents[2]

BELOW = {
    "base": [], "core": ["base"], "wire": ["base"], "shell": ["base"],
    "feed": ["base", "core", "wire", "shell"],
    "daemon": ["base", "core", "wire", "shell", "feed"],
    "client": ["base", "core", "wire", "shell", "feed"],
}
FOLDERS = {**{name: f"shared/{name}" for name in ("base", "core", "wire", "shell", "feed")}, "daemon": "daemon", "client": "client"}

# a file NAME.c, NAME.h or NAME_more.c has NAME's place; lists (.def) and limits stand before all. The order is that
# of the data: what is joined to a record is matched, what matched is an event, a stream has events.
CORE_FIRST = ["limits", "field", "count"]
CORE_ORDER = ["facts", "line", "scan", "stamp", "record", "origin", "fault", "catalog", "joiner", "match", "event", "stream", "row", "clock",
              "signals", "timeline", "collective", "rules", "verdict", "job", "reach", "report", "page", "check"]

# library header: files that may include it
LIBRARIES = {
    "pcre2.h": r"shared/(base/mask_rules|core/(catalog|match))\.c",
    "sqlite3.h": r"daemon/(store\w*|migrate)\.c",
    "uv.h": r"daemon/\w+\.[ch]",
    "cJSON.h": r"shared/base/json\w*\.c",
    "archive.h": r"(client/source|daemon/backup)\.c",
    "archive_entry.h": r"(client/source|daemon/backup)\.c",
    "zlib.h": r"client/source\.c|daemon/gunzip\.c",
    "zstd.h": r"client/source\.c",
    "curl.h": r"(client/rpc|daemon/hook_send)\.c",
    "microhttpd.h": r"daemon/api\w*\.c",
}
# no clock, file, socket, environment or log
PURE = ("core", "base", "wire")
IMPURE = re.compile(r"(?<![\w.>])(time|clock_gettime|gettimeofday|fopen|fdopen|freopen|open|openat|creat|socket|getenv|secure_getenv|setenv|"
                    r"localtime|localtime_r|mktime|tzset|sleep|usleep|nanosleep|syslog)\s*\(")

found = []


def bad(path, line, text):
    found.append(f"{path}:{line}: {text}")


def blank(text):
    """The code without comments, strings and characters, with its lines kept."""
    def hide(m):
        token = m.group()
        return re.sub(r"[^\n]", " ", token) if token.startswith("/") else token[0] + re.sub(r"[^\n]", " ", token[1:-1]) + token[-1]
    return re.sub(r"/\*.*?\*/|//[^\n]*|\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])*'", hide, text, flags=re.S)


def layer_of(path):
    for name, folder in FOLDERS.items():
        if path.startswith(folder + "/"):
            return name
    return None


def core_place(stem):
    """The place in core's order, and the name that has it: "rules_killed" has the place of "rules"."""
    for name in (stem, *(stem[:i] for i in range(len(stem) - 1, 0, -1) if stem[i] == "_")):
        if name in CORE_FIRST:
            return 0, name
        if name in CORE_ORDER:
            return 1 + CORE_ORDER.index(name), name
    return None, None


def resolve(path, name):
    """An include as a path from the root: beside the file, below shared/, or from the root."""
    for folder in (pathlib.PurePath(path).parent, pathlib.PurePath("shared"), pathlib.PurePath()):
        if (ROOT / folder / name).is_file():
            return (folder / name).as_posix()
    for prefix in ("shared/", ""):  # generated, or not written yet: by its name alone
        if layer_of(prefix + name):
            return prefix + name
    return None


def check_includes(path, layer, raw):
    stem = pathlib.PurePath(path).stem
    for number, line in enumerate(raw.splitlines(), 1):
        m = re.match(r'\s*#\s*include\s+(["<])([^">]+)[">]', line)
        if not m:
            continue
        quoted, name = m.group(1) == '"', m.group(2)
        allowed = LIBRARIES.get(name.rsplit("/", 1)[-1])
        if allowed and not re.fullmatch(allowed, path):
            bad(path, number, f"only {allowed} includes {name}")
        target = resolve(path, name)
        other = layer_of(target) if target else None
        if other is None:
            if quoted:
                bad(path, number, f"include of {name}, which is in no layer")
            continue
        if not quoted:
            bad(path, number, f"own headers in quotes: {name}")
        if other != layer and other not in BELOW[layer]:
            bad(path, number, f"{layer} does not include {other}: {name}")
        if layer == other == "core":
            mine, owner = core_place(stem)
            place, theirs = core_place(pathlib.PurePath(target).stem)
            if mine is not None and place is not None and theirs != owner and place >= mine and place > 0:
                bad(path, number, f"{owner} stands before {theirs} in core's order: {name}")


def mutable(declaration):
    """Is this declaration of an object one that can change? In one of pointers the pointers have to be const."""
    text = declaration.split("=")[0]
    if "(" in text and not re.search(r"\(\s*\*", text):
        return False  # a function or a macro
    if re.search(r"\(\s*\*", text):
        return not re.search(r"\(\s*\*\s*const\b", text) and not re.search(r"\)\s*\{?\s*$", text.split("(")[0])
    words = re.findall(r"\w+|\*", text)
    if "*" in words:
        return "const" not in words[len(words) - words[::-1].index("*"):]
    return "const" not in words


def check_objects(path, text):
    """Heuristic: definitions of objects at brace depth 0, and static ones at any."""
    text = re.sub(r"^[ \t]*#(?:[^\n]*\\\n)*[^\n]*", lambda m: re.sub(r"[^\n]", " ", m.group()), text, flags=re.M)
    depth, head, start, number = 0, "", 1, 1
    for c in text:
        if c == "\n":
            number += 1
        if c == "{":
            depth += 1
        elif c == "}":
            depth -= 1
            if depth == 0:  # of a function, or of a type or initialiser
                head = "" if head.rstrip().endswith(")") else head + "{}"
        elif depth == 0 and c == ";":
            # "struct x {...} y;" defines y; "struct x {...};" and "struct x;" don't
            plain = re.sub(r"^(static\s+)?(struct|union|enum)\b\s*(\w+\s*\{\}|\{\}|\w+)\s*", r"\1T ", head.strip())
            skip = not plain.strip() or plain.strip() in ("T", "static T") or head.strip().startswith(("typedef", "extern", "_Static_assert"))
            if not skip and mutable(head.strip().replace("{}", "")):
                bad(path, start, f"an object that can change: {' '.join(head.split())[:60]}")
            head = ""
        elif depth == 0:
            if c == "\n" and re.fullmatch(r"[A-Z_]+\([^()]*\)", head.strip()):  # a macro that stands alone
                head = ""
            if not head.strip():
                start = number
            head += c
    for m in re.finditer(r"^[ \t]+static\s+([^;={(]+)[;=]", text, flags=re.M):
        if mutable(m.group(1)):
            bad(path, text.count("\n", 0, m.start()) + 1, f"an object that can change: static {m.group(1).strip()}")


def main():
    files = [p for folder in ("shared", "daemon", "client") for p in sorted((ROOT / folder).rglob("*")) if p.suffix in (".c", ".h", ".def", ".inc")]
    for file in files:
        path = file.relative_to(ROOT).as_posix()
        layer = layer_of(path)
        if layer is None:
            bad(path, 1, "in no layer")
            continue
        raw = file.read_text(errors="surrogateescape")
        check_includes(path, layer, raw)
        code = blank(raw)
        if layer == "core" and core_place(file.stem)[0] is None:
            bad(path, 1, f"has no place in core's order (CORE_ORDER in {pathlib.PurePath(__file__).name})")
        if layer in PURE:
            for m in IMPURE.finditer(code):
                bad(path, code.count("\n", 0, m.start()) + 1, f"{layer} is pure: {m.group(1)}()")
        if layer == "core" and file.suffix in (".c", ".h"):
            check_objects(path, code)
    for line in found:
        print(line)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
