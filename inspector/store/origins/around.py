"""Find the checkpoints inside a folder that holds no weights itself, by the names of its files and folders.

A training run has checkpoint-500/, the hub's cache snapshots/ and refs/main, a pipeline of diffusers text_encoder/.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

from inspector.errors import CheckpointError
from inspector.store.names import INNER, MODULES, file_format, weight_format
from inspector.text import plural, quoted

MOST = 10_000  # names of a folder that are looked at
LISTED = 4  # paths of a sentence
DIFFUSERS = "model_index.json"
TEXT = re.compile(r"text_encoder(_\d+)?")  # of a pipeline, what reads text
REPOSITORY = "models--"  # how folders of the hub's cache begin
MAIN = "refs/main"  # in one of them: which snapshot is the newest
SHA_NBYTES = 100
SHARD = re.compile(r"-\d+-of-\d+")
# What training scripts call a snapshot, the word that says most first: of "epoch=1-step=500" the
# step counts, and "checkpoint_2_500" ends with its step.
STEPS = tuple(
    re.compile(rf"(?:^|[^a-z])(?:{words})[-_=. ]?(?:\d+_)?(\d{{1,15}})([km]?)(?![a-z\d])", re.I)
    for words in (
        r"(?:global|train|training)?[-_]?steps?",
        r"iter(?:ation)?s?|updates?",
        r"checkpoint|ckpt|chkpt|snapshot|model",
        r"epochs?",
    )
)
BARE = re.compile(r"(\d{1,15})([km]?)", re.I)
UNITS = {"": 1, "k": 1_000, "m": 1_000_000}


def step_of(name: str) -> int | None:
    """Read a training step off a name such as checkpoint-500, step_500, global_step500 or 10k."""
    stem = re.sub(r"\.(safetensors|bin|pt|pth)$", "", name)
    for pattern in STEPS:
        if found := pattern.findall(stem):
            return _number(*found[-1])
    bare = BARE.fullmatch(stem)
    return _number(*bare.groups()) if bare else None


def is_numbered(file: str) -> bool:
    """Whether the name of a file tells a step, and is no shard's."""
    return not SHARD.search(file) and step_of(file) is not None


def holds_weights(folder: Path) -> bool:
    """Whether a folder itself holds the weights of one checkpoint, and not of several."""
    weights = [name for name in _names(folder) if file_format(name) and weight_format(name)]
    return len(weights) == 1 or any(not is_numbered(name) for name in weights)


def checkpoints_in(folder: Path, *, within: tuple[Path, ...] = ()) -> tuple[Path, ...]:
    """The folders of checkpoints inside one that holds no weights itself, the one that is meant first.

    Args:
        within: Where they must really lie; anywhere if empty.
    """
    names = _names(folder)
    if any(file_format(name) and weight_format(name) for name in names) or _is_sentence_encoder(names):
        return ()
    found = [path for path in _candidates(folder, names) if _is_inside(path, within) and holds_weights(path)]
    return tuple(sorted(found, key=lambda path: (-(step_of(path.name) or 0), not _is_main(path), str(path))))


def only_checkpoint_in(folder: Path, *, within: tuple[Path, ...] = (), typed: Path | None = None) -> Path | None:
    """The one checkpoint inside a folder; None: there is none, and the folder itself is looked at.

    Args:
        folder: Where it really lies.
        within: As in `checkpoints_in`.
        typed: As the folder was named: paths are given below that.

    Raises:
        CheckpointError: If there are several: with the path of each, the one that is meant first.
    """
    found = checkpoints_in(folder, within=within)
    if len(found) > 1 and not _is_main(found[0]):
        first, *others = found
        latest = "The latest is" if step_of(first.name) is not None else "Such as"
        more = f"; others: {', '.join(each.name for each in others[:LISTED])}{' …' * (len(others) > LISTED)}"
        raise CheckpointError(
            f"{quoted(folder.name)} holds no weights itself, but {plural(len(found), 'folder')} with a checkpoint: "
            f"open one of them by its path. {latest} {(typed or folder) / first.relative_to(folder)}{more}."
        )
    return found[0] if found else None


def _candidates(folder: Path, names: list[str]) -> Iterator[Path]:
    if DIFFUSERS in names:
        yield from (folder / name for name in names if TEXT.fullmatch(name))
        return
    for name in names:
        if name == "snapshots":
            yield from (folder / name / version for version in _names(folder / name))
        elif name.startswith(REPOSITORY):
            versions = folder / name / "snapshots"
            yield from (versions / version for version in _names(versions))
        elif not name.startswith("."):
            yield folder / name


def _is_sentence_encoder(names: list[str]) -> bool:
    return MODULES in names and any(map(INNER.fullmatch, names))


def _is_inside(path: Path, within: tuple[Path, ...]) -> bool:
    """Whether it is a folder and no link, where it may be opened."""
    try:
        real = path.resolve()
    except (OSError, RuntimeError):
        return False
    inside = not within or any(real.is_relative_to(root) for root in within)
    return inside and not path.is_symlink() and path.is_dir()


def _is_main(path: Path) -> bool:
    """Whether a folder is the newest version of a model in the hub's cache, as the cache notes it."""
    if path.parent.name != "snapshots":
        return False
    try:
        with (path.parent.parent / MAIN).open("rb") as file:
            return file.read(SHA_NBYTES).strip() == os.fsencode(path.name)
    except OSError:
        return False


def _names(folder: Path) -> list[str]:
    """The names in a folder, in order; none where it cannot be listed."""
    try:
        with os.scandir(folder) as entries:
            found = [entry.name for _, entry in zip(range(MOST), entries, strict=False)]
    except OSError:
        return []
    return sorted(found)


def _number(digits: str, unit: str) -> int:
    return int(digits) * UNITS[unit.lower()]
