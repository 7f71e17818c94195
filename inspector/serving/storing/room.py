"""Make room for uploads, and refuse those for which there is none.

Room is made first of uploads that the shared store holds as well, which can be fetched again, then
of results, which can be computed again: those not used for longest. Other uploads are somebody's
own: they go only where the settings say so. None goes that is pinned or in use, by this server or
another one of the same home. One process makes room at a time, and asks the shared store before its
turn: the others do not wait for that.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from inspector.errors import CheckpointError
from inspector.serving.storing import registry
from inspector.serving.storing.owners import read_owners
from inspector.serving.storing.shared.remote import LISTED, open_remote
from inspector.settings import MB, Settings
from inspector.store.files import create_file, turn
from inspector.store.keeping.holding import is_used, last_used
from inspector.store.keeping.quota import RESERVED, Removable, account, evict, nbytes_of, results, used_nbytes
from inspector.store.keeping.shared import is_marked
from inspector.store.manifests.entries import UPLOADS
from inspector.store.manifests.manifest import StoredCheckpoint
from inspector.store.stored import list_checkpoints

NAMED = 3  # uploads that a refusal names at most
Shared = frozenset[str] | None  # fingerprints that the shared store lists; None: it is out of reach


def reserve_upload(nbytes: int, settings: Settings, owner: str = "", *, arrived: int = 0) -> tuple[str, Path]:
    """Start an upload for which there is room, and make room if there is not.

    Args:
        nbytes: That it will have.
        settings: Of the store.
        owner: As in `registry.new_upload`.
        arrived: Bytes that it has beside those, which the store holds already.

    Returns:
        As `registry.new_upload`.

    Raises:
        CheckpointError: If the store is full; the text says what to delete.
    """
    with _turn(nbytes, settings) as there:
        refuse_beyond_own(nbytes + arrived, settings, owner)
        _make_room(nbytes, settings, there)
        upload, folder = registry.new_upload(settings, owner)
        with create_file(folder / RESERVED) as file:
            file.truncate(nbytes)  # takes no room on the disk, but counts
    return upload, folder


def make_room(nbytes: int, settings: Settings) -> None:
    """Make room for more than the store holds now.

    Args:
        nbytes: How much more; negative: that much goes by itself.

    Raises:
        CheckpointError: If the store is full; the text says what to delete.
    """
    with _turn(nbytes, settings) as there:
        _make_room(nbytes, settings, there)


def check_room(nbytes: int, settings: Settings, owner: str = "") -> None:
    """See that there is room for an upload, or that it can be made; nothing is removed yet.

    Args:
        nbytes: That it will have.
        settings: Of the store.
        owner: Who will own it; empty: everybody.

    Raises:
        CheckpointError: If the store is full; the text says what to delete.
    """
    refuse_beyond_own(nbytes, settings, owner)
    missing = _missing(nbytes, settings)
    if missing <= 0:
        return
    there = _shared_now(settings)
    missing -= sum(candidate.nbytes for group in _candidates(settings, there) for candidate in group)
    if missing > 0:
        raise CheckpointError(_refusal(missing, nbytes, settings, there))


def grow_upload(folder: Path, nbytes: int, settings: Settings) -> None:
    """Make room for more of an upload that has begun.

    Args:
        folder: From `reserve_upload`.
        nbytes: That it will have.
        settings: Of the store.

    Raises:
        CheckpointError: If the store is full; the text says what to delete.
    """
    more = nbytes - nbytes_of(folder)
    with _turn(more, settings) as there:
        _make_room(more, settings, there)
        with create_file(folder / RESERVED) as file:
            file.truncate(nbytes)


@contextmanager
def _turn(nbytes: int, settings: Settings) -> Iterator[Shared]:
    """Take the store's turn with what the shared store has; it is asked only if there is no room as it is."""
    there: Shared = frozenset()
    asked = False
    while True:
        with turn(settings.home):
            if asked or _missing(nbytes, settings) <= 0:
                yield there
                return
        there, asked = _shared_now(settings), True


def _make_room(nbytes: int, settings: Settings, there: Shared) -> None:
    missing = _missing(nbytes, settings)
    for candidates in _candidates(settings, there):
        missing = evict(missing, candidates)
    if missing > 0:
        raise CheckpointError(_refusal(missing, nbytes, settings, there))


