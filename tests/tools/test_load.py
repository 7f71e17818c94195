"""The judge of the load runs: it must see a wrong answer, and overlook what rounding explains."""

from __future__ import annotations

import base64

import numpy as np
import pandas as pd
import pytest
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg

from tools.load.contents import PageElement, differences, same
from tools.load.people import PageTree


def typed(*values: float) -> dict[str, str]:
    data = np.array(values, dtype="f8")
    return {"dtype": "f8", "bdata": base64.b64encode(data.tobytes()).decode()}


@pytest.mark.parametrize(
    ("one", "other", "equal"),
    [
        ("paris 12.3 %", "paris 12.3 %", True),
        ("paris 12.31 %", "paris 12.32 %", True),
        ("paris 12.3 %", "london 12.3 %", False),
        ("paris 12.3 %", "paris 52.3 %", False),
        ("5,120 rows", "4,096 rows", False),
        ("cpu, float32, 12 ms", "cpu, float32, 340 ms", True),
        ("cpu, float32, 12 ms", "cpu, float16, 12 ms", False),
        (0.25, 0.250001, True),
        (0.25, 0.31, False),
        (float("nan"), float("nan"), True),
        (float("nan"), 0.0, False),
        (None, None, True),
        (None, 0.5, False),
        ([1.0, "a"], [1.0, "a"], True),
        ([1.0, "a"], [1.0, "b"], False),
        ([1.0], [1.0, 2.0], False),
        ({"x": typed(1, 2)}, {"x": typed(1, 2.000001)}, True),
        ({"x": typed(1, 2)}, {"x": typed(2, 1)}, False),
        ({"x": 1.0}, {"y": 1.0}, False),
        (pd.DataFrame({"token": ["a", "b"], "p": [0.5, 0.25]}),
         pd.DataFrame({"token": ["a", "b"], "p": [0.5, 0.250001]}), True),
        (pd.DataFrame({"token": ["a", "b"]}), pd.DataFrame({"token": ["b", "a"]}), False),
        (pd.DataFrame({"token": ["a"]}), pd.DataFrame({"token": ["a", "b"]}), False),
        (pd.DataFrame({"token": ["a"]}), pd.DataFrame({"word": ["a"]}), False),
    ],
)  # fmt: skip
def test_same(one: object, other: object, equal: bool) -> None:
    assert same(one, other) is equal
    assert same(other, one) is equal


def test_pages_of_other_lengths_or_kinds_differ() -> None:
    page = [PageElement("markdown", "a"), PageElement("alert", "b")]
    assert list(differences(page, page)) == []
    assert len(list(differences(page[:1], page))) == 1
    assert len(list(differences(page, page[:1]))) == 1
    assert len(list(differences(page, [PageElement("markdown", "a"), PageElement("markdown", "b")]))) == 1


def message(kind: str, path: tuple[int, ...], body: str = "") -> bytes:
    made = ForwardMsg()
    made.metadata.delta_path.extend(path)
    if kind == "markdown":
        made.delta.new_element.markdown.body = body
    else:
        made.delta.new_element.empty.SetInParent()
    return made.SerializeToString()


def test_a_page_is_read_from_top_to_bottom_and_what_is_replaced_goes() -> None:
    tree = PageTree()
    begin = ForwardMsg()
    begin.new_session.page_script_hash = "page"
    tree.take(begin.SerializeToString())
    assert tree.running
    tree.take(message("markdown", (0, 2), "second"))
    tree.take(message("markdown", (0, 1, 0), "waiting"))
    tree.take(message("markdown", (1, 0), "in the sidebar"))
    tree.take(message("empty", (0, 1)))
    tree.take(message("markdown", (0, 0), "first"))
    assert [said.value for said in tree.said()] == ["first", "second"]
    end = ForwardMsg()
    end.script_finished = ForwardMsg.FINISHED_SUCCESSFULLY
    tree.take(end.SerializeToString())
    assert not tree.running
    tree.take(begin.SerializeToString())
    assert tree.said() == []
