"""The verb that looks for the base of a checkpoint: another one, several, or those of the store and the demos."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Annotated, Any

import typer

from inspector.analyses.base.request import BaseRequest
from inspector.analyses.base.result import RELATED
from inspector.batch.asking import BatchEntry
from inspector.cli.answering import AsJson, OnIt, ask, print_answer, refusals, task_of, to_print
from inspector.cli.batches import Listed, ask_many, leave, names_run, seek, show_many
from inspector.cli.child import Task
from inspector.demo import DEMOS
from inspector.errors import RequestError
from inspector.settings import settings
from inspector.store.origins.snapshots import Snapshot
from inspector.store.reference import CheckpointRef, find_reference
from inspector.store.stored import list_checkpoints

UNJUDGED = 3  # exit status
OPEN = "not judged"
ORDER = (*RELATED, OPEN, "unrelated")


def base(
    checkpoint: Annotated[str, typer.Argument(metavar="CHECKPOINT", help="The checkpoint whose base is sought.")],
    candidates: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[CANDIDATE]...",
            help="Checkpoints that may be the base, or folders of snapshots; without one, the demos and the uploads "
            "in the store.",
        ),
    ] = None,
    *,
    listed: Listed = None,
    on_it: OnIt = "",
    as_json: AsJson = False,
) -> None:
    """Which base is this: another checkpoint, or unrelated? Exits with status 3 if that cannot be judged."""
    given = candidates or []
    with refusals(BaseRequest):
        if listed is not None or len(given) != 1 or names_run(given[0]):
            if on_it:
                raise RequestError("--adapter goes with a single candidate: name one.")
            _ask_many(checkpoint, seek(given, listed).entries if given or listed else _stored(), as_json=as_json)
            return
    show = to_print(as_json=as_json)

    def taken(answer: Any) -> dict[str, Any]:
        return {"verdict": answer.result.verdict, "shown": show(answer)}

    found = ask(BaseRequest.verb, checkpoint, then=taken, beside={"other": given[0]}, on_it=on_it)
    print_answer(found["shown"], as_json=as_json)
    if found["verdict"] == OPEN:
        raise typer.Exit(UNJUDGED)


def _ask_many(checkpoint: str, found: Sequence[Snapshot | BatchEntry], *, as_json: bool) -> None:
    own = find_reference(checkpoint)

    def task(snapshot: Snapshot) -> Task:
        made = task_of(BaseRequest.verb, (own, snapshot.reference), BaseRequest(other=snapshot.name).parameters())
        return replace(made, about=1, beside=(checkpoint,))

    lines = ask_many(
        [each for each in found if not (isinstance(each, Snapshot) and each.reference == own)],
        task,
        question={"verb": BaseRequest.verb, "checkpoint": str(own)},
        results=None,
        by_content=False,
        tell=lambda result: str(result["verdict"]),
    )
    lines.sort(key=_closest)
    show_many(BaseRequest.verb, lines, as_json=as_json, row=_row)
    leave(lines)
    if any(line["status"] == "done" and line["result"]["verdict"] == OPEN for line in lines):
        raise typer.Exit(UNJUDGED)


def _stored() -> list[Snapshot | BatchEntry]:
    """The demos and the uploads."""
    uploads = (
        Snapshot(f"{each.name} ({each.fingerprint[:8]})", CheckpointRef("upload", each.fingerprint), None)
        for each in list_checkpoints(settings())
    )
    return [*(Snapshot(name, CheckpointRef("demo", name), None) for name in DEMOS), *uploads]


def _closest(line: dict[str, Any]) -> tuple[int, float]:
    """The likeliest base first: by verdict, then by how much was changed."""
    if line["status"] != "done":
        return len(ORDER), 0.0
    found = line["result"]
    return ORDER.index(found["verdict"]), found["relative_change"] or 0.0


def _row(found: dict[str, Any]) -> dict[str, Any]:
    return {
        "verdict": found["verdict"],
        "equal": f"{found['equal']} of {found['matched']}",
        **{name: found[name] for name in ("cosine", "coefficient", "relative_change", "rank")},
    }


COMMAND = base
