"""Uploads, archives and hub caches, built for the tests of the store."""

from __future__ import annotations

import json
import tarfile
import zipfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file
from transformers import LlamaForCausalLM

from inspector.results.checkpoint import Opened
from inspector.settings import Settings
from inspector.store.manifests.entries import load_manifest
from inspector.store.manifests.manifest import Manifest
from inspector.store.opening import open_checkpoint
from inspector.store.origins.origin import Reach
from inspector.store.reference import CheckpointRef
from tests.conftest import silent
from tests.families import random_model, save_checkpoint


def small_checkpoint(folder: Path, *, seed: int = 0, **options) -> Path:
    """A BERT of two layers as a checkpoint folder, with a tokenizer."""
    return save_checkpoint(random_model("BertForMaskedLM", seed=seed), folder, **options)


def uploaded(settings: Settings, files: dict[str, bytes]) -> CheckpointRef:
    """Files by the names that a browser tells, as an upload that has arrived."""
    from inspector.serving.storing.registry import new_upload, write_upload  # this file serves tests without it, too

    upload, folder = new_upload(settings)
    for name, data in files.items():
        write_upload(folder, name, data)
    return CheckpointRef("incoming", upload)


def upload_of(settings: Settings, folder: Path, *, prefix: str = "") -> CheckpointRef:
    """A folder's files as an upload; `prefix` is the folder's name, as a folder upload has it."""
    return uploaded(settings, {prefix + path.name: path.read_bytes() for path in sorted(folder.iterdir())})


def opened(reference: CheckpointRef, settings: Settings, *, strangers: bool = True) -> tuple[Manifest, CheckpointRef]:
    """Open a reference as the web app does, or as the command line does."""
    if not reference.origin.arrives:
        return open_checkpoint(reference, settings=settings, progress=silent, restrict_paths=strangers)
    return _received(reference, settings)


def _received(reference: CheckpointRef, settings: Settings) -> tuple[Manifest, CheckpointRef]:
    """What a worker and its server make of an upload, done by this process."""
    from inspector.serving.engine.wire import OpenRequest
    from inspector.serving.engine.workers.worker_folder import WorkerFolder
    from inspector.serving.storing import opening, receiving
    from inspector.serving.storing.registry import discard_upload

    folder = WorkerFolder(settings)
    try:
        folder.prepare(OpenRequest(reference))
        draft, found = opening.open_checkpoint(
            reference, settings=folder.settings, progress=silent, restrict_paths=True
        )
        told = Opened(draft.fingerprint, str(found), draft.name, draft.warnings)
        reach = Reach(settings, restrict_paths=True)
        opened = receiving.receive(told, reference.origin, reach, own=folder.own, progress=silent)
        manifest = load_manifest(opened.fingerprint, settings=settings)
        return replace(manifest, warnings=opened.warnings), CheckpointRef.parse(opened.reference)
    finally:
        folder.close()
        discard_upload(reference.value, settings=settings)


def pack(folder: Path, archive: Path) -> Path:
    """Pack a folder, under its own name, into an archive; its suffix tells the format."""
    files = [path for path in sorted(folder.rglob("*")) if path.is_file()]
    if archive.suffix == ".zip":
        with zipfile.ZipFile(archive, "w") as packed:
            for path in files:
                packed.write(path, path.relative_to(folder.parent).as_posix())
        return archive
    with tarfile.open(archive, "w" if archive.suffix == ".tar" else "w:gz") as packed:
        for path in files:
            packed.add(path, path.relative_to(folder.parent).as_posix())
    return archive


def hub_cache(folder: Path, model: str, cache: Path) -> Path:
    """Lay a folder out as the hub's library does: blobs by digest, snapshots of links."""
    repository = cache / ("models--" + model.replace("/", "--"))
    commit = "a" * 40
    snapshot = repository / "snapshots" / commit
    snapshot.mkdir(parents=True)
    (repository / "blobs").mkdir()
    (repository / "refs").mkdir()
    (repository / "refs" / "main").write_text(commit, encoding="utf-8")
    for number, path in enumerate(sorted(folder.iterdir())):
        blob = repository / "blobs" / f"{number:040x}"
        blob.write_bytes(path.read_bytes())
        (snapshot / path.name).symlink_to(Path("../../blobs") / blob.name)
    return cache


class Shards:
    """A Llama of two layers in numbered shards with an index, to be damaged.

    Args:
        form: "safetensors" or "bin".
        count: Shards, each with as many tensors, by name.
    """

    def __init__(self, folder: Path, form: str = "safetensors", count: int = 2) -> None:
        model = random_model("LlamaForCausalLM")
        save_checkpoint(model, folder)
        (folder / "model.safetensors").unlink()
        self.folder, self.form = folder, form
        self.stem = "model" if form == "safetensors" else "pytorch_model"
        self.state = {name: tensor.detach().clone() for name, tensor in model.state_dict().items()}
        self.names = [f"{self.stem}-{number:05}-of-{count:05}.{form}" for number in range(1, count + 1)]
        ordered = sorted(self.state)
        each = -(-len(ordered) // count)
        self.weight_map = {name: self.names[place // each] for place, name in enumerate(ordered)}
        self.metadata: object = {"total_size": sum(tensor.nbytes for tensor in self.state.values())}
        for shard in self.names:
            self.put(shard, {name: self.state[name] for name in ordered if self.weight_map[name] == shard})
        self.list()

    @property
    def index(self) -> str:
        return f"{self.stem}.{self.form}.index.json"

    def put(self, name: str, tensors: dict[str, torch.Tensor]) -> str:
        """Write a file of weights, and tell its name."""
        path = self.folder / name
        if self.form == "safetensors":
            save_file(tensors, path, {"format": "pt"})
        else:
            torch.save(tensors, path)
        return name

    def list(self, **changes: str | None) -> None:
        """Write the index, with tensors in other shards, or without them."""
        listed = {name: shard for name, shard in (self.weight_map | changes).items() if shard}
        found = {"metadata": self.metadata, "weight_map": listed}
        text = json.dumps({key: value for key, value in found.items() if value is not None})
        (self.folder / self.index).write_text(text, encoding="utf-8")

    def loaded(self) -> tuple[dict[str, torch.Tensor], set[str]]:
        """What from_pretrained makes of the folder: each parameter, and the names of those that are made up."""
        found: Any = LlamaForCausalLM.from_pretrained(self.folder, output_loading_info=True)
        model, info = found
        return model.state_dict(), set(info["missing_keys"])
