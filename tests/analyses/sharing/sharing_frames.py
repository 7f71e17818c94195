"""Small sharing results made by hand, for the tests of folding, figures and pages."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from inspector.analyses.sharing.compute_folding import fold_rows
from inspector.analyses.sharing.result import FileRelation, SharedGroup, SharedMember, Sharing, Verdict

SHAPE = (500, 500)
RELATIONS: dict[Verdict, FileRelation] = {
    "tied": "one copy",
    "equal copies": "equal copies",
    "diverged": "different numbers",
    "declared only": "different numbers",
    "alias only": "one copy",
    "not compared": "not compared",
}


def group(*names: str, verdict: Verdict = "tied", shape: tuple[int, ...] = SHAPE) -> SharedGroup:
    """A group of float32 names; on one storage if it is tied, else on one storage each."""
    numel = math.prod(shape)
    tied = verdict == "tied"
    tensors = 1 if tied else len(names)
    held = names[:1] if RELATIONS[verdict] == "one copy" else names
    return SharedGroup(
        names=names,
        verdict=verdict,
        shape=shape,
        nbytes=4 * numel,
        declared=verdict in {"tied", "declared only"},
        in_file=held,
        in_memory=tied,
        reason="Because of <this>.",
        file_relation=RELATIONS[verdict],
        aliases=(),
        listed_parameters=numel * len(names),
        unique_parameters=numel * tensors,
        listed_nbytes=4 * numel * len(names),
        unique_nbytes=4 * numel * tensors,
        members=tuple(
            SharedMember(name, "parameter", "float32", shape, 4 * numel, 0 if tied else place, 0,
                         (shape[-1], 1), *((name, "model.safetensors") if name in held else ("", "")))
            for place, name in enumerate(names)
        ),
    )  # fmt: skip


def tensors(
    names: Sequence[str], groups: Sequence[SharedGroup] = (), *, sizes: Mapping[str, int] | None = None
) -> pd.DataFrame:
    """A frame as `Sharing.tensors` without `row`: 250,000 parameters a name, or as `sizes` says."""
    of = {name: place for place, each in enumerate(groups) for name in each.names}
    records: list[dict[str, Any]] = [
        {
            "name": name,
            "kind": "parameter",
            "shape": "500 × 500",
            "dtype": "float32",
            "parameters": (sizes or {}).get(name, 250_000),
            "nbytes": 4 * (sizes or {}).get(name, 250_000),
            "group": of.get(name, -1),
            "storage": place,
            "offset": 0,
            "stride": "500, 1",
            "file": "model.safetensors",
            "file_offset": 1_000 * place,
        }
        for place, name in enumerate(names)
    ]
    return pd.DataFrame(records, columns=pd.Index(COLUMNS))


COLUMNS = [
    "name", "kind", "shape", "dtype", "parameters", "nbytes", "group", "storage", "offset",
    "stride", "file", "file_offset",
]  # fmt: skip


def folded(
    names: Sequence[str], groups: Sequence[SharedGroup] = (), **options: Any
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Rows and tensors of a graph."""
    frame = tensors(names, groups, **options)
    rows, row_of = fold_rows(frame, groups)
    return rows, frame.assign(row=row_of)


def sharing_of(names: Sequence[str], groups: Sequence[SharedGroup] = ()) -> Sharing:
    """A whole result."""
    rows, frame = folded(names, groups)
    spare = sum(each.listed_parameters - each.unique_parameters for each in groups)
    listed = sum(frame["parameters"].tolist())
    return Sharing(
        listed_parameters=listed,
        unique_parameters=listed - spare,
        listed_nbytes=4 * listed,
        unique_nbytes=4 * (listed - spare),
        groups=tuple(groups),
        reused_modules=(),
        warnings=(),
        tensors=frame,
        rows=rows,
    )
