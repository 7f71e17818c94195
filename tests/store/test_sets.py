"""Sets of weight files: what from_pretrained opens is opened with its numbers, and what is odd about it is told."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from inspector.models.checkpoint import StagedCheckpoint
from inspector.store.manifests import findings
from inspector.store.manifests.entries import load_manifest
from inspector.store.manifests.findings import FileProblem
from inspector.store.reference import CheckpointRef
from tests.store.store_builders import Shards, opened, pack, upload_of

GATE = "model.layers.0.mlp.gate_proj.weight"
FORMS = ("safetensors", "bin")
Open = Callable[[Path], StagedCheckpoint]


@pytest.fixture(params=FORMS)
def shards(request, tmp_path) -> Shards:
    return Shards(tmp_path / "sound", request.param)


def other(shards: Shards) -> torch.Tensor:
    """Numbers that are no tensor's of the checkpoint."""
    return torch.full_like(shards.state[GATE], 7.0)


def half(shards: Shards) -> None:
    shards.list(**{name: None for name, shard in shards.weight_map.items() if shard == shards.names[1]})


def copied_last(shards: Shards) -> None:
    shards.list(**{GATE: shards.put(f"{shards.stem}_overlay.{shards.form}", {GATE: other(shards)})})


def copied_last_unlisted(shards: Shards) -> None:
    """The overlay is read for another tensor's sake; no entry names a copy."""
    overlay = {GATE: other(shards), "more": torch.ones(2)}
    shards.list(more=shards.put(f"{shards.stem}_overlay.{shards.form}", overlay), **{GATE: None})


def equal_copies(shards: Shards) -> None:
    shards.list(**{GATE: shards.put(f"{shards.stem}_overlay.{shards.form}", {GATE: shards.state[GATE]})})


def ghost(shards: Shards) -> None:
    shards.list(**{"mtp.fc.weight": shards.names[0]})


def moved(shards: Shards) -> None:
    shards.list(**{GATE: shards.names[1]})


def unnamed(shards: Shards) -> None:
    shards.list(**{GATE: None})


def consolidated(shards: Shards) -> None:
    shards.put(f"consolidated.{shards.form}", {"layers.0.wq.weight": torch.ones(2)})


def aside(shards: Shards) -> None:
    """A tensor that the model needs is in a file of its own, which the index does not list."""
    shards.put(
        shards.names[0],
        {n: t for n, t in shards.state.items() if shards.weight_map[n] == shards.names[0] and n != GATE},
    )
    shards.put(f"extra.{shards.form}", {GATE: shards.state[GATE]})
    unnamed(shards)


def wrong_total(shards: Shards) -> None:
    shards.metadata = {"total_size": 5}
    shards.list()


def sound(shards: Shards) -> None:
    shards.list()


CASES = {
    half: (findings.UNLISTED,),
    copied_last: (findings.COPIES,),
    copied_last_unlisted: (findings.COPIES, findings.NOT_IN_INDEX, findings.TOTAL),
    equal_copies: (findings.COPIES,),
    ghost: (findings.NO_SUCH_TENSOR,),
    moved: (findings.MISPLACED,),
    unnamed: (findings.NOT_IN_INDEX,),
    consolidated: (findings.UNREAD,),
    aside: (findings.UNREAD, findings.TOTAL),
    wrong_total: (findings.TOTAL,),
    sound: (),
}


@pytest.mark.parametrize("damage", CASES, ids=lambda damage: damage.__name__)
def test_what_from_pretrained_opens_is_opened_with_its_numbers(shards, open_path, damage):
    damage(shards)
    wanted, made_up = shards.loaded()
    checkpoint = open_path(shards.folder)
    found = checkpoint.state
    assert wanted.keys() - found.keys() == made_up
    assert all(torch.equal(found[name], wanted[name]) for name in wanted.keys() - made_up)
    assert tuple(each.problem for each in checkpoint.manifest.findings) == CASES[damage]
    assert {each.detail for each in checkpoint.manifest.findings if each.problem != findings.TOTAL} <= {
        *checkpoint.manifest.warnings
    }


def test_the_copy_that_the_index_names_counts(shards, open_path):
    """transformers takes the other one, and the finding says so."""
    first = shards.put(f"a_overlay.{shards.form}", {GATE: other(shards)})
    shards.list(**{GATE: first})
    assert torch.equal(shards.loaded()[0][GATE], shards.state[GATE])
    checkpoint = open_path(shards.folder)
    assert torch.equal(checkpoint.state[GATE], other(shards))
    (found,) = checkpoint.manifest.findings
    assert found == FileProblem(
        first,
        findings.COPIES_APART,
        1,
        f"1 tensor ('{GATE}') is in several files, {first} and {shards.names[0]}: of the copies this app reads the "
        f"one that {shards.index} names ({first}); transformers takes the one in the last file by name "
        f"({shards.names[0]}). Other loaders, such as vLLM, may take either.",
        (GATE,),
    )


def test_a_shard_that_the_index_does_not_list_is_named_with_what_is_missing(shards, open_path):
    half(shards)
    lost = sorted(name for name, shard in shards.weight_map.items() if shard == shards.names[1])
    (found,) = open_path(shards.folder).manifest.findings
    assert found.names == tuple(lost)
    assert found.detail == (
        f"{shards.index} does not list {shards.names[1]}, which lies beside it, so loaders skip it: {len(lost)} "
        f"tensors (such as '{lost[0]}') that it alone holds are missing."
    )


