"""Weights in formats that are not read here: what each is, and the command that converts it."""

from __future__ import annotations

import re
from collections.abc import Iterable

from inspector.text import quoted

TF_AND_FLAX = (
    "transformers 5 reads it no longer. With transformers 4, and the class that config.json names in architectures: "
    'BertForMaskedLM.from_pretrained("FOLDER", from_{kind}=True).save_pretrained("NEW"); then open NEW.'
)
GATHER = "`python zero_to_fp32.py . gathered`, in the folder that has that script, gathers them into gathered/."
# What a name, or a folder's on the way to it, tells -> what to say of it; the first that fits counts.
CONVERSIONS: tuple[tuple[re.Pattern[str], str], ...] = (
    (
        re.compile(r"(\.distcp|^pytorch_model_fsdp_\d+|/pytorch_model_fsdp_\d+)$"),
        "is a part of a sharded checkpoint of FSDP's (torch.distributed.checkpoint). "
        "`python -m torch.distributed.checkpoint.format_utils dcp_to_torch FOLDER pytorch_model.bin` makes one file of "
        "the folder that holds the .distcp files.",
    ),
    (
        re.compile(r"(^|/)(global_step\d+|zero_to_fp32\.py|(bf16_)?zero_pp_rank_.*)$"),
        f"is DeepSpeed's: its ZeRO stages keep weights in pieces. {GATHER}",
    ),
    (re.compile(r"\.h5$|(^|/)tf_model[^/]*$"), f"is TensorFlow's. {TF_AND_FLAX.format(kind='tf')}"),
    (re.compile(r"\.msgpack$"), f"is Flax's. {TF_AND_FLAX.format(kind='flax')}"),
    (
        re.compile(r"\.onnx(_data)?$"),
        "is ONNX: a graph whose weights have lost their names in the model, so nothing converts it back. Open the "
        "checkpoint that it was exported from.",
    ),
    (
        re.compile(r"\.ckpt\.(index|meta|data-\d+-of-\d+)$"),
        "is TensorFlow 1's. `transformers convert`, of transformers 4, converts the models that it knows.",
    ),
    (
        re.compile(r"\.(ot|pdparams|tflite|keras|npz)$"),
        "is in a format that is not read here: save it as safetensors with the program that wrote it.",
    ),
)


def how_to_convert(names: Iterable[str]) -> str:
    """What the first file of a known foreign format is, and what converts it; "" where there is none."""
    found = sorted(names)
    for pattern, what in CONVERSIONS:
        for name in found:
            if pattern.search(name):
                return f"{quoted(name)} {what}"
    return ""
