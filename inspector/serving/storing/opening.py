"""Open what was sent to a server, and everything else as the library does."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from inspector.errors import CheckpointError
from inspector.progress import Progress
from inspector.serving.storing.snapshot_uploads import open_snapshots
from inspector.settings import Settings
from inspector.store import opening
from inspector.store.files import remove_folder, workspace
from inspector.store.keeping.marks import read_told
from inspector.store.keeping.quota import make_room
from inspector.store.manifests.manifest import Manifest
from inspector.store.names import INNER, is_archive, weight_format
from inspector.store.opening import translated
from inspector.store.origins.places import outline_source
from inspector.store.origins.sources import Source, choose_members
from inspector.store.readers.archives import unpack
from inspector.store.reference import OUTLINE, CheckpointRef
from inspector.store.registry import incoming_folder, read_names
from inspector.store.staging import stage
from inspector.text import quoted


def open_checkpoint(
    reference: CheckpointRef,
    *,
    settings: Settings,
    progress: Progress,
    restrict_paths: bool,
    fetched: Path | None = None,
) -> tuple[Manifest, CheckpointRef]:
    """Stage a checkpoint of any kind; see `inspector.store.opening.open_checkpoint`.

    Args:
        fetched: The folder that holds a model of the hub, or what there is of an upload that arrives; None: it is
            downloaded, or in the store.

    Returns:
        What the checkpoint holds, and the reference that opens it again: an upload that has just
        arrived is now one of the store's.

    Raises:
        CheckpointError: If it cannot be opened; the text says why, and what to do.
    """
    with translated(settings):
        if reference.kind == OUTLINE:
            source = outline_source(reference, settings, fetched)
            return stage(source, settings=settings, progress=progress), reference
        if reference.kind in _OPENERS:
            return _OPENERS[reference.kind](reference, settings, progress, restrict_paths)
    return opening.open_checkpoint(
        reference, settings=settings, progress=progress, restrict_paths=restrict_paths, fetched=fetched
    )


def _open_incoming(
    reference: CheckpointRef, settings: Settings, progress: Progress, restrict_paths: bool
) -> tuple[Manifest, CheckpointRef]:
    folder = incoming_folder(reference.value, settings=settings)
    try:
        with workspace(settings.home) as temporary:
            source = _upload_source(folder, temporary, settings, progress)
            source = _fetched(source, folder)
            manifest = stage(source, settings=settings, progress=progress)
    finally:
        if settings.given is None:  # else the server removes it
            remove_folder(folder)
    return manifest, CheckpointRef("upload", manifest.fingerprint)


def _fetched(source: Source, folder: Path) -> Source:
    """An upload that came from the shared store keeps its name, and must be what was asked for."""
    told = read_told(folder)
    if told is None:
        return source
    return replace(source, name=told.name, expected=told.fingerprint, told=told.warnings)


def _upload_source(folder: Path, temporary: Path, settings: Settings, progress: Progress) -> Source:
    names = read_names(folder)
    if not names:
        raise CheckpointError("The upload has no files, or is no longer there: upload it again.")
    archives = [name for name in names if is_archive(name)]
    if archives and len(names) > 1:
        raise CheckpointError(
            f"{quoted(archives[0])} was uploaded together with other files: upload either one "
            "archive or the checkpoint's separate files."
        )
    if archives:
        packed = names[archives[0]]
        source = unpack(packed, archives[0], temporary, settings=settings, progress=progress)
        make_room(-packed.stat().st_size, settings)
        return source
    nbytes = sum(path.stat().st_size for path in names.values())
    if nbytes > settings.upload_nbytes:
        raise CheckpointError(
            f"The upload has {nbytes:,} bytes, more than the limit of "
            f"{settings.upload_nbytes:,}: open it as a folder or from the hub instead."
        )
    chosen, ignored = choose_members(names)
    files = {name: names[member] for name, member in chosen.items()}
    return Source("upload", _upload_name(list(chosen.values())), files, ignored, owned=True)


def _upload_name(members: list[str]) -> str:
    """The folder that was uploaded, or the weight file."""
    weights = next((member for member in members if weight_format(member)), "upload")
    folder, slash, file = weights.rpartition("/")
    above, _, name = folder.rpartition("/")
    if above and INNER.fullmatch(name):
        name = above.rpartition("/")[2]
    return (name if slash else file)[:80]


_OPENERS: dict[str, Callable[[CheckpointRef, Settings, Progress, bool], tuple[Manifest, CheckpointRef]]] = {
    "incoming": _open_incoming,
    "snapshots": open_snapshots,
}
