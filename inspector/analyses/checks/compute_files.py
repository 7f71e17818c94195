"""Check the files themselves: pickles, holes, bytes that no tensor takes, code beside them."""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Collection, Iterator, Sequence

from inspector.analyses.checks import words_files as words
from inspector.analyses.checks.compute_parts import RANK, at_least, conclude
from inspector.analyses.checks.result import Check, Evidence, Severity
from inspector.store.configs import CUSTOM_CODE
from inspector.store.copies import same_tensors
from inspector.store.manifests import findings
from inspector.store.manifests.columns import TensorInfo
from inspector.store.manifests.manifest import FileInfo, Manifest
from inspector.store.readers.index import TWO_SETS
from inspector.store.readers.sets import spare_copies
from inspector.store.sizes import size_warnings
from inspector.store.staging import CODE, NO_CONFIG, NO_TOKENIZER, UNREAD_TOKENIZER

PICKLES, FILES = "Pickle formats", "Files"
WEIGHTS = ("safetensors", "pytorch", "gguf")
LARGE_NBYTES = 100_000_000  # of a file without weights; the largest vocabularies have 35 million
FREE_NBYTES, FREE_SHARE = 1_000_000, 0.05  # of a weight file, for headers and padding
ODD = (CODE, CUSTOM_CODE, TWO_SETS)
# Of the set of weight files, where the model is complete.
SEVERITIES: dict[str, Severity] = {
    findings.UNREAD: "note",
    findings.NOT_IN_INDEX: "note",
    findings.TOTAL: "note",
    findings.COPIES_APART: "major",
    findings.NO_METADATA: "major",
}
OVERSIZED, HOLES, UNEXPLAINED = "oversized", "holes in the file", "more bytes than its tensors take"
STEPS = {
    HOLES: words.GET_AGAIN,
    **dict.fromkeys((OVERSIZED, UNEXPLAINED), words.LOOK_INSIDE),
    TWO_SETS: words.TWO_SETS,
    findings.UNLISTED: words.LIST_THEM,
    findings.UNREAD: words.LIST_THEM,
    findings.ABSENT: words.GET_SHARDS,
    findings.COPIES_APART: words.CHOOSE_A_COPY,
    findings.NO_METADATA: words.ADD_METADATA,
    **dict.fromkeys((findings.NO_SUCH_TENSOR, findings.MISPLACED, findings.COPIES), words.COMPARE_INDEX),
}


def check_pickles(manifest: Manifest) -> Check:
    """No weights are kept in a format that other programs run code from."""
    evidence = [
        Evidence(file.name, "pickle", "minor", None, words.PICKLE.format(file.nbytes))
        for file in manifest.files
        if file.format == "pytorch"
    ]
    if not evidence:
        return conclude(PICKLES, (), words.NO_PICKLES.format("GGUF" if manifest.is_gguf else "safetensors"))
    return conclude(PICKLES, evidence, words.pickles(len(evidence), evidence[0].subject), words.SAVE_AS_SAFETENSORS)


def check_files(manifest: Manifest, *, complete: bool, unread: Collection[str]) -> Check:
    """Every file is whole, of a sensible size, and nothing strange lies beside them.

    Args:
        complete: Whether the files that are read hold every parameter of the model.
        unread: The files that hold what the others lack of it.
    """
    spare = spare_copies(manifest) if manifest.found(findings.COPIES, findings.COPIES_APART) else []
    equal = (
        bool(spare)
        and not manifest.is_outline
        and all(same_tensors(manifest, each, manifest.by_name[each.name]) for each in spare)
    )
    evidence = [*_set(manifest, complete, unread, equal=equal), *_sizes(manifest, spare), *_warnings(manifest)]
    odd = at_least("minor", sorted(evidence, key=lambda each: -RANK[each.severity]))
    if not odd:
        nbytes = sum(file.nbytes for file in manifest.files)
        return conclude(FILES, evidence, words.sound(len(manifest.files), nbytes))
    step = STEPS.get(odd[0].problem, words.READ_CODE)
    return conclude(FILES, evidence, words.odd(len(odd), odd[0].subject, odd[0].detail), step)


def _set(manifest: Manifest, complete: bool, unread: Collection[str], *, equal: bool) -> Iterator[Evidence]:
    """What is odd about the set of weight files."""
    for each in manifest.findings:
        severity, detail = SEVERITIES.get(each.problem, "minor"), each.detail
        gap = each.problem in (findings.UNLISTED, findings.ABSENT) and each.count and not complete
        if gap or each.subject in unread:
            severity = "critical"
        if each.problem in (findings.COPIES, findings.COPIES_APART) and equal:
            severity, detail = "note", f"{detail} {words.EQUAL_COPIES}"
        yield Evidence(each.subject, each.problem, severity, each.count, detail)


def _sizes(manifest: Manifest, spare: Sequence[TensorInfo]) -> Iterator[Evidence]:
    spans: defaultdict[str, list[tuple[int, int]]] = defaultdict(list)
    for tensor in (*manifest.tensors, *spare):
        spans[tensor.file].append((tensor.begin, tensor.begin + tensor.nbytes))
    for file in manifest.files:
        if file.format not in WEIGHTS:
            if file.nbytes > LARGE_NBYTES:
                detail = words.OVERSIZED.format(file.nbytes, LARGE_NBYTES)
                yield Evidence(file.name, OVERSIZED, "minor", file.nbytes, detail)
            continue
        if not manifest.is_outline:  # or its numbers are elsewhere still
            yield from _hole(file)
        if file.name in spans:  # else it is not read
            yield from _unexplained(file, sorted(spans[file.name]))


def _hole(file: FileInfo) -> Iterator[Evidence]:
    """Bytes that the disk never got: a download that reserved its room and was cut off."""
    if not hasattr(os, "SEEK_HOLE"):  # Windows
        return
    with file.path.open("rb") as opened:
        first = os.lseek(opened.fileno(), 0, os.SEEK_HOLE)
    if first < file.nbytes:
        detail = words.HOLE.format(file.nbytes, first)
        yield Evidence(file.name, HOLES, "minor", file.nbytes - first, detail)


def _unexplained(file: FileInfo, spans: Sequence[tuple[int, int]]) -> Iterator[Evidence]:
    """Bytes of a weight file that no tensor takes; tensors lie at spans, in their order."""
    taken, end = 0, 0
    for begin, stop in spans:
        taken += max(0, stop - max(begin, end))
        end = max(end, stop)
    spare = file.nbytes - taken
    allowed = FREE_NBYTES + 512 * len(spans) + FREE_SHARE * file.nbytes
    if spare > allowed:
        detail = words.UNEXPLAINED.format(file.nbytes, taken)
        yield Evidence(file.name, UNEXPLAINED, "minor", spare, detail)


def _warnings(manifest: Manifest) -> Iterator[Evidence]:
    """What was noted when the files were read, unless another check says it."""
    config = manifest.config or {}
    found = (each.detail for each in manifest.findings)
    elsewhere = {NO_CONFIG, NO_TOKENIZER, UNREAD_TOKENIZER, *size_warnings(config, manifest.tensors), *found}
    for warning in manifest.warnings:
        if warning not in elsewhere:
            severity = "minor" if warning.startswith(ODD) else "note"
            yield Evidence("checkpoint", warning.partition(":")[0], severity, None, warning)
