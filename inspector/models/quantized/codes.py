"""Turn codes and scales into the numbers that they stand for, some rows at a time."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass

import torch

from inspector.models.quantized.ggml import dequantize_blocks, nearest_in_blocks
from inspector.models.quantized.layout import PLAIN, Quantized, WeightLayout
from inspector.models.tensors import Reader
from inspector.store.manifests.columns import TensorInfo, Tensors

Numbers = Callable[[slice], torch.Tensor]  # rows of a weight -> (rows, columns)
Parts = Mapping[str, torch.Tensor]
AWQ_ORDER = (0, 4, 1, 5, 2, 6, 3, 7)  # where in its word each of eight columns' codes stands
AT_ONCE = 1 << 22  # numbers
E2M1 = (0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0, -0.0, -0.5, -1.0, -1.5, -2.0, -3.0, -4.0, -6.0)


@dataclass(frozen=True, slots=True)
class Dequantizer:
    """A weight that is stored as codes, seen as a matrix (out, in), experts below each other."""

    rows: Numbers  # what the codes of some rows stand for, (rows, columns) in float32
    # Other numbers for some rows, (rows, columns) in float32 -> the nearest that codes can say
    nearest: Callable[[slice, torch.Tensor], torch.Tensor]


@dataclass(frozen=True, slots=True)
class CodedReader:
    """Weights that are stored as codes, as what they stand for; all others as another reader has them."""

    base: Reader
    layout: WeightLayout

    @property
    def tensors(self) -> Tensors:
        """Headers as if all numbers were stored plainly."""
        return self.layout.tensors

    def stored(self, name: str) -> tuple[TensorInfo, ...]:
        """Codes, scales and what else a weight is made of."""
        coded = self.layout.changed.get(name)
        return tuple(coded.parts.values()) if coded else self.base.stored(name)

    def read(self, names: Collection[str]) -> dict[str, torch.Tensor]:
        """Dequantize weights, all numbers of each."""
        coded = self.layout.changed
        plain = self.base.read([name for name in names if name not in coded])
        return {name: plain[name] if name in plain else read_quantized(self.base, coded[name]) for name in names}

    def outline(self, names: Collection[str]) -> dict[str, torch.Tensor]:
        """What `read` gives, on the meta device."""
        coded = self.layout.changed
        plain = self.base.outline([name for name in names if name not in coded])
        return {name: plain[name] if name in plain else _outline(coded[name].info) for name in names}


def _outline(tensor: TensorInfo) -> torch.Tensor:
    return torch.empty(tensor.shape, dtype=getattr(torch, tensor.dtype), device="meta")


def open_codes(base: Reader, quantized: Quantized) -> Dequantizer:
    """Get ready to read rows of a weight that is stored as codes."""
    stored = base.read([part.name for part in quantized.parts.values()])
    parts = {role: stored[part.name] for role, part in quantized.parts.items()}
    return OPENERS[quantized.kind](parts, quantized)


def read_quantized(base: Reader, quantized: Quantized) -> torch.Tensor:
    """All numbers of a weight, in the shape and dtype that its model takes."""
    opened = open_codes(base, quantized)
    columns = quantized.shape[-1]
    dtype = getattr(torch, quantized.dtype)
    whole = torch.empty(quantized.shape, dtype=dtype).view(-1, columns)
    size = max(1, AT_ONCE // columns)
    for begin in range(0, len(whole), size):
        part = slice(begin, min(begin + size, len(whole)))
        whole[part] = opened.rows(part).to(dtype)
    shaped = whole.view(quantized.shape)
    return shaped.mT.contiguous() if quantized.flipped else shaped


def unpack(words: torch.Tensor, bits: int, count: int) -> torch.Tensor:
    """Split words into codes that stand one after the other, lowest bits first.

    Args:
        words: (rows, words) in int32.
        bits: Of a code, 1..8; one may lie across two words.
        count: Codes of a row.

    Returns:
        (rows, count) in int32, 0..2**bits - 1.
    """
    begin = bits * torch.arange(count)
    place, shift = begin // 32, begin % 32
    wide = words.to(torch.int64) & 0xFFFFFFFF
    codes = wide[:, place] >> shift
    over = shift + bits > 32
    if over.any():
        codes[:, over] |= wide[:, place[over] + 1] << (32 - shift[over])
    return (codes & (2**bits - 1)).to(torch.int32)


def _even(codes: Numbers, scale: Numbers, zero: Numbers | None, *, lowest: int, highest: int) -> Dequantizer:
    """Codes at even steps: w = scale · (code - zero)."""

    def rows(part: slice) -> torch.Tensor:
        steps = codes(part) if zero is None else codes(part) - zero(part)
        return steps * scale(part)

    def nearest(part: slice, numbers: torch.Tensor) -> torch.Tensor:
        size = scale(part)
        shift = 0 if zero is None else zero(part)
        steps = (numbers / size.where(size != 0, 1.0)).round() + shift
        return (steps.clamp(lowest, highest) - shift) * size

    return Dequantizer(rows, nearest)


def _gptq(parts: Parts, quantized: Quantized) -> Dequantizer:
    """A scale and a zero for a group of inputs; codes stand along the inputs."""
    outputs, inputs = quantized.shape
    bits = quantized.options["bits"]
    scales = parts["scale"].float()
    zeros = unpack(parts["zero"], bits, outputs) + quantized.options["plus"]
    group = _groups(parts, inputs, quantized.options["group"])
    return _even(
        lambda part: unpack(parts["codes"][:, part].T.contiguous(), bits, inputs),
        lambda part: scales[:, part].T[:, group],
        lambda part: zeros[:, part].T[:, group],
        lowest=0,
        highest=2**bits - 1,
    )


def _awq(parts: Parts, quantized: Quantized) -> Dequantizer:
    """As GPTQ; codes stand along the outputs, eight in a word, shuffled."""
    outputs, inputs = quantized.shape
    scales, zeros = parts["scale"].float(), _shuffled(parts["zero"])
    group = _groups(parts, inputs, quantized.options["group"])

    def codes(part: slice) -> torch.Tensor:
        begin, end, _ = part.indices(outputs)
        words = slice(begin // 8, -(-end // 8))
        return _shuffled(parts["codes"][:, words])[:, begin % 8 :][:, : end - begin].T

    return _even(
        codes, lambda part: scales[:, part].T[:, group], lambda part: zeros[:, part].T[:, group], lowest=0, highest=15
    )


def _shuffled(words: torch.Tensor) -> torch.Tensor:
    codes = unpack(words, 4, 8 * words.shape[1])
    return codes.view(len(codes), -1, 8)[:, :, AWQ_ORDER].reshape(len(codes), -1)


def _packed(parts: Parts, quantized: Quantized) -> Dequantizer:
    """A scale, and maybe a zero, for a group of inputs; codes and zeros are signed."""
    outputs, inputs = quantized.shape
    bits = quantized.options["bits"]
    half = 2 ** (bits - 1)
    group = _groups(parts, inputs, quantized.options["group"])
    zeros = torch.zeros(0)
    if "zero" in parts:  # packed along the outputs
        zeros = unpack(parts["zero"].T.contiguous(), bits, outputs).T - half
    return _even(
        lambda part: unpack(parts["codes"][part], bits, inputs) - half,
        lambda part: parts["scale"][part].float()[:, group],
        (lambda part: zeros[part][:, group]) if "zero" in parts else None,
        lowest=-half,
        highest=half - 1,
    )


def _groups(parts: Parts, inputs: int, size: int) -> torch.Tensor:
    """Which group each input is in, (inputs,)."""
    if "order" not in parts or (parts["order"] < 0).any():  # -1: not ordered
        return torch.arange(inputs) // size
    return parts["order"].long().clamp(max=(inputs - 1) // size)


def _scaled(parts: Parts, quantized: Quantized) -> Dequantizer:
    """A scale, and maybe a zero, for all, a row, a group of a row or a block."""
    *_, height, columns = quantized.shape
    down, tall, across, wide = quantized.options["grid"]
    codes = parts["codes"].reshape(-1, columns)
    place = torch.arange(columns) // wide

    def spread(values: torch.Tensor) -> Numbers:
        values = values.float().reshape(-1, across)

        def of(part: slice) -> torch.Tensor:
            row = torch.arange(*part.indices(len(codes)))
            found = values[row // height * down + row % height // tall]
            return found if across == 1 else found[:, place]

        return of

    scale = spread(parts["scale"])
    zero = spread(parts["zero"]) if "zero" in parts else None
    even = _even(lambda part: codes[part].float(), scale, zero, lowest=-128, highest=127)
    if not codes.dtype.is_floating_point:
        return even
    largest = torch.finfo(codes.dtype).max

    def nearest(part: slice, numbers: torch.Tensor) -> torch.Tensor:
        size = scale(part)
        parts = numbers / size.where(size != 0, 1.0)
        return parts.clamp(-largest, largest).to(codes.dtype).float() * size

    return Dequantizer(even.rows, nearest)


def _affine(parts: Parts, quantized: Quantized) -> Dequantizer:
    """A scale and a bias for a group of inputs; codes stand along the inputs."""
    columns, bits = quantized.shape[-1], quantized.options["bits"]
    words = parts["codes"].view(torch.int32).reshape(-1, parts["codes"].shape[-1])
    scales, biases = (parts[role].float().reshape(len(words), -1) for role in ("scale", "bias"))
    group = torch.arange(columns) // quantized.options["group"]

    def rows(part: slice) -> torch.Tensor:
        return unpack(words[part], bits, columns) * scales[part][:, group] + biases[part][:, group]

    def nearest(part: slice, numbers: torch.Tensor) -> torch.Tensor:
        size, shift = scales[part][:, group], biases[part][:, group]
        steps = ((numbers - shift) / size.where(size != 0, 1.0)).round()
        return steps.clamp(0, 2**bits - 1) * size + shift

    return Dequantizer(rows, nearest)


def _int8(parts: Parts, quantized: Quantized) -> Dequantizer:
    """A row's largest number is code 127 (Dettmers et al. 2022)."""
    del quantized
    scale = parts["scale"].float()[:, None] / 127
    return _even(lambda part: parts["codes"][part].float(), lambda part: scale[part], None, lowest=-127, highest=127)


