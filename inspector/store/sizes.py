"""Compare the sizes that a configuration claims with the shapes that the weights have."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from itertools import chain
from typing import Any

from inspector.errors import CheckpointError
from inspector.store.configs import MAX_LABELS
from inspector.store.manifests.columns import NARROW, Tensors
from inspector.store.prediction import BLOCK, declared_layers, layers_past
from inspector.store.readers.levels import read_setting
from inspector.text import in_level, plural, shape_text

# A model of the configured size has a tensor with exactly this dimension.
OCCURS = ("hidden_size", "n_embd", "d_model", "dim", "vocab_size")
LAYERS = (
    "num_hidden_layers",
    "n_layer",
    "n_layers",
    "num_layers",
    "encoder_layers",
    "decoder_layers",
    "num_decoder_layers",
)
SHARED_LAYERS = frozenset({"num_hidden_groups", "num_layers_per_stack"})  # ALBERT and HRM run layers many times
NESTED = frozenset({"encoder", "decoder", "generator"})
POSITIONS = ("max_position_embeddings", "n_positions", "max_source_positions", "max_target_positions")
POSITION_TABLES = (".position_embeddings.weight", ".embed_positions.weight", ".wpe.weight")
UNMEASURED_POSITIONS = 100_000_000  # rotary positions show in no shape
COUNT = re.compile(r"(num|n)_.*")
SIZE = re.compile(r".*_(size|dim)|d_.*")
UNMEASURED_COUNT = 4_096  # of codes, buckets and positions that small models have more of than of anything stored
VOCABULARY = re.compile(r"\w+_vocab_size")
UNMEASURED_VOCABULARY = 1_000_000  # one that the logits are cut to shows in no shape
UNMEASURED_SIZE = 65_536  # sizes up to this need not show in any shape (images, patches, windows)
UNMEASURED_EMPTY = 1 << 20  # the same, where the files have placeholders of no numbers
ROWS = re.compile(r"(?:^|\.)(?:word_embeddings?|embed_tokens|wte|tok_embeddings|embed_in|shared)\.weight$")
EMBEDDING = re.compile(r"emb|wte|shared|lm_head")
# What shows that config.json and weights do not fit does not show which of the two is wrong.
COMPARE = "one of the two is not whole, or belongs to another model: compare both with their source"
FEW_LABELS = 2  # which a config has without saying so
CLASSIFIER = re.compile(r"(?:^|\.)(?:classifier|score|classification_head)(?:\.|$)")


def refuse_wrong_sizes(config: dict[str, Any], tensors: Tensors) -> None:
    """Refuse a configuration that asks for a larger model than the weights can fill.

    Raises:
        CheckpointError: Naming the size that is asked for and the one that is there.
    """
    _refuse_absent_dimensions(config, tensors)
    parts = list(_configs(config))
    shown = _layers_shown(stacks_of(tensors)) or len(tensors)
    for settings in parts:
        _refuse_layers(settings, shown)
        _refuse_labels(settings, tensors)
        # Of several models in one, nothing says whose table of positions a tensor is.
        _refuse_positions(settings, tensors if len(parts) == 1 else Tensors.of(()))
        _refuse_bounds(settings, tensors)


def size_warnings(config: dict[str, Any], tensors: Tensors) -> tuple[str, ...]:
    """Say it where a configuration has another vocabulary, or fewer layers than the weights' only stack."""
    found = forgotten_resize(config, tensors)
    stacks = stacks_of(tensors)
    shown = _layers_shown(stacks)
    resized = (found,) if found else ()
    if len(stacks) != 1 or SHARED_LAYERS & config.keys():
        return resized
    _, ahead = declared_layers(config) or ("", 0)
    return resized + tuple(
        f"config.json sets {key} to {layers:,}, but the weights have {shown:,} layers: the app lists the others but "
        "never runs them."
        for key in LAYERS
        if type(layers := config.get(key)) is int
        if layers < shown - (len(layers_past(tensors.names, layers, ahead)) if ahead else 0)
    )


def forgotten_resize(config: dict[str, Any], tensors: Tensors) -> str | None:
    """Say that the embedding matrix was resized and config.json was not: then no model fits both.

    Returns:
        One sentence; None where the vocabulary's size is a dimension of some tensor, or no embedding
        matrix has a name that says so.
    """
    size, level = (said := read_setting(config, "vocab_size")).value, said.level
    if type(size) is not int or size in _dimensions(tensors):
        return None
    rows = {tensor.shape[0] for tensor in tensors if len(tensor.shape) == 2 and ROWS.search(tensor.name)}
    if len(rows) != 1 or not min(rows) / 2 <= size <= 2 * min(rows):
        return None
    return (
        f"config.json sets vocab_size to {size:,}{in_level(level)}, but the embedding matrix has {min(rows):,} rows: "
        f"no model can be built from both. If the embeddings were resized, set vocab_size to {min(rows):,}."
    )


