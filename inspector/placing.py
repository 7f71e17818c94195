"""The options of every question that runs a model: where, and in which precision."""

from __future__ import annotations

from typing import Any, get_args

from inspector.request import option
from inspector.settings import Device, Dtype


def device() -> Any:
    """Define the option `device`."""
    return option(
        "auto",
        "Where the model runs; auto: a GPU where there is one, and what fits; spread: over GPUs, "
        "main memory and disk, whatever the size; stream: a block of layers at a time, read from the files",
        choices=get_args(Device),
    )


def dtype() -> Any:
    """Define the option `dtype`."""
    return option(
        "auto",
        "Precision; auto: float32 on the CPU, half precision on a GPU if the file is in half "
        "precision, and where float32 does not fit",
        choices=get_args(Dtype),
    )
