"""A second checkpoint on the same sentence."""

from __future__ import annotations

from dataclasses import dataclass, replace

import pandas as pd
import streamlit as st

from inspector.analyses.masked_lm import words
from inspector.analyses.masked_lm.frames import join_answers
from inspector.analyses.masked_lm.request import PredictRequest
from inspector.analyses.masked_lm.result import Mask, Prediction
from inspector.analyses.overview.request import OverviewRequest
from inspector.analyses.overview.result import Overview
from inspector.plotting.predictions import topk_bars
from inspector.results.checkpoint import Opened
from inspector.text import literal
from pages._masked_lm import inputs as masked_inputs
from pages._masked_lm import text as masked_text
from pages._masked_lm.inputs import MaskedSentence
from pages._ui import beside, parts, session, table_files

DRAWN = 4  # masks side by side
BARS = 10
COLUMNS = {
    "here": st.column_config.NumberColumn("probability here", format="percent"),
    "there": st.column_config.NumberColumn("probability there", format="percent"),
}


@dataclass(frozen=True, slots=True)
class Moved:
    """The sentence as another checkpoint is asked it."""

    sentence: MaskedSentence
    exact: bool  # False: a clicked token is none of its own, and was written as a mask


def draw(checkpoint: Opened, sentence: MaskedSentence, request: PredictRequest, prediction: Prediction | None) -> None:
    """Ask a second checkpoint the same masks and show both answers."""
    names = beside.references(checkpoint)
    name = beside.pick(names)
    if prediction is None:
        st.info("First mask a token: click one above.", icon=":material/ads_click:")
        return
    if name is None:
        st.caption("Choose one of your uploads, or type a hub model as hub:NAME or a folder as path:FOLDER.")
        return
    other = session.open_beside(names.get(name, name))
    if other is None:
        return
    overview: Overview | None = session.ask(OverviewRequest(), of=other)
    if overview is None:
        return
    if overview.heads["masked_lm"] != "present":
        st.info(literal(words.no_head(other.name)), icon=":material/info:")
        return
    moved = move(sentence, other, mask=overview.mask_token)
    request = replace(request, text=moved.sentence.text, masks=moved.sentence.clicked)
    second: Prediction | None = session.ask(request, of=other)
    if second is None and request.targets:  # its vocabulary may lack them
        st.caption(words.WHOLE_VOCABULARY)
        second = session.ask(replace(request, targets=()), of=other)
    if second is not None:
        _show(checkpoint, other, prediction, second, moved)


def move(sentence: MaskedSentence, other: Opened, *, mask: str | None) -> Moved:
    """Ask another checkpoint for the same characters: its masks, and its tokens under clicks.

    Args:
        mask: Its mask token.
    """
    text, kept = _with_mask(sentence, mask or "", clicked=False)
    there = masked_inputs.tokenized(text, of=other)
    clicked = masked_text.standing(kept, there)
    if len(clicked) == len(sentence.clicked):
        return Moved(MaskedSentence(text, there, clicked, ()), exact=True)
    text, _ = _with_mask(sentence, mask or "", clicked=True)
    return Moved(MaskedSentence(text, (), (), ()), exact=False)


def _with_mask(sentence: MaskedSentence, mask: str, *, clicked: bool) -> tuple[str, set[masked_text.Place]]:
    """Write another mask token into the text; gives also where the clicked tokens then stand."""
    text, moved = sentence.text, 0
    kept: set[masked_text.Place] = set()
    spots = masked_text.places(sentence.pieces)
    for piece in sentence.pieces:
        is_clicked = piece.position in sentence.clicked
        if is_clicked and not clicked:
            start, end, number = spots[piece.position]
            kept.add((start + moved, end + moved, number))
        if piece.kind == "mask" or (is_clicked and clicked):
            space = " " if text[piece.start + moved : piece.end + moved].startswith(" ") else ""
            text = text[: piece.start + moved] + space + mask + text[piece.end + moved :]
            moved += len(space + mask) - (piece.end - piece.start)
    return text, kept


def _show(checkpoint: Opened, other: Opened, first: Prediction, second: Prediction, moved: Moved) -> None:
    parts.warnings(second.warnings)
    if not moved.exact:
        st.info(literal(words.rewritten(other.name)), icon=":material/info:")
    elif len(first.tokens) != len(second.tokens):
        st.caption(words.split_apart(len(first.tokens), len(second.tokens)))
    if len(first.masks) != len(second.masks):
        st.warning(words.masks_apart(len(first.masks), len(second.masks)), icon=":material/warning:")
        return
    for mine, theirs in list(zip(first.masks, second.masks, strict=True))[:DRAWN]:
        _mask(checkpoint, other, mine, theirs)
    if len(first.masks) > DRAWN:
        st.caption(f"The first {DRAWN} of {len(first.masks)} masks are shown; the file has all of them.")
    every = pd.concat(
        [
            join_answers(mine, theirs).assign(mask=number)
            for number, (mine, theirs) in enumerate(zip(first.masks, second.masks, strict=True), 1)
        ]
    )
    table_files.offer(every, name=f"{checkpoint.name}-{other.name}")


def _mask(checkpoint: Opened, other: Opened, mine: Mask, theirs: Mask) -> None:
    sides = zip(parts.grid(2, wide=2), ("first", "second"), (checkpoint, other), (mine, theirs), strict=True)
    for place, side, owner, mask in sides:
        with place:
            parts.chart(
                parts.drawn(
                    lambda theme, mask=mask, owner=owner: topk_bars(
                        mask.predictions.head(BARS),
                        title=f"{owner.name}, mask at position {mask.position}",
                        theme=theme,
                    )
                ),
                alt=f"Most likely tokens of {owner.name}; the table below joins both",
                key=f"{side} beside at {mask.position}",
            )
    joined = join_answers(mine, theirs)
    shared = len(joined.dropna(subset=["here", "there"]))
    listed = (len(mine.predictions), len(theirs.predictions))
    st.markdown(literal(words.shared(shared, (checkpoint.name, other.name), listed)))
    parts.table(joined, columns=COLUMNS, alt="Tokens of both checkpoints with their probabilities")
