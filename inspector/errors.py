"""Errors with messages for users."""

from __future__ import annotations

from pathlib import Path

from inspector.text import escaped

STOPPED = "Stopped. Run it again."
CLOSING = "The app is shutting down: start it again, then try again."


class InspectorError(Exception):
    """A failure with a message for users: one sentence with the next step.

    Text from a stranger's file stays on one line, without control characters.
    """

    def __init__(self, text: str = "", *, option: str = "") -> None:
        """Keep the sentence, and the name of the option whose value is at fault, if it is one's."""
        super().__init__(escaped(text))
        self.option = option


class SettingsError(InspectorError):
    """An environment variable has an invalid value."""


class CheckpointError(InspectorError):
    """The input was refused: empty, broken, unsafe, too large or not a checkpoint."""


class NotInCheckpointError(InspectorError):
    """The analysis needs weights or a tokenizer that this checkpoint does not contain."""


class WeightsOnHubError(InspectorError):
    """The analysis needs numbers, and of a model on the hub the headers alone were fetched: fetch it, and ask again."""


class NoTokenizerError(NotInCheckpointError):
    """The checkpoint brings no tokenizer, and the analysis needs one."""


class RequestError(InspectorError):
    """The parameters of a request do not fit the checkpoint, such as a text that is too long."""


class MissingLibraryError(RequestError):
    """What was asked needs a library that is not installed."""


def cannot_write(path: Path, error: OSError) -> RequestError:
    """What to raise if a file cannot be written."""
    return RequestError(
        f"{path.name} cannot be written ({error.strerror or 'no access'}): choose a file in an existing folder that "
        "you can write to."
    )


class WorkerError(InspectorError):
    """The worker process died, ran out of memory or ran out of time."""


class CancelledError(InspectorError):
    """The user stopped the work."""
