"""Say what became of stored tensors: by their headers, and by what was found of their numbers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from inspector.analyses.compare import words_notes as words
from inspector.analyses.compare.compute_parts import PairFacts, StoredTensor, Sums
from inspector.progress import Progress


@dataclass(slots=True)
class TensorComparison:
    """What became of one tensor."""

    status: str  # one of results.STATUSES
    sums: Sums | None = None  # None: not measured
    not_finite: int = 0
    other_not_finite: int = 0
    note: str = ""
    nearest: float = math.nan  # share of the numbers that are the nearest that the scales allow


def compare_tensors(
    pairs: Sequence[tuple[StoredTensor, StoredTensor]], progress: Progress, *, values: str = "all"
) -> list[TensorComparison]:
    """Say what became of each tensor of a checkpoint.

    Floats are widened to float64 exactly and compared number by number; |b - a| / |a| and the
    cosine are those of the flattened tensors. Where either holds NaN or infinity, that place is
    counted and left out. Codes are compared as the numbers that they and their scales stand for;
    whole numbers, and codes that cannot be read, for equality of their bytes alone.

    Args:
        pairs: Before and after, of the same two checkpoints each.
        values: Numbers that are read: "all", "sample", or "none": only what headers decide is said.
    """
    known = [_by_headers(*pair) for pair in pairs]
    open_pairs = [pair for pair, measured in zip(pairs, known, strict=True) if measured is None]
    if values == "none":
        return [measured or TensorComparison("not compared", note=words.UNREAD) for measured in known]
    from inspector.analyses.compare.compute_streams import find_differences

    judge = _judge_sample if values == "sample" else _judge
    found = iter(find_differences(open_pairs, progress, sample=values == "sample"))
    return [measured or judge(*pair, next(found)) for pair, measured in zip(pairs, known, strict=True)]


def _by_headers(first: StoredTensor, second: StoredTensor) -> TensorComparison | None:
    """What headers decide; None where numbers do."""
    readable = first.readable and second.readable
    if not readable and (first.dtype != second.dtype or first.readable != second.readable):
        return TensorComparison("not compared", note=words.UNREADABLE.format(dtype=first.dtype, other=second.dtype))
    if first.info.shape != second.info.shape:
        return TensorComparison("reshaped")
    return None


def _judge(first: StoredTensor, second: StoredTensor, found: PairFacts) -> TensorComparison:
    if first.quantized or second.quantized:
        return _judge_quantized(first, second, found)
    if first.readable:
        return _measured(*_judge_floats(found, first.dtype, second.dtype), found)
    if found.equal:
        return TensorComparison("equal")
    return TensorComparison("changed", note=words.EQUALITY_ONLY.format(dtype=first.dtype))


def _judge_sample(first: StoredTensor, second: StoredTensor, found: PairFacts) -> TensorComparison:
    """As `_judge`; what differs does, and of what is equal in a sample nobody knows the rest."""
    measured, numbers = _judge(first, second, found), math.prod(first.info.shape)
    if found.read < numbers:
        if measured.status == "equal":
            measured.status = "equal in sample"
        measured.note = "; ".join(filter(None, [words.SAMPLE.format(read=found.read, numbers=numbers), measured.note]))
    return measured


def _measured(status: str, note: str, found: PairFacts, nearest: float = math.nan) -> TensorComparison:
    sums = found.sums if found.sums.count else None
    return TensorComparison(status, sums, found.not_finite, found.other_not_finite, note, nearest)


def _judge_floats(found: PairFacts, dtype: str, other_dtype: str) -> tuple[str, str]:
    if dtype == other_dtype:
        return ("equal" if found.equal else "changed"), ""
    if found.equal:
        return "dtype changed", words.SAME.format(dtype=other_dtype)
    if found.rounded:
        return "dtype changed", words.ROUNDED.format(dtype=other_dtype)
    if found.other_rounded:
        return "dtype changed", words.OTHER_ROUNDED.format(dtype=dtype)
    return "changed", words.IN_PLACE_OF.format(dtype=dtype, other=other_dtype)


def _judge_quantized(first: StoredTensor, second: StoredTensor, found: PairFacts) -> TensorComparison:
    if not (first.quantized and second.quantized):
        nearest = found.near / max(1, found.read)
        template = words.SAME if found.equal else words.NEAREST if nearest == 1 else words.SOME_NEAREST
        scheme = second.dtype if second.quantized else first.dtype
        note = template.format(dtype=scheme, percent=100 * nearest)
        return _measured("dtype changed" if found.equal else "quantised", note, found, nearest)
    if first.dtype == second.dtype:
        return _measured("equal" if found.equal else "changed", "", found)
    note = words.TWO_SCHEMES.format(dtype=first.dtype, other=second.dtype)
    return _measured("dtype changed" if found.equal else "changed", note, found)
