"""The headers of a model on the hub: what says its tensors' names, shapes and dtypes, without their numbers.

A process with the network asks for ranges of bytes and parses nothing. What it brings is laid out like a checkpoint's
folder whose weight files are holes behind their headers.
"""

from __future__ import annotations

import base64
import hashlib
import os
import re
import time
from collections.abc import Collection, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path, PurePosixPath
from shutil import copyfile
from typing import Any

from inspector.errors import CheckpointError
from inspector.progress import Progress
from inspector.settings import Settings
from inspector.store.files import put_folder, workspace
from inspector.store.names import HEADERS, INNER, PLAIN_NAME, weight_format
from inspector.store.origins.hub import (
    BETWEEN,
    COMMIT,
    COMMIT_DIGITS,
    WANTED,
    asking,
    bound_silence,
    endpoint,
    versions_folder,
)
from inspector.store.readers.safetensors import MAX_HEADER_NBYTES

SMALL_NBYTES = 64_000_000  # weights that are fetched whole: a second or two
MOST_NBYTES = 2 * MAX_HEADER_NBYTES  # of all headers; half of it may be the ends of first ranges
AT_ONCE = 16  # requests
SLOWEST = 120.0  # seconds of a range
FINGERPRINT_DIGITS = 64  # of the name of what is kept
LENGTH = 8  # bytes at the beginning, which tell how long the header is
FIRST_NBYTES = 4_000_000  # of the first ranges together, in which most headers end
FIRST = (4_096, 131_072)  # bytes of a first range, at least and at most
RANGE = re.compile(r"bytes (\d+)-(\d+)/(\d+)")
NO_RANGE = (
    "The hub did not send the range of {name} that was asked for ({why}): try again, or fetch the model whole with "
    "`hf download`."
)


@dataclass(frozen=True, slots=True)
class _File:
    """A weight file on the hub."""

    model: str
    commit: str
    name: str  # with its folder
    nbytes: int


