"""Choose a checkpoint's weight files, and read the index that lists them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from inspector.errors import CheckpointError
from inspector.store.adapters import is_adapter_file
from inspector.store.foreign.conversions import how_to_convert
from inspector.store.names import PLAIN_NAME, is_of_module, weight_format
from inspector.store.readers.jsons import read_json
from inspector.text import quoted

MAX_INDEX_NBYTES = 50_000_000
# As save_pretrained numbers shards, and as those do who write the count with more digits.
SHARD = re.compile(r"(?P<stem>.+)-(?P<number>\d{5})-of-(?P<count>0?\d{5})(?P<suffix>\.[a-z]+)")
SETS = (("safetensors", "model", ".safetensors"), ("pytorch", "pytorch_model", ".bin"), ("gguf", "model", ".gguf"))
TWO_SETS = "There are two sets of weights"


@dataclass(frozen=True, slots=True)
class Weights:
    """The weight files of a checkpoint, as transformers chooses them."""

    names: tuple[str, ...]  # sorted; one format for all
    index: str | None  # the index that lists them
    weight_map: dict[str, str]  # tensor -> shard, as the index says; empty without one
    metadata: Any  # the index's, unchecked; None without one
    unlisted: tuple[str, ...]  # other files of the format, which are not read
    pickled: tuple[str, ...]  # files of PyTorch's format beside safetensors, which are not read

    @property
    def alone(self) -> bool:
        """Whether the weights bring their configuration and tokenizer, and no other file counts."""
        return weight_format(self.names[0]) == "gguf"

    @property
    def numbered(self) -> tuple[str, ...]:
        """Those of `unlisted` whose numbers say that they belong to the files that are read."""
        sets = set(map(_set_of, self.names)) - {None}
        return tuple(name for name in self.unlisted if _set_of(name) in sets)

    @property
    def rivals(self) -> tuple[str, ...]:
        """Another whole set: pickled weights, or shards beside one file that has all of them."""
        if self.pickled or self.index or _set_of(self.names[0]):
            return self.pickled
        return tuple(name for name in self.unlisted if _set_of(name))

    @property
    def warnings(self) -> tuple[str, ...]:
        """What is said of a rival set."""
        if not self.rivals:
            return ()
        read, other = (", ".join(names[:2]) for names in (self.names, self.rivals))
        return (f"{TWO_SETS}: {read} is read, and {other} is not. They may disagree.",)

    @property
    def absent(self) -> tuple[str, ...]:
        """Shards that the numbers of others promise, and that are neither listed nor there."""
        return tuple(missing_shards((*self.names, *self.numbered)))


def choose_weights(files: Mapping[str, Path], ignored: Sequence[str] = ()) -> Weights:
    """Choose the weights as transformers does: safetensors first, whole files before shards.

    Args:
        ignored: Names of files that are not read; they explain a refusal.

    Raises:
        CheckpointError: If there are no weights, several sets of them, or shards are missing.
    """
    weights = [name for name in files if weight_format(name) and not is_of_module(name)]
    beside = [name for name in weights if is_adapter_file(name)]
    read = weights if len(beside) == len(weights) else [name for name in weights if name not in beside]
    by_format = {
        wanted: sorted(name for name in read if weight_format(name) == wanted)
        for wanted in ("safetensors", "pytorch", "gguf")
    }
    for wanted, stem, suffix in SETS:
        names = by_format[wanted]
        if not names:
            continue
        index = f"{stem}{suffix}.index.json"
        if f"{stem}{suffix}" in names:
            chosen = Weights((f"{stem}{suffix}",), None, {}, None, (), ())
        elif index in files:
            chosen = _indexed(files, index, wanted)
        else:
            chosen = Weights(_only_set(names), None, {}, None, (), ())
        unlisted = tuple(name for name in names if name not in chosen.names)
        pickled = tuple(by_format["pytorch"]) if wanted == "safetensors" else ()
        return replace(chosen, unlisted=unlisted, pickled=pickled)
    raise CheckpointError(_no_weights(files, ignored))


def missing_shards(names: Sequence[str]) -> Iterator[str]:
    """The names of shards that the numbers of others promise, in order."""
    shards = [found for name in names if (found := SHARD.fullmatch(name))]
    for each in dict.fromkeys(map(_set_of, names)):
        numbers = {int(m["number"]) for m in shards if _set_of(m[0]) == each}
        if each is not None:
            stem, count, suffix = each
            first = 0 if 0 in numbers else 1
            for number in range(first, first + int(count)):
                if number not in numbers:
                    yield f"{stem}-{number:05d}-of-{count}{suffix}"


def _set_of(name: str) -> tuple[str, str, str] | None:
    """What shards of one set have in common: how they begin, how many there are, how they end."""
    found = SHARD.fullmatch(name)
    return (found["stem"], found["count"], found["suffix"]) if found else None


def _indexed(files: Mapping[str, Path], index: str, wanted: str) -> Weights:
    parsed = read_json(files[index], index, limit=MAX_INDEX_NBYTES)
    weight_map = parsed.get("weight_map") if isinstance(parsed, dict) else None
    if not isinstance(weight_map, dict) or not weight_map:
        raise CheckpointError(f"{index} has no weight_map: get the file again.")
    known: set[str] = set()
    for shard in weight_map.values():
        if isinstance(shard, str) and shard in known:
            continue
        if not _is_shard(shard, wanted):
            raise CheckpointError(
                f"{index} points to {quoted(str(shard))}, which is not a {wanted} file in the "
                "same folder: an index may only name shards next to it."
            )
        known.add(shard)
    names = sorted(set(weight_map.values()))
    missing = [name for name in names if name not in files]
    if missing:
        raise CheckpointError(
            f"{missing[0]} is missing ({len(missing)} of the {len(names)} shards in {index} "
            "are): add the missing shards."
        )
    return Weights(tuple(names), index, weight_map, parsed.get("metadata"), (), ())


def _is_shard(shard: object, wanted: str) -> bool:
    return isinstance(shard, str) and PLAIN_NAME.fullmatch(shard) is not None and weight_format(shard) == wanted


def _only_set(names: Sequence[str]) -> tuple[str, ...]:
    """One file, or the complete set of shards that their numbers promise (no index needed)."""
    sets = [each for each in dict.fromkeys(map(_set_of, names)) if each]
    if len(names) == 1 and not sets:
        return tuple(names)
    if len(sets) != 1:
        listed = ", ".join(names[:4]) + (" …" if len(names) > 4 else "")
        raise CheckpointError(
            f"There are {len(names)} weight files, and nothing shows which belong together "
            f"({listed}): open one of them by its path, or add the index that lists those of one model."
        )
    shards = tuple(name for name in names if _set_of(name))
    if missing := list(missing_shards(shards)):
        count = int(sets[0][1])
        raise CheckpointError(
            f"{missing[0]} is missing ({len(missing)} of {count} shards are): add the missing shards."
        )
    return shards


def _no_weights(files: Mapping[str, Path], ignored: Sequence[str]) -> str:
    needed = "add model.safetensors (or pytorch_model.bin), with config.json and tokenizer files"
    if found := how_to_convert(ignored):
        return found
    if not files:
        return f"There are no checkpoint files here: {needed}."
    return f"There are no weights, only {', '.join(sorted(files)[:4])}: {needed}."
