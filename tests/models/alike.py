"""Compare two results part by part, whatever they are made of."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np
import pandas as pd
import pytest


def same(one: Any, other: Any, *, leaving: Collection[str], exact: bool = True) -> None:
    """Two results are equal, but for the fields that differ in every run.

    Args:
        one: A result, or a part of one.
        other: Likewise.
        leaving: Names of fields that are not compared.
        exact: True: to the last digit.
    """
    assert type(one) is type(other)
    if isinstance(one, pd.DataFrame):
        pd.testing.assert_frame_equal(one, other, check_exact=exact, rtol=1e-4, atol=1e-5)
    elif isinstance(one, np.ndarray):
        near = 0.0 if exact else 1e-4
        np.testing.assert_allclose(one, other, rtol=near, atol=near / 10)
    elif isinstance(one, float) and not exact:
        assert one == pytest.approx(other, rel=1e-4, abs=1e-5, nan_ok=True)
    elif (mine := _parts(one, leaving)) is None:
        assert one == other or (one != one and other != other)  # noqa: PLR0124 - NaN
    else:
        theirs = _parts(other, leaving) or {}
        assert mine.keys() == theirs.keys()
        for name in mine:
            same(mine[name], theirs[name], leaving=leaving, exact=exact)


def _parts(value: Any, leaving: Collection[str]) -> dict[Any, Any] | None:
    """What a value is made of, by name; None: it is one thing."""
    if is_dataclass(value):
        names = [field.name for field in fields(value) if field.name not in leaving]
        return {name: getattr(value, name) for name in names}
    if isinstance(value, tuple | list):
        return dict(enumerate(value))
    return value if isinstance(value, dict) else None
