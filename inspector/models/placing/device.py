"""Choose the device and the dtype that a model runs on."""

from __future__ import annotations

import ctypes
from contextlib import suppress
from functools import cache
from typing import get_args

import torch

from inspector.errors import RequestError
from inspector.settings import Device, Dtype
from inspector.text import plural


def pick_device(wanted: str) -> torch.device:
    """Resolve a device name; "auto", "spread" and "stream" take CUDA, then Apple's MPS, then the CPU.

    Raises:
        RequestError: If the device is not there.
    """
    there = {"cuda": torch.cuda.is_available(), "mps": torch.backends.mps.is_available(), "cpu": True}
    if wanted in {"auto", "spread", "stream"}:  # what is not whole computes on the best one
        wanted = next(name for name, found in there.items() if found)
    if wanted not in get_args(Device):
        raise RequestError(f"There is no device {wanted!r}: use auto, cpu, cuda, mps, spread or stream.")
    if not there[wanted]:
        raise RequestError(f"This machine has no {wanted} device: use auto or cpu.", option="device")
    return torch.device("cuda:0" if wanted == "cuda" else wanted)


def pick_dtype(wanted: Dtype, *, device: torch.device, stored: torch.dtype) -> torch.dtype:
    """Resolve a dtype name.

    Args:
        wanted: "auto" or a name. "auto" is float32 on the CPU, where every rounding would be ours,
            and the file's own half precision on an accelerator.
        stored: The dtype of the checkpoint's embedding matrix.

    Raises:
        RequestError: If there is no such dtype.
    """
    if wanted == "auto":
        halves = (torch.bfloat16, torch.float16)
        return stored if device.type != "cpu" and stored in halves else torch.float32
    if wanted not in get_args(Dtype):
        raise RequestError(f"There is no dtype {wanted!r}: use float32, bfloat16 or float16.")
    return getattr(torch, wanted)


def describe_run(device: torch.device, dtype: torch.dtype) -> str:
    """Say in one line what a model runs on, and whether bfloat16 would be quick there."""
    precision = str(dtype).removeprefix("torch.")
    if device.type == "cuda":
        return f"{precision} on {torch.cuda.get_device_name(device)}"
    if device.type == "mps":
        return f"{precision} on Apple's GPU (MPS)"
    threads = torch.get_num_threads()
    has = "has" if has_bfloat16() else "has no"
    return f"{precision} on {plural(threads, 'thread')}; this processor {has} bfloat16 instructions"


@cache
def has_bfloat16() -> bool:
    """Whether the processor multiplies bfloat16 itself; without that it is no quicker there."""
    capabilities = torch.cpu.get_capabilities()
    return any(there for name, there in capabilities.items() if str(name).endswith("bf16"))


def start_counting_memory(device: torch.device) -> None:
    """Forget the most memory that was in use so far, where the device counts it."""
    if device.type == "cuda":
        torch.cuda.reset_peak_memory_stats(device)


def peak_memory(device: torch.device) -> int | None:
    """The most bytes in use since `start_counting_memory`; None where nobody counts them."""
    return torch.cuda.max_memory_allocated(device) if device.type == "cuda" else None


def release(device: torch.device) -> None:
    """Give memory that is free again back to the device, or to the system."""
    if device.type == "cuda":
        torch.cuda.empty_cache()
    elif device.type == "mps":
        torch.mps.empty_cache()
    else:
        with suppress(OSError, AttributeError):  # only glibc keeps so much to itself
            ctypes.CDLL(None).malloc_trim(0)


def wait(device: torch.device) -> None:
    """Wait until the device has done what it was given: it works behind our back."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)
    elif device.type == "mps":
        torch.mps.synchronize()
