"""Where a model would run."""

from __future__ import annotations

import pandas as pd

from inspector.analyses.placement import words
from inspector.analyses.placement.request import PlacementRequest
from inspector.results.placement import Placement
from inspector.view.blocks import Table
from inspector.view.view import Headline, View


def view(result: Placement, request: PlacementRequest, *, name: str) -> View:
    """The plan, the places that it fills, and the other ways."""
    places = pd.DataFrame(
        {"device": each.device, "weights_nbytes": each.nbytes, "limit_nbytes": each.allowed_nbytes}
        for each in result.places
    )
    ways = pd.DataFrame(
        {
            "way": words.how(way),
            "precision": way.dtype or "–",
            "fits": way.fits,
            "memory_nbytes": way.memory_nbytes,
            "read_each_pass_nbytes": way.disk_nbytes,
            "time": None if way.seconds is None else words.duration(way.seconds),
            "note": way.note or None,
        }
        for way in result.ways
    )
    return View(
        Headline(result.reason),
        beside=(
            Table("places", "Where the weights go", places.astype({"limit_nbytes": "Int64"})),
            Table("ways", "Ways to run it", ways),
        ),
    )
