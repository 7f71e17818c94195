"""The metadata of a GGUF file as settings of transformers: sizes, and how rotary positions are scaled."""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from inspector.store.manifests.columns import TensorInfo
from inspector.text import quoted

FREQUENCIES = "rope_freqs.weight"
THETA = 10_000.0  # where no file says another
EPSILON = "attention.layer_norm_rms_epsilon"
# Keys behind the architecture's name that are read here, or have no effect on what is computed.
KNOWN = frozenset(
    {
        EPSILON,
        "attention.head_count",
        "attention.head_count_kv",
        "attention.key_length",
        "attention.value_length",
        "block_count",
        "context_length",
        "embedding_length",
        "feed_forward_length",
        "rope.dimension_count",
        "rope.freq_base",
        "rope.scaling.type",
        "rope.scaling.factor",
        "rope.scaling.original_context_length",
        "rope.scaling.finetuned",
        "rope.scaling.yarn_beta_fast",
        "rope.scaling.yarn_beta_slow",
        "tensor_data_layout",
        "vocab_size",
    }
)

ReadNumbers = Callable[[TensorInfo], Sequence[float]]  # of a short tensor in float32
T = TypeVar("T")


class NoModelError(Exception):
    """Why a GGUF file is not read as a model, as the end of a sentence."""


@dataclass(frozen=True, slots=True)
class Metadata:
    """The values of one architecture, believed only if they are of the right kind."""

    values: Mapping[str, Any]
    architecture: str

    def whole(self, key: str) -> int | None:
        """A positive whole number; None where there is none."""
        return self._of(key, lambda value: type(value) is int and 0 < value < 1 << 31)

    def number(self, key: str) -> float | None:
        """A positive number, as it was before it was rounded to float32."""
        found = self._of(key, lambda value: type(value) in (int, float) and 0 < value < 1e30)
        return None if found is None else _shortest(found)

    def text(self, key: str) -> str | None:
        """A text."""
        return self._of(key, lambda value: isinstance(value, str))

    def needed(self, key: str) -> int:
        """As `whole`; nothing stands for one that is missing."""
        return self._refuse_none(key, self.whole(key))

    def needed_number(self, key: str) -> float:
        """As `number`; nothing stands for one that is missing."""
        return self._refuse_none(key, self.number(key))

    def _refuse_none(self, key: str, value: T | None) -> T:
        if value is None:
            raise NoModelError(f"its metadata lacks {quoted(f'{self.architecture}.{key}')}")
        return value

    def _of(self, key: str, fits: Callable[[Any], bool]) -> Any:
        value = self.values.get(f"{self.architecture}.{key}")
        if value is not None and not fits(value):
            raise NoModelError(f"{self.architecture}.{key} is {quoted(str(value), 40)} in its metadata")
        return value


@dataclass(frozen=True, slots=True)
class Sizes:
    """Those of a model's parts."""

    positions: int
    width: int
    layers: int
    inner: int  # of the feed-forward network
    heads: int
    kv_heads: int
    head: int  # numbers of one

    @classmethod
    def of(cls, metadata: Metadata) -> Sizes:
        """Read them.

        Raises:
            NoModelError: If one is missing, or heads are of several sizes.
        """
        width, heads = metadata.needed("embedding_length"), metadata.needed("attention.head_count")
        head = metadata.whole("attention.key_length") or width // heads
        for key in ("attention.value_length", "rope.dimension_count"):
            if (told := metadata.whole(key)) not in (None, head):
                raise NoModelError(f"{metadata.architecture}.{key} is {told}, and a head has {head}")
        return cls(
            positions=metadata.needed("context_length"),
            width=width,
            layers=metadata.needed("block_count"),
            inner=metadata.needed("feed_forward_length"),
            heads=heads,
            kv_heads=metadata.whole("attention.head_count_kv") or heads,
            head=head,
        )

    @property
    def settings(self) -> dict[str, int]:
        """As transformers calls them."""
        return {
            "max_position_embeddings": self.positions,
            "hidden_size": self.width,
            "num_hidden_layers": self.layers,
            "intermediate_size": self.inner,
            "num_attention_heads": self.heads,
            "num_key_value_heads": self.kv_heads,
            "head_dim": self.head,
        }


def rotary_positions(metadata: Metadata, sizes: Sizes, scales: TensorInfo | None, read: ReadNumbers) -> dict[str, Any]:
    """How positions rotate, as transformers says it.

    Args:
        scales: What frequencies are divided by, where the file has it.

    Raises:
        NoModelError: If they are scaled in a way that is not known here.
    """
    rope: dict[str, Any] = {"rope_type": "default", "rope_theta": metadata.number("rope.freq_base") or THETA}
    scaling = _scaling(metadata, sizes.positions)
    if scales is not None:
        if scaling:
            raise NoModelError(f"it scales its rotary positions twice, by {quoted(FREQUENCIES)} and by its metadata")
        scaling = _by_frequency(scales, sizes, read)
    return rope | scaling


def _scaling(metadata: Metadata, positions: int) -> dict[str, Any]:
    """How rotary positions are scaled; nothing where they are not."""
    factor = metadata.number("rope.scaling.factor")
    kind = metadata.text("rope.scaling.type") or ("linear" if factor else "none")
    if kind == "none":
        return {}
    if kind not in ("linear", "yarn"):
        raise NoModelError(f"it scales its rotary positions in the way {quoted(kind, 40)}")
    scaling: dict[str, Any] = {"rope_type": kind, "factor": metadata.needed_number("rope.scaling.factor")}
    if kind == "yarn":
        before = metadata.whole("rope.scaling.original_context_length")
        scaling["original_max_position_embeddings"] = before or positions
        betas = {f"beta_{each}": metadata.number(f"rope.scaling.yarn_beta_{each}") for each in ("fast", "slow")}
        scaling |= {name: beta for name, beta in betas.items() if beta is not None}
    return scaling


def _by_frequency(tensor: TensorInfo, sizes: Sizes, read: ReadNumbers) -> dict[str, Any]:
    """A factor for each frequency, as Llama 3's files have them: transformers takes a list of them as longrope's."""
    count = sizes.head // 2
    if (tensor.dtype, tensor.shape) != ("float32", (count,)):
        raise NoModelError(f"{quoted(tensor.name)} has not one number for each of {count} frequencies")
    factors = [*read(tensor)]
    if not all(0 < each < 1e30 for each in factors):
        raise NoModelError(f"{quoted(tensor.name)} has numbers that no frequency can be divided by")
    return {
        "rope_type": "longrope",
        "short_factor": [*map(_shortest, factors)],
        "long_factor": [*map(_shortest, factors)],
        "factor": 1.0,
        "attention_factor": 1.0,
        "original_max_position_embeddings": sizes.positions,
    }


def _shortest(number: float) -> float:
    """The number of fewest digits that is rounded to the same float32: 1e-6, not 9.99999997e-7."""
    rounded = struct.pack("<f", number)
    digits = (float(f"{number:.{count}g}") for count in range(6, 10))
    return next((each for each in digits if struct.pack("<f", each) == rounded), number)
