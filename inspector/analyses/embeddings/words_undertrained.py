"""How under-trained tokens were looked for, in words: the statement of an indicator."""

from __future__ import annotations

from collections.abc import Sequence

from inspector.analyses.embeddings.result_health import Indicator

TOO_FEW = "There are {count} ordinary tokens, too few to determine what is typical."
NORM_ALONE = "So only the norm counts: a token is listed if its row is shorter than {share:.2f} times the median row."
NO_DIFFERENCE = (
    "{count:,} rows are known to be unused, but they do not stand out from the ordinary tokens, by direction or by "
    "norm: either they were trained like the others, or the others were trained just as little."
)
NO_REFERENCE = "No row of this vocabulary is known to be unused."
TOO_VARIED = "The norms of ordinary tokens vary so much that no row is short enough to stand out."
SCORES = {  # {unused} rows score {reference}, a typical one {typical}
    "direction": "The score is the cosine between a row and the mean of {unused}, after the mean of all rows is "
    "subtracted. Measured against the others, an unused row scores {reference:.2f}; a typical token scores "
    "{typical:.2f}.",
    "norm": "The score is how far a row's norm is below the typical token's, as a share of it: {reference:.2f} for "
    "{unused}, {typical:.2f} for a typical token.",
}
NAMED = 5


def scored(indicator: Indicator, outliers: Sequence[str]) -> str:
    """What the score is, and from where on a token is listed.

    Args:
        outliers: Tokens of unused rows that do not lie where the others do.
    """
    said = SCORES["direction" if indicator.measure == "direction" else "norm"].format(
        unused=f"{indicator.references:,} rows that are known to be unused",
        reference=indicator.reference_score,
        typical=indicator.typical_score,
    )
    if outliers:
        named = ", ".join(outliers[:NAMED]) + " and others" * (len(outliers) > NAMED)
        verbs = ("lies", "is") if len(outliers) == 1 else ("lie", "are")
        said += f" {len(outliers):,} more ({named}) {verbs[0]} elsewhere and {verbs[1]} left out."
    said += f" A token is listed from a score of {indicator.threshold:.2f}"
    if indicator.agreed_threshold is not None:
        said += (
            f", or from {indicator.agreed_threshold:.2f} if its output bias is {indicator.bias_threshold:.2f} or "
            "lower, as for rare tokens"
        )
    return f"{said}."


def untrained(deviation: float, *, fresh: bool) -> str:
    """All rows are random; `fresh`: as config.json says that they begin."""
    begins = ", which config.json gives for a fresh model" if fresh else ""
    return (
        "All rows look alike: their directions and norms cannot be distinguished from independent random numbers with "
        f"standard deviation {deviation:.3g}{begins}. So this matrix looks untrained, and no single token can be "
        "called under-trained."
    )
