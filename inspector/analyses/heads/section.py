"""What the head that the checkpoint names answers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

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
from inspector.report.content import Block, Code, Context, Drawn, Facts, Said, Section, Tabled
from inspector.text import percent_text


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


def show(context: Context, answers: tuple[Any, ...]) -> Iterator[Block]:
    """The texts, the answer, and the fields of the output."""
    answer: HeadAnswer = answers[0]
    request = asked(context)
    yield Facts(
        {
            "Head": answer.head.replace("_", " "),
            "Class": answer.architecture,
            "Text": request.text,
            **({"Second text": request.pair} if request.pair else {}),
        }
    )
    yield from _SHOWN[type(answer.result)](context, answer.result)
    yield Tabled("output", f"Fields of {answer.output_class}", words.fields(answer))
    yield Said(words.absent(answer.heads))


def _next_sentence(_: Context, result: NextSentence) -> Iterator[Block]:
    yield Said(words.follows(result))


def _labels(context: Context, result: Labels) -> Iterator[Block]:
    yield Said(words.LABEL_KINDS[result.kind])
    if result.kind != "regression":
        names = {"label": "token", "label_id": "token_id", "score": "probability"}
        bars = result.labels.rename(columns=names)
        yield Drawn(
            "labels", lambda theme: topk_bars(bars, title=f"Labels of {context.name}", theme=theme), "Labels as bars"
        )
    yield Tabled("labels", "Labels with their scores", result.labels)


def _token_labels(_: Context, result: TokenLabels) -> Iterator[Block]:
    if result.spans.empty:
        yield Said(words.NO_SPAN)
    else:
        yield Tabled("spans", "Spans", result.spans)
    yield Said(words.SPANS)
    yield Tabled("token-labels", "Label of every token", result.tokens)


def _span(context: Context, result: AnswerSpan) -> Iterator[Block]:
    yield Said(f"The best answer: “{result.answer}”, {percent_text(result.score)}.")
    yield Said(words.span(result, asked(context).longest_answer))
    yield Tabled("spans", "The best spans", result.spans)


def _choices(_: Context, result: Choices) -> Iterator[Block]:
    yield Said(words.best_choice(result))
    yield Tabled("choices", "The endings with their probabilities", result.choices)


def _next_tokens(context: Context, result: NextTokens) -> Iterator[Block]:
    yield Drawn(
        "next",
        lambda theme: topk_bars(result.next, title=f"Next token, by {context.name}", theme=theme),
        "Most likely next tokens, as bars",
    )
    yield Tabled("next", "Most likely next tokens", result.next)
    yield Said(words.continued(result))
    yield Code(context.setting.text + result.continuation)
    yield Tabled("continuation", "The continuation, step by step", result.steps)
    yield Said(words.STEPS)


def _filled(_: Context, result: FilledTokens) -> Iterator[Block]:
    yield Tabled("filled", "Most likely token at every position", result.tokens)


_SHOWN: dict[type, Callable[[Context, Any], Iterator[Block]]] = {
    NextSentence: _next_sentence,
    Labels: _labels,
    TokenLabels: _token_labels,
    AnswerSpan: _span,
    Choices: _choices,
    NextTokens: _next_tokens,
    FilledTokens: _filled,
}
SECTION = Section(
    "heads", ask=lambda context: (asked(context),), show=show, query=lambda context: asked(context).to_query()
)
