"""Prometheus' text format 0.0.4, read strictly: what `promtool check metrics` complains of is an error here too.

https://prometheus.io/docs/instrumenting/exposition_formats/ and https://prometheus.io/docs/practices/naming/
"""
import collections
import re

Sample = collections.namedtuple("Sample", "labels value")

NAME = r"[a-zA-Z_:][a-zA-Z0-9_:]*"
LABEL = r'[a-zA-Z_][a-zA-Z0-9_]*="(?:[^"\\\n]|\\["\\n])*"'
SAMPLE = re.compile(rf"({NAME})(?:\{{({LABEL}(?:,{LABEL})*)\}})? (\S+)")
SHORT = re.compile(r"_(?:ms|us|ns|msec|usec|sec|secs|kb|mb|gb|kib|mib|milliseconds|microseconds|kilobytes|megabytes|minutes|hours)(?:_|$)")


class Family:
    def __init__(self, name, text):
        self.name, self.help, self.kind, self.samples = name, text, None, []

    def value(self):
        assert len(self.samples) == 1, (self.name, self.samples)
        return self.samples[0].value


def parse(text):
    """Families by name."""
    out, family = {}, None
    if not text.endswith("\n"):
        raise AssertionError("no line feed at the end")
    for number, line in enumerate(text[:-1].split("\n"), 1):
        where = f"line {number}: {line!r}"
        if line.startswith("# HELP "):
            name, _, words = line[7:].partition(" ")
            if not re.fullmatch(NAME, name) or not words or name in out:
                raise AssertionError(f"{where}: HELP without a name or text, or again")
            if re.search(r"\\[^\\n]|\\$", words):
                raise AssertionError(f"{where}: a bad escape")
            family = out[name] = Family(name, words)
        elif line.startswith("# TYPE "):
            name, _, kind = line[7:].partition(" ")
            if not family or name != family.name or family.kind or family.samples or kind not in ("counter", "gauge"):
                raise AssertionError(f"{where}: TYPE that belongs to no HELP, or is unknown")
            family.kind = kind
        else:
            take_sample(family, SAMPLE.fullmatch(line), where)
    for family in out.values():
        lint(family)
    return out


def take_sample(family, match, where):
    if not match or not family or not family.kind or match[1] != family.name:
        raise AssertionError(f"{where}: no sample of the family above")
    labels = dict(re.findall(r'([a-zA-Z0-9_]+)="((?:[^"\\]|\\.)*)"', match[2] or ""))
    if labels in [s.labels for s in family.samples]:
        raise AssertionError(f"{where}: twice")
    family.samples.append(Sample(labels, float(match[3])))


def lint(family):
    name = family.name
    if not family.samples:
        raise AssertionError(f"{name}: without a sample")
    if (family.kind == "counter") != name.endswith("_total"):
        raise AssertionError(f"{name}: a counter, and only a counter, ends in _total")
    if re.search(r"_(?:count|sum|bucket)$", name) or SHORT.search(name) or "gauge" in name or "counter" in name or name != name.lower():
        raise AssertionError(f"{name}: not as names should be")
    if family.kind == "counter" and any(s.value < 0 for s in family.samples):
        raise AssertionError(f"{name}: a counter below 0")
