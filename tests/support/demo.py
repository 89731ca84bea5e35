#!/usr/bin/env python3
"""Gives deploy/demo recorded failures to work on.

    demo.py export CASE FOLDER           one file a stream, as the job wrote them
    demo.py grow CASE FOLDER MS          the same, one line after the other with so many milliseconds between them
    demo.py wait SOCKET                  until the daemon behind this api socket is ready
    demo.py until-fault SOCKET JOB       until the job has a primary fault

CASE is the name of a case below tests/cases/dev.
"""
import pathlib
import sys

sys.path[0] = str(pathlib.Path(__file__).resolve().parents[1])  # this folder has an http.py of its own
from support import poll  # noqa: E402
from support.http import Api  # noqa: E402
from support.replay import CASES, Replay  # noqa: E402


def find(name):
    for path in sorted((CASES / "dev").rglob("case.json")):
        if path.parent.name == name:
            return Replay.of_case(path.parent)
    sys.exit(f"demo.py: no case {name}")


def write(job, folder, pace):
    files = []
    for s in job.streams:
        path = folder / s["name"]
        path.parent.mkdir(parents=True, exist_ok=True)
        files.append(open(path, "wb", buffering=0))
    for _, k, text in job.rows:
        files[k].write(text + b"\n")
        if pace:
            poll.pace(pace)
    for file in files:
        file.close()


def has_fault(api, job):
    answer = api.request("GET", f"/v1/jobs/{job}/events")
    return answer.status == 200 and any(e["kind"] == "fault" and e["role"] == "primary" for e in answer.json()["items"])


def main():
    match sys.argv[1:]:
        case ["export", case, folder]:
            write(find(case), pathlib.Path(folder), 0)
        case ["grow", case, folder, ms]:
            write(find(case), pathlib.Path(folder), int(ms) / 1000)
        case ["wait", path]:
            poll.until("the daemon ready", Api(path).alive, 30)
        case ["until-fault", path, job]:
            poll.until(f"a fault of {job}", lambda: has_fault(Api(path), job), 60, 0.05)
        case _:
            sys.exit(__doc__)


if __name__ == "__main__":
    main()
