"""Check a checkpoint's files against the class that config.json names: shapes, heads, ties."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import transformers

from inspector.analyses.checks import words_structure as words
from inspector.analyses.checks.compute_parts import RANK, at_least, conclude, not_checked, nothing_to_check
from inspector.analyses.checks.result import Check, Evidence, Severity
from inspector.analyses.checks.words import CHECK_A_COPY, CHECK_THE_ORIGINAL, INSTALL_IT
from inspector.analyses.sharing.result import SharedGroup, Sharing
from inspector.errors import InspectorError
from inspector.models.checkpoint import StagedCheckpoint
from inspector.models.incomplete import Fault
from inspector.models.names import SPARE_MODULES
from inspector.models.pipeline import Pipeline
from inspector.models.prediction import MultiTokenTensors
from inspector.models.quantized.layout import describe_codes
from inspector.store.manifests.findings import ABSENT, NO_SUCH_TENSOR
from inspector.store.names import MODULES
from inspector.store.sizes import size_warnings

if TYPE_CHECKING:  # torch: without it, each check says that there is no class
    from inspector.models.ties import TieFlag

SHAPES, WEIGHTS = "Config and shapes", "Heads and weights"
LEFT_OVER, TIES = "Left-over tensors", "Ties"
POOLER = "pooler."


@dataclass(frozen=True, slots=True)
class Built:
    """What building the class of config.json tells; no weight is kept."""

    model_class: str
    declared: bool  # config.json names this class, or modules.json has it loaded
    pipeline: Pipeline | None  # what sentence-transformers runs, of which this class is the first
    unused_head: str  # the class that config.json names where the pipeline loads another; "" where it does not
    headless: int  # tensors of that class's own that the file lacks
    prefix: str  # of the base model
    parameters: int  # tied ones once
    shapes: Mapping[str, tuple[int, ...]]  # of every parameter, by name
    missing: tuple[str, ...]  # parameters that the file lacks, sorted, tied ones by one name
    left_over: tuple[str, ...]  # tensors of the file that the class has no place for, sorted
    loader: str  # another class of this kind of model, which has a place for each of those; "" where none has
    ahead: MultiTokenTensors | None  # those that predict several tokens ahead, and that it leaves out
    flag: TieFlag | None  # where all that is missing would be tied if config.json said so where the class reads it
    unread: Mapping[str, str]  # parameters that the file lacks -> a file that has them, and that no loader reads


@dataclass(frozen=True, slots=True)
class Unbuilt:
    """Why there is no class to check the files against."""

    why: str
    lacks_library: bool = False  # nothing is wrong with the checkpoint
    fault: Fault | None = None  # what keeps the files from being a model of the class, if that is known
    wrong: tuple[Evidence, ...] = ()  # tensors whose shape is not the one that config.json asks for


def check_shapes(checkpoint: StagedCheckpoint, built: Built | Unbuilt) -> Check:
    """The sizes in config.json are those of the tensors."""
    config, tensors = checkpoint.manifest.config, checkpoint.manifest.tensors
    if adapter := checkpoint.manifest.adapter:
        alone = [Evidence("adapter", "not a whole model", "minor", len(tensors), adapter)]
        return conclude(SHAPES, alone, adapter, words.CHECK_THE_MODEL)
    if config is None and checkpoint.manifest.is_gguf:
        return not_checked(SHAPES, checkpoint.no_gguf_model, CHECK_THE_ORIGINAL)
    if config is None:
        evidence = [Evidence("config.json", "missing", "minor", None, f"{words.NO_CONFIG}.")]
        return conclude(SHAPES, evidence, words.no_config(), words.OWN_CONFIG)
    sizes = [
        Evidence("config.json", "fewer layers than the weights", "minor", None, warning)
        for warning in size_warnings(config, tensors)
    ]
    unbuilt = built if isinstance(built, Unbuilt) else Unbuilt("")
    fault = checkpoint.stored_twice or unbuilt.fault
    if unbuilt.why and (checkpoint.unread.codes or (unbuilt.lacks_library and not (sizes or fault))):
        return not_built(checkpoint, SHAPES, unbuilt)
    if fault:
        evidence = [Evidence(name, fault.problem, "critical", None, detail) for name, detail in fault.tensors.items()]
        return conclude(SHAPES, evidence, f"{fault.said}.", fault.next_step)
    return _of_shapes(len(tensors), [*sizes, *(unbuilt.wrong or _no_class(config, unbuilt))], unbuilt.wrong)


def _no_class(config: Mapping[str, Any], unbuilt: Unbuilt) -> Iterator[Evidence]:
    """That no class could be built, if so."""
    if unbuilt.lacks_library:
        yield Evidence("config.json", "not compared with its class", "minor", None, unbuilt.why)
    elif unbuilt.why:
        severity = "critical" if config.get("model_type") in transformers.CONFIG_MAPPING else "minor"
        yield Evidence("config.json", "no model can be built", severity, None, unbuilt.why)


def _of_shapes(tensors: int, evidence: Sequence[Evidence], wrong: Sequence[Evidence]) -> Check:
    if not evidence:
        return conclude(SHAPES, (), words.fits(tensors))
    detail = max(evidence, key=lambda each: RANK[each.severity]).detail
    if wrong:
        detail = words.mismatches(len(wrong), wrong[0].subject, wrong[0].detail)
    return conclude(SHAPES, evidence, detail, words.COMPARE_CONFIG)


def check_weights(checkpoint: StagedCheckpoint, built: Built | Unbuilt) -> Check:
    """Every parameter of the class is in the file; a loader would make up the others."""
    if isinstance(built, Unbuilt):
        return not_built(checkpoint, WEIGHTS, built)
    lacking = [_missing(name, built) for name in built.missing if not name.endswith(SPARE_MODULES)]
    evidence = lacking + [
        Evidence(head, "head in the file", "none", None, words.head_there(head))
        for head, there in checkpoint.heads.items()
        if there == "present"
    ]
    beside = [*_undeclared(", ".join(map(str, checkpoint.config.architectures or ())), built), *_by_pipeline(built)]
    evidence += beside
    if all(each.severity == "note" for each in lacking):
        complete = words.BUT_POOLER if lacking else words.COMPLETE
        complete = complete.format(parameters=built.parameters, built=built.model_class)
        said = " ".join([complete, *(each.detail for each in beside)])
        return conclude(WEIGHTS, evidence, said, words.NAME_A_CLASS)
    detail = words.lacking(
        built.model_class,
        len(lacking),
        lacking[0].subject,
        random=sum(each.count or 0 for each in lacking),
        parameters=built.parameters,
        pooler=all(each.severity == "minor" for each in lacking),
    )
    return conclude(WEIGHTS, evidence, detail, _where_they_are(checkpoint, built))


def _where_they_are(checkpoint: StagedCheckpoint, built: Built) -> str:
    """What to do about parameters that the files lack: some may be in a file that is not read."""
    manifest = checkpoint.manifest
    if built.flag and built.flag.against is not None:
        return words.tie_at(built.flag.level, built.flag.against)
    if built.unread:
        return words.READ_THEM.format(file=min(built.unread.values()))
    if any(not set(built.missing).isdisjoint(each.names) for each in manifest.found(NO_SUCH_TENSOR)):
        return words.GET_THE_SHARDS
    return words.ADD_THE_SHARD if manifest.found(ABSENT) else words.TAKE_ITS_FILE


def check_left_over(checkpoint: StagedCheckpoint, built: Built | Unbuilt) -> Check:
    """Every tensor of the file has a place in the class, or belongs to quantized weights."""
    if isinstance(built, Unbuilt):
        return not_built(checkpoint, LEFT_OVER, built)
    severity: Severity = "minor" if built.declared and not (built.unused_head or built.loader) else "note"
    detail = words.NEVER_LOADED.format(built=built.model_class)
    evidence = [Evidence(name, "no place in the class", severity, None, detail) for name in built.left_over]
    said = words.left_over(
        built.model_class,
        len(evidence),
        "".join(built.left_over[:1]),
        ahead=built.ahead is not None,
        beside=len(checkpoint.unread.beside),
        loader=built.loader,
    )
    if ahead := built.ahead:
        why = words.ahead(built.model_class, ahead.names, ahead.layers, key=ahead.key, count=ahead.count)
        evidence += [Evidence(name, "multi-token prediction", "note", None, why) for name in ahead.names]
        said = f"{said} {why}"
    return conclude(LEFT_OVER, evidence, said, words.NAME_ITS_CLASS)


def check_ties(checkpoint: StagedCheckpoint, sharing: Sharing | Unbuilt) -> Check:
    """What is declared to be one tensor is one, in the file and in memory."""
    if isinstance(sharing, Unbuilt):
        return not_built(checkpoint, TIES, sharing)
    rows = _vocabulary_rows(checkpoint)
    evidence = [_tie_evidence(group, rows) for group in sharing.groups]
    if not evidence:
        return nothing_to_check(TIES, words.UNTIED.format(built=sharing.model_class))
    bad, odd = at_least("major", evidence), at_least("minor", evidence)
    if bad:
        return conclude(TIES, evidence, words.broken_ties(len(bad), bad[0].subject), words.FIND_THE_STEP)
    if odd:
        return conclude(TIES, evidence, words.TIED_APART.format(subject=odd[0].subject), words.TIE_THEM)
    counted = Counter(group.verdict for group in sharing.groups)
    return conclude(TIES, evidence, words.tied(counted["tied"], counted["diverged"], equal=counted["equal copies"]))


def not_built(checkpoint: StagedCheckpoint, name: str, unbuilt: Unbuilt) -> Check:
    """A check of a class that cannot be built: there is something to fix, or codes that cannot be read."""
    if codes := next(iter(checkpoint.unread.codes), None):
        return not_checked(name, f"{describe_codes(checkpoint.name, checkpoint.unread, codes)}.", CHECK_A_COPY)
    return not_checked(name, unbuilt.why, INSTALL_IT) if unbuilt.lacks_library else not_checked(name, unbuilt.why)


def _tie_evidence(group: SharedGroup, rows: int | None) -> Evidence:
    subject = " = ".join(group.names)
    if group.verdict == "tied" and group.file_relation == "different numbers":
        return Evidence(subject, "tied, different copies in the file", "major", None, group.reason)
    severity: Severity = "major" if group.verdict in ("declared only", "alias only") else "none"
    if group.verdict == "equal copies":
        severity = "minor" if group.shape[:1] == (rows,) else "note"
    return Evidence(subject, group.verdict, severity, None, group.reason)


def _vocabulary_rows(checkpoint: StagedCheckpoint) -> int | None:
    try:
        return checkpoint.embedding.shape[0]
    except InspectorError:
        return None


def _missing(name: str, built: Built) -> Evidence:
    shape, bare = built.shapes.get(name, ()), built.model_class.endswith("Model")
    part = "base model" if bare or name.startswith(f"{built.prefix}.") else "head"
    # Nothing but pooler_output depends on a bare encoder's pooler.
    severity = "critical"
    if bare and POOLER in name:
        severity = "note" if built.pipeline and built.pipeline.pools else "minor"
    detail = words.missing(shape, part, built.unread.get(name))
    return Evidence(name, "not in the file", severity, math.prod(shape), detail)


def _by_pipeline(built: Built) -> list[Evidence]:
    """That modules.json has another class loaded than config.json names."""
    if built.pipeline is None or not built.unused_head:
        return []
    loaded = words.by_pipeline(built.model_class, built.pipeline.modules)
    unused = words.unused_head(built.unused_head, built.headless)
    return [
        Evidence(MODULES, "says what is loaded", "note", None, loaded),
        Evidence(built.unused_head, "named, and not loaded", "note", built.headless or None, unused),
    ]


def _undeclared(named: str, built: Built) -> list[Evidence]:
    """What config.json says of the class instead of naming it."""
    if built.declared:
        return []
    if not named:
        detail = words.NO_CLASS_NAMED.format(built=built.model_class)
        return [Evidence("architectures", "not stated", "note", None, detail)]
    detail = words.NO_SUCH_CLASS.format(named=named, built=built.model_class)
    return [Evidence(named, "no class of transformers", "minor", None, detail)]
