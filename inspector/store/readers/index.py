"""Choose a checkpoint's weight files, and check an index of shards against what they hold."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from inspector.errors import CheckpointError
from inspector.store.adapters import is_adapter_file
from inspector.store.names import OTHER_WEIGHTS, PLAIN_NAME, weight_format
from inspector.store.readers.jsons import read_json
from inspector.text import quoted

MAX_INDEX_NBYTES = 50_000_000
SHARD = re.compile(r"(?P<stem>.+)-(?P<number>\d{5})-of-(?P<count>\d{5})(?P<suffix>\.[a-z]+)")


@dataclass(frozen=True, slots=True)
class Weights:
    """The weight files of a checkpoint."""

    names: tuple[str, ...]  # sorted; one format for all
    index: str | None  # the index that lists them
    weight_map: dict[str, str]  # tensor -> shard, as the index says; empty without one
    warnings: tuple[str, ...]


def choose_weights(files: Mapping[str, Path], ignored: Sequence[str] = ()) -> Weights:
    """Choose the weights as transformers does: safetensors first, whole files before shards.

    Args:
        ignored: Names of files that are not read; they explain a refusal.

    Raises:
        CheckpointError: If there are no weights, several sets of them, or shards are missing.
    """
    weights = [name for name in files if weight_format(name)]
    beside = [name for name in weights if is_adapter_file(name)]
    read = weights if len(beside) == len(weights) else [name for name in weights if name not in beside]
    by_format = {
        wanted: sorted(name for name in read if weight_format(name) == wanted) for wanted in ("safetensors", "pytorch")
    }
    for wanted, stem, suffix in (("safetensors", "model", ".safetensors"), ("pytorch", "pytorch_model", ".bin")):
        names = by_format[wanted]
        if not names:
            continue
        index = f"{stem}{suffix}.index.json"
        if f"{stem}{suffix}" in names:
            chosen = Weights((f"{stem}{suffix}",), None, {}, ())
        elif index in files:
            chosen = _indexed(files, index, wanted)
        else:
            chosen = Weights(_only_set(names), None, {}, ())
        return _with_warnings(chosen, by_format)
    raise CheckpointError(_no_weights(files, ignored))


def refuse_wrong_index(weights: Weights, files: Mapping[str, str]) -> None:
    """Refuse an index that lists a tensor which its shard does not hold.

    Args:
        files: The file of each stored tensor, by the tensor's name.

    Raises:
        CheckpointError: Naming the first such tensor, and how many there are.
    """
    if weights.weight_map == files:  # as most are
        return
    missing = sorted(key for key, shard in weights.weight_map.items() if files.get(key) != shard)
    if missing:
        raise CheckpointError(
            f"{weights.index} lists {quoted(missing[0])} in {weights.weight_map[missing[0]]}, "
            f"which does not contain it ({len(missing):,} of {len(weights.weight_map):,} tensors "
            "are missing): get the index and its shards again."
        )


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
    return Weights(tuple(names), index, weight_map, ())


def _is_shard(shard: object, wanted: str) -> bool:
    return isinstance(shard, str) and PLAIN_NAME.fullmatch(shard) is not None and weight_format(shard) == wanted


def _only_set(names: Sequence[str]) -> tuple[str, ...]:
    """One file, or the complete set of shards that their numbers promise (no index needed)."""
    shards = [SHARD.fullmatch(name) for name in names]
    if len(names) == 1 and shards[0] is None:
        return tuple(names)
    sets = {(m["stem"], m["count"], m["suffix"]) for m in shards if m}
    if len(sets) != 1 or not all(shards):
        listed = ", ".join(names[:4]) + (" …" if len(names) > 4 else "")
        raise CheckpointError(
            f"There are {len(names)} weight files, and nothing shows which belong together "
            f"({listed}): keep one set, or add its index file."
        )
    ((stem, count, suffix),) = sets
    wanted = [f"{stem}-{number:05d}-of-{count}{suffix}" for number in range(1, int(count) + 1)]
    missing = [name for name in wanted if name not in names]
    if missing:
        raise CheckpointError(
            f"{missing[0]} is missing ({len(missing)} of {int(count)} shards are): add the missing shards."
        )
    return tuple(names)


def _with_warnings(chosen: Weights, by_format: Mapping[str, Sequence[str]]) -> Weights:
    if by_format["safetensors"] and by_format["pytorch"]:
        both = (
            f"There are two sets of weights: {', '.join(chosen.names[:2])} is read, and "
            f"{', '.join(by_format['pytorch'][:2])} is not. They may disagree."
        )
        return Weights(chosen.names, chosen.index, chosen.weight_map, (both,))
    return chosen


def _no_weights(files: Mapping[str, Path], ignored: Sequence[str]) -> str:
    needed = "add model.safetensors (or pytorch_model.bin), with config.json and tokenizer files"
    foreign = [name for name in ignored if name.endswith(OTHER_WEIGHTS)]
    if foreign:
        return f"{quoted(foreign[0])} is in an unsupported format: {needed}."
    if not files:
        return f"There are no checkpoint files here: {needed}."
    return f"There are no weights, only {', '.join(sorted(files)[:4])}: {needed}."
