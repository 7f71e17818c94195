"""Open a checkpoint in a worker: a draft of its entry, which the server checks and keeps (`receiving`).

The server finds and hashes the files that it has itself. Those that a worker unpacks of an archive only the worker
can name, so it hashes them, too.
"""

from __future__ import annotations

import hashlib
from dataclasses import replace
from pathlib import Path

from inspector.errors import CheckpointError
from inspector.progress import Progress
from inspector.serving.storing.room import make_room
from inspector.settings import Settings
from inspector.store import opening
from inspector.store.files import workspace
from inspector.store.hashing import Identity, identify
from inspector.store.manifests.manifest import Manifest
from inspector.store.origins.sources import Source, is_below
from inspector.store.readers.archives import unpack, unpack_snapshots
from inspector.store.reference import CheckpointRef
from inspector.store.staging import rebuilt
from inspector.text import quoted


def open_checkpoint(
    reference: CheckpointRef,
    *,
    settings: Settings,
    progress: Progress,
    restrict_paths: bool,
    fetched: Path | None = None,
) -> tuple[Manifest, CheckpointRef]:
    """Draft the entry of a checkpoint; the arguments are those of `inspector.store.opening.open_checkpoint`.

    Returns:
        What the checkpoint holds, and the reference that opens it again: an upload that has just
        arrived is now one of the store's.

    Raises:
        CheckpointError: If it cannot be opened; the text says why, and what to do.
    """
    return opening.open_checkpoint(
        reference, settings=settings, progress=progress, restrict_paths=restrict_paths, fetched=fetched, stage=_drafted
    )


def _drafted(source: Source, *, settings: Settings, progress: Progress) -> Manifest:
    if source.packed is None:
        return _draft(source, settings, progress, unpacked=False)
    with workspace(settings.home) as temporary:
        unpacks = unpack_snapshots if source.several else unpack
        found = unpacks(source.packed, source.name, temporary, settings=settings, progress=progress)
        if is_below(source.packed, (settings.readable,)):  # one that was sent goes when it is unpacked
            make_room(-source.packed.stat().st_size, settings)
        if isinstance(found, Source):
            return _draft(found, settings, progress, unpacked=True)
        return _draft_snapshots(found, source.name, settings, progress)


def _draft(source: Source, settings: Settings, progress: Progress, *, unpacked: bool) -> Manifest:
    with rebuilt(source, settings=settings, progress=progress) as found:
        if unpacked:
            known = identify(found.used, owned=True, progress=progress)
        else:
            known = {name: Identity(hashlib.sha256(name.encode()).hexdigest(), None) for name in found.used}
            if not source.owned:  # of weights, their stamps tell whether they change meanwhile
                known |= identify(found.small, owned=False, progress=progress)
        manifest = found.manifest(known, settings)
        if unpacked:
            found.move()
        found.put(manifest, progress)
        return manifest


def _draft_snapshots(sources: list[Source], archive: str, settings: Settings, progress: Progress) -> Manifest:
    """Draft every snapshot of an archive.

    Returns:
        The last one that could be, in the order of the folders' names; its warnings say what was left out.

    Raises:
        CheckpointError: If there are not several snapshots, or none can be opened.
    """
    if len(sources) < 2:
        raise CheckpointError(
            f"{quoted(archive)} does not contain several folders with weights: open a single "
            "checkpoint in the sidebar, under “Open your own”."
        )
    last, refused = None, list[str]()
    for number, source in enumerate(sources, start=1):
        label = source.name.rpartition("/")[2]
        progress((number - 1) / len(sources), f"Storing {number} of {len(sources)} snapshots")
        try:
            last = _draft(source, settings, lambda *_: None, unpacked=True)
        except CheckpointError as error:
            refused.append(f"{quoted(label)} was left out: {error}")
    if last is None:
        raise CheckpointError(refused[0])
    return replace(last, warnings=(*refused, *last.warnings))
