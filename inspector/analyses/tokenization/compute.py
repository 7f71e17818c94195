"""What tokens does a text become, alone and in a padded batch?"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import pandas as pd
from tokenizers import Encoding

from inspector.analyses.tokenization import words
from inspector.analyses.tokenization.request import TokenizeRequest
from inspector.analyses.tokenization.result import Tokenization
from inspector.errors import InspectorError, MissingLibraryError, RequestError
from inspector.models.checkpoint import StagedCheckpoint
from inspector.models.tokens import PROBES, Tokens
from inspector.models.vocabulary.library import SPECIAL_ROLES
from inspector.program import how_to_add
from inspector.progress import Progress
from inspector.request import answers

PARTS = {0: "first", 1: "second"}


@answers(TokenizeRequest)
def tokenize(checkpoint: StagedCheckpoint, request: TokenizeRequest, *, progress: Progress) -> Tokenization:
    """Tokenize texts and pad them to one length.

    Raises:
        NotInCheckpointError: If the checkpoint brings no tokenizer.
        RequestError: If every text is empty, or one is too long or not Unicode text.
    """
    progress(None, "Tokenizing")
    wanted = [text for text in request.texts if text.strip()]
    if not wanted:
        raise RequestError("There is no text: type one.", option="texts")
    tokens = checkpoint.require_tokens()
    pairs = [request.pair if request.pair.strip() else None, *[None] * (len(wanted) - 1)]
    encodings = [tokens.encoding(text, other) for text, other in zip(wanted, pairs, strict=True)]
    longest, longest_said, notes = _longest(checkpoint, max(len(encoding.ids) for encoding in encodings))
    warnings = [
        *tokens.how_read,
        *filter(None, [tokens.difference(*wanted, *filter(None, pairs)) or tokens.difference(*PROBES)]),
        *_warnings(checkpoint, tokens, encodings, notes),
    ]
    tokens.pad(encodings)
    return Tokenization(
        kind=tokens.kind,
        size=tokens.size,
        longest=longest,
        special={role: tokens.role(role)[0] for role in SPECIAL_ROLES},
        tokens=pd.DataFrame(
            [
                row
                for number, encoding in enumerate(encodings)
                for row in token_rows(number, encoding, tokens, (wanted[number], pairs[number] or ""))
            ]
        ),
        batch=pd.DataFrame([_sequence(number, encoding, tokens) for number, encoding in enumerate(encodings)]),
        padded_to=len(encodings[0].ids),
        padding_side=tokens.padding_side,
        truncation_side=tokens.truncation_side,
        tokenizer_class=tokens.class_name,
        warnings=tuple(warnings),
        longest_said=longest_said,
    )


def token_rows(number: int, encoding: Encoding, tokens: Tokens, texts: tuple[str, str]) -> list[dict[str, Any]]:
    """A row for each token of a text, or of a pair of texts."""
    unknown = tokens.role("unk")[1]
    columns = zip(  # each is made anew whenever it is asked for
        *(encoding.ids, encoding.tokens, encoding.sequence_ids, encoding.offsets, encoding.word_ids),
        *(encoding.type_ids, encoding.attention_mask, encoding.special_tokens_mask),
        strict=True,
    )
    return [
        {
            "sequence": number,
            "position": place,
            "token": tokens.visible(index),
            "piece": piece,
            "token_id": index,
            "start": start,
            "end": end,
            "text": "" if part is None else texts[part][start:end],
            "part": "" if part is None else PARTS[part],
            "word": -1 if word is None else word,
            "type_id": type_id,
            "attention": attention,
            "is_special": bool(is_special),
            "is_unknown": part is not None and index == unknown,
        }
        for place, (index, piece, part, (start, end), word, type_id, attention, is_special) in enumerate(columns)
    ]


def _sequence(number: int, encoding: Encoding, tokens: Tokens) -> dict[str, Any]:
    unknown = tokens.role("unk")[1]
    real = sum(encoding.attention_mask)
    return {
        "sequence": number,
        "tokens": real,
        "padding": len(encoding.ids) - real,
        "unknown": sum(
            index == unknown and part is not None
            for index, part in zip(encoding.ids, encoding.sequence_ids, strict=True)
        ),
        "ids": list(encoding.ids),
        "type_ids": list(encoding.type_ids),
        "attention_mask": list(encoding.attention_mask),
    }


def _longest(checkpoint: StagedCheckpoint, most: int) -> tuple[int | None, str, list[str]]:
    """How many tokens of a text are read, what says so if not the model's positions, and notes on one of `most`."""
    positions, notes = _positions(checkpoint, most) if checkpoint.manifest.config is not None else (None, [])
    longest, said = _cut(checkpoint)
    if longest and longest <= (positions or math.inf):
        return longest, said, [words.cut(most, longest, said)] if most > longest else []
    if positions is not None and most > positions:
        notes = [words.too_long(checkpoint.name, most, positions), *notes]
    return positions, "", notes


def _cut(checkpoint: StagedCheckpoint) -> tuple[int | None, str]:
    """Where sentence-transformers cuts a text: of a class that is not there, by its own files alone."""
    try:
        return checkpoint.text_limit
    except InspectorError:
        return checkpoint.pipeline.text_limit(None) if checkpoint.pipeline else (None, "")


def _positions(checkpoint: StagedCheckpoint, most: int) -> tuple[int | None, list[str]]:
    """The model's positions, which some classes alone know, and notes on a text of so many tokens."""
    try:
        return checkpoint.positions, [*checkpoint.length_notes(most)]
    except MissingLibraryError:
        return None, [words.NO_CLASS.format(how=how_to_add("models"))]


def _past_rows(checkpoint: StagedCheckpoint, tokens: Tokens) -> str:
    try:
        return tokens.past_rows(checkpoint.embedding_shape[0])
    except InspectorError:  # there is no embedding matrix
        return ""


def _warnings(
    checkpoint: StagedCheckpoint, tokens: Tokens, encodings: Sequence[Encoding], notes: Sequence[str]
) -> list[str]:
    found = [past] if (past := _past_rows(checkpoint, tokens)) else []
    found += notes
    if checkpoint.pipeline and checkpoint.pipeline.lowers:
        found.append(words.LOWERED)
    uneven = len({len(encoding.ids) for encoding in encodings}) > 1
    if uneven and tokens.role("pad")[1] is None:
        found.append(words.NO_PADDING.format(name=checkpoint.name))
    return found
