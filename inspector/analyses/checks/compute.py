"""Check a checkpoint as a whole: files, shapes, heads, ties, numbers, tokenizer, vocabulary."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import replace
from functools import partial

from inspector.analyses.checks import words, words_loading
from inspector.analyses.checks.compute_dtypes import DTYPES, check_dtypes
from inspector.analyses.checks.compute_files import FILES, PICKLES, check_files, check_pickles
from inspector.analyses.checks.compute_parts import (
    MAGNITUDES,
    NUMBERS,
    PADDING,
    SCALES,
    ZEROS,
    not_read,
    nothing_to_check,
)
from inspector.analyses.checks.compute_structure import (
    LEFT_OVER,
    SHAPES,
    TIES,
    WEIGHTS,
    Built,
    Unbuilt,
    check_left_over,
    check_shapes,
    check_ties,
    check_weights,
    not_built,
)
from inspector.analyses.checks.compute_vocabulary import STOPPING, VOCABULARY, check_stopping
from inspector.analyses.checks.request import WHOLE_GB, CheckRequest
from inspector.analyses.checks.result import STATUSES, Check, Checks, LoadingRow, TieRow
from inspector.analyses.sharing.result import Sharing
from inspector.catalog import answer, import_ahead, libraries
from inspector.errors import InspectorError, MissingLibraryError
from inspector.models.checkpoint import StagedCheckpoint
from inspector.progress import Progress
from inspector.request import answers
from inspector.store.manifests.findings import ABSENT
from inspector.store.manifests.manifest import Manifest

KEPT = "checks by headers"
CONFIG = "config.json"
READ = (NUMBERS, ZEROS, MAGNITUDES, SCALES)
BY_NUMBERS = (*READ, *VOCABULARY, PADDING)
LOADING = words_loading.TAB
Loaded = tuple[tuple[LoadingRow, ...], tuple[TieRow, ...]]
ORDER = (SHAPES, LOADING, WEIGHTS, LEFT_OVER, TIES, *READ, DTYPES, *VOCABULARY, PADDING, STOPPING, PICKLES, FILES)


@answers(CheckRequest)
def check(checkpoint: StagedCheckpoint, request: CheckRequest, *, progress: Progress) -> Checks:
    """Ask a checkpoint everything that a healthy one answers in the same way.

    Nothing is refused: what keeps a check from being made is told by that check, and what a
    checkpoint lacks as a matter of course (a head that its class does not have, a padding token)
    is no defect. Headers are looked at first; then the files are read once, in the types that their
    numbers are stored in.
    """
    values = choose_values(checkpoint.manifest, request.values)
    of_headers, (loading, ties) = _by_headers(checkpoint, progress)
    of_numbers, norms, measured = tuple(map(not_read, BY_NUMBERS)), (), b""
    if values != "none":
        from inspector.analyses.checks.compute_numbers import check_by_numbers

        of_numbers, norms, measured = check_by_numbers(checkpoint, values, progress)
    by_name = {each.name: each for each in (*of_headers, *of_numbers)}
    if checkpoint.manifest.adapter:  # which need not have what a model has
        unmade = [name for name, each in by_name.items() if each.status == "warn" and not each.checked]
        by_name |= {name: nothing_to_check(name, words.NO_MODEL) for name in unmade}
    if said := checkpoint.manifest.says_all:
        by_name = {name: _from(said, each) for name, each in by_name.items()}
        ties = tuple(replace(row, reason=_named(said, row.reason)) for row in ties)
    counted = Counter(each.status for each in by_name.values())
    return Checks(
        name=checkpoint.name,
        fingerprint=checkpoint.manifest.fingerprint,
        counts={status: counted[status] for status in STATUSES},
        checks=tuple(by_name[name] for name in ORDER),
        values=values,
        norms=norms,
        loading=loading,
        ties=ties,
        measured=measured,
    )


def _from(file: str, check: Check) -> Check:
    """A check that names the file which settings are from, where that is not config.json."""
    named = partial(_named, file)
    evidence = (replace(each, subject=named(each.subject), detail=named(each.detail)) for each in check.evidence)
    return replace(check, detail=named(check.detail), next_step=named(check.next_step), evidence=tuple(evidence))


def _named(file: str, text: str) -> str:
    return re.sub(rf"(?<!\w){re.escape(CONFIG)}", lambda _: file, text)  # generation_config.json is another


def _by_headers(checkpoint: StagedCheckpoint, progress: Progress) -> tuple[tuple[Check, ...], Loaded]:
    """The checks that headers and small files decide; of numbers only copies that may be tied are compared.

    Beside them, what loaders make of each tensor, and of the output matrix.

    A page asks for them alone first, so they are kept for the question that reads the numbers too.
    """
    called, known = checkpoint.kept.get(KEPT, ((), None))
    if known and called == checkpoint.called:  # sentences hold the name that somebody gave it
        return known
    progress(None, "Building the model")
    built, shared = _build(checkpoint, progress)
    loaded, loading = _loading(checkpoint, built, None if isinstance(shared, Unbuilt) else shared)
    found = (
        check_shapes(checkpoint, built),
        loaded,
        check_weights(checkpoint, built),
        check_left_over(checkpoint, built),
        check_ties(checkpoint, shared),
        check_dtypes(checkpoint),
        check_stopping(checkpoint, progress),
        check_pickles(checkpoint.manifest),
        _check_files(checkpoint.manifest, built),
    )
    checkpoint.kept[KEPT] = checkpoint.called, (found, loading)
    return found, loading


def _loading(checkpoint: StagedCheckpoint, built: Built | Unbuilt, shared: Sharing | None) -> tuple[Check, Loaded]:
    """The check of what loaders make of the tensors; that by pattern of names, and of the output matrix by loader."""
    if not (isinstance(built, Unbuilt) and built.lacks_library):
        from inspector.analyses.checks.compute_loading.checking import check_codes, check_loading
        from inspector.analyses.checks.compute_loading.contract import loading_rows
        from inspector.analyses.checks.compute_loading.ties import tie_rows

        if checkpoint.structure and (rows := loading_rows(checkpoint)):
            ties = tie_rows(checkpoint, shared)
            return check_loading(checkpoint, checkpoint.structure[0], rows, ties), (rows, ties)
        if found := check_codes(checkpoint):
            return found, ((), ())
    why = built if isinstance(built, Unbuilt) else Unbuilt(words.NO_MODEL)
    return not_built(checkpoint, LOADING, why), ((), ())


def _check_files(manifest: Manifest, built: Built | Unbuilt) -> Check:
    if isinstance(built, Unbuilt):  # what a class needs that is not there is known of the files alone that are named
        complete = built.lacks_library and not manifest.found(ABSENT)
        return check_files(manifest, complete=complete, unread=())
    return check_files(manifest, complete=not built.missing, unread=frozenset(built.unread.values()))


def choose_values(manifest: Manifest, asked: str, *, whole_gb: float = WHOLE_GB) -> str:
    """Choose which numbers to read: those asked for; "auto" is all of up to so many gigabytes, or else a sample."""
    if asked != "auto":
        return asked
    return "all" if sum(tensor.nbytes for tensor in manifest.tensors) <= whole_gb * 1e9 else "sample"


def _build(checkpoint: StagedCheckpoint, progress: Progress) -> tuple[Built | Unbuilt, Sharing | Unbuilt]:
    """What building the model tells, and who shares memory; or why it is not built."""
    try:
        with libraries():
            from inspector.analyses.checks.compute_built import build_for_checks, explain_failure
    except MissingLibraryError as error:
        unbuilt = Unbuilt(str(error), lacks_library=True)
        return unbuilt, unbuilt
    try:
        built = build_for_checks(checkpoint)
        return built, answer("sharing", checkpoint, count_reuse=False, progress=progress)
    except InspectorError as error:
        unbuilt = explain_failure(checkpoint, str(error))
        return unbuilt, unbuilt


import_ahead("inspector.analyses.checks.compute_built", "inspector.analyses.checks.compute_numbers")
