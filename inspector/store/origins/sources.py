"""Find the files of a checkpoint: in a folder, an archive, an upload, a single file."""

from __future__ import annotations

import re
import stat
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from inspector.errors import CheckpointError
from inspector.store.names import (
    CONFIGS,
    INNER,
    MODULE_FILES,
    MODULE_FOLDER,
    MODULES,
    SENTENCE_SETTINGS,
    VOCABULARIES,
    file_format,
    is_of_module,
    module_file,
    shown_name,
    weight_format,
)
from inspector.store.origins.links import follow_link
from inspector.store.readers.index import SHARD
from inspector.text import quoted

MAX_PATH = 1_000  # characters of a name with its folders
BLOB = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")  # name in a hub's cache: of Git, or of the content
JUNK = ("__MACOSX", "Thumbs.db", "desktop.ini")
ABOVE = (MODULES, SENTENCE_SETTINGS)  # beside the transformer's folder, where it has one
MAX_MODULE_FOLDERS = 32  # of sentence-transformers; published models have up to five


@dataclass(frozen=True, slots=True)
class Source:
    """The files of a checkpoint, wherever they lie."""

    kind: str  # Manifest.source
    name: str  # what the person calls it
    files: Mapping[str, Path]  # basename -> regular file, only names that are read
    ignored: tuple[str, ...]  # names of files that are not read
    owned: bool  # True: the files are ours to move into the store
    told: tuple[str, ...] = ()  # warnings of an earlier staging of the same files
    folders: tuple[Path, ...] = ()  # whose names are listed
    packed: Path | None = None  # the archive that holds the files; None: they lie open
    several: bool = False  # True: the archive holds several checkpoints
    outline: bool = False  # True: the files' numbers are still on their way
    links: frozenset[str] = frozenset()  # names of files that lie where links of these names led

    @property
    def paths(self) -> tuple[Path, ...]:
        """All that is read: files, and folders whose names are listed."""
        return (*((self.packed,) if self.packed else ()), *self.folders, *self.files.values())


def choose_members(names: Iterable[str]) -> tuple[dict[str, str], tuple[str, ...]]:
    """Choose a checkpoint's files among the members of an archive or of a folder's upload.

    Folders that hold everything are stripped; files in deeper folders are not read, but for the folders of
    sentence-transformers' modules where modules.json lies above them.

    Returns:
        Basename -> name for what is read, and the names of what is not.

    Raises:
        CheckpointError: If a name is absolute, climbs, or occurs twice, or there are too many modules.
    """
    paths = {name: _relative(name) for name in names}
    paths = {name: path for name, path in paths.items() if not _is_junk(path)}
    depth = _common_depth(list(paths.values()))
    relative = {name: PurePosixPath(*path.parts[depth:]) for name, path in paths.items()}
    home, top = _transformer_folder(relative.values()), PurePosixPath()
    piped = top / MODULES in relative.values()
    chosen: dict[str, str] = {}
    ignored = []
    for name, path in relative.items():
        called = path.name
        if piped and len(path.parts) == 2 and (found := module_file(path.parent.name, path.name)):
            called = found
        elif file_format(path.name) is None or path.parent != (top if path.name in ABOVE else home):
            ignored.append(str(path))
            continue
        if called in chosen:
            raise CheckpointError(f"{shown_name(called)} occurs twice: pack the folder again, with each file once.")
        chosen[called] = name
    _refuse_many({name.partition("+")[0] for name in chosen if is_of_module(name)})
    return dict(sorted(chosen.items(), key=lambda each: is_of_module(each[0]))), tuple(sorted(ignored))


def _refuse_many(folders: Collection[str]) -> None:
    if len(folders) > MAX_MODULE_FOLDERS:
        raise CheckpointError(
            f"There are {len(folders):,} folders beside {MODULES} that are called as modules are; at most "
            f"{MAX_MODULE_FOLDERS} are read: keep those that it lists."
        )


