"""Where the figures and tables of a page come from, for their files."""

from __future__ import annotations

from dataclasses import fields, replace
from urllib.parse import urlencode

import streamlit as st

import inspector
from inspector.catalog import CATALOG
from inspector.report.provenance import reference
from inspector.request import Request, beside
from inspector.results.checkpoint import Opened
from pages._ui import address, once, screenshot, session
from pages._ui.once import PageQuestion
from pages._ui.words import command

TEXTS = ("text", "first", "second", "pair")  # options whose value a model reads


def of_page() -> dict[str, str]:
    """The open checkpoint, what the page has asked so far, its link, and our version; never the server's libraries."""
    opened, page = session.opened(), st.session_state.get(address.PAGE, "")
    asked = [each for each in once.asked_now(st.session_state) if CATALOG[each.request.verb].slug == page]
    own = [each for each in asked if each.fingerprint == opened.fingerprint]
    texts = [text for each in asked for text in _texts(each.request)]
    others = {
        **{each.called[0]: each.fingerprint for each in asked if each not in own},
        **{name: fingerprint for each in own for name, fingerprint in _others(opened, each).items()},
    }
    return {
        "Checkpoint": opened.name,
        **({"Text": "; ".join(dict.fromkeys(texts))} if texts else {}),
        "Command": "; ".join(_command(opened, each) for each in own),
        "Page": _link(page, reference(opened)),
        "Fingerprint": opened.fingerprint,
        **({"Compared with": "; ".join(map(", ".join, others.items()))} if others else {}),
        "Checkpoint Inspector": inspector.__version__,
    }


def _others(opened: Opened, question: PageQuestion) -> dict[str, str]:
    """The other checkpoints of a question: name -> fingerprint."""
    names = question.called[len(opened.parts) :]
    return dict(zip(names, beside(question.request.parameters()).values(), strict=False))


def _command(opened: Opened, question: PageQuestion) -> str:
    options = beside(question.request.parameters())
    names = question.called[len(opened.parts) :]
    named = replace(question.request, **dict(zip(options, names, strict=False)))
    return command(named.verb, opened, *named.to_argv())


def _texts(request: Request) -> list[str]:
    named = [each.name for each in fields(request) if each.name in TEXTS]
    return [text for name in named if (text := str(getattr(request, name)))]


def _link(page: str, checkpoint: str | None) -> str:
    """The page and its inputs; a path of this machine stays out of it."""
    held = {name: st.query_params.get_all(name) for name in st.query_params if name != screenshot.NAME}
    held["checkpoint"] = [checkpoint] if checkpoint else []
    if "text" in st.session_state and st.session_state.get("text on") == page:
        held["text"] = [st.session_state["text"]]
    public = {name: [each for each in values if not each.startswith("path:")] for name, values in held.items()}
    query = urlencode({name: values for name, values in sorted(public.items()) if values}, doseq=True)
    return f"/{page}" + (f"?{query}" if query else "")
