"""What the analyses answer: frozen, plain values and data frames, never tensors.

Field names are those of the command line's JSON, which is `to_json(result)`. Token text is always
the visible form (a space is shown as "␣" at the front of a piece where the tokenizer marks it).
"""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # half a second of the first paint, and of every worker's start
    import pandas as pd


def local(*, default: Any = dataclasses.MISSING) -> Any:
    """Mark a field for the pages alone: `to_json` leaves it out."""
    return field(default=default, metadata={"local": True})


@dataclass(frozen=True, slots=True)
class Opened:
    """A checkpoint that is staged and can be asked about."""

    fingerprint: str  # 64 hex digits
    reference: str  # as it goes into a link; an "incoming" upload has become "upload:…"
    name: str
    warnings: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class OverviewFile:
    """One file, as the overview lists it."""

    name: str
    format: str  # "safetensors", "pytorch", "json", "text", "sentencepiece"
    nbytes: int


@dataclass(frozen=True, slots=True)
class TokenizerInfo:
    """What the tokenizer files say."""

    kind: str  # "WordPiece", "BPE", "Unigram", "WordLevel" or the file's name
    size: int  # ids that the tokenizer knows
    pad_token: str | None
    pad_id: int | None
    mask_token: str | None
    mask_id: int | None


@dataclass(frozen=True, slots=True)
class Overview:
    """What the headers of a checkpoint say; no model is built for it."""

    name: str
    fingerprint: str
    model_type: str | None  # None: there is no config.json
    architecture: str | None
    files: tuple[OverviewFile, ...]
    dtypes: dict[str, int]  # torch dtype name -> parameters stored in it
    listed_parameters: int  # every name counted, tied ones too
    unique_parameters: int  # every stored number counted once
    nbytes_on_disk: int
    nbytes_in_memory: int  # weights once loaded as they are stored, tied ones once
    vocab_rows: int | None
    d_model: int | None
    layers: int | None
    heads: dict[str, str]  # head -> "present" or "absent", in HEADS order
    tokenizer: TokenizerInfo | None
    warnings: tuple[str, ...]
    tensors: pd.DataFrame = local()  # name, shape (text), dtype, parameters, nbytes, file
    config: dict[str, Any] = local()


HEADS = (
    "masked_lm",
    "causal_lm",
    "next_sentence",
    "sequence_classification",
    "token_classification",
    "question_answering",
    "multiple_choice",
)


@dataclass(frozen=True, slots=True)
class SharedGroup:
    """Names that share a tensor, or were meant to."""

    names: tuple[str, ...]  # sorted, at least two
    verdict: str  # "tied", "equal copies", "diverged", "declared only", "alias only"
    shape: tuple[int, ...]
    nbytes: int  # one copy, as loaded
    declared: bool
    in_file: tuple[str, ...]  # those of `names` whose bytes the file holds, sorted
    in_memory: bool  # True: the names occupy the same bytes after loading
    reason: str  # one sentence


@dataclass(frozen=True, slots=True)
class ReusedModule:
    """A module that one forward pass runs more than once."""

    name: str  # the module's first name
    uses: int  # how often one forward pass runs it


@dataclass(frozen=True, slots=True)
class Sharing:
    """Which names share which memory."""

    listed_parameters: int
    unique_parameters: int
    listed_nbytes: int
    unique_nbytes: int
    groups: tuple[SharedGroup, ...]  # largest first
    reused_modules: tuple[ReusedModule, ...]
    warnings: tuple[str, ...]
    # One row a parameter name, in execution order: name, shape (text), dtype, parameters, nbytes,
    # group (index into groups, -1: not shared), file ("" where the file holds no such name)
    tensors: pd.DataFrame = local()
    # One row a line of the graph, in execution order, whatever is not shared folded by block:
    # label, tensors (count), parameters, nbytes, shape (text, "" when folded), group (-1: none)
    rows: pd.DataFrame = local()


@dataclass(frozen=True, slots=True)
class Norms:
    """Lengths of the embedding rows, those with NaN or infinity left out."""

    min: float
    median: float
    max: float


@dataclass(frozen=True, slots=True)
class Embeddings:
    """The static input embedding matrix, (vocab, d_model)."""

    rows: int
    columns: int
    norms: Norms
    special: pd.DataFrame  # token, token_id, norm
    undertrained: pd.DataFrame  # token, token_id, score; most suspicious first
    neighbours: pd.DataFrame  # token, token_id, similarity; empty when no token was asked for
    warnings: tuple[str, ...]
    query: str | None = local(default=None)  # the visible form of the token that was asked for
    query_id: int | None = local(default=None)
    metric: str = local(default="cosine")  # "cosine", "dot" or "euclidean" (then a distance)
    tensor: str = local(default="")  # name of the matrix in the file
    pad_token: str | None = local(default=None)
    pad_id: int | None = local(default=None)
    pad_norm: float | None = local(default=None)
    pad_percentile: float | None = local(default=None)  # share of rows with a smaller norm, 0..100


