"""The portrait: no number left out or drawn twice, areas to scale, nothing over anything else."""

from __future__ import annotations

import math
import struct
from dataclasses import replace
from itertools import combinations
from typing import Any, cast

import plotly.graph_objects as go
import pytest

from inspector.analyses.overview import figures_layout, figures_narrow
from inspector.analyses.overview.compute import overview
from inspector.analyses.overview.figures import portrait_figure
from inspector.analyses.overview.figures_colors import COLORINGS, told_by
from inspector.analyses.overview.figures_parts import Magnitude, Portrait, measure, portray
from inspector.analyses.overview.request import OverviewRequest
from inspector.analyses.overview.result_tensors import StoredTensors
from inspector.analyses.overview.view import view
from inspector.analyses.overview.words import HEADS
from inspector.plotting.lettering import text_width
from inspector.plotting.theme import DARK, LIGHT
from tests.conftest import silent
from tests.families import MODELS

OTHERS = ["T5ForConditionalGeneration", "BartForConditionalGeneration", "MixtralForCausalLM"]


def layout(figure: go.Figure) -> Any:
    return figure.layout


def drawn(portrait: Portrait) -> int:
    """Parameters of all columns, each as often as it has layers."""
    return sum(column.times * column.parameters for column in portrait.columns if not column.is_tied)


@pytest.mark.parametrize("architecture", [*sorted(MODELS), *OTHERS])
def test_every_number_is_drawn_once(open_model, architecture):
    found = overview(open_model(architecture), progress=silent)
    assert drawn(portray(found)) == found.tensors["parameters"].sum()


@pytest.mark.parametrize("narrow", [False, True])
@pytest.mark.parametrize("architecture", [*sorted(MODELS)[::5], *OTHERS])
def test_areas_are_to_scale_and_nothing_lies_over_anything_else(open_model, architecture, narrow):
    portrait = portray(overview(open_model(architecture), progress=silent))
    figure = portrait_figure(portrait, title="x", narrow=narrow)
    boxes = [
        (x - width / 2, base, width, height, trace.name, portrait.parts[number])
        for trace in cast("Any", figure.data)
        for x, width, base, height, number in zip(
            trace.x, trace.width, trace.base, trace.y, trace.customdata, strict=True
        )
    ]
    strip = (2.01, 1e-6) if narrow else (1e-6, 2.01)  # one is drawn two pixels thick at least
    areas = [
        width * height / part.parameters
        for _, _, width, height, name, part in boxes
        if name not in {"norms, biases", "second name"} and min(width, height) > 2
    ]
    assert max(areas) == pytest.approx(min(areas), rel=1e-6)
    for first, second in combinations(boxes, 2):
        apart = (
            first[0] + first[2] <= second[0] + strip[0]
            or second[0] + second[2] <= first[0] + strip[0]
            or first[1] + first[3] <= second[1] + strip[1]
            or second[1] + second[3] <= first[1] + strip[1]
        )
        assert apart, (first, second)
    width = (figures_narrow if narrow else figures_layout).WIDTH
    assert max(left + own for left, _, own, *_ in boxes) <= width + strip[0]
    assert layout(figure).meta["least"] <= width


def test_a_tie_is_hatched_and_joined_to_its_matrix(open_model):
    portrait = portray(overview(open_model("T5ForConditionalGeneration"), progress=silent))
    tied = portrait.columns[-1]
    assert tied.is_tied
    assert {part.pattern for part in tied.parts} == {
        "decoder.embed_tokens.weight", "encoder.embed_tokens.weight", "lm_head.weight"
    }  # fmt: skip
    assert {(tie.source, tie.name) for tie in portrait.ties} == {("shared.weight", part.pattern) for part in tied.parts}
    for narrow in (False, True):
        assert len(loops(portrait_figure(portrait, title="x", narrow=narrow))) == 1


def loops(figure: go.Figure) -> list[Any]:
    return [shape for shape in layout(figure).shapes if shape.type == "path"]


@pytest.mark.parametrize("narrow", [False, True])
@pytest.mark.parametrize("architecture", ["T5ForConditionalGeneration", "BertForMaskedLM", "BertModel"])
def test_heads_that_the_files_lack_are_outlined_apart_from_all_else(open_model, architecture, narrow):
    found = overview(open_model(architecture), progress=silent)
    portrait = portray(found)
    assert {*portrait.absent} == {head for head, there in found.heads.items() if there == "absent"}
    figure = portrait_figure(portrait, title="x", narrow=narrow)
    outlines = [shape for shape in layout(figure).shapes if shape.type == "rect"]
    assert len(outlines) == len(portrait.absent)
    assert all(shape.line.dash for shape in outlines)
    names = {text.text.replace("<br>", " ") for text in layout(figure).annotations}
    assert {HEADS[head][0] for head in portrait.absent} <= names
    for trace in cast("Any", figure.data):
        for x, width, top, height in zip(trace.x, trace.width, trace.base, trace.y, strict=True):
            for shape in outlines:
                beside = x + width / 2 <= shape.x0 or shape.x1 <= x - width / 2
                assert beside or top + height <= shape.y0 or shape.y1 <= top


