"""Tabs of the Task heads page below the head's answer: pre-training and tokenization."""

from __future__ import annotations

import pandas as pd
import streamlit as st

from inspector.analyses.heads.request import HeadsRequest
from inspector.analyses.heads.result import KEPT, MASKED, NOT_CHOSEN, REPLACED
from inspector.analyses.overview.result import Overview
from inspector.analyses.pretraining.request import PretrainRequest
from inspector.analyses.pretraining.result import Pretraining
from inspector.analyses.pretraining.words import MASKED_LM_LOSS, MASKING, chosen
from inspector.analyses.tokenization import words
from inspector.analyses.tokenization.request import TokenizeRequest
from inspector.analyses.tokenization.result import Tokenization
from inspector.results.checkpoint import Opened
from inspector.text import literal
from pages._ui import options, parts, session, table_files

KINDS = {"first": "blue", "second": "green", "special": "violet", "padding": "gray", "unknown": "red"}
FATES = {MASKED: "orange", REPLACED: "red", KEPT: "green"}
MOST_BADGES = 300
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
    request = options.make(
        PretrainRequest,
        **{
            "text": heads.text,
            "pair": heads.pair,
            "seed": heads.seed,
            "device": heads.device,
            "dtype": heads.dtype,
            **given,
        },
    )
    result: Pretraining | None = session.ask(request)
    if result is None:
        return []
    parts.warnings(result.warnings)
    with st.container(horizontal=True):
        st.metric("Masked-LM loss", f"{result.masked_lm_loss:.4f}", help=MASKED_LM_LOSS)
        if result.next_sentence_loss is not None:
            st.metric(
                "Next-sentence loss",
                f"{result.next_sentence_loss:.4f}",
                help=f"For label {result.next_sentence_label}, in nats.",
            )
        st.metric("Loss", f"{result.loss:.4f}", help=f"What {result.architecture} returns for these labels.")
    st.markdown(literal(chosen(result)))
    st.markdown(_masked(result.tokens))
    parts.table(
        result.tokens,
        alt="Every position: id before, id after, label and loss",
        height=min(37 * (len(result.tokens) + 1), 400),
    )
    table_files.offer(result.tokens, name=f"{checkpoint.name}-labels-table")
    with st.expander("Masked and ignored tokens"):
        st.markdown(literal(MASKING))
    return [request]


def _masked(rows: pd.DataFrame) -> str:
    """The input as the model reads it; a chosen token with what it was."""
    pieces = []
    for row in rows.head(MOST_BADGES).to_dict("records"):
        after = literal(row["after"])
        if row["what"] == NOT_CHOSEN:
            pieces.append(after)
            continue
        said = f"{after} {row['what']}, was {literal(row['before'])}"
        pieces.append(f":{FATES[row['what']]}-background[{said}]")
    return " ".join(pieces)


def tokenization(checkpoint: Opened, heads: HeadsRequest) -> list[TokenizeRequest]:
    """What the texts become; gives what was asked."""
    more = options.ask(
        TokenizeRequest, "texts", label="More texts for the batch, one per line", default=OTHER_TEXTS, height=80
    )
    request = options.make(TokenizeRequest, texts=(heads.text, *more), pair=heads.pair)
    result: Tokenization | None = session.ask(request)
    if result is None:
        return []
    parts.warnings(result.warnings)
    rows = result.tokens
    first = pd.DataFrame(rows[rows["sequence"] == 0])
    unknown = sum(first["is_unknown"].tolist())
    real = sum(first["attention"].tolist())
    with st.container(horizontal=True):
        st.metric("Algorithm", result.kind)
        parts.count("Known tokens", result.size)
        st.metric("Tokens in this input", real)
        st.metric("Unknown", unknown, help="Text that the vocabulary cannot spell.")
        parts.count("Longest text", result.longest, explanation=words.longest(result))
    st.markdown(_badges(pd.DataFrame(first[first["attention"] == 1])))
    st.caption(literal(words.special(result)))
    parts.table(first, height=220, alt="Every token of the input with id, position and masks")
    st.markdown(f"**{words.batch(result)}**")
    parts.table(result.batch, alt="Every sequence of the batch with its masks")
    st.caption(literal(words.padding(result)))
    table_files.offer(rows, name=f"{checkpoint.name}-tokens")
    return [request]


def _badges(rows: pd.DataFrame) -> str:
    """Each token as a badge; a legend names the colors."""
    pieces, kinds = [], []
    for row in rows.head(MOST_BADGES).to_dict("records"):
        kind = "unknown" if row["is_unknown"] else row["part"] or "special"
        kinds.append(kind)
        pieces.append(f":{KINDS[kind]}-badge[{literal(row['token'])}]")
    names = {"first": "first text", "second": "second text"}
    legend = ", ".join(f":{KINDS[kind]}[{names.get(kind, kind)}]" for kind in KINDS if kind in kinds)
    rest = f" … and {len(rows) - MOST_BADGES:,} more" if len(rows) > MOST_BADGES else ""
    return f"{' '.join(pieces)}{rest}\n\nColors: {legend}."
