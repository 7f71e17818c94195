"""Ask many checkpoints the same, and follow what they answer over training steps."""

from inspector.fleet.asking import Ask, Entry, Fleet, Wait
from inspector.fleet.job import FleetJob
from inspector.fleet.reading import read_checks, read_vitals
from inspector.fleet.records import Records
from inspector.fleet.series import DRAWN, Against, Series, check_frame, follow, tie_frame

__all__ = [
    "DRAWN",
    "Against",
    "Ask",
    "Entry",
    "Fleet",
    "FleetJob",
    "Records",
    "Series",
    "Wait",
    "check_frame",
    "follow",
    "read_checks",
    "read_vitals",
    "tie_frame",
]