@pytest.mark.parametrize("way", ["upload", "zip"])
@pytest.mark.parametrize("damage", [half, copied_last, ghost], ids=lambda damage: damage.__name__)
def test_an_upload_is_as_the_folder_is(tmp_path, settings, way, damage):
    shards = Shards(tmp_path / "sound")
    damage(shards)
    if way == "zip":
        reference = CheckpointRef("path", str(pack(shards.folder, tmp_path / "sound.zip")))
    else:
        reference = upload_of(settings, shards.folder)
    by_path, _ = opened(CheckpointRef("path", str(shards.folder)), settings, strangers=False)
    found, _ = opened(reference, settings, strangers=False)
    assert found.findings == by_path.findings != ()
    assert found.fingerprint == by_path.fingerprint
    assert load_manifest(found.fingerprint, settings=settings).findings == found.findings


def test_shards_without_an_index_and_a_file_of_other_names(shards, open_path):
    """The numbers show which files belong together; from_pretrained opens none without an index."""
    consolidated(shards)
    (shards.folder / shards.index).unlink()
    checkpoint = open_path(shards.folder)
    assert checkpoint.state.keys() == shards.state.keys()
    assert [each.problem for each in checkpoint.manifest.findings] == [findings.UNREAD]


@pytest.mark.parametrize("form", FORMS)
def test_an_index_without_metadata_is_what_from_pretrained_fails_on(tmp_path, open_path, form):
    shards = Shards(tmp_path / "sound", form)
    shards.metadata = None
    shards.list()
    with pytest.raises(KeyError):
        shards.loaded()
    assert [each.problem for each in open_path(shards.folder).manifest.findings] == [findings.NO_METADATA]


def test_a_shard_is_absent_that_no_index_lists(tmp_path, open_path):
    shards = Shards(tmp_path / "sound", count=3)
    lost = {name for name, shard in shards.weight_map.items() if shard == shards.names[1]}
    shards.list(**dict.fromkeys(lost))
    (shards.folder / shards.names[1]).unlink()
    wanted, made_up = shards.loaded()
    checkpoint = open_path(shards.folder)
    assert wanted.keys() - checkpoint.state.keys() == made_up == lost
    assert checkpoint.manifest.findings[0] == FileProblem(
        shards.names[1],
        findings.ABSENT,
        1,
        f"By the numbers in the names of the others, 1 shard is not there ({shards.names[1]}), and no index lists "
        "what they hold.",
    )


def test_a_layer_is_in_the_absent_shard(tmp_path, refused):
    """Not config.json is to blame."""
    shards = Shards(tmp_path / "sound")
    layer = {name for name in shards.state if name.startswith("model.layers.1.")}
    shards.put(shards.names[0], {name: tensor for name, tensor in shards.state.items() if name not in layer})
    shards.weight_map = dict.fromkeys(shards.state.keys() - layer, shards.names[0])
    shards.list()
    (shards.folder / shards.names[1]).unlink()
    assert refused(shards.folder) == (
        f"By the numbers in the names of the others, 1 shard is not there ({shards.names[1]}), and no index lists "
        "what they hold. Add them: the others hold less than config.json asks for."
    )


def test_a_shard_of_another_save_lacks_a_layer(shards, refused):
    layer = sorted(name for name in shards.state if name.startswith("model.layers.1."))
    for shard in shards.names:
        held = (name for name, place in shards.weight_map.items() if place == shard and name not in layer)
        shards.put(shard, {name: shards.state[name] for name in held})
    assert refused(shards.folder) == (
        f"{shards.index} lists {len(layer)} tensors (such as '{layer[0]}') that no shard holds: transformers loads all "
        "that the shards hold, but a program that finds tensors by the index fails. Get the shards again: they hold "
        "less than config.json asks for."
    )


def test_a_left_over_file_hides_the_shards(shards, refused):
    whole = shards.put(f"{shards.stem}.{shards.form}", {GATE: other(shards)})
    assert torch.equal(shards.loaded()[0][GATE], other(shards))
    assert refused(shards.folder) == (
        f"{whole} holds less than config.json asks for, but {shards.names[0]}, which lies beside it, does not: "
        f"transformers reads {whole} alone. To open the other weights, give them a folder of their own."
    )


def test_a_whole_left_over_file_counts_and_the_shards_do_not(shards, open_path):
    changed = shards.state | {GATE: other(shards)}
    whole = shards.put(f"{shards.stem}.{shards.form}", changed)
    assert torch.equal(shards.loaded()[0][GATE], changed[GATE])
    checkpoint = open_path(shards.folder)
    assert torch.equal(checkpoint.state[GATE], changed[GATE])
    assert checkpoint.manifest.warnings[0] == (
        f"There are two sets of weights: {whole} is read, and {', '.join(shards.names)} is not. They may disagree."
    )


def test_a_layer_is_in_a_file_that_no_number_ties_to_the_others(shards, refused):
    layer = {name for name in shards.state if name.startswith("model.layers.1.")}
    for shard in shards.names:
        held = (name for name, place in shards.weight_map.items() if place == shard and name not in layer)
        shards.put(shard, {name: shards.state[name] for name in held})
    extra = shards.put(f"extra.{shards.form}", {name: shards.state[name] for name in layer})
    shards.list(**dict.fromkeys(layer))
    assert refused(shards.folder) == (
        f"{shards.index} does not list {extra}, which lies beside it, and the files that it lists hold less than "
        "config.json asks for: list its tensors in the index."
    )


def test_an_unlisted_shard_that_is_broken_hinders_nothing(shards, open_path):
    name = shards.names[0].replace("00001-of", "00002-of").replace("model", "model-old")
    (shards.folder / name).write_bytes(b"not weights")
    assert open_path(shards.folder).state.keys() == shards.state.keys()
