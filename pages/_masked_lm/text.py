"""Tokens in a text: which characters they cover, and where they are after an edit."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from inspector.analyses.tokenization.result import Tokenization

# First character, the one after the last, and which of the tokens there: some share a character.
Place = tuple[int, int, int]


@dataclass(frozen=True, slots=True)
class Piece:
    """One token of a text."""

    position: int
    token: str  # visible form
    start: int  # characters of the text
    end: int
    kind: str  # "word", "mask" (written as a mask) or "special" (put around the text)
    joined: bool  # no space before it


def pieces(tokenization: Tokenization, text: str) -> tuple[Piece, ...]:
    """List the tokens of a text that was tokenized alone."""
    mask = tokenization.special["mask"]
    others = {token for role, token in tokenization.special.items() if role not in ("mask", "unk")}
    found: list[Piece] = []
    for row in tokenization.tokens.to_dict("records"):
        piece = str(row["piece"]) if row["part"] else None
        kind = "special" if piece is None or piece in others else "word"
        kind = "mask" if piece and piece == mask else kind
        start, end = int(row["start"]), int(row["end"])
        joined = (
            kind == "word"
            and bool(found)
            and found[-1].kind == "word"
            and found[-1].end >= start
            and not text[start:end][:1].isspace()
        )
        found.append(Piece(int(row["position"]), str(row["token"]), start, end, kind, joined))
    return tuple(found)


def places(found: Sequence[Piece]) -> dict[int, Place]:
    """Where the tokens stand that a click can mask, by position."""
    result: dict[int, Place] = {}
    seen: dict[tuple[int, int], int] = {}
    for piece in found:
        if piece.kind != "word":
            continue
        number = seen.get((piece.start, piece.end), 0)
        seen[piece.start, piece.end] = number + 1
        result[piece.position] = (piece.start, piece.end, number)
    return result


def carry(kept: Iterable[Place], *, old: str, new: str) -> set[Place]:
    """Find places of an old text again in a new one.

    The edit is what lies between the longest common beginning and the longest common end: a place
    inside either moves along, one that the edit touches is gone.
    """
    shortest = min(len(old), len(new))
    before = next((n for n in range(shortest) if old[n] != new[n]), shortest)
    rest = shortest - before
    after = next((n for n in range(rest) if old[-1 - n] != new[-1 - n]), rest)
    moved = len(new) - len(old)
    return {
        (start, end, number) if end <= before else (start + moved, end + moved, number)
        for start, end, number in kept
        if end <= before or start >= len(old) - after
    }


def standing(kept: Iterable[Place], found: Sequence[Piece]) -> tuple[int, ...]:
    """Positions of the tokens that still stand exactly where they did."""
    there = {place: position for position, place in places(found).items()}
    return tuple(sorted(there[place] for place in kept if place in there))


def is_one_edit(old: str, new: str) -> bool:
    """True where one text is the other with something put in at one place."""
    short, long = sorted((old, new), key=len)
    before = next((n for n in range(len(short)) if short[n] != long[n]), len(short))
    return long.endswith(short[before:])
