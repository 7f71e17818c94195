"""Predict masked tokens with the checkpoint's own head, or say that it has none."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd
import torch

from inspector.analyses.masked_lm.compute_joint import LARGEST_JOINT, fill_together
from inspector.analyses.masked_lm.compute_words import score_words
from inspector.analyses.masked_lm.request import PredictRequest
from inspector.analyses.masked_lm.result import Mask, Prediction
from inspector.analyses.masked_lm.words import JOINT_UP_TO
from inspector.errors import InspectorError
from inspector.models.checkpoint import StagedCheckpoint
from inspector.models.damage import damaged
from inspector.models.loading import load
from inspector.models.masking.reading import MaskReading, Question, Wanted, answer_all
from inspector.models.masking.text import MaskedText, Word, read_targets, read_text
from inspector.models.placing.device import describe_run, peak_memory, start_counting_memory
from inspector.models.reading.readout import top_tokens
from inspector.models.running import Loaded
from inspector.models.tokens import Tokens
from inspector.progress import Progress
from inspector.request import answers


@answers(PredictRequest)
def predict(checkpoint: StagedCheckpoint, request: PredictRequest, *, progress: Progress) -> Prediction:
    """Fill every mask of a text.

    Args:
        request: A text with the tokenizer's mask token one or more times, or with `masks`.
            `targets` of one token are ranked alone; probabilities stay those of the whole
            vocabulary. Those of several tokens are scored as a chain of as many masks, beside the
            others, in each mask's `words`; where no target is one token, all tokens are ranked.

    Returns:
        For each mask its most likely tokens, every other mask left open; and the most likely joint
        answers, found with a beam of five.

    Raises:
        NotInCheckpointError: If there is no masked-LM head, no tokenizer or no mask token.
        RequestError: If the text has no mask or does not fit the model.
    """
    answer = predict_many(checkpoint, [request.parameters()], progress=progress)[0]
    if isinstance(answer, InspectorError):
        raise answer
    return answer


def predict_many(
    checkpoint: StagedCheckpoint, requests: Sequence[Mapping[str, Any]], *, progress: Progress
) -> list[Prediction | InspectorError]:
    """Answer several requests in the same passes, each as `predict` would alone.

    Returns:
        For each request its prediction, or the error that refuses it.
    """
    given: dict[int, Prediction | InspectorError] = {}
    groups: dict[Loaded, list[tuple[int, _AnswerableRequest]]] = {}
    for number, request in enumerate(requests):
        try:
            asked = _understand(checkpoint, PredictRequest(**request))
            device, dtype = asked.request.device, asked.request.dtype
            loaded = load(checkpoint, "masked_lm", device=device, dtype=dtype, progress=progress)
            groups.setdefault(loaded, []).append((number, asked))
        except InspectorError as error:
            given[number] = error
    for loaded, members in groups.items():
        progress(None, "Running the model")
        together = _answer_group(checkpoint, loaded, [asked for _, asked in members], progress)
        given |= zip((number for number, _ in members), together, strict=True)
    return [given[number] for number in range(len(requests))]


@dataclass(frozen=True, slots=True)
class _AnswerableRequest:
    """A request that can be answered."""

    request: PredictRequest
    text: MaskedText
    rows: list[int]  # rank these alone, if any
    words: list[Word]


def _how(loaded: Loaded) -> str:
    """What it ran on, and where its parts lie if they are in several places."""
    how = describe_run(loaded.device, loaded.dtype)
    return f"{how}; {loaded.reason}" if loaded.spread or loaded.stream else how


def _understand(checkpoint: StagedCheckpoint, request: PredictRequest) -> _AnswerableRequest:
    masked = read_text(checkpoint, request.text, request.masks)
    rows, words = read_targets(checkpoint, masked, request.targets)
    return _AnswerableRequest(request, masked, rows, words)


def _answer_group(
    checkpoint: StagedCheckpoint, loaded: Loaded, group: Sequence[_AnswerableRequest], progress: Progress
) -> Sequence[Prediction | InspectorError]:
    """Answer requests for one device and dtype together, or alone where one spoils the others."""
    try:
        return _answer_together(checkpoint, loaded, group, progress)
    except InspectorError as error:
        if len(group) == 1:
            return [error]
        return [_answer_group(checkpoint, loaded, [asked], progress)[0] for asked in group]


def _answer_together(
    checkpoint: StagedCheckpoint, loaded: Loaded, group: Sequence[_AnswerableRequest], progress: Progress
) -> list[Prediction | InspectorError]:
    tokens = checkpoint.require_tokens()
    questions = [
        question
        for asked in group
        for question in (
            _rank(asked, tokens),
            score_words(asked.text, asked.words, tokens),
            fill_together(asked.text, tokens, asked.request.order),
        )
    ]
    start_counting_memory(loaded.device)
    found = answer_all(checkpoint, loaded, questions, progress=progress)
    memory_nbytes = peak_memory(loaded.device) or loaded.nbytes
    predictions: list[Prediction | InspectorError] = []
    for place, asked in enumerate(group):
        ranked, words, joint = found[3 * place : 3 * place + 3]
        if not all(each.finite for each in ranked):
            predictions.append(damaged(checkpoint.name, loaded))
            continue
        predictions.append(
            Prediction(
                device=str(loaded.device),
                dtype=loaded.precision,
                milliseconds=ranked[0].milliseconds,
                tokens=tuple(tokens.visible(index) for index in asked.text.ids),
                masks=tuple(map(Mask, asked.text.masks, (each.frame for each in ranked), words)),
                joint=joint,
                warnings=_warnings(asked),
                text=asked.text.text,
                token_ids=asked.text.ids,
                special=asked.text.special,
                threads=torch.get_num_threads(),
                memory_nbytes=memory_nbytes,
                note=_how(loaded),
                batch=len(group),
            )
        )
    return predictions


@dataclass(frozen=True, slots=True)
class _Ranked:
    """What was read at one mask."""

    frame: pd.DataFrame
    finite: bool
    milliseconds: float


def _rank(asked: _AnswerableRequest, tokens: Tokens) -> Question:
    """The k most likely tokens of each mask, or those that are asked for, most likely first."""

    def keep(reading: MaskReading) -> list[_Ranked]:
        scores = reading.logits
        if asked.rows:
            wanted = torch.tensor(sorted(set(asked.rows)), device=scores.device)
            best, places = scores[:, wanted].sort(dim=1, descending=True, stable=True)
            ids = wanted[places]
        else:
            ids, best = top_tokens(scores, min(asked.request.k, scores.shape[1]))
        chances = reading.log_probability.gather(1, ids).exp().cpu().numpy()
        columns = zip(ids.cpu().numpy(), chances, best.cpu().numpy(), reading.finite, strict=True)
        return [_Ranked(_frame(tokens, *three), fine, reading.milliseconds) for *three, fine in columns]

    return (yield [Wanted(asked.text.row, keep)])[0]


def _frame(tokens: Tokens, ids: Any, probabilities: Any, logits: Any) -> pd.DataFrame:
    return pd.DataFrame(
        {
            "token": [tokens.visible(index) for index in ids.tolist()],
            "token_id": ids,
            "probability": probabilities,
            "logit": logits,
        }
    )


def _warnings(asked: _AnswerableRequest) -> tuple[str, ...]:
    many = len(asked.text.masks) > LARGEST_JOINT
    return (JOINT_UP_TO.format(masks=LARGEST_JOINT),) if many else ()
