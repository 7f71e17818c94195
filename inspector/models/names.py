"""Tell what tensors are from their names alone."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from transformers import PreTrainedModel

SPARE_MODULES = ("position_ids", "token_type_ids")  # absent from many files: a loader makes the same ones anew
# Older versions of transformers stored them; they are no weights.
FORMER_BUFFERS = (r"position_ids$", r"rotary_emb\.inv_freq$", r"\.attn\.(masked_)?bias$")


def unexpected_keys(model: PreTrainedModel, names: Iterable[str]) -> list[str]:
    """Which tensors of the file the class has no place for, as transformers counts it, sorted.

    Args:
        names: Those of the file that none of its tensors was found under.
    """
    expected = [*(model._keys_to_ignore_on_load_unexpected or ()), *FORMER_BUFFERS]
    return sorted(name for name in names if not any(re.search(each, name) for each in expected))
