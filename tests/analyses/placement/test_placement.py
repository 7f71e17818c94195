"""Where a model runs: decided by sizes, and the same answers wherever its parts lie."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pandas as pd
import pytest
import torch

from inspector.analyses.lens.compute import lens
from inspector.analyses.masked_lm.compute import predict
from inspector.analyses.padding.compute import padding
from inspector.analyses.placement import words
from inspector.analyses.placement.compute import placement
from inspector.analyses.placement.request import PlacementRequest
from inspector.errors import RequestError
from inspector.models.build import TASKS
from inspector.models.checkpoint import StagedCheckpoint
from inspector.models.loading import load, plan_for
from inspector.models.running import forward
from inspector.request import options
from inspector.results.placement import PlacementOption
from inspector.results.plain import to_json
from tests.conftest import silent
from tests.families import random_model, save_checkpoint

# Architecture -> its task, and what it is given to have six blocks.
CASES = {
    "AlbertForMaskedLM": ("masked_lm", {"num_hidden_layers": 6, "num_hidden_groups": 6}),
    "BertForMaskedLM": ("masked_lm", {"num_hidden_layers": 6}),
    "GPT2LMHeadModel": ("causal_lm", {"n_layer": 6}),
    "LlamaForCausalLM": ("causal_lm", {"num_hidden_layers": 6}),
}
TINY = 1  # bytes that weights may take in main memory: all blocks stay on the disk
IDS = torch.tensor([[2, 7, 9, 11, 3]])


def within(checkpoint: StagedCheckpoint, nbytes: int, **changes) -> StagedCheckpoint:
    """The same checkpoint where weights may take so many bytes."""
    settings = replace(checkpoint.settings, model_nbytes=nbytes, **changes)
    return StagedCheckpoint(checkpoint.manifest, settings=settings)


def weights(checkpoint: StagedCheckpoint, task: str) -> int:
    """Bytes of the loaded model's weights in float32, counted on the model itself."""
    loaded = load(checkpoint, task, device="cpu", dtype="float32")
    return 4 * sum(parameter.numel() for parameter in loaded.model.parameters())


def close(found: torch.Tensor, expected: torch.Tensor) -> None:
    """Equal but for rounding: weights at other addresses may be added up in another order."""
    torch.testing.assert_close(found, expected)


@pytest.mark.parametrize("architecture", sorted(CASES))
def test_a_spread_model_answers_as_one_that_is_whole(open_model, architecture):
    """Over main memory and disk, by accelerate, with room for some of it and for none."""
    task, changes = CASES[architecture]
    plain = open_model(architecture, **changes)
    total = weights(plain, task)
    whole: Any = forward(load(plain, task), IDS, head=True, every_layer=True)
    seen = []
    for share in (3.0, 0.9, 0.7, 0.0):
        small = within(plain, int(share * total))
        plan = placement(small, progress=silent, task=task, device="spread", dtype="float32")
        held = {place.device: place.nbytes for place in plan.places}
        assert plan.spread
        assert plan.nbytes == sum(held.values()) == total
        seen.append(held.get("disk", 0))
        loaded = load(small, task, device="spread", dtype="float32")
        on_disk = [p for p in loaded.model.parameters() if p.is_meta]
        assert 4 * sum(parameter.numel() for parameter in on_disk) == held.get("disk", 0)
        found: Any = forward(loaded, IDS, head=True, every_layer=True)
        assert found.logits is not None
        close(found.logits, whole.logits)
        for one, other in zip(found.hidden_states, whole.hidden_states, strict=True):
            close(one, other)
        again: Any = forward(loaded, IDS, head=True)  # the disk is read anew at every pass
        assert torch.equal(again.logits, found.logits)
        assert [p.is_meta for p in loaded.model.parameters()].count(True) == len(on_disk)
    assert seen == sorted(seen)
    assert len(set(seen)) > 2, "some of it, all blocks, and nothing were on the disk"
    assert seen[0] == 0


def test_blocks_alone_are_left_on_the_disk(open_model):
    plain = open_model("BertForMaskedLM")
    loaded = load(within(plain, TINY), "masked_lm", device="spread")
    away = {name for name, p in loaded.model.named_parameters() if p.is_meta}
    blocks = {name for name, _ in loaded.model.named_parameters() if ".layer." in name}
    assert away == blocks
    assert loaded.input_embedding.shape == plain.embedding.shape


