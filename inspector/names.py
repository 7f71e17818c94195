"""Names of tensors and modules by pattern: many names as a few lines, opened a level at a time."""

from __future__ import annotations

import difflib
import re
from collections import deque
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    import pandas as pd

HOLE = "\ufdd0"  # stands for a number in a pattern; Unicode gives it to nobody
NUMBER = r"\d{1,9}"
LISTED = re.compile(rf"\.({NUMBER})(?=\.|$)")  # a module's place in a list
WILD = re.compile(r"(?<=\.)\*(?=\.|$)")  # a hole, as people write it
NEAR = 0.75  # likeness from which on a mistyped name was meant to be another
FOLDED = 100  # a longer list of names is shown by pattern
NAME, COUNT = "name", "names"
# Names of one line have these in common.
ALIKE = (
    *("kind", "class", "shape", "shapes", "other_shape", "dtype", "other_dtype", "group", "status", "reason"),
    *("check", "problem", "severity"),
)
SUMS = frozenset({"parameters", "own_parameters", "nbytes", "count"})
LARGEST = frozenset({"relative_change", "max_abs"})  # of a line's names the one that changed most counts
SMALLEST = frozenset({"cosine"})
Folded: TypeAlias = "tuple[pd.DataFrame, list[str]]"  # rows, and for each the pattern that opens it
FOLDS = 8  # answers that are kept
_FOLDS: deque[tuple[pd.DataFrame, tuple[str, str], Folded | None]] = deque(
    maxlen=FOLDS
)  # frame, `by`, `opened`, answer


@dataclass(frozen=True, slots=True)
class NameGroup:
    """Names that differ only in their places in lists."""

    label: str  # the one name, or the pattern with the spans of its numbers: "layers.[0–11].bias"
    pattern: str  # finds these names: "layers.*.bias"
    places: tuple[int, ...]  # of the names in the list, in order


def list_pattern(name: str, *, kept: int = 0) -> tuple[str, tuple[int, ...]]:
    """A dotted name with a HOLE for each place in a list, and the numbers that were there.

    Args:
        kept: So many numbers stay in the text, from the left.
    """
    parts = LISTED.split(name)
    texts, numbers = parts[::2], parts[1::2]
    if kept:
        end = min(kept, len(numbers))
        start = "".join(f"{text}.{number}" for text, number in zip(texts[:end], numbers[:end], strict=True))
        texts, numbers = [start + texts[end], *texts[end + 1 :]], numbers[end:]
    return f".{HOLE}".join(texts), tuple(map(int, numbers))


def fill_pattern(pattern: str, numbers: Iterable[tuple[int, ...]]) -> str:
    """Write a pattern with the spans of the numbers that fill it: "layers.[0–11].bias"."""
    for found in zip(*numbers, strict=True):
        pattern = pattern.replace(HOLE, _span(sorted(set(found))), 1)
    return pattern


def group_names(names: Sequence[str], alike: Sequence[Hashable] | None = None, *, opened: str = "") -> list[NameGroup]:
    """Group names that differ only in their places in lists.

    Args:
        alike: One value a name: names of one group have equal ones.
        opened: A pattern such as "layers.*.experts.*.weight" that all names fit: they are told apart
            by their place in its first list, "layers.3.experts.[0–255].weight".

    Returns:
        Groups in the order of their first names.
    """
    kept = _literals(opened) + 1 if opened else 0
    groups = _grouped(names, alike, kept)
    while len(groups) == 1 < len(names) and HOLE in groups[0].pattern and opened:
        kept += 1
        groups = _grouped(names, alike, kept)
    return [
        NameGroup(group.label, group.pattern.replace(HOLE, "*"), group.places) if len(group.places) > 1 else group
        for group in groups
    ]


def find_rows(frame: pd.DataFrame, text: str, columns: Sequence[str]) -> pd.DataFrame:
    """Rows that hold a text in some columns, in any case; a pattern, "layers.*.bias", finds names in the first one."""
    if not text:
        return frame
    if is_pattern(text):
        return frame[[fits(name, text) for name in frame[columns[0]]]]  # type: ignore[return-value]
    first, *rest = (frame[column] for column in columns)
    return frame[first.str.cat(rest, sep=" ").str.contains(text, case=False, regex=False)]  # type: ignore[return-value]


def is_pattern(text: str) -> bool:
    """Whether a text finds names by their pattern."""
    return bool(WILD.search(text))


