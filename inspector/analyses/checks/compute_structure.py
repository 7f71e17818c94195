"""Check a checkpoint's files against the class that config.json names: shapes, heads, ties."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import transformers
from transformers import PreTrainedModel

from inspector.analyses.checks.compute_parts import at_least, conclude, example, not_checked, nothing_to_check
from inspector.analyses.checks.result import Check, Evidence, Severity
from inspector.analyses.sharing.result import SharedGroup, Sharing
from inspector.errors import InspectorError
from inspector.models.build import hollow_model, own_class
from inspector.models.checkpoint import Checkpoint
from inspector.models.names import unexpected_keys
from inspector.models.naming import find_places
from inspector.store.manifest import TensorInfo
from inspector.store.sizes import size_warnings
from inspector.text import plural, shape_text

SHAPES, WEIGHTS = "Config and shapes", "Heads and weights"
LEFT_OVER, TIES = "Left-over tensors", "Ties"
OWN_CONFIG = "Put the config.json that was saved with these weights beside them."
SPARE = ("position_ids", "token_type_ids")  # tables that a loader makes anew, the same ones
POOLER = "pooler."


@dataclass(frozen=True, slots=True)
class Built:
    """What building the class of config.json tells; no weight is kept."""

    model_class: str
    declared: bool  # config.json names this class
    prefix: str  # of the base model
    parameters: int  # tied ones once
    shapes: Mapping[str, tuple[int, ...]]  # of every parameter, by name
    missing: tuple[str, ...]  # parameters that the file lacks, sorted, tied ones by one name
    left_over: tuple[str, ...]  # tensors of the file that the class has no place for, sorted


def build_for_checks(checkpoint: Checkpoint) -> Built:
    """Build the class that config.json names, and note what fits.

    Raises:
        InspectorError: If it cannot be built.
    """
    model, missing = checkpoint.outlined
    return Built(
        model_class=type(model).__name__,
        declared=type(model).__name__ in (checkpoint.config.architectures or ()),
        prefix=model.base_model_prefix,
        parameters=model.num_parameters(),
        shapes=_shapes(model),
        missing=_once(model, missing),
        left_over=tuple(unexpected_keys(model, checkpoint.places(model).unused)),
    )


def check_shapes(checkpoint: Checkpoint, built: Built | str) -> Check:
    """The sizes in config.json are those of the tensors."""
    config = checkpoint.manifest.config
    if config is None:
        why = "There is no config.json"
        evidence = [Evidence("config.json", "missing", "minor", None, f"{why}.")]
        return conclude(
            SHAPES,
            evidence,
            detail=f"{why}: heads, ties and shapes cannot be checked, and no model can be built.",
            next_step=OWN_CONFIG,
        )
    evidence = [
        Evidence("config.json", "fewer layers than the weights", "minor", None, warning)
        for warning in size_warnings(config, checkpoint.manifest.tensors)
    ]
    if isinstance(built, str):  # a class that can be built has no mismatches
        evidence += _mismatches(checkpoint)
    known = config.get("model_type") in transformers.CONFIG_MAPPING
    if isinstance(built, str) and not at_least("major", evidence):
        severity = "critical" if known else "minor"
        evidence.append(Evidence("config.json", "no model can be built", severity, None, built))
    if not evidence:
        tensors = plural(len(checkpoint.manifest.tensors), "tensor")
        return conclude(SHAPES, (), detail=f"config.json fits the shapes of {tensors}.")
    worst = max(evidence, key=lambda each: ("minor", "major", "critical").index(each.severity))
    return conclude(SHAPES, evidence, detail=_shape_sentence(evidence, worst), next_step=OWN_CONFIG)


def check_weights(checkpoint: Checkpoint, built: Built | str) -> Check:
    """Every parameter of the class is in the file; a loader would make up the others."""
    if isinstance(built, str):
        return not_checked(WEIGHTS, built)
    named = tuple(map(str, checkpoint.config.architectures or ()))
    evidence = [
        Evidence(
            name,
            "not in the file",
            _missing_severity(name, built),
            math.prod(built.shapes.get(name, ())),
            f"{shape_text(built.shapes.get(name, ()))}, of the {_part(name, built)}: "
            "a loader fills it with random numbers.",
        )
        for name in built.missing
        if not name.endswith(SPARE)
    ]
    evidence += [
        Evidence(head, "head in the file", "none", None, f"The file holds the {_words(head)} head.")
        for head, there in checkpoint.heads.items()
        if there == "present"
    ]
    if not built.declared:
        evidence.append(_undeclared(named, built))
    lacking = [each for each in evidence if each.problem == "not in the file"]
    if not lacking:
        said = "" if built.declared else f" {evidence[-1].detail}"
        return conclude(
            WEIGHTS,
            evidence,
            next_step="Name the class of these weights in architectures.",
            detail=f"All {built.parameters:,} parameters of {built.model_class} are in the file.{said}",
        )
    random = sum(each.count or 0 for each in lacking)
    alone = all(each.severity == "minor" for each in lacking)
    consequence = (
        "pooler_output would be random, the hidden states are not"
        if alone
        else ("from_pretrained fills them with random numbers, and what depends on them is nonsense")
    )
    return conclude(
        WEIGHTS,
        evidence,
        detail=f"{built.model_class} needs {plural(len(lacking), 'tensor')} that the file lacks "
        f"{example(len(lacking), lacking[0].subject)}: {consequence} "
        f"({random:,} of {built.parameters:,} parameters).",
        next_step="Take the file that was saved with them, or name the class that these weights "
        "are of in architectures of config.json.",
    )


def check_left_over(built: Built | str) -> Check:
    """Every tensor of the file has a place in the class."""
    if isinstance(built, str):
        return not_checked(LEFT_OVER, built)
    severity = "minor" if built.declared else "note"
    evidence = [
        Evidence(
            name,
            "no place in the class",
            severity,
            None,
            f"{built.model_class} has no parameter of this name: it is never loaded.",
        )
        for name in built.left_over
    ]
    if not evidence:
        return conclude(LEFT_OVER, (), detail=f"{built.model_class} has a place for every tensor.")
    return conclude(
        LEFT_OVER,
        evidence,
        detail=f"{built.model_class} has no place for {plural(len(evidence), 'tensor')} of the "
        f"file {example(len(evidence), built.left_over[0])}: nothing of it is ever used.",
        next_step="If a head belongs to them, name its class in architectures of config.json; "
        "if nothing does, save the model without them.",
    )


def check_ties(checkpoint: Checkpoint, sharing: Sharing | str) -> Check:
    """What is declared to be one tensor is one, in the file and in memory."""
    if isinstance(sharing, str):
        return not_checked(TIES, sharing)
    rows = _vocabulary_rows(checkpoint)
    evidence = [_tie_evidence(group, rows) for group in sharing.groups]
    if not evidence:
        return nothing_to_check(TIES, f"{sharing.model_class} ties no parameters.")
    bad, odd = at_least("major", evidence), at_least("minor", evidence)
    tied = sum(group.verdict == "tied" for group in sharing.groups)
    if bad:
        detail = (
            f"{plural(len(bad), 'tie is', 'ties are')} broken "
            f"{example(len(bad), bad[0].subject)}: the names "
            "should be one tensor, and the loaded model keeps them apart."
        )
        step = (
            "Find the step that wrote them apart (a resize, a conversion, a merge); if they are "
            "meant to differ, set tie_word_embeddings to false in config.json."
        )
    elif odd:
        detail = f"{odd[0].subject} hold the same numbers and are not tied: training moves them apart."
        step = "If they are meant to be one, set tie_word_embeddings to true in config.json."
    else:
        kept = len(evidence) - tied
        apart = f"; {plural(kept, 'other group')} apart, as config.json says" if kept else ""
        detail = f"{plural(tied, 'group of names is', 'groups of names are')} tied{apart}."
        step = ""
    return conclude(TIES, evidence, detail=detail, next_step=step)


def _tie_evidence(group: SharedGroup, rows: int | None) -> Evidence:
    differs = group.verdict == "tied" and group.file_relation == "different numbers"
    severity: Severity = "major" if group.verdict in ("declared only", "alias only") else "none"
    if group.verdict == "equal copies":
        severity = "minor" if group.shape[:1] == (rows,) else "note"
    return Evidence(
        subject=" = ".join(group.names),
        problem="tied, different copies in the file" if differs else group.verdict,
        severity="major" if differs else severity,
        count=None,
        detail=group.reason,
    )


def _vocabulary_rows(checkpoint: Checkpoint) -> int | None:
    try:
        return checkpoint.embedding.shape[0]
    except InspectorError:
        return None


def _shapes(model: PreTrainedModel) -> dict[str, tuple[int, ...]]:
    named = model.named_parameters(remove_duplicate=False)
    return {name: tuple(parameter.shape) for name, parameter in named}


def _once(model: PreTrainedModel, names: Iterable[str]) -> tuple[str, ...]:
    """Names without those that are another one's tensor, sorted."""
    tensors = dict(model.named_parameters(remove_duplicate=False))
    found = {id(tensors.get(name, name)): name for name in sorted(names, reverse=True)}
    return tuple(sorted(found.values()))


