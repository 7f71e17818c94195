"""Checkpoints with a task's head."""

from __future__ import annotations

from typing import Any

import pytest
import transformers

from tests import families
from tests.analyses.heads.heads_cases import SIZES, Case
from tests.families import random_model, save_checkpoint


@pytest.fixture
def make(tmp_path, open_path, monkeypatch):
    """Build, save and open a small random model of a family and a task."""

    def made(family: str, task: str, **changes: Any) -> Case:
        name = f"{family}{task}"
        monkeypatch.setitem(families.WITHOUT_HEAD, name, SIZES[family])
        model = random_model(name, **changes)
        folder = save_checkpoint(model, tmp_path / name)
        tokenizer = transformers.BertTokenizer.from_pretrained(folder)
        tokenizer.model_input_names = ["input_ids", "attention_mask"]
        if getattr(model.config, "type_vocab_size", 0) > 1:
            tokenizer.model_input_names.append("token_type_ids")
        return Case(open_path(folder), model, tokenizer)

    return made
