"""Room for text: how wide words are, how boxes fill lines, where labels touch no other."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass

# Widths in ems of a proportional face; a little more than Source Sans and Arial need.
NARROW, WIDE = frozenset("iljtfrI.,;:!|'`()[]/\\ "), frozenset("mwMW@%—…")
EMS = {"narrow": 0.36, "plain": 0.58, "capital": 0.72, "wide": 0.98, "full": 1.05}


def text_width(text: str, size: float) -> float:
    """Estimate how many pixels a line of text takes.

    Args:
        text: Without markup.
        size: Of the font, in pixels.
    """
    return size * sum(EMS[_breadth(character)] for character in text)


def _breadth(character: str) -> str:
    if character in NARROW:
        return "narrow"
    if character in WIDE:
        return "wide"
    if unicodedata.east_asian_width(character) in "WF":
        return "full"
    return "capital" if character.isupper() else "plain"


@dataclass(frozen=True, slots=True)
class BoxPlace:
    """Where a box stands."""

    line: int  # from 0
    left: float  # pixels


def flow(
    widths: Sequence[float], groups: Sequence[object], *, width: float, gap: float, joint: float
) -> list[BoxPlace]:
    """Fill lines with boxes from left to right, and keep groups on one line where they fit.

    Args:
        widths: Of the boxes, in pixels.
        groups: One a box; equal neighbors belong together.
        width: Of a line.
        gap: Pixels between groups.
        joint: Pixels between the boxes of a group.
    """
    places: list[BoxPlace] = []
    line, right = 0, 0.0
    for number, box in enumerate(widths):
        joins = number > 0 and groups[number] == groups[number - 1]
        left = right + (joint if joins else gap) if right else 0.0
        needed = box if joins else _group_width(widths, groups, number, joint)
        fits = left + (needed if needed <= width else box) <= width
        if right and not fits:
            line, left = line + 1, 0.0
        places.append(BoxPlace(line, left))
        right = left + box
    return places


def _group_width(widths: Sequence[float], groups: Sequence[object], first: int, joint: float) -> float:
    total = widths[first]
    for number in range(first + 1, len(widths)):
        if groups[number] != groups[first]:
            break
        total += joint + widths[number]
    return total


@dataclass(frozen=True, slots=True)
class Rectangle:
    """Pixels that something covers, y downward."""

    left: float
    top: float
    right: float
    bottom: float

    def touches(self, other: Rectangle) -> bool:
        """Whether the two share any pixel."""
        return (
            self.left < other.right and other.left < self.right and self.top < other.bottom and other.top < self.bottom
        )


@dataclass(frozen=True, slots=True)
class Label:
    """A text beside its mark."""

    mark: int  # which mark, in the order given
    across: int  # the text's middle from the mark's: 1 right of it, -1 left, 0 on one line with it
    up: int  # 1 above, -1 below, 0 beside


SIDES = ((1, 0), (-1, 0), (0, 1), (0, -1), (1, 1), (1, -1), (-1, 1), (-1, -1))


def place_labels(
    marks: Sequence[tuple[float, float]],
    sizes: Sequence[tuple[float, float]],
    *,
    within: Rectangle,
    radius: float,
    others: Sequence[tuple[float, float]] = (),
) -> list[Label]:
    """Put labels beside their marks so that none touches another label, a mark, or the frame.

    Args:
        marks: x and y of each mark in pixels, y downward, most important first.
        sizes: Width and height of each label.
        others: Marks without a label; their middles stay free.

    Returns:
        The labels that found room; the others are left out.
    """
    taken = [
        Rectangle(x - size, y - size, x + size, y + size)
        for spots, size in ((marks, radius), (others, radius / 2))
        for x, y in spots
    ]
    placed: list[Label] = []
    for number, (mark, size) in enumerate(zip(marks, sizes, strict=True)):
        for across, up in SIDES:
            box = label_box(mark, size, across, up, radius)
            if _inside(box, within) and not any(map(box.touches, taken)):
                taken.append(box)
                placed.append(Label(number, across, up))
                break
    return placed


def label_box(mark: tuple[float, float], size: tuple[float, float], across: int, up: int, radius: float) -> Rectangle:
    """What a label covers on one side of its mark."""
    x = mark[0] + across * (radius + size[0] / 2)
    y = mark[1] - up * (radius + size[1] / 2)
    return Rectangle(x - size[0] / 2, y - size[1] / 2, x + size[0] / 2, y + size[1] / 2)


def _inside(box: Rectangle, frame: Rectangle) -> bool:
    return box.left >= frame.left and box.right <= frame.right and box.top >= frame.top and box.bottom <= frame.bottom
