"""The second checkpoint of the Compare page, and where else it can be set side by side."""

from __future__ import annotations

from dataclasses import dataclass

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from inspector.analyses.overview.request import OverviewRequest
from inspector.analyses.overview.result import Overview
from inspector.catalog import PAGES
from inspector.demo import DEMOS, RUNS, examples_of
from inspector.results.checkpoint import Opened
from inspector.store.reference import origin_of
from inspector.text import literal
from pages._compare import seeking
from pages._ui import address, beside, session
from pages._ui.opening import arrivals, uploading

TEACHES = """
**What you can learn from two checkpoints**

- **Before and after fine-tuning**: which layers changed, and which did not?
- **Two steps of one training run**: are the weights still changing, and where?
- **float32 and a cast or quantized copy**: is it plain rounding, or something else?
- **A base model and one with a head**: what was added, and what is newly tied?
- **Two vocabularies**: which tokens have no match, and which vectors moved furthest?
"""


NEWEST = 2  # uploads that the empty page offers


@dataclass(frozen=True, slots=True)
class Second:
    """The checkpoint that is compared with."""

    opened: Opened
    name: str  # as it was chosen or typed, and as the link has it
    listed: bool  # False: it was typed


def propose(checkpoint: Opened) -> None:
    """Have a snapshot of a demo's run compared with the end of it, or the end with the beginning, unless told else."""
    state, run = st.session_state, beside.run_of(checkpoint)
    if not run or state.get("proposed") == checkpoint.fingerprint:
        return
    state["proposed"] = checkpoint.fingerprint  # once: the field can be emptied
    if not (state.get("other") or address.asked("other")):
        st.query_params["other"] = run[-1] if checkpoint.reference != run[-1] else run[0]
        st.rerun()  # the field takes what the address has when a run begins


def choose(checkpoint: Opened, line: DeltaGenerator) -> Second | None:
    """Ask for the second checkpoint; without one the page says how to name it, or why it is not open.

    Args:
        checkpoint: The open one.
        line: Where the field is drawn.
    """
    with line:
        picker = st.container()
        _offer_upload()
    arrivals.open_all("second", _show)
    uploading.show_refusal("second")
    names = beside.references(checkpoint)
    state = st.session_state
    if "second arrived" in state:
        arrived = state["second arrived"]
        state["other"] = next((name for name in names if names[name] == arrived), arrived)
    with picker:
        name = beside.pick(names)
    state.pop("second arrived", None)  # only now: a run that ends before loses what a program set
    if name is None:
        st.info(
            "Choose the checkpoint to compare with: another demo or one of your uploads. You can also upload one "
            "above, or type hub:NAME or path:FOLDER.",
            icon=":material/compare_arrows:",
        )
        return None
    opened = session.open_beside(names.get(name, name))
    return Second(opened, name, name in names) if opened else None


def _offer_upload() -> None:
    with st.expander("Upload the second checkpoint", icon=":material/upload_file:", width=280):
        way = st.segmented_control("From", ["Files", "Folder"], default="Files", required=True, key="second way")
        uploading.draw("second", "Folder" if way == "Folder" else "Files")
        uploading.explain()


def _show(opened: Opened) -> None:
    """Have the page compare with a checkpoint that was uploaded."""
    st.session_state["second arrived"] = opened.reference


def teach(checkpoint: Opened) -> None:
    """Say what the empty page is for, unless a second checkpoint was named that is not open."""
    if st.session_state.get("other"):
        return
    names = beside.references(checkpoint)
    uploaded = [name for name, reference in names.items() if origin_of(reference).digits]
    with st.container(horizontal=True):
        seeking.offer(checkpoint)
        for name in [*uploaded[:NEWEST], *(name for name in DEMOS if name in names)]:
            label = name if name in DEMOS else literal(name)
            st.button(f"Compare with {label}", on_click=_take, args=(name,))
        st.button(f"Compare {literal(checkpoint.name)} with itself", on_click=_take, args=(checkpoint.reference,))
        for name, (first, *_, last) in RUNS.items():
            st.button(f"Compare the first and last snapshot of {name}", on_click=_take, args=(last, first))
    seeking.show(checkpoint, _take)
    st.markdown(TEACHES)


def _take(name: str, first: str = "") -> None:
    """Compare with a checkpoint, and open another one first."""
    if first:
        session.want(first)
    st.session_state["other"] = name


def side_by_side(checkpoint: Opened, second: Second) -> None:
    """Link to the pages that ask both checkpoints the same sentence."""
    first, other = (session.ask_optional(OverviewRequest(), of=each) for each in (checkpoint, second.opened))
    text = _sentence(checkpoint, first)
    link = {"checkpoint": checkpoint.reference, "other": second.name, "text": text}
    st.markdown(f"Run both on the same text: “{literal(text)}”")
    if second.listed:
        page = PAGES["lens"]
        address.link(
            f"{page.title}: the layers of both, read as tokens", "lens", key="both lens", icon=page.symbol, inputs=link
        )
    lacking = [
        each.name
        for each, overview in ((checkpoint, first), (second.opened, other))
        if overview is None or overview.heads["masked_lm"] != "present"
    ]
    if lacking:
        st.caption(
            "Mask predictions cannot be compared: there is no masked-LM head in "
            f"{literal(' and '.join(dict.fromkeys(lacking)))}."
        )
        return
    page = PAGES["masked_lm"]
    address.link(
        f"{page.title}: predictions of both for a mask",
        "masked_lm",
        key="both masks",
        icon=page.symbol,
        inputs=link | {"view": "Two checkpoints"},
    )


def _sentence(checkpoint: Opened, overview: Overview | None) -> str:
    """One's own text from another page, else an example that the checkpoint can read."""
    if own := st.session_state.get("own text"):
        return own
    return examples_of(checkpoint.parts[0].reference, overview.mask_token if overview else None)[0]
