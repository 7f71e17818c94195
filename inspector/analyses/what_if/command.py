"""What a terminal shows of a change."""

from __future__ import annotations

from typing import Any

from inspector.analyses.what_if.result import WhatIf

COLUMNS = ["way", "name", "before", "after", "saved_and_loaded", "after_training"]


def in_short(result: WhatIf) -> dict[str, Any]:
    """The answer, sizes and losses, and few columns; --json has all of them."""
    return {
        "answer": result.answer,
        "model_class": result.model_class,
        "ways": [
            {
                "way": way.title,
                "parameters": way.unique_parameters,
                "nbytes": way.nbytes,
                "file_nbytes": way.file.nbytes if way.file else None,
                "loss": way.training.loss if way.training else None,
                "loss_after": way.training.loss_after if way.training else None,
            }
            for way in (result.original, *result.ways)
        ],
        "names": result.table[COLUMNS] if len(result.table) else [],
        "warnings": result.warnings,
    }
