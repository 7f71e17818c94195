"""How similar texts are to a sentence encoder: the score, and what each pair of tokens brings of it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product

import pandas as pd
import torch

from inspector.analyses.similarity import words
from inspector.analyses.similarity.request import DECLARED, SimilarityRequest
from inspector.analyses.similarity.result import Similarity
from inspector.errors import NotInCheckpointError, RequestError
from inspector.models.checkpoint import StagedCheckpoint
from inspector.models.loading import load
from inspector.models.sentences.encoding import Encodings, Padded, encode, states_alone, states_padded
from inspector.models.sentences.pooling import Linear, TextVector, finish, pair_parts, pool, read_linear, score
from inspector.models.sentences.settings import Normalize, SentenceSettings, read_settings
from inspector.models.tokens import Tokens
from inspector.progress import Progress
from inspector.request import answers
from inspector.results.sentences import ADDITIVE, MEASURES

MOST_PAIRS = 40_000  # of all scores
SCORES = ["first", "second", "score"]
PAIRS = ["first", "second", "first_position", "second_position", "first_token", "second_token", "part"]
PADDING = ["alone", "masked", "pooled_over_padding", "unmasked", "part", "first_padding", "second_padding"]


@answers(SimilarityRequest)
def similarity(checkpoint: StagedCheckpoint, request: SimilarityRequest, *, progress: Progress) -> Similarity:
    """Compare the first text with each of the others, as sentence-transformers does.

    Every text runs alone. Its vector is the sum of what its tokens bring, through every module that is linear, so the
    score of cosine and dot product is a sum over pairs of tokens.

    Raises:
        NotInCheckpointError: If nothing states a pooling and none was named, or weights, a tokenizer or a module's
            file are missing.
        RequestError: If there are fewer than two texts, or one is empty or too long.
        CheckpointError: If a module's file is broken, or the model answers with NaN.
    """
    checkpoint.refuse_adapter()
    texts = tuple(text for text in request.texts if text.strip())
    if len(texts) < 2:
        raise RequestError(words.TOO_FEW, option="texts")
    stated = read_settings(checkpoint.manifest)
    modes = stated.modes if request.pooling == DECLARED else (request.pooling,)
    if not modes:
        raise NotInCheckpointError(words.NO_POOLING.format(name=checkpoint.name), option="pooling")
    prompt = _prompt(stated, request.prompt)
    encodings = encode(checkpoint, texts, prompt=prompt, include_prompt=stated.include_prompt)
    loaded = load(checkpoint, "base", device=request.device, dtype=request.dtype, progress=progress)
    progress(None, "Running the model")
    states, milliseconds = states_alone(checkpoint, loaded, encodings)
    layers = _layers(checkpoint, stated, width=len(modes) * states[0].shape[1])
    vectors = [finish(pool(each, torch.ones(len(each)), modes, prompt=encodings.prompt), layers) for each in states]
    measure = stated.measure or MEASURES[0]
    others = range(1, len(texts))
    scores = [score(vectors[0].vector, vectors[other].vector, measure) for other in others]
    tokens = checkpoint.require_tokens()
    pairs, whole = _pairs(vectors, encodings, tokens, measure)
    padded = states_padded(checkpoint, loaded, encodings)
    padding = _padding(padded, modes, layers, measure, scores, prompt=encodings.prompt) if padded else []
    return Similarity(
        texts=texts,
        pooling=" + ".join(modes),
        declared_pooling=" + ".join(stated.modes) or None,
        modules=("Transformer", "Pooling", *(type(each).__name__ for each in stated.after)),
        dimensions=len(vectors[0].vector),
        measure=measure,
        declared_measure=stated.measure,
        prompt=prompt,
        prompts=tuple(stated.prompts),
        include_prompt=stated.include_prompt,
        additive=measure in ADDITIVE and vectors[0].parts is not None,
        device=str(loaded.device),
        dtype=loaded.precision,
        milliseconds=milliseconds,
        scores=pd.DataFrame([(0, other, each) for other, each in zip(others, scores, strict=True)], columns=SCORES),
        pairs=pd.DataFrame(pairs, columns=PAIRS),
        tokens=pd.DataFrame(
            [
                (number, place, tokens.visible(index), index)
                for number, each in enumerate(encodings.texts)
                for place, index in enumerate(each.ids)
            ],
            columns=["text", "position", "token", "token_id"],
        ),
        padding=pd.DataFrame(
            [(0, other, *row) for other, row in zip(others, padding, strict=False)], columns=[*SCORES[:2], *PADDING]
        ),
        padding_side=tokens.padding_side,
        warnings=(
            *loaded.notes,
            *tokens.how_read,
            *_cut(checkpoint, encodings),
            *([] if whole else [words.PAIRS_LEFT_OUT.format(most=MOST_PAIRS)]),
        ),
    )


def _cut(checkpoint: StagedCheckpoint, encodings: Encodings) -> Iterator[str]:
    """A note on texts of which only the beginning was read."""
    (longest, said), most = checkpoint.text_limit, max(encodings.lengths)
    if longest and most > longest:
        yield words.CUT.format(tokens=most, longest=longest, said=said)


def _prompt(stated: SentenceSettings, name: str) -> str:
    """The prompt that is put before each text.

    Raises:
        RequestError: If the checkpoint states no prompt of that name.
    """
    chosen = name or stated.default_prompt
    if chosen is None:
        return ""
    if chosen not in stated.prompts:
        raise RequestError(words.no_prompt(chosen, tuple(stated.prompts)), option="prompt")
    return stated.prompts[chosen]


def _layers(checkpoint: StagedCheckpoint, stated: SentenceSettings, *, width: int) -> list[Linear | Normalize]:
    """The modules after the pooling, with their weights."""
    layers: list[Linear | Normalize] = []
    for each in stated.after:
        if isinstance(each, Normalize):
            layers.append(each)
        else:
            layers.append(linear := read_linear(checkpoint.manifest, each, width=width))
            width = len(linear.weight)
    return layers


def _pairs(
    vectors: Sequence[TextVector], encodings: Encodings, tokens: Tokens, measure: str
) -> tuple[list[tuple[object, ...]], bool]:
    """The rows of `Similarity.pairs`, of each score that there is still room for, and whether that is all."""
    named = [list(_named(vector, each.ids, tokens)) for vector, each in zip(vectors, encodings.texts, strict=True)]
    rows: list[tuple[object, ...]] = []
    whole = True
    for other in range(1, len(vectors)):
        if vectors[0].parts is None or vectors[other].parts is None or measure not in ADDITIVE:
            return rows, whole
        if len(rows) + len(named[0]) * len(named[other]) > MOST_PAIRS:
            whole = False
            continue
        found = pair_parts(vectors[0], vectors[other], measure)
        parts = [] if found is None else found.reshape(-1).tolist()
        rows += [
            (0, other, place, place_of_other, token, token_of_other, part)
            for ((place, token), (place_of_other, token_of_other)), part in zip(
                product(named[0], named[other]), parts, strict=True
            )
        ]
    return rows, whole


def _named(vector: TextVector, ids: Sequence[int], tokens: Tokens) -> Iterator[tuple[int, str]]:
    """Positions and tokens of what a vector is a sum of."""
    yield from enumerate(map(tokens.visible, ids))
    if vector.has_bias:
        yield -1, words.BIAS


def _padding(
    padded: Padded,
    modes: Sequence[str],
    layers: Sequence[Linear | Normalize],
    measure: str,
    alone: Sequence[float],
    *,
    prompt: int,
) -> Iterator[tuple[float | int | None, ...]]:
    """The rows of `Similarity.padding`, without the numbers of the texts."""
    every = torch.ones_like(padded.mask)
    ways = {
        name: [
            finish(pool(state, mask, modes, prompt=prompt), layers) for state, mask in zip(states, masks, strict=True)
        ]
        for name, states, masks in (
            ("masked", padded.told, padded.mask),
            ("pooled_over_padding", padded.told, every),
            ("unmasked", padded.untold, every),
        )
    }
    counts = (padded.mask == 0).sum(dim=1).tolist()
    tokens = [torch.cat([mask.bool(), torch.ones(1, dtype=torch.bool)]) for mask in padded.mask]  # a bias is none
    for other, score_alone in enumerate(alone, start=1):
        found: dict[str, float | None] = {
            name: score(vectors[0].vector, vectors[other].vector, measure) for name, vectors in ways.items()
        }
        parts = pair_parts(ways["unmasked"][0], ways["unmasked"][other], measure)
        part = None
        if parts is not None:
            of_tokens = parts[tokens[0][: len(parts)]][:, tokens[other][: parts.shape[1]]]
            part = float(parts.sum() - of_tokens.sum())
        if not bool(padded.mask[:, 0].all()):  # on the left, attention has nothing to attend to: kinds of it differ
            found["pooled_over_padding"] = None
        yield score_alone, *found.values(), part, counts[0], counts[other]
