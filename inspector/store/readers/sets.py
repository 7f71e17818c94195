"""Put the tensors of several weight files together, and note what is odd about the set.

What transformers does is the measure. It reads every tensor of the files that the index names, in the order of their
names, so that the last copy of a name counts; where the index says that a tensor is, it does not look at.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

from inspector.errors import CheckpointError
from inspector.store.manifests import findings as kinds
from inspector.store.manifests.columns import TensorInfo, Tensors, stored_once
from inspector.store.manifests.findings import MAX_FOUND, FileProblem
from inspector.store.manifests.manifest import Manifest
from inspector.store.names import weight_format
from inspector.store.readers.gguf import read_gguf
from inspector.store.readers.index import Weights
from inspector.store.readers.pytorch import read_pytorch
from inspector.store.readers.safetensors import MAX_TENSORS, Header, read_safetensors
from inspector.store.sizes import refuse_wrong_sizes
from inspector.text import plural, quoted

READERS: dict[str, Callable[[Path, str], Header]] = {
    "safetensors": read_safetensors,
    "pytorch": read_pytorch,
    "gguf": read_gguf,
}
MOST_UNREAD = 1_000  # files whose headers are looked at though they are not read
UNREADABLE = Tensors.of(())
BY_INDEX = "a program that finds tensors by the index fails"
SAME = f"transformers loads all that the shards hold, but {BY_INDEX}."

Holders = Mapping[str, Sequence[str]]  # tensor -> the files that hold it, by their names


@dataclass(frozen=True, slots=True)
class WeightSet:
    """The tensors of a checkpoint's weight files."""

    tensors: Tensors  # those that count: no name comes twice
    beside: Tensors  # of files that are not read, though their numbers say that they belong to the set
    findings: tuple[FileProblem, ...]


def read_header(path: Path, name: str) -> Header:
    """Read the header of a weight file.

    Raises:
        CheckpointError: If it is none, or lies about what the file holds.
    """
    return READERS[weight_format(name) or ""](path, name)


def put_together(weights: Weights, parts: Sequence[Tensors], files: Mapping[str, Path]) -> WeightSet:
    """Put tensors behind each other; of several copies, the one that the index names counts, or else the last.

    Args:
        parts: The tensors of each file of `weights.names`.
        files: All files of the checkpoint, by name.

    Raises:
        CheckpointError: If no tensor is where the index says.
    """
    whole = Tensors.joined(parts)
    holders = _holders(whole)
    refuse_foreign_index(weights, holders)
    chosen = {name: _choice(weights.weight_map.get(name), held) for name, held in holders.items() if len(held) > 1}
    if chosen:
        whole = Tensors.of(each for each in whole if chosen.get(each.name, each.file) == each.file)
    unread = _headers(weights.unlisted, files)
    found = (
        *_of_files(weights, holders, unread),
        *_of_copies(weights, {name: holders[name] for name in chosen}),
        *_of_index(weights, holders),
        *_of_metadata(weights, whole),
    )
    return WeightSet(whole, _joined(unread, weights.numbered), found)


def refuse_foreign_index(weights: Weights, holders: Holders) -> None:
    """Refuse an index that is another checkpoint's.

    Raises:
        CheckpointError: If no tensor that it lists is in its shard, or more than a model has are not.
    """
    listed = weights.weight_map
    missing = [name for name, shard in listed.items() if shard not in holders.get(name, ())]
    if missing and (len(missing) == len(listed) or len(missing) > MAX_TENSORS):
        first = min(missing)
        raise CheckpointError(
            f"{weights.index} lists {quoted(first)} in {listed[first]}, which does not contain it ({len(missing):,} of "
            f"{len(listed):,} tensors are missing): the index belongs to other files. Compare both with their "
            "source."
        )


def refuse_sizes(config: dict[str, Any], weights: Weights, found: WeightSet, files: Mapping[str, Path]) -> None:
    """Refuse a configuration that asks for a larger model than the weights can fill.

    Raises:
        CheckpointError: As `refuse_wrong_sizes`; where files that are absent or not read explain it, naming them.
    """
    held = Tensors.of([*found.tensors, *found.beside]) if found.beside else found.tensors
    try:
        refuse_wrong_sizes(config, held)
    except CheckpointError as error:
        if cause := _absence(config, held, found) or _neglect(config, weights, held, files):
            raise CheckpointError(cause) from error
        raise


