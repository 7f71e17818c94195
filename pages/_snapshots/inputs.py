"""What is asked of a run on the Snapshots page, and what goes with the answer."""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass
from typing import Any

import pandas as pd
import streamlit as st

from inspector.analyses.snapshots.frames import Against
from inspector.store.snapshots import Snapshot
from inspector.text import plural
from pages._snapshots.runs import Run
from pages._snapshots.words import QUANTITIES
from pages._ui import screenshot, session
from pages._ui.words import literal
from serving.place import serves_others

SAMPLE = 200  # rows drawn at random
VERBS = {"ties": "sharing", "checks": "check"}


@dataclass(frozen=True, slots=True)
class Choice:
    """What is asked."""

    quantity: str  # a value of QUANTITIES
    tokens: tuple[str, ...]
    k: int
    against: Against
    evenly: bool

    def parameters(self) -> dict[str, Any]:
        """Of the verb `vitals`."""
        return {"tokens": self.tokens, "k": self.k, "sample": SAMPLE}

    def options(self) -> list[str]:
        """The same for the command line."""
        tokens = [f"--token={token}" for token in self.tokens]
        return [*tokens, "-k", str(self.k), "--against", self.against]


def ask(run: Run) -> Choice:
    """Ask which quantity, and of what."""
    title = st.segmented_control("Quantity", list(QUANTITIES), default="Padding", required=True,
                                 key="quantity", bind="query-params")  # fmt: skip
    quantity = QUANTITIES[title or "Padding"]
    with st.container(horizontal=True, vertical_alignment="bottom"):
        tokens: tuple[str, ...] = ()
        k, against = 10, None
        if quantity in ("drift", "neighbours"):
            typed = st.text_input("Tokens, with spaces between", key="followed",
                                  bind="query-params", placeholder="the special ones",
                                  help="As in the vocabulary; id:37 is a row.")  # fmt: skip
            tokens = tuple(dict.fromkeys(re.sub(r"^id:(?=\d+$)", "id ", each)
                                         for each in typed.split()))  # fmt: skip
            against = st.segmented_control("Against the", ("first", "last"), default="first",
                                           required=True, key="against",
                                           bind="query-params")  # fmt: skip
        if quantity == "neighbours":
            k = st.number_input("Neighbours of each", 1, 100, 10, key="near", bind="query-params")
        evenly = quantity not in VERBS and st.toggle(
            "Equal distances", key="evenly", bind="query-params",
            help="Draw snapshots side by side, however many steps lie between them.",
        )  # fmt: skip
    return Choice(quantity, tokens, int(k), "last" if against == "last" else "first", evenly)


def counted(answers: list[tuple[Snapshot, Any]], run: Run) -> str:
    """How many snapshots a figure stands on."""
    if len(answers) == len(run.snapshots):
        return plural(len(answers), "snapshot")
    return f"{len(answers):,} of {plural(len(run.snapshots), 'snapshot')}"


def cells(frame: pd.DataFrame, quantity: str) -> pd.DataFrame:
    """What a grid of verdicts is drawn from."""
    names = {"ties": ("group", "verdict", "reason"), "checks": ("check", "status", "detail")}
    row, verdict, detail = names[quantity]
    return frame.rename(columns={row: "row", verdict: "verdict", detail: "detail"})


def say_nothing() -> None:
    """End the page where there is nothing to draw."""
    st.info(
        "No snapshot holds anything of the kind: no padding row, no special token, or no names "
        "that share memory. Choose another quantity, or type tokens to follow.",
        icon=":material/info:",
    )
    st.stop()


def open_one(run: Run) -> None:
    """Offer to open a snapshot on the other pages."""
    names = {snapshot.name: str(snapshot.reference) for snapshot in run.snapshots}
    with st.container(horizontal=True, vertical_alignment="bottom"):
        name = st.selectbox("Open a snapshot on the other pages", list(names), key="snapshot",
                            bind="query-params", index=None)  # fmt: skip
        if name is not None:
            st.button(f"Open {literal(name)}", on_click=session.want, args=(names[name],))


def elsewhere(run: Run, choice: Choice) -> None:
    """The same view for a terminal."""
    verb = VERBS.get(choice.quantity, "vitals")
    options = choice.options() if verb == "vitals" else []
    st.caption("The same from a terminal, for a folder of snapshots (add `--json` for machines). "
               "To share this view, copy the address bar.")  # fmt: skip
    source = _last(run) if verb == "sharing" else _source(run)  # that verb asks one at a time
    line = ["python", "-m", "inspector", verb, source, *options]
    st.code(shlex.join(line), language=None, wrap_lines=True)
    screenshot.offer()


def _source(run: Run) -> str:
    """What the run is called on the command line; others are not told the server's folders."""
    kind, _, value = run.reference.partition(":")
    return value if kind == "path" and not serves_others() else run.name


def _last(run: Run) -> str:
    """What the last snapshot is called there."""
    last = run.snapshots[-1]
    return last.reference.value if last.reference.kind == "demo" else f"{_source(run)}/{last.name}"
