"""The question: where would the model run, and in which precision?"""

from __future__ import annotations

from dataclasses import dataclass

from inspector import placing
from inspector.request import Request, option
from inspector.settings import Device, Dtype

TASKS = (
    "masked_lm",
    "causal_lm",
    "seq2seq_lm",
    "base",
    "pretraining",
    "next_sentence",
    "sequence_classification",
    "token_classification",
    "question_answering",
    "multiple_choice",
)


@dataclass(frozen=True)
class PlacementRequest(Request):
    """Options of `placement`; it reads no weights unless `device` is "stream", whose pass it times."""

    verb = "placement"

    task: str | None = option(
        None,
        "Head to place; default: the language-model head, or else the base model alone; if the file has neither, the "
        "class that config.json names",
        choices=TASKS,
    )
    device: Device = placing.device()
    dtype: Dtype = placing.dtype()
