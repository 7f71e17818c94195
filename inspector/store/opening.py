"""Open a checkpoint by its reference, whatever its origin is."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from inspector.errors import CheckpointError
from inspector.progress import Progress
from inspector.settings import Settings
from inspector.store.disk import disk_sentence
from inspector.store.files import workspace
from inspector.store.manifests.entries import load_manifest
from inspector.store.manifests.manifest import Manifest
from inspector.store.origins.hub import download
from inspector.store.origins.origin import Origin, Reach
from inspector.store.origins.sources import Source
from inspector.store.readers.archives import unpack
from inspector.store.reference import CheckpointRef
from inspector.store.staging import stage


def stage_found(source: Source, *, settings: Settings, progress: Progress) -> Manifest:
    """Stage what an origin has found, and keep it.

    Raises:
        CheckpointError: If the files are no checkpoint, or one that cannot be trusted.
    """
    if source.packed is None:
        return stage(source, settings=settings, progress=progress)
    with workspace(settings.home) as temporary:
        unpacked = unpack(source.packed, source.name, temporary, settings=settings, progress=progress)
        return stage(unpacked, settings=settings, progress=progress)


def open_checkpoint(
    reference: CheckpointRef,
    *,
    settings: Settings,
    progress: Progress,
    restrict_paths: bool,
    fetched: Path | None = None,
    stage: Callable[..., Manifest] = stage_found,
) -> tuple[Manifest, CheckpointRef]:
    """Stage a checkpoint, so that workers can read it.

    Args:
        restrict_paths: True where strangers ask (the web app): paths must lie below
            `settings.roots`.
        fetched: The folder that holds its files, if they had to be brought first; None: they are downloaded.
        stage: What becomes of the files that are found.

    Returns:
        What the checkpoint holds, and the reference that opens it again.

    Raises:
        CheckpointError: If it cannot be opened; the text says why, and what to do.
    """
    origin = reference.origin
    with translated(settings):
        if origin.digits:
            manifest = load_manifest(_stored(origin, settings), settings=settings)
        else:
            if origin.downloads and fetched is None:
                fetched = download(origin.value, progress=progress)
            source = origin.find(Reach(settings, restrict_paths, fetched))
            manifest = stage(source, settings=settings, progress=progress)
    return manifest, CheckpointRef.parse(origin.becomes(manifest.fingerprint, fetched))


def _stored(origin: Origin, settings: Settings) -> str:
    """The fingerprint of the upload that an origin names."""
    found = [entry.name for entry in origin.held(settings)]
    if len(found) != 1:
        what = "is no longer" if not found else "matches more than one name"
        raise CheckpointError(
            f"The upload {origin.digits[:12]}… {what} in the store: pick one from the list, or upload it again."
        )
    return found[0]


@contextmanager
def translated(settings: Settings) -> Iterator[None]:
    """Turn the errors of the file system into sentences without a path."""
    try:
        yield
    except PermissionError as error:
        raise CheckpointError(
            "A file of the checkpoint or of the store cannot be read or written: check the permissions."
        ) from error
    except OSError as error:
        raise CheckpointError(
            disk_sentence(error, settings)
            or f"The checkpoint could not be read or stored ({error.strerror}): try again."
        ) from error
