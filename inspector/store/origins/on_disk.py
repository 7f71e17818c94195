"""Folders, archives and weight files of this machine, named by their paths."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar

from inspector.errors import CheckpointError
from inspector.settings import EVERYWHERE, Settings
from inspector.store.names import is_archive, weight_format
from inspector.store.origins.around import checkpoints_in, only_checkpoint_in
from inspector.store.origins.origin import Origin, Reach, size_of
from inspector.store.origins.sources import BLOB, Source, file_source, folder_source, is_below, is_regular
from inspector.text import quoted

# Names that training scripts and packages give to any model's folder.
SAYS_NOTHING = re.compile(r"(model|checkpoint|output|final|best|latest|last)([-_]\d+)?|\d+", re.I)
OPENED = "The folder that was named holds one checkpoint, in {}: that is what is open."
# One sentence for everything outside, so that nobody learns what exists there.
OUTSIDE = (
    "This path cannot be opened here: give a checkpoint's folder, archive or weight file below "
    "one of the folders that this server may open (INSPECTOR_ROOTS), or upload it."
)


@dataclass(frozen=True, slots=True)
class OnDisk(Origin):
    """A folder, an archive or a weight file, by its path."""

    word: ClassVar[str] = "path"
    values: ClassVar[re.Pattern[str]] = re.compile(r"[^\0]+")
    anywhere: ClassVar[bool] = True

    @property
    def typed(self) -> str:
        """The path."""
        return self.value

    @property
    def path(self) -> Path:
        """As it is named."""
        return Path(self.value)

    def find(self, reach: Reach) -> Source:
        """Its files, or the archive that holds them; where strangers ask, only below the settings' roots."""
        place, roots = self._place(reach), _roots(reach)
        if place.is_dir():
            inner = only_checkpoint_in(place, within=roots, typed=self.path)
            source = folder_source(inner or place, kind="folder", name=folder_name(inner or place), within=roots)
            told = (OPENED.format(quoted(str(inner.relative_to(place)))),) if inner else ()
            return replace(source, told=told, folders=(place, *source.folders) if inner else source.folders)
        if is_archive(place.name):
            return Source("upload", place.name, {}, (), owned=True, packed=place.resolve())
        if weight_format(place.name):
            return file_source(place, within=roots)
        raise CheckpointError(
            f"{quoted(place.name)} is not a checkpoint: give a folder, an archive (.zip, .tar, "
            ".tar.gz) or a weight file (.safetensors, .bin, .pt, .pth, .ckpt, .gguf)."
        )

    def reads(self, reach: Reach) -> Iterator[Path]:
        """A folder before what it holds: whoever opens it says what is wrong with that."""
        if (place := self._place(reach)).is_dir():
            yield place
        yield from self.find(reach).paths

    def inside(self, reach: Reach) -> tuple[str, ...]:
        """Each by the path that was typed, and its own below that."""
        place, roots = self._place(reach), _roots(reach)
        found = checkpoints_in(place, within=roots) if place.is_dir() else ()
        several = found if len(found) > 1 else ()
        return tuple(str(OnDisk(str(self.path / each.relative_to(place)))) for each in several)

    def costs(self, settings: Settings) -> int:
        """The size of an archive or a file."""
        return size_of(self.path)

    def _place(self, reach: Reach) -> Path:
        restrict = reach.restrict_paths and reach.settings.roots != EVERYWHERE
        return _resolve(self.value, _roots(reach), restrict=restrict)


def _roots(reach: Reach) -> tuple[Path, ...]:
    """Folders below which everything must really lie; none: anywhere."""
    return reach.settings.roots if reach.restrict_paths and reach.settings.roots != EVERYWHERE else ()


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
        real, place = path.resolve(strict=True), path.parent.resolve() / path.name
    except (OSError, RuntimeError, ValueError):
        raise missing from None
    if restrict and not (path.is_absolute() and is_below(real, roots) and is_below(place, roots)):
        raise missing
    if not (real.is_dir() or is_regular(real)):
        raise missing
    # A link keeps the name it was given by, and is judged by it.
    return real if real.is_dir() else path.absolute()


def _below(roots: tuple[Path, ...], path: Path) -> Path:
    """A relative path is meant below the first allowed folder that has it."""
    return next((root / path for root in roots if (root / path).exists()), path)
