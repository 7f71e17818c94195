"""Ask before a link opens a folder or a hub model: another site may have written it."""

from __future__ import annotations

from collections.abc import Callable

import streamlit as st

from inspector.errors import CheckpointError
from inspector.serving.agreements import AGREEMENTS
from inspector.serving.place import served_settings
from inspector.serving.settings import serving
from inspector.serving.uploads import browser_of
from inspector.settings import EVERYWHERE
from inspector.store.origins.on_disk import refuse_outside
from inspector.store.origins.origin import Origin
from inspector.store.reference import origin_of
from inspector.text import visible

AGREED = "agreed"  # references of this session
# What is said, and the button that agrees.
DOWNLOADS = ("This link opens a model that the server downloads from the Hugging Face hub.", "Download and open")
FILES = ("This link opens files on this server.", "Open these files")


def agree(reference: str) -> None:
    """Note that the user wants this opened: by this session, and by this browser's later ones."""
    browser = browser_of(st.context.cookies)
    for part in _parts(reference):
        st.session_state.setdefault(AGREED, set()).add(part)
        if browser:
            AGREEMENTS.add(browser, part)


def must_ask(reference: str) -> bool:
    """Whether to ask before opening this. What will be refused in any case is not asked about."""
    return any(map(_must_ask, _parts(reference)))


def _must_ask(reference: str) -> bool:
    origin = _origin(reference)
    if origin is None or not (origin.downloads or (origin.path and _is_open(origin.value))):
        return False
    # Whoever started the server agreed to what it was started with.
    if reference in st.session_state.get(AGREED, ()) or reference == serving().opened:
        return False
    browser = browser_of(st.context.cookies)
    return browser is None or not AGREEMENTS.has(browser, reference)


def ask(reference: str, instead: str = "", on_instead: Callable[[], None] | None = None) -> None:
    """Name what a link opens, or the first part of it that needs that, and offer to open it.

    Args:
        reference: What it names; `must_ask` holds.
        instead: Label of a button for what else can be done; empty: none.
    """
    reference = next(filter(_must_ask, _parts(reference)))
    origin = origin_of(reference)
    sentence, button = DOWNLOADS if origin.downloads else FILES
    with st.container(border=True):
        st.markdown(f":material/link: {sentence}")
        st.code(visible(origin.value), language=None, wrap_lines=True)
        st.caption("Links can come from anyone, so nothing is read until you agree.")
        with st.container(horizontal=True):
            st.button(button, type="primary", key=f"agreed {reference}", on_click=agree, args=(reference,))
            if instead:
                st.button(instead, on_click=on_instead)


def agree_to(key: str) -> None:
    """Note that what was chosen or typed in a field is wanted."""
    if (reference := st.session_state[key]) is not None:
        agree(reference)


def _is_open(path: str) -> bool:
    """Whether the pages may open a path. Where every folder is open, it is not even looked up."""
    found = served_settings()
    if found.roots == EVERYWHERE:
        return True
    try:
        refuse_outside(path, found)
    except CheckpointError:
        return False
    return True


def _parts(reference: str) -> tuple[str, ...]:
    """What a reference puts together; itself, where that is nothing or cannot be read."""
    origin = _origin(reference)
    return origin.parts if origin and len(origin.parts) > 1 else (reference,)


def _origin(reference: str) -> Origin | None:
    try:
        return origin_of(reference)
    except CheckpointError:
        return None
