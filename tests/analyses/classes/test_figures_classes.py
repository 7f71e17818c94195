"""The family tree of classes: every class once, below the one that it is made from."""

from __future__ import annotations

from typing import Any

import pytest

from inspector.analyses.classes.figures import class_tree
from inspector.analyses.classes.result import AncestorClass, SiblingClass
from inspector.plotting.theme import DARK, LIGHT


def ancestor(name, kind="class", via=None, module="transformers.models.x"):
    return AncestorClass(name, module, kind, via, "A <b>.", ("forward()",))


def sibling(name, *, present, missing=0, parent="XPreTrainedModel", note="Loads completely."):
    return SiblingClass(name, parent, None, present, missing, note, "")


HIERARCHY = (
    ancestor("XForMaskedLM"),
    ancestor("XPreTrainedModel", via="XForMaskedLM"),
    ancestor("PreTrainedModel", via="XPreTrainedModel"),
    ancestor("Module", via="PreTrainedModel", module="torch.nn.modules.module"),
    ancestor("PushMixin", "mixin", "PreTrainedModel"),
    ancestor("GenerationMixin", "mixin", "XForMaskedLM"),
)
SIBLINGS = (
    sibling("XForMaskedLM", present=True),
    sibling("XModel", present=True, missing=2),
    sibling("XForTokens", present=False, missing=1),
    sibling("XForPairs", present=False, missing=3),
    sibling("XForCausalLM", present=False, note="Every name fits, but …", parent="Elsewhere"),
    sibling("XForChoice", present=False, note="It does not fit: classifier."),
)


def figure(theme=LIGHT) -> Any:
    return class_tree(HIERARCHY, SIBLINGS, name="<x>", theme=theme)


def drawn() -> tuple[Any, Any]:
    lines, marks = figure().data
    return lines, marks


def test_every_class_stands_once_below_its_parent():
    _, marks = drawn()
    rows = [text.strip().partition("  <span")[0] for text in marks.text]
    assert rows == [
        "torch.nn.Module", "PreTrainedModel", "XPreTrainedModel", "<b>XForMaskedLM</b>",
        "<b>XModel</b>", "XForTokens", "XForPairs", "XForCausalLM", "XForChoice",
    ]  # fmt: skip
    steps = [x / marks.x[1] for x in marks.x]
    assert steps == [0, 1, 2, 3, 3, 3, 3, 3, 3]
    assert list(marks.y) == list(range(9))


def test_full_marks_are_what_the_file_holds():
    _, marks = drawn()
    assert list(marks.marker.symbol) == ["circle"] * 5 + ["circle-open"] * 4
    remarks = [text.rpartition('12px">')[2].removesuffix("</span>") for text in marks.text]
    assert remarks == [
        "torch.nn.modules.module", "models.x · PushMixin", "models.x", "this checkpoint's class",
        "loads, but without its pooler", "1 tensor would be random", "3 tensors would be random",
        "trained with another head · from Elsewhere", "does not fit",
    ]  # fmt: skip


def test_the_models_own_class_is_hollow_too_where_the_file_lacks_its_weights():
    own = sibling("XForMaskedLM", present=False, missing=2)
    marks: Any = class_tree(HIERARCHY, (own, *SIBLINGS[1:]), name="x").data[1]
    assert marks.marker.symbol[3] == "circle-open"
    assert "this checkpoint's class · 2 tensors would be random" in marks.text[3]


def test_on_a_phone_what_is_said_of_a_class_is_below_its_name_and_long_names_have_their_room():
    narrow: Any = class_tree(HIERARCHY, SIBLINGS, name="x", narrow=True)
    assert [text.count("<br>") for text in narrow.data[1].text] == [1] * 9
    assert narrow.layout.meta["least"] == 320
    long = sibling("XForConditionalGenerationOfTextFromPictures", present=True)
    wider: Any = class_tree(HIERARCHY, (*SIBLINGS, long), name="x", narrow=True)
    assert wider.layout.meta["least"] > 370


def test_lines_join_each_class_to_its_parent():
    lines, marks = drawn()
    corners = list(zip(lines.x, lines.y, strict=True))
    assert len(corners) == 4 * 8  # all but the root, each with a gap behind
    ends = [corners[place + 2] for place in range(0, len(corners), 4)]
    assert ends == list(zip(marks.x, marks.y, strict=True))[1:]
    starts = [corners[place] for place in range(0, len(corners), 4)]
    assert [y for _, y in starts] == [0, 1, 2, 2, 2, 2, 2, 2]


@pytest.mark.parametrize("theme", [LIGHT, DARK])
def test_names_are_text_and_colors_are_the_themes(theme):
    found = figure(theme)
    marks = found.data[1]
    assert "&lt;x&gt;" in found.layout.title.text
    assert all("A &lt;b&gt;." in text for text in marks.hovertext[:3])
    assert marks.textfont.color == theme.ink
    assert marks.marker.color[3] == theme.groups[0]
    assert set(marks.marker.color[5:]) == {theme.muted}
