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
# Name the processor time that native code may take, in the environment of a process that may be ended for it.
TOKENIZER, TEMPLATE = ("TOKENIZER_SECONDS", signal.ITIMER_PROF), ("TEMPLATE_SECONDS", signal.ITIMER_VIRTUAL)
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
    with translated(FAILS.format(text=text)), timed(*TOKENIZER):
        yield


@contextmanager
def timed(setting: str, timer: int) -> Iterator[None]:
    """Have the system end a worker, or a command's child, in which a stranger's work comes to no end.

    Native code hears nothing else. The parent says why (`death_error` in `inspector/sandbox/limits.py`). A process of
    one's own is not ended.

    Args:
        setting: Of the environment, with the seconds.
        timer: Whose signal ends the process.
    """
    seconds = float(os.environ.get(setting, "0"))
    if seconds:
        signal.setitimer(timer, seconds)
    try:
        yield
    finally:
        if seconds:
            signal.setitimer(timer, 0)


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
