"""Stage an archive with several snapshots: each becomes an upload of its own."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from inspector.errors import CheckpointError
from inspector.progress import Progress
from inspector.settings import Settings
from inspector.store.files import remove_folder, workspace
from inspector.store.keeping.quota import make_room
from inspector.store.manifests.manifest import Manifest
from inspector.store.names import is_archive
from inspector.store.origins.sources import Source
from inspector.store.readers.archives import unpack_snapshots
from inspector.store.reference import CheckpointRef
from inspector.store.registry import incoming_folder, read_names
from inspector.store.staging import stage
from inspector.text import quoted


def open_snapshots(
    reference: CheckpointRef, settings: Settings, progress: Progress, restrict_paths: bool
) -> tuple[Manifest, CheckpointRef]:
    """Stage every snapshot of an archive that has arrived.

    Returns:
        The last one that could be staged, in the order of the folders' names. The others are in
        the store under names with the same beginning; its warnings say what was left out.

    Raises:
        CheckpointError: If there are not several snapshots, or none can be opened.
    """
    folder = incoming_folder(reference.value, settings=settings)
    try:
        with workspace(settings.home) as temporary:
            sources = _unpack(folder, temporary, settings, progress)
            manifest = _stage(sources, settings, progress)
    finally:
        if settings.given is None:  # else the server removes it
            remove_folder(folder)
    return manifest, CheckpointRef("upload", manifest.fingerprint)


def _unpack(folder: Path, temporary: Path, settings: Settings, progress: Progress) -> list[Source]:
    names = read_names(folder)
    if len(names) != 1 or not is_archive(next(iter(names))):
        raise CheckpointError(
            "Upload snapshots as one archive (.zip, .tar, .tar.gz) with a folder for each: pack "
            "the run's folder, and upload it again."
        )
    ((name, packed),) = names.items()
    sources = unpack_snapshots(packed, name, temporary, settings=settings, progress=progress)
    make_room(-packed.stat().st_size, settings)
    if len(sources) < 2:
        raise CheckpointError(
            f"{quoted(name)} does not contain several folders with weights: open a single "
            "checkpoint in the sidebar, under “Open your own”."
        )
    return sources


def _stage(sources: list[Source], settings: Settings, progress: Progress) -> Manifest:
    last, refused = None, list[str]()
    for number, source in enumerate(sources, start=1):
        label = source.name.rpartition("/")[2]
        progress((number - 1) / len(sources), f"Storing {number} of {len(sources)} snapshots")
        try:
            last = stage(source, settings=settings, progress=lambda *_: None)
        except CheckpointError as error:
            refused.append(f"{quoted(label)} was left out: {error}")
    if last is None:
        raise CheckpointError(refused[0])
    return replace(last, warnings=(*refused, *last.warnings))
