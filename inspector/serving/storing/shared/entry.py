"""What the shared store tells of an upload: JSON that is checked before anything is fetched."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import Any

from inspector.store.hashing import fingerprint_of
from inspector.store.manifests.documents import DamagedError, as_digest, as_list, as_size, as_text, fields_of
from inspector.store.names import clean_name, file_format

FORMAT = 1
MAX_FILES = 10_000
MAX_WARNINGS = 100  # that are shown
MAX_LISTED_WARNINGS = 10_000
MAX_TIME = 40  # characters


@dataclass(frozen=True, slots=True)
class SharedFile:
    """One file of an upload, as it was uploaded."""

    name: str
    nbytes: int
    sha256: str


@dataclass(frozen=True, slots=True)
class SharedUpload:
    """One upload of the shared store."""

    fingerprint: str
    name: str
    created: str  # ISO 8601, UTC
    files: tuple[SharedFile, ...]
    warnings: tuple[str, ...]  # of its staging, some of which name files that were left out

    @property
    def nbytes(self) -> int:
        """Bytes of all files."""
        return sum(file.nbytes for file in self.files)


def write_shared(upload: SharedUpload) -> bytes:
    """An upload as JSON."""
    return json.dumps({"format": FORMAT, **asdict(upload)}).encode()


def read_shared(data: bytes, fingerprint: str) -> SharedUpload | None:
    """Read what `write_shared` wrote; None if it is damaged, or of another fingerprint."""
    try:
        return _checked(json.loads(data), fingerprint)
    except (ValueError, RecursionError):
        return None


def _checked(stored: Any, fingerprint: str) -> SharedUpload:
    fields = fields_of(stored, ("format", "fingerprint", "name", "created", "files", "warnings"))
    files = as_list(fields["files"], _read_file, most=MAX_FILES)
    digests = {file.name: file.sha256 for file in files}
    if type(fields["format"]) is not int or fields["format"] != FORMAT or len(digests) < len(files):
        raise DamagedError("format")
    if not fingerprint_of(digests) == fields["fingerprint"] == fingerprint:
        raise DamagedError("fingerprint")
    return SharedUpload(
        fingerprint=fingerprint,
        name=clean_name(as_text(fields["name"])),
        created=as_text(fields["created"])[:MAX_TIME],
        files=files,
        warnings=as_list(fields["warnings"], as_text, most=MAX_LISTED_WARNINGS)[:MAX_WARNINGS],
    )


def _read_file(stored: Any) -> SharedFile:
    file = fields_of(stored, ("name", "nbytes", "sha256"))
    if file_format(as_text(file["name"])) is None:
        raise DamagedError("name")
    return SharedFile(file["name"], as_size(file["nbytes"]), as_digest(file["sha256"]))
