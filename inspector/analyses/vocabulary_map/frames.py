"""Two implementations of UMAP, side by side."""

from __future__ import annotations

import pandas as pd

from inspector.analyses.vocabulary_map.result import Projection


def side_by_side(*maps: Projection) -> pd.DataFrame:
    """Compare maps that were made from the same rows.

    Returns:
        A row for each map: implementation, trust (mean share of the true neighbors kept), judged
        (rows), stability (NaN: not asked for), found (share of the true neighbors that the map was
        made from), seconds.
    """
    return pd.DataFrame(
        {
            "implementation": [each.implementation for each in maps],
            "trust": [each.kept_neighbours for each in maps],
            "judged": [each.judged_rows for each in maps],
            "stability": pd.Series([each.stability for each in maps], dtype=float),
            "found": [each.neighbour_recall for each in maps],
            "seconds": [each.seconds for each in maps],
        }
    )
