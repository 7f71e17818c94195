"""Say in plain sentences what two checkpoints differ in, from what was measured alone."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence

import pandas as pd

from inspector.results import TieChange, VocabularyMatch

SAID = {
    "changed": "changed", "dtype changed": "changed in dtype alone", "quantised": "quantised",
    "reshaped": "reshaped",
    "added": "added", "removed": "removed", "not compared": "not compared", "equal": "equal",
}  # fmt: skip
PLAIN = frozenset({"float64", "float32", "bfloat16", "float16", "float8_e4m3fn", "float8_e5m2"})
ROUNDED = 0.99  # share of nearest numbers that only plain rounding gives
NAMED = 3  # names listed in a sentence


def summary(
    *,
    same: bool,
    names: tuple[str, str],
    tensors: pd.DataFrame,
    counts: dict[str, int],
    overall: dict[str, float],
    ties: Sequence[TieChange] | None,
    vocabulary: VocabularyMatch | None,
    moved: pd.DataFrame,
) -> tuple[str, ...]:
    """What matters, first things first; every number is one of the result's."""
    sentences = []
    if same:
        sentences.append(
            f"{names[0]} is compared with itself: the same files, byte for byte. Choose another "
            "checkpoint to see what differs."
        )
    sentences.append(_tensors(len(tensors), counts))
    sentences += _quantised(tensors, names)
    sentences += _change(tensors, overall)
    if ties is not None:
        sentences.append(_ties(ties, names))
    if vocabulary:
        sentences += _vocabulary(vocabulary, names, moved)
    return tuple(sentences)


def _tensors(total: int, counts: dict[str, int]) -> str:
    if list(counts) == ["equal"]:
        return f"All {_plural(total, 'tensor')} hold the same numbers in both."
    if len(counts) == 1:
        return f"All {_plural(total, 'tensor')} are {SAID[next(iter(counts))]}."
    said = [f"{number:,} {SAID[status]}" for status, number in counts.items()]
    apart = " They have none in common." if set(counts) == {"added", "removed"} else ""
    return f"Of {_plural(total, 'tensor')}: {_listed(said)}.{apart}"


def _quantised(tensors: pd.DataFrame, names: tuple[str, str]) -> list[str]:
    """Which side has codes, of what kind, and whether they are the plain rounding."""
    coded = tensors.dropna(subset=["nearest"])
    if not len(coded):
        return []
    schemes = Counter(
        (names[0] if other in PLAIN else names[1], dtype if other in PLAIN else other)
        for dtype, other in zip(coded["dtype"], coded["other_dtype"], strict=True)
    )
    kinds = _listed([
        f"{_plural(count, 'tensor')} in {name} as {scheme}"
        for (name, scheme), count in schemes.most_common(NAMED)
    ])  # fmt: skip
    more = f" and in {len(schemes) - NAMED} more ways" if len(schemes) > NAMED else ""
    weights = coded["parameters"].to_numpy(float)
    share = float(coded["nearest"].to_numpy(float) @ weights / weights.sum())
    how = (
        "plain rounding of the same weights"
        if share >= ROUNDED
        else "so they are no plain rounding: calibrated (as GPTQ and AWQ do), or of other weights"
    )
    said = "All" if share == 1 else _share(share)
    return [
        f"Stored as codes: {kinds}{more}. {said} of their numbers are the nearest to the other's "
        f"that their scales allow: {how}."
    ]


def _change(tensors: pd.DataFrame, overall: dict[str, float]) -> list[str]:
    relative_change = overall["relative_change"]
    if math.isnan(relative_change) or not relative_change:
        return []
    sentence = (
        f"Taken as one vector, what is in both moved by {_share(relative_change)} of its length"
        f" (cosine {_cosine(overall['cosine'])})"
    )
    ranked = tensors.dropna(subset=["relative_change"]).sort_values(
        "relative_change", ascending=False, kind="stable"
    )
    top = ranked.iloc[0]
    return [
        f"{sentence}; the most, by its own length, {top['name']}: {_share(top['relative_change'])}."
    ]


def _ties(ties: Sequence[TieChange], names: tuple[str, str]) -> str:
    if not ties:
        return "The same names share memory in both."
    said = []
    for tie in ties:
        holder, other = names if tie.tied_in == "first" else names[::-1]
        verdict = {"absent": "not all there", "apart": "not one tensor"}.get(
            tie.other_verdict, tie.other_verdict
        )
        said.append(f"{_listed(tie.names)} are tied in {holder} and {verdict} in {other}")
    more = f"; {len(ties) - NAMED} more" if len(ties) > NAMED else ""
    return f"Ties differ: {'; '.join(said[:NAMED])}{more}."


def _vocabulary(match: VocabularyMatch, names: tuple[str, str], moved: pd.DataFrame) -> list[str]:
    how = "by their token" if match.matched_by == "token" else "by their number"
    alone = "" if not match.alone and not match.other_alone else (
        f"; {match.alone:,} of {names[0]} and {match.other_alone:,} of {names[1]} have no partner"
    )  # fmt: skip
    elsewhere = match.matched - match.same_row
    other_rows = f", {elsewhere:,} of them at another row" if elsewhere else ""
    sentences = [f"{_plural(match.matched, 'embedding row')} matched {how}{other_rows}{alone}."]
    if match.columns != match.other_columns and match.alignment is None:
        sentences.append(
            f"Their rows have {match.columns} and {match.other_columns} numbers, so they have no "
            "distance until one space is rotated onto the other (--align)."
        )
    elif not match.moved:
        sentences.append("No matched row differs.")
    elif len(moved):
        top = moved.iloc[0]
        turned = " after the rotation" if match.alignment else ""
        sentences.append(
            f"{match.moved:,} of them differ; furthest moved{turned}: {top['token']} "
            f"(distance {top['distance']:.3g}, cosine {_cosine(top['cosine'])})."
        )
    return sentences


def _share(share: float) -> str:
    return f"{100 * share:.3g} %"


def _cosine(cosine: float) -> str:
    """Enough digits to tell it from 1."""
    if math.isnan(cosine):
        return "undefined"
    return f"{cosine:.4f}" if cosine < 0.9999 else f"1 - {1 - cosine:.2g}" if cosine < 1 else "1"


def _listed(items: Sequence[str]) -> str:
    shown = list(items)
    return " and ".join([", ".join(shown[:-1]), shown[-1]] if len(shown) > 1 else shown)


def _plural(number: int, noun: str) -> str:
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"
