"""Decide where a model runs, by its sizes alone, before any weight is read.

A model that fits on one device goes there whole. A larger one is spread, as
`device_map="auto"` does: the GPUs are filled, then the CPU, the rest stays on the disk, and
accelerate's hooks bring a block of layers in when it is its turn. What stays on the disk stays in
the checkpoint's own files, mapped; only blocks of layers do: embeddings, norms and heads are read
by analyses directly.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import psutil
import torch
from torch import nn
from transformers import PreTrainedModel

from inspector.models.device import pick_device, pick_dtype
from inspector.results.placement import Place, Placement
from inspector.settings import MB, Device, Dtype, Settings

SHARE = 0.9  # of a GPU's free memory that weights may take: a pass needs some, too
RAM_SHARE = 0.8  # of the machine's memory, likewise
HALVES = (torch.bfloat16, torch.float16)
IN_A_LIST = re.compile(r"(^|\.)\d+$")  # a layer among its like
DISK = "disk"


@dataclass(frozen=True, slots=True)
class Plan:
    """Where the parts of one model go."""

    device: torch.device  # where it computes
    dtype: torch.dtype
    nbytes: int
    reason: str
    places: tuple[Place, ...]
    parts: Mapping[str, str] = field(default_factory=dict)  # module -> device, if it is spread

    @property
    def key(self) -> tuple[str, ...]:
        """Equal for plans that give the same model."""
        return (str(self.device), str(self.dtype), *(f"{k}={v}" for k, v in self.parts.items()))

    def result(self) -> Placement:
        """The plan for people."""
        return Placement(
            device=str(self.device),
            dtype=str(self.dtype).removeprefix("torch."),
            nbytes=self.nbytes,
            spread=bool(self.parts),
            places=self.places,
            reason=self.reason,
        )


def make_plan(
    hollow: PreTrainedModel, *, stored: torch.dtype, settings: Settings, device: Device = "auto", dtype: Dtype = "auto"
) -> Plan:
    """Decide where a model goes.

    Args:
        hollow: The model without numbers, from `build.hollow_model`.
        stored: The dtype of the checkpoint's weights.
        settings: What may be used.
        device: "auto" decides; "spread" spreads whatever the size; another is taken as it is.
        dtype: "auto" decides: the file's own half precision where float32 does not fit.

    Raises:
        RequestError: If there is no such device or dtype.
    """
    device = settings.device if device == "auto" else device
    dtype = settings.dtype if dtype == "auto" else dtype
    where = pick_device(device)
    precision = pick_dtype(dtype, device=where, stored=stored)
    allowed = _allowed(settings, where)
    first = next(iter(allowed))
    fits = _nbytes(hollow, precision) <= allowed[first]
    if not fits and dtype == "auto" and device in {"auto", "spread"} and stored in HALVES:
        precision = stored
        fits = _nbytes(hollow, precision) <= allowed[first]
    if device == "spread" or (device == "auto" and not fits):
        return _spread(hollow, where, precision, allowed)
    nbytes = _nbytes(hollow, precision)
    return Plan(
        where,
        precision,
        nbytes,
        _reason_one(where, precision, nbytes, allowed=allowed[first]),
        (Place(first, nbytes, allowed[first]),),
    )


def _spread(hollow: PreTrainedModel, where: torch.device, precision: torch.dtype, allowed: dict[str, int]) -> Plan:
    from transformers.integrations.accelerate import infer_auto_device_map

    main = next(iter(allowed))
    sizes = {name: parameter.numel() * _itemsize(parameter, precision) for name, parameter in hollow.named_parameters()}
    nn.Module.to(hollow, precision)  # on the meta device: sizes alone change
    kept = 0  # bytes that must be on the device that computes, wherever accelerate put them
    parts: dict[str, str] = {}
    for _ in range(2):  # the second time with room left for those
        memory: dict[int | str, int | str] = {
            accelerates(name): max(nbytes - kept, 0) if name == main else nbytes for name, nbytes in allowed.items()
        }
        found = infer_auto_device_map(
            hollow, max_memory=memory, no_split_module_classes=set(hollow._no_split_modules or ()), clean_result=False
        )
        named = {name: _named(place) for name, place in found.items()}
        parts = {
            inner: where_to
            for name, place in named.items()
            for inner, where_to in _layers_alone(hollow, name, place=place, main=main)
        }
        kept = sum(nbytes for name, nbytes in sizes.items() if _place(name, parts) == main != _place(name, named))
    held = dict.fromkeys((*allowed, DISK), 0)
    for name, nbytes in sizes.items():
        held[_place(name, parts)] += nbytes
    places = tuple(Place(name, nbytes, allowed.get(name)) for name, nbytes in held.items() if nbytes)
    return Plan(where, precision, sum(sizes.values()), _reason_spread(precision, places), places, parts)


def _layers_alone(hollow: nn.Module, name: str, *, place: str, main: str) -> Iterator[tuple[str, str]]:
    """Leave only layers of a list where they are brought in from; what is beside them runs whole.

    Yields:
        Modules and parameters of the part of that name, with where each goes.
    """
    if place not in {DISK, "cpu"} or _in_a_list(name):
        yield name, place
        return
    found = find_part(hollow, name)
    if not isinstance(found, nn.Module) or not any(_in_a_list(inner) for inner, _ in found.named_modules(prefix=name)):
        yield name, main
        return
    start = f"{name}." if name else ""
    for child, _ in found.named_children():
        yield from _layers_alone(hollow, start + child, place=place, main=main)
    for own, _ in (*found.named_parameters(recurse=False), *found.named_buffers(recurse=False)):
        yield start + own, main


def main_memory(settings: Settings) -> int:
    """Bytes of main memory that a model's weights may take."""
    return min(settings.model_nbytes, int(RAM_SHARE * psutil.virtual_memory().total))


