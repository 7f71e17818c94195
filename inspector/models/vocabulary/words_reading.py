"""Sentences about how a tokenizer was read."""

from __future__ import annotations

from collections.abc import Sequence

from inspector.text import plural, shorten

SHOWN = 8  # tokens from the first that differs
BEFORE = 2  # tokens in front of it
LENGTH = 60  # characters of the text


def dropout(share: float) -> str:
    """The file drops merges at random."""
    return (
        f"The tokenizer's file sets BPE dropout to {share:.2g}, which splits a text differently each time: it is "
        "turned off here."
    )


def not_read(class_name: str) -> str:
    """The class of the checkpoint has a tokenizer of its own, or refuses the settings."""
    return (
        f"transformers' tokenizer class for this checkpoint, {class_name}, does not read its tokenizer.json. Texts are "
        f"split as tokenizer.json says: {class_name} may split them in another way."
    )


def no_pattern(file: str) -> str:
    """A file of tiktoken's has tokens alone."""
    return (
        f"{file} does not say how a text is split into words, nor which special tokens there are: texts are split as "
        "transformers does for such files, by the pattern of Llama 3."
    )


def other_split(class_name: str, text: str, here: Sequence[str], there: Sequence[str]) -> str:
    """The class splits a text otherwise than its file."""
    alike = next((place for place, (a, b) in enumerate(zip(here, there, strict=False)) if a != b), 0)
    first, second = (_some(tokens, max(alike - BEFORE, 0)) for tokens in (here, there))
    said = shorten(text, LENGTH)
    return (
        f"transformers reads this tokenizer as {class_name}, which replaces steps of tokenizer.json: it splits "
        f'"{said}" into {first}; tokenizer.json alone gives {second}. Texts are split as {class_name} does.'
    )


def past_rows(size: int, rows: int, missing: int, token: str, token_id: int) -> str:
    """Ids without rows, the first of them named."""
    which = f"({'such as ' if missing > 1 else ''}{token}, id {token_id:,})"
    return (
        f"The tokenizer knows {size:,} ids, but the embedding matrix has {rows:,} rows: "
        f"{plural(missing, 'id is', 'ids are')} past the last row {which}. A text with such a token crashes the model, "
        "and is refused here."
    )


def _some(tokens: Sequence[str], start: int) -> str:
    shown = tokens[start : start + SHOWN]
    return f"{'… ' * bool(start)}{' | '.join(shown)}{' …' * (start + SHOWN < len(tokens))}"
