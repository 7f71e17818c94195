"""Tabs of the Task heads page below the head's answer: pre-training and tokenization."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import streamlit as st

from inspector.analyses.heads.request import HeadsRequest
from inspector.analyses.overview.result import Overview
from inspector.analyses.pretraining.request import PretrainRequest
from inspector.analyses.tokenization.request import TokenizeRequest
from inspector.request import Request
from inspector.results.checkpoint import Opened
from inspector.view.blocks import Table
from pages._heads import marks
from pages._ui import options, parts, session
from pages._ui.answer.rendering import PageView

OTHER_TEXTS = ("A short one.",)


def pretraining(checkpoint: Opened, overview: Overview, heads: HeadsRequest) -> list[PretrainRequest]:
    """The objective on the texts that a masked-LM head reads; gives what was asked."""
    given = {}
    with st.container(horizontal=True, vertical_alignment="bottom"):
        given["share"] = options.ask(PretrainRequest, "share", label="Share of tokens chosen", width=180)
        if heads.head != "causal_lm":  # which asks for one above
            given["seed"] = options.ask(PretrainRequest, "seed", width=180)
        if overview.heads["next_sentence"] == "present" and heads.pair.strip():
            given["follows"] = options.ask(PretrainRequest, "follows")
    shared = {name: getattr(heads, name) for name in ("text", "pair", "seed", "device", "dtype")}
    request = options.make(PretrainRequest, **shared | given)
    return [request] if _draw(checkpoint, request, "chosen", marks.chosen) else []


def tokenization(checkpoint: Opened, heads: HeadsRequest) -> list[TokenizeRequest]:
    """What the texts become; gives what was asked."""
    more = options.ask(
        TokenizeRequest, "texts", label="More texts for the batch, one per line", default=OTHER_TEXTS, height=80
    )
    request = options.make(TokenizeRequest, texts=(heads.text, *more), pair=heads.pair)
    return [request] if _draw(checkpoint, request, "tokens", marks.tokens) else []


def _draw(checkpoint: Opened, request: Request, table: str, draw: Callable[[Any], None]) -> bool:
    """Draw the answer, a table of it in another way; False where there is none."""
    result: Any = session.ask(request)
    if result is None:
        return False
    parts.warnings(result.warnings)
    PageView.of(result, request, name=checkpoint.name, instead={(Table, table): lambda _: draw(result)}).flat()
    return True
