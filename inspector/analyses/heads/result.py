"""Results of the task heads."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from inspector.results.plain import local

if TYPE_CHECKING:  # half a second of the first paint, and of every worker's start
    import numpy as np
    import pandas as pd

MASKED, REPLACED, KEPT, NOT_CHOSEN = "masked", "replaced", "kept", "not chosen"

# What a class name says about its head.
NAMED = (
    (r"For(NextSentencePrediction|PreTraining)$", "next_sentence"),
    (r"ForSequenceClassification$", "sequence_classification"),
    (r"ForTokenClassification$", "token_classification"),
    (r"ForQuestionAnswering$", "question_answering"),
    (r"ForMultipleChoice$", "multiple_choice"),
    (r"ForMaskedLM$|^(XLM|Flaubert)WithLMHeadModel$", "masked_lm"),
    (r"(ForCausalLM|LMHeadModel)$", "causal_lm"),
)


def named_head(architecture: str) -> str | None:
    """The head that a class name stands for; None: none of HEADS."""
    return next((head for pattern, head in NAMED if re.search(pattern, architecture)), None)


def default_head(architecture: str, heads: Mapping[str, str]) -> str | None:
    """The head to show first.

    Args:
        architecture: As config.json names it.
        heads: Head -> "present" or "absent".

    Returns:
        The one that the architecture names if the file has it, else the first that it has; None if it has none.
    """
    named = named_head(architecture)
    order = (named, *(head for _, head in NAMED))
    return next((head for head in order if head and heads[head] == "present"), None)


@dataclass(frozen=True, slots=True)
class NextSentence:
    """Whether the second text follows the first."""

    is_next: float  # 0..1
    not_next: float  # 0..1
    logits: tuple[float, float]  # label 0: it follows; label 1: it does not

    @property
    def table(self) -> pd.DataFrame:
        """Both labels."""
        import pandas as pd

        rows = [("is next", 0, self.is_next, self.logits[0]), ("not next", 1, self.not_next, self.logits[1])]
        return pd.DataFrame(rows, columns=["label", "label_id", "score", "logit"])


@dataclass(frozen=True, slots=True)
class Labels:
    """Labels for a whole text."""

    kind: str  # "softmax" (one label is right), "sigmoid" (each alone) or "regression" (numbers)
    # label, label_id, score (0..1; the number itself for a regression), logit; highest first,
    # a regression in the labels' own order
    labels: pd.DataFrame

    @property
    def table(self) -> pd.DataFrame:
        """All labels."""
        return self.labels


@dataclass(frozen=True, slots=True)
class TokenLabels:
    """Labels for every token, and the spans that they make."""

    # label, score (mean of its tokens, 0..1), start, end (characters of the text), text
    spans: pd.DataFrame
    # position, token, label, score (0..1), start, end; special tokens left out
    tokens: pd.DataFrame

    @property
    def table(self) -> pd.DataFrame:
        """The label of every token."""
        return self.tokens


@dataclass(frozen=True, slots=True)
class AnswerLoss:
    """The loss for a labeled answer, and its positions after clamping."""

    start: int  # as given
    end: int
    start_clamped: int  # at most the number of tokens, and that one is ignored
    end_clamped: int
    start_loss: float | None  # None: ignored
    end_loss: float | None
    loss: float | None  # what the model itself returns; None: both are ignored


@dataclass(frozen=True, slots=True)
class AnswerSpan:
    """The answer to the first text, as a span of the second."""

    answer: str  # of the second text, as it was typed
    score: float  # start times end probability
    start: int  # positions in the input
    end: int
    start_character: int  # of the second text
    end_character: int
    no_answer: float | None  # the same product at the first special token; None without one
    # The best spans: answer, score, start, end, start_character, end_character
    spans: pd.DataFrame
    # position, token, start_logit, end_logit, start_probability, end_probability, legal (bool)
    positions: pd.DataFrame
    loss: AnswerLoss | None  # None: no answer was labeled
    # (starts, ends) probabilities of each legal span, NaN elsewhere, for the shown positions
    grid: np.ndarray = local()
    shown: tuple[int, ...] = local()  # positions of the grid's rows and columns

    @property
    def table(self) -> pd.DataFrame:
        """The best spans."""
        return self.spans


@dataclass(frozen=True, slots=True)
class Choices:
    """How well each ending fits."""

    best: int  # place in the order of the choices
    choices: pd.DataFrame  # choice, text, probability (over the choices), logit

    @property
    def table(self) -> pd.DataFrame:
        """All endings."""
        return self.choices


@dataclass(frozen=True, slots=True)
class NextTokens:
    """The next token, and a continuation."""

    next: pd.DataFrame  # token, token_id, probability, logit; most likely first
    # step, token, token_id, probability (of the whole vocabulary, before temperature), rank
    # (0 = most likely), entropy (nats)
    steps: pd.DataFrame
    continuation: str
    sampled: bool
    stopped: str  # why the continuation stops

    @property
    def table(self) -> pd.DataFrame:
        """The most likely next tokens."""
        return self.next


@dataclass(frozen=True, slots=True)
class FilledTokens:
    """The most likely token at every position, masks included."""

    # position, token, token_id, prediction, prediction_id, probability, is_mask
    tokens: pd.DataFrame

    @property
    def table(self) -> pd.DataFrame:
        """Every position."""
        return self.tokens


@dataclass(frozen=True, slots=True)
class HeadAnswer:
    """One head's answer to the given texts."""

    architecture: str  # the class that ran
    head: str  # one of HEADS
    output: dict[str, tuple[int, ...]]  # field of the class's output -> shape
    result: NextSentence | Labels | TokenLabels | AnswerSpan | Choices | NextTokens | FilledTokens
    heads: dict[str, str]  # head -> "present" or "absent"
    output_class: str
    device: str
    dtype: str
    milliseconds: float  # the first forward pass, after the model is loaded
    tokens: tuple[tuple[str, ...], ...]  # what the model read, one entry per sequence
    warnings: tuple[str, ...]

    @property
    def table(self) -> pd.DataFrame:
        """The answer as rows, the most likely first where they are ranked."""
        return self.result.table
