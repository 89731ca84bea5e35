#!/usr/bin/env python3
"""Checks the JSON schemas, and documents against them.

    check_schemas.py                     the schemas; tests/schema/*.good.jsonl and *.bad.jsonl; fixtures; catalogue
    check_schemas.py --verdict FILE...   these verdicts (an object or an array of them; - for standard input)
    check_schemas.py --as NAME FILE...   these answers against schema/json/NAME.schema.json, and the order of their keys

A verdict is also held against what a schema can't say: the order of keys and arrays, and that `events` has
exactly the events that the verdict refers to. Exit status: 0 fine, 1 not, 77 skipped without python3-jsonschema.
"""
import argparse
import copy
import json
import pathlib
import re
import sys

try:
    from jsonschema import Draft202012Validator
except ImportError:
    print(f"skipped: {sys.executable} has no module jsonschema (Debian: python3-jsonschema)")
    sys.exit(77)

ROOT = pathlib.Path(__file__).resolve().parents[2]
TESTS = ROOT / "tests/schema"
RULES = re.findall(r"^\tX\(\w+, \"([a-z-]+)\"\)", (ROOT / "shared/core/rules.h").read_text(), re.M)  # FF_RULES, in its order
LAST = float("inf")


def load_schemas():
    out = {}
    for path in sorted((ROOT / "schema/json").glob("*.schema.json")):
        schema = json.loads(path.read_text())
        Draft202012Validator.check_schema(schema)
        out[path.name.split(".")[0]] = Draft202012Validator(schema)
    return out


def errors(validator, doc):
    return [f"/{'/'.join(map(str, e.absolute_path))}: {e.message[:200]}" for e in validator.iter_errors(doc)]


def keys_in_order(schema, doc, path, defs):
    """Where the keys of an object don't stand as in the schema."""
    while "$ref" in schema:
        schema = defs[schema["$ref"].rsplit("/", 1)[1]]
    for one in schema.get("oneOf", []):
        if isinstance(doc, dict) and set(one.get("properties", {})) == set(doc):
            schema = one
    if isinstance(doc, dict) and "properties" in schema:
        if [k for k in schema["properties"] if k in doc] != list(doc):
            yield f"{path or '/'}: keys out of order: {list(doc)}"
        for k, v in doc.items():
            yield from keys_in_order(schema["properties"].get(k, {}), v, f"{path}/{k}", defs)
    elif isinstance(doc, list):
        for i, v in enumerate(doc):
            yield from keys_in_order(schema.get("items", {}), v, f"{path}/{i}", defs)


def first_rank(entry):
    if entry.get("ranks") is not None:
        return int(entry["ranks"].replace("-", ",").split(",")[0])
    return LAST if entry["rank"] is None else entry["rank"]


def event_order(event):
    """Control objects first; then the stream as its id has it (with its node), offset, N."""
    if event["stream"] is None:
        return (0, event["id"].encode(), 0, 0)
    stream, _, place = event["id"].rpartition("@")
    number = place.partition(".")[2]
    return (1, stream.encode(), event["offset"], int(number) if number.isdigit() else 0)


def canonical(doc, schema):
    """What the schema can't say about a verdict."""
    yield from keys_in_order(schema, doc, "", schema["$defs"])
    if unknown := [w["rule"] for w in doc["why"] if w["rule"] not in RULES]:
        yield f"/why: no such rules: {unknown}"
        return
    orders = {
        "initiating": lambda i: (first_rank(i), i["node"] or ""), "collateral": first_rank, "ranks": first_rank, "why_not": first_rank,
        "events": event_order, "attempts": lambda a: a["attempt"], "clock": lambda c: c["node"].encode(), "missing": lambda m: m.encode(),
        "why": lambda w: RULES.index(w["rule"]),
    }
    for key, order in orders.items():
        places = [order(x) for x in doc[key]]
        if places != sorted(places):
            yield f"/{key}: out of order"
    if doc["action"]["nodes"] != sorted(doc["action"]["nodes"]):
        yield "/action/nodes: out of order"
    there = [e["id"] for e in doc["events"]]
    if len(set(there)) != len(there):
        yield "/events: an id twice"
    meant = {x["event"] for x in doc["initiating"] + doc["collateral"]} | {e for w in doc["why"] for e in w["events"]}
    meant.discard(None)
    for gone in sorted(meant - set(there)):
        yield f"/events: {gone} is referred to and not there"
    for spare in sorted(set(there) - meant):
        yield f"/events: {spare} is there and not referred to"
    for event in doc["events"]:
        if event["stream"] is not None and f"@{event['offset']}" not in event["id"]:
            yield f"/events: {event['id']} has offset {event['offset']}"
        if event["text"] is not None and len(event["text"].encode()) > 2048 * 3:
            yield f"/events: {event['id']}: evidence is longer than its cap"


def check_verdict(validator, doc):
    return errors(validator, doc) or list(canonical(doc, validator.schema))


def mutations(doc):
    """Copies of a good verdict that are wrong in one place (tests/schema/verdict.mutations.json)."""
    for row in json.loads((TESTS / "verdict.mutations.json").read_text()):
        bad = copy.deepcopy(doc)
        *way, last = [int(k) if k.isdigit() else k for k in row["at"].strip("/").split("/")]
        place = bad
        for key in way:
            place = place[key]
        if row.get("delete"):
            del place[last]
        elif "move-last" in row:
            place[last] = place.pop(last)
        elif row.get("reverse"):
            place[last].reverse()
        else:
            place[last] = row["set"]
        yield row["why"], bad


def own_documents(schemas):
    """The good are accepted, the bad refused."""
    for path in sorted(TESTS.glob("*.jsonl")):
        name, kind = path.name.split(".")[:2]
        for number, line in enumerate(path.read_text().splitlines(), 1):
            found = errors(schemas[name], json.loads(line))
            if kind == "good" and found:
                yield from (f"{path.name}:{number}: {e}" for e in found)
            elif kind == "bad" and not found:
                yield f"{path.name}:{number}: accepted"
    for path in sorted((ROOT / "tests/fixtures/verdicts").glob("*.json")):
        yield from (f"{path.name}: {e}" for e in check_verdict(schemas["verdict"], json.loads(path.read_text())))
    base = json.loads((ROOT / "tests/fixtures/verdicts/rank-sigkill.json").read_text())
    for why, bad in mutations(base):
        if not check_verdict(schemas["verdict"], bad):
            yield f"verdict.mutations.json: accepted: {why}"
    for path in sorted((ROOT / "shared/catalog").glob("*.json")):
        yield from (f"{path.name}: {e}" for e in errors(schemas["catalog"], json.loads(path.read_text())))


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("--verdict", nargs="+", metavar="FILE")
    ap.add_argument("--as", nargs="+", metavar=("NAME", "FILE"), dest="answer")
    args = ap.parse_args()
    schemas = load_schemas()
    if args.verdict:
        found = []
        for name in args.verdict:
            doc = json.loads(sys.stdin.read() if name == "-" else pathlib.Path(name).read_text())
            for i, one in enumerate(doc if isinstance(doc, list) else [doc]):
                found += [f"{name}[{i}]: {e}" for e in check_verdict(schemas["verdict"], one)]
    elif args.answer:
        name, *files = args.answer
        validator = schemas[name]
        for doc in (json.loads(sys.stdin.read() if f == "-" else pathlib.Path(f).read_text()) for f in files):
            defs = validator.schema.get("$defs", {})
            found = errors(validator, doc) or list(keys_in_order(validator.schema, doc, "", defs))
    else:
        found = list(own_documents(schemas))
    for line in found:
        print(line)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
