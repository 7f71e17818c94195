"""Say what a checkpoint holds from its headers alone: no model is built, no torch imported."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Mapping
from typing import Any

from inspector.analyses.overview.compute_gguf import gguf_facts
from inspector.analyses.overview.compute_tensors import find_ties, list_tensors
from inspector.analyses.overview.request import OverviewRequest
from inspector.analyses.overview.result import Overview, OverviewFile
from inspector.analyses.overview.result_tensors import StoredTensors
from inspector.analyses.overview.words import BY_NAMES, HEAD_IS_ABSENT, MANY_ROWS, NO_NUMBERS, UNKNOWN_CODES
from inspector.errors import InspectorError, MissingLibraryError, NotInCheckpointError
from inspector.models.checkpoint import StagedCheckpoint
from inspector.models.families import FAMILIES, declares_tie, in_file, writes_text
from inspector.progress import Progress
from inspector.request import answers
from inspector.results.checkpoint import TokenizerInfo
from inspector.store.configs import BLOCKS
from inspector.store.hashing import HASHES, HashCache
from inspector.store.manifests.columns import Kind, Tensors, count_by_dtype, count_nbytes, count_numbers
from inspector.store.manifests.entries import results_folder
from inspector.store.manifests.manifest import Manifest
from inspector.store.names import shown_name
from inspector.store.readers.ggml import as_stored
from inspector.store.readers.levels import read_setting, text_levels
from inspector.store.staging import NO_TOKENIZER, UNREAD_TOKENIZER
from inspector.text import some

# What configs call the same size.
LAYERS = ("num_hidden_layers", "n_layer", "num_layers", "n_layers", "encoder_layers")
WIDTH = ("hidden_size", "n_embd", "d_model", "dim")
TEXT_TO_TEXT = ("ForConditionalGeneration", "MTModel")  # ends of the names of encoder-decoders that write text
HEAD_OF_CLASS = {
    "ForMaskedLM": "masked_lm",
    "ForPreTraining": "masked_lm",
    "LMHeadModel": "causal_lm",
    "ForCausalLM": "causal_lm",
}


@answers(OverviewRequest)
def overview(checkpoint: StagedCheckpoint, request: OverviewRequest, *, progress: Progress) -> Overview:
    """Describe a checkpoint: files, sizes, heads, tokenizer, and what is wrong with it.

    Raises:
        InspectorError: Only for what staging let through and no page could use.
    """
    digests = _digests(checkpoint, progress) if request.hash_files else {}
    progress(None, "Reading the headers")
    manifest = checkpoint.manifest
    config = manifest.config or {}
    stored = as_stored(manifest.tensors, manifest.quantization.get(BLOCKS, {}))
    gguf = gguf_facts(checkpoint)
    heads = checkpoint.heads
    tokenizer, tokenizer_warnings = _tokenizer(checkpoint)
    vocab_rows, columns = _embedding_shape(checkpoint)
    unique = count_numbers(checkpoint.tensors.stored)
    listed = unique + _tied_parameters(manifest, checkpoint.tensors, heads)
    if counted := _counted_by_class(checkpoint):
        listed, unique = counted
    return Overview(
        name=checkpoint.name,
        fingerprint=manifest.fingerprint,
        model_type=config.get("model_type"),
        architecture=next(iter(config.get("architectures") or ()), None),
        files=tuple(
            OverviewFile(
                shown_name(file.name), file.format, file.nbytes, file.sha256 or digests.get(file.name), file.linked_from
            )
            for file in manifest.files
        ),
        dtypes=_dtypes(stored.stored),
        listed_parameters=listed,
        unique_parameters=unique,
        nbytes_on_disk=sum(file.nbytes for file in manifest.files),
        nbytes_in_memory=count_nbytes(manifest.tensors.stored),
        vocab_rows=vocab_rows,
        d_model=_first(config, WIDTH) or columns,
        layers=_layers(checkpoint) or (gguf.layers if gguf else None),
        heads=heads,
        text_to_text=_text_to_text(checkpoint),
        tokenizer=tokenizer,
        warnings=(
            *manifest.warnings,
            *tokenizer_warnings,
            *(_class_warnings(checkpoint) or _head_warnings(checkpoint, heads)),
            *_row_warnings(checkpoint, tokenizer, vocab_rows),
            *_code_warnings(checkpoint.unread.codes),
            *_empty_warnings(manifest.tensors),
        ),
        stored=StoredTensors.of(stored, manifest.translated.names),
        config=config,
        ties=find_ties(checkpoint),
        quantized=dict(Counter(each.scheme for each in checkpoint.quantized.values())),
        identity="content" if manifest.by_content else "samples",
        listed_tensors=list_tensors(checkpoint, request.find) if request.tensors or request.find else None,
        adapter=bool(manifest.adapter),
        gguf=gguf,
        experts=_names_experts(config),
        pipeline=checkpoint.pipeline.modules if checkpoint.pipeline else (),
    )


def _names_experts(config: Mapping[str, Any]) -> bool:
    """Whether a configuration has a number of experts, whatever it calls it."""
    settings = (setting for _, level in text_levels(config) for setting in level.items())
    return any("expert" in name and type(value) is int and value > 1 for name, value in settings)


def _digests(checkpoint: StagedCheckpoint, progress: Progress) -> dict[str, str]:
    """The SHA-256 of the files that staging did not read."""
    manifest = checkpoint.manifest
    unknown = {file.name: manifest.paths[file.name] for file in manifest.files if not file.sha256}
    return HashCache(results_folder(manifest.fingerprint, settings=checkpoint.settings) / HASHES).digests(
        unknown, progress=progress
    )


def _code_warnings(unread: Collection[str]) -> list[str]:
    if not unread:
        return []
    return [UNKNOWN_CODES.format(names=some(list(unread), 1))]


def _empty_warnings(tensors: Tensors) -> list[str]:
    """Say it where weights hold no numbers; what stands beside all modules is a mark of some tool."""
    empty = {place for place, kind in enumerate(tensors.kinds) if 0 in kind.shape}
    names = [name for name, place in zip(tensors.names, tensors.places, strict=True) if place in empty and "." in name]
    return [NO_NUMBERS.format(names=some(names, 1), count=len(names), of=len(tensors))] if names else []


def _dtypes(kinds: Mapping[Kind, int]) -> dict[str, int]:
    return dict(sorted(count_by_dtype(kinds).items(), key=lambda item: (-item[1], item[0])))


def _counted_by_class(checkpoint: StagedCheckpoint) -> tuple[int, int] | None:
    """Parameters listed and unique, where names alone do not tell which class holds which ties.

    Where the class ties what the file holds twice, a loader ties what is equal: those are compared.
    """
    family = checkpoint.family
    codes = checkpoint.unread.codes  # how many numbers they stand for, the class alone tells
    if checkpoint.manifest.config is None or (family and not family.seq2seq_lm and not codes):
        return None
    if checkpoint.structure is None:
        return None
    from inspector.models.naming import count_parameters, find_places, ties_stored
    from inspector.models.weightless.outline import build_outline

    model, places = checkpoint.structure
    if codes:
        places = find_places(model, [*checkpoint.tensors.names, *codes.values()])
    elif ties_stored(model, places):
        try:
            model, _ = build_outline(checkpoint, type(model))
        except InspectorError:
            return None
    return count_parameters(model, places)


def _class_warnings(checkpoint: StagedCheckpoint) -> list[str]:
    """What names alone do not tell, where there is no class to ask."""
    if checkpoint.told_by_names:
        return []
    try:
        _ = checkpoint.own_class
    except MissingLibraryError as error:
        return [BY_NAMES.format(error=error)]
    except InspectorError:  # there is no config.json, or none that transformers knows
        pass
    return []


def _tied_parameters(manifest: Manifest, tensors: Tensors, heads: Mapping[str, str]) -> int:
    """Parameters that a built model lists once more, under a name that repeats another's bytes."""
    repeated = count_numbers(tensors.weights) - count_numbers(tensors.stored)
    family = FAMILIES.get((manifest.config or {}).get("model_type", ""))
    has_lm = "present" in (heads["masked_lm"], heads["causal_lm"])
    if family is None or not has_lm or not declares_tie(manifest.config or {}, family):
        return repeated
    for tied, source in family.ties.items():
        name = in_file(source, tensors.numbers, family.base)
        if in_file(tied, tensors.numbers, family.base) is None and name:
            repeated += math.prod(tensors.find(name).shape)
    return repeated