def _allowed(settings: Settings, where: torch.device) -> dict[str, int]:
    """Bytes of weights that each place may hold, the one that computes first."""
    cpu = main_memory(settings)
    if where.type == "cuda":
        free = [torch.cuda.mem_get_info(i)[0] for i in range(torch.cuda.device_count())]
        return {f"cuda:{i}": int(SHARE * nbytes) for i, nbytes in enumerate(free)} | {"cpu": cpu}
    if where.type == "mps":
        return {"mps": min(cpu, int(SHARE * torch.mps.recommended_max_memory())), "cpu": cpu}
    return {"cpu": cpu}


def _nbytes(hollow: PreTrainedModel, precision: torch.dtype) -> int:
    return sum(each.numel() * _itemsize(each, precision) for each in hollow.parameters())


def _itemsize(parameter: torch.Tensor, precision: torch.dtype) -> int:
    return (precision if parameter.is_floating_point() else parameter.dtype).itemsize


def _in_a_list(name: str) -> bool:
    """Whether a module is a layer among its like, or lies in one."""
    parts = name.split(".")
    return any(IN_A_LIST.search(".".join(parts[:end])) for end in range(1, len(parts) + 1))


def _place(name: str, parts: Mapping[str, str]) -> str:
    """The device of the innermost module that a parameter lies in."""
    while name and name not in parts:
        name = name.rpartition(".")[0]
    return parts[name]


def find_part(model: nn.Module, name: str) -> nn.Module | torch.Tensor:
    """A module or a parameter by its name; the model itself by an empty one."""
    found: Any = model
    for part in filter(None, name.split(".")):
        found = getattr(found, part)
    return found


def place_name(device: torch.device) -> str:
    """A device as `Place` calls it."""
    return f"cuda:{device.index or 0}" if device.type == "cuda" else device.type


def accelerates(name: str) -> str | int:
    """A place as accelerate calls it: GPUs by number."""
    return int(name.removeprefix("cuda:")) if name.startswith("cuda:") else name


def _named(place: str | int | torch.device) -> str:
    return f"cuda:{place}" if isinstance(place, int) else str(place)


def _reason_one(where: torch.device, precision: torch.dtype, nbytes: int, *, allowed: int) -> str:
    what = f"{_size(nbytes)} of weights in {_words(precision)} on {place_name(where)}"
    if nbytes <= allowed:
        return f"{what}, where they may take {_size(allowed)}."
    return f"{what}, where they may take {_size(allowed)}: the device was chosen by hand, and the work may be ended."


def _reason_spread(precision: torch.dtype, places: tuple[Place, ...]) -> str:
    held = ", ".join(f"{_size(place.nbytes)} on {place.device}" for place in places)
    slow = any(place.device == DISK for place in places)
    last = " What is on the disk is read again at every pass, which is slow." if slow else ""
    return f"Weights in {_words(precision)}: {held}, by accelerate's device map.{last}"


def _words(precision: torch.dtype) -> str:
    return str(precision).removeprefix("torch.")


def _size(nbytes: int) -> str:
    return f"{nbytes / MB:,.1f} MB" if nbytes < 1000 * MB else f"{nbytes / 1000 / MB:,.1f} GB"
