"""Learning rates at updates that are chosen."""

from __future__ import annotations

import pandas as pd

from inspector.analyses.training.result import TrainingPlan
from inspector.text import plural
from inspector.view.blocks import Table
from pages._training import inputs
from pages._ui import parts, table_files


def draw(plan: TrainingPlan, table: Table, *, name: str) -> None:
    """List the rates at the chosen updates; the files hold all of them."""
    rows = table.frame.iloc[list(inputs.choose_rows(plan))]
    parts.table(readable(rows), alt="Learning rates at the chosen updates")
    table_files.offer(table.frame, name=f"{name}-learning-rates", label=f"All {plural(plan.steps, 'update')}")


def readable(rates: pd.DataFrame) -> pd.DataFrame:
    """Learning rates as text of six digits: tables would round small ones to nothing."""
    names = [name for name in rates.columns if name != "update"]
    shown = {name.replace("_", " "): rates[name].map("{:.6g}".format) for name in names}
    return pd.DataFrame({"update": rates["update"], **shown})
