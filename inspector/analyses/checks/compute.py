"""Check a checkpoint as a whole: files, shapes, heads, ties, numbers, tokenizer, vocabulary."""

from __future__ import annotations

from collections import Counter

from inspector.analyses.checks.compute_files import check_files, check_pickles
from inspector.analyses.checks.compute_numbers import check_dtypes, check_numbers, check_zero_tensors, take_census
from inspector.analyses.checks.compute_padding import check_padding
from inspector.analyses.checks.compute_structure import (
    Built,
    build_for_checks,
    check_left_over,
    check_shapes,
    check_ties,
    check_weights,
)
from inspector.analyses.checks.compute_vocabulary import check_vocabulary
from inspector.analyses.checks.request import CheckRequest
from inspector.analyses.checks.result import STATUSES, Checks
from inspector.analyses.sharing.result import Sharing
from inspector.catalog import answer
from inspector.errors import InspectorError
from inspector.models.checkpoint import Checkpoint
from inspector.progress import Progress
from inspector.request import answers


@answers(CheckRequest)
def check(checkpoint: Checkpoint, _: CheckRequest, *, progress: Progress) -> Checks:
    """Ask a checkpoint everything that a healthy one answers in the same way.

    Nothing is refused: what keeps a check from being made is told by that check, and what a
    checkpoint lacks as a matter of course (a head that its class does not have, a padding token)
    is no defect. Every stored number is read once, block by block.
    """
    progress(None, "Building the model")
    built, shared = _build(checkpoint, progress)
    census = take_census(checkpoint.manifest, progress)
    progress(None, "Looking at the vocabulary")
    checks = (
        check_shapes(checkpoint, built),
        check_weights(checkpoint, built),
        check_left_over(built),
        check_ties(checkpoint, shared),
        check_numbers(census, checkpoint.quantised),
        check_zero_tensors(census, checkpoint),
        check_dtypes(checkpoint),
        *check_vocabulary(checkpoint, progress),
        check_padding(checkpoint),
        check_pickles(checkpoint.manifest),
        check_files(checkpoint.manifest),
    )
    counted = Counter(each.status for each in checks)
    return Checks(
        name=checkpoint.name,
        fingerprint=checkpoint.manifest.fingerprint,
        counts={status: counted[status] for status in STATUSES},
        checks=checks,
    )


def _build(checkpoint: Checkpoint, progress: Progress) -> tuple[Built | str, Sharing | str]:
    """What building the model tells, and who shares memory; a sentence where it cannot be built."""
    try:
        built = build_for_checks(checkpoint)
        return built, answer("sharing", checkpoint, progress=progress)
    except InspectorError as error:
        return str(error), str(error)
