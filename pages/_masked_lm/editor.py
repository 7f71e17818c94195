"""The live editor as a Streamlit component: a text that is answered while it is typed.

Its tokens are buttons that mask them. Streamlit's own text area tells its text only when it is
left, and knows no tokens.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import streamlit as st
from streamlit.components.v2 import component

HERE = Path(__file__).parent
_mount = component(
    "masked_editor",
    html=(HERE / "editor.html").read_text(encoding="utf-8"),
    css=(HERE / "editor.css").read_text(encoding="utf-8"),
    js=(HERE / "editor.js").read_text(encoding="utf-8"),
)


@dataclass(frozen=True, slots=True)
class Chip:
    """One token under the text."""

    at: int  # its position
    text: str  # visible form
    kind: str  # "word", "mask" (written as a mask) or "special" (cannot be masked)
    start: int  # characters of the text
    end: int
    joined: bool  # it continues the word of the token before
    masked: bool = False  # it was clicked
    note: str = ""  # second line
    title: str = ""  # shown under the pointer
    color: str | None = None  # "#rrggbb" behind it; None for none
    ink: str = ""  # readable on that


@dataclass(frozen=True, slots=True)
class Edit:
    """What a person did in the editor."""

    text: str
    of: str  # the text whose tokens the masks count
    masks: tuple[int, ...]  # positions that were clicked
    serial: int  # of the report: 1, 2, …
    typed: bool  # False: a token was clicked


def editor(
    text: str,
    chips: Sequence[Chip],
    *,
    key: str,
    serial: int,
    mask: str | None,
    hint: str,
    pending: bool,
    on_edit: Callable[[Edit], None],
) -> None:
    """Show the editor.

    Args:
        text: What it holds, unless the person has typed on meanwhile.
        chips: The text's tokens; none where it cannot be tokenized.
        serial: Of the last edit that was read, 0 for none.
        mask: The mask token, offered for inserting; None where the tokenizer has none.
        hint: One line of plain text below.
        pending: True: the masks' answers are still being computed.
        on_edit: Told what the person did, before the script runs anew.
    """

    def edited() -> None:
        edit = read(st.session_state[key].edit)
        if edit:
            on_edit(edit)

    _mount(
        key=key,
        data={
            "label": "Text",
            "placeholder": "Type a sentence",
            "text": text,
            "tokens": [asdict(chip) for chip in chips],
            "serial": serial,
            "mask": mask or "",
            "hint": hint,
            "pending": pending,
        },
        on_edit_change=edited,
    )


def read(sent: Any) -> Edit | None:
    """Read what the browser reports; None where it is no edit."""
    if not isinstance(sent, dict):
        return None
    masks, serial = sent.get("masks"), sent.get("serial")
    if not isinstance(masks, list) or not isinstance(serial, int):
        return None
    return Edit(
        text=_characters(sent.get("text")),
        of=_characters(sent.get("of")),
        masks=tuple(place for place in masks if isinstance(place, int)),
        serial=serial,
        typed=bool(sent.get("typed")),
    )


def _characters(text: Any) -> str:
    """A browser can send half of a surrogate pair, which nothing can pass on."""
    return str(text or "").encode("utf-8", "replace").decode("utf-8")