def _transformer_folder(paths: Iterable[PurePosixPath]) -> PurePosixPath:
    """Where the weights are: "." as a rule, or the one folder that sentence-transformers gives its transformer."""
    top = PurePosixPath()
    weights = {path.parent for path in paths if _is_weight(path.name)}
    inner = [folder for folder in weights if folder.parent == top and INNER.fullmatch(folder.name)]
    return inner[0] if top / MODULES in paths and top not in weights and len(inner) == 1 else top


def choose_snapshots(names: Iterable[str]) -> dict[str, tuple[dict[str, str], tuple[str, ...]]]:
    """Choose the snapshots among an archive's members: the folders that hold weights themselves.

    Returns:
        What tells a folder from the others -> basename -> name for what is read of it, and the
        names of what is not; in the order of the folders' names.

    Raises:
        CheckpointError: If a name is absolute, climbs, or occurs twice.
    """
    paths = {name: _relative(name) for name in names}
    paths = {name: path for name, path in paths.items() if not _is_junk(path)}
    folders: dict[PurePosixPath, list[str]] = {}
    for name, path in paths.items():
        folders.setdefault(path.parent, []).append(name)
    held = {
        folder: inside
        for folder, inside in sorted(folders.items())
        if folder.parts and any(_is_weight(paths[name].name) for name in inside)
    }
    depth = _common_depth([folder / "file" for folder in held])
    return {"-".join(folder.parts[depth:]) or folder.name: choose_members(inside) for folder, inside in held.items()}


def _is_weight(name: str) -> bool:
    return file_format(name) is not None and weight_format(name) is not None and not is_of_module(name)


def folder_source(folder: Path, *, kind: str, name: str, within: tuple[Path, ...] = (), links: bool = False) -> Source:
    """The checkpoint files that lie in a folder; of links, those of a hub's cache and to safetensors are followed.

    Args:
        kind: Manifest.source.
        within: Where the files must really lie; anywhere if empty.
        links: Whether any link is followed.

    Raises:
        CheckpointError: If a file is another link, or there are too many modules.
    """
    names = {path.name for path in folder.iterdir()}
    read = {each for each in names if file_format(each)}
    inner = _inner_folder(folder, names)
    if inner:
        files = _own_files(folder, names.intersection(ABOVE), within)
        files = _own_files(inner, {path.name for path in inner.iterdir() if file_format(path.name)}, within) | files
    else:
        files = {each: folder / each for each in sorted(read)} if links else _own_files(folder, read, within)
    modules = _module_folders(folder, names)
    for each in modules:
        found = _own_files(each, {path.name for path in each.iterdir()}.intersection(MODULE_FILES), within)
        files |= {called: path for base, path in found.items() if (called := module_file(each.name, base))}
    ignored = tuple(sorted(names - files.keys() - {each.name for each in modules}))
    folders = (folder, *((inner,) if inner else ()), *modules)
    return Source(kind, name, files, ignored, owned=False, folders=folders, links=_linked(files, folders))


def _module_folders(folder: Path, names: Collection[str]) -> list[Path]:
    """The folders of the modules that sentence-transformers runs after its transformer."""
    called = [name for name in sorted(names) if MODULE_FOLDER.fullmatch(name)] if MODULES in names else []
    _refuse_many(called)
    return [each for name in called if not (each := folder / name).is_symlink() and each.is_dir()]


def _inner_folder(folder: Path, names: Collection[str]) -> Path | None:
    """The one folder that sentence-transformers gives its transformer; None where weights lie beside modules.json."""
    if MODULES not in names or any(map(_is_weight, names)):
        return None
    inner = [each for name in names if INNER.fullmatch(name) and not (each := folder / name).is_symlink()]
    return inner[0] if len(inner) == 1 and inner[0].is_dir() else None


