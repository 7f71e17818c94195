"""Which parameters share memory?"""

from __future__ import annotations

from functools import partial

from inspector.analyses.sharing.result import Sharing
from inspector.catalog import request_of
from inspector.view.blocks import Bullets, Figure
from pages._sharing import parts as sharing_parts
from pages._sharing import what_if
from pages._ui import parts, session
from pages._ui.answer.rendering import PageView

checkpoint = session.opened()
parts.heading("sharing", checkpoint)
request = request_of("sharing")()
sharing: Sharing = session.run(request)
parts.warnings(sharing.warnings)


def draw_graph(figure: Figure) -> int | None:
    """Draw the graph; gives the row that was clicked."""
    graph = parts.drawn(figure.draw, narrow=figure.narrow)
    with parts.place("sharing_graph", graph):
        picked = parts.clickable(graph, key=figure.name, alt=figure.alt)
    return picked[0] if picked else None


def draw_groups(groups: Bullets) -> None:
    """Draw each group as a card."""
    sharing_parts.draw_groups(sharing)


page = PageView.of(
    sharing, request, name=checkpoint.name, instead={(Figure, "graph"): draw_graph, (Bullets, ""): draw_groups}
)
page.answer(partial(sharing_parts.draw_selected, sharing))
page.below({"What if": partial(what_if.draw, checkpoint, sharing)}, opened_by={"change": "What if", "find": "Names"})
parts.elsewhere(checkpoint, request)
