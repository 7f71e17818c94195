"""Decide where a model runs, by its sizes alone, before any weight is read.

A model that fits on one device goes there whole. Over several GPUs and their machine's memory a
larger one is spread, as `device_map="auto"` does. One that is larger still, or has a CPU alone, is
streamed: a block of layers is read from the checkpoint's own files when it is its turn. Embeddings,
norms and heads stay, for analyses read them directly.
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

from inspector.models.placing.device import pick_device, pick_dtype
from inspector.results.placement import DISK, Place, Placement
from inspector.settings import MB, Device, Dtype, Settings
from inspector.text import plural

SHARE = 0.9  # of a GPU's free memory that weights may take: a pass needs some, too
RAM_SHARE = 0.8  # of the machine's memory, likewise
CHOOSING = ("auto", "spread", "stream")  # devices that leave it to the plan where a model computes
HALVES = (torch.bfloat16, torch.float16)
# Significant bits of a dtype, and by how much logits then differ from those in float32: small models, in tests.
ROUNDING = {torch.bfloat16: (8, "1 %"), torch.float16: (11, "0.1 %")}
BY_HAND = (
    ": the device was chosen by hand, so the request may exceed its memory limit; the device stream reads a block of "
    "layers at a time"
)
IN_A_LIST = re.compile(r"(^|\.)\d+$")  # a layer among its like


@dataclass(frozen=True, slots=True)
class Plan:
    """Where the parts of one model go."""

    device: torch.device  # where it computes
    dtype: torch.dtype
    nbytes: int
    reason: str
    places: tuple[Place, ...]
    parts: Mapping[str, str] = field(default_factory=dict)  # module -> device, if it is spread
    streamed: bool = False  # True: blocks of layers are read from the files, at every pass

    @property
    def whole(self) -> bool:
        """Whether all weights go to one place."""
        return not (self.parts or self.streamed)

    @property
    def key(self) -> tuple[str, ...]:
        """Equal for plans that give the same model."""
        parts = (f"{name}={place}" for name, place in self.parts.items())
        return (str(self.device), str(self.dtype), str(self.streamed), *parts)

    def result(self) -> Placement:
        """The plan for people."""
        return Placement(
            device=str(self.device),
            dtype=str(self.dtype).removeprefix("torch."),
            nbytes=self.nbytes,
            spread=bool(self.parts),
            places=self.places,
            reason=self.reason,
            streamed=self.streamed,
        )


def make_plan(
    on_meta: PreTrainedModel, *, stored: torch.dtype, settings: Settings, device: Device = "auto", dtype: Dtype = "auto"
) -> Plan:
    """Decide where a model goes.

    Args:
        on_meta: The model without numbers, from `build.meta_model`.
        stored: The dtype of the checkpoint's weights.
        device: "auto" decides; "spread" and "stream" do so whatever the size; another is taken as it is.
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
    fits = _nbytes(on_meta, precision) <= allowed[first]
    if not fits and dtype == "auto" and device in CHOOSING and stored in HALVES:
        precision = stored
        fits = _nbytes(on_meta, precision) <= allowed[first]
    if device == "spread":
        return _spread(on_meta, where, precision, allowed)
    if device == "stream" or (device == "auto" and not fits):
        if device == "auto" and where.type == "cuda":
            spread = _spread(on_meta, where, precision, allowed)
            if not any(place.device == DISK for place in spread.places):
                return spread
        return _stream(on_meta, where, precision, allowed[first])
    nbytes = _nbytes(on_meta, precision)
    return Plan(
        where,
        precision,
        nbytes,
        _reason_one(where, precision, nbytes, allowed=allowed[first]),
        (Place(first, nbytes, allowed[first]),),
    )


def _spread(on_meta: PreTrainedModel, where: torch.device, precision: torch.dtype, allowed: dict[str, int]) -> Plan:
    from transformers.integrations.accelerate import infer_auto_device_map

    main = next(iter(allowed))
    sizes = {name: each.numel() * _itemsize(each, precision) for name, each in on_meta.named_parameters()}
    nn.Module.to(on_meta, precision)  # on the meta device: sizes alone change
    kept = 0  # bytes that must be on the device that computes, wherever accelerate put them
    parts: dict[str, str] = {}
    for _ in range(2):  # the second time with room left for those
        memory: dict[int | str, int | str] = {
            accelerates(name): max(nbytes - kept, 0) if name == main else nbytes for name, nbytes in allowed.items()
        }
        found = infer_auto_device_map(
            on_meta, max_memory=memory, no_split_module_classes=set(on_meta._no_split_modules or ()), clean_result=False
        )
        named = {name: _named(place) for name, place in found.items()}
        parts = {
            inner: where_to
            for name, place in named.items()
            for inner, where_to in _layers_alone(on_meta, name, place=place, main=main)
        }
        kept = sum(nbytes for name, nbytes in sizes.items() if _place(name, parts) == main != _place(name, named))
    held = dict.fromkeys((*allowed, DISK), 0)
    for name, nbytes in sizes.items():
        held[_place(name, parts)] += nbytes
    places = tuple(Place(name, nbytes, allowed.get(name)) for name, nbytes in held.items() if nbytes)
    return Plan(where, precision, sum(sizes.values()), _reason_spread(precision, places), places, parts)


