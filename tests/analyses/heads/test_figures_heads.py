"""The heat map of answer spans: each cell where its span is, and the best one outlined."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from inspector.analyses.heads.figures import span_heatmap
from inspector.plotting.theme import DARK, LIGHT, Theme

NAN = float("nan")
GRID = np.array([[0.1, 0.3, NAN], [NAN, 0.05, 0.2], [NAN, NAN, 0.02]])


@pytest.mark.parametrize("theme", [LIGHT, DARK])
def test_cells_and_best_span(theme: Theme) -> None:
    figure: Any = span_heatmap(GRID, positions=(4, 5, 6), tokens=("a", "<b>", "a"), best=(4, 5), title="t", theme=theme)
    spans, best = figure.data
    assert np.array_equal(np.asarray(spans.z, dtype=float), GRID, equal_nan=True)
    assert spans.customdata[0][1] == "a 4 to &lt;b&gt; 5"
    # Start runs downward and end to the right.
    assert (best.y[0], best.x[0]) == (0, 1)
    assert figure.layout.yaxis.range[0] > figure.layout.yaxis.range[1]
    assert list(figure.layout.xaxis.ticktext) == ["a 4", "&lt;b&gt; 5", "a 6"]


def test_a_long_text_has_few_labels_and_no_text_for_each_cell() -> None:
    grid = np.full((150, 150), 0.5)
    figure: Any = span_heatmap(grid, positions=range(150), tokens=["w"] * 150, best=(0, 149), title="t")
    assert figure.data[0].customdata is None
    assert len(figure.layout.xaxis.ticktext) <= 60
    assert figure.layout.height < 1000
