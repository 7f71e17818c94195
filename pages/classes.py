"""Which classes is this model made of, and what does it return?"""

from __future__ import annotations

from functools import partial

from inspector.analyses.classes.request import ClassesRequest
from inspector.analyses.classes.result import ModelClasses
from inspector.request import Request
from inspector.view.blocks import Facts, Figure
from pages._classes import parts as class_parts
from pages._ui import parts, session
from pages._ui.answer.rendering import PageView

checkpoint = session.opened()
parts.heading("classes", checkpoint)
request = ClassesRequest()
classes: ModelClasses = session.run(request)
parts.warnings(classes.warnings)


def draw_family(figure: Figure) -> None:
    """Draw the family tree."""
    drawn = parts.drawn(figure.draw, narrow=figure.narrow)
    with parts.place("family_tree", drawn):
        parts.chart(drawn, alt=figure.alt)


asked: list[Request] = [request]


def experts() -> None:
    """Draw the experts of a mixture."""
    asked.append(class_parts.draw_experts(checkpoint))


page = PageView.of(
    classes,
    request,
    name=checkpoint.name,
    shares=(1, 1),
    instead={(Figure, "family"): draw_family, (Facts, ""): lambda _: class_parts.draw_tree(classes)},
)
page.answer()
page.below(
    {
        "One module": partial(class_parts.draw_module, classes),
        "Output": lambda: asked.append(class_parts.draw_output(checkpoint, classes)),
        "Experts": experts if classes.mixtures else None,
    },
    opened_by={"module": "One module", "find": "Every module", "text": "Output", "routed": "Experts"},
)
parts.elsewhere(checkpoint, asked[-1])
