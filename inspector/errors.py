"""Errors whose text is written for the person who sees it."""

from __future__ import annotations

from inspector.text import escaped

STOPPED = "Stopped. Run it again."
CLOSING = "The app is shutting down: start it again, then try again."


class InspectorError(Exception):
    """A failure whose text pages and command line show as it is: one sentence, a next step.

    What a stranger's file put into it stays on one line and cannot speak to a terminal.
    """

    def __init__(self, text: str = "", *, option: str = "") -> None:
        """Keep the sentence, and the name of the option whose value is at fault, if it is one's."""
        super().__init__(escaped(text))
        self.option = option


class SettingsError(InspectorError):
    """An environment variable holds a value that cannot be used."""


class CheckpointError(InspectorError):
    """The input was refused: empty, broken, unsafe, too large or not a checkpoint."""


class NotInCheckpointError(InspectorError):
    """The analysis needs weights or a tokenizer that this checkpoint does not hold."""


class RequestError(InspectorError):
    """The parameters of a request do not fit the checkpoint: too long a text, an unknown token."""


class WorkerError(InspectorError):
    """The worker process died, ran out of memory or ran out of time."""


class CancelledError(InspectorError):
    """The person who asked for the work stopped it."""
