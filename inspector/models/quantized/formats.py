"""The conventions by which libraries store a weight as codes and scales, read from headers.

Each is checked against its library's own code: bitsandbytes (LLM.int8, NF4, FP4), GPTQ and AWQ
(AutoGPTQ, GPTQModel, AutoAWQ), compressed-tensors (int-quantized, float-quantized, pack-quantized,
and the 4-bit floats of NVFP4 and MXFP4), ModelOpt's NVFP4, the MXFP4 experts of gpt-oss, the
block-wise float8 of DeepSeek-V3 and transformers' fine-grained FP8. MLX's affine codes and MXFP4 follow
its documentation.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from types import MappingProxyType
from typing import Any, NamedTuple

from inspector.errors import CheckpointError
from inspector.store.copies import read_pieces
from inspector.store.manifests.columns import TensorInfo
from inspector.store.manifests.manifest import Manifest
from inspector.store.names import weight_format
from inspector.store.readers.ggml import READ, SIZES, shape_of
from inspector.store.readers.jsons import parse_json
from inspector.store.readers.safetensors import SHAPES

FLOAT8 = frozenset({"float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float8_e5m2fnuz"})
FLOATS = ("float32", "bfloat16", "float16")
WHOLE = ("int32", "int64")
POWERS = ("uint8", "float8_e8m0fnu")  # scales that are powers of two, less 127
MLX_GROUP = 64  # inputs with one scale, where config.json does not say
NV, MX = 16, 32  # numbers with one scale in NVFP4, and in MXFP4
SCALES = ("_scale", "_scale_inv")  # after a weight's name; both are multiplied by
BLOCK = [128, 128]  # rows and columns of a block of DeepSeek's, where config.json does not say
MOST_STATE = 100_000  # bytes of bitsandbytes' own description of a weight

Tensors = Mapping[str, TensorInfo]
Grid = tuple[int, int, int, int]  # scales down and across a matrix, rows and columns of each


class UnreadableError(Exception):
    """What is stored contradicts the convention, or allows two readings."""


class Codes(NamedTuple):
    """How one weight is stored; a tuple, as TensorInfo is."""

    shape: tuple[int, ...]  # (out, in), with the experts of a mixture in front
    kind: str  # a key of codes.OPENERS
    scheme: str  # a few words
    parts: Mapping[str, TensorInfo]  # "codes", "scale", ... -> what is stored
    options: Mapping[str, Any] = MappingProxyType({})
    dtype: str = ""  # that the weight had, where it is said
    flipped: bool = False  # True: the model's own weight is (in, out)


Convention = Callable[[str, Tensors, Manifest], Codes]  # raises UnreadableError or KeyError


def gptq_or_awq(base: str, tensors: Tensors, manifest: Manifest) -> Codes:
    """Read qweight, qzeros and scales, (groups, out); GPTQ packs along the inputs, AWQ the outputs.

    GPTQ stores each zero less one, unless its config names the format "gptq_v2".
    """
    codes, zeros, scales = (tensors[f"{base}.{part}"] for part in ("qweight", "qzeros", "scales"))
    _check(_are_matrices(codes, zeros, scales), scales.dtype in FLOATS, math.prod(scales.shape))
    _check(codes.dtype == zeros.dtype == "int32", zeros.shape[0] == scales.shape[0])
    groups, outputs = scales.shape
    bits, rest = divmod(32 * zeros.shape[1], outputs)
    _check(not rest, bits in (2, 3, 4, 8))
    parts = {"codes": codes, "zero": zeros, "scale": scales}
    plus = 0
    if codes.shape[1] == zeros.shape[1]:
        kind, inputs = "awq", codes.shape[0]
        _check(bits == 4)
    else:
        kind, inputs = "gptq", 32 * codes.shape[0] // bits
        _check(codes.shape[1] == outputs, 32 * codes.shape[0] % bits == 0)
        plus = 0 if manifest.quantization.get("checkpoint_format") == "gptq_v2" else 1
        parts |= _order(tensors.get(f"{base}.g_idx"), inputs)
    _check(inputs)
    group = _group(inputs, groups, manifest.quantization.get("group_size"))
    _check(kind == "gptq" or inputs % group == 0)
    scheme = f"{bits}-bit codes ({kind.upper()}), {_groups(groups, group)}"
    options = {"bits": bits, "plus": plus, "group": group}
    return Codes((outputs, inputs), kind, scheme, parts, options)


def packed(base: str, tensors: Tensors, manifest: Manifest) -> Codes:
    """Read compressed-tensors' pack-quantized: weight_packed, weight_scale and weight_shape.

    Bytes in the place of words are its NVFP4 or MXFP4: two floats of 4 bits each.
    """
    if tensors[f"{base}.weight_packed"].dtype == "uint8":
        _check(f"{base}.weight_zero_point" not in tensors)
        return _float4(
            tensors[f"{base}.weight_packed"],
            tensors[f"{base}.weight_scale"],
            tensors.get(f"{base}.weight_global_scale"),
            how="divide",
            library="compressed-tensors",
        )
    codes, scale, shape = (tensors[f"{base}.weight_{part}"] for part in ("packed", "scale", "shape"))
    zero = tensors.get(f"{base}.weight_zero_point")
    _check(_are_matrices(codes, scale), codes.dtype == "int32", scale.dtype in FLOATS)
    outputs, inputs = _two_sizes(manifest, shape)
    groups = scale.shape[1]
    _check(scale.shape[0] == outputs, groups, inputs % max(1, groups) == 0)
    widths = [b for b in range(1, 9) if codes.shape == (outputs, math.ceil(inputs * b / 32))]
    stated = manifest.quantization.get("bits")
    _check(len(widths) == 1 or stated in widths)
    bits = widths[0] if len(widths) == 1 else int(stated or 0)
    parts = {"codes": codes, "scale": scale, "shape": shape}
    if zero:
        _check(zero.dtype == "int32", zero.shape == (math.ceil(outputs * bits / 32), groups))
        parts["zero"] = zero
    parts |= _order(tensors.get(f"{base}.weight_g_idx"), inputs)
    scheme = f"{bits}-bit codes (compressed-tensors), {_groups(groups, inputs // groups)}"
    options = {"bits": bits, "group": inputs // groups}
    return Codes((outputs, inputs), "packed", scheme, parts, options)


def scaled(base: str, tensors: Tensors, manifest: Manifest) -> Codes:
    """Read a float8 or int8 weight with its scale beside it: for all, a row, a group or a block."""
    ending = SCALES[0] if base + SCALES[0] in tensors else SCALES[1]
    codes, scale = tensors[base], tensors[base + ending]
    zero = tensors.get(f"{base}_zero_point")
    if codes.dtype == "uint8":
        _check(ending == "_scale", zero is None)
        return _float4(codes, scale, tensors[f"{base}_scale_2"], how="multiply", library="ModelOpt")
    blocks = tuple(manifest.quantization.get("weight_block_size", BLOCK))
    # DeepSeek's name for it means a scale of blocks; any other is of rows, if it can be.
    options, scheme = _scaled_grid(codes[1:3], scale[1:3], blocks, ending == "_scale_inv")
    parts = {"codes": codes, "scale": scale}
    if zero:
        _check(zero.shape == scale.shape, zero.dtype in ("int8", "uint8", *WHOLE, *FLOATS))
        parts["zero"] = zero
    return Codes(codes.shape, "scaled", scheme, parts, options)


def scale_weight(base: str, tensors: Tensors, manifest: Manifest) -> Codes:
    """Read the float8 of image tools: weight and scale_weight, one for all or for each output."""
    codes, scale = tensors[f"{base}.weight"], tensors[f"{base}.scale_weight"]
    _check(codes.dtype in FLOAT8, math.prod(scale.shape) in (1, codes.shape[0]), scale.shape[1:] in ((), (1,)))
    options, scheme = _scaled_grid(codes[1:3], scale[1:3], tuple(BLOCK), False)
    return Codes(codes.shape, "scaled", scheme, {"codes": codes, "scale": scale}, options)


@lru_cache(maxsize=SHAPES)
def _scaled_grid(
    codes: tuple[str, tuple[int, ...]], scale: tuple[str, tuple[int, ...]], blocks: tuple[int, ...], blocks_first: bool
) -> tuple[Mapping[str, Grid], str]:
    """How the scales lie on a matrix, and that in words; a mixture has 45,000 matrices of a few kinds.

    Args:
        codes: Their dtype and shape.
        scale: Likewise.
    """
    (dtype, shape), (scale_dtype, scale_shape) = codes, scale
    _check(dtype in FLOAT8 | {"int8"}, len(shape) in (2, 3), math.prod(shape))
    _check(scale_dtype in (*FLOATS, "float8_e8m0fnu"))
    grid = _grid(shape, scale_shape, blocks, blocks_first=blocks_first)
    return MappingProxyType({"grid": grid}), f"{dtype}, {_grid_words(shape, grid)}"


def experts4(base: str, tensors: Tensors, manifest: Manifest) -> Codes:
    """Read gpt-oss' MXFP4: blocks (experts, out, groups, 16 bytes) and a power of two for each."""
    codes, scale = tensors[f"{base}_blocks"], tensors[f"{base}_scales"]
    _check(len(codes.shape) == 4, codes.shape[3:] == (MX // 2,), scale.dtype == "uint8")
    return _float4(codes, scale, None, how="", library="gpt-oss")._replace(flipped=True)


def _float4(codes: TensorInfo, scale: TensorInfo, whole: TensorInfo | None, *, how: str, library: str) -> Codes:
    """Floats of 4 bits (E2M1), two a byte or eight a word, with a scale a group and one for the whole weight.

    Args:
        codes: (..., out, in / 2), in words (..., out, in / 8), or with the bytes of a group as an axis of their own.
        scale: (..., out, in / group); powers of two in MXFP4, float8 in NVFP4.
        whole: NVFP4's one number.
        how: What is done with that number: "divide" by it, or "multiply".
    """
    _check(len(scale.shape) in (2, 3))
    *rows, groups = scale.shape
    group = MX if whole is None else NV
    numbers = 2 * codes.nbytes
    _check(numbers, list(codes.shape[: len(rows)]) == rows)
    _check(len(codes.shape) - len(rows) in (1, 2), numbers == math.prod(rows) * groups * group)
    parts = {"codes": codes, "scale": scale}
    if whole is None:
        _check(codes.dtype in ("uint8", "uint32"), scale.dtype in POWERS)
        name = "MXFP4"
    else:
        _check(codes.dtype == "uint8", scale.dtype == "float8_e4m3fn")
        _check(whole.dtype in FLOATS, math.prod(whole.shape) == 1)
        name, parts["whole"] = "NVFP4", whole
    scheme = f"{name} ({library}), groups of {group}"
    shape = (*rows, groups * group)
    return Codes(shape, "float4", scheme, parts, {"group": group, "how": how})


@lru_cache(maxsize=SHAPES)
def _grid(shape: tuple[int, ...], scale: tuple[int, ...], blocks: tuple[int, ...], *, blocks_first: bool) -> Grid:
    *experts, rows, columns = shape
    if not experts and math.prod(scale) == 1:
        return 1, rows, 1, columns
    kept = list(scale[len(experts) :])
    kept += [1] * (2 - len(kept))
    _check(list(scale[: len(experts)]) == experts, len(kept) == 2, min(kept) > 0)
    down, across = kept
    fits = (math.ceil(rows / blocks[0]), math.ceil(columns / blocks[1])) == (down, across)
    if fits and (blocks_first or (down != rows and across not in (1, columns))):
        return down, blocks[0], across, blocks[1]
    _check(columns % across == 0, down == rows or (down == 1 and across in (1, columns)))
    return down, rows // down, across, columns // across


def _grid_words(shape: Sequence[int], grid: Grid) -> str:
    down, tall, across, wide = grid
    if (down, across) == (1, 1):
        return "one scale"
    if across == 1:
        return "one scale a row"
    return f"groups of {wide}" if down in (1, shape[-2]) else f"blocks of {tall} × {wide}"


def mlx(base: str, tensors: Tensors, manifest: Manifest) -> Codes:
    """Read MLX's affine codes: a number is scale · code + bias, both of a group of inputs; or its MXFP4.

    The groups' size stands in config.json alone, for all modules or for one; bits follow from it.
    """
    codes, scales = (tensors[f"{base}.{part}"] for part in ("weight", "scales"))
    if scales.dtype == "uint8":
        _check(codes.dtype == "uint32", f"{base}.biases" not in tensors)
        return _float4(codes, scales, None, how="", library="MLX")
    biases = tensors[f"{base}.biases"]
    _check(codes.dtype == "uint32", scales.dtype in FLOATS, len(codes.shape) in (2, 3), math.prod(scales.shape))
    _check(biases.dtype == scales.dtype, biases.shape == scales.shape, codes.shape[:-1] == scales.shape[:-1])
    said = manifest.quantization
    group = said.get("groups", {}).get(base, said.get("group_size", MLX_GROUP))
    inputs = scales.shape[-1] * _positive(group)
    bits, rest = divmod(32 * codes.shape[-1], inputs)
    _check(not rest, bits in (2, 3, 4, 5, 6, 8))
    scheme = f"{bits}-bit codes (MLX), {_groups(scales.shape[-1], group)}"
    options = {"bits": bits, "group": group}
    shape = (*codes.shape[:-1], inputs)
    return Codes(shape, "affine", scheme, {"codes": codes, "scale": scales, "bias": biases}, options)


def int8(base: str, tensors: Tensors, manifest: Manifest) -> Codes:
    """Read bitsandbytes' LLM.int8: a row's largest number stands in SCB, and is code 127."""
    codes, largest = tensors[f"{base}.weight"], tensors[f"{base}.SCB"]
    _check(codes.dtype == "int8", len(codes.shape) == 2, largest.dtype in FLOATS)
    _check(largest.shape == codes.shape[:1])
    parts = {"codes": codes, "scale": largest}
    if told := tensors.get(f"{base}.weight_format"):
        _check(told.nbytes == 1)
        _check(_bytes(manifest, told) == b"\0")  # row after row
        parts["format"] = told
    scheme = "int8 (bitsandbytes), one scale a row"
    return Codes(codes.shape, "int8", scheme, parts, dtype="float16")


def nf4(base: str, tensors: Tensors, manifest: Manifest) -> Codes:
    """Read bitsandbytes' NF4: two codes a byte, looked up in a table, times a block's largest."""
    return _bits4(base, tensors, manifest, "nf4")


def fp4(base: str, tensors: Tensors, manifest: Manifest) -> Codes:
    """Read bitsandbytes' FP4, as NF4 with another table."""
    return _bits4(base, tensors, manifest, "fp4")


def blocks(name: str, block: str, tensors: Mapping[str, TensorInfo]) -> Codes:
    """Read ggml's blocks, of the type that the header of a GGUF file gives."""
    codes = tensors[name]
    _check(block in READ, codes.dtype == "uint8", codes.shape, weight_format(codes.file) == "gguf")
    _check(not codes.shape[-1] % SIZES[block][1])
    return Codes(shape_of(codes, block), "blocks", f"{block} (GGUF)", {"codes": codes}, {"block": block})


def _bits4(base: str, tensors: Tensors, manifest: Manifest, kind: str) -> Codes:
    codes, state = tensors[base], tensors[f"{base}.quant_state.bitsandbytes__{kind}"]
    absmax, table = tensors[f"{base}.absmax"], tensors[f"{base}.quant_map"]
    told = _state(manifest, state)
    sizes = told.get("shape")
    shape = tuple(map(_positive, sizes if isinstance(sizes, list) else ()))
    block = _positive(told.get("blocksize"))
    _check(len(shape) == 2)
    count = math.prod(shape)
    _check(codes.dtype == "uint8", math.prod(codes.shape) == math.ceil(count / 2))
    _check(table.shape == (16,), table.dtype in FLOATS)
    _check(absmax.shape == (math.ceil(count / block),), absmax.dtype in (*FLOATS, "uint8"))
    parts = {"codes": codes, "state": state, "absmax": absmax, "quant_map": table}
    options: dict[str, Any] = {"block": block}
    if absmax.dtype == "uint8":  # "double quantization"
        inner, offset = _positive(told.get("nested_blocksize")), told.get("nested_offset")
        _check(isinstance(offset, float | int))
        scales, table = tensors[f"{base}.nested_absmax"], tensors[f"{base}.nested_quant_map"]
        _check(table.shape == (256,), {scales.dtype, table.dtype} <= {*FLOATS})
        _check(scales.shape == (math.ceil(absmax.shape[0] / inner),))
        parts |= {"nested_absmax": scales, "nested_quant_map": table}
        options |= {"inner": inner, "offset": offset}
    scheme = f"{kind.upper()} (bitsandbytes), blocks of {block}"
    said = told.get("dtype")
    return Codes(shape, "bits4", scheme, parts, options, said if said in FLOATS else "")


def _state(manifest: Manifest, tensor: TensorInfo) -> dict[str, Any]:
    """What bitsandbytes says of a weight: JSON, one character a number."""
    _check(tensor.dtype == "uint8", tensor.nbytes <= MOST_STATE)
    try:
        told = parse_json(_bytes(manifest, tensor), tensor.name)
    except CheckpointError as error:
        raise UnreadableError from error
    _check(isinstance(told, dict))
    return told


def _two_sizes(manifest: Manifest, tensor: TensorInfo) -> tuple[int, int]:
    """The shape that a tensor of two whole numbers holds."""
    _check(tensor.dtype in WHOLE, math.prod(tensor.shape) == 2)
    letter = "q" if tensor.dtype == "int64" else "i"
    first, second = struct.unpack(f"<2{letter}", _bytes(manifest, tensor))
    _check(first > 0, second > 0)
    return first, second


def _order(tensor: TensorInfo | None, inputs: int) -> dict[str, TensorInfo]:
    """Which group each input is in, where that is stored."""
    if tensor is None:
        return {}
    _check(tensor.dtype in WHOLE, tensor.shape == (inputs,))
    return {"order": tensor}


def _bytes(manifest: Manifest, tensor: TensorInfo) -> bytes:
    return b"".join(read_pieces(manifest, tensor))


def _are_matrices(*tensors: TensorInfo) -> bool:
    return all(len(tensor.shape) == 2 for tensor in tensors)


def _group(inputs: int, groups: int, stated: int | None) -> int:
    """How many inputs have a scale in common; AutoGPTQ's last group may have fewer.

    Without a stated size that gives as many groups, it is a power of two: no two of them give the same.

    Args:
        stated: What config.json gives for all modules; GPTQModel allows one of another size.
    """
    if stated and math.ceil(inputs / stated) == groups:
        return min(stated, inputs)
    size, rest = divmod(inputs, groups)
    _check(not rest, groups == 1 or size.bit_count() == 1)
    return size


def _groups(groups: int, size: int) -> str:
    return "one scale a row" if groups == 1 else f"groups of {size}"


def _positive(value: Any) -> int:
    _check(type(value) is int)
    _check(value > 0)
    return value


def _check(*facts: object) -> None:
    if not all(facts):
        raise UnreadableError


# The end of a stored name -> what stands for the weight before it ends, and what reads it.
CONVENTIONS: dict[str, tuple[str, Convention]] = {
    ".qweight": (".weight", gptq_or_awq),
    ".weight_packed": (".weight", packed),
    ".SCB": (".weight", int8),
    ".scales": (".weight", mlx),
    ".scale_weight": (".weight", scale_weight),
    "_blocks": ("", experts4),
    **dict.fromkeys(SCALES, ("", scaled)),
    ".quant_state.bitsandbytes__nf4": ("", nf4),
    ".quant_state.bitsandbytes__fp4": ("", fp4),
}
