"""Uploads of which the headers have arrived, and not the numbers: what is answered, and what is refused."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file

from inspector.analyses.sharing import words, words_verdicts
from inspector.analyses.sharing.result import UNCOMPARED
from inspector.analyses.training.words import LATER
from inspector.catalog import CATALOG, answer
from inspector.errors import CheckpointError, InspectorError, NotInCheckpointError
from inspector.models.checkpoint import StagedCheckpoint
from inspector.models.tensors import StoredReader
from inspector.serving.engine.local import LocalEngine
from inspector.serving.storing.arriving import Arriving, how_far, outline
from inspector.serving.storing.registry import discard_opened, discard_upload, incoming_folder
from inspector.settings import Settings
from inspector.store.copies import same_bytes
from inspector.store.keeping.quota import account
from inspector.store.readers.streams import stream, whole_parts
from inspector.store.reference import CheckpointRef
from tests.models import alike
from tests.serving.engine.engine_harness import WAIT
from tests.store.store_builders import opened, small_checkpoint

# What says how far the files have come; all else is as it will be.
PROVISIONAL = {"fingerprint", "identity", "warnings", "files", "name"}
QUESTIONS: dict[str, dict[str, Any]] = {"tokenize": {"texts": ["token1 token2"]}}
REST = {"whatif": {"change": "clone"}, "project": {"method": "pca"}, "contrast": {"first": "a", "second": "b"}} | {
    "similarity": {"texts": ("token1", "token2"), "pooling": "mean"}
}
TEXT = {"text": "token1 [MASK]"}


def coming(path: Path, settings: Settings, *, arrived: int | None = None) -> Arriving:
    """A file on its way, of which so many bytes have arrived; None: its header alone."""
    data = path.read_bytes()
    file = Arriving(len(data) + 300, settings)  # a request is longer than its file
    file.expect(path.name, len(data))
    file.write(data[: 8 + int.from_bytes(data[:8], "little") if arrived is None else arrived])
    return file


def halfway(folder: Path, settings: Settings) -> dict[str, bytes | Arriving]:
    """A checkpoint's files, of which the weights are on their way."""
    return {
        path.name: coming(path, settings) if path.suffix == ".safetensors" else path.read_bytes()
        for path in folder.iterdir()
    }


def seen(folder: Path, settings: Settings) -> StagedCheckpoint:
    """The checkpoint that can be seen while the weights of a folder arrive."""
    upload = outline(halfway(folder, settings), settings)
    manifest, reference = opened(CheckpointRef.parse(f"arriving:{upload}"), settings)
    assert str(reference) == f"arriving:{upload}"
    return StagedCheckpoint(manifest, settings=settings)


@pytest.fixture
def engine(settings) -> Iterator[LocalEngine]:
    made = LocalEngine(settings)
    try:
        yield made
    finally:
        made.close()


@pytest.mark.parametrize("verb", [verb for verb, analysis in CATALOG.items() if analysis.needs == "names"])
def test_what_needs_names_alone_is_answered_as_when_everything_has_arrived(
    architecture, verb, saved_models, open_model, settings
):
    early, late = seen(saved_models(architecture), settings), open_model(architecture)
    one, other = (answer(verb, each, progress=lambda *_: None, **QUESTIONS.get(verb, {})) for each in (early, late))
    alike.same(one, other, leaving=PROVISIONAL)


def test_sharing_is_told_as_far_as_names_tell_it(architecture, saved_models, open_model, settings):
    early, late = (
        answer("sharing", each, progress=lambda *_: None)
        for each in (seen(saved_models(architecture), settings), open_model(architecture))
    )
    left = {group.names for group in early.groups if group.verdict == UNCOMPARED}
    assert all(len(group.in_file) > 1 for group in early.groups if group.names in left)
    assert left <= {group.names for group in late.groups}
    told = [[group for group in each.groups if group.names not in left] for each in (early, late)]
    assert told[0] == told[1]
    assert early.unique_parameters - late.unique_parameters == sum(
        group.listed_parameters - group.unique_parameters for group in late.groups if group.names in left
    )
    assert words_verdicts.NOT_SEARCHED in early.warnings
    if not left:
        alike.same(early, late, leaving={"warnings"})


