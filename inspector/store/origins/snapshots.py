"""Find the snapshots of a training run: which they are, and at which step each was taken."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from inspector.demo import RUNS
from inspector.errors import CheckpointError
from inspector.settings import EVERYWHERE
from inspector.store.manifests.manifest import StoredCheckpoint
from inspector.store.names import file_format, is_archive, weight_format
from inspector.store.origins.around import holds_weights, is_numbered, step_of
from inspector.store.origins.on_disk import OnDisk
from inspector.store.origins.sources import is_below, is_regular
from inspector.store.reference import CheckpointRef
from inspector.text import quoted

MAX_SNAPSHOTS = 10_000
UPLOADS = "uploads"  # in a link, before the name of a run that was uploaded


@dataclass(frozen=True, slots=True)
class Snapshot:
    """One checkpoint of many."""

    name: str  # as people tell it from the others
    reference: CheckpointRef
    step: int | None  # of the training run, as its name says; None: it does not say
    identity: str | None = None  # equal exactly while its files are the same; None: nobody knows


def in_order(snapshots: Iterable[Snapshot]) -> tuple[Snapshot, ...]:
    """Sort by step; those whose names tell none come last, in the order of their names."""
    return tuple(sorted(snapshots, key=_place))


def list_snapshots(folder: Path, *, within: tuple[Path, ...] = ()) -> tuple[Snapshot, ...]:
    """List the snapshots in a folder: folders that hold weights, or weight files with a step.

    Only names are read. Folders that links lead to count where they really lie.

    Args:
        within: Where snapshots must really lie; anywhere if empty.

    Raises:
        CheckpointError: If there are none, or more than anybody looks at.
    """
    try:
        paths = sorted(folder.iterdir())
    except OSError as error:
        raise CheckpointError(
            f"The folder {quoted(folder.name)} cannot be read: check its name and permissions."
        ) from error
    found = [path for path in paths if _is_snapshot(path, within)]
    if not found:
        raise CheckpointError(
            f"There are no snapshots in {quoted(folder.name)}: give the folder that contains "
            "the run's checkpoint folders, such as checkpoint-500 and checkpoint-1000."
        )
    if len(found) > MAX_SNAPSHOTS:
        raise CheckpointError(
            f"{quoted(folder.name)} contains {len(found):,} snapshots, more than the limit of "
            f"{MAX_SNAPSHOTS:,}: move some into another folder."
        )
    return in_order(snapshot_of(path) for path in found)


def snapshot_of(path: Path) -> Snapshot:
    """A folder, archive or file as one checkpoint of many."""
    reference = CheckpointRef("path", str(path.absolute()))
    return Snapshot(path.name, reference, step_of(path.name), identity_of(path))


def is_run(path: Path) -> bool:
    """Whether a folder holds no checkpoint of its own, but snapshots."""
    if not path.is_dir() or holds_weights(path):
        return False
    try:
        return any(_is_snapshot(below, ()) for below in path.iterdir())
    except OSError:  # whoever opens it says why
        return False


def uploaded_runs(uploads: Iterable[StoredCheckpoint]) -> dict[str, tuple[Snapshot, ...]]:
    """The uploads that belong together: several named "run/snapshot", as archives' members are."""
    runs: dict[str, list[Snapshot]] = {}
    for stored in uploads:
        run, slash, name = stored.name.rpartition("/")
        if slash and run and name:
            reference = CheckpointRef("upload", stored.fingerprint)
            snapshot = Snapshot(name, reference, step_of(name), stored.fingerprint)
            runs.setdefault(run, []).append(snapshot)
    return {run: in_order(runs[run]) for run in sorted(runs) if len(runs[run]) > 1}


def find_run(
    text: str, *, roots: tuple[Path, ...], uploads: Mapping[str, tuple[Snapshot, ...]]
) -> tuple[str, tuple[Snapshot, ...]]:
    """Find a run that the web app may show, by what stands in a link.

    Args:
        text: The name of a bundled run, "uploads:" and the name of an uploaded one, or "path:" and
            a folder below one of the roots.
        roots: Folders that may be opened; those of a relative path are tried in turn.
        uploads: From `uploaded_runs`.

    Returns:
        What to call it, and its snapshots in order.

    Raises:
        CheckpointError: If there is no such run, or none that may be shown.
    """
    if text in RUNS:
        return text, in_order(_bundled(demo.folder, name) for name, demo in RUNS[text].items())
    uploaded = text.removeprefix(f"{UPLOADS}:")
    if uploaded in uploads and uploaded != text:
        return uploaded, uploads[uploaded]
    if uploaded != text:
        raise CheckpointError(
            f"The run {quoted(uploaded)} is no longer in the store: choose one from the list, or upload it again."
        )
    folder = folder_of(text)
    outside = CheckpointError(
        f"There is no folder {quoted(folder)} on this machine: check the path."
        if folder is not None and roots == EVERYWHERE
        else "This run cannot be opened here: give a folder of snapshots below one of the folders that "
        "this server may open (INSPECTOR_ROOTS), or upload an archive of them."
    )
    if not folder or "\0" in folder:
        raise outside
    try:
        path = next((root / folder for root in roots if (root / folder).is_dir()), Path(folder))
        real = path.resolve(strict=True)
    except (OSError, RuntimeError, ValueError):
        raise outside from None
    if not (real.is_dir() and is_below(real, roots)):
        raise outside
    return real.name, list_snapshots(real, within=roots)


def folder_of(run: str) -> str | None:
    """The folder that a run's link names; None: it names something else."""
    word, _, value = run.partition(":")
    return value if word == OnDisk.word else None


def identity_of(path: Path) -> str | None:
    """A digest of what tells whether a checkpoint's files are still the same: sizes and times.

    Args:
        path: A folder, an archive or a weight file.

    Returns:
        None if it cannot be looked at.
    """
    try:
        files = [path]
        if path.is_dir():
            files = sorted(f for f in path.iterdir() if file_format(f.name) and is_regular(f))
        elif weight_format(path.name) and not is_archive(path.name):
            files += sorted(f for f in path.parent.iterdir() if _goes_with_weights(f))
        facts = [(f.name, stat.st_size, stat.st_mtime_ns) for f in files if (stat := f.stat())]
    except OSError:
        return None
    lines = "\n".join(f"{name}\n{size} {time}" for name, size, time in facts)
    return hashlib.sha256(f"{path.absolute()}\n{lines}".encode(errors="surrogatepass")).hexdigest()


def _bundled(folder: Path, name: str) -> Snapshot:
    return Snapshot(folder.name, CheckpointRef("demo", name), step_of(folder.name), identity_of(folder))


def _goes_with_weights(path: Path) -> bool:
    return bool(file_format(path.name)) and not weight_format(path.name) and is_regular(path)


def _is_snapshot(path: Path, within: tuple[Path, ...]) -> bool:
    if path.name.startswith("."):
        return False
    if within and not is_below(path.resolve(), within):
        return False
    if path.is_dir():
        return holds_weights(path)
    return bool(file_format(path.name) and weight_format(path.name)) and is_numbered(path.name)


def _place(snapshot: Snapshot) -> tuple[bool, int, list[tuple[bool, int, str]]]:
    # "a10" comes after "a9": numbers in names count as numbers.
    parts = re.split(r"(\d+)", snapshot.name)
    natural = [(part.isdecimal(), int(part) if part.isdecimal() else 0, part) for part in parts]
    return snapshot.step is None, snapshot.step or 0, natural
