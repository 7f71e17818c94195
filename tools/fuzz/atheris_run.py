"""Let atheris make up bytes for one target, guided by which lines of the readers they reach.

`python -m tools.fuzz.atheris_run`: each line of its input is a JSON list of a target, a file for what is told,
and libFuzzer's options and corpus folders. A process forked for the line runs it, so that the readers are imported
once for all targets; its exit status is printed.
"""

from __future__ import annotations

import os
import sys
from typing import NoReturn

import atheris

INSTRUMENTED = [
    "inspector.store",
    "inspector.serving.encoding",
    "inspector.models",
    "tarfile",
    "zipfile",
    "pickle",
    "json",
]
with atheris.instrument_imports(include=INSTRUMENTED):  # type: ignore[reportAttributeAccessIssue]
    import json

    from tools.fuzz.property import outcome
    from tools.fuzz.targets import prepare


def main() -> None:
    """Run what each line asks for."""
    for line in sys.stdin:
        target, log, *options = json.loads(line)
        if not (child := os.fork()):
            _run(target, log, options)
        _, status = os.waitpid(child, 0)
        sys.stdout.write(f"{os.waitstatus_to_exitcode(status)}\n")
        sys.stdout.flush()


def _run(target: str, log: str, options: list[str]) -> NoReturn:
    """Run until libFuzzer's options end it."""
    told = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    silent = os.open(os.devnull, os.O_RDONLY)
    for descriptor, place in ((silent, 0), (told, 1), (told, 2)):
        os.dup2(descriptor, place)
    with atheris.instrument_imports(include=INSTRUMENTED):  # type: ignore[reportAttributeAccessIssue]
        prepare(target)

    def one(data: bytes) -> None:
        outcome(target, data)

    atheris.Setup([sys.argv[0], *options], one)
    atheris.Fuzz()
    raise SystemExit


if __name__ == "__main__":
    main()
