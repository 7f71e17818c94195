"""Checkpoints with planted embeddings, for tests of the map."""

from __future__ import annotations

import pytest
import torch

from tests.families import random_model, save_checkpoint


@pytest.fixture
def open_matrix(tmp_path, open_path):
    """Open a checkpoint whose input embeddings are given."""

    def opened(matrix: torch.Tensor):
        model = random_model("BertModel", vocab_size=len(matrix), hidden_size=matrix.shape[1])
        with torch.no_grad():
            model.get_input_embeddings().weight.copy_(matrix)
        return open_path(save_checkpoint(model, tmp_path / "planted", tokenizer=False))

    return opened
