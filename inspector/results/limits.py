"""Limits in force, and the worker sandbox of this machine."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class LimitInForce:
    """One limit."""

    name: str
    value: float  # in the unit
    unit: str
    setting: str  # environment variable that changes it
    enforced_by: str


@dataclass(frozen=True, slots=True)
class Restriction:
    """One restriction of the worker sandbox."""

    name: str
    enforced: bool  # on this machine, as a worker found by trying
    meaning: str


@dataclass(frozen=True, slots=True)
class RunningServer:
    """A server that runs on a home now."""

    pid: int
    version: str
    since: str  # ISO 8601, UTC
    not_ready: tuple[str, ...]  # why users' requests would fail; empty: they would not


@dataclass(frozen=True, slots=True)
class ServerLimits:
    """The limits in force, and what is enforced on this machine."""

    limits: tuple[LimitInForce, ...]
    confinement: str  # the setting: "auto", "required" or "off"
    restrictions: tuple[Restriction, ...]  # empty: no worker has reported yet
    missing: tuple[str, ...]  # what the platform lacks for the rest
    server: RunningServer | None = None  # whose limits these are; None: of one that would be started here
