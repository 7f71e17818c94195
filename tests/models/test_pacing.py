"""The time of a streamed pass: what was measured of one block, and the rest by the bytes of the files."""

from __future__ import annotations

from dataclasses import replace
from itertools import count
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from safetensors.torch import load_file

from inspector.analyses.placement.compute import placement
from inspector.models.loading import load
from inspector.models.placing import pacing
from inspector.models.running import forward
from tests.conftest import silent

IDS = torch.tensor([[2, 7, 9, 11, 3]])
WHOLE = {
    "BertForMaskedLM": ("masked_lm", {"num_hidden_layers": 3}, 3),
    "GPT2LMHeadModel": ("causal_lm", {"n_layer": 5}, 5),
    "LlamaForCausalLM": ("causal_lm", {"num_hidden_layers": 4}, 4),
    "MixtralForCausalLM": ("causal_lm", {"num_hidden_layers": 3}, 3),
    "AlbertForMaskedLM": ("masked_lm", {"num_hidden_layers": 6, "num_hidden_groups": 1}, 6),
    "T5ForConditionalGeneration": ("seq2seq_lm", {}, None),
}


@pytest.fixture
def a_second_a_block(monkeypatch: pytest.MonkeyPatch) -> None:
    """A clock that goes on by a second whenever it is read: a block takes exactly one."""
    ticks = count()
    monkeypatch.setattr(pacing, "time", SimpleNamespace(monotonic=lambda: float(next(ticks))))


@pytest.mark.usefixtures("a_second_a_block")
@pytest.mark.parametrize("architecture", sorted(WHOLE))
def test_all_blocks_take_what_their_bytes_say(open_model, architecture):
    task, changes, blocks = WHOLE[architecture]
    checkpoint = open_model(architecture, **changes)
    loaded: Any = load(checkpoint, task, device="stream")
    before: Any = forward(loaded, IDS, head=task != "seq2seq_lm", every_layer=True) if blocks else None
    found: Any = pacing.estimate(checkpoint, loaded, loaded.stream)
    if blocks:  # all of one size
        assert found.seconds == pytest.approx(blocks)
    else:
        stored = load_file(next(file.path for file in checkpoint.manifest.files if file.format == "safetensors"))
        sizes = [
            sum(tensor.nbytes for name, tensor in stored.items() if name.startswith(f"{stack}.block.{number}."))
            for stack in ("encoder", "decoder")
            for number in range(2)
        ]
        assert found.seconds == pytest.approx(sum(sizes) / sizes[1])
    assert "took 1 s to read and run with" in found.basis
    after: Any = forward(loaded, IDS, head=task != "seq2seq_lm", every_layer=True) if blocks else None
    if blocks:  # nothing of the clock is left in the model
        assert all(map(torch.equal, before.hidden_states, after.hidden_states))


@pytest.mark.usefixtures("a_second_a_block")
def test_of_a_mixture_as_many_experts_count_as_tokens_can_reach(open_model):
    checkpoint = open_model("MixtralForCausalLM", num_local_experts=8, num_experts_per_tok=2)
    loaded: Any = load(checkpoint, "causal_lm", device="stream")
    stored = load_file(next(file.path for file in checkpoint.manifest.files if file.format == "safetensors"))
    block = {name: tensor.nbytes for name, tensor in stored.items() if name.startswith("model.layers.1.")}
    experts = sum(nbytes for name, nbytes in block.items() if ".experts." in name)
    wanted = sum(block.values()) - experts + experts // 4
    assert pacing.nbytes_of(checkpoint, loaded.stream, "model.layers.1", 1) == wanted


def test_every_way_is_listed_and_only_where_it_is_asked_for(open_model):
    checkpoint = open_model("LlamaForCausalLM")
    assert placement(checkpoint, progress=silent).ways == ()
    whole, spread, stream = placement(checkpoint, progress=silent, every=True).ways
    assert [each.device for each in (whole, spread, stream)] == ["cpu", "spread", "stream"]
    assert whole.fits
    assert stream.fits
    assert whole.disk_nbytes == 0
    assert stream.memory_nbytes + stream.disk_nbytes == whole.memory_nbytes
    assert (whole.seconds, spread.seconds) == (None, None)
    assert stream.seconds is not None
    assert stream.seconds > 0


def test_a_model_that_cannot_be_streamed_says_why(open_model):
    checkpoint = open_model("LlamaForCausalLM")
    small = type(checkpoint)(checkpoint.manifest, settings=replace(checkpoint.settings, model_nbytes=1))
    *_, stream = placement(small, progress=silent, every=True, dtype="bfloat16").ways
    assert not stream.fits
    assert stream.seconds is None
    assert "INSPECTOR_MODEL_MB" in stream.note
