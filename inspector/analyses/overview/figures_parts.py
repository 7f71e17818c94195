"""The parts of a model as the names of its tensors tell them: embeddings, layers, heads, and what repeats."""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain, groupby
from typing import Any, Literal

from inspector.analyses.overview.result import Overview

Kind = Literal["embedding", "attention", "feed-forward", "other", "head", "vectors", "tied"]
MOST_COLUMNS = 8  # of layers; more are left to one that stands for the rest
SHOWN_APART = 6  # layers, up to which identical ones are drawn each for itself
_NUMBER = re.compile(r"(?:^|(?<=\.))\d+(?=\.)")
_INNER = re.compile(r"(?<=\.)\d+(?=\.)")
_LAYERS = {"layer", "layers", "h", "block", "blocks"}
_EMBEDDING = re.compile(r"embed|wte|wpe|wtt|(^|\.)shared\.|(^|\.)position|token_type", re.IGNORECASE)
_ATTENTION = re.compile(r"att(?:n|ention)|(?:^|\.)(?:q|k|v|o|query|key|value)(?:_proj|_lin)?\.", re.IGNORECASE)
_FEED_FORWARD = re.compile(
    r"mlp|ffn?\b|ffn|feed_?forward|intermediate|output\.dense|(?:^|\.)(?:fc|lin|w|wi|wo)_?\d?\.|dense_?relu|experts?\b|moe"
    r"|dense_h_to_4h|dense_4h_to_h|gate_proj|up_proj|down_proj",
    re.IGNORECASE,
)
_PLAIN = {"weight", "bias", "dense", "linear", "proj", "weight_packed", "qweight", "gamma", "beta"}


@dataclass(frozen=True, slots=True)
class DrawnTensors:
    """Tensors that are drawn as one: a matrix, all experts' matrices of a layer, or the vectors of a column."""

    label: str  # "query"
    kind: Kind
    pattern: str  # finds the tensors: "encoder.layer.*.attention.self.query.weight"
    shape: tuple[int, ...]  # of each
    dtype: str  # of all of them; "float16 and float32" where vectors differ
    count: int  # of tensors that it stands for in one layer
    parameters: int  # of all of them, as they are stored
    files: tuple[str, ...] = ()  # that hold them, those of all layers that the column stands for; sorted
    places: tuple[int, ...] = ()  # in the list of stored tensors, of all of these layers


@dataclass(frozen=True, slots=True)
class Column:
    """Parts that are drawn in one column: a layer, or what comes before or after all layers."""

    label: str  # "layer 0", "layers 3–60", "embeddings", "heads"
    parts: tuple[DrawnTensors, ...]
    stack: str = ""  # of layers: "encoder"; "layers" where there is one stack alone; "" for what is no layer
    times: int = 1  # layers that it stands for
    alike: bool = True  # they are identical; else the first of them is drawn

    @property
    def parameters(self) -> int:
        """Of one of the layers that it stands for."""
        return sum(part.parameters for part in self.parts)

    @property
    def is_tied(self) -> bool:
        """Whether it holds second names alone."""
        return self.parts[0].kind == "tied"


@dataclass(frozen=True, slots=True)
class Tie:
    """A second name of a stored matrix."""

    source: str  # pattern of the part
    name: str


@dataclass(frozen=True, slots=True)
class Portrait:
    """A checkpoint's matrices, in the order in which a model runs them."""

    columns: tuple[Column, ...]
    ties: tuple[Tie, ...]
    absent: tuple[str, ...] = ()  # heads that the files have no weights for, as `Overview.heads` names them

    @property
    def parts(self) -> tuple[DrawnTensors, ...]:
        """All parts, column after column."""
        return tuple(part for column in self.columns for part in column.parts)


@dataclass(frozen=True, slots=True)
class Magnitude:
    """How large the numbers of a part are, as far as they were read."""

    rms: float  # of all measured tensors together; NaN: of none
    lowest: float  # of one of them
    highest: float
    measured: int  # tensors
    broken: int  # tensors with NaN or infinity


def measure(part: DrawnTensors, rms: Sequence[float]) -> Magnitude:
    """Say how large a part's numbers are.

    Args:
        part: Its tensors have one shape, or none of them is measured.
        rms: Of each stored tensor; infinity where it holds NaN or infinity, NaN where it was not measured.
    """
    found = [rms[place] for place in part.places] if rms else []
    finite = [each for each in found if math.isfinite(each)]
    if not finite:
        return Magnitude(math.nan, math.nan, math.nan, 0, sum(map(math.isinf, found)))
    root = math.sqrt(sum(each * each for each in finite) / len(finite))
    return Magnitude(root, min(finite), max(finite), len(finite), sum(map(math.isinf, found)))


_Tensor = tuple[str, tuple[int, ...], str, str, int]  # name or pattern, shape, dtype, file, place in the list


def portray(overview: Overview) -> Portrait:
    """Sort the stored tensors into columns of parts.

    Layers are told by the outermost number in names that repeats; neighbors whose tensors have the same names, shapes
    and dtypes are one column where there are many.
    """
    seconds = {name: names[0] for names in overview.ties for name in names[1:]}
    stored = overview.stored
    tensors = [
        (name, stored.kinds[kind][1], stored.kinds[kind][0], stored.kinds[kind][3], place)
        for place, (name, kind) in enumerate(zip(stored.names, stored.numbers, strict=True))
    ]
    shapes = {name: (shape, dtype) for name, shape, dtype, *_ in tensors}
    stacks, rest = _stacks(each for each in tensors if each[0] not in seconds)
    first = [each for each in rest if _EMBEDDING.search(each[0])]
    last = [each for each in rest if not _EMBEDDING.search(each[0])]
    tied = [
        _part(name, *shapes[source], "tied")
        for name, source in seconds.items()
        if source in shapes and len(shapes[source][0]) > 1
    ]
    columns = [
        Column("embeddings", _parts([first], "embedding")),
        *(column for prefix, layers in stacks.items() for column in _fold(prefix, layers, several=len(stacks) > 1)),
        Column("heads" if any(_is_matrix(shape) for _, shape, *_ in last) else "final norm", _parts([last], "head")),
        Column("tied", tuple(tied)),
    ]
    ties = tuple(Tie(seconds[part.pattern], part.pattern) for part in tied)
    absent = tuple(head for head, there in overview.heads.items() if there == "absent")
    return Portrait(tuple(column for column in columns if column.parts), ties, absent)


