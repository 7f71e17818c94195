"""Sentences about what two checkpoints differ in."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from statistics import median
from typing import Any

import pandas as pd

from inspector.analyses.compare.result import FLOATS, TEMPLATE, TieChange, VocabularyMatch
from inspector.analyses.compare.words_notes import BY_SAMPLE, UNREAD
from inspector.text import plural, some

SAID = {
    "changed": "changed",
    "dtype changed": "changed in dtype alone",
    "quantised": "quantized",
    "reshaped": "reshaped",
    "added": "added",
    "removed": "removed",
    "not compared": "not compared",
    "equal in sample": "equal in the sample",
    "equal": "equal",
}
NO_TIES = "Ties could not be compared: see the warning above."
NO_TOKENS = "Tokens could not be compared: see the warning above."
SAME_OUTSIDE = "No tensor outside the layers has changed."
WHY_MEASURED = "What do the numbers mean, and how are tensors matched?"
MEASURED = (
    "Relative change is |b − a| / |a| over a tensor's numbers, where a is this checkpoint and b the second one: at 1 "
    "%, the norm of the change is a hundredth of the tensor's norm. Cosine compares the two tensors as one long "
    "vector each: 1 means the same direction, whatever the lengths. Both are summed in float64 over every number in "
    "both files. With a sample, they cover only the numbers that were read, so they are estimates.",
    "A cell of several tensors (the experts of a layer) treats them as one vector. Tensors are matched by name. A "
    "tensor is also matched if its name differs only by the base model's prefix (bert.), has an older spelling "
    "(gamma), or is tied to another name that the other file stores; the column matched shows which. NaN and infinity "
    "are counted and left out.",
    "Quantized weights (float8 and int8 with scales, GPTQ, AWQ, bitsandbytes, compressed-tensors, NVFP4, MXFP4) are "
    "dequantized before they are compared. The note shows how many of the values are as close to the other "
    "checkpoint's as the scales allow: nearly all after plain rounding, fewer if a calibration chose the values or "
    "the weights differ.",
)
SAMPLED = (
    "Only a sample of each checkpoint was read: the differences found are real, tensors that are equal in the sample "
    "may differ elsewhere, and distances are estimates."
)
TOKENS = {  # why they are not compared, by the values that are read
    "sample": "Tokens are not compared: only a sample of the numbers was read. To compare tokens, read all of them.",
    "none": "Tokens are not compared: no numbers were read.",
}
TOKENS_NOT_COMPARED = "Tokens are not compared. {error}"
TIES_NOT_COMPARED = "Ties are not compared. {error}"
NO_CLASS = (
    "Ties are not compared, and tensors that only the model's class can match, such as tied ones and experts stored "
    "one by one, may count as removed and added. {error}"
)
ROUNDED = 0.99  # share of nearest numbers that only plain rounding gives
NAMED = 3  # names listed in a sentence


def summary(
    *,
    same: bool,
    values: str,
    names: tuple[str, str],
    tensors: pd.DataFrame,
    counts: dict[str, int],
    overall: dict[str, float],
    ties: Sequence[TieChange] | None,
    vocabulary: VocabularyMatch | None,
    moved: pd.DataFrame,
    special: pd.DataFrame,
) -> tuple[str, ...]:
    """What matters, first things first; every number is one of the result's."""
    sentences = []
    if same:
        sentences.append(_same(names))
    if values == "none":
        sentences.append(_unread(tensors))
    if bool(tensors["note"].str.startswith(BY_SAMPLE).any()):
        sentences.append(SAMPLED)
    sentences.append(_tensors(len(tensors), counts))
    sentences += _alone(tensors, names)
    sentences += _quantized(tensors, names)
    sentences += _change(tensors, overall)
    if ties is not None:
        sentences.append(describe_ties(ties, names))
    if vocabulary:
        sentences += describe_rows(vocabulary, names, moved)
    if len(special):
        sentences.append(describe_special(special, names))
    return tuple(sentences)


def legend(values: str) -> str:
    """What the heat map of the layers shows."""
    sample = ", in a sample of the numbers" if values == "sample" else ""
    return f"by kind of tensor{sample}; = unchanged, – not measured"


def no_layers(layers: pd.DataFrame) -> str:
    """Why the layers cannot be drawn; "" if they can.

    Args:
        layers: `Comparison.layers`.
    """
    if layers.empty:
        return "The two have no layer names in common."
    if bool(layers["relative_change"].isna().all()):
        return "No layer tensor could be measured in both. The table below shows why, for example different shapes."
    return ""


def in_common(tensors: pd.DataFrame, vocabulary: VocabularyMatch | None) -> dict[str, tuple[int, int, int]]:
    """How much two checkpoints have in common: what is counted -> only in the first, in both, only in the second.

    Args:
        tensors: `Comparison.tensors`.
        vocabulary: `Comparison.vocabulary`.
    """
    first, second = (Counter(shape for shape in tensors[each] if shape) for each in ("shape", "other_shape"))
    statuses = Counter(tensors["status"])
    alone, added = statuses["removed"], statuses["added"]
    both = (first & second).total()
    found = {
        "tensors by name": (alone, len(tensors) - alone - added, added),
        "tensors by shape": (first.total() - both, both, second.total() - both),
    }
    if vocabulary and vocabulary.matched_by == "token":
        found["tokens"] = (vocabulary.alone, vocabulary.matched, vocabulary.other_alone)
    return found


