"""Maps by umap-learn of so many rows that it searches neighbors by descent."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
import torch

from inspector.analyses.vocabulary_map.compute import project
from tests.conftest import silent


@pytest.mark.compiling
def test_its_approximate_search_is_measured(open_matrix):
    """From 4,096 rows on umap-learn searches neighbors by descent."""
    matrix = torch.randn((4_100, 24), generator=torch.Generator().manual_seed(2))
    result = project(open_matrix(matrix), progress=silent, method="umap", implementation="umap-learn", neighbors=4)
    rows = torch.nn.functional.normalize(matrix.double(), dim=1)
    cosines = (rows @ rows.T).fill_diagonal_(-2)
    truth = cosines.topk(3).indices.numpy()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import umap

        model = umap.UMAP(metric="cosine", n_neighbors=4, random_state=0, n_epochs=1)
        model.fit(matrix.numpy())
    found = np.asarray(getattr(model, "_knn_indices"))  # noqa: B009
    share = np.mean([len({*truth[row]} & {*found[row]}) / 3 for row in range(len(matrix))])
    assert 0 < share < 1
    assert result.neighbour_recall == pytest.approx(share, abs=1e-4)
    assert f"{100 * share:.0f} % of the true ones" in result.warnings[0]
