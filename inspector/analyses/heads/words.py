"""Sentences about what a task head answers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pandas as pd

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
from inspector.analyses.overview.words import HEADS
from inspector.text import percent_text, plural, shape_text, some

# head -> its axes, and what each field of its output holds
FIELDS = {
    "masked_lm": ("batch × positions × vocabulary", {"logits": "one score per vocabulary token, at every position"}),
    "causal_lm": (
        "batch × positions × vocabulary",
        {"logits": "one score per vocabulary token, at every position: the last one predicts the next token"},
    ),
    "next_sentence": ("batch × 2", {"logits": "label 0: the second text follows; label 1: it does not"}),
    "sequence_classification": ("batch × labels", {"logits": "one score per label"}),
    "token_classification": ("batch × positions × labels", {"logits": "one score per label, at every position"}),
    "question_answering": (
        "batch × positions",
        {
            "start_logits": "how well an answer starts at each position",
            "end_logits": "how well an answer ends at each position",
        },
    ),
    "multiple_choice": ("batch × choices", {"logits": "one score per choice"}),
}
# What a head reads
EXPECTED = {
    "masked_lm": "a sentence",
    "causal_lm": "how a text begins",
    "next_sentence": "a sentence, and a second one that may follow it",
    "sequence_classification": "a text",
    "token_classification": "a sentence",
    "question_answering": "a question, and a second text with the answer",
    "multiple_choice": "how a text begins, and its endings",
}
# What a head reads besides the text, where nobody has typed it
SECOND = {
    "next_sentence": "a person who studies law and works in a court.",
    "question_answering": "The Eiffel Tower stands in Paris. It was built in 1889.",
}
ENDINGS = ("and waited for the water to boil.", "and drove it to the airport.", "because it was blue.")
LABEL_KINDS = {
    "softmax": "One label is right: a softmax over the labels.",
    "sigmoid": "Several labels can be right (problem_type is multi_label_classification): each has its own sigmoid, "
    "so the scores need not sum to 100 %.",
    "regression": "Regression: the raw number. With one label and no problem_type, transformers' loss is the squared "
    "error; its pipeline would show the sigmoid of this number.",
}
SPANS = (
    "Neighboring tokens with the same label form a span, B- starts a new one, and the score is the mean over its "
    "tokens (the pipeline's strategy “simple”)."
)
STEPS = (
    "Probability, rank (0 is the most likely) and entropy (in nats) are computed over the whole vocabulary, before "
    "temperature."
)
SPANS_NAMED = 5
NO_SPAN = "No span: every token has the label O."
WHY_CHOICES = "How are endings scored?"
NO_ANSWER = (
    "The score of no answer is the same product at the first special token, which means “no answer” (SQuAD 2.0)."
)
INSTEAD_OF = (
    "config.json names {named}, but the file lacks that head's weights. The {shown} is shown instead, because the "
    "file has it."
)
# Why a continuation stops
ENOUGH = "it has reached {tokens} new tokens"
NO_ROOM = "the model has only {positions:,} positions"
ENDED = "{token} ends a text"
ONE_TEXT = "The second text was ignored: this head reads one text."
ENCODER_DECODER = (
    "{name} is an encoder-decoder model, and its language-model head does not run here. Use the Logit lens, "
    "which reads its decoder."
)


def no_head(name: str, what: str, present: Sequence[str]) -> str:
    """Why a head is not run, and what there is instead."""
    names = " and ".join(present)
    instead = f"It has a {names}" if names else "Open a checkpoint that was trained for a task"
    return (
        f"{name} has no {what}: its file lacks the weights for one, and a head filled with random numbers would "
        f"return nonsense, so none runs. {instead}."
    )


def absent(heads: Mapping[str, str]) -> str:
    """Which heads the file lacks; "" where there is none."""
    lacking = [HEADS[head][0] for head, state in heads.items() if state == "absent"]
    if not lacking:
        return ""
    return (
        f"Not in this file, so not run: {', '.join(lacking)}. A head filled with random numbers would return nonsense."
    )


def fields(answer: HeadAnswer) -> pd.DataFrame:
    """The output's fields with their shapes, axes and meaning."""
    axes, known = FIELDS[answer.head]
    return pd.DataFrame(
        {
            "field": name,
            "shape": shape_text(shape),
            "axes": axes if name in known else "–",
            "what_it_holds": known.get(name, "internal state, not an answer"),
        }
        for name, shape in answer.output.items()
    )


