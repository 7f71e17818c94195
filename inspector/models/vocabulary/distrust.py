"""Run a tokenizer of strangers: it may panic, fail, or make a text longer without end."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager

from tokenizers import Encoding, Tokenizer, normalizers

from inspector.errors import CheckpointError, InspectorError
from inspector.models.vocabulary.panics import unprinted

MAX_NORMALIZED = 500_000  # characters that a normalizer may make of a text
MAX_INSERTED = 100  # characters that a step of it may insert in every place; usual ones insert three
# Names the processor time that a call may take, in the environment of a process that may be ended for it.
SECONDS = "TOKENIZER_SECONDS"
FAILS = "The checkpoint's tokenizer fails on {text}: compare the tokenizer's files with their source."


@contextmanager
def translated(said: str) -> Iterator[None]:
    """Turn whatever a library raises into a sentence.

    Raises:
        CheckpointError: If it raises, or panics.
    """
    try:
        with unprinted():
            yield
    except (InspectorError, KeyboardInterrupt, SystemExit, MemoryError):
        raise
    except BaseException as error:  # the Rust library panics past Exception
        raise CheckpointError(said) from error


@contextmanager
def careful(text: str) -> Iterator[None]:
    """Turn what a hostile tokenizer does while it runs into a sentence.

    Args:
        text: What it is given, as in "this text".

    Raises:
        CheckpointError: If it breaks down.
    """
    with translated(FAILS.format(text=text)), _timed():
        yield


@contextmanager
def _timed() -> Iterator[None]:
    """Have the system end a worker, or a command's child, whose tokenizer comes to no end: native code hears nothing.

    Its parent says why (`death_error` in `inspector/sandbox/limits.py`). A process of one's own is not ended.
    """
    seconds = float(os.environ.get(SECONDS, "0"))
    if seconds:
        signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        if seconds:
            signal.setitimer(signal.ITIMER_PROF, 0)


def encode_carefully(
    tokenizer: Tokenizer, text: str, pair: str | None = None, *, add_special_tokens: bool = True
) -> Encoding:
    """Tokenize with what is not trusted.

    Raises:
        CheckpointError: If it breaks down on the text, or makes it longer without end.
    """
    for part in (text, pair or ""):
        _check_growth(tokenizer, part)
    with careful("this text"):
        return tokenizer.encode(text, pair, add_special_tokens=add_special_tokens)


def _check_growth(tokenizer: Tokenizer, text: str) -> None:
    """Refuse a text that a normalizer makes longer without end, step by step, before the tokens are made.

    Raises:
        CheckpointError: If it does.
    """
    for length in _lengths(tokenizer, text):
        if length > MAX_NORMALIZED:
            raise CheckpointError(
                f"The checkpoint's tokenizer can turn a text of {len(text):,} characters into {length:,}: check "
                "the normalizer in its tokenizer.json."
            )


def _lengths(tokenizer: Tokenizer, text: str) -> Iterator[int]:
    """How long each step of the normalizer makes a text, and how long at most before one that inserts much."""
    normalizer = tokenizer.normalizer
    is_sequence = isinstance(normalizer, normalizers.Sequence)
    for step in [normalizer[place] for place in range(len(normalizer))] if is_sequence else [normalizer]:
        inserted = getattr(step, "content", getattr(step, "prepend", ""))
        if len(inserted) > MAX_INSERTED:
            yield len(inserted) * (1 + len(text))
        with careful("this text"):
            text = step.normalize_str(text) if step else text
        yield len(text)