def fetch_headers(named: str, known: Collection[str], *, progress: Progress) -> dict[str, Any] | None:
    """Ask the hub for the small files of a model and for the headers of its safetensors.

    Args:
        named: The hub's name of it, "org/name", or of a version, "org/name@revision".
        known: Keys of what was fetched before, as `key_of` makes them.

    Returns:
        Plain values for `put_headers`; None where the model is to be fetched whole: small, stored otherwise, or out
        of reach.

    Raises:
        CheckpointError: If the hub refuses, or sends something else than was asked for.
    """
    from huggingface_hub import hf_hub_download, try_to_load_from_cache

    bound_silence()
    model, _, revision = named.partition(BETWEEN)
    progress(None, f"Requesting {model} from the hub")
    with asking(model, revision):
        if (found := _listed(model, revision)) is None:
            return None
        commit, sizes = found
        weights = [_File(model, commit, name, sizes[name]) for name in sizes if weight_format(Path(name).name)]
        held = (try_to_load_from_cache(model, each.name, revision=commit) for each in weights)
        if sum(each.nbytes for each in weights) <= SMALL_NBYTES or all(isinstance(each, str) for each in held):
            return None
        if key_of(model, commit) in known:
            return {"commit": commit}
        small = [name for name in sizes if not weight_format(Path(name).name)]
        headers: dict[str, tuple[int, str]] = {}
        total = 0
        first = min(max(FIRST_NBYTES // len(weights), FIRST[0]), FIRST[1])
        with ThreadPoolExecutor(AT_ONCE) as pool:
            fetch = partial(hf_hub_download, model, revision=commit, endpoint=endpoint())
            for _ in pool.map(fetch, small):
                pass
            for each, header in zip(weights, pool.map(partial(_header, first=first), weights), strict=True):
                total += len(header)
                if total > MOST_NBYTES:
                    pool.shutdown(cancel_futures=True)
                    raise CheckpointError(
                        f"The headers of {model} have more than {MOST_NBYTES:,} bytes: check that it is a model."
                    )
                headers[each.name] = (each.nbytes, base64.b64encode(header).decode())
                progress(len(headers) / len(weights), f"Fetching header {len(headers):,} of {len(weights):,}")
    return {"commit": commit, "small": small, "headers": headers}


def bring_headers(named: str, settings: Settings, *, progress: Progress) -> Path | None:
    """Fetch the headers of a model, or find them in the store, and lay them out there.

    Args:
        named: As `fetch_headers` takes it.
        settings: Where the store is.
        progress: Told what is fetched.

    Returns:
        The folder that holds them; None where the model is to be fetched whole.

    Raises:
        CheckpointError: As `fetch_headers` and `put_headers` do.
    """
    found = fetch_headers(named, known_headers(named, settings), progress=progress)
    return None if found is None else put_headers(named, found, settings)


def _listed(model: str, revision: str) -> tuple[str, dict[str, int]] | None:
    """The commit, and the bytes of each file that is read; None where the hub is out of reach."""
    from httpx2 import HTTPError
    from huggingface_hub import HfApi
    from huggingface_hub.errors import OfflineModeIsEnabled, RepositoryNotFoundError, RevisionNotFoundError
    from huggingface_hub.hf_api import RepoFile
    from huggingface_hub.utils import filter_repo_objects

    hub = HfApi(endpoint=endpoint())
    try:
        commit = hub.model_info(model, revision=revision or None).sha or ""
        if not COMMIT.fullmatch(commit):
            raise CheckpointError(f"The hub names no commit of {model}: try again.")
        listed = [*hub.list_repo_tree(model, revision=commit, recursive=True)]
    except (RepositoryNotFoundError, RevisionNotFoundError):  # or a gated one
        raise
    except (HTTPError, OfflineModeIsEnabled, ConnectionError, TimeoutError):
        return None  # what is in the cache answers, or the sentence that it is not there
    sizes = {each.path: each.size for each in listed if isinstance(each, RepoFile) and _is_plain(each.path)}
    patterns = [*WANTED, *(f"0_*/{each}" for each in WANTED)]
    return commit, {name: sizes[name] for name in filter_repo_objects(sizes, allow_patterns=patterns)}


def key_of(model: str, commit: str) -> str:
    """The name of the folder that keeps what was fetched of a commit: 64 hex digits that begin with it."""
    return commit + hashlib.sha256(model.encode()).hexdigest()[: FINGERPRINT_DIGITS - COMMIT_DIGITS]


def known_headers(named: str, settings: Settings) -> tuple[str, ...]:
    """Keys of what is kept of a model's versions."""
    folder, key = settings.home / HEADERS, key_of(named.partition(BETWEEN)[0], "")
    kept = (each.name for each in folder.iterdir()) if folder.is_dir() else ()
    return tuple(sorted(each for each in kept if each.endswith(key)))


def put_headers(named: str, found: Mapping[str, Any], settings: Settings) -> Path:
    """Lay out what `fetch_headers` brought as a checkpoint's folder, in the store.

    Raises:
        CheckpointError: If the values are not such.
    """
    model, commit = named.partition(BETWEEN)[0], str(found.get("commit"))
    if not COMMIT.fullmatch(commit):
        raise CheckpointError(f"The hub names no commit of {model}: try again.")
    target = settings.home / HEADERS / key_of(model, commit)
    if "headers" not in found and target.is_dir():
        os.utime(target)
        return target
    if "headers" not in found:
        raise CheckpointError(f"What was known of {model} has just been removed to make room: try again.")
    fetched = versions_folder(model) / commit
    with workspace(settings.home) as folder:
        built = folder / "headers"
        for name in filter(_is_plain, found.get("small", ())):
            if (fetched / name).is_file():
                copyfile(fetched / name, _place(built, name))
        for name, (nbytes, header) in found.get("headers", {}).items():
            if not _is_plain(name):
                raise CheckpointError(f"The hub names a file of {model} as no checkpoint's is: download it yourself.")
            with _place(built, name).open("wb") as file:
                file.write(base64.b64decode(header))
                file.truncate(int(nbytes))
        put_folder(built, target, keep=lambda there: True)
    return target


def _place(folder: Path, name: str) -> Path:
    (folder / name).parent.mkdir(parents=True, exist_ok=True)
    return folder / name


def _is_plain(name: str) -> bool:
    """Whether a file lies at the top, or in the folder of sentence-transformers' transformer."""
    *folders, last = PurePosixPath(name).parts
    return bool(PLAIN_NAME.fullmatch(last)) and (
        not folders or (len(folders) == 1 and bool(INNER.fullmatch(folders[0])))
    )


def _header(file: _File, *, first: int) -> bytes:
    """The bytes of a safetensors file up to the end of its header, and perhaps some more."""
    begun = _bytes(file, 0, min(first, file.nbytes))
    end = LENGTH + int.from_bytes(begun[:LENGTH], "little")
    if end <= len(begun) or end > min(file.nbytes, LENGTH + MAX_HEADER_NBYTES):  # whoever reads it says what is wrong
        return begun
    return begun + _bytes(file, len(begun), end)


def _bytes(file: _File, begin: int, end: int) -> bytes:
    """A range of a file: exactly that, or a refusal.

    The place where the bytes lie is asked for with the range, as it may be signed for nothing else. The person's token
    goes to the hub alone.
    """
    from huggingface_hub import get_hf_file_metadata, get_session, hf_hub_url
    from huggingface_hub.utils import build_hf_headers

    place_of_hub = endpoint()
    url = hf_hub_url(file.model, file.name, revision=file.commit, endpoint=place_of_hub)
    asked = {"Range": f"bytes={begin}-{end - 1}", "Accept-Encoding": "identity"}
    place = get_hf_file_metadata(url, endpoint=place_of_hub, headers=asked).location
    headers = (build_hf_headers() if _host(place) == _host(url) else {}) | asked
    found, started = bytearray(), time.monotonic()
    with get_session().stream("GET", place, headers=headers, follow_redirects=False) as answer:
        said = RANGE.fullmatch(answer.headers.get("Content-Range", ""))
        if answer.status_code != 206:
            raise CheckpointError(NO_RANGE.format(name=file.name, why=f"status {answer.status_code}"))
        if said is None or tuple(map(int, said.groups())) != (begin, end - 1, file.nbytes):
            raise CheckpointError(NO_RANGE.format(name=file.name, why="another range"))
        if answer.headers.get("Content-Encoding", "identity") != "identity":
            raise CheckpointError(NO_RANGE.format(name=file.name, why="compressed"))
        for piece in answer.iter_raw():
            found += piece
            if len(found) > end - begin or time.monotonic() - started > SLOWEST:
                break
    if len(found) != end - begin:
        raise CheckpointError(NO_RANGE.format(name=file.name, why=f"{len(found):,} of {end - begin:,} bytes"))
    return bytes(found)


def _host(url: str) -> tuple[str, str]:
    from httpx2 import URL

    found = URL(url)
    return found.scheme, found.netloc.decode()
