"""What the shared store tells of an upload: JSON that is checked before anything is fetched."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from inspector.store.names import file_format
from inspector.store.registry import clean_name

FORMAT = 1
MAX_FILES = 10_000
MAX_WARNINGS = 100
_SHA256 = re.compile(r"[0-9a-f]{64}")


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


def fingerprint_of(digests: Mapping[str, str]) -> str:
    """The fingerprint of files by their names and digests."""
    lines = "".join(f"{name}\n{digest}\n" for name, digest in sorted(digests.items()))
    return hashlib.sha256(lines.encode()).hexdigest()


def write_shared(upload: SharedUpload) -> bytes:
    """An upload as JSON."""
    return json.dumps({"format": FORMAT, **asdict(upload)}).encode()


def read_shared(data: bytes, fingerprint: str) -> SharedUpload | None:
    """Read what `write_shared` wrote; None if it is damaged, or of another fingerprint."""
    try:
        return _checked(json.loads(data), fingerprint)
    except (ValueError, TypeError, KeyError, RecursionError):
        return None


def _checked(stored: dict[str, Any], fingerprint: str) -> SharedUpload | None:
    files = tuple(SharedFile(**file) for file in stored["files"][:MAX_FILES])
    digests = {file.name: file.sha256 for file in files if _is_file(file)}
    if stored["format"] != FORMAT or len(digests) < len(stored["files"]):
        return None
    if fingerprint_of(digests) != fingerprint:
        return None
    warnings = tuple(text for text in stored["warnings"][:MAX_WARNINGS] if isinstance(text, str))
    return SharedUpload(fingerprint, clean_name(stored["name"]), str(stored["created"])[:40], files, warnings)


def _is_file(file: SharedFile) -> bool:
    return (
        file_format(file.name) is not None
        and type(file.nbytes) is int
        and file.nbytes >= 0
        and _SHA256.fullmatch(file.sha256) is not None
    )