# kinds of token, in drawing order (later ones on top)
KINDS = ("word", "subword", "byte", "no token", "unused", "special", "padding")


@dataclass(frozen=True, slots=True)
class Projection:
    """A map of the vocabulary."""

    method: str  # "pca" or "umap"
    dimensions: int  # 2 or 3
    rows: int  # points on the map
    seconds: float
    kept_neighbours: float  # share of the true 15 nearest neighbours kept in the map, 0..1
    file: str | None
    warnings: tuple[str, ...]
    # token_id (int32), token (str), x, y[, z] (float32), norm (float32), kind (one of KINDS)
    points: pd.DataFrame = local()
    explained: tuple[float, ...] = local(default=())  # PCA: share of variance an axis, 0..1


@dataclass(frozen=True, slots=True)
class Lens:
    """What each layer's hidden state says in tokens, at every rung of the head's ladder."""

    tokens: tuple[str, ...]  # positions
    rungs: tuple[str, ...]  # first to last: "dot", "cosine", ..., "logits" where there is a head
    # layer (0 = embeddings), position, rung, rank (0 = likeliest), token, token_id, score,
    # probability (softmax over the whole vocabulary; NaN for cosine)
    cells: pd.DataFrame
    max_abs_error: float | None  # last rung, last layer, against the model's own logits
    warnings: tuple[str, ...]
    rung_notes: dict[str, str] = local()  # rung -> one sentence on what it computes
    layers: tuple[str, ...] = local()  # label of each layer: "embeddings", "1", ..., "12"
    tolerance: float | None = local(default=None)  # largest error that the dtype explains
    device: str = local(default="cpu")
    dtype: str = local(default="float32")
    milliseconds: float = local(default=0.0)


@dataclass(frozen=True, slots=True)
class Mask:
    """One mask and its likeliest tokens."""

    position: int
    predictions: pd.DataFrame  # token, token_id, probability, logit; likeliest first


@dataclass(frozen=True, slots=True)
class Joint:
    """One way to fill all masks together."""

    tokens: tuple[str, ...]  # one for each mask, in order
    log_probability: float


@dataclass(frozen=True, slots=True)
class Prediction:
    """What the masked-LM head answers."""

    device: str  # "cpu", "cuda:0", "mps"
    dtype: str
    milliseconds: float  # one forward pass, the model already loaded
    tokens: tuple[str, ...]
    masks: tuple[Mask, ...]
    joint: tuple[Joint, ...]
    warnings: tuple[str, ...]


UNDEFINED = frozenset({"cells.probability"})  # NaN here means "no such number": cosine


def to_json(result: Any) -> dict[str, Any]:
    """Turn a result into plain JSON values.

    Args:
        result: One of the result classes above.

    Returns:
        The fields that are not local. NaN and infinities become None, and a `warnings` entry
        counts them, so that the JSON is strict.
    """
    replaced: list[str] = []
    plain = _plain(result, "", replaced)
    if replaced:
        fields = ", ".join(sorted(set(replaced)))
        plain["warnings"] = [
            *plain.get("warnings", []),
            f"{len(replaced)} numbers are NaN or infinite and are given as null, in: {fields}.",
        ]
    return plain


def _plain(value: Any, path: str, replaced: list[str]) -> Any:
    if dataclasses.is_dataclass(value):
        fields = (f.name for f in dataclasses.fields(value) if not f.metadata.get("local"))
        return {name: _plain(getattr(value, name), name, replaced) for name in fields}
    if hasattr(value, "to_dict"):  # a frame
        return [_plain(row, path, replaced) for row in value.to_dict("records")]
    if isinstance(value, dict):
        return {str(key): _plain(item, f"{path}.{key}", replaced) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item, path, replaced) for item in value]
    return _plain_scalar(value, path, replaced)


def _plain_scalar(value: Any, path: str, replaced: list[str]) -> Any:
    if hasattr(value, "item"):  # a NumPy scalar out of a frame
        value = value.item()
    if isinstance(value, float) and not math.isfinite(value):
        if path not in UNDEFINED:
            replaced.append(path)
        return None
    return value
