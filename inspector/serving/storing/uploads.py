"""The uploads that people see: this server's, and those of the shared store where there is one."""

from __future__ import annotations

from dataclasses import replace

from inspector.serving.storing import registry
from inspector.serving.storing.marks import is_marked
from inspector.serving.storing.shared import publishing as shared
from inspector.serving.storing.shared.entry import write_shared
from inspector.serving.storing.shared.listing import listing
from inspector.serving.storing.shared.remote import open_remote
from inspector.settings import Settings
from inspector.store.manifests.documents import is_fingerprint
from inspector.store.manifests.entries import UPLOADS
from inspector.store.manifests.manifest import StoredCheckpoint
from inspector.store.stored import list_checkpoints


def list_uploads(settings: Settings) -> tuple[StoredCheckpoint, ...]:
    """The uploads, newest first.

    A shared store that cannot be reached is no reason to show nothing: `trouble` says so.
    """
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
    found = (here | there).values()
    return tuple(sorted(found, key=lambda s: (s.created, s.fingerprint), reverse=True))


def trouble(settings: Settings) -> str | None:
    """Why the shared store could not be listed when it was asked last; None: it was, or is none."""
    return listing(settings).trouble if settings.store else None


def rename_upload(fingerprint: str, name: str, *, settings: Settings) -> None:
    """Give an upload another name, here and in the shared store.

    Raises:
        CheckpointError: If the name cannot be one, the upload is gone, or the store out of reach.
    """
    registry.refuse_name(name)
    if not _rename_there(fingerprint, name, settings) or shared.is_here(fingerprint, settings):
        registry.rename_checkpoint(fingerprint, name, settings=settings)


def delete_upload(fingerprint: str, *, settings: Settings) -> None:
    """Delete an upload completely, here and in the shared store.

    Raises:
        CheckpointError: If it is not there, or the shared store is out of reach.
    """
    if not _delete_there(fingerprint, settings) or shared.is_here(fingerprint, settings):
        registry.delete_checkpoint(fingerprint, settings=settings)


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
