"""Open a checkpoint by its reference, whatever kind it is."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from inspector.errors import CheckpointError
from inspector.progress import Progress
from inspector.settings import Settings
from inspector.store.disk import disk_sentence
from inspector.store.files import below, workspace
from inspector.store.manifests.documents import is_fingerprint, is_plain_folder
from inspector.store.manifests.entries import UPLOADS, load_manifest
from inspector.store.manifests.manifest import Manifest
from inspector.store.origins.hub import download
from inspector.store.origins.places import demo_source, path_source
from inspector.store.origins.sources import Source, folder_source
from inspector.store.readers.archives import unpack
from inspector.store.reference import CheckpointRef
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
    """Stage a checkpoint, so that workers can read it.

    Args:
        restrict_paths: True where strangers ask (the web app): paths must lie below
            `settings.roots`.
        fetched: The folder that holds a model of the hub; None: it is downloaded.

    Returns:
        What the checkpoint holds, and the reference that opens it again.

    Raises:
        CheckpointError: If it cannot be opened; the text says why, and what to do.
    """
    with translated(settings):
        if reference.kind == "hub":
            return _open_hub(reference, settings, progress, fetched)
        if reference.kind not in _OPENERS:
            raise CheckpointError(f"{quoted(str(reference))} has not been sent to this program: open it where it was.")
        return _OPENERS[reference.kind](reference, settings, progress, restrict_paths)


def _open_demo(
    reference: CheckpointRef, settings: Settings, progress: Progress, restrict_paths: bool
) -> tuple[Manifest, CheckpointRef]:
    return stage(demo_source(reference), settings=settings, progress=progress), reference


def _open_upload(
    reference: CheckpointRef, settings: Settings, progress: Progress, restrict_paths: bool
) -> tuple[Manifest, CheckpointRef]:
    stored = settings.uploads or settings.readable
    names = (path.name for path in below(stored / UPLOADS) if is_plain_folder(path))
    found = [name for name in names if name.startswith(reference.value) and is_fingerprint(name)]
    if len(found) != 1:
        what = "is no longer" if not found else "matches more than one name"
        raise CheckpointError(
            f"The upload {reference.value[:12]}… {what} in the store: pick one from the list, or upload it again."
        )
    return load_manifest(found[0], settings=settings), CheckpointRef("upload", found[0])


def _open_path(
    reference: CheckpointRef, settings: Settings, progress: Progress, restrict_paths: bool
) -> tuple[Manifest, CheckpointRef]:
    found = path_source(reference, settings, restrict=restrict_paths)
    if isinstance(found, Source):
        return stage(found, settings=settings, progress=progress), reference
    with workspace(settings.home) as temporary:
        source = unpack(found, found.name, temporary, settings=settings, progress=progress)
        return stage(source, settings=settings, progress=progress), reference


def _open_hub(
    reference: CheckpointRef, settings: Settings, progress: Progress, fetched: Path | None
) -> tuple[Manifest, CheckpointRef]:
    folder = fetched or download(reference.value, progress=progress)
    source = folder_source(folder, kind="hub", name=reference.value)
    return stage(source, settings=settings, progress=progress), reference


_OPENERS: dict[str, Callable[[CheckpointRef, Settings, Progress, bool], tuple[Manifest, CheckpointRef]]] = {
    "demo": _open_demo,
    "upload": _open_upload,
    "shared": _open_upload,  # the engine has fetched it
    "path": _open_path,
}


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
