"""Small checkpoints that are uploaded, and what a server then holds."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path

import numpy as np
from playwright.sync_api import Locator, expect
from safetensors.numpy import save

from inspector.serving.storing import registry
from inspector.serving.trial import Server
from inspector.settings import read_settings
from inspector.store.stored import list_checkpoints
from tests.browser.looking import expect_calm

CONFIG = {
    "model_type": "bert", "architectures": ["BertModel"], "hidden_size": 8,
    "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 12,
    "max_position_embeddings": 16, "type_vocab_size": 2,
}  # fmt: skip


def files(rows: int) -> dict[str, bytes]:
    """A real, small checkpoint; its number of rows tells it from others."""
    weights = np.random.default_rng(rows).normal(size=(rows, 8)).astype(np.float32)
    return {
        "config.json": json.dumps(CONFIG | {"vocab_size": rows}).encode(),
        "model.safetensors": save({"embeddings.word_embeddings.weight": weights}),
    }


def as_zip(path: Path, contents: dict[str, bytes]) -> Path:
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in contents.items():
            archive.writestr(name, content)
    return path


def stored(server: Server) -> set[str]:
    """Names of what the store holds; nothing that arrived lies about."""
    settings = read_settings({"INSPECTOR_HOME": str(server.log.parent / "store")})
    assert list((settings.home / "incoming").glob("[!.]*")) == []
    return {entry.name for entry in list_checkpoints(settings)}


def empty(server: Server) -> None:
    """Delete what a server's store holds."""
    settings = read_settings({"INSPECTOR_HOME": str(server.log.parent / "store")})
    for entry in list_checkpoints(settings):
        registry.delete_checkpoint(entry.fingerprint, settings=settings)
    assert stored(server) == set()


def give(where: Locator, *paths: Path) -> None:
    """Choose files in an input; until a run ends, Streamlit keeps the one before, unseen."""
    where.locator(
        ":not([data-retained]) > [data-testid=stFileUploader] input[type=file]:not([webkitdirectory])"
    ).set_input_files([str(path) for path in paths])


def expect_ready(where: Locator) -> None:
    """The input is empty and takes the next file."""
    expect_calm(where.page)
    expect(where.get_by_test_id("stFileChip")).to_have_count(0)
    expect(where.get_by_test_id("stFileUploaderDropzone")).to_be_visible()
