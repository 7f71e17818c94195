"""Sections of the Task heads page below the head's answer: pre-training and tokenization."""

from __future__ import annotations

import pandas as pd
import streamlit as st

from inspector.analyses.heads.result import KEPT, MASKED, NOT_CHOSEN, REPLACED
from inspector.analyses.overview.result import Overview
from inspector.analyses.pretraining.result import Pretraining
from inspector.analyses.tokenization.result import Tokenization
from inspector.results.checkpoint import Opened
from inspector.text import percent_text, plural
from pages._heads import words
from pages._heads.asking import Asked
from pages._ui import inputs, parts, session
from pages._ui.words import literal

KINDS = {"first": "blue", "second": "green", "special": "violet", "padding": "gray",
         "unknown": "red"}  # fmt: skip
FATES = {MASKED: "orange", REPLACED: "red", KEPT: "green"}
MOST_BADGES = 300
OTHER_TEXT = "A short one."


def pretraining(checkpoint: Opened, overview: Overview, asked: Asked) -> tuple[str, ...] | None:
    """The objective on the same texts; gives its command line."""
    if overview.heads["masked_lm"] != "present":
        return None
    st.subheader("The pre-training objective", anchor=False)
    pair = asked.texts["pair"]
    both = overview.heads["next_sentence"] == "present" and bool(pair.strip())
    with st.container(horizontal=True, vertical_alignment="bottom"):
        share = st.slider("Share of tokens chosen", 5, 100, 15, 5, format="%d %%", key="share",
                          bind="query-params", width=260)  # fmt: skip
        seed = int(st.number_input("Seed of the masking", 0, 2**31 - 1, 0, key="masking",
                                   bind="query-params", width=180))  # fmt: skip
        follows = both and st.toggle("The second text truly follows", value=True, key="follows",
                                     bind="query-params")  # fmt: skip
    result: Pretraining | None = session.ask(
        "pretrain", text=asked.texts["text"], pair=pair, follows=follows, share=share / 100,
        seed=seed, device=asked.device, dtype=asked.dtype,
    )  # fmt: skip
    if result is None:
        return None
    parts.warnings(result.warnings)
    with st.container(horizontal=True):
        st.metric("Masked-LM loss", f"{result.masked_lm_loss:.4f}",
                  help="Mean cross-entropy over the chosen tokens, in nats.")  # fmt: skip
        if result.next_sentence_loss is not None:
            st.metric("Next-sentence loss", f"{result.next_sentence_loss:.4f}",
                      help=f"For label {result.next_sentence_label}, in nats.")  # fmt: skip
        st.metric("Loss", f"{result.loss:.4f}",
                  help=f"What {result.architecture} returns for these labels.")  # fmt: skip
    counts = ", ".join(
        f"{result.counts[kind]} {kind}" for kind in (MASKED, REPLACED, KEPT) if result.counts[kind]
    )
    said = f"**{result.chosen}** of {plural(len(result.tokens), 'token')} chosen: {counts}."
    if result.is_next is not None:
        said += (f" Next sentence: label **{result.next_sentence_label}**, and the head says "
                 f"{percent_text(result.is_next)} that it follows.")  # fmt: skip
    st.markdown(said)
    st.markdown(_masked(result.tokens))
    parts.table(result.tokens, alt="Every position: id before, id after, label and loss",
                height=min(37 * (len(result.tokens) + 1), 560))  # fmt: skip
    parts.download(result.tokens, name=f"{checkpoint.name}-labels-table")
    with st.expander("What is masked, and what is ignored"):
        st.markdown(words.MASKING)
    follow = [] if follows or not both else ["--does-not-follow"]
    others = [f"--pair={pair}"] if pair.strip() else []
    return ("pretrain", f"--text={asked.texts['text']}", *others, *follow,
            f"--share={share / 100:g}", f"--seed={seed}",
            *inputs.placement_options(asked.device, asked.dtype))  # fmt: skip


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


def tokenization(checkpoint: Opened, asked: Asked) -> tuple[str, ...] | None:
    """What the texts become; gives the command line."""
    st.subheader("Tokenization", anchor=False)
    more = st.text_area("More texts for the batch, one a line", OTHER_TEXT, key="batch",
                        bind="query-params", height=80)  # fmt: skip
    texts = (asked.texts["text"], *(line for line in more.splitlines() if line.strip()))
    result: Tokenization | None = session.ask("tokenize", texts=texts, pair=asked.texts["pair"])
    if result is None:
        return None
    parts.warnings(result.warnings)
    rows = result.tokens
    first = pd.DataFrame(rows[rows["sequence"] == 0])
    unknown = sum(first["is_unknown"].tolist())
    real = sum(first["attention"].tolist())
    with st.container(horizontal=True):
        st.metric("Algorithm", result.kind)
        parts.count("Tokens it knows", result.size)
        st.metric("Tokens of this input", real)
        st.metric("Unknown", unknown, help="Text that the vocabulary cannot spell.")
        parts.count("Positions of the model", result.longest,
                    explanation="Longer input has no position embedding.")  # fmt: skip
    st.markdown(_badges(pd.DataFrame(first[first["attention"] == 1])))
    special = ", ".join(f"{role} {token}" for role, token in result.special.items() if token)
    st.caption(f"Special tokens: {literal(special) or 'none'}.")
    parts.table(first, height=380, alt="Every token of the input with id, place and masks")
    st.markdown(f"**The batch**: {plural(len(result.batch), 'sequence')} of "
                f"{plural(result.padded_to, 'token')}")  # fmt: skip
    parts.table(result.batch, alt="Every sequence of the batch with its masks")
    st.caption(words.BATCH.format(side=result.padding_side))
    parts.download(rows, name=f"{checkpoint.name}-tokens")
    pair = [f"--pair={asked.texts['pair']}"] if asked.texts["pair"].strip() else []
    return ("tokenize", *(f"--text={text}" for text in texts), *pair)


def _badges(rows: pd.DataFrame) -> str:
    """Each token as a badge; a legend names the colours."""
    pieces, kinds = [], []
    for row in rows.head(MOST_BADGES).to_dict("records"):
        kind = "unknown" if row["is_unknown"] else row["part"] or "special"
        kinds.append(kind)
        pieces.append(f":{KINDS[kind]}-badge[{literal(row['token'])}]")
    names = {"first": "first text", "second": "second text"}
    legend = ", ".join(
        f":{KINDS[kind]}[{names.get(kind, kind)}]" for kind in KINDS if kind in kinds
    )
    rest = f" … and {len(rows) - MOST_BADGES:,} more" if len(rows) > MOST_BADGES else ""
    return f"{' '.join(pieces)}{rest}\n\nColours: {legend}."
