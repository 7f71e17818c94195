"""The options that many questions share: where a model runs, in which precision, and with which random seed."""

from __future__ import annotations

from typing import Any, get_args

from inspector.request import option
from inspector.settings import Device, Dtype


def device() -> Any:
    """Define the option `device`."""
    return option(
        "auto",
        "Where the model runs; auto: a GPU if there is one, in whichever way the model fits; spread: split across "
        "GPUs, main memory and disk; stream: one block of layers at a time, read from the files",
        choices=get_args(Device),
    )


def dtype() -> Any:
    """Define the option `dtype`."""
    return option(
        "auto",
        "Precision; auto: float32 on the CPU; half precision on a GPU if the files are in half precision, and "
        "wherever float32 does not fit",
        choices=get_args(Dtype),
    )


def seed() -> Any:
    """Define the option `seed`."""
    return option(0, "Random seed; the same seed gives the same result", least=0, most=2**32 - 1)
