"""Find which parameters share memory: as declared, in the file, and in memory after loading."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import pandas as pd
import torch
from transformers import PreTrainedModel

from inspector.analyses import Progress
from inspector.analyses.folding import fold_rows
from inspector.analyses.overview import shape_text
from inspector.errors import InspectorError
from inspector.models.build import build_model, own_class, quiet
from inspector.models.checkpoint import Checkpoint
from inspector.models.families import in_file
from inspector.models.memory import (
    input_embedding,
    named_tensors,
    reused_modules,
    shared_names,
)
from inspector.results import ReusedModule, SharedGroup, Sharing

VERDICTS = ("tied", "equal copies", "diverged", "declared only", "alias only")
EXAMPLE_IDS = 4  # tokens of the forward pass that counts reused modules


@dataclass(frozen=True, slots=True)
class _Audit:
    """What is known of every name before groups are judged."""

    tensors: Mapping[str, torch.Tensor]  # in memory, by model name
    file_names: Mapping[str, str]  # model name -> name in the file, where it holds one
    stored: Mapping[str, torch.Tensor]  # by file name
    aliases: Mapping[str, str]
    memory: frozenset[frozenset[str]]
    declared: frozenset[frozenset[str]]
    config_ties: bool


def sharing(checkpoint: Checkpoint, *, progress: Progress) -> Sharing:
    """Audit the sharing of a checkpoint's parameters.

    The model is built as the class that config.json names, on the CPU, in the stored dtype; its
    tensors are compared by the bytes that they occupy (Press & Wolf 2017 for why output and input
    embeddings are tied at all).

    Raises:
        InspectorError: If the model cannot be built.
    """
    progress(None, "Building the model")
    quiet()
    model, missing = build_model(
        own_class(checkpoint.config), checkpoint.config, checkpoint.state, name=checkpoint.name
    )
    progress(None, "Comparing parameters")
    tensors = dict(named_tensors(model))
    parameters = dict(model.named_parameters(remove_duplicate=False))
    audit = _audit(checkpoint, model, tensors)
    groups = sorted(
        (_judge(names, audit) for names in _candidates(audit, model)),
        key=lambda group: (-group.nbytes, group.names),
    )
    table = _table(parameters, groups, audit, checkpoint)
    once = {
        min(names): parameters[min(names)]
        for names in (_memory_names(name, audit) & set(parameters) for name in parameters)
    }
    reused, warnings = _reused(model, missing)
    return Sharing(
        listed_parameters=sum(p.numel() for p in parameters.values()),
        unique_parameters=sum(p.numel() for p in once.values()),
        listed_nbytes=sum(p.nbytes for p in parameters.values()),
        unique_nbytes=sum(p.nbytes for p in once.values()),
        groups=tuple(groups),
        reused_modules=reused,
        warnings=(*checkpoint.manifest.warnings, *_missing_warning(missing), *warnings),
        tensors=table,
        rows=fold_rows(table),
    )


def _audit(
    checkpoint: Checkpoint, model: PreTrainedModel, tensors: Mapping[str, torch.Tensor]
) -> _Audit:
    stored, base = checkpoint.state, model.base_model_prefix
    file_names = {name: held for name in tensors if (held := in_file(name, stored, base))}
    return _Audit(
        tensors=tensors,
        file_names=file_names,
        stored=stored,
        aliases=checkpoint.manifest.aliases,
        memory=frozenset(map(frozenset, shared_names(tensors.items()))),
        declared=frozenset(
            map(frozenset, _joined(model.get_expanded_tied_weights_keys(all_submodels=True)))
        ),
        config_ties=bool(getattr(model.config, "tie_word_embeddings", False)),
    )


def _candidates(audit: _Audit, model: PreTrainedModel) -> list[tuple[str, ...]]:
    """Groups to judge: overlapping in memory, declared, possible by the class, or aliased."""
    possible = {
        name: source
        for name, source in (type(model)._tied_weights_keys or {}).items()
        if name in audit.tensors and source in audit.tensors
    }
    by_file_name = {held: name for name, held in audit.file_names.items()}
    aliased = {
        alias: by_file_name[kept]
        for alias, kept in audit.aliases.items()
        if kept in by_file_name and alias in audit.tensors
    }
    found: list[set[str]] = []
    for names in (*audit.memory, *audit.declared, *_joined(possible), *_joined(aliased)):
        known = set(names) & set(audit.tensors)
        if len(known) > 1 and not any(known <= earlier for earlier in found):
            found.append(known)
    return [tuple(sorted(names)) for names in found]


def _joined(pairs: Mapping[str, str]) -> list[set[str]]:
    """Join pairs that share a name into sets."""
    sets: list[set[str]] = []
    for pair in pairs.items():
        touching = [names for names in sets if names & set(pair)]
        sets = [names for names in sets if not names & set(pair)]
        sets.append(set(pair).union(*touching))
    return sets


def _judge(names: tuple[str, ...], audit: _Audit) -> SharedGroup:
    """Give a group its verdict and the sentence that explains it."""
    in_memory = any(set(names) <= group for group in audit.memory)
    declared = any(set(names) <= group for group in audit.declared)
    held = tuple(name for name in names if name in audit.file_names)
    copies = [audit.stored[audit.file_names[name]] for name in held]
    one_storage = len({copy.data_ptr() for copy in copies}) == 1
    equal = all(_same(copies[0], copy) for copy in copies[1:])
    first = audit.tensors[names[0]]
    if in_memory:
        verdict, reason = "tied", _tied_reason(names, held, declared, one_storage, equal)
    elif len(held) < len(names) and any(name in audit.aliases for name in names):
        verdict = "alias only"
        reason = (
            "The file's metadata says that these names are one tensor, but the loaded model keeps "
            "them apart: what one of them learns, the other does not."
        )
    elif declared:
        verdict = "declared only"
        reason = _declared_reason(copies, equal)
    elif equal and copies:
        verdict = "equal copies"
        reason = (
            f"{_why_untied(audit)}, and the file holds {len(copies)} copies with the same numbers:"
            " they are equal, not shared, and drift apart as soon as either is trained."
        )
    else:
        verdict = "diverged"
        reason = f"{_why_untied(audit)}, and the copies hold different numbers: {_distance(copies)}"
    return SharedGroup(
        names=names,
        verdict=verdict,
        shape=tuple(first.shape),
        nbytes=first.nbytes,
        declared=declared,
        in_file=held,
        in_memory=in_memory,
        reason=reason,
    )


def _why_untied(audit: _Audit) -> str:
    return (
        "The class does not tie these names" if audit.config_ties
        else "config.json says tie_word_embeddings = false"
    )  # fmt: skip


def _tied_reason(
    names: Sequence[str], held: Sequence[str], declared: bool, one_storage: bool, equal: bool
) -> str:
    by = "config.json and the class declare it" if declared else "nothing declares it"
    if len(held) == 1:
        kept = f"the file stores one copy, as {held[0]}"
    elif one_storage and held:
        kept = f"the file stores {len(held)} names on one storage"
    else:
        kept = f"the file stores {len(held)} {'equal' if equal else 'different'} copies"
    return f"{len(names)} names, one block of memory: {by}, and {kept}."


def _declared_reason(copies: Sequence[torch.Tensor], equal: bool) -> str:
    if len(copies) > 1 and not equal:
        return (
            "Declared, but broken: the file holds different numbers under these names, so the "
            f"loaded model keeps them apart. {_distance(copies)}"
        )
    return "Declared, but the loaded model keeps these names apart."


def _distance(copies: Sequence[torch.Tensor]) -> str:
    if len(copies) < 2 or copies[0].shape != copies[1].shape:
        return "their shapes differ."
    first, second = (copy.flatten().float() for copy in copies[:2])
    cosine = torch.nn.functional.cosine_similarity(first, second, dim=0).item()
    return (
        f"largest difference {(first - second).abs().max().item():.3g}, "
        f"cosine of the whole {cosine:.4f}."
    )


def _same(first: torch.Tensor, second: torch.Tensor) -> bool:
    if first.shape != second.shape or first.dtype != second.dtype:
        return False
    return first.data_ptr() == second.data_ptr() or torch.equal(
        first.contiguous().view(torch.uint8), second.contiguous().view(torch.uint8)
    )


def _memory_names(name: str, audit: _Audit) -> set[str]:
    return next((set(group) for group in audit.memory if name in group), {name})


def _table(
    parameters: Mapping[str, torch.Tensor],
    groups: Sequence[SharedGroup],
    audit: _Audit,
    checkpoint: Checkpoint,
) -> pd.DataFrame:
    files = {tensor.name: tensor.file for tensor in checkpoint.manifest.tensors}
    # A name in two groups is drawn with the one that really shares memory.
    by_truth = sorted(enumerate(groups), key=lambda item: item[1].in_memory)
    group_of = {name: index for index, group in by_truth for name in group.names}
    return pd.DataFrame(
        {
            "name": name,
            "shape": shape_text(tensor.shape),
            "dtype": str(tensor.dtype).removeprefix("torch."),
            "parameters": math.prod(tensor.shape),
            "nbytes": tensor.nbytes,
            "group": group_of.get(name, -1),
            "file": files.get(audit.file_names.get(name, ""), ""),
        }
        for name, tensor in parameters.items()
    )


def _missing_warning(missing: Iterable[str]) -> list[str]:
    names = sorted(missing)
    if not names:
        return []
    return [
        f"The file lacks {len(names)} parameters of its own class, such as {names[0]}: a loader "
        "would initialise them at random."
    ]


def _reused(
    model: PreTrainedModel, missing: frozenset[str]
) -> tuple[tuple[ReusedModule, ...], list[str]]:
    """Run a few tokens through the model and count; a model that cannot is said to be uncounted."""
    rows = input_embedding(model).shape[0]
    ids = torch.arange(EXAMPLE_IDS).remainder(rows)[None]
    inputs = {"input_ids": ids}
    if model.config.is_encoder_decoder:
        inputs["decoder_input_ids"] = ids
    try:
        return tuple(ReusedModule(*found) for found in reused_modules(model, **inputs)), []
    except InspectorError:
        raise
    except Exception as error:
        return (), [
            f"Reused modules were not counted: the model did not run ({type(error).__name__})."
        ]