def test_colors_tell_what_was_measured_and_nothing_else(portray_as):
    portrait = portray_as({"wte.weight": (9, 4), "ln.weight": (4,), **{f"h.{n}.fc.weight": (4, 4) for n in range(8)}})
    rms = (0.5, math.nan, *[0.1] * 4, *[0.7] * 4)
    embeddings, layers, norm = portrait.parts
    size = measure(layers, rms)
    assert size.rms == pytest.approx(0.5)  # the root of (0.01 + 0.49) / 2
    assert replace(size, rms=0.5) == Magnitude(0.5, 0.1, 0.7, 8, 0)
    assert math.isnan(measure(norm, rms).rms)
    figure = portrait_figure(portrait, title="x", color="rms", rms=rms)
    assert {bar.name: list(bar.customdata) for bar in bars(figure)} == {"measured": [0, 1], "not measured": [2]}
    assert bars(figure)[0].marker.color == pytest.approx([math.log10(0.5)] * 2)
    assert measure(embeddings, ()).measured == 0
    unread = portrait_figure(portrait, title="x", color="rms")
    assert {bar.name: list(bar.customdata) for bar in bars(unread)} == {"not measured": [0, 1, 2]}


@pytest.mark.parametrize("color", COLORINGS)
def test_what_holds_nan_is_red_whatever_else_colors_tell(portray_as, color):
    portrait = portray_as({"wte.weight": (9, 4), **{f"h.{n}.fc.weight": (4, 4) for n in range(8)}})
    figure = portrait_figure(portrait, title="x", color=color, rms=(0.5, *[0.1] * 7, math.inf))
    (broken,) = [bar for bar in bars(figure) if bar.name == "NaN or infinity"]
    assert list(broken.customdata) == [1]
    assert broken.marker.color == LIGHT.accent
    assert "NaN or infinity in 1 tensor" in broken.hovertext[0]
    assert "RMS 0.1<br>" in broken.hovertext[0]


def made(tensors: dict[str, tuple[int, ...]]) -> StoredTensors:
    kinds = {shape: ("float32", shape, 4, "f") for shape in tensors.values()}
    places = [list(kinds).index(shape) for shape in tensors.values()]
    return StoredTensors(tuple(tensors), tuple(kinds.values()), struct.pack(f"<{len(places)}I", *places))


@pytest.fixture
def portray_as(open_model):
    """The portrait of tensors of any names."""
    found = overview(open_model("BertForMaskedLM"), progress=silent)
    return lambda tensors: portray(replace(found, stored=made(tensors), ties=()))


def test_identical_layers_and_experts_are_folded(portray_as):
    tensors = {"model.embed_tokens.weight": (50, 4), "lm_head.weight": (50, 4), "model.norm.weight": (4,)}
    for layer in range(20):
        tensors[f"model.layers.{layer}.self_attn.q_proj.weight"] = (4, 4)
        for expert in range(8 if layer > 2 else 0):
            tensors[f"model.layers.{layer}.mlp.experts.{expert}.up_proj.weight"] = (6, 4)
    portrait = portray_as(tensors)
    assert [(column.label, column.times) for column in portrait.columns] == [
        ("embeddings", 1), ("layers 0–2", 3), ("layers 3–19", 17), ("heads", 1)
    ]  # fmt: skip
    experts = portrait.columns[2].parts[-1]
    assert (experts.label, experts.kind, experts.count, experts.parameters) == ("up_proj", "feed-forward", 8, 8 * 24)
    assert experts.pattern == "model.layers.*.mlp.experts.*.up_proj.weight"
    texts = [each.text for each in layout(portrait_figure(portrait, title="x")).annotations]
    assert "layers 3–19 × 17" in texts


def test_few_layers_stand_apart(portray_as):
    portrait = portray_as({f"encoder.layer.{layer}.query.weight": (90, 90) for layer in range(3)})
    assert [(column.label, column.times, column.alike) for column in portrait.columns] == [
        (f"layer {number}", 1, True) for number in range(3)
    ]
    texts = [each.text for each in layout(portrait_figure(portrait, title="x")).annotations]
    assert {"layer 0", "layer 1", "layer 2"} <= {*texts}


