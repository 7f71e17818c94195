"""Read a SentencePiece model, a protocol buffer, field by field, and believe nothing that the file cannot hold.

The layout is that of `sentencepiece_model.proto`. https://github.com/google/sentencepiece
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

from inspector.errors import CheckpointError

MAX_NBYTES = 20_000_000  # the largest files have 4.7 million
MAX_PIECES = 500_000  # the largest vocabularies have 262,144
MAX_PIECE_NBYTES = 1_024  # of one piece
MAX_PIECES_NBYTES = 4_000_000  # of all: a piece is split in every place to find its merges
NORMAL, UNKNOWN, CONTROL, USER_DEFINED, BYTE = 1, 2, 3, 4, 6  # kinds of pieces
UNIGRAM, BPE = 1, 2  # kinds of models; those of words and of characters have no counterpart in tokenizers
_VARINT, _EIGHT, _BYTES, _FOUR = 0, 1, 2, 5  # how a field is stored
_DAMAGED = "{name} is not a SentencePiece model, or is cut off: get the file again."


@dataclass(frozen=True, slots=True)
class VocabularyPiece:
    """One entry of the vocabulary; its place is its id."""

    piece: str
    score: float
    type: int


@dataclass(frozen=True, slots=True)
class TrainerSpec:
    """What the trainer was told, as far as it decides on ids; -1: there is no such token."""

    model_type: int = UNIGRAM
    treat_whitespace_as_suffix: bool = False
    byte_fallback: bool = False
    unk_id: int = 0
    bos_id: int = 1
    eos_id: int = 2
    pad_id: int = -1
    unk_piece: str = "<unk>"
    bos_piece: str = "<s>"
    eos_piece: str = "</s>"
    pad_piece: str = "<pad>"


@dataclass(frozen=True, slots=True)
class NormalizerSpec:
    """What becomes of a text before it is split."""

    precompiled_charsmap: bytes = b""
    add_dummy_prefix: bool = True
    remove_extra_whitespaces: bool = True
    escape_whitespaces: bool = True


@dataclass(frozen=True, slots=True)
class SentencePieceModel:
    """A model, its parts named as the format names them."""

    pieces: tuple[VocabularyPiece, ...]
    trainer_spec: TrainerSpec
    normalizer_spec: NormalizerSpec


_PIECE = {1: ("piece", str), 2: ("score", float), 3: ("type", int)}
_TRAINER = {3: ("model_type", int), 24: ("treat_whitespace_as_suffix", bool), 35: ("byte_fallback", bool),
            40: ("unk_id", int), 41: ("bos_id", int), 42: ("eos_id", int), 43: ("pad_id", int),
            45: ("unk_piece", str), 46: ("bos_piece", str), 47: ("eos_piece", str), 48: ("pad_piece", str)}  # fmt: skip
_NORMALIZER = {2: ("precompiled_charsmap", bytes), 3: ("add_dummy_prefix", bool),
               4: ("remove_extra_whitespaces", bool), 5: ("escape_whitespaces", bool)}  # fmt: skip


def read_sentencepiece(path: Path, name: str) -> SentencePieceModel:
    """Read a whole model.

    Args:
        name: What messages call the file.

    Raises:
        CheckpointError: If it is damaged, too large, or describes no vocabulary.
    """
    refuse_large(path, name)
    try:
        model = _read(path.read_bytes(), name)
    except (IndexError, KeyError, struct.error, UnicodeDecodeError, ValueError) as error:
        raise CheckpointError(_DAMAGED.format(name=name)) from error
    _check(model, name)
    return model


def refuse_large(path: Path, name: str) -> None:
    """Refuse a file that is larger than any vocabulary of its kind.

    Raises:
        CheckpointError: If it is.
    """
    if (nbytes := path.stat().st_size) > MAX_NBYTES:
        raise CheckpointError(
            f"{name} has {nbytes:,} bytes, more than the limit of {MAX_NBYTES:,} for a vocabulary: check that it "
            "belongs to a tokenizer."
        )


def _read(data: bytes, name: str) -> SentencePieceModel:
    pieces: list[VocabularyPiece] = []
    trainer: dict[str, Any] = {}
    normalizer: dict[str, Any] = {}
    left = MAX_PIECES_NBYTES
    for number, value in _fields(data, 0, len(data)):
        if not isinstance(value, slice):
            continue
        if number == 1:
            pieces.append(VocabularyPiece(**{"piece": "", "score": 0.0, "type": NORMAL} | _known(data, value, _PIECE)))
            left -= len(pieces[-1].piece)
            if len(pieces) > MAX_PIECES or left < 0 or len(pieces[-1].piece) > MAX_PIECE_NBYTES:
                _refuse_long(name)
        elif number == 2:
            trainer |= _known(data, value, _TRAINER)
        elif number == 3:
            normalizer |= _known(data, value, _NORMALIZER)
    return SentencePieceModel(tuple(pieces), TrainerSpec(**trainer), NormalizerSpec(**normalizer))


def _fields(data: bytes, begin: int, end: int) -> Iterator[tuple[int, int | slice]]:
    """The fields of a message: number, and a whole number or where its bytes are.

    Raises:
        ValueError: If one reaches past the end.
    """
    while begin < end:
        key, begin = _varint(data, begin)
        kind = key & 7
        if kind == _VARINT:
            value, begin = _varint(data, begin)
            yield key >> 3, value
        else:
            if kind == _BYTES:
                nbytes, begin = _varint(data, begin)
            else:
                nbytes = {_FOUR: 4, _EIGHT: 8}[kind]
            if begin + nbytes > end:
                raise ValueError(nbytes)
            yield key >> 3, slice(begin, begin + nbytes)
            begin += nbytes
    if begin > end:
        raise ValueError(begin)


def _varint(data: bytes, begin: int) -> tuple[int, int]:
    """A whole number of up to ten bytes, and where it ends."""
    value = data[begin]
    if value < 128:
        return value, begin + 1
    value &= 127
    for shift in range(7, 70, 7):
        begin += 1
        value |= (data[begin] & 127) << shift
        if data[begin] < 128:
            return value, begin + 1
    raise ValueError(begin)


def _known(data: bytes, place: slice, table: Mapping[int, tuple[str, type]]) -> dict[str, Any]:
    """The fields of a message that a table names."""
    found: dict[str, Any] = {}
    for number, value in _fields(data, place.start, place.stop):
        if number in table:
            name, kind = table[number]
            found[name] = _value(data, value, kind)
    return found


def _value(data: bytes, value: int | slice, kind: type) -> Any:
    if isinstance(value, int):
        if kind not in (int, bool):
            raise ValueError(kind)
        return bool(value) if kind is bool else (value & 0xFFFFFFFF ^ 0x80000000) - 0x80000000
    if kind is float:
        return struct.unpack("<f", data[value])[0]
    if kind in (int, bool):
        raise ValueError(kind)
    return data[value].decode() if kind is str else data[value]


def _check(model: SentencePieceModel, name: str) -> None:
    """What SentencePiece itself requires of a vocabulary, and of a score that it is a number."""
    texts = {piece.piece for piece in model.pieces}
    unknown = [number for number, piece in enumerate(model.pieces) if piece.type == UNKNOWN]
    fine = len(texts) == len(model.pieces) and "" not in texts and len(unknown) == 1
    if not fine or any(not abs(piece.score) < float("inf") for piece in model.pieces):
        raise CheckpointError(
            f"{name} is no vocabulary of SentencePiece: one has an unknown piece, and each of its pieces once. Get the "
            "file again."
        )
    if model.trainer_spec.model_type not in (UNIGRAM, BPE):
        raise CheckpointError(
            f"{name} is a SentencePiece model of words or of characters, which is not read here: tokens are shown by "
            "their ids."
        )


def _refuse_long(name: str) -> NoReturn:
    raise CheckpointError(
        f"{name} has more or longer pieces than any vocabulary (at most {MAX_PIECES:,}, with {MAX_PIECE_NBYTES:,} "
        f"characters in one and {MAX_PIECES_NBYTES:,} in all): check that it belongs to a tokenizer."
    )
