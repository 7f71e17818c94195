"""Read a tokenizer as the installed transformers does: its class, its settings and its files together.

tokenizer.json alone does not say what a text becomes. The class that transformers chooses may replace the steps of
that file, give ids to tokens that only the settings or the class name, and pad on a side of its own.
"""

from __future__ import annotations

import logging
import shutil
from collections.abc import Collection, Mapping
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from types import SimpleNamespace
from typing import Any

from tokenizers import Tokenizer

from inspector.models.vocabulary.bare import BARE, read_by_hand
from inspector.models.vocabulary.distrust import encode_carefully
from inspector.models.vocabulary.torchless import torch_when_asked
from inspector.store.manifests.manifest import Manifest
from inspector.store.names import CONFIGS

SPECIAL_ROLES = ("pad", "mask", "unk", "cls", "sep", "bos", "eos")
WHOLE = "tokenizer.json"
UNKNOWN = "a ☃"  # a sign that hardly any vocabulary has
# Of config.json, what decides on the class.
DECIDING = ("model_type", "model_name", "tokenizer_class", "encoder", "decoder")


@dataclass(frozen=True, slots=True)
class ReadTokenizer:
    """A tokenizer, and what is not in the object of the tokenizers library."""

    tokenizer: Tokenizer
    roles: Mapping[str, str | None]  # of SPECIAL_ROLES: the token
    padding_side: str = "right"
    truncation_side: str = "right"
    pad_type_id: int = 0
    class_name: str | None = None  # of transformers, as which it was read; None: the files alone were read
    rebuilt: bool = False  # the class makes steps of its own instead of those of tokenizer.json
    unread_class: str | None = None  # of transformers, that should read tokenizer.json and does not
    no_pattern: str | None = None  # the file of tiktoken's, which does not say how a text is split into words


def read_as_library(manifest: Manifest, vocabulary: Collection[str]) -> ReadTokenizer | None:
    """Have transformers' AutoTokenizer read the staged settings and some vocabulary files.

    Nothing else is in the folder that it is given: no code, and no file of a format that has a parser of its own.

    Returns:
        What it reads; None where it reads nothing, or only with a class that is written in Python.
    """
    readers = read_by_hand() if {*vocabulary} & {*BARE} else nullcontext(())
    with torch_when_asked(), readers as bare, TemporaryDirectory() as folder:
        for name in {*CONFIGS, *vocabulary}:
            if (manifest.folder / name).exists():
                shutil.copyfile(manifest.folder / name, Path(folder) / name)
        try:
            return _read(folder, _config(manifest), vocabulary, bare)
        except MemoryError:
            raise
        except Exception:  # of many kinds: it knows no class, or its class wants other files or settings
            return None


def _read(folder: str, config: Any, vocabulary: Collection[str], bare: Collection[str]) -> ReadTokenizer | None:
    import transformers

    transformers.logging.set_verbosity(logging.CRITICAL)
    read = transformers.AutoTokenizer.from_pretrained(
        folder, config=config, local_files_only=True, trust_remote_code=False
    )
    if not getattr(read, "is_fast", False) or not _reads(read, {*vocabulary} - {*bare}):
        return None
    if switch := getattr(read, "_switch_to_input_mode", None):
        switch()  # some translate, and mark the language of what is read otherwise than that of what is written
    read.backend_tokenizer.no_padding()  # a file may ask for any length
    read.backend_tokenizer.no_truncation()
    rebuilt = WHOLE in vocabulary and _rebuilds(type(read))
    if rebuilt:
        encode_carefully(read.backend_tokenizer, UNKNOWN)  # of another kind of file, some classes make what fails here
    return ReadTokenizer(
        tokenizer=read.backend_tokenizer,
        roles={role: _text(getattr(read, f"{role}_token")) for role in SPECIAL_ROLES},
        padding_side=read.padding_side,
        truncation_side=read.truncation_side,
        pad_type_id=read.pad_token_type_id,
        class_name=type(read).__name__,
        rebuilt=rebuilt,
    )


def _rebuilds(tokenizer_class: type) -> bool:
    """Whether a class takes tokens and merges from tokenizer.json and makes the other steps itself."""
    from transformers import PreTrainedTokenizerFast

    return tokenizer_class is not PreTrainedTokenizerFast and "__init__" in vars(tokenizer_class)


def find_class_name(manifest: Manifest, settings: Mapping[str, Any]) -> str | None:
    """The class that settings or model type name; None where they name none."""
    with torch_when_asked():
        from transformers.models.auto.tokenization_auto import TOKENIZER_MAPPING_NAMES

    config = manifest.config or {}
    named = settings.get("tokenizer_class") or config.get("tokenizer_class")
    return named or TOKENIZER_MAPPING_NAMES.get(config.get("model_type", ""))


def _config(manifest: Manifest) -> Any:
    """What AutoTokenizer asks of a config; many of the real classes import torch.

    It looks a class up by its name, and for two models in one it takes the encoder's.
    """
    from transformers import CONFIG_MAPPING
    from transformers.models.auto import auto_mappings

    kept = {key: value for key, value in (manifest.config or {}).items() if key in DECIDING and value is not None}
    model_type = kept.setdefault("model_type", "")
    name = auto_mappings.CONFIG_MAPPING_NAMES.get(model_type, "")
    if "encoder" in kept and name:
        try:
            return CONFIG_MAPPING[model_type].from_dict(kept)
        except (KeyError, TypeError, ValueError):  # AutoTokenizer goes on without the class
            name = ""
    return type(name, (SimpleNamespace,), {})(**kept)


def _reads(read: Any, vocabulary: Collection[str]) -> bool:
    """Whether a class has read these files: where they are missing, some begin with an empty vocabulary."""
    return WHOLE in vocabulary or {*vocabulary} <= {*read.vocab_files_names.values()}


def _text(token: Any) -> str | None:
    return None if token is None else str(token)
