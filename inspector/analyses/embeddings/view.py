"""The static embeddings: norms, special tokens, and the health of their rows."""

from __future__ import annotations

from collections.abc import Iterator

import pandas as pd

from inspector.analyses.embeddings import words
from inspector.analyses.embeddings.figures_health import score_histogram
from inspector.analyses.embeddings.frames import finding_rows
from inspector.analyses.embeddings.request import EmbeddingsRequest
from inspector.analyses.embeddings.result import Embeddings
from inspector.analyses.vocabulary_map.request import ProjectRequest
from inspector.report.content import Section
from inspector.view.blocks import Block, Facts, Figure, Sentence, Table
from inspector.view.view import Headline, Tab, Verdict, View, Why

VERDICTS: dict[str, Verdict] = {"fail": "problem", "warn": "warning"}
MEASURED = {"cosine": "similarity", "dot": "dot_product", "euclidean": "distance"}  # metric -> column of its numbers


def view(result: Embeddings, request: EmbeddingsRequest, *, name: str) -> View:
    """Norms, special tokens, and what is wrong with the rows."""
    found = {each.status for each in result.health.findings}
    worst = next((status for status in VERDICTS if status in found), "ok")
    return View(
        Headline(words.headline(result), VERDICTS.get(worst, "ok")),
        beside=tuple(_beside(result)),
        more="--json prints what was looked for in every row. --token TOKEN lists its nearest rows.",
        tabs=(Tab("Health", lambda: _health(result)), Tab("Under-trained", lambda: _undertrained(result, name))),
        why=tuple(Why(*pair) for pair in (words.explain_padding(result), words.explain_special(result))),
    )


def _beside(result: Embeddings) -> Iterator[Block]:
    yield Facts(
        {
            "Matrix": f"{result.tensor}, {result.rows:,} × {result.columns:,}",
            "Smallest norm": f"{result.norms.min:.4f}",
            "Median norm": f"{result.norms.median:.4f}",
            "Largest norm": f"{result.norms.max:.4f}",
        }
    )
    if len(result.neighbours):
        rows = result.neighbours.rename(columns={"similarity": MEASURED[result.metric]})
        yield Sentence(words.nearest(result), "neighbors")
        yield Table("neighbors", f"Nearest to {result.query} (id {result.query_id})", rows)
    if len(result.special):
        yield Table("special-tokens", "Special tokens", result.special)


def _health(result: Embeddings) -> Iterator[Block]:
    yield Table(
        "health",
        "Checks of every row",
        pd.DataFrame(
            {"looked_for": each.name, "found": each.count, "status": each.status, "detail": each.detail}
            for each in result.health.findings
        ),
    )
    for finding, rows in finding_rows(result.health).items():
        if len(rows):
            yield Table(finding.lower().replace(" ", "-"), finding, rows)


def _undertrained(result: Embeddings, name: str) -> Iterator[Block]:
    indicator, scores = result.health.indicator, result.health.scores
    yield Sentence(indicator.statement)
    if indicator.looks_untrained or indicator.measure == "none":
        return
    judged = len(scores.dropna())
    yield Figure(
        "scores",
        lambda theme: score_histogram(
            scores,
            indicator,
            title=f"Scores of all ordinary tokens of {name}",
            subtitle=f"{len(result.undertrained):,} of {judged:,} are listed",
            theme=theme,
        ),
        "Histogram of scores, with the threshold and the unused rows",
    )
    if len(result.undertrained):
        yield Table("undertrained", "Under-trained tokens, most suspicious first", result.undertrained)
    else:
        yield Sentence(words.none_listed(judged))
    yield Sentence(words.UNTRAINED)


SECTION = Section("embeddings", ask=lambda _: (EmbeddingsRequest(), ProjectRequest()))
