"""Put a model where its plan says, and bring in what stays on the disk when it is its turn."""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Any

import torch
from torch import nn
from transformers import PreTrainedModel

from inspector.models.placing.placement import Plan, accelerates, find_part, place_name
from inspector.results.placement import DISK

PAGE_OUT = 21  # Linux' MADV_PAGEOUT: drops clean pages, and can lose none


def put_in_place(model: PreTrainedModel, plan: Plan) -> None:
    """Put a model where its plan says.

    Args:
        model: On the CPU; of one that is spread, its weights still those of the files, mapped.
    """
    if not plan.parts:
        nn.Module.to(model, plan.device)
        return
    from accelerate import dispatch_model

    weights = _Weights(model, plan.dtype)
    main = place_name(plan.device)
    # What main memory holds is also mapped and read block by block if a GPU computes.
    away = {DISK} if main == "cpu" else {DISK, "cpu"}
    for name, place in plan.parts.items():
        if place not in away:
            _convert(model, name, plan.dtype)
    parts: Any = {name: accelerates(place) for name, place in plan.parts.items()}
    ahead: Any = accelerates(main)  # numbers of GPUs and names alike, which its types leave out
    dispatch_model(
        model,
        parts,
        main_device=ahead,
        state_dict=weights,  # type: ignore[arg-type]  # any mapping does
        offload_index={},
        force_hooks=True,
    )
    _expect(model, plan.dtype)


class _Weights(Mapping[str, torch.Tensor]):
    """A model's weights as its files hold them, copied out whenever accelerate asks for one."""

    def __init__(self, model: PreTrainedModel, dtype: torch.dtype) -> None:
        self._mapped = {name: parameter.detach() for name, parameter in model.named_parameters(remove_duplicate=False)}
        self._dtype = dtype

    def __getitem__(self, name: str) -> torch.Tensor:
        mapped = self._mapped[name]
        copied = mapped.to(self._dtype if mapped.is_floating_point() else mapped.dtype, copy=True)
        _page_out(mapped)
        return copied

    def __iter__(self) -> Iterator[str]:
        return iter(self._mapped)

    def __len__(self) -> int:
        return len(self._mapped)


def _convert(model: PreTrainedModel, name: str, dtype: torch.dtype) -> None:
    """Copy a part out of the file, in the precision that is computed with."""
    found = find_part(model, name)
    if not isinstance(found, nn.Module):
        if found.is_floating_point():
            found.data = found.data.to(dtype, copy=True)
        return
    for parameter in found.parameters():
        if parameter.is_floating_point():
            parameter.data = parameter.data.to(dtype, copy=True)


def _expect(model: nn.Module, dtype: torch.dtype) -> None:
    """Have what is brought in arrive in a precision: accelerate gives it that of what stands in."""
    for module in model.modules():
        for name, parameter in module.named_parameters(recurse=False):
            if parameter.is_meta and parameter.is_floating_point() and parameter.dtype != dtype:
                stand_in = torch.empty_like(parameter, dtype=dtype)
                setattr(module, name, nn.Parameter(stand_in, requires_grad=False))


def _page_out(mapped: torch.Tensor) -> None:
    """Give the memory of pages back that were read from a file, where the system can."""
    if not (sys.platform == "linux" and mapped.is_contiguous()):
        return
    page = 4096
    begin = -(-mapped.data_ptr() // page) * page
    length = (mapped.data_ptr() + mapped.nbytes - begin) // page * page
    if length > 0:
        with suppress(OSError, AttributeError):
            madvise = ctypes.CDLL(None).madvise
            madvise(ctypes.c_void_p(begin), ctypes.c_size_t(length), ctypes.c_int(PAGE_OUT))
