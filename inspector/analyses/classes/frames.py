"""A model's classes as a table."""

from __future__ import annotations

import pandas as pd

from inspector.analyses.classes.result import ModelClasses


def used_classes(classes: ModelClasses) -> pd.DataFrame:
    """One row a class of the modules, most parameters first."""
    return pd.DataFrame(
        {
            "class": each.name,
            "modules": each.modules,
            "own_parameters": each.own_parameters,
            "defined_in": each.module,
            "what_it_is": each.summary,
        }
        for each in classes.used_classes
    )
