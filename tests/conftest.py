"""Fixtures of the unit tests: checkpoints opened as the app opens them."""

from __future__ import annotations

import gc
import json
import os
import re
import shutil
from collections import defaultdict
from collections.abc import Callable, Generator, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import torch

from inspector.cli import child
from inspector.errors import InspectorError
from inspector.models.checkpoint import StagedCheckpoint
from inspector.settings import Settings, read_settings
from inspector.store.opening import open_checkpoint
from inspector.store.reference import CheckpointRef
from tests.families import MODELS, random_model, save_checkpoint
from tests.warm import forked_warm
from tools.fuzz.property import EXCEPTION

# Code compiled in one test serves them all, and those of the next run.
COMPILED = Path(__file__).parents[1] / ".pytest_cache" / "numba"
os.environ.setdefault("NUMBA_CACHE_DIR", str(COMPILED))

# The test processes share the cores: threads of small models would wait for each other, spinning.
# Workers and servers that tests start keep the threads that they have in use.
torch.set_num_threads(1)

# Stores sync what they write, which takes long on a disk and no time in memory.
MEMORY = Path("/dev/shm").resolve()
if MEMORY.is_dir() and shutil.disk_usage(MEMORY).free > 4e9:
    os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", str(MEMORY))

# Seconds of processor time of the files that take more than a few, measured now and then; a folder's
# are those of each file in it that is not named.
SECONDS: dict[str, float] = json.loads(Path(__file__).with_name("seconds.json").read_text(encoding="utf-8"))

Opener = Callable[[Path], StagedCheckpoint]


def answer_here(monkeypatch: pytest.MonkeyPatch, settings: Settings) -> None:
    """Have a command's children do their work in this process, where the libraries are loaded.

    A process whose libraries have computed something cannot be forked.
    """
    start = child.start
    monkeypatch.setattr(child, "start", lambda task, _, **__: start(task, settings, kind=child.InProcess))


# Architectures that `make test` tries where a test is made for many: an encoder with a pooler, one without, two
# decoders, both halves, and a mixture of experts. Of a test that is made for others alone, it runs the first.
EVERYDAY = {
    "BertForPreTraining",
    "DistilBertForMaskedLM",
    "GPT2LMHeadModel",
    "LlamaForCausalLM",
    "T5ForConditionalGeneration",
    "MixtralForCausalLM",
}
ARCHITECTURE = re.compile(r"[A-Z]\w*(?:Model|For[A-Z]\w+)")


@pytest.hookimpl(wrapper=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> Iterator[None]:
    """Begin with the slowest files, so that no process is left with one at the end."""
    _mark_families(items)
    yield

    def seconds(item: pytest.Item) -> float:
        file = item.nodeid.partition("::")[0]
        return SECONDS.get(file, SECONDS.get(file.rpartition("/")[0], 0))

    items.sort(key=seconds, reverse=True)


def _mark_families(items: list[pytest.Item]) -> None:
    """Mark the cases of tests for other architectures than the everyday ones."""
    named: dict[str, str] = {}
    for item in items:
        values = item.callspec.params.values() if isinstance(item, pytest.Function) and "[" in item.name else ()
        found = [value for value in values if isinstance(value, str) and ARCHITECTURE.fullmatch(value)]
        if found:
            named[item.nodeid] = found[0]
    beyond = beyond_everyday(named)
    for item in items:
        if item.nodeid in beyond:
            item.add_marker(pytest.mark.families)


def beyond_everyday(named: Mapping[str, str]) -> set[str]:
    """Choose the cases that `make test` leaves out, of ids with the architecture of each."""
    tests: dict[str, dict[str, str]] = defaultdict(dict)
    for case, architecture in named.items():
        tests[case.partition("[")[0]][case] = architecture
    beyond: set[str] = set()
    for cases in tests.values():
        tried = EVERYDAY.intersection(cases.values()) or {next(iter(cases.values()))}
        beyond |= {case for case, architecture in cases.items() if architecture not in tried}
    return beyond


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Nothing is skipped in CI."""
    report = yield
    if report.skipped and os.environ.get("CI"):
        report.outcome, report.longrepr = "failed", f"{item.nodeid} was skipped, in CI: {report.longrepr}"
    return report


# While tests are collected, little is garbage: half a million objects are imported, and left alone afterwards.
gc.disable()


def pytest_collection_finish() -> None:
    """Have the garbage collector look at what the tests make."""
    gc.freeze()
    gc.enable()


def silent(fraction: float | None, text: str) -> None:
    """Take progress and show nobody."""


@pytest.fixture(scope="session", autouse=True)
def _forked_warm() -> Iterator[None]:
    with forked_warm():
        yield


@pytest.fixture(autouse=True)
def _one_thread() -> None:
    torch.set_num_threads(1)  # again: where a test calls numba itself, numba gives torch its own number


@pytest.fixture(autouse=True)
def _no_exception_is_named() -> Iterator[None]:
    """No sentence for a person that a test meets holds what Python calls an exception."""
    named: list[str] = []
    begin = InspectorError.__init__

    def noted(self: InspectorError, text: str = "", **options: str) -> None:
        begin(self, text, **options)
        named.extend(EXCEPTION.findall(text))

    # With a patch of its own: a test's own one would be taken back after the fixtures that it changes
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(InspectorError, "__init__", noted)
        yield
    assert not named


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return read_settings({"INSPECTOR_HOME": str(tmp_path / "home")})


@pytest.fixture
def open_path(settings: Settings) -> Opener:
    """Open a folder or file as the command line does."""

    def opened(path: Path) -> StagedCheckpoint:
        manifest, _ = open_checkpoint(
            CheckpointRef("path", str(path)), settings=settings, progress=silent, restrict_paths=False
        )
        return StagedCheckpoint(manifest, settings=settings)

    return opened


@pytest.fixture(scope="session")
def saved_models(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Path]:
    """Save a small random model of an architecture, each once; nobody changes the folder."""
    saved: dict[str, Path] = {}

    def save(architecture: str, **changes: Any) -> Path:
        asked = repr((architecture, sorted(changes.items())))
        if asked not in saved:
            saved[asked] = save_checkpoint(random_model(architecture, **changes), tmp_path_factory.mktemp("model"))
        return saved[asked]

    return save


@pytest.fixture
def open_model(tmp_path: Path, open_path: Opener, saved_models: Callable[..., Path]) -> Callable[..., StagedCheckpoint]:
    """Open a copy of a small random model of an architecture."""

    def opened(architecture: str, **changes: Any) -> StagedCheckpoint:
        folder = tmp_path / architecture
        shutil.rmtree(folder, ignore_errors=True)  # another one of this test, which may be in use
        shutil.copytree(saved_models(architecture, **changes), folder, copy_function=shutil.copyfile)
        return open_path(folder)

    return opened


@pytest.fixture(params=sorted(MODELS))
def architecture(request: pytest.FixtureRequest) -> str:
    """Every family of the table in turn."""
    return request.param


@pytest.fixture
def stored(tmp_path: Path, open_path: Opener) -> Callable[..., StagedCheckpoint]:
    """Open BERT with other tensors, such as codes, in the place of one weight."""
    from tests.models.quantized_files import save_coded

    def opened(change: Callable[..., Any], name: str = "b", quantization: Any = None) -> StagedCheckpoint:
        return open_path(save_coded(tmp_path / name, change, quantization))

    return opened


@pytest.fixture
def plain(tmp_path: Path, open_path: Opener) -> StagedCheckpoint:
    """The same BERT with that weight as it was."""
    from tests.models.quantized_files import bert

    return open_path(save_checkpoint(bert(), tmp_path / "a"))
