"""Classes of tokenizers that are written in Python: their files are no WordPiece, and most are not read here."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from tokenizers import AddedToken, Tokenizer, models, pre_tokenizers, processors

from inspector.errors import NotInCheckpointError
from inspector.store.manifests.manifest import Manifest

NOT_SUPPORTED = "The tokenizer class {name} is not supported here: tokens are shown by their ids."


def python_class(manifest: Manifest, settings: Mapping[str, Any]) -> str | None:
    """The class that settings, config.json or the model type name, if it is one of transformers' own in Python."""
    import transformers
    from transformers.models.auto.tokenization_auto import TOKENIZER_MAPPING_NAMES
    from transformers.tokenization_python import PythonBackend

    config = manifest.config or {}
    by_type = TOKENIZER_MAPPING_NAMES.get(config.get("model_type", ""))
    name = str(settings.get("tokenizer_class") or config.get("tokenizer_class") or by_type or "")
    found = getattr(transformers, name, None)
    return name if isinstance(found, type) and issubclass(found, PythonBackend) else None


def is_rust_class(name: str) -> bool:
    """Whether transformers has a class of that name that is no Python, but a tokenizer of the tokenizers library."""
    import transformers

    found = getattr(transformers, name, None)
    return isinstance(found, type) and issubclass(found, transformers.PreTrainedTokenizerFast)


def is_supported(name: str | None) -> bool:
    """Whether a class in Python is read here, or there is none to read."""
    return name is None or name in READERS


def read_as_class(name: str, vocabulary: Path, settings: Mapping[str, Any]) -> Tokenizer:
    """Read a vocabulary as a class in Python does.

    Raises:
        NotInCheckpointError: If that class is not supported here.
    """
    if name not in READERS:
        raise NotInCheckpointError(NOT_SUPPORTED.format(name=name))
    return READERS[name](vocabulary, settings)


def _read_esm(vocabulary: Path, settings: Mapping[str, Any]) -> Tokenizer:
    """As EsmTokenizer does: each line is a token wherever it occurs in a text, and the rest of it is words.

    A word that is no token is unknown.
    """
    lines = [line.strip() for line in vocabulary.read_text("utf-8").splitlines()]
    numbers = {token: number for number, token in enumerate(lines)}
    roles = {role: _content(settings, role, f"<{role}>") for role in ("cls", "eos", "unk", "pad", "mask")}
    special = set(roles.values())
    tokenizer = Tokenizer(models.WordLevel(numbers, unk_token=roles["unk"]))
    whitespace: Any = pre_tokenizers.WhitespaceSplit()
    tokenizer.pre_tokenizer = whitespace
    tokenizer.add_tokens([AddedToken(token, normalized=False, special=token in special) for token in lines if token])
    ends = {token: numbers[token] for role in ("cls", "eos") if (token := roles[role]) in numbers}
    before, after = (f"{roles[role]} " if roles[role] in ends else "" for role in ("cls", "eos"))
    processor: Any = processors.TemplateProcessing(
        single=f"{before}$A {after}".strip(),
        pair=f"{before}$A {after}$B {after}".strip(),
        special_tokens=list(ends.items()),
    )
    tokenizer.post_processor = processor
    return tokenizer


def _content(settings: Mapping[str, Any], role: str, usual: str) -> str:
    said = settings.get(f"{role}_token", usual)
    return str(said.get("content", usual) if isinstance(said, dict) else said)


READERS: Mapping[str, Callable[[Path, Mapping[str, Any]], Tokenizer]] = {"EsmTokenizer": _read_esm}
