"""An adapter on its base: what puts it there, and what leads back to each alone."""

from __future__ import annotations

import streamlit as st

from inspector.demo import DEMOS
from inspector.results.checkpoint import Opened
from inspector.serving.storing import uploads
from inspector.settings import settings
from inspector.store.pairs import reference_of
from inspector.text import literal
from pages._ui import session, sign_in
from pages._ui.opening import agreeing

HELP = "Every page then answers for both, as if the adapter were merged. Nothing is written."


def offer(adapter: Opened, name: str, base: str) -> None:
    """Offer to put an adapter on a base.

    Args:
        name: Of the base.
        base: Its reference.
    """
    st.button(
        f"Put it on {literal(name)}",
        type="primary",
        icon=":material/layers:",
        help=HELP,
        key="put on base",
        on_click=session.want,
        args=(reference_of(base, adapter.reference),),
    )


def find(name: str) -> str | None:
    """The reference of the checkpoint at hand that an adapter's settings call its base; None: it is none, or several.

    Args:
        name: As they call it: a hub id, or one name.
    """
    if name in DEMOS:
        return name
    if "/" in name and not agreeing.must_ask(hub := f"hub:{name}"):
        return hub
    called = {name, name.rpartition("/")[2]}
    own = [each for each in uploads.list_uploads(settings(), sign_in.asker()) if each.name in called]
    return f"upload:{own[0].fingerprint}" if len(own) == 1 else None


def draw(both: Opened) -> None:
    """Say what is open, and lead to each of the two alone."""
    st.caption("An adapter on its base, as if merged. Nothing is written.")
    with st.container(horizontal=True):
        for label, each in zip(("Base alone", "Adapter alone"), both.parts, strict=True):
            st.button(label, type="tertiary", help=literal(each.name), on_click=session.want, args=(each.reference,))
