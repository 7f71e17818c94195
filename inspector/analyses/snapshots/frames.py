"""Numbers over training steps: norms, drift of tokens, neighbors that were lost, ties, checks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
import pandas as pd

from inspector.analyses.checks.result import Checks
from inspector.analyses.embeddings.result import RowNorms
from inspector.analyses.sharing.result import Sharing
from inspector.analyses.snapshots.result import Vitals
from inspector.errors import RequestError
from inspector.store.origins.snapshots import Snapshot

T = TypeVar("T")
DRAWN = "rows drawn at random"
NORM_LINES = {
    "padding": {"pad_norm": "padding row", "median": "median row"},
    "norms": {"max": "longest row", "median": "median row", "min": "shortest row"},
}
QUANTITIES = (*NORM_LINES, "drift", "neighbours")
PLACE = ["place", "snapshot", "step"]  # columns that every frame begins with


@dataclass(frozen=True, slots=True)
class Series:
    """What the embedding matrices of a run's snapshots say, one frame a quantity.

    Every frame has a row for each snapshot (and token), in the order of the run: place (from 0),
    snapshot (its name), step (missing where the name tells none).
    """

    norms: pd.DataFrame  # min, median, max, pad_norm (NaN: there is no padding row)
    drift: pd.DataFrame  # token, norm, cosine to the reference's row of the same token
    neighbours: pd.DataFrame  # of, rows, kept: share of the reference's neighbors still there
    reference: str  # the snapshot that drift and neighbors are measured against
    k: int  # neighbors of each row
    warnings: tuple[str, ...]

    def lines(self, quantity: str) -> pd.DataFrame:
        """One quantity of `QUANTITIES` as lines to draw: place, snapshot, step, line, value."""
        if quantity in ("drift", "neighbours"):
            names = {"drift": ("token", "cosine"), "neighbours": ("of", "kept")}[quantity]
            frame = getattr(self, quantity)[[*PLACE, *names]]
            return frame.set_axis([*PLACE, "line", "value"], axis=1)
        columns = NORM_LINES[quantity]
        frame = self.norms.melt(PLACE, list(columns), "line", "value").replace({"line": columns})
        return frame.sort_values("place", kind="stable", ignore_index=True)

    def holds(self, quantity: str) -> bool:
        """Whether there is anything to draw of a quantity."""
        lines = self.lines(quantity)
        if quantity == "padding":  # the median row alone says nothing about it
            lines = lines[lines["line"] == NORM_LINES["padding"]["pad_norm"]]
        return bool(np.isfinite(np.array(lines["value"].tolist(), dtype=float)).any())

    def table(self, quantity: str) -> pd.DataFrame:
        """The same as a table to read, place left out."""
        frame = self.norms if quantity in NORM_LINES else getattr(self, quantity)
        return frame.drop(columns="place")


@dataclass(frozen=True, slots=True)
class OverSteps:
    """A quantity over the steps of a run."""

    quantity: str  # of `QUANTITIES`, which the series holds; or "ties", "checks"
    frame: pd.DataFrame  # its table; of verdicts as `tie_frame` or `check_frame` give it, with at least one row
    series: Series | None  # None: the frame holds verdicts
    counted: str  # how many snapshots answered
    evenly: bool = False  # drawn at equal distances, whatever the steps


def follow(answers: Sequence[tuple[Snapshot, Vitals]], *, against: str = "first") -> Series:
    """Put the answers of a run's snapshots side by side.

    Args:
        answers: In the order of the run, at least one; all were asked for the same tokens,
            neighbors and rows.
        against: Which of them drift and neighbors are measured against, "first" or "last".

    Returns:
        Cosines of -1..1 and shares of 0..1. They are NaN where a row has no direction, and where
        the rows of a snapshot do not stand for the same tokens: then a warning says so.

    Raises:
        RequestError: If there is no answer.
    """
    if not answers:
        raise RequestError("No snapshot has a result, so there is nothing to draw.")
    snapshot, reference = answers[0 if against == "first" else -1]
    alike = [_comparable(reference, vitals) for _, vitals in answers]
    others = [each.name for (each, _), same in zip(answers, alike, strict=True) if not same]
    warnings = [f"{vitals.name}: {warning}" for _, vitals in answers for warning in vitals.warnings]
    if others:
        warnings.append(
            f"Drift and neighbors of {', '.join(others[:3])}{' and others' if len(others) > 3 else ''} are left out: "
            f"the vocabulary or the width differs from that of {snapshot.name}."
        )
    return Series(
        norms=_norms(answers),
        drift=_drift(answers, reference, alike),
        neighbours=_neighbors(answers, reference, alike),
        reference=snapshot.name,
        k=reference.k,
        warnings=tuple(warnings),
    )


def tie_frame(answers: Sequence[tuple[Snapshot, Sharing]]) -> pd.DataFrame:
    """What became of each group of names: group, verdict, reason; beside place, snapshot, step."""
    rows = [
        (*where, " = ".join(group.names), group.verdict, group.reason)
        for where, sharing in _placed(answers)
        for group in sharing.groups
    ]
    return _frame(rows, "group", "verdict", "reason")


def check_frame(answers: Sequence[tuple[Snapshot, Checks]]) -> pd.DataFrame:
    """What each check said: check, status, severity, detail; beside place, snapshot, step."""
    rows = [
        (*where, check.name, check.status if check.checked else "not checked", check.severity, check.detail)
        for where, checks in _placed(answers)
        for check in checks.checks
    ]
    return _frame(rows, "check", "status", "severity", "detail")


def _norms(answers: Sequence[tuple[Snapshot, Vitals]]) -> pd.DataFrame:
    rows = [
        (
            *where,
            vitals.norms.min,
            vitals.norms.median,
            vitals.norms.max,
            np.nan if vitals.pad_norm is None else vitals.pad_norm,
        )
        for where, vitals in _placed(answers)
    ]
    return _frame(rows, "min", "median", "max", "pad_norm")


def _drift(answers: Sequence[tuple[Snapshot, Vitals]], reference: Vitals, alike: Sequence[bool]) -> pd.DataFrame:
    rows = []
    for (where, vitals), same in zip(_placed(answers), alike, strict=True):
        cosines = _cosines(vitals.vectors, reference.vectors).tolist() if same else [np.nan] * len(vitals.tokens)
        tokens, norms = (vitals.tokens[name].tolist() for name in ("token", "norm"))
        rows += [(*where, *facts) for facts in zip(tokens, norms, cosines, strict=True)]
    return _frame(rows, "token", "norm", "cosine")


def _neighbors(answers: Sequence[tuple[Snapshot, Vitals]], reference: Vitals, alike: Sequence[bool]) -> pd.DataFrame:
    tokens = reference.tokens["token"].tolist()
    rows = []
    for (where, vitals), same in zip(_placed(answers), alike, strict=True):
        kept = np.full(len(reference.probes), np.nan)
        if same:
            kept = kept_shares(reference.neighbours, vitals.neighbours)
        rows += [(*where, token, 1, kept[place]) for place, token in enumerate(tokens)]
        drawn = kept[len(tokens) :]
        drawn = drawn[np.isfinite(drawn)]
        if len(reference.probes) > len(tokens):
            mean = drawn.mean() if len(drawn) else np.nan
            rows.append((*where, DRAWN, len(drawn), mean))
    return _frame(rows, "of", "rows", "kept")


def kept_shares(before: np.ndarray, after: np.ndarray) -> np.ndarray:
    """Which share of each row's neighbors is still among its neighbors.

    Args:
        before: Row numbers, (rows, k); -1 where there is none.
        after: The same later.

    Returns:
        Shares of 0..1, (rows,); NaN where there were no neighbors, or are none now.
    """
    there = before >= 0
    still = (before[:, :, None] == after[:, None, :]).any(axis=2) & there
    counts = there.sum(axis=1)
    known = (counts > 0) & (after >= 0).any(axis=1)
    return np.where(known, still.sum(axis=1) / np.maximum(counts, 1), np.nan)


def _cosines(rows: np.ndarray, others: np.ndarray) -> np.ndarray:
    """Cosine of each row with the other one of its number; NaN where one has no direction."""
    first, second = rows.astype(np.float64), others.astype(np.float64)
    with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
        lengths = np.linalg.norm(first, axis=1) * np.linalg.norm(second, axis=1)
        return np.clip((first * second).sum(axis=1) / lengths, -1, 1)


def _comparable(reference: Vitals, other: Vitals) -> bool:
    """Whether row 37 of the one is about the same token as row 37 of the other."""
    facts = ("vocabulary", "rows", "columns")
    return all(getattr(reference, fact) == getattr(other, fact) for fact in facts)


def _placed(answers: Sequence[tuple[Snapshot, T]]) -> list[tuple[tuple[Any, ...], T]]:
    return [((place, snapshot.name, snapshot.step), answer) for place, (snapshot, answer) in enumerate(answers)]


def _frame(rows: Sequence[tuple[Any, ...]], *columns: str) -> pd.DataFrame:
    frame = pd.DataFrame(rows, columns=[*PLACE, *columns])
    return frame.astype({"step": "Int64"})


def read_vitals(plain: dict[str, Any]) -> Vitals:
    """Vitals out of what `to_json` made of them; what was no number is NaN again."""
    columns = ["token", "token_id", "norm"]
    changed = {
        "norms": RowNorms(**{name: _number(value) for name, value in plain["norms"].items()}),
        "pad_norm": plain["pad_norm"] if plain["pad_id"] is None else _number(plain["pad_norm"]),
        "tokens": pd.DataFrame(plain["tokens"], columns=columns).astype({"norm": float}),
        "vectors": _matrix(plain["vectors"], plain["columns"], np.float32),
        "probes": np.array(plain["probes"], dtype=np.int64),
        "neighbours": _matrix(plain["neighbours"], plain["k"], np.int64),
        "warnings": tuple(plain["warnings"]),
    }
    return Vitals(**(plain | changed))


def _matrix(rows: list[list[Any]], columns: int, dtype: Any) -> np.ndarray:
    return np.array(rows, dtype=dtype).reshape(len(rows), columns)


def _number(value: float | None) -> float:
    return float("nan") if value is None else value
