"""What a task head answers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pandas as pd

from inspector.analyses.heads import words
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
from inspector.view.blocks import Bars, Block, Code, Facts, Figure, Sentence, Table, share_bars
from inspector.view.view import Headline, Picture, Tab, View


def view(answer: HeadAnswer, request: HeadsRequest, *, name: str) -> View:
    """The answer, the texts, and the fields of the output."""
    said = _SAID[type(answer.result)]
    return View(
        Headline(words.headline(answer)),
        picture=_picture(answer.result, name),
        beside=(Facts(_asked(answer, request)), *said(answer.result, request)),
        more="--json prints the scores before the softmax and the fields of the output.",
        tabs=(Tab("Answers", lambda: _answers(answer.result)), Tab("Output", lambda: _output(answer))),
    )


def _asked(answer: HeadAnswer, request: HeadsRequest) -> dict[str, str]:
    return {
        "Head": answer.head.replace("_", " "),
        "Class": answer.architecture,
        "Text": request.text,
        **({"Second text": request.pair} if request.pair else {}),
    }


def _picture(result: Any, name: str) -> Picture | None:
    if isinstance(result, NextTokens):
        return _bars("next", result.next, f"Next token, by {name}", "Most likely next tokens, as bars")
    if isinstance(result, Labels) and result.kind != "regression":
        columns = {"label": "token", "label_id": "token_id", "score": "probability"}
        return _bars("labels", result.labels.rename(columns=columns), f"Labels of {name}", "Labels as bars")
    return Picture(text=text) if (text := _text(result)) else None


def _text(result: Any) -> Bars | None:
    """Bars on a terminal for what has no figure."""
    if isinstance(result, NextSentence):
        return share_bars(("it follows", "it does not"), (result.is_next, result.not_next))
    if isinstance(result, Choices):
        return share_bars(result.choices["text"].tolist(), result.choices["probability"].tolist())
    if isinstance(result, AnswerSpan):
        return share_bars(result.spans["answer"].tolist(), result.spans["score"].tolist())
    return None


def _bars(kind: str, frame: pd.DataFrame, title: str, alt: str) -> Picture:
    text = share_bars(frame["token"].tolist(), frame["probability"].tolist())
    return Picture(Figure(kind, lambda theme: topk_bars(frame, title=title, theme=theme), alt), text)


def _answers(result: Any) -> Iterator[Block]:
    """What the bars show, as a table."""
    if isinstance(result, NextTokens):
        yield Table("next", "Most likely next tokens", result.next)
    elif isinstance(result, Labels) and result.kind != "regression":
        yield Table("labels", "Labels with their scores", result.labels)


def _output(answer: HeadAnswer) -> Iterator[Block]:
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
    yield Table("token-labels", "Label of every token", result.tokens)


def _span(result: AnswerSpan, request: HeadsRequest) -> Iterator[Block]:
    yield Sentence(words.span(result, request.longest_answer))
    if result.loss is not None:
        yield Sentence(words.loss(result.loss))
    yield Table("spans", "The best spans", result.spans)


def _choices(result: Choices, _: HeadsRequest) -> Iterator[Block]:
    yield Table("choices", "The endings with their probabilities", result.choices)


def _next_tokens(result: NextTokens, request: HeadsRequest) -> Iterator[Block]:
    yield Sentence(words.continued(result))
    yield Code(request.text + result.continuation)
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
