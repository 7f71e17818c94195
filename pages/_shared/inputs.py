"""Inputs that more than one page has: the text, and where the model runs."""

from __future__ import annotations

from typing import get_args

import streamlit as st

from inspector.catalog import PAGES
from inspector.demo import DEMOS
from inspector.results import Opened, Overview
from inspector.settings import Device, Dtype
from pages._shared import session
from pages._shared.words import literal

PLAIN = "the capital and largest city of France."  # for checkpoints that bring no example


def text(checkpoint: Opened, *, masks: bool) -> str:
    """Ask for the text that the model reads; without one the page ends here.

    Args:
        checkpoint: Its examples are offered.
        masks: True: offer to insert the mask token.
    """
    mask = mask_token()
    examples = _examples(checkpoint, mask)
    _fill_in(examples)
    value = st.text_area("Text", key="text", bind="query-params", height=80,
                         help="Ctrl+Enter runs it.")  # fmt: skip
    st.session_state["own text"] = None if value in examples else value
    with st.container(horizontal=True, vertical_alignment="center"):
        if mask and masks:
            st.button(f"Insert {literal(mask)}", icon=":material/add:", on_click=_insert,
                      args=(mask,))  # fmt: skip
        st.caption("Examples", width="content")
        for number, example in enumerate(examples):
            st.button(literal(example), key=f"example {number}", type="tertiary",
                      on_click=_replace, args=(example,))  # fmt: skip
    if not value.strip():
        st.info("Type a text, or take one of the examples.", icon=":material/edit:")
        st.stop()
    return value


def mask_token() -> str | None:
    """The mask token of the open checkpoint."""
    overview: Overview = session.run("overview")
    return overview.tokenizer.mask_token if overview.tokenizer else None


def _fill_in(examples: tuple[str, ...]) -> None:
    """Start with an example; a text of one's own goes along to other pages and checkpoints."""
    state = st.session_state
    own = state.get("own text") is not None
    if "text" not in state:
        state["text"] = state["own text"] if own else examples[0]
    elif not own and state["text"] not in examples and "own text" in state:
        state["text"] = examples[0]  # an example of another checkpoint


def require_head(head: str, *, verb: str) -> None:
    """End the page with the analysis' own explanation where the checkpoint lacks a head."""
    overview: Overview = session.run("overview")
    if overview.heads[head] == "present":
        return
    session.ask(verb, text="")
    st.markdown("**What you can do here instead**")
    for slug in ("lens", "embeddings", "sharing"):
        analysis = PAGES[slug]
        st.page_link(f"pages/{slug}.py", label=f"{analysis.title}: {analysis.question}",
                     icon=f":material/{analysis.symbol}:")  # fmt: skip
    st.button(f"Open {session.FIRST}, which has this head", on_click=session.want,
              args=(session.FIRST,))  # fmt: skip
    st.stop()


def placement() -> tuple[str, str]:
    """Ask where and in which precision the model runs."""
    device = st.selectbox("Device", get_args(Device), key="device", bind="query-params",
                          help="auto: a GPU where there is one")  # fmt: skip
    dtype = st.selectbox("Dtype", get_args(Dtype), key="dtype", bind="query-params",
                         help="auto: float32 on the CPU, half precision on a GPU if the file "
                         "is in half precision")  # fmt: skip
    return device or "auto", dtype or "auto"


def placement_options(device: str, dtype: str) -> list[str]:
    """The same for the command line, what is "auto" left out."""
    pairs = {"--device": device, "--dtype": dtype}
    return [part for name, value in pairs.items() if value != "auto" for part in (name, value)]


def _examples(checkpoint: Opened, mask: str | None) -> tuple[str, ...]:
    if checkpoint.reference in DEMOS:
        return DEMOS[checkpoint.reference].examples
    return (PLAIN.replace("France", mask) if mask else PLAIN,)


def _insert(mask: str) -> None:
    st.session_state["text"] = f"{st.session_state['text'].rstrip()} {mask}"


def _replace(example: str) -> None:
    st.session_state["text"] = example
