"""Which rows of its input embedding a class sets to zero after it has loaded a file."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from transformers import PreTrainedModel

from inspector.models.naming import embedding_matrix

ZERO, FILL = "aten::zero_", "aten::fill_"


class Zeroing(TorchDispatchMode):
    """Notes what is set to zero; of tensors without numbers too."""

    def __init__(self) -> None:
        super().__init__()
        self.views: list[torch.Tensor] = []

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        """No compiler is imported just to be switched off here."""
        return False

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Run one operation."""
        operation = func.name().partition(".")[0]
        if operation == ZERO or (operation == FILL and not isinstance(args[1], torch.Tensor) and args[1] == 0):
            self.views.append(args[0])
        return func(*args, **(kwargs or {}))

    def initialize(self, model: PreTrainedModel) -> None:
        """Do what transformers does to a model whose file is loaded, and note it."""
        with suppress(Exception), self:  # a class that needs numbers for it is taken as the file has it
            model.initialize_weights()

    def rows(self, model: PreTrainedModel) -> tuple[int, ...]:
        """Rows of the input embedding of a model that were set to zero."""
        weight = embedding_matrix(model)
        if weight is None or weight.dim() != 2:
            return ()
        storage, columns = weight.untyped_storage()._cdata, weight.shape[1]
        starts = (each for each in self.views if each.untyped_storage()._cdata == storage)
        return tuple(sorted({row for each in starts for row in _rows(each, columns)}))


def _rows(view: torch.Tensor, columns: int) -> range:
    first = int(view.storage_offset()) // columns
    return range(first, first + view.numel() // columns)
