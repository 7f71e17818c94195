"""The library on an engine."""

from __future__ import annotations

from pathlib import Path

import pytest

import inspector as ci
from inspector.errors import CheckpointError
from inspector.serving.engine.choice import start_engine
from inspector.settings import read_settings


def test_an_engine_answers_the_same_and_opens_the_second_checkpoint(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    demo = ci.open("demo-bert")
    here = demo.compare("demo-gpt2")
    engine = start_engine(read_settings({"INSPECTOR_HOME": str(tmp_path)}), restrict_paths=False, spare=False)
    try:
        monkeypatch.setattr("inspector.store.opening.open_checkpoint", None)  # nothing is opened in this process
        apart = ci.open("demo-bert", engine=engine)
        assert apart.sharing().to_json() == demo.sharing().to_json()
        there = apart.compare("demo-gpt2")
        assert [row["status"] for row in there.to_json()["tensors"]] == [
            row["status"] for row in here.to_json()["tensors"]
        ]
        assert there.result.other_name == "demo-gpt2"
        with pytest.raises(CheckpointError, match="no-such-checkpoint"):
            apart.compare("./no-such-checkpoint")
    finally:
        engine.close()
