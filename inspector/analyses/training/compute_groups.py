"""Sort parameters into those that AdamW decays and those that it does not, with the reason.

The rule is that of transformers' Trainer (`Trainer.get_decay_parameter_names`): nothing inside a
`torch.nn.LayerNorm`, and nothing whose name says bias or norm. Importing the Trainer takes seconds,
so the rule stands here; the tests compare it with the Trainer's own on every family.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

import pandas as pd
import torch
from torch import nn

from inspector.analyses.training.result import DECAYED, FROZEN, NOT_DECAYED, ParameterGroup, SharedParameter

NORM_NAMES = (r"layernorm", r"rmsnorm", r"(?:^|\.)norm(?:$|\.)", r"_norm(?:$|\.)")
NAMES = (r"bias", *NORM_NAMES)  # the Trainer's, searched in the name in small letters

BIAS = "a bias, by its name"
LAYER_NORM = "inside a torch.nn.LayerNorm"
OTHER_NORM = "the scale of another norm, by its name"
NAMED_BIAS = "a table whose name says bias"
NOT_TRAINED = "requires_grad is False"
EMBEDDING = "an embedding table"
MATRIX = "a weight matrix"
VECTOR = "one-dimensional, but its name says neither bias nor norm"


@dataclass(frozen=True, slots=True)
class Sorted:
    """One parameter of the model and where AdamW would put it."""

    names: tuple[str, ...]  # the first is the one that `named_parameters` gives
    module: str  # class that holds it
    tensor: nn.Parameter
    group: str
    reason: str
    in_file: bool


def sort_parameters(model: nn.Module, missing: frozenset[str]) -> list[Sorted]:
    """Sort every parameter once, whatever number of names it has.

    Args:
        missing: Names that the file does not hold.

    Returns:
        In the model's order.
    """
    names: dict[int, list[str]] = {}
    for name, parameter in model.named_parameters(remove_duplicate=False):
        names.setdefault(id(parameter), []).append(name)
    modules = dict(model.named_modules(remove_duplicate=False))
    found = []
    for name, parameter in model.named_parameters():
        same = tuple(names[id(parameter)])
        module = modules[name.rpartition(".")[0]]
        group, reason = _judge(name, parameter, modules)
        held = not missing.issuperset(same)
        found.append(Sorted(same, type(module).__name__, parameter, group, reason, held))
    return found


def _judge(name: str, parameter: torch.Tensor, modules: Mapping[str, nn.Module]) -> tuple[str, str]:
    """The group of a parameter and the reason."""
    if not parameter.requires_grad:
        return FROZEN, NOT_TRAINED
    parts = name.split(".")
    around = (".".join(parts[:depth]) for depth in range(1, len(parts)))
    if any(isinstance(modules[path], nn.LayerNorm) for path in around):
        return NOT_DECAYED, LAYER_NORM
    if re.search("bias", name.lower()):
        return NOT_DECAYED, BIAS if parameter.dim() < 2 else NAMED_BIAS
    if any(re.search(pattern, name.lower()) for pattern in NORM_NAMES):
        return NOT_DECAYED, OTHER_NORM
    if parameter.dim() < 2:
        return DECAYED, VECTOR
    module = modules[".".join(parts[:-1])]
    return DECAYED, EMBEDDING if isinstance(module, nn.Embedding) else MATRIX


def gather(parameters: list[Sorted], group: str, weight_decay: float) -> ParameterGroup:
    """Make one group of the optimizer."""
    chosen = [each for each in parameters if each.group == group]
    return ParameterGroup(
        weight_decay=weight_decay,
        names=tuple(each.names[0] for each in chosen),
        parameters=sum(each.tensor.numel() for each in chosen),
        nbytes=sum(each.tensor.nbytes for each in chosen),
    )


def shared(parameters: list[Sorted]) -> tuple[SharedParameter, ...]:
    """Those that have several names."""
    return tuple(
        SharedParameter(each.names[0], each.names[1:], each.group, each.tensor.numel())
        for each in parameters
        if len(each.names) > 1
    )


def parameter_frame(parameters: list[Sorted]) -> pd.DataFrame:
    """One row a parameter; columns as `TrainingPlan.parameters` lists them."""
    columns = ("name", "other_names", "module", "shape", "dtype", "parameters", "nbytes", "group", "reason", "in_file")
    rows = [
        (
            each.names[0],
            ", ".join(each.names[1:]),
            each.module,
            " × ".join(f"{size:,}" for size in each.tensor.shape) or "scalar",
            str(each.tensor.dtype).removeprefix("torch."),
            each.tensor.numel(),
            each.tensor.nbytes,
            each.group,
            each.reason,
            each.in_file,
        )
        for each in parameters
    ]
    return pd.DataFrame(rows, columns=list(columns))


def reason_frame(frame: pd.DataFrame) -> pd.DataFrame:
    """Count what each reason decides; columns as `TrainingPlan.reasons` lists them."""
    counted = frame.groupby(["group", "reason"], as_index=False, sort=False).agg(
        tensors=("name", "size"), parameters=("parameters", "sum"), nbytes=("nbytes", "sum"), example=("name", "first")
    )
    order = [(DECAYED, NOT_DECAYED, FROZEN).index(group) for group in counted["group"]]
    counted = counted.assign(order=order).sort_values(["order", "parameters"], ascending=[True, False], kind="stable")
    return counted.drop(columns="order").reset_index(drop=True)


# Bytes a trained number takes: weights, gradient, two moments, float32 master weights.
SETUPS = {
    "float32": (4, 4, 8, 0),
    "half precision with float32 master weights": (2, 2, 8, 4),
    "half precision alone": (2, 2, 4, 0),
}


def memory_frame(parameters: list[Sorted]) -> pd.DataFrame:
    """Bytes that training needs without activations; columns as `TrainingPlan.memory` lists them.

    Adam's two moments have the dtype of what they update: the weights, or their float32 masters.
    """
    trained = sum(each.tensor.numel() for each in parameters if each.group != FROZEN)
    frozen = sum(each.tensor.numel() for each in parameters if each.group == FROZEN)
    rows = []
    for setup, (weight, gradient, moments, master) in SETUPS.items():
        taken = (weight * (trained + frozen), gradient * trained, moments * trained, master * trained)
        rows.append((setup, *taken, sum(taken)))
    columns = ["setup", "weights", "gradients", "moments", "master_weights", "total"]
    return pd.DataFrame(rows, columns=columns)
