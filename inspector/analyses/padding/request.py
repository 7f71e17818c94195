"""The question: why is the padding vector not zero?"""

from __future__ import annotations

from dataclasses import dataclass

from inspector import placing
from inspector.errors import RequestError
from inspector.request import Request, option
from inspector.settings import Device, Dtype

MOST_SENTENCES = 64


@dataclass(frozen=True)
class PaddingRequest(Request):
    """Options of `padding`; without a text no model runs."""

    verb = "padding"

    text: str | None = option(
        None,
        "Sentences, one per line, for the gradient and the averages; they are padded together",
        label="Sentences, one per line",
    )
    device: Device = placing.device()
    dtype: Dtype = placing.dtype()

    def __post_init__(self) -> None:
        """Refuse a text that cannot form a batch.

        Raises:
            RequestError: If it has no sentence, or too many.
        """
        super().__post_init__()
        if self.text is not None and not self.sentences:
            raise RequestError("There is no sentence: type one or more, each on its own line.", option="text")
        if len(self.sentences) > MOST_SENTENCES:
            raise RequestError(
                f"There are {len(self.sentences):,} sentences: enter at most {MOST_SENTENCES}.", option="text"
            )

    @property
    def sentences(self) -> tuple[str, ...]:
        """The lines of the text; empty ones do not count."""
        lines = (line.strip() for line in (self.text or "").splitlines())
        return tuple(line for line in lines if line)