def test_what_fits_goes_whole_and_half_precision_comes_before_the_disk(tmp_path, open_path):
    model = random_model("GPT2LMHeadModel").to(torch.bfloat16)
    checkpoint = open_path(save_checkpoint(model, tmp_path / "half"))
    numel = sum(parameter.numel() for parameter in model.parameters())

    def plan(nbytes: int, **asked):
        return placement(within(checkpoint, nbytes), progress=silent, **asked)

    fits = plan(4 * numel)
    assert (fits.dtype, fits.spread, fits.nbytes) == ("float32", False, 4 * numel)
    half = plan(4 * numel - 1)
    assert (half.dtype, half.spread, half.nbytes) == ("bfloat16", False, 2 * numel)
    disk = plan(2 * numel - 1)
    assert (disk.dtype, disk.streamed, disk.spread, disk.nbytes) == ("bfloat16", True, False, 2 * numel)
    asked = plan(4 * numel - 1, dtype="float32")
    assert (asked.dtype, asked.streamed) == ("float32", True)
    by_hand = plan(TINY, device="cpu")
    assert (by_hand.dtype, by_hand.spread) == ("float32", False)
    assert by_hand.reason.endswith("memory limit; the device stream reads a block of layers at a time.")
    switched = plan(4 * numel, device="spread")
    assert switched.spread
    assert [place.device for place in switched.places] == ["cpu"]


def test_half_precision_on_the_disk_is_what_half_precision_in_memory_is(tmp_path, open_path):
    model = random_model("LlamaForCausalLM").to(torch.bfloat16)
    checkpoint = open_path(save_checkpoint(model, tmp_path / "half"))
    for dtype in ("bfloat16", "float32"):
        whole: Any = forward(load(checkpoint, "causal_lm", device="cpu", dtype=dtype), IDS, head=True)
        spread = load(within(checkpoint, TINY), "causal_lm", device="spread", dtype=dtype)
        found: Any = forward(spread, IDS, head=True)
        assert found.logits.dtype == getattr(torch, dtype)
        close(found.logits, whole.logits)


def test_the_plan_is_made_before_any_weight_is_read(open_model, monkeypatch):
    checkpoint = open_model("BertForMaskedLM")

    def read(*_, **__):
        raise AssertionError("a weight was read")

    monkeypatch.setattr("inspector.models.tensors.StoredReader.read", read)
    assert placement(checkpoint, progress=silent).reason.endswith("GB.")


def test_the_plan_says_what_is_where(open_model):
    small = within(open_model("BertForMaskedLM"), TINY)
    plan = placement(small, progress=silent, device="spread")
    sizes = {place.device: f"{place.nbytes / 1e6:,.1f} MB" for place in plan.places}
    assert plan.reason == (
        f"Weights in float32: {sizes['cpu']} on cpu, {sizes['disk']} on disk, by accelerate's "
        "device map. Weights on disk are read again in every pass, which is slow."
    )
    assert {place.device: place.allowed_nbytes for place in plan.places} == {"cpu": 1, "disk": None}
    answer = predict(small, progress=silent, text="[MASK]", device="spread")
    assert answer.note.endswith(plan.reason)


@pytest.mark.parametrize("device", ["spread", "stream"])
def test_analyses_answer_the_same_on_a_spread_model(open_model, device):
    plain = open_model("BertForMaskedLM")
    small = within(plain, TINY)
    for ask in (
        lambda checkpoint, **where: predict(checkpoint, progress=silent, text="a [MASK]", **where).masks[0].predictions,
        lambda checkpoint, **where: lens(checkpoint, progress=silent, text="a b", **where).cells,
    ):
        pd.testing.assert_frame_equal(ask(small, device=device), ask(plain), rtol=1e-4)
    told = json.dumps(to_json(padding(small, progress=silent, text="a\na b", device=device)))
    assert "A backward pass needs all weights of BertForMaskedLM on one device" in told


def test_what_cannot_be_planned_is_refused(open_model):
    checkpoint = open_model("BertForMaskedLM")
    with pytest.raises(RequestError, match=r"^Task must be masked_lm, .* not 'nothing'\.$"):
        placement(checkpoint, progress=silent, task="nothing")
    with pytest.raises(RequestError, match=r"^Device must be auto, .* not 'moon'\.$"):
        placement(checkpoint, progress=silent, device="moon")
    moon: Any = "moon"
    with pytest.raises(RequestError, match="There is no device 'moon'"):
        plan_for(checkpoint, "base", device=moon)


def test_every_task_that_can_be_built_can_be_placed():
    assert options(PlacementRequest)["task"].choices == tuple(TASKS)


@pytest.mark.parametrize(
    ("seconds", "told"),
    [(0.2, "less than a second"), (4.6, "5 s"), (119.4, "119 s"), (627, "10 min"), (90_000, "1,500 min")],
)
def test_long_passes_are_told_in_minutes(seconds, told):
    assert words.duration(seconds) == told
    way = PlacementOption("stream", "bfloat16", 0, 0, fits=True, seconds=seconds, note="Measured.")
    about = "" if seconds < 1 else "about "
    assert words.pass_time(way) == f"A streamed pass takes {about}{told}, not counting the head. Measured."
