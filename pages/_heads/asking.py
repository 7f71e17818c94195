"""Inputs of the Task heads page, all of them in the address bar."""

from __future__ import annotations

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from inspector.analyses.heads.request import HeadsRequest
from inspector.analyses.heads.result import default_head
from inspector.analyses.heads.words import ENDINGS, SECOND
from inspector.analyses.overview.result import Overview
from inspector.demo import DEMOS
from inspector.results.checkpoint import Opened
from pages._ui import inputs, options

FIRST = {
    "sequence_classification": ("A wonderful film, and far too short.",),
    "token_classification": ("Ada Lovelace was born in London and worked with Charles Babbage.",),
    "question_answering": ("Where does the Eiffel Tower stand?",),
    "multiple_choice": ("She filled the kettle and put it on the stove,",),
}
# Glosses are what the demo learned: the second of each pair follows, or does not.
GLOSSES = ("a large plant with a thick trunk.", "the capital and largest city of france.")
LABELS = {"question_answering": "Question", "multiple_choice": "Beginning"}
PAIRS = {
    "next_sentence": "Second sentence: does it follow?",
    "question_answering": "Text with the answer",
    "sequence_classification": "Second text (may be empty)",
}


# head -> options that concern it alone
OPTIONS = {
    "causal_lm": ("k", "new_tokens", "temperature", "seed"),
    "question_answering": ("longest_answer", "right_answer"),
}


def choose(overview: Overview) -> str | None:
    """Ask which head; None where the file holds none."""
    present = [head for head, state in overview.heads.items() if state == "present"]
    if not present:
        return None
    first = default_head(overview.architecture or "", overview.heads)
    if len(present) == 1:
        return first
    place = present.index(first) if first in present else 0
    return st.selectbox("Head", present, place, key="head", bind="query-params", width=160)


def ask(checkpoint: Opened, head: str | None, below: DeltaGenerator) -> HeadsRequest:
    """Ask for what a head reads; without a text the page ends here.

    Args:
        checkpoint: Its examples are offered.
        head: That reads it.
        below: A place below the fields, as `inputs.controls` gave it.
    """
    examples = FIRST.get(head or "", ())
    if head == "next_sentence" and checkpoint.parts[0].reference in DEMOS:
        examples = GLOSSES
    text = inputs.text(
        checkpoint, slug="heads", masks=head == "masked_lm", examples=examples, label=LABELS.get(head or "", "Text")
    )
    chosen = {}
    if head in PAIRS:
        chosen["pair"] = options.ask(HeadsRequest, "pair", label=PAIRS[head], default=SECOND.get(head, ""), height=96)
    if head == "multiple_choice":
        chosen["choices"] = options.ask(
            HeadsRequest, "choices", label="Endings, one per line", default=ENDINGS, height=110
        )
    with inputs.folded_options():
        chosen |= {name: options.ask(HeadsRequest, name) for name in OPTIONS.get(head or "", ())}
        device, dtype = inputs.placement(below)
    return options.make(HeadsRequest, text=text, head=head, device=device, dtype=dtype, **chosen)
