"""Score hidden states at every step of the ladder, one block at a time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch

from inspector.models.reading.ladder import Ladder, Unembedding
from inspector.models.running import Loaded
from inspector.store.readers.levels import read_setting

AT_ONCE = 2_000_000  # numbers that are converted to float32 at once: they stay in the processor's cache
DOT, COSINE, DOT_BIAS, LOGITS = "dot", "cosine", "dot + bias", "logits"
LOWEST = -3e38  # stands for "no score": a row that holds NaN or infinity
NOTES = {
    DOT: "h · eᵢ: the hidden state times every input embedding, nothing else.",
    COSINE: "The same, divided by both lengths: direction only.",
    DOT_BIAS: "h · eᵢ + bᵢ: with the output layer's bias, still without the head's transform.",
    "dense": "The head's dense layer first, then times every output embedding.",
    "activation": "Dense layer and activation, then times every output embedding.",
    "LayerNorm": "The head's full transform, then times every output embedding: everything but the bias.",
    "final norm": "The model's final norm, then times every output embedding: everything but the later steps of the "
    "head.",
    "projection": "Final norm and output projection, then times every output embedding.",
    LOGITS: "The output of the model's own head: its transform or final norm, then the unembedding "
    "and its bias. At the last layer these are the model's logits.",
}


@dataclass(frozen=True, slots=True)
class Scorer:
    """All that turns hidden states into scores of the vocabulary."""

    # (vocab, d_model); in the model's dtype, on a GPU that holds all of it in float32. None where the sizes differ
    embedding: torch.Tensor | None
    norms: torch.Tensor | None  # (vocab,)
    bias: torch.Tensor | None  # (vocab,) in float32, where dot + bias is a step
    ladder: Ladder | None
    # The output layer where the head is not in the table of families: what it received at the last
    # layer is known, and nothing of the other layers.
    output: Unembedding | None
    unusable: torch.Tensor  # ids of rows that hold NaN or infinity
    tied: bool  # whether the unembedding is the input embedding
    most: int | None = None  # tokens that the model itself scores, where its matrices have more rows

    @property
    def rungs(self) -> tuple[str, ...]:
        """Names of the rungs, first to last."""
        geometric = (DOT, COSINE) if self.embedding is not None else ()
        biased = (DOT_BIAS,) if self.bias is not None else ()
        steps = self.ladder.rungs if self.ladder else ()
        return (*geometric, *biased, *steps, *((LOGITS,) if self.has_head else ()))

    @property
    def has_head(self) -> bool:
        """Whether there are true logits, at the last layer at least."""
        return self.ladder is not None or self.output is not None

    @property
    def rows(self) -> int:
        """Tokens that are scored."""
        matrices = [each.weight for each in (self.unembedding,) if each is not None]
        matrices += [self.embedding] if self.embedding is not None else []
        return min(self.most or len(matrix) for matrix in matrices)

    @property
    def unembedding(self) -> Unembedding | None:
        """The output layer, however it was found."""
        return self.ladder.unembedding if self.ladder else self.output

    def score(
        self, hidden: torch.Tensor, *, last: bool, received: torch.Tensor | None, given: torch.Tensor | None = None
    ) -> Iterator[tuple[str, torch.Tensor]]:
        """Score a block of hidden states, the logits first.

        Args:
            hidden: (states, d_model).
            last: Whether they are of the last layer.
            received: What the output layer got for them, where it was captured.
            given: The model's own logits, (states, vocab), where they are shown as they are.

        Yields:
            Rung and (states, vocab) in float32, which the taker may overwrite before going on.
        """
        if given is not None:
            yield LOGITS, self._clean(given.clone(), hidden)
        elif self.ladder is not None:
            yield from self._climb(self.ladder, hidden, last=last)
        elif self.output is not None and received is not None:
            yield LOGITS, self._clean(self.output.score(received), hidden)
        if self.embedding is None or self.norms is None:
            return
        dots = self._clean(_products(hidden, self.embedding), hidden)
        lengths = torch.linalg.vector_norm(hidden.float(), dim=1, keepdim=True)
        scale = (lengths * self.norms).clamp_min_(1e-12)
        yield COSINE, self._clean(torch.div(dots, scale, out=scale), hidden)
        if self.bias is not None:
            yield DOT_BIAS, self._clean(dots + self.bias, hidden)
        yield DOT, dots

    def logits(self, hidden: torch.Tensor, *, received: torch.Tensor | None) -> torch.Tensor | None:
        """The logits of a block of the last layer's states, as the known steps lead to them."""
        if self.ladder is not None:
            return self._clean(self.ladder.logits(hidden), hidden)
        if self.output is not None and received is not None:
            return self._clean(self.output.score(received), hidden)
        return None

    def _climb(self, ladder: Ladder, hidden: torch.Tensor, *, last: bool) -> Iterator[tuple[str, torch.Tensor]]:
        climbed = list(ladder.climb(hidden, last=last))
        top = climbed[-1][1] if climbed else hidden
        yield LOGITS, self._clean(ladder.unembedding.score(top), hidden)
        for rung, vectors in climbed:
            if rung in ladder.rungs and vectors.shape[1] == ladder.unembedding.weight.shape[1]:
                yield rung, self._clean(ladder.unembedding.score(vectors, plain=True), hidden)

    def _clean(self, scores: torch.Tensor, hidden: torch.Tensor) -> torch.Tensor:
        scores = scores.float()
        if len(self.unusable):
            scores[:, self.unusable] = LOWEST
        if not torch.isfinite(hidden).all():
            scores = scores.nan_to_num(nan=LOWEST, posinf=-LOWEST, neginf=LOWEST)
        return scores


