"""A sound checkpoint to be damaged, and how it must be refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from inspector.errors import CheckpointError
from tests.families import random_model, save_checkpoint


@pytest.fixture
def folder(tmp_path) -> Path:
    """A sound checkpoint, to be damaged."""
    return save_checkpoint(random_model("BertForMaskedLM"), tmp_path / "sound")


@pytest.fixture
def refused(open_path, settings):
    """Open a path that must be refused; the sentence."""

    def refusal(path: Path) -> str:
        with pytest.raises(CheckpointError) as error:
            open_path(path)
        home = settings.home
        assert str(path.parent) not in str(error.value), "the sentence tells a path"
        assert not list((home / "checkpoints").glob("*")), "something was stored"
        return str(error.value)

    return refusal
