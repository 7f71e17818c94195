"""Turn a checkpoint's files into an entry of the store: check them, stage them, identify them."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from inspector.progress import Progress, throttled
from inspector.settings import Settings
from inspector.store.adapters import CONFIG as ADAPTER_CONFIG
from inspector.store.adapters import describe_adapter, read_adapter_config
from inspector.store.configs import BLOCKS, rebuild_config
from inspector.store.files import put_folder, workspace
from inspector.store.foreign.gguf_tokenizer import stage_template, why_not_read
from inspector.store.foreign.translation import translate, translate_gguf
from inspector.store.generation import stage_generation
from inspector.store.hashing import Identity, fingerprint_of, identify
from inspector.store.manifests.columns import Tensors
from inspector.store.manifests.documents import collector_paused
from inspector.store.manifests.entries import OPENED, ORIGINALS, UPLOADS, find_manifest, load_manifest, save_manifest
from inspector.store.manifests.findings import TOTAL, FileProblem
from inspector.store.manifests.manifest import FileInfo, Manifest, Translated
from inspector.store.manifests.reader import FOLDER, WEIGHTS
from inspector.store.modules import stage_modules
from inspector.store.names import (
    INDEXES,
    MODULES,
    PARAMS,
    clean_name,
    file_format,
    is_config,
    is_of_module,
    weight_format,
)
from inspector.store.origins.sources import Source
from inspector.store.readers.ggml import READ, as_stored
from inspector.store.readers.index import Weights, choose_weights
from inspector.store.readers.jsons import read_json
from inspector.store.readers.ranges import stamp_of
from inspector.store.readers.sets import put_together, read_header, refuse_sizes
from inspector.store.sizes import size_warnings
from inspector.store.stored import write_entry
from inspector.store.tokenizer_files import stage_tokenizer
from inspector.text import plural, some

NO_CONFIG = "There is no config.json: the tensors can be listed, but no model can be built from them."
NO_TOKENIZER = "There is no tokenizer in this checkpoint: tokens are shown by their ids."
UNREAD_TOKENIZER = "The tokenizer in a GGUF file is not read: tokens are shown by their ids."
MAX_PARAMS_NBYTES = 1_000_000
NOT_READ_SINCE = "Of that tokenizer, {why}."
COMMON = re.compile(r"(pytorch_)?model[-.]")  # how the names of most weight files begin
BESIDE = "{names}: not read, since a GGUF file brings its own configuration and tokenizer."
UNREAD_BLOCKS = "{count} stored as {block}, which this tool does not dequantize: only the headers are shown."
MODEL_CONFIGS = ("config.json", ADAPTER_CONFIG)
CODE = "The checkpoint contains Python files: they are not read and never run."


@dataclass(frozen=True, slots=True)
class _Contents:
    """What a source holds, before anything is written."""

    weights: Weights
    tensors: Tensors
    aliases: dict[str, str]
    config: dict[str, Any] | None
    quantization: dict[str, Any]
    warnings: tuple[str, ...]
    adapter: str
    configs: dict[str, dict[str, Any]]  # file -> what is kept of it: of a model, or of an adapter alone
    findings: tuple[FileProblem, ...]
    translated: Translated = field(default_factory=Translated)
    metadata: Mapping[str, Any] = field(default_factory=dict)  # of a GGUF file


@dataclass(frozen=True, slots=True)
class Rebuilt:
    """A source that was read and checked, and its small files as they are written anew."""

    source: Source
    name: str
    used: Mapping[str, Path]  # by name, those of the source's files that count, where they lie
    built: Path  # what will be its entry: its small files, and nothing else yet
    warnings: tuple[str, ...]
    contents: _Contents
    stamps: Mapping[str, tuple[int, int, int]]  # of files that stay where they are

    @property
    def small(self) -> dict[str, Path]:
        """The files that are written anew, where they lie."""
        return {name: path for name, path in self.used.items() if self._is_small(name)}

    def manifest(self, known: Mapping[str, Identity], settings: Settings) -> Manifest:
        """Describe it, before its files are moved.

        Args:
            known: What each file is known by.
            settings: Where the store is.
        """
        fingerprint = fingerprint_of({name: each.digest for name, each in known.items()})
        entry = settings.home / (UPLOADS if self.source.owned else OPENED) / fingerprint
        contents = self.contents
        return Manifest(
            fingerprint=fingerprint,
            name=self.name,
            source=self.source.kind,
            folder=entry / FOLDER,
            files=tuple(self._file_info(name, path, known[name], entry) for name, path in self.used.items()),
            tensors=contents.tensors,
            aliases=contents.aliases,
            config=contents.config,
            warnings=self.warnings,
            quantization=contents.quantization,
            adapter=contents.adapter,
            findings=contents.findings,
            translated=contents.translated,
        )

    def move(self) -> None:
        """Move files that are ours into the entry: weights, and of those written anew the configurations."""
        for name, path in self.used.items():
            if not self._is_small(name):
                target = self.built / WEIGHTS / name
            elif is_config(name):  # another server stages what was uploaded
                target = self.built / ORIGINALS / name
            else:
                continue
            target.parent.mkdir(exist_ok=True)
            path.rename(target)

    def put(self, manifest: Manifest, progress: Progress) -> None:
        """Put the entry where its manifest says that it is."""
        entry = manifest.folder.parent
        save_manifest(manifest, entry, built=self.built)
        if self.source.owned:
            write_entry(self.built, name=self.name, nbytes=sum(file.nbytes for file in manifest.files))
        progress(None, "Storing")
        put_folder(self.built, entry, keep=lambda there: is_kept(there, manifest, owned=self.source.owned))

    def _is_small(self, name: str) -> bool:
        return (self.built / FOLDER / name).exists()

    def _file_info(self, name: str, path: Path, known: Identity, entry: Path) -> FileInfo:
        stamp = None
        if self._is_small(name):
            place = entry / FOLDER / name
        elif self.source.owned:
            place = entry / WEIGHTS / name
        else:
            place, stamp = path.resolve(), self.stamps.get(name)
        form, link = file_format(name) or "", name in self.source.links
        return FileInfo(name, form, path.stat().st_size, known.sha256, place, known.quick, stamp, link)


@contextmanager
def rebuilt(source: Source, *, settings: Settings, progress: Progress) -> Iterator[Rebuilt]:
    """Check a source's files, and write its small ones anew, into a folder that goes unless it is put somewhere.

    Raises:
        CheckpointError: If the files are no checkpoint, or one that cannot be trusted.
    """
    # Before anything is read: what changes from now on has changed since it was opened.
    stamps = {} if source.owned else {name: stamp_of(p) for name, p in source.files.items()}
    contents = _read(source, progress)
    used = {
        name: path
        for name, path in sorted(source.files.items())
        if weight_format(name) is None
        or is_of_module(name)
        or name in (*contents.weights.names, *contents.weights.numbered)
        if not contents.weights.alone or weight_format(name)
        if name not in INDEXES or name == contents.weights.index
        if name != PARAMS or "config.json" not in source.files
        if name not in MODEL_CONFIGS or name in contents.configs
    }
    with workspace(settings.home) as temporary:
        built = temporary / "entry"
        (built / FOLDER).mkdir(parents=True)
        has_tokenizer = stage_tokenizer(used, built / FOLDER)
        if contents.weights.alone:
            has_tokenizer = not why_not_read(contents.metadata)
            stage_template(contents.metadata, built / FOLDER)
        if MODULES in used:
            stage_modules(used, built / FOLDER)
        stage_generation(used, built / FOLDER)
        for config, kept in contents.configs.items():
            (built / FOLDER / config).write_text(json.dumps(kept, indent=2), encoding="utf-8")
        name = clean_name(_name(source, contents.config or {}))
        warnings = _warnings(contents, source, has_tokenizer=has_tokenizer)
        yield Rebuilt(source, name, used, built, warnings, contents, stamps)


def stage(source: Source, *, settings: Settings, progress: Progress) -> Manifest:
    """Check a source's files and put what is needed of them into the store.

    Raises:
        CheckpointError: If the files are no checkpoint, or one that cannot be trusted.
    """
    with rebuilt(source, settings=settings, progress=progress) as found:
        known = identify(found.used, owned=source.owned, progress=progress, sampled=source.outline)
        manifest = found.manifest(known, settings)
        if source.owned:
            found.move()
        found.put(manifest, progress)
    # An upload that was there already keeps its entry, and the name that it was given.
    return load_manifest(manifest.fingerprint, settings=settings) if source.owned else manifest


def _name(source: Source, config: dict[str, Any]) -> str:
    """The source's name; of loose files that were sent and are called as all are, the class in config.json."""
    if not (source.owned or source.outline) or not COMMON.match(source.name):
        return source.name
    classes = config.get("architectures")
    return str(classes[0]) if isinstance(classes, list) and classes else source.name


