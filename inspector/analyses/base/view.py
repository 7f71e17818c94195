"""Whether another checkpoint is the base, with the evidence."""

from __future__ import annotations

from collections.abc import Iterator

from inspector.analyses.base import words
from inspector.analyses.base.request import BaseRequest
from inspector.analyses.base.result import Relation
from inspector.view.blocks import Block, Facts, Table
from inspector.view.view import Headline, Tab, View, Why


def view(found: Relation, request: BaseRequest, *, name: str) -> View:
    """The verdict, its evidence, and every sampled matrix."""
    return View(
        Headline(words.headline(found), "ok" if found.verdict == "same" else None),
        beside=(Facts(words.facts(found)),),
        tabs=(Tab("Sampled matrices", lambda: _tensors(found)),),
        why=(Why(words.HOW, words.HOW_ANSWER), Why(words.WHICH_FIRST, words.WHICH_FIRST_ANSWER)),
        more="--json prints every sampled matrix.",
    )


def _tensors(found: Relation) -> Iterator[Block]:
    yield Table("sampled", "Sampled matrices", found.tensors)
