"""Look at every stored number: NaN, infinity, tensors of zeros, and the types they are kept in."""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import torch

from inspector.analyses.checks.compute_parts import at_least, conclude, example
from inspector.analyses.checks.result import Check, Evidence
from inspector.models.checkpoint import Checkpoint
from inspector.models.names import FORMER_BUFFERS, is_buffer
from inspector.models.quantized.codes import open_codes
from inspector.models.quantized.layout import Quantised
from inspector.models.tensors import read_tensors
from inspector.progress import Progress
from inspector.store.copies import is_packed, read_pieces
from inspector.store.manifest import Manifest, TensorInfo
from inspector.store.readers.safetensors import contiguous_strides
from inspector.text import plural, shape_text

NUMBERS, ZEROS, DTYPES = "NaN and infinity", "Zero tensors", "Number types"
EXAMPLES = 3
BLOCK = 1 << 20  # numbers read at once
FEW = 1 << 16  # numbers that codes are turned into at once
IN_TRAINING = (
    "Go back to an earlier checkpoint of the run, and look for the step at which the loss became NaN: a lower "
    "learning rate, gradient clipping or bfloat16 in place of float16 are the usual cures."
)
IN_QUANTISING = (
    "Compare the file's digest with its source and copy it again; if the source has them too, quantize the float "
    "weights again after you have checked that they are finite."
)


@dataclass(frozen=True, slots=True)
class Census:
    """What one pass over a tensor's numbers tells."""

    tensor: TensorInfo
    nan: int = 0
    infinite: int = 0
    first: int | None = None  # place of the first number that is not finite, in the file's order
    zero: bool = True  # every number is 0


def take_census(manifest: Manifest, progress: Progress) -> list[Census]:
    """Read every tensor of the files once, block by block.

    Args:
        manifest: Of a staged checkpoint.
        progress: Told how far it has come.

    Returns:
        One entry a tensor that has numbers, in the manifest's order.
    """
    total = max(1, sum(tensor.nbytes for tensor in manifest.tensors))
    found: dict[str, Census] = {}
    seen: dict[tuple[object, ...], Census] = {}  # names on the same bytes are read once
    done = 0
    for tensor in manifest.tensors:
        if tensor.nbytes:
            place = (tensor.file, tensor.begin, tensor.dtype, tensor.shape, tensor.strides)
            known = seen.get(place)
            census = replace(known, tensor=tensor) if known else _count(manifest, tensor)
            seen[place] = found[tensor.name] = census
        done += tensor.nbytes
        progress(done / total, "Reading every number")
    return list(found.values())


def check_numbers(census: Sequence[Census], quantised: Mapping[str, Quantised]) -> Check:
    """No number of any tensor is NaN or infinite.

    Args:
        census: Of every stored tensor.
        quantised: The weights that are stored as codes.
    """
    weights = _weights_of_parts(quantised)
    evidence = []
    for each in census:
        where = _place(each)
        if each.tensor.name in weights:
            where += f", which makes numbers of {weights[each.tensor.name]} from codes"
        for count, what in ((each.nan, "NaN"), (each.infinite, "infinity")):
            if count:
                severity = "note" if _is_table(each.tensor) else "critical"
                detail = f"{count:,} of {_numel(each.tensor):,} numbers are {what}{where}."
                evidence.append(Evidence(each.tensor.name, f"holds {what}", severity, count, detail))
    bad = at_least("critical", evidence)
    numbers = sum(_numel(each.tensor) for each in census)
    if not bad:
        return conclude(
            NUMBERS,
            evidence,
            detail=f"All {numbers:,} numbers of {plural(len(census), 'tensor')} were read, and every weight is finite.",
        )
    tensors = len({each.subject for each in bad})
    next_step = IN_TRAINING
    if all(each.subject in weights for each in bad):
        next_step = IN_QUANTISING
    return conclude(
        NUMBERS,
        evidence,
        detail=f"{plural(tensors, 'tensor holds', 'tensors hold')} NaN or infinity, "
        f"{sum(each.count or 0 for each in bad):,} of {numbers:,} numbers {example(tensors, bad[0].subject)}: "
        "whatever is computed with them is no number.",
        next_step=next_step,
    )


