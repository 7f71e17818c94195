"""Texts whose tokens are colored and named."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pandas as pd
import streamlit as st

from inspector.analyses.heads.result import KEPT, MASKED, NOT_CHOSEN, REPLACED
from inspector.analyses.pretraining.result import Pretraining
from inspector.analyses.tokenization.result import Tokenization
from inspector.text import literal, percent_text

COLORS = ("blue", "green", "orange", "violet", "red", "yellow", "primary")
KINDS = {"first": "blue", "second": "green", "special": "violet", "padding": "gray", "unknown": "red"}
FATES = {MASKED: "orange", REPLACED: "red", KEPT: "green"}
MOST = 300  # tokens


def spans(text: str, found: pd.DataFrame) -> None:
    """A text with its labeled spans."""
    colors = {label: COLORS[place % len(COLORS)] for place, label in enumerate(dict.fromkeys(found["label"]))}
    st.markdown(" ".join(filter(None, _spans(text, found, colors))))


def _spans(text: str, found: pd.DataFrame, colors: dict[str, str]) -> Iterator[str]:
    at = 0
    for span in found.to_dict("records"):
        yield literal(text[at : span["start"]])
        said = f"{literal(span['text'])} **{literal(span['label'])}** {percent_text(span['score'])}"
        yield f":{colors[span['label']]}-background[{said}]"
        at = span["end"]
    yield literal(text[at:])


def chosen(result: Pretraining) -> None:
    """The input as the model reads it; a chosen token with what it was."""
    st.markdown(" ".join(map(_fate, result.tokens.head(MOST).to_dict("records"))))


def _fate(row: dict[str, Any]) -> str:
    what, after = row["what"], literal(row["after"])
    return after if what == NOT_CHOSEN else f":{FATES[what]}-background[{after} {what}, was {literal(row['before'])}]"


def tokens(result: Tokenization) -> None:
    """Each token of the first text as a badge; a legend names the colors."""
    rows = result.tokens
    rows = pd.DataFrame(rows[(rows["sequence"] == 0) & (rows["attention"] == 1)])
    kinds = ["unknown" if row["is_unknown"] else row["part"] or "special" for row in rows.to_dict("records")]
    badges = [
        f":{KINDS[kind]}-badge[{literal(token)}]"
        for kind, token in zip(kinds[:MOST], rows["token"].head(MOST), strict=True)
    ]
    names = {"first": "first text", "second": "second text"}
    legend = ", ".join(f":{color}[{names.get(kind, kind)}]" for kind, color in KINDS.items() if kind in kinds)
    rest = f" … and {len(rows) - MOST:,} more" if len(rows) > MOST else ""
    st.markdown(f"{' '.join(badges)}{rest}\n\nColors: {legend}.")
