"""Check what was found in the stored numbers: NaN, infinity, zeros, scales."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping, Sequence

import torch

from inspector.analyses.checks import words_numbers as words
from inspector.analyses.checks.compute_census import Census, take_census
from inspector.analyses.checks.compute_dtypes import is_matrix, is_table, stored_as_codes, weights_of_parts
from inspector.analyses.checks.compute_magnitudes import check_magnitudes, find_siblings, list_norms, pack_rms
from inspector.analyses.checks.compute_padding import check_padding
from inspector.analyses.checks.compute_parts import NUMBERS, SCALES, ZEROS, at_least, conclude, nothing_to_check
from inspector.analyses.checks.compute_vocabulary import check_vocabulary
from inspector.analyses.checks.result import Check, Evidence, MatrixNorms, Severity
from inspector.errors import InspectorError
from inspector.models.checkpoint import StagedCheckpoint
from inspector.models.quantized.codes import open_codes
from inspector.models.quantized.ggml import dequantize_blocks, scales_of
from inspector.models.quantized.layout import Quantized
from inspector.models.tensors import StoredReader
from inspector.progress import Progress
from inspector.store.manifests.manifest import Manifest
from inspector.store.readers.safetensors import contiguous_strides

SCALING = ("scale", "absmax")  # parts of a quantized weight that its codes are multiplied by
BIASED = "affine"  # the kind whose numbers are scale · code + bias
SIGNED = ("float32", "bfloat16", "float16", "float64", "float8_e4m3fn", "float8_e5m2")  # types with 0 and a sign
FEW_ROWS = 8  # of a quantized weight that is sampled
MOST_ROWS = 1 << 10  # of a quantized weight that are dequantized at once


def check_by_numbers(
    checkpoint: StagedCheckpoint, values: str, progress: Progress
) -> tuple[tuple[Check, ...], tuple[MatrixNorms, ...], bytes]:
    """Make the checks that need numbers, and list the sizes of the weights: by pattern, and `Checks.measured`."""
    manifest, quantized = checkpoint.manifest, checkpoint.quantized
    scales = [manifest.by_name[name] for name in stored_scales(quantized)]
    census = take_census(manifest, progress, sample=values == "sample", scales=scales)
    raised = {name for name, each in checkpoint.changed.items() if each.options.get("more")}
    siblings = find_siblings(census, stored_as_codes(checkpoint) | raised)
    progress(None, "Checking the vocabulary")
    read = read_numbers(census, checkpoint)
    checks = (
        check_numbers(read, checkpoint),
        check_zero_tensors(census, checkpoint),
        check_magnitudes(siblings, whole=values == "all"),
        check_scales(census, checkpoint),
        *check_vocabulary(checkpoint, progress),
        check_padding(checkpoint),
    )
    return checks, list_norms(siblings), pack_rms(manifest.tensors.names, siblings, read)


def read_numbers(census: Sequence[Census], checkpoint: StagedCheckpoint) -> list[Census]:
    """What was found in numbers: of blocks in those that they stand for; what is stored as codes is none."""
    codes = checkpoint.unread.codes
    whole = all(each.read == each.numbers for each in census)
    return [_look_at_blocks(checkpoint, each, whole=whole) for each in census if each.tensor.name not in codes]


def check_numbers(census: Sequence[Census], checkpoint: StagedCheckpoint) -> Check:
    """No number of any tensor is NaN or infinite.

    Args:
        census: As `read_numbers` has it.
    """
    weights = weights_of_parts(checkpoint.quantized)
    evidence = []
    for each in census:
        name = each.tensor.name
        severity: Severity = "note" if is_table(each.tensor) else "critical"
        for count, what in ((each.nan, "NaN"), (each.infinite, "infinity")):
            if count:
                detail = words.not_finite(
                    count, what, each.read, each.numbers, first=_place(each), weight=weights.get(name, "")
                )
                evidence.append(Evidence(name, f"holds {what}", severity, count, detail))
    bad = at_least("critical", evidence)
    numbers, read = sum(each.numbers for each in census), sum(each.read for each in census)
    if not bad:
        return conclude(
            NUMBERS, evidence, words.all_finite(read, numbers, len(census), unread=len(checkpoint.unread.codes))
        )
    tensors, count = len({each.subject for each in bad}), sum(each.count or 0 for each in bad)
    quantizing = all(each.subject in weights for each in bad)
    return conclude(
        NUMBERS,
        evidence,
        words.some_not_finite(tensors, bad[0].subject, count, read),
        words.IN_QUANTIZING if quantizing else words.IN_TRAINING,
    )


def _look_at_blocks(checkpoint: StagedCheckpoint, census: Census, *, whole: bool) -> Census:
    """What the scales of ggml's blocks say of the numbers; of any other tensor, what was found."""
    coded = checkpoint.quantized.get(census.tensor.name)
    if coded is None or coded.kind != "blocks":  # bitsandbytes, too, has an option of that name
        return census
    stored = StoredReader(checkpoint.manifest).read([census.tensor.name])[census.tensor.name]
    rows, block = stored.view(-1, stored.shape[-1]), coded.options["block"]
    some = rows if whole else rows[:: max(1, len(rows) // FEW_ROWS)]
    nan = infinite = 0
    for part in some.split(MOST_ROWS):
        odd = ~scales_of(part, block).isfinite().all(dim=1)
        if odd.any():
            numbers = dequantize_blocks(part.reshape(len(odd), -1)[odd], block)
            nan += int(numbers.isnan().sum())
            infinite += int(numbers.isinf().sum())
    return Census(coded.info, len(some) * coded.shape[-1], nan, infinite)


def check_zero_tensors(census: Sequence[Census], checkpoint: StagedCheckpoint) -> Check:
    """No weight matrix is zero all over; codes count as what they stand for."""
    parts = stored_as_codes(checkpoint)
    whole = all(each.read == each.numbers for each in census)
    found = [
        (each.tensor.name, each.numbers, words.zero_tensor(each.tensor.shape, each.read, each.numbers))
        for each in census
        if each.zero and is_matrix(each.tensor) and not is_table(each.tensor) and each.tensor.name not in parts
    ]
    found += _zero_weights(census, checkpoint, whole=whole)
    rows_of_one = list(_rows_of_one_number(census, checkpoint, parts))
    if not found:
        said = " ".join([words.no_zeros(whole=whole), *words.some_constant(len(rows_of_one))])
        return conclude(ZEROS, rows_of_one, said)
    evidence = [Evidence(name, "all zeros", "minor", numbers, detail) for name, numbers, detail in found] + rows_of_one
    return conclude(ZEROS, evidence, words.zeros(len(found), found[0][0]), words.ZEROS_STEP)


def _rows_of_one_number(
    census: Sequence[Census], checkpoint: StagedCheckpoint, parts: Collection[str]
) -> Iterator[Evidence]:
    """Matrices with rows that say nothing; those of the vocabulary have checks of their own.

    Rows of padding positions stay as they were made, and nothing runs what the class has no place for.
    """
    try:
        vocabulary = checkpoint.embedding.shape
    except InspectorError:
        vocabulary = None
    unused = set(checkpoint.structure[1].unused) if checkpoint.structure else set()
    padding = _padding_rows(checkpoint)
    for each in census:
        tensor = each.tensor
        count = each.constant_rows - (tensor.name in padding and each.read == each.numbers)
        if count <= 0 or each.zero or is_table(tensor) or tensor.shape == vocabulary:
            continue
        if tensor.name in parts or tensor.name in unused:
            continue
        detail = words.constant_rows(count, each.numbers // tensor.shape[-1], whole=each.read == each.numbers)
        yield Evidence(tensor.name, "rows of one number", "note", count, detail)


def _padding_rows(checkpoint: StagedCheckpoint) -> set[str]:
    """Stored matrices whose row at their module's padding_idx holds one number."""
    if checkpoint.structure is None:
        return set()
    model, places = checkpoint.structure
    found = {
        places.stored_as.get(f"{name}.weight"): module.padding_idx
        for name, module in model.named_modules()
        if isinstance(module, torch.nn.Embedding) and module.padding_idx is not None
    }
    held = {name: row for name, row in found.items() if name and name not in checkpoint.unread.codes}
    read = ((name, checkpoint.read([name])[name], row) for name, row in held.items())
    rows = {name: tensor[row : row + 1] for name, tensor, row in read if tensor.dim()}
    return {name for name, row in rows.items() if row.numel() and bool((row == row.flatten()[0]).all())}


def stored_scales(quantized: Mapping[str, Quantized]) -> dict[str, Quantized]:
    """Name of a stored tensor of scales -> what they scale; powers of two, and scales that are codes, are no such."""
    parts = ((each.parts.get(role), each) for each in quantized.values() for role in SCALING)
    return {part.name: each for part, each in parts if part is not None and part.dtype in SIGNED}


def check_scales(census: Sequence[Census], checkpoint: StagedCheckpoint) -> Check:
    """No scale of a quantized weight is 0 or negative."""
    scales = stored_scales(checkpoint.quantized)
    if not scales:
        if checkpoint.manifest.is_gguf:
            return nothing_to_check(SCALES, words.SCALES_IN_BLOCKS)
        return conclude(SCALES, (), words.UNREAD_SCALES if checkpoint.unread.codes else words.NO_SCALES)
    found = [each for each in census if each.tensor.name in scales]
    evidence = []
    for each in found:
        name, weight = each.tensor.name, scales[each.tensor.name]
        biased = weight.kind == BIASED
        if each.zeros:
            detail = words.zero_scales(each.zeros, each.read, each.numbers, weight.name, biased=biased)
            evidence.append(Evidence(name, "scales of 0", "minor", each.zeros, detail))
        if each.negative and not biased:  # MLX's own quantizer writes them
            detail = words.negative_scales(each.negative, each.read, each.numbers, weight.name)
            evidence.append(Evidence(name, "negative scales", "note", each.negative, detail))
    read, numbers = (sum(getattr(each, of) for each in found) for of in ("read", "numbers"))
    zeros = sum(each.zeros for each in found)
    negative = sum(each.count or 0 for each in evidence if each.severity == "note")
    return conclude(SCALES, evidence, words.scales(zeros, negative, read, numbers, len(found)), words.SCALES_STEP)


def _zero_weights(
    census: Sequence[Census], checkpoint: StagedCheckpoint, *, whole: bool
) -> Iterator[tuple[str, int, str]]:
    """Quantized weights of zeros: name, numbers, what was read of them.

    Codes times scales are told by either, for opening ten thousands takes minutes; others are opened.
    """
    read, rows = {each.tensor.name: each for each in census}, None if whole else FEW_ROWS
    for each in checkpoint.quantized.values():
        factors = _factors(each, read)
        finite = not any(factor.nan or factor.infinite for factor in factors.values())
        zero = next((role for role, factor in factors.items() if factor.zero and _has_zero(role, factor)), None)
        if finite and zero:
            detail = words.zero_factor(each.shape, each.scheme, zero, factors[zero].read, factors[zero].numbers)
        elif (whole or not factors) and _stands_for_zeros(checkpoint.manifest, each, most=rows):
            detail = words.zero_weight(each.shape, each.scheme, rows)
        else:
            continue
        yield each.name, math.prod(each.shape), detail


def _factors(quantized: Quantized, census: Mapping[str, Census]) -> dict[str, Census]:
    """What was read of the codes and scales whose product a weight is; nothing where it is none or one is unread."""
    if quantized.kind not in ("scaled", "int8") or "zero" in quantized.parts:
        return {}
    read = {role: census.get(quantized.parts[role].name) for role in ("codes", "scale")}
    factors = {role: factor for role, factor in read.items() if factor}
    return factors if factors.keys() == read.keys() else {}


def _has_zero(role: str, factor: Census) -> bool:
    """Whether bytes of 0 stand for 0: as a power of two they stand for the smallest one."""
    return role == "codes" or factor.tensor.dtype in SIGNED


def _stands_for_zeros(manifest: Manifest, quantized: Quantized, *, most: int | None) -> bool:
    """Read what codes stand for until a number is not 0, which mostly is in the first row; or the first few."""
    opened, rows = open_codes(StoredReader(manifest), quantized), math.prod(quantized.shape[:-1])
    begin, size = 0, 1
    while begin < min(rows, most or rows):
        if opened.rows(slice(begin, min(begin + size, rows))).any():
            return False
        begin, size = begin + size, min(2 * size, MOST_ROWS)
    return True


def _place(census: Census) -> Sequence[int] | None:
    """The index of the first number that is not finite, where the file's order tells it."""
    tensor = census.tensor
    plain = tensor.strides == contiguous_strides(tensor.shape) and not tensor.dtype.startswith("c")
    if census.first is None or not plain or not tensor.shape:
        return None
    index, rest = [], census.first
    for stride in contiguous_strides(tensor.shape):
        index.append(rest // stride)
        rest %= stride
    return index
