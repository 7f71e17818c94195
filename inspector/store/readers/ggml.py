"""The types that ggml stores tensors in: numbers, and blocks of codes with their scales."""

from __future__ import annotations

from collections.abc import Mapping

from inspector.store.manifests.columns import TensorInfo, Tensors

# ggml's number of a type -> its name, numbers a block, bytes a block (ggml.h, ggml-common.h)
PLAIN = {
    0: ("float32", 4),
    1: ("float16", 2),
    24: ("int8", 1),
    25: ("int16", 2),
    26: ("int32", 4),
    27: ("int64", 8),
    28: ("float64", 8),
    30: ("bfloat16", 2),
}
BLOCKS = {
    2: ("Q4_0", 32, 18),
    3: ("Q4_1", 32, 20),
    6: ("Q5_0", 32, 22),
    7: ("Q5_1", 32, 24),
    8: ("Q8_0", 32, 34),
    9: ("Q8_1", 32, 40),
    10: ("Q2_K", 256, 84),
    11: ("Q3_K", 256, 110),
    12: ("Q4_K", 256, 144),
    13: ("Q5_K", 256, 176),
    14: ("Q6_K", 256, 210),
    15: ("Q8_K", 256, 292),
    16: ("IQ2_XXS", 256, 66),
    17: ("IQ2_XS", 256, 74),
    18: ("IQ3_XXS", 256, 98),
    19: ("IQ1_S", 256, 50),
    20: ("IQ4_NL", 32, 18),
    21: ("IQ3_S", 256, 110),
    22: ("IQ2_S", 256, 82),
    23: ("IQ4_XS", 256, 136),
    29: ("IQ1_M", 256, 56),
    34: ("TQ1_0", 256, 54),
    35: ("TQ2_0", 256, 66),
    39: ("MXFP4", 32, 17),
    40: ("NVFP4", 64, 36),
    41: ("Q1_0", 128, 18),
}
SIZES = {name: (numbers, nbytes) for name, numbers, nbytes in BLOCKS.values()}  # of a block
# Whose numbers can be read; of other types headers are shown.
READ = frozenset(
    {"Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q8_0", "Q2_K", "Q3_K", "Q4_K", "Q5_K", "Q6_K", "Q8_K", "IQ4_NL", "IQ4_XS"}
)


def as_stored(tensors: Tensors, blocks: Mapping[str, str]) -> Tensors:
    """The headers of tensors with the type of their blocks as dtype, and the shapes of the numbers that these are."""
    if not blocks:
        return tensors
    return Tensors.of(
        each._replace(dtype=blocks[each.name], shape=shape_of(each, blocks[each.name])) if each.name in blocks else each
        for each in tensors
    )


def shape_of(tensor: TensorInfo, block: str) -> tuple[int, ...]:
    """The shape of the numbers that a tensor of blocks stands for."""
    numbers, nbytes = SIZES[block]
    return (*tensor.shape[:-1], tensor.shape[-1] // nbytes * numbers)