def fits(name: str, pattern: str) -> bool:
    """Whether a name is one that a pattern finds: "layers.*.bias" has a number for each "*"."""
    return bool(_compiled(pattern).fullmatch(name))


@lru_cache(maxsize=1)
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(NUMBER.join(map(re.escape, WILD.split(pattern))))


def fold_rows(frame: pd.DataFrame, *, by: str = NAME, opened: str = "") -> Folded | None:
    """Make one row of all whose names differ only in their places in lists.

    Args:
        by: The column of names.
        opened: The pattern that found its rows, see `group_names`; other texts do nothing.

    Returns:
        The rows, and for each the pattern that opens it, "" where it is one name. "names" is how many
        a row stands for; SUMS are added up, LARGEST and SMALLEST are the most extreme, all else is
        the value that all have in common. None where little would be folded. The last few answers are
        kept: a page asks for the same one whenever it is drawn.
    """
    if len(frame) <= FOLDED or by not in frame:
        return None
    for known, asked, answer in tuple(_FOLDS):
        if asked == (by, opened) and known.equals(frame):  # of the same texts it compares their places alone
            return answer
    answer = _fold(frame, by, opened)
    _FOLDS.append((frame.copy(deep=False), (by, opened), answer))
    return answer


def _fold(frame: pd.DataFrame, by: str, opened: str) -> Folded | None:
    common = [column for column in ALIKE if column in frame]
    alike = frame.groupby(common, sort=False, dropna=False).ngroup().tolist() if common else None
    groups = group_names(frame[by].tolist(), alike, opened=opened if is_pattern(opened) else "")
    if 2 * len(groups) > len(frame):
        return None
    number = [0] * len(frame)
    for index, group in enumerate(groups):
        for place in group.places:
            number[place] = index
    rows = frame.drop(columns=by).assign(**{COUNT: number}).groupby(COUNT)
    folded = frame.iloc[[group.places[0] for group in groups]].reset_index(drop=True)
    folded[by] = [group.label for group in groups]
    for column in folded.columns.drop(by):
        folded[column] = _joined(rows[column], str(column))
    folded.insert(1 + folded.columns.tolist().index(by), COUNT, [len(group.places) for group in groups])
    return folded, [group.pattern if len(group.places) > 1 else "" for group in groups]


def nearest(wanted: str, names: Iterable[str]) -> str | None:
    """The name that a mistyped one was meant to be; of numbered names first by pattern, then by number."""
    patterns: dict[str, list[str]] = {}
    for name in names:
        patterns.setdefault(list_pattern(name)[0], []).append(name)
    near = difflib.get_close_matches(list_pattern(wanted)[0], patterns, n=1, cutoff=NEAR)
    return difflib.get_close_matches(wanted, patterns[near[0]], n=1, cutoff=0)[0] if near else None


def _grouped(names: Sequence[str], alike: Sequence[Hashable] | None, kept: int) -> list[NameGroup]:
    found: dict[tuple[str, Hashable], tuple[list[int], list[tuple[int, ...]]]] = {}
    for place, name in enumerate(names):
        pattern, numbers = list_pattern(name, kept=kept)
        places, filled = found.setdefault((pattern, alike[place] if alike else None), ([], []))
        places.append(place)
        filled.append(numbers)
    return [
        NameGroup(names[places[0]] if len(places) == 1 else fill_pattern(pattern, filled), pattern, tuple(places))
        for (pattern, _), (places, filled) in found.items()
    ]


def _joined(rows: Any, column: str) -> Any:
    """What a line says of the rows that it stands for."""
    for how, columns in (("sum", SUMS), ("max", LARGEST), ("min", SMALLEST)):
        if column in columns:
            return rows.agg(how, min_count=1)
    first, several = rows.first(), rows.nunique(dropna=False) > 1
    if all(isinstance(value, str) for value in first):
        return first.where(~several, rows.nunique().map("{:,} different".format))
    return first.astype(object).where(~several, None)


def _literals(pattern: str) -> int:
    """How many places in lists a pattern names before its first hole."""
    first = WILD.search(pattern)
    return len(LISTED.findall(pattern[: first.start()])) if first else 0


def _span(numbers: list[int]) -> str:
    """Write the numbers of a list: [0–11]; with gaps between them [0…22]."""
    if len(numbers) == 1:
        return f"[{numbers[0]}]"
    whole = numbers[-1] - numbers[0] == len(numbers) - 1
    return f"[{numbers[0]}{'–' if whole else '…'}{numbers[-1]}]"