def _tokenizer(checkpoint: StagedCheckpoint) -> tuple[TokenizerInfo | None, list[str]]:
    try:
        tokens = checkpoint.require_tokens()
        return tokens.info, [*tokens.notes]
    except InspectorError as error:
        said = {NO_TOKENIZER, UNREAD_TOKENIZER} & {*checkpoint.manifest.warnings}
        return None, [] if said else [str(error)]


def _embedding_shape(checkpoint: StagedCheckpoint) -> tuple[int | None, int | None]:
    try:
        rows, columns = checkpoint.embedding_shape
    except NotInCheckpointError:
        return None, None
    return rows, columns


def _layers(checkpoint: StagedCheckpoint) -> int | None:
    """Layers of the text model; of one whose halves have a config each, the decoder's, which the lens reads."""
    config = checkpoint.manifest.config
    said = _first(config or {}, LAYERS)
    if config is None or (checkpoint.family and said is not None):
        return said
    try:
        whole = checkpoint.config
        halves = not whole.is_encoder_decoder or whole.sub_configs
        part = whole.get_text_config(decoder=True) if halves else whole
        counted = read_setting(part, "num_hidden_layers").value
    except (InspectorError, ValueError):  # of a type that is not known, or with several texts
        return said
    return counted if isinstance(counted, int) else said


