"""Unpack archives of strangers: chosen members only, written by ourselves, bytes counted."""

from __future__ import annotations

import lzma
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from inspector.errors import CheckpointError
from inspector.settings import Settings
from inspector.store.names import ARCHIVE_SUFFIXES, visible
from inspector.store.sources import Source, choose_members

Progress = Callable[[float | None, str], None]
CHUNK_NBYTES = 1 << 20
MAX_MEMBERS = 10_000
MAX_RATIO = 50  # trained weights hardly compress; text and JSON do by 3 to 20
FREE_NBYTES = 50_000_000  # unpacked bytes to which the ratio is not applied


@dataclass(frozen=True, slots=True)
class _Member:
    """A regular file of an archive."""

    name: str
    open: Callable[[], IO[bytes]]


def unpack(
    archive: Path, name: str, folder: Path, *, settings: Settings, progress: Progress
) -> Source:
    """Unpack the files of a checkpoint into a fresh folder.

    Args:
        archive: The file.
        name: What the person calls it; its suffix tells the format.
        folder: Takes the files.
        settings: The largest upload.
        progress: Told how far it has come.

    Raises:
        CheckpointError: If a member is no plain file with a plain name, a name occurs twice, or
            the archive is broken or unpacks to more than is taken.
    """
    short = visible(Path(name).name)
    with _opened(archive, short) as members:
        listed = [member.name for member in members]
        chosen, ignored = choose_members(listed)
        by_name = {member.name: member for member in members}
        if len(by_name) < len(listed):
            twice = next(member for member in listed if listed.count(member) > 1)
            raise CheckpointError(f"{visible(twice)} is twice in {short}: pack it again.")
        budget = _Budget(short, archive.stat().st_size, settings.upload_nbytes)
        for number, (base, member) in enumerate(sorted(chosen.items()), start=1):
            progress((number - 1) / len(chosen), f"Unpacking {number} of {len(chosen)} files")
            _write(by_name[member], folder / base, budget)
    files = {base: folder / base for base in chosen}
    stem = next(
        Path(name).name[: -len(end)] for end in ARCHIVE_SUFFIXES if name.lower().endswith(end)
    )
    return Source("upload", stem, files, ignored, owned=True)


class _Budget:
    """Counts unpacked bytes against what is taken and what is plausible."""

    def __init__(self, name: str, packed_nbytes: int, limit: int) -> None:
        self._name, self._packed, self._limit, self._nbytes = name, packed_nbytes, limit, 0

    def spend(self, nbytes: int) -> None:
        self._nbytes += nbytes
        if self._nbytes > self._limit:
            raise CheckpointError(
                f"{self._name} unpacks to more than {self._limit:,} bytes, the most that is "
                "taken: open the checkpoint as a folder or from the hub instead."
            )
        if self._nbytes > max(FREE_NBYTES, MAX_RATIO * self._packed):
            raise CheckpointError(
                f"{self._name} unpacks to more than {MAX_RATIO} times its {self._packed:,} "
                "bytes, as no weights do: check the archive."
            )


def _write(member: _Member, target: Path, budget: _Budget) -> None:
    with member.open() as reader, target.open("xb") as writer:
        while chunk := reader.read(CHUNK_NBYTES):
            budget.spend(len(chunk))
            writer.write(chunk)


@contextmanager
def _opened(archive: Path, name: str) -> Iterator[list[_Member]]:
    """The archive's files, with the errors of its libraries translated."""
    try:
        with archive.open("rb") as file:
            is_zip = file.read(4) in {b"PK\x03\x04", b"PK\x05\x06"}
            file.seek(0)
            opened: Any = zipfile.ZipFile(file) if is_zip else tarfile.open(fileobj=file)
            with closing(opened):
                yield _zip_members(opened, name) if is_zip else _tar_members(opened, name)
    except (
        zipfile.BadZipFile, tarfile.TarError, zlib.error, lzma.LZMAError, EOFError,
        NotImplementedError, RuntimeError, ValueError, OverflowError,
    ) as error:  # fmt: skip
        raise CheckpointError(
            f"{name} is broken, encrypted or no archive: get it again, or pack it as a plain .zip."
        ) from error


def _zip_members(archive: zipfile.ZipFile, name: str) -> list[_Member]:
    infos = archive.infolist()
    _refuse_many(len(infos), name)
    members = []
    for info in infos:
        kind = (info.external_attr >> 16) & 0o170000
        if kind not in {0, 0o100000, 0o040000}:
            raise CheckpointError(_not_plain(info.filename, name))
        if not info.is_dir():
            members.append(_Member(info.orig_filename, lambda info=info: archive.open(info)))
    return members


def _tar_members(archive: tarfile.TarFile, name: str) -> list[_Member]:
    members = []
    for number, info in enumerate(archive, start=1):
        _refuse_many(number, name)
        if not (info.isreg() or info.isdir()) or info.issparse():
            raise CheckpointError(_not_plain(info.name, name))
        if info.isreg():
            members.append(_Member(info.name, lambda info=info: _extract(archive, info)))
    return members


def _extract(archive: tarfile.TarFile, info: tarfile.TarInfo) -> IO[bytes]:
    reader = archive.extractfile(info)
    if reader is None:
        raise tarfile.TarError(info.name)
    return reader


def _refuse_many(count: int, name: str) -> None:
    if count > MAX_MEMBERS:
        raise CheckpointError(
            f"{name} has more than {MAX_MEMBERS:,} members: pack the checkpoint's folder alone."
        )


def _not_plain(member: str, name: str) -> str:
    return (
        f"{visible(member)} in {name} is a link, a device or a pipe and no plain file: "
        "pack the files themselves."
    )
