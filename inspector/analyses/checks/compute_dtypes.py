"""Check the types that weights are kept in, by their headers."""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Mapping, Sequence

from inspector.analyses.checks import words_numbers as words
from inspector.analyses.checks.compute_parts import at_least, conclude
from inspector.analyses.checks.result import Check, Evidence, Severity
from inspector.analyses.checks.words import CHECK_A_COPY
from inspector.models.checkpoint import StagedCheckpoint
from inspector.models.names import FORMER_BUFFERS
from inspector.models.quantized.layout import Quantized
from inspector.store.manifests.columns import TensorInfo, is_buffer

DTYPES = "Number types"
FORMER = re.compile("|".join(FORMER_BUFFERS))


def check_dtypes(checkpoint: StagedCheckpoint) -> Check:
    """All weights are kept in one floating type; codes and their scales have types of their own."""
    parts, codes = stored_as_codes(checkpoint), checkpoint.unread.codes
    by_dtype: defaultdict[str, list[TensorInfo]] = defaultdict(list)
    for tensor in checkpoint.manifest.tensors:
        if not is_table(tensor) and tensor.name not in parts:
            by_dtype[tensor.dtype].append(tensor)
    if not (by_dtype or parts):
        return conclude(DTYPES, (), words.ONLY_TABLES)
    sizes = {dtype: sum(map(_numel, tensors)) for dtype, tensors in by_dtype.items()}
    order = sorted(by_dtype, key=lambda dtype: (-sizes[dtype], dtype))
    floats = [dtype for dtype in order if "float" in dtype]
    ways: defaultdict[str, list[TensorInfo]] = defaultdict(list)
    for each in checkpoint.quantized.values():
        ways[each.scheme].append(each.info)
    evidence = [_kept(by_dtype[dtype], dtype, *_judge_dtype(dtype, floats)) for dtype in order]
    evidence += [_kept(weights, way, "codes", "note") for way, weights in ways.items()]
    if codes:
        stored = [checkpoint.manifest.by_name[name] for name in codes]
        evidence.append(_kept(stored, words.NOT_READ_HERE, "codes", "minor"))
        said = words.unread(len(codes), *stored[0][:2], checkpoint.unread.companion(stored[0].name))
        return conclude(DTYPES, evidence, said, CHECK_A_COPY)
    if not at_least("minor", evidence):
        return conclude(DTYPES, evidence, words.kept_as(order, {way: len(each) for way, each in ways.items()}))
    return conclude(DTYPES, evidence, words.mixed(floats), words.ONE_DTYPE)


def _kept(tensors: Sequence[TensorInfo], kind: str, problem: str, severity: Severity) -> Evidence:
    detail = words.kept_in([tensor.name for tensor in tensors], sum(map(_numel, tensors)))
    return Evidence(kind, problem, severity, len(tensors), detail)


def _judge_dtype(dtype: str, floats: list[str]) -> tuple[str, Severity]:
    """What is odd about weights of a type, and how bad that is."""
    if dtype not in floats:
        return "no floating type", "note"
    if dtype != floats[0]:
        return "other than most", "minor"
    return ("double precision", "minor") if dtype == "float64" else ("most weights", "none")


def weights_of_parts(quantized: Mapping[str, Quantized]) -> dict[str, str]:
    """Name of what is stored of a weight (codes, scales, ...) -> name of the weight."""
    return {part.name: name for name, each in quantized.items() for part in each.parts.values()}


def stored_as_codes(checkpoint: StagedCheckpoint) -> frozenset[str]:
    """The stored tensors that are no plain numbers: codes, read or not, and what belongs to them."""
    unread = checkpoint.unread
    return frozenset().union(weights_of_parts(checkpoint.quantized), unread.codes, unread.beside)


def _numel(tensor: TensorInfo) -> int:
    return math.prod(tensor.shape)


def is_matrix(tensor: TensorInfo) -> bool:
    """Whether it has two axes or more that are longer than 1."""
    return sum(size > 1 for size in tensor.shape) > 1


def is_table(tensor: TensorInfo) -> bool:
    """Whether it is a constant table that no training changes."""
    return is_buffer(tensor) or FORMER.search(tensor.name) is not None
