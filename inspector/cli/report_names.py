"""Name the reports of many checkpoints, so that no two get the same file."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from inspector.batch.asking import BatchEntry
from inspector.store.origins.snapshots import Snapshot


def file_names(sought: Sequence[Snapshot | BatchEntry], folder: Path) -> dict[Snapshot, Path]:
    """Choose a file for each checkpoint: as much of its path as tells it from the others."""
    snapshots = list(dict.fromkeys(each for each in sought if isinstance(each, Snapshot)))
    parts = {snapshot: _words(snapshot.name) for snapshot in snapshots}
    longest = max((len(words) for words in parts.values()), default=1)
    names: dict[Snapshot, str] = {}
    for length in range(1, longest + 1):
        names = {snapshot: "-".join(words[-length:]) for snapshot, words in parts.items()}
        if len(set(names.values())) == len(names):
            break
    taken: set[str] = set()
    for snapshot, name in names.items():
        free, number = name, 2
        while free in taken:
            free, number = f"{name}-{number}", number + 1
        taken.add(free)
        names[snapshot] = free
    return {snapshot: folder / f"{name}.html" for snapshot, name in names.items()}


def _words(name: str) -> list[str]:
    words = [re.sub(r"[^\w.=+-]+", "_", word).strip("._") for word in re.split(r"[/\\]", name)]
    return [word for word in words if word][-4:] or ["checkpoint"]
