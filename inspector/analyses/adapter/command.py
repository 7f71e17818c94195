"""The verb that says what an adapter changes."""

from __future__ import annotations

from typing import Annotated

import typer

from inspector.analyses.adapter.request import AdapterRequest
from inspector.cli.answering import AsJson, answer
from inspector.cli.verbs import flagged


def adapter(
    checkpoint: Annotated[str, typer.Argument(metavar="ADAPTER", help="The adapter, as PEFT saved it.")],
    *,
    base: Annotated[str, flagged(AdapterRequest, "base")] = AdapterRequest.base,
    as_json: AsJson = False,
) -> None:
    """What does an adapter change, and what of it will a merge keep?"""
    answer(AdapterRequest.verb, checkpoint, as_json=as_json, beside={"base": base} if base else {})


COMMAND = adapter
