"""The uploads that somebody sees: their own and shared ones of this server, and all of the shared store."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

from inspector.errors import CheckpointError
from inspector.results.checkpoint import Opened
from inspector.serving.log import DIGITS, digest, record
from inspector.serving.storing import owners, registry
from inspector.serving.storing.owners import Requester, read_owners
from inspector.serving.storing.shared import publishing as shared
from inspector.serving.storing.shared.entry import write_shared
from inspector.serving.storing.shared.listing import listing
from inspector.serving.storing.shared.remote import open_remote
from inspector.settings import Settings
from inspector.store.files import turn
from inspector.store.keeping.shared import is_marked
from inspector.store.manifests.documents import is_fingerprint
from inspector.store.manifests.entries import UPLOADS
from inspector.store.manifests.manifest import StoredCheckpoint
from inspector.store.reference import CheckpointRef
from inspector.store.stored import is_entry, list_checkpoints, stored_in

NOT_SEEN = "This upload is not one of yours: open it by a link with the whole fingerprint, or upload it again."


def list_uploads(settings: Settings, asker: Requester) -> tuple[StoredCheckpoint, ...]:
    """The uploads that somebody sees, newest first.

    A shared store that cannot be reached is no reason to show nothing: `trouble` says so.
    """
    found = (owners.seen(each, owners_of(each.fingerprint, settings), asker) for each in _every_upload(settings))
    return tuple(sorted(filter(None, found), key=lambda s: (s.created, s.fingerprint), reverse=True))


def find_upload(reference: CheckpointRef, settings: Settings, asker: Requester) -> CheckpointRef:
    """What somebody may open: the first digits of a fingerprint are enough for an upload that they see.

    Raises:
        CheckpointError: If they see none with these digits, and those are not the whole fingerprint.
    """
    digits = reference.origin.digits
    if not asker.owner or not digits or is_fingerprint(digits):
        return reference
    found = [each.fingerprint for each in list_uploads(settings, asker) if each.fingerprint.startswith(digits)]
    if len(found) != 1:
        raise CheckpointError(NOT_SEEN)
    return CheckpointRef.parse(reference.origin.becomes(found[0]))


def under_own_name(opened: Opened, settings: Settings, asker: Requester) -> Opened:
    """An open checkpoint as its asker calls it."""
    entry = settings.home / UPLOADS / opened.fingerprint
    if not asker.owner or not is_entry(entry):
        return opened
    mine = owners.seen(stored_in(entry), read_owners(entry), asker)
    return replace(opened, name=mine.name) if mine else opened


def owners_of(fingerprint: str, settings: Settings) -> owners.Owners | None:
    """Who owns an upload; None: everybody."""
    return read_owners(settings.home / UPLOADS / fingerprint)


def _every_upload(settings: Settings) -> Iterable[StoredCheckpoint]:
    if settings.store is None:
        return list_checkpoints(settings)
    there = {
        upload.fingerprint: StoredCheckpoint(upload.fingerprint, upload.name, upload.nbytes, upload.created)
        for upload in listing(settings).uploads(settings)
    }
    # After the question, which drops what was deleted elsewhere.
    here = {stored.fingerprint: stored for stored in list_checkpoints(settings)}
    for fingerprint in there.keys() & here.keys():
        there[fingerprint] = replace(there[fingerprint], pinned=here[fingerprint].pinned)
    return (here | there).values()


def trouble(settings: Settings) -> str | None:
    """Why the shared store could not be listed when it was asked last; None: it was, or is none."""
    return listing(settings).trouble if settings.store else None


def rename_upload(fingerprint: str, name: str, *, settings: Settings, asker: Requester) -> None:
    """Give an upload another name: of one that somebody owns, their own name for it.

    Raises:
        CheckpointError: If it is somebody else's, the name cannot be one, the upload is gone, or the store out of
            reach.
    """
    registry.refuse_name(name)
    if _change(fingerprint, settings, asker, name=name.strip()):
        return
    if not _rename_there(fingerprint, name, settings) or shared.is_here(fingerprint, settings):
        registry.rename_checkpoint(fingerprint, name, settings=settings)


def pin_upload(fingerprint: str, *, pinned: bool, settings: Settings, asker: Requester) -> None:
    """Keep an upload whatever room is needed, or do so no longer; another owner may still keep it.

    Raises:
        CheckpointError: If it is somebody else's, or gone, or the disk is full.
    """
    if not _change(fingerprint, settings, asker, pinned=pinned):
        registry.pin_checkpoint(fingerprint, pinned=pinned, settings=settings)


def share_upload(fingerprint: str, *, shared: bool, settings: Settings, asker: Requester) -> None:
    """List an upload for everybody who may use this server, under its owner's name for it, or do so no longer.

    Raises:
        CheckpointError: If it is somebody else's, or gone, or the disk is full.
    """
    _change(fingerprint, settings, asker, shared=shared)


def delete_upload(fingerprint: str, *, settings: Settings, asker: Requester) -> None:
    """Delete an upload completely, here and in the shared store; one that others own as well stays theirs.

    Raises:
        CheckpointError: If it is somebody else's, not there, or the shared store is out of reach.
    """
    entry = settings.home / UPLOADS / fingerprint
    with turn(settings.home), registry.disk_in_words(settings):
        found = read_owners(entry)
        if not owners.is_owner(found, asker) and not asker.is_admin:
            raise CheckpointError(owners.NOT_YOURS)
        record("delete", checkpoint=digest(fingerprint), owner=asker.owner[:DIGITS])
        if found is not None:
            others = {owner: owned for owner, owned in found.items() if owner != asker.owner}
            if asker.owner in found and others:
                _put_owners(entry, others)
            else:
                registry.delete_checkpoint(fingerprint, settings=settings)
            return
    if not _delete_there(fingerprint, settings) or shared.is_here(fingerprint, settings):
        registry.delete_checkpoint(fingerprint, settings=settings)


def _change(fingerprint: str, settings: Settings, asker: Requester, **changes: Any) -> bool:
    """Change what an upload is to one of its owners; False: it is everybody's, or the asker alone here."""
    entry = settings.home / UPLOADS / fingerprint
    with turn(settings.home), registry.disk_in_words(settings):
        found = read_owners(entry)
        if found is None or not asker.owner:
            return False
        _put_owners(entry, owners.changed(found, asker, **changes))
    return True


def _put_owners(entry: Path, found: owners.Owners) -> None:
    """Replace the owners; the entry has the first one's name, and is pinned as long as any of them pins it."""
    owners.write_owners(entry, found)
    pinned = any(owned.pinned for owned in found.values())
    registry.rewrite(entry, name=next(iter(found.values())).name, pinned=pinned)


def _rename_there(fingerprint: str, name: str, settings: Settings) -> bool:
    if settings.store is None or not is_fingerprint(fingerprint):
        return False
    remote = open_remote(settings)
    found = shared.read_upload(remote, fingerprint)
    if found is None:
        return False
    renamed = replace(found, name=name.strip())
    remote.write(shared.listed_path(fingerprint), [write_shared(renamed)])
    listing(settings).ask_again()
    return True


def _delete_there(fingerprint: str, settings: Settings) -> bool:
    if settings.store is None or not is_fingerprint(fingerprint):
        return False
    remote = open_remote(settings)
    listed = remote.size(shared.listed_path(fingerprint)) is not None
    if not listed and not is_marked(settings.home / UPLOADS / fingerprint, settings):
        return False
    shared.remove(remote, fingerprint)
    listing(settings).ask_again()
    return True