def test_training_is_told_without_its_example(architecture, saved_models, open_model, settings):
    early, late = (
        answer("training", each, progress=lambda *_: None)
        for each in (seen(saved_models(architecture), settings), open_model(architecture))
    )
    assert early.example is None
    assert LATER in early.warnings
    alike.same(early, late, leaving={"warnings", "example"})


@pytest.mark.parametrize("tied", [True, False])
def test_two_copies_are_not_judged_before_they_can_be_compared(saved_models, tmp_path, settings, tied):
    folder = with_output_layer(saved_models("GPT2LMHeadModel"), tmp_path, tied=tied)
    early = answer("sharing", seen(folder, settings), progress=lambda *_: None)
    (group,) = early.groups
    assert (group.verdict, group.file_relation, group.declared) == (UNCOMPARED, UNCOMPARED, tied)
    assert "known when all weights are here" in group.reason
    assert group.reason.startswith(
        "They are declared to be one tensor, and" if tied else "config.json sets tie_word_embeddings to false, and"
    )
    assert words.answer(early).startswith("Input and output embeddings are 2 tensors of")
    assert [question for question, _ in words.explain(early)] == []
    assert words.truths(group)[1:] == ("copies under 2 names, not compared yet", "2 tensors, separate")


def with_output_layer(folder: Path, to: Path, *, tied: bool) -> Path:
    """A GPT-2 whose file has its output layer, too: an equal copy."""
    for path in folder.iterdir():
        (to / path.name).write_bytes(path.read_bytes())
    tensors = load_file(folder / "model.safetensors")
    tensors["lm_head.weight"] = tensors["transformer.wte.weight"].clone()
    save_file(tensors, to / "model.safetensors", metadata={"format": "pt"})
    config = json.loads((folder / "config.json").read_text())
    (to / "config.json").write_text(json.dumps(config | {"tie_word_embeddings": tied}))
    return to


def test_nothing_reads_a_number_that_is_not_there(saved_models, settings):
    manifest = seen(saved_models("BertForMaskedLM"), settings).manifest
    first, second = [tensor.name for tensor in manifest.tensors if len(tensor.shape) == 1][:2]
    for read in (
        lambda: StoredReader(manifest).read([first]),
        lambda: same_bytes(manifest, first, second),
        lambda: next(stream(manifest, whole_parts([manifest.by_name[first]]), lambda part, data: None)),
        lambda: answer(
            "overview", StagedCheckpoint(manifest, settings=settings), progress=lambda *_: None, hash_files=True
        ),
    ):
        with pytest.raises(NotInCheckpointError, match="still being uploaded"):
            read()


def test_two_copies_that_a_class_would_tie_count_as_two_until_they_can_be_compared(saved_models, tmp_path, settings):
    folder = with_output_layer(saved_models("GPT2LMHeadModel"), tmp_path, tied=True)
    early = answer("overview", seen(folder, settings), progress=lambda *_: None)
    assert early.unique_parameters == sum(tensor.numel() for tensor in load_file(folder / "model.safetensors").values())


def test_the_engine_answers_what_needs_names_and_refuses_the_rest_in_one_sentence(engine, tmp_path, settings):
    folder = small_checkpoint(tmp_path / "model")
    upload = outline(halfway(folder, settings), settings)
    found = engine.open(CheckpointRef("arriving", upload or "")).result(WAIT)
    assert (found.name, found.reference) == ("BertForMaskedLM", f"arriving:{upload}")
    assert any("still being uploaded" in warning for warning in found.warnings)
    for verb, analysis in CATALOG.items():
        asked = {"other": found.fingerprint} if verb in ("compare", "base") else REST.get(verb, QUESTIONS.get(verb, {}))
        if not asked and analysis.needs == "model":
            asked = TEXT
        if analysis.needs == "names" or analysis.early:
            assert engine.run(found.fingerprint, verb, called=(found.name,), **asked).result(WAIT)
            continue
        with pytest.raises(InspectorError) as raised:
            engine.run(found.fingerprint, verb, called=(found.name,), **asked).result(WAIT)
        assert type(raised.value) is NotInCheckpointError, verb
        assert "The weights of BertForMaskedLM are still being uploaded" in str(raised.value)

    overview = engine.run(found.fingerprint, "overview").result(WAIT)
    hashed = {file.name: file.sha256 is not None for file in overview.files}
    assert hashed == {"config.json": True, "model.safetensors": False, "vocab.txt": True}

    discard_upload(upload or "", settings=settings)
    with pytest.raises(CheckpointError, match="has changed since it was opened"):
        engine.run(found.fingerprint, "placement").result(WAIT)
    with pytest.raises(CheckpointError, match="still arriving"):
        engine.open(CheckpointRef("arriving", upload or "")).result(WAIT)
    discard_opened(found.fingerprint, settings=settings)
    assert not list((settings.home / "opened").glob("[!.]*"))


