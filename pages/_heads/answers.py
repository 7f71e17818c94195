"""Draw what each head answers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pandas as pd
import streamlit as st

from inspector.analyses.heads import words
from inspector.analyses.heads.figures import span_heatmap
from inspector.analyses.heads.request import HeadsRequest
from inspector.analyses.heads.result import (
    AnswerLoss,
    AnswerSpan,
    Choices,
    FilledTokens,
    HeadAnswer,
    Labels,
    NextSentence,
    NextTokens,
    TokenLabels,
)
from inspector.plotting.predictions import topk_bars
from inspector.results.checkpoint import Opened
from inspector.text import literal, percent_text, plural
from pages._ui import parts, session, table_files

FEW, HEIGHT = 10, 315  # bars that are drawn in this many pixels
COLORS = ("blue", "green", "orange", "violet", "red", "yellow", "primary")


@dataclass(frozen=True, slots=True)
class Answered:
    """A head's answer, with what was asked."""

    checkpoint: Opened
    request: HeadsRequest
    answer: HeadAnswer


def draw(checkpoint: Opened, request: HeadsRequest, answer: HeadAnswer) -> None:
    """Draw one head's answer."""
    _DRAWN[type(answer.result)](Answered(checkpoint, request, answer), answer.result)


def say_how(answer: HeadAnswer) -> None:
    """Say what ran, and where."""
    with st.container(horizontal=True):
        st.metric("Class", answer.architecture)
        st.metric("Tokens", " + ".join(str(len(tokens)) for tokens in answer.tokens[:4]))
        st.metric(
            "Forward pass", f"{answer.milliseconds:.1f} ms", help="One pass through the model, which is already loaded."
        )
    st.caption(f"{answer.device}, {answer.dtype}")


def draw_output(answer: HeadAnswer | None) -> None:
    """List what the model's class returned."""
    if answer is None:
        st.info("There is no output: see the message above.", icon=":material/info:")
        return
    st.markdown(f"**{literal(answer.output_class)}**")
    parts.table(words.fields(answer), alt="Fields of the output with their shapes and axes")


def _next_sentence(_: Answered, result: NextSentence) -> None:
    with st.container(horizontal=True):
        st.metric("It follows", percent_text(result.is_next))
        st.metric("It does not", percent_text(result.not_next))
    st.markdown(literal(words.follows(result)))


def _labels(asked: Answered, result: Labels) -> None:
    st.caption(literal(words.LABEL_KINDS[result.kind]))
    if result.kind == "regression":
        with st.container(horizontal=True):
            for label, score in zip(result.labels["label"], result.labels["score"], strict=True):
                st.metric(literal(label), f"{score:.4f}")
    else:
        _bars(asked.checkpoint, result.labels, ("label", "label_id", "score"), what="Labels")
    parts.table(result.labels, alt="Labels with their scores")
    table_files.offer(result.labels, name=f"{asked.checkpoint.name}-labels")


def _bars(checkpoint: Opened, frame: pd.DataFrame, names: tuple[str, str, str], *, what: str) -> None:
    renamed = dict(zip(names, ("token", "token_id", "probability"), strict=True))
    bars = frame.rename(columns=renamed).sort_values("probability", ascending=False).head(30)
    parts.chart(
        topk_bars(bars, title=f"{what} of {checkpoint.name}", theme=session.theme()),
        alt=f"{what} with their probabilities as bars; the table below lists the same",
        key=f"bars {what}",
    )


def _token_labels(asked: Answered, result: TokenLabels) -> None:
    colors: dict[str, str] = {}
    for label in dict.fromkeys(result.spans["label"]):
        colors[label] = COLORS[len(colors) % len(COLORS)]
    st.markdown(_marked(asked.request.text, result.spans, colors))
    if result.spans.empty:
        st.info(words.NO_SPAN, icon=":material/info:")
    else:
        parts.table(result.spans, alt="Spans with label, score and position")
    st.caption(literal(words.SPANS))
    with st.expander(f"Every token: {plural(len(result.tokens), 'label')}"):
        parts.table(result.tokens, alt="Every token with its most likely label")
        table_files.offer(result.tokens, name=f"{asked.checkpoint.name}-token-labels")


