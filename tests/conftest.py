"""Fixtures of the unit tests: checkpoints opened as the app opens them."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from inspector.models.checkpoint import Checkpoint
from inspector.settings import Settings, read_settings
from inspector.store.opening import open_checkpoint
from inspector.store.reference import CheckpointRef
from tests.families import MODELS, random_model, save_checkpoint

# Code compiled in one test serves them all, and those of the next run.
COMPILED = Path(__file__).parents[1] / ".pytest_cache" / "numba"
os.environ.setdefault("NUMBA_CACHE_DIR", str(COMPILED))

Opener = Callable[[Path], Checkpoint]


def silent(fraction: float | None, text: str) -> None:
    """Take progress and show nobody."""


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return read_settings({"INSPECTOR_HOME": str(tmp_path / "home")})


@pytest.fixture
def open_path(settings: Settings) -> Opener:
    """Open a folder or file as the command line does."""

    def opened(path: Path) -> Checkpoint:
        manifest, _ = open_checkpoint(
            CheckpointRef("path", str(path)), settings=settings, progress=silent, restrict_paths=False
        )
        return Checkpoint(manifest, settings=settings)

    return opened


@pytest.fixture
def open_model(tmp_path: Path, open_path: Opener) -> Callable[..., Checkpoint]:
    """Save a small random model of an architecture and open it."""

    def opened(architecture: str, **changes: Any) -> Checkpoint:
        model = random_model(architecture, **changes)
        return open_path(save_checkpoint(model, tmp_path / architecture))

    return opened


@pytest.fixture(params=sorted(MODELS))
def architecture(request: pytest.FixtureRequest) -> str:
    """Every family of the table in turn."""
    return request.param


@pytest.fixture
def stored(tmp_path: Path, open_path: Opener) -> Callable[..., Checkpoint]:
    """Open BERT with other tensors, such as codes, in the place of one weight."""
    from tests.models.quantised_files import save_coded

    def opened(change: Callable[..., Any], name: str = "b", quantization: Any = None) -> Checkpoint:
        return open_path(save_coded(tmp_path / name, change, quantization))

    return opened


@pytest.fixture
def plain(tmp_path: Path, open_path: Opener) -> Checkpoint:
    """The same BERT with that weight as it was."""
    from tests.models.quantised_files import bert

    return open_path(save_checkpoint(bert(), tmp_path / "a"))