def build_scorer(loaded: Loaded, ladder: Ladder | None, output: Unembedding | None) -> tuple[Scorer, list[str]]:
    """Put together what a model's hidden states can be compared with.

    Returns:
        The scorer, and one sentence for each step that other models have and this one has not.
    """
    embedding = loaded.input_embedding
    unembedding = ladder.unembedding if ladder else output
    norms = row_lengths(embedding)
    unusable = ~_finite_rows(embedding, norms)
    tied = unembedding is not None and unembedding.weight.data_ptr() == embedding.data_ptr()
    if unembedding and not tied and unembedding.weight.shape == embedding.shape:
        unusable |= ~_finite_rows(unembedding.weight, row_lengths(unembedding.weight))
    width = hidden_width(loaded)
    left_out = []
    if width != embedding.shape[1]:
        left_out.append(
            f"Hidden states are {width} wide and embeddings {embedding.shape[1]}, so their dot product and cosine have "
            "no meaning before the head's transform and are left out."
        )
        return Scorer(None, None, None, ladder, output, unusable.nonzero()[:, 0], tied), left_out
    matrix = embedding if loaded.stream or embedding.device.type == "cpu" else embedding.float()
    bias = unembedding.bias if unembedding else None
    if bias is not None and len(bias) != len(matrix):
        bias = None
    scorer = Scorer(
        matrix, norms, None if bias is None else bias.float(), ladder, output, unusable.nonzero()[:, 0], tied
    )
    return scorer, left_out


def _products(hidden: torch.Tensor, matrix: torch.Tensor) -> torch.Tensor:
    """Hidden states times the rows of a matrix in float32, converted some at a time where they are in another dtype."""
    states = hidden.float()
    if matrix.dtype == states.dtype:
        return states @ matrix.T
    scores = states.new_empty(len(states), len(matrix))
    with _multiplied_as(hidden.dtype if hidden.dtype == matrix.dtype else states.dtype):
        for some, rows in _in_float32(matrix):
            torch.mm(states, rows.T, out=scores[:, some])
    return scores


@contextmanager
def _multiplied_as(dtype: torch.dtype) -> Iterator[None]:
    """Let a processor that has instructions for bfloat16 multiply float32 numbers that came from it with them.

    Nothing is lost: the numbers are the same in both, and sums stay in float32. It takes a third of the time.
    """
    backend: Any = torch.backends.mkldnn
    before = backend.matmul.fp32_precision
    if dtype == torch.bfloat16:
        backend.matmul.fp32_precision = "bf16"
    try:
        yield
    finally:
        backend.matmul.fp32_precision = before


def row_lengths(matrix: torch.Tensor) -> torch.Tensor:
    """Lengths of a matrix' rows in float32."""
    norms = torch.empty(len(matrix), dtype=torch.float32, device=matrix.device)
    for some, rows in _in_float32(matrix):
        norms[some] = torch.linalg.vector_norm(rows, dim=1)
    return norms


def _finite_rows(matrix: torch.Tensor, norms: torch.Tensor) -> torch.Tensor:
    """Rows of finite numbers alone.

    A row that holds anything else has no finite length. Finite numbers may lack one as well, so
    rows without are looked at again.
    """
    finite = torch.isfinite(norms)
    for some in (~finite).nonzero()[:, 0].split(_at_once(matrix)):
        finite[some] = torch.isfinite(matrix[some]).all(dim=1)
    return finite


def _in_float32(matrix: torch.Tensor) -> Iterator[tuple[slice, torch.Tensor]]:
    """Rows of a matrix, some at a time; what is converted takes the memory of what was before."""
    size = _at_once(matrix)
    held = torch.empty(min(size, len(matrix)), matrix.shape[1], dtype=torch.float32, device=matrix.device)
    for begin in range(0, len(matrix), size):
        rows = matrix[begin : begin + size]
        converted = rows if rows.dtype == held.dtype else held[: len(rows)].copy_(rows)
        yield slice(begin, begin + len(rows)), converted


def _at_once(matrix: torch.Tensor) -> int:
    """How many rows are looked at together."""
    return max(1, AT_ONCE // matrix.shape[1])


def hidden_width(loaded: Loaded) -> int:
    """Width of the hidden states, by the config."""
    config = loaded.model.config
    return read_setting(config, "hidden_size").value or loaded.input_embedding.shape[1]


def step_names(scorer: Scorer) -> list[tuple[str, str]]:
    """The way from direction alone to the logits: (rung, what leads there from the one before)."""
    way: list[tuple[str, str]] = []
    if scorer.embedding is not None:
        way += [(COSINE, ""), (DOT, "the norm of its embedding")]
    if scorer.ladder is None:
        return [*way, (LOGITS, "the head")] if scorer.output else way
    waiting = [] if scorer.tied or scorer.embedding is None else ["the output matrix"]
    for step, _ in scorer.ladder.steps:
        waiting.append(f"the {step.rung}")
        if step.rung in scorer.ladder.rungs:
            way.append((step.rung, _listed(waiting)))
            waiting = []
    if scorer.ladder.unembedding.bias is not None:
        waiting.append("the output bias")
    if scorer.ladder.unembedding.cap is not None:
        waiting.append("the soft cap")
    return [*way, (LOGITS, _listed(waiting) or "nothing more")]


def _listed(names: Sequence[str]) -> str:
    return " and ".join(names)
