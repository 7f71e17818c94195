"""Ask many checkpoints the same, and follow what they answer over training steps."""

from inspector.analyses.snapshots.frames import (
    DRAWN,
    Against,
    Series,
    check_frame,
    follow,
    tie_frame,
)
from inspector.batch.asking import Ask, Entry, Fleet, Wait
from inspector.batch.job import FleetJob
from inspector.batch.reading import read_checks, read_vitals
from inspector.batch.records import Records

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