def _bits4(parts: Parts, quantized: Quantized) -> Dequantizer:
    """A table's number times the block's largest (Dettmers et al. 2023), itself a code maybe."""
    columns, block = quantized.shape[1], quantized.options["block"]
    codes, table = parts["codes"].reshape(-1), parts["quant_map"].float()
    largest = parts["absmax"]
    if "inner" in quantized.options:
        inner = torch.arange(len(largest)) // quantized.options["inner"]
        share = parts["nested_quant_map"].float()[largest.long()]
        largest = share * parts["nested_absmax"].float()[inner] + quantized.options["offset"]
    largest = largest.float()
    nearest_in_table = _rounding(table)

    def places(part: slice) -> torch.Tensor:
        begin, end, _ = part.indices(quantized.shape[0])
        return torch.arange(begin * columns, end * columns).view(-1, columns)

    def rows(part: slice) -> torch.Tensor:
        place = places(part)
        both = codes[place // 2].to(torch.int64)
        code = torch.where(place % 2 == 0, both >> 4, both & 15)  # the first in the upper half
        return table[code] * largest[place // block]

    def nearest(part: slice, numbers: torch.Tensor) -> torch.Tensor:
        size = largest[places(part) // block]
        return nearest_in_table(numbers / size.where(size != 0, 1.0)) * size

    return Dequantizer(rows, nearest)


def _float4(parts: Parts, quantized: Quantized) -> Dequantizer:
    """A float of 4 bits times its group's scale (OCP Microscaling Formats 1.0; NVIDIA's NVFP4)."""
    group, columns = quantized.options["group"], quantized.shape[-1]
    codes = parts["codes"].contiguous().view(torch.uint8).reshape(-1, columns // 2)
    scale = parts["scale"].reshape(len(codes), -1)
    table = torch.tensor(E2M1)
    nearest_in_table = _rounding(table)
    whole = parts["whole"].float().reshape(()) if "whole" in parts else torch.tensor(1.0)
    if quantized.options["how"] == "divide":
        whole = 1 / whole

    def sizes(part: slice) -> torch.Tensor:
        kept = scale[part]
        size = torch.exp2(kept.float() - 127) if kept.dtype == torch.uint8 else kept.float()
        return (size * whole).repeat_interleave(group, 1)

    def rows(part: slice) -> torch.Tensor:
        both = codes[part].to(torch.int64)
        code = torch.stack((both & 15, both >> 4), dim=-1)  # the first in the lower half
        return table[code].reshape(len(both), columns) * sizes(part)

    def nearest(part: slice, numbers: torch.Tensor) -> torch.Tensor:
        size = sizes(part)
        return nearest_in_table(numbers / size.where(size != 0, 1.0)) * size

    return Dequantizer(rows, nearest)


def _rounding(table: torch.Tensor) -> Callable[[torch.Tensor], torch.Tensor]:
    """What gives the nearest number of a table."""
    ordered = table.unique()
    between = (ordered[1:] + ordered[:-1]) / 2
    return lambda numbers: ordered[torch.bucketize(numbers.contiguous(), between)]


def _blocks(parts: Parts, quantized: Quantized) -> Dequantizer:
    """Some codes of ggml, and the scales that they share, after each other."""
    stored = _ordered(parts, quantized)
    block, more = quantized.options["block"], quantized.options.get("more", 0)
    return Dequantizer(
        lambda part: dequantize_blocks(stored(part), block) - more,
        lambda part, numbers: nearest_in_blocks(stored(part), block, numbers + more) - more,
    )


def _plain(parts: Parts, quantized: Quantized) -> Dequantizer:
    """Floats as they are, but for the order of rows and what was added to all."""
    stored, more = _ordered(parts, quantized), quantized.options.get("more", 0)
    dtype = parts["codes"].dtype

    def rows(part: slice) -> torch.Tensor:
        return stored(part).float() - more if more else stored(part)

    return Dequantizer(rows, lambda part, numbers: (numbers + more).to(dtype).float() - more)


def _ordered(parts: Parts, quantized: Quantized) -> Numbers:
    """Stored rows in the model's order: ggml rotates numbers side by side, transformers those of two halves."""
    stored, heads = parts["codes"], quantized.options.get("heads")
    if not heads:
        matrix = stored.reshape(-1, stored.shape[-1])
        return matrix.__getitem__
    count = quantized.shape[0]
    order = torch.arange(count).view(heads, count // heads // 2, 2).mT.reshape(-1)
    if stored.dim() == 1:  # a bias: one row
        return stored[order][None].__getitem__
    return lambda part: stored[order[part]]


OPENERS: dict[str, Callable[[Parts, Quantized], Dequantizer]] = {
    "gptq": _gptq,
    "awq": _awq,
    "packed": _packed,
    "scaled": _scaled,
    "affine": _affine,
    "int8": _int8,
    "bits4": _bits4,
    "float4": _float4,
    "blocks": _blocks,
    PLAIN: _plain,
}