def test_it_is_never_taken_for_the_whole_file(tmp_path, settings):
    """Each preview has a fingerprint of its own, and the file another."""
    folder = small_checkpoint(tmp_path / "model")
    prints = {seen(folder, settings).manifest.fingerprint for _ in range(2)}
    manifest, _ = opened(CheckpointRef("path", str(folder)), settings, strangers=False)
    assert len(prints | {manifest.fingerprint}) == 3


@pytest.mark.parametrize("arrived", [0, 7, 100])
def test_a_header_that_has_not_arrived_is_waited_for(tmp_path, settings, arrived):
    folder, name = small_checkpoint(tmp_path / "model"), "model.safetensors"
    files = halfway(folder, settings) | {name: coming(folder / name, settings, arrived=arrived)}
    assert outline(files, settings) is None


def test_what_tells_what_it_holds_at_its_end_is_waited_for(tmp_path, settings):
    folder = small_checkpoint(tmp_path / "model")
    files = halfway(folder, settings)
    config = {"config.json": files["config.json"]}
    assert outline(config, settings) is None  # no weights yet
    for name in ("model.bin", "model.zip"):
        path = tmp_path / name
        path.write_bytes((folder / "model.safetensors").read_bytes())
        assert outline(config | {name: coming(path, settings)}, settings) is None
    late = tmp_path / "vocab.txt"
    late.write_text("x")
    assert outline(files | {"vocab.txt": coming(late, settings, arrived=0)}, settings) is None


def test_a_shard_that_is_missing_is_refused_until_it_comes(tmp_path, settings):
    folder = small_checkpoint(tmp_path / "model", max_shard_size="20KB")
    files = halfway(folder, settings)
    last = max(name for name in files if name.endswith(".safetensors"))
    upload = outline({name: file for name, file in files.items() if name != last}, settings)
    with pytest.raises(CheckpointError, match="missing"):
        opened(CheckpointRef("arriving", upload or ""), settings)
    upload = outline(files, settings)
    manifest, _ = opened(CheckpointRef("arriving", upload or ""), settings)
    listed = json.loads((folder / "model.safetensors.index.json").read_text())["weight_map"]
    assert {tensor.name for tensor in manifest.tensors} == set(listed)


def test_names_that_climb_are_refused_and_leave_nothing(tmp_path, settings):
    file = small_checkpoint(tmp_path / "model") / "model.safetensors"
    for name in ("../model.safetensors", "/model.safetensors", "a/../../model.safetensors"):
        with pytest.raises(CheckpointError, match="not a valid name"):
            outline({name: coming(file, settings)}, settings)


def test_a_hole_takes_no_room_in_the_store(tmp_path, settings):
    torch.manual_seed(0)
    save_file({"wte.weight": torch.zeros(4000, 1000)}, tmp_path / "model.safetensors")
    files = {"model.safetensors": coming(tmp_path / "model.safetensors", settings)}
    before = account(settings).used_nbytes
    upload = outline(files, settings)
    hole = incoming_folder(upload or "", settings=settings) / "model.safetensors"
    assert hole.stat().st_size == (tmp_path / "model.safetensors").stat().st_size > 16_000_000
    assert account(settings).used_nbytes - before < 100_000


def test_how_much_has_arrived_is_told(tmp_path, settings):
    (tmp_path / "a").write_bytes(bytes(3_000_000))
    half = [coming(tmp_path / "a", settings, arrived=count) for count in (0, 1_500_000)]
    assert how_far(half) == (0.25, "1.5 MB of 6.0 MB in 2 files")
    assert how_far(half[1:]) == (0.5, "1.5 MB of 3.0 MB")
    assert how_far([]) == (0.0, "0 B of 0 B")
