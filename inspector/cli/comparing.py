"""The verb about two checkpoints."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from inspector.cli.answering import AsJson, Source, answer, app
from inspector.results import Comparison, to_json

CHANGED_SHOWN = 20  # tensors on a terminal, those that changed most


@app.command()
def compare(
    checkpoint: Source,
    other: Annotated[
        str, typer.Argument(metavar="OTHER", help="The second checkpoint, named the same ways.")
    ],
    align: Annotated[
        bool,
        typer.Option("--align", help="Rotate one embedding space onto the other (Procrustes)."),
    ] = False,
    moved: Annotated[
        int, typer.Option("--moved", help="Tokens that moved furthest, 1 to 1,000.")
    ] = 50,
    as_json: AsJson = False,
) -> None:
    """What changed between two checkpoints?"""
    answer(
        "compare", checkpoint, as_json=as_json, beside=other,
        then=(lambda result: result) if as_json else _in_short, align=align, moved=moved,
    )  # fmt: skip


def _in_short(result: Comparison) -> dict[str, Any]:
    """What fits a terminal; --json has every tensor, layer and token."""
    unequal = result.tensors.loc[result.tensors["status"] != "equal"]
    ranked = unequal.sort_values("relative_change", ascending=False, kind="stable")
    columns = ("name", "status", "relative_change", "max_abs")  # what 80 letters hold
    plain = to_json(result)
    return {
        "name": result.name,
        "other_name": result.other_name,
        "summary": " ".join(result.summary),
        "tensors": [
            {column: plain["tensors"][place][column] for column in columns}
            for place in ranked.index[:CHANGED_SHOWN]
        ],
        "tensors_listed": f"{min(len(ranked), CHANGED_SHOWN)} of {len(ranked)} that are not equal",
        "ties_changed": plain["ties_changed"],
        "tokens_moved": [
            {name: row[name] for name in ("token", "token_id", "distance", "cosine")}
            for row in plain["tokens_moved"]
        ],
        "warnings": plain.get("warnings", []),
    }
