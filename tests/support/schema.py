"""JSON held against schema/json/NAME.schema.json; without python3-jsonschema nothing is held against anything."""
import functools
import json
import pathlib

try:
    from jsonschema import Draft202012Validator
except ImportError:
    Draft202012Validator = None

FOLDER = pathlib.Path(__file__).resolve().parents[2] / "schema" / "json"


@functools.cache
def validator(name):
    return Draft202012Validator(json.loads((FOLDER / f"{name}.schema.json").read_text()))


def errors(name, doc):
    """What is wrong with it, one string each."""
    if not Draft202012Validator:
        return []
    return [f"/{'/'.join(map(str, e.absolute_path))}: {e.message[:200]}" for e in validator(name).iter_errors(doc)]
