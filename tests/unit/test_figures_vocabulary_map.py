"""What is sent to the browser's vocabulary map."""

from __future__ import annotations

import base64
import json
import re
from typing import Any

import numpy as np
import pandas as pd
import pytest

from inspector.figures import DARK, LIGHT
from inspector.figures import vocabulary_map as component
from inspector.results import KINDS


def frame_of_points() -> pd.DataFrame:
    return pd.DataFrame(
        {
            "token_id": [0, 5, 7, 9],
            "token": ["[PAD]", "cat", "</script>", "a\nb"],
            "x": np.array([0.5, 1.5, 2.5, 3.5], dtype=np.float32),
            "y": np.array([-1.0, -2.0, -3.0, -4.0], dtype=np.float32),
            "norm": np.array([0.1, 1.0, 1.1, 1.2], dtype=np.float32),
            "kind": ["padding", "word", "special", "word"],
        }
    )


def numbers(data: dict[str, Any], name: str, dtype: str) -> list[float]:
    return np.frombuffer(base64.b64decode(data[name]), dtype=dtype).tolist()


def test_points_come_in_drawing_order_with_padding_last() -> None:
    data = component.payload(frame_of_points(), title="demo: map")
    assert numbers(data, "token_id", "<i4") == [5, 9, 7, 0]
    assert numbers(data, "xy", "<f4") == [1.5, -2.0, 3.5, -4.0, 2.5, -3.0, 0.5, -1.0]
    assert numbers(data, "norm", "<f4") == pytest.approx([1.0, 1.2, 1.1, 0.1])
    assert numbers(data, "kind", "u1") == [0, 0, 1, 2]
    assert data["tokens"].split("\n") == ["cat", "a\\x0ab", "</script>", "[PAD]"]
    assert [(kind["name"], kind["count"]) for kind in data["kinds"]] == [
        ("word", 2),
        ("special", 1),
        ("padding", 1),
    ]
    assert [kind["ringed"] for kind in data["kinds"]] == [False, False, True]


def test_the_payload_is_plain_json() -> None:
    data = component.payload(
        frame_of_points(), title="t", selected=5, highlighted=np.array([7, 9]), theme=DARK
    )
    again = json.loads(json.dumps(data, allow_nan=False))
    assert again == data
    assert again["highlighted"] == [7, 9]
    assert again["theme"]["page"] == DARK.page


def test_points_without_a_place_are_left_out_and_counted() -> None:
    points = frame_of_points()
    points.loc[1, "x"] = np.nan
    points.loc[2, "y"] = np.inf
    data = component.payload(points, title="t")
    assert numbers(data, "token_id", "<i4") == [9, 0]
    assert data["left_out"] == 2


def test_the_digest_changes_with_the_points_alone() -> None:
    points = frame_of_points()
    first = component.payload(points, title="t")["digest"]
    assert component.payload(points, title="u", selected=5, theme=DARK)["digest"] == first
    points.loc[3, "y"] = 0.0
    assert component.payload(points, title="t")["digest"] != first


def test_many_points_stay_small() -> None:
    count = 250_000
    points = pd.DataFrame(
        {
            "token_id": np.arange(count, dtype=np.int32),
            "token": ["token"] * count,
            "x": np.zeros(count, dtype=np.float32),
            "y": np.zeros(count, dtype=np.float32),
            "norm": np.ones(count, dtype=np.float32),
            "kind": ["word"] * count,
        }
    )
    data = component.payload(points, title="t")
    # 17 bytes a point as base64, and each token once with a separator
    assert len(json.dumps(data)) < count * (17 * 4 / 3 + 7) + 5000


def test_every_kind_is_drawable_and_the_rare_ones_are_labelled() -> None:
    points = pd.concat([frame_of_points().iloc[[0]]] * len(KINDS), ignore_index=True)
    data = component.payload(points.assign(kind=list(KINDS)), title="t")
    assert [kind["name"] for kind in data["kinds"]] == list(KINDS)
    labelled = {kind["name"] for kind in data["kinds"] if kind["labelled"]}
    assert labelled == {"special", "padding"}
    assert {kind["color"] for kind in data["kinds"]} == set(LIGHT.kinds.values())


def test_the_assets_ask_no_host_and_build_no_markup_from_text() -> None:
    script = component.javascript()
    for text in (script, component.html(), component.css()):
        assert not re.search(r"https?:|//[a-z0-9.-]+\.[a-z]{2,}/|@import|url\(", text)
    assert not re.search(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|eval\(", script)
    assert script.count("export default") == 1
