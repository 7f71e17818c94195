"""What the web server, its client process and the replicas of a cluster say to each other."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from inspector.serving.engine.protocol import Ending, WorkerStatus


@dataclass(frozen=True, slots=True)
class ReplicaQuestion:
    """What a replica is asked, as `encode` writes it."""

    fingerprint: str
    verb: str
    parameters: dict[str, Any]
    references: tuple[tuple[str, str], ...]  # fingerprint -> how to open it, of all it is about
    called: tuple[str, ...] = ()  # as in Engine.run


@dataclass(frozen=True, slots=True)
class AskReplica:
    """To the client: have a replica answer."""

    id: str
    fingerprint: str
    question: bytes


@dataclass(frozen=True, slots=True)
class Cancel:
    """To the client: stop; nobody waits for the answer."""

    id: str


@dataclass(frozen=True, slots=True)
class Call:
    """To the client: call a method of every replica."""

    id: str
    method: str
    arguments: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Leave:
    """To the client: end, and tell the replicas that nobody waits for their running work."""


@dataclass(frozen=True, slots=True)
class JobUpdate:
    """From the client: progress, or how it ended, as a replica or the client encoded it."""

    id: str
    data: bytes
    taken: bool = True  # False: no replica has it, now or any more


@dataclass(frozen=True, slots=True)
class Returned:
    """From the client: the encoded values of the replicas that returned one."""

    id: str
    values: tuple[bytes, ...]


@dataclass(frozen=True, slots=True)
class Lost:
    """The client's last message: why the cluster cannot be asked."""

    text: str


@dataclass(frozen=True, slots=True)
class ReplicaStatus:
    """What a replica runs, and what ended there."""

    workers: tuple[WorkerStatus, ...]
    endings: tuple[Ending, ...]


TOLD = (AskReplica, Cancel, Call, Leave)  # to the client
HEARD = (JobUpdate, Returned, Lost)  # from the client
