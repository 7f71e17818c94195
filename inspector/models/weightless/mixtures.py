"""Find the mixtures of experts of a class: blocks that hold numbers for each expert, and a router with a row each."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from torch import nn
from transformers import PreTrainedModel

MATRIX, STACKED = 2, 3  # axes of a matrix, and of what holds a matrix for each expert
SHARED = "shared"  # what transformers calls the experts that every token runs through
LOGITS = "router_logits"  # what it calls a router's answer


@dataclass(frozen=True, slots=True)
class Mixture:
    """A block whose router chooses experts for each token."""

    path: str  # of the block
    count: int  # experts with weights
    rows: int  # of the router: experts that it chooses from, some of which may have no weights
    stacked: tuple[str, ...]  # parameters of all experts, one expert a row
    single: tuple[tuple[str, ...], ...]  # of each expert, where each is a module
    router: str  # the parameter with a row for each expert
    router_bias: str  # "": there is none
    selection_bias: str  # what is added to choose, and not to weigh; "": there is none
    shared: tuple[str, ...]  # modules that every token runs through
    runs: str  # the module that is given the choice


def find_mixtures(model: PreTrainedModel) -> list[Mixture]:
    """Find the blocks of a model, which may be on the meta device, that route tokens to experts."""
    recorded = tuple(_recorded(model))
    by_block: dict[str, list[str]] = {}
    for path, module in model.named_modules():
        if path and _holds_experts(module):
            by_block.setdefault(path.rpartition(".")[0], []).append(path)
    found = (_mixture(model, block, owners, recorded) for block, owners in by_block.items())
    return [each for each in found if each]


def _recorded(model: PreTrainedModel) -> Iterator[type[nn.Module]]:
    """Classes that transformers itself takes for routers."""
    for module in model.modules():
        known: Any = getattr(module, "_can_record_outputs", None) or {}
        target = known.get(LOGITS) if isinstance(known, dict) else None
        for each in target if isinstance(target, list | tuple) else [target]:
            kind = getattr(each, "target_class", each)
            if isinstance(kind, type):
                yield kind


def _holds_experts(module: nn.Module) -> bool:
    """Whether a module has a matrix for each of several experts, or a module for each that it runs itself."""
    if isinstance(module, nn.ModuleList | nn.ModuleDict):
        kinds = {type(each) for _, each in _weighted(module)}
        return type(module) not in (nn.ModuleList, nn.ModuleDict) and len(kinds) == 1
    own = [each for _, each in module.named_parameters(recurse=False) if each.dim() == STACKED]
    convolves = isinstance(module, nn.Conv1d | nn.ConvTranspose1d)
    return bool(own) and not convolves


def _weighted(module: nn.Module) -> Iterator[tuple[str, nn.Module]]:
    """Its children with parameters."""
    return ((name, each) for name, each in module.named_children() if any(True for _ in each.parameters()))


def _mixture(
    model: PreTrainedModel, path: str, owners: list[str], recorded: tuple[type[nn.Module], ...]
) -> Mixture | None:
    block = model.get_submodule(path)
    owners = [each for each in owners if SHARED not in each.rpartition(".")[2]]
    stacked, single = [], []
    for owner in owners:
        module = model.get_submodule(owner)
        if isinstance(module, nn.ModuleList | nn.ModuleDict):
            for name, child in _weighted(module):
                single.append(tuple(f"{owner}.{name}.{each}" for each, _ in child.named_parameters()))
        else:
            stacked += [f"{owner}.{name}" for name, _ in module.named_parameters(recurse=False)]
    sizes = {model.get_parameter(name).shape[0] for name in stacked}
    count = min(sizes) if stacked else len(single)
    router = _router(block, [each.removeprefix(f"{path}.") for each in owners], count, recorded)
    if router is None or count < 1:
        return None
    rows = model.get_parameter(f"{path}.{router}").shape[0]
    beside = router.rpartition(".")[0].partition(".")[0]
    biases = [name for name in _vectors(block, rows) if "bias" in name and not _inside(name, owners, path)]
    own = next((name for name in biases if name == router.removesuffix("weight") + "bias"), "")
    chosen = [name for name in biases if name != own]
    chosen.sort(key=lambda name: not name.startswith(f"{beside}."))
    return Mixture(
        path=path,
        count=count,
        rows=rows,
        stacked=tuple(stacked),
        single=tuple(single),
        router=f"{path}.{router}",
        router_bias=own and f"{path}.{own}",
        selection_bias=f"{path}.{chosen[0]}" if chosen else "",
        shared=tuple(_shared(model, path, router)),
        runs=owners[0],
    )


def _router(block: nn.Module, owners: list[str], count: int, recorded: tuple[type[nn.Module], ...]) -> str | None:
    """The parameter with a row for each expert, by its name in the block."""
    found = []
    for name, each in block.named_parameters():
        apart = SHARED not in name and not any(name.startswith(f"{owner}.") for owner in owners)
        if each.dim() == MATRIX and apart and each.shape[0] >= count:
            known = any(isinstance(block.get_submodule(part), recorded) for part in _above(name))
            if each.shape[0] == count or known:
                found.append((not known, each.shape[0] != count, each.numel(), name))
    return min(found)[-1] if found else None


def _above(name: str) -> Iterator[str]:
    """The modules that a parameter is in, the nearest first."""
    while "." in name:
        name = name.rpartition(".")[0]
        yield name


def _inside(name: str, owners: list[str], path: str) -> bool:
    return any(f"{path}.{name}".startswith(f"{owner}.") for owner in owners)


def _vectors(block: nn.Module, rows: int) -> list[str]:
    named = (*block.named_parameters(), *block.named_buffers())
    return [name for name, each in named if each.numel() == rows == max(each.shape, default=0)]


def _shared(model: PreTrainedModel, path: str, router: str) -> Iterator[str]:
    """Modules of the block, or beside it, that are called shared and have weights."""
    for place in (path, path.rpartition(".")[0]):
        module = model.get_submodule(place) if place else model
        for name, _ in _weighted(module):
            if SHARED in name and not router.startswith(f"{name}."):
                yield f"{place}.{name}" if place else name
