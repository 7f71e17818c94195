"""What do the task heads answer, each on the user's own input?"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from inspector.analyses.heads.compute_answers import (
    fill_tokens,
    label_text,
    label_tokens,
    next_sentence,
    rate_choices,
)
from inspector.analyses.heads.compute_choice import EXPECTED, choose_head
from inspector.analyses.heads.compute_generation import MOST_NEW, next_tokens
from inspector.analyses.heads.compute_spans import answer_span
from inspector.analyses.heads.result import Choices, HeadAnswer, NextTokens
from inspector.errors import RequestError
from inspector.models.checkpoint import Checkpoint
from inspector.models.inputs import HeadInput, HeadRun, arguments, encode_all, run_head
from inspector.models.running import Loaded
from inspector.progress import Progress

MOST_CHOICES = 64
LARGEST_K = 1_000
LONGEST_ANSWER = 500  # tokens


@dataclass(frozen=True, slots=True)
class Options:
    """What a head may be told besides its texts."""

    k: int
    new_tokens: int
    temperature: float  # 0: greedy
    seed: int
    longest_answer: int  # tokens
    answer: tuple[int, ...] | None  # first and last position of the labelled answer


@dataclass(frozen=True, slots=True)
class Case:
    """A head's input and what one pass through its model returned."""

    checkpoint: Checkpoint
    loaded: Loaded
    given: HeadInput
    inputs: Mapping[str, Any]
    run: HeadRun


def heads(
    checkpoint: Checkpoint,
    *,
    progress: Progress,
    text: str,
    pair: str = "",
    choices: Sequence[str] = (),
    head: str | None = None,
    k: int = 10,
    new_tokens: int = 12,
    temperature: float = 0.0,
    seed: int = 0,
    longest_answer: int = 15,
    answer: Sequence[int] | None = None,
    device: str = "auto",
    dtype: str = "auto",
) -> HeadAnswer:
    """Run one task head of a checkpoint.

    Args:
        checkpoint: With the head's weights in its file.
        progress: Told what is being done.
        text: The text; the question, where the head answers one.
        pair: The second text: the next sentence, or the text that holds the answer.
        choices: Endings to choose from.
        head: One of results.HEADS; None: the one that config.json names.
        k: Next tokens listed, 1..1000.
        new_tokens: Steps of the continuation, 0..200.
        temperature: 0 takes the likeliest token at each step; above 0 samples, up to 10.
        seed: Of the sampling.
        longest_answer: Tokens of the longest answer span, 1..500.
        answer: Start and end position of the right answer, for the loss.
        device: "auto", "cpu", "cuda" or "mps".
        dtype: "auto", "float32", "bfloat16" or "float16".

    Raises:
        NotInCheckpointError: If the file lacks the head's weights, or a tokenizer.
        RequestError: If a parameter does not fit.
    """
    labelled = None if answer is None else tuple(int(place) for place in answer)
    options = Options(k, new_tokens, temperature, seed, longest_answer, labelled)
    _check(options)
    chosen, warnings = choose_head(checkpoint, head)
    texts = _texts(chosen, text, pair.strip() and pair, tuple(choices))
    given = encode_all(checkpoint, texts)
    progress(None, "Loading the model")
    loaded = checkpoint.load(chosen, device=device, dtype=dtype)  # type: ignore[arg-type]
    progress(None, "Running the model")
    inputs = arguments(loaded, given, choices=chosen == "multiple_choice")
    case = Case(checkpoint, loaded, given, inputs, run_head(loaded, inputs))
    if case.run.broken():
        warnings.append(
            f"{checkpoint.name} answers with NaN or infinity here: its weights are damaged, or "
            "this dtype is too small for them, and no score means anything."
        )
    if chosen not in TAKES_PAIR and pair.strip():
        warnings.append("The second text was left out: this head reads one text.")
    return HeadAnswer(
        architecture=type(loaded.model).__name__,
        head=chosen,
        output=case.run.output,
        result=ANSWERS[chosen](case, options, texts),
        heads=checkpoint.heads,
        output_class=case.run.output_class,
        device=str(loaded.device),
        dtype=str(loaded.dtype).removeprefix("torch."),
        milliseconds=case.run.milliseconds,
        tokens=given.tokens(checkpoint.require_tokens()),
        warnings=tuple(warnings),
    )


Texts = list[tuple[str, str | None]]
TAKES_PAIR = ("next_sentence", "question_answering", "sequence_classification")


def _texts(head: str, text: str, pair: str, choices: tuple[str, ...]) -> Texts:
    """The sequences that a head reads.

    Raises:
        RequestError: If one is missing.
    """
    if not text.strip():
        raise RequestError(f"There is no text: type {EXPECTED[head]}.")
    if head == "multiple_choice":
        wanted = [choice for choice in choices if choice.strip()]
        if not 2 <= len(wanted) <= MOST_CHOICES:
            raise RequestError(
                f"There are {len(wanted)} choices: give 2 to {MOST_CHOICES}, one a line or one "
                "for each --choice."
            )
        return [(text, choice) for choice in wanted]
    if head in ("next_sentence", "question_answering") and not pair:
        raise RequestError(f"There is no second text (--pair): this head reads {EXPECTED[head]}.")
    return [(text, pair or None) if head in TAKES_PAIR else (text, None)]


def _check(options: Options) -> None:
    k, answer = options.k, options.answer
    rules = (
        (1 <= k <= LARGEST_K, f"k is {k}: ask for 1 to {LARGEST_K:,} tokens."),
        (0 <= options.new_tokens <= MOST_NEW,
         f"{options.new_tokens} new tokens are asked for: ask for 0 to {MOST_NEW}."),
        (0 <= options.temperature <= 10,
         f"The temperature is {options.temperature:g}: choose 0 (the likeliest token) to 10."),
        (0 <= options.seed < 2**63, f"The seed is {options.seed}: choose a whole number from 0."),
        (1 <= options.longest_answer <= LONGEST_ANSWER,
         f"The longest answer is {options.longest_answer} tokens: choose 1 to {LONGEST_ANSWER}."),
        (answer is None or (len(answer) == 2 and all(0 <= place < 2**31 for place in answer)),
         "The labelled answer is no pair of positions: give its first and its last token, from 0."),
    )  # fmt: skip
    for fits, sentence in rules:
        if not fits:
            raise RequestError(sentence)


def _next_tokens(case: Case, options: Options, _: Texts) -> NextTokens:
    return next_tokens(
        case.checkpoint, case.loaded, case.inputs, case.run, k=options.k,
        new_tokens=options.new_tokens, temperature=options.temperature, seed=options.seed,
    )  # fmt: skip


def _choices(case: Case, _: Options, texts: Texts) -> Choices:
    return rate_choices(case.run, [choice or "" for _, choice in texts])


ANSWERS: Mapping[str, Callable[[Case, Options, Texts], Any]] = {
    "masked_lm": lambda case, _, __: fill_tokens(case.checkpoint, case.given, case.run),
    "causal_lm": _next_tokens,
    "next_sentence": lambda case, _, __: next_sentence(case.run),
    "sequence_classification": lambda case, _, __: label_text(case.loaded, case.run),
    "token_classification": lambda case, _, texts: label_tokens(
        case.checkpoint, case.loaded, case.given, case.run, texts[0][0]
    ),
    "question_answering": lambda case, options, texts: answer_span(
        case.checkpoint, case.loaded, case.given, case.run, texts[0][1] or "",
        longest=options.longest_answer, answer=options.answer,
    ),
    "multiple_choice": _choices,
}  # fmt: skip
