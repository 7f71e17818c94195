"""Answer many questions with few passes: in each round, all that they want read next is one batch.

A question is a generator. It yields what it wants read, is sent what was read there, and returns
its answer. Rows that several questions want are read once.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from inspector.models.checkpoint import StagedCheckpoint
from inspector.models.masking.head import Row, masked_logits
from inspector.models.running import Loaded, memory_guard
from inspector.progress import Progress


@dataclass(frozen=True, slots=True)
class MaskReading:
    """What the model answers at some positions of a row, next to each other in its order."""

    logits: torch.Tensor  # (positions, vocab) in float32, on the device
    log_probability: torch.Tensor  # likewise, over the whole vocabulary
    milliseconds: float  # of the pass

    @property
    def finite(self) -> list[bool]:
        """For each position whether its logits make probabilities: one NaN among them makes every one NaN."""
        return (~self.log_probability.isnan().any(dim=1)).tolist()


@dataclass(frozen=True, slots=True)
class Wanted:
    """A row, and what is kept of its scores: one entry for each of its positions."""

    row: Row
    keep: Callable[[MaskReading], Sequence[Any]]


def keep_token(index: int) -> Callable[[MaskReading], list[float]]:
    """Keep one token's log probability."""
    return lambda reading: reading.log_probability[:, index].tolist()


# Yields what is to be read, gets for each its list of entries, returns an answer.
Question = Generator[list[Wanted], Any, Any]


def answer_all(
    checkpoint: StagedCheckpoint, loaded: Loaded, questions: Sequence[Question], *, progress: Progress
) -> list[Any]:
    """Answer questions together.

    Returns:
        Their answers, in order.

    Raises:
        WorkerError: If the device has too little memory.
    """
    answers: dict[int, Any] = {}
    found: dict[int, Any] = dict.fromkeys(range(len(questions)))
    while found:
        asked: dict[int, list[Wanted]] = {}
        for number, sent in found.items():
            try:
                asked[number] = questions[number].send(sent)
            except StopIteration as done:
                answers[number] = done.value
        found = _read(checkpoint, loaded, asked, progress) if asked else {}
    return [answers[number] for number in range(len(questions))]


def _read(
    checkpoint: StagedCheckpoint, loaded: Loaded, asked: dict[int, list[Wanted]], progress: Progress
) -> dict[int, list[list[Any]]]:
    """Read what every question wants, each row once."""
    readers: dict[Row, list[tuple[Wanted, list[Any]]]] = {}
    found: dict[int, list[list[Any]]] = {}
    for number, several in asked.items():
        found[number] = [[] for _ in several]
        for wanted, kept in zip(several, found[number], strict=True):
            readers.setdefault(wanted.row, []).append((wanted, kept))
    rows = list(readers)
    told = f"Reading {len(rows):,} texts" if len(rows) > 1 else "Reading the text"
    for number, answer in enumerate(masked_logits(checkpoint, loaded, rows)):
        progress(min(number / len(rows), 1.0), told)
        with memory_guard(loaded), torch.inference_mode():
            log_probability = answer.logits.log_softmax(dim=1)
            reading = MaskReading(answer.logits, log_probability, answer.milliseconds)
            for wanted, kept in readers[rows[answer.index]]:
                kept.extend(wanted.keep(reading))
    return found