def test_layers_of_many_kinds_end_in_one_column_that_says_so(portray_as):
    portrait = portray_as({f"h.{layer}.mlp.fc.weight": (4, 4 + layer) for layer in range(30)})
    *apart, last = portrait.columns
    assert [column.label for column in apart] == [f"layer {number}" for number in range(7)]
    assert (last.label, last.times, last.alike) == ("layers 7–29", 23, False)


@pytest.mark.parametrize("architecture", [*sorted(MODELS)[::4], *OTHERS])
@pytest.mark.parametrize(("theme", "narrow"), [(LIGHT, False), (DARK, False), (LIGHT, True)])
def test_no_text_touches_another(open_model, architecture, theme, narrow):
    portrait = portray(overview(open_model(architecture), progress=silent))
    figure = portrait_figure(portrait, title="x", theme=theme, narrow=narrow)
    lines = []
    for text in layout(figure).annotations:
        rows = text.text.split("<br>")
        for number, row in enumerate(rows):
            width, height = text_width(row, text.font.size), text.font.size * 1.3
            left = text.x if text.xanchor == "left" else text.x - width / 2
            top = text.y + (number - len(rows) / 2) * height
            lines.append((left, top, left + width, top + height, row))
    for first, second in combinations(lines, 2):
        apart = first[2] <= second[0] or second[2] <= first[0] or first[3] <= second[1] + 1 or second[3] <= first[1] + 1
        assert apart, (first, second)
    assert max(right for _, _, right, *_ in lines) <= layout(figure).xaxis.range[1]


def test_the_view_shows_it_and_a_file_without_tensors_has_none(open_model):
    found = overview(open_model("BertForMaskedLM"), progress=silent)
    picture = view(found, OverviewRequest(), name="x").picture
    assert picture
    assert picture.figure
    assert "Area: number of parameters" in layout(picture.figure.draw(LIGHT)).title.subtitle.text
    assert view(replace(found, stored=made({})), OverviewRequest(), name="x").picture is None


def test_colors_tell_kinds_dtypes_and_files(portray_as):
    portrait = portray_as({"embed_tokens.weight": (9, 4), **{f"h.{layer}.mlp.fc.weight": (4, 4) for layer in range(3)}})
    embeddings, *layers = portrait.columns
    held = [replace(embeddings, parts=(replace(embeddings.parts[0], dtype="float16", files=("a", "b")),))]
    for number, layer in enumerate(layers):
        held.append(replace(layer, parts=(replace(layer.parts[0], dtype="int8", files=(f"{number % 2}.bin",)),)))
    painted = replace(portrait, columns=tuple(held))

    def colored(color: str) -> dict[str, list[int]]:
        figure = portrait_figure(painted, title="x", color=color)
        assert len({(bar.marker.color, bar.marker.pattern.shape) for bar in bars(figure)}) == len(bars(figure))
        return {bar.name: list(bar.customdata) for bar in bars(figure)}

    assert colored("kind") == {"embeddings": [0], "feed-forward": [1, 2, 3]}
    assert colored("dtype") == {"int8": [1, 2, 3], "float16": [0]}
    assert colored("file") == {"several files": [0], "0.bin": [1, 3], "1.bin": [2]}
    assert told_by(painted, "file") == {"several files", "0.bin", "1.bin"}


def test_more_files_than_colors_share_one(portray_as):
    portrait = portray_as({f"h.{layer}.mlp.fc.weight": (4, 4 + layer) for layer in range(8)} | {"wte.weight": (9, 9)})
    columns = [
        replace(column, parts=(replace(column.parts[0], files=(f"{number}.bin",)),))
        for number, column in enumerate(portrait.columns)
    ]
    figure = portrait_figure(replace(portrait, columns=tuple(columns)), title="x", color="file")
    assert [bar.name for bar in bars(figure)][-1] == "3 others"
    assert sum(len(bar.x) for bar in bars(figure)) == len(portrait.parts)


def test_a_part_names_the_files_of_all_its_layers(open_model):
    found = overview(open_model("BertForMaskedLM"), progress=silent)
    names = [f"h.{layer}.mlp.fc.weight" for layer in range(8)]
    kinds = tuple(("float32", (4, 4), 64, f"{number}.bin") for number in range(2))
    places = struct.pack("<8I", *(layer // 4 for layer in range(8)))
    stored = StoredTensors(tuple(names), kinds, places)
    (column,) = portray(replace(found, stored=stored, ties=())).columns
    assert (column.times, column.parts[0].files) == (8, ("0.bin", "1.bin"))


def bars(figure: go.Figure) -> list[Any]:
    return [trace for trace in figure.data if isinstance(trace, go.Bar)]