def _same(names: tuple[str, str]) -> str:
    if names[0] == names[1]:
        which = f"{names[0]} is compared with itself: the same files, byte for byte."
    else:
        which = f"{names[0]} and {names[1]} are the same files, byte for byte, under two names."
    return f"{which} Choose another checkpoint to see what differs."


def _unread(tensors: pd.DataFrame) -> str:
    left = tensors["note"].tolist().count(UNREAD)
    alike = plural(left, "tensor has one shape", "tensors have one shape each")
    return f"Only headers were compared: {alike} in both checkpoints, and no numbers were read."


def _tensors(total: int, counts: dict[str, int]) -> str:
    if list(counts) == ["equal"]:
        return f"All {plural(total, 'tensor')} have the same numbers in both."
    if len(counts) == 1:
        return f"All {plural(total, 'tensor')} are {SAID[next(iter(counts))]}."
    said = [f"{number:,} {SAID[status]}" for status, number in counts.items()]
    apart = " None of one has a counterpart in the other." if set(counts) == {"added", "removed"} else ""
    return f"Of {plural(total, 'tensor')}: {_listed(said)}.{apart}"


def _alone(tensors: pd.DataFrame, names: tuple[str, str]) -> list[str]:
    """What one of them lacks, where they have anything in common."""
    sentences = []
    for status, name in (("removed", names[0]), ("added", names[1])):
        alone = tensors.loc[tensors["status"] == status, "name"].tolist()
        if alone and len(alone) < len(tensors):
            listed = some(alone, NAMED) if len(alone) > NAMED else _listed(alone)
            sentences.append(f"Only in {name}: {listed}.")
    return sentences


def _quantized(tensors: pd.DataFrame, names: tuple[str, str]) -> list[str]:
    """Which side is quantized, how, and which tensors are plain rounding."""
    both = tensors.loc[~tensors["dtype"].isin([*FLOATS, ""])]
    both = both.loc[~both["other_dtype"].isin([*FLOATS, ""])]
    said = []
    if len(both):
        first, second = (_schemes(both[column].tolist()) for column in ("dtype", "other_dtype"))
        said.append(f"Both are quantized: {names[0]} {first}, {names[1]} {second}.")
    coded = tensors.dropna(subset=["nearest"])
    if not len(coded):
        return said
    mine = [dtype for dtype in coded["dtype"].tolist() if dtype not in FLOATS]
    theirs = [dtype for dtype in coded["other_dtype"].tolist() if dtype not in FLOATS]
    kinds = _listed(
        [f"{name} has {_schemes(dtypes)}" for name, dtypes in zip(names, (mine, theirs), strict=True) if dtypes]
    )
    shares = dict(zip(coded["name"].tolist(), coded["nearest"].tolist(), strict=True))
    return [*said, f"Quantized: {kinds}. {_rounding(shares)}.", *_cost(coded.loc[coded["nearest"] >= ROUNDED])]


def _cost(rounded: pd.DataFrame) -> list[str]:
    """What plain rounding cost, by how weights are stored: the median tensor of each way."""
    costs: defaultdict[str, list[float]] = defaultdict(list)
    for row in rounded.dropna(subset=["relative_change"]).to_dict("records"):
        costs[row["other_dtype"] if row["dtype"] in FLOATS else row["dtype"]].append(row["relative_change"])
    medians = sorted(((median(shares), way) for way, shares in costs.items()), reverse=True)
    if not medians:
        return []
    said = [f"{_share(share)} in {way}" for share, way in medians[:NAMED]]
    more = f" and less in {len(medians) - NAMED} more ways" if len(medians) > NAMED else ""
    return [f"What rounding cost, as a share of a tensor's length, in the median tensor: {_listed(said)}{more}."]


def _mark(role: str) -> str:
    return role if role == TEMPLATE else f"{role} token"


def _shown(row: Mapping[str, Any], names: tuple[str, str]) -> str:
    return f"{row['token'] or 'none'} in {names[0]} and {row['other_token'] or 'none'} in {names[1]}"


def describe_special(special: pd.DataFrame, names: tuple[str, str]) -> str:
    """Whether both mark texts in the same way: with the same special tokens, ids and chat template.

    Args:
        special: `Comparison.special_tokens`.
    """
    apart = [row for row in special.to_dict("records") if not row["same"]]
    if not apart:
        what = "Special tokens and chat template" if TEMPLATE in special["role"].tolist() else "Special tokens"
        return f"{what} are the same in both."
    said = [f"the {_mark(row['role'])} is {_shown(row, names)}" for row in apart[:NAMED]]
    more = f", and {len(apart) - NAMED} more" if len(apart) > NAMED else ""
    return f"What marks texts differs: {_listed(said)}{more}."


