"""Differentiate by single rows of the embedding matrix, without a gradient as large as the matrix.

A row is used where tokens are looked up and where states are multiplied with it. What is there is tapped: a
look-up's gradient is kept for the tokens of the batch alone, and the output layer's follows from
what it was given and from the gradient on its scores.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch import nn
from torch.func import functional_call

BLOCK = 1 << 12  # rows of the vocabulary whose gradient is made at once

Tap = tuple[torch.Tensor, torch.Tensor]  # states that the output layer was given, and its scores


def is_plain(layer: nn.Module) -> bool:
    """Whether an output layer is a product with its matrix, and maybe a bias."""
    return type(layer).forward is nn.Linear.forward


@contextmanager
def keep_sparse(modules: Iterable[nn.Embedding]) -> Iterator[None]:
    """Have look-ups give gradients of the rows that they read, for one pass."""
    kept = [(module, module.sparse) for module in modules]
    try:
        for module, _ in kept:
            module.sparse = True
        yield
    finally:
        for module, sparse in kept:
            module.sparse = sparse


@contextmanager
def tapped(layer: nn.Module) -> Iterator[list[Tap]]:
    """Keep what an output layer is given, and what it gives, for one pass."""
    taps: list[Tap] = []

    def keep(_: nn.Module, given: tuple[Any, ...], scores: torch.Tensor) -> None:
        taps.append((given[0].detach(), scores))

    handle = layer.register_forward_hook(keep)
    try:
        yield taps
    finally:
        handle.remove()


def rows_looked_up(gradient: torch.Tensor | None, rows: Sequence[int], columns: int) -> tuple[torch.Tensor, int]:
    """The gradient on some rows of the look-up, and how many rows have any."""
    if gradient is None:
        return torch.zeros(len(rows), columns), 0
    if not gradient.is_sparse:
        return gradient[list(rows)].float().cpu(), int(gradient.ne(0).any(dim=1).sum())
    there, places = gradient._indices()[0].cpu().unique(return_inverse=True)
    values = torch.zeros(len(there), columns).index_add_(0, places, gradient._values().float().cpu())
    found = torch.stack([values[there == row].sum(dim=0) for row in rows])
    return found, int(values.ne(0).any(dim=1).sum())


def rows_multiplied(
    taps: Sequence[Tap], gradients: Sequence[torch.Tensor], rows: Sequence[int]
) -> tuple[torch.Tensor, int]:
    """The gradient on some rows of the output layer's matrix, and how many rows have any."""
    given = torch.cat([states.flatten(0, -2) for states, _ in taps]).float()
    pushed = torch.cat([gradient.flatten(0, -2) for gradient in gradients])
    touched = sum(int((block.float().T @ given).ne(0).any(dim=1).sum()) for block in pushed.split(BLOCK, dim=1))
    return (pushed[:, list(rows)].float().T @ given).cpu(), touched


@contextmanager
def moved(
    look_ups: Iterable[nn.Embedding], layer: nn.Linear | None, rows: Sequence[int], moves: torch.Tensor
) -> Iterator[None]:
    """Add a move of zero to some rows wherever they are used: its gradient is that on the rows.

    Args:
        look_ups: Modules that look tokens up; each as its own class does it, and with its padding_idx.
        layer: The output layer, if it has the same matrix.
        rows: Of the matrix, each once.
        moves: (rows, d_model).
    """
    handles: list[Any] = [module.register_forward_hook(_looking_up(rows, moves)) for module in look_ups]
    if layer is not None:
        handles.append(layer.register_forward_hook(_multiplying(rows, moves)))
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()


def _looking_up(rows: Sequence[int], moves: torch.Tensor) -> Any:
    inside = False

    def hook(module: nn.Embedding, given: tuple[Any, ...], found: torch.Tensor) -> torch.Tensor | None:
        nonlocal inside
        if inside:
            return None
        inside, padding_idx = True, module.padding_idx
        try:
            small = torch.cat([moves, torch.zeros_like(moves[:1])])  # and one for all other tokens
            place = torch.full((module.num_embeddings,), len(rows), device=found.device)
            place[list(rows)] = torch.arange(len(rows), device=found.device)
            module.padding_idx = rows.index(padding_idx) if padding_idx in rows else None  # type: ignore[assignment]
            more = functional_call(module, {"weight": small}, (place[given[0]], *given[1:]))
        finally:
            inside, module.padding_idx = False, padding_idx
        return found + (more - more.detach())

    return hook


def _multiplying(rows: Sequence[int], moves: torch.Tensor) -> Any:
    def hook(_: nn.Module, given: tuple[Any, ...], scores: torch.Tensor) -> torch.Tensor:
        place = torch.tensor(rows, device=scores.device)
        return scores.index_add(-1, place, given[0] @ moves.T)

    return hook
