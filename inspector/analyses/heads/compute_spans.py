"""Find the answer to a question: start and end scores, legal spans, and the loss of a label."""

from __future__ import annotations

import numpy as np
import pandas as pd
import torch
from tokenizers import Encoding
from torch.nn.functional import cross_entropy

from inspector.analyses.heads.result import AnswerLoss, AnswerSpan
from inspector.errors import RequestError
from inspector.models.checkpoint import StagedCheckpoint
from inspector.models.inputs import HeadInput, HeadRun, arguments, run_head
from inspector.models.running import Loaded

SPANS = 10  # kept, best first
SHOWN = 160  # positions of the heat map at most


def answer_span(
    checkpoint: StagedCheckpoint,
    loaded: Loaded,
    given: HeadInput,
    run: HeadRun,
    context: str,
    *,
    longest: int,
    answer: tuple[int, ...] | None,
) -> AnswerSpan:
    """Choose the best legal span of the second text.

    Start and end each have a softmax over the second text's tokens and the first special token,
    which stands for "no answer" (SQuAD 2.0, Rajpurkar et al. 2018); a span's score is the product.
    Legal: inside the second text, the start not after the end, at most `longest` tokens.

    Args:
        loaded: The model, which is run again for the loss.
        given: The question and the text as one sequence.
        longest: Tokens of an answer at most.
        answer: First and last position of the right answer; None: no loss.

    Raises:
        RequestError: If no token of the second text is left to answer with.
    """
    encoding = given.encodings[0]
    places = [place for place, part in enumerate(encoding.sequence_ids) if part == 1]
    if not places:
        raise RequestError("The second text has no tokens: type the text with the answer.")
    null = 0 if encoding.special_tokens_mask[0] else None
    start, end = (_chances(run.fields[name][0], places, null) for name in ("start_logits", "end_logits"))
    spans = _best(start, end, encoding, places, longest=longest)
    texts = [context[int(span["start_character"]) : int(span["end_character"])] for span in spans]
    frame = pd.DataFrame([{"answer": text} | span for text, span in zip(texts, spans, strict=True)])
    best = frame.iloc[0]
    shown = _window(places, int(best["start"]))
    return AnswerSpan(
        answer=str(best["answer"]),
        score=float(best["score"]),
        start=int(best["start"]),
        end=int(best["end"]),
        start_character=int(best["start_character"]),
        end_character=int(best["end_character"]),
        no_answer=None if null is None else float(start[null] * end[null]),
        spans=frame,
        positions=_positions(checkpoint, encoding, run, (start, end), places),
        loss=None if answer is None else _loss(loaded, given, run, answer),
        grid=_grid(start[shown], end[shown], longest),
        shown=tuple(shown),
    )


def _chances(logits: torch.Tensor, places: list[int], null: int | None) -> torch.Tensor:
    """Probability of each position, 0 where none is allowed, (positions,)."""
    allowed = torch.full_like(logits, float("-inf"))
    allowed[places if null is None else [null, *places]] = 0.0
    return (logits + allowed).softmax(dim=0)


def _grid(start: torch.Tensor, end: torch.Tensor, longest: int) -> np.ndarray:
    """Product of start (rows) and end (columns), NaN where the span is not legal."""
    product = start[:, None] * end[None, :]
    legal = torch.ones_like(product, dtype=torch.bool).triu() & torch.ones_like(product, dtype=torch.bool).tril(
        longest - 1
    )
    return product.where(legal, float("nan")).numpy()


def _best(
    start: torch.Tensor, end: torch.Tensor, encoding: Encoding, places: list[int], *, longest: int
) -> list[dict[str, float | int]]:
    """The best legal spans, best first; of equal ones the earlier."""
    # A band of `longest` ends a start, and never a square of the text's length.
    starts = torch.tensor(places)
    padded = torch.cat([end[starts], torch.full((longest,), -1.0)])
    ends = padded.unfold(0, longest, 1)[: len(places)]  # (starts, longest)
    scores = (start[starts][:, None] * ends).where(ends >= 0, -1.0).nan_to_num(nan=-0.5)
    chosen = scores.flatten().sort(descending=True, stable=True)
    found = []
    for score, place in zip(chosen.values[:SPANS].tolist(), chosen.indices.tolist(), strict=False):
        if score == -1:  # past the text's end
            break
        first, last = places[place // longest], places[place // longest + place % longest]
        found.append(
            {
                "score": score if score >= 0 else float("nan"),
                "start": first,
                "end": last,
                "start_character": encoding.offsets[first][0],
                "end_character": encoding.offsets[last][1],
            }
        )
    return found


def _window(places: list[int], start: int) -> list[int]:
    """The positions that a heat map shows: all, or those around the best span."""
    first = max(0, min(places.index(start) - SHOWN // 2, len(places) - SHOWN))
    return places[first : first + SHOWN]


def _positions(
    checkpoint: StagedCheckpoint,
    encoding: Encoding,
    run: HeadRun,
    chances: tuple[torch.Tensor, torch.Tensor],
    places: list[int],
) -> pd.DataFrame:
    tokens = checkpoint.require_tokens()
    legal = set(places)
    return pd.DataFrame(
        {
            "position": range(len(encoding.ids)),
            "token": [tokens.visible(index) for index in encoding.ids],
            "start_logit": run.fields["start_logits"][0].numpy(),
            "end_logit": run.fields["end_logits"][0].numpy(),
            "start_probability": chances[0].numpy(),
            "end_probability": chances[1].numpy(),
            "legal": [place in legal for place in range(len(encoding.ids))],
        }
    )


def _loss(loaded: Loaded, given: HeadInput, run: HeadRun, answer: tuple[int, ...]) -> AnswerLoss:
    """The loss of a labeled answer; positions past the input are clamped and then ignored."""
    count = given.ids.shape[1]
    clamped = [min(place, count) for place in answer]
    labels = {
        name: torch.tensor([place], device=loaded.device)
        for name, place in zip(("start_positions", "end_positions"), answer, strict=True)
    }
    own = run_head(loaded, arguments(loaded, given) | labels).fields["loss"].item()
    parts = [
        None if place == count else cross_entropy(run.fields[name], torch.tensor([place])).item()
        for name, place in zip(("start_logits", "end_logits"), clamped, strict=True)
    ]
    return AnswerLoss(
        start=answer[0],
        end=answer[1],
        start_clamped=clamped[0],
        end_clamped=clamped[1],
        start_loss=parts[0],
        end_loss=parts[1],
        loss=None if None in parts else own,
    )