def is_kept(entry: Path, manifest: Manifest, *, owned: bool) -> bool:
    """Whether what is there stays: others may be reading it, so only if it must it is replaced."""
    there = find_manifest(entry)
    return there is not None and (owned or there == manifest)


@collector_paused()
def _read(source: Source, progress: Progress) -> _Contents:
    weights = choose_weights(source.files, source.ignored)
    warnings = [*weights.warnings]
    if any(name.endswith(".py") for name in source.ignored):
        warnings.append(CODE)
    config, quantization, said = _read_config(source, weights)
    warnings += said
    parts: list[Tensors] = []
    aliases: dict[str, str] = {}
    blocks: dict[str, str] = {}
    settings: Mapping[str, Any] = {}
    tell = throttled(progress)
    for number, name in enumerate(weights.names, start=1):
        tell(None, f"Reading header {number} of {len(weights.names)}")
        header = read_header(source.files[name], name)
        parts.append(header.tensors)
        aliases |= header.aliases
        blocks |= header.blocks
        warnings += header.warnings
        settings = settings or header.settings
    found = put_together(weights, parts, source.files)
    warnings += _unread_blocks(blocks)
    tells = ADAPTER_CONFIG in source.files and not weights.alone
    adapts = read_adapter_config(source.files[ADAPTER_CONFIG]) if tells else None
    if adapter := describe_adapter(weights.names, found.tensors.names, adapts):
        configs = {} if adapts is None else {ADAPTER_CONFIG: adapts}
        return _Contents(weights, found.tensors, aliases, None, {}, (adapter,), adapter, configs, found.findings)
    warnings += (each.detail for each in found.findings if each.problem != TOTAL)  # which no loader reads
    if weights.alone:
        translation = translate_gguf(found.tensors, settings, blocks, source.files)
    else:
        translation = translate(found.tensors, config, settings or _read_params(source, config))
    found = replace(found, tensors=translation.tensors, findings=found.findings + translation.findings)
    config, own = translation.config, {theirs: mine for mine, theirs in translation.translated.names.items()}
    if blocks:
        quantization = {BLOCKS: {own.get(name, name): block for name, block in blocks.items()}}
    aliases = {own.get(name, name): own.get(first, first) for name, first in aliases.items()}
    warnings += translation.said
    if config is not None:
        warnings = [each for each in warnings if each != NO_CONFIG]
        held = as_stored(found.tensors, quantization[BLOCKS]) if blocks else found.tensors
        if not weights.alone:  # of which a model that does not fit was not made
            refuse_sizes(config, weights, found, source.files)
        warnings += size_warnings(config, held)
    configs = {} if config is None else {"config.json": config}
    return _Contents(
        weights,
        found.tensors,
        aliases,
        config,
        quantization,
        tuple(warnings),
        "",
        configs,
        found.findings,
        translation.translated,
        settings if weights.alone else {},
    )


