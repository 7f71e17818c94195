"""List the stored tensors by their headers, each with the names that it is tied to."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator

from inspector.analyses.overview.result import ListedTensor
from inspector.errors import RequestError
from inspector.models.checkpoint import StagedCheckpoint
from inspector.models.families import declares_tie, in_file
from inspector.names import fits, is_pattern, list_pattern, nearest
from inspector.store.configs import BLOCKS
from inspector.store.readers.ggml import as_stored
from inspector.text import shape_text


def list_tensors(checkpoint: StagedCheckpoint, find: str) -> tuple[ListedTensor, ...]:
    """List the tensors as the files hold them, in the order of the files.

    Args:
        find: Text in a name, a shape, a dtype or a file's name, in any case; a pattern such as
            "layers.*.bias" finds whole names; "": all tensors.

    Raises:
        RequestError: If no tensor has it.
    """
    tied = _ties(checkpoint)
    every = tuple(
        ListedTensor(
            tensor.name,
            tensor.shape,
            tensor.dtype,
            math.prod(tensor.shape),
            tensor.nbytes,
            tensor.file,
            tuple(sorted(tied[tensor.name] - {tensor.name})),
            checkpoint.manifest.translated.names.get(tensor.name),
        )
        for tensor in as_stored(checkpoint.manifest.tensors, checkpoint.manifest.quantization.get(BLOCKS, {}))
    )
    found = tuple(each for each in every if _is_found(each, find))
    if find and not found:
        near = nearest(find, _parts(each.name for each in every))
        raise RequestError(
            f"No tensor of {checkpoint.name} has {find[:80]!r} in its name, shape, dtype or file"
            + (f": did you mean {near!r}? " if near else ". ")
            + f"`overview --tensors` lists all {len(every):,}.",
            option="find",
        )
    return found


def _is_found(tensor: ListedTensor, find: str) -> bool:
    if is_pattern(find):
        return fits(tensor.name, find)
    told = (tensor.name, tensor.dtype, shape_text(tensor.shape), tensor.file, tensor.name_in_file or "")
    return find.casefold() in " ".join(told).casefold()


def _parts(names: Iterable[str]) -> dict[str, None]:
    """Names, and what lies between some of their dots: what may have been meant; one name of each pattern."""
    found: dict[str, None] = {}
    for name in {list_pattern(name)[0]: name for name in names}.values():
        parts = name.split(".")
        for begin in range(len(parts)):
            for end in range(len(parts), begin, -1):
                found[".".join(parts[begin:end])] = None
    return found


def _ties(checkpoint: StagedCheckpoint) -> dict[str, set[str]]:
    """Stored name -> all names of its numbers: on its bytes, listed for it, or tied to it on loading."""
    found = {name: {name} for name in checkpoint.manifest.tensors.names}
    for names in find_ties(checkpoint):
        for name in names:
            if name in found:
                found[name] |= {*names}
    return found


def find_ties(checkpoint: StagedCheckpoint) -> tuple[tuple[str, ...], ...]:
    """Names of one tensor, the stored one first: on its bytes, listed for it, or tied to it on loading."""
    tensors = checkpoint.manifest.tensors
    found: dict[str, list[str]] = {}
    if tensors.shared:  # else each lies on bytes of its own
        places: dict[tuple[object, ...], str] = {}
        for tensor in tensors:
            first = places.setdefault((tensor.file, tensor.storage, tensor.begin, tensor.nbytes), tensor.name)
            found.setdefault(first, []).append(tensor.name)
    for tied, source in [*checkpoint.manifest.aliases.items(), *_declared(checkpoint)]:
        if tied not in tensors.numbers:  # stored twice: `sharing` compares the two
            first = next((first for first, names in found.items() if source in names), source)
            found.setdefault(first, [source]).append(tied)
    return tuple(tuple(dict.fromkeys(names)) for names in found.values() if len(set(names)) > 1)


def _declared(checkpoint: StagedCheckpoint) -> Iterator[tuple[str, str]]:
    """Names that a loader ties and no file holds, each with the stored name that it repeats."""
    family, config = checkpoint.family, checkpoint.manifest.config
    if config is None:
        return
    if family is None or family.seq2seq_lm:
        yield from _declared_by_class(checkpoint)
    elif declares_tie(config, family) and "present" in (checkpoint.heads["masked_lm"], checkpoint.heads["causal_lm"]):
        stored = checkpoint.manifest.tensors.numbers
        for tied, source in family.ties.items():
            name = in_file(source, stored, family.base)
            if name and in_file(tied, stored, family.base) is None:
                yield tied, name


def _declared_by_class(checkpoint: StagedCheckpoint) -> Iterator[tuple[str, str]]:
    """The same where names alone do not tell: as the class that config.json names declares it."""
    if checkpoint.structure is None:
        return
    from inspector.models.ties import declared_ties

    model, places = checkpoint.structure
    for tied, source in declared_ties(model).items():
        name = places.stored_as.get(source)
        if name and tied not in places.stored_as:
            yield tied, name