def _stream(on_meta: PreTrainedModel, where: torch.device, precision: torch.dtype, allowed: int) -> Plan:
    main = place_name(where)
    blocks = find_blocks(on_meta)
    held = {main: 0, DISK: 0}
    for name, parameter in on_meta.named_parameters():
        inside = any(name.startswith(f"{block}.") for block in blocks)
        held[DISK if inside else main] += parameter.numel() * _itemsize(parameter, precision)
    places = (Place(main, held[main], allowed), Place(DISK, held[DISK], None))
    nbytes = sum(held.values())
    return Plan(where, precision, nbytes, _reason_stream(precision, places, nbytes, len(blocks)), places, streamed=True)


def find_blocks(model: nn.Module) -> list[str]:
    """The layers of a model, by name: members of lists that lie in no other list."""
    return [
        name
        for name, module in model.named_modules()
        if IN_A_LIST.search(name) and not _in_a_list(name.rpartition(".")[0]) and any(True for _ in module.parameters())
    ]


def _layers_alone(on_meta: nn.Module, name: str, *, place: str, main: str) -> Iterator[tuple[str, str]]:
    """Leave only layers of a list where they are brought in from; what is beside them runs whole.

    Yields:
        Modules and parameters of the part of that name, with where each goes.
    """
    if place not in {DISK, "cpu"} or _in_a_list(name):
        yield name, place
        return
    found = find_part(on_meta, name)
    if not isinstance(found, nn.Module) or not any(_in_a_list(inner) for inner, _ in found.named_modules(prefix=name)):
        yield name, main
        return
    start = f"{name}." if name else ""
    for child, _ in found.named_children():
        yield from _layers_alone(on_meta, start + child, place=place, main=main)
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


def _nbytes(on_meta: PreTrainedModel, precision: torch.dtype) -> int:
    return sum(each.numel() * _itemsize(each, precision) for each in on_meta.parameters())


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
    what = f"{shown_size(nbytes)} of weights in {_words(precision)} on {place_name(where)}"
    by_hand = "" if nbytes <= allowed else BY_HAND
    return f"{what}, where the limit is {shown_size(allowed)}{by_hand}.{_cost(precision)}"


def _reason_spread(precision: torch.dtype, places: tuple[Place, ...]) -> str:
    held = ", ".join(f"{shown_size(place.nbytes)} on {place.device}" for place in places)
    slow = any(place.device == DISK for place in places)
    last = " Weights on disk are read again in every pass, which is slow." if slow else ""
    return f"Weights in {_words(precision)}: {held}, by accelerate's device map.{last}{_cost(precision)}"


def _reason_stream(precision: torch.dtype, places: tuple[Place, ...], nbytes: int, blocks: int) -> str:
    beside, on_disk = places
    return (
        f"Streamed in {_words(precision)}: every pass reads {plural(blocks, 'block')} of layers "
        f"({shown_size(on_disk.nbytes)}) from the files, one at a time; the model has {shown_size(nbytes)} in total, "
        f"and the limit for weights on {beside.device} is {shown_size(beside.allowed_nbytes or 0)}.{_cost(precision)}"
    )


def _cost(precision: torch.dtype) -> str:
    """What a precision costs, as a further sentence; "" for float32."""
    if precision not in ROUNDING:
        return ""
    bits, share = ROUNDING[precision]
    return (
        f" {_words(precision).capitalize()} rounds every step to {bits} significant bits: in small models, logits then "
        f"differ from those in float32 by about {share}, and tokens of nearly equal score may change places."
    )


def _words(precision: torch.dtype) -> str:
    return str(precision).removeprefix("torch.")


def shown_size(nbytes: int) -> str:
    """Bytes for people."""
    return f"{nbytes / MB:,.1f} MB" if nbytes < 1000 * MB else f"{nbytes / 1000 / MB:,.1f} GB"
