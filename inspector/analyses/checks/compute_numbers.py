"""Check what was found in the stored numbers: NaN, infinity, tensors of zeros; and the types they are kept in."""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence

import torch

from inspector.analyses.checks.compute_census import Census
from inspector.analyses.checks.compute_parts import at_least, conclude, example
from inspector.analyses.checks.result import Check, Evidence, Severity
from inspector.models.checkpoint import Checkpoint
from inspector.models.names import FORMER_BUFFERS
from inspector.models.quantized.codes import open_codes
from inspector.models.quantized.layout import Quantized
from inspector.store.manifest import Manifest, TensorInfo, is_buffer
from inspector.store.readers.safetensors import contiguous_strides
from inspector.text import plural, shape_text

NUMBERS, ZEROS, DTYPES = "NaN and infinity", "Zero tensors", "Number types"
EXAMPLES = 3
FORMER = re.compile("|".join(FORMER_BUFFERS))
FEW_ROWS = 8  # of a quantized weight that is sampled
MOST_ROWS = 1 << 10  # of a quantized weight that are dequantized at once
IN_TRAINING = (
    "Go back to an earlier checkpoint of the run, and look for the step at which the loss became NaN: a lower "
    "learning rate, gradient clipping or bfloat16 in place of float16 are the usual cures."
)
IN_QUANTIZING = (
    "Compare the file's digest with its source and copy it again; if the source has them too, quantize the float "
    "weights again after you have checked that they are finite."
)


def check_numbers(census: Sequence[Census], quantized: Mapping[str, Quantized]) -> Check:
    """No number of any tensor is NaN or infinite."""
    weights = _weights_of_parts(quantized)
    evidence = []
    for each in census:
        where, of = _place(each), "numbers" if each.read == each.numbers else "numbers read"
        if each.tensor.name in weights:
            where += f", which makes numbers of {weights[each.tensor.name]} from codes"
        for count, what in ((each.nan, "NaN"), (each.infinite, "infinity")):
            if count:
                severity = "note" if _is_table(each.tensor) else "critical"
                detail = f"{count:,} of {each.read:,} {of} are {what}{where}."
                evidence.append(Evidence(each.tensor.name, f"holds {what}", severity, count, detail))
    bad = at_least("critical", evidence)
    numbers, read = sum(each.numbers for each in census), sum(each.read for each in census)
    if not bad:
        tensors = plural(len(census), "tensor")
        return conclude(
            NUMBERS,
            evidence,
            detail=f"All {numbers:,} numbers of {tensors} were read, and every weight is finite."
            if read == numbers
            else f"A sample of {read:,} of the {numbers:,} numbers of {tensors} was read, and all of it is finite.",
        )
    tensors = len({each.subject for each in bad})
    next_step = IN_TRAINING
    if all(each.subject in weights for each in bad):
        next_step = IN_QUANTIZING
    return conclude(
        NUMBERS,
        evidence,
        detail=f"{plural(tensors, 'tensor holds', 'tensors hold')} NaN or infinity, "
        f"{sum(each.count or 0 for each in bad):,} of {read:,} numbers {example(tensors, bad[0].subject)}: "
        "whatever is computed with them is no number.",
        next_step=next_step,
    )


def check_zero_tensors(census: Sequence[Census], checkpoint: Checkpoint) -> Check:
    """No weight matrix is zero all over; codes count as what they stand for."""
    parts = _weights_of_parts(checkpoint.quantized)
    whole = all(each.read == each.numbers for each in census)
    filled = {each.tensor.name for each in census if not each.zero}
    rows = "" if whole else f" of its first {FEW_ROWS} rows"
    evidence = [
        Evidence(
            each.tensor.name,
            "all zeros",
            "minor",
            each.numbers,
            f"{shape_text(each.tensor.shape)}, and {_read_of(each)} is 0.",
        )
        for each in census
        if each.zero and _is_matrix(each.tensor) and not _is_table(each.tensor) and each.tensor.name not in parts
    ]
    evidence += [
        Evidence(
            each.name,
            "all zeros",
            "minor",
            math.prod(each.shape),
            f"{shape_text(each.shape)}, {each.scheme}, and every weight{rows} is 0.",
        )
        for each in checkpoint.quantized.values()
        if (whole or not _is_product(each, filled))
        and _stands_for_zeros(checkpoint.manifest, each, most=None if whole else FEW_ROWS)
    ]
    if not evidence:
        where = "" if whole else " of those that were sampled"
        return conclude(ZEROS, (), detail=f"No weight matrix{where} is zero all over.")
    return conclude(
        ZEROS,
        evidence,
        detail=f"{plural(len(evidence), 'weight matrix is', 'weight matrices are')} zero all over "
        f"{example(len(evidence), evidence[0].subject)}: what goes through it is lost.",
        next_step="Compare the file's digest with its source and copy it again; if the zeros are "
        "in the source, the weights were never written or never trained.",
    )


def _is_product(quantized: Quantized, filled: Collection[str]) -> bool:
    """Whether a weight is codes times scales, and neither is zero all over: opening ten thousands takes minutes."""
    parts = quantized.parts
    plain = quantized.kind in ("scaled", "int8") and "zero" not in parts
    return plain and parts["codes"].name in filled and parts["scale"].name in filled