def _mismatches(checkpoint: Checkpoint) -> list[Evidence]:
    """Tensors whose shape is not the one that config.json asks for."""
    try:
        hollow = hollow_model(own_class(checkpoint.config), checkpoint.config)
    except Exception:  # whatever it is, building the model with its weights says it
        return []
    stored = {tensor.name: tensor for tensor in checkpoint.tensors}
    evidence = []
    held = find_places(hollow, stored).stored_as
    for name, wanted in _shapes(hollow).items():
        found = held.get(name)
        if found and stored[found].shape != wanted:
            evidence.append(_mismatch(stored[found], wanted))
    return evidence


def _mismatch(tensor: TensorInfo, wanted: tuple[int, ...]) -> Evidence:
    return Evidence(
        tensor.name,
        "other shape than config.json asks for",
        "critical",
        None,
        f"{shape_text(tensor.shape)} in the file, {shape_text(wanted)} by config.json.",
    )


def _shape_sentence(evidence: list[Evidence], worst: Evidence) -> str:
    wrong = [each for each in evidence if each.problem.startswith("other shape")]
    if not wrong:
        return worst.detail
    return (
        f"{plural(len(wrong), 'tensor has another shape', 'tensors have other shapes')} than "
        f"config.json asks for {example(len(wrong), wrong[0].subject)}: {wrong[0].detail}"
    )


def _missing_severity(name: str, built: Built) -> Severity:
    # Nothing but pooler_output depends on a bare encoder's pooler.
    bare = built.model_class.endswith("Model") and POOLER in name
    return "minor" if bare else "critical"


def _part(name: str, built: Built) -> str:
    bare = built.model_class.endswith("Model")
    return "base model" if bare or name.startswith(f"{built.prefix}.") else "head"


def _undeclared(named: tuple[str, ...], built: Built) -> Evidence:
    if not named:
        return Evidence(
            "architectures", "not stated", "note", None, f"config.json names no class: {built.model_class} was tried."
        )
    return Evidence(
        ", ".join(named),
        "no class of transformers",
        "minor",
        None,
        f"transformers has no class {', '.join(named)}: {built.model_class} was tried.",
    )


def _words(head: str) -> str:
    return head.replace("_", " ").replace("lm", "LM")
