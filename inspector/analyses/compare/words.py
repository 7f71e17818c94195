"""Say in plain sentences what two checkpoints differ in, from what was measured alone."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence

import pandas as pd

from inspector.analyses.compare.result import FLOATS, TieChange, VocabularyMatch
from inspector.text import plural

SAID = {
    "changed": "changed",
    "dtype changed": "changed in dtype alone",
    "quantised": "quantised",
    "reshaped": "reshaped",
    "added": "added",
    "removed": "removed",
    "not compared": "not compared",
    "equal": "equal",
}
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
        sentences.append(_same(names))
    sentences.append(_tensors(len(tensors), counts))
    sentences += _alone(tensors, names)
    sentences += _quantised(tensors, names)
    sentences += _change(tensors, overall)
    if ties is not None:
        sentences.append(_ties(ties, names))
    if vocabulary:
        sentences += _vocabulary(vocabulary, names, moved)
    return tuple(sentences)


def _same(names: tuple[str, str]) -> str:
    if names[0] == names[1]:
        which = f"{names[0]} is compared with itself: the same files, byte for byte."
    else:
        which = f"{names[0]} and {names[1]} are the same files, byte for byte, under two names."
    return f"{which} Choose another checkpoint to see what differs."


def _tensors(total: int, counts: dict[str, int]) -> str:
    if list(counts) == ["equal"]:
        return f"All {plural(total, 'tensor')} hold the same numbers in both."
    if len(counts) == 1:
        return f"All {plural(total, 'tensor')} are {SAID[next(iter(counts))]}."
    said = [f"{number:,} {SAID[status]}" for status, number in counts.items()]
    apart = " They have none in common." if set(counts) == {"added", "removed"} else ""
    return f"Of {plural(total, 'tensor')}: {_listed(said)}.{apart}"


def _alone(tensors: pd.DataFrame, names: tuple[str, str]) -> list[str]:
    """What one of them lacks, where they have anything in common."""
    sentences = []
    for status, name in (("removed", names[0]), ("added", names[1])):
        alone = tensors.loc[tensors["status"] == status, "name"].tolist()
        if alone and len(alone) < len(tensors):
            more = f" and {len(alone) - NAMED:,} more" if len(alone) > NAMED else ""
            listed = ", ".join(alone[:NAMED]) if more else _listed(alone)
            sentences.append(f"Only in {name}: {listed}{more}.")
    return sentences


def _quantised(tensors: pd.DataFrame, names: tuple[str, str]) -> list[str]:
    """Which side has codes, of what kind, and which of them are the plain rounding."""
    both = tensors.loc[~tensors["dtype"].isin([*FLOATS, ""])]
    both = both.loc[~both["other_dtype"].isin([*FLOATS, ""])]
    said = []
    if len(both):
        first, second = (_schemes(both[column].tolist()) for column in ("dtype", "other_dtype"))
        said.append(f"Both have codes: {names[0]} {first}, {names[1]} {second}.")
    coded = tensors.dropna(subset=["nearest"])
    if not len(coded):
        return said
    mine = [dtype for dtype in coded["dtype"].tolist() if dtype not in FLOATS]
    theirs = [dtype for dtype in coded["other_dtype"].tolist() if dtype not in FLOATS]
    kinds = _listed(
        [f"{name} has {_schemes(dtypes)}" for name, dtypes in zip(names, (mine, theirs), strict=True) if dtypes]
    )
    shares = dict(zip(coded["name"].tolist(), coded["nearest"].tolist(), strict=True))
    return [*said, f"Stored as codes: {kinds}. {_rounding(shares)}."]


def _rounding(shares: Mapping[str, float]) -> str:
    """Whether codes are the plain rounding: tensor -> share of its numbers that are the nearest."""
    odd = {name: share for name, share in shares.items() if share < ROUNDED}
    if not odd:
        least = min(shares.values())
        each = "" if len(shares) == 1 else f" in each of the {len(shares):,}"
        said = "All numbers" if least == 1 else f"{_share(least)} of the numbers, or more,"
        return f"{said}{each} are the nearest to the other's that the scales allow: plain rounding"
    few = f"only {_worst(odd)} are the nearest that the scales allow"
    why = "a calibration chose the codes (as GPTQ's and AWQ's do), or the weights are others"
    if len(odd) == len(shares):
        return f"No plain rounding of the other's numbers, for {few}: {why}"
    plain = len(shares) - len(odd)
    return f"{plain:,} of them are plain rounding of the other's numbers; not so where {few}: {why}"


def _schemes(schemes: Sequence[str]) -> str:
    """How many tensors are stored in which way."""
    counted = Counter(schemes).most_common()
    more = [f"{len(counted) - NAMED} more ways"] if len(counted) > NAMED else []
    return _listed([f"{plural(n, 'tensor')} as {scheme}" for scheme, n in counted[:NAMED]] + more)


def _worst(shares: Mapping[str, float]) -> str:
    """The tensors with the fewest nearest numbers, and how many they are."""
    ranked = sorted(shares.items(), key=lambda item: item[1])
    more = f" and fewer than {_share(ROUNDED)} in {len(ranked) - NAMED:,} more" if len(ranked) > NAMED else ""
    return _listed([f"{_share(share)} of {name}" for name, share in ranked[:NAMED]]) + more


def _change(tensors: pd.DataFrame, overall: dict[str, float]) -> list[str]:
    relative_change = overall["relative_change"]
    if math.isnan(relative_change) or not relative_change:
        return []
    sentence = (
        f"Taken as one vector, what is in both moved by {_share(relative_change)} of its length"
        f" (cosine {_cosine(overall['cosine'])})"
    )
    ranked = tensors.dropna(subset=["relative_change"]).sort_values("relative_change", ascending=False, kind="stable")
    top = ranked.iloc[0]
    return [f"{sentence}; the most, by its own length, {top['name']}: {_share(top['relative_change'])}."]


def _ties(ties: Sequence[TieChange], names: tuple[str, str]) -> str:
    if not ties:
        return "The same names share memory in both."
    said = []
    for tie in ties:
        holder, other = names if tie.tied_in == "first" else names[::-1]
        verdict = {"absent": "not all there", "apart": "not one tensor"}.get(tie.other_verdict, tie.other_verdict)
        said.append(f"{_listed(tie.names)} are tied in {holder} and {verdict} in {other}")
    more = f"; {len(ties) - NAMED} more" if len(ties) > NAMED else ""
    return f"Ties differ: {'; '.join(said[:NAMED])}{more}."


def _vocabulary(match: VocabularyMatch, names: tuple[str, str], moved: pd.DataFrame) -> list[str]:
    how = "by their token" if match.matched_by == "token" else "by their number"
    alone = (
        ""
        if not match.alone and not match.other_alone
        else (f"; {match.alone:,} of {names[0]} and {match.other_alone:,} of {names[1]} have no partner")
    )
    elsewhere = match.matched - match.same_row
    other_rows = f", {elsewhere:,} of them at another row" if elsewhere else ""
    sentences = [f"{plural(match.matched, 'embedding row')} matched {how}{other_rows}{alone}."]
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
