"""What a task head answers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pandas as pd

from inspector.analyses.heads import words
from inspector.analyses.heads.figures import span_heatmap
from inspector.analyses.heads.frames import loss_frame
from inspector.analyses.heads.request import HeadsRequest
from inspector.analyses.heads.result import (
    AnswerSpan,
    Choices,
    FilledTokens,
    HeadAnswer,
    Labels,
    NextSentence,
    NextTokens,
    TokenLabels,
    default_head,
)
from inspector.plotting.predictions import topk_bars
from inspector.report.content import Context, Section
from inspector.text import percent_text
from inspector.view.blocks import Block, Code, Facts, Figure, Sentence, Table, share_bars
from inspector.view.view import Headline, Picture, Tab, View, Why

BARS = 30  # that a figure draws


def view(answer: HeadAnswer, request: HeadsRequest, *, name: str) -> View:
    """The answer, the texts, and the fields of the output."""
    said, more = _SAID[type(answer.result)], list(_answers(answer.result))
    return View(
        Headline(words.headline(answer)),
        picture=_picture(answer.result, name),
        beside=(Facts(_head(answer)), *said(answer.result, request)),
        more="--json prints the scores before the softmax and the fields of the output.",
        tabs=(
            *([Tab("Answers", lambda: more)] if more else []),
            Tab("Input", lambda: _input(answer, request)),
            Tab("Output", lambda: _output(answer)),
        ),
        why=(Why(words.WHY_CHOICES, words.choices(answer)),) if isinstance(answer.result, Choices) else (),
    )


def _head(answer: HeadAnswer) -> dict[str, str]:
    name, what = words.HEADS[answer.head]
    return {"Head": name, "Answers": what, "Class": answer.architecture}


def _input(answer: HeadAnswer, request: HeadsRequest) -> Iterator[Block]:
    yield Facts({"Text": request.text, **({"Second text": request.pair} if request.pair else {})})
    yield Sentence("The model read these tokens:")
    yield Code("\n".join(" ".join(tokens) for tokens in answer.tokens))


def _picture(result: Any, name: str) -> Picture | None:
    if isinstance(result, NextTokens):
        return _bars("next", result.next, f"Next token, by {name}", "Most likely next tokens, as bars")
    if isinstance(result, NextSentence) or (isinstance(result, Labels) and result.kind != "regression"):
        columns = {"label": "token", "label_id": "token_id", "score": "probability"}
        return _bars("labels", result.table.rename(columns=columns), f"Labels of {name}", "Labels as bars")
    if isinstance(result, Choices):
        columns = {"text": "token", "choice": "token_id"}
        return _bars("choices", result.choices.rename(columns=columns), f"Endings by {name}", "Endings as bars")
    if isinstance(result, AnswerSpan):
        spans = result.spans
        return Picture(_spans(result, name), share_bars(spans["answer"].tolist(), spans["score"].tolist()))
    return None


def _spans(result: AnswerSpan, name: str) -> Figure:
    tokens, shown = result.positions["token"].tolist(), list(result.shown)
    whole = len(shown) == sum(result.positions["legal"].tolist())
    return Figure(
        "spans",
        lambda theme: span_heatmap(
            result.grid,
            positions=shown,
            tokens=[tokens[place] for place in shown],
            best=(result.start, result.end),
            title=f"Scores of all spans, by {name}",
            subtitle="" if whole else f"{len(shown)} positions around the best span",
            theme=theme,
        ),
        "Score of every valid span: starts run downward, ends to the right; the best is outlined",
    )


def _bars(kind: str, frame: pd.DataFrame, title: str, alt: str) -> Picture:
    text = share_bars(frame["token"].tolist(), frame["probability"].tolist())
    drawn = frame.sort_values("probability", ascending=False, kind="stable").head(BARS)
    return Picture(Figure(kind, lambda theme: topk_bars(drawn, title=title, theme=theme), alt), text)


def _answers(result: Any) -> Iterator[Block]:
    """What the bars show, as a table."""
    if isinstance(result, NextTokens):
        yield Table("next", "Most likely next tokens", result.next)
    elif isinstance(result, Labels) and result.kind != "regression":
        yield Table("labels", "Labels with their scores", result.labels)
    elif isinstance(result, TokenLabels):
        yield Table("token-labels", "Label of every token", result.tokens)
    elif isinstance(result, AnswerSpan):
        yield Table("positions", "Start and end scores of every position", result.positions)


def _output(answer: HeadAnswer) -> Iterator[Block]:
    yield Facts(words.ran(answer))
    yield Table("output", f"Fields of {answer.output_class}", words.fields(answer))
    if absent := words.absent(answer.heads):
        yield Sentence(absent)


def _next_sentence(result: NextSentence, _: HeadsRequest) -> Iterator[Block]:
    yield Sentence(words.scores(result))


def _labels(result: Labels, _: HeadsRequest) -> Iterator[Block]:
    yield Sentence(words.LABEL_KINDS[result.kind])
    if result.kind == "regression":
        yield Table("labels", "Labels with their scores", result.labels)


def _token_labels(result: TokenLabels, _: HeadsRequest) -> Iterator[Block]:
    if not result.spans.empty:
        yield Table("spans", "Spans", result.spans)
    yield Sentence(words.SPANS)


def _span(result: AnswerSpan, request: HeadsRequest) -> Iterator[Block]:
    yield Sentence(words.span(result, request.longest_answer))
    if result.no_answer is not None:
        yield Facts({"No answer": percent_text(result.no_answer)})
        yield Sentence(words.NO_ANSWER)
    yield Table("spans", "The best spans", result.spans)
    if result.loss is not None:
        yield Table("loss", "Loss for the right answer", loss_frame(result.loss))
        yield Sentence(words.loss(result.loss))


def _choices(result: Choices, _: HeadsRequest) -> Iterator[Block]:
    yield Table("choices", "The endings with their probabilities", result.choices)


def _next_tokens(result: NextTokens, request: HeadsRequest) -> Iterator[Block]:
    yield Sentence(words.continued(result))
    yield Code(request.text + result.continuation)
    if len(result.steps):
        yield Table("continuation", "The continuation, step by step", result.steps)
        yield Sentence(words.STEPS)


def _filled(result: FilledTokens, _: HeadsRequest) -> Iterator[Block]:
    yield Table("filled", "Most likely token at every position", result.tokens)


_SAID: dict[type, Callable[[Any, HeadsRequest], Iterator[Block]]] = {
    NextSentence: _next_sentence,
    Labels: _labels,
    TokenLabels: _token_labels,
    AnswerSpan: _span,
    Choices: _choices,
    NextTokens: _next_tokens,
    FilledTokens: _filled,
}


def asked(context: Context) -> HeadsRequest:
    """What the head that config.json names is asked, else the first that the file holds."""
    head = default_head(context.overview.architecture or "", context.overview.heads)
    return HeadsRequest(
        text=context.setting.text,
        pair=words.SECOND.get(head or "", ""),
        choices=words.ENDINGS[:2] if head == "multiple_choice" else (),
        head=head,
        seed=context.setting.seed if head == "causal_lm" else 0,
        device=context.setting.device,
        dtype=context.setting.dtype,
    )


SECTION = Section("heads", ask=lambda context: (asked(context),), query=lambda context: asked(context).to_query())