def _read_config(source: Source, weights: Weights) -> tuple[dict[str, Any] | None, dict[str, Any], tuple[str, ...]]:
    """What config.json keeps of its settings, what it says of quantized weights, and what is to be said of it."""
    if weights.alone:
        return None, {}, _beside(source.files)
    if "config.json" not in source.files:
        return None, {}, (NO_CONFIG,)
    rebuilt = rebuild_config(source.files["config.json"])
    return rebuilt.settings, rebuilt.quantization, rebuilt.warnings


def _read_params(source: Source, config: dict[str, Any] | None) -> dict[str, Any]:
    """What stands in params.json, where no config.json counts instead."""
    if config is not None or PARAMS not in source.files:
        return {}
    params = read_json(source.files[PARAMS], PARAMS, limit=MAX_PARAMS_NBYTES)
    return params if isinstance(params, dict) else {}


def _beside(files: Mapping[str, Path]) -> tuple[str, ...]:
    """Say it where files lie beside weights that describe themselves."""
    others = sorted(name for name in files if weight_format(name) is None)
    return (BESIDE.format(names=some(others, 3)),) if others else ()


def _unread_blocks(blocks: Mapping[str, str]) -> list[str]:
    """Name the types of blocks whose numbers cannot be read."""
    types = Counter(block for block in blocks.values() if block not in READ)
    return [UNREAD_BLOCKS.format(count=plural(count, "tensor"), block=block) for block, count in sorted(types.items())]


def _warnings(contents: _Contents, source: Source, *, has_tokenizer: bool) -> tuple[str, ...]:
    """Those told before come first, in their order: some name files that were left out then."""
    absent = (NO_TOKENIZER,)
    if contents.weights.alone:
        absent = UNREAD_TOKENIZER, NOT_READ_SINCE.format(why=why_not_read(contents.metadata))
    found = (*contents.warnings, *(() if has_tokenizer else absent))
    return (*source.told, *(warning for warning in found if warning not in source.told))
