"""Numbers of one snapshot."""

from __future__ import annotations

from inspector.analyses.snapshots import words
from inspector.analyses.snapshots.request import VitalsRequest
from inspector.analyses.snapshots.result import Vitals
from inspector.text import shape_text
from inspector.view.blocks import Facts, Table
from inspector.view.view import Headline, View


def view(result: Vitals, request: VitalsRequest, *, name: str) -> View:
    """The norms, and the tokens that are followed."""
    norms = result.norms
    return View(
        Headline(words.headline(result)),
        beside=(
            Facts(
                {
                    "Matrix": f"{result.tensor}, {shape_text((result.rows, result.columns))}",
                    "Norms": f"{norms.min:.4f} to {norms.max:.4f}, median {norms.median:.4f}",
                    "Padding": "none"
                    if result.pad_norm is None
                    else f"{result.pad_token} (id {result.pad_id}), norm {result.pad_norm:.4f}",
                }
            ),
            *([Table("tokens", "Tokens followed", result.tokens)] if len(result.tokens) else []),
        ),
        more=words.SEVERAL,
    )
