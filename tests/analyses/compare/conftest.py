"""Checkpoints to compare."""

from __future__ import annotations

import pytest
from safetensors.torch import load_file, save_file

from tests.families import save_checkpoint


@pytest.fixture
def saved(tmp_path, open_path):
    """Save tensors beside a model's config and tokenizer, and open the folder."""

    def opened(model, name, change=None, *, vocabulary=None):
        folder = save_checkpoint(model, tmp_path / name, tokenizer=vocabulary is None)
        if vocabulary is not None:
            (folder / "vocab.txt").write_text("\n".join(vocabulary) + "\n", encoding="utf-8")
        if change:
            tensors = load_file(folder / "model.safetensors")
            save_file(change(tensors), folder / "model.safetensors", metadata={"format": "pt"})
        return open_path(folder)

    return opened
