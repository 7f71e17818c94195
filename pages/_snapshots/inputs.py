"""What is asked of a run on the Snapshots page, and what goes with the answer."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import PurePath
from typing import Any

import streamlit as st

from inspector.analyses.checks.request import CheckRequest
from inspector.analyses.snapshots import words
from inspector.analyses.snapshots.request import SeriesRequest, VitalsRequest
from inspector.catalog import request_of
from inspector.program import command_line
from inspector.serving.place import serves_others
from inspector.store.origins.snapshots import Snapshot, folder_of
from inspector.text import literal, plural
from pages._snapshots.runs import TrainingRun
from pages._ui import inputs, options, parts, session

VERDICTS = {"ties": request_of("sharing")(), "checks": CheckRequest()}  # quantity -> what asks for it
QUANTITIES = {
    "Padding": "padding",
    "Norms": "norms",
    "Drift": "drift",
    "Neighbors": "neighbours",
    "Ties": "ties",
    "Checks": "checks",
}


@dataclass(frozen=True, slots=True)
class Choice:
    """What is asked."""

    quantity: str  # a value of QUANTITIES
    vitals: VitalsRequest
    series: SeriesRequest
    evenly: bool


def ask() -> Choice:
    """Ask which quantity, and of what."""
    title = st.segmented_control(
        "Quantity", list(QUANTITIES), default="Padding", required=True, key="quantity", bind="query-params"
    )
    quantity = QUANTITIES[title or "Padding"]
    given, against, evenly = {}, {}, False
    if quantity in ("drift", "neighbours"):
        given["tokens"] = options.ask(VitalsRequest, "tokens", placeholder="the first special tokens")
        against["against"] = options.ask(SeriesRequest, "against", segmented=True)
    if quantity not in VERDICTS:
        with inputs.folded_options():
            if quantity == "neighbours":
                given["k"] = options.ask(VitalsRequest, "k")
            evenly = st.toggle(
                "Equal distances",
                key="evenly",
                bind="query-params",
                help="Draw snapshots at equal distances, regardless of the steps between them.",
            )
    return Choice(quantity, options.make(VitalsRequest, **given), options.make(SeriesRequest, **against), evenly)


def counted(answers: list[tuple[Snapshot, Any]], run: TrainingRun) -> str:
    """How many snapshots a figure stands on."""
    if len(answers) == len(run.snapshots):
        return plural(len(answers), "snapshot")
    return f"{len(answers):,} of {plural(len(run.snapshots), 'snapshot')}"


def say_nothing() -> None:
    """End the page where there is nothing to draw."""
    st.info(f"{words.NO_DATA} Choose another quantity, or type tokens to follow.", icon=":material/info:")
    st.stop()


def open_one(run: TrainingRun) -> None:
    """Offer to open a snapshot on the other pages."""
    names = {snapshot.name: str(snapshot.reference) for snapshot in run.snapshots}
    with st.container(horizontal=True, vertical_alignment="bottom"):
        name = st.selectbox(
            "Open a snapshot on the other pages", list(names), key="snapshot", bind="query-params", index=None
        )
        if name is not None:
            st.button(f"Open {literal(name)}", on_click=session.want, args=(names[name],))


def elsewhere(run: TrainingRun, choice: Choice) -> None:
    """The same view for a terminal."""
    request = VERDICTS.get(choice.quantity, choice.vitals)
    asked = [*choice.vitals.to_argv(), *choice.series.to_argv()] if request is choice.vitals else []
    source = _last(run) if choice.quantity == "ties" else _source(run)  # that verb asks one at a time
    parts.share([command_line([request.verb, source, *asked])], what=" for a folder of snapshots")


def _source(run: TrainingRun) -> str:
    """What the command line takes for the run; others are not told the server's folders."""
    folder = folder_of(run.reference)
    if folder is None:
        return run.reference
    return PurePath(folder).name if serves_others() else folder


def _last(run: TrainingRun) -> str:
    """What it takes for the last snapshot."""
    last = run.snapshots[-1]
    return f"{_source(run)}/{last.name}" if last.reference.origin.path else str(last.reference)
