"""Whose an upload is: those who sent it, each under a name of their own.

Equal content is stored once, and an entry lists who sent it by digests. An entry without a list belongs to everybody:
it was sent on somebody's own machine, or lies in a shared store.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from inspector.errors import CheckpointError
from inspector.store.files import write_atomically
from inspector.store.manifests.documents import as_digest, as_flag, as_text, fields_of, is_plain_folder, read_document
from inspector.store.manifests.entries import OWNERS
from inspector.store.manifests.manifest import StoredCheckpoint
from inspector.store.names import clean_name

MAX_NBYTES = 1_000_000
NOT_YOURS = "Somebody else sent this upload: only its owners can change it."


@dataclass(frozen=True, slots=True)
class Requester:
    """Who asks for uploads."""

    owner: str = ""  # SHA-256 of what tells this person from others; empty: alone here, so everything is theirs
    is_admin: bool = False  # sees and deletes everything

    @property
    def sees_all(self) -> bool:
        """Whether everybody's uploads are listed."""
        return self.is_admin or not self.owner


@dataclass(frozen=True, slots=True)
class Owned:
    """What an upload is to one of its owners."""

    name: str
    created: str  # ISO 8601, UTC: when this owner sent it
    pinned: bool = False
    shared: bool = False  # listed for everybody here


Owners = Mapping[str, Owned]  # by digest


def read_owners(entry: Path) -> Owners | None:
    """Who owns an upload; None: everybody. A list that cannot be read leaves it nobody's."""
    try:
        return {
            as_digest(owner): _read(owned) for owner, owned in read_document(entry / OWNERS, limit=MAX_NBYTES).items()
        }
    except FileNotFoundError:
        return None
    except (OSError, ValueError):
        return {}


def write_owners(entry: Path, owners: Owners) -> None:
    """Replace the list of an upload's owners."""
    write_atomically(entry / OWNERS, json.dumps({owner: asdict(owned) for owner, owned in owners.items()}))


def admit(owner: str, name: str, entry: Path, *, built: Path) -> None:
    """Make somebody an owner of an upload, unless it is everybody's.

    Args:
        owner: A digest; empty: it is nobody's own.
        name: What this owner calls it; one who sends it again keeps the name that they gave it.
        entry: Its place in the store.
        built: Where it is now.
    """
    owners = read_owners(entry) if is_plain_folder(entry) else {}
    if owner and owners is not None and (built != entry or owner not in owners):
        new = Owned(clean_name(name), datetime.now(UTC).isoformat(timespec="seconds"))
        write_owners(built, {**owners, owner: owners.get(owner, new)})


def seen(stored: StoredCheckpoint, owners: Owners | None, asker: Requester) -> StoredCheckpoint | None:
    """An upload as somebody's list shows it, under their own name; None: they do not see it."""
    if owners is None or not asker.owner:
        return stored
    if mine := owners.get(asker.owner):
        return replace(stored, name=mine.name, created=mine.created, pinned=mine.pinned)
    shared = next((owned for owned in owners.values() if owned.shared), None)
    if shared:
        return replace(stored, name=shared.name, created=shared.created, pinned=False)
    return stored if asker.is_admin else None


def is_owner(owners: Owners | None, asker: Requester) -> bool:
    """Whether somebody may rename, pin and delete an upload."""
    return owners is None or not asker.owner or asker.owner in owners


def changed(owners: Owners, asker: Requester, **changes: Any) -> Owners:
    """The list after one owner has changed what the upload is to them.

    Raises:
        CheckpointError: If they are none of them.
    """
    if asker.owner not in owners:
        raise CheckpointError(NOT_YOURS)
    return {**owners, asker.owner: replace(owners[asker.owner], **changes)}


def _read(value: Any) -> Owned:
    found = fields_of(value, ("name", "created", "pinned", "shared"))
    return Owned(
        name=clean_name(as_text(found["name"])),
        created=datetime.fromisoformat(as_text(found["created"])).isoformat(),
        pinned=as_flag(found["pinned"]),
        shared=as_flag(found["shared"]),
    )
