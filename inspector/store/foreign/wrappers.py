"""Names as a wrapper around the model saved them, and without what the wrapper put there.

DistributedDataParallel, FSDP, `torch.compile`, activation checkpointing, DeepSpeed and Lightning hold the model as a
part of themselves, so every name in a file that they save begins with that part's, or has it in its midst.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from inspector.errors import CheckpointError
from inspector.text import quoted

# A part that no model has: torch.compile's, FSDP's, activation checkpointing's.
ANYWHERE = frozenset({"_orig_mod", "_fsdp_wrapped_module", "_checkpoint_wrapped_module"})
# What every name begins with: DataParallel's, DeepSpeed's, and what people call the model in a module of their own.
BEFORE = ("module", "_forward_module", "model", "net")
# Many models have a part `model` of their own. It is somebody else's if such a part follows: theirs, or a head.
INNER = frozenset({"model", "lm_head", "cls", "classifier", "score", "qa_outputs"})
# Model types of which no class has a part `model`: it is a wrapper's, whatever follows.
WITHOUT_MODEL = frozenset(
    {"albert", "bert", "camembert", "deberta", "deberta_v2", "distilbert", "electra", "mpnet", "roberta", "xlm_roberta"}
)
WITH_TRANSFORMER = ("gpt", "bloom", "codegen", "ctrl", "falcon")  # model types whose own part is called `transformer`


def unwrapped(names: Sequence[str], config: Mapping[str, Any] | None) -> dict[str, str]:
    """Which names are the model's own with the parts of wrappers left out.

    Args:
        names: Of every tensor, as the files have them.
        config: config.json, if there is one.

    Returns:
        Name in the file -> the model's own; empty where no wrapper put anything there.

    Raises:
        CheckpointError: If two tensors would have the same name.
    """
    parts = [[part for part in name.split(".") if part not in ANYWHERE] for name in names]
    kind = str((config or {}).get("model_type", "")).replace("-", "_")
    theirs = {*INNER, "transformer"} if kind.startswith(WITH_TRANSFORMER) else {*INNER, kind, kind.partition("_")[0]}
    shortest, left = min(map(len, parts), default=0), 0
    while left + 1 < shortest and (first := parts[0][left]) in BEFORE and all(each[left] == first for each in parts):
        follows = {each[left + 1] for each in parts}
        if first == "model" and kind not in WITHOUT_MODEL and not follows & (theirs - {""}):
            break
        left += 1
    found = {name: ".".join(each[left:]) for name, each in zip(names, parts, strict=True)}
    if all(name == own for name, own in found.items()):
        return {}
    seen: dict[str, str] = {}
    for name, own in found.items():
        if own in seen:
            raise CheckpointError(
                f"The tensors {quoted(seen[own])} and {quoted(name)} are both {quoted(own)} without what wrappers of "
                "the model put into their names: choose a file of the model by itself."
            )
        seen[own] = name
    return found


def describe_wrappers(found: Mapping[str, str]) -> str:
    """What was left out, in one sentence; empty where nothing was."""
    if not found:
        return ""
    left: dict[str, None] = {}
    for name, own in found.items():
        inside = [part for part in name.split(".") if part in ANYWHERE]
        rest = [part for part in name.split(".") if part not in ANYWHERE]
        for part in [*inside, *rest[: len(rest) - len(own.split("."))]]:
            left[f"{part}."] = None
    name, own = next((name, own) for name, own in found.items() if name != own)
    return (
        f"The files were saved from a wrapper around the model: names are shown without its "
        f"{', '.join(map(quoted, left))}, so {quoted(name)} is {quoted(own)}."
    )
