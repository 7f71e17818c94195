"""Tell files apart: by every byte, or by samples where there are too many bytes to read first.

The content of a file is its SHA-256. An upload is always known by it, and so is a checkpoint whose
files have `WHOLE_NBYTES` or less in all. A larger one that is opened where it lies is not read for
a first answer: each weight file is known by a *quick* digest, a SHA-256 over

- its size,
- its header (of a safetensors file; of GGUF the first `GGUF_HEAD` bytes, of others `EDGE`) and its last `EDGE` bytes,
  where a .bin keeps the checksum of each of its records,
- `PAGES` pages of `PAGE` bytes, evenly spaced,
- and its device, inode and times of change (mtime, ctime); in the hub's own cache instead the name of
  its blob, which the hub's library took from the hub.

What it sees: another file under the same name, an edit in place, a training step, another size,
dtype or order. What it does not see: bytes between the samples that somebody changed without a
trace in the inode and the times; in the hub's cache, whose blobs nothing changes, an edit of a few
bytes between the samples. A blob's name is never shown as a SHA-256: nobody here computed it. Two
copies of one large file have two quick digests, as nobody has read whether they are equal.
Configurations, tokenizers and indexes always count by every byte.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import FIRST_EXCEPTION, Future, ThreadPoolExecutor, wait
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from inspector.errors import CheckpointError
from inspector.progress import Progress, throttled, time_left
from inspector.store.files import write_atomically
from inspector.store.manifests.documents import is_fingerprint, read_bytes
from inspector.store.names import weight_format
from inspector.store.origins.hub import hub_folder
from inspector.store.readers.ranges import stamp_of
from inspector.text import bytes_text

WHOLE_NBYTES = 100_000_000  # of a checkpoint's files: a tenth of a second
EDGE = 1 << 16
PAGE, PAGES = 1 << 12, 64
MAX_HEADER = 1 << 25  # more is refused when the header is read
GGUF_HEAD = 1 << 24  # of a file whose header has no length: most vocabularies and lists of tensors
PIECE = 1 << 20
THREADS = 4
POLL_SECONDS = 0.2
REMEMBERED = 10_000  # files
HASHES = "hashes.json"  # with what was computed of a checkpoint: digests of its files where they lie


@dataclass(frozen=True, slots=True)
class Identity:
    """What tells a file from others."""

    sha256: str | None  # of the whole file; None: nobody has asked for it
    quick: str | None  # None: the SHA-256 itself

    @property
    def digest(self) -> str:
        """The one that counts."""
        return self.quick or self.sha256 or ""


def fingerprint_of(digests: Mapping[str, str]) -> str:
    """The fingerprint of a checkpoint's files by their names and digests."""
    lines = "".join(f"{name}\n{digest}\n" for name, digest in sorted(digests.items()))
    return hashlib.sha256(lines.encode()).hexdigest()


_remembered: dict[tuple[int, ...], str] = {}  # of files that this process received, oldest first


def remember(path: Path, sha256: str) -> None:
    """Keep the SHA-256 of a file that was hashed while it was written, wherever it is moved, until it changes."""
    _remembered[_size_and_stamp(path)] = sha256
    while len(_remembered) > REMEMBERED:
        del _remembered[next(iter(_remembered))]


_verified: set[tuple[object, ...]] = set()  # files whose bytes this process has found to be those of a digest


def verify(files: Mapping[str, tuple[Path, str]], *, progress: Progress) -> None:
    """Compare stored files with the digests of what was uploaded, each once in this process.

    Args:
        files: By name, where a file lies and its SHA-256.

    Raises:
        CheckpointError: If one has other bytes.
    """
    known = {name: (*_size_and_stamp(path), digest) for name, (path, digest) in files.items()}
    new = {name: files[name][0] for name, each in known.items() if each not in _verified}
    for name, digest in hash_files(new, progress=progress).items():
        if digest != files[name][1]:
            raise CheckpointError(
                f"{name} in the store is no longer what was uploaded: delete the upload, and upload it again."
            )
        _verified.add(known[name])