def _marked(text: str, spans: pd.DataFrame, colors: dict[str, str]) -> str:
    """The text with its spans colored and named."""
    pieces, at = [], 0
    for span in spans.to_dict("records"):
        pieces.append(literal(text[at : span["start"]]))
        color, at = colors[span["label"]], span["end"]
        shown = f"{literal(span['text'])} **{literal(span['label'])}** {percent_text(span['score'])}"
        pieces.append(f":{color}-background[{shown}]")
    return " ".join(piece for piece in [*pieces, literal(text[at:])] if piece)


def _span(asked: Answered, result: AnswerSpan) -> None:
    context = asked.request.pair
    before, after = context[: result.start_character], context[result.end_character :]
    with st.container(horizontal=True):
        st.metric("Score of the best span", percent_text(result.score))
        if result.no_answer is not None:
            st.metric("No answer", percent_text(result.no_answer), help=words.NO_ANSWER)
        st.metric("Positions", f"{result.start} to {result.end}")
    st.markdown(f"{literal(before)} :green-background[{literal(result.answer)} **answer**] {literal(after)}")
    tokens = result.positions["token"].tolist()
    shown = list(result.shown)
    parts.chart(
        span_heatmap(
            result.grid,
            positions=shown,
            tokens=[tokens[place] for place in shown],
            best=(result.start, result.end),
            title=f"Scores of all spans, by {asked.checkpoint.name}",
            subtitle=""
            if len(shown) == sum(result.positions["legal"].tolist())
            else f"{len(shown)} positions around the best span",
            theme=session.theme(),
        ),
        alt="Score of every valid span: starts run downward, ends to the right; the best is outlined",
        key="spans",
    )
    st.caption(literal(words.span(result, asked.request.longest_answer)))
    parts.table(result.spans, alt="The best spans")
    _loss(result.loss)
    with st.expander("Every position: start and end"):
        parts.table(result.positions, alt="Start and end scores of every position")
        table_files.offer(result.positions, name=f"{asked.checkpoint.name}-positions")


def _loss(loss: AnswerLoss | None) -> None:
    if loss is None:
        return
    pairs = {
        "start": (loss.start, loss.start_clamped, loss.start_loss),
        "end": (loss.end, loss.end_clamped, loss.end_loss),
    }
    st.markdown("**Loss for the right answer**")
    parts.table(
        pd.DataFrame(
            {
                "of": name,
                "position": str(place),
                "clamped to": str(clamped),
                "loss": "ignored" if value is None else f"{value:.4f}",
            }
            for name, (place, clamped, value) in pairs.items()
        ),
        alt="Loss of start and end",
    )
    st.caption(literal(words.loss(loss)))


def _choices(asked: Answered, result: Choices) -> None:
    st.markdown(literal(words.best_choice(result)))
    _bars(asked.checkpoint, result.choices, ("text", "choice", "probability"), what="Endings")
    parts.table(result.choices, alt="Choices with their probabilities")
    st.caption(literal(words.choices(asked.answer)))


def _next_tokens(asked: Answered, result: NextTokens) -> None:
    st.markdown(literal(words.continued(result)))
    st.code(asked.request.text + result.continuation, language=None, wrap_lines=True)
    parts.chart(
        topk_bars(result.next.head(30), title=f"Next token, by {asked.checkpoint.name}", theme=session.theme()),
        alt="Most likely next tokens as bars; the table below lists the same",
        key="next",
        height=HEIGHT if len(result.next) <= FEW else None,
    )
    if len(result.steps):
        with st.expander("The continuation step by step"):
            parts.table(result.steps, alt="The continuation step by step")
            st.caption(words.STEPS)
    with st.expander(f"Table: the {plural(len(result.next), 'most likely next token')}"):
        parts.table(result.next, alt="Most likely next tokens")
        table_files.offer(result.next, name=f"{asked.checkpoint.name}-next")


def _filled(asked: Answered, result: FilledTokens) -> None:
    st.markdown("This head has its own page, with top-k, targets and joint answers for any mask.")
    parts.page_link("masked_lm")
    with st.expander("Most likely token at every position"):
        parts.table(result.tokens, alt="Most likely token at every position")
        table_files.offer(result.tokens, name=f"{asked.checkpoint.name}-filled")


_DRAWN: dict[type, Callable[[Answered, Any], None]] = {
    NextSentence: _next_sentence,
    Labels: _labels,
    TokenLabels: _token_labels,
    AnswerSpan: _span,
    Choices: _choices,
    NextTokens: _next_tokens,
    FilledTokens: _filled,
}
