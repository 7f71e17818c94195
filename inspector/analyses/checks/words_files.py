"""What the checks of the files say: pickles, holes, bytes that no tensor takes."""

from __future__ import annotations

from inspector.analyses.checks.words import such_as
from inspector.text import plural

NO_PICKLES = "The weights are kept as safetensors, which holds no code."
SAVE_AS_SAFETENSORS = "Save the weights as safetensors: model.save_pretrained(folder) writes them so."
GET_AGAIN = (
    "Get the files again from their source and compare digests; save the weights alone if they hold more than weights."
)
PICKLE = "{:,} bytes; nothing of it was run here."
OVERSIZED = "It has {:,} bytes, and no vocabulary needs {:,}."
HOLE = "It has {:,} bytes, of which the disk was never given some from byte {:,} on: they read as zeros."
UNEXPLAINED = (
    "It has {:,} bytes, and its tensors take {:,} of them: an optimizer's state, or what slices were cut from."
)


def pickles(count: int, first: str) -> str:
    """Weights are kept in a format that other programs run code from."""
    files = plural(count, "weight file is a pickle", "weight files are pickles")
    return f"{files} {such_as(count, first)}: a program that unpickles one from a stranger runs its code."


def sound(files: int, nbytes: int) -> str:
    """Nothing strange is there."""
    return f"{plural(files, 'file')} of {nbytes:,} bytes, each of a size that its content explains."


def odd(count: int, first: str, detail: str) -> str:
    """What is strange; the first finding is named."""
    return f"{first}: {detail}{f' (and {count - 1:,} more)' if count > 1 else ''}"
