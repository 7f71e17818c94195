"""Find which heads a file holds by building each class without memory: the table's slow twin."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from transformers import PreTrainedConfig, PreTrainedModel
from transformers.models.auto import modeling_auto

from inspector.models.build import hollow_model
from inspector.models.families import in_file

HEAD_MAPPINGS = {
    "masked_lm": modeling_auto.MODEL_FOR_MASKED_LM_MAPPING,
    "causal_lm": modeling_auto.MODEL_FOR_CAUSAL_LM_MAPPING,
    "next_sentence": modeling_auto.MODEL_FOR_NEXT_SENTENCE_PREDICTION_MAPPING,
    "sequence_classification": modeling_auto.MODEL_FOR_SEQUENCE_CLASSIFICATION_MAPPING,
    "token_classification": modeling_auto.MODEL_FOR_TOKEN_CLASSIFICATION_MAPPING,
    "question_answering": modeling_auto.MODEL_FOR_QUESTION_ANSWERING_MAPPING,
    "multiple_choice": modeling_auto.MODEL_FOR_MULTIPLE_CHOICE_MAPPING,
}
# Heads whose tensors several classes name alike count only where the architecture is theirs.
LANGUAGE_MODELS = ("masked_lm", "causal_lm")


def heads_by_building(config: PreTrainedConfig, names: Iterable[str]) -> dict[str, str]:
    """Say which heads a file holds by building every head without memory and comparing names.

    Slower than the table of families (it imports transformers' classes), and independent of it.

    Args:
        config: The checkpoint's config.
        names: Tensor names of its files, in today's spelling.

    Returns:
        Head -> "present" or "absent".
    """
    held = set(names)
    architecture = next(iter(config.architectures or ()), "")
    return {
        head: "present" if _held_by(mapping, config, architecture, head, held) else "absent"
        for head, mapping in HEAD_MAPPINGS.items()
    }


def _held_by(
    mapping: Any, config: PreTrainedConfig, architecture: str, head: str, held: set[str]
) -> bool:
    found = mapping.get(type(config), None)
    encoder = type(config) in HEAD_MAPPINGS["masked_lm"] and not getattr(config, "is_decoder", None)
    if found is None or (encoder and head == "causal_lm"):
        return False
    model_class = found[0] if isinstance(found, tuple) else found
    pretraining = architecture.endswith("ForPreTraining") and head == "next_sentence"
    if head not in LANGUAGE_MODELS and model_class.__name__ != architecture and not pretraining:
        return False
    model = hollow_model(model_class, config)
    base = model.base_model_prefix
    tied = model.all_tied_weights_keys if config.tie_word_embeddings else {}
    wanted = [
        name
        for name, _ in model.named_parameters(remove_duplicate=False)
        if not name.startswith(f"{base}.") or name == _embedding_name(model)
    ]
    return all(_reachable(name, held, tied, base) for name in wanted)


def _reachable(name: str, held: set[str], tied: Mapping[str, str], base: str) -> bool:
    same = {name, *(tied.get(name, name),), *(t for t, source in tied.items() if source == name)}
    return any(in_file(candidate, held, base) for candidate in same)


def _embedding_name(model: PreTrainedModel) -> str:
    weight = model.get_input_embeddings().weight
    return next(name for name, p in model.named_parameters(remove_duplicate=False) if p is weight)
