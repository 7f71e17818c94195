"""Write inspector/store/foreign/known_names.json.gz: the parameters' names of each class of the installed transformers.

Classes are built with their default settings, without memory; what asks for a library or settings of its own is left
out. It takes some minutes.
"""

from __future__ import annotations

import gzip
import json
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
import transformers
from transformers import CONFIG_MAPPING, PreTrainedModel
from transformers.core_model_loading import revert_weight_conversion
from transformers.models.auto import modeling_auto

from inspector.store.foreign.known_names import FILE, KnownClass, kind_of

MAPPINGS = (  # the likelier first
    modeling_auto.MODEL_FOR_MASKED_LM_MAPPING,
    modeling_auto.MODEL_FOR_CAUSAL_LM_MAPPING,
    modeling_auto.MODEL_FOR_SEQ_TO_SEQ_CAUSAL_LM_MAPPING,
    modeling_auto.MODEL_MAPPING,
)


def classes_of(model_type: str) -> list[type[PreTrainedModel]]:
    """The language models and the base model of a model type, each once."""
    found = (mapping.get(CONFIG_MAPPING[model_type], ()) for mapping in MAPPINGS)
    listed = [name for each in found for name in (each if isinstance(each, (list, tuple)) else (each,))]
    return [each for each in dict.fromkeys(listed) if each is not None]


def known_class(model_type: str, model_class: type[PreTrainedModel]) -> KnownClass:
    """The names that a file of this class has, as `save_pretrained` writes them."""
    with torch.device("meta"):
        model: Any = model_class(CONFIG_MAPPING[model_type]())
    stored = revert_weight_conversion(model, model.state_dict())
    kinds = {name: kind_of(name, tensor.ndim) for name, tensor in stored.items()}
    tied = frozenset(kinds[name] for name in model.all_tied_weights_keys if name in kinds)
    return KnownClass(model_type, model_class.__name__, frozenset(kinds.values()), tied)


def known_classes() -> Iterator[KnownClass]:
    """Every class that default settings build."""
    for model_type in CONFIG_MAPPING:
        try:
            classes = classes_of(model_type)
        except (ImportError, AttributeError, KeyError, ValueError) as error:
            print(f"{model_type}: {error}")
            continue
        for model_class in classes:
            try:
                yield known_class(model_type, model_class)
            except Exception as error:  # whatever a class raises at settings that it does not like
                print(f"{model_type}, {model_class.__name__}: {type(error).__name__}")


def borrowed() -> Counter[str]:
    """How often the code of other models is built on a model's: those that others copy come first."""
    sources = Path(transformers.__file__).parent.glob("models/*/*.py")
    texts = (source.read_text(encoding="utf-8") for source in sources)
    return Counter(module for text in texts for module in re.findall(r"(?:from \.\.|models\.)(\w+)\.modeling", text))


def main() -> None:
    """Write the file."""
    often = borrowed()
    alike: dict[tuple[frozenset[str], frozenset[str]], list[tuple[str, str]]] = {}
    for known in sorted(known_classes(), key=lambda known: -often[known.model_type.replace("-", "_")]):
        alike.setdefault((known.kinds, known.tied), []).append((known.model_type, known.name))
    classes = [(sorted(kinds), sorted(tied), named) for (kinds, tied), named in alike.items()]
    text = json.dumps({"transformers": transformers.__version__, "classes": classes}, separators=(",", ":"))
    FILE.write_bytes(gzip.compress(text.encode(), mtime=0))
    print(f"{len(classes):,} sets of names, {FILE.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
