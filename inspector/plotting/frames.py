"""Typed access to frames: pandas' own indexing may return a frame or a series."""

from __future__ import annotations

from typing import Any

import pandas as pd


def where(frame: pd.DataFrame, mask: Any) -> pd.DataFrame:
    """Select the rows of a frame that a boolean mask names."""
    return pd.DataFrame(frame[mask])


def column(frame: pd.DataFrame, name: str) -> list[Any]:
    """Read one column as plain Python values."""
    return pd.Series(frame[name]).tolist()


def columns(frame: pd.DataFrame, *names: str) -> list[tuple[Any, ...]]:
    """Read several columns as one tuple of plain Python values a row."""
    return list(zip(*(column(frame, name) for name in names), strict=True))