def spare_copies(manifest: Manifest) -> list[TensorInfo]:
    """The tensors of a checkpoint's files whose names are taken from another one of them."""
    counted, own = manifest.by_name, {theirs: mine for mine, theirs in manifest.translated.names.items()}
    shards = {kind.file for kind in manifest.tensors.kinds}
    return [
        tensor._replace(name=mine)
        for name in sorted(shards)
        for tensor in read_header(manifest.paths[name], name).tensors
        if counted[mine := own.get(tensor.name, tensor.name)].file != name
    ]


def _holders(tensors: Tensors) -> dict[str, tuple[str, ...]]:
    alone = [(kind.file,) for kind in tensors.kinds]
    found = dict(zip(tensors.names, map(alone.__getitem__, tensors.places), strict=True))
    if len(found) < len(tensors):
        every: defaultdict[str, set[str]] = defaultdict(set)
        for name, place in zip(tensors.names, tensors.places, strict=True):
            every[name].add(tensors.kinds[place].file)
        found = {name: tuple(sorted(held)) for name, held in every.items()}
    return found


def _choice(listed: str | None, held: Sequence[str]) -> str:
    return listed if listed is not None and listed in held else held[-1]


def _headers(names: Sequence[str], files: Mapping[str, Path]) -> dict[str, Tensors]:
    """The tensors of files that are not read; none of one that cannot be."""
    found = dict.fromkeys(names, UNREADABLE)
    for name in names[:MOST_UNREAD]:
        with suppress(CheckpointError):
            found[name] = read_header(files[name], name).tensors
    return found


def _joined(parts: Mapping[str, Tensors], names: Sequence[str]) -> Tensors:
    return Tensors.of(chain.from_iterable(parts[name] for name in names))


def _absence(config: dict[str, Any], held: Tensors, found: WeightSet) -> str | None:
    """Why the weights are too few: a shard is not there, or does not hold what the index lists in it."""
    for each in found.findings:
        if each.problem == kinds.ABSENT:
            return f"{each.detail} Add them: the others hold less than config.json asks for."
        if each.problem == kinds.NO_SUCH_TENSOR:
            listed = [TensorInfo(name, "", (), (), "", 0, 0, "", 0) for name in each.names]
            with suppress(CheckpointError):
                refuse_wrong_sizes(config, Tensors.of([*held, *listed]))
                return f"{each.detail} Get the shards again: they hold less than config.json asks for."
    return None


def _neglect(config: dict[str, Any], weights: Weights, held: Tensors, files: Mapping[str, Path]) -> str | None:
    """Why the weights are too few: there are others, with which, or in whose place, they would fit."""
    for names in filter(None, (weights.unlisted, weights.pickled)):
        parts = _headers(names, files)
        others = _joined(parts, names)
        if not others:
            continue
        with suppress(CheckpointError):
            refuse_wrong_sizes(config, Tensors.of([*held, *others]) if weights.index else others)
            return _neglected(weights, names)
    return None


def _neglected(weights: Weights, names: Sequence[str]) -> str:
    if weights.index:
        return (
            f"{weights.index} does not list {names[0]}, which lies beside it, and the files that it lists hold less "
            "than config.json asks for: list its tensors in the index."
        )
    return (
        f"{weights.names[0]} holds less than config.json asks for, but {names[0]}, which lies beside it, does not: "
        f"transformers reads {weights.names[0]} alone. To open the other weights, give them a folder of their own."
    )


def _finding(problem: str, subject: str, names: Collection[str], detail: str) -> FileProblem:
    return FileProblem(subject, problem, len(names), detail, tuple(sorted(names)[:MAX_FOUND]))


def _tensors(names: Collection[str], noun: str = "tensor") -> str:
    """How many there are, and the first one."""
    first = quoted(min(names)) if names else ""
    return f"{plural(len(names), noun)} ({'such as ' if len(names) > 1 else ''}{first})"


def _be(names: Collection[str]) -> str:
    return "is" if len(names) == 1 else "are"