class BackgroundHasher:
    """Takes the quick digests of weight files that lie where they are opened, while a worker reads their headers.

    Args:
        find: Lists the files by name; called in the thread that hashes them.
    """

    def __init__(self, find: Callable[[], Mapping[str, Path]]) -> None:
        self._find = find
        self._found: dict[Path, tuple[tuple[int, ...], str]] = {}
        self._thread = threading.Thread(target=self._look, name="hashing", daemon=True)
        self._thread.start()

    def digest(self, path: Path, name: str) -> str:
        """The quick digest of a file, taken anew if the file has changed since."""
        self._thread.join()
        known, digest = self._found.get(path, ((), ""))
        return digest if known == _size_and_stamp(path) else quick_digest(path, name)

    def _look(self) -> None:
        with suppress(OSError, CheckpointError):  # whoever opens them says what is wrong
            files = self._find()
            weights = {name: path for name, path in files.items() if weight_format(name)}
            if sum(path.stat().st_size for path in files.values()) > WHOLE_NBYTES:
                for name, path in weights.items():
                    self._found[path] = _size_and_stamp(path), quick_digest(path, name)


def _size_and_stamp(path: Path) -> tuple[int, ...]:
    return path.stat().st_size, *stamp_of(path)


def identify(
    files: Mapping[str, Path],
    *,
    owned: bool,
    progress: Progress,
    ahead: BackgroundHasher | None = None,
    received: bool = False,
    sampled: bool = False,
) -> dict[str, Identity]:
    """Tell what each file is known by.

    Args:
        files: By name.
        owned: Whether they are an upload's: by every byte.
        progress: Told what is looked into.
        ahead: Has taken quick digests of some already.
        received: Whether this process alone has written them: by what it remembers. Of other files somebody could
            have forged the time, in an inode that was free again.
        sampled: Whether weights count by samples however small they are: their bytes are not there yet.
    """
    weights = {name for name in files if weight_format(name)}
    small = sum(path.stat().st_size for path in files.values()) <= WHOLE_NBYTES
    if owned or (small and not sampled):
        weights.clear()
    known = _remembered if received else {}
    digests = {name: digest for name, path in files.items() if (digest := known.get(_size_and_stamp(path)))}
    whole = {name: path for name, path in files.items() if name not in weights and name not in digests}
    digests |= hash_files(whole, progress=progress)
    found = {name: Identity(digest, None) for name, digest in digests.items() if name not in weights}
    tell = throttled(progress)
    for number, name in enumerate(sorted(weights), start=1):
        tell(None, f"Sampling file {number} of {len(weights)}")
        digest = ahead.digest if ahead else quick_digest
        found[name] = Identity(None, digest(files[name], name))
    return found


def quick_digest(path: Path, name: str) -> str:
    """The quick digest of a weight file, as hex.

    Args:
        name: What the checkpoint calls it, whose suffix says where its header ends.
    """
    stat = path.stat()
    known = _blob(path) or f"{stat.st_dev} {stat.st_ino} {stat.st_mtime_ns} {stat.st_ctime_ns}"
    digest = hashlib.sha256(f"quick\n{stat.st_size}\n{known}\n".encode())
    with path.open("rb") as file:
        for begin, count in _samples(file, name, stat.st_size):
            file.seek(begin)
            digest.update(file.read(count))
    return digest.hexdigest()


def _samples(file: BinaryIO, name: str, nbytes: int) -> Iterator[tuple[int, int]]:
    """Where the samples of a file begin, and how many bytes each has."""
    head = EDGE
    if weight_format(name) == "safetensors":
        head = 8 + min(int.from_bytes(file.read(8), "little"), MAX_HEADER)
    elif weight_format(name) == "gguf":
        head = GGUF_HEAD
    yield 0, head
    for number in range(1, PAGES + 1):
        yield number * nbytes // (PAGES + 1), PAGE
    yield max(0, nbytes - EDGE), EDGE


def _blob(path: Path) -> str | None:
    """The name of a blob of the hub's own cache, a SHA-256; None for any other file, however its folders are called."""
    real = path.resolve()
    repository = real.parent.parent
    is_blob = real.parent.name == "blobs" and repository.name.startswith("models--") and is_fingerprint(real.name)
    return real.name if is_blob and repository.parent == hub_folder().resolve() else None


