"""Pack the points of a map for the browser, and read what it sends back."""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
from dataclasses import dataclass

import numpy as np
import pandas as pd

from inspector.plotting.frames import column, where
from inspector.plotting.kinds import KIND_STYLES
from inspector.text import visible

NUMBERS = ("norm", "trust", "stability", "score")  # columns that can be shown, where they are there


@dataclass(frozen=True, slots=True)
class PackedPoints:
    """A map as bytes: the length of a head, the head in JSON, then arrays.

    The head holds digest, dimensions, left_out, kinds as [name, count] in drawing order, and
    arrays as [name, type, first byte, bytes]. Types are little-endian "f4", "i4", "u1", and
    "text": UTF-8 with a line feed between two tokens.
    """

    data: bytes
    digest: str  # of all that is drawn: the browser unpacks points only when they change


def pack(points: pd.DataFrame) -> PackedPoints:
    """Pack the points of a map.

    Args:
        points: `Projection.points`: token_id, token, x, y[, z], norm, kind; where they are there,
            also trust and stability (0..1), score, and flagged (bool: looks under-trained).

    Returns:
        Points in drawing order (`results.KINDS`); those without a place, because a coordinate is
        NaN or infinite, are left out and counted in the head.
    """
    axes = [axis for axis in ("x", "y", "z") if axis in points]
    ordered = _in_drawing_order(points, axes)
    kinds = pd.Series(ordered["kind"])
    counts = {name: int((kinds == name).sum()) for name in KIND_STYLES}
    names = [name for name, count in counts.items() if count]
    parts = {
        "place": ("f4", ordered[axes].to_numpy(dtype="<f4").tobytes()),
        "token_id": ("i4", ordered["token_id"].to_numpy(dtype="<i4").tobytes()),
        "kind": ("u1", pd.Categorical(kinds, names).codes.astype("u1").tobytes()),
        **{name: ("f4", ordered[name].to_numpy(dtype="<f4").tobytes()) for name in NUMBERS if name in ordered},
        "tokens": ("text", "\n".join(map(visible, column(ordered, "token"))).encode()),
    }
    if "flagged" in ordered:
        parts["flagged"] = ("u1", ordered["flagged"].to_numpy(dtype="u1").tobytes())
    head = {
        "dimensions": len(axes),
        "left_out": len(points) - len(ordered),
        "kinds": [[name, counts[name]] for name in names],
    }
    return _join(head, parts)


def _join(head: dict[str, object], parts: dict[str, tuple[str, bytes]]) -> PackedPoints:
    digest = hashlib.blake2b(json.dumps(head).encode(), digest_size=16)
    for name, (_, part) in parts.items():
        digest.update(name.encode() + len(part).to_bytes(8, "little") + part)
    head["digest"] = digest.hexdigest()
    starts = np.cumsum([0, *(len(part) for _, part in parts.values())])

    def written(offset: int) -> bytes:
        arrays = [
            [name, kind, offset + int(start), len(part)]
            for (name, (kind, part)), start in zip(parts.items(), starts, strict=False)
        ]
        return json.dumps(head | {"arrays": arrays}).encode()

    length = len(written(1 << 31)) + 16  # spaces fill it up: JSON does not mind
    start = written(4 + length).ljust(length)
    data = [length.to_bytes(4, "little"), start, *(part for _, part in parts.values())]
    return PackedPoints(b"".join(data), digest.hexdigest())


def _in_drawing_order(points: pd.DataFrame, axes: list[str]) -> pd.DataFrame:
    """Drop points without a place and sort the others, so that padding comes last, on top."""
    placed = where(points, np.isfinite(points[axes].to_numpy(dtype=float)).all(axis=1))
    ranks = pd.Categorical(placed["kind"], list(KIND_STYLES)).codes
    return placed.iloc[np.argsort(ranks, kind="stable")]


def unpack_ids(text: object, points: pd.DataFrame) -> tuple[int, ...]:
    """Read the token ids that the browser sent back.

    Args:
        text: Base64 of little-endian int32; from a browser, so it may be anything.

    Returns:
        The ids that the points hold, ascending; none where the text is no such list.
    """
    if not isinstance(text, str) or len(text) > 8 * (len(points) + 1):
        return ()
    try:
        data = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        return ()
    if len(data) % 4:
        return ()
    sent = np.frombuffer(data, dtype="<i4")
    return tuple(np.intersect1d(sent, points["token_id"].to_numpy()).tolist())
