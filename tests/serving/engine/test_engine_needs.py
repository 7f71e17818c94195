"""What the catalog says that a question needs: watched from outside, on real checkpoints."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import torch

from inspector.catalog import CATALOG, answer
from inspector.models import build
from inspector.models.checkpoint import StagedCheckpoint
from inspector.sandbox import limits
from inspector.sandbox.confinement import Confinement
from inspector.serving.encoding import decode, encode
from inspector.serving.engine.jobs import keyed_request
from inspector.serving.engine.protocol import Progress
from inspector.serving.engine.wire import SAID, Answers, BatchRequest, Ready, Setup, Warm, WorkerFunctions
from inspector.serving.engine.workers.worker import Worker
from inspector.settings import Settings
from inspector.store.opening import open_checkpoint
from inspector.store.reference import CheckpointRef
from tests.conftest import silent
from tests.merges import others, subject

TEXT = "a dog is an [MASK]."
# What a question cannot do without; other options have defaults.
PARAMETERS: dict[str, dict[str, Any]] = {
    "tokenize": {"texts": (TEXT,)},
    "predict": {"text": TEXT},
    "plausibility": {"text": "a dog is an animal."},
    "contrast": {"first": TEXT, "second": "a car is an [MASK]."},
    "ladder": {"text": TEXT},
    "lens": {"text": TEXT},
    "project": {"method": "pca"},
    "experts": {"text": "a dog is an animal."},
    "padding": {"text": "a dog is an animal."},
    "pretrain": {"text": "a dog is an animal."},
    "similarity": {"texts": (TEXT, "a dog."), "pooling": "mean"},
    "heads": {"head": "masked_lm", "text": TEXT},
}
OPENED: list[list[str]] = []  # a list for each watch that is on


def _note(event: str, arguments: tuple[Any, ...]) -> None:
    if event == "open" and OPENED:
        OPENED[-1].append(str(arguments[0]))


sys.addaudithook(_note)  # the interpreter tells of each file that is opened, by whichever way


@contextmanager
def watched() -> Iterator[list[str]]:
    """Note every file that is opened meanwhile."""
    OPENED.append([])
    try:
        yield OPENED[-1]
    finally:
        OPENED.pop()


def opened(settings: Settings, name: str) -> StagedCheckpoint:
    manifest, _ = open_checkpoint(CheckpointRef("demo", name), settings=settings, progress=silent, restrict_paths=False)
    return StagedCheckpoint(manifest, settings=settings)


@pytest.mark.parametrize("verb", CATALOG)
def test_a_question_takes_what_it_says(verb: str, settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    checkpoint = subject(verb, opened(settings, "demo-bert"))
    parameters = PARAMETERS.get(verb, {}) | others(verb, checkpoint)
    if verb == "compare":
        parameters["other"] = opened(settings, "demo-gpt2").manifest.fingerprint
    built: list[bool] = []  # whether a model that was built has numbers
    build_model = build.build_model

    def noted(*arguments: Any, **options: Any) -> Any:
        model, missing = build_model(*arguments, **options)
        built.append(any(parameter.device != torch.device("meta") for parameter in model.parameters()))
        return model, missing

    for module in list(sys.modules.values()):
        if getattr(module, "build_model", None) is build_model:
            monkeypatch.setattr(module, "build_model", noted)
    with watched() as files:
        answer(verb, checkpoint, progress=silent, **parameters)
    read = {Path(name).suffix for name in files} & {".safetensors", ".bin"}
    found = "model" if any(built) else "rows" if read else "names"
    assert found == CATALOG[verb].needs


def test_files_count_for_a_limit_from_the_first_question_that_maps_them(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    manifest = opened(settings, "demo-bert").manifest
    admitted: list[int] = []
    monkeypatch.setattr(limits, "admit_files", admitted.append)
    said: Any = Said()
    asked: Any = Asked(manifest.fingerprint, ("overview", "placement", "vitals", "overview", "embeddings"), admitted)
    setup = Setup(settings, WorkerFunctions(light=(), warm_up=()), restrict_paths=False)
    with pytest.raises(EOFError):
        Worker(said, setup, Confinement(True, True, True, ())).serve(asked)
    assert [type(each) for each in said.messages if not isinstance(each, Progress)] == [Ready, Warm, *[Answers] * 5]
    assert asked.before == [0, 0, 0, 1, 1, 1]
    assert admitted == [sum(file.nbytes for file in manifest.files)]


class Asked:
    """Requests one after the other, with how many files were admitted before each; then the end."""

    def __init__(self, fingerprint: str, verbs: Sequence[str], admitted: list[int]) -> None:
        self._requests = [keyed_request(CATALOG, fingerprint, verb, {})[1] for verb in verbs]
        self._admitted = admitted
        self.before: list[int] = []

    def get(self, timeout: float | None) -> BatchRequest:
        self.before.append(len(self._admitted))
        if not self._requests:
            raise EOFError
        return BatchRequest((encode(self._requests.pop(0)),))


class Said:
    """What a worker says."""

    def __init__(self) -> None:
        self.messages: list[Any] = []

    def send_bytes(self, data: bytes) -> None:
        self.messages.append(decode(data, *SAID))
