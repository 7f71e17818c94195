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
from inspector.models.checkpoint import StagedCheckpoint
from inspector.models.quantized.layout import Quantized
from inspector.store.manifests.columns import TensorInfo
from inspector.text import shape_text

Shape = tuple[int, ...]


class Companion(NamedTuple):
    """What is stored beside codes."""

    ending: str  # the last part of its name
    dtype: str
    shape: Shape


class Scheme(NamedTuple):
    """How weights of a checkpoint are stored as codes, by the last parts of the names."""

    codes: str
    dtype: str  # of the codes
    beside: tuple[str, ...]  # what all of them have, sorted
    shaped: Mapping[Shape, set[Companion]]  # what is beside codes of a shape

    def is_of_another(self, companion: Companion) -> bool:
        """Whether no weight of the scheme has such a companion: NVFP4's bytes beside MLX's floats."""
        known = {(each.ending, each.dtype) for found in self.shaped.values() for each in found}
        return companion[:2] not in known

    def contradicts(self, codes: Shape, companion: Companion) -> bool:
        """Whether other codes of that shape have it in other shapes alone."""
        alike = {each.shape for each in self.shaped.get(codes, ()) if each[:2] == companion[:2]}
        return bool(alike) and companion.shape not in alike


def check_companions(checkpoint: StagedCheckpoint) -> Iterator[Evidence]:
    """What of quantized weights is missing, of another shape, or left over."""
    stored = checkpoint.manifest.by_name
    known: dict[str, set[str]] = defaultdict(set)  # codes' ending -> the beginnings of the weights that are read
    found: dict[tuple[str, str], Scheme] = {}
    for each in checkpoint.quantized.values():
        beginning, ending, beside = _split(each)
        codes = each.parts["codes"]
        known[ending].add(beginning)
        endings = {companion.ending for companion in beside}
        scheme = found.get((ending, codes.dtype)) or Scheme(ending, codes.dtype, tuple(endings), defaultdict(set))
        scheme.shaped[codes.shape].update(beside)
        found[ending, codes.dtype] = scheme._replace(beside=tuple(sorted(endings.intersection(scheme.beside))))
    everywhere: set[str] = set().union(*known.values())
    for scheme in found.values():
        if scheme.beside:
            yield from _of_codes(scheme, stored, known[scheme.codes])
            yield from _left_over(scheme, stored, everywhere, checkpoint.unread.beside)


def _split(each: Quantized) -> tuple[str, str, set[Companion]]:
    """Where the names of a weight's parts begin alike, how its codes end, and what is beside them."""
    parts = each.parts.values()
    beginning = os.path.commonprefix([part.name for part in parts]).rpartition(".")[0]  # noqa: RUF071  # of characters, as meant
    length = len(beginning) + 1 if beginning else 0
    codes = each.parts["codes"].name
    beside = {Companion(part.name[length:], part.dtype, part.shape) for part in parts if part.name != codes}
    return beginning, codes[length:], beside


def _of_codes(scheme: Scheme, stored: Mapping[str, TensorInfo], known: Collection[str]) -> Iterator[Evidence]:
    """Codes that are not read, because something that belongs to them is missing, or has another shape.

    Those that nothing here contradicts are of a scheme that nobody here reads, which another check says.
    """
    for name, tensor in stored.items():
        beginning = name.removesuffix(f".{scheme.codes}")
        if beginning == name or beginning in known or tensor.dtype != scheme.dtype or len(tensor.shape) < 2:
            continue
        beside = {each: stored.get(f"{beginning}.{each}") for each in scheme.beside}
        held = [Companion(ending, each.dtype, each.shape) for ending, each in beside.items() if each]
        if any(map(scheme.is_of_another, held)):
            continue
        lost = [each for each, part in beside.items() if part is None]
        for each in lost:
            detail = words.LACKS.format(lacks=f"{beginning}.{each}", others=len(known))
            yield Evidence(name, words.NO_COMPANION, "critical", None, detail)
        if not lost and any(scheme.contradicts(tensor.shape, each) for each in held):
            shapes = ", ".join(f"{each.ending} {shape_text(each.shape) or 'one number'}" for each in held)
            detail = words.UNFIT.format(codes=shape_text(tensor.shape), beside=shapes)
            yield Evidence(name, words.OTHER_COMPANION, "critical", None, detail)


def _left_over(
    scheme: Scheme, stored: Mapping[str, TensorInfo], known: Collection[str], owners: Mapping[str, str]
) -> Iterator[Evidence]:
    """What belongs to codes, of a weight that is not stored as any.

    Args:
        known: Where the names of all weights begin that are read, in this scheme or in another.
        owners: What is beside codes that nobody here reads -> those codes.
    """
    endings = tuple(f".{each}" for each in scheme.beside)
    for name in stored:
        if not name.endswith(endings):
            continue
        beginning = name.removesuffix(next(each for each in endings if name.endswith(each)))
        codes = stored.get(f"{beginning}.{scheme.codes}")
        if beginning in known or (codes and codes.dtype == scheme.dtype):
            continue
        if name in owners and not owners[name].endswith(endings):  # zero points without codes look like some
            continue
        detail = words.PLAIN.format(codes.dtype) if codes else words.NO_CODES
        yield Evidence(name, words.SPARE_COMPANION, "minor", None, detail)