def hash_file(path: Path, told: Callable[[int], None] = lambda nbytes: None) -> str:
    """The SHA-256 of a file, as hex.

    Args:
        told: Called with the size of each piece that was read.
    """
    digest, piece = hashlib.sha256(), memoryview(bytearray(PIECE))
    with path.open("rb", buffering=0) as file:
        while count := file.readinto(piece):
            digest.update(piece[:count])
            told(count)
    return digest.hexdigest()


def hash_files(files: Mapping[str, Path], *, progress: Progress) -> dict[str, str]:
    """The SHA-256 of each file, by name; a few files at a time."""
    return dict(_hashed(files, progress))


def _hashed(files: Mapping[str, Path], progress: Progress) -> Iterator[tuple[str, str]]:
    """Names and digests, each as soon as it is there."""
    total = sum(path.stat().st_size for path in files.values())
    read: list[int] = []  # sizes of pieces: appending is safe among threads
    began = time.monotonic()
    with ThreadPoolExecutor(max_workers=min(THREADS, os.cpu_count() or 1)) as pool:
        waiting: dict[Future[str], str] = {
            pool.submit(hash_file, path, read.append): name for name, path in files.items()
        }
        try:
            while waiting:
                done, _ = wait(waiting, timeout=POLL_SECONDS, return_when=FIRST_EXCEPTION)
                for each in done:
                    yield waiting.pop(each), each.result()
                progress(*_told(sum(read), total, time.monotonic() - began))
        finally:
            pool.shutdown(wait=False, cancel_futures=True)


def _told(done: int, total: int, seconds: float) -> tuple[float, str]:
    text = f"Hashing: {bytes_text(done)} of {bytes_text(total)}"
    if done and seconds > 1:
        left = (total - done) * seconds / done
        text += f" ({bytes_text(done / seconds)}/s, {time_left(left)})"
    return done / max(total, 1), text


class HashCache:
    """Digests of files that have not changed since, so that big weights are hashed once.

    A file is known by its path, size, time of change and inode. Each digest is a line of its own,
    added when it is computed; what cannot be read as one counts as not there.
    """

    MAX_ENTRIES = 2_000
    MAX_NBYTES = 10_000_000  # a longer file counts as empty, and is written anew

    def __init__(self, path: Path) -> None:
        self._path = path

    def digests(self, files: Mapping[str, Path], *, progress: Progress) -> dict[str, str]:
        """The SHA-256 of each file by name, from the cache where the file is the same.

        Raises:
            CheckpointError: If a file changes while it is read.
        """
        known = self._read()
        keys = {name: _key(path) for name, path in files.items()}
        found = {name: known[key] for name, key in keys.items() if key in known}
        missing = {name: path for name, path in files.items() if name not in found}
        for name, digest in _hashed(missing, progress):
            if _key(files[name]) != keys[name]:
                raise CheckpointError(f"{name} changed while it was read: open it again.")
            found[name] = known[keys[name]] = digest
            with contextlib.suppress(OSError):  # of a full disk: then it is computed again the next time
                self._add(keys[name], digest)
        if len(known) > self.MAX_ENTRIES:
            lines = [json.dumps({key: digest}) for key, digest in list(known.items())[-self.MAX_ENTRIES :]]
            write_atomically(self._path, "\n".join(lines) + "\n")
        return found

    def _add(self, key: str, digest: str) -> None:
        self._path.parent.mkdir(parents=True, exist_ok=True)
        line = json.dumps({key: digest})
        if self._path.is_symlink():  # not ours
            self._path.unlink()
        with suppress(PermissionError), self._path.open("a", encoding="utf-8") as file:  # another user's
            file.write(f"\n{line}\n")  # the line before may have been cut off

    def _read(self) -> dict[str, str]:
        try:
            lines = read_bytes(self._path, limit=self.MAX_NBYTES).decode("utf-8", "replace").splitlines()
        except (OSError, ValueError):
            return {}
        return {key: digest for line in lines for key, digest in _entries(line)}


def _entries(line: str) -> Iterator[tuple[str, str]]:
    try:
        known = json.loads(line)
    except (ValueError, RecursionError):
        return
    if isinstance(known, dict):
        yield from ((k, v) for k, v in known.items() if isinstance(v, str) and is_fingerprint(v))


def _key(path: Path) -> str:
    stat = path.stat()
    return f"{path.resolve()}|{stat.st_size}|{stat.st_mtime_ns}|{stat.st_ino}"
