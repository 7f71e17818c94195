"""The lens page with the real engine: pins, links, a second text, and explanations with numbers."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any

import pandas as pd
import pytest
import streamlit as st
from safetensors.numpy import load_file
from streamlit.testing.v1 import AppTest

from inspector.analyses.lens.result import LensRows
from inspector.demo import DEMOS
from inspector.serving.engine.protocol import Progress
from pages._ui import session
from tests.app.looking import button, said

Open = Callable[..., AppTest]
TEXT = "the city of [MASK]."
BERT = DEMOS["demo-bert"].folder


def charts(app: AppTest) -> list[dict[str, Any]]:
    return [json.loads(chart.proto.spec) for chart in app.get("plotly_chart")]


def chart(app: AppTest, title: str) -> dict[str, Any]:
    (found,) = (each for each in charts(app) if title in each["layout"]["title"]["text"])
    return found


def test_pins_are_followed_over_layers_and_rungs(open_app: Open) -> None:
    app = open_app("lens", text=TEXT, pins="france, england", layer="4", position="4")
    assert not app.error
    assert {line["name"] for line in chart(app, "Pinned tokens")["data"]} == {"france", "england"}
    assert {line["name"] for line in chart(app, "Token ranks after each step")["data"]} >= {"england", "france"}
    colors = [
        {line["name"]: (line["line"]["color"], line["marker"]["symbol"]) for line in chart(app, title)["data"]}
        for title in ("Pinned tokens", "Token ranks after each step")
    ]
    assert {name: colors[1][name] for name in colors[0]} == colors[0]
    ladder = next(each.value for each in app.dataframe if "rung" in each.value.columns)
    changes = ladder[(ladder["token"] == "france") & (ladder["rung"] == "dense")]["change"]
    (change,) = changes.tolist()
    sentence = next(line for line in said(app).splitlines() if line.startswith("- france:"))
    assert f"{abs(change):,} rank" in sentence
    assert "--pin=france,england" in app.code[0].value


def test_the_geometry_holds_the_files_norms(open_app: Open) -> None:
    app = open_app("lens", text=TEXT, pins="france", position="4", tab="Geometry")
    table = next(each.value for each in app.dataframe if "cosine" in each.value.columns
                 and "norm" in each.value.columns)  # fmt: skip
    matrix = load_file(BERT / "model.safetensors")["bert.embeddings.word_embeddings.weight"]
    for row in table.to_dict("records"):
        norm = float((matrix[row["token_id"]] ** 2).sum() ** 0.5)
        assert row["norm"] == pytest.approx(norm, rel=1e-5)
    assert chart(app, "Direction and length")


def test_a_pin_that_is_no_token_is_one_sentence_and_the_others_stay(open_app: Open) -> None:
    app = open_app("lens", text=TEXT, pins="nosuchtoken, france")
    (warning,) = app.warning
    assert "nosuchtoken" in warning.value
    assert chart(app, "Top token of demo-bert")
    assert len(chart(app, "Pinned tokens")["data"]) == 1


def test_the_best_tokens_of_a_cell_can_be_pinned(open_app: Open) -> None:
    app = open_app("lens", text=TEXT, position="4")
    button(app, "Pin the top 5 tokens of this cell").click().run()
    assert (app.text_input(key="pins").value or "").count("id ") == 5
    assert len(chart(app, "Pinned tokens")["data"]) == 5


def test_a_link_holds_rung_color_and_cell(open_app: Open) -> None:
    app = open_app("lens", text=TEXT, rung="dot", shade="entropy", layer="2", position="3")
    figure = chart(app, "Top token of demo-bert")
    assert "by dot, colored by entropy" in figure["layout"]["title"]["subtitle"]["text"]
    frames = figure["data"][1]
    (outlined,) = frames["selectedpoints"]
    assert frames["customdata"][outlined] == [2, 3]
    assert app.header[0].value == "Layer 2, position 3"


def test_a_second_text_has_the_same_scale_and_its_differences_marked(open_app: Open) -> None:
    app = open_app("lens", text="the city of france.", second="the city of england.",
                   shade="entropy")  # fmt: skip
    first, second = chart(app, "Top token of demo-bert"), chart(app, "For comparison")
    assert first["data"][0]["zmax"] == second["data"][0]["zmax"]
    assert "first differ at position 4: france and england" in said(app)
    written = [text for row in second["data"][0]["text"] for text in row]
    marked = sum(text.startswith("≠") for text in written)
    assert marked > 0
    assert f"{marked} of {len(written)} cells have a different top token" in said(app)


def test_a_second_checkpoint_says_what_cannot_be_compared(open_app: Open) -> None:
    app = open_app("lens", checkpoint="demo-gpt2", text="the city", other="demo-bert")
    assert chart(app, "For comparison: demo-bert")
    assert not app.error
    other = open_app("lens", text="the city", other="demo-gpt2", rung="dense")
    assert "has no step dense" in "\n".join(each.value for each in other.info)


def test_the_questions_are_answered_with_this_checkpoints_numbers(open_app: Open) -> None:
    text = said(open_app("lens", text=TEXT, tab="Why"))
    assert "The model's own top token has the highest cosine at " in text
    assert "so no part of the head is missing" in text


def test_the_cell_follows_the_mask_until_another_is_chosen(open_app: Open) -> None:
    app = open_app("lens", text="the [MASK] of france.")
    assert app.number_input(key="position").value == 2
    app.text_area(key="text").set_value("the capital and city of [MASK].").run()
    assert app.number_input(key="position").value == 6
    assert "position" not in app.query_params
    app.number_input(key="position").set_value(1).run()
    app.text_area(key="text").set_value("a city of [MASK].").run()
    assert app.number_input(key="position").value == 1


SAID = [("dot", 0, 0, "[CLS]"), ("cosine", 0, 0, "[CLS]"), ("dot", 0, 1, "river"), ("cosine", 0, 1, "the"),
        ("dot", 1, 0, "of"), ("cosine", 1, 0, "*a*"), ("dot", 1, 1, "city"), ("cosine", 1, 1, "capital")]  # fmt: skip


def rows_to(layer: int) -> LensRows:
    cells = pd.DataFrame(SAID, columns=["rung", "layer", "position", "token"])
    known = pd.DataFrame(cells[cells["layer"] <= layer])
    return LensRows(tokens=("[CLS]", "the"), layers=("embeddings", "1", "2"), rungs=("dot", "cosine"), cells=known)


class UnderWay:
    """A lens that shows something else whenever the page has looked; then the script ends, or the answer is there."""

    id, status, progress = "1", "running", Progress(0.5, "Block 2 of 2, 9 s left")

    def __init__(self, shows: Sequence[LensRows | None], real: Any = None) -> None:
        self.partial, self._shows, self._real = None, list(shows), real

    def result(self, timeout: float) -> Any:
        if self._shows:
            self.partial = self._shows.pop(0)
            raise TimeoutError
        if self._real is None:
            st.stop()
        return self._real.result()


@pytest.fixture
def under_way(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Have the lens show rows before its answer, or in its place."""

    def shows(*partials: LensRows | None, answered: bool = False) -> None:
        engine = session.engine()
        run = engine.run

        def begun(fingerprint: str, verb: str, **options: Any) -> Any:
            if verb != "lens":
                return run(fingerprint, verb, **options)
            return UnderWay(partials, run(fingerprint, verb, **options) if answered else None)

        monkeypatch.setattr(engine, "run", begun)

    return shows


