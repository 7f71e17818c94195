"""A GPU that is none: its tensors compute on the CPU and refuse to meet those that lie there.

What real hardware refuses is refused here: a sum of tensors on two devices, NumPy's view of a
tensor that is not in main memory, a mask elsewhere. Nothing is said of a GPU's arithmetic or speed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import pytest
import torch
import torch._dynamo  # these look at torch.Generator, which is replaced below
import torch.distributed.tensor
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode

GPU = torch.device("cuda", 0)
MEMORY = 8_000_000_000
ACROSS = {  # may take one tensor from here and one from there, as on hardware
    torch.ops.aten.copy_.default,
    torch.ops.aten._to_copy.default,
}
INDEXING = {  # whose indices may lie on the CPU
    torch.ops.aten.index.Tensor,
    torch.ops.aten.index_put_.default,
    torch.ops.aten.index_put.default,
    torch.ops.aten._index_put_impl_.default,
}


class OnGpu(torch.Tensor):
    """A tensor that says it is on the GPU."""

    inside: torch.Tensor

    @staticmethod
    def __new__(cls, inside: torch.Tensor, requires_grad: bool | None = None) -> OnGpu:
        made = torch.Tensor._make_wrapper_subclass(
            cls, inside.size(), strides=inside.stride(), storage_offset=inside.storage_offset(),
            dtype=inside.dtype, device=torch.device("meta"),  # which torch knows how to hold
            requires_grad=inside.requires_grad if requires_grad is None else requires_grad,
        )  # fmt: skip
        made.inside = inside
        return made

    device = property(lambda self: GPU)  # type: ignore[assignment]
    is_cuda = property(lambda self: True)  # type: ignore[assignment]
    is_meta = property(lambda self: False)  # type: ignore[assignment]
    is_sparse = property(lambda self: self.inside.is_sparse)  # type: ignore[assignment]

    def data_ptr(self) -> int:
        """Where it is, as if that were on the GPU."""
        return self.inside.data_ptr()

    def tolist(self) -> Any:
        """The numbers, which hardware sends over by itself."""
        return self.inside.detach().tolist()

    def numpy(self, *, force: bool = False) -> Any:
        """As on hardware."""
        raise TypeError("can't convert cuda:0 device type tensor to numpy: use Tensor.cpu()")

    def __array__(self, *_: Any, **__: Any) -> Any:
        return self.numpy()

    def __repr__(self, *, tensor_contents: Any = None) -> str:
        return f"OnGpu({self.inside!r})"

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return run(func, args, kwargs or {})


def leaves(value: Any) -> Iterator[Any]:
    """What tuples, lists and dictionaries hold; torch's own walk takes many times as long."""
    if isinstance(value, tuple | list | dict):
        for each in value.values() if isinstance(value, dict) else value:
            yield from leaves(each)
    else:
        yield value


def mapped(change: Callable[[Any], Any], value: Any) -> Any:
    """The same tuples, lists and dictionaries of changed leaves."""
    if type(value) is dict:
        return {name: mapped(change, each) for name, each in value.items()}
    if type(value) in (tuple, list):
        return type(value)(mapped(change, each) for each in value)
    return change(value)


def run(func: Any, args: Any, kwargs: dict[str, Any]) -> Any:
    """Compute on the CPU, and say where the result is."""
    tensors = [each for each in leaves((args, kwargs)) if isinstance(each, torch.Tensor)]
    assert not any(each.is_meta for each in tensors), f"torch made a tensor unseen for {func}"
    there = [each for each in tensors if isinstance(each, OnGpu)]
    here = [each for each in tensors if not isinstance(each, OnGpu)]
    if there and func not in ACROSS:
        indices = list(leaves(args[1])) if func in INDEXING else []
        lost = [each for each in here if each.dim() and not any(each is i for i in indices)]
        if lost or (func in INDEXING and not isinstance(args[0], OnGpu)):
            raise RuntimeError(f"Expected all tensors to be on the same device in {func}: cuda:0 and cpu")
    wanted = kwargs.get("device")
    kwargs = dict(kwargs)
    if wanted is not None:
        kwargs["device"] = torch.device("cpu")
    on_cpu = torch.device(wanted).type == "cpu" if wanted is not None else not there
    target = "cpu" if on_cpu else "cuda"
    if func is torch.ops.aten.copy_.default:
        target = "cuda" if isinstance(args[0], OnGpu) else "cpu"
    if kwargs.get("pin_memory"):
        kwargs["pin_memory"] = False
    bare = mapped(lambda each: each.inside if isinstance(each, OnGpu) else each, (args, kwargs))
    made = func(*bare[0], **bare[1])
    if func._schema.is_mutable and made is not None:
        return back(func, args, kwargs, made)
    if target == "cpu":
        return made
    return mapped(lambda each: OnGpu(each) if type(each) is torch.Tensor else each, made)


