"""Read how a sentence encoder makes one vector of a text: pooling, and the modules after it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from inspector.errors import CheckpointError, NotInCheckpointError
from inspector.results.sentences import MEASURES, MODES
from inspector.store.manifests.manifest import Manifest
from inspector.store.modules import POOLING
from inspector.store.names import MODULES, SENTENCE_SETTINGS, module_file, shown_name
from inspector.text import shorten

# Switches of Pooling, as versions before 6 write them, in the order in which the vectors are joined -> mode.
SWITCHES = {
    f"{POOLING}cls_token": "cls",
    f"{POOLING}max_tokens": "max",
    f"{POOLING}mean_tokens": "mean",
    f"{POOLING}mean_sqrt_len_tokens": "mean_sqrt_len_tokens",
    f"{POOLING}weightedmean_tokens": "weightedmean",
    f"{POOLING}lasttoken": "lasttoken",
}
OWN = "sentence_transformers."  # what the types of the library's own modules begin with, in every version
SHORT = 100  # characters of a type in a sentence
SENTENCE = "sentence_embedding"  # what the library calls the vector that each module reads and writes
TANH = "torch.nn.modules.activation.Tanh"  # of a linear layer whose file names no activation


@dataclass(frozen=True, slots=True)
class Dense:
    """A linear layer after the pooling."""

    folder: str
    activation: str  # the class, as the library writes it
    bias: bool
    residual: bool


@dataclass(frozen=True, slots=True)
class Normalize:
    """Division by the vector's length."""


@dataclass(frozen=True, slots=True)
class SentenceSettings:
    """What a checkpoint states of how texts become vectors, and vectors a score."""

    modes: tuple[str, ...] = ()  # of pooling, whose vectors are joined; (): nothing is stated
    include_prompt: bool = True
    after: tuple[Dense | Normalize, ...] = ()
    measure: str | None = None  # one of MEASURES; None: not stated
    prompts: Mapping[str, str] = field(default_factory=dict)
    default_prompt: str | None = None


def read_settings(manifest: Manifest) -> SentenceSettings:
    """Read what was staged of the modules' files.

    Returns:
        What is stated; nothing where there is no modules.json.

    Raises:
        NotInCheckpointError: If a module is another package's, or one whose vectors this tool does not compute.
        CheckpointError: If a setting is not one that the library writes.
    """
    listed = _read(manifest, MODULES)
    if not listed:
        return SentenceSettings()
    foreign = next((each["type"] for each in listed if not each["type"].startswith(OWN)), None)
    if foreign is not None:
        raise NotInCheckpointError(
            f"{MODULES} lists {shorten(foreign, SHORT)}, which is code of another package and is never run here, so "
            "there is no score to show."
        )
    kinds = [each["type"].rpartition(".")[2] for each in listed]
    if kinds[0] != "Transformer":
        raise NotInCheckpointError(
            f"{MODULES} lists {kinds[0]} first: only vectors that begin with a Transformer can be computed here."
        )
    modes: tuple[str, ...] = ()
    include_prompt, after = True, []
    for kind, each in zip(kinds[1:], listed[1:], strict=True):
        name = module_file(each.get("path", ""), "config.json") or ""
        said = (_read(manifest, name) if name else None) or {}
        if kind == "Pooling" and not modes:
            modes, include_prompt = _modes(said, shown_name(name)), _switch(said, "include_prompt", True, name)
        elif kind == "Dense" and modes:
            after.append(_dense(said, each.get("path", ""), name))
        elif kind == "Normalize" and modes:
            _refuse_other_vectors(said, name)
            after.append(Normalize())
        else:
            raise NotInCheckpointError(
                f"{MODULES} lists {kind} after {' and '.join(kinds[: kinds.index(kind)])}: this tool computes vectors "
                "of a Transformer, one Pooling, then Dense and Normalize, so there is no score to show."
            )
    whole = _read(manifest, SENTENCE_SETTINGS) or {}
    prompts = whole.get("prompts", {})
    return SentenceSettings(modes, include_prompt, tuple(after), _measure(whole), prompts, _default(whole, prompts))


def _read(manifest: Manifest, name: str) -> Any:
    path = manifest.folder / name
    return json.loads(path.read_text("utf-8")) if path.exists() else None


def _modes(said: Mapping[str, Any], name: str) -> tuple[str, ...]:
    """The modes of pooling; as in the library, one setting replaces the older switches."""
    if not said:
        raise NotInCheckpointError(
            f"{MODULES} lists Pooling, but its folder with config.json is not there: add the folder, or name the "
            "pooling yourself."
        )
    mode = said.get("pooling_mode")
    if "pooling_mode" not in said:
        switches = {key: _switch(said, key, False, name) for key in SWITCHES if key in said}
        if not switches:
            return ("mean",)  # what the library takes
        mode = [SWITCHES[key] for key in SWITCHES if switches.get(key)] or ["mean"]
    modes: tuple[Any, ...] = tuple(mode) if isinstance(mode, list) else (mode,)
    if not modes or len(set(modes)) < len(modes) or not all(each in MODES for each in modes):
        raise CheckpointError(
            f"pooling_mode in {name} is not one of {', '.join(MODES)}, or several of them: compare the file with its "
            "source."
        )
    return modes


def _switch(said: Mapping[str, Any], key: str, default: bool, name: str) -> bool:
    value = said.get(key, default)
    if not isinstance(value, bool):
        raise CheckpointError(f"{key} in {shown_name(name)} must be true or false: compare the file with its source.")
    return value


def _dense(said: Mapping[str, Any], folder: str, name: str) -> Dense:
    _refuse_other_vectors(said, name)
    activation = said.get("activation_function", TANH)
    if not isinstance(activation, str):
        raise CheckpointError(
            f"activation_function in {shown_name(name)} must be the name of a class: compare the file with its source."
        )
    return Dense(folder, activation, _switch(said, "bias", True, name), _switch(said, "use_residual", False, name))


def _refuse_other_vectors(said: Mapping[str, Any], name: str) -> None:
    """Refuse a module that reads or writes something else than the vector of the whole text."""
    others: Iterator[Any] = (said.get(key) for key in ("module_input_name", "module_output_name"))
    if any(each not in (None, SENTENCE) for each in others):
        raise NotInCheckpointError(
            f"{shown_name(name)} has the module read or write something else than {SENTENCE}, which this tool does not "
            "follow, so there is no score to show."
        )


def _measure(whole: Mapping[str, Any]) -> str | None:
    measure = whole.get("similarity_fn_name")
    if measure is not None and measure not in MEASURES:
        raise CheckpointError(
            f"similarity_fn_name in {SENTENCE_SETTINGS} must be one of {', '.join(MEASURES)}: compare the file with "
            "its source."
        )
    return measure


def _default(whole: Mapping[str, Any], prompts: Mapping[str, str]) -> str | None:
    default = whole.get("default_prompt_name")
    if default is not None and not (isinstance(default, str) and default in prompts):
        raise CheckpointError(
            f"default_prompt_name in {SENTENCE_SETTINGS} names no prompt of the file: compare the file with its source."
        )
    return default
