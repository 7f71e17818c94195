"""What this server knows of uploads that the shared store holds as well."""

from __future__ import annotations

import hashlib
import json
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from inspector.settings import Settings
from inspector.store.files import write_atomically

MARK = ".shared"  # in an upload's entry: it can be fetched again
TOLD = ".fetched"  # in an arriving upload
_VEIL = "digest:"


@dataclass(frozen=True, slots=True)
class Told:
    """What the worker that stages a fetched upload is told."""

    fingerprint: str  # that must come out
    name: str
    warnings: tuple[str, ...]


def write_told(folder: Path, told: Told) -> None:
    """Tell it, beside the files that have arrived; a browser's names cannot be that file's."""
    write_atomically(folder / TOLD, json.dumps(asdict(told)))


def read_told(folder: Path) -> Told | None:
    """Read it; None: the upload came from a browser."""
    try:
        told = json.loads((folder / TOLD).read_text("utf-8"))
    except FileNotFoundError:
        return None
    return Told(told["fingerprint"], told["name"], tuple(told["warnings"]))


def veiled(settings: Settings) -> Settings:
    """The settings as workers get them: they know the shared store's mark and not its place."""
    return replace(settings, store=_VEIL + _digest(settings)) if settings.store else settings


def mark(entry: Path, settings: Settings) -> None:
    """Say of an upload's entry that the shared store holds it; a store without room need not."""
    with suppress(OSError):
        (entry / MARK).write_text(_digest(settings), encoding="utf-8")


def is_marked(entry: Path, settings: Settings) -> bool:
    """Whether the shared store of these settings holds an upload, too."""
    with suppress(OSError, ValueError):
        return bool(settings.store) and (entry / MARK).read_text("utf-8") == _digest(settings)
    return False


def _digest(settings: Settings) -> str:
    store = settings.store or ""
    if store.startswith(_VEIL):
        return store.removeprefix(_VEIL)
    return hashlib.sha256(store.encode()).hexdigest()
