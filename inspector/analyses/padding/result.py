"""Why the padding vector is, or is not, zero."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from inspector.results.plain import local

if TYPE_CHECKING:  # half a second of the first paint, and of every worker's start
    import pandas as pd

# What a gradient was measured on, in the order of the table.
AS_IT_IS = "this checkpoint"
UNTIED = "the same, output matrix untied"
FRESH = "fresh random model (control)"
LIFTED = "the same, padding_idx lifted"
UNMASKED = "the same, padding_idx lifted and no attention mask"


@dataclass(frozen=True, slots=True)
class PaddingGradient:
    """Gradient that one backward pass on the sentences leaves on one row, by path.

    Gradients are given by their Euclidean norm. "Input path": through the look-up of tokens.
    "Output path": through the softmax, where the same row is an output vector.
    """

    task: str  # whose loss: "masked_lm" or "causal_lm"
    loss: float  # mean over the predicted positions
    predicted: int  # positions with a label
    padding: int  # positions of padding
    tied: bool  # whether the output matrix is the embedding matrix
    probability: float  # of this token at the predicted positions, mean, 0..1
    input_path: float
    output_path: float  # exactly 0 if the output matrix is separate
    total: float  # both together, from an ordinary backward pass of the unchanged model
    split_error: float  # largest difference between the sum of both paths and that pass
    output_matrix: float | None  # on the output matrix's own row, if it is separate
    rows: int  # of the embedding matrix
    rows_input: int  # number of rows that the input path moves
    rows_output: int  # number of output vectors that the softmax moves


@dataclass(frozen=True, slots=True)
class PaddingRow:
    """One row of a matrix, treated as the padding vector."""

    token: str
    token_id: int
    norm: float
    percentile: float  # share of rows with a smaller norm, 0..100
    is_zero: bool
    # token, token_id, cosine, kind (of results.KINDS); itself left out, empty for a zero vector
    nearest: pd.DataFrame
    # place ("mean of all rows", ...), rows (that it is the mean of), distance, cosine (NaN: one of
    # the two is zero)
    places: pd.DataFrame
    gradient: PaddingGradient | None = None
    # experiment (AS_IT_IS, ...), role ("as padding", "not in the text", "in the text"),
    # token, token_id, row_norm, input_path, output_path, total
    experiments: pd.DataFrame | None = None


@dataclass(frozen=True, slots=True)
class Padding:
    """Facts about the padding vector."""

    pad_token: str | None  # None, like all that depends on it: no padding token is named
    pad_id: int | None  # the tokenizer's, else config.json's
    padding_idx: int | None  # the row whose look-up the model blocks
    norm: float | None
    median_norm: float
    percentile: float | None  # share of rows with a smaller norm, 0..100
    is_zero: bool | None
    nearest: pd.DataFrame  # as in PaddingRow
    gradient: PaddingGradient | None
    verdict: str  # one sentence: the mechanism, as far as it was measured
    agreement: str  # one sentence: padding_idx compared with the tokenizer's id
    tied: bool | None  # output matrix and embeddings are one tensor; None: there is no head
    gradient_note: str  # what was measured, or why nothing was
    averaging_note: str
    places: pd.DataFrame  # as in PaddingRow
    experiments: pd.DataFrame  # as in PaddingRow
    # sentence, tokens, padding (positions), cosine and difference (norm) of the mean hidden state
    # over all positions and the one over real positions, relative (difference / norm of the
    # latter), padding_share (of the positions, 0..1), padding_norm (of padding's mean state)
    averaging: pd.DataFrame
    output_row: PaddingRow | None  # the same token's row in a separate output matrix
    stand_in: PaddingRow | None  # if there is no padding: the row that usually serves as padding
    warnings: tuple[str, ...]
    loaded_norm: float | None = None  # in the model that the class of config.json makes of the file
    loading: str = ""  # one sentence: what the class does to the row after loading; "" where nothing
    row: PaddingRow | None = local(default=None)  # the row to show: padding's, or the stand-in's
    dtype: str = local(default="")  # of the backward pass
    device: str = local(default="")
    masked_text: tuple[str, ...] = local(default=())  # what the model read, padding included
