"""The icicle: every parameter in exactly one leaf, what is shared once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import plotly.graph_objects as go
import pytest

from inspector.analyses.sharing.compute import sharing
from inspector.analyses.sharing.figures_parameters import MOST, parameter_icicle
from inspector.analyses.sharing.result import SharedGroup
from tests.analyses.sharing.sharing_frames import group, tensors
from tests.conftest import silent

SIZES = {"wte.weight": 100, "h.0.mlp.weight": 30, "h.0.mlp.bias": 3, "h.1.mlp.weight": 30,
         "lm_head.weight": 100}  # fmt: skip


def draw(sizes: dict[str, int], groups: Sequence[SharedGroup] = ()) -> dict[str, tuple[str, int]]:
    frame = tensors(list(sizes), groups, sizes=sizes)
    return boxes(parameter_icicle(frame, groups, name="demo"))


def boxes(figure: go.Figure) -> dict[str, tuple[str, int]]:
    """Name -> parent and value."""
    box = figure.to_dict()["data"][0]
    found = dict(zip(box["ids"], zip(box["parents"], box["values"], strict=True), strict=True))
    assert len(found) == len(box["ids"])
    return found


def leaves(found: dict[str, tuple[str, int]]) -> dict[str, int]:
    """Boxes that hold no other; every other box holds exactly what its parts add up to."""
    inner = {parent for parent, _ in found.values()}
    for name in inner - {""}:
        assert found[name][1] == sum(value for parent, value in found.values() if parent == name)
    return {name: value for name, (_, value) in found.items() if name not in inner}


def test_a_shared_tensor_counts_once() -> None:
    names = ("lm_head.weight", "wte.weight")
    found = draw(SIZES, [group(*names, shape=(100,))])
    assert found == {
        "all parameters": ("", 163),
        "wte.weight": ("all parameters", 100),
        "h": ("all parameters", 63),
        "h.0.mlp": ("h", 33),  # modules with one child are joined with it
        "h.0.mlp.weight": ("h.0.mlp", 30),
        "h.0.mlp.bias": ("h.0.mlp", 3),
        "h.1.mlp.weight": ("h", 30),
    }


def test_copies_and_diverged_tensors_count_each() -> None:
    names = ("lm_head.weight", "wte.weight")
    found = draw(SIZES, [group(*names, shape=(100,), verdict="diverged")])
    assert found["all parameters"][1] == 263
    assert found["lm_head.weight"] == ("all parameters", 100)


def test_a_view_counts_with_the_whole_that_it_is_a_part_of() -> None:
    views = replace(group("a.part", "b.whole"), unique_parameters=100)
    found = draw({"a.part": 40, "b.whole": 100, "c.w": 5}, [views])
    assert leaves(found) == {"b.whole": 100, "c.w": 5}


def test_the_leaves_are_the_unique_parameters_of_every_family(open_model, architecture) -> None:
    result = sharing(open_model(architecture), progress=silent)
    found = boxes(parameter_icicle(result.tensors, result.groups, name="t"))
    assert sum(leaves(found).values()) == result.unique_parameters


def test_buffers_are_no_parameters() -> None:
    frame = tensors(["a.w", "b.w"], sizes={"a.w": 7, "b.w": 9})
    frame.loc[1, "kind"] = "buffer"
    assert leaves(boxes(parameter_icicle(frame, name="t"))) == {"a.w": 7}


@pytest.mark.parametrize("shape", ["wide", "deep", "experts"])
def test_thousands_of_tensors_stay_drawable_and_add_up(shape: str) -> None:
    names = {
        "wide": [f"h.n{n}.w" for n in range(20_000)],
        "deep": [f"h.n{n}.{part}.w" for n in range(2_000) for part in "abcdefghij"],
        "experts": [f"l.n{a}.experts.n{b}.{c}.w" for a in range(30) for b in range(200) for c in "ud"],
    }[shape]
    found = draw({name: 1 + place % 7 for place, name in enumerate(names)})
    assert len(found) <= MOST
    assert sum(leaves(found).values()) == sum(1 + place % 7 for place in range(len(names)))
    assert len(leaves(found)) > MOST / 3  # and the room is used


def test_many_names_are_drawn_by_pattern() -> None:
    dense = {f"model.layers.{n}.mlp.w": 50 for n in range(3)}
    experts = {f"model.layers.{n}.mlp.experts.{e}.{part}": 2 for n in range(3, 61) for e in range(256) for part in "ud"}
    norms = {f"model.layers.{n}.norm": 1 for n in range(61)}
    found = draw({"model.embed": 7, **dense, **experts, **norms})
    assert leaves(found) == {
        "model.embed": 7,
        "model.layers.[0–2].mlp.w": 3 * 50,
        "model.layers.[3–60].mlp.experts.[0–255].u": 58 * 256 * 2,
        "model.layers.[3–60].mlp.experts.[0–255].d": 58 * 256 * 2,
        "model.layers.[0–60].norm": 61,
    }
    assert found["model.layers.[3–60].mlp.experts.[0–255]"] == ("model.layers", 58 * 256 * 4)


def test_runs_of_a_long_list_keep_their_order() -> None:
    found = draw({f"h.{n}.w": 10 for n in range(100)})
    runs = [name for name, (parent, _) in found.items() if parent == "h"]
    assert runs[:2] == ["h.0 … 2", "h.3 … 5"]
    assert [name for name, (parent, _) in found.items() if parent == runs[0]] == [
        "h.0.w", "h.1.w", "h.2.w",
    ]  # fmt: skip
