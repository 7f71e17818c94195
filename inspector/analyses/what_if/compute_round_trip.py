"""Save a model, read what the file then holds, and load it again."""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from transformers import PreTrainedModel

from inspector.analyses.what_if import words
from inspector.analyses.what_if.result import HeldTensor, SavedFile
from inspector.errors import RequestError
from inspector.models.families import in_file
from inspector.models.transformers_patches import light_loading
from inspector.settings import Settings
from inspector.store.files import workspace
from inspector.store.readers.pytorch import read_pytorch
from inspector.store.readers.safetensors import Header, read_safetensors

BIN = "pytorch_model.bin"
SHARE_OF_DISK = 0.9  # of what is free


@dataclass(frozen=True, slots=True)
class RoundTrip:
    """A saved file and the model that was loaded from it."""

    file: SavedFile
    model: PreTrainedModel | None  # None: transformers refused it


def save_and_load(model: PreTrainedModel, names: Sequence[str], *, file_format: str, settings: Settings) -> RoundTrip:
    """Save a model into a folder that is removed afterwards, and load it as its class.

    Args:
        model: Whose config may be changed by saving it: the dtype and the class are noted there.
        names: Parameters that the answer is about.
        file_format: "safetensors", as save_pretrained writes, or "pytorch", by torch.save.
        settings: Where the folder is, and how large a file may be.

    Raises:
        RequestError: If the disk or the limit on a file's size does not allow it.
    """
    nbytes = sum(parameter.nbytes for parameter in model.parameters())  # tied ones once
    _check_disk(nbytes, settings, one_file=file_format == "pytorch")
    with workspace(settings.home) as folder:
        if file_format == "pytorch":
            model.config.dtype = model.dtype
            model.config.save_pretrained(folder)
            torch.save(model.state_dict(), folder / BIN)
        else:  # a worker's files are limited in size, so large models are sharded
            model.save_pretrained(folder, max_shard_size=settings.upload_nbytes)
        headers, file_nbytes = _read(folder)
        loaded, missing, refused = _load(type(model), folder)
    file = _describe(headers, names, base=model.base_model_prefix)
    return RoundTrip(
        SavedFile(
            format=file_format,
            nbytes=file_nbytes,
            tensors=sum(len(header.tensors) for header in headers),
            held=file[0],
            lacking=file[1],
            aliases=file[2],
            random=tuple(sorted(missing)),
            refused=refused,
        ),
        loaded,
    )


def _load(model_class: type[PreTrainedModel], folder: Path) -> tuple[PreTrainedModel | None, set[str], str]:
    try:
        with light_loading(meta=False):
            model, info = model_class.from_pretrained(  # type: ignore[misc]
                folder, local_files_only=True, output_loading_info=True, attn_implementation="eager"
            )
    except Exception as error:
        return None, set(), words.refused(error)
    return model.eval(), set(info["missing_keys"]), ""


def _read(folder: Path) -> tuple[list[Header], int]:
    files = sorted([*folder.glob("*.safetensors"), *folder.glob("*.bin")])
    headers = [(read_pytorch if path.suffix == ".bin" else read_safetensors)(path, path.name) for path in files]
    return headers, sum(path.stat().st_size for path in files)


def _describe(
    headers: Iterable[Header], names: Sequence[str], *, base: str
) -> tuple[tuple[HeldTensor, ...], tuple[str, ...], tuple[str, ...]]:
    """Tensors of the wanted names, names that are not held, and second names in the metadata."""
    stored = {tensor.name: tensor for header in headers for tensor in header.tensors}
    aliases = {alias for header in headers for alias in header.aliases}
    found = {name: in_file(name, stored, base) for name in names}
    numbers: dict[tuple[str, str], int] = {}
    held = tuple(
        HeldTensor(
            name=name,
            dtype=tensor.dtype,
            shape=tensor.shape,
            nbytes=tensor.nbytes,
            storage=numbers.setdefault((tensor.file, tensor.storage), len(numbers)),
        )
        for name, key in found.items()
        if key and (tensor := stored[key])
    )
    lacking = sorted(name for name, key in found.items() if not key)
    return held, tuple(lacking), tuple(sorted(aliases & set(names)))


def _check_disk(nbytes: int, settings: Settings, *, one_file: bool) -> None:
    settings.home.mkdir(parents=True, exist_ok=True)
    free = round(SHARE_OF_DISK * shutil.disk_usage(settings.home).free)
    if nbytes > free:
        raise RequestError(
            f"Saving this model takes {nbytes / 1e9:,.1f} GB, but only {free / 1e9:,.1f} GB of disk space is free: "
            "make room in the INSPECTOR_HOME folder."
        )
    if one_file and nbytes > settings.upload_nbytes:
        raise RequestError(
            f"As one .bin file, this model takes {nbytes / 1e9:,.1f} GB, but a file may have only "
            f"{settings.upload_nbytes / 1e9:,.1f} GB: raise INSPECTOR_UPLOAD_MB."
        )
