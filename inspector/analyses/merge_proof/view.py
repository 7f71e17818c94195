"""What three checkpoints prove about a merge."""

from __future__ import annotations

from inspector.analyses.merge_proof import words
from inspector.analyses.merge_proof.figures import SIGNS, grid, verdict_map, worst, worst_first
from inspector.analyses.merge_proof.request import VerifyMergeRequest
from inspector.analyses.merge_proof.result import MergeProof
from inspector.report.content import Context, Section
from inspector.report.provenance import query
from inspector.view.blocks import Bullets, Facts, Figure, Grid, Table
from inspector.view.view import Headline, Picture, Tab, View, Why

MOST_LAYERS = 36  # columns of the text picture


def view(proof: MergeProof, request: VerifyMergeRequest, *, name: str) -> View:
    """The verdict, what became of each layer, and every tensor."""
    return View(
        Headline(words.headline(proof), words.judged(proof)),
        picture=Picture(
            Figure(
                "verdicts",
                lambda theme: verdict_map(
                    proof.tensors, title=words.title(proof), subtitle=words.subtitle(proof), theme=theme
                ),
                "What became of each kind of tensor in each layer; the table has every tensor",
            ),
            _text(proof),
        ),
        beside=(Facts(words.facts(proof)),),
        tabs=(
            Tab("Tensors", lambda: [Table("tensors", "Every tensor", worst_first(proof.tensors))]),
            Tab("Signs", lambda: [Bullets(words.signs(SIGNS))]),
        ),
        why=tuple(Why(question, answer) for question, answer in words.WHY),
        more="--json prints every tensor; --rows all compares every number.",
    )


def _text(proof: MergeProof) -> Grid | None:
    across, down, cells = grid(proof.tensors)
    if not across or len(across) > MOST_LAYERS:
        return None
    found = [[cells.get((kind, layer)) for layer in across] for kind in down]
    return Grid(
        tuple(down),
        tuple(across),
        tuple(tuple(SIGNS[worst(each)] if each else "" for each in row) for row in found),
        tuple((None,) * len(row) for row in found),
        "verdict: ✓ merged, ≈ within rounding, · as in the base, ✗ not merged",
    )


def _asked(context: Context) -> VerifyMergeRequest:
    return VerifyMergeRequest(**{name: context.beside[name].fingerprint for name in ("adapter", "merged")})


SECTION = Section(
    "merge",
    ask=lambda context: (_asked(context),),
    query=lambda context: query(context, _asked(context)),
    needs=("adapter", "merged"),
)