def _stands_for_zeros(manifest: Manifest, quantized: Quantized, *, most: int | None) -> bool:
    """Read what codes stand for until a number is not 0, which mostly is in the first row; or the first few."""
    opened, rows = open_codes(manifest, quantized), math.prod(quantized.shape[:-1])
    begin, size = 0, 1
    while begin < min(rows, most or rows):
        if opened.rows(slice(begin, min(begin + size, rows))).any():
            return False
        begin, size = begin + size, min(2 * size, MOST_ROWS)
    return True


def _read_of(census: Census) -> str:
    return "every number" if census.read == census.numbers else f"every one of {census.read:,} numbers read"


def _weights_of_parts(quantized: Mapping[str, Quantized]) -> dict[str, str]:
    """Name of what is stored of a weight (codes, scales, ...) -> name of the weight."""
    return {part.name: name for name, each in quantized.items() for part in each.parts.values()}


def check_dtypes(checkpoint: Checkpoint) -> Check:
    """All weights are kept in one floating type; codes and their scales have types of their own."""
    parts = _weights_of_parts(checkpoint.quantized)
    by_dtype: defaultdict[str, list[TensorInfo]] = defaultdict(list)
    for tensor in checkpoint.manifest.tensors:
        if not _is_table(tensor) and tensor.name not in parts:
            by_dtype[tensor.dtype].append(tensor)
    if not (by_dtype or parts):
        return conclude(DTYPES, (), detail="The files hold constant tables alone, and no weights.")
    sizes = {dtype: sum(map(_numel, tensors)) for dtype, tensors in by_dtype.items()}
    order = sorted(by_dtype, key=lambda dtype: (-sizes[dtype], dtype))
    floats = [dtype for dtype in order if getattr(torch, dtype).is_floating_point]
    evidence = [
        Evidence(
            dtype,
            _dtype_problem(dtype, floats),
            _dtype_severity(dtype, floats),
            len(by_dtype[dtype]),
            _dtype_detail(by_dtype[dtype], sizes[dtype]),
        )
        for dtype in order
    ]
    ways: defaultdict[str, list[TensorInfo]] = defaultdict(list)
    for each in checkpoint.quantized.values():
        ways[each.scheme].append(each.info)
    evidence += [
        Evidence(way, "codes", "note", len(weights), _dtype_detail(weights, sum(map(_numel, weights))))
        for way, weights in ways.items()
    ]
    odd = at_least("minor", evidence)
    if not odd:
        return conclude(DTYPES, evidence, detail=_kept_as(order, ways))
    mixed = len(floats) > 1
    return conclude(
        DTYPES,
        evidence,
        detail=f"The weights are kept in {len(floats)} floating types, {', '.join(floats)}: "
        "from_pretrained makes them one, and other programs may fail on the mix."
        if mixed
        else f"The weights are kept as {floats[0]}, twice the bytes of float32 to no use.",
        next_step="If it is not meant so, load the model with one dtype and save it again.",
    )


def _kept_as(dtypes: Sequence[str], ways: Mapping[str, list[TensorInfo]]) -> str:
    kinds = " and ".join(dtypes)
    if not ways:
        return f"All weights are kept as {kinds}."
    said = ", ".join(f"{plural(len(weights), 'weight')} as {way}" for way, weights in ways.items())
    rest = f"; all others are kept as {kinds}" if kinds else ""
    return f"Quantized: {said}{rest}."


def _dtype_problem(dtype: str, floats: list[str]) -> str:
    if dtype not in floats:
        return "no floating type"
    if dtype != floats[0]:
        return "other than most"
    return "double precision" if dtype == "float64" else "most weights"


def _dtype_severity(dtype: str, floats: list[str]) -> Severity:
    if dtype not in floats:
        return "note"
    return "minor" if dtype != floats[0] or dtype == "float64" else "none"


def _dtype_detail(tensors: list[TensorInfo], numbers: int) -> str:
    named = ", ".join(tensor.name for tensor in tensors[:EXAMPLES])
    more = f" and {len(tensors) - EXAMPLES:,} more" if len(tensors) > EXAMPLES else ""
    return f"{plural(numbers, 'number')} in {plural(len(tensors), 'tensor')}: {named}{more}."


def _place(census: Census) -> str:
    tensor = census.tensor
    plain = tensor.strides == contiguous_strides(tensor.shape) and not tensor.dtype.startswith("c")
    if census.first is None or not plain or not tensor.shape:
        return ""
    index, rest = [], census.first
    for stride in contiguous_strides(tensor.shape):
        index.append(rest // stride)
        rest %= stride
    return f", the first at {index}"


def _numel(tensor: TensorInfo) -> int:
    return math.prod(tensor.shape)


def _is_matrix(tensor: TensorInfo) -> bool:
    return sum(size > 1 for size in tensor.shape) > 1


def _is_table(tensor: TensorInfo) -> bool:
    """Whether it is a constant table that no training changes."""
    return is_buffer(tensor) or FORMER.search(tensor.name) is not None