def headline(answer: HeadAnswer) -> str:
    """What the head answers, in a sentence."""
    return HEADLINES[type(answer.result)](answer.result)


def _best_label(result: Labels) -> str:
    best = result.labels.iloc[0]
    if result.kind != "regression":
        return f"Most likely label: {best['label']}, {percent_text(best['score'])}."
    numbers = zip(result.labels["label"], result.labels["score"], strict=True)
    return f"The head returns {', '.join(f'{label} {score:.4g}' for label, score in numbers)}."


def _spans(result: TokenLabels) -> str:
    spans = zip(result.spans["text"], result.spans["label"], strict=True)
    found = [f"“{text}” ({label})" for text, label in spans]
    return f"{plural(len(found), 'span')}: {some(found, SPANS_NAMED)}." if found else NO_SPAN


def _best_answer(result: AnswerSpan) -> str:
    return f"The best answer: “{result.answer}”, {percent_text(result.score)}."


def _next_token(result: NextTokens) -> str:
    best = result.next.iloc[0]
    return f"Most likely next token: “{best['token']}”, {percent_text(best['probability'])}."


def _filled(result: FilledTokens) -> str:
    masks = result.tokens[result.tokens["is_mask"]]
    filled = ", ".join(f"“{token}”" for token in masks["prediction"])
    return f"At the mask, the most likely token: {filled}." if filled else "The text has no mask."


def _verdict(result: NextSentence) -> str:
    verdict = "follows" if result.is_next >= 0.5 else "does not follow"
    return (
        f"According to this head, the second text {verdict} the first: the probability is "
        f"{percent_text(result.is_next)} that it does and {percent_text(result.not_next)} that it does not."
    )


def scores(result: NextSentence) -> str:
    """Where the two probabilities come from."""
    return (
        f"Both come from a softmax over the head's two scores, {result.logits[0]:.4f} (label 0: it follows) and "
        f"{result.logits[1]:.4f} (label 1: it does not)."
    )


def best_choice(result: Choices) -> str:
    """The ending that fits best."""
    best = result.choices.iloc[result.best]
    return f"Best: {best['text']}, probability {percent_text(best['probability'])}."


def continued(result: NextTokens) -> str:
    """How the text was continued, and why the continuation ends."""
    how = "sampled with the seed" if result.sampled else "with the most likely token at each step"
    return f"Continuation {how}; generation stopped because {result.stopped}."


def span(result: AnswerSpan, longest: int) -> str:
    """How spans are scored."""
    null = "" if result.no_answer is None else " and the first special token (no answer)"
    return (
        f"Start and end each have a softmax over the second text's tokens{null}. A span's score is the product of "
        "both. A span is legal if it is inside the second text, does not end before it starts, and has at most "
        f"{longest} tokens."
    )


def loss(found: AnswerLoss) -> str:
    """The model's loss for the right answer."""
    mean = "none, because a position past the input is ignored" if found.loss is None else f"{found.loss:.4f}"
    return (
        f"The model's loss, the mean of both: {mean}. Positions past the input are clamped to its length, and a label "
        "of exactly that length is ignored."
    )


def ran(answer: HeadAnswer) -> dict[str, str]:
    """What ran, and where."""
    return {
        "Tokens": " + ".join(str(len(tokens)) for tokens in answer.tokens),
        "Ran on": f"{answer.device}, {answer.dtype}",
    }


def choices(answer: HeadAnswer) -> str:
    """How endings are scored."""
    return (
        "Each ending follows the text in its own sequence. The sequences are padded to one length and go through the "
        f"model together, as input_ids of shape {(1, len(answer.tokens), len(answer.tokens[0]))} (batch × choices × "
        "positions). The head gives each a score; a softmax over the choices turns the scores into probabilities."
    )


HEADLINES: dict[type, Callable[[Any], str]] = {
    NextSentence: _verdict,
    Labels: _best_label,
    TokenLabels: _spans,
    AnswerSpan: _best_answer,
    Choices: best_choice,
    NextTokens: _next_token,
    FilledTokens: _filled,
}
