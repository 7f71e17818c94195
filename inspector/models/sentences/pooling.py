"""Pooling as a sum over tokens: what each token brings of a text's vector, and of the score of two texts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from torch.nn.modules import activation as activations

from inspector.errors import CheckpointError, NotInCheckpointError
from inspector.models.sentences.settings import Dense, Normalize
from inspector.models.tensors import StoredReader
from inspector.results.sentences import ADDITIVE
from inspector.store.manifests.columns import Tensors
from inspector.store.manifests.manifest import Manifest
from inspector.store.names import MODULE_FILES, module_file, shown_name
from inspector.store.readers.sets import read_header

TINY = 1e-12  # the least length that a vector is divided by: torch's own
PARTS_OF_DENSE = frozenset({"linear.weight", "linear.bias", "residual.weight"})


@dataclass(frozen=True, slots=True)
class Linear:
    """The weights of a `Dense`, in float64."""

    weight: torch.Tensor  # (out, in)
    bias: torch.Tensor | None  # (out,)
    residual: torch.Tensor | None  # (out, in); the unit matrix where the input itself is added
    activation: torch.nn.Module | None  # None: the layer is linear

    def vector(self, vector: torch.Tensor) -> torch.Tensor:
        """What becomes of a vector, (in,) to (out,)."""
        out = torch.nn.functional.linear(vector, self.weight, self.bias)
        out = self.activation(out) if self.activation else out
        return out if self.residual is None else out + self.residual @ vector


@dataclass(frozen=True, slots=True)
class TextVector:
    """The vector of a text, and what each of its tokens brings of it."""

    vector: torch.Tensor  # (dimensions,), float64
    # (positions, dimensions), which add up to the vector; a last row is what biases bring. None: a layer is not linear.
    parts: torch.Tensor | None
    has_bias: bool = False  # whether there is that last row


def pool(states: torch.Tensor, mask: torch.Tensor, modes: Sequence[str], *, prompt: int = 0) -> torch.Tensor:
    """What each position brings of the pooled vector.

    As sentence-transformers' `Pooling` computes it. Every mode is a sum over positions, the greatest too: each
    dimension is one position's.

    Args:
        states: Of the last layer, (positions, d_model).
        mask: 1 for a token and 0 for padding, (positions,).
        modes: Of `MODES`; their vectors are joined.
        prompt: Tokens at the start that are left out.

    Returns:
        (positions, modes * d_model), which add up to the vector.
    """
    states, given = states.double(), mask.bool()
    start = int(given.int().argmax())  # the first token: padding may lie before it
    places = torch.arange(len(states))
    kept = given & (places >= start + prompt) if prompt else given
    count = kept.sum().clamp(min=1).double()
    parts = []
    for mode in modes:
        if mode in ("cls", "lasttoken"):
            found = kept.nonzero()[:, 0]
            chosen = int(found[0 if mode == "cls" else -1]) if len(found) else 0
            parts.append(states * (places == chosen)[:, None])
        elif mode == "max":
            best = states.masked_fill(~kept[:, None], float("-inf")).argmax(dim=0)
            parts.append(states * (places[:, None] == best))
        else:
            weights = kept.double()
            if mode == "weightedmean":
                weights = weights * (places - start + 1)
                weights = weights / weights.sum().clamp(min=1)
            else:
                weights = weights / (count if mode == "mean" else count.sqrt())
            parts.append(states * weights[:, None])
    return torch.cat(parts, dim=1)


def finish(parts: torch.Tensor, layers: Sequence[Linear | Normalize]) -> TextVector:
    """Run the modules after the pooling on a pooled vector, and on its parts as long as that is exact.

    Args:
        parts: (positions, dimensions), as `pool` gives them.
    """
    vector, has_bias = parts.sum(dim=0), False
    rows: torch.Tensor | None = parts
    for layer in layers:
        if isinstance(layer, Normalize):
            length = torch.linalg.vector_norm(vector).clamp(min=TINY)
            vector = vector / length
            rows = None if rows is None else rows / length
            continue
        if rows is not None and layer.activation is None:
            through = layer.weight if layer.residual is None else layer.weight + layer.residual
            rows = rows @ through.T
            if layer.bias is not None:
                if has_bias:
                    rows[-1] += layer.bias
                else:
                    rows, has_bias = torch.cat([rows, layer.bias[None]]), True
        else:
            rows = None
        vector = layer.vector(vector)
    return TextVector(vector, rows, has_bias and rows is not None)


def score(first: torch.Tensor, second: torch.Tensor, measure: str) -> float:
    """The similarity of two vectors, as the library computes it: a distance counts as its negative."""
    if measure == "euclidean":
        return -float(torch.linalg.vector_norm(first - second))
    if measure == "manhattan":
        return -float((first - second).abs().sum())
    return float(first @ second) / _scale(first, second, measure)


def pair_parts(first: TextVector, second: TextVector, measure: str) -> torch.Tensor | None:
    """What each pair of positions brings of the score, (first's, second's); they add up to it.

    None where the score is no sum of pairs: of a distance, and after a layer that is not linear.
    """
    if first.parts is None or second.parts is None or measure not in ADDITIVE:
        return None
    return first.parts @ second.parts.T / _scale(first.vector, second.vector, measure)


def _scale(first: torch.Tensor, second: torch.Tensor, measure: str) -> float:
    if measure == "dot":
        return 1.0
    lengths = (torch.linalg.vector_norm(each).clamp(min=TINY) for each in (first, second))
    return float(torch.stack([*lengths]).prod())


def read_linear(manifest: Manifest, dense: Dense, *, width: int) -> Linear:
    """Read a linear layer's weights: as safely as any, from safetensors first.

    Args:
        width: Dimensions that it is given.

    Raises:
        NotInCheckpointError: If its weights are not there, or its activation is not one of torch's own.
        CheckpointError: If its file is broken, or does not fit.
    """
    held = {file.name: file for file in manifest.files}
    names = [module_file(dense.folder, each) or "" for each in MODULE_FILES[1:]]
    name = next((each for each in names if each in held), None)
    if name is None:
        raise NotInCheckpointError(
            f"The weights of {dense.folder} are not in this checkpoint, so there is no vector to show: add "
            f"{shown_name(names[0])}."
        )
    header = read_header(held[name].path, shown_name(name))
    tensors = Tensors.of(each._replace(file=name) for each in header.tensors)
    wanted = {"linear.weight", *(["linear.bias"] if dense.bias else [])}
    if not wanted <= set(tensors.names) <= PARTS_OF_DENSE:
        raise CheckpointError(
            f"{shown_name(name)} must hold {' and '.join(sorted(wanted))}: compare the file with its source."
        )
    stored = StoredReader(replace(manifest, tensors=tensors)).read(tensors.names)
    if not all(each.is_floating_point() for each in stored.values()):
        raise CheckpointError(f"{shown_name(name)} must hold floating-point numbers: compare the file with its source.")
    read = {each: tensor.double() for each, tensor in stored.items()}
    weight, bias = read["linear.weight"], read.get("linear.bias") if dense.bias else None
    residual = read.get("residual.weight")
    if dense.residual and residual is None and weight.shape == (width, width):
        residual = torch.eye(width, dtype=torch.float64)
    shapes = [weight.shape, *([residual.shape] if dense.residual and residual is not None else [])]
    fits = all(len(each) == 2 and each == weight.shape and each[1] == width for each in shapes)
    if not fits or (bias is not None and bias.shape != weight.shape[:1]) or (dense.residual and residual is None):
        raise CheckpointError(
            f"{shown_name(name)} does not fit vectors of {width:,} dimensions: compare the file with its source."
        )
    if not all(bool(each.isfinite().all()) for each in read.values()):
        raise CheckpointError(f"{shown_name(name)} contains NaN or infinity: open an undamaged copy.")
    return Linear(weight, bias, residual if dense.residual else None, _activation(dense, len(weight)))


def _activation(dense: Dense, width: int) -> torch.nn.Module | None:
    """The activation, None for the identity: a class of torch's own that is made without arguments or weights.

    Args:
        width: Of the vectors that it is given, which it may not change.
    """
    module, _, name = dense.activation.rpartition(".")
    if module in ("torch.nn.modules.linear", "torch.nn") and name == "Identity":
        return None
    if module in (activations.__name__, "torch.nn") and name in activations.__all__:
        try:
            made = getattr(activations, name)().eval()
            if made(torch.zeros(width, dtype=torch.float64)).shape == (width,) and not [*made.parameters()]:
                return made
        except (TypeError, ValueError, RuntimeError):  # it wants arguments, more axes or an even width
            pass
    raise NotInCheckpointError(
        f"The activation of {dense.folder} is {dense.activation!r}, not a plain one of PyTorch: it is not run, "
        "so there is no vector to show."
    )
