"""How large a low-rank change is, from its factors: the product is never made."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import torch

from inspector.models.adapters.parts import WeightChange

BLOCK = 1 << 20  # numbers that are taken to float64, or multiplied out, at once
MOST_VALUES = 1024  # singular values; more take minutes, so that there is a norm alone
UNKNOWN = float("nan")
CONVOLVED = ("hada_t1", "hada_t2", "lokr_t2")  # cores of decomposed convolutions, which are not multiplied out
Pair = tuple[torch.Tensor, torch.Tensor]  # (rows, rank) and (rank, columns)


@dataclass(frozen=True, slots=True)
class Size:
    """Of a change, with its scale."""

    shape: tuple[int, ...] = ()  # of the product; (): the factors alone do not tell
    norm: float = UNKNOWN  # Frobenius; NaN: not finite, or not known without the base
    effective_rank: float = UNKNOWN  # exp of the entropy of the singular values' shares (Roy & Vetterli 2007)
    dead: bool = False  # it changes nothing
    finite: bool = True


@dataclass(frozen=True, slots=True)
class _Spectrum:
    """Of one matrix."""

    norm: float
    rank: float  # the effective one; NaN: not computed


def measure(change: WeightChange, parts: Mapping[str, torch.Tensor]) -> Size:
    """Measure what a change adds to its weight; of DoRA, before magnitudes.

    Args:
        change: The change.
        parts: Role -> the adapter's numbers.
    """
    if not all(bool(part.isfinite().all()) for part in parts.values()):
        return Size(finite=False)
    if change.kind == "(IA)³":
        return Size(dead=bool((parts["ia3_l"] == 1).all()))
    if any(role in parts for role in CONVOLVED):
        return Size()
    if change.kind == "LoKr":
        return _of_kronecker(parts, abs(change.scale))
    pairs = _pairs(change.kind, parts)
    (left, right), *_ = pairs
    found = _of_product(left, right) if len(pairs) == 1 else _Spectrum(_norm_of_blocks(pairs), UNKNOWN)
    magnitudes = "lora_magnitude_vector" in parts
    dead = not magnitudes and any(not bool(one.any()) or not bool(other.any()) for one, other in pairs)
    return Size((left.shape[0], right.shape[1]), abs(change.scale) * found.norm, found.rank, dead)


def _pairs(kind: str, parts: Mapping[str, torch.Tensor]) -> list[Pair]:
    """The factors; of several products, the change has their elements' products."""
    if kind == "LoHa":
        return [(parts[f"hada_w{n}_a"].flatten(1), parts[f"hada_w{n}_b"].flatten(1)) for n in (1, 2)]
    if kind == "LoRA of embeddings":
        return [(parts["lora_embedding_A"].T, parts["lora_embedding_B"].T)]
    return [(parts["lora_B"].flatten(1), parts["lora_A"].flatten(1))]


def _of_product(left: torch.Tensor, right: torch.Tensor) -> _Spectrum:
    """The squares of its singular values are the eigenvalues of √G right rightᵀ √G, where G = leftᵀ left."""
    if left.shape[1] > MOST_VALUES:
        return _Spectrum(_norm_of_blocks([(left, right)]), UNKNOWN)
    values, vectors = torch.linalg.eigh(_gram(left))
    root = vectors * values.clamp(min=0).sqrt() @ vectors.T
    return _spectrum(torch.linalg.eigvalsh(root @ _gram(right.T) @ root))


def _of_matrix(matrix: torch.Tensor) -> _Spectrum:
    tall = matrix if matrix.shape[0] >= matrix.shape[1] else matrix.T
    if tall.shape[1] > MOST_VALUES:
        return _Spectrum(float(torch.linalg.vector_norm(matrix, dtype=torch.float64)), UNKNOWN)
    return _spectrum(torch.linalg.eigvalsh(_gram(tall)))


def _of_kronecker(parts: Mapping[str, torch.Tensor], scale: float) -> Size:
    """Singular values of a Kronecker product are the products of those of its factors, so their entropies add up."""
    found, rows, columns = [], 1, 1
    for name in ("lokr_w1", "lokr_w2"):
        if name in parts:
            whole = parts[name].flatten(1)
            found.append(_of_matrix(whole))
            shape = whole.shape
        else:
            left, right = parts[f"{name}_a"], parts[f"{name}_b"].flatten(1)
            found.append(_of_product(left, right))
            shape = left.shape[0], right.shape[1]
        rows, columns = rows * shape[0], columns * shape[1]
    norm = scale * math.prod(each.norm for each in found)
    return Size((rows, columns), norm, math.prod(each.rank for each in found), norm == 0)


def _gram(tall: torch.Tensor) -> torch.Tensor:
    """tallᵀ tall in float64."""
    size = max(1, BLOCK // max(1, tall.shape[1]))
    total = torch.zeros(tall.shape[1], tall.shape[1], dtype=torch.float64)
    for begin in range(0, tall.shape[0], size):
        block = tall[begin : begin + size].double()
        total += block.T @ block
    return total


def _norm_of_blocks(pairs: list[Pair]) -> float:
    """Of an elementwise product of products, some rows at a time."""
    (left, right), *_ = pairs
    size, total = max(1, BLOCK // max(1, left.shape[1], right.shape[1])), 0.0
    for begin in range(0, left.shape[0], size):
        product = torch.ones((), dtype=torch.float64)
        for one, other in pairs:
            product = product * (one[begin : begin + size].double() @ other.double())
        total += float(product.square().sum())
    return math.sqrt(total)


def _spectrum(squares: torch.Tensor) -> _Spectrum:
    """From the squares of singular values, as far as they are above zero."""
    values = squares.clamp(min=0).sqrt()
    total = float(values.sum())
    if not total:
        return _Spectrum(0.0, 0.0)
    shares = values[values > 0] / total
    return _Spectrum(float(values.norm()), float((-(shares * shares.log()).sum()).exp()))
