"""Find which heads a file holds by building each class without memory: the table's slow twin."""

from __future__ import annotations

from collections.abc import Iterable, Set
from typing import Any

from transformers import PreTrainedConfig, PreTrainedModel
from transformers.models.auto import modeling_auto

from inspector.models.build import CAUSAL_LM, MODEL_ERRORS, meta_model
from inspector.models.naming import embedding_names, find_places
from inspector.results.checkpoint import LANGUAGE_HEADS

HEAD_MAPPINGS = {
    "masked_lm": modeling_auto.MODEL_FOR_MASKED_LM_MAPPING,
    "causal_lm": CAUSAL_LM,
    "next_sentence": modeling_auto.MODEL_FOR_NEXT_SENTENCE_PREDICTION_MAPPING,
    "sequence_classification": modeling_auto.MODEL_FOR_SEQUENCE_CLASSIFICATION_MAPPING,
    "token_classification": modeling_auto.MODEL_FOR_TOKEN_CLASSIFICATION_MAPPING,
    "question_answering": modeling_auto.MODEL_FOR_QUESTION_ANSWERING_MAPPING,
    "multiple_choice": modeling_auto.MODEL_FOR_MULTIPLE_CHOICE_MAPPING,
}


def heads_by_building(config: PreTrainedConfig, names: Iterable[str]) -> dict[str, str]:
    """Say which heads a file holds by building every head without memory and comparing names.

    Slower than the table of families (it imports transformers' classes), and independent of it.

    Args:
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


def is_decoder_only(config: PreTrainedConfig) -> bool:
    """Whether a config's classes predict the next token, and no masked one."""
    return CAUSAL_LM.get(type(config), None) is not None and type(config) not in HEAD_MAPPINGS["masked_lm"]


def _held_by(mapping: Any, config: PreTrainedConfig, architecture: str, head: str, held: set[str]) -> bool:
    found = mapping.get(type(config), None)
    encoder = type(config) in HEAD_MAPPINGS["masked_lm"] and not getattr(config, "is_decoder", None)
    if found is None or (head == "causal_lm" and (encoder or config.is_encoder_decoder)):
        return False
    model_class = found[0] if isinstance(found, tuple) else found
    pretraining = architecture.endswith("ForPreTraining") and head == "next_sentence"
    # Heads whose tensors several classes name alike count only where the architecture is theirs.
    if head not in LANGUAGE_HEADS and model_class.__name__ != architecture and not pretraining:
        return False
    try:
        model = meta_model(model_class, config)
    except MODEL_ERRORS:  # this class is not built from such a config, as a masked LM is not from a decoder's
        return False
    covered = with_ties(model, find_places(model, held).covered)
    return covered.issuperset((*head_names(model), *embedding_names(model)))


def with_ties(model: PreTrainedModel, covered: Set[str]) -> set[str]:
    """Names that a file fills, and those that a loader ties to them, either way."""
    return {name for pair in model.all_tied_weights_keys.items() if covered & set(pair) for name in pair} | covered


def head_names(model: PreTrainedModel) -> list[str]:
    """The names of the parameters that are not the base model's."""
    base = model.base_model_prefix
    return [name for name, _ in model.named_parameters(remove_duplicate=False) if not name.startswith(f"{base}.")]
