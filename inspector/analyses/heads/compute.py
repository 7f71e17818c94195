"""What do the task heads answer, each on the user's own input?"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from inspector.analyses.heads import words
from inspector.analyses.heads.compute_answers import fill_tokens, label_text, label_tokens, next_sentence, rate_choices
from inspector.analyses.heads.compute_choice import choose_head
from inspector.analyses.heads.compute_generation import next_tokens
from inspector.analyses.heads.compute_spans import answer_span
from inspector.analyses.heads.request import HeadsRequest
from inspector.analyses.heads.result import Choices, HeadAnswer, NextTokens
from inspector.errors import RequestError
from inspector.models.checkpoint import StagedCheckpoint
from inspector.models.damage import damaged
from inspector.models.inputs import HeadInput, HeadRun, arguments, encode_all, run_head
from inspector.models.loading import load
from inspector.models.running import Loaded
from inspector.progress import Progress
from inspector.request import answers


@dataclass(frozen=True, slots=True)
class Case:
    """A head's input and what one pass through its model returned."""

    checkpoint: StagedCheckpoint
    request: HeadsRequest
    loaded: Loaded
    given: HeadInput
    inputs: Mapping[str, Any]
    run: HeadRun


@answers(HeadsRequest)
def heads(checkpoint: StagedCheckpoint, request: HeadsRequest, *, progress: Progress) -> HeadAnswer:
    """Run one task head of a checkpoint.

    Args:
        checkpoint: With the head's weights in its file.

    Raises:
        NotInCheckpointError: If the file lacks the head's weights, or a tokenizer.
        CheckpointError: If the scores are NaN or infinite.
        RequestError: If a parameter does not fit.
    """
    chosen, warnings = choose_head(checkpoint, request.head)
    texts = _texts(chosen, request)
    given = encode_all(checkpoint, texts)
    loaded = load(checkpoint, chosen, device=request.device, dtype=request.dtype, progress=progress)
    progress(None, "Running the model")
    inputs = arguments(loaded, given, choices=chosen == "multiple_choice")
    warnings += [*loaded.notes, *checkpoint.length_notes(given.ids.shape[1])]
    case = Case(checkpoint, request, loaded, given, inputs, run_head(loaded, inputs))
    if case.run.broken():
        raise damaged(checkpoint.name, loaded)
    if chosen not in TAKES_PAIR and request.pair.strip():
        warnings.append(words.ONE_TEXT)
    return HeadAnswer(
        architecture=type(loaded.model).__name__,
        head=chosen,
        output=case.run.output,
        result=ANSWERS[chosen](case, texts),
        heads=checkpoint.heads,
        output_class=case.run.output_class,
        device=str(loaded.device),
        dtype=loaded.precision,
        milliseconds=case.run.milliseconds,
        tokens=given.tokens(checkpoint.require_tokens()),
        warnings=tuple(warnings),
    )


Texts = list[tuple[str, str | None]]
TAKES_PAIR = ("next_sentence", "question_answering", "sequence_classification")


def _texts(head: str, request: HeadsRequest) -> Texts:
    """The sequences that a head reads.

    Raises:
        RequestError: If one is missing.
    """
    text, pair = request.text, request.pair.strip() and request.pair
    if not text.strip():
        raise RequestError(f"There is no text: type {words.EXPECTED[head]}.", option="text")
    if head == "multiple_choice":
        wanted = [choice for choice in request.choices if choice.strip()]
        if len(wanted) < 2:
            raise RequestError(
                "This head chooses between endings: give at least two, one per line or one for each --choice.",
                option="choices",
            )
        return [(text, choice) for choice in wanted]
    if head in ("next_sentence", "question_answering") and not pair:
        raise RequestError(f"There is no second text: this head reads {words.EXPECTED[head]}.", option="pair")
    return [(text, pair or None) if head in TAKES_PAIR else (text, None)]


def _next_tokens(case: Case, _: Texts) -> NextTokens:
    request = case.request
    return next_tokens(
        case.checkpoint,
        case.loaded,
        case.inputs,
        case.run,
        k=request.k,
        new_tokens=request.new_tokens,
        temperature=request.temperature,
        seed=request.seed,
    )


def _choices(case: Case, texts: Texts) -> Choices:
    return rate_choices(case.run, [choice or "" for _, choice in texts])


ANSWERS: Mapping[str, Callable[[Case, Texts], Any]] = {
    "masked_lm": lambda case, _: fill_tokens(case.checkpoint, case.given, case.run),
    "causal_lm": _next_tokens,
    "next_sentence": lambda case, _: next_sentence(case.run),
    "sequence_classification": lambda case, _: label_text(case.loaded, case.run),
    "token_classification": lambda case, texts: label_tokens(
        case.checkpoint, case.loaded, case.given, case.run, texts[0][0]
    ),
    "question_answering": lambda case, texts: answer_span(
        case.checkpoint,
        case.loaded,
        case.given,
        case.run,
        texts[0][1] or "",
        longest=case.request.longest_answer,
        answer=case.request.right_answer or None,
    ),
    "multiple_choice": _choices,
}
