"""What sentence-transformers runs of a checkpoint: the class that it loads, what follows, and where it cuts texts."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from inspector.store.manifests.manifest import Manifest
from inspector.store.names import MODULES, SENTENCE_CONFIGS
from inspector.store.readers.levels import read_setting

if TYPE_CHECKING:
    from transformers import PreTrainedConfig

# The library's word for what it loads -> one of build.TASKS
TASKS = {
    "feature-extraction": "base",
    "fill-mask": "masked_lm",
    "sequence-classification": "sequence_classification",
    "text-generation": "causal_lm",
}
MASKED = "MLMTransformer"  # of sparse encoders, before the transformer's settings named a task
UNLIMITED = 10**9  # tokens; tokenizers write "no limit" as a far larger number
TOKENIZER_CONFIG = "tokenizer_config.json"


@dataclass(frozen=True, slots=True)
class Pipeline:
    """The modules that sentence-transformers runs one after another, as modules.json lists them."""

    modules: tuple[str, ...]  # such as "Transformer", "Pooling", "Normalize"
    task: str | None  # one of build.TASKS, whose class it loads; None: another library's word
    longest: int | None  # tokens, at which its settings or the tokenizer's cut a text; None: they do not say
    longest_said: str  # the setting that says so, and its file; "" likewise
    own_length: bool  # its own setting says so: the model's positions do not count then
    lowers: bool  # it lowercases a text before the tokenizer sees it

    @property
    def pools(self) -> bool:
        """Whether a module makes one vector of the hidden states, so that the model's own pooler is not used."""
        return "Pooling" in self.modules

    def text_limit(self, config: PreTrainedConfig | None) -> tuple[int | None, str]:
        """Tokens at which it cuts a text, and what says so; None and "" where nothing does.

        Where its own setting says nothing, the positions of the configuration bound the tokenizer's limit.
        """
        positions = None if config is None else read_setting(config, "max_position_embeddings").value  # XLNet's is -1
        if self.own_length or type(positions) is not int or positions <= 0:
            return self.longest, self.longest_said
        if self.longest is not None and self.longest <= positions:
            return self.longest, self.longest_said
        return positions, f"max_position_embeddings of {type(config).__name__}"


def read_pipeline(manifest: Manifest) -> Pipeline | None:
    """Read what was staged of modules.json and the settings beside it; None where there is no such file."""
    listed = _read(manifest, MODULES)
    if not listed:
        return None
    modules = tuple(each["type"].rpartition(".")[2] for each in listed)
    name = next((each for each in SENTENCE_CONFIGS if (manifest.folder / each).exists()), SENTENCE_CONFIGS[0])
    settings = _read(manifest, name) or {}
    own_length = _is_limit(settings.get("max_seq_length"))
    longest, said = _longest(settings, name, _read(manifest, TOKENIZER_CONFIG) or {})
    usual = "fill-mask" if modules[0] == MASKED else "feature-extraction"
    task = TASKS.get(settings.get("transformer_task", usual))
    return Pipeline(modules, task, longest, said, own_length, settings.get("do_lower_case") is True)


def _longest(settings: Mapping[str, Any], name: str, tokenizer: Mapping[str, Any]) -> tuple[int | None, str]:
    """Its own setting replaces the tokenizer's."""
    for said, key, file in ((settings, "max_seq_length", name), (tokenizer, "model_max_length", TOKENIZER_CONFIG)):
        if _is_limit(said.get(key)):
            return said[key], f"{key} in {file}"
    return None, ""


def _is_limit(tokens: int | None) -> bool:
    return tokens is not None and tokens < UNLIMITED


def _read(manifest: Manifest, name: str) -> Any:
    path = manifest.folder / name
    return json.loads(path.read_text("utf-8")) if path.exists() else None
