"""Every figure that can be saved says in itself which checkpoint it is of, at print size."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest
from streamlit.testing.v1 import AppTest

from pages._ui import figure_files
from tests.app.test_pages import SLUGS

Open = Callable[..., AppTest]
LEAST_POINTS = 7  # that letters have on paper to be read
PAPER_POINTS = 17 / 2.54 * 72  # width of a page's text, of which a figure takes all
FIGURES = {
    ("classes", "demo-bert"), ("embeddings", "demo-bert"), ("heads", "demo-gpt2"),
    ("lens", "demo-bert"), ("masked_lm", "demo-bert"), ("padding", "demo-bert"),
    ("sharing", "demo-bert"), ("training", "demo-gpt2"),
}  # fmt: skip


@pytest.mark.parametrize(("slug", "name"), sorted(FIGURES))
def test_saved_figures_hold_the_checkpoints_name_and_a_legible_title(open_app: Open, slug: str, name: str) -> None:
    assert slug in SLUGS
    app = open_app(slug, checkpoint=name)
    assert not app.exception
    charts = [json.loads(chart.proto.spec) for chart in app.get("plotly_chart")]
    assert charts
    for chart in charts:
        title = chart["layout"]["title"]
        texts = title["text"] + title.get("subtitle", {}).get("text", "")
        assert name in texts, texts
        points = title["font"]["size"] * PAPER_POINTS / figure_files.WIDTH
        assert points >= LEAST_POINTS


def test_a_png_is_sharp_on_paper() -> None:
    dots = figure_files.WIDTH * figure_files.SCALE / (PAPER_POINTS / 72)
    assert dots >= 300
