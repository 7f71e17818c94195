"""The optimizer of the demo training: Muon in float32 for matrices, AdamW for the rest."""

from __future__ import annotations

from collections.abc import Iterable

import torch
from torch import Tensor, nn


def orthogonalize(matrix: Tensor, steps: int = 5) -> Tensor:
    """Move a matrix toward the nearest one with singular values of about 1.

    The quintic Newton-Schulz iteration of Jordan et al. (2024), "Muon". `torch.optim.Muon` does
    the same in bfloat16, which is slow on a processor without instructions for it.

    Args:
        matrix: Any matrix, (rows, columns).
        steps: Iterations.

    Returns:
        A matrix of the same shape, singular values roughly 0.7..1.2.
    """
    wide = matrix.shape[0] <= matrix.shape[1]
    x = matrix if wide else matrix.T
    x = x / (x.norm() + 1e-7)
    for _ in range(steps):
        gram = x @ x.T
        x = 3.4445 * x + torch.addmm(gram, gram, gram, beta=-4.7750, alpha=2.0315) @ x
    return x if wide else x.T


class Muon(torch.optim.Optimizer):
    """Nesterov momentum whose update of every matrix is orthogonalized, with decoupled decay."""

    def __init__(self, params: Iterable[nn.Parameter], lr: float, weight_decay: float) -> None:
        """Take matrices.

        Args:
            params: Parameters of two dimensions.
            lr: Step size; an update has a root mean square of about 0.2 * lr.
            weight_decay: Share of a weight that is taken off, times lr.
        """
        super().__init__(params, {"lr": lr, "weight_decay": weight_decay, "momentum": 0.95})

    @torch.no_grad()
    def step(self, closure: None = None) -> None:  # type: ignore[override]
        """Update every matrix that has a gradient."""
        for group in self.param_groups:
            for parameter in group["params"]:
                if parameter.grad is None:
                    continue
                state = self.state[parameter]
                if not state:
                    state["momentum"] = torch.zeros_like(parameter)
                momentum = state["momentum"].lerp_(parameter.grad, 1 - group["momentum"])
                update = orthogonalize(parameter.grad.lerp(momentum, group["momentum"]))
                scale = 0.2 * max(parameter.shape) ** 0.5
                parameter.mul_(1 - group["lr"] * group["weight_decay"])
                parameter.add_(update, alpha=-group["lr"] * scale)


def build_optimizers(
    model: nn.Module, *, matrix_rate: float, rate: float, weight_decay: float
) -> tuple[torch.optim.Optimizer, ...]:
    """Give Muon the matrices between the layers and AdamW everything else.

    Args:
        model: Its embeddings are found by the word "embedding" or a GPT-2 name.
        matrix_rate: Learning rate of Muon.
        rate: Learning rate of AdamW.
        weight_decay: Of matrices and embeddings; biases and norms get none.

    Returns:
        The two optimizers.
    """
    matrices, tables, vectors = [], [], []
    for name, parameter in model.named_parameters():
        if parameter.ndim < 2:
            vectors.append(parameter)
        elif any(part in name for part in ("embedding", "wte", "wpe", "seq_relationship")):
            tables.append(parameter)
        else:
            matrices.append(parameter)
    groups = [{"params": tables, "weight_decay": weight_decay}, {"params": vectors, "weight_decay": 0.0}]
    return (
        Muon(matrices, lr=matrix_rate, weight_decay=weight_decay),
        torch.optim.AdamW(groups, lr=rate, betas=(0.9, 0.98)),
    )


def rate_factor(step: int, steps: int, warmup: int, decay_from: int) -> float:
    """Say what share of the full learning rate a step gets: warm up, hold, decay to zero.

    Until the decay the answer does not depend on `steps`, so a run may be lengthened.

    Args:
        step: The step, from 0.
        steps: All steps.
        warmup: Steps of linear warm-up.
        decay_from: Step at which the linear decay begins.

    Returns:
        A factor in 0..1.
    """
    if step < warmup:
        return (step + 1) / warmup
    return min(1.0, (steps - step) / max(1, steps - decay_from))
