"""Check that each quantized weight has its scale, zero point and absmax, of a shape that its scheme reads.

What belongs to a weight, the other quantized weights of the checkpoint tell: nothing is known here of names.
"""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping
from typing import NamedTuple

from inspector.analyses.checks import words_loading as words
from inspector.analyses.checks.result import Evidence
from inspector.models.checkpoint import Checkpoint
from inspector.models.quantized.layout import Quantized
from inspector.store.manifests.columns import TensorInfo
from inspector.text import shape_text


class Scheme(NamedTuple):
    """How weights of a checkpoint are stored as codes, by the last parts of the names."""

    codes: str
    dtype: str  # of the codes
    beside: tuple[str, ...]  # what all of them have, sorted


def check_companions(checkpoint: Checkpoint) -> Iterator[Evidence]:
    """What of quantized weights is missing, of another shape, or left over."""
    stored = checkpoint.manifest.by_name
    known: dict[str, set[str]] = defaultdict(set)  # codes' ending -> the beginnings of the weights that are read
    found: dict[tuple[str, str], set[str]] = {}
    for each in checkpoint.quantized.values():
        beginning, codes, beside = _split(each)
        known[codes].add(beginning)
        key = codes, each.parts["codes"].dtype
        found[key] = found[key] & beside if key in found else beside
    for scheme in (Scheme(codes, dtype, tuple(sorted(beside))) for (codes, dtype), beside in found.items()):
        if scheme.beside:
            yield from _of_codes(scheme, stored, known[scheme.codes])
            yield from _left_over(scheme, stored, known[scheme.codes])


def _split(each: Quantized) -> tuple[str, str, set[str]]:
    """Where the names of a weight's parts begin alike, how its codes end, and how the others do."""
    names = [part.name for part in each.parts.values()]
    beginning = os.path.commonprefix(names).rpartition(".")[0]  # noqa: RUF071  # of characters, as meant
    length = len(beginning) + 1 if beginning else 0
    codes = each.parts["codes"].name
    return beginning, codes[length:], {name[length:] for name in names if name != codes}


def _of_codes(scheme: Scheme, stored: Mapping[str, TensorInfo], known: Collection[str]) -> Iterator[Evidence]:
    """Codes that are not read: something that belongs to them is missing, or does not fit."""
    for name, tensor in stored.items():
        beginning = name.removesuffix(f".{scheme.codes}")
        if beginning == name or beginning in known or tensor.dtype != scheme.dtype or len(tensor.shape) < 2:
            continue
        lost = [each for each in scheme.beside if f"{beginning}.{each}" not in stored]
        for each in lost:
            detail = words.LACKS.format(lacks=f"{beginning}.{each}", others=len(known))
            yield Evidence(name, words.NO_COMPANION, "critical", None, detail)
        if not lost:
            held = {each: stored[f"{beginning}.{each}"].shape for each in scheme.beside}
            shapes = ", ".join(f"{each} {shape_text(shape) or 'one number'}" for each, shape in held.items())
            detail = words.UNFIT.format(codes=shape_text(tensor.shape), beside=shapes)
            yield Evidence(name, words.OTHER_COMPANION, "critical", None, detail)


def _left_over(scheme: Scheme, stored: Mapping[str, TensorInfo], known: Collection[str]) -> Iterator[Evidence]:
    """What belongs to codes, of a weight that is not stored as any."""
    endings = tuple(f".{each}" for each in scheme.beside)
    for name in stored:
        if not name.endswith(endings):
            continue
        beginning = name.removesuffix(next(each for each in endings if name.endswith(each)))
        codes = stored.get(f"{beginning}.{scheme.codes}")
        if beginning in known or (codes and codes.dtype == scheme.dtype):
            continue
        detail = words.PLAIN.format(codes.dtype) if codes else words.NO_CODES
        yield Evidence(name, words.SPARE_COMPANION, "minor", None, detail)
