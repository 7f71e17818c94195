"""What this server knows of uploads that the shared store holds as well."""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from inspector.settings import Settings
from inspector.store.files import create_file, write_atomically
from inspector.store.keeping.shared import MARK, TO_SHARE, VEIL, store_mark
from inspector.store.manifests.documents import as_digest, as_list, as_text, fields_of, is_plain_folder, read_document

TOLD = ".fetched"  # in an arriving upload
MAX_WARNINGS = 100


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
        told = fields_of(read_document(folder / TOLD), ("fingerprint", "name", "warnings"))
    except FileNotFoundError:
        return None
    warnings = as_list(told["warnings"], as_text, most=MAX_WARNINGS)
    return Told(as_digest(told["fingerprint"]), as_text(told["name"]), warnings)


def veiled(settings: Settings) -> Settings:
    """The settings as workers get them: they know the shared store's mark and not its place."""
    return replace(settings, store=VEIL + store_mark(settings)) if settings.store else settings


def mark(entry: Path, settings: Settings) -> None:
    """Say of an upload's entry that the shared store holds it; a store without room need not."""
    _write(MARK, entry, settings)
    with suppress(OSError):
        if is_plain_folder(entry):
            (entry / TO_SHARE).unlink(missing_ok=True)


def mark_to_share(entry: Path, settings: Settings) -> None:
    """Say of an upload's entry that it is to be copied to this shared store, and to no other one."""
    _write(TO_SHARE, entry, settings)


def _write(name: str, entry: Path, settings: Settings) -> None:
    with suppress(OSError):
        if is_plain_folder(entry):
            with create_file(entry / name) as file:
                file.write(store_mark(settings).encode())
