"""Text that may have been written by a stranger, made safe for the pages."""

from __future__ import annotations

from collections.abc import Iterable

import pandas as pd
from pandas.api.types import is_object_dtype, is_string_dtype

from inspector.program import command_line
from inspector.results.checkpoint import Opened
from inspector.serving.place import serves_others
from inspector.store.reference import origin_of
from inspector.text import literal, visible


def listed(texts: Iterable[str]) -> str:
    """Plain texts as a list in Markdown."""
    return "\n".join(f"- {literal(text)}" for text in texts)


def paragraphs(texts: Iterable[str]) -> str:
    """Plain texts as paragraphs in Markdown."""
    return "\n\n".join(map(literal, texts))


def shown(frame: pd.DataFrame) -> pd.DataFrame:
    """A frame whose texts hold nothing that is not seen, or that turns other text around."""
    texts = {
        str(name): column.map(lambda value: visible(value) if isinstance(value, str) else value)
        for name, column in frame.items()
        if is_string_dtype(column) or is_object_dtype(column)
    }
    return frame.assign(**texts) if texts else frame


def command(verb: str, checkpoint: Opened, *options: str) -> str:
    """The command line that gives the same answer."""
    named, *adapter = map(source, checkpoint.parts)
    return command_line([verb, named, *(f"--adapter={each}" for each in adapter), *options])


def source(checkpoint: Opened) -> str:
    """What a checkpoint is called on the command line; others are not told the server's folders."""
    origin = origin_of(checkpoint.reference)
    return origin.path.name if origin.path and serves_others() else origin.typed
