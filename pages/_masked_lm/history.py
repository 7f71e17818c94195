"""What was asked in this session: the sentences with the best answers, to go back to."""

from __future__ import annotations

from dataclasses import dataclass

import pandas as pd
import streamlit as st

from inspector.analyses.masked_lm.result import Prediction
from inspector.results.checkpoint import Opened
from inspector.text import literal
from pages._masked_lm import answers as masked_answers
from pages._masked_lm import inputs as masked_inputs
from pages._masked_lm import text as masked_text
from pages._masked_lm.inputs import MaskedSentence
from pages._ui import session, table_files

KEY = "masked history"
MOST, SHOWN = 200, 30


@dataclass(frozen=True, slots=True)
class HistoryEntry:
    """One sentence that was asked."""

    name: str  # of the checkpoint
    reference: str
    text: str  # as it was typed
    clicked: tuple[int, ...]
    read: str  # with the masks in place
    answers: tuple[str, ...]  # the best of each mask with its probability
    typed: bool  # True: it came by typing


def note(checkpoint: Opened, sentence: MaskedSentence, prediction: Prediction) -> None:
    """Remember an answer; what is still being typed takes the place of what it began as."""
    entries: list[HistoryEntry] = st.session_state.setdefault(KEY, [])
    entry = HistoryEntry(
        name=checkpoint.name,
        reference=checkpoint.reference,
        text=sentence.text,
        clicked=sentence.clicked,
        read=prediction.text,
        answers=tuple(masked_answers.best(mask) for mask in prediction.masks),
        typed=bool(st.session_state.get(masked_inputs.TYPED)),
    )
    if entries and _asks_the_same(entries[-1], entry):
        return
    if entries and _goes_on(entries[-1], entry):
        entries.pop()
    entries[:] = [old for old in entries if not _asks_the_same(old, entry)][-(MOST - 1) :]
    entries.append(entry)


def draw() -> None:
    """List the sentences, the newest first."""
    entries: list[HistoryEntry] = st.session_state.get(KEY, [])
    if not entries:
        st.info("This session has no questions yet.", icon=":material/history:")
        return
    for number, entry in list(enumerate(entries))[: -SHOWN - 1 : -1]:
        with st.container(horizontal=True, vertical_alignment="center"):
            st.button(
                literal(entry.read),
                key=f"again {number}",
                type="tertiary",
                on_click=_go_back,
                args=(entry,),
                icon=":material/undo:",
                help="Run it again",
            )
            st.caption(f"{literal(' · '.join(entry.answers))} ({literal(entry.name)})")
    with st.container(horizontal=True):
        table_files.offer(table(entries), name="masked-lm-history")
        st.button("Clear history", icon=":material/delete:", on_click=st.session_state.pop, args=(KEY, None))


def table(entries: list[HistoryEntry]) -> pd.DataFrame:
    """The history as a table, the newest first: checkpoint, text, masks, read, answers."""
    return pd.DataFrame(
        [
            {
                "checkpoint": entry.name,
                "text": entry.text,
                "masks": ",".join(map(str, entry.clicked)),
                "read": entry.read,
                "answers": " · ".join(entry.answers),
            }
            for entry in reversed(entries)
        ]
    )


def _asks_the_same(one: HistoryEntry, other: HistoryEntry) -> bool:
    return (one.reference, one.text, one.clicked) == (other.reference, other.text, other.clicked)


def _goes_on(last: HistoryEntry, entry: HistoryEntry) -> bool:
    """True while one place of the text is being typed at."""
    return (
        last.typed
        and entry.typed
        and last.reference == entry.reference
        and masked_text.is_one_edit(last.text, entry.text)
    )


def _go_back(entry: HistoryEntry) -> None:
    masked_inputs.replace(entry.text, entry.clicked)
    if entry.reference != session.opened().reference:
        session.want(entry.reference)
