"""The verb that asks whether an adapter was merged, with an exit status for pipelines."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from inspector.analyses.merge_proof.request import VerifyMergeRequest
from inspector.analyses.merge_proof.result import PROVEN
from inspector.cli.answering import AsJson, ask, print_answer, refusals, to_print
from inspector.cli.verbs import flagged, gathered

FAILED, OPEN = 1, 3  # exit statuses: not the merge that it should be; it cannot be judged


def verify_merge(
    base: Annotated[str, typer.Argument(metavar="BASE", help="The model that the adapter was trained on.")],
    adapter: Annotated[str, typer.Argument(metavar="ADAPTER", help="The adapter, as PEFT saved it.")],
    merged: Annotated[str, typer.Argument(metavar="MERGED", help="The model that it is said to be merged into.")],
    *,
    rows: Annotated[str, flagged(VerifyMergeRequest, "rows")] = VerifyMergeRequest.rows,
    as_json: AsJson = False,
) -> None:
    """Was an adapter really merged into its base model? Exits with status 1 if not, 3 if that cannot be judged."""
    beside = {"adapter": adapter, "merged": merged}
    with refusals(VerifyMergeRequest):
        gathered(VerifyMergeRequest, {**beside, "rows": rows})
    show = to_print(as_json=as_json)

    def taken(answer: Any) -> dict[str, Any]:
        return {"verdict": answer.result.verdict, "shown": show(answer)}

    found = ask(VerifyMergeRequest.verb, base, then=taken, beside=beside, rows=rows)
    print_answer(found["shown"], as_json=as_json)
    if found["verdict"] not in PROVEN:
        raise typer.Exit(OPEN if found["verdict"] == "not checkable" else FAILED)


COMMAND = verify_merge
