"""What the Snapshots page says."""

from __future__ import annotations

from inspector.analyses.snapshots.frames import Series

ARCHIVE = (
    "One .zip, .tar or .tar.gz that holds a folder for each snapshot, such as checkpoint-500 and "
    "checkpoint-1000, each with its weights, config.json and tokenizer. Each becomes an upload of "
    "its own, which every page can open."
)
TEACHES = """\
A training run leaves snapshots: folders such as `checkpoint-500`, `step_1000` or `global_step2000`.
Each is asked the same, several at once, and the answers are drawn over the steps that stand in the
names; where a name tells no step, in the order of the names. What is asked:

- **Padding**: the length of the `[PAD]` row beside the median row. In a tied model it grows
  although its look-up gets no gradient: the softmax pushes on every row at every position.
- **Norms**: the longest, the median and the shortest row of the embedding matrix.
- **Drift**: the cosine of a token's row to the same token's row in the first or the last snapshot.
- **Neighbors**: how many of a row's nearest rows in the first (or last) snapshot are still among
  them, for your tokens and for rows drawn at random. Neighbors that are no longer lost mean that
  the space has settled.
- **Ties**: which names share memory, snapshot by snapshot: a tie that breaks in the middle of a run
  makes two matrices out of one.
- **Checks**: all checks of the page *Checks*: the step at which the first NaN appears.

Norms, drift and neighbors need the embedding matrix alone, so only that is read of each file."""

QUANTITIES = {
    "Padding": "padding",
    "Norms": "norms",
    "Drift": "drift",
    "Neighbors": "neighbours",
    "Ties": "ties",
    "Checks": "checks",
}
MEASURES = {
    "padding": "length of the row",
    "norms": "length of the row",
    "drift": "cosine",
    "neighbours": "share of neighbors kept",
}
READS = {
    "padding": "With padding_idx the look-up gives the row no gradient; a tied output layer does, "
    "at every predicted position. So it grows with the others, or beyond them.",
    "norms": "Rows grow while they are learned. A shortest row that stays behind belongs to a "
    "token that is hardly ever trained.",
    "drift": "A cosine of 1 is the direction of the reference; 0 is none of it. Rows of another "
    "vocabulary or width are not compared, nor is one that is zero in the reference, as a padding "
    "row is before training: measure it against the last snapshot.",
    "neighbours": "1 means that the same rows are nearest, in any order. Rows drawn at random are "
    "the same ones in every snapshot. A row that is zero in the reference, as a padding row is "
    "before training, has no neighbors there.",
    "ties": "Each name is compared as it lies in memory after loading, with what the file holds. "
    "Point at a square for the reason.",
    "checks": "Point at a square for what was found; the page Checks has the evidence.",
}


def figure_title(quantity: str, run: str, series: Series | None) -> str:
    """The figure's title, with the run's name."""
    about = {
        "padding": "Length of the padding row",
        "norms": "Lengths of the embedding rows",
        "drift": f"Drift of tokens, against {series.reference if series else ''}",
        "neighbours": f"Neighbors kept, of those in {series.reference if series else ''}",
        "ties": "Which names share memory",
        "checks": "What each check said",
    }
    return f"{about[quantity]}, {run}"
