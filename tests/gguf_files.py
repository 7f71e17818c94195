"""GGUF files for tests: by gguf's own writer, and byte by byte where no writer would."""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import gguf
import numpy as np
from gguf import GGMLQuantizationType

NUMBERS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}


def text(value: str | bytes) -> bytes:
    """A string of the format."""
    data = value.encode() if isinstance(value, str) else value
    return struct.pack("<Q", len(data)) + data


def pair(key: str, kind: int, value: bytes) -> bytes:
    """A key of the metadata with its value."""
    return text(key) + struct.pack("<I", kind) + value


def array(kind: int, values: Sequence[Any], *, count: int | None = None) -> bytes:
    """An array's value; `count` lies about its length."""
    data = b"".join(map(text, values)) if kind == 8 else struct.pack(f"<{len(values)}{NUMBERS[kind]}", *values)
    return struct.pack("<IQ", kind, len(values) if count is None else count) + data


def listed(name: str, sizes: Sequence[int], kind: int, offset: int) -> bytes:
    """A tensor as the header lists it, the size that runs fastest first."""
    return text(name) + struct.pack(f"<I{len(sizes)}QIQ", len(sizes), *sizes, kind, offset)


ARCHITECTURE = pair("general.architecture", 8, text("llama"))


def raw(
    tensors: Sequence[bytes] = (listed("a", (8,), 0, 0),),
    metadata: Sequence[bytes] = (ARCHITECTURE,),
    *,
    data: bytes = bytes(32),
    version: int = 3,
    counts: tuple[int, int] | None = None,
    alignment: int = 32,
) -> bytes:
    """A file as it is told, true or not."""
    head = b"GGUF" + struct.pack("<IQQ", version, *(counts or (len(tensors), len(metadata))))
    head += b"".join((*metadata, *tensors))
    return head + bytes(-len(head) % alignment) + data


def write_gguf(
    path: Path,
    tensors: Mapping[str, np.ndarray],
    *,
    blocks: Mapping[str, str] | None = None,
    architecture: str = "llama",
    metadata: Mapping[str, Any] | None = None,
) -> None:
    """Write a file with gguf's writer.

    Args:
        tensors: Numbers in float32; of types that gguf does not quantize, bytes of rows of blocks.
        blocks: The types of those that are quantized.
    """
    writer = gguf.GGUFWriter(path, architecture)
    for key, value in (metadata or {}).items():
        _add(writer, key, value)
    for name, numbers in tensors.items():
        kind = (blocks or {}).get(name)
        if kind is None:
            writer.add_tensor(name, numbers)
            continue
        block = GGMLQuantizationType[kind]
        made = numbers if numbers.dtype == np.uint8 else gguf.quants.quantize(numbers, block)
        writer.add_tensor(name, made, raw_dtype=block)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def _add(writer: gguf.GGUFWriter, key: str, value: Any) -> None:
    kinds = {bool: writer.add_bool, int: writer.add_uint32, float: writer.add_float32, str: writer.add_string}
    kinds.get(type(value), writer.add_array)(key, value)


def random_blocks(kind: str, rows: int, columns: int, seed: int = 0) -> np.ndarray:
    """Rows of blocks of any bytes, whose scales are finite: (rows, bytes of a row)."""
    numbers, nbytes = gguf.GGML_QUANT_SIZES[GGMLQuantizationType[kind]]
    made = np.random.default_rng(seed).integers(0, 256, (rows, columns // numbers * nbytes), dtype=np.uint8)
    halves = made.reshape(-1, nbytes)
    for begin in SCALES[kind]:
        halves[:, begin + 1] &= 0x3B  # a float16 below 1
    return made


# Where the upper scales of a block lie: float16, two bytes each.
SCALES = {
    "Q4_0": (0,), "Q4_1": (0, 2), "Q5_0": (0,), "Q5_1": (0, 2), "Q8_0": (0,), "Q2_K": (80, 82), "Q3_K": (108,),
    "Q4_K": (0, 2), "Q5_K": (0, 2), "Q6_K": (208,), "Q8_K": (0, 2), "IQ4_NL": (0,), "IQ4_XS": (0,), "IQ2_XXS": (0,),
}  # fmt: skip
