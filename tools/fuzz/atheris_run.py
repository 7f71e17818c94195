"""Let atheris make up bytes for one target, guided by which lines of the readers they reach.

`python -m tools.fuzz.atheris_run TARGET …`: the rest are libFuzzer's options and corpus folders.
"""

from __future__ import annotations

import sys

import atheris

with atheris.instrument_imports(  # type: ignore[reportAttributeAccessIssue]
    include=["inspector.store", "inspector.encoding", "inspector.models", "tarfile", "zipfile", "pickle", "json"]
):
    from tools.fuzz.property import outcome
    from tools.fuzz.targets import prepare

    prepare(sys.argv[1])


def main() -> None:
    """Run until libFuzzer's options end it."""
    target = sys.argv.pop(1)

    def one(data: bytes) -> None:
        outcome(target, data)

    atheris.Setup(sys.argv, one)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
