"""What a page has said, taken from its messages, and whether two pages say the same."""

from __future__ import annotations

import base64
import io
import json
import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any

import numpy as np
import pandas as pd
from streamlit.proto.Element_pb2 import Element

TEXTS = {
    "markdown": ("body",),
    "alert": ("title", "body"),
    "heading": ("body",),
    "code": ("code_text",),
    "metric": ("label", "body", "delta"),
    "text": ("body",),
    "exception": ("type", "message"),
}
# Sums of other lengths are added in another order: what is left of that in float32.
RELATIVE, ABSOLUTE = 2e-3, 2e-4
NUMBER = re.compile(r"[-−]?\d[\d,]*\.?\d*(?:e[-+]?\d+)?")
# What differs from run to run: times, and the memory of a worker that others use as well.
PASSING = re.compile(r"[\d.,]+ (?:ms|milliseconds|s|seconds|GB|MB)\b|in one pass with \d+ others?")


@dataclass(frozen=True, slots=True)
class PageElement:
    """One thing on a page."""

    kind: str
    value: Any  # text, a data frame, or a figure's JSON

    def __str__(self) -> str:
        """Shortened, for a table of differences."""
        return f"{self.kind}: {str(self.value)[:160]}"


def read(element: Element) -> PageElement | None:
    """What an element says; None where it says nothing of a checkpoint."""
    kind = element.WhichOneof("type") or ""
    holder = getattr(element, kind) if kind else None
    if kind in TEXTS:
        return PageElement(kind, "\n".join(str(getattr(holder, name)) for name in TEXTS[kind]))
    if kind in {"dataframe", "table"}:
        data = holder.arrow_data.data  # type: ignore[union-attr]
        return PageElement(kind, read_arrow(data)) if data else None
    if kind == "plotly_chart":
        return PageElement(kind, json.loads(holder.spec))  # type: ignore[union-attr]
    return None


def read_arrow(data: bytes) -> pd.DataFrame:
    """A data frame as Streamlit sends it."""
    import pyarrow as pa

    with pa.ipc.open_stream(io.BytesIO(data)) as reader:
        return reader.read_all().to_pandas()


def differences(mine: list[PageElement], truth: list[PageElement]) -> Iterator[str]:
    """Where two pages differ."""
    for here, there in zip_longest(mine, truth):
        if here is None or there is None or here.kind != there.kind:
            yield f"{here} | {there}"
            return
        if not same(here.value, there.value):
            yield f"{here} | {there}"


def same(one: Any, other: Any) -> bool:
    """Whether two values are the same but for rounding and passing times."""
    one, other = _decoded(one), _decoded(other)
    for kind, compare in COMPARE.items():
        if isinstance(one, kind) and isinstance(other, kind):
            return compare(one, other)
    return _close(one, other)


def _same_dicts(one: dict, other: dict) -> bool:
    return one.keys() == other.keys() and all(same(one[key], other[key]) for key in one)


def _same_lists(one: list, other: list) -> bool:
    return len(one) == len(other) and all(map(same, one, other))


def _same_frames(one: pd.DataFrame, other: pd.DataFrame) -> bool:
    if list(one.columns) != list(other.columns) or len(one) != len(other):
        return False
    return all(same(one[name].tolist(), other[name].tolist()) for name in one.columns)


def _same_arrays(one: np.ndarray, other: np.ndarray) -> bool:
    if one.shape != other.shape or one.dtype != other.dtype:
        return False
    if one.dtype.kind != "f":
        return bool(np.array_equal(one, other))
    return bool(np.allclose(one, other, rtol=RELATIVE, atol=ABSOLUTE, equal_nan=True))


def _same_texts(one: str, other: str) -> bool:
    if one == other:
        return True
    one, other = PASSING.sub("…", one), PASSING.sub("…", other)
    if NUMBER.sub("#", one) != NUMBER.sub("#", other):
        return False
    return all(
        _close(_number(here), _number(there))
        for here, there in zip(NUMBER.findall(one), NUMBER.findall(other), strict=True)
    )


def _close(one: Any, other: Any) -> bool:
    try:
        if math.isnan(one) and math.isnan(other):
            return True
        return math.isclose(one, other, rel_tol=10 * RELATIVE, abs_tol=ABSOLUTE)
    except TypeError:
        return one == other


def _number(text: str) -> float:
    return float(text.replace(",", "").replace("−", "-"))


def _decoded(value: Any) -> Any:
    """Plotly's typed arrays as numpy's."""
    if isinstance(value, dict) and {"dtype", "bdata"} <= value.keys():
        found = np.frombuffer(base64.b64decode(value["bdata"]), dtype=value["dtype"])
        return found.reshape([int(n) for n in value["shape"].split(",")]) if "shape" in value else found
    return value


COMPARE = {pd.DataFrame: _same_frames, np.ndarray: _same_arrays, dict: _same_dicts, list: _same_lists, str: _same_texts}
