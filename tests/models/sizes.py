"""Ask of a sparse folder what needs no numbers, under a worker's own limits, and print JSON.

Run as a program: the name of a shape, a folder to write, a store, and the questions.
"""

from __future__ import annotations

import importlib
import json
import sys
from pathlib import Path
from typing import Any

from inspector.catalog import CATALOG
from inspector.models.checkpoint import StagedCheckpoint
from inspector.sandbox import limits
from inspector.settings import read_settings
from inspector.store.opening import open_checkpoint
from inspector.store.reference import CheckpointRef
from tools.bench._sparse import SHAPES, write

PARAMETERS: dict[str, dict[str, Any]] = {"check": {"values": "none"}}  # with which a question needs no numbers


def silent(fraction: float | None, text: str) -> None:
    """Take progress and show nobody."""


def told(verb: str, found: Any) -> Any:
    """What a test asks of an answer."""
    return {
        "overview": lambda: [len(found.tensors), found.unique_parameters, found.heads["causal_lm"],
                             found.identity],
        "sharing": lambda: [found.unique_parameters, found.listed_parameters,
                            [[*group.names, group.verdict] for group in found.groups],
                            found.warnings],
        "classes": lambda: [found.model_class, found.parameters,
                            {each.name: each.missing for each in found.siblings},
                            [each.shape for each in found.output.fields
                             if each.field == "logits"], found.warnings],
        "training": lambda: [sum(group.parameters for group in found.groups),
                             len(found.groups[1].names), found.example.rows],
        "placement": lambda: [found.dtype, found.nbytes],
        "whatif": lambda: [[[edge.name, edge.before, edge.after] for way in found.ways for edge in way.edges],
                           [way.unique_parameters for way in found.ways], found.warnings],
        "check": lambda: [{each.name: each.status for each in found.checks if each.checked}, found.values],
    }[verb]()  # fmt: skip


def peak_nbytes(process: int | str = "self") -> int:
    """The most memory that a process has had resident."""
    for line in Path(f"/proc/{process}/status").read_text().splitlines():
        if line.startswith("VmHWM"):
            return 1024 * int(line.split()[1])
    raise RuntimeError("The kernel does not say how much memory was resident.")


def main() -> None:
    """Write, open, ask, print."""
    shape, folder, home, *verbs = sys.argv[1:]
    write(Path(folder), SHAPES[shape])
    settings = read_settings({"INSPECTOR_HOME": home})
    limits.apply_limits(settings)
    manifest, _ = open_checkpoint(
        CheckpointRef("path", folder), settings=settings, progress=silent, restrict_paths=False
    )
    limits.admit_files(sum(file.nbytes for file in manifest.files))
    checkpoint = StagedCheckpoint(manifest, settings=settings)
    answers = {}
    for verb in verbs:
        module, _, function = CATALOG[verb].function.partition(":")
        ask = getattr(importlib.import_module(module), function)
        answers[verb] = told(verb, ask(checkpoint, progress=silent, **PARAMETERS.get(verb, {})))
    print(json.dumps({**answers, "peak_nbytes": peak_nbytes()}))  # noqa: T201


if __name__ == "__main__":
    main()
