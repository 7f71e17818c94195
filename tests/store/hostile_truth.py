"""What transformers, torch and safetensors say of the same files, to compare an answer with."""

from __future__ import annotations

import json
import math
import struct
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import torch
from transformers import AutoModelForMaskedLM

TOLERANCE = 1e-4  # of a probability
BUFFER = "e_score_correction_bias"  # of DeepSeek's, which is no parameter
DTYPES = {"F32": "float32", "F16": "float16", "BF16": "bfloat16", "I64": "int64", "BOOL": "bool", "C64": "complex64"}


def agrees(verb: str, result: Any, folder: Path) -> bool | None:
    """Whether an answer is what the libraries read from the same folder; None: they read nothing from it.

    Args:
        verb: Of the question.
        result: What was answered.
        folder: Of the checkpoint; of an archive, the folder that was packed.
    """
    compare = COMPARED.get(verb)
    return compare(result, folder) if compare else None


def _prediction(result: Any, folder: Path) -> bool | None:
    """Each probability, computed by the model that transformers loads, if that has all its weights."""
    try:
        model, info = AutoModelForMaskedLM.from_pretrained(
            folder, local_files_only=True, output_loading_info=True, dtype=getattr(torch, result.dtype)
        )
    except Exception:  # of many kinds: for transformers, too, it is damaged
        return None
    if info["missing_keys"] or info["mismatched_keys"] or info.get("error_msgs"):
        return None
    with torch.inference_mode():
        logits = model.eval()(input_ids=torch.tensor([result.token_ids])).logits[0].double()
    for mask in result.masks:
        shown = dict(zip(mask.predictions["token_id"], mask.predictions["probability"], strict=True))
        expected = logits[mask.position].softmax(0).tolist()
        if any(abs(expected[int(token)] - probability) > TOLERANCE for token, probability in shown.items()):
            return False
    return True


def _overview(result: Any, folder: Path) -> bool | None:
    """How many numbers of each dtype the files hold, by their headers or by torch's own restricted reader."""
    counts: Counter[str] = Counter()
    for path in folder.iterdir():
        with suppress(Exception):  # a file that cannot be read holds none
            for dtype, count in READ[path.suffix](path):
                counts[dtype] += count
    return dict(counts) == result.dtypes if counts else None


def _safetensors(path: Path) -> Iterator[tuple[str, int]]:
    data = path.read_bytes()
    (size,) = struct.unpack_from("<Q", data)
    header = json.loads(data[8 : 8 + size])
    listed = (each for name, each in header.items() if name != "__metadata__" and not name.endswith(BUFFER))
    return ((DTYPES[each["dtype"]], math.prod(each["shape"])) for each in listed)


def _pytorch(path: Path) -> Iterator[tuple[str, int]]:
    state = torch.load(path, weights_only=True, map_location="cpu")  # noqa: TID251 - the other opinion
    while isinstance(nested := state.get("state_dict", state.get("model")), dict):
        state = nested
    tensors = (each for each in state.values() if isinstance(each, torch.Tensor))
    return ((str(each.dtype).removeprefix("torch."), each.numel()) for each in tensors)


READ: dict[str, Callable[[Path], Iterator[tuple[str, int]]]] = {".safetensors": _safetensors, ".bin": _pytorch}
COMPARED: dict[str, Callable[[Any, Path], bool | None]] = {"predict": _prediction, "overview": _overview}
