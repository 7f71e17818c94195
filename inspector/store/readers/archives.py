"""Unpack archives of strangers: chosen members only, written by ourselves, bytes counted."""

from __future__ import annotations

import gzip
import tarfile
import zipfile
import zlib
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from inspector.errors import CheckpointError
from inspector.progress import Progress
from inspector.settings import Settings
from inspector.store.names import ARCHIVE_SUFFIXES
from inspector.store.origins.sources import Source, choose_members, choose_snapshots
from inspector.store.readers.pieces import TarMember, TarPieces, ZipPieces
from inspector.text import quoted

CHUNK_NBYTES = 1 << 20
MAX_MEMBERS = 10_000
MAX_RATIO = 50  # trained weights hardly compress; text and JSON do by 3 to 20
FREE_NBYTES = 50_000_000  # unpacked bytes to which the ratio is not applied
MAX_READ_NBYTES = 4_000_000  # at once: a tar's names and a zip's directory are of any length
STEM = 40  # characters of an archive's name before each snapshot's
GZIP = b"\x1f\x8b"


@dataclass(frozen=True, slots=True)
class _Member:
    """A regular file of an archive."""

    name: str
    open: Callable[[], IO[bytes]]


def unpack(
    archive: Path, name: str, folder: Path, *, settings: Settings, progress: Progress, free_nbytes: int = FREE_NBYTES
) -> Source:
    """Unpack the files of a checkpoint into a fresh folder.

    Args:
        name: What the person calls it; its suffix tells the format.
        free_nbytes: Unpacked bytes to which no ratio is applied.

    Raises:
        CheckpointError: If a member is no plain file with a plain name, a name occurs twice, or
            the archive is broken or unpacks to more than is taken.
    """

    def choose(listed: list[str]) -> dict[str, _Chosen]:
        return {"": choose_members(listed)}

    (source,) = _unpack(archive, name, folder, choose, settings=settings, progress=progress, free_nbytes=free_nbytes)
    return source


def unpack_snapshots(archive: Path, name: str, folder: Path, *, settings: Settings, progress: Progress) -> list[Source]:
    """Unpack an archive that holds several snapshots, as `unpack` does with one checkpoint.

    Returns:
        The snapshots, each called by the archive's name, a slash, and its folder's.

    Raises:
        CheckpointError: As `unpack` does, and if there are not several.
    """
    return _unpack(archive, name, folder, choose_snapshots, settings=settings, progress=progress)


_Chosen = tuple[dict[str, str], tuple[str, ...]]  # as `choose_members` gives it


def _unpack(
    archive: Path,
    name: str,
    folder: Path,
    choose: Callable[[list[str]], dict[str, _Chosen]],
    *,
    settings: Settings,
    progress: Progress,
    free_nbytes: int = FREE_NBYTES,
) -> list[Source]:
    short = quoted(Path(name).name)
    packed_nbytes = archive.stat().st_size
    limit = _Limit(short, packed_nbytes, settings.upload_nbytes, free_nbytes)
    with _opened(archive, short, limit) as members:
        listed = [member.name for member in members]
        parts = choose(listed)
        by_name = {member.name: member for member in members}
        if len(by_name) < len(listed):
            twice = Counter(listed).most_common(1)[0][0]
            raise CheckpointError(f"{quoted(twice)} occurs twice in {short}: pack it again.")
        places = {
            part: folder / str(number) if part else folder  # one checkpoint has no part
            for number, part in enumerate(parts)
        }
        targets = {
            member: places[part] / base for part, (chosen, _) in parts.items() for base, member in chosen.items()
        }
        for place in places.values():
            place.mkdir(exist_ok=True)
        # In the archive's order: a compressed tar is read again from its start for each step back.
        wanted = [member for member in members if member.name in targets]
        nbytes = 0
        for number, member in enumerate(wanted, start=1):
            progress((number - 1) / len(wanted), f"Unpacking {number} of {len(wanted)} files")
            nbytes = _write(member, targets[member.name], nbytes, limit)
    stem = next(Path(name).name[: -len(end)] for end in ARCHIVE_SUFFIXES if name.lower().endswith(end))
    return [
        Source(
            "upload",
            f"{stem[:STEM]}/{part}" if part else stem,
            {base: places[part] / base for base in chosen},
            ignored,
            owned=True,
        )
        for part, (chosen, ignored) in parts.items()
    ]


@dataclass(frozen=True, slots=True)
class _Limit:
    """How much an archive may unpack to: what is taken, and what is plausible."""

    name: str
    packed_nbytes: int
    nbytes: int
    free_nbytes: int

    def check(self, unpacked_nbytes: int) -> None:
        if unpacked_nbytes > self.nbytes:
            raise CheckpointError(
                f"{self.name} unpacks to more than the limit of {self.nbytes:,} bytes: open the "
                "checkpoint as a folder or from the hub instead."
            )
        if unpacked_nbytes > max(self.free_nbytes, MAX_RATIO * self.packed_nbytes):
            raise CheckpointError(
                f"{self.name} unpacks to more than {MAX_RATIO} times its {self.packed_nbytes:,} "
                "bytes, which weights never do: check the archive."
            )


def _write(member: _Member, target: Path, nbytes: int, limit: _Limit) -> int:
    """Write one file; takes and gives the bytes that the archive has unpacked to so far."""
    with member.open() as reader, target.open("xb") as writer:
        while chunk := reader.read(CHUNK_NBYTES):
            nbytes += len(chunk)
            limit.check(nbytes)
            writer.write(chunk)
    return nbytes


@contextmanager
def _opened(archive: Path, name: str, limit: _Limit) -> Iterator[list[_Member]]:
    """The archive's files, with the errors of its libraries translated."""
    try:
        with archive.open("rb") as file:
            start = file.read(4)
            file.seek(0)
            if start in {b"PK\x03\x04", b"PK\x05\x06"}:
                pieces = ZipPieces(file, MAX_READ_NBYTES)
                with zipfile.ZipFile(pieces) as opened:  # type: ignore[arg-type]
                    yield _zip_members(opened, name)
            else:
                plain = gzip.GzipFile(fileobj=file) if start.startswith(GZIP) else file
                tar = TarPieces(plain, limit, MAX_READ_NBYTES)
                with tarfile.open(fileobj=tar, mode="r:", tarinfo=TarMember) as opened:  # type: ignore[arg-type]
                    yield _tar_members(opened, name)
    except (
        zipfile.BadZipFile,
        tarfile.TarError,
        gzip.BadGzipFile,
        zlib.error,
        EOFError,
        NotImplementedError,
        RuntimeError,
        ValueError,
        OverflowError,
    ) as error:
        raise CheckpointError(
            f"{name} is broken, encrypted or not an archive: get it again, or pack it as a plain .zip."
        ) from error


def _zip_members(archive: zipfile.ZipFile, name: str) -> list[_Member]:
    infos = archive.infolist()
    _refuse_many(len(infos), name)
    members = []
    for info in infos:
        kind = (info.external_attr >> 16) & 0o170000
        if kind not in {0, 0o100000, 0o040000}:
            raise CheckpointError(_not_plain(info.filename, name))
        if info.compress_type not in {zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED}:
            raise NotImplementedError(info.compress_type)  # its library unpacks these unbounded
        if not info.filename.endswith("/"):  # its library fails on a member without a name
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
        raise CheckpointError(f"{name} has more than {MAX_MEMBERS:,} members: pack only the checkpoint's folder.")


def _not_plain(member: str, name: str) -> str:
    return f"{quoted(member)} in {name} is a link, a device or a pipe, not a plain file: pack the files themselves."