def refuse_beyond_own(nbytes: int, settings: Settings, owner: str, *, going: int = 0) -> None:
    """Refuse an upload with which one owner would have more than one may.

    Args:
        nbytes: That it will have.
        settings: Of the store.
        owner: Who will own it; empty: everybody, so it is not refused.
        going: Bytes of what is arriving that go when it is stored: an archive.

    Raises:
        CheckpointError: If it is too much; the text says how much is theirs.
    """
    if not owner:
        return
    entries = (_entry(each.fingerprint, settings) for each in list_checkpoints(settings))
    own = sum(nbytes_of(entry) for entry in entries if owner in (read_owners(entry) or ()))
    own += sum(map(nbytes_of, registry.sent_by(owner, settings))) - going
    if own + nbytes > settings.person_nbytes:
        raise CheckpointError(
            f"Your uploads on this server have {own / MB:,.1f} of the {settings.person_nbytes / MB:,.1f} MB that one "
            f"person may have, and this one has {nbytes / MB:,.1f} MB: if you no longer need some of them, delete "
            "those; otherwise ask the administrator (INSPECTOR_PERSON_MB)."
        )


def _missing(nbytes: int, settings: Settings) -> int:
    return used_nbytes(settings) + nbytes - settings.store_nbytes


def _candidates(settings: Settings, there: Shared) -> Iterator[Iterator[Removable]]:
    """What may go, the first group first; nothing is in two of them."""
    copies = [each for each in _marked(settings) if each.fingerprint in (there or ())]
    yield _uploads(copies, settings)
    yield results(settings)
    if settings.store_evict == "uploads":
        counted = {each.fingerprint for each in copies}
        yield _uploads((each for each in list_checkpoints(settings) if each.fingerprint not in counted), settings)


def _marked(settings: Settings) -> list[StoredCheckpoint]:
    """The uploads that the shared store had as well, when they were copied."""
    return [each for each in list_checkpoints(settings) if is_marked(_entry(each.fingerprint, settings), settings)]


def _shared_now(settings: Settings) -> Shared:
    """What the shared store lists now, as it may have lost what it had; it is asked only if there are copies."""
    if not _marked(settings):
        return frozenset()
    try:
        return frozenset(name.removesuffix(".json") for name in open_remote(settings).stamps(LISTED))
    except CheckpointError:
        return None


def _uploads(found: Iterable[StoredCheckpoint], settings: Settings) -> Iterator[Removable]:
    for stored in found:
        entry = _entry(stored.fingerprint, settings)
        if not stored.pinned and not is_used(entry):
            remove = partial(registry.delete_checkpoint, stored.fingerprint, settings=settings)
            yield Removable(last_used(entry), nbytes_of(entry), remove)


def _entry(fingerprint: str, settings: Settings) -> Path:
    return settings.home / UPLOADS / fingerprint


def _refusal(missing: int, nbytes: int, settings: Settings, there: Shared) -> str:
    quota = f"{settings.store_nbytes / MB:,.1f} MB"
    if nbytes > settings.store_nbytes:
        return (
            f"The upload has {nbytes / MB:,.1f} MB, but the store is limited to {quota}: set INSPECTOR_STORE_MB "
            "higher, or open the checkpoint as a folder."
        )
    return (
        f"The store is full: it would need {missing / MB:,.1f} MB more than its {quota}: "
        f"{_advice(missing, settings, there)}, or set INSPECTOR_STORE_MB higher."
    )


def _advice(missing: int, settings: Settings, there: Shared) -> str:
    """What makes room; nothing is to be deleted that goes by itself, and that every server would lose."""
    named, freed, copies = [], 0, 0
    for upload in account(settings).uploads:
        if upload.shared:
            copies += upload.nbytes
        elif (
            freed < missing
            and len(named) < NAMED
            and not upload.pinned
            and read_owners(_entry(upload.fingerprint, settings)) is None
        ):
            named.append(f"{upload.name} ({upload.nbytes / MB:,.1f} MB)")
            freed += upload.nbytes
    if copies >= missing:
        when = "it is reached again" if there is None else "nobody uses or pins them"
        return f"copies of uploads that the shared store has make room once {when}: wait for that"
    return f"delete {' and '.join(named)}, the least recently used" if named else "make room by deleting an upload"
