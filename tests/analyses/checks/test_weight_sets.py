"""What the checks say of odd sets of weight files, and what they advise."""

from __future__ import annotations

import pytest
import torch

from inspector.analyses.checks import words_files
from inspector.analyses.checks import words_structure as words
from inspector.analyses.checks.compute import check
from inspector.analyses.checks.result import Check, Checks
from inspector.errors import NotInCheckpointError
from inspector.models.loading import load
from inspector.store.manifests import findings
from tests.conftest import silent
from tests.store.store_builders import Shards

GATE = "model.layers.0.mlp.gate_proj.weight"


@pytest.fixture
def shards(tmp_path) -> Shards:
    return Shards(tmp_path / "sound", count=3)


@pytest.fixture
def checked(shards, open_path):
    def run() -> Checks:
        return check(open_path(shards.folder), values="none", progress=silent)

    return run


def named(checks: Checks, name: str) -> Check:
    return next(each for each in checks.checks if each.name == name)


def lost(shards: Shards, number: int) -> list[str]:
    return sorted(name for name, shard in shards.weight_map.items() if shard == shards.names[number])


def test_a_shard_that_the_index_does_not_list_is_why_tensors_are_missing(shards, checked, open_path):
    shards.list(**dict.fromkeys(lost(shards, 1)))
    found = checked()
    files, weights = named(found, "Files"), named(found, "Heads and weights")
    assert (files.severity, files.next_step) == ("critical", words_files.LIST_THEM)
    assert files.detail.startswith(f"{shards.index} does not list {shards.names[1]}, which lies beside it")
    assert {each.subject for each in weights.evidence if each.severity == "critical"} == set(lost(shards, 1))
    assert weights.next_step == words.READ_THEM.format(file=shards.names[1])
    assert named(found, "Config and shapes").status == "ok"
    with pytest.raises(NotInCheckpointError, match=f"{shards.index} does not list {shards.names[1]}"):
        load(open_path(shards.folder), "causal_lm")


def test_a_shard_that_is_not_there(shards, checked):
    shards.list(**dict.fromkeys(lost(shards, 1)))
    (shards.folder / shards.names[1]).unlink()
    found = checked()
    assert named(found, "Files").severity == "critical"
    assert named(found, "Files").next_step == words_files.GET_SHARDS
    assert named(found, "Heads and weights").next_step == words.ADD_THE_SHARD


def test_a_complete_model_needs_no_shard_that_the_index_does_not_list(shards, checked):
    shards.put(shards.names[0], {name: shards.state[name] for name in lost(shards, 0) + lost(shards, 1)})
    shards.list(**dict.fromkeys(lost(shards, 1), shards.names[0]))
    found = checked()
    assert named(found, "Heads and weights").status == "ok"
    assert (named(found, "Files").severity, named(found, "Files").found) == ("minor", 1)


def test_a_name_that_no_shard_holds(shards, checked):
    shards.list(**{"mtp.fc.weight": shards.names[0]})
    found = checked()
    assert named(found, "Files").severity == "minor"
    assert "mtp.fc.weight" in named(found, "Files").detail
    assert named(found, "Heads and weights").status == "ok"


def test_a_tensor_of_the_model_that_no_shard_holds(shards, checked):
    """Not config.json is to blame."""
    shards.put(shards.names[2], {name: shards.state[name] for name in lost(shards, 2) if name != "model.norm.weight"})
    shards.put(shards.names[1], {name: shards.state[name] for name in lost(shards, 1) if name != "model.norm.weight"})
    found = named(checked(), "Heads and weights")
    assert (found.severity, found.next_step) == ("critical", words.GET_THE_SHARDS)


@pytest.mark.parametrize(
    ("name", "equal", "severity"),
    [
        ("a_overlay.safetensors", False, "major"),
        ("overlay.safetensors", False, "minor"),
        ("a_overlay.safetensors", True, "note"),
        ("overlay.safetensors", True, "note"),
    ],
)
def test_copies_in_two_shards(shards, checked, name, equal, severity):
    tensor = shards.state[GATE] if equal else torch.zeros_like(shards.state[GATE])
    shards.list(**{GATE: shards.put(name, {GATE: tensor})})
    files = named(checked(), "Files")
    (found,) = files.evidence
    assert (files.severity, found.severity, found.subject, found.count) == (severity, severity, name, 1)
    assert found.detail.endswith("All copies hold the same bytes.") == equal


def test_a_copy_that_is_not_read_explains_the_size_of_its_file(shards, checked):
    """2 MB that no tensor of the manifest takes are no unexplained bytes."""
    large = torch.zeros(512, 1024)
    shards.put(shards.names[0], {name: shards.state[name] for name in lost(shards, 0)} | {"extra": large})
    shards.list(extra=shards.put("overlay.safetensors", {"extra": large + 1}))
    problems = {each.problem for each in named(checked(), "Files").evidence}
    assert problems == {findings.COPIES, findings.TOTAL}


def test_an_index_without_metadata(shards, checked):
    shards.metadata = None
    shards.list()
    files = named(checked(), "Files")
    assert (files.severity, files.next_step) == ("major", words_files.ADD_METADATA)
