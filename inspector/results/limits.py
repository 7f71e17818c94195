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
class ServerLimits:
    """The limits in force, and what is enforced on this machine."""

    limits: tuple[LimitInForce, ...]
    confinement: str  # the setting: "auto", "required" or "off"
    restrictions: tuple[Restriction, ...]  # empty: no worker has reported yet
    missing: tuple[str, ...]  # what the platform lacks for the rest
