"""Turn a checkpoint's files into an entry of the store: check them, stage them, identify them."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from inspector.errors import CheckpointError
from inspector.progress import Progress, throttled
from inspector.settings import Settings
from inspector.store.adapters import CONFIG as ADAPTER_CONFIG
from inspector.store.adapters import describe_adapter, read_adapter_config
from inspector.store.configs import rebuild_config
from inspector.store.files import put_folder, workspace
from inspector.store.hashing import Identity, fingerprint_of, identify, stamp_of
from inspector.store.manifests.columns import Tensors
from inspector.store.manifests.documents import collector_paused
from inspector.store.manifests.entries import OPENED, ORIGINALS, UPLOADS, find_manifest, load_manifest, save_manifest
from inspector.store.manifests.findings import TOTAL, Finding
from inspector.store.manifests.manifest import FileInfo, Manifest
from inspector.store.manifests.reader import FOLDER, WEIGHTS
from inspector.store.modules import stage_modules
from inspector.store.names import CONFIGS, INDEXES, file_format, weight_format
from inspector.store.origins.sources import Source
from inspector.store.readers.index import Weights, choose_weights
from inspector.store.readers.sets import put_together, read_header, refuse_sizes
from inspector.store.reference import OUTLINE
from inspector.store.registry import clean_name, write_entry
from inspector.store.sizes import size_warnings
from inspector.store.tokenizer_files import stage_tokenizer

NO_CONFIG = "There is no config.json: the tensors can be listed, but no model can be built from them."
NO_TOKENIZER = "There is no tokenizer in this checkpoint: tokens are shown by their ids."
COMMON = re.compile(r"(pytorch_)?model[-.]")  # how the names of most weight files begin
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
    findings: tuple[Finding, ...]


def stage(source: Source, *, settings: Settings, progress: Progress) -> Manifest:
    """Check a source's files and put what is needed of them into the store.

    Raises:
        CheckpointError: If the files are no checkpoint, or one that cannot be trusted.
    """
    # Before anything is read: what changes from now on has changed since it was opened.
    stamps = {} if source.owned else {name: stamp_of(p) for name, p in source.files.items()}
    contents = _read(source, progress)
    name = clean_name(_name(source, contents.config or {}))
    used = {
        name: path
        for name, path in sorted(source.files.items())
        if weight_format(name) is None or name in (*contents.weights.names, *contents.weights.numbered)
        if name not in INDEXES or name == contents.weights.index
        if name not in MODEL_CONFIGS or name in contents.configs
    }
    with workspace(settings.home) as temporary:
        built = temporary / "entry"
        (built / FOLDER).mkdir(parents=True)
        has_tokenizer = stage_tokenizer(used, built / FOLDER)
        stage_modules(used, built / FOLDER)
        for config, kept in contents.configs.items():
            (built / FOLDER / config).write_text(json.dumps(kept, indent=2), encoding="utf-8")
        if _server_knows(source, settings):
            known = _unknown(used)
            if not source.owned:  # of weights, their stamps tell whether they change meanwhile
                small = {name: path for name, path in used.items() if (built / FOLDER / name).exists()}
                known |= identify(small, owned=False, progress=progress)
        else:
            known = identify(used, owned=source.owned, progress=progress, sampled=source.kind == OUTLINE)
        fingerprint = fingerprint_of({name: each.digest for name, each in known.items()})
        if settings.given is None and source.expected not in {None, fingerprint}:
            raise CheckpointError(
                "The files from the shared store are not the upload that was requested: delete "
                "the upload, and upload it again."
            )
        entry = settings.home / (UPLOADS if source.owned else OPENED) / fingerprint
        manifest = Manifest(
            fingerprint=fingerprint,
            name=name,
            source=source.kind,
            folder=entry / FOLDER,
            files=tuple(
                _file_info(
                    path,
                    name,
                    known[name],
                    source=source,
                    built=built,
                    entry=entry,
                    stamp=stamps.get(name),
                    settings=settings,
                )
                for name, path in used.items()
            ),
            tensors=contents.tensors,
            aliases=contents.aliases,
            config=contents.config,
            warnings=_warnings(contents, source, has_tokenizer=has_tokenizer),
            quantization=contents.quantization,
            adapter=contents.adapter,
            findings=contents.findings,
        )
        save_manifest(manifest, entry, built=built)
        if source.owned:
            nbytes = sum(file.nbytes for file in manifest.files)
            write_entry(built, name=name, nbytes=nbytes)
        progress(None, "Storing")
        put_folder(built, entry, keep=lambda there: is_kept(there, manifest, owned=source.owned))
    if settings.given is not None or not source.owned:
        return manifest
    # An upload that was there already keeps its entry, and the name that it was given.
    return load_manifest(fingerprint, settings=settings)


def _name(source: Source, config: dict[str, Any]) -> str:
    """The source's name; of loose files that are called as all are, the class in config.json."""
    if source.kind not in {"upload", OUTLINE} or not COMMON.match(source.name):
        return source.name
    classes = config.get("architectures")
    return str(classes[0]) if isinstance(classes, list) and classes else source.name


