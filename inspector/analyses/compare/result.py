"""What differs between two checkpoints."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from inspector.results.plain import local

if TYPE_CHECKING:  # half a second of the first paint, and of every worker's start
    import pandas as pd

# What can have become of a tensor. "dtype changed": the same numbers, or exactly what rounding them
# to the other dtype gives. "quantised": one side has codes and scales that stand for about the same
# numbers. "not compared": one side cannot be read as numbers, or no number was to be read. "equal in sample": the
# numbers that were read are equal, and others may differ.
EQUAL = ("equal in sample", "equal")
STATUSES = ("changed", "dtype changed", "quantised", "reshaped", "added", "removed", "not compared", *EQUAL)
# How a tensor found its partner: under the same name, under another prefix or ending of the same
# name, or under a name that is one tensor with it. "part": one side stores a mixture's experts one by one, the other
# fused; the part is named as "X[3, 0:48]".
MATCHES = ("name", "spelling", "tie", "part")

# Of Comparison.tokens.
TOKEN_COLUMNS = (
    *("token", "token_id", "other_token_id", "kind"),
    *("distance", "relative_change", "cosine", "norm", "other_norm"),
)
TEMPLATE = "chat template"  # among their roles
SPECIAL_COLUMNS = ("role", "token", "token_id", "other_token", "other_token_id", "same")
# Stored as floats: they are compared as numbers, and are exact as float64.
FLOATS = frozenset(
    {"float16", "bfloat16", "float32", "float64", "float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float8_e5m2fnuz"}
)


@dataclass(frozen=True, slots=True)
class TieChange:
    """Names that are one tensor in only one of the checkpoints."""

    names: tuple[str, ...]  # sorted, as the checkpoint that ties them calls them
    tied_in: str  # "first" or "second"
    other_verdict: str  # one of sharing's verdicts, "absent" or "apart"
    shape: tuple[int, ...]
    nbytes: int
    reason: str  # one sentence about the other checkpoint


@dataclass(frozen=True, slots=True)
class VocabularyMatch:
    """How the rows of two input embedding matrices were matched, and how far they moved."""

    rows: int
    other_rows: int
    columns: int
    other_columns: int
    matched_by: str  # "token": by the token's text; "row": by the row's number
    matched: int  # pairs of rows
    same_row: int  # of them: under the same number in both
    alone: int  # rows of the first without a match
    other_alone: int  # rows of the second without one
    alone_examples: tuple[str, ...]  # visible forms, lowest rows first
    other_alone_examples: tuple[str, ...]
    moved: int  # matched rows that differ
    not_finite: int  # matched rows that hold NaN or infinity in either: not measured
    median_distance: float  # of the measured rows; NaN where none is
    median_cosine: float


@dataclass(frozen=True, slots=True)
class Comparison:
    """Two checkpoints, tensor by tensor, tie by tie and token by token."""

    name: str
    other_name: str
    fingerprint: str
    other_fingerprint: str
    same: bool  # True: both are the same checkpoint
    summary: tuple[str, ...]  # plain sentences, the most important first
    counts: dict[str, int]  # status -> tensors, those of STATUSES that occur
    # relative_change, cosine and max_abs of all tensors that were measured, taken as one vector,
    # bytes that have several names once; NaN where none was. Of a sample, relative_change, cosine and norms are
    # estimates here and below, and max_abs is the largest that was found
    overall: dict[str, float]
    # One row a tensor, in the order of the first file, those that were added last: name, status,
    # cosine, relative_change (|b - a| / |a|), max_abs (NaN where not measured), other_name (""
    # where there is none), matched (one of MATCHES, ""), shape, other_shape (text), dtype,
    # other_dtype (of quantized weights: the scheme), parameters, norm, other_norm, nearest (where one
    # side is quantized: share of the numbers that are the nearest its scales allow, 0..1; else
    # NaN), not_finite, other_not_finite (numbers that are NaN or infinite), note, layer ("" outside
    # of layers), kind (its name within the layer)
    tensors: pd.DataFrame
    # One row a layer and kind of tensor, in the model's order, tensors of one cell taken as one
    # vector: layer, number, kind, tensors, unequal, relative_change, cosine, max_abs
    layers: pd.DataFrame
    ties_changed: tuple[TieChange, ...]
    ties_compared: bool  # False: a warning says why not
    vocabulary: VocabularyMatch | None  # None: a warning says why not
    # The rows that moved furthest, furthest first: token, token_id, other_token_id, kind, distance,
    # relative_change, cosine, norm, other_norm
    tokens_moved: pd.DataFrame
    warnings: tuple[str, ...]
    values: str  # stored numbers that were read: "all", "sample" or "none"
    # What both say of the tokens that mark texts, where both have a tokenizer: role (or TEMPLATE), token, token_id,
    # other_token, other_token_id ("" and None where there is none; of a template its length, and no ids), same
    special_tokens: pd.DataFrame
    tokens: pd.DataFrame = local()  # the same for every matched row, in the order of the first
