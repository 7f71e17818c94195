"""Find what a reference of this machine names: a demo's folder, or one that is given by its path."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from inspector.errors import CheckpointError
from inspector.settings import EVERYWHERE, Settings
from inspector.store.names import is_archive, weight_format
from inspector.store.origins.sources import BLOB, Source, file_source, folder_source, is_below, is_regular
from inspector.store.reference import OUTLINE, CheckpointRef
from inspector.store.registry import incoming_folder
from inspector.text import quoted

# Names that training scripts and packages give to any model's folder.
SAYS_NOTHING = re.compile(r"(model|checkpoint|output|final|best|latest|last)([-_]\d+)?|\d+", re.I)
# One sentence for everything outside, so that nobody learns what exists there.
COMING = (
    "The weights are still being uploaded. What needs their names, shapes and dtypes alone is answered already; the "
    "rest, when all of them are here."
)
NOT_COMING = (
    "This is a link to an upload that was still arriving: pick the checkpoint from the list, or upload it again."
)
OUTSIDE = (
    "This path cannot be opened here: give a checkpoint's folder, archive or weight file below "
    "one of the folders that this server may open (INSPECTOR_ROOTS), or upload it."
)


def demo_source(reference: CheckpointRef) -> Source:
    """The files of a demo.

    Raises:
        CheckpointError: If there is no such demo.
    """
    from inspector.demo import DEMOS, SNAPSHOTS

    demo = (DEMOS | SNAPSHOTS).get(reference.value)
    if demo is None:
        raise CheckpointError(f"There is no demo {quoted(reference.value)}: pick one of {', '.join(DEMOS)}.")
    return folder_source(demo.folder, kind="demo", name=reference.value)


def outline_source(reference: CheckpointRef, settings: Settings, folder: Path | None = None) -> Source:
    """What of an upload is there while its weights arrive.

    Args:
        folder: Where it is; None: in the store.

    Raises:
        CheckpointError: If it is not on its way any more.
    """
    folder = folder or incoming_folder(reference.value, settings=settings)
    if not folder.is_dir():
        raise CheckpointError(NOT_COMING)
    source = folder_source(folder, kind=OUTLINE, name="upload")
    weights = next((name for name in source.files if weight_format(name)), source.name)
    return replace(source, name=weights[:80], told=(COMING,))


def path_source(reference: CheckpointRef, settings: Settings, *, restrict: bool) -> Source | Path:
    """The files of a checkpoint that is named by its path; the path of an archive.

    Args:
        reference: A folder, an archive or a weight file.
        settings: The folders that may be opened.
        restrict: True where strangers ask: only below those.

    Raises:
        CheckpointError: If it may not be opened, or cannot be a checkpoint.
    """
    roots = settings.roots if restrict and settings.roots != EVERYWHERE else ()
    path = find_path(reference, settings, restrict=restrict)
    if path.is_dir():
        return folder_source(path, kind="folder", name=folder_name(path), within=roots)
    if is_archive(path.name):
        return path
    if weight_format(path.name):
        return file_source(path, within=roots)
    raise CheckpointError(
        f"{quoted(path.name)} is not a checkpoint: give a folder, an archive (.zip, .tar, "
        ".tar.gz) or a weight file (.safetensors, .bin, .pt, .pth)."
    )


def find_path(reference: CheckpointRef, settings: Settings, *, restrict: bool) -> Path:
    """The folder or file that a reference names by its path; the arguments are those of `path_source`.

    Raises:
        CheckpointError: If it is not there, or may not be opened.
    """
    restrict = restrict and settings.roots != EVERYWHERE
    return _resolve(reference.value, settings.roots if restrict else (), restrict=restrict)


def files_of(
    reference: CheckpointRef, settings: Settings, *, restrict: bool, fetched: Path | None = None
) -> Iterator[Path]:
    """Find, by names alone, what is read outside the store to open a checkpoint.

    Args:
        reference: Of any kind.
        settings: The folders that may be opened.
        restrict: As in `path_source`.
        fetched: The folder that holds a model of the hub.

    Yields:
        Files, and folders whose names are listed.

    Raises:
        CheckpointError: If it may not be opened, or cannot be a checkpoint.
    """
    if fetched:
        yield fetched
        yield from _listed(folder_source(fetched, kind="hub", name=reference.value))
    elif reference.kind == "demo":
        yield from demo_source(reference).files.values()
    elif reference.kind == "path":
        place = find_path(reference, settings, restrict=restrict)
        if place.is_dir():
            yield place
        source = path_source(reference, settings, restrict=restrict)
        if not isinstance(source, Source):
            yield source
        else:
            yield from _listed(source) if place.is_dir() else source.files.values()


def _listed(source: Source) -> Iterator[Path]:
    """The files of a folder, and the folders that hold them: it is one as a rule, or one with another inside."""
    yield from source.files.values()
    yield from {path.parent for path in source.files.values()}


def folder_name(path: Path) -> str:
    """What a folder is called: the hub's id in its cache; a name that says nothing has its parent's before it."""
    if model := hub_id(path):
        return model[:80]
    if SAYS_NOTHING.fullmatch(path.name) and path.parent.name:
        return f"{path.parent.name}/{path.name}"[-80:]
    return path.name[:80]


def hub_id(folder: Path) -> str:
    """The hub's id of a model's version in the hub's cache; "" for any other folder."""
    kind, _, name = folder.parent.parent.name.partition("--")
    inside = folder.parent.name == "snapshots" and kind == "models" and bool(BLOB.fullmatch(folder.name))
    return name.replace("--", "/", 1) if inside else ""


def refuse_outside(path: str, settings: Settings) -> None:
    """Refuse what a stranger may not open by its path.

    Raises:
        CheckpointError: If it is not there, or not below the settings' roots.
    """
    _resolve(path, settings.roots, restrict=True)


def _resolve(text: str, roots: tuple[Path, ...], *, restrict: bool) -> Path:
    missing = CheckpointError(OUTSIDE if restrict else f"There is no file or folder {quoted(text)}: check the path.")
    try:
        path = _below(roots, Path(text)) if restrict else Path(text).expanduser()
        real = path.resolve(strict=True)
    except (OSError, RuntimeError, ValueError):
        raise missing from None
    if restrict and not (path.is_absolute() and is_below(real, roots)):
        raise missing
    if not (real.is_dir() or is_regular(real)):
        raise missing
    # A link keeps the name it was given by: the hub's cache names its files by digest only.
    return real if real.is_dir() or restrict else path.absolute()


def _below(roots: tuple[Path, ...], path: Path) -> Path:
    """A relative path is meant below the first allowed folder that has it."""
    return next((root / path for root in roots if (root / path).exists()), path)
