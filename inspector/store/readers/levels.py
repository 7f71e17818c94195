"""Read a setting of a configuration together with the level that it comes from.

A configuration of several models keeps the settings of its language model in a part of its own: text_config, decoder,
thinker_config.text_config. The built configuration tells which part that is; of a file alone, the parts' names and
what they hold do. Nobody else looks for such a setting at the top, where it may be missing or another model's.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, cast

TEXT = re.compile(r"text_config|llm_config|language(_model)?_config|thinker_config|decoder|generator|text_encoder")
NESTED = re.compile(r"[a-z_]+_config|encoder|decoder|generator|text_encoder")
VOCABULARY = "vocab_size"  # which a part has that reads tokens


@dataclass(frozen=True, slots=True)
class ConfigSetting:
    """The value of a setting, and where it stands."""

    value: Any  # None: no level has one
    level: str = ""  # "" is the top; "thinker_config.text_config"


def read_setting(config: object, *keys: str) -> ConfigSetting:
    """Read a setting of what reads the text: its own part's value, or else what stands above it.

    Args:
        config: Of a file, as a mapping; or as transformers builds it.
        keys: The names that it may have; of one level, the first counts.
    """
    for level, part in reversed(list(text_levels(config))):
        for key in keys:
            if (value := _said(part, key)) is not None:
                return ConfigSetting(value, level)
    return ConfigSetting(None)


def text_levels(config: object) -> Iterator[tuple[str, Any]]:
    """The levels from the top down to the part that reads text, each with its place."""
    level, part = "", config
    while True:
        yield level, part
        inner = _inner_part(part)
        if inner is None:
            return
        name, part = inner
        level = f"{level}.{name}".removeprefix(".")


def stated(values: Mapping[str, Any], key: str) -> dict[str, Any]:
    """What a file says of a setting, at every level that says something: level -> value, the top first."""
    found = {"": values[key]} if values.get(key) is not None else {}
    for name, part in values.items():
        if NESTED.fullmatch(name) and isinstance(part, Mapping):
            inner = stated(part, key).items()
            found |= {f"{name}.{level}".removesuffix("."): value for level, value in inner}
    return found


def parts_of(config: object) -> Iterator[tuple[str, Any]]:
    """A built configuration and all its parts, each with its level; the top first."""
    yield "", config
    for name, part in vars(config).items():
        if hasattr(part, "get_text_config"):
            yield from ((f"{name}.{level}".removesuffix("."), inner) for level, inner in parts_of(part))


def _said(part: object, key: str) -> Any:
    return part.get(key) if isinstance(part, Mapping) else getattr(part, key, None)


def _inner_part(part: object) -> tuple[str, Any] | None:
    """The next level on the way to the text, with its name."""
    if isinstance(part, Mapping):
        parts = {name: each for name, each in part.items() if NESTED.fullmatch(name) and isinstance(each, Mapping)}
        named = [name for name in parts if TEXT.fullmatch(name)]
        if not named and VOCABULARY not in part:
            named = [name for name in parts if VOCABULARY in parts[name]]
        return (named[0], parts[named[0]]) if named else None
    inner = _text_config(part)
    if inner is part:
        return None
    place = next((level for level, each in parts_of(part) if each is inner), "")
    name = place.partition(".")[0]
    return (name, getattr(part, name)) if name else None  # else a part that was made when it was asked for


def _text_config(config: object) -> object:
    """The part that transformers says reads the text."""
    ask = cast("Callable[..., object] | None", getattr(config, "get_text_config", None))
    if ask is None:
        return config
    try:
        return ask()
    except ValueError:  # an encoder of text, and a decoder of something else
        return ask(encoder=True)
