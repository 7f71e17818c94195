"""The question: what does each task head answer?"""

from __future__ import annotations

from dataclasses import dataclass

from inspector.errors import RequestError
from inspector.placing import device, dtype, seed
from inspector.request import Request, option
from inspector.results.checkpoint import HEADS
from inspector.settings import Device, Dtype


@dataclass(frozen=True)
class HeadsRequest(Request):
    """Options of `heads`; each head uses those that concern it."""

    verb = "heads"

    text: str = option(help="Input text; for question answering, the question")
    pair: str = option("", "The text that follows, or the text with the answer", label="Second text")
    choices: tuple[str, ...] = option(
        (), "One of the endings to choose from", label="Endings", flag="--choice", split=False, items=64
    )
    head: str | None = option(None, "Head to run; by default the one that config.json names", choices=HEADS)
    k: int = option(10, "Number of next tokens to list", label="Next tokens", least=1, most=1_000)
    new_tokens: int = option(12, "Number of tokens to generate", label="New tokens", least=0, most=200)
    temperature: float = option(
        0.0,
        "0 takes the most likely token at each step; values above 0 sample, and higher values are more random",
        least=0,
        most=10,
        step=0.1,
    )
    seed: int = seed()
    longest_answer: int = option(15, "Maximum length of an answer span in tokens", least=1, most=500)
    right_answer: tuple[int, ...] = option(
        (), "Positions of the right answer's first and last token, such as 3,5, for the loss"
    )
    device: Device = device()
    dtype: Dtype = dtype()

    def __post_init__(self) -> None:
        """Refuse what no head could use.

        Raises:
            RequestError: If a value is out of its bounds, or the right answer is not two positions.
        """
        super().__post_init__()
        places = self.right_answer
        if len(places) == 1:  # a list names each item once, and an answer may be one token
            object.__setattr__(self, "right_answer", places * 2)
        if len(places) > 2 or not all(0 <= place < 2**31 for place in places):
            raise RequestError(
                "Right answer must be the positions of its first and last token, counted from 0, such as 3,5.",
                option="right_answer",
            )
