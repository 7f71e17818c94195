"""What transformers 4, the installed transformers and vLLM make of an output matrix that may be the embeddings."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import NamedTuple

import transformers
from transformers import PreTrainedModel
from transformers.models.auto import modeling_auto

from inspector.analyses.checks.compute_loading.tie_rules import (
    FOUR,
    FOUR_FLAT_TEXT,
    FOUR_TEXT,
    FOUR_TIES,
    FOUR_TIES_NOT,
    OF_TRANSFORMERS_4,
    OF_TRANSFORMERS_5,
    OF_VLLM,
    VLLM,
    VLLM_CLASSES,
    VLLM_LANGUAGE_MODELS,
    TieRule,
)
from inspector.analyses.checks.result import HeldHead, TieOutcome, TieRow
from inspector.analyses.checks.words_loading import ties as words
from inspector.analyses.sharing.result import Sharing
from inspector.models.checkpoint import StagedCheckpoint
from inspector.models.ties import FLAG, declared_ties, find_flag, possible_ties
from inspector.store.readers.levels import read_setting, stated

TEXT = "text_config"
HELD_AS: Mapping[str, HeldHead] = {"one storage": "equal", "equal copies": "equal", "different numbers": "different"}


class TiedNames(NamedTuple):
    """Of the matrices that may be one, in the class."""

    head: str
    embedding: str  # which the class ties it to
    alike: frozenset[str]  # all that are tied to that, without the head


class FlagRead(NamedTuple):
    """What decides for a loader."""

    level: str  # "" is the top
    said: bool | None  # by config.json at that level
    value: bool  # as the loader takes it


def tie_rows(checkpoint: StagedCheckpoint, shared: Sharing | None) -> tuple[TieRow, ...]:
    """A row for each loader; none where the class has no output matrix that it could tie.

    Args:
        shared: What shares memory; None where the model cannot be built, so that no numbers were compared.
    """
    if checkpoint.structure is None or checkpoint.unread.codes:
        return ()
    model, places = checkpoint.structure
    names = _names(model)
    if names is None:
        return ()
    held = _held(names, places.covered, shared)
    return (
        _of_transformers_4(checkpoint, names, held),
        _of_transformers_5(checkpoint, model, names, held),
        _of_vllm(checkpoint, type(model).__name__, names, held),
    )


def _names(model: PreTrainedModel) -> TiedNames | None:
    """What the class would tie to its embeddings, of its output matrix; None where there is none, or it never would."""
    output = model.get_output_embeddings()
    place = next((name for name, each in model.named_modules(remove_duplicate=False) if each is output), "")
    head, ties = f"{place}.weight", possible_ties(model)
    if output is None or head not in ties:
        return None
    source = ties[head]
    return TiedNames(head, source, frozenset({source, *(name for name in ties if ties[name] == source)} - {head}))


def _held(names: TiedNames, covered: Collection[str], shared: Sharing | None) -> HeldHead:
    """What the files hold of the two."""
    embedded = not names.alike.isdisjoint(covered)
    if names.head not in covered:
        return "embeddings alone" if embedded else "neither"
    if not embedded:
        return "head alone"
    groups = shared.groups if shared else ()
    found = (each for each in groups if names.head in each.names and names.alike.intersection(each.names))
    return HELD_AS.get(next((each.file_relation for each in found), ""), "not read")


def _row(
    loader: str, rule: TieRule, flag: FlagRead, *, names: TiedNames, held: HeldHead, why: str, source: str
) -> TieRow:
    if held == "not read":
        either: list[TieOutcome] = [rule.outcomes["equal"], rule.outcomes["different"]]
        outcome: TieOutcome = either[0] if either[0] == either[1] else "not read"
    else:
        outcome = rule.outcomes[held]
    reason = words.reason(why, held, outcome, head=names.head, embedding=names.embedding, source=source)
    return TieRow(loader, outcome, reason, flag.level, flag.value, held)


def _of_transformers_4(checkpoint: StagedCheckpoint, names: TiedNames, held: HeldHead) -> TieRow:
    flag = _flag_of_4(checkpoint)
    if flag is None:
        return TieRow(FOUR, "not known", words.NO_TYPE.format(FOUR, checkpoint.config.model_type), "", None, held)
    rule = OF_TRANSFORMERS_4[flag.value]
    why = words.flag(flag.level, flag.said, flag.value, words.DEFAULT)
    return _row(FOUR, rule, flag, names=names, held=held, why=why, source=rule.source)


def _flag_of_4(checkpoint: StagedCheckpoint) -> FlagRead | None:
    """What transformers 4 goes by; None: it does not know the type."""
    values, kind = checkpoint.config_values, checkpoint.config.model_type
    said = stated(values, FLAG)
    text = read_setting(checkpoint.config, "model_type").value
    flat = kind in FOUR_FLAT_TEXT and TEXT not in values
    nested = kind in FOUR_TEXT or (kind in FOUR_FLAT_TEXT and not flat)
    level, part = (TEXT, text) if nested else ("", text if flat else kind)
    if part not in FOUR_TIES | FOUR_TIES_NOT:
        return None
    found = said.get(level)
    return FlagRead(level, found, (part in FOUR_TIES) if found is None else bool(found))


def _of_transformers_5(
    checkpoint: StagedCheckpoint, model: PreTrainedModel, names: TiedNames, held: HeldHead
) -> TieRow:
    found = find_flag(model, checkpoint.config, checkpoint.config_values)
    flag = FlagRead(found.level, found.said, names.head in declared_ties(model))
    rule = OF_TRANSFORMERS_5[flag.value]
    why = words.flag(flag.level, flag.said, flag.value, found.config_class)
    loader = f"transformers {transformers.__version__}"
    return _row(loader, rule, flag, names=names, held=held, why=why, source=rule.source)


def _of_vllm(checkpoint: StagedCheckpoint, architecture: str, names: TiedNames, held: HeldHead) -> TieRow:
    config = checkpoint.config
    if checkpoint.manifest.is_gguf:
        return TieRow(VLLM, "not known", words.NO_GGUF.format(VLLM), "", None, held)
    text = VLLM_LANGUAGE_MODELS.get(architecture)
    if text == "":
        text = modeling_auto.MODEL_FOR_CAUSAL_LM_MAPPING_NAMES.get(read_setting(config, "model_type").value)
    kind, line = VLLM_CLASSES.get(str(text or architecture), (None, ""))
    if kind is None:
        return TieRow(VLLM, "not known", words.NO_CLASS.format(VLLM, architecture), "", None, held)
    flag = _flag_of_vllm(checkpoint)
    rule = OF_VLLM[kind, flag.value]
    if kind == "by flag" and flag.value and not _all_safetensors(checkpoint):
        rule = OF_VLLM["always", True]
    why = words.KINDS.get(kind) or words.flag(flag.level, flag.said, flag.value, type(config).__name__)
    return _row(VLLM, rule, flag, names=names, held=held, why=why, source=f"models/{line}, {rule.source}")


def _flag_of_vllm(checkpoint: StagedCheckpoint) -> FlagRead:
    """The flag at the top of the config as transformers 5 builds it, or else that of the text's part."""
    said = stated(checkpoint.config_values, FLAG)
    top = getattr(checkpoint.config, FLAG, None)
    if top is not None:
        return FlagRead("", said.get(""), bool(top))
    return FlagRead(TEXT, said.get(TEXT), bool(read_setting(checkpoint.config, FLAG).value))


def _all_safetensors(checkpoint: StagedCheckpoint) -> bool:
    return all(kind.file.endswith(".safetensors") for kind in checkpoint.manifest.tensors.kinds)
