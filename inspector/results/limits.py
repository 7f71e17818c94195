"""Which limits are in force, and what workers are kept from on this machine."""

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
    """One thing that workers are kept from, where the platform can do it."""

    name: str
    enforced: bool  # on this machine, as a worker said after trying
    meaning: str


@dataclass(frozen=True, slots=True)
class ServerLimits:
    """The limits in force, and what is enforced on this machine."""

    limits: tuple[LimitInForce, ...]
    confinement: str  # the setting: "auto", "required" or "off"
    restrictions: tuple[Restriction, ...]  # empty: no worker has said so yet
    missing: tuple[str, ...]  # what the platform lacks for the rest