def _configs(config: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield config
    for key, value in config.items():
        if isinstance(value, dict) and (key.endswith("_config") or key in NESTED or key.isdecimal()):
            yield from _configs(value)


def _refuse_absent_dimensions(config: dict[str, Any], tensors: Tensors) -> None:
    dimensions = _dimensions(tensors)
    packed = any(kind.dtype in NARROW and len(kind.shape) > 1 for kind in tensors.kinds)  # rows may show in no shape
    for key in () if 0 in dimensions else OCCURS:  # placeholders without numbers show no sizes
        size = config.get(key)
        if type(size) is int and size not in dimensions:
            # A text's own part counts for its rows, whatever is left of an earlier layout above it.
            spare = key == "vocab_size" and (packed or not _embeds(tensors, config) or read_setting(config, key).level)
            if spare or (key == "vocab_size" and forgotten_resize(config, tensors)):
                continue
            largest = max((t for t in tensors if len(t.shape) == 2), key=lambda t: t.nbytes, default=None)
            there = f"; its largest matrix is {shape_text(largest.shape)}" if largest else ""
            raise CheckpointError(
                f"config.json sets {key} to {size:,}, but no tensor in the weights has that "
                f"dimension{there}: {COMPARE}."
            )


def _refuse_layers(config: dict[str, Any], shown: int) -> None:
    for key in LAYERS:
        layers = config.get(key)
        if type(layers) is not int:
            continue
        most = 1_000 if SHARED_LAYERS & config.keys() else shown
        if layers < 0:
            raise CheckpointError(f"config.json sets {key} to {layers:,}, which is not a number of layers: correct it.")
        if layers > most:
            raise CheckpointError(
                f"config.json sets {key} to {layers:,}, but the weights have {plural(most, 'layer')}: {COMPARE}."
            )


def _embeds(tensors: Tensors, config: Mapping[str, Any]) -> bool:
    """Whether a matrix may be one of tokens: wav2vec 2.0 names the size of a head that its file does not have.

    None is if the largest has the rows of another vocabulary: SeamlessM4T's vocoder looks up units of speech.
    """
    rows = [tensor.shape[0] for tensor in tensors if len(tensor.shape) == 2 and EMBEDDING.search(tensor.name)]
    return bool(rows) and max(rows) not in [value for key, value in config.items() if VOCABULARY.fullmatch(key)]


def _dimensions(tensors: Tensors) -> set[int]:
    """The sizes of all axes."""
    return set(chain.from_iterable(kind.shape for kind in tensors.kinds))


def _layers_shown(stacks: Mapping[str, set[str]]) -> int:
    """The most layers that one stack shows; 0 where names show none."""
    return max(map(len, stacks.values()), default=0)


def stacks_of(tensors: Tensors) -> dict[str, set[str]]:
    """The numbers of the layers of each stack, by what stands before them in the names."""
    stacks: defaultdict[str, set[str]] = defaultdict(set)
    layer = None  # how the name before begins, up to its first number of a layer: a name that does too shows no other
    for name in tensors.names:
        if layer and name.startswith(layer):
            continue
        if match := BLOCK.search(name):
            stacks[name[: match.start(1)]].add(match[1])
            layer = name[: match.end() + 1]
    return stacks


def _refuse_labels(config: dict[str, Any], tensors: Tensors) -> None:
    claimed = max(
        (n for n in (config.get("num_labels"), len(config.get("id2label") or ())) if type(n) is int), default=0
    )
    if claimed <= FEW_LABELS:
        return
    rows = max((t.shape[0] for t in tensors if t.nbytes and t.shape and CLASSIFIER.search(t.name)), default=None)
    if claimed > (MAX_LABELS if rows is None else max(rows, FEW_LABELS)):
        there = "the weights have no classifier" if rows is None else f"the classifier has {rows:,} rows"
        raise CheckpointError(f"config.json sets num_labels to {claimed:,}, but {there}: {COMPARE}.")


def _refuse_positions(config: dict[str, Any], tensors: Tensors) -> None:
    if not config.keys() & set(POSITIONS):
        return
    tables = [tensors.kinds[tensors.places[number]] for number in tensors.ending(POSITION_TABLES)]
    rows = [table.shape[0] for table in tables if table.shape and table.nbytes]
    most = max(rows, default=UNMEASURED_POSITIONS)
    for key in POSITIONS:
        value = config.get(key)
        if type(value) is int and value > most:
            there = f"the weights have {most:,} of them" if rows else f"at most {most:,} are opened"
            raise CheckpointError(f"config.json sets {key} to {value:,}, but {there}: {COMPARE}.")


def _refuse_bounds(config: dict[str, Any], tensors: Tensors) -> None:
    dimensions = _dimensions(tensors)
    largest = max(dimensions, default=0)
    unmeasured = UNMEASURED_EMPTY if 0 in dimensions else UNMEASURED_SIZE
    for key, value in config.items():
        if type(value) is not int or key in (*LAYERS, *POSITIONS, "num_labels"):
            continue
        limit = max(largest, unmeasured) if SIZE.fullmatch(key) or key in OCCURS else None
        if VOCABULARY.fullmatch(key) or (key == "vocab_size" and value > unmeasured and not _embeds(tensors, config)):
            limit = max(largest, UNMEASURED_VOCABULARY)
        if COUNT.fullmatch(key):
            limit = max(largest, len(tensors), UNMEASURED_COUNT)
        if limit is not None and value > limit:
            raise CheckpointError(
                f"config.json sets {key} to {value:,}, but the largest dimension of any tensor "
                f"is {largest:,}: {COMPARE}."
            )