def _of_files(weights: Weights, holders: Holders, unread: Mapping[str, Tensors]) -> Iterator[FileProblem]:
    """What is odd about the files that are there and not read, or are not there."""
    for name, tensors in unread.items():
        alone = set(tensors.names) - holders.keys()
        if weights.index and name in weights.numbered:
            missing = f": {_tensors(alone)} that it alone holds {_be(alone)} missing" if alone else ""
            detail = f"{weights.index} does not list {name}, which lies beside it, so loaders skip it{missing}."
            yield _finding(kinds.UNLISTED, name, alone, detail)
        elif name not in weights.rivals or alone:
            why = f"{weights.index} does not list it" if weights.index else f"{weights.names[0]} is read instead"
            held = f" It holds {_tensors(alone)} that the files that are read lack." if alone else ""
            yield _finding(kinds.UNREAD, name, alone, f"{name} is not read: {why}.{held}")
    if absent := weights.absent:
        files = f"{plural(len(absent), 'shard')} {_be(absent)}"
        detail = f"By the numbers in the names of the others, {files} not there ({', '.join(absent[:3])})"
        yield FileProblem(absent[0], kinds.ABSENT, len(absent), f"{detail}, and no index lists what they hold.")


def _of_copies(weights: Weights, twice: Holders) -> Iterator[FileProblem]:
    """Which copy counts of tensors that are in several files, and which one loaders take."""
    listed = weights.weight_map
    apart = {name for name, held in twice.items() if _choice(listed.get(name), held) != held[-1]}
    for problem, names in ((kinds.COPIES_APART, apart), (kinds.COPIES, twice.keys() - apart)):
        if not names:
            continue
        first = min(names)
        kept = _choice(listed.get(first), twice[first])
        by_index = f"the one that {weights.index} names ({kept})"
        by_name = f"the one in the last file by name ({twice[first][-1]})"
        told = f"{by_index}; transformers takes {by_name}" if names is apart else by_name
        if names is not apart and listed.get(first) == kept:
            told = f"{by_index}, and so does transformers, which takes the last file by name"
        detail = f"{_tensors(names)} {_be(names)} in several files, {' and '.join(twice[first][:3])}"
        detail += f": of the copies this app reads {told}. Other loaders, such as vLLM, may take either."
        yield _finding(problem, kept, names, detail)


def _of_index(weights: Weights, holders: Holders) -> Iterator[FileProblem]:
    """What the index says of single tensors that its shards contradict."""
    if not weights.index:
        return
    listed = weights.weight_map
    nowhere = listed.keys() - holders.keys()
    if nowhere:
        detail = f"{weights.index} lists {_tensors(nowhere)} that no shard holds: {SAME}"
        yield _finding(kinds.NO_SUCH_TENSOR, weights.index, nowhere, detail)
    moved = [name for name, shard in listed.items() if name in holders and shard not in holders[name]]
    if moved:
        first = min(moved)
        places = f"in {listed[first]}, but {holders[first][-1]} holds it"
        detail = f"{weights.index} lists {_tensors(moved)} {places}: {SAME}"
        yield _finding(kinds.MISPLACED, weights.index, moved, detail)
    extra = holders.keys() - listed.keys()
    if extra:
        detail = f"{weights.index} does not list {_tensors(extra)} that its shards hold: {SAME}"
        yield _finding(kinds.NOT_IN_INDEX, weights.index, extra, detail)


def _of_metadata(weights: Weights, tensors: Tensors) -> Iterator[FileProblem]:
    """What the index says of the whole."""
    if not weights.index:
        return
    if not isinstance(weights.metadata, dict):
        detail = f"{weights.index} has no metadata, and from_pretrained fails without it."
        yield FileProblem(weights.index, kinds.NO_METADATA, 1, detail)
        return
    said = weights.metadata.get("total_size")
    sizes = {sum(each.nbytes for each in tensors), sum(each.nbytes for each in stored_once(tensors))}
    if type(said) in (int, float) and said not in sizes and not weights.numbered:
        there = f"its tensors take {min(sizes):,} bytes"
        detail = f"{weights.index} gives total_size {said:,}, but {there}: loaders do not read that number."
        yield FileProblem(weights.index, kinds.TOTAL, 1, detail)
