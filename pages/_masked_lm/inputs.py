"""Inputs of the masked-LM page, all of them in the address bar."""

from __future__ import annotations

from dataclasses import dataclass

import streamlit as st

from inspector.analyses.masked_lm.request import PredictRequest
from inspector.analyses.tokenization.request import TokenizeRequest
from inspector.analyses.tokenization.result import Tokenization
from inspector.errors import RequestError
from inspector.request import join_list, parse_numbers
from inspector.results.checkpoint import Opened
from pages._masked_lm import text as masked_text
from pages._masked_lm.editor import Edit
from pages._masked_lm.text import Piece, Place
from pages._ui import address, inputs, options, session

SLUG = "masked_lm"
TEXT, MASKS = "text", "masks"  # keys of the fields that hold them, and names in the link
EDIT = "masked edit"  # what was done in the editor and not yet read
SERIAL = "masked serial"  # of the last edit that was read
TYPED = "masked typed"  # True: that edit was typing
BEFORE = "masked before"  # the last run's text and masks, for coming back and other checkpoints
# What is shown stands in the link as it is written here.
VIEWS = ("Answers", "Plausibility", "Two sentences", "Two checkpoints", "History")
HIDE = "<style>.st-key-masked_link {display: none}</style>"


@dataclass(frozen=True, slots=True)
class MaskedSentence:
    """A text, its tokens, and which of them are masked."""

    text: str
    pieces: tuple[Piece, ...]  # none where the checkpoint cannot tokenize the text
    clicked: tuple[int, ...]  # positions that were clicked
    examples: tuple[str, ...]
    longest: int | None = None  # tokens that the model takes; None where nothing bounds it

    @property
    def masks(self) -> tuple[int, ...]:
        """Positions of all masks, those written in the text too."""
        written = [piece.position for piece in self.pieces if piece.kind == "mask"]
        return tuple(sorted({*written, *self.clicked}))


def read(checkpoint: Opened) -> MaskedSentence:
    """Read the sentence from the link, the last edit, or an example."""
    state = st.session_state
    examples = inputs.begin(checkpoint, slug=SLUG)
    edit: Edit | None = state.pop(EDIT, None)
    if edit:
        state[TEXT] = edit.text
    link = st.container(key="masked_link")  # never seen: it ties the link to the editor
    with link:
        st.html(HIDE)
        text = st.text_area("Text in the link", examples[0], key=TEXT, bind="query-params")
    pieces = tokenized(text)
    kept = _clicked(checkpoint, edit, text, pieces)
    if kept is not None:
        state[MASKS] = join_list(kept)
    with link:
        linked = st.text_input("Masks in the link", key=MASKS, bind="query-params")
    maskable = masked_text.places(pieces)
    asked = _positions(linked)
    clicked = tuple(sorted(asked & maskable.keys()))
    if pieces and (nowhere := sorted(asked - maskable.keys())):
        address.say_lost(MASKS, address.LostValue(", ".join(map(str, nowhere)), ""))
    state[BEFORE] = (checkpoint.fingerprint, text, {maskable[place] for place in clicked})
    inputs.remember(text, examples)
    return MaskedSentence(text, pieces, clicked, examples, _longest(text))


def report(edit: Edit) -> None:
    """Take what was done in the editor; the run that follows reads it."""
    st.session_state[EDIT] = edit
    st.session_state[SERIAL], st.session_state[TYPED] = edit.serial, edit.typed


def replace(text: str, clicked: tuple[int, ...] = ()) -> None:
    """Put another sentence into the editor; for callbacks."""
    st.session_state.pop(EDIT, None)
    st.session_state[TEXT] = text
    st.session_state[MASKS] = join_list(clicked)
    st.session_state[TYPED] = False


def tokenized(text: str, *, of: Opened | None = None) -> tuple[Piece, ...]:
    """Tokens of a text; none where there is no tokenizer, or it refuses the text."""
    result = _tokenization(text, of)
    return masked_text.pieces(result, text) if result else ()


def choose(sentence: MaskedSentence) -> tuple[PredictRequest, str]:
    """Draw the fields below the editor.

    Returns:
        The request, and what is shown of its answer.
    """
    fields, below = inputs.controls()
    with fields:
        view = _choose_view()
        targets = options.ask(
            PredictRequest,
            "targets",
            type="search",
            live=True,
            placeholder="Words to compare",
            label_visibility="collapsed",
        )
        with inputs.examples_place():
            inputs.offer(sentence.examples, on_take=_take_example)
        with inputs.folded_options():
            k = options.ask(PredictRequest, "k")
            order = options.ask(PredictRequest, "order")
            device, dtype = inputs.placement(below)
    asked = options.make(
        PredictRequest,
        text=sentence.text,
        masks=sentence.clicked,
        k=k,
        targets=targets,
        order=order,
        device=device,
        dtype=dtype,
    )
    return asked, view


def _choose_view() -> str:
    return st.segmented_control(
        "Show", VIEWS, default=VIEWS[0], required=True, key="view", bind="query-params", label_visibility="collapsed"
    )


def _take_example() -> None:
    replace(st.session_state[TEXT])


def _clicked(checkpoint: Opened, edit: Edit | None, text: str, pieces: tuple[Piece, ...]) -> tuple[int, ...] | None:
    """Positions that stay masked; None: those that the link says."""
    if edit:
        there = masked_text.places(tokenized(edit.of))
        kept: set[Place] = {there[place] for place in edit.masks if place in there}
        return masked_text.standing(masked_text.carry(kept, old=edit.of, new=text), pieces)
    fingerprint, before, kept = st.session_state.get(BEFORE, (None, None, set()))
    changed = MASKS not in st.session_state or fingerprint != checkpoint.fingerprint
    if changed and before == text:
        return masked_text.standing(kept, pieces)
    return None


def _tokenization(text: str, of: Opened | None = None) -> Tokenization | None:
    return session.ask_optional(TokenizeRequest(texts=(text,)), of=of) if text.strip() else None


def _longest(text: str) -> int | None:
    result = _tokenization(text)
    return result.longest if result and not result.longest_said else None  # else the model takes more


def _positions(linked: str | None) -> set[int]:
    try:
        return set(parse_numbers(linked or "", name=MASKS))
    except RequestError:
        address.say_lost(MASKS, address.LostValue((linked or "")[:40], ""))
        return set()
