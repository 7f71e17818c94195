"""Words and tables of the Compare page."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from inspector.analyses.compare.result import Comparison, TieChange, VocabularyMatch
from inspector.text import bytes_text, literal, plural, shape_text

STATUS = {
    "changed": "orange",
    "dtype changed": "blue",
    "quantised": "blue",
    "reshaped": "violet",
    "added": "green",
    "removed": "red",
    "not compared": "gray",
    "equal": "gray",
}
PRECISE = ("cosine", "distance", "max_abs", "relative_change")
TEACHES = """
**What you can learn from two checkpoints**

- **Before and after fine-tuning**: which layers moved, and which were left as they were?
- **Two steps of one training run**: does it still change, and where?
- **float32 and a cast or quantised copy**: is it plain rounding, or something else?
- **A base model and one with a head**: what was added, what is tied now and was not before?
- **Two vocabularies**: which tokens have no partner, and whose vector moved furthest?
"""
MEASURED = """
**Relative change** is |b − a| / |a| over a tensor's numbers, a here and b in the second checkpoint:
1 % means that the change is a hundredth as long as the tensor was. **Cosine** compares the two
tensors as one long vector each: 1 is the same direction, whatever the lengths. Both are summed in
float64, from every number of both files, read block by block; half precision is widened exactly.

A cell of several tensors (the experts of a layer) takes them as one vector. Tensors are matched by
name; one that differs by the base model's prefix alone (`bert.`), that has an older spelling
(`gamma`), or that is tied to another name which the other file stores, is matched too, and the
column *matched* says so. NaN and infinity are no numbers: their places are counted and left out.

What one side stores as **codes** with scales beside them (float8 and int8 with scales, GPTQ, AWQ,
bitsandbytes, compressed-tensors, NVFP4, MXFP4) is compared as the numbers that the codes stand for,
and the note says how many of them are the nearest to the other's that the scales allow: nearly all
after plain rounding, fewer where a calibration chose the codes, or where the weights are others.
"""
ROTATION = """
Two models that were trained from different starts may hold the same geometry, turned: distances
between their rows then say nothing. **Orthogonal Procrustes** (Schönemann 1966) finds the one
rotation (with mirroring) that brings all matched rows closest together, R = UVᵀ with AᵀB = USVᵀ.
It keeps every length and angle, so what is left after it is a true difference. Where the widths
differ, the narrower rows are filled up with zeros first. For a fine-tuned model leave it off: its
space has not been turned, and the rotation would hide a part of what moved.
"""


def counts(result: Comparison) -> str:
    """How many tensors have which status, as badges."""
    return " ".join(
        f":{STATUS[status]}-badge[{literal(f'{number:,} {status}')}]" for status, number in result.counts.items()
    )


def shown_tensors(tensors: pd.DataFrame, *, find: str, statuses: Sequence[str]) -> pd.DataFrame:
    """Rows of the table that match, those that changed most first."""
    kept = tensors
    if statuses:
        kept = pd.DataFrame(kept[kept["status"].isin(list(statuses))])
    if find:
        text = kept[["name", "other_name", "status", "layer", "dtype", "note"]].agg(" ".join, axis=1)
        kept = pd.DataFrame(kept[text.str.contains(find, case=False, regex=False)])
    return kept.sort_values("relative_change", ascending=False, kind="stable")


def precise(frame: pd.DataFrame) -> pd.DataFrame:
    """A table's frame with heads under which small changes have digits enough."""
    return frame.rename(columns={name: f"precise {name}" for name in PRECISE})


def tie_rows(result: Comparison) -> pd.DataFrame:
    """The ties that changed, for a table."""
    names = {"first": result.name, "second": result.other_name}
    return pd.DataFrame(
        [
            {
                "names": ", ".join(tie.names),
                "tied in": names[tie.tied_in],
                "elsewhere": tie.other_verdict,
                "shape": shape_text(tie.shape),
                "size": bytes_text(tie.nbytes),
                "why": tie.reason,
            }
            for tie in result.ties_changed
        ]
    )


def ties_said(result: Comparison) -> str:
    """The ties in a sentence."""
    if not result.ties_compared:
        return "What is tied could not be told for both: the warning above says why."
    if not result.ties_changed:
        return "The same names share memory in both."
    of = {side: [tie for tie in result.ties_changed if tie.tied_in == side] for side in ("first", "second")}
    said = [
        _tied(ties, holder, other)
        for ties, holder, other in (
            (of["first"], result.name, result.other_name),
            (of["second"], result.other_name, result.name),
        )
        if ties
    ]
    return " ".join(said)


def _tied(ties: list[TieChange], holder: str, other: str) -> str:
    return (
        f"**{plural(len(ties), 'group')}** of names {'is' if len(ties) == 1 else 'are'} one tensor "
        f"in {literal(holder)} and not in {literal(other)}."
    )


def vocabulary_said(result: Comparison, match: VocabularyMatch) -> str:
    """How rows were matched, in words."""
    how = "the text of their token" if match.matched_by == "token" else "their number"
    said = [f"**{plural(match.matched, 'row')}** matched by {how}"]
    if match.matched != match.same_row:
        said[0] += f", {match.matched - match.same_row:,} of them at another row"
    for name, alone, examples in (
        (result.name, match.alone, match.alone_examples),
        (result.other_name, match.other_alone, match.other_alone_examples),
    ):
        if alone:
            listed = ", ".join(literal(each) for each in examples)
            more = " and more" if alone > len(examples) else ""
            said.append(f"{plural(alone, 'row')} of {literal(name)} without a partner ({listed}{more})")
    if match.not_finite:
        said.append(f"{match.not_finite:,} hold NaN or infinity and are not measured")
    return "; ".join(said) + "."


def alignment_said(match: VocabularyMatch) -> str:
    """What the rotation did, in words."""
    alignment = match.alignment
    if alignment is None:
        return ""
    after = f"after the rotation by **{alignment.relative_after:.1%}**. {literal(alignment.note)}"
    if match.columns == match.other_columns:
        return f"Rows differ by {alignment.relative_before:.1%} of their length as stored, {after}"
    return f"In proportion to their length, the rows differ {after}"