def back(func: Any, args: Any, kwargs: dict[str, Any], made: Any) -> Any:
    """What was changed in place is the very tensor that was given."""
    same = {id(each.inside): each for each in leaves((args, kwargs)) if isinstance(each, OnGpu)}
    return mapped(
        lambda each: same.get(id(each), OnGpu(each) if same else each) if type(each) is torch.Tensor else each, made
    )


class _Numbered(TorchFunctionMode):
    """Gives "cuda" its number, which torch would have to ask the hardware for."""

    hollow = False  # whether somebody builds without numbers just now

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        args, kwargs = mapped(_number, (args, kwargs or {}))
        if func is torch.tensor and kwargs.get("device") == GPU:  # which torch hides from modes
            return func(*args, **(kwargs | {"device": "cpu"})).to(GPU)
        if func in (torch.Tensor.__getitem__, torch.Tensor.__setitem__):  # lists likewise
            index = tuple(map(_listed, args[1])) if type(args[1]) is tuple else _listed(args[1])
            args = (args[0], index, *args[2:])
        before = self.hollow
        self.hollow = before or any(
            isinstance(each, torch.device | str) and str(each) == "meta" for each in leaves((args, kwargs))
        )
        try:
            return func(*args, **kwargs)
        finally:
            self.hollow = before


class _Making(TorchDispatchMode):
    """Tensors that are made on the GPU from nothing, or sent there."""

    def __init__(self, numbered: _Numbered) -> None:
        super().__init__()
        self._numbered = numbered

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        wanted = (kwargs or {}).get("device")
        kind = torch.device(wanted).type if wanted is not None else ""
        # Torch itself makes small ones where it believes that a tensor of the GPU is: on "meta".
        if kind == "cuda" or (kind == "meta" and not self._numbered.hollow):
            return run(func, args, kwargs or {})
        if any(issubclass(each, OnGpu) for each in types):
            return run(func, args, kwargs or {})
        return func(*args, **(kwargs or {}))


def _listed(value: Any) -> Any:
    return torch.tensor(value) if isinstance(value, list) else value


def _number(value: Any) -> Any:
    whole = isinstance(value, torch.device | str) and str(value) == "cuda"
    return GPU if whole else value


@contextmanager
def pretended_gpu(patch: pytest.MonkeyPatch) -> Iterator[None]:
    """Have a machine with a GPU for a while; where there is one, that one."""
    if torch.cuda.is_available():
        yield
        return
    plain = torch.Generator
    for name, value in {
        "_lazy_init": lambda: None,
        "is_available": lambda: True,
        "device_count": lambda: 1,
        "mem_get_info": lambda *_: (MEMORY, MEMORY),
        "synchronize": lambda *_: None,
        "empty_cache": lambda: None,
        "reset_peak_memory_stats": lambda *_: None,
        "max_memory_allocated": lambda *_: 1,
        "get_device_properties": lambda *_: SimpleNamespace(total_memory=MEMORY),
        "get_device_name": lambda *_: "a GPU that is none",
    }.items():
        patch.setattr(torch.cuda, name, value)
    patch.setattr(torch, "Generator", lambda device="cpu": plain())
    patch.setattr(torch, "inference_mode", torch.no_grad)  # which views of such tensors cannot bear
    patch.setattr(torch.__future__, "_swap_module_params_on_conversion", True)  # or ties break
    numbered = _Numbered()
    with numbered, _Making(numbered):
        yield