def check_zero_tensors(census: Sequence[Census], checkpoint: Checkpoint) -> Check:
    """No weight matrix is zero all over; codes count as what they stand for."""
    parts = _weights_of_parts(checkpoint.quantised)
    evidence = [
        Evidence(
            each.tensor.name,
            "all zeros",
            "minor",
            _numel(each.tensor),
            f"{shape_text(each.tensor.shape)}, and every number is 0.",
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
            f"{shape_text(each.shape)}, {each.scheme}, and every weight is 0.",
        )
        for each in checkpoint.quantised.values()
        if _stands_for_zeros(checkpoint.manifest, each)
    ]
    if not evidence:
        return conclude(ZEROS, (), detail="No weight matrix is zero all over.")
    return conclude(
        ZEROS,
        evidence,
        detail=f"{plural(len(evidence), 'weight matrix is', 'weight matrices are')} zero all over "
        f"{example(len(evidence), evidence[0].subject)}: what goes through it is lost.",
        next_step="Compare the file's digest with its source and copy it again; if the zeros are "
        "in the source, the weights were never written or never trained.",
    )


def _stands_for_zeros(manifest: Manifest, quantised: Quantised) -> bool:
    """Read what codes stand for until a number is not 0, which mostly is the first."""
    opened, columns = open_codes(manifest, quantised), quantised.shape[-1]
    rows, size = math.prod(quantised.shape[:-1]), max(1, FEW // columns)
    return not any(bool(opened.rows(slice(begin, min(begin + size, rows))).any()) for begin in range(0, rows, size))


def _weights_of_parts(quantised: Mapping[str, Quantised]) -> dict[str, str]:
    """Name of what is stored of a weight (codes, scales, ...) -> name of the weight."""
    return {part.name: name for name, each in quantised.items() for part in each.parts.values()}


def check_dtypes(checkpoint: Checkpoint) -> Check:
    """All weights are kept in one floating type; codes and their scales have types of their own."""
    parts = _weights_of_parts(checkpoint.quantised)
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
    for each in checkpoint.quantised.values():
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


def _dtype_severity(dtype: str, floats: list[str]) -> str:
    if dtype not in floats:
        return "note"
    return "minor" if dtype != floats[0] or dtype == "float64" else "none"


def _dtype_detail(tensors: list[TensorInfo], numbers: int) -> str:
    named = ", ".join(tensor.name for tensor in tensors[:EXAMPLES])
    more = f" and {len(tensors) - EXAMPLES:,} more" if len(tensors) > EXAMPLES else ""
    return f"{plural(numbers, 'number')} in {plural(len(tensors), 'tensor')}: {named}{more}."


def _count(manifest: Manifest, tensor: TensorInfo) -> Census:
    census, place = Census(tensor), 0
    for block in _blocks(manifest, tensor):
        census = _add(census, block, place)
        place += block.numel()
    return census


def _add(census: Census, block: torch.Tensor, place: int) -> Census:
    census = replace(census, zero=census.zero and not bool(block.any()))
    # One NaN or infinity makes the sum none; a sum that merely overflows costs a second look.
    if not block.is_floating_point() or bool(torch.isfinite(_sum(block))):
        return census
    bad = (~torch.isfinite(block)).nonzero()[:, 0]
    if not len(bad):
        return census
    nan = int(torch.isnan(block).sum())
    first = place + int(bad[0]) if census.first is None else census.first
    infinite = census.infinite + len(bad) - nan
    return replace(census, nan=census.nan + nan, infinite=infinite, first=first)


def _sum(block: torch.Tensor) -> torch.Tensor:
    return block.sum(dtype=torch.float32 if block.dtype.itemsize < 4 else None)


def _blocks(manifest: Manifest, tensor: TensorInfo) -> Iterator[torch.Tensor]:
    """A tensor's numbers in pieces of one dimension, in a type that can be tested."""
    if is_packed(tensor):
        dtype = getattr(torch, tensor.dtype)
        for piece in read_pieces(manifest, tensor, count=BLOCK):
            yield _testable(torch.frombuffer(bytearray(piece), dtype=dtype))
        return
    whole = read_tensors(manifest, [tensor.name])[tensor.name]  # mapped: a view with gaps
    for part in whole.split(1):
        yield _testable(part.reshape(-1))


def _testable(block: torch.Tensor) -> torch.Tensor:
    if block.is_complex():
        return torch.view_as_real(block).reshape(-1)
    return block.float() if block.dtype.is_floating_point and block.dtype.itemsize == 1 else block


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
    return is_buffer(tensor) or any(re.search(each, tensor.name) for each in FORMER_BUFFERS)
