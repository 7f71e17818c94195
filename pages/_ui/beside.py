"""A second text or a second checkpoint beside the open one."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

import streamlit as st

from inspector.analyses.lens.request import LensRequest
from inspector.analyses.lens.result import Lens
from inspector.demo import DEMOS, RUNS
from inspector.results.checkpoint import Opened
from inspector.serving.storing import uploads
from inspector.settings import settings
from pages._ui import session, sign_in
from pages._ui.opening import agreeing

SAME = "the same checkpoint"


@dataclass(frozen=True, slots=True)
class Other:
    """What the open checkpoint's lens is compared with."""

    title: str  # its name, and its text where that is another
    lens: Lens


def choose(checkpoint: Opened, request: LensRequest) -> Other | None:
    """Ask for a second text and a second checkpoint; None where neither is another."""
    names = {SAME: checkpoint.reference} | references(checkpoint)
    with st.container(horizontal=True):
        text = st.text_input("Second text", key="second", bind="query-params", placeholder="the same text")
        name = st.selectbox("Second checkpoint", list(names), key="other", bind="query-params", width=240)
    if not text.strip() and name in {SAME, None}:
        return None
    other = session.open_beside(names[name or SAME])
    if other is None:
        return None
    lens = session.ask(replace(request, text=text if text.strip() else request.text), of=other)
    words = f"{other.name}, “{text}”" if text.strip() else other.name
    return Other(words, lens) if lens else None


def pick(names: Iterable[str], key: str = "other", label: str = "Second checkpoint") -> str | None:
    """Ask for another checkpoint by a listed name, or by what is typed; None before one is named."""
    return st.selectbox(
        label,
        list(names),
        key=key,
        bind="query-params",
        index=None,
        placeholder="Choose or type one",
        accept_new_options=True,
        help="A demo, an upload, hub:NAME or path:FOLDER",
        on_change=agreeing.agree_to,
        args=(key,),
    )


def run_of(checkpoint: Opened) -> list[str]:
    """The snapshots of a demo's run that it is one of, in the order of training."""
    return next((list(run) for run in RUNS.values() if checkpoint.reference in run), [])


def references(checkpoint: Opened) -> dict[str, str]:
    """Name -> reference of every demo and upload besides the open checkpoint, and of the other snapshots of its run."""
    own = {
        f"{stored.name} ({stored.fingerprint[:8]})": f"upload:{stored.fingerprint}"
        for stored in uploads.list_uploads(settings(), sign_in.asker())
    }
    every = {name: name for name in (*run_of(checkpoint), *DEMOS)} | own
    return {name: reference for name, reference in every.items() if reference != checkpoint.reference}
