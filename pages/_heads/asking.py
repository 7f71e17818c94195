"""Inputs of the Task heads page, all of them in the address bar."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import streamlit as st

from inspector.analyses.heads.result import default_head
from inspector.analyses.overview.result import Overview
from inspector.demo import DEMOS
from inspector.results.checkpoint import Opened
from pages._ui import inputs
from pages._ui.words import HEADS

FIRST = {
    "sequence_classification": ("A wonderful film, and far too short.",),
    "token_classification": ("Ada Lovelace was born in London and worked with Charles Babbage.",),
    "question_answering": ("Where does the Eiffel Tower stand?",),
    "multiple_choice": ("She filled the kettle and put it on the stove,",),
}
SECOND = {
    "next_sentence": "a person who studies law and works in a court.",
    "question_answering": "The Eiffel Tower stands in Paris. It was built in 1889.",
}
# Glosses are what the demo learned: the second of each pair follows, or does not.
GLOSSES = (
    "a large plant with a thick trunk.",
    "the capital and largest city of france.",
)
ENDINGS = "and waited for the water to boil.\nand drove it to the airport.\nbecause it was blue."
LABELS = {"question_answering": "Question", "multiple_choice": "Beginning"}
PAIRS = {
    "next_sentence": "Second sentence: does it follow?",
    "question_answering": "Text that holds the answer",
    "sequence_classification": "Second text (may be empty)",
}


@dataclass(frozen=True, slots=True)
class Asked:
    """What a head is asked."""

    texts: dict[str, Any]  # text, pair, choices
    options: dict[str, Any]  # of the head alone
    device: str
    dtype: str

    def parameters(self) -> dict[str, Any]:
        """For the analysis."""
        return self.texts | self.options | {"device": self.device, "dtype": self.dtype}

    def command(self) -> list[str]:
        """The same for the command line."""
        choices = [f"--choice={choice}" for choice in self.texts["choices"]]
        pair = [f"--pair={self.texts['pair']}"] if self.texts["pair"] else []
        options = [
            f"--{name.replace('_', '-')}={value:g}"
            for name, value in self.options.items()
            if name not in ("answer", "k")
        ]
        if "k" in self.options:
            options.append(f"-k{self.options['k']}")
        if self.options.get("answer"):
            options += ["--right-answer", *map(str, self.options["answer"])]
        return [f"--text={self.texts['text']}", *pair, *choices, *options,
                *inputs.placement_options(self.device, self.dtype)]  # fmt: skip


def choose(overview: Overview) -> str | None:
    """Ask which head; None where the file holds none."""
    present = [head for head, state in overview.heads.items() if state == "present"]
    if not present:
        return None
    first = default_head(overview.architecture or "", overview.heads)
    if len(present) == 1:
        return first
    chosen = st.segmented_control("Head", present, default=first, required=True, key="head",
                                  bind="query-params",
                                  format_func=lambda head: HEADS[head][0])  # fmt: skip
    return chosen if chosen in present else first


def ask(checkpoint: Opened, head: str | None) -> Asked:
    """Ask for what a head reads; without a text the page ends here."""
    examples = FIRST.get(head or "", ())
    if head == "next_sentence" and checkpoint.reference in DEMOS:
        examples = GLOSSES
    text = inputs.text(checkpoint, slug="heads", masks=head == "masked_lm", examples=examples,
                       label=LABELS.get(head or "", "Text"))  # fmt: skip
    pair = _pair(head) if head in PAIRS else ""
    choices = _choices() if head == "multiple_choice" else ()
    with st.expander("Options", icon=":material/tune:"), st.container(horizontal=True):
        options = _options(head)
        device, dtype = inputs.placement()
    return Asked({"text": text, "pair": pair, "choices": choices}, options, device, dtype)


def _pair(head: str) -> str:
    return st.text_area(PAIRS[head], SECOND.get(head, ""), key="pair", bind="query-params",
                        height=80)  # fmt: skip


def _choices() -> tuple[str, ...]:
    value = st.text_area("Endings, one a line", ENDINGS, key="choices", bind="query-params",
                         height=110)  # fmt: skip
    return tuple(line for line in value.splitlines() if line.strip())


def _options(head: str | None) -> dict[str, Any]:
    if head == "causal_lm":
        return _causal_options()
    return _span_options() if head == "question_answering" else {}


def _causal_options() -> dict[str, Any]:
    k = st.number_input("Next tokens", 1, 1000, 10, key="k", bind="query-params")
    new = st.number_input("Steps", 0, 200, 12, key="new_tokens", bind="query-params",
                          help="Tokens that the text is continued by")  # fmt: skip
    warmth = st.number_input("Temperature", 0.0, 10.0, 0.0, 0.1, key="temperature",
                             bind="query-params", help="0: the likeliest token at each step; above "
                             "0: sampled, the higher the freer")  # fmt: skip
    seed = st.number_input("Seed", 0, 2**31 - 1, 0, key="seed", bind="query-params",
                           help="Of the sampling: the same seed gives the same text")  # fmt: skip
    return {"k": int(k), "new_tokens": int(new), "temperature": float(warmth), "seed": int(seed)}


def _span_options() -> dict[str, Any]:
    longest = st.number_input("Longest answer", 1, 500, 15, key="longest", bind="query-params",
                              help="In tokens")  # fmt: skip
    start = st.number_input("Right start", -1, 100_000, -1, key="start", bind="query-params",
                            help="Position of the right answer's first token, for the loss; -1: "
                            "no loss")  # fmt: skip
    end = st.number_input("Right end", -1, 100_000, -1, key="end", bind="query-params",
                          help="Position of its last token")  # fmt: skip
    labelled = start >= 0 and end >= 0
    return {"longest_answer": int(longest), "answer": (int(start), int(end)) if labelled else None}
