"""Find parameters that occupy the same memory."""

from __future__ import annotations

from collections.abc import Iterable

import torch
from torch import nn
from transformers import PreTrainedModel


def named_tensors(model: nn.Module) -> list[tuple[str, torch.Tensor]]:
    """Every parameter and buffer under every one of its names, in the order of the modules."""
    return [
        *model.named_parameters(remove_duplicate=False),
        *model.named_buffers(remove_duplicate=False),
    ]


def input_embedding(model: PreTrainedModel) -> torch.Tensor:
    """The matrix that looks tokens up, (vocab, d_model), detached."""
    weight = model.get_input_embeddings().weight
    if not isinstance(weight, torch.Tensor):
        raise TypeError(f"{type(model).__name__} looks tokens up in something that is no matrix.")
    return weight.detach()


def shared_names(tensors: Iterable[tuple[str, torch.Tensor]]) -> list[tuple[str, ...]]:
    """Group names whose tensors overlap in memory.

    Two tensors overlap if they lie on one storage of one device and the spans from their first to
    their last byte meet. Neither `is` nor an equal pointer finds that: two Parameters may wrap one
    storage, and a view may begin elsewhere in it.

    Args:
        tensors: (name, tensor); tensors on the meta device have no memory and share nothing.

    Returns:
        Groups of at least two names, each in the given order, by their first name's place.
    """
    spans: dict[tuple[str, int], list[tuple[int, int, int, str]]] = {}
    for place, (name, tensor) in enumerate(tensors):
        if tensor.device.type == "meta" or tensor.numel() == 0:
            continue
        begin, end = byte_span(tensor)
        key = (str(tensor.device), tensor.untyped_storage().data_ptr())
        spans.setdefault(key, []).append((begin, end, place, name))
    groups: list[list[tuple[int, str]]] = []
    for on_storage in spans.values():
        reached = -1
        for begin, end, place, name in sorted(on_storage):
            if begin >= reached:
                groups.append([])
            groups[-1].append((place, name))
            reached = max(reached, end)
    shared = sorted(sorted(group) for group in groups if len(group) > 1)
    return [tuple(name for _, name in group) for group in shared]


def byte_span(tensor: torch.Tensor) -> tuple[int, int]:
    """First and one past last byte of a tensor, counted from the start of its storage."""
    begin = int(tensor.storage_offset()) * tensor.itemsize
    reach = sum(
        (size - 1) * stride for size, stride in zip(tensor.shape, tensor.stride(), strict=True)
    )
    return begin, begin + (reach + 1) * tensor.itemsize


def reused_modules(model: nn.Module, **inputs: torch.Tensor) -> list[tuple[str, int]]:
    """Count the modules that one forward pass runs more than once.

    Args:
        model: In evaluation mode.
        inputs: What its forward method takes.

    Returns:
        (first name of the module, uses), only modules that hold parameters, and of nested ones
        only the outermost.
    """
    uses: dict[str, int] = {}
    handles = []
    for name, module in model.named_modules():
        if name and any(True for _ in module.parameters()):

            def count(*_: object, name: str = name) -> None:
                uses[name] = uses.get(name, 0) + 1

            handles.append(module.register_forward_pre_hook(count))
    try:
        with torch.inference_mode():
            model(**inputs)
    finally:
        for handle in handles:
            handle.remove()
    repeated = {name: times for name, times in uses.items() if times > 1}
    return [
        (name, times)
        for name, times in repeated.items()
        if not any(name.startswith(f"{outer}.") for outer in repeated if outer != name)
    ]
