"""What the checks of the files say: pickles, holes, bytes that no tensor takes."""

from __future__ import annotations

from inspector.analyses.checks.words import such_as
from inspector.text import plural

NO_PICKLES = "The weights are stored as {}, a format that cannot contain code."
SAVE_AS_SAFETENSORS = (
    "Write a copy as safetensors into another folder. model.save_pretrained(folder) does this, but leaves out what its "
    "class does not load, so compare the two."
)
GET_AGAIN = "Compare the file's digest with the source. If they differ, download the file again."
LOOK_INSIDE = "Compare the file's size with the source. A training checkpoint may hold more than weights."
READ_CODE = "Read the code before you let another program run it (trust_remote_code)."
EQUAL_COPIES = "All copies hold the same bytes."
TWO_SETS = "Give each set a folder of its own, and compare the two."
LIST_THEM = (
    "Get the index from where the weights come from, or write another one: its weight_map gives the shard of each "
    "tensor."
)
GET_SHARDS = "Get the shards that are not there from where the others come from."
CHOOSE_A_COPY = "Find out which copy was trained, and let the index and the order of the files' names agree on it."
ADD_METADATA = 'Add "metadata": {"total_size": …} to the index, with the number of bytes of all tensors.'
COMPARE_INDEX = "Compare the index with the one where the weights come from."
PICKLE = "{:,} bytes; the inspector ran no code from it."
OVERSIZED = "It has {:,} bytes; even the largest vocabulary needs fewer than {:,}."
HOLE = "It has {:,} bytes, but some from byte {:,} on were never written to disk: they read as zeros."
UNEXPLAINED = (
    "It has {:,} bytes, but its tensors take only {:,}: the rest may be optimizer state, or larger tensors that these "
    "are slices of."
)


def pickles(count: int, first: str) -> str:
    """Weights are kept in a format that other programs run code from."""
    files = plural(count, "weight file is a pickle", "weight files are pickles")
    return f"{files} {such_as(count, first)}: a program that unpickles a file from a stranger runs the stranger's code."


def sound(files: int, nbytes: int) -> str:
    """Nothing strange is there."""
    return f"{plural(files, 'file')} of {nbytes:,} bytes; the contents of each file explain its size."


def odd(count: int, first: str, detail: str) -> str:
    """What is strange; the first finding is named."""
    named = detail if first in detail else f"{first}: {detail}"
    return f"{named}{f' (and {count - 1:,} more)' if count > 1 else ''}"
