"""Read a request for predictions: the text with its masks, and the words to be scored there."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from inspector.errors import NotInCheckpointError, RequestError
from inspector.models.checkpoint import StagedCheckpoint
from inspector.models.families import FAMILIES, with_this_head
from inspector.models.masking.head import Row
from inspector.models.tokens import SPACE, Tokens
from inspector.models.vocabulary.labels import find_row, is_row

LARGEST_WORD = 12  # pieces
MOST_READINGS = 1_000  # of the text, for the words of one request
SHOWN = 80  # characters of a word in a refusal


@dataclass(frozen=True, slots=True)
class MaskedText:
    """A text as the model gets it, with at least one mask."""

    text: str
    ids: tuple[int, ...]
    type_ids: tuple[int, ...]
    masks: tuple[int, ...]  # positions, ascending
    mask_id: int
    special: tuple[bool, ...]  # for each token, whether it stands for no text; so do masks
    after_space: tuple[bool, ...]  # for each mask, whether a word there begins after a space

    @property
    def row(self) -> Row:
        """The text read once, every mask open."""
        return Row(self.ids, self.type_ids, self.masks)

    def replaced(self, position: int, pieces: Sequence[int], *, wanted: int) -> Row:
        """The text with other tokens in the place of one, read at one of those."""
        before, after = slice(None, position), slice(position + 1, None)
        types = (self.type_ids[position],) * len(pieces)
        return Row(
            (*self.ids[before], *pieces, *self.ids[after]),
            (*self.type_ids[before], *types, *self.type_ids[after]),
            (wanted,),
        )


@dataclass(frozen=True, slots=True)
class Word:
    """A target: what was asked for, and its tokens."""

    word: str
    pieces: tuple[tuple[int, ...], ...]  # ids for each mask: after a space they may be others


def require_masked_lm(checkpoint: StagedCheckpoint) -> tuple[Tokens, str, int]:
    """The tokenizer, its mask token and the token's id, of a checkpoint that can fill masks.

    Raises:
        NotInCheckpointError: If there is no masked-LM head, no tokenizer or no mask token.
    """
    if checkpoint.heads["masked_lm"] != "present":
        raise NotInCheckpointError(_without_head(checkpoint))
    tokens = checkpoint.require_tokens()
    mask_token, mask_id = tokens.role("mask")
    if mask_token is None or mask_id is None:
        raise NotInCheckpointError(f"The tokenizer of {checkpoint.name} has no mask token: nothing can be masked.")
    return tokens, mask_token, mask_id


def read_text(checkpoint: StagedCheckpoint, text: str, masks: Sequence[int]) -> MaskedText:
    """Tokenize a text and mask more of its tokens.

    Args:
        checkpoint: With a masked-LM head and a mask token.
        text: With the mask token any number of times.
        masks: Positions of further tokens to mask.

    Raises:
        NotInCheckpointError: If there is no masked-LM head, no tokenizer or no mask token.
        CheckpointError: If the tokenizer gives ids past the embedding matrix.
        RequestError: If nothing is masked, a position cannot be, or the text is too long.
    """
    tokens, mask_token, mask_id = require_masked_lm(checkpoint)
    encoding = tokens.encoding(text)
    ids = tuple(encoding.ids)
    checkpoint.check_ids(ids, encoding.type_ids)
    found = {place for place, index in enumerate(ids) if index == mask_id}
    ordinary = set(tokens.ordinary(encoding))
    for position in masks:
        if position not in ordinary | found:
            raise _no_word(tokens, ids, position)
    places = tuple(sorted(found | set(masks)))
    if not places:
        raise RequestError(
            f"The text has no {mask_token}: write it where the model should predict a word.", option="text"
        )
    masked = tuple(mask_id if place in places else index for place, index in enumerate(ids))
    checkpoint.check_ids(masked)  # the mask token itself may be past the matrix
    spans = [encoding.offsets[place] for place in places]
    return MaskedText(
        text=_rewritten(tokens, text, spans, mask_token, masked) if set(places) - found else text,
        ids=masked,
        type_ids=tuple(encoding.type_ids),
        masks=places,
        mask_id=mask_id,
        special=tuple(place not in ordinary or place in places for place in range(len(ids))),
        after_space=tuple(text[start : start + 1].isspace() or text[:start][-1:].isspace() for start, _ in spans),
    )


def read_targets(
    checkpoint: StagedCheckpoint, text: MaskedText, targets: Sequence[str]
) -> tuple[list[int], list[Word]]:
    """Find the tokens of the targets.

    Returns:
        Rows of those that are one token, and every target as a word.

    Raises:
        RequestError: If one has a piece that the vocabulary lacks, or there are too many pieces.
    """
    rows, words = [], []
    for target in dict.fromkeys(targets):
        checkpoint.require_tokens().check_characters(target)
        pieces = _several(checkpoint, text, target)
        if pieces is None:
            row = find_row(checkpoint, target, checkpoint.embedding.shape[0], option="targets")
            rows.append(row)
            pieces = ((row,),) * len(text.masks)
        words.append(Word(target, pieces))
    readings = sum(len(ids) for word in words for ids in word.pieces if len(ids) > 1)
    if readings > MOST_READINGS:
        raise RequestError(
            f"Scoring the targets of several tokens at {len(text.masks):,} masks would take {readings:,} passes over "
            f"the text, more than the limit of {MOST_READINGS:,}: use fewer targets.",
            option="targets",
        )
    return rows, words


def _several(checkpoint: StagedCheckpoint, text: MaskedText, target: str) -> tuple[tuple[int, ...], ...] | None:
    """The pieces of a target that is not one token, for each mask; None: leave it to find_row."""
    tokens = checkpoint.require_tokens()
    if is_row(target) or tokens.find(target) is not None:
        return None
    word = target.replace(SPACE, " ")
    found = tuple(tokens.pieces(f" {word.lstrip()}" if space else word) for space in text.after_space)
    rows = checkpoint.embedding.shape[0]
    forbidden = tokens.special_ids
    if any(not ids or forbidden & set(ids) or max(ids) >= rows for ids in found):
        return None
    longest = max(map(len, found))
    if longest > LARGEST_WORD:
        raise RequestError(
            f"{target[:SHOWN]!r} has {longest} tokens, but a target may have at most {LARGEST_WORD}: use a shorter "
            "one.",
            option="targets",
        )
    room = checkpoint.positions
    if room is not None and len(text.ids) - 1 + longest > room:
        raise RequestError(
            f"With the {longest} masks that {target[:SHOWN]!r} needs, the text has {len(text.ids) - 1 + longest:,} "
            f"tokens, but {checkpoint.name} takes at most {room:,}: shorten it.",
            option="targets",
        )
    return found


def _no_word(tokens: Tokens, ids: Sequence[int], position: int) -> RequestError:
    if not 0 <= position < len(ids):
        return RequestError(
            f"There is no token {position} to mask: the text has {len(ids):,} tokens, counted from 0.", option="masks"
        )
    return RequestError(
        f"Token {position} is {tokens.visible(ids[position])}, a special token, which is never masked in training: "
        "choose a token of the text itself.",
        option="masks",
    )


def _rewritten(tokens: Tokens, text: str, spans: Sequence[tuple[int, int]], mask: str, masked: Sequence[int]) -> str:
    """The text with masks written in place of some spans, checked by reading it again."""
    written, end = "", 0
    for start, stop in spans:
        written += text[end:start] + mask
        end = max(end, stop)
    written += text[end:]
    same = tuple(tokens.encoding(written).ids) == tuple(masked)
    return written if same else tokens.text(masked)


def _without_head(checkpoint: StagedCheckpoint) -> str:
    if checkpoint.heads["causal_lm"] == "present":
        return (
            f"{checkpoint.name} is a causal language model: it predicts the next token and has no "
            "masked-LM head. Plausibility scores a text with it, and its Logit lens shows what it predicts at "
            "every position."
        )
    if checkpoint.config_values.get("is_encoder_decoder"):
        return (
            f"{checkpoint.name} is an encoder-decoder model: it generates text and has no masked-LM head. Look at its "
            "Logit lens and Embeddings."
        )
    if kinds := with_this_head(checkpoint.tensors.names, FAMILIES):
        return (
            f"{checkpoint.name} has no MLM head of the model type that its config.json names: the file's head has the "
            f"tensor names of {' or '.join(kinds[:3])}. If the weights are of that type, correct model_type in "
            "config.json."
        )
    return (
        f"{checkpoint.name} has no MLM head: its file contains only the encoder, and a head filled with random numbers "
        "would give meaningless predictions. Open the pre-training checkpoint with the head, or look at its "
        "Embeddings and Logit lens."
    )