def _own_files(folder: Path, names: Iterable[str], within: tuple[Path, ...]) -> dict[str, Path]:
    """Those of some names that are regular files of a checkpoint's folder, or of safetensors links to such.

    Raises:
        CheckpointError: If one is another link; whether what that leads to exists is not told.
    """
    paths = {name: _own_file(folder / name, within) for name in sorted(names)}
    return {name: path for name, path in paths.items() if is_regular(path)}


def _own_file(path: Path, within: tuple[Path, ...]) -> Path:
    """Where a file of a checkpoint lies.

    Raises:
        CheckpointError: If it is a link that is not followed.
    """
    if not path.is_symlink():
        return path
    folder = path.parent.resolve()
    try:
        real = path.resolve()
    except (OSError, RuntimeError):  # links in a circle
        real = folder / path.name
    blobs = {above.parent / "blobs" for above in folder.parents if above.name == "snapshots"}
    if real.parent in blobs and BLOB.fullmatch(real.name) and (not within or is_below(real, within)):
        return path
    if weight_format(path.name) == "safetensors":
        with suppress(OSError):
            real = follow_link(path)
            if not within or is_below(real, within):
                return real
        raise CheckpointError(
            f"{path.name} is a link that is not followed: it must lead to a plain file that may be opened here, and "
            "belong to you, root or the file's owner. Otherwise replace it with the file itself."
        )
    where = "another file in this folder" if real.parent == folder else "a file outside the checkpoint's folder"
    raise CheckpointError(f"{path.name} is a link to {where}: replace it with the file itself.")


def _linked(files: Mapping[str, Path], folders: Iterable[Path]) -> frozenset[str]:
    bases = {name: name.partition("+")[2] if is_of_module(name) else name for name in files}
    return frozenset(
        name
        for name, path in files.items()
        if path not in {folder / each for folder in folders for each in (name, bases[name])}
    )


def is_below(path: Path, roots: Iterable[Path]) -> bool:
    """Whether a resolved path is one of some folders or lies in one."""
    return any(path.is_relative_to(root) for root in roots)


def is_regular(path: Path) -> bool:
    """Whether a path is a plain file, or a link to one: no device, pipe or folder."""
    try:
        return stat.S_ISREG(path.stat().st_mode)
    except OSError:
        return False


def _relative(name: str) -> PurePosixPath:
    path = PurePosixPath(name[:MAX_PATH])
    climbs = ".." in path.parts or path.is_absolute() or "\\" in name or ":" in name[:2]
    if climbs or not path.parts or "\0" in name or len(name) > MAX_PATH:
        raise CheckpointError(
            f"{quoted(name)} is not a valid name inside a checkpoint's folder: pack the folder "
            "again with plain relative names."
        )
    return path


def _is_junk(path: PurePosixPath) -> bool:
    return any(part in JUNK or part.startswith(".") for part in path.parts)


def _common_depth(paths: list[PurePosixPath]) -> int:
    depth = 0
    while paths and all(len(path.parts) > depth + 1 for path in paths):
        if len({path.parts[depth] for path in paths}) != 1:
            break
        depth += 1
    return depth


def shards_beside(path: Path) -> Iterator[str]:
    """The names of the other parts of a file of GGUF that was split, as llama.cpp opens them: by any of their paths."""
    found = SHARD.fullmatch(path.name) if weight_format(path.name) == "gguf" else None
    for number in range(1, int(found["count"]) + 1 if found else 0):
        name = f"{found['stem']}-{number:05d}-of-{found['count']}{found['suffix']}" if found else ""
        if is_regular(path.with_name(name)):
            yield name


def file_source(path: Path, *, within: tuple[Path, ...] = ()) -> Source:
    """A single weight file with all parts that it was split into, the configuration and the tokenizer beside it.

    Raises:
        CheckpointError: If one of them is a link that `folder_source` does not follow.
    """
    files = _own_files(path.parent, CONFIGS | VOCABULARIES, within) | {path.name: _own_file(path, within)}
    files |= _own_files(path.parent, shards_beside(path), within)
    return Source("folder", path.name, files, (), owned=False, links=_linked(files, (path.parent,)))
