"""A base with an adapter on it: one worker reads both, and what it answers is the library's answer."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest

import inspector
from inspector.analyses.overview.request import OverviewRequest
from inspector.catalog import CATALOG
from inspector.errors import CheckpointError, InspectorError, NotInCheckpointError, WorkerError
from inspector.results.checkpoint import Opened
from inspector.serving.engine.jobs import keyed_request
from inspector.serving.engine.local import LocalEngine
from inspector.serving.engine.manifest_check import check_against_manifest
from inspector.serving.engine.wire import RunRequest
from inspector.serving.engine.workers.worker_folder import WorkerFolder
from inspector.serving.storing.registry import delete_checkpoint
from inspector.settings import Settings, read_settings
from inspector.store.pairs import joined, reference_of, references_in
from inspector.store.reference import CheckpointRef
from tests.merges import write_merge
from tests.serving.engine.engine_harness import WAIT, demo
from tests.store.store_builders import small_checkpoint, upload_of

BASE, ADAPTER = "demo-gpt2", "demo-gpt2-adapter"
TEXT = "the value of a function"


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Settings:
    return read_settings({"INSPECTOR_HOME": str(tmp_path_factory.mktemp("home"))})


@pytest.fixture(scope="module")
def engine(home: Settings) -> Iterator[LocalEngine]:
    made = LocalEngine(home, spare=False)
    yield made
    made.close()


@pytest.fixture
def both(engine: LocalEngine) -> Opened:
    return joined(*(engine.open(demo(name)).result(WAIT) for name in (BASE, ADAPTER)))


def test_the_answer_is_the_librarys_and_one_worker_gives_it(engine: LocalEngine, both: Opened) -> None:
    found = engine.run(both.fingerprint, "lens", text=TEXT).result(WAIT)
    here = inspector.open(BASE, adapter=ADAPTER)
    pd.testing.assert_frame_equal(found.cells, here.lens(TEXT).cells, rtol=1e-4)  # threads add in another order
    alone = engine.run(both.parts[0].fingerprint, "lens", text=TEXT).result(WAIT)
    assert not found.cells.equals(alone.cells)
    overview = engine.run(both.fingerprint, "overview").result(WAIT)
    assert overview.name == f"{BASE} + {ADAPTER}"
    assert overview.fingerprint == here.overview().fingerprint
    held = {worker.fingerprint: worker.name for worker in engine.workers()}
    assert held[both.fingerprint] == f"{BASE} + {ADAPTER}"
    engine.release(both.fingerprint)
    assert both.fingerprint not in {worker.fingerprint for worker in engine.workers()}


def test_it_is_compared_with_its_base(engine: LocalEngine, both: Opened) -> None:
    base = both.parts[0]
    called = [*both.names, "mine alone"]
    found = engine.run(both.fingerprint, "compare", called=called, other=base.fingerprint).result(WAIT)
    changed = found.tensors.loc[found.tensors["status"] == "changed", "name"].tolist()
    assert changed
    assert all(name.endswith("c_attn.weight") for name in changed)
    assert (found.name, found.other_name) == (both.name, "mine alone")


def test_each_is_answered_by_the_names_of_who_asks(engine: LocalEngine, both: Opened) -> None:
    names = [
        engine.run(both.fingerprint, "overview", called=called).result(WAIT).name
        for called in (("mine", "yours"), ("ours", "theirs"), ("mine", "yours"))
    ]
    assert names == ["mine + yours", "ours + theirs", "mine + yours"]


def test_what_does_not_fit_is_refused_by_the_names_of_who_asks(engine: LocalEngine, both: Opened) -> None:
    other = engine.open(demo("demo-bert")).result(WAIT)
    wrong = joined(replace(other, name="mine"), replace(both.parts[1], name="yours"))
    with pytest.raises(NotInCheckpointError) as refused:
        engine.run(wrong.fingerprint, "overview", called=wrong.names).result(WAIT)
    assert str(refused.value).startswith("yours changes ")
    assert ", which mine does not store" in str(refused.value)
    twice = f"{both.fingerprint}+{both.parts[1].fingerprint}"
    with pytest.raises(CheckpointError):
        engine.run(twice, "overview").result(WAIT)


def test_what_was_deleted_is_not_answered_for(tmp_path: Path) -> None:
    base = small_checkpoint(tmp_path / "base")
    adapter, _ = write_merge(base, tmp_path)
    settings = read_settings({"INSPECTOR_HOME": str(tmp_path / "home")})
    engine = LocalEngine(settings, spare=False)
    try:
        parts = [engine.open(upload_of(settings, each)).result(WAIT) for each in (base, adapter)]
        both = joined(*parts)
        engine.run(both.fingerprint, "overview").result(WAIT)
        delete_checkpoint(parts[1].fingerprint, settings=settings)
        engine.forget(parts[1].fingerprint)
        assert both.fingerprint not in {worker.fingerprint for worker in engine.workers()}
        with pytest.raises(CheckpointError, match="no longer in the store"):
            engine.run(both.fingerprint, "overview").result(WAIT)
        assert engine.run(parts[0].fingerprint, "overview").result(WAIT).name == parts[0].name
    finally:
        engine.close()


def test_a_worker_is_given_both_and_nothing_of_it_is_kept(engine: LocalEngine, both: Opened, home: Settings) -> None:
    found = engine.run(both.fingerprint, "overview").result(WAIT)
    _, request = keyed_request(CATALOG, both.fingerprint, "overview", OverviewRequest().parameters())
    assert request.fingerprints == tuple(each.fingerprint for each in both.parts)
    desk = WorkerFolder(home)
    try:
        desk.prepare(request)
        given = {path.name for path in (desk.given / "opened").iterdir()}
        assert given == set(request.fingerprints)
    finally:
        desk.close()
    assert not list((home.home / "maps").glob(f"*{found.fingerprint}*"))


def test_an_answer_about_another_pair_is_not_believed(engine: LocalEngine, both: Opened, home: Settings) -> None:
    found = engine.run(both.fingerprint, "overview").result(WAIT)
    request = RunRequest(both.fingerprint, "package:function", {})
    check_against_manifest(found, request, home)
    for lie in (replace(found, fingerprint=both.parts[0].fingerprint), replace(found, files=found.files[:-1])):
        with pytest.raises(WorkerError, match="contradicts the headers"):
            check_against_manifest(lie, request, home)


@pytest.mark.parametrize("parts", [("path:/a,b/%2C", "hub:org/name"), (BASE, ADAPTER), ("path:/a%25", "path:/,,")])
def test_a_link_names_both_whatever_they_are_called(parts: tuple[str, str]) -> None:
    text = reference_of(*parts)
    assert CheckpointRef.parse(text).origin.parts == parts
    assert references_in(text.partition(":")[2]) == parts


@pytest.mark.parametrize(
    "text", ["adapted:demo-a", "adapted:,demo-a", "adapted:a,b,c", f"adapted:{reference_of(BASE, ADAPTER)}",
             "adapted:adapted:demo-a%2Cdemo-b,demo-c", "adapted:demo-c,adapted:demo-a%2Cdemo-b"],
)  # fmt: skip
def test_a_link_names_two_and_no_more(text: str) -> None:
    with pytest.raises(InspectorError, match="does not name a checkpoint"):
        CheckpointRef.parse(text)
