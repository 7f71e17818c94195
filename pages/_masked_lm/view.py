"""The editor of the masked-LM page with what is known of each token, and where the model ran."""

from __future__ import annotations

from typing import Any

import streamlit as st

from inspector.analyses.masked_lm import words
from inspector.analyses.masked_lm.result import Prediction
from inspector.analyses.plausibility.figures import surprisal_colors
from inspector.analyses.plausibility.result import Plausibility
from inspector.results.checkpoint import Opened
from inspector.text import literal, percent_text
from pages._masked_lm import answers as masked_answers
from pages._masked_lm import editor as masked_editor
from pages._masked_lm import inputs as masked_inputs
from pages._masked_lm.editor import Chip
from pages._masked_lm.inputs import MaskedSentence
from pages._ui import inputs, session

KEY = "masked editor"


def draw_editor(sentence: MaskedSentence, prediction: Prediction | None, plausibility: Plausibility | None) -> None:
    """Draw the text with its tokens.

    Args:
        prediction: Its answer, written on the masks; None while there is none.
        plausibility: Of the same text, as colors; None for no colors.
    """
    mask = inputs.mask_token()
    masked_editor.editor(
        sentence.text,
        chips(sentence, prediction, plausibility),
        key=KEY,
        serial=st.session_state.get(masked_inputs.SERIAL, 0),
        mask=mask,
        hint=_hint(sentence),
        pending=prediction is None and bool(sentence.masks),
        on_edit=masked_inputs.report,
    )


def chips(sentence: MaskedSentence, prediction: Prediction | None, plausibility: Plausibility | None) -> list[Chip]:
    """What the editor shows of each token."""
    answers = {mask.position: masked_answers.best(mask) for mask in prediction.masks} if (prediction) else {}
    judged = _judged(plausibility)
    result = []
    for piece in sentence.pieces:
        color, note, title = judged.get(piece.position, (None, "", ""))
        masked = piece.position in sentence.clicked
        if masked or piece.kind == "mask":
            color, note, title = None, answers.get(piece.position, ""), _mask_title(piece.kind)
        result.append(
            Chip(
                at=piece.position,
                text=piece.token,
                kind=piece.kind,
                start=piece.start,
                end=piece.end,
                joined=piece.joined,
                masked=masked,
                note=note,
                title=title,
                color=color,
                ink=session.theme().ramp_ink,
            )
        )
    return result


def redraw(question: Any) -> None:
    """Run again, so that the editor shows what has come; never twice for the same question."""
    if st.session_state.get("masked redrawn") != question:
        st.session_state["masked redrawn"] = question
        st.rerun()


def invite() -> None:
    """Say what to do with a sentence without a mask."""
    mask = inputs.mask_token()
    typed = f", or type {literal(mask)} in place of a word" if mask else ""
    st.info(f"No token is masked yet: click one or more of the tokens above{typed}.", icon=":material/ads_click:")


def draw_device(prediction: Prediction, checkpoint: Opened) -> None:
    """Say where the model ran, how long it took, and what it holds."""
    with st.container(horizontal=True, vertical_alignment="center"):
        st.caption(literal(words.ran(prediction)))
        if any(worker.fingerprint == checkpoint.fingerprint for worker in session.engine().workers()):
            st.button(
                "Release memory",
                icon=":material/eject:",
                on_click=_free,
                args=(checkpoint.fingerprint,),
                help="Ends the process that runs the model. Answers stay; the next question loads the model again.",
            )
    freed = st.session_state.pop("masked freed", None)
    if freed is not None:
        st.toast("The memory has been freed." if freed else "The model is busy: try again in a moment.")


def _judged(plausibility: Plausibility | None) -> dict[int, tuple[str | None, str, str]]:
    """Color, note and title by position."""
    if plausibility is None:
        return {}
    theme = session.theme()
    result = {}
    judged = plausibility.tokens.dropna(subset=["bits"])
    colors = surprisal_colors(judged["bits"].tolist(), theme=theme)
    for row, color in zip(judged.to_dict("records"), colors, strict=True):
        percent = percent_text(float(row["probability"]))
        title = f"{percent}, rank {row['rank']:,}; most likely here: {row['best_token']}"
        result[int(row["position"])] = (color, percent, title)
    return result


def _mask_title(kind: str) -> str:
    if kind == "mask":
        return "Typed in the text: click to select it there"
    return "Masked: click to unmask"


def _hint(sentence: MaskedSentence) -> str:
    if not sentence.pieces:
        return ""
    tokens, count = len(sentence.pieces), len(sentence.masks)
    if sentence.longest and tokens > sentence.longest:
        return f"The text has {tokens:,} tokens, but the model takes at most {sentence.longest:,}."
    if not count:
        return "Click a token to mask it, or type the mask token."
    masks = "1 mask" if count == 1 else f"{count} masks"
    return f"{masks} in {tokens} tokens. Click any other token to mask it as well."


def _free(fingerprint: str) -> None:
    st.session_state["masked freed"] = session.engine().release(fingerprint)