def _first(config: Mapping[str, Any], keys: tuple[str, ...]) -> int | None:
    found = read_setting(config, *keys).value
    return found if isinstance(found, int) else None


def _text_to_text(checkpoint: StagedCheckpoint) -> str:
    """Whether an encoder-decoder's language model is in the files; "" for other classes."""
    config = checkpoint.manifest.config or {}
    architecture = str(next(iter(config.get("architectures") or ()), ""))
    if not (architecture.endswith(TEXT_TO_TEXT) and read_setting(config, "is_encoder_decoder").value is True):
        return ""
    if checkpoint.family:
        names = [*checkpoint.tensors.names, *checkpoint.manifest.aliases, *checkpoint.unread.codes.values()]
        return "present" if writes_text(config, names, checkpoint.family) else "absent"
    return "absent" if _lacks_its_head(checkpoint) else "present"


def _head_warnings(checkpoint: StagedCheckpoint, heads: Mapping[str, str]) -> list[str]:
    architecture = next(iter((checkpoint.manifest.config or {}).get("architectures") or ()), "")
    absent = any(
        architecture.endswith(suffix) and "present" not in (heads[head], heads["masked_lm"])
        for suffix, head in HEAD_OF_CLASS.items()
    )
    said = absent and not checkpoint.pipeline and _lacks_its_head(checkpoint)
    return [HEAD_IS_ABSENT.format(architecture=architecture)] if said else []


def _lacks_its_head(checkpoint: StagedCheckpoint) -> bool:
    """Whether the class that config.json names has a head that is not in the file: names alone do not tell which."""
    if checkpoint.structure is None:
        return True
    from inspector.models.heads import head_names, with_ties

    model, places = checkpoint.structure
    return not with_ties(model, places.covered).issuperset(head_names(model))


def _row_warnings(checkpoint: StagedCheckpoint, tokenizer: TokenizerInfo | None, rows: int | None) -> list[str]:
    if tokenizer is None or rows is None or tokenizer.size == rows:
        return []
    if tokenizer.size > rows:
        return [checkpoint.require_tokens().past_rows(rows)]
    return [MANY_ROWS.format(more=rows - tokenizer.size, rows=rows, ids=tokenizer.size)]
