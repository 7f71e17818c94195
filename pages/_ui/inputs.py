"""Inputs that more than one page has: the text, and where the model runs."""

from __future__ import annotations

from collections.abc import Callable

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from inspector.analyses.overview.request import OverviewRequest
from inspector.analyses.overview.result import Overview
from inspector.analyses.placement.request import PlacementRequest
from inspector.demo import examples_of
from inspector.request import Request
from inspector.results.checkpoint import Opened
from inspector.results.placement import Placement
from inspector.settings import Device, Dtype
from inspector.text import literal
from pages._ui import options, parts, running, session, ways


def text(
    checkpoint: Opened, *, slug: str, masks: bool = False, examples: tuple[str, ...] = (), label: str = "Text"
) -> str:
    """Ask for the text that the model reads; without one the page ends here.

    Args:
        checkpoint: Its examples are offered.
        masks: True: offer to insert the mask token.
        examples: In place of the checkpoint's own.
    """
    mask = mask_token()
    examples = begin(checkpoint, slug=slug, examples=examples)
    with st.container(key="text_line", horizontal=True, vertical_alignment="bottom", wrap=False):
        # The example is the default as well: a run that a click cuts short may lose what `begin` set.
        value = st.text_area(
            label, examples[0], key="text", bind="query-params", height=68, label_visibility="collapsed"
        )
        remember(value, examples)
        with examples_place():
            if mask and masks:
                st.button(f"Insert {literal(mask)}", icon=":material/add:", on_click=_insert, args=(mask,))
            offer(examples)
    if not value.strip():
        st.info("Type a text or choose an example.", icon=":material/edit:")
        st.stop()
    return value


def begin(checkpoint: Opened, *, slug: str, examples: tuple[str, ...] = ()) -> tuple[str, ...]:
    """Have a text in the field "text" before it is drawn; gives the examples to offer."""
    examples = examples or examples_of(checkpoint.parts[0].reference, mask_token())
    _fill_in(examples, page=slug, fingerprint=checkpoint.fingerprint)
    return examples


def remember(value: str, examples: tuple[str, ...]) -> None:
    """Keep a text of one's own for other pages; `offer` then marks an example that was taken."""
    st.session_state["own text"] = None if value in examples else value
    st.session_state["example"] = value if value in examples else None


def offer(examples: tuple[str, ...], *, on_take: Callable[[], None] | None = None) -> None:
    """Offer examples as pills.

    Args:
        on_take: Called when one was taken and has become the text.
    """

    def take() -> None:
        st.session_state["text"] = st.session_state["example"] or st.session_state["text"]
        if on_take:
            on_take()

    st.pills(
        "Examples",
        examples,
        format_func=literal,
        key="example",
        on_change=take,
        label_visibility="collapsed",
        wrap=True,
    )


def mask_token() -> str | None:
    """The mask token of the open checkpoint."""
    overview: Overview = session.run(OverviewRequest())
    return overview.mask_token


def _fill_in(examples: tuple[str, ...], *, page: str, fingerprint: str) -> None:
    """Start with an example; a text of one's own goes along to other pages and checkpoints."""
    state = st.session_state
    own = state.get("own text")
    # On a new page the field still has the old page's value here, and would lose it below.
    if "text" not in state or state.get("text on") != page:
        state["text"] = own or examples[0]
        if own and "text" not in st.query_params:  # the browser drops it where it leaves a page with tabs
            st.query_params["text"] = own
    elif state["text of"] != fingerprint and not own:
        state["text"] = examples[0]
    state["text on"], state["text of"] = page, fingerprint


def require_head(head: str, request: Request) -> None:
    """End the page with the analysis' own explanation where the checkpoint lacks a head."""
    overview: Overview = session.run(OverviewRequest())
    if overview.heads[head] == "present":
        return
    session.ask(request)
    st.markdown("**What you can do here instead**")
    for slug in ("lens", "embeddings", "sharing"):
        parts.page_link(slug)
    st.button(f"Open {running.FIRST}, which has this head", on_click=session.want, args=(running.FIRST,))
    st.stop()


def controls() -> tuple[DeltaGenerator, DeltaGenerator]:
    """One line for what is asked, and a place right below that is empty as a rule."""
    mask_token()  # what the line's fields need to know is waited for above it
    with st.container(gap="xxsmall"):
        line = st.container(key="controls", horizontal=True, vertical_alignment="bottom", gap="small")
        return line, st.container()


def examples_place() -> DeltaGenerator:
    """Where examples are offered; closed at first."""
    return st.popover("Examples", icon=":material/lightbulb:")


def folded_options() -> DeltaGenerator:
    """What few people change; closed at first."""
    return st.popover("Options", icon=":material/tune:")


def placement(below: DeltaGenerator) -> tuple[Device, Dtype]:
    """Ask where and in which precision the model runs; what a streamed pass takes is said before it begins.

    Args:
        below: A place that is seen although the options are closed: what is waited for, and the time of a pass.
    """
    device, dtype, time_pass = planned(below)
    time_pass()
    return device, dtype


def planned(below: DeltaGenerator) -> tuple[Device, Dtype, Callable[[], None]]:
    """Ask as `placement` does, for a page that runs no model by itself.

    Returns:
        Device, dtype, and what plans, and times a streamed pass, which reads two matrices: to be called last.
    """
    device = options.ask(PlacementRequest, "device")
    dtype = options.ask(PlacementRequest, "dtype")
    place = st.container()
    compared = st.toggle("Compare the ways to run it", key="ways", bind="query-params")
    listed = st.container()

    def time_pass() -> None:
        with below:  # by the headers alone: it is there before the model is
            plan: Placement | None = session.ask_optional(PlacementRequest(device=device, dtype=dtype))
        if plan is None:
            return
        with place:
            st.caption(literal(f"Plan: {plan.reason}"))
        if plan.streamed:
            with below:
                plan = session.ask_optional(PlacementRequest(device="stream", dtype=dtype))
                ways.say(plan)
        if compared:
            with listed:
                ways.draw(plan)

    return device, dtype, time_pass


def _insert(mask: str) -> None:
    st.session_state["text"] = f"{st.session_state['text'].rstrip()} {mask}"