def _server_knows(source: Source, settings: Settings) -> bool:
    """Whether the server finds and hashes the files itself: neither those of an archive, nor a version of the hub's."""
    if settings.given is None:
        return False
    if source.owned:
        return all(path.is_relative_to(settings.given) for path in source.files.values())
    return source.kind != "hub"


def _unknown(used: Iterable[str]) -> dict[str, Identity]:
    """Stand-ins for digests: the server asks no worker for them."""
    return {name: Identity(hashlib.sha256(name.encode()).hexdigest(), None) for name in used}


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
    config, quantization, configs = None, {}, {}
    if "config.json" in source.files:
        rebuilt = rebuild_config(source.files["config.json"])
        config, quantization = rebuilt.settings, rebuilt.quantization
        warnings += rebuilt.warnings
        configs = {"config.json": rebuilt.settings}
    else:
        warnings.append(NO_CONFIG)
    parts: list[Tensors] = []
    aliases: dict[str, str] = {}
    tell = throttled(progress)
    for number, name in enumerate(weights.names, start=1):
        tell(None, f"Reading header {number} of {len(weights.names)}")
        header = read_header(source.files[name], name)
        parts.append(header.tensors)
        aliases |= header.aliases
        warnings += header.warnings
    found = put_together(weights, parts, source.files)
    said = read_adapter_config(source.files[ADAPTER_CONFIG]) if ADAPTER_CONFIG in source.files else None
    if adapter := describe_adapter(weights.names, found.tensors.names, said):
        configs = {} if said is None else {ADAPTER_CONFIG: said}
        return _Contents(weights, found.tensors, aliases, None, {}, (adapter,), adapter, configs, found.findings)
    warnings += (each.detail for each in found.findings if each.problem != TOTAL)  # which no loader reads
    if config is not None:
        refuse_sizes(config, weights, found, source.files)
        warnings += size_warnings(config, found.tensors)
    return _Contents(
        weights, found.tensors, aliases, config, quantization, tuple(warnings), "", configs, found.findings
    )


def _warnings(contents: _Contents, source: Source, *, has_tokenizer: bool) -> tuple[str, ...]:
    """Those told before come first, in their order: some name files that were left out then."""
    found = (*contents.warnings, *(() if has_tokenizer else (NO_TOKENIZER,)))
    return (*source.told, *(warning for warning in found if warning not in source.told))


def _move(path: Path, target: Path, settings: Settings) -> None:
    """Move a file into an entry; what the server gave to a worker, the server moves."""
    if settings.given is None or not path.is_relative_to(settings.given):
        target.parent.mkdir(exist_ok=True)
        path.rename(target)


def _file_info(
    path: Path,
    name: str,
    known: Identity,
    *,
    source: Source,
    built: Path,
    entry: Path,
    stamp: tuple[int, int] | None,
    settings: Settings,
) -> FileInfo:
    nbytes = path.stat().st_size
    if (built / FOLDER / name).exists():
        place, stamp = entry / FOLDER / name, None
        if source.owned and name in CONFIGS:  # rebuilt: another server stages what was uploaded
            _move(path, built / ORIGINALS / name, settings)
    elif source.owned:
        _move(path, built / WEIGHTS / name, settings)
        place = entry / WEIGHTS / name
    else:
        place = path.resolve()
    return FileInfo(name, file_format(name) or "", nbytes, known.sha256, place, known.quick, stamp)