def test_rows_that_are_known_are_shown_before_the_answer(open_app: Open, under_way: Callable[..., None]) -> None:
    under_way(None, None, rows_to(0), rows_to(0), rows_to(1))
    app = open_app("lens", text=TEXT)
    assert not app.exception
    assert "Cancel" in [each.label for each in app.button]
    assert "Layers 0–1 of 2 so far, by cosine." in said(app)
    (table,) = app.dataframe
    assert table.value.to_dict("list") == {
        "layer": ["text", "emb.", "1"], "0": ["[CLS]", "[CLS]", "*a*"], "1": ["the", "the", "capital"]
    }  # fmt: skip
    assert not charts(app)


def test_rows_of_the_chosen_step_are_shown(open_app: Open, under_way: Callable[..., None]) -> None:
    under_way(None, rows_to(0))
    app = open_app("lens", text=TEXT, rung="dot")
    assert "Layer 0 of 2 so far, by dot." in said(app)
    assert app.dataframe[0].value["1"].tolist() == ["the", "river"]


def test_nothing_is_shown_where_nothing_is_known(open_app: Open, under_way: Callable[..., None]) -> None:
    under_way(None, None)
    app = open_app("lens", text=TEXT)
    assert "so far" not in said(app)
    assert not app.dataframe


def test_the_answer_takes_the_place_of_the_rows(open_app: Open, under_way: Callable[..., None]) -> None:
    under_way(None, rows_to(0), rows_to(1), answered=True)
    app = open_app("lens", text=TEXT)
    assert not app.exception
    assert "so far" not in said(app)
    assert "Cancel" not in [each.label for each in app.button]
    assert chart(app, "Top token of demo-bert")
    assert not [each for each in app.dataframe if "text" in each.value.to_dict("list").get("layer", [])]
