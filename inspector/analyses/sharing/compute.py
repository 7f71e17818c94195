"""Find which parameters share memory: as declared, in the file, and in memory after loading."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import torch
from torch import nn
from transformers import PreTrainedModel

from inspector.analyses.sharing import words_verdicts as words
from inspector.analyses.sharing.compute_accounting import number_storages, shared_group, tensor_table
from inspector.analyses.sharing.compute_folding import fold_rows
from inspector.analyses.sharing.compute_verdicts import SharingEvidence, find_groups, join_pairs, judge
from inspector.analyses.sharing.result import ReusedModule, Sharing
from inspector.errors import RequestError
from inspector.models import execution
from inspector.models.build import build_model
from inspector.models.copies import LiveCopies, StoredCopies
from inspector.models.memory import count, count_once, named_tensors, overlaps
from inspector.models.ties import FLAG, TieFlag, declared_ties, find_flag, kept_ties, possible_ties, tying_part
from inspector.models.weightless.outline import build_outline
from inspector.progress import Progress
from inspector.store.manifests.columns import TensorInfo
from inspector.text import plural

if TYPE_CHECKING:
    from inspector.models.checkpoint import StagedCheckpoint


CONFIG = "config.json"

Inputs = Mapping[str, torch.Tensor] | tuple[torch.Tensor, ...]


def sharing(checkpoint: StagedCheckpoint, *, progress: Progress, count_reuse: bool = True) -> Sharing:
    """Audit the sharing of a checkpoint's parameters.

    The model is built as the class that config.json names, in the stored dtype and without its
    numbers; its tensors are compared by the bytes that they occupy (Press & Wolf 2017 for why
    output and input embeddings are tied at all). Copies in the file are compared piece by piece,
    and modules are counted in a pass without weights: of a large file only candidates are read.
    While the numbers are still on their way, copies are not compared, and the answer says so.

    Args:
        checkpoint: Whose config.json names a class that can be built.
        progress: Told what is being done.
        count_reuse: False: for other rooms, which need no count of the modules that run more than once.

    Raises:
        InspectorError: If the model cannot be built.
    """
    progress(None, "Building the model")
    early = checkpoint.manifest.is_outline
    model, missing = build_outline(checkpoint, checkpoint.own_class, compare=False) if early else checkpoint.outlined
    progress(None, "Comparing parameters")
    tensors = dict(named_tensors(model))
    stored = {tensor.name: tensor for tensor in checkpoint.tensors}
    places = checkpoint.places(model)
    held = {name: stored[found] for name in tensors if (found := places.stored_as.get(name))}
    evidence = _gather(
        model,
        tensors,
        held=held,
        aliases=checkpoint.manifest.aliases,
        copies=StoredCopies(
            checkpoint.manifest,
            {name: info.name for name, info in held.items() if info.name not in checkpoint.quantized},
        ),
        flag=find_flag(model, checkpoint.config, checkpoint.config_values),
        missing=missing,
    )
    reused, warnings = (), ()
    if count_reuse:
        progress(None, "Counting reused modules")
        reused, warnings = execution.count_reuse(model, loaded=lambda: _loaded(checkpoint, type(model)))
    said = [*checkpoint.manifest.warnings]
    if early:
        said.append(words.NOT_SEARCHED)
    if missing:
        once = {id(tensors.get(name, name)) for name in missing}  # tied ones count once
        said.append(words.MISSING.format(count=plural(len(once), "tensor"), name=min(missing)))
    if left := checkpoint.left_over(model):
        said.append(words.HOMELESS.format(model=type(model).__name__, count=plural(len(left), "tensor"), name=left[0]))
    found = _assemble(evidence, model_class=type(model).__name__, reused=reused, warnings=(*said, *warnings))
    file = checkpoint.manifest.says_all or CONFIG
    return replace(found, groups=tuple(replace(g, reason=g.reason.replace(CONFIG, file)) for g in found.groups))


def _loaded(checkpoint: StagedCheckpoint, model_class: type[PreTrainedModel]) -> PreTrainedModel:
    """The model with its numbers, for a class whose code looks at them."""
    return build_model(model_class, checkpoint.config, checkpoint.state, name=checkpoint.name)[0]


def find_sharing(module: nn.Module, *, inputs: Inputs | None = None) -> Sharing:
    """Audit the sharing of a module in memory, as `sharing` does for a checkpoint.

    Args:
        module: Any module, on any devices; it is not changed.
        inputs: What its forward method takes, by name or in order; None: modules that one pass
            runs more than once are counted only where transformers' own classes tell what to give.

    Returns:
        Groups by the bytes that tensors have in common, whatever wraps them, those that
        transformers' classes declare, and equal copies; there is no file, so `in_file` is empty.

    Raises:
        RequestError: If it has no tensors.
    """
    tensors = dict(named_tensors(module))
    if not tensors:
        raise RequestError(f"{type(module).__name__} has neither parameters nor buffers, so it shares none.")
    parameters = [name for name, _ in module.named_parameters(remove_duplicate=False)]
    copies = LiveCopies(tensors, parameters)
    evidence = _gather(module, tensors, held=None, aliases={}, copies=copies)
    if inputs is not None:
        reused, warnings = tuple(execution.reused_modules(module, inputs)), ()
    elif isinstance(module, PreTrainedModel):
        reused, warnings = execution.count_reuse(module)
    else:
        reused, warnings = (), ()
    return _assemble(evidence, model_class=type(module).__name__, reused=reused, warnings=tuple(warnings))


def _gather(
    module: nn.Module,
    tensors: Mapping[str, torch.Tensor],
    *,
    held: Mapping[str, TensorInfo] | None,
    aliases: Mapping[str, str],
    copies: StoredCopies | LiveCopies,
    flag: TieFlag | None = None,
    missing: frozenset[str] = frozenset(),
) -> SharingEvidence:
    ties_all = bool(flag.value if flag else _ties(module))
    untied = flag is not None and flag.said is False
    forced = untied and ties_all  # T5's config ties all the same, and its loader what is equal
    ties = declared_ties(module)
    if forced:
        ties = {name: of for name, of in ties.items() if kept_ties(module).get(name) == of}
    return SharingEvidence(
        tensors=tensors,
        parameters=frozenset(name for name, _ in module.named_parameters(remove_duplicate=False)),
        held=held,
        aliases=aliases,
        copies=copies,
        memory=[frozenset(block.name for block in group) for group in overlaps(tensors.items())],
        declared=join_pairs([set(pair) for pair in ties.items()]),
        possible=join_pairs([set(pair) for pair in possible_ties(module).items()]),
        config_ties=ties_all and not untied,
        untied=forced,
        flag=flag,
        missing=missing,
    )


def _ties(module: nn.Module) -> bool:
    """Whether the config of a module in memory ties."""
    part = tying_part(module) if isinstance(module, PreTrainedModel) else module
    return bool(getattr(getattr(part, "config", None), FLAG, False))


def _assemble(
    evidence: SharingEvidence, *, model_class: str, reused: Sequence[tuple[str, int]], warnings: tuple[str, ...]
) -> Sharing:
    storages = number_storages(evidence.tensors)
    groups = sorted(
        (shared_group(judge(names, evidence), evidence, storages) for names in find_groups(evidence)),
        key=lambda group: (-group.nbytes, group.names),
    )
    parameters = {name: evidence.tensors[name] for name in evidence.tensors if name in evidence.parameters}
    listed = count(parameters)
    unique = count_once(parameters)
    table = tensor_table(groups, evidence, storages)
    rows, row_of = fold_rows(table, groups)
    return Sharing(
        listed_parameters=listed[0],
        unique_parameters=unique[0],
        listed_nbytes=listed[1],
        unique_nbytes=unique[1],
        groups=tuple(groups),
        reused_modules=tuple(ReusedModule(*found) for found in reused),
        warnings=warnings,
        tensors=table.assign(row=row_of),
        rows=rows,
        model_class=model_class,
    )