def _rounding(shares: Mapping[str, float]) -> str:
    """Whether weights are plain rounding: tensor -> share of its numbers that are the nearest."""
    odd = {name: share for name, share in shares.items() if share < ROUNDED}
    if not odd:
        least = min(shares.values())
        each = "" if len(shares) == 1 else f" in each of the {len(shares):,}"
        said = "All numbers" if least == 1 else f"{_share(least)} of the numbers, or more,"
        return f"{said}{each} are as close to the other checkpoint's as the scales allow: plain rounding"
    few = f"only {_worst(odd)} are as close as the scales allow"
    why = "a calibration chose the values (as GPTQ and AWQ do), or the weights differ"
    if len(odd) == len(shares):
        return f"Not plain rounding of the other checkpoint's numbers: {few}, so {why}"
    plain = len(shares) - len(odd)
    return f"{plain:,} of them are plain rounding of the other checkpoint's numbers; where {few}, {why}"


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
        f"Taken as one vector, the tensors in both moved by {_share(relative_change)} of its length (cosine "
        f"{_cosine(overall['cosine'])})"
    )
    ranked = tensors.dropna(subset=["relative_change"]).sort_values("relative_change", ascending=False, kind="stable")
    top = ranked.iloc[0]
    return [
        f"{sentence}. The largest change relative to a tensor's own length is {_share(top['relative_change'])}, in "
        f"{top['name']}."
    ]


def describe_ties(ties: Sequence[TieChange], names: tuple[str, str]) -> str:
    """Which names are tied in one of the two alone."""
    if not ties:
        return "The same names share memory in both."
    said = []
    for tie in ties:
        holder, other = names if tie.tied_in == "first" else names[::-1]
        verdict = {"absent": "not all present", "apart": "separate"}.get(tie.other_verdict, tie.other_verdict)
        said.append(f"{_listed(tie.names)} are tied in {holder} and {verdict} in {other}")
    more = f"; {len(ties) - NAMED} more" if len(ties) > NAMED else ""
    return f"Ties differ: {'; '.join(said[:NAMED])}{more}."


def describe_rows(match: VocabularyMatch, names: tuple[str, str], moved: pd.DataFrame) -> list[str]:
    """How the embedding rows were matched, and which moved furthest."""
    how = "the text of their token" if match.matched_by == "token" else "row number"
    matched = f"{plural(match.matched, 'embedding row')} matched by {how}"
    if match.matched != match.same_row:
        matched += f", {match.matched - match.same_row:,} of them in a different row"
    for name, alone, examples in (
        (names[0], match.alone, match.alone_examples),
        (names[1], match.other_alone, match.other_alone_examples),
    ):
        if alone:
            more = " and more" if alone > len(examples) else ""
            matched += f"; {plural(alone, 'row')} of {name} without a match ({', '.join(examples)}{more})"
    if match.not_finite:
        matched += f"; {match.not_finite:,} hold NaN or infinity and are not measured"
    sentences = [f"{matched}."]
    if match.columns != match.other_columns:
        sentences.append(f"Rows of {match.columns} and {match.other_columns} numbers cannot be compared.")
    elif not match.moved:
        sentences.append("No matched row differs.")
    elif len(moved):
        top = moved.iloc[0]
        sentences.append(
            f"{match.moved:,} of them differ; furthest moved: {top['token']} (distance {top['distance']:.3g}, "
            f"cosine {_cosine(top['cosine'])})."
        )
    return sentences


def not_finite(name: str, tensors: str) -> str:
    """Which tensors of a checkpoint hold NaN or infinity."""
    return f"{name} holds NaN or infinity in {tensors}: distances leave these numbers out, and the table counts them."


def matched_by_row(names: Sequence[str]) -> str:
    """Rows have numbers alone, since these checkpoints lack a tokenizer."""
    return (
        f"Embedding rows are matched by row number because {' and '.join(names)} "
        f"{'has' if len(names) == 1 else 'have'} no tokenizer, so a row may belong to different tokens in the two."
    )


def two_tokenizers(kinds: Sequence[str]) -> str:
    """What tokenizers of two kinds mean for rows that were matched by text."""
    return (
        f"The tokenizers are {' and '.join(kinds)}: the same text in both vocabularies may be a word for one and a "
        "piece of words for the other."
    )


def _share(share: float) -> str:
    return f"{100 * share:,.0f} %" if share >= 10 else f"{100 * share:.3g} %"


def _cosine(cosine: float) -> str:
    """Enough digits to tell it from 1."""
    if math.isnan(cosine):
        return "undefined"
    return f"{cosine:.4f}" if cosine < 0.9999 else f"1 - {1 - cosine:.2g}" if cosine < 1 else "1"


def _listed(items: Sequence[str]) -> str:
    shown = list(items)
    return " and ".join([", ".join(shown[:-1]), shown[-1]] if len(shown) > 1 else shown)