def _stacks(tensors: Iterable[_Tensor]) -> tuple[dict[str, dict[int, list[_Tensor]]], list[_Tensor]]:
    """The tensors of layers by their prefix and number, names within the layer; and all others."""
    every = list(tensors)
    numbers: defaultdict[str, set[str]] = defaultdict(set)
    for name, *_ in every:
        for found in _NUMBER.finditer(name):
            if "." in name[found.end() + 1 :]:  # a layer has modules
                numbers[name[: found.start()]].add(found.group())
    layered = {
        prefix for prefix, found in numbers.items() if len(found) > 1 or prefix.rstrip(".").split(".")[-1] in _LAYERS
    }
    stacks: defaultdict[str, defaultdict[int, list[_Tensor]]] = defaultdict(lambda: defaultdict(list))
    rest: list[_Tensor] = []
    for name, shape, dtype, file, place in every:
        found = next((each for each in _NUMBER.finditer(name) if name[: each.start()] in layered), None)
        if found is None:
            rest.append((name, shape, dtype, file, place))
        else:
            inner = _INNER.sub("*", name[found.end() :])[1:]
            stacks[name[: found.start()]][int(found.group())].append((inner, shape, dtype, file, place))
    order = sorted(stacks, key=lambda prefix: "decoder" in prefix)  # files are sorted by name
    return {prefix: dict(sorted(stacks[prefix].items())) for prefix in order}, rest


def _fold(prefix: str, layers: dict[int, list[_Tensor]], *, several: bool) -> Iterator[Column]:
    """A column for each layer, or for each run of identical ones."""
    stack = prefix.rstrip(".").split(".")[-2] if several and prefix.count(".") > 1 else ""
    alike = [
        [number for number, _ in run]
        for _, run in groupby(layers.items(), key=lambda layer: tuple(sorted(each[:3] for each in layer[1])))
    ]
    runs = [[number] for number in layers] if len(layers) <= SHOWN_APART else alike
    if len(runs) > MOST_COLUMNS:
        runs = [*runs[: MOST_COLUMNS - 1], list(chain.from_iterable(runs[MOST_COLUMNS - 1 :]))]
    for run in runs:
        span = f"layer {run[0]}" if len(run) == 1 else f"layers {run[0]}–{run[-1]}"
        drawn = [layers[number] for number in run]
        parts = _parts(drawn, None, prefix=f"{prefix}*." if len(run) > 1 else f"{prefix}{run[0]}.")
        yield Column(
            f"{stack} {span}".strip(), parts, stack or "layers", times=len(run), alike=len(run) == 1 or run in alike
        )


def _parts(layers: Sequence[Sequence[_Tensor]], kind: Kind | None, *, prefix: str = "") -> tuple[DrawnTensors, ...]:
    """A part for each matrix of the first layer, equal names of one layer together, and one for all vectors."""
    counts = Counter(tensor[:3] for tensor in layers[0])
    held: defaultdict[str, list[tuple[str, int]]] = defaultdict(list)  # name -> file and place, of all layers
    for name, _, _, file, place in chain.from_iterable(layers):
        held[name].append((file, place))
    parts, vectors = [], []
    for (name, shape, dtype), count in counts.items():
        if _is_matrix(shape):
            made = _part(prefix + name, shape, dtype, kind or _kind(name))
            many = {"count": count, "parameters": count * math.prod(shape)}
            parts.append(replace(made, **many, **_held(held[name])))
        else:
            vectors.append((name, shape, dtype, count))
    order: dict[Kind, int] = {"attention": 0, "other": 1, "feed-forward": 2}
    parts.sort(key=lambda part: (order.get(part.kind, 3), "qkvo".find(part.label[0]) if kind is None else 0))
    if parameters := sum(count * math.prod(shape) for _, shape, _, count in vectors):
        dtypes = " and ".join(sorted({dtype for _, _, dtype, _ in vectors}))
        many = sum(count for *_, count in vectors)
        every = _held(chain.from_iterable(held[name] for name, *_ in vectors))
        parts.append(DrawnTensors("norms, biases", "vectors", prefix, (), dtypes, many, parameters, **every))
    return tuple(parts)


def _held(held: Iterable[tuple[str, int]]) -> dict[str, Any]:
    files, places = zip(*held, strict=True)
    return {"files": tuple(sorted(set(files))), "places": tuple(sorted(places))}


def _is_matrix(shape: tuple[int, ...]) -> bool:
    return sum(size > 1 for size in shape) > 1


def _part(name: str, shape: tuple[int, ...], dtype: str, kind: Kind) -> DrawnTensors:
    words = [word for word in name.split(".") if word not in _PLAIN and not word.isdigit() and word != "*"]
    return DrawnTensors(words[-1] if words else name, kind, name, shape, dtype, 1, math.prod(shape))


def _kind(name: str) -> Kind:
    """What a matrix of a layer is for, by its name within the layer."""
    if _ATTENTION.search(name):
        return "attention"
    return "feed-forward" if _FEED_FORWARD.search(name) else "other"
