"""Contents of the store, and its free space."""

from __future__ import annotations

from dataclasses import dataclass

from inspector.results.limits import RunningServer


@dataclass(frozen=True, slots=True)
class StoredKind:
    """One kind of stored data."""

    name: str
    entries: int
    nbytes: int
    can_go: str  # when it is removed to make room


@dataclass(frozen=True, slots=True)
class StoredUpload:
    """One upload."""

    name: str
    fingerprint: str
    nbytes: int
    created: str  # ISO 8601, UTC
    last_used: str  # likewise
    pinned: bool
    in_use: bool  # by a worker of any server of this store, or requested in the last minutes
    shared: bool  # in the shared store, too


@dataclass(frozen=True, slots=True)
class StoreAccount:
    """Contents and size of the store."""

    quota_nbytes: int
    used_nbytes: int
    evict: str  # "results" or "uploads"
    kinds: tuple[StoredKind, ...]
    uploads: tuple[StoredUpload, ...]  # least recently used first
    warnings: tuple[str, ...]  # what is not as it should be
    servers: tuple[RunningServer, ...] = ()  # that run on it now, the latest first
